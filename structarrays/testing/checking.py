"""`check_structure`: the equivalence tests for one structure, function by function."""

from __future__ import annotations

import itertools
import warnings
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from .._core.array.base import Array, is_array
from .._core.dispatch.recording import explain, record
from .arrays import SAMPLERS, sampler, with_background
from .cases import BATCHES, CASES, SIZES, operands
from .equivalence import ERRORS, EquivalenceError, applies, check_equivalence

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .arrays import Sampler
    from .case import Case

MODES = ("eager", "jit", "derivative")
DOUBLE = ("float64", "complex128")
CHECKS_BETWEEN_CLEARS = 200  # limits the memory of compiled code in JAX's caches


@dataclass
class Findings:
    """Results of the checks of one function.

    Attributes
    ----------
    function : str
        The name of the function.
    checks : int
        The number of results that were compared with NumPy's.
    results : set of str
        The structures of the results.
    kept, densified : list of str
        The uses, with the operands' structures, without and with a densification.
    wrong : list of str
        Descriptions of the results that differ.
    """

    function: str
    checks: int = 0
    results: set[str] = field(default_factory=set)
    kept: list[str] = field(default_factory=list)
    densified: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class Report:
    """Result of `check_structure`, which prints as a table.

    Attributes
    ----------
    structure : str
        The name of the class.
    findings : dict of Findings
        The findings by the name of the function.
    """

    def __init__(self, structure: str) -> None:
        self.structure = structure
        self.findings: dict[str, Findings] = {}

    def of(self, function: str) -> Findings:
        """Return the findings of a function."""
        return self.findings.setdefault(function, Findings(function))

    @property
    def kept(self) -> list[str]:
        """The functions that never densify."""
        return [name for name, f in self.findings.items() if f.kept and not f.densified]

    @property
    def densified(self) -> list[str]:
        """The functions that densify in at least one use."""
        return [name for name, f in self.findings.items() if f.densified]

    @property
    def wrong(self) -> list[str]:
        """Descriptions of the results that differ from the dense results; empty if all agree."""
        return [f"{name}: {text}" for name, f in self.findings.items() for text in f.wrong]

    def raise_if_wrong(self) -> None:
        """Raise an error if a result differs from the dense result.

        Raises
        ------
        EquivalenceError
            With descriptions of all differences.
        """
        if self.wrong:
            raise EquivalenceError(f"{len(self.wrong)} results of {self.structure} are wrong\n" + "\n".join(self.wrong))

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [("function", "checks", "kept", "densified", "wrong", "results")]
        for f in sorted(self.findings.values(), key=lambda f: (not f.wrong, bool(f.densified), f.function)):
            numbers = (len(f.kept), len(f.densified), len(f.wrong))
            rows.append((f.function, str(f.checks), *(str(n or "") for n in numbers), ", ".join(sorted(f.results))))
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        lines.insert(1, "  ".join("-" * w for w in widths))
        checks = sum(f.checks for f in self.findings.values())
        lines.append(
            f"{self.structure}: {checks} checks of {len(self.findings)} functions; {len(self.kept)} keep structure, "
            f"{len(self.densified)} densify somewhere, {len(self.wrong)} results are wrong"
        )
        return "\n".join([*lines, *self.wrong])

    __repr__ = __str__


def check_structure(
    structure: type[Array] | str,
    strategy: Sampler | None = None,
    *,
    functions: Collection[str] | None = None,
    modes: Sequence[str] = MODES,
    partners: Sequence[str] = ("Dense",),
    checks: int = 1,
) -> Report:
    """Check that every function returns equal results for structured arrays and for their dense forms.

    The check runs every use of every function (`CASES`). It compares values, shapes, dtypes and errors with NumPy's,
    and derivatives with finite differences. Each operand in turn has the structure; the others have the same structure
    or one of `partners`. Batch shapes, sizes and dtypes alternate.

    Parameters
    ----------
    structure : type or str
        The class, or the name of a registered sampler.
    strategy : callable, optional
        A sampler of random arrays, which is registered: it maps ``(numbers, batch, core, requires)`` to an array of
        shape ``batch + core`` with parameters drawn from `numbers`, or to None if there is none. See `sampler`. By default,
        the sampler that is already registered.
    functions : collection of str, optional
        The functions to check, by their names in the cases (``"matmul"``, ``"linalg.solve"``, ``"__getitem__"``, …). By
        default, all functions.
    modes : sequence of str
        A selection of ``"eager"``, ``"jit"`` and ``"derivative"``. The first two alternate over the structures.
        Derivatives are checked for one combination of structures per use.
    partners : sequence of str
        The structures of the other operands in functions of two and three arrays, by the names that `sample` accepts.
    checks : int
        The number of checks of each use for each combination of structures, with varying batch shapes, sizes and
        dtypes.

    Returns
    -------
    Report
        Prints as a table. ``report.wrong`` lists the differences, which raise no error.

    Examples
    --------
    >>> import structarrays as sa
    >>> from structarrays.testing import check_structure
    >>> class Scalar(sa.Identity):
    ...     __slots__ = ()
    >>> def scalars(numbers, batch, core, requires):
    ...     return Scalar(core, numbers(batch)) if not requires else None
    >>> report = check_structure(Scalar, scalars, functions=["matrix_transpose", "sort"], modes=["eager"])
    >>> report.wrong, report.kept, report.densified
    ([], ['matrix_transpose'], ['sort'])
    """
    name = structure if isinstance(structure, str) else structure.__name__
    if strategy is not None:
        sampler(name)(strategy)
    names = [name]
    if _has_background(name):
        names.append(f"{name} + background")
        SAMPLERS.setdefault(names[-1], with_background(name))
    report = Report(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, for means of empty arrays
        for case in CASES:
            if functions is None or case.name in functions:
                _check_case(report, case, names, partners, modes, checks)
    return report


def _has_background(name: str) -> bool:
    from .arrays import sample

    samples = (sample(name, (sizes["m"], sizes["n"])) for sizes in SIZES)
    x = next((s for s in samples if s is not None), None)
    return x is not None and x.stores_entries and x.background is None and not x.covers


def _check_case(
    report: Report, case: Case, names: Sequence[str], partners: Sequence[str], modes: Sequence[str], checks: int
) -> None:
    places = _places(case, names, partners)
    plain = [m for m in modes if m != "derivative" and not (case.eager and m == "jit")]
    turns = itertools.count(zlib.crc32(case.code.encode()))
    for _ in range(checks if places else 0):
        for structures in places if plain else ():
            turn = next(turns)
            _check(report, case, structures, plain[turn % len(plain)], turn)
        if "derivative" in modes and _differentiable(case):
            turn = next(turns)
            _check(report, case, places[turn % len(places)], "derivative", turn)


def _places(case: Case, names: Sequence[str], partners: Sequence[str]) -> list[tuple[str, ...]]:
    """Return combinations of the operands' structures.

    Each operand in turn has the structure, and the others have the structure or a partner. Only the first operand has a
    background.
    """
    choices = [[*names, *partners] if len(core) == 2 else ["Dense"] for core in case.cores]
    found = [p for p in itertools.product(*choices) if set(p) & set(names) and not set(p[1:]) & set(names[1:])]
    return found if len(case.operands) < 3 else found[:: max(1, len(found) // 4)]


def _differentiable(case: Case) -> bool:
    return case.smooth and not case.raises and not case.eager and not set(case.dtypes).isdisjoint(DOUBLE)


def _check(report: Report, case: Case, structures: Sequence[str], mode: str, turn: int) -> None:
    found = _operands(case, structures, mode, turn)
    if found is None:
        return
    arrays, description, direction = found
    findings = report.of(case.name)
    findings.checks += 1
    if sum(f.checks for f in report.findings.values()) % CHECKS_BETWEEN_CLEARS == 0:
        jax.clear_caches()
    try:
        check_equivalence(case, arrays, jit=mode == "jit", derivative=mode == "derivative", direction=direction)
    except (EquivalenceError, *ERRORS, AttributeError, RuntimeError) as error:
        what = (
            "" if isinstance(error, EquivalenceError) else f"raised {type(error).__name__}: "
        )  # for example from `to_jax`
        findings.wrong.append(f"{case.code} for {description}, {mode}: {what}{str(error)[:500]}")
        return
    if not case.raises:
        _look(findings, case, structures, arrays)


def _operands(
    case: Case, structures: Sequence[str], mode: str, turn: int
) -> tuple[list[Array], str, list[Array] | None] | None:
    """Return operands for which the case applies, their description, and a direction for the derivative; or None."""
    batches = BATCHES[case.batches]
    dtypes = [d for d in case.dtypes if d in DOUBLE] if mode == "derivative" else case.dtypes
    dtype, batch = dtypes[turn % len(dtypes)], batches[turn // 2 % len(batches)]
    sizes = [s for s in SIZES if s["m"] > 1 or not case.raises]  # shapes that broadcast raise no error
    for i in range(len(sizes)):
        given: dict[str, Any] = {
            "batch": batch[: len(structures)],
            "sizes": sizes[(turn // 3 + i) % len(sizes)],
            "dtype": dtype,
        }
        arrays = operands(case, structures, **given)
        if arrays is not None and (case.given is None or applies(case, arrays)):
            shapes = " and ".join(f"{s} {a.shape}" for s, a in zip(structures, arrays, strict=True))
            requires = mode == "derivative" and case.requires
            return arrays, f"{shapes} {dtype}", operands(case, structures, seed=1, **given) if requires else None
    return None


def _look(findings: Findings, case: Case, structures: Sequence[str], arrays: Sequence[Array]) -> None:
    """Record whether an operand is densified, and the structures of the results."""
    import structarrays

    def call(*arrays: Any) -> Any:
        return case.call(structarrays, *arrays)

    try:
        try:
            log = explain(call, *arrays)
            result = log.result
        except (jax.errors.JAXTypeError, IndexError):  # data-dependent calls cannot be traced
            with record() as log:
                result = call(*arrays)
    except (TypeError, ValueError, IndexError, np.linalg.LinAlgError):  # NumPy raises, too
        return
    use = f"{case.code} for {', '.join(structures)}"
    seen = findings.densified if log.densifications else findings.kept
    if use not in seen:
        seen.append(use)
    leaves = jax.tree.leaves(result, is_leaf=is_array)
    findings.results |= {type(x).__name__ for x in leaves if isinstance(x, Array)}
