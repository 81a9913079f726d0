"""One of two processes that share a mesh: ``python -m devices.two_processes ADDRESS INDEX``; see tests/test_many_devices.py."""

import sys

import jax
import numpy as np

import structarrays as sa
from devices.arrays import N, meshes, sharding, structures

NAMES = {
    "auto": ("Diagonal", "Banded", "BlockDiagonal", "Sparse", "Kronecker"),
    "explicit": ("Banded",),
    "set": ("Sparse",),
}
"""The structures on the meshes of each kind."""


def main():
    jax.config.update("jax_enable_x64", True)
    jax.distributed.initialize(sys.argv[1], num_processes=2, process_id=int(sys.argv[2]))
    print(f"{jax.device_count()} devices, {jax.local_device_count()} of them here")
    for kind in NAMES:
        with meshes(kind):
            compare(kind)


def compare(kind):
    """Print the errors of functions of divided arrays."""
    x = np.random.default_rng(1).normal(size=N)
    vector = sa.asarray(x).to_device(sharding("rows"))
    for name in NAMES[kind]:
        A = structures()[name]
        dense = np.asarray(A)
        divided = A.to_device(sharding("rows", None))
        results = {
            "A @ x": (divided @ vector, dense @ x),
            "A @ A": ((divided @ divided) @ vector, dense @ (dense @ x)),
            "exp": (sa.sum(sa.exp(divided), axis=0), np.exp(dense).sum(axis=0)),
            "solve": (sa.linalg.solve(divided, vector), np.linalg.solve(dense, x)),
        }
        for function, (got, want) in results.items():
            whole = np.asarray(got.to_device(got.device).to_jax())  # on each device, so that this process has all of it
            print(kind, name, function, "error", np.max(np.abs(whole - want)) / np.max(np.abs(want)))
        print(repr(divided))


if __name__ == "__main__":
    main()
