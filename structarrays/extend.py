"""Public names for authors of structures and kernels (see the guide *A structure of your own*).

- **Base classes**: `Array`; `EntryArray` for structures that store entries of a matrix; `Factored` for structures
  composed of arrays; `GeneratorArray` for structures defined by their product with columns.
- **Registries of kernels from which functions follow**: `elements` (indexing, sums with every structure), `join_pair`,
  `meet_pair`, `restrict_to` and `holds` (common structures), `concat_pair`, `reduce_core`, `reduce_batch` and
  `squared_deviations` (reductions), `write_entries` (``x[i, j] = v``). For factored structures: `merge_pair`,
  `compose_pair`, `hadamard_pair`, `inner_pair`, `squared_norms`, `scale` and `select_lines`.
- **Functions for kernels**: `remark` (a sentence on a choice, for `explain`), `expand` (the dense form, under the
  policy), `validated` (the check of parameters that `sa.load` calls). `same_structure` compares the structures of two
  arrays.
- **Custom registries**: `Registry`, and its entries `Kernel`.

To register a kernel for a function of the namespace, use the function itself: ``@sa.matmul.kernel(Mine, sa.Dense)``.
"""

from ._core.array.base import Array
from ._core.array.operands import densify as expand
from ._core.array.validation import validated
from ._core.dispatch.recording import remark
from ._core.dispatch.registry import Kernel, Registry
from ._core.families.batch import concat_pair
from ._core.families.entries import elements
from ._core.families.entry_array import EntryArray
from ._core.families.factored import (
    Factored,
    hadamard_pair,
    inner_pair,
    merge_pair,
    scale,
    select_lines,
    squared_norms,
)
from ._core.families.generator_array import GeneratorArray
from ._core.families.join import holds, join_pair, meet_pair, restrict_to, same_structure
from ._core.families.reduction_rule import reduce_batch, reduce_core, squared_deviations
from ._functions.index_writes import write_entries
from ._structures.composite.product import compose_pair

__all__ = [
    "Array",
    "EntryArray",
    "Factored",
    "GeneratorArray",
    "Kernel",
    "Registry",
    "compose_pair",
    "concat_pair",
    "elements",
    "expand",
    "hadamard_pair",
    "holds",
    "inner_pair",
    "join_pair",
    "meet_pair",
    "merge_pair",
    "reduce_batch",
    "reduce_core",
    "remark",
    "restrict_to",
    "same_structure",
    "scale",
    "select_lines",
    "squared_deviations",
    "squared_norms",
    "validated",
    "write_entries",
]
