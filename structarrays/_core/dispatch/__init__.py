"""Functions of the namespace, the tables of their kernels, and what they record."""
