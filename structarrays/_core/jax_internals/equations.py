"""Records and functions that read JAX programs and their equations."""

from typing import Any

from .calls import CheckpointCall, CondCall, LinearSolveCall, ScanCall, WhileCall
from .derivatives import CustomJvpCall, CustomVjpCall, Known, is_zero_tangent
from .forms import FORMS, UnrecognisedEquation, parameters, problem_of
from .jaxprs import (
    ClosedJaxpr,
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
from .program_types import Literal, jaxpr_as_fun

__all__ = [
    "CheckpointCall",
    "ClosedJaxpr",
    "CondCall",
    "CustomJvpCall",
    "CustomVjpCall",
    "FORMS",
    "Known",
    "LinearSolveCall",
    "Literal",
    "RECORDS",
    "ScanCall",
    "UnrecognisedEquation",
    "WhileCall",
    "bind",
    "checkpoint_label",
    "expansion",
    "function_name",
    "high_level_name",
    "in_avals",
    "inner_program",
    "is_recognised",
    "is_zero_tangent",
    "jaxpr_as_fun",
    "live_equations",
    "out_avals",
    "parameters",
    "parts",
    "problem_of",
]

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
"""The record that reads the parameters of a primitive's equations."""


def is_recognised(equation: Any) -> bool:
    """Return whether this library knows the parameters of an equation: their names, and their form if a record reads
    them.
    """
    if problem_of(equation) is not None:
        return False
    record = RECORDS.get(equation.primitive.name)
    if record is not None:
        try:
            record.of(equation)
        except UnrecognisedEquation:
            return False
    return True
