"""A pytest plugin for the official suite: it counts what happened, makes a seed decide every draw, bounds the memory.

It changes no test: the counts go to the file named by the environment variable ``SUITE_COUNTS``; Python's generator
starts each test in a state that follows from the seed; and JAX's caches of compiled functions, which are never freed
otherwise, are dropped after every `TESTS_BETWEEN_CLEARS` tests.
"""

import json
import os
import random
import sys
from pathlib import Path

import pytest

TESTS_BETWEEN_CLEARS = 10
OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")
NARROWED = ("not found in array module", "disabled", "-file (", "ARRAY_API_TESTS_VERSION")
"""Parts of the reasons the suite gives for skips that come from an option, or from an extension that is not there."""

finished = 0
deselected = 0


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    """Seed Python's generator, which ``--hypothesis-seed`` leaves alone: the special cases' ``.example()`` uses it."""
    random.seed(f"{item.config.getoption('--hypothesis-seed')} {item.nodeid}")


def pytest_runtest_teardown(item):
    """Drop the compiled functions now and then; a namespace that does not use JAX has none."""
    global finished
    finished += 1
    jax = sys.modules.get("jax")
    if jax is not None and finished % TESTS_BETWEEN_CLEARS == 0:
        jax.clear_caches()


def pytest_deselected(items):
    """Count what was not run."""
    global deselected
    deselected += len(items)


def pytest_sessionfinish(session):
    """Hand a worker's count to the controller, which collects no tests itself."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["deselected"] = deselected


@pytest.hookimpl(optionalhook=True)  # pytest-xdist's, unknown without it
def pytest_testnodedown(node):
    """Take over a worker's count. All workers collect the same tests."""
    global deselected
    deselected = max(deselected, node.workeroutput["deselected"] if hasattr(node, "workeroutput") else 0)


def pytest_terminal_summary(terminalreporter):
    """Write the counts, where all reports have arrived."""
    stats = terminalreporter.stats
    counts = {outcome: len(stats.get(outcome, ())) for outcome in OUTCOMES} | {"deselected": deselected}
    reasons = {report.longrepr[2] for report in stats.get("skipped", ())}
    counts["narrowed_by"] = sorted(reason for reason in reasons if any(sign in reason for sign in NARROWED))
    Path(os.environ["SUITE_COUNTS"]).write_text(json.dumps(counts))
