"""What is run in a process with eight devices: see tests/test_many_devices.py."""

import io
import pickle

import jax
import numpy as np

import structarrays as sa
from devices.arrays import N, explicit, sharding, structures
from devices.communication import PROGRAMS, collectives

x = np.random.default_rng(1).normal(size=N)

FUNCTIONS = {
    "A @ x": lambda xp, A, x: A @ x,
    "A @ A": lambda xp, A, x: A @ A,
    "A * A": lambda xp, A, x: A * A,
    "A - 1": lambda xp, A, x: A - 1.0,
    "x[:, None] * A": lambda xp, A, x: x[:, None] * A,
    "exp(A)": lambda xp, A, x: xp.exp(A),
    "A.mT": lambda xp, A, x: A.mT,
    "A[3, 5]": lambda xp, A, x: A[3, 5],
    "A[8:16]": lambda xp, A, x: A[8:16],
    "concat": lambda xp, A, x: xp.concat([A, A]),
    "sum(A)": lambda xp, A, x: xp.sum(A),
    "sum(A, axis=0)": lambda xp, A, x: xp.sum(A, axis=0),
    "var(A, axis=0)": lambda xp, A, x: xp.var(A, axis=0),
    "max(A, axis=1)": lambda xp, A, x: xp.max(A, axis=1),
    "cumulative_sum": lambda xp, A, x: xp.cumulative_sum(A, axis=0),
    "diagonal(A)": lambda xp, A, x: xp.linalg.diagonal(A),
    "solve(A, x)": lambda xp, A, x: xp.linalg.solve(A, x),
    "slogdet(A)": lambda xp, A, x: xp.linalg.slogdet(A)[1],
    "unique_values(A)": lambda xp, A, x: xp.unique_values(A),
}
"""Functions of a namespace, a matrix and a vector."""


def compared(name: str) -> dict:
    """For a structure, under each function: what eight devices give, and what NumPy does."""
    A = structures()[name]
    divided, vector = _divided(A)
    keys = [key for key in FUNCTIONS if name != "LowRank" or key not in ("solve(A, x)", "slogdet(A)")]
    return {
        key: (np.asarray(FUNCTIONS[key](sa, divided, vector)), FUNCTIONS[key](np, np.asarray(A), x)) for key in keys
    }


def kept(name: str) -> dict:
    """The classes of what functions that know the structure make of it on eight devices, and on one."""
    A = structures()[name]
    keys = ("A @ x", "A @ A", "A * A", "A - 1", "exp(A)", "A.mT")
    operands = _divided(A), (A, sa.asarray(x))
    return {key: tuple(type(FUNCTIONS[key](sa, *args)).__name__ for args in operands) for key in keys}


def _divided(A) -> tuple:
    """A matrix and the vector on eight devices."""
    return A.to_device(sharding("rows", None)), sa.asarray(x).to_device(sharding("rows"))


def transformed(name: str) -> dict:
    """The same of programs under JAX's transformations: what eight devices give, and what one does."""
    A = structures()[name]
    scale = sa.reshape(sa.arange(1.0, 9.0), (8, 1, 1))

    def loss(A, x):
        return sa.sum((A @ x) ** 2).to_jax()

    def iterated(A, x):
        def step(carry, _):
            A, x = carry
            return (A, A @ x), sa.sum(x).to_jax()

        (A, x), sums = jax.lax.scan(step, (A, x), None, length=3)
        return (A @ x).to_jax(), sums

    programs = {
        "jit": lambda A, stack, x: jax.jit(loss)(A, x),
        "grad": lambda A, stack, x: np.asarray(sa.grad(loss)(A, x)),
        # Over an axis that is divided JAX maps only what is not divided along the same explicit axis.
        "vmap": lambda A, stack, x: jax.vmap(loss, (0, None))(
            stack, x.to_device(x.device) if explicit() and x is vector else x
        ),
        "scan": lambda A, stack, x: np.concatenate([np.ravel(part) for part in iterated(A, x)]),
    }
    alone = A, A * scale, sa.asarray(x)
    matrix, vector = _divided(A)
    divided = matrix, (A * scale).to_device(sharding("rows")), vector
    if name == "Permutation":
        del programs["grad"]  # it has nothing to differentiate by
    return {key: (np.asarray(f(*divided)), np.asarray(f(*alone))) for key, f in programs.items()}


def shares(name: str) -> list:
    """For each parameter of a matrix on eight devices, and of twice the matrix, its size and that of its largest piece."""
    A = structures()[name].to_device(sharding("rows", None))
    leaves = jax.tree.leaves((A, A * 2.0))
    return [(leaf.size, max(piece.data.size for piece in leaf.addressable_shards)) for leaf in leaves]


def moved(program: str, n: int) -> list:
    """What the devices send each other: for each collective operation its name and the bytes that a device gets."""
    return collectives(PROGRAMS[program], n)


def round_trip() -> tuple:
    """An array on the mesh and back on one device, also by a pickle and a file; arrays made beside it."""
    A = structures()["Banded"]
    divided = A.to_device(sharding("rows", None))
    file = io.BytesIO()
    sa.save(file, divided)
    file.seek(0)
    back = [divided.to_device(jax.devices()[0]), pickle.loads(pickle.dumps(divided)), sa.load(file)]
    beside = A.to_device(sharding("rows", None)).device
    made = [
        sa.eye(N, device=sharding("rows", None)),
        sa.zeros((N, 2), device=sharding("rows")),
        sa.ones(3, device=beside),
    ]
    made += [
        sa.asarray([1.0, 2.0, 3.0], device=beside),
        sa.eye(N, k=1, device=sharding("rows", None)),
        sa.zeros_like(A.to_device(sharding("rows"))),
    ]
    return (
        all(jax.tree.structure(x) == jax.tree.structure(A) for x in back),
        all(bool(sa.all(x.to_dense() == A.to_dense())) for x in back),
        [len(leaf.sharding.device_set) for x in made for leaf in jax.tree.leaves(x)],
    )


def error(spec: tuple, shape: tuple, explicit: bool = False) -> str:
    """What is said of a specification that does not do."""
    where = sharding(*spec)
    if explicit:
        where = jax.sharding.NamedSharding(
            jax.make_mesh((8,), ("rows",), axis_types=(jax.sharding.AxisType.Explicit,)), where.spec
        )
    try:
        sa.Diagonal(np.ones(shape)).to_device(where)
    except ValueError as raised:
        return str(raised)
    return "nothing raised"


def two_axes(name: str) -> list:
    """A stack of matrices on a mesh of two by four devices, divided along the batch and the rows, or rows and columns, beside one device."""
    grid = jax.make_mesh((2, 4), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    A = structures()[name]
    stack = A * sa.reshape(sa.arange(1.0, 3.0), (2, 1, 1))
    results = []
    for matrix, spec in (
        (stack, ("a", "b")),
        (stack, (None, "a", "b")),
        (A, ("a", "b")),
        (A, (("a", "b"),)),
        (A, (None, "b")),
    ):
        divided = matrix.to_device(jax.sharding.NamedSharding(grid, jax.sharding.PartitionSpec(*spec)))
        for function in (lambda M: M @ x, lambda M: sa.sum(sa.exp(M), axis=-1), lambda M: (M @ M) @ x):
            results.append((np.asarray(function(divided)), np.asarray(function(matrix))))
    return results
