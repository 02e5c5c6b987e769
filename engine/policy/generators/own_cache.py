"""The rows of a batch in the model's own cache, for models that cache something else than one key
and one value per token and layer: states, compressed or chunked keys.

A batch starts together, prompts flush right; ended rows leave it, none joins, and only equal
prompts are shared.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from engine.policy.batching import left_pad
from engine.policy.generators.packed import Prompts
from engine.policy.generators.prefix_cache import PrefixCache


class OwnCacheRows:
    """The cache of a batch, of any type."""

    joins = False
    longest = 0

    def __init__(self, model: PreTrainedModel, pad_id: int):
        self.model, self.pad_id = model, pad_id
        takes = inspect.signature(model.forward).parameters
        self.name = "cache_params" if "cache_params" in takes else "past_key_values"

    def run(self, prompts: Sequence[list[int]], prefix_cache: PrefixCache) -> list[Prompts]:
        """Runs different prompts as one batch, which replaces the previous one."""
        self.cache = None
        ids_NL, self.mask_NL = left_pad(prompts, self.pad_id, self.model.device)
        self.positions_NL = (self.mask_NL.cumsum(1) - 1).clamp(min=0)
        logits_UV = self._forward(ids_NL)
        return [Prompts(list(prompts), None, logits_UV)]

    def join(self, prompts: Prompts, index: Sequence[int], tokens_ahead: int) -> None:
        """Makes one row for each index of a prompt."""
        self._select(index)

    def leave(self, targets: Sequence[int], sources: Sequence[int], rows: int) -> None:
        """Moves rows from `sources` to the indices of ended ones, `targets`; `rows` remain."""
        order = dict(zip(targets, sources, strict=True))
        self._select([order.get(row, row) for row in range(rows)])

    def step(self, tokens_N: Tensor) -> Tensor:
        """Returns logits_NV after one more token in every row."""
        self.mask_NL = torch.cat([self.mask_NL, self.mask_NL.new_ones(len(tokens_N), 1)], dim=1)
        self.positions_NL = self.positions_NL[:, -1:] + 1
        return self._forward(tokens_N[:, None])

    def _forward(self, ids_NL: Tensor) -> Tensor:
        # Nothing is padded after the prompt, and models with states alone take no mask of the past.
        states = self.name == "cache_params" and self.cache is not None
        out = self.model(
            input_ids=ids_NL,
            attention_mask=None if states else self.mask_NL,
            position_ids=self.positions_NL,
            use_cache=True,
            logits_to_keep=1,
            **{self.name: self.cache},
        )
        self.cache = out[self.name]
        return out.logits[:, -1]

    def _select(self, rows: Sequence[int]) -> None:
        index_N = torch.tensor(rows, dtype=torch.long, device=self.model.device)
        self.mask_NL, self.positions_NL = self.mask_NL[index_N], self.positions_NL[index_N]
        if rows:
            self.cache.reorder_cache(index_N)
