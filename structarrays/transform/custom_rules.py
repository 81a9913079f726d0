"""Rules of `structured` for functions with derivatives of their own, which are kept: `jax.custom_jvp` and `jax.custom_vjp`.

The function is made anew on structured arrays. A tangent of such an array is one of its parameters; where the elements are linear in
them that is an array of the same structure, with which the rule for tangents is run. A cotangent is one of the parameters as well;
where each of them is one element (`Diagonal`, `Banded`, `Sparse`) it is an array, too. In all other cases the elements are dense,
under the policy.

How JAX holds the rules in its equations is not documented. Where it is not as expected the function is run without them, which
`tests/transform/test_custom_rules.py` would notice.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr

from ..core.array import Array
from ..core.join import restrict
from .control_flow import differentiating, structures_of
from .interpreter import inner_program
from .rules import plain, rule
from .widening import dense_target, join_targets, settled, target_of, widened

FLOAT0 = jax.dtypes.float0


def _inexact(value) -> bool:
    return jnp.issubdtype(value.dtype, jnp.inexact)


# ---- forward ---------------------------------------------------------------------------------------------------------


def _tangent(primal, tangent):
    """The tangent of a value as a value."""
    if not isinstance(primal, Array):
        return tangent
    if not primal.linear:
        return jax.jvp(lambda x: plain(x, "custom_jvp"), (primal,), (tangent,))[1]
    leaves, tree = jax.tree.flatten(primal)
    moved = [p if t.dtype == FLOAT0 else t for p, t in zip(leaves, jax.tree.leaves(tangent), strict=True)]
    return jax.tree.unflatten(tree, moved)._assuming(frozenset())


def _tangent_leaves(tangent, primal):
    """A tangent in the structure of a primal result, as JAX takes it: with `float0` for integers."""
    if not isinstance(primal, Array):
        return tangent if _inexact(primal) else np.zeros(primal.shape, FLOAT0)
    widened_tangent = widened(tangent, target_of(primal._assuming(frozenset())))._assuming(primal.assumptions)
    return jax.tree.map(lambda t, p: t if _inexact(p) else np.zeros(p.shape, FLOAT0), widened_tangent, primal)


@rule("custom_jvp_call")
def _(interpreter, equation, *operands):
    p = equation.params
    program, rules, consts = p["call_jaxpr"], p["jvp_jaxpr_fun"], p["num_consts"]
    if differentiating():
        return interpreter.run(program, *operands)
    operands = [settled(v) for v in operands]
    zeros = [not _inexact(v) for v in operands[consts:]]
    jaxpr, held, zeros_out = rules.call_wrapped(*zeros)
    derivative = ClosedJaxpr(jaxpr, held)
    targets = _held_by_both(interpreter, program, derivative, operands, consts, zeros, zeros_out)

    @jax.custom_jvp
    def function(*values):
        return [widened(v, t) for v, t in zip(interpreter.run(program, *values), targets, strict=True)]

    @function.defjvp
    def _(primals, tangents):
        moving = [
            _tangent(x, t) for x, t, zero in zip(primals[consts:], tangents[consts:], zeros, strict=True) if not zero
        ]
        results = interpreter.run(derivative, *primals[consts:], *moving)
        values = [widened(v, t) for v, t in zip(results[: len(targets)], targets, strict=True)]
        rest = iter(results[len(targets) :])
        moved = [_zero_like(v) if zero else next(rest) for v, zero in zip(values, zeros_out, strict=True)]
        return values, [_tangent_leaves(t, v) for t, v in zip(moved, values, strict=True)]

    return function(*operands)


def _zero_like(value):
    return jnp.zeros(value.shape, value.dtype)


def _held_by_both(interpreter, program, derivative, operands, consts, zeros, zeros_out):
    """The targets that hold the results and their tangents."""
    inputs = [target_of(v) for v in operands]
    targets = structures_of(interpreter, program, inputs)
    moving = [_target_of_tangent(x) for x, zero in zip(inputs[consts:], zeros, strict=True) if not zero]
    results = structures_of(interpreter, derivative, [*inputs[consts:], *moving], tangents=True)
    tangents = iter(results[len(targets) :])
    held = []
    for target, zero in zip(targets, zeros_out, strict=True):
        tangent = None if zero else next(tangents)
        if isinstance(target, Array) and not target.linear:
            target = dense_target(target)
        if tangent is not None and isinstance(target, Array):
            bare = target._assuming(frozenset())
            joined = join_targets(bare, tangent)
            target = target if joined is bare else joined
        held.append(target)
    return held


def _target_of_tangent(target):
    if isinstance(target, Array) and not target.linear:
        return dense_target(target)
    return target._assuming(frozenset()) if isinstance(target, Array) else target


# ---- backward --------------------------------------------------------------------------------------------------------


def _one_element_each(x) -> bool:
    """Whether each parameter of an array is one of its elements, and all others are structural zeros."""
    if not isinstance(x, Array) or not x.linear or not x.stores_entries or x.background is not None:
        return False
    free = jax.eval_shape(lambda value: value._free(), x)
    return type(free) is type(x) and free.meta == x.meta


def _cotangent(value, cotangent):
    """The cotangent of a result as a value: elements whose products with those of a tangent add up to the same number."""
    if not isinstance(value, Array):
        return cotangent
    leaves, tree = jax.tree.flatten(value)
    given = [p if c.dtype == FLOAT0 else c for p, c in zip(leaves, jax.tree.leaves(cotangent), strict=True)]
    return jax.tree.unflatten(tree, given)._assuming(frozenset())


def _cotangent_leaves(cotangent, x):
    """The cotangent of an argument from that of its elements."""
    if not isinstance(x, Array):
        return plain(cotangent, "custom_vjp") if _inexact(x) else np.zeros(x.shape, FLOAT0)
    if _one_element_each(x):
        if isinstance(cotangent, Array) and cotangent.stores_entries:
            entries = restrict(cotangent, x).entries
        else:
            entries = x._gather(plain(cotangent, "custom_vjp"))
        given = x._rebuild(
            tuple(jnp.broadcast_to(e, own.shape) for e, own in zip(entries, x.entries, strict=True)), None
        )
        return jax.tree.map(
            lambda g, p: g if _inexact(p) else np.zeros(p.shape, FLOAT0), given._assuming(x.assumptions), x
        )
    (given,) = jax.vjp(lambda value: plain(value, "custom_vjp"), x)[1](plain(cotangent, "custom_vjp"))
    return given


@rule("custom_vjp_call")
def _(interpreter, equation, *operands):
    p = equation.params
    program, consts = inner_program(equation), p["num_consts"]
    operands = [settled(v) for v in operands]
    captured, arguments = operands[:consts], operands[consts:]
    inputs = [target_of(v) for v in arguments]
    results = structures_of(interpreter, program, [*map(target_of, captured), *inputs])
    targets = [t if _one_element_each(t) or not isinstance(t, Array) else dense_target(t) for t in results]
    forward = ClosedJaxpr(*p["fwd_jaxpr_thunk"].call_wrapped(*(_inexact(v) for v in arguments)))

    @jax.custom_vjp
    def function(*values):
        return [widened(v, t) for v, t in zip(interpreter.run(program, *captured, *values), targets, strict=True)]

    def fwd(*values):
        results = interpreter.run(forward, *values)
        kept, results = results[: len(results) - len(targets)], results[len(results) - len(targets) :]
        forwarded = p["out_trees"]()[2]  # residuals that are arguments are not among the results
        kept = iter(kept)
        residuals = [settled(next(kept) if i is None else values[i - consts]) for i in forwarded]
        return [widened(v, t) for v, t in zip(results, targets, strict=True)], (residuals, values)

    def bwd(saved, cotangents):
        residuals, values = saved
        shapes = [jax.ShapeDtypeStruct(t.shape, t.dtype) for t in targets]
        given = [_cotangent(t, c) if isinstance(t, Array) else c for t, c in zip(targets, cotangents, strict=True)]
        backward = jax.make_jaxpr(lambda *inner: _instantiated(p["bwd"].call_wrapped(*inner), values))(
            *(jax.ShapeDtypeStruct(r.shape, r.dtype) for r in residuals), *shapes
        )
        back = interpreter.run(backward, *residuals, *given)
        return tuple(_cotangent_leaves(c, x) for c, x in zip(back, values, strict=True))

    function.defvjp(fwd, bwd)
    return function(*arguments)


def _instantiated(cotangents, values):
    """Cotangents as arrays: what a rule leaves out is zero."""
    return [
        c
        if isinstance(c, jax.Array) or isinstance(c, np.ndarray) and c.dtype != FLOAT0
        else jnp.zeros(x.shape, x.dtype)
        for c, x in zip(cotangents, values, strict=True)
    ]
