"""Binding of the functions that the core calls (see `late`)."""

# ruff: noqa: A004 (the standard's names)

from .._core.dispatch import late
from .bitwise import bitwise_invert
from .comparisons_and_logic import equal
from .conversion import asarray, densified
from .creation import zeros_like
from .data_type import astype, view
from .dense_form import to_dense
from .elementwise import abs, negative, positive
from .index_writes import setitem
from .indexing import getitem
from .linalg.norms import trace
from .linear_algebra import matrix_transpose
from .manipulation import moveaxis, permute_dims, reshape, squeeze
from .rounding_and_parts import conj, imag, real
from .searching import nonzero
from .statistical import max, mean, min, sum
from .utility import all, any

late.bind(
    abs=abs,
    all=all,
    any=any,
    asarray=asarray,
    astype=astype,
    bitwise_invert=bitwise_invert,
    conj=conj,
    densified=densified,
    equal=equal,
    getitem=getitem,
    imag=imag,
    matrix_transpose=matrix_transpose,
    max=max,
    mean=mean,
    min=min,
    moveaxis=moveaxis,
    negative=negative,
    nonzero=nonzero,
    permute_dims=permute_dims,
    positive=positive,
    real=real,
    reshape=reshape,
    setitem=setitem,
    squeeze=squeeze,
    sum=sum,
    to_dense=to_dense,
    trace=trace,
    view=view,
    zeros_like=zeros_like,
)
