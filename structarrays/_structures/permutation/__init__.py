"""Permutations of rows."""

FILES = (
    "array",
    "products",
)
"""The files that register kernels; `_structures.load` imports them."""

PUBLIC = ("Permutation",)
"""What the namespace has of this package."""
