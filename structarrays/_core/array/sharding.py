"""Arrays that are divided among the devices of a mesh.

A `jax.sharding.NamedSharding` names, for each dimension of an array, the axes of a mesh along which it is divided. That is said of the
array as its users see it; each structure says in `Array.specs` how its parameters follow. What cannot follow, since its own
dimension does not divide evenly (a small factor, say), is held by each device whole.

Diagonals beside the main one are shorter than it, and JAX divides arrays only evenly. So a structure of such diagonals pads its
parameters behind their ends (`Array._padded_for`), and says for how many pieces (`Array.pieces`). The padding is never read. What a
compiled call makes of such an array is padded again before it leaves, so that it may stay divided.
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
    """An array divided among the devices of a mesh.

    Raises
    ------
    ValueError
        If the specification has more entries than the array has dimensions, or a dimension does not divide evenly.
    """
    spec, mesh = tuple(sharding.spec), sharding.mesh
    if len(spec) > x.ndim:
        raise ValueError(f"to_device: the array has {x.ndim} dimensions, but {sharding.spec} speaks of {len(spec)}")
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
    return jax.device_put(leaf, where)  # `reshard` does not bring in the devices of a mesh that is not set


def of_factors(factors: Sequence[Array], spec: Spec, divides: Callable[[int, Any], bool]) -> tuple[Spec, ...]:
    """How the factors of a Kronecker product lie on a mesh: the first one that divides is divided, by rows and by columns."""
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
    """The parameters of arrays that lie on a mesh and have values (what is traced has none)."""
    if not _several_devices():  # asked in every eager call
        return []
    return [
        leaf
        for leaf in parameters(arrays)
        if isinstance(getattr(leaf, "sharding", None), NamedSharding) and not isinstance(leaf, jax.core.Tracer)
    ]


def beside(result: T, arrays: Sequence[jax.Array]) -> T:
    """The result of a call that ran on the host, on the mesh of its arguments: whole on each device, but for the entries of sparse
    arrays, which are divided as those of the arguments are.
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
    """Whether it is an array of a structure whose parameters are padded where they have to."""
    return isinstance(x, Array) and type(x)._padded_for is not Array._padded_for


def pieces(arrays: Iterable[Any]) -> int:
    """For how many pieces arrays, or parts of them, are padded; 1 where none is."""
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
    """Results of a call with all arrays in them padded for this many pieces."""
    padded: T = jax.tree.map(lambda x: x._padded_for(count) if _pads(x) else x, result, is_leaf=_pads)
    return padded


repadded = jit(padded_for, static_argnums=1)
"""The same outside of a compiled call."""
