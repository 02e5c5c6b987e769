"""Teams and the projects they share.

Invariant: every object of the product belongs to exactly one project, and who may do what
with it follows from the membership of the project's workspace (`projects.permissions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models

if TYPE_CHECKING:
    from webapp.accounts.models import User


class Role(models.TextChoices):
    OWNER = "owner"
    MAINTAINER = "maintainer"
    MEMBER = "member"
    VIEWER = "viewer"


class Workspace(models.Model):
    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=60, unique=True)
    created = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    role = models.CharField(max_length=12, choices=Role.choices)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "user"], name="one_role_per_member")
        ]


class ProjectQuerySet(models.QuerySet):
    def visible_to(self, user: User) -> ProjectQuerySet:
        """Projects of the workspaces that `user` is a member of, in whatever role."""
        if not user.is_active:
            return self.none()
        mine = Membership.objects.filter(user_id=user.pk).values("workspace")
        return self.filter(workspace__in=mine)


class Project(models.Model):
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="projects")
    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=60)
    created = models.DateTimeField(auto_now_add=True)

    objects = ProjectQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "slug"], name="project_slug_in_workspace")
        ]

    def __str__(self) -> str:
        return self.name


class InProjectQuerySet(models.QuerySet):
    """Base of the querysets of everything that lies in a project."""

    project_path = "project"

    def visible_to(self, user: User) -> InProjectQuerySet:
        """What lies in a project that `user` may see. Applied first, everywhere."""
        visible = Project.objects.visible_to(user).values("pk")
        return self.filter(**{f"{self.project_path}__in": visible})
