"""Functions of structures without their own kernel through their sparse form: parts, reversals, joins, updates.

They apply to every structure that has a `sparse_form` with few entries. The kernels are registered for the base class,
so that kernels of a specific class precede them: a slice of a banded array by equal steps is banded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..._core.array.base import Array
from ..._core.dispatch.call_arguments import any_traced
from ..._core.families.batch import concat_pair
from ..._core.families.other_forms import by_form
from ..._core.families.reduction_rule import reduce_batch
from ..._functions.index_writes import write_entries, written_entries
from ..._functions.indexing import _core_position, index, take
from ..._functions.manipulation import expand_dims, flip, repeat, reshape, roll, tile
from ..._functions.searching import argmax, argmin, nonzero_kernels
from ..._functions.utility import diff
from ..sparse.array import Sparse
from ..sparse.indexing import box, in_core, is_run_of_lines, joinable, run_of_lines, selected, selected_of_traced
from ..sparse.sparse_joins import compiled_to_sparse, has_sparse_form, to_sparse
from ..sparse.sparse_searching import is_searched
from ..sparse.sparse_shapes import can_reshape, changes_core, new_core_axes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import jax

    from ..._core.array.keys import Item
    from ..._core.dispatch.registry import Kernel
    from ..._core.typing import Result


def pays(x: Array, *args: Array, **static: Any) -> bool:
    """Return whether an array that is not yet sparse has a sparse form with at most half of the entries of the dense
    form.
    """
    if type(x) is Sparse or not has_sparse_form(x):
        return False
    return not x.static_pattern or 2 * sum(e.size for e in x.freed().entries) <= x.size


def _is_sparse(x: Array) -> bool:
    return type(x) is Sparse or pays(x)


# ---- parts ------------------------------------------------------------------------------------------------------------


@index.kernel(
    Array,
    when=lambda x, *, operands, key: {k[0] for k in key} <= {"slice", "new"} and pays(x),
    before="index_array_by_coordinates",
)
def _slices_by_sparse_form(x: Array, *, operands: tuple[jax.Array, ...], key: tuple[tuple[Any, ...], ...]) -> Array:
    result: Array = index.dispatch(to_sparse(x), operands=operands, key=key)
    return result


def _has_exact_size(x: Array, operands: tuple[Any, ...], *, key: tuple[tuple[Any, ...], ...]) -> bool:
    """Return whether the part is a sparse array whose size is known only in an eager call."""
    if type(x) is Sparse:
        return True
    kinds = {k[0] for k in key}
    if "int" in kinds and "array" not in kinds and not x.batch_shape:
        return False  # a row or an element: return early, since loops over rows index like this
    core = key[_core_position(key, len(x.batch_shape)) :]
    kernel = index.choose((x,), {"operands": operands, "key": core})
    if kernel is not None and kernel.classes != (Array,):
        return False  # the structure has its own kernel
    return (
        pays(x)
        if selected_axis(x, operands, key) is not None
        else kernel is not None and kernel.run is _slices_by_sparse_form
    )


@index.eager_kernel(Array, tuple, when=_has_exact_size, of_all=True)
def _index_array_eagerly(x: Array, operands: tuple[Any, ...], *, key: tuple[tuple[Any, ...], ...]) -> Result:
    axis = selected_axis(x, operands, key)
    if axis is None and type(x) is Sparse and is_run_of_lines(x, key):
        return run_of_lines(x, key)
    if axis is None:
        part = box(x, key) if type(x) is Sparse else None
        return NotImplemented if part is None else part
    *integers, places = operands
    batch, core, whole = len(x.batch_shape), list(key[len(x.batch_shape) :]), [("slice", 0, n, 1) for n in x.shape]
    if key[:batch] != tuple(whole[:batch]):
        x = index(x, tuple(integers), key=(*key[:batch], *whole[batch:]))
    x = x if type(x) is Sparse else compiled_to_sparse(x)
    if any_traced((x,)):
        return NotImplemented  # a constant, such as a permutation, whose sparse form is computed inside a compiled function
    x = selected(x, axis, np.ravel(places))
    core[axis] = ("slice", 0, np.size(places), 1)
    rest = (*(("slice", 0, n, 1) for n in x.batch_shape), *core)
    if rest != tuple(("slice", 0, n, 1) for n in x.shape):
        x = index(x, (), key=rest)
    at = len(x.batch_shape) + axis
    return x if np.ndim(places) == 1 else reshape(x, (*x.shape[:at], *np.shape(places), *x.shape[at + 1 :]))


def _has_traced_entries(x: Array, operands: tuple[Any, ...], *, key: tuple[tuple[Any, ...], ...]) -> bool:
    """Return whether a key takes elements of traced entries at constant indices along a core axis, and the others whole."""
    if x.batch_shape or not any_traced((x,)) or any_traced(operands) or selected_axis(x, operands, key) is None:
        return False
    kinds = [k[0] for k in key]
    return (
        kinds.count("slice") == len(kinds) - 1 and np.ndim(operands[0]) == 1 and _has_exact_size(x, operands, key=key)
    )


@index.eager_kernel(Array, tuple, when=_has_traced_entries, always=_has_traced_entries, of_all=True, traced=True)
def _index_traced_entries(x: Array, operands: tuple[Any, ...], *, key: tuple[tuple[Any, ...], ...]) -> Result:
    axis = cast("int", selected_axis(x, operands, key))
    part = selected_of_traced(x if type(x) is Sparse else to_sparse(x), axis, np.asarray(operands[0]))
    if part is None:
        return NotImplemented
    rest = (*key[:axis], ("slice", 0, part.shape[axis], 1), *key[axis + 1 :])
    return part if rest == tuple(("slice", 0, n, 1) for n in part.shape) else index(part, (), key=rest)


def selected_axis(x: Array, operands: tuple[Any, ...], key: tuple[tuple[Any, ...], ...]) -> int | None:
    """The core axis along which a key takes elements at an index array, if it slices the other axis."""
    kinds, batch = [k[0] for k in key], len(x.batch_shape)
    if kinds.count("array") != 1 or "new" in kinds or x.core_ndim < 2 or np.ndim(operands[-1]) < 1:
        return None
    at, others = kinds.index("array"), [i for i, kind in enumerate(kinds) if kind == "int"]
    # Integers of the batch right before it leave its dimensions in place; otherwise NumPy moves them to the front.
    if at < batch or others != list(range(at - len(others), at)):
        return None
    return at - batch if not others or at == batch else None


def _takes_at_constants(x: Array, indices: Any, *, axis: int | None = None) -> bool:
    return _is_sparse(x) and not any_traced((indices,))


@take.eager_kernel(Array, object, of_all=True, when=_takes_at_constants, always=_takes_at_constants, traced=True)
def _take_array_eagerly(x: Array, indices: Any, *, axis: int | None = None) -> Result:
    indices = indices.to_jax() if isinstance(indices, Array) else np.asarray(indices)
    if axis is None or not -x.ndim <= axis < x.ndim or x.shape[axis] == 0 or indices.dtype.kind not in "iu":
        return NotImplemented
    key = tuple(("array",) if i == axis % x.ndim else ("slice", 0, n, 1) for i, n in enumerate(x.shape))
    return index(x, (indices,), key=key)


@nonzero_kernels.kernel(Array, when=lambda x: x.background is None and pays(x))
def _nonzero_kernels_array(x: Array) -> tuple[jax.Array, ...]:
    x = compiled_to_sparse(x)
    return nonzero_kernels.required((x,)).run(x)


# ---- joins --------------------------------------------------------------------------------------------------------------


def _joins(x: Array, y: Array, *, axis: int) -> bool:
    return (pays(x) or pays(y)) and _is_sparse(x) and _is_sparse(y) and joinable(x, y, axis=axis)


@concat_pair.kernel(Array, Array, when=_joins)
def _concat_pair_by_sparse_form(x: Array, y: Array, *, axis: int) -> Array:
    kernel = cast("Kernel[Array]", concat_pair.choose((to_sparse(x), to_sparse(y)), {"axis": axis}))
    return kernel.run(to_sparse(x), to_sparse(y), axis=axis)


# ---- other orders, shapes and sizes -------------------------------------------------------------------------------------


@by_form(flip, of=Array, when=lambda x, *, axis: in_core(x, axis) and pays(x))
@by_form(roll, of=Array, when=lambda x, *, shift, axis: in_core(x, axis) and pays(x))
@by_form(expand_dims, of=Array, when=lambda x, *, axis: pays(x) and new_core_axes(x, axis)[0] != ())
@by_form(reshape, of=Array, when=lambda x, *, shape: pays(x) and changes_core(x, shape) and can_reshape(x, shape=shape))
@by_form(repeat, of=Array, when=lambda x, *, repeats, axis: axis is not None and in_core(x, (axis,)) and pays(x))
@by_form(tile, of=Array, when=lambda x, *, repetitions: pays(x) and any(r != 1 for r in repetitions[-x.core_ndim :]))
@by_form(reduce_batch, of=Array, when=pays)
@by_form(
    argmax, argmin, of=Array, when=lambda x, *, axis, keepdims: pays(x) and is_searched(x, axis=axis, keepdims=keepdims)
)
@by_form(diff, of=Array, when=lambda x, *, axis, n: in_core(x, (axis,)) and pays(x))
def array_by_sparse_form(x: Array) -> Sparse:
    """Apply the kernels of `Sparse` to the sparse form."""
    return to_sparse(x)


# ---- updates ---------------------------------------------------------------------------------------------------------


@write_entries.kernel(Array, when=pays)
def _write_entries_array(x: Array, items: Sequence[Item], value: Any, owned: bool) -> Array | None:
    """Write entries that the structure itself cannot store."""
    return written_entries(compiled_to_sparse(x), items, value, False)
