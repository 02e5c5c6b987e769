"""Log-probabilities of written tokens under a model: one forward pass, prompt flush right.

Invariant: `logprobs_NL[n, t]` is that of `output_ids[n][t]` at the temperature at which row n
was sampled, over the whole vocabulary; what stands right of a row's output has no meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel

from engine.policy.batching import left_pad, right_pad
from engine.policy.rows import TrainingRow


@dataclass(frozen=True)
class PaddedRows:
    """A micro-batch: prompts flush right, outputs flush left behind them."""

    ids: Tensor
    """(N, P + L)"""
    attention: Tensor
    positions: Tensor
    outputs_NL: Tensor
    mask_NL: Tensor
    rollout_logprobs_NL: Tensor
    advantages_NL: Tensor
    temperatures_N: Tensor


def pad_rows(rows: Sequence[TrainingRow], pad_id: int, device) -> PaddedRows:
    """Tensors of one micro-batch."""
    prompts, prompt_mask = left_pad([row.prompt_ids for row in rows], pad_id, device)
    width = max(len(row.output_ids) for row in rows)
    outputs_NL = right_pad([row.output_ids for row in rows], width, pad_id, torch.long, device)
    lengths_N = torch.tensor([len(row.output_ids) for row in rows], device=device)
    mask_NL = (torch.arange(width, device=device)[None] < lengths_N[:, None]).long()
    attention = torch.cat([prompt_mask, mask_NL], dim=1)
    rollout_NL = right_pad(
        [row.rollout_logprobs for row in rows], width, 0.0, torch.float32, device
    )
    advantages_N = torch.tensor([row.advantage for row in rows], dtype=torch.float32, device=device)
    temperatures_N = torch.tensor([row.temperature for row in rows], device=device)
    return PaddedRows(
        ids=torch.cat([prompts, outputs_NL], dim=1),
        attention=attention,
        positions=(attention.cumsum(1) - 1).clamp(min=0),
        outputs_NL=outputs_NL,
        mask_NL=mask_NL,
        rollout_logprobs_NL=rollout_NL,
        advantages_NL=advantages_N[:, None].expand(-1, width),
        temperatures_N=temperatures_N,
    )


def output_logprobs(
    model: PreTrainedModel, rows: PaddedRows, entropy_gradient: bool = False
) -> tuple[Tensor, Tensor]:
    """(logprobs_NL with gradient, entropy_NL in nats, without unless it is asked for)."""
    width = rows.outputs_NL.shape[1]
    logits = model(
        input_ids=rows.ids,
        attention_mask=rows.attention,
        position_ids=rows.positions,
        use_cache=False,
        logits_to_keep=width + 1,
    ).logits[:, :-1]
    precise = logits.to(torch.promote_types(logits.dtype, torch.float32))
    logprobs_NLV = torch.log_softmax(precise / rows.temperatures_N[:, None, None], dim=-1)
    with torch.set_grad_enabled(entropy_gradient and torch.is_grad_enabled()):
        entropy_NL = -(logprobs_NLV.exp() * logprobs_NLV).sum(-1)
    return logprobs_NLV.gather(2, rows.outputs_NL[..., None])[..., 0], entropy_NL
