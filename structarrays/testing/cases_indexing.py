"""The uses of indexing, reading and writing, for the equivalence tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .case import Case

if TYPE_CHECKING:
    from collections.abc import Iterator

READ = (
    "x[...]",
    "x[()]",
    "x[0, ...]",
    "x[-1]",
    "x[1:, ...]",
    "x[::-1, ...]",
    "x[None, ...]",
    "x[:, None, ...]",
    "x[..., None, :, :]",
    "x[..., None]",
    "x[..., None, :]",
    "x[xp.asarray([1, 0]), ...]",
    "x[..., 1, 2]",
    "x[..., -1, -2]",
    "x[..., 1, :]",
    "x[..., :, 2]",
    "x[..., -1, 1:4]",
    "x[..., 1:4, 1:4]",
    "x[..., :3, :3]",
    "x[..., ::2, ::2]",
    "x[..., 1::2, ::2]",
    "x[..., :3, :]",
    "x[..., :, :3]",
    "x[..., 1:5, 1:]",
    "x[..., 1:, :]",
    "x[..., :, 1:]",
    "x[..., :2, 3:]",
    "x[..., 2:2, :]",
    "x[..., ::2, :]",
    "x[..., ::-1, :]",
    "x[..., ::-1, ::-1]",
    "x[..., xp.asarray([1, 0]), :]",
    "x[..., xp.asarray([1, 0]), xp.asarray([2, 0])]",
    "x[..., xp.asarray([[1], [0]]), xp.asarray([2, 0])]",
    "x[..., xp.asarray([-1, 0]), 1]",
)

MASKED = ("x[x > 0]", "x[x == 0]", "x[xp.ones(x.shape, dtype=xp.bool)]", "x[xp.ones(x.shape[:1], dtype=xp.bool), ...]")

WRITE = (
    "x[..., 1, 1] = 7",
    "x[..., 1, 2] = 7",
    "x[..., 0, -1] = 7",
    "x[..., 0, -1] = 0",
    "x[..., 1, :] = 7",
    "x[..., :, 1] = 7",
    "x[..., :, 1] = x[..., :, 0]",
    "x[0, ...] = 7",
    "x[0, ...] = x[-1, ...]",
    "x[...] = 7",
    "x[...] = 2 * x",
    "x[..., 1:3, 1:3] = 7",
    "x[..., 1:, :] = x[..., :-1, :]",
    "x[..., ::-1, :] = x",
    "x[x > 0] = 7",
    "i = xp.arange(3); x[..., i, i] = 7",
    "x[xp.asarray([1, 0]), ...] = 7",
    "x[..., xp.asarray([1, 0]), :] = 7",
    "x += x",
    "x *= x",
    "x -= 1",
    "x[..., 0, :] += 1",
)

WRITE_ARRAY = (
    "x1[...] = x2",
    "x1[0, ...] = x2[0, ...]",
    "x1[..., 1:3, :] = x2[..., 1:3, :]",
    "x1 += x2",
    "x1 *= x2",
    "x1 -= x2[..., :1, :]",
)

BAD = (
    "x[99, ...]",
    "x[..., 99, 0]",
    "x[..., 0, -99]",
    "x[(0,) * 9]",
    "x[..., ...]",
    "x[xp.asarray([99]), ...]",
    "x[1.5]",
)
BAD_WRITES = (
    "x[99, ...] = 1",
    "x[..., 0, 99] = 1",
    "x[..., :2, :2] = xp.ones((3, 3))",
    "x[..., 0] += xp.ones((9, 7, 7), dtype=x.dtype)",
)


def _cases() -> Iterator[Case]:
    read: dict[str, Any] = {"name": "__getitem__", "kinds": "all", "elementwise": True}
    for code in READ:
        yield Case(code=code, **read)
    for code in MASKED:
        yield Case(code=code, **read | {"eager": True, "kinds": "real numeric"})
    write: dict[str, Any] = {"name": "__setitem__", "elementwise": True}
    for code in WRITE:
        kinds = "real numeric" if "x > 0" in code else "numeric"
        yield Case(code=code, **write, kinds=kinds)
    for code in WRITE_ARRAY:
        yield Case(code=code, **write, operands=("x1", "x2"), cores=("mn", "mn"), batches="equal")
    for code in BAD:
        yield Case(code=code, **read | {"kinds": "numeric"}, raises=True)
    for code in BAD_WRITES:
        yield Case(code=code, **write | {"kinds": "real numeric"}, raises=True)


CASES = tuple(_cases())
"""Cases of reading and writing."""
