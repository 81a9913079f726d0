"""Calls of NumPy code from compiled code: for the solvers that live on the host, and beneath `structarrays.host_function`.

On the CPU the host function reads and fills the buffers of the program themselves. `jax.pure_callback` would put copies of them into
`jax.Array`s, asynchronously, and wait for these on the very threads that copy: a program whose threads are all in callbacks (on one
core, one) then waits for ever (https://github.com/jax-ml/jax/issues/24255). Other devices copy to the host in any case, with
`jax.pure_callback`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax import lax
from jax.experimental.buffer_callback import buffer_callback

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def on_host(
    function: Callable[..., Sequence[Any]], results: tuple[jax.ShapeDtypeStruct, ...], *arrays: jax.Array
) -> tuple[jax.Array, ...]:
    """The results of a pure NumPy function, called from compiled code.

    Parameters
    ----------
    function : callable
        Of NumPy arrays, which it must neither write to nor keep; it returns as many arrays as there are results, which broadcast to
        their shapes. It must not call JAX. Under `jax.vmap` all arrays have one more dimension in front, of length 1 where an
        array has no such dimension, and so have the results.
    results : tuple of jax.ShapeDtypeStruct
        What it returns.
    *arrays : jax.Array
        Its arguments.

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
        # What vmap has put in front of the arguments stands in front of the results.
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
