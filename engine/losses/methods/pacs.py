"""PACS: log-ratios are fitted to scores as a classifier (arXiv 2509.02522; code ritzz-ai/PACS).

    R_i = beta sum_t (log pi_theta - log pi_old)       psi_i = R_i - mean of the group's other R
    loss = 1/N sum_i w_i BCE(sigma(psi_i), y_i)
y is the score, N the rows in groups of two or more, and a group the rows of one tree and owner of
weights. In a group of both labels `loss.pacs.balance` gives both the same weight in total,
w_i = G / (2 rows of that label); otherwise w is 1. Scores between 0 and 1 are soft labels, and a
group that has one is not balanced (ours). A row without tokens stays in the group's mean, and has
no loss of its own.

With e_i = w_i (sigma(psi_i) - y_i) / N the gradient by log pi of any token of row j is
    beta (e_j - sum over the group's others of e_i / (G - 1))
which `over_minibatch` computes; it is exact, since the loss depends on the model through the R
alone. While pi_theta is pi_old and w is 1, that is REINFORCE with the advantages of `rloo`. The
loss compares scores itself: it reads no advantages, and a recipe turns the rollout correction and
`credit.dynamic_filter` off.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pydantic import Field

from engine.config.base import Settings
from engine.config.loss import Aggregation, LossConfig
from engine.config.methods import Figure
from engine.config.misfits import Misfit, parts_in_use
from engine.losses.terms import LossContext, LossTerms, masked_sum

if TYPE_CHECKING:
    from torch import Tensor

    from engine.config.schema import RunConfig
    from engine.losses.minibatch import MinibatchRows

AGGREGATION = Aggregation.TOKEN_MEAN
NEEDS = {"scores"}
FIGURES = {"label_error": Figure("Distance of classifier and score")}


class Options(Settings):
    """PACS."""

    beta: float = Field(1.0, gt=0, le=100)
    """Factor of the log-ratios."""
    balance: bool = True
    """Give right and wrong answers of a tree the same weight in total."""


def misfits(config: RunConfig) -> Iterator[Misfit]:
    """Warns of rewards that it does not read."""
    for name, weight in parts_in_use(config).items():
        reason = (
            f"has no effect on loss.policy = {config.loss.policy}, which reads scores alone; leave "
            "it out, or choose another loss"
        )
        yield Misfit(f"credit.{name}.weight", weight, reason, refused=False)


def loss_terms(context: LossContext) -> LossTerms:
    """Returns the loss of every sequence: in value its share of the loss, in gradient its slope."""
    columns, logprobs_NL = context.columns, context.logprobs_NL
    moves_N = masked_sum(logprobs_NL - logprobs_NL.detach(), context.mask_NL, dim=-1)
    value_N, slope_N = (columns[name].to(moves_N.dtype) for name in ("value", "slope"))
    return LossTerms(
        logprobs_NL.new_zeros(logprobs_NL.shape),
        figures={"label_error": columns["error"].unsqueeze(-1)},
        per_sequence_N=value_N + slope_N * moves_N,
    )


def over_minibatch(rows: MinibatchRows, config: LossConfig) -> dict[str, Tensor]:
    """Returns value and slope of each row, in units of the mean over the minibatch's sequences, and
    the distance of sigma(psi) from its score."""
    from torch.nn.functional import binary_cross_entropy_with_logits

    options = config.options("policy")
    labels_N = rows.columns["scores"].double()
    with_tokens_N = rows.lengths_N > 0
    counted_N = (_sizes(rows.groups_N) > 1) & with_tokens_N
    weights_N = counted_N / counted_N.sum().clamp(min=1)
    if options.balance:
        weights_N = weights_N * _balance(labels_N, rows.groups_N)
    psi_N = contrasts(rows, options.beta)
    loss_N = weights_N * binary_cross_entropy_with_logits(psi_N, labels_N, reduction="none")
    gap_N = psi_N.sigmoid() - labels_N
    slope_N = options.beta * _less_others(weights_N * gap_N, rows.groups_N)
    sequences = with_tokens_N.sum()
    return {"value": loss_N * sequences, "slope": slope_N * sequences, "error": gap_N.abs()}


def contrasts(rows: MinibatchRows, beta: float) -> Tensor:
    """Returns psi_N; 0 for a row alone in its group."""
    return _less_others(beta * rows.drift_N, rows.groups_N)


def _less_others(values_N: Tensor, groups_N: Tensor) -> Tensor:
    """Returns each value less the mean of the others of its group; 0 without others."""
    others_N = _sizes(groups_N) - 1
    mean_N = (_sums(values_N, groups_N) - values_N) / others_N.clamp(min=1)
    return (values_N - mean_N).where(others_N > 0, 0.0)


def _balance(labels_N: Tensor, groups_N: Tensor) -> Tensor:
    """Returns w_N: the same total for both labels of a group; 1 in groups of one label, and with
    soft ones."""
    sizes_N = _sizes(groups_N)
    right_N = _sums(labels_N, groups_N)
    soft_N = _sums(((labels_N > 0.0) & (labels_N < 1.0)).double(), groups_N)
    alike_N = right_N.where(labels_N > 0.0, sizes_N - right_N)
    plain_N = (soft_N > 0) | (alike_N == sizes_N)
    return (sizes_N / (2 * alike_N)).masked_fill(plain_N, 1.0)


def _sizes(groups_N: Tensor) -> Tensor:
    """Returns the number of rows of each row's group."""
    return _sums(groups_N.new_ones(groups_N.shape), groups_N)


def _sums(values_N: Tensor, groups_N: Tensor) -> Tensor:
    """Returns, at each row, the sum over its group."""
    groups_G, of_N = groups_N.unique(return_inverse=True)
    return values_N.new_zeros(len(groups_G)).index_add(0, of_N, values_N)[of_N]


def golden_results(rows: MinibatchRows, config: LossConfig) -> dict[str, Any]:
    """Returns the further results of a golden case."""
    return {"psi": contrasts(rows, config.options("policy").beta).tolist()}
