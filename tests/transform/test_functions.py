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
        check("Banded", expression, "eager")


def test_there_are_three_hundred_functions():
    assert len(FUNCTIONS) >= 300


def test_the_check_notices_a_wrong_value(monkeypatch):
    from structarrays.transform import rules

    rule = rules.STRUCTURED.rules["sin"]
    monkeypatch.setitem(
        rules.STRUCTURED.rules, "sin", (lambda interpreter, equation, x: 2 * rule[0](interpreter, equation, x),)
    )
    jax.clear_caches()
    with pytest.raises(AssertionError):
        check("Diagonal", "jnp.sin(A)", "eager")
    jax.clear_caches()
