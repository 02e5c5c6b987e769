"""Pages of links to a report: creating and revoking them, and the guest's page."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.projects.permissions import Action, may, require
from webapp.reports import selectors, sharing
from webapp.sharing import links
from webapp.sharing.forms import ComparisonShareForm


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def shares(request: HttpRequest, report_page_id: int) -> HttpResponse:
    """report_shares.html: `page`, `shares` (ReportShare), `can_share`, `form`, and, right after a
    link was created, its `link`."""
    page = selectors.visible_report(request.user, report_page_id)
    form = ComparisonShareForm(request.POST if request.method == "POST" else None)
    can_share = may(request.user, Action.SHARE, page.project)
    context: dict[str, Any] = {"page": page, "form": form, "can_share": can_share}
    if request.method == "POST":
        require(request.user, Action.SHARE, page.project)
        if form.is_valid():
            given = form.cleaned_data
            lifetime = timedelta(days=given["days"])
            _, path = sharing.share(page, request.user, lifetime, frozen=given["frozen"])
            context["link"] = request.build_absolute_uri(path)
    context["shares"] = sharing.shares_of(page)
    status = 422 if form.errors else 200
    return render(request, "report_shares.html", context, status=status)


@require_POST
def revoke(request: HttpRequest, report_page_id: int, share_id: int) -> HttpResponse:
    """Revokes the link; redirects to the links of the report."""
    page = selectors.visible_report(request.user, report_page_id)
    require(request.user, Action.SHARE, page.project)
    links.revoke(get_object_or_404(sharing.shares_of(page), pk=share_id))
    return redirect("report-shares", page.pk)


@never_cache
@login_not_required
@require_safe
def shared(request: HttpRequest, secret: str) -> HttpResponse:
    """shared_report.html: `shared` (sharing.SharedReport). 404 without a share."""
    found = sharing.shared_report(request, secret)
    context = {"shared": found, "content": found.content, "plain": True}
    return render(request, "shared_report.html", context)
