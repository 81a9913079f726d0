"""`Permutation`: a matrix that permutes rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import jax
import jax.numpy as jnp
import numpy as np

from ..._core import dtypes
from ..._core.array.dense import parameter
from ..._core.array.flattening import as_indices, with_common_indices
from ..._core.array.validation import check_leaves, check_static, require, validated
from ..._core.families import pattern
from ..._core.families.entries import elements
from ..._core.families.entry_array import EntryArray
from ..._core.text import inline
from ..._numerics.symbolic import index_dtype
from ..sparse.array import Sparse
from ..sparse.numerics import over_batch
from ..sparse.sorted_entries import index_array
from . import numerics

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from ..._core.array.arguments import DTypeLike, ParameterLike
    from ..._core.typing import Leaves, Meta, Shape

    T = TypeVar("T")


class Permutation(EntryArray):
    r"""A permutation matrix: ``(P @ x)[i] = x[p[i]]``.

    Parameters
    ----------
    p : array_like
        The column of the one in each row, ``(..., n)``: a permutation of ``0, ..., n - 1``.
    dtype : dtype, optional
        The data type of the elements. Default is the default floating-point data type.

    Raises
    ------
    ValueError
        If `p` is not a permutation (checked in eager calls).
    TypeError
        If `p` does not have an integer dtype.

    Notes
    -----
    The elements are :math:`P_{ij} = 1` if :math:`j = p_i`, and structural zeros otherwise.

    ====================================  ======================================
    product with a vector or a matrix     ``O(n)`` per column: a gather
    products, transpose, inverse, solve   ``O(n)``, permutations again
    `det`, `slogdet`                      ``O(n log n)``
    `pinv`, `svd`, `qr`, `lu`, norms      closed forms, without computation
    elementwise functions, joins          as a `Sparse` with n entries
    ====================================  ======================================

    Examples
    --------
    >>> import structarrays as sa
    >>> P = sa.Permutation([2, 0, 1])
    >>> P @ sa.asarray([10.0, 20.0, 30.0])
    Dense([30., 10., 20.], dtype=float64)
    >>> P @ P.mT
    Permutation([0, 1, 2], shape=(3, 3), dtype=float64, stores 3 of 9 entries, 12 B of 72 B dense)
    """

    __slots__ = ()
    parameter_names = ("p",)
    static_pattern = False
    linear = False  # a gradient has the same indices, so ``P - 0.1 * gradient`` would be wrong
    index_parameters = slice(0, None)

    def __new__(cls, p: ParameterLike, *, dtype: DTypeLike | None = None) -> Self:
        p = index_array(p, "p")
        if p.ndim < 1:
            raise ValueError("p must have at least one dimension, got a scalar")
        n = p.shape[-1]
        if not isinstance(p, jax.core.Tracer):
            _check(p, n)
        dtype = dtypes.default_dtype("f") if dtype is None else dtypes.as_dtype(dtype, "dtype")
        return with_common_indices(cls.make((as_indices(p, index_dtype(n)),), dtype))

    @classmethod
    def from_dense(cls, a: ParameterLike) -> Self:
        """Return the permutation array with these elements.

        Parameters
        ----------
        a : array_like, (..., n, n)
            A matrix with a single 1 in each row and each column, and zeros otherwise.

        Raises
        ------
        ValueError
            If `a` is not square, or is not a permutation matrix (checked unless traced).

        Examples
        --------
        >>> import structarrays as sa
        >>> sa.Permutation.from_dense([[0.0, 1.0], [1.0, 0.0]]).p.tolist()
        [1, 0]
        """
        a = parameter(a, "a", f"{cls.__name__}.from_dense")
        if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
            raise ValueError(f"a must be a square matrix (..., n, n), got shape {a.shape}")
        if not isinstance(a, jax.core.Tracer):
            _check_matrix(np.asarray(a))
        n = a.shape[-1]
        p = jnp.argmax(a != 0, axis=-1) if n else jnp.zeros(a.shape[:-1], int)
        return with_common_indices(cls.make((p.astype(index_dtype(n)),), np.dtype(a.dtype)))

    @property
    def p(self) -> jax.Array:
        """The column of the one in each row, ``(..., n)``."""
        p: jax.Array = self._value[0][0]
        return p

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements."""
        dtype: np.dtype = self.meta
        return dtype

    @property
    def entries(self) -> tuple[jax.Array, ...]:
        """The ones, ``(..., n)``."""
        return (jnp.ones(self.p.shape, self.dtype),)

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        (p,) = leaves
        return (*p.shape, *p.shape[-1:])

    def description(self) -> tuple[list[str], bool]:
        return [inline(self.p)[0], f"shape={self.shape}"], self.size <= 1

    def pattern(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        along = np.broadcast_to(np.arange(self.p.shape[-1]), self.p.shape)
        return pattern.of_coordinates(self, (along, self.p), rows, columns)

    def positions(self) -> tuple[tuple[jax.Array, ...], ...]:
        return (self._coordinates(),)

    def _coordinates(self) -> tuple[jax.Array, jax.Array]:
        return jax.lax.broadcasted_iota(self.p.dtype, self.p.shape, self.p.ndim - 1), self.p

    def rebuild(self, entries: tuple[jax.Array, ...], background: jax.Array | None) -> Sparse:
        (data,) = entries
        n = self.shape[-1]
        coordinates = (jnp.broadcast_to(c, data.shape) for c in self._coordinates())
        return Sparse.make((data, *coordinates, background), ((n, n), (0, 1), False))

    def freed(self) -> Sparse:
        return self.rebuild(self.entries, None)

    def dense_data(self) -> jax.Array:
        return self.freed().dense_data()

    def cast(self, dtype: DTypeLike) -> Permutation:
        return Permutation.make(self._value[0], np.dtype(dtype))

    def _adjoint(self) -> Permutation:
        """Return the transpose, which is the inverse."""
        return Permutation.make((mapped(numerics.inverse, self.p),), self.dtype)

    def _determinant(self) -> jax.Array:
        return mapped(numerics.sign, self.p).astype(self.dtype)

    def _solution_remark(self) -> str:
        return "a permutation of the rows; O(n) for each column"


def mapped(function: Callable[..., T], p: jax.Array, *others: jax.Array) -> T:
    """Apply a function of one permutation, and of other arrays with the same batch, to each permutation of a stack."""
    return over_batch(function, p.ndim - 1)(p, *others)


def _check(p: np.ndarray | jax.Array, n: int) -> None:
    """Raise unless each row of `p` is a permutation."""
    if p.size and (int(p.min()) < 0 or int(p.max()) >= n):
        bad = int(p.min()) if int(p.min()) < 0 else int(p.max())
        raise ValueError(f"p must contain each of 0, ..., {n - 1} once, got {bad}")
    in_order = np.sort(p, axis=-1)
    twice = in_order[..., :-1][in_order[..., :-1] == in_order[..., 1:]]
    if twice.size:
        raise ValueError(f"p must contain each of 0, ..., {n - 1} once, got {int(twice[0])} more than once")


@validated.kernel(Permutation)
def check_permutation(x: Permutation) -> None:
    """Raise unless the parameter contains each index once."""
    check_static(isinstance(x.meta, np.dtype), x)
    check_leaves(x, x.p.shape[-1:], dtype=False)
    require(x.p.dtype.kind == "i", f"the dtype of its parameter must be an integer dtype, got {x.p.dtype}")
    _check(np.asarray(x.p), x.shape[-1])


def _check_matrix(a: np.ndarray) -> None:
    """Raise unless each matrix has a single 1 in each row and column, and zeros otherwise."""
    wrong = (a != 0) & (a != 1)
    if wrong.any():
        place = tuple(map(int, np.argwhere(wrong)[0]))
        raise ValueError(f"a must be a permutation matrix with elements 0 and 1, got {a[place]} at {place}")
    for axis, line in ((-1, "row"), (-2, "column")):
        counts = np.count_nonzero(a, axis=axis)
        if (counts != 1).any():
            place = tuple(map(int, np.argwhere(counts != 1)[0]))
            raise ValueError(
                f"a must be a permutation matrix with a single 1 in each {line}, got {counts[place]} in {line} "
                f"{place[-1]}"
            )


@elements.kernel(Permutation)
def _elements_permutation(x: Permutation, i: jax.Array, j: jax.Array) -> jax.Array:
    i, j = jnp.broadcast_arrays(i, j)
    return jnp.where(x.p[..., i] == j, jnp.ones((), x.dtype), jnp.zeros((), x.dtype))
