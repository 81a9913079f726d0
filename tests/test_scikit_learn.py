"""scikit-learn's estimators, as they are, on structured designs."""

import numpy as np
import pytest
from elsewhere import process

estimators = pytest.importorskip("consumers.estimators", reason="scikit-learn is not installed")


@pytest.fixture(scope="module")
def elsewhere():
    """A process in which SciPy is imported with its support of the Array API, which cannot be turned on later."""
    with process(SCIPY_ARRAY_API="1") as pool:
        yield pool


@pytest.mark.costly
@pytest.mark.parametrize("design", estimators.DESIGNS)
@pytest.mark.parametrize("name", estimators.CASES)
def test_estimator(name, design, elsewhere):
    """It computes what it does with NumPy's arrays, and makes the design dense as often as the documentation says."""
    results, densified = elsewhere.submit(estimators.compared, name, design).result()
    for what, (got, want) in results.items():
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8, err_msg=what)
    assert densified == estimators.densified_in_the_page()[name, design]
