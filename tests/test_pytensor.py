"""PyTensor's graphs on structured arrays, and structured matrices in its graphs, against PyTensor's own NumPy mode on dense ones."""

import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import structarrays as sa

pytensor = pytest.importorskip("pytensor")

import pytensor.tensor as pt  # noqa: E402
from pytensor.compile.mode import Mode  # noqa: E402
from pytensor.graph.basic import Apply  # noqa: E402
from pytensor.graph.op import Op  # noqa: E402
from pytensor.graph.replace import vectorize_graph  # noqa: E402
from pytensor.ifelse import ifelse  # noqa: E402
from pytensor.link.jax.dispatch import jax_funcify  # noqa: E402

from structarrays.interop import pytensor as sp  # noqa: E402

pytestmark = [
    # PyTensor's default mode calls Python from Numba for operations that Numba knows nothing of, and says so.
    pytest.mark.filterwarnings("ignore:Numba will use object mode"),
    pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS"),
]

NUMPY = Mode(linker="py", optimizer=None)  # every operation's `perform`, as the graph stands
N = 12
rng = np.random.default_rng(6)
STRUCTURES = {
    "Diagonal": sa.Diagonal(rng.normal(size=N)),
    "Banded": sa.tridiagonal(rng.normal(size=N - 1), rng.normal(size=N), rng.normal(size=N - 1)),
    "LowRank": sa.LowRank(rng.normal(size=(N, 2)), rng.normal(size=(N, 2))),
}
X = rng.normal(size=N)

A, x, c = pt.matrix("A"), pt.vector("x"), pt.scalar("c")


def same(got, expected, rtol=1e-9):
    assert np.shape(got) == np.shape(expected) and got.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(got), expected, rtol=rtol, atol=1e-12)


def compare_structured(inputs, outputs, values):
    """Check a graph on structured arrays, as it stands and rewritten, eagerly and under `jax.jit`; its results, rewritten and eager."""
    expected = pytensor.function(inputs, outputs, mode=NUMPY, on_unused_input="ignore")(*map(np.asarray, values))
    for rewrite in (False, True):
        f = sp.function(inputs, outputs, rewrite=rewrite)
        for run in (jax.jit(f), f):
            results = run(*values)
            assert len(results) == len(expected)
            for got, wanted in zip(results, expected, strict=True):
                same(got, wanted)
    return results


def kind(value) -> str:
    return "dense" if isinstance(value, jax.Array) else type(value).__name__


DENSE = ("dense", "dense", "dense")
KEPT = ("Diagonal", "Banded", "LowRank")
GRAPHS = {
    # CumOp: the sums of a product are those of one factor; of all else each element is stored.
    "cumsum": (lambda: pt.cumsum(A, axis=0), ("dense", "dense", "LowRank")),
    "cumsum of rows": (lambda: pt.cumsum(A, axis=1), ("dense", "dense", "LowRank")),
    "cumsum of all": (lambda: pt.cumsum(A), DENSE),
    "cumprod": (lambda: pt.cumprod(A, axis=0), DENSE),
    "cumprod of rows": (lambda: pt.cumprod(A, axis=1), DENSE),
    # Eye
    "eye(n) @ A": (lambda: pt.eye(N) @ A, KEPT),
    "A @ eye(n)": (lambda: A @ pt.eye(N), KEPT),
    "A + eye(n)": (lambda: A + pt.eye(N), ("Diagonal", "Banded", "Sum")),
    "A + eye(A.shape[0])": (lambda: A + pt.eye(A.shape[0]), ("Diagonal", "Banded", "Sum")),
    "2 A - c eye(A.shape[0])": (lambda: 2 * A - c * pt.eye(A.shape[0]), ("Diagonal", "Banded", "Sum")),
    "eye above the diagonal": (lambda: A + pt.eye(A.shape[0], k=1), ("Banded", "Banded", "Sum")),
    "eye alone": (lambda: pt.eye(N, N + 1, -1), DENSE),
    "solve(A + 9 eye(n), x)": (lambda: pt.linalg.solve(A + 9 * pt.eye(N), x), DENSE),
    "slogdet(A + 9 eye(n))": (lambda: pt.linalg.slogdet(A + 9 * pt.eye(N))[1], DENSE),
    # IfElse
    "ifelse of matrices": (lambda: ifelse(c > 0, A, 3 * A), KEPT),
    "ifelse, the other one": (lambda: ifelse(c < 0, A, A.T), KEPT),
    "ifelse with eye": (lambda: ifelse(c > 0, A, pt.eye(N)), ("Diagonal", "Banded", "dense")),
    "ifelse of vectors": (lambda: ifelse(c > 0, A @ x, x), DENSE),
    "ifelse of two": (lambda: ifelse(c > 0, [A, x], [A @ A, A @ x])[0], KEPT),
    # mixtures
    "tanh(A)": (lambda: pt.tanh(A), ("Diagonal", "Banded", "dense")),
    "A * A.T @ A": (lambda: A * A.T @ A, KEPT),
    "tanh(A @ A) + eye": (lambda: pt.tanh(A @ A) + pt.eye(N), ("Diagonal", "Banded", "dense")),
    "ifelse(c > 0, tanh(A), 2 A) @ x": (lambda: ifelse(c > 0, pt.tanh(A), 2 * A) @ x, DENSE),
    "cumsum(A) @ tanh(x)": (lambda: pt.cumsum(A, axis=0) @ pt.tanh(x), DENSE),
    "join of the same": (lambda: pt.concatenate([A, A]), ("Sparse", "Sparse", "Block")),
    "a gradient": (lambda: pt.grad(x @ pt.tanh(A) @ x, x), DENSE),
}
EXPANDED = {"cumsum of all", "cumprod", "cumprod of rows"}  # in every structure


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs(name):
    make, kinds = GRAPHS[name]
    found = [kind(compare_structured([A, x, c], [make()], [value, X, 2.0])[0]) for value in STRUCTURES.values()]
    assert tuple(found) == kinds


@pytest.mark.parametrize("name", sorted(set(GRAPHS) - EXPANDED))
@pytest.mark.parametrize("structure", ["Diagonal", "Banded"])
def test_nothing_is_expanded(name, structure):
    """But by running sums, and what is asked for: the policy forbids it."""
    f = sp.function([A, x, c], [GRAPHS[name][0]()])
    with sa.densify("error"):
        if name.startswith("cumsum"):
            with pytest.raises(sa.DensifyError, match="cumulative_sum"):
                f(STRUCTURES[structure], X, 2.0)
        else:
            f(STRUCTURES[structure], X, 2.0)


def test_running_sums_of_factors_expand_nothing():
    f = sp.function([A, x], pt.cumsum(A, axis=0) @ x + pt.cumsum(A, axis=1) @ x)
    with sa.densify("error"):
        f(STRUCTURES["LowRank"], X)


def test_loops():
    """PyTensor's own need its rewriting for JAX."""
    steps = pytensor.scan(lambda y, A: A @ y, outputs_info=[x], non_sequences=[A], n_steps=3, return_updates=False)
    f = sp.function([A, x], steps[-1])
    for value in STRUCTURES.values():
        with sa.densify("error"):
            got = f(value, X)
        same(got, np.linalg.matrix_power(np.asarray(value), 3) @ X)


# ---- the function ----------------------------------------------------------------------------------------------------


def test_outputs_are_as_in_pytensor():
    D = STRUCTURES["Diagonal"]
    assert kind(sp.function([A], A + A)(D)) == "Diagonal"
    pair = sp.function([A], (A.T, A.shape[0]))(D)
    assert isinstance(pair, list) and kind(pair[0]) == "Diagonal" and int(pair[1]) == N
    assert sp.function([], pt.constant(2.5))().dtype == np.float32  # as the graph says


def test_the_graph_stays_as_it_is():
    graph = pt.eye(N) @ A
    before = pytensor.dprint(graph, file="str")
    sp.function([A], graph)
    assert pytensor.dprint(graph, file="str") == before


def test_shared_variables_are_read_when_it_is_called():
    weights = pytensor.shared(np.ones(N), name="weights")
    f = sp.function([A], A * weights)
    D = STRUCTURES["Diagonal"]
    same(f(D), np.asarray(D))
    weights.set_value(np.full(N, 2.0))
    assert kind(f(D)) == "Diagonal"
    same(f(D), 2 * np.asarray(D))


def test_derivatives():
    f = sp.function([A, x], (pt.tanh(A) @ x).sum())
    D = STRUCTURES["Diagonal"]
    gradient = sa.grad(lambda D: f(D, X))(D)
    same(gradient.diag, (1 - np.tanh(np.diagonal(np.asarray(D))) ** 2) * X)
    same(jax.grad(f, 1)(D, jnp.asarray(X)), np.tanh(np.diagonal(np.asarray(D))))


def test_integers_are_static():
    n, k = pt.lscalars("n", "k")
    f = sp.function([n, k, A], pt.eye(n, k=k) + A)
    same(f(N, 1, STRUCTURES["Diagonal"]), np.eye(N, k=1) + np.asarray(STRUCTURES["Diagonal"]))
    for traced in (jnp.asarray(N), np.int64(N)):
        with pytest.raises(NotImplementedError, match="depends on the value of an argument"):
            f(traced, 0, STRUCTURES["Diagonal"])
    same(sp.function([n, x], x.reshape((n, -1)))(3, X), X.reshape(3, -1))


def test_shapes_that_depend_on_a_value():
    n, lengths = pt.lscalar("n"), pt.lvector("lengths")
    for make in (
        lambda n: pt.zeros((n, 2)),
        lambda n: pt.repeat(pt.ones(3), n),
        lambda n: pt.cumsum(pt.ones(2 * n + 1))[-1],
    ):
        f = sp.function([n], make(n))
        for call in (f, jax.jit(f)):
            with pytest.raises(NotImplementedError, match="depends on the value of an argument"):
                call(jnp.asarray(3))
    with pytest.raises(NotImplementedError, match="depends on the value of an argument"):
        sp.function([lengths], pt.zeros((lengths[0], lengths[1])))([2, 3])
    shape_of_argument = sp.function([lengths], pt.zeros((lengths.shape[0], 2)))
    same(shape_of_argument([7, 8, 9]), np.zeros((3, 2)))


class WrongType(Op):
    """An operation whose implementation in JAX raises TypeError, whatever the argument is."""

    def make_node(self, n):
        return Apply(self, [n], [n.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0]


@jax_funcify.register(WrongType)
def jax_funcify_WrongType(op, **kwargs):
    def implementation(n):
        raise TypeError("concrete values are of the wrong type")

    return implementation


def test_other_errors_remain():
    n = pt.lscalar("n")
    f = sp.function([n, x], WrongType()(n) * x.shape[0])
    for value in (3, jnp.asarray(3)):
        with pytest.raises(TypeError, match="of the wrong type"):
            f(value, X)


def test_arguments_are_cast_and_checked():
    square = pt.matrix("S", shape=(3, 3))
    f = sp.function([square, x], [square, x])
    got = f(sa.Diagonal([1, 2, 3]), [True, False])
    assert [r.dtype for r in got] == ["float64", "float64"] and kind(got[0]) == "Diagonal"
    with pytest.raises(ValueError, match=r"S must have 2 dimensions of lengths \(3, 3\), got \(4, 4\)"):
        f(sa.eye(4), X)
    with pytest.raises(ValueError, match=r"x must have 1 dimensions of lengths \(any\), got \(\)"):
        f(sa.eye(3), 1.0)
    with pytest.raises(
        TypeError, match="S must have dtype float64, or a dtype that can be cast to it without loss, got complex128"
    ):
        f(sa.eye(3, dtype=sa.complex128), X)
    with pytest.raises(TypeError, match="takes 2 arguments, got 1"):
        f(sa.eye(3))
    single = pt.fscalar("single")
    assert sp.function([single], single * 2)(1.5).dtype == np.float32
    with pytest.raises(TypeError, match="single must have dtype float32"):
        sp.function([single], single)(1j)
    with pytest.raises(TypeError, match="single must have dtype float32"):
        sp.function([single], single)(np.float64(1.0))


def test_what_cannot_be_compiled():
    with pytest.raises(TypeError, match=r"inputs\[1\] is a str"):
        sp.function([A, "x"], A)
    with pytest.raises(NotImplementedError, match="random generators"):
        sp.function([], pt.random.shared_rng(seed=1).normal(size=3)[1])
    with pytest.raises(NotImplementedError, match="axis"):  # by PyTensor
        sp.function([A], pt.unique(A, axis=0))
    with jax.enable_x64(False):
        with pytest.raises(ValueError, match="the dtype of A=float64 needs JAX's 64-bit mode"):
            sp.function([A], A)
        half = pt.fmatrix("half")
        assert sp.function([half], half * 2.5 + pt.eye(2, dtype="float32"))(sa.Diagonal([1.0, 2.0])).dtype == np.float32


# ---- importing -------------------------------------------------------------------------------------------------------


def printed(code, **environment):
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", **environment},
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


@pytest.mark.costly
@pytest.mark.parametrize("x64", ["0", "1"])
@pytest.mark.parametrize("float_x", ["float32", "float64"])
def test_importing_leaves_the_switch(x64, float_x, tmp_path):
    code = """
import sys, jax, structarrays as sa
assert not any(name.split(".")[0] == "pytensor" for name in sys.modules)
sa.interop.pytensor
print(int(jax.config.jax_enable_x64), "pytensor" in sys.modules, hasattr(sa.interop, "nothing"))
"""
    flags = f"floatX={float_x},base_compiledir={tmp_path}"
    assert printed(code, JAX_ENABLE_X64=x64, PYTENSOR_FLAGS=flags) == [x64, "True", "False"]


def test_without_pytensor():
    code = """
import sys
sys.modules["pytensor"] = None
import structarrays as sa
try:
    sa.interop.pytensor
except ImportError as error:
    print(error)
"""
    assert "pip install structarrays[pytensor]" in " ".join(printed(code, JAX_ENABLE_X64="0"))


# ---- structured matrices in a graph ----------------------------------------------------------------------------------

d, e, u = pt.vector("d"), pt.vector("e"), pt.matrix("u")
MATRICES = {  # the structured matrix, the same of PyTensor's own operations, and values for the variables
    "Diagonal": (sp.StructuredMatrix(sa.Diagonal, d), pt.diag(d), {d: 3 + rng.random(N)}),
    "tridiagonal": (
        sp.StructuredMatrix(sa.tridiagonal, e, d, -2 * e),
        pt.diag(e, -1) + pt.diag(d) + pt.diag(-2 * e, 1),
        {d: 3 + rng.random(N), e: rng.random(N - 1)},
    ),
    "Banded, by lists": (
        sp.StructuredMatrix(sa.Banded, [d, e], offsets=(0, 1), shape=(N, N)),
        pt.diag(d) + pt.diag(e, 1),
        {d: 3 + rng.random(N), e: rng.random(N - 1)},
    ),
    "Toeplitz": (
        sp.StructuredMatrix(sa.Toeplitz, d),
        d[np.abs(np.subtract.outer(np.arange(N), np.arange(N)))],
        {d: np.r_[5.0, rng.random(N - 1)]},
    ),
    "a sum": (
        sp.StructuredMatrix(lambda d, u: sa.Diagonal(d) + sa.LowRank(u, u), d, u),
        pt.diag(d) + u @ u.T,
        {d: 3 + rng.random(N), u: rng.normal(size=(N, 2))},
    ),
}


def compare_operations(variables, got, expected, values, modes=(NUMPY, "JAX"), rtol=1e-9):
    """Check the results of structured operations in modes of PyTensor, and by `function`, against a dense graph in its NumPy mode."""
    wanted = pytensor.function(variables, expected, mode=NUMPY, on_unused_input="ignore")(*values)
    runs = [pytensor.function(variables, got, mode=mode, on_unused_input="ignore") for mode in modes]
    for run in (*runs, sp.function(variables, got)):
        for result, reference in zip(run(*values), wanted, strict=True):
            same(result, reference, rtol)


def operations(Q, dense, b):
    if dense:
        return [pt.linalg.solve(Q, x), pt.linalg.solve(Q, b), Q @ x, Q @ b, *pt.linalg.slogdet(Q), Q]
    return [Q.solve(x), Q.solve(b), Q @ x, Q @ b, *Q.slogdet(), Q.to_dense()]


@pytest.mark.parametrize("name", MATRICES)
def test_operations(name, rng):
    Q, dense, values = MATRICES[name]
    b = pt.matrix("b")
    variables = [*values, x, b]
    data = [*values.values(), X, rng.normal(size=(N, 3))]
    compare_operations(variables, operations(Q, False, b), operations(dense, True, b), data)


@pytest.mark.costly
@pytest.mark.parametrize("name", MATRICES)
def test_gradients(name):
    Q, dense, values = MATRICES[name]
    variables = [*values, x]
    costs = [
        (Q.solve(x) ** 2).sum() + pt.tanh(Q @ x).sum() + Q.slogdet()[1] + (Q.to_dense() ** 3).sum(),
        (pt.linalg.solve(dense, x) ** 2).sum()
        + pt.tanh(dense @ x).sum()
        + pt.linalg.slogdet(dense)[1]
        + (dense**3).sum(),
    ]
    got, expected = (pt.grad(cost, variables) for cost in costs)
    compare_operations(variables, got, expected, [*values.values(), X], rtol=1e-7)


@pytest.mark.slow
def test_second_derivatives(rng):
    Q = sp.StructuredMatrix(sa.tridiagonal, e, d, e)
    cost = Q.slogdet()[1] + (x * Q.solve(x)).sum()
    hessian = pytensor.function([d, e, x], pt.hessian(cost, d), mode="JAX")

    def dense(d, e, x):
        Q = jnp.diag(d) + jnp.diag(e, 1) + jnp.diag(e, -1)
        return jnp.linalg.slogdet(Q)[1] + x @ jnp.linalg.solve(Q, x)

    values = 4 + rng.random(5), rng.random(4), rng.normal(size=5)
    same(hessian(*values), np.asarray(jax.hessian(dense)(*values)), 1e-7)


@pytest.mark.slow
def test_batches(rng):
    Q = sp.StructuredMatrix(sa.tridiagonal, e, d, e)
    dense = pt.diag(e, -1) + pt.diag(d) + pt.diag(e, 1)
    batch = {d: pt.matrix("ds"), x: pt.matrix("xs")}
    pairs = [
        (Q.solve(x), pt.linalg.solve(dense, x)),
        (Q @ x, dense @ x),
        (Q.slogdet()[1], pt.linalg.slogdet(dense)[1]),
        (Q.to_dense(), dense),
        (
            pt.grad(Q.slogdet()[1] + Q.solve(x).sum(), d),
            pt.grad(pt.linalg.slogdet(dense)[1] + pt.linalg.solve(dense, x).sum(), d),
        ),
    ]
    got, expected = (vectorize_graph(list(graphs), batch) for graphs in zip(*pairs, strict=True))
    values = [3 + rng.random((3, N)), rng.random(N - 1), rng.normal(size=(3, N))]
    compare_operations([batch[d], e, batch[x]], got, expected, values, rtol=1e-7)


@pytest.mark.slow
def test_the_cost_is_linear():
    n = 100_000
    Q = sp.StructuredMatrix(sa.tridiagonal, e, d, e)
    logp = (Q.slogdet()[1] - x @ (Q @ x)) / 2 + Q.solve(x).sum()
    values = np.full(n, 4.0), np.ones(n - 1), np.ones(n)
    for mode in ("FAST_RUN", "JAX"):
        f = pytensor.function([d, e, x], [logp, *pt.grad(logp, [d, e])], mode=mode)
        with sa.densify("error"):
            assert [np.shape(r) for r in f(*values)] == [(), (n,), (n - 1,)]


def test_shapes_without_computing():
    Q = sp.StructuredMatrix(sa.tridiagonal, e, d, e)
    f = pytensor.function(
        [d, e, x], [Q.solve(x).shape, Q.slogdet()[0].shape], mode="FAST_RUN", on_unused_input="ignore"
    )
    assert not any(isinstance(node.op, sp.StructuredOp) for node in f.maker.fgraph.apply_nodes)
    f = pytensor.function([d, e, x], [(Q @ x).shape, Q.to_dense().shape], mode="FAST_RUN", on_unused_input="ignore")
    assert [r.tolist() for r in f(np.full(3, 2.0), np.ones(2), np.ones(3))] == [[3], [3, 3]]
    known = sp.StructuredMatrix(sa.Diagonal, pt.vector(shape=(4,)), shape=(4, 6))
    assert known.to_dense().type.shape == (4, 6) and (known @ pt.vector(shape=(6,))).type.shape == (4,)
    with pytest.raises(ValueError, match="shape"):  # before anything runs
        known @ pt.vector(shape=(4,))


def test_equal_operations_are_one():
    first, second = (sp.StructuredMatrix(sa.tridiagonal, e, d, e).solve(x) for _ in range(2))
    assert first.owner.op == second.owner.op
    f = pytensor.function([d, e, x], [first, second], mode="FAST_RUN")
    assert sum(isinstance(node.op, sp.StructuredSolve) for node in f.maker.fgraph.apply_nodes) == 1
    values = np.full(3, 4.0), np.ones(2), np.ones(3)
    same(pickle.loads(pickle.dumps(f))(*values)[0], f(*values)[0])
    assert "StructuredSolve{tridiagonal}" in pytensor.dprint(first, file="str")


def test_structured_arguments_beside_structured_matrices():
    Q = sp.StructuredMatrix(sa.tridiagonal, e, d, e)
    f = sp.function([A, d, e, x], A @ Q.solve(x))
    values = np.full(N, 4.0), np.ones(N - 1), X
    dense = np.diag(values[0]) + np.diag(values[1], 1) + np.diag(values[1], -1)
    for value in STRUCTURES.values():
        same(f(value, *values), np.asarray(value) @ np.linalg.solve(dense, X))


def test_arrays_among_the_arguments():
    """They are parameters of the operation, and structured ones arrive as such."""
    kinds = []

    def scaled(A, c, shift):
        kinds.append(type(A).__name__)
        return c * A + sa.Diagonal(shift)

    Q = sp.StructuredMatrix(scaled, STRUCTURES["Banded"], c, jnp.arange(1.0, N + 1))
    dense = 2.0 * np.asarray(STRUCTURES["Banded"]) + np.diag(np.arange(1.0, N + 1))
    for mode in (NUMPY, "JAX"):
        same(pytensor.function([c, x], Q.solve(x), mode=mode)(2.0, X), np.linalg.solve(dense, X))
    assert set(kinds) == {"Banded"}


def test_indices_have_no_gradient():
    p = pt.lvector("p")
    P = sp.StructuredMatrix(sa.Permutation, p)
    values = {p: [2, 0, 1], x: [1.0, 2.0, 4.0]}
    assert P.solve(x).eval(values).tolist() == [2.0, 4.0, 1.0]
    assert pt.grad((P @ x)[0], x).eval(values).tolist() == [0.0, 0.0, 1.0]


def test_singular_systems_are_nan():
    solution = sp.StructuredMatrix(sa.tridiagonal, e, d, e).solve(x)
    values = np.zeros(3), np.zeros(2), np.ones(3)
    for mode in (NUMPY, "JAX"):
        assert np.isnan(pytensor.function([d, e, x], solution, mode=mode)(*values)).all()


# ---- what is not supported, and why ----------------------------------------------------------------------------------


def test_64_bits_need_the_switch_under_jax_only():
    solution = sp.StructuredMatrix(sa.Diagonal, d).solve(x)
    with jax.enable_x64(False):
        assert solution.eval({d: [3.0], x: [1.0]}).tolist() == [1 / 3]
        with pytest.raises(
            NotImplementedError, match=r"StructuredSolve\{Diagonal\}: JAX's 64-bit mode must be on for float64"
        ):
            pytensor.function([d, x], solution, mode="JAX")
        single, right = pt.fvectors("single", "right")
        f = pytensor.function([single, right], sp.StructuredMatrix(sa.Diagonal, single).solve(right), mode="JAX")
        assert f(np.float32([2.0]), np.float32([1.0])).dtype == np.float32


UNSUPPORTED = {
    "a stack": (lambda d: sa.Diagonal(d[None]), "must return one matrix"),
    "an array of NumPy": (lambda d: sa.Diagonal(np.asarray(d)), "needs the value of an argument"),
    "a value": (lambda d: sa.Diagonal(d) if d[0] > 0 else sa.eye(3), "needs the value of an argument"),
    "a complex result": (lambda d: sa.Diagonal(1j * d), "is complex, but its inputs are real"),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
@pytest.mark.parametrize("mode", [NUMPY, "JAX"], ids=["NumPy", "JAX"])
def test_unsupported_constructors(name, mode):
    constructor, reason = UNSUPPORTED[name]
    f = pytensor.function([d], sp.StructuredMatrix(constructor, d).to_dense(), mode=mode)
    with pytest.raises(NotImplementedError, match=reason):
        f(np.ones(3))


def test_unsupported_arguments():
    with pytest.raises(NotImplementedError, match="must be static, got the variable n"):
        sp.StructuredMatrix(sa.Banded, [d], (0,), (pt.lscalar("n"), 3))
    with pytest.raises(TypeError, match="constructor must be callable, got str"):
        sp.StructuredMatrix("tridiagonal", d)
    with pytest.raises(TypeError, match="arguments of Diagonal must be arrays or hashable, .* got a set"):
        sp.StructuredMatrix(sa.Diagonal, d, shape={3})
    with pytest.raises(TypeError, match=r"takes inputs of \(1, 1\) dimensions, got \(1, 2\)"):
        sp.StructuredMatrix(sa.Diagonal, d).solve(x).owner.op(d, A)
    f = pytensor.function([d], sp.StructuredMatrix(lambda d: d, d).to_dense(), mode=NUMPY)
    with pytest.raises(ValueError, match="must return a matrix"):
        f(np.ones(3))


def test_complex_matrices():
    z, b = (pt.tensor(name, shape=(3,), dtype="complex128") for name in "zb")
    D = sp.StructuredMatrix(sa.Diagonal, z)
    values = np.asarray([1j, 2.0, 1 - 1j]), np.ones(3, complex)
    for mode in (NUMPY, "JAX"):
        solution, logdet = pytensor.function([z, b], [D.solve(b), D.slogdet()[1]], mode=mode)(*values)
        same(solution, values[1] / values[0])
        same(logdet, np.log(np.abs(values[0])).sum())
    with pytest.raises(NotImplementedError, match="has no gradient with complex parameters"):
        pt.grad(D.slogdet()[1], z)
    with pytest.raises(NotImplementedError, match="must have static shapes"):
        sp.StructuredMatrix(sa.Diagonal, pt.zvector()).slogdet()
