"""Arrays of all structures to those of scipy.sparse, `jax.experimental.sparse` and PyData's sparse, and back; dense NumPy is the oracle."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from jax.experimental.sparse import BCOO, BCSR
from support import as_jax

import structarrays as sa
from structarrays.testing import STRUCTURES, sample

to_scipy, from_scipy = sa.interop.scipy.to_sparse, sa.interop.scipy.from_sparse
to_jax, from_jax = sa.interop.jax_sparse.to_sparse, sa.interop.jax_sparse.from_sparse
FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
DTYPES = ("float64", "complex128", "float32", "int32", "bool")


STACKED = (
    "Dense",
    "Banded",
    "BlockDiagonal",
    "Kronecker",
    "LowRank",
    "Permutation",
    "Sparse",
    "Sparse by columns, padded",
)
"""The structures of which stacks are converted: those that have kernels of their own on the way, and some that have none."""


def samples(*, batch=()):
    """Each structure, with its dense matrix: dtypes and shapes alternately."""
    for i, structure in enumerate(STACKED if batch else STRUCTURES):
        for core in ((6, 6),) if batch else ((6, 6), ((7, 4), (3, 8))[i % 2]):
            for dtype in (DTYPES[i % len(DTYPES)], "complex128"):
                x = sample(structure, core, batch=batch, dtype=dtype)
                if x is not None:
                    yield structure, x, np.asarray(x)
                    break


def no_background(x):
    return not x.stores_entries or x.background is None


@pytest.fixture
def sparse():
    """The package of that name."""
    return pytest.importorskip("sparse")


# ---- scipy.sparse -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_scipy_of_every_structure():
    for i, (structure, x, host) in enumerate(samples()):
        if not no_background(x):
            with pytest.raises(ValueError, match="to_sparse: x must have no background value for scipy.sparse, got"):
                to_scipy(x)
            continue
        found = to_scipy(x)
        assert isinstance(found, scipy.sparse.sparray), structure
        assert found.format == ("dia" if isinstance(x, sa.Banded) else "csr")
        assert found.dtype == x.dtype
        np.testing.assert_allclose(found.toarray(), host, atol=1e-12, err_msg=structure)
        found.data[...] = 0  # memory of its own
        np.testing.assert_array_equal(np.asarray(x), host)
        form = FORMATS[i % len(FORMATS)]
        if x.dtype != bool or form not in ("bsr", "dia"):
            other = to_scipy(x, form)
            assert other.format == form
            back = from_scipy(other)
            assert isinstance(back, sa.Banded if form == "dia" else sa.Sparse)
            assert back.dtype == x.dtype
            np.testing.assert_allclose(np.asarray(back), host, atol=1e-12, err_msg=structure)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("matrix", [False, True])
def test_scipy_there_and_back(form, matrix, rng):
    x = scipy.sparse.random_array((6, 8), density=0.3, rng=rng, format=form)
    x = scipy.sparse.random(6, 8, 0.3, format=form, random_state=0) if matrix else x
    y = from_scipy(x)
    np.testing.assert_array_equal(np.asarray(y), x.toarray())
    back = to_scipy(y, form)
    assert isinstance(back, scipy.sparse.sparray)
    assert back.format == form
    np.testing.assert_array_equal(back.toarray(), x.toarray())


def test_banded_and_dia_have_the_same_diagonals(rng):
    for shape, offsets in (((6, 6), (-2, 0, 1)), ((4, 7), (-3, 1, 6)), ((7, 4), (-6, 3)), ((3, 3), ())):
        diagonals = [rng.normal(size=len(np.diagonal(np.zeros(shape), k))) for k in offsets]
        x = sa.Banded(diagonals, offsets, shape)
        found = to_scipy(x)
        assert tuple(found.offsets) == offsets
        assert found.data.shape == (len(offsets), shape[1])
        np.testing.assert_array_equal(found.toarray(), np.asarray(x))
        back = from_scipy(found)
        assert back.offsets == offsets
        for d, e in zip(back.diagonals, diagonals, strict=True):
            np.testing.assert_array_equal(d, e)


def test_dia_with_short_data_and_diagonals_outside():
    data = np.arange(1.0, 10).reshape(3, 3)
    for shape in ((3, 5), (5, 3), (2, 2), (6, 6)):
        x = scipy.sparse.dia_array((data, [0, 2, -4]), shape=shape)
        y = from_scipy(x)
        assert isinstance(y, sa.Banded)
        np.testing.assert_array_equal(np.asarray(y), x.toarray())


def test_blocks_become_blocks(rng):
    x = sa.BlockDiagonal(rng.normal(size=(5, 2, 3)))
    found = to_scipy(x, "bsr")
    assert found.blocksize == (2, 3)
    assert found.data.shape == (5, 2, 3)
    np.testing.assert_array_equal(found.toarray(), np.asarray(x))


@pytest.mark.slow
def test_what_is_made_of_sparse_parts_is_multiplied_out(rng):
    n = 300
    S = sa.Sparse.from_scipy(scipy.sparse.random_array((n, n), density=0.01, rng=rng))
    T = sa.tridiagonal(np.ones(n - 1), np.arange(float(n)), np.ones(n - 1))
    s, t = S.to_scipy(), to_scipy(T)
    eye = scipy.sparse.eye_array(n)
    cases = [
        (sa.Kronecker(T, S), scipy.sparse.kron(t, s)),
        (sa.Kronecker(sa.asarray([[1.0, 2.0]]), T, S), scipy.sparse.kron([[1.0, 2.0]], scipy.sparse.kron(t, s))),
        (sa.KroneckerSum(T, S), scipy.sparse.kron(t, eye) + scipy.sparse.kron(eye, s)),
        (sa.Sum(sa.Kronecker(T, S), sa.eye(n * n)), scipy.sparse.kron(t, s) + scipy.sparse.eye_array(n * n)),
        (sa.Product(sa.Kronecker(T, T), sa.Kronecker(S, T)), scipy.sparse.kron(t, t) @ scipy.sparse.kron(s, t)),
        (sa.Block([[T, S], [S, T]]), scipy.sparse.block_array([[t, s], [s, t]])),
        (sa.Kronecker(T, S)[0:1000, :], scipy.sparse.kron(t, s).tocsr()[:1000]),
    ]
    with sa.densify("error"):
        for x, wanted in cases:
            found = to_scipy(x)
            assert found.shape == wanted.shape
            assert abs(found - wanted).max() < 1e-14 * abs(wanted).max()
            assert abs(from_jax(to_jax(x)).to_scipy() - wanted).max() < 1e-14 * abs(wanted).max()


def test_the_policy_of_densify():
    for x in (
        sa.LowRank(np.ones((4, 1)), np.ones((4, 1))),
        sa.Kronecker(sa.LowRank(np.ones((4, 1)), np.ones((4, 1))), np.eye(2)),
    ):
        with sa.densify("error"), pytest.raises(sa.DensifyError, match="to_sparse would expand"):
            to_scipy(x)
        np.testing.assert_array_equal(to_scipy(x).toarray(), np.asarray(x))
    with sa.densify("error"):  # these store what the dense form does
        assert to_scipy(sa.asarray(np.eye(3))).nnz == 3
        assert to_scipy(sa.Triangular(np.ones((3, 3)))).nnz == 6


def test_other_numbers_of_dimensions():
    v, host = sa.Sparse([1.0, 2.0], ([1, 3],), (5,)), np.array([0, 1.0, 0, 2, 0])
    np.testing.assert_array_equal(to_scipy(v).toarray(), host)
    np.testing.assert_array_equal(np.asarray(from_scipy(to_scipy(v, "csr"))), host)
    np.testing.assert_array_equal(to_scipy(sa.asarray(host)).toarray(), host)
    cube = sa.Sparse([1.0, 2.0], ([0, 1], [1, 0], [2, 2]), (2, 2, 3))
    np.testing.assert_array_equal(np.asarray(from_jax(to_jax(cube))), np.asarray(cube))
    np.testing.assert_array_equal(to_jax(v).todense(), host)
    with pytest.raises(ValueError, match="x must be a matrix for the format 'bcsr', got 3 core dimensions"):
        to_jax(cube, "bcsr")


def test_bad_arguments():
    with pytest.raises(ValueError, match="to_sparse: format must be one of 'bsr', .* got 'CSR'"):
        to_scipy(sa.eye(3), "CSR")
    with pytest.raises(ValueError, match="to_sparse: format must be one of 'bcoo', 'bcsr', got 'coo'"):
        to_jax(sa.eye(3), "coo")
    for convert in (to_scipy, to_jax):
        with pytest.raises(TypeError, match="to_sparse: x must be an array of structarrays, got ndarray"):
            convert(np.eye(3))
        with pytest.raises(ValueError, match="to_sparse: x must have at least one dimension"):
            convert(sa.asarray(1.0))
    with pytest.raises(ValueError, match="must have no batch dimensions"):
        to_scipy(sa.Diagonal(np.ones((2, 3))))
    with pytest.raises(TypeError, match="from_sparse: x must be an array of scipy.sparse, got ndarray"):
        from_scipy(np.eye(3))
    with pytest.raises(
        TypeError, match="from_sparse: x must be a BCOO or a BCSR of jax.experimental.sparse, got ndarray"
    ):
        from_jax(np.eye(3))


# ---- jax.experimental.sparse ------------------------------------------------------------------------------------------


@pytest.mark.costly
@pytest.mark.slow
@pytest.mark.parametrize("batch", [(), (2,)])
def test_jax_of_every_structure(batch):
    for structure, x, host in samples(batch=batch):
        if not no_background(x):
            with pytest.raises(
                ValueError, match="to_sparse: x must have no background value for jax.experimental.sparse, got"
            ):
                to_jax(x)
            continue
        for form, cls in (("bcoo", BCOO), ("bcsr", BCSR)):
            found = to_jax(x, form)
            assert type(found) is cls
            assert (found.n_batch, found.dtype) == (len(batch), x.dtype), structure
            if x.dtype != bool:  # which JAX cannot add
                np.testing.assert_allclose(found.todense(), host, atol=1e-12, err_msg=structure)
            back = from_jax(found)
            assert back.shape == x.shape
            assert back.batch_shape == batch
            np.testing.assert_allclose(np.asarray(back), host, atol=1e-12, err_msg=structure)


@pytest.mark.slow
def test_the_order_and_the_padding_of_bcoo(rng):
    host = np.where(rng.random((4, 5)) < 0.5, rng.normal(size=(4, 5)), 0)
    wide = BCOO.fromdense(host, nse=18)  # with padding
    shuffled = BCOO((wide.data[::-1], wide.indices[::-1]), shape=wide.shape)
    twice = BCOO((jnp.tile(wide.data, 2), jnp.tile(wide.indices, (2, 1))), shape=wide.shape)
    for x, factor in ((wide, 1), (shuffled, 1), (twice, 2), (wide.T, 1), (twice.T, 2)):
        wanted = factor * (host.T if x.shape == (5, 4) else host)
        y = from_jax(x)
        assert y.nnz == np.count_nonzero(host)
        assert not y.padded
        np.testing.assert_array_equal(np.asarray(y), wanted)
        np.testing.assert_allclose(np.asarray(y.mT @ y), np.asarray(y).T @ np.asarray(y), atol=1e-13)
        inside = jax.jit(lambda x: from_jax(x))(x)
        np.testing.assert_array_equal(np.asarray(inside), wanted)
        np.testing.assert_array_equal(np.asarray(jax.jit(to_jax)(inside).todense()), wanted)
    stack = np.stack([host, np.eye(4, 5), np.zeros((4, 5))])
    batched = BCOO.fromdense(stack, n_batch=1)
    np.testing.assert_array_equal(np.asarray(from_jax(batched)), stack)
    np.testing.assert_allclose(np.asarray(sa.exp(from_jax(batched))), np.exp(stack), rtol=1e-14)
    np.testing.assert_array_equal(np.asarray(from_jax(BCOO.fromdense(stack, n_dense=1))), stack)
    np.testing.assert_array_equal(np.asarray(from_jax(BCOO.fromdense(stack, n_batch=1, n_dense=2))), stack)


@pytest.mark.slow
def test_conversions_have_derivatives_and_run_under_jit():
    A, v = sa.tridiagonal([1.0, 2.0], [3.0, 4.0, 5.0], [0.5, 0.25]), jnp.arange(1.0, 4)

    def objective(A):
        return jnp.sum((to_jax(A) @ v) ** 2)

    host = jnp.asarray(np.asarray(A))
    full = jax.grad(lambda a: jnp.sum((a @ v) ** 2))(host)
    found = jax.jit(jax.grad(objective))(A)
    for k, d in zip(found.offsets, found.diagonals, strict=True):
        np.testing.assert_allclose(d, jnp.diagonal(full, k))
    x = BCOO.fromdense(host)

    def product(data):
        return jnp.sum(as_jax(from_jax(BCOO((data, x.indices), shape=x.shape)) @ v) ** 2)

    np.testing.assert_allclose(jax.grad(product)(x.data), full[tuple(x.indices.T)])
    with pytest.raises(
        ValueError, match="to_sparse: x must not be traced, because the number of nonzero elements of a LowRank"
    ):
        jax.jit(to_jax)(sa.LowRank(np.ones((4, 1)), np.ones((4, 1))))


# ---- PyData's sparse --------------------------------------------------------------------------------------------------


@pytest.mark.costly
@pytest.mark.slow
@pytest.mark.parametrize("batch", [(), (2,)])
def test_pydata_of_every_structure(sparse, batch):
    convert, back = sa.interop.pydata_sparse.to_sparse, sa.interop.pydata_sparse.from_sparse
    for structure, x, host in samples(batch=batch):
        if batch and not no_background(x):
            continue
        for form in ("coo", "gcxs", "dok"):
            found = convert(x, form)
            assert isinstance(found, {"coo": sparse.COO, "gcxs": sparse.GCXS, "dok": sparse.DOK}[form])
            np.testing.assert_allclose(found.todense(), host, atol=1e-12, err_msg=structure)
            y = back(found)
            assert (y.shape, y.dtype) == (x.shape, x.dtype)
            np.testing.assert_allclose(np.asarray(y), host, atol=1e-12, err_msg=structure)


def test_pydata_fill_values(sparse):
    convert, back = sa.interop.pydata_sparse.to_sparse, sa.interop.pydata_sparse.from_sparse
    x = sa.exp(sa.Sparse([1.0, 2.0], ([0, 2], [1, 1]), (3, 2)))
    assert convert(x).fill_value == 1
    y = back(convert(x))
    assert y.background.item() == 1
    np.testing.assert_array_equal(np.asarray(y), np.asarray(x))
    for fill in (np.nan, -2.5):
        z = sparse.COO([[0, 2], [1, 1]], [1.0, 2.0], shape=(3, 2), fill_value=fill)
        np.testing.assert_array_equal(np.asarray(back(z)), z.todense())
        np.testing.assert_array_equal(convert(back(z)).todense(), z.todense())
    stack = sa.stack([x, 2 * x])
    with pytest.raises(ValueError, match="x must have one background value, got different"):
        convert(stack)
    same = sa.stack([x, x])
    np.testing.assert_array_equal(convert(same).todense(), np.asarray(same))
    with pytest.raises(TypeError, match="from_sparse: x must be an array of the package sparse, got ndarray"):
        back(np.eye(3))
    with pytest.raises(ValueError, match="format must be one of 'coo', 'gcxs', 'dok', got 'csr'"):
        convert(x, "csr")


# ---- where a package is missing ---------------------------------------------------------------------------------------


@pytest.mark.costly
@pytest.mark.parametrize(
    ("module", "package", "extra"), [("lineax", "lineax", "lineax"), ("pydata_sparse", "sparse", "pydata-sparse")]
)
def test_a_missing_package_is_named(module, package, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"structarrays.interop.{module}", raising=False)
    monkeypatch.delitem(vars(sa.interop), module, raising=False)
    with pytest.raises(
        ImportError, match=rf"structarrays.interop.{module} needs .*: pip install structarrays\[{extra}\]"
    ):
        getattr(sa.interop, module)
