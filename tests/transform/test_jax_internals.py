"""`jax_internals`: every primitive of the installed JAX is known, and whatever is not known leads to no wrong value."""

import dataclasses
import runpy

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import ClosedJaxpr, Jaxpr, Primitive, primitives
from primitives import DENSIFIES
from support import as_jax

import structarrays as sa
from structarrays._core.jax_internals import equations as internals
from structarrays._core.jax_internals import forms, program_types
from structarrays._core.jax_internals.jaxprs import PROGRAMS, closed
from structarrays.transform import programs  # noqa: F401 (it registers the rules)
from structarrays.transform.rules import STRUCTURED

N = 4

FLAGS = ("jax_custom_vjp3", "jax_custom_jvp3", "jax_remat3")
if not all(hasattr(jax.config, flag) for flag in FLAGS):
    FLAGS = ()


@pytest.fixture(autouse=True)
def without_flags():
    """The equations of functions with derivatives of their own have other forms with these flags, which the environment may set."""
    before = {flag: getattr(jax.config, flag) for flag in FLAGS}
    for flag in FLAGS:
        jax.config.update(flag, False)
    yield
    for flag, value in before.items():
        jax.config.update(flag, value)


@pytest.mark.parametrize("missing", [None, "DropVar", "Jaxpr"])
def test_the_types_of_programs_are_the_documented_ones(missing, monkeypatch):
    """Also if JAX no longer defines one of them where it is looked for."""
    if missing is not None:
        monkeypatch.delattr("jax._src.core." + missing)
        monkeypatch.delattr("jax._src.core.ClosedJaxpr", raising=False)
    found = runpy.run_path(program_types.__file__)
    for name in program_types.__all__:
        assert found[name] is getattr(jax.extend.core, name), name


@jax.custom_jvp
def with_tangents(x):
    return jnp.sin(x)


@with_tangents.defjvp
def _(primals, tangents):
    return jnp.sin(primals[0]), 3 * jnp.cos(primals[0]) * tangents[0]  # not the derivative of the sine


@jax.custom_vjp
def with_cotangents(x):
    return jnp.sin(x)


with_cotangents.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (3 * jnp.cos(x) * g,))

PROGRAMS_OF = {
    "scan": lambda A: lax.scan(lambda c, w: (w * (c @ A), None), A, jnp.arange(1.0, 4.0))[0],
    "while": lambda A: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, 2 * c[1] @ c[1]), (0, A))[1],
    "cond": lambda A: lax.cond(jnp.sum(A) > 0, lambda x: jnp.sin(x), lambda x: x @ x, A),
    "remat2": jax.checkpoint(lambda A: jnp.sin(A) @ A),
    "custom_linear_solve": lambda A: A * jnp.sum(
        lax.custom_linear_solve(lambda v: A @ v, jnp.ones(N), lambda mv, b: b / jnp.diagonal(A), symmetric=True)
    ),
    "custom_jvp_call": lambda A: with_tangents(A) @ A,
    "custom_vjp_call": lambda A: with_cotangents(A) @ A,
    "jit": lambda A: jax.jit(lambda x: jnp.sin(x) @ x)(A),
    "sin": jnp.sin,
    "mul": lambda A: A * A,
    "integer_pow": lambda A: A**3,
    "dot_general": lambda A: A @ A,
    "reduce_sum": lambda A: A * jnp.sum(A),
    "transpose": lambda A: A.T,
    "cholesky": lambda A: lax.linalg.cholesky(A, symmetrize_input=False),
    "triangular_solve": lambda A: lax.linalg.triangular_solve(A, A, left_side=True, lower=True),
}  # fmt: skip
"""For each primitive a program with an equation of it, of a positive definite diagonal matrix."""


def equations(program):
    """The equations of a program, those of programs within it among them."""
    for equation in internals.parts(program).equations:
        yield equation
        for value in equation.params.values():
            if isinstance(value, (Jaxpr, ClosedJaxpr)):
                yield from equations(closed(value))


def equation_of(name: str):
    """An equation of a primitive in its program."""
    program = jax.make_jaxpr(PROGRAMS_OF[name])(jnp.eye(N))
    return next(e for e in equations(program) if e.primitive.name == name)


# ---- all primitives --------------------------------------------------------------------------------------------------


def test_every_primitive_of_jax_has_a_rule_or_is_dense_on_purpose():
    listed = {name for names in DENSIFIES.values() for name in names.split()}
    installed = {
        each.name
        for module in (primitives, lax, lax.linalg)
        for each in vars(module).values()
        if isinstance(each, Primitive)
    }
    assert len(installed) > 150
    known = {name for name in STRUCTURED.rules if "." not in name} | PROGRAMS.keys()
    assert sorted(installed - known - listed) == []
    assert sorted(known & listed) == []


def test_every_rule_knows_the_parameters_of_its_primitive():
    assert sorted(name for name in STRUCTURED.rules if "." not in name and name not in forms.FORMS) == []


# ---- closed on failure -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS_OF)
def test_equations_with_other_parameters_are_not_recognised(name):
    equation = equation_of(name)
    assert internals.is_recognised(equation)
    given = dict(equation.params)
    altered = [given | {"unheard_of": None}]
    for parameter in forms.FORMS[name].required:
        rest = {key: value for key, value in given.items() if key != parameter}
        altered += [rest, rest | {parameter + "_": given[parameter]}]
    for parameters in altered:
        other = equation.replace(params=parameters)
        assert not internals.is_recognised(other)
        assert internals.inner_program(other) is None
        with pytest.raises(internals.UnrecognisedEquation, match=name):
            internals.parameters(other)
        if name in internals.RECORDS:
            with pytest.raises(internals.UnrecognisedEquation, match=name):
                internals.RECORDS[name].of(other)


ALTERED = {
    "scan": [{"length": 5}, {"length": None}, {"jaxpr": None}],
    "while": [{"cond_nconsts": 1}, {"body_jaxpr": None}, {"body_nconsts": "1"}],
    "cond": [{"branches": ()}, {"branches": None}],
    "remat2": [{"jaxpr": None}],
    "custom_linear_solve": [{"jaxprs": None}, {"const_lengths": (0, 0, 0, 0)}],
    "custom_jvp_call": [{"num_consts": 5}, {"jvp_jaxpr_fun": None}, {"call_jaxpr": None}],
    "custom_vjp_call": [{"num_consts": -1}, {"fwd_jaxpr_thunk": None}, {"bwd": None}, {"out_trees": None}],
}


@pytest.mark.parametrize("name", ALTERED)
def test_parameters_of_another_form_are_not_recognised(name):
    equation = equation_of(name)
    more = []
    if name == "scan":
        old = "num_consts" in equation.params
        more = [{"num_consts": 0}, {"num_carry": 0}] if old else [{"ft_in": equation.params["ft_out"]}, {"ft_in": None}]
    for changes in ALTERED[name] + more:
        other = equation.replace(params=dict(equation.params) | changes)
        assert not internals.is_recognised(other), changes


FORWARDS = [name for name in PROGRAMS_OF if name != "custom_vjp_call"]
BACKWARDS = [name for name in PROGRAMS_OF if name != "while"]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        (name, change)
        for name in PROGRAMS_OF
        for change in ("missing", "new")
        if change == "missing" or forms.FORMS[name].known
    ],
)
def test_what_is_not_recognised_is_dense_and_right_with_its_derivatives(name, change, monkeypatch):
    d, t, g = np.linspace(0.5, 1.5, N), np.linspace(-1.0, 1.0, N), np.linspace(1.0, 2.0, N * N).reshape(N, N)
    fun = PROGRAMS_OF[name]

    def dense(d):
        return fun(jnp.diag(d))

    def structured(d):
        result = sa.structured(lambda A: fun(A))(sa.Diagonal(d))  # traced anew
        return as_jax(result) if isinstance(result, sa.Array) else result

    def values_and_derivatives(f):
        return [
            jax.jit(f)(d),
            jax.jit(lambda d: jax.jvp(f, (d,), (t,))[1])(d) if name in FORWARDS else 0,
            jax.jit(lambda d: jax.vjp(f, d)[1](jnp.asarray(g))[0])(d) if name in BACKWARDS else 0,
        ]

    expected = values_and_derivatives(dense)
    form = forms.FORMS[name]
    other = (
        {"required": form.required | {"unheard_of"}}
        if change == "missing"
        else {"required": frozenset(), "known": frozenset()}
    )
    monkeypatch.setitem(forms.FORMS, name, dataclasses.replace(form, **other))
    assert not internals.is_recognised(equation_of(name))
    for value, wanted in zip(values_and_derivatives(structured), expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-12, atol=1e-12)


# ---- rules for derivatives -------------------------------------------------------------------------------------------


def call_with(backward):
    """The record of a function of one argument with another backward pass."""
    record = internals.CustomVjpCall.of(equation_of("custom_vjp_call"))
    return dataclasses.replace(record, _backward=lambda residuals, cotangents: backward(cotangents))


def test_the_backward_pass_of_each_version_of_jax_is_read():
    g = jnp.ones((N, N))
    for found in ([g], (g,), ([g], None), ((g,), None)):
        assert call_with(lambda c, found=found: found).backward([], [g])[0] is g
    zero = SymbolicZero(jax.core.ShapedArray((N, N), g.dtype))
    for found in ([None], [zero], ([zero], None)):
        assert call_with(lambda c, found=found: found).backward([], [g]) == [None]


@pytest.mark.parametrize(
    "found",
    [[], None, ([None], {"log": 1}), [jnp.ones(3)], ["1"], [object()], ([jnp.ones((N, N))] * 2, None), {}],
    ids=["none", "nothing", "logs", "another shape", "text", "an object", "too many", "a dict"],
)
def test_a_backward_pass_of_another_form_is_refused(found):
    with pytest.raises(internals.UnrecognisedEquation, match="custom_vjp_call"):
        call_with(lambda c: found).backward([], [jnp.ones((N, N))])


def test_a_forward_pass_of_another_form_is_refused():
    record = internals.CustomVjpCall.of(equation_of("custom_vjp_call"))
    forward = record._forward([True])
    for other in ({"residuals": (*forward.residuals, None)}, {"left_out": 1}, {"residuals": (None,) * 5}):
        changed = dataclasses.replace(record, _forward=lambda p, o=other: dataclasses.replace(forward, **o))
        with pytest.raises(internals.UnrecognisedEquation, match="forward pass"):
            changed.forward([True])


def test_a_rule_for_tangents_of_another_form_is_refused():
    record = internals.CustomJvpCall.of(equation_of("custom_jvp_call"))
    program, zeros_out, left_out = record.rule([False])
    for other in (
        (program, [True], left_out),
        (program, [], left_out),
        (program, zeros_out, 1),
        (record.program, zeros_out, 0),
    ):
        changed = dataclasses.replace(record, _rule=lambda zeros, o=other: o)
        with pytest.raises(internals.UnrecognisedEquation, match="rule for tangents"):
            changed.rule([False])


def test_a_cotangent_that_is_a_python_number():
    @jax.custom_vjp
    def total(A, s):
        return jnp.sum(A) * s

    total.defvjp(lambda A, s: (jnp.sum(A) * s, (A, s)), lambda saved, g: (3 * g * jnp.ones((N, N)), 7.0))
    D = sa.Diagonal(jnp.arange(1.0, N + 1))
    by_matrix, by_number = jax.grad(lambda D, s: sa.structured(total)(D, s), argnums=(0, 1))(D, 2.0)
    np.testing.assert_allclose(by_matrix.diag, np.full(N, 3.0))
    np.testing.assert_allclose(by_number, 7.0)


# ---- primitives of jax.experimental.hijax ----------------------------------------------------------------------------


@pytest.fixture
def with_flags():
    """JAX's next implementations of functions with derivatives of their own, where the installed version has all of them."""
    for flag in FLAGS:
        jax.config.update(flag, True)
    return bool(FLAGS)


def cotangents_of_both():
    @jax.custom_vjp
    def product(x, y):
        return x * y

    product.defvjp(lambda x, y: (x * y, (x, y, 2.0)), lambda saved, g: (saved[2] * saved[1] * g, None))
    return lambda A: product(A, jnp.ones_like(A)) + product(A, A)


def cotangents_told_of_zeros():
    @jax.custom_vjp
    def both(x, y):
        return jnp.sin(x), y

    def forward(x, y):
        assert x.perturbed and not y.perturbed
        return both(x.value, y.value), x.value

    def backward(x, cotangents):
        g, other = cotangents
        assert isinstance(other, SymbolicZero)
        return 3 * g * jnp.cos(x), None

    both.defvjp(forward, backward, symbolic_zeros=True)
    return lambda A: both(A, 2.0)[0]


def tangents_of_integers():
    @jax.custom_jvp
    def scaled(x, k):
        return x * k

    scaled.defjvp(lambda p, t: (p[0] * p[1], 3 * t[0] * p[1]))
    return lambda A: scaled(A, 2)


def captured():
    def scaled(A):
        s = jnp.sum(A)

        @jax.custom_jvp
        def by_total(x):
            return x * lax.stop_gradient(s)

        # The rule knows nothing of the captured number: in JAX's next implementation it may not.
        by_total.defjvp(lambda p, t: (5 * p[0], 3 * t[0]))
        return by_total(A)

    return scaled


def remembered():
    return jax.checkpoint(lambda A: jnp.sin(jax.ad_checkpoint.checkpoint_name(A, "a")) * A)


def in_a_loop():
    return lambda A: lax.scan(lambda c, w: (with_cotangents(c) * w, None), A, jnp.arange(1.0, 4.0))[0]


def mapped():
    return lambda A: jnp.sum(jax.vmap(lambda w: with_tangents(A * w))(jnp.arange(1.0, 4.0)), axis=0)


OWN = [cotangents_of_both, cotangents_told_of_zeros, tangents_of_integers, captured, remembered, in_a_loop, mapped]


@pytest.mark.parametrize("made", OWN, ids=lambda made: made.__name__)
def test_derivatives_of_their_own_with_the_flags_of_the_next_version(made, with_flags):
    """The oracle is JAX on the dense matrix, with the flags off."""
    d = np.linspace(0.5, 1.5, N)
    g = np.linspace(1.0, 2.0, N * N).reshape(N, N)

    def structured(d):
        result = sa.structured(made())(sa.Diagonal(d))
        return jnp.asarray(as_jax(result) if isinstance(result, sa.Array) else result)

    names = {e.primitive.name for e in equations(jax.make_jaxpr(made())(jnp.eye(N)))}
    assert ("call_hi_primitive" in names) == with_flags, names
    result, pull = jax.vjp(jax.jit(structured), d)
    (given,) = pull(jnp.asarray(g))
    for flag in FLAGS if with_flags else ():
        jax.config.update(flag, False)
    wanted, pull = jax.vjp(lambda d: made()(jnp.diag(d)), d)
    np.testing.assert_allclose(result, wanted, rtol=1e-12)
    np.testing.assert_allclose(given, pull(jnp.asarray(g))[0], rtol=1e-12)


def test_searching_keeps_to_integers_and_structure():
    D = sa.Diagonal(jnp.asarray([3.0, 1.0, 2.0]))
    places = sa.structured(lambda A: jnp.searchsorted(jnp.asarray([0.5, 1.5, 2.5]), A))(D)
    np.testing.assert_array_equal(places, np.searchsorted([0.5, 1.5, 2.5], np.diag([3.0, 1.0, 2.0])))
    found = sa.structured(lambda A: jnp.nonzero(A, size=3))(D)
    np.testing.assert_array_equal(found, np.nonzero(np.diag([3.0, 1.0, 2.0])))


@pytest.mark.parametrize(
    "fun",
    [
        lambda A: jnp.ldexp(A, 2),
        lambda A: jnp.frexp(A)[0] * A,
        jnp.log2,
        lambda A: jnp.polyval(jnp.asarray([1.0, 2.0, 3.0]), A),
    ],
)
def test_functions_that_are_other_primitives_in_each_version(fun):
    d, t = np.linspace(0.5, 1.5, N), np.linspace(-1.0, 1.0, N)

    def structured(d):
        result = sa.structured(lambda A: fun(A))(sa.Banded([d], [0], (N, N)) + 1.0)
        return as_jax(result) if isinstance(result, sa.Array) else result

    result = jax.jvp(structured, (d,), (t,))
    wanted = jax.jvp(lambda d: fun(jnp.diag(d) + 1.0), (d,), (t,))
    for value, expected in zip(result, wanted, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-12)
