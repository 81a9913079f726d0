"""Projections give arrays of the drawn shape and dtype whose elements a test may draw: those that it drew, and what it admits."""

import doctest

import numpy as np
import pytest

import structarrays as sa
from array_api_tests_config.projections import (
    PROJECTIONS,
    exact,
    factored,
    project,
    projection,
    registry,
    structure_class,
)
from structarrays.testing import SAMPLERS, sampler

SHAPES = [(3, 3), (2, 4, 4), (4, 2), (2, 5), (1, 1), (0, 0), (0, 3), (6, 6)]
DTYPES = ["float64", "complex64", "uint16"]
MATRICES = [name for name in PROJECTIONS if name != "Dense"]


def drawn(shape, dtype, seed=0):
    """Values of which none is zero or one, as far as the dtype has others."""
    values = np.random.default_rng(seed).integers(2, 100, shape)
    values = values + 1j * np.random.default_rng(seed + 1).integers(2, 100, shape) if dtype == "complex64" else values
    return values.astype(dtype)


@pytest.mark.costly
@pytest.mark.parametrize("choice", range(3))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("structure", MATRICES)
def test_elements_are_drawn_or_admitted(structure, dtype, choice):
    for shape in SHAPES:
        values = drawn(shape, dtype)
        for extra in ((), (0,), (0, 1)):
            seen = {*values.ravel().tolist(), *extra}
            x = project(structure, values, seen.__contains__, lambda n: choice % n)
            if x is None:
                continue
            assert type(x) is structure_class(structure)
            assert x.shape == shape and x.dtype == dtype
            assert set(np.asarray(x).ravel().tolist()) <= seen, (structure, shape, extra)


@pytest.mark.parametrize("structure", MATRICES)
def test_there_is_a_projection_where_everything_is_admitted(structure):
    dtype = "complex64" if structure == "Fourier" else "float64"
    found = {shape: project(structure, drawn(shape, dtype)) for shape in SHAPES}
    several = structure != "Fourier"  # of which there is one of a size
    assert all(
        x is not None for shape, x in found.items() if shape[-1] == shape[-2] > 1 and (several or len(shape) == 2)
    )
    if found[2, 4, 4] is not None:
        assert found[2, 4, 4].shape[:1] == (2,)


@pytest.mark.parametrize("structure", MATRICES)
def test_the_values_are_kept(structure):
    """What a structure stores is what was drawn, so that tests see many values: not zeros only."""
    x = np.asarray(project(structure, drawn((4, 4), "complex64" if structure == "Fourier" else "float64")))
    assert np.any(x != 0)
    if structure not in ("Permutation", "Inverse", "Fourier", "Householder"):
        assert np.all(np.isin(x, [0.0, *drawn((4, 4), "float64").ravel()]))


@pytest.mark.parametrize("structure", ["Diagonal", "Banded", "Identity"])
def test_without_zero_there_is_a_background(structure):
    values = drawn((3, 3), "float64")
    x = project(structure, values, lambda v: v != 0)
    assert x.background is not None and float(x.background) in values


def test_exact():
    assert type(exact("Diagonal", np.diag([1.0, 2.0]))) is sa.Diagonal
    assert exact("Diagonal", np.ones((2, 2))) is None
    assert exact("Diagonal", np.asarray([[np.nan, 0.0], [0.0, 1.0]])) is not None
    assert exact("Fill", np.ones((2, 2))) is not None


def test_a_sampler_is_enough(monkeypatch):
    monkeypatch.setattr("structarrays.testing.arrays.SAMPLERS", SAMPLERS)

    class Mine(sa.Diagonal):
        __slots__ = ()

        def rebuild(self, entries, background):
            return Mine.make((*entries, background), self.meta)

    @sampler("Mine")
    def _(numbers, batch, core, requires):
        return Mine.make(sa.Diagonal(numbers((*batch, min(core))), shape=core)._value[0], core)

    values = drawn((2, 3, 4), "float64")
    x = project(Mine, values)
    assert type(x) is Mine
    np.testing.assert_array_equal(np.asarray(x.diag), np.diagonal(values, axis1=-2, axis2=-1))
    del SAMPLERS["Mine"]


def test_what_is_registered_wrongly_is_named():
    with pytest.raises(ValueError, match="structure must be one of .*Diagonal.*, got 'Nowhere'"):
        project("Nowhere", np.ones((2, 2)))
    projection("Wrong")(lambda values, admits, choose: sa.eye(3))
    try:
        with pytest.raises(ValueError, match=r"the projection on Wrong gave shape \(3, 3\)"):
            project("Wrong", np.ones((2, 2)))
    finally:
        del PROJECTIONS["Wrong"]
    with pytest.raises(ValueError, match="no array class"):
        structure_class("eye")
    assert structure_class("structarrays._structures.banded.array:Banded") is sa.Banded


@pytest.mark.parametrize("module", [registry, factored], ids=lambda module: module.__name__)
def test_the_examples_in_the_docstrings_run(module):
    failed, attempted = doctest.testmod(module)
    PROJECTIONS.pop("Scalar", None)
    assert attempted and not failed
