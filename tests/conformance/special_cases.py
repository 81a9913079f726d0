"""The special cases of the standard as the official suite has parsed them, for a test of ours to evaluate."""

import importlib
import os
import sys
import warnings
from pathlib import Path

import hypothesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.extra import array_api

SUITE = Path(os.environ.get("ARRAY_API_TESTS_DIR") or "~/.cache/structarrays/array-api-tests").expanduser()
AT_HAND = (SUITE / "array_api_tests").is_dir() and (SUITE / "array-api" / "spec").is_dir()


def load():
    """The suite's module of special cases; what it changes in hypothesis is changed back."""
    floats, from_dtype = st.floats, array_api._from_dtype
    os.environ.setdefault("ARRAY_API_TESTS_MODULE", "structarrays")
    os.environ.setdefault("ARRAY_API_TESTS_VERSION", "2025.12")
    sys.path.insert(0, str(SUITE))
    writes = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about sentences that the suite cannot read
            return importlib.import_module("array_api_tests.test_special_cases")
    finally:
        sys.dont_write_bytecode = writes
        sys.path.remove(str(SUITE))
        st.floats, array_api._from_dtype = floats, from_dtype


def draw(*strategies) -> list[tuple]:
    """A few values of the strategies together: the simplest ones, and others."""
    values = []

    @settings(
        max_examples=4,
        database=None,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(st.tuples(*strategies))
    def collect(value):
        values.append(value)

    collect()
    return values
