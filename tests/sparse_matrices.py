"""Sparse matrices of SciPy that the tests of solvers have in common."""

import numpy as np
import scipy.sparse


def random_matrix(n=300, row=4, dtype=np.float64, seed=0, shift=3.0):
    """A regular unsymmetric matrix with about `row` entries next to the diagonal in each row."""
    rng = np.random.default_rng(seed)
    matrix = scipy.sparse.random_array((n, n), density=row / n, rng=rng, data_sampler=rng.standard_normal)
    if np.dtype(dtype).kind == "c":
        matrix = matrix + 1j * scipy.sparse.random_array((n, n), density=row / n, rng=rng)
    return (matrix + scipy.sparse.diags_array(shift + rng.random(n))).tocsc().astype(dtype)


def laplacian(m, dtype=np.float64):
    """The five-point Laplacian of an m × m grid, positive definite; a complex one with phases, Hermitian."""
    phase = np.exp(0.3j) if np.dtype(dtype).kind == "c" else 1.0
    line = scipy.sparse.diags_array([-np.conj(phase) * np.ones(m - 1), -phase * np.ones(m - 1)], offsets=[-1, 1])
    eye = scipy.sparse.eye_array(m)
    matrix = scipy.sparse.kron(line, eye) + scipy.sparse.kron(eye, line) + 4.2 * scipy.sparse.eye_array(m * m)
    return matrix.tocsc().astype(dtype)
