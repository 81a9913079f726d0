r"""Kronecker products and sums as plain JAX arrays: dense forms, spectra, and linear systems by the spectra of the factors.

With Hermitian factors :math:`A_i = Q_i \Lambda_i Q_i^H` both :math:`A_1 \otimes \dots \otimes A_k + c I` and
:math:`A_1 \oplus \dots \oplus A_k + c I` have the eigenvectors :math:`Q_1 \otimes \dots \otimes Q_k`. Their eigenvalues are a *spectrum*:
a function that takes the eigenvalues of the factors, each ``(..., n_i)``, and the scalar c, ``(...)``, to an array
``(..., n_1, ..., n_k)``, linear in the eigenvalues of each factor.

Linear systems and determinants need the eigenvectors of all factors but one. In the basis of these eigenvectors, a linear system splits
into tridiagonal ones with the tridiagonal form of the largest factor, which is cheaper than its eigenvectors. If derivatives are taken,
the eigenvectors of all factors are used: the derivative of a determinant needs them, and a program that computes both then computes them
once.

Eigenvectors have no derivative for repeated eigenvalues, which are common in such matrices. Solutions do have one, and the derivative
rule here does not use eigenvectors.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax import Array, lax

from . import dense_spectra as spectra
from . import tridiagonal
from .flags import custom_jvp
from .linear_solves import solve_with_flag
from .tridiagonal_form import tridiagonal_form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

# ---- dense forms -----------------------------------------------------------------------------------------------------


def kron(a: Array, b: Array) -> Array:
    """Kronecker product of two stacks of matrices."""
    product = a[..., :, None, :, None] * b[..., None, :, None, :]
    (m, n), (p, q) = a.shape[-2:], b.shape[-2:]
    return product.reshape(*product.shape[:-4], m * p, n * q)


def kron_sum(a: Array, b: Array) -> Array:
    """Kronecker sum of two stacks of square matrices; structural zeros stay zero next to an infinity."""
    m, n = a.shape[-1], b.shape[-1]
    first = jnp.where(jnp.eye(n, dtype=bool)[:, None, :], a[..., :, None, :, None], 0)
    second = jnp.where(jnp.eye(m, dtype=bool)[:, None, :, None], b[..., None, :, None, :], 0)
    total = first + second
    return total.reshape(*total.shape[:-4], m * n, m * n)


def spread(vectors: Iterable[Array], combine: Callable[..., Array]) -> Array:
    """Combine the values of several vectors ``(..., n_i)`` in all ways, as a tensor ``(..., n_1, ..., n_k)``."""
    vectors = list(vectors)
    return functools.reduce(combine, [_along(v, i, len(vectors)) for i, v in enumerate(vectors)])


def _along(vector: Array, i: int, count: int) -> Array:
    """Place a vector along axis i of `count` axes after the batch axes."""
    return vector.reshape(*vector.shape[:-1], *(1,) * i, vector.shape[-1], *(1,) * (count - 1 - i))


def flat(tensor: Array, count: int) -> Array:
    """Flatten the last `count` axes."""
    kept = tensor.shape[: tensor.ndim - count]
    return tensor.reshape(*kept, math.prod(tensor.shape[tensor.ndim - count :]))


def products(vectors: Iterable[Array]) -> Array:
    """Kronecker product of vectors."""
    vectors = list(vectors)
    return flat(spread(vectors, jnp.multiply), len(vectors))


def sums(vectors: Iterable[Array]) -> Array:
    """All sums of one value of each vector, in the order of a Kronecker product."""
    vectors = list(vectors)
    return flat(spread(vectors, jnp.add), len(vectors))


# ---- spectra ---------------------------------------------------------------------------------------------------------


def product_spectrum(values: Sequence[Array], shift: Array) -> Array:
    """Eigenvalues of a Kronecker product plus a multiple of the identity."""
    return spread(values, jnp.multiply) + spread_number(shift, len(values))


def sum_spectrum(values: Sequence[Array], shift: Array) -> Array:
    """Eigenvalues of a Kronecker sum plus a multiple of the identity."""
    return spread(values, jnp.add) + spread_number(shift, len(values))


def spread_number(shift: Array, axes: int) -> Array:
    """Append `axes` axes to a scalar for each matrix."""
    return shift.reshape(*shift.shape, *(1,) * axes)


def eigenbasis(factor: Array, is_diagonal: bool) -> tuple[Array, Array | None]:
    """Eigenvalues and eigenvectors of a Hermitian factor; None as eigenvectors of a factor that is given by its
    diagonal.
    """
    if is_diagonal:
        return factor.real, None
    return spectra.eigh(factor)


_SMALL = 128
"""Up to this size eigenvectors take less than a millisecond, and the compilation of loops for tridiagonal systems takes
longer.
"""


class Bases(NamedTuple):
    """The bases in which the factors are diagonal, or one of them tridiagonal; all arrays are real except `vectors`."""

    values: tuple[Array, ...]
    """The diagonals ``(..., n_i)``: eigenvalues."""
    vectors: tuple[Array | None, ...]
    """The bases ``(..., n_i, n_i)``; None for a factor that is given by its diagonal."""
    off_diagonal: Array | None
    """Off-diagonal elements of the tridiagonal factor; None if all factors are diagonal."""


def largest_factor(factors: Sequence[Array], diagonal: Sequence[bool]) -> int | None:
    """Return the factor whose tridiagonal form is cheaper than eigenvectors, if any. JAX provides that form on CPUs,
    where loops over rows are fast.
    """
    if jax.default_backend() != "cpu" or not all(f.size for f in factors):
        return None
    size, i = max((0 if d else f.shape[-1], i) for i, (f, d) in enumerate(zip(factors, diagonal, strict=True)))
    return i if size > _SMALL else None


@functools.partial(custom_jvp, nondiff_argnums=(2,))
def bases(factors: tuple[Array, ...], shift: Array, diagonal: tuple[bool, ...]) -> Bases:
    """Return bases in which a linear system is cheap to solve, without derivatives.

    If derivatives by the factors or the shift are taken, the bases are eigenvectors.
    """
    off_diagonal: Array | None
    pairs: list[tuple[Array, Array | None]]
    largest, off_diagonal, pairs = largest_factor(factors, diagonal), None, []
    for i, (factor, is_diagonal) in enumerate(zip(factors, diagonal, strict=True)):
        if i == largest:
            q, values, off_diagonal = tridiagonal_form(factor)
            pairs.append((values, q))
        else:
            pairs.append(eigenbasis(factor, is_diagonal))
    diagonals, vectors = zip(*pairs, strict=True)
    return Bases(diagonals, vectors, off_diagonal)


@bases.defjvp
def _bases_jvp(
    diagonal: tuple[bool, ...], primals: tuple[tuple[Array, ...], Array], tangents: tuple[tuple[Array, ...], Array]
) -> tuple[Bases, Bases]:
    factors, _ = primals
    values, vectors = zip(*(eigenbasis(f, d) for f, d in zip(factors, diagonal, strict=True)), strict=True)
    largest = largest_factor(factors, diagonal)
    off_diagonal = None if largest is None else jnp.zeros_like(values[largest][..., 1:])
    result = Bases(values, vectors, off_diagonal)
    return result, jax.tree.map(jnp.zeros_like, result)


def tridiagonal_systems(
    found: Bases, spectrum: Callable[..., Array], shift: Array, largest: int
) -> tuple[Array, Array]:
    """Diagonals ``(..., n)`` and ``(..., n - 1)`` of the tridiagonal linear systems, with the axis of the largest
    factor last.
    """
    axis = largest - len(found.values)

    def of_one(values: Array) -> Array:
        return jnp.moveaxis(spectrum([*found.values[:largest], values, *found.values[largest + 1 :]], shift), axis, -1)

    # A spectrum is linear in the eigenvalues of each factor, and therefore in the elements of one factor.
    off_diagonal = jax.jvp(of_one, (jnp.zeros_like(cast("Array", found.off_diagonal)),), (found.off_diagonal,))[1]
    return of_one(found.values[largest]), off_diagonal


def solve(
    matvec: Callable[..., Array], right: Array, substitute: Callable[..., tuple[Array, Array]]
) -> tuple[Array, Array]:
    """Solve a linear system whose matrix has Hermitian factors; also return whether all matrices are regular.

    Parameters
    ----------
    matvec : callable
        Product of the matrix and an array like `right`. The derivative solves ``A dx = db - dA x``.
    right : (..., N, m)
        The right-hand sides, with the batch shape of the matrix.
    substitute : callable
        A result of `solver`.
    """
    return solve_with_flag(
        matvec,
        right,
        solve=lambda _, b: substitute(b, transposed=False),
        transpose_solve=lambda _, b: substitute(b, transposed=True),
    )


def solver(
    factors: Sequence[Array],
    shift: Array,
    spectrum: Callable[..., Array],
    diagonal: tuple[bool, ...],
    *,
    positive: bool = False,
) -> Callable[..., tuple[Array, Array]]:
    """Compute the bases of the Hermitian factors, and return the function ``(b, *, transposed)`` that solves a linear system in them.

    It returns the solution, and whether all matrices are regular. It has no derivatives.

    Parameters
    ----------
    factors : sequence of (..., n_i, n_i) or (..., n_i)
        Hermitian matrices, or the diagonals of diagonal factors.
    shift : (...)
        The multiple of the identity.
    spectrum : callable
        `product_spectrum` or `sum_spectrum`.
    diagonal : tuple of bool
        Which factors are given by their diagonals.
    positive : bool
        Whether a matrix that is not positive definite counts as singular.

    Notes
    -----
    ``(Q_1 ⊗ ...) T⁻¹ (Q_1 ⊗ ...)ᴴ b``, in ``O(sum(n_i**3) + N m sum(n_i))``, with T diagonal or a stack of tridiagonal matrices. For Kronecker
    sums and a diagonal T this is the fast diagonalisation of Lynch, Rice and Thomas (1964), Numerische Mathematik 6.
    """
    found = lax.stop_gradient(bases(tuple(factors), shift, diagonal))
    largest: Any  # None, if no factor is tridiagonal
    shift, axes, largest = lax.stop_gradient(shift), len(factors), largest_factor(factors, diagonal)

    def divided(data: Array) -> tuple[Array, Array]:
        eigenvalues = spectrum(found.values, shift)
        fine = eigenvalues.real > 0 if positive else eigenvalues != 0
        regular = jnp.all(fine | jnp.isnan(eigenvalues), axis=tuple(range(-axes, 0)))
        inverse = jnp.where(spread_number(regular, axes), 1 / eigenvalues, jnp.nan)[..., None]
        return inverse * data, jnp.all(regular)

    def eliminated(data: Array) -> tuple[Array, Array]:
        diag, off_diagonal = tridiagonal_systems(found, spectrum, shift, largest)
        moved = jnp.moveaxis(data, largest - axes - 1, -2)
        diag, off_diagonal = diag.astype(data.dtype), off_diagonal.astype(data.dtype)
        x, ok = tridiagonal.solve(off_diagonal, diag, off_diagonal, moved, positive)
        # If a matrix is singular, its whole solution is NaN, even if only some of the tridiagonal matrices are
        # singular.
        bad = ~ok & jnp.any(jnp.isnan(x), axis=tuple(range(-axes - 1, -1)), keepdims=True)
        return jnp.moveaxis(jnp.where(bad, jnp.nan, x), -2, largest - axes - 1), ok

    def substitute(b: Array, *, transposed: bool) -> tuple[Array, Array]:
        data = b.reshape(*b.shape[:-2], *(v.shape[-1] for v in found.values), b.shape[-1])
        for i, q in enumerate(found.vectors):  # the transpose has the conjugated bases
            data = apply_along(q, data, i - axes - 1, transpose=True, conjugate=not transposed)
        if found.off_diagonal is None:
            data, ok = divided(data)
        else:
            data, ok = lax.cond(jnp.any(found.off_diagonal != 0), eliminated, divided, data)
        for i, q in enumerate(found.vectors):
            data = apply_along(q, data, i - axes - 1, transpose=False, conjugate=transposed)
        return data.reshape(b.shape), ok

    return substitute


def apply_along(q: Array | None, data: Array, axis: int, *, transpose: bool, conjugate: bool) -> Array:
    """Multiply a matrix ``(..., n, n)``, optionally conjugated and transposed, by the vectors along one axis, counted
    from the end; None is the identity.
    """
    if q is None:
        return data
    q = q.conj() if conjugate else q
    batch = q.ndim - 2
    if data.ndim + axis == batch:
        columns = data.reshape(*data.shape[: batch + 1], math.prod(data.shape[batch + 1 :]))
        return ((q.mT if transpose else q) @ columns).reshape(data.shape)
    if math.prod(data.shape[axis + 1 :]) == 1:
        rows = data.reshape(*data.shape[:batch], math.prod(data.shape[batch:axis]), data.shape[axis])
        return (rows @ (q if transpose else q.mT)).reshape(data.shape)
    moved = jnp.moveaxis(data, axis, batch)
    return jnp.moveaxis(apply_along(q, moved, batch - data.ndim, transpose=transpose, conjugate=False), batch, axis)
