"""Tests of the pages of notifications and alerts, and of their REST."""

from __future__ import annotations

import json
from datetime import time

import pytest

from tests.helpers.alerts import a_channel, a_rule, inbox_titles, send_all
from tests.helpers.builders import a_held_run, a_token
from tests.helpers.large import large_but
from webapp.accounts.models import Scope
from webapp.alerts.models import (
    AlertRule,
    Channel,
    Delivery,
    Mute,
    Preferences,
    RuleKind,
    RuleState,
)
from webapp.alerts.services import RuleSpec, create_rule
from webapp.audit.selectors import AuditQuery, entries
from webapp.experiments import services
from webapp.experiments.models import Experiment
from webapp.offboarding.export import export
from webapp.projects.models import Role
from webapp.projects.services import create_project

OUT = "https://hooks.example/T000/secret-part"
RULE = {"kind": "run-failed", "inbox": "on"}


def rest(client, method: str, path: str, body=None, **headers):
    address = f"/api/v1/{path}"
    if method == "get":
        return client.get(address, headers=headers)
    return getattr(client, method)(
        address, json.dumps(body or {}), content_type="application/json", headers=headers
    )


def audit(cast) -> list[str]:
    return [one.text for one in entries(cast.project.workspace, AuditQuery(), None, 100)[0]]


def test_a_person_adds_rules_and_channels_and_sees_what_was_delivered(client, cast, receiver):
    client.force_login(cast.bob)
    hook = {"kind": "webhook", "name": "pager", "url": f"{receiver.url}/ok"}
    shown = client.post("/notifications/channels/", hook)
    assert shown.status_code == 200 and "whsec_" in shown.content.decode()
    channel = Channel.objects.get()
    assert "whsec_" not in client.get("/notifications/").content.decode()
    scope = f"project-{cast.project.pk}"
    rule = {**RULE, "scope": scope, "channels": [channel.pk]}
    assert client.post("/notifications/rules/", rule).status_code == 302
    run, fencing = a_held_run(cast)
    services.mark_failed(run.pk, fencing, "CUDA <out> of memory")
    send_all()
    page = client.get("/notifications/").content.decode()
    for text in ("A run fails", "Shade #1 failed at step 0", "CUDA &lt;out&gt;", "HTTP 200"):
        assert text in page, text
    inbox = client.get("/inbox/").content.decode()
    assert "CUDA &lt;out&gt; of memory" in inbox and run.finished_at is None
    run.refresh_from_db()
    assert run.finished_at.isoformat() in inbox, "since when"
    notice = client.get("/api/v1/inbox").json()["notices"][0]
    assert notice["reason"] == "alert" and notice["comment"] is None
    assert notice["run"] == str(run.pk) and notice["path"] == f"/runs/{run.pk}/"
    opened = client.post(f"/inbox/{notice['id']}/")
    assert opened.url == f"/runs/{run.pk}/"
    assert client.post(f"/notifications/rules/{AlertRule.objects.get().pk}/delete/").url == (
        "/notifications/"
    )
    assert not AlertRule.objects.exists()


def test_actions_on_a_channel(client, cast, receiver):
    client.force_login(cast.bob)
    channel = a_channel(cast.bob, f"{receiver.url}/ok")
    at = f"/notifications/channels/{channel.pk}/"
    assert client.post(at, {"do": "test"}).status_code == 302
    send_all()
    assert json.loads(receiver.bodies()[0])["type"] == "test"
    assert "whsec_" in client.post(at, {"do": "rotate"}).content.decode()
    Channel.objects.update(disabled_at="2026-01-01T00:00Z", failures=3)
    client.post(at, {"do": "enable"})
    channel.refresh_from_db()
    assert channel.disabled_at is None and channel.failures == 0
    assert client.post(at, {"do": "explode"}).status_code == 400
    assert client.post(at, {"do": "delete"}).status_code == 302 and not Channel.objects.exists()


def test_a_project_has_rules_that_its_maintainers_manage_and_members_read(client, cast):
    at = f"/projects/{cast.project.pk}/alerts/"
    client.force_login(cast.mia)
    assert client.post("/notifications/rules/", {**RULE, "project": cast.project.pk}).url == at
    a_channel(cast.project, OUT)
    page = client.get(at).content.decode()
    assert "https://hooks.example/…" in page and "secret-part" not in page
    client.force_login(cast.bob)
    page = client.get(at).content.decode()
    assert "A run fails" in page and "hooks.example" not in page and "Add rule" not in page


WRONG_FORMS = (
    ({"kind": "nonsense"}, "kind"),
    ({"kind": "disk", "percent": 5}, "kind"),
    ({**RULE, "scope": "workspace-9999"}, "scope"),
    ({**RULE, "inbox": ""}, "inbox"),
    ({**RULE, "kind": "run-stalled"}, "minutes"),
    ({**RULE, "kind": "run-stalled", "minutes": "soon"}, "minutes"),
    ({**RULE, "kind": "metric", "metric": "reward", "direction": "below", "threshold": "nan"},
     "threshold"),
    ({**RULE, "kind": "metric", "metric": "a\0b", "direction": "below", "threshold": "1"},
     "metric"),
    ({**RULE, "channels": ["9999"]}, "channels"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("given", "field"), large_but(WRONG_FORMS[::4], WRONG_FORMS), ids=lambda one: str(one)[:40]
)
def test_a_wrong_form_is_shown_again_with_its_fault(client, cast, given, field):
    client.force_login(cast.bob)
    whole = {"scope": f"project-{cast.project.pk}", **given}
    answer = client.post("/notifications/rules/", whole)
    assert answer.status_code == 422 and field in answer.context["rule_form"].errors
    assert 'role="alert"' in answer.content.decode()
    assert not AlertRule.objects.exists()


def test_fields_of_other_kinds_are_ignored_as_the_page_hides_them(client, cast):
    client.force_login(cast.bob)
    scope = f"project-{cast.project.pk}"
    client.post("/notifications/rules/", {**RULE, "scope": scope, "minutes": 5, "metric": "x"})
    rule = AlertRule.objects.get()
    assert rule.minutes is None and rule.metric == ""


@pytest.mark.large
def test_a_private_or_odd_address_of_a_channel_is_refused_by_name(client, cast):
    client.force_login(cast.bob)
    for url in ("http://127.0.0.1/", "https://[::ffff:10.0.0.1]/", "ftp://x.example/", "x"):
        answer = client.post(
            "/notifications/channels/", {"kind": "webhook", "name": "a", "url": url}
        )
        assert answer.status_code == 422 and "url" in answer.context["channel_form"].errors, url
    assert not Channel.objects.exists()


def test_preferences_are_saved_whole_and_wrong_ones_refused(client, cast):
    client.force_login(cast.bob)
    given = {"quiet_from": "22:00", "quiet_until": "07:00", "time_zone": "Europe/Vienna"}
    assert client.post("/notifications/", given).status_code == 302
    saved = Preferences.objects.get(user=cast.bob)
    assert not saved.own_failures and saved.quiet_from == time(22)
    assert 'value="22:00"' in client.get("/notifications/").content.decode()
    for wrong in (
        {"quiet_until": ""}, {"quiet_until": "22:00"}, {"time_zone": "Europe/Atlantis"},
        {"quiet_from": "25:00"},
    ):  # fmt: skip
        assert client.post("/notifications/", {**given, **wrong}).status_code == 422, wrong
    assert Preferences.objects.get(user=cast.bob).quiet_until == time(7)


def test_a_run_is_muted_and_unmuted_on_its_page(client, cast):
    run, _ = a_held_run(cast)
    client.force_login(cast.vera)
    assert ">Mute<" in client.get(f"/runs/{run.pk}/").content.decode()
    client.post(f"/runs/{run.pk}/mute/", {"do": "mute"})
    assert Mute.objects.get().user == cast.vera
    assert ">Unmute<" in client.get(f"/runs/{run.pk}/").content.decode()
    client.post(f"/runs/{run.pk}/mute/", {"do": "unmute"})
    assert not Mute.objects.exists()


def test_own_rules_channels_and_preferences_by_rest(client, cast):
    client.force_login(cast.bob)
    hook = {"kind": "webhook", "name": "pager", "url": OUT}
    made = rest(client, "post", "alerts/channels", hook).json()
    assert made["secret"].startswith("whsec_") and made["origin"] == "https://hooks.example"
    assert "secret-part" not in json.dumps(made)
    (listed,) = rest(client, "get", "alerts/channels").json()["channels"]
    assert listed["secret"] is None
    metric = {
        "kind": "metric", "project": cast.project.pk, "metric": "reward", "direction": "below",
        "threshold": 0.25, "points": 3, "channels": [made["id"]],
    }  # fmt: skip
    rule = rest(client, "post", "alerts/rules", metric)
    assert rule.status_code == 201
    assert rule.json()["summary"] == "reward is below 0.25 for 3 points in a row"
    assert rule.json()["shared"] is False and rule.json()["channels"] == [made["id"]]
    assert len(rest(client, "get", "alerts/rules").json()["rules"]) == 1
    rotated = rest(client, "post", f"alerts/channels/{made['id']}", {"do": "rotate"}).json()
    assert rotated["secret"] != made["secret"]
    sent = rest(client, "post", "alerts/test")
    assert sent.status_code == 201 and sent.json()["deliveries"] == []
    assert inbox_titles(cast.bob) == ["Test of your notifications"]
    change = {"quiet_from": "22:00", "quiet_until": "07:00"}
    assert rest(client, "patch", "alerts/preferences", change).json() == {
        "own_failures": True, **change, "time_zone": "UTC"
    }  # fmt: skip
    off = {"quiet_from": None, "quiet_until": None, "own_failures": False}
    assert rest(client, "patch", "alerts/preferences", off).json()["quiet_from"] is None
    assert rest(client, "delete", f"alerts/rules/{rule.json()['id']}").status_code == 204
    assert rest(client, "delete", f"alerts/channels/{made['id']}").status_code == 204


WRONG_BODIES = (
    ("alerts/rules", {"kind": "run-ended"}, "workspace"),
    ("alerts/rules", {"kind": "run-ended", "shared": True}, "project"),
    ("alerts/rules", {"kind": "quota", "project": "mine"}, "project"),
    ("alerts/rules", {"kind": "run-ended", "minutes": 5, "workspace": "mine"}, "workspace"),
    ("alerts/rules", {"kind": "health", "health": ["a b"]}, "health.0"),
    ("alerts/rules", {"kind": "run-ended", "surprise": 1}, "surprise"),
    ("alerts/channels", {"kind": "webhook", "name": "a", "url": "http://10.0.0.1/"}, "url"),
    ("alerts/channels", {"kind": "mail", "name": "a", "url": OUT}, "kind"),
)


@pytest.mark.parametrize(
    ("path", "body", "field"),
    large_but(WRONG_BODIES[::4], WRONG_BODIES),
    ids=lambda one: str(one)[:50],
)
def test_a_wrong_body_is_refused_by_field(client, cast, path, body, field):
    client.force_login(cast.bob)
    answer = rest(client, "post", path, body)
    assert answer.status_code == 422
    assert field in [one["path"] for one in answer.json()["problems"]]


def test_a_wrong_preference_is_refused_by_field(client, cast):
    client.force_login(cast.bob)
    for body, field in (
        ({"quiet_from": "22:00"}, "quiet_until"),
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
        ({"time_zone": None}, "time_zone"),
        ({"quiet_from": "24:00"}, "quiet_from"),
    ):
        answer = rest(client, "patch", "alerts/preferences", body)
        assert answer.status_code == 422, body
        assert answer.json()["problems"][0]["path"] == field
    slack = a_channel(cast.bob, OUT, "slack")
    answer = rest(client, "post", f"alerts/channels/{slack.pk}", {"do": "rotate"})
    assert answer.status_code == 422 and "only a webhook" in answer.json()["problems"][0]["reason"]


def test_what_belongs_to_others_does_not_exist(client, cast):
    own = a_rule(cast.alice, cast.project, RuleKind.RUN_ENDED)
    channel = a_channel(cast.alice, OUT)
    client.force_login(cast.bob)
    assert rest(client, "delete", f"alerts/rules/{own.pk}").status_code == 404
    assert rest(client, "delete", f"alerts/channels/{channel.pk}").status_code == 404
    body = {"kind": "run-ended", "project": cast.project.pk, "channels": [channel.pk]}
    assert rest(client, "post", "alerts/rules", body).status_code == 422
    assert client.post(f"/notifications/rules/{own.pk}/delete/").status_code == 404
    token = a_token(cast.alice, cast.project.workspace, Scope.ADMIN)
    by_token = {"authorization": f"Bearer {token}"}
    client.logout()
    assert rest(client, "get", "alerts/rules", **by_token).status_code == 403
    assert rest(client, "delete", f"alerts/rules/{own.pk}", **by_token).status_code == 404


def test_changes_are_recorded_and_no_secret_or_address_is(client, cast):
    client.force_login(cast.mia)
    hook = {"kind": "webhook", "name": "pager", "url": OUT, "project": cast.project.pk}
    made = rest(client, "post", "alerts/channels", hook).json()
    at = f"alerts/channels/{made['id']}"
    rest(client, "post", at, {"do": "rotate"})
    body = {"kind": "run-failed", "project": cast.project.pk, "shared": True}
    rule = rest(client, "post", "alerts/rules", body).json()
    rest(client, "delete", f"alerts/rules/{rule['id']}")
    create_rule(RuleSpec(RuleKind.RUN_ENDED, project=cast.project), cast.mia, cast.mia)
    rest(client, "delete", at)
    texts = audit(cast)
    for text in (
        "mia added the alert channel pager (webhook) of Oaks",
        "mia replaced the secret of the alert channel pager (webhook) of Oaks",
        "mia deleted the alert channel pager (webhook) of Oaks",
        "mia added an alert rule of the project about Oaks: a run fails",
        "mia deleted an alert rule of the project about Oaks: a run fails",
    ):
        assert text in texts, texts
    whole = b"".join(export(cast.project.workspace, cast.alice))
    assert b"secret-part" not in whole and "secret-part" not in str(texts)


def test_the_inbox_of_an_alert_needs_no_comment(client, cast):
    a_rule(cast.project, cast.project, RuleKind.RUN_ENDED)
    run, fencing = a_held_run(cast)
    services.mark_finished(run.pk, fencing)
    client.force_login(cast.vera)
    assert cast.vera.memberships.get().role == Role.VIEWER
    assert "Shade #1 finished at step 0" in client.get("/inbox/").content.decode()
    client.post("/inbox/read/")
    assert not Delivery.objects.exists()
    assert '"new"' not in client.get("/inbox/").content.decode()


def test_a_rule_of_a_project_stays_in_it(client, cast):
    rule = a_rule(cast.project, cast.project, RuleKind.RUN_ENDED)
    other = create_project(cast.project.workspace, "Elms", "elms")
    client.force_login(cast.alice)
    for name, place in (("project", other.pk), ("project", None), ("workspace", 0)):
        answer = rest(client, "patch", f"alerts/rules/{rule.pk}", {name: place})
        assert answer.status_code == 422, name
        assert answer.json()["problems"][0]["path"] == name
    same = {"project": cast.project.pk, "inbox": True}
    assert rest(client, "patch", f"alerts/rules/{rule.pk}", same).status_code == 200
    assert AlertRule.objects.get(pk=rule.pk).project == cast.project


@pytest.mark.large
def test_a_rule_keeps_its_mail_while_its_owner_can_get_none(client, cast, settings):
    """The form has no field for mail then."""
    settings.MAIL_IS_SENT = False
    rule = a_rule(cast.bob, cast.project, RuleKind.RUN_STALLED, minutes=5)
    AlertRule.objects.filter(pk=rule.pk).update(mail=True)
    client.force_login(cast.bob)
    form = {"kind": "run-stalled", "scope": f"project-{cast.project.pk}", "minutes": 7}
    assert client.post(f"/notifications/rules/{rule.pk}/", form).status_code == 302
    assert AlertRule.objects.filter(pk=rule.pk, mail=True, minutes=7).exists()
    assert rest(client, "patch", f"alerts/rules/{rule.pk}", {"minutes": 8}).status_code == 200


def test_a_rule_is_edited_on_its_page_with_the_same_checks(client, cast):
    experiment = Experiment.objects.create(
        project=cast.project, name="Shade", created_by=cast.alice, config={}
    )
    rule = a_rule(cast.bob, cast.project, RuleKind.RUN_STALLED, minutes=5, experiment=experiment)
    address = f"/notifications/rules/{rule.pk}/"
    client.force_login(cast.mia)
    assert client.get(address).status_code == 404, "it is Bob's own"
    client.force_login(cast.bob)
    assert address in client.get("/notifications/").content.decode()
    shown = client.get(address).content.decode()
    assert 'value="5"' in shown and "Only runs of Shade" in shown
    scope = f"project-{cast.project.pk}"
    changed = {"kind": "run-stalled", "scope": scope, "minutes": 20, "tag": "base"}
    nowhere = client.post(address, changed | {"only_experiment": "on"})
    assert nowhere.status_code == 422 and b"choose at least one way" in nowhere.content.lower()
    kept = changed | {"only_experiment": "on", "inbox": "on"}
    assert client.post(address, kept).status_code == 302
    rule.refresh_from_db()
    assert (rule.minutes, rule.tag, rule.experiment) == (20, "base", experiment)
    assert client.post(address, changed | {"inbox": "on"}).status_code == 302
    rule.refresh_from_db()
    assert rule.experiment is None and rule.user == cast.bob
    assert "bob changed an alert rule of their own" in " ".join(audit(cast))


def test_by_rest_fields_that_are_left_out_keep_their_values(client, cast):
    client.force_login(cast.mia)
    rule = a_rule(cast.project, cast.project, RuleKind.RUN_STALLED, minutes=5, tag="base")
    RuleState.objects.create(rule=rule, subject="x", beyond=1, since=1.0, fired=2)
    path = f"alerts/rules/{rule.pk}"
    etag = rest(client, "get", path)["ETag"]
    answer = rest(client, "patch", path, {"minutes": 9}, **{"If-Match": etag}).json()
    assert (answer["minutes"], answer["tag"], answer["shared"]) == (9, "base", True)
    state = RuleState.objects.get()
    assert (state.beyond, state.since, state.fired) == (0, None, 2)
    assert rest(client, "patch", path, {"inbox": True}, **{"If-Match": etag}).status_code == 412
    for body, field in (
        ({"minutes": None}, "minutes"),
        ({"kind": None}, "kind"),
        ({"inbox": False}, "inbox"),
        ({"kind": "metric"}, "metric"),
        ({"percent": 3}, "percent"),
        ({"channels": [10**6]}, "channels"),
        ({"mail": True}, "mail"),
    ):
        refused = rest(client, "patch", path, body)
        assert refused.status_code == 422, body
        assert refused.json()["problems"][0]["path"] == field, body
    rule.refresh_from_db()
    assert (rule.kind, rule.minutes, rule.inbox) == ("run-stalled", 9, True)
    other = {"kind": "quota", "percent": 80, "tag": ""}
    assert rest(client, "patch", path, other).json()["minutes"] is None
    client.force_login(cast.bob)
    assert rest(client, "get", path).status_code == 200
    assert rest(client, "patch", path, {"percent": 3}).status_code == 403
