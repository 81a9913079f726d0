"""Factorisations and systems by their factors under SciPy's names, with SciPy as the oracle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from oracles import check_everywhere, close, definite, dense, each, random
from support import as_jax

import structarrays as sa
from structarrays._functions.linalg.factorizations import LUResult
from structarrays._functions.linalg.indefinite import LDLResult
from structarrays._numerics import indefinite_factors as indefinite
from structarrays.testing import Case

PAIR = ("x1", "x2")
OTHERS = ("Toeplitz", "Sparse", "Sum", "Banded + background")


# ---- values and derivatives for all structures ------------------------------------------------------------------------

SQUARE = {"kinds": "floating", "condition": True}
CHOLESKY = (
    "Dense", "Identity", "Diagonal", "Banded", "BlockDiagonal", "BlockDiagonal, ragged", "Kronecker", "Symmetric", "Hermitian"
)  # fmt: skip


def _upper(x):
    return np.linalg.cholesky(x).conj().swapaxes(-1, -2)


DEFINITE = SQUARE | {"requires": ("positive definite",)}
CHOLESKY_CASES = [
    Case("cho_factor", "xp.linalg.cho_factor(x, lower=True).c", cores=("nn",), oracle=np.linalg.cholesky, **DEFINITE),
    Case("cho_factor", "xp.linalg.cho_factor(x).c", cores=("nn",), oracle=_upper, **DEFINITE),
    *(
        Case(
            "cho_solve",
            f"xp.linalg.cho_solve(xp.linalg.cho_factor(x1, {lower}), x2)",
            PAIR,
            cores,
            batches=batches,
            oracle=np.linalg.solve,
            **DEFINITE | {"requires": ("positive definite", "")},
        )
        for lower, cores, batches in (
            (True, ("nn", "nk"), "broadcast"),
            (False, ("nn", "nk"), "broadcast"),
            (False, ("nn", "n"), "first"),
        )
    ),
]


@pytest.mark.costly
@pytest.mark.parametrize("case", CHOLESKY_CASES, ids=lambda c: c.code)
def test_cholesky(case):
    if case is CHOLESKY_CASES[2]:
        check_everywhere(case, CHOLESKY, ("Toeplitz", "Sparse", "Circulant"))
    else:
        check_everywhere(
            case, ("Dense", "Banded", "Kronecker"), ("Diagonal", "BlockDiagonal, ragged", "Toeplitz", "Sparse")
        )


LU = (
    "Dense",
    "Identity",
    "Diagonal",
    "Banded",
    "BlockDiagonal",
    "BlockDiagonal, ragged",
    "Triangular",
    "Triangular, upper",
    "Kronecker",
)


def _transposed(trans):
    def run(a, b):
        a = a if trans == 0 else a.swapaxes(-1, -2) if trans == 1 else a.swapaxes(-1, -2).conj()
        return np.linalg.solve(a, b)

    return run


LU_CASES = [
    Case("lu_solve", f"xp.linalg.lu_solve(xp.linalg.lu_factor(x1), x2, trans={trans})", PAIR, cores, batches=batches,
         oracle=_transposed(trans), requires=("invertible", ""), **SQUARE)
    for trans, cores, batches in (
        (0, ("nn", "nk"), "broadcast"), (0, ("nn", "n"), "first"), (1, ("nn", "nk"), "broadcast"), (2, ("nn", "nk"), "broadcast"),
    )
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("case", LU_CASES, ids=lambda c: c.code)
def test_lu_solve(case):
    if case is LU_CASES[0]:
        check_everywhere(case, LU, OTHERS)
    else:
        check_everywhere(
            case, ("Dense", "Banded"), ("Identity", "Diagonal", "BlockDiagonal", "Triangular, upper", "Toeplitz", "Sum")
        )


@pytest.mark.costly
@pytest.mark.parametrize("cores", ["nn", "mn"])
def test_lu(cores):
    case = Case(
        "lu", "xp.linalg.lu(x)", cores=(cores,), kinds="floating", requires=("invertible",) if cores == "nn" else ("",),
        oracle=each(lambda a: LUResult(*scipy.linalg.lu(a)), (2,)),
        invariants="(r.p @ (r.l @ r.u), xp.triu(r.l), xp.tril(r.u, k=-1), xp.sum(r.p, axis=-1), xp.sum(r.p, axis=-2))",
        condition=cores == "nn",
    )  # fmt: skip
    # Where the pivots of two rows are equal, a random direction has other exchanges on either side.
    structures = LU if cores == "nn" else ("Dense", "Banded", "Triangular, upper")
    check_everywhere(
        case, structures, ("Toeplitz", "Permutation" if cores == "nn" else "Sparse"), unlike=("Kronecker", "Identity")
    )


@pytest.mark.costly
@pytest.mark.parametrize("trans", [0, 1, 2])
@pytest.mark.parametrize(("lower", "unit_diagonal"), [(False, False), (True, False), (True, True)])
def test_solve_triangular(trans, lower, unit_diagonal):
    options = {"trans": trans, "lower": lower, "unit_diagonal": unit_diagonal}
    solve = each(lambda a, b: scipy.linalg.solve_triangular(a, b, **options), (2, 2))
    code = "xp.linalg.solve_triangular(x1, x2, {}, {}, {})".format(*options.values())
    case = Case(
        "solve_triangular",
        code,
        PAIR,
        ("nn", "nk"),
        oracle=solve,
        requires=("invertible", ""),
        given=_is_tame,
        **SQUARE,
    )
    structures = (
        "Identity",
        "Diagonal",
        "BlockDiagonal",
        "Triangular",
        "Triangular, upper",
        "Triangular, unit diagonal",
    )
    others = ("Toeplitz", "Sum", "Kronecker", "Triangular + background")
    if trans:
        check_everywhere(case, ("Dense", "Banded"), ("Diagonal", "BlockDiagonal", "Triangular", "Toeplitz"))
    else:
        check_everywhere(case, ("Dense", "Banded", "BlockDiagonal"), (*structures, *others))


def _is_tame(a, b):
    """Whether both triangles are regular enough for differences."""
    diagonal = np.abs(np.diagonal(a, axis1=-2, axis2=-1))
    return bool(np.all(diagonal > 0.2)) and all(
        np.linalg.cond(t).max(initial=0) < 100 for t in (np.tril(a), np.triu(a))
    )


# ---- the factors ------------------------------------------------------------------------------------------------------


@pytest.mark.costly
@pytest.mark.parametrize("dtype", [float, complex])
def test_factors_are_those_of_scipy(dtype):
    a, s = random(6, 6, dtype=dtype), definite(6, dtype=dtype)
    for lower, half in ((False, np.triu), (True, np.tril)):
        c, flag = sa.linalg.cho_factor(s, lower)
        assert type(c) is sa.Triangular and flag is lower
        close(c, half(scipy.linalg.cho_factor(s, lower)[0]))
        close(
            sa.linalg.cho_solve(scipy.linalg.cho_factor(s, lower), a), np.linalg.solve(s, a)
        )  # garbage in the other half
    for matrix in (a, a[:, :4], a[:4]):
        lu, piv = sa.linalg.lu_factor(matrix)
        expected = scipy.linalg.lu_factor(matrix)
        close(lu, expected[0])
        np.testing.assert_array_equal(dense(piv), expected[1])
        for arguments in ({}, {"permute_l": True}, {"p_indices": True}):
            for part, other in zip(
                sa.linalg.lu(matrix, **arguments), scipy.linalg.lu(matrix, **arguments), strict=True
            ):
                close(part, other)
    close(sa.linalg.lu_solve(scipy.linalg.lu_factor(a), s), np.linalg.solve(a, s))


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize(("kl", "ku"), [(0, 2), (1, 1), (3, 1), (2, 3), (7, 1)])
def test_banded_factors_are_those_of_lapack(kl, ku, dtype):
    n = 8
    a = np.triu(np.tril(random(n, n, dtype=dtype), ku), -kl)
    if kl:
        a[0, 0] *= 1e-9  # or nothing would be exchanged
    offsets = range(-kl, ku + 1)
    x = sa.Banded([np.diagonal(a, k) for k in offsets], offsets, (n, n))
    ab = np.zeros((2 * kl + ku + 1, n), dtype)
    for i, j in np.ndindex(n, n):
        if -kl <= j - i <= ku:
            ab[kl + ku + i - j, j] = a[i, j]
    gbtrf = scipy.linalg.get_lapack_funcs("gbtrf", (ab,))
    factors, pivots, info = gbtrf(ab, kl, ku)
    assert info == 0
    with sa.densify("error"):
        lu, piv = sa.linalg.lu_factor(x)
    if dtype is float:  # of complex numbers LAPACK compares abs(real) + abs(imag)
        np.testing.assert_array_equal(dense(piv), pivots)
        for k in lu.offsets:
            row = factors[kl + ku - k]
            close(lu.diagonal(k), row[k:] if k >= 0 else row[: n + k])
    b = random(n, 3, seed=1, dtype=dtype)
    for trans, matrix in enumerate((a, a.T, a.conj().T)):
        close(sa.linalg.lu_solve((lu, piv), b, trans), np.linalg.solve(matrix, b), 1e-9)


@pytest.mark.parametrize("offsets", [(0,), (0, 1), (-1, 0), (-2, 0), (0, 2), (-1, 0, 1)])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_factors_of_the_narrowest_bands(offsets, n, rng):
    """Without subdiagonals there are no multipliers, and without superdiagonals no rows to update."""
    offsets = [k for k in offsets if abs(k) < n]
    a = sum(np.diag(rng.normal(size=n - abs(k)) + 3 * (k == 0), k) for k in offsets)
    x, b = sa.Banded([np.diagonal(a, k) for k in offsets], offsets, (n, n)), rng.normal(size=n)
    for run in (sa.linalg.lu_factor, jax.jit(sa.linalg.lu_factor)):
        with sa.densify("error"):
            factors = run(x)
        for trans, matrix in enumerate((a, a.T, a.T)):
            close(sa.linalg.lu_solve(factors, b, trans), np.linalg.solve(matrix, b))


def test_banded_factors_without_exchanges():
    """A dominant diagonal needs none, a larger entry below it or not."""
    a = sa.Banded([random(6), random(7) + 1, random(8) + 9, random(7)], (-2, -1, 0, 1), (8, 8))
    lu, piv = sa.linalg.lu_factor(a)
    np.testing.assert_array_equal(dense(piv), np.arange(8))
    factors = dense(lu)
    close((np.tril(factors, -1) + np.eye(8)) @ np.triu(factors), dense(a))
    shifted = sa.tridiagonal([2.0, 2.0], [1.0, 5.0, 5.0], [1.0, 1.0])
    np.testing.assert_array_equal(dense(sa.linalg.lu_factor(shifted).piv), np.arange(3))
    close(sa.linalg.lu_solve(sa.linalg.lu_factor(shifted), dense(shifted) @ np.ones(3)), np.ones(3))


def test_pivots_are_needed():
    """Without exchanges elimination would stop at a zero, or lose all digits."""
    for first in (0.0, 1e-18):
        a = sa.tridiagonal([1.0, 1.0], [first, 2.0, 3.0], [1.0, 1.0])
        close(sa.linalg.lu_solve(sa.linalg.lu_factor(a), sa.asarray([1.0, 4.0, 4.0])), np.ones(3))


@pytest.mark.slow
def test_structures_of_factors():
    band = sa.assume(sa.tridiagonal([1.0] * 3, [4.0] * 4, [1.0] * 3), "positive_definite")
    blocks = sa.BlockDiagonal([definite(2), definite(3)])
    product = sa.Kronecker(definite(5), band)
    with sa.densify("error"):
        for x, kind in (
            (band, sa.Banded),
            (blocks, sa.BlockDiagonal),
            (product, sa.Kronecker),
            (sa.eye(3), sa.Identity),
        ):
            c, _ = factor = sa.linalg.cho_factor(x)
            assert type(c) is kind
            close(sa.linalg.cho_solve(factor, sa.ones(x.shape[0])), np.linalg.solve(dense(x), np.ones(x.shape[0])))
        assert [type(f) for f in sa.linalg.cho_factor(product).c.factors] == [sa.Triangular, sa.Banded]
        p, lower, u = sa.linalg.lu(band)
        assert (type(p), type(lower), type(u)) == (sa.Permutation, sa.Banded, sa.Banded)
        assert lower.offsets == (-1, 0) and u.offsets == (0, 1)
        close(lower @ u, dense(band))
        for x, kind in ((blocks, sa.BlockDiagonal), (product, sa.Kronecker)):
            p, lower, u = sa.linalg.lu(x)
            assert (type(lower), type(u)) == (kind, kind)
            close(p @ (lower @ u), dense(x))
            assert np.max(np.abs(dense(lower))) <= 1 + 1e-15
        assert type(sa.linalg.lu_factor(blocks).lu) is sa.BlockDiagonal
        upper = sa.Triangular(random(4, 4), lower=False)
        assert type(sa.linalg.lu_factor(upper).lu) is sa.Triangular
    with pytest.raises(sa.DensifyError), sa.densify("error"):
        sa.linalg.lu_factor(sa.Toeplitz([3.0, 1.0, 0.5]))


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize(("dtype", "hermitian"), [(float, True), (complex, True), (complex, False)])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 20, 75])
def test_ldl(n, dtype, hermitian, lower):
    a = random(n, n, dtype=dtype)
    a = a + (a.conj().T if hermitian else a.T)
    a[0, 0] = a[-1, -1] = 0  # a block of two rows
    for ours, scipys in zip(
        sa.linalg.ldl(a, lower, hermitian), scipy.linalg.ldl(a, lower=lower, hermitian=hermitian), strict=True
    ):
        close(ours, scipys, 1e-9)
    lu, d, _ = map(dense, sa.linalg.ldl(a, lower, hermitian))
    close(lu @ d @ (lu.conj().T if hermitian else lu.T), a, 1e-13)


@pytest.mark.parametrize("dtype", [float, complex])
def test_ldl_with_blocks_across_panels(dtype):
    """All but the first pivot have two rows, so that some begin in the last column of a panel."""
    n = 2 * indefinite._WIDTH + 5
    a = 1e-3 * random(n, n, dtype=dtype)
    a = a + a.conj().T
    a[0, 0] = 5
    for k in range(1, n - 1, 2):
        a[k, k + 1] = a[k + 1, k] = k
    stack = np.stack([a, a[::-1, ::-1]])
    for x, (lu, d, perm) in zip(stack, zip(*(dense(r) for r in sa.linalg.ldl(stack)), strict=True), strict=True):
        for ours, scipys in zip((lu, d, perm), scipy.linalg.ldl(x), strict=True):
            close(ours, scipys, 1e-11)
    assert np.count_nonzero(np.diagonal(dense(sa.linalg.ldl(a).d), 1)) == n // 2


def _ldl(a):
    lu, d, perm = scipy.linalg.ldl(a)
    return LDLResult(lu, d, perm.astype(np.int32))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("exponent", [-0.8, -0.4, -0.2, 0.8])
def test_ldl_at_extreme_scales(dtype, exponent, rng):
    """Pivots are compared, and their blocks inverted, without squares, which leave the range; LAPACK does the same."""
    scale = float(np.finfo(dtype).max) ** exponent
    a = rng.normal(size=(30, 30)) + 1j * rng.normal(size=(30, 30))
    a = ((a + a.conj().T) if "complex" in dtype else (a + a.conj().T).real) * scale
    smooth = scale * np.exp(-(np.subtract.outer(np.arange(30.0), np.arange(30.0)) ** 2) / 50 + 0j * np.ones((30, 30)))
    for matrix in (a, smooth if "complex" in dtype else smooth.real):
        matrix = matrix.astype(dtype)

        def error(lower, d, matrix=matrix):
            lower, d = (np.asarray(x).astype(np.clongdouble) for x in (lower, d))
            return float(np.max(np.abs(lower @ d @ lower.conj().T - matrix)) / np.max(np.abs(matrix)))

        theirs = error(*scipy.linalg.ldl(matrix)[:2])
        assert error(*sa.linalg.ldl(matrix)[:2]) <= 10 * max(theirs, np.finfo(dtype).eps)


@pytest.mark.costly
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("hermitian", [True, False])
def test_ldl_on_the_host_and_in_xla_choose_the_same_pivots(dtype, hermitian, rng):
    a = rng.normal(size=(3, 70, 70))
    a = (a + 1j * rng.normal(size=a.shape) if "complex" in dtype else a).astype(dtype)
    a = a + (a.mT.conj() if hermitian else a.mT)
    a[1] *= np.array(rng.random(size=(70, 70)) < 0.05) & np.array(rng.random(size=(70, 70)) < 0.05).T
    a[1] = a[1] + (a[1].T.conj() if hermitian else a[1].T)
    shapes = [(a.shape, dtype), (a.shape[:-1], dtype), (a.shape[:-1], dtype), (a.shape[:-1], "int32")]
    host = [np.zeros(*shape) for shape in shapes]
    indefinite._by_lapack(*host, a, hermitian=hermitian)
    lower, main, beside, perm = map(np.asarray, indefinite._by_panels(jnp.asarray(a), hermitian=hermitian))
    np.testing.assert_array_equal(host[3], perm)
    tolerance = {"atol": 2e3 * np.finfo(dtype).eps, "rtol": 1e4 * np.finfo(dtype).eps}
    for got, want in ((np.tril(host[0], -1), np.tril(lower, -1)), (host[1], main), (host[2], beside)):
        np.testing.assert_allclose(got, want, **tolerance)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_ldl_of_values_that_are_not_finite(value):
    a = np.stack([np.eye(5), np.eye(5)])
    a[1, 3, 2] = a[1, 2, 3] = value
    for function in (sa.linalg.ldl, jax.jit(sa.linalg.ldl), jax.vmap(sa.linalg.ldl)):
        lu, d, _ = function(a)
        assert np.isnan(dense(d)[1]).any() and np.isnan(dense(lu)[1]).any()
        np.testing.assert_array_equal(dense(lu)[0], np.eye(5))


def test_ldl_of_structures():
    options = {"oracle": each(_ldl, (2,)), "kinds": "floating"}
    product = "r.lu @ (r.d @ xp.conj(xp.matrix_transpose(r.lu)))"
    options |= {"invariants": f"({product}, xp.triu(r.d, k=2), xp.tril(r.d, k=-2))", "requires": ("hermitian",)}
    case = Case("ldl", "xp.linalg.ldl(x)", cores=("nn",), condition=True, **options)
    check_everywhere(
        case, ("Dense",), ("Diagonal", "Banded", "Symmetric", "Toeplitz", "Kronecker"), dtypes=("float64",)
    )
    band = sa.assume(sa.tridiagonal([1.0] * 3, [4.0] * 4, [1.0] * 3), "positive_definite")
    with sa.densify("error"):
        lu, d, perm = sa.linalg.ldl(band)
        assert (type(lu), type(d)) == (sa.Banded, sa.Diagonal)
        close(lu @ d @ lu.mT, dense(band))
        np.testing.assert_array_equal(dense(perm), np.arange(4))
        assert type(sa.linalg.ldl(sa.Diagonal([1.0, -2.0])).d) is sa.Diagonal


@pytest.mark.costly
@pytest.mark.parametrize("imaginary", [0, 1j])
def test_derivative_of_ldl(imaginary):
    a, direction = (random(6, 6, seed=s) + imaginary * random(6, 6, seed=s + 4) for s in (0, 1))
    a, direction = a + a.conj().T, direction + direction.conj().T
    a[0, 0] = 0

    def factors(t, lower):
        lu, d, _ = scipy.linalg.ldl(a + t * direction, lower=lower)
        return lu, d

    for lower in (True, False):

        def ours(t, lower=lower):
            lu, d, _ = sa.linalg.ldl(a + t * direction, lower)
            return as_jax(lu), as_jax(d)

        changes = jax.jvp(ours, (0.0,), (1.0,))[1]
        h = 1e-6
        for change, up, down in zip(changes, factors(h, lower), factors(-h, lower), strict=True):
            close(change, (up - down) / (2 * h), 1e-7)
        weights = [random(6, 6, seed=2), random(6, 6, seed=3)]
        cotangents = tuple(jnp.asarray(w, c.dtype) for w, c in zip(weights, changes, strict=True))
        backward = jax.vjp(ours, 0.0)[1](cotangents)[0]
        close(backward, sum(np.sum(w * c).real for w, c in zip(weights, changes, strict=True)), 1e-9)


def test_ldl_of_zeros_and_under_vmap():
    lu, d, perm = sa.linalg.ldl(sa.zeros((3, 3)))
    close(lu, np.eye(3))
    close(d, np.zeros((3, 3)))
    a = np.stack([random(4, 4, seed=k) + random(4, 4, seed=k).T for k in range(3)])
    for result in (jax.vmap(sa.linalg.ldl)(a), sa.linalg.ldl(a)):
        close(result.lu @ result.d @ result.lu.mT, a)


# ---- transformations --------------------------------------------------------------------------------------------------


def test_factors_go_through_transformations():
    s, b = np.stack([definite(4), definite(4, seed=1)]), random(4)
    expected = np.linalg.solve(s, np.broadcast_to(b[:, None], (2, 4, 1)))[..., 0]
    factor = jax.jit(sa.linalg.cho_factor)(s)
    assert factor.lower is False
    close(jax.jit(sa.linalg.cho_solve)(factor, b), expected)
    close(jax.vmap(lambda f: sa.linalg.cho_solve(f, b))(jax.vmap(sa.linalg.cho_factor)(s)), expected)
    close(jax.vmap(lambda f: sa.linalg.lu_solve(f, b))(jax.vmap(sa.linalg.lu_factor)(s)), expected)
    one = sa.linalg.cho_factor(s[0], lower=True)

    def step(carry, right):
        return carry, sa.linalg.cho_solve(carry, right)

    carry, solutions = jax.lax.scan(step, one, jnp.stack([b, 2 * b]))
    assert carry.lower is True
    close(solutions[1], 2 * expected[0])


@pytest.mark.slow
def test_banded_factors_go_through_vmap():
    diagonals = [random(3, 5 - abs(k), seed=k + 9) + 4 * (k == 0) for k in (-2, 0, 1)]
    x, b = sa.Banded(diagonals, (-2, 0, 1), (5, 5)), random(5, 2)
    expected = np.linalg.solve(dense(x), b)
    close(jax.vmap(lambda a: as_jax(sa.linalg.lu_solve(sa.linalg.lu_factor(a), b)))(x), expected)
    factors = sa.linalg.lu_factor(jax.tree.map(lambda leaf: leaf[0], x))
    rights = np.stack([b, 2 * b, 3 * b])
    close(jax.vmap(lambda r: as_jax(sa.linalg.lu_solve(factors, r)))(rights)[2], 3 * expected[0])

    def loss(a):
        return jnp.sum(as_jax(sa.linalg.lu_solve(sa.linalg.lu_factor(a), b)) ** 2)

    def dense_loss(a):
        return jnp.sum(jnp.linalg.solve(a, b) ** 2)

    gradient = jax.vmap(jax.grad(loss))(x)
    whole = jax.vmap(jax.grad(dense_loss))(x.to_jax())
    for k in x.offsets:
        close(gradient.diagonal(k), np.diagonal(whole, k, -2, -1))


def test_gradients_against_dense_ones():
    s, b = definite(5), random(5, 2)

    def with_factor(a):
        return jnp.sum(as_jax(sa.linalg.cho_solve(sa.linalg.cho_factor(a), b)) ** 2)

    gradient = jax.grad(with_factor)(jnp.asarray(s))
    plain = jax.grad(lambda a: jnp.sum(jnp.linalg.solve((a + a.T) / 2, b) ** 2))(jnp.asarray(s))
    close(gradient, plain)
    a = random(5, 5)
    gradient = jax.grad(lambda a: jnp.sum(as_jax(sa.linalg.lu(a).u) ** 2))(jnp.asarray(a))
    plain = jax.grad(lambda a: jnp.sum(jax.scipy.linalg.lu(a)[2] ** 2))(jnp.asarray(a))
    close(gradient, plain)


# ---- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda: sa.linalg.cho_factor(-sa.eye(3)),
        lambda: sa.linalg.cho_factor(sa.tridiagonal([2.0], [1.0, 1.0], [2.0])),
        lambda: sa.linalg.cho_factor(-definite(3)),
        lambda: sa.linalg.cho_solve((sa.zeros((2, 2)), True), sa.ones(2)),
        lambda: sa.linalg.lu_solve(sa.linalg.lu_factor(sa.ones((3, 3))), sa.ones(3)),
        lambda: sa.linalg.lu_solve(sa.linalg.lu_factor(sa.tridiagonal([1.0], [1.0, 1.0], [1.0])), sa.ones(2)),
        lambda: sa.linalg.solve_triangular(sa.asarray([[1.0, 2.0], [0.0, 0.0]]), sa.ones(2)),
        lambda: sa.linalg.solve_banded((1, 1), sa.zeros((3, 4)), sa.ones(4)),
        lambda: sa.linalg.solveh_banded(-sa.ones((2, 4)), sa.ones(4)),
        lambda: sa.linalg.cholesky_banded(-sa.ones((2, 4))),
        lambda: sa.linalg.cho_solve_banded((sa.zeros((2, 4)), False), sa.ones(4)),
    ],
)
def test_singular_and_indefinite_matrices(call):
    with pytest.raises(np.linalg.LinAlgError):
        call()

    def compiled():
        result = call()
        return jnp.ravel(as_jax(result[0] if isinstance(result, tuple) else result))

    with sa.errstate(linalg="nan"):
        assert np.any(np.isnan(compiled()))
    assert np.any(np.isnan(jax.jit(compiled)()))


@pytest.mark.slow
def test_singular_matrices_have_lu_factors():
    for a in (sa.zeros((3, 3)), sa.Banded([[0.0, 0.0], [0.0, 0.0, 0.0]], (-1, 0)), sa.Diagonal([1.0, 0.0])):
        lu, piv = sa.linalg.lu_factor(a)
        assert np.all(np.isfinite(dense(lu))) and np.any(np.diagonal(dense(lu)) == 0)
        np.testing.assert_array_equal(dense(piv), np.arange(a.shape[0]))
        p, lower, u = sa.linalg.lu(a)
        close(p @ (lower @ u), dense(a))


A, B = sa.eye(3).to_dense(), sa.ones((3, 2))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: sa.linalg.cho_factor(sa.ones((2, 3))), ValueError, "cho_factor: a must be square"),
        (lambda: sa.linalg.cho_factor(A > 0), TypeError, "cho_factor: a must have a floating-point or integer dtype"),
        (lambda: sa.linalg.cho_factor(A, check_finite=False), TypeError, "cho_factor.*check_finite"),
        (lambda: sa.linalg.cho_solve(A, B), TypeError, r"c_and_lower must be a pair \(array, lower\), got Dense"),
        (lambda: jax.jit(lambda low: sa.linalg.cho_solve((A, low), B))(True), TypeError, "must be a static bool"),
        (lambda: sa.linalg.cho_solve((A, True), sa.ones(4)), ValueError, "M = 3 for c_and_lower.* got shape"),
        (lambda: sa.linalg.lu_solve((A,), B), TypeError, "lu_and_piv must be a pair"),
        (lambda: sa.linalg.lu_solve((A, sa.ones(3)), B), TypeError, r"lu_and_piv\[1\] must have an integer dtype"),
        (lambda: sa.linalg.lu_solve((A, sa.arange(2)), B), ValueError, r"lu_and_piv\[1\] must be \(..., 3\)"),
        (lambda: sa.linalg.lu_solve(sa.linalg.lu_factor(A), B, trans=3), ValueError, "trans must be 0, 1, 2"),
        (lambda: sa.linalg.solve_triangular(A, B, "X"), ValueError, "trans must be 0, 1, 2"),
        (lambda: sa.linalg.solve_triangular(A, sa.asarray(1.0)), ValueError, "b must have at least one dimension"),
        (lambda: sa.linalg.lu(sa.ones(3)), ValueError, "lu: a must have at least two dimensions"),
        (lambda: sa.linalg.solve_banded((1, 1), A[:2, :], sa.ones(3)), ValueError, "ab must have l . u . 1 rows"),
        (lambda: sa.linalg.solve_banded(3, A, sa.ones(3)), ValueError, "l_and_u must be two integers"),
        (lambda: sa.linalg.solve_banded((1, 1), A, sa.ones(4)), ValueError, "M = 3 for ab"),
        (lambda: sa.linalg.lstsq(A, sa.ones(4)), ValueError, "M = 3 for a"),
        (lambda: sa.linalg.lstsq(A, B, 1j), TypeError, "cond must be real"),
        (lambda: sa.linalg.lstsq(A, B, rcond=1j), TypeError, "rcond must be real"),
        (lambda: sa.linalg.lstsq(A, B, 0.1, rcond=0.1), TypeError, "only one of cond and rcond may be given"),
        (lambda: sa.linalg.logdet(sa.ones((2, 3))), ValueError, "logdet: x must be square"),
    ],
)  # fmt: skip
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_ldl_of_empty_matrices():
    for shape in ((0, 0), (0, 3, 3), (2, 0, 0)):
        lower, d, perm = sa.linalg.ldl(sa.zeros(shape))
        assert lower.shape == d.shape == shape and perm.shape == shape[:-1]
