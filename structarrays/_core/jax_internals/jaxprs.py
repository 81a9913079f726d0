"""Programs: their parts, and equations that only run another program."""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax

from .forms import UnrecognisedEquation, parameters, problem_of
from .program_types import ClosedJaxpr as ClosedJaxpr
from .program_types import DropVar, Literal


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a program."""

    constvars: Sequence[Any]
    consts: Sequence[Any]
    invars: Sequence[Any]
    outvars: Sequence[Any]
    equations: Sequence[Any]
    source: (
        str | None
    )  # the name of the function that it was traced from, and its file; None of a derivative or a batch of it


def closed(program: Any, consts: Sequence[Any] | None = None) -> ClosedJaxpr:
    """Return a program with the values of its constants; if `consts` is None, the program contains them already."""
    if consts is not None:
        return ClosedJaxpr(program, list(consts))
    return program if hasattr(program, "consts") else ClosedJaxpr(program, ())


def parts(program: Any) -> Parts:
    """Return the parts of a program.

    JAX 0.12 has one class for programs with and without the values of their constants.
    """
    jaxpr = getattr(program, "jaxpr", program)
    info = jaxpr.debug_info
    named = info is not None and info.arg_names is not None and info.result_paths is not None
    source = info.func_src_info if named else None
    return Parts(jaxpr.constvars, program.consts, jaxpr.invars, jaxpr.outvars, jaxpr.eqns, source)


def equations_of(program: Any) -> Sequence[Any]:
    """Return the equations of a program, with or without the values of its constants."""
    equations: Sequence[Any] = getattr(program, "jaxpr", program).eqns
    return equations


def in_avals(program: Any) -> list[Any]:
    """Return the types of the inputs of a program."""
    return [variable.aval for variable in parts(program).invars]


def out_avals(program: Any) -> list[Any]:
    """Return the types of the results of a program."""
    return [atom.aval for atom in parts(program).outvars]


def live_equations(program: Any, needed: Sequence[bool]) -> list[tuple[Any, tuple[bool, ...]]]:
    """Return the equations that have effects or used results, each with a tuple that tells which results are used."""
    pieces = parts(program)
    used = {
        atom for atom, wanted in zip(pieces.outvars, needed, strict=True) if wanted and not isinstance(atom, Literal)
    }
    live = []
    for equation in reversed(pieces.equations):
        mask = tuple(not isinstance(v, DropVar) and v in used for v in equation.outvars)
        if any(mask) or equation.effects:
            live.append((equation, mask))
            used.update(atom for atom in equation.invars if not isinstance(atom, Literal))
    return live[::-1]


def bind(equation: Any, values: Sequence[Any]) -> Any:
    """Evaluate an equation with JAX."""
    with equation.ctx.manager:
        result = equation.primitive.bind(*values, **equation.primitive.get_bind_params(equation.params))
    return list(result) if equation.primitive.multiple_results else result


PROGRAMS = {
    "jit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "eval_jaxpr": "call_jaxpr",
    "checkpoint": "jaxpr",
    "remat2": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
}
"""The primitives that only run another program, and the parameter that contains the program."""


def inner_program(equation: Any) -> ClosedJaxpr | None:
    """Return the program of an equation that only runs a program; None for other or unrecognised equations."""
    name = equation.primitive.name
    if name == "call_hi_primitive":
        return expansion(equation)
    if name not in PROGRAMS or problem_of(equation) is not None:
        return None
    program = closed(equation.params[PROGRAMS[name]])
    return program if fits(program, equation) else None


def fits(program: Any, equation: Any) -> bool:
    """Return whether the inputs and results of a program have the shapes and dtypes of an equation's operands and
    results.
    """
    return same(in_avals(program), equation.invars) and same(out_avals(program), equation.outvars)


def same(avals: Sequence[Any], variables: Sequence[Any]) -> bool:
    """Return whether types have the shapes and dtypes of variables."""
    return [kind(a) for a in avals] == [kind(v.aval) for v in variables]


def kind(aval: Any) -> tuple[Any, Any]:
    """Return the shape and dtype of a type; None for each that it does not have."""
    return getattr(aval, "shape", None), getattr(aval, "dtype", None)


@functools.lru_cache(256)  # so that an equation in a loop is expanded once
def expansion(equation: Any) -> ClosedJaxpr | None:
    """Return the program of a primitive of `jax.experimental.hijax`, which defines its program itself."""
    primitive = equation.params.get("_prim")
    if problem_of(equation) is not None or not hasattr(primitive, "expand") or equation.effects:
        return None

    def run(*values: Any) -> list[Any]:
        return jax.tree.leaves(primitive.expand(*jax.tree.unflatten(primitive.in_tree, values)))

    program = jax.make_jaxpr(run)(*(shape_of(atom) for atom in equation.invars))
    return program if fits(program, equation) else None


def shape_of(atom: Any) -> jax.ShapeDtypeStruct:
    """Return the argument that replaces a variable if a function is traced."""
    return jax.ShapeDtypeStruct(atom.aval.shape, atom.aval.dtype, weak_type=getattr(atom.aval, "weak_type", False))


def function_name(equation: Any) -> str | None:
    """Return the name of the JAX function that an equation represents as a whole, such as ``"numpy.linalg.solve"``.

    None for other equations, including calls of user functions with the same name.
    """
    if equation.primitive.name != "jit":
        return None
    program = inner_program(equation)
    return None if program is None else _qualified(parts(program).source)


_SOURCE = re.compile(r"^(\S+) at .*[/\\]jax[/\\](?:_src[/\\])?(\w+(?:[/\\]\w+)*)\.py:\d+$")


@functools.lru_cache(4096)
def _qualified(source: str | None) -> str | None:
    found = _SOURCE.match(source or "")
    return found and f"{found[2].replace('/', '.').replace(chr(92), '.')}.{found[1]}"


def high_level_name(equation: Any) -> str | None:
    """Return the class name of one of JAX's own primitives of `jax.experimental.hijax`; None for all others."""
    if equation.primitive.name != "call_hi_primitive" or problem_of(equation) is not None:
        return None
    kind = type(equation.params["_prim"])
    return kind.__name__ if kind.__module__.partition(".")[0] == "jax" else None


def high_level(equation: Any, name: str, names: str) -> Any:
    """Return the primitive of an equation if it has this name and these parameters.

    Raises
    ------
    UnrecognisedEquation
        If it does not.
    """
    primitive = equation.params["_prim"]
    if high_level_name(equation) != name or primitive.params.keys() != set(names.split()):
        raise UnrecognisedEquation(name, f"it has the parameters {', '.join(sorted(primitive.params))}")
    return primitive


def checkpoint_label(equation: Any) -> str:
    """Return the name that an equation gives to a value for the policies of `jax.checkpoint`."""
    if equation.primitive.name == "name":
        return str(parameters(equation)["name"])
    return str(high_level(equation, "CheckpointName", "name").name)
