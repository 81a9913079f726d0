"""What structures without a kernel of their own leave to their sparse form: parts, reversals, joins, rows that are written.

Every structure that has a `sparse_form` takes part, as long as that form has few entries. The kernels stand at the base class,
so that those of a class itself come first: a slice of a banded array by equal steps is banded.
"""

import numpy as np

from ..core.array import Array
from ..core.batch import concat_pair
from ..core.reductions import reduce_batch
from ..functions.indexing import _core_position, index, take, write_entries, written_entries
from ..functions.manipulation import flip, roll
from ..functions.searching import nonzero_kernels
from .sparse import Sparse
from .sparse_elementwise import _as_sparse, compiled, trimmed
from .sparse_indexing import in_core, joinable, selected
from .sparse_joins import has_sparse_form, to_sparse


def pays(x, *args, **static) -> bool:
    """Whether an array that is not sparse yet has a sparse form, with at most half as many entries as the dense one."""
    if type(x) is Sparse or not has_sparse_form(x):
        return False
    return not x.static_pattern or 2 * sum(e.size for e in x._free().entries) <= x.size


def _is_sparse(x) -> bool:
    return type(x) is Sparse or pays(x)


# ---- parts ------------------------------------------------------------------------------------------------------------


@index.kernel(Array, when=lambda x, *, operands, key: all(k[0] == "slice" for k in key) and pays(x))
def _slices(x, *, operands, key):
    return index.dispatch(to_sparse(x), operands=operands, key=key)


def _has_exact_size(x, operands, *, key) -> bool:
    """Whether the part is a sparse array of a size that is known in an eager call alone."""
    if type(x) is Sparse:
        return True
    core = key[_core_position(key, len(x.batch_shape)) :]
    kernel = index.choose((x,), {"operands": operands, "key": core})
    if kernel is not None and kernel.classes != (Array,):
        return False  # the structure has one of its own
    return pays(x) if _selected_axis(x, operands, key) is not None else kernel is not None and kernel.run is _slices


@index.eager_kernel(Array, tuple, when=_has_exact_size, of_all=True)
def _(x, operands, *, key):
    axis = _selected_axis(x, operands, key)
    if axis is None:
        return trimmed(compiled(index, x, operands, key=key))
    return selected(x if type(x) is Sparse else _as_sparse(x), axis, np.asarray(operands[0]))


def _selected_axis(x, operands, key) -> int | None:
    """The core axis of which a key takes the elements at an index array, if it leaves all the other axes whole."""
    arrays = [axis for axis, k in enumerate(key) if k[0] == "array"]
    if len(key) != x.ndim or len(arrays) != 1 or x.core_ndim < 2 or np.ndim(operands[0]) != 1:
        return None
    whole = all(k == ("slice", 0, n, 1) for k, n in zip(key, x.shape, strict=True) if k[0] != "array")
    axis = arrays[0] - len(x.batch_shape)
    return axis if whole and axis >= 0 else None


@take.eager_kernel(Array, object, of_all=True, when=lambda x, indices, *, axis=None: _is_sparse(x))
def _(x, indices, *, axis=None):
    indices = indices.to_jax() if isinstance(indices, Array) else np.asarray(indices)
    if axis is None or not -x.ndim <= axis < x.ndim or x.shape[axis] == 0 or indices.dtype.kind not in "iu":
        return NotImplemented
    key = tuple(("array",) if i == axis % x.ndim else ("slice", 0, n, 1) for i, n in enumerate(x.shape))
    return index(x, (indices,), key=key)


@nonzero_kernels.kernel(Array, when=lambda x: x.background is None and pays(x))
def _(x):
    x = _as_sparse(x)
    return nonzero_kernels.choose((x,), {}).run(x)


@reduce_batch.kernel(Array, when=pays)
def _(x, *, monoid, axes, keepdims):
    x = to_sparse(x)
    return reduce_batch.choose((x,), {}).run(x, monoid=monoid, axes=axes, keepdims=keepdims)


# ---- reversals and joins ------------------------------------------------------------------------------------------------


@flip.kernel(Array, when=lambda x, *, axis: in_core(x, axis) and pays(x))
def _(x, *, axis):
    return flip.dispatch(to_sparse(x), axis=axis)


@roll.kernel(Array, when=lambda x, *, shift, axis: in_core(x, axis) and pays(x))
def _(x, *, shift, axis):
    return roll.dispatch(to_sparse(x), shift=shift, axis=axis)


def _joins(x, y, *, axis) -> bool:
    return (pays(x) or pays(y)) and _is_sparse(x) and _is_sparse(y) and joinable(x, y, axis=axis)


@concat_pair.kernel(Array, Array, when=_joins)
def _(x, y, *, axis):
    return concat_pair.choose((to_sparse(x), to_sparse(y)), {"axis": axis}).run(to_sparse(x), to_sparse(y), axis=axis)


# ---- writes -------------------------------------------------------------------------------------------------------------


@write_entries.kernel(Array, when=pays)
def _(x, items, value, owned):
    """What a structure cannot hold itself."""
    return written_entries(_as_sparse(x), items, value, False)
