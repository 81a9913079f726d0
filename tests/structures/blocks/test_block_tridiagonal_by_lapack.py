"""Block-tridiagonal systems by LAPACK on the host: which method answers, and what both do with hard matrices. The oracle is NumPy."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from support import as_jax

import structarrays as sa
from structarrays._structures.blocks import block_elimination
from structarrays._structures.blocks import block_tridiagonal_by_lapack as by_lapack

COUNT = {6: 300, 24: 30}  # block rows, for blocks below and above the limit


@pytest.fixture(params=sorted(COUNT))
def m(request):
    return request.param


def blocks(rng, m, dtype="float64", batch=(), dominance=4.0):
    count = COUNT[m]

    def normal(*shape):
        values = rng.normal(size=shape)
        return (values + 1j * rng.normal(size=shape) if "complex" in dtype else values).astype(dtype)

    lower, upper = normal(*batch, count - 1, m, m), normal(*batch, count - 1, m, m)
    return lower, normal(*batch, count, m, m) + np.asarray(dominance * m * np.eye(m), dtype), upper


def structured(parts):
    return sa.block_tridiagonal(*map(jnp.asarray, parts))


def definite(rng, m, dtype="float64", batch=()):
    lower, diagonal, _ = blocks(rng, m, dtype, batch)
    upper = np.conj(np.swapaxes(lower, -1, -2))
    return lower, diagonal + np.conj(np.swapaxes(diagonal, -1, -2)), upper


def componentwise_error(a, x, b):
    """The componentwise backward error, in units of rounding."""
    return np.max(np.abs(a @ x - b) / (np.abs(a) @ np.abs(x) + np.abs(b))) / np.finfo(x.dtype).eps


def solve(A, b):
    return np.asarray(jax.jit(lambda A, b: as_jax(sa.linalg.solve(A, sa.asarray(b))))(A, jnp.asarray(b)))


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "complex64"])
@pytest.mark.parametrize("kind", ["dominant", "pivots", "definite"])
def test_solutions(rng, m, kind, dtype):
    parts = definite(rng, m, dtype) if kind == "definite" else blocks(rng, m, dtype, dominance=4.0 * (kind != "pivots"))
    A = structured(parts)
    dense, b = np.asarray(A.to_jax()), rng.normal(size=(A.shape[0], 2)).astype(dtype)
    A = sa.assume(A, "positive_definite") if kind == "definite" else A
    for matrix, a in ((A, dense), (A.mT, dense.T)):
        x = solve(matrix, b)
        norm = np.linalg.norm(a, np.inf) * np.linalg.norm(x, np.inf) + np.linalg.norm(b, np.inf)
        assert np.linalg.norm(a @ x - b, np.inf) < 5 * np.finfo(dtype).eps * norm


def test_one_call_for_a_batch(rng, m):
    parts = blocks(rng, m, batch=(3,))
    A, b = structured(parts), rng.normal(size=(3, COUNT[m] * m))
    function = jax.jit(jax.vmap(lambda A, b: as_jax(sa.linalg.solve(A, sa.asarray(b)))))
    assert function.lower(A, b).as_text().count("xla_buffer_python_cpu_callback") == 1
    expected = np.linalg.solve(np.asarray(A.to_jax()), b[..., None])[..., 0]
    np.testing.assert_allclose(function(A, jnp.asarray(b)), expected, rtol=1e-10, atol=1e-12)


def test_other_programs(rng, m):
    """Exported programs, and code under `sa.host_calls(False)`, have the same results without the host."""
    A, b = structured(blocks(rng, m)), rng.normal(size=COUNT[m] * m)
    expected = solve(A, b)

    def function(A, b):
        return as_jax(sa.linalg.solve(A, sa.asarray(b)))

    program = export.deserialize(export.export(jax.jit(function))(A, b).serialize())
    np.testing.assert_allclose(program.call(A, b), expected, rtol=1e-11, atol=1e-13)
    with sa.host_calls(False):
        np.testing.assert_allclose(jax.jit(function)(A, b), expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("kind", ["general", "definite"])
def test_derivatives(rng, m, kind):
    """Forward, reverse and second derivatives, against the loops of XLA."""
    parts = definite(rng, m) if kind == "definite" else blocks(rng, m)
    A, (b, c) = structured(parts), rng.normal(size=(2, COUNT[m] * m))
    A = sa.assume(A, "positive_definite") if kind == "definite" else A

    def value(A, b):
        return jnp.sum(jnp.sin(as_jax(sa.linalg.solve(A, sa.asarray(b)))))

    def derivatives(A, b):
        gradient = jax.grad(value, argnums=(0, 1))(A, b)
        forward = jax.jvp(value, (A, b), (A, c))[1]
        second = jax.jvp(lambda b: jax.grad(value, argnums=1)(A, b), (b,), (c,))[1]
        return jax.tree.leaves((gradient, forward, second))

    found = jax.jit(derivatives)(A, b)
    with sa.host_calls(False):
        expected = jax.jit(derivatives)(A, b)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-12)


class TestFactors:
    """Factors that are kept for derivatives."""

    @pytest.fixture
    def factorizations(self, monkeypatch):
        """The number of calls of LAPACK's factorizations, by name."""
        counts, functions = Counter(), by_lapack.lapack_functions

        def counted(name, function):
            def call(*args, **options):
                counts[name] += 1
                return function(*args, **options)

            return call if name.endswith("trf") else function

        def counting(*names, dtype):
            return [counted(*pair) for pair in zip(names, functions(*names, dtype=dtype), strict=True)]

        jax.clear_caches()  # compiled programs call what they were traced with
        monkeypatch.setattr(by_lapack, "lapack_functions", counting)
        yield counts
        jax.clear_caches()

    @pytest.mark.parametrize("kind", ["general", "definite"])
    @pytest.mark.parametrize("mode", ["eager", "jit", "disable_jit", "scan"])
    def test_one_factorization_for_a_gradient(self, rng, m, kind, mode, factorizations):
        parts = definite(rng, m) if kind == "definite" else blocks(rng, m)
        A, b = structured(parts), jnp.asarray(rng.normal(size=COUNT[m] * m))
        A = sa.assume(A, "positive_definite") if kind == "definite" else A
        gradient = jax.value_and_grad(lambda A, b: jnp.sum(as_jax(sa.linalg.solve(A, sa.asarray(b))) ** 2), argnums=1)
        if mode == "jit":
            value, slope = jax.jit(gradient)(A, b)
        elif mode == "scan":
            value, slope = (found[0] for found in jax.lax.scan(lambda c, b: (c, gradient(A, b)), 0, b[None])[1])
        else:
            with jax.disable_jit(mode == "disable_jit"):
                value, slope = gradient(A, b)
        jax.block_until_ready((value, slope))
        name = "pbtrf" if kind == "definite" else "gbtrf" if m < by_lapack._BY_BLOCKS else "getrf"
        assert factorizations == {name: COUNT[m] if name == "getrf" else 1}
        dense = np.asarray(A.to_jax())
        x = np.linalg.solve(dense, b)
        np.testing.assert_allclose(value, np.sum(x**2), rtol=1e-11)
        np.testing.assert_allclose(slope, np.linalg.solve(dense.T, 2 * x), rtol=1e-9, atol=1e-12)

    def test_no_factors_are_kept_without_derivatives(self, rng, m):
        A, b = structured(blocks(rng, m)), jnp.asarray(rng.normal(size=COUNT[m] * m))
        program = jax.jit(lambda A, b: as_jax(sa.linalg.solve(A, sa.asarray(b)))).lower(A, b).as_text()
        assert program.count("xla_buffer_python_cpu_callback") == 1

    @pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "complex64"])
    @pytest.mark.parametrize("kind", ["dominant", "pivots", "definite"])
    @pytest.mark.parametrize("decades", [0, 6])
    def test_solutions(self, rng, m, kind, dtype, decades):
        """The residuals of both linear systems, of matrices with graded block rows too."""
        if kind == "definite":
            parts = definite(rng, m, dtype)
        else:
            parts = blocks(rng, m, dtype, dominance=4.0 * (kind != "pivots"))
            scales = np.logspace(0, -decades, COUNT[m])[:, None, None].astype(np.finfo(dtype).dtype)
            parts = parts[0] * scales[1:], parts[1] * scales, parts[2] * scales[:-1]
        a, b = np.asarray(structured(parts).to_jax()), rng.normal(size=(COUNT[m] * m, 2)).astype(dtype)
        for mapped in (False, True):
            solution, pullback = self.vjp(parts, b, kind == "definite", mapped)
            for matrix, x in ((a, solution), (a.T, pullback)):
                norm = np.linalg.norm(matrix, np.inf) * np.linalg.norm(x, np.inf) + np.linalg.norm(b, np.inf)
                assert np.linalg.norm(matrix @ x - b, np.inf) < 10 * np.finfo(dtype).eps * norm

    def vjp(self, parts, b, positive_definite, mapped):
        """The solution and ``A^-T b``, from one factorization."""
        A = structured(parts)
        A = sa.assume(A, "positive_definite") if positive_definite else A

        def both(A, b):
            x, pullback = jax.vjp(lambda b: as_jax(sa.linalg.solve(A, sa.asarray(b))), b)
            return x, pullback(b)[0]

        if mapped:
            A, b = jax.tree.map(lambda a: jnp.stack([2 * a, a]), A), jnp.stack([b, b])
        found = jax.jit(jax.vmap(both) if mapped else both)(A, b)
        return [np.asarray(x[1] if mapped else x) for x in found]

    @pytest.mark.parametrize("tiny", [0.0, 1e-300, 1e-14, 1e-7])
    def test_blocks_that_are_nearly_singular(self, rng, m, tiny):
        """The factors by blocks are not used, or not accepted."""
        lower, diagonal, upper = blocks(rng, m)
        diagonal[7] = tiny * np.eye(m)
        b = rng.normal(size=(COUNT[m] * m, 1))
        a = np.asarray(structured((lower, diagonal, upper)).to_jax())
        for matrix, x in zip((a, a.T), self.vjp((lower, diagonal, upper), b, False, False), strict=True):
            assert componentwise_error(matrix, x, b) < 1e3

    @pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
    @pytest.mark.parametrize("kind", ["general", "definite"])
    def test_scales(self, rng, m, kind, scale):
        parts = definite(rng, m) if kind == "definite" else blocks(rng, m)
        a, b = np.asarray(structured(parts).to_jax()), rng.normal(size=(COUNT[m] * m, 1))
        found = self.vjp([scale * part for part in parts], scale * b, kind == "definite", False)
        for matrix, x in zip((a, a.T), found, strict=True):
            assert componentwise_error(matrix, x, b) < 100

    @pytest.mark.parametrize("kind", ["general", "definite"])
    @pytest.mark.parametrize("bad", ["singular", "nan"])
    def test_singular_matrices_and_nan(self, rng, m, kind, bad):
        parts = [a.copy() for a in (definite(rng, m) if kind == "definite" else blocks(rng, m))]
        for part, row in ((0, 1), (0, 2), (1, 2), (2, 1), (2, 2)):
            parts[part][row] = 0
        if bad == "nan":
            parts[1][2, 0, 0] = np.nan
        A, b = structured(parts), jnp.ones(COUNT[m] * m)
        A = sa.assume(A, "positive_definite") if kind == "definite" else A

        def value(b):
            return jnp.sum(as_jax(sa.linalg.solve(A, sa.asarray(b))))

        found, slope = jax.jit(jax.value_and_grad(value))(b)
        assert np.isnan(found)
        assert np.isnan(slope).all() if bad == "singular" else np.isnan(slope).any()

    def test_factors_of_other_programs_are_computed_again(self, rng, m):
        """A derivative may run in another program than the factorization, which has no factors of LAPACK."""
        A, b = structured(blocks(rng, m)), jnp.asarray(rng.normal(size=COUNT[m] * m))
        x, pullback = jax.vjp(lambda b: as_jax(sa.linalg.solve(A, sa.asarray(b))), b)
        program = export.deserialize(export.export(jax.jit(lambda c: pullback(c)[0]))(x).serialize())
        expected = np.linalg.solve(np.asarray(A.to_jax()).T, x)
        np.testing.assert_allclose(program.call(x), expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(pullback(x)[0], expected, rtol=1e-9, atol=1e-12)


def test_singular_indefinite_and_nan(rng, m):
    lower, diagonal, upper = blocks(rng, m)
    b = sa.ones(COUNT[m] * m)
    for row in (0, COUNT[m] // 2, COUNT[m] - 1):
        singular = [a.copy() for a in (lower, diagonal, upper)]
        singular[1][row, :, 1] = 0
        if row:
            singular[2][row - 1, :, 1] = 0
        if row < COUNT[m] - 1:
            singular[0][row, :, 1] = 0
        A = structured(singular)
        assert np.isnan(solve(A, b)).all()
        with pytest.raises(np.linalg.LinAlgError):
            sa.linalg.solve(A, b)
        bad = [a.copy() for a in definite(rng, m)]
        bad[1][row, 1, 1] = -1
        A = sa.assume(structured(bad), "positive_definite")
        assert np.isnan(solve(A, b)).all()
        with pytest.raises(np.linalg.LinAlgError):
            sa.linalg.solve(A, b)
        for parts, assumption in ((blocks(rng, m), None), (definite(rng, m), "positive_definite")):
            for value in (np.nan, np.inf):
                bad = [a.copy() for a in parts]
                bad[1][row, 1, 1] = value
                A = structured(bad)
                A = sa.assume(A, assumption) if assumption else A
                x = np.asarray(sa.linalg.solve(A, b))  # raises nothing
                assert np.isnan(x).any() or (np.isinf(value) and x[row * m + 1] == 0)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
@pytest.mark.parametrize("kind", ["general", "definite"])
def test_scales(rng, m, kind, scale):
    A = structured(definite(rng, m) if kind == "definite" else blocks(rng, m))
    dense, b = np.asarray(A.to_jax()), rng.normal(size=COUNT[m] * m)
    A = sa.assume(scale * A, "positive_definite") if kind == "definite" else scale * A
    assert componentwise_error(dense, solve(A, scale * b), b) < 100


class TestByBlocks:
    """Elimination with pivots from the diagonal blocks."""

    M = 24

    def accepted(self, parts, b):
        import scipy.linalg

        getrf, getrs = scipy.linalg.get_lapack_funcs(("getrf", "getrs"), dtype=b.dtype)
        with np.errstate(all="ignore"):
            return block_elimination.solve((getrf, getrs), *parts, b, False)

    def test_dominant_matrices_are_accepted(self, rng):
        parts, b = blocks(rng, self.M), rng.normal(size=(COUNT[self.M] * self.M, 3))
        assert componentwise_error(np.asarray(as_jax(structured(parts))), self.accepted(parts, b), b) < 100

    @pytest.mark.parametrize("tiny", [0.0, 1e-300, 1e-14, 1e-7])
    def test_unstable_ones_are_not(self, rng, tiny):
        """A diagonal block is nearly singular, but the matrix is not."""
        lower, diagonal, upper = blocks(rng, self.M)
        diagonal[7] = tiny * np.eye(self.M)
        b = rng.normal(size=(COUNT[self.M] * self.M, 1))
        A = structured((lower, diagonal, upper))
        dense = np.asarray(A.to_jax())
        assert self.accepted((lower, diagonal, upper), b) is None
        assert componentwise_error(dense, solve(A, b), b) < 1e3
        np.testing.assert_allclose(solve(A, b), np.linalg.solve(dense, b), rtol=1e-8, atol=1e-10)

    def test_a_large_residual_is_not_accepted(self, rng, monkeypatch):
        """The limit of the multipliers only saves time."""
        monkeypatch.setattr(block_elimination, "_LARGEST_MULTIPLIER", np.inf)
        lower, diagonal, upper = blocks(rng, self.M)
        diagonal[7] = 1e-7 * np.eye(self.M)
        b = rng.normal(size=(COUNT[self.M] * self.M, 1))
        assert self.accepted((lower, diagonal, upper), b) is None

    @pytest.mark.parametrize("decades", [6, 100, 250])
    def test_graded_rows(self, rng, decades):
        """Each row of the solution's residual is small relative to the row."""
        scales = np.logspace(0, -decades, COUNT[self.M])[:, None, None]
        lower, diagonal, upper = blocks(rng, self.M)
        parts = lower * scales[1:], diagonal * scales, upper * scales[:-1]
        b = rng.normal(size=(COUNT[self.M] * self.M, 1)) * np.repeat(scales.ravel(), self.M)[:, None]
        x = solve(structured(parts), b)
        assert componentwise_error(np.asarray(as_jax(structured(parts))), x, b) < 100
