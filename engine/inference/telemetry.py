"""Recorder of a search at test time: the events that training emits, and the search's answer.

Invariant: the recorder of training (`engine.rollout.recorder`) emits the tree's events; the tree
belongs to step 1, so a search that begins again voids it by `run.resumed` of step 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.events.log import EventLog
from engine.events.vocabulary import RunPlanned, RunResumed, SearchAnswered, StepStarted
from engine.inference.search import Outcome
from engine.inference.selection import rule_of
from engine.rollout.forest import ClosedNode, GrowingTree, OpenNode
from engine.rollout.recorder import TreeRecorder

STEP = 1


class SearchRecorder:
    """Emits events for the one tree of a search as it grows (a `RolloutSink`)."""

    def __init__(self, log: EventLog, agents: Sequence[str]):
        self.log = log
        self._recorder = TreeRecorder(log, STEP)
        if log.continued:
            log.append(RunResumed(0))
        log.append(RunPlanned(STEP, list(agents)))

    def opened(self, claim: OpenNode) -> None:
        if claim.tree.id == 0:
            self.log.append(StepStarted(STEP, 1))
            self._recorder.open_trees([claim.tree])
        self._recorder.opened(claim)

    def closed(self, tree: GrowingTree, node: ClosedNode) -> None:
        self._recorder.closed(tree, node)

    def answered(self, outcome: Outcome, has_reward_model: bool, stopped: bool) -> None:
        """Emits the end of the tree, complete or not, and the answer."""
        tree, node = outcome.tree, outcome.answer
        if tree.id:
            self._recorder.ended(tree)
        answer = SearchAnswered(
            program=node.answer.program if node else "",
            agent=node.agent if node else "",
            rule=rule_of(has_reward_model),
            passed=node.verification.public_passed if node else 0,
            tests=len(tree.problem.public_tests),
            private_passed=node.verification.private_passed if node else None,
            ended="stopped" if stopped else outcome.ended,
            nodes=len(tree.written),
            tokens=tree.spending.tokens,
            seconds=round(outcome.seconds, 3),
            reward=outcome.rewards.get(node.node) if node else None,
        )
        self.log.append(answer, tree=tree.id or None, node=node.node if node else None)
