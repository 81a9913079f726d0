"""Factorisations on the host, their cache, and elements of inverses, against NumPy and SciPy."""

import concurrent.futures
import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from sparse_matrices import laplacian, random_matrix

import structarrays as sa
from structarrays._numerics import host_calls
from structarrays._structures.sparse import (
    array_digests,
    compressed_rows,
    sparse_direct,
    sparse_inverse,
    sparse_systems,
)

N = 300
DTYPES = (np.float32, np.float64, np.complex64, np.complex128)


@pytest.fixture
def made(monkeypatch):
    """The matrices that are factorised, in order."""
    known, original = [], sparse_direct.factorize

    def factorize(data, first, second, n, definite):
        known.append((np.array(data), n, definite))
        return original(data, first, second, n, definite)

    monkeypatch.setattr(sparse_direct, "factorize", factorize)
    return known


# ---- the cache --------------------------------------------------------------------------------------------------------


def test_what_makes_a_matrix_another_one(made):
    """The same bytes in another place, another size, another dtype: all are told apart."""
    cache = sparse_direct.Cache(count=8, nbytes=1 << 30)
    data, i, j = np.ones(3), np.arange(3, dtype=np.int32), np.array([0, 1, 2], np.int32)
    arguments = [(data, i, j, 3, False), (data, i, j, 3, True), (data.view(np.int64).view(np.float64), i, j, 3, False)]
    arguments += [(data, i, np.array([1, 2, 0], np.int32), 3, False), (data.astype(np.complex128), i, j, 3, False)]
    for one in arguments:
        cache.get(*one)
    assert len(made) == 4  # the third has the content of the first


def test_the_cache_is_bounded(made):
    i = np.arange(3, dtype=np.int32)

    def use(cache, *values):
        for v in values:
            cache.get(np.full(3, v), i, i, 3, False)

    cache = sparse_direct.Cache(count=2, nbytes=1 << 30)
    use(cache, 1.0, 2.0, 1.0, 3.0)
    assert len(cache) == 2
    use(cache, 1.0, 3.0)
    assert len(made) == 3
    use(cache, 2.0)  # the one that was used longest ago is gone
    assert len(made) == 4
    small = sparse_direct.Cache(count=100, nbytes=1)
    use(small, 1.0, 2.0, 2.0)
    assert len(small) == 1
    assert len(made) == 6


# ---- arrays that the cache recognises ----------------------------------------------------------------------------------


@pytest.fixture
def hashed(monkeypatch):
    """The sizes of the arrays whose content is hashed, in order."""
    sizes, original = [], array_digests._content

    def content(array):
        sizes.append(array.nbytes)
        return original(array)

    monkeypatch.setattr(array_digests, "_content", content)
    return sizes


def system(seed=0):
    matrix = laplacian(20).tocoo()
    rng = np.random.default_rng(seed)
    data = matrix.data + rng.uniform(0, 1, len(matrix.data)) * (matrix.data > 0)
    a = sa.Sparse(data, matrix.coords, matrix.shape)
    return a, rng.normal(size=matrix.shape[0])


def check_solution(a, b):
    dense = np.asarray(a.to_dense())
    np.testing.assert_allclose(np.asarray(sa.linalg.solve(a, sa.asarray(b))), np.linalg.solve(dense, b), rtol=1e-9)


def test_the_second_linear_system_hashes_nothing(hashed, made):
    a, b = system()
    check_solution(a, b)
    assert len(hashed) == 3
    check_solution(a, 2 * b)
    check_solution(a.with_data(a.data), b)
    assert len(hashed) == 3 and len(made) == 1
    check_solution(a.with_data(2 * a.data), b)
    assert len(hashed) == 4 and len(made) == 2  # other entries with the same coordinates


def test_deleted_and_collected_arrays_are_forgotten(hashed):
    a, b = system()
    check_solution(a, b)
    a.data.delete()
    for seed in range(1, 5):  # new arrays at old addresses
        a, b = system(seed)
        check_solution(a, b)
        before = len(array_digests._KNOWN)
        del a
        gc.collect()
        assert len(array_digests._KNOWN) < before


def test_donated_arrays_are_forgotten():
    a, b = system()
    check_solution(a, b)
    double = jax.jit(lambda data: 2 * data, donate_argnums=0)
    for _ in range(3):
        a = a.with_data(double(a.data))  # possibly the same memory
        check_solution(a, b)


@pytest.mark.parametrize("change", [lambda x: np.multiply(x, 2, out=x), lambda x: np.negative(x[:2], out=x[:2])])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_foreign_code_that_writes_to_shared_memory(change, dtype):
    a, b = system()
    memory = compressed_rows.empty(a.nnz, dtype)
    memory[:] = np.asarray(a.data)
    shared = a.with_data(jnp.from_dlpack(memory, copy=False))
    check_solution(shared, b)
    change(memory)
    check_solution(shared, b)


# ---- elements of the inverse ------------------------------------------------------------------------------------------


def patterns():
    """Names and matrices whose factors have very different patterns."""
    rng = np.random.default_rng(0)
    arrow = scipy.sparse.lil_array(scipy.sparse.diags_array(2.0 + rng.random(N)))
    arrow[0], arrow[:, [0]] = 0.1, 0.1
    arrow[0, 0] = N
    yield "grid", laplacian(18)
    yield "unsymmetric", random_matrix()
    cross = scipy.sparse.eye_array(100, 200) + scipy.sparse.random_array((100, 200), density=0.01, rng=rng)
    yield "saddle point", scipy.sparse.block_array([[random_matrix(200), cross.T], [cross, None]])
    yield "diagonal", scipy.sparse.diags_array(1.0 + np.arange(N))
    yield "permutation", scipy.sparse.eye_array(N).tocsr()[rng.permutation(N)]
    yield "arrow", arrow
    yield "triangle", scipy.sparse.triu(random_matrix())
    yield "nearly full", scipy.sparse.csc_array(rng.normal(size=(40, 40)))


@pytest.mark.parametrize("case", list(patterns()), ids=lambda case: case[0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_the_inverse(case, dtype):
    matrix = case[1].tocsr().astype(dtype).tocoo()
    wanted = np.linalg.inv(matrix.toarray().astype(np.promote_types(dtype, np.float64)))
    tolerance = 50 * np.linalg.cond(matrix.toarray()) * np.finfo(dtype).eps * abs(wanted).max()
    factorization = sparse_direct.factorize(matrix.data, *matrix.coords, matrix.shape[0], False)
    first, second = matrix.coords
    recursive = sparse_inverse.inverse_at(factorization.lu, first, second)
    for got in (recursive, factorization._inverse_by_columns(first, second)):
        assert got is not None
        np.testing.assert_allclose(got, wanted[second, first], rtol=0, atol=tolerance)


SINGULAR = {
    "empty column": [[1.0, 0.0], [2.0, 0.0]],
    "two columns in one row": [[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [3.0, 4.0, 5.0]],
    "equal rows": [[1.0, 2.0], [1.0, 2.0]],
    "zeros": [[0.0, 0.0], [0.0, 0.0]],
}


def factorize(a, definite=False):
    matrix = scipy.sparse.coo_array(a)
    return sparse_direct.factorize(matrix.data, *matrix.coords, len(a), definite)


@pytest.mark.parametrize("definite", [False, True])
@pytest.mark.parametrize("case", SINGULAR)
@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_matrices_whatever_the_text_of_the_error(case, dtype, definite, monkeypatch):
    original = scipy.sparse.linalg.splu

    def splu(*args, **kwargs):
        try:
            return original(*args, **kwargs)
        except RuntimeError:
            raise RuntimeError from None

    monkeypatch.setattr(scipy.sparse.linalg, "splu", splu)
    factorization = factorize(np.array(SINGULAR[case], dtype), definite)
    assert factorization.lu is None and not factorization.regular


def test_failures_of_superlu_are_no_singular_matrices(monkeypatch):
    def splu(*args, **kwargs):
        raise RuntimeError("the malloc of a singular machine fails")

    monkeypatch.setattr(scipy.sparse.linalg, "splu", splu)
    with pytest.raises(RuntimeError, match="malloc"):
        factorize(np.array([[1.0, 2.0], [3.0, 4.0]]))


# ---- compiled code ----------------------------------------------------------------------------------------------------


def test_second_derivatives_of_determinants_by_blocks_of_columns(monkeypatch):
    monkeypatch.setattr(sparse_systems, "_NUMBERS", 700)  # three columns at a time
    matrix = random_matrix(40).tocsr().tocoo()
    data, (first, second) = jnp.asarray(matrix.data), map(jnp.asarray, matrix.coords)

    def second_derivative(slogdet):
        return jax.grad(lambda data: jnp.sum(jax.grad(lambda data: slogdet(data)[1])(data) ** 2))(data)

    got = second_derivative(lambda data: sparse_systems.slogdet(data, first, second, 40))
    wanted = second_derivative(lambda data: jnp.linalg.slogdet(jnp.zeros((40, 40)).at[first, second].set(data)))
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("size", [10, 10**6])
def test_host_calls_do_not_wait_for_each_other(size):
    """Large arguments in several threads: copies of them would need threads that are all waiting for copies."""

    def double(x):
        return (2 * x,)

    @jax.jit
    def function(x):
        return host_calls.on_host(double, (jax.ShapeDtypeStruct(x.shape, x.dtype),), x + 1)[0]

    x = jnp.arange(float(size))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: function(x).block_until_ready(), range(16)))
    for result in results:
        np.testing.assert_array_equal(result, 2 * np.arange(float(size)) + 2)


def test_by_copies(monkeypatch):
    """The way of platforms other than the CPU, taken on the CPU."""
    monkeypatch.setattr(host_calls.lax, "platform_dependent", lambda *arrays, cpu, default: default(*arrays))
    matrix = random_matrix(40).tocsr().tocoo()
    data, (first, second) = jnp.asarray(matrix.data), map(jnp.asarray, matrix.coords)
    b, dense = jnp.linspace(0, 1, 80).reshape(40, 2), matrix.toarray()

    def both(data, b):
        return sparse_systems.solve(data, first, second, b)[0], sparse_systems.slogdet(data, first, second, 40)[1]

    x, logabsdet = jax.jit(both)(data, b)
    np.testing.assert_allclose(x, np.linalg.solve(dense, b), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(logabsdet, np.linalg.slogdet(dense)[1], rtol=1e-12)
    x, logabsdet = jax.jit(jax.vmap(jax.vmap(both, (0, None)), (None, 0)))(
        jnp.stack([data, 2 * data]), jnp.stack([b] * 3)
    )
    assert x.shape == (3, 2, 40, 2)
    np.testing.assert_allclose(x[2, 1], np.linalg.solve(2 * dense, b), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(logabsdet[1], np.linalg.slogdet(np.stack([dense, 2 * dense]))[1], rtol=1e-12)
    gradient = jax.grad(lambda data: sparse_systems.slogdet(data, first, second, 40)[1])(data)
    np.testing.assert_allclose(gradient, np.linalg.inv(dense)[second, first], rtol=1e-10, atol=1e-14)
