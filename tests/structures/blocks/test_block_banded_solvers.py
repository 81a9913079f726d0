"""Systems with block-banded matrices, solved in their blocks: against NumPy's dense solver."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax, normal

import structarrays as sa
from structarrays._structures.blocks import block_banded_solvers
from structarrays._structures.sparse import solvers as sparse_solvers


@pytest.fixture(autouse=True)
def small_matrices_too(monkeypatch):
    monkeypatch.setattr(sparse_solvers, "SOLVED_AS_DENSE", 0)
    monkeypatch.setattr(block_banded_solvers, "SMALLEST", 1)
    monkeypatch.setattr(block_banded_solvers, "SMALLEST_OF_DETERMINANTS", 1)


def block_banded(count, size, offsets, dtype=float, batch=(), seed=0):
    blocks = [normal(*batch, count - abs(k), size, size, seed=seed + i, dtype=dtype) for i, k in enumerate(offsets)]
    blocks = [b + 4 * size * np.eye(size) if k == 0 else b for k, b in zip(offsets, blocks, strict=True)]
    return sa.BlockBanded(blocks, offsets)


@pytest.mark.costly
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize(
    "count, size, offsets",
    [
        (5, 3, (-1, 0, 1)),
        (4, 2, (0, 1)),
        (6, 2, (-1, 1)),
        (7, 2, (-2, 0, 1)),
        (6, 3, (-2, -1, 0, 1, 2)),
        (5, 2, (0, 3)),
        (2, 3, (0,)),
    ],
)
def test_solve(count, size, offsets, dtype):
    for batch in ((), (2,)):
        x = block_banded(count, size, offsets, dtype, batch)
        for b in (normal(*batch, count * size, 2, dtype=dtype), normal(count * size, dtype=dtype)):
            if b.ndim == 1 and batch:
                continue
            with sa.densify("error"):
                solution = sa.linalg.solve(x, b)
            expected = np.linalg.solve(np.asarray(x.to_dense()), b)
            np.testing.assert_allclose(np.asarray(solution), expected, rtol=1e-11, atol=1e-13)


def test_the_inverse_is_not_formed():
    x, b = block_banded(40, 8, (-1, 0, 1)), normal(320, 2)
    inverse = sa.linalg.inv(x)
    assert isinstance(inverse, sa.Inverse)
    np.testing.assert_allclose(inverse @ b, np.linalg.solve(np.asarray(x.to_dense()), b), rtol=1e-11)


@pytest.mark.parametrize("offsets", [(-1, 0, 1), (-2, 0, 2)])
def test_positive_definite(offsets):
    x = block_banded(6, 2, offsets)
    x = sa.assume(x + x.mT, "positive_definite")
    b = normal(12)
    np.testing.assert_allclose(sa.linalg.solve(x, b), np.linalg.solve(np.asarray(x.to_dense()), b), rtol=1e-12)
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.solve(sa.assume(x - 100 * sa.eye(12), "positive_definite"), b)


def test_singular():
    x = block_banded(6, 2, (-1, 0, 1)) * 0
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.solve(x, np.ones(12))
    assert np.all(np.isnan(jax.jit(lambda x: as_jax(sa.linalg.solve(x, np.ones(12))))(x)))


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("offsets", [(-1, 0, 1), (-2, 0, 1)])
def test_derivatives(offsets):
    """With respect to the blocks, in their structure."""
    x, b = block_banded(5, 2, offsets), normal(10)

    def value(solve, x):
        return jnp.sum(solve(x) ** 2)

    ours = jax.grad(lambda x: value(lambda x: as_jax(sa.linalg.solve(x, b)), x))(x)
    theirs = jax.grad(lambda x: value(lambda x: jnp.linalg.solve(x.to_jax(), b), x))(x)
    assert isinstance(ours, sa.BlockBanded) and ours.offsets == x.offsets
    for g, h in zip(ours.blocks, theirs.blocks, strict=True):
        np.testing.assert_allclose(g, h, rtol=1e-10, atol=1e-13)
    stack = jax.tree.map(lambda *leaves: jnp.stack(leaves), x, block_banded(5, 2, offsets, seed=9))
    mapped = jax.vmap(lambda x: as_jax(sa.linalg.solve(x, b)))(stack)
    np.testing.assert_allclose(mapped[0], sa.linalg.solve(x, b), rtol=1e-12)


def test_nothing_is_as_large_as_the_matrix():
    blocks = [jax.ShapeDtypeStruct((k, 8, 8), float) for k in (124_999, 125_000, 124_999)]

    def solution(lower, diagonal, upper, b):
        return sa.linalg.solve(sa.block_tridiagonal(lower, diagonal, upper), b)

    memory = jax.jit(solution).lower(*blocks, jax.ShapeDtypeStruct((1_000_000,), float)).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 10 * 3 * 125_000 * 64 * 8


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("count, offsets", [(5, (-1, 0, 1)), (1, (0,)), (4, (0,)), (12, (-2, -1, 0, 1, 2))])
def test_cholesky(count, offsets, dtype):
    for batch in ((), (2,)):
        x = block_banded(count, 3, offsets, dtype, batch)
        x = x + sa.conj(x).mT
        a = np.asarray(x.to_dense())
        a = a + np.eye(a.shape[-1]) * max(0, 1 - np.linalg.eigvalsh(a).min())
        x = sa.BlockBanded.from_dense(a, 3, offsets)
        for upper in (False, True):
            with sa.densify("error"):
                factor = sa.linalg.cholesky(x, upper=upper)
            expected = np.linalg.cholesky(a, upper=upper)
            np.testing.assert_allclose(np.asarray(factor.to_dense()), expected, atol=1e-13)
            if len(offsets) == 3:
                assert factor.offsets == ((0, 1) if upper else (-1, 0)) and isinstance(factor, sa.BlockBanded)
            elif len(offsets) == 5:
                assert isinstance(factor, sa.Banded) and len(factor.offsets) == 9
        b = normal(a.shape[-1], 2, dtype=dtype)
        factor = sa.linalg.cho_factor(x)
        np.testing.assert_allclose(
            np.asarray(sa.linalg.cho_solve(factor, b)), np.linalg.solve(a, b), rtol=1e-9, atol=1e-11
        )
        if batch or count == 1:
            continue
        with pytest.raises(np.linalg.LinAlgError):
            sa.linalg.cholesky(x - 1000 * sa.eye(a.shape[-1]))


def test_derivatives_of_cholesky_factors():
    x = block_banded(4, 2, (-1, 0, 1))
    x = x + x.mT + 4 * sa.eye(8)

    def value(factor):
        return jnp.sum(factor**2 * jnp.arange(64.0).reshape(8, 8))

    ours = jax.grad(lambda x: value(as_jax(sa.linalg.cholesky(x))))(x)
    theirs = jax.grad(lambda x: value(jnp.linalg.cholesky(x.to_jax())))(x)
    for g, h in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(g, h, atol=1e-12)


@pytest.mark.costly
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("count, offsets", [(6, (-1, 0, 1)), (1, (0,)), (7, (-2, 0, 1)), (5, (-1, 1))])
def test_triangles(count, offsets, dtype):
    """By substitution: entry by entry, also where the triangle is no well-conditioned matrix."""
    blocks = [normal(2, count - abs(k), 3, 3, seed=i, dtype=dtype) for i, k in enumerate(offsets)]
    x, b = sa.BlockBanded(blocks, offsets), normal(3 * count, 2, seed=9, dtype=dtype)
    a = np.asarray(x.to_dense())
    for trans, lower, unit in itertools.product((0, 1, 2), (True, False), (True, False)):
        arguments = {"trans": trans, "lower": lower, "unit_diagonal": unit}
        if 0 not in offsets and not unit:
            with pytest.raises(np.linalg.LinAlgError):
                sa.linalg.solve_triangular(x, b, **arguments)
            continue
        with sa.densify("error"):
            solution = np.asarray(sa.linalg.solve_triangular(x, b, **arguments))
        for i in range(2):
            t = np.tril(a[i]) if lower else np.triu(a[i])
            t = t - np.diag(np.diag(t)) + np.eye(len(t)) if unit else t
            t = (t, t.T, t.conj().T)[trans]
            assert np.all(
                np.abs(t @ solution[i] - b) <= 30 * np.finfo(float).eps * (np.abs(t) @ np.abs(solution[i]) + np.abs(b))
            )


def test_a_zero_on_the_diagonal_of_a_triangle():
    diagonal = normal(10, 30, 30)
    diagonal[3, 1, 1] = 0
    x, b = sa.BlockBanded([normal(9, 30, 30), diagonal], (-1, 0)), np.ones(300)
    with pytest.raises(np.linalg.LinAlgError, match="solve_triangular"):
        sa.linalg.solve_triangular(x, b, lower=True)
    assert np.all(np.isnan(jax.jit(lambda x: as_jax(sa.linalg.solve_triangular(x, b, lower=True)))(x)))
    assert np.all(np.isfinite(np.asarray(sa.linalg.solve_triangular(x, b, lower=True, unit_diagonal=True)[:30])))


@pytest.mark.parametrize("trans", [0, 1])
def test_derivatives_of_triangular_systems(trans):
    x, b = block_banded(4, 2, (-1, 0, 1)), normal(8)

    def ours(x):
        return jnp.sum(as_jax(sa.linalg.solve_triangular(x, b, trans, lower=True)) ** 2 * jnp.arange(8.0))

    def theirs(x):
        solution = jax.scipy.linalg.solve_triangular(x.to_jax(), b, trans=trans, lower=True)
        return jnp.sum(solution**2 * jnp.arange(8.0))

    for g, h in zip(jax.grad(ours)(x).blocks, jax.grad(theirs)(x).blocks, strict=True):
        np.testing.assert_allclose(g, h, atol=1e-13)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("offsets", [(-1, 0, 1), (-2, 0, 1)])
def test_single_precision(offsets):
    x, b = sa.astype(block_banded(7, 2, offsets), sa.float32), normal(14).astype(np.float32)
    solution = sa.linalg.solve(x, b)
    assert solution.dtype == sa.float32
    np.testing.assert_allclose(np.asarray(solution), np.linalg.solve(np.asarray(x.to_dense()), b), rtol=1e-4)


@pytest.mark.parametrize("count, size", [(3, 4), (1, 2), (6, 3), (4, 70)])
def test_the_selected_inverse_has_the_structure_of_the_matrix(count, size):
    x = block_banded(count, size, (-1, 0, 1) if count > 1 else (0,))
    elements = sa.linalg.selected_inverse(x)
    assert isinstance(elements, sa.BlockBanded) and elements.offsets == x.offsets
    inverse = np.linalg.inv(np.asarray(x.to_dense()))
    kept = np.kron(np.abs(np.subtract.outer(np.arange(count), np.arange(count))) <= 1, np.ones((size, size))) == 1
    np.testing.assert_allclose(np.asarray(elements.to_dense()), np.where(kept, inverse, 0), atol=1e-12)


@pytest.mark.costly
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("definite", [False, True])
@pytest.mark.parametrize(
    "count, size, offsets", [(5, 3, (-1, 0, 1)), (1, 2, (0,)), (7, 2, (-2, -1, 0, 1, 2)), (4, 9, (-1, 0, 1))]
)
def test_determinants_and_selected_inverses(count, size, offsets, definite, dtype):
    for batch in ((), (2,)):
        x = block_banded(count, size, offsets, dtype, batch)
        if definite:
            x = sa.assume(x + sa.conj(x).mT, "positive_definite")
        a = np.asarray(x)
        with sa.densify("error"):
            sign, logabsdet = sa.linalg.slogdet(x)
            det, elements = sa.linalg.det(x), sa.linalg.selected_inverse(x)
            compiled = jax.jit(sa.linalg.slogdet)(x)
        for got in (sa.linalg.slogdet(x), compiled):
            np.testing.assert_allclose(got[0], np.linalg.slogdet(a)[0], rtol=1e-12)
            np.testing.assert_allclose(got[1], np.linalg.slogdet(a)[1], rtol=1e-12)
        np.testing.assert_allclose(det, np.linalg.det(a), rtol=1e-10)
        kept = np.asarray(sa.BlockBanded([np.ones((count - abs(k), size, size)) for k in offsets], offsets)) == 1
        np.testing.assert_allclose(np.asarray(elements), np.where(kept, np.linalg.inv(a), 0), atol=1e-13)
        assert (sign.dtype, logabsdet.dtype, det.dtype) == (x.dtype, np.float64, x.dtype)
        assert isinstance(elements, sa.BlockBanded) and elements.offsets == offsets


@pytest.mark.parametrize("offsets", [(-1, 0), (0, 1), (-2, 0, 1)])
def test_selected_inverses_of_one_side(offsets):
    x = block_banded(6, 2, offsets)
    elements = sa.linalg.selected_inverse(x)
    kept = np.asarray(sa.BlockBanded([np.ones((6 - abs(k), 2, 2)) for k in offsets], offsets)) == 1
    np.testing.assert_allclose(np.asarray(elements), np.where(kept, np.linalg.inv(np.asarray(x)), 0), atol=1e-14)


def test_determinants_that_need_exchanges_of_block_rows():
    """All blocks on the diagonal are zero, so that no block can be eliminated by its own rows."""
    x = sa.BlockBanded([normal(5, 3, 3), np.zeros((6, 3, 3)), normal(5, 3, 3, seed=1)], (-1, 0, 1))
    a = np.asarray(x)
    with sa.densify("error"):
        np.testing.assert_allclose(sa.linalg.slogdet(x), np.linalg.slogdet(a), rtol=1e-12)
        elements, (sign, logabsdet) = sa.linalg.selected_inverse(x), sa.linalg.slogdet(x * 0)
    kept = np.asarray(sa.BlockBanded([np.ones((k, 3, 3)) for k in (5, 6, 5)], (-1, 0, 1))) == 1
    np.testing.assert_allclose(np.asarray(elements), np.where(kept, np.linalg.inv(a), 0), atol=1e-12)
    assert float(sign) == 0 and float(logabsdet) == -np.inf and float(sa.linalg.det(x * 0)) == 0


def test_selected_inverses_that_do_not_exist():
    x = block_banded(6, 2, (-1, 0, 1))
    singular, indefinite = x * 0, sa.assume(x + x.mT - 100 * sa.eye(12), "positive_definite")
    for bad in (singular, indefinite):
        with pytest.raises(np.linalg.LinAlgError):
            sa.linalg.selected_inverse(bad)
        assert np.all(np.isnan(jax.jit(sa.linalg.selected_inverse)(bad).blocks[1]))
    assert np.isnan(float(sa.linalg.slogdet(indefinite).logabsdet))
    given = x + np.nan * sa.eye(12)
    assert np.any(
        np.isnan(sa.linalg.selected_inverse(given).blocks[1])
    )  # as all functions do with NaN, without an error


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("definite", [False, True])
def test_derivatives_of_determinants(definite):
    x = block_banded(5, 2, (-1, 0, 1))
    if definite:
        x = sa.assume(x + x.mT, "positive_definite")

    def value(slogdet, x):
        return slogdet(x)[1] ** 2

    def ours(x):
        return value(lambda x: [as_jax(part) for part in sa.linalg.slogdet(x)], x)

    def dense(x):
        return value(lambda x: jnp.linalg.slogdet(x.to_jax()), x)

    direction = jax.tree.map(jnp.ones_like, x)
    with sa.densify("error"):
        gradient = jax.jit(jax.grad(ours))(x)
        second = jax.jvp(jax.grad(ours), (x,), (direction,))[1]
        mapped = jax.vmap(jax.grad(ours))(jax.tree.map(lambda a: jnp.stack([a, 2 * a]), x))
    expected = jax.jvp(jax.grad(dense), (x,), (direction,))
    for got, further, batch, want, more in zip(*(t.blocks for t in (gradient, second, mapped, *expected)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(further, more, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(batch[0], want, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_derivatives_of_determinants_take_no_more_than_their_factors():
    count, size = 2000, 40
    blocks = [jax.ShapeDtypeStruct((k, size, size), float) for k in (count - 1, count, count - 1)]

    def logarithm(lower, diagonal, upper):
        return as_jax(sa.linalg.slogdet(sa.block_tridiagonal(lower, diagonal, upper)).logabsdet)

    memory = jax.jit(jax.grad(logarithm, (0, 1, 2))).lower(*blocks).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 30 * 3 * count * size**2 * 8


def test_in_banded_form(monkeypatch):
    monkeypatch.setattr(block_banded_solvers, "SMALLEST_OF_DETERMINANTS", 8)
    x = block_banded(20, 2, (-1, 0, 1))
    a = np.asarray(x.to_dense())
    with sa.densify("error"):
        q, r = sa.linalg.qr(x)
        elements = sa.linalg.selected_inverse(x)
    assert isinstance(q, sa.Householder) and isinstance(r, sa.Banded)
    np.testing.assert_allclose(np.asarray((q @ r.to_dense()).to_dense()), a, atol=1e-12)
    assert isinstance(elements, sa.BlockBanded) and elements.offsets == x.offsets
    kept = np.asarray(sa.BlockBanded([np.ones((k, 2, 2)) for k in (19, 20, 19)], (-1, 0, 1)).to_dense()) == 1
    np.testing.assert_allclose(np.asarray(elements.to_dense()), np.where(kept, np.linalg.inv(a), 0), atol=1e-12)


def test_small_systems_keep_their_structure_where_nothing_may_be_expanded(monkeypatch):
    """They are solved sooner as dense ones, but not under a policy that forbids it or warns of it."""
    monkeypatch.setattr(sparse_solvers, "SOLVED_AS_DENSE", 256)
    x = block_banded(6, 3, (-1, 0, 1))
    b, dense = normal(18, seed=9), np.asarray(x)
    for matrix in (x, sa.Sparse.from_dense(dense)):
        with sa.record() as log:
            sa.linalg.solve(matrix, b)
        assert log.densifications
        with sa.densify("error"):
            np.testing.assert_allclose(sa.linalg.solve(matrix, b), np.linalg.solve(dense, b), rtol=1e-10)
            np.testing.assert_allclose(sa.linalg.det(matrix), np.linalg.det(dense), rtol=1e-10)


@pytest.mark.costly
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("count, size", [(2, 4), (6, 3)])
def test_lu_factors(count, size, dtype):
    """In the blocks, with exchanges that stay within neighbouring block rows; nothing is dominant here."""
    for batch in ((), (2,)):
        shapes = [(*batch, count - abs(k), size, size) for k in (-1, 0, 1)]
        x = sa.BlockBanded([normal(*s, seed=i, dtype=dtype) for i, s in enumerate(shapes)], (-1, 0, 1))
        a, b = np.asarray(x), normal(*batch, count * size, 2, seed=5, dtype=dtype)
        with sa.densify("error"):
            factors = jax.jit(sa.linalg.lu_factor)(x)
            solutions = [sa.linalg.lu_solve(factors, b, trans=trans) for trans in "NTC"]
        assert isinstance(factors.lu, sa.BlockBanded) and factors.lu.offsets == (-1, 0, 1, 2)[: 2 + min(2, count - 1)]
        assert factors.piv.shape == (*batch, count * size)
        for got, matrix in zip(solutions, (a, a.mT, a.mT.conj()), strict=True):
            np.testing.assert_allclose(got, np.linalg.solve(matrix, b), rtol=1e-10, atol=1e-12)
        pivots = np.diagonal(np.asarray(factors.lu), 0, -2, -1)
        np.testing.assert_allclose(np.abs(np.prod(pivots, -1)), np.abs(np.linalg.det(a)), rtol=1e-10)


def test_lu_factors_of_block_diagonal_and_one_sided_matrices():
    for offsets in ((0, 1), (-1, 0)):
        x, b = block_banded(5, 3, offsets), normal(15)
        with sa.densify("error"):
            got = sa.linalg.lu_solve(sa.linalg.lu_factor(x), b)
        np.testing.assert_allclose(got, np.linalg.solve(np.asarray(x), b), rtol=1e-12)
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.lu_solve(sa.linalg.lu_factor(x * 0), b)
    assert np.all(np.isnan(jax.jit(lambda x: as_jax(sa.linalg.lu_solve(sa.linalg.lu_factor(x), b)))(x * 0)))


@pytest.mark.slow
def test_derivatives_by_lu_factors():
    x, b = block_banded(5, 2, (-1, 0, 1)), normal(10)

    def ours(x, b):
        return jnp.sum(as_jax(sa.linalg.lu_solve(sa.linalg.lu_factor(x), b, trans=1)) ** 2)

    def dense(x, b):
        return jnp.sum(jnp.linalg.solve(x.to_jax().T, b) ** 2)

    with sa.densify("error"):
        got, right = jax.grad(ours, (0, 1))(x, b)
        mapped = jax.vmap(jax.grad(ours), (None, 0))(x, jnp.stack([b, 2 * b]))
    want, expected = jax.grad(dense, (0, 1))(x, b)
    np.testing.assert_allclose(right, expected, rtol=1e-10)
    for g, h, m in zip(got.blocks, want.blocks, mapped.blocks, strict=True):
        np.testing.assert_allclose(g, h, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(m[1], 4 * h, rtol=1e-10, atol=1e-13)


@pytest.mark.slow
def test_spectra_of_large_blocks():
    """Of more diagonals than a program is written out for: LAPACK takes any number of them."""
    blocks = [normal(k, 20, 20, seed=k) for k in (15, 16)]
    x = sa.BlockBanded([blocks[0].mT, blocks[1] + blocks[1].mT, blocks[0]], (-1, 0, 1))
    values = np.linalg.eigvalsh(np.asarray(x))
    with sa.densify("error"):
        np.testing.assert_allclose(sa.linalg.eigvalsh(x), values, rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(sa.linalg.svdvals(x), np.sort(np.abs(values))[::-1], rtol=1e-10, atol=1e-11)
        assert int(sa.linalg.matrix_rank(x)) == 320
        np.testing.assert_allclose(sa.linalg.matrix_norm(x, ord=2), np.abs(values).max(), rtol=1e-12)
