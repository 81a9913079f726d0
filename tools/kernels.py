"""List which kernels each function finds for each combination of structures, best first.

::

    python tools/kernels.py before.json              # write the choices of this checkout
    python tools/kernels.py before.json --compare    # print the choices that changed; exit with 1 if there are any

The function of a kernel gives its name. A moved file changes no choice; a renamed kernel changes its own choices.
"""

import argparse
import itertools
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from structarrays._core.array.base import Array  # noqa: E402
from structarrays._core.dispatch.registry import Registry  # noqa: E402


def registries() -> dict[str, Registry]:
    """All tables of kernels by name, including the tables of eager kernels and of internal functions."""
    found: dict[str, Registry] = {}
    for module in [m for name, m in sys.modules.items() if name.startswith("structarrays")]:
        for value in vars(module).values():
            if isinstance(value, Registry):
                found[value.name] = value
                if getattr(value, "eager", None) is not None:
                    found[f"{value.name}, eager"] = value.eager
    return dict(sorted(found.items()))


def classes() -> list[type]:
    """All classes of arrays, and the classes of other arguments of kernels."""
    found, left = [], [Array]
    while left:
        cls = left.pop()
        if cls.__module__.startswith("structarrays") and cls not in found:
            found.append(cls)
            left += cls.__subclasses__()
    return [*sorted(found, key=lambda c: c.__name__), tuple, object]


def choices() -> dict[str, dict[str, list[str]]]:
    """The names of the kernels for each function and combination of classes, best first."""
    result = {}
    for name, registry in registries().items():
        rows = result[name] = {}
        for count in sorted({len(k.classes) for k in registry.kernels}):
            # For more than two arrays, use only the classes that kernels name.
            named = sorted({c for k in registry.kernels for c in k.classes}, key=lambda c: c.__name__)
            for combination in itertools.product(classes() if count <= 2 else named, repeat=count):
                kernels = registry.find(combination)
                if kernels:
                    rows[", ".join(c.__name__ for c in combination)] = [k.name for k in kernels]
    return result


def differences(before: dict, after: dict) -> list[str]:
    """A line for each combination whose kernels or their order changed."""
    lines = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, {}), after.get(name, {})
        for combination in sorted(old.keys() | new.keys()):
            pair = old.get(combination), new.get(combination)
            if pair[0] != pair[1]:
                lines.append(f"{name}({combination}): {pair[0]} -> {pair[1]}")
    return lines


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--compare", action="store_true", help="compare with the file instead of writing it")
    arguments = parser.parse_args()
    found = choices()
    count = sum(map(len, found.values()))
    if not arguments.compare:
        arguments.file.write_text(json.dumps(found, indent=0))
        print(f"{count} combinations in {len(found)} functions")
        return 0
    changed = differences(json.loads(arguments.file.read_text()), found)
    print(*changed, f"{count} combinations, {len(changed)} changed", sep="\n")
    return bool(changed)


if __name__ == "__main__":
    sys.exit(main())
