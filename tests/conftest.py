"""Which parameters of the tests run, and their random numbers. (The conftest.py above this one is read for doctests, too, and by the tests of
other libraries.)
"""

import zlib

import numpy as np
import pytest
from parameters import pytest_addoption, pytest_collection_modifyitems, pytest_configure

__all__ = ["pytest_addoption", "pytest_collection_modifyitems", "pytest_configure", "rng"]


@pytest.fixture
def rng(request):
    """Random numbers that depend on nothing but the name of the test: not on the tests that run before it."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))
