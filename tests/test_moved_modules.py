"""Pickles that the first edition wrote: `data/first_edition.pickle` has one of each structure and of each kind of results, and their values."""

import importlib
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import structarrays as sa
from structarrays._core.moved import MOVED

with (Path(__file__).parent / "data" / "first_edition.pickle").open("rb") as file:
    SAVED = pickle.load(file)  # bytes and NumPy arrays alone


@pytest.mark.filterwarnings("ignore:structarrays.* has moved:DeprecationWarning")
@pytest.mark.parametrize("name", SAVED)
def test_old_pickles(name):
    saved, values = SAVED[name]
    x = pickle.loads(saved)
    if name == "function":
        assert x is sa.linalg.solve
    elif isinstance(values, dict):
        assert len(x) == len(values)
        for part, value in zip(x, values.values(), strict=True):
            np.testing.assert_allclose(np.asarray(part), value, rtol=1e-12, atol=1e-14)
    elif values is not None:
        assert type(x).__module__ == "structarrays"
        np.testing.assert_allclose(np.asarray(x), values, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("old", MOVED)
def test_old_modules_have_what_the_new_ones_have(old, monkeypatch):
    monkeypatch.delitem(sys.modules, f"structarrays.{old}", raising=False)
    with pytest.warns(DeprecationWarning, match=f"structarrays.{old} has moved"):
        module = importlib.import_module(f"structarrays.{old}")
    new = importlib.import_module(f"structarrays.{MOVED[old]}")
    for name, value in vars(new).items():
        if isinstance(value, type) and value.__module__ in (new.__name__, "structarrays"):
            assert getattr(module, name) is value


def test_other_modules_are_not_found():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("structarrays.structures.unknown")
