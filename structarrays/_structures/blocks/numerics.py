"""Runs of equal blocks along a (block) diagonal, as plain JAX arrays.

A *run* is ``blocks (..., k, h, w)``: k blocks of h × w. Each block begins at the lower right corner of the previous
block, so that they are the diagonal blocks of a ``k h × k w`` matrix.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import lax

from ..._numerics.bands import diagonal_length, pad_axis

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import jax
    from jax.typing import ArrayLike


def spread(blocks: jax.Array, background: jax.Array | None = None) -> jax.Array:
    """Matrix with these diagonal blocks, as an expression that XLA fuses.

    Parameters
    ----------
    blocks : jax.Array, (..., k, h, w)
    background : jax.Array, (...), optional
        The value of everything else; zero if None.

    Returns
    -------
    jax.Array, (..., k h, k w)
    """
    *batch, k, h, w = blocks.shape
    if k == 1:
        return blocks[..., 0, :, :]
    fill = jnp.zeros((), blocks.dtype) if background is None else background[..., None, None, None, None]
    place = [lax.broadcasted_iota(jnp.int32, (k, 1, k, 1), axis) for axis in (0, 2)]
    return jnp.where(place[0] == place[1], blocks[..., :, :, None, :], fill).reshape(*batch, k * h, k * w)


def collect(data: jax.Array, k: int, h: int, w: int) -> jax.Array:
    """Return the diagonal blocks of a matrix: the inverse of `spread`.

    Parameters
    ----------
    data : jax.Array, (..., k h or 1, k w or 1)
        It is broadcast against the matrix, without being materialised.

    Returns
    -------
    jax.Array, (..., k, h, w)
    """
    *batch, rows, columns = data.shape
    if rows == k * h and columns == k * w:
        if k == 1:
            return data[..., None, :, :]
        if k == 0:
            return data.reshape(*batch, 0, h, w)
        # Block t begins t (h k w + w) elements into the flat matrix. With one block row of padding this is a reshape
        # and slices, which XLA fuses; an index array would be a gather.
        flat = jnp.pad(data.reshape(*batch, k * h * k * w), [(0, 0)] * len(batch) + [(0, k * w)])
        panels = flat.reshape(*batch, k, h * k * w + w)[..., : h * k * w]
        return panels.reshape(*batch, k, h, k * w)[..., :w]
    if rows == k * h:
        data = data.reshape(*batch, k, h, 1)
    elif columns == k * w:
        data = data.reshape(*batch, k, 1, w)
    else:
        data = data[..., None]
    return jnp.broadcast_to(data, (*batch, k, h, w))


def diagonals(blocks: jax.Array) -> jax.Array:
    """Concatenate the main diagonals of square blocks ``(..., k, b, b)``: ``(..., k b)``."""
    *batch, k, b, _ = blocks.shape
    flat = blocks.reshape(*batch, k, b * b)
    return flat[..., :: b + 1].reshape(*batch, k * b)


def multiply(blocks: jax.Array, x: jax.Array) -> jax.Array:
    """Multiply the diagonal blocks by a matrix.

    Parameters
    ----------
    blocks : jax.Array, (..., k, h, w)
    x : jax.Array, (..., k w, p)

    Returns
    -------
    jax.Array, (..., k h, p)
        The batch shapes broadcast.
    """
    k, h, w = blocks.shape[-3:]
    p = x.shape[-1]
    product = jnp.matmul(blocks, x.reshape(*x.shape[:-2], k, w, p))
    return product.reshape(*product.shape[:-3], k * h, p)


def multiply_left(x: jax.Array, blocks: jax.Array) -> jax.Array:
    """Multiply a matrix ``(..., p, k h)`` by the diagonal blocks ``(..., k, h, w)``: ``(..., p, k w)``; batch shapes
    broadcast.
    """
    k, h, w = blocks.shape[-3:]
    p = x.shape[-2]
    # Block by block, since XLA's batched product is slow for an inner batch axis (twice the time on a CPU).
    product = jnp.matmul(jnp.moveaxis(x.reshape(*x.shape[:-1], k, h), -2, -3), blocks)
    return jnp.moveaxis(product, -3, -2).reshape(*product.shape[:-3], p, k * w)


def band_matmul(
    blocks1: Sequence[jax.Array],
    offsets1: Sequence[int],
    grid1: tuple[int, int],
    blocks2: Sequence[jax.Array],
    offsets2: Sequence[int],
    grid2: tuple[int, int],
) -> dict[int, jax.Array]:
    """Product of two matrices that store block diagonals ``(..., length, h, w)`` of grids of blocks; offsets add.

    Returns
    -------
    dict
        The block diagonals of the product by offset; only those to which some pair contributes.
    """
    rows, inner = grid1
    terms: dict[int, list[jax.Array]] = {}
    for a, k1 in zip(blocks1, offsets1, strict=True):
        for b, k2 in zip(blocks2, offsets2, strict=True):
            k = k1 + k2
            # C[i, i + k] += A[i, i + k1] B[i + k1, i + k], where all three blocks exist.
            first, last = max(0, -k), max(0, -k) + diagonal_length((rows, grid2[1]), k)
            start, stop = max(first, -k1), min(last, inner - k1)
            if start >= stop:
                continue
            row1, row2 = max(0, -k1), max(0, -k2)
            product = jnp.matmul(
                lax.slice_in_dim(a, start - row1, stop - row1, axis=-3),
                lax.slice_in_dim(b, start + k1 - row2, stop + k1 - row2, axis=-3),
            )
            widths = [(0, 0)] * (product.ndim - 3) + [(start - first, last - stop), (0, 0), (0, 0)]
            terms.setdefault(k, []).append(jnp.pad(product, widths))
    return {k: functools.reduce(jnp.add, products) for k, products in terms.items()}


def layers(
    parts: Iterable[tuple[int, jax.Array]], length: int, fill: ArrayLike, axis: int, divided: bool = False
) -> list[jax.Array]:
    """Place arrays at positions along an axis, combined into as few arrays of the full length as possible.

    Parameters
    ----------
    parts : sequence of (int, jax.Array)
        The start and the array of each part. Starts increase where parts do not overlap. Shapes are equal except along the axis.
    length : int
        Length of the axis.
    fill : scalar
        The value between the parts.
    axis : int
    divided : bool
        Whether the axis is divided among devices. Then each array gets its own layer, since concatenation would make each device
        send all of its data.

    Returns
    -------
    list of jax.Array
    """
    if divided:
        return [pad_axis(part, start, length - start - part.shape[axis], axis, fill) for start, part in parts]
    rows: list[tuple[int, list[jax.Array]]] = []
    for start, part in parts:
        end = start + part.shape[axis]
        for i, (filled, pieces) in enumerate(rows):
            if filled <= start:
                rows[i] = (end, [*pieces, *_gap(part, start - filled, fill, axis), part])
                break
        else:
            rows.append((end, [*_gap(part, start, fill, axis), part]))
    return [
        lax.concatenate([*pieces, *_gap(pieces[-1], length - end, fill, axis)], pieces[-1].ndim + axis)
        for end, pieces in rows
    ]


def _gap(like: jax.Array, size: int, fill: ArrayLike, axis: int) -> list[jax.Array]:
    if size == 0:
        return []
    shape = list(like.shape)
    shape[axis] = size
    return [jnp.full(shape, fill, like.dtype)]
