"""The short ways that calls take do not change what operators refuse, what a call may write to, or what errors say."""

import ast
import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import dense

import structarrays as sa
from structarrays._core.jax_internals.host_values import is_false

LIBRARY = pathlib.Path(sa.__file__).parent


def sparse():
    return sa.Sparse(jnp.asarray([1.0, 2.0, 3.0]), (np.asarray([0, 1, 1]), np.asarray([0, 0, 1])), (3, 3))


OPERATORS = {
    "S - g": lambda s, g: s - g,
    "g * S": lambda s, g: g * s,
    "g @ S": lambda s, g: g @ s,
    "S @ g": lambda s, g: s @ g,
    "D + g": lambda s, g: sa.eye(3) + g,
    "g / D": lambda s, g: g / sa.ones((3, 3)),
    "-g": lambda s, g: -g,
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_refuse_derivatives_of_structures_that_are_not_linear(name):
    """Also when the classes and the compiled call are known."""
    operate = OPERATORS[name]
    unit = sa.Triangular(np.tril(np.ones((3, 3))), unit_diagonal=True)
    gradient = sa.grad(sa.sum)(unit)
    for _ in range(2):
        operate(sparse(), unit)
        with pytest.raises(TypeError, match="derivative with respect to the parameters"):
            operate(sparse(), gradient)


def test_results_of_eager_kernels_are_new_arrays():
    x = sparse()
    y = sa.linalg.matrix_power(x, 1)
    y[0, 0] = 5.0
    assert y is not x and float(x[0, 0]) == 1.0


class Anti(sa.Array):
    """Ones on the antidiagonal times numbers, with kernels that write to what they get."""

    __slots__ = ()

    @staticmethod
    def shape_of(leaves, meta):
        return (*leaves[0].shape, leaves[0].shape[-1])

    def dense_data(self):
        (numbers,) = self.parameters
        return numbers[..., :, None] * jnp.eye(numbers.shape[-1], dtype=self.dtype)[:, ::-1]


@sa.sqrt.kernel(sa.Dense, when=lambda x: x.shape == (7, 7))
def sqrt_that_writes(x):
    x[0, 0] = 100.0
    return sa.Dense(jnp.sqrt(x.data))


@sa.exp.kernel(Anti)
def exp_that_calls_it(x):
    whole = x.to_dense()
    sa.sqrt(whole)
    return whole


def test_a_kernel_does_not_change_the_arrays_of_the_kernel_that_calls_it():
    x = Anti.make((jnp.ones(7),))
    np.testing.assert_array_equal(dense(sa.exp(x)), np.eye(7)[:, ::-1])


def test_padding_of_arrays_with_parameters_of_numpy():
    rows, columns = np.asarray([[0, 1, 2, 2], [0, 0, 0, 0]]), np.asarray([[0, 1, 0, 2], [0, 1, 2, 0]])
    x = sa.Sparse(jnp.asarray([[1.0, 2.0, 3.0, 4.0]] * 2), (rows, columns), (3, 3))
    on_host = jax.tree.map(np.asarray, x)
    np.testing.assert_array_equal(dense(sa.reshape(on_host, (2, 9))), dense(x).reshape(2, 9))


@pytest.mark.parametrize("operate", [lambda x, k: x * k, lambda x, k: x @ k, lambda x, k: k + x, lambda x, k: x < k])
def test_errors_of_operators_name_the_operand(operate):
    x, key = sa.ones((2, 2)), jax.random.key(0)
    messages = []
    for _ in range(2):
        with pytest.raises(TypeError, match=r": x[12] must have a numeric or boolean dtype") as raised:
            operate(x, key)
        messages.append(str(raised.value))
        operate(x, x)
    assert len(set(messages)) == 1


@pytest.mark.parametrize("flag", [True, False])
def test_error_flags_are_read_with_and_without_the_buffer_protocol(flag):
    class WithoutBuffer:
        def __array__(self, dtype=None, copy=None):
            return np.asarray(flag)

    assert is_false(jnp.asarray(flag)) is (not flag)
    assert is_false(WithoutBuffer()) is (not flag)


def test_no_code_changes_the_attributes_of_a_class():
    """Python 3.13 looks up every attribute anew for a class that has changed a thousand times, and for its subclasses."""
    for path in sorted(LIBRARY.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            for target in targets:
                if isinstance(target, ast.Attribute):
                    owner = ast.unparse(target.value)
                    is_class = re.fullmatch(r"_*[A-Z]\w*[a-z]\w*|cls|type\(\w+\)|\w+\.__class__", owner)
                    assert not is_class, f"{path.name}:{node.lineno}: {ast.unparse(node)}"
