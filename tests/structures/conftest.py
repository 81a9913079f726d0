"""Each file compiles thousands of small functions: they are forgotten after it, since a process can map only so many."""

import gc

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def bounded_memory():
    """No compiled functions are left behind."""
    yield
    jax.clear_caches()
    gc.collect()
