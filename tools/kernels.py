"""List which kernels each function finds for each combination of structures, best first.

::

    python tools/kernels.py before.json              # writes the choices of this checkout
    python tools/kernels.py before.json --compare    # prints those that have changed since, and exits with 1 if there are any

A kernel is named by its function. Moving a file changes no choice, renaming a kernel changes those of it.
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
    """Every table of kernels by its name, those of eager kernels and of internal questions included."""
    found: dict[str, Registry] = {}
    for module in [m for name, m in sys.modules.items() if name.startswith("structarrays")]:
        for value in vars(module).values():
            if isinstance(value, Registry):
                found[value.name] = value
                if getattr(value, "eager", None) is not None:
                    found[f"{value.name}, eager"] = value.eager
    return dict(sorted(found.items()))


def classes() -> list[type]:
    """All classes of arrays, and the classes of what else kernels take."""
    found, left = [], [Array]
    while left:
        cls = left.pop()
        if cls.__module__.startswith("structarrays") and cls not in found:
            found.append(cls)
            left += cls.__subclasses__()
    return [*sorted(found, key=lambda c: c.__name__), tuple, object]


def choices() -> dict[str, dict[str, list[str]]]:
    """By function and by combination of classes: the names of the kernels that serve it, best first."""
    result = {}
    for name, registry in registries().items():
        rows = result[name] = {}
        for count in sorted({len(k.classes) for k in registry.kernels}):
            # More than two arrays: those classes that a kernel names.
            named = sorted({c for k in registry.kernels for c in k.classes}, key=lambda c: c.__name__)
            for combination in itertools.product(classes() if count <= 2 else named, repeat=count):
                kernels = registry.find(combination)
                if kernels:
                    rows[", ".join(c.__name__ for c in combination)] = [k.name for k in kernels]
    return result


def differences(before: dict, after: dict) -> list[str]:
    """A line for each combination with other kernels, or in another order."""
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
