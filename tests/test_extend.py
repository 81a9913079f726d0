"""`structarrays.extend`: all that a structure from outside imports."""

import ast
import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import structarrays as sa
from structarrays import extend

ROOT = Path(__file__).resolve().parent.parent


def test_names_are_there_and_documented():
    assert extend.__all__ == sorted(extend.__all__)
    for name in extend.__all__:
        assert re.search(rf"`{name}`", extend.__doc__), name
        assert getattr(extend, name).__doc__, name


@pytest.mark.parametrize(
    "path", [*sorted((ROOT / "examples").rglob("*.py")), *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda p: p.name
)
def test_examples_and_docs_import_what_is_public(path):
    text = path.read_text(encoding="utf-8")
    codes = [text] if path.suffix == ".py" else re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for code in codes:
        for node in ast.walk(ast.parse(code)):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            names = [a.name for a in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            for name in [f"{module}.{n}".strip(".") for n in names]:
                assert not (name.startswith("structarrays") and re.search(r"\._(?!_)", name)), name
            if isinstance(node, ast.Attribute):
                assert node.attr not in ("_value", "_make"), ast.unparse(node)


def test_the_namespace_lists_what_is_public():
    assert [name for name in dir(sa) if name not in sa.__all__ and not name.startswith("__")] == []
    for name in sa.__all__:
        value = getattr(sa, name)
        if isinstance(value, type) and issubclass(value, sa.Array):
            assert value.__module__ == "structarrays"


class Corner(extend.EntryArray):
    """The square matrix with one entry, in the upper right corner; ``entry (...)``."""

    __slots__ = ()

    def __new__(cls, entry, n):
        return cls.make((jnp.asarray(entry), None), n)

    @staticmethod
    def shape_of(parameters, n):
        return (*parameters[0].shape, n, n)

    entries = property(lambda self: self.parameters[:1])
    background = property(lambda self: self.parameters[1])

    def rebuild(self, entries, background):
        return Corner.make((*entries, background), self.meta)

    def positions(self):
        return ((jnp.asarray(0), jnp.asarray(self.meta - 1)),)

    def dense_data(self):
        outside = 0 if self.background is None else self.background
        empty = jnp.full(self.shape, jnp.asarray(outside, self.dtype)[..., None, None])
        return empty.at[..., 0, -1].set(self.entries[0])


def test_a_structure_of_a_few_lines():
    x = Corner(2.0, 3)
    dense = np.array([[0.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(np.asarray(x), dense)
    for result, expected in ((sa.exp(x), np.exp(dense)), (3 * x, 3 * dense), (x - 1, dense - 1)):
        assert type(result) is Corner
        np.testing.assert_allclose(np.asarray(result), expected)
    assert type(sa.astype(x, sa.float32)) is Corner
    np.testing.assert_array_equal(np.asarray(x + sa.eye(3)), dense + np.eye(3))


def test_base_classes_of_families_are_no_nearer_than_arrays():
    """A kernel for `EntryArray` comes before one for `Array`, and a class of the family is as near to `Array` as any other."""
    registry = extend.Registry("kind")

    @registry.kernel(extend.EntryArray, extend.Array, before=())
    def kind_of_entries(x, y):
        return "entries"

    @registry.kernel(extend.Array, extend.Array)
    def kind_of_array(x, y):
        return "array"

    @registry.kernel(extend.Array, sa.Fill)
    def kind_of_constant(x, y):
        return "constant"

    x, y = Corner(2.0, 3), sa.Fill(1.0, (3, 3))
    assert registry.required((x, x)).run(x, x) == "entries"
    assert registry.required((sa.asarray([1.0]), x)).run(x, x) == "array"
    assert registry.required((x, y)).run(x, y) == "constant"
