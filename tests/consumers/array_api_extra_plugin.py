"""A pytest plugin: array-api-extra's own tests, which come with its wheel, on this namespace.

They run for each member of the enumeration ``Backend``; here it gets one more, before any of their modules takes it.
"""

import enum

import array_api_extra._lib._backends as backends
import pytest
from common_plugin import NAME, take

MARKS = (
    "skip_xp_backend(library, *, reason=None)",
    "xfail_xp_backend(library, *, reason=None, strict=None)",
    "thread_unsafe",
)


def with_member(enumeration, name, value):
    """The same enumeration with one more member: one that has members cannot be subclassed."""
    body = enum.EnumType.__prepare__(enumeration.__name__, (enum.Enum,))
    for key, attribute in vars(enumeration).items():
        if not key.startswith("_") and not isinstance(attribute, enumeration):
            body[key] = attribute
    for member in enumeration:
        body[member.name] = member.value
    body[name] = value
    return enum.EnumType(enumeration.__name__, (enum.Enum,), body)


backends.Backend = with_member(backends.Backend, NAME.upper(), NAME)


def pytest_configure(config):
    """The marks that its own configuration declares."""
    for mark in MARKS:
        config.addinivalue_line("markers", mark)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Keep the tests of this namespace."""
    ours = backends.Backend(NAME)
    take(config, items, lambda item: hasattr(item, "callspec") and item.callspec.params.get("library") is ours)
