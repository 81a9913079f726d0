"""Where arrays lie."""

import jax
from jax.sharding import NamedSharding, PartitionSpec


def put(x: jax.Array, device: jax.Device | jax.sharding.Sharding | None) -> jax.Array:
    """An array on a device or a mesh, in a compiled function, too; None leaves it where it is."""
    return x if device is None else jax.device_put(x, device)


def device_of(x: jax.Array) -> jax.Device | jax.sharding.Sharding:
    """Where an array of any shape can be put beside this one: its device, or on a mesh whole on each of the devices."""
    device = x.device
    return NamedSharding(device.mesh, PartitionSpec()) if isinstance(device, NamedSharding) else device
