"""Eager sums, products and selections of sparse matrices by SciPy's routines, compared with dense NumPy arrays.

The pattern of a result depends on the patterns of the operands alone, as under a trace.
"""

import gc
import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import structarrays as sa
from structarrays._structures.sparse import compressed_rows, row_arithmetic

DTYPES = ("float32", "float64", "complex64", "complex128", "int8", "int32", "int64", "uint8")
SHAPE = (40, 30)


def pair(rng, dtype, shape=SHAPE, count=150, transposed=False):
    """A sparse matrix and its dense form."""
    places = rng.choice(np.prod(shape), count, replace=False)
    data = rng.integers(1, 9, count).astype(dtype)
    if np.dtype(dtype).kind == "c":
        data += 1j * rng.integers(1, 9, count).astype(dtype)
    dense = np.zeros(shape, dtype)
    dense.flat[places] = data
    coords = np.unravel_index(places, shape)
    if transposed:
        return sa.matrix_transpose(sa.Sparse(data, coords[::-1], shape[::-1])), dense
    return sa.Sparse(data, coords, shape), dense


def check(result, expected, stored):
    """Check values, data type, number of entries and the canonical form."""
    assert type(result) is sa.Sparse
    assert result.dtype == expected.dtype
    keys = [np.asarray(result.coords[i]) for i in result.order]
    assert (np.diff(np.ravel_multi_index(keys, [result.shape[i] for i in result.order])) > 0).all()
    assert result.nnz == stored.sum() and not result.padded
    np.testing.assert_allclose(np.asarray(result.to_dense()), expected, rtol=1e-6, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul])
def test_arithmetic(rng, dtype, transposed, operation):
    x, a = pair(rng, dtype)
    y, b = pair(rng, dtype, transposed=transposed)
    stored = (a != 0) & (b != 0) if operation is operator.mul else (a != 0) | (b != 0)
    for _ in range(3):  # from the second call on, by the plan of these two patterns
        check(operation(x, y), operation(a, b), stored)
        assert operation(x, y).order == x.order
        check(operation(y, x), operation(b, a), stored)
        x, a = x.with_data(3 * x.data), 3 * a


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_product(rng, dtype, transposed):
    x, a = pair(rng, dtype, transposed=transposed[0])
    y, b = pair(rng, dtype, (30, 50), transposed=transposed[1])
    check(x @ y, a @ b, ((a != 0).astype(int) @ (b != 0)) > 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul])
def test_equal_patterns_in_different_arrays(rng, dtype, operation):
    x, a = pair(rng, dtype)
    y = sa.Sparse(3 * np.asarray(x.data), tuple(np.array(c) for c in x.coords), SHAPE)
    y = y.with_data(y.data.at[::3].set(-x.data[::3]).at[1::3].set(x.data[1::3]))
    check(operation(x, y), operation(a, np.asarray(y.to_dense())), a != 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operation", [operator.add, operator.sub])
@pytest.mark.parametrize("value", [1.0, 0.0, -0.0, np.nan, np.inf, 1e30])
def test_cancellation_in_different_patterns(rng, dtype, operation, value):
    """Some entries that both matrices store cancel, and some are special values."""
    (x, a), (y, b) = pair(rng, dtype), pair(rng, dtype)
    if np.dtype(dtype).kind in "iu":
        value = 0 if abs(value) < 1 else 1
    a[:5], b[:5] = 0, 0
    a[0, ::2] = b[0, ::2] = 2
    a[1, :], b[1, :] = 3, (-3 if operation is operator.add and dtype != "uint8" else 3)
    stored_x, stored_y = (a != 0) | (np.arange(SHAPE[0])[:, None] == 2), (b != 0)
    a[2] = value
    x, y = (sa.Sparse(m[s], np.nonzero(s), SHAPE) for m, s in ((a, stored_x), (b, stored_y)))
    with np.errstate(all="ignore"):
        for _ in range(2):  # the first call finds that entries cancel, the second has a plan
            check(operation(x, y), operation(a, b), stored_x | stored_y)
        other = np.where(stored_x, rng.integers(1, 9, SHAPE), 0).astype(dtype)
        check(operation(x.with_data(other[stored_x]), y), operation(other, b), stored_x | stored_y)


@pytest.mark.parametrize("operation", [sa.maximum, sa.minimum, sa.hypot, sa.logaddexp, sa.equal])
def test_other_functions(rng, operation):
    x, a = pair(rng, "float64")
    for transposed in (False, True):
        y, b = pair(rng, "float64", transposed=transposed)
        result = operation(x, y)
        np.testing.assert_allclose(np.asarray(result.to_dense()), getattr(np, operation.__name__)(a, b), rtol=1e-12)
        assert result.nnz == ((a != 0) | (b != 0)).sum()


def test_cancelled_and_stored_zeros_remain_entries(rng):
    x, a = pair(rng, "float64")
    y, b = pair(rng, "float64")
    check(x - x.with_data(x.data + 0), a - a, a != 0)
    other = sa.Sparse(-np.asarray(x.data), tuple(np.asarray(c) for c in x.coords), SHAPE)
    check(x + other, a - a, a != 0)
    zeros = y.with_data(jnp.zeros(y.nnz))
    check(x + zeros, a, (a != 0) | (b != 0))
    check(x * zeros, 0 * a, (a != 0) & (b != 0))
    # The boundary of a boundary vanishes, while its pattern does not.
    first = sa.Sparse([1.0, 1.0, 2.0], ([0, 0, 1], [0, 1, 2]), (2, 3))
    second = sa.Sparse([1.0, -1.0, 3.0], ([0, 1, 2], [0, 0, 1]), (3, 2))
    check(first @ second, np.array([[0.0, 0.0], [0.0, 6.0]]), np.array([[True, False], [False, True]]))


def test_nan_and_infinity_meet_no_structural_zeros(rng):
    x, a = pair(rng, "float64")
    y, b = pair(rng, "float64")
    for value in (np.nan, np.inf):
        data = np.asarray(x.data).copy()
        data[::7] = value
        special = x.with_data(data)
        c = np.asarray(special.to_dense())
        both = (a != 0) & (b != 0)
        for _ in range(3):
            check(special + y, c + b, (a != 0) | (b != 0))
            check(y - special, b - c, (a != 0) | (b != 0))
            check(special * y, np.where(both, np.where(both, c, 0) * b, 0), both)
        z, d = pair(rng, "float64", (30, 20))
        result = special @ z
        assert result.nnz == (((a != 0).astype(int) @ (d != 0)) > 0).sum()
        with np.errstate(invalid="ignore"):
            expected = sum(
                np.where((c[:, k, None] != 0) & (d[k] != 0), c[:, k, None] * d[k], 0.0) for k in range(SHAPE[1])
            )
        np.testing.assert_array_equal(np.asarray(result.to_dense()), expected)


def test_eager_results_have_the_pattern_of_derivatives(rng):
    x, _ = pair(rng, "float64")
    y, _ = pair(rng, "float64")
    z, _ = pair(rng, "float64", (30, 20))
    for operation, other in ((operator.add, y), (operator.mul, y), (operator.matmul, z)):
        seen = []

        def total(data, operation=operation, other=other, seen=seen):
            result = operation(x.with_data(data), other)
            seen.append(result)
            return jnp.sum(result.data)

        jax.grad(total)(x.data)
        eager = operation(x, other)
        for one, two in zip(eager.coords, seen[0].coords, strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(two))
        traced = jax.jit(operation)(x, other)
        np.testing.assert_allclose(np.asarray(traced.to_dense()), np.asarray(eager.to_dense()), rtol=1e-12)


def test_assumptions_of_sums(rng):
    x, a = pair(rng, "float64", (30, 30))
    y, b = pair(rng, "float64", (30, 30))
    x, y = sa.assume(x + x.mT, "symmetric"), sa.assume(y + y.mT, "symmetric")
    assert "symmetric" in (x + y).assumptions
    assert not (x - y).assumptions and not (x * y).assumptions and not (x @ y).assumptions
    assert not (x + sa.forget(y)).assumptions


def test_a_pattern_that_contains_the_other_is_shared(rng):
    x, _ = pair(rng, "float64")
    part = sa.tril(x)
    total = x + part
    assert all(one is two for one, two in zip(total.coords, x.coords, strict=True))


def test_empty_and_small_arrays():
    for shape in ((0, 3), (3, 0), (0, 0), (2, 3)):
        x = sa.Sparse(np.zeros(0), (np.zeros(0, int), np.zeros(0, int)), shape)
        assert (x + x.with_data(x.data + 1)).nnz == 0
        assert (x @ x.mT).shape == (shape[0], shape[0]) and (x @ x.mT).nnz == 0
    one = sa.Sparse([2.0], ([1], [2]), (2, 3))
    empty = sa.Sparse(np.zeros(0), (np.zeros(0, int), np.zeros(0, int)), (2, 3))
    check(one + empty, np.asarray(one.to_dense()), np.asarray(one.to_dense()) != 0)
    check(one * empty, np.zeros((2, 3)), np.zeros((2, 3), bool))


def test_batches_and_backgrounds_are_unchanged(rng):
    x, a = pair(rng, "float64")
    y, b = pair(rng, "float64")
    many = x.with_data(jnp.stack([x.data, 2 * x.data]))
    np.testing.assert_allclose(np.asarray((many + y).to_dense()), np.stack([a + b, 2 * a + b]))
    shifted = sa.exp(x) + y
    np.testing.assert_allclose(np.asarray(shifted.to_dense()), np.exp(a) + b)


def test_other_orders(rng):
    x, a = pair(rng, "float64")
    turned = x._in_order((1, 0))
    check(turned, a, a != 0)
    check(turned._in_order((0, 1)), a, a != 0)
    cube = sa.Sparse(np.arange(1.0, 6), ([0, 1, 1, 2, 2], [1, 0, 1, 0, 1], [3, 2, 1, 0, 3]), (3, 2, 4))
    assert np.array_equal(np.asarray(cube._in_order((2, 0, 1)).to_dense()), np.asarray(cube.to_dense()))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64", "bool"])
def test_conversion_from_scipy_copies(rng, dtype):
    dense = (rng.integers(1, 9, SHAPE) * (rng.random(SHAPE) < 0.1)).astype(dtype)
    matrix = scipy.sparse.csr_array(dense.astype("float64")).astype(dtype)
    for one in (matrix, matrix.tocsc(), matrix.tocoo(copy=True)):
        result = sa.Sparse.from_scipy(one)
        one.data[:] = 0
        check(result, dense, dense != 0)
        check(result + result.mT.mT, dense + dense, dense != 0) if dtype != "bool" else None
    unsorted = scipy.sparse.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    np.testing.assert_array_equal(np.asarray(sa.Sparse.from_scipy(unsorted).to_dense()), [[2.0, 0.0, 4.0]])
    empty = sa.Sparse.from_scipy(scipy.sparse.csr_array((3, 4)))
    assert empty.shape == (3, 4) and empty.nnz == 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int16", "bool"])
@pytest.mark.parametrize("transposed", [False, True])
def test_large_dense_forms(rng, dtype, transposed):
    x, a = pair(rng, dtype, (300, 500), 2000, transposed)
    dense = x.to_dense()
    np.testing.assert_array_equal(np.asarray(dense), a)
    assert dense.dtype == a.dtype
    other = x.to_dense()
    other[0, 0] = 1
    other[5] = 0
    a[0, 0] = 1
    a[5] = 0
    np.testing.assert_array_equal(np.asarray(other), a)
    shifted = sa.exp(sa.real(x).astype("float64")) if dtype == "complex128" else sa.exp(x.astype("float64"))
    np.testing.assert_allclose(np.asarray(shifted.to_dense()), np.exp(np.asarray(x.to_dense()).real.astype("float64")))


KEYS = (
    np.s_[2:20],
    np.s_[:, 3:9],
    np.s_[2:20, 3:9],
    np.s_[::2],
    np.s_[1:30:3, ::4],
    np.s_[:, ::-1],
    np.s_[::-1],
    np.s_[30:2:-3, 20::-2],
    np.s_[5:5],
    np.s_[:, 5:5],
    np.s_[[3, 3, -1, 0]],
    np.s_[:, [3, 3, -1, 0]],
    np.s_[[7]],
    np.s_[:, np.arange(30)],
)


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64", "bool"])
@pytest.mark.parametrize("transposed", [False, True])
def test_selections(rng, key, dtype, transposed):
    x, a = pair(rng, dtype, transposed=transposed)
    with sa.densify("error"):
        check(x[key], a[key], a[key] != 0)


BOXES = (
    np.s_[:, 3:9],
    np.s_[:, :1],
    np.s_[:, 29:],
    np.s_[39:, 29:],
    np.s_[5:30, 1:],
    np.s_[1:, :29],
    np.s_[:1, 7:8],
    np.s_[20:20, 3:9],
    np.s_[3:9, 20:20],
    np.s_[7:],
    np.s_[:],
)


@pytest.mark.parametrize("key", BOXES, ids=str)
@pytest.mark.parametrize("kind", ["two per row", "random", "some rows empty", "one row full", "empty"])
@pytest.mark.parametrize("transposed", [False, True])
def test_boxes(rng, key, kind, transposed):
    """One of two routines takes a box, by a sample of its entries; other functions then use its starts of rows."""
    stored = np.zeros(SHAPE, bool)
    if kind == "two per row":
        stored[np.arange(40), np.arange(40) % 30] = stored[np.arange(40), (7 * np.arange(40) + 1) % 30] = True
    elif kind == "random":
        stored = rng.random(SHAPE) < 0.2
    elif kind == "some rows empty":
        stored[::3] = rng.random((14, 30)) < 0.5
    elif kind == "one row full":
        stored[12] = True
    a = np.where(stored, rng.integers(1, 9, SHAPE), 0).astype(float)
    x = sa.Sparse(a[stored], np.nonzero(stored), SHAPE)
    if transposed:
        x, a, stored, key = x.T, a.T, stored.T, key[::-1] if isinstance(key, tuple) else key
    part, expected = x[key], a[key]
    check(part, expected, stored[key])
    check(part + 2 * part, 3 * expected, stored[key])
    check(part[::2], expected[::2], stored[key][::2])
    check(part @ part.T, expected @ expected.T, stored[key].astype(int) @ stored[key].T.astype(int) > 0)
    np.testing.assert_array_equal(np.asarray(x.to_dense()), a)  # unchanged


@pytest.mark.parametrize("alternate", [False, True])
def test_both_ways_to_take_a_box(rng, monkeypatch, alternate):
    monkeypatch.setattr(compressed_rows, "_alternate", lambda *_: alternate)
    for transposed in (False, True):
        x, a = pair(rng, "float64", transposed=transposed)
        for key in BOXES:
            check(x[key], a[key], a[key] != 0)


def test_boxes_of_the_largest_indices(rng):
    """Differences of column numbers and bounds do not overflow."""
    n = 2**31 - 2
    columns = np.array([0, 1, n - 2, n - 1], np.int32)
    assert compressed_rows._in_columns(columns, 0, n).tolist() == [True] * 4
    assert compressed_rows._in_columns(columns, 1, n - 1).tolist() == [False, True, True, False]
    assert compressed_rows._in_columns(columns, n - 1, n).tolist() == [False, False, False, True]
    assert compressed_rows._in_columns(columns, n, n).tolist() == [False] * 4


@pytest.mark.parametrize("transposed", [False, True])
def test_selections_with_a_background(rng, transposed):
    x, a = pair(rng, "float64", transposed=transposed)
    for key in KEYS:
        np.testing.assert_allclose(np.asarray(sa.exp(x)[key].to_dense()), np.exp(a)[key])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("transposed", [False, True])
def test_permutations(rng, dtype, transposed):
    x, a = pair(rng, dtype, transposed=transposed)
    for of in (dtype, "float64"):
        rows, columns = rng.permutation(40), rng.permutation(30)
        left, right = sa.Permutation(rows, dtype=of), sa.Permutation(columns, dtype=of)
        moved = np.eye(40, dtype=of)[rows] @ a
        check(left @ x, moved, moved != 0)
        moved = a @ np.eye(30, dtype=of)[columns]
        check(x @ right, moved, moved != 0)


@pytest.mark.costly
@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul, operator.matmul])
def test_compiled_functions_of_constant_patterns_do_not_sort(rng, operation):
    """XLA would sort constants while it compiles."""
    n = 2000
    x = sa.Sparse(rng.normal(size=n), (rng.permutation(n), rng.permutation(n)), (n, n))
    for offsets in ((0,), (-1, 0, 3)):
        diagonals = [rng.normal(size=n - abs(k)) for k in offsets]

        def function(diagonals, offsets=offsets):
            other = sa.Banded(diagonals, offsets, (n, n)) if len(offsets) > 1 else sa.Diagonal(diagonals[0])
            return operation(x, other)

        assert "stablehlo.sort" not in jax.jit(function).lower(diagonals).as_text()
        result, eager = jax.jit(function)(diagonals), function(diagonals)
        assert result.nnz == eager.nnz
        expected = np.asarray(eager.to_dense())
        np.testing.assert_allclose(np.asarray(result.to_dense()), expected, rtol=1e-12, atol=1e-14)
        other = sum(np.diag(d, k) for d, k in zip(diagonals, offsets, strict=True))
        np.testing.assert_allclose(expected, operation(np.asarray(x.to_dense()), other), rtol=1e-12, atol=1e-14)


def test_sort_is_stable(rng):
    coordinates = [rng.integers(0, n, 1000) for n in (5, 7, 11)]
    by = compressed_rows.sort(coordinates, (5, 7, 11))
    np.testing.assert_array_equal(by, np.lexsort(coordinates[::-1]))


def test_kept_patterns_are_dropped_with_their_arrays(rng):
    gc.collect()  # arrays of other tests
    before = len(compressed_rows._STARTS), len(row_arithmetic._KNOWN)
    x, _ = pair(rng, "float64")
    y, _ = pair(rng, "float64")
    for _ in range(3):
        total, product = x + y, x * y
        assert len(row_arithmetic._KNOWN) == before[1] + 1
    del x, y, total, product
    gc.collect()
    assert (len(compressed_rows._STARTS), len(row_arithmetic._KNOWN)) == before


def test_a_limited_number_of_patterns_is_kept(rng):
    x, a = pair(rng, "float64")
    others = [pair(rng, "float64") for _ in range(row_arithmetic._KEPT + 3)]
    for _ in range(2):
        for y, b in others:
            check(x + y, a + b, (a != 0) | (b != 0))
    assert len(row_arithmetic._KNOWN) == row_arithmetic._KEPT


@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul])
def test_repeated_results_share_coordinates_and_may_be_deleted(rng, operation):
    x, a = pair(rng, "float64")
    y, b = pair(rng, "float64")
    stored = (a != 0) & (b != 0) if operation is operator.mul else (a != 0) | (b != 0)
    operation(x, y)
    one, two = operation(x, y), operation(x, y)
    assert all(first is second for first, second in zip(one.coords, two.coords, strict=True))
    one.coords[0].delete()
    check(operation(x, y), operation(a, b), stored)


@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul])
def test_plans_belong_to_a_shape(rng, operation):
    """Arrays of different shapes may share their coordinates."""
    (x, _), (y, _) = pair(rng, "float64"), pair(rng, "float64")
    for shape in (SHAPE, (SHAPE[0] + 1, SHAPE[1] + 2), SHAPE):
        one, two = (sa.Sparse.make((z.data, *z.coords, None), (shape, z.order, False)) for z in (x, y))
        for _ in range(3):
            assert operation(one, two).shape == shape
            np.testing.assert_array_equal(operation(one, two), operation(np.asarray(one), np.asarray(two)))


def test_signs_of_zeros_of_repeated_sums():
    """A negative zero is an entry of one matrix only, and plus a structural zero it is positive, as in NumPy."""
    n = 40
    x = -sa.Sparse(jnp.zeros(n), (np.arange(n), np.arange(n)), (n, n))
    y = -sa.Sparse(jnp.zeros(n), (np.arange(n), (np.arange(n) + 1) % n), (n, n))
    a, b = np.where(np.eye(n), -0.0, 0.0), np.where(np.roll(np.eye(n), 1, 1), -0.0, 0.0)
    for _ in range(3):
        for found, expected in ((x + y, a + b), (x - y, a - b), (y - x, b - a)):
            np.testing.assert_array_equal(np.signbit(np.asarray(found.to_dense())), np.signbit(expected))


def test_without_the_routines_of_scipy(rng, monkeypatch):
    x, a = pair(rng, "float64")
    y, b = pair(rng, "float64", transposed=True)
    monkeypatch.setattr(compressed_rows, "routines", lambda: None)
    check(x + y, a + b, (a != 0) | (b != 0))
    check(x @ y.mT, a @ b.T, ((a != 0).astype(int) @ (b != 0).T) > 0)


def test_leaves_of_numpy(rng):
    """A tree map may put NumPy's arrays into an array; nothing is kept for them, since they may change."""
    x, a = pair(rng, "float64", (300, 300), 900)
    y = jax.tree.map(np.array, x)
    for result in (y + y.with_data(2 * x.data), y + x, y @ x, y[3:9]):
        assert type(result) is sa.Sparse
    np.testing.assert_allclose(np.asarray((y + x.mT).to_dense()), a + a.T)
    b = sa.ones(300)
    shifted = jax.tree.map(np.array, x + sa.eye(300) * 20.0)
    np.testing.assert_allclose(
        np.asarray(sa.linalg.solve(shifted, b)), np.linalg.solve(a + 20 * np.eye(300), np.ones(300)), rtol=1e-9
    )


def test_results_stay_on_their_device(rng):
    x, _ = pair(rng, "float64")
    y, _ = pair(rng, "float64")
    placed = jax.device_put(x, jax.devices()[0])
    assert (placed + y).data.devices() == x.data.devices()


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_products_of_disjoint_patterns_with_entries_that_are_not_finite(value):
    """SciPy stores NaN where an infinity meets a structural zero, so its result has more entries than the pattern."""
    n, columns = 300, np.arange(10)
    rows = np.repeat(np.arange(n), 10)
    x = sa.Sparse(jnp.full(10 * n, value), (rows, np.tile(2 * columns, n)), (n, n))
    y = sa.Sparse(jnp.full(10 * n, value), (rows, np.tile(2 * columns + 1, n)), (n, n))
    for _ in range(3):
        assert (x * y).nnz == 0
    z = sa.Sparse(jnp.full(20 * n, 2.0), (np.repeat(np.arange(n), 20), np.tile(np.arange(20), n)), (n, n))
    assert (x * z).nnz == 10 * n and np.array_equal((x * z).data, np.full(10 * n, 2 * value), equal_nan=True)


@pytest.mark.parametrize("count", [1, 100, 50_000])
def test_sorting_of_padding(rng, count):
    """The coordinates of padding are the size of a dimension, one more than the last row."""
    sizes = 200, 300
    inside = [rng.integers(0, n, 1000).astype(np.int32) for n in sizes]
    padded = [np.append(c, np.full(count, n, np.int32)) for c, n in zip(inside, sizes, strict=True)]
    order = compressed_rows.sort(padded, sizes)
    np.testing.assert_array_equal(order, np.lexsort(padded[::-1]))


def test_arithmetic_with_padding(rng):
    x, a = pair(rng, "float64", (300, 200), 3000)
    y, b = pair(rng, "float64", (200, 300), 3000)
    upper = jax.jit(sa.triu)(x)
    assert upper.padded
    for found, expected in (
        (upper + y.mT, np.triu(a) + b.T),
        (upper.mT + y, np.triu(a).T + b),
        (upper * y.mT, np.triu(a) * b.T),
        (upper.mT @ upper, np.triu(a).T @ np.triu(a)),
    ):
        np.testing.assert_allclose(np.asarray(found.to_dense()), expected, rtol=1e-12)


def test_negative_zeros_stay(rng):
    places = rng.choice(300 * 300, 300, replace=False)
    for shape, coords in (((300, 300), (places // 300, places % 300)),):
        x = -sa.Sparse(jnp.zeros(300), coords, shape)  # the constructor adds duplicates to zero
        assert np.signbit(np.asarray(x.to_dense())).sum() == 300
        assert np.signbit(np.asarray(x.mT.to_dense())).sum() == 300


def test_checks_of_infinities_see_eager_sums(rng):
    x, _ = pair(rng, "float64")
    large = sa.Sparse(jnp.full(x.nnz, 1e308), x.coords, x.shape)
    other = sa.Sparse(jnp.full(1, 1e308), (x.coords[0][:1], x.coords[1][:1]), x.shape)
    with jax.debug_infs(True):
        with pytest.raises(FloatingPointError):
            large + other  # noqa: B018
        with pytest.raises(FloatingPointError):
            sa.sin(sa.sinh(large))
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        sa.concat([other * jnp.inf, sa.asarray(np.full((1, other.shape[1]), np.nan))])


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.complex64, np.complex128, np.int8, np.uint64, np.bool_, jnp.bfloat16]
)
@pytest.mark.parametrize("shape", [(40, 30), (30, 40), (1, 7)])
def test_assembly_of_repeated_positions_in_any_order(rng, dtype, shape):
    places = [rng.integers(n, size=500) for n in shape]
    data = np.asarray(rng.integers(-4, 5, size=500)).astype(dtype)
    expected = np.zeros(shape, dtype)
    (np.logical_or if dtype is np.bool_ else np.add).at(expected, tuple(places), data)
    x = sa.Sparse(data, tuple(places), shape)
    assert x.dtype == dtype and x.nnz == len(set(zip(*(c.tolist() for c in places), strict=True))) and not x.padded
    keys = np.asarray(x.coords[0]).astype(int) * shape[1] + np.asarray(x.coords[1])
    assert np.all(np.diff(keys) > 0)
    np.testing.assert_array_equal(np.asarray(x.to_jax()), expected)
    for c, n in zip(places, shape, strict=True):
        with pytest.raises(ValueError, match="indices must be between"):
            sa.Sparse(data, tuple(np.where(np.arange(500) == 7, n, p) if p is c else p for p in places), shape)
