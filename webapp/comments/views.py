"""Pages of comments: a thread, the edit form, and the inbox."""

from __future__ import annotations

from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.comments import services
from webapp.comments.forms import CommentForm, TargetForm
from webapp.comments.models import Comment
from webapp.comments.selectors import (
    may_moderate,
    may_write,
    notices_of,
    thread_page,
    visible_comments,
)
from webapp.comments.targets import Target, address_of, find_target, target_of
from webapp.projects.permissions import Action, require

PAGE_ROWS = 50


@require_http_methods(["GET", "HEAD", "POST"])
def comments(request: HttpRequest) -> HttpResponse:
    """comments.html: `target`, `thread` (of Comment), `earlier` (for `before`, or None),
    `can_write`, `can_moderate`, `form`. The query or the form selects the target: `?run=A`,
    `?run=A&tree=1&node=2`, `?run=A&run=B`; `&before=ID` shows the comments before that one."""
    target = _target(request)
    form = CommentForm(request.POST if request.method == "POST" else None)
    if form.is_bound:
        require_all(request, target, Action.COMMENT)
        if form.is_valid():
            text = form.cleaned_data["text"]
            made = services.write_comment(target, request.user, text, site_of(request))
            return redirect(address_of(made))
    context = thread_of(request, target) | {"form": form}
    return render(request, "comments.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, comment_id: int) -> HttpResponse:
    """comment.html: `comment`, `form` (CommentForm). A valid form redirects to the thread."""
    comment, target = _own(request, comment_id)
    given = request.POST if request.method == "POST" else None
    form = CommentForm(given, initial={"text": comment.text})
    if form.is_valid():
        services.change_comment(comment, target, form.cleaned_data["text"], site_of(request))
        return redirect(address_of(comment))
    context = {"comment": comment, "target": target, "form": form, "back": address_of(comment)}
    return render(request, "comment.html", context, status=422 if form.errors else 200)


@require_POST
def delete(request: HttpRequest, comment_id: int) -> HttpResponse:
    """Deletes one's own comment, or as a maintainer anybody's; redirects to the thread."""
    comment = get_object_or_404(visible_comments(request.user), pk=comment_id)
    target = target_of(comment, request.user)
    require_may_delete(request, comment, target)
    services.delete_comment(comment)
    return redirect(target.address())


@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    """inbox.html: `notices`, newest first, `is_first`, and `older`, the cursor of the next page."""
    before = _before(request)
    notices = notices_of(request.user)
    rows = list((notices.filter(pk__lt=before) if before else notices)[: PAGE_ROWS + 1])
    older = rows[PAGE_ROWS - 1].pk if len(rows) > PAGE_ROWS else None
    context = {"notices": rows[:PAGE_ROWS], "is_first": not before, "older": older}
    return render(request, "inbox.html", context)


@require_POST
def read(request: HttpRequest) -> HttpResponse:
    """Marks all notices as read; redirects to the inbox."""
    services.read_notices(request.user)
    return redirect("inbox")


@require_POST
def open_notice(request: HttpRequest, notice_id: int) -> HttpResponse:
    """Marks the notice as read; redirects to the comment, or to what the notice is about."""
    notice = get_object_or_404(notices_of(request.user), pk=notice_id)
    services.read_notices(request.user, notice.pk)
    return redirect(address_of(notice.comment) if notice.comment else notice.path)


def thread_of(request: HttpRequest, target: Target) -> dict[str, object]:
    """Context of parts/thread.html, without its `form`."""
    thread, earlier = thread_page(target, _before(request))
    return {
        "target": target,
        "thread": thread,
        "earlier": earlier,
        "can_write": may_write(request.user, target),
        "can_moderate": may_moderate(request.user, target),
    }


def require_all(request: HttpRequest, target: Target, action: Action) -> None:
    """Raises `PermissionDenied` unless `action` is allowed on every run of the target."""
    for project in target.projects:
        require(request.user, action, project)


def require_may_delete(request: HttpRequest, comment: Comment, target: Target) -> None:
    own = comment.author_id == request.user.pk
    require_all(request, target, Action.COMMENT if own else Action.MODERATE)


def require_author(request: HttpRequest, comment: Comment, target: Target) -> None:
    """Raises `PermissionDenied` unless the user wrote the comment, and may still write there."""
    if comment.author_id != request.user.pk:
        raise PermissionDenied("Only its author may edit a comment; write one of your own.")
    require_all(request, target, Action.COMMENT)


def site_of(request: HttpRequest) -> str:
    return f"{request.scheme}://{request.get_host()}"


def _before(request: HttpRequest) -> int | None:
    """The id before which a page ends, None on the first."""
    before = request.GET.get("before", "")
    if not before:
        return None
    if not (before.isascii() and before.isdecimal()) or len(before) > 18:
        raise BadRequest("before: not the id of a comment; use the links of the page")
    return int(before)


def _own(request: HttpRequest, comment_id: int) -> tuple[Comment, Target]:
    comment = get_object_or_404(visible_comments(request.user), pk=comment_id)
    target = target_of(comment, request.user)
    require_author(request, comment, target)
    return comment, target


def _target(request: HttpRequest) -> Target:
    form = TargetForm(request.POST if request.method == "POST" else request.GET)
    if not form.is_valid():
        field, reasons = next(iter(form.errors.items()))
        raise BadRequest(f"{field}: {reasons[0]}")
    given = form.cleaned_data
    return find_target(request.user, given["run"], given["tree"], given["node"])
