"""PyTorch's tensors by DLPack: `Dense` arrays, and the parameters of structured ones."""

import jax
import numpy as np
import pytest
from support import as_jax

import structarrays as sa

torch = pytest.importorskip("torch", exc_type=ImportError)

DTYPES = ("bool", "int8", "uint8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128")


@pytest.mark.parametrize("dtype", DTYPES)
def test_dense_arrays_there_and_back(dtype):
    host = (np.arange(12).reshape(3, 4) % 5).astype(dtype)
    x = sa.asarray(host)
    tensor = torch.from_dlpack(x)
    assert (str(tensor.dtype), tuple(tensor.shape)) == (f"torch.{dtype}", (3, 4))
    np.testing.assert_array_equal(tensor.numpy(), host)
    for source in (
        tensor,
        torch.from_numpy(host.copy()),
        torch.from_numpy(host.copy()).T,
        torch.from_numpy(host.copy())[:, 1:3],
    ):
        y = sa.from_dlpack(source)
        assert type(y) is sa.Dense
        assert y.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(np.asarray(y), source.numpy())
        np.testing.assert_array_equal(np.asarray(sa.asarray(source)), source.numpy())


def test_a_write_to_the_array_is_not_seen_by_the_tensor():
    x = sa.ones(1000)
    x[1] = 2.0  # now the array owns its buffer
    tensor = torch.from_dlpack(x)
    x[0] = 5.0
    assert tensor[0] == 1.0
    assert float(x[1]) == 2.0
    copied = torch.from_dlpack(x, copy=True)
    copied[0] = 7.0
    assert float(x[0]) == 5.0


def test_structured_arrays_are_expanded_under_the_policy():
    A = sa.tridiagonal([1.0, 2.0], [3.0, 4.0, 5.0], [0.5, 0.25])
    np.testing.assert_array_equal(torch.from_dlpack(A).numpy(), np.asarray(A))
    with sa.densify("error"), pytest.raises(sa.DensifyError, match="__dlpack__ would expand Banded"):
        torch.from_dlpack(A)


@pytest.mark.parametrize(
    "A",
    [
        sa.tridiagonal([1.0, 2.0], [3.0, 4.0, 5.0], [0.5, 0.25]),
        sa.Sparse([1.0, 2.0], ([0, 2], [1, 1]), (3, 3)),
        sa.Kronecker(sa.Diagonal([1.0, 2.0]), sa.Toeplitz([1.0, 2.0])),
        sa.exp(sa.Diagonal([1.0, 2.0])),
    ],
    ids=lambda A: type(A).__name__,
)
def test_parameters_of_structured_arrays(A):
    leaves, structure = jax.tree.flatten(A)
    with sa.densify("error"):
        tensors = [torch.from_dlpack(leaf) for leaf in leaves]
        doubled = [2 * t if t.is_floating_point() else t for t in tensors]
        B = jax.tree.unflatten(structure, [as_jax(sa.from_dlpack(t)) for t in doubled])
    assert sa.same_structure(A, B)
    factor = 4 if isinstance(A, sa.Kronecker) else 2
    np.testing.assert_array_equal(np.asarray(B), factor * np.asarray(A))


def test_tensors_that_are_differentiated():
    with pytest.raises((BufferError, RuntimeError), match="require"):
        sa.from_dlpack(torch.ones(3, requires_grad=True))
    np.testing.assert_array_equal(np.asarray(sa.from_dlpack(torch.ones(3, requires_grad=True).detach())), np.ones(3))
