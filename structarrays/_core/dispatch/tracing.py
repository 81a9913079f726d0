"""Whether this code runs while JAX traces it for compilation."""

import jax

from ..jax_internals.traces import is_eager

_probe = jax.jit(lambda: jax.numpy.zeros(()))


def compiling() -> bool:
    """Whether we are inside `jit` (or `scan` and its like), where every value made is a tracer.

    It is not so in `grad` or `vmap` of an eager function, where only what depends on their arguments is a tracer. JAX has
    no public question for this, so we look at what a compiled function without arguments returns: about 5 µs
    unless no transformation runs.
    """
    return not is_eager() and isinstance(_probe(), jax.core.Tracer)
