"""Interleaved timing in one process, and the report that compares times with the bars.

Each round calls every candidate of a case once, in alternating order, so that other jobs on the machine affect all
candidates equally. The report contains the minimum and the median. Bars are judged by minima, which other jobs affect
least.
"""

import gc
import itertools
import json
import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import jax

OURS = "structarrays"
WORDS = {True: "met", False: "MISSED", None: "not judged: the reference does not run here"}


@dataclass(frozen=True)
class Timing:
    """Seconds per call: minimum and median of the rounds."""

    minimum: float
    median: float


@dataclass(frozen=True)
class Bar:
    """Upper limit for the time of `subject`: `factor` times the time of `reference`."""

    reference: str
    factor: float = 1.0
    subject: str = OURS

    def __str__(self) -> str:
        return self.reference if self.factor == 1.0 else f"{self.factor:g} x {self.reference}"


@dataclass
class Verdict:
    """A measured quantity and its bar; `met` is None if the reference cannot run.

    A bar on a time has a `reference`. If the bar is a multiple of the reference, the verdict contains our `ratio` to
    the reference and its `limit`.
    """

    case: str
    subject: str
    bar: str
    measured: str
    met: bool | None
    ratio: float | None = None
    limit: float | None = None
    reference: str | None = None


@dataclass
class Section:
    """Measurements under one heading of one part of the benchmarks."""

    part: str
    title: str
    cases: list[dict] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    tables: list[tuple[Sequence[str], list[Sequence[str]]]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


@dataclass
class Report:
    """Printer of each case, which collects all results for the summary, the JSON file and the documentation."""

    quick: bool = False
    environment: dict = field(default_factory=dict)
    part: str = ""
    sections: list[Section] = field(default_factory=list)

    @property
    def cases(self) -> list[dict]:
        return [case for section in self.sections for case in section.cases]

    @property
    def verdicts(self) -> list[Verdict]:
        return [verdict for section in self.sections for verdict in section.verdicts]

    def rounds(self, count: int) -> int:
        """Return the number of rounds; a quick run takes a tenth of `count`, but at least 5 if `count` is not smaller."""
        return min(count, max(5, count // 10)) if self.quick else count

    def section(self, title: str) -> None:
        self.sections.append(Section(self.part, title))
        print(f"\n== {title} ==", flush=True)

    def time(
        self,
        case: str,
        candidates: Mapping[str, Callable[[], object]],
        bars: Sequence[Bar] = (),
        absent: Mapping[str, str] | None = None,
        rounds: int = 60,
        inner: int = 1,
        warm_up: int = 3,
    ) -> dict[str, Timing]:
        """Time the candidates of one case, print the times and judge the bars.

        Parameters
        ----------
        case : str
            Description of the case.
        candidates : dict
            Functions without arguments, by name; `structarrays` is ours.
        bars : sequence of Bar
            Upper limits of times.
        absent : dict, optional
            Peers that cannot be compared, with the reason.
        rounds : int, default 60
            Number of rounds.
        inner : int, default 1
            Number of calls in each round; use many for calls of microseconds.
        warm_up : int, default 3
            Number of calls of each candidate before the first round.
        """
        timings = interleave(candidates, self.rounds(rounds), inner, warm_up)
        print(f"\n{case}")
        print(f"  {'':36}{'minimum':>11}{'median':>11}{'ours/this':>11}{'(medians)':>11}")
        ours = timings.get(OURS)
        for name, timing in timings.items():
            ratios = ""
            if ours is not None and name != OURS:
                ratios = f"{ours.minimum / timing.minimum:11.2f}{ours.median / timing.median:11.2f}"
            print(f"  {name:36}{duration(timing.minimum):>11}{duration(timing.median):>11}{ratios}")
        for name, reason in (absent or {}).items():
            print(f"  {name:36}{reason}")
        self.note(case, seconds={k: asdict(v) for k, v in timings.items()}, absent=dict(absent or {}))
        for bar in bars:
            subject = timings[bar.subject].minimum
            if bar.reference not in timings:
                self.judge(case, bar.subject, f"<= {bar}", duration(subject), None, reference=bar.reference)
                continue
            reference = timings[bar.reference].minimum
            ratio = subject / reference
            met = ratio <= bar.factor
            self.judge(case, bar.subject, f"<= {bar}", f"{ratio:.2f} x", met, ratio, bar.factor, bar.reference)
        return timings

    def judge(
        self, case: str, subject: str, bar: str, measured: str, met: bool | None, ratio=None, limit=None, reference=None
    ) -> None:
        """Print a bar, and whether it is met."""
        print(f"  bar: {subject} {bar}: {measured}, {WORDS[met]}", flush=True)
        self.sections[-1].verdicts.append(Verdict(case, subject, bar, measured, met, ratio, limit, reference))

    def note(self, case: str, **values: object) -> None:
        """Add further values of a case to the JSON file."""
        self.sections[-1].cases.append({"case": case, **values})

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Print each row immediately, and keep the rows for the documentation."""
        kept: list[Sequence[str]] = []
        self.sections[-1].tables.append((header, kept))
        width = max(12, 72 // (len(header) - 1))
        for row in itertools.chain([header], rows):
            print(f"  {row[0]:56}" + "".join(f"{cell:>{width}}" for cell in row[1:]), flush=True)
            if row is not header:
                kept.append(row)

    def remark(self, text: str) -> None:
        """Print a line, and keep it for the documentation."""
        print(f"  {text}", flush=True)
        self.sections[-1].remarks.append(text)

    def summary(self) -> None:
        judged = [verdict for verdict in self.verdicts if verdict.met is not None]
        missed = [verdict for verdict in judged if not verdict.met]
        print(f"\n{len(judged) - len(missed)} of {len(judged)} bars met.")
        for verdict in missed:
            print(f"  missed: {verdict.case}: {verdict.subject} {verdict.bar}: {verdict.measured}")

    def write(self, path: str) -> None:
        content = {
            "environment": self.environment,
            "quick": self.quick,
            "cases": self.cases,
            "bars": [asdict(verdict) for verdict in self.verdicts],
        }
        with open(path, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
        print(f"written to {path}")


def interleave(
    candidates: Mapping[str, Callable[[], object]], rounds: int, inner: int = 1, warm_up: int = 3
) -> dict[str, Timing]:
    """Time functions without arguments alternately; times include waiting for results, but not compilation."""
    for function in candidates.values():
        for _ in range(warm_up):
            jax.block_until_ready(function())
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    order = list(candidates.items())
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, function in order:
                seconds[name].append(_once(function, inner))
            order.reverse()
            gc.collect(0)
    finally:
        if collecting:
            gc.enable()
    return {name: Timing(min(times), statistics.median(times)) for name, times in seconds.items()}


def _once(function: Callable[[], object], inner: int) -> float:
    start = time.perf_counter()
    for _ in range(inner):
        result = function()
    jax.block_until_ready(result)
    return (time.perf_counter() - start) / inner


def duration(seconds: float) -> str:
    """Format a duration with three digits and a unit."""
    for scale, unit in ((1e-6, "us"), (1e-3, "ms")):
        if seconds < scale * 1e3:
            return f"{_three(seconds / scale)} {unit}"
    return f"{_three(seconds)} s"


def _three(value: float) -> str:
    digits = 2 - math.floor(math.log10(value)) if value > 0 else 2
    return f"{value:.{min(2, max(0, digits))}f}"
