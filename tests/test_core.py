"""Dispatch, policies, contexts, pytrees and data types, as a user sees them."""

import ast
import importlib
import itertools
import pathlib
import pickle
import re
import threading
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax, dense

import structarrays as sa
from structarrays import _structures
from structarrays._core.array import operators, writes
from structarrays._core.dispatch.registry import FUNCTIONS, Registry

ARRAYS = {
    "Dense": sa.asarray(np.arange(9.0).reshape(3, 3)),
    "Fill": sa.Fill(2.0, (3, 3)),
    "Identity": sa.Identity(3, 2.0),
    "Diagonal": sa.Diagonal([1.0, 2.0, 3.0]),
    "Banded": sa.tridiagonal([1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0]),
    "Diagonal + background": sa.exp(sa.Diagonal([1.0, 2.0, 3.0])),
    "no diagonals": sa.Banded([], (), (3, 3)),
    "assumed": sa.assume(sa.Diagonal([1.0, 2.0, 3.0]), "positive_definite"),
}
every_array = pytest.mark.parametrize("x", ARRAYS.values(), ids=ARRAYS.keys())


# ---- pytrees and transforms ------------------------------------------------------------------------------------------


@every_array
def test_transforms_carry_every_array(x):
    leaves, tree = jax.tree.flatten(x)
    again = jax.tree.unflatten(tree, leaves)
    assert type(again) is type(x) and again.assumptions == x.assumptions
    np.testing.assert_array_equal(dense(again), dense(x))
    np.testing.assert_array_equal(dense(jax.jit(lambda x: x)(x)), dense(x))
    carried, _ = jax.lax.scan(lambda c, _: (c, None), x, None, length=2)
    np.testing.assert_array_equal(dense(carried), dense(x))
    chosen = jax.lax.cond(True, lambda x: x, lambda x: x, x)
    np.testing.assert_array_equal(dense(chosen), dense(x))
    looped = jax.lax.fori_loop(0, 2, lambda _, x: x, x)
    np.testing.assert_array_equal(dense(looped), dense(x))
    stacked = jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf]), x)
    assert stacked.shape == (2, 3, 3)
    mapped = jax.vmap(lambda x: x @ jnp.ones(3))(stacked)
    np.testing.assert_allclose(dense(mapped), dense(stacked) @ np.ones(3))
    _, last = jax.lax.scan(lambda c, x: (c, as_jax(sa.sum(x))), 0.0, stacked)
    np.testing.assert_allclose(last, dense(stacked).sum((1, 2)))


@every_array
def test_gradients_have_the_structure(x):
    gradient = jax.grad(lambda x: as_jax(sa.sum(x * x)))(x)
    assert type(gradient) is type(x)
    step = jax.tree.map(lambda g: 1e-6 * g, gradient)
    plus = jax.tree.map(jnp.add, x, step)
    minus = jax.tree.map(jnp.subtract, x, step)
    slope = (float(sa.sum(plus * plus)) - float(sa.sum(minus * minus))) / 2e-6
    squared = sum(float(jnp.sum(g * g)) for g in jax.tree.leaves(gradient))
    np.testing.assert_allclose(slope, squared, rtol=1e-6)


@every_array
def test_unflattening_checks_nothing(x):
    tree = jax.tree.structure(x)
    for leaf in (None, object(), "text", jax.ShapeDtypeStruct((3,), np.float64)):
        jax.tree.unflatten(tree, [leaf] * tree.num_leaves)
    shapes = jax.eval_shape(lambda x: x @ x, x)
    assert shapes.shape == (3, 3) and shapes.dtype == np.float64


@every_array
def test_pickles_and_copies(x):
    again = pickle.loads(pickle.dumps(x))
    assert type(again) is type(x) and again.assumptions == x.assumptions
    np.testing.assert_array_equal(dense(again), dense(x))


def test_functions_can_be_pickled():
    for f in (sa.add, sa.linalg.solve, sa.fft.fft):
        assert pickle.loads(pickle.dumps(f)) is f


# ---- policies --------------------------------------------------------------------------------------------------------


def test_densify():
    x = sa.Diagonal(np.ones(100))
    assert type(sa.sort(x)) is sa.Dense
    with sa.densify("error"), pytest.raises(sa.DensifyError, match="sort would expand Diagonal of shape"):
        sa.sort(x)
    with sa.densify(limit=1000), pytest.raises(sa.DensifyError, match="above the limit of 1000 bytes"):
        sa.sort(x)
    with sa.densify("warn"), pytest.warns(sa.DensifyWarning, match="sort expands Diagonal"):
        sa.sort(x)
    with pytest.raises(sa.DensifyError, match="limit"):
        sa.sort(sa.Diagonal(np.ones(10**6)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sa.sort(x)
    for bad in ({"mode": "never"}, {"limit": -1}):
        with pytest.raises(ValueError, match=r"mode must be|limit must be"), sa.densify(**bad):
            pass


@pytest.mark.parametrize(
    ("f", "n"),  # a call warns while it is traced, so once for each size
    [(lambda x: sa.sort(x), 41), (jax.jit(lambda x: sa.sort(x)), 42), (sa.structured(lambda x: jnp.sort(x)), 43)],
    ids=["eager", "jit", "structured"],
)
def test_densify_warns_at_the_line_of_the_caller(f, n):
    x = sa.Diagonal(np.ones(n))
    with sa.densify("warn"), pytest.warns(sa.DensifyWarning, match="sort expands Diagonal") as caught:
        f(x)
    assert {warning.filename for warning in caught} == {__file__}


def test_policies_belong_to_the_cache_of_jit():
    traced = []

    @jax.jit
    def f(x):
        traced.append(1)
        return sa.sort(x)

    x = sa.Diagonal(np.ones(4))
    f(x)
    f(x)
    assert len(traced) == 1
    with sa.densify("error"), pytest.raises(sa.DensifyError):
        f(x)
    f(x)
    with sa.strong_zeros(False):
        f(x)
    assert len(traced) == 3


def test_contexts_belong_to_their_thread():
    seen = []
    with sa.densify("error"):
        thread = threading.Thread(target=lambda: seen.append(type(sa.sort(sa.Diagonal([2.0, 1.0])))))
        thread.start()
        thread.join()
    assert seen == [sa.Dense]


def test_errstate():
    with pytest.raises(np.linalg.LinAlgError, match="linalg.solve"):
        sa.linalg.solve(sa.zeros((2, 2)), sa.ones(2))
    with sa.errstate(linalg="nan"):
        assert np.isnan(dense(sa.linalg.solve(sa.zeros((2, 2)), sa.ones(2)))).all()
    assert np.isnan(dense(jax.jit(sa.linalg.solve)(sa.zeros((2, 2)), sa.ones(2)))).all()
    with pytest.raises(ValueError, match="linalg must be"), sa.errstate(linalg="ignore"):
        pass


def test_record():
    x, v = ARRAYS["Banded"], sa.ones(3)
    with sa.record() as log:
        y = x @ v
        jax.jit(lambda x: x + sa.eye(3))(x)
        sa.sort(x)
    np.testing.assert_allclose(dense(y), dense(x) @ np.ones(3))
    assert [e.function for e in log.kernels if e.depth == 0][:2] == ["matmul", "add"]
    assert [e.function for e in log.densifications] == ["sort"]
    assert "1 densifications" in str(log) and log.peak_bytes > 0
    before = len(log.events)
    x @ v
    assert len(log.events) == before


def test_explain_computes_nothing():
    huge = sa.Diagonal(jnp.ones(10**6))
    log = sa.explain(lambda a, b: sa.linalg.solve(a + b, sa.ones(10**6)), huge, huge)
    assert log.result.shape == (10**6,) and not log.densifications
    with pytest.raises(sa.DensifyError):
        sa.explain(sa.sort, huge)


# ---- the dispatcher --------------------------------------------------------------------------------------------------


class _A: ...


class _B(_A): ...


class _C(_B): ...


def test_the_closest_kernel_serves():
    registry = Registry("f")
    for classes in itertools.product((_A, _B), repeat=2):
        registry.kernel(*classes)(classes)
    assert registry.choose((_C(), _A()), {}).run == (_B, _A)
    assert registry.choose((_C(), _C()), {}).run == (_B, _B)
    tie = Registry("tie")
    tie.kernel(_A, _C)("leftmost is farther")
    tie.kernel(_C, _A)("leftmost is nearer")
    assert tie.choose((_C(), _C()), {}).run == "leftmost is nearer"
    some = Registry("some")
    some.kernel(_A)("always")
    some.kernel(_A, when=lambda x, *, k: k > 0)("positive")
    some.kernel(_A)("later")
    assert some.choose((_B(),), {"k": 1}).run == "positive"
    assert some.choose((_B(),), {"k": 0}).run == "later"
    assert some.choose((1,), {"k": 0}) is None
    assert tie.required((_C(), _C())).run == "leftmost is nearer"
    with pytest.raises(TypeError, match="tie has no kernel for _B, _B"):
        tie.required((_B(), _B()))
    with pytest.raises(TypeError, match="classes must be array classes"):
        some.kernel("Dense")


def test_no_two_of_our_kernels_serve_the_same_classes():
    for function in FUNCTIONS.values():
        if isinstance(function, Registry):
            plain = [k.classes for k in function.kernels if k.when is None]
            assert len(plain) == len(set(plain)), f"{function.name}: {[c for c in plain if plain.count(c) > 1]}"


def test_a_structure_of_ones_own_must_have_slots():
    with pytest.raises(TypeError, match="__slots__"):
        type("Mine", (sa.Diagonal,), {})


def test_one_compiled_call_an_operation():
    x, v = ARRAYS["Banded"], sa.ones(3)
    x @ v
    count = sa.matmul._fast._cache_size()
    for _ in range(5):
        x @ v
    assert sa.matmul._fast._cache_size() == count


def test_bad_arguments_are_named():
    x = sa.ones(3)
    with pytest.raises(TypeError, match="add: x2 must be an array"):
        sa.add(x, "text")
    with pytest.raises(TypeError, match=r"sum\(\): .*unexpected.*signature"):
        sa.sum(x, axes=0)
    with pytest.raises(TypeError, match="signature"):
        sa.add(x)
    assert (x == "text") is False
    with pytest.raises(TypeError):
        x + "text"


# ---- dtypes and the namespace ----------------------------------------------------------------------------------------


def test_no_weak_type_leaks():
    for x in (sa.asarray(3.0), sa.full(3, 2.0), sa.ones(3) + 1.0, sa.sum(sa.ones(3)), sa.where(True, 1.0, sa.ones(2))):
        assert not x.to_jax().weak_type
    assert (sa.ones(3, dtype=sa.float32) + sa.asarray(1.0, dtype=sa.float64)).dtype == np.float64


def test_dtypes_are_numpys_and_equal_none_never():
    assert isinstance(sa.ones(3).dtype, np.dtype)
    assert sa.float64 == np.dtype("float64") and hash(sa.float64) == hash(np.dtype("float64"))
    assert (sa.float64 == None) is False  # noqa: E711
    assert sa.sum(sa.ones(3, dtype=sa.float32), dtype=None).dtype == np.float32
    assert sa.sum(sa.ones(3, dtype=sa.float32), dtype=np.dtype("float64")).dtype == np.float64
    assert sa.sum(sa.ones(3, dtype=sa.float32), dtype=None).dtype == np.float32


@every_array
def test_the_namespace_is_one(x):
    for version in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        assert x.__array_namespace__(api_version=version) is sa
    with pytest.raises(ValueError, match=r"2020\.12"):
        x.__array_namespace__(api_version="2020.12")


LIBRARY = pathlib.Path(sa.__file__).parent


def _imported(path):
    """The subpackages that a file imports at its top level."""
    package = ["structarrays", *path.relative_to(LIBRARY).parts[:-1]]
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = [*base, *(node.module or "").split(".")]
            if module[0] == "structarrays":
                yield from ([*module[1:], a.name] for a in node.names)


def test_imports_point_downwards():
    """`_numerics` imports only JAX and `jax_internals`; `_functions` imports structures inside of calls."""
    order = ["_numerics", "_core", "_functions", "_structures", "transform", "interop", "testing"]
    for place, folder in enumerate(order[:4]):
        for path in (LIBRARY / folder).rglob("*.py"):
            for parts in _imported(path):
                if parts[0] in order and "jax_internals" not in parts and path.stem != "sampling":
                    assert order.index(parts[0]) <= place, (path, parts)


def test_jax_internals_import_jax_alone():
    for path in (LIBRARY / "_core" / "jax_internals").glob("*.py"):
        for parts in _imported(path):
            assert parts[:2] == ["_core", "jax_internals"], path


def test_names_of_files_are_unique():
    """Only the names that every family may use occur several times."""
    fixed = {"__init__", "array", "indexing", "numerics", "products", "reductions", "solvers"}
    files = [path for path in LIBRARY.rglob("*.py") if path.stem not in fixed]
    assert len({path.name for path in files}) == len(files)
    for path in LIBRARY.rglob("*.py"):
        assert path.stem not in fixed - {"__init__", "indexing"} or path.parts[-3] == "_structures", path


def test_families_load_all_files_that_register_kernels():
    for folder in (LIBRARY / "_structures").iterdir():
        if folder.is_dir() and folder.name != "__pycache__":
            assert folder.name in _structures.FAMILIES
            files = importlib.import_module(f"structarrays._structures.{folder.name}").FILES
            for path in folder.glob("*.py"):
                registers = re.search(r"\.(eager_)?kernel\(|register_exact\(", path.read_text(encoding="utf-8"))
                assert path.stem in files or not registers or path.stem == "__init__", path


def test_equal_calls_within_one_call_are_printed_once():
    x = sa.tridiagonal([1.0] * 8, [2.0] * 9, [1.0] * 8)

    def twice(x):
        return sa.linalg.matrix_power(x, 4), sa.linalg.matrix_power(x, 4)

    log = sa.explain(twice, x)
    lines = str(log).splitlines()
    assert lines[0].split() == ["function", "operands", "how", "result", "times"]
    (products,) = [line for line in lines if line.startswith("  matmul")][:1]
    assert products.split()[-1] == "2"  # x @ x, and its square, in one power
    assert sum(line.startswith("linalg.matrix_power") for line in lines) == 2  # two calls of the user have two rows
    assert lines[-1] == f"{len(log.kernels)} kernels, 0 densifications"
    assert "times" not in str(sa.explain(sa.add, x, x))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("f", [lambda x: 2 * x, lambda x: x / 2, lambda x: x - 1, lambda x: sa.multiply(x, 2)])
def test_a_log_changes_no_class(f, dtype):
    """A Python integer stays real next to a complex array, so the array stays Hermitian."""
    x = sa.Hermitian(np.asarray([[2.0, 0.0], [1.0j, 2.0]], dtype))
    with sa.record():
        logged = f(x)
    assert type(f(x)) is type(logged) is type(sa.explain(f, x).result) is sa.Hermitian
    assert logged.dtype == dtype
    np.testing.assert_array_equal(dense(logged), dense(f(sa.asarray(dense(x)))))


# ---- the first operation of a class in a process ----------------------------------------------------------------------


def test_the_first_operator_of_a_class_is_as_careful_as_the_second(monkeypatch):
    """The conversion of operands is cached by class. An operand of a new class must not go straight into the compiled call."""
    diagonal, sparse = sa.Diagonal(np.ones(4)), sa.Sparse([1.0, 2.0], ([0, 1], [0, 1]), (4, 4))
    low_rank, ones = sa.LowRank(np.ones((9, 1)), np.ones((9, 1))), sa.ones((9, 9))
    gradient = sa.grad(lambda A: sa.sum(A @ sa.ones(9)))(low_rank)
    diagonal + diagonal, ones + ones  # compiles the call
    for cls in (sa.Sparse, sa.LowRank):
        monkeypatch.delitem(operators.OPERANDS, cls, raising=False)
        operators.DIRECT.discard(cls)
    assert (sparse + diagonal).nnz == 4
    with pytest.raises(TypeError, match="derivative"):
        gradient + ones


@pytest.mark.parametrize("known", ["before", "after"])
def test_the_first_derivative_of_a_process_is_refused(known):
    """Until the first derivative, operators call compiled code directly with a class that may contain one."""
    unit, ones = sa.Triangular(np.ones((4, 4)), unit_diagonal=True), sa.ones((4, 4))
    before = list(writes.DERIVATIVES)
    writes.DERIVATIVES.clear()

    def forget():
        operators.OPERANDS.pop(sa.Triangular, None)
        operators.DIRECT.discard(sa.Triangular)

    forget()
    try:
        if known == "before":
            for _ in range(3):
                unit + ones, -unit
            assert sa.Triangular in operators.DIRECT
        gradient = sa.grad(lambda A: sa.sum(A @ sa.ones(4)))(unit)
        if known == "after":
            forget()
        operations = (lambda: gradient + ones, lambda: ones - gradient, lambda: -gradient, lambda: gradient @ ones)
        for _ in range(3):
            for operation in operations:
                with pytest.raises(TypeError, match="an operand is a derivative"):
                    operation()
            np.testing.assert_array_equal(dense(unit + ones), dense(unit) + 1)
        assert sa.Triangular not in operators.DIRECT
    finally:
        writes.DERIVATIVES[:] = writes.DERIVATIVES or before
