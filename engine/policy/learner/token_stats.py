"""Token statistics of the learner, for display.

Invariant: learning does not depend on them. They leave the device in one copy per micro-batch and
are rounded, so that a step's log stays small.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.policy.learner.forward import RowTensors
from engine.policy.learner.rows import TokenStats
from engine.policy.types import SHOWN_TOKENS

DECIMALS = 3
_WIDEST = 10.0
"""Natural logarithm of the largest recorded ratio."""


def token_stats(rows: RowTensors, logprobs_NL: Tensor, entropy_NL: Tensor) -> list[TokenStats]:
    """Returns entropy in nats and importance ratio of the sampled rows' outputs, at most
    `SHOWN_TOKENS` of each.

    `logprobs_NL` and `entropy_NL` are those of `engine.policy.learner.forward.output_logprobs`.
    """
    log_ratio_NL = (logprobs_NL - rows.rollout_logprobs_NL).clamp(-_WIDEST, _WIDEST)
    both_2NL = torch.stack([entropy_NL.float(), log_ratio_NL.float().exp()])[:, :, :SHOWN_TOKENS]
    entropies, ratios = both_2NL.double().round(decimals=DECIMALS).tolist()
    stats = []
    for row, entropy, ratio in zip(rows.rows, entropies, ratios, strict=False):
        if row.is_demonstration:  # of no node
            continue
        length = len(row.output_ids)
        stats.append(TokenStats(row.tree, row.node, entropy[:length], ratio[:length]))
    return stats
