"""Coordinator of updates: credit, buffers, learning, and the weights that generators receive.

Invariants:
- The loop knows no method: credit and losses are chosen by name from the config.
- An update is awaited before the next one starts, and before its figures or weights are needed;
  the generators receive its weights as soon as it has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from engine.config.schema import RunConfig
from engine.config.weight_sharing import weight_groups
from engine.credit.assign import Credit, assign_credit, credit_batch
from engine.credit.group import CreditMemory
from engine.memory.memories import Memories
from engine.policy.learner.rows import TrainingRow, UpdateStats
from engine.policy.types import Generation
from engine.rollout.continuous import ContinuousRollout
from engine.rollout.forest import GrowingTree
from engine.rollout.memories import ADVANTAGE
from engine.rollout.records import record_of
from engine.run.spans import submitted
from engine.run.timing import timed
from engine.run.waits import of_agents
from engine.training.buffers import AgentBuffer
from engine.training.team import Team
from engine.training.telemetry import StepRecorder


@dataclass(frozen=True)
class _Update:
    """An update in flight, of every policy whose buffer held a batch."""

    recorder: StepRecorder
    calls: dict[str, Any]
    """Calls in flight, by owner of the weights."""
    trees: dict[str, list[int]]
    """Ids of the trees whose nodes are learned from, by owner too."""


@dataclass(frozen=True)
class EndedUpdate:
    """An update whose weights the generators have, and which is not recorded yet."""

    recorder: StepRecorder
    stats: dict[str, UpdateStats]
    """By owner of the weights."""
    trees: dict[str, list[int]]


class UpdateCoordinator:
    """Credits trees, buffers their nodes and runs the learners' updates from them."""

    def __init__(self, config: RunConfig, team: Team, memories: Memories):
        """`memories` are the run's (`engine.rollout.memories`)."""
        self.config = config
        self._memory = cast("CreditMemory | None", memories.get(ADVANTAGE))
        self.team = team
        groups = weight_groups([agent for agent in config.agents if agent.trainable])
        self.learners = {owner: [agent.name for agent in group] for owner, group in groups.items()}
        """Names of the agents of every learning policy, by owner of its weights."""
        plan = config.training
        self.buffers = {
            name: AgentBuffer(plan.batch_nodes, plan.max_batch_nodes, plan.max_staleness)
            for name in self.learners
        }
        self._update: _Update | None = None
        self._sent: list[Any] = []
        """Calls that give weights to generators or end their step; only checked for failures."""

    def credit(self, trees: Sequence[GrowingTree], recorder: StepRecorder) -> list[Credit]:
        """Returns the credit of every tree; the nodes of unfiltered trees enter the buffers."""
        config = self.config.credit
        limits = {agent.name: agent.sampling.max_new_tokens for agent in self.config.agents}
        records = [record_of(tree) for tree in trees]
        credits = [
            assign_credit(record, config, [limits[agent] for agent in record.agents], self._memory)
            for record in records
        ]
        credits = credit_batch(records, credits, config)
        for tree, credit in zip(trees, credits, strict=True):
            recorder.credited(tree, credit)
            if not credit.filtered:
                self._keep(tree, credit)
        return credits

    def start(self, recorder: StepRecorder, progress: float) -> None:
        """Starts an update of every policy whose buffer holds a batch; `progress` is the share of
        the run that is done."""
        batches = {name: rows for name, buffer in self.buffers.items() if (rows := buffer.take())}
        calls = {
            name: submitted(
                self.team.agents[name].learn.remote(name, rows, progress),
                "learn",
                "learn",
                agent=name,
                rows=len(rows),
            )
            for name, rows in batches.items()
        }
        trees = {name: sorted({row.tree for row in rows}) for name, rows in batches.items()}
        self._update = _Update(recorder, calls, trees)

    @property
    def calls(self) -> list[Any]:
        """Calls of the update in flight; once all have ended, `send` processes their results."""
        return list(self._update.calls.values()) if self._update else []

    def wait(self, phases: dict[str, float], growth: ContinuousRollout) -> None:
        """Waits for the update in flight, if there is one; trees that no step waits for keep
        growing meanwhile."""
        if self._update:
            with timed(phases, "learn"), of_agents(self._update.calls):
                growth.attend(self.calls, "agents to learn", self._update.recorder)

    def send(self, phases: dict[str, float]) -> EndedUpdate | None:
        """Sends the weights of the ended update, if there is one, to the generators; returns what
        `record` is to record of it. They wait for the weights, so that comes later."""
        if self._update is None:
            return None
        recorder, calls = self._update.recorder, self._update.calls
        with timed(phases, "learn"), of_agents(calls):
            updates = self.team.get(list(calls.values()), "agents to learn")
        trees, self._update = self._update.trees, None
        with timed(phases, "sync"):
            self.give_weights(calls)
        return EndedUpdate(recorder, dict(zip(calls, updates, strict=True)), trees)

    def record(self, update: EndedUpdate) -> None:
        """Emits the events of an ended update, and marks what is now stale in the buffers."""
        for name, stats in update.stats.items():
            stale = stats.stale_nodes + self.buffers[name].record_update(stats.version)
            complete = replace(stats, stale_nodes=stale)
            update.recorder.updated(name, complete, self.learners[name], update.trees[name])

    def give_weights(self, owners: Sequence[str] | dict[str, Any]) -> None:
        """Sends these learners' weights to their generators, for all later requests, without
        waiting for the calls; waits for those of the previous time."""
        self.team.get(self._sent, "generators to take the last weights")
        self._sent = [*self.team.sync(owners), *self.team.end_step()]

    def _keep(self, tree: GrowingTree, credit: Credit) -> None:
        """Adds every policy's own nodes to its buffer."""
        owners = {name: owner for owner, names in self.learners.items() for name in names}
        rows: dict[str, list[TrainingRow]] = {owner: [] for owner in self.learners}
        nodes = [tree.written[node] for node in sorted(tree.written)]
        for node, advantage in zip(nodes, credit.advantages_N, strict=True):
            if node.agent in owners and node.score is not None:
                row = _training_row(node.answer.generation, float(advantage), tree.id, node.node)
                rows[owners[node.agent]].append(row)
        for name, mine in rows.items():
            self.buffers[name].add_tree(mine)


def _training_row(generation: Generation, advantage: float, tree: int, node: int) -> TrainingRow:
    return TrainingRow(
        list(generation.prompt_ids),
        list(generation.output_ids),
        list(generation.logprobs),
        advantage,
        generation.policy_version,
        generation.temperature,
        tree,
        node,
    )
