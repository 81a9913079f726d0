"""Conversion of any structure to `Sparse`, the intermediate form of all conversions to sparse libraries."""

from __future__ import annotations

import copy
from typing import Any, cast

import numpy as np

from .._core.array.base import Array
from .._core.dispatch.registry import Registry
from .._functions.conversion import densified
from .._structures.banded.diagonal import Identity
from .._structures.composite.block import Block
from .._structures.composite.product import Product
from .._structures.composite.sum import Sum
from .._structures.kronecker.array import Kronecker
from .._structures.kronecker.kronecker_sum import KroneckerSum
from .._structures.sparse.array import Sparse, zero_sparse
from .._structures.sparse.sparse_joins import compiled_to_sparse, has_sparse_form
from .numpy_host import is_traced

expanded: Registry[Sparse] = Registry("expanded")
"""``expanded.kernel(F)``: registers a function of ``(x, name)`` that converts composed matrices to `Sparse`."""


def check_format(format: str, formats: tuple[str, ...]) -> None:
    """Raise ValueError if a library does not have the format."""
    if format not in formats:
        raise ValueError(f"to_sparse: format must be one of {', '.join(map(repr, formats))}, got {format!r}")


def as_sparse(x: Any, name: str, *, without_background: str | None = None) -> Sparse:
    """Convert an array to `Sparse`.

    Structures that store few entries keep these. Sums, products and blocks of such matrices are combined from the
    converted parts. For other structures, the result contains the nonzero elements of the dense form, under the policy
    of `densify`.

    Parameters
    ----------
    x : Array
        Array with at least one dimension.
    name : str
        Function that is named in errors.
    without_background : str, optional
        Name of a library whose arrays have no background. If given, an array with a background raises.

    Returns
    -------
    Sparse
        Array without padding in an eager call without batch dimensions.

    Raises
    ------
    TypeError
        If `x` is not an array of this namespace.
    ValueError
        If `x` is 0-dimensional, or has a background and `without_background` is given. If `x` is traced and the number
        of its entries is data-dependent.
    DensifyError
        If the policy of `densify` forbids the dense form.
    """
    if not isinstance(x, Array):
        raise TypeError(f"{name}: x must be an array of structarrays, got {type(x).__name__}")
    x = copy.copy(x)  # another thread may write in between
    if x.ndim == 0:
        raise ValueError(f"{name}: x must have at least one dimension, got a 0-d array")
    if without_background and x.stores_entries and x.background is not None:
        raise ValueError(
            f"{name}: x must have no background value for {without_background}, got {x.background}; convert x.to_dense(), which "
            "contains the background"
        )
    if type(x) is Sparse or has_sparse_form(x):
        return compiled_to_sparse(x).trimmed()
    if is_traced(x):
        raise ValueError(
            f"{name}: x must not be traced, because the number of nonzero elements of a {type(x).__name__} is data-dependent; convert x "
            "outside of the transformation"
        )
    kernel = expanded.choose((x,), {}) if x.ndim == 2 else None
    if kernel is not None:
        return kernel.run(x, name).trimmed()
    return Sparse.from_dense(densified(x, name), core_ndim=min(2, x.ndim))


def _is_sparse(x: Array) -> bool:
    """Return whether the structure of a matrix has few nonzero elements."""
    if type(x) is Sparse or has_sparse_form(x):
        return x.background is None
    return expanded.choose((x,), {}) is not None


@expanded.kernel(Sum, when=lambda x: all(map(_is_sparse, x.terms)))
def _expanded_sum(x: Sum, name: str) -> Sparse:
    total = zero_sparse(x.shape, x.dtype)
    for term in x.terms:
        total = cast("Sparse", total + as_sparse(term, name))
    return total


@expanded.kernel(Product, when=lambda x: all(map(_is_sparse, x.factors)))
def _expanded_product(x: Product, name: str) -> Sparse:
    first, *others = (as_sparse(factor, name) for factor in x.factors)
    for factor in others:
        first = as_sparse(first @ factor, name)
    return first


@expanded.kernel(Kronecker, when=lambda x: any(map(_is_sparse, x.factors)))
def _expanded_kronecker(x: Kronecker, name: str) -> Sparse:
    first, *others = (as_sparse(factor, name) for factor in x.factors)
    for factor in others:
        first = _kronecker(first, factor)
    return first


@expanded.kernel(KroneckerSum, when=lambda x: len(x.factors) > 1)
def _expanded_kronecker_sum(x: KroneckerSum, name: str) -> Sparse:
    sizes = [factor.shape[0] for factor in x.factors]
    total = zero_sparse(x.shape, x.dtype)
    for i, factor in enumerate(x.factors):
        before, behind = (as_sparse(Identity(int(np.prod(n))), name) for n in (sizes[:i], sizes[i + 1 :]))
        total = cast("Sparse", total + _kronecker(_kronecker(before, as_sparse(factor, name)), behind))
    return total


def _kronecker(x: Sparse, y: Sparse) -> Sparse:
    """Return the Kronecker product: each entry of `x` times `y`."""
    data = x.data[:, None] * y.data
    indices = (
        np.asarray(i)[:, None].astype(np.int64) * n + np.asarray(j) for i, j, n in zip(x.coords, y.coords, y.shape)
    )
    shape = tuple(m * n for m, n in zip(x.shape, y.shape, strict=True))
    return Sparse(data.ravel(), tuple(i.ravel() for i in indices), shape)


@expanded.kernel(Block, when=lambda x: any(_is_sparse(block) for row in x.blocks for block in row))
def _expanded_block(x: Block, name: str) -> Sparse:
    data, rows, columns = [], [], []
    below = np.cumsum([0, *x.heights])
    right = np.cumsum([0, *x.widths])
    for i, row in enumerate(x.blocks):
        for j, block in enumerate(row):
            part = as_sparse(block, name)
            data.append(np.asarray(part.data))
            rows.append(np.asarray(part.coords[0]).astype(np.int64) + below[i])
            columns.append(np.asarray(part.coords[1]).astype(np.int64) + right[j])
    return Sparse(np.concatenate(data).astype(x.dtype), (np.concatenate(rows), np.concatenate(columns)), x.shape)
