"""The flag that keeps XLA from computing wrong sums on CPUs.

From jaxlib 0.10.2 on, XLA hands a reduction and the product before it to the library YNNPACK. Some of these programs read memory that was
never written (docs/design/jax_bugs.md). XLA reads its flags once, when JAX starts.
"""

from __future__ import annotations

import os
import warnings

import jax
from jaxlib import version

_NAME = "xla_cpu_experimental_ynn_fusion_type"
_FLAG = f"--{_NAME}=-reduce"
_FIRST, _LAST = (0, 10, 2), (0, 13)
"""The first version with the flag, and the first one that is not supported. XLA ends the process if it does not know a flag."""


def avoid_wrong_sums() -> None:
    """Add the flag to the environment variable ``XLA_FLAGS``, unless it has a value for it.

    If JAX has started on a CPU, the flag comes too late; a warning says so.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    installed = tuple(int(part) for part in version.__version__.split(".")[:3] if part.isdigit())
    if _NAME in flags or not _FIRST <= installed < _LAST:
        return
    if _has_started():
        if jax.default_backend() == "cpu":
            warnings.warn(
                f"JAX started before structarrays was imported. XLA of jaxlib {version.__version__} compiles some sums of products to wrong "
                f"code on CPUs (docs/design/jax_bugs.md). Import structarrays before the first computation, or set XLA_FLAGS={_FLAG}",
                RuntimeWarning,
                stacklevel=3,
            )
        return
    os.environ["XLA_FLAGS"] = f"{flags} {_FLAG}".strip()


def _has_started() -> bool:
    """Return whether JAX has started a backend. If JAX does not say, the flag is set in any case, since it does no harm."""
    try:
        from jax._src.xla_bridge import backends_are_initialized  # noqa: PLC0415  # JAX may move it
    except ImportError:
        return False
    return bool(backends_are_initialized())
