"""Standardized data, ``Z = (X - mean) / std``, for structured matrices of 100,000 × 3000, compared with formulas by hand.

The formulas compute on the parameters, in NumPy (SciPy for sparse matrices) and in jitted `jax.numpy`. They represent Z
by the scaled entries of X and a row `c = -mean / std` that is added to each row. Their variance is the mean of the
squares minus the square of the mean, which suffers from cancellation; ours does not. No candidate allocates the 2.4 GB
of the dense form.
"""

import functools
import time

import jax
import jax.numpy as jnp
import numpy as np
from harness import OURS, Bar, Report
from peers import CPU_ONLY, on_cpu

import structarrays as sa

NUMPY, JAX = "the formula in NumPy", "the formula in jax.numpy, jitted"
OURS_JITTED = "structarrays, jitted"
FACTOR = 3.0


def run(report: Report, rows: int = 100_000, columns: int = 3000) -> None:
    report.section(f"Standardised data, {rows:,} × {columns:,}")
    rng = np.random.default_rng(0)
    w, y, mask = rng.normal(size=(columns, 20)), rng.normal(size=(rows, 20)), rng.random(rows) < 0.3
    for kind in (BySparse, ByRank, ByKronecker, ByBands):
        compare(report, kind(rng, rows, columns), w, y, mask)


def compare(report: Report, data, w, y, mask) -> None:
    """Time each step separately, from X or from Z: eager calls and NumPy, compiled programs and compiled formulas."""
    x = data.array
    with sa.densify("error"):
        operands = (x, standardised(x), sa.asarray(w), sa.asarray(y))
        steps = {
            "mean(X, axis=0)": (lambda x, z, w, y: sa.mean(x, axis=0), "mean", ()),
            "std(X, axis=0)": (lambda x, z, w, y: sa.std(x, axis=0), "std", ()),
            "Z = (X - mean) / std": (lambda x, z, w, y: standardised(x), "scale", None),
            "Z**2": (lambda x, z, w, y: z**2, "square", None),
            "sum(Z**2)": (lambda x, z, w, y: sa.sum(z**2), "squares", ()),
            "sum(Z**2, axis=0)": (lambda x, z, w, y: sa.sum(z**2, axis=0), "squares_of_columns", ()),
            "sum(Z**2, axis=1)": (lambda x, z, w, y: sa.sum(z**2, axis=1), "squares_of_rows", ()),
            "sum(Z)": (lambda x, z, w, y: sa.sum(z), "sum", ()),
            "Z @ W, 20 columns": (lambda x, z, w, y: z @ w, "times", (w,)),
            "Z.mT @ Y, 20 columns": (lambda x, z, w, y: z.mT @ y, "transposed_times", (y,)),
            "var(Z, axis=0)": (lambda x, z, w, y: sa.var(z, axis=0), "variance", ()),
            "Z[mask]": (lambda x, z, w, y: z[mask], "rows", None),
            "Z[mask] @ W": (lambda x, z, w, y: z[mask] @ w, "rows_times", (w,)),
        }
        for name, (step, method, arguments) in steps.items():
            ours = functools.partial(step, *operands)
            candidates, absent, bars = {OURS: ours}, {}, [Bar(NUMPY, FACTOR)]
            if on_cpu():
                candidates[NUMPY] = by_hand(data, method, np, arguments or (), mask)
            else:
                absent[NUMPY] = CPU_ONLY
            if method not in ("rows", "rows_times"):  # the number of rows depends on the mask: no compiled code
                candidates[OURS_JITTED] = functools.partial(jax.jit(step), *operands)
                candidates[JAX] = by_hand(data, method, jnp, arguments or (), mask)
                bars.append(Bar(JAX, FACTOR, subject=OURS_JITTED))
            if arguments is not None:  # check the results first
                results = [np.asarray(function()) for function in candidates.values()]
                scale = max(1.0, np.max(np.abs(results[-1])))
                for result in results:
                    np.testing.assert_allclose(result / scale, results[-1] / scale, atol=1e-9)
            report.time(f"{data.name}: {name}", candidates, bars, absent, rounds=_rounds(ours))


def _rounds(function) -> int:
    """Return the number of rounds in a tenth of a second: on a busy machine, few calls of microseconds are not enough."""
    jax.block_until_ready(function())
    start = time.perf_counter()
    jax.block_until_ready(function())
    return max(20, min(300, int(0.1 / (time.perf_counter() - start))))


def standardised(x):
    return (x - sa.mean(x, axis=0)) / sa.std(x, axis=0)


def by_hand(data, method, xp, arguments, mask):
    """Return a method of the formulas with bound operands: a call of NumPy, or a compiled call."""
    parameters = data.parameters if method in ("mean", "std", "scale") else data.scaled
    if method.startswith("rows"):
        return lambda: getattr(data, method)(*parameters, mask, *arguments)
    if xp is np:
        return lambda: getattr(data, method)(np, *parameters, *arguments)
    operands = jax.tree.map(jnp.asarray, (parameters, arguments))
    compiled = jax.jit(lambda p, a: getattr(data, method)(jnp, *p, *a))
    return lambda: compiled(*operands)


class Formulas:
    """Formulas by hand: methods of ``(xp, *parameters)``.

    The parameters are the parameters of X or, from `square` on, of Z, which end with the row c.
    """

    def __init__(self, array, parameters):
        self.array, self.parameters = array, parameters
        self.rows_of_x, self.columns = array.shape
        self.scaled = tuple(self.scale(np, *parameters))

    def std(self, xp, *parameters):
        return xp.sqrt(self.mean_square(xp, *parameters) - self.mean(xp, *parameters) ** 2)

    def scale(self, xp, *parameters):
        mean, std = self.mean(xp, *parameters), self.std(xp, *parameters)
        return (*self.divided(xp, *parameters, std), -mean / std)

    def squares(self, xp, *scaled):
        return xp.sum(self.squares_of_columns(xp, *scaled))

    def variance(self, xp, *scaled):
        *parameters, c = scaled
        mean = self.mean(xp, *parameters)  # the mean of Z is mean + c
        return self.mean_square(xp, *parameters) - mean**2

    def sum(self, xp, *scaled):
        *parameters, c = scaled
        return self.rows_of_x * xp.sum(self.mean(xp, *parameters) + c)

    def squares_of_columns(self, xp, *scaled):
        *parameters, c = scaled
        mean, mean_square = self.mean(xp, *parameters), self.mean_square(xp, *parameters)
        return self.rows_of_x * (mean_square + 2 * c * mean + c**2)

    def times(self, xp, *arguments):
        *parameters, c, w = arguments
        return self.product(xp, *parameters, w) + c @ w

    def transposed_times(self, xp, *arguments):
        *parameters, c, y = arguments
        return self.transposed_product(xp, *parameters, y) + c[:, None] * xp.sum(y, axis=0)

    def rows_times(self, *arguments):
        *parameters, mask, w = arguments
        return self.times(np, *self.rows(*parameters, mask), w)


class BySparse(Formulas):
    """Formulas for entries sorted by rows, with their coordinates; in SciPy a csr matrix."""

    name = "Sparse, 10 entries in each row"

    def __init__(self, rng, rows, columns):
        coordinates = np.stack([np.repeat(np.arange(rows), 10), rng.integers(0, columns, 10 * rows)])
        x = sa.Sparse(rng.normal(size=10 * rows), tuple(coordinates), (rows, columns))
        super().__init__(x, tuple(np.asarray(leaf) for leaf in (x.data, *x.coords)))

    def totals(self, xp, values, index, count):
        if xp is np:
            return np.bincount(index, values, count)
        return jax.ops.segment_sum(values, index, count, indices_are_sorted=count == self.rows_of_x)

    def matrix(self, data, i, j):
        from scipy import sparse

        starts = np.searchsorted(i, np.arange(self.rows_of_x + 1))
        return sparse.csr_array((data, j, starts), shape=(self.rows_of_x, self.columns))

    def scale(self, xp, *parameters):
        scaled = super().scale(xp, *parameters)
        if not hasattr(self, "csr"):
            self.csr = self.matrix(*scaled[:3])  # once, outside of the measurement
        return scaled

    def mean(self, xp, data, i, j):
        return self.totals(xp, data, j, self.columns) / self.rows_of_x

    def mean_square(self, xp, data, i, j):
        return self.totals(xp, data**2, j, self.columns) / self.rows_of_x

    def divided(self, xp, data, i, j, std):
        return data / std[j], i, j

    def square(self, xp, data, i, j, c):
        return (data + 2 * c[j]) * data, c**2

    def squares_of_rows(self, xp, data, i, j, c):
        return self.totals(xp, (data + 2 * c[j]) * data, i, self.rows_of_x) + xp.sum(c**2)

    def product(self, xp, data, i, j, w):
        if xp is np:
            return self.csr @ w
        return jax.ops.segment_sum(data[:, None] * w[j], i, self.rows_of_x, indices_are_sorted=True)

    def transposed_product(self, xp, data, i, j, y):
        if xp is np:
            return self.csr.T @ y
        return jax.ops.segment_sum(data[:, None] * y[i], j, self.columns)

    def rows(self, data, i, j, c, mask):
        return self.csr[mask], c

    def rows_times(self, data, i, j, c, mask, w):
        return self.csr[mask] @ w + c @ w


class ByRank(Formulas):
    """Formulas for the factors of a low-rank matrix. The square consists of products of columns, as users write it."""

    name = "LowRank, rank 20"

    def __init__(self, rng, rows, columns):
        u, v = rng.normal(size=(rows, 20)), rng.normal(size=(columns, 20))
        super().__init__(sa.LowRank(u, v), (u, v))

    def mean(self, xp, u, v):
        return v @ xp.mean(u, axis=0)

    def mean_square(self, xp, u, v):
        return xp.sum((v @ (u.T @ u)) * v, axis=1) / self.rows_of_x

    def divided(self, xp, u, v, std):
        return u, v / std[:, None]

    def square(self, xp, u, v, c):
        first, second = np.triu_indices(u.shape[1] + 1)
        u, v = xp.hstack([u, xp.ones((u.shape[0], 1))]), xp.hstack([v, c[:, None]])
        return u[:, first] * u[:, second], v[:, first] * v[:, second] * xp.where(first == second, 1.0, 2.0)

    def squares_of_rows(self, xp, u, v, c):
        return xp.sum((u @ (v.T @ v)) * u, axis=1) + 2 * (u @ (v.T @ c)) + xp.sum(c**2)

    def product(self, xp, u, v, w):
        return u @ (v.T @ w)

    def transposed_product(self, xp, u, v, y):
        return v @ (u.T @ y)

    def rows(self, u, v, c, mask):
        return u[mask], v, c


class ByKronecker(Formulas):
    """Formulas for the factors, and the scales of the columns."""

    name = "Kronecker, 1000 × 50 ⊗ 100 × 60"

    def __init__(self, rng, rows, columns):
        a, b = rng.normal(size=(rows // 100, columns // 60)), rng.normal(size=(100, 60))
        super().__init__(sa.Kronecker(a, b), (a, b, np.ones(columns)))

    def mean(self, xp, a, b, d):
        return xp.kron(xp.mean(a, axis=0), xp.mean(b, axis=0)) * d

    def mean_square(self, xp, a, b, d):
        return xp.kron(xp.mean(a**2, axis=0), xp.mean(b**2, axis=0)) * d**2

    def divided(self, xp, a, b, d, std):
        return a, b, d / std

    def square(self, xp, a, b, d, c):
        return a**2, b**2, d**2, 2 * c * d, c**2

    def squares_of_rows(self, xp, a, b, d, c):
        first = self.product(xp, a**2, b**2, d**2, xp.ones((self.columns, 1)))[:, 0]
        return first + 2 * self.product(xp, a, b, d, c[:, None])[:, 0] + xp.sum(c**2)

    def product(self, xp, a, b, d, w):
        columns = w.shape[1]
        half = a @ (d[:, None] * w).reshape(a.shape[1], -1)
        return (b @ half.reshape(a.shape[0], b.shape[1], columns)).reshape(-1, columns)

    def transposed_product(self, xp, a, b, d, y):
        columns = y.shape[1]
        half = b.T @ y.reshape(a.shape[0], b.shape[0], columns)
        return d[:, None] * (a.T @ half.reshape(a.shape[0], -1)).reshape(-1, columns)

    def rows(self, a, b, d, c, mask):
        return np.divmod(np.flatnonzero(mask), b.shape[0]), a, b, d, c

    def rows_times(self, a, b, d, c, mask, w):
        return self.times(np, a, b, d, c, w)[mask]


class ByBands(Formulas):
    """Formulas for the diagonals, each a slice of the columns: in a tall matrix all have (nearly) the length of a row."""

    name = "Banded, 5 diagonals"

    def __init__(self, rng, rows, columns):
        self.offsets = (-97 * rows // 100, -rows // 2, -1, 0, 1)
        self.lengths = [min(rows + min(k, 0), columns - max(k, 0)) for k in self.offsets]
        diagonals = [rng.normal(size=n) for n in self.lengths]
        super().__init__(sa.Banded(diagonals, self.offsets, (rows, columns)), (tuple(diagonals),))

    def part(self, k, n):
        """Return the columns and rows of a diagonal."""
        return slice(max(0, k), max(0, k) + n), slice(max(0, -k), max(0, -k) + n)

    def added(self, xp, terms, shape, rows=False):
        result = xp.zeros(shape)
        for term, k, n in zip(terms, self.offsets, self.lengths, strict=True):
            place = self.part(k, n)[rows]
            if xp is np:
                result[place] += term
            else:
                result = result.at[place].add(term)
        return result

    def each(self, diagonals, vector, rows=False):
        return [
            (d, vector[self.part(k, n)[rows]]) for d, k, n in zip(diagonals, self.offsets, self.lengths, strict=True)
        ]

    def mean(self, xp, diagonals):
        return self.added(xp, diagonals, self.columns) / self.rows_of_x

    def mean_square(self, xp, diagonals):
        return self.added(xp, [d**2 for d in diagonals], self.columns) / self.rows_of_x

    def divided(self, xp, diagonals, std):
        return ([d / s for d, s in self.each(diagonals, std)],)

    def square(self, xp, diagonals, c):
        return [(d + 2 * v) * d for d, v in self.each(diagonals, c)], c**2

    def squares_of_rows(self, xp, diagonals, c):
        return self.added(xp, self.square(xp, diagonals, c)[0], self.rows_of_x, rows=True) + xp.sum(c**2)

    def product(self, xp, diagonals, w):
        terms = [d[:, None] * v for d, v in self.each(diagonals, w)]
        return self.added(xp, terms, (self.rows_of_x, w.shape[1]), rows=True)

    def transposed_product(self, xp, diagonals, y):
        terms = [d[:, None] * v for d, v in self.each(diagonals, y, rows=True)]
        return self.added(xp, terms, (self.columns, y.shape[1]))

    def rows(self, diagonals, c, mask):
        numbers, parts = np.cumsum(mask) - 1, []
        for d, k, n in zip(diagonals, self.offsets, self.lengths, strict=True):
            columns, rows = self.part(k, n)
            chosen = np.flatnonzero(mask[rows])
            parts.append((d[chosen], numbers[rows][chosen], columns.start + chosen))
        return parts, c

    def rows_times(self, diagonals, c, mask, w):
        return self.times(np, diagonals, c, w)[mask]
