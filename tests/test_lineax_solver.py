"""`StructuredLinearSolver`: linear systems of Lineax and Optimistix by the structure of Jacobians, against dense solvers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import scipy.sparse.linalg

import structarrays as sa

lx = pytest.importorskip("lineax")
optx = pytest.importorskip("optimistix")
SOLVER = sa.interop.lineax.StructuredLinearSolver()
from_operator = sa.interop.lineax.from_operator


@pytest.fixture(autouse=True)
def nothing_becomes_dense():
    with sa.densify("error"):
        yield


def function(f, *shape, dtype="float64"):
    """The linear operator of a function of one array. `lineax.linear_solve` is compiled, so that arrays of indices in an
    operator from outside are unknown to it: `solved` makes its operator inside.
    """
    return lx.FunctionLinearOperator(f, jax.ShapeDtypeStruct(shape, dtype))


def dense(operator):
    with sa.densify("allow"):
        return np.asarray(operator.as_matrix())


def solved(operator, vector, solver=SOLVER):
    return lx.linear_solve(operator, vector, solver, state=solver.init(operator, {})).value


def flat(tree):
    return np.concatenate([np.ravel(x) for x in jax.tree.leaves(tree)])


def close(result, expected, tolerance=1e-10):
    result, expected = flat(result), flat(expected)
    assert np.linalg.norm(result - expected) <= tolerance * np.linalg.norm(expected)


def numbers(rng, *shape, dtype="float64"):
    x = rng.normal(size=shape)
    return jnp.asarray(x + 1j * rng.normal(size=shape) if dtype == "complex128" else x, dtype)


def smoothing(x):
    return 0.5 * x, 3.0 * jnp.diff(x, n=2)


# ---- matrices of operators -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [False, True])
def test_functions_and_jacobians_have_structure(compiled, rng):
    c = numbers(rng, 50)

    def f(x, c):
        return {"a": c * jnp.sin(x[1:-1]) * x[2:], "b": x[:5].sum() * x[0]}

    def matrices(c):
        point = jnp.cos(c)
        jacobian = lx.JacobianLinearOperator(f, point, c[1:-1])
        reverse = lx.JacobianLinearOperator(f, point, c[1:-1], jac="bwd")
        return [from_operator(L) for L in (jacobian, lx.linearise(jacobian), reverse, jacobian.T)]

    first, *others = (jax.jit(matrices) if compiled else matrices)(c)
    expected = dense(lx.JacobianLinearOperator(f, jnp.cos(c), c[1:-1]))
    assert first.shape == (49, 50) and first.offsets == (-48, -47, -46, -45, -44, 1, 2)
    np.testing.assert_allclose(first.to_dense(), expected)
    for x in others[:2]:
        np.testing.assert_allclose(x.to_dense(), expected)
    np.testing.assert_allclose(others[2].to_dense(), expected.T)
    assert from_operator(function(lambda x: 2 * x - jnp.roll(x, 1), 6)).offsets == (-1, 0, 5)
    assert type(from_operator(lx.TaggedLinearOperator(function(lambda x: 2 * x, 6), lx.symmetric_tag))) is sa.Diagonal
    z = from_operator(function(lambda z: 1j * z, 3, dtype="complex128"))
    np.testing.assert_array_equal(z.to_dense(), 1j * np.eye(3))


# ---- linear systems and least squares --------------------------------------------------------------------------------

ORDER = np.random.default_rng(1).permutation(40)
OPERATORS = {
    "square": function(lambda x: 4 * x - jnp.roll(x, 1) + jnp.pad(x, 1)[:-2], 40),
    "tall": function(smoothing, 40),
    "tall and not a band": function(lambda x: (x, x[ORDER] - jnp.roll(x, 1), x[::3].sum()), 40),
    "diagonal": function(lambda x: jnp.pad(2.0 * x, (0, 3)), 40),
    "wide": function(lambda x: jnp.diff(x) + x[1:], 40),
    "grid": function(lambda x: (x, 2 * jnp.diff(x, axis=0), jnp.diff(x, axis=1)), 8, 9),
    "complex": function(lambda x: (x, (1 + 2j) * jnp.diff(x)), 40, dtype="complex128"),
}


@pytest.mark.costly
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("adjoint", [False, True])
def test_solutions_are_those_of_dense_matrices(name, adjoint, rng):
    L = OPERATORS[name]
    if adjoint:
        L = lx.conj(L.transpose())
    vector = jax.tree.map(lambda s: numbers(rng, *s.shape, dtype=str(s.dtype)), L.out_structure())
    expected = np.linalg.lstsq(dense(L), flat(vector))[0]
    close(solved(L, vector), expected)
    close(jax.jit(lambda v: solved(L, v))(vector), expected)
    state = SOLVER.init(L, {})
    close(lx.linear_solve(L, vector, SOLVER, state=state).value, expected)
    # as Lineax requires of the states of a transpose and of a conjugate
    back = jax.tree.map(lambda s: numbers(rng, *s.shape, dtype=str(s.dtype)), L.in_structure())
    close(SOLVER.compute(SOLVER.transpose(state, {})[0], back, {})[0], np.linalg.lstsq(dense(L).T, flat(back))[0])
    close(SOLVER.compute(SOLVER.conj(state, {})[0], vector, {})[0], np.linalg.lstsq(dense(L).conj(), flat(vector))[0])


@pytest.mark.costly
@pytest.mark.parametrize("dtype, weights", [("float64", (1, 1e3, 1e5)), ("float32", (1, 10, 1e3))])
def test_accuracy_is_that_of_a_qr_decomposition(dtype, weights, rng):
    """With condition numbers up to 1e7; normal equations would have no correct digits."""
    n = 150
    for weight in weights:
        L = function(lambda x, w=weight: (0.01 * x, w * jnp.diff(x, n=2)), n, dtype=dtype)
        vector = (jnp.sin(jnp.arange(n, dtype=dtype) / 10), 0.1 * numbers(rng, n - 2, dtype=dtype))
        A = dense(L).astype("float64")
        b = flat(vector).astype("float64")
        expected = np.linalg.lstsq(A, b)[0]
        rounding = np.linalg.cond(A) * np.finfo(dtype).eps
        with sa.densify("allow"):
            by_qr = np.linalg.norm(
                flat(solved(lx.MatrixLinearOperator(L.as_matrix()), jnp.asarray(b, dtype), lx.QR())) - expected
            )
        ours = np.linalg.norm(flat(solved(L, vector)) - expected)
        assert ours <= max(10 * by_qr, rounding * np.linalg.norm(expected))
        wide = solved(L.T, vector[0])
        close(wide, np.linalg.lstsq(A.T, flat(vector[0]).astype("float64"))[0], max(10 * rounding, 1e-12))


def test_columns_and_rows_of_any_scale(rng):
    scales = jnp.asarray(10.0 ** rng.integers(-120, 120, size=30))
    L = function(lambda x: (scales * x, jnp.diff(scales * x)), 30)
    vector = (numbers(rng, 30), numbers(rng, 29))
    reference = function(lambda x: (x, jnp.diff(x)), 30)
    np.testing.assert_allclose(
        scales * solved(L, vector), np.linalg.lstsq(dense(reference), flat(vector))[0], rtol=1e-11
    )


def test_singular_operators_are_reported():
    for f in (lambda x: (0.0 * x[0], x[1:], x[1:]), lambda x: jnp.pad(x[1:], (1, 0))):
        L = function(f, 30)
        vector = jax.tree.map(lambda s: jnp.ones(s.shape), L.out_structure())
        assert lx.linear_solve(L, vector, SOLVER, throw=False).result == lx.RESULTS.singular
        value = jax.jit(lambda v, L=L: lx.linear_solve(L, v, SOLVER, throw=False).value)(vector)
        assert not jnp.all(jnp.isfinite(value))
    with pytest.raises(Exception, match="singular"):
        lx.linear_solve(function(lambda x: (0.0 * x[0], x[1:], x[1:]), 30), (jnp.ones(()), *[jnp.ones(29)] * 2), SOLVER)


def test_a_matrix_without_structure_follows_the_policy(rng):
    M, b = numbers(rng, 9, 6), numbers(rng, 9)
    L = lx.MatrixLinearOperator(M)
    with pytest.raises(sa.DensifyError, match="jacobian"):
        solved(function(lambda x: jnp.sort(x)[:2] + M[:2] @ x, 6), b[:2])
    with pytest.raises(sa.DensifyError, match="lineax: linear_solve"):
        solved(sa.interop.lineax.operator(sa.Toeplitz(np.arange(1.0, 4.0), shape=(9, 6))), b)
    close(solved(L, b), np.linalg.lstsq(M, b)[0])
    close(solved(L.T, b[:6]), np.linalg.lstsq(M.T, b[:6])[0])
    close(solved(lx.MatrixLinearOperator(M[:6]), b[:6]), np.linalg.solve(M[:6], b[:6]))
    T = sa.Toeplitz(np.arange(1.0, 4.0), shape=(9, 6))
    with sa.densify("allow"):
        close(solved(sa.interop.lineax.operator(T), b), np.linalg.lstsq(np.asarray(T), b)[0])


@pytest.mark.costly
@pytest.mark.parametrize("name", ["square", "tall", "wide"])
def test_derivatives_and_vmap(name, rng):
    shape = OPERATORS[name].in_structure().shape
    c = 1 + numbers(rng, *shape) ** 2
    vector = jax.tree.map(lambda s: numbers(rng, *s.shape), OPERATORS[name].out_structure())

    def loss(c, vector, solver=SOLVER):
        L = function(lambda x: jax.tree.map(lambda y: y * 2.0, OPERATORS[name].mv(c * x)), *shape)
        if solver is not SOLVER:
            L = lx.MatrixLinearOperator(L.as_matrix())
            vector = jnp.concatenate([jnp.ravel(v) for v in jax.tree.leaves(vector)])
        return jnp.sum(lx.linear_solve(L, vector, solver).value ** 3)

    with sa.densify("allow"):
        expected = jax.grad(loss, (0, 1))(c, vector, lx.QR())
    close(jax.jit(jax.grad(loss, (0, 1)))(c, vector), expected, 1e-8)
    several = jnp.stack([c, 2 * c])
    close(jax.vmap(loss, (0, None))(several, vector), [loss(c, vector), loss(2 * c, vector)])


# ---- Optimistix ------------------------------------------------------------------------------------------------------


def trend(u, y):
    """A smooth logarithm of noisy values."""
    return (jnp.exp(u) - y) / 0.1, 5.0 * jnp.diff(u, n=2)


def trajectory(states, observed):
    """Positions and velocities of a pendulum, of which some positions are observed."""
    x, v = states["x"], states["v"]
    h = 0.05
    return {
        "observed": (x[::5] - observed) / 0.05,
        "x": (x[1:] - x[:-1] - h * (v[1:] + v[:-1]) / 2) / 1e-3,
        "v": (v[1:] - v[:-1] + h * (jnp.sin(x[1:]) + jnp.sin(x[:-1])) / 2) / 1e-3,
    }


def offset(params, y):
    """One parameter is in all residuals, so that no order of the unknowns gives a narrow band."""
    u, c = params
    return jnp.exp(u) + c - y, 2.0 * jnp.diff(u), c - 0.5


def problem(name, n, rng):
    t = np.linspace(0, 4, n)
    if name == "trend":
        return trend, jnp.zeros(n), jnp.asarray(np.exp(np.sin(2 * t)) + 0.1 * rng.normal(size=n))
    if name == "trajectory":
        start = {"x": jnp.zeros(n), "v": jnp.zeros(n)}
        return trajectory, start, jnp.asarray(np.cos(0.05 * np.arange(n)[::5]) + 0.05 * rng.normal(size=len(t[::5])))
    return offset, (jnp.zeros(n), jnp.zeros(())), jnp.asarray(np.exp(np.sin(2 * t)) + 0.3)


METHODS = [optx.LevenbergMarquardt, optx.GaussNewton, optx.Dogleg, optx.IndirectLevenbergMarquardt]


@pytest.mark.costly
@pytest.mark.parametrize("name", ["trend", "trajectory", "offset"])
@pytest.mark.parametrize("method", METHODS)
def test_optimistix(name, method, rng):
    """SciPy's dense method finds the same optimum, and the dense method of Optimistix takes the same steps."""
    residual, start, y = problem(name, 40, rng)
    ours = optx.least_squares(residual, method(1e-9, 1e-9, linear_solver=SOLVER), start, args=y, max_steps=1000)
    for steps in (1, 4):
        few, dense_few = (
            optx.least_squares(
                residual, method(1e-9, 1e-9, linear_solver=s), start, args=y, max_steps=steps, throw=False
            )
            for s in (SOLVER, lx.QR())
        )
        close(few.value, dense_few.value, 1e-7)
    point, unravel = jax.flatten_util.ravel_pytree(start)
    f = jax.jit(lambda p: jnp.concatenate([jnp.ravel(r) for r in jax.tree.leaves(residual(unravel(p), y))]))
    found = scipy.optimize.least_squares(f, point, jax.jacfwd(f), xtol=1e-12, ftol=1e-12, gtol=1e-12)
    close(flat(jax.flatten_util.ravel_pytree(ours.value)[0]), found.x, 1e-6)


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("name", ["trend", "trajectory", "offset"])
def test_large_problems(name, rng):
    """A Jacobian of n = 2,000 unknowns or more, against Gauss and Newton's method with sparse matrices of SciPy."""
    residual, start, y = problem(name, 2000, rng)
    solver = optx.LevenbergMarquardt(rtol=1e-9, atol=1e-9, linear_solver=SOLVER)
    compiled = jax.jit(lambda y: optx.least_squares(residual, solver, start, args=y).value).lower(y).compile()
    ours = compiled(y)
    assert compiled.memory_analysis().temp_size_in_bytes < 8 * 2000**2 / 2
    point, unravel = jax.flatten_util.ravel_pytree(start)

    def f(p):
        return jnp.concatenate([jnp.ravel(r) for r in jax.tree.leaves(residual(unravel(p), y))])

    jacobian = jax.jit(sa.jacobian(f))
    expected = np.asarray(point)
    for _ in range(30):
        J = scipy.sparse.csc_array(sa.interop.scipy.to_sparse(jacobian(expected)))
        A, b = (J.T @ J).tocsc(), J.T @ np.asarray(f(expected))
        if name == "offset":  # full: SuperLU would take gigabytes
            step = scipy.linalg.solve(A.toarray(), b, assume_a="pos")
        else:
            step = scipy.sparse.linalg.spsolve(A, b)
        expected = expected - step
        if np.linalg.norm(step) <= 1e-13 * np.linalg.norm(expected):
            break
    close(flat(jax.flatten_util.ravel_pytree(ours)[0]), expected, 1e-6)


def test_derivatives_of_optima(rng):
    residual, start, y = problem("trend", 60, rng)
    solver = optx.LevenbergMarquardt(rtol=1e-11, atol=1e-11, linear_solver=SOLVER)

    def loss(y, linear_solver=SOLVER):
        adjoint = optx.ImplicitAdjoint(linear_solver=linear_solver)
        return jnp.sum(optx.least_squares(residual, solver, start, args=y, adjoint=adjoint).value ** 2)

    gradient = jax.jit(jax.grad(loss))(y)
    with sa.densify("allow"):
        close(gradient, jax.grad(loss)(y, lx.AutoLinearSolver(well_posed=None)), 1e-6)


@pytest.mark.parametrize("options", [{"jac": "fwd"}, {"jac": "bwd"}])
def test_both_modes(options, rng):
    """In reverse mode Optimistix forms the dense Jacobian itself."""
    residual, start, y = problem("trend", 30, rng)
    solver = optx.LevenbergMarquardt(rtol=1e-9, atol=1e-9, linear_solver=SOLVER)
    found = optx.least_squares(residual, solver, start, args=y, options=options).value
    close(jax.grad(lambda u: sum(jnp.sum(r**2) for r in residual(u, y)))(found) + 1, np.ones(30), 1e-6)


def test_indices_that_optimistix_passes_as_data(rng):
    """Optimistix turns constant indices into values of its loop. Then their pattern is unknown, under the policy."""
    left, right = np.array([0, 3, 1, 2, 4]), np.array([2, 4, 0, 3, 1])

    def residual(u, y):
        return u[left] - u[right] - y, 0.1 * u

    y = numbers(rng, 5)
    solver = optx.LevenbergMarquardt(1e-9, 1e-9, linear_solver=SOLVER)
    with pytest.raises(sa.DensifyError, match="gather"):
        optx.least_squares(residual, solver, jnp.zeros(5), args=y)
    with sa.densify("allow"):
        found = optx.least_squares(residual, solver, jnp.zeros(5), args=y).value
    A = np.eye(5)[left] - np.eye(5)[right]
    close(found, np.linalg.solve(A.T @ A + 0.01 * np.eye(5), A.T @ y), 1e-7)
    # A loop of one's own knows them.
    J = sa.jacobian(lambda u: residual(u, y)[0])(jnp.zeros(5))
    stacked = sa.concat([J, 0.1 * sa.eye(5)])
    close(
        lx.linear_solve(sa.interop.lineax.operator(stacked), jnp.concatenate([y, jnp.zeros(5)]), SOLVER).value,
        found,
        1e-7,
    )


def diffusion(u, c):
    wide = jnp.pad(u, 1)
    return c * (wide[2:] - 2 * u + wide[:-2]) - jnp.exp(u) + 1.5


@pytest.mark.parametrize("method", [optx.Newton, optx.Chord])
def test_root_finders(method):
    with_ours, dense_method = method(1e-10, 1e-10, linear_solver=SOLVER), method(1e-10, 1e-10)
    start = jnp.full(500, 0.4)
    ours = optx.root_find(diffusion, with_ours, start, args=3.0, max_steps=200).value
    with sa.densify("allow"):
        close(ours, optx.root_find(diffusion, dense_method, start, args=3.0, max_steps=200).value, 1e-8)
    assert jnp.max(jnp.abs(diffusion(ours, 3.0))) < 1e-8
