"""Rows and columns at index arrays: all combinations of indices (`numpy.ix_`), constant indices in compiled functions and derivatives."""

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax, dense

import structarrays as sa

N = 24


def structures(rng):
    band = [rng.normal(size=N - abs(k)) for k in (-2, 0, 1)]
    coordinates = rng.integers(0, N, (2, 60))
    return {
        "band": sa.Banded(band, (-2, 0, 1), (N, N)),
        "diagonal": sa.Diagonal(band[1]),
        "stack of bands": sa.Banded([rng.normal(size=(3, N - abs(k))) for k in (-2, 0, 1)], (-2, 0, 1), (N, N)),
        "sparse": sa.Sparse(rng.normal(size=60), tuple(coordinates), (N, N)),
        "sparse by columns": sa.Sparse(rng.normal(size=60), tuple(coordinates), (N, N)).mT,
        "background": sa.exp(sa.Sparse(rng.normal(size=60), tuple(coordinates), (N, N))),
        "three dimensions": sa.Sparse(rng.normal(size=60), (rng.integers(0, 4, 60), *coordinates), (4, N, N)),
        "permutation": sa.Permutation(rng.permutation(N)),
        "blocks": sa.BlockDiagonal(rng.normal(size=(N // 3, 3, 3))),
        "Toeplitz": sa.Toeplitz(*rng.normal(size=(2, N))),
        "Kronecker": sa.Kronecker(rng.normal(size=(4, 4)), rng.normal(size=(6, 6))),
        "low rank": sa.LowRank(*rng.normal(size=(2, N, 2))),
        "sum": sa.Banded(band, (-2, 0, 1), (N, N)) + sa.LowRank(*rng.normal(size=(2, N, 2))),
        "periodic": sa.PeriodicBanded(list(rng.normal(size=(3, N))), (-1, 0, 1)),
        "symmetric": sa.Symmetric(rng.normal(size=(N, N))),
    }


NAMES = list(structures(np.random.default_rng(0)))


def keys(rng, ndim):
    """Keys with repeated, negative, increasing, decreasing and no indices, and what NumPy does not treat as a mesh."""
    few, half = rng.integers(-N, N, 5), np.sort(rng.permutation(N)[: N // 2])
    for i, j in (
        (half, half),
        (few, half[::-1]),
        (rng.permutation(N), rng.permutation(N)),
        (few[:0], few),
        (few[:1], half),
    ):
        yield from ((..., *np.ix_(i, j)), (..., i[:, None], j), (..., None, *np.ix_(i, j)), (..., *np.ix_(i, j), None))
        yield from ((..., i, slice(1, None)), (..., slice(None), j), (..., i[:, None], slice(None, None, 2)))
    yield from (
        (..., few, few),
        (..., few[:, None], few[:, None]),
        (..., few[None, :, None], few),
        (..., few, few[:, None]),
    )
    if ndim == 3:
        yield from (
            np.ix_([2, 0], few, half),
            (0, half[:, None], few),
            ([0, 1], half[:2]),
            (slice(1, None), half[:, None], few),
        )


@pytest.mark.costly
@pytest.mark.parametrize("name", NAMES)
def test_meshes(name, rng):
    x = structures(rng)[name]
    expected = dense(x)
    for number, key in enumerate(keys(rng, x.ndim)):
        functions = [lambda x, key=key: x[key]]
        if number % 3 == 0:
            functions.append(jax.jit(functions[0]))
        for function in functions:
            np.testing.assert_allclose(dense(function(x)), expected[key], rtol=1e-12, atol=1e-14, err_msg=str(key))


SPARSE = ["band", "diagonal", "sparse", "sparse by columns", "periodic", "blocks"]


@pytest.mark.costly
@pytest.mark.parametrize("name", SPARSE)
def test_derivatives_at_constant_indices(name, rng):
    x = structures(rng)[name]
    weights = rng.normal(size=(N // 2, N // 2))
    inside = np.sort(rng.permutation(N)[: N // 2])

    def value(x):
        part = x[np.ix_(inside, inside[::-1])]
        return as_jax(sa.sum(part * weights)) + as_jax(sa.sum(x[inside] @ jnp.ones(N)))

    factor = np.zeros((N, N))
    factor[np.ix_(inside, inside[::-1])] = weights
    factor[inside] += 1
    for gradient in (jax.grad(value, allow_int=True), jax.jit(jax.grad(value, allow_int=True))):
        found = jax.tree.leaves(gradient(x))
        steps = jax.tree.leaves(x)
        change = sum(np.vdot(g, s) for g, s in zip(found, steps, strict=True) if s.dtype.kind == "f")
        np.testing.assert_allclose(change, np.sum(factor * dense(x)), rtol=1e-10)


LARGE = 100_000


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("structure", ["band", "sparse", "assembled"])
def test_interior_of_large_matrices(structure, compiled):
    """Boundary conditions: rows and columns of free unknowns, whose system is solved."""
    n, free = LARGE, np.r_[1 : LARGE // 2, LARGE // 2 + 1 : LARGE - 1]
    band = sa.tridiagonal(-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1))
    rows = np.r_[0:n, 1:n, 0 : n - 1]
    columns = np.r_[0:n, 0 : n - 1, 1:n]
    values = np.r_[2 * np.ones(n), -np.ones(2 * n - 2)]
    functions = {
        "band": (lambda a: a[np.ix_(free, free)] @ jnp.ones(len(free)), band),
        "sparse": (lambda a: a[free][:, free] @ jnp.ones(len(free)), sa.Sparse(values, (rows, columns), (n, n))),
        "assembled": (lambda v: sa.Sparse(v, (rows, columns), (n, n))[free][:, free] @ jnp.ones(len(free)), values),
    }
    function, argument = functions[structure]
    with sa.densify("error"):
        product = np.asarray((jax.jit(function) if compiled else function)(argument))
    expected = np.zeros(len(free))
    expected[[0, LARGE // 2 - 2, LARGE // 2 - 1, -1]] = 1
    np.testing.assert_array_equal(product, expected)


@pytest.mark.parametrize("compiled", [False, True])
def test_meshes_ask_before_they_densify(compiled):
    n = 20_000
    x = sa.Hankel(np.ones(n), np.ones(n))
    places = np.arange(n - 1)

    def read(x):
        return x[0 * places[:, None], places[None]]

    def pairs(x):
        return x[places[:, None, None], places[None, :, None]]

    with sa.densify("error"):
        assert type((jax.jit(read) if compiled else read)(x)) is not sa.Dense
        with pytest.raises(sa.DensifyError):
            (jax.jit(pairs) if compiled else pairs)(x)


def test_a_mesh_with_few_elements_is_dense(rng):
    x = structures(rng)["Kronecker"]
    part = x[np.ix_([0, 3], [1, 5])]
    assert type(part) is sa.Dense
    np.testing.assert_allclose(dense(part), dense(x)[np.ix_([0, 3], [1, 5])])


@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.parametrize("axis", [0, 1])
def test_take_in_compiled_functions(name, axis, rng):
    x = structures(rng)[name]
    places = rng.permutation(N)[:7]
    taken = jax.jit(lambda x: sa.take(x, places, axis=axis))(x)
    assert type(taken) is sa.Sparse
    np.testing.assert_array_equal(dense(taken), np.take(dense(x), places, axis=axis))


def test_a_mesh_of_symbolic_size(rng):
    (n,) = jax.export.symbolic_shape("n", constraints=["n >= 10"])
    places = np.ix_([0, 3], [1, 4, 3])

    def read(d):
        return as_jax(sa.Diagonal(d)[places])

    exported = jax.export.export(jax.jit(read))(jax.ShapeDtypeStruct((n,), float))
    d = rng.normal(size=12)
    np.testing.assert_array_equal(exported.call(d), np.diag(d)[places])
