"""What is run in a process with eight devices: see tests/test_many_devices.py."""

import io
import pickle

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.sparse.linalg import cg
from scipy.linalg import toeplitz
from support import as_jax

import structarrays as sa
from devices.arrays import N, explicit, meshes, sharding, structures
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


def compared(name: str, keys=tuple(FUNCTIONS), kind: str = "auto") -> dict:
    """For a structure, under each function: what eight devices give, and what NumPy does."""
    A = structures()[name]
    keys = [key for key in keys if name != "LowRank" or key not in ("solve(A, x)", "slogdet(A)")]
    with meshes(kind):
        divided, vector = _divided(A)
        results = {key: FUNCTIONS[key](sa, divided, vector) for key in keys}
        if explicit():
            assert all(map(_lies_on_explicit_axes, jax.tree.leaves((divided, vector, results))))
        return {key: (np.asarray(results[key]), FUNCTIONS[key](np, np.asarray(A), x)) for key in keys}


def _lies_on_explicit_axes(leaf: jax.Array) -> bool:
    """Whether the type of an array says that it lies on the mesh; JAX makes what is computed from no array on one device."""
    there = jax.typeof(leaf).sharding.mesh.axis_types == (jax.sharding.AxisType.Explicit,)
    return there or len(leaf.sharding.device_set) == 1


def kept(name: str) -> dict:
    """The classes of what functions that know the structure make of it on eight devices, and on one."""
    A = structures()[name]
    keys = ("A @ x", "A @ A", "A * A", "A - 1", "exp(A)", "A.mT")
    operands = _divided(A), (A, sa.asarray(x))
    return {key: tuple(type(FUNCTIONS[key](sa, *args)).__name__ for args in operands) for key in keys}


def _divided(A) -> tuple:
    """A matrix and the vector on eight devices."""
    return A.to_device(sharding("rows", None)), sa.asarray(x).to_device(sharding("rows"))


def transformed(name: str, kind: str = "auto") -> dict:
    """The same of programs under JAX's transformations: what eight devices give, and what one does."""
    with meshes(kind):
        return _transformed(name)


def _transformed(name: str) -> dict:
    A = structures()[name]
    scale = sa.reshape(sa.arange(1.0, 9.0), (8, 1, 1))

    def loss(A, x):
        return as_jax(sa.sum((A @ x) ** 2))

    def iterated(A, x):
        def step(carry, _):
            A, x = carry
            return (A, A @ x), as_jax(sa.sum(x))

        (A, x), sums = jax.lax.scan(step, (A, x), None, length=3)
        return as_jax(A @ x), sums

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


def by_background(kind: str) -> tuple:
    """Derivatives of a sum of squares by the background of a banded matrix on eight devices, eager and compiled, and NumPy's."""

    def loss(c, A, x):
        leaves, tree = jax.tree.flatten(A)
        return as_jax(sa.sum((jax.tree.unflatten(tree, [*leaves[:-1], c]) @ x) ** 2))

    A = structures()["Banded + background"]
    i = np.arange(A.shape[0])
    outside = ~np.isin(i - i[:, None], A.offsets)
    expected = 2 * (np.asarray(A) @ x) @ (outside @ x)
    with meshes(kind):
        divided, vector = _divided(A)
        derivative = jax.grad(loss)
        return [np.asarray(f(divided.background, divided, vector)) for f in (derivative, jax.jit(derivative))], expected


def shares(name: str) -> list:
    """For each parameter of a matrix on eight devices, and of twice the matrix, its size and that of its largest piece."""
    A = structures()[name].to_device(sharding("rows", None))
    leaves = jax.tree.leaves((A, A * 2.0))
    return [(leaf.size, max(piece.data.size for piece in leaf.addressable_shards)) for leaf in leaves]


def moved(program: str, n: int, kind: str = "auto") -> list:
    """What the devices send each other: for each collective operation its name and the bytes that a device gets."""
    with meshes(kind):
        return collectives(PROGRAMS[program], n)


def round_trip() -> tuple:
    """An array on the mesh and back on one device, also by a pickle and a file; arrays made next to it."""
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


def error(spec: tuple, shape: tuple, kind: str = "auto") -> str:
    """What is said of a specification that does not do."""
    with meshes(kind):
        try:
            sa.Diagonal(np.ones(shape)).to_device(sharding(*spec))
        except ValueError as raised:
            return str(raised)
    return "nothing raised"


def two_axes(name: str, types: tuple = ("Auto", "Auto")) -> list:
    """A stack of matrices on a mesh of two by four devices, divided along the batch and the rows, or rows and columns, next to one device."""
    grid = jax.make_mesh((2, 4), ("a", "b"), axis_types=tuple(getattr(jax.sharding.AxisType, t) for t in types))
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


def with_jax(kind: str) -> dict:
    """Programs in which arrays of JAX and ours on the same mesh meet: what eight devices give, what NumPy does, and how the result must
    be divided.
    """
    with meshes(kind):
        return {
            key: (np.asarray(result), want, _spec(result), _spec(result) if where is None else where)
            for key, (result, want, where) in _with_jax().items()
        }


def _spec(result) -> tuple:
    """How the type of a result says that it is divided."""
    return tuple(jax.typeof(as_jax(result) if isinstance(result, sa.Array) else result).sharding.spec)


def _with_jax() -> dict:
    A = structures()["Banded"]
    dense, rows, by_rows = np.asarray(A), ("rows",), ("rows", None)
    B, v = A.to_device(sharding(*by_rows)), jax.device_put(x, sharding("rows"))
    M = jax.device_put(dense, sharding(*by_rows))
    whole = jax.device_put(np.stack([x, 2 * x]), sharding(None, "rows"))

    @jax.jit
    def make():
        i = jnp.arange(N, dtype=float)
        return sa.tridiagonal(-jnp.ones(N - 1), 2.0 + i, -jnp.ones(N - 1)).to_device(sharding(*by_rows)), sa.ones(
            (N,), device=sharding("rows")
        )

    made, ones = make()
    near = np.diag(2.0 + np.arange(N)) - np.eye(N, k=1) - np.eye(N, k=-1)
    written = sa.asarray(v, copy=True)
    written[3], written[5:9], written[sa.asarray([11, 12])] = 7.0, 8.0, 9.0
    expected = x.copy()
    expected[3], expected[5:9], expected[[11, 12]] = 7.0, 8.0, 9.0
    banded = sa.asarray(B, copy=True)
    banded[2, 2] = 5.0
    changed = dense.copy()
    changed[2, 2] = 5.0
    column = np.random.default_rng(2).normal(size=N)
    solve = sa.structured(lambda A, b: cg(lambda v: A @ v, b, tol=1e-15)[0])
    return {
        "Banded @ JAX": (B @ v, dense @ x, rows),
        "JAX @ Banded": (v @ B, x @ dense, rows),
        "result + JAX": ((B @ v) + v, dense @ x + x, rows),
        "in jit": (jax.jit(lambda A, v: (A @ v) * v)(B, v), dense @ x * x, rows),
        "made in jit": (made @ ones, near @ np.ones(N), rows),
        "diagonals": (B.diagonals[2], np.diagonal(dense), rows),
        "shorter diagonals": (B.diagonals[1], np.diagonal(dense, -1), (None,)),
        "scan of solve": (
            jax.lax.scan(lambda v, _: (sa.linalg.solve(B, v), None), v, None, length=2)[0],
            np.linalg.solve(dense, np.linalg.solve(dense, x)),
            rows,
        ),
        "JAX's solver": (solve(made, v), np.linalg.solve(near, x), rows),
        "structured": (
            sa.structured(lambda A, v: jnp.tanh(A) @ v + jnp.dot(v, v) * v)(B, v),
            np.tanh(dense) @ x + x @ x * x,
            rows,
        ),
        "vmap": (jax.vmap(lambda v: B @ v)(whole), np.stack([x, 2 * x]) @ dense.T, (None, "rows")),
        "jit(grad)": (
            jax.jit(jax.grad(lambda A: sa.sum((A @ v) ** 2)))(B).diagonals[2],
            2 * (dense @ x) * x,
            rows,
        ),
        "Toeplitz of JAX": (sa.Toeplitz(jax.device_put(column, sharding("rows"))) @ v, toeplitz(column) @ x, None),
        "Dense @ Dense": (sa.asarray(M).mT @ sa.asarray(M), dense.T @ dense, None),
        "Dense.mT": (sa.asarray(M).mT, dense.T, (None, "rows")),
        "Sparse.from_dense": (sa.Sparse.from_dense(M) @ v, dense @ x, rows),
        "x @ y": (sa.asarray(v) @ v, x @ x, ()),
        "slice": (sa.asarray(v)[1:], x[1:], (None,)),
        "write": (written, expected, rows),
        "write, Banded": (banded.to_dense(), changed, by_rows),
        "linspace": (sa.linspace(0.0, 1.0, N, device=sharding("rows")), np.linspace(0.0, 1.0, N), rows),
    }


def closed_over() -> str:
    """The hint for a function under `structured` that uses an array on explicit axes from outside."""
    with meshes("explicit"):
        A, v = _divided(structures()["Diagonal"])
        try:
            sa.structured(lambda A: A @ v.data)(A)
        except ValueError as raised:
            return "".join(raised.__notes__)
    return "nothing raised"
