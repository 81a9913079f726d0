"""A pytest plugin for the official suite: it counts results, makes all draws depend on the seed, and limits memory.

The plugin changes no test. It writes the counts to the file in the environment variable ``SUITE_COUNTS``. It seeds
Python's generator before each test. It clears JAX's caches of compiled functions, which are never freed otherwise,
after every `TESTS_BETWEEN_CLEARS` tests.

If ``SUITE_STRUCTURE`` is set, the tests draw arrays of that structure (`drawing`), and the plugin counts these arrays
(`counting`). Tests that draw no arrays are deselected. ``SUITE_QUARTER`` selects a fixed quarter of the other tests.
"""

import json
import os
import random
import re
import sys
import zlib
from pathlib import Path

import pytest

TESTS_BETWEEN_CLEARS = 10
OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")
NARROWED = ("not found in array module", "disabled", "-file (", "ARRAY_API_TESTS_VERSION")
"""Parts of the suite's reasons for skips that are caused by an option or a missing extension."""
WITHOUT_DRAWS = re.compile(
    r"""/test_(
        (constants|has_names|inspection_functions|signatures)\.py::
        | special_cases\.py::test_(unary|binary|iop|empty_arrays)\[
        | creation_functions\.py::test_(arange|asarray_scalars|empty|eye|full|linspace|ones|zeros)$
        | data_type_functions\.py::(TestBroadcastShapes::|test_(can_cast|(finfo|iinfo)(_dtype)?|isdtype)(\[|$))
        | dlpack\.py::test_dlpack_device$
        | fft\.py::test_r?fftfreq$
    )""",
    re.VERBOSE,
)
"""Names of the tests that draw no arrays.

These tests check names, signatures and data types, create arrays from numbers, or use fixed 0-d arrays.
"""

STRUCTURE = os.environ.get("SUITE_STRUCTURE")
if STRUCTURE:
    import importlib

    from . import counting, drawing

    counter = counting.Counter(drawing.structure_class(STRUCTURE))
    draws = drawing.Draws(STRUCTURE, importlib.import_module(os.environ["ARRAY_API_TESTS_MODULE"]), counter.received)
    counter.install()
    draws.install()

finished = 0
counted = {"deselected": 0, "left to the plain run": 0, "left out of the quarter": 0, "drawn": {}, "served": {}}
counted["square"] = bool(STRUCTURE) and draws.square
counted["stores_entries"] = bool(STRUCTURE) and counter.cls.stores_entries


def pytest_sessionstart():
    """Replace the strategies before the tests import them."""
    if STRUCTURE:
        from array_api_tests import hypothesis_helpers

        draws.adopt(hypothesis_helpers)


def pytest_collection_modifyitems(items):
    """Deselect tests that a run with a structure omits, and count them."""
    if STRUCTURE:
        kept = [item for item in items if not WITHOUT_DRAWS.search(item.nodeid)]
        counted["left to the plain run"] = len(items) - len(kept)
        items[:] = kept
    if os.environ.get("SUITE_QUARTER"):
        kept = [item for item in items if zlib.crc32(f"{STRUCTURE} {item.nodeid}".encode()) % 4 == 0]
        counted["left out of the quarter"] = len(items) - len(kept)
        items[:] = kept


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    """Seed Python's generator, which ``.example()`` of the special cases uses; ``--hypothesis-seed`` does not seed it."""
    random.seed(f"{item.config.getoption('--hypothesis-seed')} {item.nodeid}")
    if STRUCTURE:
        counter.test = item.nodeid


def pytest_runtest_teardown(item):
    """Clear the compiled functions periodically; a namespace without JAX has none."""
    global finished
    finished += 1
    jax = sys.modules.get("jax")
    if jax is not None and finished % TESTS_BETWEEN_CLEARS == 0:
        jax.clear_caches()


def pytest_deselected(items):
    """Count deselected tests."""
    counted["deselected"] += len(items)


def pytest_sessionfinish(session):
    """Send a worker's counts to the controller, which runs no tests itself."""
    if STRUCTURE:  # the controller has the counts of its workers already
        counted["drawn"] |= counter.drawn
        counted["served"] |= {test: sorted(names) for test, names in counter.served.items()}
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["counted"] = json.dumps(counted)


@pytest.hookimpl(optionalhook=True)  # pytest-xdist's, unknown without it
def pytest_testnodedown(node):
    """Merge a worker's counts. All workers collect the same tests, and run different ones."""
    theirs = json.loads(node.workeroutput["counted"]) if hasattr(node, "workeroutput") else {}
    for name, value in theirs.items():
        counted[name] = counted[name] | value if isinstance(value, dict) else max(counted[name], value)


def pytest_terminal_summary(terminalreporter):
    """Write the counts after all reports have arrived."""
    stats = terminalreporter.stats
    counts = {outcome: len(stats.get(outcome, ())) for outcome in OUTCOMES} | counted
    reasons = {report.longrepr[2] for report in stats.get("skipped", ())}
    counts["narrowed_by"] = sorted(reason for reason in reasons if any(sign in reason for sign in NARROWED))
    counts["failures"] = sorted({report.nodeid for kind in ("failed", "error") for report in stats.get(kind, ())})
    Path(os.environ["SUITE_COUNTS"]).write_text(json.dumps(counts))
