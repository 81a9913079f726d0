"""`Inverse`: the inverse of a matrix, stored as the matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import jax.numpy as jnp

from ..._core import dtypes
from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import allow_dense, cast, densify
from ..._core.array.validation import check_parts, check_static, require, validated
from ..._core.dispatch.contexts import caller
from ..._core.dispatch.recording import remark
from ..._core.families import pattern
from ..._core.families.conditions import has_structural_zeros
from ..._core.families.factored import as_matrix, part, stored
from ..._core.families.generator_array import GeneratorArray
from ..._functions.linalg import det, inv, matmul, matrix_transpose, selected_inverse, slogdet, solve
from ..._functions.linalg.systems import logarithms
from ..._numerics.symbolic import smaller
from ..._numerics.undefined import nan_unless
from ..banded.array import Banded
from .det_by_slogdet import det_by_slogdet
from .estimates import probes
from .part_solvers import can_solve, without_derivatives

if TYPE_CHECKING:
    from collections.abc import Callable

    import jax
    import numpy as np

    from ..._core.array.arguments import ParameterLike
    from ..._core.typing import Leaves, Meta, Result, Shape, Spec


class Inverse(GeneratorArray):
    r"""The inverse of a matrix, never formed explicitly: a product with it solves a linear system.

    Parameters
    ----------
    a : array_like
        The matrix, ``(..., n, n)``, of any structure. Integers become the default floating-point dtype.

    Returns
    -------
    Array
        An `Inverse`. If `a` is itself an `Inverse`, its matrix `a.a`.

    Raises
    ------
    ValueError
        If `a` has fewer than two dimensions or is not square.
    TypeError
        If `a` is boolean.

    Notes
    -----
    The value is :math:`A^{-1}`. The array stores A with its assumptions (see `assume`). Each product factorizes A again, except
    for a `Sparse` A, whose factors are cached. With many right-hand sides, multiply by all of them at once, or keep the result
    of `linalg.cho_factor` or `linalg.lu_factor` of A. The costs, in terms of linear systems with A:

    ==================================  ============================================================
    stores                              the entries stored by A
    times a matrix, from either side    `linalg.solve` with the same number of right-hand sides
    `linalg.solve`                      a product with A
    transpose, conjugate, `inv`         the same function of A: nothing is computed
    `det`, `slogdet`                    from the values for A
    row, column, a few elements         one solution for each row or column, whichever are fewer
    elementwise functions               the dense form
    ==================================  ============================================================

    The constructor checks nothing: if A is singular, products with the inverse are NaN. `linalg.inv` does check; it returns an
    `Inverse` for matrices that store far less than their inverse would.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.tridiagonal(-sa.ones(4), 3.0 * sa.ones(5), -sa.ones(4))
    >>> X = sa.Inverse(A)
    >>> X @ sa.asarray([2.0, 1.0, 1.0, 1.0, 2.0])
    Dense([1., 1., 1., 1., 1.], dtype=float64)
    >>> type(sa.linalg.inv(X)).__name__
    'Banded'
    """

    __slots__ = ()
    parameter_names = ("a",)

    def __new__(cls, a: ParameterLike) -> Self:
        a = part(a, "a")
        if a.shape[-1] != a.shape[-2]:
            raise ValueError(f"a must be square in its last two dimensions, got shape {a.shape}")
        if a.dtype.kind in "iu":
            a = cast(a, dtypes.default_dtype("f"))
        return inverse(as_matrix(a))  # type: ignore[return-value]  # the matrix, where `a` is an inverse

    @property
    def a(self) -> Array:
        """The matrix whose inverse this is."""
        a: Array = self._value[0][0]
        return a

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        shape: Shape = leaves[0].shape
        return shape

    @property
    def product_cost(self) -> int:
        return 4 * self.a.product_cost

    def pattern(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return pattern.of_inverse(self.a, rows, columns)

    def specs(self, spec: Spec, divides: Callable[[int, Any], bool]) -> tuple[Spec, ...]:
        return (spec,)

    def times(self, columns: jax.Array) -> jax.Array:
        solution: jax.Array = solve.dispatch(self.a, Dense.make((columns,)))[0].dense_data()
        return solution

    def transposed(self) -> Inverse:
        return Inverse.make((matrix_transpose(self.a),))


def inverse(a: Array) -> Array:
    """The `Inverse` of a stack of square matrices of an inexact dtype."""
    return a.a if type(a) is Inverse else Inverse.make((a,))


# ---- products are linear systems, and linear systems are products ----------------------------------------------------


@solve.kernel(Inverse, Array)
def _solve_inverse(x1: Inverse, x2: Array) -> Result:
    remark("a product with the matrix that x1 is the inverse of")
    return matmul.dispatch(x1.a, x2), jnp.array(True)


@inv.kernel(Inverse)
def _inv_inverse(x: Inverse) -> tuple[Array, jax.Array]:
    return x.a, jnp.array(True)


det.kernel(Inverse)(det_by_slogdet)  # the determinant of `a` may underflow


@slogdet.kernel(Inverse)
def _slogdet_inverse(x: Inverse) -> tuple[Dense, ...]:
    sign, logabsdet = logarithms(x.a)
    singular = sign == 0  # no inverse exists
    return tuple(Dense.make((nan_unless(~singular, part),)) for part in (sign.conj(), -logabsdet))


# ---- the result of linalg.inv ----------------------------------------------------------------------------------------

LARGE = 256
"""From this size on, `linalg.inv` returns an `Inverse` instead of a full matrix, if the matrix stores less than a
sixteenth of it.
"""


def stays_inverse(x: Array) -> bool:
    """Return whether `linalg.inv` returns an `Inverse` instead of a full matrix."""
    n = x.shape[-1]
    return not smaller(n, LARGE) and not smaller(n * n, 16 * stored(x)) and can_solve(x)


def checked_inverse(x: Array) -> tuple[Inverse, jax.Array]:
    """Return the `Inverse`, and whether it exists, judged by the solution for test vectors."""
    x_ = without_derivatives(x)
    # An eager call of `inv` returns a full matrix if this solver fails. So it may not leave the system to the dense form.
    with caller(caller.value._replace(is_eager=False)):
        _, ok = solve.dispatch(x_, Dense.make((probes(x.shape[-1], x.dtype),)))
    return Inverse.make((x,)), ok


def inverse_by(solved: Callable[[Any, jax.Array], Result], x: Array) -> Result:
    """Invert by a solver, ``solved(x, data)``: an `Inverse`, or a full matrix, if the policy allows one."""
    if stays_inverse(x):
        return checked_inverse(x)
    allow_dense(x, "linalg.inv", x.size)
    return solved(x, jnp.eye(x.shape[-1], dtype=x.dtype))


inv.kernel(Banded, when=lambda x: has_structural_zeros(x) and stays_inverse(x), before="inv_banded")(checked_inverse)


@selected_inverse.kernel(Array)
def _selected_inverse_array(x: Array) -> tuple[Array, jax.Array]:
    result, ok = inv.dispatch(x)
    return (densify(result, "linalg.selected_inverse") if type(result) is Inverse else result), ok


@validated.kernel(Inverse)
def check_inverse(x: Inverse) -> None:
    """Raise unless the part is a square matrix of floating-point numbers."""
    check_static(x.meta is None, x)
    ((m, n),) = check_parts(x, 1, 1)
    require(m == n and x.dtype.kind not in "iu", "the part must be a square matrix with a floating-point dtype")
