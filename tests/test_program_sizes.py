"""Compiled programs stay small: they grow no faster than the structure that they serve.

JAX traces, and XLA compiles, every instruction of a program. What is traced again in each branch or at each level of a nested structure takes
minutes. Sizes depend on neither the machine nor its load, so that these tests read programs and no clock.
"""

import jax
import jax.numpy as jnp
from compiled_programs import instructions

import structarrays as sa


def banded(rng, n, w):
    """A diagonally dominant matrix with w diagonals on either side."""
    offsets = tuple(range(-w, w + 1))
    return sa.Banded([rng.normal(size=n - abs(k)) + (4 * w if k == 0 else 0) for k in offsets], offsets, (n, n))


def size(function, *arguments):
    """The number of instructions of a compiled function."""
    return instructions(jax.jit(function).lower(*arguments).compile().as_text()).total()


def squares(x):
    return sum(jnp.sum(jnp.abs(leaf) ** 2) for leaf in jax.tree.leaves(x))


def test_the_derivative_of_a_product_of_bands_is_linear_in_the_diagonals(rng):
    gradient = jax.grad(lambda x: squares(x.mT @ x))
    small, large = (size(gradient, banded(rng, 100, w)) for w in (6, 9))
    assert large < 1.6 * small
    assert large < 2500
