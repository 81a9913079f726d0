"""Wide bands by LAPACK, and the same functions in XLA: for other devices, exported programs and `sa.host_calls(False)`.

The oracles are NumPy on the dense matrix, and SciPy.
"""

import contextlib
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax import export
from support import as_jax

import structarrays as sa
from structarrays._numerics import band_storage, lapack_bands

N = 60
# Where a function runs, and in which data type.
WAYS = [
    ("host", "float64"),
    ("host", "float32"),
    ("host", "complex128"),
    ("host", "complex64"),
    ("xla", "float64"),
    ("exported", "complex128"),
]
WHERE = {"host": contextlib.nullcontext, "xla": lambda: sa.host_calls(False), "exported": contextlib.nullcontext}


def calls_host(function, *arguments):
    """How often a compiled function calls the host."""
    return jax.jit(function).lower(*arguments).as_text().count("xla_buffer_python_cpu_callback")


def run(where, function, *arguments):
    """The results of a compiled function, as NumPy arrays."""
    with WHERE[where]():
        compiled = jax.jit(function)
        if where == "exported":
            compiled = export.deserialize(export.export(compiled)(*arguments).serialize()).call
        return jax.tree.map(np.asarray, compiled(*arguments))


def diagonals(rng, kl, ku, dtype="float64", batch=(), n=N, dominant=0.0):
    values = []
    for k in range(-kl, ku + 1):
        d = rng.normal(size=(*batch, n - abs(k))) + dominant * (k == 0)
        if "complex" in dtype:
            d = d + 1j * rng.normal(size=d.shape)
        values.append(d.astype(dtype))
    return values


def banded(values, kl, ku, n=N):
    return sa.Banded(values, tuple(range(-kl, ku + 1)), (n, n))


def definite(rng, w, dtype="float64", batch=(), n=N):
    """A Hermitian positive definite band with small and large eigenvalues."""
    below = diagonals(rng, w, 0, dtype, batch, n, dominant=1.0)
    factor = np.asarray(as_jax(banded(below, w, 0, n)))
    dense = factor @ np.conj(np.swapaxes(factor, -1, -2)) + 0.1 * np.eye(n, dtype=dtype)
    values = [np.diagonal(dense, k, -2, -1) for k in range(-w, w + 1)]
    return sa.assume(banded(values, w, w, n), "positive_definite"), dense.astype(dtype)


def backward_error(a, x, b):
    """Of each system, in units of rounding."""
    norm = np.abs(a).sum(-1).max(-1)[..., None, None] * np.abs(x).max((-2, -1), keepdims=True)
    size = norm + np.abs(b).max((-2, -1), keepdims=True)
    return (np.abs(a @ x - b).max((-2, -1), keepdims=True) / size).max() / np.finfo(x.dtype).eps


class TestSystems:
    @pytest.mark.parametrize(("where", "dtype"), WAYS)
    @pytest.mark.parametrize(("kl", "ku", "batch", "k"), [(9, 9, (), 1), (12, 3, (2,), 3), (3, 12, (), 2)])
    def test_general(self, rng, where, dtype, kl, ku, batch, k):
        A = banded(diagonals(rng, kl, ku, dtype, batch), kl, ku)
        dense = np.asarray(A.to_jax())
        b = rng.normal(size=(*batch, N, k)).astype(dtype)
        x, y = run(where, lambda A, b: (sa.linalg.solve(A, b), sa.linalg.solve(A.mT, b)), A, sa.asarray(b))
        assert backward_error(dense, x, b) < 20
        assert backward_error(np.swapaxes(dense, -1, -2), y, b) < 20

    @pytest.mark.parametrize(("where", "dtype"), WAYS)
    @pytest.mark.parametrize(("batch", "k"), [((), 1), ((2,), 3)])
    def test_definite(self, rng, where, dtype, batch, k):
        A, dense = definite(rng, 14, dtype, batch)
        b = rng.normal(size=(*batch, N, k)).astype(dtype)
        x = run(where, lambda A, b: sa.linalg.solve(A, b), A, sa.asarray(b))
        assert backward_error(dense, x, b) < 20
        lower = run(where, lambda A: as_jax(sa.linalg.cholesky(A)), A)
        np.testing.assert_allclose(lower, np.linalg.cholesky(dense), atol=2e3 * np.finfo(dtype).eps)

    @pytest.mark.parametrize("kind", ["general", "definite"])
    def test_vmap(self, rng, kind):
        """One call for a whole batch, and one factorization for many right-hand sides."""
        A = definite(rng, 14, batch=(4,))[0] if kind == "definite" else banded(diagonals(rng, 9, 9, batch=(4,)), 9, 9)
        b = rng.normal(size=(4, N))
        dense = np.asarray(A.to_jax())
        solve = jax.jit(jax.vmap(lambda A, b: sa.linalg.solve(A, b)))
        np.testing.assert_allclose(solve(A, b), np.linalg.solve(dense, b[..., None])[..., 0], rtol=1e-8, atol=1e-9)
        many = jax.jit(jax.vmap(lambda b: sa.linalg.solve(A[0], b)))(jnp.asarray(b))
        np.testing.assert_allclose(many, np.linalg.solve(dense[0], b.T).T, rtol=1e-8, atol=1e-9)
        for function in (solve, jax.jit(jax.vmap(lambda A: as_jax(sa.linalg.slogdet(A).logabsdet)))):
            arguments = (A, b) if function is solve else (A,)
            if kind == "general" or function is solve:
                assert calls_host(function, *arguments) == 1

    @pytest.mark.parametrize("where", WHERE)
    @pytest.mark.parametrize("kind", ["general", "definite"])
    def test_derivatives(self, rng, where, kind):
        """Of the solution, by A and by b, forward and reverse, against NumPy's dense solution."""
        A, dense = definite(rng, 14) if kind == "definite" else (banded(diagonals(rng, 9, 9, dominant=5.0), 9, 9), None)
        dense = np.asarray(A.to_jax()) if dense is None else dense
        b, c = rng.normal(size=(2, N))

        def value(A, b):
            return jnp.vdot(c, as_jax(sa.linalg.solve(A, b)))

        by_A, by_b = run(where, jax.grad(value, argnums=(0, 1)), A, jnp.asarray(b))
        x, adjoint = np.linalg.solve(dense, b), np.linalg.solve(dense.T, c)
        np.testing.assert_allclose(by_b, adjoint, rtol=1e-7, atol=1e-8)
        expected = -np.outer(adjoint, x)
        for k in (-9, 0, 4):
            if kind == "general":  # a definite matrix reads its lower triangle only
                np.testing.assert_allclose(by_A.diagonal(k), np.diagonal(expected, k), rtol=1e-7, atol=1e-8)
        direction = jax.jvp(value, (A, jnp.asarray(b)), (A, jnp.asarray(b)))[1]
        np.testing.assert_allclose(direction, 0, atol=1e-8 * np.abs(value(A, b)) + 1e-9)

    @pytest.mark.parametrize("where", WHERE)
    def test_singular_and_indefinite(self, rng, where):
        values = diagonals(rng, 9, 9, batch=(2,))
        for d in values:
            d[1] = 0
        b = np.ones((2, N, 1))
        A = banded(values, 9, 9)
        x, found = run(where, lambda A, b: (sa.linalg.solve(A, b), sa.linalg.slogdet(A)), A, sa.asarray(b))
        assert np.isfinite(x[0]).all() and np.isnan(x[1]).all()
        assert found.sign[1] == 0 and found.logabsdet[1] == -np.inf
        np.testing.assert_allclose(found.logabsdet[0], np.linalg.slogdet(np.asarray(A.to_jax())[0])[1], rtol=1e-12)
        D, _ = definite(rng, 14)
        indefinite = sa.assume(D - 30 * sa.eye(N), "positive_definite")
        x, factor = run(where, lambda A, b: (sa.linalg.solve(A, b), sa.linalg.cholesky(A)), indefinite, sa.ones(N))
        assert np.isnan(x).all() and np.isnan(np.asarray(factor.diagonal(0))).all()
        if where == "host":
            with pytest.raises(np.linalg.LinAlgError):
                sa.linalg.solve(A, sa.asarray(b))
            with pytest.raises(np.linalg.LinAlgError):
                sa.linalg.solve(indefinite, sa.ones(N))

    @pytest.mark.parametrize("where", WHERE)
    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_values_that_are_not_finite(self, rng, where, bad):
        """They spread, and raise nothing: eager calls do not take them for singular matrices."""
        D, _ = definite(rng, 14)
        values = [np.array(D.diagonal(k)) for k in range(-14, 15)]
        values[14][7] = bad
        for A in (banded(values, 14, 14), sa.assume(banded(values, 14, 14), "positive_definite")):
            x = run(where, lambda A, b: sa.linalg.solve(A, b), A, sa.ones(N))
            found = [x, np.asarray(sa.linalg.solve(A, sa.ones(N)))] if where == "host" else [x]
            # A row of infinities has the solution zero in exact arithmetic, too.
            assert all(np.isnan(x).any() if np.isnan(bad) else np.isnan(x).any() or x[7] == 0 for x in found)

    @pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
    def test_scales(self, rng, scale):
        D, dense = definite(rng, 14)
        for A in (scale * D, sa.forget(scale * D)):
            x = np.asarray(sa.linalg.solve(A, scale * sa.ones(N)))
            np.testing.assert_allclose(dense @ x, 1, rtol=1e-9)

    def test_narrow_bands_that_need_pivots(self, rng):
        """The first rows of a long matrix tell whether elimination without pivoting is tried."""
        n = 3000
        for dominant in (0.0, 8.0):
            values = diagonals(rng, 3, 2, n=n, dominant=dominant)
            if dominant:
                values[3][2000:] = 1e-14  # good at first, bad later
            A = banded(values, 3, 2, n)
            b = rng.normal(size=(n, 2))
            x = run("host", lambda A, b: sa.linalg.solve(A, b), A, sa.asarray(b))
            storage = np.zeros((6, n))
            for k, d in zip(range(-3, 3), values, strict=True):
                storage[2 - k, max(0, k) : n + min(0, k)] = d
            np.testing.assert_allclose(x, scipy.linalg.solve_banded((3, 2), storage, b), rtol=1e-7, atol=1e-9)


@pytest.mark.costly
@pytest.mark.parametrize(("where", "dtype"), WAYS)
def test_lu_factors(rng, where, dtype):
    A = banded(diagonals(rng, 8, 9, dtype, (2,)), 8, 9)
    b = rng.normal(size=(2, N, 2)).astype(dtype)
    dense = np.asarray(A.to_jax())

    def solutions(A, b):
        factors = sa.linalg.lu_factor(A)
        return sa.linalg.lu_solve(factors, b), sa.linalg.lu_solve(factors, b, trans=1)

    x, y = run(where, solutions, A, sa.asarray(b))
    assert backward_error(dense, x, b) < 20 and backward_error(np.swapaxes(dense, -1, -2), y, b) < 20


@pytest.mark.parametrize(("where", "dtype"), WAYS)
def test_determinants_and_their_derivatives(rng, where, dtype):
    A = banded(diagonals(rng, 8, 9, dtype), 8, 9)
    dense = np.asarray(A.to_jax())
    found = run(where, sa.linalg.slogdet, A)
    sign, logarithm = np.linalg.slogdet(dense.astype("complex128" if "complex" in dtype else "float64"))
    tolerance = 1e3 * np.finfo(dtype).eps
    np.testing.assert_allclose(found.sign, sign, atol=tolerance)
    np.testing.assert_allclose(found.logabsdet, logarithm, atol=tolerance)
    if dtype == "float64":
        gradient = run(where, jax.grad(lambda A: as_jax(sa.linalg.slogdet(A).logabsdet)), A)
        inverse = np.linalg.inv(dense).T
        for k in (-8, 0, 9):
            np.testing.assert_allclose(gradient.diagonal(k), np.diagonal(inverse, k), rtol=1e-7, atol=1e-9)


def test_derivative_of_a_cholesky_factor(rng):
    D, _ = definite(rng, 14)
    values = [np.asarray(D.diagonal(k)) for k in range(-14, 15)]

    def trace(values):
        return as_jax(sa.sum(sa.linalg.cholesky(banded(values, 14, 14))))

    with sa.host_calls(False):
        expected = jax.jit(jax.grad(trace))(values)
    for a, b in zip(jax.jit(jax.grad(trace))(values), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


def test_storage_of_any_length(rng):
    """Copies in blocks, whose ends may lie before, in and after each diagonal."""
    for n in (1, 2, 7, 8, 9, 60):
        for kl, ku in ((0, 0), (1, 3), (5, 2)):
            entries = {ku - k: (max(0, k), rng.normal(size=n - abs(k))) for k in range(-kl, ku + 1) if abs(k) < n}
            expected = np.zeros((n, kl + ku + 2))
            for p, (first, vector) in entries.items():
                expected[first : first + vector.size, p] = vector
            found = np.full_like(expected, np.nan)
            before, band_storage._BLOCK = band_storage._BLOCK, 1
            try:
                band_storage.write_columns(found, entries)
                np.testing.assert_array_equal(found, expected)
                targets = [np.empty(n - k) for k in range(min(n, 4))]
                band_storage.write_diagonals(targets, np.resize(expected, (n, len(targets))))
            finally:
                band_storage._BLOCK = before
            for k, target in enumerate(targets):
                np.testing.assert_array_equal(target, np.resize(expected, (n, len(targets)))[: n - k, k])


@pytest.mark.parametrize("n", [1, 2, 5, 9, 40, 300])
@pytest.mark.parametrize("widths", [(1, 1), (2, 5), (5, 2), (7, 7), (70, 3)])
def test_factors_do_not_depend_on_what_the_memory_contained(rng, n, widths):
    """LAPACK clears the space for the diagonals that exchanges of rows add; the space outside of the matrix is cleared before."""
    kl, ku = (min(w, n - 1) for w in widths)
    offsets = tuple(range(-kl, ku + 1))
    diagonals = [rng.normal(size=n - abs(k)) for k in offsets]
    (gbtrf,) = lapack_bands.lapack_functions("gbtrf", dtype="float64")
    storage = np.zeros((2 * kl + ku + 1, n))
    for k, d in zip(offsets, diagonals, strict=True):
        storage[kl + ku - k, max(0, k) : n + min(0, k)] = d
    expected, expected_pivots, info = gbtrf(storage, kl, ku)
    assert info == 0
    columns = np.full((n, 2 * kl + ku + 1), np.nan)
    pivots, ok = lapack_bands._factor_in_place(gbtrf, columns, offsets, diagonals)
    assert ok
    np.testing.assert_array_equal(columns, expected.T)
    np.testing.assert_array_equal(pivots, expected_pivots)


class TestHostCalls:
    def test_policy(self):
        with pytest.raises(TypeError, match="host_calls: allowed must be True or False, got 'no'"), sa.host_calls("no"):
            pass

    def test_a_compiled_function_is_traced_again_under_the_other_policy(self, rng):
        A = banded(diagonals(rng, 9, 9), 9, 9)
        solve = jax.jit(lambda A: as_jax(sa.linalg.solve(A, sa.ones(N))))
        assert calls_host(solve, A) == 1
        with_host = solve(A)
        with sa.host_calls(False):
            assert calls_host(solve, A) == 0
            without = solve(A)
        np.testing.assert_allclose(with_host, without, rtol=1e-8, atol=1e-10)

    def test_loops_and_conditions(self, rng):
        D, dense = definite(rng, 14)

        @jax.jit
        def steps(b):
            def step(b, _):
                b = jax.lax.cond(b[0] > 1e9, lambda b: b, lambda b: sa.linalg.solve(D, b), b)
                return b, jnp.sum(b)

            return jax.lax.scan(step, b, None, length=5)

        b = rng.normal(size=N)
        last, sums = steps(jnp.asarray(b))
        for total in sums:
            b = np.linalg.solve(dense, b)
            np.testing.assert_allclose(total, b.sum(), rtol=1e-7)
        np.testing.assert_allclose(last, b, rtol=1e-7)

    def test_without_jit(self, rng):
        A = banded(diagonals(rng, 9, 9), 9, 9)
        dense = np.asarray(A.to_jax())
        with jax.disable_jit():
            np.testing.assert_allclose(sa.linalg.solve(A, sa.ones(N)), np.linalg.solve(dense, np.ones(N)), rtol=1e-8)
            np.testing.assert_allclose(sa.linalg.slogdet(A).logabsdet, np.linalg.slogdet(dense)[1], rtol=1e-12)

    def test_many_threads(self, rng):
        """Twenty threads solve at the same time, each its own system, with one compiled function."""
        solve = jax.jit(lambda A, b: as_jax(sa.linalg.solve(A, b)))
        systems = [(banded(diagonals(rng, 9, 9, dominant=9.0), 9, 9), rng.normal(size=N)) for _ in range(20)]
        wrong = []

        def work(A, b):
            expected = np.linalg.solve(np.asarray(A.to_jax()), b)
            for _ in range(20):
                if not np.allclose(solve(A, jnp.asarray(b)), expected):
                    wrong.append(b)

        threads = [threading.Thread(target=work, args=system) for system in systems]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert not wrong

    @pytest.mark.slow
    def test_devices(self):
        """Inside of `jax.shard_map` each device calls LAPACK for its own systems."""
        code = """
import jax, numpy as np, structarrays as sa
from jax.sharding import PartitionSpec as P
mesh = jax.make_mesh((4,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
rng = np.random.default_rng(0)
n, offsets = 50, tuple(range(-9, 10))
A = sa.Banded([rng.normal(size=(8, n - abs(k))) + 9 * (k == 0) for k in offsets], offsets, (n, n))
b = rng.normal(size=(8, n, 1))
solve = jax.jit(jax.shard_map(sa.linalg.solve, mesh=mesh, in_specs=(P("i"), P("i")), out_specs=P("i"), check_vma=False))
x = np.asarray(solve(A, sa.asarray(b)))
logdet = lambda A: sa.linalg.slogdet(A).logabsdet.to_jax()
checked = jax.jit(jax.shard_map(logdet, mesh=mesh, in_specs=P("i"), out_specs=P("i")))  # check_vma=True
assert np.allclose(checked(A), np.linalg.slogdet(np.asarray(A.to_jax()))[1])
assert np.allclose(x, np.linalg.solve(np.asarray(A.to_jax()), b))
print("right")
"""
        flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_ENABLE_X64": "1"}
        found = subprocess.run(
            [sys.executable, "-c", code],
            env={**__import__("os").environ, **flags},
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.stdout == "right\n", found.stderr
