"""Rules of `structured` for linear algebra: functions of JAX that are one equation, and the primitives below them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from .._core.array.base import Array
from .._core.array.operands import densify
from .._core.assumptions import is_hermitian
from .._core.jax_internals.equations import bind, inner_program, parameters, parts
from .._functions.linalg.spectra import qr, svd
from .._numerics.dense_fft import between
from .constant_patterns import LU
from .rules import array, call, cast, plain, rule, unwrapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._core.typing import Result
    from .interpreter import Interpreter


def _expected(equation: Any, *results: Any) -> Result:
    """Cast results to the dtypes of the program; return NotImplemented if a shape differs."""
    out = []
    if len(results) != len(equation.outvars):
        return NotImplemented
    for variable, result in zip(equation.outvars, results, strict=True):
        if tuple(result.shape) != variable.aval.shape:
            return NotImplemented
        out.append(cast(result, variable.aval.dtype))
    return out


def _same(name: str) -> Callable[..., Result]:
    """Return the rule for a function of JAX, of arrays only and with one result, that is also a function of the
    namespace.
    """

    def run(interpreter: Interpreter, equation: Any, *values: Any) -> Result:
        arrays = [array(v) for v in values]
        if not isinstance(values[0], Array):
            return NotImplemented
        if any(v.dtype.kind not in "fc" or v.ndim == 0 for v in arrays):
            return NotImplemented
        return _expected(equation, call(name, *arrays))

    return run


rule("numpy.linalg.inv")(_same("linalg.inv"))
rule("numpy.linalg.det")(_same("linalg.det"))
rule("scipy.linalg.expm")(_same("linalg.expm"))
rule("scipy.linalg._sqrtm")(_same("linalg.sqrtm"))


@rule("numpy.linalg.solve", "scipy.linalg._solve")
def _solve_rule(interpreter: Interpreter, equation: Any, a: Any, b: Any) -> Result:
    if not isinstance(a, Array) or a.dtype != b.dtype or a.dtype.kind not in "fc":
        return NotImplemented
    if "cholesky" in _primitives(inner_program(equation)):
        return NotImplemented  # it reads one triangle: see below
    b = densify(b, "linalg.solve").data if isinstance(b, Array) and b.ndim == 1 else b
    return _expected(equation, call("linalg.solve", a, b))


@rule("numpy.linalg.slogdet")
def _slogdet_rule(interpreter: Interpreter, equation: Any, a: Any) -> Result:
    if not isinstance(a, Array) or a.dtype.kind not in "fc":
        return NotImplemented
    return _expected(equation, *(unwrapped(part) for part in call("linalg.slogdet", a)))


# ---- functions of Hermitian matrices -----------------------------------------------------------------------------------


def _primitives(program: Any) -> list[str]:
    """Return the names of the primitives of a program, in order, including programs that it calls."""
    names: list[str] = []
    for equation in parts(program).equations:
        inner = inner_program(equation) if equation.primitive.name == "jit" else None
        names += [equation.primitive.name] if inner is None else _primitives(inner)
    return names


def _of_average(equation: Any, a: Any, primitive: str) -> bool:
    """Return whether a JAX function uses the average of a matrix and its adjoint, as functions of the namespace do.

    Only the program of the function shows this.
    """
    if not isinstance(a, Array) or a.dtype.kind not in "fc":
        return False
    names = _primitives(inner_program(equation))
    return primitive in names and "transpose" in names[: names.index(primitive)]


@rule("numpy.linalg.cholesky")
def _cholesky_rule(interpreter: Interpreter, equation: Any, a: Any) -> Result:
    if not _of_average(equation, a, "cholesky"):
        return NotImplemented
    names = _primitives(inner_program(equation))
    return _expected(equation, call("linalg.cholesky", a, upper="transpose" in names[names.index("cholesky") :]))


@rule("numpy.linalg.eigh")
def _eigh_rule(interpreter: Interpreter, equation: Any, a: Any) -> Result:
    if not _of_average(equation, a, "eigh"):
        return NotImplemented
    return _expected(equation, *map(unwrapped, call("linalg.eigh", a)))


@rule("numpy.linalg.eigvalsh")
def _eigvalsh_rule(interpreter: Interpreter, equation: Any, a: Any) -> Result:
    return _expected(equation, call("linalg.eigvalsh", a)) if _of_average(equation, a, "eigh") else NotImplemented


def _by_triangle(a: Array, lower: bool = True) -> Array | None:
    """Return the Hermitian matrix defined by one triangle, which a primitive reads; None if it would be dense.

    Its value is the value of the triangle, its derivative the derivative of the average of both triangles, as in JAX.
    """
    if is_hermitian(a):
        return a
    if not a.stores_entries or not a.static_pattern or a.background is not None or a.core_ndim != 2:
        return None

    def adjoint(x: Array) -> Array:
        x = array(call("matrix_transpose", x))
        return array(call("conj", x)) if x.dtype.kind == "c" else x

    part = "tril" if lower else "triu"
    mirrored = array(call("add", call(part, a, k=0), adjoint(call(part, a, k=-1 if lower else 1))))
    average = array(call("divide", call("add", a, adjoint(a)), jnp.asarray(2, a.dtype)))
    correction = call("subtract", mirrored, average)
    return array(call("add", average, jax.tree.map(jax.lax.stop_gradient, correction)))


@rule("numpy.lax_numpy.kron")
def _kron_rule(interpreter: Interpreter, equation: Any, a: Any, b: Any) -> Result:
    from .._structures.kronecker.array import Kronecker

    if not (isinstance(a, Array) and isinstance(b, Array)) or (a.ndim, b.ndim) != (2, 2) or a.dtype.kind == "b":
        return NotImplemented
    return [unwrapped(Kronecker(a, b))]


# ---- LU factorizations -----------------------------------------------------------------------------------------------


@rule("lu")
def _lu_rule(interpreter: Interpreter, equation: Any, a: Any) -> Result:
    """Postpone the factorization until an equation other than a solver needs its elements."""
    return [LU(a, part) for part in range(3)] if isinstance(a, Array) else NotImplemented


@rule("lu_pivots_to_permutation")
def _lu_pivots_to_permutation_rule(interpreter: Interpreter, equation: Any, pivots: Any) -> Result:
    return LU(pivots.matrix, 2) if isinstance(pivots, LU) and pivots.part == 1 else NotImplemented


@rule("lax.linalg._lu_solve")
def _lu_solve_rule(interpreter: Interpreter, equation: Any, lu: Any, permutation: Any, b: Any) -> Result:
    # Values that come out of a loop do not show whether the two parts belong to one factorization.
    if not (isinstance(lu, LU) and isinstance(permutation, LU)) or (lu.part, permutation.part) != (0, 2):
        return NotImplemented
    # The operands do not tell whether the matrix is transposed, but the triangular systems do.
    inside = parts(inner_program(equation)).equations
    systems = [parameters(e) for e in inside if e.primitive.name == "triangular_solve"]
    if len(systems) != 2:
        return NotImplemented
    first = systems[0]
    a = lu.matrix
    if first["transpose_a"]:
        a = array(call("matrix_transpose", a))
        a = array(call("conj", a)) if first["conjugate_a"] else a
    return _expected(equation, call("linalg.solve", a, b))


# ---- primitives ------------------------------------------------------------------------------------------------------


@rule("cholesky")
def _cholesky_primitive_rule(interpreter: Interpreter, equation: Any, a: Any) -> Result:
    a = _by_triangle(a) if isinstance(a, Array) else None
    return NotImplemented if a is None else call("linalg.cholesky", a)


@rule("eigh")
def _eigh_primitive_rule(interpreter: Interpreter, equation: Any, a: Any) -> Result:
    """Return eigenvectors before eigenvalues, as the primitive does."""
    p = parameters(equation)
    if not isinstance(a, Array) or p.get("subset_by_index") is not None:
        return NotImplemented
    a = _by_triangle(a, p["lower"])
    if a is None:
        return NotImplemented
    values, vectors = call("linalg.eigh", a)
    return [cast(unwrapped(vectors), a.dtype), unwrapped(values)]


@rule("svd")
def _svd_rule(interpreter: Interpreter, equation: Any, a: Any) -> Result:
    p = parameters(equation)
    if not isinstance(a, Array) or p.get("subset_by_index") is not None:
        return NotImplemented
    if not p["compute_uv"]:
        return [call("linalg.svdvals", a)]
    u, s, vh = svd.__wrapped__(a, full_matrices=p["full_matrices"])
    return [unwrapped(s), unwrapped(u), unwrapped(vh)]


@rule("qr")
def _qr_rule(interpreter: Interpreter, equation: Any, a: Any) -> Result:
    p = parameters(equation)
    if not isinstance(a, Array) or p.get("pivoting"):
        return NotImplemented
    q, r = qr.__wrapped__(a, mode="complete" if p["full_matrices"] else "reduced")
    return _expected(equation, unwrapped(q), unwrapped(r))


@rule("triangular_solve")
def _triangular_solve_rule(interpreter: Interpreter, equation: Any, a: Any, b: Any) -> Result:
    p = parameters(equation)
    if not isinstance(a, Array):
        return NotImplemented
    trans = (2 if p["conjugate_a"] else 1) if p["transpose_a"] else 0
    if p["conjugate_a"] and not p["transpose_a"]:
        a = array(call("conj", a))
    b = array(b)
    if not p["left_side"]:
        # x a = b is a.mT x.mT = b.mT; of the four forms of a, `trans` lacks the conjugate without transpose.
        if trans == 2:
            a, trans = array(call("conj", a)), 1
        b, trans = array(call("matrix_transpose", b)), 1 - trans
    x = call("linalg.solve_triangular", a, b, trans=trans, lower=p["lower"], unit_diagonal=p["unit_diagonal"])
    return x if p["left_side"] else call("matrix_transpose", x)


@rule("fft")
def _fft_rule(interpreter: Interpreter, equation: Any, x: Any) -> Result:
    """Evaluate transforms of whole axes; the function of the namespace reports if it needs a dense array."""
    from jax.lax import FftType

    kind, lengths = parameters(equation)["fft_type"], tuple(parameters(equation)["fft_lengths"])
    if not isinstance(x, Array):
        return NotImplemented
    if not x.size or kind not in (FftType.FFT, FftType.IFFT):
        return between(lambda v: bind(equation, [v]), plain(x, "fft"))
    axes = tuple(range(x.ndim - len(lengths), x.ndim))
    return call("fft.fftn" if kind == FftType.FFT else "fft.ifftn", x, axes=axes)
