"""Trees of a step as events of the telemetry, for trainers that keep rollouts elsewhere. Pure.

Invariants: a node follows its parent; a reward of 1 or more counts as solved; a node without a
reward is not credited. Nothing here cuts a text.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

AGENT = "policy"
"""Name of the agent of a trainer that has only one."""
SOLVED = 1.0
Emit = Callable[[str, Mapping[str, Any], int | None, int | None], None]
"""Takes kind, payload, tree and node of an event."""


@dataclass(frozen=True)
class Node:
    """One answer; a reward of None could not be computed, an advantage of None is not known."""

    text: str
    reward: float | None
    advantage: float | None = None
    tokens: int = 0
    is_cut: bool = False
    agent: str = AGENT
    parent: int = 0
    """Number of an earlier node of the tree, from 1; 0 is the problem."""


@dataclass(frozen=True)
class Tree:
    problem: str
    nodes: Sequence[Node]
    name: str = ""
    """Short name of the problem, that of `named` if empty."""

    @property
    def is_solved(self) -> bool:
        return any(node.reward is not None and node.reward >= SOLVED for node in self.nodes)

    @property
    def is_flat(self) -> bool:
        """Whether nothing is learned from the tree: all its advantages are 0."""
        return all(node.advantage == 0 for node in self.nodes)


def record_step(
    emit: Emit, new_tree: Callable[[], int], step: int, trees: Sequence[Tree],
    seconds: float = 0.0, training_seconds: float = 0.0,
) -> None:  # fmt: skip
    """Emits all events of one step: its start, its trees, its end."""
    emit("step.start", {"step": step, "trees": len(trees)}, None, None)
    for tree in trees:
        _record_tree(emit, new_tree(), step, tree)
    nodes = [node for tree in trees for node in tree.nodes]
    rewarded = [node for node in nodes if node.reward is not None]
    by_agent: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        by_agent[node.agent].append(node)
    emit("step.end", {
        "step": step, "seconds": seconds, "phases": {}, "nodes": len(nodes),
        "reward": _mean(rewarded),
        "solved": sum(tree.is_solved for tree in trees) / max(1, len(trees)),
        "node_share": {name: len(own) / len(nodes) for name, own in by_agent.items()},
        "reward_by_agent": {name: _mean(own) for name, own in by_agent.items()},
        "filtered_trees": sum(tree.is_flat for tree in trees),
        "dropped_nodes": len(nodes) - len(rewarded),
        "tokens": sum(node.tokens for node in nodes),
        "training_seconds": training_seconds, "trees": len(trees),
    }, None, None)  # fmt: skip


def _record_tree(emit: Emit, tree: int, step: int, grown: Tree) -> None:
    problem = grown.name or named(grown.problem)
    opened = {"step": step, "problem": problem, "statement": grown.problem}
    emit("tree.open", opened, tree, None)
    depths = [0]
    for number, node in enumerate(grown.nodes, 1):
        depths.append(depths[node.parent] + 1)
        _record_node(emit, tree, number, node, depths[number], step)
    emit("tree.close", {
        "nodes": len(grown.nodes), "solved": grown.is_solved, "mean_score": _mean(grown.nodes),
        "filtered": grown.is_flat,
    }, tree, None)  # fmt: skip


def _record_node(emit: Emit, tree: int, number: int, node: Node, depth: int, step: int) -> None:
    opening = {"agent": node.agent, "parent": node.parent, "depth": depth, "draws": {}}
    emit("node.open", opening, tree, number)
    reward = node.reward
    emit("node.close", {
        "program": node.text,
        "verdict": "passed" if reward is not None and reward >= SOLVED else "wrong_answer",
        "score": reward, "fraction": min(1.0, max(0.0, reward or 0.0)), "tests": [],
        "tokens": node.tokens, "stop": "max_tokens" if node.is_cut else "end_of_text",
        "mean_logprob": 0.0, "policy_version": max(0, step - 1), "seconds": 0.0,
    }, tree, number)  # fmt: skip
    if reward is not None and node.advantage is not None:
        emit("node.credit", {"shaped": reward, "advantage": node.advantage}, tree, number)


def named(problem: str) -> str:
    """Returns a short name of a problem, the same for equal problems alone. It has none of the
    characters that the server refuses in names: zero-width ones, for example, are left out."""
    digest = hashlib.sha256(problem.encode("utf-8", "replace")).hexdigest()[:8]
    start = "".join(one for one in " ".join(problem.split())[:40] if one.isprintable())
    return f"{start} {digest}".strip()


def _mean(nodes: Iterable[Node]) -> float:
    rewards = [node.reward for node in nodes if node.reward is not None]
    return sum(rewards) / len(rewards) if rewards else 0.0
