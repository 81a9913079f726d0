"""`lstsq` of sparse matrices: NumPy's dense solver has the same values, ranks and derivatives. The cost depends on the entries."""

import functools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from support import as_jax

import structarrays as sa
from structarrays._structures.sparse import normal_equations

M, N = 330, 260


def tall(rng, m=M, n=N, density=0.006, dtype=np.float64):
    """A matrix of full rank whose columns are not orthogonal."""
    sparse = functools.partial(scipy.sparse.random_array, (m, n), density=density, rng=rng)
    matrix = sparse(data_sampler=rng.standard_normal) + scipy.sparse.eye_array(m, n) * 2.0
    if np.dtype(dtype).kind == "c":
        matrix = matrix + 1j * sparse(data_sampler=rng.standard_normal)
    return matrix.tocsr().astype(dtype)


def stationarity(a, x, b):
    """The backward error of a least-squares solution (Stewart, 1977), in longer arithmetic, relative to the norms."""
    a, x, b = (np.asarray(part, np.clongdouble) for part in (a, x, b))
    rest = b - a @ x
    return float(np.linalg.norm(a.conj().T @ rest)) / (
        np.linalg.norm(a.astype(complex), 2) * float(np.linalg.norm(rest))
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("columns", [None, 3])
@pytest.mark.parametrize("kind", ["tall", "square", "wide", "sorted by columns"])
def test_values(dtype, columns, kind, rng):
    matrix = tall(rng, M if kind != "square" else N, N, dtype=dtype)
    matrix = matrix.T.tocsr() if kind == "wide" else matrix
    b = rng.normal(size=(matrix.shape[0], *(() if columns is None else (columns,)))).astype(dtype)
    x = sa.Sparse.from_scipy(matrix)
    if kind == "sorted by columns":
        x = sa.Sparse.from_scipy(matrix.T.tocsr()).mT
    expected, residues, rank, _ = scipy.linalg.lstsq(matrix.toarray(), b)
    for call in (sa.linalg.lstsq, jax.jit(sa.linalg.lstsq)):
        with sa.densify("error"):
            found = call(x, b)
        eps = np.finfo(dtype).eps
        assert found.x.dtype == dtype and found.x.shape == expected.shape
        np.testing.assert_allclose(np.asarray(found.x), expected, rtol=0, atol=2e3 * eps * np.max(abs(expected)))
        assert int(found.rank) == rank == min(matrix.shape)
        assert found.s.shape == (0,)
        assert found.residues.shape == np.shape(residues)
        np.testing.assert_allclose(np.asarray(found.residues), residues, rtol=1e3 * eps)


def test_stacks(rng):
    """Stacks of matrices with padding, of right-hand sides, and both; also mapped."""
    matrices = [tall(rng) for _ in range(3)]
    stack = sa.stack([sa.Sparse.from_scipy(m) for m in matrices])
    b = rng.normal(size=(3, M, 2))
    assert isinstance(stack, sa.Sparse) and stack.padded
    expected = [np.linalg.lstsq(m.toarray(), c)[0] for m, c in zip(matrices, b, strict=True)]
    one = sa.Sparse.from_scipy(matrices[0])
    of_one = np.stack([np.linalg.lstsq(matrices[0].toarray(), c)[0] for c in b])

    def solve(a, b):
        return sa.linalg.lstsq(a, b).x

    with sa.densify("error"):
        np.testing.assert_allclose(np.asarray(solve(stack, b)), expected, atol=1e-12)
        np.testing.assert_allclose(np.asarray(jax.vmap(solve)(stack, b)), expected, atol=1e-12)
        np.testing.assert_allclose(np.asarray(solve(one, b)), of_one, atol=1e-12)
        np.testing.assert_allclose(np.asarray(jax.vmap(solve, (None, 0))(one, b)), of_one, atol=1e-12)
        found = sa.linalg.lstsq(one, b[0], np.array([1e-8, 1e-9]))
        np.testing.assert_allclose(np.asarray(found.x), [of_one[0]] * 2, atol=1e-12)
        assert found.rank.tolist() == [N, N]
        assert solve(one, b[0, :, :0]).shape == (N, 0)


def test_nothing_to_solve(rng):
    """No right-hand sides, and no matrices; the rank is known all the same."""
    x = sa.Sparse.from_scipy(tall(rng))
    without = sa.Sparse.from_scipy(with_zero_column(rng))
    for call in (sa.linalg.lstsq, jax.jit(sa.linalg.lstsq)):
        for shape in ((M, 0), (0, M, 2), (0, M, 0), (2, M, 0)):
            found = call(x, np.zeros(shape))
            assert found.x.shape == (*shape[:-2], N, shape[-1])
            assert found.residues.shape == (*shape[:-2], shape[-1])
            assert found.rank.shape == () and int(found.rank) == N
            assert int(call(without, np.zeros(shape)).rank) == N - 1
        found = call(sa.stack([x, without])[:0], np.zeros((M, 2)))
        assert found.x.shape == (0, N, 2) and found.rank.shape == (0,)


def graded_columns(rng, digits):
    return tall(rng) @ scipy.sparse.diags_array(10.0 ** np.linspace(0, -digits, N))


def graded_rows(rng, digits):
    return scipy.sparse.diags_array(10.0 ** rng.permutation(np.linspace(0, -digits, M))) @ tall(rng)


def nearly_dependent(rng, digits):
    matrix = tall(rng).tolil()
    matrix[:, [7]] = matrix[:, [5]]
    return matrix.tocsr() + 10.0**-digits * scipy.sparse.random_array((M, N), density=0.002, rng=rng)


def monomials(rng, degree):
    """Polynomials on intervals, as in a piecewise fit."""
    count = N // (degree + 1)
    blocks = [np.linspace(0, 1, degree + 8)[:, None] ** np.arange(degree + 1) for _ in range(count)]
    return scipy.sparse.block_diag([scipy.sparse.csr_array(block) for block in blocks]).tocsr()


def hilbert(rng, size):
    return scipy.sparse.block_diag(
        [scipy.sparse.csr_array(scipy.linalg.hilbert(size + 1)[:, :size])] * (N // size)
    ).tocsr()


HARD = {
    "unit columns": lambda rng: tall(rng),
    "columns of 1 to 1e-8": lambda rng: graded_columns(rng, 8),
    "columns of 1 to 1e-14": lambda rng: graded_columns(rng, 14),
    "rows of 1 to 1e-5": lambda rng: graded_rows(rng, 5),
    "rows of 1 to 1e-10": lambda rng: graded_rows(rng, 10),
    "nearly dependent, 1e-3": lambda rng: nearly_dependent(rng, 3),
    "nearly dependent, 1e-7": lambda rng: nearly_dependent(rng, 7),
    "nearly dependent, 1e-11": lambda rng: nearly_dependent(rng, 11),
    "polynomials of degree 4": lambda rng: monomials(rng, 4),
    "polynomials of degree 9": lambda rng: monomials(rng, 9),
    "Hilbert, 4 columns": lambda rng: hilbert(rng, 4),
    "Hilbert, 9 columns": lambda rng: hilbert(rng, 9),
    "a second difference": lambda rng: scipy.sparse.diags_array([1.0, -2.0, 1.0], offsets=[0, -1, -2], shape=(N + 2, N)).tocsr(),
    "alternating": lambda rng: scipy.sparse.diags_array([1.0, -1.0 + 1e-3], offsets=[0, -1], shape=(N + 1, N)).tocsr(),
    "one dense row": lambda rng: scipy.sparse.vstack([tall(rng), np.ones((1, N))]).tocsr(),
    "an intercept": lambda rng: scipy.sparse.hstack([tall(rng), np.ones((M, 1))]).tocsr(),
}  # fmt: skip


@pytest.mark.parametrize("name", HARD)
def test_hard_inputs(name, rng):
    """The backward error is at most ten times the error of LAPACK, for any size of the residual, eager and compiled."""
    matrix = HARD[name](rng)
    dense = matrix.toarray()
    x = sa.Sparse.from_scipy(matrix)
    for size in (1.0, 1e-6):
        b = dense @ rng.normal(size=dense.shape[1]) + size * rng.normal(size=len(dense))
        expected, _, rank, _ = scipy.linalg.lstsq(dense, b)
        bar = max(10 * stationarity(dense, expected, b), 1e-14)
        for call in (sa.linalg.lstsq, jax.jit(sa.linalg.lstsq)):
            found = call(x, b)
            assert int(found.rank) == rank
            assert stationarity(dense, np.asarray(found.x), b) <= bar


def test_ill_conditioned_solutions_are_exact_to_their_condition(rng):
    """Small blocks, solved by mpmath in 60 digits; the factors of ``A^H A`` alone would have half of the digits."""
    block = np.linspace(0, 1, 9)[:, None] ** np.arange(5)
    count = 60
    matrix = scipy.sparse.block_diag([scipy.sparse.csr_array(block)] * count).tocsr()
    b = rng.normal(size=9 * count)
    mpmath.mp.dps, before = 60, mpmath.mp.dps
    try:
        a = mpmath.matrix(block.tolist())
        expected = [mpmath.lu_solve(a.T * a, a.T * mpmath.matrix(part.tolist())) for part in b.reshape(count, 9)]
    finally:
        mpmath.mp.dps = before
    expected = np.array([[float(v) for v in part] for part in expected]).ravel()
    with sa.densify("error"):
        found = np.asarray(sa.linalg.lstsq(sa.Sparse.from_scipy(matrix), b).x)
    condition = np.linalg.cond(block)
    assert np.max(abs(found - expected)) / np.max(abs(expected)) < 10 * condition * np.finfo(float).eps


# ---- without full rank ------------------------------------------------------------------------------------------------


def dummies(rng, m=400, n=180):
    """Two sets of groups and an intercept: the rank is ``n - 1``, or smaller."""
    rows = np.arange(m)
    parts = [scipy.sparse.csr_array((np.ones(m), (rows, rng.integers(0, n // 2, m))), (m, n // 2)) for _ in range(2)]
    return scipy.sparse.hstack([np.ones((m, 1)), *parts]).tocsr()


def with_zero_column(rng):
    matrix = tall(rng).tolil()
    matrix[:, [3]] = 0
    return matrix.tocsr()


def tree(rng):
    """The incidence matrix of a path with a cycle; constants are its null space."""
    m = N
    ends = np.r_[np.arange(m - 1), 0], np.r_[np.arange(1, m), m - 1]
    rows = np.r_[np.arange(m), np.arange(m)]
    return scipy.sparse.csr_array((np.r_[np.ones(m), -np.ones(m)], (rows, np.concatenate(ends))), (m, m))


DEFICIENT = {
    "dummy variables": dummies,
    "equal columns": lambda rng: scipy.sparse.hstack([tall(rng), tall(rng) @ np.ones((N, 1)), np.ones((M, 2))]).tocsr(),
    "a zero column": with_zero_column,
    "an incidence matrix": tree,
    "more rows than needed, wide": lambda rng: dummies(rng).T.tocsr(),
    "zeros": lambda rng: scipy.sparse.csr_array((np.zeros(5), (range(5), range(5))), (M, N)),
}


@pytest.mark.parametrize("name", DEFICIENT)
def test_solutions_of_least_norm(name, rng):
    matrix = DEFICIENT[name](rng)
    dense, x = matrix.toarray(), sa.Sparse.from_scipy(matrix)
    b = rng.normal(size=len(dense))
    cond = 1e-10  # with the default, rounding errors decide about zeros among the singular values
    expected, _, rank, _ = scipy.linalg.lstsq(dense, b, cond)
    assert rank < min(dense.shape)
    for call in (sa.linalg.lstsq, jax.jit(sa.linalg.lstsq)):
        found = call(x, b, cond)
        assert int(found.rank) == rank
        assert found.s.shape == (0,)
        np.testing.assert_allclose(np.asarray(found.x), expected, atol=1e-10 * max(1, np.max(abs(expected))))
        with sa.densify("error"), sa.errstate(linalg="nan"):
            refused = call(x, b, cond)
            assert np.isnan(np.asarray(refused.x)).all() and np.isnan(np.asarray(refused.residues)).all()
    with sa.densify("error"), pytest.raises(np.linalg.LinAlgError, match="full column rank(.|\n)*not tried"):
        sa.linalg.lstsq(x, b, cond)


def test_stacks_with_and_without_full_rank(rng):
    matrices = [tall(rng), with_zero_column(rng)]
    stack, b = sa.stack([sa.Sparse.from_scipy(m) for m in matrices]), rng.normal(size=(2, M, 1))
    expected = [np.linalg.lstsq(m.toarray(), c)[0] for m, c in zip(matrices, b, strict=True)]
    for call in (sa.linalg.lstsq, jax.jit(sa.linalg.lstsq), jax.vmap(sa.linalg.lstsq)):
        found = call(stack, b)
        np.testing.assert_allclose(np.asarray(found.x), expected, atol=1e-11)
        assert found.rank.tolist() == [N, N - 1]
        with sa.densify("error"), sa.errstate(linalg="nan"):  # each matrix for itself
            found = call(stack, b)
        np.testing.assert_allclose(np.asarray(found.x)[0], expected[0], atol=1e-11)
        assert np.isnan(np.asarray(found.x)[1]).all()
    with sa.densify("error"), sa.errstate(linalg="nan"):
        found = sa.linalg.lstsq(stack, rng.normal(size=(4, 1, M, 2)))
    assert found.rank.shape == (2,) and found.rank[0] == N
    assert np.isnan(np.asarray(found.x)).any((-2, -1)).tolist() == [[False, True]] * 4


def test_the_tolerance_decides_about_the_rank(rng):
    """Near the tolerance, singular values of the dense form decide, not estimates."""
    matrix = graded_columns(rng, 4)
    dense, x, b = matrix.toarray(), sa.Sparse.from_scipy(matrix), rng.normal(size=M)
    s = np.linalg.svd(dense, compute_uv=False)
    for factor in (0.01, 0.5, 0.99, 1.01, 2.0, 100.0):
        cond = factor * s[-1] / s[0]
        expected, _, rank, _ = scipy.linalg.lstsq(dense, b, cond=cond)
        found = sa.linalg.lstsq(x, b, cond)
        assert int(found.rank) == rank
        np.testing.assert_allclose(np.asarray(found.x), expected, rtol=1e-8, atol=1e-8 * np.max(abs(expected)))


# ---- scales, NaN ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
@pytest.mark.parametrize("wide", [False, True])
def test_extreme_scales(scale, wide, rng):
    matrix = tall(rng).T.tocsr() if wide else tall(rng)
    b = rng.normal(size=matrix.shape[0])
    expected = np.linalg.lstsq(matrix.toarray(), b)[0]
    with sa.densify("error"):
        found = np.asarray(sa.linalg.lstsq(sa.Sparse.from_scipy(matrix * scale), b).x) * scale
        both = np.asarray(sa.linalg.lstsq(sa.Sparse.from_scipy(matrix * scale), b * scale).x)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(both, expected, atol=1e-12)


def test_complex_elements_whose_magnitudes_overflow(rng):
    matrix, b = tall(rng), rng.normal(size=M)
    expected = np.linalg.lstsq(matrix.toarray(), b)[0]
    scale = 1.7e308 / np.max(abs(matrix.data))
    x = sa.Sparse.from_scipy(matrix * (scale * (1 + 1j)))
    assert np.isinf(abs(np.asarray(x.data))).any()
    right = b * (1 + 1j) * (1.7e308 / np.max(abs(b)))
    with sa.densify("error"):
        found = np.asarray(sa.linalg.lstsq(x, right).x)
    np.testing.assert_allclose(found * (scale / 1.7e308 * np.max(abs(b))), expected, atol=1e-12)


@pytest.mark.parametrize("exponent", [-250, -1040])
def test_subnormal_columns(exponent, rng):
    """A column of tiny or subnormal elements, by the function of NumPy arrays: XLA replaces subnormal numbers by zero."""
    matrix, b = tall(rng).tocoo(), rng.normal(size=(M, 1))
    data = np.where(matrix.col == 5, np.ldexp(matrix.data, exponent), matrix.data)
    rounded = np.where(matrix.col == 5, np.ldexp(data, -exponent), data)
    dense = np.zeros((M, N))
    np.add.at(dense, (matrix.row, matrix.col), rounded)
    equations = normal_equations.NormalEquations(data, matrix.row, matrix.col, (M, N))
    # A ratio whose fourth power is out of range is not decided.
    assert equations.has_full_rank(0.0) == (exponent == -250)
    assert equations.regular and not equations.has_full_rank(1e-16)
    _, found = equations.solve(b * 2.0**-200, np.zeros((N, 1)))
    found = np.ldexp(found[:, 0], np.where(np.arange(N) == 5, exponent + 200, 200))
    np.testing.assert_allclose(found, np.linalg.lstsq(dense, b[:, 0])[0], atol=1e-12)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_not_finite(value, rng):
    matrix, b = tall(rng), rng.normal(size=(M, 2))
    x = sa.Sparse.from_scipy(matrix)
    broken = matrix.copy()
    broken.data[7] = value
    refused = sa.linalg.lstsq(sa.Sparse.from_scipy(broken), b)
    assert np.isnan(np.asarray(refused.x)).all() and int(refused.rank) == 0
    expected = np.linalg.lstsq(matrix.toarray(), b[:, 1])[0]
    b[3, 0] = value
    found = np.asarray(sa.linalg.lstsq(x, b).x)
    assert np.isnan(found[matrix[[3]].indices, 0]).all()
    np.testing.assert_allclose(found[:, 1], expected, atol=1e-12)


# ---- derivatives ------------------------------------------------------------------------------------------------------


def on_dense(data, b, pattern, function):
    """The same least squares by `jnp.linalg.pinv` of the dense form."""
    rows, columns, shape = pattern
    a = jnp.zeros(shape, data.dtype).at[rows, columns].add(data)
    return function(jnp.linalg.pinv(a) @ b)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("kind", ["tall", "wide", "without full rank"])
def test_derivatives(dtype, kind, rng):
    m, n = 40, 30
    matrix = tall(rng, m, n, 0.05, dtype)
    if kind == "wide":
        matrix = matrix.T.tocsr()
    elif kind == "without full rank":
        matrix = matrix @ scipy.sparse.diags_array(np.r_[np.zeros(2), np.ones(n - 2)])
        matrix.eliminate_zeros()
    x = sa.Sparse.from_scipy(matrix)
    rows, columns = (np.asarray(c) for c in x.coords)
    pattern = (rows, columns, matrix.shape)
    b, weights = (rng.normal(size=(k, 2)).astype(dtype) for k in matrix.shape)
    data, direction = (rng.normal(size=x.nnz).astype(dtype) for _ in range(2))
    data = data * 0.1 + np.asarray(x.data)

    def by_pattern(data, b):
        return as_jax(sa.linalg.lstsq(x.with_data(data), b, 1e-10).x)

    def by_dense_form(data, b):
        return on_dense(data, b, pattern, lambda y: y)

    def scalar(solve):
        return lambda data, b: (
            jnp.sum(jnp.abs(solve(data, b) * weights) ** 2) + jnp.sum((solve(data, b) * weights).real)
        )

    # A small matrix is solved in its structure if nothing may densify; without full rank the dense form is needed.
    policy = sa.densify("warn", limit=1 << 30) if kind == "without full rank" else sa.densify("error")
    with policy:
        for transform in (lambda f: f, jax.jit):
            value, tangent = transform(lambda d, b: jax.jvp(by_pattern, (d, b), (direction, b)))(data, b)
            expected = jax.jvp(by_dense_form, (data, b), (direction, b))
            np.testing.assert_allclose(value, expected[0], atol=1e-10)
            np.testing.assert_allclose(tangent, expected[1], atol=1e-9)
            found = transform(jax.grad(scalar(by_pattern), (0, 1)))(data, b)
            for part, other in zip(found, jax.grad(scalar(by_dense_form), (0, 1))(data, b), strict=True):
                np.testing.assert_allclose(part, other, atol=1e-9 * max(1, np.max(abs(np.asarray(other)))))
        if kind != "without full rank":
            twice, other = (
                jax.jvp(lambda d, f=f: jax.grad(scalar(f))(d, b), (data,), (direction,))[1]
                for f in (by_pattern, by_dense_form)
            )
            np.testing.assert_allclose(twice, other, atol=1e-8 * np.max(abs(np.asarray(other))))


# ---- cost -------------------------------------------------------------------------------------------------------------


def test_a_million_rows(rng):
    """Two group effects and a covariate: the dense form would have 16 GB."""
    m, n = 1_000_000, 2_000
    rows = np.arange(m)
    groups = scipy.sparse.csr_array((np.ones(m), (rows, rng.integers(0, n, m))), (m, n))
    matrix = scipy.sparse.hstack([groups, scipy.sparse.csr_array(rng.normal(size=(m, 1)))]).tocsr()
    b = rng.normal(size=m)
    with sa.densify("error"):
        found = sa.linalg.lstsq(sa.Sparse.from_scipy(matrix), b)
    rest = b - matrix @ np.asarray(found.x)
    assert int(found.rank) == n + 1
    assert np.max(abs(matrix.T @ rest)) < 1e-9


# ---- structures with a sparse form ------------------------------------------------------------------------------------


def differences(n):
    return sa.Banded([-np.ones(n - 1), np.ones(n - 1)], (0, 1), (n - 1, n))


OTHER_STRUCTURES = {
    "rows of penalties": lambda rng: sa.concat([sa.eye(N), 3.0 * differences(N)]),
    "rows of penalties below a design": lambda rng: sa.Block([[sa.Sparse.from_scipy(tall(rng))], [0.1 * sa.eye(N)]]),
    "a gradient on a grid, and a corner": lambda rng: sa.concat(
        [sa.Kronecker(sa.eye(20), differences(20)), sa.Kronecker(differences(20), sa.eye(20)), sa.Sparse([0.1], ([0], [7]), (1, 400))]
    ),
    "wide band": lambda rng: differences(N + 1),
    "square band": lambda rng: sa.Banded([np.full(N, 2.0), np.ones(N - 1)], (0, 1), (N, N)),
    "wide blocks": lambda rng: sa.BlockBanded([rng.normal(size=(90, 3, 4)), rng.normal(size=(89, 3, 4))], (0, 1)),
    "tall blocks": lambda rng: sa.BlockBanded([rng.normal(size=(90, 4, 3)), rng.normal(size=(89, 4, 3))], (0, -1)),
    "sum": lambda rng: sa.Sparse.from_scipy(tall(rng, 2 * N)) + sa.concat([sa.eye(N), sa.eye(N)]),
    "product": lambda rng: sa.Kronecker(differences(20), sa.eye(20)) @ sa.Kronecker(sa.eye(20), sa.Diagonal(np.arange(1.0, 21))),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER_STRUCTURES)
def test_other_structures(name, rng):
    x = OTHER_STRUCTURES[name](rng)
    dense = np.asarray(x)
    b = rng.normal(size=len(dense))
    expected, _, rank, _ = scipy.linalg.lstsq(dense, b)
    assert rank == min(dense.shape)
    for call in (sa.linalg.lstsq, jax.jit(sa.linalg.lstsq)):
        with sa.densify("error"):
            found = call(x, b)
        assert int(found.rank) == rank
        np.testing.assert_allclose(np.asarray(found.x), expected, atol=1e-9 * np.max(abs(expected)))


def test_other_structures_without_full_rank(rng):
    """Constants are the null space of a gradient."""
    x = sa.concat([sa.Kronecker(sa.eye(20), differences(20)), sa.Kronecker(differences(20), sa.eye(20))])
    b, dense = rng.normal(size=x.shape[0]), np.asarray(x)
    for call in (sa.linalg.lstsq, jax.jit(sa.linalg.lstsq)):
        found = call(x, b, 1e-10)
        assert int(found.rank) == 399 and found.s.shape == (0,)
        np.testing.assert_allclose(np.asarray(found.x), scipy.linalg.lstsq(dense, b, 1e-10)[0], atol=1e-11)
    with sa.densify("error"), pytest.raises(np.linalg.LinAlgError, match="full column rank"):
        sa.linalg.lstsq(x, b)


def test_explain_names_the_method(rng):
    text = str(sa.explain(sa.linalg.lstsq, sa.Sparse.from_scipy(tall(rng)), np.ones(M)))
    assert "lstsq_sparse" in text and "normal equations" in text
