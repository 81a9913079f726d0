"""Manipulation of every structure, against NumPy on the dense values, and the structure of what comes out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import dense

import structarrays as sa


def values(rng, *shape):
    """Numbers that differ from each other and from zero."""
    return jnp.asarray(rng.uniform(0.5, 1.5, shape) * rng.choice([-1, 1], shape))


def banded(rng, batch, m, n, offsets=(-2, 0, 1)):
    return sa.Banded(
        [values(rng, *batch, min(m, n - k) if k >= 0 else min(m + k, n)) for k in offsets], offsets, (m, n)
    )


def backed(rng, x):
    """The array with a background."""
    return x.rebuild(x.entries, values(rng, *x.batch_shape))


MAKE = {
    "Dense": lambda rng, batch: sa.asarray(values(rng, *batch, 4, 4)),
    "Fill": lambda rng, batch: sa.Fill(values(rng, *batch), (4, 4)),
    "Identity": lambda rng, batch: sa.Identity(4, values(rng, *batch)),
    "Diagonal": lambda rng, batch: sa.Diagonal(values(rng, *batch, 4)),
    "Banded": lambda rng, batch: banded(rng, batch, 4, 4),
    "Identity + background": lambda rng, batch: backed(rng, sa.Identity(4, values(rng, *batch))),
    "Diagonal + background": lambda rng, batch: backed(rng, sa.Diagonal(values(rng, *batch, 4))),
    "Banded + background": lambda rng, batch: backed(rng, banded(rng, batch, 4, 4)),
}
KINDS = tuple(MAKE)
STRUCTURED = tuple(kind for kind in KINDS if kind != "Dense")


def kind_of(x) -> str:
    name = type(x).__name__
    return name if x.background is None else f"{name} + background"


def same(result, expected):
    """Results and NumPy's are equal in shape, dtype and value."""
    result, expected = (r if isinstance(r, (tuple, list)) else (r,) for r in (result, expected))
    assert len(result) == len(expected)
    for r, e in zip(result, expected, strict=True):
        e = np.asarray(e)
        assert r.shape == e.shape
        assert r.dtype == e.dtype
        assert np.array_equal(dense(r), e)


# A case: what is computed, the same in NumPy, and what keeps its structure: every array ("all"), constant ones ("Fill"),
# or none ("").
BATCHED = {
    "broadcast_to": (lambda f, x: f.broadcast_to(x, (2, 3, 4, 4)), "all"),
    "broadcast_to more": (lambda f, x: f.broadcast_to(x, (5, 2, 3, 4, 4)), "all"),
    "expand_dims front": (lambda f, x: f.expand_dims(x, axis=0), "all"),
    "expand_dims behind the batch": (lambda f, x: f.expand_dims(x, axis=2), "all"),
    "expand_dims several": (lambda f, x: f.expand_dims(x, axis=(0, 2, -3)), "all"),
    "expand_dims in the core": (lambda f, x: f.expand_dims(x, axis=(1, -2)), "Fill"),
    "expand_dims last": (lambda f, x: f.expand_dims(x, axis=-1), "Fill"),
    "flip batch": (lambda f, x: f.flip(x, axis=0), "all"),
    "flip both batch": (lambda f, x: f.flip(x, axis=(0, 1)), "all"),
    "flip rows": (lambda f, x: f.flip(x, axis=(1, -2)), "Fill"),
    "flip all": (lambda f, x: f.flip(x), "Fill"),
    "moveaxis batch": (lambda f, x: f.moveaxis(x, 0, 1), "all"),
    "moveaxis transpose": (lambda f, x: f.moveaxis(x, -1, -2), "all"),
    "moveaxis several": (lambda f, x: f.moveaxis(x, (0, 3), (1, 2)), "all"),
    "moveaxis mixing": (lambda f, x: f.moveaxis(x, 0, -1), ""),
    "permute_dims batch": (lambda f, x: f.permute_dims(x, (1, 0, 2, 3)), "all"),
    "permute_dims all": (lambda f, x: f.permute_dims(x, (1, 0, -1, -2)), "all"),
    "permute_dims mixing": (lambda f, x: f.permute_dims(x, (2, 1, 0, 3)), ""),
    "repeat batch": (lambda f, x: f.repeat(x, 2, axis=1), "all"),
    "repeat never": (lambda f, x: f.repeat(x, 0, axis=0), "all"),
    "repeat columns": (lambda f, x: f.repeat(x, 3, axis=-1), "Fill"),
    "repeat flat": (lambda f, x: f.repeat(x, 2), ""),
    "reshape same": (lambda f, x: f.reshape(x, (2, 3, 4, 4)), "all"),
    "reshape batch": (lambda f, x: f.reshape(x, (-1, 4, 4)), "all"),
    "reshape batch apart": (lambda f, x: f.reshape(x, (1, 3, 2, 4, 4)), "all"),
    "reshape core": (lambda f, x: f.reshape(x, (2, 3, 16)), "Fill"),
    "reshape core apart": (lambda f, x: f.reshape(x, (3, 2, 2, 8)), "Fill"),
    "reshape flat": (lambda f, x: f.reshape(x, (-1,)), ""),
    "roll batch": (lambda f, x: f.roll(x, 1, axis=0), "all"),
    "roll both batch": (lambda f, x: f.roll(x, (1, -2), axis=(0, 1)), "all"),
    "roll an axis twice": (lambda f, x: f.roll(x, 1, axis=(1, 1)), "all"),
    "roll columns": (lambda f, x: f.roll(x, (1, 2), axis=(0, -1)), "Fill"),
    "roll flat": (lambda f, x: f.roll(x, 5), ""),
    "tile batch": (lambda f, x: f.tile(x, (2, 1, 1, 1)), "all"),
    "tile more": (lambda f, x: f.tile(x, (2, 1, 3, 1, 1)), "all"),
    "tile columns": (lambda f, x: f.tile(x, (2,)), "Fill"),
    "unstack batch": (lambda f, x: f.unstack(x, axis=1), "all"),
    "unstack columns": (lambda f, x: f.unstack(x, axis=-1), "Fill"),
    "stack front": (lambda f, x: f.stack([x, x], axis=0), "all"),
    "stack behind the batch": (lambda f, x: f.stack((x, x, x), axis=2), "all"),
    "stack in the core": (lambda f, x: f.stack((x, x), axis=3), "Fill"),
    "stack last": (lambda f, x: f.stack((x, x), axis=-1), ""),
    "concat batch": (lambda f, x: f.concat([x, x], axis=1), "all"),
    "concat one": (lambda f, x: f.concat([x]), "all"),
    "concat rows": (lambda f, x: f.concat((x, x), axis=-2), "Fill"),
    "concat last": (lambda f, x: f.concat((x, x), axis=-1), ""),
    "concat flat": (lambda f, x: f.concat((x, x), axis=None), ""),
}
SINGLE = {
    "broadcast_to": (lambda f, x: f.broadcast_to(x, (2, 4, 4)), "all"),
    "expand_dims": (lambda f, x: f.expand_dims(x, axis=0), "all"),
    "flip": (lambda f, x: f.flip(x), "Fill"),
    "permute_dims": (lambda f, x: f.permute_dims(x, (1, 0)), "all"),
    "repeat": (lambda f, x: f.repeat(x, 2), "Fill"),
    "reshape": (lambda f, x: f.reshape(x, (-1,)), "Fill"),
    "reshape more": (lambda f, x: f.reshape(x, (1, 1, 4, 4)), "all"),
    "roll": (lambda f, x: f.roll(x, 3), "Fill"),
    "tile": (lambda f, x: f.tile(x, (3, 1, 1)), "all"),
    "stack": (lambda f, x: f.stack([x, x]), "all"),
}
CASES = [("batched", name) for name in BATCHED] + [("single", name) for name in SINGLE]


SPARSE = {
    "expand_dims in the core", "expand_dims last", "flip rows", "flip all", "flip", "repeat columns", "reshape", "reshape core",
    "reshape core apart", "reshape more", "roll columns", "tile columns",
}  # fmt: skip


def few_entries(kind, name) -> bool:
    """Whether a case that changes the core is done by the sparse form: of diagonal arrays, which store few entries."""
    if kind in ("Identity", "Diagonal"):
        return name in SPARSE or name in ("concat rows", "concat last")
    return kind in ("Identity + background", "Diagonal + background") and name in SPARSE


def is_turned(kind, name) -> bool:
    """Whether a case turns the matrices by half a turn, after which diagonals are diagonals again."""
    return name in ("flip", "flip all") and kind.removesuffix(" + background") in ("Identity", "Diagonal", "Banded")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("of, name", CASES)
def test_against_numpy(of, name, kind, rng):
    case, keeps = (BATCHED if of == "batched" else SINGLE)[name]
    x = MAKE[kind](rng, (2, 3) if of == "batched" else ())
    expected = case(np, dense(x))
    result = case(sa, x)
    same(result, expected)
    same(jax.jit(lambda x: case(sa, x))(x), expected)
    # A constant matrix joined along an axis of its core keeps what is behind; with nothing behind it is dense.
    keeps_here = kind == "Dense" or keeps == "all" or (keeps == "Fill" and kind == "Fill") or is_turned(kind, name)
    sparse = few_entries(kind, name)
    otherwise = ("Sparse + background" if "background" in kind else "Sparse") if sparse else "Dense"
    for r in result if isinstance(result, tuple) else (result,):
        assert kind_of(r) == (kind if keeps_here else otherwise)
    log = sa.explain(lambda x: case(sa, x), x)
    assert bool(log.densifications) == (not keeps_here and not sparse)


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_joining_two_structures(first, second, rng):
    x, y = MAKE[first](rng, (2, 3)), MAKE[second](rng, (1, 3))
    ranks = ["Fill", "Identity", "Diagonal", "Banded", "Dense"]
    names = [kind.split(" +")[0] for kind in (first, second)]
    widest = max(names, key=ranks.index)
    backgrounds = any("+" in kind for kind in (first, second)) or (names.count("Fill") == 1)
    expected = widest if widest in ("Fill", "Dense") or not backgrounds else f"{widest} + background"
    for result in (sa.concat((x, y)), jax.jit(lambda x, y: sa.concat((x, y)))(x, y)):
        same(result, np.concat((dense(x), dense(y))))
        assert kind_of(result) == expected
    x, y = MAKE[first](rng, (2, 3)), MAKE[second](rng, (2, 3))
    result = sa.stack((x, y), axis=1)
    same(result, np.stack((dense(x), dense(y)), axis=1))
    assert kind_of(result) == expected


def test_joining_promotes_the_dtypes():
    x, y = sa.Diagonal(jnp.asarray([1, 2], jnp.int32)), sa.Diagonal(jnp.asarray([1.5, 2.5], jnp.float32))
    expected = np.stack((dense(x).astype(np.float64), dense(y)))  # JAX: int32 and float32 give float32
    result = sa.stack((x, y))
    assert result.dtype == np.float32
    assert np.array_equal(dense(result), expected)
    assert kind_of(result) == "Diagonal"
    same(sa.concat((sa.asarray([1, 2]), sa.asarray([1.5]))), np.asarray([1.0, 2.0, 1.5]))


def test_joining_bands_and_constants_of_several_shapes(rng):
    x, y = banded(rng, (2,), 4, 6, (-1, 2)), banded(rng, (2,), 4, 6, (0, 2, 3))
    result = sa.concat((x, y, x))
    same(result, np.concat((dense(x), dense(y), dense(x))))
    assert result.offsets == (-1, 0, 2, 3)
    whole, rows = sa.Fill(2.0, (3, 4, 4)), sa.Fill(values(rng, 3), (4, 4))
    result = sa.concat((whole, rows))
    same(result, np.concat((dense(whole), dense(rows))))
    assert kind_of(result) == "Fill"
    result = sa.stack((whole, sa.Diagonal(values(rng, 3, 4))), axis=1)
    same(result, np.stack((dense(whole), dense(sa.unstack(result, axis=1)[1])), axis=1))
    assert kind_of(result) == "Diagonal + background"
    empty = sa.Banded.make((jnp.zeros((2,)), None), ((), (3, 3)))
    same(sa.stack((empty, empty), axis=1), np.zeros((2, 2, 3, 3)))


def test_broadcast_arrays(rng):
    x, y, z = MAKE["Banded"](rng, (2, 3)), MAKE["Fill"](rng, (3,)), MAKE["Dense"](rng, ())
    result = sa.broadcast_arrays(x, y, z)
    assert isinstance(result, tuple)
    assert [kind_of(r) for r in result] == ["Banded", "Fill", "Dense"]
    same(result, np.broadcast_arrays(dense(x), dense(y), dense(z)))
    assert sa.broadcast_arrays() == ()
    assert sa.broadcast_shapes() == ()
    assert sa.broadcast_shapes((3, 1, 0), (4, 1)) == np.broadcast_shapes((3, 1, 0), (4, 1))
    with pytest.raises(ValueError, match=r"broadcast_shapes: shapes must broadcast, got \(3,\), \(4,\)"):
        sa.broadcast_shapes((3,), (4,))
    with pytest.raises(ValueError, match="broadcast_arrays"):
        sa.broadcast_arrays(sa.ones(3), sa.ones(4))


@pytest.mark.parametrize("kind", KINDS)
def test_squeeze(kind, rng):
    x = MAKE[kind](rng, (1, 3, 1))
    for axis in (0, 2, (0, 2), (-3, 0)):
        result = sa.squeeze(x, axis)
        same(result, np.squeeze(dense(x), axis))
        assert kind_of(result) == kind


def test_squeeze_of_the_core(rng):
    column = banded(rng, (2,), 3, 1, (-1, 0))
    result = sa.squeeze(column, -1)
    same(result, np.squeeze(dense(column), -1))
    assert not sa.explain(sa.squeeze, column, -1).densifications  # a vector of that size is the result
    filled = sa.Fill(values(rng, 2), (1, 3))
    assert sa.squeeze(filled, 1).shape == (2, 3)
    assert kind_of(sa.squeeze(filled, 1)) == "Fill"
    assert kind_of(sa.squeeze(sa.Fill(2.0, (1, 1)), (0, 1))) == "Dense"


def test_repeat_by_an_array(rng):
    x = sa.asarray(values(rng, 3, 2))
    repeats = np.asarray([2, 0, 3])
    same(sa.repeat(x, sa.asarray(repeats), axis=0), np.repeat(dense(x), repeats, axis=0))
    same(sa.repeat(2.0, sa.asarray([3])), np.repeat(2.0, [3]))
    same(sa.repeat(np.asarray([1.0, 2.0]), repeats[:2]), np.repeat([1.0, 2.0], repeats[:2]))
    with pytest.raises(TypeError, match="repeat: x must be an array"):
        sa.repeat([1.0, 2.0], sa.asarray([1, 2]))
    same(sa.repeat(x, repeats, axis=-2), np.repeat(dense(x), repeats, axis=-2))
    same(sa.repeat(x, jnp.asarray([2]), axis=1), np.repeat(dense(x), [2], axis=1))
    same(sa.repeat(x, jnp.asarray(2)), np.repeat(dense(x), 2))
    same(sa.repeat(x, np.arange(6)), np.repeat(dense(x), np.arange(6)))
    d = sa.Diagonal(values(rng, 3, 4))
    assert kind_of(sa.repeat(d, repeats, axis=0)) == "Diagonal"
    same(sa.repeat(d, repeats, axis=0), np.repeat(dense(d), repeats, axis=0))
    with pytest.raises(ValueError, match="repeats must contain 1 or 3 nonnegative numbers"):
        sa.repeat(x, np.asarray([1, 2]), axis=0)
    with pytest.raises(TypeError, match="repeats must be an integer"):
        sa.repeat(x, np.asarray([1.0, 2.0, 3.0]), axis=0)
    with pytest.raises(jax.errors.ConcretizationTypeError, match="repeats must not be traced"):
        jax.jit(lambda r: sa.repeat(x, r, axis=0))(repeats)


def test_roll_compiles_once_for_all_shifts(rng):
    x = sa.asarray(values(rng, 7))
    same(sa.roll(x, 1), np.roll(dense(x), 1))
    before = sa.roll._jit._cache_size()
    for shift in (2, -3, 100):
        same(sa.roll(x, shift), np.roll(dense(x), shift))
    assert sa.roll._jit._cache_size() == before
    same(jax.jit(sa.roll)(x, 3), np.roll(dense(x), 3))
    same(sa.roll(sa.zeros((0, 3)), 1, axis=0), np.zeros((0, 3)))


def test_raw_arrays_and_scalars_are_taken():
    x = np.arange(6.0).reshape(2, 3)
    for raw in (x, jnp.asarray(x)):
        same(sa.flip(raw, axis=0), np.flip(x, 0))
        same(sa.stack([raw, sa.asarray(x)]), np.stack([x, x]))
        same(sa.reshape(raw, [3, np.int64(2)]), x.reshape(3, 2))
    same(sa.stack([1.0, 2.0]), np.asarray([1.0, 2.0]))
    same(sa.tile(x, (2, 2)), np.tile(x, (2, 2)))
    same(sa.broadcast_to(1.5, (2,)), np.broadcast_to(1.5, (2,)))


def test_a_kept_structure_costs_no_memory():
    n = 10**6
    x = sa.Banded([jnp.ones(n)], (0,), (n, n))
    result = sa.stack([sa.expand_dims(x, axis=0), sa.reshape(x, (1, n, n))])
    assert result.shape == (2, 1, n, n)
    assert result.nbytes == 2 * n * 8
    assert type(sa.reshape(x, (-1,))) is sa.Sparse
    with pytest.raises(sa.DensifyError, match="reshape would expand Toeplitz"):
        sa.reshape(sa.Toeplitz(jnp.ones(n)), (-1,))
    with pytest.raises(sa.DensifyError, match="concat would expand"):
        sa.concat([x, sa.ones((1, n))])


AXIS = np.exceptions.AxisError
BAD = [
    (AXIS, "expand_dims: axis 3 is out of bounds", lambda x: sa.expand_dims(x, axis=3)),
    (IndexError, "expand_dims: axis -4", lambda x: sa.expand_dims(x, axis=-4)),
    (ValueError, "expand_dims: axis must not name an axis twice", lambda x: sa.expand_dims(x, axis=(0, 0))),
    (TypeError, "flip: axis must be an integer, got 1.0", lambda x: sa.flip(x, axis=1.0)),
    (AXIS, "flip: axis 2", lambda x: sa.flip(x, axis=2)),
    (ValueError, "flip: axis must not name an axis twice", lambda x: sa.flip(x, axis=(0, -2))),
    (AXIS, "moveaxis: source: axis 2", lambda x: sa.moveaxis(x, 2, 0)),
    (AXIS, "moveaxis: destination: axis -3", lambda x: sa.moveaxis(x, 0, -3)),
    (ValueError, "moveaxis: source and destination", lambda x: sa.moveaxis(x, (0, 1), 0)),
    (ValueError, "moveaxis: source must not name an axis twice", lambda x: sa.moveaxis(x, (0, 0), (0, 1))),
    (ValueError, "permute_dims: axes must be a permutation of the 2 axes", lambda x: sa.permute_dims(x, (0,))),
    (ValueError, "permute_dims: axes must not name an axis twice", lambda x: sa.permute_dims(x, (0, 0))),
    (AXIS, "permute_dims: axes: axis 2", lambda x: sa.permute_dims(x, (0, 2))),
    (AXIS, "repeat: axis 2", lambda x: sa.repeat(x, 2, axis=2)),
    (ValueError, "repeat: repeats must contain integers of at least 0", lambda x: sa.repeat(x, -1)),
    (
        ValueError,
        r"reshape: shape must have the number of elements of x, 9 for \(3, 3\), got",
        lambda x: sa.reshape(x, (2, 4)),
    ),
    (ValueError, "reshape: shape must have the number of elements", lambda x: sa.reshape(x, (2, -1))),
    (ValueError, "reshape: shape must have the number of elements", lambda x: sa.reshape(x, (0, -1))),
    (ValueError, "only one length in shape may be -1", lambda x: sa.reshape(x, (-1, -1))),
    (ValueError, "reshape: shape must contain integers of at least -1", lambda x: sa.reshape(x, (-2, 2))),
    (TypeError, "reshape: shape must be a tuple of integers", lambda x: sa.reshape(x, (3.0, 3))),
    (AXIS, "roll: axis 2", lambda x: sa.roll(x, 1, axis=2)),
    (ValueError, "roll: shift and axis must have the same length", lambda x: sa.roll(x, (1, 2, 3), axis=(0, 1))),
    (TypeError, "roll: shift must be an integer", lambda x: sa.roll(x, 1.5)),
    (ValueError, "squeeze: axis 0 must have length 1, got 3", lambda x: sa.squeeze(x, 0)),
    (AXIS, "squeeze: axis 2", lambda x: sa.squeeze(x, 2)),
    (AXIS, "stack: axis 3", lambda x: sa.stack([x], axis=3)),
    (ValueError, "stack: arrays must contain at least one array", lambda x: sa.stack([])),
    (ValueError, r"arrays\[1\], \(1,\)", lambda x: sa.stack([x, sa.ones(1)])),
    (TypeError, "stack: arrays must be a tuple or list", lambda x: sa.stack(x)),
    (TypeError, r"concat: arrays\[1\] must be an array", lambda x: sa.concat([x, "x"])),
    (AXIS, "concat: axis 2", lambda x: sa.concat([x], axis=2)),
    (
        ValueError,
        "concat: arrays must have the same shape except along axis 0",
        lambda x: sa.concat([x, sa.ones((1, 2))]),
    ),
    (ValueError, "concat: arrays must have at least one dimension", lambda x: sa.concat([sa.asarray(1.0)])),
    (ValueError, "tile: repetitions must contain integers of at least 0", lambda x: sa.tile(x, (-1,))),
    (AXIS, "unstack: axis -3", lambda x: sa.unstack(x, axis=-3)),
    (ValueError, r"broadcast_to: x of shape \(3, 3\)", lambda x: sa.broadcast_to(x, (3, 2))),
    (ValueError, "broadcast_to", lambda x: sa.broadcast_to(x, (3,))),
]


@pytest.mark.parametrize("kind", ["Dense", "Diagonal"])
@pytest.mark.parametrize("error, message, call", BAD)
def test_errors(error, message, call, kind):
    x = sa.asarray(np.arange(9.0).reshape(3, 3)) if kind == "Dense" else sa.Diagonal([1.0, 2.0, 3.0])
    with pytest.raises(error, match=message):
        call(x)


def test_copy():
    x = sa.Diagonal([1.0, 2.0])
    assert kind_of(sa.reshape(x, (1, 2, 2), copy=False)) == "Diagonal"
    with pytest.raises(ValueError, match="copy must not be False, because a Diagonal"):
        sa.reshape(x, (4,), copy=False)
    same(sa.reshape(x, (4,), copy=True), np.asarray([1.0, 0.0, 0.0, 2.0]))
