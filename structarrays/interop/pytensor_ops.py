"""Operations of PyTensor whose implementation is a function of this library, on a structured matrix that is made of variables.

The matrix itself is no variable of the graph: an operation gets its parameters, which are tensors, and makes the matrix of them where it runs.
So gradients, shapes and batches are those of tensors, and nothing of PyTensor needs to know of structure.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from .._core.array.base import Array
from .._functions import linalg
from .._functions.creation import asarray

_x64 = jax.config.jax_enable_x64  # type: ignore[attr-defined]  # JAX's options appear at run time
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
    # PyTensor sets the switch where it imports JAX.
    jax.config.update("jax_enable_x64", _x64)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class StructuredMatrix:
    """A structured matrix in a PyTensor graph: a constructor, and variables for its parameters.

    Parameters
    ----------
    constructor : callable
        Makes the matrix of arrays: a constructor of this library, or a function that calls some, such as
        ``lambda tau, d: tau * sa.tridiagonal(-d[1:], 1 + d, -d[1:])``. JAX traces it, with arrays for the variables.
    *arguments, **keywords
        What it is called with: tensor variables, arrays (structured ones, too) and floats for what is traced, also in lists, tuples and
        dicts; all else is static and hashable. Static are integers, too, such as those of a shape.

    Raises
    ------
    NotImplementedError
        If a scalar integer is a variable that is not constant: shapes and offsets are static.
    TypeError
        If an argument is neither an array nor hashable.

    Notes
    -----
    The operations `StructuredMatMul` (``Q @ x``), `StructuredSolve` (`solve`), `StructuredSlogdet` (`slogdet`) and `StructuredToDense`
    (`to_dense`) run in all modes of PyTensor, ``"JAX"`` among them, have gradients of all orders, and are batched by
    `pytensor.graph.replace.vectorize_graph`. They raise NotImplementedError, and say why,

    * for a graph in 64 bits that is compiled for JAX while ``jax_enable_x64`` is off (PyTensor's other modes use 64 bits anyway);
    * where `constructor` makes a stack of matrices: it is for one, which `vectorize_graph` then makes of each in a stack;
    * where `constructor` depends on values of its arguments;
    * for complex matrices, unless all shapes in the graph are static, and for gradients with complex parameters, of which JAX and PyTensor
      have different notions.

    A system with a singular matrix gives NaN, as PyTensor's own.

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
                        f"StructuredMatrix: {name} gets the scalar integer {leaf}, whose value is not known when the graph is compiled; "
                        f"shapes and offsets are static, so give an int"
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
                    f"StructuredMatrix: arguments of {name} are arrays or hashable, or lists, tuples, dicts of them, got a {type(leaf).__name__}"
                ) from None
            static.append((type(leaf), leaf))
        self.parameters = parameters
        self.build = _Build(constructor, tree, tuple(static))

    def __repr__(self) -> str:
        return f"StructuredMatrix({self.build}, {', '.join(map(str, self.parameters))})"

    def __matmul__(self, x: Any) -> Any:
        return self._apply(StructuredMatMul, x)

    def solve(self, b: Any) -> Any:
        """The solution `x` of ``Q @ x = b``; `b` is a vector or a matrix."""
        return self._apply(StructuredSolve, b)

    def slogdet(self) -> Any:
        """The sign of the determinant, and the logarithm of its absolute value."""
        return self._apply(StructuredSlogdet)

    def to_dense(self) -> Any:
        """The matrix as a tensor, with all of its elements."""
        return self._apply(StructuredToDense)

    def _apply(self, op: type[StructuredOp], *operands: Any) -> Any:
        inputs = [*self.parameters, *map(as_tensor_variable, operands)]
        return op(self.build, tuple(x.ndim for x in inputs))(*inputs)


VALUELESS = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)
"""The errors of JAX where something needs the value of an array that has none yet."""


class _Build(NamedTuple):
    """How a matrix is made of its parameters; equal for equal constructors and static arguments."""

    constructor: Any
    tree: Any  # how its arguments are put together
    static: tuple[Any, ...]  # those that are no arrays, with their types; None in the place of an array

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
                f"StructuredMatrix: {self} needs the value of an argument, which there is not where JAX compiles\n{error}"
            ) from error
        if matrix.ndim > 2:
            raise NotImplementedError(
                f"StructuredMatrix: {self} makes an array of shape {matrix.shape}, not one matrix; make one, and batch what is "
                f"computed with it by pytensor.graph.replace.vectorize_graph"
            )
        if matrix.ndim < 2:
            raise ValueError(f"StructuredMatrix: {self} must make a matrix, got an array of shape {matrix.shape}")
        return matrix


# ---- the operations --------------------------------------------------------------------------------------------------


class StructuredOp(Op):
    """What the operations have in common. `implementation` is the function of JAX; all else follows from it.

    Parameters
    ----------
    build : hashable
        What makes the matrix of the parameters, or for a gradient what it is the gradient of.
    ndims : tuple of int
        The numbers of dimensions of the inputs: the parameters, then what the matrix is applied to.
    """

    __props__ = ("build", "ndims")

    def __init__(self, build: Any, ndims: tuple[int, ...]) -> None:
        self.build, self.ndims = build, ndims

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self.build}}}"

    def implementation(self, *inputs: Any) -> tuple[Any, ...]:
        """The results for arrays of JAX."""
        raise NotImplementedError

    def results(self) -> tuple[tuple[Any, ...], ...]:
        """For each result the tuple of its dimensions: names, or the place and axis of an input that has that length."""
        raise NotImplementedError

    @property
    def gufunc_signature(self) -> str:
        """The signature by which PyTensor makes batches."""
        inputs = [[f"i{i}_{axis}" for axis in range(ndim)] for i, ndim in enumerate(self.ndims)]
        outputs = [[d if isinstance(d, str) else inputs[d[0]][d[1]] for d in dims] for dims in self.results()]
        return "->".join(",".join(f"({','.join(dims)})" for dims in side) for side in (inputs, outputs))

    def make_node(self, *inputs: Any) -> Apply[Any]:
        tensors = [as_tensor_variable(x) for x in inputs]
        if tuple(x.ndim for x in tensors) != self.ndims:
            raise TypeError(f"{self} takes inputs of {self.ndims} dimensions, got {tuple(x.ndim for x in tensors)}")
        return Apply(self, tensors, self.output_variables(tensors))

    def output_variables(self, inputs: Sequence[Any]) -> list[Any]:
        """New variables for the results. Where all shapes are known the implementation is asked, so that what is wrong is noticed early."""
        if all(None not in x.type.shape for x in inputs):
            shapes = [jax.ShapeDtypeStruct(x.type.shape, x.dtype) for x in inputs]
            with jax.enable_x64(True):
                return [tensor(dtype=r.dtype.name, shape=r.shape) for r in jax.eval_shape(self.implementation, *shapes)]
        if any(x.dtype.startswith("complex") for x in inputs):
            raise NotImplementedError(f"{self} with complex inputs needs their shapes: give all of them a static shape")
        dtype = upcast(*(x.dtype for x in inputs if _inexact(x))) if any(map(_inexact, inputs)) else config.floatX
        lengths = [
            [None if isinstance(d, str) else inputs[d[0]].type.shape[d[1]] for d in dims] for dims in self.results()
        ]
        return [tensor(dtype=dtype, shape=tuple(shape)) for shape in lengths]

    def infer_shape(self, fgraph: Any, node: Apply[Any], shapes: Any) -> list[tuple[Any, ...]]:
        """The shapes of the results; ShapeError where they are not among those of the inputs."""
        dims = self.results()
        if any(isinstance(d, str) for each in dims for d in each):
            raise ShapeError(f"{self}: the shape follows from what the constructor does")
        return [tuple(shapes[i][axis] for i, axis in each) for each in dims]

    def perform(self, node: Any, inputs: Sequence[Any], output_storage: Any) -> None:
        # What stands in the graph is in 64 bits, whatever JAX's switch says; no array of JAX leaves this method.
        with jax.enable_x64(True):
            results = [np.asarray(r) for r in _compiled(self)(*inputs)]
        for storage, result, variable in zip(output_storage, results, node.outputs, strict=True):
            storage[0] = _of_dtype(result, variable.dtype, self)

    def connection_pattern(self, node: Apply[Any]) -> list[list[bool]]:
        """Which inputs have gradients: integers have none."""
        return [[_inexact(x)] * len(node.outputs) for x in node.inputs]

    def pullback(self, inputs: Sequence[Any], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        wanted = tuple(i for i, x in enumerate(inputs) if _inexact(x))
        if any(np.dtype(x.dtype).kind == "c" for x in (*inputs, *outputs)):
            raise NotImplementedError(
                f"{self} has no gradient with complex parameters: JAX's is the conjugate of what PyTensor expects"
            )
        cotangents = [c if hasattr(c.type, "dtype") else y.zeros_like() for c, y in zip(cotangents, outputs)]
        op = StructuredPullback((self, wanted), (*self.ndims, *(c.ndim for c in cotangents)))
        gradients = dict(zip(wanted, cast("list[Any]", op(*inputs, *cotangents, return_list=True)), strict=True))
        return [gradients[i] if i in gradients else disconnected_type() for i in range(len(inputs))]


class StructuredMatMul(StructuredOp):
    """The product of a structured matrix with a vector or a matrix."""

    def implementation(self, *inputs: Any) -> tuple[Any, ...]:
        *parameters, x = inputs
        return ((self.build(parameters) @ x).to_jax(),)

    def results(self) -> tuple[tuple[Any, ...], ...]:
        last = len(self.ndims) - 1
        return (("rows", *((last, axis) for axis in range(1, self.ndims[-1]))),)


class StructuredSolve(StructuredOp):
    """The solution of a system with a structured matrix, for a vector or the columns of a matrix."""

    def implementation(self, *inputs: Any) -> tuple[Any, ...]:
        *parameters, b = inputs
        return (linalg.solve(self.build(parameters), b).to_jax(),)

    def results(self) -> tuple[tuple[Any, ...], ...]:
        return (tuple((len(self.ndims) - 1, axis) for axis in range(self.ndims[-1])),)


class StructuredSlogdet(StructuredOp):
    """The sign of the determinant of a structured matrix, and the logarithm of its absolute value."""

    def implementation(self, *parameters: Any) -> tuple[Any, ...]:
        return tuple(part.to_jax() for part in linalg.slogdet(self.build(parameters)))

    def results(self) -> tuple[tuple[Any, ...], ...]:
        return ((), ())


class StructuredToDense(StructuredOp):
    """The elements of a structured matrix."""

    def implementation(self, *parameters: Any) -> tuple[Any, ...]:
        return (self.build(parameters).to_jax(),)

    def results(self) -> tuple[tuple[Any, ...], ...]:
        return (("rows", "columns"),)


class StructuredPullback(StructuredOp):
    """The gradient of one of these operations, by JAX: `build` is the operation, and which inputs have a gradient."""

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
    """The implementation, compiled: equal operations share it, and none holds it, so that graphs can be pickled."""
    return jax.jit(op.implementation)


def _of_dtype(result: Any, dtype: Any, op: StructuredOp) -> Any:
    """A result in the dtype that the graph says."""
    if result.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        raise NotImplementedError(
            f"{op} is complex though its inputs are real, which the graph can know only if the shapes of its inputs are static"
        )
    return result.astype(dtype)


@jax_funcify.register(StructuredOp)
def jax_funcify_StructuredOp(op: StructuredOp, node: Any, **kwargs: Any) -> Callable[..., Any]:
    """The implementation in JAX."""
    wide = {x.dtype for x in (*node.inputs, *node.outputs)} & {"float64", "complex128"}
    if wide and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]  # as above
        raise NotImplementedError(
            f"{op} in {', '.join(sorted(wide))} needs JAX's 64-bit mode, which is off; switch it on with "
            f'jax.config.update("jax_enable_x64", True), or make the graph in float32'
        )

    def structured_op(*inputs: Any) -> Any:
        results = op.implementation(*map(jnp.asarray, inputs))
        results = tuple(_of_dtype(r, v.dtype, op) for r, v in zip(results, node.outputs, strict=True))
        return results[0] if len(results) == 1 else results

    return structured_op
