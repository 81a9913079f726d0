"""Measure what `sa.structured` keeps: functions and idioms of JAX, on a structured matrix."""

from __future__ import annotations

import sys
from pathlib import Path

import jax

import structarrays as sa

from .matrices import DTYPES, SIZE, STRUCTURES, matrix
from .outcomes import REFUSALS, Outcome, outcome_of, quiet

sys.path.append(str(Path(__file__).parents[2] / "tests" / "transform"))
from functions import FUNCTIONS, function  # noqa: E402

VERSION_DEPENDENT = (
    "jnp.frexp(A)",
    "jnp.i0(A)",
    "jnp.ldexp(A, 2)",
    "jnp.linalg.cond(A)",
    "jnp.polyval(jnp.array([1.0, -2.0, 0.5]), A)",
    "jnp.sinc(A + 4)",
)
"""Expressions whose results have another structure on another version of JAX, which computes them by other primitives."""

PROGRAMS = tuple(code for code in FUNCTIONS if code not in VERSION_DEPENDENT)
"""The expressions of `A` and a vector `x` that the tests of `sa.structured` run, without these."""


def outcome_of_program(code: str, structure: str) -> Outcome | None:
    """The outcome of an expression under `sa.structured`; None if it does not fit the shape of the matrix.

    Examples
    --------
    >>> from structure_tables.programs import outcome_of_program
    >>> outcome_of_program("jnp.sin(A)", "Banded").result
    'Banded'
    """
    kind = "float" if "float" in STRUCTURES[structure][1] else "complex"
    x = jax.ShapeDtypeStruct((SIZE,), DTYPES["float"])
    try:
        with quiet(), sa.record() as log:
            result = jax.eval_shape(sa.structured(function(code)), matrix(structure, kind), x)
    except (*REFUSALS, NotImplementedError):  # JAX has some functions for real numbers only
        return None
    first = next(iter(jax.tree.leaves(result, is_leaf=lambda v: isinstance(v, sa.Array))), None)
    # Which kernels run depends on the version of JAX.
    return None if first is None else outcome_of(log, first)
