"""Linear algebra functions in the main namespace of the standard: products and the matrix transpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from .._core.array.arguments import ArrayLike
from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.array.operands import densify, promote, to_dense
from .._core.array.views import view_function
from .._core.assumptions import carried
from .._core.dispatch.contexts import strong_zeros_policy
from .._core.dispatch.decorator import function
from .._core.families.batch import check_axes
from .._core.families.elementwise_rule import held_unexpanded
from .._core.families.entries import elements_at, has_elements
from .._core.families.join import is_zero_outside
from .._numerics import dense_linalg as linalg_dense
from .._numerics.absorbing import absorbing_product
from . import matrix_checks as check
from .background_products import with_background
from .elementwise import multiply
from .manipulation import permute_dims
from .rounding_and_parts import conj
from .statistical import sum as sum_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._core.dispatch.function import Function
    from .._core.typing import Result, Shape, Static


def by_dense_factor(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
    """Compute `matmul` for a pair of structures without a kernel, by densifying one factor.

    A factor with structural zeros stays structured, because they absorb NaN and infinity. Otherwise the factor with
    less storage stays structured, if its structure multiplies dense matrices. A factor that multiplies from one side
    only is transposed for the other side.
    """
    x1, x2 = (to_dense(x) if x.ndim == 1 else x for x in args)
    if type(x1) is not Dense and type(x2) is not Dense:
        if x1.ndim > 1 and x2.ndim > 1:
            held = held_unexpanded(function, args, (x1.shape[-2], x2.shape[-1]))
            if held is not None:
                return held
        return expanded_product(function, x1, x2)
    if function.choose((x1, x2), {}) is not None:
        return function.dispatch(x1, x2)
    if type(x2) is Dense and x1.stores_entries and x1.background is not None:
        return _with_background(function, x1, x2)
    pair = _transposed(function, x1, x2)
    if pair is None:
        return NotImplemented
    product = function.dispatch(*pair)
    return product if 1 in (x1.ndim, x2.ndim) else matrix_transpose.dispatch(product)


def expanded_product(
    function: Function[..., Any],
    x1: Array,
    x2: Array,
    expand: Callable[[Array, str], Dense] = densify,
    *,
    smaller: bool = False,
) -> Result:
    """Compute the product of two structures, one of which `expand` densifies; NotImplemented if neither is possible.

    With `smaller`, densify the factor with fewer elements, so that a few rows or columns never densify a whole matrix.
    """

    def preference(i: int) -> tuple[int, bool, int]:
        x = (x1, x2)[i]
        return (-x.size if smaller else 0, not is_zero_outside(x), x.nbytes)

    for kept in sorted((0, 1), key=preference):
        pair = [x1, x2]
        pair[1 - kept] = to_dense(pair[1 - kept])
        serves = function.choose(pair, {}) is not None or _zeros_serve(function, *pair)
        if serves or _transposed(function, *pair) is not None:
            pair[1 - kept] = expand((x1, x2)[1 - kept], "matmul")
            return product_with_expanded(function, pair, (x1, x2), 1 - kept)
    return NotImplemented


def product_with_expanded(
    function: Function[..., Any], pair: Sequence[Array], structured: Sequence[Array], expanded: int
) -> Result:
    """Compute the product of a pair with one densified factor, whose structural zeros still absorb NaN and infinity."""
    if not is_zero_outside(structured[expanded]) or pair[0].dtype.kind in "biu":
        return function.dispatch(*pair)
    kept = structured[1 - expanded]
    if not kept.stores_entries:  # finite parameters do not imply finite elements
        return function.dispatch(*pair)
    finite = jnp.array(True)
    for entry in (*kept.entries, *([] if kept.background is None else [kept.background])):
        finite &= jnp.all(jnp.isfinite(entry))

    def careful() -> jax.Array:
        if kept.size > _MANY and has_elements(kept):
            return _absorbing_in_blocks(structured, 1 - expanded)
        operands = [v for x in structured for v in (x.dense_data(), _stored(x))]
        result: jax.Array = absorbing_product(jnp.matmul, *operands)
        return result

    return Dense.make((jax.lax.cond(finite, lambda: function.dispatch(*pair).data, careful),))


_MANY = 1 << 22
"""Approximate number of elements of a structured factor that are densified at a time."""


def _absorbing_in_blocks(factors: Sequence[Array], kept: int) -> jax.Array:
    """Compute the product in which structural zeros absorb, block by block.

    Parameters
    ----------
    factors : sequence of two Array
        Factors of the product.
    kept : int
        Index of the factor that is densified by blocks only: 0 for blocks of rows of the left factor, 1 for blocks of
        columns of the right factor.
    """
    matrix, other = factors[kept], factors[1 - kept]
    outer, inner = matrix.shape[-2:] if kept == 0 else matrix.shape[:-3:-1]
    width = max(1, _MANY // max(1, inner))
    of_other = (other.dense_data(), _stored(other))
    where = matrix.rebuild(tuple(jnp.ones(e.shape, bool) for e in matrix.entries), None)

    @jax.checkpoint  # otherwise the reverse-mode derivative stores all blocks
    def product(start: jax.Array) -> jax.Array:
        lines, along = jnp.minimum(start + jnp.arange(width), outer - 1), jnp.arange(inner)
        at = (lines[:, None], along) if kept == 0 else (along[:, None], lines)
        data = elements_at(matrix, at)
        block = data, elements_at(where, at) if is_zero_outside(matrix) else jnp.ones(data.shape, bool)
        result: jax.Array = absorbing_product(jnp.matmul, *(*block, *of_other) if kept == 0 else (*of_other, *block))
        return result

    axis = kept - 2  # the blocks are stacked along this axis of the result
    blocks = jnp.moveaxis(jax.lax.map(product, width * jnp.arange(-(-outer // width))), 0, axis - 1)
    shape = list(blocks.shape)
    shape[axis - 1 : axis + 1 or None] = [-1]
    return jax.lax.slice_in_dim(blocks.reshape(shape), 0, outer, axis=axis)


def _stored(x: Array) -> jax.Array:
    """Return the mask of the elements that are not structural zeros."""
    if not is_zero_outside(x):
        return jnp.ones(x.shape, bool)
    return x.rebuild(tuple(jnp.ones(e.shape, bool) for e in x.entries), None).dense_data()


def _transposed(function: Function[..., Any], x1: Array, x2: Array) -> tuple[Array, Array] | None:
    """Return the factors transposed and exchanged if they have a kernel, otherwise None."""
    x1, x2 = (x if x.ndim == 1 else matrix_transpose.dispatch(x) for x in (x2, x1))
    if type(x1) is type(x2) is Dense or not (function.choose((x1, x2), {}) or _zeros_serve(function, x1, x2)):
        return None
    return x1, x2


def _zeros_serve(function: Function[..., Any], x1: Array, x2: Array) -> bool:
    """Return whether the structure of `x1`, with zeros instead of the background, multiplies dense matrices."""
    if type(x2) is not Dense or not x1.stores_entries or x1.background is None:
        return False
    return function.choose((x1.rebuild(x1.entries, None), x2), {}) is not None


def _with_background(function: Function[..., Any], x1: Array, x2: Dense) -> Result:
    if not _zeros_serve(function, x1, x2):
        return NotImplemented
    return with_background(lambda x, data: function.dispatch(x, Dense.make((data,))).data, x1, x2.data)


@function("x1", "x2", rule=by_dense_factor)
def matmul(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the matrix product ``x1 @ x2``.

    Parameters
    ----------
    x1 : array, (..., M, K) or (K,)
        Left factor, of a numeric data type. A vector is used as a row, and the result does not have this dimension.
    x2 : array, (..., K, N) or (K,)
        Right factor, of a numeric data type. A vector is used as a column, and the result does not have this dimension.

    Returns
    -------
    array, (..., M, N)
        Products, in the common data type. The batch shapes broadcast.

    Raises
    ------
    ValueError
        If an argument is 0-dimensional, the contracted dimensions differ, or the batch shapes do not broadcast.
    TypeError
        If an argument has a boolean data type.

    Notes
    -----
    The structure of the result depends on both factors. For example, the product of banded matrices is banded: its
    offsets are the sums of the offsets of the factors. The cost is ``O(d d' n)`` for d and d' diagonals, and ``O(d n)``
    for the product of a banded matrix and a vector. The product of a `Fill` and a vector costs ``O(n)``. A product with
    a scaled identity keeps the structure of the other factor.

    Structural zeros absorb NaN and infinity (see `strong_zeros`).

    Examples
    --------
    >>> import structarrays as sa
    >>> D = sa.Banded([[-1.0, -1.0], [1.0, 1.0]], (0, 1), (2, 3))
    >>> D @ sa.asarray([1.0, 4.0, 9.0])
    Dense([3., 5.], dtype=float64)
    >>> (D.mT @ D).offsets
    (-1, 0, 1)
    """
    x1, x2 = cast("Array", x1), cast("Array", x2)
    check.numeric("matmul", x1, x2)
    shape1, shape2 = x1.shape, x2.shape
    for argument, shape in (("x1", shape1), ("x2", shape2)):
        if not shape:
            raise ValueError(
                f"matmul: {argument} must have at least one dimension, got a 0-d array; use multiply instead"
            )
    if shape1[-1] != shape2[-2 if len(shape2) > 1 else 0]:
        raise ValueError(
            f"matmul: the last dimension of x1 must equal the second to last dimension of x2 (or its only dimension), "
            f"got shapes {shape1} and {shape2}"
        )
    check.broadcast("matmul", shape1[:-2], shape2[:-2])
    x1, x2 = promote(x1, x2)
    if not strong_zeros_policy.value:
        x1, x2 = (densify(x, "matmul") if is_zero_outside(x) else x for x in (x1, x2))
    result: Array = matmul.dispatch(x1, x2)
    return result


@matmul.kernel(Dense, Dense)
def _matmul_dense_dense(x1: Dense, x2: Dense) -> Dense:
    return Dense.make((jnp.matmul(x1.data, x2.data),))


def product(x1: Array, x2: Array) -> Array:
    """Compute the product of two arrays of one data type, for kernels."""
    if type(x1) is Dense and type(x2) is Dense:
        return _matmul_dense_dense(x1, x2)
    return matmul(x1, x2)


@view_function("x", inverse=lambda data, shape: data.mT)
def matrix_transpose(x: ArrayLike, /) -> Array:
    """Transpose each matrix of a stack.

    Parameters
    ----------
    x : array, (..., M, N)
        Matrices of any data type.

    Returns
    -------
    array, (..., N, M)
        Transposed matrices. They keep the assumptions of `x` (see `assume`).

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.matrix_transpose(sa.Banded([[1.0, 2.0]], (1,), (3, 3))).offsets
    (-1,)
    """
    x = cast("Array", x)
    check.matrix("matrix_transpose", x)
    return carried(matrix_transpose.dispatch(x), x.assumptions)


@matrix_transpose.kernel(Dense)
def _matrix_transpose_dense(x: Dense) -> Dense:
    return Dense.make((linalg_dense.matrix_transpose(x.data),))


@function("x1", "x2", dense=jnp.vecdot)
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Compute the vector dot product ``sum(conj(x1) * x2)`` along an axis.

    Parameters
    ----------
    x1, x2 : array, (..., n)
        Arrays of numeric data types. All axes except `axis` must broadcast.
    axis : int, default -1
        Axis of the vectors, counted from the end of each array.

    Returns
    -------
    array, (...)
        Dot products, with the broadcast shape without the axis.

    Raises
    ------
    ValueError
        If the lengths of the axis differ, or the other axes do not broadcast.
    TypeError
        If an argument has a boolean data type.
    numpy.exceptions.AxisError
        If the axis is out of range.

    Notes
    -----
    The cost of a structured argument is proportional to its stored entries: like `multiply`, the function computes
    products only where both arguments have entries.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.vecdot(sa.Diagonal([1.0, 2.0]), sa.asarray([3.0, 4.0]))
    Dense([3., 8.], dtype=float64)
    """
    x1, x2 = cast("Array", x1), cast("Array", x2)
    check.numeric("vecdot", x1, x2)
    for argument, x in (("x1", x1), ("x2", x2)):
        if x.ndim == 0:
            raise ValueError(f"vecdot: {argument} must have at least one dimension, got a 0-d array")
    axis = check.common_axis("vecdot", axis, x1, x2)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(
            f"vecdot: axis {axis} must have the same length in both arrays, got shapes {x1.shape} and {x2.shape}"
        )
    check.broadcast("vecdot", x1.shape, x2.shape, what="shapes")
    x1, x2 = promote(x1, x2)
    result: Array = vecdot.dispatch(x1, x2, axis=axis)
    return result


def _is_row_by_row(x1: Array, x2: Array, *, axis: int) -> bool:
    """Return whether `vecdot` multiplies rows of structured matrices by one vector, so that `matmul` can compute it."""
    matrix, vector = (x1, x2) if x2.ndim == 1 else (x2, x1)
    return axis == -1 and vector.ndim == 1 and matrix.ndim > 1 and matrix.core_ndim == 2


@vecdot.kernel(Array, Array, when=_is_row_by_row)
def _vecdot_array_if_is_row_by_row(x1: Array, x2: Array, *, axis: int) -> Array:
    x1 = conj(x1)
    return matmul(x1, x2) if x2.ndim == 1 else matmul(x2, x1)


@vecdot.kernel(Array, Array)
def _vecdot_array(x1: Array, x2: Array, *, axis: int) -> Array:
    if x1.dtype.kind == "c":
        x1 = conj(x1)
    return sum_of(multiply(x1, x2), axis=axis, dtype=x1.dtype)


@function("x1", "x2", dense=jnp.tensordot)
def tensordot(x1: ArrayLike, x2: ArrayLike, /, *, axes: int | tuple[Any, ...] = 2) -> Array:
    """Contract axes of two arrays.

    Parameters
    ----------
    x1, x2 : array, (...)
        Arrays of numeric data types.
    axes : int or tuple of two sequences of int, default 2
        If an integer n, contract the last n axes of `x1` with the first n axes of `x2`, in order. If two sequences,
        contract the axes of `x1` in the first sequence with the axes of `x2` in the second one.

    Returns
    -------
    array
        Array with the remaining axes of `x1`, followed by the remaining axes of `x2`.

    Raises
    ------
    ValueError
        If contracted axes have different lengths, an axis is repeated, or the two sequences have different lengths.
    TypeError
        If an argument has a boolean data type, or `axes` is neither an integer nor two sequences.
    numpy.exceptions.AxisError
        If an axis is out of range.

    Notes
    -----
    Two cases use the structure: the contraction of one axis of two matrices (`matmul`), and the contraction of all axes
    (the sum of `multiply`).

    Examples
    --------
    >>> import structarrays as sa
    >>> D = sa.Diagonal([1.0, 2.0])
    >>> sa.tensordot(D, D, axes=1)
    Diagonal([1., 4.], shape=(2, 2), dtype=float64)
    >>> float(sa.tensordot(D, sa.ones((2, 2))))
    3.0
    """
    x1, x2 = cast("Array", x1), cast("Array", x2)
    check.numeric("tensordot", x1, x2)
    axes = contracted_axes(x1, x2, axes)
    x1, x2 = promote(x1, x2)
    result: Array = tensordot.dispatch(x1, x2, axes=axes)
    return result


def contracted_axes(x1: Array, x2: Array, axes: int | Sequence[Any]) -> tuple[Shape, Shape]:
    """Return the contracted axes of each operand of `tensordot`, as nonnegative integers."""
    if isinstance(axes, (tuple, list)):
        if len(axes) != 2:
            raise ValueError(f"tensordot: axes must be an integer or two sequences, got {len(axes)} sequences")
        axes1 = check_axes("tensordot", axes[0], x1.ndim, "axes[0]")
        axes2 = check_axes("tensordot", axes[1], x2.ndim, "axes[1]")
        if len(axes1) != len(axes2):
            raise ValueError(f"tensordot: axes must be two sequences of the same length, got {axes!r}")
    else:
        count = check.integer("tensordot", axes, "axes")
        if count < 0:
            raise ValueError(f"tensordot: axes must not be negative, got {count}")
        if count > min(x1.ndim, x2.ndim):
            raise np.exceptions.AxisError(
                f"tensordot: axes must be at most the numbers of dimensions, got {count} for shapes {x1.shape} and {x2.shape}"
            )
        axes1, axes2 = tuple(range(x1.ndim - count, x1.ndim)), tuple(range(count))
    for a, b in zip(axes1, axes2):
        if x1.shape[a] != x2.shape[b]:
            raise ValueError(
                f"tensordot: contracted axes must have the same length, got {x1.shape[a]} (axis {a} of x1, shape {x1.shape}) "
                f"and {x2.shape[b]} (axis {b} of x2, shape {x2.shape})"
            )
    return axes1, axes2


def _is_product(x1: Array, x2: Array, *, axes: tuple[Shape, Shape]) -> bool:
    return len(axes[0]) == 1 and x1.ndim <= 2 and x2.ndim <= 2


@tensordot.kernel(Array, Array, when=_is_product)
def tensordot_by_matmul(x1: Array, x2: Array, *, axes: tuple[Shape, Shape]) -> Array:
    """Compute the matrix product, with transposes if `matmul` contracts another axis."""
    (axis1,), (axis2,) = axes
    if x1.ndim == 2 and axis1 == 0:
        x1 = matrix_transpose(x1)
    if x2.ndim == 2 and axis2 == 1:
        x2 = matrix_transpose(x2)
    return matmul(x1, x2)


def _is_full(x1: Array, x2: Array, *, axes: tuple[Shape, Shape]) -> bool:
    return len(axes[0]) == x1.ndim == x2.ndim


@tensordot.kernel(Array, Array, when=_is_full)
def _tensordot_array(x1: Array, x2: Array, *, axes: tuple[Shape, Shape]) -> Array:
    partner = dict(zip(*axes))
    order = tuple(partner[axis] for axis in range(x1.ndim))
    if order != tuple(range(x2.ndim)):
        x2 = permute_dims(x2, order)
    return sum_of(multiply(x1, x2), dtype=x1.dtype)
