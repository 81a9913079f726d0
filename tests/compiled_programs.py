"""Numbers of elements that loops write and numbers of instructions, read from the optimised HLO of compiled programs."""

import math
import re
from collections import Counter

# A simple array, or a tuple of them; then the operation.
_INSTRUCTION = re.compile(r"^\s*(?P<root>ROOT )?%(?P<name>\S+) = (?P<shape>\(.*?\)|\S+) (?P<operation>[a-z][\w\-]*)\(")
_SHAPE = re.compile(r"\w+\[([\d,]*)\]")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')

# These write nothing, or no more than a part of an array that stays where it is.
_FREE = {
    "bitcast",
    "call",
    "conditional",
    "constant",
    "dynamic-update-slice",
    "get-tuple-element",
    "iota",
    "parameter",
    "tuple",
    "while",
}

# These do nothing: they name what is at hand.
_NAMES = {"bitcast", "constant", "get-tuple-element", "parameter", "tuple"}


def elements_written(program: str, unknown: int = 1) -> dict[str, int]:
    """How many elements each kind of instruction inside of loops writes, all iterations together.

    An update of a slice counts as nothing: XLA updates in place what it does not copy first, and a copy is an instruction of its own.

    Parameters
    ----------
    program : str
        The text of a compiled program, as `jax.stages.Compiled.as_text` returns it.
    unknown : int
        How many iterations to assume where XLA does not know them.
    """
    computations = _computations(program)
    written: dict[str, int] = {}

    def visit(name, times, inside):
        for instruction, line in computations[name]:
            operation = instruction["operation"]
            if operation == "while":
                trips = _TRIPS.search(line)
                visit(*_called(line, "body"), times * (int(trips[1]) if trips else unknown), True)
            elif operation == "call":
                visit(*_called(line, "to_apply"), times, inside)
            elif operation == "conditional":
                for branch in _branches(line):
                    visit(branch, times, inside)
            elif inside and operation not in _FREE:
                results = [(operation, instruction["shape"])]
                if operation == "fusion":
                    results = _roots(computations[_called(line, "calls")[0]])
                for kind, shape in results:
                    if kind not in _FREE:
                        key = f"{kind} {shape.partition('{')[0]}"
                        written[key] = written.get(key, 0) + times * _size(shape)

    entry = re.search(r"^ENTRY %(\S+) ", program, re.MULTILINE)[1]
    visit(entry, 1, False)
    return written


def instructions(program: str) -> Counter[str]:
    """Number of instructions of each kind in a program, with the instructions in fused expressions and loops.

    Parameters
    ----------
    program : str
        The text of a compiled program, as `jax.stages.Compiled.as_text` returns it.
    """
    found = (
        instruction["operation"] for computation in _computations(program).values() for instruction, _ in computation
    )
    return Counter(operation for operation in found if operation not in _NAMES)


def _computations(program):
    """The instructions of each computation, by its name."""
    found, current = {}, []
    for line in program.splitlines():
        head = re.match(r"^(?:ENTRY )?%(\S+) \(.*\{$", line)
        if head:
            current = found[head[1]] = []
        elif instruction := _INSTRUCTION.match(line):
            current.append((instruction, line))
    return found


def _called(line, role):
    return re.findall(rf"{role}=%([\w.\-]+)", line)


def _branches(line):
    listed = re.search(r"branch_computations=\{([^}]*)\}", line)
    if listed:
        return [name.strip().lstrip("%") for name in listed[1].split(",")]
    return [*_called(line, "true_computation"), *_called(line, "false_computation")]


def _roots(instructions):
    """Operation and shape of each result of a fusion; of a result in another shape, those of what is reshaped."""
    by_name = {instruction["name"]: (instruction, line) for instruction, line in instructions}

    def operands(instruction, line):
        return re.findall(r"%([\w.\-]+)", line[instruction.end() :].partition(")")[0])

    def result(instruction, line):
        while instruction["operation"] == "bitcast":
            instruction, line = by_name[operands(instruction, line)[0]]
        return instruction["operation"], instruction["shape"]

    (root,) = (pair for pair in instructions if pair[0]["root"])
    if root[0]["operation"] == "tuple":
        return [result(*by_name[name]) for name in operands(*root)]
    return [result(*root)]


def _size(shape):
    """The number of elements of an array, or of all arrays of a tuple."""
    return sum(math.prod(int(n) for n in sizes.split(",") if n) for sizes in _SHAPE.findall(shape))
