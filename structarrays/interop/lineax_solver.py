"""A solver of Lineax that finds the structure of an operator (docs/how_to/optimize.md)."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx  # type: ignore[import-untyped]
import numpy as np
from jax import lax

from .._core.array.base import Array
from .._core.array.flattening import as_indices, barred
from .._core.dispatch.contexts import errstate
from .._core.dispatch.results import as_jax
from .._core.families.join import is_zero_outside
from .._functions.conversion import densified
from .._functions.linalg.systems import solve
from .._functions.linear_algebra import matmul, matrix_transpose
from .._functions.rounding_and_parts import conj
from .._structures.banded.array import Banded, bands
from .._structures.sparse.array import Sparse, is_plain_matrix
from ..transform.jacobian import jacobian

WIDEST = 64
"""The largest number of diagonals on each side up to which an augmented system is stored as a band."""


def matrix_of_products(operator: lx.AbstractLinearOperator) -> Array:
    """Return the matrix of an operator that has products only, in the structure that `jacobian` finds.

    Vectors that are pytrees are concatenated.
    """
    leaves, tree = jax.tree.flatten(operator.in_structure())
    dtype = jnp.result_type(*leaves)

    def product(vector: jax.Array) -> jax.Array:
        return _joined(operator.mv(_split(vector, (tuple(leaves), tree))))

    is_complex = jnp.issubdtype(dtype, jnp.complexfloating)
    result: Array = jacobian(product, holomorphic=is_complex)(jnp.zeros(sum(math.prod(s.shape) for s in leaves), dtype))
    return result


def _joined(vector: Any) -> jax.Array:
    """Return the concatenated leaves of a vector."""
    leaves = jax.tree.leaves(vector)
    dtype = jnp.result_type(*leaves)
    return jnp.concatenate([jnp.ravel(leaf).astype(dtype) for leaf in leaves])


_Structure = tuple[tuple[jax.ShapeDtypeStruct, ...], Any]


def _split(vector: jax.Array, structure: _Structure) -> Any:
    """Do the inverse of `_joined`."""
    leaves, tree = structure
    ends = np.cumsum([math.prod(s.shape) for s in leaves])
    parts = jnp.split(vector, ends[:-1])
    return jax.tree.unflatten(tree, [p.reshape(s.shape).astype(s.dtype) for p, s in zip(parts, leaves, strict=True)])


class _State(eqx.Module):
    """A matrix, or its transpose, between two kinds of vectors."""

    array: Any
    """The matrix; it has no more columns than rows."""
    transposed: bool = eqx.field(static=True)
    inputs: _Structure = eqx.field(static=True)
    outputs: _Structure = eqx.field(static=True)


class StructuredLinearSolver(lx.AbstractLinearSolver):  # type: ignore[misc]  # Lineax has no types
    """Direct solver for operators of any kind, by the structure of their matrices.

    The matrix of an operator is found as by `structarrays.jacobian`, from the products with the operator and without the dense
    form. It is then solved by its structure, such as a band. So Newton, Gauss-Newton and Levenberg-Marquardt methods of Optimistix
    and implicit methods of Diffrax take ``O(n)`` operations for local equations.

    Notes
    -----
    ==============  ==================================================================================================
    square          `structarrays.linalg.solve`
    more rows       least squares by an augmented system, as below
    more columns    the solution of least norm, by the augmented system of the transpose
    dense           a matrix without structure densifies, under the policy of `structarrays.densify`
    ==============  ==================================================================================================

    The matrix ``A`` must have full rank. The augmented system is ``[[a * I, A], [A^H, 0]]`` with normalized columns in ``A``,
    and ``a`` the square root of the rounding unit. Its rows and columns are in the order of Cuthill and McKee: a narrow band is
    factored as a band, and other patterns by a sparse solver. One step of iterative refinement follows. In contrast to the
    normal equations, the system does not square the condition number: the results are as accurate as by a QR decomposition
    (Björck, 1991).

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import lineax as lx
    >>> import structarrays as sa
    >>> solver = sa.interop.lineax.StructuredLinearSolver()
    >>> differences = lx.JacobianLinearOperator(lambda x, _: (jnp.diff(x, n=2), x), jnp.zeros(1000))
    >>> vector = (jnp.zeros(998), jnp.arange(1000.0))
    >>> with sa.densify("error"):
    ...     x = lx.linear_solve(differences, vector, solver).value
    >>> bool(jnp.allclose(x, jnp.arange(1000.0)))
    True
    """

    def init(self, operator: lx.AbstractLinearOperator, options: dict[str, Any]) -> _State:
        """Find the matrix of an operator."""
        from .lineax import from_operator

        array = from_operator(operator)
        inputs, outputs = (_static(s) for s in (operator.in_structure(), operator.out_structure()))
        wide = array.shape[0] < array.shape[1]
        return _State(matrix_transpose(array) if wide else array, wide, inputs, outputs)

    def compute(self, state: _State, vector: Any, options: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
        """Solve a linear system, or a least-squares problem."""
        right, array = _joined(vector), state.array
        with errstate(linalg="nan"):
            if array.shape[0] == array.shape[1]:
                solution = as_jax(solve(matrix_transpose(array) if state.transposed else array, right))
            elif _has_static_pattern(array):
                solution = _by_augmented_system(array, right, state.transposed)
            else:
                solution = _by_dense_form(array, right, state.transposed)
        return _split(solution, state.inputs), lx.RESULTS.successful, {}

    def transpose(self, state: _State, options: dict[str, Any]) -> tuple[_State, dict[str, Any]]:
        """Return the state of the transpose."""
        return _State(state.array, not state.transposed, state.outputs, state.inputs), {}

    def conj(self, state: _State, options: dict[str, Any]) -> tuple[_State, dict[str, Any]]:
        """Return the state of the complex conjugate."""
        return _State(conj(state.array), state.transposed, state.inputs, state.outputs), {}

    def assume_full_rank(self) -> bool:
        """Return that matrices must have full rank."""
        return True


def _static(structure: Any) -> _Structure:
    leaves, tree = jax.tree.flatten(structure)
    return tuple(jax.ShapeDtypeStruct(s.shape, s.dtype) for s in leaves), tree


def _by_dense_form(array: Array, right: jax.Array, transposed: bool) -> jax.Array:
    dense = lx.MatrixLinearOperator(
        densified(matrix_transpose(array) if transposed else array, "lineax: linear_solve").to_jax()
    )
    solution: jax.Array = lx.linear_solve(dense, right, lx.QR(), throw=False).value
    return solution


# ---- least squares by an augmented system ----------------------------------------------------------------------------


def _by_augmented_system(array: Array, right: jax.Array, transposed: bool) -> jax.Array:
    """Return the least-squares solution of ``array @ x = right``, or the solution of least norm of ``array.mT @ x = right``."""
    m, n = array.shape
    adjoint = conj(matrix_transpose(array))
    right = right.astype(jnp.result_type(array.dtype, right.dtype))
    zeros = jnp.zeros(m if transposed else n, right.dtype)
    b, c = (zeros, jnp.conj(right)) if transposed else (right, zeros)
    run = _augmented_solver(array, right.dtype)

    def refined(_: Any, solution: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        r, x = solution
        dr, dx = run(b - r - as_jax(matmul(array, x)), c - as_jax(matmul(adjoint, r)))
        return r + dr, x + dx

    # A loop, although of two steps, so that the elimination is compiled once.
    r, x = lax.fori_loop(0, 2, refined, (jnp.zeros_like(b), jnp.zeros_like(c)))
    return jnp.conj(r) if transposed else x


def _augmented_solver(array: Array, dtype: np.dtype) -> Any:
    """Return the function of ``(b, c)`` with the solution ``(r, x)`` of ``r + A x = b`` and ``A^H r = c``."""
    m, n = array.shape
    rows, columns, data = _entries(array)
    data = data.astype(dtype)
    at = barred(as_indices(columns))
    largest = jnp.max(jnp.abs(data), initial=0)
    largest = jnp.where(largest > 0, largest, 1)
    norms = largest * jnp.sqrt(jnp.zeros(n, largest.dtype).at[at].add(jnp.abs(data / largest) ** 2))
    norms = jnp.where(norms > 0, norms, 1)
    data = data / norms[at]
    shift = jnp.asarray(math.sqrt(jnp.finfo(dtype).eps), dtype)
    first = np.concatenate([np.arange(m), rows, m + columns])
    second = np.concatenate([np.arange(m), m + columns, rows])
    order = _narrow_order(first, second, m + n)
    back = np.argsort(order)
    values = jnp.concatenate([jnp.full(m, shift), data, jnp.conj(data)])
    system = _arranged(values, back[first], back[second], m + n)
    there, back_again = barred(as_indices(order)), barred(as_indices(back))

    def run(b: jax.Array, c: jax.Array) -> tuple[jax.Array, jax.Array]:
        right = jnp.concatenate([b, c / (norms * shift)])
        solution = as_jax(solve(system, right[there]))[back_again]
        return solution[:m] * shift, solution[m:] / norms

    return run


def _has_static_pattern(x: Array) -> bool:
    """Return whether the positions of all entries that are not zero are known."""
    if isinstance(x, Sparse):
        return is_plain_matrix(x) and not x.padded and not any(isinstance(c, jax.core.Tracer) for c in x.coords)
    return isinstance(x, Banded) and bool(x.offsets) and is_zero_outside(x)


def _entries(array: Any) -> tuple[np.ndarray, np.ndarray, jax.Array]:
    """Return the coordinates of the stored entries, and the entries."""
    if isinstance(array, Sparse):
        rows, columns = (np.asarray(c).astype(np.int64) for c in array.coords)
        return rows, columns, array.data
    m, n = array.shape
    along = [np.arange(max(0, -k), min(m, n - k)) for k in array.offsets]
    rows, columns = (np.concatenate(c) for c in (along, [i + k for i, k in zip(along, array.offsets, strict=True)]))
    return rows, columns, jnp.concatenate(array.diagonals)


def _narrow_order(rows: np.ndarray, columns: np.ndarray, size: int) -> np.ndarray:
    """Return a permutation of the unknowns that makes a symmetric pattern a narrow band."""
    from scipy.sparse import csr_array  # type: ignore[import-untyped]
    from scipy.sparse.csgraph import reverse_cuthill_mckee  # type: ignore[import-untyped]

    pattern = csr_array((np.ones(len(rows), bool), (rows, columns)), (size, size))
    order: np.ndarray = reverse_cuthill_mckee(pattern, symmetric_mode=True)
    return order


def _arranged(values: jax.Array, rows: np.ndarray, columns: np.ndarray, size: int) -> Array:
    """Return a square matrix as a band if it is narrow, else as a sparse array."""
    width = int(np.max(np.abs(rows - columns)))
    if width > WIDEST:
        return Sparse(values, (rows, columns), (size, size))
    diagonals = jnp.zeros((2 * width + 1, size), values.dtype)
    key = barred(as_indices(columns - rows + width)), barred(as_indices(np.minimum(rows, columns)))
    diagonals = diagonals.at[key].set(values, unique_indices=True)
    offsets = range(-width, width + 1)
    return bands([diagonals[width + k, : size - abs(k)] for k in offsets], offsets, (size, size), dtype=values.dtype)
