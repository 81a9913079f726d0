"""Redirect the calls of Python functions, replace attributes of modules, and undo it.

A redirected function gets another code object; Python documents ``function.__code__`` as writable. The function stays
the same object with the same name and signature. So code that compares functions (``reducer is jax.lax.add``), or that
imported a function earlier, does not change.
"""

from __future__ import annotations

import inspect
import threading
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Concerns = Callable[[tuple[Any, ...], Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Redirect:
    """A function whose calls are redirected if `concerns(args, kwargs)` is true, to ``special(original)``."""

    function: FunctionType
    concerns: Concerns
    special: Callable[[FunctionType], Callable[..., Any]]


@dataclass(frozen=True)
class Replace:
    """An attribute of a module that gets another value."""

    owner: ModuleType
    name: str
    value: Any


def _template(*args: Any, **kwargs: Any) -> Any:
    # All calls pay for this function, so that it calls only what it must.
    concerns: Any = "concerns"
    special: Any = "special"
    original: Any = "original"
    if concerns(args, kwargs):
        return special(*args, **kwargs)
    return original(*args, **kwargs)


def _code(original: CodeType, constants: Mapping[str, Any]) -> CodeType:
    """Return the template with these constants, and with the place of the original code."""
    template = _template.__code__
    return template.replace(
        co_consts=tuple(constants.get(c, c) if isinstance(c, str) else c for c in template.co_consts),
        co_freevars=original.co_freevars,
        co_filename=original.co_filename,
        co_firstlineno=original.co_firstlineno,
        co_name=original.co_name,
        co_qualname=original.co_qualname,
    )


def _copied(function: FunctionType) -> FunctionType:
    """Return another function with the same code."""
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__module__, copy.__qualname__, copy.__doc__ = function.__module__, function.__qualname__, function.__doc__
    copy.__dict__.update(function.__dict__)
    return copy


def _placed(target: Callable[..., Any], code: CodeType) -> Callable[..., Any]:
    """Return a function with the file of other code.

    JAX names the line of the user for each equation of a program: the first line outside of its own files.
    """
    function = cast("FunctionType", target)
    function.__code__ = function.__code__.replace(co_filename=code.co_filename, co_firstlineno=code.co_firstlineno)
    return function


@dataclass(frozen=True)
class _Redirected:
    function: FunctionType
    before: CodeType
    after: CodeType
    signature: inspect.Signature | None
    """Signature of the function, unless an attribute of the function tells it; the new code does not show it."""

    def do(self) -> None:
        self.function.__code__ = self.after
        if self.signature is not None:
            self.function.__dict__["__signature__"] = self.signature

    def undo(self) -> None:
        if self.function.__code__ is self.after:  # or someone else has changed it since
            self.function.__code__ = self.before
        if self.signature is not None:
            self.function.__dict__.pop("__signature__", None)


@dataclass(frozen=True)
class _Replaced:
    owner: ModuleType
    name: str
    before: Any
    after: Any

    def do(self) -> None:
        setattr(self.owner, self.name, self.after)

    def undo(self) -> None:
        if getattr(self.owner, self.name, None) is self.after:
            setattr(self.owner, self.name, self.before)


class Changes:
    """Functions whose calls are redirected, and replaced attributes: all of them, or none."""

    def __init__(self) -> None:
        self._done: list[_Redirected | _Replaced] = []
        # Redirected functions are kept for the next use, since they contain compiled programs.
        self._known: dict[FunctionType, _Redirected] = {}
        self._uses = 0
        self._lock = threading.RLock()

    @property
    def in_use(self) -> bool:
        """Whether the changes are made."""
        return self._uses > 0

    def begin(self, plan: Callable[[], Sequence[Redirect | Replace]]) -> None:
        """Make the changes that `plan` returns, unless they are made already."""
        with self._lock:
            if not self._uses:
                prepared = list(map(self._prepare, plan()))
                try:
                    for change in prepared:
                        self._done.append(change)
                        change.do()
                except BaseException:
                    self._undo()
                    raise
            self._uses += 1

    def end(self) -> None:
        """Undo the changes after the last use."""
        with self._lock:
            self._uses -= 1
            if not self._uses:
                self._undo()

    def _prepare(self, wanted: Redirect | Replace) -> _Redirected | _Replaced:
        if isinstance(wanted, Replace):
            return _Replaced(wanted.owner, wanted.name, getattr(wanted.owner, wanted.name), wanted.value)
        function, before = wanted.function, wanted.function.__code__
        known = self._known.get(function)
        if known is None or known.before is not before:
            hidden = not {"__wrapped__", "__signature__"} & function.__dict__.keys()
            original = _copied(function)
            special = _placed(wanted.special(original), before)
            after = _code(before, {"concerns": wanted.concerns, "special": special, "original": original})
            known = _Redirected(function, before, after, inspect.signature(function) if hidden else None)
            self._known[function] = known
        return known

    def _undo(self) -> None:
        while self._done:
            self._done.pop().undo()
