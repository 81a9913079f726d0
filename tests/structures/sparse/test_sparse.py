"""Sparse arrays: construction, conversions, products, joins, writes; what is exact in eager calls, and what is static under jit."""

import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from support import as_jax, dense

import structarrays as sa
from structarrays._core.array.flattening import opened
from structarrays._structures.sparse import compressed_rows, sparse_host
from structarrays.testing import sample

N = 10**6


def random(m, n, density=0.3, seed=0):
    return scipy.sparse.random_array((m, n), density=density, rng=np.random.default_rng(seed))


def both(m, n, density=0.3, seed=0):
    x = random(m, n, density, seed)
    return sa.Sparse.from_scipy(x), x.toarray()


# ---- construction -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "indices", "shape", "error", "message"),
    [
        ([1.0], [[0, 3]], (2, 3), ValueError, "between 0 and 2 in dimension 1.*got 3"),
        ([1.0], [[-1, 0]], (2, 3), ValueError, "between 0 and 1 in dimension 0.*got -1"),
        ([1.0], [[0.5, 0.0]], (2, 3), TypeError, "indices must be integers"),
        ([1.0], ([0],), (2, 3), ValueError, "2 arrays, one for each dimension of shape, got 1"),
        ([1.0], [0, 1], (2, 3), ValueError, r"\(..., nnz, 2\)"),
        ([1.0, 2.0], ([0], [0]), (2, 3), ValueError, "same number of entries"),
        (1.0, ([0], [0]), (2, 3), ValueError, "at least one dimension"),
        ([1.0], ([0], [0]), (), ValueError, "shape must have at least one dimension"),
        ([1.0], ([0], [0]), (2, -3), ValueError, "must not be negative"),
        ([1.0], ([0], [0]), (0, 3), ValueError, "indices must be empty, since dimension 0"),
        ([1.0], ([0], [0]), (2**70, 3), ValueError, r"below 2\*\*63"),
    ],
)
def test_bad_arguments_are_named(data, indices, shape, error, message):
    with pytest.raises(error, match=message):
        sa.Sparse(data, indices, shape)


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex128", "bool"])
def test_duplicates_are_added_as_scipy_does(dtype):
    data = np.array([1, 1, 2, 0, 3]).astype(dtype)
    rows, columns = np.array([2, 0, 2, 1, 2]), np.array([1, 0, 1, 1, 0])
    x = sa.Sparse(data, (rows, columns), (3, 2))
    expected = scipy.sparse.coo_array((data, (rows, columns)), (3, 2)).toarray()
    np.testing.assert_array_equal(dense(x), expected)
    assert x.nnz == 4 and not x.padded and x.dtype == dtype
    traced = jax.jit(lambda d, r, c: sa.Sparse(d, (r, c), (3, 2)))(data, rows, columns)
    np.testing.assert_array_equal(dense(traced), expected)
    assert traced.nnz == 5 and traced.padded


def test_the_dense_form_of_a_padded_array_can_be_transposed():
    """It is a linear function of the entries; those out of range have no part in it."""
    x = sa.Sparse([1.0, 2.0, 3.0], ([0, 1, 1], [2, 0, 2]), (2, 3))._padded_to(5)
    leaves, tree = jax.tree.flatten(x)
    back = jax.linear_transpose(lambda data: as_jax(tree.unflatten([data, *leaves[1:]])), leaves[0])
    np.testing.assert_array_equal(back(jnp.arange(6.0).reshape(2, 3))[0], [2.0, 3.0, 5.0, 0.0, 0.0])


def test_coordinates_are_sorted_and_narrow():
    x = sa.Sparse([1.0, 2.0, 3.0], np.array([[1, 1], [0, 2], [1, 0]], np.int64), (2, 3))
    np.testing.assert_array_equal(x.data, [2.0, 3.0, 1.0])
    np.testing.assert_array_equal(dense(x.indices), [[0, 2], [1, 0], [1, 1]])
    assert all(c.dtype == jnp.int32 for c in x.coords)


def test_dimensions_beyond_32_bits():
    shape = (3 * 10**9, 3 * 10**9)
    x = sa.Sparse([1.0, 2.0], ([2_999_999_999, 5], [7, 2_500_000_000]), shape)
    assert x.coords[0].dtype == jnp.int64
    assert float(x[5, 2_500_000_000]) == 2.0 and float(x[2_999_999_999, 7]) == 1.0 and float(x[5, 7]) == 0.0
    assert float(sa.sum(x + x.mT)) == 6.0


@pytest.mark.costly
@pytest.mark.slow
@pytest.mark.parametrize("ndim", [1, 2, 3, 4])
def test_any_number_of_dimensions(ndim, rng):
    shape = (3, 4, 2, 3)[:ndim]
    a = np.where(rng.uniform(size=shape) < 0.4, rng.normal(size=shape), 0)
    x = sa.Sparse.from_dense(a, core_ndim=ndim)
    assert x.nnz == np.count_nonzero(a) and x.core_ndim == ndim
    np.testing.assert_array_equal(dense(x), a)
    np.testing.assert_array_equal(dense(sa.permute_dims(x, tuple(range(ndim))[::-1])), a.transpose())
    np.testing.assert_allclose(dense(sa.exp(x) + 2 * x), np.exp(a) + 2 * a)
    for axis in [None, *range(ndim), tuple(range(0, ndim, 2))]:
        np.testing.assert_allclose(dense(sa.sum(x, axis=axis)), a.sum(axis))
        np.testing.assert_allclose(dense(sa.max(x, axis=axis)), a.max(axis))
        np.testing.assert_allclose(dense(sa.prod(x, axis=axis)), a.prod(axis), atol=1e-14)
        np.testing.assert_allclose(dense(sa.std(sa.cos(x), axis=axis)), np.cos(a).std(axis), atol=1e-12)
    np.testing.assert_array_equal(dense(x[(1,) * ndim]), a[(1,) * ndim])
    np.testing.assert_array_equal(dense(x[1:]), a[1:])
    np.testing.assert_array_equal(dense(x[::-1]), a[::-1])
    if ndim > 2:
        assert type(x[1]) is sa.Sparse
        np.testing.assert_array_equal(dense(x[1]), a[1])


@pytest.mark.parametrize("shape", [(3,), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize("function", ["max", "min", "sum", "prod", "any", "all", "mean", "var"])
def test_reductions_without_entries(shape, function):
    """All elements are zeros, of which none is stored."""
    x = sa.Sparse.from_dense(np.zeros(shape), core_ndim=len(shape))
    assert x.nnz == 0
    for axis in (None, 0, -1):
        expected = getattr(np, function)(np.zeros(shape), axis=axis)
        np.testing.assert_array_equal(dense(getattr(sa, function)(x, axis=axis)), expected)


def test_batches_may_have_patterns_of_their_own(rng):
    data = np.arange(1.0, 7.0).reshape(2, 3)
    rows, columns = np.array([[0, 1, 1], [2, 2, 0]]), np.array([[0, 1, 1], [1, 0, 2]])
    x = sa.Sparse(data, (rows, columns), (3, 3))
    expected = np.zeros((2, 3, 3))
    for b in range(2):
        np.add.at(expected[b], (rows[b], columns[b]), data[b])
    assert x.shape == (2, 3, 3) and x.padded  # a duplicate in one of them
    np.testing.assert_array_equal(dense(x), expected)
    v = rng.normal(size=(3, 2))
    np.testing.assert_allclose(dense(x @ v), expected @ v)
    np.testing.assert_allclose(dense(x.mT @ x), expected.swapaxes(1, 2) @ expected)
    np.testing.assert_array_equal(dense(sa.sum(x, axis=(0, 2))), expected.sum((0, 2)))
    np.testing.assert_array_equal(dense(x + x[::-1]), expected + expected[::-1])


@pytest.mark.parametrize("format", ["coo", "csr", "csc", "dia", "lil", "dok", "bsr"])
def test_from_scipy_and_back(format):
    x = random(6, 8).asformat(format)
    y = sa.Sparse.from_scipy(x)
    np.testing.assert_array_equal(dense(y), x.toarray())
    np.testing.assert_array_equal(y.to_scipy().toarray(), x.toarray())
    with pytest.raises(TypeError, match=r"scipy\.sparse"):
        sa.Sparse.from_scipy(np.eye(3))
    with pytest.raises(ValueError, match="no background"):
        sa.exp(y).to_scipy()


def test_from_scipy_in_one_dimension():
    x = scipy.sparse.coo_array(([1.0, 2.0], ([4, 1],)), shape=(6,))
    np.testing.assert_array_equal(dense(sa.Sparse.from_scipy(x)), x.toarray())


def test_from_dense(rng):
    a = np.where(rng.uniform(size=(2, 4, 5)) < 0.3, 1.5, 0)
    x = sa.Sparse.from_dense(a)
    assert x.nnz == np.count_nonzero(a, (1, 2)).max()
    np.testing.assert_array_equal(dense(x), a)
    np.testing.assert_array_equal(dense(jax.jit(lambda a: sa.Sparse.from_dense(a, nnz=12))(a)), a)
    with pytest.raises(ValueError, match="nnz must be given"):
        jax.jit(sa.Sparse.from_dense)(a)
    with pytest.raises(ValueError, match="nnz must be at least"):
        sa.Sparse.from_dense(np.eye(3), nnz=1)


def test_repr_says_what_is_stored():
    text = repr(sa.Sparse([1.0, 2.0], ([0, 1], [1, 0]), (2, 2)))
    assert text.startswith("Sparse([1., 2.], ([0, 1], [1, 0]), shape=(2, 2), dtype=float64, stores 2 of 4 entries")
    big = repr(sa.Sparse.from_scipy(scipy.sparse.eye_array(N, format="coo")))
    assert "nnz=1000000, shape=(1000000, 1000000)" in big and "stores 1000000 of 1000000000000 entries" in big


# ---- exact and static numbers of entries ------------------------------------------------------------------------------


def test_repeated_sums_do_not_grow():
    x, a = both(7, 5)
    y = x
    for _ in range(4):
        y = y + x
        assert y.nnz == x.nnz and not y.padded
    np.testing.assert_allclose(dense(y), 5 * a)
    z, b = both(7, 5, seed=1)
    for _ in range(3):
        y = y + z
    assert y.nnz == np.count_nonzero((a != 0) | (b != 0)) and not y.padded
    np.testing.assert_allclose(dense(y), 5 * a + 3 * b)
    np.testing.assert_allclose(dense(sa.pow(x, 2 * sa.Sparse.from_dense(b))), a ** (2 * b), equal_nan=True)


@pytest.mark.parametrize("function", [lambda x, y: x + y, lambda x, y: x * y, sa.maximum, lambda x, y: x < y])
@pytest.mark.parametrize("columns", [False, True])
def test_two_patterns_meet(function, columns):
    x, a = both(6, 7)
    y, b = both(6, 7, seed=1)
    if columns:
        y = sa.Sparse.from_scipy(scipy.sparse.coo_array(b.T)).mT
        assert y.order == (1, 0)
    with sa.densify("error"):
        eager, traced = function(x, y), jax.jit(function)(*opened((x, y)))
    expected = np.asarray(function(a, b)) if function is not sa.maximum else np.maximum(a, b)
    np.testing.assert_array_equal(dense(eager), expected)
    np.testing.assert_array_equal(dense(traced), expected)
    assert not eager.padded and traced.padded
    union, intersection = np.count_nonzero((a != 0) | (b != 0)), np.count_nonzero((a != 0) & (b != 0))
    product = eager.nnz == intersection and traced.nnz == min(x.nnz, y.nnz)
    assert product or (eager.nnz == union and traced.nnz == x.nnz + y.nnz)


def test_products_of_stored_nan_and_structural_zeros():
    x = sa.Sparse([np.nan, 1.0], ([0, 1], [0, 1]), (2, 2))
    y = sa.Sparse([2.0, 3.0], ([0, 1], [1, 1]), (2, 2))
    for product in (x * y, jax.jit(lambda x, y: x * y)(x, y), x * sa.Diagonal([0.0, 3.0]) * y):
        assert np.isfinite(dense(product)).all()


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (lambda: sa.tridiagonal([1.0] * 5, [2.0] * 6, [3.0] * 5), "Sparse"),
        (lambda: sa.eye(6), "Sparse"),
        (lambda: sa.Permutation([1, 0, 2, 3, 5, 4]), "Sparse"),
        (lambda: sa.Fill(2.0, (6, 6)), "Sparse"),
        (lambda: 3.0, "Sparse"),
    ],
)
def test_joins_are_sparse(other, name):
    x, a = both(6, 6)
    other = other()
    b = other if isinstance(other, float) else dense(other)
    with sa.densify("error"):
        for result, expected in (
            (x + other, a + b),
            (other - x, b - a),
            (jax.jit(lambda x, y: x + y)(x, other), a + b),
        ):
            assert type(result).__name__ == name
            np.testing.assert_allclose(dense(result), expected)
        assert not (x + other).padded


# ---- products ---------------------------------------------------------------------------------------------------------


BESIDE = (
    "Diagonal",
    "Banded",
    "Toeplitz",
    "Circulant",
    "Symmetric",
    "Triangular",
    "BlockDiagonal",
    "Permutation",
    "LowRank",
)


@pytest.mark.slow
def test_elementwise_products_with_structures_of_another_batch(rng):
    """Each matrix of the one batch meets each of the other, though their patterns differ."""
    a = np.where(rng.random((3, 6, 6)) < 0.4, rng.normal(size=(3, 6, 6)), 0)
    others = {name: sample(name, (6, 6), batch=(2, 1)) for name in BESIDE}
    products = jax.jit(lambda x, others: {n: (x * y, y * x) for n, y in others.items()})(
        sa.Sparse.from_dense(a), others
    )
    for name, found in products.items():
        for product in found:
            assert product.shape == (2, 3, 6, 6), name
            np.testing.assert_allclose(dense(product), a * dense(others[name]), rtol=1e-12, atol=1e-12, err_msg=name)


def test_products_with_dense(rng):
    x, a = both(5, 8)
    with sa.densify("error"):
        for shape in ((8,), (8, 3), (2, 8, 3), (2, 1, 8, 3), (0, 8, 3), (8, 0)):
            v = rng.normal(size=shape)
            np.testing.assert_allclose(dense(x @ v), a @ v, atol=1e-14)
            w = np.swapaxes(v, -1, -2) if v.ndim > 1 else v
            np.testing.assert_allclose(dense(w @ x.mT), w @ a.T, atol=1e-14)
    long = sa.Sparse.from_scipy(random(3000, 2000, 0.1))  # in several pieces
    assert long.nnz > 4 * 2**17
    v = rng.normal(size=2000)
    np.testing.assert_allclose(dense(long @ v), long.to_scipy() @ v)
    np.testing.assert_allclose(dense(long.mT @ v[:1].repeat(3000)), long.to_scipy().T @ v[:1].repeat(3000))


@pytest.mark.parametrize("transposed", [False, True])
def test_products_of_sparse_matrices_are_exact_in_eager_calls(transposed):
    x, a = both(9, 7)
    y, b = both(9, 6, seed=1) if transposed else both(7, 6, seed=1)
    if transposed:
        x, y, a, b = x.mT, y, a.T, b
    with sa.densify("error"):
        product = x @ y
    np.testing.assert_allclose(dense(product), a @ b, atol=1e-14)
    pattern = (a != 0).astype(int) @ (b != 0).astype(int)
    assert product.nnz == np.count_nonzero(pattern) and not product.padded
    np.testing.assert_allclose(dense(jax.jit(lambda x, y: x @ y)(x, y)), a @ b, atol=1e-14)
    np.testing.assert_allclose(dense(sa.linalg.matrix_power(x.mT @ x, 3)), np.linalg.matrix_power(a.T @ a, 3))


def test_products_of_few_entries_are_sparse_under_jit():
    m, n, p = 50, 40, 30
    x = sa.Sparse([1.0, 2.0, 3.0], ([4, 4, 9], [3, 5, 3]), (m, n))
    y, b = both(n, p)
    with sa.densify("error"):
        left, right = (jax.jit(f)(*opened((x, y))) for f in (lambda x, y: x @ y, lambda x, y: y.mT @ x.mT))
    assert type(left) is type(right) is sa.Sparse and left.nnz == right.nnz == 3 * p
    np.testing.assert_allclose(dense(left), dense(x) @ b)
    np.testing.assert_allclose(dense(right), (dense(x) @ b).T)


def test_products_with_banded_and_diagonal():
    x, a = both(6, 6)
    band, wide = sa.tridiagonal([1.0] * 5, [2.0] * 6, [3.0] * 5), sa.Diagonal(np.arange(1.0, 5.0), shape=(6, 4))
    with sa.densify("error"):
        for other in (band, sa.Diagonal(np.arange(6.0)), wide, sa.eye(6)):
            np.testing.assert_allclose(dense(x @ other), a @ dense(other), atol=1e-14)
            np.testing.assert_allclose(dense(other.mT @ x), dense(other).T @ a, atol=1e-14)
            assert type(x @ other) is sa.Sparse


def test_gradients_go_to_the_entries(rng):
    x, a = both(5, 4)
    v = rng.normal(size=4)
    gradient = sa.grad(lambda x: sa.sum((x @ v) ** 2))(x)
    expected = 2 * np.outer(a @ v, v)
    np.testing.assert_allclose(dense(gradient), np.where(a != 0, expected, 0))
    assert type(gradient) is sa.Sparse


def test_results_share_coordinates_in_eager_calls():
    x, a = both(5, 4)
    for y, expected in ((sa.exp(x), np.exp(a)), (2 * x, 2 * a), (x.mT.mT, a), (x * np.arange(4.0), a * np.arange(4.0))):
        assert all(one is other for one, other in zip(y.coords, x.coords, strict=True))
        np.testing.assert_allclose(dense(y), expected)
    y = x + sa.exp(x) * 3.0
    assert all(one is other for one, other in zip(y.coords, x.coords, strict=True)) and y.background is not None
    r, c = (int(i) for i in dense(x.indices)[0])
    y[r, c] = 1.0
    y[r, c] = 2.0
    np.testing.assert_array_equal(dense(x), a)
    with pytest.raises(ValueError, match="broadcast"):
        x + np.ones((3, 7))
    with pytest.raises(TypeError, match="boolean|bool"):
        sa.logical_and(x, x)
    assumed = sa.assume(sa.Sparse.from_dense(np.eye(3)), "symmetric")
    assert (assumed + assumed).assumptions == (assumed + assumed.mT).assumptions == assumed.assumptions


def test_the_transpose_is_free():
    x, a = both(40, 30)
    text = jax.jit(lambda x: x.mT).lower(x).as_text()
    assert "sort" not in text and x.mT.order == (1, 0)
    np.testing.assert_array_equal(dense(x.mT), a.T)


# ---- parts ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_parts():
    x, a = both(8, 6)
    with sa.densify("error"):
        for key in (np.s_[2:5], np.s_[:, 1:4], np.s_[::2, ::-1], np.s_[3:3], np.s_[[4, 1, 1]], np.s_[:, [0, 5]]):
            assert type(x[key]) is sa.Sparse and not x[key].padded
            assert x[key].nnz == np.count_nonzero(a[key])
            np.testing.assert_array_equal(dense(x[key]), a[key])
        for key in (np.s_[3], np.s_[:, 2], np.s_[2, ::-2], np.s_[-1, -1], np.s_[[1, 2], [3, 0]], np.s_[3, [1, 1]]):
            np.testing.assert_array_equal(dense(x[key]), a[key])
        mask = a.sum(1) > 0
        np.testing.assert_array_equal(dense(x[mask]), a[mask])
        full = sa.Sparse.from_dense(np.maximum(a, 1) + np.eye(8, 6))  # no row is empty
        np.testing.assert_array_equal(dense(full[mask]), dense(full)[mask])
        np.testing.assert_array_equal(dense(sa.take(x, sa.asarray([1, -1, 0]), axis=1)), a[:, [1, -1, 0]])
        for k in (-2, 0, 1):
            np.testing.assert_array_equal(dense(sa.tril(x, k=k)), np.tril(a, k))
            np.testing.assert_array_equal(dense(sa.triu(x, k=k)), np.triu(a, k))
            np.testing.assert_array_equal(dense(sa.linalg.diagonal(x, offset=k)), np.diagonal(a, k))
            assert sa.tril(x, k=k).nnz == np.count_nonzero(np.tril(a, k))
        for got, want in zip(sa.nonzero(x.mT), np.nonzero(a.T), strict=True):
            np.testing.assert_array_equal(dense(got), want)
        assert int(sa.count_nonzero(x)) == np.count_nonzero(a)
        np.testing.assert_array_equal(dense(sa.flip(x, axis=1)), a[:, ::-1])
        np.testing.assert_array_equal(dense(sa.roll(x, (3, -1), axis=(0, 1))), np.roll(a, (3, -1), (0, 1)))
        np.testing.assert_array_equal(dense(sa.concat([x, x * 2, x], axis=0)), np.concatenate([a, a * 2, a]))
        np.testing.assert_array_equal(dense(sa.concat([x, sa.eye(8)], axis=1)), np.concatenate([a, np.eye(8)], 1))
        condition = x > 0
        np.testing.assert_array_equal(dense(sa.where(condition, x, 0.0)), np.where(a > 0, a, 0))
        assert not sa.where(condition, x, sa.eye(8, 6)).padded
        for ord in ("fro", 1, -1, np.inf):
            np.testing.assert_allclose(float(sa.linalg.matrix_norm(x, ord=ord)), np.linalg.norm(a, ord))


def test_an_element_that_32_bits_cannot_count():
    x = sa.Sparse([1.0, 2.0, 3.0], ([0, 999_999, 999_999], [5, 4, 999_999]), (N, N))
    with sa.densify("error"):
        assert [float(x[k]) for k in ((0, 5), (999_999, 4), (999_999, 999_999), (5, 0), (999_998, 4))] == [
            1,
            2,
            3,
            0,
            0,
        ]


# ---- writes -----------------------------------------------------------------------------------------------------------


@pytest.mark.costly
@pytest.mark.parametrize("background", [None, 1.5])
def test_writes(background):
    x, a = both(6, 5)
    if background is not None:
        x, a = x + background, a + background
    with sa.densify("error"):
        for key, value in (
            (np.s_[2, 3], 7.0), (np.s_[2, 3], 8.0), (np.s_[-1, -2], 9.0), (np.s_[[0, 1], [1, 2]], [1.0, 2.0]),
            (np.s_[4], np.arange(5.0)), (np.s_[:, 0], 3.0), (np.s_[[1, 1], [4, 4]], [5.0, 5.0]),
        ):  # fmt: skip
            x[key] = value
            a[key] = value
            np.testing.assert_array_equal(dense(x), a)
            assert type(x) is sa.Sparse
        stored = x.nnz
        x[4, 2] = -1.0
        assert x.nnz == stored


@pytest.mark.slow
def test_writes_under_jit_and_into_batches():
    x, a = both(6, 5)

    @jax.jit
    def write(x, value):
        x[2, 3] = value
        x[[0, 0, 5], [1, 1, 4]] = value + 1
        return x

    b = a.copy()
    b[2, 3], b[0, 1], b[5, 4] = 7.0, 8.0, 8.0
    with sa.densify("error"):
        np.testing.assert_array_equal(dense(write(x, 7.0)), b)
        np.testing.assert_array_equal(dense(x), a)
        y = sa.Sparse.from_dense(np.stack([a, a[::-1]]))
        y[:, 1, 2] = np.array([5.0, 6.0])
    c = np.stack([a, a[::-1]])
    c[:, 1, 2] = 5.0, 6.0
    np.testing.assert_array_equal(dense(y), c)


def test_a_write_does_not_reach_other_handles():
    x, a = both(6, 5)
    y = x * 1.0
    z = sa.asarray(x, copy=True)
    r, c = (int(i) for i in dense(x.indices)[0])
    for value in (5.0, 6.0):
        x[r, c] = value
    for other in (y, z):
        np.testing.assert_array_equal(dense(other), a)


def test_a_large_write_makes_it_dense():
    x = sa.Sparse([1.0], ([0], [0]), (30, 30))
    x[:, :20] = 1.0
    assert type(x) is sa.Dense


# ---- memory -----------------------------------------------------------------------------------------------------------


def test_no_dense_form_of_a_million_rows():
    identity = sa.Sparse.from_scipy(scipy.sparse.eye_array(N, format="csr"))
    zero = sa.Sparse([], ([], []), (N, N))
    v = sa.asarray(np.arange(float(N)))
    with sa.densify("error"):
        np.testing.assert_array_equal(dense(identity @ v), dense(v))
        assert float(sa.sum(zero @ v)) == 0.0
        both = identity + sa.eye(N) + zero
        assert both.nnz == N
        assert float(sa.linalg.trace(both)) == 2.0 * N
        assert (identity @ identity).nnz == N
        assert float(sa.sum(both.mT[3:10])) == 14.0
        np.testing.assert_array_equal(dense(sa.Sparse.from_scipy(identity.to_scipy())[7, 5:9]), [0, 0, 1, 0])


@pytest.mark.parametrize("function", [lambda x, v: x @ v, lambda x, v: sa.sum(x * v), lambda x, v: (x + x.mT) @ v])
def test_no_square_buffer(function):
    n = 3000
    x = sa.Sparse.from_scipy(random(n, n, 1e-3))
    text = jax.jit(function).lower(x, jnp.ones(n)).compile().as_text()
    assert f"[{n},{n}]" not in text


# ---- products with exact patterns ---------------------------------------------------------------------------------------


def diagonal_pattern(n):
    i = np.arange(n)
    return sa.Sparse(np.linspace(1.0, 2.0, n), (i, i), (n, n))


def test_a_compiled_product_is_dense_before_its_entries_take_more_than_that():
    x = diagonal_pattern(5999)
    wide = sa.Sparse(x.data, x.coords, (6000, 6000))  # one entry fewer than rows
    with sa.densify("error"), pytest.raises(sa.DensifyError, match="matmul"):
        jax.jit(lambda a: a @ a)(opened(wide))
    n = 50_000
    with pytest.raises(sa.DensifyError, match="matmul"):
        jax.jit(lambda a: a @ a)(opened(sa.Sparse(np.ones(n - 1), (np.arange(n - 1), np.arange(n - 1)), (n, n))))


@pytest.mark.slow
def test_the_derivative_of_a_product_has_the_exact_pattern():
    a, d = both(7, 7)
    gradient = sa.grad(lambda a: sa.sum(sa.square(a @ a)))(a)
    want = jax.grad(lambda m: ((m @ m) ** 2).sum())(d)
    np.testing.assert_allclose(gradient.data, np.asarray(want)[tuple(map(np.asarray, a.coords))], rtol=1e-12)
    with sa.densify("error"):
        x = diagonal_pattern(N)
        assert sa.grad(lambda a: sa.sum(a @ a))(x).nnz == N


@pytest.mark.parametrize("n", [1, 2, 5])
def test_powers_are_exact(n):
    x, d = both(6, 6)
    power = sa.linalg.matrix_power(x, n)
    assert type(power) is sa.Sparse and not power.padded
    np.testing.assert_allclose(dense(power), np.linalg.matrix_power(d, n), rtol=1e-12)
    with sa.densify("error"):
        assert sa.linalg.matrix_power(diagonal_pattern(N), n).nnz == N


@pytest.mark.costly
@pytest.mark.parametrize(("first", "second"), [((2, 3), (3,)), ((), (2,)), ((2,), ()), ((0,), ())])
def test_products_of_batches_are_exact(first, second, rng):
    a, b = (np.where(rng.random((*s, 5, 5)) < 0.3, rng.random((*s, 5, 5)), 0) for s in (first, second))
    product = sa.Sparse.from_dense(a) @ sa.Sparse.from_dense(b)
    assert type(product) is sa.Sparse
    np.testing.assert_allclose(dense(product), a @ b, rtol=1e-12)


def test_a_product_over_a_huge_dimension_takes_no_memory_for_it():
    x = sa.Sparse([1.0, 2.0], ([0, 1], [5, 2**33]), (2, 2**34))
    np.testing.assert_array_equal(dense(x @ x.mT), [[1.0, 0.0], [0.0, 4.0]])


def test_rows_of_a_huge_dimension_take_no_memory_for_it():
    x = sa.Sparse([1.0, 2.0], ([5, 2**33], [0, 1]), (2**34, 2))
    np.testing.assert_array_equal(dense(x[np.array([2**33, 7, 5])]), [[0.0, 2.0], [0.0, 0.0], [1.0, 0.0]])


LARGE = 2**33


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    "lines",
    [
        slice(0, 5),
        slice(2**31 - 3, 2**31 + 9),
        slice(2**32, 2**32 + 10),
        slice(LARGE - 5, LARGE),
        slice(2**31 + 1, 2**32 + 9),
        slice(2**32, 2**32 + 10, 3),
        slice(2**32 + 9, 2**32, -1),
    ],
)
@pytest.mark.parametrize("others", [slice(None), slice(1, 4)])
def test_slices_of_coordinates_beyond_32_bits(transposed, axis, lines, others):
    """The coordinates of the argument do not fit into 32 bits, but the coordinates of the result do."""
    large = np.array([1, 2**31 - 1, 2**31 + 4, 2**32 + 3, 2**32 + 3, 2**32 + 7, LARGE - 1])
    small, values = np.array([0, 3, 1, 1, 3, 2, 4]), np.arange(7.0) + 1
    places, shape, key = [large, small], [LARGE, 5], [lines, others]
    if axis == 1:
        places, shape, key = places[::-1], shape[::-1], key[::-1]
    if transposed:  # sorted by columns
        x = sa.Sparse(values, tuple(places[::-1]), tuple(shape[::-1])).mT
    else:
        x = sa.Sparse(values, tuple(places), tuple(shape))
    found = x[tuple(key)]
    expected = {}
    for *place, value in zip(*(p.tolist() for p in places), values.tolist(), strict=True):
        chosen = [range(*k.indices(n)) for k, n in zip(key, shape, strict=True)]
        if all(i in c for i, c in zip(place, chosen, strict=True)):
            expected[tuple(c.index(i) for i, c in zip(place, chosen, strict=True))] = value
    assert found.shape == tuple(len(range(*k.indices(n))) for k, n in zip(key, shape, strict=True))
    data, *indices = (np.asarray(leaf) for leaf in (found.data, *found.coords))
    assert dict(zip(zip(*(i.tolist() for i in indices), strict=True), data.tolist(), strict=True)) == expected


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32", "float64", "complex128"])
@pytest.mark.parametrize("count", [0, 1, 1000])
def test_rows_taken_on_the_host_become_arrays_without_a_copy(dtype, count):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 9, 50).astype(dtype)
    places = rng.integers(0, 50, count)
    taken = sparse_host.take(values, places)
    array = jax.device_put(taken)
    np.testing.assert_array_equal(array, values[places])
    if count and jax.default_backend() == "cpu":
        assert array.unsafe_buffer_pointer() == taken.ctypes.data


def test_where_the_lines_of_a_matrix_are_is_kept_as_long_as_it(monkeypatch):
    monkeypatch.setattr(compressed_rows, "routines", lambda: None)  # these keep the starts of rows, see there
    x, expected = both(60, 40, 0.1)
    rng = np.random.default_rng(1)
    before = len(sparse_host._LINES)
    for _ in range(3):
        rows, columns = rng.random(60) < 0.4, rng.integers(0, 40, 50)
        for array in (x, 2 * x):  # the product shares the coordinates
            factor = 1 if array is x else 2
            np.testing.assert_array_equal(dense(array[rows]), factor * expected[rows])
            np.testing.assert_array_equal(dense(array[:, columns]), factor * expected[:, columns])
    assert len(sparse_host._LINES) == before + 2
    del x, array
    gc.collect()
    assert len(sparse_host._LINES) == before


def test_powers_of_integers_are_floating_and_exact():
    x = sa.Sparse([2, 3], ([0, 1], [1, 0]), (2, 2))
    power = sa.linalg.matrix_power(x, 3)
    assert type(power) is sa.Sparse and power.dtype == "float64"
    np.testing.assert_array_equal(dense(power), np.linalg.matrix_power([[0.0, 2.0], [3.0, 0.0]], 3))


def test_errors_of_conversions_say_what_to_do():
    x = scipy.sparse.eye_array(3, format="csr")
    with pytest.raises(TypeError, match="Sparse.from_scipy"):
        sa.asarray(x)
    with pytest.raises(ValueError, match="a must have at least one dimension"):
        sa.Sparse.from_dense(3.0)
    with pytest.raises(ValueError, match="no background .*, got 1.0"):
        sa.exp(sa.Sparse.from_scipy(x)).to_scipy()


@pytest.mark.parametrize("key", [slice(2, 5), slice(0, 0), slice(3, None), slice(None, -1), slice(7, 9)])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_rows_that_stand_together(key, order):
    """A slice of the rows takes their entries and no others, of a padded array too."""
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((8, 6)) < 0.4, rng.normal(size=(8, 6)), 0)
    x = sa.Sparse.from_dense(dense if order == (0, 1) else dense.T)
    x = x if order == (0, 1) else x.mT
    for y in (x, x._padded_to(x.nnz + 3)):
        part = y[key]
        assert type(part) is sa.Sparse and part.shape == dense[key].shape
        assert part.nnz == np.count_nonzero(dense[key])
        np.testing.assert_array_equal(np.asarray(part.to_dense()), dense[key])
        np.testing.assert_array_equal(np.asarray(jax.jit(lambda y: as_jax(y[key].to_dense()))(y)), dense[key])


def test_the_error_of_a_traced_product_says_what_keeps_the_structure():
    design = sa.Sparse(np.ones(40), (np.arange(40), np.arange(40) % 10), (40, 10))
    with sa.densify("error"):
        with pytest.raises(sa.DensifyError, match="outside jit for a Sparse result, or use sa.Product.* stores both"):
            jax.jit(sa.matmul)(*opened((design.mT, design)))
        assert type(design.mT @ design) is sa.Sparse
        assert type(jax.jit(sa.Product)(design.mT, design)) is sa.Product


KEYS_OF_LINES = [
    np.s_[2], np.s_[:, 3], np.s_[1:4], np.s_[:, ::2], np.s_[::-1], np.s_[1:4, 2:5], np.s_[-1], np.s_[[0, 3]], np.s_[:, [-1, 2, 2]],
    np.s_[[True, False] * 3], np.s_[[]], np.s_[2:2], np.s_[1:, [0]], np.s_[3, 1:], np.s_[[1, 2], 4:],
]  # fmt: skip


@pytest.mark.parametrize("kind", ["rows", "columns", "padded", "batch"])
@pytest.mark.parametrize("key", KEYS_OF_LINES, ids=str)
def test_zeros_written_to_lines_keep_the_pattern(kind, key, rng):
    a = np.where(rng.random((6, 8)) < 0.4, rng.normal(size=(6, 8)), 0)
    x = sa.Sparse.from_dense(a) if kind != "padded" else sa.Sparse.from_dense(a, nnz=40)
    if kind == "columns":
        x, a = x.mT, a.T
        key = key if isinstance(key, tuple) else (slice(None), key)
    if kind == "batch":
        x, a = sa.stack([x, 2 * x]), np.stack([a, 2 * a])
        key = (slice(None), *key) if isinstance(key, tuple) else (slice(None), key)

    def written(x):
        x = 1.0 * x  # a handle of its own
        x[key] = 0
        return x

    with sa.densify("error"):
        results = [written(x), jax.jit(written)(x)]
    a[key] = 0
    for result in results:
        assert type(result) is sa.Sparse and result.nnz == x.nnz
        np.testing.assert_array_equal(np.asarray(result.to_jax()), a)


def test_boundary_conditions_by_writes():
    """Zeros in whole rows replace stored entries and add none. The dense matrix would take 80 GB."""
    n = 100_000
    x = sa.Sparse(np.ones(n - 1), (np.arange(n - 1), np.arange(1, n)), (n, n))
    fixed = np.arange(0, n, 10)
    with sa.densify("error"):
        x[fixed, :] = 0.0
        x[:, fixed] = 0.0
        x[fixed, fixed] = 1.0
    assert x.nnz == n - 1 + len(fixed)
    row_sums, i = np.asarray(sa.sum(x, axis=1).to_jax()), np.arange(n)
    np.testing.assert_array_equal(row_sums, np.where(i % 10 == 0, 1, (i % 10 != 9) * (i < n - 1)))


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.float32, np.complex64, jnp.bfloat16])
def test_zeros_of_all_data_types_written_to_a_row(dtype):
    x = sa.Sparse(np.ones(2, dtype), ([0, 1], [1, 2]), (3, 4))
    x[1] = 0
    assert x.nnz == 2 and x.dtype == dtype and np.asarray(x.to_jax())[1].astype(bool).sum() == 0


def test_negative_zeros_and_values_of_one_element_are_stored():
    x = sa.Sparse([1.0], ([0], [1]), (3, 4))
    y, z = 1.0 * x, 1.0 * x
    y[2, 3] = 0.0
    z[1] = -0.0
    assert y.nnz == 2 and z.nnz == 5 and np.signbit(np.asarray(z.to_jax())[1]).all()
