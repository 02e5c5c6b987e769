"""Page of a workspace's audit log."""

from __future__ import annotations

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.audit.forms import AuditForm
from webapp.audit.selectors import BadCursor, entries, people_of
from webapp.projects.permissions import Action, require
from webapp.projects.selectors import visible_workspace

PAGE_ROWS = 50


@require_safe
def audit(request: HttpRequest, slug: str) -> HttpResponse:
    """audit.html: `workspace`, `form` (AuditForm), `entries` (selectors.Entry), `next` (address of
    the next page, or ""), `is_first` and `is_filtered`. The address contains the whole query."""
    workspace = visible_workspace(request.user, slug)
    require(request.user, Action.AUDIT, workspace)
    form = AuditForm(people_of(workspace), request.GET)
    context = {"workspace": workspace, "form": form, "is_first": "cursor" not in request.GET}
    if not form.is_valid():
        return render(request, "audit.html", context, status=422)
    try:
        rows, more = entries(workspace, form.query(), request.GET.get("cursor"), PAGE_ROWS)
    except BadCursor:
        raise BadRequest("cursor: not of this list; use the links of the page") from None
    context |= {"entries": rows, "is_filtered": any(form.cleaned_data.values())}
    return render(request, "audit.html", context | {"next": _next(request, more)})


def _next(request: HttpRequest, cursor: str | None) -> str:
    if cursor is None:
        return ""
    query = request.GET.copy()
    query["cursor"] = cursor
    return f"?{query.urlencode()}"
