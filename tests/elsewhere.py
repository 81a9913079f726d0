"""A process of its own for tests of what is settled when a library is imported."""

import contextlib
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor


@contextlib.contextmanager
def process(name: str, value: str):
    """A pool of one process that is started with this variable in its environment."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            pool.submit(os.getpid).result()  # it is started, and has the environment
            yield pool
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
