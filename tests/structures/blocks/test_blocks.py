"""Block-diagonal and block-banded arrays: constructors, conversions, joins, products, solvers, slices, writes, memory."""

import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from support import as_jax, dense

import structarrays as sa

RNG = np.random.default_rng(0)


def check(actual, expected, kind=None, rtol=1e-12):
    expected = np.asarray(expected)
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    scale = np.max(np.abs(expected), initial=0)
    np.testing.assert_allclose(dense(actual), expected, rtol=rtol, atol=rtol * scale)
    if kind is not None:
        assert type(actual) is kind, type(actual)


def uniform(rng, k=6, m=2, n=2, batch=()):
    return sa.BlockDiagonal(rng.normal(size=(*batch, k, m, n)))


def of_shapes(rng, *shapes, batch=()):
    return sa.BlockDiagonal([rng.normal(size=(*batch, *s)) for s in shapes])


def squares(rng, *sizes, batch=()):
    """Blocks that are well conditioned."""
    return sa.BlockDiagonal([rng.normal(size=(*batch, s, s)) + 4 * np.eye(s) for s in sizes])


def block_banded(rng, offsets=(-1, 0, 1), grid=(4, 4), block=(2, 2), batch=()):
    lengths = [min(grid[0], grid[1] - k) - max(0, -k) for k in offsets]
    blocks = [rng.normal(size=(*batch, length, *block)) for length in lengths]
    return sa.BlockBanded(blocks, offsets, (grid[0] * block[0], grid[1] * block[1]))


# ---- construction -------------------------------------------------------------------------------------------------


def test_a_list_of_matrices_is_scipys_block_diag(rng):
    matrices = [rng.normal(size=s) for s in [(2, 2), (2, 2), (1, 3), (0, 2), (3, 1), (2, 0)]]
    x = sa.BlockDiagonal(matrices)
    np.testing.assert_array_equal(dense(x), scipy.linalg.block_diag(*matrices))
    assert x.block_shapes == ((2, 2), (2, 2), (1, 3), (0, 2), (3, 1), (2, 0))
    assert [b.shape for b in x.blocks] == [(2, 2, 2), (1, 1, 3), (1, 0, 2), (1, 3, 1), (1, 2, 0)]


def test_batches_and_dtypes_of_blocks_are_joined():
    x = sa.BlockDiagonal([np.ones((3, 1, 2, 2), np.float32), np.ones((4, 1, 1), np.complex64), [[1]]])
    assert x.shape == (3, 4, 4, 4) and x.dtype == np.complex64
    y = sa.BlockBanded([np.ones((5, 1, 2, 2)), np.ones((2, 2, 2))], (1, 0))
    assert y.shape == (5, 4, 4)


def test_the_layout_of_block_diagonals(rng):
    x = block_banded(rng, (-1, 0, 2), (3, 4), (2, 3))
    expected = np.zeros((3, 4, 2, 3))
    for k, blocks in zip(x.offsets, x.blocks, strict=True):
        for t, block in enumerate(np.asarray(blocks)):
            expected[t + max(0, -k), t + max(0, k)] = block
    np.testing.assert_array_equal(dense(x), expected.swapaxes(1, 2).reshape(6, 12))
    assert x.grid == (3, 4) and x.block_shape == (2, 3)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_block_tridiagonal(k, rng):
    lower, diag, upper = (rng.normal(size=(n, 2, 2)) for n in (k - 1, k, k - 1))
    expected = scipy.linalg.block_diag(*diag)
    for t in range(k - 1):
        expected[2 * t + 2 : 2 * t + 4, 2 * t : 2 * t + 2] = lower[t]
        expected[2 * t : 2 * t + 2, 2 * t + 2 : 2 * t + 4] = upper[t]
    check(sa.block_tridiagonal(lower, diag, upper), expected, sa.BlockBanded)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: sa.BlockDiagonal(np.ones((2, 2))), ValueError, r"blocks must be \(..., k, m, n\).*\(2, 2\)"),
        (lambda: sa.BlockDiagonal([]), ValueError, "at least one matrix"),
        (lambda: sa.BlockDiagonal([np.ones((2, 2)), [1.0]]), ValueError, r"blocks\[1\].*\(1,\)"),
        (lambda: sa.BlockDiagonal(["a"]), TypeError, r"blocks\[0\]"),
        (lambda: sa.BlockDiagonal.from_dense(np.eye(4), 3), ValueError, r"sizes.*\(3, 3\).*\(4, 4\)"),
        (lambda: sa.BlockDiagonal.from_dense(np.eye(4), [1, 2]), ValueError, r"\(3, 3\).*\(4, 4\)"),
        (lambda: sa.BlockDiagonal.from_dense(np.ones((4, 4)), 2), ValueError, r"8 nonzero elements.*\(0, 2\)"),
        (lambda: sa.BlockDiagonal.from_dense(np.eye(4), 2.5), TypeError, "sizes.*2.5"),
        (lambda: sa.BlockDiagonal.from_dense(np.eye(4), [2, -2]), ValueError, r"sizes\[1\].*-2"),
        (lambda: sa.BlockBanded([], ()), ValueError, "at least one block diagonal"),
        (lambda: sa.BlockBanded([np.ones((2, 1, 1))], (0, 1)), ValueError, "the same length, got 1 and 2"),
        (lambda: sa.BlockBanded([np.ones((2, 1, 1))] * 2, (0, 0)), ValueError, r"differ.*\(0, 0\)"),
        (lambda: sa.BlockBanded([np.ones((2, 1, 1))], ("a",)), TypeError, "offsets must be a sequence of integers"),
        (lambda: sa.BlockBanded([np.ones((1, 1))], (0,)), ValueError, r"blocks\[0\].*\(1, 1\)"),
        (lambda: sa.BlockBanded([np.ones((2, 1, 1)), np.ones((1, 1, 2))], (0, 1)), ValueError, "the same block shape"),
        (lambda: sa.BlockBanded([np.ones((2, 0, 1))], (0,)), ValueError, "must be nonempty"),
        (lambda: sa.BlockBanded([np.ones((2, 2, 2))], (0,), (5, 4)), ValueError, r"multiples.*\(5, 4\)"),
        (lambda: sa.BlockBanded([np.ones((2, 2, 2))], (2,), (4, 4)), ValueError, r"inside.*got 2"),
        (lambda: sa.BlockBanded([np.ones((2, 2, 2))], (1,), (4, 4)), ValueError, "must have 1 blocks in a grid"),
        (lambda: sa.block_tridiagonal(1.0, 2.0, 3.0), ValueError, "diag must be"),
        (lambda: sa.BlockBanded.from_dense(np.eye(4), 3), ValueError, r"\(3, 3\).*\(4, 4\)"),
        (lambda: sa.BlockBanded.from_dense(np.ones((4, 4)), 2, (0,)), ValueError, "8 nonzero"),
        (lambda: sa.BlockBanded.from_bsr(scipy.sparse.csr_array(np.eye(2))), TypeError, "BSR"),
        (lambda: sa.BlockBanded.from_banded(sa.eye(4), 3), ValueError, r"\(3, 3\)"),
        (lambda: sa.BlockBanded.from_banded(np.eye(4), 2), TypeError, "ndarray"),
    ],
)
def test_constructors_say_what_is_wrong(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_repr(rng):
    x = sa.BlockDiagonal(np.ones((100, 2, 2)))
    assert repr(x) == (
        "BlockDiagonal(blocks=[100 of 2×2], shape=(200, 200), dtype=float64, "
        "stores 400 of 40000 entries, 3200 B of 320 kB dense)"
    )
    assert "blocks=[2×2, 1×3]" in repr(of_shapes(rng, (2, 2), (1, 3)))
    assert "…" in repr(of_shapes(rng, *((1 + i % 2, 1) for i in range(20))))
    y = block_banded(rng)
    assert "offsets=(-1, 0, 1), block_shape=(2, 2), shape=(8, 8)" in repr(y)
    assert "background=1.0" in repr(sa.exp(y))


# ---- conversions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [[2, 1, 3], [(2, 1), (1, 4), (3, 1)]])
def test_from_dense_is_the_inverse_of_to_dense(sizes, rng):
    x = of_shapes(rng, *(s if isinstance(s, tuple) else (s, s) for s in sizes), batch=(2,))
    y = sa.BlockDiagonal.from_dense(x.to_dense(), sizes)
    assert y.meta == x.meta
    for a, b in zip(x.blocks, y.blocks, strict=True):
        np.testing.assert_array_equal(a, b)


def test_from_dense_of_equal_blocks(rng):
    x = uniform(rng, 3, 2, 4)
    assert sa.BlockDiagonal.from_dense(dense(x), (2, 4)).meta == x.meta
    y = jax.jit(lambda a: sa.BlockDiagonal.from_dense(a, 2))(jnp.ones((4, 4)))
    np.testing.assert_array_equal(dense(y), np.kron(np.eye(2), np.ones((2, 2))))


def test_block_banded_from_dense(rng):
    x = block_banded(rng, (-2, 0, 1), (4, 5), (2, 3), (2,))
    y = sa.BlockBanded.from_dense(dense(x), (2, 3))
    assert y.meta == x.meta
    check(y, dense(x))
    with pytest.raises(TypeError, match="offsets"):
        jax.jit(lambda a: sa.BlockBanded.from_dense(a, 2))(jnp.ones((4, 4)))


@pytest.mark.slow
def test_from_bsr(rng):
    x = block_banded(rng, (-2, 0, 1), (4, 5), (2, 3))
    bsr = scipy.sparse.bsr_array(dense(x), blocksize=(2, 3))
    y = sa.BlockBanded.from_bsr(bsr)
    assert y.meta == x.meta
    check(y, dense(x))


@pytest.mark.parametrize("offsets", [(-1, 0, 1), (3,), (0,), ()])
@pytest.mark.parametrize("block", [2, 3, (2, 3)])
def test_from_banded(offsets, block, rng):
    x = sa.Banded([rng.normal(size=(2, 6 - abs(k))) for k in offsets], offsets, (6, 6))
    check(sa.BlockBanded.from_banded(x, block), dense(x), sa.BlockBanded)
    check(sa.BlockBanded.from_banded(sa.exp(x), block), np.exp(dense(x)), sa.BlockBanded)


# ---- joins and meets ----------------------------------------------------------------------------------------------

TRIDIAGONAL = sa.tridiagonal(RNG.normal(size=11), RNG.normal(size=12), RNG.normal(size=11))
SIZE_12 = {
    "2": uniform(RNG, 6),
    "3": uniform(RNG, 4, 3, 3),
    "4": uniform(RNG, 3, 4, 4),
    "2 1 3": squares(RNG, 2, 1, 3, 2, 1, 3),
    "5 7": squares(RNG, 5, 7),
    "wide": of_shapes(RNG, (2, 3), (2, 3), (4, 3), (4, 3)),
    "band 2": block_banded(RNG, (-1, 0, 1), (6, 6)),
    "band 2'": block_banded(RNG, (0, 2), (6, 6)),
    "band 4": block_banded(RNG, (-1, 0), (3, 3), (4, 4)),
    "diagonal": sa.Diagonal(RNG.normal(size=12)),
    "identity": 2.0 * sa.eye(12),
    "tridiagonal": TRIDIAGONAL,
    "fill": sa.Fill(2.0, (12, 12)),
    "background": sa.exp(uniform(RNG, 6)),
}


@pytest.mark.parametrize(("a", "b"), list(itertools.combinations_with_replacement(SIZE_12, 2)))
def test_sums_and_products_of_pairs(a, b):
    x, y = SIZE_12[a], SIZE_12[b]
    check(x + y, dense(x) + dense(y))
    check(x * y, dense(x) * dense(y))
    check(x @ y, dense(x) @ dense(y))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("2", "4", "3 of 4×4"),
        ("2", "3", "2 of 6×6"),
        ("2", "2 1 3", "2×2, 4×4, 2×2, 4×4"),
        ("5 7", "2", "Sum"),
        ("3", "5 7", "Sum"),
        ("2", "diagonal", "6 of 2×2"),
        ("2", "identity", "6 of 2×2"),
        ("2 1 3", "identity", "2×2, 1×1, 3×3, 2×2, 1×1, 3×3"),
        ("wide", "diagonal", "Sum"),
        ("2", "tridiagonal", "offsets=(-1, 0, 1), block_shape=(2, 2)"),
        ("5 7", "tridiagonal", "Sum"),
        ("band 2", "band 2'", "offsets=(-1, 0, 1, 2), block_shape=(2, 2)"),
        ("band 2", "2", "offsets=(-1, 0, 1), block_shape=(2, 2)"),
        ("band 2'", "tridiagonal", "offsets=(-1, 0, 1, 2), block_shape=(2, 2)"),
        ("band 4", "2", "offsets=(-1, 0), block_shape=(4, 4)"),
        ("band 4", "diagonal", "offsets=(-1, 0), block_shape=(4, 4)"),
        ("band 4", "3", "Sum"),
        ("2", "fill", "6 of 2×2"),
    ],
)
def test_the_join(a, b, expected):
    for x, y in ((SIZE_12[a], SIZE_12[b]), (SIZE_12[b], SIZE_12[a])):
        log = sa.explain(sa.add, x, y)
        assert expected in str(log.result) or expected in repr(
            jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), x + y)
        )


@pytest.mark.parametrize(
    ("a", "b", "kind"),
    [
        ("2", "diagonal", sa.Diagonal),
        ("2", "tridiagonal", sa.BlockDiagonal),
        ("4", "tridiagonal", sa.Banded),
        ("band 2", "diagonal", sa.Diagonal),
        ("band 2", "2", sa.BlockDiagonal),
        ("band 2", "band 2'", sa.BlockBanded),
        ("2", "background", sa.BlockDiagonal),
    ],
)
def test_the_meet(a, b, kind):
    for x, y in ((SIZE_12[a], SIZE_12[b]), (SIZE_12[b], SIZE_12[a])):
        with sa.densify("error"):
            check(x * y, dense(x) * dense(y), kind)


@pytest.mark.parametrize("last", [(0, 2), (2, 0), (0, 4)])
def test_blocks_without_rows_or_columns_at_the_end_are_no_grid(last, rng):
    """What stands beyond the last block of a grid was lost."""
    x = of_shapes(rng, (2, 2), (2, 2), last)
    rows, columns = x.shape[0] // 2, x.shape[1] // 2
    y = block_banded(rng, (1 - rows, 0, columns - 1), (rows, columns))
    for function in (sa.add, sa.subtract, sa.multiply):
        check(function(y, x), getattr(np, function.__name__)(dense(y), dense(x)))
    check(x.mT @ y, dense(x.mT) @ dense(y))


# ---- products -----------------------------------------------------------------------------------------------------


def test_products_block_by_block(rng):
    x, y = of_shapes(rng, (2, 3), (2, 3), (1, 4)), of_shapes(rng, (3, 2), (3, 1), (4, 5))
    with sa.densify("error"):
        check(x @ y, dense(x) @ dense(y), sa.BlockDiagonal)
        assert (x @ y).block_shapes == ((2, 2), (2, 1), (1, 5))
        check(x @ x.mT, dense(x) @ dense(x).T, sa.BlockDiagonal)
        z = squares(rng, 2, 1, 3)
        check(sa.linalg.matrix_power(z, 3), np.linalg.matrix_power(dense(z), 3), sa.BlockDiagonal)
        check(sa.linalg.matrix_power(z, -2), np.linalg.matrix_power(dense(z), -2), sa.BlockDiagonal, 1e-10)


def test_products_of_different_blocks_merge_them(rng):
    x, y = uniform(rng, 6), uniform(rng, 4, 3, 3)
    with sa.densify("error"):
        assert (x @ y).meta == ((2, 6, 6),)
        # Blocks without rows or columns cut at the same place.
        a, b = of_shapes(rng, (2, 0), (1, 2), (0, 1)), of_shapes(rng, (0, 2), (2, 1), (1, 3))
        check(a @ b, dense(a) @ dense(b))


@pytest.mark.slow
def test_block_banded_products_add_offsets(rng):
    x, y = block_banded(rng, (-1, 0), (4, 5), (2, 3), (2,)), block_banded(rng, (0, 1), (5, 3), (3, 1), (3, 1))
    with sa.densify("error"):
        check(x @ y, dense(x) @ dense(y), sa.BlockBanded)
        assert (x @ y).offsets == (-1, 0, 1)
        z = block_banded(rng, (1,), (3, 3))
        assert type(sa.linalg.matrix_power(z, 3)) is sa.Banded and not dense(sa.linalg.matrix_power(z, 3)).any()
        for a, b in (("band 2", "tridiagonal"), ("2", "tridiagonal"), ("band 2", "2"), ("2", "band 2'")):
            for p, q in ((SIZE_12[a], SIZE_12[b]), (SIZE_12[b], SIZE_12[a])):
                check(p @ q, dense(p) @ dense(q), sa.BlockBanded)


@pytest.mark.parametrize("name", ["2", "2 1 3", "wide", "band 2", "background"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, np.complex128])
def test_products_with_dense_arrays(name, dtype):
    x = (
        sa.astype(sa.round(3 * SIZE_12[name]), dtype)
        if dtype != np.uint64
        else sa.astype(sa.abs(3 * SIZE_12[name]), dtype)
    )
    for y in (np.arange(12), np.arange(24).reshape(12, 2), np.arange(72).reshape(3, 12, 2)):
        y = y.astype(dtype)
        with sa.densify("error"):
            check(x @ sa.asarray(y), dense(x) @ y, sa.Dense, 1e-5 if dtype == np.float32 else 1e-12)
            y = y.swapaxes(-1, -2) if y.ndim > 1 else y
            check(sa.asarray(y) @ x, y @ dense(x), sa.Dense, 1e-5 if dtype == np.float32 else 1e-12)


def test_strong_zeros(rng):
    x = uniform(rng, 2)
    y = sa.asarray([1.0, 2.0, np.nan, np.inf])
    assert np.isfinite(dense(x @ y)[:2]).all() and not np.isfinite(dense(x @ y)[2:]).any()
    z = block_banded(rng, (0, 2), (3, 3))
    assert np.isfinite(dense(z @ sa.asarray([1, 1, np.nan, np.nan, 1, 1]))[:2]).all()
    with sa.strong_zeros(False):
        assert np.isnan(dense(x @ y)).all()


# ---- reductions, parts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SIZE_12)
@pytest.mark.parametrize("axis", [None, -1, -2])
def test_reductions(name, axis):
    x = SIZE_12[name]
    with sa.densify("error"):
        for f in ("sum", "prod", "max", "min", "mean", "std", "var", "any", "all", "count_nonzero"):
            expected = getattr(np, f)(dense(x), axis=axis)
            np.testing.assert_allclose(dense(getattr(sa, f)(x, axis=axis)), expected, rtol=1e-11, atol=1e-12)


def test_products_of_rows_with_and_without_zeros(rng):
    x = block_banded(rng, (-1, 0, 1), (3, 3), (1, 1))  # the middle row is full
    for axis in (-1, -2):
        np.testing.assert_allclose(dense(sa.prod(x, axis=axis)), np.prod(dense(x), axis=axis))
        np.testing.assert_allclose(dense(sa.max(-sa.abs(x), axis=axis)), np.max(-abs(dense(x)), axis=axis))


@pytest.mark.costly
@pytest.mark.parametrize("name", ["2", "2 1 3", "wide", "band 2", "band 2'", "band 4"])
def test_parts(name):
    x = SIZE_12[name]
    d = dense(x)
    with sa.densify("error"):
        for k in (-13, -12, -3, -1, 0, 1, 2, 11, 12):
            if abs(k) <= 12:
                check(sa.linalg.diagonal(x, offset=k), np.diagonal(d, k))
                check(sa.linalg.trace(x, offset=k), np.trace(d, k))
            check(sa.tril(x, k=k), np.tril(d, k))
            check(sa.triu(x, k=k), np.triu(d, k))
        check(x.mT, d.T, type(x))
        for order in ("fro", 1, -1, np.inf, -np.inf):
            check(sa.linalg.matrix_norm(x, ord=order), np.linalg.norm(d, order))
    low, high = x.bandwidths()
    i, j = np.nonzero(d)
    assert (low, high) == ((i - j).max(), (j - i).max())


def test_triangles_leave_block_diagonals_out():
    x = SIZE_12["band 2"]
    assert sa.tril(x).offsets == (-1, 0) and sa.triu(x, k=1).offsets == (0, 1) and sa.triu(x, k=2).offsets == (1,)
    assert type(sa.triu(x, k=9)) is sa.Banded


# ---- solvers ------------------------------------------------------------------------------------------------------


@pytest.mark.costly
@pytest.mark.parametrize("sizes", [(2, 2, 2), (1, 3, 2), (3,)])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_solvers_block_by_block(sizes, batch, rng):
    x = squares(rng, *sizes, batch=batch)
    n, d = x.shape[-1], dense(x)
    h = x @ x.mT + sa.eye(n)
    b = rng.normal(size=(n, 2))
    with sa.densify("error"):
        check(sa.linalg.solve(x, sa.asarray(b)), np.linalg.solve(d, b), sa.Dense, 1e-10)
        check(sa.linalg.solve(x, sa.asarray(b[:, 0])), np.linalg.solve(d, b[:, :1])[..., 0], sa.Dense, 1e-10)
        check(sa.linalg.solve(x, h), np.linalg.solve(d, dense(h)), sa.BlockDiagonal, 1e-10)
        check(sa.linalg.solve(x, 2.0 * sa.eye(n)), 2 * np.linalg.inv(d), sa.BlockDiagonal, 1e-10)
        check(sa.linalg.inv(x), np.linalg.inv(d), sa.BlockDiagonal, 1e-10)
        check(sa.linalg.det(x), np.linalg.det(d), rtol=1e-10)
        for ours, theirs in zip(sa.linalg.slogdet(x), np.linalg.slogdet(d), strict=True):
            check(ours, theirs, rtol=1e-10)
        check(sa.linalg.cholesky(h), np.linalg.cholesky(dense(h)), sa.BlockDiagonal, 1e-10)
        check(sa.linalg.cholesky(h, upper=True), np.linalg.cholesky(dense(h)).swapaxes(-1, -2), sa.BlockDiagonal, 1e-10)
        check(
            sa.linalg.solve(sa.assume(h, "positive_definite"), sa.asarray(b)), np.linalg.solve(dense(h), b), rtol=1e-9
        )
        check(sa.linalg.eigvalsh(h), np.linalg.eigvalsh(dense(h)), rtol=1e-10)
        check(sa.linalg.svdvals(x), np.linalg.svd(d, compute_uv=False), rtol=1e-10)
        for order in (2, -2, "nuc"):
            check(sa.linalg.matrix_norm(x, ord=order), np.linalg.norm(d, order, axis=(-2, -1)), rtol=1e-10)
        values, vectors = sa.linalg.eig(x)
        assert type(vectors) is sa.BlockDiagonal
        np.testing.assert_allclose(d @ dense(vectors), dense(vectors) * dense(values)[..., None, :], atol=1e-10)
        q, r = sa.linalg.qr(x)
        assert type(q) is type(r) is sa.BlockDiagonal
        np.testing.assert_allclose(dense(q @ r), d, atol=1e-10)
    values, vectors = sa.linalg.eigh(h)
    check(values, np.linalg.eigvalsh(dense(h)), rtol=1e-10)
    np.testing.assert_allclose(dense(h) @ dense(vectors), dense(vectors) * dense(values)[..., None, :], atol=1e-10)
    u, s, vh = sa.linalg.svd(x)
    np.testing.assert_allclose((dense(u) * dense(s)[..., None, :]) @ dense(vh), d, atol=1e-10)


@pytest.mark.parametrize(
    "shapes", [((3, 2), (2, 1)), ((2, 3), (1, 1)), ((3, 1), (1, 4)), ((2, 0), (1, 2)), ((0, 2), (3, 3))]
)
def test_rectangular_blocks(shapes, rng):
    x = of_shapes(rng, *shapes, batch=(2,))
    d = dense(x)
    with sa.densify("error"):
        check(sa.linalg.svdvals(x), np.linalg.svd(d, compute_uv=False), rtol=1e-10)
        check(sa.linalg.pinv(x), np.linalg.pinv(d), sa.BlockDiagonal, 1e-10)
        assert dense(sa.linalg.matrix_rank(x)).tolist() == np.linalg.matrix_rank(d).tolist()
    for mode in ("reduced", "complete"):
        q, r = sa.linalg.qr(x, mode=mode)
        inner = min(d.shape[1:]) if mode == "reduced" else d.shape[1]
        assert q.shape == (2, d.shape[1], inner) and r.shape == (2, inner, d.shape[2])
        np.testing.assert_allclose(dense(q @ r), d, atol=1e-12)
        np.testing.assert_array_equal(np.tril(dense(r), -1), 0)


def test_small_singular_values_are_small_beside_those_of_other_blocks():
    x = sa.BlockDiagonal([1e-20 * np.eye(2), np.eye(1), np.zeros((1, 1))])
    check(sa.linalg.pinv(x), np.linalg.pinv(dense(x)))
    assert int(sa.linalg.matrix_rank(x)) == 1
    assert int(sa.linalg.matrix_rank(x, rtol=1e-30)) == 3


def test_singular_blocks_are_noticed():
    x = sa.BlockDiagonal([np.eye(2), np.zeros((2, 2))])
    for f in (sa.linalg.inv, lambda x: sa.linalg.solve(x, sa.ones(4)), sa.linalg.cholesky):
        with pytest.raises(np.linalg.LinAlgError):
            f(x)
    with sa.errstate(linalg="nan"):
        assert np.isnan(dense(sa.linalg.solve(x, sa.ones(4)))[2:]).all()
    assert float(sa.linalg.det(x)) == 0


# ---- slices and writes --------------------------------------------------------------------------------------------


@pytest.mark.costly
@pytest.mark.parametrize("name", ["2", "2 1 3", "wide", "band 2", "band 4", "background"])
def test_slices(name):
    x, d = SIZE_12[name], dense(SIZE_12[name])
    for rows, columns in itertools.product(
        [slice(0, 12), slice(2, 10), slice(3, 8), slice(4, 4), slice(11, None)], repeat=2
    ):
        check(x[rows, columns], d[rows, columns])
    check(x[3], d[3])
    check(x[:, -1], d[:, -1])
    check(x[5, 6], d[5, 6])
    check(x[[1, 5, 1]], d[[1, 5, 1]])
    check(x[::2, ::-1], d[::2, ::-1])
    check(sa.take(x, sa.asarray([0, 7]), axis=1), d[:, [0, 7]])


def test_slices_keep_blocks(rng):
    x = uniform(rng, 6)
    with sa.densify("error"):
        assert x[1:11, 1:11].block_shapes == ((1, 1), (2, 2), (2, 2), (2, 2), (2, 2), (1, 1))
        assert x[:, 4:6].block_shapes == ((2, 0), (2, 0), (2, 2), (2, 0), (2, 0), (2, 0))
        y = block_banded(rng, (-1, 0, 1), (6, 6))
        assert y[2:8, 4:12].offsets == (-2, -1, 0) and y[2:8, 4:12].grid == (3, 4)
    assert type(x[2:4, 2:4]) is sa.Dense


WRITES = [
    ("2", (3, 2), 7.0, sa.BlockDiagonal),
    ("2", (slice(2, 4), slice(2, 4)), np.arange(4.0).reshape(2, 2), sa.BlockDiagonal),
    ("2", (slice(3, 1, -1), 3), np.array([5.0, 6.0]), sa.BlockDiagonal),
    ("2", (3, 4), 7.0, sa.BlockBanded),
    ("2", ([0, 3, 5], [1, 2, 5]), np.array([1.0, 2.0, 3.0]), sa.BlockDiagonal),
    ("2", ([0, 3, 5], [1, 4, 5]), 9.0, sa.BlockBanded),
    ("2", (slice(2, 5), slice(2, 5)), 1.0, sa.Sparse),
    ("2 1 3", (2, 2), 7.0, sa.BlockDiagonal),
    ("2 1 3", (slice(3, 6), slice(4, 6)), 7.0, sa.BlockDiagonal),
    ("2 1 3", (2, 3), 7.0, sa.Sparse),
    ("band 2", (2, 0), 7.0, sa.BlockBanded),
    ("band 2", (slice(2, 4), slice(0, 2)), 7.0, sa.BlockBanded),
    ("band 2", (0, -1), 7.0, sa.BlockBanded),
    ("background", (0, 1), 7.0, sa.BlockDiagonal),
    ("background", (0, 5), 7.0, sa.BlockBanded),
]


@pytest.mark.parametrize(("name", "key", "value", "kind"), WRITES)
def test_writes(name, key, value, kind):
    original = SIZE_12[name]
    x, before = sa.asarray(original, copy=True), dense(original)
    d = before.copy()
    for _ in range(2):  # the second time into parameters of its own
        x[key] = value
        d[key] = value
        check(x, d, kind)
    np.testing.assert_array_equal(dense(original), before)


def test_writes_of_batches(rng):
    x = uniform(rng, 3, batch=(4,))
    d = dense(x).copy()
    for key, value in (((1, 0, 1), 3.0), ((slice(None), 4, 5), 5.0), ((slice(1, 3), slice(2, 4), slice(2, 4)), 6.0)):
        x[key] = value
        d[key] = value
        check(x, d, sa.BlockDiagonal)


# ---- transformations ----------------------------------------------------------------------------------------------


def test_transformations(rng):
    x = uniform(rng, 3, batch=(4,))
    check(jax.vmap(lambda a: a @ a)(x), dense(x) @ dense(x), sa.BlockDiagonal)
    check(jax.jit(lambda a: a.mT)(x), dense(x).swapaxes(-1, -2), sa.BlockDiagonal)
    gradient = sa.grad(lambda a: sa.sum(a @ a))(uniform(rng, 3))
    assert type(gradient) is sa.BlockDiagonal
    y = squares(rng, 2, 3)
    inverse = sa.grad(lambda a: sa.linalg.slogdet(a).logabsdet)(y)
    check(inverse, np.linalg.inv(dense(y)).T, sa.BlockDiagonal, 1e-10)


@pytest.mark.parametrize(
    "f",
    [
        lambda A, b: A @ b,
        lambda A, b: b @ A,
        lambda A, b: A.mT @ A @ b,
        lambda A, b: (A + sa.Diagonal(b)) @ b,
        lambda A, b: (A + sa.eye(b.shape[0])) * sa.Diagonal(b) @ b,
        lambda A, b: sa.exp(A) @ b,
        lambda A, b: sa.sum(A, axis=0) + sa.max(A, axis=1) + sa.std(A),
        lambda A, b: sa.tril(A) @ sa.triu(A) @ b,
        lambda A, b: sa.linalg.matrix_power(A, 3) @ b,
        lambda A, b: sa.linalg.trace(A) + sa.linalg.matrix_norm(A),
        lambda A, b: A[1:-3, 1:-3] @ b[1:-3] if type(A) is sa.BlockDiagonal else A[4:, 4:] @ b[4:],
        lambda A, b: sa.linalg.diagonal(A, offset=1),
        lambda A, b: jax.grad(lambda A: as_jax(sa.sum(A @ A @ b)))(A),
    ],
)
@pytest.mark.parametrize("kind", ["diagonal", "banded"])
def test_memory_is_linear(f, kind):
    k = 250_000
    blocks = jnp.ones((k, 4, 4))
    A = sa.BlockDiagonal(blocks) if kind == "diagonal" else sa.block_tridiagonal(blocks[1:], blocks, blocks[1:])
    _memory_of(f, A, sa.Dense(jnp.ones(4 * k)), 80 * A.blocks[0].size)


@pytest.mark.parametrize(
    "f",
    [
        lambda A, b: sa.linalg.solve(A, b),
        lambda A, b: sa.linalg.inv(A) @ b,
        lambda A, b: sa.linalg.slogdet(A)[1],
        lambda A, b: sa.linalg.cholesky(A) @ b,
        lambda A, b: sa.linalg.eigvalsh(A),
        lambda A, b: sa.linalg.pinv(A) @ b,
        lambda A, b: jax.grad(lambda A: as_jax(sa.sum(sa.linalg.solve(A, b))))(A),
    ],
)
def test_memory_of_solvers_is_linear(f):
    k = 250_000
    A = sa.BlockDiagonal(jnp.broadcast_to(jnp.eye(4), (k, 4, 4)))
    _memory_of(f, A, sa.Dense(jnp.ones(4 * k)), 80 * A.blocks[0].size)


def _memory_of(f, A, b, limit):
    with sa.densify("error"):
        compiled = jax.jit(f).lower(A, b).compile()
    sizes = [
        np.prod([int(k) for k in s.split(",")], dtype=float)
        for s in re.findall(r"\[(\d+(?:,\d+)*)\]", compiled.as_text())
    ]
    assert max(sizes) <= limit
    assert compiled.memory_analysis().temp_size_in_bytes <= 8 * limit


def test_batch_shapes_that_do_not_broadcast_are_named():
    with pytest.raises(
        ValueError, match=r"batch shapes must broadcast, got \(3,\) of blocks\[0\], \(2,\) of blocks\[1\]"
    ):
        sa.BlockDiagonal([np.ones((3, 2, 2)), np.ones((2, 1, 1))])


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("batch", [(), (2,)])
def test_narrow_block_banded_matrices_are_solved_as_banded_ones(batch, rng):
    k, m = 90, 3
    main = rng.normal(size=(*batch, k, m, m)) + 9 * np.eye(m)
    x = sa.block_tridiagonal(rng.normal(size=(*batch, k - 1, m, m)), main, rng.normal(size=(*batch, k - 1, m, m)))
    a, b = dense(x), rng.normal(size=(k * m, 2))
    with sa.densify("error", limit=0):
        solution, (sign, logabsdet) = sa.linalg.solve(x, sa.asarray(b)), sa.linalg.slogdet(x)
    check(solution, np.linalg.solve(a, b), rtol=1e-11)
    np.testing.assert_allclose(as_jax(sign), np.linalg.slogdet(a)[0])
    np.testing.assert_allclose(as_jax(logabsdet), np.linalg.slogdet(a)[1], rtol=1e-12)
    symmetric = sa.assume(x + x.mT, "positive_definite")
    check(sa.linalg.solve(symmetric, b), np.linalg.solve(dense(symmetric), b), rtol=1e-11)
    gradient = jax.jit(sa.grad(lambda x: sa.sum(sa.linalg.solve(x, b)) + sa.sum(sa.linalg.slogdet(x).logabsdet)))(x)
    assert type(gradient) is sa.BlockBanded
    inverse = np.linalg.inv(a)
    expected = np.swapaxes(inverse, -1, -2) - np.swapaxes(inverse, -1, -2) @ np.ones_like(b) @ np.swapaxes(
        as_jax(solution), -1, -2
    )
    check(gradient, np.where(dense(x) != 0, expected, 0), rtol=1e-10)
