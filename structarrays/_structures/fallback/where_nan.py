"""`isnan` and `isinf` of factored arrays: nowhere true if the parameters are finite and no product of them overflows.

No other structure represents which elements of a product of matrices are NaN. A sparse array does, and almost always it
has no entry. So `isnan` and `isinf` of such an array are `Sparse` in an eager call, and a selection by them keeps the
structure.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import densify
from ..._core.array.sharing import jit
from ..._core.dispatch.registry import Registry
from ..._core.families.conditions import is_inexact
from ..._core.families.factored import Factored, chain, with_batch
from ..._functions.comparisons_and_logic import isinf, isnan
from ..._functions.matrix_checks import real_dtype
from ..._functions.searching import where
from ..composite.product import Product
from ..composite.sum import Sum
from ..fill.array import Fill
from ..kronecker.array import Kronecker
from ..kronecker.kronecker_sum import KroneckerSum
from ..low_rank.array import LowRank
from ..permutation.array import Permutation
from ..sparse.array import Sparse, zero_sparse

if TYPE_CHECKING:
    import jax

    from ..._core.dispatch.function import Function
    from ..._core.typing import Result


magnitude_bound: Registry[jax.Array] = Registry("magnitude_bound")
"""``magnitude_bound.kernel(A)``: return an upper bound of the magnitudes of all elements and intermediate results;
infinite or NaN if a parameter is.
"""


def _bound(x: Array) -> jax.Array:
    return magnitude_bound.required((x,)).run(x)


@magnitude_bound.kernel(Array)
def _magnitude_bound_array(x: Array) -> jax.Array:
    """The largest entry. The magnitude of a complex entry is bounded by the sum of its parts, so that bounds can be
    multiplied.
    """
    if not (x.stores_entries or type(x) in (Dense, Fill)):
        return _unknown(x)
    leaves = (*x.entries, x.background) if x.stores_entries else x._value[0]
    return chain(jnp.maximum, [jnp.ones(()), *(jnp.max(_size(leaf), initial=0) for leaf in leaves if leaf is not None)])


@magnitude_bound.kernel(Factored)
def _unknown(x: Array) -> jax.Array:
    """No bound: the elements of this structure are not just products and sums of its parameters."""
    return jnp.full((), jnp.inf)


@magnitude_bound.kernel(Permutation)
def _magnitude_bound_permutation(x: Permutation) -> jax.Array:
    return jnp.ones(())


def _size(data: jax.Array) -> jax.Array:
    return jnp.abs(data.real) + jnp.abs(data.imag) if data.dtype.kind == "c" else jnp.abs(data)


@magnitude_bound.kernel(Kronecker)
def _magnitude_bound_kronecker(x: Kronecker) -> jax.Array:
    return chain(jnp.multiply, [*map(_bound, x.factors)])


@magnitude_bound.kernel(Product)
def _magnitude_bound_product(x: Product) -> jax.Array:
    lengths = [f.shape[-2] for f in x.factors[1:]]
    return chain(jnp.multiply, [*map(_bound, x.factors)]) * float(math.prod(map(_at_least_one, lengths)))


@magnitude_bound.kernel(LowRank)
def _magnitude_bound_low_rank(x: LowRank) -> jax.Array:
    return _bound(x.u) * _bound(x.v) * float(_at_least_one(x.rank))


def _at_least_one(n: int) -> int:
    return max(1, n)


@magnitude_bound.kernel(Sum)
@magnitude_bound.kernel(KroneckerSum)
def _magnitude_bound_sum(x: Sum | KroneckerSum) -> jax.Array:
    return chain(jnp.add, [*map(_bound, x.parts)])


@jit
def _is_finite(x: Array) -> jax.Array:
    return jnp.isfinite((2 * _bound(x)).astype(real_dtype(x.dtype)))  # twice, since the bound is rounded, too


def _register(function: Function[..., Array]) -> None:
    @function.eager_kernel(Factored, when=is_inexact)
    def _comparison_with_nan_of_factored(x: Factored) -> Result:
        if magnitude_bound.find((type(x),))[0].run is _unknown:
            return NotImplemented
        if np.asarray(_is_finite(x)):
            return zero_sparse(x.shape[-2:], bool, x.shape[:-2])
        return Sparse.from_dense(function(densify(x, function.name)), core_ndim=2)


_register(isnan)
_register(isinf)


def _is_nowhere(condition: Sparse, x1: Array, x2: Array) -> bool:
    shape = jnp.broadcast_shapes(condition.shape, x1.shape, x2.shape)
    return condition.data.shape[-1] == 0 and condition.background is None and x2.shape[-2:] == shape[-2:]


@where.kernel(Sparse, Array, Factored, when=_is_nowhere)
def _where_sparse_array_factored(condition: Sparse, x1: Array, x2: Factored) -> Array:
    return with_batch(x2, jnp.broadcast_shapes(condition.shape, x1.shape, x2.shape)[:-2])
