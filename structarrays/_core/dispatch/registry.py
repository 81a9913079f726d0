"""Registries of kernels, and the choice of a kernel by the classes of the arguments."""

from __future__ import annotations

import functools
import itertools
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from ..array.base import Array
    from .function import Function

Result = TypeVar("Result", covariant=True)
Run = TypeVar("Run", bound=Callable[..., Any])

FUNCTIONS: dict[str, Function[..., Array]] = {}
"""Every function of the namespace by its qualified name (``"add"``, ``"linalg.solve"``), for the operators of `Array`,
which cannot import the functions."""

REGISTERED: list[Kernel[Any]] = []
"""All kernels, in the order of registration: a registration invalidates cached choices. It is not an attribute of
`Registry`, since Python 3.13 looks up every attribute anew for a class that has changed a thousand times."""


class Kernel(NamedTuple, Generic[Result]):
    """Implementation of a function for given classes.

    Attributes
    ----------
    classes : tuple of type
        The classes that it serves.
    when : callable or None
        Static condition under which it serves them.
    run : callable
        The code.
    before : tuple of str
        Names of kernels for the same classes that it precedes.
    file : str
        File that registers it.
    """

    classes: tuple[type, ...]
    when: Callable[..., bool] | None
    run: Callable[..., Result]
    before: tuple[str, ...] = ()
    file: str = ""

    @property
    def name(self) -> str:
        """Name of the function that runs, without leading underscores."""
        code = _function(self.run)
        return getattr(code, "__name__", type(code).__name__).lstrip("_") or "unnamed"

    @property
    def place(self) -> str:
        """Folder, file and line of its definition."""
        code = getattr(_function(self.run), "__code__", None)
        return f"{'/'.join(Path(code.co_filename).parts[-2:])}:{code.co_firstlineno}" if code else "?"

    def __str__(self) -> str:
        return f"{self.name} ({self.place})"


def _function(run: Any) -> Any:
    """Return the function inside wrappers and partial applications."""
    while isinstance(run, functools.partial) or hasattr(run, "__wrapped__"):
        run = run.func if isinstance(run, functools.partial) else run.__wrapped__
    return run


class Registry(Generic[Result]):
    """Kernels of a function by the classes of their arguments.

    The kernel for given classes has the smallest sum of distances along the method resolution orders, where the base
    class `EntryArray` does not count. Ties are broken by the smallest distance in the leftmost argument, then by the
    presence of a predicate. Kernels that are still equal are for the same classes: `before` declares their order, and
    the last of one file comes first.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.kernels: list[Kernel[Result]] = []
        self._found: dict[tuple[type, ...], tuple[Kernel[Result], ...]] = {}

    def kernel(
        self, *classes: type, when: Callable[..., bool] | None = None, before: str | Sequence[str] = ()
    ) -> Callable[[Run], Run]:
        """Register the decorated function as the kernel for arguments of these classes and their subclasses.

        Parameters
        ----------
        *classes : type
            The class of each array argument, in order.
        when : callable, optional
            A static predicate on the same arguments as the kernel; if it is false, the next best kernel serves.
        before : str or sequence of str, optional
            Names of kernels for the same classes that this kernel precedes, without leading underscores. It is needed
            if another file or package registers such a kernel, and both conditions can hold.

        Returns
        -------
        callable
            The decorator; it returns the kernel unchanged.

        Warns
        -----
        UserWarning
            If another package has a kernel for the same classes, and `before` does not say which of them comes first.

        Examples
        --------
        >>> import structarrays as sa
        >>> class Mine(sa.Diagonal):
        ...     __slots__ = ()
        >>> @sa.linalg.trace.kernel(Mine)
        ... def trace_mine(x, *, offset, dtype):
        ...     return sa.asarray(42.0)
        >>> float(sa.linalg.trace(Mine([1.0, 2.0])))
        42.0
        """
        return self._registering(classes, when, before, sys._getframe(1).f_code.co_filename)

    def _registering(
        self, classes: tuple[type, ...], when: Callable[..., bool] | None, before: str | Sequence[str], file: str
    ) -> Callable[[Run], Run]:
        for cls in classes:
            if not isinstance(cls, type):
                raise TypeError(f"{self.name}.kernel: classes must be array classes, got {cls!r}")
        names = (before,) if isinstance(before, str) else tuple(before)

        def register(run: Run) -> Run:
            kernel = Kernel(classes, when, run, names, file)
            self._check(kernel)
            self.kernels.append(kernel)
            self._found.clear()
            REGISTERED.append(kernel)
            return run

        return register

    def _check(self, kernel: Kernel[Any]) -> None:
        """Warn if a kernel of another package serves the same classes without a declared order."""
        if getattr(kernel.run, "__module__", __name__).partition(".")[0] == __name__.partition(".")[0]:
            return  # a test checks the kernels of this package, once all are registered
        for other in self.kernels:
            if _are_rivals(kernel, other) and not _is_declared(kernel, other):
                warnings.warn(
                    f"{self.name}: {kernel} is for the same classes as {other}, {_class_names(kernel)}; "
                    f'pass before="{other.name}" if it is to come first, or give both '
                    "a condition (when=) that excludes the other",
                    stacklevel=3,
                )

    def undeclared(self) -> list[tuple[Kernel[Result], Kernel[Result]]]:
        """Return pairs of kernels for the same classes that different files register without an order."""
        pairs = itertools.combinations(self.kernels, 2)
        return [pair for pair in pairs if _are_rivals(*pair) and not _is_declared(*pair)]

    def find(self, classes: tuple[type, ...]) -> tuple[Kernel[Result], ...]:
        """Return the kernels that can serve arguments of these classes, best first."""
        found = self._found.get(classes)
        if found is None:
            found = self._found[classes] = self._search(classes)
        return found

    def _search(self, classes: tuple[type, ...]) -> tuple[Kernel[Result], ...]:
        groups: dict[tuple[Any, ...], list[Kernel[Result]]] = {}
        for kernel in reversed(self.kernels):  # the last kernel of a file comes first
            if len(kernel.classes) == len(classes) and all(map(issubclass, classes, kernel.classes)):
                nearness = tuple(map(_nearness, classes, kernel.classes))
                distances, places = tuple(zip(*nearness, strict=True)) or ((), ())
                key = (sum(distances), distances, places, kernel.when is None)
                groups.setdefault(key, []).append(kernel)
        found: list[Kernel[Result]] = []
        for key in sorted(groups):
            found += groups[key] if len(groups[key]) == 1 else in_declared_order(groups[key])
        return tuple(found)

    def required(self, args: Sequence[Any], static: Mapping[str, Any] = MappingProxyType({})) -> Kernel[Result]:
        """Return the kernel that serves these arguments.

        Raises
        ------
        TypeError
            If no kernel does.
        """
        kernel = self.choose(args, static)
        if kernel is None:
            raise TypeError(f"{self.name} has no kernel for {', '.join(type(x).__name__ for x in args)}")
        return kernel

    def choose(self, args: Sequence[Any], static: Mapping[str, Any]) -> Kernel[Result] | None:
        """Return the kernel that serves these arguments, or None."""
        for kernel in self.find(tuple(map(type, args))):
            if kernel.when is None or kernel.when(*args, **static):
                return kernel
        return None


def in_declared_order(kernels: Sequence[Kernel[Result]]) -> list[Kernel[Result]]:
    """Order kernels for the same classes so that each follows the kernels declared to precede it; otherwise keep their
    order.

    Raises
    ------
    ValueError
        If the declarations form a cycle.
    """
    left, ordered = list(kernels), []
    while left:
        behind = set(itertools.chain(*[kernel.before for kernel in left]))
        for first in left:
            if not behind or first.name not in behind:
                break
        else:
            raise ValueError(f"these kernels are declared to precede each other: {', '.join(map(str, left))}")
        left.remove(first)
        ordered.append(first)
    return ordered


@functools.cache
def _nearness(cls: type, base: type) -> tuple[int, int]:
    """Return the distance of a class from a base class, and the index of the base class in the method resolution order.

    The distance counts the structures between them, without the base classes of families.
    """
    place = distance = cls.__mro__.index(base)
    for between in cls.__mro__[:place]:
        if between.__dict__.get("is_family", False):
            distance -= 1
    return distance, place


def _are_rivals(a: Kernel[Any], b: Kernel[Any]) -> bool:
    """Return whether two kernels of different files are equally close to the same arguments."""
    return a.classes == b.classes and (a.when is None) == (b.when is None) and a.file != b.file


def _is_declared(a: Kernel[Any], b: Kernel[Any]) -> bool:
    return a.name in b.before or b.name in a.before


def _class_names(kernel: Kernel[Any]) -> str:
    return ", ".join(c.__name__ for c in kernel.classes)
