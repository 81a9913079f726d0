"""Variances of factored matrices whose mean is much larger than the deviations, and norms of differences of similar matrices.

The oracle is NumPy in extended precision, with the exact values of the factors.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax, dense

import structarrays as sa

M, N = 60, 40
AXES = [None, 0, 1, (0, 1)]


def exact(u, v):
    return np.asarray(u, np.longdouble) @ np.asarray(v, np.longdouble).T


def factors(rng, dtype, mean, rank=1):
    """Factors of a matrix whose elements are near a mean; all columns, or all rows and columns, differ."""
    u = np.concatenate([mean + rng.normal(size=(M, 1)), rng.normal(size=(M, rank - 1))], axis=1)
    v = np.concatenate([np.ones((N, 1)), rng.normal(size=(N, rank - 1))], axis=1)
    return u.astype(dtype), v.astype(dtype)


def structures(rng, dtype, mean):
    """Arrays and their elements in extended precision."""
    for rank in (1, 3):
        u, v = factors(rng, dtype, mean, rank)
        a = exact(u, v)
        yield "low rank", sa.LowRank(u, v), a
        yield "transposed", sa.LowRank(u, v).mT, a.T
        yield (
            "product",
            sa.Product(sa.asarray(u), sa.Circulant(np.eye(1, rank)[0].astype(dtype)), sa.asarray(v.T.copy())),
            a,
        )
        stack = sa.LowRank(np.stack([u, -2 * u]), np.stack([v, v]))
        yield "stack", stack, np.stack([a, -2 * a])
    d = rng.normal(size=N).astype(dtype)
    u, v = factors(rng, dtype, mean, 2)
    yield "sum", sa.Diagonal(d) + sa.LowRank(u[:N], v), np.diag(np.asarray(d, np.longdouble)) + exact(u[:N], v)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize(("dtype", "mean"), [("float32", 1e3), ("float64", 1e3), ("float64", 1e8)])
def test_variances_far_from_zero(dtype, mean, axis, rng):
    for name, x, a in structures(rng, dtype, mean):
        tolerance = 100 * np.finfo(dtype).eps * mean
        for f in (sa.var, sa.std):
            expected = getattr(np, f.__name__)(a, axis=axis)
            for run in (f, jax.jit(f, static_argnames="axis")):
                with sa.densify("error"):
                    found = dense(run(x, axis=axis))
                # Relative to the deviation of all elements: a column of equal elements has none.
                np.testing.assert_allclose(found, expected.astype(float), rtol=tolerance, atol=tolerance, err_msg=name)


def test_correction_and_dimensions(rng):
    u, v = factors(rng, "float64", 1e6, 2)
    a = exact(u, v).astype(float)
    for axis in AXES:
        found = sa.var(sa.LowRank(u, v), axis=axis, correction=1, keepdims=True)
        np.testing.assert_allclose(dense(found), a.var(axis, ddof=1, keepdims=True), rtol=1e-7)
    stack = sa.LowRank(np.stack([u, u + 1]), np.stack([v, v]))
    b = np.stack([a, exact(u + 1, v).astype(float)])
    for axis in (0, (0, 1), (0, 2), None):
        np.testing.assert_allclose(dense(sa.var(stack, axis=axis)), b.var(axis), rtol=1e-7, atol=1e-7)
    assert np.isnan(dense(sa.var(sa.LowRank(u[:0], v), axis=0))).all()


def test_derivatives_of_variances(rng):
    u, v = factors(rng, "float64", 1e4, 2)
    x, a = sa.LowRank(u, v), exact(u, v).astype(float)
    du, dv = rng.normal(size=u.shape), rng.normal(size=v.shape)
    da = du @ v.T + u @ dv.T
    for axis in (0, 1):
        _, found = jax.jvp(lambda u, v, a=axis: as_jax(sa.var(sa.LowRank(u, v), axis=a)), (u, v), (du, dv))
        expected = 2 * np.mean((a - a.mean(axis, keepdims=True)) * da, axis=axis)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7 * abs(expected).max())
    gradient = jax.grad(lambda s: as_jax(sa.var(x * s)))(1.0)
    np.testing.assert_allclose(gradient, 2 * a.var(), rtol=1e-6)


@pytest.mark.parametrize("change", [1e-2, 1e-5, 1e-9, 0.0])
@pytest.mark.parametrize("dtype", [float, complex])
def test_norms_of_differences(dtype, change, rng):
    u, v = (rng.normal(size=(n, 3)).astype(dtype) for n in (M, N))
    if dtype is complex:
        u, v = u + 1j * rng.normal(size=u.shape), v - 1j * rng.normal(size=v.shape)
    other = u * (1 + change * rng.normal(size=u.shape))
    difference = sa.LowRank(u, v) - sa.LowRank(other, v)
    a = np.asarray((u - other).astype(np.clongdouble) @ v.T.astype(np.clongdouble), complex)
    scale = np.linalg.norm(u) * np.linalg.norm(v)
    for run in (lambda f: f, jax.jit):
        for found, expected in [
            (run(sa.linalg.matrix_norm)(difference), np.linalg.norm(a)),
            (run(lambda x: sa.linalg.vector_norm(x))(difference), np.linalg.norm(a)),
            (run(lambda x: sa.linalg.vector_norm(x, axis=0))(difference), np.linalg.norm(a, axis=0)),
            (run(lambda x: sa.linalg.vector_norm(x, axis=1))(difference), np.linalg.norm(a, axis=1)),
        ]:
            np.testing.assert_allclose(dense(found), expected, rtol=1e-13, atol=1e-14 * scale)
    several = jax.vmap(lambda w: as_jax(sa.linalg.matrix_norm(sa.LowRank(u, v) - sa.LowRank(w, v))))(
        jnp.stack([other, 2 * u, 0 * u])
    )
    np.testing.assert_allclose(several[0], np.linalg.norm(a), rtol=1e-13, atol=1e-14 * scale)
    np.testing.assert_allclose(several[1:], np.linalg.norm(u @ v.T), rtol=1e-12)


def test_norms_have_derivatives_where_factors_are_dependent(rng):
    u, v = rng.normal(size=(M, 2)), rng.normal(size=(N, 2))
    du = rng.normal(size=u.shape)

    def norm(u):
        return as_jax(sa.linalg.matrix_norm(sa.LowRank(jnp.concatenate([u, u], 1), jnp.concatenate([v, -0.5 * v], 1))))

    _, found = jax.jvp(norm, (u,), (du,))
    a, da = 0.5 * u @ v.T, 0.5 * du @ v.T
    np.testing.assert_allclose(found, np.sum(a * da) / np.linalg.norm(a))
    np.testing.assert_allclose(np.sum(jax.grad(norm)(u) * du), found)
    assert np.isfinite(jax.hessian(norm)(u)).all()


@pytest.mark.parametrize("kind", ["low rank", "rows", "two of rank one", "with a diagonal", "product", "stack"])
@pytest.mark.parametrize("axis", AXES, ids=str)
def test_second_derivatives_where_variances_are_zero(kind, axis):
    """Variances are quadratic in the parameter: ``s**2`` times the variance of the direction."""
    ones, t = np.ones((M, 1)), np.linspace(-1.0, 1.0, M)[:, None]
    row = np.linspace(-2.0, 1.0, M)[:, None]
    matrices = {
        "low rank": (lambda s: sa.LowRank(ones + s * t, ones), t @ ones.T),
        "rows": (lambda s: sa.LowRank(ones, ones + s * t), ones @ t.T),
        "two of rank one": (lambda s: sa.LowRank(ones + s * t, ones) + s * sa.LowRank(ones, row), t + row.T),
        "with a diagonal": (lambda s: sa.LowRank(ones + s * t, ones) + sa.Diagonal(jnp.zeros(M)), t @ ones.T),
        "product": (lambda s: sa.Product(sa.asarray(ones + s * t), sa.asarray(ones.T)), t @ ones.T),
        "stack": (lambda s: sa.LowRank(jnp.stack([ones + s * t, ones - s * t]), ones), np.stack([t, -t]) @ ones.T),
    }
    make, direction = matrices[kind]
    expected = 2 * np.sum(np.var(direction, axis=axis))
    found = jax.hessian(lambda s: as_jax(sa.sum(sa.var(make(s), axis=axis))))(0.0)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
