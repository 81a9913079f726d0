"""Exponentials and square roots of dense matrices on plain JAX arrays of shape ``(..., n, n)``, and products with exponentials."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy
from jax import Array, lax

from . import dense_factors, kronecker_schur, loops, sylvester
from . import dense_linalg as linalg_dense
from . import packed_triangles as triangles
from .banded_systems import mapped_together
from .flags import custom_jvp
from .host_calls import on_cpu

if TYPE_CHECKING:
    from collections.abc import Callable

# ---- the exponential -------------------------------------------------------------------------------------------------

# Numerator of the Padé approximant of degree 13, from the constant term up, and the norm up to which its backward error is below the
# precision of float64: Higham (2005), "The scaling and squaring method for the matrix exponential revisited", SIAM J. Matrix Anal.
# Appl. 26, table 2.3 and (2.2).
_PADE = (
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
)
_THETA = 5.371920351148152

# The maximum number of squarings, for norms up to 5e11. Larger norms give NaN.
_WIDTH, _DEPTH = 6, 2


def expm(a: Array) -> Array:
    """Exponential, by scaling, a Padé approximant, and squaring (Higham 2005)."""
    if a.size == 0:
        return a
    norm = lax.stop_gradient(jnp.max(jnp.sum(jnp.abs(a), axis=-2), axis=-1))
    squarings = jnp.ceil(jnp.log2(jnp.where(jnp.isfinite(norm), jnp.maximum(norm / _THETA, 1), 1)))
    a = a / jnp.exp2(squarings).astype(a.dtype)[..., None, None]
    result = _pade(a)
    squarings = squarings.astype(int)

    def square(state: tuple[Array, Array]) -> tuple[Array, Array]:
        result, made = state
        return jnp.where((made < squarings)[..., None, None], result @ result, result), made + 1

    count = loops.largest(squarings)
    result, _ = loops.repeat(square, (result, jnp.zeros((), int)), count, width=_WIDTH, depth=_DEPTH)
    return jnp.where((squarings <= _WIDTH**_DEPTH)[..., None, None], result, jnp.nan)


def _pade(a: Array) -> Array:
    b, identity = _PADE, jnp.eye(a.shape[-1], dtype=a.dtype)
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    odd = a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * identity
    even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * identity
    odd = a @ odd
    return linalg_dense.solve(even - odd, even + odd)[0]


# ---- the exponential times a matrix ----------------------------------------------------------------------------------

# The degree of a Taylor polynomial, and the norm up to which its backward error is below the precision of float64: Al-Mohy and Higham
# (2011), "Computing the action of the matrix exponential, with an application to exponential integrators", SIAM J. Sci. Comput. 33,
# table 3.1.
_TAYLOR = {5: 2.4e-3, 10: 1.4e-1, 15: 6.4e-1, 20: 1.4, 25: 2.4, 30: 3.5, 35: 4.7, 40: 6.0, 45: 7.2, 50: 8.5, 55: 9.9}

# The maximum number of products with derivatives, for norms up to about 47000.
_PRODUCTS_WIDTH, _PRODUCTS_DEPTH = 64, 3

_LARGEST_NORM = 1e8
"""Norm up to which a series is computed: it needs 6e8 products then, whose count fits in 32 bits. Beyond it, results are NaN."""


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def expm_action(product: Callable[..., Array], a: Any, b: Array, norm: Array, shift: Array) -> Array:
    """``exp(A) @ b`` by products with A.

    Parameters
    ----------
    product : callable
        Maps `a` and an array like `b` to ``A @ x``.
    a : pytree of jax.Array
        The parameters of A.
    b : jax.Array, (..., n, k)
    norm : jax.Array, (...)
        Bounds on the 1-norms of ``A - shift``.
    shift : jax.Array, (...)
        Multiples of the identity.
    """
    taylor, count = _taylor(product, a, b, norm, shift)
    result: Array = lax.fori_loop(0, count, lambda _, state: taylor(state), (b, b, jnp.zeros((), int)))[0]
    return jnp.where((norm <= _LARGEST_NORM)[..., None, None], result, jnp.nan)


@expm_action.defjvp
def _expm_action_jvp(
    product: Callable[..., Array], primals: tuple[Any, Array, Array, Array], tangents: tuple[Any, Array, Array, Array]
) -> tuple[Array, Array]:
    (a, b, norm, shift), (da, db, _, _) = primals, tangents

    def function(a: Any, b: Array) -> Array:
        taylor, count = _taylor(product, a, b, norm, shift)
        options = {"width": _PRODUCTS_WIDTH, "depth": _PRODUCTS_DEPTH}
        result = loops.repeat(taylor, (b, b, jnp.zeros((), int)), count, **options)[0]
        is_short = count <= _PRODUCTS_WIDTH**_PRODUCTS_DEPTH
        return jnp.where((is_short & (norm <= _LARGEST_NORM))[..., None, None], result, jnp.nan)

    return jax.jvp(function, (a, b), (da, db))


def _taylor(
    product: Callable[..., Array], a: Any, b: Array, norm: Array, shift: Array
) -> tuple[Callable[[tuple[Array, Array, Array]], tuple[Array, Array, Array]], Array]:
    """Return the step from one term of the series to the next, and the number of steps.

    The state contains the sum, the last term, and the number of terms.
    """
    norm, shift = loops.largest(jnp.where(norm <= _LARGEST_NORM, norm, 0)), lax.stop_gradient(shift)
    degrees, bounds = (jnp.asarray(list(v)) for v in (_TAYLOR, _TAYLOR.values()))
    steps = jnp.maximum(jnp.ceil(norm / bounds), 1)
    best = jnp.argmin(degrees * steps)
    degree, steps = degrees[best], steps[best]
    shift = shift[..., None, None]
    growth = jnp.exp(shift / steps.astype(shift.real.dtype))

    def taylor(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        total, term, made = state
        k = made % degree
        term = jnp.where(k == 0, total, term)
        number = (steps * (k + 1)).astype(term.real.dtype)
        term = (product(a, term) - shift * term) / number
        total = total + term
        return jnp.where(k == degree - 1, growth * total, total), term, made + 1

    return taylor, (degree * steps).astype(int)


# ---- the square root -------------------------------------------------------------------------------------------------


@custom_jvp
def sqrtm(a: Array) -> tuple[Array, Array]:
    """Principal square root of complex matrices, and whether it exists for each, by the Schur form.

    Björck and Hammarling (1983), "A Schur method for the square root of a matrix", Linear Algebra Appl. 52/53. On CPUs
    SciPy computes it, with real numbers if the matrix is real, and by eigenvectors if the matrix is Hermitian. If a residual is
    large, XLA computes the roots of the whole batch.
    """
    return _sqrtm(a)


def _sqrtm_together(a: Array) -> tuple[Array, Array]:
    results = jax.ShapeDtypeStruct(a.shape, a.dtype), jax.ShapeDtypeStruct(a.shape[:-2], bool)
    root, fine = on_cpu(_sqrtm_by_scipy, _without_root, results, a)
    found: tuple[Array, Array] = lax.cond(
        jnp.all(fine), lambda a, root: (root, fine), lambda a, _: _by_schur(a), a, root
    )
    return found


_sqrtm = mapped_together(_sqrtm_together, (True, True))


def _without_root(a: Array) -> tuple[Array, Array]:
    return jnp.full_like(a, jnp.nan), jnp.zeros(a.shape[:-2], bool)


_PROBES = 2
"""The number of vectors with which a root is checked."""


def _sqrtm_by_scipy(roots: numpy.ndarray, fine: numpy.ndarray, a: numpy.ndarray) -> None:
    """Compute the roots, and whether each is accurate. Of a matrix with an element that is not finite it is NaN."""
    import scipy  # type: ignore[import-untyped]  # SciPy has no type stubs
    import scipy.linalg  # type: ignore[import-untyped]

    if tuple(map(int, scipy.__version__.split(".")[:2])) < _COMPILED:
        fine[...] = False
        return
    n = a.shape[-1]
    probes = numpy.random.default_rng(n).choice([-1.0, 1.0], (n, _PROBES)).astype(a.real.dtype)
    for i in numpy.ndindex(*a.shape[:-2]):
        roots[i], fine[i] = numpy.nan, True
        if not numpy.isfinite(a[i]).all():
            continue
        x = a[i] if a[i].imag.any() else numpy.ascontiguousarray(a[i].real)
        try:
            with warnings.catch_warnings():
                # SciPy warns of singular matrices. The check below decides.
                warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)
                root = _sqrtm_hermitian(x) if (x == x.conj().T).all() else _sqrtm_general(x)
        except numpy.linalg.LinAlgError:
            fine[i] = False
            continue
        # The residual of random vectors is as large as the residual of the root, for almost all of them.
        with numpy.errstate(all="ignore"):
            size = numpy.linalg.norm(root, numpy.inf)
            residual = numpy.max(numpy.abs(root @ (root @ probes) - x @ probes))
            fine[i] = residual <= n * numpy.finfo(x.dtype).eps * size * size
            fine[i] &= residual <= numpy.sqrt(numpy.finfo(x.dtype).eps) * numpy.linalg.norm(x, numpy.inf)
        roots[i] = root


def _sqrtm_hermitian(x: numpy.ndarray) -> numpy.ndarray:
    values, vectors = numpy.linalg.eigh(x)
    values = numpy.sqrt(values if (values >= 0).all() else values.astype(numpy.result_type(x, numpy.complex64)))
    root: numpy.ndarray = (vectors * values) @ vectors.conj().T
    return root


def _sqrtm_general(x: numpy.ndarray) -> numpy.ndarray:
    """Sort the Schur form if the null space has two dimensions or more and its eigenvalue 0 has no nilpotent part.

    Rounding errors replace this eigenvalue by a block of rounding errors, whose root can have any size. With ``T = [[T1, T2], [0, 0]]`` and
    ``U1 = sqrt(T1)``, the root is ``[[U1, U1^-1 T2], [0, 0]]``.
    """
    import scipy.linalg

    size = numpy.max(numpy.abs(x))  # not zero, since the matrix is not Hermitian
    rounding = 10 * numpy.finfo(x.dtype).eps * size * numpy.linalg.norm(x / size)
    root: numpy.ndarray
    if len(x) > 1 and abs(scipy.linalg.qr(x, mode="r", pivoting=True, check_finite=False)[0][-2, -2]) <= rounding:
        t, z, rank = scipy.linalg.schur(x, output="complex", sort=lambda value: abs(value) > rounding)
        if numpy.max(numpy.abs(t[rank:, rank:]), initial=0) <= rounding:
            root = numpy.zeros_like(t)
            if rank:
                root[:rank, :rank] = scipy.linalg.sqrtm(t[:rank, :rank])
                root[:rank, rank:] = scipy.linalg.solve_triangular(root[:rank, :rank], t[:rank, rank:])
            root = z @ root @ z.conj().T
            return root
    root = scipy.linalg.sqrtm(x)
    return root


_COMPILED = (1, 17)
"""The version of SciPy from which on `scipy.linalg.sqrtm` is compiled, and warns of singular matrices."""


def _by_schur(a: Array) -> tuple[Array, Array]:
    """The root has half of its digits at least: it is a root of a matrix that differs by ``sqrt(eps)``, relatively."""
    t, z = dense_factors.schur(a)
    root, ok = _sqrt_triangular(t)
    root = z @ root @ _adjoint(z)
    residual = _row_sums(root @ root - a)
    ok = ok & ~(residual > jnp.sqrt(jnp.finfo(a.dtype).eps) * _row_sums(a))  # true where there is NaN
    return jnp.where(ok[..., None, None], root, jnp.nan), ok


def _row_sums(a: Array) -> Array:
    return jnp.max(jnp.sum(jnp.abs(a), axis=-1), axis=-1, initial=0)


@custom_jvp
def sqrtm_semidefinite(a: Array) -> tuple[Array, Array]:
    """Square root of Hermitian positive semidefinite matrices, and whether each is semidefinite; eigenvalues of
    rounding size count as zero.
    """
    values, vectors = jnp.linalg.eigh(a, symmetrize_input=False)
    bound = a.shape[-1] * jnp.finfo(a.dtype).eps * jnp.max(jnp.abs(values), axis=-1, initial=0)
    ok = ~jnp.any(values < -bound[..., None], axis=-1)
    roots = jnp.where(ok[..., None], jnp.sqrt(jnp.maximum(values, 0)), jnp.nan)
    return (vectors * roots[..., None, :].astype(a.dtype)) @ _adjoint(vectors), ok


def _rule(function: custom_jvp[tuple[Array, Array]], solve: Callable[..., Array]) -> None:
    @function.defjvp
    def _function_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        # X^2 = A, so that X dX + dX X = dA.
        (a,), (da,) = primals, tangents
        root, ok = function(a)
        x = lax.stop_gradient(root)
        change = lax.custom_linear_solve(
            lambda y: root @ y + y @ root,
            da,
            solve=lambda _, c: solve(x, c),
            transpose_solve=lambda _, c: solve(x.mT, c),
        )
        return (root, ok), (change, jnp.zeros(ok.shape, jax.dtypes.float0))


def _sylvester(x: Array, c: Array) -> Array:
    """Solution of ``x @ y + y @ x = c``, for complex matrices: a linear system with the Kronecker sum of x and its
    transpose, by Schur forms. On CPUs LAPACK computes it, with real numbers if x is real.
    """
    if 0 in x.shape or not kronecker_schur.is_on_cpu():
        return _sylvester_by_schur(x, c)
    result: Array = mapped_together(_sylvester_together, True)(x, c)
    return result


def _sylvester_together(x: Array, c: Array) -> Array:
    def real(x: Array, c: Array) -> tuple[Array, Array]:
        form = sylvester.form(x.real)
        columns = jnp.stack([c.real, c.imag], -1).reshape(*c.shape[:-2], c.shape[-2] * c.shape[-1], 2)
        shift = jnp.zeros(x.shape[:-2], columns.dtype)
        y, fine = sylvester.solve((form, kronecker_schur.transposed_form(*form)), shift, columns, transposed=False)
        return lax.complex(y[..., 0], y[..., 1]).reshape(c.shape), jnp.all(fine)

    y, fine = lax.cond(jnp.all(x.imag == 0), real, lambda _, c: (c, jnp.array(False)), x, c)
    result: Array = lax.cond(fine, lambda x, c, y: y, lambda x, c, _: _sylvester_by_schur(x, c), x, c, y)
    return result


def _sylvester_by_schur(x: Array, c: Array) -> Array:
    form = kronecker_schur.form(x)
    forms, shift = [form, kronecker_schur.transposed_form(*form)], jnp.zeros(x.shape[:-2], x.dtype)
    column = c.reshape(*c.shape[:-2], c.shape[-2] * c.shape[-1], 1)
    return kronecker_schur.substitute(forms, shift, column, adds=True).reshape(c.shape)


def _sylvester_hermitian(x: Array, c: Array) -> Array:
    """`_sylvester` for a Hermitian x, by its eigenvectors."""
    values, vectors = jnp.linalg.eigh(x, symmetrize_input=False)
    c = _adjoint(vectors) @ c @ vectors
    result: Array = vectors @ (c / (values[..., :, None] + values[..., None, :]).astype(c.dtype)) @ _adjoint(vectors)
    return result


_rule(sqrtm, _sylvester)
_rule(sqrtm_semidefinite, _sylvester_hermitian)


def _sqrt_triangular(t: Array) -> tuple[Array, Array]:
    """Principal square root of upper triangular complex matrices, column by column, and whether it exists for each."""
    n, roots = t.shape[-1], jnp.sqrt(triangles.diagonal(t))
    places = jnp.arange(n)

    def step(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        u, ok = state
        above = places < k
        # (U + u_kk) u_k = t_k in the rows above the diagonal, where U is known
        sums = jnp.where(above, roots + lax.dynamic_index_in_dim(roots, k, -1), 1)
        known = jnp.where(above[:, None] & above, u, 0)
        right = jnp.where(above, lax.dynamic_index_in_dim(t, k, -1, keepdims=False), 0)
        column = _upper_solve(triangles.with_diagonal(known, jnp.where(sums == 0, 1, sums)), right[..., None])
        # A numerator over zero must be zero.
        ok = ok & ~jnp.any((sums == 0) & (column[..., 0] != 0), axis=-1)
        diagonal = jnp.where(places == k, roots, 0)[..., None]
        return lax.dynamic_update_slice_in_dim(u, column + diagonal, k, -1), ok

    results: tuple[Array, Array] = lax.fori_loop(0, n, step, (jnp.zeros_like(t), jnp.ones(t.shape[:-2], bool)))
    return results


def _upper_solve(u: Array, b: Array) -> Array:
    return lax.linalg.triangular_solve(u, b, left_side=True, lower=False)


def _adjoint(x: Array) -> Array:
    return x.conj().mT
