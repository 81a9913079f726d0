"""`record` and `explain`: which kernel ran, which structure came out, what was densified (docs/design/semantics.md)."""

from __future__ import annotations

import contextlib
import functools
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import jax
import numpy as np

from ..array.flattening import opened_arguments
from ..array.writes import LOCK
from ..text import leaf_text
from . import explicit, late
from .contexts import active
from .tracing import BUSY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from .function import Function

    Branch: TypeAlias = tuple["Event", list["Branch"]]
    R = TypeVar("R")

RECORDING: list[Log] = []
"""Not empty while any `record` or `explain` is active anywhere: what a function's call looks at first."""


def active_log() -> Log | None:
    """The log that this task writes to, or None."""
    return active.value if RECORDING else None


def remark(text: str) -> None:
    """Say, from within a kernel that has a choice, what it chose, why, and what that costs; `explain` prints it."""
    log = active_log()
    if log is not None and log.running:
        log.running[-1].remark = text


@dataclass(eq=False)
class Event:
    """One kernel run, or one densification.

    Attributes
    ----------
    function : str
        The name of the function.
    operands : tuple of str
        Class and shape of each.
    how : str
        Which kernel or rule it was.
    result : str
        Class and shape of what came out.
    depth : int
        How many calls are around.
    bytes : int
        What a densification allocated; of a compiled call arguments, results and temporaries.
    densified : bool
        Whether it expanded a structured array.
    seconds : float or None
        How long an eager call took.
    remark : str
        Why the kernel did what it did, and what that costs, where it had a choice.
    """

    function: str
    operands: tuple[str, ...]
    how: str
    result: str = ""
    depth: int = 0
    bytes: int = 0
    densified: bool = False
    seconds: float | None = None
    remark: str = ""

    def finish(self, result: R) -> R:
        """Note what came out, and hand it on."""
        self.result = describe(result)
        return result


def describe(value: object) -> str:
    """Class and shape of a result, in a few characters."""
    from ..array.base import Array

    if isinstance(value, Array):
        name = type(value).__name__
        try:
            background = " + background" if value.stores_entries and value.background is not None else ""
            return f"{name}{background} {value.shape}"
        except Exception:  # the leaves need not be arrays
            return f"{name}({', '.join(map(leaf_text, value._value[0]))})"
    if isinstance(value, (tuple, list)):
        # A flag beside the result, which checked functions return, is no array of ours.
        return ", ".join(describe(v) for v in value if isinstance(v, Array))
    return type(value).__name__


@dataclass(eq=False)
class Log:
    """What happened inside a `record`: a list of events that prints as a table, in which equal calls within one call stand once.

    Attributes
    ----------
    events : list of Event
        In the order in which they began.
    peak_bytes : int
        The largest sum of arguments, results and temporaries of one compiled call.
    running : list of Event
        Those that have not ended, each inside of the one before.
    result : Array, tuple of Array or None
        Of `explain`: what would be returned, with shapes in place of data.
    """

    events: list[Event] = field(default_factory=list)
    peak_bytes: int = 0
    running: list[Event] = field(default_factory=list)
    result: Any = field(default=None, init=False)

    @property
    def depth(self) -> int:
        """How many calls are around what happens now."""
        return len(self.running)

    def add(self, event: Event) -> None:
        """Append an event at the present depth."""
        event.depth = self.depth
        self.events.append(event)

    @contextlib.contextmanager
    def event(self, name: str, args: Sequence[Any], how: str) -> Iterator[Event]:
        """An event around the code inside, one level deeper."""
        event = Event(name, tuple(describe(a) for a in args), how)
        with LOCK:  # a task may share its log with threads, whose events must not mix
            self.add(event)
            self.running.append(event)
            try:
                yield event
            finally:
                self.running.pop()

    @property
    def densifications(self) -> list[Event]:
        """The events that expanded a structured array."""
        return [e for e in self.events if e.densified]

    @property
    def kernels(self) -> list[Event]:
        """The events that ran a kernel or a family's rule."""
        return [e for e in self.events if not e.densified]

    def lines(self) -> Iterator[tuple[Event, int]]:
        """The events in their order, each with how often it happened: equal calls within one call stand once."""
        return _lines(_tree(self.events))

    def table(self) -> tuple[tuple[str, ...], list[tuple[Event, tuple[str, ...]]]]:
        """The head of a table, and for each of its lines the event and the texts; columns with nothing in them are left out."""
        head = ("function", "operands", "how", "result", "times", "bytes", "time")
        rows = [
            (
                e,
                (
                    "  " * e.depth + e.function,
                    ", ".join(e.operands),
                    e.how,
                    e.result,
                    f"{count}" if count > 1 else "",
                    f"{e.bytes:,}" if e.bytes else "",
                    "" if e.seconds is None else f"{e.seconds * 1e3:.3g} ms",
                ),
            )
            for e, count in self.lines()
        ]
        kept = [i for i in range(len(head)) if i <= 3 or any(texts[i] for _, texts in rows)]
        return tuple(head[i] for i in kept), [(e, tuple(texts[i] for i in kept)) for e, texts in rows]

    def remarks(self) -> list[str]:
        """What kernels said of their choices."""
        said = (f"{e.function}({', '.join(e.operands)}): {e.remark}" for e in self.events if e.remark)
        return list(dict.fromkeys(said))

    def summary(self) -> str:
        """How many kernels and densifications there were."""
        peak = f", peak of one call {self.peak_bytes:,} bytes" if self.peak_bytes else ""
        return f"{len(self.kernels)} kernels, {len(self.densifications)} densifications{peak}"

    def __str__(self) -> str:
        head, rows = self.table()
        texts = [head, *(row for _, row in rows)]
        widths = [max(len(row[i]) for row in texts) for i in range(len(head))]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in texts]
        lines.insert(1, "  ".join("-" * w for w in widths))
        return "\n".join([*lines, *self.remarks(), self.summary()])

    def _repr_html_(self) -> str:
        return late.log_to_html(self)

    __repr__ = __str__


def _tree(events: Sequence[Event]) -> list[Branch]:
    """The events without a call around them, each with its own calls: pairs ``(event, pairs)``."""
    roots: list[Branch] = []
    stack = [(-1, roots)]
    for e in events:
        while stack[-1][0] >= e.depth:
            stack.pop()
        own: list[Branch] = []
        stack[-1][1].append((e, own))
        stack.append((e.depth, own))
    return roots


def _lines(tree: Sequence[Branch], count: int = 1) -> Iterator[tuple[Event, int]]:
    """The events of a tree in their order, each with how often it happened: equal calls within one call stand together."""
    for e, own in tree:
        yield e, count
        alike: dict[tuple[Any, ...], list[Branch]] = {}
        for branch in own:
            alike.setdefault(_content(branch), []).append(branch)
        for branches in alike.values():
            yield from _lines(branches[:1], count * len(branches))


def _content(branch: Branch) -> tuple[Any, ...]:
    e, own = branch
    return e.function, e.operands, e.how, e.result, e.densified, tuple(map(_content, own))


@contextlib.contextmanager
def _logging(log: Log) -> Iterator[Log]:
    with active(log):
        RECORDING.append(log)
        BUSY.append(None)
        try:
            yield log
        finally:
            RECORDING.remove(log)
            BUSY.pop()


def unrecorded() -> AbstractContextManager[None]:
    """A context in which nothing is logged: for code that only asks which structure would come out."""
    context: AbstractContextManager[None] = active(None)
    return context


@contextlib.contextmanager
def record() -> Iterator[Log]:
    """Log every kernel and every densification inside the ``with``.

    Eager calls are timed, with the memory of their compiled code; what a `jax.jit` inside traces is logged, too.

    Yields
    ------
    Log
        It prints as a table; `densifications`, `kernels` and `peak_bytes` are for tests.

    Examples
    --------
    >>> import structarrays as sa
    >>> D = sa.Diagonal([1.0, 2.0, 3.0])
    >>> with sa.record() as log:
    ...     y = D @ D + D
    >>> len(log.densifications), [e.function for e in log.kernels if e.depth == 0]
    (0, ['matmul', 'add'])
    """
    with _logging(Log()) as log:
        yield log


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Log:
    """Say, without computing, which kernels would run for these arguments, and which structures come out.

    Parameters
    ----------
    function : callable
        A function of the namespace, or any function of arrays.
    *args, **kwargs
        Its arguments; of the arrays only structure, shape and dtype are looked at.

    Returns
    -------
    Log
        The events, and in `result` the structure of what would be returned.

    Raises
    ------
    TypeError
        If `function` is none; and what it raises itself for these arguments.

    Examples
    --------
    >>> import structarrays as sa
    >>> print(sa.explain(sa.exp, sa.Diagonal([1.0, 2.0])).events[0].result)
    Diagonal + background (2, 2)
    """
    from ..array.base import Array, is_array

    if not callable(function):
        raise TypeError(f"explain: function must be a function, then come its arguments; got {type(function).__name__}")
    with _logging(Log()) as log:
        leaves, tree = jax.tree.flatten((args, kwargs), is_leaf=is_array)
        dynamic = [v if isinstance(v, Array | jax.Array) and _is_traceable(v) else None for v in leaves]
        results: Any = None

        def run(values: Sequence[Any]) -> Any:
            nonlocal results
            merged = [v if d is not None else fixed for v, d, fixed in zip(values, dynamic, leaves, strict=True)]
            a, k = jax.tree.unflatten(tree, merged)
            results = jax.tree.flatten(function(*a, **k))
            return [leaf if _is_traceable(leaf) else None for leaf in results[0]]

        shapes = jax.eval_shape(run, opened_arguments(dynamic))
        # Results that are not arrays are returned unchanged.
        merged = [fixed if shape is None else shape for shape, fixed in zip(shapes, results[0], strict=True)]
        log.result = jax.tree.unflatten(results[1], merged)
    return log


def _is_traceable(x: object) -> bool:
    """Whether JAX accepts all leaves of a pytree as arrays: numeric arrays, scalars, or `float0` arrays."""
    scalars = (bool, int, float, complex)
    arrays = (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct)
    return all(
        isinstance(leaf, scalars)
        or (isinstance(leaf, arrays) and (isinstance(leaf, jax.Array) or leaf.dtype.kind in "biufcV"))
        for leaf in jax.tree.leaves(x)
    )


def recorded_call(function: Function[..., Any], static: tuple[Any, ...], arrays: Sequence[Any]) -> Any:
    """Run one call of a function of the namespace, and log it."""
    from ..array.sharing import complete

    log: Log = active.value  # there is one, or else the call would not be recorded
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(arrays)):
        return explicit.automatic(functools.partial(function._trace, static))(*arrays)
    given, arrays = arrays, opened_arguments(arrays)
    with LOCK:
        first = len(log.events)
        explicit.eval_shape(functools.partial(function._trace, static), *arrays)
        with active(None):
            memory = function._jit.lower(static, *arrays).compile().memory_analysis()
            function._jit(static, *arrays)
            start = time.perf_counter()
            result = jax.block_until_ready(complete(function._jit(static, *arrays), given))
            seconds = time.perf_counter() - start
        top = [e for e in log.events[first:] if e.depth == log.depth and not e.densified]
        if top:
            top[0].seconds = seconds
        if memory is not None:
            total = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
            log.peak_bytes = max(log.peak_bytes, total)
            for e in top[:1]:
                e.bytes = total
        return result
