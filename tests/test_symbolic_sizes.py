"""Programs that `jax.export` compiles for matrices of any size, against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from support import as_jax

import structarrays as sa
from structarrays._numerics.symbolic import smaller

SMALLEST = 8  # a constraint that each program states: comparisons with constants below it are decided

# Structures: the arguments for matrices of n rows, and the array.
STRUCTURES = {
    "Diagonal": (lambda n: [(n,)], sa.Diagonal),
    "Dense": (lambda n: [(n, n)], lambda a: sa.Dense(a) + 9 * sa.eye(a.shape[0])),
    "tridiagonal": (lambda n: [(n - 1,), (n,)], lambda e, d: sa.tridiagonal(e, 5 + d, e)),
    "Symmetric": (lambda n: [(n, n)], lambda a: sa.Symmetric(a) + 9 * sa.eye(a.shape[0])),
    "Triangular": (lambda n: [(n, n)], lambda a: sa.Triangular(a) + 9 * sa.eye(a.shape[0])),
    "LowRank + Diagonal": (lambda n: [(n,), (n, 3)], lambda d, u: sa.Diagonal(5 + d) + sa.LowRank(u, u)),
    "Kronecker": (lambda n: [(n, n)], lambda a: sa.Kronecker(sa.Dense(a) + 9 * sa.eye(a.shape[0]), 2 * np.eye(2) + 1)),
    "BlockDiagonal": (
        lambda n: [(n, n)],
        lambda a: sa.BlockDiagonal([sa.Dense(a) + 9 * sa.eye(a.shape[0]), sa.Diagonal(np.ones(3))]),
    ),
    "Block": (
        lambda n: [(n,), (n, 3)],
        lambda d, u: sa.Block([[sa.Diagonal(9 + d), u], [u.T, 9 * np.eye(3)]]),
    ),
}

# Functions of an array and of the row 0, 1, …, and the same by NumPy.
FUNCTIONS = {
    "itself": (lambda A, v: A, lambda a, v: a),
    "2 A": (lambda A, v: 2 * A, lambda a, v: 2 * a),
    "A + A": (lambda A, v: A + A, lambda a, v: a + a),
    "A * A": (lambda A, v: A * A, lambda a, v: a * a),
    "A * v": (lambda A, v: A * v, lambda a, v: a * v),
    "A + I": (lambda A, v: A + sa.eye(A.shape[0]), lambda a, v: a + np.eye(len(a))),
    "A @ v": (lambda A, v: A @ v, lambda a, v: a @ v),
    "A @ A": (lambda A, v: A @ A, lambda a, v: a @ a),
    "A.mT": (lambda A, v: A.mT, lambda a, v: a.T),
    "A[0]": (lambda A, v: A[0], lambda a, v: a[0]),
    "A[:, 1]": (lambda A, v: A[:, 1], lambda a, v: a[:, 1]),
    "A[..., -1]": (lambda A, v: A[..., -1], lambda a, v: a[..., -1]),
    "sum": (lambda A, v: sa.sum(A), lambda a, v: a.sum()),
    "mean": (lambda A, v: sa.mean(A), lambda a, v: a.mean()),
    "sum of columns": (lambda A, v: sa.sum(A, axis=0), lambda a, v: a.sum(0)),
    "mean of rows": (lambda A, v: sa.mean(A, axis=1), lambda a, v: a.mean(1)),
    "std": (lambda A, v: sa.std(A), lambda a, v: a.std()),
    "diagonal": (lambda A, v: sa.linalg.diagonal(A), lambda a, v: np.diagonal(a)),
    "trace": (lambda A, v: sa.linalg.trace(A), lambda a, v: np.trace(a)),
    "solve": (lambda A, v: sa.linalg.solve(A, v), np.linalg.solve),
    "logdet": (lambda A, v: sa.linalg.slogdet(A).logabsdet, lambda a, v: np.linalg.slogdet(a)[1]),
    "inv @ v": (lambda A, v: sa.linalg.inv(A) @ v, np.linalg.solve),
    "gradient": (
        lambda A, v: jax.grad(lambda v: jnp.sum(as_jax(sa.linalg.solve(A, v)) ** 2))(v),
        lambda a, v: 2 * np.linalg.solve(a.T, np.linalg.solve(a, v)),
    ),
}

# What these structures cannot do: positions of the blocks would be constants of the program.
WITHOUT = {"BlockDiagonal": {"A + I", "A @ A"}}


@pytest.mark.parametrize("name", STRUCTURES)
def test_matrices_of_symbolic_size(name, rng):
    shapes, make = STRUCTURES[name]
    keys = [key for key in FUNCTIONS if key not in WITHOUT.get(name, ())]
    (n,) = export.symbolic_shape("n", constraints=[f"n >= {SMALLEST}"])

    def program(*args):
        A = make(*args)
        v = jnp.arange(A.shape[-1]).astype(np.float64) / A.shape[-1] + 1
        return as_jax(A), {key: as_jax(FUNCTIONS[key][0](A, v)) for key in keys}

    exported = export.export(jax.jit(program))(*(jax.ShapeDtypeStruct(shape, np.float64) for shape in shapes(n)))
    restored = export.deserialize(exported.serialize())
    for size in (SMALLEST, 19):
        args = [rng.uniform(0.5, 1.0, shape) for shape in shapes(size)]
        a, results = restored.call(*args)
        a = np.asarray(a)
        v = np.arange(len(a)) / len(a) + 1
        np.testing.assert_allclose(a, np.asarray(as_jax(make(*args))), rtol=1e-14)
        for key in keys:
            np.testing.assert_allclose(results[key], FUNCTIONS[key][1](a, v), rtol=1e-9, atol=1e-11, err_msg=key)


@pytest.mark.parametrize(
    ("program", "shapes", "constraints", "error", "message"),
    [
        (
            lambda c: sa.Toeplitz(c) @ c,
            "n",
            ["n >= 2"],
            NotImplementedError,
            "transforms of the symbolic length",
        ),
        (lambda c: sa.Circulant(c) @ c, "n", (), NotImplementedError, "transforms of the symbolic length"),
        (lambda u: sa.exp(sa.LowRank(u, u)), "n, 2", (), sa.DensifyError, "above the limit"),
        (lambda d: sa.tridiagonal(d[1:], d, d[1:]), "n", (), jax.errors.InconclusiveDimensionOperation, "n"),
        (lambda x: x[::2], "n", (), IndexError, "step 1"),
    ],
    ids=["Toeplitz", "Circulant", "dense form", "no constraint", "steps"],
)
def test_what_needs_a_number(program, shapes, constraints, error, message):
    shape = export.symbolic_shape(shapes, constraints=constraints)
    with pytest.raises(error, match=message):
        export.export(jax.jit(lambda x: jax.tree.leaves(program(sa.asarray(x)))))(
            jax.ShapeDtypeStruct(shape, np.float64)
        )


def test_constraints_allow_dense_forms(rng):
    """Bounds of the sizes decide what the policy of densification allows."""
    (n,) = export.symbolic_shape("n", constraints=["n >= 2", "n <= 1000"])
    program = jax.jit(lambda u: as_jax(sa.exp(sa.LowRank(u, u))))
    exported = export.export(program)(jax.ShapeDtypeStruct((n, 2), np.float64))
    u = rng.normal(size=(40, 2))
    np.testing.assert_allclose(exported.call(u), np.exp(u @ u.T), rtol=1e-12)


def test_costs_without_access_to_expressions_raise_the_error_of_jax(monkeypatch):
    (n,) = export.symbolic_shape("n")
    assert smaller(7 * n, n * n) and not smaller(n * n, 7 * n) and smaller(3, 5)
    monkeypatch.delattr(type(n), "_evaluate")
    with pytest.raises(jax.errors.InconclusiveDimensionOperation):
        smaller(7 * n, n * n)
