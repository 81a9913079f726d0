"""What users write, for type checkers: each is to accept a line, or to refuse it where a comment says so. `test_types` runs mypy on it."""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

import structarrays as sa
from structarrays import extend

A = sa.tridiagonal(np.ones(3), np.full(4, 4.0), np.ones(3))
D = sa.Diagonal([1.0, 2.0, 3.0, 4.0])

# ---- accepted ------------------------------------------------------------------------------------------------------

product: sa.Array = sa.matmul(A, np.ones(4))
solution: sa.Array = sa.linalg.solve(A, jnp.ones(4))
total: sa.Array = sa.sum(A, axis=0, keepdims=True)
number: sa.Array = sa.exp(2.0)
clipped: sa.Array = sa.clip(A, 0.0, max=1.0)
entries: jax.Array = D.diag
diagonal: sa.Diagonal = sa.Diagonal(np.ones(3), shape=(3, 4))
toeplitz: sa.Toeplitz = sa.Toeplitz([1.0, 2.0], shape=(4, 4))
zeros: sa.Array = sa.zeros((2, 3), dtype=sa.float32)
values: sa.Array = sa.linalg.eigh(A).eigenvalues
sign, logabsdet = sa.linalg.slogdet(A)
operators: sa.Array = (A @ D + 2.0 * A - D) / 3 + np.eye(4)
plain: np.ndarray = np.asarray(A)
shape: tuple[int, ...] = A.mT.shape
row: sa.Array = A[0]
sa.explain(sa.linalg.solve, A, sa.ones(4))
assumed: sa.Array = sa.assume(A, "positive_definite")


class Mine(sa.Diagonal):
    """A structure of one's own."""

    __slots__ = ()


@sa.linalg.trace.kernel(Mine)
def trace_mine(x: Mine, *, offset: int, dtype: object) -> sa.Array:
    """A kernel of one's own."""
    return sa.asarray(42.0)


base: type[sa.Array] = extend.EntryArray

# ---- refused -------------------------------------------------------------------------------------------------------

if TYPE_CHECKING:  # it is not run
    sa.matmul(1, 2, 3, nonsense=4)  # refused: call-arg
    sa.Diagonal(shape="x")  # refused: call-arg
    sa.Diagonal([1.0], shape="x")  # refused: arg-type
    sa.sum(A, axes=0)  # refused: call-arg
    sa.exp()  # refused: call-arg
    sa.exp("a")  # refused: arg-type
    sa.linalg.solve(A)  # refused: call-arg
    sa.sum(A, keepdims="yes")  # refused: arg-type
    sa.eye("three")  # refused: arg-type
    sa.no_such_function(A)  # refused: attr-defined
    sa.linalg.no_such_function(A)  # refused: attr-defined
    A.no_such_attribute  # refused: attr-defined
    text: str = sa.matmul(A, A)  # refused: assignment
