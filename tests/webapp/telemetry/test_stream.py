"""Tests of the stream on a real server: no event lost, none repeated, none for strangers."""

import json
import socket
import threading
import uuid

import pytest
from django.db import connection
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.helpers.builders import a_cast, a_held_run, a_run, an_event, some_events, store
from tests.webapp.telemetry.stream_server import Client, a_server, a_session
from webapp.comments.services import change_comment, delete_comment, write_comment
from webapp.comments.targets import Target
from webapp.experiments.models import Run
from webapp.experiments.services import request_stop
from webapp.projects.models import Membership
from webapp.telemetry.ingest.ingest import ingest
from webapp.telemetry.stream import protocol

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def scene():
    """The cast, a held run, its fencing token, and Bob's session."""
    cast = a_cast()
    run, fencing = a_held_run(cast)
    return cast, run, fencing, a_session(cast.bob)


def test_stored_events_are_replayed_in_order(port, scene):
    _, run, fencing, session = scene
    store(run, fencing, 1200)
    with Client(port, session) as client:
        answer = client.follow(run)
        assert answer["mode"] == "replay" and answer["head"] == 1200 and answer["oldest"] == 1
        assert answer["epoch"] == str(run.epoch)
        assert client.hear_until(1200) == list(range(1, 1201))
        batches = [said for said in client.said if said["type"] == "batch"]
        assert max(len(batch["events"]) for batch in batches) <= protocol.BATCH_EVENTS


def test_an_event_carries_time_kind_and_its_position(port, scene):
    _, run, fencing, session = scene
    event = an_event(1, "node.credit", tree=3, node=2, shaped=0.5, advantage=-1.25)
    ingest(run.pk, fencing, [event])
    with Client(port, session) as client:
        client.follow(run)
        client.hear_until(1)
        seq, t_ms, kind, payload = client.events[0]
    assert (seq, kind) == (1, "node.credit") and abs(t_ms - event.time * 1000) < 1
    assert payload == {"tree": 3, "node": 2, "shaped": 0.5, "advantage": -1.25}


def test_later_events_are_sent_on_notice(notified_port, scene):
    _, run, fencing, session = scene
    with Client(notified_port, session) as client:
        client.follow(run)
        client.hear_of("status")
        ingest(run.pk, fencing, some_events(1, 3))
        assert client.hear_until(3) == [1, 2, 3]


def test_the_poll_reads_events_without_a_notice(port, scene):
    _, run, fencing, session = scene
    with Client(port, session) as client:
        client.follow(run)
        client.hear_of("status")
        ingest(run.pk, fencing, some_events(1, 3), notify=False)
        assert client.hear_until(3) == [1, 2, 3]


def test_a_reconnect_goes_on_after_the_cursor(port, scene):
    _, run, fencing, session = scene
    allowed = threading.Semaphore(0)
    writer = threading.Thread(target=_write_batches, args=(run, fencing, 600, allowed))
    writer.start()
    seen, after = [], 0
    while after < 600:
        allowed.release(4)  # 40 events, which are written while the reader connects again
        with Client(port, session) as client:
            client.follow(run, after=after, epoch=str(run.epoch))
            seen += client.hear_until(min(600, after + 37))[: 600 - after]
            after = client.last
            client.socket.socket.shutdown(socket.SHUT_RDWR)  # gone without a close frame
    writer.join()
    assert seen == list(range(1, 601))


def _write_batches(run, fencing, last, allowed):
    for first in range(1, last, 10):
        allowed.acquire()
        ingest(run.pk, fencing, some_events(first, first + 9))
    connection.close()


def test_a_reader_far_behind_receives_a_snapshot_then_the_tail(port, scene):
    _, run, fencing, session = scene
    store(run, fencing, protocol.REPLAY_LIMIT + 1)
    with Client(port, session) as client:
        assert client.follow(run)["mode"] == "snapshot"
        snapshot = client.hear()
        head = protocol.REPLAY_LIMIT + 1
        assert snapshot["href"] == f"/api/v1/runs/{run.pk}/state?seq={head}"
        client.last = snapshot["seq"]
        store(run, fencing, head + 5)
        assert client.hear_until(head + 5) == list(range(head + 1, head + 6))


def test_a_new_reader_requests_a_snapshot(port, scene):
    _, run, fencing, session = scene
    store(run, fencing, 10)
    with Client(port, session) as client:
        assert client.follow(run, after=None)["mode"] == "snapshot"
        assert client.hear()["seq"] == 10


def test_another_epoch_starts_the_log_over(port, scene):
    _, run, fencing, session = scene
    store(run, fencing, 10)
    with Client(port, session) as client:
        answer = client.follow(run, after=7, epoch=str(uuid.uuid4()))
        assert answer["epoch"] == str(run.epoch)
        client.last = 0
        assert client.hear_until(10) == list(range(1, 11))


def test_topics_leave_out_kinds_but_not_the_cursor(port, scene):
    _, run, fencing, session = scene
    credit = {"tree": 1, "node": 1, "shaped": 0.0, "advantage": 0.0}
    ingest(run.pk, fencing, [an_event(1), an_event(2, "node.credit", **credit), an_event(3)])
    with Client(port, session) as client:
        client.follow(run, topics=["node"])
        assert client.hear_until(3) == [2]


def test_a_change_of_the_row_is_sent(port, scene):
    _, run, _, session = scene
    with Client(port, session) as client:
        client.follow(run)
        assert client.hear_of("status")["run"]["state"] == "starting"
        request_stop(run.pk)
        status = client.hear_of("status")["run"]
        assert status["state"] == "stopping" and status["stop_requested"] is True


def test_readers_are_notified_of_changed_comments(port, scene):
    cast, run, _, session = scene
    target = Target((run,))
    with Client(port, session) as client:
        client.follow(run)
        assert client.hear_of("status")["run"]["comments_changed"] == 0
        comment = write_comment(target, cast.alice, "Why?", "")
        assert client.hear_of("status")["run"]["comments_changed"] == 1
        change_comment(comment, target, "Why this?", "")
        assert client.hear_of("status")["run"]["comments_changed"] == 2
        delete_comment(comment)
        assert client.hear_of("status")["run"]["comments_changed"] == 3


def test_frames_stay_under_their_size(port, scene):
    _, run, fencing, session = scene
    ingest(run.pk, fencing, some_events(1, 40, message="x" * 20_000))
    with Client(port, session) as client:
        client.follow(run)
        client.hear_until(40)
        sizes = [len(json.dumps(s)) for s in client.said if s["type"] == "batch"]
    assert len(sizes) > 1 and max(sizes) < protocol.BATCH_BYTES + 1000


LAST = 4000  # of 2 KB each: more than the kernel's socket buffer


def a_slow_reader(port, session):
    """A client that accepts little more than what it reads."""
    pipe = socket.socket()
    pipe.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32_768)
    pipe.connect(("127.0.0.1", port))
    return Client(port, session, max_queue=1, ping_interval=None, sock=pipe)


def store_long_events(run, fencing):
    for first in range(1, LAST + 1, 1000):
        ingest(run.pk, fencing, some_events(first, first + 999, message="x" * 2000))


def test_a_slow_reader_slows_only_itself_and_loses_nothing_within_the_deadline(port, scene):
    _, run, fencing, session = scene
    with a_slow_reader(port, session) as slow, Client(port, session) as quick:
        slow.follow(run)
        store_long_events(run, fencing)
        quick.follow(run)
        assert quick.hear_until(LAST) == list(range(1, LAST + 1))
        assert slow.hear_until(LAST) == list(range(1, LAST + 1))


def test_a_reader_that_is_too_slow_is_closed_and_goes_on_after_its_cursor(port, scene):
    _, run, fencing, session = scene
    with a_server(send=0.5) as strict:
        slow = a_slow_reader(strict.port, session)
        slow.follow(run)
        store_long_events(run, fencing)
        strict.wait_until_idle()  # it has ended for the server, which waited for nothing else
        with pytest.raises(ConnectionClosed) as closed:
            slow.hear_until(LAST)
        slow.close()
    assert slow.last < LAST
    # The server drops the frame in flight; what the client received is whole and contiguous.
    assert [event[0] for event in slow.events] == list(range(1, slow.last + 1))
    assert closed.value.rcvd is None or closed.value.rcvd.code == protocol.Close.TOO_SLOW
    with Client(port, session) as again:
        again.follow(run, after=slow.last)
        assert again.hear_until(LAST) == list(range(slow.last + 1, LAST + 1))


def test_a_silent_server_shows_that_it_lives(port, scene):
    _, run, _, session = scene
    with Client(port, session) as client:
        client.follow(run)
        assert client.hear_of("pong")


def test_a_stranger_gets_not_found_for_a_run(port, scene):
    cast, run, _, _ = scene
    with Client(port, a_session(cast.charlie)) as client:
        answer = client.follow(run)
        assert (answer["type"], answer["code"]) == ("error", "not_found")
        nothing = client.follow(Run(id=uuid.uuid4()))
        assert nothing["message"] == answer["message"]


@pytest.mark.parametrize("session", [None, "unknown"])
def test_every_page_requires_signing_in(port, session):
    from django.contrib.sessions.backends.db import SessionStore

    with Client(port, SessionStore("x" * 32) if session else None) as client:
        assert client.hear()["type"] == "bye"
        with pytest.raises(ConnectionClosed) as closed:
            client.hear()
    assert closed.value.rcvd.code == protocol.Close.NOT_SIGNED_IN


@pytest.mark.parametrize("origin", ["http://evil.example", None, "null"])
def test_a_page_of_another_site_is_refused(port, scene, origin):
    with pytest.raises(InvalidStatus) as refusal:
        Client(port, scene[3], origin=origin)
    assert refusal.value.response.status_code == 403


def test_a_client_of_another_protocol_is_refused(port, scene):
    with pytest.raises(InvalidStatus):
        Client(port, scene[3], subprotocols=["grove.v9"])


def test_a_reader_who_loses_access_is_disconnected(port, scene):
    cast, run, _, session = scene
    with Client(port, session) as client:
        client.follow(run)
        Membership.objects.filter(user=cast.bob).delete()
        assert _closing_code(client) == protocol.Close.NO_ACCESS


def test_signing_out_disconnects_the_reader(port, scene):
    _, run, _, session = scene
    with Client(port, session) as client:
        client.follow(run)
        session.delete()
        assert _closing_code(client) == protocol.Close.NOT_SIGNED_IN


def test_a_closed_account_is_cut_off(port, scene):
    cast, run, _, session = scene
    with Client(port, session) as client:
        client.follow(run)
        cast.bob.is_active = False
        cast.bob.save()
        assert _closing_code(client) == protocol.Close.NO_ACCESS


def _closing_code(client):
    with pytest.raises(ConnectionClosed) as closed:
        while True:
            client.hear()
    assert client.said[-1]["type"] == "bye"
    return closed.value.rcvd.code


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "[]",
        "{",
        '{"type": "drop"}',
        '{"type": "sub", "sid": 1}',
        '{"type":"ping","x":1}',
        '{"a":' + "[" * 30_000,
    ],
    ids=range(7),
)
def test_a_frame_that_is_no_message_is_refused_and_the_socket_lives(port, scene, frame):
    with Client(port, scene[3]) as client:
        client.say(type="hello", v=1)
        client.socket.send(frame)
        assert client.hear_of("error")["code"] == "bad_message"
        client.say(type="ping")
        assert client.hear_of("pong")


@pytest.mark.parametrize(
    "frames, code",
    [
        (['{"type": "ping"}'], protocol.Close.PROTOCOL),
        (['{"type": "hello", "v": 2}'], protocol.Close.PROTOCOL),
        (["x" * (protocol.MAX_FRAME_BYTES + 1)], protocol.Close.PROTOCOL),
        ([b"binary"], protocol.Close.PROTOCOL),
        pytest.param(
            ['{"type": "hello", "v": 1}'] * 5000, protocol.Close.TOO_MANY, marks=pytest.mark.large
        ),
    ],
)
def test_a_protocol_violation_closes_the_socket(port, scene, frames, code):
    with Client(port, scene[3]) as client:
        try:
            for frame in frames:
                client.socket.send(frame)
        except ConnectionClosed:
            pass
        assert _closing_code(client) == code


def test_a_socket_follows_at_most_eight_runs(port, scene):
    cast, run, _, session = scene
    with Client(port, session) as client:
        client.follow(run)
        for sid in range(2, protocol.MAX_SUBSCRIPTIONS + 2):
            client.say(type="sub", sid=sid, run=str(a_run(cast).pk), after=0)
        assert client.hear_of("error")["code"] == "too_many"
        client.say(type="unsub", sid=2)
        client.say(type="sub", sid=99, run=str(run.pk), after=0)
        assert client.hear_of("subscribed")


def test_a_user_has_at_most_ten_sockets(port, scene):
    clients = [Client(port, scene[3]) for _ in range(protocol.MAX_SOCKETS_PER_USER)]
    for client in clients:
        client.say(type="hello", v=1)
        assert client.hear()["type"] == "welcome"
    with Client(port, scene[3]) as client:
        assert _closing_code(client) == protocol.Close.TOO_MANY
    for client in clients:
        client.close()
