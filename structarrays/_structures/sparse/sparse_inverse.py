"""Elements of the inverse of a sparse matrix at the pattern of its factors, on the host, with NumPy and SciPy's LAPACK.

For ``B = L U`` with the inverse Z, a set J of pivots and the rows S > J in which the columns J of L have entries (and the rows J of U in
these columns), with ``X = L_SJ inv(L_JJ)`` and ``Y = inv(U_JJ) U_JS``,

    Z_SJ = -Z_SS X        Z_JS = -Y Z_SS        Z_JJ = inv(U_JJ) inv(L_JJ) - Y Z_SJ

The last pivots come first, and at the end Z is known at the entries of L and U (Takahashi, Fagan and Chen, 1973;
Erisman and Tinney, 1975, *On computing certain elements of the inverse of a sparse matrix*). J is a supernode: pivots
whose columns have the same rows. Z_SS is a part of the dense matrix of the parent of J in the elimination tree, as in
multifrontal methods (Campbell and Davis, 1995, *Computing the sparse inverse subset*).
"""

from __future__ import annotations

from typing import Any

import numpy as np

_SMALL_BRANCH = 64
"""The largest number of pivots of a branch of the elimination tree that is treated as a single supernode."""


def inverse_at(lu: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray | None:
    """Return the elements ``(columns, rows)`` of the inverse of a matrix with entries at ``(rows, columns)``.

    The cost is about the cost of the factorisation of a matrix with symmetric pattern.

    Parameters
    ----------
    lu : scipy.sparse.linalg.SuperLU
        The factors, ``P_r A P_c = L U``.
    rows, columns : numpy.ndarray, (nnz,)
        The coordinates of all entries of A.

    Returns
    -------
    numpy.ndarray, (nnz,), or None
        None if row exchanges have destroyed the symmetry of the pattern, so that this algorithm would be slower.
    """
    n = lu.shape[0]
    r, c = lu.perm_r[rows].astype(np.int64), lu.perm_c[columns].astype(np.int64)
    below = _structure(np.minimum(r, c), np.maximum(r, c), n, 4 * lu.nnz)
    if below is None:
        return None
    # In postorder the branches of the tree are runs of pivots, and few fronts exist at a time. L and U stay triangular.
    parent, places = _postorder(below)
    below, r, c = _moved(below, places), places[r], places[c]
    begins, parents = _supernodes(parent, np.array([len(b) for b in below]))
    factors = [_Panels(lu.L, places), _Panels(lu.U.T, places)]
    # The wanted elements, by the supernode that contains them.
    node_of = np.repeat(np.arange(len(parents)), np.diff(begins))
    node = node_of[np.minimum(r, c)]
    order = np.argsort(node, kind="stable")
    parts = np.searchsorted(node[order], np.arange(len(parents) + 1))
    result = np.empty(len(rows), lu.L.dtype)
    fronts: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    children = np.bincount(parents[parents >= 0], minlength=len(parents))
    for k in range(len(parents) - 1, -1, -1):
        first, last = begins[k], begins[k + 1]
        ids = np.concatenate([np.arange(first, last), below[last - 1]])
        inner = None
        if parents[k] >= 0:
            above_ids, above = fronts[parents[k]]
            place = np.searchsorted(above_ids, below[last - 1])
            inner = above[np.ix_(place, place)]
            children[parents[k]] -= 1
            if not children[parents[k]]:
                del fronts[parents[k]]
        lower, upper = (panels.dense(first, last, ids) for panels in factors)
        front = _front(lower, upper, inner)
        if children[k]:
            fronts[k] = ids, front
        wanted = order[parts[k] : parts[k + 1]]
        result[wanted] = front[np.searchsorted(ids, c[wanted]), np.searchsorted(ids, r[wanted])]
    return result


def _structure(low: np.ndarray, high: np.ndarray, n: int, limit: int) -> list[np.ndarray] | None:
    """Return for each pivot the rows of its column, in the symmetric pattern after elimination, below the diagonal.

    They are the rows of the pivot's own column and of the pivots whose first row it is (George and Liu, 1981, *Computer
    Solution of Large Sparse Positive Definite Systems*, 5.5). None if there are more than `limit`.
    """
    key = np.unique((low * n + high)[low != high])
    own = (key % n).astype(np.int32)
    begins = np.searchsorted(key // n, np.arange(n + 1))
    below: list[np.ndarray] = []
    waiting: list[Any] = [[] for _ in range(n)]  # lists; None after use
    total = 0
    for j in range(n):
        rows = own[begins[j] : begins[j + 1]]
        if waiting[j]:
            rows = np.concatenate([rows, *(below[i][1:] for i in waiting[j])])
            rows.sort()
            if len(rows) > 1:
                rows = rows[np.concatenate([[True], rows[1:] != rows[:-1]])]
            waiting[j] = None
        if len(rows):
            waiting[rows[0]].append(j)
        below.append(rows)
        total += len(rows)
        if total > limit:
            return None
    return below


def _postorder(below: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the elimination tree in postorder: the branches of each pivot come immediately before it.

    Returns
    -------
    parent : numpy.ndarray
        The parent of each pivot in the new order, -1 of a root.
    places : numpy.ndarray
        The new index of each pivot.
    """
    n = len(below)
    parent = [int(rows[0]) if len(rows) else -1 for rows in below]
    sizes = [1] * n
    for j, p in enumerate(parent):
        if p >= 0:
            sizes[p] += sizes[j]
    places, taken, left = [0] * n, 0, [0] * n
    for j in range(n - 1, -1, -1):  # a branch comes before its parent, or before the previous branch
        p = parent[j]
        if p < 0:
            places[j] = n - 1 - taken
            taken += sizes[j]
        else:
            places[j] = places[p] - 1 - left[p]
            left[p] += sizes[j]
    parents, place_of = np.array(parent), np.array(places)
    moved = np.empty(n, int)
    moved[place_of] = np.where(parents < 0, -1, place_of[parents])
    return moved, place_of


def _moved(below: list[np.ndarray], places: np.ndarray) -> list[np.ndarray]:
    """Return the structure in another order of the pivots."""
    n, counts = len(below), np.array([len(rows) for rows in below])
    key = np.repeat(places * n, counts) + places[np.concatenate(below)]
    key.sort()
    ends = np.empty(n, int)
    ends[places] = counts
    return np.split(key % n, np.cumsum(ends)[:-1])


def _supernodes(parent: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the starts of the supernodes (and the end of the last), and the parent of each, -1 for a root.

    A supernode is a run of pivots with the same rows, or a small branch, whose zeros cost less than calls for each
    pivot.
    """
    n = len(parent)
    joined = (parent[:-1] == np.arange(1, n)) & (counts[:-1] == counts[1:] + 1)
    counted = [1] * n
    for j, p in enumerate(parent.tolist()):
        if p >= 0:
            counted[p] += counted[j]
    sizes = np.array(counted)
    small = sizes <= _SMALL_BRANCH
    tops = np.flatnonzero(small & ~((parent >= 0) & small[parent]))
    inside = np.zeros(n, int)
    np.add.at(inside, tops - sizes[tops] + 1, 1)
    np.add.at(inside, tops, -1)
    joined |= (np.cumsum(inside) > 0)[:-1]
    begins = np.concatenate([[0], np.flatnonzero(~joined) + 1, [n]])
    node_of = np.repeat(np.arange(len(begins) - 1), np.diff(begins))
    above = parent[begins[1:] - 1]
    return begins, np.where(above < 0, -1, node_of[above])


class _Panels:
    """A lower triangular factor in another order of the pivots, with access to a few columns as a dense matrix."""

    def __init__(self, factor: Any, places: np.ndarray) -> None:
        from scipy.sparse import csc_array  # type: ignore[import-untyped]  # SciPy has no types

        factor = factor.tocoo()
        stored = factor.data != 0  # zeros that SuperLU stores may be outside the structure
        rows, columns = places[factor.row[stored]], places[factor.col[stored]]
        moved = csc_array((factor.data[stored], (rows, columns)), shape=factor.shape)
        self.begins: np.ndarray = moved.indptr
        self.rows: np.ndarray = moved.indices
        self.data: np.ndarray = moved.data
        self.columns = np.repeat(np.arange(moved.shape[1]), np.diff(moved.indptr))

    def dense(self, first: int, last: int, ids: np.ndarray) -> np.ndarray:
        """Return the columns from `first` to `last`, in the rows `ids`."""
        entries = slice(self.begins[first], self.begins[last])
        panel = np.zeros((len(ids), last - first), self.data.dtype)
        panel[np.searchsorted(ids, self.rows[entries]), self.columns[entries] - first] = self.data[entries]
        return panel


def _front(lower: np.ndarray, upper: np.ndarray, inner: np.ndarray | None) -> np.ndarray:
    """Return Z in the rows and columns of a supernode and below, from L there, the transpose of U, and Z_SS."""
    width = lower.shape[1]
    left, right = _inverse_of_triangle(lower[:width]), _inverse_of_triangle(upper[:width])
    corner: np.ndarray = right.T @ left
    if inner is None:
        return corner
    x, y = lower[width:] @ left, (upper[width:] @ right).T
    front = np.empty((len(lower),) * 2, lower.dtype)
    front[width:, width:] = inner
    front[width:, :width] = -inner @ x
    front[:width, width:] = -y @ inner
    front[:width, :width] = corner - y @ front[width:, :width]
    return front


def _inverse_of_triangle(triangle: np.ndarray) -> np.ndarray:
    """Return the inverse of a lower triangular matrix."""
    if len(triangle) == 1:
        return 1 / triangle
    from scipy.linalg.lapack import get_lapack_funcs  # type: ignore[import-untyped]

    (invert,) = get_lapack_funcs(("trtri",), (triangle,))
    inverse: np.ndarray = invert(triangle, lower=1)[0]
    return inverse
