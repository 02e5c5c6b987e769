"""Recorder of trees: the events of nodes as they open and close, in training and in searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import UNSET

from engine.events.log import EventLog
from engine.events.vocabulary import NodeClosed, NodeOpened, NodeText, TreeClosed, TreeOpened
from engine.rollout.forest import ClosedNode, GrowingTree, OpenNode


@dataclass
class TreeRecorder:
    """Emits the events of one step's trees as they grow (a `RolloutSink`)."""

    log: EventLog
    step: int
    with_tags: bool = False
    """Whether events of trees hold the tags of their problem."""

    def open_trees(self, trees: Sequence[GrowingTree]) -> None:
        for tree in trees:
            tree.id = self.log.seq + 1
            problem = tree.problem
            tags = list(problem.tags) if self.with_tags else UNSET
            opened = TreeOpened(self.step, problem.id, problem.statement, problem.difficulty, tags)
            self.log.append(opened, tree=tree.id)

    def opened(self, claim: OpenNode) -> None:
        expansion = claim.expansion
        payload = NodeOpened(expansion.agent, expansion.parent, expansion.depth, expansion.draws)
        self.log.append(payload, tree=claim.tree.id, node=claim.node)

    def closed(self, tree: GrowingTree, node: ClosedNode) -> None:
        generation, verification = node.answer.generation, node.verification
        tokens = generation.tokens
        if node.answer.prompt:
            shown = node.answer.tokens
            logprobs = [round(value, 4) for value in generation.logprobs[: len(shown)]]
            text = NodeText(node.answer.prompt, list(shown), logprobs)
            self.log.append(text, tree=tree.id, node=node.node)
        payload = NodeClosed(
            program=node.answer.program,
            verdict=verification.verdict,
            score=node.score,
            fraction=verification.fraction,
            tests=list(verification.public),
            tokens=tokens,
            stop=generation.stop,
            mean_logprob=sum(generation.logprobs) / max(1, tokens),
            policy_version=generation.policy_version,
            seconds=generation.seconds + verification.seconds,
            error=verification.error,
            no_program=node.answer.no_program or UNSET,
            pieces=[(one.version, one.tokens) for one in generation.pieces] or UNSET,
        )
        self.log.append(payload, tree=tree.id, node=node.node)

    def ended(self, tree: GrowingTree, filtered: bool = False) -> None:
        closed = TreeClosed(len(tree.written), tree.solved, mean(tree.scores()), filtered)
        self.log.append(closed, tree=tree.id)


def mean(values: Sequence[float]) -> float:
    """Returns the mean; 0 of no values."""
    return sum(values) / len(values) if values else 0.0
