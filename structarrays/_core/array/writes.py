"""Writes to a handle: one assignment under one lock, pushed to the views, in place if the handle owns its buffer.

A handle is in one of two states. Normally its value is in ``_value``, where flattening finds it. After a write, the
handle owns the buffer, and keeps the value in ``_owned`` with ``_value`` unset. The next write may then donate the
buffer to the compiled update, so that a loop of single writes does not copy the array each time. Any access to
``_value`` calls `Array.__getattr__`, which exposes the value and ends the ownership.

A view is a handle with a link to its base and the pair of functions ``get`` and ``put`` between them (a *lens*). A
write through a view updates its part of the base; a write to a base updates the views that are still alive. Code that
never writes has no overhead.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax

from ..dispatch import late
from ..dispatch.tracing import BUSY
from ..jax_internals.traces import begun_within, is_of_same_trace

if TYPE_CHECKING:
    import numpy as np

    from ..typing import Leaves, Shape, Value
    from .base import Array

    Lens = Callable[..., jax.Array]

LOCK = threading.RLock()
"""Lock of all writes. It is global, not an attribute, so that arrays can be pickled and copied."""


SHARED: list[bool] = []
"""Not empty after the first write while several threads run. From then on, calls pass new handles on the values of
their arguments to JAX. JAX flattens an argument several times while it compiles, and another thread may change its
structure in between."""


class Link:
    """Relation of a handle to others: its base with the lens between them, and its own live views."""

    __slots__ = ("base", "get", "put", "views")

    def __init__(self, base: Array | None = None, get: Lens | None = None, put: Lens | None = None) -> None:
        self.base = base
        self.get: Any = get  # a Lens if there is a base, else None
        self.put: Any = put
        self.views: list[weakref.ref[Array]] = []

    def live_views(self) -> list[Array]:
        """Return the views that still exist, and forget the others."""
        live = [(ref, view) for ref in self.views if (view := ref()) is not None]
        self.views = [ref for ref, _ in live]
        return [view for _, view in live]


def link_of(x: Any) -> Link | None:
    """Return the link of a handle, or None."""
    try:
        link: Link = object.__getattribute__(x, "_link")  # without `Array.__getattr__`, which makes a message
        return link
    except AttributeError:
        return None


DERIVATIVE = Link()
"""Link of a handle on a derivative with respect to parameters in which the dense value is not linear
(docs/design/semantics.md)."""

DERIVATIVES: list[bool] = []
"""Not empty after the first such derivative. Until then, operators need not look for one."""

DIRECT: set[type] = set()
"""Classes of arguments with which a function calls its compiled code without further checks. With the first such derivative,
the classes that may contain one leave the set."""


def mark_derivative(x: Array) -> None:
    """Mark a new handle as a derivative that operators refuse."""
    x._link = DERIVATIVE
    if not DERIVATIVES:
        with LOCK:
            DERIVATIVES.append(True)
            DIRECT.difference_update([cls for cls in list(DIRECT) if getattr(cls, "linear", True) is not True])


def refuse_derivatives(name: str, *operands: Any) -> None:
    """Raise TypeError if an operand of an operator is a derivative that must not be used as an array (`DERIVATIVE`)."""
    for x in operands:
        # Arrays of a class that is always linear are never such derivatives; to check the class is faster.
        if getattr(type(x), "linear", True) is not True and not x.linear and link_of(x) is DERIVATIVE:
            kind = type(x).__name__
            raise TypeError(
                f"{name}: an operand is a derivative with respect to the parameters of a {kind}. The elements are not "
                f"linear in the parameters, so that arithmetic would give wrong numbers. Change the parameters "
                f"instead, with sa.apply_updates(A, updates), jax.tree.map(lambda p, g: p - 0.1 * g, A, gradient) or optax"
            )


def expose(x: Array) -> Value:
    """Return the value of a handle and end its ownership: from now on, the value may be shared."""
    with LOCK:
        try:
            value: Value = object.__getattribute__(x, "_owned")
        except AttributeError:
            # Another thread has exposed it in between, or this handle never had a value.
            value = object.__getattribute__(x, "_value")
            return value
        x._value = value
        del x._owned
        return value


def take(x: Array) -> tuple[Value, bool]:
    """Return the value of a handle for a write, and whether its buffers may be donated. Call it under the lock."""
    try:
        return object.__getattribute__(x, "_owned"), True
    except AttributeError:
        return x._value, False


def peek(x: Array) -> Value:
    """Return the value for a computation that ends before the next write, so that the handle keeps its ownership.

    Call it under the lock, except for shapes and dtypes.
    """
    return take(x)[0]


def shape_and_dtype(x: Array) -> tuple[Shape, np.dtype]:
    """Return shape and dtype of an array, which no write changes. The handle keeps the ownership of its buffers."""
    leaves, (cls, meta, assumptions) = peek(x)
    seen = cls.make(leaves, meta, assumptions)
    return seen.shape, seen.dtype


def held(x: Array) -> tuple[Array, bool]:
    """Return a new handle with the value of `x`, and whether its buffers may be donated. Call it under the lock.

    A write reads this handle and never `x`. An access to `x` would expose the value, and another thread could get
    buffers that the write donates later.
    """
    (leaves, (cls, meta, assumptions)), owned = take(x)
    return cls.make(leaves, meta, assumptions), owned


def make_view(view: Array, base: Array, get: Lens, put: Lens) -> Array:
    """Make a new handle a view of `base`: `get` maps the base's dense value to the view's, `put` writes back."""
    with LOCK:
        link = link_of(base)
        if link is None:
            link = base._link = Link()
        view._link = Link(base, get, put)
        if len(link.views) >= 32 and len(link.views) & (len(link.views) - 1) == 0:
            link.live_views()  # occasionally, so that dead references of a loop over views do not accumulate
        link.views.append(weakref.ref(view))
    return view


def check_escape(x: Array, leaves: Leaves, what: str) -> None:
    """Raise `RuntimeError` if a write stores a traced value in a handle from outside of the traced function.

    Call it under the lock.
    """
    for leaf in _tracers(leaves):
        local = begun_within(x._origin, leaf) or any(is_of_same_trace(leaf, old) for old in _tracers(peek(x)[0]))
        if not local:
            raise RuntimeError(
                f"{what} would put a traced value into an array that was made outside of the function being transformed; "
                "return the new value from the function instead, or copy the array inside: xp.asarray(x, copy=True)"
            )


def _tracers(values: Any) -> list[jax.core.Tracer[Any]]:
    return [leaf for leaf in jax.tree.leaves(values) if isinstance(leaf, jax.core.Tracer)]


def is_traced(*values: Any) -> bool:
    """Return whether any of these values, keys or arrays has a traced leaf."""
    return bool(_tracers(values))


def store(x: Array, value: Value, *, owned: bool = False) -> None:
    """Give a handle a new value. Call it under the lock.

    The class of the handle changes before or after the value; a reader in between uses the class that the value names.
    """
    if not SHARED and threading.active_count() > 1:
        SHARED.append(True)
        BUSY.append(None)
    cls = value[1][0]
    if type(x) is not cls:
        x.__class__ = cls
    link = link_of(x)
    if owned and link is None:
        x._owned = value
        try:
            del x._value
        except AttributeError:
            pass
        return
    x._value = value
    try:
        del x._owned
    except AttributeError:
        pass
    if link is not None:
        _push(x, link)


def _push(x: Array, link: Link) -> None:
    """Update the views of a handle, recursively. The new values need not have the assumed properties."""
    data = x._value[0][0]
    for view in link.live_views():
        store(view, ((view._link.get(data),), (*view._value[1][:2], frozenset())))


def write(x: Array, value: Value, what: str, *, owned: bool = False) -> None:
    """Give a handle a new value; a view writes through its base. Errors name the write by `what`. Call it under the lock."""
    link = link_of(x)
    if link is not None:
        value = _dense_value(value)
    if link is None or link.base is None:
        check_escape(x, value[0], what)
        store(x, value, owned=owned)
        return
    base = link.base
    (data,), aux = base._value
    write(base, ((link.put(data, value[0][0]),), aux[:2] + (frozenset(),)), what)


def _dense_value(value: Value) -> Value:
    """Convert a value to dense form: a handle with views stays dense, since a lens maps dense data."""
    from .dense import Dense

    leaves, (cls, meta, _) = value
    return value if cls is Dense else cls.make(leaves, meta).to_dense()._value


def assign_result(x: Array, result: Array, name: str) -> None:
    """Assign the result of an in-place operator to `x`; it must have the same shape and a dtype of the same kind."""
    if result.shape != x.shape:
        raise ValueError(f"{name} in place: the result must have the shape {x.shape} of the array, got {result.shape}")
    if result.dtype != x.dtype:
        if _kind_rank(result.dtype) > _kind_rank(x.dtype):
            raise TypeError(f"{name} in place: the result's dtype {result.dtype} cannot be written into {x.dtype}")
        result = late.astype(result, x.dtype)
    leaves, aux = result._value
    with LOCK:
        write(x, (leaves, aux), f"{name} in place")


def _kind_rank(dtype: np.dtype) -> int:
    return {"b": 0, "u": 1, "i": 1, "c": 3}.get(dtype.kind, 2)
