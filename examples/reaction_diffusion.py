"""Patterns of a reaction with diffusion on a square, by implicit steps and Newton's method with structured Jacobians.

The program is one residual in `jax.numpy`. `sa.jacobian` finds that its Jacobian has five diagonals, and computes only
these. Each Newton step is ``u - solve(J, F(u))``. The equation is that of Allen and Cahn: du/dt = a Δu + u - u³, in which two phases
separate, with no flux through the boundary.

    python examples/reaction_diffusion.py [--side 200] [--steps 5]

1. The Jacobian, compared with one that is derived by hand and with the derivative of JAX along a direction.
2. Implicit Euler steps: Newton's method converges quadratically, and the energy decreases in each step.
3. With 1,000,000 unknowns the Jacobian alone, compiled, and its cost.

S. M. Allen, J. W. Cahn, "A microscopic theory for antiphase boundary motion", 1979.
"""

import argparse
import functools
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from checks import Checks

import structarrays as sa

jax.config.update("jax_enable_x64", True)

DIFFUSION = 4.0  # in units of the squared distance between neighbours
TIME_STEP = 0.5


# ---- code that does not depend on structure -----------------------------------------------------------------------------


def laplacian(u):
    wide = jnp.pad(u, 1, mode="edge")
    return wide[2:, 1:-1] + wide[:-2, 1:-1] + wide[1:-1, 2:] + wide[1:-1, :-2] - 4 * u


def residual(new, old):
    """Return the residual of an implicit Euler step, of shape (side, side)."""
    return new - old - TIME_STEP * (DIFFUSION * laplacian(new) + new - new**3)


def energy(u):
    slopes = jnp.sum((u[1:] - u[:-1]) ** 2) + jnp.sum((u[:, 1:] - u[:, :-1]) ** 2)
    return DIFFUSION / 2 * slopes + jnp.sum((u**2 - 1) ** 2) / 4


# ---- Newton's method ----------------------------------------------------------------------------------------------------


@jax.jit
def newton_step(u, old):
    F, J = sa.linearize(lambda u: residual(u, old), u)
    change = sa.linalg.solve(J, F.ravel()).reshape(u.shape)
    return u - change, jnp.max(jnp.abs(change))


def implicit_step(old):
    """Return the next state and the sizes of the changes by Newton's method."""
    u, changes = old, []
    while not changes or changes[-1] > 1e-9 and len(changes) < 20:
        u, change = newton_step(u, old)
        changes.append(float(change))
    return u, changes


def jacobian_by_hand(u):
    """Return the Jacobian of `residual`, derived by hand."""
    side, n = u.shape[0], u.size
    index = np.arange(n)
    row, column = index // side, index % side
    edges = sum((k == edge).astype(float) for k in (row, column) for edge in (0, side - 1))
    diagonal = 1 - TIME_STEP * (DIFFUSION * (edges - 4) + 1 - 3 * u.ravel() ** 2)
    far = jnp.full(n - side, -TIME_STEP * DIFFUSION)
    near = jnp.where(column[:-1] < side - 1, -TIME_STEP * DIFFUSION, 0.0)
    return sa.Banded([far, near, diagonal, near, far], (-side, -1, 0, 1, side), (n, n))


# ---- parts of the program -----------------------------------------------------------------------------------------------


def start(side):
    return jnp.asarray(np.random.default_rng(0).uniform(-0.1, 0.1, (side, side)))


def compare(side, check):
    u = start(side)
    function = functools.partial(residual, old=u)
    J = jax.jit(sa.jacobian(function))(u)
    print(
        f"1. A square of {side} times {side} places: the Jacobian is a {type(J).__name__} array of {J.nbytes / 1e6:.1f} MB"
    )
    check(J.offsets == (-side, -1, 0, 1, side), "it has five diagonals")
    expected = jacobian_by_hand(u)
    error = max(float(jnp.max(jnp.abs(a - b))) for a, b in zip(J.diagonals, expected.diagonals, strict=True))
    check(error < 1e-12, f"it agrees with the Jacobian derived by hand ({error:.0e})")
    direction = jnp.cos(jnp.arange(u.size)).reshape(u.shape)
    pushed = jax.jvp(function, (u,), (direction,))[1]
    error = float(jnp.max(jnp.abs(J @ direction.ravel() - pushed.ravel())))
    check(error < 1e-12, f"its product with a direction agrees with jax.jvp ({error:.0e})")


def separate(side, steps, check):
    print(f"\n2. {steps} implicit steps")
    u, energies = start(side), []
    quadratic = True
    for i in range(steps):
        begin = time.perf_counter()
        u, changes = implicit_step(u)
        energies.append(float(energy(u)))
        print(
            f"  step {i + 1}: {len(changes)} Newton steps in {time.perf_counter() - begin:.2f} s, energy {energies[-1]:.2f}"
        )
        quadratic &= len(changes) <= 8
    check(quadratic, "Newton's method needs at most 8 steps")
    check(all(b <= a for a, b in zip(energies, energies[1:], strict=False)), "the energy decreases")


def cost_of_a_million(check, side=1000):
    u = start(side)
    print(f"\n3. The Jacobian for {side**2:,} unknowns")

    def seconds(compiled):
        jax.block_until_ready(compiled(u))
        times = []
        for _ in range(7):
            begin = time.perf_counter()
            jax.block_until_ready(compiled(u))
            times.append(time.perf_counter() - begin)
        return min(times)

    ours = jax.jit(sa.jacobian(functools.partial(residual, old=u))).lower(u).compile()
    by_hand = jax.jit(jacobian_by_hand).lower(u).compile()
    print(f"  sa.jacobian {seconds(ours) * 1e3:.1f} ms, by hand {seconds(by_hand) * 1e3:.1f} ms")
    plan = ours.memory_analysis()
    needed = plan.output_size_in_bytes + plan.temp_size_in_bytes
    check(needed < 20 * u.nbytes, f"it needs {needed / 1e6:.0f} MB, where a matrix would be {8e-6 * u.size**2:,.0f} MB")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=200, help="places along a side of the square")
    parser.add_argument("--steps", type=int, default=5, help="implicit steps")
    parser.add_argument("--large", type=int, default=1000, help="places along a side in the third part")
    arguments = parser.parse_args()
    if arguments.side < 3 or arguments.steps < 1 or arguments.large < 3:
        parser.error("--side and --large must be 3 or more, and --steps 1 or more")
    sys.stdout.reconfigure(line_buffering=True)
    check = Checks()

    compare(arguments.side, check)
    separate(arguments.side, arguments.steps, check)
    cost_of_a_million(check, arguments.large)
    return check.finish()


if __name__ == "__main__":
    sys.exit(main())
