"""Two structures in one: the join holds both, the meet is what both hold (DESIGN 4.4).

A structure registers its rules here, in its own file. The rules see only structures with the same core shape; their
batch shapes may differ, as long as they broadcast.
"""

from .array import Array
from .dense import Dense
from .registry import Registry

join_pair = Registry("join_pair")
"""``join_pair.kernel(A, B)``: both arrays in the narrowest structure that holds both; any order of A and B serves."""

meet_pair = Registry("meet_pair")
"""``meet_pair.kernel(A, B)``: `x` restricted to the entries that both patterns store; any order of A and B serves."""

restrict_to = Registry("restrict_to")
"""``restrict_to.kernel(A, B)``: the entries of an A at the pattern of a B, as an array of B's structure."""


def structure(x: Array):
    """The static part of an array: its class and meta, without shapes of batches and without assumptions."""
    return x._value[1][:2]


def join(x: Array, y: Array) -> tuple[Array, Array]:
    """Both arrays in the narrowest structure that holds both (inside a compiled call)."""
    if structure(x) == structure(y):
        return x, y
    kernel = join_pair.choose((x, y), {})
    if kernel is not None:
        return kernel.run(x, y)
    kernel = join_pair.choose((y, x), {})
    if kernel is not None:
        return kernel.run(y, x)[::-1]
    return Dense._make((x._dense(),)), Dense._make((y._dense(),))


def join_all(arrays) -> list[Array]:
    """All arrays in one structure that holds them all, without regard to their backgrounds."""
    widest = arrays[0]
    for x in arrays[1:]:
        widest, _ = join(widest, x)
    return [x if structure(x) == structure(widest) else join(x, widest)[0] for x in arrays]


def meet(x: Array, y: Array) -> Array:
    """`x` at the entries that both patterns store (inside a compiled call)."""
    if structure(x) == structure(y):
        return x
    kernel = meet_pair.choose((x, y), {})
    if kernel is not None:
        return kernel.run(x, y)
    kernel = meet_pair.choose((y, x), {})
    if kernel is not None:
        return restrict(x, kernel.run(y, x))
    return x


def restrict(x: Array, like: Array) -> Array:
    """The entries of `x` at the pattern of `like`, as an array of its structure (inside a compiled call)."""
    if structure(x) == structure(like):
        return x
    kernel = restrict_to.choose((x, like), {})
    if kernel is not None:
        return kernel.run(x, like)
    return like._rebuild(like._gather(x._dense()), None)


def same_structure(x: Array, y: Array) -> bool:
    """Whether two arrays have the same structure, so that `jax.lax.scan` and `cond` take one for the other.

    It compares class and static part, whether there is a background, and the assumptions; dtypes and shapes are
    left to JAX.

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
    return jax.tree.structure(x) == jax.tree.structure(y)
