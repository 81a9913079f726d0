"""Arrays as text, for `repr` and `str`; only the elements that are shown are read."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np


def readable(leaf: Any) -> bool:
    """Return whether a leaf has values that this process can read."""
    if not isinstance(leaf, jax.Array) or isinstance(leaf, jax.core.Tracer):
        return isinstance(leaf, np.ndarray) and leaf.dtype != jax.dtypes.float0
    return leaf.is_fully_addressable and not leaf.is_deleted()


def _visible(
    data: jax.Array | np.ndarray, edge: int | None = None, threshold: int | None = None
) -> tuple[np.ndarray, bool]:
    """Return the elements that NumPy would show, and whether it would omit some.

    For a long axis these are the first and last `edge` elements, and one more, so that NumPy inserts its dots there.
    """
    options = np.get_printoptions()
    edge = int(options["edgeitems"]) if edge is None else edge
    threshold = int(options["threshold"]) if threshold is None else threshold
    if data.size <= threshold:
        return np.asarray(data), False
    if not isinstance(data, np.ndarray) and all(d.platform == "cpu" for d in data.devices()):
        data = np.asarray(data)  # shares the memory
    for axis, n in enumerate(data.shape):
        if n > 2 * edge + 1:
            kept = np.r_[: edge + 1, n - edge : n]
            data = data[(slice(None),) * axis + (kept,)]
    return np.asarray(data), True


def array_text(
    data: jax.Array | np.ndarray,
    prefix: str = "",
    suffix: str = "",
    *,
    threshold: int | None = None,
    edge: int | None = None,
    separator: str = ", ",
    width: int | None = None,
) -> str:
    """Format the elements in brackets, as NumPy does."""
    data, shortened = _visible(data, edge, threshold)
    options: dict[str, Any] = {} if edge is None else {"edgeitems": edge}
    return np.array2string(
        data, separator=separator, prefix=prefix, suffix=suffix, max_line_width=width,
        threshold=0 if shortened else data.size + 1, **options,
    )  # fmt: skip


def inline(data: jax.Array | np.ndarray) -> tuple[str, bool]:
    """Format a parameter on one line; also return whether the text is complete."""
    if data.ndim == 0:
        return str(np.asarray(data)[()]), True
    text = array_text(data, threshold=10, edge=3, width=10**6)
    if len(text) > 100:
        return f"<{data.dtype}{list(data.shape)}>", False
    return " ".join(text.split("\n")).replace("  ", " ") if data.ndim > 1 else text, data.size <= 10


def leaf_text(leaf: Any) -> str:
    """Format any leaf of a pytree as a short text: an array, a tracer, a deleted or distributed buffer, or another
    object. Never raises.
    """
    try:
        if isinstance(leaf, jax.core.Tracer):
            return f"Traced<{leaf.aval.str_short()}>"
        if readable(leaf):
            return inline(leaf)[0]
        if isinstance(leaf, jax.Array):
            return f"{'deleted' if leaf.is_deleted() else 'distributed'}<{leaf.dtype}{list(leaf.shape)}>"
        if isinstance(leaf, np.ndarray):
            return f"float0{list(leaf.shape)}"
        text = repr(leaf)
    except Exception:  # the `repr` of a foreign class may raise
        return f"<{type(leaf).__name__}>"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


_LONGEST = 200


def size_text(count: int) -> str:
    """Format a number of bytes with at most four digits."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 10_000:
            return f"{count} {unit}"
        count = round(count / 1000)
    return f"{count} TB"
