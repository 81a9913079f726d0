"""Results of the library do not depend on JAX's flags about promotion, which are meant for code of users."""

import ast
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa
from structarrays.testing import STRUCTURES, sample

LIBRARY = Path(sa.__file__).parent
V = np.array([1.0, -2.0, 0.5, 3.0], np.float32)

FUNCTIONS = {
    "row": lambda x: x[0],
    "element": lambda x: x[1, 2],
    "slice": lambda x: x[:2, 1:],
    "rows": lambda x: x[np.array([0, 2])],
    "mask": lambda x: x[np.array([True, False, True, False])],
    "scaled": lambda x: x * 2 + 1,
    "added to itself": lambda x: x + x,
    "exp": sa.exp,
    "sum": lambda x: sa.sum(x, axis=0),
    "std": sa.std,
    "times a vector": lambda x: x @ V,
    "times itself": lambda x: x @ x,
    "det": sa.linalg.det,
    "slogdet": lambda x: sa.linalg.slogdet(x).logabsdet,
    "solve": lambda x: sa.linalg.solve(x, V),
    "cholesky": sa.linalg.cholesky,
    "svdvals": sa.linalg.svdvals,
    "written": lambda x: _written(x),
    "gradient": lambda x: jax.tree.leaves(sa.grad(lambda x: sa.sum(sa.abs(x @ V)))(x)),
    "gradient of det": lambda x: jax.tree.leaves(sa.grad(lambda x: sa.abs(sa.linalg.det(x)))(x)),
    "batch": lambda x: jax.vmap(lambda v: x @ v)(np.stack([V, V])),
    "structured": lambda x: sa.structured(lambda a: jnp.matmul(a, a) + a)(x),
}


def _written(x):
    y = x.__copy__()
    y[0, 0] = 3
    return y


def an_array(name, requires):
    for dtype in ("float32", "complex64"):
        x = sample(name, (4, 4), dtype=dtype, requires=requires)
        if x is not None:
            return x
    return None


REFUSED = {
    ("Fill", "solve"): np.linalg.LinAlgError,
    ("Fill", "cholesky"): np.linalg.LinAlgError,
}
"""Matrices that are singular by their structure, and the error."""


def values(result):
    leaves = jax.tree.leaves(result, is_leaf=lambda x: isinstance(x, sa.Array))
    return [np.asarray(leaf) for leaf in leaves if getattr(leaf, "dtype", None) != jax.dtypes.float0]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", STRUCTURES)
def test_results_do_not_depend_on_the_flags(name, function):
    needs = {"cholesky": "positive definite", "solve": "invertible", "det": "invertible", "slogdet": "invertible"}
    x = an_array(name, needs.get(function, ""))
    if x is None:
        return
    f = FUNCTIONS[function]
    if error := REFUSED.get((name, function)):
        with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"), pytest.raises(error):
            f(x)
        return
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        strict = values(f(x))
    default = values(f(x))
    assert len(strict) == len(default) > 0
    for a, b in zip(strict, default, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(a, b)


CONSTRUCTORS = {
    "tridiagonal": lambda: sa.tridiagonal(V[:3], V.astype(float), 1j * V[:3]),
    "Sum": lambda: sa.Sum(sa.eye(4), np.ones((4, 4), np.float32), sa.Diagonal([1, 2, 3, 4])),
    "Block": lambda: sa.Block([[np.eye(2, dtype=np.float32), None], [None, np.ones((2, 3, 3))]]),
    "Kronecker": lambda: sa.Kronecker(np.ones((2, 2), np.float32), np.eye(2)),
    "LowRank": lambda: sa.LowRank(np.ones((4, 1), np.float32), np.ones((2, 3, 1))),
    "block_tridiagonal": lambda: sa.block_tridiagonal(
        np.ones((2, 2, 2), np.float32), np.ones((3, 2, 2)), np.ones((2, 2, 2))
    ),
    "Toeplitz": lambda: sa.Toeplitz(V, np.r_[1.0, 2.0, 3.0]),
    "linspace": lambda: sa.linspace(0, 1, 5),
    "operands of two dtypes": lambda: sa.asarray(V) + np.arange(4),
    "operands of two ranks": lambda: sa.ones((3, 4)) * sa.asarray(V),
    "where": lambda: sa.where(V > 0, V, 1),
    "NumPy": lambda: np.mean(sa.eye(4) * V, axis=0),
}


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_constructors_and_operands_of_users(name):
    """The promotion of the namespace is that of the standard, whatever JAX's own functions do."""
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        strict = CONSTRUCTORS[name]()
        with pytest.raises((ValueError, TypeError), match="promotion"):
            jnp.ones((2, 3)) * jnp.ones(3, "float32")  # the flags are in force for JAX
    default = CONSTRUCTORS[name]()
    assert type(strict) is type(default)
    for a, b in zip(values(strict), values(default), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_the_flags_are_in_force_for_the_code_of_users():
    """In functions that the library calls, and that JAX differentiates and maps."""
    D = sa.Diagonal(V)

    def mixed(x):
        return jnp.sum(x.to_jax() * jnp.arange(4))

    with jax.numpy_rank_promotion("raise"):
        for call in (
            lambda: sa.grad(mixed)(D),
            lambda: sa.vmap(mixed)(sa.stack([D, D])),
            lambda: sa.structured(lambda a: a * jnp.arange(4))(D),
        ):
            with pytest.raises(ValueError, match="promot"):
                call()


TRANSFORMS = {
    "grad": lambda f: jax.grad(f)(V),
    "jit of jvp": lambda f: jax.jit(lambda v: jax.jvp(f, (v,), (v,)))(V),
    "vmap of grad": lambda f: jax.vmap(jax.grad(f))(np.stack([V, V])),
}


@pytest.mark.costly
@pytest.mark.parametrize("name", TRANSFORMS)
def test_derivatives_and_batches_of_compiled_functions(name):
    """Rules of derivatives and batches are evaluated after the function was compiled, in the context of the user."""

    def f(v):
        A = sa.tridiagonal(v[1:], 9 + v, v[1:])
        return as_jax(sa.linalg.slogdet(A).logabsdet + sa.sum(sa.linalg.solve(A, v)) + sa.linalg.det(sa.Toeplitz(v)))

    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        strict = TRANSFORMS[name](f)
    for a, b in zip(values(strict), values(TRANSFORMS[name](f)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_rules_are_defined_by_the_decorators_that_change_the_flags():
    """Only `_numerics.flags`, and modules with rules of users, use `jax.custom_jvp` and `custom_vmap` directly."""
    allowed = {"_numerics/flags.py", "transform/custom_rules.py", "interop/host.py"}
    for path in LIBRARY.rglob("*.py"):
        name = path.relative_to(LIBRARY).as_posix()
        if name in allowed or name.startswith("_core/jax_internals"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                assert not (
                    node.attr in ("custom_jvp", "custom_vjp", "custom_vmap") and ast.unparse(node).startswith("jax.")
                ), name
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jax."):
                assert not {"custom_vmap", "custom_jvp", "custom_vjp"} & {alias.name for alias in node.names}, name
