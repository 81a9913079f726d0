"""XLA's cost estimates of compiled code on structures, compared with hand-written `jax.numpy` on their parameters.

Nothing runs: flops and bytes come from `cost_analysis()`, temporary bytes from `memory_analysis()` of the compiled
program. `solvers.py` measures banded solves, because XLA counts no flops inside LAPACK calls, and counts both branches
of a `cond`.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from harness import Report

import structarrays as sa

N = 100_000
COLUMNS = 8
SLACK = 0.05
SMALL = 1024  # bytes that are always allowed, for a flag or an alignment: a percentage of zero is zero
OFFSETS = (-1, 0, 1)


def run(report: Report) -> None:
    report.section(f"Compiled code: ours and hand-written jax.numpy on the parameters, n = {N:,}")
    header = ("case: ours / by hand", "flops", "bytes", "temporary bytes")
    report.table(header, (compare(report, *case) for case in cases()))


def plan(function: Callable, *arguments: object) -> dict[str, float]:
    """Return flops, bytes accessed and temporary bytes of the compiled function."""
    compiled = jax.jit(function).lower(*arguments).compile()
    cost = compiled.cost_analysis()
    return {
        "flops": cost.get("flops", 0.0),
        "bytes": cost.get("bytes accessed", 0.0),
        "temporary bytes": compiled.memory_analysis().temp_size_in_bytes,
    }


def compare(report: Report, case: str, ours: Callable, hand: Callable, arguments: tuple) -> tuple[str, ...]:
    """Judge one case, and return its row; `hand` takes the leaves of `arguments`."""
    mine, theirs = plan(ours, *arguments), plan(hand, *jax.tree.leaves(arguments))
    met = all(mine[key] <= (1 + SLACK) * theirs[key] + (SMALL if key == "temporary bytes" else 0) for key in mine)
    report.note(f"compiled: {case}", ours=mine, hand=theirs)
    ratios = ", ".join(f"{key} {mine[key] / theirs[key]:.2f} x" for key in mine if theirs[key])
    report.judge(f"compiled: {case}", "all three", f"<= {1 + SLACK:g} x hand-written", ratios, met)
    return case, *(f"{mine[key]:,.0f} / {theirs[key]:,.0f}" for key in mine)


def cases() -> list[tuple[str, Callable, Callable, tuple]]:
    """Return name, function of arrays, hand-written function of their leaves, and arrays of each case."""
    rng = np.random.default_rng(0)
    vector, matrix = sa.asarray(rng.normal(size=N)), sa.asarray(rng.normal(size=(N, COLUMNS)))
    square = sa.asarray(rng.normal(size=(300, 300)))
    diagonal, diagonal2 = (sa.Diagonal(rng.normal(size=N) + 3) for _ in range(2))
    band, band2 = (sa.Banded(tuple(rng.normal(size=N - abs(k)) for k in OFFSETS), OFFSETS, (N, N)) for _ in range(2))

    def band_vector(low, main, up, x):
        return main * x + jnp.pad(low * x[:-1], (1, 0)) + jnp.pad(up * x[1:], (0, 1))

    def band_matrix(low, main, up, x):
        zero = jnp.zeros((1, x.shape[1]))
        below = jnp.concatenate([zero, low[:, None] * x[:-1]])
        above = jnp.concatenate([up[:, None] * x[1:], zero])
        return main[:, None] * x + below + above

    def band_band(al, am, au, bl, bm, bu):
        """Return the five diagonals of the product of two tridiagonal matrices."""
        main = am * bm + jnp.pad(al * bu, (1, 0)) + jnp.pad(au * bl, (0, 1))
        lower, upper = al * bm[:-1] + am[1:] * bl, am[:-1] * bu + au * bm[1:]
        return al[1:] * bl[:-1], lower, main, upper, au[:-1] * bu[1:]

    return [
        ("Dense + Dense", lambda a, b: a + b, jnp.add, (vector, vector)),
        ("exp(Dense) * Dense + Dense", lambda a: sa.exp(a) * a + a, lambda a: jnp.exp(a) * a + a, (vector,)),
        ("sum(Dense * Dense)", lambda a: sa.sum(a * a), lambda a: jnp.sum(a * a), (vector,)),
        ("Dense @ Dense, 300 x 300", lambda a: a @ a, lambda a: a @ a, (square,)),
        ("Diagonal + Diagonal", lambda a, b: a + b, jnp.add, (diagonal, diagonal2)),
        ("Diagonal @ Diagonal", lambda a, b: a @ b, jnp.multiply, (diagonal, diagonal2)),
        ("Diagonal @ vector", lambda a, x: a @ x, jnp.multiply, (diagonal, vector)),
        ("Diagonal @ matrix", lambda a, x: a @ x, lambda a, x: a[:, None] * x, (diagonal, matrix)),
        ("Banded + Banded", lambda a, b: a + b, lambda *d: tuple(map(jnp.add, d[:3], d[3:])), (band, band2)),
        ("2 * Banded", lambda a: 2 * a, lambda *d: tuple(2 * k for k in d), (band,)),
        ("Banded @ vector", lambda a, x: a @ x, band_vector, (band, vector)),
        ("Banded @ matrix", lambda a, x: a @ x, band_matrix, (band, matrix)),
        ("Banded @ Banded", lambda a, b: a @ b, band_band, (band, band2)),
        ("sum(Banded)", sa.sum, lambda *d: sum(map(jnp.sum, d)), (band,)),
        ("solve(Diagonal, vector)", sa.linalg.solve, lambda a, x: x / a, (diagonal, vector)),
    ]
