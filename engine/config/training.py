"""Settings of the training loop and of its evaluations."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from engine.config.base import Whole
from engine.config.method_settings import MethodSettings


class RowLayout(StrEnum):
    """Layout of the learner's rows in a forward pass (`engine.policy.learner.layout`)."""

    AUTO = "auto"
    PADDED = "padded"
    PACKED = "packed"
    PREFIX = "prefix"


class PublicScore(StrEnum):
    """Score of a program by its public tests: the share that passes, or 1 if all pass else 0."""

    BINARY = "binary"
    FRACTION = "fraction"


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
    overlap: bool = False
    """Learn from a step while the next one is generated, with weights one update older. The overlap
    ends at every validation and checkpoint. Needs `compute.generators_per_agent`."""
    extra_trees: Whole = Field(0, ge=0, lt=65536)
    """Trees that grow in addition to those of a step. A step ends when `trees_per_step` are
    complete; the others are carried over, each node with the version that wrote it."""
    steps_ahead: Whole = Field(1, ge=1, le=2)
    """With `overlap`, number of steps by which generation may be ahead of the weights. 1: a step
    begins once the update of the last but one has ended. 2: it begins as trees of the step before
    complete, with weights one update older still, and generators never wait for a learner."""
    interrupt: bool = False
    """Stop the answers in flight when new weights arrive, and carry them on with these; without,
    the weights wait until they are complete. Each token keeps the log-probability of the version
    that sampled it, `max_staleness` counts from the oldest. Needs `overlap` or `extra_trees`."""
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


class EvaluationConfig(MethodSettings):
    SECTION = "evaluation"

    temperature: float = Field(1.0, gt=0, le=5)
    """Softmax temperature of measured answers, in evaluations and in a training's validation; the
    agents' `sampling.temperature` does not apply there."""
    samples_per_problem: int = Field(1, ge=1, le=256)
    """Samples per problem for Pass@1; more only reduce its error."""
    tree_nodes: int = Field(8, ge=1, le=5000)
    """Nodes of the team's search, and number of the independent samples it is compared with."""
    nodes_in_flight: int = Field(2, ge=1, le=256)
    """Maximum number of such a tree's nodes in flight."""
    score: PublicScore = PublicScore.FRACTION
    """Score of a node by its public tests, which guides the search of an evaluation and selects
    its answer: the share that passes, or 1 if all pass else 0, as for the papers' Pass@1(tree)."""
    gauges: tuple[str, ...] = Field((), max_length=32)
    """Gauges of a training: numbers that are read from its events after every step, and are charts
    on its page. Names in `engine.evaluation.gauges.GAUGES`."""

    @model_validator(mode="after")
    def _gauges_differ(self) -> EvaluationConfig:
        if len(set(self.gauges)) < len(self.gauges):
            raise ValueError(f"gauges = {list(self.gauges)}: names must differ; write each once")
        return self
