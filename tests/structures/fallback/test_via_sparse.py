"""What structures leave to their sparse form: values against NumPy, and no dense form of a large matrix."""

import jax
import numpy as np
import pytest
from support import as_jax, dense

import structarrays as sa

RNG = np.random.default_rng(3)
N = 2 * 10**5


def numbers(rng, *shape):
    return rng.normal(size=shape)


def small(rng, name, batch=()):
    """Arrays of 12 × 12, of which less than half is stored."""
    return {
        "BlockDiagonal": lambda: sa.BlockDiagonal(numbers(rng, *batch, 6, 2, 2)),
        "BlockBanded": lambda: sa.BlockBanded([numbers(rng, *batch, 6, 2, 2), numbers(rng, *batch, 5, 2, 2)], (0, -1)),
        "Toeplitz": lambda: sa.Toeplitz(numbers(rng, *batch, 2), numbers(rng, *batch, 3), shape=(12, 12)),
        "Banded": lambda: sa.Banded([numbers(rng, *batch, 12), numbers(rng, *batch, 9)], (0, 3), (12, 12)),
        "Diagonal": lambda: sa.Diagonal(numbers(rng, *batch, 12)),
        "Permutation": lambda: sa.Permutation(rng.permuted(np.tile(np.arange(12), (*batch, 1)), axis=-1)),
        "background": lambda: sa.exp(sa.BlockDiagonal(numbers(rng, *batch, 6, 2, 2))),
        "Sparse": lambda: sa.Permutation(rng.permuted(np.tile(np.arange(12), (*batch, 1)), axis=-1)) * 2.0,
    }[name]()


NAMES = ("BlockDiagonal", "BlockBanded", "Toeplitz", "Banded", "Diagonal", "Permutation", "background", "Sparse")
MASK = np.arange(12) % 3 == 1
KEYS = (
    np.s_[::2], np.s_[:, ::3], np.s_[::-1], np.s_[::-2, ::3], np.s_[5:10], np.s_[:5], np.s_[:, :5], np.s_[3:4, 1:9], np.s_[4:4],
    np.s_[[5, 1, -1, 1]], np.s_[:, [0, 11, 4, 4]], MASK, (slice(None), MASK), np.s_[np.zeros(0, int)],
)  # fmt: skip


@pytest.mark.costly
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
def test_parts(name, batch, rng):
    x = small(rng, name, batch)
    a = dense(x)
    whole = (slice(None),) * len(batch)
    with sa.densify("error"):
        for key in KEYS:
            key = (*whole, *(key if isinstance(key, tuple) else (key,)))
            got = x[key]
            assert not got.size or isinstance(
                got, (sa.Sparse, sa.Banded, sa.BlockDiagonal, sa.BlockBanded, sa.Toeplitz)
            ), key
            if isinstance(got, sa.Sparse) and not batch:
                assert not got.padded
            np.testing.assert_array_equal(dense(got), a[key])
        for axis in (-2, -1):
            np.testing.assert_array_equal(
                dense(sa.take(x, sa.asarray([3, 0, -1]), axis=axis)), np.take(a, [3, 0, -1], axis)
            )
            np.testing.assert_array_equal(
                dense(sa.repeat(x, sa.asarray([2, 0] * 6), axis=axis)), np.repeat(a, [2, 0] * 6, axis)
            )
            np.testing.assert_array_equal(dense(sa.flip(x, axis=axis)), np.flip(a, axis))
            np.testing.assert_array_equal(dense(sa.roll(x, 5, axis=axis)), np.roll(a, 5, axis))
        np.testing.assert_array_equal(dense(sa.flip(x)), np.flip(a))
        np.testing.assert_array_equal(dense(sa.roll(x, (1, -2), axis=(0, -1))), np.roll(a, (1, -2), (0, -1)))
        if x.background is None:
            for got, want in zip(sa.nonzero(x), np.nonzero(a), strict=True):
                np.testing.assert_array_equal(dense(got), want)
        for key in KEYS[:9]:
            key = (*whole, *(key if isinstance(key, tuple) else (key,)))
            np.testing.assert_array_equal(dense(jax.jit(lambda x, key=key: x[key])(x)), a[key])


@pytest.mark.parametrize("first", NAMES)
@pytest.mark.parametrize("second", NAMES)
def test_joins(first, second, rng):
    if "background" in (first, second):
        return
    x, y = small(rng, first), small(rng, second)
    with sa.densify("error"):
        for axis in (0, 1):
            got = sa.concat([x, y, x], axis=axis)
            assert type(got) is sa.Sparse
            np.testing.assert_array_equal(dense(got), np.concatenate([dense(x), dense(y), dense(x)], axis))


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_written(name, rng):
    for key in (np.s_[5], np.s_[:, 7], np.s_[-2:], np.s_[[1, 8]]):
        x = small(rng, name)
        a = dense(x).copy()
        value = numbers(rng, *a[key].shape)
        with sa.densify("error"):
            x[key] = value
        a[key] = value
        np.testing.assert_array_equal(dense(x), a)


@pytest.mark.parametrize(
    ("x", "kind"),
    [
        (sa.Toeplitz([2.0, 1.0, 3.0]), sa.Toeplitz),
        (sa.Circulant([2.0, 1.0, 3.0]), sa.Circulant),
        (sa.Hankel([2.0, 1.0, 3.0]), sa.Hankel),
        (sa.Triangular(np.ones((3, 3))), sa.Triangular),
        (sa.Symmetric(np.ones((3, 3))), sa.Symmetric),
    ],
)
def test_what_stores_much_stays_as_it_was(x, kind):
    assert type(x[:2, :2]) in (kind, sa.Toeplitz)
    assert type(x[[0, 1]]) is sa.Dense
    assert type(sa.concat([x, x])) is sa.Dense


LARGE = {
    "BlockDiagonal": lambda: sa.BlockDiagonal(np.ones((N // 2, 2, 2))),
    "BlockBanded": lambda: sa.BlockBanded([np.ones((N // 2, 2, 2)), np.ones((N // 2 - 1, 2, 2))], (0, 1)),
    "Toeplitz": lambda: sa.Toeplitz([2.0, -1.0], shape=(N, N)),
    "Banded": lambda: sa.tridiagonal(np.ones(N - 1), np.ones(N), np.ones(N - 1)),
    "Permutation": lambda: sa.Permutation(np.arange(N)[::-1]),
}
SOME = np.arange(0, N, 1000)


@pytest.mark.costly
@pytest.mark.parametrize("name", LARGE)
def test_no_dense_form_of_a_large_matrix(name):
    x = LARGE[name]()
    mask = np.zeros(N, bool)
    mask[SOME] = True
    rows, columns = as_jax(sa.sum(x, axis=1)), as_jax(sa.sum(x, axis=0))
    with sa.densify("error"):
        for result, expected in (
            (x[::2], rows[::2]), (x[::-1], rows[::-1]), (x[SOME], rows[SOME]), (x[mask], rows[SOME]), (x[5:11], rows[5:11]),
            (sa.take(x, SOME, axis=0), rows[SOME]), (sa.flip(x, axis=0), rows[::-1]), (x[:, :].mT[SOME], columns[SOME]),
            (sa.roll(x, 3, axis=0), np.roll(rows, 3)), (sa.concat([x, x], axis=0), np.tile(rows, 2)),
            (sa.concat([x, x], axis=1), 2 * rows),
        ):  # fmt: skip
            np.testing.assert_array_equal(dense(sa.sum(result, axis=1)), expected)
        np.testing.assert_array_equal(dense(sa.sum(x[:, SOME], axis=0)), columns[SOME])
        np.testing.assert_array_equal(dense(sa.sum(x[:, :5], axis=0)), columns[:5])
        assert sa.nonzero(x)[0].shape == (int(sa.count_nonzero(x)),)
        x[5] = np.full(N, 2.0)
        assert type(x) is sa.Sparse and float(sa.sum(x[5])) == 2.0 * N


@pytest.mark.parametrize("offsets", [(-6, -2, 0, 1), (0,)])
def test_rows_of_a_banded_matrix_in_any_order(offsets):
    rng = np.random.default_rng(0)
    x = sa.Banded([rng.uniform(1, 2, max(0, min(9, 7 - k) - max(0, -k))) for k in offsets], offsets, (9, 7))
    a = dense(x)
    with sa.densify("error"):
        for places in ([0, 3, 4, 8], [8, 0, 3, 3, -2], [5, 5, 6], []):
            got = x[np.asarray(places, int)]
            np.testing.assert_array_equal(dense(got), a[np.asarray(places, int)])
            assert isinstance(got, sa.Sparse) and got.nnz == np.count_nonzero(dense(got))


# ---- permutations -------------------------------------------------------------------------------------------------------


def test_rows_and_columns_of_permutations_are_sparse_under_jit(rng):
    for batch in ((), (2,)):
        x = small(rng, "Permutation", batch)
        a = dense(x)
        i = np.array([3, -1, 3, 0])
        for f in (lambda x, i: x[..., i, :], lambda x, i: x[..., i], lambda x, i: sa.take(x, i, axis=-1)):
            with sa.densify("error"):
                got = jax.jit(f)(x, sa.asarray(i))
            assert type(got) is sa.Sparse and got.nnz == 4
            np.testing.assert_array_equal(dense(got), np.asarray(as_jax(f(sa.asarray(a), sa.asarray(i)))))


# ---- stacks and batches ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["Sparse", "Permutation", "BlockDiagonal"])
@pytest.mark.parametrize("second", ["Sparse", "Permutation", "Toeplitz", "Diagonal"])
def test_stacks(first, second, rng):
    for batch in ((), (2,)):
        x, y = small(rng, first, batch), small(rng, second, batch)
        for axis in range(len(batch) + 1):
            with sa.densify("error"):
                got = sa.stack([x, y, x], axis=axis)
                assert type(sa.stack([x], axis=axis)) is type(x)
            assert type(got) is (sa.Permutation if first == second == "Permutation" else type(got))
            np.testing.assert_array_equal(dense(got), np.stack([dense(x), dense(y), dense(x)], axis))
    many = [small(rng, "Sparse") for _ in range(7)]
    np.testing.assert_array_equal(dense(sa.stack(many)), np.stack([dense(x) for x in many]))
    assert type(sa.concat([many[0]])) is sa.Sparse


def batched(rng, batch=(3, 2), core=(5, 4), dtype="float64"):
    """A sparse array of matrices with patterns of their own, of different sizes."""
    a = np.where(rng.random((*batch, *core)) < 0.3, rng.integers(-4, 5, (*batch, *core)), 0).astype(dtype)
    return sa.Sparse.from_dense(a), a


@pytest.mark.costly
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "any", "all", "count_nonzero"])
@pytest.mark.parametrize("axis", [0, 1, (0, 1), (1, -1), (0, -2, -1)], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_over_batches(name, axis, keepdims, rng):
    x, a = batched(rng)
    with sa.densify("error"):
        for call in (lambda x: getattr(sa, name)(x, axis=axis, keepdims=keepdims),) * 2:
            got, compiled = call(x), jax.jit(call)(x)
            expected = getattr(np, name)(a, axis=axis, keepdims=keepdims)
            np.testing.assert_allclose(dense(got), expected, rtol=1e-15)
            np.testing.assert_allclose(dense(compiled), expected, rtol=1e-15)
            assert got.dtype == compiled.dtype
        whole = axis in (0, 1, (0, 1))
        assert type(got) is (sa.Sparse if whole else sa.Dense)


@pytest.mark.slow
def test_reductions_over_batches_of_permutations_and_of_nothing(rng):
    p = small(rng, "Permutation", (4,))
    with sa.densify("error"):
        for name in ("sum", "max", "mean"):
            got = getattr(sa, name)(p, axis=0)
            assert type(got) is sa.Sparse and not got.padded
            np.testing.assert_array_equal(dense(got), getattr(np, name)(dense(p), axis=0))
    none, a = batched(rng, (0,))
    for name in ("sum", "prod", "any", "all"):
        np.testing.assert_array_equal(dense(getattr(sa, name)(none, axis=0)), getattr(np, name)(a, axis=0))
    empty = sa.Sparse(np.zeros((3, 0)), np.zeros((3, 0, 2), int), (4, 4))
    np.testing.assert_array_equal(dense(sa.max(empty, axis=0)), np.zeros((4, 4)))
    grad = jax.grad(lambda d: as_jax(sa.sum(sa.sum(empty_or(d), axis=0) ** 2)))
    x, a = batched(rng, (3,))

    def empty_or(d):
        return x.with_data(d)

    np.testing.assert_allclose(dense(x.with_data(grad(x.data))), 2 * a.sum(0) * (a != 0), rtol=1e-15)


BATCH_WRITES = [
    (np.s_[0, 1, 2, 3], 7.0),
    (np.s_[0, 1, 2], numbers(RNG, 4)),
    (np.s_[1, :, 2, 3], numbers(RNG, 2)),
    (np.s_[1, :, :, 3], numbers(RNG, 2, 5)),
    (np.s_[::2, 0, 1:3, 1:3], numbers(RNG, 2, 2, 2)),
    (np.s_[0:2, 1, [0, 4], [3, 0]], numbers(RNG, 2, 2)),
    (np.s_[-1, 0, [0, 4], [3, 0]], 5.0),
    (np.s_[0], "sparse"),
    (np.s_[1:, 0], "sparse"),
    (np.s_[:, 1], "batch of sparse"),
    (np.s_[2, 1], "diagonal"),
]


@pytest.mark.costly
@pytest.mark.parametrize("case", range(len(BATCH_WRITES)))
def test_writes_into_batches(case, rng):
    key, value = BATCH_WRITES[case]
    values = {
        "sparse": lambda: batched(rng, ())[0],
        "batch of sparse": lambda: batched(rng, (3,))[0],
        "diagonal": lambda: sa.eye(5, 4),
    }
    value = values[value]() if isinstance(value, str) else value
    host = dense(value) if isinstance(value, sa.Sparse | sa.Diagonal) else value
    for x, a in (batched(rng), (lambda x, a: (x.mT.mT, a))(*batched(rng))):
        other = sa.asarray(x, copy=True)
        b = a.copy()
        b[key] = host
        for _ in range(2):  # the second time into parameters of its own
            with sa.densify("error"):
                x[key] = value
            assert type(x) is sa.Sparse
            np.testing.assert_array_equal(dense(x), b)
        np.testing.assert_array_equal(dense(other), a)
