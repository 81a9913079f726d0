"""Optimisers, `jax.tree.map` and `jax.grad` see the entries of arrays with indices, and leave the indices alone."""

import copy
import io
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from support import as_jax, dense

import structarrays as sa
from structarrays._core.array.flattening import opened


def sparse(values, order=(0, 1)):
    """A sparse array of shape (3, 4) with five entries."""
    x = sa.Sparse(values, ([0, 0, 1, 2, 2], [0, 3, 1, 0, 2]), (3, 4))
    return x._in_order(order)


PATTERN = np.array([[1, 0, 0, 1], [0, 1, 0, 0], [1, 0, 1, 0]], bool)


@pytest.fixture
def model(rng):
    """Arrays with indices, alone and as parts of others."""
    P = sa.Permutation([2, 0, 1])
    return {
        "sparse": sparse(rng.normal(size=5)),
        "permutation": P,
        "product": sa.Kronecker(sa.Sparse(rng.normal(size=2), ([0, 1], [1, 0]), (2, 2)), P),
        "dense": jnp.asarray(rng.normal(size=3)),
    }


def value(model):
    applied = sa.sum((model["permutation"] @ (model["sparse"] @ sa.ones(4)) - model["dense"]) ** 2)
    return as_jax(applied + sa.sum(model["product"] @ sa.ones(6)) ** 2)


def patterns(model):
    return [
        model["sparse"].coords,
        model["permutation"].p,
        *(model["product"].factors[0].coords),
        model["product"].factors[1].p,
    ]


def same_patterns(one, other):
    for p, q in zip(jax.tree.leaves(patterns(one)), jax.tree.leaves(patterns(other)), strict=True):
        np.testing.assert_array_equal(p, q)
        assert p.dtype == q.dtype


OPTIMISERS = {
    "sgd": lambda optax: optax.sgd(0.1, momentum=0.9),
    "adam": lambda optax: optax.adam(0.5),
    "adamw": lambda optax: optax.adamw(0.5, weight_decay=0.5),
    "clip": lambda optax: optax.chain(optax.clip_by_global_norm(0.1), optax.adamw(0.5, weight_decay=0.5)),
    "masked": lambda optax: optax.masked(optax.adamw(0.5), lambda p: jax.tree.map(lambda leaf: leaf.ndim > 0, p)),
    "lbfgs": lambda optax: optax.lbfgs(),
}


@pytest.mark.parametrize(
    "name, gradient", [*((name, jax.value_and_grad) for name in OPTIMISERS), ("adamw", sa.value_and_grad)]
)
def test_optimisers_change_entries_only(name, gradient, model):
    optax = pytest.importorskip("optax")
    optimiser = OPTIMISERS[name](optax)
    more = {"value_fn": value} if name == "lbfgs" else {}

    def step(model, state):
        loss, derivative = gradient(value)(model)
        known = {"value": loss, "grad": derivative} if name == "lbfgs" else {}
        updates, state = optimiser.update(derivative, state, model, **more, **known)
        return optax.apply_updates(model, updates), state

    steps = [jax.jit(step)] if name == "lbfgs" else [step, jax.jit(step)]  # eager line searches are slow
    for run in steps:
        new, state = run(model, optimiser.init(model))
        new, state = run(new, state)
        same_patterns(new, model)
        assert jax.tree.structure(new) == jax.tree.structure(model)
        assert not np.any(new["sparse"].data == model["sparse"].data)


def test_the_norm_of_a_gradient_counts_entries_only(model):
    optax = pytest.importorskip("optax")
    assert optax.global_norm(sparse([1.0, 2.0, 2.0, 4.0, 0.0])) == 5.0
    assert optax.global_norm(model["permutation"]) == 0.0
    weights = [model["sparse"].data, model["product"].factors[0].data, model["dense"]]
    np.testing.assert_allclose(optax.global_norm(model), np.linalg.norm(np.concatenate(weights)), rtol=1e-6)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_fit_by_adamw_converges_and_keeps_its_pattern(order, rng):
    """The matrix of this pattern that is nearest to another matrix has the elements of that one."""
    optax = pytest.importorskip("optax")
    target = rng.normal(size=(3, 4))
    optimiser = optax.adamw(0.3, weight_decay=1e-6)

    @jax.jit
    def step(A, state):
        updates, state = optimiser.update(jax.grad(lambda A: as_jax(sa.sum((A - target) ** 2)))(A), state, A)
        return optax.apply_updates(A, updates), state

    A = sparse(np.zeros(5), order)
    state, tree = optimiser.init(A), jax.tree.structure(A)
    for _ in range(150):
        A, state = step(A, state)
    assert step._cache_size() == 1 and jax.tree.structure(A) == tree
    np.testing.assert_allclose(dense(A), np.where(PATTERN, target, 0), atol=0.02)


def test_optimistix_keeps_patterns(rng):
    optimistix = pytest.importorskip("optimistix")
    target = rng.normal(size=(3, 4))

    def loss(A, _):
        return as_jax(sa.sum((A - target) ** 2))

    found = optimistix.minimise(loss, optimistix.BFGS(1e-8, 1e-8), sparse(np.zeros(5))).value
    assert jax.tree.structure(found) == jax.tree.structure(sparse(np.zeros(5)))
    np.testing.assert_allclose(dense(found), np.where(PATTERN, target, 0), atol=1e-6)


def test_arithmetic_by_tree_map(rng):
    x, y = sparse(rng.normal(size=5)), sparse(rng.normal(size=5))
    np.testing.assert_array_equal(dense(jax.tree.map(lambda p, q: p - 0.5 * q, x, y)), dense(x) - 0.5 * dense(y))
    np.testing.assert_array_equal(dense(jax.tree.map(lambda p: p + 1, sa.Permutation([1, 2, 0]))), np.eye(3)[[1, 2, 0]])
    stacked = jax.tree.map(lambda *p: jnp.stack(p), x, y)
    np.testing.assert_array_equal(dense(stacked), np.stack([dense(x), dense(y)]))
    other = sa.Sparse(np.ones(5), ([0, 0, 1, 2, 2], [0, 3, 1, 0, 3]), (3, 4))
    with pytest.raises(ValueError, match="indices"):
        jax.tree.map(jnp.add, x, other)


KEEPING = {
    "scaling": lambda A: 0.5 * A,
    "sum": lambda A: A + 0.5 * A,
    "difference": lambda A: A - 0.1 * sa.tanh(A),
    "product": lambda A: A * A,
    "root": lambda A: sa.sqrt(sa.abs(A)),
    "cast": lambda A: sa.astype(sa.astype(A, sa.float32), sa.float64),
    "transposes": lambda A: (2.0 * A.mT).mT,
    "rows": lambda A: sa.Diagonal([1.0, 2.0, 3.0]) @ A,
    "gradient": lambda A: A - 0.1 * sa.grad(lambda A: sa.sum(A**3))(A),
    "comparison": lambda A: A * sa.astype((A > 0) & (A < 1), A.dtype),
}


@pytest.mark.parametrize("name", KEEPING)
def test_loops_carry_what_keeps_its_pattern(name, rng):
    A = sparse(rng.normal(size=5))
    expected = KEEPING[name](KEEPING[name](A))

    def run(A):
        return jax.lax.scan(lambda A, _: (KEEPING[name](A), None), A, None, length=2)[0]

    for result in (run(A), jax.jit(run)(A)):
        assert jax.tree.structure(result) == jax.tree.structure(A)
        np.testing.assert_allclose(dense(result), dense(expected), rtol=1e-14)


def test_loops_carry_patterns_that_change():
    """The indices of what a compiled function returns are leaves."""
    p = np.array([1, 2, 0])
    P, Q = jax.jit(sa.Permutation)(p), sa.Permutation(p)
    assert len(jax.tree.leaves(P)) == 1 and jax.tree.leaves(P)[0].dtype.kind == "i"
    product, _ = jax.lax.scan(lambda P, _: (P @ Q, None), P, None, length=4)
    np.testing.assert_array_equal(dense(product), np.linalg.matrix_power(np.eye(3)[p], 5))
    # What eager functions make of it has constant ones.
    assert jax.tree.structure(sa.asarray(P, copy=True)) == jax.tree.structure(P.mT.mT) == jax.tree.structure(Q)


@pytest.fixture
def compilations():
    """A list that gets an element for each compilation. JAX calls its listeners in all threads."""
    names: list[str] = []

    def listen(name, *_, **__):
        if name.endswith("backend_compile_duration"):
            names.append(name)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield names
    jax.monitoring.unregister_event_duration_listener(listen)


def test_eager_calls_compile_once_for_all_patterns(compilations):
    def run(columns):
        A = sa.Sparse(np.ones(3), ([0, 1, 2], columns), (3, 3))
        P = sa.Permutation(columns)
        K = sa.Kronecker(A, P)
        return 2 * A, A.mT, A @ sa.ones(3), P @ sa.ones(3), sa.sum(A), K @ sa.ones(9), 3 * K, sa.exp(A), A[0], P @ P

    run([0, 1, 2])
    first = len(compilations)
    for columns in ([1, 0, 2], [2, 1, 0], [0, 2, 1], [1, 2, 0]):
        run(columns)
    assert first > 0 and len(compilations) == first


def test_arrays_that_a_compiled_function_makes_of_constant_indices_have_constant_indices(rng):
    A = sparse(rng.normal(size=5))

    def make(data, A):
        made = sa.Sparse(data, ([2, 0, 2], [1, 1, 0]), (3, 3))  # sorted on the host
        return made, made + made.mT, A.mT @ A, A._in_order((1, 0)), sa.Permutation([1, 2, 0])

    data = jnp.asarray(rng.normal(size=3))
    for got, want in zip(jax.jit(make)(data, A), make(data, A), strict=True):
        assert jax.tree.structure(got) == jax.tree.structure(want)
        np.testing.assert_allclose(dense(got), dense(want), rtol=1e-14)


def folded(program, constants, size):
    """The operations of a program that have no operands but large constants: XLA computes them while it compiles."""
    constants = {v: True for v in constants}
    found = []
    for equation in program.eqns:
        operands = [v for v in equation.invars if not hasattr(v, "val")]  # literals
        if not operands or not all(v in constants for v in operands):
            continue
        name = equation.primitive.name
        inner = equation.params.get("jaxpr")
        if name == "optimization_barrier":
            continue
        if name in ("pjit", "jit"):
            found += folded(inner.jaxpr, [*inner.jaxpr.invars, *inner.jaxpr.constvars], size)
        elif max(v.aval.size for v in operands) >= size and name not in ("broadcast_in_dim", "reshape"):
            found.append(name)
        constants.update(dict.fromkeys(equation.outvars, True))
    return found


@pytest.mark.parametrize(
    "function",
    [
        lambda A, B: A @ sa.ones(40),
        lambda A, B: sa.ones(30) @ A,
        lambda A, B: A[::2] @ sa.ones(40),
        lambda A, B: sa.sum(A, axis=0),
        lambda A, B: sa.sum(A + B),
        lambda A, B: A.mT @ B,
        lambda A, B: A._in_order((1, 0)) @ sa.ones(40),
        lambda A, B: sa.Permutation(np.arange(30)[::-1]) @ A,
    ],
)
def test_xla_computes_nothing_of_constant_indices_while_it_compiles(function, rng):
    where = rng.permutation(1200)[:200]
    A, B = (sa.Sparse(rng.normal(size=100), np.divmod(w, 40), (30, 40)) for w in (where[:100], where[100:]))
    program = jax.make_jaxpr(function)(A, B).jaxpr
    assert folded(program, program.constvars, 30) == []


def test_the_test_of_folding_sees_a_sort(rng):
    A = sparse(rng.normal(size=5))
    program = jax.make_jaxpr(lambda A: jnp.sort(A.coords[0]) + A.data)(A).jaxpr
    assert "sort" in folded(program, program.constvars, 5)


def test_gradients_have_constant_indices_or_raise(rng):
    """The indices of this array are leaves, since a compiled function computed them."""
    A = jax.jit(lambda p: sa.Sparse(jnp.ones(3), (p, p[::-1]), (3, 3)))(np.array([0, 2, 1]))
    gradient = sa.grad(lambda A: sa.sum(A * A))(A)
    np.testing.assert_array_equal(dense(A - 0.5 * gradient), np.zeros((3, 3)))
    with pytest.raises((ValueError, AttributeError)):  # JAX has the latter where it writes its message
        jax.tree.map(lambda p, g: p - 0.1 * g, A, gradient)


def test_gradients_of_permutations_are_no_arrays_to_calculate_with():
    P = sa.Permutation([1, 2, 0])
    gradient = sa.grad(lambda P: sa.sum(P @ sa.ones(3)))(P)
    with pytest.raises(TypeError, match="derivative"):
        P - 0.1 * gradient
    assert jax.tree.leaves(gradient) == [0.0]


def test_jit_compiles_once_for_equal_patterns(rng):
    function = jax.jit(lambda A, P: P @ (A @ sa.ones(4)))
    for _ in range(3):
        A, P = sparse(rng.normal(size=5)), sa.Permutation(np.array([2, 0, 1]))
        np.testing.assert_allclose(dense(function(A, P)), dense(P) @ dense(A) @ np.ones(4))
    assert function._cache_size() == 1
    other = sa.Sparse(np.ones(5), ([0, 0, 1, 2, 2], [0, 3, 1, 0, 3]), (3, 4))
    np.testing.assert_allclose(dense(function(other, sa.Permutation([0, 1, 2]))), dense(other) @ np.ones(4))
    np.testing.assert_allclose(dense(function(A, P)), dense(P) @ dense(A) @ np.ones(4))
    assert function._cache_size() == 2


def test_vmap_maps_entries_of_one_pattern_and_stacks_of_patterns(rng):
    A, data, v = sparse(rng.normal(size=5)), rng.normal(size=(2, 5)), np.ones(4)
    np.testing.assert_allclose(
        jax.vmap(lambda d: as_jax(A.with_data(d) @ v))(data), [dense(A.with_data(d)) @ v for d in data]
    )
    made, permutations = jax.vmap(lambda d: (A.with_data(d), sa.Permutation([1, 2, 0])))(data)
    np.testing.assert_array_equal(dense(made), [dense(A.with_data(d)) for d in data])
    np.testing.assert_array_equal(dense(permutations), np.stack([np.eye(3)[[1, 2, 0]]] * 2))
    several = sa.Sparse(rng.normal(size=(2, 2)), (np.array([[0, 1], [1, 2]]), np.array([[1, 2], [0, 0]])), (3, 3))
    twice = jax.vmap(lambda A: 2 * A)(several)
    np.testing.assert_array_equal(dense(twice), 2 * dense(several))
    P = sa.Permutation([[0, 2, 1], [1, 0, 2]])
    np.testing.assert_array_equal(jax.vmap(lambda P: as_jax(P @ np.arange(3.0)))(P), [[0, 2, 1], [1, 0, 2]])
    with pytest.raises(ValueError, match="axis"):
        jax.vmap(lambda P: P)(sa.Permutation([0, 1]))


def test_stacks_of_one_pattern_have_constant_indices(rng):
    optax = pytest.importorskip("optax")
    A, data = sparse(rng.normal(size=5)), rng.normal(size=(2, 5))
    unsorted = sa.Sparse(data, ([2, 2, 1, 0, 0], [2, 0, 1, 3, 0]), (3, 4))
    stacks = [A.with_data(data), jax.vmap(A.with_data)(data), jax.tree.map(lambda *p: jnp.stack(p), A, 2 * A), unsorted]
    optimiser = optax.adamw(0.5, weight_decay=0.5)
    for x in stacks:
        assert len(jax.tree.leaves(x)) == 1
        carried, _ = jax.lax.scan(lambda x, _: (0.5 * x + x, None), x, None, length=2)
        np.testing.assert_allclose(dense(carried), 2.25 * dense(x))
        updates, _ = optimiser.update(x, optimiser.init(x), x)
        stepped = optax.apply_updates(x, updates)
        for new, old in zip(stepped.coords, x.coords, strict=True):
            np.testing.assert_array_equal(new, old)
        np.testing.assert_allclose(jax.vmap(lambda x: as_jax(x @ np.ones(4)))(x), dense(x) @ np.ones(4))


def test_both_forms_compute_the_same(rng):
    """Compiled functions get constant indices, or traced ones."""
    A, P = sparse(rng.normal(size=5)), sa.Permutation([2, 0, 1])

    def function(A, P):
        return P @ A, A.mT @ A, A + A.mT.mT, A[1:, ::2], sa.sum(A, axis=0), P @ P, sa.linalg.inv(P), A._in_order((1, 0))

    expected = function(A, P)
    for results in (jax.jit(function)(A, P), jax.jit(function)(*opened((A, P)))):
        for got, want in zip(results, expected, strict=True):
            np.testing.assert_allclose(dense(got), dense(want), rtol=1e-14)


@pytest.mark.parametrize(
    "change", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), lambda x: x.to_device(x.device)]
)
def test_copies_have_the_same_tree(change, model):
    assert jax.tree.structure(
        jax.tree.map(change, model, is_leaf=lambda x: isinstance(x, sa.Array))
    ) == jax.tree.structure(model)


def _through_file(x):
    file = io.BytesIO()
    sa.save(file, x)
    file.seek(0)
    return sa.load(file)


ONE_PATTERN = {
    "given once": lambda: sa.Sparse(np.ones((2, 3)), ([0, 1, 2], [1, 0, 2]), (3, 3)),
    "given for each": lambda: sa.Sparse(np.ones((2, 3)), ([[0, 1, 2]] * 2, [[1, 0, 2]] * 2), (3, 3)),
    "of dense matrices": lambda: sa.Sparse.from_dense(np.stack([np.eye(3), 2 * np.eye(3)])),
    "padded": lambda: sa.Sparse.from_dense(np.stack([np.eye(3), 2 * np.eye(3)]), nnz=5),
    "permutation": lambda: sa.Permutation([[2, 0, 1]] * 2),
    "permutation of dense matrices": lambda: sa.Permutation.from_dense(np.stack([np.eye(3)[[2, 0, 1]]] * 2)),
    "part": lambda: sa.Kronecker(sa.Sparse(np.ones((2, 3)), ([0, 1, 2], [1, 0, 2]), (3, 3)), sa.eye(2)),
}


@pytest.mark.parametrize("name", ONE_PATTERN)
@pytest.mark.parametrize(
    "change", [copy.copy, lambda x: pickle.loads(pickle.dumps(x)), _through_file], ids=["copy", "pickle", "file"]
)
def test_a_stack_with_one_pattern_has_constant_indices(name, change):
    x = ONE_PATTERN[name]()
    for y in (x, change(x)):
        assert not any(leaf.dtype.kind == "i" for leaf in jax.tree.leaves(y))
        assert sa.same_structure(x, y)
        np.testing.assert_array_equal(dense(y), dense(x))
    if x.dtype.kind == "f" and name != "part" and "permutation" not in name:
        gradient = jax.grad(lambda z: as_jax(sa.sum(z * z)))(change(x))
        np.testing.assert_array_equal(dense(gradient), 2 * dense(x))


RESULTS_OF_ONE_PATTERN = {
    "sum with a matrix": (lambda S: S + S[0], lambda s: s + s[0]),
    "sum with another structure": (lambda S: S + sa.eye(3), lambda s: s + np.eye(3)),
    "product": (lambda S: S @ S, lambda s: s @ s),
    "slice": (lambda S: S[:, 1:], lambda s: s[:, 1:]),
    "transpose": (lambda S: S.mT, lambda s: s.mT),
    "stack": (lambda S: sa.stack([S[0], S[0]]), lambda s: np.stack([s[0], s[0]])),
    "concat": (lambda S: sa.concat([S, S], axis=-1), lambda s: np.concatenate([s, s], axis=-1)),
    "broadcast_to": (lambda S: sa.broadcast_to(S[0], (2, 3, 3)), lambda s: np.broadcast_to(s[0], (2, 3, 3))),
}


@pytest.mark.parametrize("name", RESULTS_OF_ONE_PATTERN)
def test_eager_results_with_one_pattern_have_constant_indices(name):
    function, of_dense = RESULTS_OF_ONE_PATTERN[name]
    x = sa.Sparse(np.arange(1.0, 7.0).reshape(2, 3), ([0, 1, 2], [1, 0, 2]), (3, 3))
    y = function(x)
    assert type(y) is sa.Sparse and len(jax.tree.leaves(y)) == 1
    np.testing.assert_array_equal(dense(y), of_dense(dense(x)))


SECOND_OPERANDS = {
    "another stack": lambda rng: jax.vmap(sparse)(rng.normal(size=(2, 5))).mT,
    "a matrix": lambda rng: sparse(rng.normal(size=5)).mT,
    "more dimensions": lambda rng: sa.Sparse(rng.normal(size=(3, 1, 2)), ([0, 3], [2, 1]), (4, 3)),
    "no entries": lambda rng: sa.Sparse(np.zeros((2, 0)), (np.zeros(0, int), np.zeros(0, int)), (4, 3)),
    "bands": lambda rng: sa.Banded([rng.normal(size=(2, 3)), rng.normal(size=3)], (0, -1), (4, 3)),
    "complex": lambda rng: sa.Sparse(rng.normal(size=(2, 2)) * 1j, ([0, 3], [2, 1]), (4, 3)),
}


@pytest.mark.parametrize("operand", SECOND_OPERANDS)
def test_compiled_sums_and_products_of_stacks_have_the_patterns_of_eager_ones(operand, rng):
    x = sa.Sparse(rng.normal(size=(2, 4)), ([0, 1, 3, 3], [1, 1, 0, 2]), (4, 3))
    y = SECOND_OPERANDS[operand](rng)

    def combined(x, y):
        return {"sum": x + y, "difference": y - x, "product": x * y}

    a, b = dense(x), dense(y)
    eager, compiled = combined(x, y), jax.jit(combined)(x, y)
    for results in (eager, compiled):
        for name, expected in {"sum": a + b, "difference": b - a, "product": a * b}.items():
            np.testing.assert_array_equal(dense(results[name]), expected)
            assert len(jax.tree.leaves(results[name])) == 1
            assert results[name].nnz <= x.nnz + getattr(y, "nnz", 6)
    assert jax.tree.structure(compiled) == jax.tree.structure(eager)
    carried = jax.lax.scan(lambda z, _: (z + y, None), x + y, None, length=2)[0]
    np.testing.assert_allclose(dense(carried), a + 3 * b, rtol=1e-14)
    gradient = jax.jit(jax.grad(lambda x: as_jax(sa.sum(abs((x + y) * x) ** 2))))(x)
    of_dense = jax.grad(lambda a: jnp.sum(abs((a + b) * a) ** 2))(jnp.asarray(a))
    np.testing.assert_allclose(gradient.data, of_dense[..., [0, 1, 3, 3], [1, 1, 0, 2]], rtol=1e-13)


PRODUCTS_OF_STACKS = {
    "S @ S.mT": (lambda S, A: S @ S.mT, lambda s, a: s @ s.mT),
    "S @ A": (lambda S, A: S @ A, lambda s, a: s @ a),
    "A @ S.mT": (lambda S, A: A @ S.mT, lambda s, a: a @ s.mT),
    "S @ D": (lambda S, A: S @ sa.Diagonal(np.arange(3.0)), lambda s, a: s * jnp.arange(3.0)),
    "B @ S": (lambda S, A: sa.Banded([np.ones(3)], (1,), (4, 4)) @ S, lambda s, a: jnp.eye(4, k=1) @ s),
    "power": (lambda S, A: sa.linalg.matrix_power(S @ S.mT, 3), lambda s, a: jnp.linalg.matrix_power(s @ s.mT, 3)),
}


@pytest.mark.parametrize("name", PRODUCTS_OF_STACKS)
def test_compiled_products_of_stacks_have_the_patterns_of_eager_ones(name, rng):
    function, of_dense = PRODUCTS_OF_STACKS[name]
    S = sa.Sparse(rng.normal(size=(2, 3)), ([0, 1, 3], [1, 1, 2]), (4, 3))
    A = sa.Sparse(rng.normal(size=2), ([0, 2], [2, 0]), (3, 3))
    s, a = jnp.asarray(dense(S)), jnp.asarray(dense(A))
    eager, compiled = function(S, A), jax.jit(function)(S, A)
    for result in (eager, compiled):
        np.testing.assert_allclose(dense(result), of_dense(s, a), rtol=1e-13, atol=1e-13)
        assert type(result) is sa.Sparse
        assert len(jax.tree.leaves(result)) == 1
    assert jax.tree.structure(compiled) == jax.tree.structure(eager)
    gradient = jax.jit(jax.grad(lambda S: as_jax(sa.sum(function(S, A) ** 2))))(S)
    expected = jax.grad(lambda s: jnp.sum(of_dense(s, a) ** 2))(s)
    np.testing.assert_allclose(gradient.data, expected[..., [0, 1, 3], [1, 1, 2]], rtol=1e-12, atol=1e-12)


def test_compiled_products_of_stacks_allocate_no_dense_form():
    n = 100_000
    S = sa.Sparse(np.ones((2, n)), (np.arange(n), (7 * np.arange(n)) % n), (n, n))
    with sa.densify("error"):
        result = jax.jit(lambda S: S @ S + S.mT)(S)
    assert result.nnz <= 2 * n
    np.testing.assert_array_equal(as_jax(result @ np.ones(n)), np.full((2, n), 2.0))


def test_a_loop_adds_bands_from_outside(rng):
    x, y = sa.Sparse(rng.normal(size=2), ([0, 3], [2, 1]), (4, 3)), sa.Banded([rng.normal(size=3)], (-1,), (4, 3))
    carried = jax.lax.scan(lambda z, _: (z + y, None), x + y, None, length=2)[0]
    np.testing.assert_allclose(dense(carried), dense(x) + 3 * dense(y), rtol=1e-14)


def test_sums_of_stacks_with_one_pattern_and_with_several(rng):
    one = sa.Sparse(rng.normal(size=(2, 2)), ([0, 1], [1, 2]), (3, 3))
    several = sa.Sparse(rng.normal(size=(2, 2)), ([[0, 1], [0, 1]], [[1, 2], [2, 0]]), (3, 3))
    for x, y in ((one, several), (several, one)):
        for add in (lambda x, y: x + y, jax.jit(lambda x, y: x + y)):
            np.testing.assert_array_equal(dense(add(x, y)), dense(x) + dense(y))


@pytest.mark.parametrize("change", [lambda x: pickle.loads(pickle.dumps(x)), _through_file], ids=["pickle", "file"])
def test_a_stack_with_several_patterns_keeps_them(change):
    x = sa.Sparse(np.ones((2, 2)), ([[0, 1], [0, 1]], [[1, 2], [2, 0]]), (3, 3))
    y = change(x)
    assert len(jax.tree.leaves(x)) == len(jax.tree.leaves(y)) == 3
    np.testing.assert_array_equal(dense(y), dense(x))


def test_devices_get_indices_along_with_entries(model):
    moved = jax.device_put(model, jax.devices()[0])
    assert jax.tree.structure(moved) == jax.tree.structure(model)
    np.testing.assert_allclose(value(moved), value(model))


def test_exported_programs_know_their_patterns(model):
    function = jax.jit(lambda A, P: (P @ A, 2 * A, P))
    A, P = model["sparse"], model["permutation"]
    exported = export.deserialize(export.export(function)(A, P).serialize())
    for got, want in zip(exported.call(A, P), function(A, P), strict=True):
        np.testing.assert_allclose(dense(got), dense(want))
    with pytest.raises(ValueError, match="indices"):
        exported.call(A, sa.Permutation([0, 1, 2]))


def test_equinox_partitions_arrays(rng):
    equinox = pytest.importorskip("equinox")
    A = sparse(rng.normal(size=5))
    entries, rest = equinox.partition(A, equinox.is_inexact_array)
    assert jax.tree.leaves(rest) == []
    np.testing.assert_array_equal(dense(equinox.combine(entries, rest)), dense(A))
    changed = equinox.tree_at(lambda A: A.data, A, 2 * A.data)
    np.testing.assert_array_equal(dense(changed), 2 * dense(A))
