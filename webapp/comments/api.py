"""REST of comments and notices."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Path, Query, Router, Schema, Status
from pydantic import ConfigDict, Field, StringConstraints

from webapp.accounts.authentication import require_person
from webapp.comments import services
from webapp.comments.models import Comment, Notice, Reason
from webapp.comments.selectors import notices_of, visible_comments
from webapp.comments.targets import MOST_RUNS, find_target, run_ids_of, target_of
from webapp.comments.views import require_all, require_author, require_may_delete, site_of
from webapp.markdown import render
from webapp.projects.permissions import Action
from webapp.rest.json_types import integer
from webapp.rest.pagination import LARGEST_ID, Cursor, page

router = Router()
inbox = Router()

Id = Annotated[int, Path(ge=0, le=LARGEST_ID)]
Number = Annotated[int, Field(ge=0, le=LARGEST_ID)]
NumberInBody = integer(ge=0, le=LARGEST_ID)
Text = Annotated[
    str, StringConstraints(min_length=1, max_length=services.LONGEST, pattern=r"^[^\x00]*$")
]


class About(Cursor):
    """One run, a node of one of its trees, or a comparison of several runs."""

    run: list[uuid.UUID] = Field(min_length=1, max_length=MOST_RUNS)
    tree: Number | None = None
    node: Number | None = None


class CommentOut(Schema):
    id: int
    runs: list[uuid.UUID]
    tree: int | None
    node: int | None
    author: str
    text: str
    """Markdown."""
    html: str
    """The text as HTML, safe to show."""
    created: datetime
    edited: datetime | None

    @staticmethod
    def resolve_runs(comment: Comment) -> list[uuid.UUID]:
        return run_ids_of(comment)

    @staticmethod
    def resolve_author(comment: Comment) -> str:
        return comment.author.username

    @staticmethod
    def resolve_html(comment: Comment) -> str:
        return render(comment.text)


class CommentList(Schema):
    comments: list[CommentOut]
    next: int | None
    """Cursor of the next page, null on the last."""


class NewComment(Schema):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"run": ["00000000-0000-4000-8000-000000000000"], "text": "@mia, look at **this**"}
            ]
        },
    )

    run: list[uuid.UUID] = Field(min_length=1, max_length=MOST_RUNS)
    """One run, or those of a comparison."""
    tree: NumberInBody | None = None
    node: NumberInBody | None = None
    text: Text


class ChangedComment(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"text": "So."}]})

    text: Text


class NoticeOut(Schema):
    """Of a comment or a report, or with `reason` `alert` of what an alert rule saw."""

    id: int
    reason: Reason
    comment: CommentOut | None
    """Null for an alert or a report, which has the fields from `title` on; they are empty for a
    comment."""
    title: str
    text: str
    """The first cause, if there is one."""
    run: uuid.UUID | None
    path: str
    """Address within the site."""
    at: datetime | None
    """Since when."""
    read_at: datetime | None

    @staticmethod
    def resolve_run(notice: Notice) -> uuid.UUID | None:
        return notice.run_id


class NoticeList(Schema):
    notices: list[NoticeOut]
    next: int | None
    """Cursor of the next page, null on the last."""


class Read(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"notices": [1]}]})

    notices: list[NumberInBody] | None = Field(None, min_length=1, max_length=1000)
    """Ids; null marks all."""


@router.get("", response=CommentList)
def list_comments(request: HttpRequest, about: Query[About]):
    """Lists comments, oldest first."""
    target = find_target(request.user, about.run, about.tree, about.node)
    return page(target.thread().select_related("author"), "comments", about)


@router.post("", response={201: CommentOut})
def create_comment(request: HttpRequest, new: NewComment):
    """Posts a comment on a run, a node or a comparison; notifies members mentioned by @name."""
    target = find_target(request.user, new.run, new.tree, new.node)
    require_all(request, target, Action.COMMENT)
    return Status(201, services.write_comment(target, request.user, new.text, site_of(request)))


@router.patch("/{comment_id}", response=CommentOut)
def change_comment(request: HttpRequest, comment_id: Id, change: ChangedComment):
    """Edits your comment."""
    comment = get_object_or_404(visible_comments(request.user), pk=comment_id)
    target = target_of(comment, request.user)
    require_author(request, comment, target)
    services.change_comment(comment, target, change.text, site_of(request))
    return comment


@router.delete("/{comment_id}", response={204: None})
def delete_comment(request: HttpRequest, comment_id: Id):
    """Deletes your comment, or as a maintainer that of another user."""
    comment = get_object_or_404(visible_comments(request.user), pk=comment_id)
    require_may_delete(request, comment, target_of(comment, request.user))
    services.delete_comment(comment)
    return Status(204, None)


@inbox.get("", response=NoticeList)
def list_notices(request: HttpRequest, query: Query[Cursor]):
    """Lists your notices, oldest first."""
    require_person(request.user)
    return page(notices_of(request.user), "notices", query)


@inbox.post("/read", response={204: None})
def mark_notices_read(request: HttpRequest, read: Read):
    """Marks these notices as read, or all."""
    require_person(request.user)
    services.read_notices(request.user, *(read.notices or ()))
    return Status(204, None)
