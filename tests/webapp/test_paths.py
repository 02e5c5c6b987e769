"""Which files of the server a run may name."""

import json

import pytest

from engine.faults import ConfigError
from engine.problems.generator import make_problem
from engine.problems.jsonl import save_problems
from tests.builders import a_model_directory
from webapp.experiments.creation import create_experiment_with_run
from webapp.experiments.models import Run
from webapp.projects.services import create_project, create_workspace
from webapp.registry.services import register_starters

SIZES = {"problems.train": 3, "problems.validation": 1, "problems.test": 1}


@pytest.fixture(autouse=True)
def opened(settings, tmp_path):
    settings.DATASETS_DIRS = [tmp_path / "datasets"]
    settings.MODELS_DIRS = [tmp_path / "models"]
    (tmp_path / "datasets").mkdir()
    return tmp_path


@pytest.fixture
def alone(cast):
    """A project in a workspace of Alice alone."""
    return create_project(create_workspace("Alone", "alone", cast.alice), "Elms", "elms")


def some_problems(path):
    save_problems(path, [make_problem(1, index)[0] for index in range(5)])
    return path


def start(project, user, **overrides):
    return create_experiment_with_run(project, user, "mars2", SIZES | overrides, "")


def refused(project, user, path, value):
    with pytest.raises(ConfigError) as caught:
        start(project, user, **{path: str(value)})
    (fault,) = caught.value.problems
    assert fault["path"].split(".")[0] == path.split(".")[0] and not Run.objects.exists()
    return fault["reason"]


def test_a_file_in_a_directory_that_the_setting_names_is_read(cast, opened):
    file = some_problems(opened / "datasets" / "mine.jsonl")
    run = start(cast.project, cast.bob, **{"problems.dataset": str(file)})
    assert run.dataset_version.dataset.name == "mine.jsonl"


@pytest.mark.parametrize(
    "rest", ["secret.jsonl", "datasets/../secret.jsonl", "datasets/link", "none"]
)
def test_any_other_is_refused_in_the_same_words_whether_it_exists_or_not(cast, opened, rest):
    (opened / "datasets" / "link").symlink_to(some_problems(opened / "secret.jsonl"))
    reason = refused(cast.project, cast.alice, "problems.dataset", opened / rest)
    assert reason == refused(cast.project, cast.alice, "problems.dataset", "/etc/passwd")
    assert str(opened / "datasets") in reason and "GROVE_DATASETS" in reason


def test_a_single_user_who_says_so_may_name_any(cast, alone, opened, settings):
    file = some_problems(opened / "mine.jsonl")
    refused(alone, cast.alice, "problems.dataset", file)
    settings.LOCAL_PATHS = True
    refused(cast.project, cast.alice, "problems.dataset", file)  # a workspace that is shared
    assert start(alone, cast.alice, **{"problems.dataset": str(file)}).pk


def test_a_model_is_a_starter_a_registered_one_or_in_an_open_directory(cast, opened):
    registered = a_model_directory(opened / "oak")
    path = "agents.first.model"
    refused(cast.project, cast.bob, path, registered)
    register_starters(cast.project, {"oak": registered}, {})
    named = a_model_directory(opened / "models" / "big")
    for model in ("starter:fern", str(registered), str(named)):
        assert start(cast.project, cast.bob, **{path: model}).pk
    Run.objects.all().delete()
    elsewhere = cast.charlie.memberships.get().workspace
    foreign = create_project(elsewhere, "Elms", "elms")
    reason = refused(foreign, cast.charlie, path, registered)
    assert "GROVE_MODELS" in reason and json.dumps(reason)


@pytest.mark.parametrize("value", ["\x00", "\ud800", "x" * 5000, "~root", "http://host/file"])
def test_what_is_no_path_is_refused_too(cast, value):
    refused(cast.project, cast.bob, "agents.first.model", value)
    refused(cast.project, cast.bob, "problems.dataset", value)
