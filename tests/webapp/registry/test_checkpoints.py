"""Tests of a run's checkpoint as a version of the registry, with its lineage."""

import hashlib
import json

import pytest
from django.urls import reverse

from engine.events.vocabulary import RunState
from tests.helpers.builders import a_model_folder, a_run, a_token
from webapp.accounts.models import Scope
from webapp.registry.models import ModelVersion
from webapp.registry.services import register_final_weights, store_next


@pytest.fixture
def run(cast, var_directory):
    """A run that keeps a checkpoint of step 20 of oak alone, as the engine writes it."""
    made = a_run(cast, RunState.STOPPED)
    path = var_directory / "runs" / str(made.pk) / "checkpoints" / "step-000020"
    a_model_folder(path / "oak")
    (path / "oak" / "optimizer.pt").write_bytes(b"momentum")
    (path / "fern").mkdir()
    (path / "fern" / "adapter_model.safetensors").write_bytes(b"adapter")
    (path / "state.json").write_text("{}")
    files = {
        str(file.relative_to(path)): {
            "bytes": file.stat().st_size,
            "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        }
        for file in path.rglob("*")
        if file.is_file()
    }
    (path / "manifest.json").write_text(json.dumps({"step": 20, "files": files}))
    return made


def register(client, run, step=20, agent="oak", **headers):
    address = f"/api/v1/runs/{run.pk}/checkpoints/{step}/versions"
    return client.post(address, {"agent": agent}, "application/json", headers=headers)


def test_it_is_a_version_that_outlives_the_checkpoint(client, cast, run, var_directory):
    client.force_login(cast.bob)
    made, again = register(client, run), register(client, run)
    assert (made.status_code, again.status_code) == (201, 200)
    body = made.json()
    assert body == again.json() and (body["run"], body["step"]) == (str(run.pk), 20)
    version = ModelVersion.objects.get()
    assert (version.agent, version.created_by) == ("oak", cast.bob)
    names = set(version.files.values_list("name", flat=True))
    assert "model.safetensors" in names and "optimizer.pt" not in names
    path = var_directory / "runs" / str(run.pk) / "checkpoints" / "step-000020" / "oak"
    for file in path.iterdir():
        file.unlink()
    while store_next():
        pass
    assert not version.files.filter(artifact=None).exists()


def test_the_final_checkpoint_is_registered_as_a_further_version(client, cast, run, tmp_path):
    client.force_login(cast.bob)
    register(client, run)
    (last,) = register_final_weights(run, 40, {"oak": a_model_folder(tmp_path / "end", seed=1)})
    assert [one.step for one in last.model.versions.order_by("number")] == [20, 40]


@pytest.mark.parametrize("step, agent, reason", [
    (7, "oak", "there are 20"), (20, "elm", "there are oak, fern"), (20, "fern", "an adapter of"),
])  # fmt: skip
def test_a_missing_checkpoint_is_refused_with_the_existing_ones(
    client, cast, run, step, agent, reason
):
    client.force_login(cast.bob)
    refused = register(client, run, step, agent)
    assert refused.status_code == 409 and reason in refused.json()["detail"]
    assert not ModelVersion.objects.exists()


def test_registering_a_model_requires_the_right_to_add_models(client, cast, run):
    client.force_login(cast.vera)
    assert register(client, run).status_code == 403
    client.logout()
    reading = a_token(cast.bob, cast.project, Scope.RUNS_WRITE)
    assert register(client, run, authorization=f"Bearer {reading}").status_code == 403


def test_the_page_of_the_run_offers_it(client, cast, run):
    client.force_login(cast.bob)
    page = client.get(reverse("run", args=[run.pk])).content.decode()
    assert reverse("register-checkpoint", args=[run.pk]) in page
    body = {"step": "20", "agent": "oak"}
    made = client.post(reverse("register-checkpoint", args=[run.pk]), body)
    assert made.url == reverse("version", args=[ModelVersion.objects.get().model_id, 1])
    response = client.post(
        reverse("register-checkpoint", args=[run.pk]), {**body, "step": "7"}, follow=True
    )
    assert "there are 20" in response.content.decode()
