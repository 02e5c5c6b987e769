"""What a model says of tokens at its output layer, for a part of the positions at a time.

The logits of a micro-batch would be its largest tensor by far: those of 32,768 tokens over a
vocabulary of 151,936 take 19 GiB in float32, and a softmax with its gradient wants several of them.
So the output layer is asked for as many positions as `LOGITS_AT_ONCE` allows; of their logits only
the asked log-probabilities and the entropy are kept, and for the gradient they are computed again.

Invariants:
- Where all logits are few enough they are computed once, and kept.
- Outside of `tell` the model is as it was.
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
    """What is asked at M positions, in the order in which the output layer is given them."""

    temperatures_M: Tensor
    tokens_MR: Tensor
    """The tokens at each whose log-probabilities are wanted; any token where there are fewer."""
    entropy_gradient: bool = False

    def part(self, positions: slice) -> Asked:
        return Asked(
            self.temperatures_M[positions], self.tokens_MR[positions], self.entropy_gradient
        )


def tell(
    model: PreTrainedModel, asked: Asked, at_once: int | None, **inputs: Any
) -> tuple[Tensor, Tensor]:
    """(logprobs_MR, entropies_M), in nats, of a forward pass; with gradient, entropies only where
    it is asked for.

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
    """Whether a model's logits are what its output layer gives, and nothing is done to them
    after."""
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
    """(what is told of the positions, whether the model returned it as it was told)."""
    head = model.get_output_embeddings()
    layer, own = head.forward, "forward" in vars(head)
    told: list[Tensor] = []

    def answer(hidden: Tensor) -> Tensor:
        inputs_MH = hidden.flatten(0, -2)
        positions = max(1, at_once // max(1, head.weight.shape[0]))
        told.append(_parts(layer, inputs_MH, asked, positions).unflatten(0, hidden.shape[:-1]))
        return told[-1]

    # In the model's own forward pass: whoever gathers weights for its layers has done so then.
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
    """(M, R + 1): log-probabilities and entropy at each of the positions."""
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
