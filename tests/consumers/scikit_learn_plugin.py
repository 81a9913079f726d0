"""A pytest plugin: scikit-learn's own tests of its support of the Array API, on this namespace.

They are parametrised when they are collected, by three functions that yield the names of namespaces; these are replaced before.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"  # before scipy is imported: scikit-learn asks for it

import pytest
import sklearn.utils._array_api as array_api
import sklearn.utils.estimator_checks as estimator_checks
from common_plugin import NAME, take


def yield_namespaces(include_numpy_namespaces=True):
    """This namespace, and NumPy, which some tests compare with."""
    yield NAME
    if include_numpy_namespaces:
        yield "numpy"


def yield_namespace_device_dtype_combinations(include_numpy_namespaces=True):
    """Both dtypes on the default device."""
    yield NAME, None, "float64"
    yield NAME, None, "float32"


def yield_mixed_namespace_input_permutations():
    """Arrays of two namespaces in one call: from ours and to ours."""
    ours, numpy = array_api.NamespaceAndDevice(NAME, None), array_api.NamespaceAndDevice("numpy", None)
    yield ours, numpy, f"{NAME} to numpy"
    yield numpy, ours, f"numpy to {NAME}"
    yield array_api.NamespaceAndDevice("array_api_strict", "device1"), ours, f"array_api_strict to {NAME}"
    yield ours, array_api.NamespaceAndDevice("array_api_strict", "CPU_DEVICE"), f"{NAME} to array_api_strict"


for replacement in (
    yield_namespaces,
    yield_namespace_device_dtype_combinations,
    yield_mixed_namespace_input_permutations,
):
    for module in (array_api, estimator_checks):
        if hasattr(module, replacement.__name__):
            setattr(module, replacement.__name__, replacement)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Keep the tests of this namespace."""
    take(config, items, lambda item: NAME in item.name)
