"""All accesses to undocumented parts of JAX: how JAX stores programs and their equations.

JAX documents that a function can be traced to a program (`jax.make_jaxpr`) and that a program has equations. JAX does not document
the parameters of the equations, and they change between versions. This package reads and checks them, and returns its
own records.

The package *fails closed*. `is_recognised` is False for an equation whose parameters differ from the known ones: a
parameter is missing, renamed or new, or its content has another form. Such an equation is opaque to the rules of
`structured`: its operands become dense and JAX evaluates it. The records raise `UnrecognisedEquation`, also for
derivatives, so that a new version of JAX leads to an error or to a dense result, never to a wrong value.

The module `equations` reads programs and their equations, and `traces` finds the running transformation. Nothing is imported here, since
most programs need `traces` alone.
"""
