"""Two structures in one: the join holds both, the meet is what both hold (docs/design/semantics.md).

A structure registers its rules here, in its own file. The rules see only structures with the same core shape; their
batch shapes may differ, as long as they broadcast.
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
"""``join_pair.kernel(A, B)``: both arrays in the narrowest structure that holds both; any order of A and B serves."""

meet_pair: Registry[Array] = Registry("meet_pair")
"""``meet_pair.kernel(A, B)``: the first array, which is zero outside of its pattern, restricted to the narrowest structure that
can hold its elementwise product with the second: to what both store, if the second `is_zero_outside`, too."""

restrict_to: Registry[Array] = Registry("restrict_to")
"""``restrict_to.kernel(A, B)``: the entries of an A at the pattern of a B, as an array of B's structure. Where there is none,
`entries.elements` of the A serve."""


def structure(x: Array) -> tuple[type[Array], Meta]:
    """The static part of an array: its class and meta, without shapes of batches and without assumptions."""
    return x._value[1][:2]


def same_pattern(x: Array, y: Array) -> bool:
    """Whether the entries of two arrays are known to stand at the same places, one for one."""
    return x is y or (x.static_pattern and structure(x) == structure(y))


def is_zero_outside(x: Array, *args: Any, **static: Any) -> bool:
    """Whether there are elements that an array does not store, and they are structural zeros."""
    return x.stores_entries and x.background is None and not x.covers


holds: Registry[bool] = Registry("holds")
"""``holds.kernel(A, B)``: whether the array, which is zero outside of its pattern, stores all places of the pattern of the
second: static. Where there is none, it is taken not to."""


def stores_pattern(x: Array, pattern: Array) -> bool:
    """Whether `x` is known to store an entry wherever `pattern` does."""
    if same_pattern(x, pattern) or not is_zero_outside(x):
        return True
    kernel = holds.choose((x, pattern), {})
    return kernel is not None and kernel.run(x, pattern)


def join(x: Array, y: Array) -> tuple[Array, Array]:
    """Both arrays in the narrowest structure that holds both (inside a compiled call)."""
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
    """Whether a rule joins two arrays; otherwise the join is the dense form of both."""
    pairs = (x, y), (y, x)
    return same_pattern(x, y) or any(join_pair.choose(pair, {}) is not None for pair in pairs)


def join_all(arrays: Sequence[Array]) -> list[Array]:
    """All arrays in one structure that holds them all, without regard to their backgrounds."""
    if len(arrays) == 2:
        return list(join(*arrays))
    widest = arrays[0]
    for x in arrays[1:]:
        widest, _ = join(widest, x)
    if not widest.static_pattern:
        return [restrict(x, widest) for x in arrays]
    return [x if same_pattern(x, widest) else join(x, widest)[0] for x in arrays]


def meet(x: Array, y: Array) -> Array:
    """`x`, which is zero outside of its pattern, in a structure that holds its product with `y` (in a compiled call)."""
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
    """The entries of `x` at the pattern of `like`, as an array of its structure (inside a compiled call)."""
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
    """Whether two arrays have the same structure, so that `jax.lax.scan` and `cond` take one for the other.

    It compares class and static part, whether there is a background, and the assumptions; dtypes and shapes are
    left to JAX.

    Parameters
    ----------
    x, y : array
        The arrays to compare.

    Returns
    -------
    bool
        Whether the structures are the same.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.same_structure(sa.eye(3), sa.Diagonal([1.0, 2.0, 3.0]))
    False
    """
    import jax

    for argument, value in (("x", x), ("y", y)):
        if not isinstance(value, Array):
            raise TypeError(f"same_structure: {argument} must be an array of structarrays, got {type(value).__name__}")
    structures: list[Any] = [jax.tree.structure(x), jax.tree.structure(y)]  # JAX's types leave their equality out
    return bool(structures[0] == structures[1])
