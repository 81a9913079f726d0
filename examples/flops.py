"""Count the floating-point operations of a program by an interpretation on shapes, without computing anything.

    python examples/flops.py

XLA counts the operations of the compiled program (`cost_analysis`), but the body of a loop only once. Here a `scan`
counts its body once for each iteration. `docs/design/interpreter.md` explains the code. The example counts some
programs both ways.
"""

import math
import sys

import jax
import jax.numpy as jnp
from jax import lax

import structarrays as sa


def is_array(value) -> bool:
    return isinstance(value, jax.ShapeDtypeStruct | jax.typing.ArrayLike)


def shapes(variables) -> list:
    return [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in variables]


def size(variable) -> int:
    return math.prod(variable.aval.shape)


def of_each_element(equation) -> int:
    return size(equation.outvars[0])


def of_a_reduction(equation) -> int:
    return max(size(equation.invars[0]) - size(equation.outvars[0]), 0)


def of_a_product(equation) -> int:
    (summed, _), _ = equation.params["dimension_numbers"]
    lengths = [equation.invars[0].aval.shape[i] for i in summed]
    return 2 * size(equation.outvars[0]) * math.prod(lengths)


ELEMENTWISE = """
    abs acos acosh add add_any asin asinh atan atan2 atanh cbrt ceil clamp cos cosh div
    eq erf erf_inv erfc exp exp2 expm1 floor ge gt is_finite le log log1p log2 logistic
    lt max min mul ne neg pow rem round rsqrt sign sin sinh sqrt square sub tan tanh
"""
REDUCTIONS = "argmax argmin reduce_max reduce_min reduce_prod reduce_sum"
MOVING = """
    bitcast_convert_type broadcast_in_dim concatenate convert_element_type copy
    dynamic_slice dynamic_update_slice gather pad reshape rev scatter select_n slice
    split squeeze stop_gradient transpose
"""
COSTS = {
    **dict.fromkeys(ELEMENTWISE.split(), of_each_element),
    **dict.fromkeys(REDUCTIONS.split(), of_a_reduction),
    **dict.fromkeys(MOVING.split(), lambda equation: 0),
    "dot_general": of_a_product,
    "one_minus_square": lambda equation: 2 * of_each_element(equation),
}


class Counter(sa.transform.Interpreter):
    """Adds the costs of equations in `total`; a while loop counts `rounds` times."""

    def __init__(self, rounds=None):
        super().__init__(special=is_array, rules=RULES, default=counted)
        # `iota` has no operands that could be special.
        self.rule("iota", source=True)(counted)
        self.rounds, self.total = rounds, 0

    def cost(self, program) -> int:
        """The cost of one run of a program within the program."""
        before, self.total = self.total, 0
        avals = program.in_avals
        self.run(program, *(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals))
        cost, self.total = self.total, before
        return cost


def counted(counter, equation, *values):
    """The rule for all primitives that run no other program."""
    name = equation.primitive.name
    types = [v.aval.dtype for v in (*equation.invars, *equation.outvars)]
    if any(jnp.issubdtype(t, jnp.inexact) for t in types):
        is_complex = any(jnp.issubdtype(t, jnp.complexfloating) for t in types)
        if name not in COSTS or is_complex:
            operands = ", ".join(str(v.aval.dtype) for v in equation.invars)
            message = f"flops: what {name!r} of {operands} costs is not known"
            raise NotImplementedError(message)
        counter.total += COSTS[name](equation)
    return shapes(equation.outvars)


def scan(counter, equation, *values):
    loop = sa.transform.ScanCall.of(equation)
    counter.total += loop.length * counter.cost(loop.body)
    return shapes(equation.outvars)


def condition(counter, equation, *values):
    branches = sa.transform.CondCall.of(equation).branches
    counter.total += max(map(counter.cost, branches))
    return shapes(equation.outvars)


def loop(counter, equation, *values):
    if counter.rounds is None:
        message = "flops: how often a while loop runs depends on values; pass rounds="
        raise ValueError(message)
    call = sa.transform.WhileCall.of(equation)
    body, goes_on = counter.cost(call.body), counter.cost(call.condition)
    counter.total += counter.rounds * body + (counter.rounds + 1) * goes_on
    return shapes(equation.outvars)


RULES = {"scan": scan, "cond": condition, "while": loop}


def flops(fun, rounds=None):
    """Return a function that counts the operations of `fun` for arguments or shapes.

    Arithmetic, comparisons and functions such as `exp` count one for each element.
    Moving and selecting elements counts nothing. A condition counts as its most
    expensive branch, a while loop as `rounds` iterations.
    """

    def count(*args, **kwargs):
        counter = Counter(rounds)
        counter(fun)(*args, **kwargs)
        return counter.total

    return count


def system(counter, equation, a, b):
    """Count elimination, and for each right-hand side one substitution with a unit diagonal and one without."""
    n = a.shape[-1]
    systems, columns = math.prod(a.shape[:-2]), size(equation.outvars[0]) // max(n, 1)
    counter.total += systems * (n * (n - 1) // 2 + (n - 1) * n * (2 * n - 1) // 3) + columns * (2 * n - 1) * n
    return shapes(equation.outvars)


RULES["numpy.linalg.solve"] = system


def of_a_convolution(equation) -> int:
    kernel = equation.invars[1]
    features = kernel.aval.shape[equation.params["dimension_numbers"].rhs_spec[0]]
    return 2 * size(equation.outvars[0]) * size(kernel) // max(features, 1)


def of_a_power(equation) -> int:
    """Count squarings, products of some of them, and a division if the power is negative."""
    n = equation.params["y"]
    return size(equation.outvars[0]) * (max(abs(n).bit_length() + abs(n).bit_count() - 2, 0) + (n < 0))


def of_running_sums(equation) -> int:
    length = equation.invars[0].aval.shape[equation.params["axis"]]
    return size(equation.outvars[0]) * max(length - 1, 0) // max(length, 1)


COSTS |= {
    **dict.fromkeys(("cummax", "cummin", "cumprod", "cumsum"), of_running_sums),
    "conv_general_dilated": of_a_convolution,
    "integer_pow": of_a_power,
    "scatter-add": lambda equation: size(equation.invars[2]),
}


def main() -> int:
    A, x = jnp.ones((300, 300)), jnp.ones(300)
    programs = {
        "A @ x": lambda A, x: A @ x,
        "tanh(A @ A + x)": lambda A, x: jnp.tanh(A @ A + x),
        "softmax of the rows of A": lambda A, x: jax.nn.softmax(A),
        "the derivative of sum(tanh(A @ x))": jax.grad(lambda A, x: jnp.sum(jnp.tanh(A @ x))),
        "10 rounds of x -> tanh(A @ x)": lambda A, x: lax.scan(lambda x, _: (jnp.tanh(A @ x), None), x, length=10)[0],
    }
    print(f"{'':36}{'here':>12}{'XLA':>12}")
    for name, program in programs.items():
        analysis = jax.jit(program).lower(A, x).compile().cost_analysis()
        theirs = analysis.get("flops", 0) + analysis.get("transcendentals", 0)
        print(f"{name:36}{flops(program)(A, x):12,}{theirs:12,.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
