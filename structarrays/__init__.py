"""structarrays: one Array API namespace (standard 2025.12) on JAX whose arrays know their structure."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from . import plot
from .core.array import Array
from .core.assumptions import assume, forget
from .core.contexts import densify, errstate, strong_zeros
from .core.dense import Dense
from .core.dtypes import (
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
from .core.dtypes import bool_ as bool
from .core.errors import DensifyError, DensifyWarning, StructureError
from .core.join import join_pair, meet_pair, restrict_to, same_structure
from .core.recording import explain, record
from .functions import bound as _bound
from .functions import fft, linalg
from .functions.bitwise import (
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
)
from .functions.comparisons_and_logic import (
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
from .functions.constants import e, inf, nan, newaxis, pi
from .functions.creation import (
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
from .functions.data_type import astype, can_cast, finfo, iinfo, isdtype, result_type
from .functions.elementwise import (
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
from .functions.exponential import (
    exp,
    expm1,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    sqrt,
)
from .functions.indexing import take, take_along_axis
from .functions.inspection import __array_namespace_info__
from .functions.joining import broadcast_arrays, broadcast_shapes, broadcast_to, concat, stack, unstack
from .functions.linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from .functions.manipulation import expand_dims, flip, moveaxis, permute_dims, repeat, reshape, roll, squeeze, tile
from .functions.pow_and_clip import (
    clip,
    pow,
)
from .functions.rounding_and_parts import (
    ceil,
    conj,
    copysign,
    floor,
    imag,
    nextafter,
    real,
    round,
    trunc,
)
from .functions.searching import argmax, argmin, count_nonzero, nonzero, searchsorted, where
from .functions.set import isin, unique_all, unique_counts, unique_inverse, unique_values
from .functions.sorting import argsort, sort
from .functions.statistical import cumulative_prod, cumulative_sum, max, mean, min, prod, std, sum, var
from .functions.structure import to_dense
from .functions.trigonometric import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    sin,
    sinh,
    tan,
    tanh,
)
from .functions.utility import all, any, diff
from .interop import html as _html
from .interop import linear_operators as _linear_operators
from .interop import numpy as _numpy
from .interop import printing as _printing
from .interop.exports import compilation_cache
from .interop.exports import make_exportable as _make_exportable
from .interop.files import load, save
from .interop.host import host_function
from .structures import banded_indexing as _banded_indexing
from .structures import banded_products as _banded_products
from .structures import banded_reductions as _banded_reductions
from .structures import banded_solvers as _banded_solvers
from .structures import banded_spectra as _banded_spectra
from .structures import banded_triangles as _banded_triangles
from .structures import block_banded_solvers as _block_banded_solvers
from .structures import block_diagonal_solvers as _block_diagonal_solvers
from .structures import block_solvers as _block_solvers
from .structures import blocks_indexing as _blocks_indexing
from .structures import blocks_joins as _blocks_joins
from .structures import blocks_products as _blocks_products
from .structures import blocks_reductions as _blocks_reductions
from .structures import circulant_solvers as _circulant_solvers
from .structures import extremes as _extremes
from .structures import factored_batches as _factored_batches
from .structures import factored_functions as _factored_functions
from .structures import factored_solvers as _factored_solvers
from .structures import factorizations as _factorizations
from .structures import fill_indexing as _fill_indexing
from .structures import fill_products as _fill_products
from .structures import fill_reductions as _fill_reductions
from .structures import hankel_solvers as _hankel_solvers
from .structures import khatri_rao as _khatri_rao
from .structures import kronecker_functions as _kronecker_functions
from .structures import kronecker_solvers as _kronecker_solvers
from .structures import kronecker_spectra as _kronecker_spectra
from .structures import kronecker_transforms as _kronecker_transforms
from .structures import least_squares as _least_squares
from .structures import low_rank_spectra as _low_rank_spectra
from .structures import matrix_functions as _matrix_functions
from .structures import permutation_products as _permutation_products
from .structures import selections as _selections
from .structures import singular_vectors as _singular_vectors
from .structures import sparse_batch_writes as _sparse_batch_writes
from .structures import sparse_elementwise as _sparse_elementwise
from .structures import sparse_forms as _sparse_forms
from .structures import sparse_indexing as _sparse_indexing
from .structures import sparse_joins as _sparse_joins
from .structures import sparse_products as _sparse_products
from .structures import sparse_reductions as _sparse_reductions
from .structures import sparse_shapes as _sparse_shapes
from .structures import sparse_solvers as _sparse_solvers
from .structures import sparse_writes as _sparse_writes
from .structures import sum_solvers as _sum_solvers
from .structures import symmetric_indexing as _symmetric_indexing
from .structures import symmetric_products as _symmetric_products
from .structures import symmetric_reductions as _symmetric_reductions
from .structures import symmetric_solvers as _symmetric_solvers
from .structures import toeplitz_indexing as _toeplitz_indexing
from .structures import toeplitz_products as _toeplitz_products
from .structures import toeplitz_reductions as _toeplitz_reductions
from .structures import toeplitz_solvers as _toeplitz_solvers
from .structures import toeplitz_triangles as _toeplitz_triangles
from .structures import triangular_indexing as _triangular_indexing
from .structures import triangular_products as _triangular_products
from .structures import triangular_reductions as _triangular_reductions
from .structures import triangular_solvers as _triangular_solvers
from .structures import via_sparse as _via_sparse
from .structures import where_nan as _where_nan
from .structures import wide_bands as _wide_bands
from .structures.banded import Banded, bidiagonal, from_dia, tridiagonal
from .structures.block import Block
from .structures.block_banded import BlockBanded, block_tridiagonal
from .structures.block_diagonal import BlockDiagonal
from .structures.circulant import Circulant
from .structures.diagonal import Diagonal, Identity, diag
from .structures.fill import Fill
from .structures.fourier import Fourier
from .structures.hankel import Hankel
from .structures.householder import Householder
from .structures.inverse import Inverse
from .structures.kronecker import Kronecker
from .structures.kronecker_sum import KroneckerSum
from .structures.low_rank import LowRank
from .structures.permutation import Permutation
from .structures.product import Product
from .structures.sparse import Sparse
from .structures.sum import Sum
from .structures.symmetric import Hermitian, Symmetric
from .structures.toeplitz import Toeplitz
from .structures.triangular import Triangular
from .transform.batches import vmap_axes
from .transform.calculus import grad, value_and_grad, vmap
from .transform.structure import convert, join
from .transform.structured import structured

if not _TYPE_CHECKING:  # else a type checker would accept every name

    def __getattr__(name):
        """Say what to call in place of a function of NumPy that the standard does not have."""
        import numpy

        what = f"module {__name__!r} has no attribute {name!r}"
        if not name.startswith("_") and callable(getattr(numpy, name, None)):
            what += f", which is no function of the Array API standard; numpy.{name} takes arrays of structarrays"
        raise AttributeError(what)


_make_exportable()

__version__ = "0.1.0"
__array_api_version__ = "2025.12"
