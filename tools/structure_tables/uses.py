"""The lines of code whose results the page shows: uses of every function on a matrix `A`, or on `A` and a second operand `B`."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, NamedTuple

from structarrays.testing import CASES
from structarrays.testing import DTYPES as DTYPES_OF_KIND
from structarrays.testing.cases_arrays import REDUCTIONS
from structarrays.testing.cases_elementwise import BINARY, UNARY

from .matrices import DTYPES, STRUCTURES

if TYPE_CHECKING:
    from collections.abc import Iterable

SAME = "the same"
"""The second operand that has the structure of the first."""


class Use(NamedTuple):
    """A line of code with its function, and the names of the second operands that it is shown for (none if it has one operand)."""

    function: str
    code: str
    second: tuple[str, ...] = ()


OPERATORS = {"A + B": "add", "A * B": "multiply", "A @ B": "matmul", "B @ A": "matmul"}
"""The functions that stand as operators; of the first three, all pairs of structures are shown."""

OF_ONE = """
sa.clip(A)
sa.clip(A, 0.5, 1.0)
sa.pow(A, 2)
sa.pow(A, 0.5)
sa.pow(A, 0)
sa.pow(A, -1.0)
sa.pow(2.0, A)
sa.add(A, 1.0)
sa.multiply(A, 2.0)
sa.divide(A, 2.0)
sa.divide(2.0, A)
sa.isin(A, sa.asarray([1, 2]))
sa.searchsorted(sa.asarray([1.0, 2.0]), A)
sa.astype(A, sa.bool)
sa.where(A > 0, A, 0.0)
sa.where(A > 0, 1.0, A)
sa.asarray(A)
sa.asarray(A, copy=True)
sa.empty_like(A)
sa.full_like(A, 2)
sa.ones_like(A)
sa.zeros_like(A)
sa.from_dlpack(A)
sa.tril(A)
sa.tril(A, k=1)
sa.tril(A, k=-1)
sa.triu(A)
sa.triu(A, k=1)
sa.triu(A, k=-1)
sa.argmax(A, axis=-1)
sa.argmax(A)
sa.argmin(A, axis=-1)
sa.argmin(A)
sa.linalg.vector_norm(A, axis=-1)
sa.linalg.vector_norm(A)
sa.broadcast_arrays(A, A[0, :])
sa.broadcast_to(A, (3, *A.shape))
sa.broadcast_to(A[:1, :], A.shape)
sa.concat((A, A), axis=0)
sa.concat((A, A), axis=-1)
sa.concat((A, A), axis=None)
sa.stack((A, A), axis=0)
sa.stack((A, A), axis=-1)
sa.expand_dims(A, axis=0)
sa.expand_dims(A, axis=-1)
sa.flip(A, axis=0)
sa.flip(A)
sa.matrix_transpose(A)
sa.moveaxis(A, 0, 1)
sa.permute_dims(A, (1, 0))
sa.repeat(A, 2, axis=0)
sa.repeat(A, 2)
sa.reshape(A, A.shape)
sa.reshape(A, (1, *A.shape))
sa.reshape(A, (-1, 2 * A.shape[1]))
sa.reshape(A, (-1,))
sa.roll(A, 1, axis=0)
sa.roll(A, 1)
sa.squeeze(A[None, ...], axis=0)
sa.tile(A, (2,))
sa.tile(A, (3, 1, 1))
sa.unstack(A[:3, :])
sa.cumulative_prod(A, axis=0)
sa.cumulative_prod(A, axis=-1)
sa.cumulative_sum(A, axis=0)
sa.cumulative_sum(A, axis=-1)
sa.diff(A, axis=0)
sa.diff(A)
sa.argsort(A)
sa.nonzero(A)
sa.sort(A)
sa.unique_all(A)
sa.unique_counts(A)
sa.unique_inverse(A)
sa.unique_values(A)
sa.fft.fft(A)
sa.fft.fftn(A)
sa.fft.fftshift(A)
sa.fft.hfft(A)
sa.fft.ifft(A)
sa.fft.ifftn(A)
sa.fft.ifftshift(A)
sa.fft.ihfft(A)
sa.fft.irfft(A)
sa.fft.irfftn(A)
sa.fft.rfft(A)
sa.fft.rfftn(A)
sa.linalg.cho_factor(A).c
sa.linalg.cholesky(A)
sa.linalg.cholesky(A, upper=True)
sa.linalg.det(A)
sa.linalg.diagonal(A)
sa.linalg.diagonal(A, offset=1)
sa.linalg.eig(A)
sa.linalg.eigh(A)
sa.linalg.eigvals(A)
sa.linalg.eigvalsh(A)
sa.linalg.expm(A)
sa.linalg.inv(A)
sa.linalg.ldl(A)
sa.linalg.logdet(A)
sa.linalg.lu(A)
sa.linalg.matrix_norm(A)
sa.linalg.matrix_norm(A, ord=1)
sa.linalg.matrix_norm(A, ord=sa.inf)
sa.linalg.matrix_norm(A, ord=2)
sa.linalg.matrix_norm(A, ord='nuc')
sa.linalg.matrix_power(A, 0)
sa.linalg.matrix_power(A, 2)
sa.linalg.matrix_power(A, -1)
sa.linalg.matrix_rank(A)
sa.linalg.pinv(A)
sa.linalg.qr(A)
sa.linalg.selected_inverse(A)
sa.linalg.slogdet(A)
sa.linalg.sqrtm(sa.assume(A, 'positive_definite'))
sa.linalg.svd(A)
sa.linalg.svdvals(A)
sa.linalg.trace(A)
A.T
A.mT
A[...]
A[1, 2]
A[1, :]
A[:, 2]
A[1:4, 1:4]
A[:1000, :1000]
A[::2, ::2]
A[:1000, :]
A[1:, :]
A[:, 1:]
A[:3, 1000:]
A[::2, :]
A[::-1, :]
A[None, ...]
A[..., None]
A[sa.asarray([1, 0]), :]
A[sa.asarray([1, 0]), sa.asarray([2, 0])]
A[A > 0]
sa.take(A, sa.asarray([1, 0]), axis=-1)
sa.take_along_axis(A, sa.zeros(A.shape, dtype=sa.int64), axis=-1)
A[1, 1] = 7
A[1, 2] = 7
A[0, -1] = 7
A[1, :] = 7
A[:, 1] = 7
A[1:3, 1:3] = 7
A[...] = 7
i = sa.arange(1000); A[i, i] = 7
A[A > 0] = 7
A += 1
A *= 2
"""

OF_TWO = """
sa.linalg.solve(A, B)
sa.linalg.cho_solve(sa.linalg.cho_factor(A), B)
sa.linalg.lu_solve(sa.linalg.lu_factor(A), B)
sa.linalg.solve_triangular(A, B)
sa.linalg.expm_multiply(A, B)
sa.linalg.lstsq(A, B).x
"""
"""Functions of a matrix and columns."""

OF_EQUAL_SHAPES = """
sa.vecdot(A, B)
sa.tensordot(A, B, axes=1)
sa.tensordot(A, B, axes=2)
sa.concat((A, B), axis=0)
sa.concat((A, B), axis=-1)
sa.stack((A, B), axis=0)
A[...] = B
A[1:3, :] = B[1:3, :]
"""

OF_LINES = """
sa.linalg.outer(A[0, :], B)
sa.meshgrid(A[0, :], B)
sa.linalg.cross(A[:, :3], A[:, -3:])
"""
"""Functions of vectors: of a row of `A`."""


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


def function_of(code: str) -> str:
    """The name of the function that a line of code is about.

    Examples
    --------
    >>> from structure_tables.uses import function_of
    >>> function_of("sa.linalg.inv(A)"), function_of("A[1, 2] = 7")
    ('linalg.inv', 'writing')
    """
    if code in OPERATORS:
        return OPERATORS[code]
    if named := re.match(r"sa\.([\w.]+)\(", code):
        return named[1]
    if attribute := re.fullmatch(r"A\.(\w+)", code):
        return attribute[1]
    return "writing" if re.search(r" [+*]?= ", code) else "indexing"


def uses() -> list[Use]:
    """All uses, in the order of the file."""
    of_one = [f"sa.{name}(A)" for name in UNARY]
    of_one += [f"sa.{name}(A{axis})" for name in REDUCTIONS for axis in ("", ", axis=-1", ", axis=-2, keepdims=True")]
    elementwise = [f"sa.{name}(A, B)" for name in BINARY if name not in OPERATORS.values()]
    texts: list[tuple[Iterable[str], tuple[str, ...]]] = [
        ((*of_one, *_lines(OF_ONE)), ()),
        (("A + B", "A * B"), ("number", "vector", *STRUCTURES)),
        (("A @ B",), ("vector", "three columns", *STRUCTURES)),
        (("B @ A",), ("vector",)),
        (elementwise, ("number", "vector", "Dense", SAME)),
        (_lines(OF_TWO), ("vector", "three columns", SAME)),
        (_lines(OF_EQUAL_SHAPES), ("Dense", SAME)),
        (_lines(OF_LINES), ("vector",)),
    ]
    return [Use(function_of(code), code, second) for codes, second in texts for code in codes]


@functools.cache
def kinds_of(function: str) -> tuple[str, ...]:
    """The kinds of numbers that a function takes, of those in `matrices.DTYPES`.

    Examples
    --------
    >>> from structure_tables.uses import kinds_of
    >>> kinds_of("logical_not"), kinds_of("exp")
    (('bool',), ('float', 'complex'))
    """
    dtypes = set(_dtypes_of(function))
    return tuple(kind for kind, dtype in DTYPES.items() if dtype in dtypes)


def _dtypes_of(function: str) -> Iterable[str]:
    if function in UNARY or function in BINARY:
        return DTYPES_OF_KIND[{**UNARY, **BINARY}[function][0]]
    name = {"indexing": "__getitem__", "writing": "__setitem__"}.get(function, function)
    return [dtype for case in CASES if case.name == name and not case.raises for dtype in case.dtypes]


def covered() -> set[str]:
    """The functions of the page, by the names of the cases in `structarrays.testing`."""
    names = {use.function for use in uses()}
    return names | {"__getitem__", "__setitem__", "linalg.lu_factor"} | {f"linalg.{name}" for name in names}
