"""What `structured` takes and gives back, what it remembers, and how it says that something is wrong."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import structarrays as sa

n = 6
D = sa.Diagonal(jnp.arange(1.0, n + 1))
T = sa.tridiagonal(jnp.ones(n - 1), 3 * jnp.ones(n), -jnp.ones(n - 1))
x = jnp.linspace(1.0, 2.0, n)


def same(found, expected):
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-12)


# ---- arguments and results -------------------------------------------------------------------------------------------


def test_structure_is_kept_and_the_rest_is_jax():
    exponential, product = sa.structured(lambda A, v: (jnp.exp(A), A @ v))(D, x)
    assert type(exponential) is sa.Diagonal and float(exponential.background) == 1
    assert isinstance(product, jax.Array)
    same(product, D.to_jax() @ x)


def test_arguments_and_results_are_pytrees():
    def model(parameters, *, scale, names):
        assert names == ("a", "b")
        return {"sum": parameters["A"] + scale * parameters["parts"][0], "none": None, "n": parameters["A"].shape[0]}

    result = sa.structured(model)({"A": D, "parts": [T, x]}, scale=2.0, names=("a", "b"))
    assert result["none"] is None and int(result["n"]) == n
    assert type(result["sum"]) is sa.Banded
    same(result["sum"], D.to_jax() + 2 * T.to_jax())


def test_a_decorator_keeps_the_name():
    @sa.structured
    def damped(A):
        """Half of it."""
        return A / 2

    assert damped.__name__ == "damped" and damped.__doc__ == "Half of it."
    assert type(damped(D)) is sa.Diagonal


def test_python_arguments_are_static():
    assert sa.structured(jnp.sum)(D, axis=0).shape == (n,)
    assert sa.structured(jnp.linalg.norm)(D, ord="fro").shape == ()
    same(sa.structured(lambda A, power: A**power)(D, 3), D.to_jax() ** 3)


def test_arguments_may_be_numpy_and_dense():
    same(sa.structured(jnp.matmul)(D, np.asarray(x)), D.to_jax() @ x)
    same(sa.structured(jnp.matmul)(D, sa.asarray(x)), D.to_jax() @ x)


def test_a_function_of_ordinary_arrays_is_that_function():
    assert isinstance(sa.structured(jnp.exp)(x), jax.Array)


def test_arrays_that_the_function_makes_itself():
    def program(A):
        return sa.Diagonal(jnp.diagonal(A)), A

    made, given = sa.structured(program)(T)
    assert type(made) is sa.Diagonal and type(given) is sa.Banded
    same(made.diag, jnp.full(n, 3.0))


def test_programs_of_the_namespace():
    same(sa.structured(lambda A, v: sa.sin(A @ v))(T, x), jnp.sin(T.to_jax() @ x))


def test_integers_booleans_and_complex_numbers():
    whole = sa.Diagonal(jnp.arange(n))
    assert sa.structured(lambda A: A * 2 + A)(whole).dtype == jnp.int64
    assert sa.structured(lambda A: (A > 2) & (A < 5))(whole).dtype == bool
    turned = sa.structured(lambda A: jnp.exp(1j * A) - 1)(D)
    same(turned, jnp.exp(1j * D.to_jax()) - 1)


def test_assumptions_are_used():
    positive = sa.assume(sa.tridiagonal(jnp.ones(n - 1), 4 * jnp.ones(n), jnp.ones(n - 1)), "positive_definite")
    with sa.record() as log:
        found = sa.structured(jnp.linalg.solve)(positive, x)
    assert "linalg.solve" in {event.function for event in log.kernels} and not log.densifications
    same(found, jnp.linalg.solve(positive.to_jax(), x))


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_what_is_no_function():
    with pytest.raises(TypeError, match="fun must be a function, got int"):
        sa.structured(3)


def test_a_closure_is_explained():
    with pytest.raises(TypeError, match=r"Diagonal \(6, 6\)\) that is not among its arguments; pass it as an argument"):
        sa.structured(lambda v, A: jnp.exp(D) @ v)(x, D)


def test_other_errors_of_types_are_left_alone():
    with pytest.raises(TypeError) as caught:
        sa.structured(lambda A: A @ "text")(D)
    assert "pass it as an argument" not in str(caught.value)


def test_an_argument_that_is_neither_an_array_nor_hashable():
    with pytest.raises(
        TypeError, match="structured: arguments must be arrays, pytrees of arrays, or hashable, got set"
    ):
        sa.structured(lambda A, v: A)(D, {1, 2})


def test_the_policy_is_asked():
    with sa.densify("error"), pytest.raises(sa.DensifyError, match="sort would expand Diagonal of shape"):
        sa.structured(jnp.sort)(D)
    with sa.densify(limit=10), pytest.raises(sa.DensifyError, match="cummax would expand"):
        sa.structured(functools.partial(lax.cummax, axis=0))(D)


def test_dead_equations_are_not_evaluated():
    def program(A, v):
        lost = jnp.sort(A)
        _, kept = jax.jit(lambda a: (jnp.cumsum(jnp.sort(a)), a * 2))(A)
        return kept @ v + 0 * len(lost.shape)

    with sa.densify("error"):
        same(sa.structured(program)(D, x), 2 * D.to_jax() @ x)


def test_singular_systems_give_nan():
    assert jnp.isnan(sa.structured(jnp.linalg.solve)(sa.Diagonal(jnp.zeros(n)), x)).all()


# ---- what is remembered ----------------------------------------------------------------------------------------------


def test_a_call_traces_once_for_each_structure():
    traced = []

    def program(A, v):
        traced.append(A.shape)
        return A @ v

    run = sa.structured(program)
    for _ in range(3):
        run(D, x)
        sa.structured(program)(2 * D, x)
    assert len(traced) == 1
    run(T, x)
    assert len(traced) == 2
    with sa.strong_zeros(False):
        run(D, x)
    assert len(traced) == 3


def test_static_arguments_are_told_apart_by_type():
    kinds = []
    run = sa.structured(lambda A, k: kinds.append(type(k)) or A)
    run(D, 1)
    run(D, 1.0)
    run(D, True)
    assert kinds == [int, float, bool]


def test_a_kernel_registered_later_is_found():
    class Marked(sa.Diagonal):
        __slots__ = ()

    marked = Marked.make((x, None), (n, n))
    run = sa.structured(lambda A: jnp.sinh(A))
    same(run(marked), jnp.sinh(marked.to_jax()))

    @sa.sinh.kernel(Marked)
    def _(a):
        return sa.Diagonal(jnp.zeros(n))

    jax.clear_caches()
    same(run(marked), jnp.zeros((n, n)))
    sa.sinh.kernels.pop()
    sa.sinh._found.clear()


@pytest.mark.parametrize("A", [D, T], ids=["Diagonal", "Banded"])
def test_each_step_is_recorded(A):
    def program(A, v):
        return (2 * jnp.sin(A) + jnp.exp(A)) @ v

    with sa.record() as log:
        sa.structured(program)(A, x)
    steps = ["sin", "multiply", "exp", "add", "matmul"]
    assert [event.function for event in log.kernels if event.depth == 0] == steps
    explained = sa.explain(sa.structured(program), A, x)
    assert [event.function for event in explained.kernels if event.depth == 0] == steps


def test_one_kernel_serves_both_doors():
    with sa.record() as log:
        sa.structured(lambda A, B: A @ B)(D, T)
    assert log.kernels[0].function == "matmul" and log.kernels[0].how.startswith("kernel matmul_diagonal")


# ---- constants of the program ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        (lambda A: A + jnp.eye(n), sa.Diagonal),
        (lambda A: jnp.eye(n, k=1) @ A, sa.Banded),
        (lambda A: A * jnp.tri(n), sa.Diagonal),
        (lambda A: jnp.where(jnp.eye(n, dtype=bool), A, 0.0), sa.Diagonal),
        (lambda A: A * jnp.full((n, n), 2.0), sa.Diagonal),
        (lambda A: jnp.eye(n) @ (jnp.ones((n, n)) * A), sa.Diagonal),
        (lambda A: jnp.triu(jnp.tril(A, 1), -1), sa.Diagonal),
        (lambda A: A - 2 * jnp.identity(n).T, sa.Diagonal),
    ],
)
def test_constant_matrices_keep_structure(program, kind):
    with sa.densify("error"):
        found = sa.structured(program)(D)
    assert type(found) is kind
    same(found, program(D.to_jax()))


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])
@pytest.mark.parametrize(("k", "swapped"), [(0, False), (2, True), (-1, False), (-3, True)])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_counters_compared(name, k, swapped, shape):
    """All comparisons of rows and columns, as masks of a banded array and as results."""
    A = sa.Banded([jnp.arange(1.0, 1 + min(shape)), jnp.ones(min(shape[0], shape[1] - 1))], (0, 1), shape)

    def program(A):
        i, j = lax.broadcasted_iota(int, shape, 0) + k, lax.broadcasted_iota(int, shape, 1)
        mask = getattr(jnp, name)(*((j, i) if swapped else (i, j)))
        return mask, jnp.where(mask, A, 0.0), A * mask, jnp.where(mask, 0.0, A), ~mask, mask.T

    for found, expected in zip(sa.structured(program)(A), program(A.to_jax()), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_constants_are_results_as_dense_arrays():
    found = sa.structured(
        lambda A: (jnp.eye(n), jnp.ones((n, n)), lax.broadcasted_iota(int, (n, n), 1), jnp.tri(n), A)
    )(D)
    assert all(isinstance(v, jax.Array) for v in found[:4]) and type(found[4]) is sa.Diagonal
    for value, expected in zip(found, (jnp.eye(n), jnp.ones((n, n)), jnp.mgrid[:n, :n][1], jnp.tri(n)), strict=False):
        np.testing.assert_array_equal(value, expected)


# ---- zeros -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_each_primitive_that_keeps_zero_does():
    from structarrays.transform.rules_elementwise import LIKE

    kept = {name for name, like in LIKE.items() if like.zero}
    zero, whole, no = jnp.zeros(()), jnp.zeros((), int), jnp.zeros((), bool)
    seen = set()
    for name in sorted(kept - {"copy_p", "copy", "name", "add_any", "stop_gradient", "complex", "clamp"}):
        primitive = getattr(lax, f"{name}_p", None)
        if primitive is None:
            continue
        for operands in (
            (zero,),
            (zero, zero),
            (whole,),
            (whole, whole),
            (no, no),
            (zero + 0j,),
            (zero + 0j, zero + 0j),
        ):
            for parameters in PARAMETERS.get(name, ({},)):
                try:
                    result = primitive.bind(*operands, **parameters)
                except Exception:  # not an operand of this primitive
                    continue
                if name == "atan2" and result.dtype.kind == "c":
                    continue  # which is NaN, and taken for that
                seen.add(name)
                assert not np.asarray(result), name
    assert kept - seen <= {
        "copy_p",
        "copy",
        "name",
        "add_any",
        "stop_gradient",
        "complex",
        "clamp",
        "lt_to",
        "bitcast_convert_type",
    }


PARAMETERS = {
    **dict.fromkeys("""asin asinh atan atanh cbrt expm1 log1p sin sinh sqrt tan tanh""".split(), ({"accuracy": None},)),
    "integer_pow": ({"y": 1}, {"y": 2}, {"y": 5}),
    "reduce_precision": ({"exponent_bits": 5, "mantissa_bits": 4},),
    "round": ({"rounding_method": lax.RoundingMethod.TO_NEAREST_EVEN},),
    "conj": ({"input_dtype": np.dtype("complex128")},),
}


def test_strong_zeros_absorb():
    scaled = sa.structured(lambda A, v: (A * v, jnp.inf * A, A / 0.0))(D, jnp.full(n, jnp.nan))
    for found in scaled:
        assert type(found) is sa.Diagonal and found.background is None
    with sa.strong_zeros(False):
        weak = sa.structured(lambda A: jnp.inf * A)(D)
    assert np.isnan(np.asarray(weak)[0, 1])


def test_a_complex_number_turns_a_hermitian_matrix():
    H = sa.Hermitian(jnp.asarray([[1.0, 2 + 1j], [2 - 1j, 3.0]]))

    def program(H, c):
        return 2j * H, 2.0 * H, H + 1j, H - 2j * H, jnp.exp(1j * H), c * H, H**2 + H

    turned = sa.structured(program)(H, jnp.asarray(1 + 2j))
    for found, expected in zip(turned, program(H.to_jax(), 1 + 2j), strict=True):
        same(found, expected)
    assert type(turned[1]) is sa.Hermitian


@pytest.mark.parametrize(
    "A",
    [
        sa.LowRank(jnp.full((4, 1), 1 + 2j), jnp.full((4, 1), 3 - 1j)),
        sa.Kronecker(jnp.full((2, 2), 1 + 2j), jnp.full((2, 2), 3 - 1j)),
        sa.Diagonal(jnp.full(4, 1 + 2j)),
    ],
)
@pytest.mark.filterwarnings("ignore:Casting (complex values to real|from complex to real)")
def test_a_real_dtype_takes_the_real_part(A):
    same(sa.structured(lambda A: A.astype("float32"))(A), A.to_jax().real.astype("float32"))


def test_conjugated_systems():
    A = sa.Triangular(jnp.asarray([[1 + 1j, 0], [2 - 1j, 3j]]))
    b = jnp.asarray([1.0 + 0j, 2.0])

    def program(A, b):
        solve = jax.scipy.linalg.solve_triangular
        factors = jax.scipy.linalg.lu_factor(A)
        return (
            solve(A, b, trans=2, lower=True),
            jnp.conj(A) @ b,
            [jax.scipy.linalg.lu_solve(factors, b, trans=t) for t in (0, 1, 2)],
        )

    for found, expected in zip(
        *map(jax.tree.leaves, (sa.structured(program)(A, b), program(A.to_jax(), b))), strict=True
    ):
        same(found, expected)
