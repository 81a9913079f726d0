r"""Systems and determinants of Kronecker products and sums with factors that need not be Hermitian, on plain JAX arrays.

With the Schur forms :math:`A_i = U_i T_i U_i^H`, whose :math:`T_i` are upper triangular, both :math:`A_1 \otimes \dots \otimes A_k + c I` and
:math:`A_1 \oplus \dots \oplus A_k + c I` are unitarily similar to the same with :math:`T_i`: upper triangular matrices, whose systems are
solved backwards block by block. That is backward stable whatever the eigenvectors of the factors are (R. H. Bartels and G. W. Stewart,
"Solution of the matrix equation AX + XB = C", Communications of the ACM 15 (1972), 820-826, for two factors of a sum).

JAX has the Schur form on CPUs only.
"""

import math

import jax.numpy as jnp
from jax import lax

from structarrays.kernels import linalg_dense
from structarrays.kernels.kronecker import apply_along, spread_number, sum_spectrum


def solve(matvec, right, factors, shift, spectrum, diagonal):
    """Solution of a system, and for each matrix whether no eigenvalue is zero; the arguments are those of `kernels.kronecker.solve`.

    Notes
    -----
    ``O(sum(n_i**3) + N m sum(n_i))``, in ``n_1 n_2 ⋯`` steps, the last factor's size not counted, one after the other.
    """
    dtype = jnp.result_type(right, jnp.complex64)
    forms = [_schur(lax.stop_gradient(f).astype(dtype), d) for f, d in zip(factors, diagonal, strict=True)]
    shift = lax.stop_gradient(shift).astype(dtype)
    eigenvalues = spectrum([t if u is None else _diagonal(t) for t, u in forms], shift)
    axes = len(forms)
    regular = jnp.all((eigenvalues != 0) | jnp.isnan(eigenvalues), axis=tuple(range(-axes, 0)))
    if right.shape[-2] == 0:
        return right, regular
    shift = jnp.where(regular, shift, jnp.nan)
    core = eigenvalues.shape[eigenvalues.ndim - axes :]

    def substitute(forms, b):
        if b.ndim > shift.ndim + 2:  # one matrix for a stack of right-hand sides: these are columns
            rows = jnp.moveaxis(b, -2, 0)
            columns = substitute(forms, rows.reshape(rows.shape[0], math.prod(rows.shape[1:])))
            return jnp.moveaxis(columns.reshape(rows.shape), 0, -2)
        data = b.astype(dtype).reshape(*b.shape[:-2], *core, b.shape[-1])
        for i, (_, u) in enumerate(forms):
            data = apply_along(u, data, i - axes - 1, transpose=True, conjugate=True)
        triangles = tuple(t for t, _ in forms)
        data = _backwards(triangles, jnp.ones_like(shift), shift, data, adds=spectrum is sum_spectrum)
        for i, (_, u) in enumerate(forms):
            data = apply_along(u, data, i - axes - 1, transpose=False, conjugate=False)
        data = data.reshape(b.shape)
        return data if jnp.iscomplexobj(b) else data.real

    solution = lax.custom_linear_solve(
        matvec,
        right,
        solve=lambda _, b: substitute(forms, b),
        transpose_solve=lambda _, b: substitute([_transposed(*form) for form in forms], b),
    )
    return solution, regular


def _schur(factor, is_diagonal):
    """The triangular and the unitary matrix; of a diagonal factor its diagonal, and None."""
    return (factor, None) if is_diagonal else tuple(lax.linalg.schur(factor))


def _transposed(t, u):
    """The form of the transpose: with all indices backwards, a lower triangular matrix is an upper one."""
    if u is None:
        return t, None
    return jnp.flip(t.mT, (-2, -1)), jnp.flip(u.conj(), -1)


def _backwards(triangles, scale, shift, b, *, adds):
    """The solution of a triangular system: of ``scale (T_1 ⊗ ...) + shift I``, or (with scale 1) of ``T_1 ⊕ ... + shift I``.

    Parameters
    ----------
    triangles : tuple of (..., n_i, n_i), or (..., n_i) for a diagonal factor
    scale, shift : (...)
    b : (..., n_1, ..., n_k, m)
    adds : bool
        Whether it is a Kronecker sum.
    """
    first, *rest = triangles
    batch = shift.ndim
    if first.ndim == batch + 1:  # no row depends on another: one more batch axis
        scale, shift = _level(first, scale[..., None], shift[..., None], adds)
        if not rest:
            return b / (shift if adds else scale + shift)[..., None]
        return _backwards([jnp.expand_dims(t, batch) for t in rest], scale, shift, b, adds=adds)
    if not rest:
        n = first.shape[-1]
        matrix = scale[..., None, None] * first + shift[..., None, None] * jnp.eye(n, dtype=first.dtype)
        shape = jnp.broadcast_shapes(matrix.shape[:-2], b.shape[:-2])
        matrix, b = (jnp.broadcast_to(a, shape + a.shape[-2:]) for a in (matrix, b))
        return lax.linalg.triangular_solve(matrix, b, left_side=True, lower=False)
    n = first.shape[-1]
    axes = b.ndim - batch

    def step(b, row):
        i, on_diagonal, above = row
        own_scale, own_shift = _level(on_diagonal, scale, shift, adds)
        right = lax.dynamic_index_in_dim(b, i, batch, keepdims=False)
        y = _backwards(rest, own_scale, own_shift, right, adds=adds)
        known = y if adds else spread_number(scale, axes - 1) * _times(rest, y)
        above = above.reshape(above.shape + (1,) * (axes - 1))
        return b - above * jnp.expand_dims(known, batch), y

    above = jnp.triu(first, 1)
    rows = (jnp.arange(n), jnp.moveaxis(_diagonal(first), -1, 0), jnp.moveaxis(above, -1, 0))
    _, solution = lax.scan(step, b, rows, reverse=True)
    return jnp.moveaxis(solution, 0, batch)


def _level(values, scale, shift, adds):
    """The numbers beside the other factors, at an element on the diagonal of the first."""
    return (scale, shift + values) if adds else (scale * values, shift)


def _times(triangles, y):
    """The Kronecker product of triangles times a tensor with one column axis behind."""
    count = len(triangles)
    batch = y.ndim - count - 1
    for i, t in enumerate(triangles):
        if t.ndim == batch + 1:
            y = y * t.reshape(*t.shape[:-1], *(1,) * i, t.shape[-1], *(1,) * (count - i))
        else:
            y = apply_along(t, y, i - count - 1, transpose=False, conjugate=False)
    return y


def slogdet(factors, shift, spectrum, diagonal):
    """Sign and logarithm of the magnitude of the determinant, from the eigenvalues of the factors; the derivative goes through their
    eigenvectors.
    """
    values = [f if d else linalg_dense.eigvals(f) for f, d in zip(factors, diagonal, strict=True)]
    dtype = jnp.result_type(shift, jnp.complex64)
    eigenvalues = spectrum([v.astype(dtype) for v in values], shift.astype(dtype))
    axes = tuple(range(-len(values), 0))
    size = jnp.abs(eigenvalues)
    phase = jnp.where(size == 0, 0, eigenvalues / jnp.where(size == 0, 1, size))
    sign, logabsdet = jnp.prod(phase, axis=axes), jnp.sum(jnp.log(size), axis=axes)
    return (sign if jnp.iscomplexobj(shift) else jnp.sign(sign.real)), logabsdet


def _diagonal(matrix):
    return jnp.diagonal(matrix, axis1=-2, axis2=-1)
