"""Searching, sorting and sets for every structure, against NumPy on the dense values, and the structures that come out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax, dense

import structarrays as sa

NUMBERS = np.asarray([-2.0, -1.0, 0.0, 1.0, 2.0, 3.0])


def values(rng, *shape):
    """Few different numbers, so that there are ties and stored zeros."""
    return jnp.asarray(rng.choice(NUMBERS, shape))


def banded(rng, batch, offsets=(-2, 0, 1), n=4):
    return sa.Banded([values(rng, *batch, n - abs(k)) for k in offsets], offsets, (n, n))


def backed(rng, x):
    background = values(rng, *x.batch_shape)
    return x.rebuild(x.entries, background)


MAKE = {
    "Dense": lambda rng, batch: sa.asarray(values(rng, *batch, 4, 4)),
    "Fill": lambda rng, batch: sa.Fill(values(rng, *batch), (4, 4)),
    "Identity": lambda rng, batch: sa.Identity(4, values(rng, *batch)),
    "Diagonal": lambda rng, batch: sa.Diagonal(values(rng, *batch, 4)),
    "Banded": lambda rng, batch: banded(rng, batch),
    "Identity + background": lambda rng, batch: backed(rng, sa.Identity(4, values(rng, *batch))),
    "Diagonal + background": lambda rng, batch: backed(rng, sa.Diagonal(values(rng, *batch, 4))),
    "Banded + background": lambda rng, batch: backed(rng, banded(rng, batch)),
    "Banded + background + no diagonal": lambda rng, batch: sa.Banded.make(
        (jnp.zeros(batch), values(rng, *batch)), ((), (4, 4))
    ),
}
KINDS = tuple(MAKE)


def kind_of(x) -> str:
    name = type(x).__name__
    return name if x.background is None else f"{name} + background"


def same(result, expected):
    expected = np.asarray(expected)
    assert result.shape == expected.shape
    assert result.dtype == expected.dtype
    assert np.array_equal(dense(result), expected, equal_nan=expected.dtype.kind in "fc")


def without_note(kind):
    return kind.replace(" + no diagonal", "")


def with_leaf(kind):
    """The kind of a result with a background that is a number."""
    kind = without_note(kind)
    return kind if kind in ("Dense", "Fill") or "background" in kind else f"{kind} + background"


def vector_or_fill(kind):
    return "Fill" if kind == "Fill" else "Dense"


GRID = np.asarray([-1.0, 0.0, 2.0])
# A case: what is computed, the same in NumPy, and the kind of the result for each kind of argument.
CASES = {
    "argmax batch": (lambda f, x: f.argmax(x, axis=0), without_note),
    "argmax batch, kept": (lambda f, x: f.argmax(x, axis=-3, keepdims=True), without_note),
    "argmax columns": (lambda f, x: f.argmax(x, axis=-1), vector_or_fill),
    "argmax rows, kept": (lambda f, x: f.argmax(x, axis=2, keepdims=True), vector_or_fill),
    "argmax": (lambda f, x: f.argmax(x), lambda kind: "Dense"),
    "argmin batch": (lambda f, x: f.argmin(x, axis=1), without_note),
    "argmin columns": (lambda f, x: f.argmin(x, axis=-1), vector_or_fill),
    "argmin": (lambda f, x: f.argmin(x), lambda kind: "Dense"),
    "count_nonzero batch": (lambda f, x: f.count_nonzero(x, axis=0), without_note),
    "count_nonzero columns": (lambda f, x: f.count_nonzero(x, axis=-1), vector_or_fill),
    "count_nonzero rows, kept": (lambda f, x: f.count_nonzero(x, axis=2, keepdims=True), vector_or_fill),
    "count_nonzero both": (lambda f, x: f.count_nonzero(x, axis=(0, 3)), vector_or_fill),
    "searchsorted": (lambda f, x: f.searchsorted(GRID, x), with_leaf),
    "searchsorted right": (lambda f, x: f.searchsorted(GRID, x, side="right"), with_leaf),
    "isin": (lambda f, x: _isin(f, x, GRID), with_leaf),
    "isin inverted": (lambda f, x: _isin(f, x, GRID, invert=True), with_leaf),
    "sort batch": (lambda f, x: f.sort(x, axis=0), without_note),
    "sort columns": (lambda f, x: f.sort(x), vector_or_fill),
    "argsort batch": (lambda f, x: f.argsort(x, axis=0, stable=True), vector_or_fill),
    "argsort columns": (lambda f, x: f.argsort(x, stable=True), lambda kind: "Dense"),
}
DENSIFIES = {
    "argmax columns",
    "argmax rows, kept",
    "argmin columns",
    "sort columns",
    "argsort batch",
    "argsort columns",
}
SEARCHED = {"argmax columns", "argmax rows, kept", "argmin columns"}
"""Cases that search the stored entries of arrays with few of them."""
FEW_ENTRIES = {
    "Identity",
    "Diagonal",
    "Identity + background",
    "Diagonal + background",
    "Banded + background + no diagonal",
}


def _isin(f, x, values, **options):
    return f.isin(x, values, **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_against_numpy(name, kind, rng):
    case, expected_kind = CASES[name]
    x = MAKE[kind](rng, (2, 3))
    expected = case(np, dense(x))
    for result in (case(sa, x), jax.jit(lambda x: case(sa, x))(x)):
        same(result, expected)
        assert kind_of(result) == expected_kind(kind)
    log = sa.explain(lambda x: case(sa, x), x)
    structured = kind != "Dense" and not (kind == "Fill" and name != "argsort columns")
    structured = structured and not (name in SEARCHED and kind in FEW_ENTRIES)
    if name in DENSIFIES or (name in ("argmax", "argmin") and kind != "Dense"):
        assert bool(log.densifications) == (structured or name in ("argmax", "argmin"))
    else:
        assert log.densifications == []


@pytest.mark.parametrize("kind", KINDS)
def test_count_of_all(kind, rng):
    x = MAKE[kind](rng, (2, 3))
    expected = np.count_nonzero(dense(x))
    for result in (sa.count_nonzero(x), jax.jit(sa.count_nonzero)(x)):
        assert (result.shape, result.dtype, int(result)) == ((), np.int64, expected)
    assert sa.explain(sa.count_nonzero, x).densifications == []


def test_nonzero_elements_of_other_dtypes():
    for data in ([1j, 0, 2], [True, False], [3, 0], [np.nan, 0.0, -0.0]):
        x = np.asarray(data)
        assert int(sa.count_nonzero(sa.asarray(x))) == np.count_nonzero(x)
        assert int(sa.count_nonzero(sa.Diagonal(x))) == np.count_nonzero(x)


def test_nan_is_found(rng):
    data = rng.standard_normal(50_000)
    data[31_415] = np.nan
    assert int(sa.argmax(data)) == int(sa.argmin(data)) == 31_415
    same(sa.sort(data), np.sort(data))
    x = np.asarray([3.0, np.nan, -1.0, np.nan])
    same(sa.sort(x), np.sort(x))
    same(sa.searchsorted(np.sort(x), x), np.searchsorted(np.sort(x), x))
    same(sa.searchsorted(np.sort(x), x, side="right"), np.searchsorted(np.sort(x), x, side="right"))


def test_sorting_is_stable_in_both_directions():
    x = np.asarray([2, 1, 2, 0, 1, 2])
    same(sa.argsort(x), np.argsort(x, stable=True))
    same(sa.argsort(x, descending=True), np.argsort(-x, stable=True))
    same(sa.sort(x, descending=True), np.sort(x)[::-1])
    z = np.asarray([2 + 1j, 1 + 5j, 2 - 1j, 1 + 0j])
    same(sa.sort(z), np.sort(z))


@pytest.mark.parametrize("kind", KINDS)
def test_nonzero(kind, rng):
    x = MAKE[kind](rng, (2,))
    result = sa.nonzero(x)
    assert isinstance(result, tuple)
    for r, e in zip(result, np.nonzero(dense(x)), strict=True):
        same(r, e)
    with pytest.raises(jax.errors.ConcretizationTypeError, match="nonzero: the shape of the result depends"):
        jax.jit(sa.nonzero)(x)


@pytest.mark.parametrize("convert", [np.asarray, jax.numpy.asarray])
def test_nonzero_of_other_arrays(convert):
    x = np.asarray([[0, 5, 0], [7, 0, 1]])
    for r, e in zip(sa.nonzero(convert(x)), np.nonzero(x), strict=True):
        same(r, e)


@pytest.mark.parametrize("kind", KINDS)
def test_unique(kind, rng):
    x = MAKE[kind](rng, (2,))
    expected = np.unique(dense(x), return_index=True, return_inverse=True, return_counts=True)
    everything = sa.unique_all(x)
    for name, e in zip(("values", "indices", "inverse_indices", "counts"), expected, strict=True):
        same(getattr(everything, name), e)
    counted = sa.unique_counts(x)
    same(counted.values, expected[0])
    same(counted.counts, expected[3])
    inverse = sa.unique_inverse(x)
    same(inverse.values, expected[0])
    same(inverse.inverse_indices, expected[2])
    same(sa.unique_values(x), expected[0])
    for function in (sa.unique_all, sa.unique_counts, sa.unique_inverse, sa.unique_values):
        with pytest.raises(jax.errors.ConcretizationTypeError, match=f"{function.__name__}: the shape"):
            jax.jit(function)(x)


def test_unique_takes_every_nan_for_itself():
    x = np.asarray([np.nan, 0.0, -0.0, np.nan])
    result = sa.unique_counts(x)
    assert np.array_equal(dense(result.counts), [2, 1, 1])
    same(result.values, np.asarray([0.0, np.nan, np.nan]))


def test_what_depends_on_values_densifies_under_the_policy():
    x = sa.Diagonal(jnp.ones(5))
    for function in (sa.unique_values, sa.unique_all):
        with sa.densify("error"), pytest.raises(sa.DensifyError, match=f"{function.__name__} would expand Diagonal"):
            function(x)
        with sa.record() as log:
            function(x)
        assert len(log.densifications) == 1


def test_sorter():
    x, new = np.asarray([3.0, 1.0, 2.0]), np.asarray([0.5, 2.0, 9.0])
    order = np.argsort(x)
    for sorter in (order, sa.asarray(order), order.astype(np.uint8)):
        same(sa.searchsorted(x, new, sorter=sorter), np.searchsorted(x, new, sorter=order))
    same(sa.searchsorted(sa.asarray([1, 2, 3]), 2.5), np.asarray(2))
    same(sa.searchsorted(sa.asarray([1, 2, 3]), 2), np.asarray(1))
    same(sa.isin(2, sa.asarray([1, 2])), np.asarray(True))
    same(sa.isin(sa.asarray([1, 2]), 2), np.asarray([False, True]))


# ---- where -----------------------------------------------------------------------------------------------------------

OPERANDS = {
    "scalar": lambda rng: sa.asarray(values(rng, 2, 3, 1, 1)),
    "row": lambda rng: sa.asarray(values(rng, 1, 4)),
    "vector": lambda rng: sa.asarray(values(rng, 4)),
    "number": lambda rng: 2.5,
    **{kind: (lambda rng, make=make: make(rng, (2, 3))) for kind, make in MAKE.items()},
}
CONDITIONS = {
    "scalar": lambda rng: sa.asarray(rng.random((2, 3, 1, 1)) < 0.5),
    "row": lambda rng: sa.asarray(rng.random((1, 4)) < 0.5),
    "Dense": lambda rng: sa.asarray(rng.random((2, 3, 4, 4)) < 0.5),
    "Fill": lambda rng: sa.Fill(rng.random((2, 3)) < 0.5, (4, 4)),
    "Identity": lambda rng: sa.Identity(4, rng.random((2, 3)) < 0.5),
    "Diagonal": lambda rng: sa.Diagonal(rng.random((2, 3, 4)) < 0.5),
    "Banded": lambda rng: sa.Banded([rng.random((2, 3, 4 - abs(k))) < 0.5 for k in (-1, 0, 1)], (-1, 0, 1), (4, 4)),
    "Banded + background": lambda rng: _true_outside(rng),
}
# The rows of the table in tests/data/expected_structures.md, 2.3: condition, first, second, result.
WHERE = """
scalar Fill Fill: Fill
scalar Fill Diagonal: Diagonal + background
scalar Identity Identity: Identity
scalar Identity Diagonal: Diagonal
scalar Diagonal Banded: Banded
scalar Diagonal scalar: Diagonal + background
scalar Diagonal number: Diagonal + background
scalar scalar Banded: Banded + background
scalar Diagonal Dense: Dense
scalar Diagonal row: Dense
row Diagonal Diagonal: Diagonal
row Diagonal scalar: Dense
Dense Fill Fill: Dense
Dense Identity Identity: Diagonal
Dense Diagonal Diagonal: Diagonal
Dense Diagonal Banded: Banded
Dense Diagonal scalar: Dense
Dense Diagonal Fill: Dense
Dense Diagonal Dense: Dense
Dense Dense Dense: Dense
Dense Dense number: Dense
Fill Fill Fill: Fill
Fill scalar scalar: Fill
Fill Diagonal Banded: Banded
Identity Identity Identity: Identity
Identity Diagonal Identity: Diagonal
Identity Dense Identity: Diagonal
Identity scalar Identity: Identity
Identity scalar scalar: Identity + background
Identity number number: Identity + background
Diagonal scalar scalar: Diagonal + background
Diagonal scalar Diagonal: Diagonal
Diagonal scalar Banded: Banded
Diagonal scalar Fill: Diagonal + background
Diagonal scalar Banded+background: Banded + background
Diagonal Dense Diagonal: Diagonal
Diagonal Dense Banded: Banded
Diagonal Dense Dense: Dense
Diagonal Dense scalar: Diagonal + background
Diagonal row Diagonal: Diagonal
Diagonal vector number: Diagonal + background
Diagonal Diagonal row: Dense
Banded Diagonal Diagonal: Diagonal
Banded Dense Diagonal: Banded
Diagonal Banded Diagonal: Diagonal
Banded scalar scalar: Banded + background
Banded Banded Banded: Banded
Banded Dense scalar: Banded + background
Banded Diagonal Identity+background: Banded + background
Banded+background Diagonal Diagonal: Diagonal
Banded+background Diagonal scalar: Banded + background
Banded+background Dense Diagonal: Dense
"""
ROWS = [line for line in WHERE.strip().splitlines()]


def _true_outside(rng):
    x = CONDITIONS["Banded"](rng)
    return x.rebuild(x.entries, jnp.asarray(rng.random((2, 3)) < 0.5))


@pytest.mark.parametrize("row", ROWS)
def test_where(row, rng):
    names, kind = row.split(": ")
    names = [name.replace("+", " + ") for name in names.split()]
    condition, x1, x2 = CONDITIONS[names[0]](rng), OPERANDS[names[1]](rng), OPERANDS[names[2]](rng)
    expected = np.where(dense(condition), *(x if isinstance(x, float) else dense(x) for x in (x1, x2)))
    for result in (sa.where(condition, x1, x2), jax.jit(sa.where)(condition, x1, x2)):
        assert result.dtype == np.float64
        # Two constants give one value for all of the core.
        same(result, np.broadcast_to(expected, result.shape))
        assert result.shape == np.broadcast_shapes(*(np.shape(x) for x in (condition, x1, x2)))
        assert kind_of(result) == kind


def test_where_broadcasts_batches(rng):
    condition, x1, x2 = sa.Diagonal(rng.random((3, 4)) < 0.5), banded(rng, (2, 1)), sa.Identity(4, values(rng, 5, 1, 1))
    result = sa.where(condition, x1, x2)
    same(result, np.where(dense(condition), dense(x1), dense(x2)))
    assert (result.shape, kind_of(result)) == ((5, 2, 3, 4, 4), "Diagonal")
    row = sa.Banded([values(rng, 1)], (1,), (1, 4))
    same(sa.where(condition, row, 0.0), np.where(dense(condition), dense(row), 0.0))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.endswith("background")])
def test_where_has_the_background_of_the_second_choice(kind, rng):
    """Off the pattern of a structured condition, whatever the background of the first one is."""
    condition, x2 = CONDITIONS["Diagonal"](rng), MAKE[kind](rng, (2, 3))
    for x1 in (MAKE["Banded"](rng, (2, 3)), MAKE["Diagonal + background"](rng, (2, 3)), sa.Fill(2.5, (4, 4))):
        same(sa.where(condition, x1, x2), np.where(dense(condition), dense(x1), dense(x2)))


def test_where_promotes_the_choices_alone():
    yes = sa.asarray([True, False])
    small = sa.asarray(np.asarray([1, 2], np.int8))
    for x1, x2, dtype in (
        (small, 1, np.int8),
        (1, small, np.int8),
        (small, 1.5, np.float64),
        (small, small, np.int8),
        (1.5, sa.asarray(np.ones(2, np.float32)), np.float32),
        (1j, sa.asarray(np.ones(2, np.float32)), np.complex64),
        (True, False, np.bool),
    ):
        result = sa.where(yes, x1, x2)
        assert result.dtype == dtype
        assert np.array_equal(dense(result), np.where([True, False], *(np.asarray(x) for x in (x1, x2))))
    for x1, x2 in ((300, small), (small, 300), (-129, small)):
        with pytest.raises(OverflowError, match="where: the Python integer -?[0-9]+ does not fit into int8"):
            sa.where(yes, x1, x2)


def test_where_is_differentiable():
    condition = sa.asarray([True, False, True])

    def f(x):
        return as_jax(sa.sum(sa.where(condition, x * x, 3.0 * x)))

    assert np.array_equal(jax.grad(f)(jnp.asarray([1.0, 2.0, 3.0])), [2.0, 3.0, 6.0])


# ---- errors ----------------------------------------------------------------------------------------------------------

AXIS = np.exceptions.AxisError
BAD = [
    (AXIS, "argmax: axis 2", lambda x: sa.argmax(x, axis=2)),
    (AXIS, "argmin: axis -3", lambda x: sa.argmin(x, axis=-3)),
    (TypeError, "argmax: axis must be an integer", lambda x: sa.argmax(x, axis=1.5)),
    (TypeError, "argmin: x must have a real dtype", lambda x: sa.argmin(x * 1j)),
    (AXIS, "count_nonzero|sum", lambda x: sa.count_nonzero(x, axis=2)),
    (AXIS, "sort: axis 2", lambda x: sa.sort(x, axis=2)),
    (AXIS, "argsort: axis 2", lambda x: sa.argsort(x, axis=2)),
    (ValueError, "searchsorted: x1 must have one dimension", lambda x: sa.searchsorted(x, x)),
    (ValueError, 'searchsorted: side must be "left" or "right"', lambda x: sa.searchsorted(GRID, x, side="up")),
    (ValueError, "searchsorted: sorter must be integers", lambda x: sa.searchsorted(GRID, x, sorter=np.arange(2))),
    (TypeError, "searchsorted: x2 must have a real dtype", lambda x: sa.searchsorted(GRID, x * 1j)),
    (TypeError, "where: condition must be boolean, got float64", lambda x: sa.where(x, x, x)),
    (TypeError, "where: x2 must be an array", lambda x: sa.where(x > 0, x, "no")),
    (ValueError, "where: shapes", lambda x: sa.where(x > 0, x, sa.ones(7))),
]


@pytest.mark.parametrize("kind", ["Dense", "Diagonal"])
@pytest.mark.parametrize("error, message, call", BAD)
def test_errors(error, message, call, kind):
    x = sa.asarray(np.eye(3)) if kind == "Dense" else sa.Diagonal([1.0, 2.0, 3.0])
    with pytest.raises(error, match=message):
        call(x)


def test_errors_for_nothing_to_search():
    for function in (sa.argmax, sa.argmin):
        with pytest.raises(ValueError, match="no elements to search along axis 0"):
            function(sa.zeros((0, 3)), axis=0)
        with pytest.raises(ValueError, match="no elements to search"):
            function(sa.zeros(0))
        assert function(sa.zeros((0, 3)), axis=1).shape == (0,)
    with pytest.raises(ValueError, match="nonzero: x must have at least one dimension"):
        sa.nonzero(sa.asarray(1.0))
