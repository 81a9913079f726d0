"""Functions whose only arguments are positional arrays."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..array.base import Array
from ..array.dense import Dense
from ..array.flattening import dynamic_classes
from ..array.operands import lift, without_weak_types
from ..array.operators import COMPILED, FAST, OPERANDS, RETRIED, is_operand
from ..array.shared_indices import opened_operands
from ..array.sharing import complete
from ..array.writes import DIRECT, SHARED
from ..jax_internals.host_values import is_false
from . import explicit
from .call_arguments import concrete_array_class
from .contexts import ENTERED, linalg_errors
from .function import Function, P, R
from .recording import RECORDING, active_log
from .results import follow_eager_operands, follow_host_operands
from .tracing import BUSY, COMPILED_CALL, within_function

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class ArrayFunction(Function[P, R]):
    """A function whose only arguments are positional arrays: the fastest call."""

    @functools.cached_property
    def _fast(self) -> Callable[..., Any]:
        """The compiled call without static arguments, also stored in `COMPILED` for the operators."""
        compiled = functools.partial(self._compiled, ())
        functools.update_wrapper(compiled, self.__wrapped__, updated=())  # JAX's messages contain the name
        jitted: Callable[..., Any] = explicit.jit(compiled, inline=True)
        COMPILED.setdefault(self.name, [])[:] = [jitted]
        return jitted

    def __call__(self, *arrays: P.args, **unknown: P.kwargs) -> R:
        if not (BUSY or ENTERED or unknown or self.eager_of_all):
            try:
                if len(arrays) == 1:  # apart, since a call with a sequence of arguments takes longer
                    if type(arrays[0]) in DIRECT:
                        result: R = self._fast(arrays[0])
                        return result if type(result) in OPERANDS else complete(result, arrays)
                elif arrays and DIRECT.issuperset(map(type, arrays)):
                    result = self._fast(*arrays)
                    return result if type(result) in OPERANDS else complete(result, arrays)
            except RETRIED as error:
                failure = error
            else:
                return self._looked_at(arrays, unknown)
            return self._after_call(failure, arrays)
        return self._looked_at(arrays, unknown)

    def _looked_at(self, arrays: Sequence[Any], unknown: dict[str, Any]) -> R:
        """Call the function with arguments of classes that not every compiled call accepts."""
        if unknown or not arrays:
            self._plan(arrays, unknown)  # raises
        return self.of_arrays(arrays)

    def of_arrays(self, arrays: Sequence[Any]) -> R:
        """Run an eager kernel or the compiled call. The operators call this, for arrays whose patterns are not static."""
        if self.eager is not None and (self.eager_of_all or not dynamic_classes.isdisjoint(map(type, arrays))):
            result: R = self._eagerly(self.eager, arrays, {})
            if result is not NotImplemented:
                return result
        if BUSY or ENTERED:
            if COMPILED_CALL.active and within_function():
                return self._traced_with_caller((), arrays)
            if SHARED or ENTERED:
                arrays = self._prepared(arrays)
            if RECORDING and active_log() is not None:
                return self._careful(*arrays)
        try:
            result = complete(self._fast(*opened_operands(arrays)), arrays)
        except RETRIED as error:
            failure = error
        else:
            for x in arrays:
                if type(x) not in OPERANDS:
                    is_operand(x)  # so that `OPERANDS` contains the type at the next call
            return result if isinstance(result, Array) else follow_host_operands(result, arrays)
        return self._after_call(failure, arrays)

    def _after_call(self, failure: Exception, arrays: Sequence[Any]) -> R:
        self._plan(arrays, {})  # raises for a wrong number of arguments
        return self._after(failure, (), arrays)

    def _careful(self, *arrays: Any) -> R:
        self._plan(arrays, {})  # raises for a wrong number of arguments
        _, repaired = self._repair((), arrays)
        return self._run((), repaired, repaired=True)

    def _trace(self, static: tuple[Any, ...], *arrays: Any) -> Any:
        return without_weak_types(self.__wrapped__(*map(lift, arrays)))


class CheckedArrayFunction(ArrayFunction[P, R]):
    """A function of positional arrays whose compiled call returns a flag in addition to the result."""

    def __call__(self, *arrays: P.args, **unknown: P.kwargs) -> R:
        if arrays and type(arrays[0]) is Dense and not (BUSY or ENTERED or unknown):
            for x in arrays:
                if OPERANDS.get(type(x)) != FAST:
                    break
            else:
                try:
                    whole: R
                    whole, ok = complete(self._fast(*arrays), arrays)
                except RETRIED as error:
                    failure = error
                else:
                    if type(ok) is concrete_array_class() and is_false(ok):
                        return self._once_more((), arrays)
                    return whole
                return self._after_call(failure, arrays)
        return self._looked_at(arrays, unknown)

    def of_arrays(self, arrays: Sequence[Any]) -> R:
        if self.eager is not None and (self.eager_of_all or not dynamic_classes.isdisjoint(map(type, arrays))):
            early: R = self._eagerly(self.eager, tuple(map(lift, arrays)), {})
            if early is not NotImplemented:
                early = follow_eager_operands(early, arrays)
                return early
        if COMPILED_CALL.active and within_function():
            return self._traced_with_caller((), arrays)
        operands: Sequence[Any] = arrays
        if SHARED or ENTERED:
            operands = self._prepared(arrays)
            if RECORDING and active_log() is not None:
                return self._careful(*operands)
        try:
            result: R
            with self._attempt(operands):
                result, ok = complete(self._fast(*opened_operands(operands)), operands)
        except RETRIED as error:
            failure = error
        else:
            whole = self._unless_failed(result, ok, operands)
            return whole if isinstance(whole, Array) else follow_host_operands(whole, arrays)
        return self._after_call(failure, operands)

    def _unless_failed(self, result: Any, ok: Any, operands: Sequence[Any]) -> R:
        # Reading the flag takes a fifth of the time of a small solve, so this method does nothing else.
        if type(ok) is concrete_array_class() and linalg_errors.value == "raise" and is_false(ok):
            return self._once_more((), operands)
        whole: R = result
        return whole
