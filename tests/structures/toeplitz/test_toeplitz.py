"""Toeplitz, circulant and Hankel arrays: constructors, classes of results, values against NumPy and SciPy, memory."""

import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from support import dense

import structarrays as sa
from structarrays._numerics import convolution, toeplitz_entries
from structarrays.testing import sample

NAMES = ("Toeplitz", "Toeplitz, tridiagonal", "Toeplitz, lower", "Circulant", "Hankel")


def same(x, want, rtol=1e-12):
    assert x.shape == want.shape and x.dtype == want.dtype
    np.testing.assert_allclose(dense(x), want, rtol=rtol, atol=rtol * np.max(np.abs(want), initial=1.0))


# ---- constructors and conversions -----------------------------------------------------------------------------------


def test_constructors_are_scipys():
    c, r = np.array([1.0, 2.0, 3.0]), np.array([9.0, 5.0, 6.0, 7.0])
    np.testing.assert_array_equal(dense(sa.Toeplitz(c, r)), scipy.linalg.toeplitz(c, r))
    np.testing.assert_array_equal(dense(sa.Toeplitz(c + 1j)), scipy.linalg.toeplitz(c + 1j))
    np.testing.assert_array_equal(dense(sa.Circulant(c)), scipy.linalg.circulant(c))
    np.testing.assert_array_equal(dense(sa.Hankel(c, r)), scipy.linalg.hankel(c, r))
    np.testing.assert_array_equal(dense(sa.Hankel(c)), scipy.linalg.hankel(c))


def test_a_banded_one_has_structural_zeros():
    T = sa.Toeplitz([2.0, -1.0], shape=(4, 4))
    assert T.offsets == (-1, 0, 1) and T.nbytes == 24
    np.testing.assert_array_equal(dense(T), scipy.linalg.toeplitz([2.0, -1.0, 0.0, 0.0]))
    wide = sa.Toeplitz([1.0], [0.0, 5.0, 6.0], shape=(2, 7))
    want = np.zeros((2, 7))
    want[0, :3], want[1, 1:4] = [1, 5, 6], [1, 5, 6]
    np.testing.assert_array_equal(dense(wide), want)


def test_batches_and_dtypes_of_column_and_row_go_together():
    T = sa.Toeplitz(np.ones((2, 1, 3), np.float32), np.zeros((4, 2)))
    assert T.shape == (2, 4, 3, 2) and T.dtype == np.float64
    assert sa.Hankel(np.ones((2, 3), int), np.ones((5, 1, 2), np.int8)).shape == (5, 2, 3, 2)
    assert sa.Circulant(np.ones((2, 3), bool)).dtype == np.bool_
    assert sa.Toeplitz([], []).shape == (0, 0) and sa.Toeplitz([], [1.0]).shape == (0, 1)
    assert sa.Hankel([1.0], []).shape == (1, 0) and sa.Circulant([]).shape == (0, 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sa.Toeplitz(1.0), "c must have at least one dimension"),
        (lambda: sa.Toeplitz([1.0], 2.0), "r must have at least one dimension"),
        (
            lambda: sa.Toeplitz([1.0, 2.0], shape=(1, 3)),
            r"c must have at most as many elements as there are rows \(1\)",
        ),
        (lambda: sa.Toeplitz([1.0], [1.0, 2.0], shape=(2, 1)), r"r must have at most .* columns \(1\)"),
        (lambda: sa.Toeplitz([], [1.0], shape=(2, 2)), "c must have at least one element"),
        (lambda: sa.Toeplitz([1.0], shape=(2,)), r"shape must be \(m, n\)"),
        (lambda: sa.Circulant(1.0), "c must have at least one dimension"),
        (lambda: sa.Hankel([1.0], 1.0), "r must have at least one dimension"),
        (lambda: sa.Toeplitz.from_dense([[1.0, 2.0], [3.0, 4.0]]), "diagonals are not constant"),
        (lambda: sa.Toeplitz.from_dense([1.0, 2.0]), "at least two dimensions"),
        (lambda: sa.Circulant.from_dense([[1.0, 2.0], [3.0, 1.0]]), "not shifts of the first column"),
        (lambda: sa.Circulant.from_dense([[1.0, 2.0]]), "square"),
        (lambda: sa.Hankel.from_dense([[1.0, 2.0], [3.0, 4.0]]), "antidiagonals are not constant"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_no_array_is_no_argument():
    for cls in (sa.Toeplitz, sa.Circulant, sa.Hankel):
        with pytest.raises(TypeError, match="c must be an array"):
            cls("abc")


@pytest.mark.parametrize("name", ["Toeplitz", "Circulant", "Hankel"])
@pytest.mark.parametrize("core", [(4, 4), (3, 5), (5, 1), (0, 3)])
def test_from_dense(name, core):
    if name == "Circulant" and core[0] != core[1]:
        return
    cls = getattr(sa, name)
    zeros = {"Toeplitz": sa.Toeplitz(np.zeros(core[0]), np.zeros(core[1])), "Hankel": sa.Hankel(*map(np.zeros, core))}
    x = zeros[name] if 0 in core else sample(name, core, batch=(2,))
    for y in (cls.from_dense(dense(x)), jax.jit(cls.from_dense)(x.to_jax())):
        assert sa.same_structure(x, y)
        np.testing.assert_array_equal(dense(y), dense(x))


def test_from_dense_takes_nan():
    x = sa.Hankel([1.0, np.nan], [np.nan, 2.0])
    np.testing.assert_array_equal(sa.Hankel.from_dense(dense(x)).values, [1.0, np.nan, 2.0])


def test_repr():
    assert repr(sa.Toeplitz([2.0, -1.0], shape=(3, 3))) == (
        "Toeplitz([-1.,  2., -1.], offsets=-1..1, shape=(3, 3), dtype=float64, stores 3 of 9 entries, 24 B of 72 B dense)"
    )
    assert (
        repr(sa.Circulant([1, 2]))
        == "Circulant([1, 2], shape=(2, 2), dtype=int64, stores 2 of 4 entries, 16 B of 32 B dense)"
    )
    assert repr(sa.Toeplitz([], [])).startswith("Toeplitz([], offsets=(), shape=(0, 0)")
    assert "stores 1999 of 1000000 entries, 16 kB of 8000 kB dense" in repr(sa.Hankel(np.ones(1000)))


# ---- classes of results ---------------------------------------------------------------------------------------------

T = sa.Toeplitz([1.0, 2.0, 3.0, 4.0], [1.0, 5.0, 6.0, 7.0])
BAND = sa.Toeplitz([1.0, 2.0], [1.0, 5.0], shape=(4, 4))
LOWER = sa.Toeplitz([1.0, 2.0, 3.0, 4.0], [1.0], shape=(4, 4))
C = sa.Circulant([1.0, 2.0, 3.0, 4.0])
H = sa.Hankel([1.0, 2.0, 3.0, 4.0], [4.0, 5.0, 6.0, 7.0])
EYE, DIAGONAL, FILL = sa.eye(4), sa.Diagonal([1.0, 2.0, 3.0, 4.0]), sa.Fill(2.0, (4, 4))
TRI = sa.tridiagonal([1.0] * 3, [2.0] * 4, [3.0] * 3)


@pytest.mark.parametrize(
    ("f", "x", "y", "kind"),
    [
        (sa.add, T, BAND, "Toeplitz"),
        (sa.add, T, EYE, "Toeplitz"),
        (sa.add, T, sa.exp(EYE), "Toeplitz"),
        (sa.add, T, C, "Toeplitz"),
        (sa.add, T, FILL, "Toeplitz"),
        (sa.add, BAND, FILL, "Toeplitz"),
        (sa.add, BAND, LOWER, "Toeplitz"),
        (sa.add, BAND, EYE, "Toeplitz"),
        (sa.add, BAND, sa.exp(EYE), "Toeplitz"),
        (sa.add, BAND, DIAGONAL, "Banded"),
        (sa.add, BAND, TRI, "Banded"),
        (sa.add, BAND, sa.exp(TRI), "Banded"),
        (sa.add, LOWER, DIAGONAL, "Triangular"),
        (sa.add, LOWER, TRI, "Sum"),
        (sa.multiply, LOWER, T.to_dense(), "Triangular"),
        (sa.multiply, LOWER, TRI, "Banded"),
        (sa.multiply, LOWER, sa.Triangular(T), "Triangular"),
        (sa.add, LOWER, sa.Triangular(T), "Triangular"),
        (sa.add, C, C, "Circulant"),
        (sa.add, C, EYE, "Circulant"),
        (sa.add, C, sa.exp(EYE), "Circulant"),
        (sa.add, C, FILL, "Circulant"),
        (sa.add, C, 3.0, "Circulant"),
        (sa.add, H, H, "Hankel"),
        (sa.add, H, FILL, "Hankel"),
        (sa.add, H, T, "Sum"),
        (sa.add, T, DIAGONAL, "Sum"),
        (sa.multiply, T, BAND, "Toeplitz"),
        (sa.multiply, BAND, LOWER, "Toeplitz"),
        (sa.multiply, BAND, C, "Toeplitz"),
        (sa.multiply, T, EYE, "Identity"),
        (sa.multiply, EYE, C, "Identity"),
        (sa.multiply, BAND, EYE, "Identity"),
        (sa.multiply, BAND, sa.exp(EYE), "Toeplitz"),
        (sa.multiply, T, DIAGONAL, "Diagonal"),
        (sa.multiply, BAND, TRI, "Banded"),
        (sa.multiply, BAND, sa.exp(TRI), "Banded"),
        (sa.multiply, H, DIAGONAL, "Diagonal"),
        (sa.multiply, H, EYE, "Diagonal"),
        (sa.multiply, H, BAND, "Banded"),
        (sa.multiply, BAND, T.to_dense(), "Banded"),
        (sa.multiply, C, C, "Circulant"),
        (sa.divide, BAND, T, "Toeplitz"),
        (sa.matmul, C, C, "Circulant"),
        (sa.matmul, LOWER, LOWER, "Toeplitz"),
        (sa.matmul, LOWER.mT, LOWER.mT, "Toeplitz"),
        (sa.matmul, BAND, BAND, "Banded"),
        (sa.matmul, BAND, TRI, "Banded"),
        (sa.matmul, TRI, BAND, "Banded"),
        (sa.matmul, EYE, T, "Toeplitz"),
        (sa.matmul, T, BAND, "Dense"),
        (sa.matmul, H, H, "Product"),
        (sa.linalg.solve, C, C, "Circulant"),
    ],
)
def test_class_of_two(f, x, y, kind):
    def other(a):
        return a if isinstance(a, float) else dense(a)

    want = getattr(np, f.name, None) or np.linalg.solve
    for a, b in ((x, y), (y, x)) if f in (sa.add, sa.multiply) else ((x, y),):
        result = f(a, b)
        assert type(result).__name__ == kind
        same(result, want(other(a), other(b)))


@pytest.mark.parametrize(
    ("f", "x", "kind"),
    [
        (lambda xp, x: xp.exp(x), BAND, "Toeplitz"),
        (lambda xp, x: x == 0, BAND, "Toeplitz"),
        (lambda xp, x: xp.exp(x), C, "Circulant"),
        (lambda xp, x: xp.cos(x), H, "Hankel"),
        (lambda xp, x: xp.matrix_transpose(x), BAND, "Toeplitz"),
        (lambda xp, x: xp.matrix_transpose(x), C, "Circulant"),
        (lambda xp, x: xp.matrix_transpose(x), H, "Hankel"),
        (lambda xp, x: xp.tril(x), T, "Toeplitz"),
        (lambda xp, x: xp.tril(x, k=-1), C, "Toeplitz"),
        (lambda xp, x: xp.triu(x, k=-9), C, "Circulant"),
        (lambda xp, x: xp.triu(x, k=2), LOWER, "Toeplitz"),
        (lambda xp, x: xp.flip(x), BAND, "Toeplitz"),
        (lambda xp, x: xp.flip(x), C, "Circulant"),
        (lambda xp, x: xp.flip(x, axis=0), T, "Hankel"),
        (lambda xp, x: xp.flip(x, axis=1), C, "Hankel"),
        (lambda xp, x: xp.flip(x, axis=0), H, "Toeplitz"),
        (lambda xp, x: xp.flip(x, axis=1), H, "Toeplitz"),
        (lambda xp, x: xp.flip(x), H, "Hankel"),
        (lambda xp, x: xp.flip(x, axis=0), BAND, "Dense"),
        (lambda xp, x: xp.roll(x, 1, axis=0), C, "Circulant"),
        (lambda xp, x: xp.roll(x, (1, 2), axis=(0, 1)), C, "Circulant"),
        (lambda xp, x: x[1:, 1:], BAND, "Toeplitz"),
        (lambda xp, x: x[2:, :2], BAND, "Toeplitz"),
        (lambda xp, x: x[::2, ::2], T, "Toeplitz"),
        (lambda xp, x: x[::-1, ::-1], BAND, "Toeplitz"),
        (lambda xp, x: x[::-2, ::-2], T, "Toeplitz"),
        (lambda xp, x: x[::-1, :], T, "Hankel"),
        (lambda xp, x: x[::2, ::-2], H, "Toeplitz"),
        (lambda xp, x: x[1::2, ::2], H, "Hankel"),
        (lambda xp, x: x[:, 1:3], C, "Toeplitz"),
        (lambda xp, x: x[1:2, ::2], T, "Toeplitz"),
        (lambda xp, x: x[1:1, :], T, "Toeplitz"),
        (lambda xp, x: x[1, :], H, "Dense"),
        (lambda xp, x: xp.diff(x), BAND, "Toeplitz"),
        (lambda xp, x: xp.diff(x, axis=0, n=2), C, "Toeplitz"),
        (lambda xp, x: xp.diff(x, axis=0), H, "Hankel"),
        (lambda xp, x: xp.linalg.matrix_power(x, 3), C, "Circulant"),
        (lambda xp, x: xp.linalg.matrix_power(x, 3), LOWER, "Toeplitz"),
        (lambda xp, x: xp.linalg.matrix_power(x, -2), C, "Circulant"),
        (lambda xp, x: xp.linalg.inv(x), C, "Circulant"),
        (lambda xp, x: xp.linalg.pinv(x), C, "Circulant"),
    ],
)
def test_class_of_one(f, x, kind):
    result = f(sa, x)
    assert type(result).__name__ == kind
    same(result, f(np, dense(x)))


def test_diagonals():
    for x, kind in ((T, "Fill"), (BAND, "Fill"), (C, "Fill"), (H, "Dense")):
        for offset in (0, 2, -1, 9):
            result = sa.linalg.diagonal(x, offset=offset)
            assert type(result).__name__ == kind
            same(result, np.diagonal(dense(x), offset))


def test_join_for_scans():
    x, y = sa.join(BAND, sa.exp(EYE))
    assert sa.same_structure(x, y)
    np.testing.assert_array_equal(dense(x), dense(BAND))
    np.testing.assert_array_equal(dense(y), dense(sa.exp(EYE)))
    assert sa.same_structure(sa.convert(EYE, like=C), C)
    assert sa.same_structure(sa.convert(FILL, like=H), H)
    stacked = sa.stack([BAND, LOWER])
    assert type(stacked) is sa.Toeplitz and stacked.offsets == (-3, -2, -1, 0, 1)
    np.testing.assert_array_equal(dense(stacked), np.stack([dense(BAND), dense(LOWER)]))


# ---- products ---------------------------------------------------------------------------------------------------------

SHAPES = [(200, 150), (150, 200), (131, 131), (3, 900)]
RANGES = {
    "all": lambda m, n: (1 - m, n - 1),
    "lower": lambda m, n: (1 - m, 0),
    "strictly upper": lambda m, n: (1, n - 1),
    "below": lambda m, n: (1 - m, max(1 - m, -m // 2)),
    "wide": lambda m, n: (max(1 - m, -40), min(30, n - 1)),
    "narrow": lambda m, n: (max(1 - m, -2), 1),
}


def numbers(rng, shape, dtype, special=False):
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0, 200, shape).astype(dtype)
    values = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype.kind == "c" else 0)
    if special:
        at = rng.choice(values.size, 4, replace=False)
        values.ravel()[at] = [np.nan, np.inf, -np.inf, 0.0]
    return values.astype(dtype)


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("dtype", ["float64", "complex64", "uint8"])
def test_products_with_dense_matrices(dtype, rng):
    cases = []
    for (m, n), diagonals in itertools.product(SHAPES, RANGES.values()):
        first, last = diagonals(m, n)
        values, x = numbers(rng, (2, last - first + 1), dtype), numbers(rng, (2, n, 3), dtype)
        cases.append((first, last, (m, n), values, x))
    # One program, since the cost of this test is compilation.
    products = jax.jit(
        lambda given: [toeplitz_entries.matmul(v, c[0], c[2], x) for c, (v, x) in zip(cases, given, strict=True)]
    )
    for (first, last, shape, values, x), got in zip(cases, products([c[3:] for c in cases]), strict=True):
        i, j = np.indices(shape)
        inside = (j - i >= first) & (j - i <= last)
        matrix = np.where(inside, values[:, np.clip(j - i - first, 0, last - first)], 0).astype(dtype)
        want = matrix @ x
        assert got.dtype == want.dtype
        if dtype == "uint8":
            np.testing.assert_array_equal(got, want)
        else:
            eps = np.finfo(dtype).eps
            bound = np.linalg.norm(values, axis=-1)[:, None, None] * np.linalg.norm(x, axis=-2)[:, None, :]
            assert (np.abs(got - want) <= 16 * eps * bound).all(), (shape, first, last)


@pytest.mark.costly
@pytest.mark.parametrize("diagonals", ["all", "lower", "wide", "narrow"])
def test_nan_and_infinity_stay_where_they_belong(diagonals):
    """The transforms spread them over all rows; structural zeros absorb them."""
    shape = m, n = 140, 150
    first, last = RANGES[diagonals](m, n)
    i, j = np.indices(shape)
    inside = (j - i >= first) & (j - i <= last)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        values, x = numbers(rng, last - first + 1, float, special=True), numbers(rng, (n, 2), float, special=True)
        with np.errstate(all="ignore"):
            terms = values[np.clip(j - i - first, 0, last - first)][:, :, None] * x
            want = np.where(inside[:, :, None], terms, 0).sum(1)
        got = toeplitz_entries.matmul(jnp.asarray(values), first, shape, jnp.asarray(x))
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
    # A complex number with such a part is multiplied part by part.
    values = values.astype(complex)
    got = toeplitz_entries.matmul(jnp.asarray(values), first, shape, jnp.asarray(x.astype(complex)))
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))


@pytest.mark.slow
def test_circulant_products_of_every_length():
    """Small, fast, and with a large prime factor, for which the transforms are of another length."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 128, 200, 211, 243):
        c, x = rng.normal(size=(2, n)), rng.normal(size=(n, 3))
        want = np.stack([scipy.linalg.circulant(row) for row in c]) @ x
        same(sa.Circulant(c) @ sa.asarray(x), want, rtol=1e-13 * n)
        same(sa.asarray(x.T) @ sa.Circulant(c[0]), x.T @ scipy.linalg.circulant(c[0]), rtol=1e-13 * n)
    c[0, 3] = np.inf
    want = scipy.linalg.circulant(c[0]) @ np.abs(x)
    same(sa.Circulant(c[0]) @ np.abs(x), want)
    n = sa.Circulant(np.arange(200)) @ np.arange(200)
    np.testing.assert_array_equal(dense(n), scipy.linalg.circulant(np.arange(200)) @ np.arange(200))


def test_products_of_large_triangular_ones_are_triangular():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 300))
    x, y = sa.Toeplitz(a, [0.0], shape=(300, 300)), sa.Toeplitz(b[:7], [0.0], shape=(300, 300))
    for p, q in ((x, y), (y, x), (x, x), (y, y)):
        for left, right in ((p, q), (p.mT, q.mT)):
            result = left @ right
            assert type(result) is sa.Toeplitz and not result.covers
            same(result, dense(left) @ dense(right), rtol=1e-12)


def test_a_structural_zero_of_the_second_factor_absorbs():
    x = sa.Toeplitz(np.where(np.arange(150) == 70, np.nan, 1.0))
    y = sa.Toeplitz(np.ones(100), [1.0], shape=(150, 150))
    a, b = dense(x)[:, :, None], dense(y)[None]
    stored = (np.indices((150, 150))[0] >= np.indices((150, 150))[1]) & (b[0] != 0)
    want = np.where(stored, a * b, 0.0).sum(1)
    np.testing.assert_allclose(dense(x @ y), want, rtol=1e-12, atol=1e-12)


def test_derivatives_and_maps_of_large_products():
    rng = np.random.default_rng(2)
    values, x = rng.normal(size=(3, 399)), rng.normal(size=(3, 200))

    def total(values, x):
        return jnp.sum(jnp.sin(sa.Toeplitz.make((values,), (-199, 199, (200, 200))) @ x))

    i, j = np.indices((200, 200))

    def oracle(values, x):
        return jnp.sum(jnp.sin(values[j - i + 199] @ x))

    got = jax.vmap(jax.grad(total, argnums=(0, 1)))(values, x)
    want = jax.vmap(jax.grad(oracle, argnums=(0, 1)))(values, x)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-10, atol=1e-10)
    values[1, 5] = np.nan  # one of the mapped matrices has to be mended
    got = jax.vmap(lambda v, x: sa.Toeplitz.make((v,), (-199, 199, (200, 200))) @ x)(values, x)
    np.testing.assert_allclose(got, np.einsum("bij,bj->bi", values[:, j - i + 199], x), rtol=1e-10, atol=1e-10)


def test_fast_lengths_are_scipys():
    import scipy.fft

    for n in [*range(1, 300), 1999999, 10**6 + 1]:
        length = convolution.fast_length(n)
        assert length >= n and convolution.is_fast(length)
        assert length <= 2 * -(-scipy.fft.next_fast_len(-(-n // 2), real=True) // 1)
    assert convolution.fast_length(1999999) == 2000000
    assert not convolution.is_fast(2 * 13) and convolution.is_fast(7 * 11 * 8)


@pytest.mark.parametrize("n", [2 * 3 * 5 * 7, 24 * 25, 27 * 25, 64])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_long_convolutions_by_short_transforms(n, dtype):
    """Even and odd lengths, and signals shorter than the convolution."""
    rng = np.random.default_rng(n)
    a, b = numbers(rng, (2, n), dtype), numbers(rng, (n - 7,), dtype)
    want = np.fft.ifft(np.fft.fft(a.astype(complex)) * np.fft.fft(b.astype(complex), n))
    got = np.asarray(convolution._convolved(True, jnp.asarray(a), jnp.asarray(b), n))
    assert got.dtype == np.dtype(dtype) and got.shape == want.shape
    size = np.linalg.norm(a, axis=-1, keepdims=True) * np.linalg.norm(b)
    assert (np.abs(got - want) <= 8 * np.finfo(dtype).eps * size).all()


def test_a_product_of_the_size_where_transforms_are_split():
    rng = np.random.default_rng(3)
    c, x = rng.normal(size=(2, convolution._LARGE))
    want = np.fft.irfft(np.fft.rfft(c) * np.fft.rfft(x), c.size)
    same(sa.Circulant(c) @ x, want, rtol=1e-12)
    same(sa.Toeplitz(c[:60000], c[:60000]) @ x[:60000], scipy.linalg.matmul_toeplitz(c[:60000], x[:60000]), rtol=1e-12)


# ---- reductions -------------------------------------------------------------------------------------------------------


@pytest.mark.costly
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("core", [(30, 50), (50, 30), (9, 9)])
def test_reductions(name, core):
    x, integers = sample(name, core, batch=(2,), seed=5), sample(name, core, dtype="int8", seed=5)
    if x is None:
        return
    for f in ("sum", "prod", "max", "var", "all"):
        for axis in (-1, -2, (0, -1), (-2, -1)):
            same(getattr(sa, f)(x, axis=axis), np.asarray(getattr(np, f)(dense(x), axis=axis)), rtol=1e-12)
    for f in ("sum", "prod"):
        np.testing.assert_array_equal(dense(getattr(sa, f)(integers, axis=1)), getattr(np, f)(dense(integers), axis=1))


@pytest.mark.parametrize("name", NAMES)
def test_nan_stays_in_its_rows(name):
    x = sample(name, (12, 12), seed=3)
    (values,) = x.entries
    x = x.rebuild((values.at[..., 1].set(jnp.nan),), None)
    for f in ("sum", "max", "prod", "var"):
        for axis in (0, 1):
            np.testing.assert_allclose(
                dense(getattr(sa, f)(x, axis=axis)), getattr(np, f)(dense(x), axis=axis), rtol=1e-12
            )


def test_sums_of_large_and_small_numbers_lose_no_digits():
    """Running sums would: the large number would have to cancel."""
    values = np.full(2000, 1e-3)
    values[:900] = 1e16
    x = sa.Toeplitz(values[999::-1], values[999:1999])
    np.testing.assert_allclose(dense(sa.sum(x, axis=1)), dense(x).sum(1), rtol=1e-14)


@pytest.mark.slow
def test_norms():
    for name in NAMES:
        x = sample(name, (7, 7), dtype="complex128", seed=2)
        for order in ("fro", 1, -1, np.inf, -np.inf):
            same(sa.linalg.matrix_norm(x, ord=order), np.asarray(np.linalg.norm(dense(x), ord=order)))
    for order in (2, -2, "nuc"):
        x = sample("Circulant", (7, 7), dtype="complex128", seed=2)
        same(sa.linalg.matrix_norm(x, ord=order), np.asarray(np.linalg.norm(dense(x), ord=order)))


# ---- circulant solvers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_circulant_linear_algebra(n, dtype):
    rng = np.random.default_rng(n)
    c = numbers(rng, (2, n), dtype)
    c[:, 0] += 3
    x, b = sa.Circulant(c), numbers(rng, (2, n, 3), dtype)
    a = dense(x)
    with sa.densify("error"):
        same(sa.linalg.solve(x, b), np.linalg.solve(a, b))
        same(sa.linalg.solve(x[0, ...], b[0, :, 0]), np.linalg.solve(a[0], b[0, :, 0]))
        same(sa.linalg.inv(x), np.linalg.inv(a))
        same(sa.linalg.pinv(x), np.linalg.pinv(a))
        same(sa.linalg.det(x), np.linalg.det(a))
        for got, want in zip(sa.linalg.slogdet(x), np.linalg.slogdet(a), strict=True):
            same(got, want)
        same(sa.linalg.svdvals(x), np.linalg.svdvals(a))
        same(sa.linalg.matrix_rank(x), np.linalg.matrix_rank(a))
        same(sa.linalg.matrix_power(x, 5), np.linalg.matrix_power(a, 5), rtol=1e-11)
        values = dense(sa.linalg.eigvals(x))
        hermitian = x + sa.conj(x.mT)
        assert type(hermitian) is sa.Circulant
        same(sa.linalg.eigvalsh(hermitian), np.linalg.eigvalsh(dense(hermitian)))
    for k in (1, 2, 3):
        np.testing.assert_allclose((values**k).sum(-1), (np.linalg.eigvals(a) ** k).sum(-1), rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_singular_circulants():
    singular = sa.Circulant([1.0, -1.0])
    for f in (sa.linalg.inv, lambda x: sa.linalg.solve(x, np.ones(2)), lambda x: sa.linalg.matrix_power(x, -1)):
        with pytest.raises(np.linalg.LinAlgError):
            f(singular)
        with sa.errstate(linalg="nan"):
            assert np.isnan(dense(f(singular))).all()
    assert float(sa.linalg.det(singular)) == 0
    sign, logarithm = sa.linalg.slogdet(singular)
    assert float(sign) == 0 and float(logarithm) == -np.inf
    assert int(sa.linalg.matrix_rank(singular)) == 1
    same(sa.linalg.pinv(singular), np.linalg.pinv(dense(singular)))
    nan = sa.Circulant([np.nan, 1.0])
    assert np.isnan(dense(sa.linalg.solve(nan, np.ones(2)))).all()  # and nothing is raised
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.inv(sa.assume(sa.Circulant([0.0, 1.0]), "positive_definite"))


# ---- indexing and writes ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("core", [(5, 5), (4, 7), (7, 4)])
def test_all_slices_of_two_axes(name, core):
    x = sample(name, core)
    if x is None:
        return
    steps = (1, 2, -1, -2, 3)
    kinds = set()
    for a in steps:
        for b in steps:
            for rows, columns in ((slice(None, None, a), slice(None, None, b)), (slice(1, 3), slice(2, None, b))):
                part = x[rows, columns]
                np.testing.assert_array_equal(dense(part), dense(x)[rows, columns])
                kinds.add(type(part).__name__)
    assert "Hankel" in kinds or name in ("Toeplitz, tridiagonal", "Toeplitz, lower")
    assert "Toeplitz" in kinds


@pytest.mark.parametrize("name", NAMES)
def test_writes(name):
    x = sample(name, (5, 5), seed=4)
    want = dense(x).copy()
    y = sa.asarray(x, copy=True)
    y[2, 2], want[2, 2] = 9.0, 9.0
    np.testing.assert_array_equal(dense(y), want)
    kinds = {"Toeplitz, tridiagonal": sa.Banded, "Toeplitz, lower": sa.Triangular}
    assert type(y) is kinds.get(name, sa.Dense)
    y = sa.asarray(x, copy=True)
    y[...] = 3.0 * x
    assert sa.same_structure(y, x)
    y -= x
    assert sa.same_structure(y, x)
    same(y, 2 * dense(x))


# ---- memory -----------------------------------------------------------------------------------------------------------

N = 10**6


@pytest.mark.parametrize(
    "f",
    [
        lambda T, C, H, B, x: T @ x,
        lambda T, C, H, B, x: H @ x,
        lambda T, C, H, B, x: C @ x,
        lambda T, C, H, B, x: B @ x,
        lambda T, C, H, B, x: x @ T,
        lambda T, C, H, B, x: C @ C,
        lambda T, C, H, B, x: sa.tril(T) @ sa.tril(T),
        lambda T, C, H, B, x: sa.exp(T) + T.mT * B + sa.eye(N),
        lambda T, C, H, B, x: sa.sum(T, axis=0) + sa.max(H, axis=1) + sa.sum(B, axis=1),
        lambda T, C, H, B, x: sa.var(T, axis=1),
        lambda T, C, H, B, x: sa.linalg.solve(C, x),
        lambda T, C, H, B, x: sa.linalg.matrix_norm(T) + sa.linalg.trace(H) + sa.linalg.slogdet(C).logabsdet,
        lambda T, C, H, B, x: sa.flip(T, axis=0)[2::3, ::3][5, :],
        lambda T, C, H, B, x: B @ B,
    ],
)
def test_memory_is_linear(f):
    big = sa.Toeplitz.make((jnp.ones(2 * N - 1),), (1 - N, N - 1, (N, N)))
    hankel = sa.Hankel.make((jnp.ones(2 * N - 1),), (N, N))
    band = sa.Toeplitz([2.0, -1.0], shape=(N, N))
    with sa.densify("error"):
        compiled = jax.jit(f).lower(big, sa.Circulant(np.ones(N)), hankel, band, sa.ones((N,))).compile()
    sizes = [
        np.prod([int(k) for k in s.split(",")], dtype=float)
        for s in re.findall(r"\[(\d+(?:,\d+)*)\]", compiled.as_text())
    ]
    assert max(sizes) <= 60 * N
    assert compiled.memory_analysis().temp_size_in_bytes <= 60 * 8 * N


@pytest.mark.parametrize("structure", [sa.Toeplitz, sa.Hankel])
def test_batch_shapes_that_do_not_broadcast_are_named(structure):
    with pytest.raises(ValueError, match=r"batch shapes must broadcast, got \(2,\) of c, \(3,\) of r"):
        structure(np.ones((2, 2)), np.ones((3, 2)))


@pytest.mark.parametrize("dtype", ["float64", "complex128", "int64"])
@pytest.mark.parametrize("kind", ["toeplitz", "banded", "circulant", "hankel"])
def test_vecdot_of_rows_is_a_product(kind, dtype):
    rng = np.random.default_rng(0)

    def line(n):
        a = rng.integers(-5, 6, n)
        return (a + 1j * rng.integers(-5, 6, n) if dtype == "complex128" else a).astype(dtype)

    x = {
        "toeplitz": lambda n: sa.Toeplitz(line(n), line(n)),
        "banded": lambda n: sa.Toeplitz(line(2), line(3), shape=(n, n)),
        "circulant": lambda n: sa.Circulant(line(n)),
        "hankel": lambda n: sa.Hankel(line(n), line(n)),
    }[kind]
    v = line(30)
    a = dense(x := x(30))
    with sa.densify("error"):
        np.testing.assert_allclose(dense(sa.vecdot(x, v)), np.vecdot(a, v), rtol=1e-12, atol=1e-10)
        np.testing.assert_allclose(dense(sa.vecdot(v, x)), np.vecdot(v, a), rtol=1e-12, atol=1e-10)


def test_vecdot_has_no_dense_form():
    n = 10**6
    v = np.ones(n)
    with sa.densify("error"):
        for x in (sa.Toeplitz(v), sa.Circulant(v), sa.Hankel(v, v)):
            assert abs(float(sa.vecdot(x, v)[7]) - n) < 1e-6 * n


@pytest.mark.parametrize("upper", [False, True])
def test_a_wide_triangular_one_beside_a_sparse_one(upper):
    x = sa.Toeplitz([1.0, 2.0, 3.0], np.zeros(8) + np.eye(8)[0])
    sparse = sa.Sparse([5.0, 7.0], ([0, 2], [7, 1]), (3, 8))
    x, sparse = (x.mT, sparse.mT) if upper else (x, sparse)
    with sa.densify("error"):
        total, product = x + sparse, x * sparse
    np.testing.assert_array_equal(np.asarray(total), np.asarray(x) + np.asarray(sparse))
    np.testing.assert_array_equal(np.asarray(product), np.asarray(x) * np.asarray(sparse))


@pytest.mark.parametrize(
    "make", [sa.Toeplitz, sa.Hankel, lambda c, r: sa.Circulant(c)], ids=["Toeplitz", "Hankel", "Circulant"]
)
def test_few_lines_in_any_order(make):
    """Dense, and no more than they are."""
    rng = np.random.default_rng(0)
    x = make(rng.normal(size=60), rng.normal(size=30))
    a, where = dense(x), np.array([5, -1])
    with sa.densify("error"):
        for got, want in (
            (x[where], a[where]),
            (x[:, where], a[:, where]),
            (sa.take(x, sa.asarray(where % 30), axis=1), a[:, where % 30]),
        ):
            assert type(got) is sa.Dense
            same(got, want)
    many = np.tile(where, 100)
    assert type(x[many]) is sa.Product
    same(x[many], a[many])


@pytest.mark.parametrize("shape", [(7,), (3, 8)])
def test_variance_of_circulant_matrices(shape, rng):
    C = sa.Circulant(rng.normal(size=shape))
    for x in (C, sa.cos(C)):
        expected = dense(x)
        for axis in (None, -1, -2, (0, -1)):
            found = sa.var(x, axis=axis, correction=1, keepdims=axis == -2)
            reference = np.var(expected, axis=axis, ddof=1, keepdims=axis == -2)
            np.testing.assert_allclose(np.asarray(found), reference, rtol=1e-12)
    assert "stablehlo.slice" not in jax.jit(sa.var).lower(C).as_text()  # one row says all: no windows of others
