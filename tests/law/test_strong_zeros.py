"""The one exception to the equivalence tests: a structural zero absorbs NaN and infinity in a few functions (docs/design/semantics.md).

Three oracles, all of them NumPy's: the dense result (without strong zeros, and for all other functions with them), the dense result with
zeros where the structure has none stored (`multiply`, `divide`, `pow`), and the sum of the products of stored entries.
"""

import functools
import zlib
from dataclasses import replace

import numpy as np
import pytest
from support import as_jax

import structarrays as sa
from structarrays._core.families.factored import Factored
from structarrays.testing import (
    CASES,
    STRUCTURES,
    Case,
    EquivalenceError,
    applies,
    check_equivalence,
    dense_value,
    operands,
    sample,
)

SIZE = {"m": 4, "n": 4, "p": 4, "k": 2}
BATCH = ((2,), (2,), (2,))
# Of arrays that hold arrays an element is a sum of products of what they hold: NaN and infinities spread (docs/design/decisions.md).
ENTRIES = [s for s in STRUCTURES if not issubclass(getattr(sa, s.partition(",")[0].partition(" ")[0]), Factored)]
MATRICES = [s for s in ENTRIES if s != "Dense"]
ZEROS = ["Identity", "Diagonal", "Banded", "Banded off the diagonal", "Banded without offsets"]
OTHER_ZEROS = [
    "Toeplitz, tridiagonal",
    "Toeplitz, lower",
    "BlockDiagonal",
    "BlockDiagonal, ragged",
    "BlockBanded",
    "Sparse",
    "Triangular",
    "Permutation",
]


# Products of inexact numbers, in which a structural zero is strong.
ABSORBING = {
    "multiply",
    "divide",
    "pow",
    "matmul",
    "vecdot",
    "tensordot",
    "linalg.matmul",
    "linalg.vecdot",
    "linalg.tensordot",
}
ABSORBING |= {"*", "/", "**", "@"}
# What multiplies inside, or factorises: of NaN, libraries differ in how far it spreads.
SPREADING = ("linalg.", "fft.", "__setitem__")
# NumPy's own way with NaN, from which the standard leaves implementations free to differ.
UNORDERED = {
    "sort",
    "argsort",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "searchsorted",
    "argmax",
    "argmin",
}
# Where the standard has the quotient rounded down, and NumPy follows Python (NaN for inf // 2, -1 for 1 // -inf); and where NumPy takes a square
# root for the power 0.5, which differs for -inf.
ORACLES = {
    "xp.floor_divide(x1, x2)": lambda x1, x2: np.floor(x1 / x2),
    "x1 // x2": lambda x1, x2: np.floor(x1 / x2),
    "x // 2": lambda x: np.floor(x / 2),
    "2 // x": lambda x: np.floor(2 / x),
    "x //= 2": lambda x: np.floor(x / 2),
    "xp.pow(x, 0.5)": lambda x: power(x, 0.5),
}
# Conversion of NaN and infinity to integers is undefined, and so are powers of complex numbers and roundings of infinite ones.
UNDEFINED = {"astype"}


def stored(x) -> np.ndarray:
    """Where an array stores entries, or has a background: everywhere but at its structural zeros."""
    if not x.stores_entries or x.background is not None:
        return np.ones(x.shape, bool)
    return dense_value(x.rebuild(tuple(np.ones(e.shape, bool) for e in x.entries), None))


def special(structure, seed, dtype="float64", core=(4, 4)):
    return sample(structure, core, batch=(2,), dtype=dtype, seed=seed, special=True)


def same(got, want):
    """Equal with NaN and infinities; values to rounding."""
    got = np.asarray(as_jax(got))
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13)


# ---- what absorbs ----------------------------------------------------------------------------------------------------

PARTNERS = ("Dense", "Fill", "Diagonal", "Banded + background", "Banded")


@pytest.mark.parametrize("first", [*ZEROS, *OTHER_ZEROS, "Dense", "Fill"])
@pytest.mark.parametrize("second", [*PARTNERS, *OTHER_ZEROS, "Banded without offsets", "Circulant"])
def test_multiply_absorbs(first, second):
    x, y = special(first, 1), special(second, 2)
    with np.errstate(all="ignore"):
        want = np.where(stored(x) & stored(y), dense_value(x) * dense_value(y), 0.0)
    same(sa.multiply(x, y), want)


@pytest.mark.parametrize("first", [*ZEROS, *OTHER_ZEROS])
@pytest.mark.parametrize("second", [*PARTNERS, "Identity"])
def test_divide_absorbs_in_the_numerator_only(first, second):
    x, y = special(first, 1), special(second, 2)
    with np.errstate(all="ignore"):
        want = np.where(stored(x), dense_value(x) / dense_value(y), 0.0)
        reverse = np.where(stored(y), dense_value(y) / dense_value(x), 0.0)
    same(sa.divide(x, y), want)
    same(sa.divide(y, x), reverse)


def test_the_derivative_is_a_number_where_a_zero_absorbs():
    x, y = sa.BlockDiagonal(np.full((2, 2, 2), 2.0)), sa.tridiagonal(np.full(3, 3.0), np.full(4, 4.0), np.full(3, 5.0))
    for first, second in ((x, y), (y, x)):
        for argument in (0, 1):
            gradient = sa.grad(lambda a, b: sa.sum(sa.divide(a, b)), argument)(first, second)
            with np.errstate(all="ignore"):
                a, b = dense_value(first), dense_value(second)
                want = 1 / b if argument == 0 else -a / b**2
            inside = stored(first) & stored(second)
            np.testing.assert_allclose(dense_value(gradient)[inside], want[inside])
            assert not np.isnan(dense_value(gradient)).any()


def power(x, exponent):
    """NumPy's, element by element: for a scalar 0.5 it takes the square root, which is NaN of -inf where the power is inf."""
    return np.power(x, np.full(x.shape, exponent, x.dtype))


@pytest.mark.parametrize("structure", [*ZEROS, *OTHER_ZEROS])
def test_pow_absorbs_for_a_static_positive_exponent(structure):
    x = special(structure, 1)
    for exponent in (2, 0.5, float("inf")):
        got = sa.pow(x, exponent)
        assert got.background is None
        with np.errstate(all="ignore"):
            same(got, power(dense_value(x), exponent))
    for exponent in (0, -1.0, float("nan")):
        with np.errstate(all="ignore"):
            same(sa.pow(x, exponent), power(dense_value(x), exponent))


def test_pow_absorbs_not_for_an_array_as_the_exponent():
    x = sa.Diagonal([1.0, 2.0])
    same(sa.pow(x, np.asarray([[1.0, np.nan], [np.inf, 2.0]])), np.asarray([[1.0, np.nan], [0.0, 4.0]]))


def products(x, y):
    """The sums of the products of entries that both store; ``x (..., i, j)`` and ``y (..., j, k)``."""
    a, b = dense_value(x)[..., :, :, None], dense_value(y)[..., None, :, :]
    both = stored(x)[..., :, :, None] & stored(y)[..., None, :, :]
    with np.errstate(all="ignore"):
        return np.where(both, a * b, 0.0).sum(-2)


@pytest.mark.parametrize("first", [*ZEROS, "Dense", "Fill"])
@pytest.mark.parametrize("second", [*ZEROS, "Dense", "Fill"])
def test_matmul_vecdot_and_tensordot_absorb(first, second):
    x, y = special(first, 3), special(second, 4)
    want = products(x, y)
    same(sa.matmul(x, y), want)
    same(x @ y, want)
    same(sa.tensordot(x[0, ...], y[0, ...], axes=1), want[0])
    transposed = sa.matrix_transpose(x)
    diagonal = np.diagonal(products(transposed, y), axis1=-2, axis2=-1)
    same(sa.vecdot(x, y, axis=-2), diagonal)


@pytest.mark.parametrize("first", OTHER_ZEROS)
@pytest.mark.parametrize("second", ["Dense", "Circulant", "Symmetric", "Banded", *OTHER_ZEROS])
def test_matmul_absorbs_between_structures(first, second):
    x, y = special(first, 3), special(second, 4)
    same(sa.matmul(x, y), products(x, y))
    same(sa.matmul(y, x), products(y, x))


@pytest.mark.parametrize("structure", [*ZEROS, *OTHER_ZEROS])
def test_products_with_a_vector_absorb(structure):
    x = special(structure, 5)
    v = np.asarray([np.nan, 1.0, np.inf, -2.0])
    with np.errstate(all="ignore"):
        want = np.where(stored(x), dense_value(x) * v, 0.0).sum(-1)
        left = np.where(stored(x), dense_value(x) * v[:, None], 0.0).sum(-2)
    same(sa.matmul(x, v), want)
    same(sa.matmul(v, x), left)


# ---- what does not ---------------------------------------------------------------------------------------------------


def _checked(case: Case) -> bool:
    """Whether the dense result is what a case must give for special values."""
    inexact = set(case.dtypes) & {"float64", "complex128"}
    return (
        bool(inexact)
        and not case.raises
        and not case.requires
        and not case.name.startswith(SPREADING)
        and case.name not in UNORDERED | UNDEFINED
        and not (case.name.startswith("test") or "tensordot" in case.name and case.batches == "none")
    )


SPECIAL_CASES = [replace(c, oracle=ORACLES.get(c.code, c.oracle)) for c in CASES if _checked(c)]


def _structures(case):
    """Each structure in each place, next to dense and filled arrays."""
    if len(case.operands) == 1:
        return [(s,) for s in ENTRIES]
    if any(len(core) != 2 for core in case.cores):
        return []
    rest = ("Dense",) * (len(case.operands) - 2)
    pairs = [(s, s) for s in MATRICES] + [(s, "Dense") for s in MATRICES] + [("Dense", s) for s in MATRICES]
    return [(*p, *rest) for p in pairs]


def _check(case, strong, request):
    """By default a sixth of the structures, other ones for each case; all with ``--law pairs``."""
    broken, every = [], 6 if request.config.getoption("--law", default="part") == "part" else 1
    for structures in _structures(case):
        seed = zlib.crc32(f"{case.code} {structures}".encode())
        if seed % every:
            continue
        batch = ((), (), ()) if case.batches == "none" else BATCH
        arrays = operands(case, structures, batch=batch, sizes=SIZE, dtype="float64", seed=seed, special=True)
        if arrays is None or not applies(case, arrays):
            continue
        try:
            with sa.strong_zeros(strong):
                check_equivalence(case, arrays)
        except EquivalenceError as error:
            broken.append(f"{' and '.join(structures)}: {error}")
    if broken:
        pytest.fail(f"{case.code}\n" + "\n".join(broken), pytrace=False)


OTHERS = [c for c in SPECIAL_CASES if c.name not in ABSORBING]
PRODUCTS = [c for c in SPECIAL_CASES if c.name in ABSORBING]


@pytest.mark.parametrize("number", range(len(OTHERS)), ids=[f"{i}-{c.name}" for i, c in enumerate(OTHERS)])
def test_no_other_function_absorbs(number, request):
    """With strong zeros the result is the dense one in every special case: NaN, infinities and zeros of both signs among the entries."""
    _check(OTHERS[number], True, request)


@pytest.mark.parametrize("number", range(len(PRODUCTS)), ids=[f"{i}-{c.name}" for i, c in enumerate(PRODUCTS)])
def test_nothing_absorbs_without_strong_zeros(number, request):
    _check(PRODUCTS[number], False, request)


def test_the_policy_changes_nothing_else():
    """One function of each family that does not absorb gives the same structure and values either way."""
    x = special("Diagonal", 9)
    for function in (sa.exp, sa.sin, sa.sum, sa.isnan, sa.matrix_transpose, functools.partial(sa.add, sa.eye(4))):
        with sa.strong_zeros(False):
            off = function(x)
        assert sa.same_structure(off, function(x))
        np.testing.assert_array_equal(dense_value(off), dense_value(function(x)))


def test_the_lists_are_not_empty():
    assert len(OTHERS) > 150
    assert {c.name for c in PRODUCTS} >= {"multiply", "divide", "pow", "matmul", "vecdot"}
