"""Each row of docs/reference/eager_and_compiled.md: what an eager call gives, and what compiled code gives."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hard_inputs import MATRICES

import structarrays as sa

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "eager_and_compiled.md"
N = 48


def rows():
    """The first cells of the tables of the page."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [cell for line in lines if (cell := line.split(" | ")[0].removeprefix("| ")) != "case"]


TALL = sa.Banded([np.zeros(4), np.zeros(4)], (-1, 0), (5, 4))
DEFICIENT = sa.Sparse([1.0, 1.0], ([0, 1], [0, 1]), (3, 3))
INDEX = jnp.array(7)
X = np.arange(4.0)


def written(x, i):
    x[i] = 9.0
    return x


ONLY_EAGER_ERRORS = {
    "a singular matrix in `solve`, `inv`, `solve_triangular`, `cho_solve`": [
        (lambda x: sa.linalg.solve(x, jnp.ones(2)), (sa.Diagonal([1.0, 0.0]),), "is singular"),
        (sa.linalg.inv, (sa.Diagonal([1.0, 0.0]),), "is singular"),
        (lambda x: sa.linalg.solve_triangular(x, jnp.ones(2)), (sa.Triangular(np.diag([1.0, 0.0])),), "is singular"),
        (lambda x: sa.linalg.cho_solve((x, True), jnp.ones(2)), (sa.Triangular(np.diag([1.0, 0.0])),), "is singular"),
    ],
    "an indefinite matrix in `cholesky`": [
        (sa.linalg.cholesky, (sa.Diagonal([1.0, -1.0]),), "is not positive definite")
    ],
    '`lstsq` of a tall `Banded` or large `Sparse` matrix that may not have full rank, under `sa.densify("error")`': [
        (sa.densify("error")(lambda x: sa.linalg.lstsq(x, jnp.ones(5)).x), (TALL,), "must have full column rank"),
        (sa.densify("error")(lambda x: sa.linalg.lstsq(x, jnp.ones(3)).x), (DEFICIENT,), "must have full column rank"),
    ],
}
"""Functions, arguments and texts of LinAlgError; compiled code gives NaN."""


@pytest.mark.parametrize("row", ONLY_EAGER_ERRORS)
def test_matrices_without_a_result(row):
    for function, arguments, message in ONLY_EAGER_ERRORS[row]:
        with pytest.raises(np.linalg.LinAlgError, match=message):
            function(*arguments)
        assert np.isnan(np.asarray(jax.jit(function)(*arguments))).any()
        with sa.errstate(linalg="nan"):
            assert np.isnan(np.asarray(function(*arguments))).any()


UNCHECKED = {
    "a read at a traced index out of bounds": (
        lambda x, i: sa.asarray(x)[i], (X, INDEX), IndexError, "out of bounds", X[-1],
    ),
    "a write at a traced index out of bounds": (
        lambda x, i: written(sa.asarray(x, copy=True), i), (X, INDEX), IndexError, "out of bounds", X,
    ),
    "`Permutation` of indices that are not a permutation": (
        sa.Permutation, (jnp.array([0, 0]),), ValueError, "p must contain each of", [[1, 0], [1, 0]],
    ),
    "`Sparse` with coordinates out of bounds": (
        lambda i: sa.Sparse(jnp.ones(2), (i, i), (2, 2)), (jnp.array([0, 5]),), ValueError, "indices must be between",
        [[1, 0], [0, 0]],
    ),
    "`from_dense` of a matrix without the structure": (
        sa.Triangular.from_dense, (jnp.ones((2, 2)),), ValueError, "a must be lower triangular", [[1, 0], [1, 1]],
    ),
}  # fmt: skip
"""Functions, arguments, eager errors, and what compiled code gives."""


@pytest.mark.parametrize("row", UNCHECKED)
def test_arguments_that_only_eager_calls_check(row):
    function, arguments, error, message, compiled = UNCHECKED[row]
    with pytest.raises(error, match=message):
        function(*arguments)
    np.testing.assert_array_equal(np.asarray(jax.jit(function)(*arguments)), compiled)


def many_zeros(rng):
    """A regular sum whose tridiagonal part has more zeros than the solver changes."""
    factor, zeros = rng.normal(size=(N, 14)), np.zeros(N - 1)
    return sa.tridiagonal(zeros, np.r_[np.zeros(12), np.ones(N - 12)], zeros) + sa.LowRank(factor, factor)


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(sa.linalg.det, marks=pytest.mark.slow),
        lambda x: sa.linalg.slogdet(x).logabsdet,
        sa.linalg.logdet,
    ],
    ids=["det", "slogdet", "logdet"],
)
def test_determinants_of_sums(function, rng):
    """`det`, `slogdet` and `logdet` of a sum whose base is not diagonal, and that changes of eight diagonal entries do not make regular."""
    x = many_zeros(rng)
    sign, logarithm = np.linalg.slogdet(np.asarray(x))
    expected = sign * np.exp(logarithm) if function is sa.linalg.det else logarithm
    np.testing.assert_allclose(float(function(x)), expected, rtol=1e-9)
    assert np.isnan(float(jax.jit(function)(x)))
    with sa.densify("error"):
        assert np.isnan(float(function(x)))


def test_logarithms_of_negative_determinants_are_nan():
    """The dense form has no other result, and is not made."""
    ones = np.ones((N, 1))
    x = sa.Diagonal(np.r_[-1.0, np.ones(N - 1)]) + sa.LowRank(ones, 1e-3 * ones)
    with sa.densify("error"):
        assert np.isnan(float(sa.linalg.logdet(x)))
    with sa.record() as log:
        assert np.isnan(float(sa.linalg.logdet(x)))
    assert not log.densifications


def test_inverses_of_sums(rng):
    """`inv` of a sum whose base is singular, or much worse conditioned than the sum."""
    x = MATRICES["Sum: zeros on a diagonal"](rng)
    a = np.asarray(x)
    np.testing.assert_allclose(np.asarray(sa.linalg.inv(x)) @ a, np.eye(N), atol=1e-12 * np.linalg.cond(a))
    assert np.isnan(np.asarray(jax.jit(sa.linalg.inv)(x))).any()
    with sa.densify("error"), pytest.raises(np.linalg.LinAlgError, match="its dense form was not tried"):
        sa.linalg.inv(x)


@pytest.mark.slow
def test_solutions_of_large_matrices(rng):
    """`solve` by parts fails, and the dense forms of the stack take more than 32 MiB."""
    n, m = 2090, 10
    diagonal, constraints = rng.normal(size=n), sa.asarray(rng.normal(size=(m, n)))
    diagonal[:5] = 0
    x = sa.Block([[sa.Diagonal(diagonal), constraints.mT], [constraints, None]])
    assert x.size * 8 > 32 << 20
    b = rng.normal(size=n + m)
    found = np.asarray(sa.linalg.solve(x, b))
    np.testing.assert_allclose(np.asarray(x) @ found, b, atol=1e-9)
    assert np.isnan(np.asarray(jax.jit(sa.linalg.solve)(x, b))).all()


def test_least_squares_of_large_matrices():
    """`lstsq` of a `Banded` or large `Sparse` matrix that may not have full rank, and the dense forms of the stack take more than 32 MiB."""
    m, n = 60_000, 80
    sparse = sa.Sparse(np.ones(m), (np.arange(m), np.arange(m) % (n - 1)), (m, n))
    banded = sa.Banded([np.r_[np.ones(n - 1), 0]], (0,), (m, n))  # the last column is zero
    for x, expected in ((sparse, np.r_[np.arange(n - 1), 0]), (banded, np.r_[np.arange(n - 1), 0])):
        assert x.size * 8 > 32 << 20

        def solve(x):
            return sa.linalg.lstsq(x, jnp.arange(m) % (n - 1)).x

        np.testing.assert_allclose(np.asarray(solve(x)), expected, atol=1e-12)
        assert np.isnan(np.asarray(jax.jit(solve)(x))).all()


OUTSIDE = sa.asarray(X)
NEED_VALUES = {
    "`nonzero`, `unique_values` and similar functions, `repeat` with traced counts": (
        jax.errors.ConcretizationTypeError, "concrete value is expected",
        (sa.nonzero, sa.unique_values, lambda x: sa.repeat(x, sa.astype(x > 1, "int64"))),
    ),
    "a boolean index `x[mask]`, and `x[mask] = values`": (
        IndexError, "the number of elements that a boolean index selects must be known",
        (lambda x: x[x > 1], lambda x: x.__setitem__(x > 1, jnp.ones(2))),
    ),
    "`Sparse.from_dense(a)` without `nnz`": (
        ValueError, "nnz must be given", (lambda x: sa.Sparse.from_dense(x * sa.eye(4)),),
    ),
    "traced sizes in `arange` and `reshape`": (
        TypeError, "traced", (lambda x: sa.arange(x[3]), lambda x: sa.reshape(x, (sa.astype(x[2], "int64"), 2))),
    ),
    "conversions to Python: `float(x)`, `if x:`, `numpy.asarray(x)`, `x.tolist()`": (
        TypeError, "traced", (lambda x: float(x[0]), lambda x: bool(x[0]), np.asarray, lambda x: x.tolist()),
    ),
    "a write of a traced value into an array from outside": (
        RuntimeError, "outside", (lambda x: OUTSIDE.__setitem__(0, x[0]),),
    ),
}  # fmt: skip
"""Errors of compiled code, and functions that work in an eager call."""


@pytest.mark.parametrize("row", NEED_VALUES)
def test_functions_that_need_values(row):
    error, message, functions = NEED_VALUES[row]
    for function in functions:
        function(sa.asarray(X, copy=True))
        with pytest.raises(error, match=message):
            jax.jit(function)(sa.asarray(X, copy=True))


def test_files(tmp_path):
    """`sa.save`"""
    sa.save(tmp_path / "x.npz", sa.asarray(X))
    with pytest.raises(TypeError, match="is traced"):
        jax.jit(lambda x: sa.save(tmp_path / "y.npz", x))(sa.asarray(X))


PATTERN = np.eye(6)[[1, 0, 2, 4, 3, 5]] * 2
RANK_ONE = sa.LowRank(np.ones((6, 1)), np.arange(6.0)[:, None])
STRUCTURES = {
    "a product of two `Sparse` matrices with traced indices": (
        lambda columns: sa.linalg.matrix_power(sa.Sparse(np.full(6, 2.0), (np.arange(6), columns), PATTERN.shape), 2),
        np.argmax(PATTERN, axis=1),
        "Sparse",
        "Dense",
    ),
    "`isnan` of a `LowRank`, `Kronecker`, `Sum` or `Product`": (sa.isnan, RANK_ONE, "Sparse", "Dense"),
    "`svd` of a `LowRank`": (lambda x: sa.linalg.svd(x).U, RANK_ONE, "Product", "Dense"),
    "a write into a `Diagonal` at a traced index": (
        lambda x: written(x, (jnp.array(1), 0)),
        sa.Diagonal(np.ones(3)),
        "Banded",
        "Dense",
    ),
}


@pytest.mark.parametrize("row", STRUCTURES)
def test_structures_of_the_same_values(row):
    function, x, eager, compiled = STRUCTURES[row]
    one, other = function(sa.asarray(x, copy=True)), jax.jit(function)(x)
    assert (type(one).__name__, type(other).__name__) == (eager, compiled)
    one, other = np.asarray(one), np.asarray(other)
    if "svd" in row:  # of which the columns of nonzero singular values are unique up to their signs
        one, other = abs(one[:, :1]), abs(other[:, :1])
    np.testing.assert_allclose(one, other, atol=1e-14)


def test_each_row_of_the_page_is_tested():
    of_functions = [
        function.__doc__.removesuffix(".")
        for function in (
            test_determinants_of_sums,
            test_inverses_of_sums,
            test_solutions_of_large_matrices,
            test_least_squares_of_large_matrices,
            test_files,
        )
    ]
    tested = [*ONLY_EAGER_ERRORS, *UNCHECKED, *NEED_VALUES, *STRUCTURES, *of_functions]
    assert sorted(rows()) == sorted(tested)
