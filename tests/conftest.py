"""Which parameters of the tests run. (The conftest.py above this one is read for doctests, too, and by the tests of other libraries.)"""

from parameters import pytest_addoption, pytest_collection_modifyitems, pytest_configure

__all__ = ["pytest_addoption", "pytest_collection_modifyitems", "pytest_configure"]
