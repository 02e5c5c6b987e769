"""Tests of external models: uploaded, imported, exported, used by runs, and deleted."""

import gzip
import io
import json
import pickle
import zipfile
from datetime import timedelta
from importlib import import_module
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command

from tests.helpers.builders import a_model_folder, a_run, parameters_of
from webapp.artifacts.collecting import collect
from webapp.artifacts.models import Artifact, Upload
from webapp.artifacts.services import append, begin, finish
from webapp.artifacts.store import open_artifact
from webapp.experiments.launch.creation import create_experiment_with_run
from webapp.registry.deletion import delete_model, delete_version
from webapp.registry.errors import RegistryRefused
from webapp.registry.model_files import folders
from webapp.registry.model_files.export import archive
from webapp.registry.model_files.imports import create_model, import_folder, import_uploads
from webapp.registry.model_files.safetensors import WeightsError
from webapp.registry.models import Model, ModelVersion
from webapp.registry.services import register_final_weights

pytestmark = pytest.mark.usefixtures("var_directory")


def uploaded(cast, folder, **instead):
    """Finished uploads of a folder's files, some with other contents."""
    contents = {path.name: path.read_bytes() for path in sorted(folder.iterdir())} | instead
    results = []
    for name, content in contents.items():
        upload = begin(cast.project, cast.bob, Upload.Kind.MODEL, name, len(content))
        results.append(finish(append(upload, 0, io.BytesIO(content))))
    return results


def a_zip_bomb(content: bytes = b"\0" * (1 << 24)) -> bytes:
    """A few KiB that unpack to a thousand times as much."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(4):
            archive.writestr(f"../{number}/model.safetensors", content)
    return packed.getvalue()


@pytest.fixture
def folder(tmp_path):
    return a_model_folder(tmp_path / "model")


@pytest.fixture
def model(cast):
    return create_model(cast.project, "elm", cast.bob)


def test_uploads_become_a_version_and_are_used_up(cast, model, folder):
    version = import_uploads(model, uploaded(cast, folder), None, cast.bob)
    assert str(version) == "elm v1" and version.parameters == parameters_of()
    names = {path.name for path in folder.iterdir()}
    assert set(version.files.values_list("name", flat=True)) == names
    assert not Upload.objects.exists()
    weights = version.files.get(name="model.safetensors")
    assert version.sha256 == weights.sha256 == weights.artifact_id
    assert {path.name for path in Path(version.path).iterdir()} == names


def test_the_same_files_again_are_the_same_version(cast, model, folder):
    first = import_uploads(model, uploaded(cast, folder), None, cast.bob)
    assert import_uploads(model, uploaded(cast, folder), None, cast.bob) == first


@pytest.mark.parametrize(
    "name, content",
    [
        ("model.safetensors", pickle.dumps({"w": 1})),
        ("model.safetensors", (10 * 2**30).to_bytes(8, "little") + b"{}"),
        ("config.json", b'{"architectures": ["LlamaForCausalLM"], "auto_map": {}}'),
        ("evil.py", b"import os"),
        ("model.safetensors", a_zip_bomb()),
        ("model.safetensors", a_zip_bomb(a_zip_bomb())),
        ("model.safetensors", gzip.compress(b"\0" * (1 << 24))),
        ("tokenizer.json", a_zip_bomb()),
        ("config.json", gzip.compress(b" " * (1 << 24))),
        ("config.json", b"[" * 1_000_000),
        ("chat_template.jinja", b"{{ 'a'.ljust(3160000000) }}"),
    ],
)
def test_a_refused_import_leaves_nothing_behind(cast, model, folder, name, content, settings):
    with pytest.raises(WeightsError, match=name):
        import_uploads(model, uploaded(cast, folder, **{name: content}), None, cast.bob)
    assert not Upload.objects.exists() and not Artifact.objects.exists()
    assert not ModelVersion.objects.exists()
    left = [f for d in (settings.UPLOADS_DIR, settings.MODEL_FOLDERS_DIR) if d.is_dir()
            for f in d.iterdir()]  # fmt: skip
    assert left == []


def test_a_model_that_is_refused_with_its_first_files_is_none(client, cast, folder):
    client.force_login(cast.bob)
    body = {"project": cast.project.pk, "name": "ash"}

    def made(**instead):
        uploads = [str(one.pk) for one in uploaded(cast, folder, **instead)]
        given = {**body, "uploads": uploads}
        return client.post("/api/v1/models", given, content_type="application/json")

    refusal = made(**{"config.json": b"{}"})
    assert refusal.status_code == 422 and "architectures" in str(refusal.json()["problems"])
    assert not Model.objects.exists() and not Artifact.objects.exists()
    reply = made().json()
    assert [one["number"] for one in reply["versions"]] == [1] and not Upload.objects.exists()
    assert made().status_code == 409, "there is one of that name"
    assert Upload.objects.exists(), "and what was uploaded can become a version of it"


def test_bytes_that_something_else_holds_stay_when_a_model_is_refused(cast, model, folder):
    kept = import_uploads(model, uploaded(cast, folder), None, cast.bob)
    with pytest.raises(WeightsError):
        import_uploads(model, uploaded(cast, folder, **{"evil.py": b"x"}), None, cast.bob)
    assert Artifact.objects.count() == kept.files.count()


def test_an_upload_that_is_not_finished_is_refused(cast, model, folder):
    uploads = uploaded(cast, folder)
    uploads[0] = begin(cast.project, cast.bob, Upload.Kind.MODEL, "LICENSE", 10)
    with pytest.raises(RegistryRefused, match="LICENSE is not finished"):
        import_uploads(model, uploads, None, cast.bob)


def test_an_operator_imports_a_folder_of_several_weight_files(cast, tmp_path):
    version = import_folder(cast.project, "ash", a_model_folder(tmp_path / "ash", shards=3))
    assert version.parameters == parameters_of(3) and version.files.count() == 8
    assert version.created_by is None


def test_the_operators_command_imports_or_says_why_not(cast, folder, capsys):
    call_command("import_model", str(folder), project="trees/oaks", name="elm")
    assert "elm v1 in Oaks" in capsys.readouterr().out
    (folder / "evil.py").write_text("")
    (folder / "original").mkdir()
    call_command("import_model", str(folder), project="trees/oaks", name="elm")
    shown = capsys.readouterr()
    assert "elm v1 in Oaks" in shown.out, "the same files without what is no part of them"
    assert "left out: evil.py: code of a model is never run" in shown.err
    assert "left out: original: is no plain file" in shown.err
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    for options, why in (
        ({"project": "trees/oaks"}, r"pytorch_model\.bin: weights are accepted as safetensors"),
        ({"project": "no/where"}, "there are trees/oaks"),
    ):
        with pytest.raises(CommandError, match=why):
            call_command("import_model", str(folder), **options)
    assert ModelVersion.objects.count() == 1


def test_an_export_is_the_layout_again_with_the_card(cast, folder):
    version = import_folder(cast.project, "elm", folder)
    content = b"".join(archive(version))
    with zipfile.ZipFile(io.BytesIO(content)) as made:
        assert made.testzip() is None
        assert {one.compress_type for one in made.infolist()} == {zipfile.ZIP_STORED}
        for path in folder.iterdir():
            assert made.read(path.name) == path.read_bytes()
        assert made.read("README.md").decode().startswith("# elm v1\n")


def test_a_run_begins_with_a_version_by_number_or_alias(cast, folder, model):
    version = import_uploads(model, uploaded(cast, folder), None, cast.bob)
    model.aliases.create(name="champion", version=version)
    for reference in ("registry:elm@1", "registry:elm@v1", "registry:elm@champion"):
        run = create_experiment_with_run(
            cast.project, cast.bob, "mars2", {"agents.first.model": reference}, ""
        )
        assert run.config["agents"][0]["model"] == version.path
        assert run.model_uses.get(agent="first").version == version
    with pytest.raises(RegistryRefused, match="elm v1 is in use: alias: champion; runs started"):
        delete_version(version)
    with pytest.raises(RegistryRefused):
        delete_model(model)


@pytest.mark.parametrize("reference", ["registry:elm@7", "registry:oak@1", "registry:elm",
                                       "registry:elm@1" + "0" * 30, "registry:../x@1"])  # fmt: skip
def test_a_reference_to_no_version_is_refused_by_its_path(cast, model, reference):
    from engine.config.errors import ConfigError

    with pytest.raises(ConfigError) as refusal:
        overrides = {"agents.first.model": reference}
        create_experiment_with_run(cast.project, cast.bob, "mars2", overrides, "")
    assert refusal.value.problems[0]["path"] == "agents.0.model"


def test_a_folder_that_was_removed_is_filled_again(cast, folder):
    version = import_folder(cast.project, "elm", folder)
    contents = folders.contents_of(version)
    for path in Path(version.path).iterdir():
        path.unlink()
    Path(version.path).rmdir()
    assert str(folders.fill(contents)) == version.path
    config = json.loads((Path(version.path) / "config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLM"]


def test_a_deleted_version_takes_its_folder_along_and_its_number_is_not_given_again(
    cast, model, folder, tmp_path, django_capture_on_commit_callbacks
):
    first = import_uploads(model, uploaded(cast, folder), None, cast.bob)
    second = import_uploads(
        model, uploaded(cast, a_model_folder(tmp_path / "b", seed=1)), first, cast.bob
    )
    with pytest.raises(RegistryRefused, match="version derived from it: elm v2"):
        delete_version(first)
    with django_capture_on_commit_callbacks(execute=True):
        delete_version(second)
    assert Path(first.path).is_dir() and not Path(second.path).exists()
    with django_capture_on_commit_callbacks(execute=True):
        delete_model(model)
    assert not Path(first.path).exists() and not Model.objects.exists()


def test_a_version_that_a_run_made_is_exported_from_its_directory(cast, tmp_path):
    run = a_run(cast)
    made = a_model_folder(tmp_path / "final")
    (version,) = register_final_weights(run, 3, {"oak": made})
    assert version.files.count() == 5 and not Artifact.objects.exists()
    assert b"".join(archive(version)).startswith(b"PK")
    (made / "config.json").unlink()
    with pytest.raises(RegistryRefused, match=r"config\.json of oak v1 no longer exists"):
        archive(version)


def test_a_version_from_before_files_were_listed_gets_its_list(cast, tmp_path, capsys):
    folders_made = [a_model_folder(tmp_path / name, seed=seed) for seed, name in enumerate("ab")]
    made = [register_final_weights(a_run(cast), 3, {"oak": one})[0] for one in folders_made]
    listed = list(made[0].files.values_list("name", "size", "sha256"))
    for version in made:
        version.files.all().delete()
    with pytest.raises(RegistryRefused, match="list_model_files"):
        archive(made[0])
    (tmp_path / "b" / "model.safetensors").write_bytes(
        (tmp_path / "a" / "model.safetensors").read_bytes()
    )
    with pytest.raises(CommandError, match="1 versions"):
        call_command("list_model_files")
    captured = capsys.readouterr()
    assert "oak v1: 5 files" in captured.out and "are not those of oak v2" in captured.err
    assert list(made[0].files.values_list("name", "size", "sha256")) == listed
    assert b"".join(archive(made[0])).startswith(b"PK") and not made[1].files.exists()


def test_the_collector_takes_files_only_once_no_version_has_them(cast, model, folder, tmp_path):
    first = import_uploads(model, uploaded(cast, folder), None, cast.bob)
    other = a_model_folder(tmp_path / "other", seed=1)  # everything except the weights is the same
    second = import_uploads(model, uploaded(cast, other), None, cast.bob)
    assert collect(timedelta(0)).artifacts == 0
    delete_version(first)
    assert collect(timedelta(0)).artifacts == 1
    contents = folders.contents_of(second)
    assert all(open_artifact(sha256).read() for sha256 in contents.values())
    stray = folders.fill({"config.json": contents["config.json"]})
    assert folders.remove_strays() == 0, "it is fresh"
    assert folders.remove_strays(timedelta(0)) == 2, "the stray, and that of the first version"
    assert not stray.exists() and Path(second.path).is_dir()


def test_earlier_runs_are_matched_by_the_starting_weights_of_their_agents(cast, folder):
    version = import_folder(cast.project, "elm", folder)
    run = a_run(cast)
    run.config["agents"][0]["model"] = version.path
    run.save()
    migration = import_module("webapp.registry.migrations.0004_uses_of_earlier_runs")
    migration.note_uses(apps, None)
    migration.note_uses(apps, None)
    assert list(version.uses.values_list("run", "agent")) == [(run.pk, "oak")]
