"""Search of one problem with a local team, and the record of the whole tree.

Invariants: the record holds every node's agent, prompt, draws and verdict; private tests appear in
it as one verdict, never in a prompt or in the choice of the answer. A tree that was begun is
recorded, however its search ends.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from engine.inference.backends import BackendError
from engine.inference.local_team import LocalTeam
from engine.inference.selection import Scorer, rewards_of, tree_answer
from engine.inference.sources import Interrupted
from engine.policy.types import Answer
from engine.problems.problem import Problem
from engine.rollout.forest import ClosedNode, Forest, GrowingTree, public_score
from engine.rollout.types import RolloutSink
from engine.sandbox.host.errors import SandboxUnavailable
from engine.search.scheduler import TreeEnd

RECORD_VERSION = 1


@dataclass(frozen=True)
class Outcome:
    """A searched tree, and the answer, which is chosen without private tests."""

    tree: GrowingTree
    end: TreeEnd | None
    """Why the tree ended; None if the search was stopped from outside."""
    rewards: dict[int, float]
    """Reward of each verified node by id, if there is a reward model."""
    answer: ClosedNode | None
    seconds: float
    error: Exception | None = None
    """First error that ended the search, or the choice of its answer. The nodes written until then
    are kept."""

    @property
    def failure(self) -> str:
        """The error as text; empty without one."""
        if self.error is None:
            return ""
        if isinstance(self.error, Interrupted):
            return "interrupted"
        if isinstance(self.error, BackendError | SandboxUnavailable):
            return str(self.error)
        return f"{type(self.error).__name__}: {self.error}"

    @property
    def ended(self) -> str:
        """Why the search opened no more nodes: failed, a `TreeEnd`, or stopped."""
        return "failed" if self.failure else self.end or "stopped"

    @property
    def solved(self) -> bool:
        """Whether the answer passes all public tests."""
        return self.answer is not None and public_score(self.answer.verification) == 1.0


def search_problem(
    team: LocalTeam, problem: Problem, scorer: Scorer | None = None, sink: RolloutSink | None = None
) -> Outcome:
    """Searches until the budget of `team.config.search` is spent, and chooses the answer.

    No error of an agent, the sandbox or the reward model loses the tree: the outcome holds the
    first one as its `error`.
    """
    started = time.monotonic()
    config = team.config
    forest = Forest([problem], team.names, config.search, public_score, [config.seed])
    (tree,) = forest.trees
    failures: list[Exception] = []
    with _noting(failures):
        team.grow("search", forest, sink=sink)
    rewards, answer = choose(tree, None)
    if scorer and not team.leaving:
        with _noting(failures):
            rewards, answer = choose(tree, scorer)
    seconds = time.monotonic() - started
    return Outcome(tree, forest.end(tree), rewards, answer, seconds, next(iter(failures), None))


@contextmanager
def _noting(failures: list[Exception]) -> Iterator[None]:
    """Catches an exception that ends the block, and appends it to `failures`."""
    try:
        yield
    except Exception as error:  # even a defect must not lose the results of hours
        failures.append(error)


def choose(tree: GrowingTree, scorer: Scorer | None) -> tuple[dict[int, float], ClosedNode | None]:
    """Returns the reward of each verified node, and the node that is the answer."""
    (rewards,) = rewards_of([tree], scorer)
    chosen = tree_answer(tree, rewards)
    return rewards, tree.written[chosen] if chosen is not None else None


def record(outcome: Outcome, team: LocalTeam) -> dict[str, Any]:
    """Returns the whole search as plain JSON data."""
    tree, config = outcome.tree, team.config
    nodes = [tree.written[node] for node in sorted(tree.written)]
    return {
        "version": RECORD_VERSION,
        "problem": {"id": tree.problem.id, "statement": tree.problem.statement},
        "agents": {agent.name: agent.model for agent in config.agents},
        "settings": {
            "seed": config.seed,
            "deterministic": config.compute.deterministic,
            "search": config.search.model_dump(mode="json"),
            "inference": config.inference.model_dump(mode="json"),
            "sampling": {a.name: a.sampling.model_dump(mode="json") for a in config.agents},
        },
        **summary(outcome),
        "nodes": [_node(node, outcome.rewards.get(node.node)) for node in nodes],
        "unfinished": [
            {"node": node.id, "parent": node.parent, "agent": node.agent}
            for node in tree.search.nodes[1:]
            if node.id not in tree.written
        ],
    }


def summary(outcome: Outcome) -> dict[str, Any]:
    """Returns answer, ending and costs as plain JSON data."""
    written, answer = outcome.tree.written, outcome.answer
    agents = [node.agent for node in written.values()]
    return {
        "answer": answer and _node(answer, outcome.rewards.get(answer.node)),
        "solved": outcome.solved,
        "ended": outcome.ended,
        "failure": outcome.failure or None,
        "nodes_written": len(written),
        "nodes_by_agent": {name: agents.count(name) for name in outcome.tree.search.agents},
        "nodes_dropped": sum(node.score is None for node in written.values()),
        "tokens": outcome.tree.spending.tokens,
        "seconds": round(outcome.seconds, 3),
    }


def _node(node: ClosedNode, reward: float | None) -> dict[str, Any]:
    verification, generation = node.verification, node.answer.generation
    scored = node.score is not None
    return {
        "node": node.node,
        "parent": node.parent,
        "agent": node.agent,
        "draws": node.draws,
        **_prompt(node.answer),
        "text": node.answer.text,
        "program": node.answer.program,
        "public": node.score,
        "tests": msgspec.to_builtins(verification.public),
        "private_passed": verification.private_passed if scored else None,
        "verdict": verification.verdict,
        "error": verification.error,
        "reward": reward,
        "tokens": generation.tokens,
        "stop": generation.stop,
        "seconds": {"writing": generation.seconds, "verifying": verification.seconds},
    }


def _prompt(answer: Answer) -> dict[str, Any]:
    """Returns prompt and output: as token ids where they are known, otherwise messages."""
    if answer.messages:
        return {"messages": list(answer.messages)}
    generation = answer.generation
    return {
        "prompt_ids": list(generation.prompt_ids),
        "output_ids": list(generation.output_ids),
        "logprobs": list(generation.logprobs),
    }
