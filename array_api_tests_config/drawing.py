"""Make the official suite draw arrays of one structure, without changes to the suite.

All strategies draw arrays by one method of hypothesis, `ArrayStrategy.do_draw`. The replacement draws the same values,
and projects them on the structure in fifteen of sixteen cases (`projections.project`). A test accepts any
array whose elements its strategy may draw; `admits` decides this. Arrays that a test constructs from lists do not
change.

Shapes are biased: most have at least two dimensions, equal ones if the structure is square, and enough rows and columns
for the structure. The simplest example of each strategy, which hypothesis draws first and shrinks to, is structured.
Otherwise a run with few examples would rarely draw a structured array.

Import the module before the suite.
"""

import copy
import types

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import array_api

from .projections import exact, project, structure_class

SHARE = 15 / 16
"""Fraction of the arrays that are structured, if they can be."""


# ---- elements of a strategy ----------------------------------------------------------------------------------------


def admits(strategy, value) -> bool:
    """Return whether a strategy for elements may draw a value; False if this cannot be decided."""
    rule = RULES.get(type(strategy).__name__)
    return rule is not None and bool(rule(strategy, value))


def _integers(strategy, value):
    inside = (strategy.start is None or strategy.start <= value) and (strategy.end is None or value <= strategy.end)
    return inside and value == int(value)


def _floats(strategy, value):
    return value.imag == 0 and strategy.min_value <= value.real <= strategy.max_value


def _builds(strategy, value):
    parts = (value.real, value.imag)
    return strategy.target is complex and len(strategy.args) == 2 and all(map(admits, strategy.args, parts))


def _sampled(strategy, value):
    return not strategy._transformations and value in strategy.elements


def _filtered(strategy, value):
    return admits(strategy.filtered_strategy, value) and all(condition(value) for condition in strategy.flat_conditions)


RULES = {
    "BooleansStrategy": lambda strategy, value: True,
    "BuildsStrategy": _builds,
    "FilteredStrategy": _filtered,
    "FloatStrategy": _floats,
    "IntegersStrategy": _integers,
    "JustStrategy": _sampled,
    "LazyStrategy": lambda strategy, value: admits(strategy.wrapped_strategy, value),
    "OneOfStrategy": lambda strategy, value: any(admits(s, value) for s in strategy.original_strategies),
    "SampledFromStrategy": _sampled,
}
"""Predicates by the name of hypothesis's class."""


# ---- arrays ----------------------------------------------------------------------------------------------------------


def _host_dtype(dtype):
    return np.dtype(getattr(dtype, "dtype", dtype))


HOST = types.SimpleNamespace(
    __name__="numpy",
    asarray=lambda values, dtype: np.asarray(values, _host_dtype(dtype)),
    zeros=lambda shape, dtype: np.zeros(shape, _host_dtype(dtype)),
    isnan=np.isnan,
    reshape=np.reshape,
)
"""Namespace of `do_draw` for NumPy: values are drawn on the host, without compiled calls."""


class Draws:
    """Replacements of hypothesis's strategies for one structure.

    Parameters
    ----------
    structure : str
        Name of a class of the namespace, or ``module:Class``.
    namespace : module
        Namespace under test.
    received : callable
        Function that is called with each structured array that a test receives.
    """

    def __init__(self, structure, namespace, received):
        self.cls = structure_class(structure)
        self.namespace, self.received = namespace, received
        self.square = self._project(np.zeros((2, 3))) is None

    def _project(self, values, *more):
        return project(self.cls, values, *more)

    def install(self):
        """Replace hypothesis's functions that draw arrays and shapes."""
        draw_plain = array_api.ArrayStrategy.do_draw

        def do_draw(strategy, data):
            host = copy.copy(strategy)
            host.xp = HOST
            with np.errstate(over="ignore"):
                values = draw_plain(host, data)
            return self.draw(data, values, strategy)

        array_api.ArrayStrategy.do_draw = do_draw
        array_api.array_shapes = self.array_shapes(array_api.array_shapes)
        array_api.mutually_broadcastable_shapes = self.broadcastable(array_api.mutually_broadcastable_shapes)

    def draw(self, data, values, strategy):
        """Return the drawn values as an array: structured if structure, strategy and a random draw allow it."""
        x = None
        # Unique elements can neither be structural zeros nor be repeated.
        if values.ndim and (not strategy.unique or values.size < 2) and not data.draw_boolean(1 - SHARE):
            seen = set(values.ravel().tolist())

            def may_be(value):
                return not values.size or value in seen or admits(strategy.elements_strategy, value)

            x = self._project(values, may_be, lambda n: data.draw_integer(0, n - 1))
        if x is None:
            return self.namespace.asarray(values)
        self.received(x)
        return x

    def exactly(self, strategy):
        """Wrap a strategy for computed matrices: they get the structure if it represents them exactly."""

        @st.composite
        def structured(draw):
            x = draw(strategy)
            if x.ndim < 2 or draw(OTHERWISE):
                return x
            found = exact(self.cls, np.asarray(x), lambda n: draw(st.integers(0, n - 1)))
            if found is None:
                return x
            self.received(found)
            return found

        return structured()

    def adopt(self, helpers):
        """Replace the suite's strategies for special matrices, in its module of helpers, by structured ones."""
        for name in ("invertible_matrices", "positive_definite_matrices", "symmetric_matrices"):
            plain = getattr(helpers, name)
            setattr(helpers, name, lambda *args, plain=plain, **kwargs: self.exactly(plain(*args, **kwargs)))

    # ---- shapes ------------------------------------------------------------------------------------------------------

    def array_shapes(self, plain):
        """Return hypothesis's `array_shapes` with a bias."""

        def array_shapes(*, min_dims=1, max_dims=None, min_side=1, max_side=None):
            most = min_dims + 2 if max_dims is None else max_dims
            sides = {"min_side": min_side, "max_side": max_side}
            shapes = plain(min_dims=min_dims, max_dims=max_dims, **sides)
            if most < 2:
                return shapes
            sides["min_side"] = _larger(min_side, max_side)
            matrices = plain(min_dims=max(2, min_dims), max_dims=max(3, most) if max_dims is None else most, **sides)
            return _mostly(matrices.map(_square) if self.square else matrices, shapes)

        return array_shapes

    def broadcastable(self, plain):
        """Return hypothesis's `mutually_broadcastable_shapes` with a bias."""

        def mutually_broadcastable_shapes(num_shapes, **kwargs):
            shapes = plain(num_shapes, **kwargs)
            dims = max(2, kwargs.get("min_dims", 0))
            most = kwargs.get("max_dims", dims + 1)
            if kwargs.get("base_shape", ()) or most < dims:
                return shapes
            sides = {"min_side": _larger(kwargs.get("min_side", 1), kwargs.get("max_side"))}
            matrices = plain(num_shapes, **kwargs | sides | {"min_dims": dims, "max_dims": min(dims + 1, most)})
            return _mostly(matrices.map(_all_square) if self.square else matrices, shapes)

        return mutually_broadcastable_shapes


OTHERWISE = st.sampled_from([False] * 7 + [True])
"""Strategy of the rare case: one of eight draws, but not the simplest one."""


@st.composite
def _mostly(draw, usual, other):
    return draw(other if draw(OTHERWISE) else usual)


def _larger(min_side, max_side):
    """Return the smallest number of rows of a matrix with a structure."""
    return max(min_side, 2 if max_side is None else min(2, max_side))


def _square(shape):
    return (*shape[:-1], shape[-2]) if len(shape) >= 2 else shape


def _all_square(shapes):
    """Return shapes of square matrices that broadcast like these shapes; lengths of 1 are kept."""
    n = shapes.result_shape[-1]
    rows_broadcast = shapes.result_shape[-2] != 1

    def square(shape):
        return (*shape[:-2], 1 if rows_broadcast and shape[-2] == 1 else n, shape[-1])

    return type(shapes)(tuple(map(square, shapes.input_shapes)), square(shapes.result_shape))
