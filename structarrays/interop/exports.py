"""Compiled programs on disk: serialization of our classes for ``jax.export``, and JAX's compilation cache."""

from __future__ import annotations

import base64
import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax.experimental.compilation_cache import compilation_cache as cache

from .._core.array.base import when_defined
from .._core.array.flattening import Constant, Indexed, Variable
from .._core.array.serialization import PACKAGE, class_of, classes, dtype_of, name_of, static_node, static_part
from .._functions.linalg.factorizations import CholeskyFactor
from .named_results import RESULTS

if TYPE_CHECKING:
    from os import PathLike

    from .._core.array.base import Array


def make_exportable() -> None:
    """Register the serialization of the static parts of all arrays and results with ``jax.export``.

    Call it once, after all classes of this library are defined. Classes of third parties are registered on definition.
    """
    cls: type[Any]
    for cls in classes():
        _register(cls)
    when_defined.append(_register_anew)
    for cls in RESULTS.values():
        if cls is CholeskyFactor:
            export.register_pytree_node_serialization(
                cls,
                serialized_name=_name(cls),
                serialize_auxdata=lambda lower: json.dumps(lower).encode(),
                deserialize_auxdata=lambda data: json.loads(bytes(data)),
            )
        else:
            export.register_namedtuple_serialization(cls, serialized_name=_name(cls))


def _register(cls: type[Array]) -> None:
    export.register_pytree_node_serialization(
        cls, serialized_name=_name(cls), serialize_auxdata=_written, deserialize_auxdata=_read
    )


def _register_anew(cls: type[Array]) -> None:
    # JAX keeps the first class of a name, so a class that is redefined (in a notebook, say) cannot be exported.
    with contextlib.suppress(ValueError):
        _register(cls)


def _name(cls: type) -> str:
    return f"{PACKAGE}:{name_of(cls)}"


def _written(aux: Any) -> bytes:
    """Serialize the static part of a pytree: class, meta, assumptions and constant indices (null if these are leaves)."""
    (cls, meta, assumptions), *constants = aux if isinstance(aux, Indexed) else (aux, ())
    parts = [name_of(cls), static_node(meta, f"a {cls.__name__}"), sorted(assumptions)]
    indices = None if isinstance(aux, Variable) else [_indices_node(c.array) for c in constants[0]]
    return json.dumps([*parts, indices]).encode()


def _read(data: bytes) -> Any:
    name, meta, assumptions, indices = json.loads(bytes(data))
    aux = class_of(name), static_part(meta), frozenset(assumptions)
    if indices is None:
        return Variable(aux)
    return Indexed(aux, tuple(map(_indices, indices))) if indices else aux


def _indices_node(array: Any) -> list[str]:
    values = np.asarray(array)
    little_endian = values.astype(values.dtype.newbyteorder("<"))
    return [values.dtype.name, base64.b64encode(little_endian.tobytes()).decode()]


def _indices(node: list[str]) -> Constant:
    name, text = node
    dtype = dtype_of(name)
    values = np.frombuffer(base64.b64decode(text), dtype.newbyteorder("<")).astype(dtype)
    return Constant(jnp.asarray(values))


def compilation_cache(folder: str | PathLike[str] | None = None) -> Path:
    """Enable JAX's persistent compilation cache, so that later processes reuse compiled programs.

    The cache stores programs of any size. By default, JAX stores only programs that take more than a second to compile;
    this library compiles many small ones.

    Parameters
    ----------
    folder : path, optional
        Directory of the cache. It is created if it does not exist, and several processes may share it. The default is
        ``structarrays/jax`` in the user's cache directory (``$XDG_CACHE_HOME``, or ``~/.cache``).

    Returns
    -------
    pathlib.Path
        The absolute path of the directory.

    Raises
    ------
    OSError
        If the directory cannot be created.

    Notes
    -----
    **Security.** Use a directory that only you can write to: a process runs the programs that it finds there.

    **Invalidation.** The key of an entry contains the program, the version of JAX and the kind of device, so a change of
    any of them compiles the program again. Old entries stay until you delete them; JAX's option
    ``jax_compilation_cache_max_size`` limits the size of the cache. Programs that call back to the host, such as direct
    sparse solvers, are not cached.

    Examples
    --------
    Call the function at the start of a program, before anything is compiled::

        import structarrays as sa

        sa.compilation_cache()
    """
    default = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "structarrays" / "jax"
    folder = Path(default if folder is None else folder).expanduser().absolute()
    folder.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    # JAX reads these options at the first compilation only.
    cache.reset_cache()
    return folder
