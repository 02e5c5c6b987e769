"""Tests of the trees that integrations record, without a trainer: what the server will take."""

import msgspec

import grove
from tests.webapp.client.test_spool import lines_of
from webapp.client.tracking.trees import Node, Tree, named, record_step
from webapp.telemetry.ingest.external_engines import read_batch


def test_groups_of_a_step_are_events_that_the_server_takes(tmp_path):
    answers = [
        Node("4", 1.0, 1.2, 6),
        Node("five", 0.25, -0.3, 8, is_cut=True),
        Node("", None, 0.0),
        Node("4!", 1.0, None, agent="critic", parent=2),
    ]
    flat = [Node("x", 0.5, 0.0), Node("y", 0.5, 0.0)]
    with grove.init(mode="offline", dir=tmp_path) as run:
        trees = [Tree("What is 2 + 2?", answers), Tree("Add 1 and 4.", flat)]
        record_step(run.emit, run.new_tree, 3, trees, 2.0, 6.0)
    _, lines = lines_of(tmp_path)
    sent = read_batch(encoded([{"seq": n, **line} for n, line in enumerate(lines, 1)]))
    kinds = [event.kind for event in sent.events]
    assert kinds.count("node.close") == 6 and kinds.count("tree.close") == 2
    opened = [
        (e.payload["parent"], e.payload["depth"]) for e in sent.events if e.kind == "node.open"
    ]
    assert opened == [(0, 1), (0, 1), (0, 1), (2, 2), (0, 1), (0, 1)]
    closed = [e.payload for e in sent.events if e.kind == "node.close"]
    assert [one["score"] for one in closed[:4]] == [1.0, 0.25, None, 1.0]
    assert [one["stop"] for one in closed[:2]] == ["end_of_text", "max_tokens"]
    credited = [e.payload["advantage"] for e in sent.events if e.kind == "node.credit"]
    assert credited == [1.2, -0.3, 0.0, 0.0]
    (end,) = [e.payload for e in sent.events if e.kind == "step.end"]
    assert (end["nodes"], end["dropped_nodes"], end["filtered_trees"], end["solved"]) == (
        6,
        1,
        1,
        0.5,
    )
    assert end["node_share"] == {"policy": 5 / 6, "critic": 1 / 6} and end["step"] == 3


def test_a_problem_has_a_short_name_that_tells_it_from_others():
    first, second = named("x" * 500), named("x" * 501)
    assert first != second and len(first) < 60 and named("2 + 2?").startswith("2 + 2?")


def encoded(events):
    return msgspec.json.encode({"events": events})
