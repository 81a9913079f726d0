"""A type checker accepts right calls in user code, and refuses wrong ones: `typed_user_code.py` says which."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CODE = Path(__file__).parent / "typed_user_code.py"
ROOT = CODE.parent.parent


def expected() -> dict[int, str]:
    lines = enumerate(CODE.read_text(encoding="utf-8").splitlines(), 1)
    return {i: found.group(1) for i, line in lines if (found := re.search(r"# refused: ([\w-]+)", line))}


@pytest.mark.costly
def test_mypy_refuses_wrong_calls_alone(tmp_path):
    """In its strict mode; the errors of these lines and no others."""
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--follow-imports=silent",
        "--cache-dir",
        str(tmp_path),
        str(CODE),
    ]
    environment = os.environ | {"MYPYPATH": str(ROOT)}
    process = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path, timeout=300
    )
    errors = re.findall(r"typed_user_code\.py:(\d+): error: .*\[([\w-]+)\]", process.stdout)
    assert errors, process.stdout + process.stderr
    assert {int(line) for line, _ in errors} == set(expected()), process.stdout
    for line, code in expected().items():
        assert (str(line), code) in errors, process.stdout
