"""Demonstrations: reference solutions of problems, as rows that a policy is shown.

A reference has passed every test: those of a file are run before training
(`engine.training.reference_check`), those of generated problems when they are made.

Invariant: a demonstration depends on problem, settings and tokenizer alone, so none has to be kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from engine.config.schema import RunConfig
from engine.policy.learner.rows import DEMONSTRATION, TrainingRow
from engine.policy.types import Generation, Request
from engine.problems.problem import Problem
from engine.training.compose.composer import Shown

RIGHT = 1.0
"""Raw score, and reward, of a demonstration."""


class Unshown(StrEnum):
    """Why a tree has no demonstration."""

    NO_REFERENCE = "no_reference"
    """Its problem comes without a solution."""
    TOO_LONG = "reference_too_long"
    """It is longer than the agent may answer (`sampling.max_new_tokens`)."""
    UNREADABLE = "reference_unreadable"
    """The agent's tokens of it are no answer that holds it: another program would be read, or
    none."""


class Encoder(Protocol):
    """Part of `engine.training.team.Team`."""

    def encode(
        self, agent: str, shown: Sequence[tuple[Request, str]]
    ) -> list[Generation | None]: ...


class Demonstrations:
    """Demonstrations of one run."""

    def __init__(self, config: RunConfig, team: Encoder, problems: Sequence[Problem]):
        self._config = config
        self._team = team
        self._problems = problems
        self._limits = {agent.name: agent.sampling.max_new_tokens for agent in config.agents}

    def __call__(self, owner: str, trees: Mapping[int, int]) -> Shown:
        """Returns the reference of each tree's problem as a whole answer to the owner's first
        prompt. `trees` are numbers of problems by tree.

        Raises:
            TeamError: the agent failed, or did not answer before the deadline.
        """
        references = {
            tree: problem
            for tree, number in trees.items()
            if (problem := self._problems[number]).reference.strip()
        }
        missing = Counter({Unshown.NO_REFERENCE: len(trees) - len(references)})
        shown = [(Request(problem), problem.reference) for problem in references.values()]
        encoded = self._team.encode(owner, shown) if shown else []
        rows: dict[int, TrainingRow] = {}
        for tree, generation in zip(references, encoded, strict=True):
            if generation is None:
                missing[Unshown.UNREADABLE] += 1
            elif len(generation.output_ids) > self._limits[owner]:
                missing[Unshown.TOO_LONG] += 1
            else:
                rows[tree] = self._row(tree, trees[tree], generation, owner)
        return Shown(rows, {str(reason): count for reason, count in missing.items() if count})

    def _row(self, tree: int, number: int, generation: Generation, owner: str) -> TrainingRow:
        columns = {
            "problems": number,
            "depths": 1,
            "scores": RIGHT,
            "lengths": len(generation.output_ids),
            "limits": self._limits[owner],
            "rewards": RIGHT,
        }
        return TrainingRow(
            prompt_ids=list(generation.prompt_ids),
            output_ids=list(generation.output_ids),
            rollout_logprobs=list(generation.logprobs),
            advantage=0.0,
            policy_version=generation.policy_version,
            temperature=generation.temperature,
            tree=tree,
            node=DEMONSTRATION,
            columns={
                name: float(columns[name])
                for name in self._config.loss.row_columns
                if name in columns
            },
        )
