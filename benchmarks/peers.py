"""The libraries compared with, and when they cannot be."""

import importlib
from types import ModuleType

import jax

NOT_INSTALLED = "not installed"
CPU_ONLY = f"runs on the CPU only: not compared on {jax.default_backend()}"


def optional(module: str) -> ModuleType | None:
    """The module, or None where it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        return None


def on_cpu() -> bool:
    return jax.default_backend() == "cpu"


def linear_operators():
    """PyTorch and linear_operator's operators, or None where they are not installed.

    One thread, as for the other peers; it is also what they are faster with.
    """
    torch, operators = optional("torch"), optional("linear_operator.operators")
    if torch is None or operators is None:
        return None
    torch.set_num_threads(1)
    return torch, operators
