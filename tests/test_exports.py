"""Programs over structured arrays on disk: `jax.export`, cloudpickle, and the cache of compiled programs."""

import json
import subprocess
import sys

import cloudpickle
import jax
import numpy as np
import pytest
from jax import export
from support import as_jax

import structarrays as sa
from structarrays.testing import STRUCTURES, sample


def elsewhere(code, *arguments, **options):
    """What a fresh process prints."""
    run = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False, **options
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize("structure", STRUCTURES)
def test_programs_over_every_structure(structure):
    dtype = "complex128" if structure == "Fourier" else "float64"
    x = sample(structure, (6, 6), batch=(), dtype=dtype)
    function = jax.jit(lambda x, scale: (x.mT, {"product": scale * x, "sum": sa.sum(x)}))
    exported = export.deserialize(export.export(function)(x, 2.0).serialize())
    got, want = exported.call(x, 2.0), function(x, 2.0)
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b)


@pytest.mark.slow
def test_a_program_in_a_fresh_process(tmp_path):
    """Assumptions and results of decompositions go through it, too."""
    A = sa.assume(sa.tridiagonal(-np.ones(9), 4 * np.ones(10), -np.ones(9)), "positive_definite")

    @jax.jit
    def program(A):
        return sa.linalg.solve(A, sa.ones(10)), sa.linalg.cho_factor(A, lower=True), sa.linalg.qr(A)

    (tmp_path / "program").write_bytes(export.export(program)(A).serialize())
    sa.save(tmp_path / "A.npz", A)
    code = """
import sys
import structarrays as sa
from jax import export
exported = export.deserialize(open(sys.argv[1] + "/program", "rb").read())
sa.save(sys.argv[1] + "/results.npz", exported.call(sa.load(sys.argv[1] + "/A.npz")))
"""
    elsewhere(code, tmp_path)
    got, want = sa.load(tmp_path / "results.npz"), program(A)
    assert jax.tree.structure(got) == jax.tree.structure(want) and type(got[2]) is type(want[2])
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15)


def test_a_program_over_a_class_of_a_user():
    for _ in range(2):  # as when a cell of a notebook is run again

        class Mine(sa.Diagonal):
            __slots__ = ()

        classes.append(Mine)
    function = jax.jit(lambda x: 2 * x)
    exported = export.deserialize(export.export(function)(classes[0]([1.0, 2.0])).serialize())
    assert type(exported.call(classes[0]([1.0, 2.0]))) is type(function(classes[0]([1.0, 2.0])))


classes = []  # JAX and `load` find them as long as they live


def test_functions_over_arrays_in_a_pickle(tmp_path):
    A = sa.assume(sa.Toeplitz([2.0, -1.0, 0.0, 0.0]), "positive_definite")
    functions = [lambda b: sa.linalg.solve(A, b), jax.jit(lambda b: A @ b), sa.linalg.solve, sa.exp]
    (tmp_path / "functions").write_bytes(cloudpickle.dumps((functions, A)))
    code = """
import json, pickle, sys
import numpy as np
functions, A = pickle.load(open(sys.argv[1], "rb"))
b = np.arange(1.0, 5.0)
assert "positive_definite" in A.assumptions
print(json.dumps([np.asarray(r).tolist() for r in (functions[0](b), functions[1](b), functions[2](A, b), functions[3](A))]))
"""
    b, a = np.arange(1.0, 5.0), np.asarray(A)
    expected = [np.linalg.solve(a, b), a @ b, np.linalg.solve(a, b), np.exp(a)]
    for got, want in zip(json.loads(elsewhere(code, tmp_path / "functions")), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)


@pytest.mark.slow
def test_compiled_programs_are_kept(tmp_path):
    """The second process compiles none of them, also where something was compiled before the cache was switched on."""
    code = """
import sys
import jax
import numpy as np
import structarrays as sa
sa.ones(3) + 1
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append(name))
assert str(sa.compilation_cache(sys.argv[1])) == sys.argv[1]
sa.linalg.solve(sa.tridiagonal(np.ones(4), 4 * np.ones(5), np.ones(4)), np.ones(5))
print(hits.count("/jax/compilation_cache/cache_hits"), hits.count("/jax/compilation_cache/cache_misses"))
"""
    folder = tmp_path / "cache"
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    first = [int(n) for n in elsewhere(code, folder, env=environment).split()]
    second = [int(n) for n in elsewhere(code, folder, env=environment).split()]
    assert first[0] == 0 and first[1] > 0 and second == [first[1], 0]


SYMBOLIC = {
    "tridiagonal": (lambda d, b: sa.linalg.solve(sa.tridiagonal(-d[:, 1:], 4 + d, -d[:, 1:]), b), (5,), (5, 1)),
    "banded": (
        lambda d, b: sa.linalg.solve(sa.Banded([d[:, 2:], 9 + d, d[:, 2:]], (-2, 0, 2), (8, 8)), b),
        (8,),
        (8, 2),
    ),
    "wide": (
        lambda d, b: sa.linalg.solve(sa.Banded([d[:, 20:], 9 + d, d[:, 20:]], (-20, 0, 20), (60, 60)), b),
        (60,),
        (60, 1),
    ),
    "logdet": (lambda d, b: sa.linalg.logdet(sa.tridiagonal(-d[:, 1:], 4 + d, -d[:, 1:])), (5,), (1,)),
    "Cholesky": (
        lambda d, b: sa.linalg.cholesky(sa.tridiagonal(-d[:, 1:], 4 + d, -d[:, 1:])) @ b,
        (5,),
        (5, 1),
    ),
    "Toeplitz": (lambda d, b: sa.linalg.solve(sa.Toeplitz(d + 8 * (np.arange(5) == 0)), b), (5,), (5, 1)),
    "low rank": (lambda u, b: sa.linalg.solve(sa.LowRank(u, u) + sa.eye(60), b), (60, 2), (60, 1)),
    "Kronecker": (lambda a, b: sa.linalg.solve(sa.Kronecker(a + 4 * np.eye(3), a), b), (3, 3), (9, 1)),
    "BlockDiagonal": (lambda a, b: sa.linalg.solve(sa.BlockDiagonal(a), b), (4, 3, 3), (12, 1)),
    "elements": (
        lambda d, b: (
            (sa.tridiagonal(-d[:, 1:], 4 + d, -d[:, 1:]) @ b)[:, 1] + sa.Diagonal(d)[:, 0, :1] + sa.Diagonal(d)[0, 1, 1]
        ),
        (5,),
        (5, 1),
    ),
    "slices": (lambda d, b: (sa.Diagonal(d)[:-1] @ b[1:])[..., 2:, 0], (5,), (5, 1)),
    "first matrix": (lambda d, b: sa.Kronecker(d[0], b[-1]), (3, 3), (2, 2)),
    "means": (lambda a, b: sa.mean(sa.Symmetric(a), axis=0) + sa.mean(sa.LowRank(b, b), axis=(0, 1)), (3, 3), (3, 2)),
    "deviations": (
        lambda a, b: sa.std(sa.tridiagonal(a[:, 1:], a, a[:, 1:]), axis=0) + sa.var(sa.LowRank(b, b), axis=0),
        (4,),
        (4, 2),
    ),
    "deviations of matrices": (lambda a, b: sa.std(sa.Diagonal(a), axis=(1, 2)) + sa.mean(sa.Dense(b)), (4,), (3,)),
    "Sparse": (
        lambda a, b: sa.Sparse([2.0, 3.0], ([0, 1], [1, 2]), (3, 3)) @ sa.sum(sa.asarray(a), axis=(0, 2)),
        (3, 2),
        (1,),
    ),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_batches_of_symbolic_size(name, rng):
    function, *shapes = SYMBOLIC[name]
    program = jax.jit(lambda *args: as_jax(function(*args)))
    (n,) = export.symbolic_shape("n")
    exported = export.export(program)(*(jax.ShapeDtypeStruct((n, *shape), np.float64) for shape in shapes))
    restored = export.deserialize(exported.serialize())
    for size in (1, 3, 10):
        args = [rng.normal(size=(size, *shape)) for shape in shapes]
        np.testing.assert_allclose(restored.call(*args), program(*args), rtol=1e-10, atol=1e-12)


def test_one_matrix_and_a_batch_of_symbolic_size(rng):
    program = jax.jit(lambda d, b: sa.linalg.solve(sa.tridiagonal(-d[1:], 4 + d, -d[1:]), b))
    (n,) = export.symbolic_shape("n")
    exported = export.export(program)(np.zeros(5), jax.ShapeDtypeStruct((n, 5, 2), np.float64))
    for size in (1, 4):
        d, b = rng.normal(size=5), rng.normal(size=(size, 5, 2))
        np.testing.assert_allclose(exported.call(d, b), program(d, b), rtol=1e-10)
