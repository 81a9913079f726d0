"""Programs over structured arrays on disk: what ``jax.export`` has to know of our classes, and JAX's cache of compiled programs."""

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
from .file_reading import RESULTS

if TYPE_CHECKING:
    from os import PathLike

    from .._core.array.base import Array


def make_exportable() -> None:
    """Tell JAX how the static parts of all arrays and results are written; once, when all classes of this library are defined.

    Those of others follow as they are defined.
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
    # A class that is defined again, in a notebook say, cannot be exported: JAX keeps the first one of a name.
    with contextlib.suppress(ValueError):
        _register(cls)


def _name(cls: type) -> str:
    return f"{PACKAGE}:{name_of(cls)}"


def _written(aux: Any) -> bytes:
    """The static part of a pytree: class, meta and assumptions, then the constant indices, or null if the indices are leaves."""
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
    """Keep what is compiled on disk, so that the next process that needs it does not compile it again.

    It is JAX's persistent compilation cache, for programs of any size: those of this library are small and many, and JAX by itself keeps
    only those that take more than a second.

    Parameters
    ----------
    folder : path, optional
        Where; by default ``structarrays/jax`` in the user's folder for caches (``$XDG_CACHE_HOME``, else ``~/.cache``). Several
        processes may use it at a time. Who can write to it can put programs there that others then run: it has to be one's own.

    Returns
    -------
    pathlib.Path
        The folder, which exists now.

    Raises
    ------
    OSError
        If the folder can't be made.

    Notes
    -----
    The key of a program is its text, with the version of JAX and the kind of device: after a change of either it is compiled anew, and what is
    old stays until somebody deletes it (JAX's option ``jax_compilation_cache_max_size`` limits it). Programs that call back to the host,
    as those with sparse systems do, are not kept.

    Examples
    --------
    Call it in the first lines of a program, before anything is compiled::

        import structarrays as sa

        sa.compilation_cache()
    """
    default = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "structarrays" / "jax"
    folder = Path(default if folder is None else folder).expanduser().absolute()
    folder.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    # JAX decides at the first compilation whether there is a cache, and where.
    cache.reset_cache()
    return folder
