"""Recognition of equations: an equation is recognised if a record can read its parameters."""

from typing import Any

from .calls import CheckpointCall, CondCall, LinearSolveCall, ScanCall, WhileCall
from .derivatives import CustomJvpCall, CustomVjpCall
from .forms import UnrecognisedEquation, problem_of

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
