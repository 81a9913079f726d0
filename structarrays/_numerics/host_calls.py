"""Calls of NumPy code from compiled code, for the solvers on the host, and for `structarrays.host_function`.

`on_host` always calls the host. `on_cpu` calls a compiled library of the host, such as LAPACK, in programs for CPUs, and a JAX function
in programs for other devices and in exported programs.

On the CPU the host function reads and writes the buffers of the program directly. `jax.pure_callback` would copy them
to `jax.Array`s asynchronously, and wait for these on the threads that copy. A program whose threads are all in
callbacks (on one core, a single thread) then deadlocks (https://github.com/jax-ml/jax/issues/24255). Other devices copy
to the host in any case, with `jax.pure_callback`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax import lax
from jax.experimental.buffer_callback import buffer_callback

from .._core.jax_internals import host_primitive

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def on_host(
    function: Callable[..., Sequence[Any]], results: tuple[jax.ShapeDtypeStruct, ...], *arrays: jax.Array
) -> tuple[jax.Array, ...]:
    """Call a pure NumPy function from compiled code.

    Parameters
    ----------
    function : callable
        Function of NumPy arrays, which it must neither modify nor keep. It returns one array per result; these broadcast to the
        shapes of the results. It must not call JAX. Under `jax.vmap` all arrays have one more dimension in front, of length 1 if an
        array is not mapped, and so have the results.
    results : tuple of jax.ShapeDtypeStruct
        The shapes and dtypes of the results.
    *arrays : jax.Array
        The arguments of the function.

    Returns
    -------
    tuple of jax.Array
    """

    def fill(_: Any, targets: Sequence[Any], *buffers: Any) -> None:
        for target, value in zip(targets, function(*map(np.asarray, buffers)), strict=True):
            np.asarray(target)[...] = value

    def copies(*copied: Any) -> tuple[np.ndarray, ...]:
        copied = tuple(map(np.asarray, copied))
        values = function(*copied)
        # The dimensions that vmap adds in front of the arguments are added in front of the results.
        ahead = len(np.shape(copied[0])) - len(arrays[0].shape) if arrays else 0
        batch = np.broadcast_shapes(*(a.shape[:ahead] for a in copied))
        return tuple(
            np.broadcast_to(np.asarray(value, r.dtype), batch + r.shape)
            for value, r in zip(values, results, strict=True)
        )

    found: tuple[jax.Array, ...] = lax.platform_dependent(
        *arrays,
        cpu=buffer_callback(fill, results, vmap_method="expand_dims"),
        default=functools.partial(jax.pure_callback, copies, results, vmap_method="expand_dims"),
    )
    return found


_policies: list[Callable[[], bool]] = []


def follow(policy: Callable[[], bool]) -> None:
    """Let a function tell whether `on_cpu` may call the host, each time that JAX traces."""
    _policies[:] = [policy]


def are_allowed() -> bool:
    """Return whether `on_cpu` may call the host; see `structarrays.host_calls`."""
    return all(policy() for policy in _policies)


def on_cpu(
    fill: Callable[..., None],
    portable: Callable[..., Sequence[jax.Array]],
    results: tuple[jax.ShapeDtypeStruct, ...],
    *arrays: jax.Array,
) -> tuple[jax.Array, ...]:
    """Call a compiled library of the host, or compute the same in XLA.

    A call takes 10 µs more than the function, without a copy. JAX does not store programs with such calls on disk.

    Parameters
    ----------
    fill : callable
        ``fill(*targets, *arrays)`` writes the results into NumPy arrays, which are the buffers of the program. It must not modify `arrays`
        and must not call JAX. Under `jax.vmap` all arrays have one more dimension in front.
    portable : callable
        The same as a JAX function of `arrays`: for other devices, for `jax.export`, and where `sa.host_calls` forbids calls of the host.
    results : tuple of jax.ShapeDtypeStruct
        The shapes and dtypes of the results.
    *arrays : jax.Array
        The arguments.

    Returns
    -------
    tuple of jax.Array
    """
    if not are_allowed():
        return tuple(portable(*arrays))

    def on_buffers(_: Any, targets: Sequence[Any], *buffers: Any) -> None:
        fill(*map(np.asarray, targets), *map(np.asarray, buffers))

    return host_primitive.call(on_buffers, portable, results, *arrays)
