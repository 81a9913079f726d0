"""Kronecker products with banded or sparse factors next to arrays that store entries, compared with NumPy and SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from support import as_jax

import structarrays as sa


def definite(rng, n, dtype=float):
    x = rng.standard_normal((n, n)).astype(dtype)
    if dtype is complex:
        x += 1j * rng.standard_normal((n, n))
    return x @ x.conj().T + n * np.eye(n)


def second_difference(n):
    return sa.tridiagonal(-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1))


def sparse(rng, n):
    dense = np.where(rng.random((n, n)) < 0.03, rng.standard_normal((n, n)), 0) + 4 * np.eye(n)
    return sa.interop.scipy.from_sparse(scipy.sparse.csr_array(dense)), dense


def matrix(x):
    """The dense form by NumPy's `kron`, of Kronecker products and sums too."""
    if isinstance(x, sa.Kronecker):
        return _product(map(matrix, x.factors))
    if isinstance(x, sa.KroneckerSum):
        sizes = [f.shape[-1] for f in x.factors]
        eyes = [np.eye(n) for n in sizes]
        return sum(_product([*eyes[:i], matrix(f), *eyes[i + 1 :]]) for i, f in enumerate(x.factors))
    return np.asarray(x.to_jax() if isinstance(x, sa.Array) else x)


def _product(factors):
    result = np.ones((1, 1))
    for factor in factors:
        result = np.kron(result, factor)
    return result


def terms(rng):
    """For each name the terms of a sum, of which no rule for sums of Kronecker products solves linear systems."""
    varying = sa.Diagonal(rng.uniform(1, 2, 600))
    u = rng.standard_normal((600, 3))
    s, _ = sparse(rng, 100)
    return {
        "identity and dense": [sa.Kronecker(sa.eye(30), definite(rng, 20)), varying],
        "diagonal and dense": [sa.Kronecker(sa.Diagonal(rng.uniform(1, 2, 30)), definite(rng, 20)), varying],
        "three factors": [sa.Kronecker(sa.eye(30), definite(rng, 4), definite(rng, 5)), varying],
        "two leading factors": [sa.Kronecker(sa.eye(6), sa.eye(5), definite(rng, 20)), varying],
        "banded and dense": [sa.Kronecker(second_difference(60), definite(rng, 10)), 100 * varying],
        "dense and identity": [sa.Kronecker(definite(rng, 10), sa.eye(60)), 100 * varying],
        "grid of two dimensions": [sa.KroneckerSum(second_difference(20), second_difference(30)), varying],
        "grid of three dimensions": [
            sa.KroneckerSum(second_difference(10), second_difference(10), second_difference(6)),
            varying,
        ],
        "narrow Toeplitz": [sa.Kronecker(sa.eye(30), sa.Toeplitz([4.0, -1.0], [4.0, -1.0], shape=(20, 20))), varying],
        "grid of Toeplitz matrices": [
            sa.KroneckerSum(*(sa.Toeplitz([2.0, -1.0], [2.0, -1.0], shape=(n, n)) for n in (20, 30))),
            varying,
        ],
        "dense and narrow Toeplitz": [
            sa.Kronecker(definite(rng, 6), sa.Toeplitz([4.0, -1.0], [4.0, -1.0], shape=(100, 100))),
            100 * varying,
        ],
        "sum with a sparse factor": [sa.KroneckerSum(s, sa.eye(6)), varying],
        "two bands": [sa.Kronecker(sa.eye(20), second_difference(30)), second_difference(600)],
        "sum of dense factors": [sa.KroneckerSum(definite(rng, 20), definite(rng, 30)), second_difference(600)],
        "low-rank term": [sa.Kronecker(sa.eye(30), definite(rng, 20)), varying, sa.LowRank(u, u)],
        "sparse factor": [sa.Kronecker(s, sa.eye(6)), varying],
        "sparse and dense factors": [
            sa.Kronecker(s, definite(rng, 6)),
            sa.Kronecker(sa.Diagonal(rng.uniform(20, 30, 100)), definite(rng, 6)),
        ],
        "blocks of another size": [
            sa.Kronecker(sa.eye(30), definite(rng, 20)),
            sa.BlockDiagonal(np.stack([definite(rng, 10) for _ in range(60)])),
        ],
        "complex": [sa.Kronecker(sa.eye(30), definite(rng, 20, complex)), varying],
        "three products": [
            sa.Kronecker(sa.eye(30), definite(rng, 20)),
            sa.Kronecker(second_difference(30), np.eye(20) + 0.1),
            sa.Kronecker(sa.Diagonal(rng.uniform(1, 2, 30)), definite(rng, 20)),
        ],
    }


NAMES = list(terms(np.random.default_rng(0)))
FUNCTIONS = {
    "solve": (lambda a: sa.linalg.solve(a, jnp.ones(600)), lambda a: np.linalg.solve(a, np.ones(600))),
    "slogdet": (lambda a: sa.linalg.slogdet(a)[1], lambda a: np.linalg.slogdet(a)[1]),
    "inv": (lambda a: sa.linalg.inv(a) @ jnp.ones(600), lambda a: np.linalg.inv(a) @ np.ones(600)),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_sums_with_arrays_that_store_entries(rng, name, function):
    parts = terms(rng)[name]
    dense = sum(map(matrix, parts))
    run, by_numpy = FUNCTIONS[function]
    expected = by_numpy(dense)
    with sa.densify("error"):
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        for f in (run, jax.jit(run)):
            np.testing.assert_allclose(as_jax(f(total)), expected, rtol=1e-10, atol=1e-12 * np.abs(expected).max())


@pytest.mark.costly
@pytest.mark.parametrize("name", ["identity and dense", "banded and dense", "grid of two dimensions", "complex"])
def test_factorizations_of_sums(rng, name):
    x, y = terms(rng)[name]
    dense = matrix(x) + matrix(y)
    with sa.densify("error"):
        total = x + y
        factor = as_jax(sa.linalg.cholesky(total))
        np.testing.assert_allclose(factor, np.linalg.cholesky(dense), rtol=0, atol=1e-12 * np.abs(dense).max())
        if name != "banded and dense":  # block-banded matrices have no eigenvalues of their own
            values = as_jax(sa.linalg.eigvalsh(total))
            np.testing.assert_allclose(values, np.linalg.eigvalsh(dense), rtol=1e-11)
        selected = sa.linalg.diagonal(sa.linalg.selected_inverse(total))
        np.testing.assert_allclose(as_jax(selected), np.diag(np.linalg.inv(dense)), rtol=1e-10)


def structures(rng):
    block = rng.standard_normal((2, 2))
    return {
        "dense blocks": sa.Kronecker(sa.eye(12), block),
        "scaled blocks": sa.Kronecker(sa.Diagonal(rng.uniform(1, 2, 12)), block),
        "bands": sa.Kronecker(sa.eye(6), second_difference(4)),
        "far bands": sa.Kronecker(second_difference(6), sa.eye(4)),
    }


def others(rng):
    s, _ = sparse(rng, 24)
    return {
        "diagonal": sa.Diagonal(rng.uniform(1, 2, 24)),
        "banded": second_difference(24),
        "block diagonal": sa.BlockDiagonal(rng.standard_normal((12, 2, 2))),
        "block banded": sa.block_tridiagonal(*(rng.standard_normal((n, 2, 2)) for n in (11, 12, 11))),
        "sparse": s,
    }


CLASSES = {
    "dense blocks": {
        "diagonal": (sa.BlockDiagonal, sa.BlockDiagonal),
        "block diagonal": (sa.BlockDiagonal, sa.BlockDiagonal),
        "block banded": (sa.BlockBanded, sa.Product),
        "banded": (sa.Sum, sa.Product),
        "sparse": (sa.Sum, sa.Product),
    },
    "bands": {
        "diagonal": (sa.Banded, sa.Product),
        "block diagonal": (sa.BlockBanded, sa.Product),
        "block banded": (sa.BlockBanded, sa.Product),
        "banded": (sa.Banded, sa.Product),
        "sparse": (sa.Sum, sa.Product),
    },
}
CLASSES["scaled blocks"] = CLASSES["dense blocks"]
CLASSES["far bands"] = CLASSES["bands"]


@pytest.mark.parametrize("other", ["diagonal", "banded", "block diagonal", "block banded", "sparse"])
@pytest.mark.parametrize("name", ["dense blocks", "scaled blocks", "bands", "far bands"])
def test_classes_of_results(rng, name, other):
    """Sums have one structure, if products with it take no longer than with both terms; products, if they are block diagonal."""
    x, y = structures(rng)[name], others(rng)[other]
    a, b = matrix(x), matrix(y)
    of_sum, of_product = CLASSES[name][other]
    with sa.densify("error"):
        sums = [(x + y, a + b, of_sum), (y - x, b - a, of_sum)]
        for result, expected, kind in (*sums, (x @ y, a @ b, of_product), (y @ x, b @ a, of_product)):
            assert type(result) is kind
            np.testing.assert_allclose(as_jax(result), expected, rtol=0, atol=1e-13)


@pytest.mark.slow
def test_products_of_bands_and_blocks_are_solved(rng):
    """Products stay factors until a linear system needs them."""
    t = second_difference(600)
    k = sa.Kronecker(sa.eye(100), definite(rng, 6))
    dense = matrix(t) @ matrix(k) @ matrix(t) + np.eye(600)
    with sa.densify("error"):
        x = t @ k @ t + sa.eye(600)
        assert isinstance(x, sa.Sum)
        for solve in (sa.linalg.solve, jax.jit(sa.linalg.solve)):
            np.testing.assert_allclose(as_jax(solve(x, np.ones(600))), np.linalg.solve(dense, np.ones(600)), rtol=1e-9)


def test_large_blocks_are_not_repeated(rng):
    """A sum that would store many times as much as its terms keeps them."""
    x = sa.Kronecker(sa.eye(1000), definite(rng, 50)) + sa.Diagonal(rng.uniform(1, 2, 50_000))
    assert isinstance(x, sa.Sum)
    assert x.nbytes < 500_000
    product = x.terms[1] @ sa.Diagonal(rng.uniform(1, 2, 50_000))
    assert isinstance(product, sa.Product)


def test_products_do_not_repeat_large_blocks(rng):
    """A product that would store many times as much as its factors keeps them."""
    k = sa.Kronecker(sa.eye(100), definite(rng, 50))
    many = sa.Diagonal(rng.uniform(1, 2, (60, 5000)))
    band = sa.Banded([np.ones(5000 - abs(i)) for i in (-400, 0, 400)], (-400, 0, 400), (5000, 5000))
    s, _ = sparse(rng, 500)
    s = sa.Sparse(s.data, s.coords, (5000, 5000))
    for other in (many, band, s):
        for x in (other @ k, k @ other, other + k):
            assert x.nbytes < 3 * (other.nbytes + k.nbytes), type(x)


def test_padded_sparse_factors(rng):
    """Slices under `jit` have padding."""
    s, dense = sparse(rng, 60)
    diagonal = np.linspace(1, 2, 240)

    @jax.jit
    def solution(s):
        return as_jax(sa.linalg.solve(sa.Kronecker(s[10:50, 10:50], sa.eye(6)) + sa.Diagonal(diagonal), np.ones(240)))

    expected = np.linalg.solve(np.kron(dense[10:50, 10:50], np.eye(6)) + np.diag(diagonal), np.ones(240))
    with sa.densify("error"):
        np.testing.assert_allclose(solution(s), expected, rtol=1e-11)


def test_nan_outside_of_the_blocks(rng):
    """Zeros that are factors do not absorb NaN if `strong_zeros` is off."""
    block = np.array([[1.0, np.nan], [np.inf, 2.0]])
    x, diagonal = sa.Kronecker(sa.eye(12), block), sa.Diagonal(np.ones(24))
    with np.errstate(invalid="ignore"), sa.strong_zeros(False):
        expected = np.kron(np.eye(12), block) + np.eye(24)
        np.testing.assert_array_equal(as_jax(x + diagonal), expected)


def test_conditions_are_not_recorded(rng):
    x = sa.Kronecker(sa.eye(30), definite(rng, 20)) + sa.Diagonal(rng.uniform(1, 2, 600))
    with sa.record() as log:
        sa.linalg.solve(x, jnp.ones(600))
    assert [event.function for event in log.events if event.depth == 0] == ["linalg.solve"]


@pytest.mark.parametrize("diagonal_first", [True, False])
def test_symbolic_sizes_keep_the_factors(diagonal_first):
    """Products of symbolic sizes have no other form."""

    def product(diagonal, v):
        factors = (sa.Diagonal(diagonal), jnp.ones((3, 3)))
        x = sa.Kronecker(*factors) if diagonal_first else sa.Kronecker(*factors[::-1])
        return as_jax((x + sa.Diagonal(v)) @ v + sa.Diagonal(v) @ (x @ v))

    (n,) = jax.export.symbolic_shape("n")
    shapes = [jax.ShapeDtypeStruct((n,), float), jax.ShapeDtypeStruct((3 * n,), float)]
    exported = jax.export.export(jax.jit(product))(*shapes)
    diagonal, v = np.linspace(1, 2, 7), np.linspace(-1, 1, 21)
    dense = np.kron(*(np.diag(diagonal), np.ones((3, 3)))[:: 1 if diagonal_first else -1])
    np.testing.assert_allclose(exported.call(diagonal, v), (dense + np.diag(v)) @ v + v * (dense @ v), atol=1e-12)


def test_positions_beyond_32_bits():
    """Without 64-bit integers, there is no sparse form of more rows than 32-bit integers count."""
    with jax.enable_x64(False):
        k = 50_000
        s = sa.Sparse(np.ones(2, np.float32), (np.array([0, k - 1]), np.array([1, k - 1])), (k, k))
        corner = sa.Banded([np.ones(1, np.float32)], (k * k - 1,), (k * k, k * k))
        x = sa.Kronecker(s, s)
        for result in (x + corner, x @ corner):
            assert isinstance(result, sa.Sum | sa.Product)


def test_multiples_of_the_identity_keep_the_product(rng):
    """The factors solve these systems, without the repeated blocks."""
    x = sa.Kronecker(sa.eye(1000), sa.Symmetric(definite(rng, 3)))
    assert isinstance(x + 0.1 * sa.eye(3000), sa.Sum)


def test_a_million_rows(rng):
    blocks, diagonal, b = definite(rng, 10), rng.uniform(1, 2, (100_000, 10)), rng.standard_normal((100_000, 10))
    with sa.densify("error"):
        x = as_jax(sa.linalg.solve(sa.Kronecker(sa.eye(100_000), blocks) + sa.Diagonal(diagonal.ravel()), b.ravel()))
    expected = np.linalg.solve(blocks + diagonal[:, :, None] * np.eye(10), b[..., None])
    np.testing.assert_allclose(x, expected.ravel(), rtol=1e-11, atol=1e-14)


def test_stacks(rng):
    blocks, diagonal = np.stack([definite(rng, 4) for _ in range(3)]), rng.uniform(1, 2, (3, 400))
    b = rng.standard_normal((3, 400))
    dense = np.stack([np.kron(np.eye(100), a) + np.diag(d) for a, d in zip(blocks, diagonal, strict=True)])
    expected = np.linalg.solve(dense, b[..., None])[..., 0]

    def solution(blocks, diagonal, b):
        return as_jax(sa.linalg.solve(sa.Kronecker(sa.eye(100), blocks) + sa.Diagonal(diagonal), b[..., None]))

    with sa.densify("error"):
        np.testing.assert_allclose(solution(blocks, diagonal, b)[..., 0], expected, rtol=1e-11)
        np.testing.assert_allclose(jax.vmap(solution)(blocks, diagonal, b)[..., 0], expected, rtol=1e-11)


def test_singular_sums(rng):
    block = np.diag([1.0, 2.0, -1.0])
    x = sa.Kronecker(sa.eye(200), block) + sa.Diagonal(np.tile([1.0, 1.0, 1.0], 200))
    with sa.densify("error"):
        with pytest.raises(np.linalg.LinAlgError):
            sa.linalg.solve(x, jnp.ones(600))
        assert np.isnan(as_jax(jax.jit(sa.linalg.solve)(x, jnp.ones(600)))).any()


# ---- mixed models: groups with the same covariance of their effects --------------------------------------------------


def mixed_model(rng, groups=80, repeats=5):
    """The design of random intercepts and slopes, in order and shuffled, and the data."""
    slopes = rng.standard_normal((groups, repeats))
    blocks = np.stack([np.ones_like(slopes), slopes], axis=-1)
    design = scipy.sparse.block_diag(list(blocks), format="csr")
    shuffled = design[rng.permutation(groups * repeats)]
    return blocks, design.toarray(), shuffled, rng.standard_normal(groups * repeats)


@pytest.mark.costly
@pytest.mark.parametrize("kind", ["block diagonal", "sparse"])
def test_covariance_of_a_mixed_model(rng, kind):
    blocks, dense, shuffled, y = mixed_model(rng)
    n, groups = len(y), len(blocks)
    z = sa.BlockDiagonal(blocks) if kind == "block diagonal" else sa.interop.scipy.from_sparse(shuffled)
    dense = dense if kind == "block diagonal" else shuffled.toarray()

    def likelihood(g):
        v = z @ sa.Kronecker(sa.eye(groups), g) @ z.mT + 0.5 * sa.eye(n)
        return as_jax(sa.linalg.solve(v, y)) @ y + as_jax(sa.linalg.slogdet(v)[1])

    def by_jax(g):
        v = dense @ jnp.kron(jnp.eye(groups), g) @ dense.T + 0.5 * jnp.eye(n)
        return jnp.linalg.solve(v, y) @ y + jnp.linalg.slogdet(v)[1]

    g = jnp.array([[1.0, 0.2], [0.2, 0.5]])
    with sa.densify("error"):
        for f in (likelihood, jax.jit(likelihood)):
            np.testing.assert_allclose(f(g), by_jax(g), rtol=1e-11)
            np.testing.assert_allclose(jax.grad(f)(g), jax.grad(by_jax)(g), rtol=1e-9)


def test_equations_of_a_mixed_model(rng):
    """Henderson's equations, a sparse matrix plus a Kronecker product."""
    _, _, design, y = mixed_model(rng)
    z = sa.interop.scipy.from_sparse(design)
    g = np.array([[1.0, 0.2], [0.2, 0.5]])
    groups = design.shape[1] // 2
    with sa.densify("error"):
        left = z.mT @ z + sa.Kronecker(sa.eye(groups), np.linalg.inv(g))
        effects = as_jax(sa.linalg.solve(left, z.mT @ y))
    dense = design.toarray()
    expected = np.linalg.solve(dense.T @ dense + np.kron(np.eye(groups), np.linalg.inv(g)), dense.T @ y)
    np.testing.assert_allclose(effects, expected, rtol=1e-10)


def test_potential_on_a_grid(rng):
    """A Schrödinger operator: the Laplacian of a grid plus a potential, with its derivative by the potential."""
    laplacian = sa.KroneckerSum(second_difference(20), second_difference(25))
    dense, b = matrix(laplacian), rng.standard_normal(500)

    def energy(potential):
        return as_jax(sa.linalg.solve(laplacian + sa.Diagonal(potential), b)) @ b

    potential = jnp.asarray(rng.uniform(0, 2, 500))
    with sa.densify("error"):
        gradient = jax.jit(jax.grad(energy))(potential)
    x = np.linalg.solve(dense + np.diag(potential), b)
    np.testing.assert_allclose(gradient, -(x**2), rtol=1e-9, atol=1e-12)


HARD = {
    "smooth and nearly singular": lambda k, n: (k, np.full(n, 1e-12)),
    "constant": lambda k, n: (np.ones_like(k), np.full(n, 1e-9)),
    "alternating signs": lambda k, n: (np.eye(len(k)), np.tile([1.0, -0.999999], n // 2)),
    "tiny": lambda k, n: (1e-150 * (k + np.eye(len(k))), np.full(n, 1e-150)),
    "huge": lambda k, n: (1e150 * (k + np.eye(len(k))), np.full(n, 1e150)),
    "graded": lambda k, n: (k + np.eye(len(k)), 10.0 ** -np.linspace(0, 14, n)),
}


@pytest.mark.parametrize("name", HARD)
def test_hard_inputs(name):
    """The backward errors of solutions are at the level of rounding, and determinants agree with NumPy's."""
    points = np.linspace(0, 1, 12)
    block, diagonal = HARD[name](np.exp(-20 * (points[:, None] - points) ** 2), 480)
    x = sa.Kronecker(sa.eye(40), block) + sa.Diagonal(diagonal)
    dense = np.kron(np.eye(40), block) + np.diag(diagonal)
    for b in (np.ones(480), np.tile([1.0, -1.0], 240), np.eye(480)[5]):
        for solve in (sa.linalg.solve, jax.jit(sa.linalg.solve)):
            solution = as_jax(solve(x, b))
            scale = np.abs(dense).max() * np.abs(solution).max()
            assert np.abs(dense @ solution - b).max() < 1e-14 * scale
    np.testing.assert_allclose(as_jax(sa.linalg.slogdet(x)[1]), np.linalg.slogdet(dense)[1], rtol=1e-9)


# ---- rectangular banded factors ----------------------------------------------------------------------------------------


def difference(n, kind="banded"):
    """Differences of n numbers and zeros at both ends, (n + 1, n)."""
    if kind == "Toeplitz":
        return sa.Toeplitz([1.0, -1.0], [1.0], shape=(n + 1, n))
    return sa.Banded([np.ones(n), -np.ones(n)], (0, -1), (n + 1, n))


def dense_difference(n):
    return np.eye(n + 1, n) - np.eye(n + 1, n, -1)


def flows(sizes, kind="banded"):
    """The gradient along each axis of a grid, and its dense form."""
    for axis, _ in enumerate(sizes):
        parts = [difference(n, kind) if i == axis else sa.eye(n) for i, n in enumerate(sizes)]
        dense = [dense_difference(n) if i == axis else np.eye(n) for i, n in enumerate(sizes)]
        yield sa.Kronecker(*parts), _product(dense)


def divergence(gradients, weights):
    return sum(g.mT @ sa.Diagonal(w) @ g for g, w in zip(gradients, weights, strict=True))


@pytest.mark.parametrize("kind", ["banded", "Toeplitz"])
@pytest.mark.parametrize("sizes", [(18, 17), (7, 6, 8)], ids=str)
def test_weighted_gradients_on_a_grid(rng, sizes, kind):
    """``Gᵀ W G`` with rectangular differences, as finite volumes and images have it."""
    gradients, dense = zip(*flows(sizes, kind), strict=True)
    weights = [jnp.asarray(rng.uniform(1, 2, len(g))) for g in dense]
    rows = int(np.prod(sizes))
    b = np.linspace(-1, 1, rows)

    def matrix(weights):
        return divergence(gradients, weights)

    def by_numpy(weights):
        return sum(g.T @ (np.asarray(w)[:, None] * g) for g, w in zip(dense, weights, strict=True))

    expected = by_numpy(weights)
    with sa.densify("error"):
        for run in (lambda f: f, jax.jit):
            solution = run(lambda w: sa.linalg.solve(matrix(w), jnp.asarray(b)))(weights)
            np.testing.assert_allclose(as_jax(solution), np.linalg.solve(expected, b), rtol=1e-9, atol=1e-12)
            logabsdet = run(lambda w: sa.linalg.slogdet(matrix(w)).logabsdet)(weights)
            np.testing.assert_allclose(as_jax(logabsdet), np.linalg.slogdet(expected)[1], rtol=1e-12)
        found = jax.jit(jax.grad(lambda w: as_jax(sa.linalg.slogdet(matrix(w)).logabsdet)))(weights)
    inverse = np.linalg.inv(expected)
    for gradient, g in zip(found, dense, strict=True):
        np.testing.assert_allclose(gradient, np.einsum("ki,ij,kj->k", g, inverse, g), rtol=1e-9)


def test_hard_weights(rng):
    """Weights over many magnitudes, and zeros: the backward errors stay at rounding."""
    gradients, dense = zip(*flows((18, 17)), strict=True)
    for make in (
        np.ones_like,
        lambda x: 10 ** (12 * x - 6),
        lambda x: np.where(x > 0.1, 1.0, 0.0),
        lambda x: 1e-200 + 0 * x,
    ):
        weights = [make(rng.uniform(0, 1, len(g))) for g in dense]
        matrix = sum(g.T @ (w[:, None] * g) for g, w in zip(dense, weights, strict=True))
        for b in (np.ones(306), (-1.0) ** np.arange(306)):
            with sa.densify("error"):
                x = as_jax(sa.linalg.solve(divergence(gradients, weights), jnp.asarray(b)))
            scale = np.abs(matrix).sum(axis=1).max() * np.abs(x).max() + 1
            assert np.abs(matrix @ np.asarray(x) - b).max() <= 1e-13 * scale


def test_forms_of_rectangular_factors(rng):
    """The first factor may be rectangular in a banded form. Others give sparse forms, with constant coordinates."""
    weight = sa.Diagonal(rng.uniform(1, 2, 31 * 30))
    for first in (True, False):
        parts = [difference(30), sa.eye(30)] if first else [sa.eye(30), difference(30)]
        dense = _product([dense_difference(30), np.eye(30)] if first else [np.eye(30), dense_difference(30)])
        g = sa.Kronecker(*parts)
        matrix = g.mT @ weight @ g
        expected = dense.T @ (np.asarray(weight.diag)[:, None] * dense)
        assert ("Banded" if first else "Sparse") in str(sa.explain(sa.linalg.solve, matrix, jnp.ones(900)))
        with sa.densify("error"):
            np.testing.assert_allclose(
                as_jax(sa.linalg.solve(matrix, jnp.ones(900))), np.linalg.solve(expected, np.ones(900)), rtol=1e-9
            )


@pytest.mark.parametrize("first", [True, False])
def test_stacks_of_weights(first, rng):
    """The pattern is common to all matrices of a stack, eager, jitted and mapped."""
    parts = [difference(12), sa.eye(13)] if first else [sa.eye(13), difference(12)]
    dense = _product([dense_difference(12), np.eye(13)] if first else [np.eye(13), dense_difference(12)])
    g, b = sa.Kronecker(*parts), np.linspace(-1, 1, 156)
    weights = rng.uniform(1, 2, (2, 3, len(dense)))
    matrices = np.einsum("ki,abk,kj->abij", dense, weights, dense)
    expected = np.linalg.solve(matrices, b[:, None])[..., 0]
    inverses = np.linalg.inv(matrices)

    def solution(w):
        return as_jax(sa.linalg.solve(g.mT @ sa.Diagonal(w) @ g, jnp.asarray(b)[:, None]))[..., 0]

    def logdet(w):
        return jnp.sum(as_jax(sa.linalg.slogdet(g.mT @ sa.Diagonal(w) @ g).logabsdet))

    with sa.densify("error"):
        for run in (solution, jax.jit(solution), jax.vmap(solution), jax.jit(jax.vmap(jax.vmap(solution)))):
            np.testing.assert_allclose(run(jnp.asarray(weights)), expected, rtol=1e-10, atol=1e-13)
        gradient = jax.grad(logdet)(jnp.asarray(weights))
    np.testing.assert_allclose(gradient, np.einsum("ki,abij,kj->abk", dense, inverses, dense), rtol=1e-10)


@pytest.mark.parametrize("padded", [True, False])
def test_stacks_of_sparse_factors_with_several_patterns(padded, rng):
    """Each matrix of the stack has its own coordinates."""
    patterns = np.stack([4 * np.eye(20)] * 2)
    patterns[0, 0, 1] = patterns[1, 5, 9] = 1.0
    if padded:
        patterns[0, 3, 8] = 2.0
    factor, weights = sa.Sparse.from_dense(patterns, core_ndim=2), rng.uniform(1, 2, 100)
    if not padded:
        coordinates = np.stack([np.nonzero(p) for p in patterns], axis=1)
        data = np.stack([p[tuple(c)] for p, c in zip(patterns, np.moveaxis(coordinates, 1, 0), strict=True)])
        factor = sa.Sparse(data, tuple(coordinates), (20, 20))
    assert factor.padded == padded
    dense = np.stack([np.kron(p, np.eye(5)) + np.diag(weights) for p in patterns])

    def solution(w):
        return as_jax(sa.linalg.solve(sa.Kronecker(factor, sa.eye(5)) + sa.Diagonal(w), jnp.ones((100, 1))))

    expected = np.linalg.solve(dense, np.ones((100, 1)))
    for run in (solution, jax.jit(solution)):
        np.testing.assert_allclose(run(jnp.asarray(weights)), expected, rtol=1e-12)


def test_many_weighted_gradients():
    sizes = (250, 240)
    gradients = [sa.Kronecker(difference(250), sa.eye(240)), sa.Kronecker(sa.eye(250), difference(240))]
    weights = [jnp.ones(g.shape[0]) for g in gradients]
    second = [scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)) for n in sizes]
    laplacian = scipy.sparse.kron(second[0], scipy.sparse.eye_array(240)) + scipy.sparse.kron(
        scipy.sparse.eye_array(250), second[1]
    )
    b = np.ones(int(np.prod(sizes)))
    with sa.densify("error"):
        x = np.asarray(as_jax(jax.jit(lambda w: sa.linalg.solve(divergence(gradients, w), jnp.asarray(b)))(weights)))
    np.testing.assert_allclose(laplacian @ x, b, rtol=1e-9)
