"""`Householder`, and QR decompositions of banded matrices, which make it: against NumPy and SciPy on dense values."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from support import adjoint, as_jax, dense, normal

import structarrays as sa

pytestmark = pytest.mark.costly

OFFSETS = [(-1, 0, 1), (-2, 0, 1), (-3, -1), (-1, 2), (-2, -1, 0, 1, 2)]
SHAPES = [((6, 6), (2,)), ((9, 4), ()), ((4, 9), ()), ((5, 1), ()), ((1, 5), ())]


def banded(shape, offsets, dtype=float, batch=(), seed=0):
    m, n = shape
    kept = [k for k in offsets if -m < k < n]
    lengths = [min(m, n - k) if k >= 0 else min(m + k, n) for k in kept]
    diagonals = [normal(*batch, size, seed=seed + i, dtype=dtype) for i, size in enumerate(lengths)]
    return sa.Banded(diagonals, kept, shape)


def close(x, expected, rtol=1e-13):
    x, expected = dense(x), np.asarray(expected)
    assert x.shape == expected.shape
    np.testing.assert_allclose(x, expected, rtol=rtol, atol=rtol * max(1, np.max(np.abs(expected), initial=0)))


def same_up_to_phases(q, r, a, mode):
    """The factors are NumPy's, except for a number of modulus 1 for each row of R, and what is arbitrary of a complete Q."""
    expected = np.linalg.qr(a, mode=mode)
    k = min(a.shape[-2:])
    phases = np.sum(expected.Q[..., :k].conj() * q[..., :k], axis=-2)
    np.testing.assert_allclose(np.abs(phases), 1, atol=1e-10)
    np.testing.assert_allclose(r[..., :k, :], phases.conj()[..., None] * expected.R[..., :k, :], atol=1e-10)


# ---- decompositions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("offsets", OFFSETS)
def test_qr(offsets, dtype, mode):
    for (m, n), batch in SHAPES:
        x = banded((m, n), offsets, dtype, batch)
        with sa.densify("error"):
            q, r = sa.linalg.qr(x, mode=mode)
        a, inner = dense(x), m if mode == "complete" else min(m, n)
        if min(x.offsets, default=0) < 0:  # else it is an identity
            assert type(q) is sa.Householder
        assert isinstance(r, sa.Banded) and min(r.offsets, default=0) >= 0
        assert q.shape == (*batch, m, inner) and r.shape == (*batch, inner, n) and q.dtype == r.dtype == x.dtype
        q, r = dense(q), dense(r)
        np.testing.assert_allclose(q @ r, a, atol=1e-14 * np.linalg.norm(a))
        np.testing.assert_allclose(adjoint(q) @ q, np.broadcast_to(np.eye(inner), (*batch, inner, inner)), atol=3e-15)
        assert np.all(np.diagonal(r, axis1=-2, axis2=-1).imag == 0)
        if np.linalg.cond(a).max() < 1e6:
            same_up_to_phases(q, r, a, mode)


def test_r_has_as_many_superdiagonals_as_there_are_diagonals():
    for offsets, expected in (((-1, 0, 1), (0, 1, 2)), ((-2, 0), (0, 1, 2)), ((-2, -1, 0, 1), (0, 1, 2, 3))):
        q, r = sa.linalg.qr(banded((50, 50), offsets))
        assert r.offsets == expected
        assert q.v.shape == (50, 1 - offsets[0]) and q.tau.shape == (50,)


@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("offsets", [(0, 2), (1,), (), (1, 3)])
def test_upper_triangular_matrices_are_their_own_r(offsets, mode):
    for shape in ((6, 6), (6, 4), (4, 6)):
        for dtype in (float, complex):
            x = banded(shape, offsets, dtype) if offsets else sa.Banded([], (), shape)
            q, r = sa.linalg.qr(x, mode=mode)
            assert isinstance(q, sa.Diagonal) and type(r) is sa.Banded
            a, (q, r) = dense(x), map(dense, (q, r))
            expected = np.linalg.qr(a, mode=mode)
            assert q.shape == expected.Q.shape and r.shape == expected.R.shape
            np.testing.assert_allclose(q @ r, a, atol=1e-14)
            np.testing.assert_allclose(adjoint(q) @ q, np.eye(q.shape[1]), atol=1e-15)
            assert np.all(np.diagonal(r).imag == 0) and np.all(np.tril(r, -1) == 0)


@pytest.mark.parametrize(
    "name", ["graded rows", "graded columns", "tiny", "huge", "nearly singular", "singular", "zero columns"]
)
def test_orthogonality_and_backward_errors(name):
    """Column by column the error is small relative to the column (Higham, *Accuracy and Stability of Numerical Algorithms*, 19.4)."""
    n = 60
    x = banded((n, n), (-2, -1, 0, 1), seed=3)
    a = np.array(dense(x))
    scales = 10.0 ** np.linspace(-150, 150, n)
    if name == "graded rows":
        a = a * 10.0 ** np.linspace(0, -12, n)[:, None]
    elif name == "graded columns":
        a = a * scales
    elif name in ("tiny", "huge"):
        a = a * (1e-200 if name == "tiny" else 1e200)
    elif name == "nearly singular":
        a = np.tril(np.triu(np.ones((n, n)), -1), 1) + 1e-13 * a
    elif name == "singular":
        a = np.diag(np.full(n, 2.0)) - np.diag(np.ones(n - 1), 1) - np.diag(np.ones(n - 1), -1)
        a[0, 0] = a[-1, -1] = 1
    else:
        a[:, [0, 5, 6, 7, 8, 9, 10, n - 1]] = 0
    x = sa.Banded([np.diagonal(a, k) for k in (-2, -1, 0, 1)], (-2, -1, 0, 1), (n, n))
    q, r = map(dense, sa.linalg.qr(x))
    sizes = np.max(np.abs(a), axis=0)
    sizes[sizes == 0] = 1
    assert np.max(np.abs(q.T @ q - np.eye(n))) < 5e-15
    assert np.max(np.abs(q @ (r / sizes) - a / sizes)) < 2e-14


def test_nan_spreads_and_raises_nothing():
    x = sa.tridiagonal(np.ones(4), np.array([1.0, 2.0, np.nan, 1.0, 1.0]), np.ones(4))
    q, r = sa.linalg.qr(x)
    assert np.isnan(dense(r)).any() and not np.isnan(dense(r)[0]).any()


def test_single_precision():
    x = sa.astype(banded((30, 20), (-2, 0, 1)), sa.float32)
    q, r = sa.linalg.qr(x)
    assert q.dtype == r.dtype == np.float32
    np.testing.assert_allclose(dense(q) @ dense(r), dense(x), atol=2e-6)
    assert np.max(np.abs(dense(q).T @ dense(q) - np.eye(20))) < 2e-6


def test_a_million_rows_take_linear_memory():
    n = 1_000_000
    x = sa.tridiagonal(-np.ones(n - 1), np.full(n, 3.0), np.linspace(0, 1, n - 1))
    b = normal(n)
    with sa.densify("error"):
        q, r = sa.linalg.qr(x)
        solution = sa.linalg.solve(r, q.mT @ b)
        assert abs(float(sa.linalg.vector_norm(q @ b)) - np.linalg.norm(b)) < 1e-9
    np.testing.assert_allclose(dense(x @ solution), b, atol=1e-12)
    compiled = jax.jit(lambda x, b: sa.linalg.qr(x).Q.mT @ b).lower(x, b).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 40 * n * 8


# ---- the array ---------------------------------------------------------------------------------------------------------


def factors(m, c, k, w, dtype=float, batch=(), seed=0):
    """Parameters of random unitary reflectors, and the product as NumPy makes it."""
    v = normal(*batch, k, w, seed=seed, dtype=dtype)
    v = np.where(np.arange(k)[:, None] + np.arange(w) < m, v, 0)
    phases = np.exp(2j * np.pi * np.random.default_rng(seed + 1).uniform(size=(*batch, k))) if dtype is complex else -1
    tau = (1 - phases) / np.sum(np.abs(v) ** 2, axis=-1)
    q = np.broadcast_to(np.eye(m, dtype=dtype), (*batch, m, m))
    for j in range(k):
        whole = np.zeros((*batch, m), dtype)
        rows = min(w, m - j)
        whole[..., j : j + rows] = v[..., j, :rows]
        q = q @ (np.eye(m) - tau[..., j, None, None] * whole[..., :, None] * whole[..., None, :].conj())
    return v, tau, q[..., :c]


@pytest.mark.slow
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize(
    "m, c, k, w", [(7, 7, 7, 3), (7, 4, 4, 3), (7, 7, 2, 2), (9, 5, 3, 1), (4, 4, 4, 4), (3, 0, 0, 2)]
)
def test_products_and_what_is_known_in_advance(m, c, k, w, dtype, transposed):
    for batch in ((), (2,)):
        v, tau, expected = factors(m, c, k, w, dtype, batch)
        x = sa.Householder(v, tau, (m, c))
        if transposed:
            x, expected = x.mT, np.swapaxes(expected, -1, -2)
        assert type(x) is sa.Householder
        close(x, expected)
        rows, columns = expected.shape[-2:]
        right, left = normal(columns, 3, dtype=dtype), normal(3, rows)
        with sa.densify("error"):
            close(x @ right, expected @ right)
            close(x @ right[:, 0], expected @ right[:, 0])
            close(left @ x, left @ expected)
            close(left[0] @ x, left[0] @ expected)
            close(x @ normal(2, columns, 2), expected @ normal(2, columns, 2))
            close(sa.conj(x) @ right, expected.conj() @ right)
            close(sa.linalg.pinv(x) @ normal(rows, 2), np.linalg.pinv(expected) @ normal(rows, 2))
            close(sa.linalg.svdvals(x), np.linalg.svd(expected, compute_uv=False))
            assert np.all(dense(sa.linalg.matrix_rank(x)) == c)
            close(sa.linalg.matrix_norm(x), np.linalg.norm(expected, axis=(-2, -1)))
            close(sa.sum(x, axis=-1), expected.sum(-1))
            if c:
                close(sa.linalg.matrix_norm(x, ord=2), np.linalg.norm(expected, 2, axis=(-2, -1)))
                close(x[..., rows // 2, :], expected[..., rows // 2, :])
                close(x[..., rows - 1, columns // 2], expected[..., rows - 1, columns // 2])
            if m == c:
                assert type(sa.linalg.inv(x)) is sa.Householder
                close(sa.linalg.inv(x), np.linalg.inv(expected))
                close(sa.linalg.solve(x, right), np.linalg.solve(expected, np.broadcast_to(right, (*batch, m, 3))))
                close(sa.linalg.det(x), np.linalg.det(expected))
                sign, logabsdet = sa.linalg.slogdet(x)
                close(sign, np.linalg.slogdet(expected)[0])
                assert np.all(dense(logabsdet) == 0)
        if 0 in (rows, columns):
            continue
        for full in (False, True):
            u, s, vh = sa.linalg.svd(x, full_matrices=full)
            assert u.shape[-1] == (rows if full else c) and vh.shape[-2] == (columns if full else c)
            close((u[..., :c] * s[..., None, :]) @ vh[..., :c, :], expected)
            close(sa.conj(u.mT) @ u, np.broadcast_to(np.eye(u.shape[-1]), (*batch, *(u.shape[-1],) * 2)))
            close(vh @ sa.conj(vh.mT), np.broadcast_to(np.eye(vh.shape[-2]), (*batch, *(vh.shape[-2],) * 2)))
        for mode in ("reduced", "complete"):
            q, r = sa.linalg.qr(x, mode=mode)
            assert q.shape[-1] == r.shape[-2] == (rows if mode == "complete" else min(rows, columns))
            close(q @ r, expected)
        close(2.0 * x, 2.0 * expected)
        close(sa.linalg.vector_norm(x, axis=-1), np.linalg.norm(expected, axis=-1))
        close(sa.linalg.vector_norm(x, axis=-2), np.linalg.norm(expected, axis=-2))


def test_lapack_reflectors():
    """What SciPy's ``qr`` leaves of LAPACK, moved into windows."""
    for dtype in (float, complex):
        a = normal(8, 5, dtype=dtype)
        (packed, tau), _ = scipy.linalg.qr(a, mode="raw")
        v = np.zeros((5, 8), dtype)
        for j in range(5):
            v[j, : 8 - j] = np.r_[1, packed[j + 1 :, j]]
        close(sa.Householder(v, tau, (8, 5)), scipy.linalg.qr(a, mode="economic")[0])
        close(sa.Householder(v, tau, (8, 8)), scipy.linalg.qr(a)[0])


def test_construction():
    x = sa.Householder([[2, 2]], [0.25], (2, 2))
    assert x.dtype == np.float64
    close(x, [[0, -1], [-1, 0]])
    assert "Householder(shape=(2, 2), reflectors=1, width=2" in repr(x)
    assert "Householder(adjoint, shape=(2, 2)" in repr(x.mT)
    # What lies below the last row is not read.
    close(sa.Householder([[1.0, 9.0]], [2.0], (1, 1)), [[-1.0]])
    v, tau, q = factors(6, 6, 6, 2, batch=(3,))
    close(sa.Householder(v, tau, (6, 6))[1], q[1])
    close(sa.astype(sa.Householder(v, tau, (6, 6)), sa.complex128), q)
    for arguments, error, message in [
        ((np.ones(3), np.ones(3), (3, 3)), ValueError, "v must have at least 2 dimensions, got shape (3,)"),
        (
            (np.ones((3, 1)), np.ones(2), (3, 3)),
            ValueError,
            "v and tau must have the same number of reflectors, got shapes (3, 1)",
        ),
        ((np.ones((3, 0)), np.ones(3), (3, 3)), ValueError, "v must have at least one element for each reflector"),
        ((np.ones((3, 1)), np.full(3, 2.0), (2, 2)), ValueError, "m >= 3, the number of reflectors, got (2, 2)"),
        ((np.ones((3, 1)), np.full(3, 2.0), (3, 4)), ValueError, "shape must be (m, c) with c <= m"),
        ((np.ones((3, 1)), np.full(3, 2.0), 3), (TypeError, ValueError), "shape"),
        ((np.ones((3, 1)), np.array([0.0, 1.5, 2.0]), (3, 3)), ValueError, "tau must make each reflector unitary"),
        ((np.ones((3, 1), bool), np.full(3, 2.0), (3, 3)), TypeError, "v must have a numeric dtype, got bool"),
        ((np.ones((2, 3, 1)), np.full((4, 3), 2.0), (3, 3)), ValueError, "broadcast"),
    ]:
        with pytest.raises(error, match=re.escape(message)):
            sa.Householder(*arguments)


# ---- transformations -----------------------------------------------------------------------------------------------------


def test_jit_vmap_and_joins():
    x = banded((8, 6), (-2, 0, 1), batch=(3,))
    b = normal(3, 8, 2)

    def projected(x, b):
        q, _ = sa.linalg.qr(x)
        return q @ (q.mT @ b)

    q = np.linalg.qr(dense(x)).Q
    expected = q @ (np.swapaxes(q, -1, -2) @ b)
    close(jax.jit(projected)(x, b), expected)
    close(jax.vmap(projected)(x, b), expected)
    close(jax.vmap(projected, in_axes=(None, 0))(x[0], b), q[0] @ (q[0].T @ b))
    q, _ = sa.linalg.qr(x[0])
    moved = jax.tree.map(lambda a: a, q)
    assert type(moved) is sa.Householder and moved.shape == (8, 6)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("shape", [(6, 6), (8, 5), (4, 7)])
def test_derivatives_of_the_factors(shape, dtype):
    """Forward: those of ``Q R = A`` with a unitary Q; backward: the same, and finite differences."""
    x, t = (banded(shape, (-2, 0, 1), dtype, seed=s) for s in (0, 7))
    (q, r), (dq, dr) = jax.jvp(lambda x: tuple(as_jax(f) for f in sa.linalg.qr(x)), (x,), (t,))
    np.testing.assert_allclose(dq @ r + q @ dr, dense(t), atol=1e-12)
    skew = adjoint(q) @ dq
    np.testing.assert_allclose(skew + adjoint(skew), 0, atol=1e-13)
    np.testing.assert_allclose(np.tril(dr, -1), 0)
    np.testing.assert_allclose(np.diagonal(dr).imag, 0, atol=1e-15)
    left, right = normal(*q.shape, seed=1), normal(*r.shape, seed=2)

    def value(x):
        q, r = sa.linalg.qr(x)
        return jnp.sum(left * as_jax(q).real) + jnp.sum(right * abs(as_jax(r)) ** 2)

    gradient = jax.grad(value)(x)
    forward = jax.jvp(value, (x,), (t,))[1]
    backward = sum(jnp.sum((g * d).real) for g, d in zip(gradient.diagonals, t.diagonals, strict=True))
    np.testing.assert_allclose(backward, forward, rtol=1e-11)
    h = 1e-6
    np.testing.assert_allclose(forward, (value(x + h * t) - value(x - h * t)) / (2 * h), rtol=1e-6)


def test_derivative_of_r_is_that_of_the_dense_form():
    """Of what does not depend on signs, and where JAX has a derivative of the dense decomposition."""
    x = banded((9, 6), (-1, 0, 2))

    def value(r):
        return jnp.sum(r**2 * jnp.arange(36.0).reshape(6, 6))

    structured = jax.grad(lambda x: value(as_jax(sa.linalg.qr(x).R)))(x)
    expected = jax.grad(lambda a: value(jnp.linalg.qr(a)[1]))(x.to_jax())
    for k, d in zip(structured.offsets, structured.diagonals, strict=True):
        np.testing.assert_allclose(d, np.diagonal(expected, k)[: d.shape[0]], atol=1e-11)


@pytest.mark.slow
def test_derivatives_where_nothing_stands_below_the_diagonal():
    """A column that is zero except for its diagonal has one, a column of zeros gives zero and no NaN."""
    n = 5
    x = sa.tridiagonal(np.zeros(n - 1), np.arange(1.0, n + 1), np.ones(n - 1))
    t = banded((n, n), (-1, 0, 1))
    (q, r), (dq, dr) = jax.jvp(lambda x: tuple(as_jax(f) for f in sa.linalg.qr(x)), (x,), (t,))
    np.testing.assert_allclose(dq @ r + q @ dr, dense(t), atol=1e-13)
    zero = sa.Banded([np.zeros(n - 1), np.zeros(n)], (-1, 0))
    gradient = jax.grad(lambda x: sum(jnp.sum(as_jax(f)) for f in sa.linalg.qr(x)))(zero)
    assert all(np.all(np.isfinite(d)) for d in gradient.diagonals)


@pytest.mark.parametrize("dtype", [float, complex])
def test_derivatives_by_the_reflectors(dtype):
    """All that is said of a unitary matrix holds for its derivatives by `v` and `tau`, too."""
    v, tau, _ = factors(5, 5, 5, 3, dtype)
    b = normal(5, dtype=dtype)

    def both(function):
        def value(v, tau):
            x = sa.Householder(v, tau, (5, 5))
            return function(x), function(x.to_dense())

        t = (normal(*v.shape, seed=8, dtype=dtype), normal(*tau.shape, seed=9, dtype=dtype))
        return jax.jvp(lambda v, tau: [as_jax(f) for f in value(v, tau)], (jnp.asarray(v), jnp.asarray(tau)), t)[1]

    for function in (
        lambda x: sa.linalg.solve(x, b),
        sa.linalg.inv,
        sa.linalg.det,
        lambda x: b @ x,
        lambda x: sa.linalg.matrix_norm(x),
        sa.linalg.svdvals,
    ):
        structured, expected = both(function)
        np.testing.assert_allclose(structured, expected, atol=1e-12)


# ---- least squares -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize(
    "shape, offsets", [((12, 8), (-2, 0, 1)), ((9, 8), (-1, 0)), ((20, 5), (0, 1)), ((6, 4), (-2, -1))]
)
def test_least_squares(shape, offsets, dtype):
    for batch in ((), (2,)):
        x = banded(shape, offsets, dtype, batch)
        b = normal(*batch, shape[0], 2, seed=5, dtype=dtype)
        with sa.densify("error"):
            solution, residues, rank, s = sa.linalg.lstsq(x, b)
        assert s.shape == (*batch, 0) and np.all(dense(rank) == shape[1]) and rank.shape == batch
        a = dense(x)
        for place in np.ndindex(batch):
            expected = scipy.linalg.lstsq(a[place], b[place])
            condition = expected[3][0] / expected[3][-1]
            close(solution[place], expected[0], 1e-14 * condition**2)
            close(residues[place], expected[1], 1e-13)
        vector = sa.linalg.lstsq(x, b[..., 0] if not batch else b[0, :, 0])
        assert vector.x.shape == (*batch, shape[1]) and vector.residues.shape == batch


def test_least_squares_of_many_rows():
    """A smoothing spline's equations: what is known of the solution is that the residual is orthogonal to the columns."""
    n = 100_000
    x = sa.Banded([np.full(n, 0.3), np.full(n, -1.0), np.linspace(1, 2, n)], (-2, -1, 0), (n + 2, n))
    b = normal(n + 2)
    with sa.densify("error"):
        solution, residues, rank, _ = sa.linalg.lstsq(x, b)
        rest = b - x @ solution
        assert float(sa.max(sa.abs(x.mT @ rest))) < 1e-10
    np.testing.assert_allclose(float(residues), np.sum(dense(rest) ** 2), rtol=1e-12)
    assert int(rank) == n


def deficient(n):
    """A matrix of n + 1 rows whose columns add up to zero, without a zero anywhere near the diagonal of R but the last."""
    diag = np.r_[1, np.full(n - 2, 2), 1]
    return sa.Banded([np.r_[-np.ones(n - 1), 0], diag, -np.ones(n - 1)], (-1, 0, 1), (n + 1, n))


def minimum_norm(x, b):
    """The oracle: NumPy's pseudo-inverse, with a tolerance between the rounding errors and the other singular values."""
    return np.linalg.pinv(dense(x), rcond=1e-11) @ dense(b)


@pytest.mark.parametrize("n", [3, 50, 300])
def test_less_than_full_rank(n, rng):
    x, b = deficient(n), jnp.asarray(rng.normal(size=n + 1))
    for solve in (sa.linalg.lstsq, jax.jit(sa.linalg.lstsq)):
        found, residues, rank, s = solve(x, b)
        expected = minimum_norm(x, b)
        close(found, expected, 1e-14 * n**2)  # the condition number is below n**2
        np.testing.assert_allclose(float(residues), np.sum((dense(x) @ expected - dense(b)) ** 2), rtol=1e-9)
        assert int(rank) == n - 1 and dense(s).shape == (0,)


@pytest.mark.parametrize("dtype", [float, complex])
def test_derivatives_without_full_rank(dtype, rng):
    """The oracle is JAX's pseudo-inverse of the dense matrix."""
    x, t = deficient(6).astype(dtype), banded((7, 6), (-1, 0, 1), dtype, seed=1)
    b, u = (jnp.asarray(normal(7, 2, seed=s, dtype=dtype)) for s in (2, 3))

    def value(solve):
        return lambda x, b: jnp.sum(jnp.abs(solve(x, b) - 1) ** 2 * jnp.arange(12.0).reshape(6, 2))

    ours = value(lambda x, b: as_jax(sa.linalg.lstsq(x, b).x))
    theirs = value(lambda x, b: jnp.linalg.pinv(x.to_jax(), rtol=1e-11) @ b)
    np.testing.assert_allclose(*(jax.jvp(f, (x, b), (t, u))[1] for f in (ours, theirs)), rtol=1e-9)
    for transformed in (lambda f: f, jax.jit):
        gradients = (transformed(jax.grad(f, argnums=(0, 1)))(x, b) for f in (ours, theirs))
        for g, h in zip(*map(jax.tree.leaves, gradients), strict=True):
            np.testing.assert_allclose(g, h, rtol=1e-8, atol=1e-9 * np.max(np.abs(h)))


def test_a_stack_in_which_some_have_full_rank(rng):
    """The matrices of full rank keep the solution by QR: `vmap`, compiled and eager."""
    n, b = 20, jnp.asarray(rng.normal(size=21))
    regular = deficient(n) + sa.Banded([np.ones(n)], (0,), (n + 1, n))
    x = sa.stack([deficient(n), regular])
    expected = [minimum_norm(deficient(n), b), minimum_norm(regular, b)]
    for solve in (sa.linalg.lstsq, jax.jit(sa.linalg.lstsq), jax.vmap(sa.linalg.lstsq, in_axes=(0, None))):
        found = solve(x, b)
        close(found.x, expected, 1e-10)
        assert dense(found.rank).tolist() == [n - 1, n]
    gradient = jax.jit(jax.grad(lambda b: jnp.sum(as_jax(sa.linalg.lstsq(x, b).x) ** 2)))(b)
    np.testing.assert_allclose(
        gradient,
        sum(2 * np.linalg.pinv(dense(m), rcond=1e-11).T @ e for m, e in zip((deficient(n), regular), expected)),
        rtol=1e-9,
    )


@pytest.mark.parametrize("zero", [sa.Banded([], (), (5, 3)), sa.Banded([np.ones(2)], (1,), (5, 3))])
def test_columns_of_zeros(zero):
    for solve in (sa.linalg.lstsq, jax.jit(sa.linalg.lstsq)):
        found = solve(zero, np.ones(5))
        close(found.x, minimum_norm(zero, np.ones(5)), 1e-14)
        assert int(found.rank) == np.linalg.matrix_rank(dense(zero))


def test_a_dense_form_that_the_policy_forbids_is_no_silent_answer():
    small, large = deficient(50), deficient(20_000)
    with sa.densify("error"), pytest.raises(np.linalg.LinAlgError, match="full column rank(.|\n)*not tried"):
        sa.linalg.lstsq(small, np.ones(51))
    with pytest.raises(np.linalg.LinAlgError, match="full column rank(.|\n)*a.to_dense()(.|\n)*not tried"):
        sa.linalg.lstsq(large, np.ones(20_001))
    assert np.all(np.isnan(jax.jit(lambda x: as_jax(sa.linalg.lstsq(x, np.ones(20_001)).x))(large)))
    with sa.errstate(linalg="nan"):
        solution = sa.linalg.lstsq(large, np.ones(20_001))
    assert np.all(np.isnan(dense(solution.x))) and np.isnan(float(solution.residues)) and int(solution.rank) < 20_000


def test_cond_decides_what_full_rank_is():
    x, b = sa.Banded([np.array([1.0, 1.0, 1e-6]), np.ones(2) * 0.1], (0, 1), (4, 3)), np.ones(4)
    for cond, rank in ((None, 3), (1e-12, 3), (1e-3, 2)):
        found = sa.linalg.lstsq(x, b, cond)
        assert int(found.rank) == rank
        close(found.x, scipy.linalg.lstsq(dense(x), b, cond=cond)[0], 1e-9)
    both = sa.linalg.lstsq(x, b, np.array([1e-12, 1e-3]))
    close(both.x, [scipy.linalg.lstsq(dense(x), b, cond=cond)[0] for cond in (1e-12, 1e-3)], 1e-9)
    assert dense(both.rank).tolist() == [3, 2]


@pytest.mark.parametrize("dtype", [float, complex])
def test_derivatives_of_least_squares(dtype):
    x, t = (banded((9, 6), (-2, 0, 1), dtype, seed=s) for s in (0, 7))
    b, u = (normal(9, 2, seed=s, dtype=dtype) for s in (3, 4))

    def value(solve):
        return lambda x, b: jnp.sum(jnp.abs(solve(x, b) - 1) ** 2 * jnp.arange(12.0).reshape(6, 2))

    ours = value(lambda x, b: sa.linalg.lstsq(x, b).x)
    theirs = value(lambda x, b: jnp.linalg.solve(x.to_jax().conj().T @ x.to_jax(), x.to_jax().conj().T @ b))
    b, u = jnp.asarray(b), jnp.asarray(u)
    np.testing.assert_allclose(*(jax.jvp(f, (x, b), (t, u))[1] for f in (ours, theirs)), rtol=1e-9)
    for g, h in zip(
        *(jax.tree.leaves(jax.jit(jax.grad(f, argnums=(0, 1)))(x, b)) for f in (ours, theirs)), strict=True
    ):
        np.testing.assert_allclose(g, h, rtol=1e-8, atol=1e-9 * np.max(np.abs(h)))
