"""Kronecker products and sums with a factor so large that its tridiagonal form takes the place of its eigenvectors, against NumPy and JAX
on the dense matrix.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa

pytestmark = pytest.mark.costly

la = sa.linalg
LARGE = 130


def hermitian(n, dtype="float64", seed=0, batch=(), definite=False):
    rng = np.random.default_rng([seed, n])
    a = rng.normal(size=(*batch, n, n))
    a = a + 1j * rng.normal(size=a.shape) if np.dtype(dtype).kind == "c" else a
    adjoint = a.swapaxes(-1, -2).conj()
    return (a @ adjoint / n + np.eye(n) if definite else (a + adjoint) / np.sqrt(n)).astype(dtype)


def numbers(shape, dtype="float64", seed=9):
    rng = np.random.default_rng([seed, *shape])
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def dense_of(kind, factors, shift):
    """In NumPy or JAX."""
    xp = jnp if any(isinstance(f, jax.Array) for f in factors) else np
    n = int(np.prod([f.shape[-1] for f in factors]))
    if kind == "product":
        whole = functools.reduce(xp.kron, factors)
    else:
        eyes = [xp.eye(f.shape[-1]) for f in factors]
        whole = sum(functools.reduce(xp.kron, [*eyes[:i], f, *eyes[i + 1 :]]) for i, f in enumerate(factors))
    return whole + shift * xp.eye(n, dtype=whole.dtype)


def ours_of(kind, factors, shift, what="hermitian"):
    """A factor of one dimension is the diagonal of one."""
    given = [sa.Diagonal(f) if f.ndim == 1 else sa.assume(sa.asarray(f), what) for f in factors]
    x = (sa.Kronecker if kind == "product" else sa.KroneckerSum)(*given)
    x = x + shift * sa.eye(x.shape[-1], dtype=x.dtype)
    return sa.assume(x, what)


def check(x, dense, right, tolerance):
    for function in (la.solve, jax.jit(la.solve)):
        solution = np.asarray(function(x, right))
        expected = np.linalg.solve(dense, right)
        np.testing.assert_allclose(solution, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())
    for function in (la.slogdet, jax.jit(la.slogdet)):
        for actual, expected in zip(function(x), np.linalg.slogdet(dense), strict=True):
            np.testing.assert_allclose(np.asarray(actual), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind, place", [("product", 1), ("sum", 0)])
@pytest.mark.parametrize(
    "what, dtype",
    [
        ("hermitian", "float64"),
        ("positive_definite", "float64"),
        ("positive_definite", "float32"),
        ("hermitian", "complex128"),
        ("positive_definite", "complex128"),
    ],
)
def test_systems_and_determinants(kind, place, what, dtype):
    factors = [hermitian(n, dtype, n, definite=what != "hermitian") for n in (3, LARGE)]
    factors = factors if place else factors[::-1]
    x, dense = ours_of(kind, factors, 0.3, what), dense_of(kind, factors, np.asarray(0.3, dtype))
    tolerance = 2e4 * np.finfo(dtype).eps * (1 if what == "positive_definite" else np.linalg.cond(dense))
    with sa.densify("error"):
        for columns in ((), (7,)):
            check(x, dense, numbers((3 * LARGE, *columns), dtype), tolerance)
    assert "tridiagonal form" in str(sa.explain(lambda: la.solve(x, sa.ones((3 * LARGE,), dtype=x.dtype))))


@pytest.mark.parametrize("kind", ["product", "sum"])
def test_several_factors_of_which_some_are_diagonal(kind):
    factors = [hermitian(2), np.array([1.0, -2.0, 0.5]), hermitian(LARGE, seed=1)]
    for order in ([0, 1, 2], [2, 0, 1]):
        chosen = [factors[i] for i in order]
        dense = dense_of(kind, [np.diag(f) if f.ndim == 1 else f for f in chosen], 0.3)
        with sa.densify("error"):
            check(ours_of(kind, chosen, 0.3), dense, numbers((6 * LARGE, 2)), 1e-11 * np.linalg.cond(dense))


def test_a_complex_shift():
    factors = [hermitian(n, "complex128", n) for n in (3, LARGE)]
    dense = dense_of("product", factors, 0.2 + 0.5j)
    x = sa.Kronecker(*(sa.assume(sa.asarray(f), "hermitian") for f in factors))
    x = x + (0.2 + 0.5j) * sa.eye(3 * LARGE, dtype=sa.complex128)
    with sa.densify("error"):
        check(x, dense, numbers((3 * LARGE, 2), "complex128"), 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["hermitian", "positive_definite"])
def test_batches_and_maps(what):
    a, b = (hermitian(n, seed=n, batch=(2,), definite=True) for n in (2, LARGE))
    right = numbers((2, 2 * LARGE, 3))

    def ours(a, b, c, right):
        return as_jax(la.solve(ours_of("product", (a, b), c, what), right))

    def determinant(a, b, c):
        return as_jax(la.slogdet(ours_of("product", (a, b), c, what)).logabsdet)

    shifts = jnp.asarray([0.5, 2.0])
    dense = np.stack([dense_of("product", (a[i], b[i]), 0.5) for i in range(2)])
    with sa.densify("error"):
        batched = ours_of("product", (a, b), 0.5, what)
        check(batched, dense, right, 1e-11)
        check(batched, dense, right[:1], 1e-11)
        check(ours_of("product", (a[0], b[0]), 0.5, what), dense[0], right, 1e-11)
        everything = jax.vmap(ours)(jnp.asarray(a), jnp.asarray(b), shifts, jnp.asarray(right))
        only_shifts = jax.vmap(ours, (None, None, 0, None))(a[0], b[0], shifts, right[0])
        only_right = jax.vmap(ours, (None, None, None, 0))(a[0], b[0], 0.5, right)
        determinants = jax.vmap(determinant)(jnp.asarray(a), jnp.asarray(b), shifts)
    for i, c in enumerate((0.5, 2.0)):
        each, first = (dense_of("product", (a[j], b[j]), c) for j in (i, 0))
        np.testing.assert_allclose(everything[i], np.linalg.solve(each, right[i]), rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(only_shifts[i], np.linalg.solve(first, right[0]), rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(only_right[i], np.linalg.solve(dense[0], right[i]), rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(determinants[i], np.linalg.slogdet(each)[1], rtol=1e-11)


def _singular():
    """In blocks, of which the last is singular: so are two of the tridiagonal systems, and none of the others."""
    b = np.zeros((LARGE, LARGE))
    b[:-1, :-1] = hermitian(LARGE - 1, definite=True)
    return sa.Kronecker(sa.Diagonal([1.0, 2.0]), sa.assume(sa.asarray(b), "symmetric")) + 0.0 * sa.eye(2 * LARGE)


@pytest.mark.slow
def test_singular_systems_raise():
    right = numbers((2 * LARGE,))
    for x in (_singular(), sa.assume(_singular(), "positive_definite")):
        with pytest.raises(np.linalg.LinAlgError):
            la.solve(x, right)
        assert np.isnan(np.asarray(jax.jit(la.solve)(x, right))).all()
        with sa.errstate(linalg="nan"):
            assert np.isnan(np.asarray(la.solve(x, right))).all()
    sign, logabsdet = la.slogdet(_singular())
    assert float(sign) == 0 and float(logabsdet) == -np.inf and float(la.det(_singular())) == 0


def test_what_is_not_positive_definite_is_told():
    factors = [hermitian(2, definite=True), hermitian(LARGE, definite=True)]
    smallest = np.linalg.eigvalsh(dense_of("product", factors, 0.0))[0]
    for shift, fine in ((-0.99 * smallest, True), (-1.01 * smallest, False)):
        x, right = ours_of("product", factors, shift, "positive_definite"), numbers((2 * LARGE,))
        if fine:
            expected = np.linalg.solve(dense_of("product", factors, shift), right)
            np.testing.assert_allclose(np.asarray(la.solve(x, right)), expected, rtol=1e-9, atol=1e-9)
        else:
            with pytest.raises(np.linalg.LinAlgError):
                la.solve(x, right)


def test_nan_is_no_pivot():
    b = hermitian(LARGE, definite=True)
    right = numbers((2 * LARGE, 2))
    x = ours_of("product", [np.diag([1.0, np.nan]), b], 0.1)
    assert np.isnan(np.asarray(la.solve(x, right))).any()
    right[3, 0] = np.nan
    solution = np.asarray(la.solve(ours_of("product", [np.eye(2), b], 0.1), right))
    assert np.isnan(solution[:, 0]).any() and np.isfinite(solution[:, 1]).all()


@pytest.mark.parametrize("case", ["near an eigenvalue", "graded", "indefinite, tiny shift"])
def test_backward_errors(case):
    rng = np.random.default_rng(3)

    def factor(n, values):
        q = np.linalg.qr(rng.normal(size=(n, n)))[0]
        x = q * values @ q.T
        return (x + x.T) / 2

    if case == "graded":
        factors = [factor(n, np.logspace(0, -12, n)) for n in (4, LARGE)]
        shift = 1e-14
    else:
        factors = [factor(n, np.logspace(0, -5, n) * (-1.0) ** np.arange(n)) for n in (4, LARGE)]
        values = np.linalg.eigvalsh(dense_of("product", factors, 0.0))
        shift = -values[0] * (1 - 1e-13) if case == "near an eigenvalue" else 1e-15
    dense, right = dense_of("product", factors, shift), numbers((4 * LARGE,))

    def error(x):
        residual = right - (dense.astype(np.longdouble) @ x.astype(np.longdouble))
        return np.linalg.norm(residual) / (np.linalg.norm(dense, 2) * np.linalg.norm(x) + np.linalg.norm(right))

    x = np.asarray(la.solve(ours_of("product", factors, shift), right))
    assert error(x) <= 10 * max(error(np.linalg.solve(dense, right)), 2.0**-53)
    if case == "graded":
        x = np.asarray(la.solve(ours_of("product", factors, 1e-3, "positive_definite"), right))
        dense = dense_of("product", factors, 1e-3)
        assert error(x) <= 10 * max(error(np.linalg.solve(dense, right)), 2.0**-53)


@pytest.mark.slow
@pytest.mark.parametrize("kind, what", [("product", "hermitian"), ("sum", "positive_definite")])
def test_derivatives(kind, what):
    a, b = (jnp.asarray(hermitian(n, seed=n, definite=True)) for n in (2, LARGE))
    arguments = (a, b, jnp.asarray(0.4), jnp.asarray(numbers((2 * LARGE,))))

    def ours(a, b, c, right):
        x = ours_of(kind, (a, b), c, what)
        return as_jax(la.slogdet(x).logabsdet) + as_jax(sa.sum(la.solve(x, right) ** 2))

    def theirs(a, b, c, right):
        x = dense_of(kind, (a, b), c)
        return jnp.linalg.slogdet(x)[1] + jnp.sum(jnp.linalg.solve(x, right) ** 2)

    def directional(f):
        tangents = tuple(jnp.asarray(hermitian(len(x), seed=7)) if x.ndim == 2 else jnp.ones_like(x) for x in arguments)
        return lambda *args: jax.jvp(jax.grad(f, (0, 1, 2, 3)), args, tangents)

    with sa.densify("error"):
        np.testing.assert_allclose(ours(*arguments), theirs(*arguments), rtol=1e-11)
        actual = jax.tree.leaves(jax.jit(directional(ours))(*arguments))
        by_one = [jax.jit(jax.grad(ours, i))(*arguments) for i in (2, 3)]
    expected = jax.tree.leaves(jax.jit(directional(theirs))(*arguments))
    for one, other in zip([*actual, *by_one], [*expected, *expected[2:4]], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9 * np.abs(other).max())


def test_the_transpose_of_a_solver():
    """Of what is linear in the right-hand side, without any derivative."""
    a, b = (hermitian(n, "complex128", n) for n in (2, LARGE))
    x, dense = ours_of("product", (a, b), 0.3), dense_of("product", (a, b), 0.3)
    right = jnp.asarray(numbers((2 * LARGE,), "complex128"))
    (actual,) = jax.linear_transpose(lambda r: la.solve(x, r), right)(right)
    np.testing.assert_allclose(actual, np.linalg.solve(dense.T, right), rtol=1e-8, atol=1e-8)


def test_eigenvectors_are_computed_where_there_are_derivatives_and_only_there():
    a, b = (jnp.asarray(hermitian(n, seed=n, definite=True)) for n in (2, LARGE))
    right = numbers((2 * LARGE,))

    def both(a, b, c):
        x = ours_of("product", (a, b), c)
        return as_jax(la.slogdet(x).logabsdet) + as_jax(sa.sum(la.solve(x, right)))

    def count(function, name):
        return jax.jit(function).lower(a, b, 0.5).compile().as_text().count(f'custom_call_target="{name}"')

    assert (count(both, "lapack_dsyevd_ffi"), count(both, "lapack_dsytrd_ffi")) == (1, 1)
    for which in (0, 1, 2):
        gradient = jax.value_and_grad(both, which)
        assert (count(gradient, "lapack_dsyevd_ffi"), count(gradient, "lapack_dsytrd_ffi")) == (2, 0)
