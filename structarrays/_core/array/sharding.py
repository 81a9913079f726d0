"""Arrays that are divided among the devices of a mesh.

A `jax.sharding.NamedSharding` names, for each dimension of an array, the mesh axes along which it is divided. These are
the dimensions that users see; each structure returns from `Array.specs` how its parameters are divided. A parameter
whose own dimension does not divide evenly (a small factor, for example) is replicated on every device.

Off-diagonals are shorter than the main diagonal, and JAX divides arrays only evenly. So a structure of diagonals pads
its parameters at their ends (`Array._padded_for`), and records the number of pieces (`Array.pieces`). The padding is
never read. The result of a compiled call is padded again before it leaves the call, so that it may stay divided.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

import jax
from jax.sharding import NamedSharding, PartitionSpec

from ..dispatch import explicit
from ..dispatch.explicit import devices_along, explicit_names
from .base import Array
from .flattening import parameters
from .sharing import jit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..typing import Spec

T = TypeVar("T")


def placed(x: Array, sharding: NamedSharding) -> Array:
    """Divide an array among the devices of a mesh.

    Raises
    ------
    ValueError
        If the specification has more entries than the array has dimensions, or a dimension does not divide evenly.
    """
    spec, mesh = tuple(sharding.spec), sharding.mesh
    if len(spec) > x.ndim:
        raise ValueError(
            f"to_device: the sharding must have at most {x.ndim} entries, one for each dimension, got {sharding.spec}"
        )
    spec += (None,) * (x.ndim - len(spec))
    for axis, (n, along) in enumerate(zip(x.shape, spec, strict=True)):
        count = devices_along(mesh, along)
        if n % count:
            raise ValueError(
                f"to_device: dimension {axis} of an array of shape {x.shape} must be a multiple of {count}, the number of "
                f"devices along {along!r}"
            )
    return _placed(x, spec, mesh)


def _placed(x: Array, spec: Spec, mesh: Any) -> Array:
    def divides(n: int, along: Any) -> bool:
        return along is not None and n % devices_along(mesh, along) == 0

    count = max(devices_along(mesh, along) for along in (*spec, None))
    if _pads(x) and x.pieces != count:
        x = repadded(x, count)
    leaves, (cls, meta, assumptions) = x._value
    where = zip(leaves, x.specs(spec, divides), strict=True)
    return cls.make(
        tuple(None if leaf is None else _put(leaf, own, mesh, divides) for leaf, own in where), meta, assumptions
    )


def _put(leaf: Any, spec: Spec, mesh: Any, divides: Callable[[int, Any], bool]) -> Any:
    spec = tuple(along if divides(n, along) else None for n, along in zip(leaf.shape, spec, strict=False))
    if isinstance(leaf, Array):
        return _placed(leaf, spec + (None,) * (leaf.ndim - len(spec)), mesh)
    where = NamedSharding(mesh, PartitionSpec(*spec))
    if not isinstance(leaf, jax.core.Tracer):
        return jax.device_put(leaf, where)
    if not explicit_names(mesh):
        return jax.lax.with_sharding_constraint(leaf, where)
    if explicit.is_automatic(mesh):
        return jax.lax.with_sharding_constraint(leaf, where.spec)
    return jax.device_put(leaf, where)  # `reshard` does not add the devices of a mesh that is not set


def of_factors(factors: Sequence[Array], spec: Spec, divides: Callable[[int, Any], bool]) -> tuple[Spec, ...]:
    """Return the specifications of the factors of a Kronecker product: rows and columns each divide the first factor
    that divides evenly.
    """
    *batch, rows, columns = spec
    place = [
        next((i for i, f in enumerate(factors) if divides(f.shape[axis], along)), None)
        for axis, along in ((-2, rows), (-1, columns))
    ]
    return tuple(
        (*batch, rows if i == place[0] else None, columns if i == place[1] else None) for i in range(len(factors))
    )


@functools.cache
def _several_devices() -> bool:
    return jax.device_count() > 1


def on_mesh(arrays: Iterable[Any]) -> list[jax.Array]:
    """Return the parameters of arrays that lie on a mesh and have values (traced ones have none)."""
    if not _several_devices():  # checked in every eager call
        return []
    return [
        leaf
        for leaf in parameters(arrays)
        if isinstance(getattr(leaf, "sharding", None), NamedSharding) and not isinstance(leaf, jax.core.Tracer)
    ]


def place_on_mesh_of(result: T, arrays: Sequence[jax.Array]) -> T:
    """Put the result of a call that ran on the host on the mesh of its arguments.

    It is replicated on every device, except the entries of sparse arrays, which are divided like the arguments.
    """
    shardings: list[Any] = [x.sharding for x in arrays]
    mesh = shardings[0].mesh
    along = next((names for sharding in shardings for names in sharding.spec if names is not None), None)

    def put(x: Any) -> Any:
        if _pads(x):
            return _placed(x, (None,) * len(x.batch_shape) + (along,) + (None,) * (x.core_ndim - 1), mesh)
        return jax.device_put(x, NamedSharding(mesh, PartitionSpec()))

    moved: T = jax.tree.map(put, result, is_leaf=_pads)
    return moved


def _pads(x: Any) -> bool:
    """Return whether this is an array of a structure that can pad its parameters."""
    return isinstance(x, Array) and type(x)._padded_for is not Array._padded_for


def pieces(arrays: Iterable[Any]) -> int:
    """Return the number of pieces for which arrays, or parts of them, are padded; 1 without padding."""
    if not _several_devices():
        return 1
    most = 1
    for x in arrays:
        if isinstance(x, Array):
            most = max(most, x.pieces, pieces(x._value[0]))
        elif isinstance(x, (tuple, list)):
            most = max(most, pieces(x))
    return most


def padded_for(result: T, count: int) -> T:
    """Pad all arrays in the results of a call for this number of pieces."""
    padded: T = jax.tree.map(lambda x: x._padded_for(count) if _pads(x) else x, result, is_leaf=_pads)
    return padded


repadded = jit(padded_for, static_argnums=1)
"""`padded_for` outside of a compiled call."""
