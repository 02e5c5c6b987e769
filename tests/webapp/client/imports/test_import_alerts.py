"""Tests that an import notifies nobody of what happened before it, and that what happens to the
run afterwards is noticed."""

from __future__ import annotations

import csv
import time

import pytest

import grove
from tests.helpers.alerts import a_channel, a_rule, inbox_titles
from tests.helpers.outside_runs import FAULTS
from tests.webapp.client.conftest import tracked
from tests.webapp.client.imports.event_files import event, scalar, write
from webapp.alerts.levels import look
from webapp.alerts.models import Alert, Delivery, RuleKind
from webapp.client import Grove
from webapp.client.cli import main
from webapp.experiments import services
from webapp.experiments.models import Run

pytestmark = pytest.mark.django_db(transaction=True)
OUTSIDE = FAULTS["entropy_collapse"]["TRL"]


@pytest.fixture
def rules(here, settings):
    """Rules about everything that a run can do, whose notices go to the inbox and to a channel."""
    settings.ALERT_NETWORKS = ["127.0.0.0/8"]
    bob, project = here.cast.bob, here.cast.project
    channels = [a_channel(bob, "http://127.0.0.1:9/hook")]
    loss = {"metric": "logged.loss", "direction": "below", "threshold": 1e9}
    for kind, given in (
        (RuleKind.RUN_ENDED, {}), (RuleKind.RUN_FAILED, {}), (RuleKind.HEALTH, {}),
        (RuleKind.METRIC, loss), (RuleKind.RUN_STALLED, {"minutes": 10}),
    ):  # fmt: skip
        a_rule(bob, project, kind, channels=channels, **given)
    return here


def is_silent(cast):
    look()
    return not (Alert.objects.exists() or Delivery.objects.exists() or inbox_titles(cast.bob))


def a_history(path):
    """A training with a fault, whose clock is ahead of the rules'."""
    now = time.time() + 60
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        names = list(OUTSIDE.rows[0][1])
        rows.writerow(["_step", "_timestamp", "loss", *names])
        for step, row in OUTSIDE.rows:
            rows.writerow([step, now + step, 1 / step, *(row[name] for name in names)])
    return path


def test_a_history_warns_on_its_page_alone_and_a_run_that_goes_on_is_noticed(rules, tmp_path):
    assert main(["import-wandb", str(a_history(tmp_path / "night.csv"))]) == 0
    run = tracked("wandb-night")
    assert {one["rule"] for one in run.result["health"]} == {"entropy_collapse"}
    assert run.state == "finished" and is_silent(rules.cast)
    with grove.init(project="Oaks", id="wandb-night", resume="allow") as program:
        program.log({"loss": 0.5})
        program.finish(exit_code=1)
    titles = inbox_titles(rules.cast.bob)
    assert [one.partition(" #1")[2] for one in titles] == [
        ": loss is below 1e+09", f" failed at step {tracked('wandb-night').step}",
    ]  # fmt: skip
    assert Alert.objects.filter(kind=RuleKind.METRIC).count() == 1


def test_an_import_that_is_cut_off_is_no_stalled_run_and_no_failure(rules, tmp_path):
    assert main(["import-wandb", str(a_history(tmp_path / "night.csv"))]) == 0
    run = tracked("wandb-night")
    Run.objects.filter(pk=run.pk).update(
        state="running", finished_at=None, lease_expires="2020-01-01T00:00:00Z",
        created="2020-01-01T00:00:00Z", queued_at=None, started_at=None,
    )  # fmt: skip
    assert is_silent(rules.cast)
    services.mark_failed(run.pk, run.fencing, "no")
    assert tracked("wandb-night").state == "failed" and is_silent(rules.cast)


@pytest.mark.parametrize("by", ["the command", "REST"])
def test_rollouts_notify_nobody(rules, tmp_path, by):
    file = tmp_path / "rollouts.jsonl"
    file.write_text('{"problem": "2 + 2", "text": "4", "reward": 1}\n')
    if by == "REST":
        rollouts = [{"problem": "2 + 2", "text": "4", "reward": 1}]
        with Grove(rules.address, rules.token) as client:
            body = {"project": rules.cast.project.pk, "rollouts": rollouts}
            client.ask(dict, "POST", "/runs/rollouts", json=body)
    else:
        assert main(["import-rollouts", str(file)]) == 0
    assert Run.objects.get().state == "finished" and is_silent(rules.cast)


def test_what_tensorboard_adds_while_it_is_followed_is_noticed(rules, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    future = time.time() + 3600
    write(tmp_path / "boards", event(1, scalar("loss", 0.5), time=future))
    assert main(["import-tensorboard", "boards"]) == 0
    assert is_silent(rules.cast), "the clock of its writer may be ahead"
    write(tmp_path / "boards", event(2, scalar("loss", 0.5), time=1000.0))
    assert main(["import-tensorboard", "boards", "--idle", "0.1"]) == 0
    assert not Alert.objects.filter(kind=RuleKind.METRIC).exists()
    write(tmp_path / "boards", event(3, scalar("loss", 0.5), time=future))
    assert main(["import-tensorboard", "boards", "--idle", "0.1"]) == 0
    assert "at step 3" in Alert.objects.get(kind=RuleKind.METRIC).cause
