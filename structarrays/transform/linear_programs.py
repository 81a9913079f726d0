"""Sparsity patterns and coefficients of linear programs: the interpreter behind `jacobian`.

The derivative of a function, as JAX computes it, is a program that is linear in some of its inputs. The interpreter runs such a
program with a `LinearMap` for each value that depends on these inputs. A rule for a primitive acts on the pattern of a map with
NumPy, while JAX traces, and on its coefficients with JAX. Other values are ordinary arrays. The interpreter evaluates integers that do
not depend on the arguments of the function, such as the indices of a gather, at once, since patterns depend on them.

A primitive without a rule is applied to the dense form of its operands, under the policy of `densify`.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from .._core.dispatch.contexts import densify_policy
from .._core.dispatch.recording import Event, active_log
from .._core.errors import DensifyError, DensifyWarning
from .._core.jax_internals.equations import bind, inner_program, parts, problem_of
from .._core.jax_internals.jaxprs import equations_of
from .._core.jax_internals.program_types import jaxprs_in_params
from .interpreter import Interpreter
from .linear_maps import Columns, LinearMap, TooManyEntriesError, columns_of

if TYPE_CHECKING:
    from collections.abc import Sequence

LARGEST_INTEGERS = 2**27
LARGEST_CONSTANT = 2**22
"""The largest arrays of integers and of other constants that are evaluated while JAX traces."""


class NeedsReverseModeError(Exception):
    """The program contains a function with a custom derivative in reverse mode only."""


@dataclass(frozen=True)
class Plain:
    """An array that depends on no linear input, and that is unknown when the pattern is determined."""

    value: Any
    zero: bool = False
    """Whether all elements are known to be zero, as for the tangent of a constant."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return np.shape(self.value)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the array."""
        dtype: np.dtype = self.value.dtype
        return dtype


def is_map(value: Any) -> bool:
    """Return whether a value is a `LinearMap`."""
    return isinstance(value, LinearMap)


def is_static(value: Any) -> bool:
    """Return whether a value is a constant of the program."""
    return not isinstance(value, (Plain, LinearMap, jax.core.Tracer))


def is_zero(value: Any) -> bool:
    """Return whether a value is a map, or known to be zero.

    The derivative of most primitives is linear, so that values other than maps are zero. A custom derivative may combine a tangent
    with any other value; the dense form then serves.
    """
    if isinstance(value, Plain):
        return value.zero
    return is_map(value) or (is_static(value) and _vanishes(value))


def _vanishes(constant: Any) -> bool:
    dtype = getattr(constant, "dtype", None)
    if dtype is not None and jax.numpy.issubdtype(dtype, jax.dtypes.extended):
        return False
    return not np.any(np.asarray(constant))


def value_of(value: Any) -> Any:
    """Return the array of a value that is not a map."""
    return value.value if isinstance(value, Plain) else value


class LinearInterpreter(Interpreter):
    """An interpreter that evaluates constants at once and runs linear equations on maps."""

    def evaluate(self, equation: Any, values: Sequence[Any], used: Sequence[bool] | None = None) -> Sequence[Any]:
        if not any(map(is_map, values)):
            return self._evaluate_plain(equation, values, used)
        name = equation.primitive.name
        if name == "custom_lin":
            raise NeedsReverseModeError
        if any(isinstance(v, Columns) for v in values) and name in self.rules and name not in KEEP_COLUMNS:
            return self._default(equation, values)
        if name in self.rules and problem_of(equation) is not None:
            return self._default(equation, values)
        try:
            return super().evaluate(equation, values, used)
        except TooManyEntriesError:
            return self._default(equation, values)

    def _default(self, equation: Any, values: Sequence[Any]) -> list[Any]:
        result: list[Any] = self.default(self, equation, *values)
        return result

    def _evaluate_plain(self, equation: Any, values: Sequence[Any], used: Sequence[bool] | None) -> Sequence[Any]:
        """Evaluate an equation that depends on no linear input."""
        if _contains(equation, "custom_lin"):  # the tangents are zeros, for example in the first step of a loop
            raise NeedsReverseModeError
        name = equation.primitive.name
        known = all(map(is_static, values)) and not equation.effects and not _contains(equation, "pure_callback")
        if known and all(map(_is_small, equation.outvars)):
            with jax.ensure_compile_time_eval():
                results = bind(equation, values)
            results = results if isinstance(results, list) else [results]
            return [Plain(r) if isinstance(r, jax.core.Tracer) else r for r in results]
        program = inner_program(equation) if name in ("jit", "closed_call") else None
        if program is not None and (any(map(_is_integer, equation.outvars)) or any(map(is_zero, values))):
            return self.run(program, *values, needed=used)
        results = bind(equation, [value_of(v) for v in values])
        zero = _remains_zero(name, values)
        return [Plain(r, zero) for r in (results if isinstance(results, list) else [results])]


def _remains_zero(name: str, values: Sequence[Any]) -> bool:
    """Return whether a primitive certainly returns zero for these operands."""
    if name in _ZERO_FOR_ONE:
        return any(map(is_zero, values))
    places = _ZERO_FOR.get(name)
    return places is not None and bool(values) and all(map(is_zero, values[places]))


_ZERO_FOR_ONE = {"mul", "dot_general", "conv_general_dilated"}
"""Primitives that are zero if one operand is."""

_LINEAR = """add add_any broadcast_in_dim complex concatenate conj convert_element_type copy copy_p cumsum neg pad real imag
reduce_precision reduce_sum reshape rev slice squeeze stack sub tile transpose"""
_ZERO_FOR = {name: slice(None) for name in _LINEAR.split()} | {
    "div": slice(1),
    "dynamic_slice": slice(1),
    "dynamic_update_slice": slice(2),
    "gather": slice(1),
    "scatter-add": slice(0, 3, 2),
    "select_n": slice(1, None),
}
"""The operands for which a primitive is zero if they are."""

KEEP_COLUMNS = {"scan", "while", "cond"}
"""The primitives whose rules accept maps in the dense form."""


def _is_integer(variable: Any) -> bool:
    dtype = getattr(variable.aval, "dtype", None)
    return getattr(dtype, "kind", "") in tuple("biu")


def _is_small(variable: Any) -> bool:
    size = math.prod(getattr(variable.aval, "shape", ()))
    return size <= (LARGEST_INTEGERS if _is_integer(variable) else LARGEST_CONSTANT)


LINEAR = LinearInterpreter(special=is_map)
"""The interpreter of linear programs."""

rule = LINEAR.rule


def count_equations(program: Any) -> int:
    """Return the number of equations of a program, including the programs inside."""
    return sum(1 + sum(map(count_equations, jaxprs_in_params(e.params))) for e in equations_of(program))


def _contains(equation: Any, name: str) -> bool:
    if equation.primitive.name == name:
        return True
    return any(_contains(e, name) for p in jaxprs_in_params(equation.params) for e in equations_of(p))


@LINEAR.otherwise
def densified(interpreter: LinearInterpreter, equation: Any, *values: Any) -> list[Any]:
    """Apply an equation to the dense form of its operands: the rule for primitives without a rule."""
    if _contains(equation, "custom_lin"):
        raise NeedsReverseModeError
    maps = [v for v in values if isinstance(v, LinearMap)]
    inputs = maps[0].inputs
    depends = dependent_results(equation, [is_map(v) for v in values])
    largest = max(
        [m.size * m.dtype.itemsize for m in maps]
        + [_bytes(v) for v, d in zip(equation.outvars, depends, strict=True) if d]
    )
    _allow_dense(equation, maps, largest * inputs)
    arguments = [columns_of(v).data if isinstance(v, LinearMap) else value_of(v) for v in values]

    def run(*arguments: Any) -> list[Any]:
        results = bind(equation, arguments)
        return results if isinstance(results, list) else [results]

    results = jax.vmap(run, in_axes=[0 if is_map(v) else None for v in values])(*arguments)
    # A rule of `vmap` may map results that do not depend on the mapped operands.
    return [Columns(r) if d else Plain(r[0]) for r, d in zip(results, depends, strict=True)]


def _bytes(variable: Any) -> int:
    size: int = math.prod(variable.aval.shape) * variable.aval.dtype.itemsize
    return size


def _allow_dense(equation: Any, maps: Sequence[LinearMap], size: int) -> None:
    """Check with the policy that the dense form of a derivative may be created, and log it.

    Raises
    ------
    DensifyError
        If the policy forbids it, or the dense form is larger than the limit.
    """
    policy = densify_policy.value
    if any(isinstance(m, Columns) for m in maps) and size <= policy.limit:
        return  # the structure is lost already
    name = equation.primitive.name
    shapes = " and ".join(f"{m.dtype}{list(m.shape)}" for m in maps)
    what = f"the derivative of the primitive {name!r} with operands {shapes}"
    if policy.mode == "error" or size > policy.limit:
        why = (
            'which sa.densify("error") forbids'
            if policy.mode == "error"
            else f"which is above the limit of {policy.limit} bytes"
        )
        raise DensifyError(
            f"jacobian: {what} would be dense ({size} bytes for {maps[0].inputs} inputs), {why}\n"
            "Write this part of the function with local operations, use jax.jvp or jax.linearize with an iterative solver, or raise "
            'the limit with sa.densify("allow", limit=…)'
        )
    if policy.mode == "warn":
        warnings.warn(f"jacobian: {what} is dense ({size} bytes)", DensifyWarning, stacklevel=2)
    log = active_log()
    if log is not None:
        kinds = tuple(f"{type(m).__name__} {(m.size, m.inputs)}" for m in maps)
        results = ", ".join(f"Dense {(math.prod(v.aval.shape), maps[0].inputs)}" for v in equation.outvars)
        log.add(Event("jacobian", kinds, f"the primitive {name}", results, bytes=size, densified=True))


# ---- dependence ------------------------------------------------------------------------------------------------------


def dependent_results(equation: Any, given: Sequence[bool]) -> list[bool]:
    """Return which results of an equation may depend on some of its operands."""
    if not any(given):
        return [False] * len(equation.outvars)
    record = RECORDS.get(equation.primitive.name)
    program = inner_program(equation)
    if program is not None:
        found = _dependent(program, given)
    elif record is not None and problem_of(equation) is None:
        found = record(equation, list(given))
    else:
        found = [True] * len(equation.outvars)
    return [
        d and jax.numpy.issubdtype(v.aval.dtype, jax.numpy.inexact)
        for d, v in zip(found, equation.outvars, strict=True)
    ]


def _dependent(program: Any, given: Sequence[bool]) -> list[bool]:
    pieces = parts(program)
    found = {v for v, depends in zip(pieces.invars, given, strict=True) if depends}
    for equation in pieces.equations:
        own = [type(atom).__name__ != "Literal" and atom in found for atom in equation.invars]
        found.update(v for v, d in zip(equation.outvars, dependent_results(equation, own), strict=True) if d)
    return [type(atom).__name__ != "Literal" and atom in found for atom in pieces.outvars]


def _dependent_scan(equation: Any, given: list[bool]) -> list[bool]:
    from .._core.jax_internals.equations import ScanCall

    call = ScanCall.of(equation)
    consts, carry, rows = call.split(given)
    while True:
        found = _dependent(call.body, [*consts, *carry, *rows])
        more = [a or b for a, b in zip(carry, found, strict=False)]
        if more == carry:
            return found[: call.carry] + found[call.carry :]
        carry = more


def _dependent_while(equation: Any, given: list[bool]) -> list[bool]:
    from .._core.jax_internals.equations import WhileCall

    call = WhileCall.of(equation)
    asked, held, carry = call.split(given)
    while True:
        found = _dependent(call.body, [*held, *carry])
        more = [a or b for a, b in zip(carry, found, strict=True)]
        if more == carry:
            return carry
        carry = more


def _dependent_cond(equation: Any, given: list[bool]) -> list[bool]:
    from .._core.jax_internals.equations import CondCall

    found = [_dependent(branch, given[1:]) for branch in CondCall.of(equation).branches]
    return [any(each) for each in zip(*found, strict=True)]


RECORDS = {"scan": _dependent_scan, "while": _dependent_while, "cond": _dependent_cond}
