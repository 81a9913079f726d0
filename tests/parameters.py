"""Which tests, and which of their sets of parameters, run by default: a part, since all take hours on two cores.

A run of everything (`pytest` without paths, ``-k`` and ``-m``) takes one in 24 of the sets of parameters of each test, but at least
two, or one of a test marked as ``costly``. Complex numbers come first, since a missing conjugate shows with them alone. It leaves out tests
marked as ``slow``. Tests that are named run whole. The choice is always the same.
``--parameters each`` runs all. ``-m slow --parameters part`` runs a part of the slow tests.
`tools/planted_faults.py` measures which faults a part detects.
"""

import re
import zlib
from collections import defaultdict

import pytest

SHARE = 24
COVER = 2


def pytest_addoption(parser):
    parser.addoption(
        "--parameters",
        choices=("part", "each"),
        help="run each test with a part of its sets of parameters (the default where neither paths nor -k nor -m say what to run), or with each",
    )
    parser.addoption(
        "--slow",
        choices=("run", "leave"),
        help="whether slow tests run; by default they do, except in a run of a part of everything",
    )


def pytest_configure(config):
    config.addinivalue_line("markers", "each_parameter: none of the sets of parameters is left out, whatever is run")
    config.addinivalue_line("markers", "costly: a set of parameters takes seconds, so that a part has one")
    config.addinivalue_line("markers", "slow: takes three seconds or more, and is left out of a run of everything")
    # Decided once: pytest-xdist hands the options on to its processes, with the paths spelled out.
    option = config.option
    named = config.args_source is pytest.Config.ArgsSource.ARGS or option.keyword or option.markexpr
    if option.slow is None:
        option.slow = "run" if named or option.parameters == "each" else "leave"
    if option.parameters is None:
        option.parameters = "each" if named else "part"


def pytest_collection_modifyitems(config, items):
    # The processes of pytest-xdist have to find the same names, and random numbers depend on them (the fixture ``rng``).
    if addresses := [item.nodeid for item in items if re.search(r"\b0x[0-9a-f]{6,}", item.nodeid)]:
        raise pytest.UsageError(f"names of tests must not contain addresses; give these parameters ids: {addresses}")
    left_out = set()
    if config.option.slow == "leave":
        left_out |= {item.nodeid for item in items if item.get_closest_marker("slow")}
    if config.option.parameters == "part":
        left_out |= others_than_the_part(items)
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
        items[:] = [item for item in items if item.nodeid not in left_out]


def others_than_the_part(items) -> set[str]:
    """The names of the tests whose sets of parameters are left out."""
    sets, costly = defaultdict(dict), set()
    for item in items:
        if hasattr(item, "callspec") and item.get_closest_marker("each_parameter") is None:
            values = {(name, repr(value)) for name, value in item.callspec.params.items()}
            test = item.nodeid.partition("[")[0]
            sets[test][item.nodeid] = values
            if item.get_closest_marker("costly"):
                costly.add(test)
    return {name for test, found in sets.items() for name in set(found) - part(found, costly=test in costly)}


def part(sets: dict[str, set], *, costly: bool = False) -> set[str]:
    """Choose some sets of parameters by their names. The next one always shows the most new values, in an order that looks random but is
    fixed, with complex numbers first."""
    left = sorted(sets, key=lambda name: (not re.search(r"complex|\dj\b", name), zlib.crc32(name.encode())))
    chosen, seen = [], set()
    number = 1 if costly else max(COVER, -(-len(sets) // SHARE))
    while left and len(chosen) < number:
        best = max(left, key=lambda name: len(sets[name] - seen))
        chosen.append(best)
        left.remove(best)
        seen |= sets[best]
    return set(chosen)
