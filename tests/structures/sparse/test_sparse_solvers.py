"""Direct solvers of sparse systems, against SciPy, NumPy, and JAX's derivatives of the dense form."""

import concurrent.futures
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from sparse_matrices import laplacian, random_matrix
from support import as_jax

import structarrays as sa
from structarrays._structures.sparse import solvers as sparse_solvers
from structarrays._structures.sparse import sparse_direct, sparse_inverse

N = 300
DTYPES = (np.float32, np.float64, np.complex64, np.complex128)


def definite(x):
    """The same array with the promise that it is positive definite."""
    return sa.assume(x, "positive_definite")


def relative(got, wanted):
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    return np.max(abs(got - wanted), initial=0) / max(np.max(abs(wanted), initial=0), np.finfo(wanted.dtype).tiny)


def backward_error(a, x, b):
    """Of each column (Higham, *Accuracy and Stability of Numerical Algorithms*, 7.1), in longer arithmetic."""
    a, x, b = (np.asarray(part, np.clongdouble) for part in (a, x, b))
    size = np.linalg.norm(np.asarray(abs(a), float), np.inf)
    return np.max(abs(b - a @ x), axis=0) / (size * np.max(abs(x), axis=0) + np.max(abs(b), axis=0))


@pytest.fixture(autouse=True)
def nothing_is_expanded():
    """No test may find a dense form where it means to test the sparse one."""
    sparse_direct.FACTORIZATIONS.clear()
    with sa.densify("error"):
        yield


@pytest.fixture
def made(monkeypatch):
    """The matrices that are factorised, in order."""
    known, original = [], sparse_direct.factorize

    def factorize(data, first, second, n, definite):
        known.append((np.array(data), n, definite))
        return original(data, first, second, n, definite)

    monkeypatch.setattr(sparse_direct, "factorize", factorize)
    return known


# ---- values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [None, 1, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_solve(dtype, columns, transposed):
    matrix, rng = random_matrix(dtype=dtype), np.random.default_rng(1)
    b = rng.normal(size=(N,) if columns is None else (N, columns)).astype(dtype)
    a = sa.Sparse.from_scipy(matrix)
    dense = matrix.toarray()
    if transposed:
        a, dense = a.mT, dense.T
    wanted = np.linalg.solve(dense, b)
    tolerance = 50 * np.linalg.cond(dense) * np.finfo(dtype).eps
    assert relative(sa.linalg.solve(a, sa.asarray(b)), wanted) < tolerance
    assert relative(jax.jit(sa.linalg.solve)(a, sa.asarray(b)), wanted) < tolerance


@pytest.mark.parametrize("dtype", DTYPES)
def test_determinants(dtype):
    matrix = random_matrix(dtype=dtype, seed=2)
    a, tolerance = sa.Sparse.from_scipy(matrix), 1e3 * np.finfo(dtype).eps
    sign, logabsdet = np.linalg.slogdet(matrix.toarray().astype(np.promote_types(dtype, np.float64)))
    for x in (a, a.mT):
        got = sa.linalg.slogdet(x)
        assert got.sign.dtype == dtype
        assert got.logabsdet.dtype == np.finfo(dtype).dtype
        assert abs(complex(got.sign) - sign) < tolerance
        assert abs(float(got.logabsdet) - logabsdet) < tolerance * abs(logabsdet)
    scaled = a / np.asarray(3.5, dtype)
    wanted = np.linalg.det(matrix.toarray() / np.asarray(3.5, dtype))
    assert abs(complex(sa.linalg.det(scaled)) - wanted) < 10 * tolerance * abs(wanted)


def test_determinant_out_of_range():
    a = sa.Sparse.from_scipy(random_matrix(seed=3)) * 1e10
    assert np.isinf(float(sa.linalg.det(a)))
    np.testing.assert_allclose(
        float(sa.linalg.slogdet(a).logabsdet), np.linalg.slogdet(random_matrix(seed=3).toarray() * 1e10)[1], rtol=1e-12
    )


@pytest.mark.parametrize("seed", range(4))
def test_sign_of_permuted_matrices(seed):
    rng = np.random.default_rng(seed)
    matrix = random_matrix(seed=seed)[rng.permutation(N)]
    got, wanted = sa.linalg.slogdet(sa.Sparse.from_scipy(matrix)), np.linalg.slogdet(matrix.toarray())
    assert float(got.sign) == wanted[0]
    np.testing.assert_allclose(float(got.logabsdet), wanted[1], rtol=1e-12)


def test_inverse():
    matrix = random_matrix()
    a, b = sa.Sparse.from_scipy(matrix), np.random.default_rng(1).normal(size=(N, 2))
    x = sa.linalg.inv(a)
    assert type(x) is sa.Inverse
    np.testing.assert_allclose(x @ sa.asarray(b), np.linalg.solve(matrix.toarray(), b), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(x.to_dense(), np.linalg.inv(matrix.toarray()), rtol=1e-11, atol=1e-13)
    assert sa.linalg.inv(x) is a or type(sa.linalg.inv(x)) is sa.Sparse


@pytest.mark.parametrize("batch", [((2,), ()), ((), (3,)), ((2,), (2,)), ((2, 1), (3,))])
def test_batches(batch):
    rng, matrix = np.random.default_rng(4), random_matrix()
    coo = matrix.tocoo()
    data = coo.data * (1 + 0.1 * rng.random((*batch[0], coo.nnz)))
    a = sa.Sparse(data, coo.coords, (N, N))
    b = rng.normal(size=(*batch[1], N, 2))
    got, flags = sa.linalg.solve(a, sa.asarray(b)), sa.linalg.slogdet(a)
    dense = np.zeros((*batch[0], N, N))
    dense[(..., *coo.coords)] = data
    np.testing.assert_allclose(got, np.linalg.solve(dense, b), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(flags.logabsdet, np.linalg.slogdet(dense)[1], rtol=1e-12)
    np.testing.assert_array_equal(flags.sign, np.linalg.slogdet(dense)[0])


def test_batch_with_patterns_of_its_own():
    """Padding is left out, wherever a matrix of the batch has fewer entries."""
    matrices = [random_matrix(seed=s, row=r) for s, r in ((0, 2), (1, 4), (2, 3))]
    a = sa.stack([sa.Sparse.from_scipy(m) for m in matrices])
    assert type(a) is sa.Sparse and a.padded
    b = np.random.default_rng(0).normal(size=N)
    dense = np.stack([m.toarray() for m in matrices])
    np.testing.assert_allclose(sa.linalg.solve(a, sa.asarray(b)), np.linalg.solve(dense, b), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(sa.linalg.slogdet(a).logabsdet, np.linalg.slogdet(dense)[1], rtol=1e-12)


def test_padding_under_jit():
    """A sum in compiled code has room for more entries than there are."""
    matrix, b = random_matrix(), np.ones(N)
    a, d = sa.Sparse.from_scipy(matrix), sa.Diagonal(np.linspace(1, 2, N))
    dense = matrix.toarray() + np.diag(np.linspace(1, 2, N))
    got = jax.jit(lambda a, d, b: (sa.linalg.solve(a + d, b), sa.linalg.slogdet(a + d)[1]))(a, d, sa.asarray(b))
    np.testing.assert_allclose(got[0], np.linalg.solve(dense, b), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(got[1], np.linalg.slogdet(dense)[1], rtol=1e-12)
    gradient = jax.jit(jax.grad(lambda d: as_jax(sa.linalg.slogdet(a + sa.Diagonal(d))[1])))(jnp.linspace(1, 2, N))
    np.testing.assert_allclose(gradient, np.diag(np.linalg.inv(dense)), rtol=1e-10)


def test_structured_right_hand_sides():
    a, rng = sa.Sparse.from_scipy(random_matrix()), np.random.default_rng(0)
    u, v = rng.normal(size=(2, N, 2))
    dense = np.linalg.inv(random_matrix().toarray())
    with sa.densify("allow"):
        for x in (sa.Diagonal(np.arange(1.0, N + 1)), sa.LowRank(u, v), sa.Sparse.from_scipy(random_matrix(seed=1))):
            got = sa.linalg.solve(a, x)
            assert type(got) is (sa.LowRank if type(x) is sa.LowRank else sa.Dense)
            np.testing.assert_allclose(got, dense @ np.asarray(x), rtol=1e-9, atol=1e-11)


def test_duplicates_and_explicit_zeros():
    matrix = random_matrix().tocoo()
    rows, columns = (np.concatenate([c, c[:50], [5, 7]]) for c in matrix.coords)
    data = np.concatenate([matrix.data, matrix.data[:50], [0.0, 0.0]])
    rows[-2:], columns[-2:] = (0, 1), (250, 251)
    dense = scipy.sparse.coo_array((data, (rows, columns)), shape=(N, N)).toarray()
    b = np.linspace(0, 1, N)
    got = sa.linalg.solve(sa.Sparse(data, (rows, columns), (N, N)), sa.asarray(b))
    np.testing.assert_allclose(got, np.linalg.solve(dense, b), rtol=1e-10, atol=1e-13)


def test_wide_indices():
    """The coordinates of an array may have 64 bits."""
    a = sa.Sparse.from_scipy(random_matrix())
    wide = sa.Sparse.make((a.data, *(c.astype(jnp.int64) for c in a.coords), None), a.meta)
    b = sa.ones(N)
    np.testing.assert_array_equal(sa.linalg.solve(wide, b), sa.linalg.solve(a, b))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_small_matrices_are_dense_unless_that_is_forbidden(n):
    a = sa.Sparse(np.full(n, 2.0), (np.arange(n), np.arange(n)), (n, n))
    for mode in ("allow", "error") if n else ("allow",):
        with sa.densify(mode):
            assert sparse_solvers.is_solved_directly(a) == (mode == "error")
            np.testing.assert_allclose(sa.linalg.solve(a, sa.ones(n)), np.full(n, 0.5))
            np.testing.assert_allclose(sa.linalg.inv(a) @ sa.ones(n), np.full(n, 0.5))
            np.testing.assert_allclose(float(sa.linalg.det(a)), 2.0**n)


def test_what_is_solved_directly():
    directly = sparse_solvers.is_solved_directly
    few, many, small = (
        sa.Sparse.from_scipy(m) for m in (random_matrix(), random_matrix(row=N / 10), random_matrix(100))
    )
    with sa.densify("allow"):
        assert directly(few) and not directly(many) and not directly(small)
    assert directly(few) and directly(many) and directly(small)  # where nothing may be expanded
    assert not directly(sa.exp(few))


# ---- what has no solution -------------------------------------------------------------------------------------------


def singular():
    """A matrix with an empty row and an empty column, one with two equal rows, and one without entries."""
    matrix = random_matrix().tolil()
    empty = matrix.copy()
    empty[7], empty[:, 9] = 0, 0
    equal = matrix.copy()
    equal[3], equal[4] = 0, 0
    equal[3, 3] = equal[3, 4] = equal[4, 3] = equal[4, 4] = 2
    return [m.tocsr() for m in (empty, equal, 0 * matrix)]


@pytest.mark.parametrize("kind", range(3))
@pytest.mark.parametrize("promised", [False, True])
def test_singular_matrices(kind, promised):
    a, b = sa.Sparse.from_scipy(singular()[kind]), sa.ones(N)
    if promised:
        a = definite(a)
    with pytest.raises(np.linalg.LinAlgError, match="x1 is singular"):
        sa.linalg.solve(a, b)
    with pytest.raises(np.linalg.LinAlgError, match="x is singular"):
        sa.linalg.inv(a)
    with sa.errstate(linalg="nan"):
        assert np.isnan(np.asarray(sa.linalg.solve(a, b))).all()
    assert np.isnan(np.asarray(jax.jit(sa.linalg.solve)(a, b))).all()
    sign, logabsdet = sa.linalg.slogdet(a)
    assert float(sign) == 0
    assert float(logabsdet) == -np.inf
    assert float(sa.linalg.det(a)) == 0


def test_one_singular_matrix_of_a_batch():
    regular, (empty, *_) = random_matrix(), singular()
    a = sa.stack([sa.Sparse.from_scipy(regular), sa.Sparse.from_scipy(empty)])
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.solve(a, sa.ones(N))
    with sa.errstate(linalg="nan"):
        x = np.asarray(sa.linalg.solve(a, sa.ones(N)))
    np.testing.assert_allclose(x[0], np.linalg.solve(regular.toarray(), np.ones(N)), rtol=1e-10)
    assert np.isnan(x[1]).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite(value):
    """NaN gives NaN, and is no error; in a right-hand side it stays in its column."""
    a, b = sa.Sparse.from_scipy(random_matrix()), np.ones((N, 2))
    bad = a.with_data(a.data.at[5].set(value))
    assert np.isnan(np.asarray(sa.linalg.solve(bad, sa.asarray(b)))).all()
    assert np.isnan(float(sa.linalg.slogdet(bad).logabsdet))
    b[3, 0] = value
    x = np.asarray(sa.linalg.solve(a, sa.asarray(b)))
    assert not np.isfinite(x[:, 0]).all()
    np.testing.assert_allclose(x[:, 1], np.linalg.solve(random_matrix().toarray(), np.ones(N)), rtol=1e-10)


# ---- positive definite ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_positive_definite(dtype):
    matrix = laplacian(18, dtype)
    a = definite(sa.Sparse.from_scipy(matrix))
    b = np.random.default_rng(0).normal(size=matrix.shape[0]).astype(dtype)
    tolerance = 1e4 * np.finfo(dtype).eps
    assert relative(sa.linalg.solve(a, sa.asarray(b)), np.linalg.solve(matrix.toarray(), b)) < tolerance
    sign, logabsdet = sa.linalg.slogdet(a)
    assert abs(complex(sign) - 1) < tolerance
    assert abs(float(logabsdet) / np.linalg.slogdet(matrix.toarray())[1] - 1) < tolerance


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_a_wrong_promise(dtype):
    matrix = laplacian(18, dtype) - 5 * scipy.sparse.eye_array(18**2)
    dense = matrix.toarray()
    a = sa.Sparse.from_scipy(matrix.tocsc().astype(dtype))
    promised, b = definite(a), sa.ones(18**2, dtype=a.dtype)
    np.testing.assert_allclose(sa.linalg.solve(a, b), np.linalg.solve(dense, np.asarray(b)), rtol=1e-9, atol=1e-11)
    with pytest.raises(np.linalg.LinAlgError, match="assumed positive definite"):
        sa.linalg.solve(promised, b)
    assert np.isnan(np.asarray(jax.jit(sa.linalg.solve)(promised, b))).all()
    gradient = jax.grad(lambda data: as_jax(sa.linalg.slogdet(definite(a.with_data(data)))[1]))
    got = gradient(a.data)
    wanted = np.linalg.inv(dense)[tuple(map(np.asarray, a.coords))[::-1]]
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-11)
    sign, logabsdet = sa.linalg.slogdet(promised)  # the determinant exists all the same
    assert abs(complex(sign) - np.linalg.slogdet(dense)[0]) < 1e-10
    np.testing.assert_allclose(float(logabsdet), np.linalg.slogdet(dense)[1], rtol=1e-11)


def test_a_zero_on_the_diagonal_is_not_definite():
    """Without pivots the factorisation would go on with an exchange of rows."""
    swap = scipy.sparse.block_diag([np.array([[0.0, 1.0], [1.0, 0.0]])] * 150).tocsc()
    a = sa.Sparse.from_scipy(swap)
    np.testing.assert_array_equal(sa.linalg.solve(a, sa.arange(300.0)), swap @ np.arange(300.0))
    with pytest.raises(np.linalg.LinAlgError):
        sa.linalg.solve(definite(a), sa.ones(300))


# ---- accuracy ---------------------------------------------------------------------------------------------------------


def graded(seed):
    matrix, scales = random_matrix(seed=seed), np.logspace(0, -12, N)
    return scipy.sparse.diags_array(scales) @ matrix @ scipy.sparse.diags_array(scales[::-1])


def nearly_singular(seed):
    matrix = random_matrix(seed=seed).tolil()
    matrix[11] = matrix[12] + 1e-13 * matrix[11]
    return matrix


def growing(_):
    """Wilkinson's matrix in a corner, for which partial pivoting lets the elements grow to 2**30."""
    m = 31
    corner = np.eye(m) - np.tril(np.ones((m, m)), -1)
    corner[:, -1] = 1
    return scipy.sparse.block_diag([scipy.sparse.csc_array(corner), random_matrix(N - m)])


def ill_conditioned(seed):
    """Of condition about 1e12, by a few entries of very different size."""
    rng = np.random.default_rng(seed)
    matrix = random_matrix(seed=seed, shift=0.0)
    return matrix @ scipy.sparse.diags_array(10.0 ** -rng.integers(0, 12, N))


def saddle_point(seed):
    """Indefinite, with zeros on the diagonal."""
    m = N // 3
    a = random_matrix(N - m, seed=seed)
    b = scipy.sparse.eye_array(m, N - m) + scipy.sparse.random_array((m, N - m), density=0.01, rng=seed)
    return scipy.sparse.block_array([[a + a.T, b.T], [b, None]])


@pytest.mark.parametrize("family", [graded, nearly_singular, growing, ill_conditioned, saddle_point])
@pytest.mark.parametrize("seed", range(3))
def test_backward_error(family, seed):
    """No worse than ten times that of a dense solver with partial pivoting."""
    matrix = family(seed).tocsc()
    dense, b = matrix.toarray(), np.random.default_rng(seed).normal(size=(N, 2))
    for a, whole in ((sa.Sparse.from_scipy(matrix), dense), (sa.Sparse.from_scipy(matrix).mT, dense.T)):
        x = np.asarray(sa.linalg.solve(a, sa.asarray(b)))
        limit = np.maximum(backward_error(whole, np.linalg.solve(whole, b), b), np.finfo(float).eps / 10)
        assert np.all(backward_error(whole, x, b) <= 10 * limit)


# ---- derivatives ------------------------------------------------------------------------------------------------------


def dense_of(a, data):
    """The dense form of other data on the pattern of an array, for JAX's derivatives of the dense functions."""
    return jnp.zeros((a.shape[-1],) * 2, data.dtype).at[a.coords].set(data)


@pytest.fixture(params=[np.float64, np.complex128], ids=["real", "complex"])
def system(request):
    """An array, data for it, and a right-hand side."""
    a = sa.Sparse.from_scipy(random_matrix(260, dtype=request.param))
    b = jnp.asarray(np.random.default_rng(8).normal(size=260).astype(request.param))
    return a, a.data, b


def size(x):
    return jnp.sum(jnp.abs(x) ** 2)


@pytest.mark.costly
def test_gradient_of_solve(system):
    a, data, b = system

    def ours(data, b):
        return size(sa.linalg.solve(a.with_data(data), b))

    def dense(data, b):
        return size(jnp.linalg.solve(dense_of(a, data), b))

    for transform in (lambda f: f, jax.jit):
        got = transform(jax.grad(ours, (0, 1)))(data, b)
        for g, w in zip(got, jax.grad(dense, (0, 1))(data, b), strict=True):
            assert relative(g, w) < 1e-11


def test_gradient_has_the_structure(system):
    a, _, b = system
    gradient = sa.grad(lambda a: sa.sum(sa.abs(sa.linalg.solve(a, b))))(a)
    assert type(gradient) is sa.Sparse
    assert gradient.nnz == a.nnz


@pytest.mark.costly
def test_second_derivatives_of_solve(system):
    a, data, b = system

    def second(solve):
        def gradient(data):
            return jax.grad(lambda data: size(solve(data, b)))(data)

        forwards = jax.jvp(gradient, (data,), (jnp.cos(data.real).astype(data.dtype),))[1]
        backwards = jax.grad(lambda data: size(gradient(data)))(data)
        return forwards, backwards

    got = second(lambda data, b: sa.linalg.solve(a.with_data(data), b))
    for g, w in zip(got, second(lambda data, b: jnp.linalg.solve(dense_of(a, data), b)), strict=True):
        assert relative(g, w) < 1e-10


@pytest.mark.costly
def test_gradient_of_determinants(system):
    a, data, _ = system

    def of(slogdet):
        def function(data):
            sign, logabsdet = slogdet(data)
            return logabsdet + jnp.real(sign * (2 + 1j))

        return function

    ours = of(lambda data: tuple(as_jax(part) for part in sa.linalg.slogdet(a.with_data(data))))
    dense = of(lambda data: jnp.linalg.slogdet(dense_of(a, data)))
    for transform in (lambda f: f, jax.jit):
        assert relative(transform(jax.grad(ours))(data), jax.grad(dense)(data)) < 1e-11
    tangent = jnp.sin(data)
    assert relative(jax.jvp(ours, (data,), (tangent,))[1], jax.jvp(dense, (data,), (tangent,))[1]) < 1e-11

    def second(function):
        return jax.grad(lambda data: size(jax.grad(function)(data)))(data)

    assert relative(second(ours), second(dense)) < 1e-11


def test_inverse_where_exchanges_fill_the_pattern(monkeypatch):
    """Then a solution for each column is the shorter way."""
    monkeypatch.setattr(sparse_inverse, "_structure", lambda *arguments: None)
    a = sa.Sparse.from_scipy(random_matrix())
    got = jax.grad(lambda data: as_jax(sa.linalg.slogdet(a.with_data(data))[1]))(a.data)
    wanted = np.linalg.inv(random_matrix().toarray())[tuple(map(np.asarray, a.coords))[::-1]]
    np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-14)


def test_gradient_of_det():
    a = sa.Sparse.from_scipy(random_matrix(260)) / 3.5
    got = jax.grad(lambda data: as_jax(sa.linalg.det(a.with_data(data))))(a.data)
    assert relative(got, jax.grad(lambda data: jnp.linalg.det(dense_of(a, data)))(a.data)) < 1e-11


def test_finite_differences():
    a = sa.Sparse.from_scipy(laplacian(18))
    b, direction, step = sa.ones(324), np.random.default_rng(0).normal(size=a.nnz), 1e-5

    def function(data):
        x = sa.linalg.solve(a.with_data(data), b)
        return as_jax(sa.sum(x**3) + sa.linalg.slogdet(a.with_data(data)).logabsdet)

    wanted = (function(a.data + step * direction) - function(a.data - step * direction)) / (2 * step)
    got = jnp.vdot(jax.grad(function)(a.data), direction)
    np.testing.assert_allclose(got, wanted, rtol=1e-6)
    np.testing.assert_allclose(jax.jvp(function, (a.data,), (direction,))[1], wanted, rtol=1e-6)


def test_derivatives_of_a_transposed_definite_matrix(made):
    matrix = laplacian(18)
    a = sa.Sparse.from_scipy(matrix)
    b = jnp.linspace(0, 1, 324)
    got = jax.grad(lambda data: size(sa.linalg.solve(definite(a.with_data(data)).mT, b)))(a.data)
    assert [promised for *_, promised in made] == [True]
    wanted = jax.grad(lambda data: size(jnp.linalg.solve(dense_of(a, data).T, b)))(a.data)
    assert relative(got, wanted) < 1e-11


@pytest.mark.costly
@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
@pytest.mark.parametrize("jitted", [False, True])
def test_vmap(axes, jitted):
    a = sa.Sparse.from_scipy(random_matrix(260))
    data, b = a.data, jnp.linspace(-1, 1, 260)
    data = jnp.stack([data, 1.5 * data, data + 0.01]) if axes[0] == 0 else data
    b = jnp.stack([b, b**2, jnp.cos(b)]) if axes[1] == 0 else b

    def ours(data, b):
        x = a.with_data(data)
        return size(sa.linalg.solve(x, b)) + as_jax(sa.linalg.slogdet(x)[1])

    def dense(data, b):
        x = dense_of(a, data)
        return size(jnp.linalg.solve(x, b)) + jnp.linalg.slogdet(x)[1]

    for f, g in ((ours, dense), (jax.grad(ours, (0, 1)), jax.grad(dense, (0, 1)))):
        got = jax.vmap(f, axes)
        got = (jax.jit(got) if jitted else got)(data, b)
        for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(jax.vmap(g, axes)(data, b)), strict=True):
            assert relative(one, other) < 1e-10


# ---- the cache --------------------------------------------------------------------------------------------------------


def test_a_second_system_is_not_factorised(made):
    a, b = sa.Sparse.from_scipy(random_matrix()), sa.ones(N)
    sa.linalg.solve(a, b)
    assert len(made) == 1
    sa.linalg.solve(a, 2 * b)
    sa.linalg.solve(a.mT, b)  # the transpose has the same factors
    sa.linalg.solve(sa.Sparse.from_scipy(random_matrix()), b)  # found by its content, not its identity
    sa.linalg.slogdet(a)
    as_jax(jax.jit(sa.linalg.solve)(a, b)).block_until_ready()
    jax.grad(lambda data: size(as_jax(sa.linalg.solve(a.with_data(data), b))))(a.data)
    assert len(made) == 1
    sa.linalg.solve(2 * a, b)
    assert len(made) == 2


def test_nothing_of_the_buffers_is_kept():
    """XLA reuses them as soon as a call is over."""
    a = sa.Sparse.from_scipy(random_matrix())
    b, wanted = sa.ones(N), np.linalg.solve(random_matrix().toarray(), np.ones(N))
    sa.linalg.solve(a, b)
    for _ in range(20):
        sa.linalg.solve(a * np.random.default_rng(0).random(), b)
    np.testing.assert_allclose(sa.linalg.solve(a, b), wanted, rtol=1e-10, atol=1e-13)


def test_threads(made):
    """Many threads, few matrices: right results, and each matrix is factorised once."""
    matrices = [random_matrix(seed=s) for s in range(3)]
    arrays = [sa.Sparse.from_scipy(m) for m in matrices]
    wanted = [np.linalg.solve(m.toarray(), np.ones(N)) for m in matrices]
    b, start = sa.ones(N), threading.Barrier(8)
    sa.linalg.solve(arrays[0], b)  # compiled
    sparse_direct.FACTORIZATIONS.clear()
    made.clear()

    def work(k):
        start.wait()
        with sa.densify("error"):
            return [np.asarray(sa.linalg.solve(arrays[(k + i) % 3], b)) for i in range(6)]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))
    for k, found in enumerate(results):
        for i, x in enumerate(found):
            np.testing.assert_allclose(x, wanted[(k + i) % 3], rtol=1e-10, atol=1e-13)
    assert len(made) == 3


def test_systems_without_rows_expand_nothing():
    a = sa.Sparse(np.zeros(0), (np.zeros(0, int), np.zeros(0, int)), (0, 0))
    with sa.densify("error"):
        assert sa.linalg.solve(a, sa.zeros((0, 2))).shape == (0, 2)
        assert float(sa.linalg.det(a)) == 1.0


# ---- large --------------------------------------------------------------------------------------------------------------


def test_large_systems():
    """A matrix of 10^5 rows, whose dense form would take 80 GB."""
    n = 10**5
    matrix = scipy.sparse.diags_array(
        [-np.ones(n - 1), np.full(n, 2.5), -np.ones(n - 1)], offsets=[-1, 0, 1], format="coo"
    )
    a, b = sa.Sparse.from_scipy(matrix), np.random.default_rng(0).normal(size=n)
    wanted = scipy.sparse.linalg.spsolve(matrix.tocsc(), b)
    np.testing.assert_allclose(sa.linalg.solve(a, sa.asarray(b)), wanted, rtol=1e-10)
    # det of the Toeplitz matrix: the recurrence d_k = 2.5 d_{k-1} - d_{k-2} has the root 2
    np.testing.assert_allclose(float(sa.linalg.slogdet(a).logabsdet), n * np.log(2) + np.log(4 / 3), rtol=1e-12)
    compiled = jax.jit(jax.grad(lambda a, b: as_jax(sa.sum(sa.linalg.solve(a, b))), allow_int=True))
    text = compiled.lower(a, sa.asarray(b)).as_text()
    assert f"{n}x{n}" not in text


# ---- sums, products, blocks -------------------------------------------------------------------------------------------


def combinations():
    """Names, arrays and their dense forms."""
    rng = np.random.default_rng(0)
    m1, m2 = random_matrix(), random_matrix(seed=1)
    a, b = sa.Sparse.from_scipy(m1), sa.Sparse.from_scipy(m2)
    d1, d2 = m1.toarray(), m2.toarray()
    u, v = rng.normal(size=(2, N, 2))
    small = rng.normal(size=(2, 2)) + 2 * np.eye(2)
    c = np.r_[3.0, 1.0, np.zeros(N - 2)]
    circulant = scipy.linalg.circulant(c)
    lower, upper = 0.1 * rng.normal(size=(2, 99, 3, 3))
    diag = rng.normal(size=(100, 3, 3)) * 0.3 + np.eye(3)
    blocks = scipy.sparse.block_diag(list(diag)).toarray()
    for k in range(99):
        blocks[3 * k + 3 : 3 * k + 6, 3 * k : 3 * k + 3] = lower[k]
        blocks[3 * k : 3 * k + 3, 3 * k + 3 : 3 * k + 6] = upper[k]
    yield "sum with low rank", a + sa.LowRank(u, v), d1 + u @ v.T
    yield "with a background", a + 0.01, d1 + 0.01
    yield "sum of two", a + b, d1 + d2
    few = random_matrix(row=1)
    yield "product of two", sa.Sparse.from_scipy(few).mT @ sa.Sparse.from_scipy(few), (few.T @ few).toarray()
    yield "factored product", sa.Product(a, sa.Circulant(c)), d1 @ circulant
    yield "Kronecker product", sa.Kronecker(a, small), np.kron(d1, small)
    yield "inverse", sa.Inverse(a), np.linalg.inv(d1)
    yield "sparse blocks", sa.Block([[a, b], [sa.Diagonal(np.ones(N)), a]]), np.block([[d1, d2], [np.eye(N), d1]])
    yield "triangle of blocks", sa.Block([[a, None], [b, a]]), np.block([[d1, 0 * d1], [d2, d1]])
    yield "saddle point", sa.Block([[a, u], [u.T, None]]), np.block([[d1, u], [u.T, np.zeros((2, 2))]])
    yield "block tridiagonal", sa.block_tridiagonal(lower, diag, upper), blocks


@pytest.mark.costly
@pytest.mark.parametrize("case", list(combinations()), ids=lambda case: case[0])
@pytest.mark.parametrize("jitted", [False, True])
def test_combinations(case, jitted):
    """Sums, products and blocks of sparse matrices find the direct solver for their parts."""
    _, x, dense = case
    transform = jax.jit if jitted else lambda f: f
    b = np.random.default_rng(3).normal(size=len(dense))
    wanted = np.linalg.solve(dense, b)
    tolerance = {"rtol": 0, "atol": 1e-14 * np.linalg.cond(dense) * abs(wanted).max()}
    np.testing.assert_allclose(transform(sa.linalg.solve)(x, sa.asarray(b)), wanted, **tolerance)
    np.testing.assert_allclose(transform(sa.linalg.inv)(x) @ sa.asarray(b), wanted, **tolerance)
    sign, logabsdet = transform(sa.linalg.slogdet)(x)
    np.testing.assert_allclose(float(sign), np.linalg.slogdet(dense)[0], rtol=1e-9)
    np.testing.assert_allclose(float(logabsdet), np.linalg.slogdet(dense)[1], rtol=1e-9)


@pytest.mark.slow
def test_gradient_through_blocks():
    a = sa.Sparse.from_scipy(random_matrix(200))
    b = jnp.linspace(0, 1, 400)

    def ours(data, d):
        x = a.with_data(data)
        return size(as_jax(sa.linalg.solve(sa.Block([[x, sa.Diagonal(d)], [None, x]]), b)))

    def dense(data, d):
        x = dense_of(a, data)
        return size(jnp.linalg.solve(jnp.block([[x, jnp.diag(d)], [jnp.zeros_like(x), x]]), b))

    d = jnp.linspace(1, 2, 200)
    for got, wanted in zip(jax.grad(ours, (0, 1))(a.data, d), jax.grad(dense, (0, 1))(a.data, d), strict=True):
        assert relative(got, wanted) < 1e-11


def test_batches_of_blocks():
    rng = np.random.default_rng(0)
    lower, upper = rng.normal(size=(2, 2, 99, 3, 3)) * 0.1
    x = sa.block_tridiagonal(lower, rng.normal(size=(2, 100, 3, 3)) * 0.3 + np.eye(3), upper)
    a = sa.stack([sa.Sparse.from_scipy(random_matrix(seed=s)) for s in range(2)])
    y = sa.Block([[a, sa.Diagonal(rng.random((2, N)))], [None, a.mT]])
    for z in (x, y):
        dense, b = np.asarray(z.to_dense()), np.ones(z.shape[-1])
        np.testing.assert_allclose(sa.linalg.solve(z, sa.asarray(b)), np.linalg.solve(dense, b), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(sa.linalg.slogdet(z).logabsdet, np.linalg.slogdet(dense)[1], rtol=1e-11)
