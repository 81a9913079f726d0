"""Products and inverses of permutations, and the kernels that use their sparse form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import cast
from ..._core.families.batch import concat_pair
from ..._core.families.join import is_zero_outside, join_pair, meet_pair
from ..._core.families.other_forms import by_form
from ..._core.families.reduction_rule import reduce_core, squared_deviations
from ..._functions.creation import tril, triu
from ..._functions.elementwise import abs as magnitude
from ..._functions.elementwise import positive, sign, square
from ..._functions.indexing import index
from ..._functions.linalg import diagonal, matmul, matrix_transpose
from ..._functions.manipulation import flip, roll
from ..._functions.matrix_checks import real_dtype
from ..._functions.rounding_and_parts import ceil, conj, floor, real, trunc
from ..._functions.rounding_and_parts import round as rounded
from ..fill.array import Fill, fills_matrices
from ..sparse.array import Sparse
from ..sparse.compressed_rows import has_values, selected
from ..sparse.numerics import rolled, sort_by
from ..sparse.sparse_elementwise import register_exact
from ..sparse.sparse_joins import has_sparse_form, have_sparse_forms, join_sparse, sparse_form, to_sparse
from . import numerics
from .array import Permutation, mapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._core.dispatch.function import Function
    from ..._core.families.reduction_rule import Monoid
    from ..._core.typing import Result

# ---- products -------------------------------------------------------------------------------------------------------


@matmul.kernel(Permutation, Dense)
def _matmul_permutation_dense(x1: Permutation, x2: Dense) -> Dense:
    return Dense.make((_gathered(x1.p, x2.data),))


def _gathered(p: jax.Array, data: jax.Array) -> jax.Array:
    """Permute the rows of dense data."""
    core = min(2, data.ndim)
    batch = jnp.broadcast_shapes(p.shape[:-1], data.shape[:-core])
    if p.ndim == 1:
        return data.at[p].get(mode="promise_in_bounds") if data.ndim == 1 else jnp.take(data, p, axis=-2, mode="clip")
    data = jnp.broadcast_to(data, batch + data.shape[-core:])
    return mapped(numerics.apply, jnp.broadcast_to(p, batch + p.shape[-1:]), data)


@matmul.kernel(Dense, Permutation)
def _matmul_dense_permutation(x1: Dense, x2: Permutation) -> Dense:
    inverse = mapped(numerics.inverse, x2.p)
    if x1.ndim == 1:
        return Dense.make((_gathered(inverse, x1.data),))
    if inverse.ndim == 1:
        return Dense.make((jnp.take(x1.data, inverse, axis=-1, mode="clip"),))
    return Dense.make((_gathered(inverse, x1.data.mT).mT,))


@matmul.kernel(Permutation, Permutation)
def _matmul_permutation_permutation(x1: Permutation, x2: Permutation) -> Permutation:
    batch = jnp.broadcast_shapes(x1.batch_shape, x2.batch_shape)
    p1, p2 = (jnp.broadcast_to(x.p, (*batch, x.shape[-1])) for x in (x1, x2))
    return Permutation.make((mapped(numerics.apply, p1, p2),), x1.dtype)


def _moves_rows(x1: Permutation, x2: Array) -> bool:
    return is_zero_outside(x2) and x2.core_ndim == 2 and has_sparse_form(x2)


@matmul.kernel(Permutation, Sparse, when=_moves_rows)
@matmul.kernel(Permutation, Array, when=_moves_rows)
def _matmul_permutation_sparse(x1: Permutation, x2: Array) -> Sparse:
    """Move row r of the other factor to the row i with ``p[i] == r``."""
    return _relabelled(to_sparse(x2), mapped(numerics.inverse, x1.p), 0)


@matmul.kernel(Sparse, Permutation, when=lambda x1, x2: _moves_rows(x2, x1))
@matmul.kernel(Array, Permutation, when=lambda x1, x2: _moves_rows(x2, x1))
def _matmul_sparse_permutation(x1: Array, x2: Permutation) -> Sparse:
    """Move column k of the other factor to the column ``p[k]``."""
    return _relabelled(to_sparse(x1), x2.p, 1)


@matmul.eager_kernel(Permutation, Sparse)
def _matmul_permutation_sparse_eagerly(x1: Permutation, x2: Sparse) -> Result:
    """Take rows by the routines of SciPy."""
    return _taken(x2, (np.asarray(x1.p), slice(None))) if _fit(x1, x2, x1, x2) else NotImplemented


@matmul.eager_kernel(Sparse, Permutation)
def _matmul_sparse_permutation_eagerly(x1: Sparse, x2: Permutation) -> Result:
    """Take columns by the routines of SciPy."""
    if not _fit(x1, x2, x2, x1):
        return NotImplemented
    inverse = np.empty(x2.shape[-1], np.int32)
    inverse[np.asarray(x2.p)] = np.arange(x2.shape[-1], dtype=np.int32)
    return _taken(x1, (slice(None), inverse))


def _fit(x1: Array, x2: Array, p: Permutation, x: Sparse) -> bool:
    """Return whether a product is a selection of rows or columns of a matrix without a background."""
    matrices = x.ndim == p.ndim == 2 and x1.shape[-1] == x2.shape[0]
    return matrices and x.background is None and p.dtype == x.dtype and has_values(p.p)


def _taken(x: Sparse, key: tuple[slice | np.ndarray, ...]) -> Result:
    result = selected(x, key)
    return NotImplemented if result is None else result


def _relabelled(x: Sparse, labels: jax.Array, axis: int) -> Sparse:
    """Return a sparse matrix with its rows (axis 0) or columns renumbered."""
    batch = jnp.broadcast_shapes(x.batch_shape, labels.shape[:-1])
    x = x.map_parameters(lambda leaf: jnp.broadcast_to(leaf, batch + leaf.shape[len(x.batch_shape) :]))
    labels = jnp.broadcast_to(labels, (*batch, labels.shape[-1]))

    def relabel(data: jax.Array, labels: jax.Array, *coordinates: jax.Array) -> tuple[jax.Array, ...]:
        moved = labels.at[coordinates[axis]].get(mode="clip") if labels.shape[0] else coordinates[axis]
        inside = coordinates[0] < x.core_shape[0]
        places = [jnp.where(inside, moved, c) if i == axis else c for i, c in enumerate(coordinates)]
        return sort_by(x.order, data, *places)

    leaves = x._over_batch(relabel, x.data, labels, *x.coords)
    return Sparse.make((*leaves, None), x.meta)


# ---- the transpose -----------------------------------------------------------------------------------


@matrix_transpose.kernel(Permutation)
def _matrix_transpose_permutation(x: Permutation) -> Permutation:
    return x._adjoint()


# ---- functions of ones and zeros that change neither ------------------------------------------------------------------


def _keep(function: Function[..., Array]) -> None:
    @function.kernel(Permutation)
    def _permutation_itself(x: Permutation) -> Permutation:
        return x


_function: Function[..., Array]

for _function in (conj, positive, square, sign, ceil, floor, trunc, rounded):
    _keep(_function)


@magnitude.kernel(Permutation)
@real.kernel(Permutation)
def _permutation_as_it_is(x: Permutation) -> Array:
    return cast(x, real_dtype(x.dtype)) if x.dtype.kind == "c" else x


# ---- the sparse form ----------------------------------------------------------------------------------------------------


@by_form(squared_deviations, diagonal, tril, triu, of=Permutation)
@sparse_form.kernel(Permutation)
def sparse_form_permutation(x: Permutation) -> Sparse:
    """Return the ones and their coordinates."""
    return x.freed()


join_pair.kernel(Permutation, Array, when=have_sparse_forms)(join_sparse)


@join_pair.kernel(Permutation, Fill, when=lambda x, y: fills_matrices(y))
def _join_pair_permutation_fill(x: Permutation, y: Fill) -> tuple[Array, Array]:
    return join_pair.required((x.freed(), y)).run(x.freed(), y)


@meet_pair.kernel(Permutation, Array)
def _meet_pair_permutation(x: Permutation, y: Array) -> Array:
    kernel = meet_pair.choose((x.freed(), y), {})
    return x.freed() if kernel is None else kernel.run(x.freed(), y)


@reduce_core.kernel(Permutation)
def _reduce_core_permutation(x: Permutation, *, monoid: Monoid, axes: tuple[int, ...], keepdims: bool) -> Dense:
    """Reduce: every row and column has a single one, so all results are equal."""
    # XLA would treat the ones of the sparse form as a constant and reduce it at compile time, which takes seconds.
    n, lines = x.shape[-1], x.shape[-1] if len(axes) == 2 else 1
    value = jnp.full((), monoid.identity(x.dtype))
    for element, count in ((1, lines if n else 0), (0, lines * (n - 1))):
        if count > 0:
            value = monoid.combine(value, monoid.repeat(jnp.full((), element, x.dtype), count))
    shape = tuple(n if axis not in axes else 1 for axis in (-2, -1) if keepdims or axis not in axes)
    return Dense.make((jnp.broadcast_to(value, (*x.batch_shape, *shape)),))


# ---- rows and columns ---------------------------------------------------------------------------------------------------


def _selects(x: Permutation, *, operands: Sequence[jax.Array], key: tuple[tuple[Any, ...], ...]) -> bool:
    """Return whether a key is a one-dimensional index array, and the other axis is a full slice."""
    whole = ("slice", 0, x.shape[-1], 1)
    return key in ((("array",), whole), (whole, ("array",))) and operands[0].ndim == 1


@index.kernel(Permutation, when=_selects)
def _index_permutation(x: Permutation, *, operands: Sequence[jax.Array], key: tuple[tuple[Any, ...], ...]) -> Sparse:
    """Select rows or columns. Each has one entry, so the number of entries is known under `jit`, too."""
    (places,), n, axis = operands, x.shape[-1], key.index(("array",))
    lines = x.p if axis == 0 else mapped(numerics.inverse, x.p)
    there = lines[..., jnp.where(places < 0, places + n, places)]
    here = jax.lax.broadcasted_iota(there.dtype, there.shape, there.ndim - 1)
    shape, coordinates = [n, n], (here, there) if axis == 0 else (there, here)
    shape[axis] = places.shape[0]
    ones = jnp.ones(there.shape, x.dtype)
    return Sparse.make((ones, *coordinates, None), (tuple(shape), (axis, 1 - axis), False))


@flip.kernel(Permutation)
def _flip_permutation(x: Permutation, *, axis: tuple[int, ...]) -> Permutation:
    p = jnp.flip(x.p, [a for a in axis if a < x.ndim - 1])
    return Permutation.make((x.shape[-1] - 1 - p if x.ndim - 1 in axis else p,), x.dtype)


@roll.kernel(Permutation, when=lambda x, *, shift, axis: axis is not None)
def _roll_permutation(x: Permutation, *, shift: tuple[jax.Array, ...], axis: tuple[int, ...]) -> Permutation:
    p = x.p
    for s, a in zip(shift, axis, strict=True):
        p = jnp.roll(p, s, a) if a < x.ndim - 1 else rolled(p, s, x.shape[-1])
    return Permutation.make((p,), x.dtype)


@concat_pair.kernel(Permutation, Permutation, when=lambda x, y, *, axis: axis < -2)
def _concat_pair_permutation_permutation(x: Permutation, y: Permutation, *, axis: int) -> Permutation:
    return Permutation.make((jnp.concatenate([x.p, y.p], axis + 1),), x.dtype)


register_exact(Permutation)
