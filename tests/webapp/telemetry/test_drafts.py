"""Tests of drafts on a real server: who watches sees them, and without a watcher there are none."""

import pytest

from engine.events.drafts import Draft, DraftWriter
from tests.helpers.builders import a_cast, a_held_run, store
from tests.helpers.waiting import eventually
from tests.webapp.telemetry.stream_server import Client, a_session
from webapp.experiments.models import Run
from webapp.projects.models import Membership
from webapp.telemetry import drafts
from webapp.telemetry.models import Drafts
from workers.runs.draft_shipper import DraftShipper

pytestmark = pytest.mark.django_db(transaction=True)
TEXT = "<b>def solve(x):\0\n    return x"


@pytest.fixture
def scene(tmp_path):
    """The cast, a held run, its shipper, the writer of a model's process, and Bob's session."""
    cast = a_cast()
    run, fencing = a_held_run(cast)
    store(run, fencing, 3)
    shipper = DraftShipper(run.pk, tmp_path)
    return cast, run, shipper, DraftWriter(tmp_path, "oak"), a_session(cast.bob)


def watching(client, run, shipper):
    """Subscribes to the run with its drafts, and lets the worker see that."""
    client.follow(run, drafts=True)
    client.hear_until(3)
    eventually(lambda: drafts.is_watched(run.pk), "the run to be watched")
    due(shipper)


def due(shipper):
    """Ships once, however short ago it did."""
    shipper._next = 0.0
    shipper.ship()


def test_a_watcher_receives_on_notice_what_is_being_written(notified_port, scene):
    _, run, shipper, writer, session = scene
    with Client(notified_port, session) as client:
        watching(client, run, shipper)
        Drafts.objects.update(watched_until="2100-01-01T00:00Z")  # it is not renewed here
        due(shipper)
        assert writer.is_due(), "the engine writes once somebody watches"
        writer.write([Draft(2, 1, "oak", 4, TEXT)])
        due(shipper)
        node = {"tree": 2, "node": 1, "agent": "oak", "tokens": 4, "text": TEXT}
        assert client.hear_of("drafts") == {"type": "drafts", "sid": 1, "nodes": [node]}
        writer.write([Draft(2, 1, "oak", 5, TEXT + "!")])
        due(shipper)
        assert client.hear_of("drafts")["nodes"][0]["text"] == TEXT + "!"
    with Client(notified_port, session) as again:  # a page that is reloaded in the middle
        again.follow(run, after=3, drafts=True)
        assert again.hear_of("drafts")["nodes"][0]["tokens"] == 5


def test_nobody_who_watches_is_nothing_written_and_nothing_stored(port, scene):
    _, run, shipper, writer, session = scene
    with Client(port, session) as client:
        client.follow(run)
        client.hear_until(3)
        due(shipper)
        assert not writer.is_due() and not Drafts.objects.exists()
    assert [said for said in client.said if said["type"] == "drafts"] == []


def test_a_run_that_has_ended_is_not_watched(port, scene):
    _, run, _, _, session = scene
    Run.objects.filter(pk=run.pk).update(state="finished")
    with Client(port, session) as client:
        client.follow(run, drafts=True)
        client.hear_of("status")
        client.say(type="ping")
        client.hear_of("pong")
    assert not Drafts.objects.exists()


def test_a_run_that_begins_again_shows_nothing_of_before(port, scene):
    _, run, shipper, writer, session = scene
    with Client(port, session) as client:
        watching(client, run, shipper)
        writer.write([Draft(2, 1, "oak", 4, "before")])
        due(shipper)
        client.hear_of("drafts")
        shipper.clear()
        assert client.hear_of("drafts")["nodes"] == [], "its engine has ended"
    shipper.forget()
    assert not Drafts.objects.exists()
    with Client(port, session) as client:
        watching(client, run, shipper)
        writer.write([Draft(9, 1, "oak", 1, "after")])
        due(shipper)
        assert client.hear_of("drafts")["nodes"][0]["text"] == "after"


def test_nodes_without_a_token_are_not_taken_for_an_engine_that_ended(port, scene):
    _, run, shipper, writer, session = scene
    with Client(port, session) as client:
        watching(client, run, shipper)
        writer.write([])
        due(shipper)
        writer.write([Draft(2, 1, "oak", 1, "def")])
        due(shipper)
        assert len(client.hear_of("drafts")["nodes"]) == 1


def test_who_loses_access_receives_no_more(port, scene):
    cast, run, shipper, writer, session = scene
    with Client(port, session) as client:
        watching(client, run, shipper)
        Membership.objects.filter(user=cast.bob).delete()
        assert client.hear_of("bye")["code"] == 4403
        writer.write([Draft(2, 1, "oak", 4, "secret")])
        due(shipper)
    assert "secret" not in str(client.said)


def test_a_share_of_one_tree_shows_that_tree_alone():
    body = b'[{"tree":2,"node":1,"agent":"a","tokens":1,"text":"x"},'
    body += b'{"tree":5,"node":1,"agent":"a","tokens":1,"text":"y"}]'
    assert drafts.of_tree(body, 5) == (b'[{"tree":5,"node":1,"agent":"a","tokens":1,"text":"y"}]')
    assert drafts.of_tree(body, 7) is None, "others are written: its texts stay"
    assert drafts.of_tree(b"[]", 7) == b"[]", "the engine has ended"


def test_a_full_disk_costs_drafts_alone(scene, tmp_path):
    _, run, shipper, _, _ = scene
    (tmp_path / "drafts").write_text("a file where the folder would be")
    Drafts.objects.create(run=run, watched_until="2100-01-01T00:00Z")
    due(shipper)
    assert bytes(Drafts.objects.get(pk=run.pk).body) == b""
