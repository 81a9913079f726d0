"""PyTensor graphs on structured arrays (`function`), and structured matrices in PyTensor graphs (`StructuredMatrix`).

The module requires PyTensor: ``pip install structarrays[pytensor]``. Only this module imports PyTensor.

On its first import, PyTensor's JAX backend sets JAX's option ``jax_enable_x64`` according to PyTensor's ``floatX``.
This module imports that backend and restores the option, so a later ``mode="JAX"`` does not change it. Call
``jax.config.update("jax_enable_x64", True)`` to enable 64 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# This import must be the first of PyTensor: it restores jax_enable_x64, and raises if PyTensor is missing.
from .pytensor_ops import (
    VALUELESS,
    StructuredMatMul,
    StructuredMatrix,
    StructuredOp,
    StructuredSlogdet,
    StructuredSolve,
    StructuredToDense,
)

# isort: split

import jax
import jax.numpy as jnp
import numpy as np
from pytensor.compile.builders import infer_shape
from pytensor.compile.mode import JAX
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.traversal import graph_inputs, walk
from pytensor.link.jax.dispatch import jax_funcify  # type: ignore[attr-defined]  # it is re-exported
from pytensor.tensor.basic import Eye
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.type import TensorType

from .._core.array.base import Array
from .._core.dtypes import as_dtype
from .._functions.data_type import astype
from ..transform.structured import structured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


__all__ = [
    "StructuredMatMul",
    "StructuredMatrix",
    "StructuredOp",
    "StructuredSlogdet",
    "StructuredSolve",
    "StructuredToDense",
    "function",
]


def function(
    inputs: Iterable[Variable[Any, Any]],
    outputs: Variable[Any, Any] | Iterable[Variable[Any, Any]],
    *,
    rewrite: bool = True,
) -> Callable[..., Any]:
    """Compile a PyTensor graph into a function of structured arrays.

    The function is similar to `pytensor.function` with ``mode="JAX"``, but it accepts structured arrays. `structured`
    runs the graph, so that each operation keeps the structure that the corresponding function of this namespace keeps.

    Parameters
    ----------
    inputs : sequence of tensor variables
        Arguments of the function, in order. Shared variables are not arguments: the function reads their values when it
        is called.
    outputs : variable, or sequence of variables
        Results of the function.
    rewrite : bool, default True
        Whether PyTensor rewrites the graph for JAX. Some graphs cannot be compiled for JAX without rewriting.

    Returns
    -------
    callable
        Function with one argument for each input: an array of any structure, of JAX or of NumPy, or a number. An
        argument must have the number of dimensions and the static shape of its input, and a data type that can be cast
        to the data type of the input without loss. The function returns one result, or a list if `outputs` is a
        sequence. Results are structured arrays where the structure is kept and arrays of JAX otherwise, in the data
        types of the graph.

    Raises
    ------
    TypeError
        If an input is not a tensor variable. When called: if the number of arguments is wrong, or the data type of an
        argument cannot be cast.
    ValueError
        If an input or an output has a 64-bit data type while ``jax_enable_x64`` is off. When called: if an argument
        does not have the shape of its input.
    NotImplementedError
        If PyTensor's JAX backend lacks an operation of the graph, or the graph has random variables. When called: if
        the shape of a result depends on the value of an argument that is not a Python integer.

    See Also
    --------
    structarrays.structured : Which operations keep which structures.

    Notes
    -----
    The function works inside and outside of JAX's transformations. Python integers for scalar inputs are static: shapes
    may depend on them, and each new value compiles the graph again. ``pytensor.tensor.eye`` keeps its structure, while
    PyTensor's rewriting would make a dense constant of it.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> import structarrays as sa
    >>> from structarrays.interop import pytensor as sp
    >>> A, x = pt.matrix("A"), pt.vector("x")
    >>> f = sp.function([A, x], [pt.tanh(A) + pt.eye(2), A @ x])
    >>> product, vector = f(sa.Diagonal([0.0, 1.0]), [1.0, 2.0])
    >>> product
    Diagonal([1.        , 1.76159416], shape=(2, 2), dtype=float64)
    >>> vector
    Array([0., 2.], dtype=float64)
    """
    variable: Any  # a tensor variable, which has a dtype
    inputs, single = list(inputs), isinstance(outputs, Variable)
    outputs = [outputs] if isinstance(outputs, Variable) else list(outputs)
    for place, variable in enumerate(inputs):
        if not isinstance(variable, Variable) or not isinstance(variable.type, TensorType):
            kind = variable.type if isinstance(variable, Variable) else type(variable).__name__
            raise TypeError(f"function: inputs must be tensor variables, inputs[{place}] is a {kind}")
    for argument, variables in (("inputs", inputs), ("outputs", outputs)):
        for place, variable in enumerate(variables):
            if np.dtype(variable.dtype).kind in "fc":
                as_dtype(variable.dtype, f"the dtype of {variable.name or f'{argument}[{place}]'}")
    shared = [v for v in graph_inputs(outputs) if isinstance(v, SharedVariable) and v not in inputs]
    for variable in shared:
        if not isinstance(variable.type, TensorType):
            raise NotImplementedError(
                f"function: shared variables must be arrays, got {variable}, a {variable.type}; pass random numbers as an input instead, "
                f"because JAX does not support PyTensor's random generators"
            )
    graph = FunctionGraph([*inputs, *shared], outputs, clone=True)
    if rewrite:
        _rewrite(graph)
    run = structured(_typed(jax_funcify(graph), outputs))

    def compiled(*arguments: Any) -> Any:
        if len(arguments) != len(inputs):
            raise TypeError(f"the function takes {len(inputs)} arguments, got {len(arguments)}")
        values = [
            _argument(value, variable.type, variable.name or f"inputs[{place}]")
            for place, (value, variable) in enumerate(zip(arguments, inputs, strict=True))
        ]
        try:
            results = run(*values, *(jnp.asarray(v.get_value(borrow=True)) for v in shared))  # type: ignore[no-untyped-call]  # of PyTensor
        except TypeError as error:
            if not (_needs_a_value(error) or _has_shape_from_values(graph)):
                raise
            raise NotImplementedError(
                "the shape of a result depends on the value of an argument, but shapes in JAX are static; pass a Python integer, or use a "
                f"constant in the graph\n{error}"
            ) from error
        return results[0] if single else results

    return compiled


def _needs_a_value(error: BaseException | None) -> bool:
    """Return whether an error, or its cause, is a JAX error for an array without a value."""
    return error is not None and (isinstance(error, VALUELESS) or _needs_a_value(error.__cause__))


def _has_shape_from_values(graph: FunctionGraph) -> bool:
    """Return whether a shape in the graph depends on the value of an input; JAX has no error type for this case."""
    variables = [v for node in graph.toposort() for v in node.outputs]
    shapes = infer_shape(variables, [], [])  # type: ignore[no-untyped-call]  # of PyTensor
    lengths = [length for shape in shapes if shape is not None for length in shape]

    def parents(length: Variable[Any, Any]) -> list[Variable[Any, Any]]:
        reads_shape = length.owner is None or isinstance(length.owner.op, (Shape, Shape_i))
        return [] if reads_shape else length.owner.inputs

    return not set(graph.inputs).isdisjoint(walk(lengths, parents))


def _typed(fun: Callable[..., Any], outputs: Sequence[Any]) -> Callable[..., list[Any]]:
    """Cast the results of a graph to the data types of the graph; its constants may be Python scalars."""
    dtypes = [jax.dtypes.canonicalize_dtype(v.dtype) for v in outputs]

    def graph(*values: Any) -> list[Any]:
        return [jnp.asarray(result, dtype) for result, dtype in zip(fun(*values), dtypes, strict=True)]

    return graph


def _argument(value: Any, kind: TensorType, name: str) -> Any:
    """Check an argument, and cast it to the data type of its input. Python integers for scalars stay static."""
    wanted = np.dtype(kind.dtype)
    if type(value) in (bool, int) and kind.ndim == 0 and wanted.kind in "iu":
        return value
    array = value if isinstance(value, (Array, jax.Array)) else np.asarray(value)
    fits = array.ndim == kind.ndim and all(n in (None, length) for n, length in zip(kind.shape, array.shape))
    if not fits:
        lengths = ", ".join("any" if n is None else str(n) for n in kind.shape)
        raise ValueError(f"{name} must have {kind.ndim} dimensions of lengths ({lengths}), got {array.shape}")
    number = type(value) in (bool, int, float, complex)  # Python scalars have no dtype, unlike NumPy's
    given = np.min_scalar_type(value) if number else array.dtype
    if not np.can_cast(given, wanted, "same_kind" if number else "safe"):
        raise TypeError(f"{name} must have dtype {wanted}, or a dtype that can be cast to it without loss, got {given}")
    dtype = jax.dtypes.canonicalize_dtype(wanted)
    if isinstance(array, Array):
        return array if array.dtype == dtype else astype(array, dtype)
    return jnp.asarray(array, dtype)


# ---- rewriting -------------------------------------------------------------------------------------------------------


class KeptEye(Op):
    """Form of `pytensor.tensor.eye` that PyTensor's rewrites do not replace by a dense constant or a scatter."""

    __props__ = ("dtype",)

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def make_node(self, n: Any, m: Any, k: Any) -> Apply[Any]:  # type: ignore[override]  # as in PyTensor's Eye
        node = Eye(self.dtype).make_node(n, m, k)  # type: ignore[no-untyped-call]  # of PyTensor
        return Apply(self, node.inputs, [node.outputs[0].type()])

    def perform(self, node: Apply[Any], inputs: Any, output_storage: Any) -> None:
        n, m, k = inputs
        output_storage[0][0] = np.eye(n, m, k, dtype=self.dtype)

    def infer_shape(self, *arguments: Any) -> list[tuple[Any, ...]]:
        node, _ = arguments[-2:]  # older versions of PyTensor pass the graph first
        return [tuple(node.inputs[:2])]

    def do_constant_folding(self, fgraph: Any, node: Apply[Any]) -> bool:
        return False


@jax_funcify.register(KeptEye)
def jax_funcify_KeptEye(op: KeptEye, **kwargs: Any) -> Any:
    """Return the implementation in JAX."""
    return jax_funcify(Eye(op.dtype), **kwargs)  # type: ignore[no-untyped-call]  # of PyTensor


def _rewrite(graph: FunctionGraph) -> None:
    """Apply PyTensor's rewrites for JAX, except rewrites that lose structure."""
    for node in graph.toposort():
        if type(node.op) is Eye:
            kept: Any = KeptEye(node.op.dtype)(*node.inputs)
            graph.replace(node.outputs[0], kept, reason="structarrays")
    # The rewrite would replace a join of equal arrays by a repetition, which copies the elements. Joins have kernels.
    JAX.excluding("local_join_to_repeat").optimizer.rewrite(graph)  # type: ignore[no-untyped-call]  # of PyTensor
