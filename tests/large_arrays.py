"""Large arrays of all structures with few stored entries, and the allocations of a program. JAX only traces the programs."""

import jax
import jax.numpy as jnp
import numpy as np

import structarrays as sa

PART = 100
"""The number of rows of factors and blocks, and the number of factors and blocks."""

SIZE = PART**2
"""The number of rows of all arrays."""


def large_arrays(dtype, definite):
    """Square arrays of all structures, by name, with few parameters; with `definite` they are Hermitian and positive definite.

    Parameters
    ----------
    dtype : str
        Of all of them.
    definite : bool
        Whether the values matter for the function that gets them.
    """
    rng, n, dtype = np.random.default_rng(0), SIZE, np.dtype(dtype)

    def draw(*shape):
        numbers = rng.uniform(-2, 2, shape)
        numbers = numbers + 1j * rng.uniform(-2, 2, shape) if dtype.kind == "c" else numbers
        return numbers.astype(dtype)

    def positive(*shape):
        return (np.abs(draw(*shape)) + 5).astype(dtype)

    def band(*offsets):
        """A matrix with a dominant diagonal, and equal values above and below it."""
        above = {k: draw(n - k) for k in offsets}
        diagonals = [*(above[k].conj() for k in offsets[::-1]), positive(n), *above.values()]
        return sa.Banded(diagonals, (*(-k for k in offsets[::-1]), 0, *offsets), (n, n))

    def with_background(x):
        return x.rebuild(x.entries, jnp.asarray(1, dtype))

    arrays = {
        "Fill": sa.Fill(np.asarray(2, dtype), (n, n)),
        "Identity": sa.Identity((n, n), positive()),
        "Diagonal": sa.Diagonal(positive(n)),
        "Banded": band(1, 3),
        "Banded, periodic": band(1, n - 1),
        "Permutation": sa.Permutation(rng.permutation(n), dtype=dtype),
        "Sparse": _sparse(rng, n, dtype),
    }
    for name in ("Identity", "Diagonal", "Banded", "Banded, periodic", "Sparse"):
        arrays[f"{name} + background"] = with_background(arrays[name])
    if dtype.kind == "b":
        return arrays
    column = draw(n)
    column[0] = 20 * n if dtype.kind in "fc" else 7
    row = column.conj() if definite else draw(n)
    row[0] = column[0]
    few, even = np.asarray([5, 1], dtype), column.copy()
    even[1:] += even[1:][::-1].conj()
    u = draw(n, 3)
    v = u.conj() if definite else draw(n, 3)
    arrays |= {
        "Toeplitz": sa.Toeplitz(column, row),
        "Toeplitz, tridiagonal": sa.Toeplitz(few, few, shape=(n, n)),
        "Toeplitz, lower": sa.Toeplitz(column, column[:1], shape=(n, n)),
        "Circulant": sa.Circulant(even),
        "Hankel": sa.Hankel(column, column[-1:].repeat(n)),
        "LowRank": sa.LowRank(u, v),
        "Sum": sa.Sum(sa.Diagonal(positive(n)), sa.LowRank(u, v)),
    }
    if dtype.kind in "iu":
        return arrays

    def dominant(*shape):
        a = draw(*shape) / PART
        return (a + np.swapaxes(a, -1, -2).conj() + 5 * np.eye(shape[-1])).astype(dtype)

    half, blocks, beside = n // 2, dominant(PART, PART, PART), draw(PART - 1, PART, PART) / PART
    factors = dominant(PART, PART), dominant(PART, PART)
    toeplitz = sa.Toeplitz(column, column.conj())
    reflectors = np.ones((n, 2), dtype)
    reflectors[-1, 1] = 0
    arrays |= {
        "Kronecker": sa.Kronecker(*factors),
        "KroneckerSum": sa.KroneckerSum(*factors),
        "Inverse": sa.Inverse(band(1)),
        "Inverse of Toeplitz": sa.Inverse(toeplitz),
        "Householder": sa.Householder(reflectors, np.r_[np.ones(n - 1), 2].astype(dtype), (n, n)),
        "BlockDiagonal": sa.BlockDiagonal(blocks),
        "BlockDiagonal + background": with_background(sa.BlockDiagonal(blocks)),
        "BlockBanded": sa.BlockBanded([np.swapaxes(beside, -1, -2).conj(), blocks, beside], (-1, 0, 1), (n, n)),
        "Sum of Toeplitz and Diagonal": sa.Sum(toeplitz, sa.Diagonal(positive(n))),
        "Sum of Toeplitz and LowRank": sa.Sum(toeplitz, sa.LowRank(u, u.conj())),
        "Product of Toeplitz": sa.Product(toeplitz, sa.Diagonal(positive(n))),
        "Product of Kronecker": sa.Product(sa.Kronecker(*factors), sa.Circulant(even)),
        "LowRank of KhatriRao": sa.LowRank(u, v) * sa.LowRank(u, v),
        "Block": sa.Block(
            [
                [sa.Diagonal(positive(half)), sa.LowRank(u[:half], v[half:])],
                [sa.LowRank(v[half:].conj(), u[:half].conj()), sa.Toeplitz(column[:half], column[:half].conj())],
            ]
        ),
    }
    if dtype.kind == "c":
        arrays["Fourier"] = sa.Fourier(n, dtype=dtype)
    return arrays


def _sparse(rng, n, dtype):
    """A symmetric pattern that includes the diagonal."""
    order = rng.permutation(n)
    keys = np.unique(np.r_[np.arange(n) * (n + 1), np.arange(n) * n + order, order * n + np.arange(n)])
    rows, columns = keys // n, keys % n
    return sa.Sparse(np.where(rows == columns, 20, 1).astype(dtype), (rows, columns), (n, n))


def allocations(function, *arrays, size):
    """The operations of a program that give arrays of at least so many elements: ``(primitive, shape)`` for each.

    What no result needs does not count, since XLA leaves it out.
    """
    program = jax.make_jaxpr(lambda *arrays: jax.tree.leaves(function(*arrays)))(*arrays)
    constants = [("constant", np.shape(c)) for c in program.consts if np.size(c) >= size]
    return constants + list(_large(program.jaxpr, size))


def _large(program, size):
    for equation in _needed(program):
        inner = [p for value in equation.params.values() for p in _programs(value)]
        for p in inner:
            yield from _large(p, size)
        for result in () if inner else equation.outvars:
            if np.prod(getattr(result.aval, "shape", ()), dtype=float) >= size:
                yield equation.primitive.name, result.aval.shape


def _needed(program):
    needed, kept = set(map(id, program.outvars)), []
    for equation in reversed(program.eqns):
        if equation.effects or needed & set(map(id, equation.outvars)):
            kept.append(equation)
            needed.update(map(id, equation.invars))
    return kept


def _programs(value):
    if isinstance(value, (tuple, list)):
        return [p for v in value for p in _programs(v)]
    value = getattr(value, "jaxpr", value)
    return [value] if hasattr(value, "eqns") else []
