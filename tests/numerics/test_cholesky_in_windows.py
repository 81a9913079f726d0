"""Cholesky factors of bands by windows of columns. The oracles are NumPy's dense factor, and the factor without windows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from support import as_jax

import structarrays as sa
from structarrays._numerics import cholesky_in_windows

W = 12


@pytest.fixture
def short(monkeypatch):
    """Windows of as few columns as possible."""
    monkeypatch.setattr(cholesky_in_windows, "_WINDOW", 1)
    jax.clear_caches()


def definite(rng, n, w, dtype="float64"):
    """A dense Hermitian positive definite band."""
    factor = np.tril(rng.normal(size=(n, n))).astype(dtype)
    if np.iscomplexobj(factor):
        factor += 1j * np.tril(rng.normal(size=(n, n)))
    factor -= np.tril(factor, -w - 1)
    return (factor @ factor.conj().T + 0.5 * np.eye(n)).astype(dtype)


def diagonals(dense, w, sign):
    return [np.diagonal(dense, sign * k).copy() for k in range(w + 1)]


def factor(dense, w):
    """The result of `cholesky_in_windows.factor`, dense, or None. The lower triangle alone must give the same."""
    (pbtrf,) = scipy.linalg.get_lapack_funcs(("pbtrf",), dtype=dense.dtype)
    targets = [np.full(dense.shape[0] - k, np.nan, dense.dtype) for k in range(w + 1)]
    below, above = diagonals(dense, w, -1), diagonals(dense, w, 1)[1:]
    fine = cholesky_in_windows.factor(pbtrf, targets, below, above)
    lower = [np.full_like(d, np.nan) for d in targets]
    assert cholesky_in_windows.factor(pbtrf, lower, below, ()) == fine
    if fine and np.array_equal(dense, dense.conj().T):
        for a, b in zip(targets, lower, strict=True):
            np.testing.assert_array_equal(a, b)
    return sum(np.diag(d, -k) for k, d in enumerate(targets)) if fine else None


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "complex64"])
@pytest.mark.parametrize(("n", "w"), [(1, 0), (5, 0), (5, 4), (9, 3), (64, 7), (130, 7), (131, 64), (200, 65)])
def test_factors(rng, short, dtype, n, w):
    dense = definite(rng, n, w, dtype)
    np.testing.assert_allclose(factor(dense, w), np.linalg.cholesky(dense), atol=200 * n * np.finfo(dtype).eps)


@pytest.mark.parametrize("window", [1, 1 << 11, 1 << 17])
def test_long_matrices(rng, monkeypatch, window):
    monkeypatch.setattr(cholesky_in_windows, "_WINDOW", window)
    n, w = 3000, 10
    lower = [rng.normal(size=n - k) for k in range(1, w + 1)]
    main = np.full(n, 4.0 * w)
    (pbtrf,) = scipy.linalg.get_lapack_funcs(("pbtrf",), dtype=float)
    targets = [np.full(n - k, np.nan) for k in range(w + 1)]
    assert cholesky_in_windows.factor(pbtrf, targets, [main, *lower], lower)
    storage = np.zeros((w + 1, n))
    for k, d in enumerate([main, *lower]):
        storage[k, : n - k] = d
    for k, d in enumerate(scipy.linalg.cholesky_banded(storage, lower=True)):
        np.testing.assert_allclose(targets[k], d[: n - k], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_scales(rng, short, scale):
    dense = definite(rng, 90, 5)
    expected = np.sqrt(scale) * np.linalg.cholesky(dense)
    np.testing.assert_allclose(factor(scale * dense, 5), expected, rtol=1e-9, atol=1e-12 * np.sqrt(scale))


def test_graded_rows(rng, short):
    """Each entry of the factor has a small error relative to its row."""
    scales = np.logspace(-140, 140, 90)
    dense = definite(rng, 90, 5)
    found = factor(scales[:, None] * dense * scales, 5)
    np.testing.assert_allclose(found / scales[:, None], np.linalg.cholesky(dense), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("row", [0, 7, 40, 89])
def test_matrices_without_a_factor(rng, short, row):
    """The matrix is indefinite or has NaN, an infinity, or numbers that overflow, in any window."""
    for value in (-1.0, np.nan, np.inf):
        dense = definite(rng, 90, 5)
        dense[row, row] = value
        found = factor(dense, 5)
        assert found is None or not np.isfinite(found).all()
        if value == -1.0:
            assert found is None
    dense = definite(rng, 90, 5)
    i = max(row, 1)
    dense[i - 1, i - 1], dense[i, i - 1], dense[i - 1, i] = 1e-300, 1e300, 1e300
    assert factor(dense, 5) is None


class TestCholesky:
    """`sa.linalg.cholesky` with short windows."""

    @staticmethod
    def banded(dense, w=W):
        n = dense.shape[-1]
        return sa.Banded([np.diagonal(dense, k, -2, -1) for k in range(-w, w + 1)], range(-w, w + 1), (n, n))

    @pytest.mark.parametrize("dtype", ["float64", "complex128"])
    def test_hermitian_part(self, rng, short, dtype):
        """The factor belongs to the Hermitian part, of each matrix of a batch, and of a batch under vmap."""
        dense = np.stack([definite(rng, 100, W, dtype) for _ in range(3)])
        skew = np.triu(rng.normal(size=dense.shape), 1)
        skew *= np.abs(np.subtract.outer(np.arange(100), np.arange(100))) <= W
        A = self.banded(dense + skew - np.swapaxes(skew, -1, -2))
        for function in (sa.linalg.cholesky, jax.jit(sa.linalg.cholesky), jax.vmap(sa.linalg.cholesky)):
            np.testing.assert_allclose(np.asarray(as_jax(function(A))), np.linalg.cholesky(dense), atol=1e-11)

    @pytest.mark.parametrize("dtype", ["float64", "complex128"])
    def test_assumed_hermitian(self, rng, short, dtype):
        """The factorization reads the lower triangle alone; `test_derivatives` has its derivatives."""
        dense = np.stack([definite(rng, 100, W, dtype) for _ in range(3)])
        A = sa.assume(self.banded(dense), "positive_definite")
        for function in (sa.linalg.cholesky, jax.jit(sa.linalg.cholesky), jax.vmap(sa.linalg.cholesky)):
            np.testing.assert_allclose(np.asarray(as_jax(function(A))), np.linalg.cholesky(dense), atol=1e-11)
            with sa.host_calls(False):
                np.testing.assert_allclose(np.asarray(as_jax(function(A))), np.linalg.cholesky(dense), atol=1e-11)
        lower = sa.assume(self.banded(np.where(np.tri(100, dtype=bool), dense, np.nan)), "hermitian")
        np.testing.assert_array_equal(as_jax(sa.linalg.cholesky(lower)), as_jax(sa.linalg.cholesky(A)))

    def test_missing_diagonals(self, rng, short):
        """Diagonals that are not stored are zero, also on one side."""
        n, offsets = 100, (-W, -1, 0, 3)
        values = [rng.normal(size=n - abs(k)) + 9 * (k == 0) for k in offsets]
        A = sa.Banded(values, offsets, (n, n))
        dense = np.asarray(A.to_jax())
        found = np.asarray(as_jax(jax.jit(sa.linalg.cholesky)(A)))
        np.testing.assert_allclose(found, np.linalg.cholesky((dense + dense.T) / 2), atol=1e-13)

    def test_one_bad_matrix_of_a_batch(self, rng, short):
        dense = np.stack([definite(rng, 100, W) for _ in range(3)])
        dense[1, 60, 60] = -1
        found = np.asarray(jax.jit(lambda A: as_jax(sa.linalg.cholesky(A)))(self.banded(dense)))
        assert np.isnan(np.diagonal(found[1])).all()
        for i in (0, 2):
            np.testing.assert_allclose(found[i], np.linalg.cholesky(dense[i]), atol=1e-11)
        with pytest.raises(np.linalg.LinAlgError):
            sa.linalg.cholesky(self.banded(dense))

    def test_nan_raises_nothing(self, rng, short):
        dense = definite(rng, 100, W)
        dense[60, 60] = np.nan
        assert np.isnan(np.diagonal(np.asarray(as_jax(sa.linalg.cholesky(self.banded(dense)))))[60:]).all()

    @pytest.mark.costly
    @pytest.mark.parametrize("hermitian", [False, True])
    def test_derivatives(self, rng, short, hermitian):
        """First and second, along a change that is not Hermitian, against JAX's dense factor."""
        dense = definite(rng, 70, W)
        if not hermitian:
            dense = dense + 0.1 * np.triu(np.tril(rng.normal(size=(70, 70)), W), -W)
        direction = np.triu(np.tril(rng.normal(size=(70, 70)), W), -W)

        def ours(t):
            A = self.banded_jax(jnp.asarray(dense) + t * direction)
            factor = sa.linalg.cholesky(sa.assume(A, "hermitian") if hermitian else A)
            return jnp.sum(jnp.sin(as_jax(factor)))

        def expected(t):
            a = jnp.asarray(dense) + t * direction
            return jnp.sum(jnp.sin(jnp.tril(jnp.linalg.cholesky((a + a.T) / 2))))

        for derivative in (jax.jacfwd, jax.grad, lambda f: jax.jacfwd(jax.grad(f)), lambda f: jax.grad(jax.grad(f))):
            np.testing.assert_allclose(jax.jit(derivative(ours))(0.0), derivative(expected)(0.0), rtol=1e-8)

    @staticmethod
    def banded_jax(dense):
        n = dense.shape[-1]
        return sa.Banded([jnp.diagonal(dense, k) for k in range(-W, W + 1)], tuple(range(-W, W + 1)), (n, n))
