"""Linear systems, inverses and determinants of sparse matrices, by a direct solver on the host; see `kernels.sparse_direct`.

Small matrices, those with many entries, and all of them where SciPy is not installed, are left to their dense form.
"""

import jax.numpy as jnp
import numpy as np

from ..core.array import Array
from ..core.dense import Dense
from ..functions.linalg import det, inv, slogdet, solve
from ..functions.linalg_solvers import POSITIVE_DEFINITE
from ..kernels import sparse_direct
from ..kernels import sparse_systems as kernel
from .factored_solvers import generically_regular, solved
from .inverse import checked_inverse, stays_inverse
from .sparse import Sparse

SOLVED_AS_DENSE = 128
"""Up to this size the dense form is solved faster."""

FEW = 16
"""A matrix is solved directly if at most one in so many of its elements is stored: of others the factors are nearly full."""


def is_solved_directly(x: Sparse, *args, **static) -> bool:
    """Whether systems of an array are solved by the factors of a sparse matrix (static)."""
    if x.core_ndim != 2 or x.background is not None or str(x.dtype) not in sparse_direct.PRECISIONS:
        return False
    n = x.core_shape[-1]
    fits = SOLVED_AS_DENSE < n < np.iinfo(np.int32).max and x.nnz < np.iinfo(np.int32).max
    return fits and FEW * x.nnz <= n * n and sparse_direct.is_available()


@generically_regular.kernel(Sparse)
def _(x):
    """Whether there are as many entries as rows: where they stand is not static."""
    return x.background is not None or x.nnz >= x.shape[-1]


def _pattern(x):
    """What the kernels need to know of an array beside its data."""
    first, second = x._keys()
    return first, second, POSITIVE_DEFINITE in x.assumptions


# ---- systems --------------------------------------------------------------------------------------------------------


@solve.kernel(Sparse, Array, when=is_solved_directly)
def _(x1, x2):
    return solved(x1, x2, _solution)


def _solution(x, b):
    first, second, definite = _pattern(x)
    transposed = x.order == (1, 0)

    def solution(data, first, second, b):
        return kernel.solve(data, first, second, b, transposed, definite, x.padded)

    if not x.batch_shape:  # the right-hand sides of a batch stand side by side
        side_by_side = jnp.moveaxis(b, -2, 0)
        result, ok = solution(x.data, first, second, side_by_side.reshape(b.shape[-2], -1))
        return jnp.moveaxis(result.reshape(side_by_side.shape), 0, -2), ok
    batch = b.shape[:-2]
    own = len(x.batch_shape)
    parts = (jnp.broadcast_to(a, batch + a.shape[own:]) for a in (x.data, first, second))
    result, ok = kernel.sparse.over_batch(solution, len(batch))(*parts, b)
    return result, jnp.all(ok)


@inv.kernel(Sparse, when=lambda x: is_solved_directly(x) and stays_inverse(x))
def _(x):
    return checked_inverse(x)


# ---- determinants -----------------------------------------------------------------------------------------------------


@slogdet.kernel(Sparse, when=is_solved_directly)
def _(x):
    first, second, definite = _pattern(x)

    def logarithms(data, first, second):
        return kernel.slogdet(data, first, second, x.core_shape[-1], definite, x.padded)

    return tuple(Dense._make((part,)) for part in x._over_batch(logarithms, x.data, first, second))


@det.kernel(Sparse, when=is_solved_directly)
def _(x):
    sign, logabsdet = (part.data for part in slogdet.dispatch(x))
    return Dense._make((sign * jnp.exp(logabsdet).astype(x.dtype),))
