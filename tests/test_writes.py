"""Writes into arrays of every structure accept and reject the same values as NumPy."""

import jax
import numpy as np
import pytest
from support import as_jax

import structarrays as sa
from structarrays.testing import STRUCTURES, sample

EYE = np.eye(4, dtype=bool)
KEYS = {
    "element": (1, 1),
    "row": 1,
    "column": (slice(None), 2),
    "block": (slice(1, 3), slice(1, 3)),
    "pairs": (np.arange(4), np.arange(4)),
    "mask": EYE,
    "rows": np.array([2, 0]),
    "new axis ahead": (None, 1),
    "new axis between": (slice(None), None, 1),
    "new axis, all": (slice(None), None),
    "new axis behind": (1, 1, None),
    "new axis after pairs": (np.arange(4), np.arange(4), None),
    "new axis in pairs": (np.arange(4), None, np.arange(4)),
}
VALUES = [
    (),
    (1,),
    (2,),
    (3,),
    (4,),
    (1, 4),
    (4, 1),
    (2, 4),
    (4, 4),
    (1, 1, 4),
    (4, 1, 4),
    (2, 2),
    (1, 1, 1),
    (4, 1, 1),
]


def written(x, key, value):
    try:
        x[key] = value
    except (TypeError, ValueError, IndexError) as error:
        return type(error)
    return np.asarray(x)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("key", KEYS)
def test_values_broadcast_into_the_selection(structure, key):
    x = sample(structure, (4, 4), seed=3)
    if x is None:  # no real one
        x = sample(structure, (4, 4), dtype="complex128", seed=3)
    start = np.array(x.to_jax())
    for shape in VALUES:
        if key == "element" and shape and np.prod(shape) == 1:
            continue  # NumPy accepts no array in place of a number, although it broadcasts
        if key == "mask" and len(shape) > 1:
            continue  # NumPy accepts at most one dimension for a mask
        value = np.random.default_rng(0).normal(size=shape)
        want = written(start.copy(), KEYS[key], value)
        got = written(sa.asarray(x, copy=True), KEYS[key], value)
        if isinstance(want, type):
            # NumPy raises another error for a complex element than for a real one; ValueError is accepted for both.
            complex_element = key == "element" and x.dtype.kind == "c"
            assert got is want or (complex_element and got is ValueError), (shape, got, want)
        else:
            assert not isinstance(got, type), (shape, got)
            np.testing.assert_array_equal(got, want, err_msg=str(shape))


@pytest.mark.parametrize("structure", ["Sparse", "Banded", "BlockDiagonal", "Permutation"])
def test_the_error_names_the_shapes(structure):
    x = sample(structure, (4, 4), seed=3)
    with pytest.raises(ValueError, match=r"value of shape \(3,\) cannot be broadcast to the shape of x\[key\], \(4,\)"):
        x[EYE] = np.ones(3)
    with pytest.raises(IndexError, match="cannot be broadcast together"):
        x[np.arange(4), np.arange(3)] = 1.0


def test_a_compiled_write_with_a_new_axis():
    x = sample("Sparse", (3, 4), seed=1)

    @jax.jit
    def write(x, value):
        x = sa.asarray(x, copy=True)
        x[:, None, 1] = value
        return x

    want = np.array(x.to_jax())
    want[:, None, 1] = np.arange(3.0)[:, None]
    np.testing.assert_array_equal(as_jax(write(x, np.arange(3.0)[:, None])), want)


EMPTY = {
    "Diagonal": lambda batch: sa.Diagonal(np.zeros((*batch, 0))),
    "Banded": lambda batch: sa.Banded([np.zeros((*batch, 0))], (0,), (0, 0)),
    "Triangular": lambda batch: sa.Triangular(np.zeros((*batch, 0, 0))),
    "upper": lambda batch: sa.Triangular(np.zeros((*batch, 0, 0)), lower=False),
    "unit": lambda batch: sa.Triangular(np.zeros((*batch, 0, 0)), unit_diagonal=True),
    "with background": lambda batch: sa.Triangular(np.zeros((*batch, 0, 0))) + 1,
    "Symmetric": lambda batch: sa.Symmetric(np.zeros((*batch, 0, 0))),
    "BlockDiagonal": lambda batch: sa.BlockDiagonal(np.zeros((*batch, 0, 2, 3))),
    "BlockBanded": lambda batch: sa.BlockBanded([np.zeros((*batch, 0, 2, 2))], (0,), (0, 0)),
    "Fill": lambda batch: sa.Fill(np.zeros(batch), (0, 0)),
    "LowRank": lambda batch: sa.LowRank(np.zeros((*batch, 0, 2)), np.zeros((*batch, 0, 2))),
    "Sparse": lambda batch: sa.Sparse(np.zeros((*batch, 0)), (np.zeros(0, int), np.zeros(0, int)), (0, 0)),
}


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize(
    "key",
    [0, np.array([0]), (slice(None), 1), (slice(None), np.array([-1, 0])), (..., slice(None)), slice(None)],
    ids=str,
)
def test_stacks_of_empty_matrices(name, key):
    """A key of the stack is valid although no matrix has an element."""
    x = EMPTY[name]((2, 3))
    x[key] = 2.0
    assert x.shape == (2, 3, 0, 0) and x.dtype == np.float64
    constant = sa.Fill(np.ones((2, 3)), (0, 0))
    assert sa.stack([x, constant]).shape == sa.stack([constant, x]).shape == (2, 2, 3, 0, 0)
    assert (x * np.ones((2, 3, 0, 0))).shape == (sa.ones((0, 0)) - x).shape == (2, 3, 0, 0)
    assert sa.maximum(x, constant).shape == sa.where(constant > 0, x, constant).shape == (2, 3, 0, 0)
