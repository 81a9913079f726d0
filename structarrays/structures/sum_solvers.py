"""Systems, inverses and determinants of sums with a term of low rank, by that of the other terms.

For a base A whose systems are solved by its structure, and ``C = I + V^T A^{-1} U``,

    (A + U V^T)^{-1} = A^{-1} - A^{-1} U C^{-1} V^T A^{-1}          det(A + U V^T) = det(A) det(C)

(Woodbury 1950; the matrix determinant lemma. Golub and Van Loan, *Matrix Computations*, 4th edition, 2.1.4). An array that stores
entries beside a background is such a sum, too: with a constant matrix, of rank one.
"""

import jax.numpy as jnp

from ..core.array import Array
from ..core.dense import Dense
from ..core.dispatch import to_dense
from ..functions.linalg import det, inv, matmul, matrix_transpose, slogdet, solve
from ..kernels import linalg_dense
from .factored_solvers import (
    SMALL,
    backward_error,
    can_solve,
    checked,
    generically_regular,
    is_inverse,
    is_regular,
    signs,
    solved,
    without_derivatives,
)
from .fill import Fill
from .low_rank import constant_of_rank_one, low_rank
from .low_rank_spectra import of_low_rank, rank_bound
from .sum import Sum, canonical, total


@generically_regular.kernel(Sum)
def _(x):
    return any(map(is_regular, x.terms))


def _has_background(x) -> bool:
    return x.stores_entries and x.background is not None and x.core_ndim == 2


def _terms(x):
    """The terms of a sum without a background, and how much rank there is beside them; for `when`, so nothing is computed."""
    base, rank = [], 0
    for term in x.terms if type(x) is Sum else (x,):
        own = rank_bound(term)
        rank += (own or 0) + _has_background(term)
        if own is None:
            base.append(term._rebuild(term.entries, None) if _has_background(term) else term)
    return base, rank


def _is_updated(x, *args, **static) -> bool:
    """Whether an array is a matrix that can be solved for, and some ranks beside it."""
    base, rank = _terms(x)
    n = x.shape[-1]
    if not base or not rank or x.full_size or 2 * rank > n:
        return False
    return can_solve(base[0] if len(base) == 1 else Sum._make(tuple(base)))


def _split(x):
    """The base, and what is of low rank."""
    base, low = [], []
    for term in x.terms if type(x) is Sum else (x,):
        if rank_bound(term) is not None:
            low.append(of_low_rank(term))
        elif _has_background(term):
            rest = term.background
            above = (e - rest.reshape(rest.shape + (1,) * (e.ndim - rest.ndim)) for e in term.entries)
            base.append(term._rebuild(tuple(above), None))
            low.append(constant_of_rank_one(Fill._make((rest,), term.shape[-2:])))
        else:
            base.append(term)
    return total(*base), canonical(low)


def _capacitance(base, u, v):
    """``A^{-1} U`` and ``C``, as data, and whether the base is regular."""
    inner, ok = solve.dispatch(base, u)
    c = matmul.dispatch(matrix_transpose.dispatch(v), inner)._dense()
    return to_dense(inner).data, c + jnp.eye(c.shape[-1], dtype=c.dtype), ok


# ---- systems --------------------------------------------------------------------------------------------------------


def _woodbury(x1, b):
    base, low = without_derivatives(_split(x1))
    u, v = low.parts
    inner, c, regular = _capacitance(base, to_dense(u), v)
    flipped = matrix_transpose.dispatch(base)

    def times(a, data):
        return matmul.dispatch(a, Dense._make((data,)))._dense()

    def by(a, data):
        solution, ok = solve.dispatch(a, Dense._make((data,)))
        return solution._dense(), ok

    def approximate(b):
        first, ok1 = by(base, b)
        small, ok2 = linalg_dense.solve(c, times(matrix_transpose.dispatch(v), first))
        return first - inner @ small, ok1 & ok2 & regular

    def transposed(b):
        first, ok1 = by(flipped, b)
        small, ok2 = linalg_dense.solve(c.mT, times(matrix_transpose.dispatch(u), first))
        second, _ = by(flipped, times(v, small))
        return first - second, ok1 & ok2 & regular

    return checked(x1, b, approximate, transposed)


def _by_dense_form_if_small(function):
    """Register a kernel for sums, and for arrays with a background; small ones go to the kernel for `Dense`."""

    def register(run):
        def kernel(x, *others):
            return function.dispatch(to_dense(x), *others) if x.shape[-1] <= SMALL else run(x, *others)

        others = (Array,) if function is solve else ()
        function.kernel(Sum, *others, when=_is_updated)(kernel)
        function.kernel(Array, *others, when=lambda x, *rest: _has_background(x) and _is_updated(x))(kernel)
        return run

    return register


@_by_dense_form_if_small(solve)
def _(x1, x2):
    return solved(x1, x2, _woodbury)


@_by_dense_form_if_small(inv)
def _(x):
    base, low = _split(x)
    u, v = (to_dense(p) for p in low.parts)
    inner, c, regular = _capacitance(base, u, v)
    left, fine = linalg_dense.solve(c.mT, inner.mT)
    right, _ = solve.dispatch(matrix_transpose.dispatch(base), v)
    inverse, _ = inv.dispatch(base)
    result = total(inverse, low_rank(Dense._make((-left.mT,)), right))
    return result, regular & fine & is_inverse(x, result)


# ---- determinants ---------------------------------------------------------------------------------------------------


def _is_accurate(x, base, low, inner, c):
    """Whether the base is not so near to a singular matrix that digits are lost, tried on one system: for each matrix."""
    x, base, low, inner, c = without_derivatives((x, base, low, inner, c))
    b = signs(x)
    first = solve.dispatch(base, Dense._make((b,)))[0]
    small, _ = linalg_dense.solve(c, matmul.dispatch(matrix_transpose.dispatch(low.v), first)._dense())
    return backward_error(x, first._dense() - inner @ small, b)[..., 0, 0] <= jnp.finfo(x.dtype).eps ** (2 / 3)


@_by_dense_form_if_small(det)
def _(x):
    base, low = _split(x)
    inner, c, _ = _capacitance(base, to_dense(low.u), low.v)
    factor = jnp.where(_is_accurate(x, base, low, inner, c), linalg_dense.det(c), jnp.nan)
    return Dense._make((det.dispatch(base)._dense() * factor,))


@_by_dense_form_if_small(slogdet)
def _(x):
    base, low = _split(x)
    inner, c, _ = _capacitance(base, to_dense(low.u), low.v)
    sign, logabsdet = (p._dense() for p in slogdet.dispatch(base))
    more, further = (jnp.where(_is_accurate(x, base, low, inner, c), part, jnp.nan) for part in linalg_dense.slogdet(c))
    return Dense._make((sign * more,)), Dense._make((logabsdet + further,))
