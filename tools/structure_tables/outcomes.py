"""Measure a line of code: the structures of its results, and the kernel that computes them."""

from __future__ import annotations

import contextlib
import functools
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

import structarrays as sa
from structarrays.testing import compiled

from .matrices import OTHERS, STRUCTURES, matrix
from .uses import SAME, kinds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .uses import Use

EAGER = (sa.Sparse, sa.Permutation)
"""Eager results of these depend on values: for one, the number of entries of a sparse product."""

REFUSALS = (TypeError, ValueError, np.linalg.LinAlgError)


class Outcome(NamedTuple):
    """A cell of the table: the classes of the results, and whether an operand became dense."""

    result: str
    how: str = ""


def _names(result: Any) -> list[str]:
    """The classes of all arrays of a result."""
    if isinstance(result, tuple | list):
        return [name for part in result for name in _names(part)]
    if isinstance(result, sa.Array):
        background = " + background" if result.stores_entries and result.background is not None else ""
        return [type(result).__name__ + background]
    return ["jax.Array" if isinstance(result, jax.Array | jax.ShapeDtypeStruct) else "no array"]


def outcome_of(log: sa.Log, result: Any) -> Outcome:
    """The outcome of a call that was logged: the classes, and whether an operand became dense."""
    found = _names(result)
    return Outcome(", ".join(found if len(set(found)) > 1 else found[:1]), "dense form" if log.densifications else "")


@contextlib.contextmanager
def quiet(mode: Any = "allow") -> Iterator[None]:
    """A context with a policy for dense forms, and without warnings."""
    with sa.densify(mode), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _traced(call: Callable[..., Any], arrays: list[Any]) -> Outcome | None:
    """The outcome without values; None if the result depends on values."""
    try:
        with quiet():
            log = sa.explain(call, *arrays)
    except (jax.errors.JAXTypeError, IndexError):
        return None
    except REFUSALS as error:
        return Outcome(f"raises {type(error).__name__}")
    return outcome_of(log, log.result)


def _run(call: Callable[..., Any], arrays: list[Any]) -> Outcome | None:
    """The outcome of an eager call; None if it needs a dense form, which is not made."""
    try:
        with quiet("error"), sa.record() as log:
            result = call(*arrays)
    except sa.DensifyError:
        return None
    except REFUSALS as error:
        return Outcome(f"raises {type(error).__name__}")
    return outcome_of(log, result)


def kind_of(use: Use, structures: tuple[str, ...]) -> str | None:
    """The first kind of numbers that the function takes and all structures have; None if there is none."""
    names = [s for s in structures if s not in OTHERS]
    return next((k for k in kinds_of(use.function) if all(k in STRUCTURES[s][1] for s in names)), None)


def outcome(use: Use, first: str, second: str | None = None) -> Outcome | None:
    """The outcome of a use for these structures; None if there are no such matrices.

    Examples
    --------
    >>> from structure_tables.outcomes import outcome
    >>> from structure_tables.uses import Use
    >>> outcome(Use("matmul", "A @ B"), "Diagonal", "Banded")
    Outcome(result='Banded', how='')
    """
    second = first if second == SAME else second
    structures = (first,) if second is None else (first, second)
    kind = kind_of(use, structures)
    if kind is None:
        return None
    call = functools.partial(compiled(use.code.replace("sa.", "xp."), ("A", "B")[: len(structures)]), sa)
    shapes = [matrix(s, kind) for s in structures]
    sparse = any(isinstance(x, EAGER) for x in shapes)
    found = None if sparse else _traced(call, shapes)
    if found is None:
        found = _run(call, [matrix(s, kind, abstract=False) for s in structures])
    if found is None and sparse:
        found = _traced(call, shapes)
    return found or Outcome("Dense", "dense form")
