"""Periodic band matrices on plain JAX arrays: ``d_k[i] = A[i, (i + k) mod n]`` for each offset k, vectors (..., n).

The order 0, n - 1, 1, n - 2, … of rows and columns folds a periodic band matrix to a band matrix with twice the
bandwidth and no corners. Therefore all solvers for band matrices apply, with pivoting. No update formula divides by a
number that may be zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


def normalised(offset: int, n: int) -> int:
    """Return the offset modulo n that is nearest to zero; of two, the positive one."""
    k = offset % n
    return k if 2 * k <= n else k - n


def fold(v: jax.Array, axis: int = -1) -> jax.Array:
    """Permute a vector (or the rows or columns of a matrix) to the order ``0, n - 1, 1, n - 2, ...``."""
    v = jnp.moveaxis(v, axis, -1)
    n = v.shape[-1]
    half = (n + 1) // 2
    front, back = v[..., :half], v[..., half:][..., ::-1]
    back = jnp.concatenate(
        [back, front[..., n - half :]], axis=-1
    )  # if n is odd, one additional element, which is cut off
    pairs = jnp.stack([front, back], axis=-1)
    return jnp.moveaxis(pairs.reshape((*v.shape[:-1], 2 * half))[..., :n], -1, axis)


def unfold(v: jax.Array, axis: int = -1) -> jax.Array:
    """Invert `fold`."""
    v = jnp.moveaxis(v, axis, -1)
    return jnp.moveaxis(jnp.concatenate([v[..., 0::2], v[..., 1::2][..., ::-1]], axis=-1), -1, axis)


def _places(i: np.ndarray, n: int) -> np.ndarray:
    """Return the indices of elements in the order of `fold`."""
    return np.where(i < (n + 1) // 2, 2 * i, 2 * (n - 1 - i) + 1)


def _exceptions(offsets: tuple[int, ...], n: int) -> list[tuple[int, np.integer, np.integer, np.integer]]:
    """Return the entries whose columns are in the other half: (offset, row) to the folded row and the folded offset.

    All other entries with offset k are on the diagonal 2 k if their row is in the first half, and on -2 k otherwise.
    """
    w, half = max(map(abs, offsets)), (n + 1) // 2
    near = [range(w), range(half - w, half + w), range(n - w, n)]
    rows = np.unique([i for part in near for i in part if 0 <= i < n]).astype(int)
    found: list[tuple[int, np.integer, np.integer, np.integer]] = []
    for k in offsets:
        there = _places((rows + k) % n, n) - _places(rows, n)
        crosses = there != np.where(rows < half, 2 * k, -2 * k)
        found += zip([k] * n, rows[crosses], _places(rows[crosses], n), there[crosses], strict=False)
    return found


def folded(diagonals: Sequence[jax.Array], offsets: tuple[int, ...], n: int) -> tuple[list[jax.Array], tuple[int, ...]]:
    """Return the diagonals (..., n - abs(t)) of the band matrix after `fold` of rows and columns, and their offsets t.

    The offsets increase. They are at most twice as far from zero as the largest of the periodic offsets, which must be
    `normalised` and distinct.
    """
    half = (n + 1) // 2
    exceptions = _exceptions(offsets, n)
    by_offset = dict(zip(offsets, diagonals, strict=True))
    like = jnp.zeros_like(diagonals[0])
    uncrossed = {}
    for k in offsets:
        crossing = np.array([i for other, i, _, _ in exceptions if other == k], int)
        uncrossed[k] = jnp.where(jnp.zeros(n, bool).at[crossing].set(True), 0, by_offset[k])
    rows = {}
    for t in sorted({s * k for k in offsets for s in (2, -2)}):
        k = t // 2
        front, back = uncrossed.get(k, like), uncrossed.get(-k, like)
        rows[t] = fold(jnp.concatenate([front[..., :half], back[..., half:]], axis=-1))
    for t in sorted({int(t) for *_, t in exceptions}):
        chosen = [(k, i, p) for k, i, p, there in exceptions if there == t]
        values = jnp.stack([by_offset[k][..., i] for k, i, _ in chosen], axis=-1)
        places = np.array([p for *_, p in chosen])
        rows[t] = rows.get(t, like).at[..., places].add(values)
    kept = tuple(t for t in sorted(rows) if abs(t) < n)
    return [rows[t][..., max(0, -t) : n - max(0, t)] for t in kept], kept


def unfolded(diagonals: Sequence[jax.Array], offsets: tuple[int, ...], n: int) -> list[jax.Array]:
    """Return the periodic diagonals at `offsets` of a folded band matrix: the inverse of `folded`.

    `folded` only moves the entries of the diagonals, so its transpose moves them back.
    """
    like = [jax.ShapeDtypeStruct((*diagonals[0].shape[:-1], n), diagonals[0].dtype)] * len(offsets)
    back = jax.linear_transpose(lambda *moved: folded(moved, offsets, n)[0], *like)
    return list(back(list(diagonals)))
