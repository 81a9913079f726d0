"""Our matrices as operators of Lineax, against its own on dense matrices, and its operators as our arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa
from structarrays.testing import STRUCTURES, sample

lx = pytest.importorskip("lineax")
equinox = pytest.importorskip("equinox")
operator = sa.interop.lineax.operator
from_operator = sa.interop.lineax.from_operator

N = 8
SMALL = dict(rtol=1e-12, atol=1e-12)
CHECKS = {
    "symmetric": lx.is_symmetric,
    "diagonal": lx.is_diagonal,
    "tridiagonal": lx.is_tridiagonal,
    "lower": lx.is_lower_triangular,
    "upper": lx.is_upper_triangular,
    "unit": lx.has_unit_diagonal,
    "psd": lx.is_positive_semidefinite,
    "nsd": lx.is_negative_semidefinite,
}


def close(result, expected, tolerance=1e-9):
    scale = max(1.0, np.abs(np.asarray(expected)).max(initial=0))
    np.testing.assert_allclose(np.asarray(result), expected, atol=tolerance * scale, rtol=0)


def numbers(rng, *shape, dtype="float64"):
    x = rng.normal(size=shape)
    return jnp.asarray(x + 1j * rng.normal(size=shape) if dtype == "complex128" else x)


def known(L):
    return {name for name, ask in CHECKS.items() if ask(L)}


@pytest.mark.parametrize("structure", STRUCTURES)
def test_one_row_and_one_column_are_diagonal(structure):
    """As `MatrixLinearOperator` has it."""
    x = sample(structure, (1, 1))
    if x is None:
        return
    L = operator(x)
    assert lx.is_diagonal(L) and lx.is_diagonal(lx.MatrixLinearOperator(jnp.ones((1, 1))))
    close(lx.materialise(L).as_matrix(), np.asarray(x))
    close(lx.diagonal(L), np.diagonal(np.asarray(x)))
    if np.asarray(x)[0, 0] != 0:
        close(lx.linear_solve(L, jnp.ones(1)).value, 1 / np.asarray(x)[0])


# ---- the operator -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", STRUCTURES)
def test_every_structure(structure, rng):
    dtype, core = ("complex128", (N, N)) if STRUCTURES.index(structure) % 2 else ("float64", (N, 5))
    x = sample(structure, core, dtype=dtype)
    x = sample(structure, (N, N), dtype=dtype) if x is None else x
    x = sample(structure, (N, N), dtype="complex128") if x is None else x
    dtype = str(x.dtype)
    host, L = np.asarray(x), operator(x)
    v, w = numbers(rng, x.shape[1], dtype=dtype), numbers(rng, x.shape[0], dtype=dtype)
    assert (L.in_structure().shape, L.out_structure().shape) == (x.shape[1:], x.shape[:1])
    with sa.densify("error"):
        close(L.mv(v), host @ v)
        close(L.T.mv(w), host.T @ w)
        close(lx.conj(L).mv(v), host.conj() @ v)
        close((2.0 * L + L).mv(v), 3 * host @ v)
        close((L.T @ L).mv(v), host.T @ (host @ v))
        if x.shape[0] == x.shape[1]:
            close(lx.diagonal(L), np.diag(host))
            for found, k in zip(lx.tridiagonal(L), (0, -1, 1), strict=True):
                close(found, np.diag(host, k))
    close(L.as_matrix(), host)
    close(lx.materialise(L).as_matrix(), host)
    # What is claimed has to be so.
    claims = known(L)
    if "symmetric" in claims:
        close(host, host.T)
    if "diagonal" in claims:
        close(host, np.diag(np.diag(host)))
    if "tridiagonal" in claims:
        close(host, np.triu(np.tril(host, 1), -1))
    if "lower" in claims:
        close(host, np.tril(host))
    if "upper" in claims:
        close(host, np.triu(host))
    if "unit" in claims:
        close(np.diag(host), np.ones(N))
    back = from_operator(L)
    assert sa.same_structure(back, x)
    close(back, host)


def test_tags_come_from_structure_and_assumptions():
    ones = np.ones(N)
    assert known(operator(sa.Diagonal(ones))) == {"diagonal", "tridiagonal", "lower", "upper", "symmetric"}
    assert known(operator(sa.Diagonal(ones + 1j))) == {"diagonal", "tridiagonal", "lower", "upper", "symmetric"}
    assert known(operator(sa.tridiagonal(ones[1:], ones, ones[1:]))) == {"tridiagonal"}
    assert known(operator(sa.bidiagonal(ones, ones[1:]))) == {"tridiagonal", "lower"}
    assert known(operator(sa.bidiagonal(ones, ones[1:]).mT)) == {"tridiagonal", "upper"}
    assert known(operator(sa.bidiagonal(ones, ones[1:])).T) == {"tridiagonal", "upper"}
    assert known(operator(sa.Triangular(np.eye(N)))) == {"lower"}
    assert known(operator(sa.Triangular(np.eye(N), lower=False, unit_diagonal=True))) == {"upper", "unit"}
    assert known(operator(sa.Symmetric(np.eye(N)))) == {"symmetric"}
    assert known(operator(sa.Symmetric(np.eye(N) * 1j))) == {"symmetric"}
    assert known(operator(sa.Hermitian(np.eye(N)))) == {"symmetric"}
    assert known(operator(sa.Hermitian(np.eye(N) * (1 + 0j)))) == set()
    assert known(operator(sa.asarray(np.eye(N)))) == set()
    assert known(operator(sa.assume(sa.Toeplitz(ones), "positive_definite"))) == {"psd", "symmetric"}
    assert known(operator(sa.assume(sa.Toeplitz(ones + 0j), "positive_definite"))) == {"psd"}
    assert known(operator(sa.exp(sa.Diagonal(ones)))) == {"symmetric"}  # the background is one
    assert known(operator(sa.Banded([ones[:5]], (0,), (N, 5)))) == set()
    given = operator(sa.asarray(-np.eye(N)), lx.negative_semidefinite_tag)
    assert known(given) == {"nsd", "symmetric"}
    assert known(operator(sa.asarray(np.eye(N)), [lx.symmetric_tag, lx.unit_diagonal_tag])) == {"symmetric", "unit"}


# ---- the solvers ------------------------------------------------------------------------------------------------------

BY_PRODUCTS = {
    "CG": lx.CG(**SMALL, max_steps=200),
    "GMRES": lx.GMRES(**SMALL, restart=N),
    "BiCGStab": lx.BiCGStab(**SMALL),
    "LSMR": lx.LSMR(**SMALL),
    "NormalCG": lx.Normal(lx.CG(**SMALL, max_steps=400)),
}
DENSE = {
    "LU": lx.LU(),
    "QR": lx.QR(),
    "SVD": lx.SVD(),
    "Cholesky": lx.Cholesky(),
    "auto": lx.AutoLinearSolver(well_posed=None),
}
POSITIVE_DEFINITE = {
    "Dense": lambda x: sa.asarray(x),
    "Sparse": lambda x: sa.Sparse.from_dense(x),
    "Toeplitz": lambda x: sa.Toeplitz([5.0, 1.0] + [0.5] * (N - 2)),
    "Kronecker": lambda x: sa.Kronecker(sa.Symmetric([[2.0, 0.5], [0.5, 1.0]]), sa.Diagonal([1.0, 2.0, 3.0, 4.0])),
    "Sum": lambda x: sa.Diagonal(np.arange(1.0, N + 1)) + sa.LowRank(x[:, :2], x[:, :2]),
    "Banded": lambda x: sa.tridiagonal(-np.ones(N - 1), np.full(N, 2.5), -np.ones(N - 1)),
}


def positive_definite(rng, name):
    x = rng.normal(size=(N, N))
    A = POSITIVE_DEFINITE[name](x @ x.T / N + np.eye(N))
    return sa.assume(A, "positive_definite"), np.asarray(A)


@pytest.mark.parametrize("name", POSITIVE_DEFINITE)
@pytest.mark.parametrize("method", BY_PRODUCTS)
def test_solvers_by_products(name, method, rng):
    A, host = positive_definite(rng, name)
    b = numbers(rng, N)
    with sa.densify("error"):
        close(lx.linear_solve(operator(A), b, BY_PRODUCTS[method]).value, np.linalg.solve(host, b), 1e-7)


@pytest.mark.parametrize("name", POSITIVE_DEFINITE)
@pytest.mark.parametrize("method", DENSE)
def test_solvers_by_the_dense_form(name, method, rng):
    A, host = positive_definite(rng, name)
    b = numbers(rng, N)
    close(lx.linear_solve(operator(A), b, DENSE[method]).value, np.linalg.solve(host, b), 1e-7)
    if type(A) not in (sa.Dense, sa.Banded):
        with sa.densify("error"), pytest.raises(sa.DensifyError, match="lineax: as_matrix would expand"):
            lx.linear_solve(operator(A), b, DENSE[method])


def test_solvers_by_diagonals(rng):
    b = numbers(rng, N)
    tri = sa.tridiagonal(numbers(rng, N - 1), numbers(rng, N) + 5, numbers(rng, N - 1))
    for A, solver in ((tri, lx.Tridiagonal()), (sa.Diagonal(numbers(rng, N) + 5), lx.Diagonal())):
        wanted = np.linalg.solve(np.asarray(A), b)
        for chosen in (solver, lx.AutoLinearSolver(well_posed=True)):
            with sa.densify("error"):
                close(lx.linear_solve(operator(A), b, chosen).value, wanted)
    for A in (
        sa.Triangular(np.eye(N) * 3 + rng.normal(size=(N, N)) / N),
        sa.bidiagonal(numbers(rng, N) + 5, numbers(rng, N - 1), lower=False),
    ):
        close(lx.linear_solve(operator(A), b, lx.Triangular()).value, np.linalg.solve(np.asarray(A), b))


def test_a_million_unknowns(rng):
    n = 1_000_000
    A = sa.assume(sa.tridiagonal(-np.ones(n - 1), np.full(n, 2.5), -np.ones(n - 1)), "positive_definite")
    b = numbers(rng, n)
    with sa.densify("error"):
        for solver in (lx.AutoLinearSolver(well_posed=None), lx.CG(rtol=1e-8, atol=1e-8)):
            x = lx.linear_solve(operator(A), b, solver).value
            assert np.abs(A.matvec(np.asarray(x)) - np.asarray(b)).max() < 1e-5


@pytest.mark.slow
def test_complex_and_rectangular(rng):
    A = sa.Sparse.from_dense(np.where(rng.random((N, 5)) < 0.6, rng.normal(size=(N, 5)), 0) * (1 + 2j) + np.eye(N, 5))
    host, b = np.asarray(A), numbers(rng, N, dtype="complex128")
    with sa.densify("error"):
        for method in ("LSMR", "NormalCG"):
            found = lx.linear_solve(operator(A), b, BY_PRODUCTS[method]).value
            close(found, np.linalg.lstsq(host, np.asarray(b))[0], 1e-6)
    close(lx.linear_solve(operator(A), b, lx.SVD()).value, np.linalg.lstsq(host, np.asarray(b))[0], 1e-8)


@pytest.mark.costly
@pytest.mark.parametrize("name", ["Sparse", "Banded", "Toeplitz", "Sum"])
def test_derivatives_and_transforms(name, rng):
    A, host = positive_definite(rng, name)
    b = numbers(rng, N)

    def objective(A, b, solver=BY_PRODUCTS["CG"]):
        return jnp.sum(lx.linear_solve(operator(sa.assume(A, "positive_definite")), b, solver).value ** 2)

    def dense_objective(a, b):
        return jnp.sum(jnp.linalg.solve(a, b) ** 2)

    with sa.densify("error"):
        by_matrix = jax.jit(sa.grad(objective))(A, b)
        by_vector = jax.grad(objective, argnums=1)(A, b)
        many = jax.vmap(lambda b: objective(A, b))(jnp.stack([b, 2 * b]))
    full, wanted = jax.grad(dense_objective, argnums=(0, 1))(jnp.asarray(host), b)
    close(by_vector, wanted, 1e-6)
    close(many, [dense_objective(host, b), dense_objective(host, 2 * b)], 1e-6)
    _, pullback = jax.vjp(lambda *leaves: as_jax(_rebuilt(A, leaves)), *_numbers(A))
    for found, expected in zip(_numbers(by_matrix), pullback(full), strict=True):
        close(found, expected, 1e-6)


def _numbers(A):
    return [leaf for leaf in jax.tree.leaves(A) if leaf.dtype.kind == "f"]


def _rebuilt(A, numbers):
    leaves, tree = jax.tree.flatten(A)
    numbers = iter(numbers)
    return jax.tree.unflatten(tree, [next(numbers) if leaf.dtype.kind == "f" else leaf for leaf in leaves])


# ---- from operators ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_from_operators(rng):
    d, e, f = numbers(rng, N), numbers(rng, N - 1), numbers(rng, N - 1)
    matrix, vector = numbers(rng, N, N), jax.ShapeDtypeStruct((N,), jnp.dtype("float64"))
    tri = lx.TridiagonalLinearOperator(d, e, f)
    diagonal = lx.DiagonalLinearOperator(d)
    full = lx.MatrixLinearOperator(matrix)
    spd = matrix @ matrix.T
    product = lx.FunctionLinearOperator(lambda v: d * v, vector, lx.diagonal_tag)
    three = lx.FunctionLinearOperator(tri.mv, vector, lx.tridiagonal_tag)
    cases = [
        (tri, sa.Banded, set()),
        (tri.T, sa.Banded, set()),
        (diagonal, sa.Diagonal, set()),
        (full, sa.Dense, set()),
        (lx.IdentityLinearOperator(vector), sa.Diagonal, {"symmetric", "hermitian", "positive_semidefinite"}),
        (lx.IdentityLinearOperator(vector, jax.ShapeDtypeStruct((N + 2,), jnp.dtype("float64"))), sa.Banded, set()),
        (lx.MatrixLinearOperator(spd, lx.positive_semidefinite_tag), sa.Dense, {"symmetric", "hermitian", "positive_semidefinite"}),
        (lx.MatrixLinearOperator(jnp.tril(matrix), lx.lower_triangular_tag), sa.Triangular, set()),
        (lx.MatrixLinearOperator(jnp.triu(matrix), lx.upper_triangular_tag), sa.Triangular, set()),
        (lx.TaggedLinearOperator(lx.MatrixLinearOperator(jnp.tril(matrix)), lx.lower_triangular_tag), sa.Triangular, set()),
        (lx.MatrixLinearOperator(jnp.diag(d), lx.diagonal_tag), sa.Diagonal, set()),
        (product, sa.Diagonal, set()),
        (three, sa.Banded, set()),
        (lx.FunctionLinearOperator(lambda v: matrix[:5] @ v, vector), sa.Dense, set()),
        (tri + diagonal, sa.Banded, set()),
        (2.0 * tri - tri / 3.0, sa.Banded, set()),
        (-tri @ tri, sa.Banded, set()),
        (diagonal @ tri, sa.Banded, set()),
        (full @ tri, sa.Dense, set()),
        (lx.JacobianLinearOperator(lambda v, _: jnp.sin(v) * v[0], d), sa.Sparse, set()),
        (operator(sa.Toeplitz(d)) + tri, sa.Array, set()),
    ]  # fmt: skip
    for L, cls, assumptions in cases:
        x = from_operator(L)
        assert isinstance(x, cls), (type(x), L)
        assert x.assumptions == assumptions
        close(x, L.as_matrix())
    assert from_operator(lx.linearise(full)).data is matrix
    tree = lx.PyTreeLinearOperator({"a": matrix[:2], "b": matrix[2:]}, {"a": vector_of(2), "b": vector_of(N - 2)})
    close(from_operator(tree), matrix)


def vector_of(n):
    return jax.ShapeDtypeStruct((n,), jnp.dtype("float64"))


def test_there_and_back(rng):
    d = numbers(rng, N)
    for L in (lx.TridiagonalLinearOperator(d, d[1:], d[1:]), lx.DiagonalLinearOperator(d)):
        back = lx.materialise(operator(from_operator(L)))
        inner = back.operator
        assert type(inner) is type(L)
        assert equinox.tree_equal(inner, L)


def test_bad_arguments():
    with pytest.raises(TypeError, match="operator: x must be an array of structarrays, got ndarray"):
        operator(np.eye(3))
    with pytest.raises(ValueError, match=r"operator: x must be a matrix, \(M, N\), got shape \(2, 3, 3\)"):
        operator(sa.Diagonal(np.ones((2, 3))))
    with pytest.raises(
        TypeError, match="from_operator: operator must be a lineax.AbstractLinearOperator, got Identity"
    ):
        from_operator(sa.eye(3))
    assert operator(sa.Diagonal([1, 2, 3])).in_structure().dtype == np.float64
    with pytest.raises(ValueError, match="matching input and output structures"):
        operator(sa.ones((3, 2)), lx.symmetric_tag)
