"""Functions that return a `Banded` matrix: `tridiagonal`, `bidiagonal` and `from_dia`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._core.array.dense import batch_shape_of, parameter
from ..._numerics import bands as band_numerics
from .array import Banded, band_parameters, bands, integers, matrix_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from ..._core.array.arguments import ParameterLike


def tridiagonal(lower: ParameterLike, diag: ParameterLike, upper: ParameterLike) -> Banded:
    """Return the tridiagonal square matrix.

    Parameters
    ----------
    lower, diag, upper : array_like
        The subdiagonal ``(..., n - 1)``, the main diagonal ``(..., n)`` and the superdiagonal ``(..., n - 1)``.

    Returns
    -------
    Banded
        The offsets are ``(-1, 0, 1)``. With fewer than two rows they are ``(0,)``, and `lower` and `upper` are empty.

    Raises
    ------
    ValueError
        If `lower` or `upper` does not have one element less than `diag`, or the batch shapes do not broadcast.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.tridiagonal([1.0], [2.0, 3.0], [4.0]).to_dense()
    Dense([[2., 4.],
           [1., 3.]], dtype=float64)
    """
    return _from_diagonals("tridiagonal", diag, ("lower", -1, lower), ("upper", 1, upper))


def bidiagonal(diag: ParameterLike, off: ParameterLike, *, lower: bool = True) -> Banded:
    """Return the bidiagonal square matrix.

    Parameters
    ----------
    diag, off : array_like
        The main diagonal ``(..., n)`` and the off-diagonal ``(..., n - 1)``.
    lower : bool
        Whether `off` is the subdiagonal (default) or the superdiagonal.

    Returns
    -------
    Banded
        The offsets are ``(-1, 0)`` or ``(0, 1)``. With fewer than two rows they are ``(0,)``, and `off` is empty.

    Raises
    ------
    ValueError
        If `off` does not have one element less than `diag`, or the batch shapes do not broadcast.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.bidiagonal([2.0, 3.0], [1.0]).to_dense()
    Dense([[2., 0.],
           [1., 3.]], dtype=float64)
    """
    return _from_diagonals("bidiagonal", diag, ("off", -1 if lower else 1, off))


def _from_diagonals(name: str, diag: ParameterLike, *others: tuple[str, int, ParameterLike]) -> Banded:
    """Return the square matrix with this main diagonal and these off-diagonals, ``(argument, offset, diagonal)`` each.

    With fewer than two rows the off-diagonals are empty. Only their dtypes and batch shapes matter.
    """
    diag = parameter(diag, "diag", name)
    if diag.ndim < 1:
        raise ValueError("diag must have at least one dimension, (..., n), got a scalar")
    n = diag.shape[-1]
    stored, batches = {0: diag}, {"diag": diag.shape[:-1]}
    for argument, offset, value in others:
        stored[offset] = vector = parameter(value, argument, name)
        if vector.shape[-1:] != (max(0, n - 1),):
            raise ValueError(
                f"{argument} must be (..., {max(0, n - 1)}), as diag has {n} elements, got shape {vector.shape}"
            )
        batches[argument] = vector.shape[:-1]
    batch_shape_of(**batches)
    offsets = tuple(sorted(stored))
    leaves, meta = band_parameters([stored[k] for k in offsets], offsets, (n, n), None)
    return Banded.make(leaves, meta) if n > 1 else Banded.make((leaves[offsets.index(0)], None), ((0,), (n, n)))


def from_dia(data: ParameterLike, offsets: Sequence[int] | np.ndarray, shape: int | Sequence[int]) -> Banded:
    """Return the banded array from the layout of `scipy.sparse.dia_array` (and dynamiqs): aligned by columns, padded.

    Parameters
    ----------
    data : array_like
        The diagonals ``(..., d, width)``: ``data[..., i, j]`` is ``A[..., j - offsets[i], j]``. Elements outside the
        matrix are not read.
    offsets : sequence of int
        The ``d`` offsets.
    shape : tuple of int
        The core shape ``(m, n)``.

    Returns
    -------
    Banded
        A `Diagonal` if the only offset is 0. `Banded.to_dia` is the inverse.

    Raises
    ------
    ValueError
        If `data` has too few columns for a diagonal, or does not have one row for each offset.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.from_dia([[1.0, 2.0, 3.0], [0.0, 4.0, 5.0]], (0, 1), (3, 3)).offsets
    (0, 1)
    """
    data = parameter(data, "data", "from_dia")
    offsets = integers(offsets, "offsets")
    shape = matrix_shape(shape, "shape")
    if data.ndim < 2 or data.shape[-2] != len(offsets):
        raise ValueError(f"data must be (..., {len(offsets)}, width) for {len(offsets)} offsets, got {data.shape}")
    diagonals = []
    for i, k in enumerate(offsets):
        start, length = max(0, k), band_numerics.diagonal_length(shape, k)
        if start + length > data.shape[-1]:
            raise ValueError(
                f"data must have at least {start + length} columns for offset {k} of shape {shape}, got {data.shape[-1]}"
            )
        diagonals.append(data[..., i, start : start + length])
    if not offsets:
        return Banded.make(*band_parameters([], (), shape, None, data.dtype, data.shape[:-2]))
    x = Banded(diagonals, offsets, shape)
    return bands(x.diagonals, x.offsets, shape)
