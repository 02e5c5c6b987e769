"""Coordinator of updates: credit, buffers, composition, learning, and the weights that generators
receive.

Invariants:
- The loop knows no method: credit and losses are chosen by name from the config.
- An update is awaited before the next one starts, and before its figures or weights are needed;
  the generators receive its weights as soon as it has ended.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from engine.config.schema import RunConfig
from engine.config.weight_sharing import weight_groups, weight_owner
from engine.credit import ADVANTAGES
from engine.credit.assign import Credit, assign_credit, credit_batch
from engine.credit.columns import TreeRecord
from engine.credit.group import CreditMemory
from engine.events.vocabulary import LogLine
from engine.memory.memories import Memories
from engine.memory.pass_rates import PassRates
from engine.memory.protocol import SeenTree
from engine.policy.learner.rows import TrainingRow, UpdateStats
from engine.policy.types import Generation
from engine.problems.problem import Problem
from engine.rollout.continuous import ContinuousRollout
from engine.rollout.forest import GrowingTree
from engine.rollout.memories import ADVANTAGE, RATES
from engine.rollout.records import record_of, seen
from engine.run.spans import submitted
from engine.run.timing import timed
from engine.run.waits import of_agents
from engine.training.buffers import AgentBuffer
from engine.training.compose.composer import Composition
from engine.training.compose.composing import Composing
from engine.training.demonstrations import Demonstrations
from engine.training.judging import judged, warning_of
from engine.training.measuring import ENTROPIES, with_entropies
from engine.training.team import Team
from engine.training.telemetry import StepRecorder, composed


@dataclass(frozen=True)
class _Update:
    """The updates of a step in flight, in order, of every policy that has some."""

    recorder: StepRecorder
    calls: list[Any]
    owners: list[str]
    """Owner of the weights that each call updates."""
    trees: list[list[int]]
    """Ids of the trees whose nodes each call learns from."""


@dataclass(frozen=True)
class EndedUpdate:
    """Updates whose weights the generators have, and which are not recorded yet."""

    recorder: StepRecorder
    stats: list[UpdateStats]
    owners: list[str]
    trees: list[list[int]]


class UpdateCoordinator:
    """Credits trees, buffers their nodes and runs the learners' updates from them."""

    def __init__(
        self, config: RunConfig, team: Team, memories: Memories, problems: Sequence[Problem] = ()
    ):
        """`memories` are the run's (`engine.rollout.memories`), `problems` those that it trains
        on."""
        self.config = config
        self._memory = cast("CreditMemory | None", memories.get(ADVANTAGE))
        self._rates = cast("PassRates | None", memories.get(RATES))
        self.team = team
        groups = weight_groups([agent for agent in config.agents if agent.trainable])
        self.learners = {owner: [agent.name for agent in group] for owner, group in groups.items()}
        """Names of the agents of every learning policy, by owner of its weights."""
        plan = config.training
        self.buffers = {
            name: AgentBuffer(plan.batch_nodes, plan.max_batch_nodes, plan.max_staleness)
            for name in self.learners
        }
        self._composing = Composing(config, memories, Demonstrations(config, team, problems))
        self.trees: list[SeenTree] = []
        """Trees of the step that was credited last, filtered ones included."""
        self.ungraded: Counter[str] = Counter()
        """Number of the step's nodes without a grade of the judge, by reason."""
        self.compositions: dict[str, Composition] = {}
        """What the composer made of the step's batches, by owner of the weights."""
        self._update: _Update | None = None
        self._sent: list[Any] = []
        """Calls that give weights to generators or end their step; only checked for failures."""

    def credit(self, trees: Sequence[GrowingTree], recorder: StepRecorder) -> list[Credit]:
        """Returns the credit of every tree; the nodes of unfiltered trees enter the buffers."""
        config = self.config.credit
        limits = {agent.name: agent.sampling.max_new_tokens for agent in self.config.agents}
        owners = {agent.name: weight_owner(agent) for agent in self.config.agents}
        needed = self._composing.row_columns
        made = [record_of(tree, owners, self._rates) for tree in trees]
        if ENTROPIES in ADVANTAGES[config.advantage].needs:
            made = with_entropies(self.team, trees, made)
        records = self._graded(trees, made, recorder)
        credits = [
            assign_credit(
                record, config, [limits[agent] for agent in record.agents], self._memory, needed
            )
            for record in records
        ]
        credits = credit_batch(credits, config)
        for tree, credit in zip(trees, credits, strict=True):
            recorder.credited(tree, credit)
            if not credit.filtered:
                self._keep(tree, credit)
        self.trees = [seen(tree, credit) for tree, credit in zip(trees, credits, strict=True)]
        return credits

    def _graded(
        self, trees: Sequence[GrowingTree], records: list[TreeRecord], recorder: StepRecorder
    ) -> list[TreeRecord]:
        """Returns the trees with the grades of the run's judge, if it has one."""
        self.ungraded = Counter()
        if self.team.judge is None:
            return records
        graded = judged(self.team.judge, [tree.problem.statement for tree in trees], records)
        self.ungraded = sum((tree.missing for tree in graded), Counter())
        if text := warning_of(graded):
            recorder.log.append(LogLine("warning", f"step {recorder.step}: {text}"))
        return [tree.record for tree in graded]

    def start(self, recorder: StepRecorder, progress: float) -> None:
        """Starts the updates that the composer makes of every policy's batch; `progress` is the
        share of the run that is done.

        Raises:
            ValueError: the composer loses rows without a reason.
        """
        batches = {name: buffer.take() for name, buffer in self.buffers.items()}
        self.compositions = self._composing.composed(batches, recorder.step, self.trees)
        updates = [
            (name, update)
            for name, composition in self.compositions.items()
            for update in composition.updates
            if update.rows
        ]
        self._update = _Update(
            recorder,
            [
                submitted(
                    self.team.agents[name].learn.remote(
                        name, list(one.rows), progress, one.objective
                    ),
                    "learn",
                    "learn",
                    agent=name,
                    rows=len(one.rows),
                )
                for name, one in updates
            ],
            [name for name, _ in updates],
            [one.sampled_trees for _, one in updates],
        )

    def composed(self) -> dict[str, dict[str, float]]:
        """Returns the fields of the step's end that say what became of its rows."""
        return composed(self.compositions.values(), self.ungraded)

    @property
    def calls(self) -> list[Any]:
        """Calls of the update in flight; once all have ended, `send` processes their results."""
        return self._update.calls if self._update else []

    def wait(self, phases: dict[str, float], growth: ContinuousRollout) -> None:
        """Waits for the update in flight, if there is one; trees that no step waits for keep
        growing meanwhile."""
        if self._update:
            with timed(phases, "learn"), of_agents(self._update.owners):
                growth.attend(self.calls, "agents to learn", self._update.recorder)

    def send(self, phases: dict[str, float]) -> EndedUpdate | None:
        """Sends the weights of the ended update, if there is one, to the generators; returns what
        `record` is to record of it. They wait for the weights, so that comes later."""
        if self._update is None:
            return None
        ended, owners = self._update, self._update.owners
        with timed(phases, "learn"), of_agents(owners):
            stats = self.team.get(ended.calls, "agents to learn")
        self._update = None
        with timed(phases, "sync"):
            self.give_weights(list(dict.fromkeys(owners)))
        return EndedUpdate(ended.recorder, stats, owners, ended.trees)

    def record(self, update: EndedUpdate) -> None:
        """Emits the events of an ended update, and marks what is now stale in the buffers."""
        for name, stats, trees in zip(update.owners, update.stats, update.trees, strict=True):
            stale = stats.stale_nodes + self.buffers[name].record_update(stats.version)
            complete = replace(stats, stale_nodes=stale)
            update.recorder.updated(name, complete, self.learners[name], trees)

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
        for index, node in enumerate(nodes):
            if node.agent in owners and not math.isnan(credit.shaped_N[index]):
                row = _training_row(node.answer.generation, credit, index, tree.id, node.node)
                rows[owners[node.agent]].append(row)
        for name, mine in rows.items():
            self.buffers[name].add_tree(mine)


def _training_row(
    generation: Generation, credit: Credit, index: int, tree: int, node: int
) -> TrainingRow:
    return TrainingRow(
        list(generation.prompt_ids),
        list(generation.output_ids),
        list(generation.logprobs),
        credit.advantage_of(index),
        generation.policy_version,
        generation.temperature,
        tree,
        node,
        generation.pieces,
        credit.columns_of(index),
    )
