"""Sparse arrays in other shapes: coordinates are computed anew, values against NumPy."""

import jax
import numpy as np
import pytest
import scipy.sparse
from support import as_jax, dense

import structarrays as sa

N = 10**6


def sparse(rng, batch, core, orders=False):
    """An array with patterns of its own for each of the batch."""
    a = np.where(rng.random((*batch, *core)) < 0.3, rng.normal(size=(*batch, *core)), 0)
    x = sa.Sparse.from_dense(a, core_ndim=len(core))
    return (x.mT, a.swapaxes(-1, -2)) if orders else (x, a)


def check(f, x, a, g=None, kind=sa.Sparse):
    """``f(x)`` against ``g(a)``, eagerly and compiled, without a dense form."""
    expected = (f if g is None else g)(a)
    with sa.densify("error"):
        for got in (f(x), jax.jit(f)(x)):
            assert type(got) is kind
            assert got.shape == expected.shape
            np.testing.assert_allclose(dense(got), expected, rtol=1e-12, atol=1e-12)


CORES = [((), (4, 6)), ((2,), (4, 6)), ((), (3, 4, 2)), ((2, 1), (3, 1, 4))]


@pytest.mark.costly
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("batch", "core"), CORES)
def test_axes_of_size_one(batch, core, transposed, rng):
    x, a = sparse(rng, batch, core, transposed)
    b = len(batch)
    for axis in (-1, b, b + 1, -2, (0, -1), (b + 1, b + 2), tuple(range(a.ndim + 2))[::2][:2]):
        y = a.ndim + (len(axis) if isinstance(axis, tuple) else 1)
        check(lambda x, axis=axis: sa.expand_dims(x, axis=axis), x, a, lambda a, axis=axis: np.expand_dims(a, axis))
        expanded = sa.expand_dims(x, axis=axis)
        assert expanded.ndim == y
        back = sa.squeeze(expanded, axis=axis)
        assert type(back) is sa.Sparse
        np.testing.assert_array_equal(dense(back), a)
        np.testing.assert_allclose(dense(sa.exp(expanded)), np.exp(np.expand_dims(a, axis)), rtol=1e-14)
    whole = (slice(None),) * b
    for key in (np.s_[:, None], np.s_[None, :, :, None], np.s_[1:, None, ::-1], np.s_[..., None]):
        key = (*whole, *key)
        check(lambda x, key=key: x[key], x, a)
    np.testing.assert_array_equal(dense(x[(*whole, 1, None)]), a[(*whole, 1, None)])
    np.testing.assert_array_equal(dense(x[(*whole, None, slice(None), 0)]), a[(*whole, None, slice(None), 0)])


@pytest.mark.slow
def test_squeeze_keeps_matrices_sparse(rng):
    x, a = sparse(rng, (1,), (1, 4, 1, 5))
    for axis in (1, 3, (1, 3), (0, 1), (0, 1, 3)):
        check(lambda x, axis=axis: sa.squeeze(x, axis=axis), x, a, lambda a, axis=axis: np.squeeze(a, axis))
    y, b = sparse(rng, (), (1, 5))
    check(lambda x: sa.squeeze(x, axis=0), y, b, lambda a: a[0], kind=sa.Dense)


@pytest.mark.costly
@pytest.mark.slow
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("batch", "core"), CORES)
def test_other_sizes(batch, core, transposed, rng):
    x, a = sparse(rng, batch, core, transposed)
    size = int(np.prod(core))
    for shape in ((2, size // 2), (size,), (size // 3, 3, 1)):
        check(lambda x, s=shape: sa.reshape(x, (*batch, *s)), x, a, lambda a, s=shape: a.reshape(*batch, *s))
    for axis in (-1, -2):
        for count in (0, 3):
            check(lambda x, c=count, i=axis: sa.repeat(x, c, axis=i), x, a, lambda a, c=count, i=axis: a.repeat(c, i))
    for repetitions in ((2, 3), (2, 1, 2), (2, 1, 1, 1, 1), (0, 2)):
        check(lambda x, r=repetitions: sa.tile(x, r), x, a, lambda a, r=repetitions: np.tile(a, r))
    for axis in (-1, -2):
        for n in (2, 9):
            check(lambda x, n=n, i=axis: sa.diff(x, n=n, axis=i), x, a, lambda a, n=n, i=axis: np.diff(a, n, i))


@pytest.mark.slow
def test_backgrounds_stay(rng):
    x, a = sparse(rng, (2,), (4, 6))
    x, a = sa.exp(x), np.exp(a)
    check(lambda x: sa.reshape(x, (2, 8, 3)), x, a, lambda a: a.reshape(2, 8, 3))
    check(lambda x: sa.tile(x, (1, 2, 2)), x, a, lambda a: np.tile(a, (1, 2, 2)))
    check(lambda x: sa.expand_dims(x, axis=2), x, a, lambda a: a[:, :, None])
    check(lambda x: sa.diff(x, axis=1), x, a, lambda a: np.diff(a, axis=1))
    z, c = sparse(rng, (), (3, 4, 2))
    check(lambda x: sa.sum(sa.exp(x), axis=1), z, c, lambda a: np.exp(a).sum(1))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "any", "all", "count_nonzero"])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_that_leave_a_matrix(name, axis, keepdims, rng):
    x, a = sparse(rng, (), (3, 4, 5))
    options = {"axis": axis, "keepdims": keepdims}
    check(lambda x: getattr(sa, name)(x, **options), x, a, lambda a: getattr(np, name)(a, **options))
    assert not sa.sum(x, axis=axis).padded
    check(lambda x: sa.sum(x, axis=(0, 1)), x, a, lambda a: a.sum((0, 1)), kind=sa.Dense)


def test_products_of_more_than_two_dimensions(rng):
    x, a = sparse(rng, (), (3, 4, 5))
    v, w = rng.normal(size=5), rng.normal(size=4)
    check(lambda x: x @ v, x, a, kind=sa.Dense)
    check(lambda x: w @ x, x, a, kind=sa.Dense)
    check(lambda x: x @ np.ones((5, 2)), x, a, kind=sa.Dense)
    y, b = sparse(rng, (), (5, 6))
    with sa.densify("error"):
        got = x @ y
    assert type(got) is sa.Sparse
    np.testing.assert_allclose(dense(got), a @ b, atol=1e-12)
    np.testing.assert_allclose(dense(x @ sa.eye(5)), a)
    with pytest.raises(ValueError, match="matmul"):
        x @ np.ones(4)


def test_expanded_arrays_beside_others(rng):
    d, v = sa.Diagonal([1.0, 2.0, 3.0]), rng.normal(size=(3, 3))
    a = np.diag([1.0, 2.0, 3.0])
    for f in (
        lambda d, v: d[:, None] - d, lambda d, v: d[:, :, None] * v, lambda d, v: d[..., None] + v, lambda d, v: v - d[:, None],
        lambda d, v: d[:, None] * d[None], lambda d, v: d[:, None] == d[..., None], lambda d, v: d[:, None] @ v,
    ):  # fmt: skip
        np.testing.assert_allclose(np.asarray(as_jax(f(d, sa.asarray(v)))), f(a, v))
        np.testing.assert_allclose(np.asarray(as_jax(jax.jit(f)(d, sa.asarray(v)))), f(a, v))


@pytest.mark.costly
@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda i: sa.Permutation(i[::-1]) * 2.0, lambda i: sa.tridiagonal(i[1:], i, i[1:])])
def test_no_dense_form_of_a_million_rows(make):
    x = make(np.arange(N))
    with sa.densify("error"):
        total = float(sa.sum(x))
        for y in (
            x[:, None],
            x[..., None],
            sa.reshape(x, (N // 2, 2, N)),
            sa.reshape(x, (-1,)),
            sa.expand_dims(x, axis=1),
        ):
            assert type(y) is sa.Sparse and float(sa.sum(y)) == total
        assert float(sa.sum(sa.repeat(x, 2, axis=0))) == float(sa.sum(sa.tile(x, (1, 2)))) == 2 * total
        assert sa.diff(x, axis=1).shape == (N, N - 1)


@pytest.mark.slow
def test_no_dense_form_of_three_dimensions():
    i = np.arange(N)
    x = sa.Sparse(np.ones(N), (i % 7, i, 3 * i % N), (7, N, N))
    with sa.densify("error"):
        assert sa.sum(x, axis=0).nnz == N
        assert float(sa.sum(x @ np.ones(N))) == N
        assert (x @ sa.eye(N)).nnz == N
        one = sa.squeeze(x[3:4], axis=0)
        assert type(one) is sa.Sparse and one.nnz == len(range(3, N, 7))


def test_an_axis_in_front_is_of_the_batch(rng):
    x, a = sparse(rng, (), (4, 6))
    y = sa.reshape(x, (1, 1, 4, 6))
    assert type(y) is sa.Sparse and y.batch_shape == (1, 1)
    assert type(sa.reshape(sa.eye(4), (1, 4, 4))) is sa.Identity


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", ["ones", "values", "other dtype"])
def test_dense_lines_next_to_a_sparse_matrix(rng, axis, kind):
    """A design matrix with an intercept stays sparse: two dense columns (rows), before and behind."""
    dense = np.where(rng.random((90, 70)) < 0.02, rng.standard_normal((90, 70)), 0)
    x = sa.interop.scipy.from_sparse(scipy.sparse.csr_array(dense))
    shape = (90, 2) if axis else (2, 70)
    lines = {"ones": sa.ones(shape), "values": rng.standard_normal(shape), "other dtype": np.ones(shape, np.float32)}[
        kind
    ]
    lines = sa.asarray(lines)
    with sa.densify("error"):
        for arrays in ([lines, x], [x, lines], [lines, x, lines], [lines.mT, x.mT]):
            along = 1 - axis if arrays[-1] is not x and arrays[-1] is not lines else axis
            expected = np.concatenate([np.asarray(a.to_jax()) for a in arrays], axis=along)
            for join in (sa.concat, jax.jit(sa.concat, static_argnames="axis")):
                result = join(arrays, axis=along)
                assert isinstance(result, sa.Sparse)
                np.testing.assert_array_equal(as_jax(result), expected)
                np.testing.assert_allclose(as_jax(result.mT @ np.ones(len(expected))), expected.sum(0), atol=1e-12)
                np.testing.assert_array_equal(as_jax(result[1:60:2, 1:3]), expected[1:60:2, 1:3])


def test_many_dense_columns_make_a_dense_matrix(rng):
    x = sa.interop.scipy.from_sparse(scipy.sparse.csr_array(np.eye(90)))
    assert isinstance(sa.concat([x, sa.asarray(rng.standard_normal((90, 80)))], axis=1), sa.Dense)
