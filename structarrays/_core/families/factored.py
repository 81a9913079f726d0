"""`Factored`: the second family of structures, composed of arrays instead of entries (docs/design/semantics.md).

The parameters of a factored array are its *parts*: factors or terms, arrays of any structure, each a stack of matrices
with the whole batch shape in front. Such a class is closed under other functions than a class that stores entries:
sums, products, scaling, transposes. It defines the array from its parts (`shape_of`, `dense_data`), and registers
kernels like any other class. Kernels that all factored arrays share are in `factored_functions`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import jax.numpy as jnp
import numpy as np

from ..._numerics.symbolic import smaller
from .. import dtypes
from ..array.base import Array, for_each_matrix
from ..array.dense import Dense
from ..array.operands import cast, dense_if_small, lift
from ..dispatch import late
from ..dispatch.registry import Registry

if TYPE_CHECKING:
    import jax

    from ..typing import DTypeLike, Shape

    T = TypeVar("T")

merge_pair: Registry[Array | None] = Registry("merge_pair")
"""``merge_pair.kernel(A, B)`` registers ``(x, y)``, which returns the sum of two stacks of matrices of one shape as one
array that is not a `Sum`. A kernel serves both orders of A and B. Without a kernel, or if it returns None, they remain
two terms."""

hadamard_pair: Registry[Array | None] = Registry("hadamard_pair")
"""``hadamard_pair.kernel(A, B)`` registers ``(x, y)``, which returns the elementwise product of two factored arrays of
one shape. A kernel serves both orders of A and B. Without a kernel, or if it returns None, the product is dense."""

inner_pair: Registry[jax.Array] = Registry("inner_pair")
"""``inner_pair.kernel(A, B)`` registers ``(x, y, *, axes)``, which returns the sums of ``conj(x) * y`` over core axes
(negative integers) of two stacks of matrices of one shape, as a `jax.Array`."""

squared_norms: Registry[jax.Array] = Registry("squared_norms")
"""``squared_norms.kernel(A)`` registers ``(x, *, axes)``, which returns the sums of ``abs(x)**2`` over core axes as
a `jax.Array`."""

scale: Registry[Array] = Registry("scale")
"""``scale.kernel(A)`` registers ``(x, factor)``, which multiplies each matrix by a scalar. `factor` multiplies a stack
of matrices by the scalar, divides by it, or negates; the kernel applies it to parts of `x` (one factor of a product,
all terms of a sum)."""

select_lines: Registry[Array] = Registry("select_lines")
"""``select_lines.kernel(A)`` registers ``(x, key, axis)``, which selects rows (axis -2) or columns (axis -1) by an item
of a key of `index`, a pair ``(item, operands)``. Index arrays are unchanged; in an eager call they are NumPy arrays."""


class Factored(Array):
    """Base class of arrays that are composed of other arrays: `parts`."""

    __slots__ = ()
    parameter_names: tuple[str, ...] = ("parts[]",)
    linear = False
    static_pattern = False  # a part may be sparse

    @property
    def parts(self) -> tuple[Array, ...]:
        """Arrays of which this array is composed."""
        return self._value[0]

    @property
    def full_size(self) -> bool:  # type: ignore[override]  # a constant in other structures
        """Whether the parts are as large as the dense form, so that densifying does not increase the storage."""
        return not pays(self)

    @property
    def solved_by_parts(self) -> bool:
        """Whether solvers may fail for a regular matrix: true if they may fail for a part."""
        return any(x.solved_by_parts for x in self.parts)

    def map_parameters(self, function: Callable[[Any], Any]) -> Array:
        leaves, (cls, meta, _) = self._value
        return cls.make(tuple(part.map_parameters(function) for part in leaves), meta)

    def with_parts(self, function: Callable[[Array], Array]) -> Array:
        """Map every part and keep the structure."""
        leaves, (cls, meta, _) = self._value
        return cls.make(tuple(map(function, leaves)), meta)

    def cast(self, dtype: DTypeLike) -> Array:
        # Integers wrap around, so that their products differ from products in a wider dtype; and a product that is
        # rounded to integers is no longer a product.
        dtype = np.dtype(dtype)
        if self.dtype.kind in "biu" or dtype.kind in "biu":
            return dense_if_small(self, "astype").cast(dtype)
        if self.dtype.kind == "c" and dtype.kind != "c":
            # The real part of a product is not the product of the real parts.
            return cast(late.real.dispatch(self), dtype)
        return self.with_parts(lambda part: cast(part, dtype))

    def description(self) -> tuple[list[str], bool]:
        return [f"shape={self.shape}"], False


# ---- storage and cost ----------------------------------------------------------------------------------------------


def stored(x: Array) -> int:
    """Return how many numbers an array stores for each matrix of a stack."""
    if isinstance(x, Factored):
        return sum(map(stored, x.parts))
    numbers = 0
    for leaf in x._value[0]:  # a loop, since it calls no function
        if leaf is not None:
            numbers += leaf.size
    return for_each_matrix(numbers, x.shape[:-2])


def pays(*terms: Array) -> bool:
    """Return whether arrays of one shape together store less than their dense form."""
    return smaller(sum(map(stored, terms)), math.prod(terms[0].shape[-2:]))


# ---- parts -----------------------------------------------------------------------------------------------------------


def part(value: Any, argument: str) -> Array:
    """Convert a constructor's argument to a stack of matrices.

    Raises
    ------
    TypeError
        If it is not an array, or boolean.
    ValueError
        If it has fewer than two dimensions.
    """
    try:
        x: Array = value if isinstance(value, Array) else late.asarray(value)
    except TypeError as error:
        raise TypeError(f"{argument} must be an array or convertible with asarray: {error}") from error
    if x.ndim < 2:
        raise ValueError(f"{argument} must be a matrix or a stack of matrices, got shape {x.shape}")
    if x.dtype.kind == "b":
        raise TypeError(f"{argument} must have a numeric dtype, got {x.dtype}")
    return x


def parts_of(values: Sequence[Any], name: str, word: str) -> list[Array]:
    """Convert the arguments of the constructor `name`, each called a `word`, to stacks of matrices.

    Raises
    ------
    TypeError
        If an argument is not an array, or boolean, or if the only argument is a list of matrices.
    ValueError
        If there are no arguments, or an argument has fewer than two dimensions.
    """
    if not values:
        raise ValueError(f"{name} takes at least one {word}, got none")
    if len(values) == 1 and isinstance(values[0], (list, tuple)) and any(getattr(x, "ndim", 0) > 1 for x in values[0]):
        raise TypeError(f"{name} takes each {word} as an argument, {name}(a, b, ...), got a {type(values[0]).__name__}")
    return [part(value, f"{word} {i + 1}") for i, value in enumerate(values)]


def unified(parts: Sequence[Any]) -> tuple[Array, ...]:
    """Convert the parts to a common dtype and a common batch shape.

    Raises
    ------
    ValueError
        If their batch shapes do not broadcast.
    """
    dtype = dtypes.promote(*(x.dtype for x in parts))
    shapes = [x.shape[:-2] for x in parts]
    try:
        batch = jnp.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"the batch shapes must broadcast, got {' and '.join(map(str, shapes))}") from None
    return tuple(with_batch(as_matrix(cast(lift(x), dtype)), batch) for x in parts)


def as_matrix(x: Array) -> Array:
    """Convert to a stack of matrices with at most two core dimensions, so that each parameter has the batch shape."""
    if type(x) is Dense or x.core_ndim == 2:
        return x
    constant = x.constant_over(2)
    if constant is not None:
        from ..._structures.fill.array import Fill

        value = constant.reshape(constant.shape[:-2]) if constant.ndim >= 2 else constant.reshape(())
        return Fill.make((jnp.broadcast_to(value, x.shape[:-2]),), x.shape[-2:])
    return Dense.make((x.dense_data(),))


def with_batch(x: Array, batch: Shape) -> Array:
    """Broadcast a stack of matrices to another batch shape."""
    if x.shape[:-2] == tuple(batch):
        return x
    own = x.ndim - 2
    if isinstance(x, Factored):
        repeated = x.with_parts(lambda each: with_batch(each, batch))
    else:
        repeated = x.map_parameters(lambda leaf: jnp.broadcast_to(leaf, tuple(batch) + leaf.shape[own:]))
    return repeated.assuming(x.assumptions)  # an assumption about a matrix holds for its copies


def common_batch(*arrays: Array) -> list[Array]:
    """Broadcast stacks of matrices to a common batch shape."""
    matrices = list(map(as_matrix, arrays))
    batches = {x.shape[:-2] for x in matrices}
    if len(batches) == 1:
        return matrices
    batch = jnp.broadcast_shapes(*batches)
    return [with_batch(x, batch) for x in matrices]


def line_key(x: Array, item: tuple[Any, ...], axis: int) -> tuple[tuple[Any, ...], ...]:
    """Return the key of `index` for an item that selects rows (axis -2) or columns (axis -1) of each matrix."""
    key: list[tuple[Any, ...]] = [("slice", 0, n, 1) for n in x.shape]
    key[axis] = item
    return tuple(key)


def has_dynamic_parts(x: Array) -> bool:
    """Return whether the pattern of an array, or of a part, is a parameter, as in a `Sparse`."""
    return any(map(has_dynamic_parts, x.parts)) if isinstance(x, Factored) else not x.static_pattern


def in_either_order(registry: Registry[Array | None], x: Array, y: Array) -> Array | None:
    """Call the kernel for two arrays, in the given or in the other order; None if neither kernel returns a result."""
    for pair in ((x, y), (y, x)):
        kernel = registry.choose(pair, {})
        if kernel is not None:
            result = kernel.run(*pair)
            if result is not None:
                return result
    return None


def hadamard(x: Array, y: Array) -> Array | None:
    """Return the elementwise product of two factored arrays of one shape, by `hadamard_pair`; None if it keeps no
    structure.
    """
    return in_either_order(hadamard_pair, *(common_batch(x) * 2 if x is y else common_batch(x, y)))


def chain(function: Callable[[T, T], T], arrays: Sequence[T]) -> T:
    """Reduce arrays with a function of two arrays, from left to right."""
    return functools.reduce(function, arrays)
