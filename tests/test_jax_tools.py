"""Tools of JAX that take any pytree: references, debugging, checks, donation, callbacks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify
from support import dense

import structarrays as sa

n = 6
v = np.arange(1.0, n + 1)


def banded():
    return sa.tridiagonal(-np.ones(n - 1), np.full(n, 4.0), -np.ones(n - 1))


MATRICES = {
    "Banded": banded,
    "wide Banded": lambda: sa.Banded([-np.ones(n - 4), np.full(n, 4.0), np.ones(n - 4)], (-4, 0, 4), (n, n)),
    "Sparse": lambda: sa.Sparse.from_dense(dense(banded())),
    "Kronecker": lambda: sa.Kronecker(sa.Diagonal([1.0, 2.0]), np.eye(3) + 0.1),
    "LowRank": lambda: sa.eye(n) + sa.LowRank(np.ones((n, 1)), np.ones((n, 1))),
}
each_matrix = pytest.mark.parametrize("matrix", MATRICES)


class TestReferences:
    """`jax.Ref`: one reference for each parameter."""

    @each_matrix
    def test_read_and_write(self, matrix):
        A = MATRICES[matrix]()
        refs = jax.tree.map(jax.new_ref, A)

        @jax.jit
        def double(refs):
            jax.tree.map(lambda ref: ref.__setitem__(..., 2 * ref[...]), refs)

        double(refs)
        found = jax.tree.map(lambda ref: ref[...], refs)
        assert sa.same_structure(found, A)
        for new, old in zip(jax.tree.leaves(found), jax.tree.leaves(A), strict=True):
            np.testing.assert_array_equal(new, 2 * old)

    def test_accumulation_in_a_scan(self):
        A = banded()
        total = jax.tree.map(lambda x: jax.new_ref(jnp.zeros_like(x)), A)

        def step(carry, scale):
            jax.tree.map(lambda ref, x: ref.__setitem__(..., ref[...] + scale * x), total, A)
            return carry, None

        jax.lax.scan(step, None, jnp.arange(4.0))
        np.testing.assert_allclose(dense(jax.tree.map(lambda ref: ref[...], total)), 6 * dense(A))

    @pytest.mark.parametrize(
        "use",
        [
            lambda r: r @ v,
            lambda r: v @ r,
            lambda r: sa.exp(r),
            lambda r: sa.sum(r),
            lambda r: sa.linalg.solve(r, v),
            np.asarray,
        ],
        ids=["matmul", "reflected", "exp", "sum", "solve", "numpy"],
    )
    @pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
    def test_functions_say_how_to_read_them(self, use, compiled):
        refs = jax.tree.map(jax.new_ref, banded())
        with pytest.raises(
            TypeError, match=r"parameters are references \(jax.Ref\); read their values with jax.tree.map"
        ):
            (jax.jit(use) if compiled else use)(refs)

    def test_repr(self):
        assert repr(jax.tree.map(jax.new_ref, sa.Diagonal([1.0, 2.0]))).startswith("Diagonal(Ref(")


class TestDebugging:
    @each_matrix
    def test_print(self, matrix, capfd):
        A = MATRICES[matrix]()
        jax.jit(lambda A: jax.debug.print("A is\n{}", A))(A)
        jax.effects_barrier()
        assert capfd.readouterr().out.strip() == f"A is\n{A}"

    @each_matrix
    def test_callback(self, matrix):
        A, seen = MATRICES[matrix](), []
        jax.jit(lambda A: jax.debug.callback(seen.append, A))(A)
        jax.effects_barrier()
        assert sa.same_structure(seen[0], A)
        np.testing.assert_array_equal(np.asarray(seen[0]), dense(A))

    @each_matrix
    def test_host_function_of_the_matrix(self, matrix):
        A = MATRICES[matrix]()
        shape = jax.ShapeDtypeStruct((n,), A.dtype)
        found = jax.jit(lambda A: jax.pure_callback(lambda A: np.asarray(A) @ v.astype(A.dtype), shape, A))(A)
        np.testing.assert_allclose(found, dense(A) @ v, rtol=1e-6)


class TestCheckify:
    CHECKS = {"floats": checkify.float_checks, "all": checkify.all_checks | checkify.user_checks}

    @each_matrix
    @pytest.mark.parametrize("checks", CHECKS)
    @pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
    def test_results_do_not_change(self, matrix, checks, compiled):
        def program(A, v):
            return A @ v, sa.linalg.solve(A, v), A[jnp.asarray(1)]

        A = MATRICES[matrix]()
        checked = checkify.checkify(program, errors=self.CHECKS[checks])
        error, (product, solution, row) = (jax.jit(checked) if compiled else checked)(A, jnp.asarray(v))
        assert error.get() is None
        np.testing.assert_allclose(product, dense(A) @ v, rtol=1e-10)
        np.testing.assert_allclose(solution, np.linalg.solve(dense(A), v), rtol=1e-8)
        np.testing.assert_allclose(row, dense(A)[1], rtol=1e-10)

    def test_a_singular_matrix_is_found(self):
        checked = checkify.checkify(lambda A, b: sa.linalg.solve(A, b), errors=checkify.float_checks)
        error, _ = jax.jit(checked)(sa.Diagonal([1.0, 0.0]), jnp.ones(2))
        with pytest.raises(checkify.JaxRuntimeError, match="nan generated"):
            error.throw()

    def test_checks_of_users(self):
        def program(A, v):
            checkify.check(jnp.min(A @ v) > 0, "the product must be positive, got {x}", x=jnp.min(A @ v))
            return A @ v

        error, _ = jax.jit(checkify.checkify(program))(banded(), -jnp.ones(n))
        assert "the product must be positive, got -3" in error.get()


class TestDonation:
    @each_matrix
    def test_buffers_are_reused(self, matrix):
        A = jax.tree.map(jnp.copy, MATRICES[matrix]())
        expected = 2 * dense(A)
        double = jax.jit(lambda A: jax.tree.map(lambda x: 2 * x, A), donate_argnums=0)
        found = double(A)
        assert all(leaf.is_deleted() for leaf in jax.tree.leaves(A))
        if A.linear:
            np.testing.assert_allclose(dense(found), expected)
        assert "deleted" in repr(A)

    def test_a_donated_array_raises(self):
        A = jax.tree.map(jnp.copy, banded())
        jax.jit(lambda A: 2 * A, donate_argnums=0)(A)
        with pytest.raises(RuntimeError, match="deleted"):
            A @ v
