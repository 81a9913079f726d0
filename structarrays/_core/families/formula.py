"""Formulas of single calls, for which the rule of elementwise functions serves as for the functions themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax


class Formula(NamedTuple):
    """The attributes of an elementwise function that `elementwise` reads."""

    name: str
    formula: Callable[..., jax.Array]
    zero: bool
    absorbs: tuple[int, ...] = ()
    exact: bool = False
