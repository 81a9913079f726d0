"""Reductions: NaN in arrays of any size, accumulation dtypes, derivatives. The oracle is NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from structarrays._numerics import dense_statistical as statistical


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("size", [1, 7, 1000, 10_001, 65_536, 300_000])
def test_extrema_never_lose_nan(name, size, dtype):
    # jax-ml/jax#39887: on CPU jnp.max and jnp.min lose NaN in arrays of 10^4 elements and more.
    kernel = jax.jit(getattr(statistical, name))
    x = np.random.default_rng(size).normal(size=size).astype(dtype)
    assert kernel(x) == getattr(np, name)(x)
    for tail in {1, size // 2 + 1, size}:
        y = x.copy()
        y[-tail] = np.nan
        assert np.isnan(kernel(y)), tail
    y[:] = np.nan
    assert np.isnan(kernel(y))


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1), (0, -1), (2, 0), (0, 1, 2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_extrema_over_axes(name, axis, keepdims):
    x = np.random.default_rng(1).normal(size=(40, 30, 20))
    x[3, 4, 5] = x[30, 1, 19] = np.nan
    x[0] = -np.inf
    x[1] = np.inf
    result = jax.jit(lambda x: getattr(statistical, name)(x, axis=axis, keepdims=keepdims))(x)
    np.testing.assert_array_equal(result, getattr(np, name)(x, axis=axis, keepdims=keepdims))


def test_extrema_of_other_dtypes():
    for dtype in (np.int8, np.uint64, np.int32, bool):
        x = np.array([[3, 1], [0, 1]]).astype(dtype)
        for name in ("max", "min"):
            result = getattr(statistical, name)(jnp.asarray(x), axis=1)
            assert result.dtype == dtype
            np.testing.assert_array_equal(result, getattr(np, name)(x, axis=1))
    with pytest.raises(ValueError, match="zero-size"):
        statistical.max(jnp.zeros((0,)))


@pytest.mark.costly
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_derivative_of_extrema(axis):
    x = jnp.asarray(np.random.default_rng(2).permutation(24.0 * np.arange(1, 13)).reshape(3, 4))
    check_grads(jax.jit(lambda x: statistical.max(x, axis=axis)), (x,), order=2)
    check_grads(jax.jit(lambda x: statistical.min(x, axis=axis)), (x,), order=2)
    tied = jnp.asarray([1.0, 3.0, 3.0])
    np.testing.assert_array_equal(jax.grad(statistical.max)(tied), [0, 0.5, 0.5])
    np.testing.assert_array_equal(
        jax.vmap(jax.grad(statistical.min))(jnp.stack([tied, -tied])), [[1, 0, 0], [0, 0.5, 0.5]]
    )


@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_accumulation_dtypes(name):
    expected = dict.fromkeys(("int8", "int16", "int32", "int64"), "int64")
    expected |= dict.fromkeys(("uint8", "uint16", "uint32", "uint64"), "uint64")
    expected |= {d: d for d in ("float32", "float64", "complex64", "complex128")}
    kernel = getattr(statistical, name)
    reference = {"cumulative_sum": np.cumsum, "cumulative_prod": np.cumprod}.get(name) or getattr(np, name)
    for dtype, wanted in expected.items():
        x = np.array([100, 50, 3, 7]).astype(dtype)
        result = kernel(jnp.asarray(x))
        assert result.dtype == wanted
        np.testing.assert_allclose(result, reference(x.astype(wanted)), rtol=1e-6)
        assert kernel(jnp.asarray(x), dtype=np.dtype("complex64")).dtype == "complex64"


@pytest.mark.parametrize(("name", "initial"), [("cumulative_sum", 0), ("cumulative_prod", 1)])
def test_cumulative_with_initial(name, initial):
    x = np.random.default_rng(4).normal(size=(3, 0, 4))
    assert getattr(statistical, name)(jnp.asarray(x), axis=1, include_initial=True).shape == (3, 1, 4)
    x = np.random.default_rng(4).normal(size=(3, 5))
    reference = {"cumulative_sum": np.cumsum, "cumulative_prod": np.cumprod}[name](x, axis=-1)
    result = getattr(statistical, name)(jnp.asarray(x), axis=-1, include_initial=True)
    np.testing.assert_allclose(result, np.concatenate([np.full((3, 1), initial), reference], axis=1), rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("axis", [None, 0, (0, 2)])
def test_moments(dtype, axis):
    x = np.random.default_rng(5).normal(size=(4, 3, 5)) + 10
    if dtype == np.complex128:
        x = x + 1j * np.random.default_rng(6).normal(size=x.shape)
    for correction in (0, 1, 0.5):
        result = statistical.var(jnp.asarray(x), axis=axis, correction=correction, keepdims=True)
        np.testing.assert_allclose(result, np.var(x, axis=axis, ddof=correction, keepdims=True), rtol=1e-12)
        result = statistical.std(jnp.asarray(x), axis=axis, correction=correction)
        np.testing.assert_allclose(result, np.std(x, axis=axis, ddof=correction), rtol=1e-12)


def test_too_large_a_correction_gives_nan():
    x = jnp.asarray([[1.0, 2.0], [3.0, 5.0]])
    for correction in (2, 3):  # jnp.var(x, correction=3) is a negative number
        assert np.isnan(statistical.var(x, axis=0, correction=correction)).all()
        assert np.isnan(statistical.std(x, axis=0, correction=correction)).all()


def test_derivatives_of_moments():
    x = jnp.asarray(np.random.default_rng(7).normal(size=(3, 4)))
    check_grads(jax.jit(lambda x: statistical.std(x, axis=1, correction=1)), (x,), order=2)
    check_grads(jax.jit(lambda x: statistical.cumulative_prod(x, axis=1, include_initial=True)), (x,), order=2)


def test_truth_and_differences():
    x = jnp.asarray([[0.0, np.nan], [0.0, 2.0]])
    np.testing.assert_array_equal(statistical.all(x, axis=0), [False, True])
    np.testing.assert_array_equal(statistical.any(x, axis=1, keepdims=True), [[True], [True]])
    assert statistical.all(jnp.zeros(0)) and not statistical.any(jnp.zeros(0))
    y = np.array([[1, 4, 9, 16]])
    np.testing.assert_array_equal(statistical.diff(jnp.asarray(y), n=2), np.diff(y, n=2))
