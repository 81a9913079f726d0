"""What all tests share: which of their parameters run. (The conftest.py above stands for doctests, too, and for the tests of other libraries.)"""

from parameters import pytest_addoption, pytest_collection_modifyitems, pytest_configure

__all__ = ["pytest_addoption", "pytest_collection_modifyitems", "pytest_configure"]
