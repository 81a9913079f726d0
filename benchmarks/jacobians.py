"""Jacobians of a nonlinear five-point stencil compared with a Jacobian by hand, asdex and `jax.jacfwd`, and Newton steps."""

import time
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
from harness import OURS, Bar, Report, duration
from peers import CPU_ONLY, NOT_INSTALLED, on_cpu

import structarrays as sa
from structarrays._structures.sparse import sparse_direct

HAND, ASDEX, DENSE, SCIPY = "by hand", "asdex", "jax.jacfwd", "by hand with scipy splu"
TIME_STEP = 0.1
BAND = "the same as Banded"
BLOCKS = (
    ("block diagonal", 8, (0,)),
    ("block diagonal", 16, (0,)),
    ("block tridiagonal", 32, (-1, 0, 1)),
    ("block tridiagonal", 48, (-1, 0, 1)),
    ("block bidiagonal", 48, (-1, 0)),
    ("60 × 60 grid", 3, (-60, -1, 0, 1, 60)),
)
"""Patterns for which `jacobian` returns blocks, the number of rows of a block, and the block diagonals."""
LARGEST_DENSE = 4096
"""The largest number of unknowns for which the dense Jacobian is computed."""


def run(report: Report) -> None:
    asdex, reason = peer()
    report.section("Time to the array")
    for side in (64, 100, 1000):
        arrays(report, side, asdex, reason)
    report.section("First call")
    header = ("", f"{OURS}, compile", f"{HAND}, compile", f"{ASDEX}, colour", f"{ASDEX}, compile")
    report.table(header, (first_calls(side, asdex, reason) for side in (64, 100, 1000)))
    report.section("Linear systems in blocks")
    if not on_cpu():
        report.remark(CPU_ONLY)
        return
    for name, size, offsets in BLOCKS:
        block_systems(report, name, size, offsets)
    report.section("Newton steps")
    newton_steps(report, 300, rounds=10)
    newton_steps(report, 1000, rounds=2)


def peer() -> tuple[ModuleType | None, str]:
    """Return asdex, or the reason why it cannot be compared. It requires certain versions of JAX."""
    try:
        import asdex
    except ModuleNotFoundError:
        return None, NOT_INSTALLED
    except ImportError:
        return None, f"cannot be imported with JAX {jax.__version__}"
    return asdex, ""


def laplacian(u):
    wide = jnp.pad(u, 1)
    return wide[2:, 1:-1] + wide[:-2, 1:-1] + wide[1:-1, 2:] + wide[1:-1, :-2] - 4 * u


def residual(u):
    """Return the residual of an implicit step with a diffusion coefficient ``1 + u**2``, for a vector of a square grid."""
    side = round(u.size**0.5)
    u = u.reshape(side, side)
    return (u - TIME_STEP * ((1 + u**2) * laplacian(u) + jnp.exp(-u))).ravel()


def coefficients(u):
    """Return the diagonals of the Jacobian of `residual` with offsets ``(-side, -1, 0, 1, side)``, derived by hand."""
    side = round(u.size**0.5)
    u = u.reshape(side, side)
    diffusion = 1 + u**2
    main = (1 - TIME_STEP * (2 * u * laplacian(u) - 4 * diffusion - jnp.exp(-u))).ravel()
    neighbours = -TIME_STEP * diffusion
    left, right = neighbours.at[:, 0].set(0.0).ravel()[1:], neighbours.at[:, -1].set(0.0).ravel()[:-1]
    return neighbours.ravel()[side:], left, main, right, neighbours.ravel()[:-side]


def by_hand(u):
    side = round(u.size**0.5)
    return sa.Banded(coefficients(u), (-side, -1, 0, 1, side), (u.size, u.size))


def start(side):
    return jnp.asarray(np.random.default_rng(0).normal(size=side * side))


# ---- time to the array -----------------------------------------------------------------------------------------------


def arrays(report: Report, side: int, asdex: ModuleType | None, reason: str) -> None:
    """Time the evaluation of the Jacobian in compiled code."""
    u, n = start(side), side * side
    functions = {OURS: sa.jacobian(residual), HAND: by_hand}
    absent = {}
    if asdex is None:
        absent[ASDEX] = reason
    else:
        functions[ASDEX] = asdex.jacobian_from_coloring(residual, asdex.jacobian_coloring(residual, u))
    if n <= LARGEST_DENSE:
        functions[DENSE] = jax.jacfwd(residual)
    else:
        absent[DENSE] = f"{8e-9 * n**2:,.1f} GB"
    compiled = {name: jax.jit(function) for name, function in functions.items()}
    direction = jnp.cos(jnp.arange(n))
    expected = jax.jvp(residual, (u,), (direction,))[1]
    for name, function in compiled.items():
        np.testing.assert_allclose(np.asarray(function(u) @ direction), expected, atol=1e-9, err_msg=name)
    candidates = {name: lambda function=function: function(u) for name, function in compiled.items()}
    bars = [Bar(HAND, 3.0)]
    if n == 10**6:
        bars.append(Bar(ASDEX, 0.2))
    report.time(f"{side} × {side} grid, n = {n:,}", candidates, bars, absent, rounds=40 if n > LARGEST_DENSE else 20)


def first_calls(side: int, asdex: ModuleType | None, reason: str) -> tuple[str, ...]:
    """Return the time to trace and compile each candidate once, in a row of a table."""
    u = start(side)

    def compilation(function) -> str:
        begin = time.perf_counter()
        jax.jit(function).lower(u).compile()
        return duration(time.perf_counter() - begin)

    jax.clear_caches()
    row = [f"n = {side * side:,}", compilation(sa.jacobian(residual)), compilation(by_hand)]
    if asdex is None:
        return *row, reason, reason
    begin = time.perf_counter()
    colouring = asdex.jacobian_coloring(residual, u)
    seconds = time.perf_counter() - begin
    return *row, duration(seconds), compilation(asdex.jacobian_from_coloring(residual, colouring))


# ---- blocks ----------------------------------------------------------------------------------------------------------


def block_systems(report: Report, name: str, size: int, offsets: tuple[int, ...]) -> None:
    """Time a linear system with a new matrix whose blocks are full."""
    from scipy import sparse

    count = 10_800 // size
    rng = np.random.default_rng(0)
    blocks = [rng.normal(size=(count - abs(k), size, size)) for k in offsets]
    blocks[offsets.index(0)] += 10 * size * np.eye(size)
    a = sa.BlockDiagonal(blocks[0]) if offsets == (0,) else sa.BlockBanded(blocks, offsets)
    n = count * size
    row, column = np.arange(size)[:, None], np.arange(size)
    coordinates = [
        np.broadcast_arrays(size * (t + max(0, -k)) + row, size * (t + max(0, k)) + column)
        for k in offsets
        for t in [np.arange(count - abs(k))[:, None, None]]
    ]
    rows, columns = (np.concatenate([c.ravel() for c in part]) for part in zip(*coordinates, strict=True))
    matrix = sparse.csr_array((np.concatenate([b.ravel() for b in blocks]), (rows, columns)), shape=(n, n))
    diagonals = np.unique(columns - rows).tolist()
    band = sa.Banded([matrix.diagonal(k) for k in diagonals], diagonals, (n, n))
    b = jnp.asarray(rng.normal(size=n))
    solve = jax.jit(sa.linalg.solve)

    def solution(a):
        sparse_direct.FACTORIZATIONS.clear()
        return solve(a, b)

    candidates = {OURS: lambda: solution(a), BAND: lambda: solution(band)}
    for candidate in candidates.values():
        np.testing.assert_allclose(matrix @ np.asarray(candidate()), b, atol=1e-9)
    report.time(f"{name}, {size} × {size} blocks, n = {n:,}", candidates, [Bar(BAND, 1.0)], rounds=20)


# ---- Newton steps ----------------------------------------------------------------------------------------------------


def newton_steps(report: Report, side: int, rounds: int) -> None:
    """Time a Newton step with a new factorization."""
    from scipy import sparse
    from scipy.sparse.linalg import splu

    u, n = start(side), side * side
    parts = jax.jit(lambda u: (residual(u), coefficients(u)))

    @jax.jit
    def by_jacobian(u):
        value, J = sa.linearize(residual, u)
        return u - sa.linalg.solve(J, value)

    @jax.jit
    def by_coefficients(u):
        return u - sa.linalg.solve(by_hand(u), residual(u))

    def by_scipy(u):
        value, diagonals = jax.device_get(parts(u))
        J = sparse.diags_array(diagonals, offsets=(-side, -1, 0, 1, side), shape=(n, n), format="csc")
        return np.asarray(u) - splu(J, permc_spec="MMD_AT_PLUS_A").solve(value)

    def with_new_factors(step):
        def call():
            sparse_direct.FACTORIZATIONS.clear()
            return step(u)

        return call

    steps = {OURS: by_jacobian, HAND: by_coefficients, SCIPY: by_scipy}
    candidates = {name: with_new_factors(step) for name, step in steps.items()}
    expected = by_scipy(u)
    for name in OURS, HAND:
        np.testing.assert_allclose(np.asarray(candidates[name]()), expected, rtol=1e-8, atol=1e-8, err_msg=name)
    bars = [Bar(HAND, 3.0), Bar(SCIPY, 3.0)]
    report.time(f"Newton step, {side} × {side} grid, n = {n:,}", candidates, bars, rounds=rounds, warm_up=0)
