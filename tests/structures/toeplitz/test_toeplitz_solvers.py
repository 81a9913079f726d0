"""Systems, inverses and determinants of Toeplitz matrices against SciPy's and NumPy's, also where leading minors vanish."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.linalg
from support import as_jax

import structarrays as sa
from structarrays._structures.toeplitz import solvers as toeplitz_solvers
from structarrays._structures.toeplitz import toeplitz_elimination

pytestmark = pytest.mark.costly

N = 300  # above the size up to which the dense form is solved
POLICIES = ["allow", "error"]  # if the recursion fails: the dense form, or elimination


@pytest.fixture(autouse=True)
def _determinants_by_elimination(monkeypatch):
    """Compute determinants of all sizes above 256 by elimination, which is meant for larger ones."""
    monkeypatch.setattr(toeplitz_solvers, "_DETERMINED_AS_DENSE", 0)


def kac_murdock_szego(n, rho):
    """The correlations of an autoregressive process of first order."""
    return rho ** np.arange(n), None


def prolate(n, w):
    """Its eigenvalues gather at 0 and 1."""
    k = np.arange(1, n)
    return np.concatenate([[2 * w], np.sin(2 * np.pi * w * k) / (np.pi * k)]), None


def gaussian(n, noise):
    c = np.exp(-0.5 * (np.arange(n) / 20) ** 2)
    c[0] += noise
    return c, None


def complex_definite(n):
    k = np.arange(n)
    c = 0.95**k * np.exp(0.7j * k)
    c[0] += 0.1
    return c, None


def random(n, dtype=float, diagonal=None, hermitian=False):
    rng = np.random.default_rng(n)
    c, r = rng.normal(size=(2, n)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        c, r = c + 1j * rng.normal(size=n), r + 1j * rng.normal(size=n)
    c[0] = r[0] = (c[0].real if hermitian else c[0]) if diagonal is None else diagonal
    return c, None if hermitian else r


def shifts(n):
    """Two diagonals next to an empty one, and a full corner: every leading minor of odd order vanishes but the last ones."""
    c, r = np.zeros(n), np.zeros(n)
    c[1] = r[1] = 1
    c[-60:], r[-60:] = 0.01, -0.02
    return c, r


DEFINITE = {
    "correlations 0.5": kac_murdock_szego(N, 0.5),
    "correlations 0.9999": kac_murdock_szego(N, 0.9999),
    "prolate": prolate(130, 0.47),
    "Gaussian + 1e-2": gaussian(N, 1e-2),
    "Gaussian + 1e-8": gaussian(N, 1e-8),
    "complex": complex_definite(N),
}
GENERAL = {
    "random": random(N),
    "symmetric": random(N, hermitian=True),
    "zero diagonal": random(N, diagonal=0.0),
    "symmetric, zero diagonal": random(N, diagonal=0.0, hermitian=True),
    "shifts": shifts(N),
    "complex": random(N, complex),
    "Hermitian, indefinite": random(N, complex, hermitian=True),
    "lower triangle": (0.9 ** np.arange(N), np.eye(N)[0]),
    "a prime size": random(307),
}


def arrays(name, definite):
    c, r = (DEFINITE if definite else GENERAL)[name]
    T = sa.Toeplitz(c, r)
    dense = scipy.linalg.toeplitz(c, r)
    return (sa.assume(T, "positive_definite") if definite else T), dense


CASES = [(name, True) for name in DEFINITE] + [(name, False) for name in (*DEFINITE, *GENERAL) if name != "prolate"]
CASES = [(n, d) for n, d in CASES if d or n in GENERAL]


def backward_error(dense, x, b):
    """How far the matrix would have to change, relative to its norm (Higham, 7.1)."""
    size = np.linalg.norm(dense, np.inf)
    r = np.linalg.norm(b - dense @ x, np.inf, axis=0)
    return np.max(r / (size * np.linalg.norm(x, np.inf, axis=0) + np.linalg.norm(b, np.inf, axis=0)))


# ---- systems ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "definite"), CASES)
def test_solutions(name, definite):
    T, dense = arrays(name, definite)
    n = T.shape[-1]
    rng = np.random.default_rng(1)
    expected = rng.normal(size=(n, 3)).astype(dense.dtype)
    b = dense @ expected
    with sa.densify("error"):
        x = np.asarray(sa.linalg.solve(T, sa.asarray(b)))
        single = np.asarray(sa.linalg.solve(T, sa.asarray(b[:, 0])))
    assert x.dtype == dense.dtype and single.shape == (n,)
    eps = np.finfo(dense.dtype).eps
    assert backward_error(dense, x, b) <= 64 * eps
    condition = np.linalg.cond(dense)
    assert np.max(np.abs(x - expected)) <= 100 * eps * condition * np.max(np.abs(expected))
    np.testing.assert_allclose(single, x[:, 0], rtol=0, atol=100 * eps * condition * np.max(np.abs(expected)))


@pytest.mark.parametrize("noise", [1e-2, 1e-6, 1e-9])
@pytest.mark.parametrize("run", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_inverses_of_smooth_kernels(noise, run):
    """Solutions for many columns: each with one rounding error is not enough, since the norm by rows adds them."""
    c, _ = gaussian(N, noise)
    dense = scipy.linalg.toeplitz(c)

    def error(x):
        residual = dense.astype(np.longdouble) @ x - np.eye(N)
        return np.linalg.norm(residual, np.inf) / (np.linalg.norm(dense, np.inf) * np.linalg.norm(x, np.inf))

    x = np.asarray(run(lambda a: sa.linalg.inv(a).to_dense())(sa.Toeplitz(c)))
    assert error(x) <= 10 * max(error(np.linalg.inv(dense)), np.finfo(float).eps)


@pytest.mark.parametrize("rho", [0.3, 0.99])
def test_solutions_are_those_of_scipys_levinson(rho):
    c, _ = kac_murdock_szego(N, rho)
    b = np.random.default_rng(0).normal(size=N)
    x = sa.linalg.solve(sa.assume(sa.Toeplitz(c), "positive_definite"), sa.asarray(b))
    np.testing.assert_allclose(np.asarray(x), scipy.linalg.solve_toeplitz(c, b), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("definite", [False, True])
def test_single_precision(dtype, definite):
    c, r = (complex_definite(N) if dtype == np.complex64 else gaussian(N, 0.1)) if definite else random(N, dtype)
    c, r = c.astype(dtype), None if r is None else r.astype(dtype)
    T = sa.Toeplitz(c, r)
    T = sa.assume(T, "positive_definite") if definite else T
    dense = scipy.linalg.toeplitz(c, r)
    b = np.random.default_rng(0).normal(size=(N, 2)).astype(dtype)
    x = np.asarray(sa.linalg.solve(T, sa.asarray(b)))
    assert x.dtype == dtype and backward_error(dense, x, b) <= 64 * np.finfo(dtype).eps
    sign, logabsdet = sa.linalg.slogdet(T)
    their_sign, theirs = np.linalg.slogdet(dense.astype(np.result_type(dtype, np.float64)))
    assert sign.dtype == dtype and logabsdet.dtype == np.float32
    np.testing.assert_allclose(np.asarray(sign), their_sign, atol=2e-2)
    np.testing.assert_allclose(np.asarray(logabsdet), theirs, rtol=1e-4)


@pytest.mark.parametrize("factor", [1e-200, 1e200])
@pytest.mark.parametrize("definite", [False, True])
def test_scale_does_not_matter(factor, definite):
    c, r = kac_murdock_szego(N, 0.5) if definite else random(N)
    T = sa.Toeplitz(c * factor, None if r is None else r * factor)
    T = sa.assume(T, "positive_definite") if definite else T
    dense = scipy.linalg.toeplitz(c, r)
    x = sa.linalg.solve(T, sa.asarray(np.full(N, factor)))
    np.testing.assert_allclose(np.asarray(x), np.linalg.solve(dense, np.ones(N)), rtol=1e-9, atol=1e-11)
    theirs = np.linalg.slogdet(dense)[1] + N * np.log(factor)
    np.testing.assert_allclose(float(sa.linalg.slogdet(T).logabsdet), theirs, rtol=1e-12)


@pytest.mark.parametrize("definite", [False, True])
def test_the_largest_numbers(definite):
    """Their reciprocals are subnormal, which XLA takes for zero."""
    c, _ = kac_murdock_szego(N, 0.5)
    values = np.concatenate([c[::-1], c[1:]])
    largest = np.finfo(values.dtype).maxexp - 1
    factors = toeplitz_elimination.factor(jnp.asarray(np.ldexp(values, largest)), definite)
    expected = np.linalg.slogdet(scipy.linalg.toeplitz(c))[1] + N * largest * np.log(2)
    np.testing.assert_allclose(float(factors.logabsdet), expected, rtol=1e-12)
    assert float(factors.error) < 1e-14


@pytest.mark.slow
@pytest.mark.parametrize("definite", [False, True])
def test_batches(definite):
    rng = np.random.default_rng(0)
    c, r = rng.normal(size=(2, 2, 1, N))
    if definite:
        c = 0.5 ** np.arange(N) * np.array([1.0, 3.0])[:, None, None] + np.eye(N)[0]
        r = c
    dense = np.stack([scipy.linalg.toeplitz(*pair) for pair in zip(c[:, 0], r[:, 0], strict=True)])[:, None]
    T = sa.Toeplitz(c, r)
    T = sa.assume(T, "positive_definite") if definite else T
    b = rng.normal(size=(3, N, 2))
    expected = np.linalg.solve(dense, b)
    np.testing.assert_allclose(np.asarray(sa.linalg.solve(T, sa.asarray(b))), expected, rtol=1e-8, atol=1e-8)
    sign, logabsdet = sa.linalg.slogdet(T)
    np.testing.assert_allclose(np.asarray(sign), np.linalg.slogdet(dense)[0])
    np.testing.assert_allclose(np.asarray(logabsdet), np.linalg.slogdet(dense)[1], rtol=1e-12)

    def both(T, b):
        return sa.linalg.solve(T, b), sa.linalg.slogdet(T).logabsdet

    mapped, logarithms = jax.jit(jax.vmap(both, in_axes=(0, None)))(T, sa.asarray(b))
    np.testing.assert_allclose(np.asarray(mapped), expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(np.asarray(logarithms), np.asarray(logabsdet), rtol=1e-12)
    columns = jax.vmap(lambda b: sa.linalg.solve(T[0, 0], b), in_axes=1, out_axes=1)(sa.asarray(b[0]))
    np.testing.assert_allclose(np.asarray(columns), expected[0, 0], rtol=1e-8, atol=1e-8)


def test_few_diagonals_are_solved_as_bands():
    T = sa.Toeplitz([4.0, 1.0, 0.5], [4.0, -1.0], shape=(N, N))
    dense = np.asarray(T.to_dense())
    b = np.random.default_rng(0).normal(size=N)
    with sa.densify("error"):
        np.testing.assert_allclose(np.asarray(sa.linalg.solve(T, sa.asarray(b))), np.linalg.solve(dense, b))
        np.testing.assert_allclose(float(sa.linalg.slogdet(T).logabsdet), np.linalg.slogdet(dense)[1])
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.solve(sa.Toeplitz([0.0, 1.0], [0.0], shape=(N, N)), sa.asarray(b))


# ---- inverses and determinants ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "definite"), CASES)
def test_determinants(name, definite):
    T, dense = arrays(name, definite)
    with sa.densify("error"):
        sign, logabsdet = sa.linalg.slogdet(T)
        value = np.asarray(sa.linalg.det(T))
    # A change of the matrix by eps, relative to its norm, changes the logarithm by tr(T^{-1} dT), so at most by this.
    tolerance = np.finfo(float).eps * len(dense) * np.linalg.cond(dense)
    if name.startswith("correlations"):
        rho = float(name.split()[1])
        theirs = (len(dense) - 1) * float(mpmath.log(1 - mpmath.mpf(rho) ** 2))
        their_sign = 1.0
    else:
        their_sign, theirs = np.linalg.slogdet(dense)
    assert abs(float(logabsdet) - theirs) <= tolerance + 1e-12 * abs(theirs)
    assert abs(complex(sign) - their_sign) <= tolerance
    if abs(theirs) < 700:  # else it overflows
        np.testing.assert_allclose(value, their_sign * np.exp(theirs), rtol=tolerance + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "definite"), [("complex", True), ("complex", False), ("shifts", False)])
def test_inverses(name, definite):
    T, dense = arrays(name, definite)
    X = sa.linalg.inv(T)
    assert type(X) is sa.Inverse and X.nbytes == T.nbytes
    b = np.random.default_rng(0).normal(size=(N, 2)).astype(dense.dtype)
    expected = np.linalg.inv(dense)
    size = np.max(np.abs(expected))
    np.testing.assert_allclose(np.asarray(X @ sa.asarray(b)), expected @ b, rtol=0, atol=1e-8 * size)
    np.testing.assert_allclose(np.asarray(sa.asarray(b.T) @ X), b.T @ expected, rtol=0, atol=1e-8 * size)
    np.testing.assert_allclose(np.asarray(X.to_dense()), expected, rtol=0, atol=1e-10 * size)
    np.testing.assert_allclose(float(sa.linalg.slogdet(X).logabsdet), -np.linalg.slogdet(dense)[1], rtol=1e-9)


def test_the_class_of_an_inverse_does_not_depend_on_leading_minors():
    c, r = random(N, diagonal=0.0)
    dense = scipy.linalg.toeplitz(c, r)
    for x, matrix in ((sa.Toeplitz(c, r), dense), (sa.Hankel(c[::-1], r), dense[::-1])):
        inverse = sa.linalg.inv(x)
        assert type(inverse) is sa.Inverse
        np.testing.assert_allclose(
            np.asarray(inverse @ np.ones(N)), np.linalg.solve(matrix, np.ones(N)), rtol=1e-8, atol=1e-8
        )


@pytest.mark.slow
def test_the_inverse_of_a_small_one_is_dense():
    c, r = random(40)
    X = sa.linalg.inv(sa.Toeplitz(c, r))
    assert type(X) is sa.Dense
    np.testing.assert_allclose(np.asarray(X), np.linalg.inv(scipy.linalg.toeplitz(c, r)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 16, 33])
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("definite", [False, True])
def test_kernels_of_small_matrices(n, dtype, definite):
    """Those that solvers leave to the dense form, for every remainder of the size."""
    c, r = random(n, dtype, hermitian=definite)
    if definite:
        c[0] = 2 * n
        r = c.conj()
    dense = scipy.linalg.toeplitz(c, r)
    values = jnp.asarray(np.concatenate([c[::-1], r[1:]]))
    factors = toeplitz_elimination.factor(values, definite)
    x, z, _ = factors.columns
    expected = np.linalg.inv(dense)
    close = {"rtol": 1e-9, "atol": 1e-10 * np.max(np.abs(expected))}
    identity = jnp.eye(n, dtype=values.dtype)
    np.testing.assert_allclose(toeplitz_elimination.times_inverse(x, z, identity), expected, **close)
    np.testing.assert_allclose(toeplitz_elimination.times_transposed_inverse(x, z, identity), expected.T, **close)
    sums = [np.trace(expected, -k) for k in range(1 - n, n)]
    np.testing.assert_allclose(toeplitz_elimination.inverse_diagonal_sums(x, z), sums, **close)
    sign, logabsdet = np.linalg.slogdet(dense)
    np.testing.assert_allclose(factors.sign, sign, rtol=1e-10)
    np.testing.assert_allclose(factors.logabsdet, logabsdet, rtol=1e-10, atol=1e-12)


# ---- matrices for which there is no solution --------------------------------------------------------------------------

SINGULAR = {
    "zeros": np.zeros(N),
    "ones": np.ones(N),
    "cosines": np.cos(np.arange(N)),
}


@pytest.mark.parametrize("name", SINGULAR)
@pytest.mark.parametrize("definite", [False, True])
def test_singular_matrices(name, definite):
    T = sa.Toeplitz(SINGULAR[name])
    T = sa.assume(T, "positive_definite") if definite else T
    b = sa.asarray(np.random.default_rng(0).normal(size=N))
    compiled = np.asarray(jax.jit(sa.linalg.solve)(T, b))
    if (
        name == "cosines" and not definite
    ):  # pivots of the dense form are rounding errors: a solution of a matrix near it
        dense = scipy.linalg.toeplitz(SINGULAR[name])
        assert np.linalg.norm(dense @ compiled - b) <= 1e-12 * np.linalg.norm(dense) * np.linalg.norm(compiled)
        assert np.linalg.norm(compiled) > 1e12 * np.linalg.norm(b)
    else:
        assert np.isnan(compiled).all()
        with pytest.raises(np.linalg.LinAlgError, match=r"linalg\.solve"):
            sa.linalg.solve(T, b)
    with sa.densify("error"), pytest.raises(np.linalg.LinAlgError, match=r"linalg\.solve"):
        sa.linalg.solve(T, b)
    with sa.densify("error"), pytest.raises(np.linalg.LinAlgError, match=r"linalg\.inv"):
        sa.linalg.inv(T)


def test_determinants_of_zeros():
    sign, logabsdet = sa.linalg.slogdet(sa.Toeplitz(np.zeros(N)))
    assert float(sign) == 0 and float(logabsdet) == -np.inf
    assert float(sa.linalg.det(sa.Toeplitz(np.zeros(N)))) == 0


def test_a_broken_promise():
    c, _ = random(N, hermitian=True)
    T = sa.assume(sa.Toeplitz(c), "positive_definite")
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.solve(T, sa.ones(N))
    assert np.isnan(float(jax.jit(sa.linalg.slogdet)(T).logabsdet))
    expected = np.linalg.slogdet(scipy.linalg.toeplitz(c))  # by the dense form, when it is called eagerly
    found = sa.linalg.slogdet(T)
    assert float(found.sign) == expected.sign
    np.testing.assert_allclose(float(found.logabsdet), expected.logabsdet)


def test_one_singular_matrix_of_a_batch():
    c = np.stack([np.zeros(N), kac_murdock_szego(N, 0.5)[0]])
    x = np.asarray(jax.jit(sa.linalg.solve)(sa.Toeplitz(c), sa.ones(N)))
    assert np.isnan(x[0]).all()
    np.testing.assert_allclose(x[1], scipy.linalg.solve_toeplitz(c[1], np.ones(N)), rtol=1e-12)


@pytest.mark.parametrize("definite", [False, True])
def test_nan_gives_nan_and_no_error(definite):
    c = kac_murdock_szego(N, 0.5)[0]
    c[7] = np.nan
    T = sa.Toeplitz(c)
    T = sa.assume(T, "positive_definite") if definite else T
    assert np.isnan(np.asarray(sa.linalg.solve(T, sa.ones(N)))).all()
    assert np.isnan(float(sa.linalg.slogdet(T).logabsdet))


@pytest.mark.slow
def test_what_is_too_badly_conditioned_is_solved_by_the_dense_form():
    k = np.arange(N)
    c = np.exp(-0.5 * (k / 20) ** 2) - 0.7 * np.exp(-0.5 * (k / 10) ** 2)  # smooth, and indefinite
    T, dense = sa.Toeplitz(c), scipy.linalg.toeplitz(c)
    b = dense @ np.random.default_rng(0).normal(size=N)
    assert backward_error(dense, np.asarray(sa.linalg.solve(T, sa.asarray(b))), b) <= 64 * np.finfo(float).eps
    compiled = np.asarray(jax.jit(sa.linalg.solve)(T, sa.asarray(b)))
    assert backward_error(dense, compiled, b) <= 64 * np.finfo(float).eps
    with sa.densify("error"):
        assert np.isnan(np.asarray(jax.jit(sa.linalg.solve)(T, sa.asarray(b)))).all()
    with sa.densify("error"), pytest.raises(np.linalg.LinAlgError, match="its dense form was not tried"):
        sa.linalg.solve(T, sa.asarray(b))


# ---- Levinson's recursion in SciPy ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [512, 513])
def test_the_form_of_determinants(n, monkeypatch):
    monkeypatch.undo()
    T = sa.Toeplitz(*random(n, diagonal=40.0))
    log = sa.explain(sa.linalg.slogdet, T)
    assert ("dense form" in str(log)) == (n == 512)
    assert "0 densifications" in str(log)


@pytest.mark.parametrize("n", [1024, 1025])
@pytest.mark.parametrize("columns", [1, 3])
def test_the_fallback_of_the_recursion(n, columns):
    T = sa.Toeplitz(*random(n, diagonal=40.0))
    log = sa.explain(sa.linalg.solve, T, sa.ones((n, columns)))
    assert ("the dense form (up to 1024 rows) if it is not" in log.events[0].remark) == (n == 1024)
    with sa.densify("error"):
        log = sa.explain(sa.linalg.solve, T, sa.ones((n, columns)))
    assert "elimination with pivots" in log.events[0].remark


@pytest.mark.parametrize(("diagonal", "accepted"), [(40.0, True), (0.0, False)])
def test_a_recursion_is_accepted_if_its_residual_is_small(diagonal, accepted):
    c, r = random(N, diagonal=diagonal)
    b = np.random.default_rng(0).normal(size=(N, 1))
    diagonals = jnp.asarray(np.concatenate([c[:0:-1], r]))
    x, ok = toeplitz_solvers._by_recursion(
        lambda values: sa.Toeplitz(values[N - 1 :: -1], values[N - 1 :]), diagonals, jnp.asarray(b)
    )
    assert bool(ok) is accepted
    if accepted:
        np.testing.assert_allclose(
            np.asarray(x), np.linalg.solve(scipy.linalg.toeplitz(c, r), b), rtol=1e-12, atol=1e-14
        )


@pytest.mark.parametrize("name", GENERAL)
@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("policy", POLICIES)
def test_backward_errors_are_small_on_all_paths(name, columns, policy):
    """The recursion, the dense form and the elimination solve equally well."""
    T, dense = arrays(name, False)
    b = np.random.default_rng(2).normal(size=(len(dense), columns)).astype(dense.dtype)
    with sa.densify(policy):
        for a, matrix in ((T, dense), (T.mT, dense.T)):
            x = np.asarray(jax.jit(sa.linalg.solve)(a, sa.asarray(b)))
            assert backward_error(matrix, x, b) <= 8 * np.finfo(float).eps


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("policy", POLICIES)
def test_one_matrix_of_a_batch_without_a_recursion(columns, policy):
    """The first leading minor of the second matrix vanishes, so the recursion divides by zero."""
    c, r = (np.stack([random(N, diagonal=d)[i] for d in (40.0, 0.0, 50.0)]) for i in (0, 1))
    b = np.random.default_rng(3).normal(size=(3, N, columns))
    dense = np.stack([scipy.linalg.toeplitz(*pair) for pair in zip(c, r, strict=True)])
    expected = np.linalg.solve(dense, b)
    with sa.densify(policy):
        for solve in (sa.linalg.solve, jax.jit(sa.linalg.solve), jax.vmap(sa.linalg.solve)):
            x = np.asarray(solve(sa.Toeplitz(c, r), sa.asarray(b)))
            np.testing.assert_allclose(x, expected, rtol=1e-8, atol=1e-8)
        one = np.asarray(jax.vmap(sa.linalg.solve, (None, 0))(sa.Toeplitz(c[0], r[0]), sa.asarray(b)))
        np.testing.assert_allclose(one, np.linalg.solve(dense[0], b), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_change_only_their_column(value):
    c, r = random(N, diagonal=40.0)
    b = np.random.default_rng(4).normal(size=(N, 2))
    expected = np.linalg.solve(scipy.linalg.toeplitz(c, r), b)
    b[5, 1] = value
    x = np.asarray(jax.jit(sa.linalg.solve)(sa.Toeplitz(c, r), sa.asarray(b)))
    np.testing.assert_allclose(x[:, 0], expected[:, 0], rtol=1e-9, atol=1e-9)
    assert not np.isfinite(x[:, 1]).any()
    c[3] = value
    assert not np.isfinite(np.asarray(jax.jit(sa.linalg.solve)(sa.Toeplitz(c, r), sa.asarray(b)))).any()


@pytest.mark.parametrize("scale", [1e-250, 1e-30, 1e30, 1e250])
def test_scales_of_general_matrices(scale):
    c, r = random(N, diagonal=40.0)
    b = np.random.default_rng(5).normal(size=N)
    expected = np.linalg.solve(scipy.linalg.toeplitz(c, r), b)
    x = np.asarray(sa.linalg.solve(sa.Toeplitz(scale * c, scale * r), sa.asarray(scale * b)))
    np.testing.assert_allclose(x, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("diagonal", [40.0, 0.0])
@pytest.mark.parametrize("policy", POLICIES)
def test_derivatives_on_all_paths(diagonal, policy):
    c, r = random(N, diagonal=diagonal)
    b = np.random.default_rng(6).normal(size=N)

    def structured(c, r, b):
        return jnp.sum(jnp.sin(sa.linalg.solve(sa.Toeplitz(c, r), b)))

    def dense(c, r, b):
        values = jnp.concatenate([c[:0:-1], c[:1], r[1:]])
        return jnp.sum(jnp.sin(jnp.linalg.solve(_dense(values), b)))

    arguments = tuple(map(jnp.asarray, (c, r, b)))
    with sa.densify(policy):
        found = jax.jit(jax.grad(structured, (0, 1, 2)))(*arguments)
    for got, want in zip(found, jax.grad(dense, (0, 1, 2))(*arguments), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6 * np.abs(want).max())


# ---- derivatives ------------------------------------------------------------------------------------------------------


def _dense(values):
    n = (values.shape[0] + 1) // 2
    i = jnp.arange(n)
    return values[n - 1 + i - i[:, None]]


def _toeplitz(values, definite):
    n = (values.shape[0] + 1) // 2
    T = sa.Toeplitz(values[n - 1 :: -1], values[n - 1 :])
    return sa.assume(T, "positive_definite") if definite else T


def _functions(definite, b, weights):
    """A number made of a solution, a logarithm and a phase, by structure and by JAX on the dense matrix."""

    def combined(x, sign, logabsdet):
        return jnp.sum(jnp.abs(x * weights) ** 2) + logabsdet**2 / 1000 + jnp.real(sign * (1 + 2j))

    def ours(values):
        T = _toeplitz(values, definite)
        sign, logabsdet = sa.linalg.slogdet(T)
        return combined(as_jax(sa.linalg.solve(T, sa.asarray(b))), as_jax(sign), as_jax(logabsdet))

    def theirs(values):
        return combined(jnp.linalg.solve(_dense(values), b), *jnp.linalg.slogdet(_dense(values)))

    return ours, theirs


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("definite", [False, True])
def test_derivatives(dtype, definite):
    """Along a direction that keeps a Hermitian matrix Hermitian, backwards, forwards and twice."""
    n = 150 if definite else 260
    c, r = random(n, dtype, hermitian=definite)
    if definite:
        c[0] = 2 * n
        r = c.conj()
    values = jnp.asarray(np.concatenate([c[::-1], r[1:]]))
    rng = np.random.default_rng(2)
    direction = rng.normal(size=2 * n - 1) + (1j * rng.normal(size=2 * n - 1) if dtype is complex else 0)
    if definite:
        direction = direction + direction[::-1].conj()
    direction = jnp.asarray(direction).astype(values.dtype)
    b, weights = rng.normal(size=(2, n, 2))
    results = []
    for f in _functions(definite, b, weights):

        @jax.jit
        def run(values, direction, f=f):
            # Forwards over backwards: of the gradient the value, and its derivative.
            backwards, twice = jax.jvp(jax.grad(f), (values,), (direction,))
            forwards = jax.jvp(f, (values,), (direction,))[1]
            return jnp.real(jnp.sum(backwards * direction)), forwards, jnp.real(jnp.sum(twice * direction)), backwards

        results.append(run(values, direction))
    ours, theirs = results
    for one, other in zip(ours[:3], theirs[:3], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7)
    if not definite:  # else a derivative by one triangle alone means different things to both
        np.testing.assert_allclose(ours[3], theirs[3], rtol=0, atol=1e-8 * np.max(np.abs(theirs[3])))


@pytest.mark.slow
def test_the_gradient_is_a_toeplitz_array():
    c, r = random(N)
    T = sa.Toeplitz(c, r)
    gradient = sa.grad(lambda T: sa.linalg.slogdet(T).logabsdet)(T)
    assert type(gradient) is sa.Toeplitz and gradient.offsets == T.offsets
    inverse = np.linalg.inv(scipy.linalg.toeplitz(c, r))
    expected = [np.trace(inverse, -k) for k in T.offsets]
    np.testing.assert_allclose(np.asarray(gradient.values), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
def test_derivatives_by_finite_differences():
    """Of the logarithm of a Gaussian density by a parameter of the covariance."""
    k = jnp.arange(150.0)
    y = sa.asarray(np.sin(np.arange(150.0)))

    def density(rho):
        T = sa.assume(sa.Toeplitz(rho**k + 0.1 * (k == 0)), "positive_definite")
        return as_jax(y @ sa.linalg.solve(T, y) + sa.linalg.slogdet(T).logabsdet)

    compiled, step = jax.jit(density), 1e-6
    expected = (compiled(0.8 + step) - compiled(0.8 - step)) / (2 * step)
    np.testing.assert_allclose(jax.jit(jax.grad(density))(0.8), expected, rtol=1e-7)


# ---- what it takes ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("definite", [True, False])
def test_nothing_is_as_large_as_the_matrix(definite):
    n = 2000
    c, r = kac_murdock_szego(n, 0.9)[0], 0.5 ** np.arange(n)
    T = sa.assume(sa.Toeplitz(c), "positive_definite") if definite else sa.Toeplitz(c, r)
    y = sa.asarray(np.ones(n))

    def density(T, y):
        return as_jax(y @ sa.linalg.solve(T, y) + sa.linalg.slogdet(T).logabsdet)

    with sa.densify("error"):
        compiled = jax.jit(jax.value_and_grad(density)).lower(T, y).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 0.1 * n * n * 8
    assert f"[{n},{n}]" not in compiled.as_text()


@pytest.mark.slow
def test_a_sum_with_a_term_of_low_rank_is_solved_by_its_toeplitz_term():
    c, r = random(N)
    u, v = np.random.default_rng(3).normal(size=(2, N, 2))
    A = sa.Toeplitz(c, r) + sa.LowRank(u, v)
    dense = scipy.linalg.toeplitz(c, r) + u @ v.T
    b = np.random.default_rng(4).normal(size=N)
    with sa.densify("error"):
        x = np.asarray(sa.linalg.solve(A, sa.asarray(b)))
        sign, logabsdet = sa.linalg.slogdet(A)
    assert backward_error(dense, x, b) <= 64 * np.finfo(float).eps
    their_sign, theirs = np.linalg.slogdet(dense)
    assert float(sign) == their_sign
    np.testing.assert_allclose(float(logabsdet), theirs, rtol=1e-10)


@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e280])
def test_refinement_at_any_scale(rng, scale):
    """A small leading element costs the recursion digits, which refinement restores. Residuals must not underflow."""
    n = 400
    column, row = rng.normal(size=(2, n))
    column[0] = row[0] = 1e-6
    dense = scipy.linalg.toeplitz(column, row)
    exact = rng.normal(size=n)
    x = sa.linalg.solve(sa.Toeplitz(scale * column, scale * row), scale * (dense @ exact))
    assert np.max(np.abs(np.asarray(x) - exact)) < 1e-10 * np.max(np.abs(exact))


def test_columns_of_a_numerically_singular_matrix_are_not_accepted():
    """The residual of a huge solution says nothing: no element of the inverse is as large as it."""
    kernel = np.exp(-(np.arange(700.0) ** 2) / 50)
    with sa.errstate(linalg="nan"):
        inverse = np.asarray(sa.linalg.solve(sa.Toeplitz(kernel, kernel), sa.eye(700).to_dense()))
    assert np.isnan(inverse).any() or np.max(np.abs(inverse)) < 1e30


# ---- many right-hand sides -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("definite", [True, False])
def test_many_columns_are_solved_by_the_dense_form(definite, rng):
    """A dense factorization is faster than convolutions for each of n columns."""
    n = 400
    c = np.exp(-0.5 * (0.1 * np.arange(n)) ** 2)
    c[0] += 0.1
    r = c if definite else c * np.linspace(1, 0.5, n)
    x, b = sa.Toeplitz(c, r), jnp.asarray(rng.normal(size=(n, n)))
    x = sa.assume(x, "positive_definite") if definite else x
    dense = scipy.linalg.toeplitz(c, r)
    assert "the dense form, which" in str(sa.explain(sa.linalg.solve, x, b))
    assert "the dense form, which" not in str(sa.explain(sa.linalg.solve, x, b[:, :40]))
    assert "the dense form, which" not in str(sa.explain(sa.linalg.solve, x, b[:, 0]))
    wanted = np.linalg.solve(dense, b)
    with sa.densify("error"):
        for run in (lambda f: f, jax.jit):
            np.testing.assert_allclose(
                np.asarray(run(sa.linalg.solve)(x, b)), wanted, rtol=0, atol=1e-11 * np.abs(wanted).max()
            )

    def value(c):
        y = sa.Toeplitz(c, c) if definite else sa.Toeplitz(c, jnp.asarray(r))
        y = sa.assume(y, "positive_definite") if definite else y
        return jnp.sum(b * jnp.asarray(sa.linalg.solve(y, b)))

    step = np.linspace(1, 0, n)
    moved = scipy.linalg.toeplitz(step, step if definite else np.append(0, np.zeros(n - 1)))
    if not definite:
        np.fill_diagonal(moved, step[0])
    slope = -np.sum(np.linalg.solve(dense.T, b) * (moved @ wanted))
    assert float(jax.jvp(value, (jnp.asarray(c),), (jnp.asarray(step),))[1]) == pytest.approx(slope, rel=1e-8)
