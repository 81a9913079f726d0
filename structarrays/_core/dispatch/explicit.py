"""Meshes with explicit axes, as `jax.make_mesh` creates them.

On such a mesh, the type of an array includes how the array is divided, and JAX enforces this in each operation: slices
must be even, and a product is refused if its result can be divided in several ways. The library computes with axes of
type `Auto`, where XLA chooses. Only arguments and results have explicit types.
"""

from __future__ import annotations

import contextlib
import functools
import math
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec, use_abstract_mesh

from ..._numerics.flags import are_defaults, independent
from ..array.flattening import Opened
from .tracing import compiling

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from ..typing import Shape, Spec

T = TypeVar("T")


_OPENED = frozenset({Opened, tuple, list})


def _closed(value: Any) -> Any:
    """Return the array of an opened argument, or a sequence of them."""
    if isinstance(value, Opened):
        return value.x
    return type(value)(map(_closed, value)) if type(value) in (tuple, list) else value


def explicit_names(mesh: Any) -> tuple[str, ...]:
    """Return the explicit axes of a mesh."""
    return tuple(name for name, kind in zip(mesh.axis_names, mesh.axis_types, strict=True) if kind == AxisType.Explicit)


def mesh_of(leaves: Sequence[Any]) -> Any:
    """Return the mesh with explicit axes on which one of these arrays lies, or None.

    The array need not be divided, since `jax.vmap` may divide a replicated one.
    """
    for leaf in leaves:
        mesh = jax.typeof(leaf).sharding.mesh
        if mesh.axis_names and explicit_names(mesh):
            return mesh
    return None


def automatic(function: Callable[..., T]) -> Callable[..., T]:
    """Wrap a function of pytrees of arrays so that it computes with axes of type `Auto` if its arguments lie on
    explicit axes.

    The results lie on the explicit axes again, divided as `propagation` determines. Call the wrapper while JAX traces;
    `jit` is for eager calls. The function also ignores JAX's flags for promotion.
    """

    @functools.wraps(function)
    def computed(*args: Any) -> T:
        if not are_defaults():
            return independent(computed)(*args)
        # With `jax_debug_nans`, JAX calls the function of a program that failed with the arguments of the program.
        if not _OPENED.isdisjoint(map(type, args)):
            args = tuple(map(_closed, args))
        leaves, tree = jax.tree.flatten(args)
        mesh = mesh_of(leaves)
        if mesh is None:
            return function(*args)
        # Imported late: `propagation` imports parts of JAX that take as long to import as this package.
        from ..jax_internals import propagation

        types = dict.fromkeys(explicit_names(mesh), AxisType.Auto)
        result_tree: Any = None

        def flat(*leaves: Any) -> list[Any]:
            nonlocal result_tree
            results, result_tree = jax.tree.flatten(function(*jax.tree.unflatten(tree, leaves)))
            return results

        with use_abstract_mesh(mesh.update_axis_types(types)):
            inside = [jax.sharding.reshard(leaf, PartitionSpec()) for leaf in leaves]
            program = jax.make_jaxpr(flat)(*inside)
            avals: list[Any] = [v.aval for v in program.jaxpr.outvars]
            results = [
                jnp.asarray(x, aval.dtype)  # a constant need not be an array
                for x, aval in zip(propagation.jaxpr_as_fun(program)(*inside), avals, strict=True)
            ]
            on_mesh = [bool(explicit_names(jax.typeof(leaf).sharding.mesh)) for leaf in leaves]
            for i in propagation.constants(program.jaxpr, on_mesh):
                # Without a dependence on the arguments, JAX would not know the devices of the mesh.
                results[i], _ = jax.lax.optimization_barrier((results[i], inside[on_mesh.index(True)]))
        specs = propagation.result_specs(program.jaxpr, [_spec(leaf) for leaf in leaves])
        placed = [
            jax.sharding.reshard(x, NamedSharding(mesh, _even(spec, x.shape, mesh)))
            for x, spec in zip(results, specs, strict=True)
        ]
        whole: T = jax.tree.unflatten(result_tree, placed)
        return whole

    return computed


def call(function: Callable[..., T], *args: Any) -> T:
    """Call a function wrapped by `automatic`, also outside of compiled functions."""
    if mesh_of(jax.tree.leaves(args)) is not None:
        compiled: T = jit(function)(*args)
        return compiled
    return function(*args) if are_defaults() else independent(function)(*args)


def is_automatic(mesh: Any) -> bool:
    """Return whether `automatic` runs this code, for arrays on this mesh."""
    current = jax.sharding.get_abstract_mesh()
    return current.axis_names == mesh.axis_names and not explicit_names(current)


def eval_shape(function: Callable[..., Any], *args: Any) -> Any:
    """Apply `jax.eval_shape` to a function wrapped by `automatic`."""
    return jax.eval_shape(automatic(function), *args)


def jit(function: Callable[..., Any], *, static_argnums: int | tuple[int, ...] = (), **options: Any) -> Any:
    """Apply `jax.jit` to a function wrapped by `automatic`."""
    static = (static_argnums,) if isinstance(static_argnums, int) else static_argnums
    if not static:
        return jax.jit(automatic(function), **options)

    @functools.wraps(function)
    def computed(*args: Any) -> Any:
        places = [i for i in range(len(args)) if i not in static]

        def of_arrays(*arrays: Any) -> Any:
            every = list(args)
            for i, x in zip(places, arrays, strict=True):
                every[i] = x
            return function(*every)

        return automatic(of_arrays)(*map(args.__getitem__, places))

    return jax.jit(computed, static_argnums=static_argnums, **options)


def context(leaves: Sequence[Any]) -> AbstractContextManager[Any]:
    """Return the context in which JAX differentiates an eager function of these arrays.

    JAX differentiates with respect to arrays on explicit axes only within `jax.set_mesh`.
    """
    meshes = [leaf.sharding.mesh for leaf in leaves if isinstance(getattr(leaf, "sharding", None), NamedSharding)]
    mesh = next((mesh for mesh in meshes if isinstance(mesh, jax.sharding.Mesh) and explicit_names(mesh)), None)
    if mesh is None or not jax.sharding.get_abstract_mesh().empty or compiling():
        return contextlib.nullcontext()
    return jax.set_mesh(mesh)


def _spec(leaf: Any) -> Spec:
    """Return the explicit axes along which each dimension of an array is divided."""
    ndim: int = jax.typeof(leaf).ndim
    spec: Spec = tuple(jax.typeof(leaf).sharding.spec)
    return spec + (None,) * (ndim - len(spec))


def _even(spec: Spec, shape: Shape, mesh: Any) -> PartitionSpec:
    """Return a specification without the dimensions that do not divide evenly."""
    return PartitionSpec(
        *(along if n % devices_along(mesh, along) == 0 else None for n, along in zip(shape, spec, strict=True))
    )


def devices_along(mesh: Any, along: str | tuple[str, ...] | None) -> int:
    """Return the number of pieces of a dimension that is divided along these axes of a mesh."""
    names = () if along is None else (along,) if isinstance(along, str) else along
    return math.prod(mesh.shape[name] for name in names)


def _shortened(arrays: tuple[jax.Array, ...], lengths: tuple[int, ...], axis: int) -> tuple[jax.Array, ...]:
    """Truncate arrays along an axis, each to its length."""
    return tuple(jax.lax.slice_in_dim(x, 0, n, axis=axis) for x, n in zip(arrays, lengths, strict=True))


shortened: Callable[[tuple[jax.Array, ...], tuple[int, ...], int], tuple[jax.Array, ...]] = jit(
    _shortened, static_argnums=(1, 2), inline=True
)
