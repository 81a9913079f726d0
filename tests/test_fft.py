"""Fourier transforms against NumPy, and their errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa

ONE_AXIS = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
SEVERAL_AXES = ["fftn", "ifftn", "rfftn", "irfftn"]
OF_REAL = ["rfft", "ihfft", "rfftn"]


def signal(name, shape, dtype):
    rng = np.random.default_rng(len(shape))
    x = rng.normal(size=shape)
    if name not in OF_REAL:
        x = x + 1j * rng.normal(size=shape)
        dtype = np.promote_types(dtype, np.complex64)
    return x.astype(dtype)


def check(actual, expected, dtype):
    assert actual.shape == expected.shape
    assert np.finfo(actual.dtype).dtype == dtype and (actual.dtype.kind == "c") == (expected.dtype.kind == "c")
    rtol = 100 * np.finfo(dtype).eps
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=rtol, atol=rtol * np.max(np.abs(expected)))


@pytest.mark.parametrize("name", ONE_AXIS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_along_an_axis(name, dtype):
    x = signal(name, (4, 5), dtype)
    ours, numpys = getattr(sa.fft, name), getattr(np.fft, name)
    for options in ({}, {"axis": 0, "norm": "ortho"}, {"n": 7, "norm": "forward"}, {"n": 3, "axis": -2}):
        check(ours(x, **options), numpys(x, **options), dtype)
    check(jax.jit(ours)(x), numpys(x), dtype)


@pytest.mark.parametrize("name", SEVERAL_AXES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_along_several_axes(name, dtype):
    x = signal(name, (3, 4, 5), dtype)
    ours, numpys = getattr(sa.fft, name), getattr(np.fft, name)
    for options in (
        {},
        {"axes": (0, 2), "norm": "ortho"},
        {"axes": [1, -1], "s": [6, 4]},
        {"axes": (2, 0), "s": (-1, 3)},
    ):
        check(ours(x, **options), numpys(x, **options), dtype)
    check(ours(x, s=(2, 6)), numpys(x, s=(2, 6), axes=(1, 2)), dtype)


def test_frequencies_and_shifts():
    for n in (1, 4, 5):
        check(sa.fft.fftfreq(n, d=0.5), np.fft.fftfreq(n, 0.5), np.float64)
        check(sa.fft.rfftfreq(n, d=0.5, dtype=sa.float32), np.fft.rfftfreq(n, 0.5), np.float32)
    x = np.arange(30).reshape(5, 6)
    for axes in (None, 0, (-1,), [0, 1], ()):
        for name in ("fftshift", "ifftshift"):
            result = getattr(sa.fft, name)(sa.asarray(x), axes=axes)
            expected = x if axes == () else getattr(np.fft, name)(x, axes=axes)
            np.testing.assert_array_equal(np.asarray(as_jax(result)), expected)


def test_structures():
    x = sa.Diagonal(np.arange(8.0).reshape(2, 4))
    dense = np.asarray(x.to_jax())
    with sa.record() as log:
        check(sa.fft.fft(x), np.fft.fft(dense), np.float64)
        check(sa.fft.rfftn(sa.Fill(2.0, (3, 4))), np.fft.rfftn(np.full((3, 4), 2.0)), np.float64)
    assert len(log.densifications) == 2
    shifted = sa.fft.fftshift(x, axes=0)
    assert type(shifted) is sa.Diagonal
    np.testing.assert_array_equal(np.asarray(shifted.to_jax()), np.fft.fftshift(dense, 0))
    assert type(sa.fft.fftshift(sa.Fill(1.0, (3, 3)))) is sa.Fill


def test_integers_become_floating():
    assert sa.fft.fft(sa.arange(4)).dtype == np.complex128
    assert sa.fft.irfft(sa.arange(4)).dtype == np.float64


AXIS = np.exceptions.AxisError


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: sa.fft.fft(sa.ones(3), axis=1), AXIS),
        (lambda: sa.fft.fft(sa.ones(3), n=0), ValueError),
        (lambda: sa.fft.fft(sa.ones(0)), ValueError),
        (lambda: sa.fft.fftn(sa.ones((2, 0))), ValueError),
        (lambda: sa.fft.fft(sa.ones(3), norm="none"), ValueError),
        (lambda: sa.fft.fft(sa.ones(3, dtype=sa.bool)), TypeError),
        (lambda: sa.fft.rfft(sa.ones(3, dtype=sa.complex64)), TypeError),
        (lambda: sa.fft.ihfft(sa.ones(3, dtype=sa.complex64)), TypeError),
        (lambda: sa.fft.irfft(sa.ones(1)), ValueError),
        (lambda: sa.fft.fftn(sa.ones((2, 2)), axes=(0, 0)), ValueError),
        (lambda: sa.fft.fftn(sa.ones((2, 2)), axes=(0, 2)), AXIS),
        (lambda: sa.fft.fftn(sa.ones((2, 2)), s=(2, 2, 2)), ValueError),
        (lambda: sa.fft.fftn(sa.ones((2, 2)), s=(2,), axes=(0, 1)), ValueError),
        (lambda: sa.fft.fftn(sa.ones((2, 2)), s=(0, 2)), ValueError),
        (lambda: sa.fft.rfftn(sa.ones((2, 2), dtype=sa.complex128)), TypeError),
        (lambda: sa.fft.fftshift(sa.ones(3), axes=1), AXIS),
        (lambda: sa.fft.fftfreq(0), ValueError),
        (lambda: sa.fft.fftfreq(3, dtype=sa.complex64), TypeError),
    ],
)
def test_errors(call, error):
    with pytest.raises(error, match="fft"):
        call()


def test_empty_axes_are_padded():
    check(sa.fft.irfft(np.zeros((0, 3), complex), n=5, axis=0), np.zeros((5, 3)), np.float64)
    check(sa.fft.fftn(np.zeros((0, 3)), s=(2, 3)), np.zeros((2, 3), complex), np.float64)


# On a CPU XLA compiles no transform whose result it lays out by columns, as LAPACK's routines want their matrices.


@pytest.mark.parametrize("name", ONE_AXIS + SEVERAL_AXES)
@pytest.mark.parametrize("compile", [lambda f: f, jax.jit])
def test_derivatives_through_an_inverse(name, compile):
    x = np.eye(4) + signal("rfft", (4, 4), np.float64) / 8

    def size(transform, x):
        return jnp.sum(jnp.abs(transform(jnp.linalg.inv(x))) ** 2)

    expected = jax.grad(lambda x: size(getattr(jnp.fft, name), x))(x)  # not compiled as a whole
    got = compile(jax.grad(lambda x: size(lambda y: getattr(sa.fft, name)(y), x)))(x)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.costly
@pytest.mark.parametrize("structure", ["Toeplitz", "Circulant", "Hankel", "Fourier"])
@pytest.mark.parametrize("n", [6, 700])
def test_derivatives_of_structured_products_through_an_inverse(structure, n):
    rng = np.random.default_rng(n)
    a = sa.Fourier(n) if structure == "Fourier" else getattr(sa, structure)(rng.normal(size=n))
    x, dense = 4 * np.sqrt(n) * np.eye(n) + rng.normal(size=(n, n)), a.to_jax()

    def size(x, a, multiply):
        return jnp.sum(jnp.abs(multiply(jnp.linalg.inv(x), a)) ** 2)

    for multiply in (lambda y, a: y @ a, lambda y, a: a @ y):
        expected = jax.grad(size)(x, dense, multiply)
        got = jax.jit(jax.grad(lambda x, m=multiply: size(x, a, lambda y, a: as_jax(m(sa.asarray(y), a)))))(x)
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-9 * np.max(np.abs(expected)))


@pytest.mark.parametrize("matrix", ["solution", "its transpose"])
def test_a_circulant_system_beside_an_inverse(matrix):
    rng = np.random.default_rng(0)
    c, b = 9 * np.eye(9)[0] + rng.normal(size=9) / 9, rng.normal(size=(9, 9))

    def both(solve, b):
        x = solve(b.T)
        return jnp.linalg.inv(x.T if matrix == "its transpose" else x)

    expected = both(lambda b: jnp.linalg.solve(sa.Circulant(c).to_jax(), b), b)
    got = jax.jit(lambda b: both(lambda b: as_jax(sa.linalg.solve(sa.Circulant(c), sa.asarray(b))), b))(b)
    np.testing.assert_allclose(got, expected, rtol=1e-9)
