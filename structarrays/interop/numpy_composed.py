"""Functions of NumPy that the standard lacks, but that are made of functions which it has, so that structure is kept.

The parameters have NumPy's names. What would gain nothing by it is left to NumPy.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from .numpy_adapters import cast, flat
from .numpy_host import as_ours, is_traced, on_host, ours

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .._core.array.base import Array
    from .._core.typing import Axes, DTypeLike, Result
    from .numpy_host import Casting


# ---- joining and splitting ----------------------------------------------------------------------------------------------


def _atleast(ndim: int) -> Callable[..., Result]:
    def adapter(arys: Iterable[Any]) -> Result:
        arrays = tuple(map(at_least[ndim], map(as_ours, arys)))
        return arrays[0] if len(arrays) == 1 else arrays

    return adapter


def _at_least_1d(x: Array) -> Array:
    return ours("reshape")(x, (1,)) if x.ndim == 0 else x


def _at_least_2d(x: Array) -> Array:
    return x if x.ndim >= 2 else ours("expand_dims")(_at_least_1d(x), 0)


def _at_least_3d(x: Array) -> Array:
    return x if x.ndim >= 3 else ours("expand_dims")(_at_least_2d(x), -1)


at_least = {1: _at_least_1d, 2: _at_least_2d, 3: _at_least_3d}


def _hstack(tup: Iterable[Any], dtype: DTypeLike | None = None, casting: Casting = "same_kind") -> Result:
    arrays = [_at_least_1d(as_ours(x)) for x in tup]
    return cast(ours("concat")(arrays, axis=0 if arrays[0].ndim == 1 else 1), dtype, casting)


def _vstack(tup: Iterable[Any], dtype: DTypeLike | None = None, casting: Casting = "same_kind") -> Result:
    return cast(ours("concat")([_at_least_2d(as_ours(x)) for x in tup], axis=0), dtype, casting)


def _dstack(tup: Iterable[Any]) -> Result:
    return ours("concat")([_at_least_3d(as_ours(x)) for x in tup], axis=2)


def _column_stack(tup: Iterable[Any]) -> Result:
    arrays = [_at_least_1d(as_ours(x)) for x in tup]
    return ours("concat")([ours("expand_dims")(x, 1) if x.ndim == 1 else x for x in arrays], axis=1)


def _append(arr: Any, values: Any, axis: int | None = None) -> Result:
    arr, values = as_ours(arr), as_ours(values)
    if axis is None:
        arr, values, axis = flat(arr), flat(values), 0
    return ours("concat")([arr, values], axis=axis)


def _block(arrays: Any) -> Result:
    """Of matrices, in lists of rows."""
    if not isinstance(arrays, list) or not all(isinstance(row, list) for row in arrays):
        return NotImplemented
    rows = [[as_ours(x) if not isinstance(x, list) else None for x in row] for row in arrays]
    if any(x is None or x.ndim != 2 for row in rows for x in row):
        return NotImplemented
    return ours("concat")([ours("concat")(row, axis=1) for row in rows], axis=0)


def _array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Result:
    ary = as_ours(ary)
    axis = range(ary.ndim)[axis]
    n = ary.shape[axis]
    if np.ndim(indices_or_sections) == 0:
        sections = operator.index(indices_or_sections)
        if sections <= 0:
            return NotImplemented  # where NumPy raises
        each, extra = divmod(n, sections)
        bounds = np.cumsum([0] + [each + 1] * extra + [each] * (sections - extra)).tolist()
    else:
        bounds = [0, *map(operator.index, on_host(list(indices_or_sections), "numpy.split")), n]
    before = (slice(None),) * axis
    return [ary[(*before, slice(a, b), ...)] for a, b in zip(bounds[:-1], bounds[1:], strict=True)]


def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Result:
    if np.ndim(indices_or_sections) == 0 and as_ours(ary).shape[axis] % operator.index(indices_or_sections):
        return NotImplemented  # where NumPy raises
    return _array_split(ary, indices_or_sections, axis)


def _split_along(axis: int, least: int) -> Callable[..., Result]:
    def adapter(ary: Any, indices_or_sections: Any) -> Result:
        ary = as_ours(ary)
        if ary.ndim < least:
            return NotImplemented  # where NumPy raises
        return _split(ary, indices_or_sections, axis if ary.ndim > axis else 0)

    return adapter


# ---- the order of the elements ------------------------------------------------------------------------------------------


def _fliplr(m: Any) -> Result:
    return ours("flip")(m, axis=1) if m.ndim >= 2 else NotImplemented


def _flipud(m: Any) -> Result:
    return ours("flip")(m, axis=0) if m.ndim >= 1 else NotImplemented


def _rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Result:
    m = as_ours(m)
    if len(axes) != 2 or m.ndim < 2 or axes[0] % m.ndim == axes[1] % m.ndim:
        return NotImplemented  # where NumPy raises
    first, second = (range(m.ndim)[axis] for axis in axes)
    order = list(range(m.ndim))
    order[first], order[second] = second, first
    k %= 4
    if k == 0:
        return ours("asarray")(m, copy=True)
    if k == 2:
        return ours("flip")(m, axis=(first, second))
    if k == 1:
        return ours("permute_dims")(ours("flip")(m, axis=second), tuple(order))
    return ours("flip")(ours("permute_dims")(m, tuple(order)), axis=second)


def _rollaxis(a: Any, axis: int, start: int = 0) -> Result:
    if not (-a.ndim <= axis < a.ndim and -a.ndim <= start <= a.ndim):
        return NotImplemented  # where NumPy raises
    axis, start = axis % a.ndim, start + a.ndim if start < 0 else start
    return ours("moveaxis")(a, axis, start - 1 if axis < start else start)


# ---- diagonals, products, reductions --------------------------------------------------------------------------------------


def _diag(v: Any, k: int = 0) -> Result:
    v, k = as_ours(v), operator.index(k)
    if v.ndim == 2:
        return ours("linalg.diagonal")(v, offset=k)
    if v.ndim != 1:
        return NotImplemented  # where NumPy raises
    n = v.shape[0] + abs(k)
    return ours("Diagonal")(v) if k == 0 else ours("Banded")((v,), (k,), (n, n))


def _diagflat(v: Any, k: int = 0) -> Result:
    return _diag(flat(as_ours(v)), k)


def _kron(a: Any, b: Any) -> Result:
    a, b = as_ours(a), as_ours(b)
    return ours("Kronecker")(a, b) if a.ndim == b.ndim == 2 else NotImplemented


def _multi_dot(arrays: Iterable[Any]) -> Result:
    factors = [as_ours(a) for a in arrays]
    if len(factors) < 2 or any(a.ndim != 2 for a in factors[1:-1]) or not all(1 <= a.ndim <= 2 for a in factors):
        return NotImplemented  # where NumPy raises
    first, last = factors[0], factors[-1]
    lengths = [first.shape[0] if first.ndim == 2 else 1] + [a.shape[0] for a in factors[1:]]
    lengths.append(last.shape[1] if last.ndim == 2 else 1)

    @functools.cache
    def best(i: int, j: int) -> tuple[int, int]:
        """The least number of multiplications for the factors `i` to `j`, and behind which to split them (Cormen et al., 15.2)."""
        if i == j:
            return 0, i
        costs = [best(i, k)[0] + best(k + 1, j)[0] + lengths[i] * lengths[k + 1] * lengths[j + 1] for k in range(i, j)]
        least = min(range(len(costs)), key=costs.__getitem__)
        return costs[least], i + least

    def product(i: int, j: int) -> Array:
        if i == j:
            return factors[i]
        k = best(i, j)[1]
        result: Array = ours("matmul")(product(i, k), product(k + 1, j))
        return result

    return product(0, len(factors) - 1)


def _ptp(a: Any, axis: Axes = None, keepdims: bool = False) -> Result:
    a = as_ours(a)
    return ours("max")(a, axis=axis, keepdims=keepdims) - ours("min")(a, axis=axis, keepdims=keepdims)


def _flatnonzero(a: Any) -> Result:
    return ours("nonzero")(flat(as_ours(a)))[0]


def _argwhere(a: Any) -> Result:
    a = as_ours(a)
    return ours("stack")(ours("nonzero")(a), axis=1) if a.ndim else NotImplemented


# ---- linear algebra ---------------------------------------------------------------------------------------------------------


def _cond(x: Any, p: Any = None) -> Result:
    x = as_ours(x)
    if x.ndim < 2:
        return NotImplemented
    if p in (None, 2, -2):
        s = ours("linalg.svdvals")(x)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return ours("linalg.matrix_norm")(x, ord=p) * ours("linalg.matrix_norm")(ours("linalg.inv")(x), ord=p)


def _lstsq(a: Any, b: Any, rcond: Any = None) -> Result:
    a, b = as_ours(a), as_ours(b)
    if a.ndim != 2 or not 1 <= b.ndim <= 2:
        return NotImplemented
    m, n = a.shape
    dtype = np.result_type(a.dtype, b.dtype, np.float32)
    if rcond is None:
        rcond = float(np.finfo(dtype).eps) * max(m, n)
    elif rcond < 0:
        rcond = float(np.finfo(dtype).eps)
    x, residuals, rank, s = ours("linalg.lstsq")(a, b, rcond)
    if m > n:
        # NumPy has none where the rank is not full, either; while it is being traced, a shape cannot depend on that.
        full = is_traced(rank) or int(rank) == n
        residuals = ours("reshape")(residuals, (-1,)) if full else ours("zeros")(0, dtype=residuals.dtype)
    return x, residuals, rank, s


def _over_two_axes(name: str) -> Callable[..., Result]:
    def adapter(
        a: Any, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
    ) -> Result:
        return ours(name)(a, s=s, axes=axes, norm=norm or "backward")

    return adapter


def _matrix_power(a: Any, n: Any) -> Result:
    """Unlike ours, those of integers are integers, but for inverses."""
    a = as_ours(a)
    if a.dtype.kind not in "iu" or not isinstance(n, (int, np.integer)) or n < 1:
        power = ours("linalg.matrix_power")(a, n)
        return ours("astype")(power, a.dtype) if n == 0 else power
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        return NotImplemented  # where NumPy raises
    power, matmul = None, ours("matmul")
    while n:
        if n & 1:
            power = a if power is None else matmul(power, a)
        n >>= 1
        a = matmul(a, a) if n else a
    return power


ADAPTERS: dict[str, Callable[..., Result]] = {
    "numpy.append": _append,
    "numpy.argwhere": _argwhere,
    "numpy.array_split": _array_split,
    "numpy.atleast_1d": _atleast(1),
    "numpy.atleast_2d": _atleast(2),
    "numpy.atleast_3d": _atleast(3),
    "numpy.block": _block,
    "numpy.column_stack": _column_stack,
    "numpy.diag": _diag,
    "numpy.diagflat": _diagflat,
    "numpy.dsplit": _split_along(2, 3),
    "numpy.dstack": _dstack,
    "numpy.fft.fft2": _over_two_axes("fft.fftn"),
    "numpy.fft.ifft2": _over_two_axes("fft.ifftn"),
    "numpy.fft.irfft2": _over_two_axes("fft.irfftn"),
    "numpy.fft.rfft2": _over_two_axes("fft.rfftn"),
    "numpy.flatnonzero": _flatnonzero,
    "numpy.fliplr": _fliplr,
    "numpy.flipud": _flipud,
    "numpy.hsplit": _split_along(1, 1),
    "numpy.hstack": _hstack,
    "numpy.kron": _kron,
    "numpy.linalg.cond": _cond,
    "numpy.linalg.lstsq": _lstsq,
    "numpy.linalg.matrix_power": _matrix_power,
    "numpy.linalg.multi_dot": _multi_dot,
    "numpy.ptp": _ptp,
    "numpy.rollaxis": _rollaxis,
    "numpy.rot90": _rot90,
    "numpy.split": _split,
    "numpy.vsplit": _split_along(0, 2),
    "numpy.vstack": _vstack,
}
