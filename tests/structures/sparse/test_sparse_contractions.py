"""`tensordot` over one axis of sparse matrices: the eager result has the pattern of the matrix product."""

import jax
import numpy as np
import pytest
import scipy.sparse as sp
from support import as_jax

import structarrays as sa

AXES = (1, ((1,), (0,)), ((0,), (0,)), ((1,), (1,)), ((0,), (1,)), ((-1,), (-2,)))
SIZE = 300


def sparse(matrix):
    matrix = matrix.tocoo()
    return sa.Sparse(matrix.data, matrix.coords, matrix.shape)


def random(rng, count=SIZE):
    return sp.random_array((SIZE, SIZE), density=count / SIZE**2, rng=rng, format="csr")


def others(rng):
    """The second factor: an array of this library, and the same matrix for SciPy."""
    order = rng.permutation(SIZE)
    lower, main, upper = rng.normal(size=SIZE - 1), rng.normal(size=SIZE), rng.normal(size=SIZE - 1)
    matrix = random(rng)
    return (
        (sparse(matrix), matrix),
        (sa.Diagonal(main), sp.diags_array(main)),
        (sa.tridiagonal(lower, main, upper), sp.diags_array([lower, main, upper], offsets=[-1, 0, 1])),
        (sa.Permutation(order, dtype="float64"), sp.csr_array((np.ones(SIZE), (np.arange(SIZE), order)))),
    )


def along(matrix, axis, wanted):
    return matrix if axis % 2 == wanted else matrix.T


@pytest.mark.parametrize("tensordot", [sa.tensordot, sa.linalg.tensordot, np.tensordot], ids=["sa", "linalg", "numpy"])
def test_eager_pattern(tensordot, rng):
    first = random(rng)
    ours = sparse(first)
    for (second, seconds), axes in ((o, a) for o in others(rng) for a in AXES):
        (axis1,), (axis2,) = ((1,), (0,)) if axes == 1 else axes
        with sa.densify("error"):
            result = tensordot(ours, second, axes=axes)
            exchanged = tensordot(second, ours, axes=(axis2, axis1) if axes != 1 else 1)
        expected = sp.csr_array(along(first, axis1, 1) @ along(seconds, axis2, 0))
        assert type(result) is sa.Sparse and result.nnz == expected.nnz
        np.testing.assert_allclose(np.asarray(result.to_dense()), expected.toarray(), rtol=1e-12, atol=1e-14)
        wanted = seconds @ first if axes == 1 else along(seconds, axis2, 1) @ along(first, axis1, 0)
        assert type(exchanged) is sa.Sparse and exchanged.nnz == sp.csr_array(wanted).nnz
        np.testing.assert_allclose(np.asarray(exchanged.to_dense()), wanted.toarray(), rtol=1e-12, atol=1e-14)


def test_memory_follows_from_the_result(rng):
    """A compiled product of so many entries would be refused."""
    n, count = 300_000, 90_000
    rows, columns = rng.permutation(n)[:count], rng.permutation(n)[:count]
    matrix = sp.csr_array((rng.normal(size=count), (rows, columns)), (n, n))
    with sa.densify("error"):
        result = sa.tensordot(sparse(matrix), sparse(matrix), axes=1)
    expected = matrix @ matrix
    assert result.nnz == expected.nnz
    np.testing.assert_allclose(np.asarray(sa.sum(result)), expected.sum(), rtol=1e-10)


@pytest.mark.parametrize("axes", [1, ((0,), (0,))])
def test_derivative(axes, rng):
    matrix = random(rng)
    s = sparse(matrix)

    def loss(data):
        x = s.rebuild((data,), None)
        return as_jax(sa.sum(sa.tensordot(x, x, axes=axes) ** 2))

    with sa.densify("error"):
        gradient = jax.grad(loss)(s.data)
    if axes == 1:
        product = 2 * (matrix @ matrix)
        expected = product @ matrix.T + matrix.T @ product
    else:
        expected = 4 * matrix @ (matrix.T @ matrix)
    at = tuple(np.asarray(c) for c in s.coords)
    np.testing.assert_allclose(np.asarray(gradient), expected.toarray()[at], rtol=1e-10)


def test_compiled_and_eager_agree(rng):
    s = sparse(random(rng, 40))
    for axes in AXES:
        eager, compiled = sa.tensordot(s, s, axes=axes), jax.jit(lambda x, axes=axes: sa.tensordot(x, x, axes=axes))(s)
        np.testing.assert_allclose(np.asarray(eager.to_dense()), np.asarray(compiled.to_dense()), rtol=1e-13)


def test_errors_stay(rng):
    s = sparse(random(rng))
    with pytest.raises(TypeError, match="tensordot: x1"):
        sa.tensordot(s > 0, s > 0, axes=1)
    with pytest.raises(ValueError, match="tensordot: contracted axes must have the same length"):
        sa.tensordot(s, sa.eye(3), axes=1)
    with pytest.raises(np.exceptions.AxisError):
        sa.tensordot(s, s, axes=((5,), (0,)))


SHAPES = {
    "cube and matrix": ((7, 8, 9), (9, 6), 1),
    "matrix and cube": ((6, 7), (7, 8, 9), 1),
    "cubes, two axes": ((7, 8, 9), (8, 9, 5), 2),
    "cubes, chosen axes": ((7, 8, 9), (9, 5, 7), ((2, 0), (0, 2))),
    "cubes, one axis": ((7, 8, 9), (5, 8, 6), ((1,), (1,))),
    "four and two axes": ((3, 4, 5, 6), (6, 4), ((1, 3), (1, 0))),
    "negative axes": ((7, 8, 9), (9, 6), ((-1,), (-2,))),
}


@pytest.mark.parametrize("case", SHAPES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64"])
def test_more_dimensions(case, dtype, rng):
    *shapes, axes = SHAPES[case]
    dense = [
        (rng.integers(1, 5, shape) * (rng.random(shape) < 0.1)).astype(dtype) * (1 if dtype != "complex128" else 1 + 2j)
        for shape in shapes
    ]
    x, y = (sa.Sparse(a[np.nonzero(a)], np.nonzero(a), a.shape) for a in dense)
    expected = np.tensordot(*dense, axes=axes)
    stored = np.tensordot(*((a != 0).astype(int) for a in dense), axes=axes) > 0
    with sa.densify("error"):
        result = sa.tensordot(x, y, axes=axes)
    if expected.ndim > 1:
        assert type(result) is sa.Sparse and result.nnz == stored.sum()
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(result.to_dense()), expected, rtol=1e-6)
    if dtype == "float64":
        gradient = jax.grad(lambda data: as_jax(sa.sum(sa.tensordot(x.with_data(data), y, axes=axes) ** 2)))(x.data)
        other = jax.grad(lambda data: (jax.numpy.tensordot(_put(data, x), dense[1], axes=axes) ** 2).sum())(x.data)
        np.testing.assert_allclose(gradient, other, rtol=1e-9)


def _put(data, x):
    return jax.numpy.zeros(x.shape).at[tuple(x.coords)].set(data)


def test_large_arrays_of_three_dimensions(rng):
    """The dense form of the result has 8·10¹² elements."""
    n, count = 20_000, 60_000
    x = sa.Sparse(rng.normal(size=count), tuple(rng.integers(0, n, count) for _ in range(2)), (n, n))
    cube = sa.Sparse(rng.normal(size=count), tuple(rng.integers(0, n, count) for _ in range(3)), (n, n, n))
    result = sa.tensordot(cube, x, axes=1)
    assert type(result) is sa.Sparse and result.shape == (n, n, n) and result.nnz < 4 * count
