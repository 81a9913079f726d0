"""Unitary matrices that are never formed: `Fourier` and `Householder`."""

FILES = (
    "array",
    "fourier",
    "householder",
)
"""The files that register kernels; `_structures.load` imports them."""

PUBLIC = ("Fourier", "Householder")
"""The public names of this package."""
