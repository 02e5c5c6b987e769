"""Rollout of a forest in waves: agents write while the sandbox verifies, in alternating lanes.

Evaluations grow their trees this way, and so does training without continuous rollout
(`continuous.py`).

With two lanes the trees of one are verified while those of the other are written, so neither the
agents nor the sandbox wait for long. Each lane has its own scheduler, in the order `WAVES`. The
lanes are served in strict turns, which keeps the order of every actor's calls, and so the result, a
function of the seed alone.

The loop waits for the answers of the lane whose turn it is, then for its verdicts, which unblock
the next expansions of that lane.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.policy.types import Answer, AnswerCall, Request, Stream
from engine.rollout.forest import Forest, GrowingTree
from engine.rollout.growth import close_nodes, opened_tasks
from engine.rollout.scheduler import Demand, Order, Scheduler, Task, VerifiedTask
from engine.rollout.types import AnswerBatch, RolloutSink, RolloutTeam, Stopped


@dataclass
class TeamAnswers:
    """The actors of a team as an `AnswerSource`: one batch at a time, of all queued tasks."""

    team: RolloutTeam
    temperature: float | None = None
    starting_weights: bool = False
    stream: Stream | None = None
    """Names the random stream of the next batch; None means that of training."""
    _queued: dict[int, Task] = field(default_factory=dict)
    _numbers: dict[str, list[int]] = field(default_factory=dict)
    """Numbers of the tasks of the batch in flight, by agent."""
    _batch: AnswerBatch | None = None
    _results: dict[Any, dict[str, list[Answer]]] = field(default_factory=dict)
    """Results of the batch's calls that have ended."""

    @property
    def calls(self) -> Sequence[Any]:
        if self._batch is None:
            return []
        return [call for call in self._batch.futures if call not in self._results]

    def submit(self, number: int, task: Task) -> None:
        self._queued[number] = task

    def send(self, demand: Demand) -> None:
        if not self._queued:
            return
        queued, self._queued = self._queued, {}
        requests: dict[str, list[Request]] = {}
        self._numbers = {}
        for name in self.team.agents:
            if mine := {n: task for n, task in queued.items() if task.agent == name}:
                requests[name] = [task.request for task in mine.values()]
                self._numbers[name] = list(mine)
        self._batch = self.team.answer(
            AnswerCall(requests, self.temperature, self.starting_weights, self.stream)
        )

    def take(self, ended: Collection[Any]) -> Mapping[int, Answer]:
        """Returns the answers of the batch once all its calls have ended, so that its programs are
        verified together.

        Raises:
            TeamError: an actor failed, with its first cause.
        """
        if not (mine := [call for call in self.calls if call in ended]):
            return {}
        assert self._batch
        self._results |= zip(mine, self.team.get(mine, "agents to write"), strict=True)
        if self.calls:
            return {}
        answers = self._batch.merged([self._results[call] for call in self._batch.futures])
        self._batch, self._results = None, {}
        return {
            number: answer
            for name, numbers in self._numbers.items()
            for number, answer in zip(numbers, answers[name], strict=True)
        }


@dataclass
class Lane:
    """Trees that advance together."""

    trees: Sequence[GrowingTree]
    answers: TeamAnswers
    scheduler: Scheduler


@dataclass
class Rollout:
    """One pass over one forest; `seconds` holds the driver's waiting time by phase."""

    team: RolloutTeam
    forest: Forest
    sink: RolloutSink | None = None
    should_stop: Callable[[], bool] = lambda: False
    temperature: float | None = None
    starting_weights: bool = False
    stream: Stream | None = None
    """Names the random stream of the answers; None means that of training."""
    seconds: dict[str, float] = field(default_factory=lambda: {"generate": 0.0, "verify": 0.0})

    def run(self) -> None:
        """Grows every tree to the end of its budget.

        Raises:
            Stopped: between two waves, if a stop was requested.
        """
        self._waves = itertools.count()
        count = self.team.config.compute.lanes
        lanes = [self._lane(self.forest.trees[start::count]) for start in range(count)]
        for lane in lanes:
            self._open(lane)
        while any(not lane.scheduler.is_idle for lane in lanes):
            for lane in lanes:
                if not lane.scheduler.is_idle:
                    self._close_wave(lane)
                    self._open(lane)

    def _lane(self, trees: Sequence[GrowingTree]) -> Lane:
        answers = TeamAnswers(self.team, self.temperature, self.starting_weights)
        return Lane(trees, answers, wave_scheduler(self.team, answers))

    def _open(self, lane: Lane) -> None:
        if self.should_stop():
            raise Stopped
        wave = next(self._waves)
        lane.answers.stream = None if self.stream is None else (*self.stream, wave)
        lane.scheduler.submit(list(opened_tasks(self.forest, lane.trees, self.sink)))

    def _close_wave(self, lane: Lane) -> None:
        """Closes the nodes of a wave by node, then by agent, then by tree."""
        agents = list(self.team.agents)

        def position(done: VerifiedTask) -> tuple[int, int]:
            return done.task.mark.node, agents.index(done.task.agent)

        for done in sorted(lane.scheduler.advance(self.seconds), key=position):
            close_nodes(self.forest, done, self.sink)


def wave_scheduler(team: RolloutTeam, answers: TeamAnswers) -> Scheduler:
    """Returns a scheduler that a team's actors and verifiers serve in waves."""
    return Scheduler(Order.WAVES, answers, team.verifier, team.wait)
