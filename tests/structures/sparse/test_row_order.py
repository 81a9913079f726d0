"""The sparse forms of bands, periodic bands and blocks, and rolled and reversed rows, against NumPy and SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from compiled_programs import instructions
from support import dense

import structarrays as sa
from structarrays._structures.sparse.sparse_joins import sparse_with_values, to_sparse

BANDS = {
    "tridiagonal": ((3000, 3000), (-1, 0, 1)),
    "one side": ((3000, 3000), (0, 1, 5)),
    "corners": ((3000, 3000), (-2999, -1, 0, 1, 2999)),
    "grid": ((2500, 2500), (-50, -1, 0, 1, 50)),
    "wide": ((700, 700), tuple(range(-20, 21))),
    "far apart": ((3000, 3000), tuple(range(-2900, 2901, 100))),
    "tall": ((4000, 2000), (-3000, -2000, -1, 0, 3)),
    "flat": ((2000, 4000), (-3, 0, 1, 2000, 3999)),
    "small": ((4, 5), (-3, 0, 4)),
    "one row": ((1, 5), (0, 4)),
    "a single diagonal": ((3000, 3000), (7,)),
}
RINGS = {
    "ring": (3000, (-1, 0, 1)),
    "half": (10, (-4, 0, 5)),
    "shifted": (3000, (100, 101, 1500)),
    "two": (2, (0, 1)),
    "one": (1, (0,)),
}
BLOCKS = {
    "blocks": [(500, 3, 4)],
    "blocks of several sizes": [(1, 2, 2), (1000, 2, 3), (1, 1, 1), (1, 3, 5)],
    "blocks without rows": [(5, 0, 3), (2, 2, 2), (5, 3, 0)],
}


def band(name, rng, dtype=float, batch=()):
    (m, n), offsets = BANDS[name]
    lengths = (min(m, n, m + k, n - k) for k in offsets)
    return sa.Banded([rng.normal(size=(*batch, length)).astype(dtype) for length in lengths], offsets, (m, n))


def ring(name, rng):
    n, offsets = RINGS[name]
    return sa.PeriodicBanded(rng.normal(size=(len(offsets), n)), offsets)


def tridiagonal_blocks(rng, count, size):
    return sa.block_tridiagonal(*(rng.normal(size=(k, size, size)) for k in (count - 1, count, count - 1)))


MATRICES = {
    **{name: band for name in BANDS},
    **{name: ring for name in RINGS},
    **{
        name: lambda name, rng: sa.BlockDiagonal([block for s in BLOCKS[name] for block in rng.normal(size=s)])
        for name in BLOCKS
    },
    "block tridiagonal": lambda _, rng: tridiagonal_blocks(rng, 400, 3),
    "small block tridiagonal": lambda _, rng: tridiagonal_blocks(rng, 8, 2),
}


def is_canonical(x):
    rows, columns = (np.asarray(c).astype(np.int64) for c in x.coords)
    keys = rows * x.shape[1] + columns
    return bool(np.all(np.diff(keys) > 0)) and x.order == (0, 1)


@pytest.mark.slow
@pytest.mark.each_parameter
@pytest.mark.parametrize("convert", [jax.jit(to_sparse), sparse_with_values], ids=["compiled", "with values"])
@pytest.mark.parametrize("name", MATRICES)
def test_sparse_forms_are_sorted_by_rows(name, convert, rng):
    x = MATRICES[name](name, rng)
    result = convert(x)
    entries = sum(e.size for e in x.entries)
    assert type(result) is sa.Sparse and result.nnz == entries and not result.padded
    if entries:
        assert is_canonical(result)
    found = scipy.sparse.coo_array((result.data, [np.asarray(c) for c in result.coords]), result.shape)
    assert np.array_equal(found.toarray(), dense(x))


@pytest.mark.parametrize("convert", [jax.jit(to_sparse), sparse_with_values], ids=["compiled", "with values"])
def test_a_band_without_diagonals(convert):
    for n in (5, 5000):
        assert convert(sa.Banded([], [], (n, n))).nnz == 0


@pytest.mark.costly
@pytest.mark.parametrize("name", ["tridiagonal", "wide", "far apart"])
def test_sparse_forms_of_batches_and_their_derivatives(name, rng):
    x = band(name, rng, batch=(2,))
    weights = jnp.asarray(rng.normal(size=x.batch_shape + (sum(d.shape[-1] for d in x.diagonals),)))

    def number(x):
        return jnp.sum(weights * to_sparse(x).data)

    gradient = jax.jit(jax.grad(number))(x)
    known = jax.jit(to_sparse)(x)
    at_weights = known.rebuild((weights,), None)
    for k, d in zip(x.offsets, gradient.diagonals, strict=True):
        rows = np.arange(d.shape[-1]) + max(0, -k)
        for b in np.ndindex(*x.batch_shape):
            matrix = scipy.sparse.coo_array(
                (at_weights.data[b], [np.asarray(c[b]) for c in known.coords]), x.shape[-2:]
            )
            assert np.array_equal(matrix.tocsr()[rows, rows + k], d[b])


@pytest.mark.parametrize(
    "name", ["tridiagonal", "corners", "grid", "wide", "ring", "shifted", "blocks", "block tridiagonal"]
)
def test_a_sparse_form_is_not_sorted(name, rng):
    program = jax.jit(to_sparse).lower(MATRICES[name](name, rng)).compile().as_text()
    assert instructions(program)["sort"] == 0


@pytest.mark.each_parameter
@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
@pytest.mark.parametrize("name", ["small", "half", "small block tridiagonal"])
def test_rolled_sparse_forms(name, axis, rng):
    x, of_jit = MATRICES[name](name, rng), jax.jit(sa.roll, static_argnames="axis")
    for shift in (0, 1, -1, 3, -12, 25):
        expected = np.roll(dense(x), shift, axis)
        for function in (sa.roll, of_jit):
            result = function(x, shift, axis=axis)
            assert np.array_equal(dense(result), expected) and (type(result) is not sa.Sparse or is_canonical(result))


def test_rolled_rows_of_sparse_arrays(rng):
    x = sa.Sparse.from_scipy(scipy.sparse.random_array((40, 30), density=0.05, rng=rng))
    for y in (x, x.mT, x + 2.0, sa.stack([x, 2 * x])):
        for shift in (0, 1, -7, 40, 77):
            for axis in range(y.ndim):
                assert np.array_equal(dense(sa.roll(y, shift, axis=axis)), np.roll(dense(y), shift, axis))


@pytest.mark.parametrize("batch", [(), (2,), (0,)])
@pytest.mark.parametrize("n", [0, 1, 6])
def test_rolled_and_reversed_permutations_are_permutations(n, batch, rng):
    p = np.stack([rng.permutation(n) for _ in range(2)])[: batch[0]] if batch else rng.permutation(n)
    x = sa.Permutation(p.astype(int).reshape(*batch, n), dtype=float)
    for axis in (*range(x.ndim), (x.ndim - 2, x.ndim - 1)):
        for function in (sa.flip, jax.jit(sa.flip, static_argnames="axis")):
            result = function(x, axis=axis)
            assert type(result) is sa.Permutation and np.array_equal(dense(result), np.flip(dense(x), axis))
        for shift in (0, 1, -1, 8):
            result = sa.roll(x, shift, axis=axis)
            assert type(result) is sa.Permutation and np.array_equal(dense(result), np.roll(dense(x), shift, axis))
    assert np.array_equal(dense(sa.roll(x, 3)), np.roll(dense(x), 3))


def test_rolled_coordinates_near_the_largest_integer():
    """The sum of a coordinate and a shift does not fit into 32 bits."""
    n = 2**31 - 2
    x = sa.Sparse([1.0, 2.0, 3.0], ([0, 5, n - 2], [n - 1, 2, 7]), (n, n))
    for y in (sa.roll(x, n - 3, axis=0), sa.roll(x.mT, n - 3, axis=1).mT, sa.roll(x.mT, n - 3, axis=-1).mT):
        rows, columns = np.asarray(y.coords[0]).tolist(), np.asarray(y.coords[1]).tolist()
        expected = {((i + n - 3) % n, j): v for i, j, v in ((0, n - 1, 1.0), (5, 2, 2.0), (n - 2, 7, 3.0))}
        assert dict(zip(zip(rows, columns, strict=True), np.asarray(y.data).tolist(), strict=True)) == expected
    shift = np.int32(n - 3)  # as all integers without x64
    for y, places in ((x, [0, 5, n - 2]), (x.mT, [n - 1, 2, 7])):
        rows = sa.roll(y, shift, axis=0).coords[0]
        assert sorted(np.asarray(rows).tolist()) == sorted((i + n - 3) % n for i in places)
