"""Rules of `structured` for loops and conditions: the structure of carried values is widened until it no longer
changes.

The rules call JAX's own functions on structured arrays as pytrees. So they do not depend on the form of the equations,
and JAX provides derivatives, `vmap` and effects.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax

from .._core.array.base import Array
from .._core.dispatch.contexts import densify
from .._core.dispatch.recording import unrecorded
from .._core.jax_internals.equations import (
    CheckpointCall,
    ClosedJaxpr,
    CondCall,
    LinearSolveCall,
    ScanCall,
    WhileCall,
    bind,
    in_avals,
    jaxpr_as_fun,
    out_avals,
)
from .constant_patterns import CONSTANTS, LU
from .rules import plain, rule
from .widening import dense_target, fixed, join_targets, key, settled, settling, target_of, widened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from .._core.typing import Result
    from .interpreter import Interpreter

ROUNDS = 4
"""Number of rounds after which a structure that still changes becomes dense."""


class _Found(threading.local):
    """Structures found so far while a function is traced.

    Without this cache, nested loops would be traced once for each round of each enclosing loop. `depth` is nonzero
    while only structures are determined.
    """

    depth = 0
    differentiating = False  # whether this is inside a rule for tangents, which may call its own function recursively

    def __init__(self) -> None:
        self.targets: dict[Any, Any] = {}


_state = _Found()


@contextlib.contextmanager
def remembering() -> Iterator[None]:
    """Cache the structures of loops and branches until the end of this block."""
    before, _state.targets = _state.targets, {}
    try:
        yield
    finally:
        _state.targets = before


def differentiating() -> bool:
    """Return whether only the structures of the results of a rule for tangents are being determined."""
    return _state.differentiating


def structures_of(
    interpreter: Interpreter, program: ClosedJaxpr, targets: Sequence[Any], *, tangents: bool = False
) -> list[Any]:
    """Return the targets of the results of a program for values with these targets, without computing.

    `tangents` tells that the program is the rule for tangents of a function.
    """
    within = _state.differentiating
    name = (id(program), tuple(map(key, targets)), within or tangents)
    if name not in _state.targets:
        _state.depth += 1
        _state.differentiating = within or tangents
        try:
            # Densification is allowed here since nothing is computed, and a constant that is structured now may become
            # dense later.
            with unrecorded(), densify("allow", limit=sys.maxsize):
                moving, merge = apart(targets)
                settle = settling(targets)
                result = jax.eval_shape(
                    lambda *values: [settle(v) for v in interpreter.run(program, *merge(values))], *moving
                )
        finally:
            _state.depth -= 1
            _state.differentiating = within
        # Keep the program and the constants alive, so that no other object gets the identity of one of them.
        _state.targets[name] = (result, program, targets)
    found: list[Any] = _state.targets[name][0]
    return found


def apart(values: Sequence[Any]) -> tuple[list[Any], Callable[[Iterable[Any]], list[Any]]]:
    """Return the values that are not constants of the program, and a function that merges others with the constants."""
    moving = [v for v in values if not isinstance(v, CONSTANTS)]

    def merge(others: Iterable[Any]) -> list[Any]:
        others = iter(others)
        return [v if isinstance(v, CONSTANTS) else next(others) for v in values]

    return moving, merge


def _placeholders(targets: Any) -> Any:
    """Return values with these targets, for determining structures."""
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), targets)


def fixpoint(start: Sequence[Any], step: Callable[[list[Any]], list[Any]]) -> list[Any]:
    """Return targets that contain the first ones and all results of `step`."""
    targets = list(start)
    for round_ in range(ROUNDS + 1):
        after = step(targets)
        joined = [join_targets(x, y) for x, y in zip(targets, after, strict=True)]
        moved = [key(x) != key(y) for x, y in zip(targets, joined, strict=True)]
        if not any(moved):
            return targets
        if round_ >= ROUNDS - 1:
            joined = [dense_target(y) if m else y for m, y in zip(moved, joined, strict=True)]
        targets = joined
    return [dense_target(x) for x in targets]


@rule("cond")
def condition(interpreter: Interpreter, equation: Any, which: Any, *operands: Any) -> Result:
    """Evaluate a condition: the results of all branches are widened to common structures."""
    call = CondCall.of(equation)
    branches, platforms = call.branches, call.platforms
    which = plain(which, "cond")
    moving, merge = apart([fixed(v) for v in operands])

    inputs = merge([target_of(v) for v in moving])
    found = [structures_of(interpreter, branch, inputs) for branch in branches]
    targets = found[0]
    for others in found[1:]:
        targets = [join_targets(x, y) for x, y in zip(targets, others, strict=True)]
    if _state.depth:
        return _placeholders(targets)

    def widening(branch: ClosedJaxpr) -> Callable[..., list[Any]]:
        return lambda *values: [
            widened(v, t) for v, t in zip(interpreter.run(branch, *merge(values)), targets, strict=True)
        ]

    if platforms is None:
        return lax.switch(which, [widening(b) for b in branches], *moving)
    named = {name: widening(b) for names, b in zip(platforms, branches, strict=True) for name in names or ("default",)}
    return lax.platform_dependent(*moving, **named)


@rule("scan")
def loop_over_rows(interpreter: Interpreter, equation: Any, *operands: Any) -> Result:
    """Evaluate a loop over rows: the structure of carried values is widened until it no longer changes."""
    call = ScanCall.of(equation)
    body, carried = call.body, call.carry
    held, init, sliced = call.split(operands)
    held, sliced = list(map(fixed, held)), list(map(sliceable, sliced))
    if not any(isinstance(v, (Array, LU)) for v in (*held, *init, *sliced)):
        return bind(equation, [plain(v, "scan") for v in (*held, *init, *sliced)])
    one = [jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), v) for v in sliced]
    outside = [target_of(v) for v in held]

    def step(targets: list[Any]) -> list[Any]:
        return structures_of(interpreter, body, [*outside, *targets, *one])[:carried]

    targets = fixpoint([target_of(v) for v in map(settling(operands), init)], step)
    if _state.depth:
        stacked = structures_of(interpreter, body, [*outside, *targets, *one])[carried:]
        longer = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((call.length, *leaf.shape), leaf.dtype), stacked)
        return [*_placeholders(targets), *_placeholders(longer)]

    def loop(carry: list[Any], each: list[Any]) -> tuple[list[Any], list[Any]]:
        results = interpreter.run(body, *held, *carry, *each)
        carry, stacked = call.split_results(results)
        return [widened(v, t) for v, t in zip(carry, targets, strict=True)], list(map(settled, stacked))

    start = [widened(v, t) for v, t in zip(init, targets, strict=True)]
    carry, stacked = lax.scan(loop, start, sliced, length=call.length, reverse=call.reverse, unroll=call.unroll)
    return [*carry, *stacked]


def sliceable(value: Any) -> Any:
    """Prepare a value over which a loop runs: a stack of matrices is sliced along its batch axis, a matrix into dense
    rows.
    """
    value = settled(value)
    if isinstance(value, Array) and not value.batch_shape:
        return plain(value, "scan")
    return value


@rule("while")
def loop_while(interpreter: Interpreter, equation: Any, *operands: Any) -> Result:
    """Evaluate a loop with a condition: the structure of carried values is widened until it no longer changes."""
    call = WhileCall.of(equation)
    asked, held, init = call.split(operands)
    asked, held = list(map(fixed, asked)), list(map(fixed, held))
    program = call.body
    if out_avals(call.condition)[0].shape:
        program, held = _of_a_batch(call), [*asked, *held]
    outside = [target_of(v) for v in held]

    def step(targets: list[Any]) -> list[Any]:
        return structures_of(interpreter, program, [*outside, *targets])

    targets = fixpoint([target_of(v) for v in map(settling(operands), init)], step)
    if _state.depth:
        return _placeholders(targets)

    def body(carry: list[Any]) -> list[Any]:
        return [widened(v, t) for v, t in zip(interpreter.run(program, *held, *carry), targets, strict=True)]

    def goes_on(carry: list[Any]) -> jax.Array:
        (answer,) = interpreter.run(call.condition, *asked, *carry)
        return jnp.any(plain(answer, "while"))

    return lax.while_loop(goes_on, body, [widened(v, t) for v, t in zip(init, targets, strict=True)])


@functools.lru_cache(256)
def _of_a_batch(call: WhileCall) -> ClosedJaxpr:
    """Return the body of a batch of loops by `jax.vmap`, each with its own condition: loops that have ended do not
    change.

    `structures_of` identifies a program by its identity, hence the cache.
    """

    def run(*values: Any) -> list[jax.Array]:
        asked, held, carry = call.split(values)
        (which,) = jaxpr_as_fun(call.condition)(*asked, *carry)
        after = jaxpr_as_fun(call.body)(*held, *carry)
        return [
            lax.select(lax.broadcast_in_dim(which, new.shape, range(which.ndim)), new, old)
            for new, old in zip(after, carry, strict=True)
        ]

    avals = [*in_avals(call.condition)[: call.condition_consts], *in_avals(call.body)]
    return jax.make_jaxpr(run)(*(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals))


@rule("checkpoint", "remat2")
def checkpoint(interpreter: Interpreter, equation: Any, *operands: Any) -> Result:
    """Evaluate a function of `jax.checkpoint` on structured arrays."""
    call = CheckpointCall.of(equation)
    moving, merge = apart([fixed(v) for v in operands])

    def run(*values: Any) -> list[Any]:
        return [settled(v) for v in interpreter.run(call.program, *merge(values))]

    # An entry for each operand refers to other operands than `run` has, so any true entry applies to all.
    prevent_cse = call.prevent_cse if isinstance(call.prevent_cse, bool) else any(call.prevent_cse)
    return jax.checkpoint(run, prevent_cse=prevent_cse, policy=call.policy)(*moving)


@rule("custom_linear_solve")
def solver_by_functions(interpreter: Interpreter, equation: Any, *operands: Any) -> Result:
    """Evaluate a solver given by functions: they run with structured constants, and the right-hand side is dense."""
    call = LinearSolveCall.of(equation)
    *held, right = call.split([fixed(v) for v in operands])
    matvec, vecmat, solve, transposed = (
        _with(interpreter, program, values) for program, values in zip(call.programs, held, strict=True)
    )
    b = [plain(v, "custom_linear_solve") for v in right]
    symmetric = vecmat is not None and call.symmetric
    if vecmat is not None and not symmetric:
        # JAX transposes the product, which may be data-dependent (NaN next to a background, for example). Its
        # derivative at zero is the same product, and is not data-dependent.
        product = matvec

        def matvec(right: list[jax.Array]) -> list[jax.Array]:
            result: list[jax.Array] = jax.jvp(product, (jax.tree.map(jnp.zeros_like, right),), (right,))[1]
            return result

    return linear_solve(matvec, b, solve, transposed, symmetric=symmetric)


def linear_solve(
    matvec: Callable[[list[jax.Array]], list[jax.Array]],
    b: list[jax.Array],
    solve: Callable[[list[jax.Array]], list[jax.Array]],
    transposed: Callable[[list[jax.Array]], list[jax.Array]] | None,
    *,
    symmetric: bool = False,
) -> list[jax.Array]:
    """Apply `jax.lax.custom_linear_solve` to functions of lists of arrays; additional results of solvers are returned,
    too.
    """

    def with_more(
        solver: Callable[[list[jax.Array]], list[jax.Array]],
    ) -> Callable[[Any, list[jax.Array]], tuple[list[jax.Array], list[jax.Array]]]:
        def run(_: Any, right: list[jax.Array]) -> tuple[list[jax.Array], list[jax.Array]]:
            results = solver(right)
            return results[: len(b)], results[len(b) :]

        return run

    x, more = lax.custom_linear_solve(
        matvec,
        b,
        with_more(solve),
        None if transposed is None else with_more(transposed),
        symmetric=symmetric,
        has_aux=True,
    )
    return [*x, *more]


def _with(interpreter: Interpreter, program: ClosedJaxpr | None, values: Sequence[Any]) -> Any:
    if program is None:
        return None
    return lambda right: [plain(v, "custom_linear_solve") for v in interpreter.run(program, *values, *right)]
