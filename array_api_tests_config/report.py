"""Report of a run of the official suite: a summary, problems, and a row of the table in the documentation."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = "docs/design/conformance.md"
BEGIN, END = "<!-- structures: begin -->", "<!-- structures: end -->"

OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed", "xpassed", "deselected")
NEEDED = {False: 100, True: 60}
"""Required numbers of tests with a structured kernel, for square structures and others, from `ENOUGH_EXAMPLES` on.

For a structure without stored entries, a tenth of the tests that draw it is required: element-wise functions make it
dense (`Fourier`: 5 of 41 to 9 of 45 tests).
"""
ENOUGH_EXAMPLES = 30
SHARES = (0.70, 0.55)
"""Required shares of the tests of a quarter: with a structured array, and with a structured kernel, for stored entries."""
SAMPLING = 0.1
"""Tolerance of the shares in a quarter below the shares of the whole suite in `PAGE`, for other structures."""


@dataclass
class Outcome:
    """Result of one run: of one structure (or None), with one seed."""

    structure: str | None
    seed: int
    examples: int
    counts: dict
    status: int
    seconds: int = 0
    cpu_seconds: int = 0

    @property
    def drawn(self) -> int:
        """Number of tests that received a structured array."""
        return len(self.counts["drawn"])

    @property
    def served(self) -> int:
        """Number of tests that ran a structured kernel."""
        return len(self.counts["drawn"].keys() & self.counts["served"].keys())

    @property
    def ran(self) -> int:
        """Number of tests that ran."""
        return sum(self.counts[name] for name in ("passed", "failed", "error", "xfailed", "xpassed"))

    def __str__(self):
        counts = self.counts
        minutes, seconds = divmod(self.seconds, 60)
        text = f"{self.structure}, " if self.structure else ""
        text += f"seed {self.seed}, {self.examples} examples: "
        text += ", ".join(f"{counts[name]} {name}" for name in OUTCOMES)
        if self.structure:
            text += f", {self.drawn} received a structured array, {self.served} ran a structured kernel"
            text += f", {counts['left to the plain run']} draw no arrays and are left to the run without a structure"
        if counts["left out of the quarter"]:
            text += f", {counts['left out of the quarter']} left out of the quarter"
        if counts["narrowed_by"]:
            text += f", NOT THE WHOLE SUITE: {'; '.join(counts['narrowed_by'])}"
        return f"{text} in {minutes} min {seconds} s ({self.cpu_seconds} s of processor time)"

    def problems(self, *, selected: bool, quarter: bool) -> list[str]:
        """Return the problems of the run: failures, unexpected omissions, or too few tests with the structure."""
        unwanted = ["failed", "error", "xfailed", "xpassed"] + ["deselected"] * (not selected)
        problems = [f"{self.counts[name]} {name}" for name in unwanted if self.counts[name]]
        if self.status != 0 and not problems and not (quarter and self.status == 5):
            problems.append(f"pytest's exit status {self.status}")
        if self.counts["narrowed_by"]:
            problems.append("options or missing extensions make the suite skip tests")
        if self.structure and not selected and not quarter and self.examples >= ENOUGH_EXAMPLES:
            needed = NEEDED[self.counts["square"]] if self.counts["stores_entries"] else max(1, self.drawn // 10)
            if self.served < needed:
                problems.append(f"{self.served} tests ran a structured kernel, {needed} are needed")
        if self.structure and quarter and not selected:
            problems += self._of_a_quarter()
        return problems

    def _of_a_quarter(self) -> list[str]:
        """Return the shares of tests with the structure that are too small."""
        shares = SHARES if self.counts["stores_entries"] else documented_shares(self.structure)
        return [
            f"{number} of {self.ran} tests {what}, {share:.0%} are needed"
            for number, share, what in zip(
                (self.drawn, self.served),
                shares,
                ("received a structured array", "ran a structured kernel"),
                strict=True,
            )
            if number < share * self.ran
        ]

    def details(self) -> dict:
        """Return the numbers of structured arrays, and the functions with a structured kernel, for each test."""
        tests = {
            test: {"arrays": number, "functions": self.counts["served"].get(test, [])}
            for test, number in sorted(self.counts["drawn"].items())
        }
        return {
            "structure": self.structure,
            "seed": self.seed,
            "failed": self.counts["failures"],
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "tests": tests,
        }


def documented_shares(structure: str) -> tuple[float, float]:
    """Return the shares of tests of the whole suite with a structure, minus the tolerance of a sample.

    The shares come from the table in the documentation. They are zero for structures that are not in the table.
    """
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    for line in page.partition(BEGIN)[2].partition(END)[0].splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if cells[0] == f"`{structure}`":
            passed, drawn, served = int(cells[4]), int(cells[7]), int(cells[8])
            return drawn / passed - SAMPLING, served / passed - SAMPLING
    return 0.0, 0.0


HEADER = (
    "| structure | core | examples | seeds | passed | failed | skipped by the suite | structured arrays in | structured kernels in |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def rows(outcomes: list[Outcome]) -> dict[str, str]:
    """Return a row for each structure: the smallest numbers of tests over the seeds, and the sum of failures."""
    found = {}
    for structure in dict.fromkeys(o.structure for o in outcomes):
        runs = [o for o in outcomes if o.structure == structure]
        cells = [
            f"`{structure}`",
            "n × n" if runs[0].counts["square"] else "m × n",
            runs[0].examples,
            ", ".join(str(o.seed) for o in runs),
            min(o.counts["passed"] for o in runs),
            sum(o.counts["failed"] + o.counts["error"] for o in runs),
            max(o.counts["skipped"] for o in runs),
            min(o.drawn for o in runs),
            min(o.served for o in runs),
        ]
        found[structure] = "| " + " | ".join(map(str, cells)) + " |"
    return found


def table(found: dict[str, str]) -> str:
    """Return the table of these rows."""
    return "\n".join([HEADER, *found.values()])


def write(root: Path, outcomes: list[Outcome]) -> None:
    """Update rows of the table between the markers of the page; other rows are kept.

    Raises
    ------
    ValueError
        If the page has no such markers.
    """
    path = root / PAGE
    text = path.read_text(encoding="utf-8")
    before, found, rest = text.partition(BEGIN)
    old, ended, after = rest.partition(END)
    if not found or not ended:
        raise ValueError(f"{path} must have the lines {BEGIN} and {END}, between which the table is written")
    there = {line.split("`")[1]: line for line in old.splitlines() if line.startswith("| `")}
    path.write_text(f"{before}{BEGIN}\n\n{table(there | rows(outcomes))}\n\n{END}{after}", encoding="utf-8")
