"""One small function per kind of golden case: plain inputs in, plain values out.

Each takes the whole case, because some kinds say only by their name which estimator they mean,
and returns plain data in the shape of the case's expected value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.golden_kinds import credit, figures, losses, search
from engine.golden_kinds.case import Case

KINDS: dict[str, Callable[[Case], Any]] = {
    "advantage": credit.advantage,
    "backprop": search.backprop,
    "depth_weight": search.depth_weight,
    "diversity": figures.diversity,
    "dynamic_filter": credit.dynamic_filter,
    "group_advantage": credit.advantage,
    "gspo_ratio": losses.gspo_ratio,
    "is_weights": losses.is_weights,
    "kl": losses.kl,
    "overlong": credit.overlong,
    "p_agent": search.p_agent,
    "p_widen": search.p_widen,
    "pass_at_k": figures.pass_at_k,
    "policy_loss": losses.policy,
    "posterior": search.posterior,
    "prior": search.prior,
    "total_loss": losses.total,
    "tree_select": figures.tree_select,
    "tree_shape": search.tree_shape,
    "tree_shaping": credit.shaping,
    "ucb_agent": search.ucb_agent,
}
