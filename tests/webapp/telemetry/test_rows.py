"""Tests of events as bytes on the wire."""

import json

import pytest

from engine.events.vocabulary import KINDS, Event
from tests.helpers.sample_log import Sample, sample_events
from webapp.telemetry.ingest.rows import decode_event, encode_row


@pytest.mark.parametrize(
    "tree, node, payload, expected",
    [
        (None, None, "{}", {}),
        (None, None, '{"tree": 0.5}', {"tree": 0.5}),
        (7, None, "{}", {"tree": 7}),
        (7, 0, '{"a": "}{"}', {"tree": 7, "node": 0, "a": "}{"}),
    ],
)
def test_row_fields_and_payload_become_one_object(tree, node, payload, expected):
    assert json.loads(encode_row((3, 99, "node.open", tree, node, payload))) == [
        3, 99, "node.open", expected
    ]  # fmt: skip


def test_a_kind_cannot_break_out_of_its_string():
    assert json.loads(encode_row((1, 2, 'a","b', None, None, "{}")))[2] == 'a","b'


def through_the_wire(event):
    milliseconds = int(event.time * 1000)
    row = event.seq, milliseconds, event.kind, event.tree, event.node, json.dumps(event.payload)
    return decode_event(*json.loads(encode_row(row)))


def test_a_client_reads_every_event_of_a_run_as_it_was_written():
    events = list(sample_events(Sample(steps=2, trees=2, nodes=3)))
    assert {"eval.result", "tree.open", "node.close", "run.state"} <= {e.kind for e in events}
    for event in events:
        back = through_the_wire(event)
        assert (back.tree, back.node, back.payload) == (event.tree, event.node, event.payload)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_payload_field_is_never_read_as_a_row_field(kind):
    payload = dict.fromkeys(KINDS[kind].__struct_fields__, 1)
    event = Event(1, 2.0, kind, None, None, payload)
    assert through_the_wire(event) == event
