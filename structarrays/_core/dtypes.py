"""Data types of the namespace, their kinds and their promotion (docs/design/semantics.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from .._numerics.flags import independent

if TYPE_CHECKING:
    from .typing import DTypeLike


class DType:
    """A data type of the namespace: equal to the `numpy.dtype` of the same name, with the same hash.

    It is not a `numpy.dtype`, because a `numpy.dtype` equals ``None`` (if it is float64), any string that names it, and
    any scalar type. Generic code that compares data types needs stricter comparisons.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.float32 == sa.ones(3, dtype=sa.float32).dtype, sa.float64 == None
    (True, False)
    """

    __slots__ = ("dtype",)

    def __init__(self, name: str) -> None:
        self.dtype = np.dtype(name)

    @property
    def name(self) -> str:
        """Name of the data type, such as ``"float32"``."""
        return self.dtype.name

    @property
    def itemsize(self) -> int:
        """Size of one element in bytes."""
        return self.dtype.itemsize

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.dtype == other.dtype
        if isinstance(other, np.dtype) or (isinstance(other, type) and issubclass(other, np.generic)):
            return self.dtype == other
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"structarrays.{self.dtype.name}"

    def __str__(self) -> str:
        return self.dtype.name

    def __reduce__(self) -> tuple[type[DType], tuple[str]]:
        return (DType, (self.dtype.name,))


bool_ = DType("bool")
int8, int16, int32, int64 = (DType(n) for n in ("int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = (DType(n) for n in ("uint8", "uint16", "uint32", "uint64"))
float32, float64 = DType("float32"), DType("float64")
complex64, complex128 = DType("complex64"), DType("complex128")

BY_NAME = {
    d.name: d
    for d in (
        bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64, complex64, complex128
    )
}  # fmt: skip

_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_REAL = ("float32", "float64")
_COMPLEX = ("complex64", "complex128")

KINDS = {
    "bool": ("bool",),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED,
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": _SIGNED + _UNSIGNED + _REAL + _COMPLEX,
}


def x64() -> bool:
    """Return whether JAX's 64-bit mode is on."""
    config: Any = jax.config  # it gets its options at run time
    return bool(config.jax_enable_x64)


def default_dtype(kind: str) -> np.dtype:
    """Return the default dtype of a kind: ``"i"`` integer, ``"u"`` unsigned, ``"f"`` real, ``"c"`` complex, ``"b"``
    bool.
    """
    if kind == "b":
        return np.dtype(bool)
    wide = x64()
    return np.dtype({"i": "int64", "u": "uint64", "f": "float64", "c": "complex128"}[kind] if wide else
                    {"i": "int32", "u": "uint32", "f": "float32", "c": "complex64"}[kind])  # fmt: skip


def as_dtype(dtype: DTypeLike, argument: str = "dtype") -> np.dtype:
    """Convert an argument to a `numpy.dtype`. ``None``, which NumPy converts to float64, is refused.

    Raises
    ------
    TypeError
        If JAX has no such dtype.
    ValueError
        If it is a 64-bit dtype while JAX's 64-bit mode is off.
    """
    if type(dtype) is DType:
        dtype = dtype.dtype
    elif dtype is int or dtype is float or dtype is complex:
        dtype = default_dtype({int: "i", float: "f", complex: "c"}[dtype])
    try:
        if dtype is None:
            raise TypeError("None")
        dtype = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(
            f"{argument} must be a dtype of the namespace such as structarrays.float32, got {dtype!r}"
        ) from error
    if dtype.kind not in "biufc" and not jnp.issubdtype(dtype, jnp.floating):
        raise TypeError(f"{argument} must be a boolean, integer, floating or complex dtype, got {dtype}")
    if dtype.name in ("int64", "uint64", "float64", "complex128") and not x64():
        raise ValueError(
            f"{argument}={dtype.name} needs JAX's 64-bit mode, which is off; "
            f'switch it on with jax.config.update("jax_enable_x64", True), or use {_narrow(dtype)}'
        )
    if dtype.name in ("longdouble", "clongdouble", "float128", "complex256"):
        raise TypeError(f"{argument}={dtype.name} is not a dtype of JAX; use float64 or complex128")
    return dtype


def _narrow(dtype: np.dtype) -> str:
    return {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}[dtype.name]


def canonical(dtype: DTypeLike) -> np.dtype:
    """Return the dtype of an array of `dtype` on the device: 32 bits instead of 64 if JAX's 64-bit mode is off."""
    return np.dtype(jax.dtypes.canonicalize_dtype(dtype))


class NeedsX64(ValueError):
    """Raised for valid data of a dtype that needs JAX's 64-bit mode, while that mode is off."""


def check_available(dtype: np.dtype, holder: str) -> None:
    """Raise `NeedsX64` for a 64-bit dtype while JAX's 64-bit mode is off.

    The message begins with `holder`, a subject with a verb.
    """
    if canonical(dtype) != dtype.newbyteorder("="):
        raise NeedsX64(
            f"{holder} {dtype}, but JAX's 64-bit mode is off; switch it on with "
            'jax.config.update("jax_enable_x64", True)'
        )


def kind_of(dtype: np.dtype) -> str:
    """Return a letter of ``"biufc"``, like `numpy.dtype.kind`, whose letter differs for bfloat16 and JAX's smaller
    formats.
    """
    return dtype.kind if dtype.kind in "biufc" else "f"


def is_kind(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> bool:
    """Return whether a dtype is of a kind (one of the standard's names, a dtype, or a tuple of these)."""
    if isinstance(kind, tuple):
        return any(is_kind(dtype, k) for k in kind)
    dtype = dtype.dtype if type(dtype) is DType else dtype
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(
                f"kind must be one of {', '.join(map(repr, KINDS))}, a dtype or a tuple of these, got {kind!r}"
            )
        if kind in ("real floating", "numeric") and jnp.issubdtype(dtype, jnp.floating):
            return True  # float16, bfloat16 and JAX's smaller formats are real floating, too
        return np.dtype(dtype).name in KINDS[kind]
    return np.dtype(dtype) == as_dtype(kind, "kind")


def is_half(dtype: np.dtype) -> bool:
    """Return whether a dtype is floating or complex with at most 16 bits, which do not suffice for LAPACK, FFTs and
    counts.
    """
    return dtype.itemsize < 4 and jnp.issubdtype(dtype, jnp.inexact)


def native(value: Any) -> Any:
    """Convert a NumPy array to the byte order of this machine, which JAX requires; return other values unchanged."""
    foreign = isinstance(value, np.ndarray) and not value.dtype.isnative
    return value.astype(value.dtype.newbyteorder("=")) if foreign else value


@independent
def promote(*dtypes: np.dtype) -> np.dtype:
    """Return the common dtype of (strong) dtypes, by JAX's lattice."""
    result = dtypes[0]
    for other in dtypes[1:]:
        if other != result:
            result = jnp.promote_types(result, other)
    return np.dtype(result)


_SCALAR_KIND = {bool: "b", int: "i", float: "f", complex: "c"}


def promote_scalar(dtype: np.dtype, scalar_type: type) -> np.dtype:
    """Return the dtype of an array of `dtype` combined with a Python scalar: the array's dtype, unless its kind is
    lower.
    """
    kind = _SCALAR_KIND[scalar_type]
    have = "f" if jnp.issubdtype(dtype, jnp.floating) else np.dtype(dtype).kind
    if kind == "b" or have == "c" or (kind != "c" and have == "f") or (kind == "i" and have in "iu"):
        return np.dtype(dtype)
    if kind == "c" and have == "f":
        return np.dtype("complex128" if np.dtype(dtype) == np.float64 else "complex64")
    return default_dtype(kind)
