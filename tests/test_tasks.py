"""Policies belong to the task that sets them, and to the cache key of `jax.jit`. A thread begins with the defaults."""

import asyncio
import contextlib
import contextvars
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa
from structarrays._core.dispatch import contexts
from structarrays._core.dispatch.recording import RECORDING


def times_infinity(D):
    return D * jnp.inf


def weak_zeros(function=times_infinity) -> bool:
    """Whether structural zeros count as ordinary zeros in a product under the current policy."""
    return bool(np.isnan(as_jax(function(sa.Diagonal([1.0, 2.0])))[0, 1]))


def forbidden(function=sa.sort) -> bool:
    try:
        function(sa.Diagonal([2.0, 1.0]))
    except sa.DensifyError:
        return True
    return False


def silent(function=sa.linalg.solve) -> bool:
    try:
        return bool(np.isnan(np.asarray(function(sa.zeros((2, 2)), sa.ones(2)))).all())
    except np.linalg.LinAlgError:
        return False


# Each policy: the context that sets it, and whether what is computed follows it.
POLICIES = {
    "strong_zeros": (lambda: sa.strong_zeros(False), weak_zeros),
    "strong_zeros of an operator's compiled call": (
        lambda: sa.strong_zeros(False),
        lambda: bool(np.isnan((sa.Diagonal([1.0, 2.0]) @ sa.asarray([[np.inf], [1.0]])).to_jax()[1, 0])),
    ),
    "densify": (lambda: sa.densify("error"), forbidden),
    "limit": (lambda: sa.densify(limit=1), forbidden),
    "errstate": (lambda: sa.errstate(linalg="nan"), silent),
    "record": (sa.record, lambda: contexts.active.value is not None),
}


def interleaved(*tasks):
    """Run coroutine functions as tasks that take turns; each gets a function to wait for its next turn."""

    async def main():
        await asyncio.gather(*(task(lambda: asyncio.sleep(0)) for task in tasks))

    asyncio.run(main())


def holder(make, holds, seen):
    """A task that has the policy for a while."""

    async def task(turn):
        await turn()
        with make():
            for _ in range(4):
                await turn()
                seen.append(holds())
        await turn()
        seen.append(not holds())

    return task


def bystander(holds, seen):
    """A task that never sets the policy."""

    async def task(turn):
        for _ in range(8):
            seen.append(not holds())
            await turn()

    return task


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_is_not_seen_by_other_tasks(name):
    make, holds = POLICIES[name]
    seen: list = []
    interleaved(bystander(holds, seen), holder(make, holds, seen), bystander(holds, seen), holder(make, holds, seen))
    assert len(seen) == 26 and all(seen)
    assert not holds() and not RECORDING


@pytest.mark.parametrize("name", POLICIES)
def test_nothing_stays_after_exits_in_another_order(name):
    """The first task to enter leaves first, and the last one to leave had entered within it."""
    make, holds = POLICIES[name]
    seen: list = []

    def task(before, inside):
        async def run(turn):
            for _ in range(before):
                await turn()
            with make():
                for _ in range(inside):
                    seen.append(holds())
                    await turn()
            seen.append(not holds())

        return run

    interleaved(task(0, 3), task(1, 5), task(2, 1))
    assert all(seen)
    assert not holds()
    assert contexts._of_jax.value == contexts._Policies()


def test_different_policies_that_end_in_another_order():
    """Each context restores its own policy, and changes no other policy."""
    first, second = sa.densify("error"), sa.strong_zeros(False)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert weak_zeros() and not forbidden()
    second.__exit__(None, None, None)
    assert not weak_zeros() and not forbidden()


@pytest.mark.parametrize("name", ["strong_zeros", "densify"])
def test_compiled_functions_of_the_user(name):
    """What `jax.jit` compiled for one task is not used for another; each policy compiles once."""
    make, holds = POLICIES[name]
    traced: list = []

    @jax.jit
    def function(D):
        traced.append(1)
        return times_infinity(D) if name == "strong_zeros" else sa.sort(D)

    seen: list = []
    follows = lambda: holds(function)  # noqa: E731
    interleaved(bystander(follows, seen), holder(make, follows, seen), bystander(follows, seen))
    assert all(seen)
    # What raises is not kept, so that it is traced each time.
    assert len(traced) == (2 if name == "strong_zeros" else 1 + 4)


def test_a_function_without_arrays_is_not_compiled_under_the_policies_of_another_task():
    D = sa.Diagonal([1.0, 2.0])
    seen: list = []

    async def weak(turn):
        with sa.strong_zeros(False):
            await turn()
            await turn()

    async def compiles(turn):
        function = jax.jit(lambda t, *arrays: as_jax(D * t))
        with pytest.raises(RuntimeError, match="policies of another task or thread, which differ in strong_zeros"):
            function(jnp.inf)
        seen.append(float(function(jnp.inf, D)[0, 1]))

    interleaved(weak, compiles)
    assert seen == [0.0]


def test_tasks_begin_with_the_policies_of_the_task_that_makes_them():
    async def main():
        with sa.strong_zeros(False):
            child = asyncio.create_task(asyncio.sleep(0, None))
            inherits = asyncio.create_task(ask())
        await child
        return await inherits, weak_zeros()

    async def ask():
        return weak_zeros()

    assert asyncio.run(main()) == (True, False)


@pytest.mark.parametrize("name", POLICIES)
def test_a_thread_begins_with_the_defaults(name):
    make, holds = POLICIES[name]
    seen: list = []
    with make():
        thread = threading.Thread(target=lambda: seen.append(holds()))
        thread.start()
        thread.join()
        assert holds()
    assert seen == [False]


@pytest.mark.parametrize("name", POLICIES)
def test_a_thread_that_is_given_the_context(name):
    """`asyncio.to_thread` passes the policies on. The thread, which others use later, does not keep them."""
    make, holds = POLICIES[name]

    async def main():
        with make():
            inside = await asyncio.to_thread(holds)
        return inside, await asyncio.to_thread(holds)

    assert asyncio.run(main()) == (True, False)


def test_a_log_of_several_threads():
    """Each event stands in its own place, with the calls of its own thread below it."""
    A = sa.tridiagonal(np.ones(3), np.full(4, 4.0), np.ones(3))
    with sa.record() as alone:
        sa.linalg.solve(A, np.ones(4))
    with sa.record() as log:
        works = [contextvars.copy_context() for _ in range(4)]
        threads = [threading.Thread(target=c.run, args=(sa.linalg.solve, A, np.ones(4))) for c in works]
        [t.start() for t in threads]
        [t.join() for t in threads]
    assert [e.depth for e in log.events] == [e.depth for e in alone.events] * 4
    assert [e.function for e in log.events] == [e.function for e in alone.events] * 4
    assert not log.running


def test_a_generator_that_ends_in_another_task():
    """A generator may end in another task, as fixtures of a test framework for asyncio do: the policy ends there."""

    async def fixture():
        with sa.densify("error"):
            yield

    async def main():
        generator = fixture()
        await asyncio.create_task(generator.__anext__())
        outside = forbidden()
        with contextlib.suppress(StopAsyncIteration):
            await asyncio.create_task(generator.__anext__())
        return outside, forbidden()

    assert asyncio.run(main()) == (False, False)


def test_the_rest_of_a_policy_is_untouched():
    with sa.densify("error"), sa.strong_zeros(False):
        with sa.errstate(linalg="nan"):
            assert forbidden() and weak_zeros() and silent()
        assert forbidden() and weak_zeros() and not silent()
    assert not forbidden() and not weak_zeros()
