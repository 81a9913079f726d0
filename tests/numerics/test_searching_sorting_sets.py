"""Searching, sorting and set kernels against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from structarrays._numerics import dense_searching as searching
from structarrays._numerics import dense_sets as sets
from structarrays._numerics import dense_sorting as sorting
from structarrays._structures.permutation import ordered

WITH_NAN = np.array([3.0, np.nan, 1.0, -np.inf, 1.0, np.nan, np.inf])


@pytest.mark.parametrize("size", [10, 20_001])
def test_arguments_of_extrema_find_nan(size):
    x = np.random.default_rng(0).normal(size=size)
    for y in (x, np.where(np.arange(size) == size // 2, np.nan, x)):
        for name in ("argmax", "argmin"):
            result = jax.jit(getattr(searching, name))(y)
            assert result.dtype == np.int64 and result == getattr(np, name)(y)
    assert searching.argmax(jnp.ones((2, 3)), axis=1, keepdims=True).shape == (2, 1)


def test_searchsorted_agrees_with_sort_and_returns_int64():
    x = np.sort(WITH_NAN)
    for side in ("left", "right"):
        result = searching.searchsorted(jnp.asarray(x), jnp.asarray(WITH_NAN), side=side)
        assert result.dtype == np.int64  # jnp: int32
        np.testing.assert_array_equal(result, np.searchsorted(x, WITH_NAN, side=side))
    shuffled = np.array([3.0, 1.0, 2.0])
    order = np.argsort(shuffled)
    result = searching.searchsorted(jnp.asarray(shuffled), jnp.asarray(1.5), sorter=jnp.asarray(order))
    assert result == 1


def test_nonzero_and_its_count():
    x = np.array([[0, 2, 0], [1, 0, 3]])
    for dtype in (int, float, bool, complex):
        y = jnp.asarray(x.astype(dtype))
        indices = searching.nonzero(y)
        assert all(isinstance(i, jax.Array) and i.dtype == np.int64 for i in indices)
        np.testing.assert_array_equal(np.stack(indices), np.stack(np.nonzero(x)))
        count = searching.count_nonzero(y, axis=1, keepdims=True)
        assert count.dtype == np.int64
        np.testing.assert_array_equal(count, [[1], [2]])


def test_sort_puts_nan_last_and_reversed_first():
    ascending = sorting.sort(jnp.asarray(WITH_NAN))
    np.testing.assert_array_equal(ascending, np.sort(WITH_NAN))
    np.testing.assert_array_equal(sorting.sort(jnp.asarray(WITH_NAN), descending=True), np.sort(WITH_NAN)[::-1])


def test_argsort_is_stable_in_both_directions():
    ascending = sorting.argsort(jnp.asarray(WITH_NAN))
    assert ascending.dtype == np.int64
    np.testing.assert_array_equal(ascending, np.argsort(WITH_NAN, stable=True))
    # Equal values (and NaN) keep their order; by hand.
    np.testing.assert_array_equal(sorting.argsort(jnp.asarray(WITH_NAN), descending=True), [1, 5, 6, 0, 2, 4, 3])
    integers = np.array([[2, 1, 2], [0, 0, -1]], np.int8)
    np.testing.assert_array_equal(sorting.argsort(jnp.asarray(integers), descending=True), [[0, 2, 1], [0, 1, 2]])


def test_every_nan_is_unique_and_zeros_are_not():
    x = np.array([[np.nan, 0.0, -0.0], [2.0, np.nan, 2.0]])
    values, indices, inverse, counts = sets.unique_all(jnp.asarray(x))
    np.testing.assert_array_equal(values, [0.0, 2.0, np.nan, np.nan])
    np.testing.assert_array_equal(counts, [2, 2, 1, 1])
    np.testing.assert_array_equal(x.ravel()[np.asarray(indices)], values)
    assert inverse.shape == x.shape
    np.testing.assert_array_equal(np.asarray(values)[np.asarray(inverse)], x)
    assert all(a.dtype == np.int64 for a in (indices, inverse, counts))
    np.testing.assert_array_equal(sets.unique_values(jnp.asarray(x)), values)
    np.testing.assert_array_equal(sets.unique_counts(jnp.asarray(x))[1], counts)
    np.testing.assert_array_equal(sets.unique_inverse(jnp.asarray(x))[1], inverse)
    assert sets.unique_values(jnp.zeros((0, 2), np.int8)).shape == (0,)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("descending", [False, True])
def test_the_order_of_many_numbers(dtype, descending):
    """Distinct numbers, equal ones, signed zeros, infinities, NaN, numbers that differ in their last bits only, on both sides of the
    sizes from which bits are sorted and from which they take two passes."""
    rng = np.random.default_rng(0)
    order_of = jax.jit(lambda x: ordered.ordering(x, descending=descending))
    for size in (10, ordered.MANY + 1, ordered.ONE_SORT + 1):
        distinct = rng.permutation(np.arange(size) - size / 2).astype(dtype)
        special = distinct.copy()
        special[:6] = [np.inf, -np.inf, 0.0, -0.0, np.inf, 1e-7]
        with_nan = special.copy()
        with_nan[[1, 7]] = np.nan, -np.nan
        near = (1 + np.finfo(dtype).eps * rng.permutation(size)).astype(dtype)
        for x in (distinct, special, np.round(distinct / 10), with_nan, near, -near):
            expected = np.sort(x)[::-1] if descending else np.sort(x)
            order = np.asarray(order_of(jnp.asarray(x)))
            np.testing.assert_array_equal(x[order], expected)
            np.testing.assert_array_equal(np.sort(order), np.arange(size))
    with jax.enable_x64(False):
        for x in (distinct[: ordered.MANY], near[: ordered.MANY], np.round(distinct[: ordered.MANY] / 10)):
            x = x.astype(np.float32)
            expected = np.sort(x)[::-1] if descending else np.sort(x)
            np.testing.assert_array_equal(x[np.asarray(order_of(jnp.asarray(x)))], expected)
    stacked = rng.normal(size=(2, ordered.MANY)).astype(dtype)
    order = np.asarray(jax.vmap(order_of)(jnp.asarray(stacked)))
    by_numpy = np.sort(stacked)[:, ::-1] if descending else np.sort(stacked)
    np.testing.assert_array_equal(np.take_along_axis(stacked, order, -1), by_numpy)
