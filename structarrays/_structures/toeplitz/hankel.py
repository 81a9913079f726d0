"""`Hankel`: a matrix with constant antidiagonals, which is a Toeplitz matrix upside down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import jax
import jax.numpy as jnp

from ..._core import dtypes
from ..._core.array.dense import Dense, batch_shape_of
from ..._core.array.validation import check_leaves, check_sizes, validated
from ..._core.dispatch import explicit
from ..._core.families.entries import elements
from ..._core.families.entry_array import EntryArray
from ..._core.families.join import join_pair
from ..._core.text import inline
from ..banded.array import batch_of
from ..fill.array import Fill, fills_matrices
from .array import SOLVED_AS_DENSE, _line, join_constant_diagonals, with_elements_of

if TYPE_CHECKING:
    from ..._core.array.arguments import ParameterLike
    from ..._core.typing import Leaves, Meta, Shape


class Hankel(EntryArray):
    r"""A matrix with constant antidiagonals: its entries depend only on ``i + j``.

    Parameters
    ----------
    c : array_like
        The first column, ``(..., m)``.
    r : array_like, optional
        The last row, ``(..., n)``. ``r[..., 0]`` is ignored, since ``c[..., -1]`` is the same entry. By default the
        matrix is square and `r` is zero; these zeros are ordinary entries.

    Raises
    ------
    ValueError
        If `c` or `r` is a scalar, or if only one of them is empty.

    Notes
    -----
    The array stores the ``m + n - 1`` values ``H[i, j] = v[i + j]``. There are no structural zeros. The costs are

    =======================================  =================================
    elementwise, transpose, slices, flips    ``O(m + n)``
    sums and other reductions                ``O((m + n) log(n))``
    product with a vector                    ``O((m + n) log(m + n))``
    product with a vector of integers        ``O(m n)``, exact
    element, row, column                     the number of its elements
    `linalg.solve`, `det`, `slogdet`         ``O(n**2)``
    `linalg.inv` of a large matrix           an `Inverse`
    =======================================  =================================

    Linear systems use the `Toeplitz` matrix with the rows in reverse order, regardless of assumptions. Products by
    Fourier transforms have errors relative to the norms of the factors; see `Toeplitz`.

    Examples
    --------
    >>> import structarrays as sa
    >>> H = sa.Hankel([1.0, 2.0, 3.0], [3.0, 4.0])
    >>> H.to_dense()
    Dense([[1., 2.],
           [2., 3.],
           [3., 4.]], dtype=float64)
    >>> sa.flip(H, axis=0)
    Toeplitz([1., 2., 3., 4.], offsets=-2..1, shape=(3, 2), dtype=float64, stores 4 of 6 entries, 32 B of 48 B dense)
    """

    __slots__ = ()
    parameter_names = ("values",)

    def __new__(cls, c: ParameterLike, r: ParameterLike | None = None) -> Self:
        c = _line(c, "c", cls.__name__)
        r = jnp.zeros_like(c) if r is None else _line(r, "r", cls.__name__)
        shape = (c.shape[-1], r.shape[-1])
        dtype = dtypes.promote(c.dtype, r.dtype)
        batch = batch_shape_of(c=c.shape[:-1], r=r.shape[:-1])
        if 0 in shape:
            return cls.make((jnp.zeros((*batch, 0), dtype),), shape)
        c, r = (jnp.broadcast_to(line.astype(dtype), (*batch, line.shape[-1])) for line in (c, r))
        return cls.make((explicit.call(lambda c, r: jnp.concatenate([c, r[..., 1:]], axis=-1), c, r),), shape)

    @classmethod
    def from_dense(cls, a: ParameterLike) -> Hankel:
        """Return the Hankel array with these elements.

        Parameters
        ----------
        a : array_like, (..., m, n)
            A matrix with constant antidiagonals.

        Raises
        ------
        ValueError
            If `a` has fewer than two dimensions, or its antidiagonals are not constant (checked unless traced).

        Examples
        --------
        >>> import structarrays as sa
        >>> sa.Hankel.from_dense([[1.0, 2.0], [2.0, 3.0]]).values.tolist()
        [1.0, 2.0, 3.0]
        """

        def build(data: jax.Array) -> Hankel:
            return Hankel.make((explicit.call(_edge, data),), data.shape[-2:])

        return with_elements_of(a, cls.__name__, build, "the antidiagonals are not constant")

    @property
    def values(self) -> jax.Array:
        """The entries on the antidiagonals, from the upper left, ``(..., m + n - 1)``."""
        values: jax.Array = self._value[0][0]
        return values

    @property
    def core_shape(self) -> tuple[int, int]:
        """The shape ``(m, n)`` of the matrix."""
        shape: tuple[int, int] = self.meta
        return shape

    @property
    def entries(self) -> tuple[jax.Array, ...]:
        """The parameter that contains the entries."""
        return self._value[0]

    @property
    def solved_by_parts(self) -> bool:
        """Return whether solvers may fail for regular matrices: badly conditioned ones that no other form solves."""
        return self.core_shape[-1] > SOLVED_AS_DENSE

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        shape: Shape = batch_of(leaves[0].shape, 1) + meta
        return shape

    @property
    def covers(self) -> bool:
        return True

    def rebuild(self, entries: tuple[jax.Array, ...], background: jax.Array | None) -> Hankel:
        return Hankel.make(tuple(entries), self.meta)

    def freed(self) -> Dense:
        return Dense.make((self.dense_data(),))

    def positions(self) -> tuple[tuple[jax.Array, ...], ...]:
        k = jnp.arange(self.values.shape[-1])
        row = jnp.minimum(k, self.meta[0] - 1)
        return ((row, k - row),)

    def gather(self, data: jax.Array) -> tuple[jax.Array, ...]:
        data = data.reshape((1,) * (2 - data.ndim) + data.shape)
        if data.shape[-2:] == (1, 1):  # a constant
            return (jnp.broadcast_to(data[..., 0], (*data.shape[:-2], self.values.shape[-1])),)
        return (_edge(jnp.broadcast_to(data, data.shape[:-2] + self.meta)),)

    def description(self) -> tuple[list[str], bool]:
        return [inline(self.values)[0], f"shape={self.shape}"], self.size <= 1

    def dense_data(self) -> jax.Array:
        i, j = (jax.lax.broadcasted_iota(jnp.int32, self.meta, axis) for axis in (0, 1))
        return elements.required((self,)).run(self, i, j)


def _edge(data: jax.Array) -> jax.Array:
    """Return the elements of the first column and the last row of a matrix."""
    if 0 in data.shape[-2:]:
        return jnp.zeros((*data.shape[:-2], 0), data.dtype)
    return jnp.concatenate([data[..., 0], data[..., -1, 1:]], axis=-1)


@elements.kernel(Hankel)
def _elements_hankel(x: Hankel, i: jax.Array, j: jax.Array) -> jax.Array:
    return x.values.at[..., i + j].get(mode="promise_in_bounds")


join_pair.kernel(Fill, Hankel, when=fills_matrices)(join_constant_diagonals)


@validated.kernel(Hankel)
def check_hankel(x: Hankel) -> None:
    """Raise unless there is one entry for each antidiagonal."""
    m, n = check_sizes(x.meta, 2)
    check_leaves(x, (m + n - 1 if m and n else 0,))
