"""Measurement of a team: each agent alone, its search, and independent samples on the same budget.

Public tests guide, private tests judge (docs/algorithm.md, sections 4 and 9). Invariants: nothing
here changes weights or enters a buffer; the actors of a run and a local team without a trainer are
measured by the same functions.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

from msgspec import UNSET, UnsetType

from engine.config.evaluation import PublicScore
from engine.config.schema import RunConfig
from engine.environments.types import Outcome
from engine.events.states import NoProgram
from engine.inference.selection import Candidate, Scorer, rewards_of, select_answer, tree_answer
from engine.policy.types import Answer, Request
from engine.problems.problem import Problem
from engine.rollout.forest import Forest, GrowingTree, public_judge, public_score
from engine.rollout.types import Judged

CONTENT_CHARS = 16
"""Characters kept of a problem's hash: enough to distinguish millions of problems."""


class Bench(Protocol):
    """Interface of a team that generates and verifies; `part` names the purpose of the answers."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the agents."""
        ...

    def samples(
        self, part: str, requests: Sequence[Request], temperature: float
    ) -> dict[str, list[Judged]]:
        """Returns one judged answer of every agent to every request, by agent, in the order of the
        requests."""
        ...

    def grow(self, part: str, forest: Forest, temperature: float) -> None:
        """Grows every tree to its end."""
        ...


@dataclass
class Measurement:
    """All answers of a measurement, one row per problem, in the order of the problems."""

    problems: Sequence[Problem]
    single_agent: dict[str, list[list[Judged]]]
    """Independent samples of each agent: rows of `samples_per_problem`."""
    trees: list[GrowingTree] = field(default_factory=list)
    team_samples: list[list[Judged]] = field(default_factory=list)
    """Independent samples on the trees' budget, distributed among the agents in turn."""
    rewards: list[dict[int, float]] = field(default_factory=list)
    """Scores of each tree's nodes by the reward model, if there is one."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall-clock seconds of `single_agent`, `tree` and `samples`."""
    score: PublicScore = PublicScore.FRACTION
    """How public tests score an answer; the answer with the best score is selected."""

    def grown(self) -> list[list[Judged]]:
        """Returns the trees' answers in the order of creation."""
        return [
            [
                (node.answer, node.verification)
                for _, node in sorted(tree.written.items())
                if node.is_answer
            ]
            for tree in self.trees
        ]

    def solved_by_tree(self) -> list[float | None]:
        """Returns Pass@1(tree) per problem: whether the answer that the search selects is right."""
        solved: list[float | None] = []
        for tree, rewards in zip(self.trees, self.rewards, strict=True):
            chosen = tree_answer(tree, rewards)
            right = None if chosen is None else tree.written[chosen].verification.passed
            solved.append(None if right is None else float(right))
        return solved

    def solved_by_samples(self) -> list[float | None]:
        """Returns the same for the answer selected from as many independent samples."""
        solved: list[float | None] = []
        judge = public_judge(self.score)
        for row in self.team_samples:
            chosen = select_answer(Candidate(n, judge(v)) for n, (_, v) in enumerate(row))
            solved.append(None if chosen is None else float(row[chosen.node][1].passed))
        return solved

    def all(self) -> Iterator[Judged]:
        """Returns an iterator over all answers."""
        single_agent = (pair for rows in self.single_agent.values() for row in rows for pair in row)
        return chain(single_agent, chain(*self.grown()), chain(*self.team_samples))


def measure(
    bench: Bench,
    config: RunConfig,
    problems: Sequence[Problem],
    seed: list[int],
    *,
    search: bool,
    scorer: Scorer | None = None,
) -> Measurement:
    """Generates and judges the answers for all figures; with `search` also trees and as many
    samples."""
    options = config.evaluation
    seconds: dict[str, float] = {}
    with _timed(seconds, "alone"):
        single_agent = _rows(bench, "alone", config, problems, options.samples_per_problem)
    measurement = Measurement(problems, single_agent, seconds=seconds, score=options.score)
    if search:
        with _timed(seconds, "tree"):
            measurement.trees = _trees(bench, config, problems, seed)
            measurement.rewards = rewards_of(measurement.trees, scorer)
        with _timed(seconds, "samples"):
            measurement.team_samples = _team_samples(bench, config, problems)
    return measurement


def samples_planned(config: RunConfig, problems: int, *, search: bool) -> int:
    """Returns how many answers `measure` generates for so many problems, at most: a tree may end
    before its budget."""
    options, agents = config.evaluation, len(config.agents)
    each = options.samples_per_problem * agents
    if search:
        each += options.tree_nodes + math.ceil(options.tree_nodes / agents) * agents
    return each * problems


def _rows(
    bench: Bench, part: str, config: RunConfig, problems: Sequence[Problem], each: int
) -> dict[str, list[list[Judged]]]:
    """Returns `each` independent samples per agent and problem."""
    requests = [Request(problem) for problem in problems for _ in range(each)]
    judged = bench.samples(part, requests, config.evaluation.temperature)
    return {
        name: [rows[i : i + each] for i in range(0, len(rows), each)]
        for name, rows in judged.items()
    }


def _team_samples(
    bench: Bench, config: RunConfig, problems: Sequence[Problem]
) -> list[list[Judged]]:
    options = config.evaluation
    each = math.ceil(options.tree_nodes / len(bench.names))
    team_samples = _rows(bench, "samples", config, problems, each)
    return [
        [pair for turn in zip(*rows, strict=True) for pair in turn][: options.tree_nodes]
        for rows in zip(*team_samples.values(), strict=True)
    ]


def _trees(
    bench: Bench, config: RunConfig, problems: Sequence[Problem], seed: list[int]
) -> list[GrowingTree]:
    options = config.evaluation
    flight = min(options.nodes_in_flight, options.tree_nodes)
    limits = {"nodes_per_tree": options.tree_nodes, "nodes_in_flight": flight}
    search = config.search.model_copy(update=limits)
    forest = Forest(problems, bench.names, search, public_judge(options.score), seed)
    bench.grow("tree", forest, options.temperature)
    return forest.trees


def solved_shares(judged: Sequence[Sequence[Judged]]) -> list[float | None]:
    """Returns per problem the share of its verified samples that pass every test."""
    shares = []
    for row in judged:
        scored = verified(row)
        shares.append(sum(v.passed for v in scored) / len(scored) if scored else None)
    return shares


def verified(row: Sequence[Judged]) -> list[Outcome]:
    """Returns the outcomes of a row without technical failures."""
    return [v for _, v in row if public_score(v) is not None]


def no_program_shares(answers: Sequence[Answer]) -> dict[str, float] | UnsetType:
    """Returns the share of answers that hold no program, by each reason; unset if all hold one."""
    reasons = Counter(answer.no_program for answer in answers)
    if reasons[None] == len(answers):
        return UNSET
    named = [one for one in NoProgram if reasons[one] or not one.of_endpoints]
    return {reason: reasons[reason] / len(answers) for reason in named}


def mean(values: Sequence[float | None]) -> float:
    """Returns the mean of the known values; 0 if none is known."""
    numbers = defined_values(values)
    return sum(numbers) / len(numbers) if numbers else 0.0


def defined_values(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Records the wall-clock seconds of a block under `name`."""
    started = time.monotonic()
    yield
    seconds[name] = time.monotonic() - started
