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


@pytest.mark.costly
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


# Functions of a vector v and a matrix u of three columns.
OTHERS = {
    "creation": (
        lambda v, u: (
            sa.zeros(v.shape) + sa.ones((v.shape[0], 4)) @ np.ones(4) + sa.full(v.shape, 2.0) * sa.arange(v.shape[0])
        ),
        lambda v, u: 4 + 2.0 * np.arange(len(v)),
    ),
    "off the diagonal": (lambda v, u: sa.eye(v.shape[0], k=1) @ v, lambda v, u: np.append(v[1:], 0)),
    "linspace": (lambda v, u: sa.linspace(0.0, 1.0, v.shape[0]) * v, lambda v, u: np.linspace(0, 1, len(v)) * v),
    "stack": (lambda v, u: sa.stack([sa.Diagonal(v)] * 2), lambda v, u: np.stack([np.diag(v)] * 2)),
    "concat": (
        lambda v, u: sa.concat([sa.Diagonal(v), sa.eye(v.shape[0])]),
        lambda v, u: np.r_[np.diag(v), np.eye(len(v))],
    ),
    "sums over a background": (
        lambda v, u: sa.sum(sa.cos(sa.Diagonal(v)), axis=0),
        lambda v, u: np.cos(np.diag(v)).sum(0),
    ),
    "largest of rows": (lambda v, u: sa.max(-sa.tridiagonal(v[1:], v, v[1:]), axis=1), lambda v, u: np.zeros(len(v))),
    "products of rows": (
        lambda v, u: sa.prod(sa.exp(sa.Diagonal(v)) + 0.01, axis=1),
        lambda v, u: np.prod(np.exp(np.diag(v)) + 0.01, axis=1),
    ),
    "largest": (lambda v, u: sa.max(sa.Diagonal(-v)), lambda v, u: np.max(np.diag(-v))),
    "norm": (lambda v, u: sa.linalg.matrix_norm(sa.LowRank(u, u)), lambda v, u: np.linalg.norm(u @ u.T)),
    "QR": (lambda v, u: sa.abs(sa.linalg.qr(u).R), lambda v, u: np.abs(np.linalg.qr(u).R)),
    "least squares": (lambda v, u: sa.linalg.pinv(u) @ v, lambda v, u: np.linalg.pinv(u) @ v),
    "rank of low rank": (lambda v, u: sa.linalg.matrix_rank(sa.LowRank(u, u)), lambda v, u: 3),
    "pseudo-inverse of low rank": (
        lambda v, u: sa.linalg.pinv(sa.LowRank(u, u)) @ v,
        lambda v, u: np.linalg.pinv(u @ u.T) @ v,
    ),
    "gradient of a determinant": (
        lambda v, u: jax.grad(lambda v: as_jax(sa.linalg.det(sa.tridiagonal(v[1:] / 9, v, v[1:] / 9))))(v)[0],
        lambda v, u: np.linalg.det((np.diag(v) + np.diag(v[1:] / 9, 1) + np.diag(v[1:] / 9, -1))[1:, 1:]),
    ),
    "five diagonals": (
        lambda v, u: sa.linalg.solve(sa.Banded([v[2:], v[1:], 9 + v, v[1:], v[2:]], range(-2, 3), v.shape * 2), v),
        lambda v, u: np.linalg.solve(
            sum(np.diag(d, k) for k, d in zip(range(-2, 3), [v[2:], v[1:], 9 + v, v[1:], v[2:]])), v
        ),
    ),
    "Cholesky": (
        lambda v, u: sa.linalg.cholesky(sa.assume(sa.tridiagonal(v[1:], 9 + v, v[1:]), "positive_definite")),
        lambda v, u: np.linalg.cholesky(np.diag(9 + v) + np.diag(v[1:], 1) + np.diag(v[1:], -1)),
    ),
    "Kronecker sum": (
        lambda v, u: sa.KroneckerSum(sa.Diagonal(v), np.eye(2)) @ sa.ones(2 * v.shape[0]),
        lambda v, u: np.repeat(v, 2) + 1,
    ),
    "permutation": (lambda v, u: sa.Permutation(jnp.argsort(v)) @ v, lambda v, u: np.sort(v)),
    "broadcast": (
        lambda v, u: sa.broadcast_to(sa.Diagonal(v), (2, *v.shape, *v.shape)),
        lambda v, u: np.stack([np.diag(v)] * 2),
    ),
    "kernel matrix": (
        lambda v, u: sa.linalg.solve(sa.asarray(jnp.exp(-((v[:, None] - v) ** 2))) + 0.1 * sa.eye(v.shape[0]), v),
        lambda v, u: np.linalg.solve(np.exp(-((v[:, None] - v) ** 2)) + 0.1 * np.eye(len(v)), v),
    ),
    "JAX code": (
        lambda v, u: sa.structured(lambda A, b: jnp.einsum("ij,jk->ik", A, b))(sa.Diagonal(v), u),
        lambda v, u: v[:, None] * u,
    ),
}


def test_other_functions(rng):
    (n,) = export.symbolic_shape("n", constraints=[f"n >= {SMALLEST}"])
    program = jax.jit(lambda v, u: {key: as_jax(function(v, u)) for key, (function, _) in OTHERS.items()})
    exported = export.export(program)(jax.ShapeDtypeStruct((n,), np.float64), jax.ShapeDtypeStruct((n, 3), np.float64))
    for size in (SMALLEST, 21):
        v, u = rng.uniform(0.5, 1.0, size), rng.normal(size=(size, 3))
        results = exported.call(v, u)
        for key, (_, by_numpy) in OTHERS.items():
            np.testing.assert_allclose(results[key], by_numpy(v, u), rtol=1e-9, atol=1e-11, err_msg=key)


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
        (lambda x: x[1.5:], "n", (), IndexError, "must be integers or None"),
    ],
    ids=["Toeplitz", "Circulant", "dense form", "no constraint", "steps", "fraction"],
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


# Counts above 2**31 - 1, which JAX computes as integers of 32 bits: functions of a vector of n ones, and their values.
LARGE_COUNTS = {
    "sum": (lambda v: sa.sum(sa.exp(sa.Diagonal(v))), lambda n: n * (n - 1.0) + n * np.e),
    "mean": (lambda v: sa.mean(sa.exp(sa.tridiagonal(v[1:], v, v[1:]))), lambda n: 1 + (3 * n - 2) * (np.e - 1) / n**2),
    "variance": (lambda v: sa.var(sa.Diagonal(v)), lambda n: (1 - 1 / n) / n),
    "mean of low rank": (lambda v: sa.mean(sa.LowRank(v[:, None], v[:, None])), lambda n: 1.0),
    "mean of Kronecker": (lambda v: sa.mean(sa.Kronecker(sa.Diagonal(v), sa.Diagonal(v))), lambda n: 1.0 / n**2),
    "variance of Kronecker": (
        lambda v: sa.var(sa.Kronecker(sa.Diagonal(v), sa.Diagonal(v))),
        lambda n: (1 - 1.0 / n**2) / n**2,
    ),
    "sum of Fill": (lambda v: sa.sum(sa.Fill(v[0], (v.shape[0],) * 2)), lambda n: 1.0 * n * n),
    "norm": (
        lambda v: sa.linalg.matrix_norm(sa.Fill(v[0], (v.shape[0],) * 2) + sa.Diagonal(v)),
        lambda n: np.sqrt(n * (n + 3.0)),
    ),
    "tensordot": (lambda v: sa.tensordot(*[sa.Fill(v[0], (v.shape[0],) * 2)] * 2, axes=2), lambda n: 1.0 * n * n),
    "logdet": (
        lambda v: sa.linalg.slogdet(sa.Kronecker(sa.Diagonal(-2 * v), sa.Diagonal(v), sa.Diagonal(v))).logabsdet,
        lambda n: n**3 * np.log(2.0),
    ),
    "sign": (
        lambda v: sa.linalg.slogdet(sa.Kronecker(sa.Diagonal(-v), sa.Diagonal(v), sa.Diagonal(v))).sign,
        lambda n: (-1.0) ** (n % 2),
    ),
    "determinant": (
        lambda v: sa.linalg.det(sa.Kronecker(sa.Diagonal(-v), sa.Diagonal(v))),
        lambda n: (-1.0) ** (n % 2),
    ),
    "product": (lambda v: sa.prod(sa.exp(sa.Diagonal(-0.5 * v / v.shape[0]))), lambda n: np.exp(-0.5)),
    "trace": (lambda v: sa.linalg.trace(sa.KroneckerSum(*[sa.Diagonal(v)] * 3)), lambda n: 3.0 * n**3),
}


@pytest.mark.parametrize("bits", [32, 64])
def test_counts_do_not_wrap(bits):
    dtype = np.dtype(f"float{bits}")
    jax.config.update("jax_enable_x64", bits == 64)
    try:
        (n,) = export.symbolic_shape("n", constraints=[f"n >= {SMALLEST}"])
        program = jax.jit(lambda v: {key: as_jax(function(v)) for key, (function, _) in LARGE_COUNTS.items()})
        exported = export.export(program)(jax.ShapeDtypeStruct((n,), dtype))
        for size in (99_999, 100_000):
            results = exported.call(np.ones(size, dtype))
            for key, (_, value) in LARGE_COUNTS.items():
                # Rounding of the base of a power: its error is multiplied by n.
                tolerance = 0.01 if key == "product" else 1e-5
                np.testing.assert_allclose(results[key], value(size), rtol=tolerance, err_msg=key)
    finally:
        jax.config.update("jax_enable_x64", True)


OF_STACKS = {
    "S @ v": lambda S, D, xp: S @ np.ones(4),
    "2 S.mT": lambda S, D, xp: 2 * S.mT,
    "S + D": lambda S, D, xp: S + D,
    "S * D": lambda S, D, xp: S * D,
    "S + one matrix": lambda S, D, xp: S + np.diag([1.0, 0, 0, 2]),
    "exp": lambda S, D, xp: xp.sum(xp.exp(S), axis=-1),
    "solve": lambda S, D, xp: xp.linalg.solve(S + 3 * np.eye(4), np.ones((4, 1))),
}


@pytest.mark.parametrize("name", OF_STACKS)
def test_stacks_of_symbolic_length(name, rng):
    """The matrices of the first argument share one pattern, whose coordinates are constants of the program."""
    S = sa.Sparse(rng.normal(size=(5, 3)), ([0, 1, 2], [0, 1, 3]), (4, 4))
    d = rng.normal(size=(5, 4))
    (b,) = export.symbolic_shape("b")

    def program(S, d):
        return as_jax(OF_STACKS[name](S, sa.Diagonal(d), sa))

    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((b, *leaf.shape[1:]), leaf.dtype), (S, d))
    found = export.export(jax.jit(program))(*shapes).call(S, d)
    expected = OF_STACKS[name](np.asarray(as_jax(S)), d[:, None] * np.eye(4), np)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)
