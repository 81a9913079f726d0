"""Cholesky factorizations and linear systems of square banded matrices by LAPACK, with their derivatives.

These are the methods (see `banded_systems`) that `banded_elimination` takes for wide bands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from . import banded_cholesky, banded_systems, lapack_bands
from .flags import custom_jvp
from .undefined import nan_unless

if TYPE_CHECKING:
    from collections.abc import Sequence

# The narrowest bands for which LAPACK is faster than our loops, in linear systems with definite matrices, Cholesky factors, elimination
# without pivoting and determinants, and elimination with pivoting.
DEFINITE = 10
CHOLESKY = 14
GENERAL = 7
PIVOTED = 2


def lower_diagonals(diagonals: Sequence[jax.Array], offsets: Sequence[int], n: int) -> dict[int, jax.Array]:
    """The diagonals from the main diagonal down, by their offsets; the main diagonal may be zero."""
    main = jnp.zeros((*diagonals[0].shape[:-1], n), diagonals[0].dtype)
    return {0: main, **{k: d for d, k in zip(diagonals, offsets, strict=True) if k <= 0}}


def factor_definite(*diagonals: jax.Array, offsets: Sequence[int], n: int) -> tuple[jax.Array, jax.Array]:
    """Factors for `solve_definite`."""
    return lapack_bands.factor_definite(_hermitian(lower_diagonals(diagonals, offsets, n)), n)


def _hermitian(lower: dict[int, jax.Array]) -> dict[int, jax.Array]:
    """Drop the imaginary part of the main diagonal."""
    return {k: d if k else d.real.astype(d.dtype) for k, d in lower.items()}


def solve_definite_once(*args: jax.Array, offsets: Sequence[int], n: int) -> tuple[jax.Array, jax.Array]:
    """Solve without derivatives."""
    *diagonals, b = args
    x, ok = lapack_bands.factor_and_solve_definite(_hermitian(lower_diagonals(diagonals, offsets, n)), n, b)
    return x, jnp.all(ok)


def solve_definite(*args: jax.Array, transposed: bool) -> tuple[jax.Array, jax.Array]:
    """A method: substitution with a Cholesky factor."""
    *_, columns, ok, b = args
    return lapack_bands.solve_definite(columns, b, transposed=transposed), jnp.all(ok)


def factor_general(*diagonals: jax.Array, offsets: Sequence[int], n: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Factors for `solve_general`."""
    return lapack_bands.factor(diagonals, offsets, n)


def solve_general_once(
    *args: jax.Array, offsets: Sequence[int], n: int, transposed: bool = False
) -> tuple[jax.Array, jax.Array]:
    """Solve without derivatives."""
    *diagonals, b = args
    x, ok = lapack_bands.factor_and_solve(diagonals, offsets, n, b, transposed=transposed)
    return nan_unless(ok[..., None, None], x), jnp.all(ok)


def solve_general(*args: jax.Array, kl: int, transposed: bool) -> tuple[jax.Array, jax.Array]:
    """A method: substitution with LU factors."""
    *_, columns, pivots, ok, b = args
    x = lapack_bands.solve(columns, pivots, b, kl, transposed=transposed)
    return nan_unless(ok[..., None, None], x), jnp.all(ok)


def cholesky(lower: dict[int, jax.Array], n: int) -> tuple[tuple[jax.Array, ...], jax.Array]:
    """The diagonals of the lower Cholesky factor, from the main diagonal down, and whether all matrices are positive definite.

    `lower` has diagonals of the matrix from the main diagonal down.
    """
    w = -min(lower)
    zero = jnp.zeros((), jnp.result_type(*lower.values()))
    batch = next(iter(lower.values())).shape[:-1]
    whole = {-k: lower.get(-k, jnp.broadcast_to(zero, (*batch, n - k))) for k in range(w + 1)}
    results: tuple[tuple[jax.Array, ...], jax.Array] = _cholesky(tuple(_hermitian(whole).values()))
    return results


@custom_jvp
def _cholesky(lower: tuple[jax.Array, ...]) -> tuple[tuple[jax.Array, ...], jax.Array]:
    def whole_batch(*lower: jax.Array) -> tuple[jax.Array, ...]:
        factor, ok = lapack_bands.cholesky({-k: d for k, d in enumerate(lower)}, lower[0].shape[-1])
        return *factor, jnp.all(ok)

    *factor, ok = banded_systems.mapped_together(whole_batch, (*(True for _ in lower), False))(*lower)
    return tuple(factor), ok


@_cholesky.defjvp
def _cholesky_jvp(
    primals: tuple[tuple[jax.Array, ...]], tangents: tuple[tuple[jax.Array, ...]]
) -> tuple[tuple[tuple[jax.Array, ...], jax.Array], tuple[tuple[jax.Array, ...], jax.Array]]:
    factor, ok = _cholesky(*primals)
    n = factor[0].shape[-1]
    columns, change = (
        jnp.stack([jnp.pad(d, [(0, 0)] * (d.ndim - 1) + [(0, n - d.shape[-1])]) for d in part], -1)
        for part in (factor, *tangents)
    )
    change = jnp.vectorize(banded_cholesky.cholesky_tangent, signature="(n,w),(n,w)->(n,w)")(columns, change)
    diagonals = tuple(change[..., : n - k, k] for k in range(len(factor)))
    return (factor, ok), (diagonals, jnp.zeros(ok.shape, jax.dtypes.float0))
