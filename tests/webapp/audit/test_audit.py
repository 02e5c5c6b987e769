"""Tests of the activity log: recorded by the database for every way, shown to owners alone."""

import csv
import io
from datetime import timedelta

import httpx
import pgtrigger
import pytest
from django.db import ProgrammingError, connection, transaction
from django.utils import timezone

from engine.events.vocabulary import RunState
from tests.helpers.builders import a_cast, a_held_run, a_run, a_token, store
from tests.webapp.telemetry.stream_server import a_server
from webapp.accounts.models import ApiToken, Scope, User
from webapp.audit import models, selectors
from webapp.audit.files import PAGE_ROWS
from webapp.audit.selectors import AuditQuery, entries
from webapp.experiments import services
from webapp.experiments.annotations import annotations
from webapp.experiments.models import Run
from webapp.experiments.scheduling import leases
from webapp.projects.membership import invite
from webapp.projects.models import Membership, Project, Role, Workspace
from webapp.registry.models import Model, Promotion, PromotionState, SecondPairOfEyes
from webapp.sharing.models import ComparisonShare
from webapp.sharing.services import create_share


def audit_texts(cast, limit: int = 200, **query) -> list[str]:
    """The log's sentences of the workspace, newest first."""
    rows, _ = entries(cast.project.workspace, AuditQuery(**query), None, limit)
    return [one.text for one in rows]


def at(cast, rest: str = "audit/") -> str:
    return f"/workspaces/{cast.project.workspace.slug}/{rest}"


def test_people_read_what_people_did(client, cast):
    path = invite(cast.project.workspace, cast.alice, Role.MEMBER, single_use=True)
    client.force_login(cast.charlie)
    client.post(path)
    client.force_login(cast.alice)
    client.post(at(cast, f"members/{cast.charlie.pk}/role/"), {"role": "viewer"})
    client.post(at(cast, f"members/{cast.charlie.pk}/remove/"))
    client.post(at(cast, "projects/"), {"name": "Elms", "visibility": "private"})
    elms = Project.objects.get(name="Elms")
    client.post(f"/projects/{elms.pk}/visibility/", {"visibility": "workspace"})
    client.force_login(cast.bob)
    client.post(at(cast, "leave/"))
    result = audit_texts(cast)
    assert result[:6] == [
        "bob left Trees",
        "alice changed the project Elms, visible to everybody in the workspace",
        "alice created the project Elms, visible to its creator and the owners only",
        "alice removed charlie from Trees",
        "alice changed the role of charlie from member to viewer",
        "charlie joined Trees as member",
    ]
    assert "Grove created an invitation as member that works once" in result
    assert "Grove created the workspace Trees" in result
    assert not [one for one in result if "Elsewhere" in one], "nothing of another workspace"


def test_whoever_makes_an_account_by_a_link_is_named(client, cast, settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    path = invite(cast.project.workspace, cast.alice, Role.VIEWER, single_use=True)
    form = client.post(path)
    secret = "lightly-shaded-42"
    client.post(form.url, {"username": "dora", "password1": secret, "password2": secret})
    assert audit_texts(cast, kind="member")[0] == "dora joined Trees as viewer"
    made = models.MembershipEvent.objects.latest("pgh_id")
    assert made.pgh_context["route"] == "sign-up/" and path.split("/")[2] not in str(
        made.pgh_context
    )


def test_tokens_and_links_are_noted_without_what_lets_in(client, cast):
    run = a_run(cast)
    create_share(run, cast.bob, timedelta(days=1))
    ends = timezone.now() + timedelta(days=1)
    ComparisonShare.objects.create(runs=[run.pk], split="test", digest="c", expires=ends)
    assert audit_texts(cast, kind="share") == [
        "Grove created a share link to a comparison of 1 runs",
        f"Grove created a share link to {run}",
    ]
    # (The acting user is known until the transaction ends, which here is the test's.)
    client.force_login(cast.bob)
    requested = {"workspace": cast.project.workspace_id, "name": "robot", "scopes": ["runs:read"]}
    secret = client.post("/api/v1/tokens", requested, content_type="application/json").json()[
        "token"
    ]
    client.post(f"/tokens/{ApiToken.objects.get().pk}/revoke/")
    first, third = audit_texts(cast, kind="token")
    assert first == f"bob revoked the token robot ({secret[:12]}…)"
    assert third == f"bob created the token robot ({secret[:12]}…) for runs:read"
    for table in (models.TokenEvent, models.ShareEvent, models.InvitationEvent):
        columns = {field.name for field in table._meta.fields}
        assert not {"digest", "secret", "detail", "notes"} & columns
    row = models.TokenEvent.objects.earliest("pgh_id")
    assert row.pgh_context["address"] == "127.0.0.1" and row.pgh_context["method"] == "POST"


@pytest.mark.django_db(transaction=True)
def test_a_program_is_noted_with_its_token_over_the_real_server(django_db_setup):
    cast = a_cast()
    run = a_run(cast, RunState.STOPPED)
    secret = a_token(cast.bob, cast.project, Scope.RUNS_WRITE)
    with a_server() as served:
        address = f"http://127.0.0.1:{served.port}/api/v1/runs/{run.pk}"
        bearer = {"Authorization": f"Bearer {secret}"}
        said = [
            httpx.post(f"{address}/resume", headers=bearer),
            httpx.patch(address, headers=bearer, json={"tags": ["baseline"]}),
        ]
        served.wait_until_idle()
    assert [one.status_code for one in said] == [200, 200]
    result = entries(cast.project.workspace, AuditQuery(kind="run"), None, 10)[0]
    assert [one.text for one in result] == [
        f"bob changed the tags of {run}",
        f"bob resumed {run}",
    ]
    for one in result:
        assert (one.token, one.person, one.address) == ("robot", cast.bob.pk, "127.0.0.1")
        assert one.route.startswith("api/v1/runs/<uuidstr:run_id>"), "the route, not the address"


def test_engine_events_write_no_audit_entry(cast):
    run, fencing = a_held_run(cast)
    noted = models.RunMarkEvent.objects.count(), models.RunActionEvent.objects.count()
    store(run, fencing, 200)
    leases.renew_lease(run.pk, fencing, 60)
    services.record_engine(run.pk, fencing, 1, 1.0)
    services.mark_failed(run.pk, fencing, "broken")
    assert noted == (models.RunMarkEvent.objects.count(), models.RunActionEvent.objects.count())
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT array_length(tgattr::int2[], 1) FROM pg_trigger WHERE tgrelid ="
            " 'experiments_run'::regclass AND NOT tgisinternal"
        )
        assert cursor.fetchall() == [(1,)] * 3, "each is asked of one column that people write"
    annotations.archive([run.pk], True)
    annotations.describe(run.pk, notes="A **secret** thought")
    assert audit_texts(cast)[:2] == [f"Grove changed the notes of {run}", f"Grove archived {run}"]
    assert "secret" not in str(list(models.RunMarkEvent.objects.values()))


def test_notes_cannot_be_changed_or_removed(cast):
    for change in (
        lambda rows: rows.update(role="owner"),
        lambda rows: rows.delete(),
    ):
        with pytest.raises(ProgrammingError, match="Cannot"), transaction.atomic():
            change(models.MembershipEvent.objects.all())


def test_pages_hold_every_row_once_and_choices_narrow_them(cast):
    workspace = cast.project.workspace
    for number in range(9):
        Project.objects.create(workspace=workspace, name=f"P{number}", slug=f"p{number}")
        Membership.objects.filter(user=cast.vera).update(role=("member", "viewer")[number % 2])
    with pgtrigger.ignore("audit.ProjectEvent:append_only", "audit.MembershipEvent:append_only"):
        for table in (models.ProjectEvent, models.MembershipEvent):
            table.objects.update(pgh_created_at=timezone.now().replace(microsecond=0))
    whole, none = entries(workspace, AuditQuery(), None, 200)
    seen, cursor = [], None
    while True:
        page, cursor = entries(workspace, AuditQuery(), cursor, 4)
        seen += page
        if cursor is None:
            break
        assert len(page) == 4
    assert none is None and seen == whole and len(whole) > 20
    assert {one.kind for one in entries(workspace, AuditQuery(kind="project"), None, 50)[0]} == {
        "project"
    }
    assert entries(workspace, AuditQuery(person=cast.bob.pk), None, 50)[0] == []
    first = whole[-1].at
    assert entries(workspace, AuditQuery(until=first), None, 50)[0] == []
    assert len(entries(workspace, AuditQuery(since=first), None, 200)[0]) == len(whole)


def test_a_page_costs_the_same_however_much_was_noted(cast, django_assert_max_num_queries):
    runs = [a_run(cast, RunState.FINISHED) for _ in range(3)]
    for run in runs:
        annotations.archive([run.pk], True)
        services.write_note(run.pk, "well", cast.bob)
    with django_assert_max_num_queries(len(selectors.SOURCES) + 1):
        entries(cast.project.workspace, AuditQuery(), None, 50)


def test_only_owners_read_the_audit_log_in_the_browser(client, cast):
    client.force_login(cast.alice)
    client.post(at(cast, "projects/"), {"name": "<b>Elms</b>", "visibility": "private"})
    page = client.get(at(cast))
    assert b"alice created the project &lt;b&gt;Elms&lt;/b&gt;" in page.content
    assert b"POST workspaces/&lt;slug:slug&gt;/projects/" in page.content
    people = page.context["form"].fields["person"].choices
    assert [label for _, label in people] == ["anybody", "alice", "bob", "mia", "vera"]
    chosen = client.get(at(cast), {"person": cast.alice.pk, "kind": "project"})
    assert len(chosen.context["entries"]) == 1
    assert client.get(at(cast), {"person": cast.bob.pk}).context["entries"] == []
    for wrong, status in (
        ({"kind": "x"}, 422),
        ({"since": "then"}, 422),
        ({"cursor": "x"}, 400),
        ({"until": "9999-12-31"}, 200),
    ):
        assert client.get(at(cast), wrong).status_code == status, wrong
    assert at(cast).encode() in client.get(at(cast, "")).content
    client.force_login(cast.mia)
    assert client.get(at(cast)).status_code == 403
    assert at(cast).encode() not in client.get(at(cast, "")).content


def test_rest_returns_the_same_entries_in_pages(client, cast):
    client.force_login(cast.alice)
    address = f"/api/v1/workspaces/{cast.project.workspace.slug}/audit"
    first = client.get(address, {"limit": 2}).json()
    assert len(first["entries"]) == 2
    rest = client.get(address, {"limit": 200, "cursor": first["next"]}).json()
    texts = [one["text"] for one in first["entries"] + rest["entries"]]
    assert texts == audit_texts(cast) and rest["next"] is None
    for wrong in ({"cursor": "x"}, {"cursor": "2026-01-01~0~1"}, {"since": "2026-01-01T00:00:00"}):
        assert client.get(address, wrong).status_code == 422


def rows_of(response) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(b"".join(response).decode(), newline="")))


def test_a_file_has_every_entry_once_with_what_was_used(client, cast):
    workspace = cast.project.workspace
    Project.objects.bulk_create(
        Project(workspace=workspace, name=f"P{one}", slug=f"p{one}") for one in range(PAGE_ROWS)
    )
    client.force_login(cast.alice)
    client.post(at(cast, "projects/"), {"name": "Elms, old", "visibility": "private"})
    response = client.get(at(cast, "audit/file/"))
    rows = rows_of(response)
    assert [one["text"] for one in rows] == audit_texts(cast, limit=1000) and len(rows) > PAGE_ROWS
    (elms,) = (one for one in rows if "Elms, old" in one["text"])
    assert (elms["user"], elms["kind"], elms["method"]) == ("alice", "project", "POST")
    assert elms["route"] == "workspaces/<slug:slug>/projects/" and elms["address"] == "127.0.0.1"
    name = f'attachment; filename="{workspace.slug}-activity.csv"'
    assert response.headers["Content-Disposition"] == name
    rest = f"/api/v1/workspaces/{workspace.slug}/audit/file"
    assert rows_of(client.get(rest)) == rows
    for address, query in (
        (rest, {"kind": "member"}),
        (at(cast, "audit/file/"), {"kind": "member"}),
    ):
        assert {one["kind"] for one in rows_of(client.get(address, query))} == {"member"}


def test_no_name_of_people_starts_a_formula_in_the_file(client, cast):
    User.objects.filter(pk=cast.alice.pk).update(username="+2+5")
    secret = a_token(cast.alice, cast.project.workspace, Scope.ADMIN)
    ApiToken.objects.update(name="=SUM(A1)")
    cast.alice.refresh_from_db()
    bearer = {"Authorization": f"Bearer {secret}"}
    address = f"/api/v1/workspaces/{cast.project.workspace.slug}/projects"
    made = client.post(address, {"name": "Elms"}, "application/json", headers=bearer)
    assert made.status_code == 201, made.content
    client.force_login(cast.alice)
    first = rows_of(client.get(at(cast, "audit/file/"), {"kind": "project"}))[0]
    assert (first["user"], first["token"]) == ("'+2+5", "'=SUM(A1)")
    assert first["text"].startswith("'+2+5 created the project Elms")


def test_a_file_refuses_filters_that_cannot_be_used_and_other_people(client, cast):
    client.force_login(cast.alice)
    for wrong in ({"kind": "x"}, {"since": "then"}, {"person": "7000"}):
        refusal = client.get(at(cast, "audit/file/"), wrong)
        ((name, value),) = wrong.items()
        assert refusal.status_code == 400 and f"{name}: {value}".encode() in refusal.content
    shown = client.get(at(cast), {"kind": "project"}).content.decode()
    assert f'{at(cast, "audit/file/")}?kind=project"' in shown
    client.force_login(cast.mia)
    assert client.get(at(cast, "audit/file/")).status_code == 403


def test_entries_of_a_deleted_account_remain_without_its_name(cast):
    dora = User.objects.create_user("dora")
    member = Membership.objects.create(
        workspace=cast.project.workspace, user=dora, role=Role.MEMBER
    )
    member.delete()
    dora.delete()
    assert "Grove removed a deleted account from Trees" in audit_texts(cast)
    assert Workspace.objects.filter(pk=cast.project.workspace_id).exists() and not (
        Run.objects.exists()
    )


def test_promotions_and_workspace_rules_are_recorded(cast):
    model = Model.objects.create(project=cast.project, name="oak")
    requested = {"model": model, "alias": "champion", "number": 2, "reason": "It is better."}
    query = Promotion.objects.create(**requested, state=PromotionState.WAITING, asked_by=cast.bob)
    Promotion.objects.filter(pk=query.pk).update(state=PromotionState.DONE)
    SecondPairOfEyes.objects.create(workspace=cast.project.workspace)
    assert audit_texts(cast)[:3] == [
        "Grove required a second person at each promotion",
        "Grove approved moving champion of oak to v2",
        "Grove requested to move champion of oak to v2",
    ]
    assert "better" not in str(list(models.PromotionEvent.objects.values()))
