"""`apply_updates`: a step of an optimizer for pytrees of structured arrays (docs/how_to/optimize.md)."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from .._core.array.base import Array, is_array
from .._core.array.dense import Dense
from .._core.array.flattening import Constant, Variable, all_parameters, parameter_names, unflatten

if TYPE_CHECKING:
    from .._core.typing import Aux

P = TypeVar("P")

_ARRAYS = (jax.Array, np.ndarray, np.generic, bool, int, float, complex)


def apply_updates(params: P, updates: Any) -> P:
    """Add updates to parameters.

    Parameters
    ----------
    params : pytree of array
        Structured arrays, JAX arrays, NumPy arrays and Python numbers.
    updates : pytree of array
        One update for each array, of the same structure, such as optax returns. An update that is None stands for an array or
        a pytree without updates.

    Returns
    -------
    pytree of array
        The new parameters, with the structure and the data types of `params`.

    Raises
    ------
    ValueError
        If the trees differ, or if an update differs from its array in structure, pattern or shape. The message names the path.
    TypeError
        If an update is not an array, or is complex and its array is real.

    See Also
    --------
    grad, optax.apply_updates, equinox.apply_updates

    Notes
    -----
    The function adds the parameters of the structured arrays, which need not be linear in them: ``A + updates`` would be wrong
    for a `LowRank`, and raises if `updates` comes from `grad`. No array becomes dense.

    Integers, booleans, indices and other constants do not change, whatever their update is: they have no derivative.

    An array that changes loses its assumptions, as with every write: a step from a positive definite matrix may lead to a
    matrix that is neither definite nor symmetric. Call `assume` in the function that you differentiate.

    Examples
    --------
    >>> import jax
    >>> import structarrays as sa
    >>> A = sa.LowRank([[1.0], [2.0]], [[3.0], [4.0]])
    >>> gradient = sa.grad(lambda A: sa.sum(A**2))(A)
    >>> A = sa.apply_updates(A, jax.tree.map(lambda g: -0.01 * g, gradient))
    >>> A.u
    Dense([[0.5],
           [1. ]], dtype=float64)
    """
    tree: Any  # JAX's annotations lack its methods
    given, tree = jax.tree_util.tree_flatten_with_path(updates, is_leaf=_is_leaf)
    try:
        values = tree.flatten_up_to(params)
    except ValueError:
        raise ValueError(_how_trees_differ(params, updates)) from None
    new = [
        _updated(f"updates{jax.tree_util.keystr(path)}", value, update)
        for value, (path, update) in zip(values, given, strict=True)
    ]
    return cast("P", jax.tree.unflatten(tree, new))


def _is_leaf(x: Any) -> bool:
    return x is None or is_array(x)


def _has_no_update(update: Any) -> bool:
    """Return whether an update is missing, or the derivative of JAX with respect to integers."""
    return update is None or getattr(update, "dtype", None) == jax.dtypes.float0


def _updated(name: str, value: Any, update: Any) -> Any:
    """Return a parameter, or a pytree without updates, after its update."""
    if _has_no_update(update):
        return jax.tree.map(lambda x: copy.copy(x) if is_array(x) else x, value, is_leaf=is_array)
    if _is_structured(value) or _is_structured(update):
        return _updated_array(name, value, update)
    data, step = (x.data if isinstance(x, Dense) else x for x in (value, update))
    if _has_no_update(step):
        return copy.copy(value)
    data = _added(name, data, step)
    return Dense.make((data,)) if isinstance(value, Dense) else data


def _is_structured(x: Any) -> bool:
    return isinstance(x, Array) and type(x) is not Dense


def _updated_array(name: str, x: Any, update: Any) -> Array:
    """Return an array after its update, parameter by parameter."""
    if not isinstance(x, Array) or type(update) is not type(x):
        raise ValueError(_how_structures_differ(name, x, update))
    (leaves, (cls, meta, _)), (others, (_, other_meta, _)) = all_parameters(x), all_parameters(update)
    if meta != other_meta or len(leaves) != len(others):
        raise ValueError(_how_structures_differ(name, x, update))
    count = len(leaves)
    indices = range(*cls.index_parameters.indices(count)) if cls.index_parameters is not None else ()
    names = parameter_names(cls, count)
    new = list(leaves)
    for i, (leaf, other) in enumerate(zip(leaves, others, strict=True)):
        if i in indices:
            if _are_other_indices(leaf, other):
                raise ValueError(_how_structures_differ(name, x, update, f" with other {names[i]}"))
        elif not _has_no_update(other):
            new[i] = (_updated_array if isinstance(leaf, Array) else _added)(f"{name}.{names[i]}", leaf, other)
    if all(a is b for a, b in zip(new, leaves, strict=True)):
        return copy.copy(x)
    aux = cls, meta, frozenset[str]()
    # Indices that are leaves of the pytree remain leaves, so that the result has the type of the argument.
    return unflatten(cast("Aux", Variable(aux)) if type(x._value[1]) is Variable else aux, tuple(new))


def _are_other_indices(one: Any, two: Any) -> bool:
    """Return whether two arrays of indices certainly differ. What an optimizer makes of indices counts as equal."""
    if one is two or jnp.shape(one) != jnp.shape(two):
        return jnp.shape(one) != jnp.shape(two)
    known = all(not isinstance(x, jax.core.Tracer) and jnp.issubdtype(x.dtype, jnp.integer) for x in (one, two))
    return known and Constant(one) != Constant(two)


def _added(name: str, value: Any, update: Any) -> Any:
    """Return the sum of two arrays in the data type of the first; constants do not change."""
    if not isinstance(update, _ARRAYS):
        raise TypeError(f"apply_updates: {name} must be an array, got {type(update).__name__}; pass None for no update")
    if not isinstance(value, _ARRAYS):
        raise ValueError(
            f"apply_updates: {name} must be None, since its parameter is a {type(value).__name__}, got an array; "
            "pass updates with the tree of params"
        )
    dtype = value.dtype if hasattr(value, "dtype") else jnp.result_type(value)
    if not jnp.issubdtype(dtype, jnp.inexact):
        return value
    if jnp.shape(value) != jnp.shape(update):
        raise ValueError(
            f"apply_updates: {name} must have the shape {jnp.shape(value)} of its parameter, got {jnp.shape(update)}; "
            "pass updates that are made from the gradient with respect to params"
        )
    if jnp.issubdtype(jnp.result_type(update), jnp.complexfloating) and not jnp.issubdtype(dtype, jnp.complexfloating):
        raise TypeError(
            f"apply_updates: {name} must be real as its parameter of dtype {dtype}, got {jnp.result_type(update)}; "
            "pass the real part"
        )
    with jax.numpy_dtype_promotion("standard"):
        return jnp.add(jnp.asarray(value), jnp.asarray(update)).astype(dtype)


# ---- errors ----------------------------------------------------------------------------------------------------------


def _how_structures_differ(name: str, x: Any, update: Any, how: str = "") -> str:
    return (
        f"apply_updates: {name} must have the structure of its parameter, {_text(x)}, got {_text(update)}{how}; "
        "pass updates that are made from the gradient with respect to params"
    )


def _text(x: Any) -> str:
    """Return the class and the static parameters of an array."""
    if not isinstance(x, Array):
        return f"{type(x).__name__}({f'shape={x.shape}' if hasattr(x, 'shape') else ''})"
    found = {"shape": x.shape} | {name: getattr(x, name) for name in ("offsets", "lower", "nnz") if hasattr(x, name)}
    return f"{type(x).__name__}({', '.join(f'{name}={value}' for name, value in found.items())})"


def _how_trees_differ(params: Any, updates: Any) -> str:
    """Return a message that names the first path in one of two trees only."""
    known, given = (
        [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(tree, is_leaf=_is_leaf)[0]]
        for tree in (params, updates)
    )
    for path in given:
        if not any(p.startswith(path) for p in known):
            return (
                f"apply_updates: updates must have the tree of params, got updates{path} without a parameter; remove it"
            )
    for path in known:
        if not any(path.startswith(p) for p in given):
            return f"apply_updates: updates must have the tree of params, got none for params{path}; pass None there"
    return (
        f"apply_updates: updates must have the tree of params, got {jax.tree.structure(updates)} "
        f"instead of {jax.tree.structure(params)}; use the same containers"
    )
