"""Tests of which files of the server a run may name."""

import json

import pytest

from engine.config.errors import ConfigError
from engine.problems.generator import make_problem
from engine.problems.jsonl import save_problems
from tests.helpers.builders import a_model_directory
from webapp.experiments.launch.creation import (
    clone_request,
    clone_run,
    create_experiment_with_run,
    create_from,
)
from webapp.experiments.models import Run
from webapp.projects.services import create_project
from webapp.registry.services import register_starters

SIZES = {"problems.train": 3, "problems.validation": 1, "problems.test": 1}


@pytest.fixture(autouse=True)
def opened(settings, tmp_path):
    settings.DATASETS_DIRS = [tmp_path / "datasets"]
    settings.MODELS_DIRS = [tmp_path / "models"]
    (tmp_path / "datasets").mkdir()
    return tmp_path


def some_problems(path):
    save_problems(path, [make_problem(1, index)[0] for index in range(5)])
    return path


def start(project, user, **overrides):
    return create_experiment_with_run(project, user, "mars2", SIZES | overrides, "")


def refused(project, user, path, value):
    with pytest.raises(ConfigError) as caught:
        start(project, user, **{path: str(value)})
    (problem,) = caught.value.problems
    assert problem["path"].split(".")[0] == path.split(".")[0] and not Run.objects.exists()
    return problem["reason"]


def test_a_file_that_the_operator_has_listed_is_read_by_its_name(cast, opened):
    some_problems(opened / "datasets" / "mine.jsonl")
    run = start(cast.project, cast.bob, **{"problems.dataset": "local:mine.jsonl"})
    assert run.dataset_version.dataset.name == "mine.jsonl"
    again = clone_run(run, cast.bob)
    assert again.config["problems"] == run.config["problems"]


@pytest.mark.parametrize(
    "rest", ["datasets/mine.jsonl", "secret.jsonl", "datasets/../secret.jsonl", "none"]
)
def test_no_path_is_taken_whether_it_exists_or_not(cast, opened, rest):
    some_problems(opened / "datasets" / "mine.jsonl")
    some_problems(opened / "secret.jsonl")
    reason = refused(cast.project, cast.alice, "problems.dataset", opened / rest)
    assert reason == refused(cast.project, cast.alice, "problems.dataset", "/etc/passwd")
    assert "GROVE_DATASETS (local:mine.jsonl)" in reason and str(opened) not in reason


@pytest.mark.parametrize(
    "name", ["../secret.jsonl", "none", "", "./mine.jsonl", "mine.jsonl/", "."]
)
def test_a_local_name_is_one_that_is_listed(cast, opened, name):
    some_problems(opened / "datasets" / "mine.jsonl")
    some_problems(opened / "secret.jsonl")
    refused(cast.project, cast.alice, "problems.dataset", f"local:{name}")


def test_a_model_is_a_starter_a_registered_one_or_one_that_is_listed(cast, opened):
    registered = a_model_directory(opened / "oak")
    path = "agents.first.model"
    refused(cast.project, cast.bob, path, registered)
    register_starters(cast.project, {"oak": registered}, {})
    named = a_model_directory(opened / "models" / "big")
    for path_of_a_model in (registered, named):
        refused(cast.project, cast.bob, path, path_of_a_model)
    expected = {"starter:fern": "starter:fern", "registry:oak@1": str(registered),
             "local:big": str(named)}  # fmt: skip
    for model, meant in expected.items():
        run = start(cast.project, cast.bob, **{path: model})
        assert run.config["agents"][0]["model"] == meant
        assert clone_run(run, cast.bob).config["agents"] == run.config["agents"]
    Run.objects.all().delete()
    elsewhere = cast.charlie.memberships.get().workspace
    foreign = create_project(elsewhere, "Elms", "elms")
    reason = refused(foreign, cast.charlie, path, registered)
    assert "GROVE_MODELS (local:big)" in reason and json.dumps(reason)


def test_a_clone_into_another_project_takes_no_model_along(cast, opened):
    register_starters(cast.project, {"oak": a_model_directory(opened / "oak")}, {})
    run = start(cast.project, cast.bob, **{"agents.first.model": "registry:oak@1"})
    elsewhere = create_project(cast.project.workspace, "Elms", "elms", created_by=cast.alice)
    with pytest.raises(ConfigError, match=r"agents\.0\.model"):
        create_from(elsewhere, cast.alice, clone_request(run), run, None)


def test_only_the_operator_sets_the_address_of_ray(cast):
    reason = refused(cast.project, cast.bob, "compute.ray_address", "ray://elsewhere:10001")
    assert "RAY_ADDRESS" in reason


@pytest.mark.parametrize("switch", ["0", "1"])
def test_nothing_is_downloaded_from_a_hub_whatever_the_server_allows(cast, monkeypatch, switch):
    monkeypatch.setenv("GROVE_HUB", switch)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    reason = refused(cast.project, cast.alice, "agents.first.model", "hf:elms/oak@main")
    assert "models pull hf:elms/oak@main DIR, then grove push-model DIR" in reason
    reason = refused(cast.project, cast.alice, "problems.dataset", "hf:elms/acorns@main")
    assert "problems pull hf:elms/acorns@main DIR, then grove push-dataset" in reason
    reason = refused(cast.project, cast.alice, "agents.first.model", "hf:\x07" + "x" * 5000)
    assert len(reason) < 400 and "\x07" not in reason
    local = "local:hf:elms/oak@main"
    assert "are not accepted" in refused(cast.project, cast.alice, "agents.first.model", local)


@pytest.mark.parametrize("value", ["\x00", "\ud800", "x" * 5000, "~root", "http://host/file"])
def test_values_that_are_no_name_are_refused(cast, value):
    refused(cast.project, cast.bob, "agents.first.model", value)
    refused(cast.project, cast.bob, "agents.first.model", f"local:{value}")
    refused(cast.project, cast.bob, "problems.dataset", value)
    refused(cast.project, cast.bob, "inference.reward_model", value)
