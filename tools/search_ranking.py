"""Hook of MkDocs: ranks the pages in the search of the site.

Pages that answer a task come before pages that give reasons or measurements.
"""

from pathlib import PurePosixPath

# The nearest folder or page of each path decides. Titles count 1000 times as much as text, so the steps are large.
BOOSTS = {
    ".": 1.0,
    "how_to": 8.0,
    "how_to/find_what_became_dense.md": 16.0,
    "how_to/write_a_structure.md": 16.0,
    "structures": 3.0,
    "structures/results.md": 0.2,
    "reference": 4.0,
    "reference/api": 1.0,
    "interoperability": 2.0,
    "interoperability/coming_from": 1.0,
    "notebooks": 1.0,
    "design": 0.2,
    "design/decisions": 0.05,
    "design/decisions.md": 0.02,
    "design/benchmarks.md": 0.05,
    "design/semantics.md": 0.5,
}


def boost(path: str) -> float:
    """The factor of a page, given its path below `docs`."""
    page = PurePosixPath(path)
    return next(BOOSTS[str(part)] for part in (page, *page.parents) if str(part) in BOOSTS)


def on_page_markdown(markdown, page, **_):
    """Set the factor of a page that sets none itself."""
    page.meta.setdefault("search", {}).setdefault("boost", boost(page.file.src_uri))
    return markdown
