"""Rules of `linear_programs` for loops and conditions.

The pattern of a value in a loop is the union of its patterns in all steps. It is determined first, without computing. Short
loops are unrolled instead, since there each step may have its own pattern.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._core.jax_internals.equations import CondCall, ScanCall, UnrecognisedEquation, WhileCall
from .linear_maps import FEW_ENTRIES, Columns, Entries, LinearMap, TooManyEntriesError, canonical, data_on
from .linear_programs import Plain, count_equations, is_map, is_static, is_zero, rule, value_of
from .rules_linear import element, stacked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._core.typing import Shape

UNROLLED_STEPS = 64
UNROLLED_EQUATIONS = 2000
"""The largest loops that are unrolled."""

ROUNDS = 100
"""The largest number of steps after which the patterns of a loop must not grow any more."""


class Pattern(NamedTuple):
    """The pattern of a map, sorted by row and column."""

    shape: Shape
    inputs: int
    rows: np.ndarray
    columns: np.ndarray

    def equals(self, other: Pattern) -> bool:
        """Return whether two patterns have the same entries."""
        return np.array_equal(self.rows, other.rows) and np.array_equal(self.columns, other.columns)

    def union(self, other: Pattern) -> Pattern:
        """Return the pattern with the entries of both."""
        width = max(self.inputs, 1)
        keys = np.union1d(self.rows * width + self.columns, other.rows * width + other.columns)
        return Pattern(self.shape, self.inputs, *np.divmod(keys, width))

    def with_data(self, data: jax.Array) -> Entries:
        """Return a map with this pattern."""
        return Entries(self.shape, self.inputs, self.rows, self.columns, data)


def _pattern(x: LinearMap) -> Pattern:
    if isinstance(x, Columns):
        raise TooManyEntriesError
    x = canonical(x)
    return Pattern(x.shape, x.inputs, x.rows, x.columns)


def _joined(x: Pattern | None, y: Pattern | None) -> Pattern | None:
    return x if y is None else y if x is None else x.union(y)


def _patterns(run: Callable[[], Sequence[Any]]) -> list[Pattern | None]:
    """Return the patterns of the results of a function, without computing; None for results that are not maps."""
    found: list[Pattern | None] = []

    def traced() -> None:
        found[:] = [_pattern(v) if is_map(v) else None for v in run()]

    jax.eval_shape(traced)
    return found


def _data(x: Any, pattern: Pattern | None, aval: Any) -> jax.Array:
    """Return the array that represents a value: coefficients on a pattern, or the value itself."""
    if pattern is None:
        return jnp.asarray(value_of(x), aval.dtype)
    if isinstance(x, Columns) or not is_zero(x):
        raise TooManyEntriesError
    if not is_map(x):
        return jnp.zeros(len(pattern.rows), aval.dtype)
    return data_on(x, pattern.rows, pattern.columns)


def _value(data: jax.Array, pattern: Pattern | None) -> Any:
    return Plain(data) if pattern is None else pattern.with_data(data)


@rule("cond")
def _cond_rule(interpreter: Any, equation: Any, index: Any, *values: Any) -> Any:
    try:
        call = CondCall.of(equation)
    except UnrecognisedEquation:
        return NotImplemented
    if is_map(index) or call.platforms is not None or any(isinstance(v, Columns) for v in values):
        return NotImplemented
    if is_static(index):
        number = min(max(int(index), 0), len(call.branches) - 1)
        return interpreter.run(call.branches[number], *values)
    found = [_patterns(lambda branch=branch: interpreter.run(branch, *values)) for branch in call.branches]  # type: ignore[misc]
    patterns: list[Pattern | None] = [None] * len(equation.outvars)
    for each in found:
        patterns = list(map(_joined, patterns, each))
    avals = [v.aval for v in equation.outvars]

    def run(branch: Any) -> list[jax.Array]:
        return list(map(_data, interpreter.run(branch, *values), patterns, avals))

    results = lax.switch(value_of(index), [lambda branch=branch: run(branch) for branch in call.branches])
    return list(map(_value, results, patterns))


@rule("scan")
def _scan_rule(interpreter: Any, equation: Any, *values: Any) -> Any:
    try:
        call = ScanCall.of(equation)
    except UnrecognisedEquation:
        return NotImplemented
    consts, carry, rows = call.split(values)
    if any(isinstance(v, Columns) for v in values):
        return NotImplemented
    if call.length <= UNROLLED_STEPS and call.length * count_equations(call.body) <= UNROLLED_EQUATIONS:
        return _unrolled(interpreter, call, equation, consts, carry, rows)
    stacks = [_stack_of(v) if is_map(v) else (jnp.asarray(value_of(v)), None) for v in rows]
    if any(stack is None for stack in stacks):
        if call.length <= 4 * UNROLLED_STEPS and call.length * count_equations(call.body) <= UNROLLED_EQUATIONS:
            return _unrolled(interpreter, call, equation, consts, carry, rows)
        return NotImplemented
    return _scanned(interpreter, call, equation, consts, carry, stacks)


def _stack_of(x: LinearMap) -> tuple[jax.Array, Pattern] | None:
    """Return the coefficients of all rows of a stack, and the union of the patterns of the rows; None if the rows have very
    different patterns.
    """
    x = canonical(x)
    length, shape = x.shape[0], x.shape[1:]
    size, width = int(np.prod(shape)), max(x.inputs, 1)
    keys = np.unique(x.rows % max(size, 1) * width + x.columns)
    if length * len(keys) > max(4 * len(x.rows), FEW_ENTRIES):
        return None
    pattern = Pattern(shape, x.inputs, *np.divmod(keys, width))
    everywhere = np.tile(keys, length)
    steps_of_all = np.repeat(np.arange(length), len(keys))
    rows_of_all, columns = np.divmod(everywhere, width)
    data = data_on(x, steps_of_all * size + rows_of_all, columns)
    return data.reshape(length, len(keys)), pattern


def _row(value: Any, t: int) -> Any:
    """Return the row of an operand for one step of a loop."""
    if is_map(value):
        return element(value, t)
    if is_static(value):
        with jax.ensure_compile_time_eval():
            return value[t] if isinstance(value, jax.Array) else np.asarray(value)[t]
    return Plain(lax.index_in_dim(value_of(value), t, keepdims=False))


def _unrolled(interpreter: Any, call: ScanCall, equation: Any, consts: Any, carry: Any, rows: Any) -> list[Any]:
    stacks: list[list[Any]] = [[] for _ in equation.outvars[call.carry :]]
    steps = range(call.length)
    for t in reversed(steps) if call.reverse else steps:
        results = interpreter.run(call.body, *consts, *carry, *(_row(v, t) for v in rows))
        carry, new = call.split_results(results)
        for stack, value in zip(stacks, new, strict=True):
            stack.append(value)
    finished: list[Any] = []
    for stack, variable in zip(stacks, equation.outvars[call.carry :], strict=True):
        ordered = stack[::-1] if call.reverse else stack
        if any(map(is_map, ordered)):
            finished.append(stacked(variable.aval.shape, 0, ordered))
        elif ordered:
            finished.append(Plain(jnp.stack([jnp.asarray(value_of(v), variable.aval.dtype) for v in ordered])))
        else:
            finished.append(Plain(jnp.zeros(variable.aval.shape, variable.aval.dtype)))
    return [*carry, *finished]


def _scanned(interpreter: Any, call: ScanCall, equation: Any, consts: Any, carry: Any, stacked_rows: Any) -> Any:
    """Run a loop with the union of the patterns of all steps."""
    avals = [v.aval for v in equation.outvars[: call.carry]]
    start: list[Pattern | None] = [_pattern(v) if is_map(v) else None for v in carry]
    rows = [data for data, _ in stacked_rows]
    row_patterns = [pattern for _, pattern in stacked_rows]

    def step(values: Sequence[Any], each: Sequence[jax.Array]) -> list[Any]:
        result: list[Any] = interpreter.run(call.body, *consts, *values, *map(_value, each, row_patterns))
        return result

    def one_step(patterns: Sequence[Pattern | None], vanish: Sequence[bool]) -> list[Pattern | None]:
        each = [jnp.zeros(v.shape[1:], v.dtype) for v in rows]
        return _patterns(lambda: step(_placeholders(patterns, avals, vanish), each))

    found = _closed_under(one_step, start, list(map(is_zero, carry)), call.length)
    if found is None:
        return NotImplemented
    patterns, stack_patterns = found

    def body(data: list[jax.Array], each: list[jax.Array]) -> tuple[list[jax.Array], list[jax.Array]]:
        results = step(list(map(_value, data, patterns)), each)
        new, stack = call.split_results(results)
        shapes = [v.aval for v in equation.outvars[call.carry :]]
        return list(map(_data, new, patterns, avals)), list(map(_data, stack, stack_patterns, shapes))

    data = list(map(_data, carry, patterns, avals))
    data, stacks = lax.scan(body, data, rows, length=call.length, reverse=call.reverse, unroll=call.unroll)
    results: list[Any] = list(map(_value, data, patterns))
    for stack, pattern in zip(stacks, stack_patterns, strict=True):
        if pattern is None:
            results.append(Plain(stack))
        else:
            size, steps = int(np.prod(pattern.shape)), np.arange(call.length)
            rows_of_all = (steps[:, None] * size + pattern.rows).reshape(-1)
            columns = np.tile(pattern.columns, call.length)
            shape = (call.length, *pattern.shape)
            results.append(Entries(shape, pattern.inputs, rows_of_all, columns, stack.reshape(-1)))
    return results


def _placeholders(patterns: Sequence[Pattern | None], avals: Sequence[Any], vanish: Sequence[bool]) -> list[Any]:
    """Return values of a loop with these patterns. Those without a pattern are ordinary arrays, or zeros."""
    return [
        Plain(jnp.zeros(a.shape, a.dtype), v) if p is None else p.with_data(jnp.zeros(len(p.rows), a.dtype))
        for p, a, v in zip(patterns, avals, vanish, strict=True)
    ]


def _closed_under(
    step: Callable[[Sequence[Pattern | None], Sequence[bool]], list[Pattern | None]],
    patterns: list[Pattern | None],
    vanish: Sequence[bool],
    length: int | None,
) -> tuple[list[Pattern | None], list[Pattern | None]] | None:
    """Return the union of the patterns of all steps of a loop: of carried values and of the other results; None if they
    grow for too long.

    `vanish` tells which values are zero at the beginning. In the first step a tangent may still be such a zero.
    """
    count = len(patterns)
    for done in range(ROUNDS):
        found = step(patterns, vanish if done == 0 else [False] * count)
        larger = list(map(_joined, patterns, found[:count]))
        if (done or not any(vanish)) and all(
            x is y or (x is not None and y is not None and x.equals(y)) for x, y in zip(patterns, larger, strict=True)
        ):
            return patterns, found[count:]
        if length is not None and done >= length:
            return patterns, found[count:]
        patterns = larger
        if sum(len(p.rows) for p in patterns if p is not None) > 2**24:
            return None
    return None


@rule("while")
def _while_rule(interpreter: Any, equation: Any, *values: Any) -> Any:
    try:
        call = WhileCall.of(equation)
    except UnrecognisedEquation:
        return NotImplemented
    if any(isinstance(v, Columns) for v in values):
        return NotImplemented
    asked, held, carry = call.split(values)
    avals = [v.aval for v in equation.outvars]
    start: list[Pattern | None] = [_pattern(v) if is_map(v) else None for v in carry]

    def step(values: Sequence[Any]) -> list[Any]:
        result: list[Any] = interpreter.run(call.body, *held, *values)
        return result

    def one_step(patterns: Sequence[Pattern | None], vanish: Sequence[bool]) -> list[Pattern | None]:
        return _patterns(lambda: step(_placeholders(patterns, avals, vanish)))

    found = _closed_under(one_step, start, list(map(is_zero, carry)), None)
    if found is None:
        return NotImplemented
    patterns, _ = found

    def condition(data: list[jax.Array]) -> Any:
        (result,) = interpreter.run(call.condition, *asked, *map(_value, data, patterns))
        return value_of(result)

    results = lax.while_loop(
        condition,
        lambda data: list(map(_data, step(list(map(_value, data, patterns))), patterns, avals)),
        list(map(_data, carry, patterns, avals)),
    )
    return list(map(_value, results, patterns))
