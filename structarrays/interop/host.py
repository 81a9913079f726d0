"""NumPy functions as functions of arrays: callable from compiled code, with user-defined derivatives.

`host_calls` contains the callback itself, which the sparse solvers use as well. This module adds checks of shapes and
data types, derivatives and batching (docs/design/semantics.md).
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
    """Wrap a NumPy function so that `jax.jit`, `jax.grad` and `jax.vmap` accept it.

    Parameters
    ----------
    fun : callable, optional
        Function of NumPy arrays, or pytrees of NumPy arrays, that returns NumPy arrays or a pytree of them. It must be
        pure: JAX may call it any number of times, or not at all if the result is unused. It must not call JAX or this
        library. Without `fun`, the result is a decorator.
    result : pytree, or callable
        Shapes and data types of the result: a pytree whose leaves have a ``shape`` and a ``dtype``, such as
        `jax.ShapeDtypeStruct`. A callable receives the arguments, with a `jax.ShapeDtypeStruct` for each array, and
        returns that pytree.
    vjp : callable, optional
        Rule for reverse-mode derivatives (`jax.grad`): ``vjp(arguments, result, cotangents)`` receives the tuple of
        arguments, the result, and the cotangents, a pytree like the result (None for integers and booleans). It returns
        a tuple with one cotangent for each argument: a pytree like the argument, or None for zero.
    jvp : callable, optional
        Rule for forward-mode derivatives: ``jvp(arguments, result, tangents)`` receives the tangents of the arguments
        (None for integers and booleans) and returns the tangent of the result. It must be linear in the tangents.
        `jax.grad` transposes the rule if it is written in JAX.
    vmap_method : {"sequential", "expand_dims", "broadcast_all"}, default "sequential"
        How `jax.vmap` calls `fun`. ``"sequential"`` calls `fun` once for each element of the batch, in one callback.
        The other methods call it once, with arrays and results that have leading batch dimensions. With
        ``"expand_dims"`` these have length 1 for arguments that are not mapped; with ``"broadcast_all"`` they have full
        length.

    Returns
    -------
    callable
        Function with the positional arguments of `fun`: arrays of this namespace, of JAX or NumPy, numbers, and pytrees
        of these. It returns arrays of this namespace if an argument is one, and arrays of JAX otherwise.

    Raises
    ------
    TypeError
        If `fun` or a rule is not callable, both rules are given, or `result` is missing. When called: if an argument is
        not an array, or a derivative is required and there is no rule. In compiled code, an error of `fun` is raised as
        a runtime error of JAX with the same message.
    ValueError
        If `vmap_method` is unknown. When called: if `fun` returns other shapes than `result`, another pytree, or data
        types that cannot be cast to those in `result` within their kind.
    DensifyError
        When called: if the policy of `densify` forbids the dense form of a structured argument.

    See Also
    --------
    jax.pure_callback, jax.custom_vjp

    Notes
    -----
    `fun` receives structured arguments in dense form, under the policy of `densify`. Their gradients have their
    structure: the rule differentiates with respect to the dense matrix, and the chain rule leads from there to the
    stored entries. To avoid the dense form, pass the parameters instead: ``f(A.diag)`` for ``f(A)``.

    The rules receive and return arrays of JAX, and are traced like any code. A rule may call another `host_function`.
    Higher derivatives are derivatives of the rules.

    The arguments of `fun` are copies, which `fun` may keep and modify. Outside of transformations, `fun` is called
    directly: its errors are raised unchanged, and a debugger can enter it.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> import structarrays as sa
    >>> def derivative(arguments, result, cotangent):
    ...     return (cotangent * jnp.cos(arguments[0]),)
    >>> @sa.host_function(result=lambda x: x, vjp=derivative)
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
        raise TypeError("host_function: only one of vjp and jvp may be given, got both; remove one")
    if result is None:
        raise TypeError(
            "host_function: result must give the shapes and dtypes that the function returns, got None; pass a jax.ShapeDtypeStruct, a "
            "pytree of these, or a function of the arguments that returns one"
        )
    if vmap_method not in VMAP_METHODS:
        raise ValueError(f"host_function: vmap_method must be one of {', '.join(VMAP_METHODS)}, got {vmap_method!r}")
    return _wrapped(fun, _HostCall(fun, result, vmap_method), vjp, jvp)


def _wrapped(
    fun: Callable[..., Any], call: _HostCall, vjp: Callable[..., Any] | None, jvp: Callable[..., Any] | None
) -> Callable[..., Any]:
    """Return the function of arrays of this library, JAX or NumPy."""
    run = _with_vjp(call, vjp) if vjp is not None else _with_jvp(call, jvp)

    @functools.wraps(fun)
    def on_arrays(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            bound = inspect.signature(fun).bind(*args, **kwargs)
            args, kwargs = bound.args, bound.kwargs
            if kwargs:
                raise TypeError(
                    f"{call.name}: arguments must be positional, got the keyword-only {', '.join(kwargs)}; bind these with functools.partial"
                )
        leaves, tree = jax.tree.flatten(args, is_leaf=is_array)
        data = [_plain(leaf, call.name) for leaf in leaves]
        results = run(*jax.tree.unflatten(tree, data))
        if not any(map(is_array, leaves)):
            return results
        return jax.tree.map(lambda leaf: Dense.make((leaf,)), results)

    return on_arrays


def _plain(value: Any, name: str) -> jax.Array:
    """Convert an argument to an array of JAX."""
    if isinstance(value, Array):
        return densified(value, name).data
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}: arguments must be arrays, numbers, or pytrees of these, got {type(value).__name__}; bind other arguments with "
            "functools.partial"
        ) from None


class _Layout(NamedTuple):
    """Tree structures of arguments and result of a call, and the flat list of shapes and data types of the results."""

    tree: Any
    result_tree: Any
    results: tuple[jax.ShapeDtypeStruct, ...]


class _HostCall:
    """A call of the host function with arrays of JAX, without derivatives."""

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
        """Return the flat tuple of shapes and data types of the results, and their tree."""
        result = self.result
        if callable(result):
            result = result(*jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), args))
        leaves, tree = jax.tree.flatten(result, is_leaf=_has_shape)
        for leaf in leaves:
            if not _has_shape(leaf):
                raise TypeError(
                    f"{self.name}: the leaves of result must have a shape and a dtype, such as jax.ShapeDtypeStruct, got "
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
        """Call the function, and return its results as a flat list."""
        values, given = jax.tree.flatten(self.fun(*jax.tree.unflatten(layout.tree, arrays)))
        if given != layout.result_tree:
            raise ValueError(
                f"{self.name} must return the pytree that result specifies, {layout.result_tree}, got {given}"
            )
        return [self._fitting(v, batch + r.shape, r.dtype) for v, r in zip(values, layout.results, strict=True)]

    def _fitting(self, value: Any, shape: Shape, dtype: np.dtype) -> np.ndarray:
        value = np.asarray(value)
        if value.shape != shape:
            raise ValueError(
                f"{self.name} must return an array of the shape that result specifies, {shape}, got {value.shape}"
            )
        if value.dtype != dtype and not np.can_cast(value.dtype, dtype, "same_kind"):
            raise ValueError(
                f"{self.name} must return an array of the dtype that result specifies, {dtype}, got {value.dtype}"
            )
        fitting: np.ndarray = value.astype(dtype, copy=False)
        return fitting


def _has_shape(value: object) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


# ---- derivatives ------------------------------------------------------------------------------------------------------


def _with_vjp(call: _HostCall, rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with a reverse-mode derivative."""
    run = jax.custom_vjp(call)

    def forward(*args: Any) -> tuple[Any, tuple[tuple[Any, ...], Any]]:
        result = run(*args)  # not `call`, so that higher derivatives use the rule, too
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
    """Return the function with a forward-mode derivative; without a rule, differentiation raises."""
    run = jax.custom_jvp(call)

    @run.defjvp
    def _run_jvp(args: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        if rule is None:
            raise TypeError(
                f"{call.name} has no derivative, because host_function got no rule; pass vjp= or jvp=, or wrap the arguments in "
                "jax.lax.stop_gradient"
            )
        result = run(*args)
        change = rule(args, result, jax.tree.map(_without_integers, args, tangents))
        return result, _like(result, change, f"{call.name}: jvp")

    return run


def _without_integers(value: Any, derivative: Any) -> Any:
    """Return a tangent or cotangent, or None if the value is an integer or a boolean."""
    return derivative if jnp.issubdtype(value.dtype, jnp.inexact) else None


def _like(values: Any, derivatives: Any, name: str) -> Any:
    """Convert the result of a rule to the pytree, shapes and data types of `values`."""
    tree: Any
    leaves, tree = jax.tree.flatten(values)
    try:
        given = [None] * len(leaves) if derivatives is None else tree.flatten_up_to(derivatives)
    except ValueError as error:
        raise ValueError(
            f"{name} returned another pytree than {tree}, the pytree of the differentiated values: {error}"
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
        raise TypeError(f"{name} must return an array for each array, got {type(derivative).__name__}") from None
    if derivative.shape != value.shape:
        raise ValueError(f"{name} must return a derivative of shape {value.shape}, got {derivative.shape}")
    result: jax.Array = derivative.astype(value.dtype)
    return result
