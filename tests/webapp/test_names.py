"""Tests that a name that is not visible is refused wherever one is given, and shown escaped where
an older one stands."""

import dataclasses
import json
import re
import uuid

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from engine.events.vocabulary import RunState
from tests.helpers.builders import a_run
from tests.helpers.datasets import some_problems, stored_version
from webapp.accounts.adapters import AccountAdapter
from webapp.accounts.models import ApiToken
from webapp.comments.models import Notice, Reason
from webapp.datasets.models import Dataset, DatasetProblem
from webapp.experiments.models import Experiment, Run, Tracking
from webapp.projects.models import Project, Workspace
from webapp.registry.models import Model
from webapp.reports.models import ReportPage

NAMES = ("pond\x1b[32m\nheron", "\u202egnp.exe", "a\u200bb", "\u2003\u3164")
JSON = {"content_type": "application/json"}
PROBLEM = {
    "id": "a", "statement": "s", "entry_point": "f",
    "public_tests": [{"arguments": [1], "expected": 1}],
    "private_tests": [{"arguments": [2], "expected": 2}],
}  # fmt: skip


@pytest.fixture
def alice(client, cast):
    client.force_login(cast.alice)
    return client


def bodies(cast, run):
    """Address of REST -> body without its name, and the field of the name."""
    project, workspace = cast.project.pk, cast.project.workspace
    search = {"team": ["starter:oak"], "problem": PROBLEM}
    token = {"scopes": ["runs:read"], "project": project}
    return {
        "/api/v1/workspaces": {},
        f"/api/v1/workspaces/{workspace.slug}/projects": {},
        "/api/v1/runs": {"project": project, "recipe": "demo"},
        "/api/v1/runs ": {"project": project, "recipe": "demo", "outside": True},
        "/api/v1/experiments": {"project": project, "recipe": "demo"},
        f"/api/v1/runs/{run.pk}/fork": {"step": 1},
        f"/api/v1/projects/{project}/searches": search,
        "/api/v1/tokens": token,
        "/api/v1/models": {"project": project},
        "/api/v1/datasets": {
            "project": project,
            "uploads": ["00000000-0000-4000-8000-000000000000"],
        },
        "/api/v1/uploads": {"project": project, "kind": "dataset", "size": 4},
        "/api/v1/alerts/channels": {"kind": "webhook", "url": "https://elm.example/"},
    }


@pytest.mark.parametrize("name", NAMES)
def test_rest_refuses_it_with_field_value_and_remedy(alice, cast, name):
    run = a_run(cast)
    before = [kind.objects.count() for kind in (Workspace, Project, Experiment, ApiToken, Model)]
    for address, body in bodies(cast, run).items():
        reply = alice.post(address.strip(), {**body, "name": name}, **JSON)
        assert reply.status_code == 422, (address, reply.content)
        (problem,) = reply.json()["problems"]
        assert problem["path"] == "name", address
        assert (
            "visible" in problem["reason"]
            or "letters, digits" in problem["reason"]
            or ("pattern" in problem["reason"])
        ), problem
        shown = problem["value"].replace("\n", "")
        assert shown.isprintable() or shown == "\u2003\u3164", (address, problem["value"])
    assert before == [
        kind.objects.count() for kind in (Workspace, Project, Experiment, ApiToken, Model)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_rest_refuses_titles_tags_and_filters_too(alice, cast, name):
    run = a_run(cast)
    rule = {"kind": "metric", "project": cast.project.pk, "direction": "below", "threshold": 1}
    requests = {
        "title": (alice.post, "/api/v1/reports", {"project": cast.project.pk}),
        "tags": (alice.patch, f"/api/v1/runs/{run.pk}", {}),
        "tag": (alice.post, "/api/v1/alerts/rules", {**rule, "metric": "reward"}),
        "metric": (alice.post, "/api/v1/alerts/rules", rule),
        "agent": (alice.post, "/api/v1/alerts/rules", {**rule, "metric": "reward"}),
    }
    for field, (send, address, body) in requests.items():
        value = [name] if field == "tags" else name
        reply = send(address, {**body, field: value}, **JSON)
        assert reply.status_code == 422, (field, reply.content)
        (problem,) = reply.json()["problems"]
        assert problem["path"].startswith(field)
        assert re.search("visible|pattern|without spaces", problem["reason"]), problem
    run.refresh_from_db()
    assert run.tags == []


def test_rest_refuses_an_id_of_a_problem_that_is_not_visible(alice, cast):
    search = {"team": ["starter:oak"]}
    body = {**search, "problem": {**PROBLEM, "id": "a\u202eb"}}
    reply = alice.post(f"/api/v1/projects/{cast.project.pk}/searches", json.dumps(body), **JSON)
    assert reply.status_code == 422
    (problem,) = reply.json()["problems"]
    assert problem["path"].endswith("id") and "U+202E" in problem["reason"]


@pytest.mark.parametrize("name", NAMES)
def test_the_pages_refuse_it_and_name_it_escaped(alice, cast, name):
    workspace = cast.project.workspace
    forms = {
        "/workspaces/": {},
        f"/workspaces/{workspace.slug}/projects/": {"visibility": "workspace"},
        "/tokens/": {
            "resource": f"project-{cast.project.pk}", "scopes": ["runs:read"], "days": 30,
        },
        "/runs/new/": {"project": cast.project.pk, "recipe": "demo", "seeds": "", "sweep": ""},
    }  # fmt: skip
    before = [kind.objects.count() for kind in (Workspace, Project, Experiment, ApiToken)]
    for address, fields in forms.items():
        page = alice.post(address, {**fields, "name": name}, follow=True)
        text = page.content.decode()
        assert page.status_code in (200, 422), (address, page.status_code)
        assert re.search("is not visible|visible character", text), address
    assert before == [kind.objects.count() for kind in (Workspace, Project, Experiment, ApiToken)]


@pytest.mark.parametrize("name", ["\u3164", "\u115f"])
def test_nobody_has_a_username_that_shows_nothing(name, db):
    with pytest.raises(ValidationError, match="at least one visible character"):
        AccountAdapter().clean_username(name)


def test_titles_and_tags_that_stand_in_the_database_are_shown_escaped(alice, cast):
    name, shown = "run\u202egnp\u200b", "run\\u202egnp\\u200b"
    run, now = a_run(cast, tracked=True, outside=True), timezone.now()
    Run.objects.filter(pk=run.pk).update(tags=[name])
    people = {"created_by": cast.alice, "edited_by": cast.alice, "edited": now}
    report = ReportPage.objects.create(project=cast.project, title=name, **people)
    Notice.objects.create(
        user=cast.alice,
        title=name,
        key="a",
        project=cast.project,
        at=now,
        reason=Reason.ALERT,
        path="/",
    )
    session = uuid.uuid4()
    Tracking.objects.create(
        run=run, project=cast.project, key="k", group=name, host=name, session=session
    )
    pages = ("/", f"/runs/{run.pk}/", "/reports/", f"/reports/{report.pk}/", "/inbox/")
    rest = ("/api/v1/runs", f"/api/v1/runs/{run.pk}", "/api/v1/reports")
    for address in (*pages, *rest):
        text = alice.get(address, follow=True).content.decode()
        assert "\u202e" not in text and "\u200b" not in text, address
        assert shown in text.replace("\\\\", "\\"), address


def test_a_name_that_stands_in_the_database_is_shown_escaped(alice, cast):
    name, shown = "run\u202egnp\x1b[2J", "run\\u202egnp\\x1b[2J"
    run = a_run(cast)
    Experiment.objects.filter(pk=run.experiment_id).update(name=name)
    Project.objects.filter(pk=cast.project.pk).update(name=name)
    Dataset.objects.create(project=cast.project, name=name)
    Model.objects.create(project=cast.project, name=name)
    pages = (
        "/",
        f"/runs/{run.pk}/",
        f"/workspaces/{cast.project.workspace.slug}/",
        "/datasets/",
        "/models/",
    )
    rest = ("/api/v1/runs", f"/api/v1/runs/{run.pk}", "/api/v1/projects")
    for address in (*pages, *rest):
        text = alice.get(address, follow=True).content.decode()
        assert "\u202e" not in text and "\x1b" not in text, address
    for address in pages:
        assert shown in alice.get(address).content.decode(), address
    assert alice.get(f"/api/v1/runs/{run.pk}").json()["name"] == shown


def test_texts_of_logs_steer_no_page_and_no_terminal(alice, cast):
    text = "died\x1b[2J: \u202eoak\x07\n\tat line 1 👩\u200d🌾"
    run = a_run(cast, RunState.FAILED, error=text)
    problem = dataclasses.replace(some_problems(1)[0], statement=text, reference=f"# {text}\n")
    version = stored_version(cast, problems=[problem])
    DatasetProblem.objects.filter(version=version).update(
        statement=text, tags=[text], check_state="failed", check_reason=text
    )
    dataset = f"/datasets/versions/{version.pk}/"
    for address in (
        "/",
        f"/runs/{run.pk}/",
        "/api/v1/runs",
        f"/api/v1/runs/{run.pk}",
        dataset,
        f"{dataset}problems/1/",
    ):
        given = alice.get(address, follow=True).content.decode()
        assert "\u202e" not in given and "\x1b" not in given and "\x07" not in given, address
        assert "died" in given, address
    run.refresh_from_db()
    assert run.error == "died\\x1b[2J: \\u202eoak\\x07\n\tat line 1 👩\u200d🌾"
