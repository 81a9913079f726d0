"""Common structures of two arrays: the join contains both patterns, the meet their intersection
(docs/design/semantics.md).

A structure registers its rules here, in its own file. The rules see only structures with the same core shape; their
batch shapes may differ if they broadcast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..array.base import Array
from ..array.dense import Dense
from ..dispatch.registry import Registry
from .entries import elements_at, has_elements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..typing import Meta

join_pair: Registry[tuple[Array, Array]] = Registry("join_pair")
"""``join_pair.kernel(A, B)`` registers ``(x, y)``, which returns both arrays in the narrowest structure that contains
both. A kernel serves both orders of A and B."""

meet_pair: Registry[Array] = Registry("meet_pair")
"""``meet_pair.kernel(A, B)`` registers ``(x, y)``, which restricts `x`, zero outside of its pattern, to the narrowest
structure that contains its elementwise product with `y`. If `y` also `is_zero_outside`, these are the entries that both
store."""

restrict_to: Registry[Array] = Registry("restrict_to")
"""``restrict_to.kernel(A, B)`` registers ``(x, like)``, which returns the entries of `x` at the pattern of `like`, as
an array of B's structure. Without a kernel, `entries.elements` of `x` are used."""


def structure(x: Array) -> tuple[type[Array], Meta]:
    """Return the class and meta of an array: its static part without batch shape and assumptions."""
    return x._value[1][:2]


def same_pattern(x: Array, y: Array) -> bool:
    """Return whether the entries of two arrays are known to have the same positions, in the same order."""
    return x is y or (x.static_pattern and structure(x) == structure(y))


def is_zero_outside(x: Array, *args: Any, **static: Any) -> bool:
    """Return whether there are elements that an array does not store, and they are structural zeros."""
    return x.stores_entries and x.background is None and not x.covers


holds: Registry[bool] = Registry("holds")
"""``holds.kernel(A, B)`` registers ``(x, y)``, which returns whether `x`, zero outside of its pattern, stores all
positions of the pattern of `y`; static. Without a kernel the answer is no."""


def stores_pattern(x: Array, pattern: Array) -> bool:
    """Return whether `x` is known to store an entry wherever `pattern` does."""
    if same_pattern(x, pattern) or not is_zero_outside(x):
        return True
    kernel = holds.choose((x, pattern), {})
    return kernel is not None and kernel.run(x, pattern)


def join(x: Array, y: Array) -> tuple[Array, Array]:
    """Convert two arrays to the narrowest structure that contains both (inside a compiled call)."""
    if same_pattern(x, y):
        return x, y
    kernel = join_pair.choose((x, y), {})
    if kernel is not None:
        return kernel.run(x, y)
    kernel = join_pair.choose((y, x), {})
    if kernel is not None:
        return kernel.run(y, x)[::-1]
    return Dense.make((x.dense_data(),)), Dense.make((y.dense_data(),))


def can_join(x: Array, y: Array) -> bool:
    """Return whether a rule joins two arrays; otherwise their join is dense."""
    pairs = (x, y), (y, x)
    return same_pattern(x, y) or any(join_pair.choose(pair, {}) is not None for pair in pairs)


def join_all(arrays: Sequence[Array]) -> list[Array]:
    """Convert arrays to one structure that contains them all; backgrounds are unchanged."""
    if len(arrays) == 2:
        return list(join(*arrays))
    widest = arrays[0]
    for x in arrays[1:]:
        widest, _ = join(widest, x)
    if not widest.static_pattern:
        return [restrict(x, widest) for x in arrays]
    return [x if same_pattern(x, widest) else join(x, widest)[0] for x in arrays]


def meet(x: Array, y: Array) -> Array:
    """Restrict `x`, zero outside of its pattern, to a structure that contains its product with `y` (in a compiled
    call).
    """
    if same_pattern(x, y):
        return x
    kernel = meet_pair.choose((x, y), {})
    if kernel is not None:
        return kernel.run(x, y)
    kernel = meet_pair.choose((y, x), {}) if is_zero_outside(y) else None
    if kernel is not None:
        return restrict(x, kernel.run(y, x))
    return x.freed()


def restrict(x: Array, like: Array) -> Array:
    """Return the entries of `x` at the pattern of `like`, as an array of its structure (inside a compiled call)."""
    if same_pattern(x, like):
        return x
    kernel = restrict_to.choose((x, like), {})
    if kernel is not None:
        return kernel.run(x, like)
    if not has_elements(x):
        return like.rebuild(like.gather(x.dense_data()), None)
    batch_ndim = 0 if like.static_pattern else len(like.batch_shape)
    return like.rebuild(tuple(elements_at(x, where, batch_ndim) for where in like.positions()), None)


def same_structure(x: Array, y: Array) -> bool:
    """Return whether two arrays have the same structure.

    `jax.lax.scan` and `jax.lax.cond` require this of the arrays that they exchange.

    It compares class and static part, the presence of a background, and the assumptions. JAX compares dtypes and shapes
    itself.

    Parameters
    ----------
    x, y : array
        Arrays of this library or of JAX.

    Returns
    -------
    bool
        Whether the structures are equal. An array of JAX and a `Dense` differ.

    Raises
    ------
    TypeError
        If an argument is not an array of this library or of JAX.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.same_structure(sa.eye(3), sa.Diagonal([1.0, 2.0, 3.0]))
    False
    """
    import jax

    for argument, value in (("x", x), ("y", y)):
        if not isinstance(value, Array | jax.Array):
            raise TypeError(
                f"same_structure: {argument} must be an array of structarrays or JAX, got {type(value).__name__}"
            )
    structures: list[Any] = [jax.tree.structure(x), jax.tree.structure(y)]  # JAX's annotations lack their equality
    return bool(structures[0] == structures[1])
