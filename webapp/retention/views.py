"""Pages of the deletion of a run, and of how long a workspace keeps its runs."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from webapp.experiments.models import Run
from webapp.experiments.selectors import visible_run
from webapp.projects.permissions import Action, may, require
from webapp.projects.selectors import visible_workspace
from webapp.retention import policy
from webapp.retention.errors import DeletionRefused
from webapp.retention.forms import RetentionForm
from webapp.retention.models import PlannedDeletion
from webapp.retention.plan import plan_of
from webapp.retention.services import delete_run

_SHOWN = 50


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """delete_run.html: `run`, `plan` (DeletionPlan). POST deletes it and redirects to the runs."""
    run = visible_run(request.user, run_id)
    require(request.user, Action.DELETE_RUNS, run.project)
    if request.method == "POST":
        try:
            delete_run(run)
        except (DeletionRefused, Run.DoesNotExist) as refusal:
            messages.error(request, str(refusal))
            return redirect("delete-run", run_id)
        messages.success(request, f"{run} is deleted.")
        return redirect("runs")
    return render(request, "delete_run.html", {"run": run, "plan": plan_of(run)})


@require_http_methods(["GET", "HEAD", "POST"])
def retention(request: HttpRequest, slug: str) -> HttpResponse:
    """retention.html: `workspace`, `policy` (or None), `form`, `can_change`, `forecast` (for those
    who may change it), `planned` (the next announced deletions that the person sees), `notice` and
    `keep_tag`. POST changes the policy; without days it ends."""
    workspace = visible_workspace(request.user, slug)
    can_change = may(request.user, Action.SET_RETENTION, workspace)
    current = policy.policy_of(workspace)
    form = RetentionForm(
        request.POST if request.method == "POST" else None,
        initial={"days": current.days, "unused_versions": current.unused_versions}
        if current
        else {},
    )
    if form.is_bound:
        require(request.user, Action.SET_RETENTION, workspace)
        if form.is_valid():
            policy.change_policy(workspace, **form.cleaned_data)
            messages.success(request, "Saved.")
            return redirect("retention", slug)
    planned = PlannedDeletion.objects.visible_to(request.user).filter(
        pk__in=policy.planned_in(workspace)
    )
    rows = planned.select_related("run__experiment__project").order_by("announced_at", "pk")
    context = {
        "workspace": workspace,
        "policy": current,
        "form": form,
        "can_change": can_change,
        "forecast": policy.forecast(workspace, current.days, current.unused_versions)
        if current and can_change
        else None,
        "planned": [(one.run, one.announced_at + policy.NOTICE) for one in rows[:_SHOWN]],
        "planned_count": planned.count(),
        "notice": policy.NOTICE.days,
        "keep_tag": policy.KEEP_TAG,
    }
    return render(request, "retention.html", context, status=422 if form.errors else 200)
