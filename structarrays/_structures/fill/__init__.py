"""Arrays of one number."""

FILES = (
    "array",
    "indexing",
    "products",
    "reductions",
)
"""The files that register kernels; `_structures.load` imports them."""

PUBLIC = ("Fill",)
"""What the namespace has of this package."""
