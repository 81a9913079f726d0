"""Heat in a rod and in a plate, by Diffrax and its implicit solvers, with structured arrays for the Laplacian.

The vector fields below are ``L @ y``. Everything else is unchanged Diffrax: its Runge-Kutta methods, its Newton
iterations, and Lineax's LU factorization of the Jacobian, which multiplies by the columns of an identity matrix. With
10 000 unknowns such a matrix takes 800 MB. `sa.structured` runs the same program on a tridiagonal array or on a
Kronecker sum. The Jacobian has the same structure, and a solution with its "LU factors" has the cost of the structure.

    python examples/heat_equation.py [--n 10000] [--side 100]

1. A rod, by an explicit method for a short time and by an implicit method for a long time, compared with the exact
   solution.
2. The same rod with a nonlinear reaction (Fisher's equation), compared with SciPy's LSODA with a banded Jacobian.
3. A plate, whose Laplacian is a Kronecker sum, compared with the exact solution.
4. The derivative of the result by the conductivity at each place of the rod: a gradient through the implicit solver.

P. Kidger, "On Neural Differential Equations", 2021 (Diffrax). R. A. Fisher, "The wave of advance of advantageous
genes", 1937.
"""

import argparse
import functools
import sys
import time

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from checks import Checks
from scipy.integrate import solve_ivp

import structarrays as sa

jax.config.update("jax_enable_x64", True)

TOLERANCE = 1e-5  # of the results; the tolerance of the solvers is smaller


# ---- code that does not depend on structure -----------------------------------------------------------------------------


def heat(time, y, L):
    return L @ y


def heat_with_reaction(time, y, args):
    L, conductivity, rate = args
    return conductivity * (L @ y) + rate * y * (1 - y)


def solve(field, solver, args, y0, end):
    """Return the final state and the number of steps."""
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        solver,
        t0=0.0,
        t1=end,
        dt0=None,
        y0=y0,
        args=args,
        stepsize_controller=diffrax.PIDController(rtol=1e-6, atol=1e-8),
        max_steps=100_000,
    )
    return solution.ys[-1], solution.stats["num_steps"]


def mean_square(L, y0, end, steps):
    """Return the mean square of the final state, by the implicit Euler method; the example differentiates it."""
    solver = diffrax.ImplicitEuler(root_finder=diffrax.VeryChord(rtol=1e-8, atol=1e-10))
    term, adjoint = diffrax.ODETerm(heat), diffrax.DirectAdjoint()
    solution = diffrax.diffeqsolve(term, solver, 0.0, end, end / steps, y0, L, adjoint=adjoint, max_steps=steps + 1)
    return jnp.mean(solution.ys[-1] ** 2)


# ---- the Laplacian ------------------------------------------------------------------------------------------------------


def gradient_matrix(n: int) -> sa.Banded:
    """Return the matrix of difference quotients, for n places inside of the unit interval and zeros at its ends."""
    ones = np.full(n, n + 1.0)
    return sa.Banded((ones, -ones), (0, -1), (n + 1, n))


def laplacian(n: int) -> sa.Banded:
    D = gradient_matrix(n)
    return -(D.mT @ D)


def eigenvalue(n: int, k: int) -> float:
    """Return the eigenvalue of the Laplacian for the eigenvector ``sin(k pi x)``."""
    return -4 * (n + 1) ** 2 * np.sin(np.pi * k / (2 * n + 2)) ** 2


def waves(n: int, amplitudes: dict, end: float = 0.0) -> np.ndarray:
    """Return a sum of waves after the time `end`: the exact solution."""
    x = np.arange(1, n + 1) / (n + 1)
    return sum(a * np.exp(eigenvalue(n, k) * end) * np.sin(k * np.pi * x) for k, a in amplitudes.items())


# ---- parts of the program -----------------------------------------------------------------------------------------------


def compiled(function, *args):
    """Compile a function for structured arrays; return it with its log and the bytes that XLA plans."""
    start = time.perf_counter()
    with sa.densify("error"), sa.record() as log:
        program = jax.jit(sa.structured(function)).lower(*args).compile()
    plan = program.memory_analysis()
    needed = plan.argument_size_in_bytes + plan.output_size_in_bytes + plan.temp_size_in_bytes
    return program, log, needed, time.perf_counter() - start


def report(name, args, program, log, needed, compilation, unknowns, check):
    """Run a compiled solve, print its cost, and return its result."""
    start = time.perf_counter()
    y, steps = jax.block_until_ready(program(*args))
    elapsed = time.perf_counter() - start
    print(f"  {name}: {int(steps)} steps in {elapsed:.2f} s (compiled in {compilation:.1f} s)")
    dense = 8 * unknowns**2
    check(
        not log.densifications and needed < dense / 10,
        f"no array was made dense: {needed / 1e6:.1f} MB in all, where a matrix would be {dense / 1e6:.0f} MB",
    )
    return np.asarray(y)


def agrees(found, expected, what, check) -> None:
    error = np.max(np.abs(found - expected))
    check(error <= TOLERANCE, f"it agrees with {what} ({error:.0e})")


def rod(n: int, check) -> None:
    L = laplacian(n)
    print(f"1. A rod of {n:,} places; its Laplacian is a {type(L).__name__} array of {L.nbytes / 1e6:.2f} MB")
    amplitudes, end = {1: 1.0, 3: 0.5, n // 100 + 1: 0.25}, 1000 / n**2
    function = functools.partial(solve, heat, diffrax.Tsit5())
    args = (L, jnp.asarray(waves(n, amplitudes)), jnp.asarray(end))
    y = report(f"Tsit5, up to {end:.0e}", args, *compiled(function, *args), n, check)
    agrees(y, waves(n, amplitudes, end), "the exact solution", check)

    function, end = functools.partial(solve, heat_with_reaction, diffrax.Kvaerno5()), 0.1
    rate = jnp.asarray(0.0)
    args = ((L, jnp.asarray(1.0), rate), jnp.asarray(waves(n, amplitudes)), jnp.asarray(end))
    program = compiled(function, *args)
    y = report(f"Kvaerno5, up to {end:g}", args, *program, n, check)
    agrees(y, waves(n, amplitudes, end), "the exact solution", check)

    conductivity, rate, end = 1e-4, 10.0, 2.0
    print(f"\n2. The same, compiled program with a reaction: two fronts, up to {end:g}")
    x = np.arange(1, n + 1) / (n + 1)
    start = np.exp(-(((x - 0.5) / 0.02) ** 2))
    args = ((L, jnp.asarray(conductivity), jnp.asarray(rate)), jnp.asarray(start), jnp.asarray(end))
    y = report("Kvaerno5", args, *program, n, check)
    begin = time.perf_counter()
    expected = fisher_by_scipy(conductivity * (n + 1) ** 2, rate, start, end)
    print(f"  SciPy's LSODA, given the bandwidth of the Jacobian, to 1e-9: {time.perf_counter() - begin:.2f} s")
    agrees(y, expected, "SciPy", check)


def fisher_by_scipy(diffusion, rate, start, end) -> np.ndarray:
    def field(time, y):
        second = -2 * y
        second[1:] += y[:-1]
        second[:-1] += y[1:]
        return diffusion * second + rate * y * (1 - y)

    return solve_ivp(field, (0, end), start, "LSODA", [end], rtol=1e-9, atol=1e-11, lband=1, uband=1).y[:, -1]


def plate(side: int, check) -> None:
    line = sa.assume(laplacian(side).to_dense(), "symmetric")
    L, n, end = sa.KroneckerSum(line, line), side**2, 0.05
    print(
        f"\n3. A plate of {side} times {side} places; its Laplacian is a {type(L).__name__} of {L.nbytes / 1e6:.2f} MB"
    )
    first, second = {1: 1.0, 2: 0.5}, {1: 1.0, 3: 0.5}
    args = (L, jnp.asarray(np.kron(waves(side, first), waves(side, second))), jnp.asarray(end))
    function = functools.partial(solve, heat, diffrax.Kvaerno5())
    y = report(f"Kvaerno5, up to {end:g}", args, *compiled(function, *args), n, check)
    agrees(y, np.kron(waves(side, first, end), waves(side, second, end)), "the exact solution", check)


def conductivities(n: int, check) -> None:
    """Compute the derivative by the conductivity between neighbouring places of the rod."""
    D, y0, end, steps = gradient_matrix(n), jnp.asarray(waves(n, {1: 1.0})), 0.1, 10
    print(f"\n4. The derivative of what is left after {end:g} by the conductivity at each of {n + 1:,} places")

    def left(conductivity):
        L = -(D.mT @ sa.Diagonal(conductivity) @ D)
        return sa.structured(mean_square)(L, y0, end, steps)

    ones = jnp.ones(n + 1)
    with sa.densify("error"):
        gradient = jax.jit(jax.grad(left)).lower(ones).compile()
        jax.block_until_ready(gradient(ones))
        start = time.perf_counter()
        slope = np.asarray(jax.block_until_ready(gradient(ones)))
        print(f"  jax.grad through {steps} implicit steps: {1e3 * (time.perf_counter() - start):.0f} ms")
    # A wave is an eigenvector of each step, so there is a formula for the derivative. It shows that heat flows where
    # the wave is steep, at the ends.
    step = end / steps
    factor = 1 / (1 - step * eigenvalue(n, 1))
    expected = -2 * step * steps / n * factor ** (2 * steps + 1) * np.asarray(D @ y0) ** 2
    error = np.max(np.abs(slope - expected)) / np.max(np.abs(expected))
    check(error <= TOLERANCE, f"it agrees with the formula for one wave (relative difference {error:.0e})")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=10_000, help="places of the rod")
    parser.add_argument("--side", type=int, default=100, help="places along a side of the plate")
    arguments = parser.parse_args()
    if arguments.n < 500 or arguments.side < 30:
        parser.error("--n must be 500 or more, and --side 30 or more")
    sys.stdout.reconfigure(line_buffering=True)
    check = Checks()

    rod(arguments.n, check)
    plate(arguments.side, check)
    conductivities(arguments.n, check)
    return check.finish()


if __name__ == "__main__":
    sys.exit(main())
