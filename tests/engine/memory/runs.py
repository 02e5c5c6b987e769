"""Runs without an engine: what a run plants step by step, with scripted scores, and its saves."""

from __future__ import annotations

import json
import zlib
from typing import Any

from engine.config.schema import RunConfig, parse_config
from engine.credit.assign import Credit, assign_credit
from engine.environments.types import Settled
from engine.events.vocabulary import StopReason, Verdict
from engine.policy.types import Answer, Generation
from engine.problems.generator import make_problem
from engine.problems.source import ProblemSet
from engine.rollout.forest import Forest, GrowingTree
from engine.rollout.memories import ADVANTAGE, RATES, memories_of
from engine.rollout.planting import Planting
from engine.rollout.records import record_of, seen
from engine.sandbox.host.verify import Verification

AGENTS = ("oak", "elm")
PROBLEMS = [make_problem(2, i)[0] for i in range(6)]
REMEMBERING = {
    "credit": {"advantage": "rae", "dynamic_filter": False},
    "search": {"strategy": "discounted", "allocator": "knapsack", "nodes_per_tree": 6,
               "knapsack": {"warmup_steps": 1, "high": 12}},
    "training": {"sampler": "learnability", "trees_per_step": 4},
}  # fmt: skip
"""Settings whose methods all remember."""


def config_of(settings: dict[str, Any]) -> RunConfig:
    agents = [{"name": name, "model": "starter:oak"} for name in AGENTS]
    return parse_config({"seed": 5, "agents": agents} | settings)


class Run:
    """The growth of a run's trees, with scores that depend on problem, agent and node alone."""

    def __init__(self, settings: dict[str, Any] = REMEMBERING):
        self.config = config_of(settings)
        self.problems = ProblemSet(PROBLEMS, [], [])
        self.memories = memories_of(self.config, len(PROBLEMS))
        self.planting = Planting(self.config, self.problems, self.memories)
        self.step = self.begun = 0

    def grow(self) -> list[tuple]:
        """Grows the trees of the next step; returns their problems and nodes."""
        self.step += 1
        count = self.config.training.trees_per_step
        numbers = self.planting.drawn(self.begun, count)
        forest = self.planting.forest(numbers, self.step, 0, refill=False)
        while claims := forest.claim(forest.trees):
            for claim in claims:
                self._close(forest, claim)
        self.begun += count
        credits = [self._credit(tree) for tree in forest.trees]
        trees = list(zip(forest.trees, credits, strict=True))
        self.memories.observe(self.step, [seen(tree, credit) for tree, credit in trees])
        return [(t.number, shape(t), credit.advantages_N.tolist()) for t, credit in trees]

    def _credit(self, tree: GrowingTree) -> Credit:
        record = record_of(tree, rates=self.memories.get(RATES))
        return assign_credit(record, self.config.credit, 10, self.memories.get(ADVANTAGE))

    def _close(self, forest: Forest, claim: Any) -> None:
        """Each agent solves some problems more often than others."""
        tree, agent = claim.tree, claim.expansion.agent
        skill = {"oak": 0.15, "elm": 0.03}[agent] * (tree.number + 1)
        key = f"{self.step} {tree.number} {tree.seed} {claim.node} {agent}"
        verdict = Verdict.PASSED if share(key) < skill else Verdict.WRONG_ANSWER
        answer = Answer(Generation([1], [2], [-0.1], StopReason.END_OF_TEXT, 0, 0.0), "x")
        outcome = Verification(verdict, 0.5, (None,) * 3, 1, False)
        forest.close(claim, answer, Settled(outcome, "seen"))

    def state(self) -> str:
        """What a checkpoint holds of it."""
        counters = {"step": self.step, "begun": self.begun}
        return json.dumps(counters | {"memory": self.memories.state()})

    @classmethod
    def resumed(cls, state: str, settings: dict[str, Any] = REMEMBERING) -> Run:
        """A run that goes on from what `state` returned."""
        run, saved = cls(settings), json.loads(state)
        run.step, run.begun = saved["step"], saved["begun"]
        run.memories.restore(saved.get("memory", {}))
        return run


def share(key: str) -> float:
    """A number from 0 to 1 that depends on the key alone."""
    return zlib.crc32(key.encode()) / 2**32


def shape(tree: GrowingTree) -> list[tuple]:
    return [(n.parent, n.agent, n.score, n.packed_draws) for n in tree.written.values()]
