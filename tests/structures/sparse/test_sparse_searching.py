"""`argmax` and `argmin` of sparse matrices and bands, compared with NumPy."""

import jax
import numpy as np
import pytest

import structarrays as sa

FUNCTIONS = {"argmax": (sa.argmax, np.argmax), "argmin": (sa.argmin, np.argmin)}


def matrices(rng, dtype, batch):
    """Sparse matrices of few different numbers, so that many are equal; some have special values, a background or padding."""
    for m, n, density in ((1, 5, 0.5), (4, 6, 0), (4, 6, 0.4), (4, 6, 1)):
        numbers = rng.integers(0 if dtype == "uint8" else -2, 3, (*batch, m, n))
        x = sa.Sparse.from_dense(np.where(rng.random(numbers.shape) < density, numbers, 0).astype(dtype))
        yield x
        yield x.mT + np.asarray(1, dtype)
        yield x - np.asarray(dtype != "uint8", dtype)
        if dtype.startswith("float"):
            for value in (np.nan, np.inf, -np.inf):
                data = np.asarray(x.data).copy()
                data[..., ::3] = value
                yield x.with_data(data)
            yield x + np.asarray(np.nan, dtype)


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8"])
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
def test_first_extremes(name, dtype, batch, rng):
    function, oracle = FUNCTIONS[name]
    for x in matrices(rng, dtype, batch):
        assert type(x) is sa.Sparse
        dense = np.asarray(x.to_dense())
        for axis, keepdims in ((None, False), (-1, True), (-2, False)):
            found = function(x, axis=axis, keepdims=keepdims)
            assert found.dtype == sa.int64
            np.testing.assert_array_equal(np.asarray(found), oracle(dense, axis=axis, keepdims=keepdims))


@pytest.mark.costly
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_and_mapped(name, rng):
    function, oracle = FUNCTIONS[name]
    x = sa.Sparse.from_dense(np.where(rng.random((5, 7)) < 0.4, rng.normal(size=(5, 7)), 0))
    stack = sa.Sparse.from_dense(np.where(rng.random((3, 5, 7)) < 0.4, rng.normal(size=(3, 5, 7)), 0))
    for axis in (None, 0, 1):
        compiled = jax.jit(lambda x, axis=axis: function(x, axis=axis))
        np.testing.assert_array_equal(np.asarray(compiled(x)), oracle(np.asarray(x.to_dense()), axis=axis))
        mapped = sa.vmap(lambda x, axis=axis: function(x, axis=axis))(stack)
        expected = [oracle(a, axis=axis) for a in np.asarray(stack.to_dense())]
        np.testing.assert_array_equal(np.asarray(mapped), expected)


def test_large_matrices_stay_sparse(rng):
    n = 10**5
    i = np.arange(n)
    x = sa.Sparse(i % 7 + 1.0, (i, (i * 7) % n), (n, n))
    band = sa.tridiagonal(-np.ones(n - 1), rng.random(n), np.zeros(n - 1))
    with sa.densify("error"):
        np.testing.assert_array_equal(np.asarray(sa.argmax(x, axis=1)), (i * 7) % n)
        assert int(sa.argmax(x)) == 6 * n + 42 and int(sa.argmin(x)) == 1
        np.testing.assert_array_equal(np.asarray(sa.argmin(band, axis=0))[:-1], i[1:])
        assert int(sa.argmin(band, axis=0)[-1]) == 0
