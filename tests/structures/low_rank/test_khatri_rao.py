"""Elementwise products of arrays of low rank, whose factors are not written out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa
from structarrays._numerics.tall import transposed_product
from structarrays._structures.low_rank.khatri_rao import KhatriRao
from structarrays.testing import check_structure
from structarrays.testing.arrays import SAMPLERS

FUNCTIONS = "matmul matrix_transpose multiply sum __getitem__ conj concat linalg.diagonal".split()


def numbers(rng, *shape, dtype="float64"):
    x = rng.normal(size=shape)
    return x + 1j * rng.normal(size=shape) if dtype == "complex128" else x


def pair(rng, dtype="float64", batch=(), ranks=(4, 3)):
    """Two arrays of low rank, and their dense forms."""
    parts = [[numbers(rng, *batch, n, r, dtype=dtype) for n in (70, 60)] for r in ranks]
    return [(sa.LowRank(u, v), u @ np.swapaxes(v, -1, -2)) for u, v in parts]


def values(x):
    return np.asarray(x.to_jax())


def close(got, want):
    np.testing.assert_allclose(values(got), want, rtol=1e-10, atol=1e-10)


@pytest.mark.costly
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_products_sums_and_parts(dtype, batch, rng):
    (x, a), (y, b) = pair(rng, dtype, batch)
    c = a * b
    w, t = numbers(rng, 60, 3, dtype=dtype), numbers(rng, 70, 3, dtype=dtype)
    with sa.densify("error"):
        z = x * y
        assert type(z) is sa.LowRank and type(z.u) is type(z.v) is KhatriRao and z.rank == 12
        assert z.nbytes < 1.01 * (x.nbytes + y.nbytes)
        close(z, c)
        for columns in (1, 3):
            close(z @ w[:, :columns], c @ w[:, :columns])
            close(z.mT @ t[:, :columns], np.swapaxes(c, -1, -2) @ t[:, :columns])
            close(sa.asarray(t[:, :columns].T) @ z, t[:, :columns].T @ c)
        close(z @ w[:, 0], c @ w[:, 0])
        close(z.mT, np.swapaxes(c, -1, -2))
        for axis in (-1, -2, (-2, -1)):
            close(sa.sum(z, axis=axis), c.sum(axis))
            close(sa.mean(z, axis=axis, keepdims=True), c.mean(axis, keepdims=True))
            if dtype == "float64":
                close(sa.var(z, axis=axis), c.var(axis))
        close(2 * z / 3, 2 * c / 3)
        close(sa.conj(z), c.conj())
        close(sa.real(z), c.real)
        close(sa.imag(z) if dtype == "complex128" else z - z, c.imag)
        close(z[..., 3:60:2, :], c[..., 3:60:2, :])
        close(z[..., :, [5, 5, -1]], c[..., :, [5, 5, -1]])
        close(sa.linalg.diagonal(z, offset=4), np.diagonal(c, 4, -2, -1))
        close(z[..., 7, 9], c[..., 7, 9])
        close(sa.linalg.matrix_norm(z), np.linalg.norm(c, axis=(-2, -1)))
        close(z - sa.mean(z, axis=-2, keepdims=True), c - c.mean(-2, keepdims=True))


def test_what_is_small_is_written_out(rng):
    (x, a), (y, b) = pair(rng, ranks=(2, 2))
    for z, c, rank in ((x * y, a * b, 4), (x**2, a**2, 3), (sa.square(x), a**2, 3)):
        assert type(z.u) is sa.Dense and z.rank == rank
        np.testing.assert_allclose(values(z), c, atol=1e-12)


def test_powers_and_sums_of_powers(rng):
    ((x, a), _) = pair(rng, ranks=(3, 3))
    with sa.densify("error"):
        z = (x + 1.0) ** 2
        np.testing.assert_allclose(values(z), (a + 1) ** 2, atol=1e-11)
        centred = z - sa.mean(z, axis=0)
        np.testing.assert_allclose(values(centred), (a + 1) ** 2 - ((a + 1) ** 2).mean(0), atol=1e-11)
    x, a = sa.LowRank(numbers(rng, 400, 3), numbers(rng, 300, 3)), None
    a = values(x)
    with sa.densify("error"):
        np.testing.assert_allclose(values(sa.sum(x**3, axis=0)), (a**3).sum(0), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_derivatives_and_transforms(rng):
    u, v = numbers(rng, 70, 4), numbers(rng, 60, 4)
    w = numbers(rng, 60, 2)

    def ours(u, v):
        z = sa.LowRank(u, v) ** 2
        return as_jax(sa.sum((z @ w) ** 3) + sa.sum(sa.sum(z, axis=0) ** 2))

    def dense(u, v):
        z = (u @ v.T) ** 2
        return jnp.sum((z @ w) ** 3) + jnp.sum(jnp.sum(z, axis=0) ** 2)

    for got, want in zip(jax.jit(jax.grad(ours, (0, 1)))(u, v), jax.grad(dense, (0, 1))(u, v), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9)
    _, got = jax.jvp(ours, (u, v), (u, u[:60]))
    _, want = jax.jvp(dense, (u, v), (u, u[:60]))
    np.testing.assert_allclose(got, want, rtol=1e-9)
    many = numbers(rng, 3, 70, 4)
    got = jax.vmap(lambda u: ours(u, v))(many)
    np.testing.assert_allclose(got, [dense(each, v) for each in many], rtol=1e-10)


def test_a_product_of_two_columns_of_ranks_takes_no_memory_of_both():
    """Neither the factors written out (3.5 GB here) nor anything near it."""
    u, v = jnp.ones((10**6, 21)), jnp.ones((10**4, 21))

    def sums(u, v):
        z = sa.LowRank(u, v) ** 2
        return sa.sum(z), sa.sum(z, axis=0), sa.sum(z, axis=1)

    memory = jax.jit(sums).lower(u, v).compile().memory_analysis()
    assert memory.temp_size_in_bytes <= 1.1 * u.nbytes


def test_systems_with_such_a_term(rng):
    x, y = (
        sa.LowRank(numbers(rng, 200, 4) / 50, numbers(rng, 200, 4)),
        sa.LowRank(numbers(rng, 200, 1) / 50, numbers(rng, 200, 1)),
    )
    d, b = rng.uniform(1, 2, 200), numbers(rng, 200)
    with sa.densify("error"):
        a = sa.Diagonal(d) + x**2 + y + numbers(rng, 200) / 50
        assert [type(t) for t in a.terms] == [sa.Diagonal, sa.LowRank, sa.LowRank]
        got, (sign, log) = sa.linalg.solve(a, sa.asarray(b)), sa.linalg.slogdet(a)
        singular_values = sa.linalg.svdvals(x**2 + y)
    matrix = values(a)
    np.testing.assert_allclose(values(got), np.linalg.solve(matrix, b), rtol=1e-9)
    np.testing.assert_allclose([float(sign), float(log)], np.linalg.slogdet(matrix), rtol=1e-10)
    want = np.linalg.svd(values(x**2 + y), compute_uv=False)
    np.testing.assert_allclose(values(singular_values), want, atol=1e-12)


@pytest.mark.costly
@pytest.mark.slow
@pytest.mark.parametrize("transposed", [False, True])
def test_the_law(transposed):
    def drawn(draw, batch, core, requires):
        (rows, columns), width = core[::-1] if transposed else core, 2
        if requires or columns % width or draw.dtype.kind == "b":
            return None
        parts = draw((*batch, rows, width)), draw((*batch, rows, columns // width))
        return KhatriRao.make(tuple(map(sa.asarray, parts)), transposed)

    try:
        report = check_structure(KhatriRao, drawn, functions=FUNCTIONS, modes=("jit",) if transposed else ("eager",))
    finally:
        del SAMPLERS["KhatriRao"]
    report.raise_if_wrong()
    assert sum(f.checks for f in report.findings.values()) > 50


@pytest.mark.parametrize("columns", [1, 3])
def test_products_of_the_transpose_keep_the_dtype_of_integers(columns):
    v, x, weights = np.ones((5, 2), "int16"), np.ones((5, columns), "int16"), np.arange(5, dtype="int16")
    product = transposed_product(v, x, weights)
    np.testing.assert_array_equal(product, np.full((2, columns), 10))
    assert product.dtype == "int16"
