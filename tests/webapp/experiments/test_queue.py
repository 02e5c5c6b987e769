"""Tests of the queue of runs: turns between workspaces, priority within one, a bound for each."""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import connections
from django.urls import reverse
from django.utils import timezone

from engine.events.vocabulary import RunState
from engine.policy.starters import starter_directory
from tests.helpers.builders import a_config, a_search, a_token
from tests.helpers.waiting import patience
from webapp.accounts.models import Scope
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.experiments import services
from webapp.experiments.launch.creation import create_experiment_with_run
from webapp.experiments.models import Experiment, Run
from webapp.experiments.scheduling.queue import take, take_next
from webapp.experiments.scheduling.states import NotNow
from webapp.experiments.selectors import sweepable_runs
from webapp.projects.models import Workspace
from webapp.projects.services import create_project, create_workspace
from webapp.registry.evaluations import EvaluationSettings, evaluate
from webapp.registry.services import register_starters

LONG_AGO = timezone.now() - timedelta(days=1)


def queued(project, user, number, state=RunState.QUEUED, **fields):
    """`number` runs of the project, queued one second apart."""
    experiment = Experiment.objects.create(project=project, name="X", created_by=user, config={})
    config = a_config().model_dump(mode="json")
    runs = [
        Run(experiment=experiment, number=index + 1, seed=index, config=config, created_by=user,
            state=state, queued_at=LONG_AGO + timedelta(seconds=index), **fields)
        for index in range(number)
    ]  # fmt: skip
    return Run.objects.bulk_create(runs)


def elsewhere(cast):
    """A project of Charlie's, in a workspace of another team."""
    workspace = Workspace.objects.get(slug="elsewhere")
    return create_project(workspace, "Ashes", "ashes", created_by=cast.charlie)


def whose(taken):
    return Run.objects.get(pk=taken.run_id).project.name


def next_taken(seconds=60):
    return take_next("worker", seconds)


def end(taken):
    services.mark_starting(taken.run_id, taken.fencing)
    services.mark_stopped(taken.run_id, taken.fencing)


def test_192_urgent_runs_of_one_user_delay_others_by_one_free_slot(cast):
    flood = queued(cast.project, cast.bob, 192, priority=100)
    first = take(flood[0].pk, "worker", 60)
    (late,) = queued(elsewhere(cast), cast.charlie, 1, priority=-100)
    assert len(sweepable_runs(4)) == 4, "a message for each place, not for each run"
    # A message about one of the many arrives first, but the other workspace gets the slot.
    assert take(flood[1].pk, "worker", 60).run_id == late.pk
    end(first)
    assert whose(take(late.pk, "worker", 60)) == "Oaks", "a late message wastes no place"


def test_of_workspaces_the_one_with_fewest_at_work_is_next_then_the_one_served_longest_ago(cast):
    third = create_workspace("Third", "third", cast.vera)
    places = {
        "Oaks": cast.project,
        "Ashes": elsewhere(cast),
        "Elms": create_project(third, "Elms", "elms", created_by=cast.vera),
    }
    for project in places.values():
        queued(project, cast.alice, 9)
    taken = [next_taken() for _ in range(6)]
    assert sorted(map(whose, taken[:3])) == sorted(map(whose, taken[3:])) == sorted(places)
    order = [whose(one) for one in taken[:3]]
    assert [whose(one) for one in taken[3:]] == order, "those served longest ago come first"
    end(taken[1])
    assert whose(next_taken()) == order[1], "one less at work"
    for one in taken[3:]:
        end(one)
    assert [whose(next_taken()) for _ in range(3)] == [order[0], order[2], order[1]]


def test_with_one_slot_workspaces_take_turns(cast):
    queued(cast.project, cast.bob, 20, priority=100)
    queued(elsewhere(cast), cast.charlie, 3)
    served = []
    for _ in range(8):
        taken = next_taken()
        served.append(whose(taken))
        end(taken)
    assert served == ["Oaks", "Ashes"] * 3 + ["Oaks"] * 2


def starter(taken):
    return Run.objects.get(pk=taken.run_id).created_by


def served_one_by_one(number):
    """Who started each of the next runs, while one slot serves them one after another."""
    served = []
    for _ in range(number):
        taken = next_taken()
        served.append(starter(taken))
        end(taken)
    return served


def flood_of_workspaces(cast):
    """Bob's runs, in ten workspaces that he made for them."""
    for index in range(10):
        made = create_workspace(f"W{index}", f"w{index}", cast.bob)
        queued(create_project(made, "P", "p", created_by=cast.bob), cast.bob, 2, priority=100)


def test_ten_workspaces_of_a_person_have_no_more_turns_than_one(cast):
    flood_of_workspaces(cast)
    queued(elsewhere(cast), cast.charlie, 5)
    served = served_one_by_one(6)
    assert served == served[:2] * 3 and set(served) == {cast.bob, cast.charlie}
    at_once = [starter(next_taken()) for _ in range(4)]
    assert at_once.count(cast.charlie) == 2
    assert next_taken() is not None, "an idle slot is nobody's"


def test_ten_people_of_a_workspace_have_no_more_turns_than_one(cast):
    people = (cast.alice, cast.mia, cast.bob, cast.vera)
    for user in people:
        queued(cast.project, user, 2)
    queued(elsewhere(cast), cast.charlie, 6)
    served = served_one_by_one(8)
    assert [user == cast.charlie for user in served].count(True) == 4
    assert set(served) == {*people, cast.charlie}, "people of a workspace take turns as well"
    at_once = [starter(next_taken()) for _ in range(4)]
    assert at_once.count(cast.charlie) == 2


def test_a_flood_elsewhere_does_not_hold_back_others_of_a_shared_workspace(cast):
    flood_of_workspaces(cast)
    queued(cast.project, cast.bob, 2)
    (mias,) = queued(cast.project, cast.mia, 1)
    taken = [next_taken() for _ in range(2)]
    assert mias.pk in {one.run_id for one in taken}


def test_priority_orders_the_runs_of_one_workspace_across_its_projects(cast):
    plain = queued(cast.project, cast.bob, 2)
    other = create_project(cast.project.workspace, "Firs", "firs", created_by=cast.alice)
    (urgent,) = queued(other, cast.alice, 1)
    services.set_priority(urgent.pk, 5, cast.bob)
    assert urgent.actions.get().detail == "from 0 to 5"
    order = [urgent.pk, plain[0].pk, plain[1].pk]
    assert [next_taken().run_id for _ in range(3)] == order
    assert next_taken() is None


def test_a_run_that_was_interrupted_goes_on_before_any_that_waits(cast):
    queued(cast.project, cast.bob, 3, priority=100)
    (lost,) = queued(cast.project, cast.bob, 1, RunState.RUNNING, lease_expires=LONG_AGO)
    assert sweepable_runs(1)[0] == lost.pk
    assert take(lost.pk, "worker", 60).run_id == lost.pk


def test_a_search_takes_its_turn_like_any_run(cast):
    queued(elsewhere(cast), cast.charlie, 5, priority=9)
    search = a_search(cast)
    assert {next_taken().run_id, next_taken().run_id} >= {search.run_id}


def evaluations(cast, number):
    """`number` evaluations of Bob's, by REST's own service."""
    version, dataset = something_to_measure(cast)
    return [
        evaluate(version, dataset, EvaluationSettings(seed=seed), cast.bob)
        for seed in range(number)
    ]


def something_to_measure(cast):
    """A version of a model, and one of a dataset."""
    dataset = Dataset.objects.create(project=cast.project, name="measured")
    spec = {"dataset": "generated", "seed": 0, "train": 10, "validation": 0, "test": 3}
    problems = DatasetVersion.objects.create(
        dataset=dataset, number=1, spec=spec, content_hash="a" * 64
    )
    (version,) = register_starters(cast.project, {"oak": starter_directory("oak")}, {})
    return version, problems


def test_evaluations_take_turns_with_the_runs_of_other_workspaces(cast):
    mine = {one.run_id for one in evaluations(cast, 6)}
    theirs = {one.pk for one in queued(elsewhere(cast), cast.charlie, 3)}
    served = []
    for _ in range(6):
        taken = next_taken()
        served.append("Oaks" if taken.run_id in mine else "Ashes")
        assert taken.run_id in mine | theirs
        end(taken)
    assert served in (["Oaks", "Ashes"] * 3, ["Ashes", "Oaks"] * 3)


@pytest.mark.parametrize("name", ["PROJECT_RUNNING", "USER_RUNNING"])
def test_no_more_evaluations_of_a_project_or_a_user_are_at_work_than_may(cast, settings, name):
    setattr(settings, name, 2)
    evaluations(cast, 4)
    taken = [next_taken(), next_taken()]
    assert all(taken) and next_taken() is None
    end(taken[0])
    assert next_taken() is not None


@pytest.mark.parametrize(
    ("name", "path", "variable"),
    [("PROJECT_RUNS", "project", "GROVE_PROJECT_RUNS"), ("USER_RUNS", "user", "GROVE_USER_RUNS")],
)
def test_no_more_evaluations_are_accepted_than_runs_may_be_queued(
    client, cast, settings, name, path, variable
):
    setattr(settings, name, 3)
    queued(cast.project, cast.bob, 1)
    first, _ = evaluations(cast, 2)
    client.force_login(cast.bob)
    address = f"/api/v1/models/{first.version.model_id}/versions/1/evaluations"
    requested = {"dataset_version": first.dataset_version_id, "problems": 3}
    response = client.post(address, requested, "application/json")
    (problem,) = response.json()["problems"]
    assert (response.status_code, problem["path"]) == (409, path) and variable in problem["reason"]
    assert Run.objects.count() == 3
    services.request_stop(first.run_id)
    assert client.post(address, requested, "application/json").status_code == 201


@pytest.mark.parametrize("name", ["PROJECT_RUNNING", "USER_RUNNING"])
def test_no_more_runs_of_a_project_or_a_user_are_at_work_than_may(cast, settings, name):
    setattr(settings, name, 2)
    queued(cast.project, cast.bob, 5)
    taken = [next_taken(), next_taken()]
    assert all(taken) and next_taken() is None
    other = create_project(cast.project.workspace, "Firs", "firs", created_by=cast.alice)
    (free,) = queued(other, cast.mia, 1)
    assert next_taken().run_id == free.pk, "others of the workspace go on"
    end(taken[0])
    assert next_taken() is not None


@pytest.mark.large
def test_192_runs_of_one_member_are_not_accepted_without_bound(client, cast):
    secret = a_token(cast.bob, cast.project, Scope.RUNS_WRITE, Scope.RUNS_READ)
    sweep = {"project": cast.project.pk, "recipe": "demo", "seeds": list(range(64))}

    def start():
        headers = {"authorization": f"Bearer {secret}"}
        path = "/api/v1/experiments"
        return client.post(path, sweep, content_type="application/json", headers=headers)

    assert [start().status_code for _ in range(2)] == [201, 201]
    refused = start()
    assert refused.status_code == 409
    (problem,) = refused.json()["problems"]
    assert (problem["path"], problem["value"]) == ("user", 192)
    assert "128 runs of bob are queued or active, and at most 128 may be" in problem["reason"]
    assert "GROVE_USER_RUNS" in problem["reason"]
    assert Run.objects.count() == 128 and Experiment.objects.count() == 2


def test_every_way_to_a_run_is_bounded_by_project_and_page_and_rest_say_so(client, cast, settings):
    settings.PROJECT_RUNS = 1
    (stopped,) = queued(cast.project, cast.alice, 1, RunState.STOPPED)
    queued(cast.project, cast.bob, 1)
    with pytest.raises(NotNow, match="GROVE_PROJECT_RUNS"):
        a_search(cast)
    with pytest.raises(NotNow):
        services.resume_run(stopped.pk, cast.mia)
    client.force_login(cast.mia)
    for more in ({}, {"outside": True}):
        body = {"project": cast.project.pk, "recipe": "demo", "name": "N", **more}
        response = client.post("/api/v1/runs", body, content_type="application/json")
        assert response.status_code == 409 and response.json()["problems"][0]["path"] == "project"
    page = client.post(reverse("resume-run", args=[stopped.pk]), follow=True)
    assert b"1 runs of Oaks are queued or active" in page.content
    form = {"project": cast.project.pk, "recipe": "demo", "name": "N"}
    (problem,) = client.post(reverse("check-launch"), form).json()["problems"]
    assert problem["path"] == "project", "said while one types, too"
    body = {"project": cast.project.pk, "recipe": "demo"}
    response = client.post("/api/v1/experiments/check", body, content_type="application/json")
    assert response.status_code == 409 and response.json()["problems"] == [problem]
    page = client.post(reverse("launch"), form)
    assert page.status_code == 422 and b"GROVE_PROJECT_RUNS" in page.content
    assert Run.objects.count() == 2
    settings.PROJECT_RUNS = 2
    assert services.resume_run(stopped.pk, cast.mia).run_state is RunState.QUEUED


@pytest.mark.django_db(transaction=True)
def test_requests_at_once_get_no_more_runs_than_one_after_another_would(cast, settings):
    settings.USER_RUNS = 5
    made = []

    def start():
        for _ in range(3):
            with suppress(NotNow):
                made.append(create_experiment_with_run(cast.project, cast.bob, "demo", {}, "N"))
        connections["default"].close()

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60 * patience())
    assert len(made) == 5 == Run.objects.count()


@pytest.mark.django_db(transaction=True)
def test_workers_that_choose_at_once_take_different_runs_and_keep_the_turns(cast):
    queued(cast.project, cast.bob, 10)
    queued(elsewhere(cast), cast.charlie, 10)
    taken = []

    def work():
        taken.extend(next_taken() for _ in range(3))
        connections["default"].close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60 * patience())
    assert len({one.run_id for one in taken}) == 12
    assert sorted(map(whose, taken)) == ["Ashes"] * 6 + ["Oaks"] * 6
