"""Heads over a policy's model, and the hidden states that they read (`engine.config.heads`).

Invariants:
- A new head is the same in every process, and the run's random numbers stay where they are.
- Its last layer begins at 0, so an untrained head gives 0 everywhere.
- The states come from a forward pass of the whole model, whose hooks gather the weights that ranks
  have divided; adapters that are active take part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from engine.config.heads import Head
from engine.policy.batching import left_pad

_SEED = 0


def new_head(head: Head, model: PreTrainedModel, dtype: torch.dtype = torch.float32) -> nn.Module:
    """Returns a new head over a model's states, from (..., H) to (..., 1), on its device."""
    width = model.config.get_text_config().hidden_size
    with torch.random.fork_rng(devices=[]):  # made on the CPU, so no other generator moves
        torch.default_generator.manual_seed(_SEED)
        before = [layer for _ in range(head.layers - 1) for layer in _hidden(width)]
        last = nn.Linear(width, 1)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    module = nn.Sequential(*before, last) if before else last
    return module.to(model.device, dtype)


def head_outputs(module: nn.Module, states: Tensor) -> Tensor:
    """Returns a head's numbers (...,) of states (..., H), in the head's own dtype."""
    return module(states.to(next(module.parameters()).dtype)).squeeze(-1)


@contextmanager
def captured(model: PreTrainedModel) -> Iterator[list[Tensor]]:
    """Yields a list that gets the states of every forward pass in the block, (N, T, H) each, as the
    output layer receives them, with gradient.

    Raises:
        ValueError: the model has no part whose output are its states.
    """
    if model.base_model is model:
        raise ValueError(
            f"{type(model).__name__} does not show its hidden states, which a head reads; choose "
            "another model, or a loss without heads"
        )
    seen: list[Tensor] = []
    hook = model.base_model.register_forward_hook(lambda _, __, output: seen.append(output[0]))
    try:
        yield seen
    finally:
        hook.remove()


def forward_states(model: PreTrainedModel, **inputs: Any) -> Tensor:
    """Returns the states of a forward pass, (N, T, H); the output layer runs on one position of
    each sequence."""
    with captured(model) as seen:
        model(**inputs, use_cache=False, logits_to_keep=1)
    return seen[0]


def last_states(model: PreTrainedModel, rows: Sequence[list[int]], pad_id: int) -> Tensor:
    """Returns the state at the last token of each row of ids, (N, H)."""
    ids_NL, mask_NL = left_pad(rows, pad_id, model.device)
    states_NLH = forward_states(
        model,
        input_ids=ids_NL,
        attention_mask=mask_NL,
        position_ids=(mask_NL.cumsum(1) - 1).clamp(min=0),
    )
    return states_NLH[:, -1]


def _hidden(width: int) -> list[nn.Module]:
    return [nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width)]
