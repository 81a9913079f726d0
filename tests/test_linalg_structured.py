"""Linear algebra of structured arrays: values against NumPy on dense forms, classes, errors, derivatives, memory."""

import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from support import as_jax, dense

import structarrays as sa

CLASSES = ["Fill", "Identity", "Diagonal", "Banded", "gaps", "none", "Dense"]


def make(kind, shape, batch=(), dtype=np.float64, background=False, seed=0):
    """A random array of a structure; well conditioned where it is square and stores its diagonal."""
    m, n = shape
    rng = np.random.default_rng([seed, m, n, len(batch), CLASSES.index(kind)])

    def random(*s):
        v = rng.uniform(0.5, 1.5, s) * rng.choice([-1, 1], s)
        if np.issubdtype(dtype, np.complexfloating):
            v = v * np.exp(1j * rng.uniform(0, 6, s))
        return np.asarray(np.round(3 * v) if np.issubdtype(dtype, np.integer) else v, dtype)

    def diagonals(offsets):
        offsets = [k for k in offsets if -m < k < n]
        lengths = [len(np.diagonal(np.zeros(shape), k)) for k in offsets]
        return sa.Banded([random(*batch, k) * (4 if o == 0 else 1) for k, o in zip(lengths, offsets)], offsets, shape)

    if kind == "Fill":
        return sa.Fill(random(*batch), shape)
    if kind == "Dense":
        return sa.asarray(random(*batch, m, n)) + (4 * sa.eye(m, n, dtype=dtype)).to_dense()
    x = {
        "Identity": lambda: sa.Identity(shape, random(*batch)),
        "Diagonal": lambda: sa.Diagonal(random(*batch, min(m, n)), shape=shape),
        "Banded": lambda: diagonals((-1, 0, 1, 2)),
        "gaps": lambda: diagonals((-3, 0, 2)),
        "none": lambda: sa.Banded.make((jnp.zeros(batch, dtype), None), ((), shape)),
    }[kind]()
    return x.rebuild(x.entries, jnp.asarray(random(*batch))) if background else x


def check(actual, expected, rtol=1e-11, atol=0):
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    scale = np.max(np.abs(expected), initial=0, where=np.isfinite(expected))
    np.testing.assert_allclose(dense(actual), expected, rtol=rtol, atol=rtol * scale + atol)


def kind_of(x):
    return type(x).__name__ + (" + background" if x.background is not None else "")


# ---- products -----------------------------------------------------------------------------------------------------


STRUCTURES = [(kind, background) for kind in CLASSES for background in (False, True)]
STRUCTURES.remove(("Fill", True))
STRUCTURES.remove(("Dense", True))


@pytest.mark.parametrize(("kind", "background"), STRUCTURES)
def test_matmul_of_pairs(kind, background):
    for other, other_background in STRUCTURES:
        x = make(kind, (3, 5), (2,), background=background)
        y = make(other, (5, 4), (3, 1), background=other_background)
        check(x @ y, dense(x) @ dense(y))


@pytest.mark.parametrize(("kind", "background"), STRUCTURES)
@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_matmul_with_vectors(kind, background, batch):
    x = make(kind, (6, 4), batch, background=background)
    for right in (sa.asarray(np.arange(1.0, 5.0)), sa.Fill(2.0, 4)):
        check(x @ right, dense(x) @ dense(right))
    for left in (sa.asarray(np.arange(1.0, 7.0)), sa.Fill(2.0, 6)):
        check(left @ x, dense(left) @ dense(x))


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.complex128])
def test_matmul_dtypes(dtype):
    band, diagonal, full = (make(kind, (4, 4), (), dtype) for kind in ("Banded", "Diagonal", "Dense"))
    for x, y in itertools.product((band, diagonal), (band, full, make("Identity", (4, 4), (), dtype))):
        check(x @ y, dense(x) @ dense(y), 1e-5 if dtype == np.float32 else 1e-12)
    mixed = make("Banded", (4, 4), (), np.float32) @ full
    assert mixed.dtype == np.result_type(np.float32, full.dtype) if dtype != np.int32 else mixed.dtype == np.float32


PRODUCTS = {  # tests/data/expected_structures.md, 2.4; nothing densifies
    "Fill": "Fill Fill LowRank LowRank Dense",
    "Identity": "Fill Identity Diagonal Banded Dense",
    "Diagonal": "LowRank Diagonal Diagonal Banded Dense",
    "Banded": "LowRank Banded Banded Banded Dense",
    "Dense": "Dense Dense Dense Dense Dense",
}


@pytest.mark.parametrize("kind", PRODUCTS)
def test_classes_of_products(kind):
    for other, expected in zip(("Fill", "Identity", "Diagonal", "Banded", "Dense"), PRODUCTS[kind].split()):
        for f in (
            sa.matmul,
            lambda a, b: sa.tensordot(a, b, axes=1),
            lambda a, b: sa.tensordot(a, b, axes=((0,), (0,))),
        ):
            log = sa.explain(f, make(kind, (4, 4)), make(other, (4, 4)))
            assert kind_of(log.result) == expected
            assert not log.densifications


def test_identities_keep_classes():
    scale = 2.0 * sa.eye(4)
    for kind, background in STRUCTURES:
        x = make(kind, (4, 4), background=background)
        for product in (scale @ x, x @ scale):
            assert kind_of(product) == kind_of(x)
            check(product, 2 * dense(x))
    assert type(sa.Identity((3, 5)) @ sa.Identity((5, 4))) is sa.Identity
    wide = sa.Identity((4, 2)) @ sa.Identity((2, 4))  # two ones and two zeros
    assert type(wide) is sa.Diagonal
    check(wide, np.diag([1.0, 1, 0, 0]))


def test_fill_vectors():
    ones = sa.Fill(1.0, 4)
    assert [kind_of(r) for r in (ones @ make("Fill", (4, 3)), make("Fill", (3, 4)) @ ones, ones @ ones)] == [
        "Fill",
        "Fill",
        "Dense",
    ]
    assert kind_of(sa.linalg.outer(ones, 2.0 * ones)) == "Fill"
    check(sa.linalg.outer(ones, sa.asarray([1.0, 2.0])), np.outer(np.ones(4), [1.0, 2]))
    assert float(sa.Fill(2.0, 0) @ sa.Fill(np.inf, 0)) == 0.0


def test_strong_zeros():
    x, nan = sa.Diagonal([1.0, 2.0]), sa.asarray([[np.nan, 1.0], [np.inf, 3.0]])
    check(x @ nan, np.asarray([[np.nan, 1], [np.inf, 6]]))
    with sa.strong_zeros(False):
        check(x @ nan, np.diag([1.0, 2]) @ dense(nan))
        check(sa.vecdot(x, nan), np.asarray([np.nan, np.nan]))
        assert float(sa.tensordot(x, nan)) != float(sa.tensordot(x, nan))
    check(sa.vecdot(x, nan), np.asarray([np.nan, 6.0]))


@pytest.mark.parametrize("v", [[1, 2, 3, 4, 5], [0, 1, 1, 0, 1], [np.inf, 1, 1, 1, -np.inf], [np.nan, 0, 0, 0, 0]])
@pytest.mark.parametrize("f", [sa.cos, sa.log])
def test_backgrounds_have_the_special_values_of_dense_products(f, v):
    x, v = f(sa.Banded([[2.0, 3.0, 1.0, 2.0], [1.0, 1.0, 4.0]], (1, -2), (5, 5))), np.asarray(v, float)
    with np.errstate(all="ignore"):
        check(x @ v, dense(x) @ v)
        check(v @ x, v @ dense(x))


def test_background_products_do_not_cancel():
    x = sa.Diagonal([1e16, 1e16]) + 1.0  # 1 and -1e16 + (1e16 + 1) are not the same
    check(
        sa.Diagonal.make((jnp.asarray([1e16, 1e16]), jnp.asarray(1.0)), (2, 2)) @ sa.asarray([0.0, 1.0]),
        [1.0, 1e16] @ np.eye(2),
    )
    assert kind_of(x) == "Diagonal + background"


@pytest.mark.costly
@pytest.mark.parametrize(("kind", "background"), STRUCTURES)
def test_contractions(kind, background):
    for other in ("Fill", "Diagonal", "Banded", "Dense"):
        x, y = make(kind, (4, 4), (2,), np.complex128, background), make(other, (4, 4), (2,), np.complex128, seed=1)
        for axis in (-1, -2, -3):
            check(sa.vecdot(x, y, axis=axis), np.sum(dense(x).conj() * dense(y), axis=axis))
        check(sa.tensordot(x, y, axes=3), np.tensordot(dense(x), dense(y), 3))
        check(sa.tensordot(x, y, axes=((0, 1, 2), (0, 2, 1))), np.einsum("aij,aji->", dense(x), dense(y)))
        check(
            sa.tensordot(x[0, ...], y[1, ...], axes=((0,), (1,))), np.tensordot(dense(x)[0], dense(y)[1], ((0,), (1,)))
        )
    row = np.arange(4.0)
    check(sa.vecdot(x, row), np.sum(dense(x).conj() * row, -1))
    check(sa.tensordot(x[0, ...], row, axes=1), dense(x)[0] @ row)


# ---- parts and norms ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "background"), STRUCTURES)
@pytest.mark.parametrize(("shape", "dtype"), [((4, 4), np.float64), ((3, 5), np.complex128), ((5, 2), np.float64)])
def test_parts_and_norms(kind, background, shape, dtype):
    x = make(kind, shape, (2,), dtype, background=background)
    a = dense(x)
    check(x.mT, np.swapaxes(a, -1, -2))
    for k in (-9, -1, 0, 2):
        check(sa.linalg.diagonal(x, offset=k), np.diagonal(a, k, -2, -1))
        check(sa.linalg.trace(x, offset=k), np.trace(a, k, -2, -1))
    for order in ("fro", 1, -1, np.inf, -np.inf, 2, -2, "nuc"):
        # The smallest singular value may be a rounding error of the largest.
        atol = 1e-14 * np.max(np.linalg.norm(a, axis=(-2, -1))) if order == -2 else 0
        check(sa.linalg.matrix_norm(x, ord=order), np.linalg.norm(a, order, (-2, -1)), atol=atol)
    check(sa.linalg.matrix_norm(x, keepdims=True), np.linalg.norm(a, axis=(-2, -1), keepdims=True))
    for order in (2, 1, np.inf, -np.inf, 0, 3, 0.5):
        check(sa.linalg.vector_norm(x, axis=-1, ord=order), np.linalg.vector_norm(a, axis=-1, ord=order))
    check(sa.linalg.vector_norm(x, axis=0), np.linalg.vector_norm(a, axis=0))
    check(sa.linalg.vector_norm(x, ord=-2), np.linalg.vector_norm(a, ord=-2))
    check(sa.linalg.vector_norm(x), np.linalg.vector_norm(a))


# ---- systems, inverses, determinants ------------------------------------------------------------------------------

SQUARE = [(kind, background) for kind, background in STRUCTURES if kind not in ("Fill", "none")]


@pytest.mark.costly
@pytest.mark.parametrize(("kind", "background"), SQUARE)
def test_solve(kind, background):
    dtype = np.float64 if background else np.complex128
    x = make(kind, (5, 5), (2,), dtype, background)
    a = dense(x)
    vector = np.arange(1.0, 6.0)
    check(sa.linalg.solve(x, vector), np.linalg.solve(a, vector[:, None])[..., 0])
    for right in STRUCTURES:
        b = make(right[0], (5, 3), (3, 1), dtype, right[1])
        check(sa.linalg.solve(x, b), np.linalg.solve(a, dense(b)))
    check(jax.jit(sa.linalg.solve)(x, vector), np.linalg.solve(a, vector[:, None])[..., 0])


def test_classes_of_solutions():
    expected = {  # tests/data/expected_structures.md, 2.5, for vector, Dense, Fill, Identity, Diagonal, Banded
        "Identity": "Dense Dense Fill Identity Diagonal Banded",
        "Diagonal": "Dense Dense Fill Diagonal Diagonal Banded",
        "Banded": "Dense Dense None None None None",
        "Dense": "Dense Dense Dense Dense Dense Dense",
    }
    rights = [sa.ones(4), *(make(kind, (4, 4)) for kind in ("Dense", "Fill", "Identity", "Diagonal", "Banded"))]
    for kind, row in expected.items():
        for right, cell in zip(rights, row.split()):
            log = sa.explain(sa.linalg.solve, make(kind, (4, 4)), right)
            assert kind_of(log.result) == ("Dense" if cell == "None" else cell), (kind, right)
            assert bool(log.densifications) == (cell == "None"), (kind, right)


@pytest.mark.parametrize(("kind", "background"), SQUARE)
@pytest.mark.parametrize(("batch", "dtype"), [((), np.float32), ((2, 3), np.complex128)])
def test_inverses_determinants_and_powers(kind, background, batch, dtype):
    x = make(kind, (5, 5), batch, dtype, background)
    a, rtol = dense(x), 2e-4 if dtype == np.float32 else 1e-11
    check(sa.linalg.inv(x), np.linalg.inv(a), rtol)
    check(sa.linalg.det(x), np.linalg.det(a), rtol)
    sign, logabsdet = sa.linalg.slogdet(x)
    check(sign, np.linalg.slogdet(a)[0], rtol)
    check(logabsdet, np.linalg.slogdet(a)[1], rtol)
    check(sa.linalg.pinv(x), np.linalg.pinv(a), rtol)
    check(sa.linalg.matrix_rank(x), np.linalg.matrix_rank(a).astype(np.int64))
    for n in (0, 3, -2):
        check(sa.linalg.matrix_power(x, n), np.linalg.matrix_power(a, n), 10 * rtol)


@pytest.mark.parametrize("kind", ["Identity", "Diagonal", "Banded", "gaps", "Dense"])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_cholesky(kind, dtype):
    x = make(kind, (5, 5), (2,), dtype)
    if kind in ("Identity", "Diagonal"):
        x = sa.astype(sa.abs(x), dtype)
    else:
        x = sa.conj(x).mT @ x
    for upper in (False, True):
        factor = np.linalg.cholesky(dense(x))
        check(sa.linalg.cholesky(x, upper=upper), np.swapaxes(factor.conj(), -1, -2) if upper else factor)
    assert type(sa.linalg.cholesky(x)) is type(x)


def test_integers_are_taken_for_floating():
    x = sa.Diagonal(np.asarray([2, 4], np.int32))
    assert sa.linalg.inv(x).dtype == sa.linalg.solve(x, sa.ones(2, dtype=sa.int64)).dtype == np.float64
    check(sa.linalg.det(sa.tridiagonal([1], [2, 2], [1])), np.asarray(3.0))


CLASSES_OF_ONE = {  # tests/data/expected_structures.md, 1.6: Identity, Diagonal, Banded; "D" densifies
    "cholesky": ("Identity", "Diagonal", "Banded"),
    "det": ("Dense", "Dense", "Dense"),
    "diagonal": ("Dense", "Dense", "Dense"),
    "eig": ("Dense Identity", "Dense Identity", "Dense Dense"),
    "eigh": ("Dense Identity", "Dense Permutation", "Dense Dense"),
    "eigvals": ("Dense", "Dense", "D Dense"),
    "eigvalsh": ("Dense", "Dense", "Dense"),
    "inv": ("Identity", "Diagonal", "Dense"),
    "matrix_norm": ("Dense", "Dense", "Dense"),
    "matrix_rank": ("Dense", "Dense", "Dense"),
    "pinv": ("Identity", "Diagonal", "Dense"),
    "qr": ("Identity Identity", "Identity Diagonal", "Householder Banded"),
    "slogdet": ("Dense Dense", "Dense Dense", "Dense Dense"),
    "svd": ("Identity Dense Identity", "Product Dense Permutation", "Dense Dense Dense"),
    "svdvals": ("Dense", "Dense", "Dense"),
    "trace": ("Dense", "Dense", "Dense"),
}


@pytest.mark.parametrize("name", CLASSES_OF_ONE)
def test_classes_of_results(name):
    for kind, cell in zip(("Identity", "Diagonal", "Banded"), CLASSES_OF_ONE[name]):
        log = sa.explain(getattr(sa.linalg, name), make(kind, (4, 4), (2,)))
        results = log.result if isinstance(log.result, tuple) else (log.result,)
        assert [kind_of(r) for r in results] == [w for w in cell.split() if w != "D"]
        assert bool(log.densifications) == cell.startswith("D ")
        background = sa.explain(getattr(sa.linalg, name), make(kind, (4, 4), (2,), background=True))
        # Next to a constant systems and determinants are those of a sum with a term of rank one.
        kept = ("diagonal", "trace", "matrix_norm", "det", "slogdet", "inv")
        assert bool(background.densifications) == (name not in kept)


def test_powers_of_bands_are_banded():
    x = make("Banded", (5, 5))
    assert sa.linalg.matrix_power(x, 2).offsets == tuple(range(-2, 5))
    assert sa.linalg.matrix_power(x, 9).offsets == tuple(range(-4, 5))
    for kind in ("Fill", "Identity", "Diagonal", "Banded"):
        assert type(sa.linalg.matrix_power(make(kind, (5, 5)), 0)) is sa.Identity
        assert type(sa.linalg.matrix_power(make(kind, (5, 5)), 3)).__name__ == kind
    check(sa.linalg.matrix_power(make("Fill", (3, 3)), 3), np.linalg.matrix_power(dense(make("Fill", (3, 3))), 3))


# ---- spectra of diagonal matrices ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Identity", "Diagonal"])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_spectra(kind, dtype, shape):
    x = make(kind, shape, (2,), dtype)
    a, tall = dense(x), np.swapaxes
    for full in (True, False):
        u, s, vh = sa.linalg.svd(x, full_matrices=full)
        check(s, np.linalg.svd(a, compute_uv=False))
        sigma = np.zeros((2, u.shape[-1], vh.shape[-2]))
        sigma[:, range(3), range(3)] = dense(s)[:, :3]
        if shape == (4, 4):
            sigma = dense(s)[:, None, :] * np.eye(4)
        np.testing.assert_allclose(dense(u) @ sigma @ dense(vh), a, atol=1e-14)
        np.testing.assert_allclose(
            tall(dense(u).conj(), -1, -2) @ dense(u),
            np.broadcast_to(np.eye(u.shape[-1]), (2,) + u.shape[-1:] * 2),
            atol=1e-14,
        )
        np.testing.assert_allclose(
            dense(vh) @ tall(dense(vh).conj(), -1, -2),
            np.broadcast_to(np.eye(vh.shape[-2]), (2,) + (vh.shape[-2],) * 2),
            atol=1e-14,
        )
    check(sa.linalg.svdvals(x), np.linalg.svd(a, compute_uv=False))
    check(sa.linalg.pinv(x), np.linalg.pinv(a))
    check(sa.linalg.matrix_rank(x), np.full(2, min(shape)))
    for mode in ("reduced", "complete"):
        q, r = sa.linalg.qr(x, mode=mode)
        assert (q.shape, r.shape) == tuple(v.shape for v in np.linalg.qr(a, mode=mode))
        np.testing.assert_allclose(dense(q) @ dense(r), a, atol=1e-14)
        assert not np.any(np.imag(np.diagonal(dense(r), 0, -2, -1)))
    if shape == (4, 4):
        check(sa.linalg.eigvals(x), np.diagonal(a, 0, -2, -1).astype(complex))
        values, vectors = sa.linalg.eig(x)
        np.testing.assert_allclose(a @ dense(vectors), dense(vectors) * dense(values)[:, None, :], atol=1e-14)
        hermitian = (a + np.swapaxes(a.conj(), -1, -2)) / 2
        check(sa.linalg.eigvalsh(x), np.linalg.eigvalsh(hermitian))
        values, vectors = sa.linalg.eigh(x)
        check(values, np.linalg.eigvalsh(hermitian))
        np.testing.assert_allclose(hermitian @ dense(vectors), dense(vectors) * dense(values)[:, None, :], atol=1e-14)


def test_small_singular_values():
    x = sa.Diagonal([[4.0, 1e-20, 1.0], [0.0, 0.0, 0.0]])
    check(sa.linalg.matrix_rank(x), np.asarray([2, 0]))
    check(sa.linalg.matrix_rank(x, rtol=0.5), np.asarray([1, 0]))
    check(sa.linalg.matrix_rank(x, rtol=sa.asarray([0.5, 0.1])), np.asarray([1, 0]))
    check(sa.linalg.pinv(x, rtol=0.5), np.linalg.pinv(dense(x), rcond=0.5))
    assert type(sa.linalg.pinv(sa.Identity(3, 0.0))) is sa.Identity
    check(sa.linalg.pinv(sa.Identity(3, 0.0)), np.zeros((3, 3)))


# ---- errors -------------------------------------------------------------------------------------------------------

SINGULAR = {
    "Identity": sa.Identity(3, 0.0),
    "Diagonal": sa.Diagonal([1.0, 0.0, 2.0]),
    "Banded": sa.tridiagonal([1.0, 0.0], [1.0, 1.0, 1.0], [1.0, 0.0]),
    "none": sa.Banded([], (), (3, 3)),
    "Fill": sa.Fill(1.0, (3, 3)),
    "Dense": sa.ones((3, 3)),
    "background": sa.exp(sa.Identity(3, 0.0)),
}


@pytest.mark.costly
@pytest.mark.parametrize("kind", SINGULAR)
def test_singular_matrices(kind):
    x, b = SINGULAR[kind], sa.ones(3)
    for run in (
        lambda x: sa.linalg.solve(x, b),
        lambda x: sa.linalg.inv(x),
        lambda x: sa.linalg.matrix_power(x, -2),
        lambda x: sa.linalg.cholesky(-x),
    ):
        with pytest.raises(np.linalg.LinAlgError, match=r"linalg\.\w+: x"):
            run(x)
        with sa.errstate(linalg="nan"):
            assert np.any(np.isnan(dense(run(x))))
        assert np.any(np.isnan(dense(jax.jit(run)(x))))
    assert float(sa.linalg.det(x)) == pytest.approx(0, abs=1e-15)
    nan = x * np.nan
    if kind not in ("none", "background"):
        assert np.all(np.isnan(dense(sa.linalg.solve(nan, b))))  # NaN is no bad pivot


def test_an_empty_stack_has_no_singular_matrix():
    for x in (sa.Fill(1.0, (0, 2, 2)), sa.Fill(sa.ones(0), (2, 2)), sa.Diagonal(np.zeros((0, 2)))):
        assert sa.linalg.inv(x).shape == sa.linalg.cholesky(x).shape == (0, 2, 2)
        assert sa.linalg.solve(x, sa.ones(2)).shape == (0, 2)
    assert sa.linalg.solve(sa.Fill(1.0, (2, 2)), sa.ones((0, 2, 1))).shape == (0, 2, 1)


def test_broken_promises():
    for x in (
        sa.Diagonal([1.0, -1.0]),
        -sa.eye(2),
        sa.tridiagonal([2.0], [1.0, 1.0], [2.0]),
        sa.asarray([[1.0, 2], [2, 1]]),
    ):
        sa.linalg.solve(x, sa.ones(2))
        with pytest.raises(np.linalg.LinAlgError):
            sa.linalg.solve(sa.assume(x, "positive_definite"), sa.ones(2))
        with pytest.raises(np.linalg.LinAlgError):
            sa.linalg.inv(sa.assume(x, "positive_definite"))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("kind", ["Banded", "gaps", "Dense"])
def test_positive_definite(kind, dtype):
    x = make(kind, (6, 6), (2,), dtype)
    x = sa.assume(sa.conj(x).mT @ x, "positive_definite")
    b = make("Dense", (6, 2), (2,), dtype)
    check(sa.linalg.solve(x, b), np.linalg.solve(dense(x), dense(b)))
    check(sa.linalg.inv(x), np.linalg.inv(dense(x)))
    assert "positive_definite" in sa.linalg.inv(x).assumptions


# ---- derivatives --------------------------------------------------------------------------------------------------


@pytest.mark.costly
@pytest.mark.parametrize("kind", ["Identity", "Diagonal", "Banded", "gaps"])
@pytest.mark.parametrize("definite", [False, True])
def test_gradients_have_the_structure_and_are_those_of_the_dense_computation(kind, definite):
    x = make(kind, (5, 5))
    if definite:
        x = x.mT @ x
    b = sa.asarray(np.arange(1.0, 6.0))

    def f(x, linalg, xp, b):
        system = sa.assume(x, "positive_definite") if definite and xp is sa else x
        return xp.sum(xp.sin(linalg.solve(system, b))) + linalg.slogdet(x)[1] + xp.sum((x @ b) ** 2)

    gradient = jax.grad(lambda x: as_jax(f(x, sa.linalg, sa, b)))(x)
    full = jax.grad(lambda a: f(a, jnp.linalg, jnp, b.to_jax()))(x.to_jax())
    assert sa.same_structure(gradient, x)
    if kind == "Identity":
        check(gradient.scale, np.trace(full), 1e-10)
    else:
        for k, entries in zip(x.offsets, gradient.diagonals):
            check(entries, np.diagonal(full, k), 1e-10)


@pytest.mark.parametrize(
    "f",
    [
        lambda linalg, x: linalg.slogdet(x)[0].imag + linalg.slogdet(x)[1],
        lambda linalg, x: (
            linalg.svd(x)[0][0, 0].imag + linalg.svd(x)[2][1, 1].real
            if linalg is sa.linalg
            else x[0, 0].imag / abs(x[0, 0]) + 1.0
        ),
    ],
)
def test_phases_have_derivatives(f):
    x = sa.Diagonal([3.0 + 1j, 1.0 - 2j])
    gradient = sa.grad(lambda x: f(sa.linalg, x))(x)
    full = jax.grad(lambda a: f(jnp.linalg, a))(x.to_jax())
    check(gradient.diag, np.diagonal(full), 1e-12)
    scale = sa.Identity(2, 3.0 + 1j)
    full = jax.grad(lambda a: jnp.linalg.slogdet(a)[0].imag)(scale.to_jax())
    check(sa.grad(lambda x: sa.imag(sa.linalg.slogdet(x)[0]))(scale).scale, np.trace(full), 1e-12)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_gradient_of_pinv(shape):
    a = make("Dense", shape, (2,), np.complex128)

    def f(a):
        return jnp.sum(jnp.sin(as_jax(sa.linalg.pinv(a, rtol=sa.asarray(1e-9)))).real)

    tangent = as_jax(make("Dense", shape, (2,), np.complex128, seed=3))
    _, change = jax.jvp(f, (a.to_jax(),), (tangent,))
    step = 1e-6
    finite = (f(a.to_jax() + step * tangent) - f(a.to_jax() - step * tangent)) / (2 * step)
    np.testing.assert_allclose(change, finite, rtol=1e-6)
    np.testing.assert_allclose(jnp.sum(jax.grad(f)(a.to_jax()) * tangent).real, change, rtol=1e-10)


def test_gradient_of_cholesky():
    x = make("Banded", (5, 5))
    x = x.mT @ x
    gradient = sa.grad(lambda x: sa.sum(sa.cos(sa.linalg.cholesky(x))) - 10.0)(x)
    full = jax.grad(lambda a: jnp.sum(jnp.cos(jnp.linalg.cholesky(a))))(x.to_jax())
    for k, entries in zip(x.offsets, gradient.diagonals):
        check(entries, np.diagonal(full, k), 1e-10)


# ---- linear cost --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "f",
    [
        lambda A, b: A @ b,
        lambda A, b: b @ A,
        lambda A, b: A.mT @ A @ b,
        lambda A, b: sa.linalg.solve(A, b),
        lambda A, b: sa.linalg.solve(sa.assume(A, "positive_definite"), b),
        lambda A, b: sa.linalg.slogdet(A)[1],
        lambda A, b: sa.linalg.cholesky(A) @ b,
        lambda A, b: sa.linalg.matrix_norm(A) + sa.linalg.matrix_norm(A, ord=1) + sa.linalg.trace(A),
        lambda A, b: sa.vecdot(A, b),
        lambda A, b: sa.tensordot(A, A),
        lambda A, b: sa.linalg.matrix_power(A, 3) @ b,
        lambda A, b: sa.exp(A) @ b,
        lambda A, b: sa.linalg.solve(sa.Diagonal(b), A) @ b,
        lambda A, b: sa.linalg.inv(sa.Diagonal(b)) @ b,
        lambda A, b: jax.grad(lambda A: as_jax(sa.sum(sa.linalg.solve(A, b))))(A),
    ],
)
def test_memory_is_linear(f):
    n = 10**6
    main, off = jnp.full(n, 4.0), jnp.ones(n - 1)
    A, b = sa.tridiagonal(off, main, off), sa.Dense(main)
    with sa.densify("error"):
        compiled = jax.jit(f).lower(A, b).compile()
    sizes = [
        np.prod([int(k) for k in s.split(",")], dtype=float)
        for s in re.findall(r"\[(\d+(?:,\d+)*)\]", compiled.as_text())
    ]
    assert max(sizes) <= 50 * n
    memory = compiled.memory_analysis()
    assert memory.temp_size_in_bytes <= 50 * 8 * n


def test_a_million_unknowns():
    n = 10**6
    rng = np.random.default_rng(0)
    band = rng.normal(size=(3, n))
    A = sa.from_dia(band, (-1, 0, 1), (n, n))
    b = rng.normal(size=n)
    product = np.asarray(as_jax(A @ b))
    lower, main, upper = band[0, :-1], band[1], band[2, 1:]
    expected = main * b
    expected[1:] += lower * b[:-1]
    expected[:-1] += upper * b[1:]
    np.testing.assert_allclose(product, expected, rtol=1e-12, atol=1e-12)
    system = np.stack([np.append(0, upper), main + 5, np.append(lower, 0)])
    solution = sa.linalg.solve(A + 5.0 * sa.eye(n), b)
    np.testing.assert_allclose(dense(solution), scipy.linalg.solve_banded((1, 1), system, b), rtol=1e-9, atol=1e-9)
