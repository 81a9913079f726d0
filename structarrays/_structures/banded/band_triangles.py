"""`tril` and `triu` of banded matrices: diagonals on the wrong side are left out."""

from ..._functions.creation import tril, triu
from .array import Banded, bands


def _no_background(x, *, k):
    return x.background is None


@tril.kernel(Banded, when=_no_background)
def _tril_banded(x, *, k):
    return _keep(x, [offset for offset in x.offsets if offset <= k])


@triu.kernel(Banded, when=_no_background)
def _triu_banded(x, *, k):
    return _keep(x, [offset for offset in x.offsets if offset >= k])


def _keep(x, offsets):
    """The diagonals with these offsets; the array of the same class, if these are all."""
    if len(offsets) == len(x.offsets):
        return x.assuming(frozenset())
    kept = [x.diagonal(k) for k in offsets]
    return bands(kept, offsets, x.core_shape, dtype=x.dtype, batch=x.batch_shape)
