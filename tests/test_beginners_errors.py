"""What somebody new to the library gets wrong: an error names the argument, what it was, and what is allowed."""

import jax
import numpy as np
import pytest

import structarrays as sa

ones = np.ones


def message(kind, call):
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sa.Banded(1.5, (0,)), "diagonals must be a sequence of arrays, got float"),
        (lambda: sa.Banded(None, (0,)), "diagonals must be a sequence of arrays, got NoneType"),
        (lambda: sa.Banded({0: ones(3)}, (0,)), "diagonals must be a sequence of arrays, got dict"),
        (lambda: sa.Banded([ones(3)], 0), "offsets must be a sequence of integers, got 0"),
        (lambda: sa.from_dia(ones((1, 2)), None, (2, 2)), "offsets must be a sequence of integers, got None"),
        (lambda: sa.from_dia(ones((1, 2)), [0.5], (2, 2)), "offsets must be a sequence of integers, got [0.5]"),
        (lambda: sa.BlockBanded(None, (0,)), "blocks must be a sequence of arrays, got NoneType"),
        (lambda: sa.tridiagonal("a", ones(2), ones(1)), "lower must be an array"),
        (lambda: sa.tridiagonal(ones(1), ones(2), None), "upper must be an array"),
        (lambda: sa.bidiagonal(ones(2), None), "off must be an array"),
    ],
)  # fmt: skip
def test_arguments_of_another_type(call, words):
    assert words in message(TypeError, call)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sa.Banded([-1.0, 2.0], (-1, 0), (5, 5)), "diagonals[0] must have at least one dimension, got a scalar; use np.full"),
        (lambda: sa.Banded([ones((2, 3)), ones((4, 2))], (0, 1)), "got (2,) of diagonals[0], (4,) of diagonals[1]"),
        (lambda: sa.tridiagonal(1.0, ones(2), ones(1)), "lower must be (..., 1), as diag has 2 elements, got shape ()"),
        (lambda: sa.tridiagonal(ones(2), ones(2), ones(1)), "lower must be (..., 1), as diag has 2 elements, got shape (2,)"),
        (lambda: sa.tridiagonal(ones(1), ones(2), ones(3)), "upper must be (..., 1), as diag has 2 elements, got shape (3,)"),
        (lambda: sa.tridiagonal(ones(1), ones(1), ones(0)), "lower must be (..., 0), as diag has 1 elements, got shape (1,)"),
        (lambda: sa.tridiagonal(ones(1), 2.0, ones(1)), "diag must have at least one dimension"),
        (lambda: sa.tridiagonal(ones((3, 1)), ones(2), ones((2, 1))), "got () of diag, (3,) of lower, (2,) of upper"),
        (lambda: sa.bidiagonal(ones(2), ones(2)), "off must be (..., 1), as diag has 2 elements, got shape (2,)"),
        (lambda: sa.block_tridiagonal(ones((2, 2, 2)), ones((2, 2, 2)), ones((1, 2, 2))), "lower must be (..., 1, 2, 2)"),
        (lambda: sa.block_tridiagonal(ones((1, 2, 2)), ones((2, 2, 2)), 1.0), "upper must be (..., 1, 2, 2)"),
    ],
)  # fmt: skip
def test_arguments_of_another_shape(call, words):
    assert words in message(ValueError, call)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_matrices_of_few_rows(n):
    few = max(0, n - 1)
    A = sa.tridiagonal(np.full(few, -1.0), np.full(n, 4.0), np.full(few, 2.0))
    expected = 4.0 * np.eye(n) - np.eye(n, k=-1) + 2.0 * np.eye(n, k=1)
    L = sa.bidiagonal(np.full(n, 4.0), np.full(few, 2.0))
    blocks = sa.block_tridiagonal(ones((few, 2, 2)), np.broadcast_to(9.0 * np.eye(2), (n, 2, 2)), ones((few, 2, 2)))
    whole = np.kron(np.eye(n, k=1) + np.eye(n, k=-1), ones((2, 2))) + 9.0 * np.eye(2 * n)
    for x, dense in ((A, expected), (L, np.tril(4.0 * np.eye(n) + 2.0 * np.eye(n, k=-1))), (blocks, whole)):
        b = np.arange(float(len(dense)))
        np.testing.assert_array_equal(np.asarray(x), dense)
        np.testing.assert_allclose(np.asarray(x @ b), dense @ b)
        np.testing.assert_allclose(np.asarray(sa.linalg.solve(x, b)), np.linalg.solve(dense, b))
        np.testing.assert_allclose(float(sa.linalg.slogdet(x).logabsdet), np.linalg.slogdet(dense)[1])
        np.testing.assert_allclose(np.asarray(sa.sum(x, axis=0)), dense.sum(axis=0))
    np.testing.assert_allclose(np.asarray(sa.linalg.cholesky(blocks)), np.linalg.cholesky(whole))
    assert sa.Banded([ones(n)], (0,), (n, n)).shape == (n, n)


def test_matrices_of_one_row_have_the_batch_and_the_dtype_of_all_arguments():
    A = sa.tridiagonal(ones((3, 0), np.complex64), ones(1, np.float32), ones((2, 1, 0), np.float32))
    assert A.shape == (2, 3, 1, 1) and A.dtype == np.complex64
    assert sa.bidiagonal(ones((3, 0)), ones((2, 1, 0))).shape == (2, 3, 0, 0)


def test_diagonals_that_are_made_one_by_one():
    A = sa.Banded((np.full(4 - abs(k), 1.0 + k) for k in (-1, 0)), (-1, 0))
    np.testing.assert_array_equal(np.asarray(A), np.eye(4))


def test_diag_takes_its_arguments_by_name_as_numpy_does():
    np.testing.assert_array_equal(np.asarray(sa.diag(ones(3), k=-1)), np.diag(ones(3), k=-1))
    np.testing.assert_array_equal(np.asarray(sa.diag(v=sa.ones(3))), np.diag(v=ones(3)))
    np.testing.assert_array_equal(np.asarray(sa.tridiagonal(ones(2), 2 * ones(3), ones(2)).diagonal()), 2 * ones(3))


def test_index_arrays_that_do_not_broadcast():
    for x in (
        sa.eye(6),
        sa.Sparse(ones(1), ([0], [1]), (6, 6)),
        sa.ones((6, 6)),
        sa.LowRank(ones((6, 1)), ones((6, 1))),
    ):
        for key in (([0, 1], [0, 1, 2]), (np.zeros((2, 2), int), None, [0, 0, 0]), ([True] * 6, [])):
            with pytest.raises(IndexError):
                np.zeros((6, 6))[key]
            assert "cannot be broadcast together" in message(IndexError, lambda x=x, key=key: x[key])


LISTS = {
    "sum": lambda: sa.sum([1, 2]),
    "max": lambda: sa.max([1, 2]),
    "std": lambda: sa.std([1.0]),
    "mean": lambda: sa.mean([[1.0]]),
    "all": lambda: sa.all([True]),
    "prod": lambda: sa.prod([1]),
    "count_nonzero": lambda: sa.count_nonzero([1]),
    "cumulative_sum": lambda: sa.cumulative_sum([1]),
    "diff": lambda: sa.diff([1, 2]),
    "sort": lambda: sa.sort([2, 1]),
    "argmax": lambda: sa.argmax([1]),
    "nonzero": lambda: sa.nonzero([1]),
    "unique_values": lambda: sa.unique_values([1]),
    "reshape": lambda: sa.reshape([1, 2], (2, 1)),
    "expand_dims": lambda: sa.expand_dims([1], axis=0),
    "flip": lambda: sa.flip([1]),
    "roll": lambda: sa.roll([1, 2], 1),
    "broadcast_to": lambda: sa.broadcast_to([1], (2,)),
    "tile": lambda: sa.tile([1], (2,)),
    "repeat": lambda: sa.repeat([1], 2),
    "unstack": lambda: sa.unstack([1]),
    "isin": lambda: sa.isin([1], sa.ones(1)),
    "take": lambda: sa.take([1], sa.asarray([0]), axis=0),
    "linalg.vector_norm": lambda: sa.linalg.vector_norm([1.0]),
    "linalg.inv": lambda: sa.linalg.inv([[1.0]]),
    "fft.fft": lambda: sa.fft.fft([1.0, 2.0]),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_no_array(name):
    said = message(TypeError, LISTS[name])
    assert said.startswith(f"{name}: x") and said.endswith(
        "must be an array of structarrays, JAX or NumPy, or a Python scalar, got list"
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sa.sum(None), "sum: x must be an array of structarrays, JAX or NumPy, or a Python scalar, got NoneType"),
        (lambda: sa.flip(None), "flip: x must be an array"),
        (lambda: sa.linalg.det(None), "linalg.det: x must be an array"),
        (lambda: sa.linalg.qr(None), "linalg.qr: x must be an array"),
        (lambda: sa.linalg.solve(sa.eye(2), None), "linalg.solve: x2 must be an array"),
        (lambda: sa.matmul(sa.eye(2), None), "matmul: x2 must be an array"),
        (lambda: sa.take(sa.ones(3), [0], axis=0), "take: indices must be an array"),
        (lambda: sa.meshgrid([1], sa.ones(1)), "meshgrid: argument 1 must be an array"),
        (lambda: sa.concat([[1], [2]]), "concat: arrays[0] must be an array"),
        (lambda: sa.searchsorted(sa.ones(2), [1.5]), "searchsorted: x2 must be an array"),
    ],
)  # fmt: skip
def test_what_is_no_array_is_named(call, words):
    assert words in message(TypeError, call)
    with sa.record():
        assert words in message(TypeError, call)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sa.sin(), "sin(): missing a required argument: 'x'; its signature is sin(x: Array, /) -> Array"),
        (lambda: sa.sin(x=sa.ones(2)), "its signature is sin(x: Array, /) -> Array"),
        (lambda: sa.add(sa.ones(2), x2=1.0), "its signature is add(x1: Array, x2: Array, /) -> Array"),
        (lambda: sa.where(sa.ones(2) > 0, 1.0), "where(): missing a required argument: 'x2'"),
        (lambda: sa.pow(sa.ones(2)), "pow(): missing a required argument: 'x2'"),
        (lambda: sa.pow(2.0, exponent=2), "pow(): "),
        (lambda: sa.linalg.solve(sa.eye(2), sa.ones(2), assume_a="pos"), "linalg.solve(): got an unexpected keyword argument 'assume_a'"),
        (lambda: sa.sum(sa.ones(2), axes=0), "sum(): got an unexpected keyword argument 'axes'; its signature is sum(x: Array, /, *"),
        (lambda: sa.sum(sa.ones(2), 0), "sum(): too many positional arguments"),
    ],
)  # fmt: skip
def test_misspelt_and_missing_arguments(call, words):
    assert words in message(TypeError, call)


def test_numbers_in_the_byte_order_of_another_machine():
    numbers, places = np.asarray([3.0, 1.0, 2.0], ">f8"), np.asarray([2, 0], ">i8")
    x = sa.asarray(numbers)
    assert x.dtype == np.float64 and x.dtype.isnative
    D = sa.Diagonal(numbers)
    for ours, expected in (
        (D @ numbers, numbers**2), (numbers @ D, numbers**2), (D + numbers, np.diag(numbers) + numbers),
        (sa.sin(numbers), np.sin(numbers)), (x[places], numbers[places]), (sa.linalg.solve(D, numbers), ones(3)),
    ):  # fmt: skip
        np.testing.assert_allclose(np.asarray(ours), expected)
    x[:] = 2 * numbers
    x[places] = numbers[:2]
    np.testing.assert_array_equal(np.asarray(x), [1.0, 2.0, 3.0])
    D[[0, 1], places] = numbers[:2]
    expected = np.diag(numbers)
    expected[[0, 1], places] = numbers[:2]
    np.testing.assert_array_equal(np.asarray(D), expected)


def test_a_list_is_not_compared():
    for call in (lambda: sa.ones(3) == [1.0, 1.0, 1.0], lambda: sa.eye(2) != ((1, 0), (0, 1))):
        assert "x2 must be an array or a number, got" in message(TypeError, call)
    assert (sa.ones(3) == None) is False and sa.ones(3) != "a"  # noqa: E711


def test_formats():
    assert f"{sa.asarray(3.14159):.2f} {sa.asarray([1.0, 2.0])}" == "3.14 [1. 2.]"
    with pytest.raises(TypeError):
        f"{np.eye(2):.2f}"
    assert "of shape (2, 2) cannot be formatted with '.2f'" in message(TypeError, lambda: f"{sa.eye(2):.2f}")


def test_round_and_divmod():
    x = np.asarray([7.25, -7.25, 0.0])
    np.testing.assert_array_equal(np.asarray(round(sa.asarray(x), 1)), np.round(x, 1))
    np.testing.assert_array_equal(float(round(sa.asarray(2.6))), round(2.6))
    for args in ((x, 3), (7, x[:2]), (x, x[:1])):
        ours = divmod(*(sa.asarray(a) if isinstance(a, np.ndarray) else a for a in args))
        for a, b in zip(ours, divmod(*args), strict=True):
            np.testing.assert_array_equal(np.asarray(a), b)


@pytest.mark.parametrize("make", [sa.Kronecker, sa.KroneckerSum, sa.Sum, sa.Product])
def test_a_list_of_parts(make):
    said = message(TypeError, lambda: make([np.eye(2), sa.eye(2)]))
    assert said.startswith(f"{make.__name__} takes each ") and said.endswith(f"{make.__name__}(a, b, ...), got a list")
    np.testing.assert_array_equal(np.asarray(make([[1.0, 2.0], [3.0, 4.0]])), [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("kind", "call", "words"),
    [
        (TypeError, lambda: sa.Block([np.eye(2), np.eye(2)]), "[[a, b], [c, d]]; blocks[0] is ndarray"),
        (TypeError, lambda: sa.explain(sa.eye(2)), "explain: function must be callable, got Identity"),
        (TypeError, lambda: sa.densify("allow", limit="1 GB").__enter__(), "limit must be a number of bytes, got '1 GB'"),
        (ValueError, lambda: sa.densify(limit=float("nan")).__enter__(), "limit must be a nonnegative number of bytes, got nan"),
        (ValueError, lambda: sa.Permutation([[1], [1, 2]]), "p must be integers"),
        (ValueError, lambda: sa.Sparse([1.0], [[1], [1, 2]], (3, 3)), "indices must be integers"),
        (TypeError, lambda: sa.save(sa.eye(2), "eye.npz"), "save: file must be a path or a binary file object, got Identity"),
        (TypeError, lambda: sa.load(3), "load: file must be a path or a binary file object, got int"),
        (FileNotFoundError, lambda: sa.save("/absent/eye.npz", sa.eye(2)), "save: the directory does not exist: '/absent'"),
    ],
)  # fmt: skip
def test_what_the_argument_was(kind, call, words):
    assert words in message(kind, call)


def test_a_file_of_64_bit_numbers_without_x64(tmp_path):
    sa.save(tmp_path / "eye.npz", sa.asarray([1.0]))
    with jax.enable_x64(False):
        said = message(ValueError, lambda: sa.load(tmp_path / "eye.npz"))
    assert said == (
        "load: the file contains float64, but JAX's 64-bit mode is off; switch it on with "
        'jax.config.update("jax_enable_x64", True)'
    )


KEY = jax.random.key(0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda D: D + KEY, "add: x2 must have a numeric or boolean dtype, got key<fry>"),
        (lambda D: KEY + D, "add: x1 must have a numeric or boolean dtype, got key<fry>"),
        (lambda D: sa.sum(KEY), "sum: x must have a numeric or boolean dtype, got key<fry>"),
        (lambda D: sa.linalg.solve(D, KEY), "linalg.solve: x2 must have a numeric or boolean dtype, got key<fry>"),
        (lambda D: D * "a", "multiply: x2 must be an array or a number, got str"),
        (lambda D: "a" * D, "multiply: x1 must be an array or a number, got str"),
        (lambda D: D - b"a", "subtract: x2 must be an array or a number, got bytes"),
        (lambda D: D * [1.0, 2.0], "multiply: x2 must be an array or a number, got list; use structarrays.asarray"),
        (lambda D: (1.0, 2.0) * D, "multiply: x1 must be an array or a number, got tuple; use structarrays.asarray"),
        (lambda D: sa.count_nonzero(D, axis="q"), "count_nonzero: axis must be an integer, got 'q'"),
        (lambda D: sa.linalg.svd(D, full_matrices="yes"), "linalg.svd: full_matrices must be True or False, got 'yes'"),
        (lambda D: sa.linalg.cholesky(D, upper=None), "linalg.cholesky: upper must be True or False, got None"),
        (lambda D: sa.sum(D, keepdims="no"), "sum: keepdims must be True or False, got 'no'"),
        (lambda D: sa.sort(D, descending=1.5), "sort: descending must be True or False, got 1.5"),
        (lambda D: sa.structured(lambda a: (a, "s"))(D), "<lambda> must return arrays, numbers or pytrees of them, got str"),
        (lambda D: sa.structured(lambda a: a)(object()), "<lambda> must return arrays, numbers or pytrees of them, got object"),
    ],
)  # fmt: skip
def test_operands_and_options_of_another_type(call, words):
    assert words in message(TypeError, lambda: call(sa.Diagonal([1.0, 2.0])))


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="needs long doubles of more than 64 bits")
def test_long_doubles():
    D, reals, complexes = sa.Diagonal([1.0, 2.0]), np.ones(2, np.longdouble), np.ones(2, np.clongdouble)
    words = "must have a dtype of at most 64 bits (128 if complex), got"
    assert f"matmul: x2 {words} {reals.dtype}; convert" in message(TypeError, lambda: D @ reals)
    assert f"multiply: x1 {words} {complexes.dtype}; convert" in message(TypeError, lambda: complexes * D)
    assert f"multiply: x1 {words} {reals.dtype}; convert" in message(TypeError, lambda: reals[0] * D)


def test_flags_may_be_integers():
    D = sa.Diagonal([1.0, 2.0])
    assert sa.sum(D, keepdims=1).shape == (1, 1) and sa.sum(D, keepdims=np.bool_(False)).shape == ()
