"""The errors and warnings that this library raises of its own."""


class DensifyError(RuntimeError):
    """A structured array would have had to be expanded against the policy set by `structarrays.densify`."""


class DensifyWarning(UserWarning):
    """A structured array was expanded to its dense form (see `structarrays.densify`)."""


class StructureError(TypeError):
    """An operation has no meaning for this structure, or two structures that had to be the same differ."""
