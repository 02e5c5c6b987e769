"""Tests that the site refuses runs that ask for more than its machine has, by whatever door."""

import json

import pytest
from django.urls import reverse

from engine.config.errors import ConfigError
from tests.helpers.builders import a_model_folder
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.experiments.launch.creation import create_experiment_with_run
from webapp.experiments.models import Run
from webapp.registry.evaluations import EvaluationSettings, evaluate
from webapp.registry.model_files.imports import import_folder
from webapp.searches.services import planned

pytestmark = pytest.mark.django_db
TOO_MUCH = [
    ({"sandbox.workers": 256, "sandbox.memory_mb": 2048}, "sandbox.workers"),
    ({"compute.threads_per_agent": 1024, "compute.generators_per_agent": 64},
     "compute.threads_per_agent"),
    ({"agents.0.learner_ranks": 1024, "compute.threads_per_agent": 1024},
     "compute.threads_per_agent"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def engines_are_here(monkeypatch, settings):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    settings.BROKER_URL = "filesystem://localhost"
    settings.ENGINE_MEMORY_BYTES = 64 << 30


@pytest.mark.parametrize("overrides, path", TOO_MUCH)
def test_no_run_is_created_with_more_than_the_machine_has(cast, overrides, path):
    with pytest.raises(ConfigError, match=rf"{path} = .*, and this server has at most .*; lower"):
        create_experiment_with_run(cast.project, cast.alice, "demo", overrides, "")
    with pytest.raises(ConfigError, match=path):
        planned(cast.project, ["starter:oak", "starter:fern"], overrides)
    assert not Run.objects.exists()


def test_the_form_and_rest_name_setting_value_and_remedy(cast, client):
    client.force_login(cast.alice)
    lines = "sandbox.workers = 256\nsandbox.memory_mb = 2048"
    form = {"project": cast.project.pk, "recipe": "demo", "name": "x", "overrides": lines}
    told = json.dumps(client.post(reverse("check-launch"), form).json()["problems"])
    assert "sandbox.workers" in told and "lower sandbox.workers" in told
    body = {"project": cast.project.pk, "recipe": "demo", "overrides": TOO_MUCH[0][0]}
    response = client.post("/api/v1/experiments", body, content_type="application/json")
    assert response.status_code == 422, response.content
    assert b"sandbox.workers" in response.content and b"256" in response.content
    assert not Run.objects.exists()


def test_an_evaluation_needs_memory_for_its_programs_as_well(cast, settings, tmp_path):
    version = import_folder(cast.project, "elm", a_model_folder(tmp_path / "elm"))
    dataset = DatasetVersion.objects.create(
        dataset=Dataset.objects.create(project=cast.project, name="generated"),
        number=1, spec={"dataset": "generated", "seed": 5}, content_hash="a" * 64,
    )  # fmt: skip
    settings.ENGINE_MEMORY_BYTES = 100 << 20
    with pytest.raises(ConfigError, match=r"sandbox.workers = 1: memory of 1 programs"):
        evaluate(version, dataset, EvaluationSettings(problems=3), cast.alice)


@pytest.mark.parametrize("elsewhere", ["RAY_ADDRESS", "GROVE_ENGINE_COMMAND", "BROKER_URL"])
def test_where_engines_run_elsewhere_their_machine_decides(cast, elsewhere, monkeypatch, settings):
    if elsewhere == "BROKER_URL":
        settings.BROKER_URL = "redis://broker:6379/0"
    else:
        monkeypatch.setenv(elsewhere, "head:6379")
    overrides = {"sandbox.workers": 256, "sandbox.memory_mb": 2048}
    assert planned(cast.project, ["starter:oak"], overrides).sandbox.workers == 256
