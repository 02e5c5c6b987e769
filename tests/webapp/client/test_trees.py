"""Tests of the trees that integrations record, without a trainer: what the server will take."""

import msgspec

import grove
from engine.config.names import name_fault
from tests.webapp.client.test_spool import lines_of
from webapp.client.tracking.trees import Node, Tree, named, record_step
from webapp.client.tracking.values import is_shown
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


def test_no_problem_has_a_name_that_the_server_refuses():
    everything = [*map(chr, range(0x10000)), *map(chr, range(0xE0000, 0xE0200))]
    for start in range(0, len(everything), 30):
        problem = "".join(everything[start : start + 30])
        assert not name_fault(named(problem)), ascii(problem)
    assert named("\ufeffAdd\u200b 1\xa0and 2.").startswith("Add 1 and 2. ")
    assert named("Add\u200b 1") != named("Add 1")


def test_no_agent_is_taken_that_the_server_refuses():
    everything = [*map(chr, range(0x10000)), *map(chr, range(0xE0000, 0xE0200))]
    wrong = [ascii(one) for one in everything if is_shown(one) and name_fault(one)]
    assert not wrong
    assert is_shown("oak 2") and is_shown("\u6a39") and not is_shown(" ") and not is_shown("")


def encoded(events):
    return msgspec.json.encode({"events": events})
