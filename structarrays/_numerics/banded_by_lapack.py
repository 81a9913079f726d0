"""Cholesky factorizations and linear systems of square banded matrices by LAPACK, with their derivatives.

These are the methods (see `banded_systems`) that `banded_elimination` takes for wide bands.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from . import banded_cholesky, banded_systems, lapack_bands
from .flags import custom_jvp
from .undefined import nan_unless

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._core.typing import DTypeLike

# The narrowest bands for which LAPACK is faster than our loops, in linear systems with definite matrices, Cholesky factors, elimination
# without pivoting and determinants, and elimination with pivoting.
DEFINITE = 10
CHOLESKY = 10
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


def cholesky(
    stored: dict[int, jax.Array], n: int, w: int, dtype: DTypeLike, hermitian: bool
) -> tuple[tuple[jax.Array, ...], jax.Array]:
    """Cholesky factor of the Hermitian part of matrices with w diagonals on either side, some of which are `stored` by their offsets.

    If the matrices are `hermitian`, their superdiagonals are read for derivatives only.

    Returns
    -------
    diagonals : tuple of jax.Array
        The diagonals of the lower factor, from the main diagonal down.
    ok : jax.Array, bool scalar
        Whether all matrices are positive definite.
    """
    batch = next(iter(stored.values())).shape[:-1]

    def diagonal(k: int) -> jax.Array:
        return stored[k].astype(dtype) if k in stored else jnp.zeros((*batch, n - abs(k)), dtype)

    below, above = (tuple(diagonal(sign * k) for k in range(start, w + 1)) for sign, start in ((-1, 0), (1, 1)))
    results: tuple[tuple[jax.Array, ...], jax.Array] = _cholesky(hermitian, below, above)
    return results


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _cholesky(
    hermitian: bool, below: tuple[jax.Array, ...], above: tuple[jax.Array, ...]
) -> tuple[tuple[jax.Array, ...], jax.Array]:
    def whole_batch(*diagonals: jax.Array) -> tuple[jax.Array, ...]:
        factor, ok = lapack_bands.cholesky(diagonals[: len(below)], diagonals[len(below) :])
        return *factor, jnp.all(ok)

    read = below if hermitian else (*below, *above)
    *factor, ok = banded_systems.mapped_together(whole_batch, (*(True for _ in below), False))(*read)
    return tuple(factor), ok


@_cholesky.defjvp
def _cholesky_jvp(
    hermitian: bool,
    primals: tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]],
    tangents: tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]],
) -> tuple[tuple[tuple[jax.Array, ...], jax.Array], tuple[tuple[jax.Array, ...], jax.Array]]:
    factor, ok = _cholesky(hermitian, *primals)
    (main, *below), above = tangents
    lower = main.real.astype(main.dtype), *((d + e.conj()) / 2 for d, e in zip(below, above, strict=True))
    change = banded_cholesky.change_of_factor(factor, lower)
    return (factor, ok), (change, jnp.zeros(ok.shape, jax.dtypes.float0))
