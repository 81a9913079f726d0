"""Count, for each test, the arrays of one structure that it receives and the calls with a structured kernel.

A call counts as structured under two conditions. First, a kernel of the class or of a base class (except `Array`), or
the rule of a family, processes an array of exactly that class. Second, nothing is densified, neither by the policy nor
because another operand is dense. Reading elements (`x[i, j]`, which most tests do to compare) does not count, unless it
keeps structure.

Kernels are selected during tracing, and JAX traces each combination of classes, shapes and data types once. So this
module traces each combination once more, with a log, and caches the answer.
"""

import functools

import jax

from structarrays._core.array import flattening, operators, shared_indices
from structarrays._core.dispatch import array_function, recording
from structarrays._core.dispatch import function as dispatch

READING = ("indexing.index",)
"""Reading elements."""


class Counter:
    """Counter of the arrays and calls of one class, for each test.

    Parameters
    ----------
    cls : type
        Class of the arrays.
    """

    def __init__(self, cls):
        self.cls = cls
        self.test = None
        self.drawn: dict[str, int] = {}
        self.served: dict[str, set[str]] = {}
        self._known: dict = {}

    def received(self, x):
        """Count an array that a test receives."""
        self.drawn[self.test] = self.drawn.get(self.test, 0) + 1

    def install(self):
        """Count the compiled calls of all functions."""
        counter = self

        def compiled(make, fast):
            call = functools.cached_property(lambda function: Counted(counter, function, make.func(function), fast))
            call.__set_name__(None, make.attrname)
            return call

        dispatch.Function._jit = compiled(dispatch.Function._jit, False)
        fast = compiled(array_function.ArrayFunction._fast, True)

        def known_to_operators(function):
            operators.COMPILED[function.name] = call = fast.func(function)
            return call

        array_function.ArrayFunction._fast = functools.cached_property(known_to_operators)
        array_function.ArrayFunction._fast.__set_name__(None, "_fast")

        run_eagerly = dispatch.Function._eagerly

        def eagerly(function, kernels, arrays, static):
            result = run_eagerly(function, kernels, arrays, static)
            if result is not NotImplemented and any(type(a) is counter.cls for a in arrays):
                counter.served.setdefault(counter.test, set()).add(function.name)
            return result

        dispatch.Function._eagerly = eagerly

    def called(self, function, static, arrays):
        """Count a compiled call."""
        leaves, tree = jax.tree.flatten(arrays)
        key = (function.name, static, tree, *((v.shape, v.dtype) if hasattr(v, "dtype") else type(v) for v in leaves))
        if key not in self._known:
            with recording._logging(recording.Log()) as log:
                jax.eval_shape(functools.partial(function._compiled, static), *arrays)
            self._known[key] = self.structured(log)
        if self._known[key]:
            self.served.setdefault(self.test, set()).add(function.name)

    def structured(self, log) -> bool:
        """Return whether the call in this log was structured."""
        return not log.densifications and any(map(self._serves, log.kernels))

    def _serves(self, event) -> bool:
        ours = [i for i, text in enumerate(event.operands) if text.split(" ")[0] == self.cls.__name__]
        if not ours:
            return False
        dense = event.result.startswith("Dense")
        if event.function in READING or event.how == "rule of elementwise":
            return not dense
        how, _, classes = event.how.partition(" ")
        if how == "kernel":
            names = classes.split(", ")
            return any(names[min(i, len(names) - 1)] not in ("Array", "Dense") for i in ours)
        return True


def _class(argument):
    """Return the class of an argument of a compiled call, of which arrays with indices may arrive in another form."""
    if isinstance(argument, flattening.Opened):
        return type(argument.x)
    return argument.static[0][0] if isinstance(argument, shared_indices.WithoutIndices) else type(argument)


class Counted:
    """A compiled call that reports calls with arrays of a class to a counter."""

    def __init__(self, counter, function, compiled, fast):
        self.counter, self.function, self.compiled, self.fast = counter, function, compiled, fast

    def __call__(self, *args):
        result = self.compiled(*args)
        static, arrays = ((), args) if self.fast else (args[0], args[1:])
        cls = self.counter.cls
        for a in arrays:
            if _class(a) is cls or type(a) in (tuple, list) and any(_class(b) is cls for b in a):
                self.counter.called(self.function, static, arrays)
                break
        return result

    def __getattr__(self, name):
        return getattr(self.compiled, name)
