"""Extension of Griffe for the pages in `docs/reference/api`: it shows each public object as a user sees it.

- Docstrings come from the imported object, since decorators add sections.
- The constructor of a class is `__new__`.
- A name in single backticks becomes a link to its entry, if it is public: `explain`, `linalg.solve`, `sa.Banded`.
- Tables, formulas and the entries below "See Also" become Markdown.
"""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import griffe

import structarrays
from structarrays._core.array.hooks import HOOKS

sys.path.insert(0, str(Path(__file__).parent))  # Griffe loads this file by its path
from docstring_markdown import in_markdown  # noqa: E402

MODULES = ("", "linalg", "fft", "extend", "plot")
SHAPE = re.compile(r"\b(array|arrays), (\()")
NAME = re.compile(r"(?<!`)`(?:(?:sa|structarrays)\.)?([A-Za-z_][\w.]*)`(?!`)")


@functools.cache
def public_names() -> dict[str, str]:
    """The path of each public name as docstrings write it: ``linalg.solve`` is at ``structarrays.linalg.solve``."""
    found = {}
    for name in MODULES:
        module = getattr(structarrays, name) if name else structarrays
        prefix = f"{name}." if name else ""
        for member in getattr(module, "__all__", dir(module)):
            if not member.startswith("_") and not inspect.ismodule(getattr(module, member)):
                found[prefix + member] = f"structarrays.{prefix}{member}"
    return found


def link(text: str) -> str:
    """The text of a docstring in which public names are links. Lines of examples stay as they are."""

    def linked(match: re.Match[str]) -> str:
        path = public_names().get(match[1])
        return f"[{match[0]}][{path}]" if path else match[0]

    lines = SHAPE.sub(r"\1 of shape \2", in_markdown(text)).split("\n")  # Griffe takes "array, (n,)" for a tuple
    return "\n".join(line if line.lstrip().startswith((">>>", "...")) else NAME.sub(linked, line) for line in lines)


def runtime_docstring(path: str) -> str | None:
    """The docstring of a function of the namespace, which its decorator may have completed."""
    module, _, name = path.rpartition(".")
    if not module.startswith("structarrays._functions."):
        return None
    text = getattr(getattr(importlib.import_module(module), name, None), "__doc__", None)
    return inspect.cleandoc(text) if isinstance(text, str) else None


class PublicObjects(griffe.Extension):
    """Show docstrings and constructors as they are at run time."""

    def on_function(self, *, func: griffe.Function, **kwargs: Any) -> None:
        """Take the docstring that decorators have completed."""
        if func.docstring is None:
            return
        text = runtime_docstring(func.path) if func.decorators and func.parent.is_module else None
        func.docstring.value = link(text or func.docstring.value)

    def on_class(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Show the signature of `__new__`, and no hooks: `extend` describes these."""
        if "__new__" in cls.members and "__init__" not in cls.members:
            constructor = copy.copy(cls.members["__new__"])
            constructor.name = "__init__"
            constructor.docstring = None
            cls.set_member("__init__", constructor)
        if cls.path.startswith("structarrays._structures."):
            for name in HOOKS & set(cls.members):
                cls.del_member(name)
        if cls.docstring is not None:
            cls.docstring.value = link(cls.docstring.value)

    def on_attribute(self, *, attr: griffe.Attribute, **kwargs: Any) -> None:
        """Link the names in the docstrings of properties."""
        if attr.docstring is not None:
            attr.docstring.value = link(attr.docstring.value)
