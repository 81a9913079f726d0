"""Reductions, cumulative reductions and differences of every structure, against NumPy on the dense values."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa
from structarrays._functions.monoids import PROD


def values(rng, shape, dtype):
    """Numbers of either sign, without zeros or ties, so small that products of them are tame."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return jnp.asarray(rng.random(shape) < 0.6)
    if dtype.kind in "iu":
        return jnp.asarray(rng.integers(1 if dtype.kind == "u" else -4, 5, shape).astype(dtype))
    data = rng.uniform(0.5, 1.5, shape) * rng.choice([-1, 1], shape)
    if dtype.kind == "c":
        data = data + 1j * rng.uniform(0.5, 1.5, shape)
    return jnp.asarray(data.astype(dtype))


def banded(rng, offsets, shape, batch, dtype):
    if not offsets:
        return sa.Banded.make((jnp.zeros(batch, dtype), None), ((), shape))
    diagonals = [values(rng, (*batch, max(0, min(shape[0], shape[1] - k) - max(0, -k))), dtype) for k in offsets]
    return sa.Banded(diagonals, offsets, shape)


def with_background(rng, x):
    return x.rebuild(x.entries, values(rng, x.batch_shape, x.dtype))


def diagonal(rng, shape, batch, dtype):
    return sa.Diagonal(values(rng, (*batch, min(shape)), dtype), shape=shape)


MAKE = {
    "dense": lambda rng, dtype: sa.asarray(values(rng, (2, 3, 4), dtype)),
    "fill": lambda rng, dtype: sa.Fill(values(rng, (2, 3), dtype), (4, 5)),
    "fill 1": lambda rng, dtype: sa.Fill(values(rng, (2,), dtype), 4),
    "fill 3": lambda rng, dtype: sa.Fill(values(rng, (), dtype), (2, 3, 4)),
    "identity": lambda rng, dtype: sa.Identity(4, values(rng, (2, 3), dtype)),
    "identity background": lambda rng, dtype: with_background(rng, sa.Identity((4, 6), values(rng, (2,), dtype))),
    "diagonal": lambda rng, dtype: diagonal(rng, (4, 4), (2, 3), dtype),
    "diagonal tall": lambda rng, dtype: diagonal(rng, (6, 4), (), dtype),
    "diagonal background": lambda rng, dtype: with_background(rng, diagonal(rng, (4, 6), (2,), dtype)),
    "tridiagonal": lambda rng, dtype: banded(rng, (-1, 0, 1), (5, 5), (2, 3), dtype),
    "banded wide": lambda rng, dtype: banded(rng, (-3, 0, 2), (4, 6), (2,), dtype),
    "banded tall": lambda rng, dtype: with_background(rng, banded(rng, (-4, -1, 1), (6, 4), (2, 3), dtype)),
    "banded very tall": lambda rng, dtype: with_background(rng, banded(rng, (-19, -5, -1, 0), (21, 3), (2,), dtype)),
    "banded very wide": lambda rng, dtype: banded(rng, (0, 1, 9, 19), (2, 20), (), dtype),
    "banded full": lambda rng, dtype: with_background(rng, banded(rng, (-1, 0, 1), (2, 2), (3,), dtype)),
    "banded row": lambda rng, dtype: with_background(rng, banded(rng, (1, 3), (1, 5), (), dtype)),
    "banded zero": lambda rng, dtype: banded(rng, (), (3, 4), (2,), dtype),
    "banded constant": lambda rng, dtype: with_background(rng, banded(rng, (), (3, 4), (2,), dtype)),
    "no rows": lambda rng, dtype: banded(rng, (), (0, 4), (2,), dtype),
    "no columns": lambda rng, dtype: with_background(rng, diagonal(rng, (3, 0), (2,), dtype)),
    "no batch": lambda rng, dtype: diagonal(rng, (3, 3), (0, 2), dtype),
    "no fill": lambda rng, dtype: sa.Fill(values(rng, (2,), dtype), (0, 3)),
}
CASES = [(name, "float64") for name in MAKE] + [
    (name, dtype)
    for name in ("fill", "identity", "diagonal background", "tridiagonal")
    for dtype in ("float32", "complex128", "int8", "uint16", "bool")
]

REDUCTIONS = {
    "sum": ({}, {"dtype": "float32"}),
    "prod": ({},),
    "max": ({},),
    "min": ({},),
    "mean": ({},),
    "var": ({}, {"correction": 1}, {"correction": 4.5}),
    "std": ({},),
    "all": ({},),
    "any": ({},),
}


def calls(x):
    """Every call of a reduction that `x` allows: (name, axis, keepdims, keywords)."""
    if x.dtype == np.float64:
        axes = [None, -1] + [a for k in range(x.ndim + 1) for a in itertools.combinations(range(x.ndim), k)]
    else:
        axes = [None, 0, -1, (0, -2)]
    for (name, variants), axis, keepdims in itertools.product(REDUCTIONS.items(), axes, (False, True)):
        if keepdims and (
            x.dtype != np.float64 or name not in ("sum", "max", "mean", "var")
        ):  # one for each of the rules
            continue
        for keywords in variants:
            if name in ("max", "min") and (x.dtype.kind == "c" or count(x.shape, axis) == 0):
                continue
            if keywords and (keepdims or (x.dtype.kind == "c" and "dtype" in keywords)):
                continue
            yield name, axis, keepdims, tuple(keywords.items())


def count(shape, axis):
    axis = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    return int(np.prod([shape[a] for a in axis], dtype=int))


def compute(x, name, axis, keepdims, keywords):
    return getattr(sa, name)(x, axis=axis, keepdims=keepdims, **dict(keywords))


def expected(dense, name, axis, keepdims, keywords):
    """NumPy's result; it says inf, or warns, where the standard says NaN."""
    keywords = dict(keywords)
    if name in ("var", "std") and count(dense.shape, axis) - keywords.get("correction", 0) <= 0:
        dtype = dense.real.dtype if dense.dtype.kind in "fc" else "float64"
        return np.full_like(np.sum(dense.real, axis=axis, keepdims=keepdims, dtype=dtype), np.nan)
    if name == "mean" and count(dense.shape, axis) == 0:
        return np.sum(dense, axis=axis, keepdims=keepdims) * np.nan
    with np.errstate(all="ignore"):
        return getattr(np, name)(dense, axis=axis, keepdims=keepdims, **keywords)


def check_class(x, result, name, axis, keepdims, keywords):
    """What tests/data/expected_structures.md promises."""
    batch = x.ndim - x.core_ndim
    axes = range(x.ndim) if axis is None else [a % x.ndim for a in ((axis,) if isinstance(axis, int) else axis)]
    if type(x) is sa.Fill:
        filled = keepdims or any(a not in axes for a in range(batch, x.ndim))
        assert type(result) is (sa.Fill if filled else sa.Dense)
    elif type(x) is sa.Dense or any(a >= batch for a in axes):
        assert type(result) is sa.Dense
    else:
        assert type(result) is type(x)
        n = count(x.shape, axis)
        zero_stays = n > 0 or name in ("sum", "any")
        if name in ("var", "std"):
            zero_stays = n > 0 and n > dict(keywords).get("correction", 0)
        assert (result.background is None) == (x.background is None and zero_stays)


def assert_close(got, want, message, rtol=None):
    got = np.asarray(got)
    assert got.shape == np.shape(want), message
    if rtol is None:
        rtol = 3e-5 if want.dtype.itemsize // (2 if want.dtype.kind == "c" else 1) == 4 else 1e-11
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol, err_msg=message)


@pytest.mark.costly
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_reductions_equal_numpy(case, rng):
    name, dtype = case
    x = MAKE[name](rng, dtype)
    todo = list(calls(x))
    with sa.densify("error"):
        results = jax.jit(lambda x: [compute(x, *call) for call in todo])(x)
        dense = jax.jit(lambda xs: [x.to_jax() for x in xs])([x, *results])
        matrix, dense = np.asarray(dense[0]), dense[1:]
        for call, result, got in zip(todo, results, dense, strict=True):
            want = expected(matrix, *call)
            check_class(x, result, *call)
            assert result.dtype == want.dtype, call
            assert_close(got, want, str(call))
        for i in range(0, len(todo), 1 + len(todo) // 8):
            eager = compute(x, *todo[i])
            assert jax.tree.structure(eager) == jax.tree.structure(results[i])
            assert_close(eager.to_jax(), expected(matrix, *todo[i]), str(todo[i]))


def test_more_diagonals_than_are_fused(rng):
    x = with_background(rng, banded(rng, tuple(range(-29, 30)), (33, 31), (), "float64"))
    for name, axis in itertools.product(("sum", "max", "var"), (-1, -2)):
        want = getattr(np, name)(np.asarray(x.to_jax()), axis=axis)
        assert_close(as_jax(getattr(sa, name)(x, axis=axis)), want, f"{name} {axis}")


# ---- special values ----------------------------------------------------------------------------------------------

SPECIAL = [np.nan, np.inf, -np.inf, -0.0]


@pytest.mark.costly
@pytest.mark.parametrize("value", SPECIAL)
@pytest.mark.parametrize("where", ["stored", "background"])
def test_special_values_are_those_of_the_dense_array(where, value, rng):
    x = banded(rng, (-1, 0, 2), (4, 5), (2,), "float64")
    if where == "stored":
        diagonals = list(x.diagonals)
        diagonals[1] = diagonals[1].at[1, 2].set(value)
        x = sa.Banded(diagonals, x.offsets, (4, 5))
    else:
        x = x.rebuild(x.entries, jnp.asarray([1.0, value]))
    todo = [call for call in calls(x) if not call[2]]
    results = jax.jit(lambda x: [as_jax(compute(x, *call)) for call in todo])(x)
    for call, got in zip(todo, results, strict=True):
        assert_close(got, expected(np.asarray(x.to_jax()), *call), str(call))


def test_a_background_takes_part_only_where_an_entry_is_not_stored(rng):
    x = banded(rng, (-1, 0, 1), (3, 3), (), "float64")
    x = x.rebuild(x.entries, jnp.asarray(np.nan))
    for name in ("sum", "prod", "max", "min", "mean", "var", "std"):
        got = np.asarray(as_jax(getattr(sa, name)(x, axis=-1)))
        assert list(np.isnan(got)) == [True, False, True], name  # the middle row is stored as a whole


def test_a_product_meets_the_zeros_before_it_overflows():
    x = sa.Diagonal(jnp.full(100, 1e300))
    assert float(sa.prod(x)) == 0.0
    assert not as_jax(sa.prod(sa.tridiagonal([1e300] * 3, [1e300] * 4, [1e300] * 3), axis=-1)).any()


@pytest.mark.parametrize("dtype", ["int8", "float64", "complex64"])
def test_powers_by_counts_that_are_not_static(rng, dtype):
    base = rng.integers(-2, 3, (4, 1)).astype(dtype)
    base[0] = 0
    counts = np.arange(6, dtype="int32")
    got = jax.jit(PROD.repeat)(base, counts)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, base**counts)
    # XLA of jaxlib 0.12 never finishes compiling the steps if they are written out (docs/design/jax_bugs.md).
    assert str(jax.make_jaxpr(PROD.repeat)(base, counts)).count("mul") < 10


@pytest.mark.parametrize(
    "value", [0.0, -0.0, 1.0, -1.5, 1e150, -1e150, 1e-200, np.inf, 0j, 1j, -1.5 + 2j, 1e-200j], ids=str
)
def test_derivatives_of_powers_by_counts_that_are_not_static(value):
    """First and second ones in both modes, against the derivatives of polynomials; none is NaN where the power overflows."""
    counts, value = np.arange(-1, 5, dtype="int32"), np.asarray(value)
    n = np.maximum(counts, 0)
    with np.errstate(all="ignore"):
        first = np.where(n > 0, n * value ** np.maximum(n - 1, 0), 0)
        second = np.where(n > 1, n * (n - 1) * value ** np.maximum(n - 2, 0), 0)
    forward, reverse = (functools.partial(mode, holomorphic=np.iscomplexobj(value)) for mode in (jax.jacfwd, jax.grad))
    for mode in (forward, reverse):
        got = jax.jit(jax.vmap(mode(PROD.repeat), (None, 0)))(value, counts)
        np.testing.assert_allclose(got, first, rtol=1e-14)
    for outer, inner in ((forward, forward), (forward, reverse), (reverse, forward), (reverse, reverse)):
        got = jax.jit(jax.vmap(outer(inner(PROD.repeat)), (None, 0)))(value, counts)
        np.testing.assert_allclose(got, second, rtol=1e-14)


def test_products_of_sparse_integers_in_a_batch_compile():
    rows, columns = [[0, 0, 1, 1, 2, 2, 3]] * 2, [[0, 1, 0, 1, 0, 1, 0]] * 2
    x = sa.Sparse(np.arange(1, 15, dtype="int8").reshape(2, 7), (np.asarray(rows), np.asarray(columns)), (4, 2))
    np.testing.assert_array_equal(as_jax(sa.prod(x, axis=-1)), [[2, 12, 30, 0], [72, 110, 156, 0]])


def test_extrema_of_large_arrays_propagate_nan():
    n = 30000
    for position in (0, n // 2, n - 1):
        x = sa.tridiagonal(jnp.ones(n - 1), jnp.ones(n).at[position].set(jnp.nan), jnp.ones(n - 1))
        for f in (sa.max, sa.min):
            assert np.isnan(float(f(x)))
            assert list(np.flatnonzero(np.isnan(np.asarray(as_jax(f(x, axis=-1)))))) == [position]


def test_integer_sums_wrap_as_the_dense_ones():
    x = sa.Fill(jnp.asarray(2**31 - 5, "int32"), (300, 300))
    want = np.sum(np.asarray(x.to_jax()), dtype="int32")
    assert as_jax(sa.sum(x, dtype=sa.int32)) == want


def test_the_variance_does_not_cancel(rng):
    data = jnp.asarray(1e8 + rng.standard_normal((3, 6)))
    x = sa.Banded([data[0, :5], data[1], data[2, :5]], (-1, 0, 1), (6, 6))
    x = x.rebuild(x.entries, jnp.asarray(1e8))
    for axis in (-1, -2, None):
        assert_close(as_jax(sa.var(x, axis=axis)), np.var(np.asarray(x.to_jax()), axis=axis), str(axis), rtol=1e-6)


# ---- cumulative reductions and differences -----------------------------------------------------------------------

CUMULATIVE = ["dense", "fill", "fill 1", "identity background", "diagonal", "banded wide", "banded tall", "no batch"]


@pytest.mark.parametrize("case", CUMULATIVE)
@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_cumulative_reductions_equal_numpy(name, case, rng):
    for dtype in ("float64", "int8", "uint16", "bool") if case in ("diagonal", "fill 1") else ("float64",):
        x = MAKE[case](rng, dtype)
        matrix = np.asarray(x.to_jax())
        batch = x.ndim - x.core_ndim
        for axis, initial in itertools.product(range(-x.ndim, x.ndim), (False, True)):
            result = getattr(sa, name)(x, axis=axis, include_initial=initial)
            want = getattr(np, name)(matrix, axis=axis, include_initial=initial)
            assert result.dtype == want.dtype
            assert_close(as_jax(result), want, f"{axis} {initial}")
            if axis % x.ndim >= batch:
                assert type(result) is sa.Dense
            else:
                assert type(result) is type(x)
                if x.stores_entries:
                    one = name == "cumulative_prod" and initial
                    assert (result.background is None) == (x.background is None and not one)


def test_cumulative_reductions_of_one_dimension_need_no_axis():
    x = sa.asarray(np.array([1, 2, 3], "int8"))
    result = sa.cumulative_sum(x, dtype=sa.float32)
    assert result.dtype == np.float32
    assert list(np.asarray(result)) == [1, 3, 6]


def test_differences_of_bands(rng):
    """Along both axes of the matrices, with a background and without."""
    arrays = {case: MAKE[case](rng, "float64") for case in ("tridiagonal", "banded tall", "diagonal background")}
    differences = jax.jit(lambda arrays: {c: [sa.diff(x, axis=axis) for axis in (-2, -1)] for c, x in arrays.items()})
    for case, found in differences(arrays).items():
        for axis, result in zip((-2, -1), found, strict=True):
            assert_close(as_jax(result), np.diff(np.asarray(arrays[case].to_jax()), axis=axis), f"{case} {axis}")


@pytest.mark.parametrize("case", MAKE)
def test_differences_equal_numpy(case, rng):
    x = MAKE[case](rng, "float64")
    matrix = np.asarray(x.to_jax())
    todo = list(itertools.product(range(x.ndim), (0, 1, 2, 5)))
    with sa.densify("error"):
        results = jax.jit(lambda x: [sa.diff(x, axis=axis, n=n) for axis, n in todo])(x)
    for (axis, n), result in zip(todo, results, strict=True):
        want = np.diff(matrix, axis=axis, n=n)
        assert_close(as_jax(result), want, f"{axis} {n}")
        if type(x) in (sa.Dense, sa.Fill) or axis < x.ndim - 2 or n == 0:
            assert type(result) is type(x)
        else:
            assert isinstance(result, sa.Banded)
        if x.stores_entries:
            assert (result.background is None) == (x.background is None)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "complex64"])
def test_differences_keep_the_dtype(dtype, rng):
    for case in ("dense", "fill", "tridiagonal", "diagonal background"):
        x = MAKE[case](rng, dtype)
        result = sa.diff(x)
        assert result.dtype == dtype
        assert_close(as_jax(result), np.diff(np.asarray(x.to_jax())), case)


def test_second_differences_of_the_identity_are_banded():
    result = sa.diff(sa.eye(6), n=2, axis=-2)
    assert type(result) is sa.Banded
    assert result.offsets == (0, 1, 2)
    assert [list(np.asarray(d)) for d in result.diagonals] == [[1.0] * 4, [-2.0] * 4, [1.0] * 4]


def test_differences_with_neighbours(rng):
    x, before, after = (np.asarray(values(rng, shape, "float64")) for shape in ((3, 4), (3, 2), (3, 1)))
    got = sa.diff(sa.asarray(x), prepend=sa.asarray(before), append=sa.asarray(after))
    assert_close(as_jax(got), np.diff(x, prepend=before, append=after), "both")
    got = sa.diff(sa.asarray(x), n=2, append=sa.asarray(after))
    assert_close(as_jax(got), np.diff(x, n=2, append=after), "append")
    got = sa.diff(sa.asarray(x), n=0, append=sa.asarray(after))
    assert got.shape == (3, 5)


# ---- derivatives -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std"])
def test_derivatives_are_those_of_the_dense_array(name, rng):
    for case, axes in (("banded wide", (-2, None)), ("identity background", (0, (0, -1)))):
        x = MAKE[case](rng, "float64")
        for axis in axes:

            def structured(x, axis=axis):
                return jnp.sum(jnp.cos(as_jax(getattr(sa, name)(x, axis=axis))))

            def dense(x, axis=axis):
                return jnp.sum(jnp.cos(getattr(jnp, name)(x.to_jax(), axis=axis)))

            got, want = jax.jit(lambda x: (jax.grad(structured)(x), jax.grad(dense)(x)))(x)
            for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
                assert_close(g, np.where(np.isfinite(w), w, g), f"{case} {axis}")


# ---- memory ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "diff"])
def test_memory_is_what_is_stored(name):
    n = 10**6
    spec = jax.ShapeDtypeStruct((n,), "float64")
    off = jax.ShapeDtypeStruct((n - 1,), "float64")
    x = sa.Banded.make((off, spec, off, jax.ShapeDtypeStruct((), "float64")), ((-1, 0, 1), (n, n)))
    f = getattr(sa, name)
    for axis in (-1, -2) if name == "diff" else (-1, -2, None):
        memory = jax.jit(lambda x, axis=axis: f(x, axis=axis)).lower(x).compile().memory_analysis()
        assert memory.temp_size_in_bytes <= 3.1 * 8 * n, (axis, memory.temp_size_in_bytes)


def test_a_reduction_of_a_million_columns_runs():
    n = 10**6
    x = sa.tridiagonal(jnp.ones(n - 1), jnp.full(n, 2.0), jnp.ones(n - 1))
    with sa.densify("error"):
        assert float(sa.sum(x)) == 4 * n - 2
        assert float(sa.max(sa.var(x, axis=-1))) == pytest.approx(6 / n - (4 / n) ** 2)


# ---- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["dense", "fill", "identity", "tridiagonal"])
def test_bad_arguments_raise(case, rng):
    x = MAKE[case](rng, "float64")
    for name in REDUCTIONS:
        f = getattr(sa, name)
        for axis in (x.ndim, -x.ndim - 1, (0, x.ndim)):
            with pytest.raises(np.exceptions.AxisError):
                f(x, axis=axis)
        with pytest.raises(ValueError, match="twice"):
            f(x, axis=(0, -x.ndim))
        with pytest.raises(TypeError, match="axis must be an integer"):
            f(x, axis=0.5)
    for name in ("cumulative_sum", "cumulative_prod", "diff"):
        with pytest.raises(np.exceptions.AxisError):
            getattr(sa, name)(x, axis=x.ndim)
    for name in ("cumulative_sum", "cumulative_prod"):
        with pytest.raises(ValueError, match="axis must be given"):
            getattr(sa, name)(x)
    with pytest.raises(ValueError, match="n must not be negative"):
        sa.diff(x, n=-1)
    with pytest.raises(ValueError, match="append must have the shape of x"):
        sa.diff(x, append=sa.asarray(np.ones(x.shape[1:])))


def test_extrema_of_nothing_and_of_complex_numbers_raise(rng):
    for name in ("max", "min"):
        f = getattr(sa, name)
        for case, axis in (("no rows", -2), ("no rows", None), ("no batch", 0), ("no fill", -2)):
            with pytest.raises(ValueError, match="must have elements along the reduced axes"):
                f(MAKE[case](rng, "float64"), axis=axis)
        assert f(MAKE["no rows"](rng, "float64"), axis=-1).shape == (2, 0)
        with pytest.raises(TypeError, match="real dtype"):
            f(MAKE["tridiagonal"](rng, "complex64"))


def test_dtypes_that_cannot_hold_the_values_raise(rng):
    with pytest.raises(TypeError, match="dtype"):
        sa.sum(MAKE["identity"](rng, "complex128"), dtype=sa.float64)
    with pytest.raises(TypeError, match="dtype"):
        sa.prod(MAKE["identity"](rng, "float64"), dtype=sa.bool)
    with pytest.raises(TypeError, match="correction"):
        sa.var(MAKE["identity"](rng, "float64"), correction="1")
    with pytest.raises(TypeError, match="numeric"):
        sa.diff(MAKE["identity"](rng, "bool"))


def test_python_scalars_are_arrays_of_no_dimensions():
    assert sa.sum(True).dtype == np.int64
    assert float(sa.mean(3)) == 3.0
    assert bool(sa.all(sa.asarray(2.0)))


@pytest.mark.parametrize("function", [sa.cumulative_sum, sa.cumulative_prod])
@pytest.mark.parametrize("x", [sa.Diagonal(np.ones((2, 3), np.uint8)), sa.Toeplitz(np.ones((2, 3), np.uint8))])
def test_cumulative_reductions_of_a_batch_axis_have_the_dtype_asked_for(function, x):
    for dtype in (np.uint8, np.uint16, np.float32):
        for initial in (False, True):
            got = function(x, axis=0, dtype=dtype, include_initial=initial)
            assert type(got) is type(x) and got.dtype == dtype
            want = np.asarray(function(sa.asarray(np.asarray(x)), axis=0, dtype=dtype, include_initial=initial))
            np.testing.assert_array_equal(np.asarray(got), want)
    assert function(x, axis=0).dtype == np.uint64


WITHOUT_ELEMENTS = {
    "BlockDiagonal, no rows": lambda d: sa.BlockDiagonal([np.zeros((0, 2), d), np.zeros((0, 3), d)]),
    "BlockDiagonal, no columns": lambda d: sa.BlockDiagonal([np.zeros((1, 0), d), np.zeros((2, 0), d)]),
    "Diagonal, no rows": lambda d: sa.Diagonal(np.zeros(0, d), shape=(0, 3)),
    "Diagonal, no columns": lambda d: sa.Diagonal(np.zeros(0, d), shape=(3, 0)),
    "Identity": lambda d: sa.Identity(0, np.dtype(d).type(1)),
    "Toeplitz": lambda d: sa.Toeplitz(np.zeros(3, d))[:0],
    "Hankel": lambda d: sa.Hankel(np.zeros(3, d), np.zeros(3, d))[:0],
    "Circulant": lambda d: sa.Circulant(np.zeros(0, d)),
    "LowRank": lambda d: sa.LowRank(np.zeros((0, 0), d), np.zeros((3, 0), d)),
    "Kronecker": lambda d: sa.Kronecker(np.zeros((0, 2), d), np.zeros((2, 2), d)),
    "Sparse": lambda d: sa.Sparse(np.zeros(0, d), (np.zeros(0, int), np.zeros(0, int)), (0, 3)),
    "Fill": lambda d: sa.Fill(np.dtype(d).type(2), (0, 3)),
}


@pytest.mark.filterwarnings("ignore:Degrees of freedom", "ignore:invalid value", "ignore:Mean of empty")
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("name", WITHOUT_ELEMENTS)
def test_deviations_without_elements(name, axis, dtype):
    """They have real data types, of the precision of the array."""
    x = WITHOUT_ELEMENTS[name](dtype)
    a = np.zeros(x.shape, dtype)
    for function, oracle in ((sa.var, np.var), (sa.std, np.std)):
        for keepdims in (False, True):
            result, expected = function(x, axis=axis, keepdims=keepdims), oracle(a, axis=axis, keepdims=keepdims)
            assert result.dtype == np.float32
            np.testing.assert_array_equal(as_jax(result), expected)


@pytest.mark.parametrize("make", [sa.Symmetric, sa.Triangular, sa.asarray], ids=lambda f: f.__name__)
@pytest.mark.parametrize("axis", [-1, -2])
def test_largest_elements_are_found_in_one_pass(make, axis):
    """Two reductions of an array that is computed make XLA build trees of windows, which take five times as long."""
    x = make(np.ones((400, 400)))
    assert "reduce-window" not in jax.jit(lambda x: as_jax(sa.max(x, axis=axis))).lower(x).compile().as_text()


@pytest.mark.parametrize("value", [1, 3, 0.7, 1e300, -1e-300, 0.1 + 0.3j], ids=str)
def test_equal_elements_have_no_variance(value):
    for x in (sa.Fill(value, (100, 90)), sa.Fill(np.full((2, 3), value), (100, 90))):
        for axis in (-1, -2, (-1, -2)):
            assert not np.asarray(sa.std(x, axis=axis)).any()
            assert not np.asarray(jax.jit(lambda x, axis=axis: as_jax(sa.var(x, axis=axis)))(x)).any()
    assert np.isnan(sa.var(sa.Fill(np.inf, (3, 3))))
    stack = sa.Fill(np.array([1.0, 3.0]), (2, 2))
    assert float(sa.var(stack)) == 1.0
