"""Tests that a small upload's unpacked form is never in the memory of the web process.

Memory is the peak resident size of a process that stores an upload, minus that before it
(`upload_memory.py`).
"""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from django.db import connection
from safetensors.numpy import load_file

from tests.helpers.builders import a_cast, a_model_folder
from tests.helpers.datasets import a_finished_upload, lines_of, some_problems
from webapp.artifacts.models import Upload
from webapp.artifacts.services import append, begin, finish
from webapp.datasets.models import DatasetVersion
from webapp.datasets.parsing.parser_process import MOST_STATEMENT
from webapp.datasets.storing import add_version
from webapp.registry.model_files.imports import create_model, import_uploads
from webapp.registry.model_files.safetensors import WeightsError

pytestmark = pytest.mark.usefixtures("var_directory")


def mebibytes_to_store(folder, owner, what, small, big) -> int:
    """By how much a process grows that stores these uploads, after it has stored the small ones."""
    database = connection.settings_dict
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "webapp.config.settings",
        "GROVE_VAR": str(folder),
        "DATABASE_URL": f"postgresql://{database['USER']}@/{database['NAME']}"
        f"?host={database['HOST']}",
    }
    ids = [",".join(str(upload.pk) for upload in uploads) for uploads in (small, big)]
    module = "tests.webapp.datasets.upload_memory"
    command = [sys.executable, "-m", module, str(owner.pk), str(what), *ids]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.large
@pytest.mark.django_db(transaction=True)
def test_a_small_file_that_unpacks_to_long_statements_is_stored_piece_by_piece(var_directory):
    cast = a_cast()
    (one,) = some_problems(1)
    long = [replace(one, id=str(n), statement=f"{n} " + "a" * 900_000) for n in range(80)]
    packed = gzip.compress(lines_of(long), 1)
    assert len(packed) < 600_000
    small, big = (a_finished_upload(cast, cast.bob, text) for text in (None, packed))
    assert mebibytes_to_store(var_directory, cast.bob, "dataset", [small], [big]) < 60
    assert DatasetVersion.objects.latest("pk").problems.count() == 80


def test_a_statement_beyond_all_measure_is_left_out_and_said_so(cast):
    good, other = some_problems(2)
    problems = [good, replace(other, statement="a" * (MOST_STATEMENT + 1))]
    upload = a_finished_upload(cast, cast.bob, lines_of(problems))
    version, _ = add_version(cast.project, cast.bob, "one", [upload.pk])
    assert version.problems.count() == 1 == version.statistics["left_out"]
    assert "1,000,001 characters; at most 1,000,000" in version.left_out[0]


@pytest.mark.large
@pytest.mark.django_db(transaction=True)
def test_a_header_of_megabytes_is_parsed_in_a_process_of_its_own(var_directory, tmp_path, settings):
    cast = a_cast()
    folder = a_model_folder(tmp_path / "model")
    small = uploads_of(cast, folder)
    deepen(folder, layers=6_500)
    assert 7_000_000 < (folder / "model.safetensors").stat().st_size < 8_000_000
    model = create_model(cast.project, "wide", cast.bob)
    big = uploads_of(cast, folder)
    assert mebibytes_to_store(var_directory, cast.bob, model.pk, small, big) < 30
    version = model.versions.latest("pk")
    assert version.parameters > 6_500 and version.files.count() == len(list(folder.iterdir()))
    settings.MODEL_CHECK_BYTES, settings.MODEL_CHECK_SECONDS = 100 << 20, 60
    (folder / "README.md").write_text("another")
    with pytest.raises(WeightsError, match="checking takes more than 60 s or 100 MiB of memory"):
        import_uploads(model, uploads_of(cast, folder), None, cast.bob)


def deepen(folder, layers: int) -> None:
    """Gives the model in a folder so many layers, all of zeros."""
    tensors = load_file(folder / "model.safetensors")
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    first = [name for name in shapes if ".layers.0." in name]
    for number in range(1, layers):
        shapes |= {name.replace(".0.", f".{number}."): shapes[name] for name in first}
    header, end = {}, 0
    for name, shape in shapes.items():
        start, end = end, end + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}
    packed = json.dumps(header).encode()
    content = len(packed).to_bytes(8, "little") + packed + bytes(end)
    (folder / "model.safetensors").write_bytes(content)
    config = json.loads((folder / "config.json").read_text()) | {"num_hidden_layers": layers}
    (folder / "config.json").write_text(json.dumps(config))


def uploads_of(cast, folder):
    results = []
    for path in sorted(folder.iterdir()):
        upload = begin(cast.project, cast.bob, Upload.Kind.MODEL, path.name, path.stat().st_size)
        results.append(finish(append(upload, 0, io.BytesIO(path.read_bytes()))))
    return results
