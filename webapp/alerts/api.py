"""REST of alert rules, channels, alerts and preferences.

A person's own are for signed-in people alone; those of a project also for tokens.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import time
from typing import Annotated

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Path, Query, Router, Status

from webapp.accounts.authentication import require_person
from webapp.alerts import channels as channel_services
from webapp.alerts import mails, services
from webapp.alerts.errors import AlertRefused
from webapp.alerts.models import AlertRule, Channel, RuleKind, Way
from webapp.alerts.schemas import (
    OR_MISSING,
    AlertList,
    AlertOut,
    ChangedPreferences,
    ChangedRule,
    ChannelAction,
    ChannelList,
    ChannelOut,
    Muted,
    NewChannel,
    NewRule,
    Of,
    PreferencesOut,
    RuleList,
    RuleOut,
)
from webapp.alerts.selectors import (
    alerts_of,
    channels_of,
    rules_of,
    visible_channels,
    visible_rules,
)
from webapp.alerts.services import RuleSpec
from webapp.alerts.views import require_channel, require_rule
from webapp.experiments.models import Experiment
from webapp.experiments.selectors import visible_run
from webapp.projects.models import Project, Workspace
from webapp.projects.permissions import Action, require
from webapp.projects.selectors import visible_projects, visible_workspaces
from webapp.rest.pagination import LARGEST_ID, page
from webapp.rest.problem_details import Invalid

router = Router()
of_runs = Router()

PathId = Annotated[int, Path(ge=0, le=LARGEST_ID)]


@router.get("", response=AlertList, openapi_extra=OR_MISSING)
def list_alerts(request: HttpRequest, query: Query[Of]):
    """Lists alerts and how their notices were delivered, oldest first."""
    project = _managed(request, query.project)
    return page(alerts_of(request.user, project), "alerts", query)


@router.get("/rules", response=RuleList, openapi_extra=OR_MISSING)
def list_alert_rules(request: HttpRequest, query: Query[Of]):
    """Lists alert rules."""
    project = _project(request, query.project)
    if project is None:
        require_person(request.user)
    else:
        require(request.user, Action.READ, project)
    return page(rules_of(request.user, project), "rules", query)


@router.post("/rules", response={201: RuleOut})
def create_alert_rule(request: HttpRequest, new: NewRule):
    """Creates an alert rule."""
    project = _project(request, new.project)
    if not new.shared:
        require_person(request.user)
    elif project is None:
        raise Invalid("project", None, "give the project that the rule is of")
    else:
        require(request.user, Action.MANAGE_ALERTS, project)
    owner = project if new.shared and project else request.user
    spec = _spec(request, new, project)
    return Status(201, services.create_rule(spec, owner, request.user))


@router.get("/rules/{rule_id}", response=RuleOut)
def get_alert_rule(request: HttpRequest, rule_id: PathId):
    """Returns an alert rule."""
    rule = get_object_or_404(visible_rules(request.user), pk=rule_id)
    if rule.user is not None:
        require_person(request.user)
    else:
        require(request.user, Action.READ, rule.project)
    return rule


@router.patch("/rules/{rule_id}", response=RuleOut)
def change_alert_rule(request: HttpRequest, rule_id: PathId, change: ChangedRule):
    """Changes an alert rule; the same values are refused as in a new one."""
    rule = get_object_or_404(visible_rules(request.user), pk=rule_id)
    if require_rule(request.user, rule) is None:
        require_person(request.user)
    spec = _changed(request, rule, change)
    services.change_rule(rule, spec, request.user)
    return get_object_or_404(visible_rules(request.user), pk=rule_id)


@router.delete("/rules/{rule_id}", response={204: None})
def delete_alert_rule(request: HttpRequest, rule_id: PathId):
    """Deletes an alert rule."""
    rule = get_object_or_404(visible_rules(request.user), pk=rule_id)
    require_rule(request.user, rule)
    services.delete_rule(rule)
    return Status(204, None)


@router.get("/channels", response=ChannelList, openapi_extra=OR_MISSING)
def list_alert_channels(request: HttpRequest, query: Query[Of]):
    """Lists the channels to which notices are posted."""
    project = _managed(request, query.project)
    return page(channels_of(request.user, project), "channels", query)


@router.post("/channels", response={201: ChannelOut})
def create_alert_channel(request: HttpRequest, new: NewChannel):
    """Creates a channel; the response has the secret of a webhook, once."""
    project = _managed(request, new.project)
    made = channel_services.create_channel(
        project or request.user, Way(new.kind), new.name, new.url, request.user
    )
    return Status(201, _with_secret(made, channel_services.secret_to_show(made)))


@router.post("/channels/{channel_id}", response=ChannelOut)
def act_on_alert_channel(request: HttpRequest, channel_id: PathId, action: ChannelAction):
    """Sends a test, replaces the secret (which the response has, once), or enables it again."""
    channel = get_object_or_404(visible_channels(request.user), pk=channel_id)
    require_channel(request.user, channel)
    if action.do == "rotate":
        return _with_secret(channel, channel_services.rotate(channel))
    if action.do == "test":
        channel_services.send_test(request.user, channel)
    else:
        channel_services.enable(channel, request.user)
    return channel


@router.delete("/channels/{channel_id}", response={204: None})
def delete_alert_channel(request: HttpRequest, channel_id: PathId):
    """Deletes a channel with what was delivered to it."""
    channel = get_object_or_404(visible_channels(request.user), pk=channel_id)
    require_channel(request.user, channel)
    channel_services.delete_channel(channel)
    return Status(204, None)


@router.get("/preferences", response=PreferencesOut)
def get_alert_preferences(request: HttpRequest):
    """Returns how you are notified."""
    require_person(request.user)
    return services.preferences_of(request.user)


@router.patch("/preferences", response=PreferencesOut)
def change_alert_preferences(request: HttpRequest, change: ChangedPreferences):
    """Changes how you are notified."""
    require_person(request.user)
    current = services.preferences_of(request.user)
    given = change.dict(exclude_unset=True)
    for name in ("own_failures", "time_zone"):
        if name in given and given[name] is None:
            raise AlertRefused(name, None, "give a value, or leave it out")
    for name in ("quiet_from", "quiet_until"):
        if given.get(name) is not None:
            given[name] = time.fromisoformat(given[name])
    names = ("own_failures", "quiet_from", "quiet_until", "time_zone")
    values = {name: given.get(name, getattr(current, name)) for name in names}
    return services.change_preferences(request.user, **values)


@router.post("/test", response={201: AlertOut})
def send_test_notification(request: HttpRequest):
    """Sends you a test notice: to the inbox, and by mail where you get mail."""
    require_person(request.user)
    by_mail = not mails.refusal(request.user)
    return Status(201, channel_services.send_own_test(request.user, with_mail=by_mail))


@of_runs.post("/{run_id}/mute", response=Muted)
def mute_run(request: HttpRequest, run_id: uuid.UUID, change: Muted):
    """Sets whether you get no notices of the run."""
    require_person(request.user)
    services.set_muted(visible_run(request.user, run_id), request.user, change.muted)
    return change


def _project(request: HttpRequest, project_id: int | None) -> Project | None:
    if project_id is None:
        return None
    return get_object_or_404(visible_projects(request.user), pk=project_id)


def _managed(request: HttpRequest, project_id: int | None) -> Project | None:
    """The project, whose alerts the caller manages; None for a person's own."""
    project = _project(request, project_id)
    if project is None:
        require_person(request.user)
    else:
        require(request.user, Action.MANAGE_ALERTS, project)
    return project


def _spec(request: HttpRequest, new: NewRule, project: Project | None) -> RuleSpec:
    workspace, _ = _place(request, new.workspace, new.project)
    experiment = _experiment(request, new.experiment)
    chosen = _channels(request, new.channels)
    same = new.dict(exclude={"workspace", "project", "shared", "experiment", "channels"})
    same["kind"], same["direction"] = RuleKind(new.kind), new.direction or ""
    return RuleSpec(
        **same, workspace=workspace, project=project, experiment=experiment, channels=chosen
    )


def _changed(request: HttpRequest, rule: AlertRule, change: ChangedRule) -> RuleSpec:
    """The rule with the fields that are given; values of another kind than the new one go unless
    they are given too."""
    given = change.dict(exclude_unset=True)
    for name in ("kind", "tag", "health", "metric", "agent", "points", "inbox", "mail", "channels"):
        if name in given and given[name] is None:
            raise AlertRefused(name, None, "give a value, or leave it out")
    spec = services.spec_of(rule)
    spec.kind = RuleKind(given.pop("kind", spec.kind))
    spec = services.for_kind(spec)
    if rule.user is None:
        for name in ("workspace", "project"):
            if name in given and given[name] != getattr(rule, f"{name}_id"):
                reason = "a project's rule stays in its project; add one in the other project"
                raise Invalid(name, given[name], reason)
            given.pop(name, None)
    if "workspace" in given or "project" in given:
        spec.workspace, spec.project = _place(
            request, given.pop("workspace", None), given.pop("project", None)
        )
    if "experiment" in given:
        spec.experiment = _experiment(request, given.pop("experiment"))
    if "channels" in given:
        spec.channels = _channels(request, given.pop("channels"))
    if "direction" in given:
        given["direction"] = given["direction"] or ""
    return replace(spec, **given)


def _place(
    request: HttpRequest, workspace_id: int | None, project_id: int | None
) -> tuple[Workspace | None, Project | None]:
    workspace, project = None, _project(request, project_id)
    if workspace_id is not None:
        workspace = get_object_or_404(visible_workspaces(request.user), pk=workspace_id)
        if project is not None and project.workspace_id != workspace.pk:
            raise Invalid("workspace", workspace_id, "the project is of another; leave it out")
    return workspace, project


def _experiment(request: HttpRequest, experiment_id: int | None) -> Experiment | None:
    if experiment_id is None:
        return None
    experiments = Experiment.objects.visible_to(request.user).select_related("project")
    return get_object_or_404(experiments, pk=experiment_id)


def _channels(request: HttpRequest, ids: list[int]) -> list[Channel]:
    chosen = list(visible_channels(request.user).filter(pk__in=ids))
    if missing := set(ids) - {one.pk for one in chosen}:
        raise Invalid("channels", min(missing), "no such channel exists")
    return chosen


def _with_secret(channel: Channel, secret: str | None) -> Channel:
    channel.secret = secret
    return channel
