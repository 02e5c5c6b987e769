"""Tests of weights and their lineage."""

import hashlib
import json

import pytest
from django.urls import reverse
from django.utils import timezone

from engine.policy.starters import starter_directory
from tests.helpers.builders import a_model_directory, a_run, many_runs
from webapp.projects.services import create_project
from webapp.queued_imports import ImportState
from webapp.registry.model_files.layout import inspect
from webapp.registry.model_files.safetensors import WeightsError
from webapp.registry.model_imports.requests import request_package
from webapp.registry.model_imports.selectors import SHOWN
from webapp.registry.models import ImportKind, Model, ModelImport, ModelVersion
from webapp.registry.selectors import MODELS_PAGE
from webapp.registry.services import register_final_weights, register_starters
from webapp.registry.versions.cards import card, starter_origin


def starters(cast, path):
    folders = {
        "oak": a_model_directory(path / "oak", 6),
        "fern": a_model_directory(path / "fern", 9, seed=1),
    }
    return register_starters(cast.project, folders, {"seed": 1})


def test_weights_are_counted_and_hashed(tmp_path):
    folder = a_model_directory(tmp_path / "m", 12)
    result = inspect(folder)
    assert result.parameters == 12
    assert result.sha256 == hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-4],
        lambda data: data + b"\0",
        lambda data: b"",
        lambda data: b"\xff" * 8 + data[8:],
        lambda data: data[:8] + b"x" + data[9:],
    ],
)
def test_damaged_weights_are_refused_by_name(tmp_path, damage):
    file = a_model_directory(tmp_path / "m") / "model.safetensors"
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(WeightsError, match=str(file)):
        inspect(file.parent)


def test_a_directory_without_weights_is_refused_by_name(tmp_path):
    with pytest.raises(WeightsError, match=r"model\.safetensors: No such file"):
        inspect(tmp_path)


def test_starters_are_registered_once(cast, tmp_path):
    first = starters(cast, tmp_path)
    folders = {version.model.name: tmp_path / version.model.name for version in first}
    assert register_starters(cast.project, folders, {"seed": 1}) == first
    assert [str(version) for version in first] == ["oak v1", "fern v1"]
    assert first[0].metadata["seed"] == 1 and first[0].parent is None


def test_the_source_of_a_starter_is_what_its_lineage_says(client, cast, tmp_path):
    lineage = json.loads((starter_directory("oak") / "lineage.json").read_text())
    folder = a_model_directory(tmp_path / "oak", 6)
    (version,) = register_starters(cast.project, {"oak": folder}, lineage)
    phases = "2,000 clean steps and 200 noisy steps"
    assert starter_origin(version) == f"made from seed 1, {phases}, generator v1"
    client.force_login(cast.bob)
    for page in ("models", "model"):
        path = reverse(page, args=[] if page == "models" else [version.model_id])
        assert f"made from seed 1, {phases}, generator v1" in client.get(path).content.decode()
    assert "2,000 clean steps" in card(version)
    version.metadata = {"starter": "oak", "seed": 0, "recipe": {"steps": 90}}  # of an older lineage
    assert starter_origin(version) == "made from seed 0, 90 steps"
    version.metadata = {"starter": "oak"}
    assert starter_origin(version) == ""
    assert "It was" not in card(version)


def test_other_weights_under_a_starters_name_are_a_new_version(cast, tmp_path):
    starters(cast, tmp_path)
    again = a_model_directory(tmp_path / "other", 6, seed=9)
    assert register_starters(cast.project, {"oak": again}, {})[0].number == 2


def test_final_weights_follow_the_version_they_started_from(cast, tmp_path):
    oak, fern = starters(cast, tmp_path)
    run = a_run(cast)
    final = {
        "oak": a_model_directory(tmp_path / "final" / "oak", 6, seed=2),
        "fern": a_model_directory(tmp_path / "final" / "fern", 9, seed=3),
    }
    versions = register_final_weights(run, 40, final)
    assert [str(version) for version in versions] == ["oak v2", "fern v2"]
    assert [version.parent for version in versions] == [oak, fern]
    assert {(version.run, version.step) for version in versions} == {(run, 40)}


def test_registering_final_weights_twice_changes_nothing(cast, tmp_path):
    starters(cast, tmp_path)
    run = a_run(cast)
    final = {"oak": a_model_directory(tmp_path / "final")}
    assert register_final_weights(run, 40, final) == register_final_weights(run, 40, final)
    assert ModelVersion.objects.count() == 3


def test_weights_of_an_unregistered_start_have_no_parent(cast, tmp_path):
    run = a_run(cast)
    (version,) = register_final_weights(run, 1, {"oak": a_model_directory(tmp_path / "final")})
    assert str(version) == "oak v1" and version.parent is None


def test_a_start_from_a_directory_finds_the_version_that_lies_there(cast, tmp_path):
    oak, _ = starters(cast, tmp_path)
    run = a_run(cast)
    run.config["agents"][0]["model"] = str(tmp_path / "fern" / ".." / "oak")
    (version,) = register_final_weights(run, 1, {"oak": a_model_directory(tmp_path / "final")})
    assert version.parent == oak


def many_versions(cast, number):
    """A model with `number` versions, each made by a run."""
    model = Model.objects.create(project=cast.project, name="oak")
    fields = {"model": model, "path": "/models/oak", "sha256": "a" * 64, "parameters": 6}
    ModelVersion.objects.bulk_create(
        ModelVersion(number=index, run=run, agent="oak", step=40, **fields)
        for index, run in enumerate(many_runs(cast, number), 1)
    )
    return model


@pytest.mark.large
def test_the_list_of_models_shows_the_newest_versions_of_each(
    client, cast, django_assert_max_num_queries
):
    model = many_versions(cast, 3000)
    for number in range(3):
        request_package(cast.project, "smollm2", cast.bob, name=f"m{number}")
    client.force_login(cast.bob)
    with django_assert_max_num_queries(8):
        page = client.get(reverse("models"))
    (shown,) = page.context["models"]
    assert [v.number for v in shown.newest] == list(range(3000, 2990, -1))
    assert f'href="/models/{model.pk}/">All 3000 versions' in page.content.decode()
    assert len(page.content) < 40_000


def test_the_pages_of_the_list_hold_every_model_once(client, cast):
    firs = create_project(cast.project.workspace, "Firs", "firs", created_by=cast.alice)
    names = {cast.project: 2 * MODELS_PAGE + 3, firs: 4}
    made = [
        Model.objects.create(project=project, name=f"m{number:03}")
        for project, count in names.items()
        for number in range(count)
    ]
    client.force_login(cast.bob)
    shown, path = [], reverse("models")
    while path:
        context = client.get(path).context
        assert 0 < len(context["models"]) <= MODELS_PAGE
        shown += context["models"]
        path = context["next"] and f"{reverse('models')}?after={context['next']}"
    assert shown == made
    of_one = client.get(f"{reverse('models')}?project={firs.pk}")
    assert of_one.context["models"] == made[-4:] and of_one.context["next"] is None
    last = made[2 * MODELS_PAGE + 2]  # the last of its project
    narrowed = client.get(f"{reverse('models')}?project={firs.pk}&after={last.pk}")
    assert narrowed.context["models"] == made[-4:]
    assert client.get(f"{reverse('models')}?after=x").status_code == 400


def test_an_open_import_is_shown_before_many_that_ended(client, cast):
    opened = request_package(cast.project, "smollm2", cast.bob, name="open")
    ended = {"project": cast.project, "kind": ImportKind.PACKAGE, "package": "smollm2"}
    ModelImport.objects.bulk_create(
        ModelImport(name=f"m{number}", state=ImportState.FAILED, finished=timezone.now(), **ended)
        for number in range(SHOWN + 4)
    )
    client.force_login(cast.bob)
    page = client.get(reverse("models"))
    shown = page.context["imports"]
    assert shown[0] == opened and len(shown) == SHOWN
    assert "5 earlier imports" in page.content.decode()
    later = [one.pk for one in shown[1:]]
    assert later == sorted(later, reverse=True)


def test_the_pages_of_a_model_hold_every_version_once(client, cast, django_assert_max_num_queries):
    model = many_versions(cast, 120)
    client.force_login(cast.bob)
    seen, before = [], ""
    while before is not None:
        with django_assert_max_num_queries(14):
            page = client.get(reverse("model", args=[model.pk]), {"before": before})
        seen += [version.number for version in page.context["versions"]]
        before = page.context["next"]
    assert seen == list(range(120, 0, -1))


@pytest.mark.parametrize("before", ["x", "-1", "1" * 30, "\u0663"])
def test_a_page_before_no_number_is_a_bad_request(client, cast, before):
    model = many_versions(cast, 1)
    client.force_login(cast.bob)
    assert client.get(reverse("model", args=[model.pk]), {"before": before}).status_code == 400
