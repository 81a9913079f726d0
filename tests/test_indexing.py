"""Reading and writing by keys: NumPy on the dense values is the oracle; the classes are those of the table in the docs."""

import copy
import itertools
import pickle
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa
from structarrays.testing import STRUCTURES, sample

BATCHES = [(), (2, 3)]


def structures(batch, rng):
    """One array of each structure, with and without a background."""
    yield sa.Fill(rng.standard_normal(batch), (4, 5))
    yield sa.Identity(4, rng.standard_normal(batch))
    yield sa.Identity((4, 5), rng.standard_normal(batch))
    yield sa.Diagonal(rng.standard_normal((*batch, 4)))
    yield sa.Diagonal(rng.standard_normal((*batch, 4)), shape=(5, 4))
    yield sa.tridiagonal(
        rng.standard_normal((*batch, 4)), rng.standard_normal((*batch, 5)), rng.standard_normal((*batch, 4))
    )
    yield sa.Banded([rng.standard_normal((*batch, 3)), rng.standard_normal((*batch, 4))], (2, -1), (5, 5))
    yield sa.Banded([rng.standard_normal((*batch, 2))], (3,), (4, 5))
    yield sa.Banded([], (), (4, 5)) if not batch else sa.Banded([rng.standard_normal((*batch, 4))], (1,), (4, 5))


def with_backgrounds(batch):
    rng = np.random.default_rng(0)
    for x in structures(batch, rng):
        yield x
        if not isinstance(x, sa.Fill):
            yield sa.exp(x)


CORE_KEYS = [
    (..., 1, 2),
    (..., -1, 3),
    (..., 0, slice(None)),
    (..., slice(None), 1),
    (..., slice(1, 4), slice(1, 4)),
    (..., slice(None, 3), slice(None, 3)),
    (..., slice(None, None, 2), slice(None, None, 2)),
    (..., slice(1, None, 2), slice(0, None, 2)),
    (..., slice(2, None), slice(None)),
    (..., slice(None), slice(3, None)),
    (..., slice(None, 2), slice(3, None)),
    (..., slice(0, 0), slice(None)),
    (..., slice(None, None, -1), slice(None)),
    (..., None, slice(None)),
    (..., None),
    (..., 1, None, slice(None)),
    (..., slice(None), 1, None),
    (..., np.array([1, 0]), slice(None)),
    (..., slice(None), np.array([1, -1, 0])),
    (..., np.array([1, 0]), np.array([2, -1])),
    (..., np.array([[1], [0]]), np.array([2, 3])),
    (..., np.array([True, False, True, False]), 0),
    (),
    (...,),
]
BATCH_KEYS = [
    (0,),
    (slice(None), 0),
    (slice(1, None), slice(None, None, -1)),
    (None, ...),
    (0, 1, 2, 3),
    (np.array([1, 0]),),
    (np.array([1, 0]), np.array([2, 0])),
    (np.array([True, False]),),
    (slice(None), np.array([1, 0]), slice(None), 2),
    (np.array([1, 0]), slice(None), 1),
    (0, slice(None), np.array([1, 2])),
    (..., None, slice(None), slice(None)),
]


def check(x, key):
    dense = np.asarray(x.to_jax())
    try:
        expected = dense[key]
    except IndexError:
        with pytest.raises(IndexError):
            x[key]
        return
    result = x[key]
    assert result.shape == expected.shape and result.dtype == expected.dtype, (x, key, result.shape, expected.shape)
    np.testing.assert_array_equal(np.asarray(as_jax(result)), expected)


@pytest.mark.costly
@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("key", CORE_KEYS, ids=str)
def test_reading_structured(batch, key):
    for x in with_backgrounds(batch):
        check(x, key)


@pytest.mark.parametrize("key", BATCH_KEYS, ids=str)
def test_reading_batches(key):
    for x in with_backgrounds((2, 3)):
        check(x, key)


@pytest.mark.costly
@pytest.mark.parametrize("key", CORE_KEYS[:14], ids=str)
def test_reading_under_jit(key):
    for x in with_backgrounds((2,)):
        expected = np.asarray(x.to_jax())[key]
        np.testing.assert_array_equal(np.asarray(as_jax(jax.jit(lambda x: x[key])(x))), expected)


def test_classes_of_slices():
    eye, diagonal = sa.Identity(6), sa.Diagonal(np.arange(6.0))
    banded = sa.Banded([np.ones(6 - abs(k)) for k in range(-2, 3)], range(-2, 3), (6, 6))
    assert type(eye[1:4, 1:4]) is sa.Identity
    assert type(eye[:3, :]) is sa.Diagonal
    assert type(diagonal[1:, :]) is sa.Banded and diagonal[1:, :].offsets == (1,)
    assert banded[::2, ::2].offsets == (-1, 0, 1)
    assert banded[1:5, :].offsets == (-1, 0, 1, 2, 3)
    assert type(diagonal[:2, 3:]) is sa.Banded and diagonal[:2, 3:].offsets == ()
    assert type(diagonal[0]) is sa.Dense and type(diagonal[0, 0]) is sa.Dense
    with sa.densify("error"):
        diagonal[2], diagonal[:, 1], diagonal[1, 2], diagonal[np.array([0, 1]), np.array([0, 2])]
        assert type(diagonal[np.array([1, 0])]) is type(diagonal[::-1]) is sa.Sparse
        with pytest.raises(sa.DensifyError, match="__getitem__"):
            banded[np.array([1, 0])]


def test_rows_of_a_huge_matrix_cost_their_length():
    n = 10**6
    x = sa.Diagonal(jnp.ones(n))
    text = jax.jit(lambda x: x[5]).lower(x).compile().as_text()
    assert f"{n},{n}" not in text
    assert float(x[7, 7]) == 1.0 and float(x[7, 8]) == 0.0


DENSE_KEYS = [
    0, -1, (0, 1), (1, -2, 3), slice(1, None), (slice(None), 2), (..., 1), (slice(None, None, -1),),
    (slice(None, None, 2), slice(2, 0, -1)), None, (None, 0, ..., None), (), ..., (slice(5, 2),), (0, slice(1, 1)),
    np.array([1, 0, 1]), (np.array([1, 0]), 0), (slice(None), np.array([[2, 0]])), (np.array([1, 0]), slice(None), 1),
    (np.array([True, False]),), (slice(None), np.array([True, False, True])), (np.array([True, True]), np.array([0, 2])),
    [1, 0], np.int64(1), np.array(1), True, (np.array([], dtype=int),),
]  # fmt: skip


@pytest.mark.parametrize("key", DENSE_KEYS, ids=str)
def test_dense_reads_and_writes_as_numpy(key):
    expected = np.arange(24.0).reshape(2, 3, 4)
    x = sa.asarray(expected, copy=True)
    selected = expected[key]
    np.testing.assert_array_equal(np.asarray(x[key].to_jax()), selected)
    assert x[key].shape == selected.shape
    for value in (-1.0, np.asarray(7.0), np.arange(selected.size, dtype=float).reshape(selected.shape)):
        mine, theirs = sa.asarray(expected, copy=True), expected.copy()
        mine[key] = value
        theirs[key] = value
        np.testing.assert_array_equal(np.asarray(mine), theirs)


@pytest.mark.parametrize("make", [lambda: sa.Diagonal([1.0, 2.0]), lambda: sa.Fill(1.0, (2, 2)), lambda: sa.ones((2, 2)),
                                  lambda: sa.Sparse([1.0], ([0], [1]), (2, 2)), lambda: sa.Toeplitz([1.0, 2.0])])  # fmt: skip
@pytest.mark.parametrize("mask", [True, False])
def test_masks_without_dimensions(make, mask):
    values = np.asarray(make())
    for key in ((mask,), (sa.asarray(mask),), (mask, 0), (0, mask), (slice(None), mask), (None, mask, 1)):
        host = tuple(np.asarray(k) if isinstance(k, sa.Array) else k for k in key)
        np.testing.assert_array_equal(np.asarray(make()[key]), values[host])
        x, y = make(), values.copy()
        x[key] = 5.0
        y[host] = 5.0
        np.testing.assert_array_equal(np.asarray(x), y)


def test_full_masks():
    values = np.arange(12.0).reshape(3, 4)
    x = sa.asarray(values)
    np.testing.assert_array_equal(np.asarray(x[x > 5.0]), values[values > 5])
    x[x > 5.0] = 0.0
    np.testing.assert_array_equal(np.asarray(x), np.where(values > 5, 0, values))
    x[sa.asarray(values < 2)] = sa.asarray([8.0, 9.0])
    assert np.asarray(x)[0].tolist() == [8.0, 9.0, 2.0, 3.0]
    for mask in (np.zeros((0, 4), bool), np.zeros((3, 0), bool), np.zeros(0, bool)):
        assert x[mask].shape == values[mask].shape
    scalar = sa.asarray(3.0)
    scalar[True] = 4.0
    assert float(scalar) == 4.0 and scalar[False].shape == (0,)

    def clipped(x):
        x = sa.asarray(x, copy=True)
        x[x > 5.0] = 0.0
        return x

    np.testing.assert_array_equal(np.asarray(jax.jit(clipped)(sa.asarray(values))), np.where(values > 5, 0, values))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (3, "index 3 is out of bounds for axis 0 with size 3"),
        ((0, -5), "index -5 is out of bounds for axis 1 with size 4"),
        ((0, 0, 0), "too many indices"),
        (1.5, "only integers"),
        ("a", "only integers"),
        (np.array([0, 9]), "index 9 is out of bounds for axis 0"),
        (np.array([1.0]), "integer or boolean dtype"),
        ((..., 0, ...), "only one ellipsis"),
        (np.array([True, False]), "boolean index of shape"),
        (slice(0.5), "slice indices must be integers"),
    ],
    ids=str,
)
def test_bad_keys(key, message):
    for x in (sa.zeros((3, 4)), sa.Diagonal(np.ones(3), shape=(3, 4))):
        with pytest.raises(IndexError, match=message):
            x[key]
        with pytest.raises(IndexError, match=message):
            x[key] = 1.0


def test_bad_values():
    x = sa.zeros((3, 4))
    with pytest.raises(ValueError, match="cannot be broadcast"):
        x[0] = np.ones(3)
    with pytest.raises(TypeError, match="complex128 cannot be cast"):
        x[0] = 1j
    with pytest.raises(OverflowError):
        sa.zeros(3, dtype=sa.uint8)[0] = 300
    with pytest.raises(TypeError):
        x[0] = "text"
    assert float(sa.sum(x)) == 0.0


def test_writes_keep_the_narrowest_structure():
    def written(x, key, value):
        expected = np.array(x.to_jax())
        expected[key] = np.asarray(value.to_jax() if isinstance(value, sa.Array) else value)
        x[key] = value
        np.testing.assert_array_equal(np.asarray(x.to_jax()), expected)
        return type(x)

    eye = lambda: sa.Identity(6)  # noqa: E731
    diagonal = lambda: sa.Diagonal(np.arange(6.0))  # noqa: E731
    banded = lambda: sa.Banded([np.ones(6 - abs(k)) for k in range(-2, 3)], range(-2, 3), (6, 6))  # noqa: E731
    i = np.arange(6)
    assert written(eye(), (1, 1), 7.0) is sa.Diagonal
    assert written(diagonal(), (1, 1), 7.0) is sa.Diagonal
    assert written(banded(), (1, 2), 7.0) is sa.Banded
    assert written(diagonal(), (1, 2), 7.0) is sa.Banded
    assert written(diagonal(), (0, 5), 0.0) is sa.Banded
    assert written(banded(), (0, 5), 7.0) is sa.Banded
    assert written(diagonal(), (i, i), np.arange(6.0) + 1) is sa.Diagonal
    assert written(banded(), (i[1:], i[:-1]), 3.0) is sa.Banded
    assert written(diagonal(), (1, slice(None)), 7.0) is sa.Sparse
    assert written(banded(), (1, slice(None)), 7.0) is sa.Dense
    assert written(sa.Fill(1.0, (6, 6)), (1, 1), 7.0) is sa.Dense
    assert written(diagonal(), ..., 7.0) is sa.Fill
    assert written(diagonal(), ..., sa.eye(6)) is sa.Identity
    batched = sa.Diagonal(np.ones((2, 6)))
    assert written(batched, (0, 2, 2), 5.0) is sa.Diagonal
    assert written(batched, (0,), sa.eye(6)) is sa.Diagonal
    assert written(batched, (1,), 7.0) is sa.Diagonal and batched.background is not None
    x = diagonal()
    x[x > 2.5] = 9.0
    np.testing.assert_array_equal(np.asarray(x.to_jax()), np.diag([0.0, 1, 2, 9, 9, 9]))


def test_single_writes_do_not_reach_other_arrays():
    x = sa.tridiagonal(np.ones(5), np.ones(6), np.ones(5))
    y = copy.copy(x)
    before = np.asarray(as_jax(y))
    for i in range(6):
        x[i, i] = 2.0
    x[0, 1] = 3.0
    x[0, 1] = 4.0
    np.testing.assert_array_equal(np.asarray(as_jax(y)), before)
    assert float(x[0, 1]) == 4.0 and float(x[3, 3]) == 2.0


def test_a_loop_of_writes_compiles_once_and_donates():
    from structarrays._functions import index_writes

    x = sa.zeros(1000)
    for i in range(
        3
    ):  # by a number of NumPy's and by one of JAX's, each into a buffer of its own and into one that is not
        x[i] = 1.0
        x[i] = x[i] + 1.0
    compiled = index_writes._write_box_donated._cache_size()
    assert compiled
    for i in range(1000):
        x[i] = float(i)
        x[i] = x[i] + 1.0
    assert index_writes._write_box_donated._cache_size() == compiled
    np.testing.assert_array_equal(np.asarray(x), np.arange(1000.0) + 1)
    y = sa.asarray(x, copy=True)
    x[0] = -1.0
    assert float(y[0]) == 1.0


def test_ownership_ends_with_exposure():
    x = sa.zeros(4)
    x[0] = 1.0
    raw = x.to_jax()
    leaves = jax.tree.leaves(x)
    x[1] = 2.0
    x[2] = 2.0
    np.testing.assert_array_equal(np.asarray(raw), [1, 0, 0, 0])
    np.testing.assert_array_equal(np.asarray(leaves[0]), [1, 0, 0, 0])
    y = pickle.loads(pickle.dumps(x))
    x[3] = 5.0
    assert float(y[3]) == 0.0


def test_views_of_boxes():
    x = sa.zeros((3, 4))
    row = x[1]
    part = row[1:3]
    part[0] = 5.0
    assert float(x[1, 1]) == 5.0 and float(row[1]) == 5.0
    x[1, 2] = 6.0
    assert float(part[1]) == 6.0
    x[:, ::-2] += 1.0
    np.testing.assert_array_equal(np.asarray(x), [[0, 1, 0, 1], [0, 6, 6, 1], [0, 1, 0, 1]])
    for r in x:
        r[...] = 2.0
    assert float(sa.sum(x)) == 24.0
    element = x[2, 3, ...]
    element[...] = 9.0
    assert float(x[2, 3]) == 9.0


def exchange(x):
    x[0], x[1] = x[1], x[0]
    return x


def keep_one(x):
    kept, x[0] = x[0], 9.0
    return kept


def keep_one_of_a_matrix(x):
    x = x.reshape(2, 3)
    kept = x[1, np.asarray(-1)]
    x[1, 2] = 9.0
    return kept


def keep_all(x):
    elements = list(x)
    x[0] = 9.0
    return np.asarray([float(e) for e in elements])


def keep_the_largest(x):
    largest = max(x)
    x[...] = 0.0
    return largest


def keep_a_number(x):
    x = x.reshape(2, 3)[1, 1, ...]
    kept = x[()]
    x[...] = 9.0
    return kept


def with_ellipsis(x):
    seen = x[1, ...]
    x[1] = 9.0
    return seen


@pytest.mark.parametrize(
    "program", [exchange, keep_one, keep_one_of_a_matrix, keep_all, keep_the_largest, keep_a_number, with_ellipsis]
)
def test_an_element_is_a_number_and_no_view(program):
    start = np.asarray([3.0, 1.0, 4.0, 1.5, 5.0, 2.0])
    expected = program(start.copy())
    np.testing.assert_array_equal(np.asarray(program(sa.asarray(start))), expected)
    if program is not keep_all and program is not keep_the_largest:
        np.testing.assert_array_equal(np.asarray(jax.jit(program)(sa.asarray(start))), expected)


def test_threads_lose_no_write():
    n, workers = 64, 8
    x = sa.zeros((workers, n))

    def work(k):
        for i in range(n):
            x[k, i] = k + 1.0

    threads = [threading.Thread(target=work, args=(k,)) for k in range(workers)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    np.testing.assert_array_equal(np.asarray(x), np.repeat(np.arange(1.0, workers + 1), n).reshape(workers, n))


def test_a_reader_never_sees_two_structures():
    x = sa.Diagonal(np.ones(4))
    errors = []
    stop = threading.Event()

    def read():
        while not stop.is_set():
            if x.shape != (4, 4) or x.to_jax().shape != (4, 4):
                errors.append(x.shape)

    thread = threading.Thread(target=read)
    thread.start()
    dense = sa.ones((4, 4))
    for _ in range(200):
        x[...] = sa.eye(4)
        x[...] = dense
        x[...] = sa.tridiagonal(np.ones(3), np.ones(4), np.ones(3))
    stop.set()
    thread.join()
    assert not errors


def test_writes_under_transforms():
    x = sa.zeros(3)

    def local(y):
        y[0] = 1.0
        return y

    assert np.asarray(jax.jit(local)(x)).tolist() == [1, 0, 0] and np.asarray(x).tolist() == [0, 0, 0]

    def leak(t):
        x[0] = t
        return t

    with pytest.raises(RuntimeError, match="return the new value"):
        jax.jit(leak)(1.0)
    assert float(x[0]) == 0.0

    def filled(t):
        out = sa.zeros(3)
        out[1] = t * t
        return as_jax(sa.sum(out))

    assert float(jax.grad(filled)(3.0)) == 6.0
    assert np.asarray(jax.vmap(filled)(jnp.arange(3.0))).tolist() == [0, 1, 4]
    view = x[1:]
    leaves, tree = jax.tree.flatten(view)
    assert leaves[0].shape == (2,) and jax.tree.unflatten(tree, leaves).shape == (2,)


def test_take():
    values = np.arange(24.0).reshape(2, 3, 4)
    for axis in (0, 1, -1):
        np.testing.assert_array_equal(
            np.asarray(sa.take(sa.asarray(values), sa.asarray([1, 0, -1]), axis=axis)),
            np.take(values, [1, 0, -1], axis),
        )
    x = sa.Diagonal(np.arange(6.0).reshape(2, 3))
    assert type(sa.take(x, sa.asarray([1, 0]), axis=0)) is sa.Diagonal
    indices = np.array([[[2, 0]]])
    np.testing.assert_array_equal(
        np.asarray(sa.take_along_axis(sa.asarray(values), sa.asarray(indices), axis=-1)),
        np.take_along_axis(values, np.broadcast_to(indices, (2, 3, 2)), -1),
    )
    with pytest.raises(IndexError):
        sa.take(sa.asarray(values), sa.asarray([3]), axis=1)
    with pytest.raises(ValueError, match="axis must be given"):
        sa.take(sa.asarray(values), sa.asarray([0]))


OUT_OF_RANGE = [
    5,
    -4,
    np.int8(3),
    np.asarray([0, 3]),
    np.asarray([[-4]], dtype=np.int8),
    np.asarray([200], dtype=np.uint8),
]


@pytest.mark.parametrize("x", [sa.arange(3.0), sa.Diagonal([1.0, 2.0, 3.0]), sa.Toeplitz(np.arange(3.0))], ids=repr)
@pytest.mark.parametrize("indices", OUT_OF_RANGE, ids=str)
def test_indices_out_of_range(x, indices):
    with pytest.raises(IndexError, match="out of bounds"):
        sa.take(x, indices, axis=0)
    # Traced indices are clamped, in all structures and all functions alike.
    dense, inside = (
        np.asarray(x),
        np.clip(np.where(np.asarray(indices, int) < 0, np.asarray(indices, int) + 3, indices), 0, 2),
    )
    got = jax.jit(lambda i: sa.take(x, i, axis=0))(indices)
    np.testing.assert_array_equal(np.asarray(got), np.take(dense, inside, axis=0))
    np.testing.assert_array_equal(np.asarray(jax.jit(lambda i: x[i])(jnp.asarray(indices))), dense[inside])
    if np.ndim(indices) == 1:
        along = np.asarray(indices).reshape((-1,) + (1,) * (x.ndim - 1))
        with pytest.raises(IndexError, match="out of bounds"):
            sa.take_along_axis(x, along, axis=0)
        got = jax.jit(lambda i: sa.take_along_axis(x, i, axis=0))(along)
        np.testing.assert_array_equal(np.asarray(got), np.take_along_axis(dense, inside.reshape(along.shape), axis=0))


def test_writes_into_a_scalar_never_donate_what_others_hold():
    # A compiled identity hands its argument's buffer on, so a scalar's buffer may be the value's, or a view's.
    x, value = sa.zeros(()), jnp.asarray(2.0)
    x[()] = 1.0
    x[()] = value
    raw = x[()].to_jax()
    x[()] = 3.0
    x[()] = 4.0
    assert float(value) == 2.0 and float(raw) == 2.0 and float(x) == 4.0


STRUCTURED_INDICES = (sa.eye(2, dtype=int), sa.Fill(1, (2, 2)), sa.astype(sa.Permutation([1, 0]), sa.int32))


@pytest.mark.parametrize("indices", STRUCTURED_INDICES, ids=lambda x: type(x).__name__)
def test_indices_may_be_structured(indices):
    band = sa.tridiagonal([1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0])
    places = np.asarray(indices)
    for x in (sa.asarray([1.0, 2.0, 3.0]), band, sa.Toeplitz([1.0, 2.0, 3.0])):
        expected = np.take(np.asarray(x), places, axis=0)
        np.testing.assert_array_equal(np.asarray(sa.take(x, indices, axis=0)), expected)
        np.testing.assert_array_equal(np.asarray(x[indices]), expected)
        np.testing.assert_array_equal(jax.jit(lambda x, i: as_jax(sa.take(x, i, axis=0)))(x, indices), expected)
    dense = np.arange(4.0).reshape(2, 2)
    found = sa.take_along_axis(sa.asarray(dense), indices, axis=0)
    np.testing.assert_array_equal(np.asarray(found), np.take_along_axis(dense, places, axis=0))


PARTS = (slice(None), slice(1, None), 0, [0, 1], np.array([[0], [1]]), None, np.array([True, False]))


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("place", range(4))
def test_an_ellipsis_of_no_axes_separates_indices(place, rng):
    """NumPy moves the axes of separated index arrays to the front, also if the ellipsis between them stands for no axis."""
    a, checked = np.arange(24.0).reshape(2, 3, 4), 0
    for parts in itertools.islice(itertools.product(PARTS, repeat=3), place, None, 4):  # others for each place
        key = (*parts[:place], ..., *parts[place:])
        try:
            expected = a[key]
        except IndexError:
            with pytest.raises(IndexError):
                sa.asarray(a)[key]
            continue
        np.testing.assert_array_equal(np.asarray(sa.asarray(a)[key]), expected, err_msg=str(key))
        for shape in ((), expected.shape, expected.shape[1:], expected.shape[-1:]):
            value, changed, x = rng.normal(size=shape), a.copy(), sa.asarray(a, copy=True)
            changed[key] = value
            x[key] = value
            np.testing.assert_array_equal(np.asarray(x), changed, err_msg=f"{key}, {shape}")
        checked += 1
    assert checked > 25


@pytest.mark.parametrize(
    "key", [(slice(None), [0, 1], ..., 0), (0, ..., [0, 1], 0), ([0, 1], ..., slice(None), [0, 1])]
)
def test_an_ellipsis_of_no_axes_in_structured_arrays(key, rng):
    x = sa.Diagonal(np.arange(1.0, 5.0).reshape(2, 2))
    dense = np.asarray(x.to_dense()).copy()
    np.testing.assert_array_equal(np.asarray(x[key]), dense[key])
    value = rng.normal(size=dense[key].shape)
    x[key] = dense[key] = value
    np.testing.assert_array_equal(np.asarray(x), dense)


NEGATIVE = (
    ([0], [-1]),
    (slice(None), [-1]),
    ([-1, 0], slice(None)),
    ([-1, 0], [0, -1]),
    (np.array([[-1], [0]]), [0, -2]),
    (np.array([-1, -4], "int8"), slice(0, 2)),
)


@pytest.mark.parametrize("structure", [s for s in STRUCTURES if "Fourier" not in s])
def test_negative_entries_of_index_arrays(structure, rng):
    """A write off the stored triangle of `Triangular` was lost."""
    for key in NEGATIVE:
        x = sample(structure, (4, 4), dtype="float64", seed=1)
        if x is None:
            continue
        dense = np.asarray(x.to_dense()).copy()
        np.testing.assert_allclose(np.asarray(x[key]), dense[key], rtol=1e-12, atol=1e-12)
        x[key] = dense[key] = rng.normal(size=dense[key].shape)
        np.testing.assert_allclose(np.asarray(x), dense, rtol=1e-12, atol=1e-12, err_msg=str(key))
        x[key] += 1.0
        dense[key] += 1.0
        np.testing.assert_allclose(np.asarray(x), dense, rtol=1e-12, atol=1e-12, err_msg=str(key))


BANDS = [
    ((5, 5), (0,)),
    ((5, 7), (0,)),
    ((7, 5), (0, 1)),
    ((5, 5), (-2, 0, 1)),
    ((4, 7), (-1, 2, 3)),
    ((7, 4), (-3, 0)),
    ((5, 5), (4,)),
]


@pytest.mark.costly
@pytest.mark.parametrize(("shape", "offsets"), BANDS, ids=str)
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
def test_reversed_bands_stay_banded(shape, offsets, batch, rng):
    m, n = shape
    band = sa.Banded(
        [rng.normal(size=(*batch, min(m, n - k) if k >= 0 else min(m + k, n))) for k in offsets], offsets, shape
    )
    for x in (band, sa.exp(band)):
        dense = np.asarray(x.to_dense())
        flipped = sa.flip(x, axis=(-2, -1))
        assert isinstance(flipped, sa.Banded) and len(flipped.offsets) == len(offsets)
        np.testing.assert_array_equal(np.asarray(flipped), np.flip(dense, (-2, -1)))
        np.testing.assert_array_equal(np.asarray(sa.flip(x)), np.flip(dense))
        for rows, columns in (
            (slice(None, None, -1),) * 2,
            (slice(None, None, -2),) * 2,
            (slice(3, 0, -1), slice(2, None, -1)),
        ):
            part = x[..., rows, columns]
            assert isinstance(part, sa.Banded)
            np.testing.assert_array_equal(np.asarray(part), dense[..., rows, columns])
        empty = x[..., 3:3:-1, ::-1]
        assert empty.shape == (*batch, 0, n)


def test_reversed_identity_is_the_identity():
    assert type(sa.flip(sa.eye(4))) is type(sa.eye(4)[::-1, ::-1]) is sa.Identity
    np.testing.assert_array_equal(np.asarray(sa.flip(sa.eye(3, 5))), np.flip(np.eye(3, 5)))
    np.testing.assert_array_equal(np.asarray(sa.flip(sa.Banded([], (), (3, 4)))), np.zeros((3, 4)))


def test_reversed_sparse_arrays_are_sorted(rng):
    dense = np.where(rng.random((40, 30)) < 0.1, rng.normal(size=(40, 30)), 0)
    for x, a in ((sa.Sparse.from_dense(dense), dense), (sa.Sparse.from_dense(dense).mT, dense.T)):
        for flip in (sa.flip, jax.jit(sa.flip)):
            flipped = flip(x)
            keys = [np.asarray(flipped.coords[i]) for i in flipped.order]
            assert (np.diff(np.ravel_multi_index(keys, [flipped.shape[i] for i in flipped.order])) > 0).all()
            np.testing.assert_array_equal(np.asarray(flipped.to_dense()), np.flip(a))
