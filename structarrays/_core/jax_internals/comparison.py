"""Comparison of programs: whether two traces of a function are one computation, so that its compiled code can be used again."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from .jaxprs import closed, equations_of, parts
from .program_types import Literal

LARGEST = 2**20
"""The largest constant in bytes that is compared by value; larger ones must be the same object."""


def same_program(first: Any, second: Any) -> bool:
    """Return whether two programs are certainly the same computation on inputs of the same types."""
    if first is second:
        return True
    a, b = parts(closed(first)), parts(closed(second))
    lengths = [[len(p.constvars), len(p.consts), len(p.invars), len(p.outvars), len(p.equations)] for p in (a, b)]
    if lengths[0] != lengths[1] or not all(map(_same_value, a.consts, b.consts)):
        return False
    numbers: tuple[dict[Any, int], dict[Any, int]] = ({}, {})

    def define(x: Sequence[Any], y: Sequence[Any]) -> bool:
        for variables, known in zip((x, y), numbers, strict=True):
            for variable in variables:
                known[variable] = len(known)
        return len(x) == len(y) and all(_type(v) == _type(w) for v, w in zip(x, y, strict=True))

    def same_atoms(x: Sequence[Any], y: Sequence[Any]) -> bool:
        return len(x) == len(y) and all(map(same_atom, x, y))

    def same_atom(x: Any, y: Any) -> bool:
        if isinstance(x, Literal) or isinstance(y, Literal):
            return (
                isinstance(x, Literal) and isinstance(y, Literal) and _type(x) == _type(y) and _same_value(x.val, y.val)
            )
        return numbers[0][x] == numbers[1][y]

    if not define([*a.constvars, *a.invars], [*b.constvars, *b.invars]):
        return False
    for e, f in zip(a.equations, b.equations, strict=True):
        if e.primitive is not f.primitive or e.effects or f.effects or not same_atoms(e.invars, f.invars):
            return False
        if not _same_value(e.params, f.params) or not define(e.outvars, f.outvars):
            return False
    return same_atoms(a.outvars, b.outvars)


def changeable_contents(program: Any) -> list[Any]:
    """Return hashes of the NumPy arrays in a program, which may be written to after the program has been compiled."""
    found: list[Any] = []

    def visit(value: Any) -> None:
        if hasattr(value, "eqns"):
            visit(tuple(getattr(value, "consts", ())))
            for equation in equations_of(value):
                visit(equation.params)
                visit([atom.val for atom in equation.invars if isinstance(atom, Literal)])
        elif isinstance(value, Mapping):
            visit(tuple(value.values()))
        elif isinstance(value, (tuple, list)):
            for part in value:
                visit(part)
        elif isinstance(value, np.ndarray):  # a view that is read-only may change, too
            # objects have no content that can be compared
            known = value.dtype != object
            found.append(hashlib.blake2b(np.ascontiguousarray(value).tobytes()).digest() if known else object())

    visit(program)
    return found


def _type(atom: Any) -> tuple[Any, ...]:
    aval = atom.aval
    return getattr(aval, "shape", None), getattr(aval, "dtype", None), getattr(aval, "weak_type", None), type(aval)


def _same_value(x: Any, y: Any) -> bool:
    """Return whether two parameters or constants are certainly equal, including the signs of zeros."""
    if x is y:
        return True
    if isinstance(x, jax.core.Tracer) or isinstance(y, jax.core.Tracer) or type(x) is not type(y):
        return False
    if hasattr(x, "eqns"):
        return same_program(x, y)
    if isinstance(x, Mapping):
        return x.keys() == y.keys() and all(_same_value(x[key], y[key]) for key in x)
    if isinstance(x, (tuple, list)):
        return len(x) == len(y) and all(map(_same_value, x, y))
    if isinstance(x, (jax.Array, np.ndarray, np.generic)):
        if (x.shape, x.dtype) != (y.shape, y.dtype) or x.nbytes > LARGEST:
            return False
        if jax.numpy.issubdtype(x.dtype, jax.dtypes.extended) or x.dtype == object:
            return False
        return np.asarray(x).tobytes() == np.asarray(y).tobytes()
    if isinstance(x, (float, complex)):
        return repr(x) == repr(y)
    try:
        return bool(x == y)
    except Exception:  # a comparison of unknown parameters may raise anything
        return False
