"""Where an array lies: its device or its mesh, and how it is moved and handed over. What divides one among devices is in `sharding`."""

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
    """What `Array` has of devices."""

    __slots__ = ()

    if TYPE_CHECKING:  # what `Array` has
        _value: Value

        @property
        def core_ndim(self) -> int: ...

    @property
    def device(self) -> jax.Device | jax.sharding.Sharding:
        """The device that holds the parameters; for an array on a mesh all devices of the mesh, as the sharding that gives each of
        them the whole array: that is where an array of any shape can be put beside this one.
        """
        leaf = self._value[0][0]
        if isinstance(leaf, jax.core.Tracer):
            return jax.devices()[0]
        found: jax.Device | jax.sharding.Sharding = leaf.device if isinstance(leaf, Placement) else device_of(leaf)
        return found

    def to_device(self, device: jax.Device | jax.sharding.Sharding, /, *, stream: None = None) -> Self:
        """The same array on another device, or divided among several.

        Parameters
        ----------
        device : jax.Device or jax.sharding.Sharding
            Where to. A `jax.sharding.NamedSharding` says for each dimension of the array along which axes of a mesh it is divided;
            the parameters follow as their structure lets them.
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
        from . import sharding  # which stands on this module

        if isinstance(device, NamedSharding):
            return cast("Self", sharding.placed(cast("Array", self), device))
        whole = sharding.repadded(self, 1) if sharding.pieces((self,)) > 1 else self
        moved: Self = map_parameters(lambda leaf: jax.device_put(leaf, device), whole)
        return moved

    def __dlpack_device__(self) -> tuple[Any, int]:
        data: Any = parameters(self)[0]  # JAX's types leave the method out
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
        # Nobody asked for the dense form by name. (JAX's types leave out the keywords.)
        data: Any = late.densified(whole, "__dlpack__").to_jax()
        return data.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    # ---- what a structure says of its parameters ---------------------------------------------------------------------

    if TYPE_CHECKING:  # a constant of most structures, a property of others

        @property
        def pieces(self) -> int: ...

    else:
        pieces: int = 1
        """For how many pieces of one size the parameters are padded; more than 1 on several devices, see `sharding`."""

    def _padded_for(self, pieces: int) -> Array:
        """The same array with parameters that divide into this many pieces, with padding behind the end where needed; with 1
        without any.
        """
        return cast("Array", self)

    def trimmed(self) -> Array:
        """The array as the result of an eager call: without parameters that it has since compiled code knows no values.

        A structure whose number of entries depends on values overrides it. If the array is traced, it is returned as it is.
        """
        return cast("Array", self)

    def specs(self, spec: Spec, divides: Callable[[int, Any], bool]) -> tuple[Spec, ...]:
        """How the parameters lie on a mesh: for each, along which axes its dimensions are divided (shorter ones stand for None behind).

        Parameters
        ----------
        spec : tuple
            The same of the dimensions of the array.
        divides : callable
            Whether a dimension of this size divides evenly along these axes.
        """
        return (self._batch_spec(spec),) * len(self._value[0])

    def _batch_spec(self, spec: Spec) -> Spec:
        """What of a specification speaks of the batch."""
        return spec[: len(spec) - self.core_ndim]

    def _entries_spec(self, spec: Spec) -> Spec:
        """That of entries in a row behind the batch: divided as the first dimension of the core that is."""
        batch = self._batch_spec(spec)
        return (*batch, next((along for along in spec[len(batch) :] if along is not None), None))
