"""Native calls: functions of JAX accept structured arrays without a wrapper (docs/how_to/call_jax_natively.md).

While native calls are on, ``jnp.exp(D)`` does what ``sa.structured(jnp.exp)(D)`` does, and the loops, conditions and
`vmap` of JAX widen structures. This needs JAX 0.12: it redirects functions of JAX, which `native._jax` lists.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ._jax import (
    TRACE,
    array_functions,
    arraylike_types,
    everywhere,
    problems,
    redirected_functions,
    set_everywhere,
    version_problem,
)
from ._redirect import Changes, Redirect, Replace

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["disable", "enable", "enabled", "is_enabled"]

_changes = Changes()
"""Changes of JAX that are made at the moment."""

_lock = threading.Lock()


def enable() -> None:
    """Turn native calls on, for all threads.

    Functions of `jax.numpy`, `jax.lax`, `jax.nn`, `jax.scipy` and `jax.random` then accept structured arrays. If native
    calls are on already, nothing changes.

    Raises
    ------
    RuntimeError
        If the version of JAX is not 0.12, or an attribute of JAX that native calls need is missing or has another form.
        JAX is then unchanged.

    See Also
    --------
    disable, enabled, structarrays.structured

    Notes
    -----
    A call costs about as much as a call of a compiled function of pytrees. Functions that JAX compiles as a whole, such
    as `jax.numpy.sin`, cost the same for dense arrays as before. Other functions of JAX, such as `jax.numpy.sum`, look
    at the types of their arguments first.

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
        if not (_changes.in_use and everywhere(_on())):
            _begin("enable")
            set_everywhere(_on(), True)


def disable() -> None:
    """Turn native calls off, for all threads.

    JAX is then unchanged, unless `enabled` is active. If native calls are off already, nothing changes.

    Examples
    --------
    >>> from structarrays.experimental import native
    >>> native.disable()
    >>> native.is_enabled()
    False
    """
    with _lock:
        if _changes.in_use and everywhere(_on()):
            set_everywhere(_on(), False)
            _changes.end()


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
            _changes.end()


def is_enabled() -> bool:
    """Return whether native calls are on in this thread.

    Examples
    --------
    >>> from structarrays.experimental import native
    >>> native.is_enabled()
    False
    """
    return _changes.in_use and bool(_on().value)


def _on() -> Any:
    # Imported late, since this imports the rules of `structured`.
    from ._calls import ON

    return ON


def _begin(name: str) -> None:
    """Change JAX, unless it is changed already, after a check of the installed version."""
    problem = version_problem()
    if problem is not None:
        raise RuntimeError(f"native.{name}: {problem}; use structarrays.structured, which works with it")
    differences = [] if _changes.in_use else problems()
    if differences:
        raise RuntimeError(
            f"native.{name}: JAX {jax.__version__} must have the tested attributes, but {'; '.join(differences)}; use "
            "structarrays.structured, which does not need them"
        )
    _changes.begin(_plan)


def _plan() -> list[Redirect | Replace]:
    from . import _calls, _control

    control: dict[tuple[str, str], Any] = {
        ("jax", "vmap"): _control.on_vmap,
        ("jax.lax", "cond"): _control.on_cond,
        ("jax.lax", "switch"): _control.on_switch,
        ("jax.lax", "platform_dependent"): _control.on_platform_dependent,
        ("jax.lax", "scan"): _control.on_scan,
        ("jax.lax", "map"): _control.on_map,
        ("jax.lax", "while_loop"): _control.on_while_loop,
        ("jax.lax", "fori_loop"): _control.on_fori_loop,
    }
    calls: dict[tuple[str, str], Any] = {
        ("jax.scipy.linalg", "cho_factor"): _calls.on_cho_factor,
        ("jax:custom_jvp", "__call__"): _calls.on_custom_jvp,
    }
    functions = redirected_functions()
    trace = functions.pop(TRACE)
    plan: list[Redirect | Replace] = [Redirect(trace, _calls.concerns_compiled, _calls.on_compiled)]
    for key, function in functions.items():
        concerns = _control.concerns if key in control else _calls.is_concerned
        plan.append(Redirect(function, concerns, control.get(key) or calls[key]))
    plan += [Redirect(f, _calls.is_concerned, _calls.on_structured) for f in array_functions().values()]
    module, name, types = arraylike_types()
    # JAX accepts numbers, too. Named here, they cost less than the check of `Native`.
    return [*plan, Replace(module, name, (*types, int, float, complex, np.generic, _calls.Native))]
