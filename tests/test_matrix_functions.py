"""Exponentials and square roots of matrices, and products with exponentials, with SciPy as the oracle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse.linalg
from oracles import check_everywhere, close, dense, each, random
from support import as_jax

import structarrays as sa
from structarrays._numerics import loops
from structarrays.testing import Case

# ---- values and derivatives for all structures ------------------------------------------------------------------------


@pytest.mark.slow
def test_expm():
    case = Case(
        "expm",
        "xp.linalg.expm(x)",
        cores=("nn",),
        kinds="floating",
        oracle=each(scipy.linalg.expm, (2,)),
        domain=(-1, 1),
    )
    structures = (
        "Dense",
        "Identity",
        "Diagonal",
        "BlockDiagonal",
        "Circulant",
        "KroneckerSum",
        "Triangular",
        "LowRank",
    )
    check_everywhere(case, structures, ("Banded", "Sparse", "Sum", "Kronecker", "Diagonal + background"))


def _action(a, b):
    return scipy.sparse.linalg.expm_multiply(a, b, traceA=np.trace(a)) if b.size else b


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("cores", [("nn", "nk"), ("nn", "n")])
def test_expm_multiply(cores):
    case = Case(
        "expm_multiply", "xp.linalg.expm_multiply(x1, x2)", ("x1", "x2"), cores, kinds="floating", domain=(-1, 1),
        oracle=each(_action, (2, len(cores[1]))), batches="broadcast" if len(cores[1]) == 2 else "first",
    )  # fmt: skip
    if len(cores[1]) == 2:
        structures, others = (
            ("Dense", "Banded", "Sum", "Toeplitz"),
            ("Diagonal", "Sparse", "Kronecker", "Product", "Block", "Fill"),
        )
    else:
        structures, others = ("Banded",), ("Dense", "KroneckerSum", "LowRank", "Circulant", "Banded + background")
    check_everywhere(case, structures, others)


TIMES = (
    {"start": 0.3, "stop": 2.0, "num": 5},
    {"start": 0, "stop": 1, "num": 4, "endpoint": False},
    {"start": -0.2, "stop": 1.0},
    {"start": 1.0, "stop": -0.5, "num": 2, "endpoint": True},
)


def _exponents():
    a, b = random(3, 3), random(4, 4, seed=1)
    yield sa.asarray(random(12, 12))
    yield sa.tridiagonal(random(11), random(12), random(11, seed=1))
    yield sa.Sparse.from_dense(np.where(random(12, 12) > 1, 0.5, 0.0))
    yield sa.Diagonal(random(12))
    yield sa.Circulant(random(12))
    yield sa.BlockDiagonal([a, a.T, a, -a])
    yield sa.KroneckerSum(a, b)
    yield sa.LowRank(random(12, 2), random(12, 2, seed=1))
    yield sa.Kronecker(a, b) + sa.Identity(12)


@pytest.mark.costly
@pytest.mark.slow
@pytest.mark.parametrize("times", TIMES)
def test_the_exponential_at_times(times):
    for x in _exponents():
        a = dense(x)
        for b in (random(12), random(12, 2)):
            expected = np.stack([scipy.linalg.expm(t * a) @ b for t in np.linspace(**{"num": 50} | times)])
            close(sa.linalg.expm_multiply(x, b, **times), expected, 1e-11)
            close(jax.jit(lambda x, b: sa.linalg.expm_multiply(x, b, **times))(x, b), expected, 1e-11)


def test_one_time_complex_times_and_precision():
    x, b = sa.tridiagonal(np.ones(5), np.zeros(6), np.ones(5)), random(6)
    a, times = dense(x), {"start": 0, "num": 3}
    close(sa.linalg.expm_multiply(x, b, 0.5, 1.0, 1), scipy.linalg.expm(0.5 * a)[None] @ b)
    y = sa.linalg.expm_multiply(x, b, stop=-1j, **times)
    assert y.dtype == np.complex128
    close(y, [scipy.linalg.expm(-1j * t * a) @ b for t in (0.0, 0.5, 1.0)])
    narrow = sa.linalg.expm_multiply(sa.astype(x, sa.float32), b.astype(np.float32), stop=1.0, **times)
    assert narrow.dtype == np.float32
    close(narrow, [scipy.linalg.expm(t * a) @ b for t in (0.0, 0.5, 1.0)], 1e-5)
    assert sa.linalg.expm_multiply(sa.zeros((0, 0)), sa.zeros(0), stop=1, **times).shape == (3, 0)
    assert sa.linalg.expm_multiply(x, sa.zeros((6, 0)), stop=1, **times).shape == (3, 6, 0)


@pytest.mark.slow
def test_stacks_at_times():
    lower, diagonal, times = random(2, 5), random(2, 6), {"start": 0.0, "stop": 1.0, "num": 3}
    x = sa.Banded([lower, diagonal], (-1, 0), (6, 6))
    for b in (random(6), random(6, 2), random(2, 6, 1), random(3, 1, 6, 1)):
        y = sa.linalg.expm_multiply(x, b, **times)
        columns = b[:, None] if b.ndim == 1 else b
        expected = np.stack([scipy.linalg.expm(t * dense(x)) @ columns for t in (0.0, 0.5, 1.0)])
        close(y, expected[..., 0] if b.ndim == 1 else expected)
    gradient = jax.grad(
        lambda d: jnp.sum(as_jax(sa.linalg.expm_multiply(sa.Banded([d], (0,), (6, 6)), np.ones(6), **times)))
    )
    close(jax.vmap(gradient)(diagonal), 0.5 * np.exp(0.5 * diagonal) + np.exp(diagonal))


@pytest.mark.slow
def test_derivatives_by_times():
    x, b = sa.tridiagonal(random(5), random(6), random(5, seed=1)), random(6)
    a = dense(x)

    def last(start, stop):
        return jnp.sum(as_jax(sa.linalg.expm_multiply(x, b, start, stop, num=4))[-1])

    expected = np.sum(a @ scipy.linalg.expm(0.7 * a) @ b)
    close(jax.grad(last, argnums=(0, 1))(0.2, 0.7), (0.0, expected), 1e-10)
    close(jax.jvp(lambda t: last(0.2, t), (0.7,), (1.0,))[1], expected, 1e-10)
    close(jax.grad(jax.grad(last, 1), 1)(0.2, 0.7), np.sum(a @ a @ scipy.linalg.expm(0.7 * a) @ b), 1e-10)


def test_times_are_never_dense():
    n = 40
    x = sa.tridiagonal(random(n - 1), random(n), random(n - 1, seed=1)) + 0.1 * sa.LowRank(random(n, 2), random(n, 2))
    with sa.densify("error"):
        y = sa.linalg.expm_multiply(x, random(n), start=0.0, stop=0.5, num=3)
        for structured in (sa.KroneckerSum(random(5, 5), random(8, 8)), sa.Circulant(random(n))):
            sa.linalg.expm_multiply(structured, random(n), start=0.0, stop=0.5, num=3)
    close(y[-1, :], scipy.linalg.expm(0.5 * dense(x)) @ random(n), 1e-9)


@pytest.mark.parametrize(
    ("times", "error", "message"),
    [
        ({"start": 1.0}, TypeError, "start and stop must both be given, stop is missing"),
        ({"num": 3}, TypeError, ".*start is missing"),
        ({"start": 0.0, "stop": 1.0, "num": 0}, ValueError, "num must be at least 1, got 0"),
        ({"start": 0.0, "stop": 1.0, "num": 2.5}, TypeError, "num must be an integer, got 2.5"),
        ({"start": np.zeros(2), "stop": 1.0}, ValueError, r"start must be a number, got an array of shape \(2,\)"),
        ({"start": 0.0, "stop": True}, TypeError, "stop must be a number, got .* dtype bool"),
    ],
)
def test_bad_times(times, error, message):
    with pytest.raises(error, match=f"expm_multiply: {message}"):
        sa.linalg.expm_multiply(sa.ones((2, 2)), sa.ones(2), **times)


def roots_of(kind, dtype, rng):
    """Four matrices, of which SciPy computes the roots, or all but one."""
    a = rng.normal(size=(4, 12, 12))
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.normal(size=a.shape)
    a = a / 12**0.5 + 2 * np.eye(12)
    if kind == "triangular":
        a = np.triu(a)
    if kind == "negative eigenvalues":
        a = a - 2 * np.eye(12)
    if kind == "one singular":
        a[2, :, 3:] = a[2, 3:, :] = 0
    return a.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("kind", ["regular", "triangular", "negative eigenvalues", "one singular"])
def test_roots_of_stacks(kind, dtype, rng):
    a = roots_of(kind, dtype, rng)
    for function in (sa.linalg.sqrtm, jax.jit(sa.linalg.sqrtm), jax.vmap(sa.linalg.sqrtm)):
        root = dense(function(sa.asarray(a)))
        assert root.dtype == np.result_type(dtype, np.complex64)
        size = np.linalg.norm(root, np.inf, axis=(-2, -1))[:, None, None]
        assert np.max(np.abs(root @ root - a) / size**2) <= 50 * np.finfo(dtype).eps
        assert np.linalg.eigvals(root.astype(complex)).real.min() >= -50 * np.finfo(dtype).eps ** 0.5


def test_roots_of_values_that_are_not_finite():
    a = np.stack([np.eye(3), np.eye(3)])
    for value in (np.nan, np.inf):
        a[1, 0, 1] = value
        root = dense(jax.jit(sa.linalg.sqrtm)(sa.asarray(a)))
        close(root[0], np.eye(3))
        assert np.isnan(root[1]).any()


@pytest.mark.slow
def test_sqrtm_of_semidefinite_matrices():
    # The promise is part of the code, since NumPy's arrays make none.
    case = Case(
        "sqrtm", "xp.linalg.sqrtm(xp.assume(x, 'positive_definite'))", cores=("nn",), kinds="floating", condition=True,
        requires=("positive definite",), oracle=each(lambda a: scipy.linalg.sqrtm(a).astype(a.dtype), (2,)),
    )  # fmt: skip
    check_everywhere(
        case, ("Dense", "Identity", "Diagonal", "BlockDiagonal", "Circulant"), ("Banded", "Sparse", "Toeplitz")
    )


def _is_tame(x):
    """Whether no eigenvalue is near the negative real axis, where the principal root jumps."""
    values = np.linalg.eigvals(x)
    return bool(np.all(np.abs(values) > 0.2) and np.all(np.abs(np.angle(values)) < 2.8))


def test_sqrtm():
    case = Case(
        "sqrtm", "xp.linalg.sqrtm(x)", cores=("nn",), kinds="floating", condition=True, requires=("invertible",), given=_is_tame,
        oracle=each(lambda a: scipy.linalg.sqrtm(a.astype(np.result_type(a, np.complex64))), (2,)),
    )  # fmt: skip
    check_everywhere(case, ("Dense", "Diagonal", "BlockDiagonal", "Circulant"), ("Identity", "Triangular", "Banded"))


# ---- structures -------------------------------------------------------------------------------------------------------


@pytest.mark.costly
@pytest.mark.parametrize("dtype", [float, complex])
def test_structures_of_exponentials(dtype):
    a, b = random(5, 5, dtype=dtype), random(4, 4, dtype=dtype)
    u, v = random(9, 2, dtype=dtype), random(9, 2, seed=1, dtype=dtype)
    arrays = {
        sa.Diagonal: sa.Diagonal(a[0]),
        sa.Identity: sa.Identity(3, a[0, 0]),
        sa.BlockDiagonal: sa.BlockDiagonal([a, b]),
        sa.Circulant: sa.Circulant(a[0]),
        sa.Kronecker: sa.KroneckerSum(a, b),
        sa.Triangular: sa.Triangular(a),
        sa.Sum: sa.LowRank(u, v),
    }
    right = random(20, 2, seed=2, dtype=dtype)
    with sa.densify("error"):
        for kind, x in arrays.items():
            result = sa.linalg.expm(x)
            assert type(result) is kind
            close(result, scipy.linalg.expm(dense(x)))
            n = x.shape[0]
            close(sa.linalg.expm_multiply(x, right[:n]), scipy.linalg.expm(dense(x)) @ right[:n])


def test_structures_of_square_roots():
    a, b = (x @ x.T + np.eye(len(x)) for x in (random(5, 5), random(4, 4)))
    factors = [sa.assume(sa.asarray(x), "positive_definite") for x in (a, b)]
    product = sa.Kronecker(*factors)
    with sa.densify("error"):
        root = sa.linalg.sqrtm(product)
        assert type(root) is sa.Kronecker and root.dtype == np.float64
        assert "positive_definite" in root.assumptions
        close(root, scipy.linalg.sqrtm(dense(product)))
        for x in (sa.Diagonal([4.0, -9.0]), sa.BlockDiagonal([a, -b]), sa.Circulant([-3.0, 1.0, 0.5])):
            root = sa.linalg.sqrtm(x)
            assert type(root) is type(x) and root.dtype == np.complex128
            close(root @ root, dense(x))
            assert np.all(np.linalg.eigvals(dense(root)).real > -1e-12)


@pytest.mark.slow
def test_sums_and_products_are_never_dense():
    n = 40
    band = sa.tridiagonal(random(n - 1), random(n), random(n - 1, seed=1))
    low_rank = sa.LowRank(random(n, 2), random(n, 2, seed=1))
    sparse = sa.Sparse.from_dense(np.where(random(n, n, seed=3) > 1.5, 0.5, 0.0))
    b = random(n)
    with sa.densify("error"):
        for x in (
            band,
            sparse,
            band + 0.1 * low_rank,
            sa.Product(band, sparse),
            sa.Kronecker(band[:8, :8], band[:5, :5]),
        ):
            y = sa.linalg.expm_multiply(x, b)
            close(y, scipy.linalg.expm(dense(x)) @ b, 1e-9)


# ---- large norms, zeros, NaN --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0.0, 1e-8, 1e-2, 3.0, 100.0, 1e5])
def test_norms_of_exponents(size):
    a = random(6, 6)
    a = size * (a - a.T)  # antisymmetric: no exponential overflows
    tolerance = 1e-12 * max(1, size)
    close(sa.linalg.expm(a), scipy.linalg.expm(a), tolerance)
    direction = random(6, 6, seed=1)
    change = jax.jvp(lambda a: sa.linalg.expm(a), (a,), (direction,))[1]
    close(change, scipy.linalg.expm_frechet(a, direction, compute_expm=False), 100 * tolerance)
    if size <= 100:
        b = random(6)
        close(sa.linalg.expm_multiply(a, b), scipy.linalg.expm(a) @ b, tolerance)


@pytest.mark.slow
def test_a_stack_of_very_different_norms():
    a = np.stack([s * (random(5, 5) - random(5, 5).T) for s in (0.0, 1e-3, 1.0, 1e4)])
    close(sa.linalg.expm(a), scipy.linalg.expm(a), 1e-8)
    gradients = jax.vmap(jax.grad(lambda x: jnp.sum(as_jax(sa.linalg.expm(x)) ** 2)))(a[:3])
    for x, gradient in zip(a[:3], gradients, strict=True):
        close(gradient, jax.grad(lambda x: jnp.sum(jax.scipy.linalg.expm(x) ** 2))(x), 1e-8)


def test_special_values():
    assert np.all(np.isnan(dense(sa.linalg.expm(sa.full((2, 2), np.nan)))))
    assert np.all(np.isnan(dense(sa.linalg.expm_multiply(sa.full((2, 2), np.nan), sa.ones(2)))))
    assert np.all(np.isnan(dense(sa.linalg.sqrtm(sa.full((2, 2), np.nan)))))
    assert sa.linalg.expm(sa.zeros((0, 0))).shape == sa.linalg.sqrtm(sa.zeros((0, 0))).shape == (0, 0)
    close(sa.linalg.sqrtm(sa.zeros((3, 3))), np.zeros((3, 3)))
    singular = sa.assume(sa.asarray(np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])), "positive_semidefinite")
    close(sa.linalg.sqrtm(singular) @ sa.linalg.sqrtm(singular), dense(singular))
    assert sa.linalg.expm(sa.asarray([[1, 2], [3, 4]])).dtype == np.float64


def matrices_of_rank_one(n, rng):
    """With one eigenvalue that is not zero, the trace. The root of such a matrix A is ``A / sqrt(trace)``."""
    ones = np.ones((n, n))
    return {
        "constant": ones,
        "rows": ones * np.arange(1, n + 1),
        "columns": np.arange(1.0, n + 1)[:, None] * ones,
        "outer": np.outer(np.ones(n), rng.random(n)),
        "alternating": np.outer((-1.0) ** np.arange(n), (-1.0) ** np.arange(n)),
        "first row": np.diag(np.r_[2.0, np.zeros(n - 1)]) + np.diag(np.r_[1.0, np.zeros(n - 2)], 1),
        "complex": np.outer(np.ones(n), np.exp(1j * rng.random(n))),
    }


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [2, 3, 40, 100])
def test_roots_of_matrices_of_rank_one(n, dtype, rng):
    """SciPy returns a root of size 1e15 for ``numpy.ones((40, 40))``. Rounding errors of an eigenvalue 0 become their square roots."""
    for name, a in matrices_of_rank_one(n, rng).items():
        x = (
            sa.asarray(a).astype("complex64" if dtype == "float32" else a.dtype)
            if a.dtype.kind == "c"
            else sa.asarray(a).astype(dtype)
        )
        for function in (sa.linalg.sqrtm, jax.jit(sa.linalg.sqrtm)):
            root = dense(function(x))
            size, eps = np.linalg.norm(a, 2), np.finfo(dtype).eps
            assert np.linalg.norm(root @ root - a, 2) <= 50 * n**0.5 * eps * size, name
            assert np.linalg.norm(root - a / np.sqrt(np.trace(a)), 2) <= 100 * np.sqrt(eps * size), name


@pytest.mark.parametrize(
    "structure", ["Dense", "Fill", "Symmetric", "LowRank", "Sum", "Kronecker", "Sparse", "Toeplitz"]
)
def test_projections_are_their_own_roots(structure):
    n = 40
    projection, change = {
        "Dense": (np.eye(n) - 1 / n, sa.asarray),
        "Fill": (np.full((n, n), 1 / n), lambda a: sa.Fill(1 / n, (n, n))),
        "Symmetric": (np.eye(n) - 1 / n, sa.Symmetric),
        "LowRank": (np.full((n, n), 1 / n), lambda a: sa.LowRank(np.ones((n, 1)), np.full((n, 1), 1 / n))),
        "Sum": (np.eye(n) - 1 / n, lambda a: sa.eye(n) - 1 / n),
        "Kronecker": (
            np.kron(np.eye(4), np.full((10, 10), 0.1)),
            lambda a: sa.Kronecker(sa.eye(4), sa.Fill(0.1, (10, 10))),
        ),
        "Sparse": (np.kron(np.eye(4), np.full((10, 10), 0.1)), sa.Sparse.from_dense),
        "Toeplitz": (np.full((n, n), 1 / n), lambda a: sa.Toeplitz(a[0])),
    }[structure]
    for function in (sa.linalg.sqrtm, jax.jit(sa.linalg.sqrtm)):
        root = dense(function(change(projection)))
        close(root @ root, projection, 1e-13)
        close(root, projection, 1e-6)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_a_nilpotent_part_has_no_root(scale):
    """Once its residual was compared with the square of the root alone, which is large."""
    for a in ([[0, 1, 0], [0, 0, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1], [0, 0, 0]], np.eye(5, k=1)):
        x = sa.asarray(scale * np.asarray(a, float))
        with pytest.raises(np.linalg.LinAlgError, match="sqrtm: A has no principal square root"):
            sa.linalg.sqrtm(x)
        assert np.all(np.isnan(dense(jax.jit(sa.linalg.sqrtm)(x))))


def test_large_roots():
    """Roots of almost nilpotent matrices are large and accurate."""
    for a in ([[1e-20, 1.0], [0.0, 1e-20]], [[1e-20, 1e-10, 0.0], [0.0, 1e-20, 0.0], [0.0, 0.0, 1.0]]):
        expected = np.sqrt(np.diag(np.diag(a)))
        expected[0, 1] = a[0][1] / (2 * np.sqrt(a[0][0]))
        np.testing.assert_allclose(dense(sa.linalg.sqrtm(sa.asarray(a))), expected, rtol=1e-14)


@pytest.mark.parametrize(
    "x",
    [
        sa.asarray([[0.0, 1.0], [0.0, 0.0]]),
        sa.assume(sa.asarray([[1.0, 0.0], [0.0, -1.0]]), "positive_definite"),
        sa.assume(sa.Diagonal([1.0, -1.0]), "positive_semidefinite"),
        sa.assume(sa.Circulant([-1.0, 0.5]), "positive_semidefinite"),
        sa.BlockDiagonal([np.eye(2), [[0.0, 1.0], [0.0, 0.0]]]),
    ],
)
def test_matrices_without_a_root(x):
    with pytest.raises(np.linalg.LinAlgError, match="sqrtm: A has no principal square root"):
        sa.linalg.sqrtm(x)
    assert np.any(np.isnan(jax.jit(lambda x: as_jax(sa.linalg.sqrtm(x)))(x)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sa.linalg.expm(sa.ones((2, 3))), "expm: A must be square"),
        (lambda: sa.linalg.sqrtm(sa.ones(3)), "sqrtm: A must have at least two dimensions"),
        (lambda: sa.linalg.expm_multiply(sa.ones((2, 2)), sa.ones(3)), "expm_multiply: B must be .* M = 2 for A"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ---- derivatives --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_second_derivatives():
    v, a = random(6), random(6, 6)

    def action(t):
        return jnp.sum(as_jax(sa.linalg.expm_multiply(sa.tridiagonal(a[0, :5] * t, v * t, a[1, :5]), v)))

    def exponential(t):
        band = jnp.diag(v * t) + jnp.diag(a[0, :5] * t, -1) + jnp.diag(a[1, :5], 1)
        return jnp.sum(jax.scipy.linalg.expm(band) @ v)

    close(jax.grad(jax.grad(action))(0.7), jax.grad(jax.grad(exponential))(0.7), 1e-9)
    close(jax.vmap(jax.grad(action))(jnp.asarray([0.5, 3.0]))[1], jax.grad(exponential)(3.0), 1e-9)
    spd = a @ a.T + np.eye(6)

    def root(t):
        return jnp.sum(as_jax(sa.linalg.sqrtm(sa.assume(sa.asarray(spd * t), "positive_definite"))))

    close(jax.grad(root)(4.0), np.sum(scipy.linalg.sqrtm(spd)) / 4)
    close(jax.grad(jax.grad(root))(4.0), -np.sum(scipy.linalg.sqrtm(spd)) / 32)


def test_derivative_where_eigenvalues_coincide():
    gradient = jax.grad(lambda a: jnp.sum(as_jax(sa.linalg.sqrtm(sa.assume(sa.asarray(a), "positive_definite")))))(
        4 * jnp.eye(3)
    )
    close(gradient, np.full((3, 3), 0.25))


def test_repeat():
    def power(x, count):
        return loops.repeat(lambda state: state * x, jnp.ones(()), count, width=3, depth=2)

    for count in (0, 1, 4, 9):
        assert float(power(1.5, count)) == 1.5**count
        assert float(jax.grad(power)(1.5, count)) == pytest.approx(count * 1.5 ** (count - 1))
    assert float(power(1.5, 12)) == 1.5**9
    assert int(jax.jit(lambda v: jax.vmap(loops.largest)(v)[0])(jnp.asarray([[1, 5], [7, 2]]))) == 7


def test_what_is_assumed_holds_for_the_dense_form():
    """A singular matrix has its root as what it is assumed to be only: with eigenvalues that are zero to rounding."""
    for n in (6, 17):
        for x in (sa.Fill(4.0, (n, n)), sa.Toeplitz(np.full(n, 4.0)), sa.Hankel(np.full(n, 4.0), np.full(n, 4.0))):
            root = sa.linalg.sqrtm(sa.assume(x, "positive_semidefinite"))
            assert root.dtype == np.float64
            np.testing.assert_allclose(np.asarray(root), 2 / np.sqrt(n), rtol=1e-6)


@pytest.mark.parametrize("matrix", [np.zeros((3, 3)), np.ones((3, 3)), np.diag([1.0, 0.0, 2.0]), np.eye(3, k=1)])
def test_square_roots_of_singular_matrices_warn_of_nothing(matrix, recwarn):
    with sa.errstate(linalg="nan"):
        root = np.asarray(sa.linalg.sqrtm(sa.asarray(matrix)))
    assert not recwarn.list
    assert np.isnan(root).all() or np.allclose(root @ root, matrix)


@pytest.mark.parametrize(
    ("factor", "dtype"),
    [(1e-12, "float64"), (1e6, "float64"), (1e200, "float64"), (1e3, "complex64"), (1e-30, "complex64")],
)
def test_exponential_of_unbalanced_factors(factor, dtype):
    """One factor has small columns, and the other has large ones. Their product is of moderate size."""
    n = 20
    t, ones = np.linspace(0, 1, n)[:, None], np.ones((n, 1))
    u, v = np.hstack([factor * ones, t / factor]), np.hstack([t / factor, factor * ones]) / n
    for rows, right in ((n, t), (3, t[:3])):  # of low rank, and of a rank above half of the rows
        x = sa.LowRank(u[:rows].astype(dtype), v[:rows].astype(dtype))
        a = u[:rows] @ v[:rows].T
        tolerance = 100 * np.finfo(dtype).eps
        for exponential in (sa.linalg.expm, jax.jit(sa.linalg.expm)):
            np.testing.assert_allclose(dense(exponential(x)), scipy.linalg.expm(a), rtol=0, atol=tolerance)
        product = sa.linalg.expm_multiply(x, sa.asarray(right.astype(dtype)))
        np.testing.assert_allclose(dense(product), scipy.linalg.expm(a) @ right, rtol=0, atol=tolerance)


@pytest.mark.parametrize("factor", [1e5, 1e-50, 1e200])
def test_exponential_of_unbalanced_composed_factors(factor):
    """The factors of an elementwise product are Khatri–Rao products of the factors of its operands."""
    n = 30
    t = np.linspace(0, 1, n)[:, None]
    columns, scales = np.hstack([np.ones((n, 1)), t, t**2]), np.array([factor, 1, 1 / factor])
    x = sa.LowRank(columns * scales, columns / scales / n) * sa.LowRank(columns, np.cos(columns))
    assert type(x.u).__name__ == "KhatriRao"
    expected = scipy.linalg.expm(columns @ columns.T / n * (columns @ np.cos(columns).T))
    tolerance = 1e-13 * np.max(expected)
    for exponential in (sa.linalg.expm, jax.jit(sa.linalg.expm)):
        np.testing.assert_allclose(dense(exponential(x)), expected, rtol=0, atol=tolerance)
    product = sa.linalg.expm_multiply(x, sa.asarray(t))
    np.testing.assert_allclose(dense(product), expected @ t, rtol=0, atol=n * tolerance)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_the_norm_of_a_product_is_that_of_its_elements(transform):
    """The product of the norms is 2**58 times as large, and a series of that many steps would not end."""
    column, scales = np.r_[-2.0, 1.0, np.zeros(58)], 2.0 ** np.arange(-30, 30)
    x = sa.Product(sa.Diagonal(scales), sa.Toeplitz(column), sa.Diagonal(1 / scales))
    assert type(x) is sa.Product
    right = np.cos(np.arange(60.0))
    expected = scipy.linalg.expm(scipy.linalg.toeplitz(column) * scales[:, None] / scales) @ right
    tolerance = 1e-14 * np.max(abs(expected))
    product = transform(sa.linalg.expm_multiply)(x, right)
    np.testing.assert_allclose(dense(product), expected, rtol=0, atol=tolerance)
    change = transform(lambda x, y: jax.jvp(lambda y: sa.linalg.expm_multiply(x, y), (y,), (y,))[1])(x, right)
    np.testing.assert_allclose(dense(change), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("norm", [1e9, 1e300, np.inf, np.nan])
def test_a_series_without_end_is_not_computed(norm):
    stack = np.stack([np.diag([1.0, -1.0]), np.full((2, 2), norm)])
    product = dense(sa.linalg.expm_multiply(sa.asarray(stack), sa.ones(2)))
    np.testing.assert_allclose(product[0], np.exp([1.0, -1.0]), rtol=1e-14)
    assert np.isnan(product[1]).all()


def test_exponential_of_rank_zero():
    x = sa.LowRank(np.zeros((6, 0)), np.zeros((6, 0)))
    np.testing.assert_allclose(dense(sa.linalg.expm(x)), np.eye(6), rtol=1e-15)
    np.testing.assert_allclose(dense(sa.linalg.expm_multiply(x, sa.ones(6))), np.ones(6), rtol=1e-15)
