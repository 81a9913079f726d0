"""Assumptions: properties of matrices that the user asserts and no type expresses (docs/design/semantics.md).

An assumption is a static tag of an array. It does not affect the choice of a kernel; a kernel may read
``x.assumptions`` and use a faster algorithm. The following functions keep tags; all others, and every write, drop them.

=============================  ====================================================================================
`matrix_transpose`             all
`add` of two arrays            common ones (a sum of positive definite matrices is positive definite)
`linalg.inv`                   all except ``"positive_semidefinite"`` alone (the inverse exists for definite ones only)
casting to another dtype       all
`Kronecker`, `KroneckerSum`    those that all factors have
a multiple of a `Kronecker`    from its factors: ``"symmetric"``, and for real dtypes ``"hermitian"``
=============================  ====================================================================================

The product ``D.mT @ D`` is not in the table: its factors do not show that they come from the same array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .array.base import Array
from .dispatch import late
from .dispatch.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .typing import Assumptions, Operand

self_adjoint: Registry[bool] = Registry("self_adjoint")
"""``self_adjoint.kernel(A)`` registers ``(x)``, which returns whether the structure implies that each matrix is
Hermitian; static."""


def is_hermitian(x: Array) -> bool:
    """Return whether an assumption or the structure implies that each matrix equals its conjugate transpose."""
    if "hermitian" in x.assumptions:
        return True
    kernel = self_adjoint.choose((x,), {})
    return kernel is not None and kernel.run(x)


IMPLIED = {
    "symmetric": frozenset({"symmetric"}),
    "hermitian": frozenset({"hermitian"}),
    "positive_semidefinite": frozenset({"positive_semidefinite", "hermitian"}),
    "positive_definite": frozenset({"positive_definite", "positive_semidefinite", "hermitian"}),
}
"""Assumptions, each with all that follow from it."""


def assume(x: Operand, /, *assumptions: str) -> Array:
    """Return the same array with assumptions about its value.

    Parameters
    ----------
    x : array, (..., N, N)
        Square matrix or stack of square matrices.
    *assumptions : str
        ``"symmetric"``, ``"hermitian"`` (equivalent for a real dtype), ``"positive_semidefinite"`` or
        ``"positive_definite"``. The last two imply ``"hermitian"``. In a stack, they apply to every matrix.

    Returns
    -------
    array, (..., N, N)
        A new handle on the same value, with these and the previous assumptions.

    Raises
    ------
    ValueError
        If an assumption is unknown, or the matrices are not square.

    Notes
    -----
    `linalg.solve` and `linalg.inv` of a positive definite array use a Cholesky factorization, which needs no pivoting.
    They raise `numpy.linalg.LinAlgError` if the factorization fails. An assumption that is wrong otherwise, such as for
    an asymmetric matrix, leads to wrong results.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.assume(sa.tridiagonal([1.0], [2.0, 2.0], [1.0]), "positive_definite")
    >>> sorted(A.assumptions)
    ['hermitian', 'positive_definite', 'positive_semidefinite', 'symmetric']
    >>> sa.linalg.solve(A, sa.asarray([3.0, 3.0]))
    Dense([1., 1.], dtype=float64)
    """
    x = _array(x)
    tags = set(x.assumptions)
    for name in assumptions:
        if name not in IMPLIED:
            raise ValueError(f"assume: an assumption must be one of {', '.join(map(repr, IMPLIED))}, got {name!r}")
        tags |= IMPLIED[name]
    shape = x.shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"assume: x must be square in its last two dimensions, got shape {shape}")
    if x.dtype.kind != "c" and tags & {"symmetric", "hermitian"}:
        tags |= {"symmetric", "hermitian"}
    return x.assuming(frozenset(tags))


def forget(x: Operand, /) -> Array:
    """Return the same array without assumptions.

    Parameters
    ----------
    x : array

    Returns
    -------
    array
        A new handle on the same value.

    Examples
    --------
    >>> import structarrays as sa
    >>> sorted(sa.forget(sa.assume(sa.eye(2), "symmetric")).assumptions)
    []
    """
    return _array(x).assuming(frozenset())


def carried(x: Array, assumptions: Assumptions) -> Array:
    """Return a result with the assumptions that its function keeps."""
    return x.assuming(assumptions) if assumptions else x


def carried_by_sum(function: str, arrays: Sequence[Array], result: Array) -> Array:
    """Return the result of an elementwise function with the common assumptions of all terms, if it is a sum of square
    matrices.
    """
    if function != "add" or any(x.shape[-2:] != result.shape[-2:] for x in arrays):
        return result
    return carried(result, frozenset.intersection(*(x.assumptions for x in arrays)))


def _array(x: Operand) -> Array:
    if isinstance(x, Array):
        return x
    return late.asarray(x)
