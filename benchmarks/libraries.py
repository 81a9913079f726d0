"""Comparison with other libraries of structured arrays: dynamiqs, pydata/sparse and CoLA.

CoLA requires a fork of plum that is incompatible with quax, so this part needs a separate environment.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from harness import OURS, Report
from peers import CPU_ONLY, NOT_INSTALLED, on_cpu, optional

import structarrays as sa

DYNAMIQS, SPARSE, COLA = "dynamiqs", "pydata/sparse", "CoLA"


def run(report: Report) -> None:
    rng = np.random.default_rng(0)
    report.section("dynamiqs: operators of an oscillator, 512 levels, complex128")
    with_dynamiqs(report, rng)
    report.section("pydata/sparse: 20000 x 20000, one entry in 1000")
    with_sparse(report, rng)
    report.section("CoLA: products and systems")
    with_cola(report, rng)


def compare(report, case, peer, ours, theirs, read=np.asarray, absent=NOT_INSTALLED):
    """Time two functions without arguments and with equal results; `theirs` is None if the peer cannot be compared."""
    candidates = {OURS: ours}
    if theirs is not None:
        candidates[peer] = theirs
        expected = read(theirs())
        np.testing.assert_allclose(
            np.asarray(sa.to_dense(ours())), expected, rtol=1e-7, atol=1e-9 * np.max(np.abs(expected))
        )
    report.time(case, candidates, [], {} if theirs is not None else {peer: absent}, rounds=15)


# ---- dynamiqs ----------------------------------------------------------------------------------------------------------


def with_dynamiqs(report, rng, n=512):
    dq = optional("dynamiqs")
    a = sa.Banded([np.sqrt(np.arange(1.0, n)) + 0j], (1,), (n, n))
    h = a + sa.conj(a).mT
    rho = rng.normal(size=(n, n)) + 1j * rng.normal(size=(n, n))
    x = sa.asarray(rho)
    theirs = dict.fromkeys(("product", "both", "sum", "power", "tensor"))
    if dq is not None:
        dq.set_precision("double")
        b, y = dq.destroy(n), dq.asqarray(rho)
        g = b + b.dag()
        small = dq.destroy(30)
        theirs = {
            "product": lambda: b.dag() @ b,
            "both": lambda: g @ y @ g,
            "sum": lambda: b + b.dag(),
            "power": lambda: g.powm(4),
            "tensor": lambda: dq.tensor(small, small),
        }
    both, theirs_both = jax.jit(lambda h, x: h @ x @ h), jax.jit(lambda h, x: h @ x @ h)
    few = sa.Banded([np.sqrt(np.arange(1.0, 30)) + 0j], (1,), (30, 30))

    def one(case, name, ours):
        compare(report, case, DYNAMIQS, ours, theirs[name], lambda q: np.asarray(q.to_jax()))

    one("a† @ a, an eager call", "product", lambda: sa.conj(a).mT @ a)
    one("a + a†, an eager call", "sum", lambda: a + sa.conj(a).mT)
    one("(a + a†)⁴, an eager call", "power", lambda: sa.linalg.matrix_power(h, 4))
    one(
        "tensor product of two, 30 levels each (ours keeps the factors), an eager call",
        "tensor",
        lambda: sa.Kronecker(few, few),
    )
    one("H @ rho @ H, an eager call", "both", lambda: h @ x @ h)
    if dq is not None:
        theirs["both"] = lambda: theirs_both(g, y)
    one("H @ rho @ H, compiled", "both", lambda: both(h, x))


# ---- pydata/sparse -----------------------------------------------------------------------------------------------------


def with_sparse(report, rng, n=20_000, density=1e-3):
    sparse = optional("sparse")
    count = int(n * n * density)
    places = [np.unravel_index(rng.choice(n * n, count, replace=False), (n, n)) for _ in range(2)]
    values = rng.normal(size=(2, count))
    p, q = (sa.Sparse(v, ij, (n, n)) for v, ij in zip(values, places, strict=True))
    v = rng.normal(size=n)
    x = sa.asarray(v)
    cases = {
        "p + q": lambda p, q, v: p + q,
        "p * q": lambda p, q, v: p * q,
        "p @ vector": lambda p, q, v: p @ v,
        "sum over the rows": lambda p, q, v: p.__array_namespace__().sum(p, axis=0),
        "1000 rows": lambda p, q, v: p[5000:6000],
        "expm1": lambda p, q, v: p.__array_namespace__().expm1(p),
    }
    theirs = None
    if sparse is not None and on_cpu():
        theirs = [sparse.COO(np.stack(ij), v, shape=(n, n)) for v, ij in zip(values, places, strict=True)]

    def sums(r):
        """Return the sums of the columns in NumPy: the dense form of a large result takes gigabytes."""
        r = r.__array_namespace__().sum(r, axis=0) if r.ndim == 2 else r
        return r.todense() if hasattr(r, "todense") else np.asarray(r)

    for name, function in cases.items():
        candidates = {OURS: functools.partial(function, p, q, x)}
        if theirs is not None:
            candidates[SPARSE] = functools.partial(function, *theirs, v)
            np.testing.assert_allclose(*(sums(run()) for run in candidates.values()), rtol=1e-9, atol=1e-9)
        absent = {} if theirs is not None else {SPARSE: NOT_INSTALLED if sparse is None else CPU_ONLY}
        report.time(f"{name}, an eager call", candidates, [], absent, rounds=15)


# ---- CoLA --------------------------------------------------------------------------------------------------------------


def with_cola(report, rng):
    cola = optional("cola")
    factors = [rng.normal(size=(n, n)) / np.sqrt(n) + 2 * np.eye(n) for n in (200, 300)]
    blocks = rng.normal(size=(100, 32, 32)) + 6 * np.eye(32)
    v, w, ones = rng.normal(size=60_000), rng.normal(size=3200), np.ones(100_000)
    x, y, one = map(sa.asarray, (v, w, ones))
    kronecker, diagonal_blocks = sa.Kronecker(*factors), sa.BlockDiagonal(blocks)
    tridiagonal = sa.tridiagonal(-ones[1:], 3 * ones, -ones[1:])
    theirs = {}
    if cola is not None:
        v, w, ones = map(jnp.asarray, (v, w, ones))
        k = cola.ops.Kronecker(*(cola.ops.Dense(jnp.asarray(f)) for f in factors))
        d = cola.ops.BlockDiag(*(cola.ops.Dense(jnp.asarray(b)) for b in blocks))
        t = cola.ops.Tridiagonal(-ones[1:, None], 3 * ones[:, None], -ones[1:, None])
        solution = jax.jit(lambda a, b: cola.inv(a) @ b)
        theirs = {
            "kronecker": lambda: k @ v,
            "solve": lambda: solution(k, v),
            "slogdet": lambda: cola.linalg.slogdet(k)[1],
            "blocks": lambda: solution(d, w),
            "tridiagonal": lambda: t @ ones,
            "system": lambda: cola.inv(cola.PSD(t), cola.CG(tol=1e-10)) @ ones,
        }
    solve = jax.jit(sa.linalg.solve)

    def one_case(case, name, ours):
        compare(report, case, COLA, ours, theirs.get(name))

    one_case("Kronecker 200 ⊗ 300 times a vector, an eager call", "kronecker", lambda: kronecker @ x)
    one_case("Kronecker 200 ⊗ 300, a system, compiled", "solve", lambda: solve(kronecker, x))
    one_case("Kronecker 200 ⊗ 300, slogdet, an eager call", "slogdet", lambda: sa.linalg.slogdet(kronecker).logabsdet)
    one_case("100 blocks of 32, a system, compiled", "blocks", lambda: solve(diagonal_blocks, y))
    one_case("tridiagonal, n = 100,000, times a vector, an eager call", "tridiagonal", lambda: tridiagonal @ one)
    definite = sa.assume(tridiagonal, "positive_definite")
    one_case("tridiagonal, n = 100,000, a definite system (theirs: CG)", "system", lambda: solve(definite, one))
