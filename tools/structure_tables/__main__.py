"""Write `docs/structures/results.json`, and the page that shows it, `results.md`.

PYTHONPATH=tools python -m structure_tables                       # measures all results: most of an hour on one core
PYTHONPATH=tools python -m structure_tables --only "linalg|@"     # measures the uses whose code matches; keeps the others
"""

import argparse
import re
import sys
import time

import jax

jax.config.update("jax_enable_x64", True)

from . import page, table  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--only", metavar="REGEX", default="", help="measure the uses whose code matches (all)")
options = parser.parse_args()

measured = table.read(table.FILE.read_text(encoding="utf-8")) if table.FILE.exists() and options.only else {}
failures = []
start = time.perf_counter()
for count, (use, _structured, cells) in enumerate(table.rows(), 1):
    if re.search(options.only, use.code) or not measured.keys() >= set(cells):
        for cell in cells:
            try:
                measured[cell] = cell.measure()
            except Exception as error:  # no function may raise it: a fault of the library
                measured[cell] = None
                failures.append(f"{cell}: {type(error).__name__}: {error}")
                print(failures[-1], flush=True)
        print(f"{time.perf_counter() - start:6.0f} s  {count:4}  {use.code}", flush=True)
        jax.clear_caches()
table.FILE.write_text(table.write(measured), encoding="utf-8")
page.FILE.write_text(page.text(), encoding="utf-8")
if failures:
    sys.exit("\n".join(["These cells are empty, since the library fails:", *failures]))
