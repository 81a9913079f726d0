"""`Interpreter`: runs the programs of JAX, equation by equation, under other rules than JAX's own.

A program that JAX has traced is a list of equations, each a primitive with operands, parameters and results. An interpreter walks
through it with values of any kind in the place of arrays: those that are *special* go to the rules, and what has no special
operand goes to JAX as it stands.
"""

import functools
import re
from collections.abc import Callable, Mapping, Sequence

import jax
from jax.extend.core import ClosedJaxpr, DropVar, Literal

CALLS = {
    "jit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "checkpoint": "jaxpr",
    "remat2": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
}
"""The primitives that do nothing but run another program, and the parameter that holds it."""


class Interpreter:
    """An interpretation of JAX programs: what the primitives do with values that are special.

    Parameters
    ----------
    special : callable
        Of a value, to whether rules have to do with it. A special value has a `shape` and a `dtype`.
    rules : mapping, optional
        From the names of primitives (``"exp"``, ``"dot_general"``, as `jax.make_jaxpr` prints them) to rules; `rule` adds more. A
        name may also be that of a function of JAX that its programs call as a whole, such as ``"numpy.linalg.solve"``.
    default : callable, optional
        The rule for primitives that have none.

    Notes
    -----
    A rule is called as ``rule(interpreter, equation, *values)`` with the equation (a `jax.extend.core.JaxprEqn`: `primitive`,
    `params`, and `invars`, `outvars` with their ``aval``) and a value for each operand, special or not. It returns the result, or a
    list of the results, or ``NotImplemented`` to leave the equation to the next rule.

    Programs within the program (``jit``, ``checkpoint``, functions with derivatives of their own) are run in place unless there is
    a rule for them; loops and conditions need a rule, which calls `run` for the programs in their parameters. Equations whose
    results nobody uses are left out. The guide has two interpretations from their first line to their last.

    Examples
    --------
    How many multiplications a program makes:

    >>> import math
    >>> import jax, jax.numpy as jnp
    >>> from structarrays.transform import Interpreter
    >>> multiplications = 0
    >>> count = Interpreter(special=lambda value: isinstance(value, jax.ShapeDtypeStruct))
    >>> @count.rule("mul")
    ... def _(interpreter, equation, x, y):
    ...     global multiplications
    ...     multiplications += math.prod(equation.outvars[0].aval.shape)
    ...     return NotImplemented
    >>> @count.otherwise
    ... def _(interpreter, equation, *values):
    ...     return [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in equation.outvars]
    >>> count(lambda x: jnp.sum(x * x * 2.0))(jax.ShapeDtypeStruct((10,), "float32"))
    ShapeDtypeStruct(shape=(), dtype=float32)
    >>> multiplications
    20
    """

    def __init__(
        self, *, special: Callable, rules: Mapping[str, Callable] | None = None, default: Callable | None = None
    ):
        for argument, value in (("special", special), ("default", default or special)):
            if not callable(value):
                raise TypeError(f"Interpreter: {argument} must be callable, got {type(value).__name__}")
        self.special = special
        self.rules: dict[str, tuple[Callable, ...]] = {}
        self.sources: set[str] = set()
        self.default = default or _refuse
        for name, code in (rules or {}).items():
            self.rule(name)(code)

    def rule(self, *names: str, source: bool = False):
        """Register the decorated code as the rule for the primitives of these names; the one registered last is asked first.

        With `source` it is also asked where no operand is special, so that special values can come from the program itself, and from
        functions under `jit` that it calls.
        """
        if not names or not all(isinstance(name, str) for name in names):
            given = ", ".join(type(name).__name__ for name in names) or "nothing"
            raise TypeError(f"Interpreter.rule takes names of primitives, got {given}")

        def register(code):
            if not callable(code):
                raise TypeError(f"Interpreter: the rule for {names[0]!r} must be callable, got {type(code).__name__}")
            for name in names:
                self.rules[name] = (code, *self.rules.get(name, ()))
                if source:
                    self.sources.add(name)
            return code

        return register

    def otherwise(self, code):
        """Register the decorated code as the rule for primitives that have none."""
        self.default = code
        return code

    def __call__(self, fun: Callable) -> Callable:
        """The function under this interpretation.

        Its arguments are pytrees with special values among their leaves; what is no array is static. It is traced anew at each
        call.
        """

        @functools.wraps(fun)
        def interpreted(*args, **kwargs):
            leaves, tree = jax.tree.flatten((args, kwargs), is_leaf=self.special)
            dynamic = [
                i for i, leaf in enumerate(leaves) if self.special(leaf) or isinstance(leaf, jax.typing.ArrayLike)
            ]
            program, result = trace(fun, leaves, tree, dynamic)
            return jax.tree.unflatten(result, self.run(program, *(leaves[i] for i in dynamic)))

        return interpreted

    def run(self, program: ClosedJaxpr, *values, needed=None) -> list:
        """The results of a program for these values.

        Parameters
        ----------
        program : jax.extend.core.ClosedJaxpr
        *values
            One for each of its inputs.
        needed : sequence of bool, optional
            Which results are; for the others None is returned.
        """
        jaxpr = program.jaxpr
        env = dict(zip(jaxpr.constvars, program.consts, strict=True))
        env.update(zip(jaxpr.invars, values, strict=True))
        needed = [True] * len(jaxpr.outvars) if needed is None else list(needed)

        def read(atom):
            return atom.val if isinstance(atom, Literal) else env[atom]

        for equation, used in live_equations(jaxpr, needed):
            results = self.evaluate(equation, [read(atom) for atom in equation.invars], used)
            env.update(zip(equation.outvars, results, strict=True))
        return [read(atom) if wanted else None for atom, wanted in zip(jaxpr.outvars, needed, strict=True)]

    def evaluate(self, equation, values, used=None) -> Sequence:
        """The results of one equation; `used` says which of them are."""
        primitive = equation.primitive
        special = any(map(self.special, values))
        result = NotImplemented
        if special or primitive.name in self.sources:
            for rule in self._rules_for(equation):
                result = rule(self, equation, *values)
                if result is not NotImplemented:
                    break
            else:
                if special and primitive.name in CALLS:
                    return self.run(inner_program(equation), *values, needed=used)
        elif self.sources and self._brings_special(equation):
            return self.run(inner_program(equation), *values, needed=used)
        if result is NotImplemented:
            result = self.default(self, equation, *values) if special else bind(equation, values)
        results = result if isinstance(result, (list, tuple)) and not self.special(result) else (result,)
        if len(results) != len(equation.outvars):
            raise ValueError(
                f"the rule for the primitive {primitive.name!r} must return {len(equation.outvars)} results, got {len(results)}"
            )
        return results

    def _brings_special(self, equation) -> bool:
        """Whether a call on ordinary values has a source in its program. JAX's own functions of such values are left to JAX."""
        if equation.primitive.name != "jit" or equation.invars and function_name(equation):
            return False
        inside = inner_program(equation).jaxpr.eqns
        return any(each.primitive.name in self.sources or self._brings_special(each) for each in inside)

    def _rules_for(self, equation) -> tuple:
        """The rules to be asked: those of the function that the equation stands for come first."""
        name = equation.primitive.name
        own = self.rules.get(name, ())
        return self.rules.get(function_name(equation), ()) + own if name == "jit" else own


def _refuse(interpreter, equation, *values):
    """The rule for primitives without one, where there is no other.

    Raises
    ------
    NotImplementedError
    """
    kinds = ", ".join(type(value).__name__ for value in values)
    raise NotImplementedError(f"this interpreter has no rule for the primitive {equation.primitive.name!r} of {kinds}")


def trace(fun, leaves, tree, dynamic):
    """The program of a function whose arguments are a flattened ``(args, kwargs)``, and the tree of its results.

    Of the leaves those at the places `dynamic` are its inputs, of which shape and dtype count; the others stay as they are.
    """
    result_tree = None

    def flat(*inputs):
        nonlocal result_tree
        merged = list(leaves)
        for i, value in zip(dynamic, inputs, strict=True):
            merged[i] = value
        args, kwargs = jax.tree.unflatten(tree, merged)
        results, result_tree = jax.tree.flatten(fun(*args, **kwargs))
        return results

    program = jax.make_jaxpr(flat)(*(abstract(leaves[i]) for i in dynamic))
    return program, result_tree


def abstract(value):
    """What a program is traced with in the place of a value: its shape and its dtype."""
    if isinstance(value, jax.Array) or not hasattr(value, "shape"):
        aval = jax.typeof(value)
        return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)
    return jax.ShapeDtypeStruct(value.shape, value.dtype)


def live_equations(jaxpr, needed) -> list:
    """The equations whose results are used, or that have effects, each with the tuple of which of its results are."""
    used = {
        atom for atom, wanted in zip(jaxpr.outvars, needed, strict=True) if wanted and not isinstance(atom, Literal)
    }
    live = []
    for equation in reversed(jaxpr.eqns):
        mask = tuple(not isinstance(v, DropVar) and v in used for v in equation.outvars)
        if any(mask) or equation.effects:
            live.append((equation, mask))
            used.update(atom for atom in equation.invars if not isinstance(atom, Literal))
    return live[::-1]


def bind(equation, values):
    """What JAX makes of an equation."""
    with equation.ctx.manager:
        result = equation.primitive.bind(*values, **equation.primitive.get_bind_params(equation.params))
    return list(result) if equation.primitive.multiple_results else result


def inner_program(equation) -> ClosedJaxpr:
    """The program that an equation runs, one of `CALLS`."""
    program = equation.params[CALLS[equation.primitive.name]]
    return program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program, ())


def function_name(equation) -> str | None:
    """The name of the function of JAX that an equation stands for as a whole, such as ``"numpy.linalg.solve"``; None for others,
    among them functions of the user's that have the same name.
    """
    if equation.primitive.name != "jit":
        return None
    info = inner_program(equation).jaxpr.debug_info
    if info is None or info.arg_names is None or info.result_paths is None:
        return None  # a derivative of the function, or the function of a whole batch: JAX keeps its name, but not its arguments
    return _qualified(info.func_src_info)


_SOURCE = re.compile(r"^(\S+) at .*[/\\]jax[/\\](?:_src[/\\])?(\w+(?:[/\\]\w+)*)\.py:\d+$")


@functools.lru_cache(4096)
def _qualified(source: str | None) -> str | None:
    found = _SOURCE.match(source or "")
    return found and f"{found[2].replace('/', '.').replace(chr(92), '.')}.{found[1]}"
