"""Pages of workspaces. Each does three things: permission, one service call, a template."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import BadRequest
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.projects import membership, services
from webapp.projects.allowances import AllowanceSpent
from webapp.projects.forms import (
    InvitationForm,
    NameForm,
    ProjectForm,
    RoleForm,
    VisibilityForm,
)
from webapp.projects.membership import InvitationRefused, MembershipRefused
from webapp.projects.models import Invitation, Project, Role, Visibility, Workspace
from webapp.projects.permissions import Action, givable_roles, may, require
from webapp.projects.selectors import team, visible_workspace, visible_workspaces
from webapp.projects.sign_up import INVITED_BY


@require_http_methods(["GET", "HEAD", "POST"])
def workspaces(request: HttpRequest) -> HttpResponse:
    """workspaces.html: `workspaces` (Workspace: name, slug, member_count), `form` (NameForm). A
    valid form redirects to the new workspace."""
    form = NameForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            made = services.open_workspace(form.cleaned_data["name"], request.user)
        except AllowanceSpent as refusal:
            form.add_error("name", _sentence(refusal))
        else:
            return redirect("workspace", made.slug)
    context = {"form": form, "workspaces": visible_workspaces(request.user)}
    return render(request, "workspaces.html", context, status=422 if form.is_bound else 200)


@require_safe
def workspace(request: HttpRequest, slug: str) -> HttpResponse:
    """workspace.html, see `_workspace_page`."""
    return _workspace_page(request, visible_workspace(request.user, slug))


@require_POST
def add_project(request: HttpRequest, slug: str) -> HttpResponse:
    """Creates a project; redirects to the workspace."""
    workspace = visible_workspace(request.user, slug)
    require(request.user, Action.ADD_PROJECT, workspace)
    form = ProjectForm(request.POST)
    if not form.is_valid():
        return _workspace_page(request, workspace, project_form=form, status=422)
    given = form.cleaned_data
    try:
        services.add_project(
            workspace, given["name"], Visibility(given["visibility"]), request.user
        )
    except AllowanceSpent as refusal:
        form.add_error("name", _sentence(refusal))
        return _workspace_page(request, workspace, project_form=form, status=409)
    return redirect("workspace", slug)


@require_POST
def visibility(request: HttpRequest, project_id: int) -> HttpResponse:
    """Changes who in the workspace sees a project; redirects to the workspace."""
    project = get_object_or_404(Project.objects.visible_to(request.user), pk=project_id)
    require(request.user, Action.SHARE_PROJECT, project)
    given = _cleaned(VisibilityForm(request.POST))
    services.change_visibility(project, Visibility(given["visibility"]))
    return redirect("workspace", project.workspace.slug)


@never_cache
@require_POST
def invite(request: HttpRequest, slug: str) -> HttpResponse:
    """Creates a link; the workspace's page shows it once, as `link`."""
    workspace = visible_workspace(request.user, slug)
    require(request.user, Action.MANAGE_MEMBERS, workspace)
    form = InvitationForm(givable_roles(request.user, workspace), request.POST)
    if not form.is_valid():
        return _workspace_page(request, workspace, invitation_form=form, status=422)
    given = form.cleaned_data
    path = membership.invite(workspace, request.user, Role(given["role"]), given["single_use"])
    return _workspace_page(request, workspace, link=request.build_absolute_uri(path))


@require_POST
def revoke_invitation(request: HttpRequest, slug: str, invitation_id: int) -> HttpResponse:
    """Revokes the link: it admits nobody any more; redirects to the workspace."""
    workspace = visible_workspace(request.user, slug)
    require(request.user, Action.MANAGE_MEMBERS, workspace)
    invitations = Invitation.objects.visible_to(request.user).filter(workspace=workspace)
    membership.revoke_invitation(get_object_or_404(invitations, pk=invitation_id))
    return redirect("workspace", slug)


@require_POST
def leave(request: HttpRequest, slug: str) -> HttpResponse:
    """Leaves; redirects to one's other workspaces, or back if the user is the last owner."""
    workspace = visible_workspace(request.user, slug)
    try:
        membership.leave(workspace, request.user)
    except MembershipRefused as refusal:
        messages.error(request, str(refusal))
        return redirect("workspace", slug)
    messages.success(request, f"You left {workspace}.")
    return redirect("workspaces")


@require_POST
def change_role(request: HttpRequest, slug: str, user_id: int) -> HttpResponse:
    """Changes a member's role; redirects to the workspace."""
    workspace = _with_member(request, slug, user_id)
    role = Role(_cleaned(RoleForm(request.POST))["role"])
    return _change(request, slug, membership.change_role, workspace, user_id, role, request.user)


@require_POST
def remove(request: HttpRequest, slug: str, user_id: int) -> HttpResponse:
    """Removes a member; redirects to the workspace."""
    workspace = _with_member(request, slug, user_id)
    return _change(request, slug, membership.remove_member, workspace, user_id, request.user)


@require_POST
def transfer(request: HttpRequest, slug: str, user_id: int) -> HttpResponse:
    """Transfers the workspace to a member; redirects to it, as a maintainer."""
    workspace = _with_member(request, slug, user_id)
    return _change(request, slug, membership.transfer, workspace, request.user, user_id)


@never_cache
@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """invitation.html: `invitation` (workspace, role, created_by). Accepting is a POST: it
    redirects to the workspace, or, without a sign-in, to the sign-up page (which accepts it). A
    link that admits nobody renders error.html (410)."""
    try:
        if request.method != "POST":
            user = request.user if request.user.is_authenticated else None
            context = {"invitation": membership.find_invitation(token, user)}
            return render(request, "invitation.html", context)
        if request.user.is_authenticated:
            return redirect("workspace", membership.accept_invitation(token, request.user).slug)
        joined = membership.find_invitation(token).workspace
    except InvitationRefused:
        return render(request, "error.html", _REFUSED, status=410)
    request.session[INVITED_BY] = token
    query = urlencode({"next": reverse("workspace", args=[joined.slug])})
    return redirect(f"{reverse('account_signup')}?{query}")


_REFUSED = {
    "status": 410,
    "title": "This invitation no longer works",
    "detail": "It is used up, was revoked, is older than seven days, or you left the workspace "
    "since it was created. Ask for a new one.",
}


def _with_member(request: HttpRequest, slug: str, user_id: int) -> Workspace:
    """Returns the workspace; raises `Http404` if it has no such member."""
    workspace = visible_workspace(request.user, slug)
    get_object_or_404(workspace.memberships, user=user_id)
    return workspace


def _sentence(refusal: Exception) -> str:
    text = str(refusal)
    return f"{text[:1].upper()}{text[1:]}."


def _cleaned(form: Form) -> dict:
    """The values of a form that has only choices: other values come from no page of ours."""
    if form.is_valid():
        return form.cleaned_data
    field, reasons = next(iter(form.errors.items()))
    raise BadRequest(f"{field}: {reasons[0]}")


def _change(request: HttpRequest, slug: str, service, *values) -> HttpResponse:
    try:
        service(*values)
    except MembershipRefused as refusal:
        messages.error(request, f"Nothing changed: {refusal}")
    return redirect("workspace", slug)


def _workspace_page(
    request: HttpRequest, workspace: Workspace, status: int = 200, **context: object
) -> HttpResponse:
    """workspace.html: `team` (selectors.Team), `roles` (Role members), `can_add_project`,
    `can_manage`, `can_transfer`, `can_audit`, `can_close`, `invitation_form`, `project_form`, and
    `link`, an invitation's address, right after its creation. `team.projects` have `can_share`."""
    user, shown = request.user, team(request.user, workspace)
    for project in shown.projects:
        project.can_share = may(user, Action.SHARE_PROJECT, project)
    page = {
        "team": shown,
        "visibilities": list(Visibility),
        "can_add_project": may(user, Action.ADD_PROJECT, workspace),
        "can_manage": bool(shown.givable),
        "can_transfer": may(user, Action.TRANSFER, workspace),
        "can_audit": may(user, Action.AUDIT, workspace),
        "invitation_form": InvitationForm(shown.givable),
        "project_form": ProjectForm(),
        **context,
    }
    return render(request, "workspace.html", page, status=status)
