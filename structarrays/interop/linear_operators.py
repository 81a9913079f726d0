"""Products of NumPy's vectors by our matrices, and operators with operands of SciPy and pandas.

`scipy.sparse.linalg` takes for a linear operator whatever has ``shape``, ``dtype``, ``matvec``, ``rmatvec`` and ``rmatmat``. An iterative
method calls these hundreds of times, so that each is one compiled call and one copy.
"""

from __future__ import annotations

import operator
import sys
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.array.foreign import SPARSE, is_pydata_sparse, is_table
from .._core.array.operands import densify
from .._core.dispatch import late
from .._core.dispatch.decorator import function
from .._core.dispatch.registry import FUNCTIONS
from .._functions.linear_algebra import matmul, matrix_transpose
from .._functions.rounding_and_parts import conj
from .numpy_host import is_traced

if TYPE_CHECKING:
    from types import FrameType

    from .._core.typing import Result


@function("x1", "x2")
def adjoint_product(x1: Array, x2: Array, /) -> Array:
    r"""The conjugate transpose of a matrix times a vector or a matrix.

    Parameters
    ----------
    x1 : array, (M, N)
    x2 : array, (M,) or (M, K)

    Returns
    -------
    array, (N,) or (N, K)

    Notes
    -----
    The vector is conjugated and not the matrix, which is larger: :math:`A^* x = \overline{A^T \overline x}`.
    """
    complex_matrix = x1.dtype.kind == "c"
    result = matmul(matrix_transpose(x1), conj(x2) if complex_matrix else x2)
    return conj(result) if complex_matrix else result


def product(x: Array, other: Any, name: str) -> Any:
    """What the four methods of an array give: a NumPy array that can be written to for one of NumPy, else an array of ours.

    Parameters
    ----------
    x : array, (M, N)
    other : array_like
        Of the shape that the method takes.
    name : str
        The method.

    Raises
    ------
    ValueError
        If `x` is no single matrix, or the shape of `other` does not fit.
    TypeError
        If `other` is no array.
    """
    adjoint = name[0] == "r"
    shape = x.shape
    if len(shape) != 2:
        raise ValueError(
            f"{name} is a method of matrices, got an array of shape {shape}; matmul takes stacks, x[i].{name} is that of one matrix"
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
    # An array of JAX in the memory of the host cannot be written to, but some of SciPy's methods do that.
    return np.array(_data(result)) if isinstance(other, np.ndarray) else result


_SCIPY = "scipy.sparse.linalg"


def as_called(result: Array, frame: FrameType) -> Array | np.ndarray:
    """The product of an array of ours and one of NumPy, as the code that asked for it by ``@`` needs it.

    An array of ours to all code but that of `scipy.sparse.linalg`: from version 1.18 on SciPy makes a linear operator of ``A @ x`` where it
    called ``A.matvec(x)`` before, and the vectors of its solvers are NumPy's, which results of the operator have to be as well.

    Parameters
    ----------
    result : Array
        The product.
    frame : frame
        That of the code.
    """
    if not frame.f_globals.get("__name__", "").startswith(_SCIPY) or is_traced(result):
        return result
    return np.array(_data(result))


def _data(x: Array) -> jax.Array:
    return x._value[0][0] if type(x) is Dense else x.to_jax()


def check_matrix(x: object) -> None:
    """Raise for what is no operator of another library: TypeError for no array of ours, ValueError for no single matrix."""
    if not isinstance(x, Array):
        raise TypeError(f"operator: x must be an array of structarrays, got {type(x).__name__}")
    if x.ndim != 2:
        raise ValueError(f"operator: x must be a matrix, (M, N), got shape {x.shape}")


# ---- operators with operands of other libraries -----------------------------------------------------------------------


def combine(name: str, x1: Any, x2: Any) -> Result:
    """Apply an operator to an array of this library and an operand that the namespace does not know.

    An array of `scipy.sparse` is converted, a `scipy.sparse.linalg.LinearOperator` makes the other operand one (``*`` is the product, as
    everywhere there), and a table of pandas gets the array in dense form. Every other operand gets its turn by NotImplemented.

    Raises
    ------
    TypeError
        If the operand is an array of the package ``sparse``, a text, or a sequence that Python would repeat.
    """
    ours, other = (x1, x2) if isinstance(x1, Array) else (x2, x1)
    if is_pydata_sparse(other):
        raise TypeError(f"{name}: {SPARSE}")  # its own operators would compile code for an array of ours, and fail
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
    """The operator of SciPy; NotImplemented where it takes an array by its values: vectors and dense matrices in products."""
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

late.bind(product=product, combine=combine, as_called=as_called)
