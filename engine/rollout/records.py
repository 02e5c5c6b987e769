"""Closed trees as columns: for credit, and for what remembers them."""

from __future__ import annotations

from collections.abc import Mapping

from engine.credit.assign import Credit, TreeRecord
from engine.memory.pass_rates import PassRates
from engine.memory.protocol import SeenTree
from engine.rollout.forest import GrowingTree


def record_of(
    tree: GrowingTree, owners: Mapping[str, str] | None = None, rates: PassRates | None = None
) -> TreeRecord:
    """Returns the closed nodes of a tree, in the order of creation, as credit takes them. `owners`
    are the owners of weights by agent; without, each agent has its own. `rates` are there if a
    method needs them."""
    nodes = [tree.written[node] for node in sorted(tree.written)]
    before = {"pass_rates": rates.rates_of([tree.number]) * len(nodes)} if rates else {}
    generations = [node.answer.generation for node in nodes]
    return TreeRecord(
        node_ids=[node.node for node in nodes],
        parents=[node.parent for node in nodes],
        agents=[node.agent for node in nodes],
        scores=[node.score for node in nodes],
        lengths=[len(one.output_ids) for one in generations],
        further={
            "problems": [tree.number] * len(nodes),
            "owners": [(owners or {}).get(node.agent, node.agent) for node in nodes],
            "prompts": [one.prompt_ids for one in generations],
            "tokens": [one.output_ids for one in generations],
            "logprobs": [one.logprobs for one in generations],
            "outcomes": [node.verification for node in nodes],
            "texts": [node.answer.text for node in nodes],
            "programs": [node.answer.program for node in nodes],
            **before,
        },
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
