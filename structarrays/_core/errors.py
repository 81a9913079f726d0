"""Errors and warnings of this library."""


class DensifyError(RuntimeError):
    """An operation would densify a structured array, but the policy of `structarrays.densify` forbids it."""


class DensifyWarning(UserWarning):
    """A structured array was densified (see `structarrays.densify`)."""


class StructureError(TypeError):
    """An operation is undefined for this structure, or two structures that must be equal differ."""
