"""Pictures of arrays and logs: patterns against the dense values and SciPy, HTML by parsers, matplotlib's axes by what they hold."""

import html.parser
import os
import re
import subprocess
import sys
import tracemalloc
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import structarrays as sa
from examples.arrowhead import Arrowhead
from structarrays._core.families.pattern import BACKGROUND, COLOURS, COMPUTED, DENSE, STORED, UNKNOWN, ZERO, cuts, grid
from structarrays.testing import SAMPLERS, sample

CORES = [(6, 6), (5, 7), (7, 4), (1, 6), (6, 1), (1, 1), (12, 12)]


def coarsened(nonzero, rows, columns):
    """Which cells have a nonzero element."""
    return np.array([[nonzero[a:b, c:d].any() for c, d in columns] for a, b in rows])


def arrays(cores=CORES, batches=((), (2,)), names=SAMPLERS):
    """Of all structures arrays whose stored numbers are positive, so that no sum or product of them is zero."""
    for name in names:
        for core in cores:
            for batch in batches:
                dtype = "complex128" if name == "Fourier" else "float64"
                x = sample(name, core, batch=batch, dtype=dtype, domain=(0.5, 2.0))
                if x is not None:
                    yield name, x


def tridiagonal(n):
    return sa.tridiagonal(np.ones(n - 1), np.full(n, 2.0), np.ones(n - 1))


class TestGrid:
    @pytest.mark.parametrize("name", SAMPLERS)
    def test_cells_are_those_of_the_nonzero_elements(self, name):
        for _, x in arrays(names=[name]):
            dense = np.asarray(x.to_jax())
            nonzero = (dense != 0).any(axis=tuple(range(dense.ndim - 2)))
            for cells in (64, 3, 4):
                pattern = grid(x, cells)
                assert pattern.kinds.shape == (min(cells, nonzero.shape[0]), min(cells, nonzero.shape[1]))
                assert np.array_equal(pattern.kinds != ZERO, coarsened(nonzero, pattern.rows, pattern.columns)), cells

    @pytest.mark.slow
    def test_there_are_arrays_of_all_structures(self):
        assert {name for name, _ in arrays()} == set(SAMPLERS)

    def test_cuts(self):
        assert cuts(3, 5).tolist() == [[0, 1], [1, 2], [2, 3]]
        assert cuts(10, 4).tolist() == [[0, 2], [2, 5], [5, 7], [7, 10]]
        assert cuts(0, 4).shape == (0, 2)

    def test_kinds_of_blocks(self):
        D = sa.Diagonal([1.0, 2.0])
        A = sa.Block(
            [[sa.ones((2, 2)), sa.exp(D), None], [sa.Fill(3.0, (2, 2)), sa.LowRank([[1.0]] * 2, [[1.0]] * 2), D]]
        )
        b, c, s, d = BACKGROUND, COMPUTED, STORED, DENSE
        expected = [[d, d, s, b, 0, 0], [d, d, b, s, 0, 0], [b, b, c, c, s, 0], [b, b, c, c, 0, s]]
        assert grid(A, 10).kinds.tolist() == expected

    def test_what_is_best_seen_hides_the_rest(self):
        X = sa.Sparse([1.0, 1.0], ([0, 99], [3, 0]), (100, 50))
        pattern = grid(X - sa.mean(X, axis=0), 4)
        assert pattern.kinds.tolist() == [[STORED, 2 * 0 + COMPUTED, COMPUTED, COMPUTED]] + [[COMPUTED] * 4] * 2 + [
            [STORED, COMPUTED, COMPUTED, COMPUTED]
        ]

    def test_blocks_on_the_diagonal_are_dense_ones(self):
        A = sa.BlockDiagonal([np.ones((2, 1)), np.ones((1, 2))])
        assert grid(A, 10).kinds.tolist() == [[DENSE, 0, 0], [DENSE, 0, 0], [0, DENSE, DENSE]]

    @pytest.mark.parametrize("cells", [7, 40, 64])
    def test_kronecker_products_and_sums_as_in_scipy(self, cells, rng):
        factors = [scipy.sparse.random_array((m, n), density=0.2, rng=rng) for m, n in ((5, 9), (11, 4), (6, 7))]
        whole = scipy.sparse.kron(scipy.sparse.kron(factors[0], factors[1]), factors[2]).toarray() != 0
        pattern = grid(sa.Kronecker(*map(sa.Sparse.from_scipy, factors)), cells)
        assert np.array_equal(pattern.kinds == COMPUTED, coarsened(whole, pattern.rows, pattern.columns))
        squares = [scipy.sparse.random_array((n, n), density=0.2, rng=rng) for n in (23, 31)]
        whole = scipy.sparse.kronsum(squares[1], squares[0]).toarray() != 0  # SciPy's factors stand the other way round
        pattern = grid(sa.KroneckerSum(*map(sa.Sparse.from_scipy, squares)), cells)
        assert np.array_equal(pattern.kinds == COMPUTED, coarsened(whole, pattern.rows, pattern.columns))

    def test_sparse_arrays_as_in_scipy(self, rng):
        S = scipy.sparse.random_array((300, 500), density=0.002, rng=rng)
        for x, dense in ((sa.Sparse.from_scipy(S), S.toarray()), (sa.Sparse.from_scipy(S).mT, S.toarray().T)):
            pattern = grid(x, 23)
            assert np.array_equal(pattern.kinds == STORED, coarsened(dense != 0, pattern.rows, pattern.columns))

    def test_many_coordinates_are_looked_at_in_part(self, monkeypatch):
        monkeypatch.setattr("structarrays._core.families.pattern.MANY", 1000)
        n = 20_000
        pattern = grid(sa.Permutation(np.arange(n)[::-1]), 50)
        assert np.array_equal(pattern.kinds == STORED, np.eye(50, dtype=bool)[:, ::-1])

    def test_triangular_inverse(self):
        A = sa.bidiagonal(np.full(9, 2.0), np.ones(8), lower=False)
        assert np.array_equal(grid(sa.Inverse(A), 9).kinds, COMPUTED * np.triu(np.ones((9, 9))))
        P = sa.Inverse(sa.Sparse(np.ones(4), ([0, 1, 2, 3], [1, 0, 3, 2]), (4, 4)))
        assert np.array_equal(grid(P, 4).kinds > 0, scipy.linalg.block_diag(*[np.ones((2, 2))] * 2) > 0)

    def test_products_of_large_matrices_show_no_less_than_there_is(self):
        rng = np.random.default_rng(1)
        S, T = (scipy.sparse.random_array((700, 700), density=1e-3, rng=rng) for _ in range(2))
        pattern = grid(sa.Product(sa.Sparse.from_scipy(S), sa.Circulant(np.ones(700)), sa.Sparse.from_scipy(T)), 30)
        dense = S.toarray() @ np.ones((700, 700)) @ T.toarray()
        assert (pattern.kinds >= COMPUTED * coarsened(dense != 0, pattern.rows, pattern.columns)).all()

    @pytest.mark.parametrize("shape, w, columns", [((12, 12), 3, 9), ((12, 7), 2, 5), ((9, 9), 1, 4), ((9, 9), 4, 0)])
    def test_reflectors(self, shape, w, columns, rng):
        v = rng.uniform(0.5, 1, (columns, w))
        v = np.where(np.arange(columns)[:, None] + np.arange(w) < shape[0], v, 0)
        Q = sa.linalg.matrix_transpose(sa.Householder(v, 2 / np.sum(v**2, axis=-1), shape))
        for x in (Q, Q.mT):
            pattern = grid(x, 5)
            nonzero = np.abs(np.asarray(x.to_jax())) > 1e-14
            assert np.array_equal(pattern.kinds == COMPUTED, coarsened(nonzero, pattern.rows, pattern.columns))

    def test_rows_multiplied_each_with_each(self):
        A = sa.LowRank(sa.ones((100, 5)), sa.ones((100, 5)))
        factor = (A * A).u
        assert type(factor).__name__ == "KhatriRao"
        assert (grid(factor, 8).kinds == COMPUTED).all() and (grid(factor.mT, 8).kinds == COMPUTED).all()

    @pytest.mark.parametrize("n, factors", [(10**6, 1), (1000, 2), (10**6, 4)])
    def test_a_large_matrix_is_known_by_few_cells(self, n, factors):
        x = sa.Kronecker(*[tridiagonal(n)] * factors)
        assert x.shape == (n**factors,) * 2
        i, j = np.indices((10, 10))
        assert np.array_equal(grid(x, 10).kinds > 0, abs(i - j) <= 1)

    def test_vectors_and_numbers(self):
        assert grid(sa.asarray(3.0), 5).kinds.tolist() == [[DENSE]]
        assert grid(sa.ones(3), 5).kinds.tolist() == [[DENSE] * 3]
        assert grid(sa.Sparse([1.0], ([2],), (4,)), 9).kinds.tolist() == [[0, 0, STORED, 0]]
        assert grid(sa.Fill(1.0, (2,)), 9).kinds.tolist() == [[BACKGROUND] * 2]
        assert grid(sa.Fill(1.0, (3, 2, 2)), 9).kinds.tolist() == [[BACKGROUND] * 2] * 2
        cube = sa.Sparse([1.0, 1.0], ([0, 1], [0, 1], [1, 1]), (2, 2, 2))
        assert grid(cube, 9).kinds.tolist() == [[0, STORED], [0, STORED]]
        assert grid(sa.zeros((0, 3)), 5).kinds.shape == (0, 3)

    def test_traced_coordinates_are_unknown(self):
        seen = []

        def look(row):
            S = sa.Sparse([1.0, 2.0], (row, [1, 0]), (2, 2))
            A = sa.Block([[S, sa.ones((2, 1))], [sa.ones((1, 2)), None]])
            seen.append((grid(A, 5).kinds, grid(sa.Product(A, A), 5).kinds))

        jax.jit(look)(jnp.asarray([0, 1]))
        u, d = UNKNOWN, DENSE
        assert seen[0][0].tolist() == [[u, u, d], [u, u, d], [d, d, 0]]
        assert seen[0][1].tolist() == [[COMPUTED] * 2 + [u], [COMPUTED] * 2 + [u], [u, u, COMPUTED]]


class WithoutEntries(sa.Array):
    """Says no more than it must."""

    __slots__ = ()

    @staticmethod
    def shape_of(leaves, meta):
        return (*leaves[0].shape, leaves[0].shape[-1])


class WithBandwidths(WithoutEntries):
    """Also says how far from the diagonal its elements stand."""

    __slots__ = ()

    def bandwidths(self):
        return 0, 1


class OneNumber(sa.Identity):
    """Has one entry, at many places; what it says of its pattern is what any array that stores entries does."""

    __slots__ = ()
    pattern = sa.Array.pattern


class TestStructuresOfUsers:
    def test_by_positions(self):
        A = Arrowhead(np.ones(5), np.ones(4), np.ones(4))
        assert np.array_equal(grid(A, 9).kinds > 0, np.asarray(A.to_jax()) != 0)
        assert grid(A + 1.0, 9).kinds.tolist()[1] == [BACKGROUND, STORED, BACKGROUND, BACKGROUND, STORED]
        seen = []
        jax.jit(lambda A: seen.append(grid(A, 9).kinds))(A)
        assert np.array_equal(seen[0], grid(A, 9).kinds)

    def test_by_one_entry_for_each_place(self):
        assert np.array_equal(grid(OneNumber(4), 9).kinds, STORED * np.eye(4))

    def test_by_bandwidths(self):
        leaf = jax.numpy.ones(4)
        assert grid(WithoutEntries.make((leaf,)), 9).kinds.tolist() == [[COMPUTED] * 4] * 4
        expected = COMPUTED * (np.eye(4) + np.eye(4, k=1))
        assert np.array_equal(grid(WithBandwidths.make((leaf,)), 9).kinds, expected)


# ---- HTML ------------------------------------------------------------------------------------------------------------


class Text(html.parser.HTMLParser):
    """The words of a page, and whether its tags are closed in their order."""

    def __init__(self, page):
        super().__init__()
        self.words, self.open, self.tags = [], [], set()
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.add(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def page_of(x):
    """The HTML of an array or log as a tree and as text, checked to be well-formed and to need nothing from elsewhere."""
    page = x._repr_html_()
    words = Text(page)
    assert not words.tags & {"script", "link", "style", "img", "iframe"}
    assert "http" not in page.replace('xmlns="http://www.w3.org/2000/svg"', "") and "url(" not in page
    return ElementTree.fromstring(page), " ".join(words.words)


def cells_drawn(svg):
    """The kinds that the paths of a picture put into its cells."""
    width, height = (int(v) for v in svg.get("viewBox").split()[2:])
    kinds = np.zeros((height, width), int)
    for path in svg.iter("{http://www.w3.org/2000/svg}path"):
        if path.get("fill") is not None:
            for j, i, w, h in re.findall(r"M(\d+) (\d+)h(\d+)v(\d+)h-\d+z", path.get("d")):
                part = kinds[int(i) : int(i) + int(h), int(j) : int(j) + int(w)]
                assert part.size == int(w) * int(h) and (part == 0).all()
                part[...] = COLOURS.index(path.get("fill"))
    return kinds


class TestHTML:
    @pytest.mark.parametrize("name", SAMPLERS)
    def test_all_structures(self, name):
        for _, x in arrays([(6, 6), (5, 7), (1, 6)], names=[name]):
            tree, text = page_of(x)
            for fact in (type(x).__name__, str(x.shape), str(x.dtype)):
                assert fact in text
            pictures = list(tree.iter("{http://www.w3.org/2000/svg}svg"))
            assert np.array_equal(cells_drawn(pictures[0]), grid(x, 40).kinds)

    @pytest.mark.parametrize(
        "x",
        [
            sa.zeros(0), sa.zeros((2, 0, 3)), sa.Fill(1.0, (0, 3)), sa.Identity(0), sa.Diagonal(np.ones(0)), sa.Banded([], (), (0, 3)),
            sa.Triangular(np.ones((0, 3))), sa.Toeplitz(np.ones(0)), sa.Circulant(np.ones(0)), sa.Permutation(np.zeros(0, int)),
            sa.Sparse(np.ones(0), (np.zeros(0, int),) * 2, (0, 3)), sa.Kronecker(sa.eye(3), np.ones((0, 2))), sa.Inverse(np.ones((0, 0))),
            sa.LowRank(np.ones((0, 2)), np.ones((3, 2))), sa.Product(np.ones((0, 2)), sa.Circulant(np.ones(2))), sa.Fourier(0),
            sa.Symmetric(np.ones((3, 0, 0))), sa.Hankel(np.ones(0)), sa.BlockDiagonal(np.ones((0, 2, 2))),
        ],
        ids=lambda x: type(x).__name__,
    )  # fmt: skip
    def test_nothing_is_drawn_of_nothing(self, x):
        tree, text = page_of(x)
        assert f"shape {x.shape}" in text and "of 0 B dense" in text
        assert x.size == 0 and tree[1].find("{http://www.w3.org/2000/svg}svg") is None

    def test_parts_without_rank(self):
        A = sa.LowRank(np.ones((3, 0)), np.ones((4, 0)))
        tree, _ = page_of(A)
        assert not cells_drawn(next(tree.iter("{http://www.w3.org/2000/svg}svg"))).any()

    def test_bytes(self):
        assert "24 B of 72 B dense (33.3 %)" in page_of(sa.Diagonal([1.0, 2.0, 3.0]))[1]
        K = sa.Kronecker(sa.ones((2, 2)), sa.Identity(100))
        text = page_of(K)[1]
        assert f"40 B of {200 * 200 * 8 // 1000} kB dense (0.0125 %)" in text
        assert "32 B of 32 B" in text and "8 B of 80 kB" in text
        S = sa.Sparse(np.ones(3, np.float32), (np.arange(3),) * 2, (10, 10))  # coordinates of 32 bits
        assert "36 B of 400 B dense (9 %)" in page_of(S)[1]

    def test_facts(self):
        D = sa.assume(sa.Diagonal([1.0, 2.0]), "positive_definite")
        assert f"assumed {', '.join(sorted(map(str, D.assumptions)))}" in page_of(D)[1] and len(D.assumptions) > 0
        assert "background 1.0" in page_of(sa.exp(sa.Diagonal([1.0, 2.0])))[1]
        assert "[[1., 2.]]" in page_of(sa.asarray([[1.0, 2.0]]))[1]

    def test_parts_are_nested(self):
        A = sa.Block([[sa.Kronecker(tridiagonal(3), sa.ones((2, 2))), sa.ones((6, 1))], [sa.ones((1, 6)), None]])
        tree, _ = page_of(A)
        (kronecker,) = tree.iter("details")
        assert "88 B of 288 B" in "".join(kronecker.find("summary").itertext())
        assert [bold.text for bold in kronecker.iter("strong")] == ["Kronecker", "Banded", "Dense"]
        names = [bold.text for bold in tree.iter("strong")]
        assert names == ["Block", "Kronecker", "Banded", "Dense", "Dense", "Dense", "Banded"]

    def test_of_many_parts_some_are_shown(self):
        B = sa.Block([[sa.Diagonal([1.0])] * 30] * 30)
        page = B._repr_html_()
        assert "840 more" in page and len(page) < 100_000

    def test_what_has_no_values(self):
        seen = []

        def look(*xs):
            seen.extend(page_of(x)[1] for x in xs)

        S = sa.Sparse([1.0, 2.0], ([0, 1], [1, 0]), (2, 2))
        low_rank = sa.LowRank(sa.ones((3, 1)), sa.ones((4, 1)))
        jax.jit(look)(sa.ones((2, 3)), sa.exp(sa.Diagonal([1.0, 2.0])), S, low_rank)
        assert "Traced<float64[2,3]>" in seen[0] and "background traced" in seen[1]
        assert "Traced<float64[2]>" in seen[2] and "56 B of 96 B" in seen[3]
        assert "(3,)" in page_of(jax.eval_shape(lambda: sa.ones(3)))[1]
        assert "16 B of 32 B" in page_of(jax.eval_shape(lambda: sa.Diagonal([1.0, 2.0])))[1]
        x = sa.ones(3)
        x.data.delete()
        assert "Dense(deleted<float64[3]>)" in page_of(x)[1]
        for leaf in (None, object(), "<b>"):
            assert "Diagonal" in page_of(jax.tree.map(lambda _, leaf=leaf: leaf, sa.Diagonal([1.0])))[1]
        jax.vmap(lambda d: look(sa.Diagonal.make((d, None), (3, 3))))(np.ones(3))  # too few dimensions for a diagonal

    def test_views_and_small_arrays(self):
        x = sa.ones((3, 4))
        for y in (x[0, :], x[0, 0], x.mT, sa.asarray(2.0), sa.zeros(0), sa.zeros((2, 0, 3)), sa.ones((1, 1000))):
            assert str(y.shape) in page_of(y)[1]

    @pytest.mark.parametrize(
        "structure", ["banded", "toeplitz", "kronecker", "sum", "product", "inverse", "block", "sparse"]
    )
    def test_a_million_rows(self, structure):
        n = 10**6
        T = tridiagonal(n)
        x = {
            "banded": lambda: sa.exp(T),
            "toeplitz": lambda: sa.Toeplitz(np.ones(n)),
            "kronecker": lambda: sa.KroneckerSum(tridiagonal(1000), tridiagonal(1000)),
            "sum": lambda: T - sa.mean(T, axis=0),
            "product": lambda: sa.Product(T, sa.Toeplitz(np.ones(n)), sa.LowRank(np.ones((n, 1)), np.ones((n, 1)))),
            "inverse": lambda: sa.Inverse(T),
            "block": lambda: sa.Block([[T, sa.ones((n, 2))], [sa.ones((2, n)), None]]),
            "sparse": lambda: sa.Sparse(np.ones(n), (np.arange(n), np.arange(n)[::-1]), (n, n)),
        }[structure]()
        tracemalloc.start()
        try:
            with sa.densify("error"), sa.record() as log:
                page = x._repr_html_()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert log.events == []  # nothing is computed
        assert len(page) < 20_000
        assert peak < (64 if structure == "sparse" else 16) * 2**20


# ---- logs ------------------------------------------------------------------------------------------------------------


def a_log():
    """Of a program that keeps structure here and loses it there, also inside of other calls."""
    rng = np.random.default_rng(0)
    S = sa.Sparse(np.ones(60), (rng.integers(0, 50, 60), rng.integers(0, 9, 60)), (50, 9))
    T = tridiagonal(12)
    with sa.record() as log:
        X = S - sa.mean(S, axis=0)
        X.mT @ X
        sa.sort(T @ T)
        sa.linalg.solve(T, sa.ones(12))
        sa.linalg.solve(sa.KroneckerSum(T, np.tri(2)), sa.ones(24))
        sa.sort(T)
    assert len(log.densifications) >= 2 and len(log.kernels) > 5
    assert any(e.depth for e in log.densifications) and any(not e.depth for e in log.densifications)
    return log


class TestLogs:
    @pytest.mark.slow
    def test_table(self):
        log = a_log()
        tree, text = page_of(log)
        rows = list(tree.iter("tr"))[1:]
        lines = list(log.lines())
        assert [row.find("td").text for row in rows] == [e.function for e, _ in lines]
        red = [row.get("class") == "densified" for row in rows]
        assert red == [e.densified for e, _ in lines]
        assert sum(count for (_, count), r in zip(lines, red) if r) == len(log.densifications)
        assert log.summary() in text and all(remark in text for remark in log.remarks())

    def test_text_says_the_same(self):
        log = a_log()
        lines = str(log).splitlines()
        assert [line.split()[0] for line in lines[2 : 2 + len(list(log.lines()))]] == [
            e.function for e, _ in log.lines()
        ]
        assert lines[-1] == log.summary() and repr(log) == str(log)

    def test_empty(self):
        with sa.record() as log:
            pass
        assert "0 kernels, 0 densifications" in page_of(log)[1]


# ---- matplotlib ------------------------------------------------------------------------------------------------------


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_matplotlib_is_not_imported_with_the_library():
    code = "import sys, structarrays as sa; sa.plot.spy; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with sa.record() as log:
        pass
    for draw in (lambda: sa.plot.spy(sa.eye(3)), lambda: sa.plot.tree(sa.eye(3)), lambda: sa.plot.flow(log)):
        with pytest.raises(ImportError, match=re.escape("structarrays[plot]")):
            draw()


class TestSpy:
    @pytest.mark.parametrize("name", SAMPLERS)
    def test_image_is_the_pattern(self, plt, name):
        x = sample(name, (12, 12), dtype="complex128" if name == "Fourier" else "float64")
        ax = sa.plot.spy(x, plt.subplots()[1], cells=5)
        (image,) = ax.images
        assert np.array_equal(image.get_array(), grid(x, 5).kinds)
        ax.figure.canvas.draw()

    def test_axes(self, plt):
        _, ax = plt.subplots()
        assert sa.plot.spy(sa.ones((20, 30)), ax) is ax
        assert ax.get_xlim() == (-0.5, 29.5) and ax.get_ylim() == (19.5, -0.5)
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["dense block"]
        ax = sa.plot.spy(tridiagonal(30), legend=False)
        assert ax.get_legend() is None
        plain = plt.subplots()[1]
        plain.spy(np.asarray(tridiagonal(30)))
        assert ax.get_xlim() == plain.get_xlim() and ax.get_ylim() == plain.get_ylim()

    def test_colours_are_those_of_the_legend(self, plt):
        from matplotlib.colors import to_rgba

        ax = sa.plot.spy(sa.exp(sa.Diagonal([1.0, 2.0])))
        (image,) = ax.images
        shown = image.to_rgba(image.get_array(), norm=True)
        patches = ax.get_legend().get_patches()
        assert np.allclose(shown[0, 0], to_rgba(COLOURS[STORED])) and np.allclose(
            shown[0, 1], to_rgba(COLOURS[BACKGROUND])
        )
        assert {p.get_label() for p in patches} == {"stored entry", "background"}
        assert all(np.allclose(p.get_facecolor(), to_rgba(COLOURS[k])) for p, k in zip(patches, (BACKGROUND, STORED)))

    def test_any_shape(self, plt):
        for x in (sa.asarray(1.0), sa.ones(5), sa.ones((1, 500)), sa.zeros((0, 3)), np.ones((2, 3, 4)), [[1.0, 2.0]]):
            sa.plot.spy(x).figure.canvas.draw()
            plt.close("all")

    def test_arguments(self, plt):
        with pytest.raises(TypeError, match="spy: x must be convertible with asarray"):
            sa.plot.spy(object())
        with pytest.raises(ValueError, match="cells must be at least 1, got 0"):
            sa.plot.spy(sa.eye(3), cells=0)


def inside(one, other):
    """Whether something is drawn within something else, from left to right."""
    (left, right), (first, last) = (each.get_window_extent().intervalx for each in (one, other))
    return first <= left and right <= last


class TestTree:
    def test_nodes(self, plt):
        A = sa.Block([[sa.Kronecker(tridiagonal(3), sa.ones((2, 2))), sa.ones((6, 1))], [sa.ones((1, 6)), None]])
        ax = sa.plot.tree(A)
        texts = [text.get_text() for text in ax.texts]
        assert texts[:3] == ["Block (7, 7) · 192 B", "Kronecker (6, 6) · 88 B", "Banded (3, 3) · 56 B"]
        assert len(texts) == len(ax.images) == 7
        columns = [round(text.get_position()[0], 6) for text in ax.texts]
        assert np.array_equal(np.argsort(np.unique(columns)), [0, 1, 2])
        assert [sorted(set(columns)).index(c) for c in columns] == [0, 1, 2, 2, 1, 1, 1]
        ax.figure.canvas.draw()

    def test_texts_do_not_leave_the_figure(self, plt):
        ax = sa.plot.tree(sa.Sum(sa.Identity(6), sa.LowRank(sa.ones((6, 1)), sa.ones((6, 1)))))
        ax.figure.canvas.draw()
        assert all(inside(text, ax.figure) for text in (*ax.texts, ax.get_legend()))

    def test_many_parts(self, plt):
        B = sa.Block([[sa.Diagonal([1.0])] * 10] * 10)
        texts = [text.get_text() for text in sa.plot.tree(B, rows=8).texts]
        assert len(texts) == 9 and texts[-1] == "… 93 more parts"

    def test_arguments(self, plt):
        assert len(sa.plot.tree(np.eye(3)).texts) == 1
        with pytest.raises(ValueError, match="rows must be at least 1"):
            sa.plot.tree(sa.eye(3), rows=0)
        with pytest.raises(TypeError, match="tree: x must be convertible with asarray"):
            sa.plot.tree("text", plt.subplots()[1])


class TestFlow:
    def red(self, ax):
        from matplotlib.colors import to_rgba

        return [i for i, box in enumerate(ax.patches) if np.allclose(box.get_facecolor(), to_rgba(sa.plot.LOST))]

    def test_red_are_the_densifications(self, plt):
        log = a_log()
        ax = sa.plot.flow(log)
        lines = list(log.lines())
        assert len(ax.patches) == len(ax.texts) == len(lines)
        assert self.red(ax) == [i for i, (e, _) in enumerate(lines) if e.densified]
        assert sum(lines[i][1] for i in self.red(ax)) == len(log.densifications)
        assert all(text.get_text().startswith(e.function) for text, (e, _) in zip(ax.texts, lines))
        assert all(e.densified or e.result in text.get_text() for text, (e, _) in zip(ax.texts, lines))
        left = [box.get_x() for box in ax.patches]
        assert [sorted(set(left)).index(x) for x in left] == [e.depth for e, _ in lines]
        ax.figure.canvas.draw()
        assert all(inside(text, box) and inside(box, ax.figure) for text, box in zip(ax.texts, ax.patches))

    def test_texts_shrink_with_the_axes(self, plt):
        # At 100 dots per inch the width of these small letters is rounded to whole dots.
        ax = sa.plot.flow(a_log(), plt.subplots(figsize=(3, 3), dpi=200)[1])
        ax.figure.canvas.draw()
        assert all(inside(text, box) for text, box in zip(ax.texts, ax.patches))

    @pytest.mark.parametrize("depth", [0, 1, 2])
    def test_what_is_lost_is_drawn_at_any_depth(self, plt, depth):
        log = a_log()
        ax = sa.plot.flow(log, depth=depth)
        lines = [e for e, _ in log.lines() if e.depth <= depth or e.densified]
        assert len(ax.patches) == len(lines)
        assert self.red(ax) == [i for i, e in enumerate(lines) if e.densified]

    def test_what_is_lost_in_calls_that_are_not_drawn(self, plt):
        log = a_log()
        ax = sa.plot.flow(log, rows=1)
        assert ax.texts[-1].get_text() == f"… {len(list(log.lines())) - 1} more calls" and self.red(ax) == [1]

    def test_nothing_lost(self, plt):
        with sa.record() as log:
            tridiagonal(5) @ tridiagonal(5)
        assert self.red(sa.plot.flow(log)) == []
        log = sa.explain(sa.linalg.solve, tridiagonal(5), sa.ones(5))
        assert self.red(sa.plot.flow(log, plt.subplots()[1])) == []

    def test_empty(self, plt):
        with sa.record() as log:
            pass
        assert [text.get_text() for text in sa.plot.flow(log).texts] == ["nothing was recorded"]

    def test_arguments(self, plt):
        with pytest.raises(TypeError, match="log must be a log of record"):
            sa.plot.flow([])
        log = a_log()
        with pytest.raises(ValueError, match="depth must be at least 0, got -1"):
            sa.plot.flow(log, depth=-1)
        with pytest.raises(ValueError, match="rows must be at least 1, got 0"):
            sa.plot.flow(log, rows=0)


ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_pages_show_what_their_code_makes(tmp_path):
    pytest.importorskip("matplotlib")
    subprocess.run(
        [sys.executable, ROOT / "docs" / "gallery.py", tmp_path],
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    pages = "".join((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8") for page in ("gallery", "tutorial"))
    shown = {*re.findall(r"\]\(pictures/(.*?)\)", pages), *re.findall(r'^--8<-- "(.*?)"$', pages, re.MULTILINE)}
    made = {path.name for path in tmp_path.iterdir()}
    kept = {path.name for pattern in ("gallery_*", "tutorial_*") for path in (ROOT / "docs" / "pictures").glob(pattern)}
    assert made == shown == kept
    for name in made:
        kept = (ROOT / "docs" / "pictures" / name).read_text(encoding="utf-8")
        if name.endswith(".html"):  # what else they hold depends on the version of matplotlib
            texts = (kept, (tmp_path / name).read_text(encoding="utf-8"))
            same, made_now = (re.sub(r"\.py:\d+\)", ".py)", text) for text in texts)  # except for the lines of kernels
            assert same == made_now, "run python docs/gallery.py"
        ElementTree.fromstring(kept)


def contrast(colour: str, other: str) -> float:
    """The ratio of luminances of two colours (WCAG 2, 1.4.3)."""

    def luminance(colour):
        channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear))

    low, high = sorted(map(luminance, (colour, other)))
    return (high + 0.05) / (low + 0.05)


def test_what_is_lost_reads_on_light_and_on_dark_pages():
    from structarrays.interop.html import LOST

    assert LOST == sa.plot.LOST
    assert contrast(LOST, "#ffffff") > 3 and contrast(LOST, "#111111") > 3
