"""`repr` and `str` of arrays: `repr` shows the class and the stored entries, `str` the elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.array.base import Array
from .._core.array.dense import Dense
from .._core.array.flattening import parameters
from .._core.families.factored import Factored
from .._core.text import array_text, inline, leaf_text, readable, size_text

_SMALL = 12
"""Largest number of rows and columns of a structured matrix whose elements `str` shows."""


def to_repr(x: Array) -> str:
    """Return the `repr` of an array. The function never raises, and reads only the elements that it shows."""
    if is_readable(x):
        try:
            return _dense_repr(x) if type(x) is Dense else _structured_repr(x)
        except Exception:  # `tree_unflatten` of JAX may put any leaves into an array
            pass
    return f"{type(x).__name__}({', '.join(_parameters(x))})"


def _parameters(x: Array) -> list[str]:
    """Return a short text for each leaf of an array, which may be any object."""
    values = x._value[0]
    if len(values) > 1 and values[-1] is None:
        values = values[:-1]  # usually the missing background
    return [to_repr(value) if isinstance(value, Array) else leaf_text(value) for value in values]


def is_readable(x: Array) -> bool:
    """Return whether this process can read the values of all parameters. The background may be None."""
    *first, last = x._value[0]
    values = first if first and last is None and x.stores_entries else (*first, last)
    return all(is_readable(value) if isinstance(value, Array) else readable(value) for value in values)


def _structured_repr(x: Array) -> str:
    name = type(x).__name__
    texts, complete = x.description()
    texts.append(f"dtype={x.dtype}")
    if getattr(x, "stores_entries", False) and x.background is not None:
        texts.append(f"background={inline(x.background)[0]}")
    if x.assumptions:
        texts.append("assumed " + " and ".join(sorted(map(str, x.assumptions))))
    if not complete:
        dense = size_text(x.size * x.itemsize)
        texts.append(f"stores {_stored(x)} of {x.size} entries, {size_text(x.nbytes)} of {dense} dense")
    if isinstance(x, Factored):
        return f"{name}({', '.join(texts)}{_tree(x)})"
    return f"{name}({', '.join(texts)})"


def _stored(x: Array) -> int:
    """Return the number of stored entries, without coordinates."""
    if isinstance(x, Factored):
        return sum(map(_stored, x.parts))
    return sum(leaf.size for leaf in (x.entries if x.stores_entries and not x.static_pattern else parameters(x)))


def _tree(x: Factored) -> str:
    """Return the parts of a factored array, indented and one per line."""
    return "".join("\n    " + _part(part).replace("\n", "\n    ") for part in x.parts)


def _part(x: Array) -> str:
    """Return the text of a part of a factored array; a dense part takes one line."""
    if type(x) is not Dense or not readable(x._value[0][0]):
        return to_repr(x)
    text = " ".join(inline(x._value[0][0])[0].split())
    return f"Dense({text if x.size <= 10 else f'shape={x.shape}'})"


# ---- dense ----------------------------------------------------------------------------------------------------------


def _dense_repr(x: Array) -> str:
    (data,) = x._value[0]
    prefix, suffix = "Dense(", f", dtype={data.dtype})"
    if data.size == 0:
        shape = "" if data.shape == (0,) else f", shape={data.shape}"
        return f"{prefix}[]{shape}{_assumed(x)}{suffix}"
    text = prefix + array_text(data, prefix, suffix=",") + _assumed(x)
    # As in NumPy, the dtype goes to a new line if the last line would be too long.
    last = len(text) - (text.rfind("\n") + 1)
    if last + len(suffix) > np.get_printoptions()["linewidth"]:
        suffix = ",\n" + " " * len(prefix) + suffix[2:]
    return text + suffix


def _assumed(x: Array) -> str:
    return ", assumed " + " and ".join(sorted(map(str, x.assumptions))) if x.assumptions else ""


# ---- str ----------------------------------------------------------------------------------------------------------------


def to_str(x: Array) -> str:
    """Return the `str` of an array: its elements, with a dot for each structural zero of a small matrix.

    The function never raises.
    """
    if is_readable(x):
        try:
            return _numbers(x)
        except Exception:  # as in `to_repr`
            pass
    return to_repr(x)


def _numbers(x: Array) -> str:
    if type(x) is Dense:
        data = x._value[0][0]
        return str(np.asarray(data)[()]) if data.ndim == 0 else array_text(data, separator=" ")
    if x.size > _SMALL**2 or (x.ndim >= 2 and max(x.shape[-2:]) > _SMALL):
        return to_repr(x)
    dense = np.asarray(x.to_jax())
    if x.ndim < 2 or not x.stores_entries or x.background is not None or x.size == 0:
        return to_str(Dense.make((dense,)))
    ones: tuple[Any, ...] = tuple(np.ones_like(e) for e in x.entries)
    stored = np.asarray(x.rebuild(ones, None).to_jax()) != 0
    return _dotted(dense, stored)


def _dotted(dense: np.ndarray, stored: np.ndarray) -> str:
    """Format a matrix with dots instead of structural zeros."""
    values = dense[stored]
    texts = np.array2string(values, separator="|", max_line_width=10**6, threshold=values.size + 1)[1:-1].split("|")
    texts = [t.strip(" ") if values.dtype.kind not in "fc" else t for t in texts]
    width = max(map(len, texts), default=1)
    remaining = iter(texts)

    def lines(stored: np.ndarray, depth: int) -> str:
        if stored.ndim == 1:
            return "[" + " ".join((next(remaining) if kept else ".").rjust(width) for kept in stored.tolist()) + "]"
        separator = "\n" * (stored.ndim - 1) + " " * (depth + 1)
        return "[" + separator.join(lines(part, depth + 1) for part in stored) + "]"

    return lines(stored, 0)
