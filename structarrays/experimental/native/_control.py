"""Loops, conditions and `vmap` of JAX on structured arrays: carried values and results get one structure.

The functions of the user receive structured arrays, and JAX's own loops and conditions run on the parameters. Only the
structures are widened here, by the same code as under `structured`.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import TYPE_CHECKING, Any

import jax

from ..._core.array.base import Array, is_array
from ..._core.dispatch.contexts import densify
from ..._core.dispatch.recording import unrecorded
from ...transform.calculus import spread
from ...transform.calculus import vmap as map_any_axis
from ...transform.control_flow import fixpoint, sliceable
from ...transform.interpreter import abstract
from ...transform.rules import plain
from ...transform.structured import closed_over
from ...transform.widening import join_targets, target_of, widened
from ._calls import ON
from ._jax import LOOPS, is_called_by_jax

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Function = Callable[..., Any]
    Rule = Callable[[Mapping[str, Any]], Mapping[str, Any]]


_INTERNAL = ("structarrays._", "structarrays.transform.", LOOPS)


def _replacement(function: Function, functions: Callable[[Mapping[str, Any]], Sequence[Any]], rule: Rule) -> Function:
    """Return a loop or condition for native calls: `rule` changes the arguments if structured arrays are involved.

    `functions` returns the functions of the user among the arguments. Structured arrays that they use count, too.
    """
    signature = inspect.signature(function)

    def native(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)  # JAX reports what is wrong
        users = functions(bound.arguments)
        if users and all(map(_is_internal, users)):
            return function(*args, **kwargs)  # everything has been widened
        if not (_has_structured((args, kwargs)) or any(map(_uses_structured, users))):
            return function(*args, **kwargs)
        bound.arguments.update(rule(bound.arguments))
        return function(*bound.args, **bound.kwargs)

    return native


def concerns(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Return whether native calls are on: functions of the user may use structured arrays that are not arguments."""
    return bool(ON.value)


def _has_structured(tree: Any) -> bool:
    return any(isinstance(leaf, Array) for leaf in jax.tree.leaves(tree, is_leaf=is_array))


def _is_internal(function: Any) -> bool:
    """Return whether a function belongs to a rule of `structured`, or to a loop of JAX that consists of another loop."""
    return str(getattr(function, "__module__", "")).startswith(_INTERNAL)


def _uses_structured(function: Any) -> bool:
    return any(isinstance(value, Array) for value in closed_over(function))


def _flat(tree: Any) -> tuple[list[Any], Any]:
    return jax.tree.flatten(tree, is_leaf=is_array)


def _target(value: Any) -> Any:
    return target_of(value) if isinstance(value, Array) else abstract(value)


def _structures(function: Function, *operands: Any) -> Any:
    """Return the results of a function as targets, without computing."""
    with unrecorded(), densify("allow", limit=sys.maxsize):
        return jax.eval_shape(function, *operands)


def _widen(values: Any, targets: Sequence[Any]) -> Any:
    """Convert the leaves of a pytree to their targets; leaves that are structured in no case do not change."""
    leaves, tree = _flat(values)
    if len(leaves) != len(targets):
        return values  # JAX reports the difference
    return tree.unflatten(
        widened(leaf, target) if isinstance(leaf, Array) or isinstance(target, Array) else leaf
        for leaf, target in zip(leaves, targets, strict=True)
    )


def _joined(branches: Sequence[Function], operands: Sequence[Any]) -> list[Function]:
    """Return branches whose results have the narrowest structures that contain the results of all branches."""
    found = [_flat(_structures(branch, *operands)) for branch in branches]
    targets, tree = found[0]
    for others, other_tree in found[1:]:
        if other_tree != tree:
            return list(branches)  # JAX reports the difference
        targets = [
            join_targets(x, y) if isinstance(x, Array) or isinstance(y, Array) else x
            for x, y in zip(targets, others, strict=True)
        ]

    def widening(branch: Function) -> Function:
        return functools.wraps(branch)(lambda *values: _widen(branch(*values), targets))

    return list(map(widening, branches))


def _carried(init: Any, step: Callable[[Any], Any]) -> tuple[Any, list[Any]]:
    """Return the start of a loop in structures that contain the carried values of all steps, and these structures.

    `step` returns the structures after a step with carried values of given structures.
    """
    leaves, tree = _flat(init)

    def after(targets: list[Any]) -> list[Any]:
        found, found_tree = _flat(step(tree.unflatten(targets)))
        return found if found_tree == tree else targets  # JAX reports the difference

    targets = fixpoint(list(map(_target, leaves)), after)
    return _widen(init, targets), targets


# ---- conditions ------------------------------------------------------------------------------------------------------


def _operands(given: Mapping[str, Any]) -> Sequence[Any]:
    return (given["operand"],) if "operand" in given else given.get("operands", ())


def on_cond(cond: Function) -> Function:
    """Return `jax.lax.cond` for native calls."""

    def branches(given: Mapping[str, Any]) -> Sequence[Any]:
        return given["true_fun"], given["false_fun"]

    def rule(given: Mapping[str, Any]) -> Mapping[str, Any]:
        true_fun, false_fun = branches(given)
        if not (callable(true_fun) and callable(false_fun)):
            return {}  # the old order of arguments
        true_fun, false_fun = _joined((true_fun, false_fun), _operands(given))
        return {"pred": plain(given["pred"], "cond"), "true_fun": true_fun, "false_fun": false_fun}

    return _replacement(cond, branches, rule)


def on_switch(switch: Function) -> Function:
    """Return `jax.lax.switch` for native calls."""

    def rule(given: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"index": plain(given["index"], "switch"), "branches": _joined(given["branches"], _operands(given))}

    return _replacement(switch, lambda given: given["branches"], rule)


def on_platform_dependent(platform_dependent: Function) -> Function:
    """Return `jax.lax.platform_dependent` for native calls."""

    def named(given: Mapping[str, Any]) -> dict[str, Any]:
        default = {} if given.get("default") is None else {"default": given["default"]}
        return {**given.get("per_platform", {}), **default}

    def rule(given: Mapping[str, Any]) -> Mapping[str, Any]:
        before = named(given)
        after = dict(zip(before, _joined(list(before.values()), given.get("args", ())), strict=True))
        default = {"default": after.pop("default")} if "default" in after else {}
        return {"per_platform": after, **default}

    return _replacement(platform_dependent, lambda given: list(named(given).values()), rule)


# ---- loops -----------------------------------------------------------------------------------------------------------


def _slices(xs: Any) -> Any:
    """Prepare values over which a loop runs: a stack is sliced along its batch axis, a matrix into dense rows."""
    return jax.tree.map(lambda v: sliceable(v) if isinstance(v, Array) else v, xs, is_leaf=is_array)


def _is_pair(result: Any) -> bool:
    """Return whether a result is what the body of a scan must return; JAX reports other results."""
    return isinstance(result, (tuple, list)) and len(result) == 2


def on_scan(scan: Function) -> Function:
    """Return `jax.lax.scan` for native calls."""

    def rule(given: Mapping[str, Any]) -> Mapping[str, Any]:
        f, xs = given["f"], _slices(given.get("xs"))
        one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(jax.numpy.shape(leaf)[1:], jax.typeof(leaf).dtype), xs)

        def step(carry: Any) -> Any:
            result = _structures(f, carry, one)
            return result[0] if _is_pair(result) else carry

        init, targets = _carried(given["init"], step)

        @functools.wraps(f)
        def body(carry: Any, x: Any) -> Any:
            result = f(carry, x)
            return (_widen(result[0], targets), result[1]) if _is_pair(result) else result

        return {"f": body, "init": init, "xs": xs}

    return _replacement(scan, lambda given: (given["f"],), rule)


def on_map(function: Function) -> Function:
    """Return `jax.lax.map` for native calls."""
    return _replacement(function, lambda given: (), lambda given: {"xs": _slices(given["xs"])})


def on_while_loop(while_loop: Function) -> Function:
    """Return `jax.lax.while_loop` for native calls."""

    def functions(given: Mapping[str, Any]) -> Sequence[Any]:
        return given["cond_fun"], given["body_fun"]

    def rule(given: Mapping[str, Any]) -> Mapping[str, Any]:
        goes_on, body = functions(given)
        init, targets = _carried(given["init_val"], lambda carry: _structures(body, carry))
        return {
            "cond_fun": functools.wraps(goes_on)(lambda carry: plain(goes_on(carry), "while_loop")),
            "body_fun": functools.wraps(body)(lambda carry: _widen(body(carry), targets)),
            "init_val": init,
        }

    return _replacement(while_loop, functions, rule)


def on_fori_loop(fori_loop: Function) -> Function:
    """Return `jax.lax.fori_loop` for native calls."""

    def rule(given: Mapping[str, Any]) -> Mapping[str, Any]:
        body = given["body_fun"]
        init, targets = _carried(given["init_val"], lambda carry: _structures(body, given["lower"], carry))
        return {"body_fun": functools.wraps(body)(lambda i, carry: _widen(body(i, carry), targets)), "init_val": init}

    return _replacement(fori_loop, lambda given: (given["body_fun"],), rule)


# ---- vmap ------------------------------------------------------------------------------------------------------------


def on_vmap(vmap: Function) -> Function:
    """Return `jax.vmap` for native calls: an axis of an array is an axis of its value, not of its parameters."""

    def native(fun: Any, in_axes: Any = 0, out_axes: Any = 0, *rest: Any, **options: Any) -> Any:
        mapped = vmap(fun, in_axes, out_axes, *rest, **options)
        # JAX itself maps over parameters, in `jax.jacfwd` for example. Between the caller and this frame there is one more.
        if rest or not options.keys() <= {"axis_name", "axis_size"} or is_called_by_jax(2) or _is_internal(fun):
            return mapped

        moves = any(axis for axis in jax.tree.leaves(out_axes))
        general = map_any_axis(fun, in_axes, out_axes, **options)

        @functools.wraps(fun)
        def of_arrays(*args: Any, **kwargs: Any) -> Any:
            if not (ON.value and (_has_structured((args, kwargs)) or _uses_structured(fun))):
                return mapped(*args, **kwargs)
            args, kwargs = _with_dense_rows(in_axes, args, kwargs)
            return (general if moves else mapped)(*args, **kwargs)

        return of_arrays

    return native


def _with_dense_rows(in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Return arguments of a mapped function: arrays of which a core axis is mapped become dense."""
    axes = tuple(in_axes) if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
    try:
        places = spread((axes, 0 if kwargs else {}), (args, kwargs), "in_axes")
    except ValueError:
        return args, kwargs  # JAX reports it, or the axes name parameters
    tree: Any
    leaves, tree = jax.tree.flatten((args, kwargs), is_leaf=is_array)
    if len(leaves) != len(places):
        return args, kwargs
    prepared: tuple[Any, Any] = tree.unflatten(
        plain(leaf, "vmap") if isinstance(leaf, Array) and axis is not None and _is_core(leaf, axis) else leaf
        for leaf, axis in zip(leaves, places, strict=True)
    )
    return prepared


def _is_core(x: Array, axis: int) -> bool:
    return axis % max(x.ndim, 1) >= len(x.batch_shape)
