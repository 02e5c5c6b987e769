"""Test from an uploaded dataset to a run that learned from it, and to a model measured on it.

By REST and a real worker, with its check in the sandbox.
"""

from __future__ import annotations

import shutil

import pytest
from django.db import transaction

from engine.config.problems import ProblemsConfig
from engine.events.vocabulary import RunState
from engine.problems.generator import GeneratedProblems, Split
from engine.problems.identity import content_hash
from tests.helpers.datasets import lines_of, some_problems
from tests.helpers.policies import tiny_policy
from tests.helpers.waiting import eventually
from tests.workers.test_worker import Worker, state_of
from webapp.datasets.models import DatasetVersion
from webapp.datasets.services import version_of
from webapp.experiments.models import Run
from webapp.projects.services import ensure_demo
from webapp.registry.model_files.imports import import_folder
from workers.runs.engine_process import DEFAULT_COMMAND

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
    pytest.mark.large,
]
JSON = {"content_type": "application/json"}


@pytest.fixture
def signed_in(client, var_directory):
    user, project = ensure_demo()
    client.force_login(user)
    return client, project


def uploaded(client, project, number: int = 6) -> DatasetVersion:
    """A version with `number` problems, whose check is pending."""
    content = lines_of(some_problems(number))
    new = {"project": project.pk, "kind": "dataset", "name": "p.jsonl", "size": len(content)}
    upload = client.post("/api/v1/uploads", new, **JSON).json()["id"]
    path = f"/api/v1/uploads/{upload}"
    octets = {"content_type": "application/octet-stream", "headers": {"Upload-Offset": "0"}}
    assert client.patch(path, content, **octets).status_code == 200
    assert client.post(f"{path}/finish").status_code == 200
    body = {"project": project.pk, "name": "trees", "uploads": [upload]}
    response = client.post("/api/v1/datasets", body, **JSON)
    assert response.status_code == 201, response.json()
    return DatasetVersion.objects.get(pk=response.json()["id"])


def checked(version: DatasetVersion) -> bool:
    version.refresh_from_db()
    return version.faulty == 0


def test_a_run_learns_from_an_uploaded_dataset_and_both_know_it(signed_in, var_directory):
    client, project = signed_in
    version = uploaded(client, project)
    body = {"project": project.pk, "recipe": "demo", "name": "Learner", "overrides": {
        "problems.dataset": version.reference,
        "problems.train": 10, "problems.validation": 1, "problems.test": 1,
    }}  # fmt: skip
    assert client.post("/api/v1/runs", body, **JSON).status_code == 409, "it is not checked yet"
    with Worker(var_directory, steps=3, learns=1) as worker:
        eventually(lambda: checked(version), "the check")
        made = client.post("/api/v1/runs", body, **JSON)
        assert made.status_code == 201, made.json()
        run = Run.objects.get(pk=made.json()["id"])
        eventually(lambda: state_of(run) is RunState.FINISHED, "the run to finish")
        assert worker.close() == 0
    known = set(version.problems.values_list("problem", flat=True))
    opened = run.events.filter(kind="tree.open").values_list("payload__problem", flat=True)
    assert len(opened) == 3 and set(opened) <= known
    (model,) = client.get("/api/v1/models", {"name": "oak"}).json()["models"]
    (made_of,) = model["versions"]
    assert (made_of["run"], made_of["dataset_version"]) == (str(run.pk), str(version))
    assert str(version) in client.get(f"/models/{model['id']}/versions/1/").content.decode()
    used = client.get(f"/api/v1/datasets/versions/{version.pk}/uses").json()["uses"]
    assert [(one["what"], one["name"]) for one in used] == [
        ("run", "Learner #1"),
        ("model", "oak v1"),
    ]


def measured(client, model, version: DatasetVersion) -> Run:
    """The finished run that measured a version of a model on one of a dataset."""
    path = f"/api/v1/models/{model.model_id}/versions/1/evaluations"
    made = client.post(path, {"dataset_version": version.pk, "problems": 4, "nodes": 2}, **JSON)
    assert made.status_code == 201, made.json()
    run = Run.objects.get(evaluation=made.json()["id"])
    ends = (RunState.FINISHED, RunState.FAILED)
    eventually(lambda: state_of(run) in ends, "the run to end", 300)
    run.refresh_from_db()
    assert run.run_state is RunState.FINISHED, run.error
    return run


def test_an_imported_model_is_measured_on_an_uploaded_and_on_a_generated_dataset(
    signed_in, var_directory, tmp_path_factory
):
    client, project = signed_in
    folder = tiny_policy(tmp_path_factory.mktemp("models") / "elm")
    model = import_folder(project, "elm", folder)
    shutil.rmtree(model.path)  # filled again from the artifacts, before the engine starts
    version = uploaded(client, project)
    with transaction.atomic():
        generated = version_of(project, ProblemsConfig(seed=5))
    with Worker(var_directory, command=DEFAULT_COMMAND):
        eventually(lambda: checked(version), "the check")
        run, of_generated = (measured(client, model, one) for one in (version, generated))
    assert 0 <= run.evaluation.figures["tree/pass@1"]["value"] <= 1
    assert len(run.evaluation.outcomes["contents"]) == 4
    made = GeneratedProblems(5).first(Split.TEST, 4)
    result = of_generated.evaluation
    assert sorted(result.outcomes["contents"]) == sorted(content_hash(one)[:16] for one in made)
    assert set(result.figures) == set(run.evaluation.figures) >= {"pass@1", "tree/pass@1"}
    assert {result.figures[name]["problems"] for name in ("pass@1", "tree/pass@1")} == {4}
    assert model.run is None and model.children.count() == 0
    known = client.get(f"/api/v1/models/{model.model_id}/versions/1").json()["metrics"]
    results = {(one["source"], one["problems"]) for one in known if one["figure"] == "pass@1"}
    assert results == {(str(version), 4), (str(generated), 4)}
    used = client.get(f"/api/v1/datasets/versions/{version.pk}/uses").json()["uses"]
    assert [(one["what"], one["name"]) for one in used] == [("evaluation of", "elm v1")]
