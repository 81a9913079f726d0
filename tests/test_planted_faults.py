"""The faults by which the tests are measured (`tools/planted_faults.py`) apply to the library as it is."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def faults(monkeypatch):
    """The module of the faults, and that which plants them."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    import faults
    import planted_faults

    yield faults.FAULTS, planted_faults
    for name in ("faults", "planted_faults"):
        sys.modules.pop(name)


def test_every_fault_applies_once(faults):
    faults, tools = faults
    for fault in faults:
        text = (ROOT / "structarrays" / fault.file).read_text(encoding="utf-8")
        assert text.count(fault.old) == 1 and fault.new != fault.old, fault.name
        ast.parse(text.replace(fault.old, fault.new))
        files = [word.partition("::") for word in tools.arguments(fault.first) if ".py" in word]
        assert files, fault.name
        for file, _, name in files:
            assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8") or not name, fault.name


def test_there_are_faults_in_all_parts(faults):
    faults, _ = faults
    assert len({fault.name for fault in faults}) == 41
    assert {Path(fault.file).parts[0] for fault in faults} == {
        "_core", "_functions", "interop", "_numerics", "_structures", "transform",
    }  # fmt: skip


def test_a_fault_that_does_not_apply_is_refused(faults, tmp_path):
    faults, tools = faults
    fault = faults[0]
    path = tmp_path / fault.file
    path.parent.mkdir(parents=True)
    path.write_text(f"{fault.old}\n")
    tools.apply(fault, tmp_path)
    assert path.read_text() == f"{fault.new}\n"
    for text in ("", f"{fault.old}\n{fault.old}\n"):
        path.write_text(text)
        with pytest.raises(ValueError, match=f"occurs {text.count(fault.old)} times"):
            tools.apply(fault, tmp_path)
