"""The faults that `planted_faults` plants: each is a mistake that a developer could make, in one place of the library.

They are spread over all parts of the library and over kinds of mistakes. They were chosen by reading the library, without regard to the tests.
A fault stays in this list when no test detects it.
"""

from typing import NamedTuple


class Fault(NamedTuple):
    """A replacement of text in a file.

    Attributes
    ----------
    name : str
        What is wrong.
    file : str
        The file in `structarrays`.
    old, new : str
        The text, which occurs exactly once in the file, and the text in its place.
    first : str
        What of `tests` runs first: tests of the faulty part, as arguments of pytest. It saves time and decides nothing.
    """

    name: str
    file: str
    old: str
    new: str
    first: str


FAULTS = (
    # ---- core ----------------------------------------------------------------------------------------------------------
    Fault(
        "dropped background of a joined operand",
        "_core/families/elementwise_rule.py",
        "background_value(x) if x.stores_entries else without_core(c, core) for",
        "jnp.zeros((), x.dtype) if x.stores_entries else without_core(c, core) for",
        "test_elementwise.py::test_one_array",
    ),
    Fault(
        "missing strong zero where an absorber stores nothing",
        "_core/families/elementwise_rule.py",
        "masks = [_indicator(x, pattern) for x in absorbed if not stores_pattern(x, pattern)]",
        "masks = []",
        "law/test_strong_zeros.py::test_multiply_absorbs",
    ),
    Fault(
        "stale cache of kernels after a registration",
        "_core/dispatch/registry.py",
        "            self._found.clear()\n",
        "",
        "test_core.py::test_the_closest_kernel_serves transform/test_structured.py::test_a_kernel_registered_later_is_found",
    ),
    Fault(
        "densify policy not asked in the mode error",
        "_core/array/operands.py",
        'if policy.mode == "error" or (limit and exceeds):',
        "if limit and exceeds:",
        "test_core.py::test_densify",
    ),
    Fault(
        "Python scalars promote like arrays",
        "_core/array/operands.py",
        "    weak = list(map(is_weak, arrays))\n",
        "    weak = [False] * len(arrays)\n",
        "test_elementwise.py::test_python_scalars test_elementwise.py::test_promotion",
    ),
    Fault(
        "a sum has the assumptions of either term",
        "_core/assumptions.py",
        "frozenset.intersection(",
        "frozenset.union(",
        "test_core.py test_linear_algebra.py::test_assumptions",
    ),
    Fault(
        "a write does not reach the views",
        "_core/array/writes.py",
        "    if link is not None:\n        _push(x, link)\n",
        "",
        "test_views.py::test_writes_are_seen_by_both",
    ),
    Fault(
        "an index equal to the size is not out of bounds",
        "_core/array/keys.py",
        "if low < -n or high >= n:",
        "if low < -n or high > n:",
        "test_indexing.py::test_bad_keys test_indexing.py::test_take",
    ),
    Fault(
        "wrong fill of the structural zero in concat",
        "_core/families/batch.py",
        "x.rebuild(x.entries, jnp.zeros(x.batch_shape, x.dtype)) if x.stores_entries and x.background is None else x",
        "x.rebuild(x.entries, jnp.ones(x.batch_shape, x.dtype)) if x.stores_entries and x.background is None else x",
        "test_manipulation.py::test_joining_two_structures",
    ),
    Fault(
        "the correction of a variance is added",
        "_numerics/symbolic.py",
        "return float(count - correction), count > correction",
        "return float(count + correction), count > correction",
        "test_statistical.py::test_reductions_equal_numpy",
    ),
    Fault(
        "a batch of coordinates is not broadcast with that of the array",
        "_core/families/entries.py",
        "    batch = jnp.broadcast_shapes(x.batch_shape, coordinates[0].shape[:batch_ndim])\n",
        "    batch = coordinates[0].shape[:batch_ndim]\n",
        "structures/sparse/test_sparse.py -k 'batch or batches'",
    ),
    # ---- functions -----------------------------------------------------------------------------------------------------
    Fault(
        "searchsorted ignores the sorter",
        "_functions/searching.py",
        'x1 = Dense.make((densify(x1, "searchsorted").data[densify(sorter, "searchsorted").data],))',
        'x1 = Dense.make((densify(x1, "searchsorted").data,))',
        "test_searching_sorting_set.py::test_sorter",
    ),
    Fault(
        "wrong axis of the sums in a matrix norm",
        "_functions/linalg/norms.py",
        "axis=-2 if abs(ord) == 1 else -1",
        "axis=-1 if abs(ord) == 1 else -2",
        "test_linalg_structured.py::test_parts_and_norms",
    ),
    Fault(
        "wrong dtype of a norm that counts",
        "_functions/linalg/norms.py",
        "astype(not_equal(x, 0), magnitude.dtype)",
        "astype(not_equal(x, 0), x.dtype)",
        "test_linalg_structured.py::test_parts_and_norms",
    ),
    Fault(
        "eigh does not check that the matrix is square",
        "_functions/linalg/spectra.py",
        '    check.square("linalg.eigh", x)\n',
        "",
        "test_linear_algebra.py",
    ),
    Fault(
        "where with three structures takes the background of the wrong operand",
        "_functions/searching.py",
        "pattern, background = join(x2, condition)[0], x2.background",
        "pattern, background = join(x2, condition)[0], x1.background if x1.stores_entries else None",
        "test_searching_sorting_set.py",
    ),
    # ---- kernels -------------------------------------------------------------------------------------------------------
    Fault(
        "the pivot row is not exchanged with the first row",
        "_numerics/banded_lu.py",
        "others = jnp.where(index == p, window[0], window)[1:]",
        "others = window[1:]",
        "numerics/test_banded_elimination.py::test_interchanges",
    ),
    Fault(
        "missing conjugate in the derivative of a banded Cholesky factor",
        "_numerics/banded_cholesky.py",
        "l[1:, None] * below.conj()",
        "l[1:, None] * below",
        "numerics/test_banded_elimination.py::test_derivatives",
    ),
    Fault(
        "missing conjugate in the elimination of two diagonals of a Hermitian matrix",
        "_numerics/narrow_definite.py",
        "nearest - second * last.conj()",
        "nearest - second * last",
        "numerics/test_narrow_definite.py",
    ),
    Fault(
        "missing conjugate above the diagonal of a Hermitian tridiagonal matrix",
        "_numerics/tridiagonal.py",
        "            upper = lower.conj()\n",
        "            upper = lower\n",
        "numerics/test_tridiagonal.py",
    ),
    Fault(
        "off-by-one end of a diagonal in the product of two banded matrices",
        "_structures/banded/band_products.py",
        "min(m, inner - k1, n - k1 - k2)",
        "min(m, inner - k1 - 1, n - k1 - k2)",
        "structures/banded/test_band_products.py",
    ),
    Fault(
        "transforms too short for a wide Toeplitz matrix of few diagonals",
        "_numerics/toeplitz_entries.py",
        "fast_length(max(m + last, n - first, values.shape[-1], n))",
        "fast_length(max(m + last, values.shape[-1], n))",
        "structures/toeplitz/test_toeplitz.py::test_products_with_dense_matrices",
    ),
    Fault(
        "duplicates overwrite each other",
        "_structures/sparse/numerics.py",
        "data = wide.at[slot].add(data.astype(wide.dtype), **options)",
        "data = wide.at[slot].set(data.astype(wide.dtype), **options)",
        "structures/sparse/test_sparse.py::test_duplicates_are_added_as_scipy_does",
    ),
    Fault(
        "missing conjugate in the derivative of an indefinite factorisation",
        "_numerics/indefinite_factors.py",
        "transpose_a=True, conjugate_a=hermitian, **options)",
        "transpose_a=True, conjugate_a=False, **options)",
        "test_factorizations.py::test_derivative_of_ldl",
    ),
    Fault(
        "wrong transpose in the gradient of a square root",
        "_numerics/dense_matrix_functions.py",
        "transpose_solve=lambda _, c: solve(x.mT, c)",
        "transpose_solve=lambda _, c: solve(x, c)",
        "test_matrix_functions.py::test_sqrtm",
    ),
    Fault(
        "wrong sign of a determinant with row exchanges",
        "_numerics/banded_determinants.py",
        "jnp.where(odd, -one, one)",
        "one",
        "numerics/test_banded_elimination.py::test_slogdet_and_cholesky",
    ),
    Fault(
        "equal extrema each get the whole derivative",
        "_numerics/dense_statistical.py",
        "jnp.sum(attained * tangent, axis=axes) / jnp.sum(attained, axis=axes)",
        "jnp.sum(attained * tangent, axis=axes)",
        "numerics/test_dense_statistical.py::test_derivative_of_extrema",
    ),
    # ---- structures ----------------------------------------------------------------------------------------------------
    Fault(
        "wrong sign of differences along a core axis",
        "_structures/banded/reductions.py",
        "result[k] = part(k, k + 1, length) - part(k, k, length)",
        "result[k] = part(k, k, length) - part(k, k + 1, length)",
        "test_statistical.py -k differences",
    ),
    Fault(
        "permutation instead of its inverse on the right",
        "_structures/permutation/products.py",
        "    inverse = mapped(numerics.inverse, x2.p)\n",
        "    inverse = x2.p\n",
        "structures/permutation/test_permutation.py::test_products_with_dense",
    ),
    Fault(
        "missing conjugate where a Hermitian matrix changes its triangle",
        "_structures/symmetric/array.py",
        "self.reflect(self.data.mT)",
        "self.data.mT",
        "structures/triangular/test_triangles.py::test_classes_and_values_of_results",
    ),
    Fault(
        "swapped factors in the imaginary part of a low-rank matrix",
        "_structures/low_rank/array.py",
        "return low_rank(_side_by_side(a, c), _side_by_side(d, b))",
        "return low_rank(_side_by_side(a, c), _side_by_side(b, d))",
        "structures/composite/test_factored.py law/test_law.py -k 'imag or complex'",
    ),
    Fault(
        "the factors of a low-rank matrix are divided along each other's axes",
        "_structures/low_rank/array.py",
        "return (*batch, rows, None), (*batch, columns, None)",
        "return (*batch, columns, None), (*batch, rows, None)",
        "structures/composite/test_factored.py::test_factors_are_divided_as_the_rows_and_columns_are",
    ),
    Fault(
        "wrong transpose in the derivative of Woodbury's formula",
        "_structures/composite/sum_solvers.py",
        "Capacitance(None, capacitance.c.mT, capacitance.regular)",
        "Capacitance(None, capacitance.c, capacitance.regular)",
        "structures/composite/test_dense_fallback.py::test_the_reverse_mode_needs_no_other_way",
    ),
    Fault(
        "a complex multiple of a Hermitian Kronecker factor stays Hermitian",
        "_structures/kronecker/array.py",
        'kept = {"symmetric"} if x.dtype.kind == "c" else {"symmetric", "hermitian"}',
        'kept = {"symmetric", "hermitian"}',
        "structures/kronecker/test_kronecker.py::test_multiples_keep_what_is_known",
    ),
    Fault(
        "dropped background of a banded matrix in blocks",
        "_structures/blocks/block_banded.py",
        "restrict(x, empty).entries, x.background)",
        "restrict(x, empty).entries, None)",
        "structures/blocks/test_blocks.py::test_from_banded",
    ),
    # ---- transform -----------------------------------------------------------------------------------------------------
    Fault(
        "a reverse cumulative sum stays reversed",
        "transform/rules_reductions.py",
        '    return call("flip", result, axis=axis) if reverse else result\n',
        "    return result\n",
        "transform/test_kept_structure.py",
    ),
    Fault(
        "stale plan of an equation under another policy of strong zeros",
        "transform/rules_elementwise.py",
        ", strong_zeros_policy.value, len(REGISTERED)",
        ", len(REGISTERED)",
        "transform/test_structured.py::test_strong_zeros_absorb",
    ),
    Fault(
        "swapped axes where vmap moves the mapped axis",
        "transform/calculus.py",
        "return moveaxis(x, 0, axis)",
        "return moveaxis(x, axis, 0)",
        "test_transforms.py",
    ),
    # ---- interop -------------------------------------------------------------------------------------------------------
    Fault(
        "missing conjugate in the product with an adjoint",
        "interop/linear_operators.py",
        "    return conj(result) if complex_matrix else result\n",
        "    return result\n",
        "test_scipy_operators.py::test_methods",
    ),
    Fault(
        "arrays in the order of columns are read in that of rows",
        "interop/file_reading.py",
        'order="F" if columns_first else "C"',
        'order="C"',
        "test_files.py::test_containers_numbers_and_other_arrays",
    ),
    Fault(
        "swapped diagonals below and above for Lineax",
        "interop/lineax.py",
        "for k in (0, -1, 1))",
        "for k in (0, 1, -1))",
        "test_lineax.py::test_solvers_by_diagonals",
    ),
)
