"""Triangular matrices, stored without their zeros."""

FILES = (
    "array",
    "indexing",
    "products",
    "reductions",
    "solvers",
)
"""The files that register kernels; `_structures.load` imports them."""

PUBLIC = ("Triangular",)
"""What the namespace has of this package."""
