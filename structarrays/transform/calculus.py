"""Derivatives and `vmap` for functions of structured arrays (docs/design/semantics.md).

`jax.grad` and `jax.vmap` work on all arrays of the library, which are pytrees. The functions of this module add two
things that JAX cannot know: some parameters, such as indices, have no derivatives; and an axis of an array corresponds
to an axis of its parameters.
"""

from __future__ import annotations

import copy
import functools
import operator
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from .._core.array.base import Array, is_array
from .._core.array.flattening import all_parameters, map_parameters, unflatten
from .._core.array.operands import densify
from .._core.array.sharing import jit
from .._core.array.writes import mark_derivative
from .._core.dispatch import explicit
from .._core.families.batch import check_axis
from .._functions.manipulation import moveaxis

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence


def grad(
    fun: Callable[..., Any],
    argnums: int | tuple[int, ...] | list[int] = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the gradient of a function of arrays.

    Parameters
    ----------
    fun : callable
        Function of arrays whose value is a real array without dimensions.
    argnums : int or tuple of int, default 0
        Positions of the arguments with respect to which to differentiate: arrays, or pytrees of arrays.
    has_aux : bool, default False
        Whether `fun` returns a pair, of which only the first element is differentiated.
    holomorphic : bool, default False
        Whether `fun` is complex and holomorphic.

    Returns
    -------
    callable
        A function with the arguments of `fun`. It returns the gradient, or a tuple of gradients if `argnums` is a
        tuple; with `has_aux` it returns a pair of this and the second element of the value.

    Raises
    ------
    TypeError
        When the returned function is called: if `fun` is not callable, its value is not a scalar, or no argument has
        floating-point parameters.

    Notes
    -----
    The gradient with respect to a structured array has the structure of this array: it is the derivative with respect
    to the parameters, and the derivative with respect to a parameter that fills several entries is the sum over all of
    them. If the elements are not linear in the parameters (for example of a `LowRank`), the operators of the gradient
    raise, since ``A - 0.1 * gradient`` would be wrong. `apply_updates` and optax change the parameters instead. A gradient has
    no assumptions: the gradient with respect to a positive definite array is not positive definite.

    The indices of a `Sparse` or a `Permutation` are constant, so that optimizers do not change them. Indices that are
    traced or differ between the matrices of a stack, and other integers and booleans, are returned unchanged
    (`jax.grad` refuses them): do not pass these to an optimizer.

    Examples
    --------
    >>> import structarrays as sa
    >>> b = sa.asarray([1.0, 1.0])
    >>> sa.grad(lambda A: sa.sum(sa.linalg.solve(A, b)))(sa.Diagonal([1.0, 2.0]))
    Diagonal([-1.  , -0.25], shape=(2, 2), dtype=float64)
    """
    differentiate = value_and_grad(fun, argnums, has_aux=has_aux, holomorphic=holomorphic)

    @functools.wraps(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, result = differentiate(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return gradient


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | tuple[int, ...] | list[int] = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., tuple[Any, Any]]:
    """Return a function that computes the value and the gradient of a function of arrays.

    Parameters
    ----------
    fun, argnums, has_aux, holomorphic
        The same as for `grad`.

    Returns
    -------
    callable
        A function with the arguments of `fun`. It returns the value of `fun` and the gradient, in the form that `grad`
        returns. With `has_aux` the value is the pair.

    Examples
    --------
    >>> import structarrays as sa
    >>> value, gradient = sa.value_and_grad(lambda D: sa.sum(D * D))(sa.Diagonal([1.0, 3.0]))
    >>> float(value), gradient
    (10.0, Diagonal([2., 6.], shape=(2, 2), dtype=float64))
    """
    if not callable(fun):
        raise TypeError(f"fun must be a function, got {type(fun).__name__}")
    single = not isinstance(argnums, (tuple, list))
    numbers = tuple(operator.index(i) for i in (argnums if isinstance(argnums, (tuple, list)) else (argnums,)))

    @functools.wraps(fun)
    def differentiate(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        chosen = [_argument(args, i) for i in numbers]
        # Indices that have values are constant in the gradient, even if they are leaves of the argument: a function
        # that maps over the leaves of both raises, and changes no index.
        leaves, tree = jax.tree.flatten(map_parameters(lambda leaf: leaf, [args[i] for i in chosen]))
        by = [i for i, leaf in enumerate(leaves) if _is_inexact(leaf)]
        if not by:
            raise TypeError(
                f"argument {argnums} must have floating-point parameters, got none; "
                "differentiate with respect to another argument"
            )

        def of_parameters(parameters: Sequence[jax.Array]) -> tuple[Any, tuple[Any, Any]]:
            replaced = list(leaves)
            for i, parameter in zip(by, parameters, strict=True):
                replaced[i] = parameter
            # Copies make a write to an argument local to the call, also for arguments without a derivative.
            arguments, named = jax.tree.map(
                lambda x: copy.copy(x) if is_array(x) else x, (list(args), kwargs), is_leaf=is_array
            )
            for i, argument in zip(chosen, jax.tree.unflatten(tree, replaced), strict=True):
                arguments[i] = argument
            result = fun(*arguments, **named)
            value, aux = result if has_aux else (result, None)
            return _number(value), (value, aux)

        derivative = jax.grad(of_parameters, has_aux=True, holomorphic=holomorphic)
        with explicit.context(leaves):
            parameters, (value, aux) = derivative([leaves[i] for i in by])
        for i, parameter in zip(by, parameters, strict=True):
            leaves[i] = parameter
        gradients = jax.tree.unflatten(tree, leaves)
        gradients = jax.tree.map(lambda x: _as_derivative(x) if is_array(x) else x, gradients, is_leaf=is_array)
        return ((value, aux) if has_aux else value), (gradients[0] if single else tuple(gradients))

    return differentiate


def _as_derivative(x: Array) -> Array:
    """Return a gradient without the assumptions of its argument, and marked if it has no meaning as an array."""
    x = _forgotten(x)
    if not x.linear:
        mark_derivative(x)
    return x


def _forgotten(x: Array) -> Array:
    """Return an array without assumptions, also of its parts."""
    leaves, (cls, meta, assumptions) = all_parameters(x)
    new = tuple(_forgotten(leaf) if isinstance(leaf, Array) else leaf for leaf in leaves)
    if not assumptions and all(a is b for a, b in zip(new, leaves, strict=True)):
        return x
    return unflatten((cls, meta, frozenset()), new)


def _argument(args: Sequence[Any], number: int) -> int:
    if not -len(args) <= number < len(args):
        raise TypeError(f"argnums must name positional arguments, got {number} for a call with {len(args)}")
    return number % len(args)


def _is_inexact(leaf: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(leaf), jnp.inexact)


def _number(value: Any) -> Any:
    """Convert the value of a function to a scalar of JAX."""
    shape = value.shape if isinstance(value, Array) else jnp.shape(value)
    if shape != ():
        raise TypeError(
            f"fun must return an array of no dimensions, got shape {shape}; reduce it, for example with sum"
        )
    return value.to_jax() if isinstance(value, Array) else value


# ---- vmap ---------------------------------------------------------------------------------------------------------


def vmap(
    fun: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
) -> Callable[..., Any]:
    """Map a function over an axis of its arguments.

    Parameters
    ----------
    fun : callable
        Function of arrays, or of pytrees of arrays.
    in_axes : int, None, or a sequence, default 0
        Axis of each argument that is mapped, counted in the shape of the array; None maps no axis. A sequence has one
        entry for each positional argument; an entry may be a pytree that is a prefix of the argument.
    out_axes : int, None, or a pytree, default 0
        Position of the mapped axis in the results; a pytree must be a prefix of the result.
    axis_name : hashable, optional
        Name of the mapped axis, for collective operations.
    axis_size : int, optional
        Size of the mapped axis, needed if no argument is mapped.

    Returns
    -------
    callable
        A function with the arguments of `fun`. Keyword arguments are mapped over their first axis, as by `jax.vmap`.

    Notes
    -----
    A batch axis of a structured array is an axis of its parameters. If a core axis of an argument or a result is
    mapped, the array densifies, under the policy of `densify`.

    Examples
    --------
    >>> import structarrays as sa
    >>> D = sa.Diagonal([[1.0, 2.0], [3.0, 4.0]])
    >>> sa.vmap(sa.linalg.trace)(D)
    Dense([3., 7.], dtype=float64)
    >>> sa.vmap(lambda d: d @ d)(D).shape
    (2, 2, 2)
    """
    if not callable(fun):
        raise TypeError(f"fun must be a function, got {type(fun).__name__}")
    axes = tuple(in_axes) if isinstance(in_axes, (tuple, list)) else in_axes

    @functools.wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        if isinstance(axes, tuple) and len(axes) != len(args):
            raise ValueError(f"in_axes must have one entry for each of the {len(args)} arguments, got {in_axes!r}")
        leaves: Sequence[Any]
        places: Sequence[int | None]
        leaves, tree = jax.tree.flatten((args, kwargs), is_leaf=is_array)
        prefix: tuple[Any, Any] = ((axes,) * len(args) if not isinstance(axes, tuple) else axes, 0 if kwargs else {})
        places = spread(prefix, (args, kwargs), "in_axes")
        ready = [_ready(leaf, axis) for leaf, axis in zip(leaves, places, strict=True)]
        leaves, places = zip(*ready, strict=True) if ready else ((), ())

        def on_leaves(*values: Any) -> Any:
            arguments, keywords = jax.tree.unflatten(tree, values)
            return fun(*arguments, **keywords)

        run = jax.vmap(
            on_leaves,
            in_axes=places,
            out_axes=jax.tree.map(lambda axis: None if axis is None else 0, out_axes, is_leaf=_is_none),
            axis_name=axis_name,
            axis_size=axis_size,
        )
        result = run(*leaves)
        results, result_tree = jax.tree.flatten(result, is_leaf=is_array)
        targets = spread(out_axes, result, "out_axes")
        return jax.tree.unflatten(result_tree, [_moved(x, axis) for x, axis in zip(results, targets, strict=True)])

    return mapped


def _is_none(value: object) -> bool:
    return value is None


def spread(prefix: Any, full: Any, argument: str) -> list[int | None]:
    """Return the axis of each array in a pytree, from a prefix of the pytree."""
    axes: list[int | None] = []

    def add(axis: int | None, part: Any) -> None:
        # A part that is None has no arrays, and no axis.
        axes.extend([axis] * len(jax.tree.leaves(part, is_leaf=is_array)))

    try:
        jax.tree.map(add, prefix, full, is_leaf=_is_none)
    except ValueError as error:
        raise ValueError(f"{argument} must be a prefix of the pytree it describes: {error}") from None
    return axes


_expand = jit(lambda x: densify(x, "vmap"))


def _ready(x: Any, axis: int | None) -> tuple[Any, int | None]:
    """Prepare an argument so that its mapped axis is an axis of its parameters; return it with that axis."""
    if axis is None or not isinstance(x, Array):
        return x, axis
    axis = check_axis("vmap", axis, x.ndim, "in_axes")
    return (x if axis < len(x.batch_shape) else _expand(x)), axis


def _moved(x: Any, axis: int | None) -> Any:
    """Move the mapped axis of a result from the front to its position."""
    if axis is None or axis == 0:
        return x
    if isinstance(x, Array):
        return moveaxis(x, 0, axis)
    return jnp.moveaxis(x, 0, axis)
