"""Native calls: the cost of a call of a structured array, and of dense arrays with and without native calls."""

import statistics
import time

import jax
import jax.numpy as jnp
from harness import OURS, Bar, Report, duration

import structarrays as sa
from structarrays.experimental import native

PYTREE = "jax.jit(sa.sin)(D), pytree"
DENSE = {
    "jnp.sin(x)": jnp.sin,
    "jax.jit(f)(x)": jax.jit(lambda x: jnp.sin(x) + x),
    "x + x": lambda x: x + x,
    "jnp.sum(x)": lambda x: jnp.sum(x),
    "jnp.add(x, x)": lambda x: jnp.add(x, x),
    "jnp.concatenate([x, x])": lambda x: jnp.concatenate([x, x]),
    "jax.jit(f).trace(x), new f": lambda x: jax.jit(lambda v: jnp.sum(jnp.sin(v) + v) * jnp.max(v)).trace(x),
}
ROUNDS, INNER = 40, 200


def run(report: Report) -> None:
    structured(report)
    dense(report)


def structured(report: Report) -> None:
    report.section("Native calls of structured arrays")
    D, x = sa.Diagonal([1.0, 2.0, 3.0]), jnp.ones((3, 3))
    compiled, pytree = jax.jit(lambda D: jnp.sin(D)), jax.jit(lambda D: sa.sin(D))
    with native.enabled():
        candidates = {
            OURS: lambda: compiled(D),
            PYTREE: lambda: pytree(D),
            "jnp.sin(D), eager": lambda: jnp.sin(D),
            "jnp.add(D, D), eager": lambda: jnp.add(D, D),
            "jnp.sum(D), eager": lambda: jnp.sum(D),
            "sa.sin(D), eager": lambda: sa.sin(D),
            "jnp.sin(x), dense": lambda: jnp.sin(x),
        }
        report.time("jax.jit(lambda D: jnp.sin(D))(D)", candidates, [Bar(PYTREE, 2.0)], rounds=ROUNDS, inner=INNER)


def dense(report: Report) -> None:
    """Time each call with and without native calls, in turns."""
    report.section("Dense arrays with and without native calls")
    x = jnp.ones((3, 3))
    rows = []
    for name, call in DENSE.items():
        off, on = [], []
        for number in range(report.rounds(ROUNDS)):
            for native_calls in (False, True) if number % 2 else (True, False):
                if native_calls:
                    native.enable()
                (on if native_calls else off).append(_seconds(call, x, 5 if "trace" in name else INNER))
                native.disable()
        ratio = statistics.median(b / a for a, b in zip(off, on, strict=True))
        rows.append((name, duration(min(off)), duration(min(on)), f"{min(on) / min(off):.2f}", f"{ratio:.2f}"))
        report.note(name, off=off, on=on)
    report.table(("call", "off", "on", "ratio of minima", "median of ratios"), rows)


def _seconds(call, x, inner: int) -> float:
    for _ in range(3):
        call(x)
    start = time.perf_counter()
    for _ in range(inner):
        call(x)
    return (time.perf_counter() - start) / inner
