"""Kernels have names, and where several are for the same classes, their order is declared."""

import ast
import collections
import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import structarrays as sa
from structarrays._core.dispatch.registry import Registry, in_declared_order

ROOT = Path(__file__).resolve().parent.parent


def ours(registry):
    """The kernels of this package: other tests register more."""
    return [k for k in registry.kernels if k.file.startswith(str(ROOT / "structarrays"))]


@pytest.fixture(scope="module")
def kernels():
    sys.path.insert(0, str(ROOT / "tools"))
    import kernels

    yield kernels
    sys.path.remove(str(ROOT / "tools"))
    sys.modules.pop("kernels")


def test_every_kernel_has_a_name(kernels):
    for function, registry in kernels.registries().items():
        for kernel in ours(registry):
            assert kernel.name.isidentifier() and kernel.name != "unnamed", (function, str(kernel))
            assert re.fullmatch(r"\w+/\w+\.py:\d+", kernel.place), (function, str(kernel))


def test_no_function_is_called_underscore():
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / "structarrays").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name == "_"
    ]
    assert not found


def test_code_refers_to_pages_of_the_repository():
    found = []
    for path in [p for folder in ("structarrays", "tests", "tools", "examples") for p in (ROOT / folder).rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        found += [(path.name, page) for page in re.findall(r"\bdocs/[\w/]+\.md", text) if not (ROOT / page).exists()]
        found += [(path.name, section) for section in re.findall(r"\bDESIGN [0-9.]+", text)]
    assert not found


def test_functions_are_imported():
    """Not looked up by name, except for operators, ufuncs, rules of the interpreter and pickles, whose names are data."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / "structarrays").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Subscript | ast.Attribute)
        and getattr(node.value, "id", None) == "FUNCTIONS"
        and (isinstance(node, ast.Attribute) and node.attr == "get" or isinstance(node.ctx, ast.Load))
        and getattr(node, "attr", "get") == "get"
    ]
    assert len(found) <= 15, found


def test_names_are_unique_in_a_function(kernels):
    for function, registry in kernels.registries().items():
        places: dict[str, str] = {}
        for kernel in ours(registry):
            assert places.setdefault(kernel.name, kernel.place) == kernel.place, (function, kernel.name)


def test_order_of_kernels_is_declared(kernels):
    """Files may be imported in any order."""
    pairs = [(f, ours(r), *pair) for f, r in kernels.registries().items() for pair in r.undeclared()]
    found = [(f, str(a), str(b)) for f, known, a, b in pairs if a in known and b in known]
    assert not found, f'say before="…" for {found}'


def test_declared_names_are_those_of_kernels(kernels):
    """Of some function, since what registers a kernel for several functions declares all names at once."""
    rivals = collections.defaultdict(set)
    for registry in kernels.registries().values():
        for kernel in ours(registry):
            rivals[kernel.classes[0]].add(kernel.name)
    for function, registry in kernels.registries().items():
        for kernel in ours(registry):
            for name in kernel.before:
                assert name in rivals[kernel.classes[0]], (function, str(kernel), name)


class Mine(sa.Diagonal):
    __slots__ = ()


def _registry():
    registry = Registry("size")

    @registry.kernel(sa.Diagonal)
    def size_diagonal(x):
        return "theirs"

    return registry


def _from_another_package(run):
    run.__module__ = "another_package.kernels"
    return run


def _register(registry, *classes, before=()):
    """As a file of another package does."""
    code = compile("register = registry.kernel(*classes, before=before)", "another_package/kernels.py", "exec")
    names = {"registry": registry, "classes": classes, "before": before}
    exec(code, names)

    def ours(x):
        return "ours"

    names["register"](_from_another_package(ours))


def test_registration_from_outside_without_an_order_warns():
    registry = _registry()
    with pytest.warns(
        UserWarning, match=r'size: ours \(\w+/test_registrations.py:\d+\) is for .* before="size_diagonal"'
    ):
        _register(registry, sa.Diagonal)


@pytest.mark.parametrize("before", ["size_diagonal", ["size_diagonal"]])
def test_registration_from_outside_with_an_order(before):
    registry = _registry()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _register(registry, sa.Diagonal, before=before)
        _register(registry, Mine)
    assert registry.required([sa.Diagonal(np.ones(2))]).run(None) == "ours"
    assert [k.name for k in registry.find((sa.Diagonal,))] == ["ours", "size_diagonal"]


def test_order_does_not_depend_on_imports():
    """A kernel that is registered first precedes another if it says so."""
    registry = Registry("size")

    @registry.kernel(sa.Diagonal, before="second")
    def first(x):
        return 1

    @registry.kernel(sa.Diagonal)
    def second(x):
        return 2

    assert [k.name for k in registry.find((Mine,))] == ["first", "second"]


def test_circles_are_errors():
    registry = Registry("size")

    @registry.kernel(sa.Diagonal, before="second")
    def first(x):
        return 1

    @registry.kernel(sa.Diagonal, before="first")
    def second(x):
        return 2

    with pytest.raises(ValueError, match=r"precede each other: first \(.*\), second \("):
        in_declared_order(registry.kernels)


def test_namespace_is_up_to_date():
    """After a structure was added: run `tools/write_namespace.py`."""
    check = subprocess.run([sys.executable, ROOT / "tools" / "write_namespace.py", "--check"], check=False)
    assert check.returncode == 0


def test_explain_names_kernels():
    text = str(sa.explain(sa.linalg.trace, sa.Diagonal([1.0, 2.0])))
    assert re.search(r"kernel trace_\w+ \(\w+/\w+\.py:\d+\)", text), text


def test_comparison_finds_changes(kernels, tmp_path):
    """Of a choice that was changed by hand, and of one that is missing."""
    file = tmp_path / "choices.json"
    found = kernels.choices()
    changed = json.loads(json.dumps(found))
    changed["linalg.solve"]["Banded, Dense"].reverse()
    del changed["linalg.solve"]["Diagonal, Dense"]
    file.write_text(json.dumps(changed))
    lines = kernels.differences(changed, found)
    assert [line.partition(":")[0] for line in lines] == [
        "linalg.solve(Banded, Dense)",
        "linalg.solve(Diagonal, Dense)",
    ]
    assert not kernels.differences(found, found)
