"""Large matrices of every structure, without the memory of their dense forms where only shapes are asked for."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

import structarrays as sa

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 2048
"""The number of rows and columns: above every threshold below which a kernel prefers the dense form."""

BLOCK = 64
FACTOR = (32, SIZE // 32)

EXACT = ("float", "complex", "int", "bool")
INEXACT = ("float", "complex")
DTYPES = {"float": "float64", "complex": "complex128", "int": "int64", "bool": "bool"}


def _ones(*shape: int, dtype: str) -> jax.Array:
    return jnp.ones(shape, dtype)


def _tridiagonal(dtype: str) -> sa.Array:
    diagonal = jnp.full(SIZE, 4).astype(dtype)
    return sa.tridiagonal(_ones(SIZE - 1, dtype=dtype), diagonal, _ones(SIZE - 1, dtype=dtype))


def _blocks(dtype: str, blocks: int) -> jax.Array:
    return _ones(blocks, BLOCK, BLOCK, dtype=dtype)


def _band_of_blocks(dtype: str) -> sa.Array:
    count = SIZE // BLOCK
    return sa.BlockBanded([_blocks(dtype, count - abs(k)) for k in (-1, 0, 1)], (-1, 0, 1))


def _low_rank(dtype: str) -> sa.Array:
    return sa.LowRank(_ones(SIZE, 2, dtype=dtype), _ones(SIZE, 2, dtype=dtype))


def _kronecker(dtype: str) -> sa.Array:
    return sa.Kronecker(*(_ones(n, n, dtype=dtype) for n in FACTOR))


def _kronecker_sum(dtype: str) -> sa.Array:
    return sa.KroneckerSum(*(_ones(n, n, dtype=dtype) for n in FACTOR))


def _sparse(dtype: str) -> sa.Array:
    """A positive definite matrix with about three entries in each row, at random places."""
    rows, columns = np.random.default_rng(0).integers(0, SIZE, (2, SIZE))
    diagonal = np.arange(SIZE)
    places = np.unique(np.concatenate([diagonal * SIZE + diagonal, rows * SIZE + columns, columns * SIZE + rows]))
    rows, columns = places // SIZE, places % SIZE
    return sa.Sparse(np.where(rows == columns, 32, 1).astype(dtype), (rows, columns), (SIZE, SIZE))


def _permutation(dtype: str) -> sa.Array:
    return sa.Permutation(np.random.default_rng(1).permutation(SIZE), dtype=dtype)


def _householder(dtype: str) -> sa.Array:
    vectors = jnp.eye(1, 2, dtype=dtype) * _ones(SIZE, 1, dtype=dtype)
    return sa.Householder(vectors, 2 * _ones(SIZE, dtype=dtype), (SIZE, SIZE))


def _block(dtype: str) -> sa.Array:
    half = SIZE // 2
    diagonal, dense = sa.Diagonal(_ones(half, dtype=dtype)), _ones(half, half, dtype=dtype)
    return sa.Block([[diagonal, dense], [dense, diagonal]])


def _of_line(cls: Any) -> Callable[[str], sa.Array]:
    return lambda dtype: cls(_ones(SIZE, dtype=dtype))


def _of_dense(cls: Any, **arguments: Any) -> Callable[[str], sa.Array]:
    return lambda dtype: cls(_ones(SIZE, SIZE, dtype=dtype), **arguments)


def _plus_one(build: Callable[[str], sa.Array]) -> Callable[[str], sa.Array]:
    def with_background(dtype: str) -> sa.Array:
        x = build(dtype)
        return x.rebuild(x.entries, _ones(dtype=dtype))

    return with_background


STRUCTURES: dict[str, tuple[Callable[[str], sa.Array], tuple[str, ...]]] = {
    "Dense": (_of_dense(sa.asarray), EXACT),
    "Fill": (lambda dtype: sa.Fill(_ones(dtype=dtype), (SIZE, SIZE)), EXACT),
    "Identity": (lambda dtype: sa.Identity(SIZE, _ones(dtype=dtype)), EXACT),
    "Diagonal": (_of_line(sa.Diagonal), EXACT),
    "Diagonal + background": (_plus_one(_of_line(sa.Diagonal)), EXACT),
    "Banded": (_tridiagonal, EXACT),
    "Banded + background": (_plus_one(_tridiagonal), EXACT),
    "PeriodicBanded": (
        lambda dtype: sa.PeriodicBanded([_ones(SIZE, dtype=dtype) for _ in range(3)], (-1, 0, 1)),
        EXACT,
    ),
    "Triangular, lower": (_of_dense(sa.Triangular), EXACT),
    "Triangular, upper": (_of_dense(sa.Triangular, lower=False), EXACT),
    "Symmetric": (_of_dense(sa.Symmetric), EXACT),
    "Hermitian": (_of_dense(sa.Hermitian), EXACT),
    "Toeplitz": (lambda dtype: sa.Toeplitz(_ones(SIZE, dtype=dtype), _ones(SIZE, dtype=dtype)), EXACT),
    "Toeplitz, tridiagonal": (
        lambda dtype: sa.Toeplitz(_ones(2, dtype=dtype), _ones(2, dtype=dtype), shape=(SIZE, SIZE)),
        EXACT,
    ),
    "Circulant": (_of_line(sa.Circulant), EXACT),
    "Hankel": (lambda dtype: sa.Hankel(_ones(SIZE, dtype=dtype), _ones(SIZE, dtype=dtype)), EXACT),
    "Permutation": (_permutation, EXACT),
    "BlockDiagonal": (lambda dtype: sa.BlockDiagonal(list(_blocks(dtype, SIZE // BLOCK))), EXACT),
    "BlockBanded": (_band_of_blocks, EXACT),
    "Sparse": (_sparse, EXACT),
    "Sparse + background": (_plus_one(_sparse), EXACT),
    "LowRank": (_low_rank, EXACT[:3]),
    "Kronecker": (_kronecker, EXACT[:3]),
    "KroneckerSum": (_kronecker_sum, EXACT[:3]),
    "Sum": (lambda dtype: sa.Sum(sa.Diagonal(_ones(SIZE, dtype=dtype)), _low_rank(dtype)), EXACT[:3]),
    "Product": (lambda dtype: sa.Product(_permutation(dtype), sa.Toeplitz(*2 * [_ones(SIZE, dtype=dtype)])), EXACT[:3]),
    "Inverse": (lambda dtype: sa.Inverse(_tridiagonal(dtype)), INEXACT),
    "Block": (_block, EXACT[:3]),
    "Fourier": (lambda dtype: sa.Fourier(SIZE, dtype=dtype), ("complex",)),
    "Householder": (_householder, INEXACT),
}
"""For each structure, by its name on the page, the function that builds a matrix of a kind of numbers, and these kinds."""

OTHERS = {
    "number": (),
    "vector": (SIZE,),
    "three columns": (SIZE, 3),
}
"""Dense operands that stand second: for each the shape."""


def _dense(shape: tuple[int, ...], dtype: str) -> sa.Array:
    return sa.asarray(_ones(*shape, dtype=dtype))


@functools.cache
def matrix(structure: str, kind: str, abstract: bool = True) -> Any:
    """The operand of a name and a kind of numbers, by default with shapes in place of its parameters.

    Examples
    --------
    >>> from structure_tables.matrices import matrix
    >>> matrix("Banded", "float").shape
    (2048, 2048)
    """
    if structure in OTHERS:
        call = functools.partial(_dense, OTHERS[structure], DTYPES[kind])
    else:
        call = functools.partial(STRUCTURES[structure][0], DTYPES[kind])
    return jax.eval_shape(call) if abstract else call()
