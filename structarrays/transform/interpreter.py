"""`Interpreter`: run JAX programs, equation by equation, with custom rules.

A program that JAX has traced is a list of equations, each with a primitive, operands, parameters and results. An
interpreter walks through the equations with values of any kind instead of arrays. An equation with a *special* operand
is passed to the rules; JAX evaluates the other equations unchanged.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, cast

import jax

from .._core.jax_internals.equations import (
    Literal,
    bind,
    function_name,
    inner_program,
    live_equations,
    parts,
)
from .._numerics.flags import independent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn, TypeVar

    from .._core.jax_internals.equations import ClosedJaxpr

    Code = TypeVar("Code", bound=Callable[..., Any])


class Interpreter:
    """An interpretation of JAX programs: rules for primitives with special operands.

    Parameters
    ----------
    special : callable
        Function of a value that returns whether rules apply to it. A special value has a `shape` and a `dtype`.
    rules : mapping, optional
        Maps names of primitives (``"exp"``, ``"dot_general"``, as `jax.make_jaxpr` prints them) to rules; `rule` adds
        more. A name may also be the name of a function that JAX programs call as a whole, such as
        ``"numpy.linalg.solve"``.
    default : callable, optional
        Rule for primitives without a rule.

    Raises
    ------
    TypeError
        If `special`, `default` or a rule is not callable.

    Notes
    -----
    A rule is called as ``rule(interpreter, equation, *values)`` with the equation (a `jax.extend.core.JaxprEqn`: `primitive`,
    `params`, and `invars`, `outvars` with their ``aval``) and a value for each operand, special or not. It returns the result, or a
    list of the results. If it returns ``NotImplemented``, the next rule is called.

    Programs within the program (``jit``, ``checkpoint``, functions with custom derivatives) run in place unless there
    is a rule for them. Loops and conditions need a rule, which calls `run` for the programs in their parameters.
    Equations with unused results are skipped. The guide contains two complete interpretations.

    Examples
    --------
    Count the multiplications of a program:

    >>> import math
    >>> import jax, jax.numpy as jnp
    >>> from structarrays.transform import Interpreter
    >>> multiplications = 0
    >>> count = Interpreter(special=lambda value: isinstance(value, jax.ShapeDtypeStruct))
    >>> @count.rule("mul")
    ... def multiply_shapes(interpreter, equation, x, y):
    ...     global multiplications
    ...     multiplications += math.prod(equation.outvars[0].aval.shape)
    ...     return NotImplemented
    >>> @count.otherwise
    ... def anything_else(interpreter, equation, *values):
    ...     return [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in equation.outvars]
    >>> count(lambda x: jnp.sum(x * x * 2.0))(jax.ShapeDtypeStruct((10,), "float32"))
    ShapeDtypeStruct(shape=(), dtype=float32)
    >>> multiplications
    20
    """

    def __init__(
        self,
        *,
        special: Callable[[Any], bool],
        rules: Mapping[str, Callable[..., Any]] | None = None,
        default: Callable[..., Any] | None = None,
    ) -> None:
        for argument, value in (("special", special), ("default", default or special)):
            if not callable(value):
                raise TypeError(f"Interpreter: {argument} must be callable, got {type(value).__name__}")
        self.special = special
        self.rules: dict[str, tuple[Callable[..., Any], ...]] = {}
        self.sources: set[str] = set()
        self.default = default or _refuse
        for name, code in (rules or {}).items():
            self.rule(name)(code)

    def rule(self, *names: str, source: bool = False) -> Callable[[Code], Code]:
        """Register the decorated code as the rule for the primitives of these names; the rule registered last is called
        first.

        With `source`, the rule is also called if no operand is special, so that special values can be created in the
        program itself, and in functions under `jit` that it calls.
        """
        if not names or not all(isinstance(name, str) for name in names):
            given = ", ".join(type(name).__name__ for name in names) or "nothing"
            raise TypeError(f"Interpreter.rule: names must be names of primitives, got {given}")

        def register(code: Code) -> Code:
            if not callable(code):
                raise TypeError(f"Interpreter: the rule for {names[0]!r} must be callable, got {type(code).__name__}")
            for name in names:
                self.rules[name] = (code, *self.rules.get(name, ()))
                if source:
                    self.sources.add(name)
            return code

        return register

    def otherwise(self, code: Code) -> Code:
        """Register the decorated code as the rule for primitives without a rule."""
        self.default = code
        return code

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that runs `fun` under this interpretation.

        Its arguments are pytrees with special values among their leaves; leaves that are not arrays are static. Each
        call traces `fun` again.
        """

        @functools.wraps(fun)
        def interpreted(*args: Any, **kwargs: Any) -> Any:
            leaves, tree = jax.tree.flatten((args, kwargs), is_leaf=self.special)
            dynamic = [
                i
                for i, leaf in enumerate(leaves)
                if self.special(leaf) or isinstance(leaf, jax.typing.ArrayLike)  # type: ignore[arg-type, unused-ignore]  # a union
            ]
            program, result = trace(fun, leaves, tree, dynamic)
            return jax.tree.unflatten(result, self.run(program, *(leaves[i] for i in dynamic)))

        return interpreted

    @independent  # JAX's promotion flags already applied when the interpreted code was traced
    def run(self, program: ClosedJaxpr, *values: Any, needed: Sequence[bool] | None = None) -> list[Any]:
        """Run a program for these values and return its results.

        Parameters
        ----------
        program : jax.extend.core.ClosedJaxpr
            Program to run.
        *values
            One value for each input of the program.
        needed : sequence of bool, optional
            Which results are needed; the others are returned as None.

        Returns
        -------
        list
            The results of the program.
        """
        pieces = parts(program)
        env = dict(zip(pieces.constvars, pieces.consts, strict=True))
        env.update(zip(pieces.invars, values, strict=True))
        needed = [True] * len(pieces.outvars) if needed is None else list(needed)

        def read(atom: Any) -> Any:
            return atom.val if isinstance(atom, Literal) else env[atom]

        for equation, used in live_equations(program, needed):
            results = self.evaluate(equation, [read(atom) for atom in equation.invars], used)
            env.update(zip(equation.outvars, results, strict=True))
        return [read(atom) if wanted else None for atom, wanted in zip(pieces.outvars, needed, strict=True)]

    def evaluate(self, equation: Any, values: Sequence[Any], used: Sequence[bool] | None = None) -> Sequence[Any]:
        """Evaluate one equation and return its results; `used` tells which of them are used."""
        primitive = equation.primitive
        special = any(map(self.special, values))
        result = NotImplemented
        if special or primitive.name in self.sources:
            for rule in self._rules_for(equation):
                result = rule(self, equation, *values)
                if result is not NotImplemented:
                    break
            else:
                program = inner_program(equation) if special else None
                if program is not None:
                    return self.run(program, *values, needed=used)
        elif self.sources and self._brings_special(equation):
            return self.run(cast("ClosedJaxpr", inner_program(equation)), *values, needed=used)
        if result is NotImplemented:
            result = self.default(self, equation, *values) if special else bind(equation, values)
        results = result if isinstance(result, (list, tuple)) and not self.special(result) else (result,)
        if len(results) != len(equation.outvars):
            raise ValueError(
                f"the rule for the primitive {primitive.name!r} must return {len(equation.outvars)} results, got {len(results)}"
            )
        return results

    def _brings_special(self, equation: Any) -> bool:
        """Return whether a call on ordinary values contains a source.

        JAX evaluates its own functions of such values.
        """
        if equation.primitive.name != "jit" or equation.invars and function_name(equation):
            return False
        program = inner_program(equation)
        inside = () if program is None else parts(program).equations
        return any(each.primitive.name in self.sources or self._brings_special(each) for each in inside)

    def _rules_for(self, equation: Any) -> tuple[Callable[..., Any], ...]:
        """Return the rules for an equation, in order: first the rules for the function that the equation represents."""
        name = equation.primitive.name
        own = self.rules.get(name, ())
        return self.rules.get(cast("str", function_name(equation)), ()) + own if name == "jit" else own


def _refuse(interpreter: Interpreter, equation: Any, *values: Any) -> NoReturn:
    """Raise, as the default rule for primitives without a rule.

    Raises
    ------
    NotImplementedError
        Always.
    """
    kinds = ", ".join(type(value).__name__ for value in values)
    raise NotImplementedError(f"this interpreter has no rule for the primitive {equation.primitive.name!r} of {kinds}")


def trace(fun: Callable[..., Any], leaves: Sequence[Any], tree: Any, dynamic: Sequence[int]) -> tuple[ClosedJaxpr, Any]:
    """Trace a function of a flattened ``(args, kwargs)``; return its program, and the tree of its results.

    The leaves at the indices `dynamic` are inputs of the program, represented by shape and dtype; the others are
    static.
    """
    result_tree = None

    def flat(*inputs: Any) -> list[Any]:
        nonlocal result_tree
        merged = list(leaves)
        for i, value in zip(dynamic, inputs, strict=True):
            merged[i] = value
        args, kwargs = jax.tree.unflatten(tree, merged)
        results, result_tree = jax.tree.flatten(returned(fun, fun(*args, **kwargs)))
        return results

    program = jax.make_jaxpr(flat)(*(abstract(leaves[i]) for i in dynamic))
    return program, result_tree


def returned(fun: Callable[..., Any], results: Any) -> Any:
    """Return the results of a function after a check that all of them are arrays or scalars.

    Raises
    ------
    TypeError
        If a result is not.
    """
    for leaf in jax.tree.leaves(results):
        if not (hasattr(leaf, "dtype") or isinstance(leaf, bool | int | float | complex)):
            name = getattr(fun, "__name__", "the function")
            raise TypeError(
                f"structured: {name} must return arrays, numbers or pytrees of them, got {type(leaf).__name__}"
            )
    return results


def abstract(value: Any) -> jax.ShapeDtypeStruct:
    """Return the shape and dtype of a value, with which a program is traced."""
    if isinstance(value, jax.Array) or not hasattr(value, "shape"):
        aval = jax.typeof(value)
        return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)
    return jax.ShapeDtypeStruct(value.shape, value.dtype)
