"""The registry of projections: how the official suite, and other tests that draw arrays, get structured ones.

A projection keeps values of an array that a test drew, and drops the others: the suite only keeps the array it gets, so that any array
of the drawn shape and dtype will do whose elements the test's strategy may draw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

import structarrays as sa
from structarrays._core.array.base import Array
from structarrays.testing import SAMPLERS, sample

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias, TypeVar

    Admits: TypeAlias = Callable[[Any], bool]
    Choose: TypeAlias = Callable[[int], int]
    Projection: TypeAlias = Callable[[np.ndarray, Admits, Choose], Array | None]

    P = TypeVar("P", bound=Projection)

PROJECTIONS: dict[str, tuple[Projection, int]] = {}
"""For each structure, by name, the function that `project` calls, and the smallest number of dimensions it is called for."""


def projection(structure: str, *, min_ndim: int = 2) -> Callable[[P], P]:
    """Register how drawn values are put on a structure.

    Parameters
    ----------
    structure : str
        The name of its class.
    min_ndim : int
        How many dimensions its arrays have at least.

    Returns
    -------
    callable
        A decorator of a function ``(values, admits, choose)`` which returns an array of the shape and dtype of the NumPy array
        `values`, whose elements are among `values` or satisfy `admits`; or None where the structure has none. Of an element v
        that it implies, such as zero, it must ask ``admits(v)``; ``choose(n)`` is one of ``0, …, n - 1``, for variants.

    Examples
    --------
    >>> import numpy as np
    >>> import structarrays as sa
    >>> from array_api_tests_config.projections import project, projection
    >>> class Scalar(sa.Identity):
    ...     __slots__ = ()
    >>> @projection("Scalar")
    ... def project_scalar(values, admits, choose):
    ...     square = values.shape[-1] == values.shape[-2]
    ...     return Scalar(values.shape[-1], values[..., 0, 0]) if square and admits(0) else None
    >>> project("Scalar", np.asarray([[2.0, 3.0], [4.0, 5.0]])).to_dense()
    Dense([[2., 0.],
           [0., 2.]], dtype=float64)
    """

    def register(function: P) -> P:
        PROJECTIONS[structure] = (function, min_ndim)
        return function

    return register


def anything(value: object) -> bool:
    """Every element is admitted."""
    return True


def first(n: int) -> int:
    """The first choice."""
    return 0


def project(
    structure: str | type[Array], values: np.ndarray, admits: Admits = anything, choose: Choose = first
) -> Array | None:
    """Values put on a structure.

    Parameters
    ----------
    structure : str or type
        A name in `PROJECTIONS` or in `SAMPLERS`, or a class. Without a projection, a random sample gives the pattern, and
        the values are put where it stores entries.
    values : numpy.ndarray
        What the elements are taken from.
    admits : callable
        Whether a value may be an element, though it is not among `values`.
    choose : callable
        ``choose(n)`` chooses one of `n` variants.

    Returns
    -------
    Array or None
        An array of the structure, shape and dtype; None where there is none.

    Raises
    ------
    ValueError
        If there is neither a projection nor a sampler for the structure.

    Examples
    --------
    >>> import numpy as np
    >>> from array_api_tests_config.projections import project
    >>> project("Diagonal", np.asarray([[2, 3], [4, 5]]))
    Diagonal([2, 5], shape=(2, 2), dtype=int64)
    >>> project("Diagonal", np.asarray([[2, 3], [4, 5]]), admits=lambda v: v > 1).background
    Array(3, dtype=int64)
    """
    name = structure if isinstance(structure, str) else structure.__name__
    if name in PROJECTIONS:
        function, min_ndim = PROJECTIONS[name]
        x = function(values, admits, choose) if values.ndim >= min_ndim else None
    elif name in SAMPLERS:
        x = _sampled(name, values, admits, choose)
    else:
        raise ValueError(
            f"structure must be one of {', '.join({**PROJECTIONS, **SAMPLERS})} (see projection and sampler), got {name!r}"
        )
    if x is not None and (x.shape != values.shape or x.dtype != values.dtype):
        raise ValueError(
            f"the projection on {name} gave shape {x.shape} and dtype {x.dtype} for {values.shape} and {values.dtype}"
        )
    return x


def _sampled(name: str, values: np.ndarray, admits: Admits, choose: Choose) -> Array | None:
    """The values at the entries of a random sample."""
    if values.ndim < 2:
        return None
    x = sample(name, values.shape[-2:], batch=values.shape[:-2], dtype=values.dtype, seed=choose(4))
    if x is None or not x.stores_entries:
        return None
    x = x.rebuild(x.gather(jnp.asarray(values)), None)
    return x if getattr(x, "covers", False) else outside(x, values, admits, choose)


def outside(x: Array, values: np.ndarray, admits: Admits, choose: Choose) -> Array:
    """An array with structural zeros, where elements may be zero; or with one of the values as its background."""
    if not x.size or admits(0) and choose(4) < 3:
        return x
    core = x.ndim - len(x.batch_shape)
    last: tuple[Any, ...] = (..., *(0,) * (core - 1), -1)
    return x.rebuild(x.entries, jnp.asarray(values[last]))


def exact(structure: str | type[Array], values: np.ndarray, choose: Choose = first) -> Array | None:
    """The array of a structure with exactly these values; None where their structure is another.

    Examples
    --------
    >>> import numpy as np
    >>> from array_api_tests_config.projections import exact
    >>> exact("Diagonal", np.eye(2)), exact("Diagonal", np.ones((2, 2)))
    (Diagonal([1., 1.], shape=(2, 2), dtype=float64), None)
    """
    x = project(structure, values, anything, choose)
    same = x is not None and np.array_equal(np.asarray(x), values, equal_nan=values.dtype.kind in "fc")
    return x if same else None


def structure_class(name: str) -> type:
    """The class of a structure: its name in this namespace, or ``module:Class``, which imports the module.

    Examples
    --------
    >>> from array_api_tests_config.projections import structure_class
    >>> structure_class("Banded").__name__
    'Banded'
    """
    import importlib

    module, _, name = name.rpartition(":")
    found = importlib.import_module(module) if module else sa
    cls = getattr(found, name, None)
    if not (isinstance(cls, type) and issubclass(cls, Array)):
        raise ValueError(f"{name} is no array class of {found.__name__}")
    return cls
