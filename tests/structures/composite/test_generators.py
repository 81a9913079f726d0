"""`GeneratorArray`, on a semiseparable matrix that is defined here, and nowhere in the library."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax, dense

import structarrays as sa
from structarrays.extend import GeneratorArray, merge_pair, scale
from structarrays.testing import check_structure


def running(decays, x, reverse):
    """``y[i] = decays[i - 1] * (y[i - 1] + x[i - 1])`` along the axis -2, from ``y[0] = 0``; in reverse from the end."""
    decays = jnp.broadcast_to(decays[..., None], (*x.shape[:-2], x.shape[-2] - 1, x.shape[-1]))
    steps = jnp.moveaxis(decays, -2, 0), jnp.moveaxis(x[..., 1:, :] if reverse else x[..., :-1, :], -2, 0)

    def step(y, each):
        y = each[0] * (y + each[1])
        return y, y

    zero = jnp.zeros_like(x[..., 0, :])
    values = jnp.moveaxis(jax.lax.scan(step, zero, steps, reverse=reverse)[1], 0, -2)
    edge = zero[..., None, :]
    return jnp.concatenate([values, edge] if reverse else [edge, values], axis=-2)


class Decaying(GeneratorArray):
    """``x[i, j]`` is a number times the decays from the one place to the other: those below the diagonal, or those above it."""

    __slots__ = ()

    def __new__(cls, below, above, size):
        return cls.make(tuple(map(jnp.asarray, (below, above, size))))

    @staticmethod
    def shape_of(parameters, meta):
        n = parameters[0].shape[-1] + 1
        return (*parameters[0].shape[:-1], n, n)

    def times(self, columns):
        below, above, size = self.parameters
        columns = size[..., None, None] * columns
        return columns + running(below, columns, False) + running(above, columns, True)

    def transposed(self):
        below, above, size = self.parameters
        return Decaying.make((above, below, size))


def draw(numbers, batch, core, requires):
    if core[0] != core[1] or core[0] == 0 or requires or numbers.dtype.kind == "b":
        return None
    return Decaying(numbers((*batch, core[0] - 1)), numbers((*batch, core[0] - 1)), numbers(batch))


def entries(below, above, size):
    """By the definition, in NumPy."""
    n = below.shape[-1] + 1
    a = np.zeros((*below.shape[:-1], n, n), np.result_type(below, above))
    for i, j in itertools.product(range(n), repeat=2):
        a[..., i, j] = np.prod(below[..., j:i] if i >= j else above[..., i:j], axis=-1)
    return a * size[..., None, None]


def both(rng, n, batch=(), dtype=float):
    below, above = (rng.normal(size=(*batch, n - 1)) for _ in range(2))
    if dtype is complex:
        below, above = below + 1j * rng.normal(size=below.shape), above * (1 + 0.5j)
    size = rng.normal(size=batch)
    return Decaying(below, above, size.astype(dtype)), entries(below, above, np.asarray(size))


@pytest.mark.slow
def test_equivalence():
    report = check_structure(Decaying, draw, partners=("Dense", "Diagonal", "LowRank"), modes=["eager", "jit"])
    report.raise_if_wrong()
    assert {"matmul", "matrix_transpose", "add", "conj"} <= set(report.kept)


@pytest.mark.slow
def test_derivatives():
    functions = ["add", "exp", "matmul", "matrix_transpose", "sum", "mean", "linalg.solve", "__getitem__", "concat"]
    check_structure(Decaying, draw, functions=functions, modes=["derivative"]).raise_if_wrong()


@pytest.mark.costly
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("batch", [(), (3,), (2, 0)])
def test_what_follows_from_products_and_transposes(rng, batch, dtype):
    x, a = both(rng, 20, batch, dtype)
    v, rows = rng.normal(size=20), rng.normal(size=(2, 20))
    close = np.testing.assert_allclose
    with sa.densify("error"):
        close(dense(x @ v), a @ v, rtol=1e-12, atol=1e-13)
        close(dense(rows @ x), rows @ a, rtol=1e-12, atol=1e-13)
        close(dense(v @ x), v @ a, rtol=1e-12, atol=1e-13)
        for y, b in (
            (x.mT, np.swapaxes(a, -1, -2)),
            (sa.conj(x), a.conj()),
            (-x, -a),
            (x * 2.5, a * 2.5),
            (x / 2.0, a / 2),
        ):
            assert not isinstance(y, sa.Dense)
            close(dense(y), b, rtol=1e-12)
        d = sa.Diagonal(v)
        for y, b in ((x + d, a + np.diag(v)), (d @ x, v[:, None] * a), (x * v, a * v), (x @ x - x, a @ a - a)):
            assert not isinstance(y, sa.Dense)
            close(dense(y), b, rtol=1e-12, atol=1e-12)
        close(dense(sa.sum(x, axis=-1)), a.sum(-1), rtol=1e-12, atol=1e-12)
        close(dense(sa.sum(x, axis=-2)), a.sum(-2), rtol=1e-12, atol=1e-12)
        close(dense(x[..., 3, :]), a[..., 3, :], rtol=1e-12)
        close(dense(x[..., 2]), a[..., 2], rtol=1e-12)
        close(dense(x[..., 4, 1]), a[..., 4, 1], rtol=1e-12)
        close(dense(sa.linalg.diagonal(x)), np.diagonal(a, axis1=-2, axis2=-1), rtol=1e-12)


def test_batches(rng):
    x, a = both(rng, 4, (3, 2))
    for y, b in (
        (x[1], a[1]),
        (x[:, None], a[:, None]),
        (sa.expand_dims(x, axis=0), a[None]),
        (sa.broadcast_to(x, (5, 3, 2, 4, 4)), np.broadcast_to(a, (5, 3, 2, 4, 4))),
        (sa.reshape(x, (6, 4, 4)), a.reshape(6, 4, 4)),
        (sa.permute_dims(x, (1, 0, 2, 3)), a.transpose(1, 0, 2, 3)),
        (sa.flip(x, axis=0), a[::-1]),
        (sa.stack([x, x]), np.stack([a, a])),
        (sa.concat([x, x], axis=1), np.concatenate([a, a], axis=1)),
    ):
        assert type(y) is Decaying
        np.testing.assert_allclose(dense(y), b, rtol=1e-12)
    summed = jax.vmap(lambda y: y @ jnp.ones(4))(sa.reshape(x, (6, 4, 4)))
    np.testing.assert_allclose(summed, a.reshape(6, 4, 4).sum(-1), rtol=1e-12)


def test_casts(rng):
    x, a = both(rng, 4)
    assert type(sa.astype(x, sa.float32)) is type(sa.astype(x, sa.complex128)) is Decaying
    np.testing.assert_allclose(dense(sa.astype(x, sa.complex128)), a)
    np.testing.assert_array_equal(dense(sa.astype(x, sa.int32)), a.astype(np.int32))
    z, c = both(rng, 4, dtype=complex)
    np.testing.assert_allclose(dense(sa.real(z)), c.real, rtol=1e-12)


def test_no_matrix_is_stored_for_a_million_rows():
    n = 10**6
    x = Decaying(jnp.full(n - 1, 0.5), jnp.full(n - 1, 0.25), 1.0)
    product = jax.jit(lambda x, v: (x + sa.eye(n)) @ v)
    memory = product.lower(x, jnp.ones(n)).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 200 * n
    found = product(x, jnp.ones(n))
    assert abs(float(found[n // 2]) - (2 + 1 + 1 / 3)) < 1e-12


class Repeated(GeneratorArray):
    """A column, repeated: it takes up numbers, and the sum of two is one."""

    __slots__ = ()

    @staticmethod
    def shape_of(parameters, meta):
        return (*parameters[0].shape, meta)

    def times(self, columns):
        return self.parameters[0][..., :, None] * jnp.sum(columns, axis=-2, keepdims=True)

    def transposed(self):
        return sa.LowRank(sa.Fill(1.0, (self.meta, 1)), self.parameters[0][..., :, None])


@scale.kernel(Repeated)
def scale_repeated(x, factor):
    return Repeated.make((as_jax(factor(sa.Dense(x.parameters[0][..., None])))[..., 0],), x.meta)


@merge_pair.kernel(Repeated, Repeated)
def merge_repeated(x, y):
    return Repeated.make((x.parameters[0] + y.parameters[0],), x.meta)


def test_a_class_takes_up_numbers_and_sums_if_it_says_how(rng):
    u, v = rng.normal(size=(2, 12))
    x, y = (Repeated.make((jnp.asarray(column),), 11) for column in (u, v))
    assert type(3.0 * x) is type(-x) is type(x + y) is type(x - 2 * y) is Repeated
    ones = np.ones(11)
    np.testing.assert_allclose(dense(x - 2 * y), np.outer(u - 2 * v, ones), rtol=1e-12)
    np.testing.assert_allclose(dense(x.mT @ x), np.outer(ones, ones) * (u @ u), rtol=1e-12)
