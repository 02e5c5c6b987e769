"""Tests of links to a comparison: what they show without an account, and what they never do."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.helpers.builders import a_config, a_held_run, a_run, an_event
from webapp.experiments.models import Run
from webapp.sharing.models import ComparisonShare
from webapp.telemetry.ingest.ingest import ingest


@pytest.fixture
def runs(cast):
    """Two runs that differ in a public setting and in a private one."""
    made = []
    for index, temperature in enumerate((1.0, 0.5)):
        run, fencing = a_held_run(cast)
        config = a_config(seed=index).model_dump(mode="json")
        config["agents"][0] |= {"model": f"/models/secret-{index}", "temperature": temperature}
        config["problems"]["dataset"] = f"/data/secret-{index}"
        Run.objects.filter(pk=run.pk).update(config=config)
        step = {"step": 1, "reward": 0.25, "solved": 0.5, "seconds": 1.0}
        ingest(run.pk, fencing, [an_event(1, "step.end", training_seconds=1.0, **step)])
        made.append(Run.objects.get(pk=run.pk))
    return made


def shared(client, runs, **more):
    """(REST's response, path of the link)."""
    body = {"run": [str(run.pk) for run in runs], **more}
    made = client.post("/api/v1/comparison/shares", body, "application/json")
    assert made.status_code == 201, made.content
    return made.json(), made.json()["link"].removeprefix("http://testserver")


def shared_response(path):
    secret = path.rstrip("/").rsplit("/", 1)[1]
    return Client().get(f"/api/v1/shared/comparison/{secret}")


def shared_url(path, rest):
    secret = path.rstrip("/").rsplit("/", 1)[1]
    return f"/api/v1/shared/comparison/{secret}/{rest}"


def curves(path):
    """{name: buckets} of the first run, as a guest's page requests them."""
    names = [one["name"] for one in Client().get(shared_url(path, "0/metrics")).json()["metrics"]]
    return {name: Client().get(shared_url(path, f"0/metrics/{name}")).json() for name in names}


def test_a_guest_sees_the_comparison_and_nothing_else_of_the_runs(client, cast, runs):
    sibling = a_run(cast)
    client.force_login(cast.bob)
    made, path = shared(client, runs)
    page = Client().get(path)
    assert page.status_code == 200 and str(runs[0]) in page.content.decode()
    text = page.content.decode() + shared_response(path).content.decode()
    paths = {row["path"] for row in page.context["settings"]}
    assert {"seed"} <= paths
    assert not [one for one in paths if one.endswith(".model") or one.startswith("problems.")]
    for hidden in ("secret-", "/runs/", str(sibling.pk), *(str(run.pk) for run in runs)):
        assert hidden not in text, hidden
    assert [run["label"] for run in page.context["page"]["runs"]] == ["A", "B"]
    result = curves(path)
    assert (
        result
        and "step.training_seconds" not in result
        and result["reward"]["buckets"]["mean"] == [0.25]
    )
    for hidden in ("0/metrics/step.training_seconds", "2/metrics", "2/metrics/reward"):
        assert Client().get(shared_url(path, hidden)).status_code == 404, hidden
    assert "no-store" in page["Cache-Control"] and not made["frozen"]
    for own in (f"/runs/{runs[0].pk}/", f"/compare/?run={runs[0].pk}&run={runs[1].pk}"):
        assert Client().get(own).status_code == 302


def test_a_frozen_one_goes_on_showing_what_it_showed_and_a_live_one_follows(client, cast, runs):
    client.force_login(cast.bob)
    links = {frozen: shared(client, runs, frozen=frozen)[1] for frozen in (True, False)}
    step = {"step": 2, "reward": 1.0, "solved": 1.0, "seconds": 1.0}
    fencing = Run.objects.get(pk=runs[0].pk).fencing
    ingest(runs[0].pk, fencing, [an_event(2, "step.end", training_seconds=2.0, **step)])
    means = {one: curves(path)["reward"]["buckets"]["mean"] for one, path in links.items()}
    assert means == {True: [0.25], False: [0.25, 1.0]}
    later = f"{shared_url(links[True], '0/metrics/reward')}?until=2"
    assert Client().get(later).json()["points"] == 1


def test_a_link_of_an_older_version_shows_no_setting_that_names_a_place(client, cast, runs):
    client.force_login(cast.bob)
    _, path = shared(client, runs, frozen=True)
    (share,) = ComparisonShare.objects.all()
    paths = ("agents.oak.chat_template", "sandbox.workers", "agents.oak.generator.name")
    old = [{"path": one, "values": ["secret-a", "secret-b"]} for one in paths]
    share.frozen["settings"] += old
    share.save()
    for response in (shared_response(path), Client().get(path)):
        text = response.content.decode()
        assert response.status_code == 200 and "seed" in text and "secret-" not in text


def test_it_ends_by_itself_at_once_or_with_a_run(client, cast, runs):
    client.force_login(cast.bob)
    made, revoked = shared(client, runs)
    assert client.delete(f"/api/v1/comparison/shares/{made['id']}").status_code == 204
    _, expired = shared(client, runs)
    ComparisonShare.objects.update(expires=timezone.now() - timedelta(seconds=1))
    _, orphaned = shared(client, runs, frozen=True)
    runs[1].delete()
    for path in (revoked, expired, orphaned, "/shared/comparison/nonsense/"):
        assert Client().get(path).status_code == 404 == shared_response(path).status_code, path


def test_a_comparison_link_requires_the_right_to_share_every_run(client, cast, runs):
    body = {"run": [str(run.pk) for run in runs]}
    for who, status in ((cast.vera, 403), (cast.charlie, 404)):
        client.force_login(who)
        response = client.post("/api/v1/comparison/shares", body, "application/json")
        assert response.status_code == status
    client.force_login(cast.bob)
    alone = {"run": [str(runs[0].pk)] * 2}
    assert client.post("/api/v1/comparison/shares", alone, "application/json").status_code == 422
    assert not ComparisonShare.objects.exists()


def test_the_page_makes_lists_and_ends_links(client, cast, runs):
    client.force_login(cast.bob)
    address = f"/compare/shares/?run={runs[0].pk}&run={runs[1].pk}&split=test"
    assert address.replace("&", "&amp;") in client.get(
        f"/compare/?run={runs[0].pk}&run={runs[1].pk}"
    ).content.decode().replace("&amp;split", "&amp;split")
    made = client.post(address, {"days": "7", "frozen": "on"})
    link = made.context["link"]
    assert link in made.content.decode() and b"2 runs, frozen" in made.content
    assert client.post(address, {"days": "8"}).status_code == 422
    assert link not in client.get(address).content.decode()
    (share,) = ComparisonShare.objects.all()
    assert link.rstrip("/").rsplit("/", 1)[1] not in share.digest
    response = client.post(f"/compare/shares/{share.pk}/revoke/")
    assert response.status_code == 302 and response.url.startswith("/compare/?run=")
    assert Client().get(link.removeprefix("http://testserver")).status_code == 404
    client.force_login(cast.charlie)
    assert client.get(address).status_code == 404
    assert client.get("/compare/shares/").status_code == 400
