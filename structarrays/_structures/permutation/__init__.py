"""Permutation matrices."""

FILES = (
    "array",
    "products",
)
"""The files that register kernels; `_structures.load` imports them."""

PUBLIC = ("Permutation",)
"""The public names of this package."""
