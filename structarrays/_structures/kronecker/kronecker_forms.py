"""The entry form of Kronecker products with banded or sparse factors, and their sums and products with arrays that store
entries.

Banded factors give a banded product. Banded factors and then dense ones give diagonals of blocks: ``I ⊗ B`` is block diagonal.
Other products are sparse.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.array.base import Array
from ..._core.array.flattening import as_indices, barred, common_indices, expand_indices
from ..._core.array.sharing import jit
from ..._core.dispatch.contexts import strong_zeros_policy
from ..._core.families.factored import chain, in_either_order, merge_pair, stored
from ..._core.families.join import is_zero_outside
from ..._functions.linear_algebra import matmul
from ..._numerics import kronecker_factors
from ..._numerics.symbolic import is_symbolic, smaller
from ..banded.array import Banded
from ..banded.diagonal import Diagonal
from ..blocks.array import Blocks
from ..blocks.block_banded import block_banded
from ..blocks.block_diagonal import BlockDiagonal, block_diagonal
from ..composite.entry_forms import entry_form, entry_form_of, few, number_stored, of_shapes, shapes_of_form
from ..sparse import numerics
from ..sparse.array import Sparse
from ..sparse.sorted_entries import index_dtype
from ..sparse.sparse_joins import full_sparse, sparse_with_values
from ..toeplitz.array import Toeplitz, is_narrow
from .array import Kronecker, banded_product, is_scaled_identity
from .kronecker_sum import KroneckerSum, as_sum

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._core.typing import Result

_GROWTH = 3
"""A sum or a product with an array that stores entries takes the entry form if the result stores at most this many times as much
as both."""


def _stores_bands(x: Array) -> bool:
    return (isinstance(x, Banded) and x.background is None) or (isinstance(x, Toeplitz) and is_narrow(x))


def _is_banded(x: Array) -> bool:
    return x.shape[-2] == x.shape[-1] and _stores_bands(x)


def _is_sparse(x: Array) -> bool:
    return type(x) is Sparse and x.core_ndim == 2 and is_zero_outside(x)


def _leading_banded(factors: Sequence[Array]) -> int:
    """The number of banded factors before the first of another kind. The first one may be rectangular."""
    if not _stores_bands(factors[0]):
        return 0
    return 1 + len(list(itertools.takewhile(_is_banded, factors[1:])))


def _absorbs(x: Kronecker | KroneckerSum) -> bool:
    """Return whether zeros outside of the blocks of ``I ⊗ B``, which are multiplied by elements of B, absorb NaN."""
    return strong_zeros_policy.value


@entry_form.kernel(Kronecker, when=_absorbs)
def _entry_form_kronecker(x: Kronecker) -> Array | None:
    factors, count = x.factors, _leading_banded(x.factors)
    if count == len(factors):
        return few(x.to_banded())
    others = factors[count:]
    if any(_is_sparse(f) or _stores_bands(f) for f in others):
        return few(_sparse(factors))
    return few(_on_block_diagonals(factors[:count], others)) if count else None


def _on_block_diagonals(banded: Sequence[Array], others: Sequence[Array]) -> Array:
    """The product of banded matrices and dense matrices."""
    outer = chain(banded_product, [cast("Banded", f.to_banded()) for f in banded]).freed()
    inner = chain(kronecker_factors.kron, [f.dense_data() for f in others])[..., None, :, :]
    blocks = {k: d[..., None, None] * inner for k, d in zip(outer.offsets, outer.diagonals, strict=True)}
    if list(blocks) == [0]:
        return block_diagonal([blocks[0]])
    return block_banded(blocks, outer.core_shape, inner.shape[-2:], dtype=inner.dtype, batch=inner.shape[:-3])


def _sparse(factors: Sequence[Array]) -> Sparse:
    """The product of matrices of which some are sparse."""
    return chain(_sparse_product, list(map(_as_sparse, factors)))


def _as_sparse(x: Array) -> Sparse:
    if _stores_bands(x):
        return sparse_with_values(x.to_banded())
    return cast("Sparse", x) if _is_sparse(x) else full_sparse(x)


def _sparse_product(x: Sparse, y: Sparse) -> Sparse:
    """The product of two sparse matrices. An entry is padding if one of its two factors is."""
    shape = tuple(a * b for a, b in zip(x.core_shape, y.core_shape, strict=True))
    dtype = index_dtype(shape)
    if _is_static(x) and _is_static(y):
        return _product_of_patterns(x, y, shape, dtype)
    inside = _pairs(x.coords[0] < x.core_shape[0], y.coords[0] < y.core_shape[0], jnp.logical_and)
    coordinates = [
        jnp.where(inside, _pairs(a.astype(dtype) * n, b.astype(dtype), jnp.add), size)
        for a, b, n, size in zip(x.coords, y.coords, y.core_shape, shape, strict=True)
    ]
    data = _pairs(x.data, y.data, jnp.multiply)
    leaves = numerics.over_batch(functools.partial(numerics.sort_by, (0, 1)), data.ndim - 1)(data, *coordinates)
    return Sparse.make((*leaves, None), (shape, (0, 1), x.padded or y.padded))


def _is_static(x: Sparse) -> bool:
    """Return whether the coordinates are known while JAX traces, and equal for all matrices of a stack."""
    return not x.padded and 0 not in x.batch_shape and all(common_indices(c) is not None for c in x.coords)


def _product_of_patterns(x: Sparse, y: Sparse, shape: tuple[int, ...], dtype: Any) -> Sparse:
    """The product of two sparse matrices with static coordinates, which stay static."""
    own, other = ([np.asarray(common_indices(c)) for c in z.coords] for z in (x, y))
    rows, columns = (
        np.add.outer(a.astype(dtype) * n, b.astype(dtype)).ravel()
        for a, b, n in zip(own, other, y.core_shape, strict=True)
    )
    order = np.lexsort((columns, rows))
    data = _pairs(x.data, y.data, jnp.multiply)[..., barred(order)]
    coordinates = [expand_indices(as_indices(c[order]), data.shape[:-1]) for c in (rows, columns)]
    return Sparse.make((data, *coordinates, None), (shape, (0, 1), False))


def _pairs(a: jax.Array, b: jax.Array, function: Callable[..., jax.Array]) -> jax.Array:
    """Apply a function to all pairs of elements of the last axes."""
    pairs = function(a[..., :, None], b[..., None, :])
    return pairs.reshape(*pairs.shape[:-2], pairs.shape[-2] * pairs.shape[-1])


@entry_form.kernel(KroneckerSum, when=_absorbs)
def _entry_form_kronecker_sum(x: KroneckerSum) -> Array | None:
    return few(x.to_banded()) if all(map(_is_banded, x.factors)) else entry_form_of(as_sum(x))


# ---- sums and products with arrays that store entries ----------------------------------------------------------------


def _may_take_form(x: Array, other: Array) -> bool:
    return is_zero_outside(other) and not is_scaled_identity(other) and not is_symbolic(math.prod(x.shape))


def _grows(form: Array, *operands: Array) -> bool:
    """Return whether an array that stores entries stores much more than the operands."""
    numbers = sum(number_stored(x) if x.stores_entries else stored(x) for x in operands)
    return smaller(_GROWTH * numbers, number_stored(form))


def _merge_pair_entries_kronecker(x: Array, y: Kronecker | KroneckerSum) -> Array | None:
    if not _may_take_form(y, x):
        return None
    form = shapes_of_form(y)
    if form is None or type(form) is Sparse or _grows(form, x, y):
        return None
    if type(form) is BlockDiagonal and isinstance(x, Banded) and not isinstance(x, Diagonal):
        return None
    return in_either_order(merge_pair, x, _form(y))


# Not for `Sparse`, nor for bands and blocks: products with both terms are faster than with a union of patterns.
for _entries in (Banded, Blocks):
    for _factored in (Kronecker, KroneckerSum):
        merge_pair.kernel(_entries, _factored)(_merge_pair_entries_kronecker)
del _entries, _factored


def _form(x: Array) -> Array:
    return cast("Array", entry_form_of(x))


def _in_forms(x1: Array, x2: Array) -> list[Array]:
    return [_form(x) if isinstance(x, Kronecker) else x for x in (x1, x2)]


def _operands(x1: Array, x2: Array) -> tuple[Kronecker, Array]:
    return cast("tuple[Kronecker, Array]", (x1, x2) if isinstance(x1, Kronecker) else (x2, x1))


def _multiplies_by_blocks(x1: Array, x2: Array) -> bool:
    """Return whether the product is block diagonal, and stores hardly more than both arrays."""
    product, other = _operands(x1, x2)
    if not _may_take_form(product, other) or type(shapes_of_form(product)) is not BlockDiagonal:
        return False

    def fits(x1: Array, x2: Array) -> bool:
        forms = _in_forms(x1, x2)
        if matmul.choose(forms, {}) is None:
            return False
        result = matmul.dispatch(*forms)
        return type(result) is BlockDiagonal and not _grows(result, x1, x2)

    return of_shapes(fits, x1, x2)


@matmul.kernel(BlockDiagonal, Kronecker, when=_multiplies_by_blocks)
@matmul.kernel(Diagonal, Kronecker, when=_multiplies_by_blocks, before="matmul_diagonal_kronecker")
@matmul.kernel(Kronecker, BlockDiagonal, when=_multiplies_by_blocks)
@matmul.kernel(Kronecker, Diagonal, when=_multiplies_by_blocks, before="matmul_kronecker_diagonal")
def _matmul_blocks_kronecker(x1: Array, x2: Array) -> Array:
    product: Array = matmul.dispatch(*_in_forms(x1, x2))
    return product


# ---- products with sparse arrays -------------------------------------------------------------------------------------

_compiled_form: Callable[[Array], Array] = jit(entry_form_of)


def _keeps_pattern(x1: Array, x2: Array) -> bool:
    """Return whether the product with a block-diagonal form stores hardly more entries than the sparse factor.

    So it is for the design of a mixed model: all entries of a row belong to one block.
    """
    product, other = cast("tuple[Kronecker, Sparse]", _operands(x1, x2))
    if not _is_sparse(other) or other.ndim > 2 or product.ndim > 2 or not _may_take_form(product, other):
        return False
    blocks = _repeated_blocks(product)
    if blocks is None:
        return False
    count, height, width = blocks
    line = 0 if product is x2 else 1
    if other.order[0] != line:
        return False
    size, width = (height, width) if line == 0 else (width, height)
    lines, places = (np.asarray(other.coords[axis], np.int64) for axis in (line, 1 - line))
    # The entries are in the order of lines. Padding counts as one block more.
    of_lines = np.diff(lines * (count + 1) + places // max(1, size))
    return bool(2 * (np.count_nonzero(of_lines) + 1) * width <= 3 * len(lines))


def _repeated_blocks(x: Kronecker) -> tuple[int, int, int] | None:
    """Return how many blocks of which shape are the form of square diagonal factors and then dense ones, if it has few entries."""
    diagonal = list(itertools.takewhile(lambda f: isinstance(f, Diagonal) and _is_banded(f), x.factors))
    others = x.factors[len(diagonal) :]
    count = math.prod(f.shape[-1] for f in diagonal)
    if not others or count < 4 or any(_is_banded(f) or _is_sparse(f) for f in others):
        return None
    return count, math.prod(f.shape[-2] for f in others), math.prod(f.shape[-1] for f in others)


@matmul.eager_kernel(Sparse, Kronecker, when=_keeps_pattern, traced=True)
@matmul.eager_kernel(Kronecker, Sparse, when=_keeps_pattern, traced=True)
def _matmul_sparse_kronecker_eagerly(x1: Array, x2: Array) -> Result:
    """Multiply outside a compiled call, where the number of entries of the result is known."""
    result: Array = matmul(*(_compiled_form(x) if isinstance(x, Kronecker) else x for x in (x1, x2)))
    return result
