"""Rows and columns by a selection matrix, for structures without a narrower form of their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import lift, to_dense
from ..._core.families.entries import elements_at, has_elements
from ..._core.families.factored import Factored, as_matrix, select_lines, stored
from ..._functions.indexing import index
from ..._functions.linear_algebra import matmul, matrix_transpose
from ..._numerics.symbolic import index_dtype
from ..composite.product import product
from ..sparse.array import Sparse

if TYPE_CHECKING:
    from collections.abc import Callable

    import jax


def selected_lines(
    x: Array,
    key: tuple[tuple[Any, ...], tuple[Any, ...]],
    axis: int,
    dense_lines: Callable[[Any, jax.Array, int], jax.Array],
) -> Array:
    """Rows (axis -2) or columns (axis -1), as a product of a selection matrix and the whole matrix.

    The product is returned if it stores less than half of the selected rows or columns. Otherwise they are dense, so that later
    products with a few of them do not involve the whole matrix.

    Parameters
    ----------
    x : Array
        A stack of matrices.
    key : tuple
        An item of a key of `index`, and its operands.
    axis : int
    dense_lines : callable
        ``dense_lines(x, where, axis)``: the rows or columns at some indices, as rows of a `jax.Array`.
    """
    n, other = x.shape[axis], x.shape[-3 - axis]
    where = places(key, n)
    if 2 * (3 * where.size + stored(x)) < where.size * other:
        selection = selection_matrix(where, n, x)
        return product(selection, x) if axis == -2 else product(x, matrix_transpose(selection))
    data = dense_lines(x, where, axis)
    return Dense.make((data if axis == -2 else data.mT,))


def places(key: tuple[tuple[Any, ...], tuple[Any, ...]], n: int) -> jax.Array:
    """The nonnegative indices that an item of a key selects."""
    item, operands = key
    if item[0] == "slice":
        _, start, size, step = item
        run: jax.Array = start + step * jnp.arange(size)
        return run
    chosen = cast("Dense", lift(operands[0])).data
    return jnp.where(chosen < 0, chosen + n, chosen)


def selection_matrix(where: jax.Array, n: int, like: Array) -> Sparse:
    """Matrix with a one in each row, in the selected column; with the batch shape and dtype of `like`."""
    batch, size = like.shape[:-2], where.shape[0]
    dtype = index_dtype(n)
    leaves = (jnp.ones(size, like.dtype), jnp.arange(size, dtype=dtype), where.astype(dtype))
    return Sparse.make((*(jnp.broadcast_to(a, (*batch, size)) for a in leaves), None), ((size, n), (0, 1), False))


def by_products(x: Array, where: jax.Array, axis: int) -> jax.Array:
    """Rows or columns as products with unit vectors; only the result is dense."""
    units = Dense.make(((jnp.arange(x.shape[axis]) == where[:, None]).astype(x.dtype),))
    return to_dense(matmul(units, x)).data if axis == -2 else to_dense(matmul(units, matrix_transpose(x))).data


@select_lines.kernel(Factored)
def _select_lines_factored(x: Factored, key: tuple[tuple[Any, ...], tuple[Any, ...]], axis: int) -> Array:
    return selected_lines(x, key, axis, by_products)


# ---- structures that store all entries -------------------------------------------------------------------------------


def by_elements(x: Array, where: jax.Array, axis: int) -> jax.Array:
    """Rows or columns, element by element."""
    along = jnp.arange(x.shape[-3 - axis])
    return elements_at(x, (where[:, None], along) if axis == -2 else (along, where[:, None]))


def _selects_lines(x: Array, *, operands: tuple[jax.Array, ...], key: tuple[tuple[Any, ...], ...]) -> bool:
    """Return whether a key selects rows or columns of a full matrix with few parameters, at an index array or more of
    them than parameters.
    """
    kinds = sorted(k[0] for k in key)
    if x.core_ndim != 2 or not x.covers or not has_elements(x) or kinds not in (["array", "slice"], ["slice", "slice"]):
        return False
    sizes = [k[2] if k[0] == "slice" else operands[0].size for k in key]
    whole = [k == ("slice", 0, n, 1) for k, n in zip(key, x.shape[-2:], strict=True)]
    one_axis = sum(whole) == 1 and all(o.ndim == 1 for o in operands)
    # Rows or columns at an index array that do not save memory are dense, and hardly larger than the stored entries.
    return one_axis and (kinds[0] == "array" or 2 * (3 * sizes[whole.index(False)] + stored(x)) < sizes[0] * sizes[1])


@index.kernel(Array, when=_selects_lines, before=("index_array_by_coordinates", "slices_by_sparse_form"))
def _index_lines_of_array(x: Array, *, operands: tuple[jax.Array, ...], key: tuple[tuple[Any, ...], ...]) -> Array:
    axis = -2 if key[1] == ("slice", 0, x.shape[-1], 1) else -1
    chosen = tuple(Dense.make((o,)) for o in operands)
    return selected_lines(as_matrix(x), (key[axis], chosen), axis, by_elements)
