"""The standard's ``linalg`` extension, `compress` and functions of SciPy's: the names of the module, defined in files by chapter."""

from .approximation import compress
from .linalg_norms import cross, diagonal, matrix_norm, outer, trace, vector_norm
from .linalg_solvers import cholesky, det, inv, matrix_power, matrix_rank, pinv, slogdet, solve
from .linalg_spectra import eig, eigh, eigvals, eigvalsh, qr, svd, svdvals
from .linalg_toeplitz import matmul_toeplitz, solve_circulant, solve_toeplitz
from .linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from .selected_inverse import selected_inverse

__all__ = [
    "cholesky",
    "compress",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matmul_toeplitz",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "selected_inverse",
    "slogdet",
    "solve",
    "solve_circulant",
    "solve_toeplitz",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
