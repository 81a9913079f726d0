"""Searching functions of the standard."""

from __future__ import annotations

import copy
import math
import typing
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from .._core.array.arguments import ArrayLike
from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.array.operands import cast, check_operand, densify, lift, promote, without_weak_types
from .._core.dispatch.decorator import function
from .._core.dispatch.registry import FUNCTIONS, Registry
from .._core.dispatch.results import follow_eager_operands
from .._core.dtypes import default_dtype
from .._core.families.batch import along_batch, check_axis, filled, is_constant, map_elements, parts
from .._core.families.elementwise_rule import (
    ElementwiseArrayFunction,
    elementwise,
    elementwise_function,
    map_entries,
    values_at,
    without_core,
)
from .._core.families.join import is_zero_outside, join, meet, same_pattern
from .._core.families.neutral_zero import KEPT, is_neutral_zero, zero_like
from .._core.families.reduction_rule import reduced_axes
from .._numerics import dense_searching
from .conversion import asarray
from .statistical import sum as sum_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .._core.dispatch.function import Function
    from .._core.typing import Result, Rule, Static

# ---- largest and smallest elements ----------------------------------------------------------------------------------


def _first_index_rule(act: Callable[..., Any]) -> Rule:
    """Search the parameters along batch axes. In a constant core the result is the first index, 0."""
    in_batch = along_batch(act)

    def first_index(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
        (x,), axis = args, static["axis"]
        batch, core = parts(x)
        if axis is None or axis < len(batch) or not is_constant(x):
            return in_batch(function, args, static)
        axis -= len(batch)
        if core[axis] == 0:
            return NotImplemented
        core = core[:axis] + (1,) * static["keepdims"] + core[axis + 1 :]
        return filled(x, jnp.zeros(batch, default_dtype("i")), core)

    return first_index


def _check_search(name: str, x: Array, axis: int | None) -> int | None:
    """Check the arguments of `argmax` and `argmin`, and return the axis."""
    if x.dtype.kind == "c":
        raise TypeError(f"{name}: x must have a real dtype, since complex numbers have no order, got {x.dtype}")
    axis = None if axis is None else check_axis(name, axis, x.ndim)
    if (x.size if axis is None else x.shape[axis]) == 0:
        where = "" if axis is None else f" along axis {axis}"
        raise ValueError(f"{name}: x of shape {x.shape} has no elements to search{where}")
    return axis


@function("x", rule=_first_index_rule(dense_searching.argmax), dense=dense_searching.argmax)
def argmax(x: ArrayLike, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Index of the first largest element along an axis.

    Parameters
    ----------
    x : Array
        The array, of a real dtype. NaN counts as the largest value.
    axis : int or None
        The axis to search. None searches the flattened array.
    keepdims : bool
        Whether the axis is kept with size one.

    Returns
    -------
    Array
        The indices, of the default integer dtype. A search along batch axes keeps the structure.

    Raises
    ------
    ValueError
        If the axis is out of range, or there are no elements to search.

    Examples
    --------
    >>> import structarrays as sa
    >>> int(sa.argmax(sa.asarray([1.0, 3.0, 2.0])))
    1
    """
    x = typing.cast("Array", x)
    result: Array = argmax.dispatch(x, axis=_check_search("argmax", x, axis), keepdims=bool(keepdims))
    return result


@function("x", rule=_first_index_rule(dense_searching.argmin), dense=dense_searching.argmin)
def argmin(x: ArrayLike, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Index of the first smallest element along an axis.

    Parameters
    ----------
    x : Array
        The array, of a real dtype. NaN counts as the smallest value.
    axis : int or None
        The axis to search. None searches the flattened array.
    keepdims : bool
        Whether the axis is kept with size one.

    Returns
    -------
    Array
        The indices, of the default integer dtype. A search along batch axes keeps the structure.

    Raises
    ------
    ValueError
        If the axis is out of range, or there are no elements to search.

    Examples
    --------
    >>> import structarrays as sa
    >>> int(sa.argmin(sa.asarray([1.0, 3.0, 2.0])))
    0
    """
    x = typing.cast("Array", x)
    result: Array = argmin.dispatch(x, axis=_check_search("argmin", x, axis), keepdims=bool(keepdims))
    return result


# ---- nonzero elements ------------------------------------------------------------------------------------------------


@elementwise_function(kinds="all", zero=True)
def _is_nonzero(x: ArrayLike, /) -> Array:
    return typing.cast("Array", x != 0)


@function("x")
def count_nonzero(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Number of nonzero elements along axes.

    Parameters
    ----------
    x : Array
        The array.
    axis : int, tuple of int or None
        The axes over which to count. None counts all elements.
    keepdims : bool
        Whether the axes are kept with size one.

    Returns
    -------
    Array
        The counts, of the default integer dtype, computed from the stored entries. Like sums of integers, they wrap
        around: from 2**31 on without JAX's 64-bit mode. ``linalg.vector_norm(x, ord=0)`` counts in floating point.

    Raises
    ------
    ValueError
        If an axis is out of range or repeated.

    Examples
    --------
    >>> import structarrays as sa
    >>> int(sa.count_nonzero(sa.Diagonal([1.0, 0.0, 2.0])))
    2
    """
    x = typing.cast("Array", x)
    axis = reduced_axes(x, axis, "count_nonzero")
    return sum_of(cast(_is_nonzero.define(x), default_dtype("i")), axis=axis, keepdims=keepdims)


@function("x")
def _values(x: ArrayLike, *, name: str) -> Dense:
    return densify(typing.cast("Array", x), name)


_values.follows = False


def known_values(x: ArrayLike, name: str) -> jax.Array:
    """Return the dense data of an array for the function `name`, whose result has a data-dependent shape.

    Raises
    ------
    TypeError
        If `x` is not an array.
    jax.errors.ConcretizationTypeError
        If `x` is traced, so that its values are not known.
    """
    check_operand(x, name, "x")
    data: jax.Array = _values(x, name=name).dense_data()
    if isinstance(data, jax.core.Tracer):
        raise jax.errors.ConcretizationTypeError(
            data,
            f"{name}: the shape of the result depends on the values of x, which are not known under jit, grad or vmap; "
            f"call {name} outside of the transformed function",
        )
    return data


nonzero_kernels: Registry[tuple[jax.Array, ...]] = Registry("nonzero")
"""Kernels of `nonzero`: from an array with known values to the indices of its nonzero elements, as `jax.Array`."""


def nonzero(x: ArrayLike, /) -> tuple[Array, ...]:
    """Indices of the nonzero elements.

    Parameters
    ----------
    x : Array
        The array, of at least one dimension. Its values must be known, which excludes `jax.jit`. A structure with few
        entries is searched entry by entry; other structured arrays become dense.

    Returns
    -------
    tuple of Array
        For each dimension, the indices ``(n,)`` of the n nonzero elements, in row-major order.

    Raises
    ------
    ValueError
        If `x` has no dimensions.
    jax.errors.ConcretizationTypeError
        If `x` is traced.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.nonzero(sa.asarray([0, 5, 0, 7]))
    (Dense([1, 3], dtype=int64),)
    """
    check_operand(x, "nonzero", "x")
    if getattr(x, "shape", ()) == ():
        raise ValueError("nonzero: x must have at least one dimension, got shape ()")
    given = x
    x = copy.copy(asarray(x))  # another thread may write in the meantime
    if not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(x)):
        if x.stores_entries and x.background is not None and not np.any(np.asarray(x.background)):
            x = x.rebuild(x.entries, None)  # a background that is known to be zero, as for ``x > 1``
        exact = nonzero_kernels.choose((x,), {})
        if exact is not None:
            return _as_indices(exact.run(x), given)
    return _as_indices(dense_searching.nonzero(known_values(x, "nonzero")), given)


def _as_indices(indices: Iterable[jax.Array], x: ArrayLike) -> tuple[Array, ...]:
    result: tuple[Array, ...] = follow_eager_operands(tuple(Dense.make((index,)) for index in indices), (x,))
    return result


# ---- sorted arrays ---------------------------------------------------------------------------------------------------


@function("x1", "x2", "sorter", compares=2)
def searchsorted(x1: ArrayLike, x2: ArrayLike, /, *, side: str = "left", sorter: ArrayLike | None = None) -> Array:
    """Indices at which to insert elements into a sorted array.

    Parameters
    ----------
    x1 : Array
        The sorted values, ``(n,)``. NaN comes last, as in the result of `sort`.
    x2 : Array or number
        The elements to insert.
    side : {"left", "right"}
        Whether to insert an element before or after equal elements.
    sorter : Array, optional
        The indices ``(n,)`` that sort `x1`, if it is not sorted.

    Returns
    -------
    Array
        The indices, of the default integer dtype, with the shape and structure of `x2`.

    Raises
    ------
    ValueError
        If `x1` does not have one dimension, `sorter` has another shape, or `side` is neither "left" nor "right".

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.searchsorted(sa.asarray([1.0, 2.0, 3.0]), sa.asarray([0.5, 2.0, 9.0]))
    Dense([0, 1, 3], dtype=int64)
    """
    x1, x2 = typing.cast("Array", x1), typing.cast("Array", x2)
    sorter = typing.cast("Array | None", sorter)
    if x1.ndim != 1:
        raise ValueError(f"searchsorted: x1 must have one dimension, got shape {x1.shape}")
    if side not in ("left", "right"):
        raise ValueError(f'searchsorted: side must be "left" or "right", got {side!r}')
    for name, x in (("x1", x1), ("x2", x2)):
        if x.dtype.kind == "c":
            raise TypeError(f"searchsorted: {name} must have a real dtype, got {x.dtype}")
    if sorter is not None:
        if sorter.shape != x1.shape or sorter.dtype.kind not in "iu":
            raise ValueError(
                f"searchsorted: sorter must be integers of shape {x1.shape}, got {sorter.dtype} of shape {sorter.shape}"
            )
        x1 = Dense.make((densify(x1, "searchsorted").data[densify(sorter, "searchsorted").data],))
    x1, x2 = promote(x1, x2)
    result: Array = searchsorted.dispatch(x1, x2, side=side)
    return result


def _searchsorted_rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
    """Apply `searchsorted` to the stored entries and the background of the second argument."""
    x1, x2 = args
    data = densify(x1, "searchsorted").data
    return map_elements(x2, lambda values: dense_searching.searchsorted(data, values, **static))


searchsorted.rule = _searchsorted_rule


@searchsorted.kernel(Dense, Dense)
def _searchsorted_dense_dense(x1: Dense, x2: Dense, *, side: str) -> Dense:
    return Dense.make((dense_searching.searchsorted(x1.data, x2.data, side=side),))


# ---- where -----------------------------------------------------------------------------------------------------------


class _Where(ElementwiseArrayFunction[...]):
    """`where`, whose condition is boolean and does not take part in the promotion."""

    def __call__(self, *arrays: Any, **unknown: Any) -> Array:
        # As in `ArrayFunction`: a Python integer may not fit the dtype of the other operand.
        if len(arrays) == 3 and type(arrays[1]) is int and not 0 <= arrays[1] < 128:
            return self._careful(*arrays)
        if len(arrays) == 3 and not unknown:
            for number, other in ((2, 1), (1, 2)):
                zero = arrays[number]
                if type(zero) in KEPT and is_neutral_zero(zero, arrays[other]) and math.copysign(1, zero) > 0:
                    return self._run((number,), arrays)
        return super().__call__(*arrays, **unknown)

    def _trace(self, static: tuple[Any, ...], *arrays: Any) -> Any:
        """Trace the definition. The static part of a call is empty, or the number of an argument that is the number zero."""
        if not static:
            return super()._trace(static, *arrays)
        operands = list(map(lift, arrays))
        (number,) = static
        other = operands[3 - number]
        if other.stores_entries and other.linear and is_zero_outside(other):
            operands[number] = lift(zero_like(other))
        return without_weak_types(self.define(*operands))

    if TYPE_CHECKING:

        def prepare(self, *arrays: Array) -> Sequence[Array]: ...

    else:

        def prepare(self, condition: Array, x1: Array, x2: Array) -> Sequence[Array]:
            if condition.dtype.kind != "b":
                raise TypeError(f"where: condition must be boolean, got {condition.dtype}; compare it with 0 first")
            x1, x2 = promote(x1, x2)
            try:
                jnp.broadcast_shapes(condition.shape, x1.shape, x2.shape)
            except ValueError:
                shapes = f"{condition.shape}, {x1.shape} and {x2.shape}"
                raise ValueError(f"where: shapes {shapes} cannot be broadcast together") from None
            return condition, x1, x2


def _where_rule(function: _Where, args: Sequence[Array], static: Static) -> Result:
    """Apply the rule for elementwise functions, except in two cases with structural zeros.

    Where both choices are structural zeros, the result is a structural zero for any condition. Outside the pattern of a
    structured condition, the result is the second choice, so that it has the background of the second choice.
    """
    condition, x1, x2 = args
    shape = jnp.broadcast_shapes(*(x.shape for x in args))
    core = max(x.core_ndim if x.stores_entries else 0 for x in args)
    if any(x.stores_entries and (x.core_ndim < core or x.shape[-core:] != shape[-core:]) for x in args):
        return elementwise(function, args, static)  # a small array that becomes dense
    constants = [None if x.stores_entries else x.constant_over(core) for x in args]
    decided = is_zero_outside(condition)
    if is_zero_outside(x2) and (decided or is_zero_outside(x1)):
        chosen = x1
        if decided:
            chosen = meet(condition, x1) if is_zero_outside(x1) else condition
        pattern, background = join(x2, chosen)[0], None
    elif decided and x2.stores_entries:
        pattern, background = join(x2, condition)[0], x2.background
    elif decided and constants[2] is not None:
        pattern, background = condition, without_core(constants[2], core)
    else:
        return elementwise(function, args, static)
    if type(pattern) is Dense or not pattern.closed_under(function, args):
        return elementwise(function, args, static)
    if not all(c is not None or same_pattern(x, pattern) for x, c in zip(args, constants, strict=True)):
        pattern = pattern.freed()
        if type(pattern) is Dense:
            return elementwise(function, args, static)
    return map_entries(function, pattern, values_at(pattern, args, constants), background, shape, static)


def _where_function(define: Callable[..., Array]) -> _Where:
    made = _Where(define, ("condition", "x1", "x2"), dense=dense_searching.where)
    made._declare("all", False, (), True)
    made.rule = _where_rule
    return made


@_where_function
def where(condition: Array, x1: Array | complex, x2: Array | complex, /) -> Array:
    """Choose elements from `x1` where a condition is true, and from `x2` elsewhere.

    Parameters
    ----------
    condition : Array
        The condition, of boolean dtype.
    x1, x2 : Array or number
        The values where the condition is true, and where it is false. All three arguments broadcast against each other.

    Returns
    -------
    Array
        The result, of the common dtype of `x1` and `x2`. It has structural zeros where both have structural zeros. The Python numbers 0
        and 0.0 count as structural zeros next to a structured array. A structured condition is False outside its pattern, where the
        result is `x2`.

    Raises
    ------
    TypeError
        If the condition is not boolean.
    ValueError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import structarrays as sa
    >>> x = sa.asarray([-1.0, 2.0])
    >>> sa.where(x > 0, x, 0.0)
    Dense([0., 2.], dtype=float64)
    """
    choices: Any = condition, x1, x2
    return typing.cast("Array", dense_searching.where(*choices))


typing.cast("dict[str, Any]", FUNCTIONS).update(nonzero=nonzero)
