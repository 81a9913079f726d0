"""Rules of `structured` for functions with custom derivatives, which are kept: `jax.custom_jvp` and `jax.custom_vjp`.

The rules define the function again, on structured arrays. A tangent of such an array is a tangent of its parameters. If
the elements are linear in the parameters, the tangent is an array of the same structure, on which the rule for tangents
runs. A cotangent is also a cotangent of the parameters. If each parameter is one element (`Diagonal`, `Banded`,
`Sparse`), the cotangent is an array, too.

In all other cases the elements are dense, under the policy, with one exception: if a rule distinguishes zero cotangents
(`symbolic_zeros`), a result of any structure keeps it. A nonzero cotangent is then made dense by least squares, since
many elements may share one parameter, such as the elements of a diagonal of a `Toeplitz`.

Some rules refuse to be traced. So a rule is traced only if it is needed, or if results have structure, which must
contain their tangents.

JAX does not document how its equations store the rules: `jax_internals` reads them.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero
from jax.scipy.sparse.linalg import cg

from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.families.join import restrict
from .._core.jax_internals.equations import CustomJvpCall, CustomVjpCall, Known, expansion, high_level_name
from .constant_patterns import LU
from .control_flow import checkpoint, differentiating, structures_of
from .interpreter import abstract
from .rules import expanded, involved, is_special, plain, rule
from .rules_elementwise import HIGH_LEVEL, high_level_elementwise, named
from .widening import dense_target, join_targets, settled, target_of, widened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._core.jax_internals.equations import ClosedJaxpr
    from .._core.typing import Result
    from .interpreter import Interpreter

FLOAT0 = jax.dtypes.float0


def _inexact(value: Any) -> bool:
    return jnp.issubdtype(value.dtype, jnp.inexact)


# ---- forward ---------------------------------------------------------------------------------------------------------


def _tangent(primal: Any, tangent: Any) -> Any:
    """Convert the tangent of a value to a value."""
    if not is_special(primal):
        return tangent
    if isinstance(primal, LU) or not primal.linear:
        return jax.jvp(lambda x: plain(x, "custom_jvp"), (primal,), (tangent,))[1]
    leaves, tree = jax.tree.flatten(primal)
    moved = [p if t.dtype == FLOAT0 else t for p, t in zip(leaves, jax.tree.leaves(tangent), strict=True)]
    return jax.tree.unflatten(tree, moved).assuming(frozenset())


def _tangent_leaves(tangent: Any, primal: Any) -> Any:
    """Convert a tangent to the structure of a primal result, in JAX's form: with `float0` for integers."""
    if not is_special(primal):
        return plain(tangent, "custom_jvp") if _inexact(primal) else np.zeros(primal.shape, FLOAT0)
    if not _inexact(primal):
        return jax.tree.map(lambda p: jnp.zeros_like(p) if _inexact(p) else np.zeros(p.shape, FLOAT0), primal)
    if isinstance(primal, LU):
        moved = _parameters_of(plain(tangent, "custom_jvp"), primal)
    else:
        if not isinstance(tangent, Array):
            # A function inside the rule densified it, since its own tangents have less structure; the elements are the
            # same.
            simple = primal.stores_entries and primal.background is None
            tangent = restrict(Dense.make((tangent,)), primal) if simple else _parameters_of(tangent, primal)
            tangent = tangent.assuming(frozenset())
        moved = widened(tangent, target_of(primal.assuming(frozenset()))).assuming(primal.assumptions)
    return jax.tree.map(lambda t, p: t if _inexact(p) else np.zeros(p.shape, FLOAT0), moved, primal)


@rule("custom_jvp_call")
def function_with_tangents(interpreter: Interpreter, equation: Any, *operands: Any) -> Result:
    """Evaluate a function of `jax.custom_jvp` on structured arrays."""
    call = CustomJvpCall.of(equation)
    program, consts = call.program, call.consts
    if differentiating():
        return interpreter.run(program, *operands)
    inputs = [settled(v) for v in operands]
    targets = _held_by_both(interpreter, call, inputs)

    @jax.custom_jvp
    def function(*values: Any) -> list[Any]:
        return [widened(v, t) for v, t in zip(interpreter.run(program, *values), targets, strict=True)]

    def derivative(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        arguments, tangents = primals[consts:], tangents[consts:]
        zeros = [not _inexact(x) or _is_zero(t) for x, t in zip(arguments, tangents, strict=True)]
        program, zeros_out, left_out = call.rule(zeros)
        moving = [
            _tangent(x, _instantiated(t)) for x, t, zero in zip(arguments, tangents, zeros, strict=True) if not zero
        ]
        values, tangents_out = _by_rule(interpreter, program, primals[left_out:], moving, len(targets))
        values = [widened(v, t) for v, t in zip(values, targets, strict=True)]
        rest = iter(tangents_out)
        moved = [
            _no_tangent(v) if zero else _tangent_leaves(next(rest), v)
            for v, zero in zip(values, zeros_out, strict=True)
        ]
        return values, moved

    function.defjvp(derivative, symbolic_zeros=call.symbolic_zeros)
    return function(*inputs)


def _by_rule(
    interpreter: Interpreter, program: ClosedJaxpr, primals: Sequence[Any], moving: Sequence[Any], count: int
) -> tuple[list[Any], list[Any]]:
    """Run a rule for tangents; return the values, and their tangents."""

    def run(moving: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        results = interpreter.run(program, *primals, *moving)
        return [settled(v) for v in results[count:]], results[:count]

    if not involved((*primals, *moving)):
        tangents, values = run(moving)
        return values, tangents
    # A product may be data-dependent (NaN next to a background, for example), and then JAX cannot transpose it. A rule
    # is linear in the tangents, so that its derivative at zero is the same map, and is not data-dependent.
    tree: Any
    leaves, tree = jax.tree.flatten(moving)
    zeros = [jnp.zeros_like(v) if _inexact(v) else v for v in leaves]
    directions = [v if _inexact(v) else np.zeros(v.shape, FLOAT0) for v in leaves]
    at_zero, found, values = jax.jvp(run, (tree.unflatten(zeros),), (tree.unflatten(directions),), has_aux=True)
    return values, [_tangent(x, t) for x, t in zip(at_zero, found, strict=True)]


def _is_zero(tangents: Any) -> bool:
    """Return whether JAX knows that all of these tangents or cotangents, for the parameters of one value, are zero."""
    leaves = jax.tree.leaves(tangents)
    return bool(leaves) and all(isinstance(leaf, SymbolicZero) for leaf in leaves)


def _instantiated(tangents: Any) -> Any:
    """Convert tangents or cotangents of the parameters of a value to arrays, including symbolic zeros."""
    return jax.tree.map(lambda t: jnp.zeros(t.shape, t.dtype) if isinstance(t, SymbolicZero) else t, tangents)


def _no_tangent(value: Any) -> Any:
    return jax.tree.map(lambda leaf: SymbolicZero(jax.typeof(leaf).to_tangent_aval()), value)


def _held_by_both(interpreter: Interpreter, call: CustomJvpCall, operands: Sequence[Any]) -> list[Any]:
    """Return targets that contain the results and their tangents."""
    inputs = [target_of(v) for v in operands]
    targets = structures_of(interpreter, call.program, inputs)
    if not involved(targets):
        return targets
    zeros = [not _inexact(x) for x in inputs[call.consts :]]
    moving = [_target_of_tangent(x) for x, zero in zip(inputs[call.consts :], zeros, strict=True) if not zero]
    try:
        program, zeros_out, left_out = call.rule(zeros)
        results = structures_of(interpreter, program, [*inputs[left_out:], *moving], tangents=True)
    except Exception:  # a rule that refuses tangents: none are needed yet, and a later derivative will raise
        return targets
    tangents = iter(results[len(targets) :])
    joined = []
    for target, zero in zip(targets, zeros_out, strict=True):
        tangent = None if zero else next(tangents)
        if not _inexact(target):
            tangent = None  # there are no tangents of integers
        if isinstance(target, Array) and not target.linear:
            target = dense_target(target)
        if tangent is not None and isinstance(target, Array):
            bare = target.assuming(frozenset())
            both = join_targets(bare, tangent)
            target = target if both is bare else both
        joined.append(target)
    return joined


def _target_of_tangent(target: Any) -> Any:
    if isinstance(target, Array) and not target.linear:
        return dense_target(target)
    return target.assuming(frozenset()) if isinstance(target, Array) else target


# ---- backward --------------------------------------------------------------------------------------------------------


def _has_cotangents(target: Any) -> bool:
    """Return whether the cotangent of a result follows from the cotangents of its parameters."""
    return not is_special(target) or _one_element_each(target)


def _one_element_each(x: Any) -> bool:
    """Return whether each parameter of an array is one of its elements, and all other elements are structural zeros."""
    if not isinstance(x, Array) or not x.linear or not x.stores_entries or x.background is not None or x.covers:
        return False
    free = jax.eval_shape(lambda value: value.freed(), x)
    return type(free) is type(x) and free.meta == x.meta


def _is_needed(result: Any) -> bool:
    """Return whether the cotangent of a result depends on more than its structure: on indices, or on parameters that
    are not elements.
    """
    return is_special(result) and not (_has_cotangents(result) and all(map(_inexact, jax.tree.leaves(result))))


def _cotangent(value: Any, cotangent: Any) -> Any:
    """Convert the cotangent of a result to a value: elements whose inner product with any tangent is the same."""
    if not is_special(value):
        return cotangent
    if not _one_element_each(value):
        return _elements_of(cotangent, value)
    leaves, tree = jax.tree.flatten(value)
    given = [p if c.dtype == FLOAT0 else c for p, c in zip(leaves, jax.tree.leaves(cotangent), strict=True)]
    return jax.tree.unflatten(tree, given).assuming(frozenset())


def _cotangent_leaves(cotangent: Any, x: Any) -> Any:
    """Return the cotangent of an argument from the cotangent of its elements."""
    if not is_special(x):
        return plain(cotangent, "custom_vjp") if _inexact(x) else np.zeros(x.shape, FLOAT0)
    if _one_element_each(x):
        if isinstance(cotangent, Array) and cotangent.stores_entries:
            entries = restrict(cotangent, x).entries
        else:
            entries = x.gather(plain(cotangent, "custom_vjp"))
        given = x.rebuild(
            tuple(jnp.broadcast_to(e, own.shape) for e, own in zip(entries, x.entries, strict=True)), None
        )
        return jax.tree.map(
            lambda g, p: g if _inexact(p) else np.zeros(p.shape, FLOAT0), given.assuming(x.assumptions), x
        )
    (given,) = jax.vjp(lambda value: plain(value, "custom_vjp"), x)[1](plain(cotangent, "custom_vjp"))
    return given


# ---- between elements and parameters ---------------------------------------------------------------------------------


class _Elements:
    """Derivative J of the elements of a value by its inexact parameters, and the solution of J^T conj(J) w = g."""

    def __init__(self, value: Any) -> None:
        self.leaves, self.tree = jax.tree.flatten(value)
        self.moving = [i for i, leaf in enumerate(self.leaves) if _inexact(leaf)]
        given = [self.leaves[i] for i in self.moving]
        _, self.push = jax.linearize(lambda parameters: plain(self.rebuilt(parameters), "custom_jvp"), given)
        self.pull = jax.linear_transpose(self.push, given)

    def rebuilt(self, parameters: Sequence[jax.Array]) -> Any:
        """Return the value with these parameters."""
        leaves = list(self.leaves)
        for i, parameter in zip(self.moving, parameters, strict=True):
            leaves[i] = parameter
        return jax.tree.unflatten(self.tree, leaves)

    def solve(self, g: list[jax.Array]) -> list[jax.Array]:
        """Solve for parameters on which several elements depend; `g` is J^T times a vector, so that there is a
        solution.
        """
        conj = functools.partial(jax.tree.map, jnp.conj)
        tolerance = 10 * max(jnp.finfo(v.dtype).eps for v in g)
        # `cg` alone has no transpose if only its right-hand side is differentiated.
        solution: list[jax.Array] = lax.custom_linear_solve(
            lambda w: self.pull(conj(self.push(conj(w))))[0],
            g,
            lambda product, g: cg(product, g, tol=tolerance)[0],
            symmetric=True,
        )
        return solution


def _parameters_of(tangent: jax.Array, primal: Any) -> Any:
    """Convert a dense tangent to the structure of a result, which the tangent is known to have."""
    elements = _Elements(primal)
    (g,) = elements.pull(jnp.conj(tangent))
    return elements.rebuilt(jax.tree.map(jnp.conj, elements.solve(g)))


def _elements_of(cotangent: Any, value: Any) -> jax.Array:
    """Return the smallest cotangent of the elements that yields this cotangent of the parameters."""
    elements = _Elements(value)
    given = jax.tree.leaves(cotangent)
    w = elements.solve([given[i] for i in elements.moving])
    return jnp.conj(elements.push(jax.tree.map(jnp.conj, w)))


@rule("custom_vjp_call")
def function_with_cotangents(interpreter: Interpreter, equation: Any, *operands: Any) -> Result:
    """Evaluate a function of `jax.custom_vjp` on structured arrays."""
    call = CustomVjpCall.of(equation)
    program, consts, symbolic = call.program, call.consts, call.symbolic_zeros
    inputs = [settled(v) for v in operands]
    captured, arguments = inputs[:consts], inputs[consts:]
    moving = [_inexact(v) for v in arguments]  # computed outside of `fwd`, whose program would keep the arguments
    results = structures_of(interpreter, program, [target_of(v) for v in inputs])
    # If JAX tells which cotangents are zero, a result without cotangent keeps its structure: Equinox's loops carry such
    # results.
    targets = [t if symbolic or _has_cotangents(t) else dense_target(t) for t in results]

    @jax.custom_vjp
    def function(*values: Any) -> list[Any]:
        return [widened(v, t) for v, t in zip(interpreter.run(program, *captured, *values), targets, strict=True)]

    def fwd(*values: Any) -> tuple[list[Any], tuple[list[Any], tuple[Any, ...], list[Any]]]:
        perturbed = moving
        if symbolic:
            perturbed = [
                inexact and any(leaf.perturbed for leaf in jax.tree.leaves(v))
                for v, inexact in zip(values, moving, strict=True)
            ]
            values = tuple(jax.tree.map(lambda leaf: leaf.value, v) for v in values)
        forward = call.forward(perturbed)
        everything = [*captured, *values]
        results = interpreter.run(forward.program, *everything[forward.left_out :])
        kept, results = results[: len(results) - len(targets)], results[len(results) - len(targets) :]
        rest = iter(kept)
        residuals = [
            next(rest) if r is None else r.value if isinstance(r, Known) else everything[r] for r in forward.residuals
        ]
        residuals = [r if _is_number(r) else settled(r) for r in residuals]
        results = [widened(v, t) for v, t in zip(results, targets, strict=True)]
        held = [v if _is_needed(v) else None for v in results]
        return results, (residuals, values, held)

    def bwd(saved: tuple[list[Any], tuple[Any, ...], list[Any]], cotangents: Sequence[Any]) -> tuple[Any, ...]:
        residuals, values, held = saved
        zeros = [_is_zero(c) for c in cotangents]
        results = [t if v is None else v for t, v in zip(targets, held, strict=True)]
        given = [_cotangent(v, _instantiated(c)) for v, c, z in zip(results, cotangents, zeros, strict=True) if not z]
        known = [_is_number(r) for r in residuals]  # a rule may depend on the values of such residuals
        traced = [*(r for r, number in zip(residuals, known, strict=True) if not number), *given]
        moved: Any = None

        def backward(*inner: Any) -> list[Any]:
            nonlocal moved
            rest = iter(inner)
            kept = [r if number else next(rest) for r, number in zip(residuals, known, strict=True)]
            outer = [None if zero else next(rest) for zero in zeros]
            back = call.backward(kept, outer)
            moved = [c is not None for c in back]
            return [c for c in back if c is not None]

        back = iter(interpreter.run(jax.make_jaxpr(backward)(*map(abstract, traced)), *traced))
        return tuple(
            _cotangent_leaves(next(back), x) if there else None for x, there in zip(values, moved, strict=True)
        )

    function.defvjp(fwd, bwd, symbolic_zeros=symbolic)
    return function(*arguments)


def _is_number(value: Any) -> bool:
    """Return whether a value is a number that the program itself contains."""
    return isinstance(value, (bool, int, float, complex, np.generic))


@rule("call_hi_primitive")
def high_level_primitive(interpreter: Interpreter, equation: Any, *operands: Any) -> Result:
    """Evaluate a primitive of `jax.experimental.hijax`, as a program if this loses no custom derivative."""
    name = high_level_name(equation)
    if name in _HIGH_LEVEL_RULES:
        return _HIGH_LEVEL_RULES[name](interpreter, equation, *operands)
    if name in _EXPANDED or not any(jnp.issubdtype(v.aval.dtype, jnp.inexact) for v in equation.outvars):
        program = expansion(equation)
        if program is not None:
            return interpreter.run(program, *operands)
    return expanded(interpreter, equation, *operands)


_HIGH_LEVEL_RULES = {
    "CustomJVPTraced": function_with_tangents,
    "CustomVJPTraced": function_with_cotangents,
    "RematTraced": checkpoint,
    "CheckpointName": named,
    **dict.fromkeys(HIGH_LEVEL, high_level_elementwise),
}
_EXPANDED = {"Einsum"}
"""Primitives whose derivatives are the derivatives of their programs."""
