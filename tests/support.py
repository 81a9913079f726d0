"""What many tests use: the elements of arrays, random numbers, adjoints."""

import numpy as np

import structarrays as sa


def dense(x):
    """The elements of an array of this library, or of another, as an array of NumPy."""
    return np.asarray(x.to_jax()) if isinstance(x, sa.Array) else np.asarray(x)


def as_jax(x):
    """A result of either type, a `Dense` or an array of JAX, as an array of JAX."""
    return x.to_jax() if isinstance(x, sa.Array) else x


def random(shape, dtype=np.float64, seed=0):
    """Random numbers of a real or complex dtype, which depend on the shape."""
    rng = np.random.default_rng([seed, *shape])
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.issubdtype(dtype, np.complexfloating) else x).astype(dtype)


def normal(*shape, seed=0, dtype=float):
    """Random numbers, real or complex."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype is complex else 0)


def adjoint(a):
    """The conjugate transposes of matrices."""
    return np.swapaxes(a, -1, -2).conj()
