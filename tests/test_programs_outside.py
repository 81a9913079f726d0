"""Benchmarks and tools read names of the library that exist: most of them do not run with the tests."""

import ast
import importlib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = sorted(path for folder in ("benchmarks", "tools") for path in (ROOT / folder).rglob("*.py"))


def modules_of(tree):
    """Return the modules and classes of the library that a program imports, by the names that it gives them."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "structarrays":
                    module = importlib.import_module(alias.name)
                    found[alias.asname or "structarrays"] = (
                        module if alias.asname else importlib.import_module("structarrays")
                    )
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "structarrays":
            module = importlib.import_module(node.module)
            for alias in node.names:
                found[alias.asname or alias.name] = member(module, alias.name)
    return found


def member(parent, name):
    """Return an attribute, or a submodule that nothing has imported yet."""
    if isinstance(parent, ModuleType) and not hasattr(parent, name):
        return importlib.import_module(f"{parent.__name__}.{name}")
    return getattr(parent, name)


def names_read(tree, known):
    """Yield the objects of the library, and the names of their attributes that a program reads."""

    def value(node):
        if isinstance(node, ast.Name):
            return known.get(node.id)
        if isinstance(node, ast.Attribute):
            parent = value(node.value)
            return member(parent, node.attr) if isinstance(parent, ModuleType) else None
        return None

    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            parent = value(node.value)
            if isinstance(parent, ModuleType):
                yield parent, node.attr


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_names_exist(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for module, name in names_read(tree, modules_of(tree)):
        member(module, name)  # raises


def test_the_page_of_benchmarks_has_a_place_for_each_part():
    program = (ROOT / "benchmarks" / "run.py").read_text(encoding="utf-8")
    lists = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(program).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("PARTS", "ALONE")
    }
    page = (ROOT / "docs" / "design" / "benchmarks.md").read_text(encoding="utf-8")
    needed = [part for part in lists["PARTS"] if part not in lists["ALONE"]]
    assert [part for part in needed if f"<!-- measured: {part} -->" not in page] == []
