"""Assumptions: what no type can see and the user promises (docs/design/semantics.md).

An assumption is a static tag of an array. No kernel is chosen by it; a kernel may read ``x.assumptions`` and use a faster
algorithm. Tags survive what is listed here and nothing else: every other function, and every write, drops them.

=============================  ====================================================================================
`matrix_transpose`             all
`add` of two arrays            those that both have (a sum of positive definite matrices is positive definite)
`linalg.inv`                   all but ``"positive_semidefinite"`` alone (its inverse exists for the definite ones only)
casting to another dtype       all
`Kronecker`, `KroneckerSum`    those that all factors have
a multiple of a `Kronecker`    of its factors: ``"symmetric"``, and for real dtypes ``"hermitian"``
=============================  ====================================================================================

The product ``D.mT @ D`` is not among them: that both factors come from one array is not to be seen from their values.
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
"""``self_adjoint.kernel(A)``: ``(x)`` to whether the structure says that each matrix equals its conjugated transpose: static."""


def is_hermitian(x: Array) -> bool:
    """Whether it is known, by an assumption or by the structure, that each matrix equals its conjugated transpose."""
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
"""The assumptions, each with all that follow from it."""


def assume(x: Operand, /, *assumptions: str) -> Array:
    """The same array, with promises about its value.

    Parameters
    ----------
    x : array, (..., N, N)
    *assumptions : str
        ``"symmetric"``, ``"hermitian"`` (for a real dtype the same), ``"positive_semidefinite"`` or
        ``"positive_definite"``, which imply ``"hermitian"``. In a stack they hold for every matrix.

    Returns
    -------
    array
        A new handle on the same value, with these and the earlier assumptions.

    Raises
    ------
    ValueError
        If a name is not one of these, or the matrices are not square.

    Notes
    -----
    `linalg.solve` and `linalg.inv` of a positive definite array use Cholesky's factorisation, which needs no pivots. They
    raise `numpy.linalg.LinAlgError` if it shows that the promise is not kept; a promise that is broken otherwise, such as
    an asymmetric matrix, gives wrong numbers.

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
    """The same array without any assumption.

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
    """A result with the assumptions that its function carries on."""
    return x.assuming(assumptions) if assumptions else x


def carried_by_sum(function: str, arrays: Sequence[Array], result: Array) -> Array:
    """The result of an elementwise function with what all operands of a sum of square matrices have in common."""
    if function != "add" or any(x.shape[-2:] != result.shape[-2:] for x in arrays):
        return result
    return carried(result, frozenset.intersection(*(x.assumptions for x in arrays)))


def _array(x: Operand) -> Array:
    if isinstance(x, Array):
        return x
    return late.asarray(x)
