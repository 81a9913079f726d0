"""Classes and static parts of arrays in JSON: for files, and for programs that `jax.export` writes.

Reading never imports or runs anything: a class is found by its name among the defined classes.
"""

from __future__ import annotations

import re
import reprlib
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from .base import Array

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Array.__module__.partition(".")[0]


def name_of(cls: type) -> str:
    """Return the name of a class of arrays, with its module unless the class belongs to this library."""
    inside = cls.__module__.partition(".")[0] == PACKAGE
    return cls.__name__ if inside else f"{cls.__module__}:{cls.__qualname__}"


def classes() -> Iterator[type[Array]]:
    """Iterate over all defined classes of arrays."""
    waiting: list[type[Array]] = [Array]
    while waiting:
        found = waiting.pop().__subclasses__()
        yield from found
        waiting += found


def class_of(name: str) -> type[Array]:
    """Find the class of this name.

    Raises
    ------
    ValueError
        If no class has this name.
    """
    for cls in classes():
        if name_of(cls) == name:
            return cls
    module, colon, _ = str(name).partition(":")
    hint = f"; import {module:.80} first" if colon else ""
    raise ValueError(f"it contains an array of unknown class {name!r:.80}{hint}")


def static_node(meta: Any, where: str) -> Any:
    """Convert the static part of an array to JSON values, with tuples as lists and dtypes by name.

    Raises
    ------
    TypeError
        If the static part contains any other object; `where` names the array in the message.
    """
    if meta is None or type(meta) in (bool, int, str):
        return meta
    if type(meta) is tuple:
        return [static_node(m, where) for m in meta]
    if isinstance(meta, np.dtype):
        return {"dtype": meta.name}
    raise TypeError(f"the static part of {where} contains a {type(meta).__name__}, which cannot be saved")


def static_part(node: Any) -> Any:
    """Convert the result of `static_node` back.

    Raises
    ------
    ValueError
        If `static_node` cannot have returned this node.
    """
    if node is None or type(node) in (bool, int, str):
        return node
    if isinstance(node, list):
        return tuple(map(static_part, node))
    if isinstance(node, np.dtype):  # converted by the reader of files
        return node
    if isinstance(node, dict) and list(node) == ["dtype"]:
        return dtype_of(node["dtype"])
    raise ValueError(f"{reprlib.repr(node)} is not the static part of an array")


def dtype_of(name: Any) -> np.dtype:
    """Return the dtype of this name. `numpy.dtype` is unsafe: it makes dtypes of any size from strings with commas.

    Raises
    ------
    ValueError
        If no dtype of array elements has this name.
    """
    if not isinstance(name, str) or name not in _DTYPES:
        raise ValueError(f"{reprlib.repr(name)} is not a dtype of arrays")
    dtype: np.dtype = _DTYPES[name]
    return dtype


_NAMED = (np.dtype(getattr(jnp, name)) for name in dir(jnp) if re.fullmatch(r"b?u?(float|int|complex)\d\w*", name))
_DTYPES = {dtype.name: dtype for dtype in (*_NAMED, *map(np.dtype, "?bBhHiIlLqQefdgFDG"))}
"""Dtypes of array elements in NumPy and JAX, by name."""
