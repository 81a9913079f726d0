"""How large programs are: what JAX traces, and what XLA compiles."""

import re
from collections import Counter

import jax

_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%\S+ = (?:\(.*?\)|\S+) ([a-z][\w\-]*)\(")
_FREE = {"bitcast", "constant", "get-tuple-element", "parameter", "tuple"}


def equations(function, *arguments):
    """The number of equations of a function and of all that they contain; a program that several equations share counts once."""
    seen = set()

    def count(program):
        program = getattr(program, "jaxpr", program)
        if id(program) in seen:
            return 0
        seen.add(id(program))
        inner = sum(count(p) for e in program.eqns for p in _programs(e.params.values()))
        return len(program.eqns) + inner

    return count(jax.make_jaxpr(function)(*arguments))


def _programs(values):
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _programs(value)
        elif hasattr(getattr(value, "jaxpr", value), "eqns"):
            yield value


def instructions(function, *arguments):
    """The number of instructions of a compiled function, those of fused expressions and of loops included, by their kinds."""
    text = jax.jit(function).lower(*arguments).compile().as_text()
    found = map(_INSTRUCTION.match, text.splitlines())
    return Counter(match[1] for match in found if match and match[1] not in _FREE)
