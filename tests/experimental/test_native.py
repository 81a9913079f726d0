"""Native calls: functions of JAX on structured arrays without a wrapper, and JAX unchanged without them.

On JAX 0.12 everything is tested. On other versions native calls must refuse, and change nothing.
"""

import contextlib
import functools
import importlib
import inspect
import re
import subprocess
import sys
import threading
from pathlib import Path
from types import FunctionType, ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import lax

import structarrays as sa
from structarrays.experimental import native
from structarrays.experimental.native import _jax
from structarrays.experimental.native._redirect import Redirect
from structarrays.testing import sample
from structarrays.testing.arrays import SAMPLERS

ROOT = Path(__file__).resolve().parents[2]
SUPPORTED = jax.__version__.startswith("0.12.")

sys.path.append(str(ROOT / "tests" / "transform"))
from checking import compare, dense, operands  # noqa: E402
from functions import FUNCTIONS, function  # noqa: E402

x = jnp.asarray([1.0, 2.0, 3.0])


def normal():
    return jax.random.normal(jax.random.key(0), (3,))


def diagonal():
    return sa.Diagonal([1.0, 2.0, 3.0])


def tridiagonal():
    return sa.tridiagonal([1.0, 2.0], [4.0, 5.0, 6.0], [1.0, 3.0])


@contextlib.contextmanager
def calls(on=True):
    """Native calls, or none."""
    with native.enabled() if on else contextlib.nullcontext():
        yield


def snapshot():
    """All attributes of the modules that native calls concern, with the code and the attributes of functions."""
    owners = [importlib.import_module(name) for name in _jax.MODULES]
    owners += [importlib.import_module(a.owner.partition(":")[0]) for a in (*_jax.PRIVATE, *_jax.PUBLIC)]
    owners += [jax.custom_jvp]
    found = {}
    for owner in owners:
        for name, value in vars(owner).items():
            inside = (value.__code__, dict(vars(value)), value.__defaults__) if isinstance(value, FunctionType) else ()
            found[owner.__name__, name] = value, inside
    return found


def same(before, after):
    """Whether two snapshots have identical objects, apart from modules that have been imported since."""
    new = after.keys() - before.keys()
    if before.keys() - after.keys() or not all(isinstance(after[key][0], ModuleType) for key in new):
        return False
    for key, (value, inside) in before.items():
        other, other_inside = after[key]
        if value is not other or (inside and (inside[0] is not other_inside[0] or inside[1:] != other_inside[1:])):
            return False
    return True


def test_the_import_of_the_library_does_not_import_it():
    code = "import sys, structarrays; print([name for name in sys.modules if 'experimental' in name and 'structarrays' in name])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_off_is_off():
    native.disable()
    assert not native.is_enabled()
    with pytest.raises(TypeError):
        jnp.sin(diagonal())
    with pytest.raises(TypeError):
        jnp.sum(diagonal())


def refused(name, match):
    before = snapshot()
    with pytest.raises(RuntimeError, match=match):
        if name == "enable":
            native.enable()
        else:
            with native.enabled():
                pass
    assert same(before, snapshot())
    assert not native.is_enabled()


@pytest.mark.parametrize("name", ["enable", "enabled"])
def test_other_versions_are_refused(name, monkeypatch):
    if SUPPORTED:
        monkeypatch.setattr(jax, "__version__", "0.13.0")
    refused(
        name,
        rf"native.{name}: JAX must have version 0\.12\.x, got {re.escape(jax.__version__)}; use structarrays.structured",
    )


if SUPPORTED:
    # ---- turning it on and off ---------------------------------------------------------------------------------------

    @pytest.fixture
    def on():
        with native.enabled():
            yield

    def test_jax_is_unchanged_afterwards():
        before = snapshot()
        for _ in range(2):
            native.enable()
            native.enable()
            assert native.is_enabled() and isinstance(jnp.sin(diagonal()), sa.Diagonal)
            assert not same(before, snapshot())
            native.disable()
            assert same(before, snapshot())
        with native.enabled(), native.enabled():
            jnp.sin(diagonal())
        assert same(before, snapshot())
        native.enable()
        with native.enabled():
            native.disable()
            assert native.is_enabled()
            jnp.sin(diagonal())
        assert same(before, snapshot()) and not native.is_enabled()

    def test_functions_stay_the_same_objects_with_their_signatures():
        functions = {"mean": jnp.mean, "scan": lax.scan, "add": lax.add, "vmap": jax.vmap, "relu": jax.nn.relu}
        signatures = {name: str(inspect.signature(f)) for name, f in functions.items()}
        with native.enabled():
            now = {"mean": jnp.mean, "scan": lax.scan, "add": lax.add, "vmap": jax.vmap, "relu": jax.nn.relu}
            for name, f in now.items():
                assert f is functions[name]
                assert str(inspect.signature(f)) == signatures[name]
            early = functions["mean"]  # a reference from before
            assert early(diagonal()) == 2 / 3

    def test_an_error_inside_restores_jax():
        before = snapshot()
        with pytest.raises(ZeroDivisionError), native.enabled():
            raise ZeroDivisionError
        assert same(before, snapshot())

    @pytest.mark.parametrize("attribute", [*_jax.PRIVATE, *_jax.PUBLIC], ids=lambda a: a.name)
    @pytest.mark.parametrize("change", ["missing", "other form"])
    def test_an_unknown_form_of_an_attribute_is_refused(attribute, change, monkeypatch):
        module, _, name = attribute.owner.partition(":")
        owner = importlib.import_module(module)
        owner = getattr(owner, name) if name else owner
        if change == "missing":
            monkeypatch.delattr(owner, attribute.name)
            refused("enable", f"{attribute.name} is missing")
        else:
            monkeypatch.setattr(owner, attribute.name, lambda unknown, argument: None)
            refused("enable", rf"{attribute.name} has the form \(unknown, argument\)")

    class Stubborn:
        """A function whose code cannot be replaced."""

        __globals__ = {}
        __defaults__ = __kwdefaults__ = __closure__ = None
        code = (lambda: None).__code__

        def __init__(self):
            self.__wrapped__ = None
            self.__name__ = self.__qualname__ = "stubborn"

        @property
        def __code__(self):
            return self.code

    def test_all_functions_are_redirected_or_none(monkeypatch):
        plan = native._plan
        monkeypatch.setattr(
            native, "_plan", lambda: [*plan(), Redirect(Stubborn(), print, lambda function: lambda: None)]
        )
        before = snapshot()
        with pytest.raises(AttributeError, match="__code__"):
            native.enable()
        assert same(before, snapshot()) and not native.is_enabled()

    def test_programs_are_kept_from_one_context_to_the_next():
        traced = []

        def count(name, *_, **__):
            traced.append(name)

        for _ in range(3):
            with native.enabled():
                jnp.sum(diagonal()), jnp.add(diagonal(), diagonal()), jnp.sin(diagonal())
            if not traced:
                jax.monitoring.register_event_duration_secs_listener(count)
                traced.append("start")
        jax.monitoring.clear_event_listeners()
        assert not [name for name in traced if "compile" in name]

    def test_every_private_attribute_is_in_the_table():
        for path in (ROOT / "structarrays" / "experimental" / "native").glob("*.py"):
            found = set(re.findall(r"jax\._src[\w.]*|jax\.extend[\w.]*", path.read_text(encoding="utf-8")))
            if path.name == "_jax.py":
                found -= {attribute.owner.partition(":")[0] for attribute in _jax.PRIVATE} | {"jax._src.", _jax.LOOPS}
            assert not found, (path.name, found)

    # ---- threads and caches ------------------------------------------------------------------------------------------

    def in_thread(code):
        results = []
        thread = threading.Thread(target=lambda: results.append(code()))
        thread.start()
        thread.join()
        return results[0]

    def test_threads():
        """`enable` concerns all threads, `enabled` this one."""
        with native.enabled():
            assert not in_thread(native.is_enabled)
            assert in_thread(lambda: raises(lambda: jnp.sum(diagonal())))
        native.enable()
        try:
            assert in_thread(native.is_enabled)
            assert isinstance(in_thread(lambda: jnp.sin(diagonal())), sa.Diagonal)
        finally:
            native.disable()
        assert not in_thread(native.is_enabled)

    def raises(code):
        try:
            code()
        except TypeError:
            return True
        return False

    def test_compiled_programs_are_not_mixed_up():
        traced = []

        @jax.jit
        def both(D):
            traced.append(native.is_enabled())
            return sa.sin(D)

        @jax.jit
        def natively(D):
            traced.append(native.is_enabled())
            return jnp.sin(D)

        def step(carry, _):
            return carry + jnp.sum(jnp.sin(D)), None

        D = diagonal()
        for _ in range(2):
            both(D)
            with pytest.raises(TypeError):
                natively(D)
            with pytest.raises(TypeError):
                jnp.sin(D)
            with pytest.raises(TypeError):
                lax.scan(step, 0.0, None, length=2)
            with native.enabled():
                assert isinstance(both(D), sa.Diagonal)
                assert isinstance(natively(D), sa.Diagonal)
                assert isinstance(jnp.sin(D), sa.Diagonal)
                np.testing.assert_allclose(lax.scan(step, 0.0, None, length=2)[0], 2 * np.sin([1, 2, 3]).sum())
        # `both` once in each mode, `natively` once with native calls and whenever it fails without
        assert sorted(traced) == [False, False, False, True, True]

    def test_calls_are_compiled_once(on):
        D = diagonal()
        other = D + D
        for call in (
            jnp.sin,
            jnp.sum,
            jnp.mean,
            jax.nn.relu,
            lambda D: jnp.add(D, D),
            lambda D: jnp.linalg.solve(D, x),
        ):
            call(D)
            events = []
            jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **__: events.append(name))  # noqa: B023
            try:
                call(other)
                found = [event for event in events if "compile" in event]
                del events[:]
            finally:
                jax.monitoring.clear_event_listeners()
            assert not [event for event in found if "backend_compile" in event]

    # ---- dense programs ----------------------------------------------------------------------------------------------

    def dense_program(v):
        y = jnp.sum(jnp.concatenate([v, jnp.where(v > 0, v, 0)]))
        z = lax.scan(lambda c, _: (jnp.add(c, jax.nn.relu(v)), None), v, None, length=3)[0]
        w = jax.vmap(lambda u: jnp.max(u))(jnp.stack([v, v]))
        r = lax.reduce(v, 0.0, lax.add, (0,)) + lax.reduce_window(v, 0.0, lax.add, (2,), (1,), "VALID").sum()
        s = lax.fori_loop(0, 3, lambda i, c: c * 1.5, w)
        return y + jnp.mean(z) + lax.cond(y > 0, lambda a: jnp.prod(a), lambda a: a.sum(), s) + r

    def test_dense_programs_are_the_same():
        """With the lines of the user for each equation. JAX compares reducers with `lax.add`."""
        found = []
        for on in (False, True):
            with calls(on):
                jax.clear_caches()
                program = jax.make_jaxpr(jax.value_and_grad(dense_program))(x)
                found.append((program.pretty_print(source_info=True), jax.jit(dense_program).lower(x).as_text()))
        assert found[0] == found[1]

    # ---- functions ---------------------------------------------------------------------------------------------------

    GRADIENTS = [code for code in FUNCTIONS if re.match(r"jax\.grad\(lambda a:", code)]
    """Natively a gradient has the structure of the array: it is zero outside of the pattern, unlike the dense gradient."""

    REFUSED = {
        "(A - A.mean(axis=0)) / (A.std(axis=0) + 1)": "has no attribute 'std'",
        "A.at[0].set(x)": "has no attribute 'at'; write x",
        "A.at[1, 2].set(7.0)": "has no attribute 'at'; write x",
        "A.at[1, 2].add(7.0)": "has no attribute 'at'; write x",
        "A.at[:, 0].multiply(2.0)": "has no attribute 'at'; write x",
        "A.at[0, 0].min(-9.0)": "has no attribute 'at'; write x",
        "A.at[jnp.array([0, 1]), jnp.array([0, 1])].set(1.0)": "has no attribute 'at'; write x",
    }
    """Methods of JAX arrays that arrays of this library do not have, with the reason in the error."""

    def pytest_generate_tests(metafunc):
        if "expression" in metafunc.fixturenames:
            chosen = list(FUNCTIONS)
            if metafunc.config.getoption("--functions") == "part":
                chosen = chosen[::3]
            metafunc.parametrize("expression", chosen)

    STRUCTURES = ("Banded", "Diagonal", "Toeplitz", "Sparse", "LowRank", "Kronecker", "Triangular", "Sum")

    @pytest.mark.each_parameter
    def test_functions(expression):
        section, call = FUNCTIONS[expression], function(expression)
        names = list(FUNCTIONS)
        structure = STRUCTURES[names.index(expression) % len(STRUCTURES)]
        A, v = operands(structure, section) or operands("Banded", section)
        if section in ("invertible", "positive definite") and not jnp.all(jnp.isfinite(jnp.linalg.inv(A.to_jax()))):
            A, v = operands("Banded", section)  # a structure without invertible matrices
        with native.enabled():
            if expression in REFUSED:
                with pytest.raises(AttributeError, match=re.escape(REFUSED[expression])):
                    call(A, v)
                return
            found = dense(call(A, v))
        if expression in GRADIENTS:
            leaves, tree = jax.tree.flatten(A)
            expected = dense(gradient(expression, A, v))
        else:
            expected = call(A.to_jax(), v)
        compare(found, expected, 1e-9)

    def gradient(expression, A, v):
        """The gradient by the parameters of the dense program."""
        inner = re.fullmatch(r"jax\.grad\((lambda a: .*)\)\(A\)", expression)[1]
        scalar = function(inner)(A, v)
        return jax.grad(lambda B: scalar(B.to_jax()))(A)

    def test_most_functions_are_right():
        """The bar is 80 %."""
        assert len(REFUSED) <= 0.02 * len(FUNCTIONS)

    @pytest.mark.parametrize(
        ("call", "expected"),
        [
            (lambda D: jnp.sum(D, axis=0), [1.0, 2.0, 3.0]),
            (lambda D: jnp.add.reduce(D), [1.0, 2.0, 3.0]),
            (lambda D: jnp.linalg.solve(D, x), [1.0, 1.0, 1.0]),
            (lambda D: jnp.matmul(D, x), [1.0, 4.0, 9.0]),
            (lambda D: x @ D, [1.0, 4.0, 9.0]),
            (lambda D: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(a=D), x), [1.0, 1.0, 1.0]),
            (lambda D: jnp.sum(a=D, axis=0), [1.0, 2.0, 3.0]),
            (lambda D: jnp.tanh(sa.asarray(x)), np.tanh([1.0, 2.0, 3.0])),
            (lambda D: jnp.concatenate([D, D])[3], [1.0, 0.0, 0.0]),
            (lambda D: jax.random.multivariate_normal(jax.random.key(0), 0 * x, D) / normal(), [1.0, 2**0.5, 3**0.5]),
        ],
    )
    def test_ways_to_call_a_function(call, expected, on):
        with sa.densify("error"):
            np.testing.assert_allclose(np.asarray(call(diagonal())), expected)

    def test_types(on):
        D = diagonal() * 1j
        assert jnp.iscomplexobj(D) and not jnp.isrealobj(D) and jnp.ndim(D) == 2 and jnp.shape(D) == (3, 3)
        assert jnp.result_type(D) == "complex128"

    def test_structure_is_kept_eagerly_and_in_compiled_functions(on):
        with sa.densify("error"):
            for call in (lambda D, T: jnp.sin(2 * D) + T, jax.jit(lambda D, T: jnp.sin(jnp.multiply(2, D)) + T)):
                assert type(call(diagonal(), tridiagonal())) is sa.Banded
        assert jnp.exp(diagonal()).background == 1
        assert jax.eval_shape(jnp.sin, diagonal()).shape == (3, 3)
        assert type(jnp.sin.lower(diagonal()).compile()(diagonal())) is sa.Diagonal

    def test_policies_apply(on):
        with pytest.raises(sa.DensifyError, match="sort would expand Diagonal"), sa.densify("error"):
            jnp.sort(diagonal())
        with sa.record() as log:
            assert isinstance(jnp.sort(diagonal()), jax.Array)
        assert [event.function for event in log.densifications] == ["sort"]

    def test_a_direct_call_of_a_primitive_is_refused(on):
        with pytest.raises(TypeError, match="as a JAX value"):
            lax.sin_p.bind(diagonal())

    def test_without_compilation_compiled_functions_are_refused(on):
        with jax.disable_jit(), pytest.raises(TypeError, match="as a JAX value"):
            jnp.sin(diagonal())

    # ---- transformations ---------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("transform", [lambda f: f, jax.jit, jax.checkpoint])
    def test_gradients_keep_structure(transform, on):
        def loss(T):
            return jnp.sum(jnp.linalg.solve(T, x) ** 2) + jnp.linalg.slogdet(T)[1] + jnp.sum(jax.nn.relu(T))

        T = tridiagonal()
        gradient = jax.grad(transform(loss))(T)
        assert type(gradient) is sa.Banded and gradient.offsets == T.offsets
        np.testing.assert_allclose(dense(gradient), dense(jax.grad(lambda T: loss(T.to_jax()))(T)), rtol=1e-9)

    def test_jvp_and_second_derivatives(on):
        D = diagonal()
        value, tangent = jax.jvp(jax.grad(lambda D: jnp.sum(jnp.sin(D) ** 2)), (D,), (D,))
        np.testing.assert_allclose(value.diag, np.sin([2.0, 4.0, 6.0]))
        np.testing.assert_allclose(tangent.diag, np.asarray([2.0, 4.0, 6.0]) * np.cos([2.0, 4.0, 6.0]))

    def test_an_optimizer_sees_a_pytree(on):
        def loss(D):
            return jnp.sum((jnp.matmul(D, x) - 1.0) ** 2)

        @jax.jit
        def step(D, state):
            updates, state = optimizer.update(jax.grad(loss)(D), state)
            return optax.apply_updates(D, updates), state

        D, optimizer = diagonal(), optax.adam(0.05)
        state = optimizer.init(D)
        for _ in range(400):
            D, state = step(D, state)
        assert type(D) is sa.Diagonal
        np.testing.assert_allclose(D.diag, [1.0, 1 / 2, 1 / 3], atol=1e-3)
        assert len(jax.tree.leaves(D)) == 1 and jax.tree.map(lambda leaf: 2 * leaf, D).diag[0] == 2 * D.diag[0]

    def test_vmap_over_a_batch_and_over_elements(on):
        stack = sa.Diagonal([[1.0, 2.0], [3.0, 4.0]])
        with sa.densify("error"):
            assert type(jax.vmap(jnp.sin)(stack)) is sa.Diagonal
            total = jax.vmap(lambda D: jnp.sum(D) + lax.psum(D, "i")[0, 0], axis_name="i")(stack)
        np.testing.assert_allclose(total, [7.0, 11.0])
        T = tridiagonal()
        assert isinstance(jax.vmap(lambda row: row)(T), jax.Array)
        np.testing.assert_allclose(jax.vmap(lambda row: row @ x)(T), T.to_jax() @ x)
        np.testing.assert_allclose(jax.vmap(lambda column: column @ x, in_axes=1)(T), x @ T.to_jax())
        columns = jax.vmap(lambda v: sa.Diagonal(v) @ T, out_axes=1)(jnp.stack([x, 2 * x]))
        np.testing.assert_allclose(np.asarray(columns)[:, 1], 2 * np.diag(x) @ T.to_jax())

    def test_transformed_functions_of_jax_are_functions_of_pytrees(on):
        for function in (jax.grad(jnp.sum), jax.jit(jax.grad(jnp.sum))):
            assert type(function(diagonal())) is sa.Diagonal
        stack = sa.Diagonal([[1.0, 2.0], [3.0, 4.0]])
        np.testing.assert_allclose(jax.jit(jax.vmap(jnp.sum))(stack), [3.0, 7.0])
        assert type(jax.jit(jax.vmap(jax.grad(jnp.sum)))(stack)) is sa.Diagonal

        @jax.jit
        @functools.wraps(jnp.sum)
        def of_user(A):
            return type(A) is sa.Diagonal and A.diag

        assert of_user(diagonal()).shape == (3,)

    def test_functions_of_users_with_derivatives_of_their_own_receive_structured_arrays(on):
        @jax.custom_jvp
        def of_user(D):
            return sa.Diagonal(2 * D.diag)

        @of_user.defjvp
        def of_tangents(primals, tangents):
            return of_user(*primals), of_user(*tangents)

        assert type(of_user(diagonal())) is sa.Diagonal
        assert type(jax.grad(lambda D: jnp.sum(of_user(D)))(diagonal())) is sa.Diagonal

    @pytest.mark.each_parameter
    @pytest.mark.parametrize("structure", SAMPLERS)
    def test_sums_over_devices_are_right_or_refused(structure, on):
        stack = sample(
            structure, (4, 4), batch=(2,), seed=3, dtype="complex128" if structure == "Fourier" else "float64"
        )
        if stack is None:
            stack = sample("Diagonal", (4, 4), batch=(2,), seed=3)
        try:
            found = jax.vmap(lambda A: lax.psum(A, "i"), axis_name="i")(stack)
        except TypeError as error:
            assert "psum: the operand must be an array of JAX" in str(error)
            return
        assert not getattr(found, "assumptions", frozenset())
        np.testing.assert_allclose(dense(found)[0], dense(stack).sum(axis=0), rtol=1e-12)

    def test_second_derivatives_by_parameters(on):
        """`jax.jacfwd` maps over the parameters itself."""

        def loss(T, x):
            return x @ jnp.sin(T) @ x

        found = jax.tree.leaves(jax.hessian(loss)(tridiagonal(), x))
        expected = jax.tree.leaves(jax.hessian(lambda T, x: loss(T.to_jax(), x))(tridiagonal(), x))
        compare(found, expected, 1e-12)

    def test_arguments_of_mapped_functions_may_be_none(on):
        stack = sa.Diagonal([[1.0, 2.0], [3.0, 4.0]])
        given = {"a": None, "b": stack, "c": tridiagonal()}
        axes = {"a": None, "b": 0, "c": None}
        found = jax.vmap(lambda v: jnp.trace(v["b"]) + jnp.sum(v["c"]), in_axes=(axes,))(given)
        np.testing.assert_allclose(found, np.asarray([3.0, 7.0]) + tridiagonal().to_jax().sum())
        rows = jax.vmap(lambda v: v["c"] @ x, in_axes=({"a": None, "b": None, "c": 0},))(given)
        np.testing.assert_allclose(rows, tridiagonal().to_jax() @ x)

    @pytest.mark.parametrize("name", ["psum", "pmax", "all_gather", "ppermute"])
    def test_collectives_refuse_what_is_not_a_function_of_parameters(name, on):
        stack = sa.LowRank(np.ones((2, 3, 1)), np.ones((2, 3, 1)))
        with pytest.raises(TypeError, match=f"{name}: the operand must be an array of JAX, got LowRank"):
            more = {"perm": [(0, 1)]} if name == "ppermute" else {}
            jax.vmap(lambda A: getattr(lax, name)(A, "i", **more), axis_name="i")(stack)

    # ---- loops and conditions ----------------------------------------------------------------------------------------

    def step(D):
        return jnp.sin(D) + tridiagonal()

    def repeated(D, count):
        for _ in range(count):
            D = jnp.sin(D) + tridiagonal().to_jax()
        return D

    LOOPS = {
        "scan": lambda D: lax.scan(lambda c, _: (step(c), jnp.sum(c)), D, None, length=3)[0],
        "while_loop": lambda D: lax.while_loop(lambda s: s[1] < 3, lambda s: (step(s[0]), s[1] + 1), (D, 0))[0],
        "fori_loop": lambda D: lax.fori_loop(0, 3, lambda i, c: step(c), D),
        "fori_loop, traced bounds": lambda D: jax.jit(lambda D, n: lax.fori_loop(0, n, lambda i, c: step(c), D))(D, 3),
        "nested": lambda D: lax.fori_loop(0, 3, lambda i, c: lax.fori_loop(0, 1, lambda j, d: step(d), c), D),
    }

    @pytest.mark.parametrize("loop", LOOPS)
    @pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
    def test_loops_widen_their_carry(loop, transform, on):
        with sa.densify("error"):
            found = transform(LOOPS[loop])(diagonal())
        assert type(found) is sa.Banded and found.offsets == (-1, 0, 1)
        np.testing.assert_allclose(dense(found), repeated(jnp.diag(x), 3), rtol=1e-12)

    def test_a_carry_without_a_common_structure_becomes_dense(on):
        T = tridiagonal()
        found = lax.scan(lambda c, _: (c @ T, None), T, None, length=5)[0]
        np.testing.assert_allclose(found, jnp.linalg.matrix_power(T.to_jax(), 6))
        with pytest.raises(sa.DensifyError), sa.densify("error"):
            lax.scan(lambda c, _: (jnp.sort(c), None), T, None, length=5)

    def test_a_loop_over_a_matrix_takes_rows(on):
        T = tridiagonal()
        total, rows = lax.scan(lambda c, row: (c + row.sum(), 2 * row), 0.0, T)
        np.testing.assert_allclose(rows, 2 * T.to_jax())
        assert total == T.to_jax().sum()
        np.testing.assert_allclose(lax.map(lambda row: row @ x, T), T.to_jax() @ x)
        np.testing.assert_allclose(lax.associative_scan(jnp.add, T), jnp.cumsum(T.to_jax(), axis=0))

    def test_a_loop_uses_an_array_from_outside(on):
        T = tridiagonal()
        found = lax.scan(lambda v, _: (T @ v, None), x, None, length=3)[0]
        np.testing.assert_allclose(found, jnp.linalg.matrix_power(T.to_jax(), 3) @ x)

    BRANCHES = {
        "cond": lambda p, D: lax.cond(p, jnp.sin, step, D),
        "cond, operand": lambda p, D: lax.cond(p, lambda D: jnp.sin(D), step, operand=D),
        "switch": lambda p, D: lax.switch(jnp.where(p, 0, 1), [jnp.sin, step], D),
    }

    @pytest.mark.parametrize("branches", BRANCHES)
    @pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
    def test_results_of_branches_are_joined(branches, transform, on):
        call, D = transform(BRANCHES[branches]), diagonal()
        with sa.densify("error"):
            for p in (True, False):
                found = call(p, D)
                assert type(found) is sa.Banded and found.offsets == (-1, 0, 1)
                expected = jnp.sin(D.to_jax()) if p else repeated(D.to_jax(), 1)
                np.testing.assert_allclose(dense(found), expected, rtol=1e-12, atol=1e-14)

    def test_branches_without_a_common_structure_become_dense(on):
        found = lax.cond(True, jnp.sin, jnp.sort, diagonal())
        assert isinstance(found, jax.Array)
        np.testing.assert_allclose(found, np.sin(np.diag(x)))
        with pytest.raises(sa.DensifyError), sa.densify("error"):
            lax.cond(True, jnp.sin, jnp.sort, diagonal())

    def test_gradients_of_loops_and_conditions_keep_structure(on):
        def loss(D):
            D = lax.cond(jnp.sum(D) > 0, step, jnp.sin, D)
            return jnp.sum(lax.fori_loop(0, 3, lambda i, c: step(c), D))

        gradient = jax.jit(jax.grad(loss))(diagonal())
        assert type(gradient) is sa.Diagonal
        expected = jnp.diagonal(jax.grad(lambda d: jnp.sum(repeated(d, 4)))(jnp.diag(x)))
        np.testing.assert_allclose(gradient.diag, expected, rtol=1e-9)

    def test_an_error_of_the_user_is_reported_by_jax(on):
        with pytest.raises(TypeError, match="must have same type structure|differ"):
            lax.cond(True, lambda D: (D, D), lambda D: D, diagonal())
        with pytest.raises(TypeError):
            lax.scan(lambda c, _: ((c, c), None), diagonal(), length=2)
        with pytest.raises(TypeError, match="must be a pair"):
            lax.scan(lambda c, _: c, diagonal(), length=2)

    # ---- the page of proposals ---------------------------------------------------------------------------------------

    PAGE = ROOT / "docs" / "design" / "upstream.md"
    REPRODUCTIONS = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)

    @pytest.mark.parametrize("number", range(len(REPRODUCTIONS)))
    def test_reproductions_of_proposals(number):
        """Each runs in a process of its own, and checks that JAX does what the page says."""
        run = subprocess.run([sys.executable, "-c", REPRODUCTIONS[number]], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
