"""Products with symmetric, Hermitian and triangular matrices that are cut into strips, with vectors and few columns on both sides."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax, dense

import structarrays as sa

N = 700  # three strips
COLUMNS = [None, 1, 3, 9, 150]


def numbers(rng, shape, dtype):
    if np.dtype(dtype).kind == "i":
        return rng.integers(-9, 9, shape).astype(dtype)
    values = rng.normal(size=shape)
    return (values + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def with_mirror_image(a, lower, conjugate):
    part = np.tril(a, -1) if lower else np.triu(a, 1)
    diagonal = np.diag(np.diag(a).real if conjugate else np.diag(a))
    return part + diagonal + (part.T.conj() if conjugate else part.T)


def matrix(cls, rng, lower, dtype, shape=(N, N)):
    """A matrix of which one half must not be read, and NumPy's form of it."""
    a = numbers(rng, shape, dtype)
    if cls is sa.Triangular:
        full = (np.tril if lower else np.triu)(a)
    else:
        full = with_mirror_image(a, lower, cls is sa.Hermitian)
    if a.dtype.kind != "i":
        a[~(np.tri(*shape, dtype=bool) if lower else np.tri(*shape[::-1], dtype=bool).T)] = np.nan
    return cls(a, lower=lower), full


def close(found, expected):
    tolerance = 1e-4 if found.dtype.itemsize == 4 else 1e-12
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_allclose(dense(found), expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("columns", COLUMNS, ids=str)
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize(
    ("cls", "dtype"),
    [
        (sa.Symmetric, "float64"),
        (sa.Symmetric, "complex128"),
        (sa.Symmetric, "int64"),
        (sa.Hermitian, "complex128"),
        (sa.Hermitian, "float32"),
        (sa.Triangular, "float64"),
        (sa.Triangular, "complex128"),
        (sa.Triangular, "int64"),
    ],
)
def test_values(cls, dtype, lower, columns, rng):
    x, a = matrix(cls, rng, lower, dtype)
    b = numbers(rng, (N,) if columns is None else (N, columns), dtype)
    close(x @ sa.asarray(b), a @ b)
    close(sa.asarray(b.T) @ x, b.T @ a)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("shape", [(300, 700), (700, 300)], ids=str)
def test_rows_times_rectangular_triangles(shape, lower, rng):
    x, a = matrix(sa.Triangular, rng, lower, "float64", shape)
    for rows in (None, 2, 12):
        b = rng.normal(size=shape[0] if rows is None else (rows, shape[0]))
        close(sa.asarray(b) @ x, b @ a)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("cls", [sa.Symmetric, sa.Hermitian, sa.Triangular])
def test_elements_that_are_not_finite(cls, value, rng):
    """Structural zeros absorb them; the other elements give what NumPy's products with these elements give."""
    x, a = matrix(cls, rng, True, "float64")
    b = rng.normal(size=N)
    b[300] = value
    row, column = a[300], a[:, 300]
    for found, factors in ((x @ sa.asarray(b), column), (sa.asarray(b) @ x, row)):
        stored = factors != 0
        np.testing.assert_array_equal(np.isfinite(dense(found)), ~stored)
        if value == np.inf:
            np.testing.assert_array_equal(dense(found)[stored], np.sign(factors[stored]) * np.inf)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("cls", [sa.Symmetric, sa.Hermitian, sa.Triangular])
def test_derivatives_and_transformations(cls, side, rng):
    dtype = "complex128" if cls is sa.Hermitian else "float64"
    (x, a), (dx, da) = (matrix(cls, rng, True, dtype) for _ in range(2))
    b, db, w = (numbers(rng, N, dtype) for _ in range(3))

    def product(x, b):
        return as_jax(x @ b if side == "right" else b @ x)

    def by_numpy(a, b):
        return a @ b if side == "right" else b @ a

    found, change = jax.jvp(product, (x, jnp.asarray(b)), (dx, jnp.asarray(db)))
    close(found, by_numpy(a, b))
    close(change, by_numpy(da, b) + by_numpy(a, db))
    close(jax.linear_transpose(lambda b: product(x, b), jnp.asarray(b))(jnp.asarray(w))[0], by_numpy(a.T, w))
    several = jax.vmap(product, in_axes=(None, 0))(x, jnp.asarray([b, db]))
    close(several, np.stack([by_numpy(a, b), by_numpy(a, db)]))
    stacked = jax.tree.map(lambda first, second: jnp.stack([first, second]), x, dx)
    close(jax.vmap(product, in_axes=(0, None))(stacked, jnp.asarray(b)), np.stack([by_numpy(a, b), by_numpy(da, b)]))
    if cls is not sa.Hermitian:
        slope = jax.grad(lambda x: jnp.vdot(w, product(x, jnp.asarray(b))))(x)
        full = np.outer(w, b) if side == "right" else np.outer(b, w)
        expected = np.tril(full) if cls is sa.Triangular else np.tril(full) + np.tril(full.T, -1)
        close(jax.tree.leaves(slope)[0], expected)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("cls", [sa.Symmetric, sa.Triangular])
def test_no_matrix_is_transposed(cls, lower, side):
    """XLA takes ten times as long for the transpose as for the product."""
    n = 2000
    x, v = cls(jnp.ones((n, n)), lower=lower), jnp.ones(n)
    compiled = jax.jit(lambda x, v: as_jax(x @ v if side == "right" else v @ x)).lower(x, v).compile()
    moved = re.findall(r"f64\[(\d+),(\d+)\]\S* (?:transpose|copy)\(", compiled.as_text())
    assert all(int(rows) * int(columns) <= n * n / 16 for rows, columns in moved)
    assert compiled.memory_analysis().temp_size_in_bytes < 0.7 * 8 * n * n
