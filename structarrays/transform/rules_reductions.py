"""Rules of `structured` for reductions, cumulative sums, searching and sorting."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax.lax import Precision

from .._core.array.base import Array
from .._core.dtypes import kind_of
from .._core.jax_internals.equations import parameters
from .rules import array, call, cast, is_special, plain, rule

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from .._core.typing import Result
    from .interpreter import Interpreter


def _reduction(name: str, kinds: str) -> Callable[..., Result]:
    """Return the rule of a reduction by a function of the namespace, for dtypes of these kinds."""

    def run(interpreter: Interpreter, equation: Any, x: Any) -> Result:
        if not isinstance(x, Array) or kind_of(x.dtype) not in kinds:
            return NotImplemented
        axes = tuple(parameters(equation)["axes"])
        if not axes:
            return x
        static = {"dtype": x.dtype} if name in ("sum", "prod") else {}
        if name in ("max", "min") and not all(x.shape[a] for a in axes):
            return NotImplemented
        return call(name, x, axis=axes, **static)

    return run


rule("reduce_sum")(_reduction("sum", "iufc"))
rule("reduce_prod")(_reduction("prod", "iufc"))
rule("reduce_max")(_reduction("max", "iuf"))
rule("reduce_min")(_reduction("min", "iuf"))
rule("reduce_and")(_reduction("all", "b"))
rule("reduce_or")(_reduction("any", "b"))


@rule("argmax", "argmin")
def _argmax_rule(interpreter: Interpreter, equation: Any, x: Any) -> Result:
    if not isinstance(x, Array) or kind_of(x.dtype) not in "iuf" or not x.size:
        return NotImplemented
    (axis,) = parameters(equation)["axes"]
    return cast(call(equation.primitive.name, x, axis=axis), parameters(equation)["index_dtype"])


@rule("cumsum", "cumprod")
def _cumsum_rule(interpreter: Interpreter, equation: Any, x: Any) -> Result:
    axis, reverse = parameters(equation)["axis"], parameters(equation)["reverse"]
    name = "cumulative_sum" if equation.primitive.name == "cumsum" else "cumulative_prod"
    if not isinstance(x, Array) or kind_of(x.dtype) not in "iufc":
        return NotImplemented
    x = array(call("flip", x, axis=axis)) if reverse else x
    result = call(name, x, axis=axis, dtype=x.dtype)
    return call("flip", result, axis=axis) if reverse else result


@rule("sort")
def _sort_rule(interpreter: Interpreter, equation: Any, *values: Any) -> Result:
    p = parameters(equation)
    if len(values) != 1 or p["num_keys"] != 1 or kind_of(values[0].dtype) not in "biuf":
        return NotImplemented
    return [call("sort", values[0], axis=p["dimension"], stable=p["is_stable"])]


# ---- sums of products ------------------------------------------------------------------------------------------------


@rule("dot_general")
def _dot_general_rule(interpreter: Interpreter, equation: Any, x: Any, y: Any) -> Result:
    """Evaluate a product of matrices, of stacks of them, or the sum of all products of elements."""
    with _precision(parameters(equation).get("precision")):
        return _product(equation, x, y)


def _precision(precision: Any) -> AbstractContextManager[Any]:
    """Return a context with the precision of products that the program requests; it matters on accelerators."""
    chosen = {
        p.name.lower()
        for p in (precision if isinstance(precision, tuple) else (precision,))
        if isinstance(p, Precision)
    }
    return jax.default_matmul_precision(chosen.pop()) if len(chosen) == 1 else contextlib.nullcontext()


def _product(equation: Any, x: Any, y: Any) -> Result:
    ((left, right), (left_batch, right_batch)) = parameters(equation)["dimension_numbers"]
    left, right, left_batch, right_batch = (tuple(map(int, axes)) for axes in (left, right, left_batch, right_batch))
    kept = parameters(equation).get("preferred_element_type")
    if not (isinstance(x, Array) or isinstance(y, Array)) or x.dtype.kind == "b" or y.dtype.kind == "b":
        return NotImplemented
    if kept is not None and jnp.promote_types(jnp.promote_types(x.dtype, y.dtype), kept) == kept:
        # Multiply in the wider dtype: products that are cast afterwards may have overflowed.
        x, y = (v if v.dtype == kept else cast(array(v) if is_special(v) else v, kept) for v in (x, y))
    count = len(left_batch)
    if left_batch != tuple(range(count)) or right_batch != tuple(range(count)):
        return NotImplemented
    if count == 0 and {len(left), len(right)} == {2} and (jnp.ndim(x), jnp.ndim(y)) == (2, 2):
        y = y if left[0] - left[1] == right[0] - right[1] else _transposed(y)
        result = call("tensordot", x, y, axes=2)
    elif len(left) == 1 and x.ndim - count <= 2 and y.ndim - count <= 2 and min(x.ndim, y.ndim) > count:
        result = _matrix_product(x, y, left[0] - count, right[0] - count, count)
    elif count == 0 and len(left) == 1:
        result = _with_many_axes(x, y, left[0], right[0])
    else:
        return NotImplemented
    if result is not NotImplemented and kept is not None:
        result = cast(result, kept)
    return result


def _transposed(value: Any) -> Any:
    if isinstance(value, jax.Array):
        return jnp.matrix_transpose(value)
    return array(call("matrix_transpose", value))


def _matrix_product(x: Any, y: Any, left: int, right: int, count: int) -> Result:
    if x.ndim - count == 2 and left == 0:
        x = _transposed(x)
    if y.ndim - count == 2 and right == 1:
        y = _transposed(y)
    if count and x.ndim - count == 1 and y.ndim - count == 1:
        return NotImplemented
    if count and x.ndim - count == 1:  # convert a stack of vectors to a stack of rows, or of columns
        return call("squeeze", array(call("matmul", call("expand_dims", x, axis=-2), y)), axis=-2)
    if count and y.ndim - count == 1:
        return call("squeeze", array(call("matmul", x, call("expand_dims", y, axis=-1))), axis=-1)
    return call("matmul", x, y)


def _with_many_axes(x: Any, y: Any, left: int, right: int) -> Result:
    """Contract one axis of a matrix with one axis of a dense array of more dimensions."""
    product: Any  # a dense array
    if isinstance(x, Array) and not isinstance(y, Array) and x.ndim == 2:
        columns = jnp.moveaxis(plain(y, "dot_general"), right, 0)
        matrix = x if left == 1 else _transposed(x)
        product = array(call("matmul", matrix, columns.reshape(columns.shape[0], -1)))
        return jnp.reshape(product.data, (x.shape[1 - left], *columns.shape[1:]))
    if isinstance(y, Array) and not isinstance(x, Array) and y.ndim == 2:
        rows = jnp.moveaxis(plain(x, "dot_general"), left, -1)
        matrix = y if right == 0 else _transposed(y)
        product = array(call("matmul", rows.reshape(-1, rows.shape[-1]), matrix))
        return jnp.reshape(product.data, (*rows.shape[:-1], y.shape[1 - right]))
    return NotImplemented
