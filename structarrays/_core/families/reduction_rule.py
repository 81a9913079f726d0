"""The family of reductions: over batch axes leaf by leaf; over core axes stored entries plus background times count.

A structure joins the family by registering kernels in its own file:

``reduce_core.kernel(S)``
    ``(x, *, monoid, axes, keepdims)`` reduces `x` by a `Monoid` over the core axes `axes` (negative integers, at least
    one), in time and memory proportional to the storage. The result is `Dense`, or a structure that contains it.
``squared_deviations.kernel(S)``
    ``(x, *, mean, monoid, axes, keepdims)`` returns the sum of ``abs(x - mean)**2`` over the core axes. `mean` is the
    result of ``reduce_core`` with ``keepdims=True``, divided by a number, with batch axes of full size or of size 1.
    `monoid` is the sum.
``reduce_batch.kernel(S)``
    ``(x, *, monoid, axes, keepdims)`` reduces `x` over the batch axes `axes` (nonnegative), for structures whose
    pattern is not static: their entries have different positions in each matrix, so that a reduction leaf by leaf would
    be wrong.

The functions of this module return rules for `Function.rule`: they split the axes, and compose both kinds of
reductions.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

import jax
import jax.numpy as jnp
import numpy as np

from ..._numerics.symbolic import as_number, degrees_of_freedom
from ..array.base import Array
from ..dispatch.registry import Registry

if TYPE_CHECKING:
    from ..dispatch.function import Function
    from ..typing import Axes, LeafFunction, Result, Rule, Static

reduce_core: Registry[Array] = Registry("reduce_core")
squared_deviations: Registry[Array] = Registry("squared_deviations")
reduce_batch: Registry[Array] = Registry("reduce_batch")


class Monoid(NamedTuple):
    """An associative and commutative operation on arrays of one dtype, by which a function reduces.

    Attributes
    ----------
    reduce : callable
        ``reduce(data, *, axis, keepdims)`` reduces a `jax.Array` over a tuple of axes.
    combine : callable
        ``combine(a, b)`` combines two arrays that broadcast.
    repeat : callable
        ``repeat(value, count)`` returns the reduction of `count` equal values. `count` is a Python integer, at least 1,
        or an array of nonnegative integers that broadcasts with `value` (the result for 0 is not used).
    identity : callable
        ``identity(dtype)`` returns the neutral element as a NumPy scalar: the reduction of no values.
    scatter : str
        Method of ``jax.Array.at`` that combines elements, if it has a derivative; otherwise empty.
    """

    reduce: Callable[..., jax.Array]
    combine: Callable[[jax.Array, jax.Array], jax.Array]
    repeat: Callable[[jax.Array, Any], jax.Array]
    identity: Callable[[np.dtype], Any]
    scatter: str = ""

    def zero_is_identity(self, dtype: np.dtype) -> bool:
        """Return whether zero is the neutral element."""
        return not self.identity(dtype)

    def repeated(self, value: jax.Array, count: int) -> jax.Array:
        """Return the reduction of `count` equal values, where `count` may be 0."""
        return jnp.full_like(value, self.identity(value.dtype)) if count == 0 else self.repeat(value, count)


# ---- the rules ---------------------------------------------------------------------------------------------------


def reduction(monoid: Monoid) -> Rule:
    """Return the rule of a reduction by a monoid, with static arguments `axis` (a tuple of nonnegative integers) and
    `keepdims`.
    """

    def rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
        (x,) = args
        return _fold(x, monoid, **static) if _folds(x, static["axis"]) else NotImplemented

    return _named(rule, "reduction")


def averaging(total: Monoid) -> Rule:
    """Return the rule of `mean`, from the monoid of `sum`."""

    def rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
        (x,) = args
        return _mean(x, total, **static) if _folds(x, static["axis"]) else NotImplemented

    return _named(rule, "averaging")


def spreading(total: Monoid, leaf: LeafFunction, finish: Callable[[jax.Array], jax.Array]) -> Rule:
    """Return the rule of `var` and `std`.

    Parameters
    ----------
    total : Monoid
        Monoid of `sum`.
    leaf : callable
        The function on plain arrays, with arguments `axis`, `correction` and `keepdims`.
    finish : callable
        Function that maps the variance to the result.
    """

    def rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
        (x,) = args
        return _spread(x, total, leaf, finish, **static) if _serves(x, static["axis"]) else NotImplemented

    return _named(rule, "spreading")


def along_batch(leaf: LeafFunction, keeps_zero: Callable[..., bool]) -> Rule:
    """Return the rule of a function along one axis, such as `cumulative_sum`: leaf by leaf along batch axes only.

    Parameters
    ----------
    leaf : callable
        The function on plain arrays; its static arguments include a nonnegative `axis`.
    keeps_zero : callable
        Function of the static arguments: whether zeros are mapped to zeros.
    """

    def rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
        (x,) = args
        batch, core = _split(x, (static["axis"],))
        if core or not x.static_pattern or not _serves(x, batch):
            return NotImplemented
        return _over_batch(x, lambda data: leaf(data, **static), keeps_zero(**static))

    return _named(rule, "along_batch")


def _named(rule: Rule, name: str) -> Rule:
    rule.__name__ = name
    return rule


def _split(x: Array, axis: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Split axes into nonnegative batch axes and negative core axes."""
    batch = x.ndim - x.core_ndim
    return tuple(a for a in axis if a < batch), tuple(a - x.ndim for a in axis if a >= batch)


def _serves(x: Array, axis: tuple[int, ...]) -> bool:
    """Return whether the rule applies: for batch axes alone, it is enough that the parameters are entries."""
    member = reduce_core.choose((x,), {}) is not None
    batch, core = _split(x, axis)
    if batch and not x.static_pattern:
        return member and bool(core)  # entries have different positions in each matrix until the core is reduced
    return member or (x.stores_entries and not core)


def _folds(x: Array, axis: tuple[int, ...]) -> bool:
    """Return whether the rule of a reduction by a monoid alone applies."""
    batch, core = _split(x, axis)
    if batch and not core and not x.static_pattern:
        return reduce_batch.choose((x,), {}) is not None
    return _serves(x, axis)


def map_entries(x: Array, f: LeafFunction) -> Array:
    """Apply `f` to the entries of an array and to its background, if any; `f` may change batch dimensions."""
    if not x.stores_entries:
        return x.map_parameters(f)
    return x.rebuild(tuple(f(e) for e in x.entries), None if x.background is None else f(x.background))


def _over_batch(x: Array, f: LeafFunction, keeps_zero: bool) -> Array:
    """Apply `f` with `map_entries`; structural zeros become a background first if `f` does not map zeros to zeros."""
    if x.stores_entries and x.background is None and not keeps_zero:
        x = x.rebuild(x.entries, jnp.zeros(x.batch_shape, x.dtype))
    return map_entries(x, f)


def _fold(x: Array, monoid: Monoid, axis: tuple[int, ...], keepdims: bool) -> Array:
    batch, core = _split(x, axis)
    if batch and core and not x.static_pattern:
        x = reduce_core.required((x,)).run(x, monoid=monoid, axes=core, keepdims=keepdims)
        core = ()
    if batch and not x.static_pattern:
        return reduce_batch.required((x,)).run(x, monoid=monoid, axes=batch, keepdims=keepdims)
    if batch or not core:
        nonempty = reduced_count(x, batch) > 0
        x = _over_batch(
            x,
            lambda data: monoid.reduce(data, axis=batch, keepdims=keepdims),
            nonempty or monoid.zero_is_identity(x.dtype),
        )
    return reduce_core.required((x,)).run(x, monoid=monoid, axes=core, keepdims=keepdims) if core else x


def _mean(x: Array, total: Monoid, axis: tuple[int, ...], keepdims: bool) -> Array:
    count = reduced_count(x, axis)
    return _over_batch(_fold(x, total, axis, keepdims), lambda data: data / as_number(count, data.dtype), count > 0)


def _spread(
    x: Array,
    total: Monoid,
    leaf: LeafFunction,
    finish: Callable[[jax.Array], jax.Array],
    axis: tuple[int, ...],
    correction: float,
    keepdims: bool,
) -> Array:
    # Two passes, since the textbook formula (mean of squares minus square of mean) loses digits by cancellation.
    batch, core = _split(x, axis)
    count = reduced_count(x, axis)
    divisor, positive = degrees_of_freedom(count, correction, x.dtype)
    if not core:
        return _over_batch(
            x,
            lambda data: leaf(data, axis=batch, correction=correction, keepdims=keepdims),
            count > 0 and positive,
        )
    mean = _mean(x, total, axis, keepdims=True)
    kernel = squared_deviations.required((x,))
    squares = kernel.run(x, mean=mean, monoid=total, axes=core, keepdims=keepdims)

    def variance(data: jax.Array) -> jax.Array:
        data = total.reduce(data, axis=batch, keepdims=keepdims) if batch else data
        return finish(data / divisor if positive else jnp.full_like(data, jnp.nan))

    return map_entries(squares, variance)


def squared_magnitude(data: jax.Array) -> jax.Array:
    """Return ``abs(data)**2``, a real array, without a square root."""
    if data.dtype.kind == "c":
        return jax.lax.square(data.real) + jax.lax.square(data.imag)
    return jax.lax.square(data)


# ---- the argument axis -------------------------------------------------------------------------------------------


def reduced_count(x: Array, axis: tuple[int, ...]) -> int:
    """Return the number of elements that a reduction over these axes combines."""
    shape = x.shape
    return math.prod([shape[a] for a in axis])


def one_axis(x: Array, axis: SupportsIndex, name: str) -> int:
    """Normalize an axis to a nonnegative integer.

    Raises
    ------
    numpy.exceptions.AxisError
        If the axis is out of range.
    TypeError
        If the axis is not an integer.
    """
    try:
        index = operator.index(axis)
    except TypeError:
        raise TypeError(f"{name}: axis must be an integer, got {axis!r}") from None
    ndim = x.ndim
    if not -ndim <= index < ndim:
        raise np.exceptions.AxisError(index, ndim, name)
    return index % ndim


def reduced_axes(x: Array, axis: Axes | list[int], name: str) -> tuple[int, ...]:
    """Normalize the argument `axis` of a reduction (None, an integer or a tuple) to increasing nonnegative integers.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of range.
    ValueError
        If an axis is repeated.
    """
    if axis is None:
        return tuple(range(x.ndim))
    axes = [one_axis(x, a, name) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    if len(set(axes)) != len(axes):
        raise ValueError(f"{name}: axis must not name an axis twice, got {axis}")
    return tuple(sorted(axes))
