"""Hostile files: `load` raises `ValueError` within a second, and takes memory in proportion to the size of the file."""

import contextlib
import io
import itertools
import json
import math
import struct
import sys
import time
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

import structarrays as sa
from structarrays._core.array.serialization import classes
from structarrays._core.array.validation import check_parameters, validated
from structarrays.testing import STRUCTURES, sample

ROOT = Path(__file__).parent.parent


def numpy_file(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def archive(tree, arrays=(), *, text=None) -> bytes:
    """A file with this description: `tree` as JSON, or as a string."""
    text = json.dumps(tree) if text is None else text
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as target:
        target.writestr("structarrays.json", '{"format": "structarrays", "version": 1, "tree": ' + text + "}")
        for i, data in enumerate(arrays):
            target.writestr(f"{i}.npy", data if isinstance(data, bytes) else numpy_file(data))
    return file.getvalue()


def structure(name, meta, *parts):
    return {"structure": {"class": name, "meta": meta, "parts": list(parts), "assumptions": []}}


def read(content: bytes, arrays: int = 0):
    """The result of `load`, or its `ValueError`, after a check that `load` takes less than a second, and memory in proportion to the file."""
    start = time.process_time()
    with contextlib.suppress(ValueError):
        sa.load(io.BytesIO(content))
    assert time.process_time() - start < 1.0
    tracemalloc.start()  # it slows everything down
    try:
        return sa.load(io.BytesIO(content))
    except ValueError as error:
        assert len(str(error)) < 1000
        return error
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 10 * len(content) + (1 << 20) + 4096 * arrays


@pytest.fixture(autouse=True, scope="module")
def _warm():
    """Load one array first: JAX and NumPy import modules then, which does not count for a file."""
    file = io.BytesIO()
    sa.save(file, [sa.eye(2), np.ones(2)])
    sa.load(file)


# ---- nested structures -------------------------------------------------------------------------------------------------


def nested(name, depth):
    """An array nested inside many arrays of a class, with a scalar matrix next to each."""
    meta = {"Block": [2, 2], "KhatriRao": False}.get(name)
    arrays, node = [np.ones((1, 1))], structure("Dense", None, {"jax": 0})
    for _ in range(depth):
        others = []
        for _ in range({"Block": 3, "Inverse": 0}.get(name, 1)):
            others.append(structure("Dense", None, {"jax": len(arrays)}))
            arrays.append(np.ones((1, 1)))
        if name == "Block":
            size = len(arrays) // 3
            arrays[-3:] = [np.ones((size, 1)), np.ones((1, size)), np.ones((1, 1))]
        node = structure(name, meta, node, *others)
    return archive(node, arrays)


@pytest.mark.parametrize("depth", [10, 20, 90])
@pytest.mark.parametrize(
    "name", ["Product", "Sum", "Kronecker", "KroneckerSum", "LowRank", "KhatriRao", "Inverse", "Block"]
)
def test_arrays_in_arrays(name, depth):
    """The time to read an array, and to compute its shape, does not grow exponentially with the depth."""
    x = read(nested(name, depth), 4 * depth)
    assert type(x).__name__ == name
    start = time.process_time()
    assert x.shape == ((depth + 1,) * 2 if name == "Block" else (1, 1)) and x.dtype == np.float64
    assert time.process_time() - start < 0.5


def test_arrays_larger_than_any_memory():
    """A large shape takes no memory: factors of 2 × 2 make a matrix whose size exceeds 64 bits."""
    factor = np.array([[2.0, 1.0], [1.0, 2.0]])
    K = sa.Kronecker(*[factor] * 40)
    file = io.BytesIO()
    sa.save(file, K)
    again = read(file.getvalue(), 40)
    assert again.shape == (2**40, 2**40)
    assert all(np.array_equal(np.asarray(f), factor) for f in again.factors)


WRONG = (2**31, 2**63, 2**64, -1, 10**30, 1.0, True, None, "2", [2])


@pytest.mark.parametrize("name", STRUCTURES)
def test_numbers_in_static_parts(name):
    """Replace each number of the static part in turn."""
    x = sample(name, (4, 4), dtype="complex64")
    file = io.BytesIO()
    sa.save(file, x)
    with zipfile.ZipFile(file) as source:
        arrays = [source.read(f"{i}.npy") for i in range(len(source.namelist()) - 1)]
        tree = json.loads(source.read("structarrays.json"))["tree"]
    fields = tree["structure"]

    def places(node, path=()):
        if isinstance(node, list):
            for i, part in enumerate(node):
                yield from places(part, (*path, i))
        elif type(node) in (int, bool):
            yield path

    for path, number in itertools.product(places(fields["meta"]), WRONG):
        changed = json.loads(json.dumps(tree))
        node, keys = changed["structure"], ("meta", *path)
        for key in keys[:-1]:
            node = node[key]
        node[keys[-1]] = number
        y = read(archive(changed, arrays), len(arrays))
        if isinstance(y, ValueError):
            continue
        # Another shape that an array with these parameters has as well.
        assert type(y) is type(x) and all(type(n) is int and 0 <= n < 2**63 for n in y.shape)
        if math.prod(y.shape) < 10_000:
            assert sa.to_dense(y).shape == y.shape


def test_every_class_is_checked():
    """Files contain no arrays of abstract base classes."""
    unchecked = {
        cls.__name__
        for cls in classes()
        if cls.__module__.partition(".")[0] == "structarrays" and not validated.find((cls,))
    }
    assert unchecked == {"EntryArray", "Factored", "GeneratorArray", "Blocks", "Mirrored", "Orthonormal"}
    for name in unchecked:
        assert "the class is abstract" in str(read(archive(structure(name, None, {"jax": 0}), [np.ones((2, 2))])))


@pytest.mark.parametrize("name", STRUCTURES)
def test_good_parameters_are_good(name):
    """Empty arrays, empty batches, all dtypes, and results of operations."""
    for core in ((3, 3), (3, 2), (1, 1), (0, 0), (2, 0)):
        for dtype in ("float32", "complex64", "int64", "bool"):
            for batch in ((), (2,), (0,)):
                x = sample(name, core, batch=batch, dtype=dtype)
                if x is not None:
                    check_parameters(x)
    x = sample(name, (4, 4), dtype="complex64")
    results = [x.mT, x + x, x @ x, x[:3, 1:], x[:0]]
    if x.stores_entries:
        results.append(sa.exp(x))
    for y in results:
        check_parameters(y)


def test_many_shapes():
    """`load` compiles nothing for a shape."""
    arrays = [np.ones(n) for n in range(300)]
    values = read(archive({"list": [{"jax": i} for i in range(300)]}, arrays), 300)
    assert [x.shape for x in values] == [x.shape for x in arrays]


# ---- the archive -------------------------------------------------------------------------------------------------------


def overlapped(count, size):
    """Each member contains the members behind it: together these arrays of bytes are much larger than the file."""
    description = json.dumps({"list": [{"numpy": i} for i in range(count)]})
    description = b'{"format": "structarrays", "version": 1, "tree": ' + description.encode() + b"}"
    members = [("structarrays.json", description), *((f"{i}.npy", None) for i in range(count))]
    body, entries = bytes(size), []
    for name, content in reversed(members):
        if content is None:
            file = io.BytesIO()
            np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (len(body),)})
            content = body = file.getvalue() + body
        common = struct.pack("<5H3I2H", 20, 0, 0, 0, 33, zlib.crc32(content), len(content), len(content), len(name), 0)
        local = b"PK\x03\x04" + common + name.encode()
        body = local + (body if content is body else content + body)
        entries.insert(0, (name, common, len(body)))
    table = b"".join(
        b"PK\x01\x02"
        + struct.pack("<H", 20)
        + common
        + struct.pack("<3H2I", 0, 0, 0, 0, len(body) - place)
        + name.encode()
        for name, common, place in entries
    )
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, len(entries), len(entries), len(table), len(body), 0)
    return body + table + end


def test_members_that_overlap():
    content = overlapped(300, 20_000)
    with zipfile.ZipFile(io.BytesIO(content)) as source:
        assert sum(info.file_size for info in source.infolist()) > 50 * len(content)
    error = read(content)
    assert isinstance(error, ValueError) and "overlap" in str(error)


def test_a_table_of_contents_without_members():
    """Each entry of the table of contents would become an object of eight times the size."""
    entry = struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 20, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    count = 60_000
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, count, count, len(entry) * count, 0, 0)
    error = read(entry * count + end)
    assert isinstance(error, ValueError) and "table of contents" in str(error)


def test_members_that_are_encrypted():
    data = bytearray(archive({"numpy": 0}, [np.zeros(2)]))
    for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + place] |= 1
    error = read(bytes(data))
    assert isinstance(error, ValueError) and "encrypted" in str(error)


@pytest.mark.parametrize(
    "header",
    [
        "((((",
        "(" * 9000,
        "-" * 9000 + "1",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), ",
        "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 5000 + ",), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 9223372036854775807), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 9223372036854775807), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1, " * 99 + "3), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }",
        "{'descr': '<f9', 'fortran_order': False, 'shape': (3,), }",
        "{'descr': '" + ",".join(["<f8"] * 3000) + "', 'fortran_order': False, 'shape': (3,), }",
        "{'shape': (3,), 'fortran_order': False, 'descr': __import__('os').system('ls'), }",
        "1is 2",
    ],
)
@pytest.mark.parametrize("kind", ["jax", "numpy"])
def test_headers_of_numbers(header, kind):
    for version, form in ((1, "<H"), (2, "<I")):
        data = (
            b"\x93NUMPY"
            + bytes([version, 0])
            + struct.pack(form, len(header) + 1)
            + header.encode()
            + b"\n"
            + bytes(24)
        )
        assert isinstance(read(archive({kind: 0}, [data])), ValueError)


def test_headers_that_numpy_writes():
    for array in (
        np.zeros(()),
        np.arange(3),
        np.zeros((2, 3), "<c8", order="F"),
        np.zeros((0, 5), bool),
        np.arange(4, dtype=">i2"),
    ):
        for version in ((1, 0), (2, 0)):
            file = io.BytesIO()
            np.lib.format.write_array(file, array, version=version)
            y = read(archive({"numpy": 0}, [file.getvalue()]))
            assert (y.dtype, y.shape) == (array.dtype, array.shape) and y.tobytes("A") == array.tobytes("A")


# ---- the description ---------------------------------------------------------------------------------------------------

LONG = 300_000
TEXTS = {
    "lists of lists": "[" + "[]," * (LONG // 3) + "[]]",
    "lists of lists in a list": '{"list": [' + "[[[]]]," * (LONG // 7) + "[]]}",
    "objects without keys": '{"list": [' + "{}," * (LONG // 3) + "{}]}",
    "objects of many keys": '{"list": [' + '{"a":0,"b":0},' * (LONG // 14) + "{}]}",
    "dtypes as values": '{"list": [' + '{"dtype":"int8"},' * (LONG // 17) + "{}]}",
    "a static part of lists": '{"structure": {"class": "Fill", "meta": ['
    + "[0]," * (LONG // 4)
    + '0], "parts": [], "assumptions": []}}',
    "a dtype of many fields": json.dumps(structure("Permutation", {"dtype": ",".join(["f8"] * (LONG // 3))})),
    "a text that does not end": '{"value": ' + '"\\' * (LONG // 2),
    "texts that do not end": '{"value": ' + '\\"' * (LONG // 2),
    "brackets": "[" * LONG,
    "closing brackets": "]" * LONG,
    "a long integer": '{"value": ' + "9" * LONG + "}",
    "a long class": json.dumps(structure("x" * LONG, None)),
    "a long class elsewhere": json.dumps(structure("x" * LONG + ":y", None)),
    "a long kind": json.dumps({"x" * LONG: 0}),
    "a long assumption": json.dumps(structure("Fill", [2], {"jax": 0})).replace("[]", '["' + "x" * LONG + '"]'),
    "not ASCII": '{"value": "\U0001f600"}',
    "two trees": '{"value": 1}, "tree": {"value": 2}',
    "keys with one hash": json.dumps({"dict": [[{"value": k * (2**61 - 1)}, {"value": 0}] for k in range(LONG // 60)]}),
    "keys without a hash": json.dumps({"dict": [[{"list": []}, {"value": 0}]]}),
    "pairs of three": json.dumps({"dict": [[{"value": 0}] * 3]}),
    "a complex number of texts": json.dumps({"complex": [{"value": "1"}, {"value": "1"}]}),
    "a result of a list": json.dumps({"result": [[], {"value": 1}]}),
    "blocks without end": json.dumps(structure("Block", [2**63, 2], *[structure("Fill", [2, 2], {"jax": 0})] * 2)),
    "no blocks": json.dumps(structure("Block", [2**63, 0])),
    "a part that is a number": json.dumps(structure("Sum", None, {"value": 1}, {"value": 2})),
    "numbers as terms": json.dumps(structure("Sum", None, {"jax": 0}, {"jax": 0})),
    "no terms": json.dumps(structure("Sum", None)),
}


@pytest.mark.parametrize("name", TEXTS)
def test_descriptions(name):
    error = read(archive(None, [np.zeros(())], text=TEXTS[name]))
    assert isinstance(error, ValueError)


LARGE = {
    "integers": list(range(20_000)),
    "empty lists": [[]] * 20_000,
    "empty dictionaries": [{}] * 20_000,
    "a text": "\U0001f600" + "x" * LONG,
    "escapes": '\n"\\' * (LONG // 6),
    "floats": [0.5, float("inf")] * 5_000,
    "keys": {(i, str(i)): None for i in range(5_000)},
    "complex numbers": [1j] * 5_000,
}


@pytest.mark.parametrize("name", LARGE)
def test_large_descriptions_are_read(name):
    file = io.BytesIO()
    sa.save(file, LARGE[name])
    assert read(file.getvalue()) == LARGE[name]


def test_a_version_of_the_future_is_named():
    """The version is reported also if a description contains unknown kinds of values."""
    content = archive({"quaternion": [1, 2, 3, 4]}).replace(b'"version": 1', b'"version": 2')
    with zipfile.ZipFile(io.BytesIO(archive({"quaternion": [1, 2, 3, 4]}))) as source:
        text = source.read("structarrays.json").replace(b'"version": 1', b'"version": 2')
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as target:
        target.writestr("structarrays.json", text)
    assert content != file.getvalue()  # the checksum
    assert "its version is 2, but this release reads version 1" in str(read(file.getvalue()))


def test_values_of_permutations():
    """Many short objects, each of which would take a call."""
    p = np.tile(np.array([1, 0], np.int8), (100_000, 1))
    node = structure("Permutation", {"dtype": "float64"}, {"jax": 0})
    assert read(archive(node, [p]), 1).shape == (100_000, 2, 2)
    p[5] = 1
    assert "1 more than once" in str(read(archive(node, [p]), 1))


# ---- anything ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def fuzz(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import fuzz_files

    yield fuzz_files
    sys.modules.pop("fuzz_files")


@pytest.mark.slow
def test_changed_files(fuzz):
    """A few hundred of the files of ``python tools/fuzz_files.py``, which draws them from the same seeds."""
    files = fuzz.corpus()
    for content in files:
        assert fuzz.examine(content) == "read"
    outcomes = []
    for seed in range(400):
        content, changes = fuzz.changed(np.random.default_rng(seed), files)
        try:
            outcomes.append(fuzz.examine(content, trace=seed % 4 == 0))
        except Exception as error:
            raise AssertionError(f"seed {seed}: {changes}") from error
    assert outcomes.count("read") >= 10 and outcomes.count("ValueError") >= 300
