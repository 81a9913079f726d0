"""Peer libraries, and conditions under which they cannot be compared."""

import importlib
from types import ModuleType

import jax

NOT_INSTALLED = "not installed"
CPU_ONLY = f"runs on the CPU only: not compared on {jax.default_backend()}"


def optional(module: str) -> ModuleType | None:
    """Return the module, or None if it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        return None


def on_cpu() -> bool:
    return jax.default_backend() == "cpu"


def linear_operators():
    """Return PyTorch and linear_operator's operators, or None if they are not installed.

    They use one thread, like the other peers; with more threads they are slower.
    """
    torch, operators = optional("torch"), optional("linear_operator.operators")
    if torch is None or operators is None:
        return None
    torch.set_num_threads(1)
    return torch, operators
