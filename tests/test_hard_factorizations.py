"""First and second derivatives of factorisations and spectra of the matrices of `hard_inputs`.

Solutions and determinants follow from each factorisation, and have the derivatives that `test_hard_derivatives` knows.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from derivatives import derivatives
from support import as_jax
from test_hard_derivatives import WAYS, Line

import structarrays as sa
from structarrays import linalg

SOLUTIONS = {
    "inv": lambda a, b: linalg.inv(a) @ b,
    "pinv": lambda a, b: linalg.pinv(a) @ b,
    "lstsq": lambda a, b: linalg.lstsq(a, b).x,
    "lu_solve": lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b),
    "cho_solve": lambda a, b: linalg.cho_solve(linalg.cho_factor(a), b),
}

PIVOTS = {
    "qr": lambda a: linalg.diagonal(linalg.qr(a).R),
    "lu": lambda a: linalg.diagonal(linalg.lu(a)[2]),
    "svdvals": linalg.svdvals,
    "cholesky": lambda a: linalg.diagonal(linalg.cholesky(a)) ** 2,
    "ldl": lambda a: linalg.diagonal(linalg.ldl(a)[1]),
    "eigvalsh": linalg.eigvalsh,
    "eigvals": linalg.eigvals,
}
"""Numbers whose product is the determinant, but for its sign."""

DEFINITE = ("cho_solve", "cholesky", "ldl", "eigvalsh")
GENERAL = ("inv", "pinv", "lstsq", "lu_solve", "qr", "lu")

CASES = {
    "Banded: Dirichlet": ("pinv", "lu_solve", "qr", *DEFINITE, "svdvals"),
    "Banded: graded": ("inv", "lu_solve", "qr", "lu"),
    "Banded: zeros on the diagonal": ("inv", "lu_solve", "qr", "lu"),
    "Triangular: Kahan's": ("inv", "lu_solve", "qr", "lu"),
    "Symmetric: smooth kernel": ("inv", "pinv", "lstsq", "cho_solve", "cholesky", "ldl"),
    "Hermitian: smooth kernel": ("inv", "pinv", "lstsq", "cho_solve", "cholesky", "ldl"),
    "Circulant: nearly singular": (*GENERAL, "svdvals"),
    "Kronecker: smooth kernels": (*GENERAL, *DEFINITE, "svdvals"),
    "Block: saddle point": (*GENERAL, "svdvals"),
    "Block: bordered Laplacian": GENERAL,
}
"""The functions of each matrix.

Those by singular values are left out where these are repeated, and where elimination is accurate for each entry but these are not: for graded
and triangular matrices.
"""


class Factorizations(Line):
    """The derivatives of solutions and determinants by factorisations."""

    def __init__(self, name, rng):
        self.functions = CASES[name]
        super().__init__(name, rng, definite="cholesky" in self.functions)

    def found(self, directions):
        """All derivatives along one of the lines, for each function."""

        def value(name, t):
            a = self.at(t, directions)
            if name in SOLUTIONS:
                return jnp.sum(self.left * as_jax(SOLUTIONS[name](a, sa.asarray(self.right)))).real
            return jnp.sum(jnp.log(jnp.abs(as_jax(PIVOTS[name](a)))))

        return {name: derivatives(lambda t, name=name: value(name, t), 0.0, 1.0) for name in self.functions}


def check(line, way):
    """Compare the derivatives in all orders along one line, or along all if they are mapped."""
    expected, allowed = line.expected()
    lines = slice(None) if way == "mapped" else slice(0, 1)
    found = WAYS[way](line.found)([d if way == "mapped" else d[0] for d in line.directions])
    wrong = []
    for name, orders in found.items():
        for order, numbers in orders.items():
            if order == "value":
                continue
            i = 2 * (name in PIVOTS) + (" over " in order)
            if not np.all(np.abs(np.asarray(numbers) - expected[lines, i]) <= allowed[lines, i]):  # so is NaN
                wrong.append(f"{name}, {order}: {numbers} instead of {expected[lines, i]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.costly
@pytest.mark.parametrize("name", CASES)
def test_compiled(name, rng):
    check(Factorizations(name, rng), "compiled")


@pytest.mark.slow
@pytest.mark.costly
@pytest.mark.parametrize("way", ["eager", "mapped"])
@pytest.mark.parametrize("name", CASES)
def test_eager_and_mapped(name, way, rng):
    check(Factorizations(name, rng), way)
