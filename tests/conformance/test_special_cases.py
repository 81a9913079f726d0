"""The special cases of the standard, on structured arrays whose stored entries carry the special value.

The official suite evaluates them on arrays without dimensions only. Its own list of cases, with its own conditions and checks, is
evaluated here on every structure: each case on each, and functions of two arrays on pairs.
"""

import functools
import itertools

import numpy as np
import pytest
from special_cases import AT_HAND, SUITE, draw, load

import structarrays as sa
from array_api_tests_config.projections import PROJECTIONS, project, structure_class
from structarrays._core.families.factored import Factored

if not AT_HAND:
    pytest.skip(f"NOT CHECKED: the official suite is not at {SUITE}", allow_module_level=True)

SHAPE = (2, 3, 3)
# Not those that hold factors and terms: an infinite part makes NaN of sums and products in which the dense form has an infinity
# (docs/design/decisions.md).
STRUCTURES = [name for name in PROJECTIONS if name != "Dense" and not issubclass(structure_class(name), Factored)]
SUITE_CASES = load()


@functools.cache
def cases(kind):
    """The suite's cases of ``"unary"``, ``"binary"`` or ``"iop"`` functions: name, function, case, and values that fulfil its condition."""
    found = []
    for name, function, case in (p.values for p in getattr(SUITE_CASES, f"{kind}_params")):
        if kind == "unary":
            strategies = [case.cond_from_dtype(sa.complex128 if case.is_complex else sa.float64)]
        else:
            strategies = [case.x1_cond_from_dtype(sa.float64), case.x2_cond_from_dtype(sa.float64)]
        # A few of the suite's strategies draw values beyond the condition, such as −2 for |x| < 1.
        found.append((name, function, case, [values for values in draw(*strategies) if case.cond(*values)]))
    return found


def last(n):
    return n - 1


def everywhere(structure, value, dtype, choose=lambda n: 0):
    """An array whose stored entries are all the value, and where they stand (what must be zero, one or conjugate differs)."""
    data = np.full(SHAPE, value, dtype)
    x = project(structure, data, choose=choose)
    pattern = np.asarray(project(structure, np.ones(SHAPE, dtype), choose=choose)) == 1
    return x, pattern & same_bits(np.asarray(x), data)


def same_bits(a, b):
    kind = np.dtype(f"V{a.dtype.itemsize}")
    return a.view(kind) == b.view(kind)


class Failures:
    def __init__(self):
        self.texts, self.checked = [], 0

    def check(self, case, name, structures, values, out, where):
        results = np.asarray(out)[where].tolist()
        self.checked += len(results) > 0
        for result in results:
            result = complex(result) if getattr(case, "is_complex", False) else float(result)
            if not case.check_result(*values, result):
                self.texts.append(f"{name} of {', '.join(structures)} with {values}: {result}, not {case.result_expr}")
                return

    def report(self, least):
        if self.texts:
            pytest.fail(f"{len(self.texts)} special cases differ\n" + "\n".join(self.texts), pytrace=False)
        assert self.checked >= least


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("structure", STRUCTURES)
def test_unary(structure):
    failures = Failures()
    for name, function, case, drawn in cases("unary"):
        for (value,), choose in itertools.product(drawn, (lambda n: 0, last)):
            x, where = everywhere(structure, value, np.complex128 if case.is_complex else np.float64, choose)
            if where.any():
                failures.check(case, name, [structure], (value,), function(x), where)
    failures.report(10 if structure == "Permutation" else len(cases("unary")))


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("kind", ["binary", "iop"])
def test_binary(kind, structure):
    """The structure in either place, each function next to another structure; ``iop`` are the operators in place."""
    failures = Failures()
    # One partner for all cases of a function: each function of a pair of structures has to be compiled.
    others, first = ["Dense", *STRUCTURES], STRUCTURES.index(structure)
    partners = {name: others[(first + i) % len(others)] for i, name in enumerate({c[0]: None for c in cases(kind)})}
    for name, function, case, drawn in cases(kind):
        partner = partners[name]
        for values, pair in itertools.product(drawn, {(structure, partner), (partner, structure)}):
            (x1, where1), (x2, where2) = (everywhere(s, v, np.float64) for s, v in zip(pair, values, strict=True))
            if (where1 & where2).any():
                failures.check(case, name, pair, values, function(x1, x2), where1 & where2)
    failures.report(10 if structure == "Permutation" else len(cases(kind)))


@pytest.mark.parametrize("structure", STRUCTURES)
def test_reductions_of_nothing(structure):
    found = [project(structure, np.zeros(shape)) for shape in ((0, 0), (0, 3, 3))]  # blocks are never empty
    arrays = [x for x in found if x is not None]
    assert arrays
    for x, (name, expected) in itertools.product(arrays, EMPTY):
        result = getattr(sa, name)(x)
        assert result.shape == ()
        np.testing.assert_array_equal(np.asarray(result), expected)


EMPTY = next(m for m in SUITE_CASES.test_empty_arrays.pytestmark if m.name == "parametrize").args[1]


def test_the_lists_are_the_whole_ones():
    lists = (SUITE_CASES.unary_params, SUITE_CASES.binary_params, SUITE_CASES.iop_params, EMPTY)
    assert sum(map(len, lists)) >= 610
