"""Names of the parameters of equations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax


class UnrecognisedEquation(NotImplementedError):
    """An equation of a JAX program has parameters that this version of the library does not know."""

    def __init__(self, primitive: str, problem: str):
        super().__init__(
            f"the primitive {primitive!r} of JAX {jax.__version__} has a form unknown to structarrays: {problem}; "
            "use a version of JAX that the page 'Versions' of the documentation lists"
        )


_FORMS = {
    # Names of primitives and of their parameters. "?" marks a parameter that some versions of JAX lack, "=None" one
    # that must be None.
    "abs acos acosh add add_any and asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt ceil clamp clz complex cos cosh digamma "
    "div eq eq_to erf erf_inv erfc exp exp2 expm1 floor ge gt igamma igammac imag is_finite le le_to lgamma log log1p log2 logistic "
    "lt lt_to max min ne neg nextafter not one_minus_square or polygamma population_count pow real regularized_incomplete_beta rem rsqrt "
    "shift_left shift_right_arithmetic shift_right_logical sign sin sinh sqrt square sub tan tanh xor zeta": "accuracy?",
    "mul": "out_dtype?=None accuracy?",
    "polynomial": "unroll?",
    "conj": "input_dtype",
    "integer_pow": "y",
    "round": "rounding_method",
    "reduce_precision": "exponent_bits mantissa_bits",
    "bitcast_convert_type": "new_dtype",
    "convert_element_type": "new_dtype weak_type sharding",
    "copy copy_p stop_gradient optimization_barrier select_n": "",
    "name": "name",
    "iota": "dtype shape dimension sharding",
    "cholesky lu": "",
    "lu_pivots_to_permutation": "permutation_size",
    "eigh": "lower sort_eigenvalues algorithm subset_by_index=None",
    "svd": "full_matrices compute_uv algorithm subset_by_index=None",
    "qr": "full_matrices pivoting use_magma",
    "triangular_solve": "left_side lower transpose_a conjugate_a unit_diagonal",
    "fft": "fft_type fft_lengths",
    "reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or": "axes out_sharding?",
    "argmax argmin": "axes index_dtype",
    "cumsum cumprod": "axis reverse",
    "sort": "dimension is_stable num_keys",
    "dot_general": "dimension_numbers precision preferred_element_type out_sharding?",
    "broadcast_in_dim": "shape broadcast_dimensions sharding",
    "transpose": "permutation",
    "reshape": "new_sizes dimensions sharding",
    "squeeze rev": "dimensions",
    "tile": "reps",
    "concatenate": "dimension",
    "stack unstack": "axis",
    "split": "sizes axis",
    "pad": "padding_config",
    "slice": "start_indices limit_indices strides",
    "dynamic_slice": "slice_sizes",
    "dynamic_update_slice": "",
    "scatter scatter-add": "dimension_numbers indices_are_sorted mode unique_indices update_consts update_jaxpr",
    "reduce_window_sum": "window_dimensions window_strides padding base_dilation window_dilation",
    "conv_general_dilated": "window_strides padding lhs_dilation rhs_dilation dimension_numbers feature_group_count "
    "batch_group_count precision preferred_element_type out_sharding?",
    "gather": "dimension_numbers slice_sizes indices_are_sorted unique_indices mode fill_value",
    "jit": "jaxpr name in_shardings out_shardings in_layouts out_layouts donated_invars ctx_mesh keep_unused inline compiler_options_kvs",
    "closed_call core_call eval_jaxpr": "call_jaxpr",
    "checkpoint remat2": "jaxpr prevent_cse differentiated policy",
    "cond": "branches branches_platforms?",
    "while": "cond_nconsts cond_jaxpr body_nconsts body_jaxpr",
    "scan": "reverse length jaxpr unroll num_consts? num_carry? ft_in? ft_out? linear? _split_transpose?",
    "custom_linear_solve": "const_lengths jaxprs",
    "custom_jvp_call": "call_jaxpr jvp_jaxpr_fun num_consts symbolic_zeros",
    "custom_vjp_call": "call_jaxpr fwd_jaxpr_thunk bwd num_consts out_trees symbolic_zeros",
    "call_hi_primitive": "_prim",
    # primitives of Equinox and Lineax
    "nontraceable nonbatchable nondifferentiable_backward select_if_vmap": "*",
    "linear_solve": "treedef static *",
}


@dataclass(frozen=True)
class _Form:
    """The parameters of the equations of a primitive."""

    required: frozenset[str]
    known: frozenset[str]
    none: tuple[str, ...]
    open: bool  # whether other parameters do not matter

    def problem(self, given: Mapping[str, Any]) -> str | None:
        """Return the difference from this form; None if there is none."""
        names = given.keys()
        if missing := self.required - names:
            return f"it has no parameter {', '.join(sorted(missing))}"
        if not self.open and (new := names - self.known):
            return f"it has the parameter {', '.join(sorted(new))}"
        for name in self.none:
            if given.get(name) is not None:
                return f"its parameter {name} is {given[name]!r}"
        return None


def _form(text: str) -> _Form:
    words = [word for word in text.split() if word != "*"]
    names = [word.removesuffix("=None") for word in words]
    return _Form(
        frozenset(name for name in names if not name.endswith("?")),
        frozenset(name.removesuffix("?") for name in names),
        tuple(word.removesuffix("=None").removesuffix("?") for word in words if word.endswith("=None")),
        "*" in text.split(),
    )


FORMS = {name: _form(text) for names, text in _FORMS.items() for name in names.split()}
"""The form of the parameters of each primitive that a rule of `structured` or `jacobian` reads."""


def parameters(equation: Any) -> Mapping[str, Any]:
    """Return the parameters of an equation after a check.

    Raises
    ------
    UnrecognisedEquation
        If the parameters are unknown to this library.
    """
    problem = problem_of(equation)
    if problem is not None:
        raise UnrecognisedEquation(equation.primitive.name, problem)
    checked: Mapping[str, Any] = equation.params
    return checked


def problem_of(equation: Any) -> str | None:
    """Return the difference between the parameters of an equation and its form; None if there is none."""
    form = FORMS.get(equation.primitive.name)
    return "it is a new primitive" if form is None else form.problem(equation.params)
