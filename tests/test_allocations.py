"""Functions ask the policy of `densify` before they allocate a dense matrix as large as a structured operand."""

import functools
import itertools
import zlib

import jax
import numpy as np
import pytest
from large_arrays import SIZE, allocations, large_arrays
from support import as_jax

import structarrays as sa
from structarrays.testing import CASES

SMALLEST = SIZE**2 // 8
"""The number of elements from which an array counts as dense: stored entries, and blocks of columns that are read at a time, are smaller."""

LIMIT = SIZE**2
"""The limit of the policy in bytes: an eighth of a dense matrix in float64."""

POLICIES = {"error": {}, "allow": {"limit": LIMIT}}

EXPLICIT = {
    *("zeros_like", "ones_like", "empty_like", "full_like"),  # make arrays to write into
    *("broadcast_to", "broadcast_arrays"),  # repeat a row or a column, which is dense here
    "tile",  # makes several copies
    "take_along_axis",  # takes a dense matrix of indices here
}
"""Functions whose cases in the equivalence tests ask for a dense matrix explicitly."""

REFUSED = (sa.DensifyError, TypeError, ValueError, IndexError, NotImplementedError, np.linalg.LinAlgError)

arrays = functools.cache(large_arrays)


def found(function, *operands, mode):
    """The allocations of a function under a policy: none if the policy refuses."""
    try:
        with sa.densify(mode, **POLICIES[mode]):
            return allocations(function, *operands, size=SMALLEST)
    except REFUSED:
        return []


def test_the_search_finds_what_is_allocated():
    x = arrays("float64", False)["Diagonal"]
    assert found(lambda x: x.to_dense(), x, mode="error")
    assert found(
        lambda x: jax.lax.cond(True, lambda x: as_jax(x.to_dense()), lambda x: as_jax(x.to_dense()), x),
        x,
        mode="error",
    )
    assert not found(lambda x: (x.to_dense(), x)[1], x, mode="error")
    assert not found(sa.sort, x, mode="error") and not found(sa.sort, x, mode="allow")


NAMED = {
    "cholesky": sa.linalg.cholesky,
    "inv": sa.linalg.inv,
    "eigh": sa.linalg.eigh,
    "pinv": sa.linalg.pinv,
    "svd": sa.linalg.svd,
    "trace": sa.linalg.trace,
    "the square": lambda x: x @ x,
    "a power": lambda x: sa.linalg.matrix_power(x, 2),
    "the product with the transpose": lambda x: x.mT @ x,
    "a comparison": lambda x: x != 2,
    "a cast": lambda x: sa.astype(x, sa.int64),
    "a row in reverse": lambda x: x[::-1, :],
    "a write": lambda x: x.__setitem__((1, 1), 7) or x,
}


SLOW = {"inv": ("Block",)}
"""Functions that take ten seconds to trace."""


@pytest.mark.parametrize("name", NAMED)
def test_functions_of_one_array(name):
    """All structures."""
    wrong = {
        (structure, mode)
        for structure, x in arrays("float64", name in ("cholesky", "eigh")).items()
        for mode in POLICIES
        if structure not in SLOW.get(name, ()) and (mode == "error" or name in ("the square", "eigh"))
        if found(NAMED[name], x, mode=mode)
    }
    assert not wrong


PAIRS = {"@": lambda x, y: x @ y, "+": lambda x, y: x + y, "*": lambda x, y: x * y}
FIRST = ("Fill", "Diagonal", "Toeplitz", "Toeplitz, lower", "BlockDiagonal")


@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_two_arrays(name):
    every = arrays("float64", False)
    pairs = itertools.product(FIRST, every)
    wrong = [(x, y) for x, y in pairs if found(PAIRS[name], every[x], every[y], mode="error")]
    assert not wrong


def cases(count):
    return [
        c
        for c in CASES
        if len(c.operands) == count
        and not (c.raises or c.eager or c.name in EXPLICIT)
        and set(c.cores) <= {"mn", "nn", "np"}
    ]


def dtype_of(case):
    return next(d for d in ("float64", "complex128", "int64", "bool") if d in case.dtypes)


def is_chosen(every, *key):
    """One in so many: to trace all takes many minutes."""
    return zlib.crc32(repr(key).encode()) % every == 0


@pytest.mark.slow
def test_uses_of_each_function_of_one_array():
    """One in forty of all uses of all functions with all structures, always the same."""
    wrong, tried = [], 0
    for case in cases(1):
        for structure, x in arrays(dtype_of(case), bool(case.requires and case.requires[0])).items():
            if is_chosen(40, case.code, structure):
                tried += 1
                if found(functools.partial(case.call, sa), x, mode="error"):
                    wrong.append(f"{case.code} of {structure}")
    assert tried > 100 and not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_uses_of_each_function_of_two_arrays():
    wrong, tried = [], 0
    for case in cases(2):
        requires = case.requires or ("", "")
        first, second = (arrays(dtype_of(case), bool(r)) for r in requires)
        for (name1, x), (name2, y) in itertools.product(first.items(), second.items()):
            if is_chosen(500, case.code, name1, name2):
                tried += 1
                if found(functools.partial(case.call, sa), x, y, mode="error"):
                    wrong.append(f"{case.code} of {name1} and {name2}")
    assert tried > 100 and not wrong, "\n".join(wrong)
