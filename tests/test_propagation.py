"""How the results of a program are divided: `jax_internals.propagation`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from structarrays._core.jax_internals.propagation import result_specs

r, c = "rows", "columns"


def spec_of(function, *arguments):
    """The specification of the result, for pairs of a shape and a specification."""
    program = jax.make_jaxpr(function)(*(jnp.zeros(shape) for shape, _ in arguments))
    (result,) = result_specs(program.jaxpr, [spec for _, spec in arguments])
    return result


matrix, vector, stack = ((16, 24), (r, c)), ((16,), (r,)), ((8, 16, 24), (None, r, None))


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (lambda x, y: x * y, [((16, 24), (None, c)), ((16, 24), (r, None))], (r, c)),
        (lambda x, y: x + y[:, None], [((16, 24), (None, None)), vector], (r, None)),
        (lambda x: jnp.pad(x[1:], (0, 1)), [vector], (r,)),
        (lambda x: jnp.concatenate([x, x]), [vector], (r,)),
        (lambda x: x[::-1], [vector], (r,)),
        (lambda x: x[3:4], [vector], (None,)),
        (lambda x: x.mT, [stack], (None, None, r)),
        (lambda x: jnp.sum(x, axis=0), [matrix], (c,)),
        (lambda x: jnp.argmax(x, axis=1), [matrix], (r,)),
        (lambda x: jnp.sum(x), [matrix], ()),
        (lambda x: x.reshape(4, 4, 24), [matrix], (r, None, c)),
        (lambda x: x.reshape(16 * 24), [matrix], (r,)),
        (lambda x: x.reshape(8 * 16, 24), [stack], (None, None)),
        (lambda x: x[:, None, :, None], [matrix], (r, None, c, None)),
        (lambda x: jnp.squeeze(x, 0), [((1, 16), (None, r))], (r,)),
        (lambda x, y: x @ y, [((16, 24), (r, None)), ((24, 8), (None, c))], (r, c)),
        (lambda x, y: x @ y, [((16, 24), (None, r)), ((24, 8), (r, None))], (None, None)),
        (lambda x, y: x @ y, [stack, ((8, 24, 4), (c, None, None))], (c, r, None)),
        (lambda x, y: x @ y, [((16, 24), (r, None)), ((24, 8), (None, r))], (r, None)),  # no axis twice
        (lambda x: x[jnp.asarray([3, 1, 2])], [((16, 24), (None, c))], (None, c)),
        (lambda x: x[jnp.arange(16)[::-1]], [vector], (r,)),
        (lambda x, i: x[i.astype(int)], [((24,), (None,)), ((16,), (r,))], (r,)),
        (lambda x: x.at[2].set(1.0), [vector], (r,)),
        (lambda x, i: jnp.zeros(24).at[i.astype(int)].add(x), [vector, vector], (r,)),
        (lambda x: jax.vmap(lambda y: y[jnp.asarray([1, 0])])(x), [((16, 24), (r, None))], (r, None)),
        (jax.jit(lambda x: 2 * x), [vector], (r,)),
        (jax.nn.relu, [vector], (r,)),  # a `custom_jvp`
        (lambda x: jax.lax.scan(lambda s, y: (s + y, s * y), jnp.zeros(24), x)[1], [((16, 24), (r, c))], (r, c)),
        (lambda x: jax.lax.scan(lambda s, y: (s + x, y), jnp.zeros(16), jnp.zeros(3))[0], [vector], (r,)),
        (lambda x: jax.lax.while_loop(lambda s: s[0] < 3, lambda s: s + x, jnp.zeros(16)), [vector], (r,)),
        (lambda x: jax.lax.cond(x[0] > 0, lambda x: 2 * x, lambda x: jnp.zeros(16), x), [vector], (r,)),
        (lambda x, y: jnp.linalg.solve(x, y), [((16, 16), (None, None)), vector], (r,)),
        (lambda x: jnp.sort(x, axis=0), [matrix], (r, c)),
        (lambda x: jnp.cumsum(x), [vector], (r,)),
        (lambda x: jnp.zeros((16, 24)), [matrix], (None, None)),
        (lambda x: jnp.zeros((0, 3)) + x.reshape(0, 3), [((3, 0), (r, None))], (None, None)),
    ],
)
def test_specifications(function, arguments, expected):
    assert spec_of(function, *arguments) == expected


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.T,
        lambda x: jnp.sum(x, axis=0),
        lambda x: x @ x.T,
        lambda x: x[jnp.asarray([1, 0])],
        lambda x: x[None],
        lambda x: jax.lax.scan(lambda s, y: (s + y, s), jnp.zeros(24), x),
        lambda x: jax.lax.while_loop(lambda s: s[0, 0] < 1, lambda s: s + x, x),
        lambda x: jax.lax.cond(True, lambda x: x, lambda x: 2 * x, x),
    ],
)
def test_an_equation_of_another_form_counts_as_not_divided(function):
    """Where JAX renames the parameters of its primitives, results are whole, and nothing raises."""

    class Renamed:
        def __init__(self, equation):
            self.primitive, self.invars, self.outvars = equation.primitive, equation.invars, equation.outvars
            self.params = {f"new_{name}": value for name, value in equation.params.items() if name != "jaxpr"}

    class Program:
        def __init__(self, jaxpr):
            self.invars, self.outvars = jaxpr.invars, jaxpr.outvars
            self.eqns = [Renamed(equation) for equation in jaxpr.eqns]

    program = Program(jax.make_jaxpr(function)(np.zeros((16, 24))).jaxpr)
    for spec, variable in zip(result_specs(program, [(r, c)]), program.outvars, strict=True):
        assert spec == (None,) * variable.aval.ndim
