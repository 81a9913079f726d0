"""Sums of a base that is singular, or nearly so, and a term of low rank: Laplacians, null spaces, zeros on a diagonal.

The oracles are NumPy's, and the number of spanning trees of a path, which is one.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa
from structarrays._core.families.factored import Factored
from structarrays._structures.composite import estimates
from structarrays.testing import STRUCTURES, sample

N = 60


def laplacian(weights):
    diagonal = np.zeros(len(weights) + 1)
    diagonal[:-1] += weights
    diagonal[1:] += weights
    return sa.tridiagonal(-weights, diagonal, -weights)


def generator(rng, n=N):
    """Rows add up to zero, and the left null vector is another one."""
    lower, upper = rng.exponential(size=(2, n - 1))
    diagonal = np.zeros(n)
    diagonal[:-1] += upper
    diagonal[1:] += lower
    return sa.tridiagonal(-lower, diagonal, -upper)


def components(rng):
    """Three parts that nothing connects, and their indicators."""
    weights = rng.exponential(size=N - 1)
    weights[[19, 39]] = 0
    indicators = np.repeat(np.eye(3), N // 3, axis=0)
    return laplacian(weights) + sa.LowRank(indicators, indicators / N)


def spline(rng):
    """Second differences, of which all lines are a null space of two dimensions."""
    penalty = sa.Banded([np.ones(N - 2), np.full(N - 2, -2.0), np.ones(N - 2)], (0, 1, 2), (N - 2, N))
    lines = np.stack([np.ones(N), np.linspace(-1, 1, N)], axis=-1) * rng.uniform(1, 2)
    return penalty.mT @ penalty + sa.LowRank(lines, lines)


def diagonal(rng, value):
    entries = rng.normal(size=N)
    entries[rng.choice(N, 2, replace=False)] = value
    return sa.Diagonal(entries) + sa.LowRank(*rng.normal(size=(2, N, 3)))


MATRICES = {
    "weights + 1/n": lambda rng: laplacian(rng.exponential(size=N - 1)) + 1 / N,
    "Neumann + 1/n": lambda rng: laplacian(np.ones(N - 1)) + 1 / N,
    "multiple of ones": lambda rng: laplacian(rng.uniform(1, 2, N - 1)) + 10 ** rng.uniform(-3, 3),
    "generator + 1/n": lambda rng: generator(rng) + 1 / N,
    "generator + random": lambda rng: generator(rng) + sa.LowRank(*rng.normal(size=(2, N, 2))),
    "components": components,
    "spline": spline,
    "zeros": lambda rng: diagonal(rng, 0.0),
    "nearly zero": lambda rng: diagonal(rng, 1e-15),
    "complex": lambda rng: 1j * generator(rng) + sa.LowRank(rng.normal(size=(N, 1)) + 1j, rng.normal(size=(N, 1)) - 2j),
    "regular": lambda rng: laplacian(rng.exponential(size=N - 1)) + sa.Identity(N) + 1 / N,
}


def check(x, right, sign, logabsdet, solution):
    """The determinant within the rounding errors of its pivots and of the condition number, and a small backward error."""
    matrix = np.asarray(x)
    eps, condition = np.finfo(matrix.dtype).eps, np.linalg.cond(matrix)
    expected = np.linalg.slogdet(matrix)
    found = np.asarray(sign) * np.exp(np.asarray(logabsdet) - expected.logabsdet)
    np.testing.assert_allclose(found, expected.sign, rtol=0, atol=max(2 * N * eps, 8 * eps * np.max(condition)))
    solution = np.asarray(solution)
    residual = np.max(np.abs(matrix @ solution - right))
    scale = np.max(np.sum(np.abs(matrix), axis=-1)) * np.max(np.abs(solution)) + np.max(np.abs(right))
    assert residual <= 64 * eps * scale, residual / (eps * scale)


def functions(x, right):
    sign, logabsdet = sa.linalg.slogdet(x)
    return sign, logabsdet, sa.linalg.solve(x, right)


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("kind", MATRICES)
def test_determinants_and_solutions(kind, rng):
    compiled = jax.jit(functions)
    for seed in range(8):
        x, right = MATRICES[kind](rng), rng.normal(size=(N, 2))
        with sa.densify("error"):  # neither falls back
            results = compiled(x, right)
            eager = functions(x, right) if seed == 0 else None
        check(x, right, *results)
        if eager is not None:
            check(x, right, *eager)


@pytest.mark.slow
def test_a_stack_of_regular_and_singular_bases(rng):
    weights = rng.uniform(1, 2, (4, N - 1))
    bases = [laplacian(w) for w in weights]
    bases[1] = bases[1] + 0.5 * sa.Identity(N)
    diagonals = np.stack([np.asarray(sa.linalg.diagonal(b)) for b in bases])
    stack = sa.tridiagonal(-weights, diagonals, -weights) + sa.LowRank(np.ones((N, 1)), np.full((N, 1), 0.1))
    right = rng.normal(size=(N, 2))
    mapped = jax.vmap(lambda x: functions(x, right))(stack)
    for results in (functions(stack, right), mapped):
        for i in range(4):
            check(stack[i], right, *(r[i] for r in results))


def test_compiled_inverses_are_accurate_or_nan(rng):
    """The inverse of a sum has no dense form in compiled code, as its structure is static."""
    weights = rng.exponential(size=(5, N - 1))
    shifts = np.array([1e-15, 1e-12, 1e-9, 1e-6, 1])
    base = sa.tridiagonal(
        -weights, np.pad(weights, ((0, 0), (0, 1))) + np.pad(weights, ((0, 0), (1, 0))) + shifts[:, None], -weights
    )
    x = base + sa.LowRank(*np.broadcast_to(np.ones((N, 1)), (2, 5, N, 1)))
    expected = np.linalg.inv(np.asarray(x.to_dense()))
    found = np.asarray(jax.jit(sa.linalg.inv)(x).to_dense())
    given = np.isfinite(found).all((-2, -1))
    assert not np.isfinite(found[~given]).any()
    assert given[-1] and not given[0]
    size = np.max(np.abs(expected), (-2, -1))
    assert np.all(np.max(np.abs(found - expected), (-2, -1))[given] <= 1e-9 * size[given])


@pytest.mark.slow
def test_single_precision(rng):
    x = sa.astype(laplacian(rng.uniform(1, 2, N - 1)) + 1 / N, sa.float32)
    right = rng.normal(size=(N, 2)).astype(np.float32)
    check(x, right, *jax.jit(functions)(x, right))


@pytest.mark.costly
@pytest.mark.parametrize("compiled", [False, True])
def test_a_path_has_one_spanning_tree(compiled):
    """By the theorem of Kirchhoff the determinant of its Laplacian with 1/n added is n."""
    x = laplacian(np.ones(N - 1)) + 1 / N
    det, slogdet = (jax.jit(f) if compiled else f for f in (sa.linalg.det, sa.linalg.slogdet))
    assert abs(float(det(x)) - N) < 1e-9
    assert abs(float(slogdet(sa.assume(x, "positive_definite")).logabsdet) - np.log(N)) < 1e-11


@pytest.mark.slow
def test_a_large_path():
    n = 100_000
    with sa.densify("error"):
        x = laplacian(np.ones(n - 1)) + 1 / n
        assert abs(float(sa.linalg.slogdet(x).logabsdet) - np.log(n)) < 1e-4  # the condition number is 4e9


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("kind", ["weights + 1/n", "generator + random", "components", "zeros", "regular"])
@pytest.mark.parametrize("mode", ["jit", "vmap"])
def test_derivatives(kind, mode, rng):
    x = MATRICES[kind](rng)
    leaves, tree = jax.tree.flatten(x)
    direction = [jnp.asarray(rng.normal(size=leaf.shape)) for leaf in leaves]

    def derivatives(structured, leaves, direction):
        def value(leaves):
            x = jax.tree.unflatten(tree, leaves)
            x = x if structured else x.to_dense()
            return as_jax(sa.linalg.slogdet(x).logabsdet) + jnp.sum(jnp.sin(as_jax(sa.linalg.solve(x, sa.ones(N)))))

        gradient = jax.grad(value)
        return gradient(leaves), jax.jvp(gradient, (leaves,), (direction,))[1]

    expected = jax.jit(derivatives, static_argnums=0)(False, leaves, direction)
    if mode == "jit":
        found = jax.jit(derivatives, static_argnums=0)(True, leaves, direction)
    else:
        stacked = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), (leaves, direction))
        found = jax.tree.map(lambda r: r[1], jax.vmap(lambda *a: derivatives(True, *a))(*stacked))
    condition = np.linalg.cond(np.asarray(x))
    for order, wanted in zip(found, expected, strict=True):
        scale = max(np.max(np.abs(leaf)) for leaf in jax.tree.leaves(wanted))
        for one, other in zip(jax.tree.leaves(order), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=scale * max(1e-10, 1e-15 * condition**1.5))


def test_nan_and_infinity_stay_what_they_are():
    x = laplacian(np.ones(N - 1)) + 1 / N
    right = np.ones((N, 2))
    right[3, 1] = np.nan
    found = np.asarray(sa.linalg.solve(x, right))
    assert np.isfinite(found[:, 0]).all() and np.isnan(found[:, 1]).any()
    broken = laplacian(np.r_[np.nan, np.ones(N - 2)]) + 1 / N
    assert np.isnan(float(jax.jit(sa.linalg.slogdet)(broken).logabsdet))


SAMPLES = {
    f"{name}, {dtype}": x
    for name in STRUCTURES
    for dtype in ("float64", "complex128")
    if (x := sample(name, (12, 12), batch=(2,), dtype=dtype)) is not None
}


@pytest.mark.parametrize("name", SAMPLES)
def test_norms(name):
    """They are the largest sums of magnitudes of a row. Sums and products of arrays have upper bounds, and inverses an estimate."""
    x = SAMPLES[name]
    expected = np.max(np.sum(np.abs(np.asarray(x)), axis=-1), axis=-1)
    with sa.densify("error"):
        found = np.asarray(estimates.norm(x))[..., 0, 0]
    assert found.shape == expected.shape
    lower, upper = 1 - 1e-6, 1 + 1e-6
    if isinstance(x, sa.Inverse):
        lower = 0.3
    elif isinstance(x, Factored) and not isinstance(x, (sa.Kronecker, sa.Block)):
        upper = 12
    assert (found >= lower * expected).all() and (found <= upper * expected).all(), found / expected


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_tiny_and_huge_entries(scale):
    x = scale * laplacian(np.ones(N - 1)) + scale / N
    right = scale * np.arange(N * 2.0).reshape(N, 2)
    sign, logabsdet, solution = jax.jit(functions)(x, right)
    expected = np.log(N) + N * np.log(scale)
    assert float(sign) == 1 and abs(float(logabsdet) - expected) < 1e-13 * abs(expected) + 1e-10
    one = np.asarray(x) / scale
    residual = np.max(np.abs(one @ np.asarray(solution) - right / scale))
    assert residual <= 64 * np.finfo(float).eps * (4 * np.max(np.abs(solution)) + 2 * N)
