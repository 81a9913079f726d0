"""Everything that the library reads of JAX beyond its documentation: how JAX stores programs and their equations.

JAX documents that a function can be traced to a program (`jax.make_jaxpr`) and that a program has equations. JAX does not document
the parameters of the equations, and they change between versions. This module reads them, checks them, and returns records of our own.

The module *fails closed*. `is_recognised` is False for an equation whose parameters differ from what this module knows: a parameter
is missing, renamed or new, or its content has another form. Such an equation is opaque to the rules of `structured`: its operands
become dense and JAX evaluates it. The records raise `UnrecognisedEquation`, also where a function is differentiated, so that a new
version of JAX leads to an error or to a dense result, never to a wrong value.

The module `traces` finds the running transformation, which JAX does not document either.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jax.extend.core import ClosedJaxpr as ClosedJaxpr
    from jax.extend.core import Literal as Literal
    from jax.extend.core import jaxpr_as_fun as jaxpr_as_fun

    from .calls import CheckpointCall as CheckpointCall
    from .calls import CondCall as CondCall
    from .calls import LinearSolveCall as LinearSolveCall
    from .calls import ScanCall as ScanCall
    from .calls import WhileCall as WhileCall
    from .derivatives import CustomJvpCall as CustomJvpCall
    from .derivatives import CustomVjpCall as CustomVjpCall
    from .derivatives import Known as Known
    from .derivatives import is_zero_tangent as is_zero_tangent
    from .forms import FORMS as FORMS
    from .forms import UnrecognisedEquation as UnrecognisedEquation
    from .forms import parameters as parameters
    from .forms import problem_of as problem_of
    from .programs import bind as bind
    from .programs import checkpoint_label as checkpoint_label
    from .programs import expansion as expansion
    from .programs import function_name as function_name
    from .programs import high_level_name as high_level_name
    from .programs import in_avals as in_avals
    from .programs import inner_program as inner_program
    from .programs import live_equations as live_equations
    from .programs import out_avals as out_avals
    from .programs import parts as parts
    from .records import RECORDS as RECORDS
    from .records import is_recognised as is_recognised

_NAMES = {
    "jax.extend.core": ("ClosedJaxpr", "Literal", "jaxpr_as_fun"),
    ".calls": ("CheckpointCall", "CondCall", "LinearSolveCall", "ScanCall", "WhileCall"),
    ".derivatives": ("CustomJvpCall", "CustomVjpCall", "Known", "is_zero_tangent"),
    ".forms": ("FORMS", "UnrecognisedEquation", "parameters", "problem_of"),
    ".programs": (
        "bind", "checkpoint_label", "expansion", "function_name", "high_level_name", "in_avals", "inner_program", "live_equations",
        "out_avals", "parts",
    ),
    ".records": ("RECORDS", "is_recognised"),
}  # fmt: skip
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    # Import on first use. Only `traces` is needed at once. The other modules need `jax.extend`, which takes as long to import as this whole
    # package.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_MODULES[name], __name__), name)
    return value


def __dir__() -> list[str]:
    return [*globals(), *_MODULES]
