"""Compare a JAX function of a structured array with the same function of the dense array, under a transformation of JAX."""

import functools
import zlib

import jax
import jax.numpy as jnp
import numpy as np
from functions import FUNCTIONS, function
from support import as_jax

import structarrays as sa
from structarrays._core.array.base import Array
from structarrays.testing import sample

WAYS = ("eager", "jit", "grad", "vmap", "jvp")
CORE = {"": (4, 5), "square": (4, 4), "invertible": (4, 4), "positive definite": (4, 4)}
REQUIRES = {"": "", "square": "", "invertible": "invertible", "positive definite": "positive definite"}


@functools.cache
def operands(structure, section, batch=(), dtype="float64"):
    """An array of the structure and a vector, or None if there is none. The values depend only on the names."""
    seed = zlib.crc32(f"{structure} {section}".encode())
    core = CORE[section]
    A = sample(structure, core, batch=batch, requires=REQUIRES[section], seed=seed, dtype=dtype)
    if A is None and core[0] != core[1]:
        A = sample(structure, (4, 4), batch=batch, requires=REQUIRES[section], seed=seed, dtype=dtype)
    if A is None:
        return None
    x = jnp.asarray(np.random.default_rng(seed).uniform(0.2, 1, (*batch, A.shape[-1])))
    return A, x


def dense(value):
    """Results with every array in its dense form."""
    return jax.tree.map(
        lambda v: as_jax(v) if isinstance(v, Array) else v, value, is_leaf=lambda v: isinstance(v, Array)
    )


def leaves_of(A):
    """The parameters that have derivatives, and a function that rebuilds the array from such parameters."""
    leaves, tree = jax.tree.flatten(A)
    moving = [i for i, leaf in enumerate(leaves) if jnp.issubdtype(leaf.dtype, jnp.inexact)]

    def rebuild(values):
        replaced = list(leaves)
        for i, value in zip(moving, values, strict=True):
            replaced[i] = value
        return jax.tree.unflatten(tree, replaced)

    return [leaves[i] for i in moving], rebuild


def inexact(values):
    """The results of an inexact dtype, which have derivatives."""
    return [v for v in jax.tree.leaves(values) if jnp.issubdtype(v.dtype, jnp.inexact)]


def smooth(values, finite):
    """A weighted sum of all results of an inexact dtype, over the elements that `finite` selects."""
    total = 0.0
    for v, counts in zip(inexact(values), finite, strict=True):
        v = jnp.where(counts, v, 0)
        v = jnp.concatenate([jnp.real(v).ravel(), jnp.imag(v).ravel()]).astype(jnp.float64)
        weights = 1 + jnp.arange(v.size) / (v.size + 1)
        total = total + jnp.sum(v * weights)
    return total


def compare(found, expected, tolerance):
    """Raise AssertionError if results differ in number, shape, dtype or value."""
    found, expected = jax.tree.leaves(found), jax.tree.leaves(expected)
    assert len(found) == len(expected), f"{len(found)} results for {len(expected)}"
    for a, b in zip(found, expected, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape, f"shape {a.shape} for {b.shape}"
        assert a.dtype == b.dtype, f"dtype {a.dtype} for {b.dtype}"
        if b.dtype.kind in "fc":
            finite = np.abs(b[np.isfinite(b)])
            scale = finite.max() if finite.size else 1.0
            rounding = 2e-5 if b.dtype.itemsize <= (4 if b.dtype.kind == "f" else 8) else tolerance
            np.testing.assert_allclose(a, b, rtol=rounding, atol=rounding * max(scale, 1e-3), equal_nan=True)
        else:
            np.testing.assert_array_equal(a, b)


def check(structure, expression, way, dtype="float64"):
    """Compare a function under a transformation. Return False if there is nothing to compare.

    This is the case if the array, the invertible matrix or the derivative in JAX does not exist. If JAX raises an error for the dense
    array, the structured array must raise the same error.

    Raises
    ------
    AssertionError
        If the results differ.
    """
    section = FUNCTIONS[expression]
    plain = function(expression)
    given = operands(structure, section, (2,) if way == "vmap" else (), dtype)
    if given is None:
        return False
    A, x = given
    if section in ("invertible", "positive definite") and not jnp.all(jnp.isfinite(jnp.linalg.inv(A.to_jax()))):
        return False  # the structure has no invertible matrix; a singular one gives NaN here and infinity there
    if "solve_triangular" in expression and jnp.any(jnp.linalg.diagonal(A.to_jax()) == 0):
        return False  # the matrix is invertible, but its triangle is singular
    if way == "grad" and "while_loop" in expression:
        return False  # JAX has no such derivative
    valid = dtype == "float64" and A.shape[-2:] == CORE[section]

    def result(run, expand):
        """The results of `run` for the array from `expand`."""
        if way in ("jit", "vmap"):
            transform = {"jit": jax.jit, "vmap": jax.vmap}[way]
            return transform(lambda A, x: dense(run(expand(A), x)))(A, x)
        return dense(run(expand(A), x))

    of_dense, of_structured = (plain, lambda A: A.to_jax()), (sa.structured(plain), lambda A: A)

    def check_refusal(error, function):
        """Check that the structured program raises where JAX rejects the dtype or the shape."""
        if valid:
            raise error
        try:
            function(*of_structured)
        except type(error):
            return
        raise AssertionError(f"the dense program raises {error!r}, the structured one does not") from error

    try:
        expected = result(*of_dense)
    except (TypeError, ValueError, NotImplementedError) as error:
        check_refusal(error, result)
        return True
    compare(result(*of_structured), expected, 1e-9)
    if way not in ("grad", "jvp"):
        return True

    moving, rebuild = leaves_of(A)
    finite = [np.isfinite(v) for v in inexact(expected)]
    single = any(jnp.finfo(v.dtype).bits == 32 for v in inexact(expected))  # derivatives have passed through them, too

    def derivatives(run, expand):
        def results(parameters, x):
            return inexact(dense(run(expand(rebuild(parameters)), x)))

        if way == "grad":
            return jax.grad(lambda parameters, x: smooth(results(parameters, x), finite), argnums=(0, 1))(moving, x)
        tangents = [jnp.ones_like(v) * (1 + i) for i, v in enumerate(moving)]
        return jax.jvp(results, (moving, x), (tangents, 2 * jnp.ones_like(x)))[1]

    if not finite:
        return True  # numbers that are counted or compared have no derivatives
    try:
        expected = derivatives(*of_dense)
    except NotImplementedError as error:
        assert str(error).startswith("Differentiation rule"), error
        return False
    except TypeError as error:  # a rule compares complex numbers
        check_refusal(error, derivatives)
        return True
    found = derivatives(*of_structured)
    if jnp.any(A.to_jax() == 0):
        found, expected = _where_dense_is_defined(found, expected)
    # With ten bits, one side rounds the sum of cotangents and the other side rounds its terms.
    compare(found, expected, 1e-3 if "reduce_precision" in expression else 2e-5 if single else 1e-7)
    return True


def _where_dense_is_defined(found, expected):
    """Derivatives, with zero where the dense array gives NaN: a structural zero has no derivative."""
    pairs = list(zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True))
    assert not any(np.any(np.isinf(f) & np.isnan(e)) for f, e in pairs), "infinite where the dense derivative is NaN"
    return zip(*((np.where(np.isnan(e), e, f), e) for f, e in pairs), strict=True)
