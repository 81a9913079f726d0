"""Sums of Kronecker products and Kronecker sums of circulant and diagonal factors, by Fourier transforms along their
axes.

The matrices that act on one axis have common eigenvectors if all of them are circulant (the Fourier basis), or all are
diagonal (the unit vectors). So ``A ⊗ B + c I``, ``A ⊕ B`` and ``A ⊗ B + C ⊕ D`` of such factors are diagonal after a
transform along each circulant axis. A block-circulant matrix with circulant blocks is an example (Davis, *Circulant
Matrices*, 1979, chapter 5).
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, cast

import jax.numpy as jnp
from jax import lax

from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.operands import right_side
from ..._core.dispatch.recording import remark
from ..._core.dispatch.registry import Registry
from ..._functions.linalg import inv, slogdet, solve
from ..._functions.linalg.systems import POSITIVE_DEFINITE
from ..._numerics import circulant_transforms as circulant
from ..._numerics import dense_fft as fft
from ..._numerics import determinants, kronecker_factors
from ..._numerics.quotients import reciprocal
from ..._numerics.undefined import nan_unless
from ..banded.diagonal import Diagonal
from ..composite.inverse import inverse_by
from ..composite.sum import Sum
from ..toeplitz.circulant import Circulant
from .array import Kronecker, has_square_factors, is_scaled_identity
from .kronecker_spectra import diagonal_of
from .kronecker_sum import KroneckerSum

if TYPE_CHECKING:
    from typing import TypeAlias

    import jax

    from ..._core.typing import Result

    Kinds: TypeAlias = tuple[tuple[int, type[Array] | None], ...]

# ---- conditions ------------------------------------------------------------------------------------------------------

axes_of: Registry[Kinds | None] = Registry("axes_of")
"""``axes_of.kernel(A)``: return ``((n, kind), …)``, the axes on which a matrix acts and the kind of each (static); or
None.

A kind is `Circulant`, `Diagonal`, or None for a multiple of the identity, which is diagonal in every basis.
"""


@axes_of.kernel(Array)
def _axes_of_array(x: Array) -> None:
    return None


@axes_of.kernel(Circulant)
def _axes_of_circulant(x: Circulant) -> Kinds | None:
    return ((x.shape[-1], Circulant),) if x.shape[-1] else None


@axes_of.kernel(Diagonal)
def _axes_of_diagonal(x: Diagonal) -> Kinds | None:
    if diagonal_of.choose((x,), {}) is None or not x.shape[-1]:
        return None
    return ((x.shape[-1], None if is_scaled_identity(x) else Diagonal),)


@axes_of.kernel(KroneckerSum)
@axes_of.kernel(Kronecker, when=has_square_factors)
def _axes_of_kronecker_sum(x: Kronecker | KroneckerSum) -> Kinds | None:
    axes: list[Any] = [_axes(f) for f in x.factors]
    return None if None in axes else tuple(axis for own in axes for axis in own)


@axes_of.kernel(Sum)
def _axes_of_sum(x: Sum) -> Kinds | None:
    """The common axes of all terms. A multiple of the identity is compatible with any axes."""
    axes = [_axes(t) for t in x.terms if not is_scaled_identity(t)]
    return functools.reduce(_common, axes) if axes else None


def _common(a: Kinds | None, b: Kinds | None) -> Kinds | None:
    if a is None or b is None or [n for n, _ in a] != [n for n, _ in b]:
        return None
    kinds = [{p, q} - {None} for (_, p), (_, q) in zip(a, b, strict=True)]
    if any(len(k) > 1 for k in kinds):
        return None
    return tuple((n, k.pop() if k else None) for (n, _), k in zip(a, kinds, strict=True))


def _axes(x: Array) -> Kinds | None:
    return axes_of.required((x,)).run(x)


def _is_transformed(x: Array, *args: Any) -> bool:
    """Return whether a matrix is diagonal after Fourier transforms along some of the axes on which it acts."""
    axes = _axes(x)
    return axes is not None and any(kind is Circulant for _, kind in axes)


# ---- eigenvalues -------------------------------------------------------------------------------------------------------

spectrum_of: Registry[jax.Array] = Registry("spectrum_of")
"""``spectrum_of.kernel(A)``: compute all eigenvalues ``(..., N)`` of a matrix that has `axes_of`, in the order of the
axes.
"""


@spectrum_of.kernel(Circulant)
def _spectrum_of_circulant(x: Circulant) -> jax.Array:
    values: jax.Array = circulant.full_spectrum(x.c)
    return values


@spectrum_of.kernel(Diagonal)
def _spectrum_of_diagonal(x: Diagonal) -> jax.Array:
    return x.diag


@spectrum_of.kernel(Kronecker)
def _spectrum_of_kronecker(x: Kronecker) -> jax.Array:
    return kronecker_factors.products(map(_spectrum, x.factors))


@spectrum_of.kernel(KroneckerSum)
def _spectrum_of_kronecker_sum(x: KroneckerSum) -> jax.Array:
    return kronecker_factors.sums(map(_spectrum, x.factors))


@spectrum_of.kernel(Sum)
def _spectrum_of_sum(x: Sum) -> jax.Array:
    return functools.reduce(jnp.add, map(_spectrum, x.terms))


def _spectrum(x: Array) -> jax.Array:
    return spectrum_of.required((x,)).run(x)


# ---- transforms --------------------------------------------------------------------------------------------------------


class Transform:
    """The Fourier transform along the circulant axes of a tensor, in its last dimension in row-major order.

    Parameters
    ----------
    axes : tuple of (int, type or None)
        As of `axes_of`.
    is_real : bool
        Whether all data are real: of the last of these axes one half suffices then.
    """

    def __init__(self, axes: Kinds, is_real: bool) -> None:
        self.sizes = tuple(n for n, _ in axes)
        *self.others, self.last = (i - len(axes) for i, (_, kind) in enumerate(axes) if kind is Circulant)
        self.is_real = is_real

    def of_spectrum(self, values: jax.Array) -> jax.Array:
        """Reshape the eigenvalues ``(..., N)`` to match transformed data: ``(..., n_1, …, n_k)``."""
        values = self._spread(values)
        return lax.slice_in_dim(values, 0, values.shape[self.last] // 2 + 1, axis=self.last) if self.is_real else values

    def forward(self, data: jax.Array) -> jax.Array:
        """Transform ``(..., N)`` to ``(..., n_1, …, n_k)``."""
        data = (fft.rfft if self.is_real else fft.fft)(self._spread(data), axis=self.last)
        return functools.reduce(lambda d, axis: fft.fft(d, axis=axis), self.others, data)

    def back(self, data: jax.Array) -> jax.Array:
        """Transform ``(..., n_1, …, n_k)`` back to ``(..., N)``."""
        data = functools.reduce(lambda d, axis: fft.ifft(d, axis=axis), self.others, data)
        if self.is_real:
            data = fft.irfft(data, n=self.sizes[self.last], axis=self.last)
        else:
            data = fft.ifft(data, axis=self.last)
        return data.reshape(*data.shape[: data.ndim - len(self.sizes)], math.prod(self.sizes))

    def _spread(self, data: jax.Array) -> jax.Array:
        return data.reshape(*data.shape[:-1], *self.sizes)


# ---- linear systems and determinants ---------------------------------------------------------------------------------


@solve.kernel(Sum, Array, when=_is_transformed, before=("solve_by_spectra", "of_low_rank"))
@solve.kernel(KroneckerSum, Array, when=_is_transformed, before="solve_by_spectra")
def _solve_by_transforms(x1: Sum | KroneckerSum, x2: Array) -> tuple[Dense, jax.Array]:
    return _solved(x1, right_side(x2))


def _solved(x: Sum | KroneckerSum, data: jax.Array) -> tuple[Dense, jax.Array]:
    remark("Fourier transforms along the axes of the circulant factors; O(N log N) for each column")
    values = _spectrum(x)
    bad = values.real <= 0 if POSITIVE_DEFINITE in x.assumptions else values == 0
    bad = jnp.any(bad, axis=-1, keepdims=True)
    reciprocals = nan_unless(~bad, reciprocal(values))

    transform = Transform(cast("Kinds", _axes(x)), x.dtype.kind != "c" and data.dtype.kind != "c")
    rows = data.mT if data.ndim > 1 else data[None]  # one row for each right-hand side
    result = transform.back(transform.forward(rows) * transform.of_spectrum(reciprocals[..., None, :]))
    result = result.mT if data.ndim > 1 else result[..., 0, :]
    return Dense.make((result.astype(jnp.result_type(x.dtype, data.dtype)),)), ~jnp.any(bad)


@inv.kernel(Sum, when=_is_transformed, before=("inv_by_spectra", "of_low_rank"))
@inv.kernel(KroneckerSum, when=_is_transformed, before="inv_by_spectra")
def _inv_by_transforms(x: Sum | KroneckerSum) -> Result:
    return inverse_by(_solved, x)


@slogdet.kernel(Sum, when=_is_transformed, before=("slogdet_by_spectra", "of_low_rank"))
@slogdet.kernel(KroneckerSum, when=_is_transformed, before="slogdet_by_spectra")
def _slogdet_by_transforms(x: Sum | KroneckerSum) -> tuple[Dense, Dense]:
    sign, logabsdet = determinants.sign_and_logarithm(_spectrum(x), -1)
    if x.dtype.kind != "c":
        sign = jnp.sign(sign.real)  # complex eigenvalues come in conjugate pairs
    return Dense.make((sign.astype(x.dtype),)), Dense.make((logabsdet,))
