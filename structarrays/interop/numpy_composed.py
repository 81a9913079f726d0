"""NumPy functions outside the Array API standard, composed of standard functions that keep structure.

The parameters have NumPy's names. Functions that would not keep any structure are left to NumPy.
"""

from __future__ import annotations

import operator
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

import structarrays as sa

from .numpy_adapters import joined
from .numpy_host import as_ours, is_traced, on_host
from .numpy_reductions import flat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .._core.array.base import Array
    from .._core.typing import Axes, DTypeLike, Result
    from .numpy_host import Casting


# ---- joining and splitting ----------------------------------------------------------------------------------------------


def _at_least_1d(x: Any) -> Array:
    x = as_ours(x)
    return sa.reshape(x, (1,)) if x.ndim == 0 else x


def _at_least_2d(x: Any) -> Array:
    x = as_ours(x)
    return x if x.ndim >= 2 else sa.expand_dims(_at_least_1d(x), 0)


def _at_least_3d(x: Any) -> Array:
    x = as_ours(x)
    return x if x.ndim >= 3 else sa.expand_dims(_at_least_2d(x), -1)


def _each(function: Callable[[Any], Array], arys: Iterable[Any]) -> Result:
    arrays = tuple(map(function, arys))
    return arrays[0] if len(arrays) == 1 else arrays


def _hstack(tup: Iterable[Any], dtype: DTypeLike | None = None, casting: Casting = "same_kind") -> Result:
    arrays = [_at_least_1d(x) for x in tup]
    return joined(sa.concat, arrays, 0 if arrays[0].ndim == 1 else 1, dtype, casting)


def _column_stack(tup: Iterable[Any]) -> Result:
    arrays = [_at_least_1d(x) for x in tup]
    return sa.concat([sa.expand_dims(x, 1) if x.ndim == 1 else x for x in arrays], axis=1)


def _append(arr: Any, values: Any, axis: int | None = None) -> Result:
    arr, values = as_ours(arr), as_ours(values)
    if axis is None:
        arr, values, axis = flat(arr), flat(values), 0
    return sa.concat([arr, values], axis=axis)


def _block(arrays: Any) -> Result:
    """Implement `numpy.block` for nested lists of matrices."""
    if not isinstance(arrays, list) or not all(isinstance(row, list) for row in arrays):
        return NotImplemented
    if any(isinstance(x, list) for row in arrays for x in row):
        return NotImplemented
    rows = [list(map(as_ours, row)) for row in arrays]
    if any(x.ndim != 2 for row in rows for x in row):
        return NotImplemented
    return sa.concat([sa.concat(row, axis=1) for row in rows], axis=0)


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


def _split_along(axis: int, least: int, ary: Any, indices_or_sections: Any) -> Result:
    ary = as_ours(ary)
    if ary.ndim < least:
        return NotImplemented  # where NumPy raises
    return _split(ary, indices_or_sections, axis if ary.ndim > axis else 0)


# ---- the order of the elements ------------------------------------------------------------------------------------------


def _rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Result:
    m = as_ours(m)
    if len(axes) != 2 or m.ndim < 2 or axes[0] % m.ndim == axes[1] % m.ndim:
        return NotImplemented  # where NumPy raises
    first, second = (range(m.ndim)[axis] for axis in axes)
    order = list(range(m.ndim))
    order[first], order[second] = second, first
    k %= 4
    if k == 0:
        return sa.asarray(m, copy=True)
    if k == 2:
        return sa.flip(m, axis=(first, second))
    if k == 1:
        return sa.permute_dims(sa.flip(m, axis=second), tuple(order))
    return sa.flip(sa.permute_dims(m, tuple(order)), axis=second)


def _rollaxis(a: Any, axis: int, start: int = 0) -> Result:
    if not (-a.ndim <= axis < a.ndim and -a.ndim <= start <= a.ndim):
        return NotImplemented  # where NumPy raises
    axis, start = axis % a.ndim, start + a.ndim if start < 0 else start
    return sa.moveaxis(a, axis, start - 1 if axis < start else start)


# ---- diagonals, products, reductions --------------------------------------------------------------------------------------


def _diag(v: Any, k: int = 0) -> Result:
    v, k = as_ours(v), operator.index(k)
    if v.ndim == 2:
        return sa.linalg.diagonal(v, offset=k)
    if v.ndim != 1:
        return NotImplemented  # where NumPy raises
    n = v.shape[0] + abs(k)
    return sa.Diagonal(v) if k == 0 else sa.Banded((v,), (k,), (n, n))


def _kron(a: Any, b: Any) -> Result:
    a, b = as_ours(a), as_ours(b)
    return sa.Kronecker(a, b) if a.ndim == b.ndim == 2 else NotImplemented


def _multi_dot(arrays: Iterable[Any]) -> Result:
    factors = [as_ours(a) for a in arrays]
    if len(factors) < 2 or any(a.ndim != 2 for a in factors[1:-1]) or not all(1 <= a.ndim <= 2 for a in factors):
        return NotImplemented  # where NumPy raises
    first, last = factors[0], factors[-1]
    lengths = [first.shape[0] if first.ndim == 2 else 1] + [a.shape[0] for a in factors[1:]]
    lengths.append(last.shape[1] if last.ndim == 2 else 1)

    @cache
    def best(i: int, j: int) -> tuple[int, int]:
        """Return the smallest number of multiplications for factors `i` to `j`, and the last factor of the left part.

        See Cormen et al., Introduction to Algorithms, section 15.2.
        """
        if i == j:
            return 0, i
        costs = [best(i, k)[0] + best(k + 1, j)[0] + lengths[i] * lengths[k + 1] * lengths[j + 1] for k in range(i, j)]
        least = min(range(len(costs)), key=costs.__getitem__)
        return costs[least], i + least

    def product(i: int, j: int) -> Array:
        if i == j:
            return factors[i]
        k = best(i, j)[1]
        return sa.matmul(product(i, k), product(k + 1, j))

    return product(0, len(factors) - 1)


def _ptp(a: Any, axis: Axes = None, keepdims: bool = False) -> Result:
    a = as_ours(a)
    return sa.max(a, axis=axis, keepdims=keepdims) - sa.min(a, axis=axis, keepdims=keepdims)


def _argwhere(a: Any) -> Result:
    return sa.stack(sa.nonzero(a), axis=1) if as_ours(a).ndim else NotImplemented


# ---- linear algebra ---------------------------------------------------------------------------------------------------------


def _cond(x: Any, p: Any = None) -> Result:
    x = as_ours(x)
    if x.ndim < 2:
        return NotImplemented
    if p in (None, 2, -2):
        s = sa.linalg.svdvals(x)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return sa.linalg.matrix_norm(x, ord=p) * sa.linalg.matrix_norm(sa.linalg.inv(x), ord=p)


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
    x, residuals, rank, s = sa.linalg.lstsq(a, b, rcond)
    if m > n:
        # NumPy returns no residuals for a rank-deficient matrix, either. A traced rank cannot determine a shape.
        full = is_traced(rank) or int(rank) == n
        residuals = sa.reshape(residuals, (-1,)) if full else sa.zeros(0, dtype=residuals.dtype)
    return x, residuals, rank, s


def _over_two_axes(name: str, a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Result:
    return getattr(sa.fft, name)(a, s=s, axes=axes, norm=norm or "backward")


def _matrix_power(a: Any, n: Any) -> Result:
    """Implement `numpy.linalg.matrix_power`: positive powers of integer matrices are integers, unlike ours."""
    a = as_ours(a)
    if a.dtype.kind not in "iu" or not isinstance(n, (int, np.integer)) or n < 1:
        result = sa.linalg.matrix_power(a, n)
        return sa.astype(result, a.dtype) if n == 0 else result
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        return NotImplemented  # where NumPy raises
    power: Array | None = None
    while n:
        if n & 1:
            power = a if power is None else sa.matmul(power, a)
        n >>= 1
        a = sa.matmul(a, a) if n else a
    return power


ADAPTERS: dict[str, Callable[..., Result]] = {
    "append": _append,
    "argwhere": _argwhere,
    "array_split": _array_split,
    "atleast_1d": partial(_each, _at_least_1d),
    "atleast_2d": partial(_each, _at_least_2d),
    "atleast_3d": partial(_each, _at_least_3d),
    "block": _block,
    "column_stack": _column_stack,
    "diag": _diag,
    "diagflat": lambda v, k=0: _diag(flat(v), k),
    "dsplit": partial(_split_along, 2, 3),
    "dstack": lambda tup: joined(sa.concat, map(_at_least_3d, tup), 2),
    "fft.fft2": partial(_over_two_axes, "fftn"),
    "fft.ifft2": partial(_over_two_axes, "ifftn"),
    "fft.irfft2": partial(_over_two_axes, "irfftn"),
    "fft.rfft2": partial(_over_two_axes, "rfftn"),
    "flatnonzero": lambda a: sa.nonzero(flat(a))[0],
    "fliplr": lambda m: sa.flip(m, axis=1) if m.ndim >= 2 else NotImplemented,
    "flipud": lambda m: sa.flip(m, axis=0) if m.ndim >= 1 else NotImplemented,
    "hsplit": partial(_split_along, 1, 1),
    "hstack": _hstack,
    "kron": _kron,
    "linalg.cond": _cond,
    "linalg.lstsq": _lstsq,
    "linalg.matrix_power": _matrix_power,
    "linalg.multi_dot": _multi_dot,
    "ptp": _ptp,
    "rollaxis": _rollaxis,
    "rot90": _rot90,
    "split": _split,
    "vsplit": partial(_split_along, 0, 2),
    "vstack": lambda tup, dtype=None, casting="same_kind": joined(sa.concat, map(_at_least_2d, tup), 0, dtype, casting),
}
