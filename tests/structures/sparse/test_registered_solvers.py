"""Sparse linear systems by a registered solver, against NumPy."""

import importlib.metadata

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse.linalg
from sparse_matrices import laplacian, random_matrix
from support import as_jax

import structarrays as sa
from structarrays._functions.linalg import sparse_solvers
from structarrays._structures.sparse import sparse_direct


class Factors:
    """SciPy's SuperLU with other options, which counts what it does."""

    calls: list[str] = []

    def __init__(self, matrix, *, positive_definite):
        assert isinstance(matrix, scipy.sparse.csc_array)
        self.calls.append(f"factorize {positive_definite}")
        try:
            self.factors = scipy.sparse.linalg.splu(matrix, permc_spec="COLAMD", diag_pivot_thresh=0.1)
        except RuntimeError:
            raise np.linalg.LinAlgError from None
        if positive_definite and matrix.diagonal().real.min() <= 0:
            raise np.linalg.LinAlgError

    def solve(self, b, transposed):
        self.calls.append("solve transposed" if transposed else "solve")
        return self.factors.solve(b, "T" if transposed else "N")


class FactorsWithDeterminant(Factors):
    nbytes = 1000

    def slogdet(self):
        self.calls.append("slogdet")
        full = (self.factors.L @ self.factors.U).toarray()
        full = full[self.factors.perm_r][:, self.factors.perm_c]
        return np.linalg.slogdet(full)


@pytest.fixture
def calls(monkeypatch):
    monkeypatch.setattr(sparse_solvers, "SOLVERS", dict(sparse_solvers.SOLVERS))
    monkeypatch.setattr(sparse_direct, "SOLVERS", sparse_solvers.SOLVERS)
    sparse_direct.FACTORIZATIONS.clear()
    Factors.calls.clear()
    sa.linalg.register_sparse_solver("plain", Factors)
    sa.linalg.register_sparse_solver("with determinant", FactorsWithDeterminant, dtypes=("float64", "complex128"))
    yield Factors.calls
    sparse_direct.FACTORIZATIONS.clear()


def system(dtype="float64"):
    matrix = random_matrix(300).tocoo()
    data = matrix.data.astype(dtype)
    if np.dtype(dtype).kind == "c":
        data = data * (1 + 0.25j)
    a = sa.Sparse(data, matrix.coords, matrix.shape)
    return a, np.asarray(a.to_dense()), np.random.default_rng(1).normal(size=300).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", ["plain", "with determinant"])
def test_solutions_and_determinants(calls, name, dtype):
    a, dense, b = system(dtype)
    tolerance = 2e-3 if dtype in ("float32", "complex64") else 1e-9
    with sa.linalg.use_sparse_solver(name):
        for x, matrix in ((a, dense), (a.mT, dense.T)):
            for solve in (sa.linalg.solve, jax.jit(sa.linalg.solve)):
                solution = np.asarray(solve(x, sa.asarray(b)))
                np.testing.assert_allclose(solution, np.linalg.solve(matrix, b), rtol=tolerance, atol=tolerance)
                assert solution.dtype == dtype
        sign, logabsdet = sa.linalg.slogdet(a)
    expected = np.linalg.slogdet(dense)
    np.testing.assert_allclose(np.asarray(sign), expected.sign, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(np.asarray(logabsdet), expected.logabsdet, rtol=tolerance)
    used = name == "plain" or dtype in ("float64", "complex128")  # SuperLU solves the other data types
    assert calls.count("factorize False") == used
    assert ("solve transposed" in calls) == used
    assert ("slogdet" in calls) == (used and name == "with determinant")


def test_the_choice_ends_with_its_context(calls):
    a, _, b = system()
    solve = jax.jit(sa.linalg.solve)
    solve(a, sa.asarray(b))
    assert not calls
    with sa.linalg.use_sparse_solver("plain"):
        solve(a, sa.asarray(b))
        assert calls
        with sa.linalg.use_sparse_solver("superlu"):
            before = len(calls)
            solve(a, sa.asarray(b))
            assert len(calls) == before
        solve(a, sa.asarray(b))
        assert len(calls) > before


def test_derivatives(calls):
    a, dense, b = system()

    def value(data, b):
        x = a.with_data(data)
        return as_jax(sa.sum(sa.linalg.solve(x, sa.asarray(b))) + sa.linalg.slogdet(x).logabsdet)

    rows, columns = (np.asarray(c) for c in a.coords)
    inverse = np.linalg.inv(dense)
    expected = -np.outer(inverse.T @ np.ones(300), inverse @ b)[rows, columns] + inverse.T[rows, columns]
    for name in ("plain", "with determinant"):
        with sa.linalg.use_sparse_solver(name):
            for gradient in (jax.grad(value), jax.jit(jax.grad(value))):
                np.testing.assert_allclose(gradient(a.data, jnp.asarray(b)), expected, rtol=1e-7, atol=1e-9)


def test_batches(calls):
    a, dense, b = system()
    many = a.with_data(jnp.stack([a.data, 2 * a.data]))
    with sa.linalg.use_sparse_solver("plain"):
        x = sa.linalg.solve(many, sa.asarray(np.stack([b, b])[..., None]))
    np.testing.assert_allclose(np.asarray(x)[1, :, 0], np.linalg.solve(2 * dense, b), rtol=1e-9, atol=1e-12)
    assert calls.count("factorize False") == 2


def test_singular_indefinite_and_infinite_matrices(calls):
    a, _, b = system()
    grid = sa.Sparse.from_scipy(scipy.sparse.coo_array(laplacian(20)))
    right = sa.ones(400)
    with sa.linalg.use_sparse_solver("plain"):
        with pytest.raises(np.linalg.LinAlgError):
            sa.linalg.solve(a.with_data(0 * a.data), sa.asarray(b))
        assert np.isnan(np.asarray(jax.jit(sa.linalg.solve)(a.with_data(0 * a.data), sa.asarray(b)))).all()
        definite = sa.assume(grid, "positive_definite")
        sa.linalg.solve(definite, right)
        assert "factorize True" in calls
        with pytest.raises(np.linalg.LinAlgError):
            sa.linalg.solve(sa.assume(-grid, "positive_definite"), right)
        expected = np.linalg.slogdet(-np.asarray(grid.to_dense()))
        result = sa.linalg.slogdet(sa.assume(-grid, "positive_definite"))
        np.testing.assert_allclose(np.asarray(result.logabsdet), expected.logabsdet, rtol=1e-10)
        count = len(calls)
        assert np.isnan(np.asarray(sa.linalg.solve(a.with_data(np.inf * a.data), sa.asarray(b)))).all()
        assert len(calls) == count


def test_inaccurate_solvers_are_refined(calls):
    class Inaccurate(Factors):
        def solve(self, b, transposed):
            return super().solve(b, transposed) * (1 + 1e-9)

    sa.linalg.register_sparse_solver("inaccurate", Inaccurate)
    a, dense, b = system()
    with sa.linalg.use_sparse_solver("inaccurate"):
        x = np.asarray(sa.linalg.solve(a, sa.asarray(b)))
    np.testing.assert_allclose(x, np.linalg.solve(dense, b), rtol=1e-11, atol=1e-13)


def test_entry_points(calls, monkeypatch):
    point = importlib.metadata.EntryPoint("pardiso", f"{__name__}:Factors", sparse_solvers.ENTRY_POINTS)
    monkeypatch.setattr(point.__class__, "load", lambda self: Factors)
    points = importlib.metadata.EntryPoints([point])
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points.select(group=group))
    a, _, b = system()
    with sa.linalg.use_sparse_solver("pardiso"):
        sa.linalg.solve(a, sa.asarray(b))
    assert calls
    with pytest.raises(ValueError, match="unknown"), sa.linalg.use_sparse_solver("unknown"):
        pass


def test_wrong_arguments(calls):
    register = sa.linalg.register_sparse_solver
    for name in ("plain", "superlu"):
        with pytest.raises(ValueError, match="name must be new"):
            register(name, Factors)
    with pytest.raises(ValueError, match="dtypes must be among"):
        register("new", Factors, dtypes=("int32",))
    with pytest.raises(TypeError, match="callable"):
        register("new", None)
    with pytest.raises(TypeError, match="string"):
        register(1, Factors)
    with pytest.raises(ValueError, match="superlu"), sa.linalg.use_sparse_solver("new"):
        pass


def test_explain_names_the_solver(calls):
    a, _, b = system()
    with sa.linalg.use_sparse_solver("plain"):
        assert "'plain'" in str(sa.explain(sa.linalg.solve, a, sa.asarray(b)))
    assert "SuperLU" in str(sa.explain(sa.linalg.solve, a, sa.asarray(b)))


@pytest.mark.parametrize(
    ("factors", "error"),
    [
        (None, "must return factors with a method solve"),
        (
            type("Complex", (), {"solve": lambda self, b, transposed: b + 1j})(),
            "must return dtype float64, got complex128",
        ),
        (type("Short", (), {"solve": lambda self, b, transposed: b[:-1]})(), "must return shape"),
    ],
)
def test_solvers_that_break_the_protocol(calls, factors, error):
    sa.linalg.register_sparse_solver("wrong", lambda matrix, positive_definite: factors)
    a, _, _ = system()
    with sa.linalg.use_sparse_solver("wrong"), pytest.raises(Exception, match=error):
        as_jax(sa.linalg.solve(a, sa.ones(a.shape[0]))).block_until_ready()


def test_a_solver_that_overwrites_the_matrix(calls):
    def factorize(matrix, positive_definite):
        factors = Factors(matrix.copy(), positive_definite=positive_definite)
        matrix.data *= 1000
        return factors

    sa.linalg.register_sparse_solver("overwriting", factorize)
    a, dense, _ = system()
    with sa.linalg.use_sparse_solver("overwriting"):
        np.testing.assert_allclose(sa.linalg.slogdet(a).logabsdet, np.linalg.slogdet(dense)[1], rtol=1e-10)


def test_failures_leave_the_cache_as_it_was():
    cache = sparse_direct.Cache(count=4, nbytes=1 << 30)
    rows = np.arange(3, dtype=np.int32)
    kept = [cache.get(np.full(3, value), rows, rows, 3, False) for value in (1.0, 2.0, 3.0)]
    for value in range(10):
        with pytest.raises(KeyError):
            cache.get(np.full(3, 10.0 + value), rows, rows, 3, False, "no such solver")
    assert len(cache) == 3
    assert all(
        cache.get(np.full(3, value), rows, rows, 3, False) is old
        for value, old in zip((1.0, 2.0, 3.0), kept, strict=True)
    )


def test_badly_scaled_rows_are_refined_several_times(rng):
    """One step leaves a backward error of 1e-5 where the rows differ by 16 orders of magnitude."""
    for _ in range(6):
        a = scipy.sparse.random_array((400, 400), density=3 / 400, rng=rng, data_sampler=rng.standard_normal)
        a = a + scipy.sparse.diags_array(rng.uniform(1.1e-3, 3e-3, 400))
        a = (scipy.sparse.diags_array(10.0 ** rng.uniform(-8, 8, 400)) @ a).tocsr()
        b = rng.normal(size=400)
        x = np.asarray(sa.linalg.solve(sa.Sparse.from_scipy(scipy.sparse.coo_array(a)), b))
        assert np.max(abs(b - a @ x) / (abs(a) @ abs(x) + abs(b))) < 1e-9
