"""Matrices whose elements depend on the difference or the sum of the indices: `Toeplitz`, `Circulant` and `Hankel`."""

FILES = (
    "array",
    "circulant",
    "circulant_solvers",
    "hankel",
    "hankel_solvers",
    "indexing",
    "products",
    "reductions",
    "solvers",
    "toeplitz_elimination",
    "triangular_toeplitz",
)
"""The files that register kernels; `_structures.load` imports them."""

PUBLIC = ("Circulant", "Hankel", "Toeplitz")
"""The public names of this package."""
