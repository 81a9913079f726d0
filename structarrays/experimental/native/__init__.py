"""Native calls: functions of JAX accept structured arrays without a wrapper (docs/how_to/call_jax_natively.md).

While native calls are on, ``jnp.exp(D)`` does what ``sa.structured(jnp.exp)(D)`` does, and the loops, conditions and
`vmap` of JAX widen structures. This needs JAX 0.12, since it replaces attributes of JAX (`structarrays.experimental.native._jax`).
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

from ._jax import PATCHES, version_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["disable", "enable", "enabled", "is_enabled"]

_lock = threading.Lock()


def enable() -> None:
    """Turn native calls on, for all threads.

    Functions of `jax.numpy`, `jax.lax`, `jax.nn`, `jax.scipy` and `jax.random` then accept structured arrays. If native
    calls are on already, nothing changes.

    Raises
    ------
    RuntimeError
        If the version of JAX is not 0.12, or an attribute of JAX that native calls need is missing or has another form.
        Then JAX has not been changed.

    See Also
    --------
    disable, enabled, structarrays.structured

    Notes
    -----
    A call costs as much as a call of a compiled function of pytrees. Dense arrays take the same path as without native
    calls, except that functions of JAX that are not compiled as a whole, such as `jax.numpy.sum`, check the types of
    their arguments first.

    Whether native calls are on is a part of the cache key of `jax.jit`. So functions that were compiled before are
    compiled again; call `enable` at the start of a program.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> import structarrays as sa
    >>> from structarrays.experimental import native
    >>> if jax.__version__.startswith("0.12."):
    ...     native.enable()
    ...     assert isinstance(jnp.sin(sa.Diagonal([0.0, 1.0])), sa.Diagonal)
    ...     native.disable()
    """
    with _lock:
        if not _on().get_global():
            _begin("enable")
            _on().set_global(True)


def disable() -> None:
    """Turn native calls off, for all threads.

    All attributes of JAX are the original objects again. If native calls are off already, nothing changes.

    Examples
    --------
    >>> from structarrays.experimental import native
    >>> native.disable()
    >>> native.is_enabled()
    False
    """
    with _lock:
        if _loaded and _on().get_global():
            _on().set_global(False)
            PATCHES.end()


@contextlib.contextmanager
def enabled() -> Iterator[None]:
    """Turn native calls on in this thread; a context manager.

    Raises
    ------
    RuntimeError
        The same as for `enable`.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> import structarrays as sa
    >>> from structarrays.experimental import native
    >>> T = sa.tridiagonal([1.0], [4.0, 4.0], [1.0])
    >>> if jax.__version__.startswith("0.12."):
    ...     with native.enabled(), sa.densify("error"):
    ...         x = jnp.linalg.solve(T, T @ jnp.asarray([1.0, 2.0]))
    ...     assert jnp.allclose(x, jnp.asarray([1.0, 2.0]))
    """
    with _lock:
        _begin("enabled")
    try:
        with _on()(True):
            yield
    finally:
        with _lock:
            PATCHES.end()


def is_enabled() -> bool:
    """Return whether native calls are on in this thread.

    Examples
    --------
    >>> from structarrays.experimental import native
    >>> native.is_enabled()
    False
    """
    return bool(_loaded and _on().value)


_loaded: list[bool] = []
"""Not empty after the first use: before it, the rules of `structured` need not be imported."""


def _on() -> Any:
    from ._calls import ON

    return ON


def _begin(name: str) -> None:
    """Replace the attributes of JAX."""
    problem = version_problem()
    if problem is not None:
        raise RuntimeError(f"native.{name}: {problem}; use structarrays.structured, which works with it")
    from . import _calls, _control

    PATCHES.begin(
        {
            ("jax._src.pjit", "_trace_for_jit"): _calls.on_compiled,
            ("jax.numpy:ufunc", "__call__"): _calls.on_ufunc,
            ("jax.scipy.linalg", "cho_factor"): _calls.on_cho_factor,
            ("jax", "vmap"): _control.on_vmap,
            ("jax.lax", "cond"): _control.on_cond,
            ("jax.lax", "switch"): _control.on_switch,
            ("jax.lax", "platform_dependent"): _control.on_platform_dependent,
            ("jax.lax", "scan"): _control.on_scan,
            ("jax.lax", "map"): _control.on_map,
            ("jax.lax", "while_loop"): _control.on_while_loop,
            ("jax.lax", "fori_loop"): _control.on_fori_loop,
        },
        _calls.on_structured,
    )
    _loaded[:] = [True]
