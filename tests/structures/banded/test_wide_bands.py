"""Solvers for banded matrices with diagonals far apart, such as periodic boundaries and grids."""

import subprocess
import sys

import jax
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from support import as_jax

import structarrays as sa
from structarrays._structures.banded.bandwidths import is_spread


def matrix(rng, n, offsets):
    """A diagonally dominant matrix with these offsets, for this library and for SciPy."""
    diagonals = [rng.normal(size=n - abs(k)) + (2 * len(offsets) if k == 0 else 0) for k in offsets]
    return sa.Banded(diagonals, offsets, (n, n)), sp.diags_array(diagonals, offsets=offsets, shape=(n, n)).tocsc()


def periodic(rng, n):
    """A tridiagonal matrix with entries in its corners, as a band; one that is written there is `PeriodicBanded`."""
    return matrix(rng, n, (1 - n, -1, 0, 1, n - 1))


def grid(rng, side):
    return matrix(rng, side * side, (-side, -1, 0, 1, side))


def used(function, *args):
    """The classes of the first operands of all kernels that run in a call."""
    return {operand.split(" ")[0] for e in sa.explain(function, *args).kernels for operand in e.operands[:1]}


@pytest.mark.parametrize("n", [40, 100, 400])
@pytest.mark.parametrize("compile", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_periodic_systems(n, compile, rng):
    ours, theirs = periodic(rng, n)
    dense, b = theirs.toarray(), rng.normal(size=(n, 2))
    np.testing.assert_allclose(compile(sa.linalg.solve)(ours, sa.asarray(b)), spl.spsolve(theirs, b), rtol=1e-10)
    sign, logabsdet = compile(sa.linalg.slogdet)(ours)
    np.testing.assert_allclose((sign, logabsdet), np.linalg.slogdet(dense), rtol=1e-12)
    np.testing.assert_allclose(as_jax(compile(sa.linalg.inv)(ours)), np.linalg.inv(dense), rtol=1e-9, atol=1e-14)
    elements = compile(sa.linalg.selected_inverse)(ours)
    assert type(elements) is sa.Banded and elements.offsets == ours.offsets
    for k in ours.offsets:
        np.testing.assert_allclose(elements.diagonal(k), np.linalg.inv(dense).diagonal(k), rtol=1e-9)


def test_small_ones_keep_their_structure(rng):
    ours, theirs = periodic(rng, 300)
    with sa.densify("error"):
        small = periodic(rng, 90)[0]
        assert used(sa.linalg.solve, small, sa.ones(90)) == {"Banded", "Sparse"}
    assert used(sa.linalg.solve, ours, sa.ones(300)) == {"Banded", "Sparse"}
    np.testing.assert_allclose(float(sa.linalg.det(ours / 10)), np.linalg.det(theirs.toarray() / 10), rtol=1e-10)


def test_a_grid_goes_by_its_cost(rng):
    assert used(sa.linalg.solve, grid(rng, 20)[0], sa.ones(400)) == {"Banded"}
    ours, theirs = grid(rng, 80)
    b = rng.normal(size=6400)
    assert used(sa.linalg.solve, ours, sa.asarray(b)) == {"Banded", "Sparse"}
    with sa.densify("error"):
        np.testing.assert_allclose(sa.linalg.solve(ours, sa.asarray(b)), spl.spsolve(theirs, b), rtol=1e-10)
    full = sa.Banded([np.ones(6400 - abs(k)) for k in range(-80, 81)], tuple(range(-80, 81)), (6400, 6400))
    assert not is_spread(full)


@pytest.mark.parametrize("function", ["cholesky", "eigvalsh", "eigh", "svdvals", "lu_factor", "qr", "pinv", "ldl"])
def test_factors_that_fill_the_matrix_ask_the_policy(function, rng):
    n = 3000
    ours, _ = periodic(rng, n)
    ours = sa.assume(ours + ours.mT, "positive_definite")
    call = getattr(sa.linalg, function)
    with sa.densify("error"), pytest.raises(sa.DensifyError, match=f"linalg.{function} would expand Banded"):
        call(ours)
    with sa.densify("allow", limit=n * n), pytest.raises(sa.DensifyError, match=f"linalg.{function}"):
        call(ours)
    assert sa.explain(call, ours).densifications


def test_least_squares_ask_the_policy(rng):
    offsets = (-2000, 0, 1)
    tall = sa.Banded([rng.normal(size=s) for s in (1000, 2000, 1999)], offsets, (3000, 2000))
    with sa.densify("error"), pytest.raises(sa.DensifyError, match="linalg.lstsq"):
        sa.linalg.lstsq(tall, sa.ones(3000))


def test_factors_beyond_the_limit_ask_the_policy(rng):
    """The factor of a grid is banded, and takes far more memory than the stored entries."""
    ours, _ = grid(rng, 64)
    with sa.densify("allow", limit=10**6), pytest.raises(sa.DensifyError, match="fill the whole band"):
        sa.linalg.cholesky(ours)
    assert type(sa.explain(sa.linalg.cholesky, ours).result) is sa.Banded


def test_values_of_factors(rng):
    ours, theirs = periodic(rng, 150)
    ours, dense = ours + ours.mT, (theirs + theirs.T).toarray()
    np.testing.assert_allclose(as_jax(sa.linalg.cholesky(ours)), np.linalg.cholesky(dense), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(sa.linalg.eigvalsh(ours), np.linalg.eigvalsh(dense), rtol=1e-11)
    np.testing.assert_allclose(sa.linalg.svdvals(ours), np.linalg.svd(dense, compute_uv=False), rtol=1e-10, atol=1e-12)


def test_wide_triangles_are_substituted(rng):
    n = 3000
    ours, theirs = matrix(rng, n, (1 - n, 0))
    b = rng.normal(size=n)
    with sa.densify("error"):
        assert used(sa.linalg.solve, ours, sa.asarray(b)) == {"Banded"}
        np.testing.assert_allclose(sa.linalg.solve(ours, sa.asarray(b)), spl.spsolve(theirs, b), rtol=1e-11)
        sign, logabsdet = sa.linalg.slogdet(ours)
    diagonal = theirs.diagonal()
    np.testing.assert_allclose((sign, logabsdet), (np.prod(np.sign(diagonal)), np.log(np.abs(diagonal)).sum()))


def test_derivatives_and_batches(rng):
    n = 90
    ours, theirs = periodic(rng, n)
    dense, b = theirs.toarray(), rng.normal(size=n)

    def loss(data):
        x = ours.rebuild(data, None)
        return as_jax(sa.sum(sa.linalg.solve(x, sa.asarray(b)))) + as_jax(sa.linalg.slogdet(x)[1])

    inverse = np.linalg.inv(dense)
    expected = inverse.T - np.outer(inverse.T @ np.ones(n), inverse @ b)
    with sa.densify("error"):  # by the sparse form
        gradient = jax.grad(loss)(ours.diagonals)
    for k, g in zip(ours.offsets, gradient, strict=True):
        np.testing.assert_allclose(g, expected.diagonal(k), rtol=1e-8, atol=1e-13)
    stack = ours.rebuild(tuple(np.stack([d, 2 * d]) for d in ours.diagonals), None)
    with sa.densify("error"):
        solutions = sa.linalg.solve(stack, sa.asarray(b))
    np.testing.assert_allclose(solutions, np.linalg.solve(dense, b) / np.array([[1], [2]]), rtol=1e-10)


@pytest.mark.parametrize("offsets", [(-250, -1, 0, 1, 250), (-280, 5), (120,), (-3, 40, 299)])
@pytest.mark.parametrize("columns", [(), (2,)])
def test_products_with_a_background_fill_no_gap(offsets, columns, rng):
    ours, theirs = matrix(rng, 300, offsets)
    x = ours.rebuild(ours.entries, np.asarray(0.7))
    dense = np.where(sum(np.eye(300, k=k) for k in offsets) > 0, theirs.toarray(), 0.7)
    b = rng.normal(size=(300, *columns))
    np.testing.assert_allclose(x @ sa.asarray(b), dense @ b, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(sa.asarray(b.T) @ x, b.T @ dense, rtol=1e-10, atol=1e-11)
    b.reshape(300, -1)[7, 0] = np.inf
    np.testing.assert_array_equal(x @ sa.asarray(b), dense @ b) if not columns else None


def test_a_background_keeps_memory_linear():
    n = 200_000
    x = sa.Banded([np.ones(1), np.ones(n), np.ones(1)], (1 - n, 0, n - 1), (n, n))
    x = x.rebuild(x.entries, np.asarray(1.0))
    np.testing.assert_allclose(as_jax(x @ sa.ones(n)), np.full(n, float(n)), rtol=1e-12)


PROGRAM = """
import resource, sys
import numpy as np, scipy.sparse as sp, scipy.sparse.linalg as spl
import structarrays as sa

n, rng = 1_000_000, np.random.default_rng(5)
lower, main, upper = rng.normal(size=n - 1), 8 + rng.normal(size=n), rng.normal(size=n - 1)
A = sa.tridiagonal(lower, main, upper)
A[0, n - 1] = 0.75
b = rng.normal(size=n)
sa.linalg.solve(sa.tridiagonal([1.0], [4.0, 4.0], [1.0]), sa.ones(2))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with sa.densify("error"):
    x = np.asarray(sa.linalg.solve(A, sa.asarray(b)))
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
theirs = sp.diags_array([lower, main, upper, [0.75]], offsets=[-1, 0, 1, n - 1], shape=(n, n), format="csc")
np.testing.assert_allclose(x, spl.spsolve(theirs, b), rtol=1e-9, atol=1e-12)
print((after - before) * (1 if sys.platform == "darwin" else 1024) / n)
"""


@pytest.mark.slow
def test_a_million_rows_take_memory_in_proportion():
    """The memory is below 2000 bytes a row with four entries; a row of the dense form takes eight million bytes."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 2000
