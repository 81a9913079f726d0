"""A loop whose number of steps is known only at run time, with derivatives in both directions."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp
from jax import Array, lax

from .flags import custom_vmap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    T = TypeVar("T")


def repeat(step: Callable[[T], T], state: T, count: Array, *, width: int, depth: int) -> T:
    """``step(step(… state))``, `count` times.

    A `lax.while_loop` has no reverse derivative, since the number of states to keep is unknown. Here loops of `width` iterations are
    nested `depth` deep. Iterations beyond `count` are skipped, whole loops at a time. Each loop keeps only the states of its own
    iterations, and recomputes the inner loops (Griewank and Walther, *Evaluating Derivatives*, 12.3: multilevel checkpointing).

    Parameters
    ----------
    step : callable
        Maps the state to the next state.
    state : pytree of jax.Array
    count : jax.Array, integer scalar
        At most ``width**depth``; further steps are not executed. It must be the same for all mapped elements (see `largest`).
        Otherwise each skipped step would be computed.
    width, depth : int
        The reverse derivative takes the memory of ``width * depth`` states, and computes the steps `depth` times.

    Returns
    -------
    pytree of jax.Array
    """

    def level(state: T, first: Array, depth: int) -> T:
        if depth == 0:
            return step(state)
        size = width ** (depth - 1)

        def body(state: T, i: Array) -> tuple[T, None]:
            start = first + i * size
            inner: Callable[..., Any] = functools.partial(level, depth=depth - 1)
            # A single step keeps only its state.
            inner = jax.checkpoint(inner) if depth > 1 else inner
            return lax.cond(start < count, inner, lambda state, start: state, state, start), None

        return lax.scan(body, state, jnp.arange(width))[0]

    return level(state, jnp.zeros((), int), depth)


@custom_vmap
def _across_mapped(value: Array) -> Array:
    return value


@_across_mapped.def_vmap
def _across_mapped_vmap(axis_size: int, in_batched: Sequence[bool], value: Array) -> tuple[Array, bool]:
    return _across_mapped(jnp.max(value, axis=0)), False


def largest(values: Array) -> Array:
    """Largest of some nonnegative values; under `jax.vmap` the largest over the mapped axis, for decisions about the
    whole batch.
    """
    result: Array = _across_mapped(lax.stop_gradient(jnp.max(values, initial=0)))
    return result
