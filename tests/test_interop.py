"""NumPy, SciPy, matplotlib, pickle and Python's own protocols meeting our arrays."""

import copy
import operator
import pickle

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse.linalg

import structarrays as sa

MAKERS = {
    "Dense": lambda: sa.asarray(np.arange(1.0, 10).reshape(3, 3) + 5 * np.eye(3)),
    "Fill": lambda: sa.Fill(2.0, (3, 3)),
    "Identity": lambda: sa.Identity(3, 2.0),
    "Diagonal": lambda: sa.Diagonal([1.0, 2.0, 3.0]),
    "Banded": lambda: sa.tridiagonal([1.0, 2.0], [3.0, 4.0, 5.0], [0.5, 0.25]),
    "background": lambda: sa.exp(sa.Diagonal([1.0, 2.0, 3.0])),
}


@pytest.fixture(params=MAKERS)
def x(request):
    return MAKERS[request.param]()


def close(result, expected, kind=None):
    if kind is not None:
        assert isinstance(result, kind), type(result)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12, atol=1e-12)


# ---- numpy.asarray --------------------------------------------------------------------------------------------------


class TestToNumpy:
    def test_a_fresh_copy_that_can_be_written_to(self, x):
        before = np.asarray(x)
        assert type(before) is np.ndarray
        assert before.flags.writeable
        before[0, 0] = 99.0
        assert np.asarray(x)[0, 0] != 99.0
        assert np.array(x, copy=True).flags.writeable

    def test_dtype(self, x):
        assert np.asarray(x, dtype=np.float32).dtype == np.float32
        assert np.asarray(x, np.complex64).dtype == np.complex64

    def test_no_copy(self):
        x = sa.ones(3)
        shared = np.asarray(x, copy=False)
        assert not shared.flags.writeable
        x[0] = 5.0
        np.testing.assert_array_equal(shared, np.ones(3))
        with pytest.raises(ValueError, match="copy"):
            np.asarray(x, dtype=np.float32, copy=False)
        with pytest.raises(ValueError, match="copy"):
            np.asarray(sa.eye(3), copy=False)

    def test_the_policy_of_densify(self):
        D = sa.Diagonal([1.0, 2.0])
        with sa.densify("error"), pytest.raises(sa.DensifyError, match=r"numpy\.asarray would expand"):
            np.asarray(D)
        with sa.densify("allow", limit=16), pytest.raises(sa.DensifyError):
            np.asarray(D)
        with sa.record() as log:
            np.asarray(D)
        assert [e.function for e in log.densifications] == ["numpy.asarray"]
        with pytest.raises(sa.DensifyError):
            np.asarray(sa.eye(10**6))

    def test_traced_arrays_have_no_values(self):
        with pytest.raises(jax.errors.TracerArrayConversionError):
            jax.jit(lambda v: np.asarray(v))(sa.ones(3))

    def test_compiled_code_of_scipy(self, x):
        close(scipy.linalg.expm(np.zeros((3, 3)) + x), scipy.linalg.expm(np.asarray(x)))


# ---- ufuncs ---------------------------------------------------------------------------------------------------------

UNARY = [
    np.abs, np.absolute, np.fabs, np.negative, np.positive, np.sign, np.sqrt, np.square, np.exp, np.expm1, np.log1p, np.sin,
    np.cos, np.tan, np.sinh, np.cosh, np.tanh, np.arctan, np.arcsinh, np.floor, np.ceil, np.trunc, np.rint, np.conj, np.isnan,
    np.isfinite, np.isinf, np.signbit, np.reciprocal,
]  # fmt: skip
BINARY = [
    np.add, np.subtract, np.multiply, np.divide, np.true_divide, np.floor_divide, np.remainder, np.mod, np.power, np.maximum,
    np.minimum, np.hypot, np.arctan2, np.copysign, np.equal, np.not_equal, np.less, np.less_equal, np.greater,
    np.greater_equal, np.logaddexp, np.nextafter,
]  # fmt: skip


class TestUfuncs:
    @pytest.mark.parametrize("ufunc", UNARY, ids=lambda f: f.__name__)
    def test_unary(self, x, ufunc):
        with sa.densify("error"):
            result = ufunc(x)
        close(result, ufunc(np.asarray(x)), sa.Array)

    @pytest.mark.parametrize("ufunc", BINARY, ids=lambda f: f.__name__)
    def test_binary(self, x, ufunc, rng):
        other = rng.uniform(1, 2, (3, 3))
        host = np.asarray(x)
        close(ufunc(x, other), ufunc(host, other), sa.Array)
        close(ufunc(other, x), ufunc(other, host), sa.Array)

    def test_integers(self):
        a, b = np.array([5, 6, 7]), sa.asarray([1, 2, 3])
        for ufunc in (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift):
            close(ufunc(a, b), ufunc(a, np.asarray(b)), sa.Dense)
        close(np.invert(b), ~np.asarray(b), sa.Dense)
        quotient, rest = np.divmod(a, b)
        close(quotient, a // np.asarray(b), sa.Dense)
        close(rest, a % np.asarray(b), sa.Dense)

    def test_truth_values(self):
        a = sa.asarray([0.0, 1.0, 2.0])
        mask = sa.asarray([True, False, True])
        close(np.logical_and(a, mask), [False, False, True], sa.Dense)
        close(np.logical_not(a), [True, False, False], sa.Dense)
        close(np.multiply(a, mask), [0.0, 0.0, 2.0], sa.Dense)
        close(np.asarray(mask) * a, [0.0, 0.0, 2.0], sa.Dense)
        close(np.add(mask, mask), np.asarray(mask) + np.asarray(mask), np.ndarray)

    def test_structure_stays(self):
        D = sa.Diagonal([1.0, 2.0])
        assert type(np.sin(D)) is sa.Diagonal
        assert type(np.add(D, D)) is sa.Diagonal
        assert type(np.matmul(D, D)) is sa.Diagonal

    def test_lists_are_arrays(self):
        close(np.add(sa.ones(2), [1, 2]), [2.0, 3.0], sa.Dense)

    def test_reductions(self, x):
        host = np.asarray(x)
        for ufunc in (np.add, np.multiply, np.maximum, np.minimum):
            close(ufunc.reduce(x), ufunc.reduce(host), sa.Array)
            close(ufunc.reduce(x, axis=None), ufunc.reduce(host, axis=None), sa.Array)
            close(ufunc.reduce(x, 1, keepdims=True), ufunc.reduce(host, 1, keepdims=True), sa.Array)
        close(np.logical_or.reduce(x > 2), np.logical_or.reduce(host > 2), sa.Array)
        close(np.logical_and.reduce(x > 2, axis=None), (host > 2).all(), sa.Array)
        close(np.add.accumulate(x, axis=1), np.add.accumulate(host, axis=1), sa.Array)
        assert int(np.add.reduce(sa.asarray([True, True]))) == 2

    def test_without_a_counterpart(self, x):
        host = np.asarray(x)
        close(np.cbrt(x), np.cbrt(host), np.ndarray)
        close(np.add.reduceat(x, [0, 1]), np.add.reduceat(host, [0, 1]), np.ndarray)
        close(np.add(x, 1, where=host > 2, out=host.copy()), np.where(host > 2, host + 1, host))

    def test_conversions_obey_the_policy(self):
        with sa.densify("error"), pytest.raises(sa.DensifyError, match="numpy.cbrt"):
            np.cbrt(sa.Diagonal([1.0, 2.0]))

    def test_out(self):
        y = sa.zeros(3)
        assert np.add(sa.ones(3), 1.0, out=y) is y
        close(y, [2.0, 2.0, 2.0])
        assert np.cbrt(sa.ones(3) * 8, out=y) is y
        close(y, [2.0, 2.0, 2.0])
        host = np.zeros(3)
        host += sa.ones(3)
        close(host, np.ones(3), np.ndarray)
        assert np.add.reduce(sa.ones((2, 3)), out=y) is y
        close(y, [2.0, 2.0, 2.0])

    def test_at(self):
        y = sa.zeros(3)
        np.add.at(y, [0, 0, 2], 1.0)
        close(y, [2.0, 0.0, 1.0])

    def test_whoever_else_has_a_claim(self):
        class Greedy:
            __array_ufunc__ = None

            def __radd__(self, other):
                return "mine"

        assert sa.ones(3) + Greedy() == "mine"


# ---- operands of other kinds ----------------------------------------------------------------------------------------


def kinds_of_result(x, other):
    """The types of results: with operands of JAX, a dense result is of JAX."""
    return (sa.Array, jax.Array) if isinstance(other, jax.Array) and type(x) is not sa.Dense else sa.Array


@pytest.mark.parametrize(
    "op", [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.lt, operator.eq]
)
@pytest.mark.parametrize(
    "other", [np.full((3, 3), 2.0), jnp.full((3, 3), 2.0), np.float64(2.0), jnp.float64(2.0), np.array(2.0), 2.0, 2]
)
def test_operands(x, op, other):
    host, host_other = np.asarray(x), np.asarray(other)
    for result, expected in ((op(x, other), op(host, host_other)), (op(other, x), op(host_other, host))):
        close(result, expected, kinds_of_result(x, other))


@pytest.mark.parametrize("convert", [np.asarray, jnp.asarray])
def test_products_with_other_arrays(x, convert):
    matrix, vector = convert(np.arange(9.0).reshape(3, 3)), convert(np.arange(3.0))
    host = np.asarray(x)
    for a, b in ((x, matrix), (x, vector), (matrix, x), (vector, x)):
        expected = (host if a is x else np.asarray(a)) @ (host if b is x else np.asarray(b))
        close(a @ b, expected, kinds_of_result(x, matrix))


def test_numpy_scalars_keep_their_dtype():
    x = sa.ones(2, dtype=sa.float32)
    assert (np.float64(2) * x).dtype == np.float64
    assert (x * np.float64(2)).dtype == np.float64
    assert (2.0 * x).dtype == np.float32


# ---- functions ------------------------------------------------------------------------------------------------------

KEPT = {
    "sum": np.sum,
    "sum over an axis": lambda a: np.sum(a, axis=0, keepdims=True),
    "sum with dtype": lambda a: np.sum(a, 1, np.float32),
    "mean": lambda a: np.mean(a, axis=1),
    "std": lambda a: np.std(a, ddof=1),
    "var": lambda a: np.var(a, axis=0),
    "prod": lambda a: np.prod(a, axis=0),
    "max": np.max,
    "amin": lambda a: np.amin(a, axis=0),
    "argmax": lambda a: np.argmax(a, axis=0),
    "all": np.all,
    "any": lambda a: np.any(a, axis=1),
    "cumsum": np.cumsum,
    "cumsum over an axis": lambda a: np.cumsum(a, axis=1),
    "cumprod": lambda a: np.cumprod(a, axis=0),
    "count_nonzero": np.count_nonzero,
    "reshape": lambda a: np.reshape(a, (9,)),
    "reshape to -1": lambda a: np.reshape(a, -1),
    "ravel": np.ravel,
    "transpose": np.transpose,
    "transpose axes": lambda a: np.transpose(a, (1, 0)),
    "swapaxes": lambda a: np.swapaxes(a, 0, -1),
    "moveaxis": lambda a: np.moveaxis(a, 0, 1),
    "expand_dims": lambda a: np.expand_dims(a, 0),
    "squeeze": lambda a: np.squeeze(a[:1, :]),
    "flip": lambda a: np.flip(a, 1),
    "roll": lambda a: np.roll(a, 1, axis=0),
    "tile": lambda a: np.tile(a, 2),
    "repeat": lambda a: np.repeat(a, 2, axis=0),
    "broadcast_to": lambda a: np.broadcast_to(a, (2, 3, 3)),
    "concatenate": lambda a: np.concatenate([a, a], axis=1),
    "stack": lambda a: np.stack((a, a)),
    "where": lambda a: np.where(a > 2, a, 0.0),
    "where truth": lambda a: np.where(a, 1.0, 2.0),
    "clip": lambda a: np.clip(a, 1.0, 2.0),
    "sort": np.sort,
    "sort flat": lambda a: np.sort(a, axis=None),
    "argsort": lambda a: np.argsort(a, axis=0, kind="stable"),
    "take": lambda a: np.take(a, [0, 2], axis=1),
    "diff": lambda a: np.diff(a, axis=0),
    "round": np.round,
    "real": np.real,
    "tril": np.tril,
    "triu": lambda a: np.triu(a, 1),
    "dot": lambda a: np.dot(a, a),
    "dot with a vector": lambda a: np.dot(np.ones(3), a),
    "inner": lambda a: np.inner(a, a),
    "outer": lambda a: np.outer(a, [1.0, 2.0]),
    "vdot": lambda a: np.vdot(a, a),
    "tensordot": lambda a: np.tensordot(a, a, axes=1),
    "trace": np.trace,
    "diagonal": lambda a: np.diagonal(a, 1),
    "zeros_like": np.zeros_like,
    "full_like": lambda a: np.full_like(a, 3.0),
    "copy": np.copy,
    "solve": lambda a: np.linalg.solve(a + 3 * np.eye(3), np.arange(3.0)),
    "inv": lambda a: np.linalg.inv(a + 3 * np.eye(3)),
    "det": np.linalg.det,
    "slogdet": lambda a: np.linalg.slogdet(a)[1] if float(abs(np.linalg.det(a))) > 0 else a,
    "cholesky": lambda a: np.linalg.cholesky(a @ a.T + np.eye(3)),
    "eigvalsh": lambda a: np.linalg.eigvalsh(a + a.T),
    "norm": np.linalg.norm,
    "norm of rows": lambda a: np.linalg.norm(a, axis=1),
    "norm 1": lambda a: np.linalg.norm(a, 1),
    "matrix_power": lambda a: np.linalg.matrix_power(a, 3),
    "fft": np.fft.fft,
    "ifftn": lambda a: np.fft.ifftn(a, axes=(0, 1)),
    "sum with initial": lambda a: np.sum(a, initial=10.0),
    "sum with where": lambda a: np.sum(a, where=[True, False, True]),
    "round to decimals": lambda a: np.round(a / 3, 2),
    "kron": lambda a: np.kron(a, np.eye(2)),
    "nansum": np.nansum,
    "hstack": lambda a: np.hstack([a, a]),
    "lstsq": lambda a: np.linalg.lstsq(a, np.ones(3))[0],
}
CONVERTED = {
    "histogram": lambda a: np.histogram(a, bins=3)[0],
    "percentile": lambda a: np.percentile(a, 30),
    "median": np.median,
    "variance with where": lambda a: np.var(a, where=[True, False, True]),
    "einsum": lambda a: np.einsum("ij,ij->i", a, a),
    "interp": lambda a: np.interp(a, [0.0, 10.0], [0.0, 1.0]),
    "pad": lambda a: np.pad(a, 1),
    "reshape in Fortran's order": lambda a: np.reshape(a, (9,), order="F"),
}


class TestFunctions:
    @pytest.mark.parametrize("name", KEPT)
    def test_ours_in_the_place_of_numpys(self, x, name):
        close(KEPT[name](x), KEPT[name](np.asarray(x)), sa.Array)

    @pytest.mark.parametrize("name", CONVERTED)
    def test_numpys_on_converted_arrays(self, x, name):
        close(CONVERTED[name](x), CONVERTED[name](np.asarray(x)), (np.ndarray, np.generic))
        if not isinstance(x, sa.Dense):
            with sa.densify("error"), pytest.raises(sa.DensifyError):
                CONVERTED[name](x)

    def test_structure_stays(self):
        D = sa.Diagonal([1.0, 2.0])
        with sa.densify("error"):
            assert type(np.transpose(D)) is sa.Diagonal
            assert type(np.linalg.inv(D)) is sa.Diagonal
            assert float(np.sum(D)) == 3.0

    def test_questions_are_answered_without_computing(self):
        huge = sa.Identity(10**6)
        with sa.densify("error"), sa.record() as log:
            assert np.shape(huge) == (10**6, 10**6)
            assert np.ndim(huge) == 2
            assert np.size(huge) == 10**12
            assert np.size(huge, 0) == 10**6
            assert np.result_type(huge, np.int8) == np.float64
            assert np.can_cast(sa.ones(2, dtype=sa.float32).dtype, np.float64)
            assert not np.iscomplexobj(huge)
            assert np.isrealobj(huge)
        assert not log.events

    def test_comparisons(self, x):
        host = np.asarray(x)
        assert np.allclose(x, host) is True
        assert np.array_equal(host, x)
        assert not np.array_equal(x, host + 1)
        np.testing.assert_allclose(x, host)
        np.testing.assert_array_equal(x, host)
        with pytest.raises(AssertionError):
            np.testing.assert_allclose(x, host + 1)

    def test_nonzero(self):
        x = sa.asarray([[0.0, 1.0], [2.0, 0.0]])
        for ours, expected in zip(np.nonzero(x), np.nonzero(np.asarray(x)), strict=True):
            close(ours, expected)
        close(np.argwhere(x), np.argwhere(np.asarray(x)))
        close(np.where(x)[0], [0, 1])

    def test_meshgrid(self):
        a, b = np.meshgrid(sa.arange(3), [1.0, 2.0], indexing="ij")
        close(a, [[0, 0], [1, 1], [2, 2]], sa.Dense)
        close(b, [[1, 2], [1, 2], [1, 2]], sa.Dense)

    def test_out_and_copyto(self):
        y = sa.zeros(3)
        assert np.sum(sa.ones((2, 3)), axis=0, out=y) is y
        close(y, [2.0, 2.0, 2.0])
        np.copyto(y, [1.0, 2.0, 3.0])
        close(y, [1.0, 2.0, 3.0])
        np.copyto(y, 0.0, where=y > 1)
        close(y, [1.0, 0.0, 0.0])
        host = np.zeros(3)
        np.copyto(host, y)
        close(host, [1.0, 0.0, 0.0])

    def test_numpys_errors(self):
        with pytest.raises(TypeError):
            np.sum(sa.ones(3), nonsense=1)


# ---- methods in NumPy's manner --------------------------------------------------------------------------------------


class TestMethods:
    def test_reductions(self, x):
        host = np.asarray(x)
        for name in ("sum", "mean", "min", "max"):
            close(getattr(x, name)(), getattr(host, name)())
            close(getattr(x, name)(axis=0), getattr(host, name)(axis=0))
            close(getattr(x, name)(1, keepdims=True), getattr(host, name)(1, keepdims=True))
        close((x > 2).any(axis=0), (host > 2).any(axis=0))
        close((x > 2).all(), (host > 2).all())
        close(x.trace(), host.trace())
        assert int(sa.asarray([True, True]).sum()) == 2

    def test_trace_of_a_stack(self):
        host = np.arange(24.0).reshape(2, 3, 4)
        close(sa.asarray(host).trace(), host.trace())
        close(sa.asarray(host).trace(1, 1, 2), host.trace(1, 1, 2))

    def test_shapes(self, x):
        host = np.asarray(x)
        close(x.reshape(9), host.reshape(9))
        close(x.reshape((1, -1)), host.reshape((1, -1)))
        close(x.reshape(1, 9), host.reshape(1, 9))
        close(x.ravel(), host.ravel())
        close(x.transpose(), host.T)
        close(x.transpose(0, 1), host)
        close(x.transpose((1, 0)), host.T)
        close(x[None].transpose(1, 0, -1), host[None].transpose(1, 0, -1))
        close(x.flatten(), host.flatten())
        close(x.dot(x), host.dot(host))
        close(x.dot(np.ones(3)), host.dot(np.ones(3)))
        close(x.copy(), host)
        close((x / 3).round(2), (host / 3).round(2))
        assert type(x.copy()) is type(x)
        assert x.astype(sa.float32).dtype == np.float32
        assert x.tolist() == host.tolist()

    def test_views_and_copies(self):
        x = sa.asarray([[1.0, 2.0], [3.0, 4.0]])
        x.ravel()[0] = 9.0
        assert float(x[0, 0]) == 9.0
        x.flatten()[0] = 7.0
        x.copy()[0, 0] = 7.0
        assert float(x[0, 0]) == 9.0

    def test_item(self):
        x = sa.asarray([[1.0, 2.0], [3.0, 4.0]])
        assert (x.item(3), x.item(0, 1), x.item((1, 0)), sa.asarray(5).item()) == (4.0, 2.0, 3.0, 5)
        assert type(sa.asarray(5).item()) is int
        with pytest.raises(ValueError, match="must have one element"):
            x.item()

    @pytest.mark.parametrize("dtype", [float, np.float64, sa.float64, sa.uint8])
    def test_view_of_bytes(self, dtype):
        host = np.array([[1 + 2j, 3 + 4j]])
        np.testing.assert_array_equal(
            np.asarray(sa.asarray(host).view(dtype)), host.view(dtype.dtype if isinstance(dtype, sa.DType) else dtype)
        )


# ---- scipy.sparse.linalg --------------------------------------------------------------------------------------------


class TestLinearOperator:
    def test_products(self, x):
        z = x * (1 + 2j)
        host, vector, matrix = np.asarray(z), np.arange(3.0), np.arange(6.0).reshape(3, 2)
        close(z.matvec(vector), host @ vector, np.ndarray)
        assert z.matvec(vector).flags.writeable
        close(z.rmatvec(vector), host.conj().T @ vector, np.ndarray)
        close(z.matmat(matrix), host @ matrix, np.ndarray)
        close(z.rmatmat(matrix), host.conj().T @ matrix, np.ndarray)
        close(z.matvec(sa.asarray(vector)), host @ vector, sa.Array)

    def test_conjugate_gradients(self):
        n = 200
        A = sa.tridiagonal(np.full(n - 1, -1.0), np.full(n, 2.5), np.full(n - 1, -1.0))
        b = np.sin(np.arange(n))
        with sa.densify("error"):
            solution, code = scipy.sparse.linalg.cg(A, b, rtol=1e-12)
        assert code == 0
        np.testing.assert_allclose(np.asarray(A) @ solution, b, atol=1e-9)
        with sa.densify("error"):
            solution, code = scipy.sparse.linalg.gmres(A, b, rtol=1e-12)
            operator = scipy.sparse.linalg.aslinearoperator(A)
        assert code == 0
        np.testing.assert_allclose(operator.matvec(solution), b, atol=1e-9)


# ---- Python's protocols ---------------------------------------------------------------------------------------------


class TestOperands:
    """Operators with arrays of `scipy.sparse` and tables of pandas, in both orders."""

    NAMES = ("add", "sub", "mul", "eq", "ne", "lt", "matmul")

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.coo_array, scipy.sparse.dia_array])
    def test_sparse_arrays_of_scipy(self, name, kind, rng):
        function = getattr(operator, name)
        values = np.where(rng.random((5, 5)) < 0.3, rng.normal(size=(5, 5)), 0)
        theirs, ours = kind(values), sa.tridiagonal(*(rng.normal(size=m) for m in (4, 5, 4)))
        expected, swapped = function(np.asarray(ours), values), function(values, np.asarray(ours))
        with sa.densify("error"):
            results = [(function(ours, theirs), expected)]
            if name in ("add", "sub"):  # SciPy has its turn first, and takes the dense values for all other operators
                results.append((function(theirs, ours), swapped))
        for found, wanted in results:
            close(found, wanted, sa.Array)
        found = function(theirs, ours)
        close(found.toarray() if scipy.sparse.issparse(found) else found, swapped)

    def test_sparse_matrices_of_scipy_keep_their_pattern(self):
        S = sa.Sparse.from_dense(np.diag([0.0, 2.0, 3.0]))
        theirs = scipy.sparse.csr_array(np.diag([1.0, 0.0, 4.0]))
        assert type(S @ theirs) is type(S + theirs) is type(theirs - S) is sa.Sparse
        with pytest.raises(ValueError, match="matmul"):
            S @ scipy.sparse.csr_array(np.ones((2, 2)))

    @pytest.mark.parametrize("name", [*NAMES, "truediv", "pow"])
    def test_tables_of_pandas(self, x, name):
        pandas = pytest.importorskip("pandas")
        function, dense = getattr(operator, name), np.asarray(x)
        table = pandas.DataFrame(dense + 1, columns=list("abc"))
        if name == "matmul":
            close(x @ table, dense @ np.asarray(table))
            close(table @ x, np.asarray(table) @ dense)
            return
        for found, expected in (
            (function(x, table), function(dense, np.asarray(table))),
            (function(table, x), function(np.asarray(table), dense)),
            (function(x[0], table["a"]), function(dense[0], np.asarray(table["a"]))),
        ):
            close(found, expected, (pandas.DataFrame, pandas.Series))

    def test_ufuncs_with_tables_of_pandas(self, x):
        pandas = pytest.importorskip("pandas")
        dense = np.asarray(x)
        table = pandas.DataFrame(dense + 1, columns=list("abc"))
        for found, expected in (
            (np.multiply(table, x), dense * (dense + 1)),
            (np.subtract(x, table), dense - (dense + 1)),
            (np.hypot(x[0], table["a"]), np.hypot(dense[0], np.asarray(table["a"]))),
        ):
            close(found, expected, (pandas.DataFrame, pandas.Series))
        with sa.densify("error"), pytest.raises(sa.DensifyError, match="multiply would expand Diagonal"):
            np.multiply(table, sa.Diagonal([1.0, 2.0, 3.0]))

    def test_tables_of_pandas_ask_the_policy(self):
        pandas = pytest.importorskip("pandas")
        with sa.densify("error"), pytest.raises(sa.DensifyError, match="multiply would expand Diagonal"):
            pandas.DataFrame(np.eye(2)) * sa.Diagonal([1.0, 2.0])


class TestProtocols:
    def test_pickle_and_copy(self, x):
        for clone in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
            assert type(clone) is type(x)
            assert clone.meta == x.meta
            np.testing.assert_array_equal(np.asarray(clone), np.asarray(x))
            clone[0, 0] = 77.0
            assert float(x[0, 0]) != 77.0

    def test_conversions(self):
        assert (float(sa.asarray(2.5)), int(sa.asarray(2)), complex(sa.asarray(1j))) == (2.5, 2, 1j)
        assert bool(sa.asarray(True))
        assert [10, 20, 30][sa.asarray(1)] == 20
        assert range(5)[sa.asarray(2)] == 2
        assert int(sa.asarray(2.9)) == 2
        for kind in (float, int, complex):
            with pytest.raises(TypeError):
                kind(sa.ones(1))
        with pytest.raises(TypeError):
            float(sa.asarray(1j))
        with pytest.raises(TypeError):
            operator.index(sa.asarray(1.0))
        with pytest.raises(ValueError, match="ambiguous"):
            bool(sa.ones(2))

    def test_format(self):
        assert f"{sa.asarray(3.14159):.2f}" == "3.14"
        assert f"{sa.asarray(3)}" == "3"
        assert f"{sa.asarray(3):05d}" == "00003"
        assert f"{sa.asarray([1.0, 2.0])}" == "[1. 2.]"

    def test_iteration(self, x):
        host = np.asarray(x)
        assert len(x) == 3
        for row, expected in zip(x, host, strict=True):
            close(row, expected)
        a, b, c = sa.asarray([1.0, 2.0, 3.0])
        assert (float(a), float(b), float(c)) == (1.0, 2.0, 3.0)
        assert 2.0 in sa.asarray([1.0, 2.0])
        assert 5.0 not in sa.asarray([1.0, 2.0])

    def test_no_probing_attribute_exists(self, x):
        for name in ("iloc", "fit", "flags", "__array_interface__", "__array_struct__", "__jax_array__"):
            assert not hasattr(x, name)

    def test_not_hashable(self, x):
        with pytest.raises(TypeError):
            hash(x)


def test_matplotlib():
    figure, axes = plt.subplots()
    x = sa.linspace(0.0, 1.0, 20)
    (line,) = axes.plot(x, sa.sin(x))
    axes.imshow(sa.eye(4))
    axes.hist(x)
    figure.canvas.draw()
    np.testing.assert_allclose(line.get_ydata(), np.sin(np.linspace(0, 1, 20)))
    plt.close(figure)


# ---- how arrays look --------------------------------------------------------------------------------------------------

REPRS = {
    "Dense([[1., 2.],\n       [3., 4.]], dtype=float64)": lambda: sa.asarray([[1.0, 2.0], [3.0, 4.0]]),
    "Dense([1, 2], dtype=int8)": lambda: sa.asarray([1, 2], dtype=sa.int8),
    "Dense([ True, False], dtype=bool)": lambda: sa.asarray([True, False]),
    "Dense([1.+2.j], dtype=complex64)": lambda: sa.asarray([1 + 2j], dtype=sa.complex64),
    "Dense(3., dtype=float64)": lambda: sa.asarray(3.0),
    "Dense([], dtype=float64)": lambda: sa.zeros(0),
    "Dense([], shape=(0, 3), dtype=float64)": lambda: sa.zeros((0, 3)),
    "Dense([   0,    1,    2, ..., 9997, 9998, 9999], dtype=int64)": lambda: sa.arange(10000),
    "Identity(scale=2.0, shape=(3, 3), dtype=float64)": lambda: 2.0 * sa.eye(3),
    "Identity(scale=[1., 2.], shape=(2, 3, 3), dtype=float64)": lambda: sa.Identity(3, [1.0, 2.0]),
    "Diagonal([0.5       , 0.16666667], shape=(2, 2), dtype=float64)": lambda: sa.Diagonal([0.5, 1 / 6]),
    "Diagonal([1., 2.], shape=(2, 3), dtype=float64)": lambda: sa.Diagonal([1.0, 2.0], shape=(2, 3)),
    "Diagonal([1., 1., 1., ..., 1., 1., 1.], shape=(1000, 1000), dtype=float64, stores 1000 of 1000000 entries, "
    "8000 B of 8000 kB dense)": lambda: sa.Diagonal(np.ones(1000)),
    "Fill(1.0, (1000000, 1000000), dtype=float64)": lambda: sa.Fill(1.0, (1000000, 1000000)),
    "Fill([1., 2.], (3,), dtype=float64)": lambda: sa.Fill([1.0, 2.0], (3,)),
    "Banded(offsets=(-1, 0, 1), shape=(3, 3), dtype=float64, stores 7 of 9 entries, 56 B of 72 B dense)": (
        lambda: sa.tridiagonal([1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0])
    ),
    "Diagonal([2., 3.], shape=(2, 2), dtype=float64, background=1.0)": lambda: sa.Diagonal([1.0, 2.0]) + 1.0,
}  # fmt: skip
STRS = {
    "[[1. 2.]\n [3. 4.]]": lambda: sa.asarray([[1.0, 2.0], [3.0, 4.0]]),
    "3.0": lambda: sa.asarray(3.0),
    "[[3. 6.  .]\n [1. 4. 7.]\n [ . 2. 5.]]": lambda: sa.tridiagonal([1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0]),
    "[[2 . .]\n [. 2 .]]": lambda: sa.Identity((2, 3), 2),
    "[[2. 1.]\n [1. 3.]]": lambda: sa.Diagonal([1.0, 2.0]) + 1.0,
    "[[. .]\n [. .]]": lambda: sa.Banded([], (), (2, 2)),
    "[[7. 7.]]": lambda: sa.Fill(7.0, (1, 2)),
    "Identity(scale=1.0, shape=(13, 13), dtype=float64)": lambda: sa.eye(13),
}


class TestPrinting:
    @pytest.mark.parametrize("text", REPRS)
    def test_repr(self, text):
        assert repr(REPRS[text]()) == text

    @pytest.mark.parametrize("text", STRS)
    def test_str(self, text):
        assert str(STRS[text]()) == text

    @pytest.mark.parametrize("shape", [(2000,), (40, 50), (7, 200), (2000, 1), (3, 3, 200), (2, 7, 8, 9), (1, 1001)])
    def test_large_arrays_look_as_in_numpy(self, shape, rng):
        host = rng.normal(size=shape)
        numpys = repr(host).replace("array(", "Dense(")
        shown = numpys[: numpys.rfind("]") + 1]  # NumPy adds the shape of what it shortens
        assert "..." in shown
        # The dtype goes onto a line of its own where it would run over.
        assert repr(sa.asarray(host)) in (shown + ", dtype=float64)", shown + ",\n      dtype=float64)")

    def test_what_has_no_values(self):
        seen = []
        jax.jit(lambda a, b: seen.extend([repr(a), str(a), repr(b), f"{b}"]))(sa.ones((2, 3)), sa.Diagonal([1.0, 2.0]))
        assert seen[:2] == ["Dense(Traced<float64[2,3]>)"] * 2
        assert seen[2:] == ["Diagonal(Traced<float64[2]>)"] * 2
        shapes = jax.eval_shape(lambda: sa.ones(3))
        assert repr(shapes).startswith("Dense(")
        x = sa.ones(3)
        x.data.delete()
        assert repr(x) == "Dense(deleted<float64[3]>)"
        assert "object" in repr(jax.tree.map(lambda leaf: object(), sa.Diagonal([1.0])))

    def test_assumptions_are_shown(self):
        D = sa.assume(sa.Diagonal([1.0, 2.0]), "positive_definite")
        start, _, assumed = repr(D).partition(", assumed ")
        assert start == "Diagonal([1., 2.], shape=(2, 2), dtype=float64"
        assert "positive_definite" in assumed.rstrip(")").split(" and ")

    def test_printing_never_densifies(self):
        with sa.densify("error"):
            repr(sa.Identity(10**8))
            str(sa.Identity(10**8))


def test_batches_are_written_with_dots_where_nothing_is_stored():
    D = sa.Diagonal(np.asarray([[1.0, 2.5], [3.0, 4.0]]))
    assert str(D) == "[[[1.    .]\n  [  . 2.5]]\n\n [[3.    .]\n  [  . 4. ]]]"
    S = sa.Sparse([7], ([1], [0], [1]), (2, 1, 2))
    assert str(S) == "[[[. .]]\n\n [[. 7]]]"
    # Brackets, lines and indents are those of NumPy.
    for x in (sa.Diagonal(np.ones((2, 1, 3))), sa.tridiagonal(np.ones((2, 1)), np.full((2, 2), 4.0), np.ones((2, 1)))):
        assert str(x).replace(" .", "0.") == str(np.asarray(x))
