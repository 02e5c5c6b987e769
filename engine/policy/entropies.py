"""Entropies of a policy's distribution at the output tokens of rows: a forward pass without a
gradient, for methods of credit that need them before the update."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from transformers import PreTrainedModel

from engine.policy.batching import length_buckets
from engine.policy.learner.forward import output_logprobs, pad_rows
from engine.policy.learner.rows import TrainingRow
from engine.policy.models.chunked_logits import ends_with_head
from engine.resources.shapes import logits_at_once


@torch.no_grad()
def entropies(
    model: PreTrainedModel, rows: Sequence[TrainingRow], pad_id: int, max_tokens: int
) -> list[np.ndarray]:
    """Returns, for each row, the entropy before each of its L output tokens, in nats: (L,) float32,
    at the temperature of the row. A forward pass has at most `max_tokens`, except for longer rows.
    """
    at_once = None
    if ends_with_head(model):
        vocabulary = model.config.get_text_config().vocab_size
        at_once = logits_at_once(vocabulary, on_cpu=model.device.type == "cpu")
    made = [np.empty(0, np.float32)] * len(rows)
    lengths = [len(row.prompt_ids) + len(row.output_ids) for row in rows]
    for bucket in length_buckets(lengths, max_tokens):
        padded = pad_rows([rows[index] for index in bucket], pad_id, model.device)
        _, entropy_NL = output_logprobs(model, padded, at_once=at_once)
        for index, entropy_L in zip(bucket, entropy_NL.float().cpu().numpy(), strict=True):
            made[index] = entropy_L[: len(rows[index].output_ids)].copy()
    return made
