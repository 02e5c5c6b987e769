"""Page on which owners export and delete a workspace."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from webapp.experiments.models import Run
from webapp.offboarding import services
from webapp.offboarding.errors import CloseRefused
from webapp.offboarding.export import streamed
from webapp.offboarding.forms import NameForm
from webapp.projects.models import Workspace
from webapp.projects.permissions import Action, require
from webapp.projects.selectors import visible_workspace


@require_http_methods(["GET", "HEAD", "POST"])
def close(request: HttpRequest, slug: str) -> HttpResponse:
    """close.html: `workspace`, `runs` (how many), `refusal` (why it cannot be deleted now, or ""),
    `newest` (WorkspaceExport or None), `form`. A valid form redirects to one's other workspaces."""
    workspace = _owned(request, slug)
    form = NameForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            services.delete_workspace(workspace, form.cleaned_data["name"])
        except CloseRefused as refusal:
            form.add_error("name", str(refusal))
        else:
            messages.success(request, f"{workspace} is deleted with all its contents.")
            return redirect("workspaces")
    context = {
        "workspace": workspace,
        "runs": Run.objects.filter(experiment__project__workspace=workspace).count(),
        "refusal": services.refusal(workspace),
        "newest": workspace.exports.select_related("made_by").order_by("-pk").first(),
        "form": form,
    }
    return render(request, "close.html", context, status=422 if form.errors else 200)


@require_safe
def export(request: HttpRequest, slug: str) -> HttpResponse:
    """Sends the whole workspace as a zip."""
    return sent(_owned(request, slug), request)


def sent(workspace: Workspace, request: HttpRequest) -> HttpResponse:
    name = f'attachment; filename="{workspace.slug}.zip"'
    headers = {"Content-Disposition": name, "Cache-Control": "private, no-store"}
    blocks = () if request.method == "HEAD" else streamed(workspace, request.user)
    return StreamingHttpResponse(blocks, content_type="application/zip", headers=headers)


def _owned(request: HttpRequest, slug: str) -> Workspace:
    workspace = visible_workspace(request.user, slug)
    require(request.user, Action.CLOSE, workspace)
    return workspace
