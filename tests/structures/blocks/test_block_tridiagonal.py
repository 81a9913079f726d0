"""Block-tridiagonal systems, by small and by large blocks: against NumPy's dense solver."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import adjoint, normal

from structarrays._numerics import cyclic_reduction
from structarrays._structures.blocks import block_tridiagonal
from structarrays._structures.blocks import block_tridiagonal_by_lapack as by_lapack

DTYPES = (float, complex)


def matrix(count, m, dtype=float, batch=(), dominance=0.0, seed=0):
    """Blocks, of which the two that stand outside of the matrix are zero."""
    lower, diagonal, upper = (normal(*batch, count, m, m, seed=10 * seed + i, dtype=dtype) for i in range(3))
    lower[..., 0, :, :] = upper[..., -1, :, :] = 0
    return lower, diagonal + dominance * m * np.eye(m), upper


def definite(count, m, dtype=float, batch=()):
    _, diagonal, upper = matrix(count, m, dtype, batch)
    diagonal = diagonal @ adjoint(diagonal) + 6 * m * np.eye(m)
    return np.roll(adjoint(upper), 1, axis=-3), diagonal, upper


def dense(lower, diagonal, upper):
    count, m = diagonal.shape[-3:-1]
    a = np.zeros((*diagonal.shape[:-3], count * m, count * m), diagonal.dtype)
    for i in range(count):
        rows = slice(i * m, (i + 1) * m)
        a[..., rows, rows] = diagonal[..., i, :, :]
        if i:
            a[..., rows, (i - 1) * m : i * m] = lower[..., i, :, :]
            a[..., (i - 1) * m : i * m, rows] = upper[..., i - 1, :, :]
    return a


@pytest.fixture(params=["small", "large", "LAPACK, small", "LAPACK, large"])
def size(request, monkeypatch):
    """Blocks are taken for small or for large ones, whatever they are, by the loops or by LAPACK on the host."""
    limit = 10**6 if "small" in request.param else 0
    monkeypatch.setattr(block_tridiagonal, "_SMALL", limit)
    monkeypatch.setattr(block_tridiagonal, "_SMALL_DEFINITE", limit)
    monkeypatch.setattr(by_lapack, "_SMALLEST_MATRIX", 0 if "LAPACK" in request.param else 10**9)
    monkeypatch.setattr(by_lapack, "_BY_BLOCKS", limit)
    return request.param


def backward_error(a, x, b):
    """By the norms of the columns, in units of the precision."""
    x = np.asarray(x)
    norms = [np.linalg.norm(c, axis=(-2, -1)) for c in (a @ x - b, a, x)]
    return np.max(norms[0] / (norms[1] * norms[2])) / np.finfo(x.dtype).eps


@pytest.mark.costly
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count, m, batch", [(1, 3, ()), (2, 1, (2,)), (3, 4, ()), (7, 3, (2,))])
@pytest.mark.parametrize("dominance", [0, 3])
def test_solve(size, count, m, batch, dtype, dominance):
    blocks = matrix(count, m, dtype, batch, dominance)
    b = normal(*batch, count * m, 2, seed=7, dtype=dtype)
    x, ok = block_tridiagonal.solve(*blocks, b)
    assert ok and x.shape == b.shape and x.dtype == b.dtype
    assert backward_error(dense(*blocks), x, b) < 10


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count, m, batch", [(1, 3, ()), (2, 1, (2,)), (5, 4, ())])
def test_positive_definite(size, count, m, batch, dtype):
    blocks = definite(count, m, dtype, batch)
    b = normal(*batch, count * m, 2, seed=7, dtype=dtype)
    x, ok = block_tridiagonal.solve(*blocks, b, True)
    assert ok and backward_error(dense(*blocks), x, b) < 10
    x, ok = block_tridiagonal.solve(*(-a for a in blocks), b, True)
    assert not ok and np.all(np.isnan(x))


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_single_precision(size, dtype):
    blocks = [a.astype(dtype) for a in matrix(5, 3, complex if dtype == np.complex64 else float)]
    b = normal(15, 1).astype(dtype)
    x, ok = block_tridiagonal.solve(*blocks, b)
    assert ok and x.dtype == dtype and backward_error(dense(*blocks), x, b) < 10


@pytest.mark.parametrize("name", ["zero diagonal", "tiny pivots", "graded", "first block singular"])
def test_what_needs_exchanges(size, name):
    """Of rows within a block, and of rows of different blocks."""
    lower, diagonal, upper = matrix(6, 3)
    if name == "zero diagonal":
        diagonal[:] = 0  # regular, since the number of block rows is even
    elif name == "tiny pivots":
        diagonal[:] = 1e-12 * np.eye(3)
    elif name == "graded":
        scales = 10.0 ** np.linspace(0, 12, 6)[:, None, None]
        lower, diagonal, upper = lower * scales, diagonal * scales, upper * scales
    else:
        diagonal[0] = 1
    b = normal(18, 2)
    x, ok = block_tridiagonal.solve(lower, diagonal, upper, b)
    assert ok and backward_error(dense(lower, diagonal, upper), x, b) < 10
    # And of the transposed matrix, which is what the derivative by b solves with.
    gradient = jax.grad(lambda b: jnp.sum(block_tridiagonal.solve(lower, diagonal, upper, b)[0]))(b)
    assert backward_error(dense(lower, diagonal, upper).T, gradient, np.ones((18, 2))) < 10


@pytest.mark.costly
def test_singular_matrices_and_nan(size):
    b = np.ones((6, 1))
    lower, diagonal, upper = matrix(3, 2)
    for singular in ((lower, 0 * diagonal, upper), (0 * lower, np.ones_like(diagonal), upper)):
        for positive_definite in (False, True):
            x, ok = block_tridiagonal.solve(*singular, b, positive_definite)
            assert not ok and np.all(np.isnan(x))
    for blocks, positive_definite in ((matrix(3, 2), False), (definite(3, 2), True)):
        x, ok = block_tridiagonal.solve(*blocks, b * np.nan, positive_definite)
        assert ok and np.all(np.isnan(x))
        blocks[1][1, 0, 0] = np.nan
        x, ok = block_tridiagonal.solve(*blocks, b, positive_definite)
        assert ok and np.any(np.isnan(x))


@pytest.mark.costly
def test_batches_broadcast(size):
    blocks = matrix(4, 2, batch=(3, 1))
    b = normal(2, 8, 1, seed=3)
    x, ok = block_tridiagonal.solve(*blocks, b)
    assert ok
    np.testing.assert_allclose(x, np.linalg.solve(dense(*blocks), b), rtol=1e-9)
    one = [a[0, 0] for a in blocks]
    x, _ = block_tridiagonal.solve(*one, b)
    np.testing.assert_allclose(x, np.linalg.solve(dense(*one), b), rtol=1e-9)
    assert block_tridiagonal.solve(*blocks, b[..., :0])[0].shape == (3, 2, 8, 0)


@pytest.mark.costly
@pytest.mark.parametrize("positive_definite", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_derivatives(size, dtype, positive_definite):
    count, m = 3, 2
    blocks = definite(count, m, dtype) if positive_definite else matrix(count, m, dtype, dominance=1)
    arguments = (*blocks, normal(count * m, 2, seed=3, dtype=dtype))
    tangents = (*matrix(count, m, dtype, seed=5), normal(count * m, 2, seed=4, dtype=dtype))
    if positive_definite:  # derivatives are those of Hermitian matrices
        change = tangents[1] + adjoint(tangents[1])
        tangents = (np.roll(adjoint(tangents[2]), 1, axis=-3), change, *tangents[2:])

    def assembled(lower, diagonal, upper):
        """The dense matrix, by JAX."""
        rows = [[diagonal[i] if i == j else jnp.zeros((m, m)) for j in range(count)] for i in range(count)]
        for i in range(1, count):
            rows[i][i - 1], rows[i - 1][i] = lower[i], upper[i - 1]
        return jnp.block(rows)

    def ours(*arguments):
        return block_tridiagonal.solve(*arguments, positive_definite)[0]

    def theirs(*arguments):
        return jnp.linalg.solve(assembled(*arguments[:3]), arguments[3])

    def value(solve):
        return lambda *arguments: jnp.sum(jnp.abs(solve(*arguments) - 1) ** 2)

    both = [jax.jvp(f, arguments, tangents)[1] for f in (ours, theirs)]
    np.testing.assert_allclose(*both, rtol=1e-10, atol=1e-12)
    if not positive_definite:
        both = [jax.jit(jax.grad(value(f), argnums=(0, 1, 2, 3)))(*arguments) for f in (ours, theirs)]
        for g, h in zip(*both, strict=True):
            np.testing.assert_allclose(g, h, rtol=1e-9, atol=1e-11)
    second = [
        jax.jvp(jax.grad(lambda b, f=f: value(f)(*arguments[:3], b)), arguments[3:], tangents[3:])[1]
        for f in (ours, theirs)
    ]
    np.testing.assert_allclose(*second, rtol=1e-9, atol=1e-11)


@pytest.mark.slow
@pytest.mark.costly
def test_mapped_and_one_by_one_are_the_same(size):
    blocks, b = matrix(4, 2, batch=(3,), dominance=1), normal(3, 8, 1)

    def value(lower, diagonal, upper, b):
        return jnp.sum(block_tridiagonal.solve(lower, diagonal, upper, b)[0] ** 2)

    mapped = jax.jit(jax.vmap(jax.grad(value, argnums=(0, 1, 2, 3))))(*blocks, b)
    for i in range(3):
        for g, h in zip(mapped, jax.grad(value, argnums=(0, 1, 2, 3))(*(a[i] for a in blocks), b[i]), strict=True):
            np.testing.assert_allclose(g[i], h, rtol=1e-12, atol=1e-14)


def test_memory_is_linear_in_the_rows(size):
    blocks = [jax.ShapeDtypeStruct((125_000, 8, 8), float)] * 3
    b = jax.ShapeDtypeStruct((1_000_000, 1), float)
    stored = 3 * 125_000 * 64 * 8

    def value(*arguments):
        return jnp.sum(block_tridiagonal.solve(*arguments)[0] ** 2)

    for function in (block_tridiagonal.solve, jax.grad(value, argnums=(0, 1, 2, 3))):
        memory = jax.jit(lambda *a, f=function: f(*a)).lower(*blocks, b).compile().memory_analysis()
        assert memory.temp_size_in_bytes < 12 * stored


@pytest.mark.costly
@pytest.mark.slow
@pytest.mark.parametrize("positive_definite", [False, True])
def test_the_way_of_accelerators(monkeypatch, positive_definite):
    monkeypatch.setattr(cyclic_reduction, "has_accelerator", lambda: True)
    monkeypatch.setattr(cyclic_reduction, "or_in_order", cyclic_reduction.checked)
    b = normal(15, 2)
    for blocks in (definite(5, 3),) if positive_definite else (matrix(5, 3, dominance=2), matrix(5, 3)):
        x, ok = block_tridiagonal.solve(*blocks, b, positive_definite)
        assert ok and backward_error(dense(*blocks), x, b) < 20

        def total(b, blocks=blocks):
            return jnp.sum(block_tridiagonal.solve(*blocks, b, positive_definite)[0])

        assert backward_error(dense(*blocks).T, jax.grad(total)(b), np.ones_like(b)) < 20
