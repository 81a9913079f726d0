"""What the plugins for the suites of other libraries share: which tests are taken, what became of them, bounded memory.

``CONSUMER_OUTCOMES`` names the file that gets the outcome of each test, as lines of JSON. ``CONSUMER_AT_MOST`` keeps so many tests
of a suite, always the same ones.
"""

import gc
import json
import os
import zlib
from pathlib import Path

NAME = "structarrays"
TESTS_BETWEEN_CLEARS = 50
"""Compiled functions are never freed otherwise, and Linux allows a process only so many mappings of memory."""

_finished = 0


def take(config, items, wanted):
    """Deselect all items but those that `wanted` says yes to, or a fixed part of these."""
    taken = [item for item in items if wanted(item)]
    at_most = int(os.environ.get("CONSUMER_AT_MOST", "0"))
    if 0 < at_most < len(taken):
        taken = sorted(taken, key=lambda item: zlib.crc32(item.nodeid.encode()))[:at_most]
    kept = set(map(id, taken))
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item in items if id(item) in kept]


def outcome_of(report):
    """The outcome of a test that this report decides; None if another one does."""
    if report.when != "call" and report.outcome == "passed":
        return None
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.outcome == "skipped" else "xpassed"
    return report.outcome if report.when == "call" or report.outcome == "skipped" else "error"


def pytest_runtest_logreport(report):
    """Append the outcome to the file."""
    file = os.environ.get("CONSUMER_OUTCOMES")
    outcome = outcome_of(report)
    if not file or outcome is None:
        return
    message = str(getattr(getattr(report.longrepr, "reprcrash", None), "message", ""))
    record = {"test": report.nodeid, "outcome": outcome, "seconds": round(report.duration, 2), "message": message[:500]}
    with Path(file).open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(record) + "\n")


def pytest_runtest_teardown(item):
    """Drop JAX's caches of compiled functions from time to time."""
    global _finished
    _finished += 1
    if _finished % TESTS_BETWEEN_CLEARS == 0:
        import jax

        jax.clear_caches()
        gc.collect()
