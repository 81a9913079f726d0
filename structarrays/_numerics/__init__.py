"""Numerical routines on plain JAX arrays, shared by several families."""
