"""Symmetric and Hermitian matrices, of which one triangle is stored."""

FILES = (
    "array",
    "indexing",
    "products",
    "reductions",
    "solvers",
)
"""The files that register kernels; `_structures.load` imports them."""

PUBLIC = ("Hermitian", "Symmetric")
"""What the namespace has of this package."""
