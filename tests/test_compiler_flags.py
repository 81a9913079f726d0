"""Sums of products in compiled code, which XLA gets wrong without a flag (docs/design/jax_bugs.md)."""

import os
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import structarrays as sa

FLAG = "--xla_cpu_experimental_ynn_fusion_type=-reduce"


def run(program, **variables):
    """Run a program in a process without flags for XLA, unless `variables` gives them."""
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"} | {"JAX_ENABLE_X64": "1"} | variables
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split(), done.stderr


SUMS = """
import jax, jax.numpy as jnp, numpy as np
x = np.linspace(0, 1, 16_385)[:, None] * [1, 0, 0]
matrix = np.eye(3)
squares = jax.jit(jax.vmap(lambda row: jnp.sum((matrix @ row) ** 2)))(x)
a = np.tri(100)
total = jax.jit(lambda a: jnp.sum(a @ jnp.ones((100, 128))))(a)
x = np.full((150, 150), 100, np.int8)
wrapped = jax.jit(lambda x: jnp.mean((x * x).astype(float)))(x)
print(float(squares[-1]), float(total), float(wrapped))
"""


def test_sums_of_products_are_right():
    """The last square is 1, the total 128 times 5050, and 10,000 becomes 16 in 8 bits."""
    found, errors = run("import structarrays" + SUMS)
    np.testing.assert_allclose([float(x) for x in found], [1, 646_400, 16], rtol=1e-12)
    assert "RuntimeWarning" not in errors


@pytest.mark.slow
def test_flags_are_kept():
    program = "import structarrays, os; print(os.environ.get('XLA_FLAGS'))"
    own = "--xla_cpu_experimental_ynn_fusion_type=+reduce"
    assert run(program)[0] == [FLAG]
    assert run(program, XLA_FLAGS="--xla_cpu_max_isa=AVX")[0] == ["--xla_cpu_max_isa=AVX", FLAG]
    assert run(program, XLA_FLAGS=own)[0] == [own]
    assert run(program, XLA_FLAGS=FLAG)[0] == [FLAG]


def test_a_warning_if_jax_has_started():
    program = "import jax.numpy as jnp; jnp.ones(3); import structarrays, os; print(os.environ.get('XLA_FLAGS'))"
    found, errors = run(program, JAX_PLATFORMS="cpu")
    assert found == ["None"]
    assert re.search(r"<string>:1: RuntimeWarning: JAX started before structarrays was imported.*XLA_FLAGS=", errors)


def test_other_versions_get_no_flag(monkeypatch):
    from structarrays._core.jax_internals import compiler_flags  # noqa: PLC0415

    for number, expected in {
        "0.10.1": "",
        "0.13.0": "",
        "0.10.2": FLAG,
        "0.12.0.1": FLAG,
        "0.11.0.dev1": FLAG,
    }.items():
        monkeypatch.setattr(compiler_flags.version, "__version__", number)
        monkeypatch.setattr(compiler_flags, "_has_started", lambda: False)
        monkeypatch.setenv("XLA_FLAGS", "")
        compiler_flags.avoid_wrong_sums()
        assert os.environ["XLA_FLAGS"] == expected, number


def structures(rng):
    """Square arrays of 320 rows; products with several columns are large enough for every fusion."""
    n = 320
    a, b = rng.standard_normal((16, 16)), rng.standard_normal((20, 20))
    bands = [rng.standard_normal(n - abs(k)) for k in (-1, 0, 2)]
    return {
        "dense": sa.asarray(rng.standard_normal((n, n))),
        "diagonal": sa.Diagonal(rng.standard_normal(n)),
        "banded": sa.Banded(bands, (-1, 0, 2), (n, n)),
        "toeplitz": sa.Toeplitz(rng.standard_normal(n), rng.standard_normal(n)),
        "circulant": sa.Circulant(rng.standard_normal(n)),
        "low rank": sa.LowRank(rng.standard_normal((n, 4)), rng.standard_normal((n, 4))),
        "Kronecker product": sa.Kronecker(a, b),
        "Kronecker sum": sa.KroneckerSum(a, b),
        "blocks": sa.BlockDiagonal(rng.standard_normal((20, 16, 16))),
        "symmetric": sa.Symmetric(rng.standard_normal((n, n))),
        "triangular": sa.Triangular(rng.standard_normal((n, n))),
        "sum": sa.Kronecker(a, b) + sa.Diagonal(rng.standard_normal(n)),
        "product": sa.Kronecker(a, b) @ sa.Diagonal(rng.standard_normal(n)),
    }


REDUCTIONS = {
    "sum": (lambda y: sa.sum(y), lambda y: np.sum(y)),
    "largest magnitude": (lambda y: sa.max(sa.abs(y)), lambda y: np.max(np.abs(y))),
    "sum of squares": (lambda y: sa.sum(y * y), lambda y: np.sum(y * y)),
    "means of columns": (lambda y: sa.mean(y, axis=0), lambda y: np.mean(y, axis=0)),
}


@pytest.mark.parametrize("name", list(structures(np.random.default_rng(0))))
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_reductions_of_products_with_constants(name, value, rng):
    """Products with constant matrices, such as the first residual of an iteration that starts at zero."""
    x = structures(rng)[name]
    dense, b = np.asarray(x.to_dense()), rng.standard_normal((320, 64))

    def residual(x, b):
        return b - x @ jnp.full((320, 64), value)

    want = b - dense @ np.full((320, 64), value)
    scale = np.abs(dense).sum() * 64
    for label, (ours, numpys) in REDUCTIONS.items():
        got = jax.jit(lambda x, b, reduced=ours: reduced(residual(x, b)))(x, b)
        np.testing.assert_allclose(got, numpys(want), rtol=1e-10, atol=1e-13 * scale, err_msg=label)
