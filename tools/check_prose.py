"""Check the prose of the repository: phrases that are hard to read, and long sentences.

::

    python tools/check_prose.py                 # README, docs, docstrings, comments and error messages
    python tools/check_prose.py docs/tutorial.md structarrays/plot.py

The tool prints each hit with the words to write instead, and the share of sentences above 30 words in each page. It exits with 1 if
there is a hit, or if more than 3 % of the sentences of a page are that long. `EXCEPTIONS` lists allowed hits with their reasons.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT, SHARE = 30, 0.03

PHRASES = {
    r"\bbeside\b": "next to, in addition to, compared with, relative to, off-diagonal",
    r"\bbut for\b": "except",
    r"\bfor the rest\b": "otherwise",
    r"\bin vain\b": "without success",
    r"\bdearer\b": "more expensive",
    r"\bwhoever\b|\bnobody\b": "a user, or you",
    r"\b(?:look|looks|looked|looking) at (?:the )?values\b": "data-dependent",
    r"\bwhich (?:one )?[^.]{0,80}, a page says\b|\ba page says\b": "See [the page](...)",
    r"\b(?:goes|go|going|went) dense\b|\bthe way back\b": "falls back to the dense form, densifies",
    r"\bwhat is stored\b": "stored entries, storage",
    r"\bthe law\b": "the equivalence tests",
    r"\bdoors?\b": "interoperability, conversions",
    r"\b(?:pays|does not pay|do not pay)\b": "saves memory, is cheaper",
    r"\bthat of\b|\bthose of\b": "the noun itself",
    r"\bin (?:its|their|the) place of\b": "instead of",
    r"\bhangs on\b": "depends on",
    r"\bas it comes\b|\bas they come\b": "unchanged",
    r"\bof (?:its|their) own\b accord": "by itself",
    r"\bunlike to\b": "unlike",
    r"\bnot but\b": "only",
    r"\bfrom how many\b|\bas many as\b|\bso many\b": "the number of",
    r"\bby turns\b": "alternately, interleaved",
    r"\bonce in a great while\b": "rarely",
    r"\bso it is with\b|\bso is it\b": "the same is true for",
}
"""By pattern: what to write instead."""

STARTS = r"^(?:What|How|Where|Of|Those|That which|Whether it)\b[^?]*$"
"""A docstring starts with a verb or a noun."""

EXCEPTIONS: dict[tuple[str, str], str] = {}
"""By file and phrase: why it is allowed."""


def markdown(text: str) -> Iterator[tuple[int, str]]:
    """The paragraphs of a page with the numbers of their lines, without code, tables and generated parts."""
    text = (
        re.sub(r"^---\n.*?^---\n", blank, text, count=1, flags=re.DOTALL | re.MULTILINE)
        if text.startswith("---")
        else text
    )
    text = re.sub(
        r"<!-- (measured: \w+|structures: begin|.*?: begin) -->.*?<!-- (?:end|.*?: end) -->",
        blank,
        text,
        flags=re.DOTALL,
    )
    text = re.sub(r"^( *)```.*?^\1```", blank, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->|<[^>\n]+>", blank, text, flags=re.DOTALL)
    number, paragraph, start = 0, [], 1
    for number, line in enumerate([*text.splitlines(), ""], 1):
        stripped = line.strip()
        ends = not stripped or stripped.startswith(("|", "#", ":::", "!["))
        begins = re.match(r"(?:[-*+]|\d+\.) ", stripped)
        if (ends or begins) and paragraph:
            yield start, " ".join(paragraph)
            paragraph = []
        if ends:
            if stripped.startswith("#"):
                yield number, stripped.lstrip("# ")
            continue
        if not paragraph:
            start = number
        paragraph.append(re.sub(r"^(?:[-*+]|\d+\.) ", "", stripped))


def blank(match: re.Match[str]) -> str:
    """As many lines, without their text."""
    return "\n" * match[0].count("\n")


def plain(text: str) -> str:
    """Prose without code and addresses."""
    text = re.sub(r"`+[^`]*`+", "x", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)|\[([^\]]*)\]\[[^\]]*\]", r"\1\2", text)
    return re.sub(r"[*_]{1,2}(\S[^*_]*)[*_]{1,2}", r"\1", text)


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph. A colon or semicolon does not end one."""
    return [s for s in re.split(r"(?<=[.!?])[\"')]*\s+(?=[A-Z`\"'(x\d])", text) if len(s.split()) > 1]


def python(source: str) -> Iterator[tuple[int, str, str]]:
    """Docstrings, comments and messages of errors of a module: line, kind, text."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                first = node.body[0].lineno
                yield first, "docstring", text.split("\n", 1)[0]
                for i, line in enumerate(text.split("\n")[1:], 1):
                    if line.strip() and not line.strip().startswith((">>>", "...")):
                        yield first + i, "text", line.strip()
        elif isinstance(node, ast.Raise) and node.exc is not None:
            for part in ast.walk(node.exc):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, "message", part.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not re.match(r"#\s*(?:type:|noqa|ruff:|mypy:)", token.string):
            yield token.start[0], "comment", token.string.lstrip("# ")


def hits(path: str, line: int, kind: str, text: str) -> Iterator[str]:
    """A message for each phrase in a text that is not an exception."""
    text = plain(text)
    for pattern, instead in PHRASES.items():
        for match in re.finditer(pattern, text, re.IGNORECASE):
            if (path, match[0]) not in EXCEPTIONS:
                yield f"{path}:{line}: {match[0]!r}: write {instead}"
    if kind == "docstring" and re.match(STARTS, text):
        yield f"{path}:{line}: {text[:60]!r}: start with a verb or a noun"


def check(paths: list[Path]) -> int:
    """Print the hits and the figures of the pages; return the exit status."""
    found, figures = [], []
    for path in paths:
        name, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        if path.suffix == ".md":
            paragraphs = list(markdown(text))
            for line, paragraph in paragraphs:
                found += hits(name, line, "text", paragraph)
            all_of = [s for _, paragraph in paragraphs for s in sentences(plain(paragraph))]
            long = [s for s in all_of if len(s.split()) > LIMIT]
            figures.append((len(long) / max(len(all_of), 1), len(long), len(all_of), name))
        else:
            for line, kind, part in python(text):
                found += hits(name, line, kind, part)
    for message in found:
        print(message)
    for share, long, count, name in sorted(figures, reverse=True):
        if share > 0:
            print(f"{share:6.1%} of {count} sentences above {LIMIT} words ({long}): {name}")
    total = sum(f[2] for f in figures)
    if total:
        print(f"{sum(f[1] for f in figures) / total:.1%} of all {total} sentences; {len(found)} phrases to replace")
    return int(bool(found) or any(share > SHARE and long > 1 for share, long, *_ in figures))


def main() -> None:
    """Check the files on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    paths = [path.resolve() for path in parser.parse_args().paths]
    if not paths:
        paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
        paths += sorted((ROOT / "structarrays").rglob("*.py"))
    sys.exit(check(paths))


if __name__ == "__main__":
    main()
