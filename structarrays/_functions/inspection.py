"""What the namespace can do on this machine: ``__array_namespace_info__`` of the standard."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .._core import dtypes as core_dtypes


class Info:
    """What `__array_namespace_info__` returns.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.__array_namespace_info__().default_dtypes()["real floating"]
    dtype('float64')
    """

    def capabilities(self) -> dict[str, bool | int]:
        """Whether boolean indexing and data-dependent shapes work (eagerly, they do), and the largest ``ndim``."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> jax.Device:
        """The device on which new arrays are placed."""
        chosen = jax.config.jax_default_device  # type: ignore[attr-defined]  # JAX makes it at run time
        return chosen if isinstance(chosen, jax.Device) else jax.local_devices()[0]

    def devices(self) -> tuple[jax.Device, ...]:
        """The devices of this process: those of JAX's default backend, then those of the host."""
        devices = jax.local_devices()
        try:
            host = jax.local_devices(backend="cpu")
        except RuntimeError:  # JAX was told to use the accelerator only
            host = []
        return (*devices, *(d for d in host if d not in devices))

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtypes that arrays have where none is asked for: 64 bits wide if JAX's x64 switch is on."""
        check_device(device, "default_dtypes")
        return {
            "real floating": core_dtypes.default_dtype("f"),
            "complex floating": core_dtypes.default_dtype("c"),
            "integral": core_dtypes.default_dtype("i"),
            "indexing": core_dtypes.default_dtype("i"),
        }

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, np.dtype]:
        """The dtypes of a kind, by their names.

        Parameters
        ----------
        device : jax.Device, optional
            All devices have the same dtypes.
        kind : str or tuple of str, optional
            One of the standard's kinds, such as ``"real floating"``, or several; by default all dtypes.

        Raises
        ------
        ValueError
            If a kind is unknown.
        """
        check_device(device, "dtypes")
        kinds = tuple(core_dtypes.KINDS) if kind is None else kind if isinstance(kind, tuple) else (kind,)
        for k in kinds:
            if not isinstance(k, str) or k not in core_dtypes.KINDS:
                known = ", ".join(map(repr, core_dtypes.KINDS))
                raise ValueError(f"dtypes: kind must be one of {known} or a tuple of these, got {k!r}")
        names = [name for name in core_dtypes.BY_NAME if any(name in core_dtypes.KINDS[k] for k in kinds)]
        return {name: np.dtype(name) for name in names if core_dtypes.canonical(np.dtype(name)).name == name}


def __array_namespace_info__() -> Info:
    """What this namespace can do on this machine.

    Returns
    -------
    Info
        With the methods `capabilities`, `default_device`, `default_dtypes`, `devices` and `dtypes`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.__array_namespace_info__().capabilities()["boolean indexing"]
    True
    """
    return Info()


def check_device(device: Any, function: str) -> jax.Device | jax.sharding.Sharding | None:
    """The argument, if it is a device, a sharding or None.

    Raises
    ------
    TypeError
        If it is something else.
    """
    if device is None or isinstance(device, (jax.Device, jax.sharding.Sharding)):
        return device
    raise TypeError(f"{function}: device must be a jax.Device, a jax.sharding.Sharding or None, got {device!r}")
