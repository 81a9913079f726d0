"""Factored arrays: sums, products and what is of low rank keep their structure; nothing is expanded on the way."""

import math
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from support import as_jax, dense

import structarrays as sa
from structarrays._core.array.flattening import parameters
from structarrays._core.families.factored import Factored
from structarrays.testing import STRUCTURES, sample


def low_rank(rng, m, n, r=2, batch=(), dtype="float64"):
    u, v = (rng.normal(size=(*batch, k, r)).astype(dtype) for k in (m, n))
    return sa.LowRank(u, v), u @ np.swapaxes(v, -1, -2)


def sparse(rng, m, n, density=0.1):
    a = np.where(rng.random((m, n)) < density, rng.normal(size=(m, n)), 0)
    a[0] = rng.normal(size=n)  # no column is constant
    return sa.Sparse.from_dense(a), a


def toeplitz(rng, m, n):
    x = sa.Toeplitz(rng.normal(size=m), rng.normal(size=n))
    return x, dense(x)


def banded(rng, m, n):
    x = sa.Banded([rng.normal(size=min(m, n)), rng.normal(size=min(m, n - 1))], (0, 1), (m, n))
    return x, dense(x)


def product(rng, m, n):
    (s, a), (t, b) = sparse(rng, m, n), toeplitz(rng, n, n)
    return sa.Product(s, t), a @ b


MATRICES = {"low rank": low_rank, "sparse": sparse, "banded": banded, "toeplitz": toeplitz, "product": product}


# ---- on a mesh -----------------------------------------------------------------------------------------------------------------


def test_factors_are_divided_as_the_rows_and_columns_are(rng):
    """The left one along the axis of the rows, the right one along that of the columns."""
    x, _ = low_rank(rng, 8, 6, batch=(4,))
    for spec, left, right in (
        ((None, "rows", None), (None, "rows", None), (None, None, None)),
        (("batch", None, "columns"), ("batch", None, None), ("batch", "columns", None)),
    ):
        assert x.specs(spec, lambda n, along: along is not None) == (left, right)


# ---- parts of complex numbers -------------------------------------------------------------------------------------------------


FACTORED = [name for name in STRUCTURES if issubclass(getattr(sa, name.partition(",")[0].partition(" ")[0]), Factored)]


def test_parts_of_complex_numbers():
    """Of each factored structure."""
    arrays = {name: sample(name, (12, 12), dtype="complex128") for name in FACTORED}
    arrays = {name: x for name, x in arrays.items() if x is not None}
    assert len(arrays) > 8
    got = jax.jit(lambda arrays: {n: [as_jax(f(x)) for f in (sa.real, sa.imag, sa.conj)] for n, x in arrays.items()})(
        arrays
    )
    for name, x in arrays.items():
        a = dense(x)
        for part, want in zip(got[name], (a.real, a.imag, a.conj()), strict=True):
            assert part.dtype == want.dtype
            np.testing.assert_allclose(part, want, rtol=1e-12, atol=1e-12 * np.max(np.abs(a)), err_msg=name)


# ---- construction -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: sa.LowRank(np.ones(3), np.ones((3, 1))), ValueError, r"u must be a matrix.*got shape \(3,\)"),
        (
            lambda: sa.LowRank(np.ones((3, 2)), np.ones((3, 1))),
            ValueError,
            r"same number of columns.*\(3, 2\) and \(3, 1\)",
        ),
        (
            lambda: sa.LowRank(np.ones((3, 1), bool), np.ones((3, 1))),
            TypeError,
            "u must have a numeric dtype, got bool",
        ),
        (lambda: sa.LowRank("a", np.ones((3, 1))), TypeError, "u must be an array"),
        (
            lambda: sa.LowRank(np.ones((2, 3, 1)), np.ones((3, 3, 1))),
            ValueError,
            r"batch shapes must broadcast, got \(2,\) and \(3,\)",
        ),
        (lambda: sa.Sum(), ValueError, "at least one term"),
        (lambda: sa.Sum(np.ones((2, 2)), np.ones((2, 3))), ValueError, r"same shape, got \(2, 2\) and \(2, 3\)"),
        (
            lambda: sa.Product(np.ones((2, 2)), np.ones((3, 2))),
            ValueError,
            r"factors 1 and 2 have incompatible shapes.*\(2, 2\) and \(3, 2\)",
        ),
        (lambda: sa.Product(np.ones((2, 2)), np.ones(2)), ValueError, r"factor 2 must be a matrix"),
    ],
)
def test_bad_arguments_are_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_sums_are_canonical(rng):
    (x, a), (s, b), (d, c) = low_rank(rng, 9, 8), sparse(rng, 9, 8), banded(rng, 9, 8)
    y = sa.Sum(x, s, sa.Sum(d, x), sa.Fill(2.0, (9, 8)))
    assert [type(t) for t in y.terms] == [sa.Sparse, sa.LowRank]
    np.testing.assert_allclose(dense(y), 2 * a + b + c + 2, atol=1e-12)
    assert type(sa.Sum(d)) is sa.Banded
    assert type(sa.Sum(d, d)) is sa.Banded


def test_products_of_thin_dense_factors(rng):
    """They are of low rank: a mask with a pattern needs their elements in the pattern alone."""
    n = 20_000
    q, k = rng.normal(size=(n, 3)), rng.normal(size=(n, 3))
    with sa.densify("error"):
        scores = sa.Product(q, k.T)
        assert type(scores) is sa.LowRank
        band = sa.Banded([np.ones(n - 1), np.ones(n)], (1, 0), (n, n))
        masked = jax.jit(lambda b, x: b * x)(band, scores)
        assert type(masked) is sa.Banded
        np.testing.assert_allclose(masked.diagonal(1), np.sum(q[:-1] * k[1:], axis=1), rtol=1e-13)
        three = sa.Product(sa.Diagonal(np.arange(n)), q, k.T)
        np.testing.assert_allclose(as_jax(three @ np.ones(n)), np.arange(n) * (q @ k.sum(axis=0)), rtol=1e-9)
    assert type(sa.Product(q[:5], k[:5].T)) is sa.Dense  # no smaller
    assert type(sa.Product(k.T, q)) is sa.Dense


def test_products_are_canonical(rng):
    (s, a), (t, b) = sparse(rng, 9, 8), toeplitz(rng, 8, 8)
    assert type(sa.Product(s)) is sa.Sparse
    x = sa.Product(sa.Identity(9, 2.0), sa.Product(s, t), sa.Identity(8))
    assert [type(f) for f in x.factors] == [sa.Sparse, sa.Toeplitz]
    np.testing.assert_allclose(dense(x), 2 * a @ b, atol=1e-12)


@pytest.mark.each_parameter
@pytest.mark.parametrize("structure", ["Fourier", "Householder", "Inverse", "Permutation"])
def test_products_scaled_twice_are_one_chain(structure, rng):
    """A product that was a factor of another one was composed for ever."""
    x = sample(structure, (48, 48), dtype="complex128", requires="invertible", seed=1)
    a, numbers = dense(x), rng.normal(size=48)
    scaled, expected = x * 0.5 * 3.0, a * 1.5
    for found, wanted in (
        (scaled, expected),
        (-(x * 2.0), -2 * a),
        (scaled * numbers, expected * numbers),
        (scaled * numbers[:, None] / 2.0, expected * numbers[:, None] / 2),
        (sa.Diagonal(numbers) @ scaled @ scaled, numbers[:, None] * expected @ expected),
    ):
        assert not any(isinstance(f, sa.Product) for f in getattr(found, "factors", ()))
        np.testing.assert_allclose(dense(found), wanted, rtol=1e-12, atol=1e-12 * np.max(np.abs(wanted)))


def test_repr_shows_the_tree():
    x = sa.Sum(sa.Diagonal(np.ones(30)), sa.LowRank(np.ones((30, 1)), np.ones((30, 1))))
    lines = repr(x).split("\n")
    assert lines[0].startswith("Sum(shape=(30, 30), dtype=float64, stores 90 of 900 entries, 720 B of 7200 B dense")
    assert lines[1].startswith("    Diagonal(") and lines[2].startswith("    LowRank(shape=(30, 30), rank=1")
    assert lines[3] == "        Dense(shape=(30, 1))"


def test_pickles_and_trees(rng):
    x = sparse(rng, 30, 20)[0] + low_rank(rng, 30, 20)[0]
    assert type(x) is sa.Sum
    y = pickle.loads(pickle.dumps(x))
    assert type(y) is sa.Sum and sa.same_structure(x, y)
    np.testing.assert_array_equal(dense(x), dense(y))
    assert x.nbytes == sum(leaf.nbytes for leaf in parameters(x))


# ---- centring and scaling ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MATRICES)
@pytest.mark.parametrize("jit", [False, True])
def test_nothing_is_expanded_on_the_way(kind, jit, rng):
    x, a = MATRICES[kind](rng, 60, 50)
    mask = np.arange(60) % 3 == 0
    w = rng.normal(size=(50, 3))

    def steps(x):
        xp = x.__array_namespace__()
        z = (x - xp.mean(x, axis=0)) / spread
        return z, xp.sum(z, axis=0), xp.mean(z, axis=1), z @ w, z.mT @ w[:3].repeat(20, 0), xp.matrix_transpose(z)

    spread = a.std(axis=0)
    b = (a - a.mean(axis=0)) / spread
    with sa.densify("error"):
        results = (jax.jit(steps) if jit else steps)(x)
        z = results[0]
        rows = None if jit else z[mask]
    assert not isinstance(z, sa.Dense)
    expected = b, b.sum(0), b.mean(1), b @ w, b.T @ w[:3].repeat(20, 0), b.T
    for got, want in zip(results, expected, strict=True):
        np.testing.assert_allclose(dense(got), want, atol=1e-10)
    if rows is not None:
        np.testing.assert_allclose(dense(rows), b[mask], atol=1e-10)


@pytest.mark.costly
@pytest.mark.parametrize("kind", ["low rank", "sparse", "banded"])
def test_squares_and_spreads(kind, rng):
    x, a = MATRICES[kind](rng, 60, 50)
    with sa.densify("error"):
        z = x - sa.mean(x, axis=0)
        b = a - a.mean(axis=0)
        np.testing.assert_allclose(dense(z**2), b**2, atol=1e-12)
        np.testing.assert_allclose(dense(z * z), b * b, atol=1e-12)
        np.testing.assert_allclose(dense(sa.square(z)), b * b, atol=1e-12)
        np.testing.assert_allclose(dense(sa.sum(z**2)), (b**2).sum(), rtol=1e-12)
        for axis in (0, 1, None):
            np.testing.assert_allclose(dense(sa.var(z, axis=axis)), b.var(axis=axis), rtol=1e-10, atol=1e-13)
            np.testing.assert_allclose(
                dense(sa.std(z, axis=axis, keepdims=True)), b.std(axis=axis, keepdims=True), rtol=1e-9
            )
        np.testing.assert_allclose(dense(sa.linalg.matrix_norm(z)), np.linalg.norm(b), rtol=1e-12)
        np.testing.assert_allclose(dense(sa.linalg.diagonal(z, offset=3)), np.diagonal(b, 3), atol=1e-12)


def test_a_million_columns():
    n = 10**6
    x = sa.LowRank(np.ones((n, 1)), np.linspace(0, 1, n)[:, None])
    with sa.densify("error"):
        y = x - sa.mean(x, axis=1, keepdims=True)
        assert y.rank == 2
        np.testing.assert_allclose(float(sa.sum(y)), 0.0, atol=1e-2)
        z = sa.Diagonal(np.ones(n)) + y
        assert z.nbytes < 8 * 6 * n
        np.testing.assert_allclose(dense(z @ np.ones(n))[:3], 1.0, atol=1e-6)


def test_a_constant_beside_other_terms_takes_part_in_products(rng):
    (x, a), (y, b), (z, c), (w, d) = (
        toeplitz(rng, 60, 50),
        toeplitz(rng, 50, 60),
        banded(rng, 60, 50),
        low_rank(rng, 60, 50),
    )
    row, s = rng.normal(size=50), sa.Diagonal(np.arange(1.0, 51))
    for t, e in ((sa.Product(x, y, x) + 1.0, a @ b @ a + 1), ((z + 1.0) + w, c + 1 + d)):
        with sa.densify("error"):
            results = t * row, t / row, t @ s, s @ t.mT
        diagonal = np.diag(np.arange(1.0, 51))
        for got, want in zip(results, (e * row, e / row, e @ diagonal, diagonal @ e.T), strict=True):
            assert not isinstance(got, sa.Dense)
            np.testing.assert_allclose(dense(got), want, atol=1e-12 * np.abs(want).max())


@pytest.mark.parametrize("kind", ["low rank", "product"])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_lines_are_reordered_and_repeated(kind, batch, rng):
    x, a = MATRICES[kind](rng, 30, 40)
    x, a = sa.broadcast_to(x, (*batch, 30, 40)), np.broadcast_to(a, (*batch, 30, 40))
    for use in (
        lambda xp, x: xp.flip(x, axis=-1),
        lambda xp, x: xp.flip(x),
        lambda xp, x: xp.roll(x, 3, axis=-2),
        lambda xp, x: xp.roll(x, (-7, 2), axis=(-1, 0)),
        lambda xp, x: xp.repeat(x, 2, axis=-1),
        lambda xp, x: xp.tile(x, (*(1,) * len(batch), 3, 2)),
    ):
        got, want = use(sa, x), use(np, a)
        assert type(got) is sa.LowRank or kind == "product"  # for so small a product a selection does not pay
        np.testing.assert_allclose(dense(got), want, atol=1e-12)


# ---- memory -----------------------------------------------------------------------------------------------------------------------

LARGE = 1500
PLACES = np.array([1, 5, 1])
PARTS = {
    "block": lambda x: x[1:4, 7:9],
    "rows": lambda x: x[1:4],
    "columns": lambda x: x[:, -3:],
    "row": lambda x: x[3],
    "lines at places": lambda x: x[:, PLACES],
    "elements": lambda x: x[PLACES, PLACES + 3],
    "band": lambda x: x.__array_namespace__().linalg.diagonal(x, offset=-2),
}


def large_toeplitz(rng):
    c, r = rng.normal(size=(2, LARGE))
    r[0] = c[0]
    return sa.Toeplitz(c, r), scipy.linalg.toeplitz(c, r)


def large_product(rng):
    (x, a), (y, b) = large_toeplitz(rng), large_toeplitz(rng)
    return sa.Product(x, y), a @ b


def large_product_with_inverse(rng):
    x, a = large_toeplitz(rng)
    bands = np.ones((3, LARGE))
    bands[1] = 4
    inverse = sa.Inverse(sa.tridiagonal(bands[0, 1:], bands[1], bands[2, 1:]))
    return sa.Product(inverse, x), scipy.linalg.solve_banded((1, 1), bands, a)


def is_small(use, x):
    """Whether the compiled function needs less memory than half the dense form takes."""
    return jax.jit(use).lower(x).compile().memory_analysis().temp_size_in_bytes < x.size * x.itemsize / 2


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("make", [large_product, large_product_with_inverse])
def test_parts_of_products_take_the_memory_of_the_parts(make, rng):
    x, a = make(rng)
    for name, use in PARTS.items():
        want = np.diagonal(a, -2) if name == "band" else use(a)
        np.testing.assert_allclose(dense(use(x)), want, atol=1e-10 * np.abs(a).max(), err_msg=name)
        # The diagonal of an inverse needs a solution for each of its columns.
        assert (name, make) == ("band", large_product_with_inverse) or is_small(use, x), name


def test_elements_of_sums_of_products(rng):
    x, a = large_product(rng)
    x = x + sa.Diagonal(np.ones(LARGE))
    assert type(x) is sa.Sum
    np.testing.assert_allclose(dense(x[3]), a[3] + np.eye(LARGE)[3], atol=1e-10)
    assert is_small(lambda x: x[3], x)


def test_norms_of_what_has_to_be_expanded_ask_first(rng):
    x = sa.Product(toeplitz(rng, 30, 30)[0], toeplitz(rng, 30, 30)[0])
    for use in (sa.linalg.matrix_norm, sa.linalg.vector_norm, sa.var, lambda x: sa.std(x, axis=0)):
        with pytest.raises(sa.DensifyError), sa.densify("error"):
            use(x)
        assert sa.explain(use, x).densifications


def test_spreads_of_constants_in_a_sum_are_not_expanded(rng):
    u, v = rng.normal(size=(40, 40)), rng.normal(size=(30, 30))
    x, a = sa.Kronecker(u, v) + 3.0, np.kron(u, v) + 3
    assert type(x) is sa.Sum
    for use, want in (
        (sa.linalg.matrix_norm, np.linalg.norm(a)),
        (lambda x: sa.linalg.vector_norm(x, axis=0), np.linalg.norm(a, axis=0)),
        (lambda x: sa.linalg.vector_norm(x, axis=1, keepdims=True), np.linalg.norm(a, axis=1, keepdims=True)),
        (sa.var, a.var()),
    ):
        np.testing.assert_allclose(dense(use(x)), want, rtol=1e-10)
        assert is_small(use, x)


# ---- magnitudes, extremes, and where nothing is NaN ---------------------------------------------------------------------------------


def kronecker(rng, m, n):
    a, b = rng.normal(size=(m // 6, n // 4)), rng.normal(size=(6, 4))
    return sa.Kronecker(a, b), np.kron(a, b)


def scaled(make, rows=True, columns=False):
    def scaled(rng, m, n):
        x, a = make(rng, m, n)
        for wanted, numbers in ((rows, rng.normal(size=(m, 1))), (columns, rng.normal(size=n))):
            if wanted:
                x, a = x * numbers, a * numbers
        assert type(x) is sa.Product
        return x, a

    return scaled


def centred(make):
    def centred(rng, m, n):
        x, a = make(rng, m, n)
        return x - sa.mean(x, axis=0), a - a.mean(0)

    return centred


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("make", [kronecker, toeplitz], ids=["kronecker", "toeplitz"])
def test_magnitudes_of_what_is_scaled(make, columns, rng):
    x, a = scaled(make, columns=columns)(rng, 60, 40)
    with sa.densify("error"):
        y = abs(x)
    assert type(y) is sa.Product and [type(f) for f in y.factors] == [type(f) for f in x.factors]
    np.testing.assert_allclose(dense(y), np.abs(a), rtol=1e-14)
    complex_scaled = x * (1 + 1j * rng.normal(size=(60, 1)))
    with sa.densify("error"):
        y = abs(complex_scaled)
    assert y.dtype == np.float64
    np.testing.assert_allclose(dense(y), np.abs(dense(complex_scaled)), rtol=1e-13)


def test_magnitudes_of_integers_that_wrap_around():
    a = np.full((30, 30), 2**31, np.int64)
    x = sa.Product(sa.Diagonal(np.full(30, 2**31)), sa.Toeplitz(a[0], a[0]))
    np.testing.assert_array_equal(dense(abs(x)), np.abs(2**31 * a))


EXTREMES = {
    "low rank": low_rank,
    "kronecker": kronecker,
    "centred kronecker": centred(kronecker),
    "centred toeplitz": centred(toeplitz),
    "scaled kronecker": scaled(kronecker),
    "scaled toeplitz": scaled(toeplitz, columns=True),
}


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("size", [(60, 40), (1200, 1000)], ids=["one block", "many blocks"])
@pytest.mark.parametrize("kind", EXTREMES)
def test_extremes(kind, size, jit, rng):
    x, a = EXTREMES[kind](rng, *size)
    for ours, theirs in ((sa.max, np.max), (sa.min, np.min)):
        for axis in (0, 1, None):
            for keepdims in (False, True):

                def use(x, ours=ours, axis=axis, keepdims=keepdims):
                    return ours(x, axis=axis, keepdims=keepdims)

                with sa.densify("error"):
                    got = (jax.jit(use) if jit else use)(x)
                np.testing.assert_allclose(dense(got), theirs(a, axis=axis, keepdims=keepdims), rtol=1e-13, atol=1e-13)


def test_extremes_of_batches(rng):
    x, a = low_rank(rng, 9, 7, batch=(3,))
    for axis in (0, (0, 1), (1, 2), (0, 1, 2)):
        np.testing.assert_allclose(dense(sa.max(x, axis=axis)), a.max(axis), rtol=1e-13)


def test_extremes_hold_a_block_at_a_time(rng):
    x, a = low_rank(rng, 4000, 3000)
    for axis in (0, 1, None):
        assert is_small(lambda x, axis=axis: sa.max(x, axis=axis), x)
    derivative = jax.grad(lambda x: jnp.sum(as_jax(sa.max(x, axis=0))))
    assert jax.jit(derivative).lower(x).compile().memory_analysis().temp_size_in_bytes < x.size * x.itemsize / 2
    got, places = derivative(x), a.argmax(0)
    want = np.zeros((4000, 2))
    np.add.at(want, places, dense(x.v))
    np.testing.assert_allclose(dense(got.u), want, atol=1e-12)


def test_extremes_of_integers_and_nan(rng):
    u = rng.integers(-4, 5, (9, 2))
    np.testing.assert_array_equal(dense(sa.min(sa.LowRank(u, u), axis=0)), (u @ u.T).min(0))
    v = np.ones((9, 2))
    v[3, 1] = np.nan
    np.testing.assert_array_equal(dense(sa.max(sa.LowRank(v, np.ones((7, 2))), axis=1)), (v @ np.ones((2, 7))).max(1))


NOWHERE = {**EXTREMES, "centred sparse": centred(sparse), "product": product}


@pytest.mark.parametrize("kind", NOWHERE)
def test_nothing_is_nan(kind, rng):
    x, a = NOWHERE[kind](rng, 60, 40)
    with sa.densify("error"):
        for function in (sa.isnan, sa.isinf):
            nowhere = function(x)
            assert type(nowhere) is sa.Sparse and nowhere.data.shape == (0,) and nowhere.dtype == np.bool_
            assert not bool(sa.any(nowhere)) and nowhere.shape == x.shape
        for other in (np.inf, sa.ones((40,)), sa.ones((60, 40))):
            assert type(sa.where(nowhere, other, x)) is type(x)
        np.testing.assert_array_equal(dense(sa.sum(sa.astype(~nowhere, sa.float64), axis=0)), np.full(40, 60.0))
    np.testing.assert_allclose(dense(sa.where(nowhere, np.inf, x)), a, atol=1e-12)
    assert type(jax.jit(sa.isnan)(x)) is sa.Dense


def test_nothing_is_nan_in_batches(rng):
    x, a = low_rank(rng, 9, 7, batch=(3,))
    nowhere = sa.isnan(x)
    assert nowhere.shape == x.shape
    wider = sa.where(nowhere, sa.zeros((2, 1, 1, 1)), x)
    assert type(wider) is sa.LowRank
    np.testing.assert_allclose(dense(wider), np.broadcast_to(a, (2, 3, 9, 7)), rtol=1e-14)


@pytest.mark.parametrize(
    ("u", "v"),
    [
        ([[1.0, np.nan]], [[1.0, 2.0]]),
        ([[1.0, np.inf]], [[1.0, 0.0]]),
        ([[1e200, 1e200]], [[1e200, -1e200]]),  # what is finite overflows
        ([[1e200]], [[1e108]]),
    ],
)
def test_what_is_nan_or_infinite_is_found(u, v):
    k = np.shape(u)[1]
    u, v = np.concatenate([u, np.ones((9, k))]), np.concatenate([v, np.full((5, k), 2.0), np.zeros((4, k))])
    x = sa.LowRank(u, v)
    for ours, theirs in ((sa.isnan, np.isnan), (sa.isinf, np.isinf)):
        got = ours(x)
        assert type(got) is sa.Sparse
        np.testing.assert_array_equal(dense(got), theirs(dense(x)))
        np.testing.assert_array_equal(dense(sa.where(got, 7.0, x)), np.where(theirs(dense(x)), 7.0, dense(x)))
        with pytest.raises(sa.DensifyError), sa.densify("error"):
            ours(x)


def test_what_overflows_in_a_narrow_dtype():
    for dtype in ("float32", "complex64"):
        x = sa.Kronecker(np.full((2, 2), 1e20, dtype), np.full((3, 3), 1e20, dtype), np.full((2, 2), 1e-30, dtype))
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(dense(sa.isinf(x)), np.isinf(dense(x)))


# ---- derivatives -------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_derivative_of_what_is_not_linear_is_no_array(rng):
    x, _ = low_rank(rng, 9, 8)
    gradient = sa.grad(lambda x: sa.sum(x**2))(x)
    want = jax.grad(lambda u: jnp.sum((u @ x.v.data.T) ** 2))(x.u.data)
    np.testing.assert_allclose(gradient.u.data, want, rtol=1e-12)
    for use in (
        lambda g: x - 0.1 * g,
        lambda g: g + x,
        lambda g: -g,
        lambda g: x @ g.mT if False else g @ x.mT,
        lambda g: x - g,
    ):
        with pytest.raises(TypeError, match="jax.tree.map"):
            use(gradient)
    moved = jax.tree.map(lambda p, g: p - 0.1 * g, x, gradient)
    np.testing.assert_allclose(moved.u.data, x.u.data - 0.1 * want, rtol=1e-12)
    unit = sa.Triangular(np.eye(3), unit_diagonal=True)
    with pytest.raises(TypeError, match="Triangular"):
        unit - sa.grad(lambda x: sa.sum(x**2))(unit)
    linear = sa.grad(lambda x: sa.sum(x**2))(sa.Sum(sa.Diagonal(np.ones(30)), toeplitz(rng, 30, 30)[0]))
    assert not isinstance(linear * 2.0, sa.Dense)


@pytest.mark.parametrize("n", [1, 2, 8])
def test_what_a_join_does_not_hold_is_added_as_it_is(n):
    """A complex number next to a Hermitian matrix: the sum is not Hermitian."""
    a = np.random.default_rng(0).normal(size=(n, n, 2)) @ [1, 1j]
    H = sa.Hermitian(a)
    h = np.asarray(H)
    for f in (
        lambda x: x + 1j,
        lambda x: 2j - x,
        lambda x: x + sa.Fill(1 + 2j, (n, n)),
        lambda x: x - sa.Fill(1j, (1, n)),
        lambda x: x + sa.Identity(n, 1j),
        lambda x: x + sa.Diagonal(np.full(n, 3j)),
    ):
        expected = np.asarray(f(sa.asarray(h)))
        np.testing.assert_allclose(np.asarray(f(H)), expected)
        np.testing.assert_allclose(np.asarray(jax.jit(f)(H)), expected)


def test_a_number_that_makes_a_sum_as_large_as_its_dense_form(rng):
    """The factor next to an `Inverse`, which cannot take it up, was one number too many."""
    a = sa.tridiagonal(np.ones(5), np.full(5 + 1, 4.0), np.ones(5))
    low = sa.LowRank(np.ones((3, 1)), np.ones((3, 1)))
    x = sa.Inverse(a) + sa.Block([[None, rng.normal(size=(3, 3))], [sa.Diagonal(np.ones(3)), low]])
    assert type(x) is sa.Sum and sum(leaf.size for leaf in jax.tree.leaves(x)) == 35  # of 36 elements
    for y in (-x, 2.0 * x, x / 3.0):
        assert type(y) is sa.Dense


@pytest.mark.parametrize(
    "shape, row", [((3, 0), (1, 0)), ((3, 0), (3, 1)), ((0, 3), (0, 1)), ((0, 3), (3,)), ((0, 0), (0,))]
)
def test_rows_and_columns_beside_what_has_none(shape, row):
    m, n = shape
    x, v = sa.LowRank(np.ones((m, 1)), np.ones((n, 1))), np.ones(row)
    assert (x * v).shape == (v * x).shape == (x / v).shape == shape


@pytest.mark.parametrize("dtype", ["float64", "complex64", "int64"])
@pytest.mark.parametrize(("axis", "include_initial"), [(-1, False), (-2, True), (-1, True), (1, False)])
def test_running_sums_of_low_rank(dtype, axis, include_initial, rng):
    u, v = rng.integers(-3, 4, (2, 5, 2)).astype(dtype), rng.integers(-3, 4, (7, 2)).astype(dtype)
    x, a = sa.LowRank(u, v), u @ v.T
    found = sa.cumulative_sum(x, axis=axis, include_initial=include_initial)
    expected = np.cumulative_sum(a, axis=axis, include_initial=include_initial)
    assert type(found) is sa.LowRank and found.dtype == expected.dtype
    np.testing.assert_allclose(dense(found), expected, rtol=1e-6)
    assert sa.cumulative_sum(sa.LowRank(np.ones((10**6, 1)), np.ones((10**6, 1))), axis=-1).rank == 1


def test_structural_zeros_are_no_term(rng):
    """A diagonal that a matrix of few diagonals has not is such a matrix."""
    nothing = sa.Banded([], (), (40, 40))
    for x in (sa.Toeplitz(np.arange(40.0)), low_rank(rng, 40, 40)[0], sa.Kronecker(np.ones((8, 8)), np.ones((5, 5)))):
        for total in (x + nothing, nothing + x, x - nothing):
            assert type(total) is type(x)
            np.testing.assert_allclose(dense(total), dense(x))
        assert type(nothing - x + nothing) is type(-x)


@pytest.mark.parametrize("value", [2.0, 0.0, np.inf, np.nan])
@pytest.mark.parametrize("name", ["Diagonal", "Banded", "background", "no offsets", "rectangular"])
def test_a_constant_times_a_banded_matrix_has_rank_one(name, value, rng):
    """Nothing is expanded, and infinity and NaN do what they do in the dense product."""
    band = sa.tridiagonal([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, np.inf, 4.0, 5.0, 6.0], [1.0, -1.0, 1.0, 1.0, 1.0])
    matrices = {  # each with the places that are no structural zeros
        "Diagonal": (sa.Diagonal(np.arange(6.0)), np.eye(6)),
        "Banded": (band, np.eye(6) + np.eye(6, k=1) + np.eye(6, k=-1)),
        "background": (sa.exp(sa.Diagonal(np.arange(6.0))), np.ones((6, 6))),
        "no offsets": (sa.Banded([], (), (6, 6)), np.zeros((6, 6))),
        "rectangular": (sa.Banded([np.arange(5.0)], (1,), (8, 6)), np.eye(8, 6, k=1)),
    }
    A, stored = matrices[name]
    m, n = A.shape
    with np.errstate(invalid="ignore"):
        terms = np.where(stored != 0, value * np.asarray(A), 0.0)
        columns, rows = terms.sum(axis=0), terms.sum(axis=1, keepdims=True)
    with sa.densify("error"):
        products = sa.Fill(value, (7, m)) @ A, A @ sa.Fill(value, (n, 7))
    for product, expected in zip(products, (np.tile(columns, (7, 1)), np.tile(rows, 7)), strict=True):
        assert type(product) is sa.LowRank and product.rank == 1
        np.testing.assert_allclose(np.asarray(product), expected, rtol=1e-14)


def test_sums_of_constant_columns_of_any_structure():
    for v in (sa.Fill(2.0, (4, 1)), sa.asarray([[1.0], [2.0], [3.0], [4.0]])):
        x = sa.LowRank(sa.Fill(1.0, (5, 1)), v)
        for y, expected in (
            (x + x, 2 * dense(x)),
            (3.0 + x, 3 + dense(x)),
            (x - x.mT.mT, 0 * dense(x)),
            (x.mT + x.mT, 2 * dense(x).T),
        ):
            np.testing.assert_allclose(dense(y), expected)


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("ends", ["left", "right", "both"])
def test_elements_of_scaled_rows_and_columns_absorb_infinity(ends, batch):
    middle = np.arange(1.0, 10.0).reshape(3, 3)
    middle[0, 2] = np.inf
    factors = [sa.asarray(middle)]
    if ends != "right":
        factors.insert(0, sa.Diagonal(np.broadcast_to([1.0, 2.0, 3.0], (*batch, 3))))
    if ends != "left":
        factors.append(sa.Diagonal([3.0, 1.0, 2.0]))
    x = sa.Product(*factors)
    dense = np.asarray(x.to_dense())
    assert np.isfinite(dense).sum() == dense.size - max(1, math.prod(batch) if ends != "right" else 1)
    for key in (
        (..., 1, slice(None)),
        (..., 1, 2),
        (..., [0, 1], [2, 2]),
        (..., slice(None), 0),
        (..., [2, 0], slice(None)),
    ):
        np.testing.assert_allclose(np.asarray(x[key]), dense[key], rtol=1e-14, err_msg=str(key))
    np.testing.assert_allclose(np.asarray(sa.linalg.diagonal(x)), np.diagonal(dense, axis1=-2, axis2=-1), rtol=1e-14)
    np.testing.assert_allclose(np.asarray(sa.linalg.trace(x)), np.trace(dense, axis1=-2, axis2=-1), rtol=1e-14)


def bases_of_sums(rng, n=120):
    identity, blocks = sa.eye(n), sa.BlockDiagonal(rng.normal(size=(n // 4, 4, 4)) + 9 * np.eye(4))
    found, _ = sparse(rng, n, n, 0.01)
    permutation, band = (
        sa.Permutation(rng.permutation(n)),
        sa.tridiagonal(np.ones(n - 1), 9 * np.ones(n), np.ones(n - 1)),
    )
    diagonal, constant = sa.Diagonal(rng.random(n) + 3), sa.Toeplitz([4.0, 1.0], [4.0, 2.0, 0.5], shape=(n, n))
    pairs = [(identity, 0.1 * found), (identity, 0.1 * permutation), (band, blocks), (diagonal, found)]
    return [*pairs, (diagonal, constant), (permutation, 3 * constant)]


@pytest.mark.costly
@pytest.mark.parametrize("place", range(6))
def test_a_sum_has_one_base_in_any_order_of_its_terms(place, rng):
    """The expected solution is that of NumPy. PageRank with dangling nodes has such a matrix."""
    x, y = bases_of_sums(rng)[place]
    u = 0.1 * rng.normal(size=(120, 2))
    expected = np.linalg.solve(dense(x) + dense(y) + u @ u.T, np.ones(120))
    changed = sa.LowRank(u, u)
    with sa.densify("error"):
        for total in (x + (y + changed), (x + changed) + y, x - (-y - changed), changed + y + x):
            assert [type(term) for term in total.terms[1:]] == [sa.LowRank]
            np.testing.assert_allclose(dense(sa.linalg.solve(total, np.ones(120))), expected, rtol=1e-9)
