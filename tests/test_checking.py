"""`check_structure` finds what is wrong and what densifies; the arrowhead matrix of the documentation passes the equivalence tests."""

import os
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import structarrays as sa
from examples.arrowhead import Arrowhead
from structarrays.testing import EquivalenceError, check_structure, sampler
from structarrays.testing.arrays import SAMPLERS

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "arrowhead.py"


@pytest.fixture
def broken():
    """A structure whose transpose forgets to transpose, and whose trace is kept."""

    class Broken(sa.Array):
        __slots__ = ()

        @staticmethod
        def shape_of(leaves, meta):
            return (*leaves[0].shape, leaves[0].shape[-1])

        def dense_data(self):
            n = self.shape[-1]
            return jnp.broadcast_to(self._value[0][0][..., None], self.shape) * jnp.ones((n, n), self.dtype)

    kernel = sa.matrix_transpose.kernel(Broken)(lambda x: x)
    sampler("Broken")(lambda numbers, batch, core, requires: Broken.make((jnp.asarray(numbers((*batch, core[0]))),)))
    yield Broken
    del SAMPLERS["Broken"]
    sa.matrix_transpose.kernels[:] = [k for k in sa.matrix_transpose.kernels if k.run is not kernel]
    sa.matrix_transpose._found.clear()


def test_what_is_wrong_is_reported_and_not_raised(broken):
    report = check_structure(broken, functions=["matrix_transpose", "sin"], modes=["eager", "jit"], checks=3)
    assert report.wrong and all(text.startswith("matrix_transpose: ") for text in report.wrong)
    assert "elements differ" in report.wrong[0]
    assert report.densified == ["sin"] and not report.findings["sin"].wrong
    with pytest.raises(EquivalenceError, match="results of Broken are wrong"):
        report.raise_if_wrong()
    lines = str(report).splitlines()
    assert lines[0].split() == ["function", "checks", "kept", "densified", "wrong", "results"]
    assert lines[2].startswith("matrix_transpose")  # what is wrong comes first


def test_a_structure_that_raises_is_wrong(broken):
    broken.dense_data = lambda self: self.nowhere
    report = check_structure(broken, functions=["exp"], modes=["eager"])
    assert "AttributeError" in report.wrong[0]


@pytest.mark.slow
def test_every_place_of_a_function_of_two_arrays():
    report = check_structure("Diagonal", functions=["add", "matmul"], modes=["eager"])
    uses = report.findings["add"].kept
    for places in ("Diagonal, Diagonal", "Diagonal, Dense", "Dense, Diagonal", "Diagonal + background, Diagonal"):
        assert f"xp.add(x1, x2) for {places}" in uses
    assert report.wrong == []


# ---- the example ---------------------------------------------------------------------------------------------------

FUNCTIONS = (
    "exp add multiply less matmul matrix_transpose astype __getitem__ linalg.solve linalg.inv broadcast_to".split()
)


@pytest.mark.slow
def test_the_arrowhead_obeys_the_law():
    report = check_structure(Arrowhead, functions=FUNCTIONS, modes=["eager", "derivative"])
    report.raise_if_wrong()
    assert {f for f in FUNCTIONS if f in report.findings} == set(FUNCTIONS)
    assert {"exp", "add", "multiply", "less", "matrix_transpose", "astype"} <= set(report.kept)


def test_the_arrowhead_solves_without_a_dense_form():
    rng = np.random.default_rng(0)
    n = 7
    diag, beside = rng.uniform(5, 6, (2, n)), rng.normal(size=(2, n - 1))
    x, b = Arrowhead(diag, beside, beside), rng.normal(size=(2, n, 3))
    with sa.densify("error"):
        got = sa.linalg.solve(sa.assume(x, "positive_definite"), b)
        with pytest.raises(sa.DensifyError):
            sa.linalg.solve(x, b)
        with pytest.raises(np.linalg.LinAlgError):
            sa.linalg.solve(sa.assume(x - 9 * sa.eye(n), "positive_definite"), b)
    np.testing.assert_allclose(np.asarray(got), np.linalg.solve(np.asarray(x), b), rtol=1e-12)


def test_the_arrowhead_checks_its_arguments():
    with pytest.raises(ValueError, match="diag must be"):
        Arrowhead([1.0], [], [])
    with pytest.raises(ValueError, match="diag must be"):
        Arrowhead([1.0, 2.0], [1.0], [1.0, 2.0])


def test_the_example_is_short_and_runs():
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) <= 120
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(EXAMPLE), "100000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("100000 unknowns, 24 bytes each: residual ")
