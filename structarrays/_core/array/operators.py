"""The operators of arrays, and what they accept as an operand."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

import jax
import numpy as np

from ..dispatch import late
from ..dispatch.registry import FUNCTIONS
from ..dispatch.tracing import BUSY
from . import writes
from .writes import DERIVATIVES, DIRECT

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..typing import InPlaceOperator, Operand, Operator
    from .base import Array

# How an operator treats an operand, by exact type. The numbers are flags, so that one test serves both operands:
# - `FAST`: goes directly to the compiled call (`DIRECT`).
# - `CHECKED`: the same, unless the operand is a derivative that operators refuse.
# - `DYNAMIC`: an eager kernel may run. The operand may be `CHECKED`, too.
# - `CAREFUL`: goes through all checks (a Python integer may not fit a dtype).
# - `_FOREIGN`: gets its turn through NotImplemented.
# `is_operand` decides once for each type; the look-up takes 0.05 microseconds.
FAST, CHECKED, DYNAMIC, CAREFUL, _FOREIGN = 0, 1, 2, 4, 8
OPERANDS: dict[type, int] = {}

_OF_ARRAYS: dict[str, Any] = FUNCTIONS
"""The functions behind the operators, typed loosely: a type checker does not know that their arguments are
positional arrays."""

COMPILED: dict[str, list[Callable[..., Any]]] = {}
"""The compiled call of each function of positional arrays, in a list that is empty until the first call. An operator
keeps the list, which is faster than to look it up."""

RETRIED = (TypeError, ValueError, OverflowError, NotImplementedError)
"""Errors of a compiled call that invalid arguments can cause."""

_EQUALITY = ("equal", "not_equal")


def _completed(result: Any) -> Array:
    """Build an array from the result of a compiled call that returned indices among its parameters."""
    from .sharing import complete

    return cast("Array", complete(result, ()))


def _operators(name: str) -> tuple[Operator, Operator, InPlaceOperator]:
    """Return the operator, the reflected operator and the in-place operator of a function of two arrays."""
    operands, direct, kind_of, compiled = OPERANDS, DIRECT, OPERANDS.get, COMPILED.setdefault(name, [])

    def forward(self: Array, other: Operand) -> Any:
        if type(self) in direct and type(other) in direct and compiled and not BUSY:
            try:
                result = compiled[0](self, other)
                return result if type(result) in operands else _completed(result)
            except RETRIED as error:
                failure = error
            return _OF_ARRAYS[name]._after_call(failure, (self, other))
        kinds = kind_of(type(self), CAREFUL) | kind_of(type(other), CAREFUL)
        if kinds & DYNAMIC and kinds < CAREFUL:  # both are arrays
            if kinds & CHECKED and DERIVATIVES:
                writes.refuse_derivatives(name, self, other)
            return _OF_ARRAYS[name].of_arrays((self, other))
        writes.refuse_derivatives(name, self, other)
        # Call `is_operand` on both, so that `OPERANDS` contains both types at the next call.
        known = is_operand(self) and is_operand(other)
        if not known and name in _EQUALITY and isinstance(other, (list, tuple)):
            # Without this check, Python would report that they differ, whatever they contain.
            raise TypeError(
                f"{name}: x2 must be an array or a number, got {type(other).__name__}; use structarrays.asarray"
            )
        if not known:
            return late.combine(name, self, other)
        result = FUNCTIONS[name](self, other)
        if name == "matmul" and isinstance(other, np.ndarray):
            return late.as_called(result, sys._getframe(1))
        return result

    def reflected(self: Array, other: Operand) -> Any:
        writes.refuse_derivatives(name, self)
        return FUNCTIONS[name](other, self) if is_operand(other) else late.combine(name, other, self)

    def in_place(self: Array, other: Operand) -> Any:
        writes.refuse_derivatives(name, self, other)
        if not is_operand(other):
            return NotImplemented
        with writes.LOCK:  # otherwise a write of another thread in between would be lost
            writes.assign_result(self, late.asarray(FUNCTIONS[name](self, other)), name)
        return self

    return forward, reflected, in_place


def _unary(name: str) -> Callable[[Array], Array]:
    """Return the operator of a function of one array."""
    operands, direct, kind_of, compiled = OPERANDS, DIRECT, OPERANDS.get, COMPILED.setdefault(name, [])

    def operator(self: Array) -> Any:
        if type(self) in direct and compiled and not BUSY:
            try:
                result = compiled[0](self)
                return result if type(result) in operands else _completed(result)
            except RETRIED as error:
                failure = error
            return _OF_ARRAYS[name]._after_call(failure, (self,))
        kind = kind_of(type(self), CAREFUL)
        if kind & DYNAMIC:
            if kind & CHECKED and DERIVATIVES:
                writes.refuse_derivatives(name, self)
            return _OF_ARRAYS[name].of_arrays((self,))
        writes.refuse_derivatives(name, self)
        is_operand(self)  # so that `OPERANDS` contains the type at the next call
        return FUNCTIONS[name](self)

    return operator


def _comparison(name: str) -> Operator:
    """Return the operator of a comparison."""
    return _operators(name)[0]


class Operators:
    """The operators of `Array`; every array is an instance."""

    __slots__ = ()

    if TYPE_CHECKING:  # attributes of `Array`

        @property
        def linear(self) -> bool: ...

        static_pattern: bool

        def round(self, decimals: int = 0) -> Array: ...

    __hash__ = None  # type: ignore[assignment]  # arrays can be written to

    __neg__, __pos__, __abs__ = _unary("negative"), _unary("positive"), _unary("abs")
    __invert__ = _unary("bitwise_invert")

    def __round__(self, ndigits: int | None = None) -> Array:
        return self.round(0 if ndigits is None else ndigits)

    def __divmod__(self, other: Operand) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Operand) -> tuple[Any, Any]:
        return other // self, other % self

    __add__, __radd__, __iadd__ = _operators("add")
    __sub__, __rsub__, __isub__ = _operators("subtract")
    __mul__, __rmul__, __imul__ = _operators("multiply")
    __truediv__, __rtruediv__, __itruediv__ = _operators("divide")
    __floordiv__, __rfloordiv__, __ifloordiv__ = _operators("floor_divide")
    __mod__, __rmod__, __imod__ = _operators("remainder")
    __pow__, __rpow__, __ipow__ = _operators("pow")
    __matmul__, __rmatmul__, __imatmul__ = _operators("matmul")
    __and__, __rand__, __iand__ = _operators("bitwise_and")
    __or__, __ror__, __ior__ = _operators("bitwise_or")
    __xor__, __rxor__, __ixor__ = _operators("bitwise_xor")
    __lshift__, __rlshift__, __ilshift__ = _operators("bitwise_left_shift")
    __rshift__, __rrshift__, __irshift__ = _operators("bitwise_right_shift")
    __eq__ = _comparison("equal")  # type: ignore[assignment]  # returns an array, not a bool
    __ne__ = _comparison("not_equal")  # type: ignore[assignment]
    __lt__, __le__ = _comparison("less"), _comparison("less_equal")
    __gt__, __ge__ = _comparison("greater"), _comparison("greater_equal")


_OPERAND_CLASSES = (Operators, jax.Array, np.ndarray, np.generic, bool, int, float, complex)


def _no_numbers(dtype: np.dtype) -> bool:
    """Return whether elements of this dtype are not numbers: objects, dates, strings, or records with fields."""
    return dtype.kind in "OMmSUT" or dtype.names is not None


def is_operand(value: Any) -> bool:
    """Return whether operators and functions accept this value as an array or a scalar."""
    cls = type(value)
    known = OPERANDS.get(cls)
    if known is None:
        known = _FOREIGN
        foreign = isinstance(value, np.ma.MaskedArray) or (cls is np.ndarray and _no_numbers(value.dtype))
        if isinstance(value, _OPERAND_CLASSES) and not foreign:
            known = CAREFUL
            if isinstance(value, jax.Array):
                known = FAST
            elif isinstance(value, Operators):
                # An array of a class that may be nonlinear in its parameters may be a derivative, which operators
                # refuse.
                known = (FAST if cls.linear is True else CHECKED) | (FAST if cls.static_pattern else DYNAMIC)
        if cls is not np.ndarray:
            with writes.LOCK:  # another thread may mark the first derivative
                OPERANDS[cls] = known
                if known == FAST or (known == CHECKED and not DERIVATIVES):
                    DIRECT.add(cls)
    return known != _FOREIGN
