"""The entry form of a composed matrix: one array of the same value that stores entries.

A sum or a product may have the pattern of a single structure: ``I ⊗ B`` is block diagonal.
Linear systems, determinants and factorizations use it if no other rule applies, before they would need the dense form.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.array.base import Array
from ..._core.dispatch.contexts import active, host_calls_policy
from ..._core.dispatch.recording import RECORDING, describe, remark
from ..._core.dispatch.registry import Registry
from ..._core.families.factored import Factored, common_batch, has_dynamic_parts
from ..._core.families.join import is_zero_outside
from ..._core.families.other_forms import by_form
from ..._functions.elementwise import add
from ..._functions.linalg import (
    cholesky,
    det,
    eigh,
    eigvalsh,
    inv,
    lstsq,
    matmul,
    pinv,
    selected_inverse,
    slogdet,
    solve,
)
from ..._numerics.symbolic import is_symbolic, smaller
from ..banded.array import Banded
from ..banded.bandwidths import is_spread
from ..sparse.array import Sparse
from ..sparse.products import exact_product
from ..sparse.sparse_joins import has_sparse_form, to_sparse
from .product import Product
from .sum import Sum, total

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._core.dispatch.function import Function

T = TypeVar("T")

entry_form: Registry[Array | None] = Registry("entry_form")
"""``entry_form.kernel(A)``: return one array that stores entries and has the value of a matrix, or None if there is none
that stores less than a quarter of the dense form. Only shapes and structures decide."""


@entry_form.kernel(Array)
def _entry_form_array(x: Array) -> Array | None:
    return x.freed() if x.core_ndim == 2 and is_zero_outside(x) else None


def entry_form_of(x: Array) -> Array | None:
    """Return the entry form, or None; in a compiled call, or for shapes.

    There is none if sizes are symbolic, or if positions need more bits than JAX has.
    """
    if any(map(is_symbolic, x.shape[-2:])):
        return None
    if max(x.shape[-2:]) > np.iinfo(np.dtype(jnp.result_type(int))).max:
        return None
    return entry_form.required((x,)).run(x)


def of_shapes(function: Callable[..., T], *arrays: Array) -> T:
    """Return what a function returns for arrays without values. It is neither compiled nor recorded.

    It is for conditions of kernels that convert arrays to other structures.
    """
    results: list[T] = []

    def run(*arrays: Array) -> None:
        results.append(function(*arrays))

    with active(None) if RECORDING else contextlib.nullcontext():
        jax.eval_shape(run, *arrays)
    return results[0]


def shapes_of_form(x: Array) -> Array | None:
    """Return the entry form without values, or None."""
    with active(None) if RECORDING else contextlib.nullcontext():
        form: Array | None = jax.eval_shape(entry_form_of, x)
    return form


def forms_of(parts: Sequence[Array]) -> list[Array] | None:
    """Return the entry forms of all parts, or None if one has none."""
    forms = []
    for part in parts:
        form = entry_form_of(part)
        if form is None:
            return None
        forms.append(form)
    return forms


def number_stored(x: Array) -> Any:
    """The number of entries of an array that stores entries, for all matrices of a stack."""
    if type(x) is Sparse:
        return x._value[0][0].size  # `entries` of an array with padding computes, which shapes do not allow
    return sum(e.size for e in x.entries)


def few(x: Array) -> Array | None:
    """Return an array if it stores entries, less than a quarter of its dense form."""
    fits = x.stores_entries and is_zero_outside(x) and smaller(4 * number_stored(x), x.size)
    return x if fits else None


@entry_form.kernel(Sum)
def _entry_form_sum(x: Sum) -> Array | None:
    forms = forms_of(x.terms)
    if forms is None:
        return None
    result = total(*forms)
    if type(result) is Sum and all(map(has_sparse_form, result.terms)):
        result = functools.reduce(add.dispatch, map(to_sparse, result.terms))
    return few(result)


@entry_form.kernel(Product)
def _entry_form_product(x: Product) -> Array | None:
    if has_dynamic_parts(x):  # the number of entries of a sparse product is not static
        return None
    forms = forms_of(x.factors)
    if forms is None:
        return None
    result = forms[0]
    for form in forms[1:]:
        if not result.stores_entries or matmul.choose((result, form), {}) is None:
            return None
        product = exact_product(result, form)
        result = matmul.dispatch(*common_batch(result, form)) if product is None else product
    return few(result)


# ---- functions of the form -------------------------------------------------------------------------------------------


def has_form_with_kernel(function: Function[..., Any]) -> Callable[..., bool]:
    """Return the condition that a matrix has an entry form, for which a function has a kernel of its own."""

    def condition(x: Factored, *others: Array, **static: Any) -> bool:
        if x.full_size:
            return False

        def choose(x: Factored, *others: Array) -> bool:
            form = entry_form_of(x)
            if form is None or (_needs_host(form) and not host_calls_policy.value):
                return False
            kernel = function.choose((form, *others), static)
            return kernel is not None and kernel.classes[0] is not Array

        return of_shapes(choose, x, *others)

    return condition


def _needs_host(form: Array) -> bool:
    """Return whether solvers of a form are on the host alone."""
    return type(form) is Sparse or (isinstance(form, Banded) and is_spread(form))


def in_entry_form(x: Factored) -> Array:
    """The form that stores entries."""
    form = entry_form_of(x)
    assert form is not None  # see the condition
    remark(f"the entries of the parts as one array: {describe(form)}")
    return form.assuming(x.assumptions)


for _function in (solve, inv, det, slogdet, cholesky, eigh, eigvalsh, lstsq, pinv, selected_inverse):
    by_form(_function, of=Factored, when=has_form_with_kernel(_function))(in_entry_form)
del _function
