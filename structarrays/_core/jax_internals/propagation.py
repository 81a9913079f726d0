"""Divisions of the results of a JAX program among devices, given the divisions of its arguments.

JAX has such a rule for each primitive. But its rules raise an error if a choice is left to the user (a product over two
divided dimensions), or if a length does not divide evenly (a slice of n - 1 of n elements). The rules here always
return an answer. A wrong answer costs communication and never changes a value, since the answer only determines where
the results are placed.

A dimension keeps its mesh axes until the end, even if its size does not divide evenly in between: `x[1:]` padded to n
again is divided like `x`. Unrecognised parts of a program count as not divided.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from .program_types import Literal, jaxpr_as_fun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..typing import Shape, Spec

    EquationRule = Callable[[Any, list[Spec]], list[Spec]]

__all__ = ["constants", "jaxpr_as_fun", "result_specs"]

_RULES: dict[str, EquationRule] = {}


def result_specs(jaxpr: Any, specs: Sequence[Spec]) -> list[Spec]:
    """Return the mesh axes that divide the dimensions of each result of a program, given the divisions of its
    arguments.
    """
    known: dict[Any, Spec] = dict(zip(jaxpr.invars, specs, strict=True))

    def spec_of(atom: Any) -> Spec:
        return _whole(atom) if isinstance(atom, Literal) else known.get(atom, _whole(atom))

    for equation in jaxpr.eqns:
        operands = [spec_of(atom) for atom in equation.invars]
        if any(along is not None for spec in operands for along in spec):
            rule = _RULES.get(equation.primitive.name, _by_place)
            try:
                pairs = zip(equation.outvars, rule(equation, operands), strict=True)
                known.update({v: _without_repetition(spec, _shape(v)) for v, spec in pairs})
            except (AttributeError, KeyError, TypeError, ValueError, IndexError):
                continue  # the equation has another form in this JAX
    return [spec_of(atom) for atom in jaxpr.outvars]


def constants(jaxpr: Any, arguments: Sequence[bool]) -> list[int]:
    """Return the indices of computed results, if the program computes all of them without these arguments; otherwise an
    empty list.
    """
    known = {variable for variable, counts in zip(jaxpr.invars, arguments, strict=True) if counts}
    for equation in jaxpr.eqns:
        if any(not isinstance(atom, Literal) and atom in known for atom in equation.invars):
            known.update(equation.outvars)
    handed_through = set(jaxpr.invars)
    computed = [(i, v) for i, v in enumerate(jaxpr.outvars) if isinstance(v, Literal) or v not in handed_through]
    return [] if any(not isinstance(v, Literal) and v in known for _, v in computed) else [i for i, _ in computed]


def _shape(atom: Any) -> Shape:
    return getattr(atom.aval, "shape", ())


def _whole(atom: Any) -> Spec:
    return (None,) * len(_shape(atom))


def _names(along: Any) -> tuple[str, ...]:
    return () if along is None else (along,) if isinstance(along, str) else tuple(along)


def _without_repetition(spec: Spec, shape: Shape) -> Spec:
    """Return a specification in which no mesh axis occurs twice and no dimension of size 1 is divided."""
    used: set[str] = set()
    result: list[Any] = []
    for n, along in zip(shape, spec, strict=True):
        names = _names(along)
        keep = n != 1 and used.isdisjoint(names)
        result.append(along if keep else None)
        used.update(names if keep else ())
    return tuple(result)


def _merged(specs: Iterable[Spec], ndim: int) -> Spec:
    """Return, for each dimension, the axes of the first specification that divides it."""
    specs = [spec for spec in specs if len(spec) == ndim]
    return tuple(next((spec[i] for spec in specs if spec[i] is not None), None) for i in range(ndim))


def _by_place(equation: Any, specs: list[Spec]) -> list[Spec]:
    """Rule for most primitives: a dimension of a result is divided like the same dimension of the operands."""
    inner = _called_program(equation)
    if inner is not None:
        return result_specs(inner, specs)
    if "axes" in equation.params:
        return _reduction(equation, specs)
    return [_merged(specs, len(_shape(variable))) for variable in equation.outvars]


def _program(value: Any) -> Any:
    """Return the program that a parameter contains, or None."""
    jaxpr = getattr(value, "jaxpr", value)
    return jaxpr if hasattr(jaxpr, "eqns") and hasattr(jaxpr, "invars") else None


def _called_program(equation: Any) -> Any:
    """Return the program that an equation runs on its unchanged operands, such as a nested `jit`; None for other
    equations.
    """
    for value in equation.params.values():
        inner = _program(value)
        if (
            inner is not None
            and [_shape(v) for v in inner.invars] == [_shape(v) for v in equation.invars]
            and [_shape(v) for v in inner.outvars] == [_shape(v) for v in equation.outvars]
        ):
            return inner
    return None


def _rule(*names: str) -> Callable[[EquationRule], EquationRule]:
    def register(rule: EquationRule) -> EquationRule:
        _RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


def _reduction(equation: Any, specs: list[Spec]) -> list[Spec]:
    """Rule for reductions over the dimensions `axes`."""
    kept = [i for i in range(len(specs[0])) if i not in equation.params["axes"]]
    merged = _merged(specs, len(specs[0]))
    return [tuple(merged[i] for i in kept)] * len(equation.outvars)


@_rule("broadcast_in_dim")
def _broadcast(equation: Any, specs: list[Spec]) -> list[Spec]:
    shape, result = _shape(equation.invars[0]), list(_whole(equation.outvars[0]))
    for i, place in enumerate(equation.params["broadcast_dimensions"]):
        if shape[i] == _shape(equation.outvars[0])[place]:
            result[place] = specs[0][i]
    return [tuple(result)]


@_rule("transpose")
def _transpose(equation: Any, specs: list[Spec]) -> list[Spec]:
    return [tuple(specs[0][i] for i in equation.params["permutation"])]


@_rule("reshape", "squeeze")
def _reshape(equation: Any, specs: list[Spec]) -> list[Spec]:
    """Rule for merged and split dimensions: the first of them, which varies slowest, is divided."""
    old, new = _shape(equation.invars[0]), _shape(equation.outvars[0])
    result: list[Any] = [None] * len(new)
    if 0 in old:
        return [tuple(result)]
    i = j = 0
    while i < len(old) and j < len(new):
        before, after, first_old, first_new = old[i], new[j], i, j
        i, j = i + 1, j + 1
        while before != after:
            if before < after:
                before, i = before * old[i], i + 1
            else:
                after, j = after * new[j], j + 1
        source = next((k for k in range(first_old, i) if old[k] != 1), first_old)
        target = next((k for k in range(first_new, j) if new[k] != 1), first_new)
        result[target] = specs[0][source]
    return [tuple(result)]


@_rule("dot_general")
def _dot_general(equation: Any, specs: list[Spec]) -> list[Spec]:
    (contracted, batched) = equation.params["dimension_numbers"]
    batch = [specs[0][i] if specs[0][i] is not None else specs[1][j] for i, j in zip(*batched, strict=True)]
    free = [
        spec[i]
        for spec, summed, shared in zip(specs, contracted, batched, strict=True)
        for i in range(len(spec))
        if i not in summed and i not in shared
    ]
    return [(*batch, *free)]


@_rule("gather")
def _gather(equation: Any, specs: list[Spec]) -> list[Spec]:
    numbers = equation.params["dimension_numbers"]
    operand, indices = specs[0], list(specs[1][:-1])
    for i, j in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
        indices[j] = indices[j] if indices[j] is not None else operand[i]
    for i in numbers.collapsed_slice_dims:  # a selection along a divided dimension is divided, too
        if operand[i] is not None and not any(indices) and indices:
            indices[0] = operand[i]
    left_out = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    window = iter([along for i, along in enumerate(operand) if i not in left_out])
    outside = iter(indices)
    ndim = len(_shape(equation.outvars[0]))
    return [tuple(next(window) if i in numbers.offset_dims else next(outside) for i in range(ndim))]


@_rule("scatter", "scatter-add", "scatter_add", "scatter_mul", "scatter_min", "scatter_max", "scatter_sub")
def _scatter(equation: Any, specs: list[Spec]) -> list[Spec]:
    """Rule for scatters: divided like the operand; dimensions written by index are divided like the indices, if these
    are.
    """
    numbers = equation.params["dimension_numbers"]
    operand, _, updates = specs
    result = list(operand)
    left_out = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    places = iter([i for i in range(len(operand)) if i not in left_out])
    outside = []
    for i, along in enumerate(updates):
        place = next(places) if i in numbers.update_window_dims else None
        if place is None:
            outside.append(along)
        elif result[place] is None:
            result[place] = along
    first = next((along for along in outside if along is not None), None)
    for place in (*numbers.operand_batching_dims, *numbers.scatter_dims_to_operand_dims):
        if result[place] is None:
            result[place], first = first, None
    return [tuple(result)]


# ---- loops and conditions ----------------------------------------------------------------------------------------
#
# The shapes show which operands are constants, carried, or iterated over: the parameters for this differ between
# versions of JAX.


def _carried(body: Any, constants: list[Spec], carry: list[Spec], others: list[Spec]) -> list[Spec]:
    """Return the results of a loop body, with carried values divided in the same way before and after a step."""
    for _ in range(3):
        results = result_specs(body, [*constants, *carry, *others])
        joined = [
            _without_repetition(_merged(pair, len(pair[0])), _shape(variable))
            for pair, variable in zip(zip(carry, results), body.outvars)  # noqa: B905 (the results are more)
        ]
        if joined == carry:
            break
        carry = joined
    return [*carry, *results[len(carry) :]]


@_rule("scan")
def _scan(equation: Any, specs: list[Spec]) -> list[Spec]:
    body = _program(equation.params["jaxpr"])
    ndims = [len(_shape(v)) for v in body.invars]
    steps = sum(len(spec) > ndim for spec, ndim in zip(specs, ndims, strict=True))
    pairs = list(zip(body.outvars, equation.outvars, strict=True))
    count = sum(len(_shape(inside)) == len(_shape(outside)) for inside, outside in pairs)
    first = len(specs) - steps
    along = next((spec[0] for spec in specs[first:] if spec[0] is not None), None)
    results = _carried(body, specs[: first - count], specs[first - count : first], [s[1:] for s in specs[first:]])
    return [*results[:count], *((along, *spec) for spec in results[count:])]


@_rule("while")
def _while(equation: Any, specs: list[Spec]) -> list[Spec]:
    body = _program(equation.params["body_jaxpr"])
    operands, count = specs[len(specs) - len(body.invars) :], len(body.outvars)
    return _carried(body, operands[: len(operands) - count], operands[len(operands) - count :], [])


@_rule("cond")
def _cond(equation: Any, specs: list[Spec]) -> list[Spec]:
    results = [result_specs(_program(branch), specs[1:]) for branch in equation.params["branches"]]
    return [functools.reduce(lambda a, b: _merged((a, b), len(a)), each) for each in zip(*results, strict=True)]
