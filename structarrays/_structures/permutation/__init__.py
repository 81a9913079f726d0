"""Permutations of rows."""

FILES = (
    "array",
    "products",
)
"""The files that register kernels; `_structures.load` imports them."""
