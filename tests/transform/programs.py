"""Fifty ordinary JAX programs of a structured matrix and a vector, none of which needs an n x n array.

Written down before any rule of `structured`: what users write with `jax.numpy`, by people who never heard of structure. Each
is a function of `A (n, n)` and `x (n,)` to an array or a number; `STRUCTURES` says of which classes it keeps the structure.
"""

import jax
import jax.numpy as jnp
from jax import lax

DIAGONAL, BANDED, LOW_RANK = "Diagonal", "Banded", "LowRank"
ENTRIES = (DIAGONAL, BANDED)
ALL = (DIAGONAL, BANDED, LOW_RANK)


@jax.custom_vjp
def clipped_gradient(a):
    """The identity, whose cotangents are halved."""
    return a


clipped_gradient.defvjp(lambda a: (a, None), lambda _, g: (0.5 * g,))


@jax.custom_jvp
def smooth_sign(a):
    """`tanh`, with a derivative of its own."""
    return jnp.tanh(a)


@smooth_sign.defjvp
def _(primals, tangents):
    (a,), (t,) = primals, tangents
    return jnp.tanh(a), t / (1 + a * a)


def power_iteration(A, x):
    def step(_, v):
        w = A @ v
        return w / (1 + jnp.abs(w).sum())

    return lax.fori_loop(0, 5, step, x)


def newton_schulz(A, x):
    def step(X, _):
        return 2 * X - X * A * X, None

    X, _ = lax.scan(step, A / 10, None, length=3)
    return X @ x


def until_small(A, x):
    def body(state):
        v, k = state
        return A @ v / 4, k + 1

    return lax.while_loop(lambda state: state[1] < 4, body, (x, 0))[0]


def conjugate_gradients(A, x):
    r, v = x - A @ (0 * x), 0 * x
    p = r
    for _ in range(3):
        Ap = A @ p
        alpha = (r @ r) / (p @ Ap + 1)
        v, new = v + alpha * p, r - alpha * Ap
        p, r = new + (new @ new) / (r @ r + 1) * p, new
    return v


PROGRAMS = {
    "product": (lambda A, x: A @ x, ALL),
    "product from the left": (lambda A, x: x @ A, ALL),
    "dot": (lambda A, x: jnp.dot(A, x), ALL),
    "einsum": (lambda A, x: jnp.einsum("ij,j->i", A, x), ALL),
    "einsum of a form": (lambda A, x: jnp.einsum("i,ij,j", x, A, x), ALL),
    "several columns": (lambda A, x: A @ jnp.stack([x, 2 * x], axis=1), ALL),
    "vdot": (lambda A, x: jnp.vdot(x, A @ x), ALL),
    "transpose": (lambda A, x: A.T @ x, ALL),
    "linear combination": (lambda A, x: (2 * A - A.T / 3) @ x, ALL),
    "product of matrices": (lambda A, x: (A @ A - A) @ x, ALL),
    "matrix power": (lambda A, x: jnp.linalg.matrix_power(A, 3) @ x, ALL),
    "multi_dot": (lambda A, x: jnp.linalg.multi_dot([A, A, x]), ALL),
    "sum": (lambda A, x: A.sum(), ALL),
    "row sums": (lambda A, x: A.sum(axis=1) * x, ALL),
    "mean of columns": (lambda A, x: A.mean(axis=0) * x, ALL),
    "square": (lambda A, x: (A**2) @ x, ENTRIES),
    "elementwise product": (lambda A, x: (A * A * A) @ x, ENTRIES),
    "row scaling": (lambda A, x: (x[:, None] * A).sum(), ALL),
    "column scaling": (lambda A, x: (A * x) @ x, ALL),
    "frobenius norm": (lambda A, x: jnp.linalg.norm(A), ALL),
    "sine": (lambda A, x: jnp.sin(A) @ x, ENTRIES),
    "exponential": (lambda A, x: jnp.exp(A) @ x, ENTRIES),
    "tanh of a sum": (lambda A, x: jnp.tanh(2 * A - A.T / 3) @ x, ENTRIES),
    "variance": (lambda A, x: jnp.var(A, axis=0) * x, ENTRIES),
    "maximum of rows": (lambda A, x: jnp.max(A, axis=1) * x, ENTRIES),
    "relu": (lambda A, x: jax.nn.relu(A) @ x, ENTRIES),
    "silu": (lambda A, x: jax.nn.silu(A) @ x, ENTRIES),
    "maximum": (lambda A, x: jnp.maximum(A, 0.0) @ x, ENTRIES),
    "where": (lambda A, x: jnp.where(A > 0, A, 0.0) @ x, ENTRIES),
    "clip": (lambda A, x: jnp.clip(A, -1.0, 1.0) @ x, ENTRIES),
    "abs and sign": (lambda A, x: (jnp.abs(A) * jnp.sign(A)) @ x, ENTRIES),
    "identity plus": (lambda A, x: (jnp.eye(A.shape[0]) + 0.1 * A) @ x, ALL),
    "times ones": (lambda A, x: (A * jnp.ones_like(A)) @ x, ALL),
    "trace": (lambda A, x: jnp.trace(A), ALL),
    "diagonal": (lambda A, x: jnp.diagonal(A) * x, ALL),
    "triangle": (lambda A, x: jnp.tril(A) @ x, ENTRIES),
    "one row": (lambda A, x: A[3] * x, ALL),
    "one element": (lambda A, x: A[2, 2] * x, ALL),
    "rows by index": (lambda A, x: A[jnp.array([0, 2, 5])].sum(axis=0) * x, ENTRIES),
    "solve": (lambda A, x: jnp.linalg.solve(A + 4 * jnp.eye(A.shape[0]), x), ENTRIES),
    "slogdet": (lambda A, x: jnp.linalg.slogdet(A + 4 * jnp.eye(A.shape[0]))[1], ENTRIES),
    "scan": (lambda A, x: lax.scan(lambda c, _: (jnp.sin(A) @ c + c, c.sum()), x, None, length=3)[0], ENTRIES),
    "scan of a matrix": (newton_schulz, ENTRIES),
    "fori_loop": (power_iteration, ALL),
    "cond": (lambda A, x: lax.cond(x[0] > 0, lambda a: 2 * a, lambda a: a.T, A) @ x, ENTRIES),
    "checkpoint": (lambda A, x: jax.checkpoint(lambda a, v: jnp.tanh(a) @ v)(A, x), ENTRIES),
    "jit": (lambda A, x: jax.jit(lambda a, v: jnp.cos(a) @ v - v)(A, x), ENTRIES),
    "custom_vjp": (lambda A, x: clipped_gradient(A) @ x, ENTRIES),
    "custom_jvp": (lambda A, x: smooth_sign(A) @ x, ENTRIES),
    "conjugate gradients": (conjugate_gradients, ALL),
}
"""The programs by name, each with the structures of which no n x n array may be made."""

FORWARD_ONLY = {"while_loop": (until_small, ALL)}
"""Those that have no reverse mode in JAX."""
