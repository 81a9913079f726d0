"""Norms and variances of sums whose terms cancel: differences of similar matrices, with NumPy in extended precision as the oracle."""

import jax
import numpy as np
import pytest
from support import as_jax, dense

import structarrays as sa


def structures(rng):
    """Functions of a factor near one, which make matrices that differ little."""
    a, b = rng.normal(size=(2, 6, 6))
    v, d = rng.normal(size=(2, 36))
    spd = a @ a.T + 6 * np.eye(6)
    yield "Kronecker", lambda s: sa.Kronecker(a * s, b)
    yield "KroneckerSum", lambda s: sa.KroneckerSum(a * s, b * s)
    yield "Inverse", lambda s: sa.Inverse(sa.Kronecker(spd * s, spd))
    yield "Product", lambda s: sa.Product(sa.Diagonal(d * s), sa.Circulant(v), sa.Diagonal(d))


@pytest.mark.parametrize("change", [1e-3, 1e-7, 1e-10, 0.0])
def test_norms_of_differences(change, rng):
    for name, make in structures(rng):
        x, y = make(1.0), make(1 + change)
        a = np.asarray(dense(x), np.longdouble) - np.asarray(dense(y), np.longdouble)
        scale = 1e-14 * np.linalg.norm(dense(x).astype(float))
        for run in (lambda f: f, jax.jit):
            norm = dense(run(lambda x, y: sa.linalg.matrix_norm(x - y))(x, y))
            rows = dense(run(lambda x, y: sa.linalg.vector_norm(x - y, axis=1))(x, y))
            np.testing.assert_allclose(norm, float(np.sqrt((a**2).sum())), rtol=1e-12, atol=scale, err_msg=name)
            np.testing.assert_allclose(rows, np.sqrt((a**2).sum(1)).astype(float), rtol=1e-12, atol=scale, err_msg=name)


def test_variances_of_sums(rng):
    for name, make in structures(rng):
        x = make(1.0) + 1e7
        a = np.asarray(dense(make(1.0)), np.longdouble)
        for axis in (None, 0, 1):
            found = dense(sa.var(x, axis=axis))
            np.testing.assert_allclose(found, a.var(axis).astype(float), rtol=1e-6, atol=1e-7, err_msg=name)


def test_derivatives(rng):
    for name, make in structures(rng):
        x, y = make(1.0), make(1 + 1e-6)
        a = dense(x).astype(float) - dense(y)

        def norm(t, x=x, y=y):
            return as_jax(sa.linalg.matrix_norm(t * x - y))

        expected = np.sum(a * dense(x)) / np.linalg.norm(a)
        for run in (jax.grad(norm), jax.jit(jax.jacfwd(norm))):
            np.testing.assert_allclose(run(1.0), expected, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("change", [1e-6, 1e-10, 0.0])
def test_low_rank_may_cancel_stored_entries(change):
    """Unit vectors as columns of the factors, which replace two elements of a diagonal."""
    n = 60
    units = 1e3 * np.eye(n)[:, :2]
    diagonal = np.r_[-1e6, -1e6 * (1 + change), np.zeros(n - 2)]
    x = sa.Sum(sa.Diagonal(diagonal), sa.LowRank(units, units))
    expected = abs(diagonal[1] + 1e6)
    for run in (lambda f: f, jax.jit):
        np.testing.assert_allclose(dense(run(sa.linalg.matrix_norm)(x)), expected, rtol=1e-12)
        norms = dense(run(lambda x: sa.linalg.vector_norm(x, axis=0))(x))
        np.testing.assert_allclose(norms, expected * (np.arange(n) == 1), rtol=1e-12)


def test_large_sums_allocate_no_elements(rng):
    n = 1000
    a, b, c = rng.normal(size=(3, n, n))
    x = sa.Kronecker(a, b) - sa.Kronecker(a, c)
    y = sa.Kronecker(a, b) - sa.Kronecker(c, b)
    for z, expected in [(x, np.linalg.norm(a) * np.linalg.norm(b - c)), (y, np.linalg.norm(a - c) * np.linalg.norm(b))]:
        compiled = jax.jit(lambda z: sa.linalg.matrix_norm(z)).lower(z).compile()
        assert compiled.memory_analysis().temp_size_in_bytes < 10**8
        np.testing.assert_allclose(dense(sa.linalg.matrix_norm(z)), expected)
