"""Dense results follow the operands: a `jax.Array` for programs of JAX, a `Dense` for generic code."""

import asyncio
import collections
import copy
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import dense

import structarrays as sa

n = 4
ONES = np.ones(n)


def banded():
    return sa.tridiagonal(-np.ones(n - 1), np.full(n, 4.0), -np.ones(n - 1))


MATRICES = {
    "Diagonal": lambda: sa.Diagonal(np.arange(1.0, n + 1)),
    "Banded": banded,
    "Sparse": lambda: sa.Sparse.from_dense(dense(banded())),
    "Toeplitz": lambda: sa.Toeplitz(0.5 ** np.arange(n)),
    "LowRank": lambda: sa.eye(n) + sa.LowRank(np.ones((n, 1)), np.ones((n, 1))),
    "Kronecker": lambda: sa.Kronecker(sa.eye(2), sa.tridiagonal([1.0], [3.0, 3.0], [1.0])),
    "Triangular": lambda: sa.Triangular(np.tril(np.ones((n, n))) + np.eye(n)),
    "Permutation": lambda: sa.Permutation([1, 0, 3, 2]),
    "singular base": lambda: sa.Diagonal([0.0, 1.0, 2.0, 3.0]) + sa.LowRank(np.ones((n, 1)), np.ones((n, 1))),
}
each_matrix = pytest.mark.parametrize("matrix", MATRICES)

WITH_A_VECTOR = {
    "matmul": lambda A, v: A @ v,
    "matmul from the left": lambda A, v: v @ A,
    "function": lambda A, v: sa.matmul(A, v),
    "solve": lambda A, v: sa.linalg.solve(A, v),
    "vecdot": lambda A, v: sa.vecdot(A, v),
    "tensordot": lambda A, v: sa.tensordot(A, v, axes=1),
    "where": lambda A, v: sa.where(v > 0, v, A),
    "atan2": lambda A, v: sa.atan2(A, v),
    "lstsq": lambda A, v: sa.linalg.lstsq(A, v).x,
    "expm_multiply": lambda A, v: sa.linalg.expm_multiply(A, v),
}
OF_THE_MATRIX = {
    "sum": lambda A: sa.sum(A),
    "method": lambda A: A.max(axis=0),
    "logdet": lambda A: sa.linalg.logdet(A),
    "slogdet": lambda A: sa.linalg.slogdet(A),
    "row": lambda A: A[0],
    "element": lambda A: A[1, 1],
    "sort": lambda A: sa.sort(A),
    "unique": lambda A: sa.unique_all(A),
    "nonzero": lambda A: sa.nonzero(A),
    "eigenvalues": lambda A: sa.linalg.eigvalsh(A + A.mT),
    "singular values": lambda A: sa.linalg.svdvals(A),
}


def parts(result):
    return [x for x in jax.tree.leaves(result, is_leaf=lambda x: isinstance(x, sa.Array))]


def types(result):
    """The types of the dense parts of a result."""
    found = {type(x) if isinstance(x, sa.Array) else jax.Array for x in parts(result)}
    return {t for t in found if t in (sa.Dense, jax.Array)}


def only(result, kind):
    assert types(result) <= {kind}, types(result)
    return parts(result)


@each_matrix
@pytest.mark.parametrize("name", WITH_A_VECTOR)
def test_results_follow_the_operands(matrix, name):
    A, f = MATRICES[matrix](), WITH_A_VECTOR[name]
    expected = [dense(x) for x in only(f(A, sa.asarray(ONES)), sa.Dense)]
    of_jax = only(f(A, jnp.asarray(ONES)), jax.Array)
    compiled = only(jax.jit(f)(A, jnp.asarray(ONES)), jax.Array)
    of_numpy = only(f(A, ONES), sa.Dense)
    with sa.dense_results("jax"):
        under_policy = only(f(A, ONES), jax.Array)
        only(f(A, sa.asarray(ONES)), sa.Dense)
    with sa.record():
        recorded = only(f(A, jnp.asarray(ONES)), jax.Array)
    for found in (of_jax, compiled, of_numpy, under_policy, recorded):
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(dense(x), y, rtol=1e-10, atol=1e-12)


@each_matrix
@pytest.mark.parametrize("name", OF_THE_MATRIX)
def test_results_of_the_matrix_follow_the_policy(matrix, name):
    A, f = MATRICES[matrix](), OF_THE_MATRIX[name]
    expected = [dense(x) for x in only(f(A), sa.Dense)]
    with sa.dense_results("jax"):
        found = only(f(A), jax.Array)
        with sa.dense_results("array"):
            only(f(A), sa.Dense)
        only(f(A.to_dense()), sa.Dense)
        with sa.record():
            recorded = only(f(A), jax.Array)
    only(f(A), sa.Dense)
    for x, y, z in zip(found, recorded, expected, strict=True):
        np.testing.assert_allclose(dense(x), z, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(dense(y), z, rtol=1e-10, atol=1e-12)


@each_matrix
@pytest.mark.parametrize("function", [jnp.sum, jnp.mean, jnp.trace, jnp.linalg.det, lambda A: jnp.var(A, axis=0)])
def test_numerical_routines_do_not_follow_the_policy(matrix, function):
    """Routines call functions of the namespace on their parts, and expect arrays of the namespace."""
    A = MATRICES[matrix]()
    with sa.dense_results("jax"):
        found = sa.structured(function)(A)
        sa.explain(sa.structured(function), A)
        sa.explain(sa.sum, A)
        with sa.record():
            slopes = jax.grad(lambda A: sa.sum(A) + sa.var(A))(A)
    np.testing.assert_allclose(found, function(A.to_jax()), rtol=1e-10)
    assert type(slopes) is type(A)


@each_matrix
def test_index_arrays_are_operands(matrix):
    A, rows = MATRICES[matrix](), np.asarray([1, 0])
    assert isinstance(A[rows, :2], sa.Array)
    for key in ((jnp.asarray(rows), 0), (0, jnp.asarray(rows)), jnp.asarray(1)):
        assert isinstance(A[key], jax.Array)
        np.testing.assert_allclose(A[key], dense(A)[jax.tree.map(np.asarray, key)])
        assert isinstance(jax.jit(lambda A, key: A[key])(A, key), jax.Array)
    assert type(A[sa.asarray(rows), 0]) is sa.Dense and type(A[rows, 0]) is sa.Dense
    total = jax.lax.fori_loop(0, n, lambda i, total: total + A[i], jnp.zeros(n))
    np.testing.assert_allclose(total, dense(A).sum(0))


class TestWholeNamespace:
    """Functions of arrays of JAX alone return arrays of JAX, and never a `Dense`."""

    x = np.asarray([[0.5, 0.25], [0.25, 0.75]])
    CREATE = {
        "asarray",
        "from_dlpack",
        "full",
        "full_like",
        "linspace",
        "arange",
        "zeros_like",
        "ones_like",
        "empty_like",
    }
    MORE = {
        "broadcast_to": ((2, 2),),
        "astype": (np.dtype("float32"),),
        "permute_dims": ((1, 0),),
        "reshape": ((4,),),
        "expand_dims": (),
        "moveaxis": (0, 1),
        "repeat": (2,),
        "roll": (1,),
        "tile": ((2, 1),),
        "clip": (0.3, 0.6),
    }

    def names(self):
        for name, f in vars(sa).items():
            if (
                name in sa.__all__
                and callable(f)
                and not isinstance(f, type)
                and f.__class__.__name__.endswith("Function")
            ):
                yield name, f

    def result(self, f, convert):
        x = convert(self.x)
        name = f.__name__
        if name in ("concat", "stack", "meshgrid", "broadcast_arrays"):
            return f([x, x]) if name in ("concat", "stack") else f(x[0], x[1])
        if name in ("take", "take_along_axis"):
            return f(x, convert(np.zeros((2, 2) if name == "take_along_axis" else 2, int)), axis=0)
        if name == "searchsorted":
            return f(x[0], x[1])
        if name == "squeeze":
            return f(x[None], axis=0)
        if name == "where":
            return f(x > 0.3, x, x)
        if "bitwise" in name or "logical" in name:
            x = x.astype(bool) if "logical" in name else x.astype(int)
            return f(x) if name.endswith(("invert", "not")) else f(x, x)
        two = [p for p in ("x1", "x2") if p in f.arrays]
        more = {"cumulative_sum": {"axis": 0}, "cumulative_prod": {"axis": 0}}.get(name, {})
        return f(x, x) if len(two) == 2 else f(x, *self.MORE.get(name, ()), **more)

    def test_functions(self):
        tested = 0
        for name, f in self.names():
            if name in self.CREATE | {"to_dense", "convert", "join"}:
                continue
            expected = self.result(f, sa.asarray)
            only(expected, sa.Dense)
            for found in (
                self.result(f, jnp.asarray),
                jax.jit(lambda x, f=f: self.result(f, lambda _: x))(self.x)
                if name not in ("take", "take_along_axis")
                else self.result(f, jnp.asarray),
            ):
                for a, b in zip(only(found, jax.Array), parts(expected), strict=True):
                    np.testing.assert_allclose(dense(a), dense(b), rtol=1e-6)
            only(self.result(f, np.asarray), sa.Dense)
            tested += 1
        assert tested > 90

    @pytest.mark.parametrize(
        "name", ["astype", "unique_all", "unique_counts", "unique_inverse", "unique_values", "nonzero"]
    )
    def test_functions_that_are_not_compiled(self, name):
        f, more = getattr(sa, name), (np.dtype("float32"),) if name == "astype" else ()
        assert types(f(jnp.asarray(self.x), *more)) == {jax.Array}
        assert types(f(self.x, *more)) == types(f(sa.asarray(self.x), *more)) == {sa.Dense}
        with sa.dense_results("jax"):
            assert types(f(self.x, *more)) == {jax.Array}
            assert types(f(sa.asarray(self.x), *more)) == {sa.Dense}

    @pytest.mark.parametrize(
        "name",
        [
            "cholesky",
            "det",
            "eigh",
            "eigvalsh",
            "inv",
            "qr",
            "slogdet",
            "svd",
            "svdvals",
            "trace",
            "expm",
            "sqrtm",
            "lu",
            "lu_factor",
            "cho_factor",
            "ldl",
            "matrix_norm",
            "vector_norm",
            "pinv",
            "matrix_rank",
            "logdet",
            "diagonal",
        ],
    )
    def test_linear_algebra(self, name):
        f = getattr(sa.linalg, name)
        assert sa.Dense not in types(f(jnp.asarray(self.x)))
        assert jax.Array not in types(f(sa.asarray(self.x))) or name in ("lu_factor",)
        assert jax.Array not in types(f(self.x)) or name in ("lu_factor",)

    def test_factors_solve(self):
        b = jnp.ones(2)
        for factor, solve in ((sa.linalg.cho_factor, sa.linalg.cho_solve), (sa.linalg.lu_factor, sa.linalg.lu_solve)):
            for x in (jnp.asarray(self.x), sa.Symmetric(self.x)):
                found = solve(factor(x), b)
                np.testing.assert_allclose(dense(found), np.linalg.solve(self.x, np.ones(2)))
                with sa.record():
                    assert isinstance(solve(factor(x), b), jax.Array)
                assert isinstance(found, jax.Array) and isinstance(jax.jit(solve)(factor(x), b), jax.Array)
                for ours in (sa.ones(2), np.ones(2)):
                    assert type(solve(factor(x), ours)) is sa.Dense

    OTHERS = {
        "repeat": lambda x, v: sa.repeat(v, np.asarray([1, 2, 1, 0])),
        "solve_toeplitz": lambda x, v: sa.linalg.solve_toeplitz(x[0], v),
        "matmul_toeplitz": lambda x, v: sa.linalg.matmul_toeplitz((x[0], x[0]), v),
        "numpy.dot": lambda x, v: np.dot(banded(), v),
        "numpy.linalg.solve": lambda x, v: np.linalg.solve(banded(), v),
        "numpy.vdot": lambda x, v: np.vdot(banded()[0], v) if isinstance(v, sa.Array) else np.inner(banded(), v),
        "numpy.add": lambda x, v: np.add(banded(), x),
        "numpy.concatenate": lambda x, v: np.concatenate([banded(), x]),
    }

    @pytest.mark.parametrize("name", OTHERS)
    def test_functions_that_convert_their_operands(self, name):
        f, host = self.OTHERS[name], np.eye(n) + 0.1
        expected = parts(f(sa.asarray(host), sa.ones(n)))
        assert types(expected) == {sa.Dense}
        found = f(jnp.asarray(host), jnp.ones(n))
        assert isinstance(found, jax.Array)
        if name != "numpy.vdot":
            np.testing.assert_allclose(found, dense(expected[0]))

    def test_same_structure(self):
        x = jnp.ones(2)
        assert sa.same_structure(x, 2 * x) and not sa.same_structure(x, sa.ones(2))
        assert not sa.same_structure(sa.eye(2), jnp.eye(2))
        with pytest.raises(TypeError, match="same_structure: y must be an array of structarrays or JAX, got ndarray"):
            sa.same_structure(x, np.ones(2))

    def test_mixed_operands(self):
        x, y = jnp.asarray(self.x), sa.asarray(self.x)
        assert type(sa.add(x, y)) is type(x + y) is type(y + x) is sa.Dense
        assert isinstance(sa.add(x, self.x), jax.Array)
        assert isinstance(sa.concat([x, self.x, sa.eye(2)]), jax.Array)
        assert type(sa.concat([x, y])) is sa.Dense
        pair = collections.namedtuple("pair", "first second")
        assert isinstance(sa.concat(pair(x, x)), jax.Array) and type(sa.concat(pair(x, y))) is sa.Dense
        assert isinstance(sa.multiply(2.0, x), jax.Array) and type(sa.exp(2.0)) is sa.Dense
        assert type(sa.eye(2) * x) is sa.Diagonal and type(sa.eye(2) + 1.0) is not sa.Dense
        assert type(sa.asarray(x)) is sa.Dense and type(sa.linspace(x[0, 0], x[1, 1], 3)) is sa.Dense


class TestInPlace:
    def test_a_structured_array_keeps_its_handle(self):
        A = same = banded()
        A += jnp.ones((n, n))
        assert A is same and isinstance(A, sa.Array)
        np.testing.assert_allclose(dense(A), dense(banded()) + 1)
        A = same = sa.Diagonal(ONES)
        A @= jnp.ones((n, n))
        assert A is same
        np.testing.assert_allclose(dense(A), np.ones((n, n)))

    def test_an_array_of_jax_stays_one(self):
        x = jnp.ones((n, n))
        x += banded()
        assert isinstance(x, jax.Array)
        np.testing.assert_allclose(x, dense(banded()) + 1)

    def test_the_argument_out_of_numpy(self):
        out = sa.zeros((n, n))
        assert np.add(banded(), jnp.ones((n, n)), out=out) is out
        np.testing.assert_allclose(dense(out), dense(banded()) + 1)

        @jax.jit
        def program(x):
            out = sa.zeros((n, n))
            np.add(banded(), x, out=out)
            return out

        np.testing.assert_allclose(dense(program(jnp.ones((n, n)))), dense(banded()) + 1)


class TestPolicy:
    def test_compiled_functions_are_traced_for_each_policy(self):
        f = jax.jit(lambda A: sa.sum(A))
        D = sa.Diagonal(ONES)
        assert type(f(D)) is sa.Dense
        with sa.dense_results("jax"):
            assert isinstance(f(D), jax.Array)
        assert type(f(D)) is sa.Dense

    def test_default_of_the_process(self):
        D, seen = sa.Diagonal(ONES), []
        with sa.densify("allow"):
            pass  # a policy of this task does not hide the default
        sa.set_dense_results("jax")
        try:
            thread = threading.Thread(target=lambda: seen.append(sa.sum(D)))
            thread.start()
            thread.join()
            assert isinstance(sa.sum(D), jax.Array) and isinstance(seen[0], jax.Array)
            assert isinstance(jax.jit(lambda D: sa.sum(D))(D), jax.Array)
            with sa.densify("error"), sa.dense_results("array"):
                assert type(sa.sum(D)) is sa.Dense
            with sa.densify("error"):
                assert isinstance(sa.sum(D), jax.Array)
        finally:
            sa.set_dense_results("array")
        assert type(sa.sum(D)) is sa.Dense and type(jax.jit(lambda D: sa.sum(D))(D)) is sa.Dense

    def test_tasks_do_not_share_a_policy(self):
        D = sa.Diagonal(ONES)

        async def task(kind, expected):
            with sa.dense_results(kind):
                for _ in range(20):
                    await asyncio.sleep(0)
                    assert types(sa.sum(D)) == {expected}

        async def main():
            await asyncio.gather(*(task(*pair) for pair in (("jax", jax.Array), ("array", sa.Dense)) * 3))

        asyncio.run(main())

    @pytest.mark.parametrize("kind", ["numpy", None, 1])
    def test_bad_arguments(self, kind):
        with (
            pytest.raises(ValueError, match='dense_results: kind must be "array" or "jax", got'),
            sa.dense_results(kind),
        ):
            pass
        with pytest.raises(ValueError, match='set_dense_results: kind must be "array" or "jax", got'):
            sa.set_dense_results(kind)

    def test_conversions_do_not_follow(self):
        A = banded()
        with sa.dense_results("jax"):
            assert type(A.to_dense()) is type(sa.to_dense(A)) is type(sa.asarray(jnp.ones(2))) is sa.Dense
            assert type(copy.copy(A)) is sa.Banded
            assert float(sa.sum(A)) == float(dense(A).sum()) and A.tolist() == dense(A).tolist()
            assert repr(A) == repr(banded()) and str(A) == str(banded())

    def test_gradients(self):
        A = banded()
        with sa.dense_results("jax"):
            gradient = jax.grad(lambda A: sa.linalg.logdet(A))(A)
        expected = sa.grad(sa.linalg.logdet)(A)
        assert type(gradient) is type(expected) is sa.Banded
        np.testing.assert_allclose(dense(gradient), dense(expected))


def test_fallbacks_to_the_dense_form_follow_the_operands():
    """An eager call that repeats a failed solve with the dense form."""
    A = sa.Diagonal([0.0, 1.0, 2.0, 3.0]) + sa.LowRank(np.ones((n, 1)), np.ones((n, 1)))
    b = jnp.asarray(ONES)
    found = sa.linalg.solve(A, b)
    assert isinstance(found, jax.Array) and type(sa.linalg.solve(A, ONES)) is sa.Dense
    np.testing.assert_allclose(found, np.linalg.solve(dense(A), ONES))
    with sa.dense_results("jax"):
        assert isinstance(sa.linalg.det(A), jax.Array)
