"""PyTensor operations on a structured matrix whose parameters are variables; functions of this library implement them.

The matrix is not a variable of the graph. An operation takes the parameters, which are tensors, and constructs the
matrix when it runs. So gradients, shapes and batches are gradients, shapes and batches of tensors, and PyTensor needs
no structured type.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from .._core.array.base import Array
from .._core.dispatch.results import as_jax
from .._functions import linalg
from .._functions.creation import asarray

_jax_config: Any = jax.config  # its attributes appear at run time
_x64 = _jax_config.jax_enable_x64
try:
    from pytensor.configdefaults import config
    from pytensor.gradient import disconnected_type
    from pytensor.graph.basic import Apply, Constant, Variable
    from pytensor.graph.op import Op
    from pytensor.link.jax.dispatch import jax_funcify  # type: ignore[attr-defined]  # it is re-exported
    from pytensor.scalar import upcast
    from pytensor.tensor.basic import as_tensor_variable
    from pytensor.tensor.exceptions import ShapeError
    from pytensor.tensor.type import tensor
except ImportError as error:
    raise ImportError(
        f"structarrays.interop.pytensor needs PyTensor 3: pip install structarrays[pytensor] ({error})"
    ) from error
finally:
    # PyTensor sets the option when it imports JAX.
    jax.config.update("jax_enable_x64", _x64)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class StructuredMatrix:
    """Structured matrix in a PyTensor graph: a constructor, and variables for its parameters.

    Parameters
    ----------
    constructor : callable
        Function of arrays that returns the matrix: a constructor of this library, or a function that calls
        constructors, such as ``lambda tau, d: tau * sa.tridiagonal(-d[1:], 1 + d, -d[1:])``. JAX traces it.
    *arguments, **keywords
        Arguments of the constructor. Tensor variables, arrays (including structured arrays) and floats are traced, also
        inside of lists, tuples and dicts. All other arguments are static and must be hashable, including integers, such
        as the lengths of a shape.

    Raises
    ------
    NotImplementedError
        If a non-constant variable is a scalar integer: shapes and offsets must be static.
    TypeError
        If an argument is neither an array nor hashable.

    Notes
    -----
    The operations are `StructuredMatMul` (``Q @ x``), `StructuredSolve` (`solve`), `StructuredSlogdet` (`slogdet`) and
    `StructuredToDense` (`to_dense`). They run in all modes of PyTensor, including ``"JAX"``, have gradients of all
    orders, and support `pytensor.graph.replace.vectorize_graph`. They raise NotImplementedError in these cases:

    * ``mode="JAX"`` compiles a graph in 64 bits while ``jax_enable_x64`` is off. PyTensor's other modes always support 64
      bits.
    * `constructor` returns a stack of matrices. It must return one matrix; `vectorize_graph` adds batch dimensions.
    * `constructor` is data-dependent.
    * The matrix is complex and a shape in the graph is not static.
    * A gradient has complex parameters, for which JAX and PyTensor have different conventions.

    A singular linear system gives NaN, as in PyTensor.

    Examples
    --------
    The log-density of a Gaussian with a tridiagonal precision, and its gradient, in linear time:

    >>> import numpy as np, pytensor, pytensor.tensor as pt
    >>> import structarrays as sa
    >>> from structarrays.interop import pytensor as sp
    >>> diag, off, x = pt.vector("diag"), pt.vector("off"), pt.vector("x")
    >>> Q = sp.StructuredMatrix(sa.tridiagonal, off, diag, off)
    >>> sign, logdet = Q.slogdet()
    >>> logp = (logdet - x @ (Q @ x)) / 2
    >>> f = pytensor.function([diag, off, x], [logp, pt.grad(logp, diag)], mode="JAX")
    >>> value, gradient = f(np.full(3, 2.0), np.full(2, -1.0), np.ones(3))
    >>> round(float(value), 6), np.round(np.asarray(gradient), 6) + 0.0
    (-0.306853, array([-0.125,  0.   , -0.125]))
    """

    def __init__(self, constructor: Callable[..., Any], *arguments: Any, **keywords: Any) -> None:
        if not callable(constructor):
            raise TypeError(f"StructuredMatrix: constructor must be callable, got {type(constructor).__name__}")
        name = getattr(constructor, "__name__", type(constructor).__name__)
        leaves, tree = jax.tree.flatten((arguments, keywords), is_leaf=lambda leaf: isinstance(leaf, Variable))
        parameters: list[Any]
        static: list[tuple[type, Any] | None]
        parameters, static = [], []
        for leaf in leaves:
            if isinstance(leaf, Variable) and leaf.ndim == 0 and np.dtype(leaf.dtype).kind in "iu":  # type: ignore[attr-defined]  # of tensors
                if not isinstance(leaf, Constant):
                    raise NotImplementedError(
                        f"StructuredMatrix: scalar integer arguments of {name} must be static, got the variable {leaf}; pass an int"
                    )
                leaf = int(leaf.data)
            if isinstance(leaf, (Variable, jax.Array, np.ndarray, np.generic, float, complex)):
                parameters.append(as_tensor_variable(np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf))
                static.append(None)
                continue
            try:
                hash(leaf)
            except TypeError:
                raise TypeError(
                    f"StructuredMatrix: arguments of {name} must be arrays or hashable, or lists, tuples, dicts of these, got a "
                    f"{type(leaf).__name__}"
                ) from None
            static.append((type(leaf), leaf))
        self.parameters = parameters
        self.build = _Build(constructor, tree, tuple(static))

    def __repr__(self) -> str:
        return f"StructuredMatrix({self.build}, {', '.join(map(str, self.parameters))})"

    def __matmul__(self, x: Any) -> Any:
        return self._apply(StructuredMatMul, x)

    def solve(self, b: Any) -> Any:
        """Return the solution `x` of ``Q @ x = b``, for a vector or a matrix `b`."""
        return self._apply(StructuredSolve, b)

    def slogdet(self) -> Any:
        """Return the sign of the determinant and the logarithm of its absolute value."""
        return self._apply(StructuredSlogdet)

    def to_dense(self) -> Any:
        """Return the matrix as a dense tensor."""
        return self._apply(StructuredToDense)

    def _apply(self, op: type[StructuredOp], *operands: Any) -> Any:
        inputs = [*self.parameters, *map(as_tensor_variable, operands)]
        return op(self.build, tuple(x.ndim for x in inputs))(*inputs)


VALUELESS = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)
"""Errors of JAX for operations that need the value of a traced array."""


class _Build(NamedTuple):
    """Constructor and static arguments of a matrix; equal if these are equal."""

    constructor: Any
    tree: Any  # the tree structure of the arguments
    static: tuple[Any, ...]  # static arguments with their types, and None for each array

    def __str__(self) -> str:
        return getattr(self.constructor, "__name__", type(self.constructor).__name__)

    def __call__(self, parameters: Iterable[Any]) -> Array:
        parameters = iter(parameters)
        leaves = [next(parameters) if entry is None else entry[1] for entry in self.static]
        arguments, keywords = jax.tree.unflatten(self.tree, leaves)
        try:
            matrix = asarray(self.constructor(*arguments, **keywords))
        except VALUELESS as error:
            raise NotImplementedError(
                f"StructuredMatrix: {self} needs the value of an argument, but JAX traces it; use arguments without reading values\n{error}"
            ) from error
        if matrix.ndim > 2:
            raise NotImplementedError(
                f"StructuredMatrix: {self} must return one matrix, got shape {matrix.shape}; use pytensor.graph.replace.vectorize_graph to "
                f"batch computations with one matrix"
            )
        if matrix.ndim < 2:
            raise ValueError(f"StructuredMatrix: {self} must return a matrix, got an array of shape {matrix.shape}")
        return matrix


# ---- the operations --------------------------------------------------------------------------------------------------


class StructuredOp(Op):
    """Base class of the operations. `implementation` is the JAX function; the other methods are derived from it.

    Parameters
    ----------
    build : hashable
        Callable that constructs the matrix from the parameters; for a gradient, the differentiated operation.
    ndims : tuple of int
        Numbers of dimensions of the inputs: the parameters, then the operand.
    """

    __props__ = ("build", "ndims")

    def __init__(self, build: Any, ndims: tuple[int, ...]) -> None:
        self.build, self.ndims = build, ndims

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self.build}}}"

    def implementation(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the results for arrays of JAX."""
        raise NotImplementedError

    def results(self) -> tuple[tuple[Any, ...], ...]:
        """Return the dimensions of each result: names, or pairs (input, axis) with the same length."""
        raise NotImplementedError

    @property
    def gufunc_signature(self) -> str:
        """Return the signature that PyTensor uses for batching."""
        inputs = [[f"i{i}_{axis}" for axis in range(ndim)] for i, ndim in enumerate(self.ndims)]
        outputs = [[d if isinstance(d, str) else inputs[d[0]][d[1]] for d in dims] for dims in self.results()]
        return "->".join(",".join(f"({','.join(dims)})" for dims in side) for side in (inputs, outputs))

    def make_node(self, *inputs: Any) -> Apply[Any]:
        tensors = [as_tensor_variable(x) for x in inputs]
        if tuple(x.ndim for x in tensors) != self.ndims:
            raise TypeError(f"{self} takes inputs of {self.ndims} dimensions, got {tuple(x.ndim for x in tensors)}")
        return Apply(self, tensors, self.output_variables(tensors))

    def output_variables(self, inputs: Sequence[Any]) -> list[Any]:
        """Return new variables for the results; with static shapes, trace the implementation to find errors early."""
        if all(None not in x.type.shape for x in inputs):
            shapes = [jax.ShapeDtypeStruct(x.type.shape, x.dtype) for x in inputs]
            with jax.enable_x64(True):
                return [tensor(dtype=r.dtype.name, shape=r.shape) for r in jax.eval_shape(self.implementation, *shapes)]
        if any(x.dtype.startswith("complex") for x in inputs):
            raise NotImplementedError(f"{self}: complex inputs must have static shapes; give each input a static shape")
        dtype = upcast(*(x.dtype for x in inputs if _inexact(x))) if any(map(_inexact, inputs)) else config.floatX
        lengths = [
            [None if isinstance(d, str) else inputs[d[0]].type.shape[d[1]] for d in dims] for dims in self.results()
        ]
        return [tensor(dtype=dtype, shape=tuple(shape)) for shape in lengths]

    def infer_shape(self, *arguments: Any) -> list[tuple[Any, ...]]:
        """Return the shapes of the results; raise ShapeError if a length is not a length of an input."""
        _, shapes = arguments[-2:]  # older versions of PyTensor pass the graph first
        dims = self.results()
        if any(isinstance(d, str) for each in dims for d in each):
            raise ShapeError(f"{self}: the shape is known only to the constructor")
        return [tuple(shapes[i][axis] for i, axis in each) for each in dims]

    def perform(self, node: Any, inputs: Sequence[Any], output_storage: Any) -> None:
        # The graph uses 64 bits for any value of jax_enable_x64; no array of JAX leaves this method.
        with jax.enable_x64(True):
            results = [np.asarray(r) for r in _compiled(self)(*inputs)]
        for storage, result, variable in zip(output_storage, results, node.outputs, strict=True):
            storage[0] = _of_dtype(result, variable.dtype, self)

    def connection_pattern(self, node: Apply[Any]) -> list[list[bool]]:
        """Return which inputs have gradients: all except integers."""
        return [[_inexact(x)] * len(node.outputs) for x in node.inputs]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        wanted = tuple(i for i, x in enumerate(inputs) if _inexact(x))
        if any(np.dtype(x.dtype).kind == "c" for x in (*inputs, *outputs)):
            raise NotImplementedError(
                f"{self} has no gradient with complex parameters, because the gradients of JAX and PyTensor are conjugate"
            )
        cotangents = [c if hasattr(c.type, "dtype") else y.zeros_like() for c, y in zip(cotangents, outputs)]
        op = StructuredPullback((self, wanted), (*self.ndims, *(c.ndim for c in cotangents)))
        gradients = dict(zip(wanted, cast("list[Any]", op(*inputs, *cotangents, return_list=True)), strict=True))
        return [gradients[i] if i in gradients else disconnected_type() for i in range(len(inputs))]


class StructuredMatMul(StructuredOp):
    """Product of a structured matrix and a vector or a matrix."""

    def implementation(self, *inputs: Any) -> tuple[Any, ...]:
        *parameters, x = inputs
        return (as_jax(self.build(parameters) @ x),)

    def results(self) -> tuple[tuple[Any, ...], ...]:
        last = len(self.ndims) - 1
        return (("rows", *((last, axis) for axis in range(1, self.ndims[-1]))),)


class StructuredSolve(StructuredOp):
    """Solution of a linear system with a structured matrix, for a vector or a matrix of right-hand sides."""

    def implementation(self, *inputs: Any) -> tuple[Any, ...]:
        *parameters, b = inputs
        return (as_jax(linalg.solve(self.build(parameters), b)),)

    def results(self) -> tuple[tuple[Any, ...], ...]:
        return (tuple((len(self.ndims) - 1, axis) for axis in range(self.ndims[-1])),)


class StructuredSlogdet(StructuredOp):
    """Sign and logarithm of the absolute value of the determinant of a structured matrix."""

    def implementation(self, *parameters: Any) -> tuple[Any, ...]:
        return tuple(as_jax(part) for part in linalg.slogdet(self.build(parameters)))

    def results(self) -> tuple[tuple[Any, ...], ...]:
        return ((), ())


class StructuredToDense(StructuredOp):
    """Dense form of a structured matrix."""

    def implementation(self, *parameters: Any) -> tuple[Any, ...]:
        return (self.build(parameters).to_jax(),)

    def results(self) -> tuple[tuple[Any, ...], ...]:
        return (("rows", "columns"),)


class StructuredPullback(StructuredOp):
    """Gradient of one of these operations, by JAX. `build` is the operation, and which inputs have a gradient."""

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self.build[0]}}}"

    def implementation(self, *values: Any) -> tuple[Any, ...]:
        op: StructuredOp
        op, wanted = self.build
        inputs, cotangents = list(values[: len(op.ndims)]), values[len(op.ndims) :]

        def of(*parameters: Any) -> tuple[Any, ...]:
            for i, value in zip(wanted, parameters, strict=True):
                inputs[i] = value
            return op.implementation(*inputs)

        results, pull = jax.vjp(of, *(inputs[i] for i in wanted))
        gradients: tuple[Any, ...] = pull(tuple(c.astype(r.dtype) for c, r in zip(cotangents, results, strict=True)))
        return gradients

    def output_variables(self, inputs: Sequence[Any]) -> list[Any]:
        return [inputs[i].type() for i in self.build[1]]

    def results(self) -> tuple[tuple[Any, ...], ...]:
        return tuple(tuple((i, axis) for axis in range(self.ndims[i])) for i in self.build[1])


def _inexact(variable: Any) -> bool:
    return np.dtype(variable.dtype).kind in "fc"


@functools.lru_cache(1024)
def _compiled(op: StructuredOp) -> Callable[..., Any]:
    """Return the compiled implementation. It is cached outside of the operations, so that graphs can be pickled."""
    return jax.jit(op.implementation)


def _of_dtype(result: Any, dtype: Any, op: StructuredOp) -> Any:
    """Cast a result to the data type of the graph."""
    if result.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        raise NotImplementedError(
            f"{op} is complex, but its inputs are real; give each input a static shape, so that the graph can infer the dtype"
        )
    return result.astype(dtype)


@jax_funcify.register(StructuredOp)
def jax_funcify_StructuredOp(op: StructuredOp, node: Any, **kwargs: Any) -> Callable[..., Any]:
    """Return the implementation in JAX."""
    wide = {x.dtype for x in (*node.inputs, *node.outputs)} & {"float64", "complex128"}
    if wide and not _jax_config.jax_enable_x64:
        raise NotImplementedError(
            f"{op}: JAX's 64-bit mode must be on for {', '.join(sorted(wide))}; call "
            f'jax.config.update("jax_enable_x64", True), or use float32 in the graph'
        )

    def structured_op(*inputs: Any) -> Any:
        results = op.implementation(*map(jnp.asarray, inputs))
        results = tuple(_of_dtype(r, v.dtype, op) for r, v in zip(results, node.outputs, strict=True))
        return results[0] if len(results) == 1 else results

    return structured_op
