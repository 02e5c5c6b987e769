"""The whole loss of one agent: policy loss with its rollout correction, KL to its reference and
entropy bonus.

    loss = policy loss + kl_coefficient * mean of the KL estimate - entropy_coefficient * mean of H
The last two means are over all sampled tokens, under any aggregation of the policy loss
(docs/algorithm.md, section 7); H is the entropy, in nats, of the learner's distribution at a token.
Demonstrations are in the policy loss alone, with a correction weight of 1.

Invariant: all parts are divided by the units of the whole batch, so the losses and gradients of
its micro-batches add up to those of the batch, however it is split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from engine.config.loss import LossConfig
from engine.losses import policy_loss, policy_units
from engine.losses.importance import importance_weights
from engine.losses.kl import kl_tokens
from engine.losses.terms import BatchUnits, LossContext, Rows, masked_sum, sequences, tokens


@dataclass(frozen=True)
class TotalLoss:
    """One micro-batch's share of the batch's loss; the shares of all micro-batches add up to it."""

    loss: Tensor
    """Scalar with gradient; the others are detached."""
    policy: Tensor
    kl: Tensor
    """Mean estimate, before its coefficient; 0 without a reference."""
    clip_fraction: Tensor
    mismatch: Tensor
    """Mean |log pi_old - log pi_rollout| of sampled tokens."""
    figures: Mapping[str, Tensor]
    """Means over tokens of the policy loss's own figures, by name."""


def count_units(
    masks: Iterable[Tensor],
    config: LossConfig,
    over_ranks: Callable[[Sequence[float]], Sequence[float]] = tuple,
    demonstrations: Iterable[Tensor | None] = (),
) -> BatchUnits:
    """Returns the denominators of the batch that these micro-batches form on all ranks;
    `over_ranks` sums numbers over the ranks that learn together. `demonstrations` are the
    `Rows.demonstrations_N` of each micro-batch, if some rows are demonstrations.

    Raises:
        ValueError: the batch has no token to learn from.
    """
    masks = list(masks)
    counts = (
        sum(policy_units(mask_NL, config) for mask_NL in masks),
        sum(tokens(mask_NL) for mask_NL in masks),
        sum(sequences(mask_NL) for mask_NL in masks),
        sum(
            tokens(mask_NL[shown_N])
            for mask_NL, shown_N in zip(masks, demonstrations, strict=False)
            if shown_N is not None
        ),
    )
    units = BatchUnits(*map(int, over_ranks(counts)))
    if units.tokens == 0:
        raise ValueError("the batch has no token to learn from; leave empty answers out")
    return units


def total_loss(
    logprobs_NL: Tensor,
    rows: Rows,
    units: BatchUnits,
    config: LossConfig,
    entropy_NL: Tensor | None = None,
) -> TotalLoss:
    """Returns the share of one micro-batch; call `backward` on `loss`.

    `entropy_NL` are those of the current weights: with gradient for a positive entropy coefficient,
    and needed otherwise only by a loss whose `NEEDS` has `entropies`.

    Raises:
        ValueError: something that the settings need is missing: reference log-probs, entropies, a
            column of the rows, or a head's outputs.
    """
    terms = policy_loss(
        _context(logprobs_NL, rows, units, config, entropy_NL), _weights(rows, config)
    )
    policy = terms.loss_sum / units.policy
    if terms.sequence_sum is not None:
        policy = policy + terms.sequence_sum / units.sequences
    sampled_NL = rows.sampled_NL
    kl = _kl(logprobs_NL, rows, config) / units.sampled
    loss = policy + config.kl_coefficient * kl
    if config.entropy_coefficient > 0:
        loss = loss - config.entropy_coefficient * _entropy(entropy_NL, sampled_NL) / units.sampled
    gap_NL = (rows.old_logprobs_NL - rows.rollout_logprobs_NL).abs()
    return TotalLoss(
        loss=loss,
        policy=policy.detach(),
        kl=kl.detach(),
        clip_fraction=terms.clipped_sum / units.policy,
        mismatch=masked_sum(gap_NL, sampled_NL) / units.sampled,
        figures={name: total / units.tokens for name, total in terms.figures.items()},
    )


def _context(
    logprobs_NL: Tensor,
    rows: Rows,
    units: BatchUnits,
    config: LossConfig,
    entropy_NL: Tensor | None,
) -> LossContext:
    started_NL = entropy_NL if rows.old_entropies_NL is None else rows.old_entropies_NL
    own = {field.name: getattr(rows, field.name) for field in fields(Rows)}
    context = LossContext(
        **own,
        logprobs_NL=logprobs_NL,
        entropies_NL=None if started_NL is None else started_NL.detach(),
        units=units,
        config=config,
    )
    given = set(rows.columns)
    given |= {"entropies"} if context.entropies_NL is not None else set()
    given |= {"demonstrations"}  # None says that there are none
    given |= {"reference"} if rows.reference_logprobs_NL is not None else set()
    given |= set(rows.heads)
    if missing := sorted((config.needs | set(config.heads)) - given):
        raise ValueError(
            f"loss.policy = {config.policy} needs {', '.join(missing)}; give them with the rows"
        )
    return context


def _weights(rows: Rows, config: LossConfig) -> Tensor:
    if not config.importance_correction:
        return torch.ones_like(rows.old_logprobs_NL)
    weights_NL = importance_weights(
        rows.old_logprobs_NL,
        rows.rollout_logprobs_NL,
        rows.mask_NL,
        config.importance_level,
        config.importance_mode,
        config.importance_threshold,
        config.importance_veto,
    )
    if rows.demonstrations_N is None:
        return weights_NL
    return weights_NL.where(~rows.demonstrations_N[:, None], 1.0)


def _entropy(entropy_NL: Tensor | None, mask_NL: Tensor) -> Tensor:
    if entropy_NL is None:
        raise ValueError("loss.entropy_coefficient needs entropies; give them, or set it to 0")
    return masked_sum(entropy_NL, mask_NL)


def _kl(logprobs_NL: Tensor, rows: Rows, config: LossConfig) -> Tensor:
    if rows.reference_logprobs_NL is not None:
        return kl_tokens(
            logprobs_NL, rows.reference_logprobs_NL, rows.sampled_NL, config.kl_estimator
        ).sum()
    if config.kl_coefficient > 0:
        raise ValueError(
            f"loss.kl_coefficient = {config.kl_coefficient} needs reference log-probs; "
            "give them, or set it to 0"
        )
    return logprobs_NL.new_zeros(())
