"""`Fourier`: the unitary matrix of the discrete Fourier transform, which stores no entries."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Self

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core import dtypes
from ..._core.array.base import Array
from ..._core.array.dense import Dense
from ..._core.array.validation import check_leaves, check_sizes, check_static, require, validated
from ..._core.families.conditions import is_complex
from ..._core.families.entries import elements
from ..._core.families.factored import select_lines
from ..._functions.linalg import eig, eigh, eigvals, matmul
from ..._functions.matrix_checks import complex_dtype, real_dtype
from ..._functions.rounding_and_parts import conj
from ..._numerics import circulant_transforms as circulant_kernel
from ..._numerics import dense_fft as fft
from ..banded.diagonal import Identity
from ..composite.product import compose_pair, product
from ..fallback.selections import by_elements, selected_lines
from ..permutation.array import Permutation
from ..permutation.ordered import in_order
from ..toeplitz.circulant import Circulant
from .array import Orthonormal

if TYPE_CHECKING:
    import jax

    from ..._core.typing import DTypeLike, Leaves, Meta, Shape


class Fourier(Orthonormal):
    r"""The unitary discrete Fourier transform: ``F[j, k] = exp(-2j * pi * j * k / n) / sqrt(n)``.

    Parameters
    ----------
    n : int
        The number of rows and columns.
    dtype : dtype, optional
        ``complex128`` or ``complex64``. Default is the default complex data type.

    Raises
    ------
    ValueError
        If `n` is negative, or `dtype` is not complex.
    TypeError
        If `n` is not an integer.

    Notes
    -----
    The matrix is symmetric and unitary, so its conjugate is its inverse. ``F @ F`` is the permutation that maps k to -k
    modulo n. The array has no entries; its parameter is a single number that carries the batch shape.

    ==========================================  =================================
    storage                                     none
    product from either side, `solve`           ``O(n log(n))`` for each vector
    transpose, conjugate, `inv`, `pinv`         no computation
    product of two                              an `Identity` or a `Permutation`
    `det`, `slogdet`, `svd`, `qr`, norms        closed forms
    elements, rows, columns                     by the formula
    ==========================================  =================================

    Products are Fourier transforms: their errors are relative to the norm of a vector, and a NaN or an infinity fills
    the whole vector. The determinant follows from the multiplicities of the eigenvalues 1, -1, -i and i (McClellan and
    Parks, *IEEE Trans. Audio Electroacoustics* 20, 1972).

    Examples
    --------
    >>> import structarrays as sa
    >>> F = sa.Fourier(4)
    >>> F @ sa.asarray([1.0, 1.0, 1.0, 1.0])
    Dense([2.+0.j, 0.+0.j, 0.+0.j, 0.+0.j], dtype=complex128)
    >>> F @ sa.conj(F)
    Identity(scale=(1+0j), shape=(4, 4), dtype=complex128)
    """

    __slots__ = ()
    parameter_names = ("zero",)
    static_pattern = True

    def __new__(cls, n: int, *, dtype: DTypeLike | None = None) -> Self:
        try:
            n = operator.index(n)
        except TypeError:
            raise TypeError(f"n must be an integer, got {n!r}") from None
        if n < 0:
            raise ValueError(f"n must not be negative, got {n}")
        dtype = dtypes.default_dtype("c") if dtype is None else dtypes.as_dtype(dtype, "dtype")
        if dtype.kind != "c":
            raise ValueError(f"dtype must be complex, got {dtype}")
        return cls.make((jnp.zeros((), dtype),), (n, False))

    parts = ()

    @property
    def n(self) -> int:
        """The number of rows and columns."""
        n: int = self.meta[0]
        return n

    @property
    def conjugated(self) -> bool:
        """Return whether the matrix is the conjugate (inverse) transform, with ``exp(+2j * pi * j * k / n)``."""
        conjugated: bool = self.meta[1]
        return conjugated

    @staticmethod
    def shape_of(leaves: Leaves, meta: Meta) -> Shape:
        return (*leaves[0].shape, meta[0], meta[0])

    @property
    def product_cost(self) -> int:
        return 4 * self.n * max(1, math.ceil(math.log2(max(1, self.n))))

    def dense_data(self) -> jax.Array:
        if self.n > SMALL:
            return super().dense_data()
        i = np.arange(self.n)
        return jnp.broadcast_to(_roots(self, np.outer(i, i) % max(1, self.n)), self.shape)

    def times(self, columns: jax.Array) -> jax.Array:
        data = _transformed(columns, self.conjugated, -2)
        return jnp.broadcast_to(data, (*_like(self, columns.shape[:-2]), *columns.shape[-2:]))

    def transposed(self) -> Fourier:
        return self

    def _adjoint(self) -> Fourier:
        return Fourier.make(self._value[0], (self.n, not self.conjugated))

    def _determinant(self) -> jax.Array:
        _, negative, minus_i, plus_i = _multiplicities(self.n)
        power = (2 * negative + 3 * minus_i + plus_i) % 4
        return jnp.full(self.shape[:-2], (1, 1j, -1, -1j)[-power % 4 if self.conjugated else power], self.dtype)

    def _solution_remark(self) -> str:
        return "an inverse Fourier transform; O(n log(n)) for each column"

    def description(self) -> tuple[list[str], bool]:
        return [str(self.n), *(["conjugated=True"] if self.conjugated else []), f"shape={self.shape}"], True


def _transformed(data: jax.Array, conjugated: bool, axis: int) -> jax.Array:
    """Return the unitary transform, or its inverse, along an axis."""
    if data.size == 0:
        return data
    # The caller may be a LAPACK routine in the same compiled call.
    return fft.by_rows((fft.ifft if conjugated else fft.fft)(data, axis=axis, norm="ortho"))


def _like(x: Fourier, batch: Shape) -> Shape:
    """Return the shape of a product with a matrix whose batch shape is `batch`."""
    return jnp.broadcast_shapes(x.shape[:-2], batch)


# ---- products -------------------------------------------------------------------------------------------------------


@matmul.kernel(Dense, Fourier)
def _matmul_dense_fourier(x1: Dense, x2: Fourier) -> Dense:
    data = _transformed(x1.data, x2.conjugated, -1)
    shape = x2.shape[:-1] if x1.ndim == 1 else (*_like(x2, x1.shape[:-2]), *x1.shape[-2:])
    return Dense.make((jnp.broadcast_to(data, shape),))


@matmul.kernel(Fourier, Fourier)
@compose_pair.kernel(Fourier, Fourier)
def _matmul_fourier_fourier(x1: Fourier, x2: Fourier) -> Array:
    batch = _like(x1, x2.shape[:-2])
    if x1.conjugated != x2.conjugated:
        return Identity.make((jnp.ones(batch, x1.dtype), None), x1.shape[-2:])
    reflected = (-jnp.arange(x1.n, dtype=np.int32)) % max(1, x1.n)
    return Permutation.make((jnp.broadcast_to(reflected, (*batch, x1.n)),), x1.dtype)


# ---- unitary and symmetric ------------------------------------------------------------------------------------------


@conj.kernel(Fourier)
def _conj_fourier(x: Fourier) -> Fourier:
    return x._adjoint()


@elements.kernel(Fourier, when=lambda x: x.n < 2**31)
def _elements_fourier(x: Fourier, i: jax.Array, j: jax.Array) -> jax.Array:
    value = _roots(x, _product_modulo(jnp.asarray(i, int), jnp.asarray(j, int), max(1, x.n)))
    return jnp.broadcast_to(value, (*x.shape[:-2], *value.shape))


@select_lines.kernel(Fourier)
def _select_lines_fourier(x: Fourier, key: tuple[tuple[Any, ...], tuple[Any, ...]], axis: int) -> Array:
    """Compute dense rows or columns element by element: a transform rounds differently, and elements must agree."""
    return selected_lines(x, key, axis, by_elements)


def _product_modulo(i: jax.Array, j: jax.Array, n: int) -> jax.Array:
    """Return ``i * j % n``; if the product overflows the integers, by the binary digits of one factor."""
    if n**2 <= jnp.iinfo(i.dtype).max:
        return i * j % n
    i, j = ((v % n).astype(jnp.uint32) for v in (i, j))
    count = n.bit_length()

    # Without a loop, the compilation time of JAX 0.12 doubles with each digit.
    def step(k: jax.Array, result: jax.Array) -> jax.Array:
        result = _reduced(2 * result, n)
        digit = (j >> (count - 1 - k).astype(jnp.uint32)) & 1
        return jnp.where(digit == 1, _reduced(result + i, n), result)

    start = jnp.zeros(jnp.broadcast_shapes(i.shape, j.shape), jnp.uint32)
    product: jax.Array = lax.fori_loop(0, count, step, start)
    return product


def _reduced(x: jax.Array, n: int) -> jax.Array:
    """Reduce numbers less than ``2 * n`` modulo n."""
    return jnp.where(x >= n, x - jnp.uint32(n), x)


SMALL = 256
"""Up to this size the elements come from a table of roots, so that equal elements are equal in every result."""


def _roots(x: Fourier, powers: np.ndarray | jax.Array) -> jax.Array:
    """Return the roots of unity with these powers, divided by ``sqrt(n)``."""
    n, sign = max(1, x.n), 1 if x.conjugated else -1
    if n <= SMALL:
        unit = np.zeros(n)
        unit[sign % n] = n  # its inverse transform gives the roots of unity to the last digit
        table = np.fft.ifft(unit) / math.sqrt(n)
        return jnp.asarray(table.astype(x.dtype))[powers]
    angle = ((2 * np.pi / n) * powers).astype(real_dtype(x.dtype)) * sign
    return (jnp.cos(angle) + 1j * jnp.sin(angle)).astype(x.dtype) / math.sqrt(n)


# ---- what is known in advance ---------------------------------------------------------------------------------------


def _multiplicities(n: int) -> tuple[int, int, int, int]:
    """Return the multiplicities of the eigenvalues 1, -1, -i and i."""
    return (n // 4 + 1, (n + 2) // 4, (n + 1) // 4, (n + 3) // 4 - 1) if n else (0, 0, 0, 0)


@eigvals.kernel(Fourier)
def _eigvals_fourier(x: Fourier) -> Dense:
    values = jnp.repeat(
        jnp.asarray([1, -1, -1j, 1j], x.dtype), np.asarray(_multiplicities(x.n)), total_repeat_length=x.n
    )
    return Dense.make((jnp.broadcast_to(values.conj() if x.conjugated else values, x.shape[:-1]),))


# ---- eigenvectors of circulant matrices ---------------------------------------------------------------------------------


def _conjugate_transform(x: Circulant) -> Fourier:
    """Return the matrix of eigenvectors; the eigenvalues are the transform of the first column, in the same order."""
    dtype = complex_dtype(x.dtype)
    return Fourier.make((jnp.zeros(x.shape[:-2], dtype),), (x.shape[-1], True))


@eig.kernel(Circulant)
def _eig_circulant(x: Circulant) -> tuple[Array, Fourier]:
    return eigvals.dispatch(x), _conjugate_transform(x)


@eigh.kernel(Circulant, when=is_complex)
def _eigh_circulant(x: Circulant) -> tuple[Dense, Array]:
    """Eigenvectors of a real matrix are real, so they are not the columns of a Fourier matrix."""
    values: Any = circulant_kernel.full_spectrum(x.c).real
    values, order = in_order(values, x.dtype)
    return values, product(_conjugate_transform(x), order.mT)


@validated.kernel(Fourier)
def check_fourier(x: Fourier) -> None:
    """Raise unless the parameter is a complex scalar with the batch shape and the dtype of the array."""
    check_static(type(x.meta) is tuple and len(x.meta) == 2 and type(x.meta[1]) is bool, x)
    check_sizes(x.meta[:1])
    check_leaves(x, ())
    require(x.dtype.kind == "c", f"its dtype must be complex, got {x.dtype}")
