"""Records of loops, conditions and linear solvers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import jax

from .forms import UnrecognisedEquation, parameters
from .jaxprs import ClosedJaxpr, closed, fits, high_level, in_avals, out_avals, same


class Record:
    """Base class of the records: `of` reads an equation, and `_holds` checks whether its parts match."""

    @classmethod
    def _read(cls, equation: Any, p: Mapping[str, Any]) -> Self:
        raise NotImplementedError

    def _holds(self, equation: Any) -> bool:
        raise NotImplementedError

    @classmethod
    def of(cls, equation: Any) -> Self:
        """Read an equation.

        Raises
        ------
        UnrecognisedEquation
            If the parameters of the equation are unknown to this library.
        """
        p = parameters(equation)
        try:
            record = cls._read(equation, p)
            holds = record._holds(equation)
        except Exception as error:  # reading an unknown form may raise anything
            raise UnrecognisedEquation(
                equation.primitive.name, f"its parameters have another form ({error})"
            ) from error
        if not holds:
            raise UnrecognisedEquation(equation.primitive.name, "its parameters do not match its operands and results")
        return record


@dataclass(frozen=True, slots=True)
class ScanCall(Record):
    """A loop of `jax.lax.scan`: ``body(*consts, *carry, *row)`` returns the next carry and a row of the stacked
    results.

    The operands of the equation are `consts` constants, `carry` carried values, and arrays over whose rows the loop
    runs. The results are the last carry and the stacks.
    """

    body: ClosedJaxpr
    consts: int
    carry: int
    length: int
    reverse: bool
    unroll: int | bool

    @classmethod
    def _read(cls, equation: Any, p: Mapping[str, Any]) -> Self:
        if "ft_in" in p:  # since JAX 0.11
            consts, carry, rows = map(len, p["ft_in"].unpack())
            if consts + carry + rows != len(equation.invars) or len(p["ft_out"]) != len(equation.outvars):
                raise ValueError("ft_in and ft_out")
        else:
            consts, carry = p["num_consts"], p["num_carry"]
        return cls(closed(p["jaxpr"]), consts, carry, p["length"], p["reverse"], p["unroll"])

    def _holds(self, equation: Any) -> bool:
        second = self.consts + self.carry
        operands, results = in_avals(self.body), out_avals(self.body)
        rows = [jax.ShapeDtypeStruct((self.length, *a.shape), a.dtype) for a in operands[second:]]
        stacks = [jax.ShapeDtypeStruct((self.length, *a.shape), a.dtype) for a in results[self.carry :]]
        return same([*operands[:second], *rows], equation.invars) and same(
            [*results[: self.carry], *stacks], equation.outvars
        )

    def split(self, values: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Split one value for each operand into three lists: for constants, carried values, and arrays over which the
        loop runs.
        """
        first, second = self.consts, self.consts + self.carry
        return list(values[:first]), list(values[first:second]), list(values[second:])

    def split_results(self, values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Split one value for each result into two lists: for carried values and stacks."""
        return list(values[: self.carry]), list(values[self.carry :])


@dataclass(frozen=True, slots=True)
class WhileCall(Record):
    """A loop of `jax.lax.while_loop`: while ``condition(*condition_consts, *carry)``, ``body(*body_consts, *carry)``
    returns the next carry.
    """

    condition: ClosedJaxpr
    body: ClosedJaxpr
    condition_consts: int
    body_consts: int

    @classmethod
    def _read(cls, equation: Any, p: Mapping[str, Any]) -> Self:
        return cls(closed(p["cond_jaxpr"]), closed(p["body_jaxpr"]), p["cond_nconsts"], p["body_nconsts"])

    def _holds(self, equation: Any) -> bool:
        asked, held, carry = self.split(equation.invars)
        return (
            same(in_avals(self.condition), [*asked, *carry])
            and same(in_avals(self.body), [*held, *carry])
            and same(out_avals(self.body), equation.outvars)
            and [a.dtype for a in out_avals(self.condition)] == [bool]
        )

    def split(self, values: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Split one value for each operand into three lists: constants of the condition, constants of the body, and
        carried values.
        """
        first, second = self.condition_consts, self.condition_consts + self.body_consts
        return list(values[:first]), list(values[first:second]), list(values[second:])


@dataclass(frozen=True, slots=True)
class CondCall(Record):
    """A condition of `jax.lax.cond` or `switch`: the first operand selects the branch for the others."""

    branches: tuple[ClosedJaxpr, ...]
    platforms: tuple[Any, ...] | None
    """Names of platforms for each branch, or None for all others; only from `jax.lax.platform_dependent`."""

    @classmethod
    def _read(cls, equation: Any, p: Mapping[str, Any]) -> Self:
        return cls(tuple(map(closed, p["branches"])), p.get("branches_platforms"))

    def _holds(self, equation: Any) -> bool:
        return bool(self.branches) and all(
            same(in_avals(b), equation.invars[1:]) and same(out_avals(b), equation.outvars) for b in self.branches
        )


@dataclass(frozen=True, slots=True)
class CheckpointCall(Record):
    """A call of a function of `jax.checkpoint`."""

    program: ClosedJaxpr
    prevent_cse: bool | tuple[bool, ...]
    policy: Callable[..., Any] | None

    @classmethod
    def _read(cls, equation: Any, p: Mapping[str, Any]) -> Self:
        if equation.primitive.name == "call_hi_primitive":
            p = high_level(equation, "RematTraced", "jaxpr policy prevent_cse").params
        return cls(closed(p["jaxpr"]), p["prevent_cse"], p["policy"])

    def _holds(self, equation: Any) -> bool:
        return fits(self.program, equation)


@dataclass(frozen=True, slots=True)
class LinearSolveCall(Record):
    """A call of `jax.lax.custom_linear_solve`: four programs or None, each with the number of its constants among the operands."""

    programs: tuple[
        Any, ...
    ]  # of the product, the product with the transpose, the solver, and the solver of the transpose
    consts: tuple[int, ...]
    symmetric: bool  # whether the first two programs are one

    @classmethod
    def _read(cls, equation: Any, p: Mapping[str, Any]) -> Self:
        names = ("matvec", "vecmat", "solve", "transpose_solve")
        programs = [getattr(p["jaxprs"], name) for name in names]
        return cls(
            tuple(None if program is None else closed(program) for program in programs),
            tuple(getattr(p["const_lengths"], name) for name in names),
            programs[0] is programs[1],
        )

    def _holds(self, equation: Any) -> bool:
        *held, right = self.split(equation.invars)
        return all(
            program is None or same(in_avals(program), [*consts, *right])
            for program, consts in zip(self.programs, held, strict=True)
        )

    def split(self, values: Sequence[Any]) -> list[list[Any]]:
        """Split one value for each operand into five lists: the constants of each program, and the right-hand sides."""
        lists, values = [], list(values)
        for count in self.consts:
            lists.append(values[:count])
            values = values[count:]
        return [*lists, values]
