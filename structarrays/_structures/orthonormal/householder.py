"""`Householder`: the unitary factor of a QR decomposition, stored as reflectors; and the QR decomposition of bands."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import jax
import jax.numpy as jnp
import numpy as np

from ..._core import dtypes
from ..._core.array.dense import Dense, batch_shape_of, parameter
from ..._core.array.validation import check_dense_part, check_parts, check_sizes, check_static, require, validated
from ..._core.dispatch.recording import remark
from ..._core.families import pattern
from ..._core.families.conditions import has_structural_zeros, is_square
from ..._functions.linalg import qr, svd, svdvals
from ..._functions.rounding_and_parts import conj
from ..._numerics import banded_qr
from ..banded.array import Banded, bands, matrix_shape
from ..banded.bandwidths import is_banded
from ..banded.diagonal import Diagonal
from ..banded.diagonal_spectra import identity, phase
from .array import Orthonormal, ones

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._core.array.arguments import ParameterLike
    from ..._core.array.base import Array
    from ..._core.typing import Leaves, Meta, Shape


class Householder(Orthonormal):
    r"""The first columns of a product of Householder reflectors: the Q of a QR decomposition.

    Parameters
    ----------
    v : array_like
        The vectors of k reflectors, ``(..., k, w)``: the elements ``j, ..., j + w - 1`` of the j-th vector, whose other
        elements are zero. Elements below the last row are not read. In LAPACK's convention the first element is 1.
    tau : array_like
        The factors of the reflectors, ``(..., k)``. The batch shapes broadcast, the dtypes are promoted. Integers
        become the default floating-point dtype.
    shape : tuple of int
        ``(m, c)``: the size m of the reflectors, at least k, and the number c of columns, at most m.

    Raises
    ------
    ValueError
        If the shapes do not fit, or if a reflector is not unitary (checked in eager calls).
    TypeError
        If `v` or `tau` is boolean.

    Notes
    -----
    The value is :math:`H_0 H_1 \cdots H_{k-1}`, or its first c columns, with :math:`H_j = I - \tau_j v_j v_j^H`. The
    reflector is unitary if :math:`|1 - \tau_j |v_j|^2| = 1`. LAPACK uses complex :math:`\tau` so that R has a real
    diagonal. See Golub and Van Loan, *Matrix Computations*, 5.1.6.

    ==========================================  =============================================
    storage                                     ``k (w + 1)``
    product from either side, `solve`           ``O(k w)`` for each vector
    transpose, `inv`, `pinv`                    no computation: the adjoint
    conjugate                                   ``O(k w)``
    `det`, `slogdet`                            ``O(k w)``, one eigenvalue for each reflector
    `svd`, `svdvals`, `matrix_rank`, norms      closed forms
    a row, a column, a few elements             a product with unit vectors
    elementwise functions                       the dense form
    ==========================================  =============================================

    `linalg.qr` returns this structure for a `Banded` matrix; w is one more than its number of subdiagonals. Only the
    phase of :math:`1 - \tau_j |v_j|^2` of each :math:`\tau_j` is used. So the array is unitary to rounding, also along
    derivatives with respect to `v` and `tau`.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.tridiagonal(-sa.ones(4), 3.0 * sa.ones(5), -sa.ones(4))
    >>> Q, R = sa.linalg.qr(A)
    >>> type(Q).__name__, Q.shape, Q.v.shape, R.offsets
    ('Householder', (5, 5), (5, 2), (0, 1, 2))
    >>> float(sa.max(sa.abs(Q @ (R @ sa.ones(5)) - A @ sa.ones(5)))) < 1e-14
    True
    """

    __slots__ = ()
    parameter_names = ("v", "tau")

    def __new__(cls, v: ParameterLike, tau: ParameterLike, shape: int | Sequence[int]) -> Householder:
        v, tau = parameter(v, "v", cls.__name__), parameter(tau, "tau", cls.__name__)
        for argument, a, least in (("v", v, 2), ("tau", tau, 1)):
            if a.dtype.kind == "b":
                raise TypeError(f"{argument} must have a numeric dtype, got {a.dtype}")
            if a.ndim < least:
                raise ValueError(f"{argument} must have at least {least} dimensions, got shape {a.shape}")
        (k, w), (m, c) = v.shape[-2:], matrix_shape(shape, "shape")
        if tau.shape[-1] != k:
            raise ValueError(f"v and tau must have the same number of reflectors, got shapes {v.shape} and {tau.shape}")
        if w < 1:
            raise ValueError(f"v must have at least one element for each reflector, got shape {v.shape}")
        if not max(k, c) <= m:
            raise ValueError(f"shape must be (m, c) with c <= m and m >= {k}, the number of reflectors, got {(m, c)}")
        batch = batch_shape_of(v=v.shape[:-2], tau=tau.shape[:-1])
        dtype = dtypes.promote(v.dtype, tau.dtype)
        dtype = dtype if dtype.kind in "fc" else dtypes.default_dtype("f")
        v = jnp.where(np.arange(k)[:, None] + np.arange(w) < m, v.astype(dtype), 0)
        tau = tau.astype(dtype)
        if not isinstance(v, jax.core.Tracer) and not isinstance(tau, jax.core.Tracer):
            _check_unitary(v, tau)
        return _reflectors(jnp.broadcast_to(v, (*batch, k, w)), jnp.broadcast_to(tau, (*batch, k)), (m, c, False))

    @property
    def v(self) -> jax.Array:
        """The vectors of the reflectors, ``(..., k, w)``."""
        v: jax.Array = self._value[0][0].data
        return v

    @property
    def tau(self) -> jax.Array:
        """The factors of the reflectors, ``(..., k)``."""
        tau: jax.Array = self._value[0][1].data[..., 0]
        return tau

    @property
    def adjoint(self) -> bool:
        """Return whether the matrix is the conjugate transpose of the product of the reflectors."""
        adjoint: bool = self.meta[2]
        return adjoint

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        m, c, adjoint = meta
        return (*leaves[0].shape[:-2], *((c, m) if adjoint else (m, c)))

    @property
    def product_cost(self) -> int:
        k, w = self._value[0][0].shape[-2:]
        cost: int = 2 * k * w
        return cost

    def times(self, columns: jax.Array) -> jax.Array:
        """Apply the reflectors one after the other."""
        m, _, adjoint = self.meta
        return banded_qr.multiply(self.v, self.tau, columns, m, adjoint)[..., : self.shape[-2], :]

    def transposed(self) -> Householder:
        return cast("Householder", conj(self))._adjoint()

    def pattern(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the pattern: a column equals a column of the identity until a reflector meets it.

        Otherwise it is filled from the top to the end of the first reflector that meets it, since all previous
        reflectors are applied afterwards.
        """
        if self.adjoint:
            rows, columns = columns, rows
        k, w = self._value[0][0].shape[-2:]
        hit = pattern.meets_band(rows, columns, 0, 0)
        if k and w > 1:
            last = np.minimum(columns[:, 1] - 1, k + w - 2)  # the last column that a reflector meets
            hit |= (rows[:, :1] < np.minimum(last, k - 1) + w) & (last >= columns[:, 0])
        kinds = np.where(hit, pattern.COMPUTED, pattern.ZERO).astype(np.uint8)
        return kinds.T if self.adjoint else kinds

    def _adjoint(self) -> Householder:
        m, c, adjoint = self.meta
        return Householder.make(self._value[0], (m, c, not adjoint))

    def _determinant(self) -> jax.Array:
        value = jnp.prod(banded_qr.eigenvalue(self.v, self.tau), axis=-1)
        return value.conj() if self.adjoint else value

    def _solution_remark(self) -> str:
        return "a product with the adjoint, reflector by reflector; O(n w) for each column, w rows to a reflector"

    def description(self) -> tuple[list[str], bool]:
        k, w = self._value[0][0].shape[-2:]
        return [
            *(["adjoint"] if self.adjoint else []),
            f"shape={self.shape}",
            f"reflectors={k}",
            f"width={w}",
        ], False


def _reflectors(v: jax.Array, tau: jax.Array, meta: tuple[int, int, bool]) -> Householder:
    """Return the array with these parameters, with one batch shape and dtype."""
    return Householder.make((Dense.make((v,)), Dense.make((tau[..., None],))), meta)


def _check_unitary(v: jax.Array | np.ndarray, tau: jax.Array | np.ndarray) -> None:
    """Raise unless the reflectors are unitary, up to the loss of a few digits."""
    v, tau = np.asarray(v), np.asarray(tau)
    value = np.abs(1 - tau * np.sum(np.abs(v) ** 2, axis=-1))
    wrong = np.argwhere(np.abs(value - 1) > np.sqrt(np.finfo(value.dtype).eps))
    if wrong.size:
        place = tuple(wrong[0].tolist())
        raise ValueError(
            f"tau must make each reflector unitary, abs(1 - tau * norm(v)**2) = 1, got {value[place]} for reflector "
            f"{place[-1]}"
        )


def _identity(x: Array, m: int, n: int) -> Diagonal:
    return identity(ones(x), (m, n))


# ---- orthonormal columns ----------------------------------------------------------------------------------------------


@svd.kernel(Householder)
def _svd_householder(x: Householder, *, full_matrices: bool) -> tuple[Array, Array, Array]:
    """Return the array itself, with all columns (the adjoint: all rows) if they are requested, and an identity."""
    m, c, adjoint = x.meta
    columns = Householder.make(x._value[0], (m, m if full_matrices else c, adjoint))
    rest, values = _identity(x, c, c), svdvals.dispatch(x)
    return (rest, values, columns) if adjoint else (columns, values, rest)


@qr.kernel(Householder, when=lambda x, *, mode: not x.adjoint or is_square(x))
def _qr_householder(x: Householder, *, mode: str) -> tuple[Householder, Diagonal]:
    m, c, adjoint = x.meta
    columns = m if mode == "complete" else c
    return Householder.make(x._value[0], (m, columns, adjoint)), _identity(x, columns, c)


# ---- QR decompositions of banded matrices ------------------------------------------------------------------------------


def _is_upper_band(x: Banded) -> bool:
    return has_structural_zeros(x) and x.bandwidths()[0] == 0


@qr.kernel(Banded, when=lambda x, *, mode: is_banded(x) or _is_upper_band(x))
def _qr_banded(x: Banded, *, mode: str) -> tuple[Array, Banded]:
    """Factorise: R has as many superdiagonals as the matrix has off-diagonals on both sides."""
    m, n = x.core_shape
    inner = m if mode == "complete" else min(m, n)
    if x.bandwidths()[0] == 0:
        return _of_upper(x, inner)
    remark("a reflector for each column; O(n (l + 1) (l + u + 1)), l and u diagonals below and above the main one")
    v, tau, upper = banded_qr.factor(x.diagonals, x.offsets, (m, n))
    count, width = upper.shape[-2:]
    diagonals = [upper[..., : max(0, min(count, n - d)), d] for d in range(width)]
    r = bands(diagonals, range(width), (inner, n), dtype=x.dtype, batch=x.batch_shape)
    return _reflectors(v, tau, (m, inner, False)), r


def _of_upper(x: Banded, inner: int) -> tuple[Diagonal, Banded]:
    """Factorise an upper triangular matrix: R is the matrix, scaled by phases so that its diagonal is real."""
    m, n = x.core_shape
    offsets, diagonals = x.offsets, list(x.diagonals)
    if x.dtype.kind != "c" or 0 not in offsets:
        q = _identity(x, m, inner)
    else:
        phases = phase(x.diagonal(0))
        diagonals = [d * phases[..., : d.shape[-1]].conj() for d in diagonals]
        diagonals[offsets.index(0)] = jnp.abs(x.diagonal(0)).astype(x.dtype)
        phases = jnp.pad(phases, [(0, 0)] * (phases.ndim - 1) + [(0, inner - phases.shape[-1])], constant_values=1)
        q = Diagonal.make((phases, None), (m, inner))
    return q, bands(diagonals, offsets, (inner, n), dtype=x.dtype, batch=x.batch_shape)


@validated.kernel(Householder)
def check_householder(x: Householder) -> None:
    """Raise unless the parameters are vectors and factors of reflectors that fit the number of rows."""
    check_static(type(x.meta) is tuple and len(x.meta) == 3 and type(x.meta[2]) is bool, x)
    m, c = check_sizes(x.meta[:2], 2)
    (k, w), (reflectors, one) = check_parts(x, 2, 2)
    for part in x.parts:
        check_dense_part(part)
    require(
        reflectors == k and one == 1 and w >= 1 and max(k, c) <= m,
        "the number and the length of its reflectors must fit its shape",
    )
    require(x.dtype.kind not in "iu", f"its dtype must not be {x.dtype}")
