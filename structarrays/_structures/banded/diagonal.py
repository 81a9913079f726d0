"""`Diagonal` and the scaled `Identity`: banded arrays with one diagonal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense, parameter
from ..._core.array.validation import BACKGROUND, check_leaves, check_sizes, validated
from ..._core.text import inline
from ..._functions.linalg.norms import diagonal
from ..._functions.matrix_checks import integer
from ..fill.array import core_shape
from .array import Banded, batch_of, matrix_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import jax

    from ..._core.array.arguments import ParameterLike
    from ..._core.typing import Leaves, Meta, Shape, Spec


class Diagonal(Banded):
    """A diagonal matrix.

    Parameters
    ----------
    diag : array_like
        The entries on the diagonal, ``(..., k)``.
    shape : tuple of int, optional
        The core shape ``(m, n)`` of a rectangular matrix with ``min(m, n) == k``; by default ``(k, k)``.

    Raises
    ------
    ValueError
        If `diag` is a scalar, or its length does not fit `shape`.

    Notes
    -----
    Products, `solve`, `inv` and elementwise functions cost ``O(k)``. The array is a `Banded` with one offset, 0.

    Examples
    --------
    >>> import structarrays as sa
    >>> D = sa.Diagonal([1.0, 2.0])
    >>> sa.linalg.inv(D @ D + D)
    Diagonal([0.5       , 0.16666667], shape=(2, 2), dtype=float64)
    """

    __slots__ = ()
    parameter_names = ("diag", "background")

    def __new__(cls, diag: ParameterLike, *, shape: int | Sequence[int] | None = None) -> Self:
        diag = parameter(diag, "diag", cls.__name__)
        if diag.ndim < 1:
            raise ValueError(
                "diag must have at least one dimension, got a scalar; use Identity(n, scale) for a constant diagonal"
            )
        k = diag.shape[-1]
        shape = (k, k) if shape is None else matrix_shape(shape, "shape")
        if min(shape) != k:
            raise ValueError(f"diag of a matrix of shape {shape} must have length {min(shape)}, got {k}")
        return cls.make((diag, None), shape)

    @property
    def diag(self) -> jax.Array:
        """The entries on the main diagonal, ``(..., k)``."""
        diag: jax.Array = self._value[0][0]
        return diag

    @property
    def offsets(self) -> tuple[int, ...]:
        """The offsets of the stored diagonals: the single offset 0."""
        return (0,)

    @property
    def core_shape(self) -> tuple[int, int]:
        """The shape ``(m, n)`` of the matrix."""
        shape: tuple[int, int] = self.meta
        return shape

    @property
    def diagonals(self) -> tuple[jax.Array, ...]:
        """The stored diagonals: the main diagonal."""
        return (self.diag,)

    @property
    def entries(self) -> tuple[jax.Array, ...]:
        """The parameter that contains the entries."""
        return self._value[0][:-1]

    pieces = 1  # the diagonal is as long as the matrix

    def _padded_for(self, pieces: int) -> Diagonal:
        return self

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        core: Shape = meta
        return batch_of(leaves[0].shape, 1) + core

    def description(self) -> tuple[list[str], bool]:
        text, complete = inline(self.diag)
        return [text, f"shape={self.shape}"], complete

    def rebuild(self, entries: Sequence[jax.Array], background: jax.Array | None) -> Diagonal:
        return Diagonal.make((*entries, background), self.meta)


class Identity(Diagonal):
    """A scaled identity matrix.

    Parameters
    ----------
    n : int or tuple of int
        The size, or the core shape ``(m, n)`` of a rectangular matrix.
    scale : array_like
        The value on the diagonal, ``(...)``. Its shape is the batch shape.

    Examples
    --------
    >>> import structarrays as sa
    >>> 2.0 * sa.Identity(3) @ sa.asarray([1.0, 2.0, 3.0])
    Dense([2., 4., 6.], dtype=float64)
    """

    __slots__ = ()

    def __new__(cls, n: int | Sequence[int], scale: ParameterLike = 1.0) -> Self:
        shape = core_shape(n, "n")
        shape = shape * 2 if len(shape) == 1 else matrix_shape(shape, "n")
        return cls.make((parameter(scale, "scale", cls.__name__), None), shape)

    @property
    def scale(self) -> jax.Array:
        """The value on the diagonal, of batch shape."""
        scale: jax.Array = self._value[0][0]
        return scale

    @property
    def diag(self) -> jax.Array:
        """The entries on the main diagonal, ``(..., k)``."""
        return jnp.broadcast_to(self.scale[..., None], (*self.scale.shape, min(self.meta)))

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        shape: Shape = leaves[0].shape + meta
        return shape

    def description(self) -> tuple[list[str], bool]:
        return [f"scale={inline(self.scale)[0]}", f"shape={self.shape}"], True

    def rebuild(self, entries: Sequence[jax.Array], background: jax.Array | None) -> Identity:
        return Identity.make((*entries, background), self.meta)

    def specs(self, spec: Spec, divides: Callable[[int, Any], bool]) -> tuple[Spec, ...]:
        return Array.specs(self, spec, divides)

    def freed(self) -> Diagonal:
        return Diagonal.make((self.diag, self.background), self.meta)

    def positions(self) -> tuple[tuple[jax.Array, ...], ...]:
        zero = jnp.zeros((), int)
        return ((zero, zero),)

    def gather(self, data: jax.Array) -> tuple[jax.Array, ...]:
        return (data[..., 0, 0] if data.ndim >= 2 else data.reshape(()),)


def identity_like(x: Array, n: int) -> Identity:
    """Return the identity with n rows and with the batch shape and the dtype of `x`."""
    return Identity.make((jnp.ones(x.shape[:-2], x.dtype), None), (n, n))


def diag(v: ParameterLike, k: int = 0) -> Array:
    """Return a diagonal matrix, or extract a diagonal: `numpy.diag`.

    Parameters
    ----------
    v : array_like, (n,) or (m, n)
        A vector or a matrix. For batches use `Diagonal` or `Banded` (vectors) and `linalg.diagonal` (matrices).
    k : int
        The offset of the diagonal: 0 is the main diagonal, positive offsets are above it, negative ones below.

    Returns
    -------
    Diagonal, Banded or Dense
        For a vector, the square matrix with ``n + abs(k)`` rows and the single offset `k`. For a matrix, the diagonal
        ``(p,)``.

    Raises
    ------
    ValueError
        If `v` has neither one nor two dimensions.
    TypeError
        If `k` is not an integer.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.diag([1.0, 2.0])
    Diagonal([1., 2.], shape=(2, 2), dtype=float64)
    >>> sa.diag(sa.tridiagonal([1.0], [2.0, 3.0], [4.0]), 1)
    Dense([4.], dtype=float64)
    """
    k = integer("diag", k, "k")
    if not isinstance(v, Array):
        v = Dense.make((parameter(v, "v", "diag"),))
    if v.ndim == 2:
        return diagonal(v, offset=k)
    if v.ndim != 1:
        raise ValueError(f"diag: v must have one or two dimensions, got shape {v.shape}")
    n = v.shape[0] + abs(k)
    return Diagonal(v) if k == 0 else Banded([v], (k,), (n, n))


@validated.kernel(Diagonal)
def check_diagonal(x: Diagonal) -> None:
    """Raise unless the parameters are the diagonal and the background."""
    check_leaves(x, (min(check_sizes(x.meta, 2)),), BACKGROUND)


@validated.kernel(Identity)
def check_identity(x: Identity) -> None:
    """Raise unless the parameters are the scale and the background."""
    check_sizes(x.meta, 2)
    check_leaves(x, (), BACKGROUND)
