"""The entry form of Kronecker products with banded or sparse factors, and their sums and products with arrays that store
entries.

Banded factors give a banded product. Banded factors and then dense ones give diagonals of blocks: ``I ⊗ B`` is block diagonal.
Other products are sparse.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, cast

import jax
import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.sharing import jit
from ..._core.families.factored import chain, in_either_order, merge_pair, stored
from ..._core.families.join import is_zero_outside
from ..._functions.linear_algebra import matmul
from ..._numerics import kronecker_factors
from ..._numerics.symbolic import is_symbolic, smaller
from ..banded.array import Banded
from ..banded.diagonal import Diagonal
from ..blocks.array import Blocks
from ..blocks.block_banded import block_banded
from ..blocks.block_diagonal import block_diagonal
from ..composite.entry_forms import entry_form, entry_form_of, few, number_stored, of_shapes, shapes_of_form
from ..sparse import numerics
from ..sparse.array import Sparse
from ..sparse.sorted_entries import index_dtype
from ..sparse.sparse_joins import full_sparse, to_sparse
from ..toeplitz.array import Toeplitz, is_narrow
from .array import Kronecker, banded_product, is_diagonal, is_scaled_identity
from .kronecker_sum import KroneckerSum, as_sum

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._core.typing import Result

_GROWTH = 3
"""A sum or a product with an array that stores entries takes the entry form if it stores at most this many times as much as
both."""


def _is_banded(x: Array) -> bool:
    return x.shape[-2] == x.shape[-1] and (
        (isinstance(x, Banded) and x.background is None) or (isinstance(x, Toeplitz) and is_narrow(x))
    )


def _is_sparse(x: Array) -> bool:
    return type(x) is Sparse and x.core_ndim == 2 and is_zero_outside(x)


def _leading_banded(factors: Sequence[Array]) -> int:
    """The number of banded factors before the first of another kind."""
    return len(list(itertools.takewhile(_is_banded, factors)))


@entry_form.kernel(Kronecker)
def _entry_form_kronecker(x: Kronecker) -> Array | None:
    factors, count = x.factors, _leading_banded(x.factors)
    if count == len(factors):
        return few(x.to_banded())
    others = factors[count:]
    if any(map(_is_sparse, others)) or any(map(_is_banded, others)):
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
    if _is_banded(x):
        return to_sparse(x.to_banded())
    return cast("Sparse", x) if _is_sparse(x) else full_sparse(x)


def _sparse_product(x: Sparse, y: Sparse) -> Sparse:
    """The product of two sparse matrices. An entry is padding if one of its two factors is."""
    shape = tuple(a * b for a, b in zip(x.core_shape, y.core_shape, strict=True))
    dtype = index_dtype(shape)
    inside = _pairs(x.coords[0] < x.core_shape[0], y.coords[0] < y.core_shape[0], jnp.logical_and)
    coordinates = [
        jnp.where(inside, _pairs(a.astype(dtype) * n, b.astype(dtype), jnp.add), size)
        for a, b, n, size in zip(x.coords, y.coords, y.core_shape, shape, strict=True)
    ]
    data = _pairs(x.data, y.data, jnp.multiply)

    def in_order(data: jax.Array, *coordinates: jax.Array) -> tuple[jax.Array, ...]:
        return numerics.sort_by((0, 1), data, *coordinates)

    leaves = numerics.over_batch(in_order, data.ndim - 1)(data, *coordinates)
    return Sparse.make((*leaves, None), (shape, (0, 1), x.padded or y.padded))


def _pairs(a: jax.Array, b: jax.Array, function: Callable[..., jax.Array]) -> jax.Array:
    """Apply a function to all pairs of elements of the last axes."""
    pairs = function(a[..., :, None], b[..., None, :])
    return pairs.reshape(*pairs.shape[:-2], pairs.shape[-2] * pairs.shape[-1])


@entry_form.kernel(KroneckerSum)
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
    return None if form is None or _grows(form, x, y) else in_either_order(merge_pair, x, _form(y))


for _entries in (
    Banded,
    Blocks,
):  # not for `Sparse`: a product with both terms is faster than one with a union of patterns
    for _factored in (Kronecker, KroneckerSum):
        merge_pair.kernel(_entries, _factored)(_merge_pair_entries_kronecker)
del _entries, _factored


def _form(x: Array) -> Array:
    return cast("Array", entry_form_of(x))


def _in_forms(x1: Array, x2: Array) -> list[Array]:
    return [_form(x) if isinstance(x, Kronecker) else x for x in (x1, x2)]


def _multiplies(x1: Array, x2: Array) -> bool:
    """Return whether the product with the entry form has a structure, and stores hardly more than both arrays."""
    product, other = (x1, x2) if isinstance(x1, Kronecker) else (x2, x1)
    if is_diagonal(cast("Kronecker", product)) or not _may_take_form(product, other) or shapes_of_form(product) is None:
        return False

    def fits(x1: Array, x2: Array) -> bool:
        forms = _in_forms(x1, x2)
        if matmul.choose(forms, {}) is None:
            return False
        result = matmul.dispatch(*forms)
        return result.stores_entries and type(result) is not Dense and not _grows(result, x1, x2)

    return of_shapes(fits, x1, x2)


@matmul.kernel(Blocks, Kronecker, when=_multiplies)
@matmul.kernel(Banded, Kronecker, when=_multiplies)
@matmul.kernel(Diagonal, Kronecker, when=_multiplies, before="matmul_diagonal_kronecker")
@matmul.kernel(Kronecker, Blocks, when=_multiplies)
@matmul.kernel(Kronecker, Banded, when=_multiplies)
@matmul.kernel(Kronecker, Diagonal, when=_multiplies, before="matmul_kronecker_diagonal")
def _matmul_entries_kronecker(x1: Array, x2: Array) -> Array:
    product: Array = matmul.dispatch(*_in_forms(x1, x2))
    return product


_compiled_form: Callable[[Array], Array] = jit(entry_form_of)


def _multiplies_sparse(x1: Array, x2: Array) -> bool:
    """Return whether the entry form has a static pattern, and the product stores hardly more than both arrays."""
    product, other = (x1, x2) if isinstance(x1, Kronecker) else (x2, x1)
    if not _is_sparse(other) or not _may_take_form(product, other):
        return False
    form = shapes_of_form(product)
    if form is None or not form.static_pattern:
        return False
    in_a_line = number_stored(form) // max(1, form.shape[-2 if product is x2 else -1])
    numbers = number_stored(other)
    return bool(numbers * in_a_line <= _GROWTH * (numbers + stored(product)))


@matmul.eager_kernel(Sparse, Kronecker, when=_multiplies_sparse, traced=True)
@matmul.eager_kernel(Kronecker, Sparse, when=_multiplies_sparse, traced=True)
def _matmul_sparse_kronecker_eagerly(x1: Array, x2: Array) -> Result:
    """Multiply outside a compiled call, where the number of entries of the result is known."""
    result: Array = matmul(*(_compiled_form(x) if isinstance(x, Kronecker) else x for x in (x1, x2)))
    return result
