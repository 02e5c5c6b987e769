"""Page of a workspace's audit log, and the same as a file."""

from __future__ import annotations

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.audit.files import sent
from webapp.audit.forms import AuditForm
from webapp.audit.selectors import BadCursor, entries, people_of
from webapp.projects.models import Workspace
from webapp.projects.permissions import Action, require
from webapp.projects.selectors import visible_workspace

PAGE_ROWS = 50


@require_safe
def audit(request: HttpRequest, slug: str) -> HttpResponse:
    """audit.html: `workspace`, `form` (AuditForm), `entries` (selectors.Entry), `next` (address of
    the next page, or ""), `is_first`, `is_filtered` and `filters`, the query without its page. The
    address contains the whole query."""
    workspace = _audited(request, slug)
    form = AuditForm(people_of(workspace), request.GET)
    filters = request.GET.copy()
    filters.pop("cursor", None)
    context = {
        "workspace": workspace,
        "form": form,
        "is_first": "cursor" not in request.GET,
        "filters": filters.urlencode(),
    }
    if not form.is_valid():
        return render(request, "audit.html", context, status=422)
    try:
        rows, more = entries(workspace, form.query(), request.GET.get("cursor"), PAGE_ROWS)
    except BadCursor:
        raise BadRequest("cursor: not of this list; use the links of the page") from None
    context |= {"entries": rows, "is_filtered": any(form.cleaned_data.values())}
    return render(request, "audit.html", context | {"next": _next(request, more)})


@require_safe
def audit_file(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Everything that the filters of `audit` select, as CSV."""
    workspace = _audited(request, slug)
    form = AuditForm(people_of(workspace), request.GET)
    if not form.is_valid():
        wrong = next(iter(form.errors))
        given = request.GET.get(wrong, "")[:40]
        raise BadRequest(f"{wrong}: {given}: {form.errors[wrong][0]}")
    return sent(request, workspace, form.query())


def _audited(request: HttpRequest, slug: str) -> Workspace:
    workspace = visible_workspace(request.user, slug)
    require(request.user, Action.AUDIT, workspace)
    return workspace


def _next(request: HttpRequest, cursor: str | None) -> str:
    if cursor is None:
        return ""
    query = request.GET.copy()
    query["cursor"] = cursor
    return f"?{query.urlencode()}"
