"""`Interpreter`: what it asks of its rules and in which order, and the two interpretations of the documentation: inverses and counts."""

import dataclasses
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from test_documentation import BLOCK

import structarrays as sa
from examples.flops import flops
from examples.inverse import inverse, network
from structarrays.transform import Interpreter

ROOT = Path(__file__).parent.parent.parent
SHAPE = jax.ShapeDtypeStruct


@dataclasses.dataclass(frozen=True, eq=False)
class Term:
    """A value that is only written down."""

    text: str
    shape: tuple = ()
    dtype: Any = np.dtype(float)


def is_term(value):
    return isinstance(value, Term)


def written(interpreter, equation, *values):
    """The rule that writes an equation down, and where it has several results each of them."""
    operands = ", ".join(v.text if is_term(v) else str(np.asarray(v)) for v in values)
    text = f"{equation.primitive.name}({operands})"
    several = len(equation.outvars) > 1
    return [Term(f"{text}[{i}]" if several else text, v.aval.shape) for i, v in enumerate(equation.outvars)]


def writer(**options):
    return Interpreter(special=is_term, default=written, **options)


X = Term("x")


# ---- the engine ------------------------------------------------------------------------------------------------------


def test_it_is_public():
    assert sa.transform.Interpreter is Interpreter


def test_special_values_go_to_the_rules_and_the_others_to_jax():
    seen = []

    def rule(interpreter, equation, *values):
        seen.append((equation.primitive.name, values))
        return Term("result")

    result = Interpreter(special=is_term, default=rule)(lambda x, y: x * jnp.exp(2.0 * y))(X, 0.5)
    assert result.text == "result"
    ((name, (x, y)),) = seen
    assert name == "mul" and x is X
    assert isinstance(y, jax.Array) and abs(y - math.e) < 1e-15


def test_the_function_keeps_its_name_and_its_trees():
    def scaled(tree, *, by, kind):
        assert kind == "static"
        return {"sum": tree["a"] + tree["b"][0], "known": 2 * by, "same": tree["a"], "constant": jnp.ones(2)}

    interpreted = writer()(scaled)
    assert interpreted.__name__ == "scaled"
    result = interpreted({"a": X, "b": [Term("y")]}, by=3, kind="static")
    assert result["sum"].text == "add(x, y)" and result["same"] is X
    assert result["known"] == 6 and np.array_equal(result["constant"], [1, 1])


def test_the_rule_registered_last_is_asked_first():
    asked = []

    def declining(name):
        def rule(interpreter, equation, x):
            asked.append(name)
            return NotImplemented

        return rule

    interpreter = writer(rules={"exp": declining("mapping")})
    interpreter.rule("exp", "sin")(declining("second"))
    interpreter.rule("exp")(declining("third"))
    assert interpreter(jnp.exp)(X).text == "exp(x)"
    assert asked == ["third", "second", "mapping"]
    asked.clear()
    interpreter.rule("exp")(lambda interpreter, equation, x: Term("mine"))
    assert interpreter(jnp.exp)(X).text == "mine" and asked == []
    assert interpreter(jnp.sin)(X).text == "sin(x)" and asked == ["second"]


def test_rules_get_the_interpreter_and_the_equation():
    interpreter = writer()

    @interpreter.rule("transpose")
    def transposed(which, equation, x):
        assert which is interpreter
        assert equation.params["permutation"] == (1, 0) and equation.outvars[0].aval.shape == (3, 2)
        return Term("transposed", (3, 2))

    assert transposed.__name__ == "transposed"  # the decorated code is left as it is
    assert interpreter(jnp.transpose)(Term("x", (2, 3))).text == "transposed"


def test_a_source_makes_special_values_of_ordinary_ones():
    interpreter = writer()

    @interpreter.rule("iota", source=True)
    def _(interpreter, equation):
        return Term("count", equation.outvars[0].aval.shape)

    @interpreter.rule("exp", source=True)
    def _(interpreter, equation, x):
        return Term("expected") if is_term(x) else NotImplemented

    assert interpreter(lambda: 2 * jnp.arange(3))().text == "mul(2, count)"
    assert interpreter(jnp.exp)(1.0).shape == ()  # declined, so that JAX does it
    assert interpreter(jnp.exp)(X).text == "expected"


def test_sources_within_calls_are_found():
    interpreter = writer()

    @interpreter.rule("iota", source=True)
    def _(interpreter, equation):
        return Term("count", equation.outvars[0].aval.shape)

    inner = jax.jit(lambda scale: scale * jnp.arange(3.0))
    assert interpreter(lambda: inner(2.0) + 1.0)().text == "add(mul(2.0, count), 1.0)"
    assert interpreter(lambda: jax.jit(lambda: jnp.arange(3))())().text == "count"
    assert interpreter(jax.jit(lambda s: inner(s)))(2.0).text == "mul(2.0, count)"
    # A function of JAX's on ordinary values is JAX's business, whatever it is made of.
    assert interpreter(jnp.linspace)(0.0, 1.0).shape == (50,)


def test_structured_finds_an_identity_in_a_function_under_jit():
    ridge = jax.jit(lambda scale: scale * jnp.eye(4))
    result = sa.structured(lambda A, scale: A + ridge(scale))(sa.Diagonal([1.0, 2.0, 3.0, 4.0]), jnp.asarray(0.5))
    assert isinstance(result, sa.Diagonal)
    np.testing.assert_array_equal(result.diag, [1.5, 2.5, 3.5, 4.5])


def test_without_a_rule_it_refuses():
    interpreter = Interpreter(special=is_term)
    with pytest.raises(
        NotImplementedError, match=r"no rule for the primitive 'add' of Term, ArrayImpl|'add' of Term, \w+"
    ):
        interpreter(lambda x: x + 1.0)(X)
    with pytest.raises(NotImplementedError, match="no rule for the primitive 'while' of"):
        interpreter(lambda x: lax.while_loop(lambda x: x < 1, lambda x: 2 * x, x))(X)
    interpreter.rule("add")(lambda *_: NotImplemented)
    with pytest.raises(NotImplementedError, match="no rule for the primitive 'add'"):
        interpreter(lambda x: x + 1.0)(X)


def test_otherwise_is_the_default():
    interpreter = Interpreter(special=is_term)
    assert interpreter.otherwise(written) is written
    assert interpreter(jnp.exp)(X).text == "exp(x)"


def test_dead_equations_are_not_evaluated():
    names = []

    def rule(interpreter, equation, *values):
        names.append(equation.primitive.name)
        return written(interpreter, equation, *values)

    def f(x):
        jnp.sin(jnp.cos(x))
        used, _ = jax.jit(lambda x: (jnp.exp(x), jnp.tanh(x)))(x)
        return used

    Interpreter(special=is_term, default=rule)(f)(X)
    assert names == ["exp"]


def test_effects_are_kept():
    heard = []

    def f(x, y):
        jax.debug.callback(lambda y: heard.append(float(y)), 2 * y)
        return jnp.exp(x)

    assert writer()(f)(X, 1.5).text == "exp(x)"
    jax.effects_barrier()
    assert heard == [3.0]
    names = []
    interpreter = writer()
    interpreter.rule("debug_callback")(lambda interpreter, equation, *values: names.append(values[0].text) or [])
    interpreter(f)(1.0, X)
    assert names == ["mul(2.0, x)"]


@pytest.mark.parametrize("container", [list, tuple])
def test_several_results(container):
    interpreter = writer()
    interpreter.rule("split")(lambda *_: container([Term("left"), Term("right")]))
    left, right = interpreter(lambda x: jnp.split(x, 2))(Term("x", (4,)))
    assert (left.text, right.text) == ("left", "right")
    single = writer(rules={"exp": lambda *_: container([Term("alone")])})
    assert single(jnp.exp)(X).text == "alone"


def test_a_wrong_number_of_results_is_refused():
    interpreter = writer(rules={"exp": lambda *_: [X, X], "split": lambda *_: X, "sin": lambda *_: []})
    with pytest.raises(ValueError, match=r"rule for the primitive 'exp' must return 1 results, got 2"):
        interpreter(jnp.exp)(X)
    with pytest.raises(ValueError, match=r"'split' must return 2 results, got 1"):
        interpreter(lambda x: jnp.split(x, 2))(Term("x", (4,)))
    with pytest.raises(ValueError, match=r"'sin' must return 1 results, got 0"):
        interpreter(jnp.sin)(X)


def test_an_array_is_one_result_and_not_its_rows():
    interpreter = writer(rules={"jit": lambda *_: jnp.ones((1, 3))})
    assert interpreter(jax.jit(lambda x: x + 1.0))(Term("x", (1, 3))).shape == (1, 3)


class Pair(NamedTuple):
    """A special value that is a tuple itself."""

    text: str
    shape: tuple
    dtype: Any


def test_special_values_may_be_tuples():
    interpreter = Interpreter(special=lambda v: isinstance(v, Pair))
    interpreter.rule("exp")(lambda interpreter, equation, x: Pair(f"exp({x.text})", x.shape, x.dtype))
    result = interpreter(lambda x: jnp.exp(jax.jit(jnp.exp)(x)))(Pair("x", (), np.dtype(float)))
    assert result.text == "exp(exp(x))"


def test_run_gives_what_is_needed():
    program = jax.make_jaxpr(lambda x, y: (jnp.exp(x), jnp.sin(x), y))(1.0, 2.0)
    asked = []
    interpreter = writer(rules={name: lambda i, e, x: asked.append(e.primitive.name) or X for name in ("exp", "sin")})
    results = interpreter.run(program, X, 5.0, needed=[False, True, True])
    assert results == [None, X, 5.0] and asked == ["sin"]
    assert interpreter.run(program, X, 5.0) == [X, X, 5.0]
    with pytest.raises(ValueError):
        interpreter.run(program, X)


@jax.custom_jvp
def with_jvp(x):
    return jnp.exp(x)


with_jvp.defjvp(lambda x, t: (with_jvp(*x), t[0]))


@jax.custom_vjp
def with_vjp(x):
    return jnp.exp(x)


with_vjp.defvjp(lambda x: (with_vjp(x), None), lambda _, c: (c,))


@pytest.mark.parametrize("call", [jax.jit, jax.checkpoint, lambda f: with_jvp, lambda f: with_vjp])
def test_programs_within_the_program_are_run_in_place(call):
    result = writer()(lambda x: jnp.sin(call(jnp.exp)(x)))(X)
    assert result.text == "sin(exp(x))"


def test_a_rule_for_calls_comes_first():
    interpreter = writer(rules={"jit": lambda i, e, x: Term(e.params["name"])})
    assert interpreter(jax.jit(with_jvp))(X).text == "with_jvp"
    assert interpreter(with_jvp)(X).text == "exp(x)"


def solve(a, b):
    return a * b


def test_a_function_of_jax_is_matched_as_a_whole_and_one_of_that_name_is_not():
    asked = []

    def rule(interpreter, equation, a, b):
        asked.append(equation.params["name"])
        return Term("solved", b.shape)

    interpreter = writer(rules={"numpy.linalg.solve": rule, "solve": rule})
    A = jnp.eye(3)
    assert interpreter(jnp.linalg.solve)(A, Term("b", (3,))).text == "solved"
    assert (
        interpreter(lambda A, b: 2.0 * jax.jit(jnp.linalg.solve)(A, b))(A, Term("b", (3,))).text == "mul(2.0, solved)"
    )
    assert asked == ["solve", "solve"]
    assert interpreter(jax.jit(solve))(Term("a", (3,)), Term("b", (3,))).text == "mul(a, b)"
    assert asked == ["solve", "solve"]


def test_a_named_rule_that_declines_leaves_the_program_inside():
    asked = []
    interpreter = Interpreter(special=is_term)
    interpreter.rule("nn.functions.softplus")(lambda *_: asked.append("softplus") or NotImplemented)
    with pytest.raises(NotImplementedError, match="'max'|'add'|'sub'"):
        interpreter(jax.nn.softplus)(X)
    assert asked == ["softplus"]


def test_bad_arguments():
    with pytest.raises(TypeError, match="special must be callable, got str"):
        Interpreter(special="Term")
    with pytest.raises(TypeError, match="default must be callable, got int"):
        Interpreter(special=is_term, default=3)
    with pytest.raises(TypeError, match="rule for 'exp' must be callable, got NoneType"):
        Interpreter(special=is_term, rules={"exp": None})
    with pytest.raises(TypeError, match="special"):
        Interpreter()
    interpreter = Interpreter(special=is_term)
    with pytest.raises(TypeError, match="names of primitives, got function"):

        @interpreter.rule
        def _(interpreter, equation, x):
            return x

    with pytest.raises(TypeError, match="names of primitives, got nothing"):
        interpreter.rule()
    with pytest.raises(TypeError, match="names of primitives, got Primitive"):
        interpreter.rule(lax.exp_p)
    with pytest.raises(TypeError, match="rule for 'exp' must be callable, got Term"):
        interpreter.rule("exp")(X)
    assert interpreter.rules == {}


def test_it_works_inside_of_jit_and_vmap():
    """A value of two arrays: a number and its derivative."""

    @dataclasses.dataclass(frozen=True, eq=False)
    class Dual:
        value: jax.Array
        slope: jax.Array
        shape = property(lambda self: self.value.shape)
        dtype = property(lambda self: self.value.dtype)

    dual = Interpreter(special=lambda v: isinstance(v, Dual))
    dual.rule("sin")(lambda i, e, x: Dual(jnp.sin(x.value), jnp.cos(x.value) * x.slope))

    @dual.rule("mul")
    def _(interpreter, equation, x, y):
        x, y = (v if isinstance(v, Dual) else Dual(v, 0.0) for v in (x, y))
        return Dual(x.value * y.value, x.slope * y.value + x.value * y.slope)

    def f(x):
        return x * jnp.sin(3.0 * x)

    def slope(x):
        return dual(f)(Dual(x, jnp.ones_like(x))).slope

    x = jnp.linspace(-1, 1, 7)
    expected = jax.vmap(jax.grad(f))(x)
    for found in (slope(x), jax.jit(slope)(x), jax.vmap(slope)(x), jax.vmap(jax.jit(slope))(x)):
        np.testing.assert_allclose(found, expected, rtol=1e-14)


# ---- the inverse of a function ---------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
x5 = jnp.asarray(RNG.uniform(0.2, 0.8, 5))
MATRIX = jnp.asarray(RNG.normal(size=(5, 5)) + 5 * np.eye(5))


def counted_loop(x):
    return lax.fori_loop(1, 6, lambda i, x: jnp.arcsinh(x) * i + 0.5, x)


def scanned(x, weights):
    def body(carry, w):
        count, x, doubled = carry
        return (count + 1, jnp.arcsinh(w * x) + count, 2.0 * doubled), (count, x)

    (_, x, doubled), (counts, _) = lax.scan(body, (0, x, 1.0), weights)
    return x * doubled + jnp.sum(counts)


def nested(x):
    def outer(i, x):
        x = lax.cond(i % 2 == 0, lambda x: counted_loop(x), lambda x: jnp.exp(-x), x)
        return lax.switch(i % 3, [lambda x: x + i, lambda x: 2.0 * x, jnp.negative], x) / 7

    return jax.jit(lambda x: lax.fori_loop(0, 4, outer, x))(x)


def branches_with_known_results(flag, x, k):
    shift, x, k = lax.cond(
        flag, lambda x, k: (1.0, jnp.exp(x), k), lambda x, k: (k, x * k, 2.0 * k), x, k
    )  # of three results two are known
    return x * k + shift


INVERTIBLE = {
    "exp of tanh": lambda x: jnp.exp(jnp.tanh(x)),
    "expm1, log1p, sqrt": lambda x: jnp.sqrt(jnp.log1p(jnp.expm1(x))),
    "log, log1p, neg": lambda x: -jnp.log(jnp.log1p(x)),
    "sinh, asinh, atanh": lambda x: jnp.arctanh(jnp.arcsinh(jnp.sinh(x))),
    "exp2, cbrt": lambda x: jnp.cbrt(jnp.exp2(x)),
    "power with an unknown exponent": lambda x: 3.0**x,
    "erf": lambda x: jax.scipy.special.erf(x),
    "sigmoid": jax.nn.sigmoid,
    "softplus": jax.nn.softplus,
    "cube": lambda x: x**3,
    "negative odd power": lambda x: x**-3,
    "odd power of a negative number": lambda x: (x - 1.0) ** 5,
    "operators": lambda x: 2.0 / (3.0 - (1.0 - x / 4.0) * 5.0 - 0.5),
    "operators with arrays": lambda x: x5 / (2.0 + (x5 - x) * x5) + x5,
    "shapes": lambda x: jnp.flip(jnp.squeeze(x[None, :, None]).reshape(5, 1).T),
    "matrix on the left": lambda x: MATRIX @ x,
    "matrix on the right": lambda x: x @ MATRIX,
    "solve": lambda x: jnp.linalg.solve(MATRIX, x),
    "jit": jax.jit(lambda x: jax.jit(jnp.exp)(x) + 1.0),
    "checkpoint": jax.checkpoint(lambda x: jnp.tanh(x)),
    "custom derivatives": lambda x: with_vjp(with_jvp(x)),
    "cond": lambda x: lax.cond(jnp.sum(x5) > 0, jnp.exp, jnp.negative, x),
    "cond, the other branch": lambda x: lax.cond(jnp.sum(x5) < 0, jnp.exp, jnp.negative, x),
    "fori_loop": counted_loop,
    "scan in reverse": lambda x: lax.scan(lambda x, w: (jnp.tanh(x) * w, None), x, x5, reverse=True)[0],
    "scan without rounds": lambda x: lax.scan(lambda x, _: (jnp.exp(x), None), x, length=0)[0],
    "nested loops and conditions": nested,
    "dead ends": lambda x: (x * x, jnp.exp(x))[1],
}


def close(found, expected, tolerance=1e-12):
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", INVERTIBLE)
def test_there_and_back(name):
    fun = INVERTIBLE[name]
    y = fun(x5)
    like = SHAPE(x5.shape, x5.dtype)
    back = inverse(fun, like=like)
    close(back(y), x5)
    close(jax.jit(back)(y), x5)


@pytest.mark.parametrize(
    "name", ["operators", "sigmoid", "cond", "fori_loop", "nested loops and conditions", "matrix on the right"]
)
def test_batches_and_derivatives_of_the_inverse(name):
    fun = INVERTIBLE[name]
    batch = jnp.stack([x5, 0.5 * x5, 0.9 - x5])
    close(jax.vmap(inverse(fun))(jax.vmap(fun)(batch)), batch)
    close(jax.jit(jax.vmap(inverse(fun)))(jax.vmap(fun)(batch)), batch)
    there, back = jax.jacobian(fun)(x5), jax.jacobian(inverse(fun))(fun(x5))
    np.testing.assert_allclose(there @ back, np.eye(5), atol=1e-10)


@pytest.mark.parametrize("name", ["operators", "exp of tanh", "cond", "fori_loop", "matrix on the left", "solve"])
def test_the_inverse_of_the_inverse(name):
    fun = INVERTIBLE[name]
    close(inverse(inverse(fun))(x5), fun(x5))


def test_one_unknown_of_several_arguments():
    def f(a, tree, c, *, sign):
        return sign * a - tree["b"] / jnp.exp(c)

    arguments = (2.0, {"b": 3.0}, 0.7)
    y = f(*arguments, sign=-1.0)
    for i in (0, 2):
        back = inverse(lambda a, tree, c: f(a, tree, c, sign=-1.0), i)
        given = list(arguments)
        given[i] = y
        close(back(*given), jnp.asarray(arguments[i]))
        close(jax.jit(back)(*given), jnp.asarray(arguments[i]))
    close(inverse(lambda a, mode: {"twice": 2.0}[mode] * a)(4.0, "twice"), jnp.asarray(2.0))
    close(inverse(lambda a, b: a + b, -1)(4.0, 6.0), jnp.asarray(2.0))


@pytest.mark.parametrize("which", [0, 1, 2, 7])
def test_a_branch_is_chosen_by_a_value(which):
    def f(x, which, scale):
        return lax.switch(which, [lambda x: scale * x, jnp.exp, lambda x: scale - jnp.tanh(x)], x)

    y = f(x5, which, 3.0)
    close(inverse(f)(y, which, 3.0), x5)
    close(jax.jit(inverse(f))(y, which, 3.0), x5)
    both = jnp.stack([y, f(0.5 * x5, which, 3.0)])
    close(jax.vmap(inverse(f), (0, None, None))(both, which, 3.0), jnp.stack([x5, 0.5 * x5]))


def test_branches_of_a_batch_differ():
    def f(x, flag):
        return lax.cond(flag, lambda x: jnp.exp(x) + 1.0, lambda x: -2.0 * x, x)

    flags = x5 > 0.5
    assert 0 < jnp.sum(flags) < 5
    y = jax.vmap(f)(x5, flags)
    close(jax.vmap(inverse(f))(y, flags), x5)


@pytest.mark.parametrize("flag", [True, False])
def test_what_is_known_after_a_condition_is_known(flag):
    y = branches_with_known_results(flag, x5, 3.0)
    close(inverse(branches_with_known_results, 1)(flag, y, 3.0), x5)


def test_a_loop_carries_and_stacks_known_values():
    weights = jnp.asarray([0.5, 2.0, -1.0])
    y = scanned(x5, weights)
    close(inverse(scanned)(y, weights), x5)
    close(jax.jit(inverse(scanned))(y, weights), x5)


def test_a_loop_may_stack_what_nobody_needs():
    def f(x):
        return lax.scan(lambda x, _: (jnp.tanh(x), 2.0 * x), x, length=3)[0]

    close(inverse(f)(f(x5)), x5)


def test_a_matrix_of_unknowns(rng):
    x = jnp.asarray(rng.normal(size=(5, 5)))
    for f in (
        lambda x: jax.vmap(lambda row: MATRIX @ row)(x),
        lambda x: MATRIX @ x + 1.0,
        lambda x: (x @ MATRIX).T,
        lambda x: jnp.einsum("ij,ki->kj", x, MATRIX),
        lambda x: jnp.einsum("ij,ik->jk", x, MATRIX),
        lambda x: jnp.linalg.solve(MATRIX, x.T),
        lambda x: jnp.transpose(x.reshape(5, 1, 5), (2, 0, 1)),
    ):
        close(inverse(f, like=x)(f(x)), x)
    y = x[:3]
    close(inverse(jax.vmap(lambda row: MATRIX @ row))(jax.vmap(lambda row: MATRIX @ row)(y)), y)


def test_dtypes():
    x = x5.astype(jnp.float32)
    found = inverse(lambda x: 2.0 * jnp.exp(x))(2.0 * jnp.exp(x))
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, x, rtol=1e-5)
    wider = inverse(lambda x: jnp.exp(x.astype(jnp.float64)), like=x)(jnp.exp(x.astype(jnp.float64)))
    close(wider, x, 1e-7)


def test_the_network_of_the_example():
    rng = np.random.default_rng(1)
    weights, _ = jnp.linalg.qr(rng.normal(size=(4, 5, 5)))
    biases = jnp.asarray(rng.normal(size=(4, 5)))
    close(jax.jit(inverse(network))(network(x5, weights, biases), weights, biases), x5)


def where(x):
    return jnp.where(x > 0, x, 2.0 * x)


TWICE = {
    "x + x": lambda x: x + x,
    "x - x": lambda x: 2.0 * x - x,
    "x exp(x)": lambda x: x * jnp.exp(x),
    "x * x": lambda x: x * x,
    "x / exp(x)": lambda x: jax.jit(lambda a, b: a / b)(x, jnp.exp(x)),
    "x @ x": lambda x: x @ x,
    "two operands of a condition": lambda x: lax.cond(True, lambda x, y: x, lambda x, y: y, x, jnp.exp(x)),
    "what a branch needs twice": lambda x: lax.cond(jnp.sum(x5) > 0, lambda x: x * jnp.exp(x), jnp.exp, x),
    "what a round needs twice": lambda x: lax.fori_loop(0, 3, lambda i, x: x + jnp.sin(x) / 2, x),
    "held and carried": lambda x: lax.scan(lambda c, _: (c + x, None), x, length=3)[0],
    "stacked twice": lambda x: jnp.stack([x, x]),
}


@pytest.mark.parametrize("name", TWICE)
def test_an_unknown_that_occurs_twice_is_refused(name):
    with pytest.raises(
        (ValueError, NotImplementedError), match=r"inverse: (the unknown occurs in several operands|nothing undoes)"
    ):
        inverse(TWICE[name], like=x5)(jax.eval_shape(TWICE[name], x5).shape and TWICE[name](x5))


REFUSED = {
    "even power": (lambda x: x**2, "'square'|'integer_pow'"),
    "fourth power": (lambda x: x**4, "'integer_pow'"),
    "unknown base": (lambda x: x**x5, "'pow'"),
    "sine": (jnp.sin, "'sin'"),
    "absolute value": (jnp.abs, "'abs'"),
    "rounding": (jnp.round, "'round'"),
    "maximum": (lambda x: jnp.maximum(x, 0.5), "'max'"),
    "where": (where, "'gt'|several operands of 'select_n'"),
    "known choice": (lambda x: jnp.where(x5 > 0.5, x, 0.0), "'select_n'"),
    "choice of two": (
        lambda x: jax.vmap(lambda s, b: lax.cond(b, jnp.exp, jnp.negative, s))(x, x5 > 0.5),
        "'select_n'",
    ),
    "sum": (jnp.cumsum, "'cumsum'"),
    "half of it": (lambda x: x[:3], "'slice'|'gather'|'dynamic_slice'"),
    "while": (lambda x: lax.while_loop(lambda x: x[0] < 1, lambda x: 2.0 * x, x), "'while'"),
    "an unknown condition": (
        lambda x: lax.cond(x[0] > 0, jnp.exp, jnp.tanh, x),
        "'slice'|'gather'|'dynamic_slice'|'squeeze'",
    ),
    "one number beside an array": (lambda x: x[0, None] * x5, "nothing undoes"),
    "integers": (lambda x: x.astype(int), "'convert_element_type'"),
    "complex numbers": (lambda x: x.astype(complex), "'convert_element_type'"),
    "mapped": (lambda x: lax.map(jnp.exp, x), "'scan'"),
    "held by a loop": (lambda x: lax.scan(lambda c, w: (c + x, None), x5, x5)[0], "'scan'"),
    "of less rank": (lambda x: MATRIX[:3] @ x, "'dot_general'"),
    "norm": (lambda x: jnp.sum(x), "'reduce_sum'"),
    "unknown matrix": (lambda x: jnp.linalg.solve(jnp.diag(x), x5), "nothing undoes|several"),
    "lost in a branch": (
        lambda x: lax.cond(jnp.sum(x5) > 0, jnp.exp, lambda x: x5, x),
        "depends on the unknown in some branches only",
    ),
    "lost in a loop": (
        lambda x: lax.scan(lambda c, w: (w * x5, None), x, x5)[0],
        "a loop must carry the unknown in one value",
    ),
    "spread in a loop": (
        lambda x: lax.scan(lambda c, _: ((c[1], c[0]), None), (x, x5), length=4)[0][0],
        "a loop must carry the unknown in one value",
    ),
    "stacked by a loop": (
        lambda x: lax.scan(lambda c, _: (jnp.exp(c), c), x, length=1)[1].reshape(5),
        "the stacked results of a loop cannot be undone",
    ),
    "not there": (lambda x: x5, "one array that depends on the unknown"),
    "two results": (lambda x: (x, x5), "one array that depends on the unknown"),
    "other shape": (lambda x: x[None], r"y has shape \(5,\), but fun returns \(1, 5\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_undone_is_refused(name):
    fun, message = REFUSED[name]
    given = x5
    with pytest.raises((ValueError, NotImplementedError), match="inverse: ") as error:
        y = jax.eval_shape(fun, x5)
        if isinstance(y, SHAPE) and name != "other shape":
            given = jnp.full(y.shape, 0.5)
        inverse(fun, like=x5)(given)
    assert error.match(message)


def test_the_unknown_is_a_real_floating_point_array():
    for y in (3, jnp.arange(3), jnp.ones(3, complex), True):
        with pytest.raises(TypeError, match="unknown must be real floating-point, got"):
            inverse(jnp.exp)(y)
    with pytest.raises(NotImplementedError, match="nothing undoes this use of 'add'"):
        inverse(lambda x: x + x5, like=SHAPE((), float))(x5)


def test_what_the_function_never_returns_is_nan_where_it_is_noticed():
    for fun in (jnp.exp, jnp.sqrt, jax.nn.sigmoid):
        assert jnp.isnan(inverse(fun)(-2.0))
    assert jnp.isinf(inverse(lambda x: 0.0 * x)(1.0))


UNDONE = [
    jnp.exp,
    jnp.tanh,
    jnp.arcsinh,
    jnp.negative,
    jax.nn.softplus,
    jax.nn.sigmoid,
    lambda x: x**3,
    lambda x: 1.5 - 0.5 * x,
    lambda x: 2.0 / (3.0 + x),
]
NOT_UNDONE = [
    jnp.abs,
    jnp.sin,
    lambda x: x**2,
    lambda x: x * jnp.exp(-x),
    lambda x: jnp.where(x > 0, x, 0.5 * x),
    lambda x: jnp.maximum(x, -0.25),
    lambda x: jnp.round(4.0 * x) / 4.0 + 0.1 * x,
    lambda x: jnp.cumsum(jnp.stack([x, x]))[1],
]


def drawn(rng, depth):
    """A random function of a number."""
    kind = rng.integers(6) if depth else 0
    if kind <= 1:
        steps = UNDONE if rng.integers(8) else NOT_UNDONE
        return steps[rng.integers(len(steps))]
    f, g = drawn(rng, depth - 1), drawn(rng, depth - 1)
    flag, rounds = bool(rng.integers(2)), int(rng.integers(3))
    if kind == 2:
        return lambda x: lax.cond(jnp.asarray(flag), f, g, x)
    if kind == 3:
        return lambda x: lax.fori_loop(0, rounds, lambda i, x: f(x) + 0.1 * i, g(x))
    if kind == 4 and rng.integers(4) == 0:
        return lambda x: f(x) + g(x) / 3
    return lambda x: jax.jit(f)(g(x))


@pytest.mark.slow
def test_it_is_never_a_wrong_number():
    rng = np.random.default_rng(0)
    refused = undone = 0
    for _ in range(40):
        f, x = drawn(rng, 2), jnp.asarray(rng.uniform(-1, 1))
        try:
            found = jax.jit(inverse(f))(f(x))
        except (ValueError, NotImplementedError) as error:
            assert "inverse: " in str(error)
            refused += 1
        else:
            undone += 1
            accuracy = 1e-12 / min(1.0, abs(jax.grad(f)(x)))
            assert abs(found - x) <= accuracy
    assert refused > 5 and undone > 20


# ---- counts ----------------------------------------------------------------------------------------------------------

A, B, v = SHAPE((20, 30), float), SHAPE((30, 7), float), SHAPE((30,), float)
S = SHAPE((4, 4), float)
KERNEL = SHAPE((5, 3, 3, 3), float)
IMAGES = SHAPE((2, 3, 8, 8), float)


def convolution(images, kernel):
    return lax.conv_general_dilated(images, kernel, (1, 1), "VALID")


def rounds_of_tanh(x):
    return lax.fori_loop(0, 9, lambda i, x: jnp.tanh(x) * i, x)


COUNTS = {
    "matrix and vector": (lambda A, v: A @ v, (A, v), 2 * 20 * 30),
    "matrices": (lambda A, B: A @ B, (A, B), 2 * 20 * 30 * 7),
    "batch of matrices": (jax.vmap(jnp.matmul, (None, 0)), (A, SHAPE((6, 30, 7), float)), 6 * 2 * 20 * 30 * 7),
    "einsum": (lambda A, B: jnp.einsum("ij,jk,ik->i", A, B, jnp.ones((20, 7))), (A, B), 2 * 20 * 30 * 7 + 2 * 20 * 7),
    "elementwise": (lambda v: jnp.tanh(v) * v + 1.0, (v,), 90),
    "comparison": (lambda v: v > 0.5, (v,), 30),
    "one beside many": (lambda A, v: A * v, (A, v), 600),
    "sum": (jnp.sum, (A,), 599),
    "sum of columns": (lambda A: jnp.sum(A, axis=0), (A,), 19 * 30),
    "mean": (jnp.mean, (v,), 30),
    "largest": (lambda A: jnp.max(A, axis=1), (A,), 20 * 29),
    "no elements": (jnp.sum, (SHAPE((0,), float),), 0),
    "running sum": (lambda A: jnp.cumsum(A, axis=1), (A,), 20 * 29),
    "moved": (lambda A: jnp.flip(A.T)[:3].reshape(-1), (A,), 0),
    "chosen": (lambda v: jnp.where(jnp.arange(30) > 3, v, 0.0), (v,), 0),
    "integers": (lambda n: jnp.sum(n * n), (SHAPE((50,), int),), 0),
    "square": (lambda v: v**2, (v,), 30),
    "third power": (lambda v: v**3, (v,), 60),
    "minus fifth power": (lambda v: v**-5, (v,), 120),
    "power of none": (lambda v: lax.integer_pow(v, 0), (v,), 0),
    "convolution": (convolution, (IMAGES, KERNEL), 2 * (2 * 5 * 6 * 6) * (3 * 3 * 3)),
    "additions to elements": (lambda v: v.at[jnp.array([1, 2, 2])].add(1.0), (v,), 3),
    "system": (jnp.linalg.solve, (S, SHAPE((4,), float)), 6 + 2 * (9 + 4 + 1) + 4 * 3 + 4 * 4),
    "systems": (jnp.linalg.solve, (SHAPE((5, 4, 4), float), SHAPE((5, 4, 3), float)), 5 * (34 + 3 * 28)),
    "jit": (jax.jit(lambda v: jax.jit(jnp.exp)(v)), (v,), 30),
    "custom derivatives": (lambda v: with_vjp(with_jvp(v)), (v,), 60),
    "checkpoint": (jax.checkpoint(lambda v: jnp.exp(v)), (v,), 30),
    "scan": (lambda v: lax.scan(lambda v, _: (2.0 * jnp.exp(v), None), v, length=11)[0], (v,), 660),
    "scan over rows": (lambda A: lax.scan(lambda c, row: (c + jnp.sum(row), None), 0.0, A)[0], (A,), 20 * 30),
    "map": (lambda A: lax.map(jnp.exp, A), (A,), 600),
    "fori_loop": (rounds_of_tanh, (v,), 9 * 60),
    "loops in loops": (lambda v: lax.fori_loop(0, 5, lambda _, v: rounds_of_tanh(v) + 1.0, v), (v,), 5 * (540 + 30)),
    "condition": (lambda v: lax.cond(v[0] > 0, jnp.exp, lambda v: v * v + jnp.sin(v), v), (v,), 1 + 90),
    "switch": (lambda i, v: lax.switch(i, [jnp.exp, lambda v: v, rounds_of_tanh], v), (SHAPE((), int), v), 540),
    "condition in a loop": (
        lambda v: lax.fori_loop(0, 6, lambda i, v: lax.cond(i % 2 == 0, jnp.exp, lambda v: v, v), v),
        (v,),
        6 * 30,
    ),
    "dead": (lambda v: (jnp.exp(v), jnp.sin(v))[1], (v,), 30),
    "made inside": (lambda: jnp.sum(jnp.arange(10**15) * jnp.zeros(10**15)), (), 2 * 10**15 - 1),
    "Python numbers": (lambda a, b: a * b + 1.0, (2.0, 3.0), 2),
    "arrays": (lambda v: v + v, (jnp.ones(3),), 3),
    "derivative": (jax.grad(lambda v: jnp.sum(jnp.exp(v))), (v,), 30 + 30),
    "tree": (lambda tree, scale: scale * tree["v"], ({"v": v}, 2.0), 30),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name):
    program, arguments, expected = COUNTS[name]
    assert flops(program)(*arguments) == expected
    assert flops(jax.jit(program))(*arguments) == expected


def test_while_loops_are_counted_on_demand():
    def f(v):
        return lax.while_loop(lambda v: v[0] < 1.0, lambda v: 2.0 * v, v)

    with pytest.raises(ValueError, match=r"flops: how often a while loop runs .* rounds="):
        flops(f)(v)
    assert flops(f, rounds=0)(v) == 1
    assert flops(f, rounds=10)(v) == 10 * 30 + 11
    assert flops(lambda v: lax.fori_loop(0, 3, lambda _, v: f(v), v), rounds=2)(v) == 3 * (2 * 30 + 3)


@pytest.mark.parametrize(
    ("program", "name"),
    [
        (jnp.sort, "sort"),
        (jnp.fft.rfft, "fft"),
        (lambda v: v + 1j * v, "mul|convert|complex"),
        (jnp.linalg.eigh, "eigh"),
    ],
)
def test_what_is_not_known_is_refused(program, name):
    argument = S if program is jnp.linalg.eigh else v
    with pytest.raises(NotImplementedError, match=f"flops: what '.*({name}).*' of .* costs is not known"):
        flops(program)(argument)


@pytest.mark.parametrize("name", ["matrix and vector", "matrices", "batch of matrices", "elementwise", "comparison", "largest",
                                  "square", "third power", "minus fifth power", "convolution", "jit"])  # fmt: skip
def test_xla_counts_the_same(name):
    program, arguments, expected = COUNTS[name]
    analysis = jax.jit(program).lower(*arguments).compile().cost_analysis()
    assert analysis.get("flops", 0) + analysis.get("transcendentals", 0) == expected


# ---- the documentation -----------------------------------------------------------------------------------------------


def test_the_code_of_the_page_is_that_of_the_examples():
    """Word for word, except for imports and for uses, which assert something."""
    page = (ROOT / "docs" / "design" / "interpreter.md").read_text(encoding="utf-8")
    examples = "".join((ROOT / "examples" / name).read_text(encoding="utf-8") for name in ("inverse.py", "flops.py"))
    blocks = [block["code"] for block in BLOCK.finditer(page)]
    quoted = [block for block in blocks if "assert" not in block and not block.startswith("import")]
    assert len(quoted) >= 8
    for block in quoted:
        assert block in examples


@pytest.mark.costly
@pytest.mark.parametrize("name", ["inverse.py", "flops.py"])
def test_the_examples_run(name):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    command = [sys.executable, str(ROOT / "examples" / name)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert process.returncode == 0, process.stdout + process.stderr
    assert {"inverse.py": "All checks hold.", "flops.py": "54,180,000"}[name] in process.stdout


def test_the_interpreter_is_imported_where_it_is_asked_for():
    """What it needs of JAX takes as long to import as the whole package does; the first use of `structured` may be under `jax.jit`."""
    code = """
import sys, jax, structarrays as sa
assert not [name for name in sys.modules if name.startswith(("jax.extend", "jax.scipy."))]
assert "structarrays.transform.interpreter" not in sys.modules
assert "Interpreter" in dir(sa.transform)
double = jax.jit(lambda x: sa.structured(lambda y: y + y)(x))
assert double(sa.Diagonal([1.0, 2.0])).diagonal().tolist() == [2.0, 4.0]
assert double(sa.Diagonal([1.0, 2.0, 3.0])).diagonal().tolist() == [2.0, 4.0, 6.0]
assert sa.transform.Interpreter(special=bool, default=print) is not None
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert process.returncode == 0, process.stderr
    with pytest.raises(AttributeError, match="no attribute 'Interpeter'"):
        sa.transform.Interpeter  # noqa: B018
