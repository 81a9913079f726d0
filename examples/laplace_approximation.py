"""Evidence of a latent random walk with counts, by a Laplace approximation with structured Hessians.

The logarithm of an intensity is a random walk, ``x[t + 1] = x[t] + noise / sqrt(tau)`` with ``x[0] ~ N(level, 1)``, and each count
is Poisson distributed with the mean ``exp(x[t])``. The posterior of ``x`` is approximated by a normal distribution at its
mode. Its precision matrix is the Hessian of the negative log-density, which `sa.hessian` finds to be tridiagonal, so
that the mode, the log-determinant and the gradient of the evidence cost ``O(n)``.

    python examples/laplace_approximation.py [--n 100000]

1. The mode, the evidence and its gradient for 200 counts, compared with dense matrices of NumPy and SciPy.
2. The same for many counts, compared with the directional derivative by differences.
3. The `tau` that maximizes the evidence, compared with the `tau` of the simulation.

H. Rue, S. Martino, N. Chopin, "Approximate Bayesian inference for latent Gaussian models by using integrated nested
Laplace approximations", 2009 (Journal of the Royal Statistical Society B 71).
"""

import argparse
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.optimize
from checks import Checks
from scipy.special import gammaln

import structarrays as sa

jax.config.update("jax_enable_x64", True)

LEVEL = 1.5


# ---- code that does not depend on structure -----------------------------------------------------------------------------


def negative_log_density(x, parameters, counts):
    """Return ``-log p(counts, x)`` without terms that are constant in `x`; `parameters` are ``(log(tau), level)``."""
    log_tau, level = parameters
    likelihood = jnp.sum(counts * x - jnp.exp(x))
    prior = -((x[0] - level) ** 2) / 2 - jnp.exp(log_tau) / 2 * jnp.sum((x[1:] - x[:-1]) ** 2)
    return -likelihood - prior


# ---- the approximation ---------------------------------------------------------------------------------------------------


def precision(x, parameters, counts):
    """Return the precision matrix of the approximation. The density is log-concave."""
    return sa.assume(sa.hessian(negative_log_density)(x, parameters, counts), "positive_definite")


def newton_step(x, parameters, counts):
    gradient = jax.grad(negative_log_density)(x, parameters, counts)
    return x - sa.linalg.solve(precision(x, parameters, counts), gradient)


@jax.jit
def mode(parameters, counts):
    """Return the mode of the posterior."""

    def improve(state):
        x, _ = state
        new = newton_step(x, parameters, counts)
        return new, jnp.max(jnp.abs(new - x))

    start = jnp.log(counts + 1.0)
    return jax.lax.while_loop(lambda state: state[1] > 1e-9, improve, (start, jnp.inf))[0]


@jax.jit
def log_evidence(parameters, counts):
    """Return the approximation of ``log p(counts)``."""
    # One more step from the mode has the derivative of the mode, so that the loop needs no derivative.
    x = newton_step(jax.lax.stop_gradient(mode(parameters, counts)), parameters, counts)
    log_tau, _ = parameters
    normalization = (x.size - 1) / 2 * log_tau - jnp.sum(jax.scipy.special.gammaln(counts + 1.0))
    log_determinant = sa.linalg.logdet(precision(x, parameters, counts)).to_jax()
    return normalization - negative_log_density(x, parameters, counts) - log_determinant / 2


value_and_gradient = jax.jit(jax.value_and_grad(log_evidence))


# ---- dense matrices of NumPy and SciPy -----------------------------------------------------------------------------------


def dense_evidence(parameters, counts):
    """Return the mode and the evidence by dense matrices, in code of its own."""
    log_tau, level = parameters
    n = len(counts)
    first, steps = np.eye(1, n), np.diff(np.eye(n), axis=0)
    prior = first.T @ first + np.exp(log_tau) * steps.T @ steps
    x = np.log(counts + 1.0)
    for _ in range(50):
        gradient = prior @ x - first[0] * level - counts + np.exp(x)
        change = scipy.linalg.solve(prior + np.diag(np.exp(x)), gradient, assume_a="pos")
        x = x - change
    density = np.sum(counts * x - np.exp(x) - gammaln(counts + 1))
    centered = x - level
    density -= centered @ prior @ centered / 2
    density += np.linalg.slogdet(prior)[1] / 2 - np.linalg.slogdet(prior + np.diag(np.exp(x)))[1] / 2
    return x, density


# ---- parts of the program ------------------------------------------------------------------------------------------------


def simulate(n):
    """Return n counts, and the `tau` with which the walk covers a distance of about 2."""
    rng, tau = np.random.default_rng(0), n / 4
    x = LEVEL + np.concatenate([[0.0], np.cumsum(rng.normal(size=n - 1)) / np.sqrt(tau)])
    return jnp.asarray(rng.poisson(np.exp(x)), float), tau


def compare(check, n=200):
    counts, tau = simulate(n)
    parameters = jnp.asarray([np.log(2 * tau), 1.0])
    Q = precision(mode(parameters, counts), parameters, counts)
    print(f"1. {n} counts: the precision matrix is a {type(Q).__name__} array with the offsets {Q.offsets}")
    check(type(Q) is sa.Banded and Q.offsets == (-1, 0, 1), "it is tridiagonal")
    x, expected = dense_evidence(parameters, np.asarray(counts))
    error = np.max(np.abs(mode(parameters, counts) - x))
    check(error < 1e-9, f"the mode agrees with dense matrices ({error:.0e})")
    value, gradient = value_and_gradient(parameters, counts)
    check(abs(value - expected) < 1e-9 * abs(expected), f"so does the evidence: {value:.6f}")
    differences = scipy.optimize.approx_fprime(
        np.asarray(parameters), lambda p: dense_evidence(p, np.asarray(counts))[1], 1e-5
    )
    error = np.max(np.abs(gradient - differences)) / np.max(np.abs(differences))
    check(error < 1e-4, f"its gradient agrees with differences of dense values ({error:.0e})")


def many(check, n):
    counts, tau = simulate(n)
    parameters = jnp.asarray([np.log(2 * tau), 1.0])
    for _ in range(2):  # the first call compiles
        jax.block_until_ready(value_and_gradient(parameters, counts))
    begin = time.perf_counter()
    value, gradient = jax.block_until_ready(value_and_gradient(parameters, counts))
    seconds = time.perf_counter() - begin
    print(f"\n2. {n:,} counts: value and gradient of the evidence in {seconds * 1e3:.0f} ms")
    x = mode(parameters, counts)
    slope = jnp.max(jnp.abs(jax.grad(negative_log_density)(x, parameters, counts)))
    check(slope < 1e-6, f"the gradient at the mode is zero ({slope:.0e})")
    direction, h = jnp.asarray([1.0, 0.5]), 1e-3
    above, below = (log_evidence(parameters + s * h * direction, counts) for s in (1, -1))
    slope, expected = gradient @ direction, (above - below) / (2 * h)
    check(abs(slope - expected) < 1e-5 * abs(expected), f"the derivative of {value:.1f} is {slope:.3f}")
    return counts, tau


def estimate(check, counts, tau):
    def negative(p):
        value, gradient = value_and_gradient(jnp.asarray(p), counts)
        return -float(value), -np.asarray(gradient)

    found = scipy.optimize.minimize(negative, [np.log(4 * tau), 1.0], jac=True, method="L-BFGS-B")
    estimated = np.exp(found.x[0])
    print(f"\n3. {found.nfev} evaluations: tau = {estimated:.0f}, in the simulation {tau:.0f}")
    check(abs(np.log(estimated / tau)) < 1, "the estimate is near")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=100_000, help="counts in parts 2 and 3")
    arguments = parser.parse_args()
    if arguments.n < 100:
        parser.error("--n must be 100 or more")
    sys.stdout.reconfigure(line_buffering=True)
    check = Checks()

    compare(check)
    with sa.densify("error"):
        estimate(check, *many(check, arguments.n))
    return check.finish()


if __name__ == "__main__":
    sys.exit(main())
