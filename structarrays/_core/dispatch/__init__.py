"""Functions of the namespace, their registries of kernels, and the log of calls."""
