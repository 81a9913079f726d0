"""Reading data while JAX's 64-bit mode is off: 64-bit data raise, or are converted as documented, and never lose digits silently."""

import contextlib
import copy
import io
import os
import pickle
import subprocess
import sys

import cloudpickle
import jax
import numpy as np
import pytest

import structarrays as sa
from structarrays._core.array.base import is_array
from structarrays.testing import STRUCTURES, sample

BITS_64 = ("float64", "complex128", "int64", "uint64")


@contextlib.contextmanager
def without_x64():
    jax.config.update("jax_enable_x64", False)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", True)


def needs_64_bits(x) -> bool:
    return any(str(leaf.dtype) in BITS_64 for leaf in (x, *jax.tree.leaves(x)))


PICKLES = {"pickle": pickle.dumps, "cloudpickle": cloudpickle.dumps, "protocol 2": lambda x: pickle.dumps(x, 2)}


def in_32_bits(x):
    """The same structure with parameters of 32 bits."""
    return jax.tree.map(
        lambda leaf: np.asarray(leaf).astype({"f": "f4", "i": "i4", "c": "c8"}.get(leaf.dtype.kind, leaf.dtype)), x
    )


@pytest.mark.parametrize("structure", STRUCTURES)
def test_every_structure_raises_or_comes_back(structure):
    x = next(filter(is_array, (sample(structure, (6, 6), dtype=d) for d in ("float64", "complex128"))))
    for value in (x, in_32_bits(x)):
        written, file = pickle.dumps(value), io.BytesIO()
        sa.save(file, x)
        file.seek(0)
        assert pickle.loads(written).dtype == value.dtype
        with without_x64():
            if needs_64_bits(value):
                with pytest.raises(ValueError, match="pickle: the array contains .*64.*jax_enable_x64"):
                    pickle.loads(written)
            else:
                again = pickle.loads(written)
                assert type(again) is type(value) and again.dtype == value.dtype
            with pytest.raises(ValueError, match="load: the file contains .*64.*jax_enable_x64"):
                sa.load(file)


@pytest.mark.parametrize("dumps", PICKLES)
@pytest.mark.parametrize("dtype", BITS_64)
def test_every_kind_of_pickle_raises(dumps, dtype):
    """Also for arrays within other objects, and in what a factorisation returns."""
    x = sa.asarray(np.array([[4, 1], [1, 3]], dtype))
    objects = [x, {"a": [x]}, sa.Sum(sa.Diagonal(x[0]), x)]
    if dtype[0] in "fc":
        objects += [sa.linalg.qr(x), sa.linalg.cho_factor(x)]
    for value in objects:
        written = PICKLES[dumps](value)
        with without_x64(), pytest.raises(ValueError, match=r"pickle: the array contains .*64|pickle: .*128"):
            pickle.loads(written)
        assert jax.tree.structure(pickle.loads(written)) == jax.tree.structure(value)


def test_copies_keep_their_digits():
    """A copy in the same process shares the parameters and does not pickle them."""
    x = sa.Diagonal([1 / 3, 2.0])
    with without_x64():
        copies = copy.deepcopy(x), copy.copy(x), copy.deepcopy({"x": x})["x"]
    for again in copies:
        assert again.dtype == np.float64 and np.asarray(again.diag)[0] == 1 / 3


@pytest.mark.slow
def test_another_process(tmp_path):
    (tmp_path / "x").write_bytes(pickle.dumps(sa.Diagonal([1 / 3, 2.0])))
    (tmp_path / "y").write_bytes(pickle.dumps(sa.Diagonal(np.asarray([1 / 3, 2.0], "float32"))))
    code = """
import pickle, sys
print(pickle.load(open(sys.argv[2], "rb")).dtype)
pickle.load(open(sys.argv[1], "rb"))
"""
    command = [sys.executable, "-c", code, str(tmp_path / "x"), str(tmp_path / "y")]
    environment = os.environ | {"JAX_ENABLE_X64": "0"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.stdout == "float32\n"
    assert "NeedsX64: pickle: the array contains float64, but JAX's 64-bit mode is off" in done.stderr


class Exporter:
    """An array of another library that supports only DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("wrap", [lambda a: a, Exporter])
@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_dlpack_does_not_cut_integers_off(wrap, dtype):
    small, large = np.array([1, 2**31 - 1], dtype), np.array([1, 2**40 + 5], dtype)
    with without_x64():
        for copied in (None, True):
            x = sa.from_dlpack(wrap(small), copy=copied)
            assert x.dtype == dtype.replace("64", "32") and np.asarray(x).tolist() == small.tolist()
            with pytest.raises(OverflowError, match="from_dlpack: an integer in .* does not fit into u?int32"):
                sa.from_dlpack(wrap(large), copy=copied)
        with pytest.raises(OverflowError, match="does not fit into u?int32"):
            sa.asarray(wrap(large))
        with pytest.raises(ValueError, match="copy must not be False, because dtype u?int64 needs a copy"):
            sa.from_dlpack(wrap(small), copy=False)
    assert np.asarray(sa.from_dlpack(wrap(large))).tolist() == large.tolist()


def test_numbers_of_numpy_are_rounded_as_documented():
    """Without an explicit dtype the result has the widest available dtype."""
    third = np.array([1 / 3])
    written = pickle.dumps(third)
    with without_x64():
        for x in (sa.asarray(pickle.loads(written)), sa.from_dlpack(pickle.loads(written)), sa.Diagonal(third)):
            assert x.dtype == np.float32 and float(x.max()) == np.float32(1 / 3)
        with pytest.raises(ValueError, match="jax_enable_x64"):
            sa.asarray(third, dtype=sa.float64)
