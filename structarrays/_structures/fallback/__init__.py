"""Rules that belong to no structure, for arrays that have no kernel of their own."""

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
"""What the namespace has of this package."""
