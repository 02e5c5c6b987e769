"""Log-probabilities and entropies from a model's output layer, a chunk of positions at a time.

The logits of a micro-batch would be its largest tensor by far: those of 32,768 tokens over a
vocabulary of 151,936 take 19 GiB in float32, and a softmax with its gradient needs several of them.
So the output layer runs on as many positions at once as `logits_at_once` allows. Of their logits
only the requested log-probabilities and the entropy are kept; the backward pass recomputes them.
Where the output layer is frozen, as under adapters, it need not: the gradient of a token's
log-probability by the layer's input is its row of the matrix minus the expected row, and the
expected row is computed with the logits.

Invariants:
- Where all logits are few enough they are computed once, and kept.
- Outside of `query_logprobs` the model is unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from engine.resources.shapes import LOGITS_AT_ONCE


@dataclass(frozen=True)
class LogprobQuery:
    """The query at N positions, in the order in which the output layer receives them."""

    temperatures_N: Tensor
    tokens_NR: Tensor
    """The R tokens at each position whose log-probabilities are requested, padded with any token
    where there are fewer."""
    entropy_gradient: bool = False

    def part(self, positions: slice) -> LogprobQuery:
        return LogprobQuery(
            self.temperatures_N[positions], self.tokens_NR[positions], self.entropy_gradient
        )


def query_logprobs(
    model: PreTrainedModel, query: LogprobQuery, at_once: int | None, **inputs: Any
) -> tuple[Tensor, Tensor]:
    """Returns (logprobs_NR, entropies_N), in nats, of a forward pass. Log-probabilities carry a
    gradient; entropies do only if `query.entropy_gradient` is set.

    `at_once` is the most logits that exist at a time; None is all of them, for a model that
    changes its logits after its output layer (`ends_with_head`).
    """
    if at_once is None:
        logits = model(**inputs).logits
        outputs_NX = _in_chunks(
            lambda part: part, logits.flatten(0, -2), query, len(query.tokens_NR)
        )
    else:
        outputs_NX = _through_head(model, query, at_once, inputs)[0]
    return outputs_NX[:, :-1], outputs_NX[:, -1]


@torch.no_grad()
def ends_with_head(model: PreTrainedModel) -> bool:
    """Returns whether a model's logits are the output of its output layer, unchanged."""
    if model.get_output_embeddings() is None:
        return False
    ids = torch.zeros(1, 2, dtype=torch.long, device=model.device)
    query = LogprobQuery(torch.ones(2, device=model.device), ids.new_zeros(2, 1))
    training = model.training
    model.eval()
    try:
        return _through_head(model, query, LOGITS_AT_ONCE, {"input_ids": ids, "use_cache": False})[
            1
        ]
    finally:
        model.train(training)


def _through_head(
    model: PreTrainedModel, query: LogprobQuery, at_once: int, inputs: dict[str, Any]
) -> tuple[Tensor, bool]:
    """Returns (the result of `_in_chunks`, whether the model returned that tensor unchanged)."""
    head = model.get_output_embeddings()
    layer, own = head.forward, "forward" in vars(head)
    outputs: list[Tensor] = []

    def chunked_forward(hidden: Tensor) -> Tensor:
        inputs_NH = hidden.flatten(0, -2)
        positions = max(1, at_once // max(1, head.weight.shape[0]))
        frozen = None if query.entropy_gradient else _frozen_matrix(head)
        outputs.append(
            _in_chunks(layer, inputs_NH, query, positions, frozen).unflatten(0, hidden.shape[:-1])
        )
        return outputs[-1]

    # Inside the model's own forward pass, where hooks that gather sharded weights have already run.
    head.forward = chunked_forward
    try:
        returned = model(**inputs).logits
    finally:
        if own:
            head.forward = layer
        else:
            del head.forward
    return returned.flatten(0, -2), len(outputs) == 1 and returned is outputs[0]


def _in_chunks(
    layer: Callable[[Tensor], Tensor],
    inputs_NH: Tensor,
    query: LogprobQuery,
    positions: int,
    frozen_VH: Tensor | None = None,
) -> Tensor:
    """Returns (N, R + 1): log-probabilities and entropy at each of the positions. `frozen_VH` is
    the matrix of a layer that is nothing else and gets no gradient."""
    if len(inputs_NH) <= positions:
        return _logprobs_and_entropy(layer, inputs_NH, query)
    parts = [slice(first, first + positions) for first in range(0, len(inputs_NH), positions)]
    if frozen_VH is not None:
        chunks = [
            _FrozenChunk.apply(inputs_NH[part], frozen_VH, layer, query.part(part))
            for part in parts
        ]
        return torch.cat(chunks)
    return torch.cat(
        [
            checkpoint(
                _logprobs_and_entropy, layer, inputs_NH[part], query.part(part),
                use_reentrant=False, preserve_rng_state=False,
            )
            for part in parts
        ]
    )  # fmt: skip


def _frozen_matrix(head: Any) -> Tensor | None:
    """Returns the matrix of a layer that is the product with it, if it gets no gradient."""
    if type(head) is not nn.Linear or head.bias is not None:
        return None
    # A sharded matrix is of another type.
    frozen = type(head.weight) is nn.Parameter and not head.weight.requires_grad
    return head.weight if frozen else None


class _FrozenChunk(torch.autograd.Function):
    """(N, R + 1) of a chunk, which keeps no logits for its gradient: the derivative of token r's
    log-probability at temperature t by the input is (row r - expected row) / t."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs_NH: Tensor,
        weight_VH: Tensor,
        layer: Callable[[Tensor], Tensor],
        query: LogprobQuery,
    ) -> Tensor:
        logprobs_NV = _log_softmax(layer(inputs_NH), query)
        shares_NV = logprobs_NV.exp()
        entropy_N1 = -(logprobs_NV * shares_NV).sum(-1, keepdim=True)
        if ctx.needs_input_grad[0]:
            expected_NH = shares_NV.to(weight_VH.dtype) @ weight_VH
            ctx.save_for_backward(expected_NH, weight_VH, query.tokens_NR, query.temperatures_N)
        return torch.cat([logprobs_NV.gather(1, query.tokens_NR), entropy_N1], dim=1)

    @staticmethod
    @once_differentiable
    # pyrefly: ignore[bad-override]  (the decorator drops the names of parameters)
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Tensor, None, None, None]:
        (gradient_NX,) = grad_outputs
        expected_NH, weight_VH, tokens_NR, temperatures_N = ctx.saved_tensors
        gradient_NR = gradient_NX[:, :-1] / temperatures_N[:, None]
        rows_NRH = weight_VH[tokens_NR].to(gradient_NR.dtype)
        of_rows_NH = torch.einsum("nr,nrh->nh", gradient_NR, rows_NRH)
        of_expected_NH = gradient_NR.sum(1, keepdim=True) * expected_NH
        return (of_rows_NH - of_expected_NH).to(weight_VH.dtype), None, None, None


def _logprobs_and_entropy(
    layer: Callable[[Tensor], Tensor], inputs_NH: Tensor, query: LogprobQuery
) -> Tensor:
    logprobs_NV = _log_softmax(layer(inputs_NH), query)
    with torch.set_grad_enabled(query.entropy_gradient and torch.is_grad_enabled()):
        entropy_N1 = -(logprobs_NV.exp() * logprobs_NV).sum(-1, keepdim=True)
    return torch.cat([logprobs_NV.gather(1, query.tokens_NR), entropy_N1], dim=1)


def _log_softmax(logits_NV: Tensor, query: LogprobQuery) -> Tensor:
    precise_NV = logits_NV.to(torch.promote_types(logits_NV.dtype, torch.float32))
    return torch.log_softmax(precise_NV / query.temperatures_N[:, None], dim=-1)
