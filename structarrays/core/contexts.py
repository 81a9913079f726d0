"""The library's contexts: what to do with a densification, a structural zero, a singular matrix (DESIGN 4.2).

The policies belong to the task that sets them, or to the thread where there are no tasks: a variable of `contextvars` holds them. They also
belong to the cache key of `jax.jit`, by a *user context* of JAX, so that a function that was traced under one policy is traced again
under another. A user context belongs to a thread, and nobody tells when a thread goes on with another task. So what JAX has is brought up to
date (`apply`) where JAX is about to look for compiled code: where it flattens one of our arrays, and in our functions.
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar, cast

import jax

from .tracing import compiling

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")


class DensifyPolicy(NamedTuple):
    """What happens when a structured array must be expanded: `mode`, and the limit in bytes above which it raises."""

    mode: Literal["allow", "warn", "error"] = "allow"
    limit: int = 1 << 30


class _Policies(NamedTuple):
    """All policies at once."""

    densify: DensifyPolicy = DensifyPolicy()
    strong_zeros: bool = True
    linalg: Literal["raise", "nan"] = "raise"
    log: Any = None
    """Where `record` and `explain` write."""


_DEFAULTS = _Policies()
_of_task: ContextVar[_Policies] = ContextVar("structarrays policies", default=_DEFAULTS)
_of_jax = jax.make_user_context(_DEFAULTS)

ENTERED: list[bool] = []
"""Not empty once a policy has been set anywhere: until then `apply` has nothing to do."""


def apply() -> None:
    """Tell JAX which policies this task has.

    Raises
    ------
    RuntimeError
        If JAX is tracing under other ones: what it compiles would be used where those hold.
    """
    policies = _of_task.get()
    known = _of_jax.value
    if known is policies:
        return
    if known != policies and compiling():
        names = [name for name, a, b in zip(policies._fields, policies, known, strict=True) if a != b]
        raise RuntimeError(
            f"a function is being compiled under the policies of another task or thread, which differ in {' and '.join(names)}. JAX learns "
            "the policies of a task from the arrays of structarrays among the arguments: give the function one, or set the policy inside of it"
        )
    _of_jax(policies).__enter__()


class Policy(Generic[T]):
    """One of the policies: `value` is what holds here, and a call makes the context in which it is another.

    Parameters
    ----------
    name : str
        The field of `_Policies`.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def value(self) -> T:
        """What holds in this task."""
        return cast(T, getattr(_of_task.get(), self._name))

    @contextlib.contextmanager
    def __call__(self, value: T) -> Iterator[None]:
        """A context in which the policy has this value. The others stay as they are, also at the end."""
        before = self.value
        self._set(value)
        try:
            yield
        finally:
            self._set(before)

    def _set(self, value: T) -> None:
        # No token of the variable: a generator may end in another task than it began in.
        change: dict[str, Any] = {self._name: value}
        policies = _of_task.get()._replace(**change)
        ENTERED[:] = [True]
        _of_task.set(policies)
        _of_jax(policies).__enter__()


densify_policy: Policy[DensifyPolicy] = Policy("densify")
strong_zeros_policy: Policy[bool] = Policy("strong_zeros")
linalg_errors: Policy[Literal["raise", "nan"]] = Policy("linalg")
active: Policy[Any] = Policy("log")
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
