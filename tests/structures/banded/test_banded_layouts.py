"""Banded arrays to and from other layouts: SciPy's `dia_array`, and Kronecker products and sums of banded arrays, against SciPy."""

import jax
import numpy as np
import pytest
import scipy.sparse
from support import dense

import structarrays as sa


def banded(rng, shape, offsets, batch=(), dtype=float):
    m, n = shape
    lengths = [min(m, n - k) if k >= 0 else min(m + k, n) for k in offsets]
    diagonals = [rng.normal(size=(*batch, length)) for length in lengths]
    if np.dtype(dtype).kind == "c":
        diagonals = [d + 1j * rng.normal(size=d.shape) for d in diagonals]
    if not offsets:
        return sa.broadcast_to(sa.astype(sa.Banded((), (), shape), dtype), (*batch, *shape))
    return sa.Banded([d.astype(dtype) for d in diagonals], offsets, shape)


LAYOUTS = [
    ((5, 5), (-2, 0, 1)),
    ((4, 7), (-3, 0, 4, 6)),
    ((7, 4), (-6, -1, 3)),
    ((1, 1), (0,)),
    ((5, 5), (0,)),
    ((5, 5), ()),
    ((3, 0), ()),
]


@pytest.mark.parametrize(("shape", "offsets"), LAYOUTS)
@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_to_dia_is_scipys_layout_and_comes_back(shape, offsets, batch, rng):
    x = banded(rng, shape, offsets, batch, np.complex64)
    data, found = x.to_dia()
    assert isinstance(data, jax.Array) and data.dtype == np.complex64
    assert data.shape == (*batch, len(offsets), shape[1]) and found == offsets
    for i in np.ndindex(batch):
        expected = scipy.sparse.dia_array((np.asarray(data[i]), found), shape)
        np.testing.assert_array_equal(expected.toarray(), dense(x)[i])
    # Zeros stand outside of the matrix, where SciPy reads nothing.
    inside = dense(sa.not_equal(x, 0)).sum()
    assert np.count_nonzero(data) == inside
    again = sa.from_dia(data, found, shape)
    assert type(again) is (sa.Diagonal if offsets == (0,) else sa.Banded)
    assert again.offsets == offsets and again.dtype == x.dtype
    np.testing.assert_array_equal(dense(again), dense(x))


def test_to_dia_of_diagonals_and_in_transforms(rng):
    np.testing.assert_array_equal(sa.Diagonal([1.0, 2.0], shape=(2, 3)).to_dia()[0], [[1.0, 2.0, 0.0]])
    np.testing.assert_array_equal(sa.Identity(3, 2.0).to_dia()[0], [[2.0, 2.0, 2.0]])
    x = banded(rng, (4, 4), (-1, 1), (3,))
    data = jax.jit(lambda x: x.to_dia()[0])(x)
    np.testing.assert_array_equal(data, x.to_dia()[0])
    np.testing.assert_array_equal(jax.vmap(lambda x: x.to_dia()[0])(x), data)
    with pytest.raises(
        ValueError, match="to_dia: the array must have no background, which the layout cannot store, got 1"
    ):
        sa.exp(x[0]).to_dia()


PRODUCTS = [
    [((3, 3), (-1, 0)), ((4, 4), (-2, 0, 3))],
    [((3, 3), (-2, 1, 2)), ((2, 2), (-1, 0, 1))],  # several pairs of diagonals become the same one
    [((3, 5), (-1, 0, 4)), ((4, 4), (-1, 1))],
    [((5, 3), (-4, 2)), ((1, 1), (0,))],
    [((2, 2), (-1, 1)), ((3, 3), (0, 2)), ((2, 2), (-1, 0, 1))],
    [((3, 3), (0,)), ((2, 2), (0,))],
    [((3, 3), ()), ((2, 2), (0, 1))],
    [((1, 1), (0,)), ((4, 4), (-3, 3))],
]


@pytest.mark.parametrize("factors", PRODUCTS)
@pytest.mark.parametrize("batches", [[()], [(2,), ()], [(), (3, 1)], [(3, 1), (2,)]])
def test_kronecker_products_of_banded_arrays_are_banded(factors, batches, rng):
    parts = [banded(rng, *f, batch=batches[i % len(batches)]) for i, f in enumerate(factors)]
    with sa.densify("error"):
        product = sa.Kronecker(*parts).to_banded()
    assert isinstance(product, sa.Banded)
    batch = np.broadcast_shapes(*(p.shape[:-2] for p in parts))
    wide = [np.broadcast_to(dense(p), batch + p.shape[-2:]).reshape(-1, *p.shape[-2:]) for p in parts]
    expected = [scipy.sparse.kron(*pair[:2]) for pair in zip(*wide, strict=True)]
    if len(parts) == 3:
        expected = [scipy.sparse.kron(e, third) for e, third in zip(expected, wide[2], strict=True)]
    expected = np.stack([e.toarray() for e in expected]).reshape(product.shape)
    np.testing.assert_allclose(dense(product), expected, rtol=1e-15)
    # No diagonal but those that SciPy's result has entries on.
    rows, columns = np.nonzero(expected.reshape(-1, *expected.shape[-2:]).any(axis=0))
    assert set(product.offsets) == {*(columns - rows).tolist()} | ({0} if product.offsets == (0,) else set())


def test_a_kronecker_sum_of_banded_arrays_is_banded(rng):
    parts = [banded(rng, (n, n), offsets) for n, offsets in ((3, (-1, 0, 1)), (4, (0, 2)), (2, (-1,)))]
    with sa.densify("error"):
        two, three = (sa.KroneckerSum(*parts[:k]).to_banded() for k in (2, 3))
    # SciPy's kronsum(A, B) is I ⊗ A + B ⊗ I.
    expected = scipy.sparse.kronsum(dense(parts[1]), dense(parts[0]))
    np.testing.assert_allclose(dense(two), expected.toarray(), rtol=1e-15)
    np.testing.assert_allclose(dense(three), scipy.sparse.kronsum(dense(parts[2]), expected).toarray(), rtol=1e-15)
    assert isinstance(three, sa.Banded)


def test_structural_zeros_of_a_product_stay_zero_beside_nan():
    a, b = sa.Banded([[np.nan, 1.0]], (1,), (3, 3)), sa.Banded([[2.0]], (-1,), (2, 2))
    product = dense(sa.Kronecker(a, b).to_banded())
    expected = np.zeros((6, 6))
    expected[1, 2], expected[3, 4] = np.nan, 2.0
    np.testing.assert_array_equal(product, expected)


def test_large_products_store_their_diagonals_alone():
    n = 1000
    A = sa.tridiagonal(np.ones(n - 1), -2 * np.ones(n), np.ones(n - 1))
    with sa.densify("error"):
        L = sa.KroneckerSum(A, A).to_banded()
    assert L.shape == (n * n, n * n) and L.offsets == (-n, -1, 0, 1, n) and L.nbytes <= 8 * 5 * n * n


def test_what_is_not_banded_says_so(rng):
    D = sa.Diagonal([1.0, 2.0])
    assert D.to_banded() is D
    for x in (
        sa.ones((3, 3)),
        sa.Toeplitz([1.0, 2.0]),
        sa.exp(D),
        sa.Kronecker(D, sa.asarray([[1.0, 2.0], [3.0, 4.0]])),
    ):
        with pytest.raises(
            sa.StructureError, match=r"to_banded: the array must .*, got (Dense|Toeplitz|Diagonal \+ background)"
        ):
            x.to_banded()
    with pytest.raises(sa.StructureError, match=r"all factors but the first must be square, got one of shape \(2, 3\)"):
        sa.Kronecker(D, banded(rng, (2, 3), (0,))).to_banded()
