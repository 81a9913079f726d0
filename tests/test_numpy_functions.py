"""Every NumPy function that dispatches on its arguments, compared with its counterpart. The tests list both from the two namespaces."""

import inspect
import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import numpy.fft
import numpy.lib.recfunctions
import pytest
from numpy.testing import overrides

import structarrays as sa
from structarrays.interop import numpy as numpy_protocol
from structarrays.interop import numpy_functions, numpy_ufuncs, numpy_writes

MAKERS = {
    "Dense": lambda: sa.asarray(np.array([[4.0, 1.0, -2.5], [1.5, 5.0, 0.5], [-0.5, 0.25, 3.0]])),
    "Diagonal": lambda: sa.Diagonal([4.0, 2.0, 3.0]),
    "Banded": lambda: sa.tridiagonal([1.0, 2.0], [3.0, 4.0, 5.0], [0.5, 0.25]),
    "background": lambda: sa.exp(sa.Diagonal([1.0, 2.0, 3.0])),
    "Sparse": lambda: sa.Sparse([4.0, 5.0, 3.0, 1.5], ([0, 1, 2, 2], [0, 1, 2, 0]), (3, 3)),
    "LowRank": lambda: sa.LowRank(np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.0]]), np.eye(3, 2)) + sa.eye(3),
}
MASK = np.array([[True, False, True], [True, True, False], [False, True, True]])
V = np.array([1.0, -2.0, 0.5])
F = (np.fft, np.linalg)


def holes(a):
    """The array with NaN in place of large elements."""
    return np.where(a > 2, np.nan, a)


# At least one call for each branch of the adapter of a function, with an array of shape (3, 3).
EXAMPLES = {
    "all": [np.all, lambda a: np.all(a, axis=0, keepdims=True), lambda a: np.all(a, where=MASK)],
    "amax": [lambda a: np.amax(a, axis=0)],
    "amin": [lambda a: np.amin(a)],
    "any": [lambda a: np.any(a > 2, axis=1), lambda a: np.any(a, axis=1, where=~MASK)],
    "append": [lambda a: np.append(a, [[1.0, 2.0, 3.0]], axis=0), lambda a: np.append(a, V)],
    "arange": [lambda a: np.arange(4, like=a), lambda a: np.arange(1, 7, 2, dtype=np.float32, like=a)],
    "argmax": [np.argmax, lambda a: np.argmax(a, axis=0, keepdims=True)],
    "argmin": [lambda a: np.argmin(a, 1)],
    "argsort": [lambda a: np.argsort(a, axis=0, kind="stable"), lambda a: np.argsort(a, None, stable=True)],
    "argwhere": [np.argwhere],
    "around": [lambda a: np.around(a / 3, 1)],
    "array": [lambda a: np.array([1, 2], like=a), lambda a: np.array(a, dtype=np.float32, ndmin=3, like=a)],
    "array_split": [lambda a: np.array_split(a, 2), lambda a: np.array_split(a, [1], axis=1)],
    "asanyarray": [lambda a: np.asanyarray([1.0, 2.0], like=a)],
    "asarray": [lambda a: np.asarray([1.0, 2.0], dtype=np.float32, like=a), lambda a: np.asarray(V, order="C", like=a)],
    "ascontiguousarray": [lambda a: np.ascontiguousarray([1.0], like=a)],
    "asfortranarray": [lambda a: np.asfortranarray([[1.0, 2.0]], like=a)],
    "astype": [lambda a: np.astype(a, np.float32), lambda a: np.astype(a, np.float64, copy=False)],
    "atleast_1d": [np.atleast_1d, lambda a: np.atleast_1d(a[0, 0], a)],
    "atleast_2d": [lambda a: np.atleast_2d(a[0, 0]), lambda a: np.atleast_2d(a[0], a)],
    "atleast_3d": [np.atleast_3d],
    "block": [lambda a: np.block([[a, np.eye(3)], [np.zeros((3, 3)), a]])],
    "broadcast_arrays": [lambda a: np.broadcast_arrays(a, V)],
    "broadcast_to": [lambda a: np.broadcast_to(a, (2, 3, 3), subok=True)],
    "clip": [
        lambda a: np.clip(a, 1.0, 2.0),
        lambda a: np.clip(a, None, V),
        lambda a: np.clip(a, min=1.0),
        lambda a: np.clip(np.astype(a, np.int64), 0.5, 2.5),
    ],
    "column_stack": [lambda a: np.column_stack([a[0], V]), lambda a: np.column_stack((a, a))],
    "concatenate": [
        lambda a: np.concatenate([a, a], axis=1),
        lambda a: np.concatenate((a, a), None),
        lambda a: np.concatenate([a, [[1, 2, 3]]], dtype=np.float32),
    ],
    "copy": [np.copy, lambda a: np.copy(a, order="C", subok=True)],
    "count_nonzero": [np.count_nonzero, lambda a: np.count_nonzero(a, axis=0, keepdims=True)],
    "cross": [
        lambda a: np.cross(a, V),
        lambda a: np.cross(a, a + 1.0, axis=0),
        lambda a: np.cross(a, V, axisa=0, axisc=0),
    ],
    "cumprod": [np.cumprod, lambda a: np.cumprod(a, axis=0)],
    "cumsum": [np.cumsum, lambda a: np.cumsum(a, 1, dtype=np.float32)],
    "cumulative_prod": [lambda a: np.cumulative_prod(a, axis=0)],
    "cumulative_sum": [lambda a: np.cumulative_sum(a, axis=1, include_initial=True)],
    "diag": [np.diag, lambda a: np.diag(a, 1), lambda a: np.diag(a[0]), lambda a: np.diag(a[0], -2)],
    "diagflat": [lambda a: np.diagflat(a[0], 1), np.diagflat],
    "diagonal": [np.diagonal, lambda a: np.diagonal(a, -1), lambda a: np.diagonal(a, axis1=1, axis2=0)],
    "diff": [
        lambda a: np.diff(a, axis=0),
        lambda a: np.diff(a, 2),
        lambda a: np.diff(a, prepend=0.0, append=np.ones((3, 1))),
    ],
    "dot": [
        lambda a: np.dot(a, a),
        lambda a: np.dot(V, a),
        lambda a: np.dot(a, 2.0),
        lambda a: np.dot(a, np.ones((2, 3, 2))),
    ],
    "dsplit": [lambda a: np.dsplit(np.stack([a, a]), 3)],
    "dstack": [lambda a: np.dstack([a, a])],
    "empty": [lambda a: np.empty((0, 2), like=a)],
    "empty_like": [lambda a: np.empty_like(a) * 0, lambda a: np.empty_like(a, shape=(0, 2), dtype=np.int8)],
    "expand_dims": [lambda a: np.expand_dims(a, 0), lambda a: np.expand_dims(a, (0, 3))],
    "eye": [lambda a: np.eye(3, like=a), lambda a: np.eye(2, 3, k=1, dtype=np.int64, like=a)],
    "fft.fft": [np.fft.fft, lambda a: np.fft.fft(a, 4, axis=0, norm="ortho")],
    "fft.fft2": [np.fft.fft2],
    "fft.fftn": [np.fft.fftn, lambda a: np.fft.fftn(a, axes=(0, 1))],
    "fft.fftshift": [np.fft.fftshift],
    "fft.hfft": [lambda a: np.fft.hfft(a, axis=0)],
    "fft.ifft": [np.fft.ifft],
    "fft.ifft2": [lambda a: np.fft.ifft2(a, norm="forward")],
    "fft.ifftn": [np.fft.ifftn],
    "fft.ifftshift": [lambda a: np.fft.ifftshift(a, axes=0)],
    "fft.ihfft": [np.fft.ihfft],
    "fft.irfft": [lambda a: np.fft.irfft(a, 4)],
    "fft.irfft2": [np.fft.irfft2],
    "fft.irfftn": [np.fft.irfftn],
    "fft.rfft": [np.fft.rfft],
    "fft.rfft2": [lambda a: np.fft.rfft2(a, s=(2, 4))],
    "fft.rfftn": [np.fft.rfftn],
    "fix": [lambda a: np.fix(a / 3)],
    "flatnonzero": [np.flatnonzero],
    "flip": [np.flip, lambda a: np.flip(a, 1)],
    "fliplr": [np.fliplr],
    "flipud": [np.flipud],
    "full": [lambda a: np.full((2, 2), 3.0, like=a), lambda a: np.full((2, 3), [1, 2, 3], like=a)],
    "full_like": [
        lambda a: np.full_like(a, 3.0),
        lambda a: np.full_like(a, V),
        lambda a: np.full_like(a, 2.5, dtype=np.int64, shape=(2,)),
    ],
    "hsplit": [lambda a: np.hsplit(a, 3), lambda a: np.hsplit(a[0], [1])],
    "hstack": [lambda a: np.hstack([a, a]), lambda a: np.hstack([a[0], V], dtype=np.float32)],
    "identity": [lambda a: np.identity(2, like=a)],
    "imag": [np.imag, lambda a: np.imag(a * (1 + 2j))],
    "inner": [lambda a: np.inner(a, a), lambda a: np.inner(a, V)],
    "isin": [lambda a: np.isin(a, [4.0, 0.0]), lambda a: np.isin(a, V, assume_unique=True, invert=True)],
    "kron": [lambda a: np.kron(a, np.eye(2))],
    "linalg.cholesky": [
        lambda a: np.linalg.cholesky(a @ a.T + np.eye(3)),
        lambda a: np.linalg.cholesky(a @ a.T + np.eye(3), upper=True),
    ],
    "linalg.cond": [np.linalg.cond, lambda a: np.linalg.cond(a, 1), lambda a: np.linalg.cond(a, -2)],
    "linalg.cross": [lambda a: np.linalg.cross(a, a[0])],
    "linalg.det": [np.linalg.det],
    "linalg.diagonal": [lambda a: np.linalg.diagonal(a, offset=1)],
    "linalg.eig": [lambda a: np.sort(np.real(np.linalg.eig(a @ a.T)[0]))],
    "linalg.eigh": [lambda a: np.linalg.eigh(a + a.T)[0], lambda a: np.linalg.eigh(a + a.T, UPLO="U")[0]],
    "linalg.eigvals": [lambda a: np.sort(np.real(np.linalg.eigvals(a @ a.T)))],
    "linalg.eigvalsh": [lambda a: np.linalg.eigvalsh(a + a.T), lambda a: np.linalg.eigvalsh(a + a.T, "U")],
    "linalg.inv": [np.linalg.inv],
    "linalg.lstsq": [
        lambda a: np.linalg.lstsq(a, V)[::3],
        lambda a: np.linalg.lstsq(a[:, :2], V, rcond=1e-9)[:2],
        lambda a: np.linalg.lstsq(a[:, :2], np.eye(3))[:2],
        lambda a: np.linalg.lstsq(np.stack([a[0], a[0]], -1), np.eye(3), -1)[:2],
        lambda a: np.linalg.lstsq(np.stack([a[0], a[0]], -1), V)[2] * np.int64(1),
    ],
    "linalg.matmul": [lambda a: np.linalg.matmul(a, V)],
    "linalg.matrix_norm": [np.linalg.matrix_norm, lambda a: np.linalg.matrix_norm(a, ord=1, keepdims=True)],
    "linalg.matrix_power": [
        lambda a: np.linalg.matrix_power(a, 3),
        lambda a: np.linalg.matrix_power(a, -1),
        lambda a: np.linalg.matrix_power(np.astype(a, int), 5),
        lambda a: np.linalg.matrix_power(np.astype(a, int), 0),
    ],
    "linalg.matrix_rank": [
        np.linalg.matrix_rank,
        lambda a: np.linalg.matrix_rank(a, 2.5),
        lambda a: np.linalg.matrix_rank(a, hermitian=False),
    ],
    "linalg.matrix_transpose": [np.linalg.matrix_transpose],
    "linalg.multi_dot": [
        lambda a: np.linalg.multi_dot([V, a, a, np.ones((3, 2))]),
        lambda a: np.linalg.multi_dot([a, a]),
    ],
    "linalg.norm": [
        np.linalg.norm,
        lambda a: np.linalg.norm(a, axis=1),
        lambda a: np.linalg.norm(a, 1),
        lambda a: np.linalg.norm(a, "nuc"),
        lambda a: np.linalg.norm(a, 1, axis=(1, 0), keepdims=True),
        lambda a: np.linalg.norm(np.stack([a, 2 * a], -1), np.inf, axis=(0, 1), keepdims=True),
    ],
    "linalg.outer": [lambda a: np.linalg.outer(a[0], V)],
    "linalg.pinv": [
        lambda a: np.linalg.pinv(a[:, :2]),
        lambda a: np.linalg.pinv(a, 1e-8),
        lambda a: np.linalg.pinv(a, rtol=1e-8),
    ],
    "linalg.qr": [
        lambda a: np.abs(np.linalg.qr(a, "r")),
        lambda a: np.abs(np.linalg.qr(a, "complete")[1]),
        lambda a: np.abs(np.linalg.qr(a).R),
    ],
    "linalg.slogdet": [np.linalg.slogdet],
    "linalg.solve": [lambda a: np.linalg.solve(a, V), lambda a: np.linalg.solve(a, np.eye(3))],
    "linalg.svd": [
        lambda a: np.linalg.svd(a, compute_uv=False),
        lambda a: np.linalg.svd(a)[1],
        lambda a: np.linalg.svd(a, full_matrices=False).S,
    ],
    "linalg.svdvals": [np.linalg.svdvals],
    "linalg.tensordot": [lambda a: np.linalg.tensordot(a, a, axes=1)],
    "linalg.trace": [lambda a: np.linalg.trace(a, offset=1)],
    "linalg.vecdot": [lambda a: np.linalg.vecdot(a, V), lambda a: np.linalg.vecdot(a, a, axis=0)],
    "linalg.vector_norm": [lambda a: np.linalg.vector_norm(a, axis=0, ord=1)],
    "linspace": [
        lambda a: np.linspace(a[0, 0], 7.0, 4),
        lambda a: np.linspace(a, 1.0, 3, endpoint=False, axis=-1),
        lambda a: np.linspace(0.0, a[0], 5, dtype=np.float32),
    ],
    "matrix_transpose": [np.matrix_transpose],
    "max": [
        np.max,
        lambda a: np.max(a, 0, keepdims=True),
        lambda a: np.max(a, initial=4.5),
        lambda a: np.max(a, axis=1, initial=0.5, where=MASK),
    ],
    "mean": [
        np.mean,
        lambda a: np.mean(a, axis=1, keepdims=True),
        lambda a: np.mean(a, 0, np.float32),
        lambda a: np.mean(a, where=MASK),
        lambda a: np.mean(a, axis=0, where=MASK),
        lambda a: np.mean(a > 2),
    ],
    "meshgrid": [lambda a: np.meshgrid(a[0], V), lambda a: np.meshgrid(a[0], [1.0, 2.0], indexing="ij")],
    "min": [lambda a: np.min(a, axis=1), lambda a: np.min(a, initial=-5.0, where=MASK)],
    "moveaxis": [lambda a: np.moveaxis(a, 0, 1), lambda a: np.moveaxis(a, [0, 1], [1, 0])],
    "nan_to_num": [
        lambda a: np.nan_to_num(holes(a)),
        lambda a: np.nan_to_num(np.where(a > 2, np.inf, -holes(a)), nan=7.0, neginf=-1.0),
        lambda a: np.nan_to_num(-np.where(a > 2, np.inf, a), posinf=2.0),
    ],
    "nancumprod": [lambda a: np.nancumprod(holes(a), axis=0), lambda a: np.nancumprod(holes(a))],
    "nancumsum": [lambda a: np.nancumsum(holes(a), axis=1, dtype=np.float32), lambda a: np.nancumsum(a > 2)],
    "nanmax": [lambda a: np.nanmax(holes(a)), lambda a: np.nanmax(holes(a), axis=0), lambda a: np.nanmax(a > 2)],
    "nanmean": [
        lambda a: np.nanmean(holes(a)),
        lambda a: np.nanmean(holes(a), axis=0, keepdims=True),
        lambda a: np.nanmean(a > 2, axis=1),
        lambda a: np.nanmean(holes(a) * 1j, axis=(0, 1)),
    ],
    "nanmin": [lambda a: np.nanmin(holes(a), axis=1, keepdims=True), lambda a: np.nanmin(holes(a))],
    "nanprod": [lambda a: np.nanprod(holes(a)), lambda a: np.nanprod(holes(a), axis=0, initial=2.0)],
    "nanstd": [lambda a: np.nanstd(holes(a), axis=0, ddof=1), lambda a: np.nanstd(a > 2)],
    "nansum": [
        lambda a: np.nansum(holes(a), axis=0),
        lambda a: np.nansum(holes(a), where=MASK, dtype=np.float32),
        lambda a: np.nansum(holes(a) * 1j),
    ],
    "nanvar": [
        lambda a: np.nanvar(holes(a)),
        lambda a: np.nanvar(holes(a), axis=1, keepdims=True),
        lambda a: np.nanvar(holes(a), axis=0, ddof=1),
    ],
    "nonzero": [np.nonzero],
    "ones": [lambda a: np.ones(3, like=a), lambda a: np.ones((2, 2), np.int8, like=a)],
    "ones_like": [np.ones_like, lambda a: np.ones_like(a, dtype=np.int64, order="C", shape=(2,))],
    "outer": [lambda a: np.outer(a, V), lambda a: np.outer([1.0, 2.0], a[0])],
    "prod": [np.prod, lambda a: np.prod(a, axis=0, where=MASK, initial=2.0)],
    "ptp": [np.ptp, lambda a: np.ptp(a, axis=0, keepdims=True)],
    "ravel": [np.ravel, lambda a: np.ravel(a, order="C")],
    "real": [np.real, lambda a: np.real(a * 1j)],
    "repeat": [lambda a: np.repeat(a, 2, axis=0), lambda a: np.repeat(a, [1, 0, 2], axis=1)],
    "reshape": [lambda a: np.reshape(a, (9,)), lambda a: np.reshape(a, -1), lambda a: np.reshape(a, (1, 9), copy=True)],
    "roll": [lambda a: np.roll(a, 1), lambda a: np.roll(a, (1, 2), axis=(0, 1))],
    "rollaxis": [lambda a: np.rollaxis(a, 1), lambda a: np.rollaxis(a, 0, 2)],
    "rot90": [np.rot90, lambda a: np.rot90(a, 2), lambda a: np.rot90(a, -1), lambda a: np.rot90(a, 4, axes=(1, 0))],
    "round": [np.round, lambda a: np.round(a / 3, 2), lambda a: np.round(a * 100, -1)],
    "searchsorted": [
        lambda a: np.searchsorted(np.sort(a[0]), 1.0),
        lambda a: np.searchsorted([1.0, 2.0], a[0], side="right"),
    ],
    "sort": [np.sort, lambda a: np.sort(a, axis=None), lambda a: np.sort(a, 0, kind="mergesort")],
    "split": [lambda a: np.split(a, 3), lambda a: np.split(a, [1, 2], axis=1)],
    "squeeze": [lambda a: np.squeeze(a[:1, :]), lambda a: np.squeeze(a[:1, :], axis=0)],
    "stack": [lambda a: np.stack((a, a)), lambda a: np.stack([a, a], -1, dtype=np.float32)],
    "std": [np.std, lambda a: np.std(a, ddof=1), lambda a: np.std(a, axis=0, correction=1, keepdims=True)],
    "sum": [
        np.sum,
        lambda a: np.sum(a, axis=0, keepdims=True),
        lambda a: np.sum(a, 1, np.float32),
        lambda a: np.sum(a, initial=10.0),
        lambda a: np.sum(a, where=[True, False, True]),
        lambda a: np.sum(a > 2),
    ],
    "swapaxes": [lambda a: np.swapaxes(a, 0, -1)],
    "take": [
        lambda a: np.take(a, [0, 2], axis=1),
        lambda a: np.take(a, [[0, 8], [3, -1]]),
        lambda a: np.take(a, 1, axis=0),
        lambda a: np.take(a, [-1, 5], axis=0, mode="clip"),
        lambda a: np.take(a, [-1, 5], axis=0, mode="wrap"),
    ],
    "take_along_axis": [lambda a: np.take_along_axis(a, np.array([[0, 1, 1]]), axis=0)],
    "tensordot": [lambda a: np.tensordot(a, a, axes=1), lambda a: np.tensordot(a, a, axes=([1], [0]))],
    "tile": [lambda a: np.tile(a, 2), lambda a: np.tile(a, (2, 1))],
    "trace": [np.trace, lambda a: np.trace(a, 1, dtype=np.float32)],
    "transpose": [np.transpose, lambda a: np.transpose(a, (1, 0))],
    "tri": [lambda a: np.tri(3, 2, -1, like=a)],
    "tril": [np.tril],
    "triu": [lambda a: np.triu(a, 1)],
    "unique": [
        np.unique,
        lambda a: np.unique(a, return_index=True, return_inverse=True, return_counts=True),
        lambda a: np.unique(np.where(a > 2, np.nan, a), return_counts=True, return_inverse=True),
        lambda a: np.unique(np.where(a > 2, np.nan, a)),
        lambda a: np.unique(np.where(a > 2, np.nan, a), equal_nan=False),
    ],
    "unique_all": [np.unique_all],
    "unique_counts": [np.unique_counts],
    "unique_inverse": [np.unique_inverse],
    "unique_values": [np.unique_values],
    "unstack": [np.unstack, lambda a: np.unstack(a, axis=1)],
    "var": [lambda a: np.var(a, axis=0), lambda a: np.var(a, correction=1)],
    "vdot": [lambda a: np.vdot(a, a * 1j), lambda a: np.vdot(a[0], V)],
    "vsplit": [lambda a: np.vsplit(a, 3)],
    "vstack": [lambda a: np.vstack([a, V])],
    "where": [lambda a: np.where(a > 2, a, 0.0), lambda a: np.where(a, 1.0, 2.0), np.where],
    "zeros": [lambda a: np.zeros((2, 3), like=a), lambda a: np.zeros(2, dtype=bool, order="C", like=a)],
    "zeros_like": [np.zeros_like, lambda a: np.zeros_like(a, np.int8), lambda a: np.zeros_like(a, shape=(2, 2))],
}
# Each call gets a dense array and one structured array. The classes alternate, because all of them would take minutes to compile.
CALLS = [
    pytest.param(call, structure, id=f"{name}-{i}-{structure}")
    for (name, i, call), structure in zip(
        ((name, i, call) for name, calls in EXAMPLES.items() for i, call in enumerate(calls)),
        itertools.cycle([name for name in MAKERS if name != "Dense"]),
        strict=False,
    )
]


def overridable():
    """The NumPy functions that dispatch on their arguments, by name."""
    functions = overrides.get_overridable_numpy_array_functions()
    return {f"{f.__module__}.{f.__name__}" for f in functions}


def same(result, expected, kind=sa.Array):
    """Check that values, shapes and dtypes are equal, and that all results are arrays of this library."""
    if isinstance(expected, (tuple, list)):
        assert isinstance(result, (tuple, list)) and len(result) == len(expected), result
        for r, e in zip(result, expected, strict=True):
            same(r, e, kind)
        return
    assert isinstance(result, kind), type(result)
    expected = np.asarray(expected)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    tolerance = 1e-5 if expected.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(np.asarray(result), expected, rtol=tolerance, atol=tolerance)


# ---- the lists ------------------------------------------------------------------------------------------------------


def test_no_function_with_a_counterpart_is_missed():
    """A NumPy function with the name of a function of this namespace calls that function. The tables list NumPy's old names."""
    known = numpy_functions.COUNTERPARTS.keys() | numpy_functions.ADAPTERS.keys() | numpy_functions.QUESTIONS.keys()
    for module, names in (("numpy", vars(sa)), ("numpy.linalg", vars(sa.linalg)), ("numpy.fft", vars(sa.fft))):
        public = {f"{module}.{name}" for name in names if callable(names[name]) and not name.startswith("_")}
        # The standard has no function that writes to disk; NumPy's function writes the dense form.
        assert (public & overridable()) - known <= {"numpy.save"}, module


UFUNCS_BY_NUMPY = {
    "bitwise_count", "cbrt", "float_power", "fmax", "fmin", "fmod", "frexp", "gcd", "heaviside", "isnat", "lcm", "ldexp", "logaddexp2",
    "modf", "spacing",
}  # fmt: skip
"""The ufuncs of numbers that are computed by NumPy, since the standard has no function for them."""

UFUNCS_OF_TEXTS = {
    "count", "endswith", "find", "index", "isalnum", "isalpha", "isdecimal", "isdigit", "islower", "isnumeric", "isspace", "istitle",
    "isupper", "rfind", "rindex", "startswith", "str_len",
}  # fmt: skip

FUNCTIONS_BY_NUMPY = {
    "lib.scimath": "arccos arcsin arctanh log log10 log2 logn power sqrt",
    "lib.stride_tricks": "sliding_window_view",
    "linalg": "tensorinv tensorsolve",
    "": """allclose angle apply_along_axis apply_over_axes argpartition array2string array_equal array_equiv array_repr array_str average
        bincount choose compress convolve corrcoef correlate cov delete digitize ediff1d einsum einsum_path extract frombuffer fromfile
        fromfunction fromiter fromstring genfromtxt geomspace gradient histogram histogram2d histogram_bin_edges histogramdd i0 insert
        interp intersect1d isclose iscomplex isneginf isposinf isreal ix_ lexsort loadtxt logspace median nanargmax nanargmin nanmedian
        nanpercentile nanquantile packbits pad partition percentile piecewise poly polyadd polyder polydiv polyfit polyint polymul
        polysub polyval quantile ravel_multi_index real_if_close require resize roots save savetxt savez savez_compressed select
        setdiff1d setxor1d sinc sort_complex trapezoid trapz trim_zeros union1d unpackbits unravel_index unwrap vander""",
}
"""The functions that are computed by NumPy, or that a function of NumPy hands to others which are ours."""


def test_no_function_of_numpy_is_unknown():
    """Every dispatching NumPy function is in the tables, or in the list of functions that NumPy computes. A new function needs an entry."""
    known = (
        numpy_functions.COUNTERPARTS.keys()
        | numpy_functions.ADAPTERS.keys()
        | numpy_functions.QUESTIONS.keys()
        | numpy_writes.WRITES.keys()
    )
    refused = numpy_protocol._REFUSED
    by_numpy = {
        ".".join(filter(None, ("numpy", module, name)))
        for module, names in FUNCTIONS_BY_NUMPY.items()
        for name in names.split()
    }
    assert not by_numpy & known
    others = (
        "numpy.char.",
        "numpy.strings.",
        "numpy.polynomial.",
    )  # functions of texts, and functions that call other NumPy functions
    unknown = {name for name in overridable() - known - by_numpy if not name.startswith(others)}
    unknown = {name for name in unknown if not {name, name.rpartition(".")[0]} & refused.keys()}
    assert unknown <= {"numpy.in1d", "numpy.row_stack"}  # names that NumPy 2.4 has removed


def test_no_ufunc_of_numpy_is_unknown():
    """Every ufunc has an entry, including ufuncs without a public name, such as the ufuncs of the parts of a complex array."""
    names = {ufunc.__name__ for ufunc in overrides.get_overridable_numpy_ufuncs()}
    tables = numpy_ufuncs.UFUNCS.keys() | numpy_ufuncs.COMPOSED.keys()
    assert not tables & UFUNCS_BY_NUMPY
    unknown = {name for name in names - tables - UFUNCS_BY_NUMPY - UFUNCS_OF_TEXTS if not name.startswith("_")}
    assert unknown <= {"clip"}  # an internal one, which np.clip calls
    public = {value.__name__ for value in vars(np).values() if isinstance(value, np.ufunc)}
    assert public <= names


@pytest.mark.parametrize("name", ["real", "imag"])
@pytest.mark.parametrize("structure", ["Dense", "Diagonal", "Banded"])
def test_ufuncs_of_parts(structure, name):
    """The parts of a complex array have a ufunc since NumPy 2.5."""
    ufunc = getattr(np._core.umath, name, None)
    x = MAKERS[structure]() * (1 - 2j)
    function = ufunc or getattr(np, name)
    same(function(x), function(np.asarray(x)))
    assert type(function(x)) is type(x)
    if ufunc is not None:
        with pytest.raises(TypeError, match="real|imag"):
            ufunc(MAKERS[structure]())


def test_no_ufunc_with_a_counterpart_is_missed():
    names = {ufunc.__name__ for ufunc in overrides.get_overridable_numpy_ufuncs()}
    ours = {name for name in vars(sa) if callable(vars(sa)[name])}
    tables = numpy_ufuncs.UFUNCS.keys() | numpy_ufuncs.COMPOSED.keys()
    assert (names & ours) - tables <= {"clip"}  # an internal one, which np.clip calls
    # A ufunc calls each elementwise function of the standard, possibly under another name.
    elementwise = {f.__name__ for f in map(vars(sa).get, ours) if hasattr(f, "zero") and hasattr(f, "kinds")}
    by_functions = {"clip", "imag", "real", "round", "where"}
    assert elementwise - set(numpy_ufuncs.UFUNCS.values()) <= by_functions
    assert all(hasattr(sa, name) for name in numpy_ufuncs.UFUNCS.values())


def test_every_function_that_is_ours_has_an_example():
    ours = numpy_functions.COUNTERPARTS.keys() | numpy_functions.ADAPTERS.keys()
    assert {f"numpy.{name}" for name in EXAMPLES} == ours
    assert ours <= overridable() | {"numpy.around"}  # a synonym of round in some versions of NumPy


def test_adapters_have_numpys_names_of_parameters():
    """Adapters have NumPy's names of all arguments. An unknown name would silently send the call to NumPy."""
    functions = {f"{f.__module__}.{f.__name__}": f for f in overrides.get_overridable_numpy_array_functions()}
    for name, adapter in (numpy_functions.ADAPTERS | numpy_writes.WRITES).items():
        try:
            numpys = inspect.signature(functions[name]).parameters
        except (KeyError, ValueError):
            continue
        if any(p.kind is p.VAR_KEYWORD for p in numpys.values()):
            continue
        unknown = (
            inspect.signature(adapter).parameters.keys() - numpys.keys() - {"sorted"}
        )  # of unique, since NumPy 2.3
        assert not unknown, (name, unknown)


# ---- functions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("call", "structure"), CALLS)
def test_results_are_numpys_in_arrays_of_ours(call, structure):
    for x in (MAKERS["Dense"](), MAKERS[structure]()):
        same(call(x), call(np.asarray(x)))


KEEP = {
    "astype": lambda a: np.astype(a, np.float32),
    "copy": np.copy,
    "transpose": np.transpose,
    "matrix_transpose": np.matrix_transpose,
    "swapaxes": lambda a: np.swapaxes(a, 0, 1),
    "stack": lambda a: np.stack([a, a]),
    "broadcast_to": lambda a: np.broadcast_to(a, (2, 3, 3)),
    "atleast_3d of a stack": lambda a: np.atleast_3d(np.stack([a, a])),
    "split of a stack": lambda a: np.split(np.stack([a, a]), 2)[1],
    "fix": np.fix,
    "round": lambda a: np.round(a / 3, 2),
    "real": np.real,
    "imag": lambda a: np.imag(a * 1j),
    "where": lambda a: np.where(a > 2, a, -a),
    "clip": lambda a: np.clip(a, 0.0, 2.0),
    "tril": np.tril,
    "dot": lambda a: np.dot(a, a),
    "multi_dot": lambda a: np.linalg.multi_dot([a, a, a]),
    "matrix_power": lambda a: np.linalg.matrix_power(a, 3),
    "sin where": lambda a: np.sin(a, where=MASK),
    "multiply in single precision": lambda a: np.multiply(a, a, dtype=np.float32),
    "degrees": np.degrees,
    "nan_to_num": lambda a: np.nan_to_num(holes(a)),
    "exp2": np.exp2,
}


@pytest.mark.parametrize("name", KEEP)
@pytest.mark.parametrize("structure", ["Diagonal", "Banded"])
def test_structure_stays(structure, name):
    x = MAKERS[structure]()
    with sa.densify("error"):
        result = KEEP[name](x)
    assert isinstance(result, sa.Banded), type(result)
    if "where" not in name or name == "where":
        same(result, KEEP[name](np.asarray(x)))


NAN = (np.nansum, np.nanmean, np.nanvar, np.nanstd, np.nanmax, np.nanmin, np.nanprod)


@pytest.mark.costly
@pytest.mark.parametrize("structure", ["Diagonal", "Banded", "Sparse"])
def test_what_leaves_nan_out_expands_nothing(structure):
    x = MAKERS[structure]()
    x[1, 1] = np.nan
    assert type(x) is not sa.Dense
    with sa.densify("error"):
        found = [function(x, axis=axis) for function in NAN for axis in (None, 0, 1)]
    same(found, [function(np.asarray(x), axis=axis) for function in NAN for axis in (None, 0, 1)])


def test_where_all_is_nan():
    x = sa.asarray([[np.nan, 1.0], [np.nan, 3.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of NumPy: no elements are left
        for function in (*NAN, lambda a, axis: np.nanvar(a, axis=axis, ddof=2)):
            same(function(x, axis=0), function(np.asarray(x), axis=0))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "float32"])
@pytest.mark.parametrize("make", [np.asarray, np.diag], ids=["vectors", "matrices"])
def test_inner_products_keep_the_dtype(make, dtype):
    a = make(np.array([100, 2, 27], dtype))
    x = sa.Diagonal(a.diagonal()) if a.ndim == 2 else sa.asarray(a)
    with np.errstate(over="ignore"):
        same(np.vdot(x, x), np.vdot(a, a))
        assert np.vdot(x, x).dtype == dtype


def test_results_with_structures_of_their_own():
    D, v = sa.Diagonal([1.0, 2.0]), sa.asarray([1.0, 2.0, 3.0])
    with sa.densify("error"):
        assert type(np.diag(v)) is sa.Diagonal
        assert type(np.diag(v, 1)) is sa.Banded
        assert type(np.eye(3, like=v)) is sa.Identity
        assert type(np.kron(D, D)) is not sa.Dense
        assert type(np.linalg.inv(D)) is sa.Diagonal
        assert float(np.vdot(D, D)) == 5.0
        assert float(np.sum(D, where=np.array([[True], [False]]))) == 1.0
        assert float(np.linalg.cond(D)) == 2.0
        assert float(np.mean(D, where=np.array([True, False]))) == 0.5


def test_one_triangle_of_dense_matrices():
    a = np.array([[4.0, 0.5, -1.0], [1.0, 5.0, 2.0], [0.25, -0.5, 3.0]])
    for call in (
        np.linalg.eigvalsh,
        lambda a: np.linalg.eigvalsh(a, UPLO="U"),
        lambda a: np.linalg.eigh(a, "U")[0],
        np.linalg.cholesky,
        lambda a: np.linalg.cholesky(a, upper=True),
    ):
        same(call(sa.asarray(a)), call(a), sa.Dense)


def test_questions_about_shapes_compute_nothing():
    huge = sa.Identity(10**4)
    with sa.densify("error"):
        for ours, numpys in zip(np.diag_indices_from(huge), np.diag_indices(10**4), strict=True):
            np.testing.assert_array_equal(ours, numpys)
        small = sa.Identity(4)
        for ours, numpys in zip(np.tril_indices_from(small, -1), np.tril_indices(4, -1), strict=True):
            np.testing.assert_array_equal(ours, numpys)
        assert len(np.triu_indices_from(small)[0]) == 10


def test_shared_memory_is_that_of_views():
    x = sa.ones((3, 4))
    row, column, transpose = x[0], x[:, 1], np.transpose(x)
    for answers in (np.shares_memory, np.may_share_memory):
        assert answers(x, x) and answers(x, row) and answers(transpose, row) and answers(row, column)
        assert not answers(x, sa.ones((3, 4))) and not answers(x, np.ones(3)) and not answers(x, np.copy(x))
    assert not np.shares_memory(row, x[1])
    assert np.may_share_memory(row, x[1])


def test_like_makes_arrays_of_ours():
    x = sa.ones(2)
    same(np.fromiter((i**2 for i in range(3)), float, like=x), np.array([0.0, 1, 4]))
    same(np.fromfunction(lambda i, j: i + j, (2, 2), like=x), np.array([[0.0, 1], [1, 2]]))
    same(np.frombuffer(b"\x01\x02", np.uint8, like=x), np.array([1, 2], np.uint8))
    same(np.require([1.0, 2.0], like=x), np.array([1.0, 2.0]))
    same(np.fromstring("1 2", sep=" ", like=x), np.array([1.0, 2.0]))


# ---- where a result is written ------------------------------------------------------------------------------------------


def test_out_of_functions_however_it_is_given():
    x = sa.asarray(np.arange(6.0).reshape(2, 3))
    for call in (
        lambda out: np.sum(x, 0, None, out),
        lambda out: np.sum(x, axis=0, out=out),
        lambda out: np.median(x, 0, out) * 1,
        lambda out: np.median(x, axis=0, out=out) * 1,
        lambda out: np.clip(x[0], 1.0, 2.0, out),
    ):
        for out in (sa.zeros(3), np.zeros(3)):
            result = call(out)
            assert np.any(np.asarray(out))
            np.testing.assert_array_equal(np.asarray(out), np.asarray(result))
    y = sa.zeros(3)
    assert np.sum(x, 0, None, y) is y
    assert np.sum(x, axis=0, out=...).shape == (3,)
    structured = sa.Diagonal([1.0, 2.0])
    assert np.matmul(structured, structured, out=structured) is structured
    assert type(structured) is sa.Diagonal
    np.testing.assert_array_equal(structured.diag, [1.0, 4.0])


def test_out_that_does_not_fit():
    x = sa.ones((2, 3))
    for out in (sa.zeros(2), np.zeros(2), sa.zeros((2, 3)), np.zeros((2, 3))):
        with pytest.raises(ValueError, match="shape"):
            np.sum(x, axis=0, out=out)
    for out in (sa.zeros(3, dtype=sa.int64), np.zeros(3, dtype=int)):
        with pytest.raises(TypeError, match="cast"):
            np.sum(x, axis=0, out=out)
        with pytest.raises(TypeError, match="cast"):
            np.add(x[0], 1.0, out=out)
    with pytest.raises(ValueError, match="shape"):
        np.add(x, 1.0, out=sa.zeros(3))


# ---- ufuncs -----------------------------------------------------------------------------------------------------------


class TestUfuncs:
    def test_where_with_out(self):
        for make in MAKERS.values():
            x = make()
            host = np.asarray(x)
            for out in (sa.asarray(np.full((3, 3), -1.0)), np.full((3, 3), -1.0)):
                assert np.multiply(x, 2.0, where=MASK, out=out) is out
                np.testing.assert_allclose(np.asarray(out), np.where(MASK, 2 * host, -1.0))
        y = sa.Diagonal([1.0, 2.0, 3.0])
        with sa.densify("error"):
            np.negative(y, where=MASK, out=y)
        assert type(y) is sa.Diagonal
        np.testing.assert_array_equal(y.diag, [-1.0, -2.0, -3.0])

    def test_where_without_out_is_zero_elsewhere(self):
        for make in MAKERS.values():
            x = make()
            same(np.add(x, 1.0, where=MASK), np.where(MASK, np.asarray(x) + 1, 0.0))
            same(np.sqrt(abs(x), where=[True, False, True]), np.sqrt(abs(np.asarray(x))) * [1.0, 0.0, 1.0])
        quotient, rest = np.divmod(sa.asarray([7, 8]), 3, where=[True, False])
        same((quotient, rest), (np.array([2, 0]), np.array([1, 0])))
        same(np.add(sa.ones(3), 1.0, where=[1, 0, 1]), np.array([2.0, 0.0, 2.0]))
        with pytest.raises(TypeError):
            np.add(sa.ones(3), 1.0, where=np.array([1, 0, 1]), out=sa.zeros(3))

    def test_dtype_and_casting(self):
        x = sa.asarray([1.0, 2.0])
        same(np.add(x, 1, dtype=np.float32), np.array([2, 3], np.float32))
        same(np.multiply(sa.asarray([1, 2]), 2, dtype=float, order="C", subok=False), np.array([2.0, 4.0]))
        same(np.add(x, 1, dtype=np.int64, casting="unsafe"), np.array([2, 3]))
        same(np.add(x, 1.5, dtype=np.int64, casting="unsafe"), np.array([2, 3]), np.ndarray)
        with pytest.raises(TypeError, match="same_kind"):
            np.add(x, 1, dtype=np.int64)
        out = sa.zeros(2, dtype=sa.int64)
        np.add(x, 0.5, out=out, casting="unsafe")
        same(out, np.array([1, 2]))

    def test_out_may_be_larger(self):
        for out in (sa.zeros((2, 3)), np.zeros((2, 3))):
            assert np.add(sa.ones(3), 1.0, out=out) is out
            np.testing.assert_array_equal(np.asarray(out), np.full((2, 3), 2.0))

    def test_two_results(self):
        x = sa.asarray([7.5, -8.25])
        quotient, rest = sa.zeros(2), np.zeros(2)
        assert np.divmod(x, 2.0, out=(quotient, rest))[0] is quotient
        same((quotient, sa.asarray(rest)), np.divmod(np.asarray(x), 2.0))
        parts = (sa.zeros(2), sa.zeros(2))
        np.modf(x, out=parts)
        same(parts, np.modf(np.asarray(x)))

    @pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.minimum, np.logical_and, np.logical_or])
    def test_reduce(self, ufunc):
        truth = ufunc.__name__.startswith("logical")
        for make in MAKERS.values():
            x = make() > 2 if truth else make()
            host = np.asarray(x)
            for options in (
                {},
                {"axis": None},
                {"axis": (0, 1), "keepdims": True},
                {"axis": 1, "where": MASK} | ({} if truth else {"initial": 0.5}),
                {"axis": 0} if truth else {"initial": 2.5},
            ):
                same(ufunc.reduce(x, **options), ufunc.reduce(host, **options))
        if not truth:
            for dtype in (np.int8, np.uint16, np.float32, bool):
                values = np.array([1, 0, 1, 1], dtype)
                if ufunc in (np.add, np.multiply):
                    same(ufunc.reduce(sa.asarray(values)), ufunc.reduce(values))

    def test_reductions_of_nothing(self):
        same(np.maximum.reduce(sa.zeros(0), initial=1.0), 1.0, (sa.Array, np.generic))
        with pytest.raises(ValueError):
            np.maximum.reduce(sa.zeros(0))
        same(np.add.reduce(sa.zeros((0, 2))), np.zeros(2))
        with pytest.raises(ValueError):
            np.max(sa.ones(3), where=[True, False, True])

    def test_accumulate(self):
        for ufunc in (np.add, np.multiply):
            for make in MAKERS.values():
                x = make()
                same(ufunc.accumulate(x), ufunc.accumulate(np.asarray(x)))
                same(ufunc.accumulate(x, 1, np.float32), ufunc.accumulate(np.asarray(x), 1, np.float32))
            for dtype in (np.int8, bool, np.uint8):
                values = np.array([1, 0, 1, 1], dtype)
                same(ufunc.accumulate(sa.asarray(values)), ufunc.accumulate(values))
        x = sa.asarray([1.0, 3.0, 2.0])
        same(np.maximum.accumulate(x), np.array([1.0, 3.0, 3.0]), np.ndarray)
        out = sa.zeros(3)
        assert np.add.accumulate(x, out=out) is out and np.maximum.accumulate(x, out=out) is out
        same(out, np.array([1.0, 3.0, 3.0]))

    def test_reduceat(self):
        x = sa.asarray(np.arange(8.0))
        same(np.add.reduceat(x, [0, 4, 1, 5]), np.add.reduceat(np.arange(8.0), [0, 4, 1, 5]), np.ndarray)
        out = sa.zeros(2)
        assert np.add.reduceat(x, [0, 4], out=out) is out
        same(out, np.array([6.0, 22.0]))

    def test_outer(self):
        for make in MAKERS.values():
            x = make()
            same(np.multiply.outer(x, V), np.multiply.outer(np.asarray(x), V))
            same(np.subtract.outer(V, x), np.subtract.outer(V, np.asarray(x)))
        same(np.add.outer(sa.asarray(V), 1.0), V + 1.0)
        out = sa.zeros((3, 3))
        assert np.add.outer(V, sa.asarray(V), out=out) is out
        same(out, np.add.outer(V, V))
        same(np.hypot.outer(sa.asarray(V), V), np.hypot.outer(V, V))
        same(np.cbrt(sa.asarray(V)), np.cbrt(V), np.ndarray)

    def test_at(self):
        for ufunc, values in ((np.add, (1.0,)), (np.multiply, ([2.0, 3.0, 4.0],)), (np.negative, ())):
            x, host = sa.asarray(V), V.copy()
            assert ufunc.at(x, [0, 0, 2], *values) is None
            ufunc.at(host, [0, 0, 2], *values)
            same(x, host)
        host = V.copy()
        np.add.at(host, sa.asarray([0, 0]), sa.ones(2))
        np.testing.assert_array_equal(host, V + [2.0, 0.0, 0.0])

    @pytest.mark.parametrize("ufunc", [np.degrees, np.radians, np.deg2rad, np.rad2deg, np.exp2])
    def test_made_of_ours(self, ufunc):
        for make in MAKERS.values():
            x = make()
            same(ufunc(x), ufunc(np.asarray(x)))
        same(ufunc(sa.asarray([1, 2])), ufunc(np.array([1, 2])))
        same(ufunc(sa.asarray(V, dtype=sa.float32)), ufunc(V.astype(np.float32)))
        if ufunc is not np.exp2:
            with pytest.raises(TypeError):
                ufunc(sa.asarray([1j]))

    @pytest.mark.skipif(not hasattr(np, "matvec"), reason="NumPy 2.2 and newer")
    def test_products_of_matrices_and_vectors(self):
        vectors = np.arange(6.0).reshape(2, 3) * (1 + 1j)
        for make in MAKERS.values():
            x = make()
            host = np.asarray(x)
            for v in (V, vectors):
                same(np.matvec(x, v), np.matvec(host, v))
                same(np.vecmat(v, x), np.vecmat(v, host))

    def test_vecdot_along_an_axis(self):
        x = MAKERS["Dense"]()
        same(np.vecdot(x, x * 1j, axis=0), np.vecdot(np.asarray(x), np.asarray(x) * 1j, axis=0))
        same(np.matmul(x, x, axes=[(0, 1), (0, 1), (1, 0)]), (np.asarray(x) @ np.asarray(x)).T, np.ndarray)


# ---- functions that write into their argument ----------------------------------------------------------------------------

WRITES = {
    "copyto": [
        lambda a: np.copyto(a, V),
        lambda a: np.copyto(a, 7.0, where=MASK),
        lambda a: np.copyto(a, [1, 2, 3]),
    ],
    "fill_diagonal": [lambda a: np.fill_diagonal(a, 9.0), lambda a: np.fill_diagonal(a, [1.0, 2.0])],
    "place": [lambda a: np.place(a, MASK, [1.0, 2.0]), lambda a: np.place(a, ~MASK & MASK, 3.0)],
    "put": [
        lambda a: np.put(a, [0, 4, -1], [1.0, 2.0]),
        lambda a: np.put(a, [0, 0, 20], [1.0, 2.0, 3.0], mode="clip"),
        lambda a: np.put(a, [[1, 10]], 5, mode="wrap"),
    ],
    "put_along_axis": [
        lambda a: np.put_along_axis(a, np.array([[0, 1, -1]]), 4.0, axis=0),
        lambda a: np.put_along_axis(a, np.array([[0, 2], [1, 1], [2, 0]]), np.ones((3, 1)), axis=1),
        lambda a: np.put_along_axis(a, np.array([3, 5]), [1.0, 2.0], axis=None),
    ],
    "putmask": [
        lambda a: np.putmask(a, MASK, 0.0),
        lambda a: np.putmask(a, MASK, [1.0, 2.0, 3.0, 4.0]),
        lambda a: np.putmask(a, a > 2, a**2),
    ],
}


class TestWrites:
    def test_all_are_known(self):
        assert {f"numpy.{name}" for name in WRITES} == numpy_writes.WRITES.keys()

    @pytest.mark.parametrize(
        "call", [pytest.param(call, id=f"{name}-{i}") for name, calls in WRITES.items() for i, call in enumerate(calls)]
    )
    def test_they_are_assignments(self, call):
        for make in MAKERS.values():
            x = make()
            host = np.array(x)
            assert call(x) is None
            call(host)
            same(x, host)

    def test_structure_stays_where_it_can(self):
        for make in (MAKERS["Diagonal"], MAKERS["Banded"]):
            x = make()
            with sa.densify("error"):
                np.fill_diagonal(x, 9.0)
                np.put(x, [0, 4], [1.0, 2.0])
            assert type(x) is type(make())

    def test_into_arrays_of_numpy(self):
        host = np.zeros(4)
        np.put(host, sa.asarray([1, 2]), sa.asarray([5.0, 6.0]))
        np.putmask(host, sa.asarray([True, False, False, False]), sa.ones(4))
        np.testing.assert_array_equal(host, [1.0, 5.0, 6.0, 0.0])

    def test_shapes_and_dtypes(self):
        x = sa.zeros((5, 2))
        host = np.zeros((5, 2))
        for a in (x, host):
            np.fill_diagonal(a, 3.0, wrap=True)
        same(x, host)
        cube, host = sa.zeros((2, 2, 2), dtype=sa.int64), np.zeros((2, 2, 2), int)
        for a in (cube, host):
            np.fill_diagonal(a, 1.75)
            np.put(a, 1, 2.5)
        same(cube, host)

    @pytest.mark.parametrize(
        ("call", "error"),
        [
            (lambda a: np.fill_diagonal(a[0], 1.0), ValueError),
            (lambda a: np.put(a, [9], 1.0), IndexError),
            (lambda a: np.put_along_axis(a, np.array([[3]]), 1.0, axis=0), IndexError),
            (lambda a: np.put_along_axis(a, np.array([0]), 1.0, axis=0), ValueError),
            (lambda a: np.place(a, MASK, []), ValueError),
            (lambda a: np.putmask(a, MASK[0], 1.0), ValueError),
            (lambda a: np.copyto(a, V * 1j), TypeError),
            (lambda a: np.put(a), TypeError),
        ],
    )
    def test_errors(self, call, error):
        for a in (MAKERS["Dense"](), np.eye(3)):
            with pytest.raises(error):
                call(a)

    def test_traced_arrays_take_what_the_values_do_not_decide(self):
        @jax.jit
        def f(x):
            np.fill_diagonal(x, 5.0)
            np.put(x, [1], x[0, 0])
            np.copyto(x, 0.0, where=MASK)
            return x

        x = MAKERS["Dense"]()
        host = np.array(x)
        np.fill_diagonal(host, 5.0)
        np.put(host, [1], host[0, 0])
        np.copyto(host, 0.0, where=MASK)
        same(f(x), host)
        with pytest.raises(TypeError, match="numpy.place"):
            jax.jit(lambda x: np.place(x, x > 1, [0.0]))(x)


# ---- what has no counterpart ------------------------------------------------------------------------------------------


class TestRefused:
    def test_traced_arrays_have_no_values(self):
        def message(f, *args):
            with pytest.raises(TypeError) as error:
                jax.jit(f)(*args)
            return str(error.value)

        x = MAKERS["Dense"]()
        text = message(lambda a: np.cbrt(a), x)
        for way_out in ("numpy.cbrt", "structarrays.structured(jax.numpy.cbrt)", "structarrays.host_function"):
            assert way_out in text
        assert "jax.numpy.median" in message(lambda a: np.median(a), x)
        assert "structured(" not in message(lambda a: np.lib.scimath.sqrt(a), x)
        assert "numpy.histogram" in message(lambda a: np.histogram(a, bins=3), MAKERS["Banded"]())
        assert "numpy.add.reduceat" in message(lambda a: np.add.reduceat(a, [0, 1]), x)
        assert "numpy.add.at" in message(lambda a: np.add.at(a, [0], 1.0), x)
        assert "numpy.var" in message(lambda a: np.var(a, where=MASK), x)
        with pytest.raises(TypeError, match="numpy.cbrt"):
            jax.grad(lambda x: np.cbrt(x).sum())(x)
        # The same holds if tracers of JAX are among the arguments.
        with pytest.raises(TypeError, match="numpy.gcd"):
            jax.jit(lambda v: np.gcd(sa.asarray([4, 6]), v))(jnp.asarray([2, 3]))

    def test_constants_have_values_inside_of_jit(self):
        D = sa.Diagonal([1.0, 8.0])
        result = jax.jit(lambda v: np.cbrt(D) @ v)(sa.ones(2))
        np.testing.assert_allclose(np.asarray(result), [1.0, 2.0])

    def test_counterparts_run_under_jit(self):
        def f(a):
            a = np.where(np.round(a, 1) > 1, a, np.zeros_like(a))
            return np.linalg.norm(np.hstack([a, np.diag(np.diag(a))]), axis=0) + np.sum(a, where=MASK)

        x = MAKERS["Banded"]()
        np.testing.assert_allclose(np.asarray(jax.jit(f)(x)), f(np.asarray(x)))

    def test_dtypes_without_numbers(self):
        x = sa.ones(2)
        for other in (np.array([1, None], object), np.zeros(2, "M8[s]"), np.zeros(2, [("a", float)])):
            for call in (lambda o: np.add(x, o), lambda o: np.multiply(o, x), lambda o: x + o, lambda o: o + x):
                with pytest.raises(TypeError, match=r"numpy\.asarray\(x\)"):
                    call(other)
        with pytest.raises(TypeError, match="numpy.asarray"):
            np.lib.recfunctions.unstructured_to_structured(sa.ones((2, 2)), np.dtype([("a", float), ("b", float)]))
        with pytest.raises(TypeError, match="dates"):
            np.is_busday(sa.ones(2))

    def test_masks_are_not_lost(self):
        x, masked = sa.ones(3), np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False])
        for call in (lambda: np.add(x, masked), lambda: np.concatenate([x, masked]), lambda: sa.add(x, masked)):
            with pytest.raises(TypeError):
                call()
        for total in (x + masked, masked + x, np.ma.add(x, masked)):
            assert type(total) is np.ma.MaskedArray
            np.testing.assert_array_equal(total.filled(0.0), [2.0, 0.0, 4.0])

    def test_views_of_copies(self):
        x = sa.arange(4)
        same(np.lib.stride_tricks.sliding_window_view(x, 2), np.array([[0, 1], [1, 2], [2, 3]]), np.ndarray)
        with pytest.raises(TypeError, match=r"x\[key\] = value"):
            np.lib.stride_tricks.sliding_window_view(x, 2, writeable=True)

    def test_arrays_of_others(self):
        class Theirs:
            def __array_function__(self, function, types, args, kwargs):
                return "theirs"

        assert np.concatenate([sa.ones(2), Theirs()]) == "theirs"

        class Refuses:
            __array_function__ = None

        with pytest.raises(TypeError):
            np.concatenate([sa.ones(2), Refuses()])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("decimals", [36, 37, 38, 39, 300, 307, 308, 309, 400, -37, -38, -39, -307, -308, -309, -400])
def test_rounding_to_extreme_powers_of_ten(dtype, decimals):
    """Powers of ten near the largest number, whose reciprocals are subnormal or zero."""
    x = np.asarray([1.26, 2.0, -3.5e-5, 1e30, np.inf, -np.inf, np.nan, 0.0], dtype)
    found = np.asarray(np.round(sa.asarray(x), decimals))
    expected = x if decimals > 0 else np.where(np.isfinite(x), 0 * x, x)
    if decimals > 0:  # scaled elements may overflow to infinity, as in NumPy
        expected = np.where(np.isinf(found), np.copysign(np.inf, x), expected)
    np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(dtype).eps)
    assert np.isfinite(found[:3]).all()
