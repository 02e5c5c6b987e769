"""Tests of teams: who may join, who may do what to whom, and that there is always an owner."""

from datetime import timedelta

import pytest
from django.apps import apps
from django.utils import timezone

from tests.helpers.builders import a_held_run, a_token, an_event
from webapp.accounts.models import Scope, SignInLink, User
from webapp.accounts.tokens import user_by_secret
from webapp.artifacts.models import Artifact
from webapp.comments.models import ComparedRun
from webapp.experiments.models import Turn
from webapp.idempotency.models import KeptAnswer
from webapp.offboarding.models import WorkspaceExport, WorkspaceImport
from webapp.projects.membership import accept_invitation, invite
from webapp.projects.models import (
    Invitation,
    Membership,
    Project,
    QueuePlace,
    Role,
    Visibility,
    Workspace,
)
from webapp.projects.permissions import Action, may
from webapp.registry.models import SecondPairOfEyes
from webapp.retention.models import DeletedRun, RetentionPolicy
from webapp.sharing.models import ComparisonShare
from webapp.telemetry.ingest.ingest import ingest

JOINS = {"username": "dora", "password1": "lightly-shaded-42", "password2": "lightly-shaded-42"}


@pytest.fixture(autouse=True)
def quick_passwords(settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def roles(cast) -> dict[str, str]:
    members = cast.project.workspace.memberships.select_related("user")
    return {member.user.username: member.role for member in members}


def at(cast, rest: str = "") -> str:
    return f"/workspaces/{cast.project.workspace.slug}/{rest}"


def an_invitation(cast, role: Role = Role.MEMBER, single_use: bool = True) -> str:
    return invite(cast.project.workspace, cast.alice, role, single_use)


def test_a_link_is_shown_once_and_only_its_digest_is_kept(client, cast):
    client.force_login(cast.mia)
    page = client.post(at(cast, "invitations/"), {"role": "member", "single_use": "on"})
    link = page.context["link"]
    assert link in page.content.decode()
    assert link.rstrip("/").rsplit("/", 1)[1] not in str(Invitation.objects.values().get())
    assert "/invitations/" not in client.get(at(cast)).content.decode().replace(at(cast), "")


def test_an_existing_user_joins_by_a_link_once(client, cast):
    path = an_invitation(cast)
    client.force_login(cast.charlie)
    page = client.get(path)
    assert page.status_code == 200 and b"Join as charlie" in page.content
    assert "charlie" not in roles(cast), "opening the link alone joins nobody"
    assert client.post(path).url == at(cast)
    assert roles(cast)["charlie"] == "member"
    assert client.get(path).status_code == 410


def join(client, path: str, **change):
    """Follows the link and creates an account; returns the last response."""
    form = client.post(path)
    return client.post(form.url, JOINS | change)


def test_a_new_user_creates_an_account_and_joins(client, cast):
    path = an_invitation(cast, Role.VIEWER)
    assert join(client, path).url == at(cast)
    assert roles(cast)["dora"] == "viewer"
    assert client.get(at(cast)).wsgi_request.user.username == "dora"
    assert User.objects.get(username="dora").memberships.count() == 1


@pytest.mark.parametrize(
    "change", [{"password1": "12345678", "password2": "12345678"}, {"username": "alice"}]
)
def test_an_account_that_breaks_the_rules_is_not_made(client, cast, change):
    path = an_invitation(cast)
    answer = join(client, path, **change)
    assert answer.status_code == 200 and b'role="alert"' in answer.content
    assert not User.objects.filter(username="dora").exists()
    assert client.get(path).status_code == 200, "the link is not spent"


def test_a_member_who_opens_a_link_keeps_role_and_link(client, cast):
    path = an_invitation(cast, Role.VIEWER)
    client.force_login(cast.bob)
    assert client.post(path).status_code == 302
    assert roles(cast)["bob"] == "member" and client.get(path).status_code == 200


def test_a_link_for_many_works_until_it_is_revoked(client, cast):
    path = an_invitation(cast, single_use=False)
    for name in ("dora", "emil"):
        client.logout()
        assert join(client, path, username=name).status_code == 302
    client.force_login(cast.mia)
    invitation = Invitation.objects.get()
    client.post(at(cast, f"invitations/{invitation.pk}/revoke/"))
    assert client.get(path).status_code == 410 and {"dora", "emil"} <= roles(cast).keys()


def test_an_expired_link_admits_nobody(client, cast):
    path = an_invitation(cast)
    Invitation.objects.update(expires=timezone.now() - timedelta(seconds=1))
    client.force_login(cast.charlie)
    assert client.post(path).status_code == 410 and "charlie" not in roles(cast)


@pytest.mark.parametrize("role", ["owner", "maintainer"])
def test_a_maintainer_invites_only_lower_roles(client, cast, role):
    client.force_login(cast.mia)
    assert client.post(at(cast, "invitations/"), {"role": role}).status_code == 422
    assert not Invitation.objects.exists()


@pytest.mark.parametrize(
    "what, whom, body",
    [
        ("role", "vera", {"role": "owner"}),
        ("role", "vera", {"role": "maintainer"}),
        ("role", "alice", {"role": "viewer"}),
        ("role", "mia", {"role": "owner"}),
        ("remove", "alice", {}),
        ("transfer", "mia", {}),
    ],
)
def test_a_maintainer_does_not_rise_above_themselves(client, cast, what, whom, body):
    before = roles(cast)
    client.force_login(cast.mia)
    answer = client.post(at(cast, f"members/{getattr(cast, whom).pk}/{what}/"), body)
    assert answer.status_code == 403 and roles(cast) == before


def test_roles_change_and_members_go(client, cast):
    client.force_login(cast.alice)
    client.post(at(cast, f"members/{cast.vera.pk}/role/"), {"role": "maintainer"})
    client.post(at(cast, f"members/{cast.bob.pk}/remove/"))
    assert roles(cast) == {"alice": "owner", "mia": "maintainer", "vera": "maintainer"}
    client.force_login(cast.bob)
    assert client.get(at(cast)).status_code == 404
    assert (
        client.post(at(cast, f"members/{cast.vera.pk}/role/"), {"role": "nope"}).status_code == 404
    )


def test_the_last_owner_can_neither_leave_nor_step_down(client, cast):
    client.force_login(cast.alice)
    for path, body in (("leave/", {}), (f"members/{cast.alice.pk}/role/", {"role": "viewer"})):
        page = client.post(at(cast, path), body, follow=True)
        assert "needs an owner" in page.content.decode()
    assert roles(cast)["alice"] == "owner"


def test_a_workspace_is_handed_over_and_then_left(client, cast):
    client.force_login(cast.alice)
    client.post(at(cast, f"members/{cast.bob.pk}/transfer/"))
    assert roles(cast)["bob"] == "owner" and roles(cast)["alice"] == "maintainer"
    assert client.post(at(cast, "leave/")).url == "/workspaces/"
    assert "alice" not in roles(cast) and client.get(at(cast)).status_code == 404


def test_a_leaving_member_loses_their_workspace_tokens_for_good(cast, client):
    workspace = cast.project.workspace
    token = a_token(cast.bob, workspace, Scope.RUNS_READ)
    client.force_login(cast.bob)
    client.post(at(cast, "leave/"))
    assert user_by_secret(token) is None
    path = an_invitation(cast)
    accept_invitation(path.rstrip("/").rsplit("/", 1)[1], cast.bob)
    assert user_by_secret(token) is None


def test_a_private_project_is_seen_by_its_creator_and_the_owners(client, cast):
    client.force_login(cast.bob)
    client.post(at(cast, "projects/"), {"name": "Own things", "visibility": "private"})
    project = Project.objects.get(name="Own things")
    assert project.created_by == cast.bob and project.visibility == Visibility.PRIVATE
    seen = {
        who: may(getattr(cast, who), Action.READ, project) for who in vars(cast) if who != "project"
    }
    assert seen == {"alice": True, "mia": False, "bob": True, "vera": False, "charlie": False}
    client.post(f"/projects/{project.pk}/visibility/", {"visibility": "workspace"})
    assert may(cast.vera, Action.READ, project)


def test_projects_of_one_name_get_slugs_of_their_own(client, cast):
    client.force_login(cast.bob)
    for _ in range(2):
        client.post(at(cast, "projects/"), {"name": "Elms", "visibility": "workspace"})
    slugs = Project.objects.filter(name="Elms").values_list("slug", flat=True)
    assert sorted(slugs) == ["elms", "elms-2"]


def test_a_user_without_a_workspace_gets_one_at_sign_in(client, cast):
    dora = User.objects.create_user("dora")
    client.force_login(dora)
    client.force_login(dora)
    (workspace,) = Workspace.objects.visible_to(dora)
    project = workspace.projects.get()
    assert may(dora, Action.OPERATE, project) and not may(cast.alice, Action.READ, project)


def test_every_table_declares_who_sees_it(cast):
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, [an_event(1)])
    an_invitation(cast)
    a_token(cast.alice, cast.project, Scope.RUNS_READ)
    exempt = {User, SignInLink}  # memberships show people; nothing shows a link
    own = {model for model in apps.get_models() if model.__module__.startswith("webapp.")}
    # Objects with selectors of their own (notes to owners, contents by what refers to them,
    # comparisons by all of their runs), or with no reader.
    exempt |= {model for model in own if model.__module__ == "webapp.audit.models"}
    exempt |= {
        Artifact,
        ComparedRun,
        ComparisonShare,
        KeptAnswer,
        QueuePlace,
        SecondPairOfEyes,
        Turn,
        WorkspaceExport,
        WorkspaceImport,
        DeletedRun,
        RetentionPolicy,
    }
    for model in own - exempt - {Workspace, Membership}:  # Charlie has a workspace of his own
        assert model.objects.visible_to(cast.alice).count() == model.objects.count(), model
        assert not model.objects.visible_to(cast.charlie).exists(), model
    cast.alice.is_active = False
    for model in own - exempt:
        assert not model.objects.visible_to(cast.alice).exists(), model
