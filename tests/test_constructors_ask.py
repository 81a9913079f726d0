"""Constructors and builders of structured parts: they keep the parts, or ask the policy of `densify` before a matrix becomes dense."""

import jax
import numpy as np
import pytest
from support import as_jax

import structarrays as sa
from structarrays.interop import scipy as interop_scipy

ROWS = 60


def toeplitz():
    return sa.Toeplitz(np.arange(1.0, ROWS + 1))


ASK = {
    "BlockDiagonal": lambda t: sa.BlockDiagonal([t, t]),
    "BlockDiagonal of a sum": lambda t: sa.BlockDiagonal(
        [sa.Kronecker(t[:6, :6], np.ones((10, 10))) + sa.eye(ROWS)] * 2
    ),
    "BlockDiagonal of a stack": lambda t: sa.BlockDiagonal(t[None, ...]),
    "BlockDiagonal.from_dense": lambda t: sa.BlockDiagonal.from_dense(t, ROWS),
    "BlockBanded": lambda t: sa.BlockBanded([t[None, ...]], (0,), (ROWS, ROWS)),
    "BlockBanded.from_dense": lambda t: sa.BlockBanded.from_dense(t, ROWS, offsets=(0,)),
    "block_tridiagonal": lambda t: sa.block_tridiagonal(
        np.ones((0, ROWS, ROWS)), t[None, ...], np.ones((0, ROWS, ROWS))
    ),
    "Symmetric": lambda t: sa.Symmetric(t),
    "Symmetric.from_dense": lambda t: sa.Symmetric.from_dense(t),
    "Hermitian": lambda t: sa.Hermitian(t, lower=False),
    "Triangular": lambda t: sa.Triangular(t),
    "Triangular.from_dense": lambda t: sa.Triangular.from_dense(sa.triu(t), lower=False),
    "Sparse.from_dense": lambda t: sa.Sparse.from_dense(t, nnz=ROWS**2),
    "Toeplitz": lambda t: sa.Toeplitz(t, t),
    "Toeplitz.from_dense": lambda t: sa.Toeplitz.from_dense(t),
    "Circulant": lambda t: sa.Circulant(t),
    "Hankel": lambda t: sa.Hankel(t, t),
    "Diagonal": lambda t: sa.Diagonal(t),
    "Banded": lambda t: sa.Banded([t], (0,)),
    "PeriodicBanded": lambda t: sa.PeriodicBanded([t], (0,)),
    "from_dia": lambda t: sa.from_dia(t, tuple(range(ROWS)), (ROWS, ROWS)),
    "Fill": lambda t: sa.Fill(t, (2, 2)),
    "Identity": lambda t: sa.Identity(3, t),
    "asarray": lambda t: sa.asarray([t, t]),
}
"""Constructors that read all elements of an argument. The matrix is full, so only its dense form contains them."""


@pytest.mark.parametrize("name", ASK)
def test_the_policy_is_asked(name):
    t = toeplitz()
    with sa.densify("error"), pytest.raises(sa.DensifyError, match="would expand"):
        ASK[name](t)
    with sa.densify("allow", limit=8 * ROWS**2 - 1), pytest.raises(sa.DensifyError, match="above the limit"):
        ASK[name](t)
    log = sa.explain(ASK[name], t)
    assert log.densifications and sum(e.bytes for e in log.densifications) >= 8 * ROWS**2


KEEP = {
    "Kronecker": lambda t: sa.Kronecker(t, t),
    "KroneckerSum": lambda t: sa.KroneckerSum(t, t),
    "LowRank": lambda t: sa.LowRank(t, t),
    "Sum": lambda t: sa.Sum(t, sa.Diagonal(np.ones(ROWS))),
    "Product": lambda t: sa.Product(t, t),
    "Inverse": lambda t: sa.Inverse(t),
    "Block": lambda t: sa.Block([[t, None], [None, t]]),
    "diag": lambda t: sa.diag(t),
    "asarray": lambda t: sa.asarray(t),
    "vectors": lambda t: sa.Diagonal(sa.Fill(2.0, (ROWS,))),
}


@pytest.mark.parametrize("name", KEEP)
def test_parts_are_kept(name):
    with sa.densify("error"):
        KEEP[name](toeplitz())
    assert not sa.explain(KEEP[name], toeplitz()).densifications


def test_no_public_class_is_left_out():
    """Each new structure must be listed: it keeps its parts, or asks the policy."""
    classes = {n for n in dir(sa) if isinstance(getattr(sa, n), type) and issubclass(getattr(sa, n), sa.Array)}
    known = {n.partition(" ")[0].partition(".")[0] for n in (*ASK, *KEEP)}
    # Explicit requests for a dense array, constructors without a matrix as an argument, and results of other constructors.
    known |= {"Array", "Dense", "Permutation", "Fourier", "Householder", "KhatriRao"}
    assert classes <= known


def test_values_and_derivatives():
    t = toeplitz()
    np.testing.assert_array_equal(sa.BlockDiagonal([t, t]).to_dense().to_jax()[:ROWS, :ROWS], t.to_jax())
    gradient = jax.grad(lambda c: as_jax(sa.sum(sa.Triangular(sa.Toeplitz(c)))))(np.ones(5))
    np.testing.assert_array_equal(gradient, [5.0, 4.0, 3.0, 2.0, 1.0])


def test_conversions_to_scipy_ask():
    with sa.densify("error"), pytest.raises(sa.DensifyError):
        interop_scipy.to_sparse(toeplitz())
