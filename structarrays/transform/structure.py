"""`join` and `convert`: a common structure for several arrays, as `jax.lax.scan` and `cond` require."""

from __future__ import annotations

from typing import cast

import jax.numpy as jnp

from .._core.array.base import Array
from .._core.dispatch import late
from .._core.dispatch.decorator import function
from .._core.dispatch.recording import describe
from .._core.errors import StructureError
from .._core.families import join as core


@function("x", "y")
def join(x: Array, y: Array, /) -> tuple[Array, Array]:
    """Convert two arrays to the narrowest structure that contains both.

    Parameters
    ----------
    x, y : array
        Arrays with the same core shape. Their batch shapes and dtypes do not change.

    Returns
    -------
    tuple of two arrays
        Arrays of the same values as `x` and `y`, in one structure. Both have a background if one of them has one. Both
        have the common assumptions of `x` and `y`.

    Raises
    ------
    ValueError
        If the core shapes differ.

    Examples
    --------
    >>> import structarrays as sa
    >>> [type(a).__name__ for a in sa.join(sa.eye(3), sa.Diagonal([1.0, 2.0, 3.0]))]
    ['Diagonal', 'Diagonal']
    """
    _check_shapes("join", x, y)
    common = x.assumptions & y.assumptions
    joined: tuple[Array, ...] = core.join(x, y)
    if any(a.background is not None for a in joined):
        joined = tuple(_with_background(a) for a in joined)
    return cast("tuple[Array, Array]", tuple(a.assuming(common) for a in joined))


late.bind(join=join)


@function("x", "like")
def convert(x: Array, /, like: Array) -> Array:
    """Convert an array to the structure of another array.

    Parameters
    ----------
    x : array
        Array to convert.
    like : array
        Array with the same core shape; only its structure is used.

    Returns
    -------
    array
        Array with the value of `x` and the structure of `like`, so that `same_structure` of both is true.

    Raises
    ------
    StructureError
        If the structure of `like` does not contain all arrays of the structure of `x`, independently of their values;
        or if `like` has assumptions that `x` does not have.
    ValueError
        If the core shapes differ.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.convert(sa.eye(2), like=sa.tridiagonal([1.0], [2.0, 3.0], [4.0])).offsets
    (-1, 0, 1)
    """
    _check_shapes("convert", x, like)
    if not like.assumptions <= x.assumptions:
        missing = ", ".join(sorted(like.assumptions - x.assumptions))
        raise StructureError(
            f"convert: x must have the assumptions {missing} of `like`; use assume(x, …), or forget(like)"
        )
    result, _ = core.join(x, like)
    too_wide = core.structure(result) != core.structure(like) or (
        result.background is not None and like.stores_entries and like.background is None
    )
    if too_wide:
        raise StructureError(
            f"convert: x must fit into the structure of {describe(like)}, got {describe(x)}; "
            "use join for a common structure"
        )
    if like.background is not None:
        result = _with_background(result)
    return result.assuming(like.assumptions)


def _with_background(x: Array) -> Array:
    if not x.stores_entries or x.background is not None:
        return x
    return x.rebuild(x.entries, jnp.zeros(x.batch_shape, x.dtype))


def _check_shapes(name: str, x: Array, y: Array) -> None:
    core = max(x.core_ndim, y.core_ndim)
    if x.shape[x.ndim - core :] != y.shape[y.ndim - core :] or min(x.ndim, y.ndim) < core:
        raise ValueError(f"{name}: the last {core} dimensions must be the same, got shapes {x.shape} and {y.shape}")
