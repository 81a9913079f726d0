"""Names that users guess raise an `AttributeError` that says what to write."""

import re

import numpy as np
import pytest

import structarrays as sa
from structarrays._core.array.hooks import HOOKS
from structarrays._core.hints import ARRAY, LINALG, NAMESPACE


@pytest.mark.parametrize("name", NAMESPACE)
def test_names_of_the_namespace(name):
    with pytest.raises(AttributeError, match=re.escape(f"has no attribute '{name}'; write {NAMESPACE[name]}")):
        getattr(sa, name)


@pytest.mark.parametrize("name", LINALG)
def test_names_of_linalg(name):
    with pytest.raises(AttributeError, match=re.escape(f"has no attribute '{name}'; write {LINALG[name]}")):
        getattr(sa.linalg, name)


@pytest.mark.parametrize("name", ARRAY)
def test_attributes(name):
    with pytest.raises(AttributeError, match=re.escape(f"has no attribute '{name}'; write {ARRAY[name]}")):
        getattr(sa.asarray(np.eye(3)), name)


def test_every_function_in_a_hint_exists():
    for table in NAMESPACE, LINALG, ARRAY:
        for text in table.values():
            for name in re.findall(r"(?<![\w.])((?:linalg\.)?[a-zA-Z_]\w*)\(", text):
                if name not in ("lambda",):
                    owner = sa.linalg if name.startswith("linalg.") else sa
                    assert hasattr(owner, name.removeprefix("linalg.")), text


def test_functions_of_numpy_without_a_hint():
    with pytest.raises(AttributeError, match=r"numpy\.interp accepts arrays of structarrays"):
        sa.interp
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'$"):
        sa.nonsense
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'$"):
        sa.linalg.nonsense
    with pytest.raises(AttributeError, match="'Dense' object has no attribute 'nonsense'$"):
        sa.ones(3).nonsense


@pytest.mark.parametrize(
    "make", [lambda: sa.ones(3), lambda: sa.Diagonal([1.0, 2.0]), lambda: sa.Sum(np.eye(3), np.eye(3))]
)
def test_completion_lists_what_users_need(make):
    x = make()
    names = {name for name in dir(x) if not name.startswith("_")}
    assert not names & HOOKS
    assert names >= {"shape", "dtype", "mT", "to_dense", "nbytes", "device"}
    assert all(hasattr(x, name) for name in names)


def test_completion_of_modules():
    for module in sa, sa.linalg, sa.fft, sa.extend, sa.plot, sa.interop, sa.transform:
        names = [name for name in dir(module) if not name.startswith("_")]
        assert names
        assert not {"annotations", "TYPE_CHECKING", "Any", "np", "jax", "jnp"} & set(names)
    assert {n for n in dir(sa.plot) if not n.startswith("_")} == {"flow", "spy", "tree"}
