"""Tests that the files of runs become artifacts and outlive the directories of their runs."""

import io
import json
import shutil
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest

from tests.helpers.builders import a_cast, a_model_folder, a_run
from webapp.artifacts.collecting import collect
from webapp.artifacts.models import Artifact
from webapp.artifacts.selectors import bytes_of
from webapp.artifacts.store import local_path
from webapp.registry.deletion import delete_version
from webapp.registry.model_files import folders
from webapp.registry.model_files.export import archive
from webapp.registry.services import register_final_weights
from workers.jobs.model_files import ModelFileJob

pytestmark = [pytest.mark.usefixtures("var_directory"), pytest.mark.django_db]


@pytest.fixture
def cast():
    return a_cast()


@pytest.fixture
def made(var_directory):
    """The directory of a run's final weights."""
    return a_model_folder(var_directory / "runs" / "one" / "models" / "oak")


@pytest.fixture
def version(cast, made):
    return register_final_weights(a_run(cast), 3, {"oak": made})[0]


def stored(job=None):
    job = job or ModelFileJob()
    while job.do_one():
        pass
    return job


def test_files_of_a_run_are_stored_once_and_count(cast, made, version):
    before = bytes_of(cast.project)
    sizes = {file.name: file.size for file in version.files.all()}
    assert not Artifact.objects.exists() and not folders.contents_of(version)
    stored()
    for name, sha256 in folders.contents_of(version).items():
        assert local_path(sha256).samefile(made / name)  # no second copy
    assert bytes_of(cast.project) == before + sum(sizes.values()) and len(sizes) == 5
    stored()
    assert Artifact.objects.count() == len(sizes)


def test_a_version_outlives_the_directory_of_its_run(version, made):
    stored()
    data = json.loads((made / "config.json").read_text())
    shutil.rmtree(made.parents[1])
    assert collect(timedelta(0)).artifacts == 0
    with zipfile.ZipFile(io.BytesIO(b"".join(archive(version)))) as packed:
        assert json.loads(packed.read("config.json")) == data
    folders.restore(Path(version.path), folders.contents_of(version))
    assert json.loads((made / "config.json").read_text()) == data


def test_files_of_a_deleted_version_are_collected(version, made):
    stored()
    delete_version(version)
    assert collect(timedelta(0)).artifacts == 5
    assert (made / "config.json").exists()


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_text("{}")])
def test_a_file_that_differs_from_its_registration_is_kept_and_reported(
    version, made, change, caplog
):
    change(made / "config.json")
    job = stored()
    assert "config.json of oak v1 cannot be stored" in caplog.text
    assert list(version.files.filter(artifact=None).values_list("name", flat=True)) == [
        "config.json"
    ]
    assert not folders.contents_of(version)
    assert not job.do_one()  # no immediate retry
