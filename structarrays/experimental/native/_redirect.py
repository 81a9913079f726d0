"""Redirect the calls of Python functions, and undo it.

A redirected function gets another code object; Python documents ``function.__code__`` as writable. The function stays
the same object with the same name and signature. So code that compares functions (``reducer is jax.lax.add``), or that
imported a function earlier, does not change.
"""

from __future__ import annotations

import inspect
import threading
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Plan = Sequence[tuple[FunctionType, Callable[[Callable[..., Any]], Callable[..., Any]]]]


def _template(*args: Any, **kwargs: Any) -> Any:
    target: Any = "the target"
    return target(*args, **kwargs)


def _calling(target: Callable[..., Any], code: CodeType) -> CodeType:
    """Return code that calls `target`, and has the place of the other code."""
    template = _template.__code__
    return template.replace(
        co_consts=tuple(target if constant == "the target" else constant for constant in template.co_consts),
        co_freevars=code.co_freevars,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
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
class _Redirection:
    function: FunctionType
    before: CodeType
    after: CodeType
    signed: bool
    """Whether the function got a signature, which its new code does not show."""

    def undo(self) -> None:
        if self.function.__code__ is self.after:  # or someone else has changed it since
            self.function.__code__ = self.before
        if self.signed:
            self.function.__dict__.pop("__signature__", None)


class Redirections:
    """Functions whose calls are redirected: all of them, or none."""

    def __init__(self) -> None:
        self._done: list[_Redirection] = []
        self._uses = 0
        self._lock = threading.RLock()

    def begin(self, plan: Callable[[], Plan]) -> None:
        """Redirect functions, unless they are redirected already.

        Parameters
        ----------
        plan : callable
            Returns the functions, each with a function that receives its original and returns its replacement.
        """
        with self._lock:
            if not self._uses:
                self._redirect(plan())
            self._uses += 1

    def end(self) -> None:
        """Restore the functions after the last use."""
        with self._lock:
            self._uses -= 1
            if not self._uses:
                self._restore()

    def _redirect(self, plan: Plan) -> None:
        prepared = []
        for function, replace in plan:
            signature = None
            if not {"__wrapped__", "__signature__"} & function.__dict__.keys():
                signature = inspect.signature(function)
            target = _placed(replace(_copied(function)), function.__code__)
            prepared.append((function, _calling(target, function.__code__), signature))
        try:
            for function, code, signature in prepared:
                self._done.append(_Redirection(function, function.__code__, code, signature is not None))
                function.__code__ = code
                if signature is not None:
                    function.__dict__["__signature__"] = signature
        except BaseException:
            self._restore()
            raise

    def _restore(self) -> None:
        while self._done:
            self._done.pop().undo()
