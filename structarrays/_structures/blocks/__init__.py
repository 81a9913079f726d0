"""Matrices of dense blocks on few block diagonals: `BlockDiagonal` and `BlockBanded`."""

FILES = (
    "array",
    "block_banded",
    "block_banded_solvers",
    "block_diagonal",
    "block_diagonal_solvers",
    "block_joins",
    "indexing",
    "products",
    "reductions",
)
"""The files that register kernels; `_structures.load` imports them."""

PUBLIC = ("BlockBanded", "BlockDiagonal", "block_tridiagonal")
"""Public names of this package."""
