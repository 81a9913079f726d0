"""Run dynamiqs' tests of its arrays unchanged, with `BandedDataArray` instead of its sparse diagonal data.

    python examples/dynamiqs_tests.py [pytest arguments]

The tests are not part of dynamiqs' package or of this repository. The program searches for a checkout at
``DYNAMIQS_DIR``, then at ``~/.cache/structarrays/dynamiqs``. It uses tests and package of the checkout; the
requirements of dynamiqs must be installed (``pip install dynamiqs``). The exit status is 0 if every test passed, and 2
if there is no checkout.
"""

import os
import sys
from pathlib import Path

COMMIT = "c3bf2151ec8f855a624c1174773b6405b2732252"
"""Commit with the 65 tests in the report of docs/interoperability/dynamiqs.md."""


class OnBanded:
    """Pytest plugin that replaces the class before the tests import it; a test with the original class fails."""

    @staticmethod
    def pytest_collection_modifyitems(items):
        import dynamiqs_adapter
        from dynamiqs.qarrays import sparsedia_dataarray

        for item in items:
            taken = getattr(item.module, "SparseDIADataArray", dynamiqs_adapter.BandedDataArray)
            assert taken is sparsedia_dataarray.SparseDIADataArray is dynamiqs_adapter.BandedDataArray

    @staticmethod
    def pytest_terminal_summary(terminalreporter):
        import dynamiqs

        terminalreporter.write_line(
            f"dynamiqs {dynamiqs.__version__} at {Path(dynamiqs.__file__).parent}, on Banded arrays"
        )


def main(arguments: list[str]) -> int:
    suite = Path(os.environ.get("DYNAMIQS_DIR") or "~/.cache/structarrays/dynamiqs").expanduser()
    if not (suite / "tests" / "qarrays").is_dir():
        print(
            f"dynamiqs' tests are not at {suite}.\nSet DYNAMIQS_DIR, or fetch them with\n\n"
            f"    git clone https://github.com/dynamiqs/dynamiqs {suite}\n    git -C {suite} checkout {COMMIT}\n",
            file=sys.stderr,
        )
        return 2
    import pytest

    os.chdir(suite)
    sys.path.insert(0, str(suite))  # the package of the checkout, to which the tests belong
    sys.dont_write_bytecode = True
    from dynamiqs_adapter import install

    install()
    options = ["-p", "no:cacheprovider", "-q", "-W", "ignore::pytest.PytestUnknownMarkWarning"]
    return pytest.main([*options, *(arguments or ["tests/qarrays"])], plugins=[OnBanded()])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
