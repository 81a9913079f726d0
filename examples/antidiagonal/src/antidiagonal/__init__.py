"""Antidiagonal matrices, and the trace of Fourier matrices, for structarrays."""

import jax.numpy as jnp

import structarrays as sa
from structarrays.extend import EntryArray, elements, remark
from structarrays.testing import sampler

__all__ = ["Antidiagonal"]


class Antidiagonal(EntryArray):
    """The square matrix with ``x[i, n - 1 - i] = entries[i]``.

    Parameters
    ----------
    antidiag : array_like, (..., n)
        The entries from the upper right to the lower left.

    Examples
    --------
    >>> import structarrays as sa
    >>> from antidiagonal import Antidiagonal
    >>> print(Antidiagonal([1.0, 2.0]) @ sa.asarray([[1.0], [10.0]]))
    [[10.]
     [ 2.]]
    """

    __slots__ = ()

    def __new__(cls, antidiag, /):
        antidiag = sa.asarray(antidiag).to_jax()
        if antidiag.ndim == 0:
            raise ValueError("Antidiagonal: antidiag must have at least one dimension, (..., n), got a number")
        return cls.make((antidiag, None))

    @staticmethod
    def shape_of(parameters, meta):
        """The shape, from the parameters."""
        return (*parameters[0].shape, parameters[0].shape[-1])

    @property
    def antidiag(self):
        """The entries from the upper right to the lower left, as a `jax.Array`."""
        return self.parameters[0]

    @property
    def entries(self):
        """The stored entries, a tuple of one array."""
        return (self.antidiag,)

    @property
    def background(self):
        """The value of all other elements; None for zeros."""
        return self.parameters[1]

    def rebuild(self, entries, background):
        """The antidiagonal matrix with other entries and another background."""
        return Antidiagonal.make((*entries, background))

    def positions(self):
        """Rows and columns of the entries."""
        i = jnp.arange(self.shape[-1])
        return ((i, i[::-1]),)

    def dense_data(self):
        """The dense value."""
        i = jnp.arange(self.shape[-1])
        return element(self, i[:, None], i)


@elements.kernel(Antidiagonal)
def element(x, i, j):
    """From this follow indexing, and sums with every structure."""
    i, j = jnp.broadcast_arrays(i, j)
    outside = jnp.zeros(x.batch_shape, x.dtype) if x.background is None else x.background
    return jnp.where(i + j == x.shape[-1] - 1, x.antidiag[..., i], outside.reshape(outside.shape + (1,) * i.ndim))


def _has_zeros(x, *others) -> bool:
    return x.background is None


@sa.matrix_transpose.kernel(Antidiagonal)
def transpose_antidiagonal(x):
    """The entries in the opposite order."""
    return Antidiagonal.make((x.antidiag[..., ::-1], x.background))


@sa.matmul.kernel(Antidiagonal, sa.Dense, when=_has_zeros)
def matmul_antidiagonal_dense(x1, x2):
    """The rows in the opposite order, each times an entry."""
    data = x2.data if x2.ndim > 1 else x2.data[:, None]
    product = x1.antidiag[..., :, None] * data[..., ::-1, :]
    return sa.Dense(product if x2.ndim > 1 else product[..., 0])


@sa.matmul.kernel(Antidiagonal, Antidiagonal, when=lambda x1, x2: _has_zeros(x1) and _has_zeros(x2))
def matmul_antidiagonals(x1, x2):
    """A diagonal matrix."""
    return sa.Diagonal(x1.antidiag * x2.antidiag[..., ::-1])


@sa.linalg.solve.kernel(Antidiagonal, sa.Dense, when=_has_zeros)
def solve_antidiagonal(x1, x2):
    """One division an element."""
    data = x2.data if x2.ndim > 1 else x2.data[:, None]
    solution = (data / x1.antidiag[..., :, None])[..., ::-1, :]
    ok = jnp.all(x1.antidiag != 0)  # or an eager call raises LinAlgError
    return sa.Dense(solution if x2.ndim > 1 else solution[..., 0]), ok


@sa.linalg.det.kernel(Antidiagonal, when=_has_zeros)
def det_antidiagonal(x):
    """The product of the entries, and the sign of the permutation that turns the rows round."""
    n = x.shape[-1]
    return sa.Dense((-1) ** (n * (n - 1) // 2) * jnp.prod(x.antidiag, axis=-1))


@sa.linalg.trace.kernel(sa.Fourier, when=lambda x, *, offset, dtype: offset == 0 and dtype is None)
def trace_fourier(x, *, offset, dtype):
    """The quadratic Gauss sum, which Gauss found in 1805."""
    remark("the quadratic Gauss sum; O(1)")
    return sa.Dense(jnp.full(x.batch_shape, (1 - 1j, 1, 0, -1j)[x.shape[-1] % 4], x.dtype))


@sampler("Antidiagonal")
def draw_antidiagonal(numbers, batch, core, requires):
    """A random one, for `structarrays.testing`."""
    return Antidiagonal(numbers((*batch, core[0]))) if core[0] == core[1] and not requires else None
