"""Permutations: products, inverses, determinants, and what they leave to their sparse form."""

import time

import jax
import numpy as np
import pytest
from support import dense

import structarrays as sa

N = 10**6


def both(rng, n, batch=()):
    p = rng.permuted(np.tile(np.arange(n), (*batch, 1)), axis=-1)
    return sa.Permutation(p), np.take(np.eye(n), p, axis=0), p


@pytest.mark.parametrize(
    ("p", "error", "message"),
    [
        ([0, 0], ValueError, "each of 0, ..., 1 once, got 0 more than once"),
        ([0, 2], ValueError, "each of 0, ..., 1 once, got 2"),
        ([0, -1], ValueError, "each of 0, ..., 1 once, got -1"),
        ([[0, 1], [1, 1]], ValueError, "got 1 more than once"),
        ([0.0, 1.0], TypeError, "p must be integers, got dtype float64"),
        (0, ValueError, "at least one dimension"),
    ],
)
def test_bad_arguments_are_named(p, error, message):
    with pytest.raises(error, match=message):
        sa.Permutation(p)


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_what_stays_a_permutation(n, batch, rng):
    x, a, _ = both(rng, n, batch)
    y, b, _ = both(rng, n)
    with sa.densify("error"):
        for result, expected in (
            (x, a), (x.mT, a.swapaxes(-1, -2)), (x @ y, a @ b), (y @ x, b @ a), (sa.linalg.inv(x), a.swapaxes(-1, -2)),
            (sa.linalg.matrix_power(x, 3), np.linalg.matrix_power(a, 3)), (sa.linalg.solve(x, y), a.swapaxes(-1, -2) @ b),
            (sa.linalg.matrix_power(x, -2), np.linalg.matrix_power(a.swapaxes(-1, -2), 2)), (abs(x), a), (sa.conj(x), a),
            (sa.astype(x, "complex64").real, a), (jax.jit(lambda x, y: x @ y)(x, y), a @ b),
        ):  # fmt: skip
            assert type(result) is sa.Permutation
            np.testing.assert_array_equal(dense(result), expected)


@pytest.mark.parametrize("shape", [(7,), (7, 3), (2, 7, 3), (2, 1, 7, 3)])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_products_with_dense(shape, batch, rng):
    x, a, _ = both(rng, 7, batch)
    v = rng.normal(size=shape)
    w = np.swapaxes(v, -1, -2) if v.ndim > 1 else v
    with sa.densify("error"):
        np.testing.assert_array_equal(dense(x @ v), a @ v)
        np.testing.assert_array_equal(dense(w @ x), w @ a)
        np.testing.assert_array_equal(dense(sa.linalg.solve(x, v) if v.ndim > 1 else x.mT @ v), a.swapaxes(-1, -2) @ v)


def test_dtypes():
    assert sa.Permutation([1, 0]).dtype == np.float64
    for dtype in ("bool", "int8", "uint32", "float32", "complex128"):
        x = sa.Permutation([1, 0, 2], dtype=dtype)
        assert x.dtype == dtype and dense(x).dtype == dtype and x.mT.dtype == dtype
        np.testing.assert_array_equal(dense(x), np.eye(3, dtype=dtype)[[1, 0, 2]])
    assert (sa.Permutation([1, 0], dtype="float32") @ sa.Permutation([1, 0])).dtype == np.float64
    assert (sa.Permutation([1, 0], dtype="int8") @ np.ones(2, np.float32)).dtype == np.float32


def test_signs(rng):
    for n in (1, 2, 3, 8, 9, 64, 65):
        x, a, _ = both(rng, n, (4,))
        np.testing.assert_array_equal(dense(sa.linalg.det(x)), np.round(np.linalg.det(a)))
        np.testing.assert_array_equal(dense(sa.linalg.slogdet(x).sign), np.round(np.linalg.det(a)))
        np.testing.assert_array_equal(dense(sa.linalg.slogdet(x).logabsdet), np.zeros(4))
    one_cycle = sa.Permutation(np.roll(np.arange(1000), 1))
    assert float(sa.linalg.det(one_cycle)) == -1.0


def test_products_with_sparse_and_banded_keep_sparsity(rng):
    x, a, _ = both(rng, 6)
    s = np.where(rng.uniform(size=(6, 6)) < 0.4, 2.0, 0)
    with sa.densify("error"):
        for other in (
            sa.Sparse.from_dense(s),
            sa.Sparse.from_dense(s.T).mT,
            sa.tridiagonal([1.0] * 5, [2.0] * 6, [3.0] * 5),
        ):
            b = dense(other)
            for result, expected in ((x @ other, a @ b), (other @ x, b @ a)):
                assert type(result) is sa.Sparse and not result.padded
                np.testing.assert_array_equal(dense(result), expected)
        diagonal = sa.Diagonal(np.arange(6.0))
        np.testing.assert_array_equal(dense(x @ diagonal), a @ dense(diagonal))


def test_everything_else_by_its_sparse_form(rng):
    x, a, p = both(rng, 6)
    with sa.densify("error"):
        for result, expected in (
            (x * 2.5, a * 2.5), (x + sa.eye(6), a + np.eye(6)), (x + x.mT, a + a.T), (sa.exp(x), np.exp(a)), (x != 0, a != 0),
            (x[1:4, ::2], a[1:4, ::2]), (sa.tril(x), np.tril(a)),
            (sa.concat([x, sa.eye(6)]), np.concatenate([a, np.eye(6)])),
            (sa.reshape(x, (4, 9)), a.reshape(4, 9)), (sa.reshape(x, (-1,)), a.reshape(-1)),
        ):  # fmt: skip
            assert type(result) is sa.Sparse and not result.padded
            np.testing.assert_array_equal(dense(result), expected)
        np.testing.assert_array_equal(dense(x[2]), a[2])
        np.testing.assert_array_equal(dense(x[:, 2]), a[:, 2])
        np.testing.assert_array_equal(dense(x[[2, 3], [p[2], 0]]), a[[2, 3], [p[2], 0]])
        np.testing.assert_array_equal(dense(sa.sum(x, axis=0)), np.ones(6))
        np.testing.assert_allclose(dense(sa.var(x, axis=1)), a.var(1))
        assert float(sa.linalg.trace(x)) == np.trace(a)
        np.testing.assert_array_equal(dense(sa.nonzero(x)[1]), p)
        x[3, 3] = 5.0
        a[3, 3] = 5.0
        np.testing.assert_array_equal(dense(x), a)


def test_a_million_rows(rng):
    p = rng.permutation(N)
    x, v = sa.Permutation(p), rng.normal(size=N)
    with sa.densify("error"):
        np.testing.assert_array_equal(dense(x @ v), v[p])
        np.testing.assert_array_equal(dense(x.mT @ (x @ v)), v)
        np.testing.assert_array_equal(np.asarray((x @ x.mT).p), np.arange(N))
        assert float(sa.linalg.det(x)) in (-1.0, 1.0)
        assert float(sa.sum(x + sa.eye(N))) == 2.0 * N


def test_repr():
    assert (
        repr(sa.Permutation([1, 0]))
        == "Permutation([1, 0], shape=(2, 2), dtype=float64, stores 2 of 4 entries, 8 B of 32 B dense)"
    )
    assert "stores 1000000 of 1000000000000 entries, 4000 kB of 8000 GB dense" in repr(sa.Permutation(np.arange(N)))


@pytest.mark.costly
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "any", "all", "count_nonzero", "var"])
@pytest.mark.parametrize("dtype", ["float64", "int64", "bool"])
def test_reductions(name, dtype):
    for n in (0, 1, 2, 5):
        for batch in ((), (2,)):
            x = sa.Permutation(np.tile(np.arange(n)[::-1], (*batch, 1)), dtype=dtype)
            a = dense(x)
            for axis in (-1, -2, (-2, -1), None):
                if n == 0 and name in ("max", "min", "mean", "var"):
                    continue
                for keepdims in (False, True):
                    got = getattr(sa, name)(x, axis=axis, keepdims=keepdims)
                    expected = getattr(np, name)(a, axis=axis, keepdims=keepdims)
                    np.testing.assert_allclose(dense(got), expected, rtol=1e-14, atol=1e-15)


def test_extrema_of_a_million_rows_compile_at_once():
    x = sa.Permutation(np.arange(N)[::-1])
    start = time.process_time()
    with sa.densify("error"):
        for function in (sa.max, sa.min, sa.any, sa.all, sa.prod, sa.sum, sa.mean):
            jax.jit(lambda x, f=function: f(x, axis=0)).lower(x).compile()
    assert time.process_time() - start < 3  # a constant of n ones, folded, took five seconds


def test_from_dense(rng):
    for batch in ((), (3,)):
        x, a, p = both(rng, 6, batch)
        y = sa.Permutation.from_dense(a.astype("int32"))
        assert y.dtype == np.int32
        np.testing.assert_array_equal(np.asarray(y.p), p)
        np.testing.assert_array_equal(dense(jax.jit(sa.Permutation.from_dense)(a)), a)
    assert sa.Permutation.from_dense(np.zeros((0, 0))).shape == (0, 0)
    for bad, message in (
        (np.ones((2, 3)), "square"), (np.ones(3), "square"), ([[1.0, 0.5], [0.0, 1.0]], r"0 and 1, got 0.5 at \(0, 1\)"),
        ([[0.0, 0.0], [0.0, 1.0]], "a single 1 in each row, got 0 in row 0"), ([[0, 1], [0, 1]], "each column, .* column 0"),
        ([[np.nan, 1.0], [1.0, 0.0]], "got nan"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            sa.Permutation.from_dense(bad)
