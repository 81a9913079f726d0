"""Failures of other libraries' tests that only those libraries can mend, each with its cause.

See `docs/interoperability/consumers.md`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Cause:
    """Why tests fail.

    Attributes
    ----------
    tests : str
        A regular expression for the names of the tests.
    message : str
        One for the message of the failure.
    line : str
        The line of the library that makes it impossible, as it stands in the documentation.
    """

    tests: str
    message: str
    line: str


KNOWN = {
    "array-api-extra": [
        Cause(
            r"TestNUnique::test_delegates", "array-agnostic fallback should not be used", "array_api_extra/_set.py:102"
        ),
        Cause(
            r"test_lazy_xp_function_cython_ufuncs",
            "Namespaces of actual and desired arrays do not match",
            "array_api_extra/tests/main/test_testing.py:382",
        ),
    ],
    "scikit-learn": [
        Cause(
            r"test_mixed_array_api_namespace_input_compliance\[\w+-structarrays to array_api_strict\]",
            "array_api_strict.int64 and array_api_strict.float64 cannot be type promoted together",
            "sklearn/metrics/_classification.py:866",
        ),
    ],
    "scipy": [
        Cause(
            r"TestNdimageFilters::test_(correlate(14|2[0-5])|gaussian_gradient_magnitude02)",
            "Not equal to tolerance",
            "scipy/ndimage/_ni_support.py:102",
        ),
        Cause(
            r"TestDerivative::test_step_direction\[",
            "add: x1 must have a numeric dtype, got bool",
            "scipy/differentiate/tests/test_differentiate.py:211",
        ),
        Cause(
            r"TestDerivative::test_initial_step\[",
            "has no attribute 'logspace'",
            "scipy/differentiate/tests/test_differentiate.py:245",
        ),
        Cause(
            r"TestBracket(Root|Minimum)::test_dtypes?\[.*float16",
            "has no attribute 'float16'",
            "scipy/optimize/tests/test_bracket.py:224",
        ),
        Cause(
            r"TestChandrupatlaMinimize::test_vectorization\[structarrays-shape[123]\]",
            "Arrays are not equal",
            "scipy/optimize/tests/test_chandrupatla.py:237",
        ),
        Cause(
            r"TestCumulativeSimpson::test_nd\[",
            "Not equal to tolerance rtol=1e-15",
            "scipy/integrate/tests/test_quadrature.py:632",
        ),
        Cause(
            r"TestBootstrap::test_bootstrap_batch\[structarrays-[12]-BCa\]",
            "Arrays are not equal",
            "scipy/stats/tests/test_resampling.py:106",
        ),
        Cause(
            r"test_rigid_transform.py::test_pow\[structarrays-",
            r"where False = isinstance\(",
            "scipy/spatial/transform/tests/test_rigid_transform.py:842",
        ),
        Cause(
            r"TestContainsNaN::test_array_api_lazy\[",
            "DID NOT RAISE TypeError",
            "scipy/_lib/tests/test__util.py:377",
        ),
    ],
}
