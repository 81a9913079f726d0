"""Kronecker products and sums against NumPy, SciPy and derivatives of dense formulas."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa
from structarrays.testing import sample

la = sa.linalg
kron = functools.partial(functools.reduce, np.kron)

SHAPES = [
    ((3, 3), (4, 4)),
    ((3, 4), (5, 2)),
    ((2, 3), (1, 4), (4, 2)),
    ((5, 1), (1, 5)),
    ((1, 1), (3, 3)),
    ((3, 0), (2, 2)),
]
DTYPES = ["float32", "float64", "complex64", "complex128", "int32"]


def numbers(shape, dtype="float64", seed=0):
    rng = np.random.default_rng([seed, *shape])
    values = rng.normal(size=shape)
    if np.dtype(dtype).kind == "i":
        return np.round(3 * values).astype(dtype)
    return (values + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def factors(shapes, dtype="float64", batch=()):
    return [numbers((*batch, *s), dtype, i) for i, s in enumerate(shapes)]


def dense_kron(matrices):
    """NumPy's product of each matrix of a stack."""
    matrices = [np.asarray(m) for m in matrices]
    batch = np.broadcast_shapes(*(m.shape[:-2] for m in matrices))
    if not batch:
        return kron(matrices)
    wide = [np.broadcast_to(m, batch + m.shape[-2:]) for m in matrices]
    return np.stack([dense_kron([w[i] for w in wide]) for i in range(batch[0])])


def dense_kron_sum(matrices):
    matrices = [np.asarray(m) for m in matrices]
    eyes = [np.eye(m.shape[-1], dtype=m.dtype) for m in matrices]
    return sum(dense_kron([*eyes[:i], m, *eyes[i + 1 :]]) for i, m in enumerate(matrices))


def close(actual, expected, tolerance=None):
    expected = np.asarray(expected)
    actual = np.asarray(actual.to_dense() if isinstance(actual, sa.Array) else actual)
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    if expected.dtype.kind not in "fc":
        return np.testing.assert_array_equal(actual, expected)
    size = np.max(np.abs(expected), initial=1)
    tolerance = tolerance or 500 * np.finfo(expected.dtype).eps
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * size)


def hermitian(n, dtype="float64", seed=0, batch=()):
    a = numbers((*batch, n, n), dtype, seed)
    return ((a + a.swapaxes(-1, -2).conj()) / 2).astype(dtype)


def definite(n, dtype="float64", seed=0, batch=()):
    a = numbers((*batch, n, n), dtype, seed)
    return (a @ a.swapaxes(-1, -2).conj() / n + np.eye(n)).astype(dtype)


def full(x):
    """The dense value, which is asked for and so never forbidden."""
    return np.asarray(x.to_dense())


def assumed(*matrices, what="hermitian"):
    return [sa.assume(sa.asarray(m), what) for m in matrices]


# ---- construction ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
def test_value_and_elements(shapes, dtype, batch):
    parts = factors(shapes, dtype, batch)
    x, expected = sa.Kronecker(*parts), dense_kron(parts)
    assert x.shape == expected.shape
    close(x, expected)
    if expected.size:
        i, j = numbers((7,), "int32") % expected.shape[-2], numbers((7,), "int32", 1) % expected.shape[-1]
        with sa.densify("error"):
            close(x[..., i, j], expected[..., i, j])
            close(x[..., -1, :], expected[..., -1, :])
            close(x[..., 0], expected[..., 0])


@pytest.mark.parametrize("sizes", [(3, 4), (2, 3, 2), (1, 3), (0, 2)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_value_and_elements_of_a_sum(sizes, dtype):
    parts = factors([(n, n) for n in sizes], dtype)
    x, expected = sa.KroneckerSum(*parts), dense_kron_sum(parts)
    close(x, expected)
    if expected.size:
        with sa.densify("error"):
            close(x[1], expected[1])
            close(la.diagonal(x), np.diagonal(expected))
            close(x[:, -1], expected[:, -1])


def test_factors_of_any_structure():
    parts = [sa.Toeplitz([2.0, 1.0, 0.5]), sa.tridiagonal([1.0], [2.0, 3.0], [4.0]), sa.Sparse.from_dense([[0.0, 2.0]])]
    dense = [np.asarray(p) for p in parts]
    x = sa.Kronecker(*parts)
    close(x, kron(dense))
    v = numbers((x.shape[1], 3))
    with sa.densify("error"):
        close(x @ v, kron(dense) @ v)
        close(v.T @ x.T, v.T @ kron(dense).T)


def test_products_of_products_are_one():
    a, b, c = factors([(2, 2), (3, 3), (2, 2)])
    assert [f.shape for f in sa.Kronecker(sa.Kronecker(a, b), c).factors] == [(2, 2), (3, 3), (2, 2)]
    assert [f.shape for f in sa.KroneckerSum(a, sa.KroneckerSum(b, c)).factors] == [(2, 2), (3, 3), (2, 2)]
    close(sa.Kronecker(sa.Kronecker(a, b), c), kron([a, b, c]))
    assert type(sa.Kronecker(a)) is sa.Dense and type(sa.KroneckerSum(b)) is sa.Dense
    identity = sa.Kronecker(sa.Identity(2, 3.0), sa.Identity(4, 2.0))
    assert type(identity) is sa.Identity
    close(identity, 6 * np.eye(8))


def test_assumptions_are_those_of_all_factors():
    a, b = assumed(definite(2), definite(3), what="positive_definite")
    assert "positive_definite" in sa.Kronecker(a, b).assumptions
    assert "positive_definite" in sa.KroneckerSum(a, b).assumptions
    assert not sa.Kronecker(a, sa.forget(b)).assumptions
    assert "positive_definite" in la.inv(sa.Kronecker(a, b)).assumptions
    assert "positive_definite" in sa.Kronecker(a, b).mT.assumptions
    wide = sa.Kronecker(a, numbers((5, 2, 3, 3)))
    assert "positive_definite" in wide.factors[0].assumptions  # a factor is repeated along a batch


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: sa.Kronecker(), ValueError, "at least one factor, got none"),
        (lambda: sa.KroneckerSum(), ValueError, "at least one factor, got none"),
        (lambda: sa.Kronecker([1.0, 2.0], [[1.0]]), ValueError, r"factor 1 must be a matrix .* got shape \(2,\)"),
        (lambda: sa.Kronecker([[1.0]], [[True]]), TypeError, "factor 2 must have a numeric dtype, got bool"),
        (lambda: sa.KroneckerSum([[1.0]], [[1.0, 2.0]]), ValueError, r"factor 2 must be square .* got shape \(1, 2\)"),
        (lambda: sa.Kronecker(np.ones((2, 3, 3)), np.ones((4, 3, 3))), ValueError, "batch shapes must broadcast"),
        (lambda: sa.Kronecker("a", [[1.0]]), TypeError, "factor 1 must be an array"),
    ],
)
def test_bad_input(make, error, text):
    with pytest.raises(error, match=text):
        make()


# ---- products ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("batch, beside", [((), ()), ((), (2,)), ((2,), ()), ((2,), (2,)), ((2,), (3, 2))], ids=str)
def test_product_with_dense(shapes, dtype, batch, beside):
    parts = factors(shapes, dtype, batch)
    x, dense = sa.Kronecker(*parts), dense_kron(parts)
    m, n = dense.shape[-2:]
    right, left = numbers((*beside, n, 3), dtype), numbers((*beside, 3, m), dtype)
    with sa.densify("error"):
        close(x @ right, dense @ right)
        close(sa.asarray(left) @ x, left @ dense)
        close(x @ right[..., :1], dense @ right[..., :1])
        close(x @ numbers((n,), dtype), dense @ numbers((n,), dtype))
        close(sa.asarray(numbers((m,), dtype)) @ x, numbers((m,), dtype) @ dense)
        close(x.mT, dense.swapaxes(-1, -2))
        close(jax.jit(lambda a, b: a @ b)(x, right), dense @ right)


@pytest.mark.parametrize("batch, beside", [((), ()), ((), (2,)), ((2,), ()), ((2,), (3, 2))], ids=str)
@pytest.mark.parametrize("sizes", [(3, 4), (2, 3, 2)], ids=str)
def test_product_of_a_sum_with_dense(sizes, batch, beside):
    parts = factors([(n, n) for n in sizes], batch=batch)
    x = sa.KroneckerSum(*parts)
    dense = full(x)
    if not batch:
        close(x, dense_kron_sum(parts))
    n = dense.shape[-1]
    right, left = numbers((*beside, n, 3)), numbers((*beside, 3, n))
    with sa.densify("error"):
        close(x @ right, dense @ right)
        close(sa.asarray(left) @ x, left @ dense)
        close(x @ right[..., 0].reshape(-1)[:n], dense @ right[..., 0].reshape(-1)[:n])
        close(x.mT, dense.swapaxes(-1, -2))


def test_vmap_is_the_batch():
    parts = factors([(3, 4), (5, 2)], batch=(6,))
    v = numbers((6, 8))
    x = sa.Kronecker(*parts)
    mapped = jax.vmap(lambda a, b: a @ b)(x, jnp.asarray(v))
    close(mapped, np.einsum("bij,bj->bi", dense_kron(parts), v))


def test_product_of_two_by_factors():
    one, two = factors([(3, 4), (2, 5)]), factors([(4, 3), (5, 6)])
    x, y = sa.Kronecker(*one), sa.Kronecker(*two)
    with sa.densify("error"):
        product = x @ y
        assert type(product) is sa.Kronecker
        close(product, kron(one) @ kron(two))
        assert type(x @ y @ y.mT) is sa.Kronecker
        other = sa.Kronecker(*factors([(5, 7), (4, 6)]))
        close(x @ other, kron(one) @ full(other))
        assert type(x @ other) is sa.Product


def test_sparse_factors_stay_sparse():
    a = sa.Sparse.from_dense(np.diag([1.0, 2.0, 3.0]))
    x = sa.Kronecker(a, a)
    with sa.densify("error"):
        assert [type(f) for f in (x @ x).factors] == [sa.Sparse] * 2
        close(x @ x, full(x) @ full(x))


def test_diagonal_factors():
    a, b, d = numbers((3,)), numbers((4,)), numbers((12,))
    x, y = sa.Kronecker(sa.Diagonal(a), sa.Diagonal(b)), sa.Diagonal(d)
    whole = np.diag(np.kron(a, b))
    with sa.densify("error"):
        for result, expected in (
            (x @ y, whole @ np.diag(d)),
            (y @ x, np.diag(d) @ whole),
            (x + y, whole + np.diag(d)),
            (sa.Product(y, x), np.diag(d) @ whole),
        ):
            assert type(result) is sa.Diagonal
            close(result, expected)


# ---- sums and multiples --------------------------------------------------------------------------------------------------


def test_multiples_keep_the_structure():
    parts = factors([(3, 4), (2, 5)])
    x, dense = sa.Kronecker(*parts), kron(parts)
    with sa.densify("error"):
        for function in (lambda a: 2.5 * a, lambda a: -a, lambda a: a / 3, lambda a: a * np.asarray(2.0)):
            assert type(function(x)) is sa.Kronecker
            close(function(x), function(dense))
        rows = numbers((6, 1))
        close(x * rows, dense * rows)
    s = sa.KroneckerSum(*factors([(3, 3), (2, 2)]))
    with sa.densify("error"):
        assert type(-2 * s) is sa.KroneckerSum
        close(-2 * s, -2 * full(s))


def test_multiples_keep_what_is_known():
    a, b = assumed(hermitian(3), hermitian(4))
    for x in (2 * sa.Kronecker(a, b), -sa.KroneckerSum(a, b), sa.Kronecker(a, b) / 2):
        assert all("symmetric" in f.assumptions and "positive_definite" not in f.assumptions for f in x.factors)
    a, b = assumed(hermitian(3, "complex128"), hermitian(4, "complex128"))
    assert [bool(f.assumptions) for f in (1j * sa.Kronecker(a, b)).factors] == [False, True]


def test_sums_of_sums():
    one, two = factors([(3, 3), (4, 4)]), factors([(3, 3), (4, 4)], batch=())[::1]
    x, y = sa.KroneckerSum(*one), sa.KroneckerSum(two[0], sa.tridiagonal([1.0] * 3, [2.0] * 4, [1.0] * 3))
    with sa.densify("error"):
        for result, expected in (
            (x + y, full(x) + full(y)),
            (x - y, full(x) - full(y)),
            (x + 3 * sa.eye(12), dense_kron_sum(one) + 3 * np.eye(12)),
            (sa.eye(12) - y, np.eye(12) - full(y)),
            (sa.Kronecker(one[0], sa.eye(4)) + sa.Kronecker(sa.eye(3), one[1]), dense_kron_sum(one)),
            (
                sa.Kronecker(sa.eye(3), one[1]) + 2 * sa.Kronecker(one[0], sa.eye(4)),
                dense_kron_sum([2 * one[0], one[1]]),
            ),
        ):
            assert type(result) is sa.KroneckerSum
            close(result, expected)
    a, b = assumed(hermitian(3), hermitian(4))
    shifted = sa.KroneckerSum(a, b) + 2 * sa.eye(12)
    assert all("symmetric" in f.assumptions for f in shifted.factors)


def test_elementwise():
    parts = factors([(3, 4), (2, 5)])
    x, dense = sa.Kronecker(*parts), kron(parts)
    y = sa.Kronecker(*factors([(3, 4), (2, 5)], batch=())[::1])
    with sa.densify("error"):
        for function in (abs, sa.square, lambda a: a**3, lambda a: a**7, sa.sign, lambda a: a * a):
            assert type(function(x)) is sa.Kronecker
            close(function(x), np.asarray(function(sa.asarray(dense))))
        close(x * y, dense * dense)
        s = sa.KroneckerSum(*factors([(3, 3), (4, 4)]))
        close(s * s, dense_kron_sum(factors([(3, 3), (4, 4)])) ** 2)
        close(s**3, dense_kron_sum(factors([(3, 3), (4, 4)])) ** 3)
        close(abs(s), abs(full(s)))
        close(la.matrix_norm(s, ord=1), np.linalg.norm(full(s), 1))
        t = sa.KroneckerSum([[1.0, 2.0], [3.0, 4.0]], [[-1.0, 1.0], [0.5, -4.0 + 1e-9]])
        np.testing.assert_allclose(
            full(t * t), full(t) ** 2, rtol=1e-15
        )  # elements on the diagonal cancel, not their squares
        k = sa.Kronecker(*factors([(3, 3), (4, 4)]))
        close(s * k, full(s) * full(k))
        sparse = sa.Sparse.from_dense(np.eye(6, 20))
        close(x * sparse, dense * np.eye(6, 20))
    close(sa.exp(x), np.exp(dense))


def test_complex_parts():
    for shapes in ([(3, 4), (2, 5)], [(3, 3), (4, 4), (2, 2)]):
        parts = factors(shapes, "complex128")
        x, dense = sa.Kronecker(*parts), kron(parts)
        with sa.densify("error"):
            close(sa.real(x), dense.real)
            close(sa.imag(x), dense.imag)
            close(sa.conj(x), dense.conj())
    parts = factors([(3, 3), (4, 4)], "complex128")
    s, dense = sa.KroneckerSum(*parts), dense_kron_sum(parts)
    with sa.densify("error"):
        for function in (sa.real, sa.imag, sa.conj):
            assert type(function(s)) is sa.KroneckerSum
        close(sa.real(s), dense.real)
        close(sa.imag(s), dense.imag)


# ---- reductions ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [-2, -1, (-2, -1), 0, (0, 1)], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("kind", ["product", "sum"])
def test_reductions(axis, dtype, kind):
    shapes = [(3, 3), (2, 2)] if kind == "sum" else [(3, 4), (2, 5)]
    parts = factors(shapes, dtype, (2,))
    x = (sa.KroneckerSum if kind == "sum" else sa.Kronecker)(*parts)
    dense = full(x)
    if 0 in np.atleast_1d(axis) and len(np.atleast_1d(axis)) == 1:
        close(sa.sum(x, axis=axis), dense.sum(axis))  # over the batch alone
        return
    with sa.densify("error"):
        for keepdims in (False, True):
            close(sa.sum(x, axis=axis, keepdims=keepdims), dense.sum(axis, keepdims=keepdims))
            close(sa.mean(x, axis=axis, keepdims=keepdims), dense.mean(axis, keepdims=keepdims))
        if dtype == "float64":
            close(sa.var(x, axis=axis, correction=1), dense.var(axis, ddof=1))
            close(sa.std(x, axis=axis), dense.std(axis))
        if len(np.atleast_1d(axis)) < 2:
            close(la.vector_norm(x, axis=axis), np.linalg.norm(dense, axis=axis))
        close(la.matrix_norm(x), np.linalg.norm(dense, axis=(-2, -1)))


@pytest.mark.parametrize("shapes", [[(3, 4), (2, 5)], [(2, 3), (3, 1), (2, 4)]], ids=str)
@pytest.mark.parametrize("axis", [-2, -1, (-2, -1), (0, 1), None], ids=str)
def test_extremes(axis, shapes):
    x = sa.Kronecker(*factors(shapes, batch=(2,)))
    dense = full(x)
    with sa.densify("error"):
        for ours, theirs in ((sa.max, np.max), (sa.min, np.min)):
            for keepdims in (False, True):
                close(ours(x, axis=axis, keepdims=keepdims), theirs(dense, axis=axis, keepdims=keepdims))


def test_extremes_cost_what_the_factors_have():
    a, b = factors([(500, 20), (400, 30)])
    compiled = jax.jit(lambda x: sa.max(x, axis=0)).lower(sa.Kronecker(a, b)).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 100_000
    want = np.max([np.kron(a[i], b).max(0) for i in range(500)], axis=0)
    close(sa.max(sa.Kronecker(a, b), axis=0), want)


@pytest.mark.slow
def test_extremes_of_special_values():
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, b = (rng.choice([0.0, 1.0, -1.0, 2.0, np.inf, -np.inf, np.nan], size=s) for s in ((3, 2), (2, 3)))
        with np.errstate(invalid="ignore"):
            dense = np.kron(a, b)
        for ours, theirs in ((sa.max, np.max), (sa.min, np.min)):
            for axis in (0, 1, None):
                np.testing.assert_array_equal(np.asarray(ours(sa.Kronecker(a, b), axis=axis)), theirs(dense, axis=axis))


@pytest.mark.slow
def test_derivatives_of_extremes():
    a, b = map(jnp.asarray, factors([(5, 3), (4, 2)]))

    def total(function):
        return jax.grad(lambda a, b: jnp.sum(function(a, b) ** 2), argnums=(0, 1))

    ours, theirs = (
        total(lambda a, b: as_jax(sa.max(sa.Kronecker(a, b), axis=0))),
        total(lambda a, b: jnp.max(jnp.kron(a, b), axis=0)),
    )
    for got, want in zip(ours(a, b), theirs(a, b), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_variance_does_not_cancel():
    rng = np.random.default_rng(0)
    a, b = (1e6 + rng.normal(size=s) for s in ((40, 3), (50, 2)))
    exact = np.asarray(np.kron(a, b), np.longdouble).var(0).astype(float)
    with sa.densify("error"):
        np.testing.assert_allclose(np.asarray(sa.var(sa.Kronecker(a, b), axis=0)), exact, rtol=1e-8)


def test_centred_data():
    parts = factors([(8, 3), (5, 4)])
    x, dense = sa.Kronecker(*parts), kron(parts)
    centred = dense - dense.mean(0)
    with sa.densify("error"):
        y = x - sa.mean(x, axis=0)
        close(y, centred)
        close(sa.var(y, axis=0), centred.var(0))
        close(sa.sum(sa.square(y), axis=0), (centred**2).sum(0))
        close(y.mT @ numbers((40, 2)), centred.T @ numbers((40, 2)))
        close(la.vector_norm(x - 2 * x), np.linalg.norm(dense))


def test_diagonal_and_trace():
    for make, dense_of in ((sa.Kronecker, dense_kron), (sa.KroneckerSum, dense_kron_sum)):
        parts = factors([(3, 3), (2, 2), (2, 2)])
        x, dense = make(*parts), dense_of(parts)
        with sa.densify("error"):
            for offset in (0, 1, -3):
                close(la.diagonal(x, offset=offset), np.diagonal(dense, offset))
                close(la.trace(x, offset=offset), np.trace(dense, offset))
            for order in (1, np.inf):
                if make is sa.Kronecker:
                    close(la.matrix_norm(x, ord=order), np.linalg.norm(dense, order))


# ---- rows and columns ------------------------------------------------------------------------------------------------------


@pytest.mark.costly
@pytest.mark.parametrize("kind", ["product", "sum"])
def test_rows_and_columns(kind):
    shapes = [(4, 4), (5, 5)] if kind == "sum" else [(4, 3), (6, 5)]
    parts = factors(shapes)
    x = (sa.KroneckerSum if kind == "sum" else sa.Kronecker)(*parts)
    dense = (dense_kron_sum if kind == "sum" else kron)(parts)
    mask = np.random.default_rng(1).uniform(size=dense.shape[0]) < 0.5
    v = numbers((dense.shape[1],))
    with sa.densify("error"):
        for key in (mask, slice(1, 14), slice(None, None, -3), [0, 5, -2, 5], slice(0, 1), slice(2, 2)):
            close(x[key], dense[key])
            close(x[key] @ v, dense[key] @ v)
            close(
                x[:, key if not isinstance(key, np.ndarray) else [1, 2]],
                dense[:, key if not isinstance(key, np.ndarray) else [1, 2]],
            )
        close(x[3:15, 2:9], dense[3:15, 2:9])
        rows = jnp.asarray([1, 7, -1])
        close(jax.jit(lambda a, i: a[i])(x, rows), dense[rows])
        close(jax.jit(lambda a, i: a[i] @ v)(x, rows), dense[rows] @ v)


@pytest.mark.slow
def test_rows_of_batches():
    parts = factors([(4, 3), (6, 5)], batch=(2,))
    x, dense = sa.Kronecker(*parts), dense_kron(parts)
    with sa.densify("error"):
        close(x[1], dense[1])
        close(x[:, 5:20], dense[:, 5:20])
        close(x[:, [3, 1, 9]], dense[:, [3, 1, 9]])
        close(x[1, 2:12], dense[1, 2:12])


@pytest.mark.slow
def test_whole_blocks_of_rows_are_kronecker():
    parts = factors([(4, 3), (6, 5)])
    assert type(sa.Kronecker(*parts)[6:18]) is sa.Kronecker


def test_large_selections_expand_nothing():
    x = sa.Kronecker(numbers((400, 60)), numbers((250, 50)))
    assert x.shape == (100_000, 3000)
    mask = np.random.default_rng(0).uniform(size=100_000) < 0.7
    v = numbers((3000,))
    with sa.densify("error"):
        chosen = x[mask]
        assert chosen.nbytes < 10**7
        close(chosen @ v, (numbers((400, 60)) @ v.reshape(60, 50) @ numbers((250, 50)).T).reshape(-1)[mask], 1e-9)


# ---- systems ---------------------------------------------------------------------------------------------------------------


@pytest.mark.costly
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("batch, beside", [((), ()), ((), (2,)), ((2,), ()), ((2,), (3, 2))], ids=str)
def test_solve(dtype, batch, beside):
    parts = [definite(n, dtype, n, batch) + 0.3 * numbers((*batch, n, n), dtype) for n in (3, 2, 4)]
    x, dense = sa.Kronecker(*parts), dense_kron(parts)
    right = numbers((*beside, 24, 3), dtype)
    tolerance = 1e5 * np.finfo(dtype).eps
    with sa.densify("error"):
        close(la.solve(x, right), np.linalg.solve(dense, right), tolerance)
        close(
            la.solve(x, right[..., 0].reshape(-1)[:24]),
            np.linalg.solve(dense, right[..., 0].reshape(-1)[:24]),
            tolerance,
        )
        close(la.inv(x), np.linalg.inv(dense), tolerance)
        close(la.det(x), np.linalg.det(dense), tolerance)
        for ours, numpys in zip(la.slogdet(x), np.linalg.slogdet(dense), strict=True):
            close(ours, numpys, tolerance)


def test_solve_keeps_structure():
    one, two = [definite(3), definite(4)], factors([(3, 2), (4, 5)])
    x, y = sa.Kronecker(*one), sa.Kronecker(*two)
    with sa.densify("error"):
        assert type(la.solve(x, y)) is sa.Kronecker
        close(la.solve(x, y), np.linalg.solve(kron(one), kron(two)), 1e-10)
        u, v = numbers((12, 1)), numbers((30, 1))
        close(la.solve(x, sa.LowRank(u, v)), np.linalg.solve(kron(one), u @ v.T), 1e-10)


def test_singular_factors_raise():
    x = sa.Kronecker(np.eye(2), np.zeros((2, 2)))
    for call in (lambda: la.solve(x, np.ones(4)), lambda: la.inv(x), lambda: la.matrix_power(x, -1)):
        with pytest.raises(np.linalg.LinAlgError):
            call()
    with sa.errstate(linalg="nan"):
        assert np.isnan(np.asarray(la.solve(x, np.ones(4)))).all()
    assert float(la.det(x)) == 0
    assert np.asarray(la.slogdet(x).logabsdet) == -np.inf


@pytest.mark.parametrize("empty", [np.zeros((0, 0)), sa.Diagonal(np.zeros(0))])
@pytest.mark.parametrize("first", [True, False])
def test_a_matrix_without_rows_is_regular_for_any_factors(empty, first):
    singular = np.zeros((3, 3))
    x = sa.Kronecker(empty, singular) if first else sa.Kronecker(singular, empty)
    for call in (la.inv, la.cholesky, lambda x: la.matrix_power(x, -1), lambda x: la.solve(x, x)):
        assert call(x).shape == (0, 0)
    assert la.solve(x, np.zeros((0, 2))).shape == (0, 2)


def test_rectangular_factors_of_a_square_array():
    parts = factors([(2, 3), (3, 2)])
    assert abs(float(la.det(sa.Kronecker(*parts)))) < 1e-12
    with pytest.raises(sa.DensifyError), sa.densify("error"):
        la.solve(sa.Kronecker(*parts), np.ones(6))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_cholesky(dtype):
    parts = [definite(3, dtype), definite(4, dtype)]
    with sa.densify("error"):
        for signs in ((1, 1), (-1, -1), (2j, -0.5j) if dtype == "complex128" else (2, 3)):
            scaled = [s * p for s, p in zip(signs, parts, strict=True)]
            x = sa.Kronecker(*scaled)
            for upper in (False, True):
                factor = la.cholesky(x, upper=upper)
                assert type(factor) is sa.Kronecker
                expected = np.linalg.cholesky(kron(scaled))
                close(factor, expected.conj().T if upper else expected, 1e-10)
        for signs in ((1, -1), (-1, 1)):
            with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
                la.cholesky(sa.Kronecker(*(s * p for s, p in zip(signs, parts, strict=True))))
        with pytest.raises(np.linalg.LinAlgError):
            la.cholesky(sa.Kronecker(parts[0], hermitian(4, dtype) - 10 * np.eye(4)))
        structured = sa.Kronecker(*(sa.Hermitian(p) for p in parts))
        close(la.cholesky(structured), np.linalg.cholesky(kron(parts)), 1e-10)


@pytest.mark.parametrize("shapes", [((3, 3), (4, 4)), ((4, 3), (5, 2)), ((2, 3), (3, 3)), ((4, 2), (2, 3))], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_factorisations(shapes, dtype):
    parts = factors(shapes, dtype)
    x, dense = sa.Kronecker(*parts), kron(parts)
    fits = shapes != ((4, 2), (2, 3))
    with sa.densify("error" if fits else "allow"):
        q, r = la.qr(x)
        close(q @ r, dense, 1e-12)
        close(np.tril(full(r), -1), np.zeros(r.shape, dtype), 1e-12)
        close(sa.conj(q).mT @ q, np.eye(q.shape[-1], dtype=dtype), 1e-12)
        u, s, vh = la.svd(x, full_matrices=False)
        close(s, np.linalg.svd(dense, compute_uv=False), 1e-12)
        close((u * s) @ vh, dense, 1e-12)
    with sa.densify("error"):
        close(la.svdvals(x), np.linalg.svd(dense, compute_uv=False), 1e-12)
        close(la.matrix_rank(x), np.linalg.matrix_rank(dense))
        close(la.pinv(x), np.linalg.pinv(dense), 1e-10)
        for order in (2, -2, "nuc"):
            close(la.matrix_norm(x, ord=order), np.linalg.norm(dense, order), 1e-12)


def test_rank_and_pseudo_inverse_of_deficient_factors():
    parts = [numbers((4, 2)) @ numbers((2, 3)), numbers((3, 1)) @ numbers((1, 3))]
    x, dense = sa.Kronecker(*parts), kron(parts)
    with sa.densify("error"):
        assert int(la.matrix_rank(x)) == 2
        close(la.pinv(x), np.linalg.pinv(dense), 1e-10)
        close(la.pinv(x, rtol=np.asarray([1e-6, 1e-8])), np.stack([np.linalg.pinv(dense)] * 2), 1e-10)


# ---- spectra ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("make, dense_of", [(sa.Kronecker, dense_kron), (sa.KroneckerSum, dense_kron_sum)])
@pytest.mark.parametrize("sizes", [(3, 4), (2, 3, 2), (6, 1)], ids=str)
def test_eigenvectors(make, dense_of, sizes, dtype):
    parts = [hermitian(n, dtype) for n in sizes]
    x, dense = make(*parts), dense_of(parts)
    tolerance = 1e3 * np.finfo(dtype).eps
    with sa.densify("error" if min(sizes) > 1 else "allow"):
        values, vectors = la.eigh(x)
        assert type(vectors) is sa.Product or min(sizes) == 1
        close(values, np.linalg.eigvalsh(dense), tolerance)
        close(la.eigvalsh(x), np.linalg.eigvalsh(dense), tolerance)
        close((vectors * sa.astype(values, dtype)) @ sa.conj(vectors).mT, dense, tolerance)
        close(sa.conj(vectors).mT @ vectors, np.eye(len(dense), dtype=dtype), tolerance)


@pytest.mark.parametrize("make, dense_of", [(sa.Kronecker, dense_kron), (sa.KroneckerSum, dense_kron_sum)])
def test_eigenvectors_of_general_matrices(make, dense_of):
    parts = factors([(3, 3), (4, 4)])
    x, dense = make(*parts), dense_of(parts)
    with sa.densify("error"):
        values, vectors = la.eig(x)
        close(dense @ full(vectors), full(vectors) * full(values), 1e-10)
        close(np.sort_complex(np.asarray(la.eigvals(x))), np.sort_complex(full(values)), 1e-10)
        shifted = x + 2 * sa.eye(12)
        values, vectors = la.eig(shifted)
        close((dense + 2 * np.eye(12)) @ full(vectors), full(vectors) * full(values), 1e-10)


def test_antisymmetric_factors_are_noticed():
    """The product of two is symmetric, but its eigenvectors are no products of real ones."""
    a = np.array([[0.0, 1.0], [-1.0, 0.0]])
    x = sa.Kronecker(a, a)
    close(la.eigvalsh(x), [-1.0, -1.0, 1.0, 1.0], 1e-15)
    for run in (la.eigh, jax.jit(la.eigh)):
        assert all(np.isnan(full(part)).all() for part in run(x))
    stack = sa.Kronecker(np.stack([a, np.eye(2)]), np.stack([a, np.eye(2)]))
    assert [bool(np.isnan(vectors).any()) for vectors in full(la.eigh(stack).eigenvectors)] == [True, False]
    # One factor may be anything, since it is the Hermitian part of the whole that is decomposed.
    general, symmetric = numbers((3, 3)), hermitian(4)
    whole = kron([general, symmetric])
    close(la.eigvalsh(sa.Kronecker(general, symmetric)), np.linalg.eigvalsh((whole + whole.T) / 2), 1e-12)


# ---- with a multiple of the identity -----------------------------------------------------------------------------------------


def _shifted(dtype="float64", batch=(), what="hermitian"):
    parts = [definite(3, dtype, 1, batch), definite(4, dtype, 2, batch)]
    x = sa.Kronecker(*assumed(*parts, what=what)) + 0.7 * sa.eye(12, dtype=getattr(sa, dtype))
    return x, dense_kron(parts) + (0.7 * np.eye(12)).astype(dtype)


def _sum(dtype="float64", batch=(), what="hermitian"):
    parts = [definite(3, dtype, 1, batch), definite(4, dtype, 2, batch)]
    x = sa.KroneckerSum(*assumed(*parts, what=what))
    return x, full(x)


@pytest.mark.costly
@pytest.mark.parametrize("make", [_shifted, _sum])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("batch, beside", [((), ()), ((), (2,)), ((2,), ()), ((2,), (3, 2))], ids=str)
@pytest.mark.parametrize("what", ["hermitian", "positive_definite"])
def test_by_eigenvectors(make, dtype, batch, beside, what):
    x, dense = make(dtype, batch, what)
    right = numbers((*beside, 12, 3), dtype)
    tolerance = 1e4 * np.finfo(dtype).eps
    with sa.densify("error"):
        close(la.solve(x, right), np.linalg.solve(dense, right), tolerance)
        close(
            la.solve(x, right[..., 0].reshape(-1)[:12]),
            np.linalg.solve(dense, right[..., 0].reshape(-1)[:12]),
            tolerance,
        )
        close(la.det(x), np.linalg.det(dense), tolerance)
        for ours, numpys in zip(la.slogdet(x), np.linalg.slogdet(dense), strict=True):
            close(ours, numpys, tolerance)
        close(la.eigvalsh(x), np.linalg.eigvalsh(dense), tolerance)
        values, vectors = la.eigh(x)
        close((vectors * sa.astype(values, dtype)[..., None, :]) @ sa.conj(vectors).mT, dense, tolerance)
    close(la.inv(x), np.linalg.inv(dense), tolerance)
    close(jax.jit(la.solve)(x, right), np.linalg.solve(dense, right), tolerance)


@pytest.mark.parametrize(
    "known",
    [
        lambda a, b: sa.Kronecker(sa.Symmetric(a), sa.Symmetric(b)),
        lambda a, b: 2 * sa.Kronecker(sa.Symmetric(a), sa.assume(sa.asarray(b), "symmetric")) / 2,
        lambda a, b: sa.assume(sa.Kronecker(a, b), "positive_definite"),
        lambda a, b: sa.Kronecker(sa.assume(sa.asarray(a), "positive_definite"), sa.Hermitian(b)),
    ],
)
def test_what_is_known_to_be_symmetric(known):
    a, b = definite(3), definite(4)
    with sa.densify("error"):
        close(
            la.solve(known(a, b) + 2 * sa.eye(12), np.ones(12)),
            np.linalg.solve(kron([a, b]) + 2 * np.eye(12), np.ones(12)),
            1e-11,
        )


def test_factors_that_are_not_known_to_be_hermitian():
    """Their eigenvectors are not taken for orthogonal, whatever they are."""
    general = sa.Kronecker(*factors([(3, 3), (4, 4)]))
    antisymmetric = np.array([[0.0, 1.0], [-1.0, 0.0]])
    symmetric = sa.assume(sa.Kronecker(antisymmetric, antisymmetric), "symmetric")  # its factors are not
    for x in (general, symmetric):
        shifted = x + 3 * sa.eye(x.shape[-1])
        b = np.ones(x.shape[-1])
        close(la.solve(shifted, b), np.linalg.solve(full(shifted), b), 1e-11)
        close(la.slogdet(shifted).logabsdet, np.linalg.slogdet(full(shifted))[1], 1e-11)
    general = sa.KroneckerSum(*factors([(3, 3), (4, 4)]))
    close(la.solve(general, np.ones(12)), np.linalg.solve(full(general), np.ones(12)), 1e-10)


def test_a_diagonal_is_no_multiple_of_the_identity():
    a, b = definite(3), definite(4)
    noise = 1 + np.arange(12.0)
    for diagonal in (noise, np.full(12, 2.0)):
        x = sa.Kronecker(*assumed(a, b)) + sa.Diagonal(diagonal)
        dense = kron([a, b]) + np.diag(diagonal)
        close(la.solve(x, np.ones(12)), np.linalg.solve(dense, np.ones(12)), 1e-11)
        close(la.slogdet(x).logabsdet, np.linalg.slogdet(dense)[1], 1e-11)
        close(la.det(x), np.linalg.det(dense), 1e-11)
        close(la.inv(x), np.linalg.inv(dense), 1e-11)
        close(la.eigvalsh(x), np.linalg.eigvalsh(dense), 1e-11)
    x = sa.Kronecker(*assumed(a, b)) + (sa.eye(12) + 1.0)  # an identity with a background
    close(la.solve(x, np.ones(12)), np.linalg.solve(kron([a, b]) + np.eye(12) + 1, np.ones(12)), 1e-11)
    x = sa.KroneckerSum(*assumed(a, b)) + sa.Diagonal(noise)
    close(la.solve(x, np.ones(12)), np.linalg.solve(dense_kron_sum([a, b]) + np.diag(noise), np.ones(12)), 1e-11)


def test_a_complex_shift():
    a, b = (hermitian(n, "complex128") for n in (3, 4))
    x = sa.Kronecker(*assumed(a, b)) + (0.5 + 2j) * sa.eye(12, dtype=sa.complex128)
    dense = kron([a, b]) + (0.5 + 2j) * np.eye(12)
    with sa.densify("error"):
        close(la.solve(x, np.ones(12) + 0j), np.linalg.solve(dense, np.ones(12) + 0j), 1e-11)
        for ours, numpys in zip(la.slogdet(x), np.linalg.slogdet(dense), strict=True):
            close(ours, numpys, 1e-11)


def test_singular_sums_raise():
    x = sa.KroneckerSum(sa.Diagonal([1.0, 2.0]), sa.Diagonal([-1.0, 3.0]))
    with pytest.raises(np.linalg.LinAlgError):
        la.solve(x, np.ones(4))
    with sa.errstate(linalg="nan"):
        assert np.isnan(np.asarray(la.solve(x, np.ones(4)))).all()
    with pytest.raises(np.linalg.LinAlgError):
        la.solve(
            sa.assume(sa.KroneckerSum(sa.Diagonal([1.0, -2.0]), sa.Diagonal([0.5, 3.0])), "positive_definite"),
            np.ones(4),
        )
    assert np.isnan(
        np.asarray(la.solve(sa.KroneckerSum(sa.Diagonal([np.nan, 2.0]), sa.Diagonal([1.0, 3.0])), np.ones(4)))
    ).any()


def test_diagonal_factors_need_no_eigenvectors():
    d, b = 1 + np.arange(1000.0), definite(3)
    x = sa.Kronecker(sa.Diagonal(d), sa.Symmetric(b)) + 2 * sa.eye(3000)
    right = numbers((3000,))
    with sa.densify("error"):
        blocks = d[:, None, None] * b + 2 * np.eye(3)
        close(la.solve(x, right), np.linalg.solve(blocks, right.reshape(1000, 3, 1)).reshape(-1), 1e-11)
        close(la.slogdet(x).logabsdet, np.linalg.slogdet(blocks)[1].sum(), 1e-11)


# ---- derivatives -------------------------------------------------------------------------------------------------------------

CASES = {
    "solve": (lambda x, b: as_jax(sa.sum(la.solve(x, b) ** 2)), lambda x, b: jnp.sum(jnp.linalg.solve(x, b) ** 2)),
    "slogdet": (lambda x, b: as_jax(la.slogdet(x).logabsdet), lambda x, b: jnp.linalg.slogdet(x)[1]),
    "product": (lambda x, b: as_jax(sa.sum((x @ b) ** 2)), lambda x, b: jnp.sum((x @ b) ** 2)),
}


def _pairs(kind):
    """The same array from factors and as a dense one, as functions of the factors and a number."""

    def ours(a, b, c):
        x = sa.Kronecker(*assumed(a, b)) if kind == "shifted" else sa.KroneckerSum(*assumed(a, b))
        if kind == "product":
            return sa.Kronecker(a, b)
        return x + c * sa.eye(6)

    def theirs(a, b, c):
        if kind == "sum":
            return jnp.kron(a, jnp.eye(3)) + jnp.kron(jnp.eye(2), b) + c * jnp.eye(6)
        return jnp.kron(a, b) + (0 if kind == "product" else c) * jnp.eye(6)

    return ours, theirs


POINTS = {
    "distinct": (definite(2), definite(3)),
    "equal eigenvalues": (2 * np.eye(2), np.eye(3)),
    "some equal": (np.eye(2), np.diag([1.0, 2.0, 1.0])),
}


@pytest.mark.costly
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("kind", ["shifted", "sum", "product"])
@pytest.mark.parametrize("case", CASES)
def test_first_and_second_derivatives(case, kind, point):
    ours, theirs = _pairs(kind)
    function, dense = CASES[case]
    right = jnp.asarray(numbers((6,)))
    arguments = (*map(jnp.asarray, POINTS[point]), jnp.asarray(0.6), right)

    def f(a, b, c, right):
        return function(ours(a, b, c), right)

    def g(a, b, c, right):
        return dense(theirs(a, b, c), right)

    with sa.densify("error"):
        first = jax.jit(jax.grad(f, (0, 1, 2, 3)))(*arguments)
        second = jax.jit(jax.hessian(f, (0, 1, 2, 3)))(*arguments)
        forward = jax.jvp(f, arguments, arguments)[1]
    for actual, expected in zip(first, jax.grad(g, (0, 1, 2, 3))(*arguments), strict=True):
        close(actual, expected, 1e-10)
    for actual, expected in zip(
        itertools.chain(*second), itertools.chain(*jax.hessian(g, (0, 1, 2, 3))(*arguments)), strict=True
    ):
        close(actual, expected, 1e-9)
    close(forward, jax.jvp(g, arguments, arguments)[1], 1e-10)


def test_derivatives_of_a_complex_determinant():
    a, b = (hermitian(n, "complex128") for n in (2, 3))
    shift = jnp.asarray(0.5 + 2j)

    def ours(a, b, c):
        x = sa.Kronecker(*assumed(a, b)) + c * sa.eye(6, dtype=sa.complex128)
        sign, logabsdet = la.slogdet(x)
        return as_jax(logabsdet) + jnp.real(as_jax(sign)) + 2 * jnp.imag(as_jax(sign))

    def theirs(a, b, c):
        sign, logabsdet = jnp.linalg.slogdet(jnp.kron(a, b) + c * jnp.eye(6))
        return logabsdet + jnp.real(sign) + 2 * jnp.imag(sign)

    primals = (jnp.asarray(a), jnp.asarray(b), shift)
    tangents = (jnp.asarray(hermitian(2, "complex128", 5)), jnp.asarray(hermitian(3, "complex128", 6)), shift)
    close(jax.jvp(ours, primals, tangents)[1], jax.jvp(theirs, primals, tangents)[1], 1e-10)
    for actual, expected in zip(
        jax.grad(ours, (0, 1, 2))(*primals), jax.grad(theirs, (0, 1, 2))(*primals), strict=True
    ):
        close(actual, expected, 1e-10)


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("kind", ["shifted", "sum"])
def test_three_factors(kind):
    """With one that is diagonal by its class, and equal eigenvalues."""
    a, d, b = definite(2), np.array([1.0, 2.0, 2.0]), np.eye(2)

    def ours(a, d, b, c):
        factors = (sa.assume(sa.asarray(a), "symmetric"), sa.Diagonal(d), sa.assume(sa.asarray(b), "symmetric"))
        return (sa.Kronecker if kind == "shifted" else sa.KroneckerSum)(*factors) + c * sa.eye(12)

    def theirs(a, d, b, c):
        d = jnp.diag(d)
        if kind == "shifted":
            return jnp.kron(jnp.kron(a, d), b) + c * jnp.eye(12)
        eyes = [jnp.eye(2), jnp.eye(3), jnp.eye(2)]
        return sum(
            functools.reduce(jnp.kron, [*eyes[:i], m, *eyes[i + 1 :]]) for i, m in enumerate((a, d, b))
        ) + c * jnp.eye(12)

    arguments = (*map(jnp.asarray, (a, d, b)), jnp.asarray(0.4))
    right = numbers((12, 2))

    def f(*args):
        x = ours(*args)
        return as_jax(la.slogdet(x).logabsdet) + as_jax(sa.sum(la.solve(x, right) ** 2))

    def g(*args):
        x = theirs(*args)
        return jnp.linalg.slogdet(x)[1] + jnp.sum(jnp.linalg.solve(x, right) ** 2)

    with sa.densify("error"):
        close(f(*arguments), g(*arguments), 1e-10)
        first, second = (jax.jit(d(f, (0, 1, 2, 3)))(*arguments) for d in (jax.grad, jax.hessian))
    for actual, expected in zip(first, jax.grad(g, (0, 1, 2, 3))(*arguments), strict=True):
        close(actual, expected, 1e-9)
    for actual, expected in zip(
        jax.tree.leaves(second), jax.tree.leaves(jax.hessian(g, (0, 1, 2, 3))(*arguments)), strict=True
    ):
        close(actual, expected, 1e-8)


def test_what_is_known_survives_a_cast():
    a, b = definite(3), definite(4)
    right = numbers((12,), "complex128")
    dense = kron([a, b])
    with sa.densify("error"):
        for make, whole in (
            (sa.Kronecker, dense + 2 * np.eye(12)),
            (sa.KroneckerSum, dense_kron_sum([a, b]) + 2 * np.eye(12)),
        ):
            x = make(sa.Symmetric(a), sa.assume(sa.asarray(b), "symmetric")) + 2 * sa.eye(12)
            close(la.solve(x, right), np.linalg.solve(whole, right), 1e-11)
            assert sa.astype(x, sa.float32).dtype == "float32"
            close(la.slogdet(sa.astype(x, sa.complex128)).logabsdet, np.linalg.slogdet(whole)[1], 1e-11)
        x = sa.assume(sa.Kronecker(a, b), "positive_definite") + 2 * sa.eye(12)
        close(la.solve(x, right), np.linalg.solve(dense + 2 * np.eye(12), right), 1e-11)


def test_derivatives_of_batches():
    a, b = definite(2, batch=(3,)), definite(3, batch=(3,))

    def ours(a, b):
        return jnp.sum(as_jax(la.slogdet(sa.Kronecker(*assumed(a, b)) + sa.eye(6)).logabsdet) ** 2)

    def theirs(a, b):
        return jnp.sum(jnp.linalg.slogdet(jax.vmap(jnp.kron)(a, b) + jnp.eye(6))[1] ** 2)

    for actual, expected in zip(jax.grad(ours, (0, 1))(a, b), jax.grad(theirs, (0, 1))(a, b), strict=True):
        close(actual, expected, 1e-10)


def test_gradient_of_a_structured_array():
    a, d = definite(3), numbers((4,)) ** 2
    x = sa.Kronecker(sa.Symmetric(a), sa.Diagonal(d))

    def loss(x):
        return la.slogdet(x + 2 * sa.eye(12)).logabsdet

    gradient = sa.grad(loss)(x)

    def dense(a, d):
        lower = jnp.tril(a)
        return jnp.linalg.slogdet(jnp.kron(lower + jnp.tril(a, -1).T, jnp.diag(d)) + 2 * jnp.eye(12))[1]

    expected = jax.grad(dense, (0, 1))(jnp.asarray(a), jnp.asarray(d))
    for actual, other in zip(jax.tree.leaves(gradient), expected, strict=True):
        close(actual, other, 1e-10)


def test_a_batch_of_shifts():
    x = sa.Kronecker(*assumed(definite(3), definite(4)))
    shifts = jnp.asarray([0.5, 1.0, 2.0])
    expected = [np.linalg.slogdet(full(x) + c * np.eye(12))[1] for c in np.asarray(shifts)]
    close(jax.vmap(lambda c: as_jax(la.slogdet(x + c * sa.eye(12)).logabsdet))(shifts), np.asarray(expected), 1e-11)
    close(la.slogdet(x + sa.Identity(12, shifts)).logabsdet, np.asarray(expected), 1e-11)
    right = numbers((12,))
    expected = [np.linalg.solve(full(x) + c * np.eye(12), right) for c in np.asarray(shifts)]
    close(jax.vmap(lambda c: as_jax(la.solve(x + c * sa.eye(12), right)))(shifts), np.asarray(expected), 1e-11)
    close(jax.vmap(lambda c: la.solve(x, c * right))(shifts)[0], np.linalg.solve(full(x), 0.5 * right), 1e-11)


def test_no_rows():
    for x in (sa.Kronecker(np.ones((0, 0)), definite(3)), sa.KroneckerSum(np.ones((0, 0)), definite(3))):
        assert x.shape == (0, 0)
        assert float(la.det(x)) == 1 and float(la.slogdet(x).logabsdet) == 0
        assert la.solve(x, np.ones((0, 2))).shape == (0, 2) and la.inv(x).shape == (0, 0)
        assert la.eigvalsh(x).shape == (0,) and float(sa.sum(x)) == 0


# ---- the samplers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", ["Kronecker", "Kronecker, structured", "KroneckerSum"])
@pytest.mark.parametrize("requires", ["", "invertible", "hermitian", "positive definite"])
def test_samples(structure, requires):
    for core, batch in itertools.product([(6, 6), (5, 5), (4, 6), (1, 3)], [(), (2,)]):
        if core[0] != core[1] and (requires or structure == "KroneckerSum"):
            continue
        x = sample(structure, core, batch=batch, requires=requires, dtype="complex128")
        assert x.shape == (*batch, *core)
        data = full(x)
        if requires in ("hermitian", "positive definite"):
            close(data, data.swapaxes(-1, -2).conj())
        if requires == "positive definite":
            assert (np.linalg.eigvalsh(data) > 0.05).all()
