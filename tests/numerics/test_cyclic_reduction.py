"""Block cyclic reduction, on its own and behind the solvers of banded matrices. The oracles are NumPy on the dense matrix and scipy.

The matrices are small: on a CPU this way is compiled for minutes at sizes for which it is meant.
"""

import functools

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from support import random

from structarrays._numerics import banded_determinants, banded_rows, cyclic_reduction
from structarrays._numerics import banded_elimination as banded


@functools.partial(jax.jit, static_argnums=(1, 2), static_argnames="positive_definite")
def solve(diagonals, offsets, n, b, positive_definite=False):
    (x, ok), trusted = cyclic_reduction.solve_banded(diagonals, offsets, n, b, positive_definite)
    assert ok.shape == trusted.shape == ()
    return x, trusted


@functools.partial(jax.jit, static_argnums=(1, 2))
def slogdet(diagonals, offsets, n):
    rows = banded_rows.from_diagonals(diagonals, offsets, n, diagonals[0].dtype)
    return cyclic_reduction.slogdet_banded(rows, *banded_rows.bandwidths(offsets), gradient=True)


def matrix(n, offsets, batch=(), dtype=np.float64, dominance=4.0):
    """A random matrix, with a larger diagonal."""
    diagonals = [random((*batch, n - abs(k)), dtype, i) for i, k in enumerate(offsets)]
    return tuple(
        (d + dominance * len(offsets) ** 0.5).astype(dtype) if k == 0 else d
        for d, k in zip(diagonals, offsets, strict=True)
    )


def dense(diagonals, offsets):
    """In double precision."""
    n = diagonals[0].shape[-1] + abs(offsets[0])
    batch = diagonals[0].shape[:-1]
    a = np.zeros((*batch, n, n), np.result_type(np.float64, *(d.dtype for d in diagonals)))
    for d, k in zip(diagonals, offsets, strict=True):
        i = np.arange(n - abs(k)) + max(0, -k)
        a[..., i, i + k] = d
    return a


def band_of(a, w):
    """Diagonals and offsets of a dense matrix."""
    offsets = tuple(range(-w, w + 1))
    return tuple(np.diagonal(a, k).copy() for k in offsets), offsets


def backward_error(a, x, b):
    """Entry by entry, in units of the precision of x."""
    x = np.asarray(x)
    size = np.abs(a) @ np.abs(x) + np.abs(b)
    return np.max(np.abs(a @ x - b) / np.where(size == 0, 1, size)) / np.finfo(x.dtype).eps


DOUBLE, COMPLEX, FLOAT = ((), 1, np.float64), ((2, 1), 3, np.complex128), ((3,), 2, np.float32)

# Sizes around the multiples of the blocks and the powers of two; one block; triangular; lopsided; scattered; wide.
PATTERNS = [
    (2, (-1, 0, 1), COMPLEX),
    (7, (-1, 0, 1), FLOAT),
    (8, (-1, 0, 1), DOUBLE),
    (9, (-1, 0), COMPLEX),
    (15, (0, 1, 2), DOUBLE),
    (16, (-2, -1, 0, 1, 2), FLOAT),
    (17, (-2, -1, 0, 1, 2), COMPLEX),
    (33, (-2, 0, 1), DOUBLE),
    (25, (-1, 0, 2, 4), FLOAT),
    (12, (-9, 0, 1, 10), COMPLEX),
]


@pytest.mark.parametrize(("n", "offsets", "case"), PATTERNS)
def test_solve(n, offsets, case):
    batch, k, dtype = case
    diagonals, b = matrix(n, offsets, batch, dtype), random((*batch, n, k), dtype, 9)
    x, trusted = solve(diagonals, offsets, n, b)
    a = dense(diagonals, offsets)
    assert trusted and x.shape == b.shape and x.dtype == dtype
    assert backward_error(a, x, b) < 17  # in double precision, of what counts as 16
    np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=0, atol=100 * np.finfo(dtype).eps)


def test_scipy():
    """LAPACK's solver of banded matrices, with pivots, as an oracle of a larger system."""
    n, kl, ku = 100, 3, 2
    offsets = tuple(range(-kl, ku + 1))
    diagonals, b = matrix(n, offsets, dominance=0), random((n, 2))
    x, trusted = solve(diagonals, offsets, n, b)
    ab = np.zeros((kl + ku + 1, n))
    for d, k in zip(diagonals, offsets, strict=True):
        ab[ku - k, max(0, k) : n + min(0, k)] = d
    assert trusted
    np.testing.assert_allclose(x, scipy.linalg.solve_banded((kl, ku), ab, b), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_positive_definite(dtype):
    n, offsets = 13, (-2, -1, 0, 1, 2)
    lower = matrix(n, offsets[:3], (2,), dtype, 8)
    diagonals = (*lower, *(np.full_like(d, np.nan) for d in lower[1::-1]))  # above the diagonal nothing is read
    b = random((2, n, 2), dtype)
    x, trusted = solve(diagonals, offsets, n, b, positive_definite=True)
    below = np.tril(dense(lower, offsets[:3]), -1)
    a = below + below.conj().mT + lower[2].real[..., None] * np.eye(n)
    assert trusted and np.linalg.eigvalsh(a).min() > 0
    assert backward_error(a, x, b) < 17
    indefinite = (*diagonals[:2], diagonals[2] - 16, *diagonals[3:])
    assert not solve(indefinite, offsets, n, b, positive_definite=True)[1]


@pytest.mark.parametrize(
    ("n", "offsets", "dtype"), [(14, (-3, -1, 0, 1), np.float64), (11, (-1, 0, 1, 2), np.complex128)]
)
def test_slogdet_and_its_gradient(n, offsets, dtype):
    diagonals = matrix(n, offsets, (3,), dtype)
    a = dense(diagonals, offsets)
    (sign, logarithm, gradient), trusted = slogdet(diagonals, offsets, n)
    assert trusted
    expected = np.linalg.slogdet(a)
    np.testing.assert_allclose(sign, expected.sign, rtol=1e-14)
    np.testing.assert_allclose(logarithm, expected.logabsdet, rtol=1e-14)
    kl, ku = banded_rows.bandwidths(offsets)
    inverse = np.linalg.inv(a).mT
    for k in range(-kl, ku + 1):
        places = slice(max(0, -k), n + min(0, -k))
        np.testing.assert_allclose(
            gradient[..., places, kl + k], np.diagonal(inverse, k, -2, -1), rtol=1e-12, atol=1e-15
        )


def test_the_sign_counts_exchanges_inside_of_blocks():
    a = np.kron(np.eye(4), [[0.0, 2], [1, 0]])
    (sign, logarithm, _), trusted = slogdet(*band_of(a[:6, :6], 2), 6)
    assert trusted and sign == -1
    np.testing.assert_allclose(logarithm, 3 * np.log(2))


# ---- hard matrices --------------------------------------------------------------------------------------------------


def second_differences(n):
    return 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)


def hard(name, n):
    """A matrix of two diagonals on either side, and whether it may be solved without exchanges between blocks."""
    rng = np.random.default_rng(0)
    noise = np.triu(np.tril(rng.normal(size=(n, n)), 2), -2)
    scales = 10.0 ** np.linspace(0, -30, n)
    free = np.eye(n, k=2) + np.eye(n, k=-2)
    return {
        "no dominance": (noise, True),
        "fourth differences": (second_differences(n) @ second_differences(n), True),
        "graded rows": (scales[:, None] * (noise + 4 * np.eye(n)), None),
        "graded columns": ((noise + 4 * np.eye(n)) * scales, None),
        "graded": (scales[:, None] * (noise + 4 * np.eye(n)) * scales, None),
        "Wilkinson": (np.diag(np.abs(np.arange(n) - n // 2)) + np.eye(n, k=1) + np.eye(n, k=-1), None),
        "nothing on the diagonal": (free, False),
        "little in the diagonal blocks": (free + 1e-20 * noise, False),
        "nearly singular": (second_differences(n) - (2 - 2 * np.cos(np.pi / (n + 1)) - 1e-13) * np.eye(n), None),
    }[name]


NAMES = [
    "no dominance",
    "fourth differences",
    "graded rows",
    "graded columns",
    "graded",
    "Wilkinson",
    "nothing on the diagonal",
    "little in the diagonal blocks",
    "nearly singular",
]


@pytest.fixture
def accelerated(monkeypatch):
    """Solvers that take the way of accelerators, here on the CPU."""
    monkeypatch.setattr(cyclic_reduction, "has_accelerator", lambda: True)
    monkeypatch.setattr(cyclic_reduction, "or_in_order", cyclic_reduction.checked)
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.mark.costly
@pytest.mark.parametrize("name", NAMES)
def test_hard_matrices(accelerated, name):
    n = 28
    a, expected = hard(name, n)
    diagonals, offsets = band_of(a, 2)
    b = a @ random((n, 2))
    x, trusted = solve(diagonals, offsets, n, b)
    assert expected is None or trusted == expected
    assert not trusted or backward_error(a, x, b) < 17
    x, ok = jax.jit(banded.solve, static_argnums=(1, 2))(diagonals, offsets, n, b)
    size = np.abs(a).max() * np.abs(x).max() + np.abs(b).max()
    assert ok and np.abs(a @ np.asarray(x) - b).max() < 16 * np.finfo(np.float64).eps * size
    sign, logarithm = jax.jit(banded_determinants.slogdet, static_argnums=(1, 2))(diagonals, offsets, n)
    scaled = a / np.abs(a).max(0)
    condition = np.linalg.cond(scaled / np.abs(scaled).max(1, keepdims=True))
    lu, permutation = scipy.linalg.lu_factor(a)
    assert sign == np.prod(np.sign(np.diag(lu))) * (-1) ** np.sum(permutation != np.arange(n))
    np.testing.assert_allclose(
        logarithm, np.sum(np.log(np.abs(np.diag(lu)))), rtol=1e-13, atol=n * condition * np.finfo(np.float64).eps
    )


@pytest.mark.slow
def test_singular_matrices_and_nan(accelerated):
    n, offsets = 12, (-2, -1, 0, 1, 2)
    regular, b = dense(matrix(n, offsets), offsets), random((n, 2))
    row, column, ends = regular.copy(), regular.copy(), second_differences(n)
    row[8], column[:, 9] = 0, 0
    ends[0, 0] = ends[-1, -1] = 1
    kernel = jax.jit(banded.solve, static_argnums=(1, 2), static_argnames="positive_definite")
    logarithm = jax.jit(lambda diagonals: banded_determinants.slogdet(diagonals, offsets, n)[1])
    for singular in (row, column, ends):
        diagonals, _ = band_of(singular, 2)
        x, ok = kernel(diagonals, offsets, n, b)
        assert not ok and np.isnan(x).all()
        assert logarithm(diagonals) == -np.inf
    x, ok = kernel(band_of(-second_differences(n), 2)[0], offsets, n, b, positive_definite=True)
    assert not ok and np.isnan(x).all()
    diagonals, _ = band_of(regular, 2)
    x, ok = kernel(diagonals, offsets, n, np.where(np.arange(24).reshape(12, 2) == 7, np.nan, b))
    assert ok and np.isnan(x[:, 1]).any()
    np.testing.assert_allclose(x[:, :1], np.linalg.solve(regular, b[:, :1]), rtol=1e-13)
    diagonals[1][5] = np.nan
    x, ok = kernel(diagonals, offsets, n, b)
    assert ok and np.isnan(x).any()


# ---- behind the solvers ---------------------------------------------------------------------------------------------


@pytest.mark.costly
@pytest.mark.slow
@pytest.mark.parametrize("positive_definite", [False, True])
def test_derivatives_and_maps_of_solutions(accelerated, positive_definite):
    n, offsets = 6, (-2, -1, 0, 1, 2)
    lower = matrix(n, offsets[:3], (2,), dominance=8)
    diagonals = (*lower, *lower[1::-1]) if positive_definite else matrix(n, offsets, (2,))
    b = random((2, n, 2))

    def function(diagonals, b):
        return banded.solve(diagonals, offsets, n, b, positive_definite)[0]

    def whole(diagonals, b):
        pairs = zip(diagonals, offsets, strict=True)
        return jnp.linalg.solve(sum(jax.vmap(functools.partial(jnp.diag, k=k))(d) for d, k in pairs), b)

    @jax.jit
    def derivatives(diagonals, b, tangents, weights):
        gradients = jax.grad(lambda *p: jnp.sum(weights * function(*p)), (0, 1))(diagonals, b)
        return jax.jvp(function, (diagonals, b), tangents)[1], gradients

    tangents, weights = jax.tree.map(lambda p: random(p.shape, seed=5), (diagonals, b)), random(b.shape, seed=6)
    change, gradients = derivatives(diagonals, b, tangents, weights)
    np.testing.assert_allclose(change, jax.jvp(whole, (diagonals, b), tangents)[1], rtol=1e-11, atol=1e-13)
    expected = jax.grad(lambda *p: jnp.sum(weights * whole(*p)), (0, 1))(diagonals, b)
    jax.tree.map(lambda g, e: np.testing.assert_allclose(g, e, rtol=1e-11, atol=1e-13), gradients, expected)

    a = dense(diagonals, offsets)
    x = jax.jit(jax.vmap(function))(diagonals, b)
    np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-12, atol=1e-14)
    x = jax.jit(jax.vmap(function, (None, 0)))([d[0] for d in diagonals], b)
    np.testing.assert_allclose(x, np.linalg.solve(a[:1], b), rtol=1e-12, atol=1e-14)


@pytest.mark.slow
def test_derivatives_and_maps_of_determinants(accelerated):
    n, offsets = 7, (-1, 0, 1, 2)
    diagonals = matrix(n, offsets, (3,))

    def function(diagonals):
        return banded_determinants.slogdet(diagonals, offsets, n)[1]

    a = dense(diagonals, offsets)
    np.testing.assert_allclose(jax.jit(jax.vmap(function))(diagonals), np.linalg.slogdet(a)[1], rtol=1e-14)
    gradients = jax.jit(jax.grad(lambda d: jnp.sum(function(d))))(diagonals)
    found, ok = jax.jit(banded_determinants.selected_inverse, static_argnums=(1, 2))(diagonals, offsets, n)
    inverse = np.linalg.inv(a)
    assert ok
    for gradient, element, k in zip(gradients, found, offsets, strict=True):
        np.testing.assert_allclose(gradient, np.diagonal(inverse, -k, -2, -1), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(element, np.diagonal(inverse, k, -2, -1), rtol=1e-12, atol=1e-15)


@pytest.mark.slow
def test_one_hard_matrix_of_a_batch(accelerated):
    n, offsets = 12, (-2, -1, 0, 1, 2)
    a = np.stack([dense(matrix(n, offsets), offsets), hard("nothing on the diagonal", n)[0]])
    diagonals = tuple(np.diagonal(a, k, -2, -1).copy() for k in offsets)
    b = random((2, n, 1))
    assert not solve(diagonals, offsets, n, b)[1]
    x, ok = jax.jit(jax.vmap(lambda d, b: banded.solve(d, offsets, n, b)))(diagonals, b)
    assert ok.all()
    np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-12, atol=1e-14)


# ---- programs -------------------------------------------------------------------------------------------------------


def lowered(function, *args, platform):
    return jax.jit(function).trace(*args).lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.slow
def test_no_loop_over_the_rows():
    """What an accelerator runs, at the size for which it is meant, has no loop, and steps in proportion to the logarithm of the size."""
    offsets = (-2, -1, 0, 1, 2)

    def program(n):
        diagonals = tuple(jax.ShapeDtypeStruct((n - abs(k),), np.float32) for k in offsets)
        b, rows = jax.ShapeDtypeStruct((n, 1), np.float32), jax.ShapeDtypeStruct((n, 5), np.float32)

        def both(diagonals, b, rows):
            solution = cyclic_reduction.solve_banded(diagonals, offsets, n, b)
            return solution, cyclic_reduction.slogdet_banded(rows, 2, 2, gradient=True)

        return lowered(both, diagonals, b, rows, platform="cuda")

    programs = [program(n) for n in (1_000, 16_000, 256_000)]
    assert not any("stablehlo.while" in text for text in programs)
    first, second, third = (text.count("\n") for text in programs)
    assert third - second < 1.1 * (second - first)


def test_products_are_kept_apart_from_their_operands():
    """XLA up to version 0.11 of jaxlib aborts the process if it fuses these products with slices, on a GPU."""
    diagonals, b = matrix(30, (-2, -1, 0, 1, 2)), random((30, 2))

    def both(diagonals, b):
        rows = banded_rows.from_diagonals(diagonals, (-2, -1, 0, 1, 2), 30, b.dtype)
        solution = cyclic_reduction.solve_banded(diagonals, (-2, -1, 0, 1, 2), 30, b)
        return solution, cyclic_reduction.slogdet_banded(rows, 2, 2, gradient=True)

    operands = list(operands_of_products(jax.make_jaxpr(both)(diagonals, b).jaxpr))
    assert operands.count("optimization_barrier") > 20
    # `jax.numpy.matmul` removes dimensions of one element from operands.
    assert set(operands) <= {"optimization_barrier", "squeeze"}


def operands_of_products(jaxpr):
    """Iterate over the primitives that compute the operands of products of blocks."""
    origin = {id(v): equation.primitive.name for equation in jaxpr.eqns for v in equation.outvars}
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general" or equation.params.get("name") == "matmul":
            yield from (origin.get(id(v)) for v in equation.invars)
            continue
        for inner in equation.params.values():
            if isinstance(inner, jax.extend.core.ClosedJaxpr):
                yield from operands_of_products(inner.jaxpr)


def test_the_choice_of_the_device(monkeypatch):
    """The CPU keeps its loops; another device has both ways, as a fallback needs them."""
    n, offsets = 50, (-2, -1, 0, 1, 2)
    diagonals, b = matrix(n, offsets), random((n, 1))

    def function(diagonals, b):
        return banded.solve(diagonals, offsets, n, b)[0], banded_determinants.slogdet(diagonals, offsets, n)[1]

    alone = lowered(function, diagonals, b, platform="cpu")
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    jax.clear_caches()
    beside = lowered(function, diagonals, b, platform="cpu")
    accelerator = lowered(function, diagonals, b, platform="cuda")
    assert "cyclic reduction" in banded.explanation(offsets, 100)
    monkeypatch.undo()
    jax.clear_caches()
    assert "getrf" not in alone + beside
    assert "getrf" in accelerator and "stablehlo.while" in accelerator
