"""What all arrays share: the base class, the functions of the namespace and their kernels, and the rules of the families."""
