"""Functions of NumPy that are ours, with arguments that have to be put otherwise: the parameters have NumPy's names."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.array.dense import Dense
from .numpy_host import as_ours, on_host, ours
from .numpy_reductions import reduction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .._core.array.base import Array
    from .._core.typing import Axes, DTypeLike, Result
    from .numpy_host import Casting


def flat(x: Array) -> Array:
    """The array in one dimension."""
    line: Array = ours("reshape")(x, (-1,))
    return line


# ---- new arrays, of NumPy's ``like=`` and beside another array -------------------------------------------------------


def _array(object: Any, dtype: DTypeLike | None = None, copy: bool = True, ndmin: int = 0) -> Result:
    x = ours("asarray")(object, dtype=dtype, copy=True if copy else None)
    return x if x.ndim >= ndmin else ours("reshape")(x, (1,) * (ndmin - x.ndim) + x.shape)


def _asarray(a: Any, dtype: DTypeLike | None = None, copy: bool | None = None) -> Result:
    return ours("asarray")(a, dtype=dtype, copy=copy)


def _contiguous(a: Any, dtype: DTypeLike | None = None) -> Result:
    return ours("asarray")(a, dtype=dtype)


def _arange(start_or_stop: Any, stop: Any = None, step: Any = 1, dtype: DTypeLike | None = None) -> Result:
    return ours("arange")(start_or_stop, stop, 1 if step is None else step, dtype=dtype)


def _eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = float) -> Result:
    return ours("eye")(N, M, k=k, dtype=dtype)


def _identity(n: int, dtype: DTypeLike | None = None) -> Result:
    return ours("eye")(n, dtype=dtype)


def _tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = float) -> Result:
    return ours("tril")(ours("ones")((N, N if M is None else M), dtype=dtype), k=k)


def _new(name: str) -> Callable[..., Result]:
    def adapter(shape: Any, dtype: DTypeLike | None = None) -> Result:
        return ours(name)(shape, dtype=dtype)

    return adapter


def _full(shape: Any, fill_value: Any, dtype: DTypeLike | None = None) -> Result:
    if np.ndim(fill_value) != 0:
        filled = ours("broadcast_to")(ours("asarray")(fill_value, dtype=dtype), shape)
        return ours("asarray")(filled, copy=True)
    return ours("full")(shape, _number(fill_value), dtype=dtype)


def _number(value: Any) -> Any:
    """A number as it is; that of an array of no dimensions, if it has values."""
    return value.item() if isinstance(value, (np.ndarray, np.generic)) else value


def _full_like(a: Any, fill_value: Any, dtype: DTypeLike | None = None, shape: Any = None) -> Result:
    a = as_ours(a)
    shape, dtype = a.shape if shape is None else shape, a.dtype if dtype is None else dtype
    if np.ndim(fill_value) != 0:
        filled = ours("broadcast_to")(ours("astype")(as_ours(fill_value), dtype), shape)
        return ours("asarray")(filled, copy=True)
    return ours("full")(
        shape, np.asarray(fill_value).astype(dtype).item() if _known(fill_value) else fill_value, dtype=dtype
    )


def _known(value: object) -> bool:
    return isinstance(value, (bool, int, float, complex, np.ndarray, np.generic))


def _like(name: str) -> Callable[..., Result]:
    def adapter(a: Any, dtype: DTypeLike | None = None, shape: Any = None) -> Result:
        if shape is None:
            return ours(f"{name}_like")(a, dtype=dtype)
        return ours(name)(shape, dtype=as_ours(a).dtype if dtype is None else dtype)

    return adapter


def _empty_like(prototype: Any, dtype: DTypeLike | None = None, shape: Any = None) -> Result:
    return _like("empty")(prototype, dtype, shape)


def _linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: DTypeLike | None = None, axis: int = 0
) -> Result:
    start, stop = as_ours(start), as_ours(stop)
    if start.ndim == stop.ndim == 0:
        return ours("linspace")(start, stop, num, endpoint=endpoint, dtype=dtype)
    t = ours("linspace")(0.0, 1.0, num, endpoint=endpoint)
    t = ours("reshape")(t, (num,) + (1,) * max(start.ndim, stop.ndim))
    result = (1.0 - t) * start + t * stop  # exact at both ends
    result = result if dtype is None else ours("astype")(result, dtype)
    return ours("moveaxis")(result, 0, axis)


def _astype(x: Any, dtype: DTypeLike, copy: bool = True) -> Result:
    return ours("astype")(x, dtype, copy=copy)


def _copy(a: Any) -> Result:
    return ours("asarray")(a, copy=True)


# ---- reductions -------------------------------------------------------------------------------------------------------


def _reduced(name: str) -> Callable[..., Result]:
    def adapter(a: Any, axis: Axes = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> Result:
        return reduction(name, as_ours(a), axis=axis, keepdims=keepdims, initial=initial, where=where)

    return adapter


def _truth(name: str) -> Callable[..., Result]:
    def adapter(a: Any, axis: Axes = None, keepdims: bool = False, where: Any = True) -> Result:
        return reduction(name, as_ours(a), axis=axis, keepdims=keepdims, where=where)

    return adapter


def _reduced_in(name: str) -> Callable[..., Result]:
    def adapter(
        a: Any,
        axis: Axes = None,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Result:
        return reduction(name, as_ours(a), axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)

    return adapter


def _mean(
    a: Any, axis: Axes = None, dtype: DTypeLike | None = None, keepdims: bool = False, where: Any = True
) -> Result:
    a = as_ours(a) if dtype is None else ours("astype")(as_ours(a), dtype)
    if a.dtype.kind in "biu":
        a = ours("astype")(a, float)
    if where is True:
        return ours("mean")(a, axis=axis, keepdims=keepdims)
    total = reduction("sum", a, axis=axis, keepdims=keepdims, where=where)
    if total is NotImplemented:
        return total
    counted = ours("broadcast_to")(as_ours(where), a.shape)
    return total / ours("sum")(ours("astype")(counted, total.real.dtype), axis=axis, keepdims=keepdims)


def _spread(name: str) -> Callable[..., Result]:
    def adapter(
        a: Any, axis: Axes = None, ddof: float = 0, correction: float | None = None, keepdims: bool = False
    ) -> Result:
        return ours(name)(a, axis=axis, correction=ddof if correction is None else correction, keepdims=keepdims)

    return adapter


def _cumulative(name: str) -> Callable[..., Result]:
    def adapter(a: Any, axis: int | None = None, dtype: DTypeLike | None = None) -> Result:
        return ours(name)(flat(a), axis=0, dtype=dtype) if axis is None else ours(name)(a, axis=axis, dtype=dtype)

    return adapter


# ---- elements ---------------------------------------------------------------------------------------------------------


def _real(val: Any) -> Array:
    return as_ours(val).real


def _imag(val: Any) -> Array:
    return as_ours(val).imag


def _round(a: Any, decimals: int = 0) -> Result:
    a = as_ours(a)
    if decimals == 0 or (a.dtype.kind in "iu" and decimals > 0):
        return ours("round")(a)
    if a.dtype.kind in "biu":
        return NotImplemented
    scale = 10.0 ** abs(operator.index(decimals))
    if not math.isfinite(scale):
        return NotImplemented
    if decimals > 0:
        return ours("round")(a * scale) / scale
    return ours("round")(a / scale) * scale


def _where(condition: Any, x: Any = None, y: Any = None) -> Result:
    condition = as_ours(condition)
    if x is None and y is None:
        return ours("nonzero")(condition)
    if condition.dtype.kind != "b":
        condition = ours("astype")(condition, bool)
    return ours("where")(condition, x, y)


def _clip(a: Any, a_min: Any = None, a_max: Any = None, min: Any = None, max: Any = None) -> Result:
    low, high = a_min if min is None else min, a_max if max is None else max
    return ours("clip")(as_ours(a), low, high)


def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Result:
    a = as_ours(a)
    ends = {"prepend": prepend, "append": append}
    ends = {k: _end(v, a, axis) for k, v in ends.items() if v is not None}
    return ours("diff")(a, n=n, axis=axis, **ends)


def _end(value: Any, a: Array, axis: int) -> Array:
    """What stands before or behind an array: of a number an array of length 1."""
    end = as_ours(value)
    if end.ndim == 0:
        shape = list(a.shape)
        shape[axis] = 1
        end = ours("broadcast_to")(end, tuple(shape))
    return end


def _isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, kind: Any = None
) -> Result:
    return ours("isin")(as_ours(element), as_ours(test_elements), invert=invert)


def _searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Result:
    return ours("searchsorted")(as_ours(a), as_ours(v), side=side, sorter=None if sorter is None else as_ours(sorter))


def _sort(a: Any, axis: int | None = -1, kind: Any = None, stable: bool = True) -> Result:
    return ours("sort")(flat(a), axis=-1) if axis is None else ours("sort")(a, axis=axis)


def _argsort(a: Any, axis: int | None = -1, kind: Any = None, stable: bool = True) -> Result:
    return ours("argsort")(flat(a), axis=-1) if axis is None else ours("argsort")(a, axis=axis)


def _take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Result:
    a, indices = as_ours(a), as_ours(indices)
    if axis is None:
        a, axis = flat(a), 0
    if mode != "raise":
        n = a.shape[axis]
        indices = ours("clip")(indices, 0, n - 1) if mode == "clip" else ours("remainder")(indices, n)
    if indices.ndim == 1:
        return ours("take")(a, indices, axis=axis)
    taken = ours("take")(a, flat(indices), axis=axis)
    axis = range(a.ndim)[axis]
    return ours("reshape")(taken, a.shape[:axis] + indices.shape + a.shape[axis + 1 :])


def _unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Result:
    if axis is not None:
        return NotImplemented
    ar = as_ours(ar)
    asked = (return_index, return_inverse, return_counts)
    if not any(asked):
        values = ours("unique_values")(ar)
        return values[: _without_nans(values)] if equal_nan else values
    values, index, inverse, counts = ours("unique_all")(ar)
    number = _without_nans(values) if equal_nan else values.shape[0]
    if number < values.shape[0]:
        counts = ours("concat")([counts[: number - 1], ours("sum")(counts[number - 1 :], keepdims=True)])
        values, index, inverse = values[:number], index[:number], ours("minimum")(inverse, number - 1)
    return (values, *(x for x, wanted in zip((index, inverse, counts), asked, strict=True) if wanted))


def _without_nans(values: Array) -> int:
    """How many different values there are if all NaN, which stand last, count as one."""
    if values.dtype.kind in "biu":
        return values.shape[0]
    nans = int(np.count_nonzero(np.isnan(on_host(values, "numpy.unique"))))
    return values.shape[0] - max(0, nans - 1)


# ---- shapes -----------------------------------------------------------------------------------------------------------


def _reshape(a: Any, shape: Any, copy: bool | None = None) -> Result:
    return ours("reshape")(a, shape if isinstance(shape, (tuple, list)) else (shape,), copy=copy)


def _ravel(a: Any) -> Array:
    return flat(a)


def _transpose(a: Any, axes: Sequence[int] | None = None) -> Result:
    a = as_ours(a)
    return ours("permute_dims")(a, tuple(range(a.ndim))[::-1] if axes is None else tuple(axes))


def _swapaxes(a: Any, axis1: int, axis2: int) -> Result:
    axes = list(range(a.ndim))
    axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
    return ours("permute_dims")(a, tuple(axes))


def _squeeze(a: Any, axis: Axes = None) -> Result:
    return ours("squeeze")(a, tuple(i for i, n in enumerate(a.shape) if n == 1) if axis is None else axis)


def _tile(A: Any, reps: Any) -> Result:
    return ours("tile")(as_ours(A), tuple(reps) if isinstance(reps, (tuple, list)) else (reps,))


def _meshgrid(xi: Iterable[Any], copy: bool = True, indexing: str = "xy") -> Result:
    return ours("meshgrid")(*map(as_ours, xi), indexing=indexing)


def _concatenate(
    arrays: Iterable[Any], axis: int | None = 0, dtype: DTypeLike | None = None, casting: Casting = "same_kind"
) -> Result:
    return cast(ours("concat")([as_ours(a) for a in arrays], axis=axis), dtype, casting)


def _stack(
    arrays: Iterable[Any], axis: int = 0, dtype: DTypeLike | None = None, casting: Casting = "same_kind"
) -> Result:
    return cast(ours("stack")([as_ours(a) for a in arrays], axis=axis), dtype, casting)


def cast(x: Any, dtype: DTypeLike | None, casting: Casting) -> Result:
    """The array in a dtype that NumPy's options ask for; NotImplemented where NumPy has an error for it."""
    if dtype is None:
        return x
    return ours("astype")(x, dtype, copy=False) if np.can_cast(x.dtype, dtype, casting) else NotImplemented


# ---- products ---------------------------------------------------------------------------------------------------------


def _dot(a: Any, b: Any) -> Result:
    a, b = as_ours(a), as_ours(b)
    if a.ndim == 0 or b.ndim == 0:
        return ours("multiply")(a, b)
    if b.ndim <= 2:
        return ours("matmul")(a, b)
    return ours("tensordot")(a, b, axes=((-1,), (-2,)))


def _vdot(a: Any, b: Any) -> Result:
    a, b = as_ours(a), as_ours(b)
    if a.ndim == 2 and a.shape == b.shape:  # without a matrix in one dimension, which has no structure
        return ours("sum")(ours("multiply")(ours("conj")(a), b))
    return ours("vecdot")(flat(a), flat(b))


def _inner(a: Any, b: Any) -> Result:
    a, b = as_ours(a), as_ours(b)
    if a.ndim == 0 or b.ndim == 0:
        return ours("multiply")(a, b)
    return ours("tensordot")(a, b, axes=((-1,), (-1,)))


def _outer(a: Any, b: Any) -> Result:
    return ours("linalg.outer")(flat(as_ours(a)), flat(as_ours(b)))


def _cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Result:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = ours("moveaxis")(as_ours(a), axisa, -1), ours("moveaxis")(as_ours(b), axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        return NotImplemented
    return ours("moveaxis")(ours("linalg.cross")(a, b, axis=-1), -1, axisc)


# ---- linear algebra ---------------------------------------------------------------------------------------------------


def _core_axes(a: Any, axis1: int, axis2: int) -> Array:
    """The array with these two axes last."""
    x = as_ours(a)
    if (axis1 % x.ndim, axis2 % x.ndim) == (x.ndim - 2, x.ndim - 1):
        return x
    moved: Array = ours("moveaxis")(x, (axis1, axis2), (-2, -1))
    return moved


def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None) -> Result:
    return ours("linalg.trace")(_core_axes(a, axis1, axis2), offset=offset, dtype=dtype)


def _diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Result:
    return ours("linalg.diagonal")(_core_axes(a, axis1, axis2), offset=offset)


def _norm(x: Any, ord: Any = None, axis: Axes = None, keepdims: bool = False) -> Result:
    x = as_ours(x)
    if axis is None and ord is None:
        return ours("linalg.vector_norm")(x, keepdims=keepdims)
    if axis is None:
        axis = tuple(range(x.ndim))
    axis = axis if isinstance(axis, tuple) else (axis,)
    if len(axis) == 1:
        return ours("linalg.vector_norm")(x, axis=axis[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axis) != 2:
        return NotImplemented
    norm = ours("linalg.matrix_norm")(_core_axes(x, *axis), keepdims=keepdims, ord="fro" if ord is None else ord)
    return ours("moveaxis")(norm, (-2, -1), axis) if keepdims else norm


def _one_triangle(x: Array, lower: bool) -> Array:
    """A dense matrix of which NumPy reads one triangle; a structured one is Hermitian as a whole, or its structure is lost."""
    return ours("Hermitian")(x, lower=lower) if type(x) is Dense else x


def _cholesky(a: Any, upper: bool = False) -> Result:
    a = as_ours(a)
    factor = ours("linalg.cholesky")(_one_triangle(a, not upper), upper=upper)
    return factor.to_dense() if type(a) is Dense else factor


def _eigh(a: Any, UPLO: str = "L") -> Result:
    return ours("linalg.eigh")(_one_triangle(as_ours(a), UPLO.upper() == "L"))


def _eigvalsh(a: Any, UPLO: str = "L") -> Result:
    return ours("linalg.eigvalsh")(_one_triangle(as_ours(a), UPLO.upper() == "L"))


def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Result:
    if not compute_uv:
        return ours("linalg.svdvals")(a)
    return ours("linalg.svd")(a, full_matrices=full_matrices)


def _qr(a: Any, mode: str = "reduced") -> Result:
    if mode in ("reduced", "complete"):
        return ours("linalg.qr")(a, mode=mode)
    return ours("linalg.qr")(a).R if mode == "r" else NotImplemented


def _pinv(a: Any, rcond: Any = None, hermitian: bool = False, rtol: Any = None) -> Result:
    return ours("linalg.pinv")(a, rtol=rcond if rtol is None else rtol)


def _matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, rtol: Any = None) -> Result:
    if as_ours(A).ndim < 2:
        return NotImplemented
    if tol is None:
        return ours("linalg.matrix_rank")(A, rtol=rtol)
    return ours("count_nonzero")(ours("linalg.svdvals")(A) > as_ours(tol)[..., None], axis=-1)


ADAPTERS: dict[str, Callable[..., Result]] = {
    "numpy.all": _truth("all"),
    "numpy.amax": _reduced("max"),
    "numpy.amin": _reduced("min"),
    "numpy.any": _truth("any"),
    "numpy.arange": _arange,
    "numpy.argsort": _argsort,
    "numpy.around": _round,
    "numpy.array": _array,
    "numpy.asanyarray": _asarray,
    "numpy.asarray": _asarray,
    "numpy.ascontiguousarray": _contiguous,
    "numpy.asfortranarray": _contiguous,
    "numpy.astype": _astype,
    "numpy.clip": _clip,
    "numpy.concatenate": _concatenate,
    "numpy.copy": _copy,
    "numpy.cross": _cross,
    "numpy.cumprod": _cumulative("cumulative_prod"),
    "numpy.cumsum": _cumulative("cumulative_sum"),
    "numpy.diagonal": _diagonal,
    "numpy.diff": _diff,
    "numpy.dot": _dot,
    "numpy.empty": _new("empty"),
    "numpy.empty_like": _empty_like,
    "numpy.eye": _eye,
    "numpy.full": _full,
    "numpy.full_like": _full_like,
    "numpy.identity": _identity,
    "numpy.imag": _imag,
    "numpy.inner": _inner,
    "numpy.isin": _isin,
    "numpy.linalg.cholesky": _cholesky,
    "numpy.linalg.eigh": _eigh,
    "numpy.linalg.eigvalsh": _eigvalsh,
    "numpy.linalg.matrix_rank": _matrix_rank,
    "numpy.linalg.norm": _norm,
    "numpy.linalg.pinv": _pinv,
    "numpy.linalg.qr": _qr,
    "numpy.linalg.svd": _svd,
    "numpy.linspace": _linspace,
    "numpy.max": _reduced("max"),
    "numpy.mean": _mean,
    "numpy.meshgrid": _meshgrid,
    "numpy.min": _reduced("min"),
    "numpy.ones": _new("ones"),
    "numpy.ones_like": _like("ones"),
    "numpy.outer": _outer,
    "numpy.prod": _reduced_in("prod"),
    "numpy.ravel": _ravel,
    "numpy.real": _real,
    "numpy.reshape": _reshape,
    "numpy.round": _round,
    "numpy.searchsorted": _searchsorted,
    "numpy.sort": _sort,
    "numpy.squeeze": _squeeze,
    "numpy.stack": _stack,
    "numpy.std": _spread("std"),
    "numpy.sum": _reduced_in("sum"),
    "numpy.swapaxes": _swapaxes,
    "numpy.take": _take,
    "numpy.tile": _tile,
    "numpy.trace": _trace,
    "numpy.transpose": _transpose,
    "numpy.tri": _tri,
    "numpy.unique": _unique,
    "numpy.var": _spread("var"),
    "numpy.vdot": _vdot,
    "numpy.where": _where,
    "numpy.zeros": _new("zeros"),
    "numpy.zeros_like": _like("zeros"),
}
