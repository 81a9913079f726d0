"""All contact of `native` with attributes of JAX: the list of them, their checks, and their replacement.

No other module of `native` reads or replaces an attribute that the documentation of JAX does not promise.
"""

from __future__ import annotations

import importlib
import inspect
import threading
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import jax

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Replacements = Mapping[tuple[str, str], Callable[[Callable[..., Any]], Callable[..., Any]]]

TESTED = (0, 12)
"""The tested minor version of JAX."""


class Attribute(NamedTuple):
    """An attribute of JAX that `native` uses, and the form that it must have."""

    owner: str
    """Module, or module and class with a colon between them."""
    name: str
    form: tuple[str, ...]
    """Names that must be among the parameters of a function, or among the fields of a class."""
    replaced: bool
    """Whether the attribute is replaced while native calls are on; otherwise it is only read."""
    use: str


PRIVATE = (
    Attribute(
        "jax._src.pjit",
        "_trace_for_jit",
        ("fun", "ji", "ctx_mesh", "dbg", "avals", "args", "kwargs"),
        True,
        "traces a function of `jax.jit` at a cache miss; a function of JAX gets its structured form here",
    ),
    Attribute(
        "jax._src.pjit",
        "PjitInfo",
        ("static_argnums", "static_argnames"),
        False,
        "the static arguments of a function of `jax.jit`",
    ),
    Attribute(
        "jax._src.config:UserConfig",
        "set_global",
        ("self", "new_value"),
        False,
        "sets a user context (`jax.make_user_context`) for all threads",
    ),
    Attribute(
        "jax._src.config:UserConfig",
        "get_global",
        ("self",),
        False,
        "reads a user context for all threads",
    ),
)
"""The private attributes of JAX that `native` uses."""

PUBLIC = (
    Attribute("jax", "vmap", ("fun", "in_axes", "out_axes", "axis_name", "axis_size"), True, "maps a core axis"),
    Attribute("jax.lax", "cond", ("pred", "true_fun", "false_fun", "operands"), True, "joins the results"),
    Attribute("jax.lax", "switch", ("index", "branches", "operands"), True, "joins the results"),
    Attribute("jax.lax", "platform_dependent", ("args", "default", "per_platform"), True, "joins the results"),
    Attribute("jax.lax", "scan", ("f", "init", "xs", "length"), True, "widens the carry"),
    Attribute("jax.lax", "while_loop", ("cond_fun", "body_fun", "init_val"), True, "widens the carry"),
    Attribute("jax.lax", "fori_loop", ("lower", "upper", "body_fun", "init_val"), True, "widens the carry"),
    Attribute("jax.lax", "map", ("f", "xs"), True, "maps over the rows of a matrix"),
    Attribute("jax.scipy.linalg", "cho_factor", ("a", "lower"), True, "returns an argument that is not an array"),
    Attribute("jax.numpy:ufunc", "__call__", ("self", "args"), True, "calls `jax.numpy.add` and other ufuncs"),
)
"""The public attributes that get a form of their own; `array_functions` lists all others."""

MODULES = (
    "jax.numpy",
    "jax.numpy.linalg",
    "jax.numpy.fft",
    "jax.lax",
    "jax.lax.linalg",
    "jax.nn",
    "jax.ops",
    "jax.image",
    "jax.random",
    "jax.scipy.fft",
    "jax.scipy.integrate",
    "jax.scipy.linalg",
    "jax.scipy.ndimage",
    "jax.scipy.signal",
    "jax.scipy.sparse.linalg",
    "jax.scipy.special",
    "jax.scipy.stats",
)
"""Public modules whose functions accept structured arrays while native calls are on."""

ON_PARAMETERS = frozenset("optimization_barrier stop_gradient with_sharding_constraint all_gather ppermute".split())
"""Functions that JAX defines on pytrees. Applied to all parameters, they give the right value for every structure."""

OF_TYPES = frozenset(
    "axis_index axis_size broadcast_shapes can_cast composite conv_dimension_numbers dtype einsum_path frompyfunc fromfunction iscomplexobj "
    "isdtype isrealobj isscalar issubdtype iterable ndim promote_types result_type shape size vectorize".split()
)
"""Functions that read only shapes and dtypes, which structured arrays have, or return no arrays."""

_SOURCES = ("jax.numpy", "jax.lax", "jax.nn", "jax.ops", "jax.image", "jax.random", "jax.scipy")


def is_function_of_jax(fun: Any) -> bool:
    """Return whether a function belongs to one of JAX's modules of functions of arrays."""
    while not hasattr(fun, "__module__") and hasattr(fun, "func"):
        fun = fun.func  # of functools.partial
    name = str(getattr(fun, "__module__", "")).replace("jax._src.", "jax.", 1)
    return any(name == source or name.startswith(f"{source}.") for source in _SOURCES)


def array_functions() -> Iterator[tuple[Any, str, Any]]:
    """Return the functions of JAX that are not compiled as a whole: their modules, names, and the functions.

    `_trace_for_jit` sees the calls of compiled functions, such as `jax.numpy.exp`.
    """
    special = {(attribute.owner, attribute.name) for attribute in PUBLIC}
    for owner in _modules():
        for name, value in sorted(vars(owner).items()):
            if name.startswith("_") or name in ON_PARAMETERS | OF_TYPES or (owner.__name__, name) in special:
                continue
            if isinstance(value, FunctionType | jax.custom_jvp) and is_function_of_jax(value):
                yield owner, name, value


def is_collective(fun: Any) -> bool:
    """Return whether a function combines the arrays of several devices."""
    return str(getattr(fun, "__module__", "")).endswith(".lax.parallel")


def _modules() -> Iterator[ModuleType]:
    for name in MODULES:
        module = importlib.import_module(name)
        yield module
        if name == "jax.scipy.stats":
            yield from (value for value in vars(module).values() if isinstance(value, ModuleType) and _is_inside(value, name))


def _is_inside(module: ModuleType, parent: str) -> bool:
    return module.__name__.startswith(f"{parent}.")


def _owner(path: str) -> Any:
    module, _, name = path.partition(":")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found


def version_problem() -> str | None:
    """Return why this version of JAX is not supported; None if it is."""
    given = tuple(int(part) for part in jax.__version__.split(".")[:2])
    if given == TESTED:
        return None
    wanted = ".".join(map(str, TESTED))
    return f"JAX must have version {wanted}.x, got {jax.__version__}"


def problems() -> list[str]:
    """Return how the attributes of the installed JAX differ from the tables; empty if they do not."""
    found = []
    for attribute in (*PRIVATE, *PUBLIC):
        where = f"{attribute.owner.replace(':', '.')}.{attribute.name}"
        try:
            value = vars(_owner(attribute.owner))[attribute.name]
        except (ImportError, AttributeError, KeyError):
            found.append(f"{where} is missing")
            continue
        names = _form(value)
        missing = [name for name in attribute.form if name not in names]
        # A replacement of a private function receives its arguments in this order.
        exact = attribute.replaced and attribute in PRIVATE
        if missing or (exact and names != attribute.form):
            found.append(f"{where} has the form ({', '.join(names)})")
    return found


def _form(value: Any) -> tuple[str, ...]:
    if isinstance(value, type):
        return tuple(getattr(value, "_fields", ()))
    try:
        return tuple(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return ()


class _Patch(NamedTuple):
    owner: Any
    name: str
    original: Any
    replacement: Any


class Patches:
    """The replaced attributes of JAX. All of them are replaced, or none."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._uses = 0
        self._patches: list[_Patch] = []

    def begin(self, special: Replacements, general: Callable[[Any], Callable[..., Any]]) -> None:
        """Replace the attributes, unless they are replaced already.

        Parameters
        ----------
        special : mapping
            Maps owner and name of an attribute of the tables to a function that makes the replacement.
        general : callable
            Function that makes the replacement of any other function of arrays.

        Raises
        ------
        RuntimeError
            If the attributes of the installed JAX differ from the tables. Then nothing has been replaced.
        """
        with self._lock:
            if not self._uses:
                self._replace(special, general)
            self._uses += 1

    def end(self) -> None:
        """Restore the attributes after the last use."""
        with self._lock:
            self._uses -= 1
            if not self._uses:
                self._restore()

    def _replace(self, special: Replacements, general: Callable[[Any], Callable[..., Any]]) -> None:
        differences = problems()
        if differences:
            raise RuntimeError(
                f"native: JAX {jax.__version__} differs from the tested JAX: {'; '.join(differences)}; "
                "use structarrays.structured, which does not depend on it"
            )
        planned = []
        for attribute in (*PRIVATE, *PUBLIC):
            if attribute.replaced:
                owner = _owner(attribute.owner)
                original = vars(owner)[attribute.name]
                planned.append(_Patch(owner, attribute.name, original, special[attribute.owner, attribute.name](original)))
        planned += [_Patch(owner, name, value, general(value)) for owner, name, value in array_functions()]
        try:
            for patch in planned:
                setattr(patch.owner, patch.name, patch.replacement)
                self._patches.append(patch)
        except BaseException:
            self._restore()
            raise

    def _restore(self) -> None:
        while self._patches:
            patch = self._patches.pop()
            # If someone else has replaced it since, the replacement calls ours, which does nothing from now on.
            if vars(patch.owner).get(patch.name) is patch.replacement:
                setattr(patch.owner, patch.name, patch.original)


PATCHES = Patches()
