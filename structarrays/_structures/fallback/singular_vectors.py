"""Singular vectors of a low-rank matrix, and of a sum with a low-rank matrix, such as centred data.

Both are represented by factors. For a low-rank matrix, a few reflectors applied to unit vectors give all columns of U.
For a matrix ``A = Q R`` plus one of rank r, r columns are appended to Q. Neither method has derivatives: the columns
for singular values of zero are arbitrary orthonormal ones. So both are used in eager calls, and compiled code uses the
dense form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import jax.numpy as jnp

from ..._core.array.dense import Dense
from ..._core.array.sharing import jit
from ..._core.families.conditions import has_structural_zeros
from ..._core.families.factored import stored
from ..._functions.linalg import matmul, matrix_transpose, qr, svd
from ..._functions.linalg.spectra import SVDResult
from ..._functions.rounding_and_parts import conj
from ..._numerics import dense_spectra as spectra
from ..._numerics import low_rank_factors
from ..banded.array import Banded
from ..banded.diagonal import Diagonal
from ..composite.product import Product, product
from ..composite.sum import Sum, canonical, total
from ..kronecker.array import Kronecker
from ..low_rank.array import LowRank
from ..low_rank.low_rank_spectra import of_low_rank, rank_bound
from ..orthonormal.householder import Householder

if TYPE_CHECKING:
    import jax

    from ..._core.array.base import Array


def _is_floating(x: Array, **static: Any) -> bool:
    return x.dtype.kind in "fc"


# ---- low-rank matrices -----------------------------------------------------------------------------------------------


@svd.eager_kernel(LowRank, when=lambda x, **static: _is_floating(x) and 0 < x.rank and 2 * x.rank <= min(x.shape[-2:]))
def _svd_low_rank_eagerly(x: LowRank, *, full_matrices: bool = True) -> SVDResult:
    """``U = H diag(d)`` with r reflectors H and signs d."""
    m, n = x.shape[-2:]
    left: tuple[jax.Array, jax.Array, jax.Array]
    right: tuple[jax.Array, jax.Array, jax.Array]
    left, values, right = _of_factors(x)
    k = min(m, n)
    u = _completed(*left, (m, m if full_matrices else k))
    v = _completed(*right, (n, n if full_matrices else k))
    missing = [(0, 0)] * (values.ndim - 1) + [(0, k - values.shape[-1])]
    return SVDResult(u, Dense.make((jnp.pad(values, missing),)), matrix_transpose(v))


@jit
def _of_factors(
    x: LowRank,
) -> tuple[tuple[jax.Array, jax.Array, jax.Array], jax.Array, tuple[jax.Array, jax.Array, jax.Array]]:
    """The reflectors of the left singular vectors, the values, and the reflectors of the rows of ``Vh``, as columns."""
    u, values, v = low_rank_factors.svd(*(p.dense_data() for p in x.parts))
    return low_rank_factors.reflectors(u), values, low_rank_factors.reflectors(v.conj())


def _completed(v: jax.Array, tau: jax.Array, signs: jax.Array, shape: tuple[int, int]) -> Array:
    """Orthonormal columns that the reflectors and signs generate, completed to the full shape."""
    rest = [(0, 0)] * (signs.ndim - 1) + [(0, shape[1] - signs.shape[-1])]
    signs = jnp.pad(signs, rest, constant_values=1)
    reflectors = Householder.make((Dense.make((v,)), Dense.make((tau[..., None],))), (*shape, False))
    return product(reflectors, Diagonal.make((signs, None), (shape[1], shape[1])))


# ---- sums with a low-rank matrix -------------------------------------------------------------------------------------

WIDE = 32
"""Bands with more diagonals use the dense form: the program size of the QR decomposition grows with the square of the
bandwidth.
"""


def _has_qr(x: Array) -> bool:
    """Return whether the structure of a tall matrix (static) has a QR decomposition with a structured, reduced Q."""
    if type(x) is Kronecker:
        return all(f.shape[-2] >= f.shape[-1] for f in x.factors)
    if type(x) is Product:
        return len(x.factors) == 2 and _has_qr(x.factors[0]) and isinstance(x.factors[1], Diagonal)
    return type(x) is Banded and has_structural_zeros(x) and sum(x.bandwidths()) < WIDE


def _parted(x: Sum) -> tuple[Array, list[Array], int] | None:
    """Return the only term of a sum that is not of low rank, and the other terms; None if there is no such term."""
    ranks = [rank_bound(t) for t in x.terms]
    if ranks.count(None) != 1:
        return None
    main = x.terms[ranks.index(None)]
    return main, [t for t in x.terms if t is not main], sum(r for r in ranks if r is not None)


def _is_low_rank_update(x: Sum, *, full_matrices: bool = True) -> bool:
    parted = _parted(x)
    if full_matrices or not _is_floating(x) or parted is None:
        return False
    main, _, rank = parted
    m, n = main.shape[-2:]
    return 0 < n and n + 2 * rank <= m and _has_qr(main) and stored(x) + n * n + rank * m < m * n


@svd.eager_kernel(
    Sum, when=lambda x, **static: any(_is_low_rank_update(y, **static) for y in (x, cast("Sum", matrix_transpose(x))))
)
def _svd_sum_eagerly(x: Sum, *, full_matrices: bool = True) -> SVDResult:
    """Decompose ``Q R + u vᵀ`` by the dense decomposition of a matrix about as small as R."""
    if x.shape[-2] < x.shape[-1]:
        u, s, vh = svd(matrix_transpose(x), full_matrices=False)
        return SVDResult(matrix_transpose(vh), s, matrix_transpose(u))
    main, others, _ = cast("tuple[Array, list[Array], int]", _parted(x))
    q, r = _factored(main)
    top, new, bottom, values, vh = _updated(q, r, of_low_rank(canonical(others)))
    columns = total(product(q, Dense.make((top,))), LowRank.make(tuple(Dense.make((p,)) for p in (new, bottom.mT))))
    return SVDResult(columns, Dense.make((values,)), Dense.make((vh,)))


def _factored(x: Array) -> tuple[Array, jax.Array]:
    """``(Q, R)`` with a structured Q and a dense R."""
    r: Any
    if type(x) is Product:
        q, r = _factored(x.factors[0])
        return q, r * cast("Diagonal", x.factors[1]).diag[..., None, :]
    q, r = qr(x)
    return q, r.to_jax()


@jit
def _updated(q: Array, r: jax.Array, x: LowRank) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
    """The singular value decomposition of ``q r + x`` as ``(q top + new bottom, values, vh)``."""
    adjoint = matrix_transpose(conj(q))

    def within(data: jax.Array) -> jax.Array:
        return matmul(adjoint, Dense.make((data,))).dense_data()

    u, v = (p.dense_data() for p in x.parts)
    new = low_rank_factors.orthonormal_extension(lambda data: matmul(q, Dense.make((within(data),))).dense_data(), u)
    rows = jnp.concatenate([r + within(u) @ v.mT, (new.mT.conj() @ u) @ v.mT], axis=-2)
    left, values, vh = spectra.svd(rows, full_matrices=False)
    n = r.shape[-1]
    return left[..., :n, :], new, left[..., n:, :], values, vh
