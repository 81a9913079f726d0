"""Random triangular, symmetric and Hermitian arrays; what they do not read is NaN (of integers, a large number)."""

import jax.numpy as jnp
import numpy as np

from .._structures.symmetric.array import Hermitian, Symmetric
from .._structures.triangular.array import Triangular
from .arrays import SAMPLERS, dominant, with_background


def _unread(dtype):
    """What must never be seen in a result."""
    return np.nan if dtype.kind in "fc" else True if dtype.kind == "b" else 77


def triangular(lower: bool, unit_diagonal: bool):
    """The sampler of `Triangular` arrays of one kind.

    Examples
    --------
    >>> from structarrays.testing import Numbers
    >>> from structarrays.testing.arrays_triangles import triangular
    >>> triangular(True, False)(Numbers(0, "float64"), (), (3, 5), "").lower
    True
    """

    def draw(numbers, batch, core, requires):
        if requires not in ("", "invertible"):
            return None
        data = numbers((*batch, *core)) if not requires else dominant(numbers, batch, core[0], requires)
        inside = np.tri(*core, dtype=bool) if lower else np.tri(*core, -1, dtype=bool) == 0
        if unit_diagonal:
            inside &= ~np.eye(*core, dtype=bool)
        data = np.where(inside, data, np.asarray(_unread(numbers.dtype), numbers.dtype))
        return Triangular(jnp.asarray(data), lower, unit_diagonal)

    return draw


SAMPLERS["Triangular"] = triangular(True, False)
SAMPLERS["Triangular, upper"] = triangular(False, False)
SAMPLERS["Triangular, unit diagonal"] = triangular(True, True)
SAMPLERS["Triangular + background"] = with_background("Triangular")


def mirrored(cls, lower: bool):
    """The sampler of `Symmetric` or `Hermitian` arrays that read one triangle.

    Examples
    --------
    >>> import structarrays as sa
    >>> from structarrays.testing import Numbers
    >>> from structarrays.testing.arrays_triangles import mirrored
    >>> mirrored(sa.Hermitian, False)(Numbers(0, "complex64"), (2,), (3, 3), "").shape
    (2, 3, 3)
    """

    def draw(numbers, batch, core, requires):
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
