"""The doors to NumPy, to files, to other libraries."""

LAZY = frozenset({"jax_sparse", "lineax", "pydata_sparse", "pytensor", "scipy"})
"""The modules that are imported where they are asked for: what they connect to is no requirement, or takes long to import."""


def __getattr__(name):
    if name in LAZY:
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
