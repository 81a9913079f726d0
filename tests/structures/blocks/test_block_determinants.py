"""Determinants of block-tridiagonal matrices and their derivatives: against NumPy's dense functions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import adjoint, normal

from structarrays._structures.blocks.block_determinants import slogdet

COUNT, M = 7, 3
KINDS = ["random", "dominant", "zero diagonal", "nearly singular block", "graded", "constant", "definite"]


def matrix(kind, dtype=float, count=COUNT, m=M):
    """Blocks, of which the two that stand outside of the matrix are zero."""
    lower, diagonal, upper = (normal(count, m, m, seed=i, dtype=dtype) for i in range(3))
    if kind == "dominant":
        diagonal = diagonal + 4 * m * np.eye(m)
    elif kind == "zero diagonal":
        diagonal[1:-1] = 0
    elif kind == "nearly singular block":
        diagonal[0] = 1 + 1e-9 * diagonal[0]
    elif kind == "graded":
        scales = np.logspace(0, -12, count)[:, None, None]
        lower, diagonal, upper = (scales * part for part in (lower, diagonal, upper))
    elif kind == "constant":
        one = np.ones((count, m, m), dtype)
        lower, diagonal, upper = -one, one + 3 * np.eye(m), -one
    elif kind == "definite":
        diagonal = diagonal @ adjoint(diagonal) + 6 * m * np.eye(m)
        lower = np.roll(adjoint(upper), 1, axis=-3)
    lower[0] = upper[-1] = 0
    return lower, diagonal, upper


def dense(lower, diagonal, upper):
    """The dense matrix, by JAX."""
    count, m = diagonal.shape[:2]
    zero = jnp.zeros((m, m), diagonal.dtype)
    near = {0: diagonal, 1: upper, -1: lower}
    return jnp.block([[near[j - i][i] if abs(j - i) <= 1 else zero for j in range(count)] for i in range(count)])


def inside(gradient):
    """Drop what belongs to the blocks outside of the matrix."""
    lower, diagonal, upper = map(np.asarray, gradient)
    return lower[1:], diagonal, upper[:-1]


def equilibrated(a):
    """The matrix with rows of magnitude about 1, and the powers of two by which they were divided."""
    scales = np.exp2(np.round(np.log2(np.max(np.abs(a), 1, keepdims=True))))
    return a / scales, scales


def expected(blocks):
    """The transposes of the blocks of the inverse."""
    count, m, _ = blocks[1].shape
    a, scales = equilibrated(np.asarray(dense(*blocks)))
    inverse = (np.linalg.inv(a) / scales.T).T.reshape(count, m, count, m).swapaxes(1, 2)
    i = np.arange(count)
    return inverse[i[1:], i[:-1]], inverse[i, i], inverse[i[:-1], i[1:]]


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [1, 3, 10])
def test_gradient(kind, dtype, m):
    blocks, definite = matrix(kind, dtype, m=m), kind == "definite"
    a = np.asarray(dense(*blocks))

    def logarithm(*blocks):
        return slogdet(*blocks, definite)[1]

    value, gradient = jax.jit(jax.value_and_grad(logarithm, argnums=(0, 1, 2)))(*blocks)
    np.testing.assert_allclose(value, np.linalg.slogdet(a)[1], rtol=1e-12)
    tolerance = 100 * np.finfo(float).eps * np.linalg.cond(equilibrated(a)[0])
    for found, wanted in zip(inside(gradient), expected(blocks), strict=True):
        # JAX's gradients of real functions of complex numbers are conjugated.
        scale = np.max(np.abs(wanted), axis=(1, 2), keepdims=True)
        assert np.all(np.abs(found - wanted) <= tolerance * scale)


@pytest.mark.costly
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("kind", KINDS)
def test_forward_mode_and_second_derivatives(kind, dtype):
    blocks, definite = matrix(kind, dtype), kind == "definite"
    tangents = tuple(normal(*b.shape, seed=5 + i, dtype=dtype) for i, b in enumerate(blocks))
    tangents[0][0] = tangents[2][-1] = 0
    if definite:
        tangents = np.roll(adjoint(tangents[2]), 1, axis=-3), tangents[1] + adjoint(tangents[1]), tangents[2]

    def ours(*blocks):
        return slogdet(*blocks, definite)

    def theirs(*blocks):
        return tuple(jnp.linalg.slogdet(dense(*blocks)))

    def second(function):
        def gradient(*blocks):
            return jax.grad(lambda *blocks: function(*blocks)[1], argnums=(0, 1, 2))(*blocks)

        return inside(jax.jvp(gradient, blocks, tangents)[1])

    for found, wanted in zip(*(jax.jvp(f, blocks, tangents)[1] for f in (ours, theirs)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)
    for found, wanted in zip(*map(second, (ours, theirs)), strict=True):
        if definite:  # the Hermitian part is differentiated
            continue
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8 * np.max(np.abs(wanted)))


def test_second_derivatives_of_definite_matrices_are_of_the_hermitian_part():
    blocks = matrix("definite")
    tangents = tuple(normal(*b.shape, seed=5 + i) for i, b in enumerate(blocks))
    tangents[0][0] = tangents[2][-1] = 0

    def hermitian(*blocks):
        a = dense(*blocks)
        return jnp.linalg.slogdet((a + a.T) / 2)[1]

    second = [
        inside(jax.jvp(jax.grad(f, argnums=(0, 1, 2)), blocks, tangents)[1])
        for f in (lambda *blocks: slogdet(*blocks, True)[1], hermitian)
    ]
    for found, wanted in zip(*second, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.costly
@pytest.mark.parametrize("definite", [False, True])
def test_other_transformations(definite):
    blocks = matrix("definite" if definite else "random")
    gradient = jax.value_and_grad(lambda *blocks: slogdet(*blocks, definite)[1], argnums=(0, 1, 2))
    wanted = gradient(*blocks)
    stack = [np.stack([b, 2 * b]) for b in blocks]
    mapped = jax.tree.map(lambda a: a[0], jax.jit(jax.vmap(gradient))(*stack))
    looped = jax.tree.map(lambda a: a[0], jax.lax.scan(lambda c, b: (c, gradient(*b)), 0, tuple(stack))[1])
    with jax.disable_jit():
        not_compiled = gradient(*blocks)
    for found in (mapped, looped, not_compiled):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13), found, wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("kind", ["dominant", "definite"])
def test_single_precision(kind, dtype):
    blocks = [b.astype(dtype) for b in matrix(kind, dtype)]
    gradient = jax.grad(lambda *blocks: slogdet(*blocks, kind == "definite")[1], argnums=(0, 1, 2))(*blocks)
    for found, wanted in zip(inside(gradient), expected(blocks), strict=True):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * np.max(np.abs(wanted)))


@pytest.mark.costly
@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e100, 1e300])
@pytest.mark.parametrize("kind", ["random", "definite"])
def test_scales(kind, scale):
    blocks = matrix(kind)
    value, gradient = jax.value_and_grad(lambda *b: slogdet(*b, kind == "definite")[1], argnums=(0, 1, 2))(
        *(scale * b for b in blocks)
    )
    sign, logarithm = np.linalg.slogdet(np.asarray(dense(*blocks)))
    assert abs(sign) == 1
    np.testing.assert_allclose(value, logarithm + COUNT * M * np.log(scale), rtol=1e-12)
    for found, wanted in zip(inside(gradient), expected(blocks), strict=True):
        # XLA replaces subnormal numbers by zero.
        atol = 1e-12 * np.max(np.abs(wanted)) / scale + np.finfo(float).tiny
        np.testing.assert_allclose(found, wanted / scale, rtol=1e-9, atol=atol)


def test_singular_matrices_and_nan():
    lower, diagonal, upper = matrix("random")
    singular = lower.copy(), diagonal.copy(), upper.copy()
    singular[0][2], singular[1][2], singular[2][2] = 0, 0, 0
    sign, value = slogdet(*singular)
    assert sign == 0 and value == -np.inf
    gradient = jax.grad(lambda *b: slogdet(*b)[1], argnums=(0, 1, 2))(*singular)
    assert not all(np.isfinite(g).all() for g in gradient)
    gradient = jax.grad(lambda *b: slogdet(*b, True)[1], argnums=(0, 1, 2))(lower, -diagonal @ adjoint(diagonal), upper)
    assert np.isnan(gradient[1]).any()
    diagonal[3, 0, 0] = np.nan
    value, gradient = jax.value_and_grad(lambda d: slogdet(lower, d, upper)[1])(diagonal)
    assert np.isnan(value) and np.isnan(gradient).any()
