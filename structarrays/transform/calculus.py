"""Derivatives and `vmap` for functions of structured arrays (docs/design/semantics.md).

`jax.grad` and `jax.vmap` work on all arrays of the library, which are pytrees. These do what JAX cannot know: that some
parameters, such as indices, are no business of calculus, and which axis of an array an axis of its parameters is.
"""

from __future__ import annotations

import copy
import functools
import operator
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from .._core.array.base import Array, is_array
from .._core.array.flattening import map_parameters
from .._core.array.operands import densify
from .._core.array.sharing import jit
from .._core.array.writes import DERIVATIVE
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
    """The gradient of a function of arrays, as a function.

    Parameters
    ----------
    fun : callable
        Its value is a real number: an array without dimensions.
    argnums : int or tuple of int
        By which arguments to differentiate: arrays, or pytrees of arrays.
    has_aux : bool
        Whether `fun` returns a pair, of which only the first is differentiated.
    holomorphic : bool
        Whether `fun` is complex and holomorphic.

    Returns
    -------
    callable
        With the arguments of `fun`; it returns the gradient, a tuple of gradients if `argnums` is a tuple, and behind
        that the second of the pair with `has_aux`.

    Raises
    ------
    TypeError
        When called: if `fun` is no callable, its value is no number, or there is nothing to differentiate by.

    Notes
    -----
    The gradient with respect to a structured array has its structure: it is the derivative by its parameters, and a
    parameter that fills several entries collects them all. Where the elements are not linear in the parameters (of a
    `LowRank`, say) that is no array to calculate with, and its operators raise: ``A - 0.1 * gradient`` would be a wrong number.
    `jax.tree.map` and optax change the parameters. The indices of a `Sparse` or a `Permutation` are constant, so that optimisers
    leave them alone. Indices that are traced or differ between the matrices of a stack, and other integers and booleans, are
    handed back unchanged (`jax.grad` refuses them): do not give these to an optimiser.

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
    """The value and the gradient of a function of arrays, as a function.

    Parameters
    ----------
    fun, argnums, has_aux, holomorphic
        As for `grad`.

    Returns
    -------
    callable
        With the arguments of `fun`; it returns its value and the gradient as of `grad`. With `has_aux` the value is the
        pair.

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
        # Indices that have values are constant here, also if they are leaves of the argument: what pairs the gradient with that
        # argument leaf by leaf raises, and changes no index.
        leaves, tree = jax.tree.flatten(map_parameters(lambda leaf: leaf, [args[i] for i in chosen]))
        by = [i for i, leaf in enumerate(leaves) if _is_inexact(leaf)]
        if not by:
            raise TypeError(
                f"there is nothing to differentiate by: argument {argnums} has no floating-point parameters"
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
        for gradient in jax.tree.leaves(gradients, is_leaf=is_array):
            if isinstance(gradient, Array) and not gradient.linear:
                gradient._link = DERIVATIVE
        return ((value, aux) if has_aux else value), (gradients[0] if single else tuple(gradients))

    return differentiate


def _argument(args: Sequence[Any], number: int) -> int:
    if not -len(args) <= number < len(args):
        raise TypeError(f"argnums names argument {number}, but there are {len(args)} positional arguments")
    return number % len(args)


def _is_inexact(leaf: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(leaf), jnp.inexact)


def _number(value: Any) -> Any:
    """What JAX takes for the value of a function: a scalar of its own."""
    shape = value.shape if isinstance(value, Array) else jnp.shape(value)
    if shape != ():
        raise TypeError(
            f"the gradient is that of a number: fun must return an array of no dimensions, got shape {shape}"
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
        A function of arrays, or of pytrees of arrays.
    in_axes : int, None, or a sequence
        Which axis of each argument is mapped, as the array's shape counts them; None is none. A sequence has one for
        each positional argument, or a pytree that is a prefix of the argument.
    out_axes : int, None, or a pytree
        Where the mapped axis stands in the results; a pytree is a prefix of the result.
    axis_name : hashable, optional
        Of the mapped axis, for collective operations.
    axis_size : int, optional
        Of the mapped axis, where no argument tells.

    Returns
    -------
    callable
        With the arguments of `fun`; keyword arguments are mapped over their first axis, as by `jax.vmap`.

    Notes
    -----
    A batch axis of a structured array is an axis of its parameters. A core axis, among the arguments or the results, makes
    the array dense, under the policy of `densify`.

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
        places = _spread(prefix, (args, kwargs), "in_axes")
        leaves, places = zip(*map(_ready, leaves, places), strict=True) if leaves else ((), ())

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
        targets = _spread(out_axes, result, "out_axes")
        return jax.tree.unflatten(result_tree, map(_moved, results, targets))

    return mapped


def _is_none(value: object) -> bool:
    return value is None


def _spread(prefix: Any, full: Any, argument: str) -> list[int | None]:
    """The axis of each array in a pytree, from a prefix of it."""
    try:
        spread = jax.tree.broadcast(prefix, jax.tree.map(lambda _: 0, full, is_leaf=is_array), is_leaf=_is_none)
    except ValueError as error:
        raise ValueError(f"{argument} must be a prefix of the pytree it describes: {error}") from None
    return jax.tree.leaves(spread, is_leaf=_is_none)


_expand = jit(lambda x: densify(x, "vmap"))


def _ready(x: Any, axis: int | None) -> tuple[Any, int | None]:
    """An argument whose mapped axis is one of its parameters, and that axis."""
    if axis is None or not isinstance(x, Array):
        return x, axis
    axis = check_axis("vmap", axis, x.ndim, "in_axes")
    return (x if axis < len(x.batch_shape) else _expand(x)), axis


def _moved(x: Any, axis: int | None) -> Any:
    """A result with its mapped axis, the first, in its place."""
    if axis is None or axis == 0:
        return x
    if isinstance(x, Array):
        return moveaxis(x, 0, axis)
    return jnp.moveaxis(x, 0, axis)
