"""Comments on a run, a node of one of its trees, or a comparison of runs, and the notices of an
inbox: of comments, of alerts (`webapp.alerts`) and of reports (`webapp.reports`).

Invariants: a comment is visible to users who may see every run that it is about, and to no guest of
a share link; text is stored as it was written, and made safe where it is shown (`webapp.markdown`).
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from webapp.accounts.models import User
from webapp.experiments.models import InRunQuerySet, Run
from webapp.names import NameColumn, TextColumn
from webapp.projects.models import Project


class CommentQuerySet(InRunQuerySet):
    def visible_to(self, user: User) -> CommentQuerySet:
        """Comments on runs all of which `user` may see."""
        hidden = ComparedRun.objects.exclude(run__in=Run.objects.visible_to(user))
        return super().visible_to(user).exclude(pk__in=hidden.values("comment"))


class Comment(models.Model):
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="comments")
    """Of a comparison the first of its runs, by id."""
    tree = models.BigIntegerField(null=True)
    node = models.BigIntegerField(null=True)
    comparison = models.CharField(max_length=400, blank=True)
    """Ids of the compared runs, in order, with commas; blank for a single run."""
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    text = models.TextField()
    """Markdown."""
    created = models.DateTimeField(auto_now_add=True)
    edited = models.DateTimeField(null=True)

    objects = CommentQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(tree=None, node=None)
                | Q(tree__isnull=False, node__isnull=False, comparison=""),
                name="comment_on_one_thing",
            )
        ]
        indexes = [models.Index(fields=["run", "tree", "node", "id"], name="comment_thread")]


class ComparedRun(models.Model):
    """One of the runs that a comment on a comparison is about."""

    comment = models.ForeignKey(Comment, on_delete=models.CASCADE, related_name="compared")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")


class Reason(models.TextChoices):
    """Why a user is notified: of a comment or a report, or by an alert."""

    MENTIONED = "mentioned", "mentioned you"
    OWN_RUN = "own-run", "wrote about your run"
    ANSWERED = "answered", "wrote where you had written"
    ALERT = "alert", "alert"


class NoticeQuerySet(models.QuerySet):
    def visible_to(self, user: User) -> NoticeQuerySet:
        """The user's own notices, of comments and projects that they may still see."""
        mine = self.filter(user=user.pk)
        of_comments = Q(comment__in=Comment.objects.visible_to(user).values("pk"))
        projects = Project.objects.visible_to(user).values("pk")
        of_others = Q(comment=None) & (Q(project=None) | Q(project__in=projects))
        return mine.filter(of_comments | of_others)


class Notice(models.Model):
    """Notifies one user of a comment, of a report that mentions them, or of what an alert rule saw,
    once."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notices"
    )
    comment = models.ForeignKey(
        Comment, on_delete=models.CASCADE, null=True, related_name="notices"
    )
    """Null for a report or an alert, which has the following fields."""
    key = models.CharField(max_length=400, null=True)
    """What happened: of one user and key there is one notice."""
    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, related_name="+")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, related_name="+")
    title = NameColumn(max_length=300, blank=True)
    text = TextColumn(blank=True)
    path = models.CharField(max_length=300, blank=True)
    """Address within the site."""
    at = models.DateTimeField(null=True)
    """Since when."""
    reason = models.CharField(max_length=10, choices=Reason.choices)
    read_at = models.DateTimeField(null=True)

    objects = NoticeQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "comment"], name="told_once"),
            models.UniqueConstraint(fields=["user", "key"], name="one_notice_per_key"),
        ]
        indexes = [
            models.Index(fields=["user"], condition=Q(read_at=None), name="notice_unread"),
        ]
