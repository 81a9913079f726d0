"""Rules of `structured` for the primitives of Equinox and Lineax, which programs of Diffrax and Optimistix also
contain.

This module imports neither of them: rules are found by the names of primitives, and read everything else from the
equations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from .._core.jax_internals.equations import bind, parameters
from .constant_patterns import CONSTANTS
from .control_flow import linear_solve
from .rules import plain, rule
from .rules_elementwise import one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .._core.typing import Result
    from .interpreter import Interpreter


@rule("nontraceable", source=True)
def _nontraceable_rule(interpreter: Interpreter, equation: Any, x: Any) -> Result:
    """Remove the marker.

    It occurs in implementations of primitives, which JAX never transforms but which run as programs here.
    """
    return x


@rule("nonbatchable", "nondifferentiable_backward")
def _nonbatchable_rule(interpreter: Interpreter, equation: Any, x: Any) -> Result:
    """Apply the marker, which refuses transformations of an array, to the parameters of the array."""
    return x if isinstance(x, CONSTANTS) else jax.tree.map(lambda leaf: bind(equation, [leaf]), x)


@rule("select_if_vmap")
def _select_if_vmap_rule(interpreter: Interpreter, equation: Any, which: Any, *cases: Any) -> Result:
    return one_of(equation, plain(which, "select_if_vmap"), cases)


class _Arguments:
    """Arguments of `lineax.linear_solve` as a function of a list of arrays: operator, solver and its state, vector,
    options.
    """

    def __init__(self, equation: Any) -> None:
        self.tree, static = parameters(equation)["treedef"], parameters(equation)["static"]
        # A placeholder object, distinct from all others, marks the positions of the arrays.
        (gap,) = {id(entry): entry for entry in static if type(entry) is object}.values()
        self.places = [i for i, entry in enumerate(static) if entry is gap]
        self.static = static

    def __call__(self, arrays: Iterable[Any]) -> Any:
        leaves = list(self.static)
        for i, array in zip(self.places, arrays, strict=True):
            leaves[i] = array
        return jax.tree.unflatten(self.tree, leaves)


@rule("linear_solve")
def _linear_solve_rule(interpreter: Interpreter, equation: Any, *values: Any) -> Result:
    """Evaluate ``linear_solve`` of Lineax with `jax.lax.custom_linear_solve`.

    Its derivative is a derivative with respect to the operator, and the solver runs on the structured arrays in its
    state.
    """
    arguments = _Arguments(equation)
    avals = [jax.ShapeDtypeStruct(atom.aval.shape, atom.aval.dtype) for atom in equation.invars]
    operator, _, vector, *_ = arguments(avals)
    right, unknowns = jax.tree.structure(vector), operator.in_structure()
    shapes = [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(vector)]
    if shapes != [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(unknowns)]:
        return NotImplemented  # least squares
    places, count = jax.tree.leaves(arguments(range(len(values)))[2]), len(shapes)

    def program(function: Callable[..., Any]) -> Callable[[list[jax.Array]], list[jax.Array]]:
        """Trace a function of all arrays and of a vector."""
        trace = jax.make_jaxpr(lambda arrays, x: jax.tree.leaves(function(arrays, x)))
        traced = trace(avals, [avals[i] for i in places])
        return lambda x: [plain(v, "linear_solve") for v in interpreter.run(traced, *values, *x)]

    def product(arrays: Sequence[jax.Array], x: list[jax.Array]) -> Any:
        return arguments(arrays)[0].mv(jax.tree.unflatten(jax.tree.structure(unknowns), x))

    def solution(arrays: Sequence[jax.Array], b: list[jax.Array]) -> Any:
        moved = list(arrays)
        for i, part in zip(places, b, strict=True):
            moved[i] = part
        return equation.primitive.impl(*moved, **parameters(equation))

    def transposed_solution(arrays: Sequence[jax.Array], b: list[jax.Array]) -> Any:
        _, state, _, options, solver, _ = arguments(arrays)
        state, options = solver.transpose(state, options)
        return solver.compute(state, jax.tree.unflatten(right, b), options)[0]

    solve_transposed = program(transposed_solution)

    def solve_transposed_with_more(b: list[jax.Array]) -> list[jax.Array]:
        return [*solve_transposed(b), *(jnp.zeros(v.aval.shape, v.aval.dtype) for v in equation.outvars[count:])]

    b = [plain(values[i], "linear_solve") for i in places]
    return linear_solve(program(product), b, program(solution), solve_transposed_with_more)
