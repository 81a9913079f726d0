"""The uses of creation, reductions, manipulation, searching, sorting and sets for the equivalence tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .case import Case

if TYPE_CHECKING:
    from collections.abc import Iterator

TWO = ("x1", "x2")
SAME = ("mn", "mn")


def _creation() -> Iterator[Case]:
    for name in ("zeros_like", "ones_like"):
        yield Case(name, f"xp.{name}(x)", kinds="all", smooth=False)
        yield Case(name, f"xp.{name}(x, dtype=xp.float32)", kinds="all", smooth=False)
    yield Case("empty_like", "xp.empty_like(x)", invariants="xp.zeros_like(r)", kinds="all", smooth=False)
    yield Case("full_like", "xp.full_like(x, 2)", smooth=False)
    yield Case("asarray", "xp.asarray(x)", kinds="all")
    yield Case("asarray", "xp.asarray(x, copy=True)", kinds="all")
    yield Case("asarray", "xp.asarray(x, dtype=xp.complex64)", kinds="all", smooth=False)
    yield Case("from_dlpack", "xp.from_dlpack(x)", kinds="numeric", eager=True)
    for name in ("tril", "triu"):
        yield Case(name, f"xp.{name}(x)", kinds="all")
        for k in (1, -1, 3, -9):
            yield Case(name, f"xp.{name}(x, k={k})")
    yield Case("meshgrid", "xp.meshgrid(x1, x2)", operands=TWO, cores=("m", "n"), batches="none")
    yield Case("meshgrid", "xp.meshgrid(x1, x2, indexing='ij')", operands=TWO, cores=("m", "n"), batches="none")


REDUCTIONS = {
    "all": "all",
    "any": "all",
    "count_nonzero": "all",
    "max": "real numeric",
    "min": "real numeric",
    "prod": "numeric",
    "sum": "numeric",
    "mean": "floating",
    "std": "real floating",
    "var": "real floating",
}


def _reductions() -> Iterator[Case]:
    for name, kinds in REDUCTIONS.items():
        for arguments in ("", ", axis=0", ", axis=-1", ", axis=-2, keepdims=True", ", axis=(-2, -1)", ", axis=(0, -1)"):
            if arguments == ", axis=(0, -1)" and name not in ("sum", "max", "mean", "var"):
                continue
            yield Case(name, f"xp.{name}(x{arguments})", kinds=kinds, smooth=name != "std")
        yield Case(name, f"xp.{name}(x, keepdims=True)", kinds=kinds, smooth=name != "std")
        yield Case(name, f"xp.{name}(x, axis=())", kinds=kinds, smooth=name != "std")
    for name in ("sum", "prod"):
        yield Case(name, f"xp.{name}(x, axis=-1, dtype=xp.float64)", kinds="real numeric")
        yield Case(name, f"xp.{name}(x, axis=0, dtype=x.dtype)")
    for name in ("var", "std"):
        yield Case(name, f"xp.{name}(x, axis=-1, correction=1)", kinds="real floating", smooth=name != "std")
    # The standard deviation of equal numbers is 0, where it has no derivative.
    yield Case(
        "std", "xp.std(x, correction=0.5)", kinds="real floating", given=lambda x: x.size > 0 and bool(np.ptp(x) > 0)
    )
    for name in ("argmax", "argmin"):
        for arguments in ("", ", axis=0", ", axis=-1", ", axis=-2, keepdims=True"):
            yield Case(name, f"xp.{name}(x{arguments})", kinds="real numeric")
    for order in ("", ", ord=1", ", ord=3", ", ord=0", ", ord=float('inf')", ", ord=-float('inf')"):
        for axis in (", axis=-1", ", axis=0", ", axis=(-2, -1), keepdims=True", ""):
            if axis == ", axis=-1" or order in ("", ", ord=1"):
                yield Case(
                    "linalg.vector_norm",
                    f"xp.linalg.vector_norm(x{axis}{order})",
                    kinds="floating",
                    smooth=order != ", ord=0",
                )


def _manipulation() -> Iterator[Case]:
    move: dict[str, Any] = {"kinds": "all", "elementwise": True}
    for name, calls in {
        "broadcast_to": ("x, x.shape", "x, (3, *x.shape)", "x[..., :1, :], x.shape"),
        "broadcast_arrays": ("x, x[0, ...]", "x, x[..., :1]"),
        "expand_dims": ("x, axis=0", "x, axis=-1", "x, axis=-2", "x, axis=-3", "x, axis=(0, 2)"),
        "flip": ("x", "x, axis=0", "x, axis=-1", "x, axis=(0, -1)"),
        "matrix_transpose": ("x",),
        "linalg.matrix_transpose": ("x",),
        "moveaxis": ("x, 0, 1", "x, -1, -2", "x, 0, -1", "x, (0, 1), (1, 0)"),
        "permute_dims": (
            "x, tuple(range(x.ndim))",
            "x, tuple(range(x.ndim))[::-1]",
            "x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)",
        ),
        "repeat": ("x, 2", "x, 2, axis=0", "x, 2, axis=-1"),
        "reshape": (
            "x, x.shape",
            "x, (1, *x.shape)",
            "x, (-1, *x.shape[-2:])",
            "x, (*x.shape[:-2], x.shape[-2] * x.shape[-1])",
            "x, (*x.shape[:-2], x.shape[-1], x.shape[-2])",
            "x, (x.size,)",
        ),
        "roll": ("x, 1", "x, 1, axis=0", "x, -2, axis=-1", "x, (1, 2), axis=(0, -1)"),
        "squeeze": ("x[None, ...], axis=0", "x[..., :1], axis=-1", "x[..., None, :, :], axis=-3"),
        "tile": ("x, (2,)", "x, (3, 2, 1)", "x, (2, 1, 1, 1)", "x, (1,)"),
        "unstack": ("x", "x, axis=-1", "x, axis=-2"),
    }.items():
        for call in calls:
            yield Case(name, f"xp.{name}({call})", **move)
    yield Case("T", "x.T", **move | {"batches": "none"})
    yield Case("mT", "x.mT", **move, oracle=lambda x: np.swapaxes(x, -1, -2))
    join: dict[str, Any] = {"operands": TWO, "cores": SAME, "kinds": "all", "batches": "equal", "elementwise": True}
    for axis in (0, -1, -2, None):
        yield Case("concat", f"xp.concat((x1, x2), axis={axis})", **join)
    yield Case("concat", "xp.concat([x1, x2, x1], axis=0)", **join)
    for axis in (0, -1, -2, -3, 1):
        yield Case("stack", f"xp.stack((x1, x2), axis={axis})", **join)
    yield Case("broadcast_arrays", "xp.broadcast_arrays(x1, x2)", **join | {"batches": "broadcast"})
    for name in ("cumulative_sum", "cumulative_prod"):
        for arguments in ("axis=0", "axis=-1", "axis=0, include_initial=True", "axis=-2, dtype=xp.float64"):
            yield Case(
                name, f"xp.{name}(x, {arguments})", kinds="numeric" if "dtype" not in arguments else "real numeric"
            )
    for arguments in ("", ", axis=0", ", axis=-2, n=2", ", n=0", ", n=9"):
        yield Case("diff", f"xp.diff(x{arguments})")
    yield Case("diff", "xp.diff(x1, axis=-1, prepend=x2)", **join | {"kinds": "numeric"})
    yield Case("diff", "xp.diff(x1, axis=0, append=x2)", **join | {"kinds": "numeric"})


def _descending_argsort(x: np.ndarray, axis: int) -> np.ndarray:
    """Return the indices that sort in descending order, which NumPy does not provide."""
    order = np.argsort(np.flip(x, axis), axis=axis, stable=True)
    return np.flip(x.shape[axis] - 1 - order, axis)


def _searching() -> Iterator[Case]:
    real: dict[str, Any] = {"kinds": "real numeric"}
    for axis in (0, -1, -2):
        yield Case("sort", f"xp.sort(x, axis={axis})", **real, elementwise=True)
        yield Case(
            "argsort", f"xp.argsort(x, axis={axis})", **real, oracle=lambda x, a=axis: np.argsort(x, a, stable=True)
        )
        yield Case(
            "sort",
            f"xp.sort(x, axis={axis}, descending=True)",
            **real,
            elementwise=True,
            oracle=lambda x, a=axis: np.flip(np.sort(x, a), a),
        )
        yield Case(
            "argsort",
            f"xp.argsort(x, axis={axis}, descending=True)",
            **real,
            oracle=lambda x, a=axis: _descending_argsort(x, a),
        )
    yield Case("nonzero", "xp.nonzero(x)", kinds="all", eager=True)
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        yield Case(name, f"xp.{name}(x)", **real, eager=True, smooth=False)
    # The order of its result is unspecified: NumPy's comes from a hash table.
    yield Case("unique_values", "xp.unique_values(x)", invariants="xp.sort(r)", **real, eager=True, smooth=False)
    yield Case("take", "xp.take(x, xp.asarray([1, 0]), axis=0)", kinds="all")
    yield Case("take", "xp.take(x, xp.asarray([1, 0, 1]), axis=-1)", kinds="all")
    yield Case("take", "xp.take(x, xp.asarray([-1]), axis=-2)", kinds="all")
    along = "xp.zeros(x.shape, dtype=xp.int64)"
    yield Case("take_along_axis", f"xp.take_along_axis(x, {along}, axis=-1)", kinds="all")
    yield Case("take_along_axis", f"xp.take_along_axis(x, {along}, axis=0)", kinds="all")
    yield Case(
        "searchsorted",
        "xp.searchsorted(x1, x2)",
        operands=TWO,
        cores=("m", "mn"),
        batches="none",
        given=_sorted,
        **real,
    )


def _sorted(x1: np.ndarray, x2: np.ndarray) -> bool:
    return bool((x1[1:] >= x1[:-1]).all())


def _bad() -> Iterator[Case]:
    """Yield cases that raise an error."""
    for code in (
        "xp.sum(x, axis=7)",
        "xp.max(x, axis=-9)",
        "xp.argmax(x, axis=9)",
        "xp.all(x, axis=9)",
        "xp.reshape(x, (7, 11))",
        "xp.expand_dims(x, axis=9)",
        "xp.squeeze(x[..., None], axis=-2)",
        "xp.squeeze(x, axis=9)",
        "xp.permute_dims(x, (0, 0))",
        "xp.moveaxis(x, 0, 9)",
        "xp.flip(x, axis=9)",
        "xp.roll(x, 1, axis=9)",
        "xp.broadcast_to(x, (7, 11))",
        "xp.take(x, xp.asarray([99]), axis=-1)",
        "xp.sort(x, axis=9)",
        "xp.diff(x, axis=9)",
        "xp.diff(x, n=-1)",
        "xp.cumulative_sum(x, axis=9)",
        "xp.concat((x, x[..., None]))",
        "xp.concat((x, x), axis=9)",
        "xp.stack((x, x[..., None]))",
        "xp.stack((x, x), axis=9)",
        "xp.unstack(x, axis=9)",
        "xp.repeat(x, 2, axis=9)",
        "x + x[..., None, None, :2, :2][..., :0, :]",
        "xp.tril(x[(0,) * (x.ndim - 1)])",
        "xp.matrix_transpose(x[(0,) * (x.ndim - 1)])",
    ):
        name = code.partition("(")[0].removeprefix("xp.") if code.startswith("xp.") else "+"
        # `numpy.tril` turns a vector into a matrix.
        oracle = _raise_value_error if "tril" in code else None
        kinds = "real numeric" if name in ("max", "argmax", "sort") else "numeric"
        yield Case(name, code, raises=True, kinds=kinds, batches="positive", oracle=oracle)


def _raise_value_error(*arrays: np.ndarray) -> NoReturn:
    raise ValueError("a matrix is needed")


CASES = (*_creation(), *_reductions(), *_manipulation(), *_searching(), *_bad())
"""All functions except elementwise functions, linear algebra and indexing."""
