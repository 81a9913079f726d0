"""Band matrices on a ring: `PeriodicBanded`."""

FILES = ("array", "indexing", "products", "solvers")
"""The files that register kernels; `_structures.load` imports them."""

PUBLIC = ("PeriodicBanded",)
"""What the namespace has of this package."""
