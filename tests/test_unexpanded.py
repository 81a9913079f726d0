"""What an elementwise function asks before a result becomes dense: one answer for each function."""

import jax
import numpy as np
import pytest
from support import as_jax

import structarrays as sa
from structarrays._core.families import unexpanded


def test_a_second_registration_is_refused(monkeypatch):
    monkeypatch.setattr(unexpanded, "UNEXPANDED", {})

    @unexpanded.unexpanded("add")
    def first(function, args, shape):
        return None

    with pytest.raises(ValueError, match="add is already registered by test_unexpanded"):
        unexpanded.unexpanded("add")(lambda function, args, shape: None)
    assert unexpanded.UNEXPANDED == {"add": first}


@pytest.mark.parametrize("function", ["multiply", "divide"])
@pytest.mark.parametrize("shape", [(50,), (1, 50), (2, 1, 50), (3, 2, 1, 50)])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_a_constant_matrix_beside_a_row(function, shape, batch, rng):
    value, row = rng.normal(size=batch), rng.normal(size=shape)
    ours, numpys = getattr(sa, function), getattr(np, function)
    pairs = (
        (sa.Fill(value, (40, 50)), sa.asarray(row)),
        (np.broadcast_to(value[..., None, None], (*batch, 40, 50)), row),
    )
    for order in (slice(None), slice(None, None, -1)):
        x, expected = ours(*pairs[0][order]), numpys(*pairs[1][order])
        assert type(x) is sa.LowRank and x.rank == 1
        np.testing.assert_allclose(np.asarray(x), expected, rtol=1e-15)
        assert any("kernel" in e.how and "fill" in e.how for e in sa.explain(ours, *pairs[0][order]).events)


@pytest.mark.parametrize(
    ("core", "shape"), [((1, 5), (5,)), ((4, 1), (1,)), ((4, 5), (1,)), ((4, 5), (4, 1)), ((4, 5), (4, 5))]
)
def test_a_constant_matrix_beside_what_is_no_row(core, shape, rng):
    row = rng.normal(size=shape)
    for function in ("multiply", "divide"):
        x = getattr(sa, function)(sa.Fill(2.0, core), sa.asarray(row))
        assert type(x) is not sa.LowRank
        np.testing.assert_allclose(np.asarray(x), getattr(np, function)(np.full(core, 2.0), row), rtol=1e-15)


def test_a_row_beside_a_constant_column(rng):
    row = rng.normal(size=6)
    x = sa.Fill(2.0, (4, 1)) * sa.asarray(row)
    assert type(x) is sa.LowRank
    np.testing.assert_allclose(np.asarray(x), np.full((4, 1), 2.0) * row, rtol=1e-15)


def test_derivatives_beside_a_row(rng):
    row = rng.normal(size=5)

    def loss(value, row):
        return as_jax(sa.sum((sa.Fill(value, (4, 5)) / row) ** 2))

    by_value, by_row = jax.jit(jax.grad(loss, argnums=(0, 1)))(1.5, row)
    np.testing.assert_allclose(by_value, 4 * np.sum(2 * 1.5 / row**2), rtol=1e-12)
    np.testing.assert_allclose(by_row, 4 * -2 * 1.5**2 / row**3, rtol=1e-12)


@pytest.mark.parametrize("operation", ["add", "subtract", "multiply", "divide"])
@pytest.mark.parametrize("swapped", [False, True])
def test_parts_of_complex_results_carry_no_marks(operation, swapped, rng):
    """A result has the type of the result for an operand that the user has cast, so that both fit into one loop."""
    x = sa.Kronecker(rng.normal(size=(3, 3)), rng.normal(size=(4, 4)))
    y = sa.Identity(12, 1j) if operation in ("add", "subtract") else sa.asarray(1j * np.arange(1.0, 13.0))
    pairs = [(a, y) for a in (x, sa.astype(x, complex))]
    found, cast = (getattr(sa, operation)(*(pair[::-1] if swapped else pair)) for pair in pairs)
    assert jax.tree.structure(found) == jax.tree.structure(cast)
    assert "assumed" not in repr(found)
