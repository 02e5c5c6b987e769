"""FlowRL: answers become as likely as their rewards say (arXiv 2509.15207; code Xuekai-Zhu/FlowRL).

    d_v = log Z(x_v) + mean_t log pi_theta - beta A_v - mean_t log pi_ref
    loss = mean over nodes of w_v d_v^2
    w_v = clip(exp(sum_t (log pi_theta - log pi_old)), 1 - clip_low, 1 + clip_high), no gradient
Formula, sizes and defaults are those of the code. log Z of a node's own prompt x is a head of three
layers over the mean of the prompt's states, whose gradient runs into the model. At the minimum pi
is proportional to pi_ref exp(beta A), in logarithms normalised by length. A node whose advantage is
0, as in a tree of equal rewards, is pulled to the reference: `credit.dynamic_filter`, which would
drop it, is refused. The advantages are those of `grpo`; of a node that has one for each
token their mean counts (ours).

The authors' dropout in the head is left out (ours: Z is a number of the prompt, so all its nodes
must have the same), and its last layer begins at 0 (ours). beta = 15 is for answers of thousands of
tokens; for tens of tokens 2 is a start (ours).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import Field

from engine.config.heads import Head, HeadOptions, Reads
from engine.config.loss import Aggregation
from engine.config.methods import Figure
from engine.config.misfits import Misfit, filtered_trees
from engine.losses.terms import (
    LOG_RATIO_LIMIT,
    LossContext,
    LossTerms,
    lengths,
    masked_log_ratio,
    masked_sum,
)

if TYPE_CHECKING:
    from engine.config.schema import RunConfig

AGGREGATION = Aggregation.SEQUENCE_MEAN
CLIPS = True
NEEDS = {"reference"}
HEADS = {"log_z": Head(Reads.PROMPT, layers=3)}
FIGURES = {
    "log_z": Figure("Logarithm of the partition function", unit="nats"),
    "flow_gap": Figure("Distance from the rewards' distribution", unit="nats"),
}


class Options(HeadOptions):
    """FlowRL."""

    beta: float = Field(15.0, gt=0, le=1000)
    """Weight of an answer's advantage against its mean log-probability."""


def misfits(config: RunConfig) -> Iterator[Misfit]:
    """Refuses the filter of trees that are pulled to the reference."""
    yield from filtered_trees(config, "loss.policy", "pulls these to the reference")


def loss_terms(context: LossContext) -> LossTerms:
    """Returns the loss of every token, which is that of its sequence."""
    mask_NL, reference_NL = context.mask_NL, context.reference_logprobs_NL
    assert reference_NL is not None  # it is in NEEDS
    sizes_N = lengths(mask_NL)
    advantages_N = masked_sum(context.advantages_NL, mask_NL, dim=-1) / sizes_N
    drift_N = masked_log_ratio(context.logprobs_NL, reference_NL, mask_NL).sum(-1) / sizes_N
    log_z_N = context.heads["log_z"]
    gap_N = log_z_N + drift_N - context.options.beta * advantages_N
    ratios_N = (
        masked_log_ratio(context.logprobs_NL.detach(), context.old_logprobs_NL, mask_NL)
        .sum(-1)
        .clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
        .exp()
    )
    config = context.config
    weights_N = ratios_N.clamp(1.0 - config.clip_low, 1.0 + config.clip_high)
    loss_N1 = (weights_N * gap_N.square()).unsqueeze(-1)
    return LossTerms(
        loss_N1.expand_as(context.logprobs_NL),
        (weights_N != ratios_N).unsqueeze(-1).expand_as(context.logprobs_NL),
        figures={"log_z": log_z_N.unsqueeze(-1), "flow_gap": gap_N.abs().unsqueeze(-1)},
    )
