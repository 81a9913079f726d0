"""How much of the law is tested: a part by default, everything with ``--law full``."""

import gc

import jax
import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--law",
        default="part",
        metavar="part|pairs|full|N",
        help="check the law for a part of a selection that covers all pairs of function and structure (the default), for "
        "that selection, for everything, or for N combinations of each case",
    )
    parser.addoption("--expressions", type=int, default=300, metavar="N", help="check N random expressions")


@pytest.fixture(autouse=True)
def bounded_memory(request):
    """Thousands of small compiled functions need gigabytes: forget them now and then."""
    yield
    count = request.config.stash.get(_TESTS, 0) + 1
    request.config.stash[_TESTS] = count
    if count % 40 == 0:
        jax.clear_caches()
        gc.collect()


_TESTS = pytest.StashKey[int]()
