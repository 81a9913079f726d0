"""Linear systems, inverses and determinants of sums with a low-rank term, from the solver of the other terms.

For a base A with a structured solver, and ``C = I + V^T A^{-1} U``,

    (A + U V^T)^{-1} = A^{-1} - A^{-1} U C^{-1} V^T A^{-1}          det(A + U V^T) = det(A) det(C)

(Woodbury 1950; the matrix determinant lemma. Golub and Van Loan, *Matrix Computations*, 4th edition, 2.1.4). An array with a
background is also such a sum: the stored entries plus a constant matrix of rank one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax import lax

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import to_dense
from ..._core.dispatch.recording import remark
from ..._functions.linalg import det, inv, matrix_transpose, slogdet, solve
from ..._functions.linalg.systems import logarithms
from ..._numerics import dense_linalg as linalg_dense
from ..._numerics import determinants
from ..._numerics.determinants import any_of_all
from ..._numerics.symbolic import smaller
from ..._numerics.undefined import nan_unless
from ..banded.diagonal import Diagonal
from ..low_rank.array import constant_of_rank_one, low_rank, transposed_times
from ..low_rank.low_rank_spectra import of_low_rank, rank_bound
from .base_shifts import can_be_shifted, is_benign, shift, shifted
from .bordered_updates import solvers as bordered_solvers
from .definite_updates import determinant
from .dense_fallback import by_parts_or_dense, for_parts_of, solution_or_dense
from .part_solvers import (
    SMALL,
    by_equation,
    can_solve,
    checked,
    generically_regular,
    is_regular,
    refined,
    solved,
    solvers,
    times,
    without_derivatives,
)
from .sum import Sum, canonical, split_background, total

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..._core.dispatch.function import Function
    from ..._core.dispatch.registry import Run
    from ..._core.typing import Result
    from ..low_rank.array import LowRank
    from .part_solvers import Solver


@generically_regular.kernel(Sum)
def _generically_regular_sum(x: Sum) -> bool:
    return any(map(is_regular, x.terms))


def _has_background(x: Array) -> bool:
    return x.stores_entries and x.background is not None and x.core_ndim == 2


def _terms(x: Array) -> tuple[list[Array], int]:
    """Return the terms of a sum without background, and the total rank of its low-rank terms. Used in `when`: nothing
    is computed.
    """
    base, rank = [], 0
    for term in x.terms if type(x) is Sum else (x,):
        own = rank_bound(term)
        rank += (own or 0) + _has_background(term)
        if own is None:
            base.append(term.rebuild(term.entries, None) if _has_background(term) else term)
    return base, rank


def _is_updated(x: Array, *args: Array, **static: Any) -> bool:
    """Return whether an array is a matrix with a solver plus low-rank terms."""
    base, rank = _terms(x)
    n = x.shape[-1]
    if not base or not rank or x.full_size or 2 * rank > n:
        return False
    return can_solve(base[0] if len(base) == 1 else Sum.make(tuple(base)))


def _split(x: Array) -> tuple[Array, LowRank]:
    """Split a sum into the base and the low-rank part."""
    base, low = [], []
    for term in x.terms if type(x) is Sum else (x,):
        if rank_bound(term) is not None:
            low.append(of_low_rank(term))
        elif _has_background(term):
            above, constant = split_background(term)
            base.append(above)
            low.append(constant_of_rank_one(constant))
        else:
            base.append(term)
    return total(*base), cast("LowRank", canonical(low))


class Base(NamedTuple):
    """A matrix whose linear systems can be solved, and the function of data that solves them."""

    matrix: Array
    solve: Callable[[jax.Array], tuple[jax.Array, jax.Array]]


def _base(x: Array) -> Base:
    return Base(x, solvers(x)[0])


class Capacitance(NamedTuple):
    """``A^{-1} U`` (None if only ``C`` is known), ``C``, and whether the base is regular."""

    inner: jax.Array | None
    c: jax.Array
    regular: jax.Array


def _capacitance(base: Base, u: Array, v: Array) -> Capacitance:
    inner, regular = base.solve(to_dense(u).data)
    return Capacitance(inner, _one_plus(transposed_times(v, inner)), regular)


def _one_plus(x: jax.Array) -> jax.Array:
    return x + jnp.eye(x.shape[-1], dtype=x.dtype)


def _once(base: Base, u: Array, v: Array, capacitance: Capacitance | None, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the solution by the formula, and whether the pivots are regular."""
    if capacitance is None:
        return _together(base, u, v, b)
    inner, c, regular = capacitance
    first, ok1 = base.solve(b)
    small, ok2 = linalg_dense.solve(c, transposed_times(v, first))
    second = inner @ small if inner is not None else base.solve(times(u, small))[0]
    return first - second, ok1 & ok2 & regular


def _together(base: Base, u: Array, v: Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`_once` by one linear system with the base, for U and b: compiled code contains its solver and its factorization
    once.
    """
    left = to_dense(u).data
    data = jnp.concatenate([jnp.broadcast_to(left, (*b.shape[:-2], *left.shape[-2:])), b], axis=-1)
    solutions, regular = base.solve(data)
    inner, first = solutions[..., : left.shape[-1]], solutions[..., left.shape[-1] :]
    products = transposed_times(v, solutions)
    c, right = products[..., : left.shape[-1]], products[..., left.shape[-1] :]
    small, ok = linalg_dense.solve(_one_plus(c), right)
    return first - inner @ small, regular & ok


def _is_solved_together(base: Base, u: Array, v: Array, b: jax.Array) -> bool:
    """Return whether U and b form one linear system. U may have a smaller batch than b."""
    return b.shape[:-2] == jnp.broadcast_shapes(base.matrix.shape[:-2], u.shape[:-2], v.shape[:-2])


# ---- linear systems --------------------------------------------------------------------------------------------------


def _woodbury(x1: Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    base, low = without_derivatives(_split(x1))
    u, v = low.parts
    check = f"and a check of the residual; a linear system with the base for {low.rank} columns and for each column of x2, plus O(n r**2)"
    if isinstance(base, Diagonal):
        remark(
            f"Woodbury's formula with base Diagonal and an update of rank {low.rank}, pivoting in {low.rank} rows, {check}"
        )
        return checked(x1, b, *bordered_solvers(base, to_dense(u).data, to_dense(v).data, lax.stop_gradient(b)))
    remark(f"Woodbury's formula with base {type(base).__name__} and an update of rank {low.rank}, {check}")
    frozen = without_derivatives(x1)
    with for_parts_of(x1):
        straight, transposed = solvers(base)
        known, flipped_base = Base(base, straight), Base(matrix_transpose.dispatch(base), transposed)
        capacitance = flipped = None
        if not _is_solved_together(known, u, v, b):
            capacitance = _capacitance(known, u, v)
            flipped = Capacitance(None, capacitance.c.mT, capacitance.regular)
    return by_equation(
        x1,
        b,
        _refined(frozen, known, u, v, capacitance),
        _refined(matrix_transpose.dispatch(frozen), flipped_base, v, u, flipped),
    )


def _refined(x: Array, base: Base, u: Array, v: Array, capacitance: Capacitance | None) -> Solver:
    """Return the function that solves for right-hand sides. If the residual is too large, it changes the diagonal of
    the base.
    """

    def run(b: jax.Array) -> tuple[jax.Array, jax.Array]:
        found, ok = refined(x, lambda b: _once(base, u, v, capacitance, b), b)
        if can_be_shifted(base.matrix):
            found, ok = lax.cond(any_of_all(~ok), lambda: with_another_base(found, ok, b), lambda: (found, ok))
        return solution_or_dense(x, b, found, ok)

    def with_another_base(found: jax.Array, ok: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        with for_parts_of(x):
            shifted_, left, right = _regularised(base.matrix, to_dense(u).data, to_dense(v).data)
            regular = _base(shifted_)
            together = _is_solved_together(regular, left, right, b)
            of_regular = None if together else _capacitance(regular, left, right)
        other, fine = refined(x, lambda b: _once(regular, left, right, of_regular, b), b)
        return jnp.where(ok, found, other), ok | fine

    return run


def _regularised(base: Array, u: jax.Array, v: jax.Array, fine: jax.Array | bool = False) -> tuple[Array, Dense, Dense]:
    """Return a regular base, and the update that restores the matrix. Matrices that are `fine` keep their base and
    update.
    """
    base_, u_, v_ = without_derivatives((base, u, v))
    batch = jnp.broadcast_shapes(base.shape[:-2], u.shape[:-2], v.shape[:-2])
    shapes = jax.eval_shape(shift, base_, u_, v_)
    nothing = jax.tree.map(lambda c: jnp.zeros(c.shape, c.dtype), shapes)
    found = lax.cond(jnp.all(fine), lambda: nothing, lambda: shift(base_, u_, v_))
    changes, units = (jnp.where(jnp.broadcast_to(fine, batch)[..., None, None], 0, c) for c in found)
    u, v = (jnp.broadcast_to(c, (*batch, *c.shape[-2:])) for c in (u, v))
    left, right = (jnp.concatenate(pair, axis=-1) for pair in ((u, -changes), (v, units)))
    return shifted(base, jnp.sum(changes, axis=-1)), Dense.make((left,)), Dense.make((right,))


_OTHER_FORMS = (
    *(f"{name}_by_{way}" for name in ("solve", "inv", "slogdet") for way in ("spectra", "transforms")),
    *("of_low_rank", "det_by_slogdet"),
)


def _by_dense_form_if_small(function: Function[..., Any]) -> Callable[[Run], Run]:
    """Register a kernel for sums, and for arrays with a background; small matrices use the kernel for `Dense`."""

    def register(run: Run) -> Run:
        def _by_base_and_low_rank(x: Array, *others: Array) -> Result:
            if smaller(SMALL, x.shape[-1]):
                return run(x, *others)
            remark(f"the dense form, of at most {SMALL} rows")
            return function.dispatch(to_dense(x), *others)

        others = (Array,) if function is solve else ()
        function.kernel(Sum, *others, when=_is_updated, before=_OTHER_FORMS)(_by_base_and_low_rank)
        function.kernel(Array, *others, when=lambda x, *rest: _has_background(x) and _is_updated(x))(
            _by_base_and_low_rank
        )
        return run

    return register


@_by_dense_form_if_small(solve)
def _solve_sum(x1: Array, x2: Array) -> tuple[Dense, jax.Array]:
    return solved(x1, x2, _woodbury)


@_by_dense_form_if_small(inv)
def _inv_sum(x: Array) -> tuple[Array, jax.Array]:
    base, low = _split(x)
    u, v = (to_dense(p) for p in low.parts)
    straight, transposed = solvers(base)
    inner, regular = straight(u.data)
    left, fine = linalg_dense.solve(_one_plus(transposed_times(v, inner)).mT, inner.mT)
    right, _ = transposed(v.data)
    inverse, _ = inv.dispatch(base)
    known = without_derivatives((base, u.data, v.data, inner, left.mT))
    benign = is_benign(*known[:4], strict=False, solve=straight, quotient=known[4])
    left = nan_unless(benign[..., None, None], -left.mT)  # compiled code does not check the flag
    result = total(inverse, low_rank(Dense.make((left,)), Dense.make((right,))))
    return result, regular & fine & jnp.all(benign)


# ---- determinants ---------------------------------------------------------------------------------------------------


def _by_capacitance(
    x: Array, of_base_and_capacitance: Callable[[tuple[Array, Array]], tuple[jax.Array, ...]]
) -> tuple[tuple[jax.Array, ...], jax.Array]:
    """Return the results of a function of a base and ``C``, and whether few digits are lost, for each matrix."""
    base, low = _split(x)
    u: Any
    v: Any
    u, v = (to_dense(p).data for p in low.parts)
    if isinstance(base, Diagonal):
        found = determinant(base, u, v)
        return of_base_and_capacitance(found.parts(base)), found.fine
    return _by_estimates(of_base_and_capacitance, base, u, v)


def _by_estimates(
    of_base_and_capacitance: Callable[[tuple[Array, Array]], tuple[jax.Array, ...]],
    base: Array,
    u: jax.Array,
    v: jax.Array,
) -> tuple[tuple[jax.Array, ...], jax.Array]:
    known = _base(base)

    def of(known: Base, u: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
        c = _capacitance(known, Dense.make((u,)), Dense.make((v,))).c
        return of_base_and_capacitance((known.matrix, Dense.make((c,))))

    if not can_be_shifted(base):
        return of(known, u, v), _is_benign(known, u, v, strict=False)
    fine = _is_benign(known, u, v, strict=True)

    def with_another_base() -> tuple[tuple[jax.Array, ...], jax.Array]:
        shifted_, left, right = _regularised(base, u, v, fine)
        regular = _base(shifted_)
        return of(regular, left.data, right.data), _is_benign(regular, left.data, right.data, strict=False)

    # The update of the other base has more columns, so it costs several times as much.
    results: tuple[tuple[jax.Array, ...], jax.Array] = lax.cond(
        jnp.all(fine), lambda: (of(known, u, v), jnp.ones_like(fine)), with_another_base
    )
    return results


def _is_benign(base: Base, u: jax.Array, v: jax.Array, strict: bool) -> jax.Array:
    matrix, u, v = without_derivatives((base.matrix, u, v))
    # The solutions of singular matrices are NaN, and not benign. The flag would tell about all matrices of a stack.
    inner, _ = without_derivatives(base.solve(u))
    return is_benign(matrix, u, v, inner, strict=strict, solve=base.solve)


@_by_dense_form_if_small(det)
def _det_sum(x: Array) -> Dense:
    (result,) = _of_parts(det.dispatch, x, _determinant)
    return result


@_by_dense_form_if_small(slogdet)
def _slogdet_sum(x: Array) -> tuple[Dense, ...]:
    return _of_parts(slogdet.dispatch, x, _logarithms)


def _of_parts(
    function: Callable[[Array], Result],
    x: Array,
    of_base_and_capacitance: Callable[[tuple[Array, Array]], tuple[jax.Array, ...]],
) -> tuple[Dense, ...]:
    def by_parts(x: Array) -> tuple[tuple[jax.Array, ...], jax.Array]:
        return _by_capacitance(x, of_base_and_capacitance)

    # A base whose diagonal can change rarely fails, and the dense form would double the compilation time.
    return by_parts_or_dense(function, x, by_parts, fall_back=not can_be_shifted(_split(x)[0]))


def _determinant(parts: tuple[Array, Array]) -> tuple[jax.Array]:
    return (determinants.of_parts(_multiplied, _logarithms, parts),)


def _multiplied(parts: tuple[Array, Array]) -> jax.Array:
    base, c = parts
    product: jax.Array = det.dispatch(base).dense_data() * det.dispatch(c).dense_data()
    return product


def _logarithms(parts: tuple[Array, Array]) -> tuple[jax.Array, jax.Array]:
    base, c = parts
    sign, logabsdet = logarithms(base)
    more, further = logarithms(c)
    return sign * more, logabsdet + further
