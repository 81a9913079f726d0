"""Symmetric and Hermitian matrices; one triangle is stored."""

FILES = (
    "array",
    "indexing",
    "products",
    "reductions",
    "solvers",
)
"""The files that register kernels; `_structures.load` imports them."""

PUBLIC = ("Hermitian", "Symmetric")
"""The public names of this package."""
