"""Contexts that set a policy: densification, structural zeros, singular matrices (docs/design/semantics.md).

A `contextvars` variable stores the policies, so that they belong to the task that sets them, or to the thread if there
are no tasks. A *user context* of JAX makes the policies a part of the cache key of `jax.jit`: a function that was
traced under one policy is traced again under another. A user context belongs to a thread, and JAX does not notice when
the thread switches to another task. So `apply` updates the user context before JAX looks for compiled code: when JAX
flattens an array of this library, and in functions of this library.
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar, cast

import jax

from ..._numerics.host_calls import follow as follow_host_calls
from .tracing import compiling

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")


class DensifyPolicy(NamedTuple):
    """Policy for structured arrays that must be densified: `mode`, and the limit in bytes above which densification
    raises.
    """

    mode: Literal["allow", "warn", "error"] = "allow"
    limit: int = 1 << 30


class _Policies(NamedTuple):
    """All policies of a task."""

    densify: DensifyPolicy = DensifyPolicy()
    strong_zeros: bool = True
    linalg: Literal["raise", "nan"] = "raise"
    host_calls: bool = True
    sparse_solver: str = "superlu"
    dense_results: Literal["array", "jax"] | None = None
    """None stands for the default of the process."""
    log: Any = None
    """The log that `record` and `explain` write to."""


_DEFAULTS = _Policies()
_of_task: ContextVar[_Policies] = ContextVar("structarrays policies", default=_DEFAULTS)
_of_jax = jax.make_user_context(_DEFAULTS)

ENTERED: list[bool] = []
"""Not empty after the first change of a policy, in any thread. Before that change `apply` has nothing to do."""


class _OfProcess:
    """The default of the process for `dense_results`, and the last policies that it completed."""

    dense_results: Literal["array", "jax"] = "array"
    completed: tuple[_Policies, _Policies] = (_DEFAULTS, _DEFAULTS._replace(dense_results="array"))


_of_process = _OfProcess()


def _complete(policies: _Policies) -> _Policies:
    """Replace absent policies by the defaults of the process."""
    if policies.dense_results is not None or _of_process.dense_results == "array":
        return policies
    given, completed = _of_process.completed
    if given is not policies or completed.dense_results != _of_process.dense_results:
        completed = policies._replace(dense_results=_of_process.dense_results)
        _of_process.completed = policies, completed
    return completed


def apply() -> None:
    """Pass the policies of this task to JAX.

    Raises
    ------
    RuntimeError
        If JAX is tracing under other policies: later calls under those policies would use the compiled code.
    """
    policies = _complete(_of_task.get())
    known = _of_jax.value
    if known is policies:
        return
    if known != policies and compiling():
        names = [name for name, a, b in zip(policies._fields, policies, known, strict=True) if a != b]
        raise RuntimeError(
            "a compiled function must be traced under the policies of its task, got policies of another task or "
            f"thread, which differ in {' and '.join(names)}; pass an array of structarrays as an argument, or set the "
            "policy inside the function"
        )
    _of_jax(policies).__enter__()


class Policy(Generic[T]):
    """One policy: `value` is its current value, and a call returns a context with another value.

    Parameters
    ----------
    name : str
        Name of the field of `_Policies`.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def value(self) -> T:
        """Value in this task."""
        return cast(T, getattr(_of_task.get(), self._name))

    @contextlib.contextmanager
    def __call__(self, value: T) -> Iterator[None]:
        """Return a context in which the policy has this value.

        Entering and leaving it does not change other policies.
        """
        before = cast(T, getattr(_of_task.get(), self._name))  # None stays None, which stands for a default
        self._set(value)
        try:
            yield
        finally:
            self._set(before)

    def _set(self, value: T) -> None:
        # A token of the variable does not work here: a generator may end in another task than the one in which it
        # began.
        change: dict[str, Any] = {self._name: value}
        policies = _of_task.get()._replace(**change)
        ENTERED[:] = [True]
        _of_task.set(policies)
        _of_jax(_complete(policies)).__enter__()


densify_policy: Policy[DensifyPolicy] = Policy("densify")
strong_zeros_policy: Policy[bool] = Policy("strong_zeros")
linalg_errors: Policy[Literal["raise", "nan"]] = Policy("linalg")
host_calls_policy: Policy[bool] = Policy("host_calls")
follow_host_calls(lambda: host_calls_policy.value)
sparse_solver_policy: Policy[str] = Policy("sparse_solver")
active: Policy[Any] = Policy("log")


class _DenseResults(Policy[Literal["array", "jax"]]):
    """The policy of `dense_results`, which has a default of the process."""

    @property
    def value(self) -> Literal["array", "jax"]:
        return _of_task.get().dense_results or _of_process.dense_results

    def set_default(self, value: Literal["array", "jax"]) -> None:
        """Set the default of the process."""
        _of_process.dense_results = value
        ENTERED[:] = [True]
        apply()


dense_results_policy = _DenseResults("dense_results")


class Caller(NamedTuple):
    """Facts about the caller of a solver."""

    falls_back: bool = False
    """The caller checks the result, and falls back to the dense form if the solver has failed."""
    is_constant: bool = False
    """The caller never differentiates through the solver."""
    is_eager: bool = False
    """The caller is an eager call, which solves the dense form of the whole matrix if the solver has failed."""
    expands: bool = False
    """The caller is an eager call after a failed attempt: the kernel forms the dense form if the policy allows it."""


caller = jax.make_user_context(Caller())
"""The `Caller` for which JAX traces. It belongs to the cache key of compiled functions, as the policies do."""


@contextlib.contextmanager
def densify(mode: Literal["allow", "warn", "error"] = "allow", *, limit: int | None = None) -> Iterator[None]:
    """Set what happens if an operation cannot keep the structure of an array; a context manager.

    Parameters
    ----------
    mode : {"allow", "warn", "error"}, default "allow"
        ``"allow"`` densifies silently up to the limit, ``"warn"`` warns about each densification, and ``"error"``
        raises. A warning is issued when a function is traced, so once for each combination of shapes and dtypes.
    limit : int, optional
        Size of one dense form in bytes above which `DensifyError` is raised, regardless of the mode. The default is 1
        GiB.

    Raises
    ------
    ValueError
        If `mode` is not one of the three strings, or `limit` is negative.
    TypeError
        If `limit` is not a number.

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
        raise ValueError(f'densify: mode must be "allow", "warn" or "error", got {mode!r}')
    if limit is None:
        limit = DensifyPolicy().limit
    elif not isinstance(limit, (int, float)):
        raise TypeError(f"densify: limit must be a number of bytes, got {limit!r}")
    elif not limit >= 0:
        raise ValueError(f"densify: limit must be a nonnegative number of bytes, got {limit}")
    with densify_policy(DensifyPolicy(mode, int(limit))):
        yield


@contextlib.contextmanager
def strong_zeros(on: bool = True) -> Iterator[None]:
    """Set whether structural zeros absorb NaN and infinity (docs/design/semantics.md); a context manager.

    By default they do. With ``strong_zeros(False)`` every result equals the dense result in all special cases, but
    structure is lost: the product of a diagonal and a dense array is then dense.

    Parameters
    ----------
    on : bool, default True
        Whether structural zeros absorb NaN and infinity.

    Raises
    ------
    TypeError
        If `on` is not a bool.

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
        raise TypeError(f"strong_zeros: on must be True or False, got {on!r}")
    with strong_zeros_policy(on):
        yield


@contextlib.contextmanager
def errstate(*, linalg: Literal["raise", "nan"] = "raise") -> Iterator[None]:
    """Set what an eager call does with a singular or indefinite matrix; a context manager.

    Parameters
    ----------
    linalg : {"raise", "nan"}, default "raise"
        ``"raise"`` raises `numpy.linalg.LinAlgError`. ``"nan"`` returns NaN as under `jax.jit`, and does not wait for
        the result.

    Raises
    ------
    ValueError
        If `linalg` is neither of the two strings.

    Examples
    --------
    >>> import structarrays as sa
    >>> with sa.errstate(linalg="nan"):
    ...     print(sa.linalg.solve(sa.zeros((1, 1)), sa.ones(1)).to_jax())
    [nan]
    """
    if linalg not in ("raise", "nan"):
        raise ValueError(f'errstate: linalg must be "raise" or "nan", got {linalg!r}')
    with linalg_errors(linalg):
        yield


@contextlib.contextmanager
def host_calls(allowed: bool = True) -> Iterator[None]:
    """Set whether compiled programs for CPUs may call LAPACK by way of Python; a context manager.

    By default they may, where that is faster. JAX does not store programs with such calls in its cache on disk. With
    ``host_calls(False)`` every algorithm is compiled by XLA. Programs for other devices and programs of `jax.export`
    never call LAPACK. Algorithms that exist on the host alone, such as sparse factorizations, do not depend on this
    policy.

    Parameters
    ----------
    allowed : bool, default True

    Raises
    ------
    TypeError
        If `allowed` is not a bool.

    Examples
    --------
    >>> import structarrays as sa
    >>> A = sa.Banded([-sa.ones(96), 4 * sa.ones(100), -sa.ones(96)], (-4, 0, 4), (100, 100))
    >>> with sa.host_calls(False):
    ...     print(sa.linalg.solve(A, A @ sa.ones(100))[:2])
    [1. 1.]
    """
    if not isinstance(allowed, bool):
        raise TypeError(f"host_calls: allowed must be True or False, got {allowed!r}")
    with host_calls_policy(allowed):
        yield


def _check_dense_results(kind: object, name: str) -> None:
    if kind not in ("array", "jax"):
        raise ValueError(f'{name}: kind must be "array" or "jax", got {kind!r}')


@contextlib.contextmanager
def dense_results(kind: Literal["array", "jax"]) -> Iterator[None]:
    """Set the type of dense results of calls without dense operands; a context manager.

    The type of a dense result follows the dense operands of a call. If one of them is a `Dense`, the result is a
    `Dense`. Otherwise, if one of them is a `jax.Array`, the result is a `jax.Array`, as in ``A @ v``. This policy applies to
    all other calls, such as ``sum(A)``, ``linalg.logdet(A)`` and ``A[0]``. It does not apply to functions that create
    or convert an array, such as `asarray`, `linspace` and `to_dense`.

    Parameters
    ----------
    kind : {"array", "jax"}
        ``"array"`` returns arrays of this library, as generic code of the Array API standard needs. ``"jax"`` returns
        a `jax.Array`, as functions of JAX need.

    Raises
    ------
    ValueError
        If `kind` is neither of the two strings.

    See Also
    --------
    set_dense_results : Set the default of the process, which is ``"array"``.

    Examples
    --------
    >>> import jax
    >>> import structarrays as sa
    >>> A = sa.Diagonal([1.0, 2.0])
    >>> with sa.dense_results("jax"):
    ...     jax.grad(lambda A: sa.linalg.logdet(A))(A)
    Diagonal([1. , 0.5], shape=(2, 2), dtype=float64)
    """
    _check_dense_results(kind, "dense_results")
    with dense_results_policy(kind):
        yield


def set_dense_results(kind: Literal["array", "jax"]) -> None:
    """Set the default of `dense_results` for all threads of the process.

    Call it once, when a program starts. Contexts of `dense_results` take precedence.

    Parameters
    ----------
    kind : {"array", "jax"}
        The same as for `dense_results`.

    Raises
    ------
    ValueError
        If `kind` is neither of the two strings.

    See Also
    --------
    dense_results : Set the type in one block.

    Examples
    --------
    >>> import structarrays as sa
    >>> sa.set_dense_results("jax")
    >>> sa.sum(sa.Diagonal([1.0, 2.0]))
    Array(3., dtype=float64)
    >>> sa.set_dense_results("array")
    """
    _check_dense_results(kind, "set_dense_results")
    dense_results_policy.set_default(kind)
