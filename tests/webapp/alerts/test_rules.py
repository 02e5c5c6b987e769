"""Tests of rules on real runs: who is notified of what, how often, and when no more."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from engine.events.vocabulary import RunState
from tests.helpers.alerts import a_channel, a_rule, inbox_titles
from tests.helpers.builders import a_held_run, a_run, an_event
from tests.helpers.large import large_but
from webapp.alerts.channels import disable, enable
from webapp.alerts.errors import AlertRefused
from webapp.alerts.levels import look
from webapp.alerts.models import Alert, AlertRule, Channel, Delivery, RuleKind, RuleState
from webapp.alerts.services import RuleSpec, change_preferences, create_rule, set_muted
from webapp.comments.models import Notice
from webapp.experiments import services
from webapp.experiments.models import Experiment, Run
from webapp.experiments.scheduling.leases import take_lease
from webapp.projects import membership
from webapp.projects.models import Project, Role, Visibility
from webapp.projects.services import change_visibility
from webapp.telemetry.ingest.ingest import ingest
from webapp.telemetry.models import Event

OUT = "https://hooks.example/x"


def step(seq: int, number: int, reward: float):
    return an_event(
        seq, "step.end", step=number, reward=reward, solved=0.5, seconds=1.0, training_seconds=1.0
    )


def warning(seq: int, rule: str = "entropy_collapse", state: str = "opened", at: int = 3):
    return an_event(
        seq, "health", rule=rule, state=state, step=at, title="Entropy collapse",
        seen="The entropy of oak is 0.01.", since=1, since_time=1_700_000_000.0, agent="oak",
    )  # fmt: skip


def test_everybody_has_an_inbox_notice_of_their_own_failed_run(cast):
    run, fencing = a_held_run(cast)
    services.mark_failed(run.pk, fencing, "CUDA out of memory\nand more")
    (notice,) = Notice.objects.visible_to(cast.alice)
    assert notice.title == "Shade #1 failed at step 0"
    assert notice.text == "CUDA out of memory\nand more" and notice.path == f"/runs/{run.pk}/"
    assert notice.run == run and abs(notice.at - timezone.now()) < timedelta(minutes=1)
    assert Notice.objects.count() == 1 and not Alert.objects.exists()


def test_the_notice_of_own_failures_can_be_declined_and_other_ends_have_none(cast):
    change_preferences(cast.alice, False, None, None, "UTC")
    run, fencing = a_held_run(cast)
    services.mark_failed(run.pk, fencing, "no")
    other, fencing = a_held_run(cast)
    services.mark_finished(other.pk, fencing)
    assert not Notice.objects.exists()


def test_a_failure_is_noticed_once_by_a_person_however_many_rules_see_it(cast):
    a_rule(cast.alice, cast.project, RuleKind.RUN_FAILED)
    a_rule(cast.alice, cast.project, RuleKind.RUN_ENDED)
    a_rule(cast.project, cast.project, RuleKind.RUN_FAILED)
    run, fencing = a_held_run(cast)
    services.mark_failed(run.pk, fencing, "no")
    for who in (cast.alice, cast.mia, cast.bob, cast.vera):
        assert inbox_titles(who) == ["Shade #1 failed at step 0"], who
    assert inbox_titles(cast.charlie) == []
    assert Alert.objects.count() == 3
    services.resume_run(run.pk, cast.alice)
    fencing = take_lease(run.pk, "worker", 60)
    services.mark_starting(run.pk, fencing)
    services.mark_failed(run.pk, fencing, "again")
    assert len(inbox_titles(cast.bob)) == 2, "another end is another occasion"


def test_a_stop_is_an_end_but_no_failure(cast):
    a_rule(cast.bob, cast.project, RuleKind.RUN_ENDED)
    a_rule(cast.mia, cast.project, RuleKind.RUN_FAILED)
    services.request_stop(a_run(cast).pk, cast.alice)
    assert inbox_titles(cast.bob) == ["Shade #1 was stopped at step 0"]
    assert inbox_titles(cast.mia) == []


def test_what_is_rolled_back_notifies_nobody(cast):
    a_rule(cast.bob, cast.project, RuleKind.RUN_ENDED, channels=[a_channel(cast.bob, OUT)])
    run = a_run(cast)
    with pytest.raises(RuntimeError), transaction.atomic():
        services.request_stop(run.pk, cast.alice)
        assert Delivery.objects.count() == 1
        raise RuntimeError
    assert not Delivery.objects.exists() and not Notice.objects.exists()
    services.request_stop(run.pk, cast.alice)
    assert Delivery.objects.count() == 1


@pytest.mark.large
def test_filters_by_scope_experiment_and_tag(cast):
    tagged = a_run(cast, tags=["baseline"])
    plain = a_run(cast)
    a_rule(cast.bob, cast.project, RuleKind.RUN_ENDED, tag="baseline")
    a_rule(cast.mia, cast.project, RuleKind.RUN_ENDED, experiment=plain.experiment)
    whole = RuleSpec(RuleKind.RUN_ENDED, workspace=cast.project.workspace)
    create_rule(whole, cast.vera, cast.vera)
    for run in (tagged, plain):
        services.request_stop(run.pk, cast.alice)
    assert [len(inbox_titles(who)) for who in (cast.bob, cast.mia, cast.vera)] == [1, 1, 2]


def test_a_health_warning_notifies_once_also_when_the_run_repeats_the_step(cast):
    a_rule(cast.bob, cast.project, RuleKind.HEALTH, health=["entropy_collapse"])
    a_rule(cast.mia, cast.project, RuleKind.HEALTH, health=["slow_step"])
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, [warning(1), warning(2, state="closed", at=5)])
    ingest(run.pk, fencing, [an_event(3, "run.resumed", step=2), warning(4)])
    assert inbox_titles(cast.bob) == ["Shade #1: Entropy collapse (oak)"]
    assert inbox_titles(cast.mia) == []
    (alert,) = Alert.objects.all()
    assert alert.cause == "The entropy of oak is 0.01."
    assert alert.since.timestamp() == 1_700_000_000.0
    ingest(run.pk, fencing, [warning(5, at=9)])
    assert len(inbox_titles(cast.bob)) == 2


def test_a_metric_is_judged_the_same_in_one_batch_or_many(cast):
    below = {"metric": "reward", "direction": "below", "threshold": 0.5, "points": 2}
    a_rule(cast.bob, cast.project, RuleKind.METRIC, **below)
    rewards = [0.9, 0.4, 0.4, 0.4, 0.9, 0.1, 0.1] + [0.1] * 28
    events = [step(seq, seq, reward) for seq, reward in enumerate(rewards, 1)]
    one, fencing = a_held_run(cast)
    ingest(one.pk, fencing, events)
    many, fencing = a_held_run(cast)
    for event in events:
        ingest(many.pk, fencing, [event])
    for run in (one, many):
        alerts = Alert.objects.filter(run=run).order_by("pk")
        assert [alert.cause for alert in alerts] == [
            "reward is 0.4 at step 3, below 0.5 for 2 points in a row.",
            "reward is 0.1 at step 7, below 0.5 for 2 points in a row.",
        ]
        assert RuleState.objects.get(run=run).seen == len(events)


def test_points_that_a_resumed_run_repeats_go_on_and_those_before_the_rule_do_not_count(cast):
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, [step(seq, seq, 0.1) for seq in range(1, 70)])
    below = {"metric": "reward", "direction": "below", "threshold": 0.5, "points": 3}
    a_rule(cast.bob, cast.project, RuleKind.METRIC, **below)
    ingest(run.pk, fencing, [step(70, 70, 0.1)])
    assert not Alert.objects.exists(), "69 low points are older than the rule"
    again = [an_event(71, "run.resumed", step=60), step(72, 61, 0.1), step(73, 62, 0.1)]
    ingest(run.pk, fencing, again)
    (alert,) = Alert.objects.all()
    assert "at step 62" in alert.cause


def test_a_rule_about_each_agent_names_the_one(cast):
    each = {"metric": "reward", "agent": "*", "direction": "above", "threshold": 0.5}
    a_rule(cast.bob, cast.project, RuleKind.METRIC, **each)
    run, fencing = a_held_run(cast)
    event = an_event(
        1, "step.end", step=1, reward=0.9, solved=0.5, seconds=1.0, training_seconds=1.0,
        reward_by_agent={"oak": 0.9, "fern": 0.1},
    )  # fmt: skip
    ingest(run.pk, fencing, [event])
    assert inbox_titles(cast.bob) == ["Shade #1: reward.oak is above 0.5"]


def test_a_fault_in_alerts_never_stops_a_run(cast, caplog):
    """A rule that an operator spoiled in the database by hand."""
    below = {"metric": "reward", "direction": "below", "threshold": 0.5}
    rule = a_rule(cast.bob, cast.project, RuleKind.METRIC, **below)
    AlertRule.objects.filter(pk=rule.pk).update(threshold=None, direction="below")
    run, fencing = a_held_run(cast)
    assert ingest(run.pk, fencing, [step(1, 1, -0.4)]) == 1
    assert Event.objects.filter(run=run).count() == 1
    assert "were not evaluated" in caplog.text


def test_a_stalled_run_is_noticed_once_per_pause(cast):
    a_rule(cast.bob, cast.project, RuleKind.RUN_STALLED, minutes=10)
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, [step(1, 1, 0.5), an_event(2, "system.sample", cpu_percent=1.0,
                                                       memory_mb=1.0)])  # fmt: skip
    assert look() and inbox_titles(cast.bob) == []
    long_ago = timezone.now() - timedelta(minutes=11)
    Event.objects.filter(run=run, seq=1).update(time=long_ago)
    Run.objects.filter(pk=run.pk).update(
        started_at=long_ago, queued_at=long_ago, waiting_name="the sandbox"
    )
    for _ in range(3):
        look()
    assert inbox_titles(cast.bob) == ["Shade #1 has made no progress for 10 minutes"]
    assert "It waits for the sandbox." in Alert.objects.get().cause
    services.mark_failed(run.pk, fencing, "no")
    look()
    assert len(inbox_titles(cast.bob)) == 1, "it has ended"


def test_a_run_of_another_program_makes_progress_by_what_it_logs(cast):
    a_rule(cast.bob, cast.project, RuleKind.RUN_STALLED, minutes=10)
    run, fencing = a_held_run(cast)
    long_ago = timezone.now() - timedelta(minutes=11)
    Run.objects.filter(pk=run.pk).update(started_at=long_ago, queued_at=long_ago)
    ingest(run.pk, fencing, [an_event(1, "metric.logged", step=1, numbers={"loss": 0.5})])
    assert look() and inbox_titles(cast.bob) == []
    Event.objects.filter(run=run, seq=1).update(time=long_ago)
    look()
    assert inbox_titles(cast.bob) == ["Shade #1 has made no progress for 10 minutes"]


def test_quotas_and_the_disk_are_noticed_when_they_fill_and_again_after_they_emptied(
    cast, settings
):
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, [an_event(seq) for seq in range(1, 10)])
    settings.OPERATORS = ["mia"]
    a_rule(cast.bob, cast.project, RuleKind.QUOTA, percent=90)
    create_rule(RuleSpec(RuleKind.DISK, percent=99), cast.mia, cast.mia)
    for most in (100, 10, 10, 100, 10):
        settings.MOST_EVENTS = most
        look()
    titles = inbox_titles(cast.bob)
    assert titles == ["Trees: 90 % of its events are used"] * 2
    assert "GROVE_MOST_EVENTS" in Alert.objects.filter(user=cast.bob).first().cause
    (disk,) = inbox_titles(cast.mia)
    assert disk.startswith("The server's disk is ") and disk.endswith(" % full")
    settings.OPERATORS = ["alice"]
    RuleState.objects.filter(subject="disk").delete()
    look()
    assert len(inbox_titles(cast.mia)) == 1, "mia is no operator any more"


def test_a_rule_that_cannot_be_looked_at_hides_no_other(cast, settings, caplog, tmp_path):
    """Of a disk that is gone."""
    disk = create_rule(RuleSpec(RuleKind.DISK, percent=5), cast.alice, cast.alice)
    a_rule(cast.bob, cast.project, RuleKind.QUOTA, percent=90)
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, [an_event(1)])
    settings.GROVE_VAR, settings.MOST_EVENTS = tmp_path / "gone", 1
    assert look() and inbox_titles(cast.bob) == ["Trees: 100 % of its events are used"]
    assert f"alert rule {disk.pk} was not evaluated" in caplog.text


def test_the_first_account_watches_the_disk_unless_operators_are_named(cast, settings):
    assert (
        create_rule(RuleSpec(RuleKind.DISK, percent=10), cast.alice, cast.alice).workspace is None
    )
    for user, project in ((cast.bob, None), (cast.alice, cast.project)):
        with pytest.raises(AlertRefused, match="operator"):
            create_rule(RuleSpec(RuleKind.DISK, percent=10), project or user, user)


def test_a_muted_run_notifies_the_person_of_nothing_and_others_still(cast):
    a_rule(cast.project, cast.project, RuleKind.RUN_ENDED)
    a_rule(cast.bob, cast.project, RuleKind.RUN_ENDED, channels=[a_channel(cast.bob, OUT)])
    run = a_run(cast)
    set_muted(run, cast.bob, True)
    services.request_stop(run.pk, cast.alice)
    assert inbox_titles(cast.bob) == [] and not Delivery.objects.exists()
    assert inbox_titles(cast.mia) == ["Shade #1 was stopped at step 0"]


def test_rules_end_with_the_membership_and_with_what_they_are_about(cast, client):
    for who in (cast.bob, cast.vera):
        a_rule(who, cast.project, RuleKind.RUN_ENDED, channels=[a_channel(who, OUT)])
        whole = RuleSpec(RuleKind.RUN_ENDED, workspace=cast.project.workspace)
        create_rule(whole, who, who)
    membership.remove_member(cast.project.workspace, cast.bob.pk, cast.alice)
    assert not AlertRule.objects.filter(user=cast.bob).exists()
    change_visibility(cast.project, Visibility.PRIVATE)
    assert AlertRule.objects.get(user=cast.vera).project is None, "that of the workspace is left"
    services.request_stop(a_run(cast).pk, cast.alice)
    assert not Delivery.objects.exists() and not Notice.objects.filter(user=cast.vera).exists()


def test_evaluation_checks_again_what_a_person_sees(cast):
    """However the right was lost: no signal was sent."""
    a_rule(cast.bob, cast.project, RuleKind.RUN_ENDED, channels=[a_channel(cast.bob, OUT)])
    Project.objects.update(visibility=Visibility.PRIVATE, created_by=cast.alice)
    services.request_stop(a_run(cast).pk, cast.alice)
    assert not Delivery.objects.exists() and inbox_titles(cast.bob) == []
    cast.alice.is_active = False
    cast.alice.save()
    run, fencing = a_held_run(cast)
    services.mark_failed(run.pk, fencing, "no")
    assert not Notice.objects.exists()


def test_a_projects_channel_ends_with_the_right_of_who_set_it_up(cast):
    from webapp.alerts.channels import create_channel
    from webapp.alerts.models import Way

    made = create_channel(cast.project, Way.WEBHOOK, "pager", OUT, cast.mia)
    a_rule(cast.project, cast.project, RuleKind.RUN_ENDED, channels=[made], inbox=False)
    membership.change_role(cast.project.workspace, cast.mia.pk, Role.MEMBER, cast.alice)
    made.refresh_from_db()
    assert "mia, who set it up" in made.disabled_reason
    assert inbox_titles(cast.alice) == ["The channel pager is disabled"]
    assert inbox_titles(cast.mia) == inbox_titles(cast.bob) == []
    services.request_stop(a_run(cast).pk, cast.alice)
    assert not Delivery.objects.exists()
    enable(made, cast.alice)
    services.request_stop(a_run(cast).pk, cast.alice)
    assert Delivery.objects.count() == 1


def test_a_disabled_channel_is_announced_once(cast):
    made = a_channel(cast.bob, OUT)
    disable(made, "it is gone")
    disable(Channel.objects.get(pk=made.pk), "it is gone")
    assert inbox_titles(cast.bob) == ["The channel hook is disabled"]


def test_series_that_no_run_has_are_refused_with_the_nearest(cast):
    below = {"direction": "below", "threshold": 0.5}
    a_rule(cast.bob, cast.project, RuleKind.METRIC, metric="anything", **below)
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, [step(1, 1, 0.5)])
    with pytest.raises(AlertRefused, match="did you mean reward"):
        a_rule(cast.bob, cast.project, RuleKind.METRIC, metric="rewards", **below)
    with pytest.raises(AlertRefused, match="no run there"):
        a_rule(cast.bob, cast.project, RuleKind.METRIC, metric="reward", agent="*", **below)


WRONG = (
    ({"kind": RuleKind.RUN_STALLED}, "minutes"),
    ({"kind": RuleKind.RUN_STALLED, "minutes": 0}, "minutes"),
    ({"kind": RuleKind.RUN_ENDED, "minutes": 5}, "minutes"),
    ({"kind": RuleKind.METRIC, "metric": "reward", "direction": "below"}, "threshold"),
    ({"kind": RuleKind.METRIC, "metric": "reward", "threshold": 1.0}, "direction"),
    ({"kind": RuleKind.METRIC, "direction": "below", "threshold": 1.0}, "metric"),
    ({"kind": RuleKind.METRIC, "metric": "a", "direction": "below", "threshold": float("nan")},
     "threshold"),
    ({"kind": RuleKind.QUOTA}, "percent"),
    ({"kind": RuleKind.QUOTA, "percent": 100}, "percent"),
    ({"kind": RuleKind.QUOTA, "percent": 90, "tag": "a"}, "tag"),
    ({"kind": RuleKind.HEALTH, "health": ["entropy_colapse"]}, "health"),
    ({"kind": RuleKind.RUN_ENDED, "health": ["slow_step"]}, "health"),
    ({"kind": RuleKind.RUN_ENDED, "inbox": False}, "inbox"),
    ({"kind": RuleKind.RUN_ENDED, "mail": True}, "mail"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "path"), large_but(WRONG[::4], WRONG), ids=lambda one: str(one)[:50]
)
def test_a_wrong_rule_is_refused_by_field(cast, fields, path):
    with pytest.raises(AlertRefused) as refused:
        create_rule(RuleSpec(project=cast.project, **fields), cast.bob, cast.bob)
    assert refused.value.path == path and refused.value.reason
    assert not AlertRule.objects.exists()


def test_scope_and_channels_belong_to_the_owner(cast):
    elsewhere = Experiment.objects.create(
        project=Project.objects.create(
            workspace=cast.project.workspace, name="Elms", slug="elms", created_by=cast.alice
        ),
        name="other", config={}, created_by=cast.alice,
    )  # fmt: skip
    with pytest.raises(AlertRefused, match="another project"):
        a_rule(cast.bob, cast.project, RuleKind.RUN_ENDED, experiment=elsewhere)
    with pytest.raises(AlertRefused, match="another owner"):
        a_rule(cast.bob, cast.project, RuleKind.RUN_ENDED, channels=[a_channel(cast.mia, OUT)])
    with pytest.raises(AlertRefused, match="personal"):
        a_rule(cast.project, cast.project, RuleKind.RUN_ENDED, mail=True)
    with pytest.raises(AlertRefused, match="give a workspace"):
        create_rule(RuleSpec(RuleKind.RUN_ENDED), cast.bob, cast.bob)


def test_nothing_is_left_of_a_deleted_run(cast):
    a_rule(cast.bob, cast.project, RuleKind.RUN_FAILED, channels=[a_channel(cast.bob, OUT)])
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, [step(1, 1, 0.5)])
    services.mark_failed(run.pk, fencing, "no")
    assert Run.objects.get(pk=run.pk).run_state is RunState.FAILED
    run.experiment.delete()
    assert not (Alert.objects.exists() or Delivery.objects.exists() or Notice.objects.exists())
