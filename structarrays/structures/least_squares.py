"""`lstsq` of matrices whose pseudo-inverse has structure."""

from ..core.array import Array
from ..functions.linalg import lstsq, pinv, svdvals
from ..functions.linalg_least_squares import solution
from .banded_products import has_structural_zeros
from .block_diagonal import BlockDiagonal
from .circulant import Circulant
from .diagonal import Diagonal
from .kronecker import Kronecker
from .low_rank import LowRank
from .low_rank_spectra import has_low_rank, is_narrow, of_low_rank
from .product import Product
from .sum import Sum


def _zero_outside(a, *args, **static) -> bool:
    return a.background is None


def _is_narrow(a, *args, **static) -> bool:
    return 0 < a.rank < min(a.shape[-2:])


@lstsq.kernel(Diagonal, Array, when=has_structural_zeros)
@lstsq.kernel(BlockDiagonal, Array, when=_zero_outside)
@lstsq.kernel(Circulant, Array)
@lstsq.kernel(Kronecker, Array)
@lstsq.kernel(LowRank, Array, when=_is_narrow)
def _(a, b, *, cond):
    return solution(a, b, cond, pinv.dispatch(a, rtol=cond), svdvals.dispatch(a)._dense())


@lstsq.kernel(Product, Array, when=is_narrow)
@lstsq.kernel(Sum, Array, when=has_low_rank)
def _(a, b, *, cond):
    return lstsq.dispatch(of_low_rank(a), b, cond=cond)
