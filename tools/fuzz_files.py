"""Fuzz `structarrays.load`: change files of `structarrays.save` at random, and check that reading the files does no harm.

::

    python tools/fuzz_files.py 10000            # read 10,000 files
    python tools/fuzz_files.py                  # run until it is stopped
    python tools/fuzz_files.py 1 --seed 4711    # read the file of this seed again

Reading a file must return a value or raise `ValueError`, within a second and within the memory that
docs/how_to/load_untrusted_files.md promises. The tool saves and reads each value again, and compares the shapes of arrays with the
shapes of their dense forms. If a file fails, the tool keeps the file and prints its seed. It stops a read that does not end, with a traceback.
"""

import argparse
import collections
import contextlib
import faulthandler
import io
import itertools
import json
import resource
import struct
import sys
import tempfile
import time
import tracemalloc
import warnings
import zipfile
import zlib
from pathlib import Path

import jax
import numpy as np

import structarrays as sa
from structarrays.testing import STRUCTURES, sample

SECONDS = 1.0
TIMES, CONSTANT, EACH_ARRAY = 10, 1 << 20, 4096
"""The memory that reading may take: a multiple of the size of the file, a constant, and an amount for each array of JAX."""

NUMBERS = (0, 1, -1, 2, 3, 7, 2**15, 2**31, 2**31 - 1, 2**32, 2**53, 2**62, 2**63, -(2**63), 2**64, 10**30, 10**4000)
OTHERS = (
    None,
    True,
    False,
    1.5,
    -0.0,
    1e308,
    "",
    "0",
    "x" * 300,
    "float64",
    "bfloat16",
    "float64,float64",
    [],
    {},
    [[]],
)
CLASSES = (*STRUCTURES, "KhatriRao", "Factored", "Blocks", "Mirrored", "Orthonormal", "Array", "Nothing", "os:PathLike")
HEADERS = (
    b"((((",
    b"-" * 9000,
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 2), }",
    b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    b"{'descr': ('<f8', (1000000000,)), 'fortran_order': False, 'shape': (0,), }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (" + b"1, " * 3000 + b"), }",
    b"{'descr': '>f4', 'fortran_order': True, 'shape': (), }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (0, 1152921504606846976), }",
)


class Harm(AssertionError):
    """Raised if reading a file breaks a promise."""


# ---- valid files -----------------------------------------------------------------------------------------------------


def corpus():
    """Valid files: all structures, nested structures, and containers."""
    trees = []
    for k, name in enumerate(STRUCTURES):
        core = (6, 4) if k % 3 == 0 else (6, 6)
        x = sample(name, core, batch=((), (2,))[k % 2], dtype=("float64", "complex64", "float32")[k % 3])
        x = sample(name, (6, 6)) if x is None else x
        trees.append({"x": x, ("k", k): [k, float(k)]})
    D, ones = sa.Diagonal(np.arange(1.0, 7.0)), np.ones((6, 1))
    low = sa.LowRank(ones, ones)
    trees += [
        [sa.Block([[D + low, None], [None, sa.Inverse(D + low)]]), sa.Kronecker(D + low, D), low * low],
        {"results": (sa.linalg.qr(sa.eye(3).to_dense()), sa.linalg.slogdet(D)), "complex": 1 - 2j, "inf": float("inf")},
        [np.arange(3, dtype=">i4"), np.float32(1), None, "text", {}, sa.assume(D, "positive_definite"), sa.exp(D)],
        {"narrow": jax.numpy.ones(3, jax.numpy.bfloat16), "nested": [[[(1, (2, [3]))]]]},
    ]
    files = []
    for tree in trees:
        file = io.BytesIO()
        sa.save(file, tree)
        files.append(file.getvalue())
    return files


# ---- changes ---------------------------------------------------------------------------------------------------------


UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, struct.error),
    *(EOFError, IndexError, KeyError, OSError, RuntimeError, TypeError, ValueError),
)
"""Exceptions that `zipfile` raises for damaged archives."""


def changed(rng, files):
    """A file with one to three changes, and the names of the changes."""
    content = _pick(rng, files)
    names = []
    for _ in range(int(rng.integers(1, 4))):
        change = _pick(rng, CHANGES)
        names.append(change.__name__)
        try:
            content = change(rng, content, files)
        except UNREADABLE:
            break  # after the change before, this change finds nothing to change
    return content, names


def _pick(rng, sequence):
    return sequence[int(rng.integers(len(sequence)))]


def bytes_changed(rng, content, files):
    """Replace, remove or repeat bytes or bits."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 6))):
        place, kind = int(rng.integers(len(data))), int(rng.integers(5))
        if kind == 0:
            data[place] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            data[place] = int(rng.integers(256))
        elif kind == 2:
            del data[place : place + int(rng.integers(1, 40))]
        elif kind == 3:
            data[place:place] = data[place : place + int(rng.integers(1, 400))]
        else:
            data[place : place + 4] = struct.pack("<I", _pick(rng, (0, 1, 2**16 - 1, 2**31, 2**32 - 1)))
        data = data or bytearray(1)
    return bytes(data)


def cut(rng, content, files):
    """Return the beginning or the end of a file, or the beginning of one file and the end of another."""
    place, other = int(rng.integers(len(content))), _pick(rng, files)
    return _pick(rng, (content[:place], content[place:], content[:place] + other[int(rng.integers(len(other))) :]))


def _members(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [[name, archive.read(name)] for name in archive.namelist()]


def _archive(members, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with (
        warnings.catch_warnings(action="ignore"),
        zipfile.ZipFile(file, "w", compression) as archive,
    ):  # about duplicate names
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, compress_type=compression)
    return file.getvalue()


def members_changed(rng, content, files):
    """Remove, repeat, rename, exchange or compress members."""
    members = _members(content)
    i, j = (int(rng.integers(len(members))) for _ in range(2))
    kind = int(rng.integers(6))
    if kind == 0:
        del members[i]
    elif kind == 1:
        members.append(list(members[i]))
    elif kind == 2:
        members[i][0] = _pick(rng, ("0.npy", "1.npy", "-1.npy", "x", "../0.npy", "", "structarrays.json"))
    elif kind == 3:
        members[i][1], members[j][1] = members[j][1], members[i][1]
    elif kind == 4:
        members += [[f"{k}.npy", members[i][1]] for k in range(int(rng.integers(1, 200)))]
    else:
        return _archive(members, zipfile.ZIP_DEFLATED)
    return _archive(members)


def overlapping(rng, content, files):
    """Let all entries of the table of contents point to one member."""
    data = bytearray(content)
    entries = [i for i in range(len(data) - 46) if data[i : i + 4] == b"PK\x01\x02"]
    chosen = _pick(rng, entries)
    for i in entries:
        data[i + 16 : i + 28] = data[chosen + 16 : chosen + 28]
        data[i + 42 : i + 46] = data[chosen + 42 : chosen + 46]
    return bytes(data)


def numbers_changed(rng, content, files):
    """Change the header or the data of a member."""
    members = _members(content)
    member = _pick(rng, [m for m in members if m[0].endswith(".npy")])
    data, kind = member[1], int(rng.integers(4))
    start = 10 + struct.unpack("<H", data[8:10])[0]
    if kind == 0:
        header = _pick(rng, HEADERS)
        data = data[:8] + struct.pack("<H", len(header) + 1) + header + b"\n" + data[start:]
    elif kind == 1:
        old, new = _pick(
            rng, [(b"<f8", b"<i8"), (b"<i4", b"<f4"), (b"False", b"True "), (b"(6", b"(3"), (b"2, ", b"1, ")]
        )
        data = data.replace(old, new, 1)
    elif kind == 2:
        data = data[: -int(rng.integers(1, 9))] if rng.integers(2) else data + b"\0" * int(rng.integers(1, 9))
    else:
        numbers = bytearray(data[start:])
        for _ in range(3):
            if numbers:
                numbers[int(rng.integers(len(numbers)))] = int(rng.integers(256))
        data = data[:start] + bytes(numbers)
    member[1] = data
    return _archive(members)


def _places(node, path=()):
    """The paths of all nodes of a description."""
    yield path
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from _places(value, (*path, key))


def _at(node, path):
    for key in path:
        node = node[key]
    return node


def _deep(rng, node):
    """A value nested inside many others."""
    shape = _pick(
        rng,
        (
            "list",
            "tuple",
            "dict",
            "meta",
            *("Product Sum Kronecker KroneckerSum Block Inverse LowRank KhatriRao".split()),
        ),
    )
    for _ in range(int(rng.integers(1, 200))):
        if shape in ("list", "tuple"):
            node = {shape: [node]}
        elif shape == "dict":
            node = {"dict": [[{"value": 1}, node]]}
        elif shape == "meta":
            node = [node]
        else:
            meta = {"Block": [1, 1], "KhatriRao": False}.get(shape)
            parts = [node] if shape in ("Block", "Inverse") else [node, {"jax": 0}]
            node = {"structure": {"class": shape, "meta": meta, "parts": parts, "assumptions": []}}
    return node


def description_changed(rng, content, files):
    """Replace, remove, repeat or nest nodes of the description."""
    members = _members(content)
    (member,) = [m for m in members if m[0].endswith(".json")]
    description = json.loads(member[1])
    for _ in range(int(rng.integers(1, 4))):
        paths = [p for p in _places(description) if len(p) > 0]
        numeric = [p for p in paths if type(_at(description, p)) is int]
        path = _pick(rng, numeric if numeric and rng.integers(3) == 0 else paths)
        parent, key, kind = _at(description, path[:-1]), path[-1], int(rng.integers(8))
        if kind == 0:
            parent[key] = _pick(rng, NUMBERS)
        elif kind == 1:
            parent[key] = _pick(rng, OTHERS)
        elif kind == 2:
            del parent[key]
        elif kind == 3:
            parent[key] = _at(description, _pick(rng, paths))
            parent[key] = json.loads(json.dumps(parent[key]))  # no cycle
        elif kind == 4:
            parent[key] = _deep(rng, parent[key])
        elif kind == 5 and isinstance(parent, list):
            parent *= int(rng.integers(2, 50))
        elif kind == 6 and isinstance(parent, dict):
            parent[_pick(rng, ("value", "jax", "structure", "list", "class", "meta"))] = parent[key]
        else:
            for p in paths:
                if p[-1] == "class" and rng.integers(2):
                    _at(description, p[:-1])["class"] = _pick(rng, CLASSES)
        if len(json.dumps(description)) > 1 << 20:
            break
    member[1] = json.dumps(description).encode()
    return _archive(members)


def text_changed(rng, content, files):
    """Replace characters of the description."""
    members = _members(content)
    (member,) = [m for m in members if m[0].endswith(".json")]
    text = bytearray(member[1])
    for _ in range(int(rng.integers(1, 5))):
        place = int(rng.integers(len(text)))
        new = _pick(
            rng,
            (
                b"[",
                b"]",
                b"{",
                b'"',
                b"\\",
                b"\xff",
                b"NaN",
                b"1e999",
                b"9" * 5000,
                b'"' * 99,
                b'\\"' * 99,
                b"[" * 300,
                b"",
            ),
        )
        text[place : place + int(rng.integers(3))] = new
    member[1] = bytes(text)
    return _archive(members)


CHANGES = (
    bytes_changed,
    cut,
    members_changed,
    overlapping,
    numbers_changed,
    *(description_changed,) * 4,  # most code reads the description
    text_changed,
)


# ---- reading ---------------------------------------------------------------------------------------------------------


def _leaves(tree):
    """The keys and values in all containers of a tree. `jax.tree` would refuse dictionaries whose keys cannot be sorted."""
    if isinstance(tree, dict):
        tree = [*tree, *tree.values()]
    if isinstance(tree, (list, tuple)):
        for x in tree:
            yield from _leaves(x)
    else:
        yield tree


def examine(content, *, trace=True):
    """Read a file, check the result, and return the name of the outcome.

    Parameters
    ----------
    content : bytes
        The file.
    trace : bool
        Whether the shapes of arrays are compared with the shapes of their dense forms, which doubles the time.

    Raises
    ------
    Harm
        If reading takes too long or too much memory, raises another error than `ValueError`, or returns a value that cannot be used.
    """
    start = time.perf_counter()
    with contextlib.suppress(Exception):  # raised again below
        sa.load(io.BytesIO(content))
    seconds = time.perf_counter() - start
    tracemalloc.start()  # after the measurement of time, since it slows everything down
    try:
        tree, outcome = sa.load(io.BytesIO(content)), "read"
    except ValueError as error:
        tree, outcome = None, "ValueError"
        if len(str(error)) > 1000:
            raise Harm(f"the error has {len(str(error))} characters") from None
    except Exception as error:
        raise Harm(f"{type(error).__name__}: {error}") from error
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    if seconds > SECONDS:
        raise Harm(f"{seconds:.1f} s for {len(content)} bytes")
    leaves = list(_leaves(tree))
    if peak > TIMES * len(content) + CONSTANT + EACH_ARRAY * content.count(b".npy"):
        raise Harm(f"{peak:,} bytes of memory for a file of {len(content):,}")
    if outcome == "read":
        file = io.BytesIO()
        sa.save(file, tree)
        if [*map(type, leaves)] != [*map(type, _leaves(sa.load(file)))]:
            raise Harm("the tree differs after it is saved and read again")
    for x in leaves if trace else ():
        if isinstance(x, sa.Array) and x.size <= 10_000:
            dense = jax.eval_shape(lambda x: x.dense_data(), x)
            if (dense.shape, dense.dtype) != (x.shape, x.dtype):
                raise Harm(f"a {type(x).__name__} of shape {x.shape} has a dense form of shape {dense.shape}")
    return outcome


def main():
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("count", nargs="?", type=int, help="number of files (default: run until stopped)")
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the first file (default: 0); each file increases the seed by one"
    )
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    files, outcomes, slowest = corpus(), collections.Counter(), 0.0
    kept = Path(tempfile.mkdtemp()) / "fuzzed.npz"
    last = options.seed + options.count if options.count is not None else None
    for seed in itertools.count(options.seed) if last is None else range(options.seed, last):
        content, names = changed(np.random.default_rng(seed), files)
        kept.write_bytes(content)
        faulthandler.dump_traceback_later(60, exit=True)
        start = time.perf_counter()
        try:
            outcomes[examine(content)] += 1
        except Exception as error:
            print(
                f"seed {seed} ({', '.join(names)}): {type(error).__name__}: {error}\nthe file is {kept}",
                file=sys.stderr,
            )
            raise
        finally:
            faulthandler.cancel_dump_traceback_later()
        slowest = max(slowest, time.perf_counter() - start)
        if sum(outcomes.values()) % 1000 == 0:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"{sum(outcomes.values())} files: {dict(outcomes)}; slowest {slowest:.2f} s, process {peak:.0f} MiB",
                flush=True,
            )
    print(f"no harm in {sum(outcomes.values())} files: {dict(outcomes)}")


if __name__ == "__main__":
    main()
