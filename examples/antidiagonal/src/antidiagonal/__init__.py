"""Antidiagonal matrices, and the trace of Fourier matrices, for structarrays."""

import jax.numpy as jnp

import structarrays as sa
from structarrays.extend import EntryArray, elements, remark
from structarrays.testing import sampler

__all__ = ["Antidiagonal"]


class Antidiagonal(EntryArray):
    """Square matrix with ``x[i, n - 1 - i] = entries[i]`` and zeros elsewhere.

    Parameters
    ----------
    antidiag : array_like, (..., n)
        Entries from the upper right to the lower left.

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
            raise ValueError("Antidiagonal: antidiag must have at least one dimension, (..., n), got a scalar")
        return cls.make((antidiag, None))

    @staticmethod
    def shape_of(parameters, meta):
        """Return the shape, given the parameters."""
        return (*parameters[0].shape, parameters[0].shape[-1])

    @property
    def antidiag(self):
        """Entries from the upper right to the lower left, as a `jax.Array`."""
        return self.parameters[0]

    @property
    def entries(self):
        """Stored entries: a tuple of one array."""
        return (self.antidiag,)

    @property
    def background(self):
        """Value of all other elements, or None for zeros."""
        return self.parameters[1]

    def rebuild(self, entries, background):
        """Return an antidiagonal matrix with other entries and another background."""
        return Antidiagonal.make((*entries, background))

    def positions(self):
        """Return the rows and columns of the entries."""
        i = jnp.arange(self.shape[-1])
        return ((i, i[::-1]),)

    def dense_data(self):
        """Return the dense form as a `jax.Array`."""
        i = jnp.arange(self.shape[-1])
        return element(self, i[:, None], i)


@elements.kernel(Antidiagonal)
def element(x, i, j):
    """Return elements by coordinates; indexing and sums with other structures use this kernel."""
    i, j = jnp.broadcast_arrays(i, j)
    outside = jnp.zeros(x.batch_shape, x.dtype) if x.background is None else x.background
    return jnp.where(i + j == x.shape[-1] - 1, x.antidiag[..., i], outside.reshape(outside.shape + (1,) * i.ndim))


def _has_zeros(x, *others) -> bool:
    return x.background is None


@sa.matrix_transpose.kernel(Antidiagonal)
def transpose_antidiagonal(x):
    """Reverse the entries."""
    return Antidiagonal.make((x.antidiag[..., ::-1], x.background))


@sa.matmul.kernel(Antidiagonal, sa.Dense, when=_has_zeros)
def matmul_antidiagonal_dense(x1, x2):
    """Reverse the rows, and multiply each by an entry."""
    data = x2.data if x2.ndim > 1 else x2.data[:, None]
    product = x1.antidiag[..., :, None] * data[..., ::-1, :]
    return sa.Dense(product if x2.ndim > 1 else product[..., 0])


@sa.matmul.kernel(Antidiagonal, Antidiagonal, when=lambda x1, x2: _has_zeros(x1) and _has_zeros(x2))
def matmul_antidiagonals(x1, x2):
    """Return the product as a diagonal matrix."""
    return sa.Diagonal(x1.antidiag * x2.antidiag[..., ::-1])


@sa.linalg.solve.kernel(Antidiagonal, sa.Dense, when=_has_zeros)
def solve_antidiagonal(x1, x2):
    """Divide each element of the reversed right-hand side by an entry."""
    data = x2.data if x2.ndim > 1 else x2.data[:, None]
    solution = (data / x1.antidiag[..., :, None])[..., ::-1, :]
    ok = jnp.all(x1.antidiag != 0)  # otherwise an eager call raises LinAlgError
    return sa.Dense(solution if x2.ndim > 1 else solution[..., 0]), ok


@sa.linalg.det.kernel(Antidiagonal, when=_has_zeros)
def det_antidiagonal(x):
    """Multiply the product of the entries by the sign of the permutation that reverses the rows."""
    n = x.shape[-1]
    return sa.Dense((-1) ** (n * (n - 1) // 2) * jnp.prod(x.antidiag, axis=-1))


@sa.linalg.trace.kernel(sa.Fourier, when=lambda x, *, offset, dtype: offset == 0 and dtype is None)
def trace_fourier(x, *, offset, dtype):
    """Return the quadratic Gauss sum (Gauss, 1805)."""
    remark("the quadratic Gauss sum; O(1)")
    return sa.Dense(jnp.full(x.batch_shape, (1 - 1j, 1, 0, -1j)[x.shape[-1] % 4], x.dtype))


@sampler("Antidiagonal")
def draw_antidiagonal(numbers, batch, core, requires):
    """Draw a random matrix for `structarrays.testing`."""
    return Antidiagonal(numbers((*batch, core[0]))) if core[0] == core[1] and not requires else None
