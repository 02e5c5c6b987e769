"""Sampling with plain torch: batched, with a key-value cache; CPU or CUDA.

Invariant: ids and log-probabilities come from the same forward pass as the sample, and nothing is
ever encoded again from text.

Parity: the log-probability that is recorded is that of the token in the softmax of the whole
vocabulary at the sampling temperature, whatever `top_p`, `top_k` and `min_p` leave to be drawn, and
so the quantity that the learner computes. In float32 the two differ by less than 1e-4 nats for
every token; what differs is the order of sums, with a cache and without. In bfloat16 every
activation is rounded to 8 bits: less than 0.25 nats for every token, and 0.02 on the mean.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from engine.config import SamplingConfig
from engine.events import StopReason
from engine.policy.batching import left_pad, length_buckets
from engine.policy.exchange import Generation
from engine.policy.generators import Generator, Setup

BATCH_TOKENS = 16384


def make(setup: Setup) -> TorchGenerator:
    policy = setup.policy
    return TorchGenerator(setup.weights.model, policy.end_ids, policy.pad_id, setup.seed)


class TorchGenerator(Generator):
    """Samples answers from a model that the learner may change between calls."""

    def __init__(self, model: PreTrainedModel, end_ids: Sequence[int], pad_id: int, seed: int):
        self.model = model
        self.end_ids = torch.tensor(sorted(end_ids), device=model.device)
        self.pad_id = pad_id
        self.random = torch.Generator(device=model.device).manual_seed(seed)

    @torch.inference_mode()
    def generate(
        self, prompts: Sequence[list[int]], sampling: SamplingConfig, version: int
    ) -> list[Generation]:
        """One answer per prompt, in order."""
        answers: dict[int, Generation] = {}
        for rows in length_buckets([len(p) for p in prompts], BATCH_TOKENS):
            started = time.perf_counter()
            batch = [prompts[row] for row in rows]
            outputs = self._sample(batch, sampling)
            seconds = time.perf_counter() - started
            for row, (ids, logprobs, ended) in zip(rows, outputs, strict=True):
                stop = StopReason.END_OF_TEXT if ended else StopReason.MAX_TOKENS
                answers[row] = Generation(
                    prompts[row], ids, logprobs, stop, version, seconds, sampling.temperature
                )
        return [answers[row] for row in range(len(prompts))]

    def _sample(
        self, prompts: Sequence[list[int]], sampling: SamplingConfig
    ) -> list[tuple[list[int], list[float], bool]]:
        ids_BL, mask_BL = left_pad(prompts, self.pad_id, self.model.device)
        positions_BL = (mask_BL.cumsum(1) - 1).clamp(min=0)
        results: list[tuple[list[int], list[float], bool]] = [([], [], False) for _ in prompts]
        alive = list(range(len(prompts)))
        cache = None
        for _ in range(sampling.max_new_tokens):
            out = self.model(
                input_ids=ids_BL,
                attention_mask=mask_BL,
                position_ids=positions_BL,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            cache = out.past_key_values
            tokens_B, logprobs_B = self._draw(out.logits[:, -1].float(), sampling)
            ended_B = torch.isin(tokens_B, self.end_ids)
            for row, token, logprob, ended in zip(
                alive, tokens_B.tolist(), logprobs_B.tolist(), ended_B.tolist(), strict=True
            ):
                ids, logprobs, _ = results[row]
                ids.append(token)
                logprobs.append(logprob)
                results[row] = (ids, logprobs, ended)
            keep_K = (~ended_B).nonzero()[:, 0]
            if not len(keep_K):
                break
            if len(keep_K) < len(alive):
                # Finished rows leave the batch, so that the longest answer does not pay for all.
                alive = [alive[i] for i in keep_K.tolist()]
                cache.batch_select_indices(keep_K)
                mask_BL, positions_BL, tokens_B = (
                    mask_BL[keep_K],
                    positions_BL[keep_K],
                    tokens_B[keep_K],
                )
            ids_BL = tokens_B[:, None]
            mask_BL = torch.cat([mask_BL, mask_BL.new_ones(len(alive), 1)], dim=1)
            positions_BL = positions_BL[:, -1:] + 1
        return results

    def _draw(
        self, logits_BV: torch.Tensor, sampling: SamplingConfig
    ) -> tuple[torch.Tensor, torch.Tensor]:
        logprobs_BV = torch.log_softmax(logits_BV / sampling.temperature, dim=-1)
        tokens_B1 = _inverse_transform(_allowed(logprobs_BV, sampling), self.random)
        return tokens_B1[:, 0], logprobs_BV.gather(1, tokens_B1)[:, 0]


def _allowed(logprobs_BV: torch.Tensor, sampling: SamplingConfig) -> torch.Tensor:
    """The log-probs with -inf for what may not be drawn, in vLLM's order: min_p, top_k, top_p."""
    if sampling.min_p > 0:
        least_B1 = logprobs_BV.max(dim=-1, keepdim=True).values + math.log(sampling.min_p)
        logprobs_BV = logprobs_BV.masked_fill(logprobs_BV < least_B1, float("-inf"))
    if 0 < sampling.top_k < logprobs_BV.shape[-1]:
        least_B1 = logprobs_BV.topk(sampling.top_k, dim=-1).values[:, -1:]
        logprobs_BV = logprobs_BV.masked_fill(logprobs_BV < least_B1, float("-inf"))
    return _nucleus(logprobs_BV, sampling.top_p) if sampling.top_p < 1 else logprobs_BV


def _inverse_transform(logprobs_BV: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """tokens_B1: one draw per row by inversion of the cumulative distribution, of any total mass.

    One random number per row, where torch.multinomial takes one per row and token, which cost a
    sixth of the time of a small model. In double precision, so that a large vocabulary loses none.
    A token of probability 0 is never drawn: its step of the cumulative distribution has no width.
    """
    cumulative_BV = logprobs_BV.double().exp().cumsum(-1)
    uniform_B1 = torch.rand(
        (len(logprobs_BV), 1), generator=random, dtype=torch.float64, device=logprobs_BV.device
    )
    # Of numbers below 1, so below the total even after rounding: the last step is never passed.
    target_B1 = (uniform_B1 * cumulative_BV[:, -1:]).minimum(
        cumulative_BV[:, -1:].nextafter(torch.zeros_like(uniform_B1))
    )
    return torch.searchsorted(cumulative_BV, target_B1, right=True)


def _nucleus(logprobs_BV: torch.Tensor, top_p: float) -> torch.Tensor:
    """The smallest set of tokens whose share of the mass that is left reaches top_p."""
    ordered_BV, order_BV = torch.log_softmax(logprobs_BV, dim=-1).sort(dim=-1, descending=True)
    before_BV = ordered_BV.exp().cumsum(-1) - ordered_BV.exp()
    cut_BV = torch.zeros_like(before_BV, dtype=torch.bool).scatter(1, order_BV, before_BV >= top_p)
    return logprobs_BV.masked_fill(cut_BV, float("-inf"))
