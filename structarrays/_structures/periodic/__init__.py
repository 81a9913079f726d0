"""Periodic band matrices: `PeriodicBanded`."""

FILES = ("array", "indexing", "products", "reductions", "solvers")
"""The files that register kernels; `_structures.load` imports them."""

PUBLIC = ("PeriodicBanded",)
"""The public names of this package."""
