"""Reductions and differences of Toeplitz, Circulant and Hankel matrices: rows are windows of the stored values."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from ..._core.array.dense import Dense
from ..._core.families.conditions import along_core_axis
from ..._core.families.reduction_rule import reduce_core, squared_deviations, squared_magnitude
from ..._functions.linalg import matrix_transpose
from ..._functions.utility import diff
from ..._numerics import toeplitz_entries
from .array import Toeplitz, between, covering, toeplitz
from .circulant import Circulant
from .hankel import Hankel

if TYPE_CHECKING:
    from collections.abc import Callable

    import jax

    from ..._core.array.base import Array
    from ..._core.families.reduction_rule import Monoid


def _by_rows(reduce: Callable[..., jax.Array]) -> Callable[..., Dense]:
    """Make a kernel for all axes from a reduction of each row: ``reduce(x, monoid) -> (..., m)``."""

    @functools.wraps(reduce)
    def kernel_of_axes(x: Array, *, monoid: Monoid, axes: tuple[int, ...], keepdims: bool, **options: Any) -> Dense:
        columns = axes == (-2,)
        rows = reduce(matrix_transpose.dispatch(x) if columns else x, monoid, **options)
        if len(axes) == 2:
            rows = monoid.reduce(rows, axis=(rows.ndim - 1,), keepdims=False)
            return Dense.make((rows[..., None, None] if keepdims else rows,))
        return Dense.make((jnp.expand_dims(rows, axes[0]) if keepdims else rows,))

    return kernel_of_axes


# ---- by a monoid --------------------------------------------------------------------------------------------------


@reduce_core.kernel(Toeplitz)
@_by_rows
def _reduce_core_toeplitz(x: Toeplitz, monoid: Monoid) -> jax.Array:
    if not monoid.zero_is_identity(x.dtype):
        x = covering(x)
    return toeplitz_entries.reduce_rows(x.values, x.first, x.core_shape, monoid.combine, monoid.identity(x.dtype))


@reduce_core.kernel(Hankel)
@_by_rows
def _reduce_core_hankel(x: Hankel, monoid: Monoid) -> jax.Array:
    m, n = x.core_shape
    if 0 in (m, n):
        return jnp.full((*x.batch_shape, m), monoid.identity(x.dtype), x.dtype)
    return toeplitz_entries.windows((x.values,), n, lambda a, b, *_: (monoid.combine(a[0], b[0]),))[0]


@reduce_core.kernel(Circulant)
def _reduce_core_circulant(x: Circulant, *, monoid: Monoid, axes: tuple[int, ...], keepdims: bool) -> Dense:
    """Reduce one row: every row and every column has the same entries."""
    n = x.c.shape[-1]
    line = monoid.reduce(x.c, axis=(x.c.ndim - 1,), keepdims=True)
    if len(axes) == 2:
        total = monoid.repeated(line, n)
        return Dense.make((total[..., None] if keepdims else total[..., 0],))
    line = jnp.broadcast_to(line, x.c.shape)
    return Dense.make((jnp.expand_dims(line, axes[0]) if keepdims else line,))


# ---- the sum of squared deviations --------------------------------------------------------------------------------


def _deviations(values: jax.Array, width: int, mean: jax.Array) -> jax.Array:
    """Return the squared deviations of each window of `values` from `mean` (..., windows).

    They are the deviations from the mean of the window, plus the deviation of that mean.
    """
    own, squares = toeplitz_entries.spread(values, width, squared_magnitude)
    return squares + squared_magnitude(own - mean) * width


def _about(squares_of_rows: Callable[..., jax.Array]) -> Callable[..., Dense]:
    """Make a kernel of `squared_deviations` from ``squares_of_rows(x, mean)``, with means (..., m or 1) of the rows."""

    @functools.wraps(squares_of_rows)
    def run(x: Array, *, mean: Dense, monoid: Monoid, axes: tuple[int, ...], keepdims: bool) -> Dense:
        means = mean.data
        means = means[..., 0, :] if axes == (-2,) else means[..., 0]
        return _by_rows(lambda x, monoid, mean: squares_of_rows(x, mean))(
            x, monoid=monoid, axes=axes, keepdims=keepdims, mean=means
        )

    return run


def _is_empty(x: Toeplitz | Hankel) -> bool:
    return 0 in x.core_shape


@squared_deviations.kernel(Toeplitz)
@_about
def _squared_deviations_toeplitz(x: Toeplitz, mean: jax.Array) -> jax.Array:
    if _is_empty(x):
        return jnp.zeros((*x.batch_shape, x.shape[-2]), mean.real.dtype)
    # The windows follow the rows from the last to the first.
    return _deviations(covering(x).values, x.shape[-1], mean[..., ::-1])[..., ::-1]


@squared_deviations.kernel(Hankel)
@_about
def _squared_deviations_hankel(x: Hankel, mean: jax.Array) -> jax.Array:
    if _is_empty(x):
        return jnp.zeros((*x.batch_shape, x.shape[-2]), mean.real.dtype)
    return _deviations(x.values, x.shape[-1], mean)


@squared_deviations.kernel(Circulant)
def _squared_deviations_circulant(
    x: Circulant, *, mean: Dense, monoid: Monoid, axes: tuple[int, ...], keepdims: bool
) -> Dense:
    """Compute the deviations of one row: every row and every column has the same entries, and so the same mean."""
    squares = squared_magnitude(x.c - mean.data[..., 0, :1] if x.size else x.c)
    return _reduce_core_circulant(Circulant.make((squares,), x.meta), monoid=monoid, axes=axes, keepdims=keepdims)


# ---- differences --------------------------------------------------------------------------------------------------


@diff.kernel(Toeplitz, when=along_core_axis)
def _diff_toeplitz(x: Toeplitz, *, axis: int, n: int) -> Toeplitz:
    columns = axis == x.ndim - 1
    x = x if columns else matrix_transpose.dispatch(x)
    for _ in range(min(n, x.shape[-1])):
        x = _column_differences(x)
    return x if columns else matrix_transpose.dispatch(x)


def _column_differences(x: Toeplitz) -> Toeplitz:
    """``A[:, 1:] - A[:, :-1]``: the diagonal k of the first is the diagonal k + 1 of A."""
    m, n = x.core_shape
    if x.last < x.first:
        return toeplitz(x.values, 0, (m, n - 1))
    low, high = toeplitz_entries.full_range((m, n))
    wide = between(x, max(low, x.first - 1), min(high, x.last + 1))
    values = wide.values
    return toeplitz(values[..., 1:] - values[..., :-1], wide.first, (m, n - 1))


@diff.kernel(Hankel, when=along_core_axis)
def _diff_hankel(x: Hankel, *, axis: int, n: int) -> Hankel:
    m, n_columns = x.core_shape
    size = x.shape[axis]
    shape = (m, max(0, size - n)) if axis == x.ndim - 1 else (max(0, size - n), n_columns)
    if 0 in shape:
        return Hankel.make((x.values[..., :0],), shape)
    return Hankel.make((jnp.diff(x.values, n=n),), shape)
