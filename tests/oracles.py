"""Oracles for stacks of matrices, from SciPy; the equivalence tests of functions beyond the standard; random matrices."""

import itertools
import zlib

import numpy as np
from support import dense

from structarrays.testing import BATCHES, SIZES, EquivalenceError, applies, check_equivalence, operands


def each(function, cores):
    """A function of matrices (and vectors) for stacks of them, one matrix after the other.

    `cores` has the number of core dimensions of each argument; an argument without a batch serves all matrices.
    """

    def run(*arrays):
        batch = np.broadcast_shapes(*(a.shape[: a.ndim - n] for a, n in zip(arrays, cores, strict=True)))
        arrays = [np.broadcast_to(a, batch + a.shape[a.ndim - n :]) for a, n in zip(arrays, cores, strict=True)]
        if 0 in batch:
            results = [
                function(*(np.zeros(a.shape[len(batch) :], a.dtype) + _identity(a, n) for a, n in zip(arrays, cores)))
            ]
        else:
            results = [function(*(a[i] for a in arrays)) for i in np.ndindex(batch)]
        if not isinstance(results[0], tuple):
            return _stacked(results, batch)
        columns = [_stacked(column, batch) for column in zip(*results, strict=True)]
        return type(results[0])(*columns) if hasattr(results[0], "_fields") else tuple(columns)

    return run


def _identity(a, core):
    return np.eye(*a.shape[-2:]) if core == 2 else 0


def _stacked(results, batch):
    first = np.asarray(results[0])
    if 0 in batch:
        return np.zeros(batch + first.shape, first.dtype)
    return np.stack(results).reshape(batch + first.shape).astype(first.dtype)


def check_everywhere(case, structures, others=(), *, dtypes=("float64", "complex128"), unlike=()):
    """Check a case for arrays of these structures (the first operand), with derivatives, and of some others without.

    Sizes, batch shapes and dtypes take turns, and so do eager and compiled calls; in `unlike` are those structures that have no derivative.
    """
    broken, checked = [], 0
    batches = [b[: len(case.operands)] for b in BATCHES[case.batches]]
    turns = itertools.cycle(itertools.product(range(len(SIZES)), range(len(batches)), dtypes))
    for _ in range(zlib.crc32(case.code.encode()) % 7):
        next(turns)
    checks = [(s, m) for s in structures for m in ("values", "derivative")] + [(s, "values") for s in others]
    for structure, mode in checks:
        if mode == "derivative" and (not case.smooth or structure in unlike):
            continue
        for _ in range(20):  # not every structure has arrays of all shapes
            size, batch, dtype = next(turns)
            names = [structure] + ["Dense"] * (len(case.operands) - 1)
            arguments = {"batch": batches[batch], "sizes": SIZES[size], "dtype": dtype}
            arrays = operands(case, names, **arguments)
            if arrays is not None and applies(case, arrays):
                break
        else:
            broken.append(f"{structure}: no arrays")
            continue
        direction = operands(case, names, **arguments, seed=1) if case.requires else None
        checked += 1
        try:
            check_equivalence(case, arrays, jit=checked % 3 == 2, derivative=mode == "derivative", direction=direction)
        except EquivalenceError as error:
            broken.append(f"{structure} {[a.shape for a in arrays]}, {dtype}, {mode}: {error}")
    assert checked and not broken, f"{case.code}: {len(broken)} of {checked}\n" + "\n".join(broken)


def random(*shape, seed=0, dtype=float):
    rng = np.random.default_rng([seed, *shape])
    values = rng.normal(size=shape)
    return values + 1j * rng.normal(size=shape) if dtype is complex else values


def definite(n, seed=0, dtype=float):
    a = random(n, n, seed=seed, dtype=dtype)
    return a @ a.conj().T + np.eye(n)


def close(actual, expected, rtol=1e-10):
    np.testing.assert_allclose(dense(actual), expected, rtol=rtol, atol=rtol * np.max(np.abs(expected), initial=1))
