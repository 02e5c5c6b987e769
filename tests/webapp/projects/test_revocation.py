"""Tests of what ends with a membership, a role or access to a project: every way back in."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from io import BytesIO

import pytest
from django.db import connection, transaction
from django.test import Client

from tests.helpers.builders import a_cast, a_registry, a_run, a_token
from tests.helpers.waiting import eventually
from webapp.accounts.models import ApiToken, Scope
from webapp.artifacts.models import Upload
from webapp.artifacts.services import append, begin
from webapp.audit.selectors import AuditQuery, entries
from webapp.experiments.models import Experiment, Run
from webapp.projects import membership, services
from webapp.projects.models import Invitation, Membership, Role, Visibility
from webapp.registry.models import Promotion, PromotionState
from webapp.sharing import comparisons
from webapp.sharing.models import ComparisonShare, Share
from webapp.sharing.services import create_share

WEEK = timedelta(days=7)


def audit(workspace, count: int = 200) -> list[str]:
    return [one.text for one in entries(workspace, AuditQuery(), None, count)[0]]


def at(cast, rest: str = "") -> str:
    return f"/workspaces/{cast.project.workspace.slug}/{rest}"


def follow(user, path: str) -> int:
    browser = Client()
    browser.force_login(user)
    return browser.post(path).status_code


def is_in(cast, user) -> bool:
    return Membership.objects.filter(workspace=cast.project.workspace, user=user).exists()


def remove(client, cast, user) -> None:
    client.force_login(cast.alice)
    assert client.post(at(cast, f"members/{user.pk}/remove/")).status_code == 302
    assert not is_in(cast, user)


@pytest.mark.parametrize("single_use", [True, False])
def test_links_of_a_removed_member_admit_nobody(client, cast, single_use):
    workspace = cast.project.workspace
    path = membership.invite(workspace, cast.mia, Role.MEMBER, single_use)
    remove(client, cast, cast.mia)
    for user in (cast.mia, cast.charlie):
        assert follow(user, path) == 410 and not is_in(cast, user)
    revoked, removed = audit(workspace)[:2]
    assert revoked.startswith("alice revoked an invitation as member")
    assert removed == "alice removed mia from Trees"
    Membership.objects.create(workspace=workspace, user=cast.mia, role=Role.MAINTAINER)
    assert follow(cast.charlie, path) == 410, "what was revoked stays so"


@pytest.mark.parametrize("single_use", [True, False])
def test_a_removed_member_does_not_return_by_an_earlier_link(client, cast, single_use):
    path = membership.invite(cast.project.workspace, cast.alice, Role.MAINTAINER, single_use)
    assert follow(cast.bob, path) == 302, "a member opens it, and it is not spent"
    remove(client, cast, cast.bob)
    assert follow(cast.bob, path) == 410 and not is_in(cast, cast.bob)
    token = path.rstrip("/").rsplit("/", 1)[1]
    client.force_login(cast.bob)
    by_rest = client.post("/api/v1/invitations/accept", {"token": token}, "application/json")
    assert by_rest.status_code == 404 and client.get(path).status_code == 410
    assert follow(cast.charlie, path) == 302 and is_in(cast, cast.charlie)
    later = membership.invite(cast.project.workspace, cast.alice, Role.VIEWER, single_use)
    assert follow(cast.bob, later) == 302 and is_in(cast, cast.bob)


def test_leaving_is_no_way_to_a_higher_role_by_an_old_link(cast):
    workspace = cast.project.workspace
    path = membership.invite(workspace, cast.alice, Role.MAINTAINER, single_use=False)
    membership.leave(workspace, cast.vera)
    assert follow(cast.vera, path) == 410 and not is_in(cast, cast.vera)


def test_links_end_that_a_lower_role_could_not_make(cast):
    workspace = cast.project.workspace
    membership.change_role(workspace, cast.bob.pk, Role.OWNER, cast.alice)
    high, low = (
        membership.invite(workspace, cast.bob, role, single_use=False)
        for role in (Role.MAINTAINER, Role.VIEWER)
    )
    membership.change_role(workspace, cast.bob.pk, Role.MAINTAINER, cast.alice)
    assert follow(cast.charlie, high) == 410 and Invitation.objects.open().count() == 1
    assert follow(cast.charlie, low) == 302
    membership.change_role(workspace, cast.bob.pk, Role.MEMBER, cast.alice)
    assert not Invitation.objects.open().exists()


def test_tokens_beyond_a_lower_role_end_and_the_others_stay(cast):
    workspace = cast.project.workspace
    for scopes in ([Scope.RUNS_WRITE], [Scope.RUNS_READ, Scope.ADMIN], [Scope.RUNS_READ]):
        a_token(cast.bob, workspace, *scopes)
    membership.change_role(workspace, cast.bob.pk, Role.VIEWER, cast.alice)
    (kept,) = ApiToken.objects.valid()
    assert kept.scopes == [Scope.RUNS_READ]
    assert len([one for one in audit(workspace) if "revoked the token robot" in one]) == 2


@pytest.mark.parametrize("how", ["removed", "demoted"])
def test_links_uploads_and_requests_end_with_the_right_to_make_them(
    client, cast, var_directory, how, django_capture_on_commit_callbacks
):
    workspace = cast.project.workspace
    runs = [a_run(cast), a_run(cast)]
    paths = [
        create_share(runs[0], cast.mia, WEEK)[1],
        comparisons.share(runs, "test", cast.mia, WEEK, frozen=True)[1],
        comparisons.share(runs, "test", cast.mia, WEEK, frozen=False)[1],
    ]
    kept = create_share(runs[0], cast.alice, WEEK)[1]
    promotion = Promotion.objects.get(pk=a_registry(cast)["promotion_id"])
    upload = begin(cast.project, cast.mia, Upload.Kind.DATASET, "a.jsonl", 9)
    append(upload, 0, BytesIO(b"half"))
    mine = begin(cast.project, cast.bob, Upload.Kind.DATASET, "b.jsonl", 9)
    assert [Client().get(path).status_code for path in paths] == [200] * 3
    with django_capture_on_commit_callbacks(execute=True):
        if how == "removed":
            membership.remove_member(workspace, cast.mia.pk, cast.alice)
        else:
            membership.change_role(workspace, cast.mia.pk, Role.VIEWER, cast.alice)
    assert [Client().get(path).status_code for path in [*paths, kept]] == [404] * 3 + [200]
    assert Share.objects.valid().count() == 1 and not ComparisonShare.objects.valid().exists()
    assert list(Upload.objects.all()) == [mine] and not list((var_directory / "uploads").iterdir())
    promotion.refresh_from_db()
    assert promotion.state == PromotionState.WITHDRAWN
    noted = audit(workspace)
    for words, times in (("revoked a share link to a comparison", 2), ("revoked a share link", 3),
                         ("withdrew the request to move candidate of oak", 1)):  # fmt: skip
        assert len([one for one in noted if words in one]) == times, words


@pytest.mark.parametrize("role", [None, Role.VIEWER])
def test_a_link_shows_nothing_however_its_maker_lost_the_right(cast, role):
    """Also for changes that no service made: rows of an older version, or edits in the database."""
    runs = [a_run(cast), a_run(cast)]
    paths = [
        create_share(runs[0], cast.bob, WEEK)[1],
        comparisons.share(runs, "test", cast.bob, WEEK, frozen=True)[1],
    ]
    held = Membership.objects.filter(user=cast.bob)
    held.update(role=role) if role else held.delete()
    for path in paths:
        assert Client().get(path).status_code == 404
    assert Client().get(f"/api/v1{paths[0]}state").status_code == 404


def test_links_to_a_project_that_became_private_end(cast):
    run = a_run(cast)
    path = create_share(run, cast.bob, WEEK)[1]
    services.change_visibility(cast.project, Visibility.PRIVATE)
    assert Client().get(path).status_code == 404
    services.change_visibility(cast.project, Visibility.WORKSPACE)
    assert Client().get(path).status_code == 404
    assert "revoked a share link" in " ".join(audit(cast.project.workspace))


@pytest.fixture
def both(cast):
    """Dora maintains Trees and a workspace of Charlie, and shares a comparison of a run of each:
    (run of Trees, run of Charlie's, link's path, share)."""
    elsewhere = cast.charlie.memberships.get().workspace
    project = services.create_project(elsewhere, "Elms", "elms", created_by=cast.charlie)
    Membership.objects.create(workspace=elsewhere, user=cast.mia, role=Role.MAINTAINER)
    first = a_run(cast)
    second = a_run(replace(cast, project=project))
    Experiment.objects.filter(runs=second).update(name="Wind")
    second = Run.objects.get(pk=second.pk)
    share, path = comparisons.share([first, second], "test", cast.mia, WEEK, frozen=True)
    return first, second, path, share


@pytest.mark.parametrize("place", [0, 1])
def test_a_comparison_over_two_workspaces_is_listed_and_ended_in_each(client, cast, both, place):
    *runs, path, share = both
    run, other = runs[place], runs[1 - place]
    client.force_login((cast.bob, cast.charlie)[place])
    (listed,) = client.get(f"/api/v1/comparison/shares?run={run.pk}").json()["shares"]
    assert (listed["id"], listed["runs"], listed["hidden"]) == (share.pk, [str(run.pk)], 1)
    page = client.get(f"/runs/{run.pk}/shares/").content.decode()
    assert "2 runs, frozen" in page and "and 1 more that you cannot view" in page
    assert str(other) not in page and str(other.pk) not in page
    assert f"/compare/shares/{share.pk}/revoke/" in page
    if place:
        ended = client.post(f"/compare/shares/{share.pk}/revoke/")
        assert ended.url == f"/runs/{run.pk}/shares/"
    else:
        assert client.delete(f"/api/v1/comparison/shares/{share.pk}").status_code == 204
    assert Client().get(path).status_code == 404
    for workspace in {one.project.workspace for one in runs}:
        noted = audit(workspace)
        assert "a share link to a comparison of 2 runs" in " ".join(noted[:1])
        assert len([one for one in noted if "link to a comparison" in one]) == 2, "made and revoked"


def test_ending_a_comparison_link_requires_the_right_to_share_a_run_of_it(client, cast, both):
    share = both[3]
    for who, status in ((cast.vera, 403), (cast.mia, 204)):
        client.force_login(who)
        assert client.delete(f"/api/v1/comparison/shares/{share.pk}").status_code == status


@pytest.mark.parametrize("place", [0, 1])
def test_a_comparison_ends_when_its_maker_loses_one_of_its_runs(cast, both, place):
    *runs, path, _ = both
    owner = (cast.alice, cast.charlie)[place]
    assert Client().get(path).status_code == 200
    membership.remove_member(runs[place].project.workspace, cast.mia.pk, owner)
    assert Client().get(path).status_code == 404 and not ComparisonShare.objects.valid().exists()
    for run in runs:
        assert "revoked a share link to a comparison" in audit(run.project.workspace)[0]


def blocked() -> bool:
    """Whether another connection waits for a lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return cursor.fetchone()[0] > 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "method, address, body",
    [
        ("patch", "members/{vera}", {"role": "member"}),
        ("delete", "members/{vera}", None),
        ("post", "invitations", {"role": "member"}),
    ],
)
def test_a_role_under_revocation_permits_no_action(method, address, body):
    """Two connections: Mia's request has started while Alice's demotion of her is not committed."""
    cast = a_cast()
    workspace = cast.project.workspace
    path = f"/api/v1/workspaces/{workspace.slug}/{address.format(vera=cast.vera.pk)}"

    def ask() -> int:
        try:
            browser = Client()
            browser.force_login(cast.mia)
            return getattr(browser, method)(path, body, "application/json").status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as elsewhere:
        with transaction.atomic():
            membership.change_role(workspace, cast.mia.pk, Role.MEMBER, cast.alice)
            answer = elsewhere.submit(ask)
            eventually(blocked, "Mia's request to wait for the workspace", 20)
        assert answer.result(20) == 403
    assert Membership.objects.get(workspace=workspace, user=cast.vera).role == Role.VIEWER
    assert not Invitation.objects.exists()
