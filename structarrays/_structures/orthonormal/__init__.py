"""Unitary matrices that are never formed: `Fourier` and `Householder`."""

FILES = (
    "array",
    "fourier",
    "householder",
)
"""The files that register kernels; `_structures.load` imports them."""

PUBLIC = ("Fourier", "Householder")
"""What the namespace has of this package."""
