"""Independence of JAX's flags `jax_numpy_dtype_promotion` and `jax_numpy_rank_promotion`, which are meant for code of users.

The library evaluates its own code with the default flags. Compiled functions change the flags only while JAX traces, so that a call costs
nothing more. Both flags belong to JAX's cache key of compiled functions, but the compiled code does not depend on them. JAX evaluates
rules of derivatives and of batches later, in the context of the user. So the decorators of this module change the flags for each rule.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import jax.custom_batching

P = ParamSpec("P")
R = TypeVar("R")


_outside: contextvars.ContextVar[tuple[Any, Any] | None] = contextvars.ContextVar("outside", default=None)
"""The flags outside of `independent` code, or None if they are unchanged."""


def independent(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function compute under the default flags, for any flags of the caller.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> add = independent(lambda x, y: x + y)
    >>> with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
    ...     print(add(jnp.ones((2, 2), "float32"), jnp.ones(2, "int32")).dtype)
    float32
    """

    @functools.wraps(function)
    def evaluated(*args: P.args, **kwargs: P.kwargs) -> R:
        if are_defaults():
            return function(*args, **kwargs)
        config: Any = jax.config
        token = _outside.set((config.jax_numpy_dtype_promotion, config.jax_numpy_rank_promotion))
        try:
            with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
                return function(*args, **kwargs)
        finally:
            _outside.reset(token)

    return evaluated


def of_user(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function of a user, called by `independent` code, compute under the flags of the user."""
    flags = _outside.get()
    if flags is None:
        return function

    @functools.wraps(function)
    def evaluated(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.numpy_dtype_promotion(flags[0]), jax.numpy_rank_promotion(flags[1]):
            return function(*args, **kwargs)

    return evaluated


def are_defaults() -> bool:
    """Return whether both flags have their default values. The query takes 0.2 µs."""
    config: Any = jax.config  # its attributes appear at run time
    defaults: bool = config.jax_numpy_dtype_promotion == "standard" and config.jax_numpy_rank_promotion == "allow"
    return defaults


def full_precision() -> contextlib.AbstractContextManager[Any]:
    """Return a context in which products of float32 have 24 bits on every device (TF32 has 11, bfloat16 has 8)."""
    return contextlib.nullcontext() if jax.default_backend() == "cpu" else jax.default_matmul_precision("highest")


def precise(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function compute under the default flags and in full precision."""
    under_flags = independent(function)

    @functools.wraps(function)
    def evaluated(*args: P.args, **kwargs: P.kwargs) -> R:
        with full_precision():
            return under_flags(*args, **kwargs)

    return evaluated


class custom_jvp(jax.custom_jvp[R]):  # noqa: N801  # the name of JAX's class
    """`jax.custom_jvp` whose rule does not depend on the flags, in full precision."""

    def defjvp(self, jvp: Any, symbolic_zeros: bool = False) -> Any:
        """Define the rule."""
        super().defjvp(precise(jvp), symbolic_zeros)
        return jvp


class custom_vmap(jax.custom_batching.custom_vmap):  # noqa: N801
    """`jax.custom_batching.custom_vmap` whose function and rule do not depend on the flags, in full precision."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(precise(function))

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Define the rule."""
        super().def_vmap(precise(vmap_rule))
        return vmap_rule
