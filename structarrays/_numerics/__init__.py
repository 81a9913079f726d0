"""Numerical routines on plain arrays of JAX which several families share."""
