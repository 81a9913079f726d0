"""Memory of SuperLU's factors, which SciPy frees only in the thread that computed them."""

import os
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
import scipy.sparse

import structarrays as sa
from structarrays._structures.sparse import factor_threads
from structarrays._structures.sparse.sparse_direct import FACTORIZATIONS

MANY_SYSTEMS = """
import jax, jax.numpy as jnp, numpy as np, structarrays as sa
jax.config.update("jax_enable_x64", True)
n = 60
line = sa.tridiagonal(-np.ones(n - 1), np.full(n, 4.0), -np.ones(n - 1))
A = sa.interop.scipy.from_sparse(sa.interop.scipy.to_sparse(sa.KroneckerSum(line, line), "csr"))
b = jnp.ones(n * n)
solve = jax.jit(lambda scale: jax.lax.scan(
    lambda c, s: (c + sa.linalg.solve(A.with_data(A.data * s), b).sum(), None), 0.0, scale)[0])

def resident():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024

sa_cache = __import__("structarrays._structures.sparse.sparse_direct", fromlist=["x"]).FACTORIZATIONS
sa_cache.count = 4
solve(1.0 + jnp.arange(20.0) / 100)
before = resident()
for k in range(10):
    solve(1.0 + jnp.arange(20.0) / 100 + 1 + k)
print(resident() - before, sa_cache.nbytes and next(iter(sa_cache._slots.values())).value.nbytes / 2**20)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of the process from /proc")
def test_many_systems_take_the_memory_of_few():
    """200 factorizations, of which 4 are kept: without owning threads, the process grows by all of them."""
    run = subprocess.run([sys.executable, "-c", MANY_SYSTEMS], capture_output=True, text=True, check=True, timeout=300)
    growth, each = map(float, run.stdout.split())
    assert growth < 20 * each


def eventually(condition):
    for _ in range(200):
        if condition():
            return True
        time.sleep(0.01)
    return False


def held():
    return sum(len(owner.held) for owner in factor_threads._owners)


def test_factors_are_freed_by_their_thread():
    FACTORIZATIONS.clear()
    freed_in = []

    class Factors:
        pass

    made = factor_threads.compute(Factors)
    owner = next(o for o in factor_threads._owners if any(x is made for x in o.held))
    weakref.finalize(made, lambda: freed_in.append(threading.current_thread().name))
    factor_threads.release()
    owner.compute(lambda: None)  # after the release
    assert not freed_in  # the factors are in use
    del made
    factor_threads.release()
    assert eventually(lambda: freed_in)
    assert freed_in[0].startswith("structarrays-factors")


def test_the_cache_lets_its_factors_go():
    line = sa.tridiagonal(-np.ones(19), np.full(20, 4.0), -np.ones(19))
    A = sa.interop.scipy.from_sparse(sa.interop.scipy.to_sparse(sa.KroneckerSum(line, line), "csr"))
    FACTORIZATIONS.clear()
    assert eventually(lambda: held() == 0)
    jax.block_until_ready(jax.jit(sa.linalg.solve)(A, sa.ones(400)))
    assert held() == 1
    FACTORIZATIONS.clear()
    assert eventually(lambda: held() == 0)


def test_errors_arrive_and_threads_go_on():
    def fail():
        raise RuntimeError("no factors")

    for _ in range(20):
        with pytest.raises(RuntimeError, match="no factors"):
            factor_threads.compute(fail)
    assert factor_threads.compute(lambda: 3) == 3


def test_threads_compute_at_the_same_time():
    """As many as there are processors: each waits for the other one."""
    count = min(2, factor_threads._THREADS)
    barrier = threading.Barrier(count, timeout=20)
    with ThreadPoolExecutor(count) as callers:
        assert len(list(callers.map(lambda _: factor_threads.compute(barrier.wait), range(count)))) == count


def test_solutions_from_many_threads():
    matrices = [scipy.sparse.diags_array([4.0 + i, 1.0], offsets=[0, 1], shape=(30, 30)).tocsr() for i in range(20)]

    def solved(m):
        return np.asarray(sa.linalg.solve(sa.interop.scipy.from_sparse(m), np.ones(30)))

    with ThreadPoolExecutor(10) as callers:
        for m, x in zip(matrices, callers.map(solved, matrices), strict=True):
            np.testing.assert_allclose(m @ x, np.ones(30), rtol=1e-12)


@pytest.mark.slow
def test_systems_are_solved_while_python_ends():
    code = """
import atexit
from structarrays._structures.sparse import factor_threads
factor_threads.compute(object)
atexit.register(lambda: print(factor_threads.compute(lambda: "solved"), factor_threads.release()))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout == "solved None\n" and not run.stderr


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_process_has_threads_of_its_own():
    code = """
import os, warnings
warnings.simplefilter("ignore")
from structarrays._structures.sparse import factor_threads
assert factor_threads.compute(lambda: 1) == 1
child = os.fork()
if child == 0:
    os._exit(0 if factor_threads.compute(lambda: 2) == 2 else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_process_keeps_factors_and_forgets_threads():
    """SciPy's destructor of the allocations of a thread leaves an exception behind, here in the new process."""
    code = """
import os, threading, warnings
import numpy, scipy.sparse
from scipy.sparse.linalg import splu
warnings.simplefilter("ignore")
from structarrays._structures.sparse import factor_threads
factors = factor_threads.compute(splu, scipy.sparse.diags_array([2.0] * 500, format="csc"))
child = os.fork()
if child == 0:
    right = (factors.solve(numpy.ones(500)) == 0.5).all()
    os._exit(0 if right and threading.active_count() == 1 else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert not run.returncode and not run.stderr
