"""Products of our matrices with NumPy's vectors, and Python operators with operands of SciPy and pandas.

`scipy.sparse.linalg` accepts any object with ``shape``, ``dtype``, ``matvec``, ``rmatvec`` and ``rmatmat`` as a linear
operator. Iterative methods call these hundreds of times, so each is one compiled call and one copy.
"""

from __future__ import annotations

import operator
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.array.foreign import SPARSE, is_pydata_sparse, is_table
from .._core.array.operands import densify
from .._core.dispatch.decorator import function
from .._core.dispatch.registry import FUNCTIONS
from .._core.dispatch.results import as_jax
from .._functions.linear_algebra import matmul, matrix_transpose
from .._functions.rounding_and_parts import conj
from .numpy_host import is_traced

if TYPE_CHECKING:
    from types import FrameType

    from .._core.typing import Result


@function("x1", "x2")
def adjoint_product(x1: Array, x2: Array, /) -> Array:
    r"""Multiply the conjugate transpose of a matrix by a vector or a matrix.

    Parameters
    ----------
    x1 : array, (M, N)
        Matrix.
    x2 : array, (M,) or (M, K)
        Vector or matrix.

    Returns
    -------
    array, (N,) or (N, K)
        The product ``x1.conj().T @ x2``.

    Notes
    -----
    The function conjugates the vector instead of the larger matrix: :math:`A^* x = \overline{A^T \overline x}`.
    """
    complex_matrix = x1.dtype.kind == "c"
    result = matmul(matrix_transpose(x1), conj(x2) if complex_matrix else x2)
    return conj(result) if complex_matrix else result


def product(x: Array, other: Any, name: str) -> Any:
    """Return the result of `matvec`, `rmatvec`, `matmat` or `rmatmat`.

    Parameters
    ----------
    x : array, (M, N)
        Matrix.
    other : array_like
        Operand, of the shape that the method takes.
    name : str
        Name of the method.

    Returns
    -------
    numpy.ndarray or Array
        A writeable NumPy array if `other` is a NumPy array, an array of this library otherwise.

    Raises
    ------
    ValueError
        If `x` is not a single matrix, or the shape of `other` does not match.
    TypeError
        If `other` is not an array.
    """
    adjoint = name[0] == "r"
    shape = x.shape
    if len(shape) != 2:
        raise ValueError(
            f"{name}: x must be a matrix, got shape {shape}; use matmul for stacks of matrices, or x[i].{name} for one matrix of a stack"
        )
    size = shape[0] if adjoint else shape[1]
    given = getattr(other, "shape", None)
    if given is None:
        raise TypeError(
            f"{name}: the argument must be an array of NumPy, JAX or structarrays, got {type(other).__name__}"
        )
    if name[-3:] == "vec":
        if given != (size,) and given != (size, 1):
            raise ValueError(
                f"{name}: the vector must have shape ({size},) or ({size}, 1) for a matrix of shape {shape}, got {given}"
            )
    elif len(given) != 2 or given[0] != size:
        raise ValueError(f"{name}: the matrix must have shape ({size}, K) for one of shape {shape}, got {given}")
    result = adjoint_product(x, other) if adjoint else matmul(x, other)
    # Some of SciPy's methods write into the result, and the memory of an array of JAX is read-only.
    return np.array(as_jax(result)) if isinstance(other, np.ndarray) else result


_SCIPY = "scipy.sparse.linalg"


def as_called(result: Array, frame: FrameType) -> Array | np.ndarray:
    """Return the product of our array and a NumPy array in the type that the caller of ``@`` needs.

    The solvers of `scipy.sparse.linalg` get a NumPy array: since version 1.18 they compute ``A @ x`` instead of
    ``A.matvec(x)``, and require NumPy vectors. All other code gets an array of this library.

    Parameters
    ----------
    result : Array
        The product.
    frame : frame
        Stack frame of the caller.
    """
    if not frame.f_globals.get("__name__", "").startswith(_SCIPY) or is_traced(result):
        return result
    return np.array(as_jax(result))


def check_matrix(x: object) -> None:
    """Raise TypeError if `x` is not an array of this library, and ValueError if it is not a single matrix."""
    if not isinstance(x, Array):
        raise TypeError(f"operator: x must be an array of structarrays, got {type(x).__name__}")
    if x.ndim != 2:
        raise ValueError(f"operator: x must be a matrix, (M, N), got shape {x.shape}")


# ---- operators with operands of other libraries -----------------------------------------------------------------------


def combine(name: str, x1: Any, x2: Any) -> Result:
    """Apply a Python operator to an array of this library and a foreign operand.

    An array of `scipy.sparse` is converted. With a `scipy.sparse.linalg.LinearOperator` our matrix becomes a linear
    operator, too (``*`` is the product, as SciPy defines it). With a table of pandas our array becomes dense. For any
    other operand the function returns NotImplemented, so that Python tries the operator of the operand.

    Raises
    ------
    TypeError
        If the operand is an array of the package ``sparse``, a string, or a sequence that Python would repeat.
    """
    ours, other = (x1, x2) if isinstance(x1, Array) else (x2, x1)
    if is_pydata_sparse(other):
        raise TypeError(f"{name}: {SPARSE}")  # its operators would compile code for our array, and fail
    if isinstance(other, (str, bytes, bytearray)) and name not in ("equal", "not_equal"):
        raise TypeError(f"{name}: {_place(other, x1)} must be an array or a number, got {type(other).__name__}")
    if isinstance(other, (list, tuple)) and name == "multiply":
        raise TypeError(
            f"{name}: {_place(other, x1)} must be an array or a number, got {type(other).__name__}; use structarrays.asarray"
        )
    scipy_sparse = sys.modules.get("scipy.sparse")
    if scipy_sparse is not None and scipy_sparse.issparse(other):
        from .scipy import from_sparse

        return FUNCTIONS[name](*(from_sparse(x) if x is other else x for x in (x1, x2)))
    if is_table(other):
        dense = np.asarray(densify(ours, name))
        return _OPERATORS[name](*(dense if x is ours else x for x in (x1, x2)))
    return _with_linear_operator(name, x1, x2, ours, other)


def _place(operand: Any, x1: Any) -> str:
    return "x1" if operand is x1 else "x2"


def _with_linear_operator(name: str, x1: Any, x2: Any, ours: Array, other: Any) -> Result:
    """Combine two linear operators of SciPy; NotImplemented for vectors and dense matrices, which SciPy multiplies."""
    linalg = sys.modules.get(_SCIPY)
    if linalg is None or name not in _LINEAR or not isinstance(other, linalg.LinearOperator) or len(ours.shape) != 2:
        return NotImplemented
    if name in ("matmul", "multiply") and type(ours) is Dense:
        return NotImplemented
    from .scipy import operator as linear_operator

    combined = _OPERATORS["matmul" if name == "multiply" else name]
    return combined(*(linear_operator(x) if x is ours else x for x in (x1, x2)))


_LINEAR = ("add", "subtract", "matmul", "multiply")
_OPERATORS = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "pow": operator.pow,
    "matmul": operator.matmul,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
