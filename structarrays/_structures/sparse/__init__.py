"""Arrays with few entries at any coordinates."""

FILES = (
    "array",
    "block_systems",
    "indexing",
    "products",
    "reductions",
    "solvers",
    "sparse_direct",
    "sparse_elementwise",
    "sparse_forms",
    "sparse_inverse",
    "sparse_joins",
    "sparse_least_squares",
    "sparse_searching",
    "sparse_shapes",
    "sparse_writes",
)
"""The files that register kernels; `_structures.load` imports them."""

PUBLIC = ("Sparse",)
"""The public names of this package."""
