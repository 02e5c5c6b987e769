"""Redirects from parent addresses that are not pages to the nearest page.

A user who shortens an address (`/runs/ID/` to `/runs/`) gets the list that it belongs to, never a
404. `tests/security/test_parents.py` derives from the routes which addresses need a line here.
"""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_safe

_MODEL = "models/<int:model_id>"
_RUN = "runs/<uuid:run_id>"
_WORKSPACE = "workspaces/<slug:slug>"

PAGES = {
    "runs/": "runs",
    f"{_RUN}/shares/<int:share_id>/": "shares",
    "account/email/confirm/": "mfa_index",
    "account/password/reset/": "account_login",
    "comments/<int:comment_id>/": "inbox",
    "compare/shares/<int:share_id>/": "compare",
    "datasets/reports/": "datasets",
    "datasets/versions/": "datasets",
    "datasets/versions/<int:dataset_version_id>/problems/": "dataset-version",
    "exports/<uuid:export_id>/": "exports",
    "invitations/": "workspaces",
    "models/evaluations/": "models",
    "models/evaluations/<int:evaluation_id>/": "models",
    "models/imports/": "models",
    "models/imports/<int:import_id>/": "models",
    "models/promotions/": "models",
    "models/promotions/<int:promotion_id>/": "models",
    f"{_MODEL}/versions/": "model",
    "projects/": "workspaces",
    "projects/<int:project_id>/": "workspaces",
    "reports/<int:report_page_id>/shares/<int:share_id>/": "report-shares",
    "searches/problems/": "new-search",
    "shared/": "runs",
    "tokens/<int:token_id>/": "tokens",
    "workspace-imports/<int:workspace_import_id>/": "workspace-imports",
    f"{_WORKSPACE}/invitations/<int:invitation_id>/": "workspace",
    f"{_WORKSPACE}/members/": "workspace",
    f"{_WORKSPACE}/members/<int:user_id>/": "workspace",
}
"""Route -> name of the page that it redirects to."""

PARAMETERS = {"shares": ("run_id",), "report-shares": ("report_page_id",)}
PARAMETERS |= {"dataset-version": ("dataset_version_id",)}
PARAMETERS |= {"model": ("model_id",), "workspace": ("slug",)}
"""Page -> parts of the address that identify it."""


def name_of(route: str) -> str:
    """'runs/<uuid:run_id>/shares/' -> 'above-runs-run_id-shares'."""
    return "-".join(["above", *re.findall(r"(\w+)(?:>|/)", route)])


def _route(route: str, page: str) -> URLPattern:
    @require_safe
    @login_not_required  # the target requires login
    def to_page(request: HttpRequest, **parts: Any) -> HttpResponse:
        """302 to the page, with the same query."""
        address = reverse(page, kwargs={name: parts[name] for name in PARAMETERS.get(page, ())})
        query = request.META["QUERY_STRING"]
        return redirect(f"{address}?{query}" if query else address)

    return path(route, to_page, name=name_of(route))


urlpatterns = [_route(route, page) for route, page in PAGES.items()]
