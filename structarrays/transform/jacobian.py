"""`jacobian`, `hessian` and `linearize`: derivatives as structured arrays (docs/how_to/jacobians.md)."""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from .._core.array.base import Array, is_array
from .._core.array.dense import Dense
from .._core.array.operands import densify
from .._core.jax_internals.traces import is_eager

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Mode: TypeAlias = Literal["auto", "forward", "reverse"]

_ARRAYS = (jax.Array, np.ndarray, np.generic, bool, int, float, complex)

_MODES = ("auto", "forward", "reverse")


def jacobian(
    fun: Callable[..., Any],
    argnums: int | tuple[int, ...] | list[int] = 0,
    mode: Mode = "auto",
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian matrix of a function as a structured array.

    Parameters
    ----------
    fun : callable
        Function of arrays, written with `jax.numpy` or this namespace. Its value is an array or a pytree of arrays.
    argnums : int or tuple of int, default 0
        Positions of the arguments with respect to which to differentiate: arrays, or pytrees of arrays.
    mode : {"auto", "forward", "reverse"}, default "auto"
        Which derivative of the program is used. Both have the same sparsity pattern. ``"auto"`` uses the forward mode, and
        the reverse mode if a function in the program has a custom derivative in this mode only (`jax.custom_vjp`).
    has_aux : bool, default False
        Whether `fun` returns a pair, of which only the first element is differentiated.
    holomorphic : bool, default False
        Whether `fun` is complex and holomorphic.

    Returns
    -------
    callable
        A function with the arguments of `fun`. It returns the Jacobian: an array of shape ``(m, n)`` for a value of m
        elements and an argument of n elements. Arrays of several dimensions are flattened in row-major order, and an
        array without dimensions has no dimension in the result. The result is a `Diagonal`, `Banded`, `BlockDiagonal`,
        `BlockBanded`, `Sparse`, `Triangular` or `Dense` array. Pytrees lead to nested pytrees as with `jax.jacobian`: of the
        value, then of the arguments. With `has_aux` the function returns a pair of this and the second element of the
        value.

    Raises
    ------
    TypeError
        If `fun` is not callable or `argnums` is not an integer or a tuple. When the returned function is called: if
        `argnums` is out of range, or an argument or the value is not floating-point.
    ValueError
        If `mode` is misspelled.
    DensifyError
        When the returned function is called: if the derivative of a part of the program is dense, and the policy of
        `densify` forbids it or it is too large.

    Notes
    -----
    JAX computes the derivative as a program that is linear in the tangent. This function runs the linear program with an
    identity matrix whose columns are stored sparsely: for each intermediate value a static sparsity pattern and the coefficients.
    The pattern comes from the program and not from values, so it is the same for every argument. It is exact for
    arithmetic, slices, padding, concatenation, reshaping, constant indices, convolutions, sums and products of arrays. No
    colouring is needed, and ``O(nnz)`` coefficients are computed.

    Both branches of `jnp.where` and `lax.cond` are in the pattern. A loop has the union of the patterns of its steps. A primitive
    without a rule (sorting, FFT, factorisations) densifies under the policy of `densify`; `explain` shows the primitive.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import structarrays as sa
    >>> def residual(u):
    ...     u = jnp.pad(u, 1)
    ...     return u[2:] - 2.0 * u[1:-1] + u[:-2] - u[1:-1] ** 3
    >>> sa.jacobian(residual)(jnp.ones(5)).offsets
    (-1, 0, 1)
    >>> sa.jacobian(jnp.sin)(jnp.zeros(3))
    Diagonal([1., 1., 1.], shape=(3, 3), dtype=float64)
    """
    numbers = _check_arguments("jacobian", fun, argnums, mode)

    @functools.wraps(fun)
    def jacobian_of_fun(*args: Any, **kwargs: Any) -> Any:
        _, result, aux = _differentiated("jacobian", fun, numbers, mode, has_aux, holomorphic, args, kwargs)
        return (result, aux) if has_aux else result

    return jacobian_of_fun


def hessian(
    fun: Callable[..., Any],
    argnums: int | tuple[int, ...] | list[int] = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the Hessian matrix of a function as a structured array.

    Parameters
    ----------
    fun : callable
        Function of arrays whose value is an array without dimensions.
    argnums, has_aux, holomorphic
        The same as for `jacobian`.

    Returns
    -------
    callable
        A function with the arguments of `fun`. It returns the Hessian: an array of shape ``(n, n)`` for an argument of
        n elements, with the structure that `jacobian` finds for the gradient. With several arguments it returns nested
        pytrees, as `jax.hessian` does. With `has_aux` it returns a pair of this and the second element of the value.

    Raises
    ------
    TypeError
        As for `jacobian`, and if the value of `fun` has dimensions.
    DensifyError
        As for `jacobian`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import structarrays as sa
    >>> def energy(u):
    ...     return jnp.sum((u[1:] - u[:-1]) ** 2) + jnp.sum(u**4)
    >>> sa.hessian(energy)(jnp.ones(4)).to_dense()
    Dense([[14., -2.,  0.,  0.],
           [-2., 16., -2.,  0.],
           [ 0., -2., 16., -2.],
           [ 0.,  0., -2., 14.]], dtype=float64)
    """
    numbers, single = _check_arguments("hessian", fun, argnums, "forward")

    @functools.wraps(fun)
    def hessian_of_fun(*args: Any, **kwargs: Any) -> Any:
        def scalar(*args: Any, **kwargs: Any) -> Any:
            result = fun(*args, **kwargs)
            value, aux = result if has_aux else (result, None)
            value = _plain(value)
            if jnp.shape(value) != ():
                raise TypeError(
                    f"hessian: fun must return an array without dimensions, got shape {jnp.shape(value)}; "
                    "reduce it, for example with sum"
                )
            _check_float("hessian", value, "the value of fun")
            return value, aux

        chosen = tuple(_position("hessian", args, i) for i in numbers)
        _check_differentiable("hessian", [args[i] for i in chosen], holomorphic)
        gradient = jax.grad(scalar, chosen[0] if single else chosen, has_aux=True, holomorphic=holomorphic)
        _, result, aux = _differentiated(
            "hessian", gradient, (chosen, single), "forward", True, holomorphic, args, kwargs
        )
        return (result, aux) if has_aux else result

    return hessian_of_fun


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return the value of a function and its Jacobian matrix as a structured array.

    Parameters
    ----------
    fun : callable
        Function of arrays, written with `jax.numpy` or this namespace.
    *primals : array or pytree of array
        The arguments at which to linearize.
    has_aux : bool, default False
        Whether `fun` returns a pair, of which only the first element is differentiated.

    Returns
    -------
    value : array or pytree of array
        The value of `fun`, as `fun` returns it.
    jacobian : Array
        The Jacobian matrix, as from `jacobian`; a tuple of one matrix for each argument if there are several. `jax.linearize`
        returns a function here: its value for a tangent ``t`` is ``jacobian @ t``, for a vector.
    aux : object
        The second element that `fun` returns; only with `has_aux`.

    Raises
    ------
    TypeError
        If `fun` is not callable, if there is no argument, or as for `jacobian`.
    DensifyError
        As for `jacobian`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import structarrays as sa
    >>> value, J = sa.linearize(lambda x: x[1:] * x[:-1], jnp.asarray([1.0, 2.0, 3.0]))
    >>> type(J).__name__
    'Banded'
    >>> J @ jnp.ones(3)
    Array([3., 5.], dtype=float64)
    """
    if not primals:
        raise TypeError("linearize: primals must contain at least one argument of fun, got none")
    argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    numbers = _check_arguments("linearize", fun, argnums, "auto")
    complex_valued = any(jnp.issubdtype(_dtype(leaf), jnp.complexfloating) for leaf in jax.tree.leaves(primals))
    value, result, aux = _differentiated("linearize", fun, numbers, "auto", has_aux, complex_valued, primals, {})
    return (value, result, aux) if has_aux else (value, result)


# ---- arguments -------------------------------------------------------------------------------------------------------


def _check_arguments(name: str, fun: Any, argnums: Any, mode: str) -> tuple[tuple[int, ...], bool]:
    if not callable(fun):
        raise TypeError(f"{name}: fun must be a function, got {type(fun).__name__}; pass its arguments to the result")
    if mode not in _MODES:
        raise ValueError(f"{name}: mode must be one of {', '.join(map(repr, _MODES))}, got {mode!r}")
    single = not isinstance(argnums, (tuple, list))
    try:
        numbers = tuple(operator.index(i) for i in ((argnums,) if single else argnums))
    except TypeError:
        raise TypeError(
            f"{name}: argnums must be an integer or a tuple of integers, got {argnums!r}; count the positional arguments from 0"
        ) from None
    if not numbers:
        raise TypeError(f"{name}: argnums must name at least one argument, got {argnums!r}")
    return numbers, single


def _position(name: str, args: Sequence[Any], number: int) -> int:
    if not -len(args) <= number < len(args):
        raise TypeError(
            f"{name}: argnums must name positional arguments, got {number} for a call with {len(args)}; "
            "pass the differentiated arguments by position"
        )
    return number % len(args)


def _dtype(leaf: Any) -> np.dtype:
    return leaf.dtype if isinstance(leaf, Array) else jnp.result_type(leaf)


def _check_float(name: str, value: Any, what: str) -> None:
    if not jnp.issubdtype(_dtype(value), jnp.inexact):
        raise TypeError(f"{name}: {what} must be floating-point, got {_dtype(value)}; convert it with astype")


def _check_differentiable(name: str, arguments: Sequence[Any], holomorphic: bool) -> None:
    """Raise unless all leaves of the differentiated arguments are dense arrays of floating-point numbers."""
    for argument in arguments:
        for leaf in jax.tree.leaves(argument, is_leaf=is_array):
            if isinstance(leaf, Array) and type(leaf) is not Dense:
                raise TypeError(
                    f"{name}: the differentiated arguments must be dense arrays, got a {type(leaf).__name__} of shape {leaf.shape}; "
                    "differentiate with respect to its parameters, or use sa.grad"
                )
            if not isinstance(leaf, Array) and not isinstance(leaf, _ARRAYS):
                raise TypeError(
                    f"{name}: the differentiated arguments must be arrays or pytrees of arrays, got {type(leaf).__name__}"
                )
            _check_float(name, leaf, "the differentiated argument")
            if jnp.issubdtype(_dtype(leaf), jnp.complexfloating) and not holomorphic:
                raise TypeError(
                    f"{name}: the differentiated arguments must be real unless holomorphic=True, got {_dtype(leaf)}; "
                    "pass holomorphic=True, or differentiate with respect to the real and the imaginary part"
                )
    if not jax.tree.leaves(arguments, is_leaf=is_array):
        raise TypeError(f"{name}: the differentiated arguments must contain arrays, got none")


def _plain(value: Any) -> Any:
    """Return a value of a function as an array of JAX."""
    return densify(value, "jacobian").data if isinstance(value, Array) else value


# ---- the derivative ----------------------------------------------------------------------------------------------------


@dataclass
class _Flat:
    """A function of flat lists of arrays."""

    function: Any
    given: list[Any]
    """The differentiated leaves, as arrays of JAX."""
    tree: Any
    """The tree of the differentiated arguments."""
    others: list[Any]
    """The other leaves that are arrays of JAX: they are unknown when the pattern is determined."""
    result: Any = None
    """The tree of the value, and the structure of each leaf."""
    aux: Any = None


def _flattened(
    name: str, fun: Any, numbers: Sequence[int], has_aux: bool, holomorphic: bool, args: Sequence[Any], kwargs: Any
) -> _Flat:
    chosen = [_position(name, args, i) for i in numbers]
    if len(set(chosen)) != len(chosen):
        raise TypeError(f"{name}: argnums must be distinct, got {tuple(numbers)} for a call with {len(args)} arguments")
    wanted = [args[i] for i in chosen]
    _check_differentiable(name, wanted, holomorphic)
    leaves, tree = jax.tree.flatten(wanted, is_leaf=is_array)
    given = [leaf.data if isinstance(leaf, Dense) else jnp.asarray(leaf) for leaf in leaves]
    is_dense = [isinstance(leaf, Dense) for leaf in leaves]
    rest = [None if i in chosen else a for i, a in enumerate(args)]
    other_leaves, other_tree = jax.tree.flatten((rest, kwargs))
    dynamic = [i for i, leaf in enumerate(other_leaves) if isinstance(leaf, jax.Array)]
    flat = _Flat(None, given, tree, [other_leaves[i] for i in dynamic])

    def function(given: Sequence[Any], others: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        merged = list(other_leaves)
        for i, value in zip(dynamic, others, strict=True):
            merged[i] = value
        arguments, keywords = jax.tree.unflatten(other_tree, merged)
        wrapped = [Dense.make((g,)) if dense else g for g, dense in zip(given, is_dense, strict=True)]
        for i, value in zip(chosen, jax.tree.unflatten(tree, wrapped), strict=True):
            arguments[i] = value
        result = fun(*arguments, **keywords)
        if has_aux and not (isinstance(result, tuple) and len(result) == 2):
            raise TypeError(
                f"{name}: fun must return a pair (value, aux) with has_aux=True, got {type(result).__name__}"
            )
        value, aux = result if has_aux else (result, None)
        values, value_tree = jax.tree.flatten(value, is_leaf=is_array)
        for leaf in values:
            if not isinstance(leaf, Array) and not isinstance(leaf, _ARRAYS):
                raise TypeError(f"{name}: fun must return arrays or pytrees of arrays, got {type(leaf).__name__}")
            _check_float(name, leaf, "the value of fun")
        aux_leaves, aux_tree = jax.tree.flatten(aux)
        flat.result = value_tree, [isinstance(leaf, Array) for leaf in values]
        flat.aux = aux_tree
        return [jnp.asarray(_plain(leaf)) for leaf in values], aux_leaves

    flat.function = function
    return flat


def _differentiated(
    name: str,
    fun: Any,
    numbers: tuple[tuple[int, ...], bool],
    mode: Mode,
    has_aux: bool,
    holomorphic: bool,
    args: Sequence[Any],
    kwargs: Any,
) -> tuple[Any, Any, Any]:
    """Return the value of a function, its Jacobian, and the auxiliary result."""
    # Imported late, since they need parts of JAX that take as long to import as the whole package.
    from . import rules_linear, rules_linear_control, rules_linear_sums  # noqa: F401 (they register rules)
    from .linear_programs import NeedsReverseModeError

    which, single = numbers
    flat = _flattened(name, fun, which, has_aux, holomorphic, args, kwargs)
    if mode == "reverse":
        values, aux, matrices = _reverse(name, flat)
    else:
        try:
            values, aux, matrices = _forward(flat)
        except NeedsReverseModeError:
            if mode == "forward":
                raise TypeError(
                    f"{name}: mode must be 'reverse' or 'auto' for a function with a jax.custom_vjp, which has no derivative "
                    "in forward mode, got 'forward'"
                ) from None
            values, aux, matrices = _reverse(name, flat)
    tree, were_arrays = flat.result
    rows = []
    for row in matrices:
        arguments = jax.tree.unflatten(flat.tree, row)
        rows.append(arguments[0] if single else tuple(arguments))
    result = jax.tree.unflatten(tree, rows)
    value = [Dense.make((v,)) if was else v for v, was in zip(values, were_arrays, strict=True)]
    return jax.tree.unflatten(tree, value), result, jax.tree.unflatten(flat.aux, aux)


def _shapes(arrays: Sequence[Any]) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(jnp.shape(a), jnp.result_type(a)) for a in arrays]


def _is_complex(x: Any) -> bool:
    return bool(jnp.issubdtype(x.dtype, jnp.complexfloating))


def _forward(flat: _Flat) -> tuple[list[Any], list[Any], list[list[Array]]]:
    """Return the values, the auxiliary results, and the Jacobians of each value with respect to each argument."""
    count = len(flat.given)

    def pushed(*inputs: Any) -> tuple[Any, Any, Any]:
        given, tangents, others = inputs[:count], inputs[count : 2 * count], inputs[2 * count :]
        return jax.jvp(lambda *given: flat.function(given, others), given, tangents, has_aux=True)

    shapes = _shapes(flat.given)
    program, structure = jax.make_jaxpr(pushed, return_shape=True)(*shapes, *shapes, *_shapes(flat.others))
    values, matrices, aux = _evaluated(program, structure, flat, shapes, False)
    return values, aux, matrices


def _reverse(name: str, flat: _Flat) -> tuple[list[Any], list[Any], list[list[Array]]]:
    """Do the same with the derivative in reverse mode."""
    count = len(flat.given)
    shapes, others = _shapes(flat.given), _shapes(flat.others)
    results = jax.eval_shape(lambda given, others: flat.function(given, others)[0], shapes, others)
    if any(_is_complex(r) for r in results) and not all(map(_is_complex, shapes)):
        raise TypeError(
            f"{name}: mode must be 'forward' for a complex value of real arguments, got the reverse mode; use the forward mode, "
            "or return the real and the imaginary part"
        )

    def pulled(*inputs: Any) -> tuple[Any, Any, Any]:
        given, rest = inputs[:count], inputs[count:]
        cotangents, others = list(rest[: len(results)]), rest[len(results) :]
        values, pull, aux = jax.vjp(lambda *given: flat.function(given, others), *given, has_aux=True)
        return values, list(pull(cotangents)), aux

    program, structure = jax.make_jaxpr(pulled, return_shape=True)(*shapes, *_shapes(results), *others)
    values, matrices, aux = _evaluated(program, structure, flat, _shapes(results), True)
    return values, aux, [list(row) for row in zip(*matrices, strict=True)]


class _Evaluation:
    """The evaluation of a program that is linear in some inputs, which returns all results and matrices.

    Attributes
    ----------
    program : jax.extend.core.ClosedJaxpr
        The program. Its inputs are arrays, the linear inputs, and other arrays. Its results are a pytree of values, linear results,
        and others.
    structure : tuple
        The shapes of the results.
    inputs : list of jax.ShapeDtypeStruct
        The linear inputs.
    transposed : bool
        Whether the matrices are transposed.
    """

    def __init__(self, program: Any, structure: Any, inputs: Sequence[Any], transposed: bool) -> None:
        from .._core.jax_internals.comparison import changeable_contents

        self.program, self.structure, self.inputs, self.transposed = program, structure, inputs, transposed
        self.compiled = jax.jit(self)
        self.contents = changeable_contents(program)

    def __call__(self, given: Sequence[Any], others: Sequence[Any]) -> tuple[list[Any], list[list[Array]], list[Any]]:
        from .linear_maps import LinearMap, Terms, identity
        from .linear_programs import LINEAR, Plain, value_of
        from .pattern_recognition import array_of

        sizes = [math.prod(s.shape) for s in self.inputs]
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        maps = [identity(s.shape, s.dtype, sum(sizes), b) for s, b in zip(self.inputs, starts, strict=True)]
        found = LINEAR.run(self.program, *map(Plain, given), *maps, *map(Plain, others))
        values, derivatives, aux = jax.tree.unflatten(jax.tree.structure(self.structure), found)
        matrices = []
        for x, like in zip(derivatives, self.structure[1], strict=True):
            # A result that does not depend on the linear inputs is zero.
            x = x if isinstance(x, LinearMap) else Terms(like.shape, sum(sizes), [], like.dtype)
            pairs = zip(starts, self.inputs, strict=True)
            matrices.append([array_of(x, start, s.shape, self.transposed) for start, s in pairs])
        return [jnp.asarray(value_of(v)) for v in values], matrices, [jnp.asarray(value_of(v)) for v in aux]

    def equals(self, other: _Evaluation) -> bool:
        """Return whether two evaluations certainly compute the same."""
        from .._core.jax_internals.comparison import same_program

        return (
            (self.inputs, self.transposed, self.contents, jax.tree.structure(self.structure))
            == (other.inputs, other.transposed, other.contents, jax.tree.structure(other.structure))
        ) and same_program(self.program, other.program)


_recent: list[_Evaluation] = []
"""The last evaluations that were compiled for eager calls."""


def _evaluated(
    program: Any, structure: Any, flat: _Flat, inputs: Sequence[Any], transposed: bool
) -> tuple[list[Any], list[list[Array]], list[Any]]:
    evaluation = _Evaluation(program, structure, inputs, transposed)
    if not is_eager():
        return evaluation(flat.given, flat.others)
    # The function has been traced again, since it may use other values from outside. Equal programs share compiled code.
    same = next((each for each in _recent if each.equals(evaluation)), evaluation)
    _recent[:] = [same, *(each for each in _recent if each is not same)][:16]
    results: tuple[list[Any], list[list[Array]], list[Any]] = same.compiled(flat.given, flat.others)
    return results
