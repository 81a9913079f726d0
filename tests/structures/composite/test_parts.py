"""Solvers of factored arrays, low-rank spectra, `Inverse`, `Block` and `Fourier`: against NumPy and SciPy on dense values."""

import re

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.linalg
from support import as_jax, dense

import structarrays as sa

N = 40


def check(actual, expected, kind=None, rtol=1e-9):
    expected = np.asarray(expected)
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    scale = np.max(np.abs(expected), initial=0)
    np.testing.assert_allclose(dense(actual), expected, rtol=rtol, atol=rtol * scale)
    if kind is not None:
        assert type(actual) is kind, type(actual)


def normal(rng, *shape, dtype=float):
    values = rng.normal(size=shape)
    return values + 1j * rng.normal(size=shape) if dtype is complex else values


def diagonal(rng, n=N, batch=(), dtype=float):
    return sa.Diagonal(normal(rng, *batch, n, dtype=dtype) + 5)


def tridiagonal(rng, n=N, batch=(), dtype=float):
    return sa.tridiagonal(*(normal(rng, *batch, m, dtype=dtype) + s for m, s in ((n - 1, 0), (n, 6), (n - 1, 0))))


def low_rank(rng, m=N, n=N, rank=2, batch=(), dtype=float):
    return sa.LowRank(normal(rng, *batch, m, rank, dtype=dtype), normal(rng, *batch, n, rank, dtype=dtype))


def columns_solved(matrix, right):
    """NumPy's solution; a vector is one right-hand side for all matrices."""
    if right.ndim > 1:
        return np.linalg.solve(matrix, right)
    return np.linalg.solve(matrix, np.broadcast_to(right[:, None], (*matrix.shape[:-1], 1)))[..., 0]


def same_derivatives(rng, make, leaves, rtol=1e-6):
    """First and second derivatives of a solution and a determinant, against those of the dense form."""
    right = jnp.asarray(normal(rng, make(leaves).shape[-1], 2))

    def value(leaves, structured):
        x = make(leaves)
        if structured:
            solution, log = sa.linalg.solve(x, right), as_jax(sa.linalg.slogdet(x).logabsdet)
        else:
            solution, log = jnp.linalg.solve(x.to_jax(), right), jnp.linalg.slogdet(x.to_jax())[1]
        return jnp.sum(solution**2 * right) + jnp.sum(log)

    direction = [jnp.asarray(normal(rng, *leaf.shape)) for leaf in leaves]

    def both(structured):
        gradient = jax.grad(lambda leaves: value(leaves, structured))
        return jax.jit(lambda leaves: jax.jvp(gradient, (leaves,), (direction,)))(leaves)

    for ours, theirs in zip(jax.tree.leaves(both(True)), jax.tree.leaves(both(False)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol * np.max(np.abs(theirs), initial=0))


def rebuilt(x):
    leaves, tree = jax.tree.flatten(x)
    return lambda leaves: jax.tree.unflatten(tree, leaves), leaves


# ---- sums -----------------------------------------------------------------------------------------------------------

BASES = {
    "Diagonal": diagonal,
    "Diagonal, batch": lambda rng, dtype: diagonal(rng, batch=(3,), dtype=dtype),
    "Identity": lambda rng, dtype: sa.Identity(N, 3.0 + 0 * dtype(0)),
    "Banded": tridiagonal,
    "Circulant": lambda rng, dtype: sa.Circulant(np.concatenate([[30], normal(rng, N - 1, dtype=dtype)])),
    "Permutation": lambda rng, dtype: sa.Permutation(rng.permutation(N), dtype=np.dtype(dtype)),
    "BlockDiagonal": lambda rng, dtype: sa.BlockDiagonal(normal(rng, N // 4, 4, 4, dtype=dtype) + 5 * np.eye(4)),
    "background": lambda rng, dtype: diagonal(rng, dtype=dtype) + 2.5,
    "Product": lambda rng, dtype: sa.Product(
        diagonal(rng, dtype=dtype), sa.Circulant(np.r_[30, normal(rng, N - 1, dtype=dtype)])
    ),
}
BASES = {name: (lambda rng, dtype, f=f: f(rng, dtype=dtype)) for name, f in BASES.items()}


@pytest.mark.costly
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("base", BASES)
def test_sums_with_a_term_of_low_rank(base, dtype, rng):
    x = sa.Sum(BASES[base](rng, dtype), low_rank(rng, dtype=dtype))
    matrix = dense(x)
    with sa.densify("error"):
        for right in (normal(rng, N), normal(rng, N, 3)):
            check(sa.linalg.solve(x, right), columns_solved(matrix, right).astype(matrix.dtype))
        sign, logabsdet = sa.linalg.slogdet(x)
        check(sa.linalg.det(x), np.linalg.det(matrix))
        inverse = sa.linalg.inv(x)
    check(sign, np.linalg.slogdet(matrix)[0])
    check(logabsdet, np.linalg.slogdet(matrix)[1])
    check(inverse, np.linalg.inv(matrix))
    assert type(inverse) is sa.Sum or base == "Banded"


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("base", ["Diagonal", "Banded", "Circulant", "background"])
def test_derivatives_of_sums(base, rng):
    same_derivatives(rng, *rebuilt(sa.Sum(BASES[base](rng, float), low_rank(rng))))


@pytest.mark.slow
def test_an_array_with_a_background_is_a_sum(rng):
    x = tridiagonal(rng, 200) + 1.5
    with sa.densify("error"):
        right = normal(rng, 200)
        check(sa.linalg.solve(x, right), np.linalg.solve(dense(x), right))
        check(sa.linalg.slogdet(x).logabsdet, np.linalg.slogdet(dense(x))[1])


@pytest.mark.slow
def test_a_background_beside_a_singular_matrix():
    """The second difference without boundary values is singular, and regular next to a constant."""
    off, diag = -np.ones(N - 1), np.r_[1, np.full(N - 2, 2.0), 1]
    x = sa.tridiagonal(off, diag, off) + 1.0
    a = np.diag(diag) + np.diag(off, 1) + np.diag(off, -1) + 1
    assert type(x) is sa.Banded
    check(sa.linalg.solve(x, np.ones(N)), np.linalg.solve(a, np.ones(N)))
    check(sa.linalg.det(x), np.linalg.det(a))
    for got, want in zip(sa.linalg.slogdet(x), np.linalg.slogdet(a), strict=True):
        check(got, want)


@pytest.mark.slow
def test_sums_under_jit_and_vmap(rng):
    x, right = sa.Sum(diagonal(rng, batch=(3,)), low_rank(rng, batch=(3,))), normal(rng, 3, N, 1)
    expected = np.linalg.solve(dense(x), right)
    np.testing.assert_allclose(jax.jit(lambda x, b: sa.linalg.solve(x, b))(x, right), expected, rtol=1e-9)
    np.testing.assert_allclose(jax.vmap(lambda x, b: sa.linalg.solve(x, b))(x, right), expected, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("small", [1e-4, 1e-9, 1e-14, 1e-30, 0.0])
def test_a_base_that_is_nearly_singular(small, rng):
    """The sum is well conditioned: numbers that are right, or NaN under `jit`."""
    diag = normal(rng, N) + 3
    diag[5] = small
    x, right = sa.Sum(sa.Diagonal(diag), low_rank(rng)), normal(rng, N)
    matrix = dense(x)
    expected = np.linalg.solve(matrix, right)
    check(sa.linalg.solve(x, right), expected, rtol=1e-8)
    check(sa.linalg.inv(x), np.linalg.inv(matrix), rtol=1e-8)
    check(sa.linalg.slogdet(x).logabsdet, np.linalg.slogdet(matrix)[1], rtol=1e-8)
    compiled = np.asarray(jax.jit(lambda x: as_jax(sa.linalg.solve(x, right)))(x))
    assert np.isnan(compiled).all() or np.allclose(compiled, expected, rtol=1e-8)
    log = float(jax.jit(lambda x: as_jax(sa.linalg.slogdet(x).logabsdet))(x))
    assert np.isnan(log) or np.isclose(log, np.linalg.slogdet(matrix)[1], rtol=1e-8)
    if small == 0:  # another entry replaces the zero, and the update takes it back
        with sa.densify("error"):
            check(sa.linalg.solve(x, right), expected, rtol=1e-8)


def test_nan_is_no_bad_pivot(rng):
    right = normal(rng, N)
    right[3] = np.nan
    assert np.isnan(dense(sa.linalg.solve(sa.Sum(diagonal(rng), low_rank(rng)), right))).all()


def test_single_precision(rng):
    x = sa.astype(sa.Sum(tridiagonal(rng, 200), low_rank(rng, 200, 200)), sa.float32)
    right = normal(rng, 200).astype(np.float32)
    with sa.densify("error"):
        solution = sa.linalg.solve(x, right)
    assert solution.dtype == np.float32
    np.testing.assert_allclose(dense(x).astype(float) @ dense(solution), right, atol=1e-4)


# ---- matrices of low rank -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("shape", [(9, 7, 4), (5, 30, 3), (6, 6, 1)])
def test_spectra_of_low_rank(shape, dtype, rng):
    m, n, rank = shape
    u, v = normal(rng, 2, m, rank, dtype=dtype), normal(rng, n, rank, dtype=dtype)
    u[..., -1] = 2 * u[..., 0]  # columns that depend on each other
    x = sa.LowRank(u, v)
    matrix = dense(x)
    with sa.densify("error"):
        check(sa.linalg.svdvals(x), np.linalg.svd(matrix)[1])
        check(sa.linalg.matrix_rank(x), np.linalg.matrix_rank(matrix))
        check(sa.linalg.pinv(x), np.linalg.pinv(matrix, rcond=1e-12))
        for order in (2, "nuc"):
            check(sa.linalg.matrix_norm(x, ord=order), np.linalg.norm(matrix, order, axis=(-2, -1)))
        if m == n:
            np.testing.assert_allclose(np.sum(dense(sa.linalg.eigvals(x)), -1), np.trace(matrix, axis1=-2, axis2=-1))


def test_elements_of_batches_at_indices_of_several_shapes(rng):
    x = low_rank(rng, 6, 5, batch=(2, 3))
    matrix = dense(x)
    for y, expected in (
        (x, matrix),
        (sa.Block([[x, None]] + [[x, x]]), np.block([[matrix, 0 * matrix], [matrix] * 2])),
    ):
        check(y[..., -1, 1:4], expected[..., -1, 1:4])
        check(y[..., np.array([1, 0]), :], expected[..., np.array([1, 0]), :])
        rows, columns = np.array([[1], [0]]), np.array([2, 0])
        check(y[..., rows, columns], expected[..., rows, columns])


def test_low_rank_is_singular(rng):
    x = low_rank(rng)
    for call in (lambda x: sa.linalg.solve(x, np.ones(N)), sa.linalg.inv):
        with pytest.raises(np.linalg.LinAlgError):
            call(x)
        assert np.isnan(jax.jit(lambda x, call=call: as_jax(call(x)))(x)).all()
    assert float(sa.linalg.det(x)) == 0
    assert [float(part) for part in sa.linalg.slogdet(x)] == [0, -np.inf]


@pytest.mark.parametrize("function", ["compress", "pinv", "svdvals"])
def test_derivatives_where_columns_depend_on_each_other(function, rng):
    u, v, du, dv = (normal(rng, m, 4) for m in (9, 7, 9, 7))
    u[:, 3], du[:, 3] = u[:, 0], du[:, 0]

    def truncated(matrix):
        left, s, right = np.linalg.svd(matrix, full_matrices=False)
        return (left[:, :2] * s[:2]) @ right[:2]

    ours, theirs = {
        "compress": (lambda x: sa.linalg.compress(x, rank=2), truncated),
        "pinv": (lambda x: sa.linalg.pinv(x, rtol=1e-9), lambda a: np.linalg.pinv(a, rcond=1e-9)),
        "svdvals": (lambda x: sa.linalg.svdvals(x)[:3], lambda a: np.linalg.svd(a)[1][:3]),
    }[function]
    _, tangent = jax.jvp(lambda u, v: as_jax(ours(sa.LowRank(u, v))), (jnp.asarray(u), v), (jnp.asarray(du), dv))
    step = 1e-6
    ahead, behind = (theirs((u + h * du) @ (v + h * dv).T) for h in (step, -step))
    np.testing.assert_allclose(tangent, (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-7)


def test_compress(rng):
    for x in (
        low_rank(rng, 30, 20, 5, batch=(2,)),
        sa.asarray(normal(rng, 6, 5)),
        low_rank(rng) + sa.Fill(1.0, (N, N)),
    ):
        result = sa.linalg.compress(x, rank=2)
        left, s, right = np.linalg.svd(dense(x), full_matrices=False)
        check(result, (left[..., :2] * s[..., None, :2]) @ right[..., :2, :], sa.LowRank)
        assert result.rank == 2
    assert sa.linalg.compress(low_rank(rng), rank=0).rank == 0
    with sa.densify("error"):
        sa.linalg.compress(sa.Product(diagonal(rng), low_rank(rng, N, 3, 3), low_rank(rng, 3, N, 3)), rank=1)


@pytest.mark.parametrize(
    ("rank", "error", "message"),
    [(-1, ValueError, "from 0 to 40"), (41, ValueError, "got 41"), (1.5, TypeError, "1.5")],
)
def test_bad_ranks(rank, error, message, rng):
    with pytest.raises(error, match=f"linalg.compress: rank must be .*{re.escape(message)}"):
        sa.linalg.compress(low_rank(rng), rank=rank)


# ---- products -------------------------------------------------------------------------------------------------------


@pytest.mark.costly
@pytest.mark.parametrize("batch", [(), (2,)])
def test_products_are_solved_factor_by_factor(batch, rng):
    x = sa.Product(diagonal(rng, batch=batch), sa.Circulant(np.r_[30, normal(rng, N - 1)]), tridiagonal(rng))
    matrix = dense(x)
    with sa.densify("error"):
        for right in (normal(rng, N), normal(rng, N, 3)):
            check(sa.linalg.solve(x, right), columns_solved(matrix, right))
        check(sa.linalg.slogdet(x).logabsdet, np.linalg.slogdet(matrix)[1])
        power = sa.linalg.matrix_power(x, 2)
        symmetric = x @ x.mT
    check(power, matrix @ matrix, sa.Product)
    check(symmetric, matrix @ np.swapaxes(matrix, -1, -2), sa.Product)
    check(sa.linalg.inv(x), np.linalg.inv(matrix))
    check(sa.linalg.det(x), np.linalg.det(matrix))


def test_products_through_a_narrow_place(rng):
    x = sa.Product(sa.Banded([np.ones(3)], (0,), (N, 3)), tridiagonal(rng, 3), sa.Banded([np.ones(3)], (0,), (3, N)))
    x = sa.Product(diagonal(rng), *getattr(x, "factors", (x,)), sa.Circulant(normal(rng, N)))
    matrix = dense(x)
    with sa.densify("error"):
        check(sa.linalg.svdvals(x), np.linalg.svd(matrix)[1])
        check(sa.linalg.matrix_norm(x), np.linalg.norm(matrix))
        check(sa.var(x, axis=0), matrix.var(0))
        assert float(sa.linalg.det(x)) == 0
        with pytest.raises(np.linalg.LinAlgError):
            sa.linalg.solve(x, np.ones(N))


def test_derivatives_of_products(rng):
    same_derivatives(rng, *rebuilt(sa.Product(diagonal(rng), sa.Circulant(np.r_[30, normal(rng, N - 1)]))))


# ---- Inverse --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize(
    "make",
    [
        tridiagonal,
        lambda rng: tridiagonal(rng, batch=(2,), dtype=complex),
        lambda rng: sa.Sum(diagonal(rng), low_rank(rng)),
    ],
)
def test_inverse(make, rng):
    a = make(rng)
    x, matrix = sa.Inverse(a), np.linalg.inv(dense(a))
    right, dtype = normal(rng, N, 3), matrix.dtype
    with sa.densify("error"):
        check(x @ right, matrix @ right)
        check(right.T @ x, right.T @ matrix)
        check(x @ right[:, 0], matrix @ right[:, 0])
        check(right[:, 0] @ x, right[:, 0] @ matrix)
        check(x.mT @ right, np.swapaxes(matrix, -1, -2) @ right)
        check(sa.conj(x) @ right, matrix.conj() @ right)
        check((-(2 * x) / 4) @ right, -0.5 * matrix @ right)
        check((x + sa.Identity(N)) @ right, matrix @ right + right)
        check((x @ x) @ right, matrix @ matrix @ right)
        check(sa.linalg.solve(x, right), np.linalg.solve(matrix, right).astype(dtype))
        check(sa.linalg.det(x), np.linalg.det(matrix))
        check(sa.linalg.slogdet(x).logabsdet, np.linalg.slogdet(matrix)[1])
        check(x[..., 3, 5], matrix[..., 3, 5])
        check(x[..., 3, :], matrix[..., 3, :])
        check(x[..., 2], matrix[..., 2])
        check(sa.linalg.diagonal(x), np.diagonal(matrix, axis1=-2, axis2=-1))
        check(sa.sum(x, axis=-1), matrix.sum(-1))
        assert type(sa.linalg.inv(x)) is type(a)
    check(x, matrix)
    check(x[..., 4:9, :], matrix[..., 4:9, :])
    check(sa.exp(x), np.exp(matrix))


def test_inv_of_a_large_banded_matrix(rng):
    a = tridiagonal(rng, 300)
    check(sa.linalg.inv(a), np.linalg.inv(dense(a)), sa.Inverse)
    x = sa.Sum(a, low_rank(rng, 300, 300))
    check(sa.linalg.inv(x), np.linalg.inv(dense(x)), sa.Sum)
    with pytest.raises(np.linalg.LinAlgError, match="linalg.inv"):
        sa.linalg.inv(sa.tridiagonal(np.zeros(299), np.r_[0, np.ones(299)], np.zeros(299)))


def test_inverse_of_an_inverse_and_bad_arguments(rng):
    a = tridiagonal(rng)
    assert type(sa.Inverse(sa.Inverse(a))) is sa.Banded
    assert sa.Inverse(np.eye(2, dtype=int)).dtype == np.float64
    with pytest.raises(ValueError, match=re.escape("a must be square in its last two dimensions, got shape (2, 3)")):
        sa.Inverse(np.ones((2, 3)))
    with pytest.raises(TypeError, match="a must have a numeric dtype"):
        sa.Inverse(np.ones((2, 2), bool))


def test_gradient_through_an_inverse():
    gradient = jax.grad(lambda d: as_jax(sa.sum(sa.Inverse(sa.Diagonal(d)) @ sa.ones(3))))(jnp.arange(1.0, 4.0))
    np.testing.assert_allclose(gradient, -1 / np.arange(1.0, 4.0) ** 2)


# ---- Block ----------------------------------------------------------------------------------------------------------


GRIDS = {
    "low rank beside": lambda rng: [
        [diagonal(rng, 20), low_rank(rng, 20, 40, 1)],
        [low_rank(rng, 40, 20, 1), tridiagonal(rng, 40)],
    ],
    "three": lambda rng: [
        [tridiagonal(rng, 20), diagonal(rng, 20), None],
        [diagonal(rng, 20), tridiagonal(rng, 20), diagonal(rng, 20)],
        [None, diagonal(rng, 20), sa.Circulant(np.r_[20, normal(rng, 19)])],
    ],
    "batch": lambda rng: [
        [diagonal(rng, 20, batch=(3,)), diagonal(rng, 20)],
        [diagonal(rng, 20), tridiagonal(rng, 20)],
    ],
    "saddle point": lambda rng: [[tridiagonal(rng, 40), normal(rng, 40, 2)], [normal(rng, 2, 40), None]],
    "triangular": lambda rng: [[tridiagonal(rng, 20), diagonal(rng, 20)], [None, tridiagonal(rng, 20)]],
    "complex": lambda rng: [
        [diagonal(rng, 20, dtype=complex), diagonal(rng, 20)],
        [tridiagonal(rng, 20), diagonal(rng, 20)],
    ],
    "no pivot": lambda rng: [[None, diagonal(rng, 20)], [tridiagonal(rng, 20), None]],
}


@pytest.mark.costly
@pytest.mark.parametrize("grid", GRIDS)
def test_functions_of_blocks(grid, rng):
    x = sa.Block(GRIDS[grid](rng))
    matrix, n = dense(x), x.shape[-1]
    right = normal(rng, n, 3)
    with sa.densify("error"):
        check(x @ right, matrix @ right)
        check(right.T @ x, right.T @ matrix)
        check(x @ right[:, 0], matrix @ right[:, 0])
        check(x.mT @ right, np.swapaxes(matrix, -1, -2) @ right)
        check((x + x) @ right, 2 * matrix @ right)
        check((x + sa.eye(n)) @ right, matrix @ right + right)
        check((x * x) @ right, matrix * matrix @ right)
        check((x @ x) @ right, matrix @ matrix @ right)
        check(x[..., 3:30, 1:] @ right[1:], matrix[..., 3:30, 1:] @ right[1:])
        check(sa.concat([x, 2 * x], axis=-1) @ np.concatenate([right, right]), 3 * matrix @ right)
        check(sa.concat([x, x], axis=-2) @ right, np.concatenate([matrix @ right] * 2, axis=-2))
        check(x[..., 3, 4], matrix[..., 3, 4])
        check(x[..., 21, :], matrix[..., 21, :])
        check(sa.linalg.diagonal(x, offset=21), np.diagonal(matrix, 21, -2, -1))
        check(sa.sum(x, axis=-1), matrix.sum(-1))
        check(sa.var(x, axis=-2), matrix.var(-2))
        check(sa.linalg.matrix_norm(x), np.linalg.norm(matrix, axis=(-2, -1)))
    check(x, matrix)
    rows = np.array([3, -1, 25, 0])
    check(x[..., rows, :], matrix[..., rows, :])
    check(x[..., rows], matrix[..., rows])
    check(x[..., ::-2, 1:], matrix[..., ::-2, 1:])


@pytest.mark.slow
def test_slices_of_blocks(rng):
    x = sa.Block([[diagonal(rng, 3), normal(rng, 3, 5), None], [None, normal(rng, 4, 5), tridiagonal(rng, 4)]])
    matrix = dense(x)
    for key in (np.s_[::-1], np.s_[::-2], np.s_[5:1:-1], np.s_[1:6:3], np.s_[6:0:-4], np.s_[2:2]):
        check(x[key], matrix[key])
        check(x[:, key], matrix[:, key])


@pytest.mark.costly
@pytest.mark.parametrize("grid", GRIDS)
def test_systems_of_blocks(grid, rng):
    x = sa.Block(GRIDS[grid](rng))
    matrix = dense(x)
    with sa.record() as log:
        for right in (normal(rng, x.shape[-1]), normal(rng, x.shape[-1], 3)):
            check(sa.linalg.solve(x, right), columns_solved(matrix, right).astype(matrix.dtype))
        check(sa.linalg.slogdet(x).logabsdet, np.linalg.slogdet(matrix)[1])
        check(sa.linalg.det(x), np.linalg.det(matrix))
    if grid in ("low rank beside", "batch", "saddle point", "triangular", "complex"):
        assert not log.densifications
    check(sa.linalg.inv(x), np.linalg.inv(matrix))


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("grid", ["three", "saddle point"])
def test_derivatives_of_blocks(grid, rng):
    same_derivatives(rng, *rebuilt(sa.Block(GRIDS[grid](rng))))


def test_a_singular_block_in_a_regular_matrix(rng):
    """Elimination fails, the dense form does not; a singular matrix raises."""
    x = sa.Block([[sa.Diagonal(np.r_[0, np.ones(19)]), diagonal(rng, 20)], [diagonal(rng, 20), tridiagonal(rng, 20)]])
    right = normal(rng, 40)
    check(sa.linalg.solve(x, right), np.linalg.solve(dense(x), right))
    check(sa.linalg.slogdet(x).logabsdet, np.linalg.slogdet(dense(x))[1])
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.solve(sa.Block([[sa.Identity(20), sa.Identity(20)], [sa.Identity(20), sa.Identity(20)]]), right)


def test_rectangular_empty_and_integer_blocks():
    x = sa.Block([[np.arange(6).reshape(2, 3), np.ones((2, 0), int)], [None, np.ones((1, 0), int)]])
    check(x, np.concatenate([np.arange(6).reshape(2, 3), np.zeros((1, 3), int)]))
    assert type(sa.Block([[sa.Identity(3)]])) is sa.Identity
    check(sa.astype(x, sa.float64), dense(x).astype(float))


@pytest.mark.parametrize(
    ("blocks", "error", "message"),
    [
        (3, TypeError, "blocks must be a list of rows, each a list of matrices, got int"),
        ([], ValueError, "blocks must have at least one row and one column"),
        ([[1.0]], ValueError, "blocks[0][0] must be a matrix or a stack of matrices, got shape ()"),
        ([[np.eye(2), np.eye(3)]], ValueError, "the blocks of row 0 must have the same number of rows"),
        ([[np.eye(2)], [np.ones((2, 3))]], ValueError, "the blocks of column 0 must have the same number of columns"),
        (
            [[np.eye(2)], [np.eye(2)] * 2],
            ValueError,
            "the rows of blocks must have the same number of blocks, got 1, 2",
        ),
        ([[np.eye(2), None], [None, None]], ValueError, "blocks[1][0] is None, and its row has no other block"),
        ([[np.eye(2, dtype=bool)]], TypeError, "blocks[0][0] must have a numeric dtype"),
    ],
)
def test_bad_blocks(blocks, error, message):
    with pytest.raises(error, match=re.escape(message)):
        sa.Block(blocks)


def test_concat_of_large_structured_matrices(rng):
    x, y = (sa.Toeplitz(normal(rng, 100), normal(rng, 100)) for _ in range(2))
    check(sa.concat([x, y]), np.concatenate([dense(x), dense(y)]), sa.Block)
    assert sa.concat([x, y, x], axis=-1).meta == (1, 3)


# ---- Fourier --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("conjugated", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 33])
def test_fourier(n, conjugated, rng):
    x, matrix = sa.Fourier(n), scipy.linalg.dft(n, scale="sqrtn")
    x, matrix = (sa.conj(x), matrix.conj()) if conjugated else (x, matrix)
    right = normal(rng, n, 3)
    with sa.densify("error"):
        check(x @ right, matrix @ right)
        check(right.T @ x, right.T @ matrix)
        check(x @ right[:, 0], matrix @ right[:, 0])
        check(x @ sa.conj(x), np.eye(n, dtype=complex), sa.Identity)
        check(x @ x, matrix @ matrix, sa.Permutation)
        check(sa.linalg.solve(x, right), matrix.conj() @ right)
        check(sa.linalg.inv(x), matrix.conj(), sa.Fourier)
        check(sa.linalg.det(x), np.linalg.det(matrix))
        check(sa.linalg.slogdet(x).sign, np.linalg.slogdet(matrix)[0])
        check(sa.sum(x, axis=0), matrix.sum(0))
        check(sa.linalg.matrix_norm(x), np.linalg.norm(matrix))
        check(x[0, :], matrix[0])
        check(x[n // 2, n - 1], matrix[n // 2, n - 1])
    check(x, matrix)
    check(2j * x, 2j * matrix)
    check(x.mT, matrix, sa.Fourier)
    eigenvalues = np.linalg.eigvals(matrix)
    for value in (1, -1, 1j, -1j):
        close = [np.sum(np.abs(v - value) < 1e-6) for v in (dense(sa.linalg.eigvals(x)), eigenvalues)]
        assert close[0] == close[1]


def test_fourier_batches_dtypes_and_bad_arguments():
    x = sa.broadcast_to(sa.Fourier(4, dtype=sa.complex64), (2, 4, 4))
    matrix = scipy.linalg.dft(4, scale="sqrtn").astype(np.complex64)
    check(x @ np.ones((4, 3), np.float32), np.broadcast_to(matrix @ np.ones((4, 3), np.float32), (2, 4, 3)), rtol=1e-5)
    assert sa.Fourier(0).to_dense().shape == (0, 0)
    for arguments, error, message in [
        (dict(n=-1), ValueError, "n must not be negative, got -1"),
        (dict(n=2.5), TypeError, "n must be an integer, got 2.5"),
        (dict(n=2, dtype=sa.float64), ValueError, "dtype must be complex, got float64"),
    ]:
        with pytest.raises(error, match=re.escape(message)):
            sa.Fourier(**arguments)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_an_element_of_a_fourier_matrix_is_one_number(n):
    """However it is asked for."""
    for x in (sa.Fourier(n), sa.conj(sa.Fourier(n))):
        a = dense(x)
        exact = [
            [complex(mpmath.expjpi(mpmath.mpf(2 * i * j if x.conjugated else -2 * i * j) / n)) for j in range(n)]
            for i in range(n)
        ]
        np.testing.assert_allclose(a, np.array(exact) / np.sqrt(n), rtol=0, atol=1e-15)
        for key in (
            np.s_[[0, n - 1], :],
            np.s_[:, [n - 1]],
            np.s_[n - 1 :],
            np.s_[:, ::-1],
            np.s_[n - 1],
            np.s_[[n - 1], [n - 1]],
        ):
            np.testing.assert_array_equal(dense(x[key]), a[key])
        np.testing.assert_array_equal(dense(sa.repeat(x, 2, axis=0)), np.repeat(a, 2, axis=0))


def test_a_large_fourier_matrix_is_factorised_like_any_other(rng):
    """LAPACK's routines want their matrices by columns; XLA's Fourier transforms on CPUs know rows alone."""
    n = 300
    F, matrix, b = sa.Fourier(n), scipy.linalg.dft(n, scale="sqrtn"), normal(rng, n, n)
    check(sa.linalg.eigvalsh(F), np.linalg.eigvalsh((matrix + matrix.conj().T) / 2))
    definite = jax.jit(lambda F, b: sa.linalg.cholesky(F @ (b @ b.mT) @ sa.conj(F) + sa.eye(n)))(F, sa.asarray(b))
    check(definite, np.linalg.cholesky(matrix @ (b @ b.T) @ matrix.conj() + np.eye(n)))
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        sa.linalg.cholesky(F)


@pytest.mark.parametrize("n", [1, 6, 9])
def test_eigenvectors_of_circulant_matrices(n, rng):
    x = sa.Circulant(normal(rng, 2, n))
    values, vectors = sa.linalg.eig(x)
    check(x @ vectors, dense(vectors) * dense(values)[:, None, :])
    assert type(vectors) is sa.Fourier
    c = normal(rng, 2, n, dtype=complex)
    x = sa.Circulant((c + np.roll(c[:, ::-1], 1, axis=-1).conj()) / 2)
    values, vectors = sa.linalg.eigh(x)
    check(values, np.linalg.eigvalsh(dense(x)))
    check(x @ vectors, dense(vectors) * dense(values)[:, None, :])


# ---- determinants out of range ----------------------------------------------------------------------------------------

SCALE = 1e10


def far_from_one():
    """Arrays with parts whose determinants multiply to no floating-point number on the way to one of moderate size."""
    rng = np.random.default_rng(5)
    a, b = (rng.normal(size=(10, 10)) for _ in range(2))
    c, d = rng.normal(size=(25, 25)), rng.uniform(1, 2, size=25)
    scales, below = (SCALE, SCALE, 1 / SCALE, 1 / SCALE), sa.Diagonal(d)
    half = np.repeat([SCALE**2, SCALE**-2], 20) * np.tile(d[:20], 2)
    large = np.r_[np.full(24, 1e-20), 1e250]
    return {
        "Diagonal": (sa.Diagonal(half), np.diag(half)),
        "BlockDiagonal": (
            sa.BlockDiagonal([number * c for number in scales]),
            scipy.linalg.block_diag(*(number * c for number in scales)),
        ),
        "Kronecker": (sa.Kronecker(SCALE * a, b / SCALE), np.kron(a, b)),
        "Product": (
            sa.Product(*2 * [sa.Diagonal(SCALE * d), sa.Circulant(SCALE * c[0])], sa.Triangular(np.tril(c) / SCALE**4)),
            np.linalg.matrix_power(d[:, None] * scipy.linalg.circulant(c[0]), 2) @ np.tril(c),
        ),
        "Block": (
            sa.Block(
                [
                    [sa.Diagonal(scales[i] * d) if i == j else below if i == j + 1 else None for j in range(4)]
                    for i in range(4)
                ]
            ),
            np.diag(np.outer(scales, d).ravel()) + np.diag(np.tile(d, 3), -25),
        ),
        "Inverse": (sa.Inverse(sa.Diagonal(large)), np.diag(1 / large)),
    }


@pytest.mark.parametrize("kind", far_from_one())
def test_determinants_with_parts_out_of_range(kind):
    x, a = far_from_one()[kind]
    sign, logabsdet = np.linalg.slogdet(a)
    want = sign * np.exp(logabsdet)
    assert 0 < abs(want) < np.inf
    np.testing.assert_allclose(float(sa.linalg.det(x)), want, rtol=1e-9)
    # The derivative of a determinant by a number in front of the matrix.
    derivative = jax.jit(jax.grad(lambda t: as_jax(sa.linalg.det(sa.asarray(t) * x))))(1.0)
    np.testing.assert_allclose(derivative, want * x.shape[-1], rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "want"),
    [
        (lambda a: sa.Product(sa.Dense(a), sa.Diagonal([1.0, 5.0, 7.0])), np.diag([0, 0, 6 * 35.0])),
        (lambda a: sa.Kronecker(a, sa.Dense(jnp.asarray([[2.0]]))), np.diag([0, 0, 6 * 8.0])),
        (lambda a: sa.Diagonal(jnp.diagonal(a)), np.diag([0, 0, 6.0])),
    ],
)
def test_derivatives_of_determinants_of_singular_parts(make, want):
    a = jnp.diag(jnp.asarray([2.0, 3.0, 0.0]))
    assert float(sa.linalg.det(make(a))) == 0
    np.testing.assert_allclose(jax.grad(lambda a: as_jax(sa.linalg.det(make(a))))(a), want, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 300])
def test_an_element_of_a_fourier_matrix_is_that_of_its_dense_form(n):
    """The same number to the last bit, up to the size that has a table."""
    F = sa.Fourier(n)
    a = np.asarray(F)
    np.testing.assert_allclose(a, scipy.linalg.dft(n, scale="sqrtn"), atol=1e-13)
    for i, j in ((0, 0), (n - 1, n - 1), (n // 2, n - 1)):
        if n <= 256:
            assert complex(F[i, j]) == a[i, j] == complex(sa.conj(F)[i, j]).conjugate()
        np.testing.assert_allclose(complex(F[i, j]), a[i, j], atol=1e-13)


def test_blocks_take_up_updates_that_are_dense(rng):
    """The low rank of an update pays for a block, and not for the block's own blocks."""
    large, small = (sa.Diagonal(size + rng.random(20)) for size in (50, 0))
    ring = sa.Block([[large, small], [small, large]])

    def low_rank(m, n, r):
        return sa.LowRank(0.1 * rng.normal(size=(m, r)), 0.1 * rng.normal(size=(n, r)))

    inner = sa.Block([[ring, low_rank(40, 360, 2)], [low_rank(360, 40, 2), sa.Diagonal(50 + rng.random(360))]])
    outer = sa.Block([[sa.Diagonal(50 + rng.random(600)), low_rank(600, 400, 20)], [low_rank(400, 600, 20), inner]])
    b = rng.normal(size=1000)
    np.testing.assert_allclose(dense(sa.linalg.solve(outer, b)), np.linalg.solve(dense(outer), b), rtol=1e-10)
