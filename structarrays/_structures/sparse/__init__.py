"""Arrays of few entries at any places."""

FILES = (
    "array",
    "indexing",
    "products",
    "reductions",
    "solvers",
    "sparse_direct",
    "sparse_elementwise",
    "sparse_forms",
    "sparse_inverse",
    "sparse_joins",
    "sparse_shapes",
    "sparse_writes",
)
"""The files that register kernels; `_structures.load` imports them."""

PUBLIC = ("Sparse",)
"""What the namespace has of this package."""
