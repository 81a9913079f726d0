"""Writes in a function that JAX transforms. A write to an array made inside is part of the function. A write to an array made
outside raises, and the array keeps its value."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from support import as_jax

import structarrays as sa
from structarrays._core.dispatch.tracing import compiling
from structarrays._core.jax_internals import traces

N = 4


def ignored(function):
    """A function of a number for what takes functions of arrays."""

    @functools.wraps(function)
    def of_number(t):
        function(t)
        return t * 1.0

    return of_number


# Each runs a function on a traced number.
TRANSFORMS = {
    "grad": lambda f: jax.grad(f)(2.0),
    "vjp": lambda f: jax.vjp(f, 2.0),
    "jvp": lambda f: jax.jvp(f, (2.0,), (1.0,)),
    "linearize": lambda f: jax.linearize(f, 2.0),
    "hessian": lambda f: jax.hessian(f)(2.0),
    "vmap": lambda f: jax.vmap(f)(jnp.arange(3.0)),
    "grad of vmap": lambda f: jax.grad(lambda t: jnp.sum(jax.vmap(f)(t * jnp.ones(3))))(2.0),
    "vmap of grad": lambda f: jax.vmap(jax.grad(f))(jnp.arange(3.0)),
    "jit": lambda f: jax.jit(f)(2.0),
    "grad of jit": lambda f: jax.grad(jax.jit(f))(2.0),
    "jit of grad": lambda f: jax.jit(jax.grad(f))(2.0),
    "checkpoint": lambda f: jax.checkpoint(f)(2.0),
    "scan": lambda f: lax.scan(lambda c, t: (c, f(t)), 0.0, jnp.arange(3.0)),
    "fori_loop": lambda f: lax.fori_loop(0, 2, lambda i, t: f(t), 2.0),
    "cond": lambda f: lax.cond(True, f, f, 2.0),
    "sa.grad": lambda f: sa.grad(f)(sa.asarray(2.0)),
    "sa.vmap": lambda f: sa.vmap(f)(sa.ones(3)),
    "sa.structured": lambda f: jax.grad(sa.structured(f))(2.0),
}


def put_traced_index(x, t):
    x[jnp.asarray(0.0 * getattr(t, "to_jax", lambda: t)(), int), 0] = t


def through_an_operator(x, t):
    x += t


# Each writes a traced value into an array.
WRITES = {
    "element": lambda x, t: x.__setitem__((0, 0), t),
    "slice": lambda x, t: x.__setitem__(slice(1, 3), t),
    "all": lambda x, t: x.__setitem__(Ellipsis, t),
    "index arrays": lambda x, t: x.__setitem__((np.array([0, 1]), np.array([0, 1])), t),
    "mask": lambda x, t: x.__setitem__(np.eye(N, dtype=bool), t),
    "traced index": put_traced_index,
    "operator": through_an_operator,
    "element in place": lambda x, t: x.__setitem__((0, 0), x[0, 0] + t),
    "row": lambda x, t: x[1].__setitem__(0, t),
    "out": lambda x, t: np.add(x, sa.asarray(t), out=x),
    "out and where": lambda x, t: np.multiply(x, sa.asarray(t), out=x, where=np.eye(N, dtype=bool)),
    "copyto": lambda x, t: np.copyto(x, sa.asarray(t)),
    "fill_diagonal": lambda x, t: np.fill_diagonal(x, sa.asarray(t)),
    "view": lambda x, t: sa.reshape(x, (-1,)).__setitem__(2, t),
    "view of a view": lambda x, t: sa.flip(x.T).__iadd__(t),
}
FEW = ("element", "operator", "out", "view")
STRUCTURED = ("element", "all", "index arrays", "operator", "traced index", "fill_diagonal")


def writes_under(transform):
    """All writes under the first three transformations. The other transformations treat writes like one of these three."""
    return {name: WRITES[name] for name in (WRITES if transform in ("grad", "vmap", "jit") else FEW)}


MADE = {
    "Dense": lambda: sa.asarray(np.arange(16.0).reshape(N, N)),
    "Diagonal": lambda: sa.Diagonal(np.arange(1.0, 5.0)),
    "Banded": lambda: sa.tridiagonal(np.ones(3), np.full(4, 4.0), np.ones(3)),
    "Sparse": lambda: sa.Sparse(np.ones(N), (np.arange(N), np.arange(N)), (N, N)),
    "Symmetric": lambda: sa.Symmetric(np.eye(N)),
    "Triangular": lambda: sa.Triangular(np.eye(N)),
    "BlockDiagonal": lambda: sa.BlockDiagonal(np.ones((2, 2, 2))),
    "LowRank": lambda: sa.LowRank(np.ones((N, 1)), np.ones((N, 1))),
}


def outside(name, owned):
    """An array that is made outside of all transformations, with its value; it alone has its buffers if `owned`."""
    x = MADE[name]()
    if owned:
        x[1, 1] = 3.0
        x[1, 1] = 2.0
    expected = np.asarray(sa.asarray(x, copy=True))
    if owned:
        x[1, 1] = expected[1, 1]
    return x, expected, type(x)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_write_to_an_array_from_outside_raises_and_changes_nothing(transform):
    for (name, write), owned in itertools.product(writes_under(transform).items(), (True, False)):
        x, expected, kind = outside("Dense", owned)
        with pytest.raises(RuntimeError, match="return the new value"):
            TRANSFORMS[transform](ignored(functools.partial(write, x)))
        np.testing.assert_array_equal(np.asarray(x), expected, err_msg=name)
        assert type(x) is kind


@pytest.mark.parametrize(
    ("transform", "name"),
    [("vmap", "Diagonal"), ("jit", "Banded"), *(("grad", name) for name in MADE if name != "Dense")],
)
def test_a_structured_array_from_outside_keeps_its_value(transform, name):
    for write in STRUCTURED:
        x, expected, kind = outside(name, True)
        with pytest.raises(RuntimeError, match="return the new value"):
            TRANSFORMS[transform](ignored(functools.partial(WRITES[write], x)))
        np.testing.assert_array_equal(np.asarray(x), expected, err_msg=write)
        assert type(x) is kind


@pytest.mark.parametrize("write", WRITES)
def test_views_from_outside_keep_their_values(write):
    base = sa.asarray(np.arange(32.0).reshape(2, N, N))
    view, expected = base[1], np.arange(32.0).reshape(2, N, N)
    for transform in ("grad", "vmap", "jit"):
        with pytest.raises(RuntimeError, match="return the new value"):
            TRANSFORMS[transform](ignored(functools.partial(WRITES[write], view)))
        np.testing.assert_array_equal(np.asarray(base), expected)
        np.testing.assert_array_equal(np.asarray(view), expected[1])


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_an_array_made_inside_may_be_written_to(transform):
    """Arrays made inside: new, from a constant, or as a copy of an array from outside."""
    x = sa.asarray(np.ones((N, N)))
    makers = (
        lambda: sa.zeros((N, N)),
        lambda: sa.asarray(np.ones((N, N))),
        lambda: sa.asarray(x, copy=True),
        x.copy,
        lambda: x + 0.0,
    )

    def f(t):
        for write, make in zip(writes_under(transform).values(), itertools.cycle(makers)):
            write(make(), t)
        return t * 1.0

    TRANSFORMS[transform](f)
    np.testing.assert_array_equal(np.asarray(x), np.ones((N, N)))


def test_values_and_derivatives_of_writes_inside():
    """NumPy's polynomial, written element by element."""

    def f(t):
        out = sa.Diagonal(np.ones(3))
        out[1, 1] = t * t
        out[2, 2] = out[1, 1] * t
        out *= 2.0
        return as_jax(sa.sum(out))

    p = np.polynomial.Polynomial([2.0, 0.0, 2.0, 2.0])
    for run in (lambda g: g, jax.jit):
        assert np.allclose(run(f)(3.0), p(3.0), rtol=1e-14)
        assert np.allclose(run(jax.vmap(jax.grad(f)))(jnp.arange(3.0)), p.deriv()(np.arange(3.0)), rtol=1e-14)
    assert np.allclose(jax.grad(jax.checkpoint(f))(3.0), p.deriv()(3.0), rtol=1e-14)
    assert np.allclose(jax.hessian(f)(3.0), p.deriv(2)(3.0), rtol=1e-14)


@pytest.mark.parametrize("outer", ["grad", "vmap", "scan"])
@pytest.mark.parametrize("inner", ["grad", "vmap", "jit", "checkpoint"])
def test_an_array_of_an_outer_transformation_is_outside_for_an_inner_one(outer, inner):
    def f(t):
        made = sa.zeros((N, N))
        made[0, 0] = t
        with pytest.raises(RuntimeError, match="return the new value"):
            TRANSFORMS[inner](ignored(lambda s: made.__setitem__((0, 1), s)))
        made[0, 2] = t
        return as_jax(sa.sum(made))

    TRANSFORMS[outer](f)


def test_an_outer_value_may_be_written_inside_an_inner_transformation():
    """The value belongs to the outer transformation, the array to the inner one."""

    def f(t):
        def g(s):
            made = sa.zeros(3)
            made[0] = t
            made[1] = s
            return as_jax(sa.sum(made * made))

        return jnp.sum(jax.vmap(g)(jnp.arange(3.0)))

    assert jax.grad(f)(2.0) == 3 * 2 * 2.0
    assert jax.jit(jax.grad(f))(2.0) == 3 * 2 * 2.0


def test_arrays_made_in_rules_of_derivatives():
    @jax.custom_jvp
    def square(t):
        made = sa.zeros(2)
        made[0] = t
        return as_jax(made[0] * made[0])

    @square.defjvp
    def rule(primals, tangents):
        (t,), (dt,) = primals, tangents
        value, tangent = sa.zeros(1), sa.zeros(1)  # JAX wants the tangent to be linear in the tangents
        value[0] = 2.0 * t
        tangent[0] = dt
        return square(t), as_jax(value[0] * tangent[0])

    @jax.custom_vjp
    def cube(t):
        return t**3

    def forward(t):
        made = sa.zeros(1)
        made[0] = t
        return cube(t), made

    def backward(made, ct):
        made[0] = 3.0 * made[0] * made[0] * ct
        return (made[0].to_jax(),)

    cube.defvjp(forward, backward)
    for run in (lambda g: g, jax.jit):
        assert run(jax.grad(square))(3.0) == 6.0
        assert run(lambda t: jax.jvp(square, (t,), (1.0,))[1])(3.0) == 6.0
        assert run(jax.grad(cube))(3.0) == 27.0
        assert run(jax.vmap(jax.grad(cube)))(jnp.arange(3.0)).tolist() == [0.0, 3.0, 12.0]


@pytest.mark.parametrize("transform", [sa.grad, sa.value_and_grad])
def test_the_other_arguments_of_sa_grad_stay_as_they_were(transform):
    """A write to an argument is local to the call, also for arguments without a derivative."""
    x, y = sa.zeros(3), sa.ones(3)

    def f(a, x, *, y):
        x[0] = a[0] * 2.0
        x[1] = 5.0
        y += a
        return sa.sum(x * y)

    transform(f)(sa.asarray([1.0, 2.0, 3.0]), x, y=y)
    assert np.asarray(x).tolist() == [0.0] * 3 and np.asarray(y).tolist() == [1.0] * 3


def test_a_value_that_outlives_its_transformation_is_refused():
    kept = []
    jax.vmap(lambda t: kept.append(sa.zeros(3)) or t)(jnp.arange(2.0))
    (made,) = kept
    made[0] = 1.0
    with pytest.raises(RuntimeError, match="return the new value"):
        jax.grad(ignored(lambda t: made.__setitem__(1, t)))(2.0)
    assert np.asarray(made).tolist() == [1.0, 0.0, 0.0]


# ---- a JAX that stores traces in another way ----------------------------------------------------------------------------


def test_without_knowledge_of_traces_no_traced_value_escapes(monkeypatch):
    """Then writes of traced values to arrays from outside raise as before, and eager writes work."""
    monkeypatch.setattr("structarrays._core.array.flattening.RUNNING", traces.Unknown)
    x = sa.zeros(3)
    x[0] = 1.0
    with pytest.raises(RuntimeError, match="outside of the function"):
        jax.grad(lambda v: write_and_sum(x, v))(2.0)
    assert x.tolist() == [1.0, 0.0, 0.0]


def write_and_sum(x, value):
    x[1] = value
    return as_jax(sa.sum(x))


@pytest.mark.parametrize("name", ["RUNNING", "EvalTrace"])
def test_nothing_is_eager_for_certain_without_knowledge_of_traces(monkeypatch, name):
    assert traces.is_eager()
    monkeypatch.setattr(traces, name, traces.Unknown)
    assert not traces.is_eager()
    assert not compiling()
    assert jax.jit(lambda: jax.numpy.asarray(compiling()))()


def test_traces_of_unknown_form_are_never_the_same():
    tracer = object()  # without the attribute that leads to its trace
    assert not traces.is_of_same_trace(tracer, tracer)
    assert not traces.begun_within(traces.RUNNING.value, tracer)
    assert not traces.begun_within(traces.Unknown.value, tracer)
