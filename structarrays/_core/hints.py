"""Replacements for names of NumPy, JAX and SciPy that users try."""

from __future__ import annotations

NAMESPACE = {
    "array": "asarray(data), or the class of a structure, such as Diagonal(diag)",
    "average": "sum(w * x) / sum(w)",
    "block": "Block([[a, b], [c, d]])",
    "block_diag": "BlockDiagonal(blocks)",
    "concatenate": "concat([a, b])",
    "degrees": "x * (180 / pi)",
    "diagonal": "linalg.diagonal(x)",
    "dot": "matmul(a, b), or a @ b",
    "einsum": "structured(lambda a, b: jax.numpy.einsum(spec, a, b))(a, b)",
    "hstack": "concat([a, b], axis=1)",
    "identity": "eye(n), or Identity(n)",
    "inner": "vecdot(a, b)",
    "kron": "Kronecker(a, b)",
    "outer": "linalg.outer(a, b)",
    "radians": "x * (pi / 180)",
    "ravel": "reshape(x, (-1,))",
    "swapaxes": "matrix_transpose(x) for the last two axes, or permute_dims(x, axes)",
    "trace": "linalg.trace(x)",
    "transpose": "permute_dims(x, axes), or x.mT for matrices",
    "vstack": "concat([a, b], axis=0)",
    "jit": "jax.jit: these arrays are pytrees",
    "jacfwd": "jacobian(fun, mode='forward')",
    "jacrev": "jacobian(fun, mode='reverse')",
}
"""For each name, an expression of the namespace, or a function of another library that accepts these arrays."""

LINALG = {
    "norm": "linalg.vector_norm(x) or linalg.matrix_norm(x)",
    "cond": "linalg.svdvals(x), whose largest value is divided by the smallest one",
    "multi_dot": "a @ b @ c, or Product(a, b, c)",
    "solve_triangular_banded": "linalg.solve(A, b) with a Banded A",
    "svds": "linalg.svd(x)",
    "spsolve": "linalg.solve(A, b) with a Sparse A",
    "lu_solve_banded": "linalg.solve_banded((l, u), ab, b)",
    "block_diag": "BlockDiagonal(blocks)",
    "kron": "Kronecker(a, b)",
    "toeplitz": "Toeplitz(c, r)",
    "circulant": "Circulant(c)",
    "hankel": "Hankel(c, r)",
}

_ITERATE = "jax.scipy.sparse.linalg.cg(lambda v: A @ v, b) if A is positive definite, and gmres if not"
_EIGENVALUES = "scipy.sparse.linalg.eigsh(A, k) for k eigenvalues of a Hermitian A, and eigs(A, k) for others"
_SINGULAR_VALUES = "scipy.sparse.linalg.svds(A, k) for k singular values"

PRODUCTS_ONLY = {
    "linalg.solve": _ITERATE,
    "linalg.inv": _ITERATE,
    "linalg.eigh": _EIGENVALUES,
    "linalg.eigvalsh": _EIGENVALUES,
    "linalg.eig": _EIGENVALUES,
    "linalg.eigvals": _EIGENVALUES,
    "linalg.svd": _SINGULAR_VALUES,
    "linalg.svdvals": _SINGULAR_VALUES,
    "linalg.expm": "linalg.expm_multiply(A, v)",
    "linalg.lstsq": "scipy.sparse.linalg.lsmr(A, b)",
}
"""For functions that need a dense form, a function that needs only products with the array."""

ARRAY = {
    "H": "conj(x).mT",
    "toarray": "x.to_dense(), or numpy.asarray(x)",
    "todense": "x.to_dense()",
    "numpy": "numpy.asarray(x)",
    "at": "x[i] = value, which changes x; x.copy() keeps the old values",
    "block_until_ready": "jax.block_until_ready(x)",
    "diag": "linalg.diagonal(x)",
    "inv": "linalg.inv(x)",
    "norm": "linalg.vector_norm(x) or linalg.matrix_norm(x)",
    "solve": "linalg.solve(A, b)",
    "std": "std(x)",
    "var": "var(x)",
    "prod": "prod(x)",
    "argmax": "argmax(x)",
    "argmin": "argmin(x)",
    "argsort": "argsort(x)",
    "clip": "clip(x, min, max)",
    "cumprod": "cumulative_prod(x)",
    "cumsum": "cumulative_sum(x)",
    "det": "linalg.det(x)",
    "fill": "x[...] = value",
    "nonzero": "nonzero(x)",
    "ptp": "max(x) - min(x)",
    "repeat": "repeat(x, n)",
    "searchsorted": "searchsorted(x, values)",
    "sort": "sort(x)",
    "squeeze": "squeeze(x, axis)",
    "take": "take(x, indices, axis=0)",
    "adjoint": "conj(x).mT",
    "as_matrix": "x.to_dense()",
    "mv": "A @ v",
    "multiply": "x * y",
    "power": "x**2",
    "tocsr": 'interop.scipy.to_sparse(x, "csr")',
    "sharding": "jax.tree.map(lambda leaf: leaf.sharding, x)",
    "swapaxes": "x.mT for the last two axes, or permute_dims(x, axes)",
    "nnz": "count_nonzero(x); x.nbytes has the size of the stored entries",
}


def hint(table: dict[str, str], name: str) -> str:
    """Return the end of the message of an `AttributeError`: what to write instead, or an empty string."""
    return f"; write {table[name]}" if name in table else ""
