"""`structured` on some five hundred functions and idioms of JAX, on every structure, in and under its transformations."""

import itertools

import jax
import pytest
from checking import WAYS, check
from functions import FUNCTIONS

from structarrays.testing.arrays import SAMPLERS

DTYPES = ("float64", "complex128")


def pytest_generate_tests(metafunc):
    if "expression" in metafunc.fixturenames:
        combinations = chosen(metafunc.config.getoption("--functions"))
        metafunc.parametrize(("expression", "structure", "way", "dtype"), combinations)


def chosen(how_many):
    """The combinations to be tried: structures, ways and dtypes take turns, and come together with every kind of function."""
    if how_many == "full":
        return [(e, s, w, d) for s, w, d, e in itertools.product(SAMPLERS, WAYS, DTYPES, FUNCTIONS)]
    turns = itertools.cycle((s, w) for w in WAYS for s in SAMPLERS)
    dtypes = itertools.cycle(DTYPES)
    combinations = [(e, *next(turns), next(dtypes)) for e in FUNCTIONS]
    return combinations if how_many == "each" else combinations[::3]


def test_a_function_gives_what_it_gives_for_the_dense_array(expression, structure, way, dtype):
    if not check(structure, expression, way, dtype):
        # There is no such array, or no such derivative: another structure stands in.
        assert check("Banded", expression, "eager")


def test_there_are_three_hundred_functions():
    assert len(FUNCTIONS) >= 300


def noticed(monkeypatch, primitive, mistake, expression, way):
    """Whether the check raises where the rule of a primitive makes a mistake."""
    from structarrays.transform import rules

    rule = rules.STRUCTURED.rules[primitive]
    wrong = (lambda interpreter, equation, x: mistake(rule[0](interpreter, equation, x)),)
    monkeypatch.setitem(rules.STRUCTURED.rules, primitive, wrong)
    jax.clear_caches()
    try:
        check("Diagonal", expression, way)
    except AssertionError:
        return True
    finally:
        jax.clear_caches()
    return False


@pytest.mark.slow
def test_the_check_notices_a_wrong_value(monkeypatch):
    assert noticed(monkeypatch, "sin", lambda y: 2 * y, "jnp.sin(A)", "eager")


def moved_twice(y):
    """The same value, with twice the derivative."""
    return jax.tree.map(lambda v: 2 * v - jax.lax.stop_gradient(v), y)


@pytest.mark.parametrize("way", ["grad", "jvp"])
def test_the_check_notices_a_wrong_derivative_beside_one_that_is_not_defined(monkeypatch, way):
    """That of a cubic root at the structural zeros."""
    assert not noticed(monkeypatch, "cbrt", lambda y: y, "jnp.cbrt(A)", way)
    assert noticed(monkeypatch, "cbrt", moved_twice, "jnp.cbrt(A)", way)


def test_the_check_notices_what_the_dense_array_refuses():
    assert check("Diagonal", "jnp.floor(A)", "eager", "complex128")  # an error, the same for both


def test_the_rule_of_a_derivative_multiplies_structured_values_by_dense_tangents():
    """The product looks whether its operand is finite, which JAX cannot transpose; a unit diagonal has no tangents of its structure."""
    assert check("Triangular, unit diagonal", "jnp.linalg.pinv(A) @ A", "grad")


@pytest.mark.costly
@pytest.mark.parametrize("transform", ["jnp.fft.fftn(A)", "jnp.fft.hfft(A)"])
def test_a_transform_of_an_inverse_has_derivatives(transform):
    """XLA compiles no transform whose result it lays out as LAPACK wants it."""
    assert check("Inverse", transform, "grad")
