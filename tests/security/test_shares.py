"""Tests of share links: what they show, that they show nothing else, and that they end."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from urllib.request import urlopen

import pytest
from django.utils import timezone

from engine.events.vocabulary import KINDS
from tests.helpers.builders import a_cast, a_held_run, a_run, an_event
from tests.helpers.waiting import patience
from tests.security.test_sockets import answer, closing_code
from tests.webapp.telemetry.stream_server import Client, a_server, a_session
from webapp.experiments.models import Experiment, Run
from webapp.projects.models import Project, Workspace
from webapp.sharing.models import Share
from webapp.sharing.services import ShareRefused, create_share, guest_by, revoke_share
from webapp.telemetry import guests
from webapp.telemetry.ingest.ingest import ingest
from webapp.telemetry.stream.protocol import Close

DAY = timedelta(days=1)
OPENED = {"step": 1, "problem": "p", "statement": "s"}
NODE = {"agent": "oak", "parent": 0, "depth": 1, "draws": {}}
FIRST, SECOND = 7, 8


def some_trees(first: int) -> list:
    """Ten events: two trees with a node each, closed, and two lines of the log."""
    return [
        an_event(first, "step.start", step=1),
        an_event(first + 1, "tree.open", tree=FIRST, **OPENED),
        an_event(first + 2, "node.open", tree=FIRST, node=1, **NODE),
        an_event(first + 3, message="read /secret/place"),
        an_event(first + 4, "tree.open", tree=SECOND, **OPENED),
        an_event(first + 5, "node.open", tree=SECOND, node=1, **NODE),
    ]


@pytest.fixture
def scene(request):
    cast = a_cast()
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, some_trees(1))
    run.refresh_from_db()
    return cast, run, fencing


def secret_of(link: str) -> str:
    return link.rstrip("/").rsplit("/", 1)[1]


def rest(link: str, rest: str) -> str:
    return f"/api/v1/shared/{secret_of(link)}/{rest}"


def lines_of(port: int, link: str, query: str = "") -> list[bytes]:
    """Events of the log as the server streams them."""
    with urlopen(
        f"http://127.0.0.1:{port}{rest(link, 'events' + query)}", timeout=15 * patience()
    ) as stream:
        return list(stream)


def seqs(port: int, link: str, query: str = "") -> list[int]:
    return [json.loads(line)[0] for line in lines_of(port, link, query)]


def lasting(client, link: str, query: str = "") -> list[int]:
    """The seqs of the state's events."""
    body = client.get(rest(link, f"state{query}")).json()
    return [event[0] for event in body["events"]]


@pytest.mark.django_db
def test_a_guest_sees_the_run_and_nothing_else(client, scene):
    cast, run, _ = scene
    Experiment.objects.update(name="Shade")
    Workspace.objects.update(name="Quercus")
    Project.objects.update(name="Fagus")
    other = a_run(cast, seed=1)
    run.config["agents"][0]["model"] = "/models/of-ours"
    run.save(update_fields=["config"])
    _, link = create_share(run, cast.alice, DAY)
    page = client.get(link)
    assert page.status_code == 200 and b"Shade" in page.content
    body = page.content.decode()
    hidden = ("Quercus", "Fagus", cast.alice, cast.bob, "/models/", other.pk)
    for one in hidden:
        assert not re.search(rf"\b{re.escape(str(one))}", body), one
    assert "no-store" in page["Cache-Control"]
    page_data = page.context["page"]
    assert not page_data["run"]["can_operate"] and not {"stop", "resume"} & page_data["urls"].keys()
    assert f"runs/{run.pk}" not in json.dumps(page_data["urls"])
    assert lasting(client, link) and client.get(rest(link, f"trees/{SECOND}")).status_code == 200
    for path in (f"/runs/{run.pk}/", f"/api/v1/runs/{run.pk}", "/"):
        assert client.get(path).status_code in (302, 401), "the link opens no other door"


@pytest.mark.django_db
def test_a_frozen_link_shows_no_later_event(client, scene):
    cast, run, fencing = scene
    _, link = create_share(run, cast.alice, DAY, until=3)
    ingest(run.pk, fencing, some_trees(7))
    assert max(lasting(client, link, "?seq=9")) == 3
    assert client.get(rest(link, "moments")).json()["head"] == 3
    assert client.get(rest(link, f"trees/{FIRST}/nodes/1")).status_code == 200
    for hidden in (f"trees/{SECOND}", f"trees/{SECOND}/nodes/1", f"trees/{SECOND}?seq=12"):
        assert client.get(rest(link, hidden)).status_code == 404, hidden
    status = client.get(link).context["page"]["status"]
    assert status["step"] == 1 and status["result"] == {} and status["queued_at"] is None


@pytest.mark.django_db
def test_a_link_to_a_tree_shows_only_that_tree(client, scene):
    cast, run, _ = scene
    _, link = create_share(run, cast.alice, DAY, tree=FIRST)
    assert lasting(client, link) == [2, 3]
    assert client.get(rest(link, f"trees/{FIRST}")).status_code == 200
    for hidden in (f"trees/{SECOND}", f"trees/{SECOND}/nodes/1"):
        assert client.get(rest(link, hidden)).status_code == 404, hidden
    _, moment = create_share(run, cast.alice, DAY, tree=FIRST, until=2)
    assert lasting(client, moment) == [2]


@pytest.mark.django_db
def test_a_guest_sees_the_series_as_far_as_the_link_shows_the_run(client, scene):
    cast, run, fencing = scene
    losses = [an_event(7 + at, "agent.update", agent="oak", step=1, loss=0.5) for at in range(4)]
    ingest(run.pk, fencing, losses)
    run.refresh_from_db()
    live, frozen, of_tree = (
        create_share(run, cast.alice, DAY, tree, until)[1]
        for tree, until in ((None, None), (None, 8), (FIRST, None))
    )
    for link, points, requested in ((live, 4, ""), (live, 1, "?until=7"), (frozen, 2, "?until=99")):
        (metric,) = client.get(rest(link, f"metrics{requested}")).json()["metrics"]
        assert metric["points"] == points
        assert client.get(rest(link, f"metrics/loss.oak{requested}")).json()["points"] == points
        assert client.get(link).context["page"]["urls"]["metrics"] == rest(link, "metrics")
    for hidden in ("metrics", "metrics/loss.oak"):
        assert client.get(rest(of_tree, hidden)).status_code == 404
    assert client.get(of_tree).context["page"]["urls"]["metrics"] is None


@pytest.mark.django_db
def test_a_link_is_shown_once_and_ends(client, scene):
    cast, run, _ = scene
    client.force_login(cast.bob)
    link = client.post(f"/runs/{run.pk}/shares/", {"days": 7}).context["link"]
    share = Share.objects.get()
    assert secret_of(link) not in str(Share.objects.values().get())
    assert secret_of(link).encode() not in client.get(f"/runs/{run.pk}/shares/").content
    client.logout()
    assert client.get(link).status_code == 200
    places = ("state", "moments", "events", "metrics", "metrics/loss.oak", f"trees/{FIRST}",
              f"trees/{FIRST}/nodes/1")  # fmt: skip
    for change in (
        {"expires": timezone.now()},
        {"expires": timezone.now() + DAY, "revoked_at": timezone.now()},
    ):
        Share.objects.filter(pk=share.pk).update(**change)
        assert client.get(link).status_code == 404
        assert {client.get(rest(link, place)).status_code for place in places} == {404}


@pytest.mark.django_db
@pytest.mark.parametrize("target", [{"tree": 99}, {"until": 99}, {"tree": SECOND, "until": 3}])
def test_a_missing_object_cannot_be_shared(client, scene, target):
    cast, run, _ = scene
    with pytest.raises(ShareRefused, match=r"tree|event"):
        create_share(run, cast.alice, DAY, **target)
    client.force_login(cast.bob)
    page = client.post(f"/runs/{run.pk}/shares/", {"days": 7, **target})
    assert page.status_code == 422 and b'role="alert"' in page.content
    response = client.post(f"/api/v1/runs/{run.pk}/shares", target, content_type="application/json")
    assert response.status_code == 404 and response.json()["problems"][0]["path"] in target


HOST, LOAD = "gpu-box-7", 61.25
"""A name of the server's organisation, and a figure of its load."""


def events_about_the_host(first: int) -> list:
    """Events that name the host, or its load, in every field in which engines do; and one that an
    engine of tomorrow may write."""
    place = f"/srv/{HOST}/run"
    failed = {
        "verdict": "sandbox_failure",
        "input": "1",
        "expected": "1",
        "error": f"{HOST}: EPERM",
    }
    closed = {"program": "x = 1", "verdict": "sandbox_failure", "score": None, "fraction": 0.0,
              "tests": [failed], "tokens": 2, "stop": "end_of_text", "mean_logprob": -0.5,
              "policy_version": 0, "seconds": 1.0, "error": f"no walls on {HOST}"}  # fmt: skip
    load = {name: LOAD for name in ("cpu_percent", "memory_mb", "gpu_percent", "gpu_memory_mb")}
    by_node = {f"{name}.{HOST}": LOAD for name in ("node_disk_percent", "node_network_in_mb_per_s")}
    step = {"reward": 0.5, "solved": 0.5, "seconds": 1.0, "training_seconds": 1.0}
    told = [
        ("run.state", {"state": "running", "reason": place}),
        ("run.waiting", {"name": f"joining Ray at {HOST}:6379", "deadline_seconds": 9.0}),
        ("system.sample", {**load, "by_node": by_node}),
        ("log.line", {"message": f"node {HOST} has left"}),
        ("node.close", {"tree": FIRST, "node": 1, **closed}),
        ("agent.update", {"agent": "oak", "step": 1, "loss": 0.5, "layout_reason": HOST}),
        ("checkpoint.saved", {"step": 1, "path": place, "models": {"oak": place}}),
        ("step.end", {"step": 1, **step, "load": LOAD, "hosts": {HOST: 1.0}}),
        ("system.fans", {HOST: LOAD}),
        ("error", {"message": f"{place}: no space", "traceback": place, "phase": "learn"}),
    ]
    return [an_event(seq, kind, **payload) for seq, (kind, payload) in enumerate(told, first)]


def about_the_host(seen: object) -> list[str]:
    """What of the host is in a text, or in what JSON decodes to."""
    text = seen if isinstance(seen, str) else json.dumps(seen)
    return [one for one in (HOST, str(LOAD)) if one in text]


@pytest.mark.django_db
def test_a_guest_learns_nothing_of_the_host_and_a_member_does(client, scene):
    cast, run, fencing = scene
    ingest(run.pk, fencing, events_about_the_host(7))
    variant = {"seed": 3, "search.rho": 0.97, "compute.ray_address": f"{HOST}:6379",
               "agents.oak.chat_template": f"/srv/{HOST}.jinja"}  # fmt: skip
    Run.objects.filter(pk=run.pk).update(variant=variant)
    run.refresh_from_db()
    places = ("state", f"trees/{FIRST}", f"trees/{FIRST}/nodes/1", "metrics", "steps/1/trees")
    for until in (None, 16):
        _, link = create_share(run, cast.alice, DAY, until=until)
        page = client.get(link)
        assert page.status_code == 200 and not about_the_host(page.content.decode())
        assert page.context["variant"] == {"seed": 3, "search.rho": 0.97}
        for place in places:
            response = client.get(rest(link, place))
            assert response.status_code == 200 and not about_the_host(response.json()), place
        listed = [one["name"] for one in client.get(rest(link, "metrics")).json()["metrics"]]
        assert {"reward", "step.seconds", "loss.oak"} <= set(listed)
        for hidden in ("system.cpu_percent", f"system.node_disk_percent.{HOST}", "step.load"):
            assert hidden not in listed
            assert client.get(rest(link, f"metrics/{hidden}")).status_code == 404, hidden
        closed = client.get(rest(link, f"trees/{FIRST}/nodes/1")).json()["close"]
        assert closed["verdict"] == "sandbox_failure" and closed["tests"][0]["input"] == "1"
    client.force_login(cast.bob)
    own = f"/api/v1/runs/{run.pk}/"
    for place in ("state", f"trees/{FIRST}", f"trees/{FIRST}/nodes/1", "metrics"):
        assert about_the_host(client.get(own + place).json()), place
    assert client.get(f"{own}metrics/system.cpu_percent").json()["buckets"]["mean"] == [LOAD]


def test_for_every_kind_and_field_of_events_it_is_decided_whether_guests_see_it():
    assert KINDS.keys() - guests.EVENT_FIELDS.keys() == {
        "system.sample",
        "log.line",
        "run.described",
    }
    hidden = {
        kind: set(KINDS[kind].__struct_fields__) - set(shown)
        for kind, shown in guests.EVENT_FIELDS.items()
    }
    assert {kind: names for kind, names in hidden.items() if names} == {
        "run.state": {"reason"},
        "agent.update": {"layout_reason"},
        "checkpoint.saved": {"path", "models"},
        "metric.logged": {"texts", "tables", "images"},
        "error": {"message", "traceback", "rank"},
    }
    for kind, shown in guests.EVENT_FIELDS.items():
        assert set(shown) <= set(KINDS[kind].__struct_fields__), kind


@pytest.fixture(scope="module")
def served(django_db_setup):
    with a_server(recheck=3600.0) as served:
        yield served


@pytest.fixture
def port(served):
    yield served.port
    served.wait_until_idle()


class Visitor(Client):
    """A visitor with a link, from a page of ours or of no known origin."""

    def __init__(self, port: int, link: str):
        super().__init__(port, None, origin=None, path=f"/stream?share={secret_of(link)}")


@pytest.mark.django_db(transaction=True)
def test_the_stream_shows_a_guest_what_the_page_shows(port, scene):
    cast, run, fencing = scene
    whole = [seq for seq in range(1, 13) if seq not in (4, 10)]  # lines of the log
    links = [
        create_share(run, cast.alice, DAY, tree, until)[1]
        for tree, until in ((None, None), (None, 4), (FIRST, None))
    ]
    with (
        Visitor(port, links[0]) as live,
        Visitor(port, links[1]) as frozen,
        Visitor(port, links[2]) as of_tree,
    ):
        assert [answer(one, run) for one in (live, frozen, of_tree)] == ["subscribed"] * 3
        ingest(run.pk, fencing, some_trees(7))
        assert live.hear_until(12) == whole
        assert of_tree.hear_until(12) == [2, 3, 8, 9]
        assert frozen.hear_until(4) == [1, 2, 3]
        assert [seqs(port, one) for one in links] == [
            whole,
            [1, 2, 3],
            [2, 3, 8, 9],
        ]
        assert seqs(port, links[1], "?until=9&after=2") == [3]
        frozen.say(type="ping")
        frozen.hear_of("pong")
        assert frozen.last == 4 and not [one for one in frozen.said if one["type"] == "status"]
        for guest in (live, of_tree):  # no text of a comment, not even whether any exist
            results = [one["run"] for one in guest.said if one["type"] == "status"]
            assert results and not any("comments_changed" in one for one in results)


@pytest.mark.django_db(transaction=True)
def test_the_stream_tells_a_guest_nothing_of_the_host(port, scene):
    cast, run, fencing = scene
    _, link = create_share(run, cast.alice, DAY)
    with Visitor(port, link) as guest, Client(port, a_session(cast.bob)) as member:
        assert answer(guest, run) == answer(member, run) == "subscribed"
        ingest(run.pk, fencing, events_about_the_host(7))
        hidden = (4, 9, 10, 15)
        assert guest.hear_until(16) == [seq for seq in range(1, 17) if seq not in hidden]
        assert member.hear_until(16) == list(range(1, 17))
        told = [json.loads(line) for line in lines_of(port, link)]
        assert told == guest.events
        for one in (guest, member):
            one.say(type="ping")
            one.hear_of("pong")
        assert about_the_host(member.said)
        assert not about_the_host(guest.said)
        status = [one["run"] for one in guest.said if one["type"] == "status"][-1]
        assert status["waiting"]["name"] == guests.WAIT and status["error"] == guests.FAILURE
    for seq in hidden:  # where a reader may have stopped
        with Visitor(port, link) as guest:
            guest.follow(run, after=seq)
            expected = [event[0] for event in told if event[0] > seq]
            assert guest.hear_until(16) == expected == seqs(port, link, f"?after={seq}")


@pytest.mark.django_db(transaction=True)
def test_a_guest_follows_no_other_run(port, scene):
    cast, run, _ = scene
    other = a_run(cast, seed=1)
    _, link = create_share(run, cast.alice, DAY)
    with Visitor(port, link) as guest:
        assert answer(guest, other) == "not_found"
    with Visitor(port, "/shared/nonsense/") as nobody:
        assert answer(nobody, run) == Close.NOT_SIGNED_IN


@pytest.mark.django_db(transaction=True)
def test_a_revoked_link_closes_its_sockets_and_no_others(port, scene):
    cast, run, _ = scene
    (share, link), (_, other) = (create_share(run, cast.alice, DAY) for _ in range(2))
    with Visitor(port, link) as dead, Visitor(port, other) as living:
        assert answer(dead, run) == answer(living, run) == "subscribed"
        revoke_share(share)
        assert closing_code(dead) == Close.NOT_SIGNED_IN
        living.say(type="ping")
        assert living.hear_of("pong")
    assert guest_by(secret_of(link)) is None
