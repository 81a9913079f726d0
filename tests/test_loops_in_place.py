"""No loop of the library copies an array that it carries: XLA's plan for each of them, whose memory and copies are counted.

A loop over n rows that copies what it updates takes ``O(n**2)`` time, and no test of its results tells. Whether XLA copies depends on its
version. Nothing runs here.
"""

import ast
import collections
import functools
import os
import re
import sys
import types
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled_programs import elements_written

import structarrays as sa
from structarrays._core.families import entries
from structarrays._functions import linear_algebra
from structarrays._numerics import (
    banded_cholesky,
    banded_determinants,
    banded_factors,
    banded_lu,
    banded_qr,
    banded_rows,
    bands,
    kronecker_schur,
    loops,
    narrow_definite,
    tall,
    tridiagonal,
    tridiagonal_form,
)
from structarrays._numerics import banded_elimination as banded
from structarrays._numerics import dense_matrix_functions as matrix_functions
from structarrays._numerics import indefinite_factors as indefinite
from structarrays._numerics import toeplitz_entries as toeplitz
from structarrays._numerics.integer_powers import repeated_squaring
from structarrays._structures.banded import band_products
from structarrays._structures.banded.diagonal import Diagonal
from structarrays._structures.blocks import block_determinants, block_tridiagonal
from structarrays._structures.composite import base_shifts, estimates, generators, inverse
from structarrays._structures.composite.part_solvers import refined
from structarrays._structures.kronecker import kronecker_determinants
from structarrays._structures.orthonormal import fourier
from structarrays._structures.permutation import numerics as permutations
from structarrays._structures.sparse import numerics as sparse
from structarrays._structures.sparse import sparse_systems
from structarrays._structures.toeplitz import numerics as toeplitz_products
from structarrays._structures.toeplitz import toeplitz_elimination as toeplitz_solvers
from structarrays._structures.toeplitz import toeplitz_iterations
from structarrays._structures.toeplitz import toeplitz_substitution as toeplitz_triangles
from structarrays._structures.toeplitz.array import Toeplitz
from structarrays._structures.triangular import numerics as triangles
from structarrays.interop import direct_solvers

N = 1000  # rows: a copy in each step writes a thousand times the stored entries
SMALL = 150  # rows, where each step touches all of a vector or a matrix

# The plan is that of XLA's defaults: conftest.py asks XLA for another code generator, which fuses differently, where XLA has one.
OPTIONS = {"xla_backend_optimization_level": 0}
if "fusion_emitters" in os.environ.get("XLA_FLAGS", ""):
    OPTIONS["xla_cpu_use_fusion_emitters"] = True

Case = collections.namedtuple("Case", "function arguments temporary passes")
CASES = {}


def add(name, function, *arguments, temporary=3, passes=20):
    """A case: the memory next to arguments and results, and what all loops write, in multiples of the arguments and results."""
    CASES[name] = Case(function, arguments, temporary, passes)


def array(*shape, dtype=float):
    return jax.ShapeDtypeStruct(shape, dtype)


def integers(*shape):
    return array(*shape, dtype=np.int32)


def derivative(function):
    """The gradient of the sum of squares of all results, by all arguments."""

    def value(*arguments):
        return sum(jnp.sum(jnp.abs(x) ** 2) for x in jax.tree.leaves(function(*arguments)))

    return lambda *arguments: jax.grad(value, argnums=tuple(range(len(arguments))))(*arguments)


# ---- bands ---------------------------------------------------------------------------------------------------------

for w, dtype in [
    (3, float),
    (5, float),
    (6, float),
    (8, float),
    (13, float),
    (8, np.float32),
    (3, complex),
]:
    add(f"LDL {w} {np.dtype(dtype)}", functools.partial(banded_cholesky.ldl, w=w), array(N + 1, w + 1, dtype=dtype))
for w in (1, 2):
    add(f"narrow LDL {w}", lambda *d: narrow_definite.ldl(d), *(array(N - k) for k in range(w + 1)))
    add(
        f"narrow systems {w}",
        lambda pivots, b, *multipliers: narrow_definite.substitute(pivots, multipliers, b),
        *(array(N), array(N, 1), *(array(N) for _ in range(w))),
    )
add("LDL by columns", banded_cholesky._ldl_by_columns, array(N + 1, 6))
add("LDL systems", functools.partial(banded_cholesky.substitute, w=5), array(N + 1, 6), array(N, 1))
add("Cholesky tangent", banded_cholesky.cholesky_tangent, array(N, 6), array(N, 6))

OFFSETS = tuple(range(-5, 6))
diagonals = tuple(array(N - abs(k)) for k in OFFSETS)
stacked = tuple(array(2, N - abs(k)) for k in OFFSETS)


def product(diagonals):
    return band_products.band_matmul(diagonals, WIDE, (N, N), diagonals, WIDE, (N, N))[0]


WIDE = tuple(range(-7, 8))
add("derivative of a product", derivative(product), tuple(array(N - abs(k)) for k in WIDE), temporary=12, passes=100)
add("Cholesky", lambda d: banded.cholesky(d, OFFSETS, N)[0], diagonals)
add("positive definite", lambda d, b: banded.solve(d, OFFSETS, N, b, True)[0], diagonals, array(N, 1))
add("two positive definite", lambda d, b: banded.solve(d, OFFSETS, N, b, True)[0], stacked, array(2, N, 1))
MANY = tuple(range(-20, 21))
broad = tuple(array(N - abs(k)) for k in MANY)
add("storage of many diagonals", lambda d: banded_rows.from_diagonals(d, MANY, N, float), broad, passes=30)
stability = functools.partial(banded_lu.is_stable, n=N, kl=20, ku=20, by_rows=False)
add("growth of an elimination", lambda f, a: stability(f, largest=a), array(N, 41), array(), passes=5)
add("derivative of log det", derivative(lambda d: banded_determinants.slogdet(d, OFFSETS, N)[1]), diagonals, passes=40)

for w, dtype in [(2, float), (5, float), (8, float), (8, np.float32), (3, complex)]:
    rows = array(N + w, 2 * w + 1, dtype=dtype)
    add(f"LU by pairs {w} {np.dtype(dtype)}", functools.partial(banded_lu._eliminate_by_pairs, kl=w, ku=w), rows)
for w in (2, 5):
    rows, factors, parts = array(N, 2 * w + 1), array(N + w, 2 * w + 1), (array(N, w), integers(N))
    upper, wide = array(N, 3 * w + 1), array(N, 2 * w + 2)
    bandwidths = {"kl": w, "ku": w}
    add(f"LU by columns {w}", functools.partial(banded_lu._eliminate_by_columns, **bandwidths), factors)
    add(f"LU with pivots {w}", functools.partial(banded_lu.eliminate_pivoted, **bandwidths), array(w, 2 * w + 2), wide)
    add(f"log det by pairs {w}", functools.partial(banded_lu._gradient_by_pairs, n=N, **bandwidths), factors)
    add(f"log det by windows {w}", functools.partial(banded_lu._gradient_by_windows, n=N, **bandwidths), factors)
    add(f"log det with pivots {w}", functools.partial(banded_lu.logdet_gradient_pivoted, kl=w), rows, *parts)
    add(f"LU tangent {w}", banded_factors._tangent, rows, *parts, rows)
    for transposed in (False, True):
        for step in (banded_lu.down, banded_lu.up):
            add(
                f"LU {step.__name__} {w} {transposed}",
                functools.partial(step, transposed=transposed),
                *parts,
                array(N, 1),
            )
    add(f"QR {w}", functools.partial(banded_qr._factor_one, w), factors)
    for adjoint in (False, True):
        product = functools.partial(banded_qr._multiply_one, adjoint)
        add(f"QR product {w} {adjoint}", product, array(N, w + 1), array(N), array(N + w, 1))
    for sign in (-1, 1):
        offsets = tuple(sorted(sign * k for k in range(1, w + 1)))
        for substitute in (banded_rows.substitute, banded_rows.substitute_by_columns):
            solve = functools.partial(lambda c, b, d, f, offsets: f(c, offsets, b, d), f=substitute, offsets=offsets)
            add(f"{substitute.__name__} {w} {sign}", solve, array(N, w), array(N, 1), array(N))

many = tuple(range(-40, 41))
add(
    "product of many bands",
    lambda d, x: bands._apply_by_loop(list(zip(d, many, strict=True)), (N, N), x, -1),
    tuple(array(N - abs(k)) for k in many),
    array(N),
)

# ---- tridiagonal matrices --------------------------------------------------------------------------------------------

for definite in (False, True):
    eliminate = functools.partial(tridiagonal._eliminate, positive_definite=definite)
    add(f"tridiagonal {definite}", eliminate, array(N - 1), array(N), array(N - 1), array(N, 1))
    add(f"tridiagonal batch {definite}", eliminate, array(6, N - 1), array(6, N), array(6, N - 1), array(6, N, 1))
add("tridiagonal pivots", tridiagonal._pivots_nonzero, array(N - 1), array(N), array(N - 1))
add(
    "tridiagonal regularity",
    tridiagonal._nonsingular,
    array(2, N - 1),
    array(2, N),
    array(2, N - 1),
    array(2, N, 1),
)
add("tridiagonal determinant", tridiagonal_form.pivots, array(N), array(N - 1))

# ---- block-tridiagonal matrices ----------------------------------------------------------------------------------------

M = 4
blocks = (array(N, M, M),) * 3
right = array(N, M, 1)
for lower in (False, True):
    for transposed in (False, True):
        substitute = functools.partial(block_tridiagonal._substitute, lower=lower, transposed=transposed)
        add(f"block substitution {lower} {transposed}", substitute, *blocks[:2], array(N * M, 1))
add("small blocks", block_tridiagonal._factor_small, *blocks)
add("definite blocks", functools.partial(block_tridiagonal.factor_definite, None), *blocks[:2])
add(
    "systems of definite blocks",
    functools.partial(block_tridiagonal._solve_definite, transposed=False),
    *blocks,
    *blocks[:2],
    array(N * M, 1),
)
add("blocks with pivots", block_tridiagonal.eliminate_pivoted, *blocks)
add("log det of blocks", block_determinants._with_gradient, *blocks)
add("log det of definite blocks", block_determinants._gradient_definite, *blocks[:2])
for steps in (block_tridiagonal._steps, block_tridiagonal._transposed_steps):
    add(f"blocks {steps.__name__}", steps, array(N, 2 * M, M), integers(N, 2 * M), array(N, M, 2 * M), right)

# ---- Toeplitz matrices -------------------------------------------------------------------------------------------------

add("Toeplitz diagonals", lambda v, x: toeplitz._by_loop(v, -15, (N, N), x), integers(31), integers(N, 1))
add(
    "Toeplitz band of a product",
    lambda a, b: toeplitz_products.banded_product(a, -10, b, -12, (N, N, N)),
    array(25),
    array(30),
    temporary=5,  # the whole table of rows and diagonals, from which the diagonals are sliced
)
special = functools.partial(toeplitz._with_special_values, 1 - N, (N, N))
add("Toeplitz NaN", special, array(1, 2 * N - 1), array(1, N), array(1, N, dtype=bool), passes=40)
add("Toeplitz iteration", lambda c, b: toeplitz_iterations.solve(c, b)[0], array(N), array(1, N), temporary=5)
add("Toeplitz triangle", lambda c, b: toeplitz_triangles.solve(c, b)[0], array(9 * N), array(9 * N, 1), temporary=9)
# Each step writes a few vectors.
add("Levinson", toeplitz_solvers._levinson, array(N), passes=1.2 * N)
add("Toeplitz elimination", toeplitz_solvers._eliminate_each, array(2 * SMALL - 1), temporary=10, passes=5 * SMALL)
shape = (SMALL, SMALL)
for product in (toeplitz_products._finite, toeplitz_products._with_special_values):
    product = functools.partial(product, 1 - SMALL, shape, 1 - SMALL, shape)
    add(f"Toeplitz product {product.func.__name__}", product, array(2 * SMALL - 1), array(2 * SMALL - 1), passes=80)

# ---- sparse matrices, permutations ----------------------------------------------------------------------------------

ENTRIES = 10**6
add(
    "sparse product",
    lambda *arguments: sparse.multiply(*arguments, None, N, True, True),
    array(ENTRIES),
    integers(ENTRIES),
    integers(ENTRIES),
    array(N),
)
add("sparse search", lambda c, wanted: sparse.search((c,), (wanted,)), integers(N), integers(N))
add(
    "inverse by columns",
    functools.partial(sparse_systems._by_columns, n=3 * N, definite=False, padded=False),
    array(3 * N),
    integers(3 * N),
    integers(3 * N),
    temporary=1500,  # blocks of columns, of 2**22 numbers
    passes=3000,
)
add(
    "absorbing product in blocks",
    lambda diagonal, values: linear_algebra._absorbing_in_blocks(
        (Diagonal.make((diagonal, None), (3 * N,) * 2)[:2, :], Toeplitz(values, values)), 1
    ),
    array(3 * N),
    array(3 * N),
    temporary=9000,  # blocks of columns, of 2**22 numbers
    passes=40 * N,
)
add(
    "elements in blocks of columns",
    lambda diag, i, j: entries.in_blocks(
        generators._from_lines, inverse.Inverse.make((Diagonal.make((diag, None), (3 * N,) * 2),)), i, j
    ),
    array(3 * N),
    integers(3 * N),
    integers(3 * N),
    temporary=3000,  # blocks of columns, of 2**22 numbers
    passes=12 * N,
)
add("sign of a permutation", permutations.sign, integers(N), temporary=6, passes=60)

# ---- dense matrices --------------------------------------------------------------------------------------------------

# Each step of the second and the third writes a matrix.
square = array(SMALL, SMALL)
add("indefinite", functools.partial(indefinite._factor, hermitian=True), square)
add("square root", matrix_functions._sqrt_triangular, array(SMALL, SMALL, dtype=complex), passes=SMALL)
add(
    "sum of resolvents",
    kronecker_determinants._sum_of_resolvents,
    array(20, 20, dtype=complex),
    array(N, dtype=complex),
    array(N, dtype=complex),
    temporary=12,
    passes=20 * N,
)
add(
    "Kronecker Schur",
    lambda t, shift, b: kronecker_schur._backwards([t, t], jnp.ones(()), shift, b, adds=True),
    square,
    array(),
    array(SMALL, SMALL, 1),
    passes=SMALL,
)
add(
    "product of triangles that absorb",
    lambda a, b: triangles._absorbing_product(a, b, True, False),
    *[array(512, 512)] * 2,
)
add("tall product", lambda v, x, w: tall._in_pieces(v, (x,), w), array(10**5, 4), array(10**5, 1), array(10**5))
add(
    "exponential",
    functools.partial(matrix_functions.expm_action, lambda a, x: a[:, None] * x),
    array(N),
    array(N, 1),
    array(),
    array(),
)


def repeated(x, count):
    return loops.repeat(lambda y: jnp.sin(y), x, count, width=20, depth=2)


def backward(x, count):
    return jax.vjp(lambda x: repeated(x, count), x)[1](x)


# 400 steps, each behind a condition whose branches return new arrays; the derivative keeps the states of two loops.
add("repeated", repeated, array(N), integers(), passes=300)
add("derivative of what is repeated", backward, array(N), integers(), temporary=30, passes=2400)

# ---- structures -------------------------------------------------------------------------------------------------------


def augmented(a, b):
    solver = pytest.importorskip("structarrays.interop.lineax_solver", exc_type=ImportError)
    return solver._by_augmented_system(a, b, False)


band = sa.Banded([np.ones(N - abs(k)) for k in (-1, 0, 1)], (-1, 0, 1), (N, N))
low_rank = sa.LowRank(np.ones((N, 2)), np.ones((N, 2)))
ones = sa.asarray(np.ones((N, 1)))
add("refinement", lambda a, b: refined(a, lambda r: (r, jnp.array(True)), b.data)[0], band, ones)
add("times of an exponential", lambda a, b: sa.linalg.expm_multiply(a, b, start=0.0, stop=1.0, num=20), band, ones)
add("largest of a batch", lambda x: sa.max(x, axis=0), sa.LowRank(np.ones((9, SMALL, 2)), np.ones((9, SMALL, 2))))
# Blocks of columns are made one after the other: together they are as large as the dense form.
add("largest of a column", lambda x: sa.max(x, axis=0), low_rank, temporary=40, passes=300)
product = sa.Product(sa.Circulant(np.ones(N)), band)
kronecker_difference = sa.Kronecker(np.ones((9, 9)), np.eye(9)) - sa.Kronecker(np.eye(9) + 1, np.ones((9, 9)))
add("norm of a sum", sa.linalg.matrix_norm, kronecker_difference, temporary=200, passes=400)
add("diagonal of a product", sa.linalg.diagonal, product, temporary=200, passes=500)
add("products of rows", lambda x, y: (x * x).u @ y, sa.LowRank(np.ones((N, 5)), np.ones((N, 5))), np.ones((25, 3)))
add("powers of integers", repeated_squaring, integers(N), integers(N), passes=300)
add("norm of an inverse", estimates.norm, sa.Inverse(band), temporary=8, passes=60)
columns = np.ones((N, 8))
add("products modulo n", functools.partial(fourier._product_modulo, n=70_001), integers(N), integers(N))
add(
    "least squares by an augmented system",
    augmented,
    sa.tridiagonal(*map(np.ones, (N - 1, N, N - 1))),
    np.ones(N),
    temporary=12,
)


def refined_by_factors(values, b):
    """A system of a diagonal matrix by a package whose solutions are refined."""
    package = types.SimpleNamespace(lu_solve=lambda rows, columns, data, b: b / data[:, None])
    matrix = types.SimpleNamespace(rows=jnp.arange(N), columns=jnp.arange(N), data=values, shape=(N, N))
    return direct_solvers.KLU(package, matrix, positive_definite=False).solve(b, transposed=False)


add("refinement of another package's solution", refined_by_factors, array(N), array(N, 1), temporary=5)
add("change of a base", base_shifts.shift, sa.Diagonal(np.ones(N)), columns, columns, passes=3)


@pytest.mark.parametrize("name", CASES)
def test_loops_update_in_place(name):
    function, arguments, temporary, passes = CASES[name]
    compiled = jax.jit(lambda *a: function(*a)).lower(*arguments).compile(compiler_options=OPTIONS)
    memory = compiled.memory_analysis()
    stored = memory.argument_size_in_bytes + memory.output_size_in_bytes
    assert memory.temp_size_in_bytes <= temporary * stored + 2**14
    written = elements_written(compiled.as_text())
    elements = sum(x.size for x in jax.tree.leaves((arguments, compiled.out_info)))
    assert sum(written.values()) <= passes * elements, sorted(written.items(), key=lambda item: -item[1])[:5]


# ---- several columns --------------------------------------------------------------------------------------------------

PATTERNS = [
    *(tuple(range(-w, w + 1)) for w in (1, 2, 3, 4, 6)),
    *((-2, -1, 0), (0, 1, 2), (-5, -1, 0), (-7, -6, -3, -1, 0), (0, 2), (0, 1, 5), (0, 3, 4)),
    *((-1, 0, 1, 2), (-2, -1, 0, 1), (-1, 0, 2), (-2, 0, 2), (-5, 0, 1)),
]


def large_writes(program):
    """Instructions in loops that write an array of the size of a column N / 3 times, where unknown loops have N iterations."""
    return {
        written: total
        for written, total in elements_written(program, unknown=N).items()
        if N / 2 <= (size := largest_size(written)) and total >= size * N / 3
    }


def largest_size(written):
    shapes = re.findall(r"\[([\d,]*)\]", written)
    return max((int(np.prod([int(n) for n in shape.split(",") if n])) for shape in shapes), default=1)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("offsets", PATTERNS, ids=str)
def test_banded_systems_with_several_columns_update_in_place(offsets, columns, dtype):
    diagonals = tuple(array(N - abs(k), dtype=dtype) for k in offsets)
    right = array(N, columns, dtype=dtype)
    compiled = jax.jit(lambda d, b: banded.solve(d, offsets, N, b)[0]).lower(diagonals, right).compile(OPTIONS)
    assert large_writes(compiled.as_text()) == {}


# ---- all loops --------------------------------------------------------------------------------------------------------

ROOT = Path(sa.__file__).parent
LOOPS = ("fori_loop", "map", "scan", "while_loop")


def loops_in(path):
    """The functions of a file in which a loop stands, as ``(file, qualified name)``."""
    found = set()

    def visit(node, name, prefix):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.Lambda):
                inner = prefix + getattr(child, "name", "<lambda>")
                visit(child, inner, f"{inner}.<locals>.")
                continue
            if isinstance(child, ast.ClassDef):
                visit(child, prefix + child.name, f"{prefix}{child.name}.")
                continue
            if isinstance(child, ast.Call) and ast.unparse(child.func) in {f"lax.{loop}" for loop in LOOPS}:
                found.add((str(path.relative_to(ROOT)), name))
            visit(child, name, prefix)

    visit(ast.parse(path.read_text(encoding="utf-8")), "", "")
    return found


@pytest.mark.slow
def test_every_loop_has_a_case(monkeypatch):
    met = set()

    def watched(loop):
        def call(*arguments, **options):
            code = sys._getframe(1).f_code
            if ROOT in Path(code.co_filename).parents:
                met.add((str(Path(code.co_filename).relative_to(ROOT)), code.co_qualname))
            return loop(*arguments, **options)

        return call

    jax.clear_caches()  # or what was traced before would not be again
    for name in LOOPS:
        monkeypatch.setattr(jax.lax, name, watched(getattr(jax.lax, name)))
    for function, arguments, *_ in CASES.values():
        jax.make_jaxpr(lambda *a, f=function: f(*a))(*arguments)
    there = set().union(*map(loops_in, ROOT.rglob("*.py")))
    # These run loops of users.
    of_users = {str(Path("transform", name)) for name in ("control_flow.py", "rules_linear_control.py")}
    assert {where for where in there - met if where[0] not in of_users} == set()


def test_a_copy_in_a_loop_is_counted():
    """A step reads the array that it updates, for another array that it carries: nothing tells XLA to read first."""

    def step(i, state):
        x, sums = state
        y = jax.lax.dynamic_update_slice_in_dim(x, x[:1] + 1, i, 0)
        return y, sums + jax.lax.dynamic_slice_in_dim(x, N - 2 - i, 2)

    loop = jax.jit(lambda x: jax.lax.fori_loop(0, N, step, (x, x[:2])))
    compiled = loop.lower(array(N)).compile(compiler_options=OPTIONS)
    assert elements_written(compiled.as_text())[f"copy f64[{N}]"] >= N * N
