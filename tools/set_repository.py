"""Write the public address of the repository into every file that needs it.

::

    python tools/set_repository.py https://github.com/OWNER/NAME --email ADDRESS   # writes it
    python tools/set_repository.py https://github.com/OWNER/NAME --dry-run         # lists the files that change
    python tools/set_repository.py --check      # exits with 1 if no address is set, or a file has another one

The source is ``[project.urls]`` in ``pyproject.toml``. All other places follow from it: ``CITATION.cff``, ``mkdocs.yml``,
the relative links of ``README.md``, which PyPI cannot resolve, and a link to Colab at the top of each notebook.
"""

import argparse
import json
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARK = "# tools/set_repository.py writes the public addresses below this line.\n"
NOTEBOOKS = ("docs", "examples")
COLAB = "open-in-colab"  # the id of the cell with the link
RELATIVE = r"(?!https?:|mailto:|#)"


@dataclass(frozen=True)
class Addresses:
    """The address of the repository, and the addresses that follow from it."""

    repository: str
    site: str
    email: str | None = None

    @classmethod
    def make(cls, repository: str, site: str | None = None, email: str | None = None) -> "Addresses":
        """Addresses of a repository on GitHub; the site is by default its page on GitHub Pages."""
        found = re.fullmatch(r"https://github\.com/([\w.-]+)/([\w.-]+?)/?(?:\.git)?", repository)
        if not found:
            raise SystemExit(
                f"set_repository: the address must be https://github.com/OWNER/NAME, got {repository!r}; "
                "the workflows in .github/ need GitHub"
            )
        owner, name = found.groups()
        return cls(f"https://github.com/{owner}/{name}", site or f"https://{owner.lower()}.github.io/{name}/", email)

    @property
    def files(self) -> str:
        """The prefix of pages that show a file."""
        return f"{self.repository}/blob/main/"

    @property
    def raw(self) -> str:
        """The prefix of the files themselves, as pictures need it."""
        return self.repository.replace("https://github.com/", "https://raw.githubusercontent.com/") + "/main/"

    @property
    def colab(self) -> str:
        """The prefix of notebooks in Colab."""
        return self.files.replace("https://github.com/", "https://colab.research.google.com/github/")


def read_addresses(root: Path = ROOT) -> Addresses | None:
    """Return the addresses in ``pyproject.toml``, None if there are none."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    urls = project.get("urls")
    return urls and Addresses(urls["Repository"], urls["Documentation"], project["authors"][0].get("email"))


def changed_files(new: Addresses, root: Path = ROOT) -> dict[Path, str]:
    """Return the new text of each file that changes, by its path relative to the root."""
    old = read_addresses(root)
    paths = [Path("pyproject.toml"), Path("CITATION.cff"), Path("mkdocs.yml"), Path("README.md")]
    paths += sorted(path.relative_to(root) for folder in NOTEBOOKS for path in (root / folder).rglob("*.ipynb"))
    changed = {}
    for path in paths:
        before = (root / path).read_text(encoding="utf-8")
        after = _change(path, before, old, new)
        if after != before:
            changed[path] = after
    return changed


def _change(path: Path, text: str, old: Addresses | None, new: Addresses) -> str:
    if path.name == "pyproject.toml":
        return _change_project(text, new)
    if path.name == "CITATION.cff":
        return _set_lines(text, "type", {"repository-code": new.repository, "url": new.site})
    if path.name == "mkdocs.yml":
        return _set_lines(text, "site_description", {"site_url": new.site, "repo_url": new.repository})
    if path.suffix == ".ipynb":
        return _change_notebook(path, text, new)
    if old:
        text = text.replace(old.files, new.files).replace(old.raw, new.raw)
    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)  # the odd ones are blocks of code
    parts[::2] = (_make_absolute(part, new) for part in parts[::2])
    return "".join(parts)


def _make_absolute(text: str, new: Addresses) -> str:
    text = re.sub(rf'(!\[[^\]]*\]\(|src="){RELATIVE}', rf"\1{new.raw}", text)
    return re.sub(rf"((?<!!)\[[^\]]*\]\(){RELATIVE}", rf"\1{new.files}", text)


def _change_project(text: str, new: Addresses) -> str:
    table = (
        "\n[project.urls]\n"
        f'Repository = "{new.repository}"\n'
        f'Documentation = "{new.site}"\n'
        f'Issues = "{new.repository}/issues"\n'
        f'Changelog = "{new.files}CHANGELOG.md"\n'
    )
    text, count = re.subn(rf"{re.escape(MARK)}(?:\n\[project\.urls\]\n(?:.+\n)*)?", lambda _: MARK + table, text)
    if count != 1:
        raise SystemExit(f"set_repository: pyproject.toml must have one line {MARK!r}")
    if new.email:
        author = rf'\1{{ name = "\2", email = "{new.email}" }}]'
        text = re.sub(r'^(authors = \[)\{ name = "([^"]*)".*\}\]$', author, text, flags=re.MULTILINE)
    return text


def _set_lines(text: str, above: str, values: dict[str, str]) -> str:
    """Set keys of a YAML file, each on a line of its own, below the line of the key `above`."""
    for key in values:
        text = re.sub(rf"^{key}:.*\n", "", text, flags=re.MULTILINE)
    lines = "".join(f'{key}: "{value}"\n' for key, value in values.items())
    text, count = re.subn(rf"^{above}:.*\n", lambda line: line[0] + lines, text, flags=re.MULTILINE)
    if count != 1:
        raise SystemExit(f"set_repository: expected one line {above!r}, found {count}")
    return text


def _change_notebook(path: Path, text: str, new: Addresses) -> str:
    notebook = json.loads(text)
    link = {
        "cell_type": "markdown",
        "id": COLAB,
        "metadata": {},
        "source": [f"[Open in Colab]({new.colab}{path.as_posix()})"],
    }
    cells = notebook["cells"]
    if link in cells:
        return text
    notebook["cells"] = [link, *(cell for cell in cells if cell.get("id") != COLAB)]
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", nargs="?", help="https://github.com/OWNER/NAME")
    parser.add_argument("--site", help="address of the documentation, by default https://OWNER.github.io/NAME/")
    parser.add_argument("--email", help="address of the maintainers in the metadata of the package")
    parser.add_argument("--dry-run", action="store_true", help="list the files that change, and write nothing")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a file lacks the address or has another")
    given = parser.parse_args(arguments)
    if given.check == bool(given.repository):
        parser.error("give the address of the repository, or --check")
    addresses = read_addresses() if given.check else Addresses.make(given.repository, given.site, given.email)
    if addresses is None:
        print("set_repository: pyproject.toml has no [project.urls]; see docs/design/releasing.md")
        return 1
    changed = changed_files(addresses)
    for path, text in changed.items():
        print(path.as_posix())
        if not (given.check or given.dry_run):
            (ROOT / path).write_text(text, encoding="utf-8", newline="\n")
    return int(given.check and bool(changed))


if __name__ == "__main__":
    sys.exit(main())
