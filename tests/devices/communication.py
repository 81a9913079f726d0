"""What the devices of a mesh send each other, read off compiled programs; `python -m devices.communication` prints the table of
docs/how_to/use_many_devices.md (with eight devices, however many the machine has).
"""

import os
import re
import sys

if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import numpy as np

import structarrays as sa
from devices.arrays import mesh, sharding

OPERATION = re.compile(r" = (.*?) (all-gather|all-reduce|collective-permute|all-to-all|reduce-scatter)(?:-start)?\(")
ARRAY = re.compile(r"\b(pred|[a-z]+\d+)\[([\d,]*)\]")


def collectives(program, n: int) -> list[tuple[str, int]]:
    """For each collective operation of a compiled program its name and how many bytes a device gets by it."""
    function, *arguments = program(n)
    text = jax.jit(function).lower(*arguments).compile().as_text()
    return [(name, sum(map(_bytes, ARRAY.findall(result)))) for result, name in OPERATION.findall(text)]


def _bytes(found) -> int:
    dtype, shape = found
    bits = 8 if dtype == "pred" else int(dtype.lstrip("abcdefghijklmnopqrstuvwxyz"))
    return bits // 8 * int(np.prod([int(k) for k in shape.split(",") if k], initial=1))


def _vector(n, seed=0):
    return sa.asarray(np.random.default_rng(seed).normal(size=n)).to_device(sharding("rows"))


def _banded(n, width=1):
    rng = np.random.default_rng(1)
    offsets = range(-width, width + 1)
    x = sa.Banded([rng.normal(size=n - abs(k)) + 9 * (k == 0) for k in offsets], offsets, (n, n))
    return x.to_device(sharding("rows", None))


def _diagonal(n):
    return sa.Diagonal(_vector(n).data)


def _blocks(n, b=4):
    return sa.BlockDiagonal(np.random.default_rng(2).normal(size=(n // b, b, b)) + 9 * np.eye(b)).to_device(
        sharding("rows", None)
    )


def _block_tridiagonal(n, b=4):
    rng, k = np.random.default_rng(2), n // b
    x = sa.BlockBanded([rng.normal(size=(k - abs(j), b, b)) for j in (-1, 0, 1)], (-1, 0, 1))
    return x.to_device(sharding("rows", None))


def _low_rank(n, k=4):
    rng = np.random.default_rng(3)
    return sa.LowRank(rng.normal(size=(n, k)), rng.normal(size=(n, k))).to_device(sharding("rows", None))


def _kronecker(n, k=16):
    rng = np.random.default_rng(4)
    m = n // k
    return sa.Kronecker(sa.Diagonal(rng.uniform(1, 2, m)), rng.normal(size=(k, k)) + 9 * np.eye(k)).to_device(
        sharding("rows", None)
    )


def _sparse(n):
    rng = np.random.default_rng(5)
    i, j = np.arange(4 * n) // 4, rng.integers(0, n, 4 * n)
    keys = np.unique(i * n + j)
    return sa.Sparse(np.ones(len(keys)), (keys // n, keys % n), (n, n)).to_device(sharding("rows", None))


def _stack(n):
    rng = np.random.default_rng(6)
    return sa.tridiagonal(
        rng.normal(size=(8, n - 1)), rng.normal(size=(8, n)) + 9, rng.normal(size=(8, n - 1))
    ).to_device(sharding("rows"))


def _solve_stack(n):
    """Each device solves its own: for JAX a batch is divided only inside of `shard_map`."""
    rows = jax.sharding.PartitionSpec("rows")
    solve = jax.shard_map(sa.linalg.solve, mesh=mesh(), in_specs=(rows, rows), out_specs=rows, check_vma=False)
    return solve, _stack(n), sa.asarray(np.ones((8, n, 1))).to_device(sharding("rows"))


PROGRAMS = {
    "`D @ x`, `exp(D)`, `solve(D, x)`, D diagonal": lambda n: (
        lambda A, x: (A @ x, sa.exp(A), sa.linalg.solve(A, x)),
        _diagonal(n),
        _vector(n),
    ),
    "`A * A`, `exp(A)`, A tridiagonal": lambda n: (lambda A: (A * A, sa.exp(A)), _banded(n)),
    "`A @ x`, A tridiagonal": lambda n: (lambda A, x: A @ x, _banded(n), _vector(n)),
    "`A @ x`, A with 4 diagonals either side": lambda n: (lambda A, x: A @ x, _banded(n, 4), _vector(n)),
    "`A @ A`, A tridiagonal": lambda n: (lambda A: A @ A, _banded(n)),
    "`sum(A, axis=0)`, A tridiagonal": lambda n: (lambda A: sa.sum(A, axis=0), _banded(n)),
    "`sum(A)`, A tridiagonal": lambda n: (lambda A: sa.sum(A), _banded(n)),
    "`solve(A, x)`, A tridiagonal": lambda n: (lambda A, x: sa.linalg.solve(A, x), _banded(n), _vector(n)),
    "`shard_map` of `solve`, eight tridiagonal systems, one on each device": _solve_stack,
    "`B @ x`, `solve(B, x)`, B of diagonal blocks": lambda n: (
        lambda A, x: (A @ x, sa.linalg.solve(A, x)),
        _blocks(n),
        _vector(n),
    ),
    "`B @ x`, B block-tridiagonal, blocks 4 × 4": lambda n: (lambda A, x: A @ x, _block_tridiagonal(n), _vector(n)),
    "`L @ x`, L of rank 4": lambda n: (lambda A, x: A @ x, _low_rank(n), _vector(n)),
    "`K @ x`, `solve(K, x)`, K a diagonal matrix ⊗ one of 16 × 16": lambda n: (
        lambda A, x: (A @ x, sa.linalg.solve(A, x)),
        _kronecker(n),
        _vector(n),
    ),
    "`S @ x`, S sparse": lambda n: (lambda A, x: A @ x, _sparse(n), _vector(n)),
    "`x @ y` of vectors": lambda n: (lambda x, y: x @ y, _vector(n), _vector(n, 1)),
}
"""What is compiled: for a number of rows a function and its arguments, divided by rows."""


def table(n: int) -> str:
    """The table of docs/how_to/use_many_devices.md."""
    lines = ["| operation | what a device gets, bytes | by |", "|---|---|---|"]
    for name, program in PROGRAMS.items():
        found = collectives(program, n)
        kinds = ", ".join(sorted({kind for kind, _ in found})) or "nothing"
        lines.append(f"| {name} | {sum(size for _, size in found):,} | {kinds} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(table(1 << 20))
