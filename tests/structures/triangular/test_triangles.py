"""Triangular, symmetric and Hermitian arrays: constructors, classes of results, what is not read, values, memory."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from support import as_jax, dense

import structarrays as sa
from structarrays._core.jax_internals import lapack
from structarrays._numerics import packed_triangles as triangles
from structarrays._structures.triangular import numerics as triangular_products
from structarrays.testing import sample

NAN = np.nan
NAMES = ("Triangular", "Triangular, upper", "Triangular, unit diagonal", "Symmetric", "Symmetric, upper", "Hermitian")


def same(x, want, rtol=1e-12):
    assert x.shape == want.shape and x.dtype == want.dtype
    np.testing.assert_allclose(dense(x), want, rtol=rtol, atol=rtol * np.max(np.abs(want), initial=1.0))


def random(*shape, dtype="float64", seed=0):
    generator = np.random.default_rng(seed)
    values = generator.normal(size=shape)
    return (values + 1j * generator.normal(size=shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


@pytest.fixture
def strict():
    with sa.densify("error"):
        yield


# ---- constructors and conversions -----------------------------------------------------------------------------------


def test_one_triangle_is_read():
    a = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    same(sa.Triangular(a), np.tril(a))
    same(sa.Triangular(a, lower=False), np.triu(a))
    same(sa.Triangular(a, unit_diagonal=True), np.array([[1.0, 0, 0], [4, 1, 0]]))
    b = random(2, 4, 4, dtype="complex128")
    low, up = np.tril(b), np.triu(b)
    mirror = np.swapaxes(np.tril(b, -1), -1, -2), np.swapaxes(np.triu(b, 1), -1, -2)
    same(sa.Symmetric(b), low + mirror[0])
    same(sa.Symmetric(b, lower=False), up + mirror[1])
    real_diagonal = 1j * np.eye(4) * b.imag
    same(sa.Hermitian(b), low + mirror[0].conj() - real_diagonal)
    same(sa.Hermitian(b, lower=False), up + mirror[1].conj() - real_diagonal)


@pytest.mark.parametrize("cls", [sa.Triangular, sa.Symmetric, sa.Hermitian])
def test_bad_arguments(cls):
    with pytest.raises(ValueError, match=r"a must be \(\.\.\., \w, n\).*got shape \(3,\)"):
        cls([1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="lower must be True or False, got 'L'"):
        cls(np.eye(2), "L")
    with pytest.raises(TypeError, match="a must be an array"):
        cls(object())


def test_more_bad_arguments():
    with pytest.raises(ValueError, match=r"square in its last two dimensions, got shape \(2, 3\)"):
        sa.Symmetric(np.ones((2, 3)))
    with pytest.raises(TypeError, match="unit_diagonal must be True or False, got 1"):
        sa.Triangular(np.eye(2), True, 1)


def test_from_dense_looks_at_the_other_half():
    a = np.tril(random(3, 4, 5))
    same(sa.Triangular.from_dense(a), a)
    with pytest.raises(ValueError, match=r"a must be upper triangular, but a\[0, 1, 0\] is"):
        sa.Triangular.from_dense(a, lower=False)
    b = random(3, 3, dtype="complex128")
    same(sa.Hermitian.from_dense(b + b.conj().T), b + b.conj().T)
    with pytest.raises(ValueError, match=r"a must be Symmetric, but a\[0, 1\] is .* and a\[1, 0\] is"):
        sa.Symmetric.from_dense(b + b.conj().T)
    with pytest.raises(ValueError, match=r"a must be Hermitian, but a\[0, 0\] is"):
        sa.Hermitian.from_dense(np.diag([1j, 0]))
    assert sa.Symmetric.from_dense([[NAN]]).shape == (1, 1)
    assert type(jax.jit(sa.Triangular.from_dense)(b)) is sa.Triangular


def test_repr():
    text = repr(sa.Triangular(np.eye(3), lower=False, unit_diagonal=True))
    want = "Triangular(upper, unit diagonal, shape=(3, 3), dtype=float64, stores 9 of 9 entries, 72 B of 72 B dense)"
    assert text == want
    assert repr(sa.Symmetric(np.eye(2))).startswith("Symmetric(lower, shape=(2, 2), dtype=float64")
    assert str(sa.Triangular([[1.0, 2.0], [3.0, 4.0]])) == "[[1.  .]\n [3. 4.]]"


def test_a_vmapped_core_dimension_is_named():
    with pytest.raises(ValueError, match="must have its core dimensions"):
        jax.vmap(lambda x: x.shape)(sa.Triangular(np.eye(2)))


# ---- what is not read ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("function", [sa.sqrt, sa.log, sa.reciprocal, sa.acos, sa.square, lambda x: x / x, sa.abs])
def test_no_nan_comes_out_of_the_other_half(name, function):
    x = sample(name, (4, 4), domain=(0.1, 0.9))
    assert np.isnan(np.asarray(x._value[0][0])).any()
    gradient = sa.grad(lambda x: sa.sum(sa.where(sa.isfinite(x), function(x), 0.0)))(x)
    assert type(gradient) is type(x) and np.isfinite(np.asarray(gradient._value[0][0])).all()
    if "Triangular" not in name:
        assert np.isfinite(dense(function(x))).all()
    stored = np.asarray(as_jax(x.rebuild(tuple(jnp.ones_like(e) for e in x.entries), None))) != 0
    assert np.isfinite(dense(function(x))[stored]).all()


def test_the_gradient_by_a_dense_operand_is_finite_too():
    L, y = sample("Triangular", (3, 3)), sa.asarray(np.tril(np.ones((3, 3))))
    assert np.isfinite(dense(sa.grad(lambda y: sa.sum(L / y))(y))).all()


def test_an_off_diagonal_entry_counts_twice():
    gradient = sa.grad(lambda x: sa.sum(x * x))(sa.Symmetric([[1.0, NAN], [3.0, 4.0]]))
    np.testing.assert_array_equal(gradient.data, [[2.0, 0.0], [12.0, 8.0]])
    gradient = sa.grad(sa.sum)(sa.Triangular([[1.0, NAN], [3.0, 4.0]], unit_diagonal=True))
    np.testing.assert_array_equal(gradient.data, [[0.0, 0.0], [1.0, 0.0]])
    assert sa.Triangular(np.eye(2)).linear and not sa.Triangular(np.eye(2), unit_diagonal=True).linear


@pytest.mark.parametrize(
    "sides", [(True, True), (True, False), (False, True), (False, False), (True, None), (None, False)]
)
@pytest.mark.parametrize("shape", [(4, 4, 4), (7, 10, 5), (10, 4, 9), (1, 8, 8), (3, 9, 1), (0, 3, 2)])
@pytest.mark.parametrize("special", [False, True])
def test_blockwise_products_absorb(sides, shape, special, monkeypatch):
    """Against the sum of all products of stored entries."""
    monkeypatch.setattr(triangular_products, "_SMALLEST", 3)
    monkeypatch.setattr(triangular_products, "_BLOCK", 3)
    m, k, n = shape
    a, b = random(2, m, k), random(k, n, seed=1)
    if special:
        generator = np.random.default_rng(2)
        values = [NAN, np.inf, -np.inf, 0.0]
        a, b = (np.where(generator.uniform(size=x.shape) < 0.1, generator.choice(values, x.shape), x) for x in (a, b))
    masks = [
        np.ones(x.shape[-2:], bool) if s is None else (np.tril if s else np.triu)(np.ones(x.shape[-2:], bool))
        for x, s in zip((a, b), sides, strict=True)
    ]
    with np.errstate(all="ignore"):
        stored = masks[0][:, :, None] & masks[1][None]
        want = np.where(stored, a[..., :, :, None] * b[..., None, :, :], 0).sum(-2)
    a, b = np.where(masks[0], a, NAN), np.where(masks[1], b, NAN)
    got = jax.jit(triangular_products.matmul, static_argnums=(2, 3))(a, b, *sides)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("side", [True, False])
@pytest.mark.parametrize("columns", [1, 2])
def test_derivatives_of_products_with_infinite_vectors(side, columns):
    """Neither structural zeros, nor the other half, nor infinite sums have a derivative."""
    keep = np.tril if side else np.triu
    a = np.where(keep(np.ones((4, 4), bool)), random(4, 4), NAN)
    v = random(4, columns, seed=1)
    v[2] = np.inf

    def total(a, v):
        rows = triangular_products.matmul(a, v, side)
        return jnp.sum(jnp.where(jnp.isfinite(rows), rows, 0.0))

    by_a, by_v = jax.jit(jax.grad(total, (0, 1)))(a, v)
    reached = keep(np.ones((4, 4)))[:, 2] == 0  # the rows that do not meet the infinite entry
    np.testing.assert_allclose(np.asarray(by_v), np.tile(keep(np.nan_to_num(a))[reached].sum(0)[:, None], columns))
    expected = keep(np.tile(np.where(np.isinf(v), 0, v).sum(1), (4, 1))) * reached[:, None]
    np.testing.assert_allclose(np.asarray(by_a), expected, atol=1e-14)


def test_mapped_products_have_one_branch():
    """Under `vmap` a condition for each matrix would compute both branches."""
    product = jax.vmap(lambda a, v: triangular_products.matmul(a, v, True))
    program = jax.jit(product).lower(jnp.ones((2, 4, 4)), jnp.ones((2, 4, 1))).as_text()
    assert "stablehlo.case" in program or "stablehlo.if" in program


# ---- what comes out --------------------------------------------------------------------------------------------------


def kind(x):
    if type(x) is sa.Triangular:
        return f"Triangular {'lower' if x.lower else 'upper'}"
    return type(x).__name__


L, U = sa.Triangular(random(3, 3)), sa.Triangular(random(3, 3, seed=1), lower=False)
UNIT = sa.Triangular(random(3, 3, seed=2), unit_diagonal=True)
S, S2 = sa.Symmetric(random(3, 3, seed=3)), sa.Symmetric(random(3, 3, seed=4), lower=False)
H, H2 = (sa.Hermitian(random(3, 3, dtype="complex128", seed=s), lower=s == 5) for s in (5, 6))
D, B = sa.Diagonal(random(3)), sa.Banded([random(2), random(3)], (-1, 0), (3, 3))
WIDE = sa.tridiagonal(random(2), random(3), random(2))
RESULTS = [
    ("L + L", "Triangular lower"),
    ("L + UNIT", "Triangular lower"),
    ("L + U", "Dense"),
    ("L * U", "Diagonal"),
    ("L * S", "Triangular lower"),
    ("U * H", "Triangular upper"),
    ("L * WIDE", "Banded"),
    ("WIDE * U", "Banded"),
    ("L + B", "Triangular lower"),
    ("D - U", "Triangular upper"),
    ("L + WIDE", "Dense"),
    ("L + 1", "Triangular lower"),
    ("L * sa.ones((3, 3))", "Triangular lower"),
    ("L + sa.ones((3, 3))", "Dense"),
    ("sa.exp(UNIT)", "Triangular lower"),
    ("L.mT", "Triangular upper"),
    ("L @ UNIT", "Triangular lower"),
    ("L @ U", "Dense"),
    ("L @ B", "Triangular lower"),
    ("B.mT @ U", "Triangular upper"),
    ("WIDE @ L", "Dense"),
    ("D @ L", "Triangular lower"),
    ("sa.linalg.matrix_power(U, 3)", "Triangular upper"),
    ("sa.linalg.inv(L)", "Triangular lower"),
    ("sa.linalg.solve(L, UNIT)", "Triangular lower"),
    ("sa.linalg.solve(U, L)", "Dense"),
    ("sa.linalg.solve(L, D)", "Triangular lower"),
    ("sa.tril(L, k=-1)", "Triangular lower"),
    ("sa.triu(L)", "Diagonal"),
    ("sa.triu(L, k=1)", "Banded"),
    ("sa.triu(L, k=-1)", "Triangular lower"),
    ("sa.tril(S)", "Triangular lower"),
    ("sa.triu(S, k=1)", "Triangular upper"),
    ("sa.tril(H, k=-1)", "Triangular lower"),
    ("L[1:, 1:]", "Triangular lower"),
    ("L[::-1, ::-1]", "Triangular upper"),
    ("L[0::2, 0::2]", "Triangular lower"),
    ("S + S2", "Symmetric"),
    ("S + D", "Symmetric"),
    ("S + sa.eye(3)", "Symmetric"),
    ("S + 1j", "Symmetric"),
    ("S + WIDE", "Dense"),
    ("S * D", "Diagonal"),
    ("sa.sin(S2) > 0", "Symmetric"),
    ("S.mT", "Symmetric"),
    ("S[1:, 1:]", "Symmetric"),
    ("S[1:, :-1]", "Dense"),
    ("sa.linalg.inv(S)", "Symmetric"),
    ("sa.where(S > 0, S, 0.0)", "Symmetric"),
    ("S + H", "Hermitian"),
    ("S * 1j + H", "Dense"),
    ("H + H2", "Hermitian"),
    ("H * H2", "Hermitian"),
    ("2 * H", "Hermitian"),
    ("H / 2", "Hermitian"),
    ("H + sa.eye(3)", "Hermitian"),
    ("H * 1j", "Dense"),
    ("H + 1j * sa.eye(3)", "Dense"),
    ("sa.sqrt(H)", "Dense"),
    ("sa.imag(H)", "Dense"),
    ("sa.real(H)", "Symmetric"),
    ("sa.abs(H)", "Symmetric"),
    ("H == H2", "Symmetric"),
    ("sa.conj(H)", "Hermitian"),
    ("H.mT", "Hermitian"),
    ("sa.exp(H)", "Hermitian"),
    ("H[::-1, ::-1]", "Hermitian"),
    ("sa.linalg.inv(H)", "Hermitian"),
    ("sa.isin(H, sa.asarray([1j]))", "Dense"),
]


@pytest.mark.each_parameter
@pytest.mark.parametrize(("code", "want"), RESULTS)
def test_classes_and_values_of_results(code, want):
    arrays = {"L": L, "U": U, "UNIT": UNIT, "S": S, "S2": S2, "H": H, "H2": H2, "D": D, "B": B, "WIDE": WIDE}
    result = eval(code, {"sa": sa, **arrays})
    assert kind(result) == want
    same(result, dense(eval(code, {"sa": sa, **{k: v.to_dense() for k, v in arrays.items()}})), rtol=1e-10)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "function", ["sort", "argmax", "argmin", "sum", "prod", "cumulative_sum", "cumulative_prod", "diff"]
)
def test_along_the_batch(name, function, strict):
    x = sample(name, (3, 3), batch=(4,))
    result = getattr(sa, function)(x, axis=0)
    assert type(result) is type(x)
    same(result, getattr(np, function)(dense(x), axis=0))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_fourier_transforms_along_the_batch(dtype):
    for name in NAMES:
        x = sample(name, (3, 3), batch=(4,), dtype=dtype)
        same(sa.fft.fft(x * (1 + 0j), axis=0), np.fft.fft(dense(x), axis=0))


@pytest.mark.slow
def test_nothing_densifies_where_structure_stays(strict):
    b = sa.asarray(random(3, 2))
    for x in (L, U, UNIT):
        for result in (x @ b, b.mT @ x, sa.linalg.solve(x, b), sa.sum(x), sa.var(x, axis=0), x[0], x[:, 1], x[1, 2]):
            assert type(result) is sa.Dense
        (
            sa.linalg.det(x),
            sa.linalg.slogdet(x),
            sa.linalg.eigvals(x),
            sa.linalg.matrix_norm(x, ord=1),
            sa.linalg.trace(x),
        )
    for x in (S, S2, H):
        sa.linalg.eigh(x), sa.linalg.eigvalsh(x), sa.linalg.svdvals(x), sa.linalg.svd(x), sa.linalg.det(x)
        sa.mean(x, axis=-1), sa.std(x), x @ x, x[0], x[sa.asarray([2, 0])[:, None], sa.asarray([1])]
        assert type(x @ x) is sa.Dense and type(L @ x) is sa.Dense


def test_cholesky_is_triangular():
    a = random(2, 4, 4, dtype="complex128")
    a = a @ np.conj(np.swapaxes(a, -1, -2)) + 4 * np.eye(4)
    for lower in (True, False):
        H = sa.Hermitian(a, lower)
        with sa.densify("error"):
            low, up = sa.linalg.cholesky(H), sa.linalg.cholesky(H, upper=True)
        assert kind(low) == "Triangular lower" and kind(up) == "Triangular upper"
        same(low, np.linalg.cholesky(a))
        same(up, np.conj(np.swapaxes(np.linalg.cholesky(a), -1, -2)))
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        sa.linalg.cholesky(sa.Symmetric(-np.eye(2)))


# ---- solvers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit_diagonal", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_solve_against_scipy(lower, unit_diagonal, dtype):
    a = random(6, 6, dtype=dtype) / 6 + 2 * np.eye(6, dtype=dtype)
    b = random(6, 3, dtype=dtype, seed=1)
    read = np.tril(np.ones((6, 6), bool)) if lower else np.triu(np.ones((6, 6), bool))
    T = sa.Triangular(np.where(read, a, np.asarray(NAN, dtype)), lower, unit_diagonal)
    want = scipy.linalg.solve_triangular(a, b, lower=lower, unit_diagonal=unit_diagonal)
    rtol = 1e-5 if dtype == "float32" else 1e-13
    same(sa.linalg.solve(T, sa.asarray(b)), want, rtol)
    same(sa.linalg.solve(T, sa.asarray(b[:, 0])), want[:, 0], rtol)
    stacks = np.stack([b, 2 * b])
    same(sa.linalg.solve(T, sa.asarray(stacks)), np.stack([want, 2 * want]), rtol)


def test_a_zero_on_the_diagonal_is_singular():
    T = sa.Triangular(np.stack([np.eye(2), np.diag([1.0, 0.0])]))
    b = sa.ones((2, 1))
    for call in (lambda: sa.linalg.solve(T, b), lambda: sa.linalg.inv(T)):
        with pytest.raises(np.linalg.LinAlgError, match="singular"):
            call()
    solution = jax.jit(sa.linalg.solve)(T, b)
    np.testing.assert_array_equal(dense(solution)[..., 0], [[1.0, 1.0], [NAN, NAN]])
    assert float(sa.linalg.det(T)[1]) == 0.0
    same(sa.linalg.solve(sa.Triangular(np.zeros((2, 2)), unit_diagonal=True), sa.ones(2)), np.ones(2))


def test_nan_on_the_diagonal_is_not_singular():
    assert np.isnan(dense(sa.linalg.solve(sa.Triangular([[NAN]]), sa.ones(1)))).all()


def test_an_assumption_chooses_cholesky():
    indefinite = sa.assume(sa.Symmetric(np.diag([1.0, -1.0])), "positive_definite")
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        sa.linalg.solve(indefinite, sa.ones(2))
    a = random(5, 5)
    a = a @ a.T + np.eye(5)
    A = sa.assume(sa.Symmetric(a), "positive_definite")
    assert "positive_definite" in sa.linalg.inv(A).assumptions
    same(sa.linalg.solve(A, sa.ones(5)), np.linalg.solve(a, np.ones(5)), 1e-10)


def test_spectra_read_one_triangle():
    for x in (S, H):
        a = dense(x)
        same(sa.linalg.eigvalsh(x), np.linalg.eigvalsh(a))
        same(sa.linalg.svdvals(x), np.linalg.svd(a, compute_uv=False))
        values, vectors = map(dense, sa.linalg.eigh(x))
        np.testing.assert_allclose(a @ vectors, vectors * values, atol=1e-12)
    np.testing.assert_allclose(dense(sa.linalg.eigvals(L)), np.diag(dense(L)).astype(complex))


# ---- writes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "key", "value", "want"),
    [
        ("Triangular", (2, 1), 7.0, "Triangular"),
        ("Triangular", (1, 2), 7.0, "Dense"),
        ("Triangular", (slice(2, 4), slice(0, 2)), np.array([[1.0, 2.0], [3.0, 4.0]]), "Triangular"),
        ("Triangular", (slice(1, 4), slice(0, 2)), 5.0, "Triangular"),
        ("Triangular", (slice(0, 2), slice(0, 2)), 5.0, "Dense"),
        ("Triangular", (np.array([1, 3]), np.array([0, 3])), np.array([5.0, 6.0]), "Triangular"),
        ("Triangular", (np.array([1, 0]), np.array([0, 3])), 5.0, "Dense"),
        ("Triangular", (3,), 5.0, "Triangular"),
        ("Triangular, upper", (0,), np.arange(4.0), "Triangular"),
        ("Triangular, unit diagonal", (2, 2), 7.0, "Triangular"),
        ("Triangular, unit diagonal", (3, 2), 7.0, "Triangular"),
        ("Triangular + background", (2, 1), 7.0, "Triangular"),
        ("Symmetric", (1, 1), 7.0, "Symmetric"),
        ("Symmetric", (1, 0), 7.0, "Dense"),
        ("Symmetric", (slice(1, 3), slice(1, 3)), 7.0, "Symmetric"),
        ("Symmetric", (slice(1, 3), slice(1, 3)), np.ones((2, 2)), "Dense"),
        ("Symmetric", (np.arange(4), np.arange(4)), np.arange(4.0), "Symmetric"),
        ("Hermitian", (1, 1), 7.0, "Hermitian"),
    ],
)
def test_writes(name, key, value, want):
    x = sample(name, (4, 4), batch=(2,))
    copy, expected = sa.asarray(x, copy=True), dense(x).copy()
    for _ in range(2):  # the second write owns the buffer
        copy[(slice(None), *key)] = value
    expected[(slice(None), *key)] = value
    assert type(copy).__name__ == want
    same(copy, expected)
    assert type(x).__name__ == name.split()[0].rstrip(",") and np.isfinite(dense(x)).all()  # as it was


def test_a_symmetric_block_is_written_and_a_complex_one_is_not():
    x = sa.asarray(S, copy=True)
    x[1:, 1:] = sa.Symmetric([[1.0, NAN], [2.0, 3.0]], lower=True)
    assert type(x) is sa.Symmetric
    np.testing.assert_array_equal(dense(x)[1:, 1:], [[1.0, 2.0], [2.0, 3.0]])
    y = sa.asarray(H, copy=True)
    y[0, 0] = 1j
    assert type(y) is sa.Dense and y[0, 0] == 1j
    with pytest.raises(ValueError, match="cannot be broadcast"):
        sa.Triangular(np.eye(3))[2:, :2] = sa.ones((3, 3))


# ---- memory ----------------------------------------------------------------------------------------------------------

SIZE = 512


def squares(function, *arrays):
    """The memory that a compiled function takes next to its arguments and results, in matrices of this size."""
    compiled = jax.jit(function).lower(*arrays).compile()
    return compiled.memory_analysis().temp_size_in_bytes / (SIZE * SIZE * arrays[0].dtype.itemsize)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: sa.max(sa.abs(x)),
        lambda x: sa.linalg.diagonal(sa.exp(x), offset=-1),
        lambda x: sa.linalg.trace(x),
        lambda x: x[3],
        lambda x: x[3:5, 7],
    ],
)
def test_parts_and_extrema_make_no_square_buffer(name, function):
    assert squares(function, sample(name, (SIZE, SIZE))) < 0.1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("function", "count"),
    [(sa.sum, 1), (lambda x: sa.sum(x, axis=0), 1), (lambda x: sa.prod(x, axis=1), 1), (lambda x: sa.var(x), 2)],
)
def test_sums_make_few_square_buffers(name, function, count):
    """XLA's loop for sums on the CPU takes an array, and does not fuse with what it sums."""
    assert squares(function, sample(name, (SIZE, SIZE))) < count + 0.1


@pytest.mark.parametrize("name", ["Triangular", "Triangular, upper"])
def test_solutions_make_no_square_buffer(name):
    """Nor do systems of the transpose, which reverse mode solves."""
    x, b = sample(name, (SIZE, SIZE), requires="invertible"), sa.ones(SIZE)

    def solution(x, b):
        return sa.linalg.solve(x, b)

    def gradient(x, b):
        return jax.grad(lambda b: sa.sum(sa.linalg.solve(x, b)).data)(b)

    assert squares(solution, x, b) < 0.1
    assert squares(gradient, x, b) < 0.1


def test_a_product_copies_only_blocks():
    """Those on the diagonal, which are an eighth of the matrix, a few times over for the branch with infinities."""
    n = 2 * SIZE
    x, b = sa.Triangular(np.eye(n)), sa.ones(n)
    compiled = jax.jit(lambda x, b: x @ b).lower(x, b).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < n * n * 8


# ---- large systems ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_a_large_system_with_one_right_hand_side(dtype, lower, unit, rng):
    """As SciPy's, also mapped over matrices and right-hand sides; the other half is never read."""
    n, count = 131, 3
    data = rng.normal(size=(count, n, n)) / n
    data = (data + 1j * rng.normal(size=data.shape) / n if dtype == "complex128" else data).astype(dtype)
    data += 2 * np.eye(n, dtype=dtype)
    b = rng.normal(size=(count, n)).astype(dtype)
    half = np.tril if lower else np.triu
    unread = np.where(half(np.ones((n, n))), data, np.nan)

    def run(data, b):
        return triangles.solve(data, b, lower=lower, unit_diagonal=unit)[0]

    def oracle(a, b):
        return scipy.linalg.solve_triangular(half(a), b, lower=lower, unit_diagonal=unit)

    tolerance = 100 * np.finfo(dtype).eps
    np.testing.assert_allclose(jax.jit(run)(unread[0], b[0]), oracle(data[0], b[0]), atol=tolerance)
    for axes in ((0, 0), (None, 0), (0, None)):
        pairs = [(data[i if axes[0] == 0 else 0], b[i if axes[1] == 0 else 0]) for i in range(count)]
        arguments = (unread if axes[0] == 0 else unread[0], b if axes[1] == 0 else b[0])
        found = jax.vmap(run, in_axes=axes)(*arguments)
        np.testing.assert_allclose(found, [oracle(*pair) for pair in pairs], atol=tolerance)


@pytest.mark.parametrize("lower", [True, False])
def test_derivatives_of_a_large_system(lower, rng):
    """``dx = -T^-1 dT x``, and its derivative, forwards and in reverse; those by the other half are zero."""
    n = 128
    half = np.tril if lower else np.triu
    t = half(rng.normal(size=(n, n))) / n + 2 * np.eye(n)
    change, b, weights = half(rng.normal(size=(n, n))), rng.normal(size=n), rng.normal(size=n)
    x = np.linalg.solve(t, b)
    first = -np.linalg.solve(t, change @ x)
    second = -2 * np.linalg.solve(t, change @ first)

    def along(s):
        return triangles.solve(t + s * jnp.asarray(change), jnp.asarray(b), lower=lower, unit_diagonal=False)[0]

    def value(t):
        return jnp.asarray(weights) @ triangles.solve(t, jnp.asarray(b), lower=lower, unit_diagonal=False)[0]

    np.testing.assert_allclose(jax.jit(jax.jacfwd(along))(0.0), first, atol=1e-11)
    np.testing.assert_allclose(jax.jacrev(along)(0.0), first, atol=1e-11)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(jax.jacrev(along)))(0.0), second, atol=1e-11)
    gradient = jax.jit(jax.grad(value))(jnp.asarray(t))
    np.testing.assert_allclose(gradient, half(-np.outer(np.linalg.solve(t.T, weights), x)), atol=1e-11)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("initialize_lapack", None),
        ("_TARGETS", {"f8": "no_such_function"}),
        ("substitute", lambda a, b, **_: jnp.ones_like(b)),
    ],
)
def test_a_library_without_the_routine_of_lapack(name, value, monkeypatch, rng):
    """JAX's function solves the systems: no error, and no other value."""
    n = 7
    t = np.tril(rng.normal(size=(n, n))) + 3 * np.eye(n)
    b = rng.normal(size=n)
    monkeypatch.setattr(lapack, "is_available", functools.cache(lapack.is_available.__wrapped__))
    assert lapack.is_available(t.dtype)
    lapack.is_available.cache_clear()
    monkeypatch.setattr(lapack, name, value)
    assert not lapack.is_available(t.dtype)
    x = triangles.solve(jnp.asarray(t), jnp.asarray(b), lower=True, unit_diagonal=False)[0]
    np.testing.assert_allclose(x, np.linalg.solve(t, b), rtol=1e-12)
