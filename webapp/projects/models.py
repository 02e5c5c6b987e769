"""Workspaces, their projects, and invitation links.

Invariants: every object of the product belongs to exactly one project; `visible_to` of its queryset
decides what a person sees of it, `projects.permissions` what they may do with it. A workspace
always has an owner (`projects.membership`). The token of an invitation is never stored, only its
digest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from webapp.names import NameColumn

if TYPE_CHECKING:
    from webapp.accounts.models import User


class Role(models.TextChoices):
    """From the most powerful to the least."""

    OWNER = "owner"
    MAINTAINER = "maintainer"
    MEMBER = "member"
    VIEWER = "viewer"

    def outranks(self, other: Role) -> bool:
        order = list(Role)
        return order.index(self) < order.index(other)


GIVEN_BY_LINK: dict[Role | None, tuple[Role, ...]] = {
    Role.OWNER: (Role.MAINTAINER, Role.MEMBER, Role.VIEWER),
    Role.MAINTAINER: (Role.MEMBER, Role.VIEWER),
}
"""Role -> roles that its holder may give by an invitation."""


class Visibility(models.TextChoices):
    """Who in the workspace sees a project."""

    WORKSPACE = "workspace", "everybody in the workspace"
    PRIVATE = "private", "its creator and the owners only"


class WorkspaceQuerySet(models.QuerySet):
    def visible_to(self, user: User) -> WorkspaceQuerySet:
        """Workspaces that `user` is a member of; through a token, only the one it is bound to."""
        if not user.is_active:
            return self.none()
        mine = self.filter(memberships__user=user.pk)
        if user.token is None:
            return mine
        return self.none() if user.token.project_id else mine.filter(pk=user.token.workspace_id)


class Workspace(models.Model):
    name = NameColumn(max_length=100)
    slug = models.SlugField(max_length=60, unique=True)
    created = models.DateTimeField(auto_now_add=True)

    objects = WorkspaceQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name


class MembershipQuerySet(models.QuerySet):
    def visible_to(self, user: User) -> MembershipQuerySet:
        """Memberships of the workspaces that `user` is a member of."""
        return self.filter(workspace__in=Workspace.objects.visible_to(user).values("pk"))


class Membership(models.Model):
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    role = models.CharField(max_length=12, choices=Role.choices)

    objects = MembershipQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "user"], name="one_role_per_member")
        ]


class ProjectQuerySet(models.QuerySet):
    def visible_to(self, user: User) -> ProjectQuerySet:
        """Projects of the user's workspaces, except those that others made private; an owner sees
        them all. Through a token, only what it is bound to."""
        if not user.is_active:
            return self.none()
        mine = Membership.objects.filter(user=user.pk)
        projects = self
        if user.token is not None:
            mine = mine.filter(workspace=user.token.workspace_id)
            if user.token.project_id:
                projects = projects.filter(pk=user.token.project_id)
        owned = mine.filter(role=Role.OWNER)
        return projects.filter(
            Q(visibility=Visibility.WORKSPACE)
            | Q(created_by=user.pk)
            | Q(workspace__in=owned.values("workspace")),
            workspace__in=mine.values("workspace"),
        )


class Project(models.Model):
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="projects")
    name = NameColumn(max_length=100)
    slug = models.SlugField(max_length=60)
    visibility = models.CharField(
        max_length=10, choices=Visibility.choices, default=Visibility.WORKSPACE
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created = models.DateTimeField(auto_now_add=True)

    objects = ProjectQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "slug"], name="project_slug_in_workspace")
        ]

    def __str__(self) -> str:
        return self.name


class InvitationQuerySet(models.QuerySet):
    def visible_to(self, user: User) -> InvitationQuerySet:
        """Invitations to the workspaces in which `user` may invite."""
        managing = Membership.objects.visible_to(user).filter(
            user=user.pk, role__in=(Role.OWNER, Role.MAINTAINER)
        )
        return self.filter(workspace__in=managing.values("workspace"))

    def unspent(self) -> InvitationQuerySet:
        """Invitations that are neither revoked, nor used up, nor expired."""
        unused = Q(single_use=False) | Q(uses=0)
        return self.filter(unused, revoked_at=None, expires__gt=Now())

    def open(self) -> InvitationQuerySet:
        """Invitations that still admit a user: unspent, by a creator who may still give the
        role."""
        makers = Membership.objects.filter(
            workspace=OuterRef("workspace"), user=OuterRef("created_by"), user__is_active=True
        )
        may_give = Q()
        for role, given in GIVEN_BY_LINK.items():
            may_give |= Exists(makers.filter(role=role)) & Q(role__in=given)
        return self.unspent().filter(may_give)


class Invitation(models.Model):
    """A link that makes the user who opens it a member."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=12, choices=Role.choices)
    digest = models.CharField(max_length=64, unique=True)
    single_use = models.BooleanField(default=True)
    uses = models.PositiveIntegerField(default=0)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    barred = ArrayField(models.BigIntegerField(), default=list)
    """Ids of users who left, or were removed, since its creation: it does not admit them again."""

    objects = InvitationQuerySet.as_manager()


class QueuePlace(models.Model):
    """A place in a queue of `turns`, or what remains of it: when its person and workspace had their
    last turn."""

    queue = models.CharField(max_length=20)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, null=True, related_name="+")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+"
    )
    work = models.CharField(max_length=64)
    """Digest of what is waited for, by which a repeated request finds its place."""
    is_waiting = models.BooleanField(default=False)
    since = models.DateTimeField(null=True)
    """When it began to wait."""
    renewed_at = models.DateTimeField()
    served_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["queue", "user", "work"], name="one_place_per_work")
        ]
        indexes = [models.Index(fields=["queue", "renewed_at"], name="queue_renewed")]


class InProjectQuerySet(models.QuerySet):
    """Base of the querysets of everything that belongs to a project."""

    project_path = "project"

    def visible_to(self, user: User) -> InProjectQuerySet:
        """Objects in projects that `user` may see. Applied first, everywhere."""
        visible = Project.objects.visible_to(user).values("pk")
        return self.filter(**{f"{self.project_path}__in": visible})
