"""Write what `structarrays/__init__.py` imports of the structures, and its list of public names: after a structure was added.

::

    python tools/write_namespace.py            # writes them
    python tools/write_namespace.py --check    # exits with 1 if they are not up to date
"""

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = ROOT / "structarrays"
NAMESPACE = LIBRARY / "__init__.py"
LOAD = "from ._structures import load as _load_structures"


def definitions() -> dict[str, set[str]]:
    """By module of the structures: the names in ``PUBLIC`` of its package that it defines."""
    found: dict[str, set[str]] = {}
    for package in sorted((LIBRARY / "_structures").glob("*/__init__.py")):
        public = _literal(ast.parse(package.read_text(encoding="utf-8")), "PUBLIC")
        for path in sorted(package.parent.glob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            names = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)} & set(public)
            if names:
                found[f"._structures.{package.parent.name}.{path.stem}"] = names
        missing = set(public) - set().union(*found.values(), set())
        if missing:
            raise SystemExit(f"{package}: PUBLIC names {sorted(missing)}, which no file of the package defines")
    return found


def _literal(tree: ast.Module, name: str) -> tuple:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    return ()


def text() -> str:
    """The whole file as it should be."""
    found = NAMESPACE.read_text(encoding="utf-8")
    lines = [
        f"    from {module} import {', '.join(sorted(names))}\n" for module, names in sorted(definitions().items())
    ]
    found = re.sub(r"^    from \._structures\.[^\n]*\n", "", found, flags=re.MULTILINE)
    found = found.replace(f"{LOAD}\n", f"{LOAD}\n{''.join(lines)}")
    names = {
        alias.asname or alias.name
        for node in ast.walk(ast.parse(found))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    public = sorted(name for name in names if not name.startswith("_") or name == "__array_namespace_info__")
    listed = "".join(f'    "{name}",\n' for name in public)
    return re.sub(r"^__all__ = \[\n.*?^\]\n", f"__all__ = [\n{listed}]\n", found, flags=re.MULTILINE | re.DOTALL)


def main() -> int:
    """Run the command line."""
    new = text()
    if "--check" in sys.argv[1:]:
        return int(new != NAMESPACE.read_text(encoding="utf-8"))
    NAMESPACE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
