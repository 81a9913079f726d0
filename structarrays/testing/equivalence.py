"""The equivalence tests: to_dense(f(x)) equals f(to_dense(x)), in eager and compiled calls, and for first derivatives.

See docs/design/semantics.md.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from .._core.array.base import Array, is_array
from .._core.array.flattening import opened
from .._core.dispatch.results import as_jax
from .._core.families.factored import Factored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .case import Case

ERRORS = (TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError, NotImplementedError)


class EquivalenceError(AssertionError):
    """Raised if a result differs from the result for dense arrays."""


def check_equivalence(
    case: Case,
    arrays: Sequence[Any],
    *,
    jit: bool = False,
    derivative: bool = False,
    direction: Sequence[Array] | None = None,
) -> None:
    """Check one use of a function against NumPy on the dense values.

    The check compares the number of results, their shapes, dtypes and values, or the kind of error. NumPy receives the
    dense value of a structured array, and everything else (Python numbers) unchanged.

    Parameters
    ----------
    case : Case
        The use of a function, with rules for the comparison.
    arrays : sequence
        The operands.
    jit : bool
        Whether to compile the call, with the arrays as arguments. If an array contains indices, they are traced in one
        call and constant in another.
    derivative : bool
        Whether to check the first derivative with respect to the parameters: along a random direction against finite
        differences of NumPy's results, and backward against forward. The operands must have double precision.
    direction : sequence of Array, optional
        The direction: arrays like the operands, for example Hermitian for functions of Hermitian matrices.

    Raises
    ------
    EquivalenceError
        If the results differ. The message describes the difference.

    Examples
    --------
    >>> import structarrays as sa
    >>> from structarrays.testing import Case, check_equivalence
    >>> check_equivalence(Case("exp", "xp.exp(x)", kinds="floating"), [sa.Diagonal([1.0, 2.0])], derivative=True)
    """
    dense = [dense_value(a) for a in arrays]
    with np.errstate(all="ignore"):
        want, error = _attempt(lambda: case.expected(*[_copy(d) for d in dense]))
        if error is None:
            wanted = _flat(case.compared(np, want, *dense))
        elif case.invariants is None and not isinstance(error, ERRORS):
            raise error
    if case.raises and error is None:
        raise EquivalenceError(f"{case.code} was to raise in NumPy, but gave {want!r}")
    namespace = sys.modules[Array.__module__.partition(".")[0]]

    def run(*operands: Any) -> tuple[Any, Any]:
        result = case.call(namespace, *operands)
        return result, case.compared(namespace, result, *operands)

    operands = _with_indices_traced_and_constant(arrays) if jit else [arrays]
    if error is not None:
        for given in operands:
            _check_error(case, lambda given=given: (jax.jit(run) if jit else run)(*given)[0], error, jit)
        return
    factored = any(isinstance(a, Factored) for a in arrays)
    size = max(_magnitude(dense), *(_norm(a) for a in arrays)) if factored else _magnitude(dense)
    condition = _condition(dense[0]) if case.condition else 1.0
    for given in operands:
        try:
            result, compared = (_compiled(run) if jit else run)(*given)
        except (*ERRORS, AttributeError, RuntimeError) as ours:
            raise EquivalenceError(f"raised {type(ours).__name__}: {str(ours)[:300]}") from ours
        got, expected = _flat(result), _flat(want)
        if case.invariants is not None:
            _check_types(got, expected)
            got, expected = _flat(compared), wanted
        _check_types(got, expected)
        for i, (g, w) in enumerate(zip(got, expected, strict=True)):
            _check_values(
                g,
                w,
                _tolerance(w.dtype, dense, case, condition),
                0 if case.elementwise and not case.cancels and not factored else size,
                f"result {i}",
            )
    if derivative:
        _check_derivative(case, run, arrays, condition, direction)


def dense_value(x: Any) -> Any:
    """Return the dense value of an array as a NumPy array."""
    return np.array(as_jax(x)) if isinstance(x, Array | jax.Array) else x


def applies(case: Case, arrays: Sequence[Any]) -> bool:
    """Return whether a case applies to these operands."""
    return case.given is None or bool(case.given(*map(dense_value, arrays)))


def _copy(d: Any) -> Any:
    return d.copy() if isinstance(d, np.ndarray) else d


def _attempt(function: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return function(), None
    except ERRORS as error:
        return None, error


def _with_indices_traced_and_constant(arrays: Sequence[Any]) -> list[Any]:
    """Return the arguments of the compiled calls: with traced indices, and with constant indices if there are any."""
    traced = opened(arrays)
    have_constants = list(map(id, jax.tree.leaves(traced))) != list(map(id, jax.tree.leaves(arrays)))
    return [traced, arrays] if have_constants else [arrays]


def _compiled(run: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `run` with `jax.jit`; parts of its result that are not arrays stay outside."""
    static: dict[str, Any] = {}

    def traced(*operands: Any) -> list[Any]:
        leaves, tree = jax.tree.flatten(run(*operands), is_leaf=is_array)
        arrays = [v for v in leaves if isinstance(v, (Array, jax.Array))]
        static["tree"], static["leaves"] = tree, [None if isinstance(v, (Array, jax.Array)) else v for v in leaves]
        return arrays

    def call(*operands: Any) -> Any:
        arrays = iter(jax.jit(traced)(*operands))
        return jax.tree.unflatten(static["tree"], [next(arrays) if v is None else v for v in static["leaves"]])

    return call


def _flat(result: Any) -> list[np.ndarray]:
    """Return the arrays of a result."""
    if isinstance(result, (tuple, list)):
        return [a for r in result for a in _flat(r)]
    return [np.asarray(dense_value(result))]


# ---- errors ----------------------------------------------------------------------------------------------------------


def kinds(error: BaseException) -> set[type]:
    """Return the kinds of an error: the classes in `ERRORS` of which it is an instance.

    Examples
    --------
    >>> import numpy as np
    >>> from structarrays.testing.equivalence import kinds
    >>> sorted(k.__name__ for k in kinds(np.exceptions.AxisError("axis")))
    ['IndexError', 'ValueError']
    """
    return {k for k in ERRORS if isinstance(error, k)}


def _check_error(case: Case, run: Callable[..., Any], error: Exception, jit: bool) -> None:
    singular = isinstance(error, np.linalg.LinAlgError) and "dimension" not in str(error)
    try:
        result = run()
    except (*ERRORS, AttributeError, RuntimeError) as ours:
        if singular and not isinstance(ours, np.linalg.LinAlgError):
            raise EquivalenceError(f"must raise LinAlgError, raised {type(ours).__name__}: {str(ours)[:200]}") from ours
        if not kinds(ours) & kinds(error):
            raise EquivalenceError(
                f"NumPy raises {type(error).__name__} ({error}), here it is {type(ours).__name__}: {str(ours)[:200]}"
            ) from ours
        return
    if jit and case.indexes_with_arrays:  # the values of the indices are unknown
        return
    values = _flat(result)
    if singular and jit:  # compiled code cannot raise an error
        if values[0].size and not any(np.isnan(v).any() for v in values if v.dtype.kind in "fc"):
            raise EquivalenceError(f"NumPy raises LinAlgError ({error}), here there is not even a NaN")
        return
    raise EquivalenceError(f"NumPy raises {type(error).__name__} ({error}), here nothing is raised")


# ---- values ----------------------------------------------------------------------------------------------------------


def _check_types(got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> None:
    if len(got) != len(want):
        raise EquivalenceError(f"{len(want)} results expected, got {len(got)}")
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        if g.shape != w.shape:
            raise EquivalenceError(f"result {i}: shape {w.shape} expected, got {g.shape}")
        if g.dtype != w.dtype:
            raise EquivalenceError(f"result {i}: dtype {w.dtype} expected, got {g.dtype}")


def _norm(x: Any) -> float:
    """Return the size relative to which errors of a factored array are measured.

    It is the sum of the norms of the terms of a sum, and the product of the norms of the factors of a product.
    """
    if not isinstance(x, Factored):
        dense = dense_value(x)
        return _magnitude([dense]) * max(1, *dense.shape[-2:]) if dense.ndim else _magnitude([dense])
    norms = [_norm(part) for part in x.parts]
    return sum(norms) if x.linear or type(x).__name__ == "Sum" else float(np.prod(norms))


def _magnitude(dense: Iterable[Any]) -> float:
    sizes = [np.abs(d[np.isfinite(d)]) for d in map(np.asarray, dense)]
    return max((float(s.max()) for s in sizes if s.size), default=0.0)


def _condition(matrix: np.ndarray) -> float:
    if matrix.size == 0:
        return 1.0
    numbers = np.linalg.cond(matrix.astype(complex))
    numbers = numbers[np.isfinite(numbers)]
    return float(np.minimum(numbers, 1e8).max()) if numbers.size else 1.0


def _tolerance(dtype: np.dtype, dense: Sequence[Any], case: Case, condition: float) -> float:
    """Return the relative tolerance: 32 eps for elementwise functions, otherwise 64 eps times the condition number.

    It is zero for integers.
    """
    if dtype.kind not in "fc":
        return 0.0
    inexact = [np.finfo(d.dtype).eps for d in dense if isinstance(d, np.ndarray) and d.dtype.kind in "fc"]
    eps = max([float(np.finfo(dtype).eps), *map(float, inexact)])
    return eps * (32 if case.elementwise else 64 * condition)


def _check_values(got: np.ndarray, want: np.ndarray, tolerance: float, size: float, what: str) -> None:
    if want.dtype.kind not in "fc":
        wrong = got != want
    else:
        finite = np.isfinite(want)
        size = size + (float(np.abs(want[finite]).max()) if size and finite.any() else 0.0)
        with np.errstate(all="ignore"):
            close = np.abs(got - want) <= tolerance * (np.abs(want) + size) + np.finfo(want.dtype).tiny
        wrong = ~np.where(finite, close, _same_special(got, want))
    if wrong.any():
        where = tuple(map(int, np.argwhere(wrong)[0]))
        raise EquivalenceError(
            f"{what}: {int(wrong.sum())} of {want.size} elements differ, at {where} {want[where]} expected, got {got[where]}"
        )


def _same_special(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Return where both are NaN or the same infinity; complex numbers may be any two infinities."""
    if want.dtype.kind == "c":
        alike: np.ndarray = (np.isinf(got) & np.isinf(want)) | (np.isnan(got) & np.isnan(want))
        return alike
    same: np.ndarray = (got == want) | (np.isnan(got) & np.isnan(want))
    return same


# ---- derivatives -----------------------------------------------------------------------------------------------------

_STEP = 5e-4
_DERIVATIVE_TOLERANCE = 1e-7


def _check_derivative(
    case: Case, run: Callable[..., Any], arrays: Sequence[Any], condition: float, direction: Sequence[Array] | None
) -> None:
    leaves, tree = jax.tree.flatten(tuple(arrays))
    inexact = [isinstance(v, jax.Array) and v.dtype.kind in "fc" for v in leaves]
    parameters = [v for v, yes in zip(leaves, inexact, strict=True) if yes]
    if not parameters:
        return
    generator = np.random.default_rng(0)

    def random(like: Any) -> jax.Array:
        values = generator.normal(size=like.shape)
        return jnp.asarray(
            values + 1j * generator.normal(size=like.shape) if like.dtype.kind == "c" else values, like.dtype
        )

    def operands(parameters: Sequence[jax.Array]) -> Any:
        left = iter(parameters)
        return jax.tree.unflatten(tree, [next(left) if yes else v for v, yes in zip(leaves, inexact, strict=True)])

    def function(parameters: Sequence[jax.Array]) -> list[jax.Array]:
        flat = jax.tree.leaves(run(*operands(parameters))[1], is_leaf=is_array)
        dense = [as_jax(v) for v in flat if isinstance(v, Array | jax.Array)]
        return [v for v in dense if v.dtype.kind in "fc"]

    outputs = jax.eval_shape(function, parameters)
    if not outputs:
        return
    weights = [random(o) for o in outputs]
    if direction is None:
        directions = [random(p) for p in parameters]
    else:
        # Elements that a structure does not read may be NaN: the direction is zero there.
        given = zip(jax.tree.leaves(tuple(direction)), inexact, strict=True)
        directions = [jnp.where(jnp.isfinite(v), v, 0) for v, yes in given if yes]

    @jax.jit
    def derivatives(
        parameters: list[jax.Array], directions: list[jax.Array], weights: list[jax.Array]
    ) -> tuple[list[jax.Array], list[jax.Array]]:
        _, forward = jax.jvp(function, (parameters,), (directions,))
        return forward, jax.vjp(function, parameters)[1](weights)[0]

    try:
        forward, backward = derivatives(parameters, directions, weights)
    except (*ERRORS, RuntimeError) as error:
        raise EquivalenceError(f"derivative: raised {type(error).__name__}: {str(error)[:300]}") from error

    def numpy_at(t: float) -> list[np.ndarray]:
        moved = operands([p + t * d for p, d in zip(parameters, directions, strict=True)])
        dense = [dense_value(a) for a in moved]
        with np.errstate(all="ignore"):
            results = _flat(case.compared(np, case.expected(*dense), *dense))
        return [r for r in results if r.dtype.kind in "fc"]

    points = [numpy_at(c * _STEP) for c in (1, -1, 2, -2)]
    scale = 1 + _magnitude(map(np.asarray, (*directions, *parameters)))
    for i, (g, a, b, c, d) in enumerate(zip(forward, *points, strict=True)):
        with np.errstate(all="ignore"):
            want = np.asarray((8 * (a - b) - (c - d)) / (12 * _STEP))
            near, far = np.asarray((a - b) / (2 * _STEP)), np.asarray((c - d) / (4 * _STEP))
            # Across a jump (for example of `floor`) the differences over two step sizes disagree.
            known = np.isfinite(want) & (np.abs(near - far) <= 0.05 * (1 + np.abs(near)))
        got = np.where(known, np.asarray(g), 0)
        want = np.where(known, want, 0)
        _check_values(got, want, _DERIVATIVE_TOLERANCE * condition**2, scale, f"derivative of result {i}")
    _check_backward(forward, weights, backward, directions, condition)


def _check_backward(
    forward: Sequence[jax.Array],
    weights: Sequence[jax.Array],
    backward: Sequence[jax.Array],
    directions: Sequence[jax.Array],
    condition: float,
) -> None:
    """Check that weights times forward derivative equals backward derivative times directions."""

    def product(left: Sequence[jax.Array], right: Sequence[jax.Array]) -> tuple[float, float]:
        terms = [np.asarray(a * b).ravel() for a, b in zip(left, right, strict=True)]
        numbers = np.concatenate(terms).real
        return numbers.sum(), np.abs(numbers).sum()

    a, size_a = product(weights, forward)
    b, size_b = product(backward, directions)
    if np.isfinite(a) and not abs(a - b) <= 1e-10 * condition**2 * (size_a + size_b):
        raise EquivalenceError(f"derivative: backward and forward disagree, {b} and {a}")
