"""Sections that several docstrings share: `with_sections` inserts them. Elementwise functions have rules of their own,
see `elementwise_docstrings`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_EXAMPLES = "\n\nExamples\n--------\n"


def with_sections(**sections: str) -> Callable[[F], F]:
    """Insert sections into a function's docstring, before its examples. It decorates a function below `@function`.

    Parameters
    ----------
    **sections : str
        The text of each section by its title, in the order in which they appear.
    """
    text = "".join(f"\n\n{title}\n{'-' * len(title)}\n{body}" for title, body in sections.items())

    def decorate(function: F) -> F:
        if function.__doc__:  # Python drops docstrings under the option -OO
            description, title, examples = inspect.cleandoc(function.__doc__).partition(_EXAMPLES)
            function.__doc__ = f"{description}{text}{title}{examples}\n"
        return function

    return decorate
