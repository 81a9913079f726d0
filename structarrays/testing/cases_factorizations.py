"""The uses of linear algebra beyond the standard, under SciPy's names, for the equivalence tests.

The oracles are NumPy's functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .case import Case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

TWO = ("x1", "x2")
SQUARE = {"cores": ("nn",), "kinds": "floating"}
INVERTIBLE: dict[str, Any] = SQUARE | {"requires": ("invertible",), "condition": True}
DEFINITE: dict[str, Any] = SQUARE | {"requires": ("positive definite",), "condition": True}
RIGHT_HAND_SIDES = ((("nn", "nk"), "broadcast"), (("nn", "n"), "first"))


def _adjoint(x: np.ndarray) -> np.ndarray:
    adjoint: np.ndarray = np.conj(np.matrix_transpose(x))
    return adjoint


def _each(function: Callable[..., Sequence[Any]], *arrays: np.ndarray) -> list[np.ndarray]:
    """Apply a function of matrices to stacks of matrices. An empty stack gives empty results of the right shape."""
    batch = np.broadcast_shapes(*(a.shape[:-2] for a in arrays))
    stacks = [np.broadcast_to(a, batch + a.shape[-2:]).reshape(-1, *a.shape[-2:]) for a in arrays]
    results = [function(*each) for each in zip(*stacks, strict=True)]
    if not results:
        results = [function(*(np.ones(a.shape[-2:], a.dtype) for a in stacks))]
        return [np.zeros((*batch, *r.shape), r.dtype) for r in map(np.asarray, results[0])]
    return [np.stack(part).reshape(*batch, *np.shape(part[0])) for part in zip(*results, strict=True)]


def _is_regular(x: np.ndarray) -> bool:
    return x.size == 0 or bool(np.linalg.cond(x).max() < 1e4)


# ---- Cholesky's factors ----------------------------------------------------------------------------------------------


def _cholesky() -> Iterator[Case]:
    yield Case("linalg.cho_factor", "xp.linalg.cho_factor(x, lower=True).c", oracle=np.linalg.cholesky, **DEFINITE)
    yield Case(
        "linalg.cho_factor", "xp.linalg.cho_factor(x).c", oracle=lambda x: _adjoint(np.linalg.cholesky(x)), **DEFINITE
    )
    yield Case(
        "linalg.cho_factor",
        "xp.linalg.cho_factor(x - 1000 * xp.eye(x.shape[-1], dtype=x.dtype)).c",
        oracle=lambda x: np.linalg.cholesky(x - 1000 * np.eye(x.shape[-1])),
        raises=True,
        batches="positive",
        **DEFINITE,
    )
    for lower, (cores, batches) in zip((True, False), RIGHT_HAND_SIDES, strict=True):
        yield Case(
            "linalg.cho_solve",
            f"xp.linalg.cho_solve(xp.linalg.cho_factor(x1, lower={lower}), x2)",
            operands=TWO,
            batches=batches,
            oracle=np.linalg.solve,
            **DEFINITE | {"cores": cores, "requires": ("positive definite", "")},
        )


# ---- factors with exchanges ------------------------------------------------------------------------------------------


class LU(NamedTuple):
    """The result of `linalg.lu`."""

    p: np.ndarray
    l: np.ndarray
    u: np.ndarray


class LDL(NamedTuple):
    """The result of `linalg.ldl`."""

    lu: np.ndarray
    d: np.ndarray
    perm: np.ndarray


def _lu(x: np.ndarray) -> LU:
    """Factorize by elimination with partial pivoting, column by column."""

    def factors(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        (m, n), a = a.shape, a.copy()
        k = min(m, n)
        order, lower = np.arange(m), np.zeros((m, k), a.dtype)
        for j in range(k):
            # The largest element in LAPACK's order of complex numbers, so that the pivots agree.
            pivot: Any = j + np.argmax(np.abs(a[j:, j].real) + np.abs(a[j:, j].imag))
            for rows in (a, lower, order):
                rows[[j, pivot]] = rows[[pivot, j]]
            lower[j:, j] = a[j:, j] / a[j, j] if a[j, j] else np.eye(m)[j:, j]
            a[j + 1 :] -= np.outer(lower[j + 1 :, j], a[j])
        return np.eye(m, dtype=a.real.dtype)[:, order], lower, np.triu(a[:k])

    return LU(*_each(factors, x))


def _ldl(x: np.ndarray) -> LDL:
    """Return other factors with the same product: the eigenvectors and a diagonal matrix."""
    values, vectors = np.linalg.eigh(x)
    n = x.shape[-1]
    return LDL(
        vectors,
        (np.eye(n) * values[..., None, :]).astype(x.dtype),
        np.broadcast_to(np.arange(n, dtype="int32"), x.shape[:-1]),
    )


def _with_exchanges() -> Iterator[Case]:
    for trans, of in ((0, lambda a: a), (1, np.matrix_transpose), (2, _adjoint)):
        for cores, batches in RIGHT_HAND_SIDES[: 1 if trans else 2]:
            yield Case(
                "linalg.lu_solve" if trans else "linalg.lu_factor",
                f"xp.linalg.lu_solve(xp.linalg.lu_factor(x1), x2, trans={trans})",
                operands=TWO,
                batches=batches,
                oracle=lambda a, b, of=of: np.linalg.solve(of(a), b),
                **INVERTIBLE | {"cores": cores, "requires": ("invertible", "")},
            )
    yield Case(
        "linalg.lu_solve",
        "xp.linalg.lu_solve(xp.linalg.lu_factor(0 * x1), x2)",
        operands=TWO,
        batches="positive",
        raises=True,
        oracle=lambda a, b: np.linalg.solve(0 * a, b),
        **INVERTIBLE | {"cores": ("nn", "nk"), "requires": ("invertible", "")},
    )
    product = "r.p @ (r.l @ r.u)"
    lu: dict[str, Any] = {
        "oracle": _lu,
        "invariants": f"({product}, xp.triu(r.l, k=1), xp.tril(r.u, k=-1), xp.linalg.diagonal(r.l))",
    }
    # Elimination of a singular matrix has no derivative.
    yield Case("linalg.lu", "xp.linalg.lu(x)", kinds="floating", smooth=False, **lu)
    yield Case("linalg.lu", "xp.linalg.lu(x)", given=_is_regular, **INVERTIBLE, **lu)
    product = "r.lu @ (r.d @ xp.conj(xp.matrix_transpose(r.lu)))"
    ldl: dict[str, Any] = {"oracle": _ldl, "invariants": f"({product}, xp.triu(r.d, k=2), xp.tril(r.d, k=-2))"}
    ldl |= SQUARE | {"requires": ("hermitian",)}
    yield Case("linalg.ldl", "xp.linalg.ldl(x)", smooth=False, **ldl)
    yield Case("linalg.ldl", "xp.linalg.ldl(x)", given=_is_regular, **ldl)


# ---- triangles -------------------------------------------------------------------------------------------------------


def _triangles() -> Iterator[Case]:
    for (lower, unit, trans), (cores, batches) in zip(
        ((False, False, 0), (True, False, 0), (True, True, 0), (False, False, 2)),
        (*RIGHT_HAND_SIDES, *RIGHT_HAND_SIDES),
        strict=True,
    ):

        def triangle(a: np.ndarray, lower: bool = lower, unit: bool = unit, trans: int = trans) -> np.ndarray:
            a = np.tril(a) if lower else np.triu(a)
            a = np.where(np.eye(a.shape[-1], dtype=bool), 1, a).astype(a.dtype) if unit else a
            return _adjoint(a) if trans else a

        yield Case(
            "linalg.solve_triangular",
            f"xp.linalg.solve_triangular(x1, x2, trans={trans}, lower={lower}, unit_diagonal={unit})",
            operands=TWO,
            batches=batches,
            oracle=lambda a, b, triangle=triangle: np.linalg.solve(triangle(a), b),
            given=lambda a, b, triangle=triangle: a.size == 0 or np.linalg.cond(triangle(a)).max() < 100,
            **INVERTIBLE | {"cores": cores, "requires": ("invertible", "")},
        )


# ---- functions of matrices -------------------------------------------------------------------------------------------


def _expm(x: np.ndarray) -> np.ndarray:
    """Compute the exponential by scaling and squaring with the power series."""
    norm = float(np.abs(x).sum(axis=-1).max(initial=1))
    halvings = int(np.ceil(np.log2(norm))) + 2
    a = np.asarray(x, np.result_type(x, np.float64)) / 2.0**halvings
    term = total = np.broadcast_to(np.eye(x.shape[-1], dtype=a.dtype), x.shape)
    for k in range(1, 16):
        term = term @ a / k
        total = total + term
    for _ in range(halvings):
        total = total @ total
    return total.astype(x.dtype)


def _sqrtm(x: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(x)
    root: np.ndarray = (vectors * np.sqrt(values)[..., None, :]) @ _adjoint(vectors)
    return root


def _functions() -> Iterator[Case]:
    small: dict[str, Any] = SQUARE | {"domain": (-1.0, 1.0)}
    yield Case("linalg.expm", "xp.linalg.expm(x)", oracle=_expm, **small)
    for cores, batches in RIGHT_HAND_SIDES:
        yield Case(
            "linalg.expm_multiply",
            "xp.linalg.expm_multiply(x1, x2)",
            operands=TWO,
            batches=batches,
            oracle=lambda a, b: _expm(a) @ b,
            **small | {"cores": cores},
        )
    yield Case(
        "linalg.sqrtm",
        "xp.linalg.sqrtm(xp.assume(x, 'positive_definite'))",
        oracle=_sqrtm,
        given=_is_regular,  # the root of a rounding error in place of zero is large
        **DEFINITE,
    )


# ---- least squares, determinants, inverses ---------------------------------------------------------------------------


class LeastSquares(NamedTuple):
    """The result of `linalg.lstsq`."""

    x: np.ndarray
    residues: np.ndarray
    rank: np.ndarray
    s: np.ndarray


def _lstsq(a: np.ndarray, b: np.ndarray) -> LeastSquares:
    x = np.linalg.pinv(a, rcond=1e-5) @ b
    residues = np.sum(np.abs(b - a @ x) ** 2, axis=-2)
    s = np.linalg.svd(a, compute_uv=False)
    return LeastSquares(
        x,
        residues if a.shape[-2] > a.shape[-1] else np.zeros((*residues.shape[:-1], 0), s.dtype),
        np.asarray(np.sum(s > 1e-5 * s[..., :1], axis=-1)),
        s,
    )


def _logdet(x: np.ndarray) -> np.ndarray:
    sign, logabsdet = np.linalg.slogdet(x)
    if np.iscomplexobj(x):
        return np.asarray(logabsdet + 1j * np.angle(sign), x.dtype)
    return np.where(sign < 0, np.nan, logabsdet).astype(x.dtype)


def _is_off_the_cut(x: np.ndarray) -> bool:
    """Return whether no determinant is close to a negative number, where the logarithm jumps."""
    return not np.iscomplexobj(x) or bool(np.all(np.abs(np.angle(np.linalg.slogdet(x)[0])) < 3))


def _rest() -> Iterator[Case]:
    least_squares: dict[str, Any] = {
        "operands": TWO,
        "cores": ("mn", "mk"),
        "kinds": "floating",
        "given": lambda a, b: a.size == 0 or np.linalg.cond(a).max() < 100,
        "condition": True,
    }
    # Not all structures support singular values.
    code = "xp.linalg.lstsq(x1, x2, 1e-5)[:3]"
    yield Case("linalg.lstsq", code, oracle=lambda a, b: _lstsq(a, b)[:3], smooth=False, **least_squares)
    yield Case("linalg.lstsq", "xp.linalg.lstsq(x1, x2, 1e-5).x", oracle=lambda a, b: _lstsq(a, b).x, **least_squares)
    yield Case("linalg.logdet", "xp.linalg.logdet(x)", oracle=_logdet, given=_is_off_the_cut, **INVERTIBLE)
    yield Case(
        "linalg.selected_inverse",
        "xp.linalg.selected_inverse(x)",
        oracle=np.linalg.inv,
        invariants="xp.where((x != 0) & (xp.matrix_transpose(x) != 0), r, xp.zeros_like(r))",
        **INVERTIBLE,
    )
    bad = ("cho_factor", "ldl", "expm", "sqrtm", "logdet", "selected_inverse")
    for name in bad:
        code = f"xp.linalg.{name}(x[..., :2, :3])"
        yield Case(f"linalg.{name}", code, cores=("44",), kinds="floating", raises=True, oracle=_refused)


def _refused(x: np.ndarray) -> np.ndarray:
    return np.linalg.inv(x[..., :2, :3])


CASES = (*_cholesky(), *_with_exchanges(), *_triangles(), *_functions(), *_rest())
"""Factorizations and their linear systems, matrix functions, least squares, log-determinants, selected inverses."""
