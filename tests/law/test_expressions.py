"""Random expressions of arrays of all structures: value, shape and dtype are NumPy's, and what comes out is no larger than dense.

100 of them by default, 300 with ``--parameters each``; ``--expressions 10000`` walks more, others each time.
"""

import jax
import numpy as np
import pytest

import structarrays as sa
from structarrays._core.families.factored import Factored, pays
from structarrays.testing import STRUCTURES, sample

DEPTH = 5
SHAPES = ((6, 6), (6, 4), (4, 6))
DTYPES = ("float64", "complex128", "float32", "int64")


class Value:
    """An array, what NumPy has in its place, and a bound of the magnitudes that rounding is relative to."""

    def __init__(self, array, dense, bound):
        self.array, self.dense, self.bound = array, dense, bound


def leaf(generator, core, dtype, batch):
    while True:
        structure = STRUCTURES[generator.integers(len(STRUCTURES))]
        x = sample(structure, core, batch=batch, dtype=dtype, seed=int(generator.integers(2**31)))
        if x is not None:
            dense = np.array(x.to_jax())
            return Value(x, dense, np.abs(dense) + _scale(x))


def _scale(x) -> float:
    """The largest magnitude in the parts: a factored array of small values may be a difference of large ones, and so may be what
    becomes of a small entry compared with a large background, which is the sum of a constant and what is left of the entries.
    """
    if not isinstance(x, Factored):
        return 0.0 if x.background is None else float(np.max(np.abs(x.background)))
    leaves = [np.abs(np.asarray(leaf)).max(initial=0) for leaf in jax.tree.leaves(x) if leaf.dtype.kind in "fc"]
    return float(np.prod([1 + m for m in leaves]))


def expression(generator, core, dtype, batch, depth):
    """A random expression of a shape, evaluated step by step."""
    if depth == 0 or generator.random() < 0.15:
        return leaf(generator, core, dtype, batch)
    kind = generator.choice(list(STEPS))
    return STEPS[kind](generator, core, dtype, batch, depth - 1)


def _pair(generator, core, dtype, batch, depth):
    return (expression(generator, core, dtype, batch, depth) for _ in range(2))


def _sum(*state):
    x, y = _pair(*state)
    return Value(x.array + y.array, x.dense + y.dense, x.bound + y.bound)


def _difference(*state):
    x, y = _pair(*state)
    return Value(x.array - y.array, x.dense - y.dense, x.bound + y.bound)


def _elementwise_product(*state):
    x, y = _pair(*state)
    return Value(x.array * y.array, x.dense * y.dense, x.bound * y.bound)


def _product(generator, core, dtype, batch, depth):
    (m, n), k = core, int(generator.choice([4, 6]))
    x = expression(generator, (m, k), dtype, batch, depth)
    y = expression(generator, (k, n), dtype, batch, depth)
    return Value(x.array @ y.array, x.dense @ y.dense, x.bound @ y.bound)


def _transpose(generator, core, dtype, batch, depth):
    x = expression(generator, core[::-1], dtype, batch, depth)
    return Value(x.array.mT, np.swapaxes(x.dense, -1, -2), np.swapaxes(x.bound, -1, -2))


def _number(generator, core, dtype, batch, depth):
    x, c = expression(generator, core, dtype, batch, depth), int(generator.integers(-2, 3))
    return Value(c * x.array, c * x.dense, abs(c) * x.bound)


def _rows(generator, core, dtype, batch, depth):
    x = expression(generator, core, dtype, batch, depth)
    r = generator.integers(-2, 3, core[1 if generator.random() < 0.5 else 0]).astype(dtype)
    r = r if len(r) == core[1] and generator.random() < 0.5 else (r[:, None] if len(r) == core[0] else r)
    return Value(x.array * r, x.dense * r, x.bound * np.abs(r))


def _centred(generator, core, dtype, batch, depth):
    x = expression(generator, core, dtype, batch, depth)
    axis = int(generator.choice([-1, -2]))
    total = sa.sum(x.array, axis=axis, keepdims=True, dtype=x.array.dtype)
    return Value(
        x.array - total,
        x.dense - x.dense.sum(axis, keepdims=True, dtype=x.dense.dtype),
        x.bound + x.bound.sum(axis, keepdims=True),
    )


def _square(*state):
    x = expression(*state)
    return Value(x.array**2, x.dense**2, x.bound**2)


def _conjugate(*state):
    x = expression(*state)
    return Value(sa.conj(x.array), np.conj(x.dense), x.bound)


STEPS = {
    "sum": _sum,
    "difference": _difference,
    "elementwise product": _elementwise_product,
    "product": _product,
    "transpose": _transpose,
    "number": _number,
    "rows": _rows,
    "centred": _centred,
    "square": _square,
    "conjugate": _conjugate,
}


def check(seed):
    generator = np.random.default_rng(seed)
    dtype = DTYPES[generator.integers(len(DTYPES))]
    core = SHAPES[generator.integers(len(SHAPES))]
    batch = ((), (), (2,))[generator.integers(3)]
    with np.errstate(all="ignore"):
        x = expression(generator, core, dtype, batch, int(generator.integers(1, DEPTH + 1)))
    assert x.array.shape == x.dense.shape and x.array.dtype == x.dense.dtype
    got = np.asarray(x.array.to_jax())
    if got.dtype.kind in "iu":
        np.testing.assert_array_equal(got, x.dense)
    else:
        error = np.abs(got - x.dense)
        assert (error <= 1e3 * np.finfo(dtype).eps * (np.abs(x.bound) + 1)).all(), (repr(x.array), error.max())
    if isinstance(x.array, Factored):
        assert pays(x.array), repr(x.array)


@pytest.mark.each_parameter
@pytest.mark.parametrize("group", range(10))
def test_random_expressions(group, request):
    given = request.config.getoption("--expressions", default=None)
    count = given or (100 if request.config.getoption("--parameters", default="each") == "part" else 300)
    first = 0 if given is None else int(np.random.default_rng().integers(2**31))
    for i in range(group, count, 10):
        try:
            check(first + i)
        except Exception as error:
            raise AssertionError(f"expression {first + i}: {type(error).__name__}: {error}") from error
        if i % 100 == group:
            jax.clear_caches()
