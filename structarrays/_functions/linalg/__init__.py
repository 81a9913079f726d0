"""Linear algebra: the ``linalg`` extension of the Array API standard, functions of SciPy, and further functions."""

import typing as _typing

from ..._core.hints import LINALG as _LINALG
from ..._core.hints import hint as _hint
from ..linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from .approximation import compress
from .banded_forms import cho_solve_banded, cholesky_banded, solve_banded, solveh_banded
from .factorizations import cho_factor, cho_solve, lu, lu_factor, lu_solve
from .indefinite import ldl
from .least_squares import lstsq
from .matrix_functions import expm, expm_multiply, logdet, sqrtm
from .norms import cross, diagonal, matrix_norm, outer, trace, vector_norm
from .selected_inverse import selected_inverse
from .sparse_solvers import register_sparse_solver, use_sparse_solver
from .spectra import eig, eigh, eigvals, eigvalsh, qr, svd, svdvals
from .systems import cholesky, det, inv, matrix_power, matrix_rank, pinv, slogdet, solve
from .toeplitz_forms import matmul_toeplitz, solve_circulant, solve_toeplitz
from .triangular import solve_triangular

__all__ = [
    "cho_factor",
    "cho_solve",
    "cho_solve_banded",
    "cholesky",
    "cholesky_banded",
    "compress",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "expm_multiply",
    "inv",
    "ldl",
    "logdet",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "matmul",
    "matmul_toeplitz",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "register_sparse_solver",
    "selected_inverse",
    "slogdet",
    "solve",
    "solve_banded",
    "solve_circulant",
    "solve_toeplitz",
    "solve_triangular",
    "solveh_banded",
    "sqrtm",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "use_sparse_solver",
    "vecdot",
    "vector_norm",
]


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


if not _typing.TYPE_CHECKING:  # otherwise a type checker would accept every name

    def __getattr__(name):
        raise AttributeError(f"module 'structarrays.linalg' has no attribute {name!r}{_hint(_LINALG, name)}")
