"""Writer of the measured parts of `docs/design/benchmarks.md`, between the markers of each part that ran."""

import datetime
import importlib.util
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness import OURS, WORDS, Report, Section, Verdict, duration
from pictures import draw

PART = r"(<!-- measured: {} -->\n).*?(<!-- end -->)"
MACHINE = ("cpu", "cores", "load average", "device kind")
SETTINGS = ("device", "OPENBLAS_NUM_THREADS", "GLIBC_TUNABLES")


def check(parts: Iterable[str], folder: str) -> None:
    """Exit before any measurement if the results could not be written."""
    if importlib.util.find_spec("matplotlib") is None:
        raise SystemExit("--docs needs matplotlib for the pictures: pip install matplotlib")
    page = _page(folder)
    text = page.read_text(encoding="utf-8")
    lacking = [part for part in parts if not re.search(PART.format(part), text, re.DOTALL)]
    if lacking:
        raise SystemExit(f"{page} must have lines <!-- measured: PART --> and <!-- end --> for {', '.join(lacking)}")


def write(report: Report, part: str, folder: str) -> None:
    """Write the measurements of a part between its markers, and its pictures into `pictures`."""
    page = _page(folder)
    sections = [section for section in report.sections if section.part == part]
    pictures = [
        f"![{caption}](../pictures/{path.name})" for caption, path in draw(part, sections, Path(folder) / "pictures")
    ]
    texts = [_section(section, len(sections) > 1) for section in sections]
    written = [*texts, *pictures, _bars(sections), _environment(report)]
    content = "\n\n".join(written)
    text = page.read_text(encoding="utf-8")
    text = re.sub(
        PART.format(part), lambda match: f"{match[1]}\n{content}\n\n{match[2]}", text, count=1, flags=re.DOTALL
    )
    page.write_text(text, encoding="utf-8")
    print(f"written to {page}")


def _page(folder: str) -> Path:
    return Path(folder) / "design" / "benchmarks.md"


def _section(section: Section, titled: bool) -> str:
    """Return title (if the part has several sections), timing tables, other tables and remarks of a section."""
    groups: dict[tuple[str, ...], list[dict]] = {}
    for case in section.cases:
        if "absent" in case:
            groups.setdefault((*case["seconds"], *case["absent"]), []).append(case)
    tables = [_timings(names, cases, section.verdicts) for names, cases in groups.items()]
    for header, rows in section.tables:
        tables.append(_table(map(_text, header), (map(_text, row) for row in rows)))
    shown = {(case["case"], name) for names, cases in groups.items() for case in cases for name in names}
    remarks = [*section.remarks]
    if not section.tables:  # the rows of a table contain the bars
        remarks += [_sentence(v) for v in section.verdicts if (v.case, v.reference) not in shown]
    lists = ["\n".join(f"* {_text(remark)}" for remark in remarks)] if remarks else []
    title = [f"**{_text(section.title)}**"] if titled else []
    return "\n\n".join([*title, *tables, *lists])


def _timings(names: Sequence[str], cases: list[dict], verdicts: list[Verdict]) -> str:
    """Return a row for each case: our time, and for each peer its time and the ratio of our time to it."""
    names = sorted(names, key=lambda name: name != OURS)
    rows = []
    for case in cases:
        row, bars = [_text(case["case"])], [v for v in verdicts if v.case == case["case"]]
        for name in names:
            if name not in case["seconds"]:
                row.append(_text(case["absent"][name]))
                continue
            judged = [_judged(case["seconds"], name, v) for v in bars if v.reference == name]
            if not judged and OURS in case["seconds"] and name not in (OURS, *(v.subject for v in bars)):
                judged = [_ratio(case["seconds"], OURS, name)]
            row.append("; ".join([duration(case["seconds"][name]["minimum"]), *judged]))
        rows.append(row)
    return _table(["", *map(_text, names)], rows)


def _ratio(seconds: dict, subject: str, reference: str) -> str:
    """Return the ratio of the minima, with the ratio of the medians in parentheses."""
    minimum, median = (seconds[subject][kind] / seconds[reference][kind] for kind in ("minimum", "median"))
    return "{} ({})".format(*(f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.1g}" for ratio in (minimum, median)))


def _judged(seconds: dict, reference: str, verdict: Verdict) -> str:
    """Return the subject of a bar and the bar, in bold if it is missed."""
    measured, bar = verdict.measured, verdict.bar.removeprefix("<= ").replace(reference, "").replace(" + ", "+")
    if verdict.limit is not None:
        measured, bar = _ratio(seconds, verdict.subject, reference), f"{verdict.limit:g}"
    subject = "" if verdict.subject == OURS else f"{_text(verdict.subject)} "
    text = f"{subject}{measured}, bar {bar}"
    return text if verdict.met else f"**{text}, missed**"


def _sentence(verdict: Verdict) -> str:
    return f"{verdict.case}: {verdict.subject} {verdict.bar}: {verdict.measured}, {WORDS[verdict.met]}"


def _bars(sections: list[Section]) -> str:
    judged = [v for section in sections for v in section.verdicts if v.met is not None]
    met = sum(v.met for v in judged)
    return f"{met} of {len(judged)} bars met." if judged else "No bars."


def _environment(report: Report) -> str:
    """Return date, machine and versions in one line."""
    environment = report.environment
    versions = [
        f"{name} {value}"
        for name, value in environment.items()
        if name not in (*MACHINE, *SETTINGS) and value != "not installed"
    ]
    load = environment["load average"]
    where = [str(environment["cpu"]), f"{environment['cores']} cores"]
    where += [f"load average {load:.1f} at the start"] if load is not None else []
    where += [environment["device kind"]] if environment["device kind"] != "cpu" else []
    where += ["a tenth of the rounds"] if report.quick else []
    return f"*{datetime.date.today()}, {', '.join(where)}; {', '.join(versions)}.*"


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(header)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(text: str) -> str:
    """Escape Markdown."""
    return re.sub(r"([*_|<\[\]`])", r"\\\1", text)
