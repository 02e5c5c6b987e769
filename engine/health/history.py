"""Recent history of a run: the fold of its events that rules read.

Memory is bounded: programs and texts are dropped when their tree is credited, and only the newest
`KEPT` steps, updates and validations are kept. A number that the log holds as null (it was not
finite) is nan here.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from engine.events.vocabulary import Event
from engine.health.answers import Answer, AnswerFacts, TreeAnswers, facts_by_agent
from engine.health.setup import Setup

KEPT = 200
BASELINE = 10
"""First updates of an agent that later ones are compared with."""
WITHOUT_WORK = ("validate", "checkpoint")
"""Phases that do not count as a step's work: they are due every few steps only."""

Payload = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    step: int
    time: float
    """End of the step, in Unix seconds."""
    seconds: float
    """Duration without `WITHOUT_WORK`."""
    nodes: int
    node_share: dict[str, float]
    reward_by_agent: dict[str, float]
    trees: int
    flat: int
    """Trees without a difference to learn from: equal scores, and no advantage other than 0."""
    failed: int
    """Those of `flat` in which every score is 0."""
    differing: int
    """Trees with different scores."""
    reshaped: int
    """Those of `differing` in which some shaped reward is not the score."""
    answers: dict[str, AnswerFacts]
    """By agent."""
    flat_share: float = math.nan
    """Share of groups with equal rewards, of a run that reports it instead of its trees."""
    cut_share: float = math.nan
    """Share of answers that reached a limit, of such a run."""


@dataclass(frozen=True, slots=True)
class Update:
    step: int
    entropy: float
    clip_fraction: float
    gradient_norm: float
    learning_rate: float
    mismatch: float


@dataclass(slots=True)
class Validation:
    step: int
    agents: dict[str, float]
    errors: dict[str, float]
    rewards: dict[str, float] = field(default_factory=dict)
    """Mean reward of each agent over the steps since the previous validation; empty until the
    step of this one has ended."""
    measure: str = "Pass@1"
    """What `agents` holds: a share, or of another trainer whatever it measures."""


class History:
    """Fold of a run's events, in the order of its log."""

    def __init__(self, setup: Setup | None = None, kept: int = KEPT):
        """`kept` is the number of newest steps, updates and validations that stay."""
        self.setup, self.kept = setup or Setup(), kept
        self.agents: list[str] = []
        self.steps: deque[Step] = deque(maxlen=kept)
        self.updates: dict[str, deque[Update]] = {}
        self.baselines: dict[str, list[Update]] = {}
        """First updates of each agent, at most `BASELINE`."""
        self.highest_rates: dict[str, float] = {}
        """Highest learning rate of each agent so far."""
        self.validations: deque[Validation] = deque(maxlen=kept)
        self.growing: dict[int | None, TreeAnswers] = {}
        """Trees that are not credited yet."""
        self.credited: list[TreeAnswers] = []
        """Credited trees of the step that has not ended."""
        self.rewards: dict[str, list[float]] = {}
        """Rewards of each agent since the last validation."""

    def apply(self, event: Event) -> None:
        """Folds one event."""
        if handler := _HANDLERS.get(event.kind):
            handler(self, event)

    def time_of(self, step: int) -> float:
        """Returns when a kept step ended; of an older one, when the oldest kept one did."""
        for item in self.steps:
            if item.step >= step:
                return item.time
        return self.steps[-1].time if self.steps else 0.0

    def _planned(self, event: Event) -> None:
        self.agents = list(event.payload["agents"])

    def _tree_opened(self, event: Event) -> None:
        self.growing[event.tree] = TreeAnswers(event.payload["problem"])

    def _node_opened(self, event: Event) -> None:
        if tree := self.growing.get(event.tree):
            tree.agents[event.node] = event.payload["agent"]

    def _node_text(self, event: Event) -> None:
        if tree := self.growing.get(event.tree):
            tree.text = event.payload["tokens"]

    def _node_closed(self, event: Event) -> None:
        if tree := self.growing.get(event.tree):
            tree.answers.append(Answer.of(event, tree))
            if event.payload["score"] is not None:
                tree.scores[event.node] = event.payload["score"]

    def _node_credited(self, event: Event) -> None:
        if tree := self.growing.get(event.tree):
            tree.has_advantage |= bool(event.payload["advantage"])
            tree.is_reshaped |= event.payload["shaped"] != tree.scores.get(event.node)

    def _tree_closed(self, event: Event) -> None:
        if tree := self.growing.pop(event.tree, None):
            self.credited.append(tree)

    def _updated(self, event: Event) -> None:
        payload = event.payload
        names = ("entropy", "clip_fraction", "gradient_norm", "learning_rate", "mismatch")
        update = Update(payload["step"], *(number(payload, name) for name in names))
        if payload["nodes"]:  # else every node was stale: nothing was learned
            self.add_update(payload["agent"], update)

    def add_update(self, agent: str, update: Update) -> None:
        """Adds an update of an agent that learned from some node."""
        self.updates.setdefault(agent, deque(maxlen=self.kept)).append(update)
        first = self.baselines.setdefault(agent, [])
        if len(first) < BASELINE:
            first.append(update)
        highest = self.highest_rates.get(agent, 0.0)
        self.highest_rates[agent] = max(highest, update.learning_rate)

    def _evaluated(self, event: Event) -> None:
        payload = event.payload
        if payload["split"] == "validation":
            agents, errors = numbers(payload, "agents"), numbers(payload, "standard_errors")
            self.validations.append(Validation(payload["step"], agents, errors))

    def _step_ended(self, event: Event) -> None:
        payload, trees = event.payload, self.credited
        phases = numbers(payload, "phases")
        flat = [tree for tree in trees if tree.is_flat()]
        differing = [tree for tree in trees if tree.differs()]
        rewards = numbers(payload, "reward_by_agent")
        self.credited = []
        self.add_step(
            Step(
                step=payload["step"],
                time=event.time,
                seconds=number(payload, "seconds") - sum(phases.get(p, 0.0) for p in WITHOUT_WORK),
                nodes=payload["nodes"],
                node_share=numbers(payload, "node_share"),
                reward_by_agent=rewards,
                trees=len(trees),
                flat=len(flat),
                failed=sum(tree.has_failed() for tree in flat),
                differing=len(differing),
                reshaped=sum(tree.is_reshaped for tree in differing),
                answers=facts_by_agent(trees),
            )
        )

    def add_step(self, step: Step) -> None:
        """Adds a step that has ended, after its updates and its validation."""
        self.steps.append(step)
        for agent, reward in step.reward_by_agent.items():
            self.rewards.setdefault(agent, []).append(reward)
        last = self.validations[-1] if self.validations else None
        if last and last.step == step.step:
            last.rewards = {agent: sum(r) / len(r) for agent, r in self.rewards.items()}
            self.rewards = {}


def number(payload: Payload, name: str) -> float:
    """Returns a number of a payload; nan for null and for a missing one."""
    value = payload.get(name)
    return math.nan if value is None else float(value)


def numbers(payload: Payload, name: str) -> dict[str, float]:
    """Returns the numbers under the keys of a field, nan for null."""
    field_ = payload.get(name) or {}
    return {key: number(field_, key) for key in field_}


_HANDLERS: dict[str, Callable[[History, Event], None]] = {
    "run.planned": History._planned,
    "tree.open": History._tree_opened,
    "node.open": History._node_opened,
    "node.text": History._node_text,
    "node.close": History._node_closed,
    "node.credit": History._node_credited,
    "tree.close": History._tree_closed,
    "agent.update": History._updated,
    "eval.result": History._evaluated,
    "step.end": History._step_ended,
}
