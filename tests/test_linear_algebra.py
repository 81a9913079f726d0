"""Linear algebra of dense arrays: values against NumPy, result types, errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax, dense, random

import structarrays as sa

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def check(actual, expected, rtol=1e-11):
    expected = np.asarray(expected)
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    scale = np.max(np.abs(expected), initial=0)
    np.testing.assert_allclose(np.asarray(as_jax(actual)), expected, rtol=rtol, atol=rtol * scale)


@pytest.mark.parametrize(
    ("left", "right"),
    [((3,), (3,)), ((3,), (2, 3, 4)), ((2, 4, 3), (3,)), ((4, 3), (3, 2)), ((2, 1, 4, 3), (5, 3, 2)), ((2, 0), (0, 3))],
)
def test_matmul(left, right):
    a, b = random(left), random(right, seed=1)
    check(sa.matmul(sa.asarray(a), sa.asarray(b)), a @ b)
    check(sa.asarray(a) @ b, a @ b)  # NumPy and JAX arrays are operands, on either side
    check(a @ sa.asarray(b), a @ b)
    check(jax.jit(sa.matmul)(a, b), a @ b)


def test_promotion():
    a, b = random((2, 3), np.float32), random((3, 2), np.complex128)
    check(sa.matmul(a, b), a @ b)
    assert sa.matmul(a, np.ones((3, 2), np.int8)).dtype == np.float32
    assert sa.vecdot(np.ones(3, np.int8), np.ones(3, np.int16)).dtype == np.int16
    assert sa.tensordot(np.ones(3, np.uint8), np.ones(3, np.uint8), axes=1).dtype == np.uint8


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.int32])
def test_vecdot_tensordot_outer_cross(dtype):
    a, b = random((2, 3, 4), dtype), random((3, 4), dtype, 1)
    check(sa.vecdot(a, b), np.sum(a.conj() * b, -1, dtype=dtype))
    check(sa.vecdot(a, b, axis=-2), np.sum(a.conj() * b, -2, dtype=dtype))
    check(sa.vecdot(a, a, axis=0), np.sum(a.conj() * a, 0, dtype=dtype))
    for axes in (0, ((1, 2), (0, 1)), ((2, 1), (-1, -2)), ((-1,), (1,))):
        check(sa.tensordot(a, b, axes=axes), np.tensordot(a, b, axes))
    check(sa.linalg.outer(b[0], b[1]), np.outer(b[0], b[1]))
    check(sa.linalg.cross(b.T[None], b.T[:2, None]), np.cross(b.T[None], b.T[:2, None]))
    check(sa.linalg.cross(a, b, axis=-2), np.cross(a, b, axis=-2))


def test_transposition_is_a_view():
    x = sa.asarray(np.arange(6.0).reshape(2, 3))
    view = x.mT
    view[2, 0] = 50.0
    assert float(x[0, 2]) == 50.0
    x[1, 0] = 7.0
    assert float(view[0, 1]) == 7.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_decompositions(dtype):
    a, tolerance = random((2, 4, 3), dtype), 1000 * np.finfo(dtype).eps
    square, real = random((2, 4, 4), dtype, 1), np.finfo(dtype).dtype
    hermitian = square + np.swapaxes(square.conj(), -1, -2)

    def close(x, y):
        np.testing.assert_allclose(x, y, atol=tolerance * np.max(np.abs(y)))

    for full in (True, False):
        result = sa.linalg.svd(a, full_matrices=full)
        assert result._fields == ("U", "S", "Vh") and result.S.dtype == real
        assert [r.shape for r in result] == [v.shape for v in np.linalg.svd(a, full_matrices=full)]
        close((dense(result.U)[..., :3] * dense(result.S)[..., None, :]) @ dense(result.Vh), a)
    check(sa.linalg.svdvals(a), np.linalg.svd(a, compute_uv=False), tolerance)
    for mode in ("reduced", "complete"):
        result = sa.linalg.qr(a, mode=mode)
        assert result._fields == ("Q", "R") and [r.shape for r in result] == [v.shape for v in np.linalg.qr(a, mode)]
        close(dense(result.Q) @ dense(result.R), a)
    result = sa.linalg.eigh(hermitian)
    assert result._fields == ("eigenvalues", "eigenvectors") and result.eigenvalues.dtype == real
    close(hermitian @ dense(result[1]), dense(result[1]) * dense(result[0])[..., None, :])
    check(sa.linalg.eigvalsh(hermitian), np.linalg.eigvalsh(hermitian), tolerance)
    result = sa.linalg.eig(square)
    assert result._fields == ("eigenvalues", "eigenvectors")
    assert result[0].dtype == result[1].dtype == np.promote_types(dtype, np.complex64)
    close(square @ dense(result[1]), dense(result[1]) * dense(result[0])[..., None, :])
    close(np.sort_complex(dense(sa.linalg.eigvals(square))), np.sort_complex(np.linalg.eigvals(square)))
    definite = hermitian @ hermitian + np.eye(4, dtype=dtype)
    factor = np.linalg.cholesky(definite)
    check(sa.linalg.cholesky(definite), factor, tolerance)
    check(sa.linalg.cholesky(definite, upper=True), np.swapaxes(factor.conj(), -1, -2), tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_systems(dtype):
    a, b, rtol = random((2, 4, 4), dtype), random((4,), dtype), 1000 * np.finfo(dtype).eps
    check(sa.linalg.solve(a, b), np.linalg.solve(a, b[:, None])[..., 0], rtol)
    check(sa.linalg.solve(a[0], a), np.linalg.solve(a[0], a), rtol)
    check(sa.linalg.inv(a), np.linalg.inv(a), rtol)
    check(sa.linalg.det(a), np.linalg.det(a), rtol)
    result = sa.linalg.slogdet(a)
    assert result._fields == ("sign", "logabsdet")
    check(result.sign, np.linalg.slogdet(a)[0], rtol)
    check(result.logabsdet, np.linalg.slogdet(a)[1], rtol)
    check(sa.linalg.pinv(a[..., :2]), np.linalg.pinv(a[..., :2]), rtol)
    check(sa.linalg.matrix_rank(a[..., :2] @ a[..., :2, :]), np.asarray([2, 2]))
    for n in (-3, 0, 5):
        check(sa.linalg.matrix_power(a, n), np.linalg.matrix_power(a, n), 10 * rtol)


def test_norms_and_parts():
    a = random((2, 3, 4), np.complex128)
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        check(sa.linalg.matrix_norm(a, ord=order), np.linalg.norm(a, order, (-2, -1)))
        check(sa.linalg.matrix_norm(a, ord=order, keepdims=True), np.linalg.norm(a, order, (-2, -1), keepdims=True))
    for order in (0, 1, 2, 3.5, -1, np.inf, -np.inf):
        check(sa.linalg.vector_norm(a, axis=(0, 2), ord=order), np.linalg.vector_norm(a, axis=(0, 2), ord=order))
    check(sa.linalg.vector_norm(a), np.linalg.vector_norm(a))
    check(sa.linalg.vector_norm(a, axis=1, keepdims=True), np.linalg.vector_norm(a, axis=1, keepdims=True))
    check(sa.linalg.diagonal(a, offset=2), np.diagonal(a, 2, -2, -1))
    check(sa.linalg.trace(a, offset=-1), np.trace(a, -1, -2, -1))
    assert sa.linalg.trace(np.ones((2, 2), np.int8)).dtype == np.int64
    assert sa.linalg.trace(np.ones((2, 2), np.uint8)).dtype == np.uint64
    assert sa.linalg.trace(np.ones((2, 2), np.int8), dtype=sa.float32).dtype == np.float32


@pytest.mark.parametrize(
    "order", [np.float64(3), np.int64(3), np.float64(0.5), np.float64(-2), np.int64(2), np.float32(np.inf)]
)
def test_the_order_of_a_norm_does_not_change_the_data_type(order):
    """Also if it is a scalar of NumPy, which takes part in the promotion of data types."""
    a = np.abs(random((3, 3), np.float32)) + 1
    for x in (a, sa.Symmetric(a), sa.Diagonal(a), sa.BlockDiagonal(a[None]), sa.Kronecker(a, a)):
        check(sa.linalg.vector_norm(x, ord=order), np.linalg.vector_norm(dense(x), ord=order), 1e-5)
        check(sa.linalg.vector_norm(x, axis=-1, ord=order), np.linalg.vector_norm(dense(x), axis=-1, ord=order), 1e-5)


def test_singular_matrices():
    singular, b = sa.ones((2, 2)), sa.ones(2)
    for run in (lambda x: sa.linalg.solve(x, b), sa.linalg.inv, lambda x: sa.linalg.matrix_power(x, -1)):
        with pytest.raises(np.linalg.LinAlgError):
            run(singular)
        with sa.errstate(linalg="nan"):
            assert np.all(np.isnan(dense(run(singular))))
        assert np.all(np.isnan(dense(jax.jit(run)(singular))))
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        sa.linalg.cholesky(-sa.eye(2).to_dense())


x, v = sa.ones((2, 3)), sa.ones(3)
square, flags = sa.ones((2, 2)), sa.ones((2, 2), dtype=sa.bool)
AXIS = np.exceptions.AxisError
LINALG = sa.linalg


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: sa.matmul(x, x), ValueError, "matmul: the last dimension"),
        (lambda: sa.matmul(x, 2.0), ValueError, "matmul: x2 must have at least one"),
        (lambda: sa.matmul(flags, flags), TypeError, "matmul: x1 .* numeric"),
        (lambda: sa.matmul(sa.ones((2, 2, 2)), sa.ones((3, 2, 2))), ValueError, "matmul: batch shapes"),
        (lambda: sa.matmul(sa.eye(3), v[:2]), ValueError, "matmul: the last dimension"),
        (lambda: sa.matrix_transpose(v), ValueError, "at least two dimensions"),
        (lambda: sa.vecdot(x, v, axis=1), AXIS, "vecdot: axis"),
        (lambda: sa.vecdot(x, x, axis=-3), AXIS, "vecdot: axis"),
        (lambda: sa.vecdot(x, v[:2]), ValueError, "vecdot: axis -1 must have the same length"),
        (lambda: sa.tensordot(x, x, axes=1), ValueError, "contracted axes"),
        (lambda: sa.tensordot(x, x, axes=-1), ValueError, "must not be negative"),
        (lambda: sa.tensordot(x, x, axes=3), AXIS, "axes must be at most the numbers of dimensions, got 3"),
        (lambda: sa.tensordot(x, x, axes=((0,), (5,))), AXIS, "axes"),
        (lambda: sa.tensordot(x, x, axes=((0, 0), (0, 1))), ValueError, "twice"),
        (lambda: sa.tensordot(x, x, axes=((0,), (0, 1))), ValueError, "same length"),
        (lambda: sa.tensordot(x, x, axes="ab"), TypeError, "axes must be an integer"),
        (lambda: LINALG.solve(x, v), ValueError, "x1 must be square"),
        (lambda: LINALG.solve(square, v), ValueError, "x2 must be"),
        (lambda: LINALG.solve(square, 1.0), ValueError, "x2 must have at least one"),
        (lambda: LINALG.solve(flags, v[:2]), TypeError, "x1 must have a floating-point or integer dtype"),
        (lambda: LINALG.solve(sa.ones((2, 2, 2)), sa.ones((3, 2, 2))), ValueError, "batch shapes"),
        (lambda: LINALG.inv(x), ValueError, "linalg.inv: x must be square"),
        (lambda: LINALG.det(v), ValueError, "at least two dimensions"),
        (lambda: LINALG.slogdet(x), ValueError, "square"),
        (lambda: LINALG.cholesky(x), ValueError, "square"),
        (lambda: LINALG.eigh(x), ValueError, "square"),
        (lambda: LINALG.eig(sa.Diagonal([1.0], shape=(1, 2))), ValueError, "square"),
        (lambda: LINALG.svd(v), ValueError, "at least two"),
        (lambda: LINALG.qr(x, mode="full"), ValueError, "mode"),
        (lambda: LINALG.matrix_norm(x, ord=3), ValueError, "ord"),
        (lambda: LINALG.matrix_norm(v), ValueError, "at least two"),
        (lambda: LINALG.vector_norm(v, ord="fro"), TypeError, "ord"),
        (lambda: LINALG.vector_norm(v, axis=1), AXIS, "axis"),
        (lambda: LINALG.vector_norm(x, axis=(0, -2)), ValueError, "twice"),
        (lambda: LINALG.matrix_power(square, 1.5), TypeError, "integer"),
        (lambda: LINALG.matrix_power(x, 2), ValueError, "square"),
        (lambda: LINALG.outer(x, v), ValueError, "one dimension"),
        (lambda: LINALG.cross(square, square), ValueError, "size 3"),
        (lambda: LINALG.cross(x, v, axis=-2), AXIS, "axis"),
        (lambda: LINALG.trace(flags), TypeError, "numeric"),
        (lambda: LINALG.diagonal(v), ValueError, "two dimensions"),
        (lambda: LINALG.pinv(x, rtol=1j), TypeError, "rtol"),
        (lambda: LINALG.matrix_rank(sa.ones((4, 2, 3)), rtol=v), ValueError, "rtol"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


OF_SQUARE_MATRICES = "cholesky det eig eigh eigvals eigvalsh expm inv ldl slogdet sqrtm"


@pytest.mark.each_parameter
@pytest.mark.parametrize("name", OF_SQUARE_MATRICES.split())
def test_functions_of_square_matrices_refuse_others(name):
    """Of every structure: a kernel for diagonals would not notice."""
    for x in (
        sa.ones((2, 3)),
        sa.Diagonal([1.0, 2.0], shape=(2, 3)),
        sa.Banded([[1.0, 2.0]], (0,), (2, 3)),
        sa.Fill(1.0, (2, 3)),
    ):
        with pytest.raises(ValueError, match=r"square.*\(2, 3\)"):
            getattr(LINALG, name)(x)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint8"])
def test_rounding_ends_definiteness(dtype):
    definite = np.array([[1.9, 1.1], [1.1, 0.9]])
    for x in (sa.asarray(definite), sa.Symmetric(definite)):
        rounded = sa.astype(sa.assume(x, "positive_definite"), getattr(sa, dtype))
        assert "positive_definite" not in rounded.assumptions and "hermitian" in rounded.assumptions
    np.testing.assert_allclose(
        np.asarray(
            sa.linalg.solve(sa.astype(sa.assume(sa.asarray(definite), "positive_definite"), sa.int64), np.ones(2))
        ),
        [1.0, 0.0],
    )


def test_assumptions():
    a = sa.assume(sa.asarray([[2.0, 1.0], [1.0, 2.0]]), "positive_definite")
    assert a.assumptions >= {"symmetric", "hermitian", "positive_definite"}
    assert sa.assume(sa.astype(a, sa.complex128), "positive_definite").assumptions >= {"hermitian"}
    # A Hermitian matrix is symmetric if it is real, and a symmetric one Hermitian.
    assert sa.assume(sa.ones((2, 2)), "hermitian").assumptions == {"symmetric", "hermitian"}
    assert sa.assume(sa.asarray([[2.0, 1j], [-1j, 2.0]]), "hermitian").assumptions == {"hermitian"}
    assert sa.assume(sa.asarray([[2.0, 1j], [1j, 2.0]]), "symmetric").assumptions == {"symmetric"}
    b = sa.assume(sa.eye(2), "symmetric")
    for kept in (a.mT, a + a, sa.linalg.inv(a), sa.assume(a)):
        assert "positive_definite" in kept.assumptions
    assert (a + b).assumptions == b.assumptions == {"symmetric", "hermitian"}
    for dropped in (sa.forget(a), -a, a @ a, a - a, a[:1, :1], a + 1.0):
        assert dropped.assumptions == frozenset()
    assert jax.tree.map(lambda leaf: leaf, a).assumptions == a.assumptions
    a[0, 1] = 5.0
    assert a.assumptions == frozenset()
    with pytest.raises(ValueError, match="must be one of 'symmetric'"):
        sa.assume(b, "diagonal")
    with pytest.raises(ValueError, match="square"):
        sa.assume(sa.ones((2, 3)), "symmetric")


@pytest.mark.costly
@pytest.mark.parametrize("low_rank", [False, True])
def test_a_singular_matrix_among_mapped_ones(low_rank):
    """Under ``vmap`` its solution is NaN, and the solutions of the others are right: nothing is raised."""
    n = 40
    base = sa.tridiagonal(np.ones(n - 1), np.full(n, 4.0), np.ones(n - 1))
    x = base + sa.LowRank(np.ones((n, 1)), np.ones((n, 1))) if low_rank else base
    solutions = jax.vmap(lambda t: as_jax(sa.linalg.solve(x * t, jnp.ones(n))))(jnp.asarray([1.0, 0.0, 2.0]))
    expected = np.linalg.solve(np.asarray(x.to_dense()), np.ones(n))
    np.testing.assert_allclose(solutions[0], expected, rtol=1e-12)
    np.testing.assert_allclose(solutions[2], expected / 2, rtol=1e-12)
    assert np.isnan(solutions[1]).all()
