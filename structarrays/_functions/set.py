"""Set functions of the standard.

The shapes of the ``unique`` results are data-dependent, so these functions run on the host and not under `jax.jit`.
They densify structured arrays. Values are sorted. Each NaN is a separate value, and zeros of both signs are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jax.numpy as jnp

from .._core.array.arguments import ArrayLike
from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.array.operands import densify, promote
from .._core.dispatch.decorator import function
from .._core.dispatch.results import follow_eager_operands
from .._core.families.batch import map_elements
from .._numerics import dense_sets
from .searching import known_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import jax

    from .._core.dispatch.function import Function
    from .._core.typing import Result, Static


class UniqueAllResult(NamedTuple):
    """Result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """Result of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """Result of `unique_inverse`."""

    values: Array
    inverse_indices: Array


def _wrapped(arrays: Iterable[jax.Array]) -> Iterator[Dense]:
    return (Dense.make((a,)) for a in arrays)


def unique_all(x: ArrayLike, /) -> UniqueAllResult:
    """Return the unique elements with the indices of their first occurrence, inverse indices and counts.

    Parameters
    ----------
    x : array, (...)
        Array of any data type. It must not be traced, because the shape of the result is data-dependent.

    Returns
    -------
    values : array, (n,)
        Sorted unique elements. Each NaN is a separate element.
    indices : array, (n,)
        Indices of the first occurrences in the flattened array.
    inverse_indices : array, (...)
        Indices with ``values[inverse_indices] == x``, in the shape of `x`.
    counts : array, (n,)
        Numbers of occurrences.

    Raises
    ------
    jax.errors.ConcretizationTypeError
        If `x` is traced.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.unique_all(sa.asarray([3, 1, 3])).inverse_indices
    Dense([1, 0, 1], dtype=int64)
    """
    parts = dense_sets.unique_all(known_values(x, "unique_all"))
    result: UniqueAllResult = follow_eager_operands(UniqueAllResult(*_wrapped(parts)), (x,))
    return result


def unique_counts(x: ArrayLike, /) -> UniqueCountsResult:
    """Return the unique elements with their counts.

    Parameters
    ----------
    x : array, (...)
        Array of any data type. It must not be traced, because the shape of the result is data-dependent.

    Returns
    -------
    values : array, (n,)
        Sorted unique elements. Each NaN is a separate element.
    counts : array, (n,)
        Numbers of occurrences.

    Raises
    ------
    jax.errors.ConcretizationTypeError
        If `x` is traced.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.unique_counts(sa.asarray([3, 1, 3])).counts
    Dense([1, 2], dtype=int64)
    """
    parts = dense_sets.unique_counts(known_values(x, "unique_counts"))
    result: UniqueCountsResult = follow_eager_operands(UniqueCountsResult(*_wrapped(parts)), (x,))
    return result


def unique_inverse(x: ArrayLike, /) -> UniqueInverseResult:
    """Return the unique elements with the indices that reconstruct the array.

    Parameters
    ----------
    x : array, (...)
        Array of any data type. It must not be traced, because the shape of the result is data-dependent.

    Returns
    -------
    values : array, (n,)
        Sorted unique elements. Each NaN is a separate element.
    inverse_indices : array, (...)
        Indices with ``values[inverse_indices] == x``, in the shape of `x`.

    Raises
    ------
    jax.errors.ConcretizationTypeError
        If `x` is traced.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.unique_inverse(sa.asarray([3, 1, 3])).inverse_indices
    Dense([1, 0, 1], dtype=int64)
    """
    parts = dense_sets.unique_inverse(known_values(x, "unique_inverse"))
    result: UniqueInverseResult = follow_eager_operands(UniqueInverseResult(*_wrapped(parts)), (x,))
    return result


def unique_values(x: ArrayLike, /) -> Array:
    """Return the unique elements.

    Parameters
    ----------
    x : array, (...)
        Array of any data type. It must not be traced, because the shape of the result is data-dependent.

    Returns
    -------
    array, (n,)
        Sorted unique elements. Each NaN is a separate element.

    Raises
    ------
    jax.errors.ConcretizationTypeError
        If `x` is traced.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.unique_values(sa.asarray([3, 1, 3]))
    Dense([1, 3], dtype=int64)
    """
    values = Dense.make((dense_sets.unique_values(known_values(x, "unique_values")),))
    result: Array = follow_eager_operands(values, (x,))
    return result


def _isin_rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
    """Apply `isin` element-wise in the first argument."""
    x1, x2 = args
    values = densify(x2, "isin").data
    return map_elements(x1, lambda data: jnp.isin(data, values, **static))


@function("x1", "x2", rule=_isin_rule, dense=jnp.isin, compares=2)
def isin(x1: ArrayLike, x2: ArrayLike, /, *, invert: bool = False) -> Array:
    """Return whether each element of an array is in another array.

    Parameters
    ----------
    x1 : array, (...) or scalar
        Elements to search for.
    x2 : array, (...) or scalar
        Array to search in. NaN is not equal to any element.
    invert : bool, default False
        If True, return whether each element of `x1` is not in `x2`.

    Returns
    -------
    array, (...)
        Boolean array of the shape of `x1`, with the structure of `x1`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.isin(sa.asarray([1, 2, 3]), sa.asarray([3, 1]))
    Dense([ True, False,  True], dtype=bool)
    """
    x1, x2 = cast("Array", x1), cast("Array", x2)
    x1, x2 = promote(x1, x2)
    result: Array = isin.dispatch(x1, x2, invert=bool(invert))
    return result
