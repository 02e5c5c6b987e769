"""Figures of an evaluation by family of problem."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec import UNSET, UnsetType

from engine.evaluation.measurement import defined_values, mean
from engine.evaluation.metrics import standard_error
from engine.events.vocabulary import FamilyFigures
from engine.problems.generator.underspecified import family_of
from engine.problems.problem import Problem


def by_family(
    problems: Sequence[Problem],
    agents: Mapping[str, Sequence[float | None]],
    by_problem: Mapping[str, Sequence[float | None]],
) -> dict[str, FamilyFigures] | UnsetType:
    """Returns the figures of each family; UNSET where all problems are of one.

    `agents` has each agent's Pass@1 per problem; `by_problem` that of the team, if it searched, as
    `tree/pass@1` and `samples/pass@1`. A figure leaves out problems without a value.
    """
    rows: dict[str, list[int]] = defaultdict(list)
    for row, problem in enumerate(problems):
        rows[family_of(problem.id)].append(row)
    if len(rows) < 2:
        return UNSET

    def of(values: Sequence[float | None], family: str) -> list[float | None]:
        return [values[row] for row in rows[family]]

    def team(figure: str, family: str) -> float | None:
        return mean(of(by_problem[figure], family)) if figure in by_problem else None

    return {
        family: FamilyFigures(
            problems=len(rows[family]),
            agents={name: mean(of(values, family)) for name, values in agents.items()},
            standard_errors={
                name: standard_error(defined_values(of(values, family)))
                for name, values in agents.items()
            },
            tree=team("tree/pass@1", family),
            samples=team("samples/pass@1", family),
        )
        for family in sorted(rows)
    }
