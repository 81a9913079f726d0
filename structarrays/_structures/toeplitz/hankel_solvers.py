"""Linear systems, inverses and determinants of square Hankel matrices.

With its rows in reverse order a Hankel matrix is a Toeplitz matrix: ``J H = T`` with the exchange matrix J, which is
symmetric and its own inverse. So ``H x = b`` is ``T x = J b``, and ``det(H) = det(J) det(T)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import to_dense
from ..._core.dispatch.recording import remark
from ..._core.families.other_forms import by_form
from ..._functions.linalg import det, inv, slogdet, solve
from ..._functions.linalg.systems import logarithms
from ..composite.det_by_slogdet import det_by_slogdet
from ..composite.inverse import checked_inverse, stays_inverse
from ..composite.part_solvers import solved
from .array import Toeplitz, toeplitz
from .hankel import Hankel

if TYPE_CHECKING:
    import jax

    from ..._core.typing import Result


def _upside_down(x: Hankel) -> Toeplitz:
    return toeplitz(x.values, 1 - x.core_shape[0], x.core_shape)


@solve.kernel(Hankel, Array)
def _solve_hankel(x1: Hankel, x2: Array) -> Result:
    remark("the Toeplitz matrix with the rows in reverse order")

    def method(x: Hankel, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        solution, ok = solve.dispatch(_upside_down(x), Dense.make((b[..., ::-1, :],)))
        return solution.dense_data(), ok

    return solved(x1, x2, method)


inv.kernel(Hankel)(checked_inverse)


@slogdet.kernel(Hankel)
def _slogdet_hankel(x: Hankel) -> tuple[Dense, Dense]:
    sign, logabsdet = logarithms(_upside_down(x))
    # J has n // 2 swaps of two rows.
    odd = x.core_shape[0] // 2 % 2
    return Dense.make((-sign if odd else sign,)), Dense.make((logabsdet,))


det.kernel(Hankel)(det_by_slogdet)


# ---- small matrices ---------------------------------------------------------------------------------------------------


def _is_small(x: Hankel, *args: Array) -> bool:
    return not x.solved_by_parts


@by_form(inv, of=Hankel, when=lambda x: not stays_inverse(x))
@by_form(solve, slogdet, det, of=Hankel, when=_is_small)
def hankel_by_dense_form(x: Hankel) -> Dense:
    """Return the dense form, which solves small matrices."""
    remark("the dense form, which is faster at this size")
    return to_dense(x)
