"""Readers for `load`: the ZIP archive, the headers of ``.npy``, and the description.

A file may come from anyone. Reading a file takes time and memory in proportion to its size, and runs none of its code
(docs/how_to/load_untrusted_files.md):

- members are neither compressed nor overlapping, so that all members together are no larger than the file;
- a pattern matches the header of a ``.npy``, which NumPy would evaluate as Python;
- each object of the description becomes a value as soon as the JSON parser has read it, instead of a tree of
  dictionaries;
- `validation` checks the static part and the parameters of an array, and traces nothing.
"""

from __future__ import annotations

import collections
import json
import math
import os
import re
import reprlib
import struct
import zipfile
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from .._core.array.base import Array
from .._core.array.flattening import with_common_indices
from .._core.array.serialization import PACKAGE, class_of, dtype_of, static_part
from .._core.array.validation import check_parameters, outline
from .._core.dtypes import check_available
from .._core.families.factored import Factored
from .named_results import RESULTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

    from .._core.typing import Shape


VERSION = 1
DESCRIPTION = "structarrays.json"
MOST_LEVELS = 500
"""The largest depth of nested objects and lists in a description; a saved list takes two levels.

Python's recursion limit cannot replace it: it differs between versions, and users can raise it.
"""

FOREIGN = {name: np.dtype(getattr(jnp, name)) for name in dir(jnp) if name.startswith(("bfloat16", "float8"))}
"""Data types that JAX adds to NumPy's."""


# ---- the archive -----------------------------------------------------------------------------------------------------


class _Opening:
    """A file that refuses reads of more than `most` bytes, until `most` is None.

    `zipfile` makes an object for each entry of the table of contents. A hostile table has many entries without members.
    In a file of `save` the table takes less than half of the file.
    """

    def __init__(self, file: Any, most: int | None) -> None:
        self.file, self.most = file, most

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def read(self, count: int | None = -1) -> bytes:
        """Read `count` bytes of the file.

        Raises
        ------
        ValueError
            If `count` is larger than `most`.
        """
        if self.most is not None and count is not None and count > self.most:
            raise ValueError("the table of contents of the archive is too large")
        data: bytes = self.file.read(count)
        return data


class Members:
    """The members of an archive. Each member can be taken once.

    Parameters
    ----------
    file : binary file object
        The archive.

    Raises
    ------
    ValueError
        If the archive does not have the form that `save` writes.
    """

    def __init__(self, file: IO[bytes]) -> None:
        size = file.seek(0, os.SEEK_END)
        opening = _Opening(file, max(1 << 17, size // 2))
        self.archive = zipfile.ZipFile(opening)
        opening.most = None
        self.taken: set[str] = set()
        if sum(info.file_size for info in self.archive.infolist()) > size:
            raise ValueError(
                "the members of the archive must not overlap or be compressed, but together they are larger than the file"
            )

    def take(self, name: str) -> bytes:
        """Return the content of a member.

        Raises
        ------
        KeyError
            If no member has this name.
        ValueError
            If the member is compressed or encrypted, or was taken before.
        """
        info = self.archive.getinfo(name)
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise ValueError(f"{name} is compressed")
        if info.flag_bits & 1:
            raise ValueError(f"{name} is encrypted")
        if name in self.taken:
            raise ValueError(f"{name} is used twice")
        self.taken.add(name)
        return self.archive.read(info)


# ---- the description -------------------------------------------------------------------------------------------------

_BEGINNING = re.compile(r'\s*+\{\s*+"format"\s*+:\s*+"([^"\\]*+)"\s*+,\s*+"version"\s*+:\s*+(\d{1,9})\s*+,')
_NO_BRACKETS = bytes(set(range(256)) - set(b'[]{}"'))


def nesting(text: str) -> tuple[int, int]:
    """Return the depth of nested objects and lists in a JSON text, and the number of lists."""
    # Outside of strings the parser stops at a backslash, so the text after it does not matter.
    unescaped = text.encode().replace(b"\\\\", b"").replace(b'\\"', b"")
    brackets = np.frombuffer(unescaped.translate(None, _NO_BRACKETS), np.uint8)
    quotes = level = deepest = lists = 0
    for start in range(0, brackets.size, 1 << 16):  # in pieces: the sums take more memory than the brackets
        piece = brackets[start : start + (1 << 16)]
        before = quotes + np.cumsum(piece == ord('"'))
        outside = piece[before % 2 == 0]
        steps = np.isin(outside, (ord("["), ord("{"))).astype(int) - np.isin(outside, (ord("]"), ord("}")))
        levels = level + np.cumsum(steps)
        deepest = max(deepest, int(levels.max(initial=0)))
        lists += int(np.count_nonzero(outside == ord("[")))
        quotes, level = int(before[-1]), int(levels[-1]) if levels.size else level
    return deepest, lists


def check_nesting(text: str, name: str) -> None:
    """Raise unless reading a description takes memory in proportion to its length.

    Raises
    ------
    ValueError
        If the description is nested too deeply, or has too many lists: a list takes as much memory as thirty
        characters.
    """
    levels, lists = nesting(text)
    if levels > MOST_LEVELS:
        raise ValueError(f"{name} has {levels} levels of nesting, at most {MOST_LEVELS} are allowed")
    most = 10_000 + len(text) // 14
    if lists > most:
        raise ValueError(f"{name} has {lists} lists, at most {most} are allowed in {len(text)} characters")


def read_tree(members: Members) -> Any:
    """Return the value that a file describes.

    Raises
    ------
    ValueError, KeyError, ...
        If the file is damaged.
    """
    text = members.take(DESCRIPTION).decode("ascii")
    beginning = _BEGINNING.match(text)
    if beginning is None or beginning[1] != PACKAGE:
        raise ValueError(f"{DESCRIPTION} describes another format")
    if int(beginning[2]) != VERSION:
        raise ValueError(f"its version is {int(beginning[2])}, but this release reads version {VERSION}")
    check_nesting(text, DESCRIPTION)
    description = json.loads(text, object_pairs_hook=lambda pairs: _of_object(pairs, members))
    if not isinstance(description, dict) or "tree" not in description:
        raise ValueError(f"{DESCRIPTION} has no key 'tree'")
    return _value(description["tree"])


class _Node:
    """A value of the description; the class distinguishes it from values of JSON."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class _ComposedNode(_Node):
    """An array that is composed of others, with an outline: its shape is expensive to compute."""

    __slots__ = ("outline",)

    def __init__(self, value: Any, outline: Any) -> None:
        super().__init__(value)
        self.outline = outline


_FIELDS = ({"format", "version", "tree"}, {"class", "meta", "parts", "assumptions"})
"""The sets of keys of objects with several keys."""


def _of_object(pairs: list[tuple[str, Any]], members: Members) -> Any:
    """Return the value of a JSON object. The values in `pairs` are converted already."""
    if len(pairs) != 1:
        fields = dict(pairs)
        if len(fields) == len(pairs) and fields.keys() in _FIELDS:
            return fields
        raise ValueError(
            f"an object must have the keys of a known kind, each once, got {reprlib.repr([key for key, _ in pairs])}"
        )
    ((kind, content),) = pairs
    if kind not in _READERS:
        raise ValueError(f"an object has the unknown key {reprlib.repr(kind)}")
    return _READERS[kind](content, members)


def _value(node: Any) -> Any:
    if not isinstance(node, _Node):
        raise ValueError(f"a value must be an object with a known key, got {reprlib.repr(node)}")
    return node.value


def _sequence(content: Any) -> list[Any]:
    if not isinstance(content, list):
        raise ValueError(f"a sequence must be a list, got {reprlib.repr(content)}")
    return content


def _values(content: Any) -> list[Any]:
    """Replace each node of a list by its value, in place."""
    nodes = _sequence(content)
    for i, node in enumerate(nodes):
        nodes[i] = _value(node)
    return nodes


def _plain(content: Any, members: Members) -> _Node:
    if content is not None and type(content) not in (bool, int, float, str):
        raise ValueError(f"a plain value must be null, a boolean, a number or a string, got {reprlib.repr(content)}")
    return _Node(content)


def _special_float(content: Any, members: Members) -> _Node:
    if content not in ("inf", "-inf", "nan"):
        raise ValueError(f"a special float must be inf, -inf or nan, got {reprlib.repr(content)}")
    return _Node(float(content))


def _complex(content: Any, members: Members) -> _Node:
    real, imag = _values(content)
    if type(real) is not float or type(imag) is not float:
        raise ValueError(f"a complex number must be two floats, got {reprlib.repr(content)}")
    return _Node(complex(real, imag))


def _dictionary(content: Any, members: Members) -> _Node:
    for i, pair in enumerate(_sequence(content)):
        key, value = pair
        content[i] = _value(key), _value(value)
    alike = collections.Counter(hash(key) for key, _ in content)
    if alike and max(alike.values()) > 100:  # a dictionary with many equal hashes takes quadratic time
        raise ValueError("at most 100 keys of a dictionary may have the same hash")
    return _Node(dict(content))


def _result(content: Any, members: Members) -> _Node:
    name, *fields = _sequence(content)
    return _Node(RESULTS[name](*_values(fields)))


def _structure(content: Any, members: Members) -> _Node:
    if not isinstance(content, dict):
        raise ValueError(f"a structure must be an object, got {reprlib.repr(content)}")
    cls = class_of(content["class"])
    nodes = _sequence(content["parts"])
    parts = tuple(map(_value, nodes))
    if not all(p is None or isinstance(p, (Array, jax.Array)) for p in parts):
        raise ValueError(f"the parts of a {cls.__name__} must be arrays or null")
    outlines = tuple(node.outline if isinstance(node, _ComposedNode) else node.value for node in nodes)
    aux = static_part(content["meta"]), frozenset(_sequence(content["assumptions"]))
    sketch = cls.make(outlines, *aux)
    if isinstance(sketch.meta, np.dtype):  # a dtype of the static part
        check_available(sketch.meta, "load: the file contains")
    check_parameters(sketch)
    x = with_common_indices(cls.make(parts, *aux))
    return _ComposedNode(x, outline(sketch)) if isinstance(x, Factored) else _Node(x)


# ---- data ------------------------------------------------------------------------------------------------------------

_HEADER = re.compile(
    rb"\{'descr': '([<>|=][biufc]\d{1,2})', 'fortran_order': (True|False), 'shape': \(((?:\d++, ?)*+(?:\d++)?)\), \} *+\n"
)


def _header(name: str, data: bytes) -> tuple[Shape, bool, np.dtype, int]:
    """Read the header of a ``.npy``: shape, Fortran order (bool), dtype, and offset of the data."""
    lengths = {b"\x93NUMPY\x01\x00": "<H", b"\x93NUMPY\x02\x00": "<I"}
    form = lengths.get(data[:8])
    if form is None:
        raise ValueError(f"{name} must be a .npy file of version 1.0 or 2.0")
    start = 8 + struct.calcsize(form)
    stop = start + struct.unpack(form, data[8:start])[0]
    match = _HEADER.fullmatch(data, start, min(stop, start + (1 << 16)))
    if match is None:
        raise ValueError(f"{name} has a header that save does not write")
    descr, fortran, shape = (group.decode() for group in match.groups())
    return tuple(int(n) for n in shape.split(",") if n.strip()), fortran == "True", np.dtype(descr), stop


def _numbers(kind: str, content: Any, members: Members) -> _Node:
    place, foreign = content if isinstance(content, list) else (content, None)
    if type(place) is not int:
        raise ValueError(f"the number of a member must be an integer, got {reprlib.repr(place)}")
    name = f"{place}.npy"
    data = members.take(name)
    shape, columns_first, dtype, start = _header(name, data)
    if math.prod(shape) * dtype.itemsize != len(data) - start:
        raise ValueError(
            f"the data of {name} must have the size of shape {shape} and dtype {dtype}, got {len(data) - start} bytes"
        )
    array = np.frombuffer(data, dtype, offset=start).reshape(shape, order="F" if columns_first else "C")
    if foreign is not None:
        array = array.view(FOREIGN[foreign])
    if kind == "numpy":
        return _Node(np.array(array, order="K"))
    check_available(array.dtype, "load: the file contains")
    # `jnp.array` would compile a copy for each shape.
    return _Node(jax.device_put(array.astype(array.dtype.newbyteorder("="), copy=False), may_alias=False))


_READERS: dict[str, Callable[[Any, Members], Any]] = {
    "value": _plain,
    "float": _special_float,
    "complex": _complex,
    "list": lambda content, members: _Node(_values(content)),
    "tuple": lambda content, members: _Node(tuple(_values(content))),
    "dict": _dictionary,
    "result": _result,
    "jax": lambda content, members: _numbers("jax", content, members),
    "numpy": lambda content, members: _numbers("numpy", content, members),
    "structure": _structure,
    "dtype": lambda content, members: dtype_of(content),  # only in a static part
}
