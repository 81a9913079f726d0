"""Programs whose Jacobian has a structure: for each a function, the shape of its argument, and the structure in forward and
reverse mode and of the Hessian of the sum of squares ("dense" if it has none).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

N = 24


class Program(NamedTuple):
    function: object
    shape: tuple
    structure: str = "Banded"
    hessian: str = "Banded"


PROGRAMS = {}


def program(shape=(N,), structure="Banded", hessian=None):
    def register(function):
        PROGRAMS[function.__name__] = Program(function, shape, structure, hessian or structure)
        return function

    return register


# ---- one dimension ---------------------------------------------------------------------------------------------------


@program(structure="Diagonal")
def elementwise(u):
    return jnp.sin(u) * u + jnp.exp(-(u**2)) / (1 + u**2)


@program()
def differences(u):
    return (u[1:] - u[:-1]) ** 2


@program()
def diffusion_dirichlet(u):
    u = jnp.pad(u, 1)
    return u[2:] - 2 * u[1:-1] + u[:-2]


@program()
def diffusion_dirichlet_values(u):
    wide = jnp.concatenate([jnp.array([1.0], u.dtype), u, jnp.array([2.0], u.dtype)])
    return jnp.tanh(wide[2:] - wide[1:-1]) - jnp.tanh(wide[1:-1] - wide[:-2])


@program()
def diffusion_neumann(u):
    u = jnp.pad(u, 1, mode="edge")
    return (u[2:] - 2 * u[1:-1] + u[:-2]) * u[1:-1]


@program()
def diffusion_reflecting(u):
    u = jnp.pad(u, 2, mode="reflect")
    return u[4:] - 4 * u[3:-1] + 6 * u[2:-2] - 4 * u[1:-3] + u[:-4]


@program()
def diffusion_robin(u):
    left, right = 0.5 * u[:1] + 1.0, u[-1:] / (1 + u[-1:] ** 2)
    u = jnp.concatenate([left, u, right])
    return u[2:] - 2 * u[1:-1] + u[:-2]


@program()
def diffusion_periodic(u):
    return jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1) + u**3


@program()
def advection_periodic_wrap(u):
    wide = jnp.pad(u, 1, mode="wrap")
    return u * (wide[2:] - wide[:-2])


@program()
def boundary_rows(u):
    return jnp.concatenate([u[:1] - 1.0, u[:-2] - 2 * u[1:-1] + u[2:] + jnp.exp(u[1:-1]), u[-1:] ** 2])


@program()
def written_interior(u):
    return u.at[1:-1].add(0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]))


@program()
def written_boundary(u):
    r = jnp.convolve(u, jnp.array([1.0, -2.0, 1.0], u.dtype), mode="same")
    return r.at[0].set(u[0] ** 2).at[-1].set(0.0)


@program()
def convolution(u):
    return jnp.convolve(u, jnp.array([0.25, 0.5, 0.25], u.dtype), mode="same") + u**3


@program()
def gradients_of_numpy(u):
    return jnp.gradient(u) * u


@program()
def higher_order(u):
    return jnp.diff(u, n=3) ** 2


# ---- two and three dimensions ----------------------------------------------------------------------------------------


@program(shape=(8, 8))
def laplace_2d(u):
    p = jnp.pad(u, 1)
    return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u - jnp.exp(u)


@program(shape=(64,))
def laplace_2d_of_vector(u):
    p = jnp.pad(u.reshape(8, 8), 1, mode="edge")
    inner = p[1:-1, 1:-1]
    return (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * inner - inner**3).ravel()


@program(shape=(8, 8))
def laplace_2d_periodic(u):
    return sum(jnp.roll(u, s, a) for s in (-1, 1) for a in (0, 1)) - 4 * u + jnp.sin(u)


@program(shape=(8, 8))
def nine_points(u):
    kernel = jnp.array([[1.0, 4, 1], [4, -20, 4], [1, 4, 1]], u.dtype)
    return lax.conv_general_dilated(u[None, None], kernel[None, None], (1, 1), "SAME")[0, 0] / 6 + u**2


@program(shape=(8, 8))
def nonlinear_diffusion_2d(u):
    p = jnp.pad(u, 1)
    k = 1 + p**2
    fx = (k[1:, 1:-1] + k[:-1, 1:-1]) / 2 * (p[1:, 1:-1] - p[:-1, 1:-1])
    fy = (k[1:-1, 1:] + k[1:-1, :-1]) / 2 * (p[1:-1, 1:] - p[1:-1, :-1])
    return fx[1:] - fx[:-1] + fy[:, 1:] - fy[:, :-1]


@program(shape=(5, 5, 5))
def laplace_3d(u):
    p = jnp.pad(u, 1)
    c = slice(1, -1)
    return p[2:, c, c] + p[:-2, c, c] + p[c, 2:, c] + p[c, :-2, c] + p[c, c, 2:] + p[c, c, :-2] - 6 * u + jnp.tanh(u)


@program(shape=(6, 6, 6))
def laplace_3d_periodic(u):
    return sum(jnp.roll(u, s, a) for s in (-1, 1) for a in range(3)) - 6 * u


@program(shape=(6, 8), structure="Sparse", hessian="Diagonal")
def transposed_grid(u):
    return (u.T * 2 + jnp.cos(u.T)).ravel()


@program(shape=(2, 20))
def reaction_of_two_species(u):
    a, b = u
    wide = jnp.pad(u, ((0, 0), (1, 1)), mode="edge")
    diffusion = wide[:, 2:] - 2 * u + wide[:, :-2]
    return diffusion + jnp.stack([a - a * b, a * b - b])


# ---- finite volumes with limiters ------------------------------------------------------------------------------------


def minmod(a, b):
    return jnp.where(a * b > 0, jnp.sign(a) * jnp.minimum(jnp.abs(a), jnp.abs(b)), 0.0)


@program()
def upwind(u):
    right = jnp.roll(u, -1)
    flux = jnp.where(u + right > 0, u**2 / 2, right**2 / 2)
    return jnp.roll(flux, 1) - flux


@program()
def muscl_minmod(u):
    p = jnp.pad(u, 2, mode="edge")
    d = p[1:] - p[:-1]
    slope = minmod(d[:-1], d[1:])
    flux = (p[1:-1] + slope / 2) ** 2 / 2
    return flux[:-1][: u.size] - flux[1:][: u.size]


@program()
def van_leer(u):
    p = jnp.pad(u, 2, mode="wrap")
    d = p[1:] - p[:-1]
    slope = jnp.maximum(2 * d[1:] * d[:-1], 0) / (jnp.abs(d[1:]) + jnp.abs(d[:-1]) + 1e-3)
    flux = p[1:-1] + slope / 2
    return flux[:-2] - flux[1:-1]


@program()
def clipped(u):
    return jnp.clip(u[1:] - u[:-1], -0.1, 0.1) + jax.nn.relu(u[1:]) + jnp.maximum(u[:-1], u[1:])


# ---- networks with local layers --------------------------------------------------------------------------------------


@program()
def convolutional_network(u):
    w1 = jnp.linspace(-1, 1, 6).reshape(2, 1, 3).astype(u.dtype)
    w2 = jnp.linspace(1, -1, 6).reshape(1, 2, 3).astype(u.dtype)
    h = jax.nn.gelu(lax.conv_general_dilated(u[None, None], w1, (1,), "SAME"))
    return lax.conv_general_dilated(h, w2, (1,), "SAME")[0, 0]


@program(shape=(8, 3))
def pointwise_network(u):
    w = jnp.linspace(-1, 1, 15).reshape(3, 5).astype(u.dtype)
    return jax.nn.softplus(u @ w) @ w.T + jnp.ones(3, u.dtype)


@program(shape=(10, 3))
def batched_local_layer(u):
    w = jnp.linspace(-1, 1, 90).reshape(10, 3, 3).astype(u.dtype)
    return jnp.tanh(jnp.einsum("bij,bj->bi", w, u))


@program()
def mapped_cells(u):
    def cell(left, centre, right):
        return jax.nn.silu(left - centre) * jax.nn.sigmoid(right)

    return jax.vmap(cell)(u[:-2], u[1:-1], u[2:])


# ---- time stepping ---------------------------------------------------------------------------------------------------


def step(u):
    return u + 0.1 * (jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1) - u**3)


@program(shape=(40,), structure="Banded")
def three_steps_of_scan(u):
    return lax.scan(lambda u, _: (step(u), None), u, None, length=3)[0]


@program(structure="Diagonal")
def long_scan_of_equations(u):
    return lax.scan(lambda u, _: (u - 0.01 * u**3, None), u, None, length=200)[0]


@program(structure="Diagonal")
def while_loop_of_equations(u):
    return lax.fori_loop(0, 5, lambda i, u: u - 0.1 * jnp.sin(u) * (i + 1), u)


@program()
def while_loop_with_tolerance(u):
    def change(state):
        return state[0] < 3

    return lax.while_loop(change, lambda state: (state[0] + 1, 0.5 * jnp.tanh(state[1])), (0, u[1:] * u[:-1]))[1]


@program(shape=(6, 5))
def runs_of_all_times(u):
    """The residual of all time steps at once: block bidiagonal."""
    return jnp.concatenate([u[:1] ** 2, u[1:] - jax.vmap(step)(u[:-1])])


@program()
def checkpointed(u):
    return jax.checkpoint(lambda u: jnp.sin(u[1:] * u[:-1]))(u)


@program()
def conditional(u):
    return lax.cond(u[0] > 0.3, lambda u: u[1:] ** 2, lambda u: u[:-1] * 2.0, u)


# ---- gather, scatter, reductions -------------------------------------------------------------------------------------


@program(structure="Sparse")
def gathered(u):
    return u[np.array([3, 1, 4, 1, 5, 9, 2, 6])] ** 2 * u[jnp.arange(8)[::-1] * 2]


@program(structure="Sparse")
def finite_elements(u):
    left = np.array([0, 3, 5, 7, 2, 9, 11, 20, 15])
    right = np.array([1, 8, 6, 17, 12, 19, 10, 2, 16])
    force = (u[left] - u[right]) ** 3
    return jnp.zeros_like(u).at[left].add(force).at[right].add(-force)


@program(structure="Sparse", hessian="Banded")
def segments(u):
    return jax.ops.segment_sum(u**2, np.arange(N) // 3, N // 3)


@program(structure="Sparse", hessian="Banded")
def averaged(u):
    return u.reshape(-1, 4).mean(axis=1) ** 2


@program(structure="Sparse", hessian="Banded")
def pooled(u):
    return lax.reduce_window(u**2, 0.0, lax.add, (2,), (2,), "VALID")


@program(structure="Sparse", hessian="Diagonal")
def flipped(u):
    return jnp.flip(u) * jnp.arange(N)


@program(structure="Triangular", hessian="dense")
def cumulated(u):
    return jnp.cumsum(u**2)


@program(hessian="Diagonal")
def dynamic_windows(u):
    return lax.dynamic_update_slice(u, lax.dynamic_slice(u, (3,), (5,)) ** 2, (7,))


@program(hessian="Diagonal")
def selected_statically(u):
    return jnp.where(np.arange(N) % 2 == 0, u**2, jnp.roll(u, 1))


@program(structure="Banded")
def constant_matrix(u):
    return jnp.asarray(np.diag(np.ones(N - 1), 1) - np.eye(N), u.dtype) @ u**2


@jax.custom_vjp
def with_custom_vjp_rule(x):
    return x[1:] * x[:-1]


with_custom_vjp_rule.defvjp(
    lambda x: (x[1:] * x[:-1], x),
    lambda x, t: (jnp.pad(t * x[:-1], (1, 0)) + jnp.pad(t * x[1:], (0, 1)),),
)


# ---- without structure -----------------------------------------------------------------------------------------------


@program(structure="dense")
def normalised(u):
    return u / jnp.sqrt(jnp.sum(u**2))


@program(structure="dense")
def transformed(u):
    return jnp.real(jnp.fft.fft(u))


@program(structure="dense")
def sorted_values(u):
    return jnp.sort(u) ** 2
