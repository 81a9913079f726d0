"""Matrices with few diagonals: `Banded`, `Diagonal` and `Identity`."""

FILES = (
    "array",
    "band_spectra",
    "diagonal",
    "diagonal_spectra",
    "indexing",
    "products",
    "reductions",
    "solvers",
    "wide_bands",
)
"""The files that register kernels; `_structures.load` imports them."""

PUBLIC = ("Banded", "Diagonal", "Identity", "bidiagonal", "diag", "from_dia", "tridiagonal")
"""The public names of this package."""
