"""Random expressions of the matrices of `hard_inputs`: values, ``vmap``, and derivatives forward and in reverse are those of dense arrays.

The oracle of values is NumPy. The oracle of derivatives is JAX on the dense matrices. 4 expressions run by default;
``--expressions 10000`` runs more, others each time. Most of the time is compilation. It takes less with ``JAX_DISABLE_MOST_OPTIMIZATIONS=1``.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hard_inputs import MATRICES, N

import structarrays as sa

DEPTH = 3
KINDS = ("sum", "difference", "entrywise", "product", "transpose", "number", "rows", "columns", "centred", "solve")
OUT_OF_RANGE = ("Diagonal: graded from 1e-300 to 1e300", "Banded: tiny", "Banded: huge")
"""Their squares are zero or infinite."""

CONDITION = 1e4
"""Up to here a matrix is solved with: of worse ones, elements of the solution may have no right digit."""

FACTOR = 1e3 * np.finfo(float).eps
STACK = 2
COMPILED = 8
"""One in so many expressions is compiled as a whole, which takes seconds. Operations of the others are compiled once for all expressions."""


@functools.cache
def leaves(condition=np.inf):
    """The names of the square matrices of N rows, up to a condition number."""
    found = {name: MATRICES[name](np.random.default_rng(0)) for name in MATRICES if name not in OUT_OF_RANGE}
    return [name for name, x in found.items() if x.shape == (N, N) and np.linalg.cond(np.asarray(x)) <= condition]


class Bound(NamedTuple):
    """A matrix of the magnitudes that rounding errors are relative to, and that of the inverse of a leaf."""

    data: jax.Array
    inverse: jax.Array | None = None


class Magnitudes:
    """The operations of expressions on `Bound`, instead of those on matrices."""

    sum = difference = staticmethod(lambda x, y: Bound(x.data + y.data))
    entrywise = staticmethod(lambda x, y: Bound(x.data * y.data))
    product = staticmethod(lambda x, y: Bound(x.data @ y.data))
    transpose = staticmethod(lambda x: Bound(x.data.mT))
    number = staticmethod(lambda x: Bound(1.5 * x.data))
    scaled = staticmethod(lambda x, r: Bound(x.data * abs(r)))
    centred = staticmethod(lambda x: Bound(x.data + jnp.mean(x.data, axis=-2, keepdims=True)))

    @staticmethod
    def solve(x, y):
        return Bound(x.inverse @ (y.data + x.data @ (x.inverse @ y.data)))


class Operations:
    """The operations of expressions on the arrays of a namespace."""

    def __init__(self, xp):
        self.xp = xp

    sum = staticmethod(lambda x, y: x + y)
    difference = staticmethod(lambda x, y: x - y)
    entrywise = staticmethod(lambda x, y: x * y)
    product = staticmethod(lambda x, y: x @ y)
    transpose = staticmethod(lambda x: x.mT)
    number = staticmethod(lambda x: 1.5 * x)

    def scaled(self, x, r):
        return x * self.xp.asarray(r)

    def centred(self, x):
        return x - self.xp.mean(x, axis=-2, keepdims=True)

    def solve(self, x, y):
        return self.xp.linalg.solve(x, y)


OURS, JAX, NUMPY, MAGNITUDES = Operations(sa), Operations(jnp), Operations(np), Magnitudes()


class Expression:
    """A random expression, and random matrices for it.

    Attributes
    ----------
    arrays, directions : list of Array
        The leaves, and the tangents of their derivative, of the same structures.
    """

    def __init__(self, seed):
        self.rng, self.names = np.random.default_rng(seed), []
        self.root = self.node(int(self.rng.integers(1, DEPTH + 1)))
        phase = complex(0.8, 0.6) if self.rng.random() < 0.3 else 1.0
        self.arrays = [self.matrix(name) * phase for name in self.names]
        self.directions = [jax.tree.map(self.tangent, x) for x in self.arrays]
        self.weights = jnp.asarray(self.rng.normal(size=(N, N)))

    def __str__(self):
        return f"{self.root} of {self.names}"

    def matrix(self, name):
        """Scaled to elements of about one, so that products stay in range."""
        x = MATRICES[name](np.random.default_rng(self.rng.integers(2**31)))
        return x * float(2.0 ** -np.round(np.log2(np.max(np.abs(np.asarray(x))))))

    def tangent(self, leaf):
        if leaf.dtype.kind not in "fc":
            return np.zeros(leaf.shape, jax.dtypes.float0)
        return jnp.asarray(self.rng.normal(size=leaf.shape) * np.abs(np.asarray(leaf)), leaf.dtype)

    def node(self, depth):
        """A tuple of the kind of an operation and its operands."""
        if depth == 0:
            return self.leaf()
        kind = KINDS[self.rng.integers(len(KINDS))]
        if kind == "solve":
            return (kind, self.leaf(CONDITION), self.node(depth - 1))
        if kind in ("transpose", "number", "rows", "columns", "centred"):
            return (kind, self.node(depth - 1))
        return (kind, self.node(depth - 1), self.node(int(self.rng.integers(depth))))

    def leaf(self, condition=np.inf):
        names = leaves(condition)
        self.names.append(names[self.rng.integers(len(names))])
        return ("leaf", len(self.names) - 1)

    def value(self, arrays, operations, node=None):
        """The value for arrays instead of the leaves."""
        kind, *operands = node or self.root
        if kind == "leaf":
            return arrays[operands[0]]
        operands = [self.value(arrays, operations, operand) for operand in operands]
        if kind in ("rows", "columns"):
            factors = np.arange(N) % 5 - 1.5
            return operations.scaled(*operands, factors[:, None] if kind == "rows" else factors)
        return getattr(operations, kind)(*operands)

    def number(self, arrays, operations):
        """A real number of the value, for derivatives."""
        x = self.value(arrays, operations)
        x = x.data if isinstance(x, Bound) else x.to_jax() if isinstance(x, sa.Array) else x
        return jnp.sum(abs(self.weights) * x) if operations is MAGNITUDES else jnp.sum(self.weights * jnp.real(x))


def dense(x):
    return x.to_jax() if isinstance(x, sa.Array) else x


def all_of(expression, arrays, directions):
    """The value, the derivative of a number along the directions, and its gradient, for structured arrays."""

    def number(arrays):
        return expression.number(arrays, OURS)

    gradient = jax.grad(number, allow_int=True)(arrays)
    return dense(expression.value(arrays, OURS)), jax.jvp(number, (arrays,), (directions,))[1], gradient


def size_of_parts(x):
    """The largest magnitude in the parts of a factored array, whose elements may be differences of large numbers."""
    if x.stores_entries:
        return 0.0 if x.background is None else float(np.max(np.abs(x.background)))
    sizes = [np.max(np.abs(np.asarray(leaf)), initial=0) for leaf in jax.tree.leaves(x) if leaf.dtype.kind in "fc"]
    return float(np.prod([1 + size for size in sizes]))


def close(found, expected, bound):
    error = np.abs(np.asarray(found) - np.asarray(expected))
    assert np.all(error <= FACTOR * (np.abs(np.asarray(bound)) + 1e-300)), float(np.max(error))


def check(seed):
    expression = Expression(seed)
    arrays, directions = expression.arrays, expression.directions
    matrices, tangents = jax.jvp(lambda arrays: [x.to_jax() for x in arrays], (arrays,), (directions,))
    bounds, changes = [], []
    for x, a, t in zip(arrays, matrices, tangents, strict=True):
        singular = np.linalg.cond(a) > CONDITION
        inverse = None if singular else jnp.abs(jnp.linalg.inv(a))
        bounds.append(Bound(jnp.abs(a) + size_of_parts(x), inverse))
        changes.append(Bound(jnp.abs(t) + size_of_parts(x), None if singular else jnp.zeros_like(inverse)))
    bound = expression.value(bounds, MAGNITUDES).data
    number = functools.partial(expression.number, operations=MAGNITUDES)
    bound_of_change = jax.jvp(number, (bounds,), (changes,))[1]
    bounds_of_gradient = jax.grad(number)(bounds)

    expected = expression.value([np.asarray(a) for a in matrices], NUMPY)
    close(dense(expression.value(arrays, OURS)), expected, bound)

    number = functools.partial(expression.number, operations=JAX)
    change = jax.jvp(number, (matrices,), (tangents,))[1]
    gradients = jax.grad(number)(matrices)
    run = functools.partial(all_of, expression)
    if seed % COMPILED == 0:
        results = [jax.jit(run)(arrays, directions)]
    else:
        stacked = jax.tree.map(lambda leaf: np.stack([leaf] * STACK), (arrays, directions))
        mapped = jax.vmap(run)(*stacked)
        results = [jax.tree.map(lambda leaf: leaf[STACK - 1], mapped)]
    for value, found, gradient in results:
        close(value, expected, bound)
        close(found, change, bound_of_change)
        for x, direction, g, dense_gradient, b in zip(
            arrays, directions, gradient, gradients, bounds_of_gradient, strict=True
        ):
            # The derivative by the parameters, along a direction, is that by the elements along the direction of the elements.
            product = sum(
                jnp.sum(jnp.real(a * t))
                for a, t in zip(jax.tree.leaves(g), jax.tree.leaves(direction), strict=True)
                if a.dtype.kind in "fc"
            )
            tangent = jax.jvp(lambda x: x.to_jax(), (x,), (direction,))[1]
            wanted = jnp.sum(jnp.real(dense_gradient * tangent))
            close(product, wanted, jnp.sum(b.data * (jnp.abs(tangent) + size_of_parts(x))))


@pytest.mark.each_parameter
@pytest.mark.parametrize("group", range(4))
def test_random_expressions_of_hard_inputs(group, request):
    given = request.config.getoption("--expressions", default=None)
    count = given or 4
    first = 0 if given is None else int(np.random.default_rng().integers(2**31))
    for i in range(group, count, 4):
        try:
            check(first + i)
        except Exception as error:
            raise AssertionError(
                f"expression {first + i}, {Expression(first + i)}: {type(error).__name__}: {error}"
            ) from error
        if i % 100 == group:
            jax.clear_caches()
