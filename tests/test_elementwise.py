"""Elementwise functions of every structure return the values that NumPy returns for the dense form."""

import itertools
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa
from structarrays._core.dispatch.registry import FUNCTIONS
from structarrays._core.families.elementwise_rule import KINDS, ElementwiseArrayFunction
from structarrays._structures.banded.array import bands

UNARY = {
    "numeric": "abs conj imag isfinite isinf isnan negative positive real round sign square",
    "real numeric": "ceil floor trunc",
    "floating": "acos acosh asin asinh atan atanh cos cosh exp expm1 log log10 log1p log2 reciprocal sin sinh sqrt tan tanh",
    "real floating": "signbit",
    "bool": "logical_not",
    "integer or bool": "bitwise_invert",
}
BINARY = {
    "numeric": "add multiply pow subtract",
    "real numeric": "floor_divide remainder",
    "real": "greater greater_equal less less_equal maximum minimum",
    "floating": "divide",
    "real floating": "atan2 copysign hypot logaddexp nextafter",
    "all": "equal not_equal",
    "bool": "logical_and logical_or logical_xor",
    "integer": "bitwise_left_shift bitwise_right_shift",
    "integer or bool": "bitwise_and bitwise_or bitwise_xor",
}
KIND = {name: kind for table in (UNARY, BINARY) for kind, names in table.items() for name in names.split()}
UNARY = [name for names in UNARY.values() for name in names.split()]
BINARY = [name for names in BINARY.values() for name in names.split()]

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
]
TESTED = ["bool", "int64", "uint8", "float32", "float64", "complex64", "complex128"]


def takes(name, dtype):
    return np.dtype(dtype).kind in KINDS[KIND[name]]


def seeded(*key):
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


# ---- arrays of every structure, with their dense values made by NumPy ---------------------------------------------


def values(rng, shape, dtype):
    """Values in the domain of most functions."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.random(shape) < 0.5
    if kind in "iu":
        return rng.integers(1, 6, shape).astype(dtype)
    real = rng.uniform(0.1, 0.9, shape) * rng.choice([-1, 1], shape)
    return (real + 1j * rng.uniform(-0.9, 0.9, shape) if kind == "c" else real).astype(dtype)


def banded_dense(diagonals, offsets, batch, shape, background):
    dense = np.empty((*batch, *shape), np.asarray(background).dtype)
    dense[...] = np.asarray(background)[..., None, None]
    for d, k in zip(diagonals, offsets, strict=True):
        i = np.arange(d.shape[-1])
        dense[..., i + max(0, -k), i + max(0, k)] = d
    return dense


def length(shape, k):
    return min(shape[0] + min(k, 0), shape[1] - max(k, 0))


def with_background(x, background):
    return x.rebuild(x.entries, jnp.asarray(background))


def make(structure, dtype, rng, batch=(), shape=(4, 4)):
    """An array of a structure (with a background value if the name has ``+``), and its dense form."""
    name, plus = structure.rstrip("+"), structure.endswith("+")
    background = values(rng, batch, dtype) if plus else np.zeros(batch, dtype)
    if name == "Dense":
        data = values(rng, (*batch, *shape), dtype)
        return sa.asarray(data), data
    if name == "scalar":
        data = values(rng, (*batch, 1, 1), dtype)
        return sa.asarray(data), data
    if name == "row":
        data = values(rng, shape[-1:], dtype)
        return sa.asarray(data), data
    if name == "column":
        data = values(rng, (shape[0], 1), dtype)
        return sa.asarray(data), data
    if name == "Fill":
        value = values(rng, batch, dtype)
        return sa.Fill(value, shape), np.broadcast_to(value[..., None, None], (*batch, *shape))
    if name == "Identity":
        scale = values(rng, batch, dtype)
        x, diagonals, offsets = sa.Identity(shape, scale), [np.repeat(scale[..., None], min(shape), -1)], (0,)
    elif name == "Diagonal":
        diagonals, offsets = [values(rng, (*batch, min(shape)), dtype)], (0,)
        x = sa.Diagonal(diagonals[0], shape=shape)
    elif name == "Empty":
        diagonals, offsets = [], ()
        x = bands([], (), shape, dtype=np.dtype(dtype), batch=batch)
    else:
        offsets = {"Banded": (-2, 0, 1), "Upper": (1, 2)}[name]
        diagonals = [values(rng, (*batch, length(shape, k)), dtype) for k in offsets]
        x = sa.Banded(diagonals, offsets, shape)
    if plus:
        x = with_background(x, background)
    return x, banded_dense(diagonals, offsets, batch, shape, background)


STRUCTURES = [
    *("Dense", "Fill", "Identity", "Diagonal", "Banded", "Upper"),
    *("Identity+", "Diagonal+", "Banded+"),
]
SHAPES = [((), (4, 4)), ((2, 3), (4, 4)), ((), (3, 5)), ((2, 3), (5, 3))]


# ---- the oracle ----------------------------------------------------------------------------------------------------


def expected(name, *arrays):
    """The result of NumPy; a floating-point function gets integers as float64."""
    arrays = [np.asarray(a) for a in arrays]
    if "floating" in KIND[name]:
        common = np.result_type(*arrays)
        arrays = [a.astype(np.float64 if common.kind in "biu" else common) for a in arrays]
    if name == "floor_divide" and arrays[0].dtype.kind == "f":
        return np.floor(arrays[0] / arrays[1])
    return getattr(np, name)(*arrays)


def assert_same(result, wanted, name):
    assert isinstance(result, sa.Array)
    got = np.asarray(as_jax(result))
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    if wanted.dtype.kind in "biu":
        np.testing.assert_array_equal(got, wanted, err_msg=name)
        return
    single = wanted.dtype.name in ("float32", "complex64")
    tolerance = dict(rtol=2e-5 if single else 1e-11, atol=1e-6 if single else 1e-14)
    if wanted.dtype.kind == "c":
        # In infinite complex numbers, NumPy and C99 have NaN in different parts.
        finite = np.isfinite(wanted)
        np.testing.assert_array_equal(np.isfinite(got), finite, err_msg=name)
        got, wanted = got[finite], wanted[finite]
    np.testing.assert_allclose(got, wanted, err_msg=name, **tolerance)


def undefined(name, dtype, divisor):
    """The positions of integers divided by zero, for which the standard leaves the result open."""
    return name in ("floor_divide", "remainder") and np.dtype(dtype).kind in "iu" and not np.all(divisor)


# ---- the declarations ----------------------------------------------------------------------------------------------


def test_the_tables_name_every_elementwise_function():
    declared = {name for name, f in FUNCTIONS.items() if isinstance(f, ElementwiseArrayFunction) and name[0] != "_"}
    assert declared - {"where"} == {*UNARY, *BINARY, "clip"}
    for name in declared - {"where"}:
        assert getattr(sa, name) is FUNCTIONS[name]
        if name != "clip":
            assert FUNCTIONS[name].kinds == KIND[name]


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_zero_is_mapped_to_zero_where_declared(name):
    function = FUNCTIONS[name]
    at_zero = [
        np.asarray(function.formula(*[jnp.zeros(3, dtype)] * (2 if name in BINARY else 1)))
        for dtype in DTYPES
        if takes(name, dtype) and not ("floating" in KIND[name] and np.dtype(dtype).kind in "iu")
    ]
    assert at_zero
    if function.zero:
        assert all(np.all(value == 0) for value in at_zero)
    else:
        assert any(np.all(value != 0) for value in at_zero)


@pytest.mark.parametrize("name", BINARY)
def test_zero_absorbs_where_declared(name):
    function = FUNCTIONS[name]
    absorbing = {"multiply": (0, 1), "logical_and": (0, 1), "bitwise_and": (0, 1), "divide": (0,)}
    assert function.absorbs == absorbing.get(name, ())
    assert function.exact == (name in ("logical_and", "bitwise_and"))
    for position, dtype in itertools.product(function.absorbs, [d for d in DTYPES if takes(name, d)]):
        other = jnp.asarray(values(seeded(name), 20, dtype))
        operands = [other, other]
        operands[position] = jnp.zeros(20, dtype)
        assert np.all(np.asarray(function.formula(*operands)) == 0)


# ---- the equivalence tests -----------------------------------------------------------------------------------------------


@pytest.mark.costly
@pytest.mark.parametrize("name", UNARY)
def test_one_array(name):
    f, rng = getattr(sa, name), seeded(name)
    allowed = [d for d in TESTED if takes(name, d)]
    main = "float64" if "float64" in allowed else allowed[-1]
    cases = [(s, main, SHAPES[i % 4]) for i, s in enumerate(STRUCTURES)]
    for i, dtype in enumerate(d for d in allowed if d != main):
        cases += [(STRUCTURES[(len(name) + i) % 9], dtype, SHAPES[i % 4]), ("Banded", dtype, SHAPES[(i + 1) % 4])]
    arrays, wanted = [], []
    for structure, dtype, (batch, shape) in cases:
        x, dense = make(structure, dtype, rng, batch, shape)
        arrays.append(x)
        wanted.append(expected(name, dense))
    with sa.densify("error"):
        eager = [f(x) for x in arrays]
        compiled = jax.jit(lambda xs: [f(x) for x in xs])(arrays)
    for case, x, y, z, w in zip(cases, arrays, eager, compiled, wanted, strict=True):
        label = f"{name} {case}"
        assert_same(y, w, label)
        assert_same(z, w, label)
        assert type(y) is type(z) is type(x), label
        assert y.meta == x.meta, label
        if x.stores_entries:
            assert (y.background is None) == (x.background is None and f.zero), label


PAIRS = [
    pair
    for pair in itertools.product([*STRUCTURES, "scalar", "row", "column"], repeat=2)
    if not {*pair} <= {"Dense", "scalar", "row", "column"}
]
PER_FUNCTION = 14


def pairs_of(name):
    """Some pairs of structures for a function. All functions together cover every pair."""
    start = BINARY.index(name) * PER_FUNCTION
    return [PAIRS[(start + i) % len(PAIRS)] for i in range(PER_FUNCTION)]


def test_every_pair_of_structures_is_met():
    assert {pair for name in BINARY for pair in pairs_of(name)} == set(PAIRS)


@pytest.mark.costly
@pytest.mark.parametrize("name", BINARY)
def test_two_arrays(name):
    f, rng = getattr(sa, name), seeded(name)
    allowed = [d for d in TESTED if takes(name, d)]
    arrays, wanted, labels = [], [], []
    for i, pair in enumerate(pairs_of(name)):
        dtype = allowed[i % len(allowed)]
        batch, shape = SHAPES[i % 4]
        x, x_dense = make(pair[0], dtype, rng, batch, shape)
        y, y_dense = make(pair[1], dtype, rng, batch if i % 3 else batch[1:], shape)
        if undefined(name, dtype, y_dense):
            y, y_dense = make("Dense", dtype, rng, batch, shape)
        w = expected(name, x_dense, y_dense)
        if f.absorbs:
            # A structural zero absorbs the NaN of 0 / 0 off the pattern of the numerator.
            stored = make(pair[0], "bool", rng, batch, shape)[0]
            if x.stores_entries and x.background is None:
                ones = stored.rebuild(tuple(jnp.ones_like(e) for e in stored.entries), None)
                w = np.where(np.asarray(ones.to_jax()), w, np.zeros((), w.dtype))
        if name == "pow" and np.dtype(dtype).kind == "c":
            # The standard leaves complex powers of zero, exp(z log 0), open. Compare only the others.
            x = x + with_background(x, jnp.ones(batch, dtype)) if x.stores_entries and x.background is None else x
            w = expected(name, np.asarray(x.to_jax()), y_dense)
        arrays.append((x, y))
        wanted.append(w)
        labels.append(f"{name} {pair} {dtype} {batch} {shape}")
    eager = [f(x, y) for x, y in arrays]
    compiled = jax.jit(lambda pairs: [f(x, y) for x, y in pairs])(arrays)
    for label, y, z, w in zip(labels, eager, compiled, wanted, strict=True):
        assert type(y) is type(z), label
        assert_same(y, w, label)
        assert_same(z, w, label)


RESULTS = [
    ("add", "Diagonal", "Diagonal", "Diagonal"),
    ("add", "Identity", "Banded", "Banded"),
    ("add", "Diagonal", "scalar", "Diagonal+"),
    ("add", "Fill", "Banded", "Banded+"),
    ("add", "Diagonal", "Dense", "Dense"),
    ("equal", "Diagonal", "Diagonal", "Diagonal+"),
    ("maximum", "Banded", "Diagonal", "Banded"),
    ("multiply", "Diagonal", "Dense", "Diagonal"),
    ("multiply", "Dense", "Banded", "Banded"),
    ("multiply", "Banded", "Diagonal", "Diagonal"),
    ("multiply", "Identity", "scalar", "Identity"),
    ("multiply", "row", "Banded", "Banded"),
    ("multiply", "Identity", "column", "Diagonal"),
    ("divide", "Banded", "Diagonal", "Banded"),
    ("divide", "Diagonal", "Dense", "Diagonal"),
    ("divide", "scalar", "Diagonal", "Diagonal+"),
    ("pow", "Diagonal", "scalar", "Diagonal+"),
    ("hypot", "Diagonal+", "Banded", "Banded+"),
]


@pytest.mark.parametrize(("name", "first", "second", "result"), RESULTS)
def test_class_of_the_result(name, first, second, result):
    rng = seeded(name, first, second)
    x, y = make(first, "float64", rng)[0], make(second, "float64", rng)[0]
    with sa.densify("error"):
        z = getattr(sa, name)(x, y)
    assert type(z).__name__ + "+" * (z.stores_entries and z.background is not None) == result


def test_small_structures_broadcast():
    """A structure with one element is a number. A structure with one row or column may become dense."""
    D, M = sa.Diagonal([2.0, 3.0]), np.array([[1.0, 2.0], [3.0, 4.0]])
    for one in (sa.Identity(1), sa.Diagonal([1.0]), sa.Banded([[1.0]], (0,), (1, 1))):
        assert_same(one + sa.asarray(M), 1.0 + M, "add")
        assert_same(D * one, np.diag([2.0, 3.0]), "multiply")
        assert type(D * one) is sa.Diagonal
        assert type(one + D) is sa.Diagonal
    row, column = sa.Diagonal([2.0], shape=(1, 2)), sa.Diagonal([2.0], shape=(2, 1))
    assert_same(row + sa.asarray(M), np.array([[2.0, 0.0]]) + M, "add")
    assert_same(row * D, np.diag([4.0, 0.0]), "multiply")
    assert_same(row - column, np.array([[0.0, -2.0], [2.0, 0.0]]), "subtract")
    assert_same(row + sa.Fill(1.0, (2, 2)), np.array([[3.0, 1.0], [3.0, 1.0]]), "add")


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_empty_band_and_empty_arrays(name):
    """A matrix with no stored diagonal, and arrays without elements."""
    f, dtype = getattr(sa, name), next(d for d in reversed(TESTED) if takes(name, d))
    rng = seeded(name)
    count = 2 if name in BINARY else 1
    x, dense = make("Empty", dtype, rng, (2,))
    if not undefined(name, dtype, dense):
        result, wanted = f(*[x] * count), expected(name, *[dense] * count)
        if name == "divide":
            wanted = np.zeros_like(wanted)
        assert_same(result, wanted, name)
    for structure in ("Dense", "Diagonal"):
        x, dense = make(structure, dtype, rng, (0,), (2, 2))
        assert_same(f(*[x] * count), expected(name, *[dense] * count), name)


# ---- strong zeros --------------------------------------------------------------------------------------------------


def off_diagonal(x):
    return float(np.asarray(x.to_jax())[0, 1])


def test_structural_zeros_are_strong():
    D, nan = sa.Diagonal([1.0, 2.0]), float("nan")
    assert off_diagonal(D * nan) == off_diagonal(nan * D) == off_diagonal(D / nan) == off_diagonal(D / 0.0) == 0
    assert off_diagonal(D * sa.asarray([[nan, np.inf], [1.0, nan]])) == 0
    assert off_diagonal(D / D) == 0
    assert np.isnan(off_diagonal(D + nan))
    assert np.isnan(off_diagonal(sa.maximum(D, nan)))
    assert np.isnan(off_diagonal(1.0 * with_background(D, 0.0) * nan))  # a background value is not a structural zero


def test_weak_zeros():
    D, nan = sa.Diagonal([1.0, 2.0]), float("nan")
    with sa.strong_zeros(False):
        assert np.isnan([off_diagonal(y) for y in (D * nan, nan * D, D / nan, D / 0.0, D / D)]).all()
        assert type(D * D) is sa.Diagonal
        assert (D * D).background is None
        assert type(D * sa.asarray([[nan, np.inf], [1.0, nan]])) is sa.Dense
        logical = sa.Diagonal([True, True])
        assert type(sa.logical_and(logical, sa.asarray([[True, True], [True, True]]))) is sa.Diagonal


# ---- pow -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 17, 0.0, 0.5, 1.0, 2.0, 3.7, -1, -2.0, -0.5, 1e-300, float("nan")])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "float64", "complex64", "complex128"])
def test_pow_of_a_python_number(dtype, exponent):
    positive = exponent > 1e-200
    structures = ("Dense", "Fill", "Identity", "Banded", "Diagonal+")
    for structure in structures if dtype == "float64" else ("Dense", "Banded"):
        x, dense = make(structure, dtype, seeded(structure), (2,), (3, 4))
        if type(exponent) is int and exponent < 0 and dtype in ("int64", "uint8"):
            with pytest.raises(ValueError, match="negative integer powers"):
                sa.pow(x, exponent)
            continue
        if np.dtype(dtype).kind in "iu" and type(exponent) is float:
            wanted = dense.astype(np.float64) ** exponent
        elif np.dtype(dtype).kind == "c" and exponent == exponent:
            # In NumPy, complex powers of zero are NaN; real ones are 1 or 0.
            rounded = dense.real.dtype.type(exponent)
            wanted = np.where(dense == 0, np.power(np.zeros_like(rounded), rounded), dense**exponent).astype(dtype)
        else:
            wanted = dense**exponent
        with sa.densify("error"):
            results = x**exponent, jax.jit(lambda x: sa.pow(x, exponent))(x)
        for y in results:
            assert_same(y, wanted, f"{dtype} {structure} ** {exponent}")
            assert type(y) is type(x)
            if x.stores_entries:
                assert (y.background is None) == (x.background is None and positive)


def test_pow_with_arrays_of_exponents():
    x = sa.Diagonal([2.0, 3.0])
    wanted = np.diag([2.0, 3.0]) ** 2.0
    for exponent in (sa.asarray(2.0), jnp.asarray(2.0), np.float64(2.0), np.asarray(2)):
        y = x**exponent
        assert_same(y, wanted, "pow")
        assert y.background is not None  # arrays are not static, and a NumPy scalar is an array
    assert_same(2 ** sa.asarray([1, 2, 3]), np.array([2, 4, 8]), "pow")
    assert_same(2.0**x, 2.0 ** np.diag([2.0, 3.0]), "pow")
    assert (x ** sa.asarray(2j)).dtype == sa.complex128
    assert (x**2j).dtype == sa.complex128


def test_pow_special_cases_of_static_exponents():
    x = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -2.0, 1e200])
    for exponent in (0, 1, 2, 3, 0.0, 0.5, 1.0, 2.0, -1, -2, 2.5, 17, 1e9, float("inf"), float("nan"), -0.0):
        got = np.asarray((sa.asarray(x) ** exponent).to_jax())
        wanted = np.power(x, np.full_like(x, exponent))  # NumPy replaces a scalar exponent of 0.5 by sqrt
        np.testing.assert_allclose(got, wanted, rtol=1e-14, err_msg=str(exponent))
        np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted), err_msg=str(exponent))


def test_pow_errors():
    with pytest.raises(OverflowError, match="300"):
        sa.asarray([1, 2], dtype=sa.uint8) ** 300
    with pytest.raises(ValueError, match="below -16"):
        sa.asarray([1, 2]) ** -100
    with pytest.raises(TypeError, match="numeric"):
        sa.asarray([True]) ** True
    with pytest.raises(TypeError, match="x2"):
        sa.pow(sa.asarray([1.0]), "2")


def test_pow_does_not_compile_for_every_exponent():
    x = sa.asarray([1.0, 2.0])
    x**2.51
    before = sa.pow._jit._cache_size()
    for i in range(20):
        x ** (2.52 + i)
    assert sa.pow._jit._cache_size() == before


def test_integer_powers_are_exact():
    x = np.array([3.0, -7.0, 11.0])
    for n in range(2, 13):
        np.testing.assert_array_equal(
            np.asarray((sa.asarray(x) ** n).to_jax()), np.array([int(v) ** n for v in x], float)
        )


@pytest.mark.each_parameter
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_large_powers_of_integers_wrap_around(dtype):
    """JAX uses the exponent modulo 64."""
    base = np.array([0, 1, 2, 3, 5, 10, 255 if dtype[0] == "u" else -1, 7], dtype)
    exponents = np.array([0, 1, 5, 63, 64, 65, 100, 127], dtype)
    with np.errstate(over="ignore"):
        wanted = base[:, None] ** exponents
        largest = base ** np.array(np.iinfo(dtype).max, dtype)
    for run in (lambda f: f, jax.jit):
        found = run(sa.pow)(sa.asarray(base[:, None]), sa.asarray(exponents))
        assert_same(found, wanted, f"{dtype} ** {dtype}")
        assert_same(run(sa.pow)(sa.asarray(base), np.array(np.iinfo(dtype).max, dtype)), largest, dtype)
        for i, n in enumerate(exponents.tolist()):
            assert_same(run(lambda x, n=n: x**n)(sa.asarray(base)), wanted[:, i], f"{dtype} ** {n}")
            assert_same(run(lambda x, n=n: x**n)(sa.Diagonal(base)), np.diag(base) ** np.array(n, dtype), f"{n}")


# ---- clip ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("structure", "dtype"),
    [(s, "float64") for s in ("Dense", "Fill", "Diagonal", "Banded", "Identity+")]
    + [("Dense", "uint8"), ("Dense", "float32"), ("Banded", "int64")],
)
def test_clip(structure, dtype):
    rng = seeded(structure, dtype)
    x, dense = make(structure, dtype, rng, (2,), (3, 4))
    low, high = (1, 3) if np.dtype(dtype).kind in "iu" else (-0.25, 0.5)
    low_array, high_array = np.full((3, 1), low, dtype), np.full((2, 1, 1), high, dtype)
    bounds = [(None, None), (low, None), (None, high), (low, high), (low_array, high_array), (None, high_array)]
    for lo, hi in bounds:
        wanted = dense if lo is None and hi is None else np.clip(dense, lo, hi)
        y = sa.clip(x, lo, hi)
        assert_same(y, wanted, f"{lo} {hi}")
        assert_same(jax.jit(lambda x, lo=lo, hi=hi: sa.clip(x, lo, max=hi))(x), wanted, f"{lo} {hi}")
    assert_same(sa.clip(x, max=high), np.clip(dense, None, high), "max")
    with sa.densify("error"):
        y, z = sa.clip(x), sa.clip(x, min=low)
    assert type(y) is type(z) is type(x)
    if x.stores_entries:
        assert (y.background is None) == (x.background is None)
        assert z.background is not None


def test_clip_of_nan_and_integers():
    x = sa.asarray([0.0, float("nan"), 2.0])
    np.testing.assert_array_equal(as_jax(sa.clip(x, 0.5, 1.5)), [0.5, np.nan, 1.5])
    np.testing.assert_array_equal(as_jax(sa.clip(x, float("nan"), None)), [np.nan] * 3)
    assert sa.clip(sa.asarray([1, 2], dtype=sa.int8), 0, 1).dtype == sa.int8
    assert sa.clip(sa.asarray([1.0], dtype=sa.float32), 0, 1).dtype == sa.float32
    for bounds in ((-1, None), (None, 300)):
        with pytest.raises(OverflowError, match="uint8"):
            sa.clip(sa.asarray([1, 2], dtype=sa.uint8), *bounds)
    with pytest.raises(TypeError, match="max"):
        sa.clip(x, max=sa.asarray([1j]))
    with pytest.raises(TypeError, match="min"):
        sa.clip(x, "0")
    with pytest.raises(ValueError, match="broadcast"):
        sa.clip(x, sa.zeros(2))


# ---- dtypes --------------------------------------------------------------------------------------------------------

COMPARING = "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor".split()


@pytest.mark.parametrize("name", BINARY)
def test_promotion(name):
    """The promotion table of the standard, for all its pairs of dtypes, and integers with floats as in NumPy."""
    f = getattr(sa, name)
    for a, b in itertools.combinations_with_replacement([d for d in DTYPES if takes(name, d)], 2):
        common = np.result_type(np.dtype(a), np.dtype(b))
        kinds = {np.dtype(a).kind, np.dtype(b).kind}
        if kinds == {"i", "u"} and "uint64" in (a, b):
            continue  # not in the table
        if len(kinds) > 1 and kinds != {"i", "u"}:
            continue
        if "floating" in KIND[name] and common.kind in "iu":
            common = np.dtype(np.float64)
        if name in COMPARING:
            common = np.dtype(bool)
        x, y = (sa.ones(2, dtype=d) for d in (a, b))
        assert jax.eval_shape(f, x, y).dtype == common, (a, b)


@pytest.mark.parametrize("name", ["add", "multiply", "divide", "pow", "maximum", "equal", "floor_divide"])
def test_python_scalars(name):
    f = getattr(sa, name)
    for dtype in ("int8", "uint64", "float32", "float64", "complex64"):
        if not takes(name, dtype):
            continue
        dense = np.array([1, 2, 3], dtype)
        x = sa.asarray(dense)
        scalars = [2]
        if np.dtype(dtype).kind in "fc":
            scalars.append(2.5)
        if np.dtype(dtype).kind == "c":
            scalars.append(1 + 2j)
        for scalar in scalars:
            strong = np.asarray(scalar, dtype)
            assert_same(f(x, scalar), expected(name, dense, strong), f"{name} {dtype} {scalar}")
            assert_same(f(scalar, x), expected(name, strong, dense), f"{name} {scalar} {dtype}")
    if takes(name, "complex64"):
        assert f(sa.ones(2, dtype=sa.float32), 1j).dtype in (sa.complex64, sa.bool)
        assert f(1j, sa.ones(2, dtype=sa.float64)).dtype in (sa.complex128, sa.bool)


@pytest.mark.slow
def test_operators():
    x, y = sa.asarray([5, 6]), sa.asarray([2, 3])
    a, b = np.array([5, 6]), np.array([2, 3])
    for operate in (
        lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y, lambda x, y: x // y,
        lambda x, y: x % y, lambda x, y: x**y, lambda x, y: x & y, lambda x, y: x | y, lambda x, y: x ^ y,
        lambda x, y: x << y, lambda x, y: x >> y, lambda x, y: x == y, lambda x, y: x != y, lambda x, y: x < y,
        lambda x, y: x <= y, lambda x, y: x > y, lambda x, y: x >= y, lambda x, y: -x, lambda x, y: +x,
        lambda x, y: ~x, lambda x, y: abs(x),
    ):  # fmt: skip
        assert_same(operate(x, y), operate(a, b), "operator")
        assert_same(operate(x, 3), operate(a, 3), "operator with a number")
        if isinstance(operate(3, b), np.ndarray):
            assert_same(operate(3, y), operate(3, b), "reflected")


# ---- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_wrong_kinds_raise(name):
    f, count = getattr(sa, name), 2 if name in BINARY else 1
    for dtype in DTYPES:
        x = sa.ones(3, dtype=dtype)
        if not takes(name, dtype):
            with pytest.raises(TypeError, match=rf"^{name}: x1? must have a"):
                f(*[x] * count)


@pytest.mark.parametrize("name", BINARY)
def test_shapes_must_broadcast(name):
    dtype = next(d for d in TESTED if takes(name, d))
    x, y = sa.ones(3, dtype=dtype), sa.ones(4, dtype=dtype)
    with pytest.raises(ValueError, match=rf"^{name}: shapes \(3,\) and \(4,\) cannot be broadcast"):
        getattr(sa, name)(x, y)
    with pytest.raises(TypeError, match="x2"):
        getattr(sa, name)(x, [1, 2, 3])


def test_comparisons_take_integers_of_any_size():
    x = sa.asarray([0, 255], dtype=sa.uint8)
    y = sa.asarray([2**63 - 1, 2**63 + 5], dtype=sa.uint64)
    assert_same(x == 300, np.array([False, False]), "equal")
    assert_same(x < 300, np.array([True, True]), "less")
    assert_same(-1 < x, np.array([True, True]), "less")
    assert_same(x >= 2**70, np.array([False, False]), "greater_equal")
    assert_same(y > 2**63, np.array([False, True]), "greater")
    assert_same(sa.asarray([2**63 - 1]) == 2**63, np.array([False]), "equal")


def test_integers_that_do_not_fit():
    x = sa.asarray([1, 2], dtype=sa.uint8)
    for operate in (
        lambda: x + 300, lambda: 300 * x, lambda: x - (-1), lambda: x & 256, lambda: sa.maximum(x, -1),
        lambda: sa.asarray([1]) + 2**70,
    ):  # fmt: skip
        with pytest.raises(OverflowError, match="does not fit"):
            operate()
    assert_same(x + 255, np.array([0, 1], np.uint8), "add")
    assert_same(sa.asarray([1.0]) + 2**70, np.array([1.0 + 2**70]), "add")


# ---- derivatives ---------------------------------------------------------------------------------------------------

SMOOTH = "asin asinh atan atanh cos cosh exp expm1 log1p sin sinh square tan tanh negative".split()
SMOOTH_PAIRS = "add atan2 divide hypot logaddexp maximum multiply subtract".split()


def finite_difference(f, x, step=1e-6):
    gradient = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[i] = step
        gradient[i] = (f(x + e) - f(x - e)) / (2 * step)
    return gradient


@pytest.mark.parametrize("name", SMOOTH)
def test_derivative(name):
    rng = seeded(name)
    d, weights = values(rng, (2, 3), "float64"), rng.normal(size=(2, 3, 3))

    def loss(d):
        return jnp.sum(as_jax(getattr(sa, name)(sa.Diagonal(d))) * weights)

    def oracle(d):
        return np.sum(getattr(np, name)(d[..., None] * np.eye(3)) * weights)

    np.testing.assert_allclose(jax.jit(jax.grad(loss))(d), finite_difference(oracle, d), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", SMOOTH_PAIRS)
def test_derivative_of_two_arrays(name):
    rng = seeded(name)
    d, y, weights = rng.uniform(0.2, 0.9, 3), rng.uniform(1.0, 2.0, (3, 3)), rng.normal(size=(3, 3))

    def loss(d):
        return jnp.sum(as_jax(getattr(sa, name)(sa.Diagonal(d), sa.asarray(y))) * weights)

    def oracle(d):
        return np.sum(getattr(np, name)(np.diag(d), y) * weights)

    np.testing.assert_allclose(jax.grad(loss)(d), finite_difference(oracle, d), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("exponent", [2, 3, 0.5, 2.5, -1, 0, 1])
def test_derivative_of_pow(exponent):
    d = np.array([0.5, 1.5, 2.0])

    def loss(d):
        return jnp.sum((sa.Diagonal(d) ** exponent)._value[0][0])

    np.testing.assert_allclose(jax.grad(loss)(d), exponent * d ** (exponent - 1.0), rtol=1e-13)
    assert float(jax.grad(lambda v: (sa.asarray(v) ** 2).to_jax())(0.0)) == 0.0


@pytest.mark.parametrize("lower", [np.full((1, 1), 0.5), np.full((2, 1, 1), 0.5)])
def test_one_element_beside_a_factored_and_a_dense_array(lower):
    u, v, y = np.ones((3, 1)), np.arange(3.0).reshape(3, 1), np.full((3, 3), 1.5)
    small = sa.Diagonal(lower[..., 0])
    with sa.record() as log:
        clipped = sa.clip(sa.LowRank(u, v), small, sa.asarray(y))
        chosen = sa.where(small > 0, sa.LowRank(u, v), sa.asarray(y))
    np.testing.assert_array_equal(clipped, np.clip(u @ v.T, lower, y))
    np.testing.assert_array_equal(chosen, np.where(lower > 0, u @ v.T, y))
    assert not log.densifications  # nothing larger than the dense operand is made
