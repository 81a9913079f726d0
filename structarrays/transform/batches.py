"""`vmap_axes`: which arrays of a nested problem carry the batch (docs/design/semantics.md)."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from .._core.array.base import Array, is_array

if TYPE_CHECKING:
    from collections.abc import Sequence


def vmap_axes(tree: Any, batch_size: int) -> Any:
    """Say of each array in a pytree whether it carries a batch: the ``in_axes`` of `vmap` for a problem of which a part is batched.

    Parameters
    ----------
    tree : pytree
        Of arrays of this namespace, of JAX or NumPy, and numbers.
    batch_size : int
        How many problems there are.

    Returns
    -------
    pytree
        Like `tree`, with 0 for an array that has the batch in front, and None for one that all problems share. A structured array
        counts as one: it is what its entry in ``in_axes`` stands for, in `structarrays.vmap` as in `jax.vmap`.

    Raises
    ------
    ValueError
        If `batch_size` is negative, or no array carries the batch.
    TypeError
        If `batch_size` is no integer.

    See Also
    --------
    vmap, jax.vmap

    Notes
    -----
    A structured array has the batch if the first of its *batch* dimensions has that length: the core dimensions and the lengths of its
    parameters do not count. So a `Diagonal` of shape ``(7, 7)`` is shared by 7 problems, although its only parameter is
    a vector of length 7, and one of shape ``(7, 4, 4)`` is mapped. Any other array, `Dense` among them, has no core, and is taken to
    have the batch if its first dimension has that length. Where this is a coincidence (a vector of 7 weights that 7
    problems share), change that entry to None, or give the array a batch dimension that says what is meant.

    It looks at each array once, without computing anything, so that it may be called inside of functions that are compiled.

    Examples
    --------
    >>> import structarrays as sa
    >>> problem = {"A": sa.Diagonal([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), "P": sa.eye(3), "b": sa.ones((3, 2)), "scale": 2.0}
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
        raise ValueError(f"vmap_axes: no array has a batch of {size} in front; {_summary(leaves)}")
    return jax.tree.unflatten(structure, axes)


def _batch_of(leaf: Any) -> tuple[int, ...]:
    """The dimensions among which the batch may be."""
    return leaf.batch_shape if isinstance(leaf, Array) else tuple(np.shape(leaf))


def _summary(leaves: Sequence[Any]) -> str:
    """What there is, for an error."""
    if not leaves:
        return "the tree holds no arrays"
    kinds = []
    for leaf in leaves[:8]:
        kind = f"{type(leaf).__name__} of shape {tuple(np.shape(leaf))}"
        if isinstance(leaf, Array) and leaf.core_ndim:
            kind += f" with batch shape {leaf.batch_shape}"
        kinds.append(kind)
    return "the arrays are " + ", ".join(kinds) + (", …" if len(leaves) > 8 else "")
