"""`Permutation`: a matrix that puts rows in another order."""

import jax
import jax.numpy as jnp
import numpy as np

from ..core import dtypes
from ..core.array import Array
from ..core.entries import elements
from ..core.text import inline
from .sparse import Sparse, _integers


class Permutation(Array):
    r"""A permutation matrix: ``(P @ x)[i] = x[p[i]]``.

    Parameters
    ----------
    p : array_like
        For each row the column of its one, ``(..., n)``: each of ``0, ..., n - 1`` once.
    dtype : dtype, optional
        Of the elements; by default the default floating-point one.

    Raises
    ------
    ValueError
        If (in an eager call) `p` is no permutation.
    TypeError
        If `p` has no integer dtype.

    Notes
    -----
    The value is :math:`P_{ij} = 1` where :math:`j = p_i`, and a structural zero elsewhere.

    ====================================  ======================================
    times a vector or a matrix            ``O(n)`` per column: a gather
    products, transpose, inverse, solve   ``O(n)``, permutations again
    `det`, `slogdet`                      ``O(n log n)``
    elementwise, and with others          those of a `Sparse` with n entries
    ====================================  ======================================

    Examples
    --------
    >>> import structarrays as sa
    >>> P = sa.Permutation([2, 0, 1])
    >>> P @ sa.asarray([10.0, 20.0, 30.0])
    Dense([30., 10., 20.], dtype=float64)
    >>> P @ P.mT
    Permutation([0, 1, 2], shape=(3, 3), dtype=float64)
    """

    __slots__ = ()
    stores_entries = True
    static_pattern = False

    def __new__(cls, p, *, dtype=None):
        p = _integers(p, "p")
        if p.ndim < 1:
            raise ValueError("p must have at least one dimension, got a scalar")
        n = p.shape[-1]
        if not isinstance(p, jax.core.Tracer):
            _check(p, n)
        dtype = dtypes.default_dtype("f") if dtype is None else dtypes.as_dtype(dtype, "dtype")
        return cls._make((jnp.asarray(p, np.int32 if n < 2**31 else np.int64),), dtype)

    @property
    def p(self):
        """For each row the column of its one, ``(..., n)``."""
        return self._value[0][0]

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements."""
        return self.meta

    @property
    def entries(self) -> tuple:
        """The ones, ``(..., n)``."""
        return (jnp.ones(self.p.shape, self.dtype),)

    @staticmethod
    def _shape(leaves, meta):
        (p,) = leaves
        return (*p.shape, *p.shape[-1:])

    def _describe(self):
        text, complete = inline(self.p)
        return [text, f"shape={self.shape}"], complete

    def _positions(self):
        return (self._coordinates(),)

    def _coordinates(self):
        return jax.lax.broadcasted_iota(self.p.dtype, self.p.shape, self.p.ndim - 1), self.p

    def _rebuild(self, entries, background):
        (data,) = entries
        n = self.shape[-1]
        coordinates = (jnp.broadcast_to(c, data.shape) for c in self._coordinates())
        return Sparse._make((data, *coordinates, background), ((n, n), (0, 1), False))

    def _free(self):
        return self._rebuild(self.entries, None)

    def _dense(self):
        return self._free()._dense()

    def _cast(self, dtype):
        return Permutation._make(self._value[0], np.dtype(dtype))


def _check(p, n):
    """Raise unless each row of `p` is a permutation."""
    if p.size and (int(p.min()) < 0 or int(p.max()) >= n):
        bad = int(p.min()) if int(p.min()) < 0 else int(p.max())
        raise ValueError(f"p must hold each of 0, ..., {n - 1} once, got {bad}")
    for row in p.reshape(-1, n) if n else ():
        counts = np.bincount(row, minlength=n)
        if counts.max() > 1:
            raise ValueError(f"p must hold each of 0, ..., {n - 1} once, got {int(counts.argmax())} more than once")


@elements.kernel(Permutation)
def _(x, i, j):
    i, j = jnp.broadcast_arrays(i, j)
    return jnp.where(x.p[..., i] == j, jnp.ones((), x.dtype), jnp.zeros((), x.dtype))
