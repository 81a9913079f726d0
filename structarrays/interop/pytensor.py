"""PyTensor: its graphs run on structured arrays (`function`), and structured matrices stand in its graphs (`StructuredMatrix`).

Needs PyTensor, ``pip install structarrays[pytensor]``. Import it by name: nothing else of this library imports PyTensor.

PyTensor's conversion to JAX sets JAX's switch ``jax_enable_x64`` when it is imported, to whether PyTensor's own ``floatX`` is
``"float64"``. Importing this module leaves the switch as it is; since PyTensor does so at its first import only, a graph that is compiled
by ``mode="JAX"`` afterwards doesn't set it either. Switch it on with ``jax.config.update("jax_enable_x64", True)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# The first import of PyTensor is that of its operations here: it keeps the switch, and says what is missing.
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
    """Compile a PyTensor graph for JAX into a function of structured arrays.

    It is `pytensor.function` with ``mode="JAX"`` but for the arrays that it takes: `structured` runs the graph, so that each operation
    keeps the structure that its function of this namespace keeps.

    Parameters
    ----------
    inputs : sequence of tensor variables
        Those of the arguments, in their order. Shared variables are no arguments: the function reads them when it is called.
    outputs : variable, or sequence of variables
        What the function computes.
    rewrite : bool
        Whether PyTensor may rewrite the graph as it does for JAX. Without, some graphs cannot be compiled for JAX.

    Returns
    -------
    callable
        With an argument for each input: an array of any structure, of JAX or of NumPy, or a number, of the number of dimensions and
        the static shape of the input, and of its dtype or of one that is cast to it without loss. It returns one result, or a list if
        `outputs` is a sequence: structured arrays where the structure is kept, else arrays of JAX, of the dtypes of the graph.

    Raises
    ------
    TypeError
        If an input is no tensor variable; when called, if there are more or fewer arguments, or the dtype of one cannot be cast.
    ValueError
        If an input or an output has a 64-bit dtype while ``jax_enable_x64`` is off; when called, if the shape of an argument is not that
        of its input.
    NotImplementedError
        If PyTensor has no conversion to JAX for an operation of the graph, or it has random variables; when called, if the shape of a
        result depends on the value of an argument that is not a Python integer.

    See Also
    --------
    structarrays.structured : which steps keep which structures.

    Notes
    -----
    The function works inside and outside of JAX's transformations. Integers for scalar inputs are static, so that shapes may depend on
    them: each new one is compiled anew. PyTensor's rewriting would make a dense constant of ``pytensor.tensor.eye``, which is kept.

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
    variable: Any  # which has a dtype, being that of a tensor
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
                f"function: the graph has the shared variable {variable}, a {variable.type}; arrays can be shared, but JAX has no state "
                f"of PyTensor's random generators"
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
                "the shape of a result depends on the value of an argument, and JAX's shapes are static: give a Python integer for it, or a "
                f"constant in the graph\n{error}"
            ) from error
        return results[0] if single else results

    return compiled


def _needs_a_value(error: BaseException | None) -> bool:
    """Whether an error of JAX, or its cause, says that the value of an array is needed and unknown."""
    return error is not None and (isinstance(error, VALUELESS) or _needs_a_value(error.__cause__))


def _has_shape_from_values(graph: FunctionGraph) -> bool:
    """Whether a shape in the graph depends on the value of an input: JAX has no type of its own for that error."""
    variables = [v for node in graph.toposort() for v in node.outputs]
    shapes = infer_shape(variables, [], [])  # type: ignore[no-untyped-call]  # of PyTensor
    lengths = [length for shape in shapes if shape is not None for length in shape]

    def parents(length: Variable[Any, Any]) -> list[Variable[Any, Any]]:
        reads_shape = length.owner is None or isinstance(length.owner.op, (Shape, Shape_i))
        return [] if reads_shape else length.owner.inputs

    return not set(graph.inputs).isdisjoint(walk(lengths, parents))


def _typed(fun: Callable[..., Any], outputs: Sequence[Any]) -> Callable[..., list[Any]]:
    """The function of a graph, with results of the dtypes that the graph says: numbers in it are Python's, of no dtype."""
    dtypes = [jax.dtypes.canonicalize_dtype(v.dtype) for v in outputs]

    def graph(*values: Any) -> list[Any]:
        return [jnp.asarray(result, dtype) for result, dtype in zip(fun(*values), dtypes, strict=True)]

    return graph


def _argument(value: Any, kind: TensorType, name: str) -> Any:
    """An argument in the dtype of its input, of this type, after a check; integers for scalars remain, being static."""
    wanted = np.dtype(kind.dtype)
    if type(value) in (bool, int) and kind.ndim == 0 and wanted.kind in "iu":
        return value
    array = value if isinstance(value, (Array, jax.Array)) else np.asarray(value)
    fits = array.ndim == kind.ndim and all(n in (None, length) for n, length in zip(kind.shape, array.shape))
    if not fits:
        lengths = ", ".join("any" if n is None else str(n) for n in kind.shape)
        raise ValueError(f"{name} must have {kind.ndim} dimensions of lengths ({lengths}), got {array.shape}")
    number = type(value) in (bool, int, float, complex)  # of no dtype; those of NumPy have one
    given = np.min_scalar_type(value) if number else array.dtype
    if not np.can_cast(given, wanted, "same_kind" if number else "safe"):
        raise TypeError(f"{name} must have the dtype {wanted}, or one that is cast to it without loss, got {given}")
    dtype = jax.dtypes.canonicalize_dtype(wanted)
    if isinstance(array, Array):
        return array if array.dtype == dtype else astype(array, dtype)
    return jnp.asarray(array, dtype)


# ---- rewriting -------------------------------------------------------------------------------------------------------


class KeptEye(Op):
    """`pytensor.tensor.eye`, as no rewriting knows it: PyTensor would make a dense constant of it, or a scatter of a product."""

    __props__ = ("dtype",)

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def make_node(self, n: Any, m: Any, k: Any) -> Apply[Any]:  # type: ignore[override]  # as PyTensor's own
        node = Eye(self.dtype).make_node(n, m, k)  # type: ignore[no-untyped-call]  # of PyTensor
        return Apply(self, node.inputs, [node.outputs[0].type()])

    def perform(self, node: Apply[Any], inputs: Any, output_storage: Any) -> None:
        n, m, k = inputs
        output_storage[0][0] = np.eye(n, m, k, dtype=self.dtype)

    def infer_shape(self, fgraph: Any, node: Apply[Any], shapes: Any) -> list[tuple[Any, ...]]:
        return [tuple(node.inputs[:2])]

    def do_constant_folding(self, fgraph: Any, node: Apply[Any]) -> bool:
        return False


@jax_funcify.register(KeptEye)
def jax_funcify_KeptEye(op: KeptEye, **kwargs: Any) -> Any:
    """The implementation in JAX."""
    return jax_funcify(Eye(op.dtype), **kwargs)  # type: ignore[no-untyped-call]  # of PyTensor


def _rewrite(graph: FunctionGraph) -> None:
    """What PyTensor rewrites for JAX, except what takes structure away."""
    for node in graph.toposort():
        if type(node.op) is Eye:
            kept: Any = KeptEye(node.op.dtype)(*node.inputs)
            graph.replace(node.outputs[0], kept, reason="structarrays")
    # Equal arrays that are joined would be repeated: a copy of the elements, where there are kernels for joining.
    JAX.excluding("local_join_to_repeat").optimizer.rewrite(graph)  # type: ignore[no-untyped-call]  # of PyTensor
