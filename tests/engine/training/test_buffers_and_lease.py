"""Tests of buffers, which never split a tree, of the lease, and of progress and its schedule."""

import json
import os
import threading
import time
from dataclasses import replace

from engine.policy.learner.rows import TrainingRow
from engine.run.lease import FILE_NAME, LeaseGuard
from engine.training.buffers import AgentBuffer
from engine.training.progress import Progress
from tests.helpers.waiting import eventually


def row(number, version=0):
    return TrainingRow([1, 2], [number], [-0.5], 1.0, version)


def test_a_buffer_keeps_what_does_not_fill_a_batch():
    buffer = AgentBuffer(batch_nodes=4)
    buffer.add_tree([row(1), row(2)])
    buffer.add_tree([])
    assert buffer.take() == []
    buffer.add_tree([row(3), row(4), row(5)])
    assert [r.output_ids[0] for r in buffer.take()] == [1, 2, 3, 4, 5]
    assert buffer.take() == []


def numbers(rows):
    return [row.output_ids[0] for row in rows]


def test_a_limited_batch_leaves_whole_trees_for_the_next():
    buffer = AgentBuffer(batch_nodes=3, max_batch_nodes=4)
    for tree in ([1, 2], [3, 4], [5], [6, 7, 8, 9, 10, 11], [12]):
        buffer.add_tree([row(number) for number in tree])
    assert numbers(buffer.take()) == [1, 2, 3, 4]
    assert numbers(buffer.take()) == [5, 6, 7, 8, 9, 10, 11], "a tree is never split"
    assert numbers(buffer.take()) == []
    buffer.add_tree([row(13), row(14)])
    assert numbers(buffer.take()) == [12, 13, 14]


def test_a_stale_row_fills_no_batch_and_is_counted_once():
    buffer = AgentBuffer(batch_nodes=3, max_staleness=1)
    buffer.add_tree([row(1), row(2)])
    buffer.version = 2
    buffer.add_tree([row(3, version=1)])
    assert buffer.take() == [], "two of the three are too old: the third waits"
    buffer.add_tree([row(4, version=1), row(5, version=2)])
    copy = AgentBuffer(batch_nodes=3, max_staleness=1)
    copy.load_state(buffer.state())
    assert numbers(buffer.take()) == numbers(copy.take()) == [3, 4, 5]
    assert (
        (buffer.record_update(3), buffer.record_update(4))
        == (copy.record_update(3), copy.record_update(4))
        == (2, 0)
    )


def test_rows_come_back_with_advantages_of_tokens_and_columns_and_older_ones_without():
    whole = replace(row(1), advantage=[0.5, -1.0], columns={"scores": 1.0})
    buffer, copy = AgentBuffer(batch_nodes=1), AgentBuffer(batch_nodes=1)
    buffer.add_tree([whole, row(2)])
    state = json.loads(json.dumps(buffer.state()))
    older = state["trees"][0][1]
    del older["columns"]
    copy.load_state(state)
    assert copy.take() == [whole, row(2)]


def test_a_buffer_comes_back_from_its_state():
    buffer, copy = AgentBuffer(3), AgentBuffer(3)
    buffer.add_tree([row(1)])
    buffer.add_tree([row(2)])
    copy.load_state(buffer.state())
    copy.add_tree([row(3)])
    assert copy.take() == [row(1), row(2), row(3)]


def test_a_lease_that_is_touched_keeps_the_engine(tmp_path):
    stop = threading.Event()
    (tmp_path / FILE_NAME).touch()
    guard = LeaseGuard(tmp_path, 3600, stop.set)
    guard._started -= 7200  # what keeps it is the file alone
    assert guard.age() < 3600
    assert not stop.is_set()
    guard.close()


def test_a_lapsed_lease_stops_the_engine(tmp_path):
    stop = threading.Event()
    guard = LeaseGuard(tmp_path, 10_000, stop.set)
    guard._started = time.time() - 15_000  # at 20,000 it would end this process
    lease = tmp_path / FILE_NAME
    lease.touch()
    os.utime(lease, (time.time() - 15_000,) * 2)
    eventually(stop.is_set, "the guard to notice")
    guard.close()


def test_progress_is_the_larger_of_steps_and_minutes():
    from engine.config.training import TrainingConfig

    progress = Progress()
    progress.finish_step(5, 32, 30.0)
    assert progress.share(TrainingConfig(steps=10)) == 0.5
    assert progress.share(TrainingConfig(steps=1000, minutes=1)) == 0.5
    assert progress.share(TrainingConfig(steps=5)) == 1.0
    assert Progress.of(progress.state()) == progress
