"""Determinants of moderate size whose parts have determinants that are no floating-point numbers, and their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa

pytestmark = pytest.mark.costly

MAKE = {
    "Kronecker": sa.Kronecker,
    "Kronecker of bands": lambda a, b: sa.Kronecker(_band(a), _band(b)),
    "Kronecker of circulants": lambda a, b: sa.Kronecker(sa.Circulant(a[0]), sa.Circulant(b[0])),
    "Product of Kronecker": lambda a, b: sa.Product(
        sa.Kronecker(a, np.eye(2) + 1), sa.Circulant(np.arange(1.0, 2 * len(a) + 1)), sa.Kronecker(b, np.eye(2) + 1)
    ),
    "BlockDiagonal": lambda a, b: sa.BlockDiagonal([a, b]),
    "BlockDiagonal of equal blocks": lambda a, b: sa.BlockDiagonal(jnp.stack([a, b])),
    "Kronecker of BlockDiagonal": lambda a, b: sa.Kronecker(sa.BlockDiagonal([a, a]), sa.BlockDiagonal([b, b])),
}


def _band(a):
    return sa.tridiagonal(a[0, 1:], a[1], a[2, 1:])


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize(("n", "size"), [(4, 1e90), (4, 1e-90), (2, 1e170), (4, 1.0)])
def test_parts_out_of_range(name, n, size, rng):
    """A determinant is homogeneous, ``d det = det * tr(A^-1 dA)``: scaling the parts by c and 1 / c leaves it as it is."""
    if n == 2 and name == "Kronecker of bands":
        n = 3
    a, b = rng.normal(size=(n, n)), rng.normal(size=(n, n))

    def det(a, b):
        return as_jax(sa.linalg.det(MAKE[name](a, b)))

    matrix = np.asarray(MAKE[name](a, b))
    expected = np.linalg.det(matrix)
    value, (by_a, by_b) = jax.jit(jax.value_and_grad(det, argnums=(0, 1)))(a * size, b / size)
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    inverse = np.linalg.inv(matrix)
    for i, by, scale in ((0, by_a, size), (1, by_b, 1 / size)):
        direction = rng.normal(size=(n, n))
        directions = (direction, 0 * b) if i == 0 else (0 * a, direction)
        _, change = jax.jvp(lambda a, b: as_jax(MAKE[name](a, b)), (a, b), directions)
        np.testing.assert_allclose(
            np.sum(by * scale * direction), expected * np.trace(inverse @ change), rtol=1e-7, atol=1e-9 * abs(expected)
        )


@pytest.mark.parametrize("make", [sa.Kronecker, MAKE["BlockDiagonal"]])
def test_singular_parts_have_derivatives(make):
    """The adjugate is the derivative of the determinant of a singular matrix."""
    a, b = np.array([[1.0, 2.0], [2.0, 4.0]]), np.array([[1.5]])
    gradient = jax.grad(lambda a: as_jax(sa.linalg.det(make(a, b))))(a)
    factor = 1.5**2 if make is sa.Kronecker else 1.5
    np.testing.assert_allclose(gradient, factor * np.array([[4.0, -2.0], [-2.0, 1.0]]), rtol=1e-12)


def test_a_part_below_range_is_not_singular(rng):
    a, b = rng.normal(size=(2, 2)), rng.normal(size=(2, 2))
    for make in (sa.Kronecker, MAKE["BlockDiagonal"]):
        value = float(sa.linalg.det(make(a * 1e154, b * 1e-158)))
        expected = np.linalg.det(np.asarray(make(a, b)))
        np.testing.assert_allclose(value, expected * (1e-16 if make is sa.Kronecker else 1e-8), rtol=1e-9)


def test_a_circulant_whose_partial_products_leave_the_range():
    """Its eigenvalues go from 100 to 0.01, the large ones first: the product of half of them is too large for a number."""
    size = np.logspace(2, -2, 401)
    for eigenvalues in (np.r_[size, size[:0:-1]], np.r_[size, size[::-1]] * np.exp(1j * np.arange(802.0))):
        c = np.fft.ifft(eigenvalues)
        c = c.real if len(c) % 2 else c
        found = np.fft.fft(c)
        expected = np.prod(found / np.abs(found)) * np.exp(np.sum(np.log(np.abs(found))))
        value = as_jax(sa.linalg.det(sa.Circulant(c)))
        np.testing.assert_allclose(value, expected if np.iscomplexobj(c) else expected.real, rtol=1e-9)
        change = jax.jvp(lambda c: as_jax(sa.linalg.det(sa.Circulant(c))), (c,), (c,))[1]  # homogeneous of degree n
        np.testing.assert_allclose(change, len(c) * value, rtol=1e-9)


@pytest.mark.slow
def test_a_sum_whose_parts_are_out_of_range():
    """``det(D + U V^T) = det(D) det(I + V^T D^-1 U)``: the first is too small for a number, and the second is large."""
    rng = np.random.default_rng(1)
    d = 10**-1.7 * rng.choice([1.0, -1.0], 200)
    u = 1e3 * np.linalg.qr(rng.normal(size=(200, 50)))[0]

    def det(d, u):
        return as_jax(sa.linalg.det(sa.Sum(sa.Diagonal(d), sa.LowRank(u, u / 50))))

    expected = np.linalg.det(np.diag(d) + u @ u.T / 50)
    assert 1e-70 < abs(expected) < 1e-60
    value, (by_d, by_u) = jax.jit(jax.value_and_grad(det, argnums=(0, 1)))(d, u)
    np.testing.assert_allclose(value, expected, rtol=1e-8)  # the condition is 1e6, and there are 200 factors
    inverse = np.linalg.inv(np.diag(d) + u @ u.T / 50)
    np.testing.assert_allclose(by_d, expected * np.diag(inverse), rtol=1e-7)
    np.testing.assert_allclose(by_u, expected * 2 / 50 * inverse @ u, atol=1e-4 * np.max(np.abs(by_u)))


def test_derivatives_of_a_determinant_whose_partial_products_leave_the_range():
    """Half of the pivots multiply to 1e350; the derivative is ``det * A^-T``, and of a singular matrix the adjugate."""
    rng = np.random.default_rng(2)
    scales = np.r_[np.full(50, 1e7), np.full(50, 1e-7)]
    core = rng.normal(size=(100, 100)) / 20 + np.eye(100)
    expected = np.linalg.det(core)
    for left, right in ((scales, 1.0), (1.0, scales[::-1])):
        a = core * np.reshape(left, (-1, 1)) * right
        value, gradient = jax.value_and_grad(lambda a: as_jax(sa.linalg.det(a)))(sa.asarray(a))
        np.testing.assert_allclose(value, expected, rtol=1e-9)
        adjugate = expected * np.linalg.inv(core).T
        np.testing.assert_allclose(
            gradient.to_jax() * np.reshape(left, (-1, 1)) * right, adjugate, atol=1e-9 * np.max(np.abs(adjugate))
        )
    a = rng.normal(size=(4, 4))
    a[3] = a[0] = [1.0, 2.0, 0.0, 0.0]
    stack = np.stack([a, core[:4, :4]])
    cofactors = [[[_cofactor(a, i, j) for j in range(4)] for i in range(4)] for a in stack]
    for det in (sa.linalg.det, jax.vmap(sa.linalg.det)):
        gradient = jax.grad(lambda a, det=det: det(a).sum())(stack)
        np.testing.assert_allclose(gradient, cofactors, rtol=1e-12, atol=1e-12)


def _cofactor(a, i, j):
    return (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1))


@pytest.mark.parametrize(
    "make", [sa.Diagonal, sa.Circulant, lambda d: sa.BlockDiagonal([d[:, None] + jnp.diag(d), d[None, :1]])]
)
def test_gradients_of_mapped_determinants(make):
    """The reverse mode through ``vmap``, where one determinant of the stack is zero, as that of each alone."""
    d = np.random.default_rng(3).normal(size=(2, 4)) + 3
    d[0] = [1.0, 2.0, 0.0, -1.0]

    def det(d):
        return as_jax(sa.linalg.det(make(d)))

    together = jax.jit(jax.grad(lambda d: jnp.sum(jax.vmap(det)(d))))(d)
    alone = [jax.grad(lambda d: jnp.linalg.det(as_jax(make(d))))(each) for each in d]
    np.testing.assert_allclose(together[1], alone[1], rtol=1e-9)
    if make is sa.Diagonal:
        np.testing.assert_allclose(together[0], [0.0, 0.0, -2.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("scales", [[1e-200, 1e-200, 1e250], [1e200, 1e200, 1e-250], [1e-150, 1e200]])
def test_small_dense_matrices(scales, rng):
    """Whose determinant is a sum of products of elements, in the order of the rows."""
    n = len(scales)
    a = rng.normal(size=(n, n)) + 2 * np.eye(n)
    expected = np.linalg.det(a) * np.exp(np.sum(np.log(scales)))
    value, gradient = jax.jit(jax.value_and_grad(lambda x: sa.linalg.det(x)))(a * np.array(scales)[:, None])
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    by_rows = (gradient * np.array(scales)[:, None])[
        :-1
    ]  # that by the last row is the product of the others, and out of range
    np.testing.assert_allclose(by_rows, expected * np.linalg.inv(a).T[:-1], rtol=1e-9)
    singular = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]])
    by_cofactors = np.array([[4.0, 4.0, -4.0], [-2.0, -2.0, 2.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(jax.grad(lambda x: sa.linalg.det(x))(singular), by_cofactors, atol=1e-14)
