"""Creation and Fourier kernels against NumPy, where they do more than call jax.numpy."""

import jax.numpy as jnp
import numpy as np
import pytest

from structarrays._numerics import dense_creation as creation
from structarrays._numerics import dense_fft as fft


def test_creation_has_the_dtype_asked_for():
    f4 = np.dtype("float32")
    np.testing.assert_allclose(
        creation.linspace(0, 1, 7, dtype=f4, endpoint=False), np.linspace(0, 1, 7, False, dtype=f4)
    )
    array = creation.full((), 3, dtype=f4)
    assert array.dtype == f4 and not array.weak_type


def test_meshgrid_is_a_tuple():
    x, y = np.arange(3), np.arange(2)
    for indexing in ("xy", "ij"):
        result = creation.meshgrid(jnp.asarray(x), jnp.asarray(y), indexing=indexing)
        assert isinstance(result, tuple)
        np.testing.assert_array_equal(np.stack(result), np.stack(np.meshgrid(x, y, indexing=indexing)))


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_transforms_keep_precision_and_norm(norm, dtype):
    rng = np.random.default_rng(0)
    z = (rng.normal(size=(3, 6)) + 1j * rng.normal(size=(3, 6))).astype(dtype)
    real = z.real
    tolerance = 1e-5 if dtype == "complex64" else 1e-12
    for name, x, n in (
        ("fft", z, 4),
        ("ifft", z, 8),
        ("rfft", real, 5),
        ("irfft", z, 9),
        ("hfft", z, 7),
        ("ihfft", real, 4),
    ):
        result = getattr(fft, name)(jnp.asarray(x), n=n, axis=1, norm=norm)
        complex_result = name not in ("irfft", "hfft")
        assert result.dtype == (z if complex_result else real).dtype
        np.testing.assert_allclose(
            result, getattr(np.fft, name)(x, n=n, axis=1, norm=norm), rtol=tolerance, atol=tolerance
        )
    for name, x in (("fftn", z), ("ifftn", z), ("rfftn", real), ("irfftn", z)):
        result = getattr(fft, name)(jnp.asarray(x), s=(2, -1), axes=(0, 1), norm=norm)
        # -1 is the whole axis, which in NumPy's irfftn it would be too.
        size = 6 if name != "irfftn" else 10
        expected = getattr(np.fft, name)(x, s=(2, 6 if name == "irfftn" else size), axes=(0, 1), norm=norm)
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


def test_frequencies():
    for n in (4, 5):
        np.testing.assert_allclose(fft.fftfreq(n, d=0.1, dtype=np.float64), np.fft.fftfreq(n, d=0.1), rtol=1e-15)
        assert fft.rfftfreq(n, dtype=np.float32).dtype == np.float32
