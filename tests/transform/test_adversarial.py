"""`structured` on programs that were written to break it: one law each."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from support import as_jax

import structarrays as sa

n = 5
x = jnp.linspace(1.0, 2.0, n)
D = sa.Diagonal(x)
T = sa.tridiagonal(jnp.full(n - 1, 0.3), x, jnp.full(n - 1, -0.2))
STACK = sa.Banded([jnp.arange(1.0, 9).reshape(2, 4), jnp.arange(1.0, 11).reshape(2, 5)], (-1, 0), (n, n))


def agrees(program, A, *args):
    """The results are those of the dense program, in value, shape and dtype."""
    found, expected = sa.structured(program)(A, *args), program(A.to_jax(), *args)
    is_leaf = lambda v: hasattr(v, "to_jax")  # noqa: E731
    for a, b in zip(jax.tree.leaves(found, is_leaf=is_leaf), jax.tree.leaves(expected), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-10, atol=1e-12)
    return found


def counter(dtype, axis=0):
    return lax.broadcasted_iota(dtype, (n, n), axis)


# ---- counters of rows and columns ------------------------------------------------------------------------------------


def test_a_counter_is_shifted_by_whole_numbers_only():
    agrees(lambda A: jnp.where(counter(int).astype(float) + 0.5 > counter(int, 1).astype(float), A, 0.0), T)
    agrees(lambda A: jnp.where(counter(int).astype(float) + jnp.nan > counter(int, 1).astype(float), A, 0.0), T)


@pytest.mark.parametrize(("dtype", "shift"), [("uint8", -3), ("int8", 126), ("int32", 2**31 - 2)])
def test_a_counter_overflows_as_its_dtype_does(dtype, shift):
    number = np.asarray(abs(shift), dtype)

    def program(A):
        rows = counter(dtype) - number if shift < 0 else counter(dtype) + number
        return rows, jnp.where(rows > counter(dtype, 1), A, 0.0)

    agrees(program, T)


def test_a_counter_as_booleans_counts_no_more():
    agrees(lambda A: (counter(int).astype(bool), counter(int).astype(bool) == counter(int, 1).astype(bool)), T)


# ---- products --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wide", ["int32", "float32"])
def test_products_are_those_of_the_dtype_that_is_asked_for(wide):
    A = sa.Diagonal(jnp.asarray([100, 50, 3, -7, 90], "int8"))
    agrees(lambda A: jnp.matmul(A, A, preferred_element_type=wide), A)
    agrees(lambda A, v: jnp.matmul(A, v, preferred_element_type=wide), A, A.diag)
    agrees(lambda A: jnp.matmul(A, jnp.ones((n, n), "int8"), preferred_element_type=wide), A)


def test_products_with_a_constant_of_more_dimensions():
    agrees(lambda A: (A @ jnp.ones((2, n, 3)), jnp.ones((2, 3, n)) @ A), sa.exp(D))


# ---- a number next to a stack ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("A", [STACK, sa.exp(STACK)], ids=["zeros", "background"])
def test_a_computed_number_beside_a_stack(A):
    agrees(lambda A, c: (A * c, A + c, c - A, A / c, jnp.maximum(A, c), lax.clamp(-c, A, c)), A, jnp.asarray(2.5))
    agrees(lambda A: divmod(A, 2), A)


# ---- moving elements -------------------------------------------------------------------------------------------------


def test_a_reshape_may_permute_first():
    agrees(lambda A: lax.reshape(A, (n * n,), dimensions=(1, 0)), T)


@pytest.mark.parametrize("widths", [(-6, 3, 0), (3, -6, 0), (-5, 2, 0)])
def test_a_pad_may_take_away_its_own_zeros(widths):
    agrees(lambda A: lax.pad(A, 0.0, (widths, (0, 0, 0))), T)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_starts_and_indices_in_a_small_dtype(dtype):
    A = sa.Diagonal(jnp.arange(1.0, 301))
    start = jnp.asarray(100, dtype)
    agrees(lambda A, i: lax.dynamic_slice_in_dim(A, i, 250, axis=0), A, start)
    agrees(lambda A, i: lax.dynamic_slice(A, (i, i), (200, 100)), A, start)
    agrees(lambda A, i: (A[i], A[i, i], A.at[i, i].get(mode="clip")), A, start)


def test_transforms_of_no_elements():
    agrees(lambda A: (jnp.fft.fft(A), jnp.fft.ifft2(A)), sa.LowRank(jnp.ones((0, 2)), jnp.ones((0, 2))))


# ---- loops and calls -------------------------------------------------------------------------------------------------


def test_a_loop_of_many_with_an_end_for_each():
    def until(v, A):
        return lax.while_loop(lambda s: s[0].sum() < 20, lambda s: (s[0] + A @ s[0], s[1] + 1), (v, 0))

    agrees(lambda A: jax.vmap(lambda v: until(v, A))(jnp.stack([x, 2 * x, 9 * x])), T)
    agrees(lambda S: jax.vmap(lambda a: until(a, a))(S), STACK)
    agrees(lambda A: jax.vmap(lambda row: lax.while_loop(lambda r: r @ r < 9, lambda r: 2 * r, row))(A), T)
    nested = lambda v, A: lax.while_loop(lambda s: s.sum() < 99, lambda s: until(s, A)[0] + s, v)  # noqa: E731
    agrees(lambda A: jax.vmap(lambda v: nested(v, A))(jnp.stack([x, 2 * x])), T)


def test_a_number_of_the_program_is_handed_to_a_function_under_jit():
    agrees(lambda A: jnp.unwrap(A), sa.Permutation(jnp.arange(n)[::-1]))
    agrees(lambda A: (jax.jit(lambda a, s: a * s)(A, 2.0), jax.jit(lambda a, s: (a + s, a % s))(A, 3)), T)


def test_static_zeros_are_told_apart_by_sign():
    run = sa.structured(lambda A, s: jnp.copysign(1.0, s) * A)
    assert run(D, 0.0)[0, 0] == 1
    assert run(D, -0.0)[0, 0] == -1


@pytest.mark.slow
def test_custom_vjp_keeps_no_tracers():
    @jax.custom_vjp
    def doubled(a):
        return 2 * a

    doubled.defvjp(lambda a: (2 * a, None), lambda _, g: (2 * g,))
    with jax.checking_leaks():
        sa.structured(doubled)(D)
        jax.grad(lambda A: jnp.sum(sa.structured(doubled)(A).diag))(D)


T = sa.tridiagonal(jnp.ones(4), jnp.arange(6.0, 11), -2 * jnp.ones(4))


@pytest.mark.parametrize(
    "program",
    [
        lambda A, x: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(A, lower=True), x),
        lambda A, x: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(A), x),
        lambda A, x: jax.scipy.linalg.cholesky(A) @ x,
        lambda A, x: jax.scipy.linalg.cholesky(A, lower=True) @ x,
        lambda A, x: jax.scipy.linalg.solve(A, x, assume_a="pos"),
        lambda A, x: jax.scipy.linalg.solve(A, x, assume_a="pos", lower=True),
        lambda A, x: jnp.linalg.cholesky(A, symmetrize_input=False) @ x,
        lambda A, x: jnp.linalg.cholesky(A) @ x,
        lambda A, x: jnp.linalg.cholesky(A, upper=True) @ x,
        lambda A, x: jnp.linalg.eigvalsh(A),
        lambda A, x: jnp.linalg.eigvalsh(A, symmetrize_input=False),
        lambda A, x: jnp.linalg.eigvalsh(A, UPLO="U", symmetrize_input=False),
        lambda A, x: jnp.linalg.eigh(A).eigenvalues,
    ],
)
@pytest.mark.parametrize("A", [T, sa.Triangular(T.to_jax(), lower=True)], ids=["Banded", "Triangular"])
def test_one_triangle_is_read_where_jax_reads_one(program, A):
    x = jnp.arange(1.0, 6)
    np.testing.assert_allclose(sa.structured(program)(A, x), program(A.to_jax(), x), rtol=1e-10)

    def loss(run):
        return lambda A: jnp.sum(jnp.sin(run(A, x)))

    def symmetric(diagonal, off):  # what JAX's derivatives are made for
        return sa.tridiagonal(off, diagonal, off)

    given = T.diagonals[1], T.diagonals[0]
    found = jax.grad(lambda parts: loss(sa.structured(program))(symmetric(*parts)))(given)
    expected = jax.grad(lambda parts: loss(program)(as_jax(symmetric(*parts))))(given)
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-12)
