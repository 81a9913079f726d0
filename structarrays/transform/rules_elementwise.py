"""Rules of `structured` for elementwise primitives.

They apply the namespace's rule for elementwise functions, with the primitive itself as the formula.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name

from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.array.operands import cast as cast_array
from .._core.assumptions import carried_by_sum
from .._core.dispatch.contexts import strong_zeros_policy
from .._core.dispatch.recording import active_log
from .._core.dispatch.registry import FUNCTIONS, REGISTERED
from .._core.dispatch.tracing import compiled_call
from .._core.families.elementwise_rule import absorbers, background_value, elementwise, map_entries
from .._core.families.join import is_zero_outside, structure
from .._core.jax_internals.equations import Literal, bind, checkpoint_label, high_level_name, parameters
from .._functions.searching import where
from .constant_patterns import CONSTANTS, LAZY, LU, Constant, Counter, Triangle, compared, counter
from .rules import array, call, cast, involved, is_special, rule, unwrapped
from .widening import join_targets, settling, target_of, widened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .._core.dispatch.registry import Kernel
    from .._core.typing import Result
    from .interpreter import Interpreter


class _Like(NamedTuple):
    """The properties of an elementwise primitive."""

    name: str  # of the equivalent function of the namespace for inexact dtypes
    zero: bool  # whether it maps zeros to zero
    absorbs: tuple[int, ...] = ()  # the operands in which a structural zero absorbs
    integers: str | None = None  # the equivalent function for integers, if different; "" if there is none
    booleans: str | None = None


_ZERO = {
    "abs": "abs", "asin": "asin", "asinh": "asinh", "atan": "atan", "atanh": "atanh", "ceil": "ceil", "conj": "conj",
    "expm1": "expm1", "floor": "floor", "imag": "imag", "log1p": "log1p", "neg": "negative", "real": "real",
    "sign": "sign", "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "square": "square", "tan": "tan", "tanh": "tanh",
    "cbrt": "", "erf": "", "erf_inv": "", "bessel_i1e": "", "population_count": "", "reduce_precision": "",
    "bitcast_convert_type": "",
}  # fmt: skip
_NOT_ZERO = {
    "acos": "acos", "acosh": "acosh", "cos": "cos", "cosh": "cosh", "exp": "exp", "is_finite": "isfinite", "log": "log",
    "log2": "log2",
    "bessel_i0e": "", "clz": "", "digamma": "", "erfc": "", "exp2": "", "lgamma": "",
    "logistic": "", "one_minus_square": "", "polynomial": "", "rsqrt": "",
}  # fmt: skip

LIKE = {
    **{primitive: _Like(name, True) for primitive, name in _ZERO.items()},
    **{primitive: _Like(name, False) for primitive, name in _NOT_ZERO.items()},
    "round": _Like("", True),
    "not": _Like("", False, integers="bitwise_invert", booleans="logical_not"),
    "add": _Like("add", True),
    "add_any": _Like("add", True),
    "sub": _Like("subtract", True),
    "mul": _Like("multiply", True, (0, 1)),
    "div": _Like("divide", False, (0,), integers=""),  # of integers: towards zero, unlike `floor_divide`
    "max": _Like("maximum", True),
    "min": _Like("minimum", True),
    "atan2": _Like("atan2", True),
    "complex": _Like("", True),
    "pow": _Like("", False),
    "rem": _Like("", False),
    "nextafter": _Like("nextafter", True),
    "eq": _Like("equal", False),
    "ne": _Like("not_equal", True),
    "lt": _Like("less", True),
    "le": _Like("less_equal", False),
    "gt": _Like("greater", True),
    "ge": _Like("greater_equal", False),
    "eq_to": _Like("", False),
    "lt_to": _Like("", True),
    "le_to": _Like("", False),
    "and": _Like("", True, (0, 1), integers="bitwise_and", booleans="logical_and"),
    "or": _Like("", True, integers="bitwise_or", booleans="logical_or"),
    "xor": _Like("", True, integers="bitwise_xor", booleans="logical_xor"),
    "shift_left": _Like("", True, integers="bitwise_left_shift"),
    "shift_right_arithmetic": _Like("", True, integers="bitwise_right_shift"),
    "shift_right_logical": _Like("", True),
    "clamp": _Like("", True),
    "integer_pow": _Like("", True),  # of a positive power
    "igamma": _Like("", False),
    "igammac": _Like("", False),
    "polygamma": _Like("", False),
    "zeta": _Like("", False),
    "regularized_incomplete_beta": _Like("", False),
}
"""The elementwise primitives. A test checks for each whether it maps zeros to zero."""


class _Elementwise:
    """A primitive with its parameters, in the form in which `elementwise` expects a function of the namespace."""

    def __init__(self, equation: Any, dtype: np.dtype) -> None:
        like = LIKE[equation.primitive.name]
        self.equation, self.zero, self.absorbs = equation, like.zero, like.absorbs
        if equation.primitive.name == "integer_pow":
            self.zero = parameters(equation)["y"] > 0
        if equation.primitive.name == "atan2" and dtype.kind == "c":
            self.zero = False
        other = {"b": like.booleans, "i": like.integers, "u": like.integers}.get(dtype.kind)
        self.name = like.name if other is None else other
        self.exact = dtype.kind in "biu"
        self.literals: Mapping[int, Any] = {}

    def formula(self, *data: Any) -> jax.Array:
        """Apply the primitive to plain arrays after broadcasting them."""
        operands: Any = data
        if len(data) > 1 and len({jnp.shape(x) for x in data}) > 1:
            operands = jnp.broadcast_arrays(*data)
        if self.literals:
            others = iter(operands)
            count = len(self.equation.invars)
            operands = [self.literals[i] if i in self.literals else next(others) for i in range(count)]
        result: jax.Array = bind(self.equation, operands)
        return result

    def choose(self, args: Sequence[Array]) -> Kernel[Any] | None:
        """Return the kernel of the namespace's function for these arrays, or None."""
        function = FUNCTIONS.get(self.name) if self.name else None
        return None if function is None else function.choose(args, {})


def elementwise_rule(interpreter: Interpreter, equation: Any, *values: Any) -> Result:
    """Apply an elementwise primitive to stored entries and background, in the join or meet of the structures."""
    if not involved(values):
        return _of_constants(interpreter, equation, values)
    primitive = equation.primitive.name
    if primitive == "bitcast_convert_type" and values[0].dtype.itemsize != equation.outvars[0].aval.dtype.itemsize:
        return NotImplemented  # the result has one dimension more or less
    quick = _entry_by_entry(equation, values) if active_log() is None else None
    if quick is not None:
        return quick
    triangle = _within_triangle(primitive, values)
    if triangle is not None:
        return triangle
    function = _Elementwise(equation, next(v for v in values if isinstance(v, Array)).dtype)
    arrays = [array(v) for v in values]
    if function.choose(arrays) is not None:
        with compiled_call():
            return unwrapped(FUNCTIONS[function.name].dispatch(*arrays))
    if any(x.stores_entries for x in arrays):
        arrays = _folded(function, equation, values, arrays)
    function.name = function.name or primitive
    log = active_log()
    if log is None:
        return unwrapped(_by_family(function, arrays))
    with log.event(function.name, arrays, "rule of elementwise") as event:
        return unwrapped(event.finish(_by_family(function, arrays)))


def _by_family(function: Any, arrays: list[Array]) -> Array:
    return carried_by_sum(function.name, arrays, elementwise(function, arrays, {}))


for _name in LIKE:
    rule(_name)(elementwise_rule)


class _HighLevel:
    """A result of an elementwise primitive of `jax.experimental.hijax`, in the form that `elementwise` expects.

    The formula is the function of `jax.numpy` that binds this primitive, so that JAX defines its derivatives.
    """

    zero, exact = True, False

    def __init__(self, name: str, formula: Callable[..., jax.Array]) -> None:
        self.name, self.formula = name, formula
        self.absorbs = (0,)


HIGH_LEVEL: dict[str, tuple[Callable[..., jax.Array], ...]] = {
    "Frexp": (lambda x: jnp.frexp(x)[0], lambda x: jnp.frexp(x)[1]),
    "Ldexp": (jnp.ldexp,),
}
"""The elementwise primitives of `jax.experimental.hijax`, with a formula for each result.

All of them map zero in the first operand to zero.
"""


def high_level_elementwise(interpreter: Interpreter, equation: Any, *values: Any) -> Result:
    """Apply an elementwise primitive of `jax.experimental.hijax` to stored entries and background."""
    name: Any = high_level_name(equation)
    arrays = [array(v) for v in values]
    operation: Any = _HighLevel  # instead of a `Function`
    results = [elementwise(operation(name.lower(), formula), arrays, {}) for formula in HIGH_LEVEL[name]]
    return [cast(unwrapped(x), v.aval.dtype) for x, v in zip(results, equation.outvars, strict=True)]


_backgrounds: dict[Any, bool | None] = {}
"""Cached results of `_has_background`, which takes as long as the primitive itself, by primitive and structures."""


def _entry_by_entry(equation: Any, values: Sequence[Any]) -> Array | None:
    """Handle the most frequent case: structured arrays of one static pattern, and scalars."""
    kinds: list[Any]
    arrays: list[Array]
    kinds, arrays = [], []
    for atom, value in zip(equation.invars, values, strict=True):
        if isinstance(value, Array):
            leaves, aux = value._value
            kinds.append((aux, value.background is None, leaves[0].dtype))
            arrays.append(value)
        elif type(atom) is Literal:
            kinds.append(str(value))
        elif isinstance(value, LAZY) or jnp.ndim(value):
            return None
        else:
            kinds.append(None)
    key = (equation.primitive, parameters(equation).get("y"), strong_zeros_policy.value, len(REGISTERED), *kinds)
    if key not in _backgrounds:
        if len(_backgrounds) > 10_000:
            _backgrounds.clear()
        _backgrounds[key] = _has_background(equation, values, arrays)
    has_background, first = _backgrounds[key], arrays[0]
    if has_background is None or (len(arrays) + kinds.count(None) > 1 and not _one_batch(first, arrays, kinds)):
        return None
    function: Any = _Elementwise(equation, first.dtype)
    function.literals = {i: v for i, v in enumerate(values) if not isinstance(v, Array)}
    background = function.formula(*map(background_value, arrays)) if has_background else None
    return map_entries(function, first, [x.entries for x in arrays], background, first.shape, {})


def _one_batch(first: Array, arrays: Sequence[Array], kinds: Sequence[Any]) -> bool:
    """Return whether all entries have one shape. Arrays next to a computed scalar must have no batch."""
    shape = first.batch_shape
    return all(x.batch_shape == shape for x in arrays[1:]) and not (shape and None in kinds)


def _has_background(equation: Any, values: Sequence[Any], arrays: list[Array]) -> bool | None:
    """Return whether the result has a background, or None if the operands' entries do not correspond one to one."""
    first = arrays[0]
    for x in arrays:
        if not x.stores_entries or not x.static_pattern or structure(x) != structure(first):
            return None
    function: Any = _Elementwise(equation, first.dtype)
    if function.name == "add" and first.assumptions:
        return None
    if function.choose([v if isinstance(v, Array) else _NUMBER for v in values]) is not None:
        return None
    others = [
        _NUMBER for atom, v in zip(equation.invars, values, strict=True) if not isinstance(v, Array) and _turns(atom, v)
    ]
    if not first.closed_under(function, [*arrays, *others]):
        return None
    if first.covers:
        return False
    bare = all(x.background is None for x in arrays)
    if absorbers(function, values):
        return False if bare else None
    numbers = {i: v for i, v in enumerate(values) if not isinstance(v, Array)}
    return not (bare and _keeps_zero(function, equation, numbers))


_NUMBER = Dense.make((np.zeros((), complex),))
"""A placeholder for a scalar that may be complex, where its value does not matter."""


def _turns(atom: Any, value: Any) -> bool:
    """Return whether a scalar may have an imaginary part."""
    return atom.aval.dtype.kind == "c" and not (isinstance(atom, Literal) and _is_real_number(value))


def _is_real_number(value: Any) -> bool:
    return not np.imag(value)


def _literals(equation: Any, numbers: Mapping[int, Any]) -> bool:
    return all(isinstance(equation.invars[i], Literal) for i in numbers)


def _keeps_zero(function: _Elementwise, equation: Any, numbers: Mapping[int, Any]) -> bool:
    """Return whether the primitive with these scalar operands is known to map zeros to zero.

    This is known only for scalars that are literals of the program.
    """
    if not numbers:
        return function.zero
    if not _literals(equation, numbers):
        return False
    dtypes = [atom.aval.dtype for atom in equation.invars]
    key = tuple((i, np.asarray(v).dtype, np.asarray(v).tobytes()) for i, v in numbers.items())
    return _maps_zero_to_zero(_Program(equation), key, tuple(dtypes))


class _Program:
    """An equation as a cache key: primitive and parameters."""

    def __init__(self, equation: Any) -> None:
        self.equation = equation
        self.key = (equation.primitive, tuple((k, str(v)) for k, v in parameters(equation).items()))

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: Any) -> bool:
        same: bool = self.key == other.key
        return same


@functools.lru_cache(4096)
def _maps_zero_to_zero(
    program: _Program, numbers: tuple[tuple[int, np.dtype, bytes], ...], dtypes: tuple[np.dtype, ...]
) -> bool:
    values = {i: np.frombuffer(data, dtype)[0] for i, dtype, data in numbers}
    with jax.ensure_compile_time_eval():
        operands = [jnp.asarray(values[i] if i in values else 0, dtype) for i, dtype in enumerate(dtypes)]
        return not np.asarray(bind(program.equation, operands)).astype(bool)


def _folded(function: _Elementwise, equation: Any, values: Sequence[Any], arrays: list[Array]) -> list[Array]:
    """Make scalar literals a part of the formula, and return the other operands.

    With the literals, the formula may be known to map zeros to zero.
    """
    numbers = {
        i: v
        for i, v in enumerate(values)
        if not is_special(v) and isinstance(equation.invars[i], Literal) and not jnp.ndim(v) and _is_real_number(v)
    }
    if not numbers or len(numbers) == len(values):
        return arrays
    function.zero = _keeps_zero(function, equation, numbers)
    function.literals = numbers
    kept = [i for i in range(len(values)) if i not in numbers]
    function.absorbs = tuple(kept.index(i) for i in function.absorbs if i in kept)
    return [arrays[i] for i in kept]


def _within_triangle(primitive: str, values: Sequence[Any]) -> Any:
    """Return the triangle of an array, for its product with a triangle of ones."""
    if primitive in ("mul", "and") and any(isinstance(v, Triangle) for v in values):
        x, y = values if isinstance(values[1], Triangle) else values[::-1]
        if isinstance(x, Array) and x.shape[-2:] == y.shape:
            return unwrapped(y.of(x))
    return None


# ---- of constants alone ----------------------------------------------------------------------------------------------


def _of_constants(interpreter: Interpreter, equation: Any, values: Sequence[Any]) -> Result:
    """Apply a primitive to constant matrices and scalars; with any other operand, the constants become dense."""
    primitive = equation.primitive.name
    others = [v for v in values if not isinstance(v, LAZY)]
    if all(jnp.size(v) == 1 for v in others) or _scaled(primitive, values):
        if any(isinstance(v, Counter) for v in values):
            result = _of_counters(primitive, equation, values)
            if result is not None:
                return result
        elif any(isinstance(v, Triangle) for v in values):
            if primitive == "not" and values[0].dtype.kind == "b":
                return values[0].complement
        else:
            arrays = [array(v) for v in values]
            function: Any = _Elementwise(equation, arrays[0].dtype)
            result = unwrapped(elementwise(function, _folded(function, equation, values, arrays), {}))
            return Constant(result) if isinstance(result, Array) else result
    return bind(equation, [v.dense() if isinstance(v, LAZY) else v for v in values])


def _scaled(primitive: str, values: Sequence[Any]) -> bool:
    """Return whether rows or columns of a constant with structural zeros are scaled.

    This occurs in Jacobians, where a function is mapped over ``jnp.eye(n)``.
    """
    if primitive != "mul" or not all(isinstance(v, Constant) or not isinstance(v, LAZY) for v in values):
        return False
    return any(
        isinstance(x, Constant)
        and x.array.stores_entries
        and is_zero_outside(x.array)
        and jnp.size(y) < math.prod(x.shape)
        for x, y in (values, values[::-1])
    )


def _of_counters(primitive: str, equation: Any, values: Sequence[Any]) -> Any:
    if len(values) != 2:
        return None
    x, y = values
    if isinstance(x, Counter) and isinstance(y, Counter):
        return (
            compared(primitive, x, y)
            if x.axis != y.axis and primitive in ("eq", "ne", "lt", "le", "gt", "ge")
            else None
        )
    rows, number, atom = (x, y, equation.invars[1]) if isinstance(x, Counter) else (y, x, equation.invars[0])
    if not isinstance(atom, Literal) or not isinstance(rows, Counter):
        return None
    if primitive == "add" or (primitive == "sub" and rows is x):
        if np.isfinite(number) and number == int(number):
            k = int(number) if primitive == "add" else -int(number)
            return counter(rows.axis, rows.shape, rows.dtype, rows.offset + k)
    return None


@rule("numpy.ufuncs.hypot")
def hypotenuse(interpreter: Interpreter, equation: Any, x: Any, y: Any) -> Result:
    """Compute `jnp.hypot` as one function.

    JAX 0.12 broadcasts a scalar operand to a matrix for its derivative rule, which would lose the structure.
    """
    if not involved((x, y)):
        return NotImplemented
    return cast(call("hypot", x, y), equation.outvars[0].aval.dtype)


@rule("convert_element_type")
def _convert_element_type_rule(interpreter: Interpreter, equation: Any, x: Any) -> Result:
    dtype = np.dtype(parameters(equation)["new_dtype"])
    if isinstance(x, Array):
        return cast_array(x, dtype)
    if isinstance(x, Constant):
        return Constant(cast_array(x.array, dtype), None if x.number is None else np.asarray(x.number).astype(dtype))
    if isinstance(x, Counter):
        return counter(x.axis, x.shape, dtype, x.offset) or bind(equation, [x.dense()])
    return Triangle(x.lower, x.k, x.shape, dtype) if isinstance(x, Triangle) else NotImplemented


@rule("copy", "copy_p", "stop_gradient")
def _copy_rule(interpreter: Interpreter, equation: Any, x: Any) -> Result:
    """Apply a primitive that changes no element, such as `stop_gradient`, to the parameters."""
    return x if isinstance(x, CONSTANTS) else jax.tree.map(lambda leaf: bind(equation, [leaf]), x)


@rule("name")
def named(interpreter: Interpreter, equation: Any, x: Any) -> Result:
    """Give the parameters the name of their array, for the policies of `jax.checkpoint`."""
    label = checkpoint_label(equation)
    return x if isinstance(x, CONSTANTS) else jax.tree.map(lambda leaf: checkpoint_name(leaf, label), x)


@rule("optimization_barrier")
def _optimization_barrier_rule(interpreter: Interpreter, equation: Any, *values: Any) -> Result:
    kept = jax.lax.optimization_barrier([None if isinstance(v, CONSTANTS) else v for v in values])
    return [v if k is None else k for v, k in zip(values, kept, strict=True)]


@rule("select_n")
def _select_n_rule(interpreter: Interpreter, equation: Any, which: Any, *cases: Any) -> Result:
    if jnp.ndim(which) == 0 and any(isinstance(v, (Array, LU)) for v in cases):
        return one_of(equation, which, cases)
    if len(cases) != 2 or which.dtype != bool or jnp.ndim(which) == 0:
        return NotImplemented
    off, on = cases
    if isinstance(which, Triangle):
        for triangle, kept, other in ((which, on, off), (which.complement, off, on)):
            if isinstance(kept, Array) and kept.shape[-2:] == triangle.shape and _is_zero(other):
                return unwrapped(triangle.of(kept))
    if not involved((which, off, on)):
        return NotImplemented
    choices = [v.structured() if _is_zero(v) else array(v) for v in (on, off)]
    with compiled_call():
        return unwrapped(where.dispatch(array(which), *choices))


def one_of(equation: Any, which: Any, cases: Sequence[Any]) -> Any:
    """Select one of several arrays by an index or a condition, in the structure that contains all of them."""
    cases = list(map(settling(cases), cases))
    target = functools.reduce(join_targets, map(target_of, cases))
    return jax.tree.map(lambda *leaves: bind(equation, [which, *leaves]), *(widened(v, target) for v in cases))


def _is_zero(value: Any) -> bool:
    """Return whether a value is known to be zero everywhere."""
    return isinstance(value, Constant) and value.is_zero


@rule("iota", source=True)
def _iota_rule(interpreter: Interpreter, equation: Any) -> Result:
    p = parameters(equation)
    if len(p["shape"]) != 2 or np.dtype(p["dtype"]).kind not in "iu":
        return NotImplemented
    return counter(p["dimension"], tuple(p["shape"]), np.dtype(p["dtype"])) or NotImplemented
