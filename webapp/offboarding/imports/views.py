"""Page on which people import the zips of workspaces. The browser uploads them by REST."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from webapp.errors import Refused
from webapp.offboarding.imports import states
from webapp.offboarding.imports.api import changeable
from webapp.offboarding.imports.requests import SHOWN, owned_workspaces, visible_requests
from webapp.offboarding.models import ImportRequest


@require_safe
def imports(request: HttpRequest) -> HttpResponse:
    """workspace_imports.html: `owned` (Workspace, those that the user may import into), `into` (the
    slug of the one that the address names, or ""), `imports` (ImportRequest, newest first) and
    `pending` (whether one of them has not ended)."""
    owned = owned_workspaces(request.user)
    requested = request.GET.get("into", "")
    rows = list(visible_requests(request.user)[:SHOWN])
    context = {
        "owned": owned,
        "into": requested if requested in {one.slug for one in owned} else "",
        "imports": rows,
        "pending": any(one.is_open for one in rows),
    }
    return render(request, "workspace_imports.html", context)


@require_POST
def confirm(request: HttpRequest, workspace_import_id: int) -> HttpResponse:
    """Imports what was checked; redirects to the page."""
    return _changed(request, states.confirm, workspace_import_id)


@require_POST
def cancel(request: HttpRequest, workspace_import_id: int) -> HttpResponse:
    """Cancels an import; redirects to the page."""
    states.cancel(changeable(request, workspace_import_id), request.user)
    return redirect("workspace-imports")


@require_POST
def retry(request: HttpRequest, workspace_import_id: int) -> HttpResponse:
    """Queues a failed or cancelled import again; redirects to the page."""
    return _changed(request, states.retry, workspace_import_id)


def _changed(
    request: HttpRequest, change: Callable[[ImportRequest], None], request_id: int
) -> HttpResponse:
    try:
        change(changeable(request, request_id))
    except Refused as refusal:
        messages.error(request, refusal.detail)
    return redirect("workspace-imports")
