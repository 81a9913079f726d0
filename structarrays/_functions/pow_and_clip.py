"""Elementwise functions of the standard: `pow` and `clip`, whose results' structure depends on more than the classes.

A power keeps structural zeros if the exponent is a positive Python number. The result of `clip` depends on which bounds
are given. Both functions call the rule for elementwise functions with a formula for the given arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jax

from .._core.array.base import Array
from .._core.array.operands import lift, without_weak_types
from .._core.families.elementwise_rule import ElementwiseArrayFunction, dense_elementwise, elementwise
from .._core.families.formula import Formula

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._core.array.arguments import ArrayLike
    from .._core.array.dense import Dense
    from .._core.typing import Result, Static


# Powers with integer exponents up to this limit are computed by multiplication, with separate compiled code for each.
# Only the sign of other exponents is static, so that a loop over many exponents does not compile in each step.
_LARGEST_EXACT = 16
# A positive exponent below float16's smallest normal number may become 0 when it is rounded to the dtype of the array.
_SMALLEST_POSITIVE = 2.0**-14


class Exponent(NamedTuple):
    """Static properties of an exponent that is a Python number: type, value if it is a small integer, and sign."""

    kind: type  # 2 == 2.0, but the dtypes of the results differ
    value: int | None
    sign: int

    @classmethod
    def of(cls, number: int | float) -> Exponent | None:
        """Return the static properties, or None if a number is neither a small integer nor positive in every dtype."""
        if -_LARGEST_EXACT <= number <= _LARGEST_EXACT and number == int(number):
            return cls(type(number), int(number), (number > 0) - (number < 0))
        if type(number) is int:
            return cls(int, None, 1 if number > 0 else -1)
        return cls(float, None, 1) if number >= _SMALLEST_POSITIVE else None


class Power(ElementwiseArrayFunction[...]):
    """`pow`, with static properties of an exponent that is a Python number.

    Kernels always receive the exponent as an array, and the keyword `exponent`: an `Exponent`, or None if the exponent
    is an array.
    """

    def __init__(self, formula: Callable[..., Array]) -> None:
        super().__init__(formula, ("x1", "x2"))
        self._declare("numeric", zero=False, absorbs=(), exact=False)
        self.rule = elementwise_power

    def __call__(self, *arrays: Any, **unknown: Any) -> Array:
        if len(arrays) != 2 or unknown:
            self._plan(arrays, unknown)  # raises for missing or unknown arguments
        x1, x2 = arrays
        exponent = Exponent.of(x2) if type(x2) is int or type(x2) is float else None
        if exponent is None:
            return super().__call__(x1, x2)
        if exponent.value is not None:
            return self._run((exponent,), (x1,))
        if type(x2) is int and x2 > 127:
            _, (x1, x2) = self._repair((), (x1, x2))  # it may not fit the dtype of x1
        return self._run((exponent,), (x1, x2))

    def _trace(self, static: tuple[Any, ...], x1: Any, x2: Any = None) -> Any:
        (exponent,) = static or (None,)
        if x2 is None:
            x2 = exponent.kind(exponent.value)
        x1, x2 = self.prepare(lift(x1), lift(x2))
        if exponent is not None and exponent.kind is int and exponent.sign < 0 and x1.dtype.kind in "iu":
            which = "below -16" if exponent.value is None else exponent.value
            raise ValueError(
                f"pow: x1 has dtype {x1.dtype} and x2 is {which}; integers to negative integer powers are not allowed"
            )
        return without_weak_types(self.dispatch(x1, x2, exponent=exponent))


def elementwise_power(function: Power, args: Sequence[Array], static: Static) -> Result:
    """Compute a power by `elementwise`, as a function of the base alone if the exponent is static."""
    exponent, (base, power) = static["exponent"], args
    if exponent is None:
        return elementwise(function, args, {})

    def formula(x: jax.Array) -> jax.Array:
        if exponent.value is not None:
            return jax.lax.integer_pow(x, exponent.value)
        result: jax.Array = function.formula(x, cast("Dense", power).data)
        return result

    made: Any = Formula(function.name, formula, zero=exponent.sign > 0)  # with the attributes that `elementwise` reads
    return elementwise(made, (base,), {})


@Power
def pow(x1: Array, x2: Array, /) -> Array:
    """First array raised to powers from the second array, element-wise.

    Parameters
    ----------
    x1, x2 : array or Python scalar
        Of a numeric dtype. The shapes broadcast, the dtypes are promoted.

    Returns
    -------
    array
        Array of the broadcast shape and the promoted dtype.

    Raises
    ------
    TypeError
        If a dtype is boolean.
    ValueError
        If the shapes do not broadcast, or integers are raised to a negative Python integer.
    OverflowError
        If a Python integer does not fit the dtype of the array next to it.

    Notes
    -----
    Structural zeros stay if the exponent is a positive Python number. Any other exponent, arrays of zero dimensions
    included, gives them a background value of ``pow(0, x2)``. Powers with small integer exponents are computed by
    multiplication. The result of an integer raised to a negative element of an integer array is undefined. The powers
    of a matrix are `linalg.matrix_power`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.pow(sa.asarray([1.0, 2.0, 3.0]), 2)
    Dense([1., 4., 9.], dtype=float64)
    """
    return dense_elementwise.pow(x1, x2)


class Clip(ElementwiseArrayFunction[...]):
    """`clip`, with optional bounds.

    Kernels receive the array and the given bounds, and the keyword `bounds` with the names of the given bounds.
    """

    def __init__(self, formula: Callable[..., Array]) -> None:
        super().__init__(formula, ("x", "min", "max"))
        self._declare("real numeric", zero=True, absorbs=(), exact=False)
        self.rule = elementwise_clip

    def __call__(self, x: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
        arrays: Sequence[Any] = (x, min, max)
        if any(type(v) is int and not 0 <= v < 128 for v in arrays):
            _, arrays = self._repair((), arrays)  # it may not fit the dtype of x
        return self._run((), arrays)

    def _trace(self, static: tuple[Any, ...], x: Any, min: Any = None, max: Any = None) -> Any:
        given = {name: bound for name, bound in (("min", min), ("max", max)) if bound is not None}
        # The checks name an argument by its position, so that they need all three.
        x, min, max = self.prepare(*(lift(x if v is None else v) for v in (x, min, max)))
        arrays = [x] + [bound for name, bound in (("min", min), ("max", max)) if name in given]
        return without_weak_types(self.dispatch(*arrays, bounds=tuple(given)))


def elementwise_clip(function: Clip, args: Sequence[Array], static: Static) -> Result:
    """Compute `clip` by `elementwise` with the given bounds."""

    def formula(x: jax.Array, *bounds: jax.Array) -> jax.Array:
        result: jax.Array = function.formula(x, **dict(zip(static["bounds"], bounds, strict=True)))
        return result

    made: Any = Formula(function.name, formula, function.zero)  # with the attributes that `elementwise` reads
    return elementwise(made, args, {})


@Clip
def clip(x: Array, /, min: Array | None = None, max: Array | None = None) -> Array:
    """Limit the elements to an interval, element-wise.

    Parameters
    ----------
    x : array
        Of a real numeric dtype.
    min, max : array or Python scalar, optional
        The lower and the upper bound. The shapes broadcast, the dtypes are promoted. Where `min` is above `max`, the
        result is `max`.

    Returns
    -------
    array
        Array of the broadcast shape and the promoted dtype; NaN where an element or a bound is NaN.

    Raises
    ------
    TypeError
        If a dtype is boolean or complex.
    ValueError
        If the shapes do not broadcast.
    OverflowError
        If a Python integer does not fit the dtype of the array next to it.

    Notes
    -----
    The result has structural zeros where `x` and the given bounds have them. Otherwise, structural zeros become a
    background value.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.clip(sa.asarray([-1.0, 0.5, 2.0]), 0.0, 1.0)
    Dense([0. , 0.5, 1. ], dtype=float64)
    """
    return dense_elementwise.clip(x, min, max)
