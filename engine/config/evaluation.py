"""Settings of evaluations."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from engine.config.method_settings import MethodSettings


class PublicScore(StrEnum):
    """Score of a program by its public tests: the share that passes, or 1 if all pass else 0."""

    BINARY = "binary"
    FRACTION = "fraction"


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
