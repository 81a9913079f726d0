"""Rules for arrays whose structure has no kernel of its own."""

FILES = (
    "extremes",
    "factorization_rules",
    "least_squares_rules",
    "matrix_function_rules",
    "selections",
    "singular_values",
    "singular_vectors",
    "via_sparse",
    "where_nan",
)
"""The files that register kernels; `_structures.load` imports them."""

PUBLIC = ()
"""Public names of this package: none."""
