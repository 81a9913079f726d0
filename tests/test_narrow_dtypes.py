"""Without JAX's 64-bit switch, which is how most of its users run it, and in dtypes of 16 bits."""

import io
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import structarrays as sa

N = 100_000  # so that N * N elements are more than integers of 32 bits count
VALUES = np.array([1, -2, 3])


@pytest.fixture
def narrow():
    with jax.enable_x64(False):
        yield


def sparse(padded):
    places = np.array([0, 5, N - 1])
    x = sa.Sparse(VALUES.astype("float32"), (places, places), (N, N))
    # A sum has room for the entries of both, and where these are the same some of it is left.
    return jax.jit(lambda x: x + x)(0.5 * x) if padded else x


# ---- more elements than integers of 32 bits count ---------------------------------------------------------------------


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(
    ("name", "expected"),
    [("min", -2), ("max", 3), ("prod", 0), ("sum", 2), ("any", True), ("all", False), ("mean", 2 / N**2)],
)
def test_reductions_of_a_large_sparse_array(narrow, name, expected, padded):
    function = getattr(sa, name)
    for run in (function, jax.jit(function)):
        result = run(sparse(padded))
        assert result.dtype == (np.float32 if name not in ("any", "all") else bool)
        np.testing.assert_allclose(float(result), expected, rtol=1e-6)


@pytest.mark.parametrize("padded", [False, True])
def test_reductions_of_a_large_sparse_array_with_a_background(narrow, padded):
    x = sa.exp(sparse(padded))
    np.testing.assert_allclose(float(sa.sum(x)), N**2 - 3 + np.exp(VALUES).sum(), rtol=1e-6)
    np.testing.assert_allclose(float(sa.min(x)), np.exp(-2.0), rtol=1e-6)
    np.testing.assert_allclose(float(sa.prod(x)), np.exp(2.0), rtol=1e-5)
    np.testing.assert_allclose(float(sa.var(sparse(padded))), (VALUES**2).sum() / N**2, rtol=1e-5)


def test_reductions_over_two_of_three_large_axes(narrow):
    places = (np.array([0, 1, 1]), np.array([5, 6, 7]), np.array([1, 70_000, 1]))
    x = sa.Sparse(VALUES.astype("float32"), places, (2, N, N))
    np.testing.assert_array_equal(np.asarray(sa.max(x, axis=(1, 2))), [1, 3])
    np.testing.assert_array_equal(np.asarray(sa.min(x, axis=(1, 2))), [0, -2])
    np.testing.assert_allclose(np.asarray(sa.sum(sa.exp(x), axis=(1, 2))), [N**2, N**2], rtol=1e-6)


@pytest.mark.parametrize("n", [4, N])
def test_padding_and_the_background_of_rows(n):
    """More entries than a row has places, and fewer."""
    x = sa.Sparse(np.array([2.0, 5.0]), (np.array([0, 1]), np.array([1, 1])), (2, n))
    x = jax.jit(lambda x: x + x)(x)
    np.testing.assert_array_equal(np.asarray(sa.min(x, axis=1)), [0, 0])
    np.testing.assert_array_equal(np.asarray(sa.sum(x + 1, axis=1)), [n + 4, n + 10])
    np.testing.assert_array_equal(np.asarray(sa.prod(x - 1, axis=1)), [3 * (-1.0) ** (n - 1), 9 * (-1.0) ** (n - 1)])


def test_the_number_of_nonzero_elements_as_a_norm(narrow):
    """Of float32: counted in integers of 32 bits it would wrap around."""
    x = sa.Diagonal(np.ones(N, "float32"))
    assert float(sa.linalg.vector_norm(x, ord=0)) == N
    for dense in (sa.exp(x), sa.Toeplitz(np.ones(N, "float32")), sa.Fill(np.float32(2), (N, N))):
        norm = sa.linalg.vector_norm(dense, ord=0)
        assert norm.dtype == np.float32
        np.testing.assert_allclose(float(norm), N**2, rtol=1e-6)


@pytest.mark.parametrize("shape", [(N // 2, 2 * N), (2 * N, N // 2), (8, N * N // 8)])
def test_a_large_sparse_matrix_in_another_shape(narrow, shape):
    rng = np.random.default_rng(0)
    rows, columns = np.unique(rng.integers(0, N, (2, 50)), axis=1)
    x = sa.Sparse(np.arange(1, 1 + rows.size, dtype="float32"), (rows, columns), (N, N))
    flat = rows * N + columns
    with sa.densify("error"):
        for y in (sa.reshape(x, shape), jax.jit(lambda x: sa.reshape(x, shape))(x)):
            assert y.shape == shape
            places = [np.asarray(c) for c in y.coords]
            np.testing.assert_array_equal(places[0].astype(np.int64) * shape[1] + places[1], flat)
            np.testing.assert_array_equal(np.asarray(y.data), np.asarray(x.data))


def test_elements_of_a_large_fourier_matrix(narrow):
    """Which are powers of a root of unity whose exponents 32 bits do not hold."""
    rows = np.array([0, 1, N // 2 + 1, N - 1])
    columns = np.array([7, N - 1, N - 3, N - 1])
    x = sa.Fourier(N)
    with sa.densify("error"):
        chosen, row = x[rows, columns], x[N - 2]
    assert chosen.dtype == row.dtype == np.complex64
    for found, exponents in ((chosen, rows * columns % N), (row, (N - 2) * np.arange(N) % N)):
        expected = np.exp(-2j * np.pi * exponents / N) / math.sqrt(N)
        np.testing.assert_allclose(np.asarray(found), expected, atol=1e-6 / math.sqrt(N))


# ---- masks with structure ----------------------------------------------------------------------------------------------


def test_a_mask_with_structure_is_not_expanded():
    places = np.array([7, 0, N - 1])
    x = sa.Sparse(VALUES.astype("float32"), (places, places), (N, N))
    with sa.densify("error"):
        np.testing.assert_array_equal(np.asarray(x[x > 0]), [1, 3])
        x[x > 0] = np.array([5, 6], "float32")
        np.testing.assert_array_equal(np.asarray(x[places, places]), [5, -2, 6])
        with pytest.raises(sa.DensifyError):
            x[sa.isfinite(x)]


@pytest.mark.parametrize("structure", ["Diagonal", "Triangular"])
def test_a_mask_with_structure_selects_what_its_dense_form_does(structure):
    rng = np.random.default_rng(0)
    x = sa.Diagonal(rng.normal(size=5)) if structure == "Diagonal" else sa.Triangular(rng.normal(size=(5, 5)))
    dense, other = np.asarray(x), rng.normal(size=(5, 5, 2))
    np.testing.assert_array_equal(np.asarray(x[x > 0]), dense[dense > 0])
    np.testing.assert_array_equal(np.asarray(x[x <= 0]), dense[dense <= 0])
    np.testing.assert_array_equal(np.asarray(sa.asarray(other)[x > 0]), other[dense > 0])
    with pytest.raises(IndexError, match="does not match"):
        sa.asarray(other[:3])[x > 0]
    with pytest.raises(IndexError, match="traced"):
        jax.jit(lambda x: x[x > 0])(x)


# ---- 16 bits -----------------------------------------------------------------------------------------------------------

HALF = [np.dtype("float16"), np.dtype(jnp.bfloat16)]


@pytest.mark.costly
@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_averages_of_more_elements_than_the_largest_number(dtype):
    n = 1000  # a million elements
    matrices = {
        "Diagonal": sa.Diagonal(np.ones(n, dtype)),
        "Fill": sa.Fill(np.asarray(2, dtype), (n, n)),
        "Kronecker": sa.Kronecker(np.full((20, 20), 3, dtype), np.full((50, 50), 2, dtype)),
        "Sparse": sa.Sparse(np.full(n, 2, dtype), (np.arange(n), np.arange(n)), (n, n)),
        "Toeplitz": sa.Toeplitz(np.full(n, 5, dtype)),
    }
    for name, x in matrices.items():
        wide = np.asarray(x).astype(float)
        for function in ("mean", "var", "std"):
            result = getattr(sa, function)(x)
            assert result.dtype == dtype, (name, function)
            expected = getattr(np, function)(wide)
            np.testing.assert_allclose(float(result), expected, rtol=2e-2, atol=1e-6, err_msg=f"{name} {function}")


@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_a_constant_many_times(dtype):
    x = sa.Fill(np.asarray(2**-10, dtype), (1000, 1000))
    np.testing.assert_allclose(float(sa.sum(x)), 1e6 / 2**10, rtol=1e-2)
    assert float(sa.sum(0 * x)) == 0


@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_factored_matrices_of_other_precision_keep_their_structure(dtype):
    rng = np.random.default_rng(1)
    u, v = rng.normal(size=(6, 2)).astype(dtype), rng.normal(size=(6, 2)).astype(dtype)
    w, b = rng.normal(size=(3, 3)).astype(dtype), rng.normal(size=6).astype("float32")
    with sa.densify("error"):
        for x in (sa.LowRank(u, v), sa.Kronecker(u[:2], w), sa.LowRank(u, v) + sa.Diagonal(u[:, 0])):
            assert type(sa.astype(x, sa.float32)) is type(x)
            assert type(sa.astype(sa.astype(x, sa.float32), dtype)) is type(x)
            y = x @ b
            assert y.dtype == np.float32
            dense = np.asarray(x.to_jax()).astype(float)
            np.testing.assert_allclose(np.asarray(y), dense @ b, rtol=1e-2, atol=1e-2)


def test_magnitudes_and_extremes_of_bfloat16_products():
    rng = np.random.default_rng(2)
    a, b = (rng.normal(size=(3, 3)).astype(jnp.bfloat16) for _ in range(2))
    x = sa.Kronecker(a, b)
    with sa.densify("error"):
        assert type(abs(x)) is sa.Kronecker
        largest = float(sa.max(x))
    np.testing.assert_allclose(largest, np.kron(a.astype(float), b.astype(float)).max(), rtol=1e-2)


def test_numbers_of_bfloat16_are_floating():
    half = jnp.bfloat16
    x = sa.Diagonal(np.array([1, np.nan, 3], half))
    assert float(np.nansum(x)) == 4
    x = sa.asarray(np.array([1.25, 2.5], half))
    assert np.mean(x).dtype == half
    x[0] = np.asarray(4, half)
    x[1] = 0.5
    assert x.dtype == half
    assert x.tolist() == [4, 0.5]
    np.testing.assert_array_equal(np.asarray(x * 2**40).astype(float), [2.0**42, 2.0**39])
    power = sa.linalg.matrix_power(sa.Sparse(np.ones(2, half), (np.arange(2), np.arange(2)), (2, 2)), 2)
    assert power.dtype == half


def test_jax_functions_keep_structure_in_bfloat16():
    x = sa.Diagonal(np.array([1, -2, 3], jnp.bfloat16))
    with sa.densify("error"):
        assert float(sa.structured(jnp.max)(x)) == 3
        assert sa.structured(lambda x: jax.lax.reduce_max(x, axes=(1,)))(x).tolist() == [1, 0, 3]


@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_files_hold_matrices_that_are_nothing_but_a_dtype(dtype):
    stream = io.BytesIO()
    sa.save(stream, [sa.Permutation([1, 0, 2], dtype=dtype)])
    stream.seek(0)
    (x,) = sa.load(stream)
    assert x.dtype == dtype
    assert math.prod(x.shape) == 9


@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_products_by_fourier_transforms(dtype):
    """JAX has none of 16 bits."""
    n = 600
    rng = np.random.default_rng(3)
    c, b = rng.normal(size=n).astype(dtype), rng.normal(size=n).astype(dtype)
    for x in (sa.Toeplitz(c), sa.Toeplitz(c, b), sa.Circulant(c), sa.Hankel(c)):
        dense = np.asarray(x).astype(float)
        for matrix, expected in ((x, dense), (x.mT, dense.T)):
            y = matrix @ b
            assert y.dtype == dtype
            scale = np.linalg.norm(dense[:, 0]) * np.linalg.norm(b.astype(float))
            np.testing.assert_allclose(np.asarray(y).astype(float), expected @ b.astype(float), atol=0.02 * scale)
    product = sa.Circulant(c) @ sa.Circulant(b)
    assert product.dtype == dtype
    dense = [np.asarray(sa.Circulant(v)).astype(float) for v in (c, b)]
    np.testing.assert_allclose(np.asarray(product).astype(float), dense[0] @ dense[1], atol=0.02 * n)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_what_has_no_routines_of_16_bits_says_so(dtype):
    a, b = sa.asarray(jnp.eye(3, dtype=dtype)), sa.asarray(jnp.ones(3, dtype))
    for name in ("inv", "det", "cholesky", "eigh", "svd", "qr", "lu_factor", "expm"):
        with pytest.raises(
            TypeError, match=f"linalg.{name}: .* has dtype {dtype}, for which LAPACK has no routines; cast it"
        ):
            getattr(sa.linalg, name)(a)
    with pytest.raises(TypeError, match="linalg.solve: x1 has dtype"):
        sa.linalg.solve(a, b)
    with pytest.raises(TypeError, match="fft.rfft: x must have a data type of at least 32 bits, got"):
        sa.fft.rfft(b)
    for name, call in (
        ("matrix_norm", lambda: sa.linalg.matrix_norm(a, ord=2)),
        ("matrix_power", lambda: sa.linalg.matrix_power(a, -1)),
    ):
        with pytest.raises(TypeError, match=f"linalg.{name}: x has dtype {dtype}, for which LAPACK has no routines"):
            call()
    assert float(sa.linalg.matrix_norm(a)) == pytest.approx(3**0.5, rel=1e-2)
    assert sa.linalg.matrix_power(2 * a, 3)[0, 0] == 8
    assert sa.linalg.solve(sa.Diagonal(b), b).dtype == dtype  # needs no routine


NARROW = {
    "Banded": lambda ones: sa.tridiagonal(ones[1:], 4 * ones, ones[1:]),
    "Toeplitz": lambda ones: sa.Toeplitz(ones / jnp.arange(1, 41, dtype=ones.dtype)),
    "Sparse": lambda ones: sa.Sparse(ones, (jnp.arange(40), jnp.arange(40)), (40, 40)),
    "BlockDiagonal": lambda ones: sa.BlockDiagonal(jnp.eye(4, dtype=ones.dtype)[None] * ones[:10, None, None]),
    "Sum": lambda ones: sa.Diagonal(2 * ones) + sa.LowRank(ones[:, None], ones[:, None]),
}


@pytest.mark.parametrize("structure", NARROW)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_what_has_no_routines_of_16_bits_says_so_of_structures(structure, dtype):
    """Which they need depends on the structure; what JAX says where LAPACK has none names no argument."""
    a, b = NARROW[structure](jnp.ones(40, dtype)), jnp.ones(40, dtype)
    with pytest.raises(
        TypeError, match=f"linalg.solve: x1 has dtype {dtype}, for which LAPACK has no routines; cast it"
    ):
        sa.linalg.solve(a, b)
    with pytest.raises(TypeError, match=f"linalg.pinv: x has dtype {dtype}, for which LAPACK"):
        sa.linalg.pinv(a)


@pytest.mark.costly
@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_long_sums_of_half_precision(dtype, rng):
    """Sums that are computed in 16 bits stop where the terms are smaller than the spacing of numbers, such as at 256 ones."""
    n, eps = 1000, float(jnp.finfo(dtype).eps)
    values = np.abs(rng.standard_normal((n, n)) / 100 + 0.01).astype(dtype)
    exact = values.astype(float)
    arrays = {"dense": sa.asarray(values), "triangular": sa.Triangular(values), "symmetric": sa.Symmetric(values)}
    for name, x in arrays.items():
        full = np.asarray(x.to_dense()).astype(float)
        for function, oracle in (
            (sa.sum, np.sum),
            (sa.linalg.matrix_norm, np.linalg.norm),
            (sa.linalg.vector_norm, np.linalg.norm),
            (lambda x: sa.sum(x, dtype=x.dtype), np.sum),
        ):
            for run in (function, jax.jit(function)):
                np.testing.assert_allclose(float(run(x)), oracle(full), rtol=8 * eps, err_msg=name)
    np.testing.assert_allclose(float(sa.prod(sa.asarray(np.full(300, 1 + eps, dtype)))), (1 + eps) ** 300, rtol=8 * eps)
    np.testing.assert_allclose(sa.sum(sa.asarray(values), axis=0).astype(float), exact.sum(0), rtol=8 * eps)


@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_long_rows_of_sparse_arrays_in_half_precision(dtype):
    rows, columns = np.zeros(6000, int), np.arange(6000)
    x = sa.Sparse(np.ones(6000, dtype), (rows, columns), (2, 6000))
    for function in (
        lambda x: x @ jnp.ones(6000, dtype),
        lambda x: sa.sum(x, axis=1),
        lambda x: x @ jnp.ones((6000, 2), dtype)[:, 0],
    ):
        for run in (function, jax.jit(function)):
            np.testing.assert_allclose(
                np.asarray(run(x)).astype(float), [6000, 0], rtol=8 * float(jnp.finfo(dtype).eps)
            )
    scattered = sa.Sparse(np.ones(6000, dtype), (rows, columns % 2), (2, 2))
    dense = np.ones((1, 6000), dtype)
    squared = sa.Sparse.from_dense(dense) @ sa.Sparse.from_dense(dense.T)
    assert abs(float(squared[0, 0]) - 6000) <= 8 * float(jnp.finfo(dtype).eps) * 6000
    assert abs(float(scattered[0, 0]) - 3000) <= 8 * float(jnp.finfo(dtype).eps) * 3000
