"""Functions that the core calls although it may not import them, since they stand above it in the order of imports.

`bind` adds them to this module when their own modules are imported: `_functions/bound.py` adds functions of the
namespace, and modules of `interop` and `transform` add their own. Functions in `ON_FIRST_USE` are imported when they are
called first. Type checkers and editors read the imports below.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..._functions.bitwise import bitwise_invert as bitwise_invert
    from ..._functions.comparisons_and_logic import equal as equal
    from ..._functions.conversion import asarray as asarray
    from ..._functions.conversion import densified as densified
    from ..._functions.creation import zeros_like as zeros_like
    from ..._functions.data_type import astype as astype
    from ..._functions.data_type import view as view
    from ..._functions.dense_form import to_dense as to_dense
    from ..._functions.elementwise import abs as abs
    from ..._functions.elementwise import negative as negative
    from ..._functions.elementwise import positive as positive
    from ..._functions.index_writes import setitem as setitem
    from ..._functions.indexing import getitem as getitem
    from ..._functions.linalg.norms import trace as trace
    from ..._functions.linear_algebra import matrix_transpose as matrix_transpose
    from ..._functions.manipulation import moveaxis as moveaxis
    from ..._functions.manipulation import permute_dims as permute_dims
    from ..._functions.manipulation import reshape as reshape
    from ..._functions.manipulation import squeeze as squeeze
    from ..._functions.rounding_and_parts import conj as conj
    from ..._functions.rounding_and_parts import imag as imag
    from ..._functions.rounding_and_parts import real as real
    from ..._functions.searching import nonzero as nonzero
    from ..._functions.statistical import max as max
    from ..._functions.statistical import mean as mean
    from ..._functions.statistical import min as min
    from ..._functions.statistical import sum as sum
    from ..._functions.utility import all as all
    from ..._functions.utility import any as any
    from ...interop.direct_solvers import provided_sparse_solver as provided_sparse_solver
    from ...interop.html import log_to_html as log_to_html
    from ...interop.html import to_html as to_html
    from ...interop.linear_operators import as_called as as_called
    from ...interop.linear_operators import combine as combine
    from ...interop.linear_operators import product as product
    from ...interop.numpy import apply_function as apply_function
    from ...interop.numpy_host import to_numpy as to_numpy
    from ...interop.numpy_ufuncs import apply_ufunc as apply_ufunc
    from ...interop.printing import to_repr as to_repr
    from ...interop.printing import to_str as to_str
    from ...transform.structure import join as join

ON_FIRST_USE = {
    "apply_function": "numpy",
    "apply_ufunc": "numpy_ufuncs",
    "as_called": "linear_operators",
    "combine": "linear_operators",
    "log_to_html": "html",
    "product": "linear_operators",
    "provided_sparse_solver": "direct_solvers",
    "to_html": "html",
    "to_numpy": "numpy_host",
    "to_repr": "printing",
    "to_str": "printing",
}
"""The module of `interop` that defines each function, imported when the function is called first."""


def bind(**functions: Any) -> None:
    """Add functions to this module, each under its name."""
    globals().update(functions)


def __getattr__(name: str) -> Any:
    if name not in ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"...interop.{ON_FIRST_USE[name]}", __package__), name)
    bind(**{name: found})
    return found
