"""Small random sparse arrays and permutations, for the equivalence tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from .._structures.permutation.array import Permutation
from .._structures.sparse.array import Sparse
from .arrays import SAMPLERS, dominant, sampler, with_background

if TYPE_CHECKING:
    from .._core.typing import Shape
    from .arrays import Numbers


@sampler("Sparse")
def _draw_sparse(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Sparse:
    """Draw about a third of the elements. Each matrix of a batch has its own pattern."""
    if requires:
        return _with_diagonal(numbers, batch, core[-1], requires)
    count = -(-int(np.prod(core)) // 3)
    flat = numbers.generator.permuted(np.tile(np.arange(int(np.prod(core))), (*batch, 1)), axis=-1)[..., :count]
    return Sparse(numbers((*batch, count)), tuple(np.unravel_index(flat, core)), core)


def _with_diagonal(numbers: Numbers, batch: Shape, n: int, requires: str) -> Sparse:
    """Return a square matrix with the whole diagonal and a symmetric pattern.

    The pattern does not depend on the random numbers, so that these arrays can be added entry by entry.
    """
    dense = dominant(numbers, batch, n, requires)
    chosen = np.triu(np.random.default_rng(n).uniform(size=(n, n)) < 0.4, 1)
    where = np.nonzero(chosen | chosen.T | np.eye(n, dtype=bool))
    key: tuple[Any, ...] = (..., *where)
    return Sparse(dense[key], where, (n, n))


@sampler("Sparse by columns, padded")
def _draw_sparse_by_columns_padded(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Sparse:
    x: Any = SAMPLERS["Sparse"](numbers, batch, core[::-1], requires)
    leaves = x._padded_to(x.nnz + 2)._value[0]
    return Sparse.make((leaves[0], *leaves[-2:0:-1], None), (core, (1, 0), True))


SAMPLERS["Sparse + background"] = with_background("Sparse")


@sampler("Permutation")
def _draw_permutation(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Permutation | None:
    n = core[-1]
    if core[0] != n or requires in ("hermitian", "positive definite"):
        return None
    p = numbers.generator.permuted(np.tile(np.arange(n), (*batch, 1)), axis=-1)
    return Permutation(jnp.asarray(p), dtype=numbers.dtype)
