"""Tests of the event log: append-only, contiguous, one writer, safe against a torn tail."""

import pytest

from engine.events.log import EventLog, EventReader, LogDamaged, read_all
from engine.events.vocabulary import KINDS, LogLine, NodeOpened, RunResumed


def fill(log, count):
    for number in range(count):
        log.append(LogLine("info", f"line {number} äöü \u2028"))


def test_seq_grows_by_one_over_restarts(tmp_path):
    log = EventLog(tmp_path)
    fill(log, 5)
    log.close()
    log = EventLog(tmp_path)
    fill(log, 5)
    log.close()
    assert [e.seq for e in read_all(tmp_path)] == list(range(1, 11))


@pytest.mark.parametrize("torn", [b'{"seq":4,"time":1.5,"ki', b"{", b'{"seq":99' + b"x" * 200_000])
def test_a_torn_last_line_is_never_read_and_is_cut_off_by_the_next_writer(tmp_path, torn):
    log = EventLog(tmp_path)
    fill(log, 3)
    log.close()
    with log.path.open("ab") as file:
        file.write(torn)
    reader = EventReader(tmp_path)
    assert [e.seq for e in reader.read()] == [1, 2, 3]
    assert reader.read() == []
    log = EventLog(tmp_path)
    assert log.append(RunResumed(2)) == 4
    log.close()
    assert [e.seq for e in reader.read()] == [4]


def test_a_second_writer_is_refused(tmp_path):
    log = EventLog(tmp_path)
    with pytest.raises(RuntimeError, match="another engine"):
        EventLog(tmp_path)
    log.close()


def test_a_reader_takes_batches_and_lines_larger_than_its_window(tmp_path):
    log = EventLog(tmp_path)
    log.append(LogLine("info", "x" * 5000))
    fill(log, 10)
    log.close()
    reader = EventReader(tmp_path)
    seen = []
    while batch := reader.read(limit=3, max_bytes=1000):
        assert len(batch) <= 3
        seen += [e.seq for e in batch]
    assert seen == list(range(1, 12))


def test_a_reader_of_a_run_that_has_not_begun_finds_nothing(tmp_path):
    assert EventReader(tmp_path).read() == []


def test_events_come_back_as_their_types(tmp_path):
    log = EventLog(tmp_path)
    payload = NodeOpened("oak", 0, 1, {"levels": [{"node": 0, "gen": 0.5}]})
    log.append(payload, tree=7, node=1)
    log.close()
    (event,) = read_all(tmp_path)
    assert (event.tree, event.node, event.kind) == (7, 1, "node.open")
    assert event.typed() == payload


def test_kinds_of_the_vocabulary_are_frozen():
    """Only additions are allowed: a kind may be added here, none may be renamed or removed."""
    assert set(KINDS) >= {
        "run.state", "run.resumed", "run.waiting", "run.planned", "step.start", "step.end",
        "tree.open", "node.open", "node.text", "node.close", "node.credit", "tree.close",
        "agent.update", "tree.learned", "eval.result", "checkpoint.saved", "search.answer",
        "system.sample",
        "log.line", "error",
    }  # fmt: skip


def test_an_unserializable_event_takes_no_seq(tmp_path):
    log = EventLog(tmp_path)
    with pytest.raises(UnicodeEncodeError):
        log.append(LogLine("info", "half of a pair: \ud800"))
    assert log.append(LogLine("info", "whole")) == 1
    log.close()
    assert [e.seq for e in read_all(tmp_path)] == [1]


@pytest.mark.parametrize("damage", [b"\x00" * 50, b"{}", b'{"seq":', b"\xff\xfe", b'{"seq":"4"}'])
def test_a_line_that_is_no_event_is_named_once_those_before_it_were_read(tmp_path, damage):
    log = EventLog(tmp_path)
    fill(log, 3)
    offset = log.path.stat().st_size
    with log.path.open("ab") as file:
        file.write(damage + b"\n")
    fill(log, 1)
    log.close()
    reader = EventReader(tmp_path)
    assert [e.seq for e in reader.read()] == [1, 2, 3]
    for _ in range(2):
        with pytest.raises(LogDamaged, match=f"{tmp_path}.*byte {offset} .*fork of its last"):
            reader.read()
