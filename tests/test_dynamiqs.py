"""The adapter of examples/dynamiqs_adapter.py against dynamiqs' own arrays, dense JAX, SciPy; where dynamiqs is installed."""

import dataclasses
import os
import subprocess
import sys
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import structarrays as sa

dq = pytest.importorskip("dynamiqs")

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
N = 8


@pytest.fixture(scope="module")
def adapter():
    sys.path.insert(0, str(EXAMPLES))
    try:
        import dynamiqs_adapter
    finally:
        sys.path.remove(str(EXAMPLES))
    dq.set_progress_meter(False)
    yield dynamiqs_adapter
    dynamiqs_adapter.install(dynamiqs_adapter.SparseDIADataArray)


@pytest.fixture
def banded(adapter):
    adapter.install()
    yield adapter.BandedDataArray
    adapter.install(adapter.SparseDIADataArray)


def dense(x):
    return np.asarray(x.to_jax() if hasattr(x, "to_jax") else x)


OPERATIONS = {
    "sum": (lambda a, b: a + b, np.add),
    "difference": (lambda a, b: a - b, np.subtract),
    "product": (lambda a, b: a @ b, np.matmul),
    "adjoint": (lambda a, b: a.dag() @ b, lambda a, b: a.conj().mT @ b),
    "elementwise": (lambda a, b: a.elmul(b), np.multiply),
    "scaled": (lambda a, b: 2j * a / 3 - b * jnp.asarray(0.5), lambda a, b: 2j * a / 3 - b * 0.5),
    "Kronecker": (lambda a, b: a & b & a, lambda a, b: np.kron(np.kron(a, b), a)),
    "power": (lambda a, b: a.powm(3) + b.powm(0), lambda a, b: np.linalg.matrix_power(a, 3) + np.eye(N)),
    "stack": (lambda a, b: dq.stack([a, b])[1] @ dq.stack([b, a]), lambda a, b: b @ np.stack([b, a])),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_stay_banded(banded, name):
    ours, numpy = OPERATIONS[name]
    a = dq.destroy(N)
    b = dq.number(N) + 1j * a.dag().powm(2)
    with sa.densify("error"):
        results = [ours(a, b), jax.jit(ours)(a, b)]
    for each in results:
        assert isinstance(each.data, banded) and isinstance(each.data.array, sa.Banded)
        np.testing.assert_allclose(dense(each), numpy(dense(a), dense(b)), rtol=1e-6, atol=1e-6)


def test_the_exponential_of_a_diagonal_acts_on_the_diagonal(banded):
    n = dq.number(N)
    with sa.densify("error"):
        u = dq.expm(-0.3j * n)
    assert isinstance(u.data.array, sa.Diagonal) and u.ndiags == 1
    np.testing.assert_allclose(dense(u), scipy.linalg.expm(-0.3j * dense(n)), rtol=1e-6)
    h = dq.destroy(N) + dq.create(N)
    np.testing.assert_allclose(dense(dq.expm(0.3j * h)), scipy.linalg.expm(0.3j * dense(h)), rtol=1e-5, atol=1e-6)


def test_what_dynamiqs_gets_wrong_is_right(banded):
    a = dq.destroy(N)
    np.testing.assert_array_equal(dense(a.elpow(0)), np.ones((N, N)))
    assert a.powm(0).dtype == a.dtype and a.trace().dtype == a.dtype
    assert a.reshape(1, 1, N, N).squeeze().shape == (N, N)
    both = dq.stack([a, 2 * a])
    assert (both & both).shape == (2, N * N, N * N)
    assert a.data.devices() == set(jax.devices()[:1])


def test_numbers_of_a_matrix(banded):
    h, n = dq.destroy(N) + dq.create(N), dq.number(N)
    expected = np.linalg.eigvalsh(dense(h))
    with sa.densify("error"):
        np.testing.assert_allclose(h.data._eigvalsh(), expected, atol=1e-5)
        np.testing.assert_allclose(h.norm(), np.abs(expected).sum(), rtol=1e-5)
        assert h.isherm() and not dq.destroy(N).isherm()
        np.testing.assert_allclose(n.norm(psd=True), dense(n).trace().real)
    with pytest.raises(Exception, match="must be Hermitian"):
        dq.destroy(N).norm()


def test_sums_with_dense_arrays_warn_and_are_dense(banded):
    a = dq.destroy(N)
    with pytest.warns(UserWarning, match="has become dense"):
        total = a + dq.asqarray(np.ones((N, N)), layout=dq.dense)
    np.testing.assert_allclose(dense(total), dense(a) + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (0 + a).ndiags == 1


def driven(states):
    a = dq.destroy(16)
    h = a.dag() @ a + dq.modulated(lambda t: 0.5 * jnp.cos(2 * t), a + a.dag())
    ts, numbers = jnp.linspace(0, 1, 5), [a.dag() @ a]
    if states == "kets":
        return dq.sesolve(h, dq.coherent(16, 1.0), ts, exp_ops=numbers).expects
    return dq.mesolve(h, [0.3 * a, 0.1 * a.dag() @ a], dq.coherent_dm(16, 1.0), ts, exp_ops=numbers).expects


@pytest.mark.parametrize("states", ["kets", "matrices"])
def test_a_driven_oscillator_is_that_of_dynamiqs(adapter, states):
    adapter.install(adapter.SparseDIADataArray)
    expected = driven(states)
    adapter.install()
    try:
        found = driven(states)
    finally:
        adapter.install(adapter.SparseDIADataArray)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_zeros_outside_of_the_matrix_are_demanded(banded):
    with pytest.raises(Exception, match="must contain zeros outside the matrix bounds"):
        banded((1,), jnp.ones((1, 3)))
    data = banded((1,), jnp.asarray([[0.0, 1.0, 2.0]]))
    np.testing.assert_array_equal(data, np.diag([1.0, 2.0], 1))
    assert dataclasses.replace(data, array=data.array).offsets == (1,)


def test_the_runner_says_how_to_get_the_tests(tmp_path):
    environment = os.environ | {"DYNAMIQS_DIR": str(tmp_path / "none")}
    command = [sys.executable, str(EXAMPLES / "dynamiqs_tests.py")]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 2 and "git clone https://github.com/dynamiqs/dynamiqs" in process.stderr
