"""Sums and products of matrices in compressed rows, by the compiled routines of SciPy.

SciPy drops entries that become zero, but the pattern of our results depends on patterns alone. So the number of entries is checked.
Two patterns that are combined for the second time, as in a loop over time steps, have a plan: the pattern of the result, and the places of
its entries. Then no routine searches the rows again.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .compressed_rows import Rows, copied, empty, located, places, routines

if TYPE_CHECKING:
    import jax

# ---- patterns -------------------------------------------------------------------------------------------------------


def union(x: Rows, y: Rows) -> tuple[Rows, np.ndarray, np.ndarray]:
    """Return the union of two patterns, and for each entry its index in `x` and in `y`, or -1."""
    # Both indices, counted from one, are the halves of one integer, which no sum makes zero.
    halves = np.arange(1, x.nnz + 1, dtype=np.int64), np.arange(1, y.nnz + 1, dtype=np.int64) << 32
    pattern, both = _merged("csr_plus_csr", x, y, *halves, x.nnz + y.nnz)
    return pattern, (both & 0xFFFFFFFF).astype(np.int32) - 1, (both >> 32).astype(np.int32) - 1


def intersection(x: Rows, y: Rows) -> tuple[Rows, np.ndarray, np.ndarray]:
    """Return the intersection of two patterns, and for each entry its index in `x` and in `y`."""
    bound = min(x.nnz, y.nnz)
    pattern, place_x = _merged("csr_elmul_csr", x, y, places(x.nnz) + 1, np.ones(y.nnz, np.int32), bound)
    _, place_y = _merged("csr_elmul_csr", x, y, np.ones(x.nnz, np.int32), places(y.nnz) + 1, bound)
    return pattern, place_x - 1, place_y - 1


def _merged(
    routine: str, x: Rows, y: Rows, values_x: np.ndarray, values_y: np.ndarray, bound: int
) -> tuple[Rows, np.ndarray]:
    """Return the entries of an elementwise combination that are not zero."""
    starts, columns, values = np.empty(x.shape[0] + 1, np.int32), empty(bound, np.int32), empty(bound, values_x.dtype)
    arguments = x.starts, x.columns, values_x, y.starts, y.columns, values_y, starts, columns, values
    getattr(routines(), routine)(*x.shape, *arguments)
    total = int(starts[-1])
    return Rows(x.shape, starts, _shortened(columns, total)), _shortened(values, total)


def _shortened(values: np.ndarray, total: int) -> np.ndarray:
    """Return the first elements; a copy, if it saves memory."""
    if 4 * total >= 3 * len(values):
        return values[:total]
    return copied(values[:total])


# ---- element by element ---------------------------------------------------------------------------------------------

ROUTINES = {"add": "csr_plus_csr", "subtract": "csr_minus_csr", "multiply": "csr_elmul_csr"}
"""The routines of elementwise functions, by the name of the function."""


def combine(function: str, x: Rows, y: Rows, values_x: np.ndarray, values_y: np.ndarray) -> tuple[Rows, np.ndarray]:
    """Return the sum, difference or product of two matrices, element by element, with the entries of the pattern."""
    with np.errstate(all="ignore"):
        if np.array_equal(x.starts, y.starts) and np.array_equal(x.columns, y.columns):
            return x, getattr(np, function)(values_x, values_y, out=empty(x.nnz, values_x.dtype))
        known, product = _known(x, y), function == "multiply"
        if not known.was_combined:
            known.was_combined = True
            result = _by_routine(function, x, y, values_x, values_y)
            if result is not None:
                return result
        plan = known.plans.get(product)
        if plan is None or plan.is_deleted():
            plan = known.plans[product] = _plan(x, y, product)
        return _by_plan(function, plan, values_x, values_y)


def _by_routine(
    function: str, x: Rows, y: Rows, values_x: np.ndarray, values_y: np.ndarray
) -> tuple[Rows, np.ndarray] | None:
    """Return the result of SciPy's routine; None if that is no result of ours.

    SciPy drops zeros, and multiplies infinity and NaN by structural zeros.
    """
    product = function == "multiply"
    ones = np.ones(x.nnz, np.int8), np.ones(y.nnz, np.int8)
    bound = x.nnz + y.nnz
    pattern, _ = _merged(ROUTINES["multiply" if product else "add"], x, y, *ones, bound)
    found, values = _merged(ROUTINES[function], x, y, values_x, values_y, bound if product else pattern.nnz)
    if found.nnz != pattern.nnz or product and np.isnan(values).any():
        return None
    return found, values


class _Plan(NamedTuple):
    """The pattern of a sum or product, element by element, and the places of its entries.

    `places` are, for a sum, the places of the entries of each matrix among the entries of the result; for a product, the places of the
    entries of the result among the entries of each matrix.
    """

    pattern: Rows
    places: tuple[np.ndarray, np.ndarray]

    def is_deleted(self) -> bool:
        """Return whether the coordinates of a result were deleted, as donation to a compiled function does."""
        return any(c.is_deleted() for c in self.pattern.coordinates)


class _Known:
    """Two patterns that were combined before, and the plans of their sums and of their products."""

    __slots__ = ("plans", "refs", "was_combined")

    def __init__(self, refs: tuple[weakref.ref[jax.Array], ...]) -> None:
        self.refs = refs
        self.plans: dict[bool, _Plan] = {}
        self.was_combined = False


_KNOWN: dict[tuple[Any, ...], _Known] = {}
_KEPT = 64
"""The number of pairs of patterns that are kept, each as long as the arrays of both."""


def _known(x: Rows, y: Rows) -> _Known:
    arrays, table = x.origin + y.origin, _KNOWN
    key = (*map(id, arrays), x.shape)
    known = table.get(key)
    if known is None or not all(ref() is a for ref, a in zip(known.refs, arrays, strict=True)):
        known = table[key] = _Known(tuple(weakref.ref(a, lambda _: table.pop(key, None)) for a in arrays))
        for oldest in list(table)[:-_KEPT]:
            table.pop(oldest, None)
    return known


def _by_plan(function: str, plan: _Plan, values_x: np.ndarray, values_y: np.ndarray) -> tuple[Rows, np.ndarray]:
    pattern, (place_x, place_y) = plan
    values = empty(pattern.nnz, values_x.dtype)
    if function == "multiply":
        np.take(values_x, place_x, out=values, mode="clip")
        values *= np.take(values_y, place_y, mode="clip")
        return pattern, values
    values[:] = 0
    values[place_x] = values_x
    if function == "add":
        values += values.dtype.type(0)  # a negative zero plus a structural zero is positive
        values[place_y] += values_y
    else:
        values[place_y] -= values_y
    return pattern, values


def _plan(x: Rows, y: Rows, product: bool) -> _Plan:
    if product:
        pattern, place_x, place_y = intersection(x, y)
        return _Plan(located(pattern), (place_x.astype(np.intp), place_y.astype(np.intp)))
    numbers = np.full(x.nnz, 1, np.int8), np.full(y.nnz, 2, np.int8)
    pattern, both = _merged(ROUTINES["add"], x, y, *numbers, x.nnz + y.nnz)
    return _Plan(located(pattern), (np.flatnonzero(both & 1), np.flatnonzero(both & 2)))


# ---- matrix products ------------------------------------------------------------------------------------------------


def multiply(x: Rows, y: Rows, values_x: np.ndarray, values_y: np.ndarray) -> tuple[Rows, np.ndarray]:
    """Return the product of two matrices, with every entry to which an elementary product contributes."""
    (m, _), n = x.shape, y.shape[1]
    total = routines().csr_matmat_maxnnz(m, n, x.starts, x.columns, y.starts, y.columns)
    if total >= 2**31 - 1:
        raise OverflowError(f"matmul: the product must have fewer than 2**31 - 1 entries, got {total}")
    found, values = _product(x, y, values_x, values_y, total)
    if found.nnz == total:
        return found, values
    ones = np.ones(x.nnz, np.float32), np.ones(y.nnz, np.float32)  # no sum of ones is zero, or overflows to zero
    pattern, _ = _product(x, y, *ones, total)
    _, _, at = union(pattern, found)
    return pattern, _at(values, at)


def _product(x: Rows, y: Rows, values_x: np.ndarray, values_y: np.ndarray, total: int) -> tuple[Rows, np.ndarray]:
    """Return the entries of a product of matrices that are not zero."""
    (m, _), n = x.shape, y.shape[1]
    starts, columns, values = np.empty(m + 1, np.int32), empty(total, np.int32), empty(total, values_x.dtype)
    arguments = x.starts, x.columns, values_x, y.starts, y.columns, values_y, starts, columns, values
    routines().csr_matmat(m, n, *arguments)
    total = int(starts[-1])
    columns, values = columns[:total], values[:total]
    routines().csr_sort_indices(m, starts, columns, values)
    return Rows((m, n), starts, columns), values


def _at(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the values at indices; zero at -1."""
    result: np.ndarray = np.append(values, np.zeros(1, values.dtype))[places]
    return result
