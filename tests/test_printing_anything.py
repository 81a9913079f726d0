"""Printing never raises, for any leaves that JAX, Equinox and users put into arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec, SingleDeviceSharding

import structarrays as sa
from structarrays.testing import STRUCTURES, sample


class Hostile:
    """An object that raises when it is printed, and has no attributes."""

    def __repr__(self):
        raise RuntimeError("it cannot be printed")

    def __getattr__(self, name):
        raise RuntimeError(f"it has no {name}")


LEAVES = {
    "None": lambda leaf: None,  # of eqx.partition
    "float0": lambda leaf: np.zeros(leaf.shape, jax.dtypes.float0),  # of derivatives by integers
    "ShapeDtypeStruct": lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype),  # of jax.eval_shape
    "aval": lambda leaf: jax.core.ShapedArray(leaf.shape, leaf.dtype),
    "label": lambda leaf: "frozen",  # of optax.multi_transform
    "long": lambda leaf: "x" * 10_000,
    "flag": lambda leaf: True,  # of a filter
    "axis": lambda leaf: 0,  # of in_axes
    "number": lambda leaf: np.float32(1),
    "dtype": lambda leaf: leaf.dtype,
    "spec": lambda leaf: PartitionSpec("x"),
    "sharding": lambda leaf: SingleDeviceSharding(jax.devices()[0]),
    "function": lambda leaf: np.sin,
    "tuple": lambda leaf: (1, 2),
    "object": lambda leaf: object(),
    "hostile": lambda leaf: Hostile(),
    "fewer dimensions": lambda leaf: np.ones(()),
    "more dimensions": lambda leaf: np.ones((2, 3, 1, *leaf.shape)),
    "texts": lambda leaf: np.full(leaf.shape, "a"),
    "objects": lambda leaf: np.full(leaf.shape, None),
}
SHOWN = {
    "None": "None", "float0": "float0[", "ShapeDtypeStruct": "ShapeDtypeStruct(shape=", "label": "'frozen'", "long": "xxx...",
    "flag": "True", "spec": "('x',)", "sharding": "SingleDeviceSharding", "object": "<object object", "hostile": "<Hostile>",
}  # fmt: skip


def an_array(name):
    if name == "Permutation":  # a stack, since the indices of a single one are constant and so no leaf
        return sa.Permutation([[2, 0, 1, 3], [0, 3, 1, 2]])
    x = sample(name, (4, 4))
    return sample(name, (4, 4), dtype="complex64") if x is None else x


def printed(x):
    """All texts of an array."""
    log = sa.explain(lambda x: x, x)
    with sa.record() as record:
        try:
            sa.abs(x)
        except Exception:  # the leaf is not an array
            pass
    return [repr(x), str(x), f"{x}", x._repr_html_(), repr([x]), repr(log), log._repr_html_(), repr(record)]


@pytest.mark.each_parameter
@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("name", STRUCTURES)
def test_any_leaves(name):
    x = an_array(name)
    leaves, tree = jax.tree.flatten(x)
    for kind, make in LEAVES.items():
        odd = [make(leaf) for leaf in leaves]
        for chosen in (odd, [*odd[:1], *leaves[1:]], [*leaves[:-1], *odd[-1:]]):
            y = tree.unflatten(chosen)
            if kind == "None" and y._value[0][-1] is None and "background" in name and chosen[0] is not None:
                continue  # an array without a background
            short, html = repr(y), y._repr_html_()
            for text in (short, str(y), html):
                assert type(x).__name__ in text or "dimensions" in kind or kind in ("texts", "objects"), (kind, text)
                assert len(text) < 10_000
            if kind in SHOWN:
                assert SHOWN[kind] in short, (kind, short)
                assert SHOWN[kind] in html.replace("&#x27;", "'").replace("&lt;", "<").replace("&gt;", ">"), kind
        if isinstance(y, sa.Array) and x._value[0] != ():  # parts of parts, too
            z = jax.tree.map(make, x, is_leaf=lambda part: part is not x and isinstance(part, sa.Array))
            repr(z), str(z), z._repr_html_()


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("kind", LEAVES)
def test_explain_and_record(kind):
    """They describe operands in their tables."""
    for name in ("Diagonal", "Sparse", "LowRank", "Block", "Fourier"):
        x = jax.tree.map(LEAVES[kind], an_array(name))
        for text in printed(x):
            assert isinstance(text, str)


def test_gradients_of_index_parameters():
    """The derivative by coordinates that are parameters, since each matrix of the stack has its own."""
    S = sa.Sparse([[1.0, 2.0], [3.0, 4.0]], ([[0, 2], [0, 1]], [[1, 0], [1, 1]]), (3, 2))
    g = jax.grad(lambda S: jnp.sum(S.to_jax() ** 2), allow_int=True)(S)
    assert repr(g) == "Sparse([[2., 4.], [6., 8.]], float0[2, 2], float0[2, 2])" == str(g)
    assert "float0[2, 2]" in g._repr_html_()


def test_shapes_are_shown_by_explain():
    x = jax.eval_shape(lambda: sa.tridiagonal(jnp.ones(3), jnp.ones(4), jnp.ones(3)))
    assert sa.explain(sa.matmul, x, x).events[0].operands == ("Banded (4, 4)", "Banded (4, 4)")
    assert repr(x).startswith("Banded(ShapeDtypeStruct(shape=(3,), dtype=float64), ShapeDtypeStruct(")
    halves = jax.tree.map(lambda leaf: None, x)
    assert repr(halves) == "Banded(None, None, None)"
    assert sa.explain(lambda x: x, halves).result is not None


def test_what_a_printed_array_is_composed_of():
    L = sa.LowRank(np.ones((3, 1)), np.ones((3, 1)))
    assert repr(jax.tree.map(lambda leaf: None, L)) == "LowRank(Dense(None), Dense(None))"
    assert repr(jax.tree.map(lambda leaf: "frozen", sa.Sum(sa.Diagonal([1.0, 2.0, 3.0]), L))).count("'frozen'") == 3
