"""`check_structure`: the law on one structure, function by function."""

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
from .law import ERRORS, LawBroken, applies, check_law

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .arrays import Sampler
    from .case import Case

MODES = ("eager", "jit", "derivative")
DOUBLE = ("float64", "complex128")
CHECKS_BETWEEN_CLEARS = 200  # JAX keeps what it compiled: memory, in the end


@dataclass
class Findings:
    """What was found of one function.

    Attributes
    ----------
    function : str
        Its name.
    checks : int
        How many results were compared with NumPy's.
    results : set of str
        The structures that came out.
    kept, densified : list of str
        The uses, with the operands' structures, in which nothing was densified, and in which something was.
    wrong : list of str
        What differs.
    """

    function: str
    checks: int = 0
    results: set[str] = field(default_factory=set)
    kept: list[str] = field(default_factory=list)
    densified: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class Report:
    """What `check_structure` found; prints as a table.

    Attributes
    ----------
    structure : str
        The name of the class.
    findings : dict of Findings
        By the name of the function.
    """

    def __init__(self, structure: str) -> None:
        self.structure = structure
        self.findings: dict[str, Findings] = {}

    def of(self, function: str) -> Findings:
        """The findings of a function."""
        return self.findings.setdefault(function, Findings(function))

    @property
    def kept(self) -> list[str]:
        """The functions in which nothing is ever densified."""
        return [name for name, f in self.findings.items() if f.kept and not f.densified]

    @property
    def densified(self) -> list[str]:
        """The functions in which something is."""
        return [name for name, f in self.findings.items() if f.densified]

    @property
    def wrong(self) -> list[str]:
        """What broke the law; empty if all is well."""
        return [f"{name}: {text}" for name, f in self.findings.items() for text in f.wrong]

    def raise_if_wrong(self) -> None:
        """Raise if the law does not hold.

        Raises
        ------
        LawBroken
            With all that is wrong.
        """
        if self.wrong:
            raise LawBroken(f"{len(self.wrong)} results of {self.structure} are wrong\n" + "\n".join(self.wrong))

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
    """Check that every function gives for arrays of a structure what it gives for the same arrays in dense form.

    Of every use of every function (`CASES`) the values, shapes, dtypes and errors are compared with NumPy's, and the
    derivatives with differences; operands of the structure stand in each place, beside each other and beside those of `partners`. Batch
    shapes, sizes and dtypes take turns.

    Parameters
    ----------
    structure : type or str
        The class, or the name that a sampler is registered for.
    strategy : callable, optional
        How to make random arrays of it: ``(numbers, batch, core, requires)`` to an array of shape ``batch + core`` with
        parameters drawn from `numbers`, or None where there is none, as for `sampler`; it is registered. By default that which
        is registered already.
    functions : collection of str, optional
        Only these, by the names they have in the cases (``"matmul"``, ``"linalg.solve"``, ``"__getitem__"``, …).
    modes : sequence of str
        Of ``"eager"``, ``"jit"`` and ``"derivative"``. The first two take turns over the structures, and one combination of
        structures a use is differentiated.
    partners : sequence of str
        The structures beside it in functions of two and three arrays, by the names that `sample` knows.
    checks : int
        How many checks each use gets for each combination of structures, with other batch shapes, sizes and dtypes each.

    Returns
    -------
    Report
        Prints as a table. ``report.wrong`` lists what broke the law; nothing is raised for it.

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
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, about means of nothing
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
    """The structures of the operands: the structure in each place, beside itself and beside partners; with a background, in the first."""
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
        check_law(case, arrays, jit=mode == "jit", derivative=mode == "derivative", direction=direction)
    except (LawBroken, *ERRORS, AttributeError, RuntimeError) as error:
        what = "" if isinstance(error, LawBroken) else f"raised {type(error).__name__}: "  # the dense form, for one
        findings.wrong.append(f"{case.code} for {description}, {mode}: {what}{str(error)[:500]}")
        return
    if not case.raises:
        _look(findings, case, structures, arrays)


def _operands(
    case: Case, structures: Sequence[str], mode: str, turn: int
) -> tuple[list[Array], str, list[Array] | None] | None:
    """Operands for which the case applies, what they are, and a direction for the derivative; or None."""
    batches = BATCHES[case.batches]
    dtypes = [d for d in case.dtypes if d in DOUBLE] if mode == "derivative" else case.dtypes
    dtype, batch = dtypes[turn % len(dtypes)], batches[turn // 2 % len(batches)]
    sizes = [s for s in SIZES if s["m"] > 1 or not case.raises]  # what broadcasts raises nothing
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
    """Note whether anything is densified, and what comes out."""
    import structarrays

    def call(*arrays: Any) -> Any:
        return case.call(structarrays, *arrays)

    try:
        try:
            log = explain(call, *arrays)
            result = log.result
        except (jax.errors.JAXTypeError, IndexError):  # what depends on values cannot be traced
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
