"""`linalg.selected_inverse`: elements of the inverse at the places that a structure stores. The oracle is NumPy's inverse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa


def banded(rng, n, offsets, dominant=0.0, batch=(), dtype="float64"):
    diagonals = [rng.normal(size=(*batch, max(0, n - abs(k)))).astype(dtype) for k in offsets]
    if np.dtype(dtype).kind == "c":
        diagonals = [d + 1j * rng.normal(size=d.shape) for d in diagonals]
    if 0 in offsets:
        diagonals[offsets.index(0)] = diagonals[offsets.index(0)] + dominant
    return sa.Banded(diagonals, offsets, (n, n))


def at_pattern(inverse, offsets):
    return sum(np.triu(np.tril(inverse, k), k) for k in offsets)


@pytest.mark.parametrize(
    ("offsets", "batch", "dominant", "dtype"),
    [
        ((0,), (2,), 0.0, "float64"),
        ((-1, 0, 1), (), 25.0, "float32"),
        ((-1, 0, 1), (), 0.0, "float64"),
        ((-3, 0, 1), (2, 3), 25.0, "complex128"),
        ((0, 2), (), 0.0, "complex128"),
        ((-2, -1, 0), (2,), 25.0, "float64"),
        ((-2, 0, 1), (2, 3), 0.0, "float64"),
        ((-5, -1, 0, 4), (), 25.0, "float64"),
        ((-5, -1, 0, 4), (2,), 0.0, "complex128"),
    ],
)
def test_banded(offsets, batch, dominant, dtype, rng):
    """With exchanges of rows and without."""
    x = banded(rng, 9, offsets, dominant + (3.0 if len(offsets) == 1 else 0.0), batch, dtype)
    inverse = np.linalg.inv(np.array(x.to_jax()))
    z = sa.linalg.selected_inverse(x)
    assert isinstance(z, sa.Banded) and z.offsets == offsets and z.dtype == x.dtype
    tolerance = 1e-4 if dtype == "float32" else 1e-8
    np.testing.assert_allclose(
        as_jax(z), at_pattern(inverse, offsets), rtol=tolerance, atol=tolerance * np.abs(inverse).max()
    )


@pytest.mark.slow
def test_other_structures(rng):
    a, b = banded(rng, 5, (-1, 0, 1), 4.0), banded(rng, 4, (-2, 0, 1), 4.0)
    z = sa.linalg.selected_inverse(sa.Kronecker(a, b))
    assert type(z) is sa.Kronecker and all(type(f) is sa.Banded for f in z.factors)
    parts = [at_pattern(np.linalg.inv(np.array(as_jax(f))), f.offsets) for f in (a, b)]
    np.testing.assert_allclose(as_jax(z), np.kron(*parts), atol=1e-13)
    for x in (
        sa.asarray(rng.normal(size=(4, 4))),
        sa.BlockDiagonal(rng.normal(size=(3, 2, 2))),
        sa.Triangular(rng.normal(size=(5, 5)) + 5 * np.eye(5)),
        sa.Identity(4, 2.0),
        sa.Toeplitz(0.5 ** np.arange(300.0)),
    ):
        z = sa.linalg.selected_inverse(x)
        np.testing.assert_allclose(as_jax(z), np.linalg.inv(np.array(x.to_jax())), rtol=1e-9, atol=1e-11)


def test_sparse_matrices_at_the_places_of_the_transpose(rng):
    n = 300
    rows, columns = np.r_[np.arange(n), rng.integers(0, n, 400)], np.r_[np.arange(n), rng.integers(0, n, 400)]
    a = np.zeros((n, n))
    a[rows, columns] = rng.normal(size=len(rows))
    a[np.arange(n), np.arange(n)] += 5
    x = sa.Sparse.from_dense(a)
    inverse = np.linalg.inv(a)
    z = sa.linalg.selected_inverse(x)
    assert type(z) is sa.Sparse and z.nnz == x.nnz
    np.testing.assert_allclose(as_jax(z), np.where(a.T != 0, inverse, 0), atol=1e-13)
    np.testing.assert_allclose(as_jax(sa.linalg.diagonal(z)), np.diag(inverse), atol=1e-13)
    mapped = jax.jit(jax.vmap(sa.linalg.selected_inverse))(sa.stack([x, 2 * x]))
    np.testing.assert_allclose(mapped.to_jax()[1], np.where(a.T != 0, inverse, 0) / 2, atol=1e-13)
    a[:, 7] = 0
    a[7, 7] = 0
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.selected_inverse(sa.Sparse.from_dense(a))


def test_singular_and_indefinite_matrices():
    singular = sa.tridiagonal([0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 1.0])
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        sa.linalg.selected_inverse(singular)
    assert np.isnan(np.array(jax.jit(sa.linalg.selected_inverse)(singular).diagonals[1])).all()
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.selected_inverse(sa.assume(sa.Diagonal([1.0, -1.0]), "positive_definite"))
    # Indefinite, with a positive diagonal of the inverse.
    indefinite = sa.tridiagonal([2 / 3], [-1 / 3, -1 / 3], [2 / 3])
    assert (np.diag(np.linalg.inv(np.array(indefinite.to_jax()))) > 0).all()
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.selected_inverse(sa.assume(indefinite, "positive_definite"))
    with pytest.raises(ValueError, match="square"):
        sa.linalg.selected_inverse(sa.ones((2, 3)))
    assert sa.linalg.selected_inverse(sa.eye(0)).shape == (0, 0)


@pytest.mark.slow
def test_derivatives_and_maps(rng):
    x = banded(rng, 7, (-1, 0, 2), 6.0)

    def ours(x):
        return jnp.sum(as_jax(sa.linalg.diagonal(sa.linalg.selected_inverse(x))) ** 2)

    def dense(x):
        return jnp.sum(jnp.diagonal(jnp.linalg.inv(x.to_jax())) ** 2)

    for found, wanted in zip(jax.tree.leaves(jax.grad(ours)(x)), jax.tree.leaves(jax.grad(dense)(x)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    many = banded(rng, 7, (-1, 0, 2), 6.0, batch=(3,))
    mapped = jax.vmap(sa.linalg.selected_inverse)(many)
    np.testing.assert_allclose(mapped.to_jax(), as_jax(sa.linalg.selected_inverse(many)), atol=1e-14)


def test_memory_and_a_million_rows():
    n = 10**6
    x = sa.tridiagonal(-np.ones(n - 1), np.full(n, 3.0), -np.ones(n - 1))
    compiled = jax.jit(sa.linalg.selected_inverse).lower(x).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 60 * 8 * n
    z = sa.linalg.selected_inverse(x)
    np.testing.assert_allclose(z.diagonals[1][n // 2], 1 / np.sqrt(5), rtol=1e-14)
