"""Rules, mutes and preferences: what people decide about their notices.

Callers have checked who may manage a project's rules (`Action.MANAGE_ALERTS`).
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from datetime import time
from typing import Any

from django.db import transaction
from django.utils import timezone

from engine.events.states import HEALTH_RULES
from webapp.accounts.models import User
from webapp.alerts import mails
from webapp.alerts.errors import AlertRefused, RuleDeleted
from webapp.alerts.models import AlertRule, Channel, Mute, Preferences, RuleKind
from webapp.alerts.operators import is_operator
from webapp.alerts.owners import Owner, fields_of, lock, owner_of
from webapp.alerts.quiet import zone_names
from webapp.alerts.series import refuse_unknown
from webapp.experiments.models import Experiment, Run
from webapp.projects.models import Project, Workspace

MOST_RULES = 100
"""Rules of one person, or of one project."""
LARGEST = 1e300


@dataclass
class RuleSpec:
    """A requested rule; its fields are those of `AlertRule`."""

    kind: RuleKind
    workspace: Workspace | None = None
    project: Project | None = None
    experiment: Experiment | None = None
    tag: str = ""
    minutes: int | None = None
    health: list[str] = field(default_factory=list)
    metric: str = ""
    agent: str = ""
    direction: str = ""
    threshold: float | None = None
    points: int = 1
    percent: int | None = None
    inbox: bool = True
    mail: bool = False
    channels: list[Channel] = field(default_factory=list)


_NEEDED = {
    RuleKind.RUN_STALLED: ("minutes",),
    RuleKind.METRIC: ("metric", "direction", "threshold"),
    RuleKind.QUOTA: ("percent",),
    RuleKind.DISK: ("percent",),
}
_OPTIONAL = {RuleKind.HEALTH: ("health",), RuleKind.METRIC: ("agent", "points")}
_WAYS = {"inbox", "mail"}
_OF_RUNS = (
    RuleKind.RUN_ENDED,
    RuleKind.RUN_FAILED,
    RuleKind.RUN_STALLED,
    RuleKind.HEALTH,
    RuleKind.METRIC,
)
_UNSET = {
    "minutes": None, "health": [], "metric": "", "agent": "", "direction": "", "threshold": None,
    "points": 1, "percent": None,
}  # fmt: skip


def create_rule(spec: RuleSpec, owner: Owner, by: User) -> AlertRule:
    """Creates a rule of the person or project.

    Raises:
        AlertRefused: a value is missing, does not belong to the kind, or cannot be used.
    """
    _check(spec, owner, by)
    values, channels = _values(spec)
    with transaction.atomic():
        lock(owner)
        if AlertRule.objects.filter(**fields_of(owner)).count() >= MOST_RULES:
            raise AlertRefused("kind", spec.kind, f"{MOST_RULES} rules exist: delete one")
        rule = AlertRule.objects.create(**(values | fields_of(owner)), created_by=by)
        rule.channels.set(channels)
    return rule


def change_rule(rule: AlertRule, spec: RuleSpec, by: User) -> AlertRule:
    """Replaces everything of the rule but its owner. Points and levels that were beyond the old
    threshold do not count any more; what it fired at before is not noticed again.

    Raises:
        AlertRefused: as `create_rule`.
        RuleDeleted: somebody deleted it meanwhile.
    """
    owner = owner_of(rule)
    _check(spec, owner, by, rule)
    values, channels = _values(spec)
    values |= fields_of(owner)
    with transaction.atomic():
        lock(owner)
        stored = AlertRule.objects.select_for_update(of=("self",)).filter(pk=rule.pk).first()
        if stored is None:
            raise RuleDeleted("rule", rule.pk, "somebody deleted it meanwhile: add a new rule")
        rule = stored
        changed = [name for name, value in values.items() if getattr(rule, name) != value]
        for name in changed:
            setattr(rule, name, values[name])
        if set(changed) - _WAYS:
            rule.changed = timezone.now()
            rule.states.update(beyond=0, since=None)
        rule.save(update_fields=[*changed, "changed"])
        rule.channels.set(channels)
    return rule


def spec_of(rule: AlertRule) -> RuleSpec:
    """What the rule is now, as a request for it."""
    names = set(RuleSpec.__dataclass_fields__) - {"kind", "channels"}
    same = {name: getattr(rule, name) for name in names}
    return RuleSpec(kind=RuleKind(rule.kind), channels=list(rule.channels.all()), **same)


def for_kind(spec: RuleSpec) -> RuleSpec:
    """The same without the values of other kinds than its own."""
    allowed = {*_NEEDED.get(spec.kind, ()), *_OPTIONAL.get(spec.kind, ())}
    unset: dict[str, Any] = {name: one for name, one in _UNSET.items() if name not in allowed}
    return replace(spec, **unset)


def delete_rule(rule: AlertRule) -> None:
    rule.delete()


def set_muted(run: Run, user: User, muted: bool) -> None:
    """Mutes the run for the person, or ends that; idempotent."""
    if muted:
        Mute.objects.get_or_create(run=run, user=user)
    else:
        Mute.objects.filter(run=run, user=user).delete()


def change_preferences(
    user: User,
    own_failures: bool,
    quiet_from: time | None,
    quiet_until: time | None,
    time_zone: str,
) -> Preferences:
    """Sets all preferences of the person.

    Raises:
        AlertRefused: one end of the quiet hours is missing, both are the same, or the zone is not
            in the IANA database.
    """
    if (quiet_from is None) != (quiet_until is None):
        missing = "quiet_until" if quiet_until is None else "quiet_from"
        raise AlertRefused(missing, None, "give both ends of the quiet hours, or neither")
    if quiet_from is not None and quiet_from == quiet_until:
        raise AlertRefused("quiet_until", quiet_until, "give another time than their beginning")
    if time_zone not in zone_names():
        raise AlertRefused("time_zone", time_zone, "give a name such as Europe/Vienna, or UTC")
    values = {
        "own_failures": own_failures,
        "quiet_from": quiet_from,
        "quiet_until": quiet_until,
        "time_zone": time_zone,
    }
    return Preferences.objects.update_or_create(user=user, defaults=values)[0]


def preferences_of(user: User) -> Preferences:
    """The person's preferences; unsaved defaults if they never changed any."""
    return Preferences.objects.filter(user=user).first() or Preferences(user=user)


def _check(spec: RuleSpec, owner: Owner, by: User, rule: AlertRule | None = None) -> None:
    """Raises `AlertRefused`; `rule` is what the rule is now, None for a new one."""
    _check_values(spec)
    _check_scope(spec, owner, by)
    _check_ways(spec, owner, keeps_mail=rule is not None and rule.mail)
    # A series that the rule looks at already may have gone with its runs.
    if spec.kind is RuleKind.METRIC and (rule is None or _series(rule) != _series(spec)):
        refuse_unknown(spec.metric, spec.agent, spec.workspace, spec.project)


def _series(one: RuleSpec | AlertRule) -> tuple[Any, ...]:
    return one.metric, one.agent, one.workspace, one.project


def _values(spec: RuleSpec) -> tuple[dict[str, Any], list[Channel]]:
    """The columns of a rule, and its channels."""
    values = {name: getattr(spec, name) for name in RuleSpec.__dataclass_fields__}
    channels = values.pop("channels")
    return values, channels


def _check_values(spec: RuleSpec) -> None:
    needed = _NEEDED.get(spec.kind, ())
    allowed = {*needed, *_OPTIONAL.get(spec.kind, ())}
    for name, unset in _UNSET.items():
        value = getattr(spec, name)
        if name in needed and value in (None, ""):
            raise AlertRefused(name, value, f"a rule of this kind needs it: {spec.kind.label}")
        if name not in allowed and value != unset:
            reason = f"leave it out: it does not belong to this kind ({spec.kind.label})"
            raise AlertRefused(name, value, reason)
    if spec.threshold is not None and not -LARGEST < spec.threshold < LARGEST:
        raise AlertRefused("threshold", spec.threshold, "give a finite number")
    for name in spec.health:
        if name not in HEALTH_RULES:
            close = difflib.get_close_matches(name, HEALTH_RULES, 3, 0.4) or HEALTH_RULES
            reason = f"no health rule has this name; there is {', '.join(close)}"
            raise AlertRefused("health", name, reason)
    for name, low, high in (("minutes", 1, 10080), ("points", 1, 1000), ("percent", 1, 99)):
        value = getattr(spec, name)
        if value is not None and not low <= value <= high:
            raise AlertRefused(name, value, f"give a whole number from {low} to {high}")


def _check_scope(spec: RuleSpec, owner: Owner, by: User) -> None:
    if isinstance(owner, Project):
        spec.project = owner
    if spec.project is not None:
        spec.workspace = spec.project.workspace
    if spec.kind is RuleKind.DISK:
        if isinstance(owner, Project) or not is_operator(by):
            reason = "only an operator of the server (GROVE_OPERATORS) watches its disk"
            raise AlertRefused("kind", spec.kind, reason)
        spec.workspace = spec.project = None
    elif spec.workspace is None:
        raise AlertRefused("workspace", None, "give a workspace, or a project of one")
    if spec.kind not in _OF_RUNS and (spec.experiment or spec.tag):
        name = "experiment" if spec.experiment else "tag"
        raise AlertRefused(name, getattr(spec, name), "only rules about runs have such a filter")
    if spec.experiment is not None and not _is_inside(spec.experiment, spec):
        raise AlertRefused("experiment", spec.experiment.pk, "it belongs to another project")


def _is_inside(experiment: Experiment, spec: RuleSpec) -> bool:
    if spec.project is not None:
        return experiment.project_id == spec.project.pk
    return experiment.project.workspace_id == spec.workspace.pk


def _check_ways(spec: RuleSpec, owner: Owner, *, keeps_mail: bool) -> None:
    if not (spec.inbox or spec.mail or spec.channels):
        raise AlertRefused("inbox", False, "choose at least one way: inbox, mail or a channel")
    if spec.mail:
        if isinstance(owner, Project):
            reason = "mail is personal: a project's rule has the inbox and channels"
            raise AlertRefused("mail", True, reason)
        if not keeps_mail and (reason := mails.refusal(owner)):
            raise AlertRefused("mail", True, reason)
    for channel in spec.channels:
        if (channel.project or channel.user) != owner:
            raise AlertRefused("channels", channel.pk, "it belongs to another owner than the rule")
