"""Classes and static parts of arrays in JSON: for files, and for programs that `jax.export` writes.

Nothing here imports or runs what a text names: a class is found among those that are defined, by its name.
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
    """The name of a class of arrays: with its module, if it is not of this library."""
    inside = cls.__module__.partition(".")[0] == PACKAGE
    return cls.__name__ if inside else f"{cls.__module__}:{cls.__qualname__}"


def classes() -> Iterator[type[Array]]:
    """All classes of arrays that are defined."""
    waiting: list[type[Array]] = [Array]
    while waiting:
        found = waiting.pop().__subclasses__()
        yield from found
        waiting += found


def class_of(name: str) -> type[Array]:
    """The class of this name.

    Raises
    ------
    ValueError
        If none is known.
    """
    for cls in classes():
        if name_of(cls) == name:
            return cls
    module, colon, _ = str(name).partition(":")
    hint = f"; import {module:.80} first" if colon else ""
    raise ValueError(f"it contains an array of the unknown class {name!r:.80}{hint}")


def static_node(meta: Any, where: str) -> Any:
    """The static part of an array: what JSON has, tuples as lists, and dtypes.

    Raises
    ------
    TypeError
        If it holds anything else; `where` says in which array.
    """
    if meta is None or type(meta) in (bool, int, str):
        return meta
    if type(meta) is tuple:
        return [static_node(m, where) for m in meta]
    if isinstance(meta, np.dtype):
        return {"dtype": meta.name}
    raise TypeError(f"the static part of {where} holds a {type(meta).__name__}, which cannot be saved")


def static_part(node: Any) -> Any:
    """The reverse.

    Raises
    ------
    ValueError
        If the node is none that `static_node` makes.
    """
    if node is None or type(node) in (bool, int, str):
        return node
    if isinstance(node, list):
        return tuple(map(static_part, node))
    if isinstance(node, np.dtype):  # the reader of files has converted it
        return node
    if isinstance(node, dict) and list(node) == ["dtype"]:
        return dtype_of(node["dtype"])
    raise ValueError(f"{reprlib.repr(node)} is not the static part of an array")


def dtype_of(name: Any) -> np.dtype:
    """The dtype of this name. `numpy.dtype` would not do: it makes dtypes of any size from strings with commas.

    Raises
    ------
    ValueError
        If no dtype of elements has this name.
    """
    if not isinstance(name, str) or name not in _DTYPES:
        raise ValueError(f"{reprlib.repr(name)} is not a dtype of arrays")
    dtype: np.dtype = _DTYPES[name]
    return dtype


_NAMED = (np.dtype(getattr(jnp, name)) for name in dir(jnp) if re.fullmatch(r"b?u?(float|int|complex)\d\w*", name))
_DTYPES = {dtype.name: dtype for dtype in (*_NAMED, *map(np.dtype, "?bBhHiIlLqQefdgFDG"))}
"""The dtypes of elements in NumPy and JAX, by name."""
