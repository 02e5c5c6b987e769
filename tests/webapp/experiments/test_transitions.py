"""Tests of run states: permitted transitions, and who may make them."""

import pytest

from engine.config.errors import ConfigError
from engine.events.vocabulary import RunState
from tests.helpers.builders import a_held_run, a_run, an_event
from webapp.experiments import services
from webapp.experiments.launch.creation import create_experiment_with_run
from webapp.experiments.models import Experiment, Run
from webapp.experiments.scheduling.leases import LeaseLost, release, renew_lease, take_lease
from webapp.experiments.scheduling.states import ALLOWED, ENDED, TransitionRefused, check
from webapp.telemetry.ingest.ingest import ingest

pytestmark = pytest.mark.django_db


def test_every_state_has_a_row_and_only_finished_is_final():
    assert set(ALLOWED) == set(RunState)
    assert [state for state, after in ALLOWED.items() if not after] == [RunState.FINISHED]


@pytest.mark.parametrize("state", sorted(ENDED))
def test_an_ended_run_cannot_end_again(state):
    for other in ENDED:
        with pytest.raises(TransitionRefused):
            check(state, other)


def test_a_run_goes_from_queued_to_finished(cast):
    run, fencing = a_held_run(cast)
    assert run.run_state is RunState.STARTING and run.started_at
    ingest(run.pk, fencing, [an_event(1, "run.state", state="running", reason="")])
    run.refresh_from_db()
    assert run.run_state is RunState.RUNNING
    ended = services.mark_finished(run.pk, fencing)
    assert ended.run_state is RunState.FINISHED and ended.finished_at
    assert ended.lease_expires is None


def test_stopping_a_queued_run_stops_it_at_once(cast):
    run = services.request_stop(a_run(cast).pk)
    assert run.run_state is RunState.STOPPED and run.finished_at


def test_stopping_a_running_run_requests_a_stop_of_its_worker(cast):
    run, fencing = a_held_run(cast)
    assert services.request_stop(run.pk).run_state is RunState.STOPPING
    assert services.request_stop(run.pk).run_state is RunState.STOPPING
    assert services.mark_stopped(run.pk, fencing).run_state is RunState.STOPPED


def test_a_just_claimed_run_gets_a_stop_request(cast):
    run = a_run(cast)
    take_lease(run.pk, "worker", 60)
    run = services.request_stop(run.pk)
    assert run.run_state is RunState.QUEUED and run.stop_requested


def test_the_engines_word_does_not_undo_a_stop(cast):
    run, fencing = a_held_run(cast)
    services.request_stop(run.pk)
    ingest(run.pk, fencing, [an_event(1, "run.state", state="running", reason="")])
    run.refresh_from_db()
    assert run.run_state is RunState.STOPPING


def test_a_queued_run_is_killed_at_once_and_a_running_one_by_its_worker(cast):
    assert services.request_kill(a_run(cast).pk, cast.bob).run_state is RunState.STOPPED
    run, fencing = a_held_run(cast)
    services.request_stop(run.pk, cast.bob)
    killed = services.request_kill(run.pk, cast.mia)
    assert killed.run_state is RunState.STOPPING and killed.kill_requested
    assert renew_lease(run.pk, fencing, 60).kill_requested
    services.mark_stopped(run.pk, fencing)
    assert not services.resume_run(run.pk, cast.bob).kill_requested
    assert [(a.kind, a.user) for a in run.actions.order_by("pk")] == [
        ("stopped", cast.bob), ("killed", cast.mia), ("resumed", cast.bob),
    ]  # fmt: skip


def test_a_refused_transition_is_not_recorded(cast):
    run = a_run(cast, RunState.FINISHED)
    with pytest.raises(TransitionRefused):
        services.request_stop(run.pk, cast.bob)
    services.set_priority(run.pk, 0, cast.bob)
    assert not run.actions.exists()


@pytest.mark.parametrize("state", [RunState.STOPPED, RunState.FAILED])
def test_a_stopped_or_failed_run_resumes(cast, state):
    run = a_run(cast, state, stop_requested=True, error="broke")
    resumed = services.resume_run(run.pk)
    assert resumed.run_state is RunState.QUEUED
    assert not resumed.stop_requested and resumed.error == "" and resumed.finished_at is None


def test_a_finished_run_does_not_resume(cast):
    run = a_run(cast, RunState.FINISHED)
    with pytest.raises(TransitionRefused, match="finished cannot become queued"):
        services.resume_run(run.pk)


def test_the_first_cause_of_a_failure_stays(cast):
    run, fencing = a_held_run(cast)
    Run.objects.filter(pk=run.pk).update(error="out of memory in learn")
    failed = services.mark_failed(run.pk, fencing, "the engine exited with 1")
    assert failed.error == "out of memory in learn"


def test_a_worker_without_the_lease_changes_nothing(cast):
    run, fencing = a_held_run(cast)
    release(run.pk, fencing)
    take_lease(run.pk, "other", 60)
    for change in (services.mark_starting, services.mark_finished, services.mark_stopped):
        with pytest.raises(LeaseLost):
            change(run.pk, fencing)
    with pytest.raises(LeaseLost):
        services.record_engine(run.pk, fencing, 1, 1.0)
    run.refresh_from_db()
    assert run.run_state is RunState.STARTING


def test_settings_that_cannot_run_make_nothing(cast):
    with pytest.raises(ConfigError, match=r"search\.nodes_per_tree = 0"):
        create_experiment_with_run(
            cast.project, cast.alice, "mars2", {"search.nodes_per_tree": 0}, "Bad"
        )
    assert not Experiment.objects.exists() and not Run.objects.exists()


def test_a_run_remembers_its_resolved_settings(cast):
    run = create_experiment_with_run(
        cast.project, cast.alice, "mars2", {"training.steps": 7, "seed": 5}, "Seven"
    )
    assert (run.seed, run.steps, run.number) == (5, 7, 1)
    assert run.config["training"]["steps"] == 7 and run.config["search"]["nodes_per_tree"] > 0
    assert run.dataset_version.dataset.name == "generated"


def test_a_dataset_file_that_is_missing_is_refused_by_path(cast):
    overrides = {"problems.dataset": "/nowhere/problems.jsonl"}
    with pytest.raises(ConfigError, match=r"problems.dataset = '/nowhere/problems.jsonl'"):
        create_experiment_with_run(cast.project, cast.alice, "mars2", overrides, "")
