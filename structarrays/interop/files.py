"""Arrays on disk: NumPy's format ``.npz`` with a description in JSON; reading a file executes none of its content.

A file is a ZIP archive of uncompressed members: the description ``structarrays.json``, and the data as ``0.npy``,
``1.npy``, …, which `numpy.load` can read. The description is a tree of objects with one key each, in the order of the
saved values:

======================================  ============================================================================
``{"value": null}``                     ``None``, and booleans, integers, floats and strings; a complex number is
                                        ``{"complex": [re, im]}``, infinity is ``{"float": "inf"}``
``{"list": [...]}``, ``{"tuple": []}``    sequences
``{"dict": [[key, node], ...]}``        a dictionary; the keys are nodes
``{"result": [name, node, ...]}``       a named tuple of this library, such as the result of `linalg.qr`
``{"jax": i}``, ``{"numpy": i}``        the data of ``i.npy`` as an array of JAX or NumPy; ``[i, dtype]`` for data types
                                        that NumPy lacks, whose bits the file stores
``{"structure": {...}}``                an array of this library: ``class``, static part ``meta``, ``parts`` (nodes) and
                                        ``assumptions``
======================================  ============================================================================
"""

from __future__ import annotations

import contextlib
import copy
import errno
import json
import math
import os
import struct
import uuid
import zipfile
from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from .._core.array.base import Array
from .._core.array.serialization import PACKAGE, name_of, static_node
from .._core.dtypes import NeedsX64
from .file_reading import DESCRIPTION, FOREIGN, VERSION, Members, check_nesting, read_tree
from .named_results import RESULTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from typing import IO


def save(file: str | PathLike[str] | IO[bytes], tree: Any) -> None:
    """Save arrays, and containers of arrays, to a file.

    Parameters
    ----------
    file : path or binary file object
        File to write to. An existing file is replaced once the new file is complete.
    tree : array, or list, tuple, dict of arrays, nested at most 160 levels deep
        Arrays of any structure, of JAX and of NumPy; scalars, strings and None; results of functions of this library.

    Raises
    ------
    TypeError
        If `tree` contains any other object, a traced array, or an array of Python objects; the message names its
        position. If `file` is neither a path nor a file object.
    ValueError
        If `tree` is nested too deeply, or a container contains itself.
    FileNotFoundError
        If the directory does not exist.

    See Also
    --------
    load

    Notes
    -----
    The file is an ``.npz`` file of NumPy with a description in JSON. Its size is the size of the stored entries. `load`
    restores data type, structure, assumptions and all bits. Arrays that are sharded over devices are gathered on the
    host.

    Examples
    --------
    >>> import io
    >>> import structarrays as sa
    >>> file = io.BytesIO()
    >>> sa.save(file, {"precision": sa.tridiagonal([1.0], [2.0, 2.0], [1.0]), "steps": 3})
    >>> _ = file.seek(0)
    >>> sa.load(file)["precision"].offsets
    (-1, 0, 1)
    """
    numbers: list[np.ndarray] = []
    try:
        description = json.dumps(
            {"format": PACKAGE, "version": VERSION, "tree": _node(tree, "tree", numbers)}, allow_nan=False
        )
    except RecursionError:
        raise ValueError("save: tree is nested too deeply, or contains itself; save its parts separately") from None
    try:
        check_nesting(description, "its description")
    except ValueError as error:
        raise ValueError(f"save: tree is nested too deeply: {error}; save its parts separately") from None
    if hasattr(file, "write"):
        _write(cast("IO[bytes]", file), description, numbers)
        return
    path = os.path.realpath(os.fsdecode(_path("save", file)))
    if not os.path.isdir(os.path.dirname(path)):
        raise FileNotFoundError(errno.ENOENT, "save: the directory does not exist", os.path.dirname(path))
    temporary = os.path.join(os.path.dirname(path), f".saving-{uuid.uuid4().hex}")
    try:
        with open(temporary, "xb") as target:
            _write(target, description, numbers)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _path(function: str, file: Any) -> Any:
    """Return a path or file object. An integer would be used as a file descriptor."""
    if not isinstance(file, (str, bytes, os.PathLike)):
        raise TypeError(f"{function}: file must be a path or a binary file object, got {type(file).__name__}")
    return file


def load(file: str | PathLike[str] | IO[bytes]) -> Any:
    """Load arrays, and containers of arrays, from a file written by `save`.

    Parameters
    ----------
    file : path or binary file object
        File to read.

    Returns
    -------
    array, or list, tuple, dict of arrays
        The saved tree. Arrays are on the default device.

    Raises
    ------
    ValueError
        If the file is damaged, or was not written by `save`. If the file contains an array of a class that is not
        imported. If the file contains a 64-bit array and JAX's 64-bit mode is off.
    OSError
        If the file cannot be read.
    TypeError
        If `file` is neither a path nor a file object.

    See Also
    --------
    save

    Notes
    -----
    `load` runs no code from the file, so untrusted files are safe. Time and memory are proportional to the size of the
    file, for any content.

    Examples
    --------
    >>> import io
    >>> import structarrays as sa
    >>> sa.load(io.BytesIO(b"anything"))
    Traceback (most recent call last):
        ...
    ValueError: load: file must be written by structarrays.save and undamaged: File is not a zip file
    """
    if not hasattr(file, "read"):
        with open(_path("load", file), "rb") as opened:
            return load(opened)
    try:
        return read_tree(Members(cast("IO[bytes]", file)))
    except NeedsX64:
        raise
    except _DAMAGE as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise  # an error of the disk
        reason = f"it has no {error}" if isinstance(error, KeyError) else error
        raise ValueError(f"load: file must be written by {PACKAGE}.save and undamaged: {reason!s:.500}") from error


# Errors that reading a damaged file may raise.
_DAMAGE = (
    ValueError,  # includes errors of JSON and Unicode
    KeyError,
    IndexError,
    TypeError,
    OverflowError,
    RecursionError,
    NotImplementedError,
    EOFError,
    OSError,  # EINVAL: a position before the start of the file
    struct.error,
    zipfile.BadZipFile,
    MemoryError,
)


# ---- writing -------------------------------------------------------------------------------------------------------


def _write(file: IO[bytes], description: str, numbers: Sequence[np.ndarray]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        archive.writestr(DESCRIPTION, description)
        for i, data in enumerate(numbers):
            with archive.open(f"{i}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, data, allow_pickle=False)


def _node(value: Any, where: str, numbers: list[np.ndarray]) -> dict[str, Any]:
    """Return the description of a value; append its data to `numbers`."""
    if isinstance(value, Array):
        leaves, (cls, meta, assumptions) = copy.copy(value)._padded_for(1)._value
        parts = [_node(leaf, f"part {i} of {where}", numbers) for i, leaf in enumerate(leaves)]
        fields = {"class": name_of(cls), "meta": static_node(meta, where), "parts": parts}
        return {"structure": {**fields, "assumptions": sorted(assumptions)}}
    if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return {"value": value}
    if type(value) is float:
        return {"float": repr(value)}
    if type(value) is complex:
        return {"complex": [_node(part, where, numbers) for part in (value.real, value.imag)]}
    if type(value) in (list, tuple):
        return {type(value).__name__: [_node(v, f"{where}[{i}]", numbers) for i, v in enumerate(value)]}
    if type(value) is dict:
        items = [[_node(k, f"a key of {where}", []), _node(v, f"{where}[{k!r}]", numbers)] for k, v in value.items()]
        return {"dict": items}
    if RESULTS.get(type(value).__name__) is type(value):
        return {"result": [type(value).__name__, *(_node(v, f"{where}[{i}]", numbers) for i, v in enumerate(value))]}
    if isinstance(value, (jax.Array, np.ndarray, np.generic)):
        return _of_numbers(value, where, numbers)
    raise TypeError(
        f"save: {where} must be an array, a scalar, a string, None, or a list, tuple or dict of these, got {type(value).__name__}"
    )


def _of_numbers(value: Any, where: str, numbers: list[np.ndarray]) -> dict[str, Any]:
    if isinstance(value, jax.core.Tracer):
        raise TypeError(
            f"save: {where} is traced and has no values; call save outside of jax.jit and other transformations"
        )
    kind = "jax" if isinstance(value, jax.Array) else "numpy"
    if jnp.issubdtype(value.dtype, jax.dtypes.extended):
        raise TypeError(
            f"save: {where} has dtype {value.dtype}, which cannot be saved; save jax.random.key_data(key) instead"
        )
    data = np.asarray(value)
    place = len(numbers)
    if data.dtype.kind in "biufc":
        numbers.append(data)
        return {kind: place}
    if data.dtype.name in FOREIGN:
        numbers.append(data.view(np.dtype(f"u{data.dtype.itemsize}")))
        return {kind: [place, data.dtype.name]}
    raise TypeError(f"save: {where} must have a numeric or boolean dtype, got {data.dtype}")
