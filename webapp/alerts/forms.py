"""Forms of the pages of notifications and of a project's alerts."""

from __future__ import annotations

import re
from typing import Any

from django import forms

from webapp.accounts.models import User
from webapp.alerts import mails
from webapp.alerts.errors import AlertRefused
from webapp.alerts.models import CHANNEL_KINDS, AlertRule, Channel, Direction, Preferences, RuleKind
from webapp.alerts.operators import is_operator
from webapp.alerts.quiet import zone_names
from webapp.alerts.selectors import channels_of
from webapp.alerts.services import RuleSpec, change_rule, create_rule
from webapp.names import NameField
from webapp.projects.models import Project, Workspace
from webapp.projects.selectors import visible_projects, visible_workspaces

_FIELDS_OF = {
    RuleKind.RUN_STALLED: ("minutes",),
    RuleKind.HEALTH: ("health",),
    RuleKind.METRIC: ("metric", "agent", "direction", "threshold", "points"),
    RuleKind.QUOTA: ("percent",),
    RuleKind.DISK: ("percent",),
}
_LIMITED = (RuleKind.QUOTA, RuleKind.DISK)


class RuleForm(forms.Form):
    """A rule of the project, or without one of the user: a new one, or `rule` with changes. Of the
    fields that only some kinds have, those of other kinds are ignored: the page hides them."""

    kind = forms.ChoiceField(label="Notify when")
    scope = forms.ChoiceField(label="In")
    tag = NameField(label="Only runs with the tag", max_length=40, required=False)
    minutes = forms.IntegerField(label="Minutes", min_value=1, max_value=10080, required=False)
    health = NameField(label="Rules", max_length=600, required=False)
    metric = NameField(label="Series", max_length=200, required=False)
    agent = NameField(label="Agent", max_length=200, required=False)
    direction = forms.ChoiceField(
        label="Fires when it is", choices=Direction.choices, required=False
    )
    threshold = forms.FloatField(label="Threshold", required=False)
    points = forms.IntegerField(
        label="Points in a row", min_value=1, max_value=1000, required=False, initial=1
    )
    percent = forms.IntegerField(label="Percent", min_value=1, max_value=99, required=False)
    only_experiment = forms.BooleanField(required=False)
    inbox = forms.BooleanField(label="Inbox", required=False, initial=True)
    mail = forms.BooleanField(label="Mail", required=False)
    channels = forms.ModelMultipleChoiceField(
        Channel.objects.none(), required=False, widget=forms.CheckboxSelectMultiple
    )

    def __init__(
        self,
        user: User,
        project: Project | None,
        *args: Any,
        rule: AlertRule | None = None,
        **kwargs: Any,
    ):
        super().__init__(*args, initial=_initial(rule) if rule else None, **kwargs)
        self._user, self._project, self._rule = user, project, rule
        if rule is None or rule.experiment is None:
            del self.fields["only_experiment"]
        else:
            self.fields["only_experiment"].label = f"Only runs of {rule.experiment}"
        watches_disk = project is None and is_operator(user)
        kinds = [one for one in RuleKind if one is not RuleKind.DISK or watches_disk]
        self.fields["kind"].choices = [(one.value, one.label) for one in kinds]
        self.fields["channels"].queryset = channels_of(user, project)
        if project is not None:
            del self.fields["scope"], self.fields["mail"]
            return
        self._places = _places(user)
        self.fields["scope"].choices = [(key, label) for key, (label, _) in self._places.items()]
        if mails.refusal(user):
            del self.fields["mail"]

    def save(self) -> AlertRule | None:
        """The new or changed rule; None, with errors, if it was refused."""
        try:
            if self._rule is not None:
                return change_rule(self._rule, self._spec(), self._user)
            return create_rule(self._spec(), self._project or self._user, self._user)
        except AlertRefused as refusal:
            field = refusal.path if refusal.path in self.fields else None
            self.add_error(field, f"{refusal.reason[:1].upper()}{refusal.reason[1:]}.")
            return None

    def _spec(self) -> RuleSpec:
        given = self.cleaned_data
        kind = RuleKind(given["kind"])
        values = {name: given[name] for name in _FIELDS_OF.get(kind, ())}
        if "health" in values:
            values["health"] = [one for one in re.split(r"[\s,]+", values["health"]) if one]
        if values.get("points", 1) is None:
            values["points"] = 1
        if kind not in _LIMITED:
            values["tag"] = given["tag"]
        place = self._project or self._places[given["scope"]][1]
        return RuleSpec(
            kind=kind,
            project=place if isinstance(place, Project) else None,
            workspace=None if isinstance(place, Project) else place,
            **values,
            experiment=self._rule.experiment
            if self._rule and given.get("only_experiment")
            else None,
            inbox=given["inbox"],
            mail=given.get("mail", self._rule is not None and self._rule.mail),
            channels=list(given["channels"]),
        )


def _initial(rule: AlertRule) -> dict[str, Any]:
    """The fields of a rule, as the form shows them."""
    same = ("kind", "tag", "minutes", "metric", "agent", "direction", "threshold", "points")
    place = rule.project or rule.workspace
    return {name: getattr(rule, name) for name in (*same, "percent", "inbox", "mail")} | {
        "scope": f"{'project' if rule.project else 'workspace'}-{place.pk}" if place else "",
        "health": ", ".join(rule.health),
        "only_experiment": rule.experiment_id is not None,
        "channels": list(rule.channels.all()),
    }


def _places(user: User) -> dict[str, tuple[str, Workspace | Project]]:
    """Key -> label and object of what a person's rule may be about."""
    places: dict[str, tuple[str, Workspace | Project]] = {
        f"workspace-{one.pk}": (f"all of {one}", one) for one in visible_workspaces(user)
    }
    for one in visible_projects(user):
        places[f"project-{one.pk}"] = (f"{one} in {one.workspace}", one)
    return places


class ChannelForm(forms.Form):
    kind = forms.ChoiceField(choices=CHANNEL_KINDS)
    name = NameField(max_length=100)
    url = NameField(
        label="Address", max_length=2000, widget=forms.URLInput(attrs={"autocomplete": "off"})
    )


class PreferencesForm(forms.Form):
    own_failures = forms.BooleanField(
        label="An inbox notice of each of my runs that fails", required=False
    )
    quiet_from = forms.TimeField(
        label="Quiet from", required=False, widget=forms.TimeInput({"type": "time"}, "%H:%M")
    )
    quiet_until = forms.TimeField(
        label="until", required=False, widget=forms.TimeInput({"type": "time"}, "%H:%M")
    )
    time_zone = forms.ChoiceField(label="Time zone")

    def __init__(self, preferences: Preferences, *args: Any, **kwargs: Any):
        names = ("own_failures", "quiet_from", "quiet_until", "time_zone")
        initial = {name: getattr(preferences, name) for name in names}
        super().__init__(*args, initial=initial, **kwargs)
        self.fields["time_zone"].choices = [(one, one) for one in sorted(zone_names())]


class ChannelActionForm(forms.Form):
    do = forms.ChoiceField(
        choices=[("test", "test"), ("rotate", "rotate"), ("enable", "enable"), ("delete", "delete")]
    )
