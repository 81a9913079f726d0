"""The doors to NumPy, to files, to other libraries."""


def __getattr__(name):
    # Imported where it is asked for: PyTensor is no requirement, and its import takes a second.
    if name == "pytensor":
        import importlib

        return importlib.import_module(".pytensor", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
