"""Products with structured matrices are linear programs: JAX transposes them, so that its iterative solvers work for all structures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.sparse.linalg import bicgstab, gmres
from support import as_jax, dense

import structarrays as sa
from structarrays.testing import STRUCTURES, sample

PRODUCTS = {
    "A @ v": (lambda A, v: A @ v, False),
    "v @ A": (lambda A, v: v @ A, True),
    "A.mT @ v": (lambda A, v: A.mT @ v, True),
    "A @ B": (lambda A, v: A @ jnp.stack([v, -v], -1), False),
    "compiled": (lambda A, v: jax.jit(lambda v: A @ v)(v), False),
    "mapped": (lambda A, v: jax.vmap(lambda v: as_jax(A @ v), 1, 1)(jnp.stack([v, 2 * v], -1)), False),
}


@pytest.mark.parametrize("structure", STRUCTURES)
def test_products_are_transposed(structure, rng):
    """Small matrices and larger ones, for which other methods run."""
    for core in ((5, 5), (80, 80), (90, 40)):
        x = sample(structure, core)
        if x is None:
            continue
        a = dense(x)
        for name, (product, adjoint) in PRODUCTS.items():
            b = a.T if adjoint else a
            v = rng.normal(size=b.shape[1])
            value = jax.eval_shape(lambda v, p=product, x=x: as_jax(p(x, v)), v)
            y = rng.normal(size=value.shape)
            (found,) = jax.linear_transpose(lambda v, p=product, x=x: as_jax(p(x, v)), v)(y)
            columns = y.reshape(len(b), -1) * {"A @ B": [1, -1], "mapped": [1, 2]}.get(name, 1)
            expected = (b.T @ columns).sum(-1)
            np.testing.assert_allclose(
                found, expected, rtol=1e-9, atol=1e-9 * abs(expected).max(), err_msg=f"{name} {core}"
            )


@pytest.mark.parametrize("structure", STRUCTURES)
def test_iterative_solvers(structure, rng):
    x = sample(structure, (12, 12), requires="invertible")
    if x is None or np.linalg.matrix_rank(dense(x)) < 12:  # a `Fill`
        return
    a, b = dense(x), rng.normal(size=12)
    for solver in (gmres, bicgstab):
        found, _ = solver(lambda v: as_jax(x @ v), jnp.asarray(b), tol=1e-12, atol=0.0, maxiter=200)
        np.testing.assert_allclose(found, np.linalg.solve(a, b), rtol=1e-7, atol=1e-9)
    gradient = jax.grad(lambda b: jnp.sum(gmres(lambda v: as_jax(x @ v), b, tol=1e-12, atol=0.0)[0]))(jnp.asarray(b))
    np.testing.assert_allclose(gradient, np.linalg.solve(a.T, np.ones(12)), rtol=1e-7, atol=1e-9)


LARGE = {
    "Toeplitz": lambda v: sa.Toeplitz(v * 0.5 ** np.arange(400), v * 0.5 ** np.arange(400)),
    "Circulant": lambda v: sa.Circulant(v),
    "Hankel": lambda v: sa.Hankel(v, v[::-1]),
    "Triangular": lambda v: sa.Triangular(np.outer(v, v) + 400 * np.eye(400)),
    "upper": lambda v: sa.Triangular(np.outer(v, v) + 400 * np.eye(400), lower=False),
    "background": lambda v: sa.Sparse.from_dense(np.diag(v)) + 0.5,
}


@pytest.mark.parametrize("name", LARGE)
def test_derivatives_and_special_values(name, rng):
    """The program that can be transposed has the derivatives by the matrix, too, and the right NaN."""
    v = rng.normal(size=400)
    v[0] += 40
    x, w, dw = LARGE[name](v), rng.normal(size=400), rng.normal(size=400)
    a, da = dense(x), dense(LARGE[name](v + 1)) - dense(LARGE[name](v))
    dx = jax.tree.map(lambda p, q: p - q, LARGE[name](v + 1), LARGE[name](v))
    for side, product in {"right": lambda x, w: as_jax(x @ w), "left": lambda x, w: as_jax(w @ x)}.items():
        b, db = (a, da) if side == "right" else (a.T, da.T)
        value, change = jax.jit(lambda x, w, dx, dw, p=product: jax.jvp(p, (x, w), (dx, dw)))(x, w, dx, dw)
        np.testing.assert_allclose(value, b @ w, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(change, db @ w + b @ dw, rtol=1e-9, atol=1e-9 * abs(change).max())
        gradient = jax.grad(lambda w, p=product: jnp.sum(p(x, w) ** 2))(w)
        np.testing.assert_allclose(gradient, 2 * b.T @ (b @ w), rtol=1e-9, atol=1e-9 * abs(gradient).max())
        curvature = jax.jvp(jax.grad(lambda w, p=product: jnp.sum(p(x, w) ** 3)), (w,), (dw,))[1]
        np.testing.assert_allclose(
            curvature, 6 * b.T @ ((b @ w) * (b @ dw)), rtol=1e-8, atol=1e-8 * abs(curvature).max()
        )
        bad = w.copy()
        bad[7] = np.inf
        with np.errstate(all="ignore"):
            terms = b * bad
        absorbs = (b == 0) if name in ("Triangular", "upper") else np.zeros_like(b, bool)
        np.testing.assert_allclose(product(x, bad), np.where(absorbs, 0, terms).sum(-1), rtol=1e-9, atol=1e-9)
