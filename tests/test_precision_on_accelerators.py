"""Products of float32 inside of the library have 24 bits on devices on which JAX's default has fewer (TF32, bfloat16)."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa


@pytest.fixture(autouse=True)
def accelerator(monkeypatch):
    jax.clear_caches()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    yield
    monkeypatch.undo()
    jax.clear_caches()


def products(function, *args):
    """The precision of each product in the program."""
    text = jax.jit(function).trace(*args).lower(lowering_platforms=("cuda",)).as_text()
    return ["HIGHEST" in line.partition("precision")[2] for line in re.findall(r"stablehlo.dot_general .*", text)]


def matrix(rng, *shape):
    return jnp.asarray(rng.normal(size=shape), jnp.float32)


def low_rank(rng):
    return sa.LowRank(matrix(rng, 6, 2), matrix(rng, 6, 2))


def kronecker(rng):
    return sa.Kronecker(matrix(rng, 3, 3), matrix(rng, 2, 2))


CASES = {
    "to_dense": (lambda x: x.to_jax(), low_rank),
    "sum": (lambda x: as_jax(sa.sum(x, axis=0)), low_rank),
    "var": (lambda x: as_jax(sa.var(x, axis=0)), low_rank),
    "product": (lambda x: as_jax(x @ sa.ones(6, dtype=sa.float32)), low_rank),
    "product with a Kronecker product": (lambda x: as_jax(x @ sa.ones(6, dtype=sa.float32)), kronecker),
    "solve": (lambda x: as_jax(sa.linalg.solve(x + 4 * sa.eye(6, dtype=sa.float32), sa.ones(6))), low_rank),
    "slogdet": (lambda x: as_jax(sa.linalg.slogdet(x + 4 * sa.eye(6, dtype=sa.float32)).logabsdet), low_rank),
    "expm": (lambda x: as_jax(sa.linalg.expm(x)), lambda rng: sa.asarray(matrix(rng, 5, 5))),
    "matrix_power": (lambda x: as_jax(sa.linalg.matrix_power(x, 5)), lambda rng: sa.asarray(matrix(rng, 5, 5))),
    "qr": (lambda x: as_jax(sa.linalg.qr(x)[1]), lambda rng: sa.asarray(matrix(rng, 5, 3))),
    "inverse of a block-diagonal matrix": (
        lambda x: as_jax(sa.linalg.inv(x) @ sa.ones(6, dtype=sa.float32)),
        lambda rng: sa.BlockDiagonal(matrix(rng, 2, 3, 3)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name, rng):
    function, make = CASES[name]
    found = products(function, make(rng))
    assert all(found) and (found or name == "qr")


@pytest.mark.parametrize("name", ["solve", "slogdet", "expm", "product", "qr"])
@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
def test_derivatives(name, mode, rng):
    function, make = CASES[name]
    x = make(rng)
    leaves, tree = jax.tree.flatten(x)
    found = products(
        mode(lambda *leaves: function(jax.tree.unflatten(tree, leaves)), tuple(range(len(leaves)))), *leaves
    )
    assert found and all(found)


def test_mapped_functions(rng):
    """JAX traces the rules of `custom_vmap` after the function that contains them."""
    stack = matrix(rng, 2, 4, 4)
    for function in (sa.linalg.sqrtm, sa.linalg.expm, sa.linalg.inv):
        program = jax.make_jaxpr(jax.vmap(lambda a, function=function: as_jax(function(sa.asarray(a)))))(stack)
        assert "precision=None" not in str(program)


def test_products_of_dense_arrays_are_those_of_jax(rng):
    a = sa.asarray(matrix(rng, 4, 4))
    assert products(lambda a: as_jax(a @ a), a) == [False]
    with jax.default_matmul_precision("highest"):
        assert products(lambda a: as_jax(a @ a), a) == [True]


def test_the_precision_of_users_holds_for_products(rng):
    with jax.default_matmul_precision("tensorfloat32"):
        assert not any(products(CASES["product"][0], low_rank(rng)))
        assert all(products(CASES["solve"][0], low_rank(rng)))


def test_nothing_changes_on_a_cpu(rng, monkeypatch):
    monkeypatch.undo()
    x = low_rank(rng)
    assert not any(products(CASES["solve"][0], x))
    np.testing.assert_allclose(CASES["product"][0](x), np.asarray(x.to_jax()) @ np.ones(6), rtol=1e-5, atol=1e-6)
