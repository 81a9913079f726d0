"""`Case`: one use of a function, as a line of code that runs in this namespace and in NumPy."""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

BOOL = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
REAL_FLOATING = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGER = SIGNED + UNSIGNED
FLOATING = REAL_FLOATING + COMPLEX

DTYPES = {
    "all": BOOL + INTEGER + FLOATING,
    "numeric": INTEGER + FLOATING,
    "real": BOOL + INTEGER + REAL_FLOATING,
    "real numeric": INTEGER + REAL_FLOATING,
    "integer": INTEGER,
    "integer or bool": BOOL + INTEGER,
    "floating": FLOATING,
    "real floating": REAL_FLOATING,
    "complex": COMPLEX,
    "bool": BOOL,
}
"""The dtypes of each kind, by the standard's names."""


@dataclass(frozen=True)
class Case:
    """One use of a function, with rules for comparing its result.

    Attributes
    ----------
    name : str
        The function, such as ``"linalg.solve"`` or ``"__getitem__"``.
    code : str
        An expression of `xp` and the operands, or statements that write to the first operand.
    operands : tuple of str
        The names of the array operands in `code`.
    cores : tuple of str
        The core shapes of the operands, a letter for each dimension. Equal letters are equal sizes; a digit is a size.
    kinds : str
        The accepted dtypes, a key of `DTYPES`.
    batches : str
        The combination of batch shapes, a key of `BATCHES`: for example ``"broadcast"``, ``"equal"``, ``"first"``
        (only the first operand has a batch), ``"none"``.
    requires : tuple of str
        The argument `requires` of `sample` for each operand.
    domain : tuple of float
        The interval from which parameters are drawn.
    domains : tuple
        The interval of each operand, if they differ.
    oracle : callable, optional
        A function that returns the result for NumPy arrays, if `code` does not run in NumPy.
    invariants : str, optional
        For a result `r` that is not unique: an expression of `xp`, `r` and the operands that is unique and is compared.
    given : callable, optional
        A function that returns whether the case applies to dense operands.
    elementwise : bool
        Whether errors are relative to each element; otherwise to the largest element of the operands and the result.
    cancels : bool
        Whether errors of an elementwise function are relative to its operands, because of cancellation.
    condition : bool
        Whether errors grow with the condition number of the first operand.
    smooth : bool
        Whether the function is differentiable at random arguments (if its result is inexact).
    degenerate : tuple of str
        Structures for which the function is not differentiable, since eigenvalues coincide.
    eager : bool
        Whether the function is data-dependent, so that it cannot be compiled.
    raises : bool
        Whether NumPy must raise an error; otherwise it may.

    Examples
    --------
    >>> import numpy as np
    >>> import structarrays as sa
    >>> from structarrays.testing import Case
    >>> case = Case("trace", "xp.linalg.trace(x)", cores=("nn",))
    >>> float(case.call(sa, sa.eye(3))), float(case.call(np, np.eye(3)))
    (3.0, 3.0)
    """

    name: str
    code: str
    operands: tuple[str, ...] = ("x",)
    cores: tuple[str, ...] = ("mn",)
    kinds: str = "numeric"
    batches: str = "broadcast"
    requires: tuple[str, ...] = ()
    domain: tuple[float, float] = (-2.0, 2.0)
    domains: tuple[tuple[float, float], ...] = ()
    oracle: Callable[..., Any] | None = None
    invariants: str | None = None
    given: Callable[..., bool] | None = None
    elementwise: bool = False
    cancels: bool = False
    condition: bool = False
    smooth: bool = True
    degenerate: tuple[str, ...] = ()
    eager: bool = False
    raises: bool = False

    def __str__(self) -> str:
        return self.code

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The names of the accepted dtypes."""
        return DTYPES[self.kinds]

    @property
    def indexes_with_arrays(self) -> bool:
        """Whether the code indexes with arrays, whose values a compiled call cannot check."""
        return "xp.asarray([" in self.code

    def call(self, xp: Any, *arrays: Any) -> Any:
        """Return the result in a namespace."""
        return compiled(self.code, self.operands)(xp, *arrays)

    def expected(self, *dense: Any) -> Any:
        """Return the result for NumPy arrays."""
        return self.oracle(*dense) if self.oracle is not None else self.call(np, *dense)

    def compared(self, xp: Any, result: Any, *arrays: Any) -> Any:
        """Return the unique part of a result, which is compared."""
        if self.invariants is None:
            return result
        return compiled(self.invariants, ("r", *self.operands))(xp, result, *arrays)


@functools.cache
def compiled(code: str, operands: tuple[str, ...]) -> Callable[..., Any]:
    """Compile an expression, or statements that change the first operand, to a function of `xp` and the operands.

    Examples
    --------
    >>> import numpy as np
    >>> from structarrays.testing import compiled
    >>> compiled("x[0] = 7", ("x",))(np, np.zeros(2))
    array([7., 0.])
    """
    names = ", ".join(("xp", *operands))
    body = ast.parse(code).body
    if len(body) == 1 and isinstance(body[0], ast.Expr):
        expression: Callable[..., Any] = eval(f"lambda {names}: ({code})")
        return expression
    first = operands[0]
    scope: dict[str, Any] = {}
    lines = [f"def write({names}):", f"{first} = xp.asarray({first}, copy=True)", *code.split("; "), f"return {first}"]
    exec("\n    ".join(lines), scope)
    write: Callable[..., Any] = scope["write"]
    return write
