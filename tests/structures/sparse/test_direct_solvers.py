"""Sparse linear systems by the traced solvers of sparsax, klujax and spineax, and by others. The oracle is NumPy."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from sparse_matrices import laplacian, random_matrix
from support import as_jax

import structarrays as sa
from structarrays._functions.linalg import sparse_solvers
from structarrays._structures.sparse import sparse_direct

N = 300


def importable(name):
    """Whether a provided solver can be chosen."""
    try:
        with sa.linalg.use_sparse_solver(name):
            return name != "cudss" or any(d.platform == "gpu" for d in jax.devices())
    except ImportError:
        return False


NAMES = [name for name in sparse_solvers.PROVIDED if importable(name)]
DTYPES = {"klujax": ("float64", "complex128"), "cudss": ("float64", "complex128")}
CASES = [(name, dtype) for name in NAMES for dtype in DTYPES.get(name, ("float64",))]


def matrix(name, dtype="float64", n=N):
    """A matrix for a solver: CHOLMOD's are positive definite, with entries in both triangles."""
    if name == "cholmod":
        rng = np.random.default_rng(0)
        half = scipy.sparse.random_array((n, n), density=3 / n, rng=rng, data_sampler=rng.standard_normal)
        x = sa.Sparse.from_scipy(scipy.sparse.coo_array(half + half.T + scipy.sparse.eye_array(n) * 12))
        return sa.assume(x, "positive_definite")
    return sa.Sparse.from_scipy(scipy.sparse.coo_array(random_matrix(n, dtype=dtype)))


def with_data(x, data):
    """The matrix with other entries, and the same assumptions."""
    new = x.with_data(data)
    return sa.assume(new, "positive_definite") if x.assumptions else new


def test_the_solvers_of_installed_packages():
    assert {"cholmod", "klu", "klujax"} <= set(NAMES)


@pytest.mark.each_parameter
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_solutions(rng, name, dtype):
    """Vectors, matrices and transposes, eager and compiled. The compiled program contains the solver."""
    x = matrix(name, dtype)
    dense, b = np.asarray(x.to_jax()), rng.normal(size=(N, 3)).astype(dtype)
    with sa.linalg.use_sparse_solver(name):
        assert f"{name!r} in the compiled program" in str(sa.explain(sa.linalg.solve, x, sa.asarray(b)))
        for solve in (sa.linalg.solve, jax.jit(sa.linalg.solve)):
            for a, full in ((x, dense), (x.mT, dense.T), (sa.conj(x.mT), dense.conj().T)):
                for right in (b, b[:, 0], b[:, :0]):
                    solution = np.asarray(solve(a, sa.asarray(right)))
                    np.testing.assert_allclose(solution, np.linalg.solve(full, right), rtol=1e-9, atol=1e-12)
                    assert solution.dtype == dtype
        program = jax.jit(sa.linalg.solve).lower(x, sa.asarray(b)).as_text()
    assert "callback" not in program


@pytest.mark.each_parameter
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_derivatives(rng, name, dtype):
    """First and second derivatives of solutions and determinants, against JAX on the dense matrix."""
    x = matrix(name, dtype, 260)
    b = jnp.asarray(rng.normal(size=260).astype(dtype))
    places = tuple(np.asarray(c) for c in x.coords)
    change = jnp.asarray(rng.normal(size=x.nnz).astype(dtype))
    if x.assumptions:  # a symmetric change
        full = np.zeros(x.shape)
        full[places] = change
        change = jnp.asarray((full + full.T)[places])

    def ours(data):
        a = with_data(x, data)
        return as_jax(sa.sum(sa.abs(sa.linalg.solve(a, b)) ** 2) + sa.linalg.slogdet(a).logabsdet)

    def expected(data):
        a = jnp.zeros(x.shape, dtype).at[places].set(data)
        return jnp.sum(jnp.abs(jnp.linalg.solve(a, b)) ** 2) + jnp.linalg.slogdet(a)[1]

    with sa.linalg.use_sparse_solver(name):
        for derivative in (
            jax.value_and_grad,
            lambda f: lambda data: jax.jvp(f, (data,), (change,)),
            lambda f: lambda data: jax.jvp(jax.grad(f), (data,), (change,)),
        ):
            found, exact = jax.jit(derivative(ours))(x.data), derivative(expected)(x.data)
            for a, e in zip(found, exact, strict=True):
                np.testing.assert_allclose(a, e, rtol=1e-8, atol=1e-9 * np.abs(e).max())


@pytest.mark.parametrize("name", NAMES)
def test_determinants(name):
    """Signs and logarithms, and the elements of the inverse."""
    x = matrix(name)
    rows = np.arange(N)
    rows[:2] = 1, 0
    swapped = x if x.assumptions else x[rows]
    with sa.linalg.use_sparse_solver(name):
        for a in (x, swapped):
            sign, logabsdet = sa.linalg.slogdet(a)
            expected = np.linalg.slogdet(np.asarray(a.to_jax()))
            assert float(sign) == expected.sign
            np.testing.assert_allclose(float(logabsdet), expected.logabsdet, rtol=1e-12)
        inverse = sa.linalg.selected_inverse(x)
        exact = np.where(np.asarray(x.to_jax()).T != 0, np.linalg.inv(np.asarray(x.to_jax())), 0)
        np.testing.assert_allclose(np.asarray(as_jax(inverse)), exact, rtol=1e-8, atol=1e-12)
        inverse = sa.linalg.inv(x)
        np.testing.assert_allclose(
            np.asarray(inverse @ sa.ones(N)), np.linalg.solve(np.asarray(x.to_jax()), np.ones(N))
        )


@pytest.mark.parametrize("name", NAMES)
def test_stacks(rng, name):
    """Matrices with different patterns, padding, and under `jax.vmap`: a solver may rely on one pattern."""
    x = matrix(name)
    dense = np.asarray(x.to_jax())
    order = rng.permutation(N)
    other = dense[np.ix_(order, order)]
    other[np.abs(np.subtract.outer(np.arange(N), np.arange(N))) > N // 2] = 0  # fewer entries: padding
    full = np.stack([dense, other, 2 * dense])
    stack = sa.Sparse.from_dense(full)
    stack = sa.assume(stack, "positive_definite") if x.assumptions else stack
    assert stack.padded
    b = rng.normal(size=(3, N, 2))
    expected = np.linalg.solve(full, b)
    with sa.linalg.use_sparse_solver(name):
        used = f"{name!r} in the" in str(sa.explain(sa.linalg.solve, stack, sa.asarray(b)))
        assert used == (name not in ("klujax", "cudss"))  # which do not add entries with equal coordinates
        for solve in (sa.linalg.solve, jax.jit(sa.linalg.solve), jax.vmap(sa.linalg.solve)):
            np.testing.assert_allclose(np.asarray(as_jax(solve(stack, sa.asarray(b)))), expected, rtol=1e-8, atol=1e-12)
        logabsdet = np.asarray(as_jax(jax.vmap(lambda a: sa.linalg.slogdet(a).logabsdet)(stack)))
        np.testing.assert_allclose(logabsdet, np.linalg.slogdet(full)[1], rtol=1e-11)
        many = jax.vmap(lambda data: sa.linalg.solve(with_data(x, data), b[0]))(jnp.stack([x.data, 3 * x.data]))
        np.testing.assert_allclose(np.asarray(many)[1], expected[0] / 3, rtol=1e-8, atol=1e-12)
        along = jax.vmap(lambda b: sa.linalg.solve(x, b))(jnp.asarray(b))
        np.testing.assert_allclose(np.asarray(along), np.linalg.solve(dense, b), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_loops(rng, name):
    """New entries in each step of a loop."""
    x, b = matrix(name), jnp.asarray(rng.normal(size=N))
    dense = np.asarray(x.to_jax())

    @jax.jit
    def steps(data, b):
        def step(b, scale):
            b = as_jax(sa.linalg.solve(with_data(x, data * scale), b))
            return b, jnp.sum(b)

        return jax.lax.scan(step, b, jnp.asarray([1.0, 2.0, 0.5]))[0]

    expected = b
    for scale in (1.0, 2.0, 0.5):
        expected = np.linalg.solve(scale * dense, expected)
    with sa.linalg.use_sparse_solver(name):
        np.testing.assert_allclose(steps(x.data, b), expected, rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_singular_indefinite_and_infinite_matrices(name):
    """A singular matrix raises, also in a compiled call. A matrix that is not finite has undefined solutions."""
    x, b = matrix(name), sa.ones(N)
    with sa.linalg.use_sparse_solver(name):
        for solve in (sa.linalg.solve, jax.jit(sa.linalg.solve)):
            if name != "cudss":
                with pytest.raises((ValueError, RuntimeError)):
                    jax.block_until_ready(solve(with_data(x, 0 * x.data), b))
            for value in (np.nan, np.inf):
                bad = with_data(x, x.data.at[5].set(value))
                assert np.isnan(np.asarray(jax.jit(sa.linalg.solve)(bad, b))).all()
                assert np.isnan(float(sa.linalg.slogdet(bad).logabsdet))
        if name == "cholmod":
            with pytest.raises((ValueError, RuntimeError), match="not positive definite"):
                jax.block_until_ready(sa.linalg.solve(with_data(x, -x.data), b))


@pytest.mark.parametrize("name", NAMES)
def test_superlu_solves_the_other_matrices(rng, name):
    cases = [sa.astype(sa.forget(matrix(name)), sa.float32)]
    if name == "cholmod":
        cases += [sa.forget(matrix(name)), matrix("klu")]
        grid = sa.Sparse.from_scipy(scipy.sparse.coo_array(laplacian(20, "complex128")))
        cases += [sa.assume(grid, "positive_definite")]
    for x in cases:
        b = rng.normal(size=x.shape[0]).astype(x.dtype)
        with sa.linalg.use_sparse_solver(name):
            assert "SuperLU on the host" in str(sa.explain(sa.linalg.solve, x, sa.asarray(b)))
            solution = np.asarray(sa.linalg.solve(x, sa.asarray(b)))
        expected = np.linalg.solve(np.asarray(x.to_jax()), b)
        np.testing.assert_allclose(solution, expected, rtol=1e-3 if b.dtype == np.float32 else 1e-9, atol=1e-5)


@pytest.mark.each_parameter
@pytest.mark.parametrize("name", [name for name in NAMES if name != "cholmod"])
def test_small_diagonals(rng, name):
    """KLU takes a thousandth of the largest element as a pivot. The solution is accurate, or NaN."""
    for scale in (0, 8):
        a = scipy.sparse.random_array((N, N), density=3 / N, rng=rng, data_sampler=rng.standard_normal)
        a = a + scipy.sparse.diags_array(rng.uniform(1.1e-3, 3e-3, N))
        a = (scipy.sparse.diags_array(10.0 ** rng.uniform(-scale, scale, N)) @ a).tocsr()
        b = rng.normal(size=N)
        for matrix in (a, a.T.tocsr()):
            x = sa.Sparse.from_scipy(scipy.sparse.coo_array(matrix))
            with sa.linalg.use_sparse_solver(name):
                found = np.asarray(jax.jit(sa.linalg.solve)(x, b))
            error = np.max(abs(b - matrix @ found) / (abs(matrix) @ abs(found) + abs(b)))
            assert np.isnan(found).all() or error < 1e-7
            if scale == 0:
                assert error < 1e-14


class Spineax:
    """The functions of spineax 0.0.5 by dense matrices, without an error for singular ones."""

    @staticmethod
    def analyze(csr_values, csr_offsets, csr_columns, *, mtype_id="symmetric", mview_id="upper"):
        assert mtype_id in ("general", "spd", "hpd")
        assert mview_id == "full"
        return csr_offsets, csr_columns

    @staticmethod
    def factorize(token, csr_values):
        offsets, columns = token
        n = offsets.shape[0] - 1
        rows = jnp.repeat(jnp.arange(n), jnp.diff(offsets), total_repeat_length=csr_values.shape[0])
        return jnp.zeros((n, n), csr_values.dtype).at[rows, columns].add(csr_values)

    @staticmethod
    def solve(token, b, ir_nsteps=None):
        assert b.ndim == 1
        return jnp.nan_to_num(jnp.linalg.solve(token, b), posinf=1e30, neginf=-1e30)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_cudss(rng, registry, monkeypatch, dtype):
    """The calls of spineax, without a GPU."""
    for name in ("spineax", "spineax.cudss", "spineax.cudss.solver"):
        monkeypatch.setitem(sys.modules, name, Spineax)
    sparse_solvers.SOLVERS.pop("cudss", None)
    x, b = matrix("klu", dtype), rng.normal(size=(N, 2)).astype(dtype)
    dense = np.asarray(x.to_jax())
    tolerance = 1e-3 if dtype == "float32" else 1e-9
    with sa.linalg.use_sparse_solver("cudss"):
        assert "'cudss' in the compiled program" in str(sa.explain(sa.linalg.solve, x, sa.asarray(b)))
        for a, full in ((x, dense), (x.mT, dense.T), (sa.conj(x.mT), dense.conj().T)):
            found = np.asarray(jax.jit(sa.linalg.solve)(a, b))
            np.testing.assert_allclose(found, np.linalg.solve(full, b), rtol=tolerance, atol=tolerance)
        for a in (x, x.mT):
            with pytest.raises(np.linalg.LinAlgError):
                sa.linalg.solve(0 * a, b)
            assert np.isnan(np.asarray(jax.jit(sa.linalg.solve)(0 * a, b))).all()
        definite = sa.assume(sa.Sparse.from_scipy(scipy.sparse.coo_array(laplacian(20, dtype))), "positive_definite")
        expected = np.linalg.solve(np.asarray(definite.to_jax()), np.ones(400))
        found = np.asarray(sa.linalg.solve(definite, np.ones(400, dtype)))
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


class BySubstitution:
    """A traced solver of lower triangles."""

    def __init__(self, matrix, *, positive_definite):
        assert not positive_definite
        n = matrix.shape[0]
        self.full = jnp.zeros((n, n), matrix.data.dtype).at[matrix.rows, matrix.columns].add(matrix.data)

    def solve(self, b, transposed):
        return jax.scipy.linalg.solve_triangular(self.full, b, trans=int(transposed), lower=True)


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(sparse_solvers, "SOLVERS", solvers := dict(sparse_solvers.SOLVERS))
    monkeypatch.setattr(sparse_direct, "SOLVERS", solvers)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_registration_of_a_traced_solver(rng, registry, dtype):
    sa.linalg.register_sparse_solver("substitution", BySubstitution, traced=True, sums_duplicates=True)
    x = sa.Sparse.from_scipy(scipy.sparse.coo_array(scipy.sparse.tril(random_matrix(N, dtype=dtype))))
    dense, b = np.asarray(x.to_jax()), rng.normal(size=N).astype(dtype)
    tolerance = 1e-4 if dtype == "float32" else 1e-11
    with sa.linalg.use_sparse_solver("substitution"):
        for a, full in ((x, dense), (x.mT, dense.T)):
            solution = np.asarray(jax.jit(sa.linalg.solve)(a, b))
            np.testing.assert_allclose(solution, np.linalg.solve(full, b), rtol=tolerance, atol=tolerance)
        logabsdet = float(sa.linalg.slogdet(x).logabsdet)  # by SuperLU
        np.testing.assert_allclose(logabsdet, np.linalg.slogdet(dense)[1], rtol=1e-5)
        wide = sa.Sparse.from_dense(np.asarray(as_jax(sa.stack([x, 2 * x])))) if dtype == "complex128" else None
        if wide is not None:
            found = np.asarray(sa.linalg.solve(wide, sa.asarray(b[:, None])))
            np.testing.assert_allclose(found[1], np.linalg.solve(2 * dense, b[:, None]), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("solve", "error"),
    [
        (lambda self, b, transposed: b[:-1], r"solve of a registered sparse solver must return shape \(300, 1\)"),
        (lambda self, b, transposed: b + 1j, "solve of a registered sparse solver must return dtype float64"),
        (None, "must return factors with a method solve"),
    ],
)
def test_solvers_that_break_the_protocol(registry, solve, error):
    class Wrong(BySubstitution):
        pass

    Wrong.solve = solve
    sa.linalg.register_sparse_solver("wrong", Wrong, traced=True)
    with sa.linalg.use_sparse_solver("wrong"), pytest.raises((TypeError, ValueError), match=error):
        sa.linalg.solve(matrix("klu"), sa.ones(N))


def test_names_of_provided_solvers_are_taken():
    with pytest.raises(ValueError, match="name must be new, got 'cholmod'"):
        sa.linalg.register_sparse_solver("cholmod", BySubstitution, traced=True)
    with pytest.raises(ValueError, match="'cholmod', 'cudss', 'klu'"), sa.linalg.use_sparse_solver("pardiso"):
        pass


def test_packages_that_are_missing_or_too_old(registry, monkeypatch):
    sparse_solvers.SOLVERS.clear()
    import sparsax

    monkeypatch.delattr(sparsax, "lu_solve")
    with (
        pytest.raises(ImportError, match="'klu' needs a version of sparsax that has lu_solve: pip install --upgrade"),
        sa.linalg.use_sparse_solver("klu"),
    ):
        pass
    monkeypatch.setitem(sys.modules, "sparsax", None)
    with (
        pytest.raises(ImportError, match="'cholmod' needs sparsax: pip install sparsax"),
        sa.linalg.use_sparse_solver("cholmod"),
    ):
        pass
    assert not sparse_solvers.SOLVERS


def test_packages_leave_the_precision_as_it_is():
    """klujax enables 64 bits when it is imported."""
    program = (
        "import os; os.environ['JAX_ENABLE_X64'] = '0'\n"
        "import jax, structarrays as sa\n"
        "with sa.linalg.use_sparse_solver('klujax'): pass\n"
        "assert not jax.config.jax_enable_x64"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
