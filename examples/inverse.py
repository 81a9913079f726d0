"""Invert a function by an interpretation of its JAX program.

    python examples/inverse.py [--size 50] [--layers 20]

JAX's tutorial on interpreters inverts a chain of functions of one argument. This example also inverts calls, conditions
and loops, and functions of several arguments if one of them is unknown. `docs/design/interpreter.md` explains the code.
The example inverts a network of square layers.
"""

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import structarrays as sa


@dataclass(frozen=True, eq=False)
class Unknown:
    """An unknown value; `undo` maps this value, once known, to the unknown argument."""

    shape: tuple
    dtype: Any
    undo: Callable = lambda y: y


def is_unknown(value) -> bool:
    return isinstance(value, Unknown)


def step(equation, x, back, place=0) -> Unknown:
    """Result `place` of an equation; `back` maps it to the unknown operand `x`."""
    result = equation.outvars[place].aval

    def undo(y):
        return x.undo(back(y).astype(x.dtype))

    return Unknown(result.shape, result.dtype, undo)


def function(back):
    """The rule for a function of one argument with the inverse `back`."""
    return lambda interpreter, equation, x: step(equation, x, back)


FUNCTIONS = {
    "asinh": jnp.sinh,
    "atanh": jnp.tanh,
    "cbrt": lambda y: y**3,
    "erf": lax.erf_inv,
    "exp": jnp.log,
    "exp2": jnp.log2,
    "expm1": jnp.log1p,
    "log": jnp.exp,
    "log1p": jnp.expm1,
    "logistic": lambda y: jnp.log(y) - jnp.log1p(-y),
    "neg": jnp.negative,
    "sinh": jnp.arcsinh,
    "sqrt": lambda y: jnp.where(y < 0, jnp.nan, y * y),
    "tanh": jnp.arctanh,
}

inverting = sa.transform.Interpreter(
    special=is_unknown, rules={name: function(back) for name, back in FUNCTIONS.items()}
)


def inverse(fun, argnum=0, like=None):
    """Return ``g`` with ``fun(..., g(..., y, ...), ...) == y``.

    `y` replaces argument `argnum`, the unknown.
    The unknown argument and the result are real arrays with the same number of elements.
    `like` has the shape and dtype of the argument if they differ from `y`.
    """

    def inverted(*args):
        y = jnp.asarray(args[argnum])
        model = y if like is None else like
        if not jnp.issubdtype(model.dtype, jnp.floating):
            kind = f"real floating-point, got {model.dtype}"
            raise TypeError(f"inverse: the unknown must be {kind}")
        arguments = list(args)
        arguments[argnum] = Unknown(model.shape, model.dtype)
        result = inverting(fun)(*arguments)
        if not is_unknown(result):
            message = "the result must be one array that depends on the unknown"
            raise ValueError(f"inverse: {message}")
        if result.shape != y.shape:
            shapes = f"y has shape {y.shape}, but fun returns {result.shape}"
            raise ValueError(f"inverse: {shapes}")
        return result.undo(y.astype(result.dtype))

    return inverted


OPERATORS = {
    "add": (lambda y, b: y - b, lambda y, a: y - a),
    "add_any": (lambda y, b: y - b, lambda y, a: y - a),
    "sub": (lambda y, b: y + b, lambda y, a: a - y),
    "mul": (lambda y, b: y / b, lambda y, a: y / a),
    "div": (lambda y, b: y * b, lambda y, a: a / y),
}


@inverting.rule(*OPERATORS)
def invert_operator(interpreter, equation, a, b):
    if is_unknown(a) == is_unknown(b):
        return NotImplemented
    x, known = (a, b) if is_unknown(a) else (b, a)
    if x.shape != equation.outvars[0].aval.shape:  # a broadcast number
        return NotImplemented
    back = OPERATORS[equation.primitive.name][x is b]
    return step(equation, x, lambda y: back(y, known))


@inverting.otherwise
def no_inverse(interpreter, equation, *values):
    name = equation.primitive.name
    if sum(map(is_unknown, values)) > 1:
        raise ValueError(f"inverse: the unknown occurs in several operands of {name!r}")
    raise NotImplementedError(f"inverse: nothing undoes this use of {name!r}")


@inverting.rule("cond")
def invert_cond(interpreter, equation, which, *operands):
    if is_unknown(which) or sum(map(is_unknown, operands)) > 1:
        return NotImplemented
    (x,) = filter(is_unknown, operands)
    start = Unknown(x.shape, x.dtype)

    def run(branch):
        values = [start if value is x else value for value in operands]
        return interpreter.run(branch, *values)

    def known(branch):
        results = enumerate(run(branch))
        return {i: result for i, result in results if not is_unknown(result)}

    def each(code):
        branches = sa.transform.CondCall.of(equation).branches
        return [partial(code, branch) for branch in branches]

    if len({tuple(jax.eval_shape(code)) for code in each(known)}) > 1:
        message = "a result depends on the unknown in some branches only"
        raise ValueError(f"inverse: {message}")
    results = lax.switch(which, each(known))

    def back(i, y):
        return lax.switch(which, each(lambda branch, y: run(branch)[i].undo(y)), y)

    def result(i):
        return results[i] if i in results else step(equation, x, partial(back, i), i)

    return [result(i) for i in range(len(equation.outvars))]


@inverting.rule("scan")
def invert_scan(interpreter, equation, *values):
    loop = sa.transform.ScanCall.of(equation)
    consts, carry, rows = loop.split(values)
    if sum(map(is_unknown, values)) > 1 or not any(map(is_unknown, carry)):
        return NotImplemented
    place = list(map(is_unknown, carry)).index(True)
    x = carry.pop(place)
    start = Unknown(x.shape, x.dtype)

    def iteration(carry, row):
        carry = [*carry[:place], start, *carry[place:]]
        results = interpreter.run(loop.body, *consts, *carry, *row)
        after, out = loop.split_results(results)
        return after.pop(place), after, out

    def forwards(carry, row):  # stores the known values at the beginning
        moved, after, out = iteration(carry, row)
        if any(map(is_unknown, after)) or not is_unknown(moved):
            raise ValueError("inverse: a loop must carry the unknown in one value")
        return after, (carry, [None if is_unknown(value) else value for value in out])

    last, (history, out) = lax.scan(forwards, carry, rows, loop.length, loop.reverse)

    def backwards(y, begun):
        moved, _, _ = iteration(*begun)
        return moved.undo(y), None

    def back(y):
        return lax.scan(backwards, y, (history, rows), loop.length, not loop.reverse)[0]

    def lost(y):
        raise ValueError("inverse: the stacked results of a loop cannot be undone")

    last.insert(place, step(equation, x, back, place))
    for i, value in enumerate(out, loop.carry):
        last.append(step(equation, x, lost, i) if value is None else value)
    return last


@inverting.rule("reshape", "squeeze", "broadcast_in_dim", "convert_element_type", "copy", "stop_gradient")
def invert_shape(interpreter, equation, x):
    result = equation.outvars[0].aval
    if math.prod(result.shape) != math.prod(x.shape) or not jnp.issubdtype(result.dtype, jnp.floating):
        return NotImplemented
    return step(equation, x, lambda y: y.reshape(x.shape))


@inverting.rule("transpose")
def invert_transpose(interpreter, equation, x):
    return step(equation, x, lambda y: y.transpose(np.argsort(equation.params["permutation"])))


@inverting.rule("rev")
def invert_rev(interpreter, equation, x):
    return step(equation, x, lambda y: lax.rev(y, equation.params["dimensions"]))


@inverting.rule("integer_pow")
def invert_integer_pow(interpreter, equation, x):
    n = equation.params["y"]
    return step(equation, x, lambda y: jnp.sign(y) * jnp.abs(y) ** (1 / n)) if n % 2 else NotImplemented


@inverting.rule("pow")
def invert_pow(interpreter, equation, base, x):
    if is_unknown(base) or x.shape != equation.outvars[0].aval.shape:
        return NotImplemented
    return step(equation, x, lambda y: jnp.log(y) / jnp.log(base))


@inverting.rule("dot_general")
def invert_dot_general(interpreter, equation, a, b):
    contracted, batch = equation.params["dimension_numbers"]
    matrix, x = (a, b) if is_unknown(b) else (b, a)
    own, axis = contracted if matrix is a else contracted[::-1]
    if is_unknown(matrix) or batch != ((), ()) or len(axis) != 1 or matrix.shape != matrix.shape[:1] * 2:
        return NotImplemented
    square = matrix if own == (1,) else matrix.T

    def back(y):  # the dimension of the matrix in the result is first if the matrix is the left operand, otherwise last
        y = y if matrix is a else jnp.moveaxis(y, -1, 0)
        return jnp.moveaxis(jnp.linalg.solve(square, y.reshape(len(square), -1)).reshape(y.shape), 0, axis[0])

    return step(equation, x, back)


@inverting.rule("nn.functions.softplus")
def invert_softplus(interpreter, equation, x):
    return step(equation, x, lambda y: y + jnp.log(-jnp.expm1(-y)))


@inverting.rule("numpy.linalg.solve")
def invert_solve(interpreter, equation, a, b):
    if is_unknown(a) or b.shape != equation.outvars[0].aval.shape:
        return NotImplemented
    return step(equation, b, lambda y: a @ y)


def network(x, weights, biases):
    """Apply layers with weights ``(layers, n, n)`` and biases ``(layers, n)``; every second layer is scaled."""

    def layer(carry, parameters):
        count, x = carry
        weight, bias = parameters
        x = jnp.arcsinh(weight @ x + bias)
        return (count + 1, lax.cond(count % 2 == 0, lambda x: 2.0 * x, lambda x: x, x)), None

    (_, x), _ = lax.scan(layer, (0, x), (weights, biases))
    return jax.nn.softplus(x)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=50)
    parser.add_argument("--layers", type=int, default=20)
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)

    rng = np.random.default_rng(0)
    n, layers = arguments.size, arguments.layers
    weights, _ = jnp.linalg.qr(rng.normal(size=(layers, n, n)))
    biases = jnp.asarray(rng.normal(size=(layers, n)))
    x = jnp.asarray(rng.normal(size=n))

    y = network(x, weights, biases)
    found = jax.jit(inverse(network))(y, weights, biases)
    error = float(jnp.max(jnp.abs(found - x)))
    print(f"{layers} layers of {n}: the argument is found from the result to {error:.1e}")
    print("All checks hold." if error < 1e-9 else "FAILED")
    return error >= 1e-9


if __name__ == "__main__":
    sys.exit(main())
