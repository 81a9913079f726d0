"""Projections: functions that put drawn values on a structure, one for each structure of the library."""

from . import entries as _entries
from . import factored as _factored
from .registry import PROJECTIONS, exact, project, projection, structure_class
