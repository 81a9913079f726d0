"""Names that users guess raise an `AttributeError` that says what to write."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse.linalg

import structarrays as sa
from structarrays._core.array.hooks import HOOKS
from structarrays._core.hints import ARRAY, LINALG, NAMESPACE, PRODUCTS_ONLY


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
    assert all(hasattr(type(x), name) for name in names)


def test_completion_of_modules():
    for module in sa, sa.linalg, sa.fft, sa.extend, sa.plot, sa.interop, sa.transform:
        names = [name for name in dir(module) if not name.startswith("_")]
        assert names
        assert not {"annotations", "TYPE_CHECKING", "Any", "np", "jax", "jnp"} & set(names)
    assert {n for n in dir(sa.plot) if not n.startswith("_")} == {"flow", "spy", "tree"}


def _of_products(rng):
    """A matrix without a solver, and the arguments of the calls in the hints."""
    x = rng.standard_normal((20, 20))
    square = x @ x.T + 20 * np.eye(20)
    dense = np.kron(square, square)
    factor = sa.assume(square, "symmetric")
    diagonal = rng.uniform(1, 2, 400)
    return sa.Kronecker(factor, factor) + sa.Diagonal(diagonal), dense + np.diag(diagonal)


def test_replacements_that_need_only_products(rng):
    """Each function in these hints exists, takes a structured array, and does not densify it."""
    a, dense = _of_products(rng)
    b = np.ones(400)
    calls = {
        "jax.scipy.sparse.linalg.cg": lambda f: (
            f(lambda v: a @ v, jnp.asarray(b), tol=1e-12)[0],
            np.linalg.solve(dense, b),
        ),
        "scipy.sparse.linalg.eigsh": lambda f: (f(a, 3)[0], np.linalg.eigvalsh(dense)[-3:]),
        "scipy.sparse.linalg.svds": lambda f: (f(a, 3)[1], np.linalg.svd(dense)[1][:3][::-1]),
        "linalg.expm_multiply": lambda f: (f(a * 1e-4, b), scipy.sparse.linalg.expm_multiply(dense * 1e-4, b)),
        "scipy.sparse.linalg.lsmr": lambda f: (f(a, b, atol=1e-13, btol=1e-13)[0], np.linalg.solve(dense, b)),
    }
    for name in {hint.partition("(")[0] for hint in PRODUCTS_ONLY.values()}:
        function = {"jax": jax, "scipy": scipy, "linalg": sa}[name.partition(".")[0]]
        for part in name.split(".")[name.startswith(("jax.", "scipy.")) :]:
            function = getattr(function, part)
        with sa.densify("error"):
            found, expected = calls[name](function)
        np.testing.assert_allclose(np.sort(np.asarray(found)), np.sort(expected), rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("name", sorted(PRODUCTS_ONLY))
def test_errors_name_a_replacement(rng, name):
    a, _ = _of_products(rng)
    function = getattr(sa.linalg, name.removeprefix("linalg."))
    others = (np.ones(400),) if name in ("linalg.solve", "linalg.lstsq") else ()
    with sa.densify("error"), pytest.raises(sa.DensifyError, match="The parts of the Sum are") as caught:
        function(a, *others)
    assert PRODUCTS_ONLY[name] in str(caught.value)
