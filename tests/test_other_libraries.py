"""Libraries that take any array of the Array API: xarray, einops, marray, pint, array-api-extra, cubed. Structure stays where it can."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

import structarrays as sa

n = 12
MATRICES = {
    "Diagonal": lambda rng: sa.Diagonal(rng.normal(size=n)),
    "Banded": lambda rng: sa.tridiagonal(rng.normal(size=n - 1), rng.normal(size=n), rng.normal(size=n - 1)),
    "Sparse": lambda rng: sa.Sparse.from_dense(np.where(rng.random((n, n)) < 0.2, rng.normal(size=(n, n)), 0)),
    "Toeplitz": lambda rng: sa.Toeplitz(rng.normal(size=n), rng.normal(size=n)),
    "LowRank": lambda rng: sa.LowRank(rng.normal(size=(n, 2)), rng.normal(size=(n, 2))),
    "Kronecker": lambda rng: sa.Kronecker(rng.normal(size=(3, 3)), rng.normal(size=(4, 4))),
}
ENTRIES = ("Diagonal", "Banded", "Sparse", "Toeplitz")


def close(found, expected):
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-10, atol=1e-12)


class TestXarray:
    """Of every operation the array inside, and its numbers next to those of a `DataArray` of NumPy."""

    KEEP = {
        "number": lambda X: 2 * X,
        "sum": lambda X: X + X,
        "T": lambda X: X.T,
        "transpose": lambda X: X.transpose("column", "row"),
        "rename": lambda X: X.rename(row="line"),
        "dataset": lambda X: X.to_dataset(name="a").a,
        "copy": lambda X: X.copy(),
        "astype": lambda X: X.astype("complex128"),
        "isel": lambda X: X.isel(row=slice(0, n)),
        "scaled rows": lambda X: X * X[:, :1].isel(column=0).copy(data=np.arange(1.0, n + 1)),
    }
    ENTRIES_KEEP = {
        "where": lambda X: X.where(X > 0),
        "where with a number": lambda X: X.where(X > 0, 0.0),
        "fillna": lambda X: X.where(X > 0).fillna(0.0),
        "exp": np.exp,
        "abs": abs,
        "clip": lambda X: X.clip(-1, 1),
        "round": lambda X: X.round(1),
        "notnull": lambda X: X.where(X > 0).notnull(),
    }
    REDUCE = {
        "sum": lambda X: X.sum("row"),
        "mean": lambda X: X.mean("row"),
        "mean of all": lambda X: X.mean(),
        "std": lambda X: X.std("column", ddof=1),
        "var": lambda X: X.var("row"),
        "max": lambda X: X.max("column"),
        "min": lambda X: X.min(),
        "count": lambda X: X.count("row"),
        "with NaN": lambda X: X.where(X > 0).mean("row"),
    }

    @staticmethod
    def pair(structure, rng):
        xarray = pytest.importorskip("xarray")
        A = MATRICES[structure](rng)
        return [xarray.DataArray(a, dims=("row", "column")) for a in (A, np.asarray(A))]

    @pytest.mark.parametrize("name", KEEP)
    @pytest.mark.parametrize("structure", MATRICES)
    def test_structure_stays(self, structure, name, rng):
        X, dense = self.pair(structure, rng)
        with sa.densify("error"):
            found = self.KEEP[name](X)
        expected_class = sa.Sum if (structure, name) == ("Kronecker", "sum") else type(X.data)
        assert type(found.data) is expected_class or (name == "scaled rows" and type(found.data) is not sa.Dense)
        close(found, self.KEEP[name](dense))

    @pytest.mark.parametrize("name", ENTRIES_KEEP)
    @pytest.mark.parametrize("structure", ENTRIES)
    def test_structure_stays_where_entries_are_stored(self, structure, name, rng):
        X, dense = self.pair(structure, rng)
        with sa.densify("error"):
            found = self.ENTRIES_KEEP[name](X)
        assert type(found.data) is type(X.data)
        close(found, self.ENTRIES_KEEP[name](dense))

    @pytest.mark.parametrize("name", REDUCE)
    @pytest.mark.parametrize("structure", ENTRIES)
    def test_reductions_expand_nothing(self, structure, name, rng):
        if structure == "Toeplitz" and name in ("std", "var"):
            return  # so small a matrix times a row is dense
        X, dense = self.pair(structure, rng)
        with sa.densify("error"):
            found = self.REDUCE[name](X)
        assert type(found.data) is sa.Dense
        close(found, self.REDUCE[name](dense))

    @pytest.mark.parametrize("structure", MATRICES)
    def test_reductions_that_do_not_look_for_nan(self, structure, rng):
        X, dense = self.pair(structure, rng)
        with sa.densify("error"):
            for run in (lambda X: X.sum("row", skipna=False), lambda X: X.mean(skipna=False)):
                close(run(X), run(dense))

    @pytest.mark.parametrize("structure", MATRICES)
    def test_products(self, structure, rng):
        xarray = pytest.importorskip("xarray")
        X, dense = self.pair(structure, rng)
        v = xarray.DataArray(sa.asarray(rng.normal(size=n)), dims="column")
        with sa.densify("error"):
            found = X @ v
        assert type(found.data) is sa.Dense
        close(found, dense.data @ np.asarray(v.data))

    @pytest.mark.parametrize("structure", MATRICES)
    def test_products_of_matrices(self, structure, rng):
        xarray = pytest.importorskip("xarray")
        X, dense = self.pair(structure, rng)
        with sa.densify("error"):
            found = xarray.dot(X, X.rename(row="column", column="last"))
        assert type(found.data) is not sa.Dense
        close(found.transpose("row", "last"), np.asarray(dense) @ np.asarray(dense))

    NOT_IN_THE_STANDARD = {
        "rolling": (lambda X: X.rolling(row=3).mean(), "numpy.pad accepts arrays of structarrays"),
        "shift": (lambda X: X.shift(row=1), "numpy.pad accepts arrays of structarrays"),
        "pad": (lambda X: X.pad(row=1), "numpy.pad accepts arrays of structarrays"),
        "one factor": (lambda X: X.dot(X, dim="row"), "write permute_dims"),
    }

    @pytest.mark.parametrize("name", NOT_IN_THE_STANDARD)
    def test_functions_that_the_standard_has_not(self, name, rng):
        """The error says so, and xarray computes with the dense form."""
        X, dense = self.pair("Banded", rng)
        run, message = self.NOT_IN_THE_STANDARD[name]
        with pytest.raises(AttributeError, match=message):
            run(X)
        close(run(X.as_numpy()), run(dense))

    @pytest.mark.parametrize("structure", MATRICES)
    def test_labels(self, structure, rng):
        X, dense = self.pair(structure, rng)
        X, dense = (x.assign_coords(row=np.arange(n) * 10) for x in (X, dense))
        with sa.densify("allow" if structure == "Toeplitz" else "error"):  # two of its rows are dense
            rows, row = X.sel(row=[20, 50]), X.sel(row=30)
        close(rows, dense.sel(row=[20, 50]))
        close(row, dense.sel(row=30))
        assert "row" in repr(X) and "row" in X._repr_html_()


def test_pandas_errors(rng):
    """Of what pandas does itself with anything but its own tables and arrays of NumPy."""
    pandas = pytest.importorskip("pandas")
    T = MATRICES["Banded"](rng)
    dense = np.asarray(T)
    table = pandas.DataFrame(dense + 1)
    close(table.mul(np.asarray(T)), (dense + 1) * dense)
    with pytest.raises(ValueError, match="Unable to coerce"):
        table.mul(T)
    with pytest.raises(AttributeError, match="NotImplementedType"):
        table -= T
    close(pandas.DataFrame(T), dense)


def test_leaves_in_other_formats(rng):
    """A format that knows arrays and no pytree, such as Flax's, saves the leaves; the structure makes arrays of them again."""
    tree = {"A": MATRICES["Banded"](rng), "x": sa.asarray(rng.normal(size=n)), "S": MATRICES["Sparse"](rng)}
    leaves, structure = jax.tree.flatten(tree)
    assert all(isinstance(leaf, jax.Array) for leaf in leaves)
    restored = jax.tree.unflatten(structure, [np.array(leaf) for leaf in leaves])
    for name, x in tree.items():
        assert type(restored[name]) is type(x)
        close(restored[name], x)


def test_einops(rng):
    einops = pytest.importorskip("einops.array_api")
    T = MATRICES["Banded"](rng)
    with sa.densify("error"):
        assert type(einops.rearrange(T, "a b -> b a")) is sa.Banded
        stack = einops.repeat(T, "a b -> c a b", c=3)
        total = einops.reduce(T, "a b -> b", "sum")
        cut = einops.rearrange(T, "(a b) c -> a b c", a=3)
    assert type(stack) is sa.Banded and stack.shape == (3, n, n)
    assert type(cut) is sa.Sparse
    close(total, np.asarray(T).sum(axis=0))
    close(cut, np.asarray(T).reshape(3, 4, n))


def test_marray(rng):
    marray = pytest.importorskip("marray")
    xp = marray.masked_namespace(sa) if hasattr(marray, "masked_namespace") else marray._get_namespace(sa)
    T = MATRICES["Banded"](rng)
    dense, mask = np.asarray(T), np.eye(n, dtype=bool)
    M = xp.asarray(T, mask=sa.eye(n, dtype=bool))
    with sa.densify("error"):
        twice, total, mean, turned = 2 * M, xp.sum(M, axis=0), xp.mean(M), M.mT
    assert type(twice.data) is sa.Banded and type(turned.data) is sa.Banded
    expected = np.ma.array(dense, mask=mask)
    close(total.data, expected.sum(axis=0))
    close(mean.data, expected.mean())


def test_pint(rng):
    pint = pytest.importorskip("pint")
    units = pint.UnitRegistry()
    T = MATRICES["Banded"](rng)
    dense, length = np.asarray(T), units.Quantity(T, "m")
    v = rng.normal(size=n)
    with sa.densify("error"):
        kept = {
            "add": ((length + length).to("cm"), 200 * dense),
            "sqrt": (np.sqrt(length * length), abs(dense)),
            "exp": (np.exp(length / units.m), np.exp(dense)),
            "T": (length.T, dense.T),
            "where": (np.where(length > 0 * units.m, length, 0 * units.m), np.where(dense > 0, dense, 0)),
        }
        others = {
            "sum": (np.sum(length, axis=0), dense.sum(axis=0)),
            "mean": (np.mean(length), dense.mean()),
            "matmul": (length @ units.Quantity(sa.asarray(v), "s"), dense @ v),
            "solve": (np.linalg.solve(length, units.Quantity(sa.asarray(v), "s")), np.linalg.solve(dense, v)),
        }
    for name, (found, expected) in (kept | others).items():
        assert type(found.magnitude) is (sa.Banded if name in kept else sa.Dense), name
        close(found.magnitude, expected)
    assert others["matmul"][0].units == units.m * units.s
    assert others["solve"][0].units == units.s / units.m


@pytest.mark.slow
def test_array_api_extra(rng):
    extra = pytest.importorskip("array_api_extra")
    T = MATRICES["Banded"](rng)
    dense = np.asarray(T)
    with sa.densify("error"):
        kept = {
            "at": (
                extra.at(T)[0, 0].set(9.0, copy=True),
                np.where((np.arange(n) == 0)[:, None] & (np.arange(n) == 0), 9.0, dense),
            ),
            "sinc": (extra.sinc(T), np.sinc(dense)),
            "nan_to_num": (extra.nan_to_num(T), dense),
            "atleast_nd": (extra.atleast_nd(T, ndim=3), dense[None]),
        }
    for name, (found, expected) in kept.items():
        assert type(found) is sa.Banded, name
        close(found, expected)
    close(extra.cov(T), np.cov(dense))
    close(extra.pad(T, 1), np.pad(dense, 1))
    close(extra.kron(T, T), np.kron(dense, dense))


def test_cubed():
    pytest.importorskip("cubed")
    code = """
import numpy as np, jax
jax.config.update("jax_enable_x64", True)
import cubed.array_api as xp, structarrays as sa
a = np.arange(12.0).reshape(3, 4)
x = xp.asarray(a, chunks=(2, 2))
found = xp.sum(x @ x.T, axis=0).compute()
assert type(found) is sa.Dense
np.testing.assert_allclose(np.asarray(found), (a @ a.T).sum(axis=0))
"""
    environment = os.environ | {"CUBED_BACKEND_ARRAY_API_MODULE": "structarrays"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("structure", MATRICES)
def test_derivatives_through_xarray(structure, rng):
    xarray = pytest.importorskip("xarray")
    A, v = MATRICES[structure](rng), sa.asarray(rng.normal(size=n))

    def loss(A):
        X = xarray.DataArray(A, dims=("row", "column"))
        return sa.sum((X @ xarray.DataArray(v, dims="column")).data ** 2)

    parameters = [leaf for leaf in jax.tree.leaves(A) if leaf.dtype.kind == "f"]
    gradient = [leaf for leaf in jax.tree.leaves(sa.grad(loss)(A)) if leaf.dtype.kind == "f"]
    expected = sa.grad(lambda A: sa.sum((A @ v) ** 2))(A)
    assert len(parameters) == len(gradient)
    for one, other in zip(
        gradient, [leaf for leaf in jax.tree.leaves(expected) if leaf.dtype.kind == "f"], strict=True
    ):
        close(one, other)
