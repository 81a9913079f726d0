"""Matrices composed of other arrays: `Sum`, `Product`, `Inverse` and `Block`."""

FILES = (
    "block",
    "block_solvers",
    "entry_forms",
    "estimates",
    "factored_batches",
    "factored_functions",
    "factored_variances",
    "generators",
    "inverse",
    "part_solvers",
    "product",
    "sum",
    "sum_solvers",
    "sums_of_squares",
)
"""The files that register kernels; `_structures.load` imports them."""

PUBLIC = ("Block", "Inverse", "Product", "Sum")
"""Public names of this package."""
