"""Evaluation of a run's team: its actors as a bench of `engine.evaluation.measurement`.

Invariant: an evaluation changes no weights, adds nothing to a buffer, and draws nothing from the
random numbers of training: it is a function of the weights and of (seed, split, step).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.config.schema import RunConfig
from engine.config.search import SearchConfig
from engine.evaluation.families import by_family
from engine.evaluation.measurement import Measurement, measure, solved_shares
from engine.evaluation.result_events import (
    SAMPLES,
    TREE,
    outcomes_event,
    pass_at_1,
    result_event,
)
from engine.events.vocabulary import EvaluationOutcomes, EvaluationResult, RunWaiting
from engine.policy.types import Request, Stream
from engine.problems.problem import Problem
from engine.rollout.episodes import next_turn
from engine.rollout.forest import ClosedNode, Forest, GrowingTree, OpenNode
from engine.rollout.scheduler import Task, VerifiedTask
from engine.rollout.types import Judged
from engine.rollout.waves import Rollout, TeamAnswers, wave_scheduler
from engine.training.evaluation_wait import EvaluationWait, program_count
from engine.training.team import Team

VALIDATION, TEST = "validation", "test"


@dataclass
class Evaluator:
    """Evaluates the current or the starting weights of a run's team."""

    team: Team
    config: RunConfig
    should_stop: Callable[[], bool] = lambda: False
    report: Callable[[RunWaiting], object] = lambda wait: None
    """Receives the waits of an evaluation."""

    def run(
        self,
        step: int,
        split: str,
        problems: Sequence[Problem],
        *,
        starting_weights: bool = False,
        search: bool = False,
    ) -> tuple[EvaluationResult, EvaluationOutcomes]:
        """Returns Pass@1 of every agent and, with `search`, of the team on a budget of nodes; and
        the same per problem.

        A figure leaves out the problems of which a verification failed technically.
        """
        started = time.monotonic()
        name = _names(split, starting_weights)
        total = program_count(self.config.evaluation, len(self.team.agents), len(problems), search)
        wait = EvaluationWait(self.report, name, total)
        bench = TeamBench(
            self.team, self.should_stop, starting_weights, stream=(split, step), judged=wait.add
        )
        seed = [self.config.seed, 0xEA1, step]
        config = self.config.model_copy(update={"search": without_limits(self.config.search)})
        with self.team.wait_as(wait.waiting):
            if split == TEST:
                wait.begin()  # at once, since it may take minutes
            try:
                measurement = measure(bench, config, problems, seed, search=search)
            finally:
                wait.end()
        values = _values(measurement, search=search)
        outcomes = outcomes_event(measurement, values, step, split)
        families = by_family(problems, {n: values[pass_at_1(n)] for n in bench.names}, values)
        nodes, seconds = self.config.evaluation.tree_nodes, time.monotonic() - started
        return result_event(measurement, outcomes, nodes, seconds, families), outcomes


def _values(measurement: Measurement, *, search: bool) -> dict[str, list[float | None]]:
    """Returns Pass@1 per problem of every agent and, with `search`, of the team, by figure."""
    agents = measurement.single_agent.items()
    values = {pass_at_1(name): solved_shares(rows) for name, rows in agents}
    if search:
        values[TREE] = measurement.solved_by_tree()
        values[SAMPLES] = measurement.solved_by_samples()
    return values


def without_limits(search: SearchConfig) -> SearchConfig:
    """Returns the settings of a search without the limits of training trees: a team that learns
    from flat groups or few tokens is evaluated by the same search as any other."""
    limits = {"max_depth", "tokens_per_tree", "seconds_per_tree", "stop_when_solved"}
    return SearchConfig(**search.model_dump(exclude=limits))


def _names(split: str, starting_weights: bool) -> str:
    """Returns the name under which the site shows an evaluation in progress."""
    if split != TEST:
        return split
    return f"final test, {'starting' if starting_weights else 'trained'} weights"


@dataclass
class _Counted:
    """A `RolloutSink` that counts the closed nodes of an evaluation's trees."""

    judged: Callable[[int], None]

    def opened(self, claim: OpenNode) -> None: ...

    def closed(self, tree: GrowingTree, node: ClosedNode) -> None:
        self.judged(1)


@dataclass
class TeamBench:
    """The actors of a run as a bench: samples answers and grows trees for an evaluation."""

    team: Team
    should_stop: Callable[[], bool]
    starting_weights: bool
    stream: Stream
    """Prefix of the names of all its random streams."""
    judged: Callable[[int], None] = lambda programs: None
    """Receives the number of newly judged programs."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.team.agents)

    def samples(
        self, part: str, requests: Sequence[Request], temperature: float
    ) -> dict[str, list[Judged]]:
        stream = (*self.stream, part)
        answers = TeamAnswers(self.team, temperature, self.starting_weights, stream)
        scheduler = wave_scheduler(self.team, answers)
        pairs = [(name, request) for name in self.names for request in requests]
        scheduler.submit(Task(*pair, mark) for mark, pair in enumerate(pairs))
        ended: dict[int, VerifiedTask] = {}
        limit = self.team.config.search.turns_per_episode
        for turn in itertools.count(1):
            done = scheduler.advance()
            ended |= {one.task.mark: one for one in done}
            if not (later := [task for one in done if (task := next_turn(one, limit))]):
                break
            answers.stream = (*stream, "turn", turn)
            scheduler.submit(later)
        judged: dict[str, list[Judged]] = {name: [] for name in self.names}
        for _, one in sorted(ended.items()):
            judged[one.task.agent].append((one.answer, one.verification))
        self.judged(sum(map(len, judged.values())))
        return judged

    def grow(self, part: str, forest: Forest, temperature: float) -> None:
        Rollout(
            self.team,
            forest,
            _Counted(self.judged),
            should_stop=self.should_stop,
            temperature=temperature,
            starting_weights=self.starting_weights,
            stream=(*self.stream, part),
        ).run()
