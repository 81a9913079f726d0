"""Placement of arrays on devices."""

import jax
from jax.sharding import NamedSharding, PartitionSpec


def put(x: jax.Array, device: jax.Device | jax.sharding.Sharding | None) -> jax.Array:
    """Put an array on a device or a mesh, in a compiled function, too; None leaves it in place."""
    return x if device is None else jax.device_put(x, device)


def device_of(x: jax.Array) -> jax.Device | jax.sharding.Sharding:
    """Return the placement for arrays of any shape next to this array: its device, or on a mesh replication on all
    devices.
    """
    device = x.device
    return NamedSharding(device.mesh, PartitionSpec()) if isinstance(device, NamedSharding) else device
