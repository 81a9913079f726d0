"""The choice between a compiled library of the host and a JAX function."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
from jax import lax

from .host_calls import on_host

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import jax


def on_cpu(
    fill: Callable[..., None],
    portable: Callable[..., Sequence[jax.Array]],
    results: tuple[jax.ShapeDtypeStruct, ...],
    *arrays: jax.Array,
) -> tuple[jax.Array, ...]:
    """Call a compiled library of the host in programs for CPUs, and a JAX function in programs for other devices.

    Parameters
    ----------
    fill : callable
        ``fill(*targets, *arrays)`` writes the results into NumPy arrays. It must not modify `arrays` and must not call JAX. Under
        `jax.vmap` all arrays have one more dimension in front.
    portable : callable
        The same as a JAX function of `arrays`, which returns one array per result.
    results : tuple of jax.ShapeDtypeStruct
        The shapes and dtypes of the results.
    *arrays : jax.Array
        The arguments.

    Returns
    -------
    tuple of jax.Array
    """

    def function(*buffers: np.ndarray) -> tuple[np.ndarray, ...]:
        # Under vmap the arrays have dimensions in front, of length 1 if they are not mapped.
        ahead = buffers[0].ndim - len(arrays[0].shape)
        batch = np.broadcast_shapes(*(b.shape[:ahead] for b in buffers))
        targets = tuple(np.empty(batch + r.shape, r.dtype) for r in results)
        fill(*targets, *(np.broadcast_to(b, batch + b.shape[ahead:]) for b in buffers))
        return targets

    found: tuple[jax.Array, ...] = lax.platform_dependent(
        *arrays,
        cpu=functools.partial(on_host, function, results),
        default=lambda *arrays: tuple(portable(*arrays)),
    )
    return found
