"""Check an installed package: a solve, a file, and the version. Run it where the repository is not on the path."""

import tempfile
from importlib import metadata

import numpy as np

import structarrays as sa

T = sa.assume(sa.tridiagonal(-np.ones(9), 4 * np.ones(10), -np.ones(9)), "positive_definite")
x = sa.linalg.solve(T, sa.ones(10))
np.testing.assert_allclose(np.asarray(T.to_dense()) @ np.asarray(x), 1, rtol=1e-5)
with tempfile.TemporaryDirectory() as folder:
    sa.save(f"{folder}/T.npz", T)
    assert type(sa.load(f"{folder}/T.npz")) is sa.Banded
assert sa.__version__ == metadata.version("structarrays"), (sa.__version__, metadata.version("structarrays"))
print(f"structarrays {sa.__version__} from {sa.__file__}")
