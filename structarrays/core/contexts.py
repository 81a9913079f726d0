"""The library's contexts: what to do with a densification, a structural zero, a singular matrix (DESIGN 4.2).

All of them are *user contexts* of JAX, so that they belong to the cache key of `jax.jit`: a function that was traced
under one policy is traced again under another.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Literal, NamedTuple

import jax

if TYPE_CHECKING:
    from collections.abc import Iterator


class DensifyPolicy(NamedTuple):
    """What happens when a structured array must be expanded: `mode`, and the limit in bytes above which it raises."""

    mode: Literal["allow", "warn", "error"] = "allow"
    limit: int = 1 << 30


densify_policy = jax.make_user_context(DensifyPolicy())
strong_zeros_policy = jax.make_user_context(True)
linalg_errors = jax.make_user_context("raise")
eager_retry = jax.make_user_context(False)
"""Whether an eager caller looks at the result, and tries the dense form if a solver has failed."""


@contextlib.contextmanager
def densify(mode: Literal["allow", "warn", "error"] = "allow", *, limit: int | None = None) -> Iterator[None]:
    """Say what happens where a structured array cannot keep its structure.

    Parameters
    ----------
    mode : {"allow", "warn", "error"}
        ``"allow"`` expands in silence up to the limit, ``"warn"`` warns at each, ``"error"`` raises at each. Warnings
        are given when a function is traced, so once for each combination of shapes and dtypes.
    limit : int, optional
        The limit in bytes of one dense form, above which `DensifyError` is raised whatever the mode (default 1 GiB).

    Raises
    ------
    ValueError
        If `mode` is none of the three, or `limit` is negative.
    TypeError
        If `limit` is no number.

    Examples
    --------
    >>> import structarrays as sa
    >>> with sa.densify("error"):
    ...     try:
    ...         sa.sort(sa.Diagonal([3.0, 1.0]))
    ...     except sa.DensifyError as error:
    ...         print(str(error).splitlines()[0])
    sort would expand Diagonal of shape (2, 2) to its dense form (32 bytes), which sa.densify("error") forbids
    """
    if mode not in ("allow", "warn", "error"):
        raise ValueError(f'mode must be "allow", "warn" or "error", got {mode!r}')
    if limit is None:
        limit = DensifyPolicy().limit
    elif not isinstance(limit, (int, float)):
        raise TypeError(f"limit must be a number of bytes, got {limit!r}")
    elif not limit >= 0:
        raise ValueError(f"limit must be a number of bytes, at least 0, got {limit}")
    with densify_policy(DensifyPolicy(mode, int(limit))):
        yield


@contextlib.contextmanager
def strong_zeros(on: bool = True) -> Iterator[None]:
    """Say whether a structural zero absorbs NaN and infinity (DESIGN 4.3); it does unless switched off here.

    With ``strong_zeros(False)`` every result equals the dense one in all special cases, at the price of structure:
    the product of a diagonal and a dense array is then dense.

    Examples
    --------
    >>> import structarrays as sa
    >>> x = sa.Diagonal([1.0, 2.0]) * float("inf")
    >>> print(float(x[0, 1]))
    0.0
    >>> with sa.strong_zeros(False):
    ...     print(float((sa.Diagonal([1.0, 2.0]) * float("inf"))[0, 1]))
    nan
    """
    if not isinstance(on, bool):
        raise TypeError(f"strong_zeros takes True or False, got {on!r}")
    with strong_zeros_policy(on):
        yield


@contextlib.contextmanager
def errstate(*, linalg: Literal["raise", "nan"] = "raise") -> Iterator[None]:
    """Say what happens at a singular or indefinite matrix when a function is called eagerly.

    Parameters
    ----------
    linalg : {"raise", "nan"}
        ``"raise"`` (default) raises `numpy.linalg.LinAlgError`, ``"nan"`` returns NaN as under `jax.jit`, and saves the
        wait for the result.

    Examples
    --------
    >>> import structarrays as sa
    >>> with sa.errstate(linalg="nan"):
    ...     print(sa.linalg.solve(sa.zeros((1, 1)), sa.ones(1)).to_jax())
    [nan]
    """
    if linalg not in ("raise", "nan"):
        raise ValueError(f'linalg must be "raise" or "nan", got {linalg!r}')
    with linalg_errors(linalg):
        yield
