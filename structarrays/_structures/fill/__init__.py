"""Arrays with one value everywhere."""

FILES = (
    "array",
    "indexing",
    "products",
    "reductions",
)
"""The files that register kernels; `_structures.load` imports them."""

PUBLIC = ("Fill",)
"""The public names of this package."""
