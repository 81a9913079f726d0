"""Structured arrays in dynamiqs (https://www.dynamiqs.org): operators with few diagonals become `Banded` arrays.

The class `QArray` of dynamiqs wraps a `DataArray`, which is dense or "sparse diagonal". `BandedDataArray` is a third
class, and `install` uses it instead of the second. The rest of dynamiqs does not change.
docs/interoperability/dynamiqs.md shows how to use it.
"""

import sys
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from dynamiqs.qarrays.dataarray import DataArray, in_last_two_dims
from dynamiqs.qarrays.dense_dataarray import DenseDataArray
from dynamiqs.qarrays.layout import dia
from dynamiqs.qarrays.sparsedia_dataarray import SparseDIADataArray
from equinox.internal import ω

import structarrays as sa

OPERANDS = (sa.Array, jax.Array, np.ndarray, np.generic, int, float, complex)


def install(data_array=None):
    """Let dynamiqs construct `BandedDataArray`; ``install(SparseDIADataArray)`` restores its own class. Do not mix both."""
    for name, module in list(sys.modules.items()):
        if name.startswith("dynamiqs.") and hasattr(module, "SparseDIADataArray"):
            module.SparseDIADataArray = data_array or BandedDataArray


def result(x):
    """Convert an array to dynamiqs' data: dense if it is not banded, or is nonzero outside of its band."""
    banded = isinstance(x, sa.Banded) and x.background is None
    return BandedDataArray(array=x) if banded else DenseDataArray(x.to_jax())


def value(function):
    """Define a method by a function of the array."""
    return lambda self, *args, **options: function(self.array, *args, **options)


def unary(function):
    """Define a method by a function of the array whose result becomes dynamiqs' data."""
    return value(lambda *args, **options: result(function(*args, **options)))


def binary(function):
    """Define a method by a function of the array and of dynamiqs' data, an array or a number."""

    def method(self, y):
        y = getattr(y, "array", getattr(y, "data", None)) if isinstance(y, DataArray) else y
        return result(function(self.array, y)) if isinstance(y, OPERANDS) else NotImplemented

    return method


def once(y):
    """Return the same values, but computed before they are used.

    XLA on CPUs would fuse the computation of the values, say ``cos(t)``, into the product, and repeat it for each
    entry. It does not fuse cumulative sums.
    """
    return jax.lax.cumsum(jnp.stack([y, jnp.zeros_like(y)]))[0] if isinstance(y, jax.core.Tracer) else y


def factor(x, y):
    """Return the operand for a product with y, for example a dense array with several columns."""
    return x if isinstance(y, sa.Array) or 1 in y.shape[-2:] else jax.tree.map(once, x)


class BandedDataArray(DataArray):
    """Square `Banded` matrices (..., n, n), from `offsets` and `diags` (..., len(offsets), n) of dynamiqs, or an `array`."""

    array: sa.Array
    _matmul_priority = 10  # above the priority of dense data, so that this class computes mixed products

    def __init__(self, offsets=(), diags=None, *, array=None):
        if array is None:
            diags = jnp.asarray(diags)
            array = sa.from_dia(diags, offsets, diags.shape[-1:] * 2)
            lost = jnp.count_nonzero(diags) - jnp.count_nonzero(array.to_dia()[0])
            eqx.error_if(diags, lost > 0, "diags must contain zeros outside the matrix bounds")
        self.array = array

    shape = property(value(lambda x: x.shape))
    dtype = property(value(lambda x: x.dtype))
    layout = property(value(lambda x: dia))
    offsets = property(value(lambda x: x.offsets))
    ndiags = property(value(lambda x: len(x.offsets)))
    diags = property(value(lambda x: x.to_dia()[0]))
    mT = property(unary(sa.matrix_transpose))
    _repr_extra = SparseDIADataArray._repr_extra
    to_jax = value(sa.Array.to_jax)
    asdense = value(lambda x: DenseDataArray(x.to_jax()))
    __array__ = value(lambda x, dtype=None, copy=None: np.asarray(x, dtype=dtype))
    devices = value(lambda x: jax.tree.leaves(x)[0].devices())
    block_until_ready = unary(jax.block_until_ready)
    assparsedia = unary(lambda x, offsets=None: x)

    # Batch axes. If a matrix axis is removed, dynamiqs expects a plain array.
    _reshape_unchecked = unary(lambda x, *shape: sa.reshape(x, shape))
    broadcast_to = unary(lambda x, *shape: sa.broadcast_to(x, shape))
    _swapaxes_unchecked = unary(lambda x, i, j: sa.moveaxis(x, (i, j), (j, i)))
    _moveaxis_unchecked = unary(sa.moveaxis)
    _expand_dims_unchecked = unary(lambda x, axis: sa.expand_dims(x, axis=axis))

    def sum(self, axis=None, function=sa.sum):
        x = function(self.array, axis=axis)
        return x.to_jax() if in_last_two_dims(axis, self.ndim) else result(x)

    def squeeze(self, axis=None):
        return self.sum(tuple(i for i, n in enumerate(self.shape) if n == 1) if axis is None else axis, sa.squeeze)

    def __getitem__(self, key):
        x = self.array[key]
        return result(x) if isinstance(x, sa.Banded) else x.to_jax()

    # Arithmetic. `&` is the Kronecker product, and Equinox computes with a state by x**ω.
    conj = unary(sa.conj)
    powm = unary(sa.linalg.matrix_power)
    expm = unary(lambda x, max_squarings=None: sa.linalg.expm(x))
    __mul__ = binary(lambda x, y: sa.multiply(x, once(y) if jnp.shape(y)[-2:] in ((), (1,), (1, 1)) else y))
    __matmul__ = binary(lambda x, y: sa.matmul(factor(x, y), y))
    __rmatmul__ = binary(lambda x, y: sa.matmul(y, factor(x, y)))
    __and__ = binary(lambda x, y: sa.Kronecker(x, y).to_banded() if isinstance(y, sa.Array) else sa.Kronecker(x, y))
    __rand__ = binary(lambda x, y: sa.Kronecker(y, x))

    def __pow__(self, power):
        return power.__rpow__(self) if isinstance(power, type(ω)) else result(self.array**power)

    def __add__(self, y):
        if isinstance(y, int | float | complex) and y == 0:  # Python's sum() starts with 0
            return self
        total = binary(sa.add)(self, y)
        if isinstance(total, DenseDataArray):
            warnings.warn("A banded array has become dense in a sum with an array that is not banded.", stacklevel=2)
        return total

    # Scalar functions. The norm is the trace norm of a Hermitian matrix.
    trace = value(lambda x: sa.linalg.trace(x).to_jax())
    _eig = value(lambda x: DenseDataArray(x.to_jax())._eig())
    _eigh = value(lambda x: tuple(part.to_jax() for part in sa.linalg.eigh(x)))
    _eigvals = value(lambda x: sa.linalg.eigvals(x).to_jax())
    _eigvalsh = value(lambda x: sa.linalg.eigvalsh(x).to_jax())

    def norm(self, *, psd=False):
        checked = self if psd else eqx.error_if(self, ~self.isherm(), "the matrix must be Hermitian")
        return self.trace().real if psd else jnp.abs(checked._eigvalsh()).sum(-1)

    def isherm(self, rtol=1e-5, atol=1e-8):
        return sa.all(sa.abs(self.array - self.dag().array) <= atol + rtol * sa.abs(self.array)).to_jax()
