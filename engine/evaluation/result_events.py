"""Events of a measurement: its values per problem, and their means over problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import UNSET, UnsetType

from engine.evaluation.measurement import (
    CONTENT_CHARS,
    Measurement,
    defined_values,
    mean,
    no_program_shares,
)
from engine.evaluation.metrics import standard_error
from engine.events.vocabulary import EvaluationOutcomes, EvaluationResult, FamilyFigures
from engine.problems.identity import content_hash

TREE, SAMPLES = "tree/pass@1", "samples/pass@1"
"""Figures of a team on a budget of nodes: of its search, and of independent samples."""


def pass_at_1(agent: str) -> str:
    """Returns the name of an agent's own figure."""
    return f"pass@1/{agent}"


def outcomes_event(
    measurement: Measurement, values: Mapping[str, Sequence[float | None]], step: int, split: str
) -> EvaluationOutcomes:
    """Returns the event of figures per problem; `values` has one per problem, by figure."""
    contents = [content_hash(problem)[:CONTENT_CHARS] for problem in measurement.problems]
    by_figure = {figure: list(of_problems) for figure, of_problems in values.items()}
    return EvaluationOutcomes(step, split, contents, by_figure)


def result_event(
    measurement: Measurement,
    outcomes: EvaluationOutcomes,
    tree_nodes: int,
    seconds: float,
    families: dict[str, FamilyFigures] | UnsetType = UNSET,
) -> EvaluationResult:
    """Returns the event of the means over problems of `outcomes`, which has the figures of every
    agent and, if there was a search, of the team.

    `tree_nodes` is the budget of a tree, `seconds` the wall-clock time of the measurement.
    """
    values = outcomes.outcomes
    agents = {name: values[pass_at_1(name)] for name in measurement.single_agent}
    answers = [answer for answer, _ in measurement.all()]
    return EvaluationResult(
        step=outcomes.step,
        split=outcomes.split,
        agents={name: mean(shares) for name, shares in agents.items()},
        standard_errors={
            name: standard_error(defined_values(shares)) for name, shares in agents.items()
        },
        problems=len(measurement.problems),
        tree=mean(values[TREE]) if TREE in values else None,
        samples=mean(values[SAMPLES]) if SAMPLES in values else None,
        tree_nodes=tree_nodes if TREE in values else 0,
        rollouts=len(answers),
        tokens=sum(answer.generation.tokens for answer in answers),
        seconds=seconds,
        families=families,
        no_program=no_program_shares(answers),
    )
