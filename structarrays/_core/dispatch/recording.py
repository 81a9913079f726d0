"""`record` and `explain`: log which kernels run, the structure of their results, and densifications
(docs/design/semantics.md).
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import jax
import numpy as np

from ..array.flattening import opened_arguments
from ..array.shared_indices import opened_operands, with_shared_indices
from ..array.writes import LOCK
from ..text import leaf_text
from . import explicit, late
from .contexts import active
from .tracing import BUSY, compiled_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from .function import Function

    Branch: TypeAlias = tuple["Event", list["Branch"]]
    R = TypeVar("R")

RECORDING: list[Log] = []
"""Not empty while any `record` or `explain` is active; each call of a function checks it first."""


def active_log() -> Log | None:
    """Return the log that this task writes to, or None."""
    return active.value if RECORDING else None


def remark(text: str) -> None:
    """Log the method that a kernel has chosen, with its reason and cost, as a sentence; `explain` prints it."""
    log = active_log()
    if log is not None and log.running:
        log.running[-1].remark = text


@dataclass(eq=False)
class Event:
    """A run of a kernel, or a densification.

    Attributes
    ----------
    function : str
        Name of the function.
    operands : tuple of str
        Class and shape of each operand.
    how : str
        The kernel or rule that ran.
    result : str
        Class and shape of the result.
    depth : int
        Number of enclosing calls.
    bytes : int
        Memory that a densification allocated, or memory of the arguments, results and temporaries of a compiled call.
    densified : bool
        Whether the event densified a structured array.
    seconds : float or None
        Duration of an eager call.
    remark : str
        Reason and cost of the method, if the kernel had a choice.
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
        """Store the description of the result, and return the result."""
        self.result = describe(result)
        return result


def describe(value: object) -> str:
    """Return class and shape of a result as a short text."""
    from ..array.base import Array

    if isinstance(value, Array):
        name = type(value).__name__
        try:
            background = " + background" if value.stores_entries and value.background is not None else ""
            return f"{name}{background} {value.shape}"
        except Exception:  # the leaves need not be arrays
            return f"{name}({', '.join(map(leaf_text, value._value[0]))})"
    if isinstance(value, (tuple, list)):
        # The flag that checked functions return in addition to the result is not an `Array`.
        return ", ".join(describe(v) for v in value if isinstance(v, Array))
    return type(value).__name__


@dataclass(eq=False)
class Log:
    """Log of a `record` block: a list of events that prints as a table. Equal calls within one call are printed once.

    Attributes
    ----------
    events : list of Event
        Events in the order in which they began.
    peak_bytes : int
        Largest sum of arguments, results and temporaries of one compiled call.
    running : list of Event
        Events that have not ended, from the outermost to the innermost.
    result : Array, tuple of Array or None
        Result of `explain`: the return value, with shapes instead of data.
    """

    events: list[Event] = field(default_factory=list)
    peak_bytes: int = 0
    running: list[Event] = field(default_factory=list)
    result: Any = field(default=None, init=False)

    @property
    def depth(self) -> int:
        """Number of calls that are currently running."""
        return len(self.running)

    def add(self, event: Event) -> None:
        """Append an event at the current depth."""
        event.depth = self.depth
        self.events.append(event)

    @contextlib.contextmanager
    def event(self, name: str, args: Sequence[Any], how: str) -> Iterator[Event]:
        """Log an event that lasts while the context is open; events inside are one level deeper."""
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
        """Events that densified a structured array."""
        return [e for e in self.events if e.densified]

    @property
    def kernels(self) -> list[Event]:
        """Events that ran a kernel or a family's rule."""
        return [e for e in self.events if not e.densified]

    def lines(self) -> Iterator[tuple[Event, int]]:
        """Iterate over the events in order, each with its number of occurrences: equal calls within one call are
        merged.
        """
        return _lines(_tree(self.events))

    def table(self) -> tuple[tuple[str, ...], list[tuple[Event, tuple[str, ...]]]]:
        """Return the head of a table, and the event and the texts of each row; empty columns are omitted."""
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
        """Return the remarks of kernels on their choices."""
        said = (f"{e.function}({', '.join(e.operands)}): {e.remark}" for e in self.events if e.remark)
        return list(dict.fromkeys(said))

    def summary(self) -> str:
        """Return a text with the numbers of kernels and densifications."""
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
    """Return the outermost events, each with its inner calls: pairs ``(event, pairs)``."""
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
    """Iterate over the events of a tree in order, each with its number of occurrences: equal calls within one call are
    merged.
    """
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
    """Return a context in which nothing is logged: for code that only determines the structure of a result."""
    context: AbstractContextManager[None] = active(None)
    return context


@contextlib.contextmanager
def record() -> Iterator[Log]:
    """Log every kernel and every densification inside the ``with`` block; a context manager.

    The log contains the time of each eager call and the memory of its compiled code. It also contains the kernels that
    a `jax.jit` inside the block traces.

    Yields
    ------
    Log
        The log, which prints as a table; tests can read `densifications`, `kernels` and `peak_bytes`.

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
    """Determine which kernels would run for these arguments, and the structure of the results, without computing.

    Parameters
    ----------
    function : callable
        A function of the namespace, or any function of arrays.
    *args, **kwargs
        Arguments of the function. Only the structure, shape and dtype of arrays are used.

    Returns
    -------
    Log
        The events; its attribute `result` contains the structure of the return value.

    Raises
    ------
    TypeError
        If `function` is not callable. Exceptions that `function` raises for these arguments propagate.

    Examples
    --------
    >>> import structarrays as sa
    >>> print(sa.explain(sa.exp, sa.Diagonal([1.0, 2.0])).events[0].result)
    Diagonal + background (2, 2)
    """
    from ..array.base import Array, is_array

    if not callable(function):
        raise TypeError(
            f"explain: function must be callable, got {type(function).__name__}; pass its arguments after the function"
        )
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
    """Return whether JAX accepts all leaves of a pytree as arrays: numeric arrays, scalars, or `float0` arrays."""
    scalars = (bool, int, float, complex)
    arrays = (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct)
    return all(
        isinstance(leaf, scalars)
        or (isinstance(leaf, arrays) and (isinstance(leaf, jax.Array) or leaf.dtype.kind in "biufcV"))
        for leaf in jax.tree.leaves(x)
    )


def recorded_call(function: Function[..., Any], static: tuple[Any, ...], arrays: Sequence[Any]) -> Any:
    """Run and log one call of a function of the namespace."""
    from ..array.sharing import complete
    from .results import follow_operands

    log: Log = active.value  # not None, since the caller has checked it
    traced_call = compiled_call()(function._trace)

    def trace(*operands: Any) -> Any:
        return traced_call(static, *with_shared_indices(operands))

    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(arrays)):
        traced = explicit.automatic(trace)(*arrays)
        return follow_operands(traced, function.deciding(static, arrays)) if function.follows else traced
    given, arrays = arrays, opened_operands(arrays)
    with LOCK:
        first = len(log.events)
        explicit.eval_shape(trace, *arrays)
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
