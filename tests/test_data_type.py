"""Casting and questions about dtypes, the constants, and what the namespace says about itself."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa

DTYPES = [
    sa.bool, sa.int8, sa.int16, sa.int32, sa.int64, sa.uint8, sa.uint16, sa.uint32, sa.uint64, sa.float32, sa.float64,
    sa.complex64, sa.complex128,
]  # fmt: skip
STRUCTURES = [
    sa.asarray([[1.0, 0.0], [2.5, -3.0]]),
    sa.Fill(2.5, (2, 3)),
    sa.Identity(3, 1.5),
    sa.Diagonal([[1.0, 2.0], [0.0, 4.0]]),
    sa.tridiagonal([1.0], [0.0, 3.0], [4.0]),
    sa.exp(sa.Diagonal([1.0, 2.0])),
]


def name_of(x):
    return type(x).__name__ if isinstance(x, sa.Array) else str(x)


class TestAstype:
    @pytest.mark.parametrize("x", STRUCTURES, ids=name_of)
    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    def test_keeps_structure(self, x, dtype):
        y = sa.astype(x, dtype)
        assert type(y) is type(x)
        assert y.dtype == dtype
        if dtype.dtype.kind != "u":  # negative numbers have no place there
            np.testing.assert_array_equal(np.asarray(y), np.asarray(x).astype(dtype.dtype))
        assert (getattr(y, "background", None) is None) == (getattr(x, "background", None) is None)

    @pytest.mark.parametrize(("source", "target"), list(itertools.product(DTYPES, DTYPES)), ids=str)
    def test_all_pairs(self, source, target):
        host = np.asarray([0, 1, 2, 100]).astype(source.dtype)
        x = sa.asarray(host)
        if source.dtype.kind == "c" and target.dtype.kind not in "cb":
            with pytest.raises(TypeError, match="use real"):
                sa.astype(x, target)
        else:
            np.testing.assert_array_equal(np.asarray(sa.astype(x, target)), host.astype(target.dtype))

    def test_truth_of_complex_numbers(self):
        x = sa.Diagonal([0.0 + 1j, 0.0, 2.0])
        y = sa.astype(x, sa.bool)
        assert type(y) is sa.Diagonal
        np.testing.assert_array_equal(np.asarray(y), np.asarray(x).astype(bool))

    def test_copy(self):
        x = sa.ones(3)
        assert sa.astype(x, sa.float64, copy=False) is x
        y = sa.astype(x, sa.float64)
        x[0] = 5.0
        assert y is not x
        assert float(y[0]) == 1.0

    def test_other_arrays_and_bad_arguments(self):
        assert isinstance(sa.astype(np.ones(2), sa.float32), sa.Dense)
        assert isinstance(sa.astype(jnp.ones(2), sa.float32), jax.Array)
        with pytest.raises(TypeError, match="dtype"):
            sa.astype(sa.ones(2), "no dtype")
        with pytest.raises(TypeError, match="dtype"):
            sa.astype(sa.ones(2), None)
        with pytest.raises(TypeError, match="device"):
            sa.astype(sa.ones(2), sa.float32, device="abacus")

    def test_under_transformations(self):
        grad = jax.grad(lambda d: as_jax(sa.sum(sa.astype(sa.Diagonal(d), sa.float32))))(jnp.ones(3))
        np.testing.assert_array_equal(grad, np.ones(3))
        y = jax.jit(lambda x: sa.astype(x, sa.float64, copy=False))(sa.Diagonal([1.0, 2.0]))
        assert type(y) is sa.Diagonal

    def test_without_x64(self):
        with jax.enable_x64(False), pytest.raises(ValueError, match="64-bit mode"):
            sa.astype(sa.ones(2, dtype=sa.float32), sa.float64)


class TestResultType:
    @pytest.mark.parametrize(("a", "b"), list(itertools.product(DTYPES, DTYPES)), ids=str)
    def test_pairs(self, a, b):
        result = sa.result_type(a, b)
        assert isinstance(result, np.dtype)
        assert result == jnp.promote_types(a.dtype, b.dtype)
        assert sa.result_type(sa.ones(2, dtype=a), b) == result

    @pytest.mark.parametrize(
        ("args", "expected"),
        [
            ((sa.float32, 1.0), "float32"), ((sa.float32, 1j), "complex64"), ((sa.float64, 1j), "complex128"),
            ((sa.int8, 1), "int8"), ((sa.int8, True), "int8"), ((sa.bool, True), "bool"),
            ((sa.float32, np.float64(1)), "float64"),
            ((sa.int8, np.int16(1)), "int16"), ((1, 2.0), "float64"), ((True,), "bool"), ((jnp.float32, 1), "float32"),
            ((np.ones(2, np.float32), sa.int64), "float32"), ((sa.int16, 1.0), "float64"),
            ((jnp.asarray(3.0), sa.float32), "float32"),
        ],
    )  # fmt: skip
    def test_scalars(self, args, expected):
        assert sa.result_type(*args) == np.dtype(expected)
        assert sa.result_type(*args[::-1]) == np.dtype(expected)

    def test_no_element_is_looked_at(self):
        huge = sa.Fill(1.0, (10**6, 10**6))
        with sa.densify("error"), sa.record() as log:
            assert sa.result_type(huge, sa.Identity(10**9), 1.0) == sa.float64
            assert np.result_type(huge, np.float32) == np.float64
        assert not log.events

    def test_errors(self):
        with pytest.raises(ValueError, match="at least one"):
            sa.result_type()
        with pytest.raises(TypeError, match="argument 2"):
            sa.result_type(sa.float32, "x")
        with pytest.raises(TypeError, match="result_type: argument 1 must be a numeric or boolean dtype, got 'S3'"):
            sa.result_type("S3")


@pytest.mark.parametrize(("a", "b"), list(itertools.product(DTYPES, DTYPES)), ids=str)
def test_can_cast(a, b):
    assert sa.can_cast(a, b) is (jnp.promote_types(a.dtype, b.dtype) == b.dtype)
    assert sa.can_cast(sa.ones(1, dtype=a), b) is sa.can_cast(a.dtype, b.dtype)


def test_can_cast_needs_dtypes():
    with pytest.raises(TypeError, match="to must be a dtype"):
        sa.can_cast(sa.float32, None)


@pytest.mark.parametrize("dtype", [sa.float32, sa.float64, sa.complex64, sa.complex128, jnp.bfloat16], ids=str)
def test_finfo(dtype):
    info, expected = sa.finfo(dtype), jnp.finfo(np.dtype(getattr(dtype, "dtype", dtype)))
    for name in ("eps", "max", "min", "smallest_normal"):
        assert type(getattr(info, name)) is float
        assert getattr(info, name) == float(getattr(expected, name))
    assert type(info.bits) is int
    assert info.dtype == np.dtype(expected.dtype)
    assert sa.finfo(sa.ones(2, dtype=dtype)) == info


@pytest.mark.parametrize("dtype", DTYPES[1:9], ids=str)
def test_iinfo(dtype):
    info, expected = sa.iinfo(dtype), np.iinfo(dtype.dtype)
    assert (info.bits, info.max, info.min, info.dtype) == (expected.bits, expected.max, expected.min, dtype.dtype)
    assert sa.iinfo(sa.ones(2, dtype=dtype)) == info


def test_info_of_the_wrong_kind():
    with pytest.raises(TypeError, match="finfo"):
        sa.finfo(sa.int8)
    with pytest.raises(TypeError, match="iinfo"):
        sa.iinfo(sa.float32)
    with pytest.raises(TypeError, match="iinfo"):
        sa.iinfo(sa.bool)


KINDS = {
    "bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
    "complex floating": "c", "numeric": "iufc",
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_isdtype(dtype):
    for kind, letters in KINDS.items():
        assert sa.isdtype(dtype, kind) is (dtype.dtype.kind in letters)
        assert sa.isdtype(dtype.dtype, kind) is (dtype.dtype.kind in letters)
        assert sa.isdtype(dtype, (kind, dtype)) is True
    for other in DTYPES:
        assert sa.isdtype(dtype, other) is (dtype is other)


def test_isdtype_errors():
    with pytest.raises(ValueError, match="kind"):
        sa.isdtype(sa.float32, "floating")
    with pytest.raises(ValueError, match="kind"):
        sa.isdtype(sa.float32, ("real floating", "floating"))
    with pytest.raises(TypeError, match="dtype"):
        sa.isdtype(sa.ones(3), "bool")


def test_isdtype_of_dtypes_that_are_off():
    with jax.enable_x64(False):
        assert not sa.isdtype(sa.float32, sa.float64)


def test_constants():
    assert (sa.e, sa.pi, sa.inf, sa.newaxis) == (math.e, math.pi, math.inf, None)
    assert math.isnan(sa.nan)


class TestInspection:
    def test_dtypes(self):
        info = sa.__array_namespace_info__()
        assert list(info.dtypes()) == [str(d) for d in DTYPES]
        for kind, letters in KINDS.items():
            for name, dtype in info.dtypes(kind=kind).items():
                assert isinstance(dtype, np.dtype)
                assert dtype.name == name
                assert dtype.kind in letters
        assert set(info.dtypes(kind=("bool", "complex floating"))) == {"bool", "complex64", "complex128"}
        # scikit-learn looks x.dtype up in such a dict
        assert {d: n for n, d in info.dtypes().items()}[sa.ones(1, dtype=sa.float32).dtype] == "float32"
        with pytest.raises(ValueError, match="kind"):
            info.dtypes(kind="floating")

    def test_without_x64(self):
        info = sa.__array_namespace_info__()
        with jax.enable_x64(False):
            assert set(info.dtypes(kind="numeric")) == {
                "int8", "int16", "int32", "uint8", "uint16", "uint32", "float32", "complex64"
            }  # fmt: skip
            assert info.default_dtypes()["real floating"] == np.float32

    def test_devices(self):
        info = sa.__array_namespace_info__()
        assert info.default_device() in info.devices()
        assert None not in info.devices()
        for device in info.devices():
            assert sa.zeros(2, device=device).device == device
            assert sa.asarray([1.0], device=device).device == device
            assert sa.eye(2, device=device).device == device
            assert info.default_dtypes(device=device)["integral"] == np.int64

    def test_capabilities(self):
        capabilities = sa.__array_namespace_info__().capabilities()
        assert capabilities["boolean indexing"] is True
        assert capabilities["data-dependent shapes"] is True
        assert capabilities["max dimensions"] == 64
