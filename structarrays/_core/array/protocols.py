"""Methods by which Python and NumPy convert, print and iterate over arrays."""

from __future__ import annotations

import operator
import sys
from typing import TYPE_CHECKING, Any, cast

import jax
import numpy as np

from ..dispatch import late

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from ..typing import DTypeLike, Operand, Shape
    from .base import Array

API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
"""The versions of the standard that `__array_namespace__` accepts."""


class Protocols:
    """The protocols of Python and NumPy that `Array` supports, except its operators."""

    __slots__ = ()

    if TYPE_CHECKING:  # attributes of `Array`

        @property
        def shape(self) -> Shape: ...
        @property
        def dtype(self) -> np.dtype: ...
        def to_jax(self) -> jax.Array: ...
        def __copy__(self) -> Array: ...

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        if api_version is not None and api_version not in API_VERSIONS:
            raise ValueError(f"api_version must be one of {', '.join(API_VERSIONS)}, got {api_version!r}")
        return sys.modules["structarrays"]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return late.to_numpy(cast("Array", self), dtype, copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return late.apply_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return late.apply_function(function, types, args, kwargs)

    def _scalar(self, kind: str) -> Any:
        if self.shape != ():
            raise TypeError(f"only an array of zero dimensions can become a Python {kind}, got shape {self.shape}")
        leaf = self.to_jax()
        return leaf if isinstance(leaf, jax.core.Tracer) else np.asarray(leaf)[()]

    def __bool__(self) -> bool:
        if self.shape != ():
            raise ValueError(
                f"the truth value of an array of shape {self.shape} is ambiguous; use structarrays.any or structarrays.all"
            )
        return bool(self._scalar("bool"))

    def __int__(self) -> int:
        return int(self._real_scalar("int"))

    def __float__(self) -> float:
        return float(self._real_scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise TypeError(f"only an integer array of zero dimensions can be an index, got dtype {self.dtype}")
        return operator.index(self._scalar("index"))

    def _real_scalar(self, kind: str) -> Any:
        if self.dtype.kind == "c":
            raise TypeError(f"a complex array cannot become a Python {kind}; take xp.real(x) first")
        return self._scalar(kind)

    def __format__(self, spec: str) -> str:
        if spec and self.shape == ():
            return format(self._scalar("scalar").item(), spec)
        try:
            return format(str(self), spec)
        except ValueError:
            raise TypeError(
                f"an array of shape {self.shape} cannot be formatted with {spec!r}, a format for scalars; "
                "use numpy.array2string(x, precision=2) instead"
            ) from None

    def __repr__(self) -> str:
        return late.to_repr(self.__copy__())

    def __str__(self) -> str:
        return late.to_str(self.__copy__())

    def _repr_html_(self) -> str:
        return late.to_html(self.__copy__())

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("len() of an array of zero dimensions")
        return shape[0]

    def __iter__(self) -> Iterator[Array]:
        if not self.shape:
            raise TypeError("an array of zero dimensions cannot be iterated over")
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, value: Operand) -> bool:
        return bool(late.any(late.equal(cast("Array", self), value)))

    def __getitem__(self, key: Any) -> Array:
        return late.getitem(cast("Array", self), key)

    def __setitem__(self, key: Any, value: Any) -> None:
        late.setitem(cast("Array", self), key, value)
