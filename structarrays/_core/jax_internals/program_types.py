"""The types of JAX's programs, which JAX documents in `jax.extend.core`.

They are imported from where JAX defines them, since the import of `jax.extend` also imports Pallas. From JAX 0.12 on, Pallas adds to the
key of all compiled functions, so that JAX compiles each function again that it has compiled before. If the first linear system of a
program caused the import, this would happen in the middle of the program.
"""

from typing import TYPE_CHECKING

__all__ = ["ClosedJaxpr", "DropVar", "Literal", "Primitive", "jaxpr_as_fun", "jaxprs_in_params"]

if TYPE_CHECKING:
    from jax.extend.core import ClosedJaxpr as ClosedJaxpr  # type: ignore[attr-defined, unused-ignore]  # an alias from JAX 0.12 on
    from jax.extend.core import DropVar, Literal, Primitive, jaxpr_as_fun, jaxprs_in_params
else:
    try:
        from jax._src import core as defined
        from jax._src.core import DropVar, Literal, Primitive, jaxpr_as_fun, jaxprs_in_params

        # JAX 0.12 has one class for programs with and without the values of their constants.
        ClosedJaxpr = getattr(defined, "ClosedJaxpr", None) or defined.Jaxpr
    except (ImportError, AttributeError):
        from jax.extend.core import ClosedJaxpr, DropVar, Literal, Primitive, jaxpr_as_fun, jaxprs_in_params
