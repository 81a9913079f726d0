"""The metadata of the package, the files that repeat it, and the workflows agree."""

import importlib.util
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import structarrays as sa

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FOLDERS = (
    ".ci",
    ".github",
    "array_api_tests_config",
    "benchmarks",
    "docs",
    "examples",
    "structarrays",
    "tests",
    "tools",
)
TEXTS = {".cff", ".ipynb", ".md", ".py", ".toml", ".txt", ".yaml", ".yml"}
ADDRESS = "https://github.com/owner/name"


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


PROJECT = tomllib.loads(text("pyproject.toml"))
CITATION = yaml.safe_load(text("CITATION.cff"))


@pytest.fixture
def tool():
    """The module ``tools/set_repository.py``."""
    spec = importlib.util.spec_from_file_location("set_repository", ROOT / "tools" / "set_repository.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture
def copy(tool, tmp_path):
    """A copy of the files that have addresses, with a notebook."""
    for name in ("pyproject.toml", "CITATION.cff", "mkdocs.yml", "README.md"):
        (tmp_path / name).write_text(text(name), encoding="utf-8")
    (tmp_path / "docs").mkdir()
    cell = {"cell_type": "code", "id": "first", "metadata": {}, "source": [], "outputs": [], "execution_count": None}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "docs" / "notebook.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    return tmp_path


def write(root: Path, changed: dict[Path, str]) -> set[str]:
    for path, content in changed.items():
        (root / path).write_text(content, encoding="utf-8")
    return {path.as_posix() for path in changed}


# ---- the version ------------------------------------------------------------------------------------------------------


def test_the_version_is_in_one_place_and_the_citation_agrees():
    assert "version" not in PROJECT["project"] and PROJECT["project"]["dynamic"] == ["version"]
    source = text(PROJECT["tool"]["hatch"]["version"]["path"])
    assert re.findall(r'^__version__ = "(.*)"$', source, flags=re.MULTILINE) == [sa.__version__]
    assert CITATION["version"] == sa.__version__


def test_the_changelog_has_the_version_and_the_date_of_the_citation():
    headings = re.findall(r"^## \[(.+?)\](?: - (.+))?$", text("CHANGELOG.md"), flags=re.MULTILINE)
    date = dict(headings)[sa.__version__]
    assert date == str(CITATION.get("date-released", "unreleased"))


def test_the_citation_and_the_package_say_the_same():
    project = PROJECT["project"]
    assert CITATION["license"] == project["license"]
    assert [author["name"] for author in CITATION["authors"]] == [author["name"] for author in project["authors"]]
    description = project["description"]
    assert CITATION["title"] == f"{project['name']}: {description[0].lower()}{description[1:]}"


# ---- versions of Python and of tools ----------------------------------------------------------------------------------


def test_the_tested_versions_of_python_are_the_classified_ones():
    prefix = "Programming Language :: Python :: 3."
    minors = [int(c.removeprefix(prefix)) for c in PROJECT["project"]["classifiers"] if c.startswith(prefix)]
    assert minors == list(range(minors[0], minors[-1] + 1))
    assert PROJECT["project"]["requires-python"] == f">=3.{minors[0]}"
    matrix = yaml.safe_load(text(".github/workflows/tests.yml"))["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"] == [f"3.{minor}" for minor in minors]
    assert {system.split("-")[0] for system in matrix["os"]} == {"ubuntu", "macos", "windows"}
    checked = yaml.safe_load(text(".github/workflows/release.yml"))["jobs"]["check"]["strategy"]["matrix"]["python"]
    assert checked == [matrix["python"][0], matrix["python"][-1]]
    assert f"| 3.{minors[0]} to 3.{minors[-1]} |" in text("docs/design/releasing.md")


def test_every_file_names_the_same_versions_of_ruff_and_mypy():
    lint = PROJECT["dependency-groups"]["lint"]
    hooks = yaml.safe_load(text(".pre-commit-config.yaml"))["repos"]
    (revision,) = (repo["rev"] for repo in hooks if repo["repo"].endswith("/ruff-pre-commit"))
    ruff = f"ruff=={revision.removeprefix('v').rpartition('.')[0]}.*"
    (mypy,) = (requirement for requirement in lint if requirement.startswith("mypy"))
    assert ruff in lint
    for path in (".ci/run", "CONTRIBUTING.md"):
        assert f'"{ruff}"' in text(path) and f'"{mypy}"' in text(path), path


# ---- workflows --------------------------------------------------------------------------------------------------------


def test_workflows_have_least_permissions_and_pinned_actions():
    for path in WORKFLOWS:
        content = path.read_text(encoding="utf-8")
        workflow = yaml.safe_load(content)
        assert workflow["permissions"] == {"contents": "read"}, path
        for name, job in workflow["jobs"].items():
            assert "timeout-minutes" in job, (path, name)
            if "write" in job.get("permissions", {}).values():
                assert (path.stem, name) in {("docs", "deploy"), ("release", "publish"), ("release", "announce")}
            for step in job["steps"]:
                assert ("uses" in step) != ("run" in step), step
                assert "uses" not in step or re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", step["uses"]), step
        for name in re.findall(r"(?:\.ci|tools|tests)/[\w./-]+\w", content):
            assert (ROOT / name).exists(), (path, name)


def test_the_page_describes_each_workflow():
    assert len(WORKFLOWS) == 4
    page = text("docs/design/releasing.md")
    for path in WORKFLOWS:
        assert f"| *{yaml.safe_load(path.read_text(encoding='utf-8'))['name']}* |" in page, path.stem


# ---- addresses --------------------------------------------------------------------------------------------------------


def test_the_address_is_written_into_these_files_only(tool, copy):
    addresses = tool.Addresses.make(ADDRESS, email="someone@example.org")
    changed = write(copy, tool.changed_files(addresses, copy))
    assert changed == {"pyproject.toml", "CITATION.cff", "mkdocs.yml", "README.md", "docs/notebook.ipynb"}
    assert tool.read_addresses(copy) == addresses
    assert tool.changed_files(addresses, copy) == {}
    project = tomllib.loads((copy / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(project["urls"]) == {"Repository", "Documentation", "Issues", "Changelog"}
    assert project["authors"] == [{**PROJECT["project"]["authors"][0], "email": "someone@example.org"}]
    citation = yaml.safe_load((copy / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["repository-code"], citation["url"]) == (ADDRESS, "https://owner.github.io/name/")
    site = (copy / "mkdocs.yml").read_text(encoding="utf-8").splitlines()
    assert 'site_url: "https://owner.github.io/name/"' in site and f'repo_url: "{ADDRESS}"' in site
    first, second = json.loads((copy / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    assert "/github/owner/name/blob/main/docs/notebook.ipynb" in first["source"][0] and second["id"] == "first"


def test_the_readme_gets_absolute_links_outside_of_code(tool, copy):
    (copy / "README.md").write_text(
        "![p](docs/p.svg) [t](docs/tutorial.md#a) [s](#s)\n\n```python\nx[0](y)\n```\n", encoding="utf-8"
    )
    write(copy, tool.changed_files(tool.Addresses.make(ADDRESS), copy))
    assert (copy / "README.md").read_text(encoding="utf-8") == (
        "![p](https://raw.githubusercontent.com/owner/name/main/docs/p.svg) "
        f"[t]({ADDRESS}/blob/main/docs/tutorial.md#a) [s](#s)\n\n```python\nx[0](y)\n```\n"
    )


def test_a_second_address_replaces_the_first_one(tool, copy):
    write(copy, tool.changed_files(tool.Addresses.make(ADDRESS), copy))
    other = tool.Addresses.make("https://github.com/another/place.git", site="https://place.example.org/")
    assert len(write(copy, tool.changed_files(other, copy))) == 5
    for path in copy.rglob("*.*"):
        assert not re.search(r"owner/name|owner\.github", path.read_text(encoding="utf-8")), path


def test_an_address_of_another_host_is_refused(tool):
    with pytest.raises(SystemExit, match="must be https://github.com/OWNER/NAME"):
        tool.Addresses.make("https://example.org/name")


def test_no_file_has_an_invented_address(tool):
    addresses = tool.read_addresses()
    known = (addresses.files, addresses.raw, addresses.colab, addresses.repository, addresses.site) if addresses else ()
    if addresses:
        assert tool.changed_files(addresses) == {}
    invented = re.compile(
        r"https?://[\w.-]*(?:github|gitlab|codeberg|bitbucket|readthedocs)[\w.-]*/[\w./-]*structarrays"
        r"|https?://[\w.-]*structarrays[\w.-]*\.\w+|<YOUR|your-org|your_org",
        flags=re.IGNORECASE,
    )
    paths = [path for path in ROOT.iterdir() if path.is_file()]
    paths += [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    for path in paths:
        if path.suffix in TEXTS and path != Path(__file__):
            content = path.read_text(encoding="utf-8")
            for address in known:
                content = content.replace(address, "")
            assert not (found := invented.search(content)), f"{path}: {found[0]}"
