"""Makes the official suite draw arrays of one structure, without a change to the suite.

All arrays of all strategies come out of one method of hypothesis, `ArrayStrategy.do_draw`. It is replaced by one that draws the same
values, and in fifteen of sixteen cases puts them on the structure (`projections.project`). A test only keeps the array that it
gets, so any array is as good whose elements the test's strategy may draw: `admits` tells which. What a test makes of lists stays as it is.

Shapes are biased, too: most have the two dimensions or more that a matrix needs, equal ones where the structure is square only, and
rows and columns enough to have a structure. The simplest example of each strategy, which hypothesis draws first and shrinks to, is
structured: a run with few examples would hardly meet a structure otherwise.

Import it before the suite.
"""

import copy
import types

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import array_api

from .projections import exact, project, structure_class

SHARE = 15 / 16
"""Which share of the arrays that can be structured are."""


# ---- what a strategy may draw --------------------------------------------------------------------------------------


def admits(strategy, value) -> bool:
    """Whether a strategy for elements may draw a value; false where that is not known for sure."""
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
"""How to tell, by the name of hypothesis's class."""


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
"""What `do_draw` uses of a namespace, for NumPy: the values are drawn on the host, without a compiled call for each of them."""


class Draws:
    """The strategies' new ways for one structure.

    Parameters
    ----------
    structure : str
        The name of a class of the namespace, or ``module:Class``.
    namespace : module
        What the suite tests.
    received : callable
        Called for each structured array that a test gets.
    """

    def __init__(self, structure, namespace, received):
        self.cls = structure_class(structure)
        self.namespace, self.received = namespace, received
        self.square = self._project(np.zeros((2, 3))) is None

    def _project(self, values, *more):
        return project(self.cls, values, *more)

    def install(self):
        """Replace what hypothesis draws arrays and shapes with."""
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
        """The array of drawn values: structured, if the structure and the strategy have one and the draw says so."""
        x = None
        # Elements that have to differ can neither be zeros nor be repeated.
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
        """A strategy for matrices that are not drawn but computed, in the structure where they have it."""

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
        """Let the suite's strategies for matrices of special kinds, in its module of helpers, give structured ones."""
        for name in ("invertible_matrices", "positive_definite_matrices", "symmetric_matrices"):
            plain = getattr(helpers, name)
            setattr(helpers, name, lambda *args, plain=plain, **kwargs: self.exactly(plain(*args, **kwargs)))

    # ---- shapes ------------------------------------------------------------------------------------------------------

    def array_shapes(self, plain):
        """Hypothesis's `array_shapes` with a bias."""

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
        """Hypothesis's `mutually_broadcastable_shapes` with a bias."""

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
"""Whether the rarer way is taken, in one of eight draws, of which the first is none."""


@st.composite
def _mostly(draw, usual, other):
    return draw(other if draw(OTHERWISE) else usual)


def _larger(min_side, max_side):
    """The smallest number of rows of a matrix that has a structure."""
    return max(min_side, 2 if max_side is None else min(2, max_side))


def _square(shape):
    return (*shape[:-1], shape[-2]) if len(shape) >= 2 else shape


def _all_square(shapes):
    """Square matrices that broadcast together as these do; their dimensions of 1 stay."""
    n = shapes.result_shape[-1]
    rows_broadcast = shapes.result_shape[-2] != 1

    def square(shape):
        return (*shape[:-2], 1 if rows_broadcast and shape[-2] == 1 else n, shape[-1])

    return type(shapes)(tuple(map(square, shapes.input_shapes)), square(shapes.result_shape))
