"""Heads of a policy's losses in its learner: what they read of a micro-batch, and their training.

Invariants:
- A head is whole on every rank, and its gradient is the sum over all ranks, so all hold the same.
- Heads are made at the first update by their loss; a run without such a loss has none, in its
  checkpoints too.
- They have an optimizer of their own, whose gradient is clipped by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from engine.config.agents import AgentConfig
from engine.config.heads import Reads
from engine.config.loss import LossConfig
from engine.policy.learner.forward import PackedRows, PaddedRows
from engine.policy.learner.rank_group import RankGroup
from engine.policy.models.heads import head_outputs, new_head
from engine.policy.models.weights import Weights


def read_states(states_NTH: Tensor, rows: PaddedRows | PackedRows, reads: Reads) -> Tensor:
    """Returns the states that a head reads of a forward pass over rows: (N, L, H) before each
    output token, or (N, H), the mean over each prompt, in float32 or finer."""
    if reads is Reads.TOKENS:
        if isinstance(rows, PackedRows):
            return states_NTH[0][rows.scored_Q[rows.answers_NL]]
        width = rows.outputs_NL.shape[1]
        return states_NTH[:, -width - 1 : -1]
    precise = torch.promote_types(states_NTH.dtype, torch.float32)
    if isinstance(rows, PackedRows):
        return _shares(rows).to(states_NTH.device, precise) @ states_NTH[0].to(precise)
    prompts_NP = rows.attention[:, : rows.ids.shape[1] - rows.outputs_NL.shape[1]].bool()
    states_NPH = states_NTH[:, : prompts_NP.shape[1]].to(precise)
    # What a model gives at padding has no meaning, and may be NaN.
    sums_NH = states_NPH.where(prompts_NP[..., None], 0.0).sum(1)
    return sums_NH / prompts_NP.sum(1, keepdim=True)


def _shares(rows: PackedRows) -> Tensor:
    """Returns (N, T): 1 / its tokens at each token of a row's prompt, else 0."""
    shares_NT = np.zeros((len(rows.rows), rows.ids_1T.shape[1]))
    for own_T, row, path in zip(shares_NT, rows.rows, rows.paths, strict=True):
        own_T[path[: len(row.prompt_ids)]] = 1.0 / len(row.prompt_ids)
    return torch.from_numpy(shares_NT)


class LossHeads:
    """The heads of one policy loss, and their optimizer."""

    def __init__(self, loss: LossConfig, weights: Weights, agent: AgentConfig):
        options = agent.optimizer
        self.loss = loss
        self.rate = loss.options("policy").head_learning_rate or options.learning_rate
        """Peak learning rate."""
        dtype = torch.promote_types(weights.dtype, torch.float32)
        self.modules: dict[str, nn.Module] = {
            name: new_head(head, weights.model, dtype) for name, head in loss.heads.items()
        }
        self.optimizer = torch.optim.AdamW(
            self.parameters(),
            lr=self.rate,
            betas=(options.beta1, options.beta2),
            eps=options.epsilon,
            weight_decay=options.weight_decay,
        )

    def parameters(self) -> list[nn.Parameter]:
        """Returns the parameters of all heads, in a fixed order."""
        return [one for module in self.modules.values() for one in module.parameters()]

    def read(self, states_NTH: Tensor, rows: PaddedRows | PackedRows) -> dict[str, Tensor]:
        """Returns each head's numbers of a micro-batch, (N, L) or (N,), with gradient."""
        outputs = {}
        for name, head in self.loss.heads.items():
            states = read_states(states_NTH, rows, head.reads)
            states = states if head.into_model else states.detach()
            outputs[name] = head_outputs(self.modules[name], states)
        return outputs

    def clip(self, rank_group: RankGroup, limit: float) -> float:
        """Sums the gradients over all ranks and clips them; returns their norm before that."""
        rank_group.sum_gradients(self.parameters())
        return torch.nn.utils.clip_grad_norm_(self.parameters(), limit).item()

    def step(self, factor: float) -> None:
        """Runs an optimizer step at that share of the peak rate."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate * factor
        self.optimizer.step()

    def state(self) -> dict[str, Any]:
        modules = {name: module.state_dict() for name, module in self.modules.items()}
        return {"modules": modules, "optimizer": self.optimizer.state_dict()["state"]}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Raises ValueError if it is of other heads."""
        saved = {name: _shapes(module) for name, module in state["modules"].items()}
        if saved != {name: _shapes(one.state_dict()) for name, one in self.modules.items()}:
            raise ValueError(
                f"loss.policy = {self.loss.policy}: the heads of the checkpoint, "
                f"{', '.join(saved)}, are not those of the loss; go on with the version that wrote "
                "it, or start a new run"
            )
        for name, module in self.modules.items():
            module.load_state_dict(state["modules"][name])
        groups = self.optimizer.state_dict()["param_groups"]  # this run's own settings
        self.optimizer.load_state_dict({"state": state["optimizer"], "param_groups": groups})


class HeadsByLoss:
    """All heads of a policy, by the name of their loss."""

    def __init__(self, weights: Weights, agent: AgentConfig):
        self._weights, self._agent = weights, agent
        self._made: dict[str, LossHeads] = {}
        self._saved: dict[str, Any] = {}
        """States of those that no update has used since a resume."""

    def of(self, loss: LossConfig) -> LossHeads | None:
        """Returns the heads of a loss, made at the first call; None if it has none."""
        if not loss.heads:
            return None
        if loss.policy not in self._made:
            heads = LossHeads(loss, self._weights, self._agent)
            if loss.policy in self._saved:
                heads.load_state(self._saved[loss.policy])
            self._made[loss.policy] = heads
        return self._made[loss.policy]

    def state(self) -> dict[str, Any]:
        """Returns what a resume needs, on any number of ranks, under `heads`; nothing if there are
        no heads."""
        made = {name: heads.state() for name, heads in self._made.items()}
        return {"heads": {**self._saved, **made}} if made or self._saved else {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes what `state` gave, out of the whole state of a learner."""
        self._made, self._saved = {}, dict(state.get("heads", {}))


def _shapes(module: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: value.shape for name, value in module.items()}
