"""Standardised data, ``(X - mean) / std``: what most code does with a matrix first, and no structure may be lost by it."""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa

LARGE = (100_000, 3000)


# ---- each structure, and its dense form from its parameters in jax.numpy ----------------------------------------------------------


def sparse(rng, rows, columns):
    per_row = 10 if rows > 1000 else 3
    i = np.repeat(np.arange(rows), per_row)
    # Every column has entries, and those of a row differ.
    j = (np.arange(rows)[:, None] * 7 + np.arange(per_row) * (columns // per_row)).ravel() % columns

    def dense(data):
        return jnp.zeros((rows, columns)).at[i, j].set(data)

    return (rng.normal(size=i.size),), lambda data: sa.Sparse(data, (i, j), (rows, columns)), dense


def low_rank(rng, rows, columns):
    rank = 20 if rows > 1000 else 4
    return (
        (rng.normal(size=(rows, rank)), rng.normal(size=(columns, rank))),
        sa.LowRank,
        lambda u, v: u @ v.T,
    )


def kronecker(rng, rows, columns):
    a, b = ((1000, 50), (100, 60)) if rows > 1000 else ((rows // 10, columns // 6), (10, 6))
    assert (a[0] * b[0], a[1] * b[1]) == (rows, columns)
    return (rng.normal(size=a), rng.normal(size=b)), sa.Kronecker, jnp.kron


def banded(rng, rows, columns):
    offsets = (columns - rows, -(rows // 2), -1, 0, 1)
    starts = [(max(0, -k), max(0, k)) for k in offsets]
    lengths = [min(rows - i, columns - j) for i, j in starts]

    def dense(*diagonals):
        x = jnp.zeros((rows, columns))
        for d, (i, j), n in zip(diagonals, starts, lengths, strict=True):
            x = x.at[i + np.arange(n), j + np.arange(n)].set(d)
        return x

    def make(*diagonals):
        return sa.Banded(diagonals, offsets, (rows, columns))

    return tuple(rng.normal(size=n) for n in lengths), make, dense


def toeplitz(rng, rows, columns):
    def dense(c, r):
        offsets = jnp.arange(columns) - jnp.arange(rows)[:, None]
        return jnp.concatenate([c[::-1], r[1:]])[offsets + rows - 1]

    c, r = rng.normal(size=rows), rng.normal(size=columns)
    r[0] = c[0]
    return (c, r), sa.Toeplitz, dense


KINDS = {"sparse": sparse, "low rank": low_rank, "kronecker": kronecker, "banded": banded, "toeplitz": toeplitz}


def standardised(x, xp):
    return (x - xp.mean(x, axis=0)) / xp.std(x, axis=0)


def steps(x, w, y, xp):
    z = standardised(x, xp)
    return {
        "mean": xp.mean(x, axis=0),
        "std": xp.std(x, axis=0),
        "z": z,
        "square": z**2,
        "sum of squares": xp.sum(z**2),
        "of columns": xp.sum(z**2, axis=0),
        "of rows": xp.sum(z**2, axis=1),
        "sum": xp.sum(z),
        "times": z @ w,
        "transposed": z.mT @ y,
        "its mean": xp.mean(z, axis=0),
        "its variance": xp.var(z, axis=0),
        "mean of squares": xp.mean(z**2, axis=(0, 1), keepdims=True),
        "square times": (z**2) @ w,
        "square transposed": (z**2).mT @ y,
    }


def values(x):
    """The elements, asked for by name: no densification."""
    return np.asarray(x.to_jax())


# ---- values, against NumPy ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("kind", KINDS)
def test_values(kind, jit, rng):
    parameters, make, dense = KINDS[kind](rng, 200, 30)
    x, a = make(*parameters), np.asarray(dense(*parameters))
    w, y = rng.normal(size=(30, 4)), rng.normal(size=(200, 4))
    with sa.densify("error"):
        got = (jax.jit(steps, static_argnums=3) if jit else steps)(x, sa.asarray(w), sa.asarray(y), sa)
    want = steps(a, w, y, np)
    for name in want:
        np.testing.assert_allclose(values(got[name]), want[name], atol=1e-10, err_msg=name)
    for name in ("z", "square"):
        assert not isinstance(got[name], sa.Dense)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_by_a_mask(kind, rng):
    parameters, make, dense = KINDS[kind](rng, 200, 30)
    x, a = make(*parameters), np.asarray(dense(*parameters))
    w, z = rng.normal(size=(30, 4)), standardised(a, np)
    mask, places = rng.random(200) < 0.6, rng.integers(-200, 200, 150)
    with sa.densify("error"):
        y = standardised(x, sa)
        for key in (mask, places):
            rows = y[key]
            assert not isinstance(rows, sa.Dense)
            np.testing.assert_allclose(values(rows), z[key], atol=1e-12)
            np.testing.assert_allclose(values(rows @ w), z[key] @ w, atol=1e-11)
            np.testing.assert_allclose(values(sa.sum(rows, axis=0)), z[key].sum(0), atol=1e-11)
            np.testing.assert_array_equal(values(x[key]), a[key])


def test_rows_of_bands(rng):
    """Rows in any order, more than once, none; of rectangular matrices, with and without a background."""
    for m, n in ((50, 40), (40, 50)):
        parameters, make, dense = banded(rng, m, n) if m > n else (None, None, None)
        x = make(*parameters) if m > n else sa.Banded([np.arange(1.0, 41.0), np.ones(38)], (10, -2), (m, n))
        for y in (x, sa.exp(x)):
            a = np.asarray(y.to_dense())
            for places in ([], [3], [m - 1, 0, 0, -1], rng.permutation(m)):
                rows = y[np.asarray(places, int)]
                assert type(rows) is sa.Sparse
                np.testing.assert_array_equal(values(rows), a[np.asarray(places, int)])


# ---- derivatives, against those of the dense formula --------------------------------------------------------------------------------


@pytest.mark.costly
@pytest.mark.parametrize("kind", KINDS)
def test_derivatives(kind, rng):
    parameters, make, dense = KINDS[kind](rng, 200, 30)
    weights, w = rng.normal(size=200), rng.normal(size=(30, 3))

    # The sum of the squares of Z is constant; those of rows, and of what is only centred, are not.
    def f(x, xp):
        z, centred = standardised(x, xp), x - xp.mean(x, axis=0)
        return xp.sum(xp.sum(z**2, axis=1) * weights) + xp.sum(centred**2) + xp.sum(xp.sum(z @ w, axis=1) * weights)

    with sa.densify("error"):
        got = jax.grad(lambda p: as_jax(f(make(*p), sa)))(parameters)
    want = jax.grad(lambda p: f(dense(*p), jnp))(parameters)
    for g, v in zip(got, want, strict=True):
        np.testing.assert_allclose(g, v, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_sum_of_squares_is_constant(kind, rng):
    parameters, make, _ = KINDS[kind](rng, 200, 30)
    gradient = jax.grad(lambda p: as_jax(sa.sum(standardised(make(*p), sa) ** 2)))(parameters)
    for g in gradient:
        np.testing.assert_allclose(g, 0, atol=1e-9)


# ---- a repeated centring, and constants ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_products_of_centred_sparse_matrices(rng):
    """Term by term, the product of the sparse ones with as many entries as there are."""
    parameters, make, of_parameters = sparse(rng, 300, 40)
    x, a = make(*parameters), np.asarray(of_parameters(*parameters))
    z, centred = standardised(x, sa), standardised(a, np)
    assert [type(t) for t in z.terms] == [sa.Sparse, sa.LowRank]
    with sa.densify("error"):
        for got, want in (
            (z.mT @ z, centred.T @ centred),
            (x.mT @ z, a.T @ centred),
            (z.mT @ x, centred.T @ a),
            (z @ z.mT, centred @ centred.T),
        ):
            np.testing.assert_allclose(np.asarray(as_jax(got)), want, atol=1e-12 * np.max(np.abs(want)))
    with pytest.raises(ValueError, match="matmul"):
        z @ z
    inside = jax.jit(lambda z: as_jax(z.mT @ z))(z)
    np.testing.assert_allclose(inside, centred.T @ centred, atol=1e-11)
    derivative = jax.grad(lambda z: jnp.sum(as_jax(z.mT @ z) ** 2), allow_int=True)(z)
    np.testing.assert_allclose(
        derivative.terms[0].data, (4 * centred @ centred.T @ centred)[tuple(map(np.asarray, x.coords))], rtol=1e-9
    )


def test_rows_and_constants_stay_one_row(rng):
    (data,), make, dense = sparse(rng, 200, 30)
    a = np.asarray(dense(data))
    x = make(data)
    for _ in range(3):
        x = x - sa.mean(x, axis=0) + 0.5
        a = a - a.mean(0) + 0.5
    assert [type(t) for t in x.terms] == [sa.Sparse, sa.LowRank]
    assert x.terms[1].rank == 1
    assert x.nbytes <= make(data).nbytes + 8 * (30 + 2)
    np.testing.assert_allclose(values(x), a, atol=1e-12)
    columns = make(data) - sa.mean(make(data), axis=1, keepdims=True) - np.arange(200.0)[:, None]
    assert columns.terms[1].rank == 1
    a = np.asarray(dense(data))
    np.testing.assert_allclose(values(columns), a - a.mean(1, keepdims=True) - np.arange(200.0)[:, None], atol=1e-12)


def test_batches_and_vmap(rng):
    data = rng.normal(size=(3, 60, 4)), rng.normal(size=(3, 80, 4))
    a = data[0] @ np.swapaxes(data[1], 1, 2)
    z = (a - a.mean(1, keepdims=True)) / a.std(1, keepdims=True)
    x = sa.LowRank(*data)
    with sa.densify("error"):
        y = (x - sa.mean(x, axis=1, keepdims=True)) / sa.std(x, axis=1, keepdims=True)
        np.testing.assert_allclose(values(y), z, atol=1e-12)
        np.testing.assert_allclose(values(sa.sum(y**2, axis=2)), (z**2).sum(2), atol=1e-11)
        mapped = jax.vmap(lambda x: sa.sum(standardised(x, sa) ** 2, axis=1))(x)
        np.testing.assert_allclose(values(mapped), (z**2).sum(2), atol=1e-11)


# ---- at full size: nothing of 100,000 × 3000 -------------------------------------------------------------------------------------------


def largest_array(compiled) -> int:
    """The number of elements of the largest array of compiled code, in what is fused, too."""
    shapes = re.findall(r"\b(?:f64|f32|s64|s32|u32|u8|pred|c128)\[([\d,]+)\]", compiled.as_text())
    return max(math.prod(map(int, shape.split(","))) for shape in shapes)


def bytes_of(tree) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


@pytest.mark.costly
@pytest.mark.parametrize("kind", KINDS)
def test_full_size(kind, rng):
    parameters, make, _ = KINDS[kind](rng, *LARGE)
    x = make(*parameters)
    w, y = (sa.asarray(rng.normal(size=(n, 20))) for n in LARGE[::-1])
    mask = rng.random(LARGE[0]) < 0.3

    def pipeline(x, w, y):
        results = steps(x, w, y, sa)
        return {name: results[name] for name in results if name not in ("square times", "square transposed")}

    with sa.densify("error"), sa.record() as log:
        compiled = jax.jit(pipeline).lower(x, w, y).compile()
        results = compiled(x, w, y)
        z = standardised(x, sa)
        rows = z[mask]
        square = z**2
    assert not log.densifications
    assert largest_array(compiled) < math.prod(LARGE) // 50
    memory = compiled.memory_analysis()
    held = bytes_of((x, w, y)) + bytes_of(results)
    assert memory.temp_size_in_bytes + memory.output_size_in_bytes <= 4 * held
    for eager in (rows, square, z):
        assert bytes_of(eager) <= 4 * bytes_of((x, z))
    np.testing.assert_allclose(values(results["of columns"]), LARGE[0], rtol=1e-9)
    np.testing.assert_allclose(values(results["sum of squares"]), math.prod(LARGE), rtol=1e-9)
    np.testing.assert_allclose(values(results["its variance"]), 1, rtol=1e-9)
    np.testing.assert_allclose(values(results["its mean"]), 0, atol=1e-9)
    np.testing.assert_allclose(values(rows @ w), values(results["times"])[mask], atol=1e-9)


# ---- the arithmetic of compiled programs ----------------------------------------------------------------------------

SUMS = {
    "sum": sa.sum,
    "sums of columns": lambda z: sa.sum(z, axis=0),
    "sum of squares": lambda z: sa.sum(z**2),
    "sums of squares of columns": lambda z: sa.sum(z**2, axis=0),
    "mean": sa.mean,
    "variances of columns": lambda z: sa.var(z, axis=0),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_over_rows_add_up_the_factors_first(rng, name):
    """Columns of ``A ⊗ B`` have the sums of the columns of both factors: a few operations for each parameter."""
    parameters, make, _ = kronecker(rng, *LARGE)
    x = make(*parameters)
    z = (x - sa.mean(x, axis=0)) / sa.std(x, axis=0)
    cost = jax.jit(SUMS[name]).lower(z).compile().cost_analysis()
    assert cost["flops"] <= 6 * sum(leaf.size for leaf in jax.tree.leaves(z))
