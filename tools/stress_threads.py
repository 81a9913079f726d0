"""Let threads and tasks share arrays for a while: reads, writes, policies and solves at the same time, in a random order.

::

    python tools/stress_threads.py                               # 30 threads and 30 tasks for a minute
    python tools/stress_threads.py --seconds 600 --threads 100 --seed 3

Each worker writes increasing numbers into its own elements, and adds to arrays that all workers share. If an element decreases, or is not
the last written number, an update was lost. No worker may see the policies of another worker. Solutions are compared with NumPy.
"""

import argparse
import asyncio
import copy
import pickle
import sys
import threading
import time
from collections import Counter

import jax
import numpy as np

import structarrays as sa


class Mix:
    """The shared arrays, and the actions of the workers.

    Parameters
    ----------
    workers : list of Worker
        One for each thread and task.

    Attributes
    ----------
    errors : list of str
    done : Counter
        Number of times that each action ran.
    """

    ACTIONS = ("write", "add", "read", "solve", "change", "see", "forbid", "weaken", "silence", "copy")

    def __init__(self, workers):
        self.workers = workers
        n = len(workers) + 2
        ones, tens = np.ones(n), np.full(n, 10.0)
        self.written = {
            "Dense": sa.asarray(np.diag(tens)),
            "Diagonal": sa.Diagonal(tens),
            "Banded": sa.tridiagonal(-ones[1:], tens, -ones[1:]),
            "Symmetric": sa.Symmetric(np.diag(tens)),
            "Triangular": sa.Triangular(np.diag(tens)),
            "Sparse": sa.Sparse(tens, (np.arange(n), np.arange(n)), (n, n)),
        }
        self.added = {"Dense": sa.zeros((n, n)), "Diagonal": sa.Diagonal(np.zeros(n)), "view": None}
        self.viewed = sa.zeros((n, n))
        self.added["view"] = sa.flip(self.viewed)
        self.values = [
            sa.Diagonal(ones),
            sa.tridiagonal(2 * ones[1:], 3 * ones, 4 * ones[1:]),
            sa.asarray(np.full((n, n), 7.0)),
        ]
        self.changing = copy.copy(self.values[0])
        self.sums = [float(sa.sum(v)) for v in self.values]
        self.right_hand_side = np.arange(1.0, n + 1)
        self.errors: list[str] = []
        self.done: Counter = Counter()
        self.lock = threading.Lock()
        self.adds: Counter = Counter()

    def note(self, what):
        with self.lock:
            self.errors.append(what)

    def expect(self, holds, what):
        if not holds:
            self.note(what)

    # ---- actions: of a worker, which has a number, random numbers and a memory ---------------------------------------

    def write(self, worker):
        name = worker.choose(self.written)
        i = worker.number
        worker.last[name] = worker.last.get(name, 10.0) + 1.0
        self.written[name][i, i] = worker.last[name]

    def add(self, worker):
        name = worker.choose(self.added)
        x = self.added[name]
        x += 1.0
        with self.lock:
            self.adds[name] += 1

    def read(self, worker):
        name = worker.choose(self.written)
        seen = np.diagonal(np.asarray(self.written[name]))
        before = worker.seen.get(name, seen)
        self.expect((seen >= before).all(), f"read: an element of {name} went back")
        self.expect(seen[worker.number] == worker.last.get(name, 10.0), f"read: a write into {name} is lost")
        worker.seen[name] = seen

    def solve(self, worker):
        A = copy.copy(self.written[worker.choose(self.written)])
        x = np.asarray(sa.linalg.solve(A, self.right_hand_side))
        self.expect(np.allclose(np.asarray(A) @ x, self.right_hand_side, rtol=1e-10), f"solve: {type(A).__name__}")

    def change(self, worker):
        self.changing[...] = self.values[worker.rng.integers(len(self.values))]

    def see(self, worker):
        total, dense = float(sa.sum(self.changing)), np.asarray(self.changing)
        self.expect(total in self.sums, f"see: a sum of {total}")
        self.expect(any(np.array_equal(dense, np.asarray(v)) for v in self.values), "see: a mixture of two values")

    def copy(self, worker):
        name = worker.choose(self.written)
        restored = pickle.loads(pickle.dumps(copy.copy(self.written[name])))
        self.expect(float(restored[worker.number, worker.number]) == worker.last.get(name, 10.0), f"copy: {name}")

    # ---- policies: contexts with a check of what holds within ----------------------------------------------------------

    def is_forbidden(self):
        try:
            sa.sort(self.values[0])
        except sa.DensifyError:
            return True
        return False

    def is_weak(self):
        return bool(np.isnan(np.asarray(self.values[0] * np.inf)[0, 1]))

    def is_silent(self):
        try:
            return bool(np.isnan(np.asarray(sa.linalg.solve(sa.zeros((2, 2)), sa.ones(2)))).all())
        except np.linalg.LinAlgError:
            return False

    POLICIES = {
        "forbid": (lambda: sa.densify("error"), is_forbidden),
        "weaken": (lambda: sa.strong_zeros(False), is_weak),
        "silence": (lambda: sa.errstate(linalg="nan"), is_silent),
    }

    async def policy(self, name, wait):
        """Whether a policy holds within its context, and after a switch to another worker, and not outside."""
        make, holds = self.POLICIES[name]
        with make():
            self.expect(holds(self), f"{name}: it does not hold within")
            await wait()
            self.expect(holds(self), f"{name}: it does not hold after a switch")
        self.expect(not holds(self), f"{name}: it holds outside")

    # ---- workers -----------------------------------------------------------------------------------------------------------

    async def work(self, worker, until, wait):
        while time.monotonic() < until:
            name = self.ACTIONS[worker.rng.integers(len(self.ACTIONS))]
            try:
                if name in self.POLICIES:
                    await self.policy(name, wait)
                else:
                    getattr(self, name)(worker)
            except Exception as error:
                self.note(f"{name}: {type(error).__name__}: {error}")
            with self.lock:
                self.done[name] += 1
            await wait()

    def check(self):
        """Compare the final arrays with the written and added numbers."""
        for worker in self.workers:
            for name, value in worker.last.items():
                found = float(self.written[name][worker.number, worker.number])
                self.expect(
                    found == value, f"the last write of worker {worker.number} into {name}: {found}, not {value}"
                )
        self.expect(np.all(np.asarray(self.added["Dense"]) == self.adds["Dense"]), "updates of Dense are lost")
        self.expect(np.all(np.asarray(self.added["Diagonal"]) == self.adds["Diagonal"]), "updates of Diagonal are lost")
        self.expect(np.all(np.asarray(self.viewed) == self.adds["view"]), "updates of a view are lost")


class Worker:
    """The state of a worker: its number, its random numbers, and the values that it has written and read."""

    def __init__(self, number, seed):
        self.number, self.rng = number, np.random.default_rng((seed, number))
        self.last: dict[str, float] = {}
        self.seen: dict[str, np.ndarray] = {}

    def choose(self, names):
        return list(names)[self.rng.integers(len(names))]


def run(seconds, threads=30, tasks=30, seed=0):
    """Run the mix, and return it with its errors and counts."""
    workers = [Worker(i, seed) for i in range(threads + tasks)]
    mix = Mix(workers)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # switch threads as often as possible
    until = time.monotonic() + seconds

    async def alone():
        pass

    async def together():
        await asyncio.gather(*(mix.work(w, until, lambda: asyncio.sleep(0)) for w in workers[threads:]))

    works = [lambda w=w: asyncio.run(mix.work(w, until, alone)) for w in workers[:threads]]
    if tasks:
        works.append(lambda: asyncio.run(together()))
    running = [threading.Thread(target=work, daemon=True) for work in works]
    try:
        for thread in running:
            thread.start()
        for thread in running:
            thread.join(seconds + 300)
            mix.expect(not thread.is_alive(), "a thread does not end")
    finally:
        sys.setswitchinterval(before)
    mix.check()
    return mix


def main():
    """Run the mix, and print the counts and the errors."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=30)
    parser.add_argument("--tasks", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    mix = run(**vars(arguments))
    print(
        f"{sum(mix.done.values())} actions of {arguments.threads} threads and {arguments.tasks} tasks: {dict(mix.done)}"
    )
    for what, count in Counter(mix.errors).most_common(20):
        print(f"{count} times: {what}")
    print(f"{len(mix.errors)} errors")
    return bool(mix.errors)


if __name__ == "__main__":
    sys.exit(main())
