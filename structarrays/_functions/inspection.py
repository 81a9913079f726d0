"""Inspection of the namespace: ``__array_namespace_info__`` of the standard."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .._core import dtypes as core_dtypes


class Info:
    """Capabilities, devices and data types of the namespace, returned by `__array_namespace_info__`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.__array_namespace_info__().default_dtypes()["real floating"]
    dtype('float64')
    """

    def capabilities(self) -> dict[str, bool | int]:
        """Return the supported features (boolean indexing, data-dependent shapes) and the largest ``ndim``."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> jax.Device:
        """Return the default device of new arrays."""
        config: Any = jax.config  # its attributes appear at run time
        chosen = config.jax_default_device
        return chosen if isinstance(chosen, jax.Device) else jax.local_devices()[0]

    def devices(self) -> tuple[jax.Device, ...]:
        """Return the devices of this process: the devices of JAX's default backend, then the devices of the host."""
        devices = jax.local_devices()
        try:
            host = jax.local_devices(backend="cpu")
        except RuntimeError:  # JAX is configured for the accelerator only
            host = []
        return (*devices, *(d for d in host if d not in devices))

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """Return the default data types by kind: 64 bits wide if JAX's 64-bit mode is on, otherwise 32 bits."""
        check_device(device, "default_dtypes")
        return {
            "real floating": core_dtypes.default_dtype("f"),
            "complex floating": core_dtypes.default_dtype("c"),
            "integral": core_dtypes.default_dtype("i"),
            "indexing": core_dtypes.default_dtype("i"),
        }

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, np.dtype]:
        """Return the data types of a kind, by name.

        Parameters
        ----------
        device : jax.Device, optional
            Ignored: all devices have the same data types.
        kind : str or tuple of str, optional
            Kind of the standard, such as ``"real floating"``, or a tuple of kinds. The default is all kinds.

        Returns
        -------
        dict
            Data types by name.

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
    """Return an object with the capabilities, devices and data types of the namespace.

    Returns
    -------
    Info
        Object with the methods `capabilities`, `default_device`, `default_dtypes`, `devices` and `dtypes`.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.__array_namespace_info__().capabilities()["boolean indexing"]
    True
    """
    return Info()


def check_device(device: Any, function: str) -> jax.Device | jax.sharding.Sharding | None:
    """Return the argument if it is a device, a sharding or None.

    Raises
    ------
    TypeError
        If it is any other object.
    """
    if device is None or isinstance(device, (jax.Device, jax.sharding.Sharding)):
        return device
    raise TypeError(f"{function}: device must be a jax.Device, a jax.sharding.Sharding or None, got {device!r}")
