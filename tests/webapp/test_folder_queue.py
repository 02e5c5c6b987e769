"""Tests of the queue of one machine: whole messages, taken once, whichever process is killed."""

from __future__ import annotations

import logging
import threading

import pytest
from kombu import Connection, Exchange, Queue
from kombu.exceptions import OperationalError

from tests.helpers.file_limit import files_of_at_most
from webapp import folder_queue

QUEUE = Queue("grove", Exchange("grove", "direct"), routing_key="grove")
"""As Celery declares it."""


@pytest.fixture
def folder(tmp_path):
    folder_queue.register()
    queue = tmp_path / "queue"
    queue.mkdir()
    return queue


def connected(folder):
    options = {"data_folder_in": str(folder), "data_folder_out": str(folder)}
    return Connection("filesystem://localhost", transport_options=options)


def send(folder, *bodies):
    with connected(folder) as broker, broker.Producer() as producer:
        for body in bodies:
            producer.publish(body, exchange=QUEUE.exchange, routing_key="grove", declare=[QUEUE])


def taken(folder):
    """The bodies of all messages that are left."""
    with connected(folder) as broker:
        queue, bodies = broker.SimpleQueue(QUEUE), []
        while True:
            try:
                message = queue.get_nowait()
            except queue.Empty:
                return bodies
            message.ack()
            bodies.append(message.payload)


def test_messages_are_taken_once_and_nothing_else_is_left(folder):
    send(folder, *range(50))
    assert len(list(folder.iterdir())) == 50
    found = [[], []]

    def take(bodies):
        bodies.extend(taken(folder))

    takers = [threading.Thread(target=take, args=[bodies]) for bodies in found]
    for taker in takers:
        taker.start()
    for taker in takers:
        taker.join()
    assert sorted(found[0] + found[1]) == list(range(50))
    assert not list(folder.iterdir()) and [one.name for one in folder.parent.iterdir()] == ["queue"]


def test_what_killed_processes_and_full_disks_left_stops_neither_sender_nor_taker(folder, caplog):
    control = folder.parent / "control"
    control.mkdir()
    (control / "grove.exchange").touch()  # of kombu's own transport, killed as it wrote its table
    (folder / "1_empty.grove.msg").touch()
    (folder / "2_cut.grove.msg").write_bytes(b'{"body": "')
    (folder / "3_whole.grove.msg.draft").write_bytes(b"{}")
    send(folder, "look")
    with caplog.at_level(logging.WARNING):
        assert taken(folder) == ["look"]
    assert caplog.text.count("is no message; it was removed") == 2
    assert [one.name for one in folder.iterdir()] == ["3_whole.grove.msg.draft"]


def test_a_message_that_cannot_be_written_is_an_error_of_the_system(folder):
    folder.rmdir()
    with pytest.raises((OSError, OperationalError)):
        send(folder, "look")


def test_a_full_disk_keeps_no_part_of_a_message(folder):
    with files_of_at_most(20), pytest.raises((OSError, OperationalError)):
        send(folder, "look")
    assert list(folder.iterdir()) == []
    send(folder, "look")
    assert taken(folder) == ["look"]


def test_a_message_has_its_name_only_once_it_is_whole(folder, monkeypatch):
    seen = []
    rename = folder_queue.Path.rename
    monkeypatch.setattr(
        folder_queue.Path, "rename",
        lambda draft, target: (seen.append((draft.name, taken(folder))), rename(draft, target)),
    )  # fmt: skip
    send(folder, "look")
    ((name, before),) = seen
    assert name.endswith(folder_queue.DRAFT) and before == []
    assert taken(folder) == ["look"]
