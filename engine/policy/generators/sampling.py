"""Sampling of one token for each row of a batch, with settings per row.

Invariant: a row's token depends on its logits, its settings and its random number, and on no other
row.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Settings:
    """Sampling settings of each row. One that no row uses is None, and costs nothing."""

    temperatures_B: Tensor | None
    top_p_B: Tensor | None
    """Above 1 where a row keeps the whole distribution."""
    top_k_B: Tensor | None
    """The size of the vocabulary or more where it is off."""
    log_min_p_B: Tensor | None
    """-inf where it is off."""


def draw(logits_BV: Tensor, settings: Settings, uniforms_B: Tensor) -> tuple[Tensor, Tensor]:
    """Returns (tokens_B, logprobs_B), with log-probabilities in the softmax of the whole vocabulary
    at the temperature, regardless of truncation."""
    logits_BV = logits_BV.float()
    if settings.temperatures_B is not None:
        logits_BV = logits_BV / settings.temperatures_B[:, None]
    logprobs_BV = torch.log_softmax(logits_BV, dim=-1)
    tokens_B1 = _inverse_transform(_allowed(logprobs_BV, settings), uniforms_B)
    return tokens_B1[:, 0], logprobs_BV.gather(1, tokens_B1)[:, 0]


def _allowed(logprobs_BV: Tensor, settings: Settings) -> Tensor:
    """Returns the log-probs with -inf for excluded tokens, in vLLM's order: min_p, top_k, top_p."""
    if settings.log_min_p_B is not None:
        least_B1 = logprobs_BV.max(dim=-1, keepdim=True).values + settings.log_min_p_B[:, None]
        logprobs_BV = logprobs_BV.masked_fill(logprobs_BV < least_B1, float("-inf"))
    if settings.top_k_B is not None:
        top_k_B1 = settings.top_k_B.clamp(max=logprobs_BV.shape[-1])[:, None]
        most = int(top_k_B1.max())
        least_B1 = logprobs_BV.topk(most, dim=-1).values.gather(1, top_k_B1 - 1)
        logprobs_BV = logprobs_BV.masked_fill(logprobs_BV < least_B1, float("-inf"))
    return logprobs_BV if settings.top_p_B is None else _nucleus(logprobs_BV, settings.top_p_B)


def _nucleus(logprobs_BV: Tensor, top_p_B: Tensor) -> Tensor:
    """Keeps the smallest set of tokens whose share of the remaining mass reaches top_p."""
    ordered_BV, order_BV = torch.log_softmax(logprobs_BV, dim=-1).sort(dim=-1, descending=True)
    before_BV = ordered_BV.exp().cumsum(-1) - ordered_BV.exp()
    beyond_BV = before_BV >= top_p_B[:, None]
    cut_BV = torch.zeros_like(beyond_BV).scatter(1, order_BV, beyond_BV)
    return logprobs_BV.masked_fill(cut_BV, float("-inf"))


def _inverse_transform(logprobs_BV: Tensor, uniforms_B: Tensor) -> Tensor:
    """Returns tokens_B1: one draw per row by inversion of the cumulative distribution, of any
    total mass.

    Takes one random number per row, where torch.multinomial takes one per row and token, which cost
    a sixth of the time of a small model. Sums in float64, so that a large vocabulary loses no mass.
    A token of probability 0 is never drawn: its step of the distribution has no width.
    """
    cumulative_BV = logprobs_BV.exp().cumsum(-1, dtype=torch.float64)
    total_B1 = cumulative_BV[:, -1:]
    # Uniforms are below 1, so targets stay below the total even after rounding.
    target_B1 = (uniforms_B[:, None] * total_B1).minimum(
        total_B1.nextafter(torch.zeros_like(total_B1))
    )
    # Where logits are NaN no step matches; the log-probability is then NaN.
    index_B1 = torch.searchsorted(cumulative_BV, target_B1, right=True)
    return index_B1.clamp_(max=cumulative_BV.shape[-1] - 1)
