"""Functions that the core calls, although they stand above it in the order of imports.

`bind` puts them into this module while they are imported: `functions/bound.py` those of the namespace, the modules of `interop` and
`transform` their own. A type checker and an editor read the imports below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..functions.bitwise import bitwise_invert as bitwise_invert
    from ..functions.comparisons_and_logic import equal as equal
    from ..functions.conversion import asarray as asarray
    from ..functions.conversion import densified as densified
    from ..functions.creation import zeros_like as zeros_like
    from ..functions.data_type import astype as astype
    from ..functions.data_type import view as view
    from ..functions.elementwise import abs as abs
    from ..functions.elementwise import negative as negative
    from ..functions.elementwise import positive as positive
    from ..functions.indexing import getitem as getitem
    from ..functions.indexing import setitem as setitem
    from ..functions.linalg_norms import trace as trace
    from ..functions.linear_algebra import matrix_transpose as matrix_transpose
    from ..functions.manipulation import moveaxis as moveaxis
    from ..functions.manipulation import permute_dims as permute_dims
    from ..functions.manipulation import reshape as reshape
    from ..functions.manipulation import squeeze as squeeze
    from ..functions.rounding_and_parts import conj as conj
    from ..functions.rounding_and_parts import imag as imag
    from ..functions.rounding_and_parts import real as real
    from ..functions.searching import nonzero as nonzero
    from ..functions.statistical import max as max
    from ..functions.statistical import mean as mean
    from ..functions.statistical import min as min
    from ..functions.statistical import sum as sum
    from ..functions.structure import to_dense as to_dense
    from ..functions.utility import all as all
    from ..functions.utility import any as any
    from ..interop.html import log_to_html as log_to_html
    from ..interop.html import to_html as to_html
    from ..interop.linear_operators import as_called as as_called
    from ..interop.linear_operators import combine as combine
    from ..interop.linear_operators import product as product
    from ..interop.numpy import apply_function as apply_function
    from ..interop.numpy_host import to_numpy as to_numpy
    from ..interop.numpy_ufuncs import apply_ufunc as apply_ufunc
    from ..interop.printing import to_repr as to_repr
    from ..interop.printing import to_str as to_str
    from ..transform.structure import join as join


def bind(**functions: Any) -> None:
    """Put functions into this module, each under its name."""
    globals().update(functions)
