"""Kinds of golden cases, one small function each: plain inputs in, plain values out.

Each takes the whole case, because some cases select the estimator by their name only, and returns
plain data in the shape of the case's expected value. Kinds of one method alone are in its module.
"""

from __future__ import annotations

from engine.config.golden_kind import Kind, golden_kinds
from engine.golden.kinds import credit, figures, losses, search

_GROUPS = "group_size tree_ids estimator agents scores lengths limits"
_ADVANTAGE = Kind(credit.advantage, "rewards", _GROUPS, "estimator", "advantages")
_CORRECTION = "rollout_log_probs tis_threshold level mode veto"
_SHAPE = "agents strategy rho max_depth"

KINDS: dict[str, Kind] = {
    "advantage": _ADVANTAGE,
    "backprop": Kind(search.backprop, "dist_type strategy agents script"),
    "depth_weight": Kind(search.depth_weight, "c r_gen", "gamma_d depth rho"),
    "diversity": Kind(figures.diversity, "cluster_sizes k kmax"),
    "dynamic_filter": Kind(credit.dynamic_filter, "trees", "range"),
    "group_advantage": _ADVANTAGE,
    "is_weights": Kind(
        losses.is_weights, "old_log_probs rollout_log_probs", "mask level mode threshold veto"
    ),
    "kl": Kind(losses.kl, "log_probs ref_log_probs", "mask estimator"),
    "method_loss": Kind(
        losses.method,
        "log_probs method",
        "mask old_log_probs ref_log_probs scores groups advantages kinds clip aggregation_tokens",
        "method",
        "losses",
    ),
    "overlong": Kind(
        credit.overlong, "rewards lengths generate_max_len overlong_buffer_len", "factor"
    ),
    "p_agent": Kind(search.p_agent, "store", "dist_type"),
    "p_widen": Kind(search.p_widen, "gen_obs cont_obs", "dist_type"),
    "pass_at_k": Kind(figures.pass_at_k, "cases"),
    "policy_loss": Kind(
        losses.policy,
        "log_probs old_log_probs advantages clip loss",
        f"mask aggregation aggregation_tokens dual_clip entropies columns {_CORRECTION}",
        "loss",
        "losses",
    ),
    "posterior": Kind(search.posterior, "obs", "prior dist_type"),
    "prior": Kind(search.prior, "dist_type", "reward_average_prior"),
    "program_similarity": Kind(credit.program_similarity, "programs"),
    "total_loss": Kind(
        losses.total,
        "log_probs old_log_probs ref_log_probs advantages clip kl_coef loss",
        f"mask aggregation aggregation_tokens dual_clip estimator {_CORRECTION}",
        "loss",
        "losses",
    ),
    "token_advantage": Kind(
        credit.token_advantage,
        "method",
        "rewards scores tree_ids tokens prefixes entropies alpha",
        "method",
        "advantages",
    ),
    "tree_select": Kind(figures.tree_select, "public private", "top_k"),
    "tree_shape": Kind(search.tree_shape, "dist_type p nodes runs", _SHAPE),
    "tree_shaping": Kind(credit.shaping, "rewards parent", "gamma lambda"),
    "ucb_agent": Kind(search.ucb_agent, "store"),
    **golden_kinds(),
}
