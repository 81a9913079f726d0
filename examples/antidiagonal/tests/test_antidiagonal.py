"""Equivalence tests of structarrays for `Antidiagonal`, and tests of the kernels against NumPy."""

import jax
import numpy as np
import pytest
from antidiagonal import Antidiagonal

import structarrays as sa
from structarrays.testing import check_structure

FUNCTIONS = ["add", "exp", "multiply", "matrix_transpose", "matmul", "linalg.solve", "linalg.det", "__getitem__", "sum"]


def test_equivalence():
    report = check_structure(Antidiagonal, functions=FUNCTIONS)
    report.raise_if_wrong()
    assert {"exp", "matrix_transpose"} <= set(report.kept)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_kernels(n):
    values = np.arange(1.0, n + 1)
    x, dense = Antidiagonal(values), np.diag(values)[:, ::-1]
    np.testing.assert_array_equal(np.asarray(x), dense)
    with sa.densify("error"):
        product, determinant = x @ x, sa.linalg.det(x)
        solution = jax.jit(sa.linalg.solve)(x, sa.ones(n))
    assert type(product) is sa.Diagonal
    np.testing.assert_allclose(np.asarray(product), dense @ dense)
    np.testing.assert_allclose(float(determinant), np.linalg.det(dense), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(solution), np.linalg.solve(dense, np.ones(n)), rtol=1e-6)


def test_singular():
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.solve(Antidiagonal([1.0, 0.0]), sa.ones(2))


@pytest.mark.parametrize("n", range(1, 10))
def test_trace_of_fourier_matrices(n):
    x = sa.Fourier(n)
    np.testing.assert_allclose(complex(sa.linalg.trace(x)), np.trace(np.asarray(x)), atol=1e-5)
    assert "trace_fourier" in str(sa.explain(sa.linalg.trace, x))
