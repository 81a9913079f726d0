"""All contact of `native` with the attributes of JAX: the list of them, and their checks.

No other module of `native` uses an attribute that the documentation of JAX does not promise.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import jax

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CellType

TESTED = (0, 12)
"""The tested minor version of JAX."""


class Attribute(NamedTuple):
    """An attribute of JAX that `native` uses, and the form that it must have."""

    owner: str
    """Module, or module and class with a colon between them."""
    name: str
    form: tuple[str, ...]
    """Names that must be among the parameters of a function, among the fields of a class, or the names of the types in a tuple."""
    change: Literal["redirected", "replaced", "read"]
    """Change while native calls are on: calls of a function are redirected, or a value is replaced."""
    use: str


PRIVATE = (
    Attribute(
        "jax._src.pjit",
        "_trace_for_jit",
        ("fun", "ji", "ctx_mesh", "dbg", "avals", "args", "kwargs"),
        "redirected",
        "traces a function of `jax.jit` at a cache miss; a function of JAX gets its structured form here",
    ),
    Attribute(
        "jax._src.numpy.util",
        "_arraylike_types",
        ("ndarray", "Array"),
        "replaced",
        "the types that functions of `jax.numpy` accept as arrays",
    ),
    Attribute(
        "jax._src.pjit",
        "PjitInfo",
        ("static_argnums", "static_argnames"),
        "read",
        "the static arguments of a function of `jax.jit`",
    ),
    Attribute(
        "jax._src.config:UserConfig",
        "set_global",
        ("self", "new_value"),
        "read",
        "sets a user context (`jax.make_user_context`) for all threads",
    ),
    Attribute(
        "jax._src.config:UserConfig",
        "get_global",
        ("self",),
        "read",
        "reads a user context for all threads",
    ),
)
"""The private attributes of JAX that `native` uses."""

PUBLIC = (
    Attribute(
        "jax", "vmap", ("fun", "in_axes", "out_axes", "axis_name", "axis_size"), "redirected", "maps a core axis"
    ),
    Attribute("jax.lax", "cond", ("pred", "true_fun", "false_fun", "operands"), "redirected", "joins the results"),
    Attribute("jax.lax", "switch", ("index", "branches", "operands"), "redirected", "joins the results"),
    Attribute("jax.lax", "platform_dependent", ("args", "default", "per_platform"), "redirected", "joins the results"),
    Attribute("jax.lax", "scan", ("f", "init", "xs", "length"), "redirected", "widens the carry"),
    Attribute("jax.lax", "while_loop", ("cond_fun", "body_fun", "init_val"), "redirected", "widens the carry"),
    Attribute("jax.lax", "fori_loop", ("lower", "upper", "body_fun", "init_val"), "redirected", "widens the carry"),
    Attribute("jax.lax", "map", ("f", "xs"), "redirected", "maps over the rows of a matrix"),
    Attribute(
        "jax.scipy.linalg", "cho_factor", ("a", "lower"), "redirected", "returns an argument that is not an array"
    ),
    Attribute("jax:custom_jvp", "__call__", ("self", "args"), "redirected", "calls functions such as `jax.nn.relu`"),
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

ATTRIBUTES = (*PRIVATE, *PUBLIC)

TRACE = (PRIVATE[0].owner, PRIVATE[0].name)
"""The function that traces functions of `jax.jit`."""

LOOPS = "jax._src.lax.control_flow."
"""Modules of loops of JAX that consist of other loops."""

ON_PARAMETERS = frozenset(("optimization_barrier", "stop_gradient", "with_sharding_constraint"))
"""Functions that JAX defines on pytrees. Applied to all parameters, they give the right value for every structure."""

OF_TYPES = frozenset(
    "axis_index axis_size broadcast_shapes can_cast composite conv_dimension_numbers dtype einsum_path frompyfunc fromfunction iscomplexobj "
    "isdtype isrealobj isscalar issubdtype iterable ndim promote_types result_type shape size vectorize".split()
)
"""Functions that read only shapes and dtypes, which structured arrays have, or return no arrays."""

PASSING_ON = {f"jax.numpy.{name}" for name in "all amax amin any max mean min prod sum".split()}
"""Functions that only pass their arguments to a compiled function, which accepts structured arrays itself."""

_FILES = re.compile(r".*[/\\]jax[/\\](_src[/\\])?(third_party[/\\])?(numpy|scipy|lax|nn|ops|image|random)\b")
"""The files of functions of arrays in JAX."""


def is_function_of_jax(fun: Any) -> bool:
    """Return whether a function is one of JAX's functions of arrays.

    Its code tells, since a transformed function, such as ``jax.grad(jnp.sum)``, has the module and the name of the other
    function.
    """
    while fun is not None:
        code = getattr(fun, "__code__", None)
        if code is None:
            fun = getattr(
                fun, "func", getattr(fun, "__wrapped__", None)
            )  # of functools.partial, or of a compiled function
        elif code.co_filename.endswith("traceback_util.py"):
            fun = next((f for f in map(_content, fun.__closure__ or ()) if hasattr(f, "__code__")), None)
        else:
            return _FILES.match(code.co_filename) is not None
    return False


def is_called_by_jax(depth: int) -> bool:
    """Return whether the caller this many frames above is code of JAX."""
    return re.match(r".*[/\\]jax[/\\]_src[/\\]", sys._getframe(depth + 1).f_code.co_filename) is not None


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None


class TraceCall(NamedTuple):
    """The arguments of `TRACE`."""

    fun: Any
    info: Any
    mesh: Any
    debug_info: Any
    avals: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def static(self) -> dict[str, Any]:
        """The static arguments of the function, in the form of arguments of `jax.jit`."""
        return {"static_argnums": self.info.static_argnums, "static_argnames": self.info.static_argnames}


def everywhere(context: Any) -> Any:
    """Return the value of a user context of JAX in all threads that do not set it."""
    return context.get_global()


def set_everywhere(context: Any, value: Any) -> None:
    """Set the value of a user context of JAX in all threads that do not set it."""
    context.set_global(value)


def array_functions() -> dict[str, FunctionType]:
    """Return the functions of JAX that are not compiled as a whole, by their names.

    Calls of compiled functions, such as `jax.numpy.exp`, arrive at `_trace_for_jit`.
    """
    special = {id(function) for function in redirected_functions().values()}
    found: dict[int, tuple[str, FunctionType]] = {}  # several names may stand for one function
    for module in _modules():
        for name, value in sorted(vars(module).items()):
            if name.startswith("_") or name in ON_PARAMETERS | OF_TYPES or id(value) in special:
                continue
            if isinstance(value, FunctionType) and is_function_of_jax(value):
                found.setdefault(id(value), (f"{module.__name__}.{name}", value))
    return {name: function for name, function in found.values() if name not in PASSING_ON}


def redirected_functions() -> dict[tuple[str, str], FunctionType]:
    """Return the functions in the tables whose calls are redirected, by owner and name."""
    return {(a.owner, a.name): vars(_owner(a.owner))[a.name] for a in ATTRIBUTES if a.change == "redirected"}


def is_collective(fun: Any) -> bool:
    """Return whether a function combines the arrays of several devices."""
    return str(getattr(fun, "__module__", "")).endswith(".lax.parallel")


def _modules() -> Iterator[ModuleType]:
    for name in MODULES:
        module = importlib.import_module(name)
        yield module
        if name == "jax.scipy.stats":  # its distributions are modules
            inside = [value for value in vars(module).values() if isinstance(value, ModuleType)]
            yield from (value for value in inside if value.__name__.startswith(f"{name}."))


def arraylike_types() -> tuple[ModuleType, str, tuple[type, ...]]:
    """Return the types that functions of `jax.numpy` accept as arrays, with their module and name."""
    attribute = next(a for a in PRIVATE if a.change == "replaced")
    module = _owner(attribute.owner)
    return module, attribute.name, getattr(module, attribute.name)


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
    for attribute in ATTRIBUTES:
        where = f"{attribute.owner.replace(':', '.')}.{attribute.name}"
        try:
            value = vars(_owner(attribute.owner))[attribute.name]
        except (ImportError, AttributeError, KeyError):
            found.append(f"{where} is missing")
            continue
        names = _form(value)
        # A private function receives its arguments by position.
        exact = attribute in PRIVATE and attribute.change != "read"
        if names != attribute.form if exact else not set(attribute.form) <= set(names):
            found.append(f"{where} has the form ({', '.join(names)})")
        elif attribute.change == "redirected" and not isinstance(value, FunctionType):
            found.append(f"{where} is a {type(value).__name__}")
    for module, name in ((jax.numpy, "sin"), (jax.numpy, "concatenate"), (jax.nn, "relu"), (jax.lax, "scan")):
        if not is_function_of_jax(getattr(module, name, None)):
            found.append(f"{module.__name__}.{name} is defined in an unknown file")
    return found


def _form(value: Any) -> tuple[str, ...]:
    if isinstance(value, tuple):
        return tuple(getattr(kind, "__name__", "") for kind in value)
    if isinstance(value, type):
        return tuple(getattr(value, "_fields", ()))
    try:
        return tuple(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return ()
