"""Values of the sizes that `jax.export` leaves open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def evaluate(size: Any, value: Callable[[Any], Any]) -> Any:
    """Return the value of an expression of symbolic dimensions, of which each has the value ``value(dimension)``.

    Raises
    ------
    jax.errors.InconclusiveDimensionOperation
        If JAX does not expose how to compute it.
    """
    from jax import export  # takes time to import

    try:
        dimensions = {name: export.symbolic_shape(name, scope=size.scope)[0] for name in sorted(size._get_vars())}
        compute = size._evaluate
    except AttributeError:
        return int(size)  # raises the error of JAX
    return compute({name: value(dimension) for name, dimension in dimensions.items()})
