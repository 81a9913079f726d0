"""Records of functions with custom derivatives."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import jax
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.interpreters import ad

from .calls import Record
from .forms import UnrecognisedEquation
from .jaxprs import ClosedJaxpr, closed, expansion, fits, high_level, in_avals, kind, out_avals, shape_of

FLOAT0 = jax.dtypes.float0


def _tangent_shape(atom: Any) -> jax.ShapeDtypeStruct:
    aval = atom.aval.to_tangent_aval()
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype)


def _zero_tangent(atom: Any) -> Any:
    return ad.Zero(atom.aval.to_tangent_aval())


def is_zero_tangent(value: Any) -> bool:
    """Return whether a tangent or cotangent returned by a JAX rule is known to be zero."""
    if value is None or isinstance(value, (ad.Zero, SymbolicZero)):
        return True
    return getattr(value, "dtype", None) == FLOAT0


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex, np.generic, np.ndarray, jax.Array))


@dataclass(frozen=True, slots=True)
class CustomJvpCall(Record):
    """A call of a function of `jax.custom_jvp`. The first `consts` operands are captured by the function and have no tangents."""

    program: Any
    consts: int
    symbolic_zeros: bool
    _rule: Callable[[Sequence[bool]], tuple[ClosedJaxpr, list[bool], int]]

    @classmethod
    def _read(cls, equation: Any, p: Mapping[str, Any]) -> Self:
        if equation.primitive.name == "call_hi_primitive":
            return cls._of_high_level(
                equation, high_level(equation, "CustomJVPTraced", "traced jvp_rule symbolic_zeros")
            )
        consts, thunk = p["num_consts"], p["jvp_jaxpr_fun"].call_wrapped

        def rule(zeros: Sequence[bool]) -> tuple[ClosedJaxpr, list[bool], int]:
            jaxpr, held, zeros_out = thunk(*zeros)
            return closed(jaxpr, held), list(zeros_out), consts

        return cls(closed(p["call_jaxpr"]), consts, p["symbolic_zeros"], rule)

    @classmethod
    def _of_high_level(cls, equation: Any, primitive: Any) -> Self:
        tree, count = primitive.in_tree, len(equation.invars)
        consts = len(jax.tree.leaves(primitive.in_avals[0]))

        def rule(zeros: Sequence[bool]) -> tuple[ClosedJaxpr, list[bool], int]:
            zeros_out: list[bool] = []
            zeros = [True] * consts + list(zeros)

            def run(*values: Any) -> list[Any]:
                moving = iter(values[count:])
                tangents = [
                    _zero_tangent(v) if zero else next(moving) for v, zero in zip(equation.invars, zeros, strict=True)
                ]
                out, moved = primitive.jvp_rule(tree.unflatten(values[:count]), tree.unflatten(tangents))
                results = jax.tree.leaves(out)
                moved = primitive.out_tree.flatten_up_to(moved)
                zeros_out[:] = map(is_zero_tangent, moved)
                return [*results, *(t for t, zero in zip(moved, zeros_out, strict=True) if not zero)]

            moving = [_tangent_shape(v) for v, zero in zip(equation.invars, zeros, strict=True) if not zero]
            program = jax.make_jaxpr(run)(*map(shape_of, equation.invars), *moving)
            return program, zeros_out, 0

        return cls(expansion(equation), consts, primitive.symbolic_zeros, rule)

    def _holds(self, equation: Any) -> bool:
        return self.program is not None and fits(self.program, equation) and 0 <= self.consts <= len(equation.invars)

    def rule(self, zeros: Sequence[bool]) -> tuple[ClosedJaxpr, list[bool], int]:
        """Return the program of the rule, which tangents of results are zero, and the number of operands that the
        program omits.

        The operands of the program are the operands of the function, without the omitted first ones, and the tangents
        that are not `zeros`. Its results are the results of the function, and their nonzero tangents.
        """
        program, zeros_out, left_out = self._rule(zeros)
        operands, results = in_avals(self.program), out_avals(self.program)
        expected = [
            *operands[left_out:],
            *(a.to_tangent_aval() for a, z in zip(operands[self.consts :], zeros, strict=True) if not z),
        ]
        if len(zeros_out) == len(results):
            moved = [a.to_tangent_aval() for a, zero in zip(results, zeros_out, strict=True) if not zero]
            if _alike(in_avals(program), expected) and _alike(out_avals(program), [*results, *moved]):
                return program, zeros_out, left_out
        raise UnrecognisedEquation("custom_jvp_call", "its rule for tangents has other operands or results")


def _alike(avals: Sequence[Any], others: Sequence[Any]) -> bool:
    return [kind(a) for a in avals] == [kind(a) for a in others]


@dataclass(frozen=True, slots=True)
class ForwardPass:
    """The forward pass of a function of `jax.custom_vjp`, which runs if the function is differentiated.

    The operands of `program` are the operands of the function, without the first `left_out`. Its results are residuals,
    followed by the results of the function. `residuals` has an entry for each residual of the backward pass: None for
    the next residual of the program, an integer for an operand of the function (`left_out` operands included), or a
    `Known` value.
    """

    program: ClosedJaxpr
    residuals: tuple[Any, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Known:
    """A residual that is not an array."""

    value: Any


@dataclass(frozen=True, slots=True)
class CustomVjpCall(Record):
    """A call of a function of `jax.custom_vjp`. The first `consts` operands are captured by the function and have no cotangents."""

    program: Any
    consts: int
    symbolic_zeros: bool
    _forward: Callable[[Sequence[bool]], ForwardPass]
    _backward: Callable[[Sequence[Any], Sequence[Any]], Any]

    @classmethod
    def _read(cls, equation: Any, p: Mapping[str, Any]) -> Self:
        if equation.primitive.name == "call_hi_primitive":
            names = "traced fwd bwd symbolic_zeros opt_remat with_logs remat_rules bwd_accums generic_batching"
            return cls._of_high_level(equation, high_level(equation, "CustomVJPTraced", names))
        consts, thunk, trees = p["num_consts"], p["fwd_jaxpr_thunk"].call_wrapped, p["out_trees"]
        back = getattr(p["bwd"], "call_wrapped", p["bwd"])
        if not callable(trees) or not callable(back):
            raise TypeError("out_trees or bwd")

        def forward(perturbed: Sequence[bool]) -> ForwardPass:
            program = closed(*thunk(*perturbed))
            _, tree, forwarded = trees()  # residuals that are operands are not among the results
            if tree.num_leaves != len(forwarded):
                raise UnrecognisedEquation("custom_vjp_call", "its residuals have another form")
            return ForwardPass(program, tuple(forwarded), consts)

        def backward(residuals: Sequence[Any], cotangents: Sequence[Any]) -> Any:
            cotangents = [SymbolicZero(c.aval) if isinstance(c, ad.Zero) else c for c in cotangents]
            return back(*residuals, *cotangents)

        return cls(closed(p["call_jaxpr"]), consts, p["symbolic_zeros"], forward, backward)

    @classmethod
    def _of_high_level(cls, equation: Any, primitive: Any) -> Self:
        consts = len(jax.tree.leaves(primitive.in_avals[:2]))
        arguments: Any = jax.tree.structure(primitive.in_avals[2:])
        residual_tree: Any = None

        def forward(perturbed: Sequence[bool]) -> ForwardPass:
            known: list[Any] = []

            def run(*values: Any) -> list[Any]:
                nonlocal residual_tree
                nonzeros = primitive.in_tree.unflatten([False] * consts + list(perturbed))
                out, residuals = primitive.fwd(nonzeros, *primitive.in_tree.unflatten(values))
                leaves, residual_tree = jax.tree.flatten(residuals)
                known[:] = [None if isinstance(leaf, (jax.Array, np.ndarray)) else Known(leaf) for leaf in leaves]
                kept = [leaf for leaf, k in zip(leaves, known, strict=True) if k is None]
                return [*kept, *primitive.out_tree.flatten_up_to(out)]

            program = jax.make_jaxpr(run)(*map(shape_of, equation.invars))
            return ForwardPass(program, tuple(known), 0)

        def backward(residuals: Sequence[Any], cotangents: Sequence[Any]) -> Any:
            found, logs = primitive.bwd(residual_tree.unflatten(residuals), primitive.out_tree.unflatten(cotangents))
            return arguments.flatten_up_to(found), logs

        return cls(expansion(equation), consts, primitive.symbolic_zeros, forward, backward)

    def _holds(self, equation: Any) -> bool:
        return self.program is not None and fits(self.program, equation) and 0 <= self.consts <= len(equation.invars)

    def forward(self, perturbed: Sequence[bool]) -> ForwardPass:
        """Return the program that replaces the function if it is differentiated with respect to the `perturbed`
        arguments.
        """
        found = self._forward(perturbed)
        kept = sum(r is None for r in found.residuals)
        operands, results = in_avals(self.program)[found.left_out :], out_avals(self.program)
        if not _alike(in_avals(found.program), operands) or not _alike(out_avals(found.program)[kept:], results):
            raise UnrecognisedEquation("custom_vjp_call", "its forward pass has other operands or results")
        return found

    def backward(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """Return the cotangents of the arguments from residuals and the cotangents of the results; None represents
        zero.
        """
        results, arguments = out_avals(self.program), in_avals(self.program)[self.consts :]
        given = [ad.Zero(a.to_tangent_aval()) if c is None else c for c, a in zip(cotangents, results, strict=True)]
        found = self._backward(residuals, given)
        if isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], (list, tuple)):  # since JAX 0.12
            found, logs = found
            if logs is not None:
                raise UnrecognisedEquation("custom_vjp_call", "its backward pass writes a log")
        if not isinstance(found, (list, tuple)) or len(found) != len(arguments):
            raise UnrecognisedEquation("custom_vjp_call", "its backward pass has other results")
        return [self._cotangent(c, a) for c, a in zip(found, arguments, strict=True)]

    @staticmethod
    def _cotangent(value: Any, aval: Any) -> Any:
        if is_zero_tangent(value):
            return None
        if not _is_number(value) or np.shape(value) != aval.shape:
            raise UnrecognisedEquation(
                "custom_vjp_call", f"its backward pass returns {type(value).__name__} for {aval}"
            )
        return value if isinstance(value, jax.Array) else jax.numpy.asarray(value)
