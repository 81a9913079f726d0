"""Which function of ours stands for which of NumPy's, and how NumPy's arguments become ours.

Most differ from ours by the name, or by arguments that ours take by keyword: `_COUNTERPARTS` lists them. The
others have an adapter here. Whatever an adapter does not know (an option of NumPy's, another meaning of ``axis=None``)
makes it return ``NotImplemented``: then the arrays are converted, and NumPy computes.
"""

import functools
import inspect
import math
import operator
import sys

import jax
import numpy as np

from ..core import dtypes
from ..core.array import Array

# ---- questions that need no elements --------------------------------------------------------------------------------


def answer(name: str, args, kwargs):
    """The answer to a question about shape or dtype; NotImplemented for any other function."""
    question = _QUESTIONS.get(name)
    return NotImplemented if question is None else question(*args, **kwargs)


def _size(a, axis=None):
    if axis is None:
        return a.size
    return math.prod(a.shape[i] for i in (axis if isinstance(axis, tuple) else (axis,)))


def _can_cast(from_, to, casting="safe"):
    return np.can_cast(_as_dtype(from_), _as_dtype(to), casting)


def _as_dtype(value):
    return value.dtype if isinstance(value, (Array, jax.Array, dtypes.DType)) else value


_QUESTIONS = {
    "numpy.shape": lambda a: a.shape,
    "numpy.ndim": lambda a: a.ndim,
    "numpy.size": _size,
    "numpy.result_type": lambda *arrays: np.result_type(*map(_as_dtype, arrays)),
    "numpy.can_cast": _can_cast,
    "numpy.min_scalar_type": lambda a: a.dtype,
    "numpy.common_type": lambda *arrays: np.result_type(np.float16, *map(_as_dtype, arrays)).type,
    "numpy.iscomplexobj": lambda x: x.dtype.kind == "c",
    "numpy.isrealobj": lambda x: x.dtype.kind != "c",
    "numpy.may_share_memory": lambda a, b, max_work=None: False,
    "numpy.shares_memory": lambda a, b, max_work=None: False,
}

# ---- functions that are ours by another name ------------------------------------------------------------------------

_SAME = (
    "all", "any", "argmax", "argmin", "broadcast_arrays", "broadcast_to", "count_nonzero", "cumulative_prod",
    "cumulative_sum", "diff", "empty_like", "expand_dims", "flip", "full_like", "imag", "isin", "matrix_transpose",
    "max", "mean", "min", "moveaxis", "nonzero", "ones_like", "prod", "real", "repeat", "roll", "searchsorted",
    "stack", "sum", "take_along_axis", "tensordot", "tril", "triu", "unique_all", "unique_counts", "unique_inverse",
    "unique_values", "unstack", "zeros_like",
)  # fmt: skip
_LINALG = (
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matrix_norm", "matrix_power",
    "matrix_rank", "outer", "pinv", "qr", "slogdet", "solve", "svdvals", "trace", "vector_norm",
)  # fmt: skip
_FFT = ("fft", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftn")

_COUNTERPARTS = (
    {f"numpy.{name}": name for name in _SAME}
    | {f"numpy.linalg.{name}": f"linalg.{name}" for name in _LINALG}
    | {f"numpy.linalg.{name}": name for name in ("matmul", "matrix_transpose", "tensordot", "vecdot")}
    | {f"numpy.fft.{name}": f"fft.{name}" for name in _FFT}
    | {"numpy.amax": "max", "numpy.amin": "min", "numpy.concatenate": "concat"}
)


def counterpart(function, name: str, args, kwargs):
    """The result of our function for a call of NumPy's; NotImplemented if there is none, or the arguments do not fit."""
    adapter = _ADAPTERS.get(name)
    try:
        given = _given(function, args, kwargs)
    except (TypeError, ValueError):
        return NotImplemented  # NumPy has the right words for it
    if adapter is not None:
        try:
            bound = inspect.signature(adapter).bind(**given)
        except TypeError:
            return NotImplemented  # an option that the adapter does not know
        return adapter(*bound.args, **bound.kwargs)
    return _transfer(_f(_COUNTERPARTS[name]), given) if name in _COUNTERPARTS else NotImplemented


@functools.cache
def _signature(function):
    return inspect.signature(function)


def _given(function, args, kwargs) -> dict:
    """The arguments of the call by their names in NumPy, without those that only repeat the default."""
    signature = _signature(function)
    bound = signature.bind(*args, **kwargs).arguments
    given = {}
    for key, value in bound.items():
        default = signature.parameters[key].default
        if isinstance(value, Array) or not (value is default or (_plain(value) and value == default)):
            given[key] = value
    return given


def _plain(value) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def _transfer(ours, given):
    """Call ours: NumPy's first arguments become our positional ones, the others go by name."""
    parameters = list(_signature(ours).parameters.values())
    positional = [p for p in parameters if p.kind is p.POSITIONAL_ONLY]
    variadic = [p for p in parameters if p.kind is p.VAR_POSITIONAL]
    names = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    given = dict(given)
    if variadic:
        args = [_array(v) for v in given.pop(next(iter(given)), ())]
    else:
        # NumPy takes lists for arrays everywhere.
        known = getattr(ours, "arrays", ())
        args = []
        for parameter in positional:
            key = next(iter(given), None)
            if key is None or key in names:
                break
            value = given.pop(key)
            if isinstance(value, (list, tuple)) and parameter.name in known:
                value = _array(value)
            elif isinstance(value, (list, tuple)) and f"*{parameter.name}" in known:
                value = [_array(v) for v in value]
            args.append(value)
    if set(given) - names:
        return NotImplemented
    return ours(*args, **given)


# ---- adapters: parameters have NumPy's names -------------------------------------------------------------------------


def _f(name: str):
    """The function of the namespace; those that are no `Function` are there, too."""
    return operator.attrgetter(name)(sys.modules["structarrays"])


def _array(x) -> Array:
    return x if isinstance(x, Array) else _f("asarray")(x)


def _flat(x):
    return _f("reshape")(x, (-1,))


def _reshape(a, shape, copy=None):
    return _f("reshape")(a, shape if isinstance(shape, (tuple, list)) else (shape,), copy=copy)


def _transpose(a, axes=None):
    a = _array(a)
    return _f("permute_dims")(a, tuple(range(a.ndim))[::-1] if axes is None else tuple(axes))


def _swapaxes(a, axis1, axis2):
    axes = list(range(a.ndim))
    axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
    return _f("permute_dims")(a, tuple(axes))


def _squeeze(a, axis=None):
    return _f("squeeze")(a, tuple(i for i, n in enumerate(a.shape) if n == 1) if axis is None else axis)


def _where(condition, x=None, y=None):
    condition = _array(condition)
    if x is None and y is None:
        return _f("nonzero")(condition)
    if condition.dtype.kind != "b":
        condition = _f("astype")(condition, bool)
    return _f("where")(condition, x, y)


def _clip(a, a_min=None, a_max=None, min=None, max=None):
    low, high = a_min if min is None else min, a_max if max is None else max
    return _f("clip")(a, low, high)


def _take(a, indices, axis=None):
    a, indices = _array(a), _array(indices)
    if axis is None:
        a, axis = _flat(a), 0
    if indices.ndim != 1:
        return NotImplemented
    return _f("take")(a, indices, axis=axis)


def _sort(a, axis=-1, kind=None, stable=True):
    return _f("sort")(_flat(a), axis=-1) if axis is None else _f("sort")(a, axis=axis)


def _argsort(a, axis=-1, kind=None, stable=True):
    return _f("argsort")(_flat(a), axis=-1) if axis is None else _f("argsort")(a, axis=axis)


def _cumulative(name):
    def adapter(a, axis=None, dtype=None):
        return _f(name)(_flat(a), axis=0, dtype=dtype) if axis is None else _f(name)(a, axis=axis, dtype=dtype)

    return adapter


def _spread(name):
    def adapter(a, axis=None, ddof=0, correction=None, keepdims=False):
        return _f(name)(a, axis=axis, correction=ddof if correction is None else correction, keepdims=keepdims)

    return adapter


def _tile(A, reps):
    return _f("tile")(_array(A), tuple(reps) if isinstance(reps, (tuple, list)) else (reps,))


def _dot(a, b):
    a, b = _array(a), _array(b)
    if a.ndim == 0 or b.ndim == 0:
        return _f("multiply")(a, b)
    if b.ndim <= 2:
        return _f("matmul")(a, b)
    return _f("tensordot")(a, b, axes=((-1,), (-2,)))


def _vdot(a, b):
    return _f("vecdot")(_flat(_array(a)), _flat(_array(b)))


def _inner(a, b):
    a, b = _array(a), _array(b)
    if a.ndim == 0 or b.ndim == 0:
        return _f("multiply")(a, b)
    return _f("tensordot")(a, b, axes=((-1,), (-1,)))


def _outer(a, b):
    return _f("linalg.outer")(_flat(_array(a)), _flat(_array(b)))


def _core_axes(a, axis1, axis2):
    """The array with these two axes last."""
    a = _array(a)
    if (axis1 % a.ndim, axis2 % a.ndim) == (a.ndim - 2, a.ndim - 1):
        return a
    return _f("moveaxis")(a, (axis1, axis2), (-2, -1))


def _trace(a, offset=0, axis1=0, axis2=1, dtype=None):
    return _f("linalg.trace")(_core_axes(a, axis1, axis2), offset=offset, dtype=dtype)


def _diagonal(a, offset=0, axis1=0, axis2=1):
    return _f("linalg.diagonal")(_core_axes(a, axis1, axis2), offset=offset)


def _norm(x, ord=None, axis=None, keepdims=False):
    x = _array(x)
    if axis is None and ord is None:
        return _f("linalg.vector_norm")(x, keepdims=keepdims)
    if axis is None:
        axis = tuple(range(x.ndim))
    axis = axis if isinstance(axis, tuple) else (axis,)
    if len(axis) == 1:
        return _f("linalg.vector_norm")(x, axis=axis[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axis) != 2 or tuple(i % x.ndim for i in axis) != (x.ndim - 2, x.ndim - 1):
        return NotImplemented
    return _f("linalg.matrix_norm")(x, keepdims=keepdims, ord="fro" if ord is None else ord)


def _svd(a, full_matrices=True, compute_uv=True):
    if not compute_uv:
        return _f("linalg.svdvals")(a)
    return _f("linalg.svd")(a, full_matrices=full_matrices)


def _copy(a):
    return _f("asarray")(a, copy=True)


def _round(a):
    return _f("round")(a)


def _meshgrid(xi, indexing="xy"):
    return _f("meshgrid")(*map(_array, xi), indexing=indexing)


def _ravel(a):
    return _flat(a)


_ADAPTERS = {
    "numpy.argsort": _argsort,
    "numpy.around": _round,
    "numpy.clip": _clip,
    "numpy.copy": _copy,
    "numpy.cumprod": _cumulative("cumulative_prod"),
    "numpy.cumsum": _cumulative("cumulative_sum"),
    "numpy.diagonal": _diagonal,
    "numpy.dot": _dot,
    "numpy.inner": _inner,
    "numpy.linalg.norm": _norm,
    "numpy.linalg.svd": _svd,
    "numpy.meshgrid": _meshgrid,
    "numpy.outer": _outer,
    "numpy.ravel": _ravel,
    "numpy.reshape": _reshape,
    "numpy.round": _round,
    "numpy.sort": _sort,
    "numpy.squeeze": _squeeze,
    "numpy.std": _spread("std"),
    "numpy.swapaxes": _swapaxes,
    "numpy.take": _take,
    "numpy.tile": _tile,
    "numpy.trace": _trace,
    "numpy.transpose": _transpose,
    "numpy.var": _spread("var"),
    "numpy.vdot": _vdot,
    "numpy.where": _where,
}
