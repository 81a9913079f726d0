"""`structured`: ordinary JAX code on structured arrays (docs/how_to/run_jax_code.md)."""

from __future__ import annotations

import functools
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from .._core.array.base import Array, is_array
from .._core.array.dense import Dense
from .._core.dispatch import explicit
from .._core.dispatch.call_arguments import is_hashable
from .._core.dispatch.recording import describe
from .._numerics.flags import of_user

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import CellType

_ARRAYS = (Array, jax.Array, np.ndarray, np.generic)


def structured(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Apply a function written for JAX arrays to structured arrays.

    Parameters
    ----------
    fun : callable
        Function written with `jax.numpy` and the rest of JAX; it need not know of structure. If it is a pytree, such as
        a module of Equinox, it may contain structured arrays.

    Returns
    -------
    callable
        A function with the arguments of `fun`, which may contain structured arrays. Its results are structured if the
        structure is kept, and otherwise JAX arrays.

    Raises
    ------
    TypeError
        When the returned function is called: if `fun` uses a structured array that is not among its arguments.
    DensifyError
        If an array must be densified against the policy of `densify`.

    Notes
    -----
    JAX traces the function with arrays of the same shapes and dtypes. Then each step is evaluated by the equivalent
    function of the namespace (`explain` and `record` show which). A step without an equivalent densifies its operands,
    under the policy of `densify`. The table in the guide shows which steps keep which structures.

    Like `jax.jit`, it traces once for each combination of structures, shapes and dtypes, and calls compiled code. It
    works inside and outside of JAX's transformations. Arguments that are not arrays, including Python scalars, are
    static: each new value is traced again.

    Structural zeros are exact: ``0 * inf`` is zero outside of the pattern (see `strong_zeros`). Singular linear systems
    give NaN, as under `jax.jit`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import structarrays as sa
    >>> @sa.structured
    ... def damped(A, x):
    ...     return jnp.tanh(A) @ x - x
    >>> damped(sa.Diagonal([0.0, 1.0]), jnp.asarray([1.0, 1.0]))
    Array([-1.        , -0.23840584], dtype=float64)
    >>> sa.structured(jnp.exp)(sa.Diagonal([0.0, 1.0])).background
    Array(1., dtype=float64)
    """
    if not callable(fun):
        raise TypeError(f"structured: fun must be a function, got {type(fun).__name__}")
    if not jax.tree_util.all_leaves([fun]):
        return functools.partial(structured(_called), fun)

    @functools.wraps(fun)
    def on_structured(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and all(isinstance(value, _ARRAYS) for value in args):
            return _run(_Call(fun, True), *args)
        leaves, tree = jax.tree.flatten((args, kwargs), is_leaf=is_array)
        dynamic = tuple(i for i, leaf in enumerate(leaves) if isinstance(leaf, _ARRAYS))
        static = tuple(None if i in dynamic else _static(leaf) for i, leaf in enumerate(leaves))
        try:
            hash(static)
        except TypeError:
            bad = next(leaf for leaf in leaves if not isinstance(leaf, _ARRAYS) and not is_hashable(leaf))
            raise TypeError(
                f"structured: arguments must be arrays, pytrees of arrays, or hashable, got {type(bad).__name__}"
            ) from None
        return _run(_Call(fun, False, tree, static), *(leaves[i] for i in dynamic))

    return on_structured


def _called(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return fun(*args, **kwargs)


def _static(value: Any) -> tuple[Any, ...]:
    """Return a key of an argument that is not an array; it distinguishes equal values: `True`, 1 and 1.0, and zeros of
    both signs.
    """
    return type(value), value, repr(value) if isinstance(value, float | complex) else None


class _Call(NamedTuple):
    """Static part of a call: the function, the structure of its arguments, and arguments that are not arrays."""

    fun: Any
    positional: bool  # whether all arguments are positional arrays: the fast path
    tree: Any = None
    static: tuple[Any, ...] = ()


@functools.partial(explicit.jit, static_argnums=0)
def _run(call: _Call, *values: Any) -> Any:
    # Imported late, since they need parts of JAX that take as long to import as the whole package.
    from . import programs
    from .interpreter import returned

    dynamic: Sequence[int]
    if call.positional:
        leaves, tree = jax.tree.flatten((values, {}), is_leaf=is_array)
        dynamic = range(len(leaves))
    else:
        tree, given = call.tree, iter(values)
        leaves = [next(given) if entry is None else entry[1] for entry in call.static]
        dynamic = [i for i, entry in enumerate(call.static) if entry is None]
    leaves = [leaf.data if type(leaf) is Dense else leaf for leaf in leaves]
    try:
        if not any(map(is_array, leaves)):
            args, kwargs = jax.tree.unflatten(tree, leaves)
            return returned(call.fun, of_user(call.fun)(*args, **kwargs))
        program, result = programs.trace(of_user(call.fun), leaves, tree, dynamic)
    except (TypeError, ValueError) as error:
        hint = _hint(call.fun, error)
        if hint is not None:
            error.add_note(hint)
        raise
    return _put_together(result, programs.run(program, *(leaves[i] for i in dynamic)), programs.plain)


def _put_together(tree: Any, results: Sequence[Any], plain: Callable[[Any, str], Any]) -> Any:
    """Return the results of a function; if it creates structured arrays, their parameters become arrays of JAX."""
    shallow = jax.tree.unflatten(tree, range(tree.num_leaves))
    inside = {i for x in jax.tree.leaves(shallow, is_leaf=is_array) if isinstance(x, Array) for i in jax.tree.leaves(x)}
    finished = [
        x if isinstance(x, Array) and i not in inside else plain(x, "structured") for i, x in enumerate(results)
    ]
    return jax.tree.unflatten(tree, finished)


def _hint(fun: Any, error: Exception) -> str | None:
    """Return a hint for a function that failed and uses an array from outside that JAX does not accept there."""
    name, held = getattr(fun, "__name__", "the function"), list(closed_over(fun))
    leaves = [leaf for leaf in jax.tree.leaves(held) if isinstance(leaf, jax.Array)]
    if isinstance(error, ValueError) and explicit.mesh_of(leaves) is not None:
        return (
            f"structured: {name} must get arrays on a mesh with explicit axes as arguments, but it uses one from outside; "
            "pass the array as an argument"
        )
    x = next((x for x in held if isinstance(x, Array)), None)
    if isinstance(error, TypeError) and x is not None:
        return (
            f"structured: {name} uses a structured array (a {describe(x)}) that is not among its arguments; "
            "pass it as an argument, since JAX does not accept structured arrays itself"
        )
    return None


def closed_over(fun: Any) -> Iterator[Any]:
    """Return the arrays that a function uses in addition to its arguments: from enclosing functions, and from its
    module.
    """
    held = [cell.cell_contents for cell in getattr(fun, "__closure__", None) or () if _is_filled(cell)]
    names = _global_names(getattr(fun, "__code__", None))
    held += [fun.__globals__[name] for name in names if name in fun.__globals__]
    for value in held:
        yield from jax.tree.leaves(value, is_leaf=is_array)


def _global_names(code: CodeType | None) -> set[str]:
    """Return the global names that a function and its inner functions use."""
    if code is None:
        return set()
    inner = [_global_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


def _is_filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
