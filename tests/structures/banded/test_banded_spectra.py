"""Eigenvalues and singular values of banded matrices without their dense form, against NumPy's of it."""

import jax
import numpy as np
import pytest
from support import as_jax

import structarrays as sa

pytestmark = pytest.mark.costly

DTYPES = ["float32", "float64", "complex64", "complex128"]


def banded(shape, offsets, dtype="float64", batch=(), seed=0):
    rng = np.random.default_rng(seed)
    m, n = shape

    def diagonal(k):
        size = (*batch, min(m, n - k) if k >= 0 else min(m + k, n))
        values = rng.normal(size=size)
        return (values + 1j * rng.normal(size=size) if "complex" in dtype else values).astype(dtype)

    return sa.Banded([diagonal(k) for k in offsets], offsets, shape)


def hermitian_part(a):
    return (a + np.swapaxes(a, -1, -2).conj()) / 2


def close(x, expected, dtype="float64"):
    eps = np.finfo(dtype).eps
    x = np.asarray(x)
    assert x.shape == expected.shape and x.dtype == np.zeros(0, dtype).real.dtype
    np.testing.assert_allclose(x, expected, rtol=0, atol=200 * eps * max(1, np.abs(expected).max(initial=0)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("offsets", [(-1, 0, 1), (0, 2), (-1,), (-2, 0, 1)])
def test_eigvalsh(offsets, dtype):
    """Of the Hermitian part, as of a dense matrix."""
    for batch, n in [((), 60), ((2,), 60), ((), 1 + max(map(abs, offsets)))]:
        x = banded((n, n), offsets, dtype, batch)
        with sa.densify("error"):
            values = sa.linalg.eigvalsh(x)
        close(values, np.linalg.eigvalsh(hermitian_part(np.asarray(x)).astype("complex128")), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("offsets", [(-1, 0, 1), (1,), (0, 1), (-2, 0, 1)])
def test_eigh(offsets, dtype):
    """The vectors of a tridiagonal matrix come from LAPACK's routine for it."""
    for batch, n in [((), 300), ((2,), 40), ((), 1 + max(map(abs, offsets)))]:
        x = banded((n, n), offsets, dtype, batch)
        dense = hermitian_part(np.asarray(x)).astype("complex128")
        for function in (sa.linalg.eigh, jax.jit(sa.linalg.eigh)):
            values, vectors = map(np.asarray, function(x))
            close(values, np.linalg.eigvalsh(dense), dtype)
            assert vectors.dtype == x.dtype
            bound = 50 * np.finfo(dtype).eps * max(1, np.abs(values).max())
            assert np.abs(dense @ vectors - vectors * values[..., None, :]).max() <= bound
            assert np.abs(np.swapaxes(vectors, -1, -2).conj() @ vectors - np.eye(n)).max() <= 50 * np.finfo(dtype).eps


HARD = {
    "glued": (np.tile(np.abs(np.arange(21.0) - 10), 10), np.where(np.arange(1, 210) % 21 == 0, 1e-8, 1.0)),
    "graded": (10.0 ** -np.linspace(0, 30, 210), 10.0 ** -np.linspace(1, 31, 209)),
    "decoupled": (np.ones(210), np.zeros(209)),
    "huge": (np.full(210, 2e300), np.full(209, -1e300)),
    "tiny": (np.full(210, 2e-300), np.full(209, -1e-300)),
}


@pytest.mark.parametrize("name", HARD)
def test_eigenvectors_of_hard_tridiagonal_matrices(name):
    main, beside = HARD[name]
    x = sa.tridiagonal(beside * np.exp(0.3j), main, beside * np.exp(-0.3j))
    values, vectors = map(np.asarray, sa.linalg.eigh(x))
    dense, size = np.asarray(x), np.abs(main).max()
    np.testing.assert_allclose(vectors.conj().T @ vectors, np.eye(210), atol=1e-13)
    np.testing.assert_allclose(dense / size @ vectors, vectors * (values / size), atol=1e-13)


def test_eigh_of_stacks_and_of_values_that_are_not_finite():
    x = banded((3, 3), (-1, 0, 1), batch=(4,))
    values, vectors = (np.asarray(part) for part in jax.vmap(sa.linalg.eigh)(x))
    dense = hermitian_part(np.asarray(x))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(dense), atol=1e-14)
    np.testing.assert_allclose(dense @ vectors, vectors * values[:, None], atol=1e-14)
    main = np.ones((2, 300))
    main[1, 5] = np.inf
    values, vectors = sa.linalg.eigh(sa.tridiagonal(np.ones((2, 299)), main, np.ones((2, 299))))
    for part in map(np.asarray, (values, vectors)):
        assert np.isfinite(part[0]).all() and np.isnan(part[1]).all()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives_of_eigenvectors(dtype):
    x = banded((9, 9), (-1, 0, 1), dtype)
    weights = np.random.default_rng(1).normal(size=(9, 9))

    def of(values, vectors):
        """A function that does not depend on the phases of the vectors."""
        projections = (vectors * weights[0]) @ vectors.conj().mT
        return (jax.numpy.sin(values) @ weights[1]) + (projections.real * weights).sum()

    def structured(x):
        values, vectors = sa.linalg.eigh(x)
        return of(as_jax(values), as_jax(vectors))

    found = jax.grad(structured)(x)
    expected = jax.grad(lambda a: of(*jax.numpy.linalg.eigh(a)))(jax.numpy.asarray(np.asarray(x)))
    for k in (-1, 0, 1):
        want = (np.diagonal(expected, k) + np.diagonal(expected, -k).conj()) / 2
        np.testing.assert_allclose(np.asarray(found.diagonal(k)), want, atol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("shape", [(280, 280), (290, 270), (270, 290), (400, 270), (270, 400), (7, 4), (3, 9)])
@pytest.mark.parametrize("offsets", [(-1, 0, 1), (-2, 0), (1,)])
def test_svdvals(offsets, shape, dtype):
    x = banded(shape, offsets, dtype)
    with sa.densify("error"):
        values = sa.linalg.svdvals(x)
    close(values, np.linalg.svd(np.asarray(x).astype("complex128"), compute_uv=False), dtype)


def test_of_no_diagonals_and_of_no_rows():
    zero = sa.Banded([], (), (80, 80))
    for function in (sa.linalg.eigvalsh, sa.linalg.svdvals):
        close(function(zero), np.zeros(80))
        close(function(sa.Banded([], (), (0, 0))), np.zeros(0))
    assert int(sa.linalg.matrix_rank(zero)) == 0


def test_batches_under_vmap_and_jit():
    x = banded((260, 260), (-1, 0, 1), batch=(3,))
    for function in (sa.linalg.eigvalsh, sa.linalg.svdvals):
        expected = np.asarray(function(x))
        close(jax.vmap(function)(x), expected)
        close(jax.jit(function)(x), expected)


def test_norms_and_ranks():
    x = banded((300, 280), (0, 1))
    s = np.linalg.svd(np.asarray(x), compute_uv=False)
    with sa.densify("error"):
        for order, expected in [(2, s[0]), (-2, s[-1]), ("nuc", s.sum())]:
            close(sa.linalg.matrix_norm(x, ord=order), np.asarray(expected))
            assert sa.linalg.matrix_norm(x, ord=order, keepdims=True).shape == (1, 1)
        assert int(sa.linalg.matrix_rank(x)) == 280
        tolerance = (s[99] + s[100]) / 2 / s[0]
        assert int(sa.linalg.matrix_rank(x, rtol=tolerance)) == 100


def test_what_is_not_finite():
    diagonal = np.ones((2, 300))
    diagonal[1, 3] = np.nan
    x = sa.Banded([diagonal, np.ones(299)], (0, 1), (300, 300))
    for function in (sa.linalg.eigvalsh, sa.linalg.svdvals):
        values = np.asarray(function(x))
        assert np.isfinite(values[0]).all() and np.isnan(values[1]).all()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("function, shape", [("eigvalsh", (90, 90)), ("svdvals", (280, 270))])
def test_derivatives(function, shape, dtype):
    """Forward and reverse, first and second order, against JAX's own of the dense form."""
    x, dx = banded(shape, (-1, 0, 1), dtype), banded(shape, (-1, 0, 1), dtype, seed=1)
    f = getattr(sa.linalg, function)
    weights = np.cos(np.arange(min(shape)))
    dense = {"eigvalsh": jax.numpy.linalg.eigvalsh, "svdvals": lambda a: jax.numpy.linalg.svd(a, compute_uv=False)}

    def ours(t):
        return f(x + t * dx).data @ weights

    a, da = np.asarray(x), np.asarray(dx)

    def theirs(t):
        return dense[function](a + t * da) @ weights

    for order in (jax.grad, lambda g: jax.jacfwd(jax.grad(g)), lambda g: jax.jacfwd(jax.jacfwd(g))):
        np.testing.assert_allclose(order(ours)(0.0), order(theirs)(0.0), rtol=1e-7)

    g = jax.grad(lambda x: f(x).data @ weights)(x)
    assert type(g) is sa.Banded and g.offsets == x.offsets


@pytest.mark.slow
def test_a_large_one():
    """A discrete Laplacian of so many rows that its dense form would take 3.2 GB; its eigenvalues are known."""
    n = 20_000
    x = sa.tridiagonal(-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1))
    values = np.asarray(sa.linalg.eigvalsh(x))
    np.testing.assert_allclose(values, 2 - 2 * np.cos(np.arange(1, n + 1) * np.pi / (n + 1)), rtol=0, atol=1e-13)
    with pytest.raises(sa.DensifyError, match="the derivative of linalg.eigvalsh"):
        jax.grad(lambda x: sa.sum(sa.linalg.eigvalsh(x)).data)(x)


def test_the_blocks_of_a_block_tridiagonal_matrix():
    rng = np.random.default_rng(0)
    x = sa.block_tridiagonal(*(rng.normal(size=(k, 2, 2)) for k in (149, 150, 149)))
    a = np.asarray(x)
    with sa.densify("error"):
        close(sa.linalg.eigvalsh(x), np.linalg.eigvalsh(hermitian_part(a)))
        s = np.linalg.svd(a, compute_uv=False)
        close(sa.linalg.svdvals(x), s)
        close(sa.linalg.matrix_norm(x, ord="nuc"), s.sum())
        assert int(sa.linalg.matrix_rank(x)) == 300


@pytest.mark.slow
def test_toeplitz_matrices_of_few_diagonals():
    for shape in ((300, 300), (300, 280)):
        x = sa.Toeplitz([2.0, -1.0], [2.0, 0.5], shape=shape)
        a = np.asarray(x)
        s = np.linalg.svd(a, compute_uv=False)
        with sa.densify("error"):
            close(sa.linalg.svdvals(x), s)
            close(sa.linalg.matrix_norm(x, ord=2), s[0])
            assert int(sa.linalg.matrix_rank(x)) == np.linalg.matrix_rank(a)
            if shape[0] == shape[1]:
                close(sa.linalg.eigvalsh(x), np.linalg.eigvalsh(hermitian_part(a)))


def test_what_is_done_is_explained():
    x = banded((300, 300), (-1, 0, 1))
    assert "O(n**2 w)" in str(sa.explain(sa.linalg.eigvalsh, x))
    assert "O(n**2 w)" in str(sa.explain(sa.linalg.svdvals, x))
