"""The learner of one policy: loss, gradient, optimizer.

Invariants:
- A batch gives the same gradient in any division into micro-batches, in any layout and on any
  number of ranks: sums and denominators are those of the whole batch.
- log pi_old is computed with the weights at the start of the update, before its first step.
- The reference never changes: it is the starting policy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from engine.config.agents import AgentConfig
from engine.config.loss import LossConfig
from engine.config.training import TrainingConfig
from engine.losses.minibatch import OverMinibatch, over_minibatch
from engine.losses.terms import Rows, masked_log_ratio
from engine.losses.total import count_units, total_loss
from engine.policy.learner.figure_sums import FigureSums
from engine.policy.learner.forward import (
    PackedRows,
    PaddedRows,
    inputs_of,
    output_logprobs,
    pad_rows,
)
from engine.policy.learner.heads import HeadsByLoss, LossHeads
from engine.policy.learner.layout import Layout, MicroBatches
from engine.policy.learner.minibatches import compared_columns, split, taken
from engine.policy.learner.objective import DEFAULT, Objective
from engine.policy.learner.optimizers import Optimizers, schedule_factor
from engine.policy.learner.rank_group import RankGroup
from engine.policy.learner.recompute import recompute_activations
from engine.policy.learner.rows import TokenStats, TrainingRow, UpdateStats
from engine.policy.learner.token_stats import token_stats
from engine.policy.models.chunked_logits import ends_with_head
from engine.policy.models.heads import captured
from engine.policy.models.precision import MasterWeights
from engine.policy.models.weights import Weights
from engine.resources.shapes import logits_at_once


@dataclass
class MicroBatch:
    rows: PaddedRows | PackedRows
    old_logprobs_NL: Tensor | None = None
    old_entropies_NL: Tensor | None = None
    reference_logprobs_NL: Tensor | None = None
    compared: dict[str, Tensor] = field(default_factory=dict)
    """Columns that the loss computed over the minibatch, (N,) each."""


class Learner:
    """Owns the weights' optimizer, schedule and version; changes the weights in place.

    `agent` is the owner of the weights, whose optimizer settings apply.
    """

    def __init__(
        self,
        weights: Weights,
        pad_id: int,
        agent: AgentConfig,
        loss: LossConfig,
        training: TrainingConfig,
        rank_group: RankGroup | None = None,
    ):
        self.rank_group = rank_group or RankGroup()
        self.weights = weights
        self.pad_id = pad_id
        self.agent = agent
        self.loss = self._configured = loss
        self.training = training
        self.version = 0
        self.progress = 0.0
        """Share of the run that is done, from 0 to 1; drives the schedule."""
        model = weights.model
        self.logits_at_once = logits_at_once(
            model.config.get_text_config().vocab_size, on_cpu=model.device.type == "cpu"
        )
        """Most logits that exist at a time; changes memory, not the gradient."""
        self._layout: Layout | None = None
        self._at_once: int | None = None
        self.precise = MasterWeights(weights.trained())
        self.optimizers = Optimizers(weights, self.precise.masters, agent.optimizer)
        self.heads = HeadsByLoss(weights, agent)

    def update(
        self, rows: Sequence[TrainingRow], progress: float, objective: Objective = DEFAULT
    ) -> UpdateStats:
        """Updates the weights from a batch of the policy's own nodes and demonstrations.

        `progress` is the share of the run that is done. Nodes older than `max_staleness` policy
        versions are dropped and counted. `objective` says what this update minimises.

        Raises:
            FloatingPointError: the gradient is not finite; that step does not change the weights.
        """
        self.progress = progress
        self.loss = self._configured.by(objective.loss) if objective.loss else self._configured
        fresh = self._fresh(rows)
        nodes = [row for row in fresh if not row.is_demonstration]
        lag = sum(row.lag(self.version) for row in nodes) / max(1, len(nodes))
        rate = self.optimizers.use(objective.optimizer, progress)
        cut = self._cut(fresh)
        (forwarded,) = self.rank_group.sum([sum(one.forwarded for one in cut)])
        figures, seen = self._steps(self._together(cut))
        return UpdateStats(
            **figures.shared,
            version=self.version,
            nodes=len(nodes),
            gradient_norm=figures.gradient_norm,
            learning_rate=rate,
            lag=lag,
            stale_nodes=len(rows) - len(fresh),
            layout=" and ".join(sorted({one.layout for one in cut})),
            layout_reason=self.layout.reason,
            row_tokens=sum(len(inputs_of(row)) for row in fresh),
            forwarded_tokens=int(forwarded),
            tokens=tuple(seen),
            figures=figures.own,
        )

    def _fresh(self, rows: Sequence[TrainingRow]) -> list[TrainingRow]:
        """Returns the demonstrations, and the nodes of at most `max_staleness` versions ago."""
        oldest = self.version - self.training.max_staleness
        return [row for row in rows if row.is_demonstration or row.policy_version >= oldest]

    def _steps(self, batches: list[list[MicroBatch]]) -> tuple[FigureSums, list[TokenStats]]:
        """Runs one optimizer step per minibatch; returns their mean figures and the statistics of
        their tokens. The weights get a new version if there was a step."""
        if len(batches) > 1:
            self._score_old(batches)
        figures = FigureSums()
        seen: list[TokenStats] = []
        for number, batch in enumerate(batches):
            with self.weights.current() as model:
                if hook := over_minibatch(self.loss):
                    self._compare_rows(hook, model, batch, moved=number > 0)
                figures.add_step(self._step(model, batch, seen), len(batches))
        if batches:
            self.version += 1
        return figures, seen

    def _cut(self, rows: Sequence[TrainingRow]) -> list[MicroBatches]:
        """Returns this rank's part of each minibatch."""
        parts = split(
            rows, self.training.minibatches, whole_trees=over_minibatch(self.loss) is not None
        )
        return [self.layout.micro_batches(self.rank_group.share(part)) for part in parts]

    def _together(self, cut: list[MicroBatches]) -> list[list[MicroBatch]]:
        """Pads each minibatch with empty passes, to the same number of passes on every rank."""
        most = self.rank_group.most([len(one.parts) for one in cut])
        return [
            [MicroBatch(rows) for rows in [*one.parts, *[self._nothing()] * (n - len(one.parts))]]
            for one, n in zip(cut, most, strict=True)
        ]

    @property
    def layout(self) -> Layout:
        """The layout of rows for the model; determined by trial passes at the first use."""
        if self._layout is None:
            plan = self.training
            with self.weights.current() as model:
                if plan.recompute_activations:
                    recompute_activations(model)
                # On all ranks together: both run forward passes.
                self._at_once = self.logits_at_once if ends_with_head(model) else None
                self._layout = Layout(
                    model, plan.row_layout, plan.micro_batch_tokens, self.pad_id, self.weights.dtype
                )
        return self._layout

    def state(self) -> dict[str, Any]:
        """Returns what a resume needs besides the weights."""
        return {
            **self.optimizers.state(),
            "version": self.version,
            "masters": self.precise.state(),
            **self.heads.state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        self.optimizers.load_state(state)
        self.version = state["version"]
        self.precise.load_state(state["masters"])
        self.heads.load_state(state)

    def _step(
        self, model: PreTrainedModel, batch: list[MicroBatch], seen: list[TokenStats]
    ) -> FigureSums:
        """Runs one optimizer step; appends its token statistics to `seen`."""
        model.train()
        self.optimizers.forget_gradients()
        heads = self.heads.of(self.loss)
        if heads:
            heads.optimizer.zero_grad(set_to_none=True)
        figures = self._gradients(model, batch, heads, seen)
        norm = self.optimizers.clip()
        if not math.isfinite(norm):
            raise FloatingPointError(
                f"agent {self.agent.name}: the gradient norm is {norm} at version {self.version}; "
                "lower optimizer.learning_rate, or look at the mismatch with the generator"
            )
        if heads:
            self._step_heads(heads)
        self.optimizers.step()
        self.precise.round()
        model.eval()
        figures.add_ranks(self.rank_group.sum)
        figures.gradient_norm = norm
        return figures

    def _gradients(
        self,
        model: PreTrainedModel,
        batch: list[MicroBatch],
        heads: LossHeads | None,
        seen: list[TokenStats],
    ) -> FigureSums:
        """Adds up the gradients of a minibatch; returns this rank's shares of its figures."""
        masks = [micro.rows.mask_NL for micro in batch]
        shown = [micro.rows.demonstrations_N for micro in batch]
        units = count_units(masks, self.loss, self.rank_group.sum, shown)
        figures = FigureSums()
        for micro in batch:
            self._score_reference(micro)
            logprobs_NL, entropy_NL, outputs = self._forward(model, micro, heads)
            rows = self._loss_rows(micro, logprobs_NL, outputs)
            share = total_loss(logprobs_NL, rows, units, self.loss, entropy_NL)
            share.loss.backward()
            self.precise.take_gradients()
            seen += token_stats(micro.rows, logprobs_NL.detach(), entropy_NL.detach())
            entropy = (entropy_NL.detach() * micro.rows.mask_NL).sum()
            figures.add_micro_batch(share, float(entropy) / units.tokens)
        return figures

    def _forward(
        self, model: PreTrainedModel, micro: MicroBatch, heads: LossHeads | None
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Returns (logprobs_NL, entropy_NL, what each head gives), with gradient."""
        with captured(model) if heads else nullcontext([]) as seen:
            logprobs_NL, entropy_NL = output_logprobs(
                model, micro.rows, self.loss.entropy_coefficient > 0, self._at_once
            )
        return logprobs_NL, entropy_NL, heads.read(seen[0], micro.rows) if heads else {}

    def _step_heads(self, heads: LossHeads) -> None:
        settings = self.optimizers.settings
        norm = heads.clip(self.rank_group, settings.max_gradient_norm)
        if not math.isfinite(norm):
            raise FloatingPointError(
                f"agent {self.agent.name}: the gradient norm of the heads of loss.policy = "
                f"{self.loss.policy} is {norm} at version {self.version}; lower "
                f"loss.{self.loss.policy}.head_learning_rate"
            )
        heads.step(schedule_factor(settings, self.progress))

    def _loss_rows(
        self, micro: MicroBatch, logprobs_NL: Tensor, outputs: dict[str, Tensor]
    ) -> Rows:
        # With one optimizer step per update the current weights are the old ones.
        old_NL = (
            micro.old_logprobs_NL if micro.old_logprobs_NL is not None else logprobs_NL.detach()
        )
        return Rows(
            old_logprobs_NL=old_NL,
            rollout_logprobs_NL=micro.rows.rollout_logprobs_NL,
            advantages_NL=micro.rows.advantages_NL,
            mask_NL=micro.rows.mask_NL,
            reference_logprobs_NL=micro.reference_logprobs_NL,
            old_entropies_NL=micro.old_entropies_NL,
            columns=micro.rows.columns | micro.compared,
            demonstrations_N=micro.rows.demonstrations_N,
            heads=outputs,
        )

    def _nothing(self) -> PaddedRows:
        """Returns a fully masked row, for a rank that has fewer passes than another."""
        columns = dict.fromkeys(self.loss.row_columns, 0.0)
        row = TrainingRow([self.pad_id], [self.pad_id], [0.0], 0.0, 0, columns=columns)
        padded = pad_rows([row], self.pad_id, self.weights.model.device)
        return replace(padded, rows=(), mask_NL=torch.zeros_like(padded.mask_NL))

    def _scored(self, model: PreTrainedModel, micro: MicroBatch) -> tuple[Tensor, Tensor]:
        return output_logprobs(model, micro.rows, at_once=self._at_once)

    @torch.no_grad()
    def _score_old(self, batches: list[list[MicroBatch]]) -> None:
        with self.weights.current() as model:
            for micro in (micro for batch in batches for micro in batch):
                micro.old_logprobs_NL, entropies_NL = self._scored(model, micro)
                if "entropies" in self.loss.needs:
                    micro.old_entropies_NL = entropies_NL

    @torch.no_grad()
    def _score_reference(self, micro: MicroBatch) -> None:
        if self.loss.reads_reference:
            with self.weights.starting() as model:
                micro.reference_logprobs_NL, _ = self._scored(model, micro)

    @torch.no_grad()
    def _compare_rows(
        self, hook: OverMinibatch, model: PreTrainedModel, batch: list[MicroBatch], *, moved: bool
    ) -> None:
        """Adds the columns that the loss computes over a minibatch. `moved` says that the weights
        are no longer those of the update's start, from which rows drift."""
        drifts: list[float] = []
        for micro in batch:
            count = len(micro.rows.rows)
            drift_N = torch.zeros(count)
            if moved:
                logprobs_NL, _ = self._scored(model, micro)
                assert micro.old_logprobs_NL is not None
                old_NL = micro.old_logprobs_NL.double()
                gaps_NL = masked_log_ratio(logprobs_NL.double(), old_NL, micro.rows.mask_NL)
                drift_N = gaps_NL.sum(-1)[:count]
            drifts += drift_N.tolist()
        rows = [row for micro in batch for row in micro.rows.rows]
        columns = compared_columns(hook, rows, drifts, self.loss, self.rank_group)
        for micro in batch:
            micro.compared, columns = taken(columns, len(micro.rows.rows), micro.rows.mask_NL)
