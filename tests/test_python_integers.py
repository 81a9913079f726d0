"""Python integers that do not fit into the data type of an array: comparisons accept them, and nothing wraps around."""

import jax
import numpy as np
import pytest

import structarrays as sa

VALUES = np.array([44, 255], np.uint8)
SORTED = np.array([1, 2, 250], np.uint8)
OUTSIDE = [300, 256, -1, 2**63, 2**70, -(2**70)]


def dense():
    return sa.asarray(VALUES)


def diagonal():
    return sa.Diagonal(VALUES)


@pytest.mark.each_parameter
@pytest.mark.parametrize("value", [*OUTSIDE, 0, 44, 255])
@pytest.mark.parametrize("way", [lambda f: f, jax.jit], ids=["eager", "compiled"])
def test_comparisons_accept_any_integer(value, way):
    for x in (dense(), diagonal()):
        elements = np.asarray(x).tolist()
        expected = np.vectorize(lambda e: e == value, otypes=[bool])(np.array(elements, object))
        np.testing.assert_array_equal(way(lambda x: sa.isin(x, value))(x), expected)
        np.testing.assert_array_equal(way(lambda x: sa.isin(x, value, invert=True))(x), ~expected)
        assert bool(way(lambda x: sa.isin(value, x))(x)) == expected.any()
    x, sorter = sa.asarray(SORTED), sa.asarray(np.arange(3))
    left, right = sum(e < value for e in SORTED.tolist()), sum(e <= value for e in SORTED.tolist())
    assert int(way(lambda x: sa.searchsorted(x, value))(x)) == left
    assert int(way(lambda x: sa.searchsorted(x, value, side="right"))(x)) == right
    assert int(way(lambda x: sa.searchsorted(x, value, sorter=sorter))(x)) == left
    assert int(np.searchsorted(x, value)) == left
    assert np.isin(diagonal(), value).shape == (2, 2)


def item(key, value):
    def write(x):
        x[key] = value

    return write


WRITES = {
    "list": item([0, 1], [300, 1]),
    "negative list": item(slice(None), [-1, 1]),
    "put": lambda x: np.put(x, 0, 300),
    "put, list": lambda x: np.put(x, [0, 1], [7, 300]),
    "putmask": lambda x: np.putmask(x, np.array([True, False]), 300),
    "putmask, list": lambda x: np.putmask(x, np.array([True, False]), [300]),
    "place": lambda x: np.place(x, np.array([True, False]), [300]),
    "put_along_axis": lambda x: np.put_along_axis(x, np.array([0]), 300, 0),
}


@pytest.mark.each_parameter
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_writes_raise_and_change_nothing(write):
    host = VALUES.copy()
    with pytest.raises(OverflowError):
        write(host)  # NumPy raises, too
    x = dense()
    with pytest.raises(OverflowError, match="does not fit into uint8"):
        write(x)
    np.testing.assert_array_equal(x, VALUES)


def test_writes_to_structured_arrays_raise():
    x = diagonal()
    for write in (lambda: np.fill_diagonal(x, 300), lambda: x.__setitem__(0, [300, 1])):
        with pytest.raises(OverflowError, match="does not fit into uint8"):
            write()
    np.testing.assert_array_equal(x, np.diag(VALUES))


def test_arrays_and_fractions_are_cast_as_by_numpy():
    for write in (
        item([0, 1], [3.5, 1]),
        item([0, 1], np.array([300, 1])),
        lambda x: np.put(x, 0, np.int64(300)),
        lambda x: np.put(x, 0, [1.5]),
    ):
        x, host = dense(), VALUES.copy()
        write(x)
        write(host)
        np.testing.assert_array_equal(x, host)
    for value in (3, np.int64(300), True):
        np.testing.assert_array_equal(np.full_like(dense(), value), np.full_like(VALUES, value))
    with pytest.raises(OverflowError, match="does not fit into uint8"):
        np.full_like(diagonal(), 300)


@pytest.mark.each_parameter
@pytest.mark.parametrize("name", ["max", "min", "sum", "prod"])
@pytest.mark.parametrize("initial", [300, -1, 3, 0, 1.5, np.int64(300), -np.inf, 2**70])
@pytest.mark.parametrize("options", [{}, {"where": np.array([True, False])}], ids=["all", "where"])
def test_initial_values_of_reductions(name, initial, options):
    def outcome(x):
        try:
            result = getattr(np, name)(x, initial=initial, **options)
        except OverflowError:
            return OverflowError
        return np.asarray(result).dtype, np.asarray(result).item()

    assert outcome(dense()) == outcome(VALUES)


def test_initial_values_of_floating_reductions():
    x = sa.Diagonal([1.0, 2.0])
    for initial in (0, 5, -np.inf, 1.5):
        for options in ({}, {"where": np.array([True, False])}):
            expected = np.max(np.diag([1.0, 2.0]), initial=initial, **options)
            assert np.max(x, initial=initial, **options).item() == expected


def test_the_largest_integers_fit():
    """They fit into uint64, but not into the default data type."""
    large = 2**64 - 3
    x = sa.asarray(np.array([1, 2], np.uint64))
    np.testing.assert_array_equal(np.full_like(x, large), np.full(2, large, np.uint64))
    assert np.max(x, initial=large).item() == large
    for write in (item([0, 1], [large, 1]), lambda x: np.put(x, 0, large), lambda x: np.put(x, [0, 1], [large, 1])):
        written = sa.asarray(np.array([1, 1], np.uint64))
        write(written)
        np.testing.assert_array_equal(written, np.array([large, 1], np.uint64))


def test_functions_of_integers_with_floating_results():
    x = np.diag(np.array([-128, 44], np.int8))
    for function in (np.fabs, np.rint):
        result = function(sa.Diagonal(np.array([-128, 44], np.int8)))
        assert type(result) is sa.Diagonal and result.dtype == np.float64
        np.testing.assert_array_equal(result, function(x))
    for dtype in (np.int32, np.uint8):
        result = np.mean(diagonal(), dtype=dtype)
        assert result.dtype == dtype and result == np.mean(np.diag(VALUES), dtype=dtype)
