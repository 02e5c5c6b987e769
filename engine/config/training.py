"""Settings of the training loop."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from engine.config.base import Whole
from engine.config.method_settings import MethodSettings
from engine.config.overlap import ExtraTrees, Interrupt, Overlap, StepsAhead


class RowLayout(StrEnum):
    """Layout of the learner's rows in a forward pass (`engine.policy.learner.layout`)."""

    AUTO = "auto"
    PADDED = "padded"
    PACKED = "packed"
    PREFIX = "prefix"


class TrainingConfig(MethodSettings):
    SECTION = "training"

    steps: Whole = Field(100, ge=1)
    """Number of steps after which training ends."""
    minutes: float | None = Field(None, gt=0)
    """If set, training stops after the step in which this many minutes have passed."""
    trees_per_step: int = Field(32, ge=1, le=65536)
    """Trees that grow concurrently in one step."""
    sampler: str = "order"
    """Which problem the next tree gets: a name in `engine.curriculum.SAMPLERS`."""
    compose: str = "all"
    """Which rows of a batch an agent learns from, and in which updates: a name in
    `engine.training.compose.COMPOSERS`."""
    batch_nodes: Whole = Field(1, ge=1)
    """An agent learns when its buffer holds this many nodes of its own and of the agents that share
    its weights; leftovers are kept."""
    max_batch_nodes: Whole | None = Field(None, ge=1)
    """Number of nodes of a batch from which further trees wait for the agent's next batch; unset,
    a batch takes all trees."""
    minibatches: Whole = Field(1, ge=1)
    """Minibatches of one batch, with one optimizer step each."""
    micro_batch_tokens: Whole = Field(16384, ge=16)
    """Maximum tokens, padding included, of one forward pass of the learner; changes memory, not the
    gradient."""
    row_layout: RowLayout = RowLayout.AUTO
    """Layout of the learner's rows: `padded` to one length, `packed` end to end, `prefix` packed
    with shared prefixes forwarded once; `auto` selects the cheapest. Changes speed, not the
    gradient."""
    recompute_activations: bool = False
    """Keep only the input of each layer and recompute its activations in the backward pass: a third
    more work, and a fraction of the memory of long answers."""
    max_staleness: Whole = Field(4, ge=0)
    """Maximum staleness in policy versions, of an answer's oldest token; older nodes are dropped
    and counted."""
    overlap: Overlap = False
    extra_trees: ExtraTrees = 0
    steps_ahead: StepsAhead = 1
    interrupt: Interrupt = False
    validate_every: Whole = Field(10, ge=1)
    """Steps between two measurements of the validation split."""
    checkpoint_every: Whole = Field(5, ge=1)
    """Steps between two checkpoints."""
    keep_checkpoints: Whole = Field(2, ge=1)
    """Number of newest checkpoints that are kept, in addition to the best by validation."""

    @model_validator(mode="after")
    def _limit_holds_a_batch(self) -> TrainingConfig:
        if self.max_batch_nodes is not None and self.max_batch_nodes < self.batch_nodes:
            raise ValueError(
                f"max_batch_nodes = {self.max_batch_nodes} is less than "
                f"batch_nodes = {self.batch_nodes}; raise it"
            )
        return self
