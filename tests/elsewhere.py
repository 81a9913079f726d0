"""A process of its own for tests of what is settled when a library is imported."""

import contextlib
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor


@contextlib.contextmanager
def process(**variables: str):
    """A pool of one process that is started with these variables in its environment."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            pool.submit(os.getpid).result()  # it is started, and has the environment
            yield pool
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
