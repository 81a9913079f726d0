"""scikit-learn's estimators, as they are, on structured designs."""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

pytest.importorskip("sklearn")

from consumers.estimators import CASES, DESIGNS, compared, densified_in_the_page  # noqa: E402


@pytest.fixture(scope="module")
def elsewhere():
    """A process in which SciPy is imported with its support of the Array API, which cannot be turned on later."""
    before = os.environ.get("SCIPY_ARRAY_API")
    os.environ["SCIPY_ARRAY_API"] = "1"
    try:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            pool.submit(os.getpid).result()  # it is started, and has the environment
            yield pool
    finally:
        if before is None:
            del os.environ["SCIPY_ARRAY_API"]
        else:
            os.environ["SCIPY_ARRAY_API"] = before


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", CASES)
def test_estimator(name, design, elsewhere):
    """It computes what it does with NumPy's arrays, and makes the design dense as often as the documentation says."""
    results, densified = elsewhere.submit(compared, name, design).result()
    for what, (got, want) in results.items():
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8, err_msg=what)
    assert densified == densified_in_the_page()[name, design]
