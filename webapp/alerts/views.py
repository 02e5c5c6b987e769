"""Pages of notifications and of a project's alerts. Each does three things: permission, one service
call, a template."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.models import User
from webapp.alerts import channels, mails, services
from webapp.alerts.errors import AlertRefused
from webapp.alerts.forms import ChannelActionForm, ChannelForm, PreferencesForm, RuleForm
from webapp.alerts.models import AlertRule, Channel, Way
from webapp.alerts.selectors import (
    alerts_of,
    channels_of,
    rules_of,
    visible_channels,
    visible_rules,
)
from webapp.experiments.selectors import visible_run
from webapp.projects.models import Project
from webapp.projects.permissions import Action, may, require

LOG_ROWS = 50
"""Newest alerts on a page."""


@require_http_methods(["GET", "HEAD", "POST"])
def notifications(request: HttpRequest) -> HttpResponse:
    """notifications.html, see `_page`. POST changes the preferences (PreferencesForm)."""
    preferences = services.preferences_of(request.user)
    form = PreferencesForm(preferences, request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        try:
            services.change_preferences(request.user, **form.cleaned_data)
        except AlertRefused as refusal:
            form.add_error(refusal.path, f"{refusal.reason[:1].upper()}{refusal.reason[1:]}.")
        else:
            messages.success(request, "Saved.")
            return redirect("notifications")
    return _page(request, None, status=422 if form.is_bound else 200, preferences_form=form)


@require_safe
def project_alerts(request: HttpRequest, project_id: int) -> HttpResponse:
    """project_alerts.html, see `_page`."""
    return _page(request, _project(request, project_id))


@require_POST
def test_notifications(request: HttpRequest) -> HttpResponse:
    """Sends the person a test notice, by mail too where they get mail; redirects to the page."""
    by_mail = not mails.refusal(request.user)
    channels.send_own_test(request.user, with_mail=by_mail)
    sent = "It is in your inbox, and on its way by mail." if by_mail else "It is in your inbox."
    messages.success(request, sent)
    return redirect("notifications")


@require_POST
def add_rule(request: HttpRequest) -> HttpResponse:
    """Adds a rule of the person, or with `project` of that project; redirects to the page."""
    project = _owner(request)
    form = RuleForm(request.user, project, request.POST)
    if form.is_valid() and form.save():
        return _back(project)
    return _page(request, project, status=422, rule_form=form)


@require_http_methods(["GET", "HEAD", "POST"])
def change_rule(request: HttpRequest, rule_id: int) -> HttpResponse:
    """alert_rule.html: `rule`, `project` (or None), `rule_form`. A valid form changes the rule and
    redirects to the page that lists it."""
    rule = get_object_or_404(visible_rules(request.user), pk=rule_id)
    project = require_rule(request.user, rule)
    given = request.POST if request.method == "POST" else None
    form = RuleForm(request.user, project, given, rule=rule)
    if form.is_valid() and form.save():
        messages.success(request, "Saved.")
        return _back(project)
    context: dict[str, object] = {"rule": rule, "project": project, "rule_form": form}
    context["can_manage"] = True
    if project is None:
        context["no_mail"] = mails.refusal(request.user)
    return render(request, "alert_rule.html", context, status=422 if form.errors else 200)


@require_POST
def delete_rule(request: HttpRequest, rule_id: int) -> HttpResponse:
    """Deletes the rule; redirects to the page that lists it."""
    rule = get_object_or_404(visible_rules(request.user), pk=rule_id)
    project = require_rule(request.user, rule)
    services.delete_rule(rule)
    return _back(project)


@never_cache
@require_POST
def add_channel(request: HttpRequest) -> HttpResponse:
    """Adds a channel of the person, or with `project` of that project; the page shows the secret of
    a webhook once."""
    project = _owner(request)
    form = ChannelForm(request.POST)
    if form.is_valid():
        given = form.cleaned_data
        try:
            made = channels.create_channel(
                project or request.user, Way(given["kind"]), given["name"], given["url"],
                request.user,
            )  # fmt: skip
        except AlertRefused as refusal:
            form.add_error(refusal.path, f"{refusal.reason[:1].upper()}{refusal.reason[1:]}.")
        else:
            return _page(request, project, secret=channels.secret_to_show(made), added=made)
    return _page(request, project, status=422, channel_form=form)


@never_cache
@require_POST
def change_channel(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Does `do` with the channel: test, rotate (the page shows the new secret once), enable or
    delete."""
    channel = get_object_or_404(visible_channels(request.user), pk=channel_id)
    project = require_channel(request.user, channel)
    action = _cleaned(ChannelActionForm(request.POST))["do"]
    if action == "test":
        channels.send_test(request.user, channel)
        messages.success(request, "It is on its way: its line below says how it went.")
    elif action == "enable":
        channels.enable(channel, request.user)
    elif action == "delete":
        channels.delete_channel(channel)
    elif channel.kind != Way.WEBHOOK:
        raise BadRequest("do: only a webhook has a secret")
    else:
        return _page(request, project, secret=channels.rotate(channel), added=channel)
    return _back(project)


@require_POST
def mute_run(request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
    """Mutes the run for the person, or with `do=unmute` ends that; redirects to its page."""
    run = visible_run(request.user, run_id)
    services.set_muted(run, request.user, request.POST.get("do") != "unmute")
    return redirect("run", run.pk)


def require_rule(user: User, rule: AlertRule) -> Project | None:
    """The project of a project's rule; None if it is the user's own.

    Raises `PermissionDenied` unless they may change it."""
    if rule.user is not None or rule.project is None:
        return None
    require(user, Action.MANAGE_ALERTS, rule.project)
    return rule.project


def require_channel(user: User, channel: Channel) -> Project | None:
    """As `require_rule`, of a channel."""
    if channel.project is not None:
        require(user, Action.MANAGE_ALERTS, channel.project)
    return channel.project


def _page(
    request: HttpRequest, project: Project | None, status: int = 200, **context: object
) -> HttpResponse:
    """notifications.html or, of a project, project_alerts.html: `rules`, `channels`, `alerts` (the
    newest, with deliveries), `can_manage`, `rule_form`, `channel_form`, `preferences_form`, and
    right after a channel was added or its secret replaced `added` (Channel) and `secret`."""
    user = request.user
    can_manage = project is None or may(user, Action.MANAGE_ALERTS, project)
    page = {
        "project": project,
        "can_manage": can_manage,
        "rules": rules_of(user, project),
        "channels": channels_of(user, project) if can_manage else (),
        "alerts": alerts_of(user, project)[:LOG_ROWS] if can_manage else (),
        "rule_form": RuleForm(user, project),
        "channel_form": ChannelForm(),
        **context,
    }
    if project is None:
        page.setdefault("preferences_form", PreferencesForm(services.preferences_of(user)))
        page["no_mail"] = mails.refusal(user)
    name = "project_alerts.html" if project else "notifications.html"
    return render(request, name, page, status=status)


def _project(request: HttpRequest, project_id: int) -> Project:
    projects = Project.objects.visible_to(request.user).select_related("workspace")
    return get_object_or_404(projects, pk=project_id)


def _owner(request: HttpRequest) -> Project | None:
    """The project that the form names and the person manages; None for their own."""
    given = request.POST.get("project", "")
    if not given:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) < 19):
        raise BadRequest("project: give the id of a project; use the page's form")
    project = _project(request, int(given))
    require(request.user, Action.MANAGE_ALERTS, project)
    return project


def _back(project: Project | None) -> HttpResponse:
    return redirect("project-alerts", project.pk) if project else redirect("notifications")


def _cleaned(form: Form) -> dict:
    if form.is_valid():
        return form.cleaned_data
    field, reasons = next(iter(form.errors.items()))
    raise BadRequest(f"{field}: {reasons[0]}")
