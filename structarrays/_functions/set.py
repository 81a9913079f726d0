"""The chapter *set functions* of the standard.

The shapes of the ``unique`` results depend on the values, so these functions work on the host and not under `jax.jit`;
structured arrays are made dense. Values come sorted; every NaN is a value of its own, and the two zeros are one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jax.numpy as jnp

from .._core.array.arguments import ArrayLike
from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.array.operands import densify, promote
from .._core.dispatch.decorator import function
from .._core.families.batch import map_elements
from .._numerics import dense_sets
from .searching import known_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import jax

    from .._core.dispatch.function import Function
    from .._core.typing import Result, Static


class UniqueAllResult(NamedTuple):
    """What `unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """What `unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """What `unique_inverse` returns."""

    values: Array
    inverse_indices: Array


def _wrapped(arrays: Iterable[jax.Array]) -> Iterator[Dense]:
    return (Dense.make((a,)) for a in arrays)


def unique_all(x: ArrayLike, /) -> UniqueAllResult:
    """The unique elements, where they stand first, how they rebuild the array, and how often each occurs.

    Parameters
    ----------
    x : Array
        The array; its values must be known: not under `jax.jit`.

    Returns
    -------
    UniqueAllResult
        The sorted ``values (n,)`` and their ``counts (n,)``; the ``indices (n,)`` of their first occurrence in the flattened
        array; and ``inverse_indices``, of the shape of `x`, with ``values[inverse_indices] == x``.

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
    return UniqueAllResult(*_wrapped(dense_sets.unique_all(known_values(x, "unique_all"))))


def unique_counts(x: ArrayLike, /) -> UniqueCountsResult:
    """The unique elements and how often each occurs.

    Parameters
    ----------
    x : Array
        The array; its values must be known: not under `jax.jit`.

    Returns
    -------
    UniqueCountsResult
        The sorted ``values (n,)`` and their ``counts (n,)``.

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
    return UniqueCountsResult(*_wrapped(dense_sets.unique_counts(known_values(x, "unique_counts"))))


def unique_inverse(x: ArrayLike, /) -> UniqueInverseResult:
    """The unique elements and how they rebuild the array.

    Parameters
    ----------
    x : Array
        The array; its values must be known: not under `jax.jit`.

    Returns
    -------
    UniqueInverseResult
        The sorted ``values (n,)``, and ``inverse_indices``, of the shape of `x`, with ``values[inverse_indices] == x``.

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
    return UniqueInverseResult(*_wrapped(dense_sets.unique_inverse(known_values(x, "unique_inverse"))))


def unique_values(x: ArrayLike, /) -> Array:
    """The unique elements.

    Parameters
    ----------
    x : Array
        The array; its values must be known: not under `jax.jit`.

    Returns
    -------
    Array
        The sorted values ``(n,)``.

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
    return Dense.make((dense_sets.unique_values(known_values(x, "unique_values")),))


def _isin_rule(function: Function[..., Any], args: Sequence[Array], static: Static) -> Result:
    """Elementwise in the first argument."""
    x1, x2 = args
    values = densify(x2, "isin").data
    return map_elements(x1, lambda data: jnp.isin(data, values, **static))


@function("x1", "x2", rule=_isin_rule, dense=jnp.isin)
def isin(x1: ArrayLike, x2: ArrayLike, /, *, invert: bool = False) -> Array:
    """Which elements of an array are in another.

    Parameters
    ----------
    x1 : Array or number
        The elements to look for.
    x2 : Array or number
        Where to look for them; NaN equals nothing.
    invert : bool
        Whether the result says which elements are not in `x2`.

    Returns
    -------
    Array
        Booleans of the shape of `x1`, whose structure is kept.

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
