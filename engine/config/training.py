"""Settings of the training loop and of its evaluations."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from engine.config.base import Settings, Whole


class RowLayout(StrEnum):
    """How the learner lays rows out in a forward pass (`engine.policy.learner.layout`)."""

    AUTO = "auto"
    PADDED = "padded"
    PACKED = "packed"
    PREFIX = "prefix"


class TrainingConfig(Settings):
    steps: Whole = Field(100, ge=1)
    """Training ends after so many steps."""
    minutes: float | None = Field(None, gt=0)
    """Training stops after the step in which this many minutes have passed, if set."""
    trees_per_step: int = Field(32, ge=1, le=65536)
    """Trees that advance together in one step."""
    batch_nodes: Whole = Field(1, ge=1)
    """An agent learns when its buffer holds this many of its own nodes, or of all that share its
    weights; leftovers are kept."""
    max_batch_nodes: Whole | None = Field(None, ge=1)
    """Trees beyond this many nodes wait for the agent's next batch; unset takes all of them."""
    minibatches: Whole = Field(1, ge=1)
    """Optimizer steps into which one batch is divided."""
    micro_batch_tokens: Whole = Field(16384, ge=16)
    """Most tokens, padding too, in one forward pass of the learner; changes memory, not the
    gradient."""
    row_layout: RowLayout = RowLayout.AUTO
    """How the learner lays rows out: `padded` beside one another, `packed` behind one another,
    `prefix` also forwards once what rows begin with alike; `auto` takes the cheapest. Changes
    speed, not the gradient."""
    recompute_activations: bool = False
    """Keep only what goes into each layer, and compute what is in it again for the gradient: a
    third more work, and a fraction of the memory that long answers take."""
    max_staleness: Whole = Field(4, ge=0)
    """Nodes written more than this many policy versions ago are dropped and counted."""
    overlap: bool = False
    """Learn from a step while the next one is written, by weights one update older. It ends at
    every validation and checkpoint. Needs `compute.generators_per_agent`."""
    extra_trees: Whole = Field(0, ge=0, lt=65536)
    """Trees that grow beside those of a step. A step ends when `trees_per_step` are whole; the
    others go on in the next one, each node with the version that wrote it."""
    validate_every: Whole = Field(10, ge=1)
    """Steps from one measurement of the validation split to the next."""
    checkpoint_every: Whole = Field(5, ge=1)
    """Steps from one checkpoint to the next."""
    keep_checkpoints: Whole = Field(2, ge=1)
    """Newest checkpoints that are kept; so is the best by validation."""

    @model_validator(mode="after")
    def _limit_holds_a_batch(self) -> TrainingConfig:
        if self.max_batch_nodes is not None and self.max_batch_nodes < self.batch_nodes:
            raise ValueError(
                f"max_batch_nodes = {self.max_batch_nodes} is less than "
                f"batch_nodes = {self.batch_nodes}; raise it"
            )
        return self


class EvaluationConfig(Settings):
    temperature: float = Field(1.0, gt=0, le=5)
    """Softmax temperature of the answers that are measured."""
    samples_per_problem: int = Field(1, ge=1, le=256)
    """Samples behind one Pass@1; more of them only narrow its error."""
    tree_nodes: int = Field(8, ge=1, le=5000)
    """Budget of the team's search, and of the independent samples it is compared with."""
    nodes_in_flight: int = Field(2, ge=1, le=256)
    """Expansions of one of these trees that may be under way at once."""
