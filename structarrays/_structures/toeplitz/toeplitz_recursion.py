"""General Toeplitz systems by Levinson's recursion, in SciPy's compiled code on the host: ``O(n**2)`` for each system.

The recursion takes about a tenth of the time of elimination with pivots (`toeplitz_elimination`). It does not pivot: it
loses digits if a leading minor is nearly singular, and fails if one is singular (N. Levinson, "The Wiener RMS error
criterion in filter design and prediction", Journal of Mathematics and Physics 25 (1947), 261-278; Golub and Van Loan,
*Matrix Computations*, 4th edition, 4.7). So its solutions are approximations, whose residuals must be checked.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..._numerics.host_calls import on_cpu


def solve(values: jax.Array, b: jax.Array) -> jax.Array:
    """Return approximate solutions; NaN if the recursion fails, or for input that is not finite.

    Parameters
    ----------
    values : jax.Array, (..., 2 n - 1)
        The diagonals, with numbers of magnitude about 1.
    b : jax.Array, (..., n, k)
        The right-hand sides, of the same dtype and batch shape.

    Returns
    -------
    jax.Array, (..., n, k)
    """
    return on_cpu(_by_scipy, _without_recursion, (jax.ShapeDtypeStruct(b.shape, b.dtype),), values, b)[0]


def _without_recursion(values: jax.Array, b: jax.Array) -> tuple[jax.Array]:
    """Return no solution, which leaves all systems to the elimination with pivots."""
    return (jnp.full_like(b, jnp.nan),)


def _by_scipy(x: np.ndarray, values: np.ndarray, b: np.ndarray) -> None:
    from scipy.linalg import solve_toeplitz  # type: ignore[import-untyped]  # SciPy has no type stubs

    *batch, n, k = b.shape
    x[...] = np.nan
    for i in np.ndindex(*batch):
        if not np.isfinite(values[i]).all():
            continue
        column_and_row = values[i][n - 1 :: -1], values[i][n - 1 :]
        for j in range(k):
            if not np.isfinite(b[i][:, j]).all():
                continue
            try:
                found = solve_toeplitz(column_and_row, b[i][:, j], check_finite=False)
            except np.linalg.LinAlgError:  # a singular leading minor, for every right-hand side
                break
            with np.errstate(over="ignore", invalid="ignore"):  # SciPy computes in 64 bits
                x[i][:, j] = found
