"""Arrays divided among eight devices, which the processor plays, and among the devices of two processes."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from devices import checks
from devices.arrays import KINDS, structures
from devices.communication import PROGRAMS, table
from devices.two_processes import NAMES as NAMES_OF_TWO_PROCESSES
from elsewhere import process

import structarrays as sa

ROOT = Path(__file__).parents[1]
NAMES = list(structures())


def played(devices: int) -> dict[str, str]:
    """The environment in which a processor plays so many devices. They wait for each other, each in a thread for every collective
    operation that it has begun; where all threads wait (as many as there are cores, or devices) they wait forever.
    """
    flags = f"--xla_force_host_platform_device_count={devices} --xla_cpu_collective_call_terminate_timeout_seconds=600"
    return {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}", "PJRT_NPROC": str(16 * devices)}


@pytest.fixture(scope="module")
def eight():
    """A process with eight devices, whose number is settled when JAX starts."""
    with process(**played(8)) as pool:
        assert pool.submit(jax.device_count).result() == 8
        yield pool


@pytest.mark.costly
@pytest.mark.parametrize("name", NAMES)
def test_functions_of_divided_arrays(name, eight):
    """The values that NumPy has, to 1e-12."""
    for function, (got, want) in eight.submit(checks.compared, name).result().items():
        np.testing.assert_allclose(
            got, want, rtol=1e-12, atol=1e-12 * np.max(np.abs(want), initial=1), err_msg=function
        )


@pytest.mark.parametrize("name", NAMES)
def test_structure_of_divided_arrays(name, eight):
    for function, (got, want) in eight.submit(checks.kept, name).result().items():
        assert got == want, function


@pytest.mark.costly
@pytest.mark.parametrize("name", NAMES)
def test_transformations_of_divided_arrays(name, eight):
    for program, (got, want) in eight.submit(checks.transformed, name).result().items():
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12 * np.max(np.abs(want)), err_msg=program)


@pytest.mark.each_parameter
@pytest.mark.parametrize("kind", ["auto", "set"])
def test_derivatives_by_a_background(kind, eight):
    """They need running sums of one element more than the devices divide."""
    found, expected = eight.submit(checks.by_background, kind).result()
    np.testing.assert_allclose(found, [expected, expected], rtol=1e-12)


@pytest.mark.parametrize(
    "name", ["Diagonal", "Banded", "BlockDiagonal", "BlockBanded", "Sparse", "Dense", "Symmetric", "Triangular"]
)
def test_each_device_holds_its_part(name, eight):
    """An eighth of each parameter, and so of what a function makes of it, though diagonals have lengths that eight does not divide."""
    for size, piece in eight.submit(checks.shares, name).result():
        assert piece == -(-size // 8)


@pytest.mark.parametrize("program", [p for p in PROGRAMS if not p.startswith(("`solve", "`K", "`S"))])
def test_no_body_is_sent(program, eight):
    """What the devices send does not grow with the number of rows: edges, or a sum."""
    few, many = (eight.submit(checks.moved, program, n).result() for n in (1 << 10, 1 << 14))
    assert few == many
    assert sum(size for _, size in many) <= 256


def test_banded_matvec_sends_its_edges(eight):
    """A number from either neighbour for a tridiagonal matrix."""
    assert eight.submit(checks.moved, "`A @ x`, A tridiagonal", 1 << 14).result() == [("collective-permute", 8)] * 2


@pytest.mark.slow
def test_documented_communication(eight):
    """The table of docs/how_to/use_many_devices.md is what the compiled programs say."""
    page = (ROOT / "docs/how_to/use_many_devices.md").read_text()
    assert eight.submit(table, 1 << 20).result() in page


@pytest.mark.parametrize(
    "name", ["Dense", "Diagonal", "Banded", "BlockDiagonal", "Sparse", "LowRank", "Kronecker", "Product"]
)
def test_meshes_of_two_axes(name, eight):
    for got, want in eight.submit(checks.two_axes, name).result():
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12 * np.max(np.abs(want)))


@pytest.mark.slow
def test_the_page_runs_on_eight_devices():
    """As it does on one with the other pages; in a process where nothing ran before."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/test_documentation.py",
        "-k",
        "use_many_devices",
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")} | played(8)
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


def test_round_trip(eight):
    """On one device again, the array is what it was; what is made next to an array on a mesh lies on the mesh."""
    same_structure, same_values, devices = eight.submit(checks.round_trip).result()
    assert same_structure and same_values
    assert set(devices) == {8}


@pytest.mark.parametrize(
    ("spec", "shape", "message"),
    [
        (("rows", None), (20,), "dimension 0 of an array of shape (20, 20) must be a multiple of 8"),
        ((None, None, "rows"), (16,), "the sharding must have at most 2 entries"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_errors(spec, shape, message, kind, eight):
    assert message in eight.submit(checks.error, spec, shape, kind).result()


# ---- meshes with explicit axes, as `jax.make_mesh` makes them ---------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_functions_on_explicit_axes(name, eight):
    """The values that NumPy has, to 1e-12, on the same mesh."""
    kind = "explicit" if NAMES.index(name) % 2 else "set"
    keys = ("A @ x", "A.mT", "sum(A, axis=0)")
    for function, (got, want) in eight.submit(checks.compared, name, keys, kind).result().items():
        np.testing.assert_allclose(
            got, want, rtol=1e-12, atol=1e-12 * np.max(np.abs(want), initial=1), err_msg=function
        )


@pytest.mark.costly
@pytest.mark.parametrize("name", ["Diagonal", "Sparse", "Permutation"])
def test_transformations_on_explicit_axes(name, eight):
    for program, (got, want) in eight.submit(checks.transformed, name, "set").result().items():
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12 * np.max(np.abs(want)), err_msg=program)


@pytest.mark.costly
@pytest.mark.parametrize("kind", ["explicit", "set"])
def test_arrays_of_jax_on_explicit_axes(kind, eight):
    """They meet ours in all kinds of programs; the types of results say how these are divided."""
    for program, (got, want, spec, expected) in eight.submit(checks.with_jax, kind).result().items():
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11 * np.max(np.abs(want)), err_msg=program)
        assert spec == expected, program


@pytest.mark.parametrize("program", PROGRAMS)
def test_explicit_axes_send_the_same(program, eight):
    """The same operations and bytes as with axes of the type `Auto`, for each row of the table of docs/how_to/use_many_devices.md."""
    auto, explicit, in_set_mesh = (eight.submit(checks.moved, program, 1 << 10, kind).result() for kind in KINDS)
    assert sorted(auto) == sorted(explicit) == sorted(in_set_mesh)


@pytest.mark.parametrize(
    ("name", "types"),
    [("Banded", ("Auto", "Explicit")), ("Dense", ("Explicit", "Explicit"))],
    ids=["mixed", "explicit"],
)
def test_meshes_of_two_explicit_axes(name, types, eight):
    for got, want in eight.submit(checks.two_axes, name, types).result():
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12 * np.max(np.abs(want)))


def test_explicit_array_that_is_no_argument(eight):
    message = eight.submit(checks.closed_over).result()
    assert "pass the array as an argument" in message and "<lambda>" in message


@pytest.mark.slow
def test_two_processes():
    """Two processes with four devices each, which find each other on the loopback address, compute what one does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, **played(4), "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    command = [sys.executable, "-m", "devices.two_processes", f"127.0.0.1:{port}"]
    processes = [
        subprocess.Popen(
            [*command, str(i)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for i in (0, 1)
    ]
    outputs = [each.communicate(timeout=300)[0] for each in processes]
    for each, output in zip(processes, outputs, strict=True):
        assert each.returncode == 0, output
        assert "8 devices, 4 of them here" in output
        errors = [float(e) for e in re.findall(r"error (\S+)", output)]
        assert len(errors) == 4 * sum(map(len, NAMES_OF_TWO_PROCESSES.values()))
        assert max(errors) < 1e-12


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_one_device_is_a_mesh_too(kind):
    """On a mesh of one device an array is held, and computes, as without."""
    types = (getattr(jax.sharding.AxisType, kind),)
    where = jax.sharding.NamedSharding(jax.make_mesh((1,), ("rows",), types), jax.sharding.PartitionSpec("rows"))
    A = sa.tridiagonal([1.0], [2.0, 3.0], [4.0])
    B = A.to_device(where)
    assert jax.tree.structure(B) == jax.tree.structure(A)
    assert sa.all(B @ B == A @ A)
