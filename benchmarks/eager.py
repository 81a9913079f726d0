"""Overhead of an eager operation on a tiny array, compared with a compiled call of the same arithmetic."""

import jax
import jax.numpy as jnp
import numpy as np
from harness import OURS, Bar, Report
from jax import lax

import structarrays as sa

N = 4
OFFSETS = (-1, 0, 1)
BARE = "bare jax.jit call"
JNP = "jax.numpy"


def run(report: Report) -> None:
    report.section("Eager cost of tiny arrays, per call")
    dense(report)
    diagonal(report)
    banded(report)
    others(report)


def _time(report: Report, case: str, candidates: dict, microseconds: float = 1.0) -> None:
    """Time a case; the bar allows these microseconds on a machine where the bare call takes 3.5."""
    report.time(case, candidates, [Bar(BARE, factor=round(1 + microseconds / 3.5, 2))], rounds=150, inner=200)


def dense(report: Report) -> None:
    rng = np.random.default_rng(0)
    a, b = (jnp.asarray(rng.normal(size=N)) for _ in range(2))
    m, k = (jnp.asarray(rng.normal(size=(3, 3)) + 4 * np.eye(3)) for _ in range(2))
    v = jnp.asarray(rng.normal(size=3))
    sa_a, sa_b, sa_m, sa_k, sa_v = (sa.asarray(x) for x in (a, b, m, k, v))
    add, exp, matmul, solve = (jax.jit(f) for f in (lax.add, lax.exp, jnp.matmul, jnp.linalg.solve))
    _time(
        report,
        f"Dense + Dense, {N} entries",
        {OURS: lambda: sa_a + sa_b, BARE: lambda: add(a, b), JNP: lambda: a + b},
    )
    _time(
        report,
        f"exp(Dense), {N} entries",
        {OURS: lambda: sa.exp(sa_a), BARE: lambda: exp(a), JNP: lambda: jnp.exp(a)},
    )
    _time(
        report,
        "Dense @ Dense, 3 x 3",
        {OURS: lambda: sa_m @ sa_k, BARE: lambda: matmul(m, k), JNP: lambda: m @ k},
    )
    _time(
        report,
        "solve(Dense, vector), 3 x 3, with its error flag",
        {
            OURS: lambda: sa.linalg.solve(sa_m, sa_v),
            BARE: lambda: solve(m, v),
            JNP: lambda: jnp.linalg.solve(m, v),
        },
        2.5,
    )


def diagonal(report: Report) -> None:
    rng = np.random.default_rng(1)
    d, e, x = (jnp.asarray(rng.normal(size=N) + 3) for _ in range(3))
    sa_d, sa_e, sa_x = sa.Diagonal(d), sa.Diagonal(e), sa.asarray(x)
    full_d, full_e = jnp.diag(d), jnp.diag(e)
    add, multiply = jax.jit(lax.add), jax.jit(lax.mul)
    cases = {
        "Diagonal + Diagonal": (lambda: sa_d + sa_e, lambda: add(d, e), lambda: full_d + full_e),
        "Diagonal * Diagonal": (lambda: sa_d * sa_e, lambda: multiply(d, e), lambda: full_d * full_e),
        "Diagonal @ vector": (lambda: sa_d @ sa_x, lambda: multiply(d, x), lambda: full_d @ x),
    }
    for case, (ours, bare, full) in cases.items():
        _time(report, f"{case}, n = {N}", {OURS: ours, BARE: bare, f"{JNP}, dense": full})


def banded(report: Report) -> None:
    rng = np.random.default_rng(2)

    def bands() -> tuple[jax.Array, ...]:
        return tuple(jnp.asarray(rng.normal(size=N - abs(k)) + 3) for k in OFFSETS)

    def full(diagonals: tuple[jax.Array, ...]) -> jax.Array:
        return sum(jnp.diag(d, k) for d, k in zip(diagonals, OFFSETS, strict=True))

    d, e, x = bands(), bands(), jnp.asarray(rng.normal(size=N))
    sa_d, sa_e = (sa.Banded(b, OFFSETS, (N, N)) for b in (d, e))
    sa_x = sa.asarray(x)
    full_d, full_e = full(d), full(e)
    add = jax.jit(lambda p, q: tuple(map(lax.add, p, q)))
    multiply = jax.jit(lambda p, q: tuple(map(lax.mul, p, q)))

    @jax.jit
    def matvec(p, v):
        lower, main, upper = p
        return main * v + jnp.pad(lower * v[:-1], (1, 0)) + jnp.pad(upper * v[1:], (0, 1))

    cases = {
        "Banded + Banded": (lambda: sa_d + sa_e, lambda: add(d, e), lambda: full_d + full_e),
        "Banded * Banded": (lambda: sa_d * sa_e, lambda: multiply(d, e), lambda: full_d * full_e),
        "Banded @ vector": (lambda: sa_d @ sa_x, lambda: matvec(d, x), lambda: full_d @ x),
    }
    for case, (ours, bare, dense_form) in cases.items():
        _time(report, f"{case}, 3 bands, n = {N}", {OURS: ours, BARE: bare, f"{JNP}, dense": dense_form})


def others(report: Report) -> None:
    """Time a function of one array, and a product with a vector, for each of the other structures.

    The bare call of the product is the compiled kernel on the parameters.
    """
    rng = np.random.default_rng(3)
    a, c, r, x = (jnp.asarray(rng.normal(size=s) + 3) for s in ((N, N), N, N, N))
    blocks = jnp.asarray(rng.normal(size=(2, 2, 2)))
    sparse = sa.Sparse(rng.normal(size=N), (np.arange(N), np.arange(N)[::-1].copy()), (N, N))
    sa_x, negative = sa.asarray(x), jax.jit(lax.neg)
    structures = {
        "Toeplitz": (sa.Toeplitz(c, r), jnp.zeros(2 * N - 1)),
        "Circulant": (sa.Circulant(c), c),
        "Hankel": (sa.Hankel(c, r), jnp.zeros(2 * N - 1)),
        "Triangular": (sa.Triangular(a), a),
        "Symmetric": (sa.Symmetric(a), a),
        "BlockDiagonal": (sa.BlockDiagonal(blocks), blocks),
        "Sparse": (sparse, x),
    }
    for name, (array, parameter) in structures.items():
        _time(
            report,
            f"-{name}, n = {N}",
            {OURS: lambda array=array: -array, BARE: lambda parameter=parameter: negative(parameter)},
        )
        leaves, tree = jax.tree.flatten(array)
        kernel = jax.jit(lambda v, *leaves, tree=tree: (jax.tree.unflatten(tree, leaves) @ sa.Dense(v)).to_jax())
        _time(
            report,
            f"{name} @ vector, n = {N}",
            {OURS: lambda array=array: array @ sa_x, BARE: lambda leaves=leaves, kernel=kernel: kernel(x, *leaves)},
        )
    permutation = sa.Permutation(np.arange(N)[::-1].copy())
    p = jnp.asarray(np.arange(N)[::-1].copy())
    gather = jax.jit(lambda v, p: v[p])
    _time(report, f"Permutation @ vector, n = {N}", {OURS: lambda: permutation @ sa_x, BARE: lambda: gather(x, p)})
