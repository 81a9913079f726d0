"""Our matrices in `scipy.sparse.linalg`, as they are and as its operators, against the same functions on dense matrices."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse.linalg as linalg

import structarrays as sa
from structarrays.interop.linear_operators import adjoint_product
from structarrays.testing import STRUCTURES, sample

N = 12
DTYPES = ("float64", "complex128")


@pytest.fixture(autouse=True)
def own_numbers(rng):
    """`numbers` are those of the test."""
    global RNG
    RNG = rng


def numbers(*shape, dtype="float64"):
    x = RNG.normal(size=shape)
    return x + 1j * RNG.normal(size=shape) if dtype == "complex128" else x


def array(structure, dtype):
    """Each structure, complex and square, or real and rectangular (square where it has no other), with its dense matrix."""
    rectangular = ((N, 7), (5, N))[STRUCTURES.index(structure) % 2]
    x = sample(structure, rectangular if dtype == "float64" else (N, N), dtype=dtype)
    x = sample(structure, (N, N), dtype=dtype) if x is None else x
    if x is None:
        assert sample(structure, (N, N), dtype=next(d for d in DTYPES if d != dtype)) is not None
        pytest.skip("there is no such array")
    return x, np.asarray(x)


BOTH = ("Banded", "Kronecker", "LowRank", "Sparse", "Sum", "Toeplitz")
"""Structures of which real and complex ones are tried in every test; of others now this, now that."""


def turns(structures):
    return [(s, dtype) for i, s in enumerate(structures) for j, dtype in enumerate(DTYPES) if s in BOTH or i % 2 == j]


def matrix(structure, dtype, requires=""):
    """A sample with its dense matrix."""
    x = sample(structure, (N, N), dtype=dtype, requires=requires)
    if x is None or requires and np.linalg.cond(np.asarray(x)) > 1e6:
        pytest.skip("there is no such array")
    return x, np.asarray(x)


def close(result, expected, tolerance=1e-9):
    assert type(result) is np.ndarray
    scale = max(1.0, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(result, expected, atol=tolerance * scale, rtol=0)


# ---- the methods ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_methods(structure, dtype):
    x, host = array(structure, dtype)
    m, n = x.shape
    complex_vectors = x.dtype.kind == "c"
    dtype = DTYPES[complex_vectors]
    with sa.densify("error"):
        for shape in ((), (1,)):
            v, w = numbers(n, *shape, dtype=dtype), numbers(m, *shape, dtype=dtype)
            for result, expected in ((x.matvec(v), host @ v), (x.rmatvec(w), host.conj().T @ w)):
                assert result.flags.writeable
                assert result.flags.owndata
                close(result, expected)
        V, W = numbers(n, 3, dtype=dtype), numbers(m, 3, dtype=dtype)
        close(x.matmat(V), host @ V)
        close(x.rmatmat(W), host.conj().T @ W)


def test_kinds_of_vectors():
    x = sa.tridiagonal([1.0, 2.0], [3.0, 4.0, 5.0], [0.5, 0.25])
    host, v = np.asarray(x), np.array([1.0, 2.0, 4.0])
    for y in (sa.asarray(v), jnp.asarray(v)):
        for result, expected in ((x.matvec(y), host @ v), (x.rmatvec(y), host.T @ v)):
            assert type(result) is type(y)
            np.testing.assert_allclose(np.asarray(result), expected)
    close(x.matvec(np.arange(3)), host @ np.arange(3))
    close(x.rmatvec(v[::-1]), host.T @ v[::-1])
    assert x.astype(sa.float32).matvec(v.astype(np.float32)).dtype == np.float32
    close((x * 1j).rmatvec(v), (host * 1j).conj().T @ v)
    close(x.rmatvec(v * 1j), host.T @ (v * 1j))


def test_what_is_returned_is_nobody_elses():
    x, v = sa.Identity(200), np.ones(200)
    result = x.matvec(v)
    result[:] = 7.0
    np.testing.assert_array_equal(v, 1.0)
    np.testing.assert_array_equal(x.matvec(v), 1.0)


@pytest.mark.parametrize("name", ["matvec", "rmatvec", "matmat", "rmatmat"])
def test_bad_arguments(name):
    x = sa.Banded([[1.0, 2.0, 3.0]], (0,), (3, 4))
    method = getattr(x, name)
    with pytest.raises(ValueError, match=rf"{name}: the .* must have shape \([34], ?K?\).* got \(5,\)"):
        method(np.ones(5))
    with pytest.raises(ValueError, match=rf"{name}: the .* got \(2, 3, 4\)"):
        method(np.ones((2, 3, 4)))
    with pytest.raises(TypeError, match=f"{name}: the argument must be an array .* got list"):
        method([1.0, 2.0, 3.0, 4.0])
    for other in (sa.ones(3), sa.Diagonal(np.ones((2, 3))), sa.asarray(1.0)):
        with pytest.raises(
            ValueError,
            match=rf"{name}: x must be a matrix, got shape \({'|'.join(map(str, other.shape[:1]))}",
        ):
            getattr(other, name)(np.ones(3))


def test_one_compiled_call():
    x, v = sa.Toeplitz(numbers(N), numbers(N)), numbers(N)
    x.matvec(v), x.rmatvec(v)
    counts = sa.matmul._fast._cache_size(), adjoint_product._fast._cache_size()
    for _ in range(3):
        x.matvec(v), x.rmatvec(v)
    assert (sa.matmul._fast._cache_size(), adjoint_product._fast._cache_size()) == counts


def test_record_shows_the_products():
    x = sa.tridiagonal(-np.ones(3), 2 * np.ones(4), -np.ones(3))
    with sa.record() as log:
        x.matvec(np.ones(4))
        x.rmatvec(np.ones(4))
    assert [event.function for event in log.events] == ["matmul", "matrix_transpose", "matmul"]


# ---- the solvers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("structure", "dtype"), turns(STRUCTURES))
def test_systems_with_a_positive_definite_matrix(structure, dtype):
    A, host = matrix(structure, dtype, "positive definite")
    b = numbers(N, dtype=dtype)
    wanted = np.linalg.solve(host, b)
    tolerance = 1e-8 * np.linalg.cond(host)
    methods = [linalg.cg, linalg.gmres, linalg.bicgstab] + [linalg.minres] * (dtype == "float64")
    with sa.densify("error"):
        for method in methods:
            x, code = method(A, b, rtol=1e-12, maxiter=1000)
            assert code == 0, method
            close(x, wanted, tolerance)
        close(linalg.lsqr(A, b, atol=1e-14, btol=1e-14, iter_lim=1000)[0], wanted, tolerance)
        close(linalg.lsmr(A, b, atol=1e-14, btol=1e-14, maxiter=1000)[0], wanted, tolerance)


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize(("structure", "dtype"), turns(STRUCTURES))
def test_eigenvalues_and_norms(structure, dtype):
    A, host = matrix(structure, dtype, "positive definite")
    values = np.linalg.eigvalsh(host)
    with sa.densify("error"):
        found, vectors = linalg.eigsh(A, k=3, v0=numbers(N))
        close(np.sort(found), values[-3:])
        close(host @ vectors, found * vectors, 1e-7)
        block = linalg.lobpcg(sa.interop.scipy.operator(A), numbers(N, 2, dtype=dtype), tol=1e-10, maxiter=200)
        close(np.sort(block[0]), values[-2:], 1e-7)
        assert linalg.onenormest(A, t=N) == pytest.approx(np.linalg.norm(host, 1))
        estimates = []
        for x in (host, A, sa.interop.scipy.operator(A)):
            np.random.seed(0)  # which the estimate begins with
            estimates.append(linalg.onenormest(x))
        np.testing.assert_allclose(estimates, estimates[0], rtol=1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_singular_values_and_least_squares(structure, dtype):
    A, host = array(structure, dtype)
    b = numbers(A.shape[0], dtype=DTYPES[A.dtype.kind == "c"])
    wanted = np.linalg.svd(host, compute_uv=False)
    if np.count_nonzero(wanted > 1e-8 * max(wanted[0], 1e-300)) < 3:
        pytest.skip("Lanczos' method needs a rank of three to find two")
    with sa.densify("error"):
        for x in (A, sa.interop.scipy.operator(A)):
            u, s, vh = linalg.svds(x, k=2, v0=numbers(min(A.shape)))
            close(np.sort(s)[::-1], wanted[:2], 1e-7)
            close(u.conj().T @ host @ vh.conj().T, np.diag(s), 1e-7)
        # Of several solutions both find the shortest; how small a residual is by how much the normal equations are off.
        least = linalg.lsqr(A, b, atol=1e-14, btol=1e-14, iter_lim=5000)[0]
    close(host.conj().T @ (host @ least - b), np.zeros(A.shape[1]), 1e-6 * max(1.0, wanted[0] ** 2))


@pytest.mark.parametrize(("structure", "dtype"), turns(STRUCTURES))
def test_exponentials(structure, dtype):
    A, host = matrix(structure, dtype)
    L, B = sa.interop.scipy.operator(A), numbers(N, 2, dtype=dtype)
    trace = np.trace(host)
    with sa.densify("error"):
        close(
            linalg.expm_multiply(L, B, traceA=trace),
            scipy.linalg.expm(host) @ B,
            1e-8 * np.exp(np.linalg.norm(host, 2)),
        )
        close(
            linalg.expm_multiply(L, B[:, 0], traceA=trace),
            scipy.linalg.expm(host) @ B[:, 0],
            1e-8 * np.exp(np.linalg.norm(host, 2)),
        )
        if structure == "Banded":
            steps = linalg.expm_multiply(L, B, start=0.0, stop=0.5, num=3, traceA=trace)
            for step, t in zip(steps, (0.0, 0.25, 0.5), strict=True):
                close(step, scipy.linalg.expm(t * host) @ B, 1e-8)


def test_the_other_solvers():
    A = sa.tridiagonal(-np.ones(N - 1), 3.0 + np.arange(N), -0.5 * np.ones(N - 1))
    host, b = np.asarray(A), numbers(N)
    with sa.densify("error"):
        for method in (linalg.bicg, linalg.cgs, linalg.lgmres, linalg.qmr, linalg.gcrotmk, linalg.tfqmr):
            x, code = method(A, b, rtol=1e-12)
            assert code == 0, method
            close(x, np.linalg.solve(host, b))
        values = linalg.eigs(A, k=2, v0=b, return_eigenvectors=False)
        close(np.sort(values.real), np.sort(np.linalg.eigvals(host).real)[-2:])
        x, code = linalg.cg(A.mT @ A, b, M=sa.linalg.inv(sa.Diagonal(sa.linalg.diagonal(A) ** 2)), rtol=1e-12)
        assert code == 0
        close(x, np.linalg.solve(host.T @ host, b))
        block = linalg.lobpcg((A.mT @ A).matmat, numbers(N, 2), tol=1e-10, maxiter=200)
        close(np.sort(block[0]), np.linalg.eigvalsh(host.T @ host)[-2:], 1e-7)


@pytest.mark.slow
def test_large_matrices():
    """None of the methods makes a dense matrix: these have 10^10 elements."""
    n = 100_000
    rng = np.random.default_rng(1)
    A = sa.tridiagonal(-np.ones(n - 1), 2.5 + np.arange(n) / n, -np.ones(n - 1))
    b = rng.normal(size=n)
    x, code = linalg.cg(A, b, rtol=1e-10)
    assert code == 0
    assert np.abs(A.matvec(x) - b).max() < 1e-7
    inverse = sa.linalg.inv(A)
    with sa.densify("error"):
        values = linalg.eigsh(A, k=3, sigma=0.0, OPinv=inverse, return_eigenvectors=False, v0=b)
        wanted = scipy.linalg.eigh_tridiagonal(
            2.5 + np.arange(n) / n, -np.ones(n - 1), select="i", select_range=(0, 2), eigvals_only=True
        )
        np.testing.assert_allclose(np.sort(values), wanted, rtol=1e-9)
        solution, code = linalg.cg(A, b, M=inverse, rtol=1e-10, maxiter=3)
        assert code == 0


# ---- algebra ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("structure", "dtype"), turns(STRUCTURES))
def test_algebra_of_operators(structure, dtype):
    A, host = matrix(structure, dtype)
    other = numbers(N, N, dtype=dtype)
    L, ours = linalg.aslinearoperator(other), sa.interop.scipy.operator(A)
    banded = sa.tridiagonal(np.ones(N - 1), np.arange(float(N)), np.ones(N - 1))
    banded_host = np.asarray(banded)
    V, v = numbers(N, 3, dtype=dtype), numbers(N, dtype=dtype)
    with sa.densify("error"):
        cases = [
            (A + L, host + other),
            (L + A, host + other),
            (A - L, host - other),
            (L - A, other - host),
            (L @ ours, other @ host),
            (ours @ L, host @ other),
            (2 * ours - L, 2 * host - other),
            (ours @ banded, host @ banded_host),
            (banded @ ours, banded_host @ host),
            (banded * ours, banded_host @ host),
            (ours + banded, host + banded_host),
            (banded - ours, banded_host - host),
            (ours.T, host.T),
            (ours.H, host.conj().T),
            (ours.T.H, host.conj()),
            (linalg.aslinearoperator(A).T, host.T),
            (linalg.aslinearoperator(A).H, host.conj().T),
            (ours**2, host @ host),
            (-ours / 2, -host / 2),
        ]
        for operator, expected in cases:
            assert isinstance(operator, linalg.LinearOperator)
            close(operator @ V, expected @ V)
            close(operator @ v, expected @ v)
            close(operator.H @ V, expected.conj().T @ V)
            close(operator.T.matvec(v), expected.T @ v)
        close(V.T @ ours, V.T @ host)


ADJOINTS = {
    "matvec": lambda host, v: host @ v,
    "rmatvec": lambda host, v: host.conj().T @ v,
    "matmat": lambda host, v: host @ v,
    "rmatmat": lambda host, v: host.conj().T @ v,
}


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_follow_the_operands(dtype):
    """Of NumPy's vectors NumPy's, with memory of their own, and of ours ours: in every version of SciPy."""
    A, host = matrix("Banded", dtype)
    ours, scipys = sa.interop.scipy.operator(A), linalg.aslinearoperator(A)
    with sa.densify("error"):
        for name, expected in ADJOINTS.items():
            V = numbers(N, *(3,) * name.endswith("mat"), dtype=dtype)
            for operator in (A, ours, scipys, scipys.H.H, scipys.T.T):
                result = getattr(operator, name)(V)
                close(result, expected(host, V))
                assert result.flags.writeable and not np.shares_memory(result, V)
            for operator in (A, ours):
                for vector in (sa.asarray(V), jnp.asarray(V)):
                    result = getattr(operator, name)(vector)
                    assert type(result) is type(vector)
                    close(np.asarray(result), expected(host, V))
        for shape in ((N,), (N, 3)):
            V = numbers(*shape, dtype=dtype)
            for result, expected in ((ours @ V, host @ V), (V.T @ ours, V.T @ host), (ours.dot(V), host @ V)):
                close(result, expected)
            for vector in (sa.asarray(V), jnp.asarray(V)):
                products = [(ours @ vector, host @ V), (ours.dot(vector), host @ V)]
                if isinstance(vector, sa.Array):  # those of JAX refuse an operator of SciPy before it is asked
                    products.append(((vector.mT if vector.ndim == 2 else vector) @ ours, V.T @ host))
                for result, expected in products:
                    assert type(result) is type(vector)
                    close(np.asarray(result), expected)


def test_only_scipys_own_code_gets_numpys_arrays():
    """In code of everybody else a product of an array of ours and one of NumPy is ours."""
    A, v = sa.Diagonal(np.arange(1.0, 4.0)), np.ones(3)
    assert type(A @ v) is sa.Dense
    assert type(linalg.LinearOperator((3, 3), matvec=lambda x: A @ x, dtype=float)._matvec(v)) is sa.Dense
    asks = {"__name__": "scipy.sparse.linalg._of_the_future", "A": A, "v": v, "u": jnp.ones(3), "jit": jax.jit}
    exec("product, jaxs, sums, traced = A @ v, A @ u, A + v, jit(lambda u: A @ v + u)(u)", asks)
    close(asks["product"], np.arange(1.0, 4.0))
    assert isinstance(asks["jaxs"], jax.Array) and all(isinstance(asks[name], sa.Array) for name in ("sums", "traced"))


KRYLOV = ("cg", "cgs", "bicg", "bicgstab", "gmres", "lgmres", "minres", "qmr", "gcrotmk", "tfqmr", "lsqr", "lsmr")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("structure", ["Banded", "Toeplitz", "LowRank", "Sparse", "Kronecker", "Inverse"])
@pytest.mark.parametrize("method", KRYLOV)
def test_krylov_methods(method, structure, dtype):
    """Arrays as they are, as SciPy's operators and as ours, with right-hand sides of NumPy, of JAX and of ours."""
    if (method, dtype) == ("minres", "complex128"):
        pytest.skip("minres is for real matrices")
    A, host = matrix(structure, dtype, "positive definite")
    if np.linalg.cond(host) > 1e4:
        A, host = A + 2 * sa.eye(N, dtype=dtype), host + 2 * np.eye(N)
    b = numbers(N, dtype=dtype)
    wanted, tolerance = np.linalg.solve(host, b), 1e-8 * np.linalg.cond(host)
    accuracy = {"lsqr": {"atol": 1e-14, "btol": 1e-14}, "lsmr": {"atol": 1e-14, "btol": 1e-14}}
    options = accuracy.get(method, {"rtol": 1e-12, "maxiter": 1000})
    with sa.densify("error"):
        for operator in (A, linalg.aslinearoperator(A), sa.interop.scipy.operator(A)):
            found = getattr(linalg, method)(operator, b, **options)[0]
            close(found, wanted, tolerance)
        for vector in (sa.asarray(b), jnp.asarray(b)):
            found = getattr(linalg, method)(sa.interop.scipy.operator(A), vector, **options)[0]
            # SciPy makes NumPy's array of most right-hand sides; what it leaves as it is stays ours.
            assert type(found) in (np.ndarray, sa.Dense)
            close(np.asarray(found), wanted, tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalue_methods_with_each_kind_of_operator(dtype):
    A, host = matrix("Banded", dtype, "positive definite")
    values, v0 = np.linalg.eigvalsh(host), numbers(N, dtype=dtype)
    with sa.densify("error"):
        for operator in (A, linalg.aslinearoperator(A), sa.interop.scipy.operator(A)):
            close(np.sort(linalg.eigsh(operator, k=2, v0=v0, return_eigenvectors=False)), values[-2:])
            close(np.sort(linalg.eigs(operator, k=2, v0=v0, return_eigenvectors=False).real), values[-2:])
            close(np.sort(linalg.svds(operator, k=2, v0=v0, return_singular_vectors=False)), values[-2:], 1e-7)
            assert linalg.onenormest(operator, t=N) == pytest.approx(np.linalg.norm(host, 1))
            found, vectors = linalg.lobpcg(operator, numbers(N, 2, dtype=dtype), tol=1e-10, maxiter=300)
            close(np.sort(found), values[-2:], 1e-7)
            close(host @ vectors, vectors * found, 1e-4)


def test_conjugates_by_method():
    z = sa.Diagonal([1.0 + 2.0j, 3.0])
    for result in (z.conj(), z.conjugate()):
        assert type(result) is sa.Diagonal
        np.testing.assert_array_equal(np.asarray(result), np.asarray(z).conj())


def test_operators_of_scipy_take_arrays_by_their_values():
    A, L = sa.Diagonal(np.arange(1.0, 5)), linalg.aslinearoperator(np.arange(16.0).reshape(4, 4))
    with sa.densify("error"), pytest.raises(sa.DensifyError):
        L @ A
    close(L @ A, np.arange(16.0).reshape(4, 4) @ np.asarray(A))
    close(sa.ones((2, 4)) @ L, np.ones((2, 4)) @ np.arange(16.0).reshape(4, 4))
    close(sa.ones(4) @ L, np.ones(4) @ np.arange(16.0).reshape(4, 4))


def test_bad_operators():
    with pytest.raises(TypeError, match="operator: x must be an array of structarrays, got ndarray"):
        sa.interop.scipy.operator(np.eye(3))
    with pytest.raises(ValueError, match=r"operator: x must be a matrix, \(M, N\), got shape \(2, 3, 3\)"):
        sa.interop.scipy.operator(sa.Diagonal(np.ones((2, 3))))
    L = linalg.aslinearoperator(np.eye(3))
    with pytest.raises(TypeError, match="unsupported operand"):
        sa.ones(3) + L
    with pytest.raises(TypeError, match="unsupported operand"):
        sa.eye(3) + object()
    with warnings.catch_warnings(), pytest.raises(ValueError, match="shape mismatch"):
        sa.eye(4) + L
