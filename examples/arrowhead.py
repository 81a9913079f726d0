"""A complete user-defined structure: arrowhead matrices, with entries on the diagonal, in the last column and the last row.

    python examples/arrowhead.py [n]

Arrowhead matrices describe unknowns that are coupled only through the last one, for example in mixed models and
bordered systems. The class defines the pattern, from which most functions follow. The kernels implement the transpose,
the product, and the solution by elimination of the diagonal, which needs no pivoting if the matrix is positive
definite.
"""

import sys
import time

import jax.numpy as jnp
import numpy as np

import structarrays as sa
from structarrays.extend import EntryArray, elements
from structarrays.testing import sampler


class Arrowhead(EntryArray):
    """Matrix with the diagonal ``diag (…, n)``, last column ``column (…, n - 1)`` and last row ``row (…, n - 1)``; n ≥ 2."""

    __slots__ = ()

    def __new__(cls, diag, column, row):
        diag, column, row = jnp.asarray(diag), jnp.asarray(column), jnp.asarray(row)
        if diag.shape[-1:] < (2,) or not column.shape == row.shape == (*diag.shape[:-1], diag.shape[-1] - 1):
            shapes = f"{diag.shape}, {column.shape} and {row.shape}"
            raise ValueError(f"diag must be (…, n) with n ≥ 2, column and row (…, n - 1), got {shapes}")
        return cls.make((diag, column, row, None))

    @staticmethod
    def shape_of(leaves, meta):
        return (*leaves[0].shape, leaves[0].shape[-1])

    entries = property(lambda self: self.parameters[:3])
    background = property(lambda self: self.parameters[3])

    def rebuild(self, entries, background):
        return Arrowhead.make((*entries, background))

    def positions(self):
        i = jnp.arange(self.shape[-1])
        last = jnp.full_like(i[1:], self.shape[-1] - 1)
        return (i, i), (i[:-1], last), (last, i[:-1])

    def dense_data(self):
        i = jnp.arange(self.shape[-1])
        return element(self, i[:, None], i)


@elements.kernel(Arrowhead)
def element(x, i, j):
    """Return elements by coordinates; indexing and functions of two structures use this kernel."""
    (diag, column, row), last, (i, j) = x.entries, x.shape[-1] - 1, jnp.broadcast_arrays(i, j)
    outside = jnp.zeros(x.batch_shape, x.dtype) if x.background is None else x.background
    found = jnp.where(j == last, column[..., jnp.minimum(i, last - 1)], outside.reshape(outside.shape + (1,) * j.ndim))
    found = jnp.where(i == last, row[..., jnp.minimum(j, last - 1)], found)
    return jnp.where(i == j, diag[..., i], found)


@sa.join_pair.kernel(Arrowhead, sa.Diagonal)
def join_arrowhead_diagonal(x, y):
    """Return the common structure: sums and comparisons with diagonal matrices are arrowheads."""
    outside = jnp.zeros((1,), y.dtype) if y.background is None else y.background[..., None]
    off_diagonal = jnp.broadcast_to(outside, (*y.batch_shape, y.shape[-1] - 1))
    return x, Arrowhead.make((y.diag, off_diagonal, off_diagonal, y.background))


@sa.matrix_transpose.kernel(Arrowhead)
def transpose_arrowhead(x):
    diag, column, row = x.entries
    return Arrowhead.make((diag, row, column, x.background))


@sa.matmul.kernel(Arrowhead, sa.Dense, when=lambda x1, x2: x1.background is None)
def matmul_arrowhead(x1, x2):
    (diag, column, row), data = (e[..., None] for e in x1.entries), x2.data if x2.ndim > 1 else x2.data[:, None]
    product = diag * data
    above = product[..., :-1, :] + column * data[..., -1:, :]
    last = product[..., -1:, :] + jnp.sum(row * data[..., :-1, :], -2, x1.dtype, keepdims=True)
    product = jnp.concatenate([above, last], -2)
    return sa.Dense(product if x2.ndim > 1 else product[..., 0])


@sa.linalg.solve.kernel(
    Arrowhead, sa.Dense, when=lambda x1, x2: x1.background is None and "positive_definite" in x1.assumptions
)
def solve_arrowhead(x1, x2):
    (diag, column, row), data = (e[..., None] for e in x1.entries), x2.data if x2.ndim > 1 else x2.data[:, None]
    eliminated, factor = data[..., :-1, :] / diag[..., :-1, :], row / diag[..., :-1, :]
    pivot = diag[..., -1:, :] - jnp.sum(factor * column, -2, keepdims=True)
    last = (data[..., -1:, :] - jnp.sum(factor * data[..., :-1, :], -2, keepdims=True)) / pivot
    solution = jnp.concatenate([eliminated - column / diag[..., :-1, :] * last, last], -2)
    ok = jnp.all(diag.real > 0) & jnp.all(pivot.real > 0)  # otherwise an eager call raises LinAlgError
    return sa.Dense(jnp.where(ok, solution if x2.ndim > 1 else solution[..., 0], jnp.nan)), ok


@sampler("Arrowhead")
def random(numbers, batch, core, requires):
    """Draw random matrices for the equivalence tests and for the official suite."""
    if core[0] != core[1] or core[0] < 2:
        return None
    diag, column, row = (numbers((*batch, core[0] - k)) for k in (0, 1, 1))
    if requires:
        column, diag = column / (2 * core[0]), diag.real + (2 + 2 * numbers.high) * (requires != "hermitian")
        row = column.conj()
    return Arrowhead(*(np.asarray(e, numbers.dtype) for e in (diag, column, row)))


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    off_diagonal, start = jnp.full(n - 1, 1 / n), time.perf_counter()
    with sa.densify("error"):
        A = sa.assume(Arrowhead(jnp.full(n, 2.0), off_diagonal, off_diagonal) + sa.eye(n), "positive_definite")
        residual = sa.max(sa.abs(A @ sa.linalg.solve(A, sa.ones(n)) - 1))
    seconds = time.perf_counter() - start
    print(f"{n} unknowns, {A.nbytes / n:.0f} bytes each: residual {float(residual):.0e} in {seconds:.1f} s")
