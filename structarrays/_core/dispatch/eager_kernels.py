"""Kernels that run outside of the compiled call of a function, for results whose shape depends on values."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..._numerics.flags import are_defaults, independent
from ..array.sharding import on_mesh, place_on_mesh_of
from .call_arguments import any_traced, new_handles
from .contexts import dense_results_policy
from .recording import RECORDING, active_log
from .registry import Registry, Run
from .results import follow_eager_operands

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..typing import Result, Static


class EagerKernels(Registry[Any]):
    """A registry of kernels with a second registry: the kernels that run outside of the compiled call."""

    follows = True
    """Whether the type of dense results follows the operands; otherwise results are arrays of this library."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.eager: Registry[Any] | None = None
        self.eager_of_all = False

    def eager_kernel(
        self,
        *classes: type,
        when: Callable[..., bool] | None = None,
        of_all: bool = False,
        traced: bool = False,
        always: Callable[..., bool] | None = None,
        before: str | Sequence[str] = (),
    ) -> Callable[[Run], Run]:
        """Register a kernel that runs outside of the compiled call, on the unchanged arguments.

        It is for results whose shape is data-dependent, and structures whose pattern is (`Array.static_pattern` is
        false). The kernel receives the arguments of the call. If it returns NotImplemented, the compiled call runs.

        Parameters
        ----------
        *classes : type
            The class of each array argument.
        when : callable, optional
            A predicate on the same arguments as the kernel; if `traced` is true, it also receives traced arguments.
        of_all : bool, default False
            Whether the kernel also serves structures with static patterns; then every eager call of this function looks
            for it.
        traced : bool, default False
            Whether the kernel accepts arguments with traced floating-point parameters, so that an eager derivative has
            the same pattern. The parameters that determine the pattern are never traced.
        always : callable, optional
            A predicate on the arguments that is true if the kernel needs no values at all, so that everything may be
            traced.
        before : str or sequence of str, optional
            The same as for `kernel`.
        """
        if self.eager is None:
            self.eager = Registry(self.name)
        self.eager_of_all |= of_all

        def serves(*arrays: Any, **static: Any) -> bool:
            if always is not None and always(*arrays, **static):
                return True
            if traced and when is not None and not when(*arrays, **static):
                return False  # checked first: it is faster than a check of all parameters
            return not any_traced(arrays, exact=traced) and (traced or when is None or when(*arrays, **static))

        return self.eager._registering(classes, serves, before, sys._getframe(1).f_code.co_filename)

    def leave_to_compiled_call(self, *classes: type) -> None:
        """Declare that no eager kernel serves arguments of these classes, which saves the search for one in each call.

        Parameters
        ----------
        *classes : type
            The class of each array argument.
        """
        if self.eager is None:
            self.eager = Registry(self.name)
        self.eager._registering(classes, None, (), sys._getframe(1).f_code.co_filename)(_leave_to_compiled_call)

    def _eagerly(self, eager: Registry[Any], arrays: Sequence[Any], static: Static) -> Result:
        """Run the eager kernel for these arguments; return NotImplemented if there is none."""
        kernels = eager.find(tuple(map(type, arrays)))
        if not kernels or kernels[0].run is _leave_to_compiled_call:
            return NotImplemented
        # A kernel reads its arguments several times while another thread may write; it may also return an argument.
        arrays = new_handles(arrays)
        shared = on_mesh(arrays)
        if not all(leaf.is_fully_addressable for leaf in shared):
            return NotImplemented  # no process has all values
        kernel = eager.choose(arrays, static)
        if kernel is None:
            return NotImplemented
        log = active_log() if RECORDING else None
        run = kernel.run if are_defaults() else independent(kernel.run)
        if dense_results_policy.value != "array":  # the kernel itself expects arrays of this library
            run = dense_results_policy("array")(run)
        if log is None:
            result = run(*arrays, **static)
        else:
            with log.event(self.name, arrays, f"eager kernel {kernel}") as event:
                result = run(*arrays, **static)
            if result is NotImplemented:
                log.events.remove(event)
            else:
                result = event.finish(result)
        if result is NotImplemented:
            return result
        result = place_on_mesh_of(result, shared) if shared else result
        return follow_eager_operands(result, arrays) if self.follows else result


def _leave_to_compiled_call(*arrays: Any, **static: Any) -> Result:
    """Leave a call to the compiled code: see `EagerKernels.leave_to_compiled_call`."""
    return NotImplemented
