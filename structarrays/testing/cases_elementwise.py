"""The uses of elementwise functions and operators for the equivalence tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .case import Case

if TYPE_CHECKING:
    from collections.abc import Iterator

# For each function of one array: the accepted dtypes, and the interval from which elements are drawn.
UNARY = {
    "abs": ("numeric", (-2, 2)),
    "acos": ("floating", (-0.9, 0.9)),
    "acosh": ("floating", (1.1, 3)),
    "asin": ("floating", (-0.9, 0.9)),
    "asinh": ("floating", (-2, 2)),
    "atan": ("floating", (-2, 2)),
    "atanh": ("floating", (-0.9, 0.9)),
    "bitwise_invert": ("integer or bool", (-9, 9)),
    "ceil": ("real numeric", (-9, 9)),
    "conj": ("numeric", (-2, 2)),
    "cos": ("floating", (-2, 2)),
    "cosh": ("floating", (-2, 2)),
    "exp": ("floating", (-2, 2)),
    "expm1": ("floating", (-2, 2)),
    "floor": ("real numeric", (-9, 9)),
    "imag": ("complex", (-2, 2)),
    "isfinite": ("numeric", (-2, 2)),
    "isinf": ("numeric", (-2, 2)),
    "isnan": ("numeric", (-2, 2)),
    "log": ("floating", (0.2, 3)),
    "log10": ("floating", (0.2, 3)),
    "log1p": ("floating", (-0.5, 2)),
    "log2": ("floating", (0.2, 3)),
    "logical_not": ("bool", (0, 1)),
    "negative": ("numeric", (-2, 2)),
    "positive": ("numeric", (-2, 2)),
    "real": ("numeric", (-2, 2)),
    "reciprocal": ("floating", (0.3, 2)),
    "round": ("numeric", (-9, 9)),
    "sign": ("numeric", (-2, 2)),
    "signbit": ("real floating", (-2, 2)),
    "sin": ("floating", (-2, 2)),
    "sinh": ("floating", (-2, 2)),
    "sqrt": ("floating", (0.2, 3)),
    "square": ("numeric", (-2, 2)),
    "tan": ("floating", (-1.4, 1.4)),
    "tanh": ("floating", (-2, 2)),
    "trunc": ("real numeric", (-9, 9)),
}

# For each function of two arrays: the dtypes, the interval, and the interval of the second operand if it differs.
BINARY = {
    "add": ("numeric", (-2, 2), None),
    "atan2": ("real floating", (-2, 2), None),
    "bitwise_and": ("integer or bool", (-9, 9), None),
    "bitwise_left_shift": ("integer", (0, 3), (0, 3)),
    "bitwise_or": ("integer or bool", (-9, 9), None),
    "bitwise_right_shift": ("integer", (-9, 9), (0, 3)),
    "bitwise_xor": ("integer or bool", (-9, 9), None),
    "copysign": ("real floating", (-2, 2), None),
    "divide": ("floating", (-2, 2), (1, 4)),
    "equal": ("all", (-2, 2), None),
    "floor_divide": ("real numeric", (-9, 9), (1, 4)),
    "greater": ("real numeric", (-2, 2), None),
    "greater_equal": ("real numeric", (-2, 2), None),
    "hypot": ("real floating", (-2, 2), None),
    "less": ("real numeric", (-2, 2), None),
    "less_equal": ("real numeric", (-2, 2), None),
    "logaddexp": ("real floating", (-2, 2), None),
    "logical_and": ("bool", (0, 1), None),
    "logical_or": ("bool", (0, 1), None),
    "logical_xor": ("bool", (0, 1), None),
    "maximum": ("real numeric", (-2, 2), None),
    "minimum": ("real numeric", (-2, 2), None),
    "multiply": ("numeric", (-2, 2), None),
    "nextafter": ("real floating", (-2, 2), None),
    "not_equal": ("all", (-2, 2), None),
    "pow": ("numeric", (0.2, 3), (0, 3)),
    "remainder": ("real numeric", (-9, 9), (1, 4)),
    "subtract": ("numeric", (-2, 2), None),
}

OPERATORS = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "//": "floor_divide",
    "%": "remainder",
    "**": "pow",
    "&": "bitwise_and",
    "|": "bitwise_or",
    "^": "bitwise_xor",
    "<<": "bitwise_left_shift",
    ">>": "bitwise_right_shift",
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}

# Conditions on dense operands. Integers are not divided by zero, since the result depends on the library. A structural
# zero divided by zero is zero, where the dense result is NaN: strong zeros have separate tests.
GIVEN = {
    "divide": lambda x1, x2: bool(np.all(x2 != 0)),
    "floor_divide": lambda x1, x2: divisible(x1, x2),
    "remainder": lambda x1, x2: divisible(x1, x2),
}

# Functions whose derivative JAX does not define.
NOT_SMOOTH = {"nextafter", "copysign"}

TWO = ("x1", "x2")
SAME = ("mn", "mn")


def divisible(x1: np.ndarray, x2: np.ndarray) -> bool:
    """Return whether no integer is divided by zero, since the result depends on the library."""
    return x2.dtype.kind not in "iu" or bool(np.all(x2))


def no_integer_zero(x: np.ndarray) -> bool:
    """Return whether no integer is zero, for functions that divide by the operand."""
    return divisible(x, x)


def _unary() -> Iterator[Case]:
    for name, (kinds, domain) in UNARY.items():
        yield Case(name, f"xp.{name}(x)", kinds=kinds, domain=domain, elementwise=True)
    yield Case("__abs__", "abs(x)", elementwise=True)
    yield Case("__neg__", "-x", elementwise=True)
    yield Case("__pos__", "+x", elementwise=True)
    yield Case("__invert__", "~x", kinds="integer or bool", elementwise=True)


def _binary() -> Iterator[Case]:
    for name, (kinds, domain, second) in BINARY.items():
        options: dict[str, Any] = {
            "operands": TWO,
            "cores": SAME,
            "kinds": kinds,
            "domains": (domain, second or domain),
            "given": GIVEN.get(name),
            "smooth": name not in NOT_SMOOTH,
            "elementwise": True,
            "cancels": name == "logaddexp",
        }
        yield Case(name, f"xp.{name}(x1, x2)", **options)
    for symbol, name in OPERATORS.items():
        kinds, domain, second = BINARY[name]
        options = {
            "kinds": kinds,
            "given": GIVEN.get(name),
            "elementwise": True,
        }
        yield Case(symbol, f"x1 {symbol} x2", operands=TWO, cores=SAME, domains=(domain, second or domain), **options)
        number = "True" if symbol in "&|^" else "2"
        options |= {"kinds": "bool" if symbol in "&|^" else kinds, "domain": second or domain}
        if kinds == "all":
            options["kinds"] = "numeric"
        yield Case(symbol, f"x {symbol} {number}", **options | {"given": None, "domain": domain})
        yield Case(
            symbol, f"{number} {symbol} x", **options | {"given": no_integer_zero if symbol in ("//", "%") else None}
        )
        if symbol in ("+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>"):
            yield Case(symbol, f"x {symbol}= {number}", **options | {"given": None, "domain": domain})


def _others() -> Iterator[Case]:
    """Yield cases of static exponents, of bounds, and of functions that behave like elementwise functions."""
    floating: dict[str, Any] = {"kinds": "floating", "elementwise": True}
    for exponent, domain in (("2", (-2, 2)), ("3.0", (-2, 2)), ("0.5", (0.2, 3)), ("0", (-2, 2)), ("-1.0", (0.3, 2))):
        yield Case("pow", f"xp.pow(x, {exponent})", **floating, domain=domain)
    yield Case("pow", "xp.pow(x, 2)", elementwise=True)
    yield Case("pow", "xp.pow(2.0, x)", **floating)
    real: dict[str, Any] = {"kinds": "real numeric", "elementwise": True}
    yield Case("clip", "xp.clip(x)", **real, oracle=lambda x: x)
    yield Case("clip", "xp.clip(x, 1)", **real, oracle=lambda x: np.clip(x, 1, None))
    yield Case("clip", "xp.clip(x, None, 1)", **real)
    yield Case("clip", "xp.clip(x, min=0, max=1)", **real)
    yield Case("clip", "xp.clip(x, 0.5, 1.0)", **real | {"kinds": "real floating"})
    for bounds, operands in (("x1, x2, None", TWO), ("x1, None, x2", TWO), ("x1, x2, x3", (*TWO, "x3"))):
        cores = ("mn",) * len(operands)
        domains = ((-2, 2), (0, 0.9), (1, 2))[: len(operands)]
        yield Case("clip", f"xp.clip({bounds})", operands=operands, cores=cores, domains=domains, **real)
    where: dict[str, Any] = {"operands": ("c", *TWO), "cores": ("mn",) * 3, "elementwise": True}
    yield Case("where", "xp.where(c, x1, x2)", kinds="all", **where)
    yield Case("where", "xp.where(c, 2, x)", operands=("c", "x"), cores=SAME, elementwise=True)
    yield Case("where", "xp.where(c, x, 2)", operands=("c", "x"), cores=SAME, elementwise=True)
    yield Case("isin", "xp.isin(x, xp.asarray([1, 2]))", kinds="integer", elementwise=True)
    yield Case("isin", "xp.isin(x, xp.asarray([0, 2]), invert=True)", kinds="integer", elementwise=True)
    yield Case("isin", "xp.isin(x1, x2)", operands=TWO, cores=SAME, kinds="integer", elementwise=True)
    search: dict[str, Any] = {"kinds": "real floating", "elementwise": True}
    yield Case("searchsorted", "xp.searchsorted(xp.asarray([-1.0, 0.0, 1.0], dtype=x.dtype), x)", **search)
    yield Case(
        "searchsorted", "xp.searchsorted(xp.asarray([-1.0, 0.0, 1.0], dtype=x.dtype), x, side='right')", **search
    )
    sorter = "sorter=xp.asarray([1, 0])"
    yield Case("searchsorted", f"xp.searchsorted(xp.asarray([1.0, 0.0], dtype=x.dtype), x, {sorter})", **search)
    # In float32 the finite differences for its derivative are lost to rounding.
    yield Case("astype", "xp.astype(x, xp.float32)", kinds="real", smooth=False)
    yield Case("astype", "xp.astype(x, xp.complex128)", kinds="all", elementwise=True)
    yield Case("astype", "xp.astype(x, xp.bool)", kinds="all", elementwise=True)
    yield Case("astype", "xp.astype(x, xp.int64)", kinds="real", elementwise=True)


CASES = (*_unary(), *_binary(), *_others())
"""Elementwise functions, their operators, and functions that behave like them."""
