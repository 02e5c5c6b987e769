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

    temperatures_N: Tensor | None
    top_p_N: Tensor | None
    """Above 1 where a row keeps the whole distribution."""
    top_k_N: Tensor | None
    """The size of the vocabulary or more where it is off."""
    log_min_p_N: Tensor | None
    """-inf where it is off."""


def draw(logits_NV: Tensor, settings: Settings, uniforms_N: Tensor) -> tuple[Tensor, Tensor]:
    """Returns (tokens_N, logprobs_N), with log-probabilities in the softmax of the whole vocabulary
    at the temperature, regardless of truncation."""
    logits_NV = logits_NV.float()
    if settings.temperatures_N is not None:
        logits_NV = logits_NV / settings.temperatures_N[:, None]
    logprobs_NV = torch.log_softmax(logits_NV, dim=-1)
    tokens_N1 = _inverse_transform(_allowed(logprobs_NV, settings), uniforms_N)
    return tokens_N1[:, 0], logprobs_NV.gather(1, tokens_N1)[:, 0]


def _allowed(logprobs_NV: Tensor, settings: Settings) -> Tensor:
    """Returns the log-probs with -inf for excluded tokens, in vLLM's order: min_p, top_k, top_p."""
    if settings.log_min_p_N is not None:
        least_N1 = logprobs_NV.max(dim=-1, keepdim=True).values + settings.log_min_p_N[:, None]
        logprobs_NV = logprobs_NV.masked_fill(logprobs_NV < least_N1, float("-inf"))
    if settings.top_k_N is not None:
        top_k_N1 = settings.top_k_N.clamp(max=logprobs_NV.shape[-1])[:, None]
        most = int(top_k_N1.max())
        least_N1 = logprobs_NV.topk(most, dim=-1).values.gather(1, top_k_N1 - 1)
        logprobs_NV = logprobs_NV.masked_fill(logprobs_NV < least_N1, float("-inf"))
    return logprobs_NV if settings.top_p_N is None else _nucleus(logprobs_NV, settings.top_p_N)


def _nucleus(logprobs_NV: Tensor, top_p_N: Tensor) -> Tensor:
    """Keeps the smallest set of tokens whose share of the remaining mass reaches top_p."""
    ordered_NV, order_NV = torch.log_softmax(logprobs_NV, dim=-1).sort(dim=-1, descending=True)
    before_NV = ordered_NV.exp().cumsum(-1) - ordered_NV.exp()
    beyond_NV = before_NV >= top_p_N[:, None]
    cut_NV = torch.zeros_like(beyond_NV).scatter(1, order_NV, beyond_NV)
    return logprobs_NV.masked_fill(cut_NV, float("-inf"))


def _inverse_transform(logprobs_NV: Tensor, uniforms_N: Tensor) -> Tensor:
    """Returns tokens_N1: one draw per row by inversion of the cumulative distribution, of any
    total mass.

    Takes one random number per row, where torch.multinomial takes one per row and token, which cost
    a sixth of the time of a small model. Sums in float64, so that a large vocabulary loses no mass.
    A token of probability 0 is never drawn: its step of the distribution has no width.
    """
    cumulative_NV = logprobs_NV.exp().cumsum(-1, dtype=torch.float64)
    total_N1 = cumulative_NV[:, -1:]
    # Uniforms are below 1, so targets stay below the total even after rounding.
    target_N1 = (uniforms_N[:, None] * total_N1).minimum(
        total_N1.nextafter(torch.zeros_like(total_N1))
    )
    # Where logits are NaN no step matches; the log-probability is then NaN.
    index_N1 = torch.searchsorted(cumulative_NV, target_N1, right=True)
    return index_N1.clamp_(max=cumulative_NV.shape[-1] - 1)
