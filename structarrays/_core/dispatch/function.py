"""Functions of the namespace: one compiled call each; the kernel is chosen during tracing
(docs/design/architecture.md).

The definition of a public function is ordinary Python code that checks its arguments and dispatches::

    @function("x1", "x2")
    def matmul(x1, x2, /):
        ...                                  # checks; raises for invalid arguments
        return matmul.dispatch(x1, x2)       # the kernel for these classes

A call runs `jax.jit` of that code, with arrays as pytrees and everything else static. So the checks and the search for
the kernel run only for a new combination of classes, shapes, dtypes and static arguments. Later calls find the compiled
code in JAX's cache, in about four microseconds altogether.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, ParamSpec, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from .. import dtypes
from ..array.base import Array
from ..array.dense import Dense, on_data
from ..array.flattening import barred_arguments, dynamic_classes, opened_arguments
from ..array.operands import check_operand, densify, lift, to_dense, unsupported, without_weak_types
from ..array.operators import RETRIED
from ..array.sharding import padded_for, pieces
from ..array.shared_indices import WithoutIndices, opened_operands, with_shared_indices
from ..array.sharing import complete, incomplete, with_indices
from ..array.writes import SHARED
from ..errors import DensifyError
from ..jax_internals.host_values import is_false
from . import explicit
from .call_arguments import (
    any_traced,
    comparable,
    concrete_array_class,
    hashable_form,
    is_hashable,
    new_handles,
    python_integer,
)
from .contexts import ENTERED, Caller, apply, caller, linalg_errors
from .eager_kernels import EagerKernels
from .precision import precision_of
from .recording import RECORDING, active_log
from .registry import FUNCTIONS
from .results import follow_eager_operands, follow_host_operands, follow_operands
from .tracing import COMPILED_CALL, compiled_call, compiling, is_of_function, within_function

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..typing import Result, Rule, Static
    from .recording import Log


class _Plan(NamedTuple):
    """Classification of the arguments of a call, by the number of positional arguments and the keywords."""

    static: tuple[str | None, ...]
    """For each argument, its name if it is static, None if it is an array."""
    arrays: tuple[str, ...]
    """Names of the array arguments."""


_NO_CONTEXT = contextlib.nullcontext()


P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class Function(EagerKernels, Generic[P, R]):
    """A function of the namespace, with the signature and docstring of the standard, and a registry of kernels.

    Parameters
    ----------
    define : callable
        The definition: it receives arrays (as `Array`) and static arguments, checks them, and computes or dispatches.
    arrays : tuple of str
        Names of the array parameters; the others are static. A leading star marks a sequence of arrays.
    checked : str or None
        Message of the `numpy.linalg.LinAlgError`, for functions that return ``(result, ok)``. An eager call raises it
        if `ok` is false.
    prefix : str
        Module of the namespace: ``"linalg."``, ``"fft."`` or empty.
    rule : callable or None
        Rule that computes the result for classes without a kernel.
    dense : callable or None
        The kernel for `Dense` operands, as a function of `jax.Array`.
    """

    follows = True
    """Whether the type of dense results follows the operands; otherwise results are arrays of this library."""
    followed: tuple[str, ...] = ()
    """Names of the operands that the type of dense results follows, if not all operands: the factors of a matrix do not
    count."""
    compared = 0
    """The number of leading arguments whose elements are compared; a Python integer may then have any size."""
    promotes = False
    """Whether the arguments are promoted to one dtype, which must be able to represent a Python integer among them."""

    __wrapped__: Callable[..., Any]

    def __init__(
        self,
        define: Callable[P, R],
        arrays: tuple[str, ...],
        *,
        checked: str | None = None,
        prefix: str = "",
        rule: Rule | None = None,
        dense: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(prefix + define.__name__)
        functools.update_wrapper(self, define)
        self.arrays = arrays
        self.checked = checked
        self.rule = rule
        self.is_retried: Callable[[Array], bool] = lambda x: False
        """Predicate on the first argument: whether its kernel forms the dense form in a second attempt, see
        `Caller.expands`. Otherwise the second attempt has the dense form as its argument.
        """
        self._plans: dict[tuple[Any, ...], _Plan] = {}
        if dense is not None:
            self._registering((Dense,) * len(arrays), None, (), define.__code__.co_filename)(on_data(dense))
        FUNCTIONS[self.name] = cast("Function[..., Array]", self)  # the functions that the core calls return an array

    @functools.cached_property
    def __signature__(self) -> inspect.Signature:
        try:
            return inspect.signature(self.__wrapped__, eval_str=True)
        except NameError:  # an annotation uses a name that its module imports only for type checkers
            return inspect.signature(self.__wrapped__)

    @functools.cached_property
    def _flags(self) -> frozenset[str]:
        """Names of the boolean parameters."""
        return frozenset([p.name for p in self.__signature__.parameters.values() if p.annotation in (bool, "bool")])

    @functools.cached_property
    def _jit(self) -> Any:
        """The compiled call, created on first use, since this takes 0.1 ms."""
        return explicit.jit(self._compiled, static_argnums=0, inline=True)

    def _compiled(self, static: tuple[Any, ...], *arrays: Any) -> Any:
        """Compute the function in a compiled call.

        If parameters determine the positions of entries, parameters that are returned unchanged stay outside of the
        compiled call.
        """
        if WithoutIndices in map(type, arrays):
            arrays = with_shared_indices(arrays)
        with compiled_call():
            if jax.default_backend() == "cpu":
                result = self._trace(static, *arrays)
            else:
                with precision_of(self.name, arrays):
                    result = self._trace(static, *arrays)
        count = pieces(arrays)
        if count > 1:
            result = padded_for(result, count)
        if self.follows and (type(result) is Dense or not isinstance(result, Array)):
            result = follow_operands(result, self.deciding(static, arrays) if self.followed else arrays)
        return with_indices(result) if dynamic_classes.isdisjoint(map(type, arrays)) else incomplete(result, arrays)

    def __repr__(self) -> str:
        return f"<function structarrays.{self.name}{self._signature_text()}>"

    def __reduce__(self) -> tuple[Callable[[str], Function[..., Any]], tuple[str]]:
        return _function_by_name, (self.name,)

    # ---- the call ------------------------------------------------------------------------------------------------

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        shape = (len(args), *kwargs)
        plan = self._plans.get(shape)
        if plan is None:
            plan = self._plans[shape] = self._plan(args, kwargs)
        static: list[Any] = []
        types: list[type] = []
        arrays: list[Any] = []
        for name, value in zip(plan.static, (*args, *kwargs.values()), strict=True):
            if name is None:
                arrays.append(value)
            else:
                static.append(value)
                types.append(type(value))
        if self.eager is not None and (self.eager_of_all or not dynamic_classes.isdisjoint(map(type, arrays))):
            result: R = self._eagerly(self.eager, arrays, dict(zip(filter(None, plan.static), static, strict=True)))
            if result is not NotImplemented:
                return result
        # The types belong to the key of the compiled call: 1, 1.0 and True are equal, as are None and NumPy's float64,
        # but they are different arguments.
        return self._run((shape, tuple(types), *static), arrays)

    def without_eager_kernels(self, *arrays: Any) -> R:
        """Run the compiled call on positional arrays, for the eager kernels of this function."""
        shape = (len(arrays),)
        if shape not in self._plans:
            self._plans[shape] = self._plan(arrays, {})
        return self._run((shape, ()), list(arrays))

    def _run(self, static: tuple[Any, ...], arrays: Sequence[Any], repaired: bool = False) -> R:
        """Call the function without eager kernels. `repaired` tells whether JAX accepts the form of the arguments."""
        if self.compared:
            arrays = self._comparable(arrays)
        if COMPILED_CALL.active and within_function():
            return self._traced_with_caller(static, arrays)
        if SHARED or ENTERED:
            arrays = self._prepared(arrays)
        if RECORDING and active_log() is not None:
            return self._recorded(static, arrays)
        try:
            with self._attempt(arrays):
                result: Any = complete(self._jit(static, *opened_operands(arrays)), arrays)
        except RETRIED as error:
            failure = error
        else:
            whole: R = result if self.checked is None else self._verified(result, static, arrays)
            return whole if isinstance(whole, Array) else follow_host_operands(whole, self.deciding(static, arrays))
        # Outside of the handler, so that the next error is not chained to this one.
        return self._after(failure, static, arrays, repaired)

    def _after(self, failure: Exception, static: tuple[Any, ...], arrays: Sequence[Any], repaired: bool = False) -> R:
        """Repeat a failed call with arguments in a form that JAX accepts, or raise an error that names the cause."""
        static, arrays = self._repair(static, arrays)
        if repaired or is_of_function(failure):
            self._explain(failure, static, arrays)
            raise failure
        return self._run(static, arrays, repaired=True)

    def _traced_with_caller(self, static: tuple[Any, ...], arrays: Sequence[Any]) -> R:
        """Trace the definition inside the compiled call of another function, which is faster than a nested compiled
        call.
        """
        if not is_hashable(static):
            static, arrays = self._repair(static, arrays)
        arrays = barred_arguments(new_handles(arrays))  # a kernel may write to its arguments
        result: Any = self._trace(static, *arrays)
        count = pieces(arrays)
        if count > 1:
            result = padded_for(result, count)
        whole: R = result if self.checked is None else result[0]
        return whole

    def _plan(self, args: Sequence[Any], kwargs: dict[str, Any]) -> _Plan:
        try:
            self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}(): {error}; its signature is {self.name}{self._signature_text()}") from None
        parameters = self.__signature__.parameters
        arrays = {name.lstrip("*") for name in self.arrays}
        positional = [p.name for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        more = [f"argument {i + 1}" for i in range(len(positional), len(args))]  # from ``*args``, all arrays
        names = (*positional[: len(args)], *more, *kwargs)
        static = [name if name in parameters and name not in arrays else None for name in names]
        return _Plan(tuple(static), tuple([name for name in names if name not in static]))

    def _signature_text(self) -> str:
        """Return the signature, with the classes of the namespace without their modules."""
        return re.sub(r"\b(?:structarrays\.(?:[\w.]*\.)?|typing\.)", "", str(self.__signature__))

    def _repair(self, static: tuple[Any, ...], arrays: Sequence[Any]) -> tuple[tuple[Any, ...], list[Any]]:
        """Convert the arguments of a failed call to a form that JAX accepts; raise an error for an invalid one."""
        fixed = (*static[:2], *map(hashable_form, static[2:]))
        try:
            hash(fixed)
        except TypeError:
            bad = next(v for v in fixed[2:] if not is_hashable(v))
            raise TypeError(f"{self.name}: a static argument must be hashable, got type {type(bad).__name__}") from None
        good: list[Any] = []
        for name, value in zip(self._names(static, len(arrays)), arrays, strict=True):
            if isinstance(value, (list, tuple)) and self._takes_sequence(name):
                good.append(tuple(self._operand(v, f"{name}[{j}]") for j, v in enumerate(value)))
            else:
                good.append(value if value is None and self._is_optional(name) else self._operand(value, name))
        if self.promotes:
            strong = [v.dtype for v in good if hasattr(v, "dtype")]
            good = [python_integer(v, strong, self.name) if type(v) is int else v for v in good]
        return fixed, good

    def deciding(self, static: tuple[Any, ...], arrays: Sequence[Any]) -> Sequence[Any]:
        """Return the operands that the type of dense results follows."""
        if not self.followed:
            return arrays
        names = self._names(static, len(arrays))
        return [x for name, x in zip(names, arrays, strict=True) if name in self.followed]

    def _names(self, static: tuple[Any, ...], count: int) -> list[str]:
        """Return the names of `count` operands in messages."""
        plan = self._plans.get(static[0]) if static else None
        names = list(plan.arrays) if plan else [name.lstrip("*") for name in self.arrays]
        return [*names[:count], *(f"argument {i + 1}" for i in range(len(names), count))]

    def _explain(self, error: Exception, static: tuple[Any, ...], arrays: Sequence[Any]) -> None:
        """Raise an error that names the operand, if only its data type of 16 bits makes the call fail."""
        names = self._names(static, len(arrays))
        half = [(n, x) for n, x in zip(names, arrays, strict=True) if _is_half(x)]
        if not half or not self.name.startswith("linalg."):
            return
        single = [x.astype(jnp.float32) if _is_half(x) else x for x in arrays]
        try:
            jax.eval_shape(functools.partial(self._jit, static), *opened_arguments(single))
        except Exception:  # noqa: BLE001 - a failure in single precision as well has another cause
            return
        name, x = half[0]
        raise unsupported(self.name, name, x.dtype) from error

    def _takes_sequence(self, name: str) -> bool:
        return f"*{name}" in self.arrays

    def _is_optional(self, name: str) -> bool:
        parameter = self.__signature__.parameters.get(name)
        return parameter is not None and parameter.default is None

    def _operand(self, value: Any, argument: str) -> Any:
        check_operand(value, self.name, argument)
        return dtypes.native(value)

    def _trace(self, static: tuple[Any, ...], *arrays: Any) -> Any:
        """Trace the definition, and remove weak types from its results."""
        count, *names = static[0]
        next_static, next_array = iter(static[2:]), iter(arrays)
        plan = self._plans[static[0]]
        for argument, value in zip(filter(None, plan.static), static[2:], strict=True):
            if argument in self._flags and not isinstance(value, (bool, int, np.bool_)):
                raise TypeError(f"{self.name}: {argument} must be True or False, got {value!r}")
        operands = iter(plan.arrays)
        args = [
            self._lift(next(next_array), next(operands)) if name is None else next(next_static) for name in plan.static
        ]
        result = self.__wrapped__(*args[:count], **dict(zip(names, args[count:], strict=True)))
        return without_weak_types(result)

    def _lift(self, value: Any, name: str) -> Any:
        if value is None and self._is_optional(name):
            return value
        if isinstance(value, (list, tuple)) and self._takes_sequence(name):
            return tuple(lift(v) for v in value)
        return lift(value, name)  # raises for a list of scalars, which JAX converts to a tuple

    def _verified(self, result: tuple[R, Any], static: tuple[Any, ...], arrays: Sequence[Any]) -> R:
        whole, ok = result
        if type(ok) is concrete_array_class() and linalg_errors.value == "raise" and is_false(ok):
            return self._once_more(static, arrays)
        return whole

    def _comparable(self, arrays: Sequence[Any]) -> list[Any]:
        operands = arrays[: self.compared]
        known = [a.dtype for a in operands if isinstance(getattr(a, "dtype", None), np.dtype)]
        return [*(comparable(a, known) for a in operands), *arrays[self.compared :]]

    def _prepared(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Prepare the arguments of a call after a write by several threads, or after a policy has been set.

        It passes the policies of this task to JAX, since the arguments may contain no array of this library.
        """
        if ENTERED:
            apply()
        return tuple(new_handles(arrays)) if SHARED else tuple(arrays)

    def _attempt(self, arrays: Sequence[Any]) -> contextlib.AbstractContextManager[None]:
        """Return the context of a first attempt: compiled code contains no fallback to the dense form if `_once_more`
        follows.
        """
        x = arrays[0] if arrays and self.checked is not None and not caller.value.expands else None
        if not isinstance(x, Array) or not (x.solved_by_parts or self._may_retry(x)):
            return _NO_CONTEXT
        if any_traced(arrays) or compiling():  # the flag is a tracer, also if all arguments are constants
            return _NO_CONTEXT
        falls_back = linalg_errors.value == "raise"
        context: contextlib.AbstractContextManager[None] = caller(
            Caller(falls_back=falls_back, is_constant=True, is_eager=falls_back)
        )
        return context

    def _once_more(self, static: tuple[Any, ...], arrays: Sequence[Any]) -> R:
        """Repeat the call with the dense form, if the policy allows it, after a failed factorization.

        For example, a sum may be regular although the term that the solver factorizes is singular.

        Raises
        ------
        numpy.linalg.LinAlgError
            If no dense form may be tried, or it fails as well.
        """
        x = arrays[0]
        try:
            if self._may_retry(x):
                with caller(Caller(expands=True)):
                    return self._run(static, arrays)
            if isinstance(x, Array) and x.solved_by_parts:
                dense = densify(x, self.name)
                whole: R = follow_eager_operands(self._run(static, [dense, *arrays[1:]]), arrays)
                return whole
        except DensifyError as error:
            self._raise(f"; its dense form was not tried:\n{error}")
        self._raise()

    def _may_retry(self, x: Any) -> bool:
        return isinstance(x, Array) and not caller.value.expands and self.is_retried(x)

    def _raise(self, why: str = "") -> NoReturn:
        raise np.linalg.LinAlgError(f"{self.name}: {self.checked}{why}")

    def _recorded(self, static: tuple[Any, ...], arrays: Sequence[Any]) -> R:
        from .recording import recorded_call

        static, arrays = self._repair(static, arrays)
        with self._attempt(arrays):
            result: Any = recorded_call(self, static, arrays)
        whole: R = result if self.checked is None else self._verified(result, static, arrays)
        return whole if isinstance(whole, Array) else follow_host_operands(whole, self.deciding(static, arrays))

    # ---- the dispatch, while tracing -----------------------------------------------------------------------------

    def dispatch(self, *args: Array, **static: Any) -> Result:
        """Run the kernel for these arrays, otherwise the rule of the family, otherwise the dense kernel."""
        log = active_log() if RECORDING else None
        kernel = self.choose(args, static)
        if kernel is not None:
            if log is None:
                return kernel.run(*args, **static)
            with log.event(self.name, args, f"kernel {kernel}") as event:
                return event.finish(kernel.run(*args, **static))
        if self.rule is not None:
            result = self._by_rule(self.rule, log, args, static)
            if result is not NotImplemented:
                return result
        # If another operand is dense and has the same shape, the dense form is no larger than that operand.
        shapes = {x.shape for x in args if type(x) is Dense}
        dense = tuple(to_dense(x) if x.shape in shapes else densify(x, self.name) for x in args)
        kernel = self.choose(dense, static)
        if kernel is None:
            raise TypeError(f"{self.name} has no kernel for {', '.join(type(x).__name__ for x in args)}")
        return kernel.run(*dense, **static)

    def _by_rule(self, rule: Rule, log: Log | None, args: Sequence[Array], static: Static) -> Result:
        if log is None:
            return rule(self, args, static)
        with log.event(self.name, args, f"rule of {rule.__name__}") as event:
            result = rule(self, args, static)
        if result is NotImplemented:
            log.events.remove(event)
            return result
        return event.finish(result)


def _is_half(x: Any) -> bool:
    return isinstance(x, Array | jax.Array) and dtypes.is_half(x.dtype)


def _function_by_name(name: str) -> Function[..., Any]:
    return FUNCTIONS[name]
