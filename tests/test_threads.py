"""Arrays shared by several threads: a reader sees the old value or the new one, and no write is lost."""

import contextlib
import copy
import io
import pickle
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import structarrays as sa
from structarrays._core.array import writes

N = 30


@pytest.fixture(autouse=True)
def eager_switches():
    """Let the interpreter change threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def run_together(*works):
    """Run each function in a thread, all at the same time, and return the errors that they raise."""
    errors, start = [], threading.Barrier(len(works))

    def run(work):
        start.wait()
        try:
            work()
        except Exception as error:
            errors.append(repr(error))

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    return errors


@contextlib.contextmanager
def read_meanwhile(*reads, errors):
    """Call each function repeatedly in a thread until the block ends."""
    stop = threading.Event()

    def repeat(read):
        while not stop.is_set():
            try:
                read()
            except Exception as error:
                errors.append(repr(error))

    threads = [threading.Thread(target=repeat, args=(read,)) for read in reads]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(120)


MADE = {
    "Dense": lambda rng: sa.asarray(2 * np.eye(N)),
    "Diagonal": lambda rng: sa.Diagonal(np.full(N, 2.0)),
    "Identity": lambda rng: 2.0 * sa.eye(N),
    "Banded": lambda rng: sa.tridiagonal(np.ones(N - 1), np.full(N, 4.0), np.ones(N - 1)),
    "BlockDiagonal": lambda rng: sa.BlockDiagonal(2 * np.broadcast_to(np.eye(3), (N // 3, 3, 3)) + 0.1),
    "Symmetric": lambda rng: sa.Symmetric(2 * np.eye(N)),
    "Triangular": lambda rng: sa.Triangular(2 * np.eye(N)),
    "Sparse": lambda rng: sa.Sparse(np.full(N, 2.0), (np.arange(N), np.arange(N)), (N, N)),
    "Toeplitz": lambda rng: sa.Toeplitz(np.r_[2.0, np.zeros(N - 1)]),
    "LowRank": lambda rng: sa.LowRank(np.ones((N, 1)), np.ones((N, 1))),
}


@pytest.mark.parametrize("name", MADE)
def test_a_reader_sees_the_old_value_or_the_new_one(name, rng):
    x = MADE[name](rng)
    start = np.asarray(x)
    x[0, 0] = 5.0
    x[0, 0] = 5.0
    errors: list = []

    def read():
        seen = np.asarray(x)
        written = {float(v) for v in np.unique(seen[start != seen])}
        if not written <= {5.0, 6.0, 7.0} or float(x[1, 1]) not in (start[1, 1], 6.0, 7.0):
            errors.append(f"{written}")

    def compute():
        total = float(sa.sum(x))
        if not np.isfinite(total) or x.shape != (N, N) or sa.negative(x).dtype != start.dtype:
            errors.append(f"{total}")
        repr(x)

    def write(value):
        for _ in range(2):
            for i in range(N):
                x[i, i] = value

    with read_meanwhile(read, compute, errors=errors):
        errors += run_together(lambda: write(6.0), lambda: write(6.0))
        errors += run_together(lambda: write(7.0), lambda: write(7.0))
    assert not errors
    np.testing.assert_array_equal(np.asarray(x), np.where(np.eye(N) > 0, 7.0, start))


@pytest.mark.parametrize("name", MADE)
def test_thirty_threads_write_an_entry_each(name, rng):
    x = MADE[name](rng)
    expected = np.asarray(x)
    np.fill_diagonal(expected, 100.0 + np.arange(N))

    def work(i):
        for value in (1.0, 2.0, 100.0 + i):
            x[i, i] = value

    assert run_together(*(lambda i=i: work(i) for i in range(N))) == []
    np.testing.assert_array_equal(np.asarray(x), expected)


def test_writes_off_the_pattern_are_not_lost():
    """The class and the number of parameters change during the reads."""
    x, dense = sa.Diagonal(np.ones(N)), np.eye(N)
    errors: list = []

    def read():
        seen, total = np.asarray(x), float(sa.sum(x))
        if not np.isin(seen, (0.0, 1.0, 3.0)).all() or total != round(total):
            errors.append(f"{total}")

    def write(k):
        for i in range(0, N - k, 9):
            x[i, i + k] = 3.0

    for k in range(1, 9):
        dense[np.arange(0, N - k, 9), np.arange(k, N, 9)] = 3.0
    with read_meanwhile(read, errors=errors):
        errors += run_together(*(lambda k=k: write(k) for k in range(1, 9)))
    assert not errors
    np.testing.assert_array_equal(np.asarray(x), dense)


READS = {
    "numpy.asarray": np.asarray,
    "to_jax": lambda x: x.to_jax(),
    "item": lambda x: [[float(x[0, 1])]],
    "rows": lambda x: x[np.array([0, 2, 3])],
    "slices": lambda x: x[1:4, 1:4],
    "transpose": lambda x: x.T,
    "sum": lambda x: [[float(sa.sum(x))]],
    "product": lambda x: x @ np.ones((N, 1)),
    "take": lambda x: sa.take(x, np.array([1, 2]), axis=0),
    "nonzero": lambda x: [sa.nonzero(x)[1].tolist()],
    "roll": lambda x: sa.roll(x, 1),
    "scipy.sparse": lambda x: sa.interop.scipy.to_sparse(x).toarray(),
    "bcoo": lambda x: sa.interop.jax_sparse.to_sparse(x).todense(),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "save": lambda x: through_file(x),
    "repr": lambda x: [[float(len(repr(x)))]],
    "copy": copy.copy,
    "linear operator": lambda x: sa.interop.scipy.operator(x) @ np.ones(N),
}


def through_file(x):
    file = io.BytesIO()
    sa.save(file, x)
    file.seek(0)
    return sa.load(file)


@pytest.mark.parametrize("name", READS)
def test_a_read_sees_one_value_while_the_class_changes(name):
    values = [
        sa.Diagonal(np.ones(N)),
        sa.tridiagonal(np.full(N - 1, 2.0), np.full(N, 3.0), np.full(N - 1, 4.0)),
        sa.Sparse(np.array([5.0, 6.0]), (np.array([0, 1]), np.array([1, 0])), (N, N)),
        sa.asarray(np.full((N, N), 7.0)),
    ]
    read = lambda x: np.asarray(READS[name](x)).tolist()  # noqa: E731
    expected = [read(sa.asarray(value, copy=True)) for value in values]
    x, errors = sa.asarray(values[0], copy=True), []

    def look():
        seen = read(x)
        if seen not in expected:
            errors.append(f"{seen}")

    def write():
        for value in values * 6:
            x[...] = value

    with read_meanwhile(look, look, errors=errors):
        errors += run_together(write)
    assert not errors


IN_PLACE = {
    "operator": lambda x: x.__iadd__(1.0),
    "out": lambda x: np.add(x, 1.0, out=x),
    "out of a function": lambda x: np.round(x, out=x),
    "at": lambda x: np.add.at(x, (slice(None), slice(None)), 1.0),
    "putmask": lambda x: np.putmask(x, np.zeros((N, N), bool), 9.0),
    "copyto": lambda x: np.copyto(x, 9.0, where=np.zeros((N, N), bool)),
    "where": lambda x: np.add(x, 1.0, out=x, where=np.zeros((N, N), bool)),
    "view": lambda x: sa.flip(x).__iadd__(1.0),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_no_write_is_lost_beside_one_that_reads_first(name):
    """An operator in place reads, computes and writes; a write of another thread in between stays."""
    x, change = sa.zeros((N, N)), IN_PLACE[name]
    once = sa.zeros((N, N))
    change(once)
    step, rounds = float(once[0, 0]), 20

    def write(i):
        for k in range(rounds):
            x[i, i] = 1000.0 * (k + 1)

    assert (
        run_together(*(lambda i=i: write(i) for i in range(4)), *[lambda: [change(x) for _ in range(rounds)]] * 2) == []
    )
    seen = np.asarray(x)
    written = seen[np.arange(4), np.arange(4)]
    assert ((written >= 1000.0 * rounds) & (written <= 1000.0 * rounds + 2 * rounds * step)).all()
    assert seen[5, 7] == 2 * rounds * step


def test_policies_solves_and_writes(rng):
    """Each thread has policies of its own, whatever the others do with the array."""
    A = sa.tridiagonal(np.ones(N - 1), np.full(N, 4.0), np.ones(N - 1))
    b, expected = rng.normal(size=N), None
    dense = np.asarray(A)
    expected = np.linalg.solve(dense, b)
    errors: list = []

    def solve():
        if not np.allclose(np.asarray(sa.linalg.solve(A, b)), expected, rtol=1e-12):
            errors.append("solve")

    def forbid():
        with sa.densify("error"):
            try:
                sa.sort(A)
                errors.append("sort")
            except sa.DensifyError:
                pass

    def weaken():
        with sa.strong_zeros(False):
            if not np.isnan(np.asarray(sa.Diagonal([1.0, 2.0]) * np.inf)[0, 1]):
                errors.append("strong_zeros(False)")
        if np.asarray(sa.Diagonal([1.0, 2.0]) * np.inf)[0, 1] != 0.0:
            errors.append("strong_zeros(True)")

    def write():
        for _ in range(20):
            for i in range(N - 1):
                A[i, i + 1] = 1.0  # the same values

    with read_meanwhile(solve, forbid, weaken, errors=errors):
        errors += run_together(write, write)
    assert not errors
    np.testing.assert_array_equal(np.asarray(A), dense)


def test_an_array_written_into_itself():
    """A key or a value may be the array itself, or a view of it, whose buffer a write must not give away."""
    x = sa.asarray(np.arange(6))
    x[0] = 3
    x[x] = 7 - x
    expected = np.arange(6)
    expected[0] = 3
    expected[expected.copy()] = 7 - expected
    D = sa.Diagonal(np.arange(1.0, 4.0))
    D[0, 0] = 2.0
    D[...] = D
    D[1, 1] = 5.0
    whole = x[:]
    x[1] = 4
    x[2] = 4
    assert np.array_equal(np.asarray(whole), np.asarray(x))
    assert np.array_equal(np.diag(np.asarray(D)), [2.0, 5.0, 3.0])
    y = sa.asarray(np.arange(4.0))
    y[0] = 1.0
    y[...] = y[::-1]
    y[3] = y[0]
    assert np.array_equal(np.asarray(y), [3.0, 2.0, 1.0, 3.0])


@pytest.mark.parametrize("name", ["Dense", "Banded", "Diagonal", "Sparse", "Symmetric", "Triangular", "BlockDiagonal"])
def test_a_loop_of_writes_copies_nothing(name, rng):
    """With one thread, a write to a buffer that only the array owns is in place: the previous buffer is deleted."""
    x = MADE[name](rng)
    x[2, 2] = 1.0
    before = [leaf for leaf in writes.peek(x)[0] if leaf is not None]
    x[3, 3] = 1.0
    assert any(leaf.is_deleted() for leaf in before)
    assert float(x[3, 3]) == 1.0


def test_arguments_that_hold_arrays_keep_their_class(monkeypatch):
    """Named tuples, too, once several threads have written and calls take arrays apart."""
    monkeypatch.setattr(writes, "SHARED", [True])
    monkeypatch.setattr("structarrays._core.dispatch.function.SHARED", [True])
    monkeypatch.setattr("structarrays._core.dispatch.array_function.SHARED", [True])
    a = sa.assume(sa.tridiagonal(-np.ones(4), 3 * np.ones(5), -np.ones(4)), "positive_definite")
    b = np.arange(5.0)
    expected = np.linalg.solve(np.asarray(a), b)
    np.testing.assert_allclose(np.asarray(sa.linalg.cho_solve(sa.linalg.cho_factor(a), b)), expected, atol=1e-12)
    np.testing.assert_allclose(np.asarray(sa.linalg.lu_solve(sa.linalg.lu_factor(a), b)), expected, atol=1e-12)
    assert sa.concat([a, a]).shape == (10, 5)


@pytest.fixture
def stress_threads(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent.parent / "tools")
    import stress_threads

    yield stress_threads
    sys.modules.pop("stress_threads")


def test_threads_and_tasks_mix_all_actions(stress_threads):
    """A few seconds of ``python tools/stress_threads.py``, which runs a minute."""
    mix = stress_threads.run(3.0, threads=6, tasks=6)
    assert not mix.errors
    assert sum(mix.done.values()) >= 12
    mix.written["Dense"][...] = 0.0
    mix.added["Diagonal"] += 1.0
    mix.workers[0].last["Dense"] = 11.0
    mix.check()
    assert any("last write" in error for error in mix.errors) and "updates of Diagonal are lost" in mix.errors
