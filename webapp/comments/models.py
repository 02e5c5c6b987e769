"""Comments on a run, a node of one of its trees, or a comparison of runs.

Invariants: a comment is visible to users who may see every run that it is about, and to no guest of
a share link; text is stored as it was written, and made safe where it is shown (`webapp.markdown`).
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from webapp.accounts.models import User
from webapp.experiments.models import InRunQuerySet, Run


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
    """Why a user is notified of a comment."""

    MENTIONED = "mentioned", "mentioned you"
    OWN_RUN = "own-run", "wrote about your run"
    ANSWERED = "answered", "wrote where you had written"


class NoticeQuerySet(models.QuerySet):
    def visible_to(self, user: User) -> NoticeQuerySet:
        """The user's own notices, of comments that they may still see."""
        mine = self.filter(user=user.pk)
        return mine.filter(comment__in=Comment.objects.visible_to(user).values("pk"))


class Notice(models.Model):
    """Notifies one user of a comment, once."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notices"
    )
    comment = models.ForeignKey(Comment, on_delete=models.CASCADE, related_name="notices")
    reason = models.CharField(max_length=10, choices=Reason.choices)
    read_at = models.DateTimeField(null=True)

    objects = NoticeQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "comment"], name="told_once")]
        indexes = [
            models.Index(fields=["user"], condition=Q(read_at=None), name="notice_unread"),
        ]
