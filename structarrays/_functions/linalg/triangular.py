"""Triangular linear systems, as in SciPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..._core.array.arguments import ArrayLike
from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import densify
from ..._core.dispatch.decorator import function
from ..._core.dispatch.registry import Registry
from .. import matrix_checks as check
from ..linear_algebra import matrix_transpose
from ..rounding_and_parts import conj
from .systems import solve

if TYPE_CHECKING:
    import jax

    from ..._core.dispatch.registry import Kernel
    from ..._structures.triangular.array import Triangular

triangle_of: Registry[Array] = Registry("triangle_of")
"""``triangle_of.kernel(A)``: registers a function of ``(x, *, lower, unit_diagonal)`` that returns one triangle of matrices.

The result has a structure that `linalg.solve` solves by substitution. Structures without a kernel densify.
"""

_TRANSPOSITIONS: dict[int | str, int] = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


def transposition(name: str, trans: int | str) -> int:
    """Convert the argument `trans` to 0, 1 or 2.

    Raises
    ------
    ValueError
        If `trans` is not 0, 1, 2, ``"N"``, ``"T"`` or ``"C"``.
    """
    known = _TRANSPOSITIONS.get(trans)
    if known is None:
        raise ValueError(f'{name}: trans must be 0, 1, 2, "N", "T" or "C", got {trans!r}')
    return known


@function("a", "b", prefix="linalg.", checked="a is singular: there is a zero on its diagonal")
def solve_triangular(
    a: ArrayLike, b: ArrayLike, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False
) -> Array:
    """Solve the linear system ``a @ x = b`` for each triangular matrix of a stack.

    Parameters
    ----------
    a : array, (..., M, M)
        Square matrices of a floating-point data type. Integers are converted to the default one. The function reads one
        triangle only.
    b : array, (M,) or (..., M, K)
        Right-hand sides. A vector is used for every matrix of `a`; otherwise the batch shapes must broadcast.
    trans : {0, 1, 2, "N", "T", "C"}, default 0
        Type of the system: with the triangle (0, "N"), its transpose (1, "T"), or its conjugate transpose (2, "C").
    lower : bool, default False
        Whether to use the lower triangle of `a` instead of the upper triangle.
    unit_diagonal : bool, default False
        If True, the diagonal is assumed to be one, and is not read.

    Returns
    -------
    array, (..., M) or (..., M, K)
        The solutions.

    Raises
    ------
    ValueError
        If `a` is not square, the dimensions M differ, the batch shapes do not broadcast, or `trans` is invalid.
    TypeError
        If an argument has a boolean data type.
    numpy.linalg.LinAlgError
        If the diagonal contains a zero, in an eager call. Under `jax.jit`, or within ``errstate(linalg="nan")``,
        the solution is NaN instead.

    See Also
    --------
    scipy.linalg.solve_triangular

    Notes
    -----
    For a `Triangular` array, use `linalg.solve`, which needs no further arguments.

    ==============================================  ==============================
    structure of `a`                                cost for each right-hand side
    ==============================================  ==============================
    `Diagonal`, `Identity`                          ``O(M)``
    `Banded`, w diagonals in the triangle           ``O(M w)``
    `BlockDiagonal` of square blocks b × b          ``O(M b)``
    `BlockBanded`, w block diagonals on a side      ``O(M w b)``
    `Kronecker` of triangular factors               ``O(M sum(n_i))``
    `Dense`, `Triangular`, and any other            ``M**2``
    ==============================================  ==============================

    Examples
    --------
    >>> import structarrays as sa
    >>> a = sa.asarray([[2.0, 1.0], [3.0, 4.0]])
    >>> sa.linalg.solve_triangular(a, sa.asarray([3.0, 4.0]))
    Dense([1., 1.], dtype=float64)
    >>> sa.linalg.solve_triangular(a, sa.asarray([2.0, 7.0]), lower=True)
    Dense([1., 1.], dtype=float64)
    """
    a, b = cast("Array", a), cast("Array", b)
    a, b = check.system("linalg.solve_triangular", a, b, "a")
    solved = solve_triangular.dispatch(
        a,
        b,
        trans=transposition("linalg.solve_triangular", trans),
        lower=bool(lower),
        unit_diagonal=bool(unit_diagonal),
    )
    return cast("Array", solved)  # and the success flag


@solve_triangular.kernel(Array, Array)
def _solve_triangular_array(
    a: Array, b: Array, *, trans: int, lower: bool, unit_diagonal: bool
) -> tuple[Array, jax.Array]:
    kernel = cast("Kernel[Array]", triangle_of.choose((a,), {"lower": lower, "unit_diagonal": unit_diagonal}))
    triangle = kernel.run(a, lower=lower, unit_diagonal=unit_diagonal)
    result: tuple[Array, jax.Array] = solve.dispatch(transposed(triangle, trans), b)
    return result


def transposed(x: Array, trans: int) -> Array:
    """Return the array (0), its transpose (1), or its conjugate transpose (2)."""
    if trans == 0:
        return x
    return matrix_transpose(conj(x) if trans == 2 and x.dtype.kind == "c" else x)


@triangle_of.kernel(Dense)
@triangle_of.kernel(Array)
def _triangle_of_dense(x: Array, *, lower: bool, unit_diagonal: bool) -> Triangular:
    from ..._structures.triangular.array import Triangular

    return Triangular.make((densify(x, "linalg.solve_triangular").data, None), (lower, unit_diagonal))
