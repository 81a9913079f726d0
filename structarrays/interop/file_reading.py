"""What `load` reads: a ZIP archive, the headers of ``.npy``, and the description, each in bounds.

A file may come from anyone. Reading it takes time and memory in proportion to its size, and runs nothing of it (docs/untrusted_files.md):

- members are neither compressed nor do they overlap, so that they are together no larger than the file;
- the header of a ``.npy`` is matched by a pattern, where NumPy evaluates it as Python;
- each object of the description becomes its value as soon as the parser of JSON has read it, so that no tree of dictionaries is kept;
- the static part and the parameters of an array are checked by `core.validation`, which traces nothing.
"""

import collections
import json
import math
import os
import re
import reprlib
import struct
import zipfile

import jax
import jax.numpy as jnp
import numpy as np

from ..core.array import Array
from ..core.dtypes import check_available
from ..core.factored import Factored
from ..core.serialization import PACKAGE, class_of, dtype_of, static_part
from ..core.validation import check_parameters, outline
from ..functions.linalg_factorizations import CholeskyFactor, LUFactor, LUResult
from ..functions.linalg_indefinite import LDLResult
from ..functions.linalg_least_squares import LstsqResult
from ..functions.linalg_solvers import SlogdetResult
from ..functions.linalg_spectra import EighResult, EigResult, QRResult, SVDResult
from ..functions.set import UniqueAllResult, UniqueCountsResult, UniqueInverseResult

VERSION = 1
DESCRIPTION = "structarrays.json"
MOST_LEVELS = 500
"""How deep the objects and lists of a description may be nested: a list is two levels. Python's limit of recursion, which differs between its
versions and which anyone can raise, is to decide about no file."""
RESULTS = {
    c.__name__: c
    for c in (
        *(CholeskyFactor, LUFactor, LUResult, LDLResult, LstsqResult, SlogdetResult),
        *(EigResult, EighResult, QRResult, SVDResult),
        *(UniqueAllResult, UniqueCountsResult, UniqueInverseResult),
    )
}
"""The named tuples that functions of this library return."""

FOREIGN = {name: np.dtype(getattr(jnp, name)) for name in dir(jnp) if name.startswith(("bfloat16", "float8"))}
"""The dtypes that NumPy has not, but JAX has."""


# ---- the archive -----------------------------------------------------------------------------------------------------


class _Opening:
    """A file of which no large piece can be read until `most` is None.

    `zipfile` makes an object of each entry of the table of contents, of which a hostile one has many without a member. The table of a
    file of `save` is less than half of it.
    """

    def __init__(self, file, most):
        self.file, self.most = file, most

    def __getattr__(self, name):
        return getattr(self.file, name)

    def read(self, count=-1):
        """Bytes of the file.

        Raises
        ------
        ValueError
            If that is too large a piece.
        """
        if self.most is not None and count is not None and count > self.most:
            raise ValueError("its table of contents is too large")
        return self.file.read(count)


class Members:
    """The members of an archive, each of which can be taken once.

    Parameters
    ----------
    file : binary file object
        The archive.

    Raises
    ------
    ValueError
        If it is none of `save`.
    """

    def __init__(self, file):
        size = file.seek(0, os.SEEK_END)
        opening = _Opening(file, max(1 << 17, size // 2))
        self.archive = zipfile.ZipFile(opening)
        opening.most = None
        self.taken = set()
        if sum(info.file_size for info in self.archive.infolist()) > size:
            raise ValueError("its members are larger than the file, since they overlap or are compressed")

    def take(self, name) -> bytes:
        """The content of a member.

        Raises
        ------
        KeyError
            If there is none of this name.
        ValueError
            If it is compressed or encrypted, or was taken before.
        """
        info = self.archive.getinfo(name)
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise ValueError(f"{name} is compressed")
        if info.flag_bits & 1:
            raise ValueError(f"{name} is encrypted")
        if name in self.taken:
            raise ValueError(f"{name} is there twice")
        self.taken.add(name)
        return self.archive.read(info)


# ---- the description -------------------------------------------------------------------------------------------------

_BEGINNING = re.compile(r'\s*+\{\s*+"format"\s*+:\s*+"([^"\\]*+)"\s*+,\s*+"version"\s*+:\s*+(\d{1,9})\s*+,')
_NO_BRACKETS = bytes(set(range(256)) - set(b'[]{}"'))


def nesting(text: str) -> tuple[int, int]:
    """How deep the objects and lists of a text in JSON are nested, and how many lists there are."""
    # Of what is not in texts there is nothing behind a backslash that the parser would reach.
    unescaped = text.encode().replace(b"\\\\", b"").replace(b'\\"', b"")
    brackets = np.frombuffer(unescaped.translate(None, _NO_BRACKETS), np.uint8)
    quotes = level = deepest = lists = 0
    for start in range(0, brackets.size, 1 << 16):  # piece by piece, since the sums take more memory than the brackets
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
    """Raise unless a description is one that takes memory in proportion to its length.

    Raises
    ------
    ValueError
        If it is nested too deeply, or has too many lists: one takes as much memory as thirty characters.
    """
    levels, lists = nesting(text)
    if levels > MOST_LEVELS:
        raise ValueError(f"{name} has {levels} levels, of which {MOST_LEVELS} are allowed")
    most = 10_000 + len(text) // 14
    if lists > most:
        raise ValueError(f"{name} has {lists} lists, of which {most} are allowed in {len(text)} characters")


def read_tree(members: Members):
    """The value that a file describes.

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
        raise ValueError(f"its version is {int(beginning[2])}, this library reads {VERSION}")
    check_nesting(text, DESCRIPTION)
    description = json.loads(text, object_pairs_hook=lambda pairs: _of_object(pairs, members))
    if not isinstance(description, dict) or "tree" not in description:
        raise ValueError(f"{DESCRIPTION} describes no tree")
    return _value(description["tree"])


class _Node:
    """A value that was described, which cannot be confused with one that JSON has."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class _ComposedNode(_Node):
    """An array that is composed of others; its shape, which takes long to find, is found once."""

    __slots__ = ("outline",)

    def __init__(self, value, outline):
        super().__init__(value)
        self.outline = outline


_FIELDS = ({"format", "version", "tree"}, {"class", "meta", "parts", "assumptions"})
"""The objects that have several keys."""


def _of_object(pairs, members):
    """What takes the place of an object in JSON, of which the values have been read."""
    if len(pairs) != 1:
        fields = dict(pairs)
        if len(fields) == len(pairs) and fields.keys() in _FIELDS:
            return fields
        raise ValueError(f"{reprlib.repr(list(fields))} are the keys of no value")
    ((kind, content),) = pairs
    if kind not in _READERS:
        raise ValueError(f"{reprlib.repr(kind)} is the key of no value")
    return _READERS[kind](content, members)


def _value(node):
    if not isinstance(node, _Node):
        raise ValueError(f"{reprlib.repr(node)} describes no value")
    return node.value


def _sequence(content) -> list:
    if not isinstance(content, list):
        raise ValueError(f"{reprlib.repr(content)} is no list")
    return content


def _values(content) -> list:
    """The values of a list of nodes, which they replace."""
    for i, node in enumerate(_sequence(content)):
        content[i] = _value(node)
    return content


def _plain(content, members):
    if content is not None and type(content) not in (bool, int, float, str):
        raise ValueError(f"{reprlib.repr(content)} is no value")
    return _Node(content)


def _special_float(content, members):
    if content not in ("inf", "-inf", "nan"):
        raise ValueError(f"{reprlib.repr(content)} is no float")
    return _Node(float(content))


def _complex(content, members):
    real, imag = _values(content)
    if type(real) is not float or type(imag) is not float:
        raise ValueError(f"{reprlib.repr(content)} is no complex number")
    return _Node(complex(real, imag))


def _dictionary(content, members):
    for i, pair in enumerate(_sequence(content)):
        key, value = pair
        content[i] = _value(key), _value(value)
    alike = collections.Counter(hash(key) for key, _ in content)
    if alike and max(alike.values()) > 100:  # a dictionary of them takes quadratic time
        raise ValueError("many of the keys of a dictionary have the same hash")
    return _Node(dict(content))


def _result(content, members):
    name, *fields = _sequence(content)
    return _Node(RESULTS[name](*_values(fields)))


def _structure(content, members):
    if not isinstance(content, dict):
        raise ValueError(f"{reprlib.repr(content)} is no structure")
    cls = class_of(content["class"])
    nodes = _sequence(content["parts"])
    parts = tuple(map(_value, nodes))
    if not all(p is None or isinstance(p, (Array, jax.Array)) for p in parts):
        raise ValueError(f"a {cls.__name__} has parts that are no arrays")
    outlines = tuple(node.outline if isinstance(node, _ComposedNode) else node.value for node in nodes)
    aux = static_part(content["meta"]), frozenset(_sequence(content["assumptions"]))
    sketch = cls._make(outlines, *aux)
    if isinstance(sketch.meta, np.dtype):  # no parameter has it
        check_available(sketch.meta, "load: the file holds")
    check_parameters(sketch)
    x = cls._make(parts, *aux)
    return _ComposedNode(x, outline(sketch)) if isinstance(x, Factored) else _Node(x)


# ---- numbers ---------------------------------------------------------------------------------------------------------

_HEADER = re.compile(
    rb"\{'descr': '([<>|=][biufc]\d{1,2})', 'fortran_order': (True|False), 'shape': \(((?:\d++, ?)*+(?:\d++)?)\), \} *+\n"
)


def _header(name, data):
    """Shape, order and dtype of a ``.npy``, and where its numbers begin."""
    lengths = {b"\x93NUMPY\x01\x00": "<H", b"\x93NUMPY\x02\x00": "<I"}
    form = lengths.get(data[:8])
    if form is None:
        raise ValueError(f"{name} is no file of NumPy, or of another version")
    start = 8 + struct.calcsize(form)
    stop = start + struct.unpack(form, data[8:start])[0]
    match = _HEADER.fullmatch(data, start, min(stop, start + (1 << 16)))
    if match is None:
        raise ValueError(f"{name} has a header that save does not write")
    descr, fortran, shape = (group.decode() for group in match.groups())
    return tuple(int(n) for n in shape.split(",") if n.strip()), fortran == "True", np.dtype(descr), stop


def _numbers(kind, content, members):
    place, foreign = content if isinstance(content, list) else (content, None)
    if type(place) is not int:
        raise ValueError(f"{reprlib.repr(place)} is no number of a member")
    name = f"{place}.npy"
    data = members.take(name)
    shape, columns_first, dtype, start = _header(name, data)
    if math.prod(shape) * dtype.itemsize != len(data) - start:
        raise ValueError(
            f"{name} has {len(data) - start} bytes of numbers, not those of shape {shape} and dtype {dtype}"
        )
    array = np.frombuffer(data, dtype, offset=start).reshape(shape, order="F" if columns_first else "C")
    if foreign is not None:
        array = array.view(FOREIGN[foreign])
    if kind == "numpy":
        return _Node(np.array(array, order="K"))
    check_available(array.dtype, "load: the file holds")
    # Not by jnp.array, which compiles a copy for each shape.
    return _Node(jax.device_put(array.astype(array.dtype.newbyteorder("="), copy=False), may_alias=False))


_READERS = {
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
    "dtype": lambda content, members: dtype_of(content),  # in a static part
}
