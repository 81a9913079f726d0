"""A pytest plugin: scipy's own tests of its support of the Array API, on this namespace.

They take the namespace from a fixture of ``scipy.conftest``, which is replaced before pytest finds it there. scipy lists, for other
namespaces, tests that these fail; none is listed for this one, and so all run that are not marked as NumPy's alone.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"  # before scipy is imported

import pytest
import scipy.conftest
from common_plugin import NAME, take

import structarrays

param = pytest.param(structarrays, id=NAME, marks=pytest.mark.array_api_backends)
scipy.conftest.xp_known_backends.add(NAME)
scipy.conftest.xp_available_backends = [param]
scipy.conftest.xp = pytest.fixture(params=[param])(scipy.conftest.xp._get_wrapped_function())


@pytest.fixture
def devices(xp):
    """What scipy's own fixture gives, which adds a list to what the standard has made a tuple in 2025.12."""
    return [*xp.__array_namespace_info__().devices(), None]


scipy.conftest.devices = devices


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Keep the tests of this namespace that scipy does not call slow."""
    slow = {"slow", "xslow"}
    take(
        config,
        items,
        lambda i: i.get_closest_marker("array_api_backends") and not slow & {m.name for m in i.iter_markers()},
    )
