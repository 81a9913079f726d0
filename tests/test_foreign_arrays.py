"""Arrays of other libraries where ours are made and written to: what is converted, and what would lose something and raises.

Where a library needs a device, or is large, a small class stands in for its arrays, under the name by which `array_api_compat` knows it.
`tests/test_torch.py` has PyTorch's own.
"""

import subprocess
import sys
import types

import numpy as np
import pytest

import structarrays as sa

HOST = np.array([[1.0, 2.0], [3.0, 4.0]])


@pytest.fixture
def library(monkeypatch):
    """A function that registers a class as the arrays of a library."""

    def register(module, name, cls):
        stand_in = types.ModuleType(module)
        setattr(stand_in, name, type(name, (cls,), {"__module__": module}))
        for part in range(1, module.count(".") + 1):
            parent = module.rsplit(".", part)[0]
            monkeypatch.setitem(sys.modules, parent, types.ModuleType(parent))
        monkeypatch.setitem(sys.modules, module, stand_in)
        return getattr(stand_in, name)

    return register


class OnADevice:
    """An array in memory that neither JAX nor NumPy reaches, as one of CuPy is where JAX has no CUDA."""

    def __init__(self, values):
        self.values = values
        self.shape, self.dtype, self.ndim = values.shape, values.dtype, values.ndim

    def __dlpack__(self, **options):
        raise BufferError("the memory is that of a device")

    def __dlpack_device__(self):
        return (2, 0)

    def __array__(self, dtype=None, copy=None):
        raise TypeError("implicit conversion to a NumPy array is not allowed")

    def get(self):
        return self.values


def reads(array):
    """All that takes arrays of other libraries."""
    target = sa.zeros((2, 2))
    target[:] = array
    written = sa.eye(2)
    written[0] = array[0] if hasattr(array, "__getitem__") else type(array)(array.values[0])
    return [
        (sa.asarray(array), HOST),
        (sa.asarray(array, dtype=sa.float32), HOST.astype(np.float32)),
        (
            sa.asarray([array, array]) if hasattr(array, "__getitem__") else sa.stack([sa.asarray(array)] * 2),
            [HOST] * 2,
        ),
        (sa.linalg.inv(sa.Triangular(array)), np.linalg.inv(np.tril(HOST))),
        (target, HOST),
        (written, [[1.0, 2.0], [0.0, 1.0]]),
    ]


def check(array):
    for result, expected in reads(array):
        assert isinstance(result, sa.Array)
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-6)


def test_what_is_on_a_device_is_brought_to_the_host(library):
    array = library("cupy", "ndarray", OnADevice)(HOST)
    check(array)
    np.testing.assert_array_equal(np.asarray(sa.from_dlpack(array)), HOST)
    with pytest.raises(ValueError, match="copy must not be False"):
        sa.from_dlpack(array, copy=False)
    with pytest.raises(ValueError, match="copy must not be False"):
        sa.asarray(array, copy=False)


def test_what_nobody_can_bring_to_the_host_raises():
    with pytest.raises(
        BufferError, match="x must be readable by JAX or NumPy, got OnADevice: the memory is that of a device"
    ):
        sa.from_dlpack(OnADevice(HOST))


class Lazy:
    """An array that is computed when NumPy asks for it."""

    def __init__(self, values):
        self.values, self.shape, self.dtype, self.ndim = values, values.shape, values.dtype, values.ndim

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)


def test_arrays_of_dask_are_computed(library):
    check(library("dask.array", "Array", Lazy)(HOST))


def test_arrays_of_dask_itself():
    check(pytest.importorskip("dask.array").from_array(HOST, chunks=1))


class InAGraph:
    """An array that has values unless it is an argument of a graph."""

    def __init__(self, values):
        self.values, self.ndim = values, 2

    def __array_namespace__(self, api_version=None):
        return types

    def unwrap_numpy(self):
        if self.values is None:
            raise ValueError("no eager values")
        return self.values


def test_arrays_of_ndonnx(library):
    cls = library("ndonnx", "Array", InAGraph)
    check(cls(HOST))
    with pytest.raises(TypeError, match="asarray: an array of ndonnx must have values to be read: no eager values"):
        sa.asarray(cls(None))


READ_BY = {
    "asarray": sa.asarray,
    "in a list": lambda x: sa.asarray([x, x]),
    "from_dlpack": sa.from_dlpack,
    "a constructor": sa.Diagonal,
    "a write": lambda x: sa.zeros(2).__setitem__(slice(None), x),
}


@pytest.mark.parametrize("name", READ_BY)
def test_masked_arrays_lose_nothing(name):
    with pytest.raises(TypeError, match="elements are masked, and an array of structarrays has no mask; fill them"):
        READ_BY[name](np.ma.array([1.0, 2.0], mask=[False, True]))
    READ_BY[name](np.ma.array([1.0, 2.0], mask=[False, False]))
    np.testing.assert_array_equal(np.asarray(sa.asarray(np.ma.array([1.0, 2.0]))), [1.0, 2.0])


@pytest.mark.parametrize("name", ["asarray", "a constructor", "a write"])
def test_masked_arrays_of_other_namespaces_lose_nothing(name):
    marray = pytest.importorskip("marray")
    masked = marray.masked_namespace(np)
    with pytest.raises(TypeError, match="elements are masked"):
        READ_BY[name](masked.asarray(np.asarray([1.0, 2.0]), mask=np.asarray([False, True])))
    np.testing.assert_array_equal(np.asarray(sa.asarray(masked.asarray(np.asarray([1.0, 2.0])))), [1.0, 2.0])


@pytest.mark.parametrize("name", READ_BY)
def test_sparse_arrays_are_not_made_dense_unasked(name):
    sparse = pytest.importorskip("sparse")
    with pytest.raises(
        TypeError, match=r"sparse is not densified implicitly; convert it with .*pydata_sparse\.from_sparse to a Sparse"
    ):
        READ_BY[name](sparse.COO(np.array([[1]]), np.array([2.0]), shape=(2,)))


def test_operands_of_other_libraries_say_how_they_are_converted():
    strict = pytest.importorskip("array_api_strict")
    with pytest.raises(TypeError, match="add: x2 must be an array .* got Array; structarrays.asarray converts it"):
        sa.add(sa.eye(2), strict.ones((2, 2)))
    with pytest.raises(TypeError, match="unsupported operand|Expected Array or Python scalar"):  # array_api_strict's
        sa.eye(2) + strict.ones((2, 2))
    with pytest.raises(TypeError, match="got object$"):
        sa.add(sa.eye(2), object())
    sparse = pytest.importorskip("sparse")
    for call in (lambda: sa.eye(2) @ sparse.eye(2), lambda: sa.matmul(sa.eye(2), sparse.eye(2))):
        with pytest.raises(TypeError, match=r"matmul: .*pydata_sparse\.from_sparse to a Sparse"):
            call()


def test_numpys_subclasses():
    for cls in (np.matrix, np.recarray):
        x = np.ones((2, 2)).view(cls)
        result = sa.asarray(x)
        assert type(result) is sa.Dense and result.shape == (2, 2)
    np.testing.assert_array_equal(np.asarray(sa.asarray(np.matrix(HOST))), HOST)


def test_nothing_is_imported_before_there_is_a_foreign_array():
    code = """
import sys, numpy as np, structarrays as sa
x = sa.asarray([[1.0, 2.0], [3.0, 4.0]])
x[0] = np.ones(2); x[0] = 1; x[0] = [1, 2]; x @ np.ones(2); x + 1; sa.asarray(np.ones(3)); sa.Diagonal([1, 2])
assert "array_api_compat" not in sys.modules
class Mine:
    __array_namespace__ = lambda self: sa
    __array__ = lambda self, dtype=None, copy=None: np.ones(2)
sa.asarray(Mine())
assert "array_api_compat" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
