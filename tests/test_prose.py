"""The check of the prose: the phrases and long sentences that it finds."""

import importlib.util
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("check_prose", ROOT / "tools" / "check_prose.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_phrases_in_pages_are_found(tool, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "# Title\n\nThe one beside it.\n\n```python\nbeside = 1\n```\n\nCode `beside` and [a link](beside.md) are ignored.\n",
        encoding="utf-8",
    )
    assert tool.check([page]) == 1
    printed = capsys.readouterr().out
    assert "page.md:3: 'beside': write next to" in printed and printed.count("'beside'") == 1
    monkeypatch.setattr(tool, "EXCEPTIONS", {("page.md", "beside"): "a quotation"})
    assert tool.check([page]) == 0


def test_long_sentences_are_counted(tool, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    long = "This sentence has " + "very " * 30 + "many words."
    page.write_text(f"{long} A short one. {long}\n\n| {long} |\n", encoding="utf-8")
    assert tool.check([page]) == 1
    assert "66.7% of 3 sentences above 30 words (2): page.md" in capsys.readouterr().out


def test_text_of_modules_is_found(tool, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    module = tmp_path / "module.py"
    source = '''
        """A module."""

        def f(x):
            """What it gives."""
            # nobody reads this
            if x:
                raise ValueError("f: x must be so, but for zero")
            name = "in vain"  # noqa: X
            return name
    '''
    module.write_text(textwrap.dedent(source).lstrip(), encoding="utf-8")
    assert tool.check([module]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[1] for line in sorted(lines)] == ["4", "5", "7"]


def test_exceptions_have_reasons_and_are_needed(tool):
    for (path, phrase), reason in tool.EXCEPTIONS.items():
        assert reason and phrase in (ROOT / path).read_text(encoding="utf-8")
