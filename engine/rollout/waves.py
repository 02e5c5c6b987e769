"""Rollout of a forest in waves: agents write while the sandbox verifies, in alternating lanes.

Evaluations grow their trees this way, and so does training without continuous rollout
(`continuous.py`).

With two lanes the trees of one are verified while those of the other are written, so neither the
agents nor the sandbox wait for long. The lanes are served in strict turns, which keeps the order
of every actor's calls, and so the result, a function of the seed alone.

The loop waits for the answers of the lane whose turn it is, then for its verdicts, which unblock
the next expansions of that lane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.policy.types import Answer, Stream
from engine.rollout.forest import Forest, GrowingTree, OpenNode
from engine.rollout.types import AnswerBatch, RolloutSink, RolloutTeam, Stopped
from engine.run.timing import timed


@dataclass
class Lane:
    """Trees that advance together, and the calls in flight for them."""

    trees: Sequence[GrowingTree]
    claims: dict[str, list[OpenNode]] = field(default_factory=dict)
    asked: AnswerBatch | None = None


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
        count = self.team.config.compute.lanes
        lanes = [Lane(self.forest.trees[start::count]) for start in range(count)]
        self._waves = 0
        for lane in lanes:
            self._write(lane)
        while any(lane.claims for lane in lanes):
            for lane in lanes:
                if lane.claims:
                    self._finish_wave(lane)
                    self._write(lane)

    def _write(self, lane: Lane) -> None:
        if self.should_stop():
            raise Stopped
        claims = self.forest.claim(lane.trees)
        lane.claims = by_agent(claims, self.team.agents)
        if self.sink:
            for claim in claims:
                self.sink.opened(claim)
        stream = None if self.stream is None else (*self.stream, self._waves)
        self._waves += 1
        requests = {
            agent: [claim.tree.request(claim.expansion) for claim in mine]
            for agent, mine in lane.claims.items()
        }
        lane.asked = self.team.answer(requests, self.temperature, self.starting_weights, stream)

    def _finish_wave(self, lane: Lane) -> None:
        assert lane.asked
        with timed(self.seconds, "generate"):
            answers = self.team.answered(lane.asked)
        pairs = list(in_order_of_opening(lane.claims, answers))
        programs = [(claim.tree.problem, answer.program) for claim, answer in pairs]
        with timed(self.seconds, "verify"):
            verifications = self.team.verifier.verify(programs)
        for (claim, answer), verification in zip(pairs, verifications, strict=True):
            node = self.forest.close(claim, answer, verification)
            if self.sink:
                self.sink.closed(claim.tree, node)


def by_agent(claims: Sequence[OpenNode], agents: dict[str, Any]) -> dict[str, list[OpenNode]]:
    grouped = {name: [c for c in claims if c.expansion.agent == name] for name in agents}
    return {name: mine for name, mine in grouped.items() if mine}


def in_order_of_opening(
    claims: dict[str, list[OpenNode]], answers: Mapping[str, Sequence[Answer]]
) -> Iterator[tuple[OpenNode, Answer]]:
    pairs = [
        pair for agent, mine in claims.items() for pair in zip(mine, answers[agent], strict=True)
    ]
    return iter(sorted(pairs, key=lambda pair: pair[0].node))
