"""The example runs as a reader would run it, and what it prints and draws is right."""

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("statsmodels")
pytest.importorskip("matplotlib")
pytest.importorskip("tqdm")

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "trend.py"
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLE), *arguments]
    # The package of this checkout, whatever else is installed.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)


@pytest.fixture(scope="module")
def example(tmp_path_factory) -> tuple[str, str, Path]:
    """Standard output, standard error and the picture of one run at a small size."""
    path = tmp_path_factory.mktemp("trend") / "picture.png"
    process = run("--n", "3000", "--output", str(path))
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout, process.stderr, path


@pytest.mark.slow
def test_it_agrees_with_statsmodels(example):
    output, _, _ = example
    assert "203 quarters from 1959 Q1 to 2009 Q3" in output
    difference = re.search(r"largest difference from statsmodels' hpfilter: (\S+)", output)
    assert float(difference.group(1)) <= 1e-8


@pytest.mark.slow
def test_every_check_holds(example):
    output, _, _ = example
    # statsmodels, LAPACK, memory, densifications, jvp, grad
    assert output.count("[ok]") == 6
    assert "FAILED" not in output
    assert output.rstrip().endswith("All checks hold.")


def test_it_says_what_ran_and_what_it_cost(example):
    output, errors, _ = example
    table = output.partition("sa.record()")[2].partition("no array was made dense")[0]
    assert "matmul" in table and "solve" in table and "Banded" in table
    for words in ("3,000 quarters", "first call", "later calls", "stored", "temporary", "jax.grad", "0 densifications"):
        assert words in output
    assert "100%" in errors  # the progress bar


def test_it_draws_a_picture(example):
    _, _, path = example
    content = path.read_bytes()
    assert content.startswith(PNG_SIGNATURE)
    width, height = struct.unpack(">II", content[16:24])
    assert width >= 1000 and height >= 700

    import numpy as np
    from matplotlib import image

    pixels = image.imread(path)[..., :3]
    # The two series, in their own colours: both panels have something in them.
    red = np.all(np.abs(pixels - np.array([0xC0, 0x39, 0x2B]) / 255) < 0.02, axis=-1)
    assert red.sum() > 500


@pytest.mark.slow
def test_another_lambda_gives_another_trend(tmp_path):
    process = run("--n", "500", "--lam", "6.25", "--output", str(tmp_path / "small.png"))
    assert process.returncode == 0, process.stdout + process.stderr
    assert "lambda = 6.25" in process.stdout


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("arguments", [("--n", "2"), ("--lam", "-1")])
def test_bad_options_are_refused(arguments):
    process = run(*arguments)
    assert process.returncode == 2
    assert "must be at least 5" in process.stderr


@pytest.mark.slow
def test_principal_components_of_a_sparse_matrix():
    pytest.importorskip("sklearn")
    path = ROOT / "examples" / "pca.py"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    command = [sys.executable, str(path), "--rows", "5000", "--columns", "300"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert process.returncode == 0, process.stdout + process.stderr
    assert process.stdout.count("[ok]") == 4 and "FAILED" not in process.stdout
    assert "is a Sum array" in process.stdout


@pytest.mark.slow
def test_a_gaussian_process_on_three_structures(tmp_path):
    path = ROOT / "examples" / "gaussian_process.py"
    picture = tmp_path / "picture.png"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    sizes = ["--weeks", "700", "--years", "3", "--iterations", "5", "--output", str(picture)]
    process = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", str(path), *sizes],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    # Two structures next to the dense one, the fit, the prediction
    assert process.stdout.count("[ok]") == 4 and "FAILED" not in process.stdout
    assert process.stdout.rstrip().endswith("All checks hold.")
    for words in ("700 weeks up to 2002.0", "Dense: stores", "Toeplitz: stores", "Sum of rank", "with its gradient"):
        assert words in process.stdout
    assert picture.read_bytes().startswith(PNG_SIGNATURE)


@pytest.mark.slow
def test_bad_options_of_the_gaussian_process_are_refused():
    path = ROOT / "examples" / "gaussian_process.py"
    command = [sys.executable, str(path), "--weeks", "100"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert process.returncode == 2 and "must be 400 to 2284" in process.stderr


@pytest.mark.slow
def test_estimators_on_a_large_design(tmp_path):
    path = ROOT / "examples" / "large_design.py"
    picture = tmp_path / "picture.png"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    command = [sys.executable, str(path), "--side", "120", "--rounds", "2", "--output", str(picture)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert process.returncode == 0, process.stdout + process.stderr
    assert process.stdout.count("[ok]") == 5 and "14,400 x 2,000" in process.stdout
    assert "2/2" in process.stderr  # the progress
    assert picture.read_bytes().startswith(PNG_SIGNATURE)


@pytest.mark.slow
@pytest.mark.each_parameter
@pytest.mark.parametrize(
    ("name", "options", "checks", "words"),
    [
        ("lora", ("--width", "128", "--steps", "100"), 5, ("Sum(Dense, LowRank)", "of the network")),
        ("heat_equation", ("--n", "2000", "--side", "40"), 9, ("Kvaerno5", "KroneckerSum", "jax.grad")),
        (
            "krylov",
            ("--series", "2000", "--places", "5000", "--pages", "2000"),
            5,
            ("by_cg", "by_gmres", "0 arrays made dense", "is a Banded array"),
        ),
    ],
)
def test_programs_that_nobody_here_wrote(name, options, checks, words):
    for library in ("diffrax", "equinox", "optax", "sklearn"):
        pytest.importorskip(library)
    path = ROOT / "examples" / f"{name}.py"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    command = [sys.executable, str(path), *options]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert process.returncode == 0, process.stdout + process.stderr
    assert process.stdout.count("[ok]") == checks and "FAILED" not in process.stdout
    assert process.stdout.rstrip().endswith("All checks hold.")
    for word in words:
        assert word in process.stdout


@pytest.mark.slow
def test_implicit_reaction_and_diffusion():
    path = ROOT / "examples" / "reaction_diffusion.py"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    command = [sys.executable, str(path), "--side", "30", "--steps", "3", "--large", "300"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert process.returncode == 0, process.stdout + process.stderr
    assert process.stdout.count("[ok]") == 6 and "FAILED" not in process.stdout
    assert process.stdout.rstrip().endswith("All checks hold.")


@pytest.mark.slow
def test_laplace_approximation():
    path = ROOT / "examples" / "laplace_approximation.py"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    command = [sys.executable, str(path), "--n", "5000"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert process.returncode == 0, process.stdout + process.stderr
    assert process.stdout.count("[ok]") == 7 and "FAILED" not in process.stdout
    assert process.stdout.rstrip().endswith("All checks hold.")


PACKAGE = ROOT / "examples" / "antidiagonal"


@pytest.mark.slow
def test_a_package_that_adds_a_structure_and_a_kernel():
    """Its own tests, in a process that finds it where it is; it takes no warning about the order of kernels."""
    paths = [str(PACKAGE / "src"), str(ROOT)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-W",
        "error::UserWarning",
        "--doctest-modules",
    ]
    process = subprocess.run(
        [*command, "-c", os.devnull, "--rootdir", str(PACKAGE), str(PACKAGE)],
        capture_output=True, text=True, timeout=300, check=False, env=environment,
    )  # fmt: skip
    assert process.returncode == 0, process.stdout + process.stderr
