"""Conditions of kernels (``when=…``) that several families share: static predicates on the arguments of a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..array.base import Array


def has_structural_zeros(x: Array, *args: Any, **static: Any) -> bool:
    """Return whether the unstored entries are structural zeros, as most kernels require."""
    return x.background is None


def is_square(x: Array, *args: Any, **static: Any) -> bool:
    """Return whether the matrices are square."""
    return x.shape[-2] == x.shape[-1]


def is_square_pattern(x: Array, *args: Any, **static: Any) -> bool:
    """Return whether the matrices are square, and their unstored entries are structural zeros."""
    return x.background is None and x.shape[-2] == x.shape[-1]


def is_complex(x: Array, *args: Any, **static: Any) -> bool:
    """Return whether the data type is complex."""
    return x.dtype.kind == "c"


def is_not_complex(x: Array, *args: Any, **static: Any) -> bool:
    """Return whether the data type is not complex."""
    return x.dtype.kind != "c"


def is_inexact(x: Array, *args: Any, **static: Any) -> bool:
    """Return whether the entries are floating-point numbers, so that no product of them wraps around."""
    return x.dtype.kind not in "biu"


def is_first_matrix(x1: Array, x2: Array, **static: Any) -> bool:
    """Return whether the first array is a matrix or a stack of matrices."""
    return x1.ndim > 1


def is_second_matrix(x1: Array, x2: Array, **static: Any) -> bool:
    """Return whether the second array is a matrix or a stack of matrices."""
    return x2.ndim > 1


def are_matrices(x1: Array, x2: Array, **static: Any) -> bool:
    """Return whether both arrays are matrices or stacks of matrices."""
    return x1.ndim > 1 and x2.ndim > 1


def along_core_axis(x: Array, *, axis: int | None, **static: Any) -> bool:
    """Return whether `axis` is given and is one of the last two axes."""
    return axis is not None and axis >= x.ndim - 2


def has_core(x: Array, *, axis: tuple[int, ...] | None, **static: Any) -> bool:
    """Return whether `axis` is given and contains one of the last two axes."""
    return axis is not None and max(axis, default=-1) >= x.ndim - 2


def on_main_diagonal(x: Array, *, offset: int, **static: Any) -> bool:
    """Return whether the offset selects the main diagonal."""
    return offset == 0


def has_default_tolerance(x: Array, *, rtol: Any) -> bool:
    """Return whether no relative tolerance is given."""
    return rtol is None
