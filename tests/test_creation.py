"""Creation functions against NumPy, and what they must refuse."""

import array
import collections
import fractions

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax

import structarrays as sa

INTEGERS = [sa.int8, sa.int16, sa.int32, sa.int64, sa.uint8, sa.uint16, sa.uint32, sa.uint64]


def same(x, expected):
    """Exactly this NumPy array, as one of ours."""
    assert isinstance(x, sa.Array)
    expected = np.asarray(expected)
    assert x.dtype == expected.dtype
    assert x.shape == expected.shape
    assert not getattr(x.to_jax(), "weak_type", False)
    np.testing.assert_array_equal(np.asarray(x), expected)


class TestAsarray:
    @pytest.mark.parametrize(
        "obj",
        [
            True, 3, -2.5, 1 + 2j, [], [[]], [1, 2], [True, 2], [1, 2.5], [True, False], [1.0, 2j], [[1, 2], [3, 4]],
            ((1, 2), [3, 4]), range(4), np.float32(2.5), np.arange(3, dtype=np.int8), np.eye(3)[::2, ::-1], np.array(2),
            [np.float32(1), np.float32(2)], [np.arange(2), np.arange(2)], memoryview(b"abc"), array.array("d", [1.0, 2.0]),
            collections.namedtuple("Pair", "a b")(1.0, 2.0), [[np.uint64(2**63)]],
        ],
    )  # fmt: skip
    def test_what_numpy_takes(self, obj):
        same(sa.asarray(obj), np.asarray(obj))

    @pytest.mark.parametrize("dtype", [*INTEGERS, sa.float32, sa.float64, sa.complex64, sa.complex128, sa.bool])
    def test_dtype(self, dtype):
        same(sa.asarray([0, 1, 5], dtype=dtype), np.asarray([0, 1, 5], dtype=dtype.dtype))
        same(sa.asarray(np.asarray([0, 1, 5]), dtype=dtype), np.asarray([0, 1, 5], dtype=dtype.dtype))
        same(sa.asarray(sa.asarray([0, 1, 5]), dtype=dtype), np.asarray([0, 1, 5], dtype=dtype.dtype))

    def test_large_unsigned_integers_need_their_dtype(self):
        same(sa.asarray([2**64 - 1, 0], dtype=sa.uint64), np.asarray([2**64 - 1, 0], dtype=np.uint64))
        same(sa.asarray([2**70], dtype=sa.float64), np.asarray([2.0**70]))

    @pytest.mark.parametrize(
        ("obj", "dtype"),
        [(2**63, None), ([2**63], None), ([2**63, -1], None), (2**70, None), ([[1, 2**70]], None), (300, sa.uint8),
         ([-1], sa.uint64), (2**31, sa.int32)],
    )  # fmt: skip
    def test_integers_that_do_not_fit(self, obj, dtype):
        with pytest.raises(OverflowError, match="does not fit into"):
            sa.asarray(obj, dtype=dtype)

    @pytest.mark.parametrize(
        "obj", ["abc", b"abc", None, [None], ["1.5"], [1, "2"], object(), {1: 2}, np.array(["a"]), np.array([object()]),
                np.array(["2020-01-01"], dtype="datetime64[D]"), [fractions.Fraction(1, 2)], jax.random.key(0)]
    )  # fmt: skip
    def test_what_is_no_number(self, obj):
        with pytest.raises(TypeError, match="asarray: obj"):
            sa.asarray(obj)

    def test_strings_are_not_parsed(self):
        with pytest.raises(TypeError, match="asarray: obj"):
            sa.asarray(["1.5"], dtype=sa.float64)

    def test_ragged(self):
        with pytest.raises(ValueError, match="asarray: obj"):
            sa.asarray([[1, 2], [3]])

    def test_complex_to_real(self):
        for obj in (1j, [1j], np.array([1j]), sa.asarray([1j])):
            with pytest.raises(TypeError, match="imag"):
                sa.asarray(obj, dtype=sa.float64)

    @pytest.mark.parametrize(
        "x",
        [
            sa.ones(3),
            sa.eye(3),
            sa.Diagonal([1.0, 2.0]),
            sa.tridiagonal([1.0], [2.0, 3.0], [4.0]),
            sa.Fill(1.0, (2, 3)),
        ],
    )
    def test_our_arrays_keep_structure_and_identity(self, x):
        assert sa.asarray(x) is x
        assert sa.asarray(x, dtype=x.dtype, copy=False, device=x.device) is x
        copy = sa.asarray(x, copy=True)
        assert copy is not x
        assert type(copy) is type(x)
        same(copy, np.asarray(x))
        cast = sa.asarray(x, dtype=sa.float32)
        assert type(cast) is type(x)
        same(cast, np.asarray(x, dtype=np.float32))

    def test_a_copy_is_independent(self):
        x = sa.asarray([1.0, 2.0])
        alias, copy = sa.asarray(x), sa.asarray(x, copy=True)
        x[0] = 9.0
        assert float(alias[0]) == 9.0
        assert float(copy[0]) == 1.0

    def test_numpy_memory_is_not_shared(self):
        source = np.zeros(16)  # aligned, so that JAX would share it
        x = sa.asarray(source)
        source[0] = 9.0
        same(x, np.zeros(16))

    @pytest.mark.parametrize("obj", [1.0, [1.0], np.ones(3), memoryview(b"abc")])
    def test_no_copy_of_what_others_can_write_to(self, obj):
        with pytest.raises(ValueError, match="copy must not be False"):
            sa.asarray(obj, copy=False)

    def test_no_copy_needs_nothing_to_change(self):
        with pytest.raises(ValueError, match="copy must not be False"):
            sa.asarray(sa.ones(3), dtype=sa.float32, copy=False)
        assert sa.asarray(jnp.ones(3), copy=False).shape == (3,)

    def test_jax_arrays_lose_weak_types(self):
        same(sa.asarray(jnp.asarray(3.0)), np.float64(3.0))

    def test_sequences_of_arrays(self):
        parts = [sa.asarray(1.0), jnp.asarray(2.0), np.float64(3.0), 4]
        same(sa.asarray(parts), np.asarray([1.0, 2.0, 3.0, 4.0]))
        same(sa.asarray([sa.eye(2), sa.ones((2, 2))]), np.stack([np.eye(2), np.ones((2, 2))]))

    def test_sequences_of_traced_values(self):
        f = jax.jit(lambda x: sa.asarray([[x[0], 1], (2.0, x[1])]))
        same(f(sa.asarray([5.0, 6.0])), np.asarray([[5.0, 1.0], [2.0, 6.0]]))

    @pytest.mark.parametrize("constant", [[1.0, 2.0], np.ones(2), jnp.ones(2), sa.asarray([1.0, 2.0])])
    def test_traced_values_can_be_written_into_constants(self, constant):
        @jax.jit
        def f(v):
            x = sa.asarray(constant, copy=True) if isinstance(constant, sa.Array) else sa.asarray(constant)
            x[0] = v
            return x

        assert float(f(7.0)[0]) == 7.0

    @pytest.mark.parametrize(
        "make", [sa.zeros, sa.ones, sa.empty, lambda n: sa.full(n, 2.0), lambda n: sa.arange(1.0 * n)]
    )
    def test_traced_values_can_be_written_into_new_arrays(self, make):
        @jax.jit
        def f(v):
            x = make(3)
            x[1] = v
            return x

        assert float(f(7.0)[1]) == 7.0

    def test_bad_device(self):
        with pytest.raises(TypeError, match="device"):
            sa.asarray(1.0, device="abacus")

    def test_without_x64(self):
        with jax.enable_x64(False):
            assert sa.asarray([1, 2]).dtype == np.int32
            assert sa.asarray(1.0).dtype == np.float32
            assert sa.asarray(1j).dtype == np.complex64
            assert sa.asarray(np.ones(3)).dtype == np.float32
            with pytest.raises(ValueError, match="64-bit mode"):
                sa.asarray(1.0, dtype=sa.float64)
            with pytest.raises(OverflowError):
                sa.asarray(2**31)


class TestFilled:
    @pytest.mark.parametrize("shape", [(), 3, (2, 3), [2, 0], (np.int64(4), 1)])
    @pytest.mark.parametrize("dtype", [None, sa.int8, sa.complex64, sa.bool])
    def test_shape_and_dtype(self, shape, dtype):
        like = np.dtype(float) if dtype is None else dtype.dtype
        same(sa.zeros(shape, dtype=dtype), np.zeros(shape, like))
        same(sa.ones(shape, dtype=dtype), np.ones(shape, like))
        assert sa.empty(shape, dtype=dtype).dtype == like

    def test_large_ones_are_made_on_the_device(self):
        same(sa.ones((300, 300)), np.ones((300, 300)))
        same(sa.full((300, 300), 7), np.full((300, 300), 7))

    @pytest.mark.parametrize("value", [True, 3, 2.5, 1j, np.float32(0.5)])
    def test_full(self, value):
        same(sa.full((2, 2), value), np.full((2, 2), value))

    def test_full_of_arrays(self):
        same(sa.full((2,), sa.asarray(3.0)), np.full(2, 3.0))
        same(jax.jit(lambda v: sa.full((2,), v))(sa.asarray(3.0)), np.full(2, 3.0))
        same(sa.full((2,), 3, dtype=sa.float32), np.full(2, 3, np.float32))
        with pytest.raises(ValueError, match="fill_value"):
            sa.full((2,), sa.ones(2))
        with pytest.raises(OverflowError, match="fill_value"):
            sa.full((2,), 300, dtype=sa.uint8)
        with pytest.raises(TypeError, match="fill_value"):
            sa.full((2,), "x")

    @pytest.mark.parametrize("make", [sa.zeros, sa.ones, sa.empty, lambda s: sa.full(s, 1)])
    def test_bad_shapes(self, make):
        with pytest.raises(ValueError, match="negative"):
            make((2, -1))
        with pytest.raises(TypeError, match="shape"):
            make(2.5)

    @pytest.mark.parametrize("x", [sa.ones((2, 3), dtype=sa.int16), sa.eye(3), sa.Fill(2, (2, 2))])
    def test_like(self, x):
        host = np.asarray(x)
        same(sa.zeros_like(x), np.zeros_like(host))
        same(sa.ones_like(x), np.ones_like(host))
        same(sa.full_like(x, 5), np.full_like(host, 5))
        same(sa.full_like(x, 5, dtype=sa.float32), np.full_like(host, 5, dtype=np.float32))
        assert sa.empty_like(x).shape == x.shape
        assert type(sa.zeros_like(x)) is sa.Dense


class TestRanges:
    @pytest.mark.parametrize(
        "args", [(5,), (2, 7), (7, 2), (7, 2, -2), (0, 10, 3), (0.0,), (1.5, 4), (0, 1, 0.25), (5.0, 1, -1.5), (3, 3)]
    )
    def test_arange(self, args):
        same(sa.arange(*args), np.arange(*args))

    @pytest.mark.parametrize("dtype", [*INTEGERS, sa.float32, sa.float64])
    def test_dtypes(self, dtype):
        same(sa.arange(2, 20, 3, dtype=dtype), np.arange(2, 20, 3, dtype=dtype.dtype))

    def test_large_values(self):
        same(sa.arange(2**64 - 3, 2**64 - 1, dtype=sa.uint64), np.array([2**64 - 3, 2**64 - 2], dtype=np.uint64))
        same(sa.arange(-(2**63), -(2**63) + 2), np.array([-(2**63), -(2**63) + 1]))

    @pytest.mark.parametrize("args", [(70000,), (70000, 0, -1), (0.0, 70000.0), (0, 7000, 0.1)])
    def test_on_the_host_and_on_the_device_alike(self, args):
        large = sa.arange(*args)
        expected = args[0] * (len(args) > 1) + np.arange(large.shape[0]) * (args[2] if len(args) == 3 else 1)
        np.testing.assert_array_equal(np.asarray(large), expected)
        assert large.dtype == np.arange(*args).dtype
        np.testing.assert_array_equal(np.asarray(jax.jit(lambda: sa.arange(*args))()), expected)

    def test_errors(self):
        with pytest.raises(ValueError, match="step"):
            sa.arange(0, 5, 0)
        with pytest.raises(ValueError, match="must be finite"):
            sa.arange(0.0, float("inf"))
        with pytest.raises(TypeError, match="start"):
            sa.arange(1j, 3)
        with pytest.raises(OverflowError):
            sa.arange(0, 300, 100, dtype=sa.int8)

    @pytest.mark.parametrize("args", [(0, 1, 5), (1.0, -1.0, 4), (0, 10, 1), (0, 10, 0), (1j, 2.0, 3), (3.0, 3.0, 4)])
    @pytest.mark.parametrize("endpoint", [True, False])
    def test_linspace(self, args, endpoint):
        x, expected = sa.linspace(*args, endpoint=endpoint), np.linspace(*args, endpoint=endpoint)
        assert x.dtype == expected.dtype
        np.testing.assert_allclose(np.asarray(x), expected, rtol=1e-15, atol=1e-15)

    def test_linspace_is_differentiable(self):
        assert float(jax.grad(lambda s: as_jax(sa.sum(sa.linspace(s, 2.0, 5))))(1.0)) == pytest.approx(2.5)

    def test_linspace_errors(self):
        with pytest.raises(ValueError, match="num"):
            sa.linspace(0, 1, -1)
        with pytest.raises(TypeError, match="num"):
            sa.linspace(0, 1, 2.5)
        with pytest.raises(ValueError, match="start"):
            sa.linspace(sa.ones(2), 1, 3)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_meshgrid(indexing, count):
    axes = [np.arange(2), np.arange(3.0), np.arange(4, dtype=np.int8)][:count]
    result = sa.meshgrid(*map(sa.asarray, axes), indexing=indexing)
    assert type(result) is tuple
    for x, expected in zip(result, np.meshgrid(*axes, indexing=indexing), strict=True):
        same(x, expected)


def test_meshgrid_errors():
    with pytest.raises(ValueError, match="indexing"):
        sa.meshgrid(sa.arange(3), indexing="yx")
    with pytest.raises(ValueError, match="one dimension"):
        sa.meshgrid(sa.ones((2, 2)))


class TestMatrices:
    @pytest.mark.parametrize("shape", [(4,), (4, 4), (3, 5), (5, 3), (0,), (0, 3), (1, 1)])
    @pytest.mark.parametrize("k", [0, 1, -1, 3, -4, 9, -9])
    @pytest.mark.parametrize("dtype", [None, sa.int8, sa.bool, sa.complex64])
    def test_eye(self, shape, k, dtype):
        x = sa.eye(*shape, k=k, dtype=dtype)
        same(x, np.eye(*shape, k=k, dtype=np.dtype(float) if dtype is None else dtype.dtype))
        square = len(shape) == 1 or shape[0] == shape[1]
        assert type(x) is (sa.Banded if k else sa.Identity if square else sa.Diagonal)

    def test_eye_errors(self):
        with pytest.raises(ValueError, match="negative"):
            sa.eye(-1)
        with pytest.raises(TypeError, match="k must be"):
            sa.eye(2, k=0.5)

    @pytest.mark.parametrize("k", [-9, -2, -1, 0, 1, 2, 9])
    @pytest.mark.parametrize(
        "x",
        [
            sa.asarray(np.arange(1.0, 25).reshape(2, 3, 4)),
            sa.eye(4),
            sa.Diagonal([[1.0, 2.0], [3.0, 4.0]], shape=(2, 3)),
            sa.Banded([[1.0], [2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0]], (-2, -1, 0, 2), (3, 4)),
            sa.Fill(2.0, (3, 4)),
            sa.exp(sa.tridiagonal([1.0], [2.0, 3.0], [4.0])),
        ],
        ids=lambda x: type(x).__name__,
    )
    def test_triangles(self, x, k):
        for ours, numpys in ((sa.tril, np.tril), (sa.triu, np.triu)):
            same(ours(x, k=k), numpys(np.asarray(x), k))
            same(jax.jit(lambda x, f=ours: f(x, k=k))(x), numpys(np.asarray(x), k))

    def test_triangles_keep_structure(self):
        assert type(sa.tril(sa.eye(3))) is sa.Identity
        assert type(sa.triu(sa.eye(3), k=1)) is sa.Banded
        A = sa.tridiagonal([1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0])
        assert sa.tril(A).offsets == (-1, 0)
        assert sa.triu(A, k=1).offsets == (1,)
        with sa.densify("error"):
            sa.tril(A, k=-1)
            with pytest.raises(sa.DensifyError):
                sa.tril(sa.exp(A))

    def test_triangles_need_matrices(self):
        with pytest.raises(ValueError, match="two dimensions"):
            sa.tril(sa.ones(3))
        with pytest.raises(TypeError, match="k must be"):
            sa.triu(sa.ones((3, 3)), k=0.5)


class TestDlpack:
    @pytest.mark.parametrize("copy", [None, True])
    @pytest.mark.parametrize(
        "x",
        [
            np.arange(6.0), np.arange(6).reshape(2, 3).T, np.arange(12)[::3], np.arange(12)[::-1], np.array(2.5),
            np.zeros((0, 3)), np.array([True, False]), np.array([1j]), np.broadcast_to(np.arange(3), (2, 3)),
            np.frombuffer(b"abc", np.uint8),
        ],
    )  # fmt: skip
    def test_numpy(self, x, copy):
        same(sa.from_dlpack(x, copy=copy), x)

    def test_copies(self):
        source = np.zeros(64)
        x = sa.from_dlpack(source, copy=True)
        source[0] = 9.0
        assert float(x[0]) == 0.0

    def test_no_copy(self):
        same(sa.from_dlpack(np.arange(4.0), copy=False), np.arange(4.0))
        with pytest.raises(ValueError, match="copy must not be False"):
            sa.from_dlpack(np.arange(12)[::3], copy=False)
        shared = sa.from_dlpack(D := sa.Diagonal([1.0, 2.0]), copy=False)  # the dense form would be a copy
        assert type(shared) is sa.Diagonal and shared is not D and shared.diag is D.diag

    @pytest.mark.parametrize("x", [sa.ones((2, 3)), sa.eye(3), sa.Fill(1, (2, 2)), jnp.ones(3)])
    def test_round_trip(self, x):
        host = np.asarray(x)
        same(sa.from_dlpack(x), host)
        np.testing.assert_array_equal(np.from_dlpack(x), host)
        np.testing.assert_array_equal(jax.dlpack.from_dlpack(x), host)
        assert type(sa.from_dlpack(x)) is sa.Dense

    def test_writes_stay_here(self):
        x = sa.ones(3)
        y = sa.from_dlpack(x)
        y[0] = 5.0
        assert float(x[0]) == 1.0

    def test_structured_arrays_are_expanded_under_the_policy(self):
        for x in (sa.Diagonal([1.0, 2.0]), sa.Kronecker(np.eye(2), sa.Diagonal([1.0, 2.0]))):
            assert x.__dlpack_device__() == sa.ones(2).__dlpack_device__()
            np.testing.assert_array_equal(np.from_dlpack(x), np.asarray(x))
            with sa.densify("error"):
                assert x.__dlpack_device__() == sa.ones(2).__dlpack_device__()
                with pytest.raises(sa.DensifyError, match="__dlpack__ would expand"):
                    np.from_dlpack(x)

    def test_what_has_no_dlpack(self):
        with pytest.raises(AttributeError, match="__dlpack__"):
            sa.from_dlpack([1, 2])


def test_diag_is_numpys():
    """Code for the Array API calls it, although it is not in the standard (`scipy.interpolate.RBFInterpolator`)."""
    vector, matrix = np.array([1.0, 2.0, 3.0]), np.arange(12.0).reshape(3, 4)
    for k in (0, 1, -2, 5):
        for v in (vector, matrix):
            got = sa.diag(sa.asarray(v), k)
            np.testing.assert_array_equal(np.asarray(got), np.diag(v, k))
    assert type(sa.diag(vector)) is sa.Diagonal and type(sa.diag(vector, -1)) is sa.Banded
    with sa.densify("error"):
        n = 1_000_000
        line = sa.diag(sa.tridiagonal(np.ones(n - 1), np.arange(n) * 1.0, np.ones(n - 1)))
        assert line.shape == (n,) and float(line[7]) == 7.0
    np.testing.assert_array_equal(sa.ones((3, 3)) + sa.diag(vector), np.ones((3, 3)) + np.diag(vector))
    with pytest.raises(ValueError, match=r"diag: v must have one or two dimensions, got shape \(\)"):
        sa.diag(1.0)
    with pytest.raises(TypeError, match="diag: k"):
        sa.diag(vector, 0.5)


def test_arrays_like_others_are_not_committed_to_the_default_device():
    """The default device may be given by its platform."""
    with jax.default_device("cpu"):
        assert not as_jax(sa.zeros_like(sa.asarray([1.0, 2.0]))).committed
