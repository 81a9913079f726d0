"""LDL^H and Cholesky factors of matrices with one or two diagonals on each side, compared with SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from structarrays._numerics import narrow_definite as narrow

DTYPES = (np.float32, np.float64, np.complex64, np.complex128)


def matrix(rng, n, w, dtype, scale=1.0, add=4.0):
    """Diagonals from the main diagonal down, and the dense matrix."""

    def numbers(count):
        values = rng.random(count) - 0.5
        return values + 1j * (rng.random(count) - 0.5) if np.dtype(dtype).kind == "c" else values

    lower = [(scale * (add + abs(numbers(n)))).astype(dtype)]
    lower += [(scale * numbers(n - k)).astype(dtype) for k in range(1, w + 1)]
    below = sum(np.diag(d, -k) for k, d in enumerate(lower) if k)
    return [jnp.asarray(d) for d in lower], np.diag(lower[0]) + below + below.conj().T


def factors(lower):
    return jax.jit(narrow.ldl)(tuple(lower))


def unit_lower(multipliers):
    n = multipliers[0].size
    return np.eye(n) + sum(np.diag(np.asarray(m)[k:], -k) for k, m in enumerate(multipliers, 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("w", [1, 2])
@pytest.mark.parametrize("n", [3, 4, 7, 50])
def test_factors_and_solutions(rng, n, w, dtype):
    lower, a = matrix(rng, n, w, dtype)
    precision = 40 * np.finfo(dtype).eps
    pivots, multipliers, ok = factors(lower)
    found = unit_lower(multipliers)
    assert ok and pivots.dtype == np.finfo(dtype).dtype and multipliers[0].dtype == dtype
    np.testing.assert_allclose(found * np.asarray(pivots) @ found.conj().T, a, rtol=0, atol=6 * precision)
    diagonals, ok = narrow.cholesky(lower)
    expected = scipy.linalg.cholesky(a, lower=True)
    assert ok
    for k, d in enumerate(diagonals):
        np.testing.assert_allclose(d, np.diagonal(expected, -k), rtol=precision, atol=precision)
    for columns in (1, 3):
        b = (rng.normal(size=(n, columns)) * (1 + 1j if np.dtype(dtype).kind == "c" else 1)).astype(dtype)
        x = narrow.substitute(pivots, multipliers, jnp.asarray(b))
        np.testing.assert_allclose(x, scipy.linalg.solve(a, b), rtol=precision, atol=precision)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("w", [1, 2])
def test_extreme_scales(rng, w, dtype):
    """The reciprocals of the largest numbers are subnormal, which XLA replaces by zero."""
    for scale in (float(np.finfo(dtype).max) / 8, float(np.finfo(dtype).tiny) * 64):
        lower, a = matrix(rng, 20, w, dtype, scale=scale, add=2.0)
        pivots, multipliers, ok = factors(lower)
        x = narrow.substitute(pivots, multipliers, jnp.asarray(a[:, :1] / 4))
        expected = np.zeros((20, 1))
        expected[0] = 0.25
        assert ok
        np.testing.assert_allclose(x, expected, atol=40 * np.finfo(dtype).eps)


@pytest.mark.parametrize("w", [1, 2])
@pytest.mark.parametrize("place", [0, 1, 2, 10, 19])
def test_not_positive_definite(rng, w, place):
    lower, _ = matrix(rng, 20, w, float)
    for value in (0.0, -1.0, -np.inf):
        lower[0] = lower[0].at[place].set(value)
        diagonals, ok = narrow.cholesky(lower)
        assert not ok and not factors(lower)[2]
        assert all(np.isnan(np.asarray(d)).all() for d in diagonals)


@pytest.mark.parametrize("w", [1, 2])
def test_singular_laplacian(w):
    """The last pivot of a singular matrix is exactly zero here."""
    n = 16
    main, *below = np.zeros(n), *(-np.ones(n - k) for k in range(1, w + 1))
    for k, d in enumerate(below, 1):
        main[k:] -= d
        main[:-k] -= d
    pivots, _, _ = factors([jnp.asarray(d) for d in (main, *below)])
    assert abs(pivots[-1]) <= 1e-14 and (np.asarray(pivots[:-1]) > 0.5).all()


@pytest.mark.parametrize("w", [1, 2])
def test_nan_and_infinity_are_not_errors(rng, w):
    lower, _ = matrix(rng, 20, w, float)
    *_, ok = factors([lower[0].at[3].set(jnp.nan), *lower[1:]])
    assert ok
    *_, ok = factors([lower[0].at[3].set(jnp.inf), *lower[1:]])
    assert ok


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("w", [1, 2])
def test_loops_are_native(w, dtype):
    n = 200
    lower = tuple(jax.ShapeDtypeStruct((n - k,), dtype) for k in range(w + 1))
    pivots, multipliers, _ = jax.eval_shape(narrow.ldl, lower)
    b = jax.ShapeDtypeStruct((n, 1), dtype)
    for function, arguments, count in ((narrow.ldl, (lower,), 1), (narrow.substitute, (pivots, multipliers, b), 2)):
        entry = jax.jit(function).lower(*arguments).compile().as_text().split("ENTRY")[1]
        assert (entry.count('xla_cpu_small_call="true"'), entry.count(" while(")) == (count, 0)
