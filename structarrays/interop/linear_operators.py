"""Products of NumPy's vectors by our matrices, and our matrices beside SciPy's linear operators.

`scipy.sparse.linalg` takes for a linear operator whatever has ``shape``, ``dtype``, ``matvec``, ``rmatvec`` and ``rmatmat``. An iterative
method calls these hundreds of times, so that each is one compiled call and one copy.
"""

import sys

import jax
import numpy as np

from ..core.array import Array
from ..core.dense import Dense
from ..core.dispatch import function
from ..core.foreign import SPARSE, is_pydata_sparse
from ..core.registry import FUNCTIONS
from ..functions.linear_algebra import matmul, matrix_transpose
from ..functions.rounding_and_parts import conj
from .numpy_host import is_traced


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


def product(x: Array, other, name: str):
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


def as_called(result: Array, frame):
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


def check_matrix(x):
    """Raise for what is no operator of another library: TypeError for no array of ours, ValueError for no single matrix."""
    if not isinstance(x, Array):
        raise TypeError(f"operator: x must be an array of structarrays, got {type(x).__name__}")
    if x.ndim != 2:
        raise ValueError(f"operator: x must be a matrix, (M, N), got shape {x.shape}")


# ---- operators beside SciPy's -----------------------------------------------------------------------------------------


def combine(name: str, x1, x2):
    """The result of ``+``, ``-``, ``@`` or ``*`` of an array of ours and one that the namespace does not know.

    Beside a `scipy.sparse.linalg.LinearOperator` a matrix is one, too (``*`` is the product, as everywhere there). All others get their
    turn, and so does the operator where a product is one by values: those of vectors and dense matrices.
    """
    x, other = (x1, x2) if isinstance(x1, Array) else (x2, x1)
    if is_pydata_sparse(other):
        raise TypeError(f"{name}: {SPARSE}")  # its own operators would compile code for an array of ours, and fail
    scipy = sys.modules.get(_SCIPY)
    if scipy is None or name not in _COMBINED or not isinstance(other, scipy.LinearOperator) or len(x.shape) != 2:
        return NotImplemented
    if name in ("matmul", "multiply") and type(x) is Dense:
        return NotImplemented
    from .scipy import operator

    x1, x2 = (operator(v) if v is x else v for v in (x1, x2))
    return _COMBINED[name](x1, x2)


_COMBINED = {
    "add": lambda x1, x2: x1 + x2,
    "subtract": lambda x1, x2: x1 - x2,
    "matmul": lambda x1, x2: x1 @ x2,
    "multiply": lambda x1, x2: x1 @ x2,
}

FUNCTIONS.update({"interop.product": product, "interop.combine": combine, "interop.as_called": as_called})
