"""Low-rank products of a tall and a wide matrix, and Khatri–Rao products."""

FILES = (
    "array",
    "khatri_rao",
    "low_rank_spectra",
)
"""The files that register kernels; `_structures.load` imports them."""

PUBLIC = ("LowRank",)
"""Public names of this package."""
