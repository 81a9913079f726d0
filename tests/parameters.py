"""Which parameters of the tests run by default: a part of them, since all take more than an hour on two cores.

A run of everything (`pytest` without paths and without ``-k``) leaves out three in four sets of parameters of each test; what is named
runs whole. Every test runs, with two sets at least, and those come first that show a value of a parameter which no other has shown. The
choice is always the same. ``--parameters each`` runs all.
"""

import zlib
from collections import defaultdict

import pytest

SHARE = 4
LEAST = 2


def pytest_addoption(parser):
    parser.addoption(
        "--parameters",
        choices=("part", "each"),
        help="run each test with a part of its sets of parameters (the default where neither paths nor -k say what to run), or with each",
    )


def pytest_configure(config):
    config.addinivalue_line("markers", "each_parameter: none of the sets of parameters is left out, whatever is run")
    # Decided once: pytest-xdist hands the options on to its processes, with the paths spelled out.
    if config.option.parameters is None:
        everything = config.args_source is not pytest.Config.ArgsSource.ARGS and not config.option.keyword
        config.option.parameters = "part" if everything else "each"


def pytest_collection_modifyitems(config, items):
    if config.option.parameters == "each":
        return
    sets = defaultdict(dict)
    for item in items:
        if hasattr(item, "callspec") and item.get_closest_marker("each_parameter") is None:
            values = {(name, repr(value)) for name, value in item.callspec.params.items()}
            sets[item.nodeid.partition("[")[0]][item.nodeid] = values
    left_out = {name for test in sets.values() for name in set(test) - part(test)}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
    items[:] = [item for item in items if item.nodeid not in left_out]


def part(sets: dict[str, set]) -> set[str]:
    """The names of some sets of parameters: first of those that show a new value, in an order that looks random but is fixed."""
    seen: set = set()
    new, old = [], []
    for name in sorted(sets, key=lambda name: zlib.crc32(name.encode())):
        (old if sets[name] <= seen else new).append(name)
        seen |= sets[name]
    return set((new + old)[: max(LEAST, -(-len(sets) // SHARE))])
