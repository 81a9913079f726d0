"""Names of parameters in paths of `jax.tree`, which Orbax, Equinox and messages of JAX show."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import structarrays as sa
from structarrays import extend

ONES = jnp.ones((3, 3))
T = sa.tridiagonal(jnp.ones(2), jnp.ones(3), jnp.ones(2))
COORDS = np.array([0, 1]), np.array([1, 2])
ARRAYS = {
    ".data": lambda: sa.asarray(ONES),
    ".diag": lambda: sa.Diagonal(jnp.ones(3)),
    ".diagonals[0] .diagonals[1] .diagonals[2]": lambda: T,
    ".diagonals[0] .diagonals[1] .diagonals[2] .background": lambda: T + 1.0,
    ".blocks[0]": lambda: sa.BlockDiagonal(jnp.ones((2, 3, 3))),
    ".parts[0].diag .parts[1].data .parts[2].data .parts[3].diag": lambda: sa.Block(
        [[sa.Diagonal(jnp.ones(3)), ONES], [ONES, sa.Diagonal(jnp.ones(3))]]
    ),
    ".values": lambda: sa.Toeplitz(jnp.ones(3)),
    ".c": lambda: sa.Circulant(jnp.ones(3)),
    ".value": lambda: sa.Fill(2.0, (3, 3)),
    ".factors[0].data .factors[1].diagonals[0] .factors[1].diagonals[1] .factors[1].diagonals[2]": lambda: sa.Kronecker(
        ONES, T
    ),
    ".terms[0].values .terms[1].u.data .terms[1].v.data": lambda: (
        sa.Toeplitz(jnp.ones(40)) + sa.LowRank(jnp.ones((40, 1)), jnp.ones((40, 1)))
    ),
    ".u.data .v.data": lambda: sa.LowRank(jnp.ones((3, 1)), jnp.ones((4, 1))),
    ".data ": lambda: sa.Symmetric(ONES),
    ".v.data .tau.data": lambda: sa.linalg.qr(sa.tridiagonal(jnp.ones(59), jnp.ones(60), jnp.ones(59))).Q,
}


def paths(x):
    return " ".join(jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(x)[0])


@pytest.mark.parametrize("expected", ARRAYS, ids=lambda text: text or "none")
def test_names(expected):
    x = ARRAYS[expected]()
    assert paths(x) == expected.strip()
    model = {"weights": x}
    mapped = jax.tree_util.tree_map_with_path(lambda path, leaf: leaf, model)["weights"]
    assert type(mapped) is type(x) and mapped.shape == x.shape


def test_constant_indices_are_not_leaves():
    assert paths(sa.Sparse(jnp.ones(2), COORDS, (3, 3))) == ".data"
    seen = []

    @jax.jit
    def inside(rows):
        seen.append(paths(sa.Sparse(jnp.ones(2), (rows, rows + 1), (3, 3)) + 1.0))

    inside(jnp.array([0, 1]))
    assert seen == [".data .coords[0] .coords[1] .background"]


def test_names_are_attributes():
    for make in ARRAYS.values():
        x = make()
        for (key, *_), _ in jax.tree_util.tree_flatten_with_path(x)[0]:
            name, _, index = key.name.partition("[")
            value = getattr(x, name)
            assert value[int(index[:-1])] is not None if index else value is not None


def test_more_parameters_than_names_are_numbered():
    class Pair(extend.Array):
        __slots__ = ()
        parameter_names = ("first",)

        @staticmethod
        def shape_of(leaves, meta):
            return leaves[0].shape

    assert paths(Pair.make((jnp.ones(2),))) == ".first"
    assert paths(Pair.make((jnp.ones(2), jnp.ones(2)))) == ".parameter0 .parameter1"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("data", "must be a tuple of strings, got 'data'"),
        (None, "must be a tuple of strings, got None"),
        (("a[]", "b[]"), "at most one name that ends in"),
        (("u", "u"), "must be different"),
    ],
)
def test_wrong_names(names, message):
    with pytest.raises(TypeError, match=f"class Wrong: parameter_names .*{message}"):
        type("Wrong", (extend.Array,), {"__slots__": (), "parameter_names": names})


def test_generators_have_numbers():
    class Pair(extend.GeneratorArray):
        __slots__ = ()

        @staticmethod
        def shape_of(leaves, meta):
            return 2 * leaves[0].shape

    assert paths(Pair.make((jnp.ones(2), jnp.ones(2)))) == ".parameter0 .parameter1"
