"""Derivatives of determinants of a few rows, in rational numbers."""

import itertools
import math
from fractions import Fraction


def derivatives(c, f):
    """Return the derivatives of ``det(c + s f)`` by s at zero, of order 0 to n, from its exact coefficients."""
    n = len(c)
    coefficients = [Fraction(0)] * (n + 1)
    for columns in itertools.permutations(range(n)):
        term = [Fraction((-1) ** sum(a > b for a, b in itertools.combinations(columns, 2)))]
        for i, j in enumerate(columns):
            constant, slope = Fraction(float(c[i, j])), Fraction(float(f[i, j]))
            term = [constant * a + slope * b for a, b in zip([*term, 0], [0, *term], strict=True)]
        coefficients = [a + b for a, b in zip(coefficients, term, strict=True)]
    return [float(k) * math.factorial(i) for i, k in enumerate(coefficients)]
