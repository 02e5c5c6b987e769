"""Tests of the events of nodes."""

from engine.config.credit import CreditConfig
from engine.config.search import SearchConfig
from engine.environments.types import Settled
from engine.events.log import EventLog, read_all
from engine.events.vocabulary import StopReason, Verdict
from engine.policy.types import Answer, Generation, Piece
from engine.problems.generator import make_problem
from engine.rollout.forest import Forest, training_score
from engine.rollout.recorder import TreeRecorder
from engine.sandbox.host.verify import Verification


def test_a_node_says_which_versions_wrote_it_if_there_are_several(tmp_path):
    search = SearchConfig(nodes_per_tree=2, nodes_in_flight=2)
    forest = Forest([make_problem(2, 0)[0]], ("oak",), search, training_score(CreditConfig()), [1])
    log = EventLog(tmp_path)
    recorder = TreeRecorder(log, 1)
    recorder.open_trees(forest.trees)
    settled = Settled(Verification(Verdict.WRONG_ANSWER, 0.5, (None,), 1, False), "seen")
    written = {"stop": StopReason.END_OF_TEXT, "policy_version": 3, "seconds": 0.0}
    for claim, pieces in zip(
        forest.claim(forest.trees), ((), (Piece(3, 2), Piece(5, 1))), strict=True
    ):
        generation = Generation([1], [2, 3, 4], [-0.1] * 3, pieces=pieces, **written)
        for node in forest.close(claim, Answer(generation, "x"), settled):
            recorder.closed(claim.tree, node)
    log.close()
    whole, carried = (e.payload for e in read_all(tmp_path) if e.kind == "node.close")
    assert whole["policy_version"] == carried["policy_version"] == 3
    assert "pieces" not in whole and carried["pieces"] == [[3, 2], [5, 1]]
