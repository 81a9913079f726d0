"""Kronecker products and sums."""

FILES = (
    "array",
    "kronecker_determinants",
    "kronecker_forms",
    "kronecker_functions",
    "kronecker_pairs",
    "kronecker_spectra",
    "kronecker_sum",
    "kronecker_transforms",
    "solvers",
)
"""The files that register kernels; `_structures.load` imports them."""

PUBLIC = ("Kronecker", "KroneckerSum")
"""Public names of this package."""
