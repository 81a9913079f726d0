"""Experimental modules: their interfaces may change, and they may depend on private parts of one version of JAX.

Import each module by its name; ``import structarrays`` imports none of them.
"""

__all__ = ["native"]
