"""The table of kernels behind a function, and how the right one is found (DESIGN 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from .array import Array
    from .dispatch import Function

Result = TypeVar("Result", covariant=True)
Run = TypeVar("Run", bound=Callable[..., Any])

FUNCTIONS: dict[str, Function[Array]] = {}
"""Every function of the namespace by its qualified name (``"add"``, ``"linalg.solve"``), for `Array`'s operators, which
stand below the functions in the order of imports."""


class Kernel(NamedTuple, Generic[Result]):
    """One implementation: the classes it serves, the static condition under which it does, and the code."""

    classes: tuple[type, ...]
    when: Callable[..., bool] | None
    run: Callable[..., Result]


class Registry(Generic[Result]):
    """Kernels by the classes of their arguments.

    The kernel for given classes is the one with the smallest sum of distances along the method resolution orders, then
    the smallest distance in the leftmost argument, then one with a predicate before one without, then the one registered
    last: a total order, so that two packages which know nothing of each other can both register, and nothing is ever
    ambiguous.
    """

    registrations = 0
    """How many kernels have been registered, with all functions: what is remembered of choices is void after the next."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kernels: list[Kernel[Result]] = []
        self._found: dict[tuple[type, ...], tuple[Kernel[Result], ...]] = {}

    def kernel(self, *classes: type, when: Callable[..., bool] | None = None) -> Callable[[Run], Run]:
        """Register the decorated function as the kernel for arguments of these classes and their subclasses.

        Parameters
        ----------
        *classes : type
            The class of each array argument, in order.
        when : callable, optional
            A static predicate on the same arguments as the kernel; where it is false, the next best kernel serves.

        Returns
        -------
        callable
            The decorator; it returns the kernel unchanged.

        Examples
        --------
        >>> import structarrays as sa
        >>> class Mine(sa.Diagonal):
        ...     __slots__ = ()
        >>> @sa.linalg.trace.kernel(Mine)
        ... def _(x, *, offset, dtype):
        ...     return sa.asarray(42.0)
        >>> float(sa.linalg.trace(Mine([1.0, 2.0])))
        42.0
        """
        for cls in classes:
            if not isinstance(cls, type):
                raise TypeError(f"{self.name}.kernel takes array classes, got {cls!r}")

        def register(run: Run) -> Run:
            self.kernels.append(Kernel(classes, when, run))
            self._found.clear()
            Registry.registrations += 1
            return run

        return register

    def find(self, classes: tuple[type, ...]) -> tuple[Kernel[Result], ...]:
        """The kernels that can serve arguments of these classes, best first."""
        found = self._found.get(classes)
        if found is None:
            found = self._found[classes] = self._search(classes)
        return found

    def _search(self, classes: tuple[type, ...]) -> tuple[Kernel[Result], ...]:
        ranked = []
        for age, kernel in enumerate(self.kernels):
            if len(kernel.classes) == len(classes) and all(map(issubclass, classes, kernel.classes)):
                distances = tuple(c.__mro__.index(k) for c, k in zip(classes, kernel.classes, strict=True))
                ranked.append((sum(distances), distances, kernel.when is None, -age, kernel))
        ranked.sort(key=lambda entry: entry[:4])
        return tuple(entry[4] for entry in ranked)

    def required(self, args: Sequence[Any]) -> Kernel[Result]:
        """The kernel that serves these arguments, where there has to be one.

        Raises
        ------
        TypeError
            If there is none.
        """
        kernel = self.choose(args, {})
        if kernel is None:
            raise TypeError(f"{self.name} has no kernel for {', '.join(type(x).__name__ for x in args)}")
        return kernel

    def choose(self, args: Sequence[Any], static: dict[str, Any]) -> Kernel[Result] | None:
        """The kernel that serves these arguments, or None."""
        for kernel in self.find(tuple(map(type, args))):
            if kernel.when is None or kernel.when(*args, **static):
                return kernel
        return None
