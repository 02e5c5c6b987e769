"""Reads of comments and notices. What a user sees starts with `visible_to`."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from webapp.accounts.models import User
from webapp.comments.models import Comment, Notice
from webapp.comments.targets import Target
from webapp.projects.permissions import Action, may

PAGE_ROWS = 50
"""Comments on one page."""


def visible_comments(user: User) -> QuerySet[Comment]:
    return Comment.objects.visible_to(user).select_related("author", "run__experiment__project")


def thread_page(target: Target, before: int | None = None) -> tuple[list[Comment], int | None]:
    """The newest `PAGE_ROWS` comments with an id below `before`, oldest first, and `before` of the
    page with earlier ones, None on the last."""
    comments = target.thread().select_related("author").order_by("-pk")
    rows = list((comments.filter(pk__lt=before) if before else comments)[: PAGE_ROWS + 1])
    shown = rows[:PAGE_ROWS][::-1]
    return shown, shown[0].pk if len(rows) > PAGE_ROWS else None


def may_write(user: User, target: Target) -> bool:
    """Whether `user` may comment on every run of the target."""
    return all(may(user, Action.COMMENT, project) for project in target.projects)


def may_moderate(user: User, target: Target) -> bool:
    """Whether `user` may remove what others wrote on the target."""
    return all(may(user, Action.MODERATE, project) for project in target.projects)


def notices_of(user: User) -> QuerySet[Notice]:
    """Notices of `user`, newest first."""
    return (
        Notice.objects.visible_to(user)
        .select_related("comment__author", "comment__run__experiment")
        .order_by("-pk")
    )


def unread(request: HttpRequest) -> dict[str, Any]:
    """Context of every template: `unread_notices`, a function that counts the user's unread
    notices."""

    @cache
    def count() -> int:
        user = request.user
        return notices_of(user).filter(read_at=None).count() if user.is_authenticated else 0

    return {"unread_notices": count}
