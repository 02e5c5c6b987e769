"""Closed trees as columns: for credit, and for what remembers them."""

from __future__ import annotations

from engine.credit.assign import Credit, TreeRecord
from engine.memory.protocol import SeenTree
from engine.rollout.forest import GrowingTree


def record_of(tree: GrowingTree) -> TreeRecord:
    """Returns the closed nodes of a tree, in the order of creation, as credit takes them."""
    nodes = [tree.written[node] for node in sorted(tree.written)]
    return TreeRecord(
        node_ids=[node.node for node in nodes],
        parents=[node.parent for node in nodes],
        agents=[node.agent for node in nodes],
        scores=[node.score for node in nodes],
        lengths=[len(node.answer.generation.output_ids) for node in nodes],
        outcomes=[node.verification for node in nodes],
        texts=[node.answer.text for node in nodes],
        programs=[node.answer.program for node in nodes],
    )


def seen(tree: GrowingTree, credit: Credit) -> SeenTree:
    """Returns a tree of a step as memories see it."""
    record = record_of(tree)
    return SeenTree(
        problem=tree.number,
        nodes=record.node_ids,
        parents=record.parents,
        agents=record.agents,
        scores=record.scores,
        filtered=credit.filtered,
    )
