"""`Circulant`: a Toeplitz matrix whose diagonals wrap around, which the discrete Fourier transform diagonalises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import jax
import jax.numpy as jnp

from ..._core.array.validation import check_leaves, check_static, validated
from ..._core.families.entries import elements
from ..._core.families.join import join_pair
from ..._core.text import inline
from ..banded.array import batch_of
from ..banded.diagonal import Identity
from ..fill.array import Fill, fills_matrices
from .array import Toeplitz, _line, join_constant_diagonals, with_elements_of

if TYPE_CHECKING:
    from ..._core.array.arguments import ParameterLike
    from ..._core.typing import Leaves, Meta, Shape


class Circulant(Toeplitz):
    r"""A circulant matrix: each column is the previous column, shifted down by one row with wrap-around.

    Parameters
    ----------
    c : array_like
        The first column, ``(..., n)``: ``C[i, j] = c[(i - j) % n]``.

    Raises
    ------
    ValueError
        If `c` is a scalar.

    Notes
    -----
    ``C @ x`` is the cyclic convolution of c and x, and ``C = F^{-1} diag(fft(c)) F``. The costs are

    ========================================================  ===================
    elementwise, transpose, sums                              ``O(n)``
    product with a vector, two circulants, `matrix_power`     ``O(n log(n))``
    solve, `inv`, `pinv`, `det`, `slogdet`, eigenvalues       ``O(n log(n))``
    product with a vector of integers                         ``O(n**2)``, exact
    ========================================================  ===================

    Products and solutions by Fourier transforms have errors relative to the norms of the factors, as for `Toeplitz`,
    the base class.

    Examples
    --------
    >>> import structarrays as sa
    >>> C = sa.Circulant([2.0, 1.0, 0.0])
    >>> C @ C
    Circulant([4., 4., 1.], shape=(3, 3), dtype=float64, stores 3 of 9 entries, 24 B of 72 B dense)
    >>> C.to_dense()
    Dense([[2., 0., 1.],
           [1., 2., 0.],
           [0., 1., 2.]], dtype=float64)
    """

    __slots__ = ()
    parameter_names = ("c",)
    solved_by_parts = False

    def __new__(cls, c: ParameterLike) -> Self:
        return cls.make((_line(c, "c", cls.__name__),))

    @classmethod
    def from_dense(cls, a: ParameterLike) -> Circulant:
        """Return the circulant array with these elements.

        Parameters
        ----------
        a : array_like, (..., n, n)

        Raises
        ------
        ValueError
            If `a` is not square, or is not circulant (checked unless traced).

        Examples
        --------
        >>> import structarrays as sa
        >>> sa.Circulant.from_dense([[1.0, 2.0], [2.0, 1.0]])
        Circulant([1., 2.], shape=(2, 2), dtype=float64, stores 2 of 4 entries, 16 B of 32 B dense)
        """

        def build(data: jax.Array) -> Circulant:
            if data.shape[-1] != data.shape[-2]:
                raise ValueError(f"a must be square in its last two dimensions, got shape {data.shape}")
            return Circulant.make((data[..., 0] if data.shape[-1] else jnp.zeros(data.shape[:-1], data.dtype),))

        return with_elements_of(a, cls.__name__, build, "its columns are not shifts of the first column")

    @property
    def c(self) -> jax.Array:
        """The first column, ``(..., n)``."""
        c: jax.Array = self._value[0][0]
        return c

    @property
    def values(self) -> jax.Array:
        """The entries on the diagonals, by increasing offset, ``(..., 2 n - 1)``."""
        upwards = self.c[..., ::-1]
        return jnp.concatenate([upwards, upwards[..., :-1]], axis=-1)

    @property
    def first(self) -> int:
        """The offset of the lowest diagonal."""
        return min(0, 1 - self.c.shape[-1])

    @property
    def last(self) -> int:
        """The offset of the highest diagonal."""
        return self.c.shape[-1] - 1

    @property
    def core_shape(self) -> tuple[int, int]:
        """The shape ``(n, n)`` of the matrix."""
        return (self.c.shape[-1],) * 2

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        n = leaves[0].shape[-1:]
        shape: Shape = batch_of(leaves[0].shape, 1) + n + n
        return shape

    def rebuild(self, entries: tuple[jax.Array, ...], background: jax.Array | None) -> Circulant:
        return Circulant.make(tuple(entries))

    def positions(self) -> tuple[tuple[jax.Array, ...], ...]:
        i = jnp.arange(self.c.shape[-1])
        return ((i, jnp.zeros_like(i)),)

    def gather(self, data: jax.Array) -> tuple[jax.Array, ...]:
        data = data.reshape((1,) * (2 - data.ndim) + data.shape)
        n = self.c.shape[-1]
        if n == 0:
            return (jnp.zeros((*data.shape[:-2], 0), data.dtype),)
        return (jnp.broadcast_to(data[..., 0], (*data.shape[:-2], n)),)

    def description(self) -> tuple[list[str], bool]:
        return [inline(self.c)[0], f"shape={self.shape}"], self.size <= 1


@elements.kernel(Circulant)
def _elements_circulant(x: Circulant, i: jax.Array, j: jax.Array) -> jax.Array:
    n = x.c.shape[-1]
    place = i - j
    return x.c.at[..., jnp.where(place < 0, place + n, place)].get(mode="promise_in_bounds")


# ---- the join -----------------------------------------------------------------------------------------------------


@join_pair.kernel(Circulant, Identity)
def _join_pair_circulant_identity(x: Circulant, y: Identity) -> tuple[Circulant, Circulant]:
    background = jnp.zeros((), y.dtype) if y.background is None else y.background
    first = jnp.arange(x.c.shape[-1]) == 0
    return x, x.rebuild((jnp.where(first, y.scale[..., None], background[..., None]),), None)


join_pair.kernel(Fill, Circulant, when=fills_matrices)(join_constant_diagonals)


@validated.kernel(Circulant)
def check_circulant(x: Circulant) -> None:
    """Raise unless the parameter is the first column."""
    check_static(x.meta is None, x)
    check_leaves(x, x.c.shape[-1:])
