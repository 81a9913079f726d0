"""A primitive that is a call of NumPy code on a CPU, and a JAX function elsewhere and in exported programs.

JAX documents primitives (`jax.extend.core`) and their lowering (`jax.interpreters.mlir`), but not how a lowering rule learns the
platform and whether the program is exported. If these are not found, the JAX function is taken.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax.experimental.buffer_callback import buffer_callback

from .program_types import Primitive

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["call"]


def call(
    fill: Callable[..., None],
    portable: Callable[..., Sequence[jax.Array]],
    results: tuple[jax.ShapeDtypeStruct, ...],
    *arrays: jax.Array,
) -> tuple[jax.Array, ...]:
    """Call `fill` on the buffers of a program for CPUs, and `portable` in any other program.

    Parameters
    ----------
    fill : callable
        ``fill(context, targets, *buffers)`` of `jax.experimental.buffer_callback`. Under `jax.vmap` all buffers and targets have one more
        dimension in front.
    portable : callable
        Function of the arrays that returns arrays like `results`.
    results : tuple of jax.ShapeDtypeStruct
    *arrays : jax.Array
    """
    found: Sequence[jax.Array] = _primitive().bind(*arrays, fill=fill, portable=portable, results=results)
    return tuple(found)


@functools.cache
def _primitive() -> Any:
    from jax.interpreters import batching, mlir

    primitive = Primitive("structarrays_host_call")
    primitive.multiple_results = True

    def evaluate(*arrays: jax.Array, **parameters: Any) -> Any:
        with jax.disable_jit(False):  # or the compiled call would evaluate the primitive again
            return jax.jit(functools.partial(primitive.bind, **parameters))(*arrays)

    primitive.def_impl(evaluate)
    primitive.def_abstract_eval(_abstract_results)
    mlir.register_lowering(primitive, _lower)
    batching.primitive_batchers[primitive] = _batch
    return primitive


def _abstract_results(*operands: Any, results: tuple[jax.ShapeDtypeStruct, ...], **_: Any) -> list[Any]:
    """The results vary over the same manual axes of a mesh as the operands."""
    from jax.core import ShapedArray

    varying = [operand for operand in operands if getattr(getattr(operand, "mat", None), "varying", None)]
    if len({operand.mat for operand in varying}) > 1:
        raise ValueError(
            "this solver calls LAPACK, which needs operands that vary over the same axes of the mesh; pass check_vma=False to jax.shard_map"
        )
    found = []
    for result in results:
        options: dict[str, Any] = {}
        if varying:
            spec = jax.sharding.PartitionSpec(*[None] * len(result.shape))
            options = {"manual_axis_type": varying[0].mat, "sharding": varying[0].sharding.update(spec=spec)}
        found.append(ShapedArray(result.shape, result.dtype, **options))
    return found


def _lower(
    context: Any,
    *operands: Any,
    fill: Callable[..., None],
    portable: Callable[..., Any],
    results: tuple[jax.ShapeDtypeStruct, ...],
) -> Any:
    from jax.interpreters import mlir

    module = context.module_context
    parameters = getattr(module, "lowering_parameters", None)
    on_cpu = tuple(getattr(module, "platforms", ())) == ("cpu",)
    if on_cpu and not getattr(parameters, "for_export", True):
        function = buffer_callback(fill, results)
    else:
        function = portable
    return mlir.lower_fun(function, multiple_results=True)(context, *operands)


def _batch(operands: Sequence[Any], axes: Sequence[Any], **parameters: Any) -> tuple[Sequence[jax.Array], list[int]]:
    size = next(x.shape[axis] for x, axis in zip(operands, axes, strict=True) if axis is not None)
    mapped = [
        jnp.broadcast_to(x, (size, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)
        for x, axis in zip(operands, axes, strict=True)
    ]
    results = tuple(jax.ShapeDtypeStruct((size, *r.shape), r.dtype) for r in parameters["results"])
    found = call(parameters["fill"], jax.vmap(parameters["portable"]), results, *mapped)
    return found, [0] * len(results)
