"""structarrays: one Array API namespace (standard 2025.12) on JAX whose arrays know their structure."""

import typing as _typing

from ._core.collection import paused_collection as _paused_collection
from ._core.jax_internals.compiler_flags import avoid_wrong_sums as _avoid_wrong_sums

_avoid_wrong_sums()

with _paused_collection():
    from . import extend, interop, transform
    from ._core.array.base import Array
    from ._core.array.dense import Dense
    from ._core.assumptions import assume, forget
    from ._core.dispatch.contexts import dense_results, densify, errstate, host_calls, set_dense_results, strong_zeros
    from ._core.dispatch.recording import explain, record
    from ._core.dtypes import (
        DType,
        complex64,
        complex128,
        float32,
        float64,
        int8,
        int16,
        int32,
        int64,
        uint8,
        uint16,
        uint32,
        uint64,
    )
    from ._core.dtypes import bool_ as bool
    from ._core.errors import DensifyError, DensifyWarning, StructureError
    from ._core.families.join import join_pair, meet_pair, restrict_to, same_structure
    from ._core.hints import NAMESPACE as _NAMESPACE_HINTS
    from ._core.hints import hint as _hint
    from ._core.moved import find_moved_modules as _find_moved_modules
    from ._functions import bound as _bound
    from ._functions import fft, linalg
    from ._functions.bitwise import (
        bitwise_and,
        bitwise_invert,
        bitwise_left_shift,
        bitwise_or,
        bitwise_right_shift,
        bitwise_xor,
    )
    from ._functions.comparisons_and_logic import (
        equal,
        greater,
        greater_equal,
        isfinite,
        isinf,
        isnan,
        less,
        less_equal,
        logical_and,
        logical_not,
        logical_or,
        logical_xor,
        not_equal,
        signbit,
    )
    from ._functions.constants import e, inf, nan, newaxis, pi
    from ._functions.creation import (
        arange,
        asarray,
        empty,
        empty_like,
        eye,
        from_dlpack,
        full,
        full_like,
        linspace,
        meshgrid,
        ones,
        ones_like,
        tril,
        triu,
        zeros,
        zeros_like,
    )
    from ._functions.data_type import astype, can_cast, finfo, iinfo, isdtype, result_type
    from ._functions.dense_form import to_dense
    from ._functions.elementwise import (
        abs,
        add,
        divide,
        floor_divide,
        hypot,
        maximum,
        minimum,
        multiply,
        negative,
        positive,
        reciprocal,
        remainder,
        sign,
        square,
        subtract,
    )
    from ._functions.exponential import exp, expm1, log, log1p, log2, log10, logaddexp, sqrt
    from ._functions.indexing import take, take_along_axis
    from ._functions.inspection import __array_namespace_info__
    from ._functions.joining import broadcast_arrays, broadcast_shapes, broadcast_to, concat, stack, unstack
    from ._functions.linear_algebra import matmul, matrix_transpose, tensordot, vecdot
    from ._functions.manipulation import expand_dims, flip, moveaxis, permute_dims, repeat, reshape, roll, squeeze, tile
    from ._functions.pow_and_clip import clip, pow
    from ._functions.rounding_and_parts import ceil, conj, copysign, floor, imag, nextafter, real, round, trunc
    from ._functions.searching import argmax, argmin, count_nonzero, nonzero, searchsorted, where
    from ._functions.set import isin, unique_all, unique_counts, unique_inverse, unique_values
    from ._functions.sorting import argsort, sort
    from ._functions.statistical import cumulative_prod, cumulative_sum, max, mean, min, prod, std, sum, var
    from ._functions.trigonometric import acos, acosh, asin, asinh, atan, atan2, atanh, cos, cosh, sin, sinh, tan, tanh
    from ._functions.utility import all, any, diff
    from ._structures import load as _load_structures
    from ._structures.banded.array import Banded
    from ._structures.banded.diagonal import Diagonal, Identity, diag
    from ._structures.banded.from_diagonals import bidiagonal, from_dia, tridiagonal
    from ._structures.blocks.block_banded import BlockBanded, block_tridiagonal
    from ._structures.blocks.block_diagonal import BlockDiagonal
    from ._structures.composite.block import Block
    from ._structures.composite.inverse import Inverse
    from ._structures.composite.product import Product
    from ._structures.composite.sum import Sum
    from ._structures.fill.array import Fill
    from ._structures.kronecker.array import Kronecker
    from ._structures.kronecker.kronecker_sum import KroneckerSum
    from ._structures.low_rank.array import LowRank
    from ._structures.orthonormal.fourier import Fourier
    from ._structures.orthonormal.householder import Householder
    from ._structures.periodic.array import PeriodicBanded
    from ._structures.permutation.array import Permutation
    from ._structures.sparse.array import Sparse
    from ._structures.symmetric.array import Hermitian, Symmetric
    from ._structures.toeplitz.array import Toeplitz
    from ._structures.toeplitz.circulant import Circulant
    from ._structures.toeplitz.hankel import Hankel
    from ._structures.triangular.array import Triangular
    from .interop.exports import make_exportable as _make_exportable
    from .transform.calculus import grad, value_and_grad, vmap
    from .transform.structure import convert, join

    _load_structures()

if _typing.TYPE_CHECKING:
    from . import plot
    from .interop.exports import compilation_cache
    from .interop.files import load, save
    from .interop.host import host_function
    from .transform.batches import vmap_axes
    from .transform.jacobian import hessian, jacobian, linearize
    from .transform.structured import structured
    from .transform.updates import apply_updates

_ON_FIRST_USE = {
    "apply_updates": "transform.updates",
    "compilation_cache": "interop.exports",
    "hessian": "transform.jacobian",
    "host_function": "interop.host",
    "jacobian": "transform.jacobian",
    "linearize": "transform.jacobian",
    "load": "interop.files",
    "plot": "plot",
    "save": "interop.files",
    "structured": "transform.structured",
    "testing": "testing",
    "vmap_axes": "transform.batches",
}
"""Modules that most programs do not need, by what the namespace has of them; they are imported when it is used first."""

__all__ = [
    "Array",
    "Banded",
    "Block",
    "BlockBanded",
    "BlockDiagonal",
    "Circulant",
    "DType",
    "Dense",
    "DensifyError",
    "DensifyWarning",
    "Diagonal",
    "Fill",
    "Fourier",
    "Hankel",
    "Hermitian",
    "Householder",
    "Identity",
    "Inverse",
    "Kronecker",
    "KroneckerSum",
    "LowRank",
    "PeriodicBanded",
    "Permutation",
    "Product",
    "Sparse",
    "StructureError",
    "Sum",
    "Symmetric",
    "Toeplitz",
    "Triangular",
    "__array_namespace_info__",
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "apply_updates",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asarray",
    "asin",
    "asinh",
    "assume",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "bidiagonal",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "block_tridiagonal",
    "bool",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "ceil",
    "clip",
    "compilation_cache",
    "complex128",
    "complex64",
    "concat",
    "conj",
    "convert",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "dense_results",
    "densify",
    "diag",
    "diff",
    "divide",
    "e",
    "empty",
    "empty_like",
    "equal",
    "errstate",
    "exp",
    "expand_dims",
    "explain",
    "expm1",
    "extend",
    "eye",
    "fft",
    "finfo",
    "flip",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "forget",
    "from_dia",
    "from_dlpack",
    "full",
    "full_like",
    "grad",
    "greater",
    "greater_equal",
    "hessian",
    "host_calls",
    "host_function",
    "hypot",
    "iinfo",
    "imag",
    "inf",
    "int16",
    "int32",
    "int64",
    "int8",
    "interop",
    "isdtype",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "jacobian",
    "join",
    "join_pair",
    "less",
    "less_equal",
    "linalg",
    "linearize",
    "linspace",
    "load",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "meet_pair",
    "meshgrid",
    "min",
    "minimum",
    "moveaxis",
    "multiply",
    "nan",
    "negative",
    "newaxis",
    "nextafter",
    "nonzero",
    "not_equal",
    "ones",
    "ones_like",
    "permute_dims",
    "pi",
    "plot",
    "positive",
    "pow",
    "prod",
    "real",
    "reciprocal",
    "record",
    "remainder",
    "repeat",
    "reshape",
    "restrict_to",
    "result_type",
    "roll",
    "round",
    "same_structure",
    "save",
    "searchsorted",
    "set_dense_results",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sort",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "strong_zeros",
    "structured",
    "subtract",
    "sum",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "to_dense",
    "transform",
    "tridiagonal",
    "tril",
    "triu",
    "trunc",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "value_and_grad",
    "var",
    "vecdot",
    "vmap",
    "vmap_axes",
    "where",
    "zeros",
    "zeros_like",
]

if not _typing.TYPE_CHECKING:  # else a type checker would accept every name

    def __getattr__(name):
        """Import what is imported on first use; of other names, say what to write in their place."""
        if name in _ON_FIRST_USE:
            import importlib

            module = importlib.import_module(f".{_ON_FIRST_USE[name]}", __name__)
            found = globals()[name] = module if _ON_FIRST_USE[name] == name else getattr(module, name)
            return found
        import numpy

        what = f"module {__name__!r} has no attribute {name!r}"
        if name in _NAMESPACE_HINTS:
            what += _hint(_NAMESPACE_HINTS, name)
        elif not name.startswith("_") and callable(getattr(numpy, name, None)):
            what += f", since the Array API standard has no such function; numpy.{name} accepts arrays of structarrays"
        raise AttributeError(what)


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


for _cls in map(globals().get, __all__):
    if isinstance(_cls, type) and issubclass(_cls, Array):
        _cls.__module__ = __name__  # as its users name it, in errors and in pickles
_find_moved_modules()
_make_exportable()

__version__ = "0.1.0"
__array_api_version__ = "2025.12"
