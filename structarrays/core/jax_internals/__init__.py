"""Everything that the library reads of JAX beyond its documentation: how JAX stores programs and their equations.

JAX documents that a function can be traced to a program (`jax.make_jaxpr`) and that a program has equations. JAX does not document
the parameters of the equations, and they change between versions. This module reads them, checks them, and returns records of our own.

The module *fails closed*. `is_recognised` is False for an equation whose parameters differ from what this module knows: a parameter
is missing, renamed or new, or its content has another form. Such an equation is opaque to the rules of `structured`: its operands
become dense and JAX evaluates it. The records raise `UnrecognisedEquation`, also where a function is differentiated, so that a new
version of JAX leads to an error or to a dense result, never to a wrong value.
"""

from typing import Any

from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

from .calls import CheckpointCall, CondCall, LinearSolveCall, ScanCall, WhileCall
from .derivatives import CustomJvpCall, CustomVjpCall, Known, is_zero_tangent
from .forms import FORMS, UnrecognisedEquation, parameters, problem_of
from .programs import (
    bind,
    checkpoint_label,
    expansion,
    function_name,
    high_level_name,
    in_avals,
    inner_program,
    live_equations,
    out_avals,
    parts,
)

RECORDS: dict[str, Any] = {
    "scan": ScanCall,
    "while": WhileCall,
    "cond": CondCall,
    "checkpoint": CheckpointCall,
    "remat2": CheckpointCall,
    "custom_linear_solve": LinearSolveCall,
    "custom_jvp_call": CustomJvpCall,
    "custom_vjp_call": CustomVjpCall,
}
"""The records that read the parameters of an equation."""


def is_recognised(equation: Any) -> bool:
    """Whether the parameters of an equation are those that this library knows, by their names and by the records that read them."""
    if problem_of(equation) is not None:
        return False
    record = RECORDS.get(equation.primitive.name)
    if record is not None:
        try:
            record.of(equation)
        except UnrecognisedEquation:
            return False
    return True
