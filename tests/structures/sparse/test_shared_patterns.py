"""Functions of sparse arrays that share their coordinates: nothing is sorted or searched, and the result has the same coordinates."""

import re

import jax
import numpy as np
import pytest
from support import as_jax, dense

import structarrays as sa

# Each with NumPy as its namespace for the oracle.
FUNCTIONS = {
    "threshold": lambda np, x: np.where(x > 0.5, x, 0),
    "magnitude": lambda np, x: np.where(x > 0, x, -x),
    "masked product": lambda np, x: x * (x > 0),
    "ratio": lambda np, x: x / (x * x + 1),
    "condition of two": lambda np, x: np.where(x * 2 > np.abs(x), x + 1, 2 * x + 1),
    "limits": lambda np, x: np.clip(x, -np.abs(x) / 2, 2 * np.abs(x)),
}


def arrays(rng):
    a = np.where(rng.random((40, 30)) < 0.2, rng.normal(size=(40, 30)), 0)
    batch = a * rng.normal(size=(3, 1, 1))
    yield "rows", sa.Sparse.from_dense(a), a
    yield "columns", sa.Sparse.from_dense(a).mT, a.T
    yield "single precision", sa.Sparse.from_dense(a.astype(np.float32)), a.astype(np.float32)
    yield (
        "stack",
        sa.Sparse.from_dense(a) * sa.asarray(batch[:, :1, :1] / a[:1, :1] if a[0, 0] else np.ones((3, 1, 1))),
        None,
    )
    yield "background", sa.Sparse.from_dense(a) + 0.25, a + 0.25


@pytest.mark.each_parameter
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_have_the_same_coordinates(name, rng):
    f = FUNCTIONS[name]
    for kind, x, a in arrays(rng):
        expected = f(np, dense(x) if a is None else a)
        for run in (lambda x: f(sa, x), jax.jit(lambda x: f(sa, x))):
            with sa.densify("error"):
                y = run(x)
            assert type(y) is sa.Sparse, kind
            assert y.nnz == x.nnz, kind
            assert all(np.array_equal(c, d) for c, d in zip(y.coords, x.coords, strict=True)), kind
            np.testing.assert_allclose(dense(y), expected, rtol=1e-6 if x.dtype == np.float32 else 1e-14, err_msg=kind)
        assert all(c is d for c, d in zip(f(sa, x).coords, x.coords, strict=True)) or kind == "stack", kind


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_functions_search_nothing(name, rng):
    f = FUNCTIONS[name]
    for kind, x, _ in arrays(rng):
        program = jax.jit(lambda x: f(sa, x)).lower(x).compile().as_text()
        assert not re.findall(r" (sort|while|scatter|gather)\(", program), kind


def test_derivatives_and_vmap(rng):
    x = sa.Sparse.from_dense(np.where(rng.random((20, 30)) < 0.2, rng.normal(size=(20, 30)), 0))

    def loss(data):
        y = x.with_data(data)
        return as_jax(sa.sum(sa.where(y > 0, y * y, 3 * y)))

    data = np.asarray(x.data)
    expected = np.where(data > 0, 2 * data, 3)
    np.testing.assert_allclose(jax.grad(loss)(x.data), expected)
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(x.data), expected)
    several = np.stack([data, -data, 2 * data])
    losses = jax.vmap(loss)(several)
    np.testing.assert_allclose(losses, np.where(several > 0, several**2, 3 * several).sum(-1))


def test_a_later_argument_may_be_the_first_with_a_pattern(rng):
    a, b = (np.where(rng.random((9, 8)) < 0.4, rng.normal(size=(9, 8)), 0) for _ in range(2))
    x, y = sa.Sparse.from_dense(a), sa.Sparse.from_dense(b)
    d = np.arange(8.0)
    for f in (
        lambda np, x, y: np.where(y > 0, x, -x),
        lambda np, x, y: np.where(x > 0, y, -x),
        lambda np, x, y: np.where(x > 0, x, y),
        lambda np, x, y: np.where(d > 3, x, -x),
    ):
        for run in (lambda x, y, f=f: f(sa, x, y), jax.jit(lambda x, y, f=f: f(sa, x, y))):
            np.testing.assert_array_equal(dense(run(x, y)), f(np, a, b))


def test_coordinates_on_both_axes_differ(rng):
    """A transpose has the same two arrays of coordinates in the other order."""
    a = np.where(rng.random((8, 8)) < 0.4, rng.normal(size=(8, 8)), 0)
    x = sa.Sparse.from_dense(a)
    for run in (lambda x: sa.where(x.mT > 0, x, x.mT), jax.jit(lambda x: sa.where(x.mT > 0, x, x.mT))):
        np.testing.assert_array_equal(dense(run(x)), np.where(a.T > 0, a, a.T))


def test_checks_for_nan_find_the_function(rng):
    """JAX then calls the function of the program with the arguments of the program."""
    x = sa.Sparse.from_dense(np.where(rng.random((9, 8)) < 0.4, np.inf, 0))
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        x * (x < 0)  # noqa: B018


def test_calls_that_are_logged_share_the_pattern(rng):
    x = sa.Sparse.from_dense(np.where(rng.random((9, 8)) < 0.4, rng.normal(size=(9, 8)), 0))
    with sa.record() as log:
        y = sa.where(x > 0, x, -x)
    assert y.nnz == x.nnz
    assert not log.densifications
    log = sa.explain(lambda x: sa.where(x > 0, x, -x), x)
    assert log.result.nnz == x.nnz
