"""Products of two banded matrices. The oracle is NumPy on the dense matrices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structarrays._numerics import bands
from structarrays._structures.banded import band_products
from structarrays._structures.banded.band_products import band_matmul


def random_band(rng, shape, offsets, batch=()):
    return tuple(rng.normal(size=(*batch, bands.diagonal_length(shape, k))) for k in offsets)


def dense(diagonals, offsets, shape, batch=()):
    """Entry by entry, from the definition."""
    a = np.zeros((*batch, *shape))
    for d, k in zip(diagonals, offsets, strict=True):
        for t in range(bands.diagonal_length(shape, k)):
            a[..., t + max(0, -k), t + max(0, k)] = d[..., t]
    return a


@pytest.fixture(params=["expressions", "loops of derivatives", "loops", "loops of padded rows"])
def form(request, monkeypatch):
    """The form of the program, whatever the number of terms is."""
    if request.param != "expressions":
        monkeypatch.setattr(band_products, "_UNROLLED_DERIVATIVE", 0)
    if request.param == "loops of padded rows":
        monkeypatch.setattr(band_products, "_LONGEST", 0)
    if request.param in ("loops", "loops of padded rows"):
        monkeypatch.setattr(band_products, "_UNROLLED_TERMS", 0)
    return request.param


@settings(deadline=None, max_examples=15)
@given(st.data())
def test_products(data):
    m, k, n = (data.draw(st.integers(1, 6)) for _ in range(3))
    offsets1 = tuple(sorted(data.draw(st.sets(st.integers(1 - m, k - 1), max_size=4))))
    offsets2 = tuple(sorted(data.draw(st.sets(st.integers(1 - k, n - 1), max_size=4))))
    rng = np.random.default_rng([m, k, n])
    d1, d2 = random_band(rng, (m, k), offsets1, (2, 1)), random_band(rng, (k, n), offsets2, (3,))
    diagonals, offsets = band_matmul(d1, offsets1, (m, k), d2, offsets2, (k, n))
    assert list(offsets) == sorted(offsets) and set(offsets) <= {a + b for a in offsets1 for b in offsets2}
    expected = dense(d1, offsets1, (m, k), (2, 1)) @ dense(d2, offsets2, (k, n), (3,))
    np.testing.assert_allclose(dense(diagonals, offsets, (m, n), (2, 3)), expected, atol=1e-13)


# Tall, wide, scattered and one-sided bands; terms outside of the product.
CASES = [
    ((6, 6, 6), (-1, 0, 1), (-2, 1)),
    ((7, 4, 5), (-5, -2, 0, 3), (-3, 0, 4)),
    ((3, 6, 2), (-1, 2, 5), (-5, -4, 0)),
]


@pytest.mark.parametrize(("sizes", "offsets1", "offsets2"), CASES)
def test_products_and_derivatives_of_all_forms(sizes, offsets1, offsets2, form, rng):
    m, k, n = sizes
    d1, d2 = random_band(rng, (m, k), offsets1, (2,)), random_band(rng, (k, n), offsets2)
    _, offsets = band_matmul(d1, offsets1, (m, k), d2, offsets2, (k, n))
    a, b = dense(d1, offsets1, (m, k), (2,)), dense(d2, offsets2, (k, n))

    def product(d1, d2):
        return band_matmul(d1, offsets1, (m, k), d2, offsets2, (k, n))[0]

    changes = random_band(rng, (m, k), offsets1, (2,)), random_band(rng, (k, n), offsets2)
    found, change = jax.jit(lambda *c: jax.jvp(product, (d1, d2), c))(*changes)
    np.testing.assert_allclose(dense(found, offsets, (m, n), (2,)), a @ b, atol=1e-13)
    da, db = dense(changes[0], offsets1, (m, k), (2,)), dense(changes[1], offsets2, (k, n))
    np.testing.assert_allclose(dense(change, offsets, (m, n), (2,)), da @ b + a @ db, atol=1e-13)
    weights = tuple(rng.normal(size=c.shape) for c in found)
    w = dense(weights, offsets, (m, n), (2,))
    by1, by2 = jax.jit(lambda *d: jax.vjp(product, *d)[1](tuple(map(jnp.asarray, weights))))(d1, d2)
    for got, want, places in ((by1, w @ b.T, offsets1), (by2, np.sum(np.swapaxes(a, 1, 2) @ w, 0), offsets2)):
        for diagonal, offset in zip(got, places, strict=True):
            np.testing.assert_allclose(diagonal, np.diagonal(want, offset, -2, -1), atol=1e-13)


def test_structural_zeros_meet_no_entry(form, rng):
    """An entry that is not finite reaches only the rows and columns that have an entry for it, derivatives included."""
    n, offsets1, offsets2 = 6, (-1, 0, 3), (-2, 0, 1)
    offsets = tuple(sorted({k1 + k2 for k1 in offsets1 for k2 in offsets2}))

    def product(d1, d2):
        return band_matmul(d1, offsets1, (n, n), d2, offsets2, (n, n))[0]

    @jax.jit
    def products_and_gradient(d1, d2):
        return product(d1, d2), jax.grad(lambda d1, d2: sum(map(jnp.sum, product(d1, d2))), (0, 1))(d1, d2)

    for place in range(3):
        d1, d2 = random_band(rng, (n, n), offsets1), random_band(rng, (n, n), offsets2)
        ones = [dense([np.ones_like(x) for x in d], o, (n, n)) for d, o in ((d1, offsets1), (d2, offsets2))]
        d1[place][-1], d2[2 - place][0] = np.nan, np.inf
        a, b = dense(d1, offsets1, (n, n))[:, :, None], dense(d2, offsets2, (n, n))
        both = (ones[0][:, :, None] * ones[1]) != 0  # by row, inner index and column
        found, (by1, by2) = products_and_gradient(d1, d2)
        np.testing.assert_allclose(dense(found, offsets, (n, n)), np.where(both, a * b, 0).sum(1), atol=1e-13)
        for got, want, places in (
            (by1, np.where(both, b, 0).sum(2), offsets1),
            (by2, np.where(both, a, 0).sum(0), offsets2),
        ):
            for diagonal, offset in zip(got, places, strict=True):
                np.testing.assert_allclose(diagonal, np.diagonal(want, offset), atol=1e-13)


def test_second_derivatives(form, rng):
    offsets, n = (-1, 0, 2), 5
    d = random_band(rng, (n, n), offsets)

    def function(d):
        products, _ = band_matmul(d, offsets, (n, n), d, offsets, (n, n))
        return sum(jnp.sum(p**2) for p in products)

    def of_dense(d):
        a = jnp.zeros((n, n))
        for x, k in zip(d, offsets, strict=True):
            a = a + jnp.diag(x, k)
        return jnp.sum((a @ a) ** 2)

    found, expected = (jax.jit(jax.hessian(f))(d) for f in (function, of_dense))
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-11)


def test_symbolic_sizes(form, rng):
    """`jax.export` compiles the product for all sizes."""
    (n,) = jax.export.symbolic_shape("n", constraints=["n >= 8"])
    offsets = (-2, 0, 1)

    def product(*diagonals):
        size = diagonals[1].shape[0]
        return band_matmul(diagonals, offsets, (size, size), diagonals, offsets, (size, size))[0]

    kinds = [jax.ShapeDtypeStruct((n - abs(k),), float) for k in offsets]
    exported = jax.export.export(jax.jit(product))(*kinds)
    for size in (8, 11):
        diagonals = random_band(rng, (size, size), offsets)
        a, found = dense(diagonals, offsets, (size, size)), exported.call(*diagonals)
        np.testing.assert_allclose(dense(found, (-4, -2, -1, 0, 1, 2), (size, size)), a @ a, atol=1e-13)


def test_compiled_loops_of_a_wide_product():
    """One for each diagonal of the product, and few others: their compilation is most of the time of a first call."""
    n, offsets = 200, tuple(range(-20, 21))
    diagonals = tuple(jnp.ones(n - abs(k)) for k in offsets)
    product = jax.jit(lambda d1, d2: band_matmul(d1, offsets, (n, n), d2, offsets, (n, n))[0])
    text = product.lower(diagonals, diagonals).compile().as_text()
    assert text.count("fusion(") <= 81 + 15
