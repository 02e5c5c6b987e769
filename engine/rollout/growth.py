"""Growth of trees by a scheduler: nodes that open become its tasks, verified tasks close nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.rollout.forest import Forest, GrowingTree, OpenNode
from engine.rollout.scheduler import Task, VerifiedTask
from engine.rollout.types import RolloutSink


def task_of(claim: OpenNode) -> Task:
    """Returns the task of an opened node, which is its mark."""
    return Task(claim.expansion.agent, claim.tree.request(claim.expansion), claim)


def opened_tasks(
    forest: Forest, trees: Sequence[GrowingTree], sink: RolloutSink | None
) -> Iterable[Task]:
    """Opens the nodes that the budgets of these trees allow now; yields their tasks."""
    for claim in forest.claim(trees):
        if sink:
            sink.opened(claim)
        yield task_of(claim)


def close_nodes(forest: Forest, done: VerifiedTask, sink: RolloutSink | None) -> None:
    """Closes the node of a verified task, and with it the turns of its episode before it; none
    while the episode goes on."""
    claim: OpenNode = done.task.mark
    for node in forest.close(claim, done.answer, done.settled):
        if sink:
            sink.closed(claim.tree, node)
