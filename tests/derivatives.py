"""Derivatives of first and second order in every way that JAX has, and by differences of values that NumPy computes."""

import itertools
import zlib

import jax
import jax.numpy as jnp
import numpy as np

import structarrays as sa

STEP = 2.0**-8
WEIGHTS = (3 / 4, -3 / 20, 1 / 60)  # of central differences of order 6
DIRECTIONS = 3
TOLERANCE = 1e-7  # of differences; different orders of derivatives agree to a hundredth of it


class Numbers:
    """Consecutive parts of a vector of parameters as arrays; the vector may be one of NumPy, of JAX, or a tracer."""

    def __init__(self, values):
        self.values, self.used = values, 0

    def __call__(self, *shape):
        start, self.used = self.used, self.used + int(np.prod(shape))
        return self.values[start : self.used].reshape(shape)

    def complex(self, *shape):
        """Complex numbers, of two parameters each."""
        return self(*shape) + 1j * self(*shape)

    def few(self, *shape):
        """Many numbers that depend on two parameters only: for matrices too large for a parameter an entry."""
        fixed = generator(f"few {shape}").uniform(-1, 1, (3, *shape))
        one, two = self(2)
        return fixed[0] + one * fixed[1] + two * fixed[2]


def generator(name):
    """Random numbers that depend on a name alone."""
    return np.random.default_rng(zlib.crc32(name.encode()))


class Case:
    """A function of a vector to weighted sums of the results of several functions, here and in NumPy.

    Parameters
    ----------
    name : str
        All random numbers follow from it.
    build : callable
        ``build(numbers, make)``, to the operands: those of `structarrays` or of NumPy, whichever `make` makes.
    functions : dict
        For each name a pair of functions of the operands, to an array or a tuple of arrays: the one that is tested and the oracle.
    makers : pair
        What `build` gets for the one and the other.
    constants : dict
        Other points than the random one at which there are derivatives, by name: the value of all parameters.
    """

    def __init__(self, name, build, functions, makers, constants):
        self.name, self.build, self.functions, self.makers = name, build, functions, makers
        rng = generator(name)
        drawn = Numbers(rng.uniform(-1, 1, 1000))
        operands = build(drawn, makers[1])
        self.points = {"random": drawn.values[: drawn.used]}
        self.points |= {key: np.full(drawn.used, value) for key, value in constants.items()}
        self.directions = rng.uniform(-1, 1, (DIRECTIONS, drawn.used))
        self.weights = {}
        for key, (_, oracle) in functions.items():
            shapes = [np.shape(result) for result in results(oracle(*operands))]
            self.weights[key] = [rng.uniform(-1, 1, (2, *shape)) for shape in shapes]

    def tested(self, key, point):
        """The weighted sum of the results of one function: a scalar of JAX."""
        operands = self.build(Numbers(point), self.makers[0])
        return self._sum(key, [dense(r) for r in results(self.functions[key][0](*operands))], jnp)

    def oracle(self, point):
        """All weighted sums, by NumPy."""
        operands = self.build(Numbers(point), self.makers[1])
        return np.array([self._sum(key, results(f(*operands)), np) for key, (_, f) in self.functions.items()])

    def _sum(self, key, values, xp):
        total = 0.0
        for weights, value in zip(self.weights[key], values, strict=True):
            assert weights.shape[1:] == value.shape, (key, weights.shape[1:], value.shape)
            total = total + xp.sum(weights[0] * xp.real(value)) + xp.sum(weights[1] * xp.imag(value))
        return total


def results(value):
    """A result, or the results, as a list."""
    return list(value) if isinstance(value, tuple | list) else [value]


def dense(x):
    return x.to_jax() if isinstance(x, sa.Array) else jnp.asarray(x)


# ---- by JAX ----------------------------------------------------------------------------------------------------------


def derivatives(f, point, direction):
    """First and second derivatives of a scalar function in every order of forward and reverse mode."""
    gradient = jax.grad(f)

    def change(point):
        return jax.jvp(f, (point,), (direction,))[1]

    return {
        "value": f(point),
        "forward": change(point),
        "reverse": gradient(point),
        "forward over reverse": jax.jvp(gradient, (point,), (direction,))[1],
        "reverse over forward": jax.grad(change)(point),
        "reverse over reverse": jax.grad(lambda point: jnp.vdot(gradient(point), direction))(point),
    }


# ---- by differences --------------------------------------------------------------------------------------------------


def differences(case, point):
    """Values, derivatives along each direction, and second ones along each and the first one, each an array of one number a function."""
    first = case.directions[0]
    stencil = [(sign * k, sign * w) for k, w in zip((1, 2, 3), WEIGHTS, strict=True) for sign in (1, -1)]
    slopes, curvatures = [], []
    for direction in case.directions:
        steps = [(w, case.oracle(point + k * STEP * direction)) for k, w in stencil]
        slopes.append(sum(w * value for w, value in steps) / STEP)
        steps = [
            (w * v, case.oracle(point + STEP * (k * direction + m * first)))
            for (k, w), (m, v) in itertools.product(stencil, stencil)
        ]
        curvatures.append(sum(w * value for w, value in steps) / STEP**2)
    return case.oracle(point), slopes, curvatures


# ---- both ------------------------------------------------------------------------------------------------------------


def faults(case, point, found, tolerance=TOLERANCE):
    """Which derivatives at a point are wrong: a list of sentences."""
    wrong, expected = [], differences(case, case.points[point])

    def compare(what, actual, wanted, size, tolerance):
        if not np.all(np.abs(actual - wanted) <= tolerance * size):  # so is NaN
            wrong.append(f"{case.name}, {point}, {what}: {actual} instead of {wanted}")

    for i, key in enumerate(case.functions):
        here = {order: np.asarray(value) for order, value in found[key].items()}
        value, slopes, curvatures = (np.array(part)[..., i] for part in expected)
        gradient = here["reverse"]
        # Sums are compared, of terms of this size, of which little may be left.
        scale = max(1e-3 * abs(float(value)), float(np.sum(np.abs(gradient))), 1e-9)
        compare(f"{key}: value", here["value"], value, max(1.0, abs(float(value))), 1e-10)
        compare(f"{key}: forward", here["forward"], slopes[0], scale, tolerance)
        for direction, slope in zip(case.directions, slopes, strict=True):
            compare(f"{key}: reverse", gradient @ direction, slope, scale, tolerance)
        hessian = here["forward over reverse"]
        scale = max(scale, float(np.sum(np.abs(hessian))))
        for direction, curvature in zip(case.directions, curvatures, strict=True):
            compare(f"{key}: forward over reverse", hessian @ direction, curvature, scale, tolerance)
        for order in ("reverse over forward", "reverse over reverse"):
            compare(f"{key}: {order}", here[order], hessian, scale, tolerance / 100)
    return wrong
