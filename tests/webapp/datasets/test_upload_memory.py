"""Tests that a small upload's unpacked form is never in the memory of the web process.

Memory is the peak resident size of this process during an upload, minus that before it.
"""

from __future__ import annotations

import gzip
import io
import json
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.builders import a_model_folder
from tests.helpers.datasets import a_finished_upload, lines_of, some_problems
from webapp.artifacts.models import Upload
from webapp.artifacts.services import append, begin, finish
from webapp.datasets.parsing.parser_process import MOST_STATEMENT
from webapp.datasets.storing import add_version
from webapp.registry.model_files.imports import create_model, import_uploads
from webapp.registry.model_files.safetensors import WeightsError

pytestmark = pytest.mark.usefixtures("var_directory")


def resident(name: str) -> int:
    """VmRSS (now) or VmHWM (the peak since its reset), in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


@contextmanager
def within(mebibytes: int):
    Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM to VmRSS
    before = resident("VmRSS")
    yield
    grown = (resident("VmHWM") - before) >> 20
    assert grown < mebibytes, f"grew by {grown} MiB, {mebibytes} at most"


def test_a_small_file_that_unpacks_to_long_statements_is_stored_piece_by_piece(cast):
    (one,) = some_problems(1)
    long = [replace(one, id=str(n), statement=f"{n} " + "a" * 900_000) for n in range(80)]
    packed = gzip.compress(lines_of(long), 1)
    assert len(packed) < 600_000
    upload = a_finished_upload(cast, cast.bob, packed)
    del long, packed
    with within(60):
        version, _ = add_version(cast.project, cast.bob, "long", [upload.pk])
    assert version.problems.count() == 80


def test_a_statement_beyond_all_measure_is_left_out_and_said_so(cast):
    good, other = some_problems(2)
    problems = [good, replace(other, statement="a" * (MOST_STATEMENT + 1))]
    upload = a_finished_upload(cast, cast.bob, lines_of(problems))
    version, _ = add_version(cast.project, cast.bob, "one", [upload.pk])
    assert version.problems.count() == 1 == version.statistics["left_out"]
    assert "1,000,001 characters; at most 1,000,000" in version.left_out[0]


def test_a_header_of_megabytes_is_parsed_in_a_process_of_its_own(cast, tmp_path, settings):
    tensor = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps({f"w{n}": tensor for n in range(100_000)}).encode()
    content = len(header).to_bytes(8, "little") + header
    assert 6_000_000 < len(content) < 8_000_000
    folder = a_model_folder(tmp_path / "model")
    (folder / "model.safetensors").write_bytes(content)
    del header, content
    model = create_model(cast.project, "wide", cast.bob)
    with within(30):
        version = import_uploads(model, uploads_of(cast, folder), None, cast.bob)
    assert version.parameters == 0 and version.files.count() == len(list(folder.iterdir()))
    settings.MODEL_CHECK_BYTES, settings.MODEL_CHECK_SECONDS = 100 << 20, 60
    (folder / "README.md").write_text("another")
    with pytest.raises(WeightsError, match="checking takes more than 60 s or 100 MiB of memory"):
        import_uploads(model, uploads_of(cast, folder), None, cast.bob)


def uploads_of(cast, folder):
    results = []
    for path in sorted(folder.iterdir()):
        upload = begin(cast.project, cast.bob, Upload.Kind.MODEL, path.name, path.stat().st_size)
        results.append(finish(append(upload, 0, io.BytesIO(path.read_bytes()))))
    return results
