"""Log-probabilities and entropies from a model's output layer, a chunk of positions at a time.

The logits of a micro-batch would be its largest tensor by far: those of 32,768 tokens over a
vocabulary of 151,936 take 19 GiB in float32, and a softmax with its gradient needs several of them.
So the output layer runs on as many positions at once as `LOGITS_AT_ONCE` allows. Of their logits
only the requested log-probabilities and the entropy are kept; the backward pass recomputes them.

Invariants:
- Where all logits are few enough they are computed once, and kept.
- Outside of `tell` the model is unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from engine.resources.shapes import LOGITS_AT_ONCE


@dataclass(frozen=True)
class Asked:
    """The query at M positions, in the order in which the output layer receives them."""

    temperatures_M: Tensor
    tokens_MR: Tensor
    """The R tokens at each position whose log-probabilities are requested, padded with any token
    where there are fewer."""
    entropy_gradient: bool = False

    def part(self, positions: slice) -> Asked:
        return Asked(
            self.temperatures_M[positions], self.tokens_MR[positions], self.entropy_gradient
        )


def tell(
    model: PreTrainedModel, asked: Asked, at_once: int | None, **inputs: Any
) -> tuple[Tensor, Tensor]:
    """Returns (logprobs_MR, entropies_M), in nats, of a forward pass. Log-probabilities carry a
    gradient; entropies do only if `asked.entropy_gradient` is set.

    `at_once` is the most logits that exist at a time; None is all of them, for a model that
    changes its logits after its output layer (`ends_with_head`).
    """
    if at_once is None:
        logits = model(**inputs).logits
        told_MX = _parts(lambda part: part, logits.flatten(0, -2), asked, len(asked.tokens_MR))
    else:
        told_MX = _within(model, asked, at_once, inputs)[0]
    return told_MX[:, :-1], told_MX[:, -1]


@torch.no_grad()
def ends_with_head(model: PreTrainedModel) -> bool:
    """Returns whether a model's logits are the output of its output layer, unchanged."""
    if model.get_output_embeddings() is None:
        return False
    ids = torch.zeros(1, 2, dtype=torch.long, device=model.device)
    asked = Asked(torch.ones(2, device=model.device), ids.new_zeros(2, 1))
    training = model.training
    model.eval()
    try:
        return _within(model, asked, LOGITS_AT_ONCE, {"input_ids": ids, "use_cache": False})[1]
    finally:
        model.train(training)


def _within(
    model: PreTrainedModel, asked: Asked, at_once: int, inputs: dict[str, Any]
) -> tuple[Tensor, bool]:
    """Returns (the result of `_parts`, whether the model returned that tensor unchanged)."""
    head = model.get_output_embeddings()
    layer, own = head.forward, "forward" in vars(head)
    told: list[Tensor] = []

    def answer(hidden: Tensor) -> Tensor:
        inputs_MH = hidden.flatten(0, -2)
        positions = max(1, at_once // max(1, head.weight.shape[0]))
        told.append(_parts(layer, inputs_MH, asked, positions).unflatten(0, hidden.shape[:-1]))
        return told[-1]

    # Inside the model's own forward pass, where hooks that gather sharded weights have already run.
    head.forward = answer
    try:
        returned = model(**inputs).logits
    finally:
        if own:
            head.forward = layer
        else:
            del head.forward
    return returned.flatten(0, -2), len(told) == 1 and returned is told[0]


def _parts(
    layer: Callable[[Tensor], Tensor], inputs_MH: Tensor, asked: Asked, positions: int
) -> Tensor:
    """Returns (M, R + 1): log-probabilities and entropy at each of the positions."""
    if len(inputs_MH) <= positions:
        return _told(layer, inputs_MH, asked)
    parts = [slice(first, first + positions) for first in range(0, len(inputs_MH), positions)]
    return torch.cat(
        [
            checkpoint(
                _told, layer, inputs_MH[part], asked.part(part),
                use_reentrant=False, preserve_rng_state=False,
            )
            for part in parts
        ]
    )  # fmt: skip


def _told(layer: Callable[[Tensor], Tensor], inputs_MH: Tensor, asked: Asked) -> Tensor:
    logits_MV = layer(inputs_MH)
    precise_MV = logits_MV.to(torch.promote_types(logits_MV.dtype, torch.float32))
    logprobs_MV = torch.log_softmax(precise_MV / asked.temperatures_M[:, None], dim=-1)
    with torch.set_grad_enabled(asked.entropy_gradient and torch.is_grad_enabled()):
        entropy_M1 = -(logprobs_MV.exp() * logprobs_MV).sum(-1, keepdim=True)
    return torch.cat([logprobs_MV.gather(1, asked.tokens_MR), entropy_M1], dim=1)
