"""Functions of NumPy as functions of our arrays: called from compiled code, with derivatives by rules (docs/design/semantics.md).

The calls themselves are those by which sparse systems are solved, in `host_calls`; here are the shapes and dtypes that they
must keep, the derivatives, and what `jax.vmap` does with them.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._core import dtypes
from .._core.array.base import Array, is_array
from .._core.array.dense import Dense
from .._core.dispatch import explicit
from .._functions.conversion import densified
from .._numerics.host_calls import on_host
from .numpy_host import is_traced

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._core.typing import Shape


VMAP_METHODS = ("sequential", "expand_dims", "broadcast_all")


def host_function(
    fun: Callable[..., Any] | None = None,
    result: Any = None,
    *,
    vjp: Callable[..., Any] | None = None,
    jvp: Callable[..., Any] | None = None,
    vmap_method: str = "sequential",
) -> Callable[..., Any]:
    """Make a function of arrays of a function of NumPy arrays, for `jax.jit`, `jax.grad` and `jax.vmap`.

    Parameters
    ----------
    fun : callable, optional
        Of NumPy arrays, or pytrees of them, to NumPy arrays, or a pytree of them. It must be pure: JAX calls it as often as it
        likes, or not at all if nobody needs the result. It must not call JAX, nor this library. Without it, the result is a
        decorator.
    result : pytree, or callable
        What it returns: a pytree whose leaves have a ``shape`` and a ``dtype``, such as `jax.ShapeDtypeStruct`. A callable gets the
        arguments with a `jax.ShapeDtypeStruct` for each array, and returns that pytree.
    vjp : callable, optional
        The derivative in reverse, for `grad`: ``vjp(arguments, result, cotangents)`` gets the tuple of arguments, the result, and a
        pytree like the result with the derivatives of a number by it (None for integers and booleans). It returns a tuple with the
        derivatives of the number by each argument: a pytree like the argument, or None where it is zero.
    jvp : callable, optional
        The derivative forward: ``jvp(arguments, result, tangents)`` gets the changes of the arguments (None for integers and
        booleans) in place of the cotangents, in which it is linear, and returns the change of the result. `grad` follows from it, if
        it is written in JAX.
    vmap_method : {"sequential", "expand_dims", "broadcast_all"}
        How `vmap` calls `fun`: once for each element of the batch (in one call from compiled code), or once for all of them.
        Then all arrays have more dimensions in front, also those of the result: with ``"expand_dims"`` of length 1 in the arguments that are not
        mapped, with ``"broadcast_all"`` never.

    Returns
    -------
    callable
        With the positional arguments of `fun`: arrays of this namespace, of JAX or NumPy, numbers, and pytrees of them. The results are arrays
        of this namespace if an argument is one, else of JAX.

    Raises
    ------
    TypeError
        If `fun` or a rule is no callable, both rules are given, or there is no `result`. When called: if an argument is no array, or
        a derivative is asked for and there is no rule. From compiled code errors of `fun` come as JAX's runtime error, with the
        message.
    ValueError
        If `vmap_method` is none of the three. When called: if `fun` returns other shapes, another pytree, or dtypes that
        cannot be cast to those of `result` within their kind.
    DensifyError
        When called: if a structured argument must be expanded that the policy of `densify` does not let be.

    See Also
    --------
    jax.pure_callback, jax.custom_vjp

    Notes
    -----
    A structured argument arrives as its dense form, under the policy of `densify`, and its gradient has its structure nevertheless: the
    rule gives the derivative by the dense matrix, and the expansion has one of its own. Where only the parameters are
    wanted, hand them over, ``f(A.diag)`` for ``f(A)``: then nothing is expanded.

    The rules get and give arrays of JAX. They are traced like any code, and may be host code in their turn: a rule that calls
    another `host_function`. Derivatives of derivatives are those of the rules.

    The arguments of `fun` are copies, which it may keep and change. Called with values, outside of all transformations, it is called
    directly, so that its errors are its own and a debugger gets in.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> import structarrays as sa
    >>> @sa.host_function(result=lambda x: x, vjp=lambda arguments, result, cotangent: (cotangent * jnp.cos(arguments[0]),))
    ... def sine(x):
    ...     return np.sin(x)
    >>> jax.jit(jax.grad(sine))(0.0)
    Array(1., dtype=float64)
    >>> sine(sa.Diagonal([0.0, 1.0]))
    Dense([[0.        , 0.        ],
           [0.        , 0.84147098]], dtype=float64)
    """
    if fun is None:
        return functools.partial(host_function, result=result, vjp=vjp, jvp=jvp, vmap_method=vmap_method)
    for name, value in (("fun", fun), ("vjp", vjp), ("jvp", jvp)):
        if not callable(value) and (name == "fun" or value is not None):
            raise TypeError(f"host_function: {name} must be a function, got {type(value).__name__}")
    if vjp is not None and jvp is not None:
        raise TypeError("host_function: one rule for the derivative is enough, got vjp and jvp")
    if result is None:
        raise TypeError(
            "host_function: result must say the shapes and dtypes of what the function returns, since compiled code has to know them "
            "before: a jax.ShapeDtypeStruct, a pytree of these, or a function of the arguments that returns one"
        )
    if vmap_method not in VMAP_METHODS:
        raise ValueError(f"host_function: vmap_method must be one of {', '.join(VMAP_METHODS)}, got {vmap_method!r}")
    return _wrapped(fun, _HostCall(fun, result, vmap_method), vjp, jvp)


def _wrapped(
    fun: Callable[..., Any], call: _HostCall, vjp: Callable[..., Any] | None, jvp: Callable[..., Any] | None
) -> Callable[..., Any]:
    """The function of arrays of any kind."""
    run = _with_vjp(call, vjp) if vjp is not None else _with_jvp(call, jvp)

    @functools.wraps(fun)
    def on_arrays(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            bound = inspect.signature(fun).bind(*args, **kwargs)
            args, kwargs = bound.args, bound.kwargs
            if kwargs:
                raise TypeError(
                    f"{call.name}: {', '.join(kwargs)} can only be given by keyword, but arrays are given by position"
                )
        leaves, tree = jax.tree.flatten(args, is_leaf=is_array)
        data = [_plain(leaf, call.name) for leaf in leaves]
        results = run(*jax.tree.unflatten(tree, data))
        if not any(map(is_array, leaves)):
            return results
        return jax.tree.map(lambda leaf: Dense.make((leaf,)), results)

    return on_arrays


def _plain(value: Any, name: str) -> jax.Array:
    """An argument as an array of JAX."""
    if isinstance(value, Array):
        return densified(value, name).data
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}: arguments must be arrays, numbers, or pytrees of them, got {type(value).__name__}; what is no array can be bound to "
            "the function before (functools.partial)"
        ) from None


class _Layout(NamedTuple):
    """The trees of the arguments and of the result of a call, and the shapes and dtypes of the results, flat."""

    tree: Any
    result_tree: Any
    results: tuple[jax.ShapeDtypeStruct, ...]


class _HostCall:
    """The function of arrays of JAX, without derivatives."""

    def __init__(self, fun: Callable[..., Any], result: Any, vmap_method: str) -> None:
        self.fun, self.result, self.vmap_method = fun, result, vmap_method
        self.name = getattr(fun, "__name__", type(fun).__name__)
        self.compiled = explicit.jit(self._from_compiled_code, static_argnums=0)

    def __call__(self, *args: Any) -> Any:
        leaves, tree = jax.tree.flatten(args)
        results, result_tree = self._shapes(args)
        layout = _Layout(tree, result_tree, results)
        if is_traced(leaves):
            values = self.compiled(layout, *leaves)
        else:
            values = map(jnp.asarray, self._checked(layout, [np.array(x) for x in leaves], ()))
        return jax.tree.unflatten(result_tree, values)

    def _shapes(self, args: tuple[Any, ...]) -> tuple[tuple[jax.ShapeDtypeStruct, ...], Any]:
        """Shapes and dtypes of the results, flat, and their tree."""
        result = self.result
        if callable(result):
            result = result(*jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), args))
        leaves, tree = jax.tree.flatten(result, is_leaf=_has_shape)
        for leaf in leaves:
            if not _has_shape(leaf):
                raise TypeError(
                    f"{self.name}: result must be made of things with a shape and a dtype, such as jax.ShapeDtypeStruct, got "
                    f"{type(leaf).__name__}"
                )
        return tuple(jax.ShapeDtypeStruct(x.shape, dtypes.as_dtype(x.dtype, "result")) for x in leaves), tree

    def _from_compiled_code(self, layout: _Layout, *leaves: Any) -> Any:
        each = self.vmap_method == "sequential"

        def function(*stacks: np.ndarray) -> list[np.ndarray]:
            ahead = stacks[0].ndim - leaves[0].ndim if leaves else 0
            batch = np.broadcast_shapes(*(x.shape[:ahead] for x in stacks))
            if each and ahead:
                return self._one_by_one(layout, stacks, batch)
            if self.vmap_method == "broadcast_all":
                stacks = tuple(np.broadcast_to(x, batch + x.shape[ahead:]) for x in stacks)
            return self._checked(layout, [np.array(x) for x in stacks], batch)

        return on_host(function, layout.results, *leaves)

    def _one_by_one(self, layout: _Layout, stacks: Sequence[np.ndarray], batch: Shape) -> list[np.ndarray]:
        filled = [np.empty(batch + r.shape, r.dtype) for r in layout.results]
        for place in np.ndindex(*batch):
            one = [np.array(x[tuple(0 if n == 1 else i for n, i in zip(x.shape, place, strict=False))]) for x in stacks]
            for target, value in zip(filled, self._checked(layout, one, ()), strict=True):
                target[place] = value
        return filled

    def _checked(self, layout: _Layout, arrays: list[np.ndarray], batch: Shape) -> list[np.ndarray]:
        """The results of the function for these arrays, flat."""
        values, given = jax.tree.flatten(self.fun(*jax.tree.unflatten(layout.tree, arrays)))
        if given != layout.result_tree:
            raise ValueError(f"{self.name} must return a pytree as result says, {layout.result_tree}, got {given}")
        return [self._fitting(v, batch + r.shape, r.dtype) for v, r in zip(values, layout.results, strict=True)]

    def _fitting(self, value: Any, shape: Shape, dtype: np.dtype) -> np.ndarray:
        value = np.asarray(value)
        if value.shape != shape:
            raise ValueError(
                f"{self.name} must return an array of shape {shape}, as result says, got shape {value.shape}"
            )
        if value.dtype != dtype and not np.can_cast(value.dtype, dtype, "same_kind"):
            raise ValueError(
                f"{self.name} must return an array of dtype {dtype}, as result says, got dtype {value.dtype}"
            )
        fitting: np.ndarray = value.astype(dtype, copy=False)
        return fitting


def _has_shape(value: object) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


# ---- derivatives ------------------------------------------------------------------------------------------------------


def _with_vjp(call: _HostCall, rule: Callable[..., Any]) -> Callable[..., Any]:
    """The function with a derivative in reverse."""
    run = jax.custom_vjp(call)

    def forward(*args: Any) -> tuple[Any, tuple[tuple[Any, ...], Any]]:
        result = run(*args)  # not `call`, so that derivatives of the derivative see the rule, too
        return result, (args, result)

    def backward(kept: tuple[tuple[Any, ...], Any], cotangents: Any) -> tuple[Any, ...]:
        args, result = kept
        given = rule(args, result, jax.tree.map(_without_integers, result, cotangents))
        if not isinstance(given, tuple) or len(given) != len(args):
            what = f"a tuple of {len(given)}" if isinstance(given, tuple) else type(given).__name__
            raise TypeError(
                f"{call.name}: vjp must return a tuple with one entry for each of {len(args)} arguments, got {what}"
            )
        return tuple(_like(arg, derivative, f"{call.name}: vjp") for arg, derivative in zip(args, given, strict=True))

    run.defvjp(forward, backward)
    return run


def _with_jvp(call: _HostCall, rule: Callable[..., Any] | None) -> Callable[..., Any]:
    """The function with a derivative forward; without a rule one that says so."""
    run = jax.custom_jvp(call)

    @run.defjvp
    def _run_jvp(args: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        if rule is None:
            raise TypeError(
                f"{call.name} has no derivative, since it is a function of the host: give host_function a rule, vjp= or jvp=, or take the "
                "arguments out of the derivative (jax.lax.stop_gradient)"
            )
        result = run(*args)
        change = rule(args, result, jax.tree.map(_without_integers, args, tangents))
        return result, _like(result, change, f"{call.name}: jvp")

    return run


def _without_integers(value: Any, derivative: Any) -> Any:
    """A derivative by a value, or a change of one: None where it is an integer or a boolean."""
    return derivative if jnp.issubdtype(value.dtype, jnp.inexact) else None


def _like(values: Any, derivatives: Any, name: str) -> Any:
    """What a rule returns, as JAX wants it: a pytree like that of the values, of their shapes and dtypes."""
    tree: Any
    leaves, tree = jax.tree.flatten(values)
    try:
        given = [None] * len(leaves) if derivatives is None else tree.flatten_up_to(derivatives)
    except ValueError as error:
        raise ValueError(
            f"{name} returned another pytree than that of what it is a derivative of, {tree}: {error}"
        ) from None
    return jax.tree.unflatten(tree, [_leaf_like(x, d, name) for x, d in zip(leaves, given, strict=True)])


def _leaf_like(value: jax.Array, derivative: Any, name: str) -> jax.Array | np.ndarray:
    if not jnp.issubdtype(value.dtype, jnp.inexact):
        return np.zeros(value.shape, jax.dtypes.float0)
    if derivative is None:
        return jnp.zeros_like(value)
    try:
        derivative = _plain(derivative, name)
    except TypeError:
        raise TypeError(f"{name} returned a {type(derivative).__name__} for the derivative of an array") from None
    if derivative.shape != value.shape:
        raise ValueError(
            f"{name} returned a derivative of shape {derivative.shape} of something of shape {value.shape}"
        )
    result: jax.Array = derivative.astype(value.dtype)
    return result
