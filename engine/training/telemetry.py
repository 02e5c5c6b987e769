"""Recorder of a step's events. Invariant: this and `engine.rollout.recorder` alone turn the loop's
own objects into telemetry."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Self

import msgspec
import numpy as np

from engine.config.methods import registry
from engine.config.schema import RunConfig
from engine.credit.assign import Credit
from engine.evaluation.gauges.fold import needs_of
from engine.evaluation.gauges.gauge import TAGS
from engine.events.log import EventLog
from engine.events.vocabulary import (
    AgentUpdated,
    LearnedNode,
    LogLine,
    MetricLogged,
    NodeCredited,
    StepEnded,
    TreeLearned,
)
from engine.policy.learner.rows import UpdateStats
from engine.rollout.forest import ClosedNode, GrowingTree
from engine.rollout.recorder import TreeRecorder, mean
from engine.training.compose.composer import Composition, RowKind

NONE: Mapping[str, int] = MappingProxyType({})


@dataclass
class StepRecorder(TreeRecorder):
    """Emits the events of one step: its trees as they grow, their credit, the updates, its end."""

    agents: Sequence[str] = ()
    """Names of the run's agents."""
    is_deterministic: bool = False
    advantage: str = ""
    """Name of the method of `credit.advantage`."""

    @classmethod
    def of(cls, config: RunConfig, log: EventLog, step: int) -> Self:
        """Returns the recorder of a step of a run with these settings."""
        with_tags = TAGS in needs_of(config.evaluation)
        names = [agent.name for agent in config.agents]
        deterministic, advantage = config.compute.deterministic, config.credit.advantage
        return cls(log, step, with_tags, names, deterministic, advantage)

    def credited(self, tree: GrowingTree, credit: Credit) -> None:
        for index, node in enumerate(sorted(tree.written)):
            advantage = float(credit.advantages_N[index])
            if not math.isnan(advantage):
                payload = NodeCredited(
                    float(credit.shaped_N[index]),
                    advantage,
                    _named(credit.terms, index),
                    _named(credit.gates, index),
                )
                self.log.append(payload, tree=tree.id, node=node)
        self.ended(tree, credit.filtered)

    def updated(
        self, agent: str, stats: UpdateStats, agents: Sequence[str], trees: Sequence[int]
    ) -> None:
        """Emits the update of the weights that `agents` share and `agent` owns, from their nodes of
        these `trees`."""
        payload = AgentUpdated(
            agent=agent,
            step=self.step,
            version=stats.version,
            nodes=stats.nodes,
            loss=stats.loss,
            policy_loss=stats.policy_loss,
            kl=stats.kl,
            clip_fraction=stats.clip_fraction,
            entropy=stats.entropy,
            gradient_norm=stats.gradient_norm,
            learning_rate=stats.learning_rate,
            lag=stats.lag,
            mismatch=stats.mismatch,
            stale_nodes=stats.stale_nodes,
            shared_with=[name for name in agents if name != agent],
            layout=stats.layout,
            layout_reason=stats.layout_reason,
            row_tokens=stats.row_tokens,
            forwarded_tokens=stats.forwarded_tokens,
            trees=list(trees),
            figures=stats.figures or msgspec.UNSET,
        )
        self.log.append(payload)
        by_tree: dict[int, list[LearnedNode]] = {}
        for seen in stats.tokens:
            entry = LearnedNode(seen.node, seen.entropy, seen.ratio)
            by_tree.setdefault(seen.tree, []).append(entry)
        for tree, nodes in sorted(by_tree.items()):
            nodes.sort(key=lambda one: one.node)
            self.log.append(TreeLearned(agent, self.step, stats.version, nodes), tree=tree)

    def step_ended(
        self, trees: Sequence[GrowingTree], credits: Sequence[Credit], **others: Any
    ) -> None:
        """Emits the end of the step that learned from these trees; `others` are the fields of the
        event that are no sums over their nodes."""
        if numbers := credit_figures(trees, credits, self.advantage):
            self.log.append(MetricLogged(self.step, numbers=numbers))
        figures = StepFigures.of(trees, credits, self.agents)
        self.log.append(figures.ended(step=self.step, **others))
        if figures.near_limits and self.is_deterministic:
            self.log.append(LogLine("warning", figures.near_limits_warning(self.step)))


def _named(columns: Mapping[str, np.ndarray], index: int) -> dict[str, float] | msgspec.UnsetType:
    """Returns a node's value in each column; unset if there are none."""
    return {name: float(values_N[index]) for name, values_N in columns.items()} or msgspec.UNSET


def composed(
    compositions: Iterable[Composition], ungraded: Mapping[str, int] = NONE
) -> dict[str, dict[str, float]]:
    """Returns the fields of a step's end that say what composers made of it: `left`, if rows left
    or demonstrations are missing, and `rows`, if some are not of this step's batches. `ungraded`
    are the nodes that a judge gave no grade, by reason."""
    left: Counter[str] = Counter(ungraded)
    rows: Counter[str] = Counter()
    for one in compositions:
        left.update(one.left)
        left.update(one.unshown)
        rows.update(one.rows())
    fields: dict[str, dict[str, float]] = {}
    if left.total():
        fields["left"] = dict(left)
    if set(rows) - {RowKind.ROLLOUT}:
        fields["rows"] = dict(rows)
    return fields


def credit_figures(
    trees: Sequence[GrowingTree], credits: Sequence[Credit], advantage: str
) -> dict[str, float]:
    """Returns the figures of a step's advantage, each agent's mean over its nodes, by the names
    under which they are logged: `ADVANTAGE.FIGURE.AGENT`. Numbers that are not finite are left
    out."""
    by_name: dict[str, list[float]] = {}
    for tree, credit in zip(trees, credits, strict=True):
        agents = [tree.written[node].agent for node in sorted(tree.written)]
        for figure, values_N in credit.figures.items():
            name = registry("advantages").figure(advantage, figure)
            for agent, value in zip(agents, values_N, strict=True):
                if math.isfinite(value):
                    by_name.setdefault(f"{name}.{agent}", []).append(float(value))
    return {name: mean(values) for name, values in sorted(by_name.items())}


@dataclass
class StepFigures:
    """Sums over the nodes of one step."""

    scores: dict[str, list[float]] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    tokens: int = 0
    dropped: int = 0
    near_limits: int = 0
    """Nodes whose verdict may differ under other load of the machine."""
    filtered: int = 0
    solved: int = 0
    trees: int = 0

    @classmethod
    def of(
        cls, trees: Sequence[GrowingTree], credits: Sequence[Credit], agents: Sequence[str]
    ) -> StepFigures:
        figures = cls({name: [] for name in agents}, dict.fromkeys(agents, 0))
        for tree, credit in zip(trees, credits, strict=True):
            figures.trees += 1
            figures.filtered += credit.filtered
            figures.solved += tree.solved
            for node in tree.written.values():
                figures._add(node)
        return figures

    def _add(self, node: ClosedNode) -> None:
        self.nodes[node.agent] += 1
        self.tokens += len(node.answer.generation.output_ids)
        self.near_limits += node.verification.near_its_limit
        if node.score is None:
            self.dropped += 1
        else:
            self.scores[node.agent].append(node.score)

    def ended(self, **others: Any) -> StepEnded:
        """Returns the event of the step's end; `others` are its fields that are no such sums."""
        return StepEnded(
            nodes=self.total,
            reward=self.reward(),
            solved=self.solved / max(1, self.trees),
            node_share=self.node_share(),
            reward_by_agent=self.reward_by_agent(),
            filtered_trees=self.filtered,
            dropped_nodes=self.dropped,
            tokens=self.tokens,
            trees=self.trees,
            **others,
        )

    def near_limits_warning(self, step: int) -> str:
        """Returns the warning of a deterministic run with nodes near a limit."""
        return (
            f"step {step}: {self.near_limits} programs ran near a time limit or into it; "
            "under other load their verdicts may be others (sandbox.cpu_seconds, wall_seconds)"
        )

    @property
    def total(self) -> int:
        return sum(self.nodes.values())

    def reward(self) -> float:
        return mean([score for scores in self.scores.values() for score in scores])

    def reward_by_agent(self) -> dict[str, float]:
        return {name: mean(scores) for name, scores in self.scores.items() if scores}

    def node_share(self) -> dict[str, float]:
        return {name: count / max(1, self.total) for name, count in self.nodes.items()}
