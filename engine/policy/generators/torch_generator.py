"""Sampling with plain torch: continuous batching over a key-value cache; CPU or CUDA.

Rows that end leave the running batch at once and queued requests join it; equal prompts and cached
prefixes are run once.

Invariants:
- Ids and log-probabilities come from the same forward pass as the sample, and text is never
  encoded again.
- A row's tokens depend on its prompt, its settings and its seed, also where it was stopped inside
  and carried on: its random numbers go on with its tokens, and what it had is run again, so that
  nothing of the weights before is left. Other rows of the batch change
  only the last bits of sums; the same calls since `reset_prefix_cache`, in the same order, give the
  same bits.

Parity: the recorded log-probability is that of the token in the softmax of the whole vocabulary
at the sampling temperature, regardless of `top_p`, `top_k` and `min_p`, which is the quantity that
the learner computes. In float32 the two differ by less than 1e-4 nats for every token, by the order
of sums with a cache and without. In bfloat16 every activation is rounded to 8 bits: less than 0.25
nats for every token, and 0.02 on the mean. With `generator.weights` in another precision than the
learner's it is still that of the distribution from which the token was drawn; the learner's own
forward pass gives the other side of the importance weight.

Any causal model of transformers is supported. One that caches a key and a value per token and layer
(sliding windows included) is batched continuously; any other runs one batch at a time, in its own
cache.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from transformers import PreTrainedModel

from engine.config.agents import DecodingWeights, SamplingConfig
from engine.events.vocabulary import StopReason
from engine.policy.generators import Generator, GeneratorError, Setup
from engine.policy.generators.cache import Layout, layout_of
from engine.policy.generators.own_cache import OwnCacheRows
from engine.policy.generators.packed import PackedRows, Prompts
from engine.policy.generators.prefix_cache import PrefixCache
from engine.policy.generators.replica import Replica
from engine.policy.generators.rows import Order, Rows
from engine.policy.generators.sampling import draw
from engine.policy.types import Generation, PartialGeneration

BATCH_TOKENS = 16384
"""Rows times columns of the running batch, before its rows grow; also of the prefix cache."""
GPU_SHARE = 0.2
"""Share of a GPU's free memory that each of the two may take if that is more."""


def make(setup: Setup) -> TorchGenerator:
    """Raises GeneratorError: `generator.weights` needs a CPU."""
    policy, owner, model = setup.loaded, setup.agents[0], setup.weights.model
    precision = owner.generator.weights
    if precision is DecodingWeights.MODEL:
        return TorchGenerator(model, policy.end_ids, policy.pad_id, setup.seed)
    if model.device.type != "cpu":
        raise GeneratorError(
            f"agents.{owner.name}.generator.weights = {precision}: the model is on "
            f"{model.device.type}, and copies of weights are for CPUs; set it to model"
        )
    replica = Replica(precision)
    return TorchGenerator(model, policy.end_ids, policy.pad_id, setup.seed, replica)


class TorchGenerator(Generator):
    """Samples answers from a model that the learner may change between calls."""

    def __init__(
        self,
        model: PreTrainedModel,
        end_ids: Sequence[int],
        pad_id: int,
        seed: int,
        replica: Replica | None = None,
    ):
        """With `replica` it samples from a copy of the weights of the last call of `use`."""
        self.end_ids = tuple(sorted(end_ids))
        self._replica = replica
        self.pad_id = pad_id
        self.seed = seed
        self._tickets = 0
        self._waiting: deque[Order] = deque()
        self._rows = Rows()
        self._prefix_caches: dict[str, PrefixCache] = {}
        self._scope = ""
        self._model = model
        self._layout: tuple[Layout | None] | None = None
        self._batch: PackedRows | OwnCacheRows | None = None

    def use(self, model: PreTrainedModel, version: int) -> None:
        super().use(self._replica.of(model, version) if self._replica else model, version)

    @property
    def model(self) -> PreTrainedModel:
        return self._model

    @model.setter
    def model(self, model: PreTrainedModel) -> None:
        if model is not self._model:
            if self._rows.count:
                raise RuntimeError(f"{self._rows.count} rows are written by another model")
            self.reset_prefix_cache()
            self._model, self._layout = model, None

    @property
    def unfinished(self) -> int:
        """Number of requests in flight or queued."""
        return self._rows.count + len(self._waiting)

    def submit(
        self,
        prompts: Sequence[list[int]],
        sampling: Sequence[SamplingConfig],
        version: int,
        seeds: Sequence[int] | None = None,
        stop_ids: Sequence[int] = (),
    ) -> list[int]:
        """Queues requests; `ended` and `step` return the answers by these tickets.

        `stop_ids` end a row, as the model's own do.

        Raises:
            ValueError: a prompt fills the model's context.
        """
        seeds = self.row_seeds(len(prompts)) if seeds is None else seeds
        orders = [
            self._order(
                self._tickets + n,
                PartialGeneration(prompt, settings, seed, stop_ids=tuple(stop_ids)),
                version,
            )
            for n, (prompt, settings, seed) in enumerate(zip(prompts, sampling, seeds, strict=True))
        ]
        self._tickets += len(orders)
        self._waiting += orders
        return [order.ticket for order in orders]

    def take_partial(self) -> dict[int, PartialGeneration]:
        if not self.unfinished:
            return {}
        rows = self._rows
        stopped = {order.ticket: self._partial(index) for index, order in enumerate(rows.orders)}
        stopped |= {order.ticket: order.answer for order in self._waiting}
        self._waiting.clear()
        self._rows, self._batch = Rows(), None
        return stopped

    def carry_on(self, answers: Mapping[int, PartialGeneration], version: int) -> None:
        orders = [self._order(ticket, answer, version) for ticket, answer in answers.items()]
        self._waiting.extendleft(reversed(orders))  # they were requested before those that wait

    def ended(self, least: int, seconds: float) -> dict[int, Generation]:
        """Steps until `least` answers have ended or `seconds` have passed; returns them by ticket.

        Raises:
            FloatingPointError: the model's logits are NaN.
        """
        finished: dict[int, Generation] = {}
        until = time.monotonic() + seconds
        while self.unfinished and len(finished) < least:
            finished |= self.step()
            if self.observer:
                self.observer()
            if time.monotonic() > until:
                break
        return finished

    def outputs(self, tail: int) -> dict[int, tuple[int, list[int]]]:
        rows = self._rows
        return {order.ticket: rows.tail(index, tail) for index, order in enumerate(rows.orders)}

    @torch.inference_mode()
    def step(self) -> dict[int, Generation]:
        """Admits queued requests and generates one token in every row; returns the finished
        answers by ticket."""
        ended = self._admit()
        if self._rows.count:
            batch = self._batch
            last_N = torch.from_numpy(self._rows.last[: self._rows.count]).to(self.model.device)
            logits_NV = batch.step(last_N)
            indices = range(self._rows.count)
            finished = self._draw(indices, logits_NV, self._rows.next_uniforms())
            ended |= self._leave(finished)
        return ended

    @torch.inference_mode()
    def cancel(self, tickets: Iterable[int]) -> None:
        """Discards these requests, queued or in flight; finished ones are ignored."""
        unwanted = set(tickets)
        self._waiting = deque(o for o in self._waiting if o.ticket not in unwanted)
        self._remove([n for n, o in enumerate(self._rows.orders) if o.ticket in unwanted])

    def sleep(self) -> None:
        self.reset_prefix_cache()

    def reset_prefix_cache(self) -> None:
        """Empties the prefix cache; releases the batch's memory if it has no row."""
        self._prefix_caches.clear()
        if self._replica:
            self._replica.expire()
        if not self._rows.count:
            self._batch = None

    def use_cache_scope(self, scope: str = "") -> None:
        self._prefix_caches = {
            name: cache for name, cache in self._prefix_caches.items() if name in ("", scope)
        }
        self._scope = scope

    def abort(self) -> None:
        self._waiting.clear()
        self._rows, self._batch = Rows(), None
        self._prefix_caches.clear()

    def _order(self, ticket: int, answer: PartialGeneration, version: int) -> Order:
        limit = self._limit(answer.prompt_ids, answer.sampling)
        stops = tuple(sorted({*self.end_ids, *answer.stop_ids}))
        return Order(ticket, answer, limit, stops, version)

    def _limit(self, prompt: Sequence[int], sampling: SamplingConfig) -> int:
        config = self.model.config.get_text_config(decoder=True)
        context = getattr(config, "max_position_embeddings", None)
        if not context:
            return sampling.max_new_tokens
        if len(prompt) >= context:
            raise ValueError(
                f"a prompt of {len(prompt)} tokens leaves no room in the model's context of "
                f"{context}; lower sampling.max_prompt_tokens"
            )
        return min(sampling.max_new_tokens, context - len(prompt))

    def _admit(self) -> dict[int, Generation]:
        """Runs the prompts of the requests that fit, and draws their first tokens."""
        ended: dict[int, Generation] = {}
        while orders := self._fitting():
            batch, prefix_cache = (
                self._batch,
                self._prefix_caches.setdefault(self._scope, self._new_prefix_cache()),
            )
            by_prompt: dict[tuple[int, ...], list[Order]] = {}
            for order in orders:
                by_prompt.setdefault(tuple(order.answer.context), []).append(order)
            contexts = [same[0].answer.context for same in by_prompt.values()]
            for prompts in batch.run(contexts, prefix_cache):
                mine = [by_prompt[tuple(prompt)] for prompt in prompts.prompts]
                ended |= self._join(prompts, mine)
        return ended

    def _fitting(self) -> list[Order]:
        """Returns the queued requests that join now.

        A few wait for some more while others are in flight: a pass over a prompt costs as much as
        a step of the batch.
        """
        if not self._waiting:
            return []
        if self._batch is None:
            self._batch = self._new_batch()
        if self._rows.count and not self._batch.joins:
            return []
        most, rows, columns = self._most_tokens, self._rows.count, self._batch.longest
        fitting = 0
        for order in self._waiting:
            columns = max(columns, len(order.answer.context))
            if (rows + fitting + 1) * columns > most and rows + fitting:
                break
            fitting += 1
        if fitting < min(len(self._waiting), rows // 8):
            return []
        return [self._waiting.popleft() for _ in range(fitting)]

    def _join(self, prompts: Prompts, same: list[list[Order]]) -> dict[int, Generation]:
        prompt_numbers = [number for number, mine in enumerate(same) for _ in mine]
        indices = self._rows.append([order for mine in same for order in mine])
        numbers = torch.tensor(prompt_numbers, device=prompts.logits_UV.device)
        logits_NV = prompts.logits_UV.index_select(0, numbers)
        finished = self._draw(indices, logits_NV, self._rows.first_uniforms(indices))
        ended = {self._rows.orders[index].ticket: self._generation(index) for index in finished}
        if len(finished) < len(indices):
            # Rows that have ended join as well, if others do, and are removed afterwards.
            ahead = int(
                (self._rows.limits - self._rows.written)[indices.start : indices.stop].max()
            )
            self._batch.join(prompts, prompt_numbers, ahead)
            self._remove(finished)
        else:
            self._rows.remove(finished)
        return ended

    def _draw(self, indices: range, logits_NV: torch.Tensor, uniforms: np.ndarray) -> list[int]:
        """Draws one token in each of these rows; returns the indices of those that end with it."""
        device = logits_NV.device
        uniforms_N = torch.from_numpy(uniforms).to(device)
        tokens_N, logprobs_N = draw(logits_NV, self._rows.settings(indices, device), uniforms_N)
        logprobs = logprobs_N.cpu().numpy()
        if np.isnan(logprobs).any():
            raise FloatingPointError(
                "the model's logits are no numbers: its weights are damaged, or were trained to "
                "infinity; go on from an earlier checkpoint with a lower optimizer.learning_rate"
            )
        return self._rows.record(indices, tokens_N.cpu().numpy(), logprobs).tolist()

    def _leave(self, indices: list[int]) -> dict[int, Generation]:
        ended = {self._rows.orders[index].ticket: self._generation(index) for index in indices}
        self._remove(indices)
        return ended

    def _remove(self, indices: list[int]) -> None:
        if indices:
            self._batch.leave(*self._rows.remove(indices), self._rows.count)

    def _generation(self, index: int) -> Generation:
        rows, order = self._rows, self._rows.orders[index]
        ids, logprobs = rows.output(index)
        if rows.stopped(index):
            stop = StopReason.END_OF_TEXT
        elif len(ids) < order.answer.sampling.max_new_tokens:
            stop = StopReason.CONTEXT_LIMIT
        else:
            stop = StopReason.MAX_TOKENS
        seconds = time.perf_counter() - rows.started[index]
        return order.answer.ended(order.version, ids, logprobs, stop, seconds)

    def _partial(self, index: int) -> PartialGeneration:
        rows, order = self._rows, self._rows.orders[index]
        ids, logprobs = rows.output(index)
        seconds = time.perf_counter() - rows.started[index]
        return order.answer.longer(order.version, ids, logprobs, seconds)

    def _new_batch(self) -> PackedRows | OwnCacheRows:
        if self._layout is None:
            self._layout = (layout_of(self.model, self.pad_id),)
        (layout,) = self._layout
        self._most_tokens = BATCH_TOKENS
        if layout is None:
            return OwnCacheRows(self.model, self.pad_id)
        if self.model.device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(self.model.device)
            fits = int(GPU_SHARE * free / layout.bytes_per_token)
            self._most_tokens = max(BATCH_TOKENS, fits)
        return PackedRows(self.model, layout, self.pad_id, BATCH_TOKENS)

    def _new_prefix_cache(self) -> PrefixCache:
        return PrefixCache(self._most_tokens)
