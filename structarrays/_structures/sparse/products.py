"""Products, transposes and diagonals of sparse arrays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core import dtypes
from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.flattening import as_indices, barred, common_indices, expand_indices
from ..._core.array.operands import allow_dense
from ..._core.assumptions import carried
from ..._core.dispatch.call_arguments import have_constant_indices
from ..._core.dispatch.contexts import densify_policy, strong_zeros_policy
from ..._functions.linalg import diagonal, matmul, matrix_power, matrix_transpose, tensordot
from ..._functions.linalg.systems import power
from ..._functions.linear_algebra import contracted_axes, tensordot_by_matmul
from ..._functions.manipulation import permute_dims
from ..._numerics.bands import diagonal_length
from ..banded.diagonal import Diagonal
from . import compressed_rows, numerics, row_arithmetic
from . import sparse_host as host
from .array import Sparse, is_plain_matrix, zero_sparse
from .sorted_entries import index_dtype
from .sparse_joins import has_sparse_form, sparse_with_values, to_sparse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._core.typing import Result


def _is_matrix(x: Sparse, *args: Any, **static: Any) -> bool:
    return x.core_ndim == 2


# ---- times dense ------------------------------------------------------------------------------------------------------


@matmul.kernel(Sparse, Dense, when=is_plain_matrix)
def _matmul_sparse_dense(x1: Sparse, x2: Dense) -> Dense:
    return Dense.make((_times(x1, x2.data),))


def _times(x1: Sparse, data: jax.Array, stored: jax.Array | None = None) -> jax.Array:
    """Return the product with dense data; `stored` is the mask of its stored elements."""
    batch = jnp.broadcast_shapes(x1.batch_shape, data.shape[:-2])
    core = data.shape[-min(2, data.ndim) :]
    m, own = x1.core_shape[0], len(x1.batch_shape)
    entries, rows, columns = x1.data, *x1.coords
    if own == 0 and len(batch) > 0 and len(core) == 2 and stored is None:
        # One matrix for the whole batch: the right factors become columns of one matrix.
        many = math.prod(batch)
        side_by_side = jnp.moveaxis(data.reshape((many, *core)), 0, 1).reshape(core[0], many * core[1])
        product = _multiply(x1, entries, rows, columns, side_by_side)
        product = jnp.moveaxis(product.reshape(m, many, core[1]), 1, 0)
        return product.reshape((*batch, m, core[1]))
    entries, rows, columns = (jnp.broadcast_to(a, batch + a.shape[own:]) for a in (entries, rows, columns))
    arrays = [entries, rows, columns, jnp.broadcast_to(data, batch + core)]
    if stored is not None:
        arrays.append(jnp.broadcast_to(stored, batch + core))
    product_of_each: Callable[..., jax.Array] = numerics.over_batch(lambda *arrays: _multiply(x1, *arrays), len(batch))
    return product_of_each(*arrays)


def _multiply(
    x1: Sparse,
    entries: jax.Array,
    rows: jax.Array,
    columns: jax.Array,
    data: jax.Array,
    stored: jax.Array | None = None,
) -> jax.Array:
    m, in_bounds, in_order = x1.core_shape[0], not x1.padded, x1.order[0] == 0
    product: jax.Array = numerics.multiply(entries, rows, columns, data, stored, m, in_bounds, in_order, x1.pieces > 1)
    return product


# ---- times sparse -----------------------------------------------------------------------------------------------------


def _both_plain(x1: Sparse, x2: Sparse) -> bool:
    return is_plain_matrix(x1) and is_plain_matrix(x2)


def _are_matrices(x1: Array, x2: Array) -> bool:
    return x1.core_ndim <= 2 and x2.core_ndim <= 2 and x2.ndim > 1 and x1.ndim > 1


def _are_stacks_of_one_pattern(x1: Array, x2: Array) -> bool:
    return x1.ndim + x2.ndim > 4 and _are_matrices(x1, x2) and have_constant_indices(x1, x2)


@matmul.eager_kernel(
    Sparse,
    Sparse,
    when=_are_matrices,
    traced=True,
    always=_are_stacks_of_one_pattern,
    before="matmul_stacks_of_sparse_eagerly",
)
@matmul.eager_kernel(
    Sparse,
    Array,
    when=_are_matrices,
    traced=True,
    always=_are_stacks_of_one_pattern,
    before="matmul_stacks_of_sparse_eagerly",
)
@matmul.eager_kernel(Array, Sparse, when=_are_matrices, traced=True, always=_are_stacks_of_one_pattern)
def _matmul_sparse_sparse_eagerly(x1: Array, x2: Array) -> Result:
    result = exact_product(x1, x2)
    return NotImplemented if result is None else result


# These products are dense.
matmul.leave_to_compiled_call(Sparse, Dense)
matmul.leave_to_compiled_call(Dense, Sparse)


def exact_product(x1: Array, x2: Array) -> Sparse | None:
    """Return the product of two sparse forms with the exact number of entries; None if their coordinates are traced, or if another
    product is better.
    """
    kernel = matmul.choose((x1, x2), {})
    if kernel is None or kernel.run not in (_of_sparse_forms, _of_static_size) or not _fit(x1, x2):
        return None
    x1, x2 = (sparse_with_values(x) for x in (x1, x2))
    result = _product_of_common_patterns(x1, x2)
    if result is not None or any(isinstance(c, jax.core.Tracer) for x in (x1, x2) for c in x.coords):
        return result
    return _exact_product(x1, x2)


def _fit(x1: Array, x2: Array) -> bool:
    return x1.shape[-1] == x2.shape[-2] and "b" not in (x1.dtype.kind, x2.dtype.kind) and strong_zeros_policy.value


def _exact_product(x1: Sparse, x2: Sparse) -> Sparse:
    """Return the product with exactly the entries to which an elementary product contributes, found on the host."""
    batch = np.broadcast_shapes(x1.batch_shape, x2.batch_shape)
    (m, n), p = x1.core_shape, x2.core_shape[1]
    dtype = dtypes.promote(x1.dtype, x2.dtype)
    result = _product_of_compressed_rows(x1, x2, dtype)
    if result is not None:
        return result
    products = [_pattern_of_product(_matrix(x1, b), _matrix(x2, b), (m, n, p)) for b in np.ndindex(*batch)]
    if not products:
        return zero_sparse((m, p), dtype, batch)
    nnz = max(len(begins) for _, _, begins, _ in products)
    data = [
        _combined(_of_batch(x1.data, b), _of_batch(x2.data, b), dtype, *product[:3], nnz)
        for b, product in zip(np.ndindex(*batch), products)
    ]
    coordinates = [
        np.stack([np.pad(c[i], (0, nnz - len(c[i])), constant_values=size) for _, _, _, c in products])
        for i, size in enumerate((m, p))
    ]
    padded = any(len(begins) < nnz for _, _, begins, _ in products)
    index = index_dtype((m, p))
    leaves = (
        jnp.stack(data).reshape((*batch, nnz)),
        *(as_indices(c.astype(index).reshape((*batch, nnz))) for c in coordinates),
    )
    return Sparse.make((*leaves, None), ((m, p), (0, 1), padded))


def _product_of_common_patterns(x1: Sparse, x2: Sparse) -> Sparse | None:
    """Return the product of stacks of which each has a constant pattern; None for other arrays."""
    batch = jnp.broadcast_shapes(x1.batch_shape, x2.batch_shape)  # they may be symbolic
    patterns = [[common_indices(c) for c in x.coords] for x in (x1, x2)]
    if not batch or 0 in batch or x1.padded or x2.padded or any(c is None for each in patterns for c in each):
        return None
    (m, n), p = x1.core_shape, x2.core_shape[1]
    own, other = ([*map(np.asarray, each), np.arange(x.nnz)] for each, x in zip(patterns, (x1, x2), strict=True))
    left, right, begins, coordinates = _pattern_of_product(own, other, (m, n, p))
    data = _combined(x1.data, x2.data, dtypes.promote(x1.dtype, x2.dtype), left, right, begins, len(begins))
    dtype = index_dtype((m, p))
    indices = [expand_indices(as_indices(c.astype(dtype)), batch) for c in coordinates]
    return Sparse.make((data, *indices, None), ((m, p), (0, 1), False))


def _product_of_compressed_rows(x1: Sparse, x2: Sparse, dtype: np.dtype) -> Sparse | None:
    """Return the product of two matrices by the routines of SciPy; None if these do not apply."""
    if dtype not in compressed_rows.DTYPES or not compressed_rows.has_values(x1.data, x2.data):
        return None
    factors = []
    for x in (x1, x2):
        rows, values = compressed_rows.rows_of(x), np.asarray(x.data).astype(dtype, copy=False)
        if rows is None:
            return None
        factors.append((rows, values) if x.order == (0, 1) else compressed_rows.transposed(rows, values))
    (rows1, values1), (rows2, values2) = factors
    return compressed_rows.sparse(*row_arithmetic.multiply(rows1, rows2, values1, values2))


def _pattern_of_product(
    coords1: Sequence[np.ndarray], coords2: Sequence[np.ndarray], shape: tuple[int, int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[np.ndarray]]:
    """Call `sparse_host.product` with coordinates that are followed by the indices of their entries."""
    *coords1, places1 = coords1
    *coords2, places2 = coords2
    if (np.diff(coords2[0]) < 0).any():
        by = np.argsort(coords2[0], kind="stable")
        places2, coords2 = places2[by], [c[by] for c in coords2]
    left, right, begins, coordinates = host.product(coords1, coords2, shape)
    return places1[left], places2[right], begins, coordinates


def _combined(
    data1: jax.Array,
    data2: jax.Array,
    dtype: np.dtype,
    left: np.ndarray,
    right: np.ndarray,
    begins: np.ndarray,
    nnz: int,
) -> jax.Array:
    """Multiply two lists of entries, and add the products that belong to the same entry; for each matrix of a stack."""
    if isinstance(data1, jax.core.Tracer) or isinstance(data2, jax.core.Tracer):
        products = jnp.asarray(data1, dtype)[..., barred(left)] * jnp.asarray(data2, dtype)[..., barred(right)]
        entry = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(left))))
        by_product = jnp.moveaxis(numerics.accumulator(products), -1, 0)
        sums = jax.ops.segment_sum(by_product, barred(entry), nnz, indices_are_sorted=True)
        return jnp.moveaxis(sums, 0, -1).astype(dtype)
    terms = np.asarray(data1).astype(dtype)[..., left] * np.asarray(data2).astype(dtype)[..., right]
    if len(begins):
        terms = np.add.reduceat(terms, begins, axis=-1, dtype=numerics.dtype_of_sums(dtype)).astype(dtype)
    padding = [(0, 0)] * (terms.ndim - 1)
    return jnp.asarray(np.pad(terms, [*padding, (0, nnz - terms.shape[-1])]))


def _matrix(x: Sparse, b: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Return coordinates of one matrix of a batch on the host, then the indices of its entries, without padding."""
    coordinates = [np.asarray(_of_batch(c, b)) for c in x.coords]
    places = np.arange(x.nnz)
    if x.padded:
        inside = coordinates[0] < x.core_shape[0]
        coordinates, places = [c[inside] for c in coordinates], places[inside]
    return *coordinates, places


def _of_batch(leaf: jax.Array, b: tuple[int, ...]) -> jax.Array:
    """Return the last dimension of a parameter at an index of a batch to which its batch shape broadcasts."""
    own = leaf.shape[:-1]
    return leaf[tuple(0 if n == 1 else i for n, i in zip(own, b[len(b) - len(own) :], strict=True))] if own else leaf


def _contracts_matrices(x1: Array, x2: Array, *, axes: Any = 2) -> bool:
    return x1.ndim == x2.ndim == 2 and "b" not in (x1.dtype.kind, x2.dtype.kind)


@tensordot.eager_kernel(Sparse, Sparse, when=_contracts_matrices, traced=True)
@tensordot.eager_kernel(Sparse, Array, when=_contracts_matrices, traced=True)
@tensordot.eager_kernel(Array, Sparse, when=_contracts_matrices, traced=True)
def tensordot_sparse_eager(x1: Array, x2: Array, *, axes: Any = 2) -> Result:
    """Use the matrix product in an eager call, where `matmul` finds the number of entries of the result."""
    axes = contracted_axes(x1, x2, axes)
    return tensordot_by_matmul(x1, x2, axes=axes) if len(axes[0]) == 1 else NotImplemented


@matrix_power.eager_kernel(Sparse, traced=True, always=lambda x, n: x.ndim > 2 and have_constant_indices(x))
def _matrix_power_sparse_eagerly(x: Sparse, n: Any) -> Result:
    """Square repeatedly outside a compiled call, where the number of entries is exact."""
    square = x.ndim > 1 and x.shape[-1] == x.shape[-2] and x.dtype.kind != "b"
    if not square or not isinstance(n, int) or n < 1:
        return NotImplemented
    return power(x.astype(dtypes.default_dtype("f")) if x.dtype.kind in "iu" else x, n)


_TRACED = (
    "The number of entries of a product of two sparse matrices is unknown while JAX traces, and the maximum number "
    "takes too much memory: call matmul outside jit for a Sparse result, or use sa.Product(x1, x2), which stores both "
    "factors."
)


@matmul.kernel(Sparse, Sparse, when=_both_plain)
def _of_static_size(x1: Sparse, x2: Sparse) -> Array:
    """Multiply with static sizes: each entry meets at most a row of the other factor, or all of its entries.

    The result has at most ``min(m, nnz) * min(p, nnz')`` entries. If they take more memory than the dense form,
    including their coordinates, the result is dense.
    """
    (m, _), p = x1.core_shape, x2.core_shape[1]
    batch = math.prod(jnp.broadcast_shapes(x1.batch_shape, x2.batch_shape))
    by_columns = x1.nnz > m or (x2.nnz <= p and x2.nnz < x1.nnz)
    entries = x2.nnz * min(m, x1.nnz) if by_columns else x1.nnz * min(p, x2.nnz)
    itemsize = x1.dtype.itemsize
    numbers = entries * (itemsize + 2 * np.dtype(index_dtype((m, p))).itemsize) // itemsize
    if numbers < m * p:
        if batch * numbers * itemsize > densify_policy.value.limit:
            allow_dense(x1, "matmul", batch * numbers, reason=_TRACED)
        if by_columns:
            product: Array = matrix_transpose.dispatch(_expanded_product(*map(matrix_transpose.dispatch, (x2, x1))))
            return product
        return _expanded_product(x1, x2)
    sizes = (x2.core_shape[0] * p, m * x1.core_shape[1])
    allow_dense(x1, "matmul", batch * max(m * p, min(sizes)), reason=_TRACED)
    if sizes[0] <= sizes[1]:
        return Dense.make((_times(x1, x2.dense_data(), _is_stored(x2)),))
    x1, x2 = matrix_transpose.dispatch(x2), matrix_transpose.dispatch(x1)
    return Dense.make((_times(x1, x2.dense_data(), _is_stored(x2)).mT,))


def _is_stored(x: Sparse) -> jax.Array:
    """Return the mask of the stored elements, in dense form."""
    return x.rebuild((jnp.ones(x.data.shape, bool),), None).dense_data()


def _expanded_product(x1: Sparse, x2: Sparse) -> Sparse:
    """Multiply each entry of `x1` with all entries of the matching row of `x2`, then add equal coordinates."""
    m, p = x1.core_shape[0], x2.core_shape[1]
    width, dtype = min(p, x2.nnz), index_dtype((m, p))
    batch = jnp.broadcast_shapes(x1.batch_shape, x2.batch_shape)
    if not x1.nnz * width:
        return zero_sparse((m, p), x1.dtype, batch)
    x2 = x2._in_order((0, 1))

    def expand(
        data1: jax.Array, rows1: jax.Array, between: jax.Array, data2: jax.Array, rows2: jax.Array, columns2: jax.Array
    ) -> tuple[jax.Array, ...]:
        first, _ = numerics.search((rows2,), (between,))
        behind, _ = numerics.search((rows2,), (between + 1,))
        place = first[:, None] + lax.iota(jnp.int32, width)
        meets = (place < behind[:, None]) & (rows1 < m)[:, None]
        data = data1[:, None] * data2.at[place].get(mode="clip")
        rows = jnp.where(meets, rows1[:, None].astype(dtype), m)
        columns = jnp.where(meets, columns2.at[place].get(mode="clip").astype(dtype), p)
        data = jnp.where(meets, data, jnp.zeros((), data.dtype))
        coordinates, data = numerics.sort((rows.ravel(), columns.ravel()), data.ravel())
        data, coordinates = numerics.sum_duplicates(data, coordinates, (m, p))
        return data, *coordinates

    arrays = [jnp.broadcast_to(a, batch + a.shape[len(x.batch_shape) :]) for x in (x1, x2) for a in (x.data, *x.coords)]
    leaves = numerics.over_batch(expand, len(batch))(*arrays)
    return Sparse.make((*leaves, None), ((m, p), (0, 1), True))


# ---- times diagonal and other structures with a sparse form -------------------------------------------------------------


@matmul.kernel(Sparse, Diagonal, when=_both_plain)
def _matmul_sparse_diagonal(x1: Sparse, x2: Diagonal) -> Sparse:
    """Scale the columns; a rectangular diagonal matrix drops some."""
    return _scaled(x1, x2, 1, (x1.core_shape[0], x2.core_shape[1]))


@matmul.kernel(Diagonal, Sparse, when=lambda x1, x2: x1.background is None and is_plain_matrix(x2))
def _matmul_diagonal_sparse(x1: Diagonal, x2: Sparse) -> Sparse:
    return _scaled(x2, x1, 0, (x1.core_shape[0], x2.core_shape[1]))


def _scaled(x: Sparse, diagonal_matrix: Diagonal, axis: int, shape: tuple[int, int]) -> Sparse:
    """Return a sparse matrix with its rows (axis 0) or columns multiplied by the entries of a diagonal matrix."""
    diag = diagonal_matrix.diag
    batch = jnp.broadcast_shapes(x.batch_shape, diag.shape[:-1])
    x = x.map_parameters(lambda leaf: jnp.broadcast_to(leaf, batch + leaf.shape[len(x.batch_shape) :]))
    diag = jnp.broadcast_to(diag, (*batch, diag.shape[-1]))
    if not diag.shape[-1]:
        return zero_sparse(shape, x.dtype, batch)
    fits = diag.shape[-1] >= x.core_shape[axis]
    bound, padded = x.nnz, x.padded or not fits

    def scale(data: jax.Array, diag: jax.Array, *coordinates: jax.Array) -> tuple[jax.Array, ...]:
        where = coordinates[axis]
        data = data * diag.at[where].get(mode="clip")
        if fits and shape == x.core_shape:
            return data, *coordinates
        inside = (coordinates[0] < x.core_shape[0]) & (where < diag.shape[-1])
        return numerics.keep_by(x.order, inside, data, coordinates, shape, bound)

    leaves = x._over_batch(scale, x.data, diag, *x.coords)
    return Sparse.make((*leaves, None), (shape, x.order, padded)).rebuild(leaves[:1], None)


def _pays(x1: Array, x2: Array) -> bool:
    """Return whether both factors have sparse forms and are matrices without a background."""
    plain = all(x.background is None and x.core_ndim == 2 for x in (x1, x2))
    return plain and has_sparse_form(x1) and has_sparse_form(x2)


@matmul.kernel(Sparse, Array, when=_pays, before="matmul_sparse")
@matmul.kernel(Array, Sparse, when=_pays, before="matmul_array_sparse")
def _of_sparse_forms(x1: Array, x2: Array) -> Array:
    product: Array = matmul.dispatch(to_sparse(x1), to_sparse(x2))
    return product


# ---- transposes and diagonals -------------------------------------------------------------------------------------------


@permute_dims.kernel(Sparse, when=lambda x, *, axes: all(a < len(x.batch_shape) for a in axes[: len(x.batch_shape)]))
def _permute_dims_sparse(x: Sparse, *, axes: tuple[int, ...]) -> Sparse:
    batch = len(x.batch_shape)
    ahead, behind = axes[:batch], [a - batch for a in axes[batch:]]
    leaves = (leaf.transpose((*ahead, *range(batch, leaf.ndim))) for leaf in (x.data, *(x.coords[a] for a in behind)))
    background = None if x.background is None else x.background.transpose(ahead)
    shape = tuple(x.core_shape[a] for a in behind)
    return Sparse.make((*leaves, background), (shape, tuple(behind.index(i) for i in x.order), x.padded))


@matrix_transpose.kernel(Sparse, when=lambda x: x.core_ndim >= 2)
def _matrix_transpose_sparse(x: Sparse) -> Sparse:
    """Exchange the coordinates; the entries and their order are unchanged."""
    last = x.core_ndim - 1
    axes = (*range(last - 1), last, last - 1)
    shape, coordinates = (tuple(part[a] for a in axes) for part in (x.core_shape, x.coords))
    return Sparse.make((x.data, *coordinates, x.background), (shape, tuple(axes.index(i) for i in x.order), x.padded))


@matrix_transpose.eager_kernel(Sparse)
def _matrix_transpose_sparse_eagerly(x: Sparse) -> Result:
    """Transpose without a compiled call, which would copy the parameters."""
    kernel = matrix_transpose.choose((x,), {})
    return NotImplemented if kernel is None or x.core_ndim < 2 else carried(kernel.run(x), x.assumptions)


@diagonal.kernel(Sparse, when=_is_matrix)
def _diagonal_sparse(x: Sparse, *, offset: int) -> Dense:
    length = diagonal_length(x.core_shape, offset)

    def pick(data: jax.Array, fill: jax.Array, rows: jax.Array, columns: jax.Array) -> jax.Array:
        on = (columns - rows == offset) & (rows < x.core_shape[0])
        place = jnp.where(on, jnp.minimum(rows, columns), length)
        return numerics.put(jnp.full(length, fill, data.dtype), (place,), data)

    return Dense.make((x._over_batch(pick, x.data, x._fill(), *x.coords),))
