"""Logs of runs with planted faults: the events of a training, figures as given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import msgspec

from engine.events import vocabulary as ev
from engine.events.states import StopReason, Verdict
from engine.health.monitor import Monitor
from engine.health.setup import Setup

AGENTS = ("oak", "fern")
HEALTHY = {
    "entropy": 0.4, "clip_fraction": 0.1, "gradient_norm": 0.5, "learning_rate": 1e-3,
    "mismatch": 1e-6,
}  # fmt: skip


@dataclass(frozen=True)
class Node:
    agent: str
    score: float | None
    program: str
    tokens: tuple[str, ...] = ("pass", "<end>")
    stop: StopReason = StopReason.END_OF_TEXT
    advantage: float | None = None
    """None is the score without the tree's mean."""
    shaped: float | None = None
    """None is the score and half of its difference to the tree's mean."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step; updates and rewards by agent, trees as lists of nodes."""

    updates: dict[str, dict[str, float]] = field(default_factory=dict)
    trees: tuple[tuple[Node, ...], ...] | None = None
    rewards: dict[str, float] | None = None
    seconds: float = 2.0
    validate_seconds: float = 0.0
    validation: dict[str, float] | None = None

    def with_all(self, **figures: float) -> Step:
        """Returns the step with these figures in the update of every agent."""
        return replace(self, updates={agent: figures for agent in AGENTS})


def some_trees(step: int, agents: tuple[str, ...] = AGENTS, count: int = 8, nodes: int = 8):
    """Trees in which half of the nodes pass, every program of its own problem."""
    return tuple(
        tuple(
            Node(agents[n % len(agents)], float(n % 3 == 0), f"return {step}, {tree}, {n // 3}")
            for n in range(nodes)
        )
        for tree in range(count)
    )


def equal_trees(step: int, score: float, count: int = 8):
    return tuple(
        tuple(replace(node, score=score) for node in tree) for tree in some_trees(step, count=count)
    )


class Writer:
    def __init__(self) -> None:
        self.seq = 0
        self.time = 1_763_700_000.0

    def event(self, payload: ev.Payload, tree: int | None = None, node: int | None = None):
        body = msgspec.to_builtins(payload)
        self.seq += 1
        return ev.Event(self.seq, self.time, body.pop("type"), tree, node, body)


def planned(agents: tuple[str, ...] = AGENTS) -> ev.RunPlanned:
    return ev.RunPlanned(1000, list(agents))


def payloads(step: int, plan: Step, first_tree: int) -> Iterator[tuple]:
    """(payload, tree, node) of one step; trees are numbered from `first_tree`."""
    trees = some_trees(step) if plan.trees is None else plan.trees
    yield ev.StepStarted(step, len(trees)), None, None
    for index, nodes in enumerate(trees):
        yield from _grown(step, first_tree + index, nodes)
    for agent in AGENTS:
        figures = {**HEALTHY, **plan.updates.get(agent, {})}
        yield _updated(agent, step, figures), None, None
    if plan.validation is not None:
        errors = dict.fromkeys(plan.validation, 0.04)
        result = ev.EvaluationResult(step, "validation", plan.validation, errors, 100)
        yield result, None, None
    yield _ended(step, plan, trees), None, None


def _grown(step: int, tree: int, nodes: tuple[Node, ...]) -> Iterator[tuple]:
    yield ev.TreeOpened(step, f"problem-{tree}", "Return x."), tree, None
    scores = [node.score for node in nodes if node.score is not None]
    mean = sum(scores) / max(1, len(scores))
    for number, node in enumerate(nodes, start=1):
        yield ev.NodeOpened(node.agent, 0, 1, {}), tree, number
        yield ev.NodeText("Return x.", list(node.tokens), [-0.1] * len(node.tokens)), tree, number
        closed = ev.NodeClosed(
            program=node.program, verdict=Verdict.WRONG_ANSWER, score=node.score, fraction=0.0,
            tests=[], tokens=len(node.tokens), stop=node.stop, mean_logprob=-0.1, policy_version=1,
            seconds=0.1,
        )  # fmt: skip
        yield closed, tree, number
    for number, node in enumerate(nodes, start=1):
        if node.score is not None:
            advantage = node.score - mean if node.advantage is None else node.advantage
            shaped = 1.5 * node.score - 0.5 * mean if node.shaped is None else node.shaped
            yield ev.NodeCredited(shaped, advantage), tree, number
    yield ev.TreeClosed(len(nodes), 1.0 in scores, mean, False), tree, None


def _updated(agent: str, step: int, figures: dict[str, float]) -> ev.AgentUpdated:
    return ev.AgentUpdated(
        agent=agent, step=step, version=step, nodes=32, loss=0.0, policy_loss=0.0, kl=0.0, lag=0.0,
        **figures,
    )  # fmt: skip


def _ended(step: int, plan: Step, trees: tuple[tuple[Node, ...], ...]) -> ev.StepEnded:
    nodes = [node for tree in trees for node in tree]
    rewards = plan.rewards or dict.fromkeys(AGENTS, 0.5)
    return ev.StepEnded(
        step=step, seconds=plan.seconds + plan.validate_seconds,
        phases={"generate": plan.seconds, "validate": plan.validate_seconds},
        nodes=len(nodes), reward=sum(rewards.values()) / len(rewards), solved=0.5,
        node_share={
            agent: sum(node.agent == agent for node in nodes) / len(nodes) for agent in AGENTS
        },
        reward_by_agent=rewards, filtered_trees=0, dropped_nodes=0, tokens=100,
        training_seconds=2.0 * step, trees=len(trees),
    )  # fmt: skip


def changes(steps: list[Step], setup: Setup | None = None) -> list[ev.HealthChanged]:
    """Every change of health in a run of these steps, in order."""
    monitor, writer = Monitor(setup), Writer()
    monitor.apply(writer.event(planned()))
    all_changes, tree = [], 1
    for number, plan in enumerate(steps, start=1):
        writer.time += plan.seconds
        for payload, tree_id, node in payloads(number, plan, tree):
            monitor.apply(writer.event(payload, tree_id, node))
        tree += 100
        for change in monitor.after_step():
            monitor.apply(writer.event(change))
            all_changes.append(change)
    return all_changes
