"""The primitives of JAX that have no rule in `structured`, on purpose, by the reason: their structured operands become dense."""

DENSIFIES = {
    "results have the structure of no operand": """
        cholesky_update conv_general_dilated cumlogsumexp cummax cummin eig hessenberg householder_product ormqr reduce reduce_window
        reduce_window_max reduce_window_min reduce_window_sum reduce_xor schur select_and_gather_add select_and_scatter
        select_and_scatter_add symmetric_product tridiagonal tridiagonal_solve approx_top_k top_k
    """,
    "a write at places that are data": """
        dynamic_update_slice scatter scatter-add scatter-max scatter-min scatter-mul scatter-sub
    """,
    "of integers and random bits": """
        igamma_grad_a mulhi random_bits random_fold_in random_gamma random_seed random_split rng_bit_generator rng_uniform threefry2x32
    """,
    "communication and placement, which JAX does for dense arrays": """
        all_gather all_to_all axis_index device_put pmax pmin ppermute psum ragged_all_to_all sharding_constraint
    """,
    "no operation on arrays of numbers": """
        after_all create_token custom_lin empty2 get stage swap call dce_sink
    """,
}
