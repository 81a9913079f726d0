"""The Python numbers 0 and 0.0 keep the structure of an array that they are added to, as in Python's `sum`, and of choices in `where`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa
from structarrays.testing import STRUCTURES, sample

OPERATIONS = {
    "0 + x": lambda zero, x: zero + x,
    "x + 0": lambda zero, x: x + zero,
    "x - 0": lambda zero, x: x - zero,
    "0 - x": lambda zero, x: zero - x,
    "add": lambda zero, x: sa.add(zero, x),
}


def background(x):
    return getattr(x, "background", None)


@pytest.mark.each_parameter
@pytest.mark.parametrize("structure", STRUCTURES)
def test_every_structure(structure):
    for dtype, zeros in (("float64", (0, 0.0)), ("int64", (0,))):
        x = sample(structure, (5, 5), dtype=dtype)
        if x is None:
            continue
        dense = np.asarray(as_jax(x.to_dense()))
        for zero in zeros:
            for name, operation in OPERATIONS.items():
                y = operation(zero, x)
                assert type(y) is type(x) or name == "0 - x", name
                assert y.dtype == x.dtype and y.shape == x.shape
                assert (background(y) is None) == (background(x) is None), name
                np.testing.assert_array_equal(as_jax(y.to_dense()), operation(zero, dense), err_msg=name)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_choices(structure):
    """As a choice of `where`, they are structural zeros next to structural zeros."""
    for dtype, zeros in (("float64", (0, 0.0)), ("int64", (0,))):
        x = sample(structure, (5, 5), dtype=dtype)
        if x is None or not x.stores_entries:
            continue
        dense = np.asarray(as_jax(x.to_dense()))
        mask = np.arange(25).reshape(5, 5) % 3 > 0
        for zero in zeros:
            for name, f in {
                "threshold": lambda np, x, zero=zero: np.where(x > 0, x, zero),
                "other choice": lambda np, x, zero=zero: np.where(x > 0, zero, x),
                "number": lambda np, x, zero=zero: np.where(True, x, zero),
                "mask": lambda np, x, zero=zero, mask=mask: np.where(mask, x, zero),
            }.items():
                for y in (f(sa, x), jax.jit(lambda x, f=f: f(sa, x))(x)):
                    assert y.dtype == x.dtype
                    if x.linear and type(y) is not sa.Dense:  # with a unit diagonal, no array of this structure is zero
                        assert (background(y) is None) == (background(x) is None), name
                    np.testing.assert_array_equal(as_jax(y.to_dense()), f(np, dense), err_msg=name)


def test_choices_that_change_the_structure():
    x = sa.Diagonal([1.0, -2.0])
    for zero in (np.float64(0), np.zeros(()), jnp.zeros(()), sa.zeros(()), -0.0):
        y = sa.where(x > 0, x, zero)
        assert background(y) is not None
        assert np.signbit(np.asarray(as_jax(y.to_dense()))).sum() == 3 * (str(zero) == "-0.0")
    assert sa.where(x > 0, sa.Diagonal([1, 2]), 0.0).dtype == sa.float64
    assert sa.where(x > 0, 2 * x, 1).background is not None
    assert sa.where(x > 0, 0, 0).shape == (2, 2)


def test_a_threshold_is_a_carry_of_a_loop():
    for x in (
        sa.tridiagonal([1.0, -2.0], [3.0, 0.1, 2.0], [0.2, 4.0]),
        sa.Sparse.from_dense(np.diag([1.0, 0.1, -4.0])),
    ):
        expected = np.asarray(as_jax(x.to_dense()))
        for _ in range(4):
            expected = np.where(abs(expected) > 0.5, expected * 0.7, 0)
        found, _ = jax.lax.scan(lambda x, _: (sa.where(abs(x) > 0.5, x * 0.7, 0), None), x, None, length=4)
        np.testing.assert_allclose(as_jax(found.to_dense()), expected)
        assert type(found) is type(x)


def test_sums_of_python():
    n = 200_000
    a, d = sa.tridiagonal(-np.ones(n - 1), 4 * np.ones(n), -np.ones(n - 1)), sa.Diagonal(np.ones(n))
    with sa.densify("error"):
        for total in (sum([a, d]), sum([a, d], 0.0), jax.jit(lambda: sum([a, d]))()):
            assert type(total) is sa.Banded and total.background is None
            assert type(total @ total) is sa.Banded
            root = sa.linalg.cholesky(sa.assume(total, "positive_definite"))
            assert type(root) is sa.Banded
        total = 0.0
        for term in (a, d):
            total += term
        total -= 0
        assert total.background is None
        blocks = [sa.Kronecker(np.ones((3, 3)), sa.eye(4)), sa.Kronecker(sa.eye(3), np.ones((4, 4)))]
        assert type(sum(blocks)) is type(blocks[0] + blocks[1])


def test_assumptions():
    x = sa.assume(sa.Diagonal([1.0, 2.0]), "positive_definite")
    assert (x + 0).assumptions == (0 + x).assumptions == x.assumptions
    assert "positive_definite" not in (0 - x).assumptions


def test_signs_of_zero():
    """As in NumPy, -0.0 + 0.0 is 0.0."""
    for x in (sa.asarray([-0.0]), sa.Diagonal([-0.0])):
        for y in (x + 0.0, 0.0 + x, 0 - x):
            assert not np.signbit(np.asarray(as_jax(y.to_dense()))).any()


def test_what_changes_the_structure():
    """Other numbers, zeros in arrays, and zeros that change the data type."""
    x = sa.Diagonal([1.0, 2.0])
    for zero in (np.float64(0), np.zeros(()), jnp.zeros(()), sa.zeros(())):
        assert (x + zero).background is not None
    assert (x + 1).background is not None
    assert (x + 0j).dtype == sa.complex128
    assert (sa.Diagonal([1, 2]) + 0.0).dtype == sa.float64
    with pytest.raises(TypeError, match="numeric"):
        sa.Diagonal([True, False]) + False


def test_derivatives():
    x = sa.Diagonal(jnp.array([1.0, 2.0]))
    gradient = jax.grad(lambda x: as_jax(sa.sum((0 + x) * (0 - x))))(x)
    np.testing.assert_allclose(as_jax(gradient.diag), [-2.0, -4.0])
