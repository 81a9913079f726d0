"""Python's garbage collection while the library is imported."""

from __future__ import annotations

import contextlib
import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def paused_collection() -> Iterator[None]:
    """Return a context without garbage collections, if they were enabled before.

    An import creates many permanent objects. Python would search all objects of JAX for garbage, which takes longer
    than half of the import.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
        if collects and not gc.get_freeze_count():
            # The objects of the import are young, so the next collection would search them all. To freeze and thaw makes them old, at
            # no cost. Who has frozen objects keeps them frozen.
            gc.freeze()
            gc.unfreeze()
