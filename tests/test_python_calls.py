"""What the first call of a function costs: the functions of the library that Python calls, and how often a call is traced."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import structarrays as sa
from structarrays._core.dispatch.array_function import ArrayFunction

LIBRARY = str(Path(sa.__file__).parent)
COUNTED = """
import sys
import jax.numpy as jnp
import structarrays as sa

diagonal = sa.Diagonal(jnp.ones(50))
band = sa.tridiagonal(jnp.ones(49), 2 * jnp.ones(50), jnp.ones(49))
low_rank, v = sa.LowRank(jnp.ones((50, 3)), jnp.ones((40, 3))), jnp.ones(50)
calls = 0

def count(frame, event, argument):
    global calls
    calls += event == "call" and frame.f_code.co_filename.startswith(LIBRARY)

sys.setprofile(count)
CALL
sys.setprofile(None)
print(calls)
"""


@pytest.mark.parametrize(
    ("call", "most"),
    [("sa.exp(diagonal)", 80), ("band @ v", 80), ("low_rank - sa.mean(low_rank, axis=0)", 400)],
    ids=["exp", "matmul", "centring"],
)
def test_first_calls(call, most):
    """In a process of its own, since nothing may be remembered of an earlier call."""
    code = COUNTED.replace("LIBRARY", repr(LIBRARY)).replace("CALL", call)
    environment = {**os.environ, "PYTHONPATH": str(Path(LIBRARY).parent)}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    assert int(run.stdout) <= most


BAD = {
    "matmul": (lambda: sa.eye(3) @ sa.ones(4), ValueError, "matmul: the last dimension of x1"),
    "add": (lambda: sa.eye(3) + sa.ones(4), ValueError, "add: shapes"),
    "exp": (lambda: sa.exp(sa.asarray([True])), TypeError, "exp: x must have"),
    "solve": (lambda: sa.linalg.solve(sa.eye(3), sa.ones(4)), ValueError, "linalg.solve: x2 must be"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_call_is_traced_once(name, monkeypatch):
    call, error, message = BAD[name]
    traced = []
    for cls in {ArrayFunction, *(c for c in ArrayFunction.__subclasses__() if "_trace" in c.__dict__)}:
        own = cls._trace

        def counted(self, static, *arrays, own=own):
            traced.append(self.name)
            return own(self, static, *arrays)

        monkeypatch.setattr(cls, "_trace", counted)
    for _ in range(2):
        traced.clear()
        with pytest.raises(error, match=message) as raised:
            call()
        assert len(traced) == 1 and raised.value.__cause__ is None


def test_arguments_that_jax_does_not_take_are_traced_once():
    """JAX refuses them before the call is traced; then they get the form that JAX takes."""
    x = sa.asarray(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(np.asarray(sa.sum(x, axis=[0, 1])), 15.0)
    np.testing.assert_array_equal(
        np.asarray(sa.add(x, np.arange(3, dtype=">f8"))), np.arange(6.0).reshape(2, 3) + np.arange(3)
    )
    with pytest.raises(TypeError, match=r"concat: arrays\[1\] must be an array"):
        sa.concat([x, None])
    with pytest.raises(OverflowError, match="does not fit into uint8"):
        sa.add(sa.asarray([1], dtype=sa.uint8), 300)
