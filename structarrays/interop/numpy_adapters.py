"""Adapters of NumPy functions whose arguments differ from ours. The parameters have NumPy's names."""

from __future__ import annotations

import operator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import structarrays as sa

from .._core.array.dense import Dense
from .numpy_host import as_ours, cast_to, on_host
from .numpy_reductions import along, flat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .._core.array.base import Array
    from .._core.typing import Axes, DTypeLike, Result
    from .numpy_host import Casting


def joined(
    join: Callable[..., Array],
    arrays: Iterable[Any],
    axis: int | None,
    dtype: DTypeLike | None = None,
    casting: Casting = "same_kind",
) -> Result:
    """Join arrays in the data type that NumPy's options select; NotImplemented where NumPy raises."""
    x = join([as_ours(a) for a in arrays], axis=axis)
    if dtype is None:
        return x
    return sa.astype(x, dtype, copy=False) if np.can_cast(x.dtype, dtype, casting) else NotImplemented


# ---- creation functions: ``like=`` and ``*_like`` --------------------------------------------------------------------


def _array(object: Any, dtype: DTypeLike | None = None, copy: bool = True, ndmin: int = 0) -> Result:
    x = sa.asarray(object, dtype=dtype, copy=True if copy else None)
    return x if x.ndim >= ndmin else sa.reshape(x, (1,) * (ndmin - x.ndim) + x.shape)


def _arange(start_or_stop: Any, stop: Any = None, step: Any = 1, dtype: DTypeLike | None = None) -> Result:
    return sa.arange(start_or_stop, stop, 1 if step is None else step, dtype=dtype)


def _tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = float) -> Result:
    return sa.tril(sa.ones((N, N if M is None else M), dtype=dtype), k=k)


def _full(shape: Any, fill_value: Any, dtype: DTypeLike | None = None) -> Result:
    if np.ndim(fill_value) != 0:
        return sa.asarray(sa.broadcast_to(sa.asarray(fill_value, dtype=dtype), shape), copy=True)
    value = fill_value.item() if isinstance(fill_value, (np.ndarray, np.generic)) else fill_value
    return sa.full(shape, value, dtype=dtype)


def _full_like(a: Any, fill_value: Any, dtype: DTypeLike | None = None, shape: Any = None) -> Result:
    a = as_ours(a)
    shape, dtype = a.shape if shape is None else shape, a.dtype if dtype is None else dtype
    if np.ndim(fill_value) != 0:
        fill_value = sa.astype(as_ours(fill_value), dtype)
    elif type(fill_value) is int and np.dtype(dtype).kind in "iu":
        fill_value = cast_to(fill_value, np.dtype(dtype), "numpy.full_like").item()
    elif isinstance(fill_value, (bool, int, float, complex, np.ndarray, np.generic)):
        fill_value = np.asarray(fill_value).astype(dtype)
    return _full(shape, fill_value, dtype)


def _new(name: str, shape: Any, dtype: DTypeLike | None = None) -> Result:
    return getattr(sa, name)(shape, dtype=dtype)


def _like(name: str, a: Any, dtype: DTypeLike | None = None, shape: Any = None) -> Result:
    if shape is None:
        return getattr(sa, f"{name}_like")(a, dtype=dtype)
    return _new(name, shape, as_ours(a).dtype if dtype is None else dtype)


def _linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: DTypeLike | None = None, axis: int = 0
) -> Result:
    start, stop = as_ours(start), as_ours(stop)
    if start.ndim == stop.ndim == 0:
        return sa.linspace(start, stop, num, endpoint=endpoint, dtype=dtype)
    t = sa.linspace(0.0, 1.0, num, endpoint=endpoint)
    t = sa.reshape(t, (num,) + (1,) * max(start.ndim, stop.ndim))
    result = (1.0 - t) * start + t * stop  # exact at both ends
    return sa.moveaxis(result if dtype is None else sa.astype(result, dtype), 0, axis)


# ---- elements ---------------------------------------------------------------------------------------------------------


def _round(a: Any, decimals: int = 0) -> Result:
    a = as_ours(a)
    if decimals == 0 or (a.dtype.kind in "iu" and decimals > 0):
        return sa.round(a)
    if a.dtype.kind in "biu":
        return NotImplemented
    decimals, largest = operator.index(decimals), _largest_power(a)
    if decimals >= largest:
        return +a  # only subnormal elements are not a multiple of this power of ten
    if decimals > 0:
        return sa.round(a * 10.0**decimals) / 10.0**decimals
    # Two steps: compiled code divides by multiplying with a reciprocal, which must not be subnormal.
    first = 10.0 ** min(-decimals, largest - 1)
    second = 10.0 ** min(-decimals - min(-decimals, largest - 1), largest - 1)
    return sa.round(a / first / second) * second * first


def _largest_power(a: Any) -> int:
    """Return the exponent of the largest power of ten that the data type of an array represents."""
    return int(np.log10(float(sa.finfo(a.dtype).max)))


def _where(condition: Any, x: Any = None, y: Any = None) -> Result:
    condition = as_ours(condition)
    if x is None and y is None:
        return sa.nonzero(condition)
    return sa.where(condition if condition.dtype.kind == "b" else sa.astype(condition, bool), x, y)


def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Result:
    a = as_ours(a)
    ends = {"prepend": prepend, "append": append}
    return sa.diff(a, n=n, axis=axis, **{k: _end(v, a, axis) for k, v in ends.items() if v is not None})


def _end(value: Any, a: Array, axis: int) -> Array:
    """Return `prepend` or `append` of `numpy.diff` as an array; a number becomes an array of length 1."""
    end = as_ours(value)
    if end.ndim != 0:
        return end
    shape = list(a.shape)
    shape[axis] = 1
    return sa.broadcast_to(end, tuple(shape))


def _take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Result:
    a, indices = as_ours(a), as_ours(indices)
    if axis is None:
        a, axis = flat(a), 0
    if mode != "raise":
        n = a.shape[axis]
        indices = sa.clip(indices, 0, n - 1) if mode == "clip" else sa.remainder(indices, n)
    if indices.ndim == 1:
        return sa.take(a, indices, axis=axis)
    taken = sa.take(a, flat(indices), axis=axis)
    axis = range(a.ndim)[axis]
    return sa.reshape(taken, a.shape[:axis] + indices.shape + a.shape[axis + 1 :])


def _unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    equal_nan: bool = True,
) -> Result:
    ar = as_ours(ar)
    asked = (return_index, return_inverse, return_counts)
    if not any(asked):
        values = sa.unique_values(ar)
        return values[: _without_nans(values)] if equal_nan else values
    values, index, inverse, counts = sa.unique_all(ar)
    number = _without_nans(values) if equal_nan else values.shape[0]
    if number < values.shape[0]:
        counts = sa.concat([counts[: number - 1], sa.sum(counts[number - 1 :], keepdims=True)])
        values, index, inverse = values[:number], index[:number], sa.minimum(inverse, number - 1)
    return (values, *(x for x, wanted in zip((index, inverse, counts), asked, strict=True) if wanted))


def _without_nans(values: Array) -> int:
    """Return the number of distinct values if all NaN, which are last, count as one."""
    if values.dtype.kind in "biu":
        return values.shape[0]
    nans = int(np.count_nonzero(np.isnan(on_host(values, "numpy.unique"))))
    return values.shape[0] - max(0, nans - 1)


# ---- shapes and products ----------------------------------------------------------------------------------------------


def _swapaxes(a: Any, axis1: int, axis2: int) -> Result:
    axes = list(range(a.ndim))
    axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
    return sa.permute_dims(a, tuple(axes))


def _dot(a: Any, b: Any) -> Result:
    a, b = as_ours(a), as_ours(b)
    if a.ndim == 0 or b.ndim == 0:
        return sa.multiply(a, b)
    return sa.matmul(a, b) if b.ndim <= 2 else sa.tensordot(a, b, axes=((-1,), (-2,)))


def _vdot(a: Any, b: Any) -> Result:
    a, b = as_ours(a), as_ours(b)
    if a.ndim == 2 and a.shape == b.shape:  # without flattening, which loses the structure
        product = sa.multiply(sa.conj(a), b)
        return sa.sum(product, dtype=product.dtype)
    return sa.vecdot(flat(a), flat(b))


def _inner(a: Any, b: Any) -> Result:
    a, b = as_ours(a), as_ours(b)
    return sa.multiply(a, b) if a.ndim == 0 or b.ndim == 0 else sa.tensordot(a, b, axes=((-1,), (-1,)))


def _cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Result:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = sa.moveaxis(as_ours(a), axisa, -1), sa.moveaxis(as_ours(b), axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        return NotImplemented
    return sa.moveaxis(sa.linalg.cross(a, b, axis=-1), -1, axisc)


# ---- linear algebra ---------------------------------------------------------------------------------------------------


def _core_axes(a: Any, axis1: int, axis2: int) -> Array:
    """Move these two axes to the end."""
    x = as_ours(a)
    if (axis1 % x.ndim, axis2 % x.ndim) == (x.ndim - 2, x.ndim - 1):
        return x
    return sa.moveaxis(x, (axis1, axis2), (-2, -1))


def _norm(x: Any, ord: Any = None, axis: Axes = None, keepdims: bool = False) -> Result:
    x = as_ours(x)
    if axis is None and ord is None:
        return sa.linalg.vector_norm(x, keepdims=keepdims)
    if axis is None:
        axis = tuple(range(x.ndim))
    axis = axis if isinstance(axis, tuple) else (axis,)
    if len(axis) == 1:
        return sa.linalg.vector_norm(x, axis=axis[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axis) != 2:
        return NotImplemented
    norm = sa.linalg.matrix_norm(_core_axes(x, *axis), keepdims=keepdims, ord="fro" if ord is None else ord)
    return sa.moveaxis(norm, (-2, -1), axis) if keepdims else norm


def _one_triangle(a: Any, lower: bool) -> Array:
    """Mirror the triangle that NumPy reads, for a dense matrix; a structured matrix keeps its structure."""
    x = as_ours(a)
    return sa.Hermitian(x, lower=lower) if type(x) is Dense else x


def _cholesky(a: Any, upper: bool = False) -> Result:
    factor = sa.linalg.cholesky(_one_triangle(a, not upper), upper=upper)
    return factor.to_dense() if type(as_ours(a)) is Dense else factor


def _qr(a: Any, mode: str = "reduced") -> Result:
    if mode in ("reduced", "complete"):
        return sa.linalg.qr(a, mode=mode)
    return sa.linalg.qr(a).R if mode == "r" else NotImplemented


def _matrix_rank(A: Any, tol: Any = None, rtol: Any = None) -> Result:
    if as_ours(A).ndim < 2:
        return NotImplemented
    if tol is None:
        return sa.linalg.matrix_rank(A, rtol=rtol)
    return sa.count_nonzero(sa.linalg.svdvals(A) > as_ours(tol)[..., None], axis=-1)


ADAPTERS: dict[str, Callable[..., Result]] = {
    "arange": _arange,
    "argsort": lambda a, axis=-1: along(sa.argsort, a, axis),
    "around": _round,
    "array": _array,
    "asanyarray": lambda a, dtype=None, copy=None: sa.asarray(a, dtype=dtype, copy=copy),
    "asarray": lambda a, dtype=None, copy=None: sa.asarray(a, dtype=dtype, copy=copy),
    "ascontiguousarray": lambda a, dtype=None: sa.asarray(a, dtype=dtype),
    "asfortranarray": lambda a, dtype=None: sa.asarray(a, dtype=dtype),
    "clip": lambda a, a_min=None, a_max=None, min=None, max=None: sa.clip(
        as_ours(a), a_min if min is None else min, a_max if max is None else max
    ),
    "concatenate": lambda arrays, axis=0, dtype=None, casting="same_kind": joined(
        sa.concat, arrays, axis, dtype, casting
    ),
    "copy": lambda a: sa.asarray(a, copy=True),
    "cross": _cross,
    "diagonal": lambda a, offset=0, axis1=0, axis2=1: sa.linalg.diagonal(_core_axes(a, axis1, axis2), offset=offset),
    "diff": _diff,
    "dot": _dot,
    "empty": partial(_new, "empty"),
    "empty_like": lambda prototype, dtype=None, shape=None: _like("empty", prototype, dtype, shape),
    "eye": lambda N, M=None, k=0, dtype=float: sa.eye(N, M, k=k, dtype=dtype),
    "full": _full,
    "full_like": _full_like,
    "identity": lambda n, dtype=None: sa.eye(n, dtype=dtype),
    "imag": lambda val: as_ours(val).imag,
    "inner": _inner,
    "linalg.cholesky": _cholesky,
    "linalg.eigh": lambda a, UPLO="L": sa.linalg.eigh(_one_triangle(a, UPLO.upper() == "L")),
    "linalg.eigvalsh": lambda a, UPLO="L": sa.linalg.eigvalsh(_one_triangle(a, UPLO.upper() == "L")),
    "linalg.matrix_rank": _matrix_rank,
    "linalg.norm": _norm,
    "linalg.qr": _qr,
    "linalg.svd": lambda a, full_matrices=True, compute_uv=True: (
        sa.linalg.svd(a, full_matrices=full_matrices) if compute_uv else sa.linalg.svdvals(a)
    ),
    "linspace": _linspace,
    "meshgrid": lambda xi, copy=True, indexing="xy": sa.meshgrid(*map(as_ours, xi), indexing=indexing),
    "ones": partial(_new, "ones"),
    "ones_like": partial(_like, "ones"),
    "outer": lambda a, b: sa.linalg.outer(flat(a), flat(b)),
    "ravel": flat,
    "real": lambda val: as_ours(val).real,
    "reshape": lambda a, shape, copy=None: sa.reshape(
        a, shape if isinstance(shape, (tuple, list)) else (shape,), copy=copy
    ),
    "round": _round,
    "sort": lambda a, axis=-1: along(sa.sort, a, axis),
    "squeeze": lambda a, axis=None: sa.squeeze(
        a, tuple(i for i, n in enumerate(a.shape) if n == 1) if axis is None else axis
    ),
    "stack": lambda arrays, axis=0, dtype=None, casting="same_kind": joined(sa.stack, arrays, axis, dtype, casting),
    "swapaxes": _swapaxes,
    "take": _take,
    "tile": lambda A, reps: sa.tile(as_ours(A), tuple(reps) if isinstance(reps, (tuple, list)) else (reps,)),
    "trace": lambda a, offset=0, axis1=0, axis2=1, dtype=None: sa.linalg.trace(
        _core_axes(a, axis1, axis2), offset=offset, dtype=dtype
    ),
    "transpose": lambda a, axes=None: sa.permute_dims(a, tuple(range(a.ndim))[::-1] if axes is None else tuple(axes)),
    "tri": _tri,
    "unique": _unique,
    "vdot": _vdot,
    "where": _where,
    "zeros": partial(_new, "zeros"),
    "zeros_like": partial(_like, "zeros"),
}
