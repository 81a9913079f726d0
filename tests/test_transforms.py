"""`grad`, `value_and_grad`, `vmap`, `join` and `convert`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import as_jax, dense

import structarrays as sa

D = sa.Diagonal([1.0, 2.0, 3.0])
T = sa.tridiagonal([1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0])


# ---- derivatives --------------------------------------------------------------------------------------------------


def test_gradients_have_the_structure_of_the_argument():
    for x in (D, T, sa.eye(3), sa.exp(D), sa.Fill(2.0, (3, 3)), D.to_dense()):
        gradient = sa.grad(lambda x: sa.sum(x * x))(x)
        assert sa.same_structure(gradient, x)
    np.testing.assert_allclose(dense(sa.grad(lambda x: sa.sum(x * x))(T)), 2 * dense(T))
    # A parameter that fills several entries collects them all.
    assert float(sa.grad(lambda x: sa.sum(x * x))(sa.Identity(3, 2.0)).scale) == 12.0
    assert float(sa.grad(sa.sum)(sa.exp(D)).background) == 6.0


def test_value_and_gradient():
    value, (gradient, by_number) = sa.value_and_grad(lambda x, c: c * sa.sum(x), (0, 1))(D, 2.0)
    assert float(value) == 12.0 and type(value) is sa.Dense and float(by_number) == 6.0
    np.testing.assert_array_equal(dense(gradient), np.diag([2.0, 2, 2]))
    (value, aux), gradient = sa.value_and_grad(lambda x: (sa.sum(x), x.mT), has_aux=True)(D)
    assert float(value) == 6.0 and type(aux) is sa.Diagonal and type(gradient) is sa.Diagonal
    gradient, aux = sa.grad(lambda x: (sa.sum(x), "aux"), has_aux=True)(D)
    assert aux == "aux" and type(gradient) is sa.Diagonal


def test_what_is_no_number_of_calculus_comes_back():
    tree = {"x": D, "index": sa.asarray([1, 0, 2]), "count": 3}
    gradient = sa.grad(lambda t: sa.sum(sa.take(t["x"].to_dense(), t["index"], axis=0)[:2, :]) * t["count"])(tree)
    assert gradient["count"] == 3
    np.testing.assert_array_equal(dense(gradient["index"]), [1, 0, 2])
    np.testing.assert_array_equal(dense(gradient["x"]), np.diag([3.0, 3, 0]))


@pytest.mark.slow
def test_gradients_compose_with_jax():
    def f(x):
        return sa.sum(sa.linalg.solve(x, sa.ones(3)))

    full = jax.grad(lambda a: jnp.sum(jnp.linalg.solve(a, jnp.ones(3))))(T.to_jax())
    expected = [np.diagonal(full, k) for k in T.offsets]
    for gradient in (sa.grad(f)(T), jax.jit(sa.grad(f))(T), jax.grad(lambda x: as_jax(f(x)))(T)):
        for actual, entries in zip(gradient.diagonals, expected):
            np.testing.assert_allclose(actual, entries, rtol=1e-12)
    batch = sa.stack([T, 2.0 * T])
    np.testing.assert_allclose(dense(jax.vmap(sa.grad(f))(batch)[0, ...]), dense(sa.grad(f)(T)), rtol=1e-12)
    hessian = sa.grad(lambda x: sa.sum(sa.grad(lambda x: sa.sum(x**3))(x)))(D)
    np.testing.assert_allclose(hessian.diag, 6 * D.diag)
    holomorphic = sa.grad(lambda x: sa.sum(x * x), holomorphic=True)(D * (1 + 1j))
    np.testing.assert_allclose(holomorphic.diag, 2 * (1 + 1j) * D.diag)


def test_a_write_inside_is_local():
    def f(x):
        x[0, 0] = 10.0
        return sa.sum(x * x)

    x = sa.Diagonal([1.0, 2.0])
    np.testing.assert_array_equal(sa.grad(f)(x).diag, [0.0, 4.0])
    np.testing.assert_array_equal(x.diag, [1.0, 2.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sa.grad(3), "must be a function"),
        (lambda: sa.grad(lambda x: x)(D), "no dimensions"),
        (lambda: sa.grad(sa.sum)(sa.arange(3)), "must have floating-point parameters"),
        (lambda: sa.grad(sa.sum, argnums=1)(D), "argnums must name positional arguments, got 1"),
        (lambda: sa.vmap("f"), "must be a function"),
    ],
)
def test_errors(call, message):
    with pytest.raises(TypeError, match=message):
        call()


# ---- vmap ---------------------------------------------------------------------------------------------------------


def test_vmap_over_batch_axes():
    batch = sa.tridiagonal(np.ones((2, 4, 2)), 4 + np.arange(24.0).reshape(2, 4, 3), np.ones((2, 4, 2)))
    for axis in (0, 1, -3):
        result = sa.vmap(lambda x: sa.linalg.solve(x, sa.ones(3)), in_axes=axis)(batch)
        expected = np.linalg.solve(np.moveaxis(dense(batch), axis, 0), np.ones((3, 1)))[..., 0]
        np.testing.assert_allclose(dense(result), expected)
    result = sa.vmap(lambda x: 2.0 * x, out_axes=1)(batch)
    assert type(result) is sa.Banded and result.shape == (4, 2, 3, 3)
    np.testing.assert_array_equal(dense(result), 2 * np.moveaxis(dense(batch), 0, 1))


def test_vmap_over_core_axes_is_dense():
    with sa.record() as log:
        rows = sa.vmap(lambda row: sa.sum(row * row), in_axes=1)(T)
    np.testing.assert_allclose(dense(rows), np.sum(dense(T) ** 2, axis=0))
    result = sa.vmap(lambda x: 2.0 * x, out_axes=-1)(sa.stack([D, D]))
    np.testing.assert_array_equal(dense(result), 2 * np.moveaxis(dense(sa.stack([D, D])), 0, -1))
    assert log.densifications[0].function == "vmap"
    with sa.densify("error"), pytest.raises(sa.DensifyError):
        sa.vmap(sa.sum, in_axes=1)(T)


def test_vmap_of_trees():
    x = sa.ones((3, 2))
    f = sa.vmap(
        lambda a, b: {"sum": a["x"] + b, "b": b}, in_axes=({"x": 1, "y": None}, None), out_axes={"sum": 0, "b": None}
    )
    result = f({"x": x, "y": 3}, D)
    assert result["sum"].shape == (2, 3, 3) and type(result["b"]) is sa.Diagonal
    assert sa.vmap(lambda a, *, b: a * b)(sa.arange(3.0), b=sa.arange(3.0)).shape == (3,)
    with pytest.raises(ValueError, match="in_axes"):
        sa.vmap(lambda a, b: a, in_axes=(0,))(x, x)
    with pytest.raises(np.exceptions.AxisError):
        sa.vmap(lambda a: a, in_axes=2)(x)


def test_vmap_with_arguments_that_are_none():
    """None has no arrays, so that the axes of the other arguments must not move to their neighbours."""
    p, q = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2)
    expected = p - q.T
    for found in (
        sa.vmap(lambda _, p, q: p - q, in_axes=(None, 0, 1))(None, p, q),
        sa.vmap(lambda _, p, q: p - q, in_axes=(0, 0, 1))(None, p, q),
        sa.vmap(lambda x, q: x["p"] - q, in_axes=({"a": None, "p": 0}, 1))({"a": None, "p": p}, q),
        sa.vmap(lambda x, q: x[1] - q, in_axes=(0, 1))((None, p), q),
        sa.vmap(lambda p, q, *, a: p - q, in_axes=(0, 1))(p, q, a=None),
        sa.vmap(lambda p, q: (None, p - q), in_axes=(0, 1), out_axes=(None, 0))(p, q)[1],
        sa.vmap(lambda p, q: {"a": None, "x": p - q}, in_axes=(0, 1), out_axes=1)(p, q)["x"].T,
    ):
        np.testing.assert_array_equal(dense(found), expected)


# ---- structures ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (sa.eye(3), D, sa.Diagonal),
        (D, T, sa.Banded),
        (sa.exp(D), T, sa.Banded),
        (sa.Fill(1.0, (3, 3)), D, sa.Diagonal),
        (D, D.to_dense(), sa.Dense),
        (sa.stack([T, T]), D, sa.Banded),
    ],
)
def test_join(x, y, expected):
    for one, other in ((x, y), (y, x)):
        a, b = sa.join(one, other)
        assert sa.same_structure(a, b) and type(a) is expected
        np.testing.assert_array_equal(dense(a), dense(one))
        np.testing.assert_array_equal(dense(b), dense(other))


def test_convert():
    for x, like in (
        (sa.eye(3), D),
        (D, T),
        (sa.eye(3), sa.exp(T)),
        (sa.Fill(2.0, (3, 3)), sa.exp(D)),
        (T, T.to_dense()),
    ):
        result = sa.convert(x, like=like)
        assert sa.same_structure(result, like)
        np.testing.assert_array_equal(dense(result), dense(x))
    for x, like in ((T, D), (D, sa.eye(3)), (sa.exp(D), D), (D.to_dense(), D), (D, sa.Fill(1.0, (3, 3)))):
        with pytest.raises(sa.StructureError, match="convert"):
            sa.convert(x, like=like)
    with pytest.raises(sa.StructureError, match="assumptions"):
        sa.convert(D, like=sa.assume(D, "symmetric"))
    for f in (sa.join, sa.convert):
        with pytest.raises(ValueError, match="dimensions"):
            f(D, sa.eye(4))


def test_a_scan_whose_carry_is_converted():
    start = sa.convert(sa.eye(3), like=D)
    end, _ = jax.lax.scan(lambda x, _: (x @ D, None), start, None, length=3)
    np.testing.assert_allclose(end.diag, D.diag**3)


def test_a_mapped_core_dimension_is_noticed():
    x = sa.Diagonal(jnp.ones(3))
    with pytest.raises(ValueError, match="must have its core dimensions"):
        jax.vmap(lambda x: x.shape[0] * jnp.ones(()))(x)
