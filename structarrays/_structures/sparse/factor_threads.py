"""Threads that own SuperLU's factors.

SciPy frees the memory of a `scipy.sparse.linalg.SuperLU` only in the thread that computed it: a dictionary of that thread has the
allocations. In any other thread the memory is never freed (SciPy 1.17 and 1.18). XLA calls the host in threads of its own, and any thread may
drop the last reference to the factors. So the threads of this module compute all factors. Each thread keeps a reference to its factors, and
drops the reference once it is the last one.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_THREADS = min(8, os.cpu_count() or 1)
"""SuperLU computes without Python's global lock, so that several threads can factor matrices at the same time."""


def _references(held: list[Any], i: int) -> int:
    return sys.getrefcount(held[i])


_ONE = _references([object()], 0)
"""The count of an object with one reference, which depends on the version of Python."""


_dictionary_of_thread = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThreadState_GetDict", ctypes.pythonapi))
_add_reference = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("Py_IncRef", ctypes.pythonapi))


def _keep_dictionary_of_thread() -> None:
    """Keep the dictionary that has the allocations of this thread, also in a process made by `os.fork`.

    There, Python deletes the dictionaries of all other threads. SciPy's destructor of the allocations then leaves an exception behind,
    which Python prints, and which stops `threading` from forgetting these threads.
    """
    _add_reference(_dictionary_of_thread())


class _Owner:
    """A thread with its factors."""

    def __init__(self) -> None:
        self.held: list[Any] = []
        self.calls = 0
        self._executor = ThreadPoolExecutor(
            1, thread_name_prefix="structarrays-factors", initializer=_keep_dictionary_of_thread
        )

    def compute(self, factor: Callable[..., Any], *args: Any) -> Any:
        """Compute factors in the thread, and wait for them."""
        try:
            computed = self._executor.submit(self._compute, factor, args)
        except RuntimeError:  # Python ends, and has stopped the threads: the memory goes with the process
            return factor(*args)
        return computed.result()

    def release(self) -> None:
        """Free the memory of factors without other references, soon."""
        with contextlib.suppress(RuntimeError):  # as in `compute`
            self._executor.submit(self._release)

    def _compute(self, factor: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        self._release()
        made = factor(*args)
        if made is not None:
            self.held.append(made)
        return made

    def _release(self) -> None:
        for i in range(len(self.held) - 1, -1, -1):
            if _references(self.held, i) <= _ONE:
                del self.held[i]


_owners: list[_Owner] = []
_lock = threading.Lock()


def _forget_threads() -> None:
    """Start without threads in a process made by `os.fork`, which has none of them."""
    global _lock
    _lock = threading.Lock()
    _owners.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def compute(factor: Callable[..., Any], *args: Any) -> Any:
    """Return ``factor(*args)``, computed by a thread that owns the result."""
    with _lock:
        owner = min(_owners, key=lambda o: o.calls, default=None)
        if owner is None or (owner.calls and len(_owners) < _THREADS):
            owner = _Owner()
            _owners.append(owner)
        owner.calls += 1
    try:
        return owner.compute(factor, *args)
    finally:
        with _lock:
            owner.calls -= 1


def release() -> None:
    """Let the threads free the memory of factors that are no longer used."""
    with _lock:
        owners = [owner for owner in _owners if owner.held]
    for owner in owners:
        owner.release()
