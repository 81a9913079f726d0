"""The core: the base class of arrays, functions of the namespace and their kernels, and the rules of the families."""
