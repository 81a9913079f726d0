"""Placement of an array on a device or a mesh, and its transfer. `sharding` divides arrays among devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, cast

import jax
from jax.sharding import NamedSharding

from ..._numerics.devices import device_of
from ..dispatch import late
from .flattening import map_parameters, parameters

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..typing import Spec, Value
    from .base import Array


class Placement:
    """Methods of `Array` that concern devices."""

    __slots__ = ()

    if TYPE_CHECKING:  # attributes of `Array`
        _value: Value

        @property
        def core_ndim(self) -> int: ...

    @property
    def device(self) -> jax.Device | jax.sharding.Sharding:
        """Device of the parameters.

        For an array on a mesh, a sharding that replicates an array on all devices of the mesh. An array of any shape
        can be placed on this device.
        """
        leaf = self._value[0][0]
        if isinstance(leaf, jax.core.Tracer):
            return jax.devices()[0]
        found: jax.Device | jax.sharding.Sharding = leaf.device if isinstance(leaf, Placement) else device_of(leaf)
        return found

    def to_device(self, device: jax.Device | jax.sharding.Sharding, /, *, stream: None = None) -> Self:
        """Copy the array to another device, or divide it among several.

        Parameters
        ----------
        device : jax.Device or jax.sharding.Sharding
            Target device. A `jax.sharding.NamedSharding` specifies, for each dimension of the array, the mesh axes
            along which it is divided; the parameters are divided accordingly where the structure permits.
        stream : None
            JAX has no streams; anything but None raises.

        Raises
        ------
        ValueError
            If a dimension cannot be divided into equal pieces.

        Examples
        --------
        >>> import jax
        >>> from jax.sharding import NamedSharding, PartitionSpec
        >>> import structarrays as sa
        >>> mesh = jax.make_mesh((1,), ("rows",))  # one device here, any number elsewhere
        >>> A = sa.tridiagonal([1.0], [2.0, 3.0], [4.0]).to_device(NamedSharding(mesh, PartitionSpec("rows", None)))
        >>> A @ sa.ones(2)
        Dense([6., 4.], dtype=float64)
        """
        if stream is not None:
            raise ValueError(f"to_device: stream must be None, since JAX orders its transfers itself, got {stream!r}")
        from . import sharding  # late, since `sharding` imports this module

        if isinstance(device, NamedSharding):
            return cast("Self", sharding.placed(cast("Array", self), device))
        whole = sharding.repadded(self, 1) if sharding.pieces((self,)) > 1 else self
        moved: Self = map_parameters(lambda leaf: jax.device_put(leaf, device), whole)
        return moved

    def __dlpack_device__(self) -> tuple[Any, int]:
        data: Any = parameters(self)[0]  # JAX's type annotations lack the method
        device: tuple[Any, int] = data.__dlpack_device__()
        return device

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if max_version is not None and tuple(max_version) < (1, 0):
            max_version = None  # JAX takes only None for the protocol before 1.0
        whole: Any = self  # an `Array`
        # The request does not name the dense form, so the policy applies. (JAX's type annotations lack the keywords.)
        data: Any = late.densified(whole, "__dlpack__").to_jax()
        return data.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    # ---- hooks of a structure ----------------------------------------------------------------------------------------

    if TYPE_CHECKING:  # a constant in most structures, a property in others

        @property
        def pieces(self) -> int: ...

    else:
        pieces: int = 1
        """Number of equal pieces for which the parameters are padded; more than 1 on several devices, see
        `sharding`."""

    def _padded_for(self, pieces: int) -> Array:
        """Return the same array with parameters padded at the end, so that they divide into this many pieces (1: no
        padding).
        """
        return cast("Array", self)

    def trimmed(self) -> Array:
        """Return the array as the result of an eager call, without surplus parameters of compiled code, which knows no
        values.

        A structure whose number of entries is data-dependent overrides this method. A traced array is returned
        unchanged.
        """
        return cast("Array", self)

    def specs(self, spec: Spec, divides: Callable[[int, Any], bool]) -> tuple[Spec, ...]:
        """Return how the parameters lie on a mesh: for each, the mesh axes along which its dimensions are divided.

        A tuple may be shorter than the number of dimensions; missing entries mean None.

        Parameters
        ----------
        spec : tuple
            Mesh axes for the dimensions of the array.
        divides : callable
            ``divides(size, axes)`` returns whether a dimension of this size divides evenly along these mesh axes.
        """
        return (self._batch_spec(spec),) * len(self._value[0])

    def _batch_spec(self, spec: Spec) -> Spec:
        """Return the part of a specification that applies to the batch dimensions."""
        return spec[: len(spec) - self.core_ndim]

    def _entries_spec(self, spec: Spec) -> Spec:
        """Return the specification of entries in one dimension after the batch: divided like the first divided core
        dimension.
        """
        batch = self._batch_spec(spec)
        return (*batch, next((along for along in spec[len(batch) :] if along is not None), None))
