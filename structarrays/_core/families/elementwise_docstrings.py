"""The sections of an elementwise function's docstring that follow from the function's declared properties."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from .elementwise_rule import ElementwiseArrayFunction

DataType: TypeAlias = Literal["same", "real", "bool"]
"""The dtype of a result: the (promoted) dtype of the operands, the real dtype of their parts, or bool."""


class _DataTypes(NamedTuple):
    """Descriptions of the accepted dtypes, of the refused dtypes, and of the result of the same dtype."""

    accepted: str
    refused: str = ""
    result: str = "dtype"


_INTO_FLOATING = "; integers become the default floating dtype"

DATA_TYPES = {
    "all": _DataTypes("any dtype"),
    "numeric": _DataTypes("a numeric dtype", "boolean"),
    "real": _DataTypes("a boolean or real numeric dtype", "complex"),
    "real numeric": _DataTypes("a real numeric dtype", "boolean or complex"),
    "floating": _DataTypes(f"a floating dtype{_INTO_FLOATING}", "boolean", "floating dtype"),
    "real floating": _DataTypes(f"a real floating dtype{_INTO_FLOATING}", "boolean or complex", "floating dtype"),
    "integer": _DataTypes("an integer dtype", "not an integer dtype"),
    "integer or bool": _DataTypes("an integer or boolean dtype", "neither an integer dtype nor boolean"),
    "bool": _DataTypes("a boolean dtype", "not boolean"),
}
"""By the names of `KINDS`."""


def complete_docstring(written: str, function: ElementwiseArrayFunction[Any], result: DataType) -> str:
    """Return the whole docstring of an elementwise function of one or two operands.

    Parameters
    ----------
    written : str
        The part that is written by hand: summary, description, special notes, examples.
    function : ElementwiseArrayFunction
        The function with its declared properties.
    result : {"same", "real", "bool"}
        The dtype of the result.
    """
    description, _, examples = inspect.cleandoc(written).partition("\n\nExamples\n--------\n")
    description, _, notes = description.partition("\n\nNotes\n-----\n")
    sections = {
        "Parameters": _parameters(function),
        "Returns": _returned(function, result),
        "Raises": _raised(function),
        "Notes": "\n".join(filter(None, (_structure(function), notes))),
        "Examples": examples,
    }
    return "\n\n".join([description, *(f"{k}\n{'-' * len(k)}\n{text}" for k, text in sections.items() if text)]) + "\n"


def _parameters(function: ElementwiseArrayFunction[Any]) -> str:
    accepted = DATA_TYPES[function.kinds].accepted
    if len(function.arrays) == 1:
        return f"{function.arrays[0]} : array\n    Of {accepted}."
    names = ", ".join(function.arrays)
    return f"{names} : array or Python scalar\n    Of {accepted}. The shapes broadcast, the dtypes are promoted."


def _returned(function: ElementwiseArrayFunction[Any], result: DataType) -> str:
    unary = len(function.arrays) == 1
    shape = "the same shape" if unary else "the broadcast shape"
    if result == "bool":
        return f"array\n    Array of {shape} and of boolean dtype."
    dtype = DATA_TYPES[function.kinds].result if unary else f"the promoted {DATA_TYPES[function.kinds].result}"
    suffix = " A complex dtype becomes the real dtype of its parts." if result == "real" else ""
    return f"array\n    Array of {shape} and {dtype}.{suffix}"


def _raised(function: ElementwiseArrayFunction[Any]) -> str:
    unary, refused = len(function.arrays) == 1, DATA_TYPES[function.kinds].refused
    errors = []
    if refused:
        errors.append(f"TypeError\n    If {'the' if unary else 'a'} dtype is {refused}.")
    if not unary:
        errors.append("ValueError\n    If the shapes do not broadcast.")
        if not function.compares and function.kinds != "bool":
            errors.append("OverflowError\n    If a Python integer does not fit the dtype of the array next to it.")
    return "\n".join(errors)


def _structure(function: ElementwiseArrayFunction[Any]) -> str:
    """Return the sentence on structural zeros."""
    name, unary = function.name, len(function.arrays) == 1
    if function.absorbs:
        both = len(function.absorbs) == 2
        of, other = ("either operand", "the other element") if both else ("`x1`", "the element of `x2`")
        switch = "" if function.exact else "\nThe policy `strong_zeros` can switch this off."
        return f"A structural zero of {of} gives a structural zero, whatever {other} is.{switch}"
    if unary:
        return (
            "Structural zeros stay."
            if function.zero
            else f"Structural zeros become a background value of ``{name}(0)``."
        )
    if function.zero:
        return "The result has structural zeros where both operands have them."
    return f"Where both operands have structural zeros, the result has a background value of ``{name}(0, 0)``."
