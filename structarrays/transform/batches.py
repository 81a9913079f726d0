"""`vmap_axes`: find the arrays of a nested problem that have a batch dimension (docs/design/semantics.md)."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from .._core.array.base import Array, is_array

if TYPE_CHECKING:
    from collections.abc import Sequence


def vmap_axes(tree: Any, batch_size: int) -> Any:
    """Return ``in_axes`` of `vmap` for a pytree of which only some arrays have a batch dimension.

    Parameters
    ----------
    tree : pytree
        Pytree of arrays of this namespace, JAX or NumPy, and scalars.
    batch_size : int
        Number of problems in the batch.

    Returns
    -------
    pytree
        Same pytree as `tree`, with 0 for an array that has the batch in front, and None for an array that all problems
        share. A structured array counts as one leaf, as in ``in_axes`` of `structarrays.vmap` and `jax.vmap`.

    Raises
    ------
    ValueError
        If `batch_size` is negative, or no array has the batch in front.
    TypeError
        If `batch_size` is not an integer.

    See Also
    --------
    vmap, jax.vmap

    Notes
    -----
    A structured array has the batch if the first of its *batch* dimensions has length `batch_size`; core dimensions and
    lengths of parameters do not count. So a `Diagonal` of shape ``(7, 7)`` is shared by 7 problems, although its only
    parameter is a vector of length 7, and a `Diagonal` of shape ``(7, 4, 4)`` is mapped. Other arrays, including
    `Dense`, have no core dimensions: they have the batch if their first dimension has length `batch_size`. If this is a
    coincidence (a vector of 7 weights that 7 problems share), set the entry to None, or add a batch dimension to the
    array.

    The function inspects each array once and computes nothing, so you can call it inside compiled functions.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.Diagonal([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> problem = {"A": A, "P": sa.eye(3), "b": sa.ones((3, 2)), "scale": 2.0}
    >>> axes = sa.vmap_axes(problem, 3)
    >>> axes
    {'A': 0, 'P': None, 'b': 0, 'scale': None}
    >>> sa.vmap(lambda p: p["scale"] * sa.linalg.solve(p["A"], p["b"]), in_axes=(axes,))(problem).shape
    (3, 2)
    """
    try:
        size = operator.index(batch_size)
    except TypeError:
        raise TypeError(f"vmap_axes: batch_size must be an integer, got {batch_size!r}") from None
    if size < 0:
        raise ValueError(f"vmap_axes: batch_size must be at least 0, got {size}")
    leaves, structure = jax.tree.flatten(tree, is_leaf=is_array)
    axes = [0 if _batch_of(leaf)[:1] == (size,) else None for leaf in leaves]
    if 0 not in axes:
        raise ValueError(f"vmap_axes: at least one array must have a batch of {size} in front; {_summary(leaves)}")
    return jax.tree.unflatten(structure, axes)


def _batch_of(leaf: Any) -> tuple[int, ...]:
    """Return the dimensions that may be batch dimensions."""
    return leaf.batch_shape if isinstance(leaf, Array) else tuple(np.shape(leaf))


def _summary(leaves: Sequence[Any]) -> str:
    """Describe the arrays, for an error message."""
    if not leaves:
        return "the tree contains no arrays"
    kinds = []
    for leaf in leaves[:8]:
        kind = f"{type(leaf).__name__} of shape {tuple(np.shape(leaf))}"
        if isinstance(leaf, Array) and leaf.core_ndim:
            kind += f" with batch shape {leaf.batch_shape}"
        kinds.append(kind)
    return "the arrays are " + ", ".join(kinds) + (", …" if len(leaves) > 8 else "")
