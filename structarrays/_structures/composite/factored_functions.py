"""Functions of all factored arrays: scaling, sums, means and variances, rows and columns (docs/design/semantics.md)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, cast

import jax.numpy as jnp

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import densify
from ..._core.families.conditions import along_core_axis, has_core, is_not_complex
from ..._core.families.elementwise_rule import elementwise
from ..._core.families.entries import elements_at, has_elements
from ..._core.families.factored import Factored, hadamard, line_key, scale, select_lines, squared_norms, with_batch
from ..._core.families.join import is_zero_outside
from ..._core.families.reduction_rule import reduced_count
from ..._functions.elementwise import divide, multiply, negative, positive, square
from ..._functions.indexing import index
from ..._functions.linalg.norms import diagonal, vector_norm
from ..._functions.linear_algebra import matmul
from ..._functions.manipulation import flip, repeat, roll, tile
from ..._functions.pow_and_clip import pow
from ..._functions.rounding_and_parts import conj, real
from ..._functions.statistical import mean, std, var
from ..._functions.statistical import sum as sum_of
from ..._numerics import dense_statistical as statistical
from ..._numerics.quotients import reciprocal
from ..._numerics.symbolic import as_number
from ..banded.diagonal import Diagonal
from .sum import split_background, total

if TYPE_CHECKING:
    from collections.abc import Callable

    import jax

    from ..._core.dispatch.function import Function
    from ..._core.typing import Result
    from ..._functions.pow_and_clip import Exponent


# ---- elementwise functions under which products and sums are closed ---------------------------------------------------------


@positive.kernel(Factored)
def _positive_factored(x: Factored) -> Factored:
    return x


@negative.kernel(Factored)
def _negative_factored(x: Factored) -> Array:
    return _times_number(x, negative.dispatch)


@conj.kernel(Factored)
def _conj_factored(x: Factored) -> Array:
    return x.with_parts(conj) if x.dtype.kind == "c" else x


@real.kernel(Factored, when=is_not_complex)
def _real_factored(x: Factored) -> Factored:
    return x


@multiply.kernel(Factored, Array)
@multiply.kernel(Factored, Factored)
def _multiply_factored(x1: Factored, x2: Array) -> Array:
    return _multiplied(x1, x2, x1, x2)


@multiply.kernel(Array, Factored)
def _multiply_array_factored(x1: Array, x2: Factored) -> Array:
    return _multiplied(x2, x1, x1, x2)


@divide.kernel(Factored, Array)
def _divide_factored(x1: Factored, x2: Array) -> Array:
    scaled = _scaled(divide, x1, x2)
    return elementwise(divide, (x1, x2), {}) if scaled is None else scaled


@divide.kernel(Factored, Factored)
def _divide_factored_factored(x1: Factored, x2: Factored) -> Array:
    result: Array = elementwise(divide, (x1, x2), {})
    return result


def _multiplied(x: Factored, y: Array, *args: Array) -> Array:
    """Multiply a factored array by any other array; `args` contains both in their original order."""
    scaled = _scaled(multiply, x, y)
    if scaled is not None:
        return scaled
    if x.shape[-2:] == y.shape[-2:] and type(y) is not Dense:
        if isinstance(y, Factored) or (y.covers and not y.full_size):
            product = hadamard(x, y)
            if product is not None:
                return product
        elif y.stores_entries and not is_zero_outside(y) and not y.covers and y.core_ndim == 2:
            return total(*(multiply.dispatch(x, term) for term in split_background(y)))
    if x is y:  # densified once
        args = (densify(x, "multiply"),) * 2
    result: Array = elementwise(multiply, args, {})
    return result


def _scaled(function: Function[..., Array], x: Factored, y: Array) -> Array | None:
    """Multiply or divide a factored array by a scalar for each matrix, a row or a column; None for other operands."""
    core = x.shape[-2:]
    constant = y.constant_over(2)
    if constant is not None:
        constant = constant.reshape((1,) * (2 - constant.ndim) + constant.shape)
        if y.ndim >= 2 and not all(n in (1, m) for n, m in zip(y.shape[-2:], core, strict=True)):
            return None
        batch = jnp.broadcast_shapes(x.shape[:-2], constant.shape[:-2])
        number = Dense.make((constant,))
        return _times_number(with_batch(x, batch), lambda part: function.dispatch(part, number))
    if type(y) is not Dense or core == (1, 1):
        return None
    shape = (1,) * (2 - y.ndim) + y.shape
    is_row = shape[-2:] == (1, core[1])
    if not is_row and shape[-2:] != (core[0], 1) or core[0] == 1 == shape[-2] or core[1] == 1 == shape[-1]:
        return None
    data = y.data if function is multiply else reciprocal(y.data)
    size = core[1] if is_row else core[0]
    factor = Diagonal.make((data.reshape((*shape[:-2], size)), None), (size, size))
    return matmul(x, factor) if is_row else matmul(factor, x)


def _times_number(x: Array, factor: Callable[[Array], Array]) -> Array:
    """Scale; dense if the scaled factor makes the result as large as the dense form."""
    result = scale.required((x,)).run(x, factor)
    return result if x.full_size or not result.full_size else Dense.make((result.dense_data(),))


@square.kernel(Factored)
def _square_factored(x: Factored) -> Array:
    result: Array = multiply.dispatch(x, x)
    return result


def _expands(x1: Array, x2: Array, *, exponent: Exponent | None) -> bool:
    return exponent is not None and exponent.value is not None and 1 <= exponent.value <= 4


@pow.kernel(Factored, Array, when=_expands)
def _pow_factored(x1: Factored, x2: Array, *, exponent: Exponent) -> Array:
    result = x1
    for _ in range(cast("int", exponent.value) - 1):
        result = multiply.dispatch(result, x1)
    return result


# ---- reductions ---------------------------------------------------------------------------------------------------------------


def split_axes(x: Array, axis: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the batch axes, and the core axes counted from the end."""
    ndim = x.ndim
    return tuple(a for a in axis if a < ndim - 2), tuple(a - ndim for a in axis if a >= ndim - 2)


def sums_over(x: Factored, axis: tuple[int, ...]) -> jax.Array:
    """The sums over axes as a `jax.Array`, where these axes have length 1."""
    data: jax.Array = sum_of.dispatch(x, axis=axis, keepdims=True).dense_data()
    return data


@sum_of.kernel(Factored, when=has_core)
def _sum_of_factored(x: Factored, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    """Reduce one core axis after the other, the longer one first, so that the remaining sum is shorter.

    Sums over rows or columns are products with vectors of ones.
    """
    *batch, m, n = x.shape
    rows, columns = len(batch), len(batch) + 1
    first = rows if rows in axis and (columns not in axis or m > n) else columns
    if axis == (first,) and keepdims:
        ones = Dense.make((jnp.ones((1, m) if first == rows else (n, 1), x.dtype),))
        result: Array = matmul.dispatch(ones, x) if first == rows else matmul.dispatch(x, ones)
        return result
    data = sums_over(x, (first,))  # by the kernel for this class, which may be faster
    rest = tuple({*axis} - {first})
    data = jnp.sum(data, axis=rest, keepdims=True, dtype=x.dtype) if rest else data
    return Dense.make((data if keepdims else jnp.squeeze(data, axis),))


@mean.kernel(Factored, when=has_core)
def _mean_factored(x: Factored, *, axis: tuple[int, ...], keepdims: bool) -> Dense:
    data = sums_over(x, axis) / as_number(reduced_count(x, axis), x.dtype)
    return Dense.make((data if keepdims else jnp.squeeze(data, axis),))


def spreads(
    structure: type[Factored], *, when: Callable[..., bool]
) -> Callable[[Callable[..., jax.Array]], Callable[..., jax.Array]]:
    """Register `var` and `std` from a function that computes the variances, ``(x, axis, correction, keepdims)``."""

    def register(variance: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
        @functools.wraps(variance)
        def variances(x: Factored, **options: Any) -> Dense:
            return Dense.make((variance(x, **options),))

        @functools.wraps(variance)
        def deviations(x: Factored, **options: Any) -> Dense:
            return Dense.make((statistical.root(variance(x, **options), 2),))

        var.kernel(structure, when=when)(variances)
        std.kernel(structure, when=when)(deviations)
        return variance

    return register


def _has_squares(x: Array, *, axis: tuple[int, ...], ord: int | float, **static: Any) -> bool:
    return ord == 2 and has_core(x, axis=axis) and squared_norms.choose((x,), {}) is not None


@vector_norm.kernel(Factored, when=_has_squares)
def _vector_norm_factored(x: Factored, *, axis: tuple[int, ...], keepdims: bool, ord: int | float) -> Dense:
    batch, core = split_axes(x, axis)
    data = jnp.expand_dims(squared_norms.required((x,)).run(x, axes=core), core)
    if batch:
        data = jnp.sum(data, axis=batch, keepdims=True)
    data = statistical.root(data, 2)
    return Dense.make((data if keepdims else jnp.squeeze(data, axis),))


@diagonal.kernel(Factored, when=lambda x, *, offset: has_elements(x))
def _diagonal_factored(x: Factored, *, offset: int) -> Dense:
    m, n = x.shape[-2:]
    size = max(0, min(m, n - offset) if offset >= 0 else min(m + offset, n))
    i = jnp.arange(size) + max(0, -offset)
    return Dense.make((elements_at(x, (i, i + offset)),))


# ---- rows and columns -----------------------------------------------------------------------------------------------------------


def _selects_lines(x: Array, *, operands: tuple[jax.Array, ...], key: tuple[tuple[Any, ...], ...]) -> bool:
    """Return whether a key keeps two axes: slices, and at most one index array."""
    kinds = [k[0] for k in key]
    return sorted(kinds) in (["array", "slice"], ["slice", "slice"]) and all(o.ndim == 1 for o in operands)


@index.kernel(Factored, when=_selects_lines)
def _index_factored(x: Factored, *, operands: tuple[jax.Array, ...], key: tuple[tuple[Any, ...], ...]) -> Array:
    return _selected(x, tuple(Dense.make((o,)) for o in operands), key)


@index.eager_kernel(Factored, tuple)
def _index_factored_eagerly(x: Factored, operands: tuple[Any, ...], *, key: tuple[tuple[Any, ...], ...]) -> Result:
    """Index part by part outside of the compiled call: the rows of a sparse form then have the exact number of entries."""
    batch = tuple(("slice", 0, n, 1) for n in x.shape[:-2])
    if key[: len(batch)] != batch or not _selects_lines(x, operands=operands, key=key[len(batch) :]):
        return NotImplemented
    if not _stores_entries(x):
        return NotImplemented
    return _selected(x, operands, key[len(batch) :])


def _stores_entries(x: Array) -> bool:
    """Return whether the rows of a part may be sparse."""
    return any(map(_stores_entries, x.parts)) if isinstance(x, Factored) else x.stores_entries


def _selected(x: Array, operands: tuple[Any, ...], key: tuple[tuple[Any, ...], ...]) -> Array:
    """Select rows and then columns by two items, at most one of which is an array."""
    for axis, item in ((-2, key[0]), (-1, key[1])):
        if item == ("slice", 0, x.shape[axis], 1):
            continue
        chosen = operands if item[0] == "array" else ()
        if isinstance(x, Factored):
            x = select_lines.required((x,)).run(x, (item, chosen), axis)
        else:
            x = index(x, chosen, key=line_key(x, item, axis))
    return x


def _at(x: Array, axis: int, where: jax.Array) -> Array:
    """Take entries along an axis; indices may repeat or reorder them."""
    if axis < x.ndim - 2:
        return x.map_parameters(lambda leaf: jnp.take(leaf, where, axis=axis))
    return index(x, (Dense.make((where,)),), key=line_key(x, ("array",), axis - x.ndim))


@flip.kernel(Factored, when=has_core)
def _flip_factored(x: Array, *, axis: tuple[int, ...]) -> Array:
    for a in axis:
        n = x.shape[a]
        if a < x.ndim - 2:
            x = x.map_parameters(lambda leaf, a=a: jnp.flip(leaf, a))  # type: ignore[misc]  # it has a default
        elif n > 1:
            x = index(x, (), key=line_key(x, ("slice", n - 1, n, -1), a - x.ndim))
    return x


@roll.kernel(Factored, when=has_core)
def _roll_factored(x: Array, *, shift: tuple[int, ...], axis: tuple[int, ...]) -> Array:
    for s, a in zip(shift, axis, strict=True):
        x = _at(x, a, jnp.roll(jnp.arange(x.shape[a]), s))
    return x


@repeat.kernel(Factored, when=along_core_axis)
def _repeat_factored(x: Factored, *, repeats: int, axis: int) -> Array:
    return _at(x, axis, jnp.repeat(jnp.arange(x.shape[axis]), repeats))


@tile.kernel(Factored, when=lambda x, *, repetitions: len(repetitions) == x.ndim and repetitions[-2:] != (1, 1))
def _tile_factored(x: Array, *, repetitions: tuple[int, ...]) -> Array:
    for axis, count in enumerate(repetitions):
        if count != 1:
            x = _at(x, axis, jnp.tile(jnp.arange(x.shape[axis]), count))
    return x
