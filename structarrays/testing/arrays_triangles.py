"""Random triangular, symmetric and Hermitian arrays, for the equivalence tests.

Elements that an array does not read are NaN, or a large number in an integer dtype.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from .._structures.symmetric.array import Hermitian, Symmetric
from .._structures.triangular.array import Triangular
from .arrays import SAMPLERS, dominant, with_background

if TYPE_CHECKING:
    from .._core.typing import Shape
    from .._structures.symmetric.array import Mirrored
    from .arrays import Numbers, Sampler


def _unread(dtype: np.dtype) -> float | bool:
    """Return a value for unread elements, which must not affect a result."""
    return np.nan if dtype.kind in "fc" else True if dtype.kind == "b" else 77


def triangular(lower: bool, unit_diagonal: bool) -> Sampler:
    """Return the sampler of `Triangular` arrays of one kind.

    Examples
    --------
    >>> from structarrays.testing import Numbers
    >>> from structarrays.testing.arrays_triangles import triangular
    >>> triangular(True, False)(Numbers(0, "float64"), (), (3, 5), "").lower
    True
    """

    def draw(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Triangular | None:
        if requires not in ("", "invertible"):
            return None
        data = numbers((*batch, *core)) if not requires else dominant(numbers, batch, core[0], requires)
        m, n = core
        inside = np.tri(m, n, dtype=bool) if lower else np.tri(m, n, -1, dtype=bool) == 0
        if unit_diagonal:
            inside &= ~np.eye(m, n, dtype=bool)
        data = np.where(inside, data, np.asarray(_unread(numbers.dtype), numbers.dtype))
        return Triangular(jnp.asarray(data), lower, unit_diagonal)

    return draw


SAMPLERS["Triangular"] = triangular(True, False)
SAMPLERS["Triangular, upper"] = triangular(False, False)
SAMPLERS["Triangular, unit diagonal"] = triangular(True, True)
SAMPLERS["Triangular + background"] = with_background("Triangular")


def mirrored(cls: type[Mirrored], lower: bool) -> Sampler:
    """Return the sampler of `Symmetric` or `Hermitian` arrays that read one triangle.

    Examples
    --------
    >>> import structarrays as sa
    >>> from structarrays.testing import Numbers
    >>> from structarrays.testing.arrays_triangles import mirrored
    >>> mirrored(sa.Hermitian, False)(Numbers(0, "complex64"), (2,), (3, 3), "").shape
    (2, 3, 3)
    """

    def draw(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Mirrored | None:
        m, n = core
        if m != n:
            return None
        if requires in ("hermitian", "positive definite") and numbers.dtype.kind == "c" and not cls.conjugates:
            return None  # a complex symmetric matrix is not Hermitian
        data = dominant(numbers, batch, n, requires) if requires else numbers((*batch, n, n))
        inside = np.tri(n, dtype=bool) if lower else ~np.tri(n, k=-1, dtype=bool)
        data = np.where(inside, data, np.asarray(_unread(numbers.dtype), numbers.dtype))
        if cls.conjugates and numbers.dtype.kind == "c":
            data.imag[..., np.arange(n), np.arange(n)] = np.nan
        return cls(jnp.asarray(data), lower)

    return draw


SAMPLERS["Symmetric"] = mirrored(Symmetric, True)
SAMPLERS["Symmetric, upper"] = mirrored(Symmetric, False)
SAMPLERS["Hermitian"] = mirrored(Hermitian, True)
