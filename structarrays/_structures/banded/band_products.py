"""Products of two matrices stored by diagonals (see `bands`), with derivatives that are loops.

A product of two matrices with p and q diagonals is a sum of p q terms: one expression for each diagonal of the product,
which XLA fuses. Derivatives with many terms are loops over the diagonals of one factor. Otherwise XLA would compute a
diagonal of the product again in each term of the derivative that reads it, and the size of the compiled program would
grow with the cube of the number of diagonals.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._numerics.bands import diagonal_length, pad_axis, transpose
from ..._numerics.flags import custom_jvp
from ..._numerics.symbolic import is_symbolic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from ..._core.typing import Shape

    Diagonals: TypeAlias = tuple[jax.Array, ...]
    Terms: TypeAlias = tuple[tuple[int, tuple[tuple[int, int, int, int], ...]], ...]
    """The terms of each offset of the product: both offsets, the first row of the product, and the end of its rows."""
    Plan: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], tuple[int, int, int], Terms]
    """The offsets of both factors, the sizes ``(m, inner, n)``, and the terms."""
    Multiply: TypeAlias = Callable[[Plan, Diagonals, Diagonals], Diagonals]

# The largest numbers of terms for which a product, and a product that is differentiated, are unrolled. Loops are slower
# below. Above, the derivative is slower without loops, and both take seconds to compile.
_UNROLLED_TERMS, _UNROLLED_DERIVATIVE = 512, 128

_LONGEST = np.iinfo(np.int32).max
"""The longest vector of diagonals, whose windows begin at 32-bit integers."""


def band_matmul(
    diagonals1: Sequence[jax.Array],
    offsets1: Sequence[int],
    shape1: Shape,
    diagonals2: Sequence[jax.Array],
    offsets2: Sequence[int],
    shape2: Shape,
) -> tuple[tuple[jax.Array, ...], tuple[int, ...]]:
    """Multiply two banded matrices; bandwidths add.

    Returns
    -------
    diagonals, offsets
        The product, with shape ``(shape1[0], shape2[1])``. It has only diagonals to which some pair contributes.
    """
    (m, inner), n = shape1, shape2[1]
    # The terms at offset k cover the rows `first` to `last` of the product, where all three entries exist.
    rows: dict[int, list[tuple[int, int, int, int]]] = {}
    for k1 in offsets1:
        for k2 in offsets2:
            first, last = max(0, -k1, -k1 - k2), min(m, inner - k1, n - k1 - k2)
            if first < last:
                rows.setdefault(k1 + k2, []).append((k1, k2, first, last))
    offsets = tuple(sorted(rows))
    if not offsets:
        return (), ()
    static = (tuple(offsets1), tuple(offsets2), (m, inner, n), tuple((k, tuple(rows[k])) for k in offsets))
    count = sum(map(len, rows.values()))
    product: Multiply = _by_loop if count > _UNROLLED_TERMS else _unrolled
    if count > _UNROLLED_DERIVATIVE:
        product = functools.partial(_with_loops_for_derivatives, product)
    return product(static, tuple(diagonals1), tuple(diagonals2)), offsets


def _unrolled(static: Plan, diagonals1: Diagonals, diagonals2: Diagonals) -> Diagonals:
    offsets1, offsets2, shape, rows = static
    d1, d2 = dict(zip(offsets1, diagonals1, strict=True)), dict(zip(offsets2, diagonals2, strict=True))
    products = []
    for k, terms in rows:
        start, length = max(0, -k), diagonal_length(shape[::2], k)
        parts = []
        for k1, k2, first, last in terms:
            a = lax.slice_in_dim(d1[k1], first - max(0, -k1), last - max(0, -k1), axis=-1)
            b = lax.slice_in_dim(d2[k2], first + k1 - max(0, -k2), last + k1 - max(0, -k2), axis=-1)
            parts.append(pad_axis(a * b, first - start, start + length - last, -1))
        products.append(functools.reduce(jnp.add, parts))
    return tuple(products)


@functools.partial(custom_jvp, nondiff_argnums=(0, 1))
def _with_loops_for_derivatives(
    product: Multiply,
    static: Plan,
    diagonals1: Diagonals,
    diagonals2: Diagonals,
) -> Diagonals:
    return product(static, diagonals1, diagonals2)


@_with_loops_for_derivatives.defjvp
def _product_jvp(
    product: Multiply,
    static: Plan,
    primals: tuple[Diagonals, Diagonals],
    tangents: tuple[Diagonals, Diagonals],
) -> tuple[Diagonals, Diagonals]:
    """Loop over the diagonals of the tangents; in the transposes of these loops no accumulator is copied.

    The product is a loop, too: XLA would compute an expression again wherever the derivative reads it.
    """
    (diagonals1, diagonals2), (change1, change2) = primals, tangents
    offsets1, offsets2, (m, inner, n), rows = static
    mirrored = tuple(
        (-k, tuple((-k2, -k1, first + k, last + k) for k1, k2, first, last in terms)) for k, terms in rows[::-1]
    )
    (change2, below2), (diagonals1_, below1) = transpose(change2, offsets2), transpose(diagonals1, offsets1)
    left = _by_loop(static, change1, diagonals2)
    right = _by_loop((below2, below1, (n, inner, m), mirrored), change2, diagonals1_)
    changes = tuple(a + b for a, b in zip(left, right[::-1], strict=True))
    return _by_loop(static, diagonals1, diagonals2), changes


def _by_loop(static: Plan, diagonals1: Diagonals, diagonals2: Diagonals) -> Diagonals:
    """Multiply in a loop over the diagonals of the first factor, each of which scales all diagonals of the second."""
    offsets1, offsets2, (m, inner, n), rows = static
    places = {k: place for place, (k, _) in enumerate(rows)}
    # Terms outside the matrix go to an extra slot, which is dropped at the end.
    table = np.array([[places.get(k1 + k2, len(rows)) for k2 in offsets2] for k1 in offsets1], np.int32)
    # Row i of the product takes entry i of `first` and entry i + k1 of `second`. If one of them is padding, the other
    # is padding, too, or the result is outside the matrix: no padding meets an entry.
    low, high = max(0, -min(offsets1)), max(0, max(offsets1) + m - inner)
    batch = jnp.broadcast_shapes(*(d.shape[:-1] for d in (*diagonals1, *diagonals2)))
    first = _rows(diagonals1, [max(0, -k) for k in offsets1], m, len(batch))
    second = _rows(diagonals2, [max(0, -k) + low for k in offsets2], low + inner + high, len(batch))

    @jax.checkpoint  # otherwise the second derivative would keep every shifted copy of the second factor
    def step(total: jax.Array, term: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        k1, row, diagonal = term
        products = diagonal * lax.dynamic_slice_in_dim(second, k1 + low, m, -1)
        return total.at[row].add(products), None

    zero = jnp.zeros((len(rows) + 1, *batch, m), jnp.result_type(first, second))
    total, _ = lax.scan(step, zero, (np.array(offsets1, np.int32), table, first))
    results = []
    for place, (k, _) in enumerate(rows):
        start = max(0, -k)
        results.append(total[place, ..., start : start + diagonal_length((m, n), k)])
    return tuple(results)


def _rows(diagonals: Diagonals, starts: Sequence[int], size: int, ndim: int) -> jax.Array:
    """Return rows of this size that contain the diagonals from these places on, and zeros, with `ndim` batch dimensions after the first.

    The rows are windows of one vector, in which zeros separate the diagonals: to pad each of them would be a compiled
    loop of its own, which takes as long to compile as the product.
    """
    batch = jnp.broadcast_shapes(*(d.shape[:-1] for d in diagonals))
    lengths = [d.shape[-1] for d in diagonals]
    symbolic = any(map(is_symbolic, lengths))
    gap = 0 if symbolic else max(max(k, size - k - n) for k, n in zip(starts, lengths, strict=True))
    if symbolic or sum(lengths) + gap * (len(lengths) + 1) > _LONGEST:
        padded = [
            pad_axis(d, start, size - start - length, -1)
            for d, start, length in zip(diagonals, starts, lengths, strict=True)
        ]
        rows = jnp.stack(jnp.broadcast_arrays(*padded))
        return lax.expand_dims(rows, range(1, ndim - rows.ndim + 3))
    zeros = jnp.zeros((*batch, gap), jnp.result_type(*diagonals))
    parts = [zeros]
    for d in diagonals:
        parts += [jnp.broadcast_to(d, (*batch, d.shape[-1])), zeros]
    vector = jnp.concatenate(parts, axis=-1)
    before = np.cumsum([0, *lengths[:-1]]) + gap * np.arange(1, len(lengths) + 1)
    windows = (before - starts).astype(np.int32)
    rows = jax.vmap(lambda start: lax.dynamic_slice_in_dim(vector, start, size, -1))(windows)
    return lax.expand_dims(rows, range(1, ndim - rows.ndim + 3))
