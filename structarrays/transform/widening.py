"""Common structures of values: the results of branches of a condition, the carried values of a loop.

The *target* of a value is the structure that it is to have: a structured array of `jax.ShapeDtypeStruct`, or one
`jax.ShapeDtypeStruct` for an array of JAX. Targets are joined until they contain all possible values; then values are
widened to their targets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax

from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.array.operands import strip_weak
from .._core.dispatch import explicit
from .._structures.banded.array import is_nothing
from .constant_patterns import CONSTANTS, LU, Constant
from .rules import involved, is_special, plain
from .structure import join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def settled(value: Any) -> Any:
    """Convert a value to the form that a loop carries: a constant of the program becomes dense, and weak types are
    removed.
    """
    if isinstance(value, (Array, LU)):
        return jax.tree.map(strip_weak, value)
    return strip_weak(jax.numpy.asarray(value.dense() if is_special(value) else value))


def settling(values: Iterable[Any]) -> Callable[[Any], Any]:
    """Return the function that settles results of a loop or branch with these values.

    If there are structured arrays among the values, constants with structural zeros, such as ``jnp.eye(n)`` and
    ``jnp.zeros_like(A)``, become structured, too.
    """
    return _structured_or_settled if involved(values) else settled


def _structured_or_settled(value: Any) -> Any:
    found = value.structured() if isinstance(value, Constant) else None
    return settled(value if found is None else found)


def fixed(value: Any) -> Any:
    """Convert a value that a loop or branch reads without changing it: a constant of the program may remain one."""
    return value if isinstance(value, CONSTANTS) else settled(value)


def target_of(value: Any) -> Any:
    """Return the target of a value; a constant of the program is its own target."""
    if isinstance(value, CONSTANTS):
        return value
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(jax.numpy.shape(leaf), leaf.dtype), value)


def dense_target(target: Any) -> jax.ShapeDtypeStruct:
    """Return the target of a dense array."""
    return jax.ShapeDtypeStruct(target.shape, target.dtype)


def key(target: Any) -> tuple[Any, Any]:
    """Return a key that is equal for equal targets."""
    if isinstance(target, CONSTANTS):
        return id(target), target.shape
    leaves, tree = jax.tree.flatten(target)
    return tree, tuple((leaf.shape, leaf.dtype) for leaf in leaves)


def join_targets(x: Any, y: Any) -> Any:
    """Return the narrowest target that contains both; dense if no structure does."""
    if key(x) == key(y):
        return x
    if isinstance(x, LU) and isinstance(y, LU) and x.part == y.part:
        matrix = join_targets(x.matrix, y.matrix)
        return LU(matrix, x.part) if isinstance(matrix, Array) else dense_target(x)
    if not (isinstance(x, Array) and isinstance(y, Array)) or x.shape != y.shape:
        return dense_target(x)
    for one, other in ((x, y), (y, x)):
        if is_nothing(one) and _holds_zero(other):
            return other.assuming(frozenset())
    forgetful = [target.assuming(x.assumptions & y.assumptions) for target in (x, y)]
    if key(forgetful[0]) == key(forgetful[1]):
        return forgetful[0]
    if not (x.static_pattern and y.static_pattern):
        return dense_target(x)
    first, second = explicit.eval_shape(_joined, *forgetful)
    if not isinstance(first, Array) or type(first) is Dense or key(first) != key(second):
        return dense_target(x)
    return first


def _holds_zero(x: Array) -> bool:
    """Return whether an array is zero if all of its parameters are."""
    return x.linear and all(jax.numpy.issubdtype(leaf.dtype, jax.numpy.inexact) for leaf in jax.tree.leaves(x))


def _joined(x: Any, y: Any) -> tuple[Any, Any]:
    both: tuple[Any, Any] = join.__wrapped__(x, y)
    return both


def widened(value: Any, target: Any) -> Any:
    """Convert a value to the structure of a target that contains it."""
    value = _structured_or_settled(value) if isinstance(target, Array) else settled(value)
    if isinstance(value, LU) and isinstance(target, LU):
        return LU(widened(value.matrix, target.matrix), value.part)
    if not isinstance(target, Array):
        return plain(value, "a loop or condition whose structures differ")
    if key(target_of(value)) == key(target):
        return value
    value = value.assuming(target.assumptions)
    if key(target_of(value)) == key(target):
        return value
    zeros = jax.tree.map(lambda leaf: jax.numpy.zeros(leaf.shape, leaf.dtype), target)
    if is_nothing(value) and _holds_zero(target):
        return zeros
    # The other array consists of zeros, since only its structure matters.
    return _joined(value, zeros)[0].assuming(target.assumptions)
