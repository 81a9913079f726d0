"""Views of dense arrays: a write through either side is seen by both, as in NumPy (docs/design/semantics.md).

Arrays are written to by in-place operators, which work on the handles alone.
"""

import copy
import gc
import pickle
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa
from structarrays._core.array import writes

MAKERS = {
    "reshape": lambda f, x: f.reshape(x, (4, 6)),
    "reshape with -1": lambda f, x: f.reshape(x, (2, -1)),
    "reshape to the same": lambda f, x: f.reshape(x, (2, 3, 4)),
    "expand_dims": lambda f, x: f.expand_dims(x, axis=(0, -1)),
    "squeeze": lambda f, x: f.squeeze(f.expand_dims(x, axis=1), axis=1),
    "moveaxis": lambda f, x: f.moveaxis(x, 0, 2),
    "moveaxis of two": lambda f, x: f.moveaxis(x, (-1, 0), (0, 1)),
    "permute_dims": lambda f, x: f.permute_dims(x, (2, 0, 1)),
    "permute_dims negative": lambda f, x: f.permute_dims(x, (-1, -3, -2)),
    "matrix_transpose": lambda f, x: f.matrix_transpose(x),
    "flip": lambda f, x: f.flip(x),
    "flip an axis": lambda f, x: f.flip(x, axis=-2),
    "a chain": lambda f, x: f.flip(f.permute_dims(f.reshape(x, (4, 6)), (1, 0)), axis=0),
}


def start():
    return np.arange(24.0).reshape(2, 3, 4)


def read(x):
    return np.asarray(x.to_jax())


@pytest.mark.parametrize("name", MAKERS)
def test_writes_are_seen_by_both(name):
    make = MAKERS[name]
    x, expected = sa.asarray(start()), start()
    view, expected_view = make(sa, x), make(np, expected)
    weights = np.arange(1.0, 25.0)

    view *= weights.reshape(view.shape)  # through the view
    expected_view *= weights.reshape(view.shape)
    assert np.array_equal(read(view), expected_view)
    assert np.array_equal(read(x), expected)

    x -= weights.reshape(x.shape)  # through the base
    expected -= weights.reshape(x.shape)
    assert np.array_equal(read(view), expected_view)
    assert np.array_equal(read(x), expected)


@pytest.mark.parametrize("name", MAKERS)
def test_writes_are_seen_by_both_in_jit(name):
    make = MAKERS[name]

    @jax.jit
    def run(x, weights):
        view = make(sa, x)
        view *= sa.reshape(weights, view.shape)
        x -= weights
        return x, view

    x, expected = sa.asarray(start()), start()
    weights = np.arange(1.0, 25.0).reshape(2, 3, 4)
    expected_view = make(np, expected)
    expected_view *= weights.reshape(expected_view.shape)
    expected -= weights
    result, view = run(x, sa.asarray(weights))
    assert np.array_equal(read(result), expected)
    assert np.array_equal(read(view), expected_view)
    assert np.array_equal(read(x), start())  # a write to an argument is local to the call


def test_a_reshaped_transpose_is_a_view_too():
    # NumPy copies here, since its arrays have strides; portable code relies on neither.
    x = sa.asarray(start())
    view = sa.reshape(sa.permute_dims(x, (2, 0, 1)), (8, 3))
    view += 1.0
    assert np.array_equal(read(x), start() + 1.0)


def test_views_of_views_and_siblings():
    x, expected = sa.asarray(start()), start()
    flat, e_flat = sa.reshape(x, (-1,)), expected.reshape(-1)
    back, e_back = sa.flip(flat), e_flat[::-1]
    grid, e_grid = sa.reshape(back, (4, 6)), e_back.reshape(4, 6)
    other, e_other = sa.moveaxis(x, 0, -1), np.moveaxis(expected, 0, -1)
    weights = np.arange(24.0)
    for array, same in ((x, expected), (flat, e_flat), (back, e_back), (grid, e_grid), (other, e_other)):
        array += weights.reshape(array.shape)
        same += weights.reshape(array.shape)
        for a, e in ((x, expected), (flat, e_flat), (back, e_back), (grid, e_grid), (other, e_other)):
            assert np.array_equal(read(a), e)


@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_write_ends_the_assumptions_of_all_that_see_it(written):
    base = sa.assume(sa.asarray([[4.0, 1.0], [1.0, 3.0]]), "positive_definite")
    arrays = [base, base.mT, base.mT.mT]
    assert all("positive_definite" in x.assumptions for x in arrays)
    arrays[written][0, 1] = 7.0  # no longer symmetric
    for x in arrays:
        assert not x.assumptions
        np.testing.assert_allclose(
            sa.linalg.solve(x, sa.asarray([1.0, 2.0])), np.linalg.solve(np.asarray(x), [1.0, 2.0])
        )


def test_a_view_outlives_the_name_of_its_base():
    x = sa.asarray(start())
    first = sa.flip(sa.reshape(x, (24,)))  # the array between the two has no name
    second = sa.reshape(x, (24,))
    del x
    gc.collect()
    first += np.arange(24.0)
    assert np.array_equal(read(second), start().reshape(-1) + np.arange(24.0)[::-1])


def test_dead_views_do_not_pile_up():
    x = sa.asarray(start())
    for _ in range(500):
        sa.reshape(x, (24,))
    assert len(x._link.views) <= 64
    keep = [sa.reshape(x, (24,)) for _ in range(100)]
    x += 1.0
    assert all(np.array_equal(read(view), start().reshape(-1) + 1.0) for view in keep)
    assert len(x._link.views) == 100  # the write forgot the dead ones
    del keep
    x += 1.0
    assert len(x._link.views) == 0


def test_views_need_no_garbage_collector():
    gc.collect()
    gc.disable()
    try:
        x = sa.asarray(start())
        view = sa.reshape(x, (24,))
        view += 1.0
        link = writes.link_of(x)
        assert len(link.live_views()) == 1
        del view
        assert link.live_views() == []
    finally:
        gc.enable()


@pytest.mark.parametrize("remake", [lambda v: pickle.loads(pickle.dumps(v)), copy.copy, copy.deepcopy])
def test_copies_of_views_are_independent(remake):
    x = sa.asarray(start())
    view = sa.reshape(x, (24,))
    other = remake(view)
    other += 1.0
    x *= 2.0
    assert np.array_equal(read(other), start().reshape(-1) + 1.0)
    assert np.array_equal(read(view), 2.0 * start().reshape(-1))
    assert np.array_equal(read(x), 2.0 * start())
    assert writes.link_of(other) is None


def test_a_flattened_view_is_its_value():
    x = sa.asarray(start())
    view = sa.flip(x)
    (leaf,), tree = jax.tree.flatten(view)
    again = jax.tree.unflatten(tree, [leaf])
    again += 1.0
    assert np.array_equal(read(x), start())


def test_what_is_no_view():
    x = sa.asarray(start())
    copied = sa.reshape(x, (24,), copy=True)
    copied += 1.0
    assert np.array_equal(read(x), start())
    raw = jnp.asarray(start())
    view = sa.flip(raw)
    view += 1.0
    assert np.array_equal(raw, start())
    assert writes.link_of(view) is None
    d = sa.Diagonal([1.0, 2.0])
    moved = sa.expand_dims(d, axis=0)
    moved *= 2.0
    assert np.array_equal(read(d), np.diag([1.0, 2.0]))
    assert writes.link_of(d) is None
    with sa.densify("allow"):
        flat = sa.reshape(d, (4,))
    flat += 1.0
    assert np.array_equal(read(d), np.diag([1.0, 2.0]))


def test_a_view_is_a_new_object():
    x = sa.asarray(start())
    assert sa.reshape(x, x.shape) is not x
    assert sa.squeeze(x, ()) is not x


def test_a_traced_value_does_not_escape_through_a_view():
    x = sa.asarray(start())
    view = sa.reshape(x, (24,))

    @jax.jit
    def through_the_outer_view(v):
        view.__iadd__(v)
        return v

    @jax.jit
    def through_an_inner_view(v):
        inner = sa.flip(x)
        inner += v
        return inner

    for function in (through_the_outer_view, through_an_inner_view):
        with pytest.raises(RuntimeError, match="return"):
            function(jnp.asarray(1.0))
        assert np.array_equal(read(x), start())
        assert np.array_equal(read(view), start().reshape(-1))


def test_derivatives_go_through_views():
    def f(x):
        x = sa.asarray(x, copy=True)
        view = sa.flip(sa.reshape(x, (-1,)))
        view *= np.arange(24.0)
        return as_jax(sa.sum(x * x))

    expected = 2.0 * start() * (np.arange(24.0)[::-1].reshape(2, 3, 4)) ** 2
    for run in (jax.grad(f), jax.jit(jax.grad(f))):
        assert np.allclose(run(jnp.asarray(start())), expected, rtol=1e-13)


def test_views_under_vmap():
    def f(x):
        x = sa.asarray(x, copy=True)
        view = sa.flip(x)
        view += np.arange(12.0).reshape(3, 4)
        return x

    result = jax.vmap(f)(jnp.asarray(start()))
    assert np.array_equal(read(result), start() + np.arange(12.0)[::-1].reshape(3, 4))


def test_a_write_between_computation_and_link_is_not_lost():
    """Threads write to the base while others make views: at the end every view shows the last value."""
    x = sa.zeros(8)
    views, stop = [], threading.Event()

    def make():
        while not stop.is_set():
            views.append(sa.flip(x))
            if len(views) > 300:
                stop.set()

    maker = threading.Thread(target=make)
    maker.start()
    count = 0
    while not stop.is_set():
        x += 1.0
        count += 1
    maker.join()
    assert count
    assert np.array_equal(read(x), np.full(8, float(count)))
    assert all(np.array_equal(read(view), read(x)) for view in views)


def test_a_structured_result_stays_dense_where_there_are_views():
    # Dense times diagonal is diagonal; written in place it would change the class of the array.
    d = sa.Diagonal([2.0, 3.0])
    x = sa.ones((2, 2))
    flat = sa.reshape(x, (4,))
    x *= d
    assert np.array_equal(read(flat), [2.0, 0.0, 0.0, 3.0])
    turned = sa.flip(x)
    turned *= d
    assert np.array_equal(read(x), np.diag([6.0, 6.0]))
    flat += 1.0
    assert np.array_equal(read(x), [[7.0, 1.0], [1.0, 7.0]])
    assert [type(a) for a in (x, flat, turned)] == [sa.Dense] * 3


def test_item_writes_through_views():
    x = sa.asarray(start())
    flat = sa.reshape(x, (-1,))
    rows = sa.permute_dims(x, (2, 1, 0))
    flat[5] = 100.0
    assert float(x[0, 1, 1]) == 100.0
    assert float(rows[1, 1, 0]) == 100.0
    rows[3, 2, 1] = -1.0
    assert float(flat[23]) == -1.0
    x[0, 0, :] = 7.0
    assert np.array_equal(read(flat)[:4], np.full(4, 7.0))
